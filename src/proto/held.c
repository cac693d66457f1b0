/* held.c: see held.h. There are about as many entries as workers: a walk over all is nothing beside what each of
 * them weighs. */
#include "proto/held.h"

#include <stdlib.h>

#include "base/assert.h"

void shoal_held_clear(shoal_held *held) {
  for (uint32_t i = 0; i < held->count; i++) shoal_blob_release(held->entries[i].sum);
  held->count = 0;
}

void shoal_held_release(shoal_held *held) {
  shoal_held_clear(held);
  free(held->entries);
  *held = (shoal_held){0};
}

bool shoal_held_has_room(const shoal_held *held, uint64_t peer, uint64_t lease) {
  uint32_t of_peer = 0;
  for (uint32_t i = 0; i < held->count; i++) {
    if (held->entries[i].lease == lease) return false;
    of_peer += held->entries[i].peer == peer;
  }
  return of_peer < SHOAL_HELD_EACH;
}

void shoal_held_add(shoal_held *held, const shoal_held_entry *entry) {
  if (held->count == held->size) {
    held->size = held->size == 0 ? 16 : 2 * held->size;
    held->entries = realloc(held->entries, held->size * sizeof *held->entries);
    SHOAL_ASSERT(held->entries != NULL);
  }
  held->entries[held->count++] = *entry;
}

bool shoal_held_take(shoal_held *held, uint64_t lease, shoal_held_entry *out) {
  uint32_t i = 0;
  while (i < held->count && held->entries[i].lease != lease) i++;
  if (i == held->count) return false;
  *out = held->entries[i];
  held->entries[i] = held->entries[--held->count];
  return true;
}
