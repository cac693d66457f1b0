/* here.h: the addresses of this machine.
 *
 * Threads: any. */
#ifndef SHOAL_WIRE_HERE_H
#define SHOAL_WIRE_HERE_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct shoal_here_address {
  char text[INET6_ADDRSTRLEN];
  bool six; /* of IPv6 */
} shoal_here_address;

/* Those under which other machines may reach this one, of interfaces that are up: without loopback and what is
 * good on one wire only. Returns how many, at most `max`. */
size_t shoal_here_addresses(shoal_here_address *out, size_t max);

#endif
