/* held.h: contributions that have come under a lease and wait for the chief's word.
 *
 * A guarded owner puts what it gets here, tells the chief, and uses it or forgets it as the chief says. The chief
 * answers for everything that it is told of, so what is here goes away; a peer that sends more than
 * SHOAL_HELD_EACH before there was an answer is not heard.
 *
 * Ownership: zero, then clear and release; entries own their floats. Threads: one. */
#ifndef SHOAL_PROTO_HELD_H
#define SHOAL_PROTO_HELD_H

#include "proto/message.h"

enum { SHOAL_HELD_EACH = 8 };

typedef struct shoal_held_entry {
  uint64_t lease; /* the chief's number; never 0 */
  uint64_t peer;
  uint64_t round, version; /* for which it is, and computed from which */
  uint32_t shard, count;
  uint64_t proof;
  double squares;  /* NAN: it cannot be used */
  shoal_blob *sum; /* its floats; NULL when it cannot be used */
} shoal_held_entry;

typedef struct shoal_held {
  shoal_held_entry *entries;
  uint32_t count, size;
} shoal_held;

void shoal_held_release(shoal_held *held);
void shoal_held_clear(shoal_held *held);

/* Whether there is room for another of this peer's, under this lease, which must be new. */
bool shoal_held_has_room(const shoal_held *held, uint64_t peer, uint64_t lease);
/* Takes over its floats. Out of memory ends the program. */
void shoal_held_add(shoal_held *held, const shoal_held_entry *entry);
/* Hands over what came under a lease; false: nothing did. */
bool shoal_held_take(shoal_held *held, uint64_t lease, shoal_held_entry *out);

#endif
