/* swarm_words.h: what the server and the members of a swarm tell each other as JSON.
 *
 *   HELLO   member to server   {"name":"anna","address":"192.168.1.5","port":40123,"fingerprint":hex or null}
 *   PEERS   server to member   {"you":7,"peers":[{"id":3,"name":"bert","key":"0123456789abcdef",
 *                              "addresses":["192.168.1.6:40100","81.2.3.4:40100"],
 *                              "fingerprint":hex or null}]}
 *   REPORT  member to server   {"to_peers":bytes,"from":[[0,bytes],[3,bytes]]}: what came from whom; 0 is
 *                              the server
 *
 * A key belongs to a pair: the server tells it to these two alone, so who says it is who the server says.
 *
 * All of it comes from outside and is checked field by field; names are made fit to be shown, and what is
 * dialled is an address in figures, never a host's name.
 *
 * Ownership: lists are parsed into storage of the caller's. Threads: none. */
#ifndef SHOAL_CLUSTER_SWARM_WORDS_H
#define SHOAL_CLUSTER_SWARM_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"

enum {
  SHOAL_SWARM_NEIGHBOURS_MAX = 40, /* of one member, however large the swarm */
  SHOAL_SWARM_NAME_MAX = 48,
  SHOAL_SWARM_HOST_MAX = 64,
  SHOAL_SWARM_ADDRESS_MAX = SHOAL_SWARM_HOST_MAX + 8,
  SHOAL_SWARM_ADDRESSES_MAX = 2,
};

typedef struct shoal_swarm_hello {
  char name[SHOAL_SWARM_NAME_MAX];
  char address[SHOAL_SWARM_HOST_MAX]; /* of its socket towards the server, without a port; "": not known */
  uint16_t port;                      /* where it listens; 0: nowhere */
  char fingerprint[SHOAL_SHA256_HEX]; /* of its certificate; "": it has none */
} shoal_swarm_hello;

typedef struct shoal_swarm_contact {
  uint64_t id, key;
  char name[SHOAL_SWARM_NAME_MAX];
  uint32_t addresses_count;
  char addresses[SHOAL_SWARM_ADDRESSES_MAX][SHOAL_SWARM_ADDRESS_MAX]; /* "host:port" */
  char fingerprint[SHOAL_SHA256_HEX];
} shoal_swarm_contact;

typedef struct shoal_swarm_contacts {
  uint64_t you;
  uint32_t count;
  shoal_swarm_contact list[SHOAL_SWARM_NEIGHBOURS_MAX];
} shoal_swarm_contacts;

/* Bytes that came from a member; id 0 is the server. */
typedef struct shoal_swarm_flow {
  uint64_t id, bytes;
} shoal_swarm_flow;

typedef struct shoal_swarm_report {
  uint64_t to_peers;
  uint32_t count;
  shoal_swarm_flow from[SHOAL_SWARM_NEIGHBOURS_MAX + 1];
} shoal_swarm_report;

void shoal_swarm_hello_write(const shoal_swarm_hello *hello, shoal_text *out);
shoal_status shoal_swarm_hello_read(shoal_swarm_hello *out, const char *text, size_t length,
                                    shoal_error *err);
void shoal_swarm_contacts_write(const shoal_swarm_contacts *peers, shoal_text *out);
shoal_status shoal_swarm_contacts_read(shoal_swarm_contacts *out, const char *text, size_t length,
                                       shoal_error *err);
void shoal_swarm_report_write(const shoal_swarm_report *report, shoal_text *out);
shoal_status shoal_swarm_report_read(shoal_swarm_report *out, const char *text, size_t length,
                                     shoal_error *err);

/* What HELLO has in `round`: the first 64 bits of the set's id (shoal_manifest_id). */
uint64_t shoal_swarm_set_of(const char *id);
/* "host:port", with brackets around an address of IPv6. */
void shoal_swarm_address(char out[SHOAL_SWARM_ADDRESS_MAX], const char *host, uint16_t port);

#endif
