/* places.h: from a number to a place: which entry of an array has this peer, this lease?
 *
 * Room for a fixed count of pairs, reserved at the start. Keys are numbers above 0.
 *
 * Ownership: init, then release. Threads: one. */
#ifndef SHOAL_PROTO_PLACES_H
#define SHOAL_PROTO_PLACES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct shoal_places {
  uint64_t *keys; /* 0: free */
  uint32_t *values;
  uint32_t mask;
} shoal_places;

bool shoal_places_init(shoal_places *places, uint32_t pairs_max); /* false: no memory */
void shoal_places_release(shoal_places *places);
void shoal_places_clear(shoal_places *places);
void shoal_places_put(shoal_places *places, uint64_t key, uint32_t value); /* new, or over the old one */
bool shoal_places_get(const shoal_places *places, uint64_t key, uint32_t *value);
void shoal_places_remove(shoal_places *places, uint64_t key); /* nothing when it is not there */

#endif
