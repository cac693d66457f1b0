/* fetch_wire.h: one connection of a shoal_fetch: bytes over TCP or TLS, with deadlines. For fetch.c alone.
 *
 * Nothing is waited for longer than the caller says, and never longer than a moment once `stop` is set; but
 * for the name of a host, which the system looks up in its own time.
 *
 * Ownership: plain storage of the caller's; open, then close. Threads: one. */
#ifndef SHOAL_WIRE_FETCH_WIRE_H
#define SHOAL_WIRE_FETCH_WIRE_H

#include <signal.h>

#include "wire/link.h"
#include "wire/tls.h"

typedef struct fetch_wire {
  const shoal_link *link;
  const volatile sig_atomic_t *stop; /* or NULL */
  int fd;                            /* -1: closed */
  shoal_tls_pipe pipe;
  SSL_CTX *context;
  SSL *ssl;     /* NULL: plain */
  bool cut_off; /* it ended without TLS's word that it is over */
  bool no_tls;  /* it was not opened: somebody is there, with whom TLS could not be agreed on */
} fetch_wire;

/* Connects and, with TLS, sees that the server is the right one, before anything is said to it. */
shoal_status fetch_wire_open(fetch_wire *wire, double seconds, shoal_error *err);
bool fetch_wire_stops(const fetch_wire *wire); /* whether `stop` is set */
void fetch_wire_close(fetch_wire *wire);       /* one that is closed, too */

/* At least a byte, or 0 at the end. `deadline` is by base/clock.h. */
shoal_status fetch_wire_read(fetch_wire *wire, void *to, size_t room, double deadline, size_t *got,
                             shoal_error *err);
/* All of it; silence_s is how long nothing of it may be taken. */
shoal_status fetch_wire_write(fetch_wire *wire, const void *bytes, size_t length, double silence_s,
                              shoal_error *err);
/* Whether something can be read, or the other end is gone: in the middle of a long write, an answer. */
bool fetch_wire_has_input(const fetch_wire *wire);

#endif
