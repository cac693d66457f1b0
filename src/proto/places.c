/* places.c: see places.h. Open addressing with steps of one, at most half full. Removing moves up what
 * stands behind, so that there are no graves to step over. */
#include "proto/places.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

bool shoal_places_init(shoal_places *places, uint32_t pairs_max) {
  SHOAL_ASSERT(pairs_max < (uint32_t)1 << 30);
  uint32_t size = 16;
  while (size < 2 * pairs_max) size *= 2;
  *places = (shoal_places){.keys = calloc(size, sizeof *places->keys),
                           .values = calloc(size, sizeof *places->values),
                           .mask = size - 1};
  if (places->keys != NULL && places->values != NULL) return true;
  shoal_places_release(places);
  return false;
}

void shoal_places_release(shoal_places *places) {
  free(places->keys);
  free(places->values);
  *places = (shoal_places){0};
}

void shoal_places_clear(shoal_places *places) {
  memset(places->keys, 0, ((size_t)places->mask + 1) * sizeof *places->keys);
}

static uint32_t home_of(const shoal_places *places, uint64_t key) {
  return (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 32) & places->mask;
}

/* Where the key is, or the free place where it would be. */
static uint32_t place_of(const shoal_places *places, uint64_t key) {
  uint32_t place = home_of(places, key);
  while (places->keys[place] != 0 && places->keys[place] != key) place = (place + 1) & places->mask;
  return place;
}

void shoal_places_put(shoal_places *places, uint64_t key, uint32_t value) {
  SHOAL_ASSERT(key != 0);
  uint32_t place = place_of(places, key);
  places->keys[place] = key;
  places->values[place] = value;
}

bool shoal_places_get(const shoal_places *places, uint64_t key, uint32_t *value) {
  uint32_t place = place_of(places, key);
  if (key == 0 || places->keys[place] == 0) return false;
  *value = places->values[place];
  return true;
}

void shoal_places_remove(shoal_places *places, uint64_t key) {
  uint32_t hole = place_of(places, key);
  if (key == 0 || places->keys[hole] == 0) return;
  for (uint32_t at = (hole + 1) & places->mask; places->keys[at] != 0; at = (at + 1) & places->mask) {
    /* An entry may move up to the hole unless that stands before its home. */
    uint32_t home = home_of(places, places->keys[at]);
    if (((at - home) & places->mask) < ((at - hole) & places->mask)) continue;
    places->keys[hole] = places->keys[at];
    places->values[hole] = places->values[at];
    hole = at;
  }
  places->keys[hole] = 0;
}
