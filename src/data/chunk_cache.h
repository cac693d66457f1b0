/* chunk_cache.h: the folder in which data sets that came in chunks are kept; see chunk_store.h.
 *
 * Ownership: take, then leave, in whatever state take left it. While a set is taken nobody removes it.
 * Threads: any; several processes may share a cache. */
#ifndef SHOAL_DATA_CHUNK_CACHE_H
#define SHOAL_DATA_CHUNK_CACHE_H

#include <signal.h>
#include <stdint.h>

#include "data/manifest.h"

typedef struct shoal_cached_set {
  char *folder;
  int lock; /* -1: none */
} shoal_cached_set;

typedef struct shoal_cache_place {
  const char *cache;
  uint64_t bytes_max;                /* of all sets together */
  const volatile sig_atomic_t *stop; /* or NULL */
} shoal_cache_place;

/* Makes the set's folder, and room for it: sets that nobody uses are removed, those first that were not
 * used for longest. SHOAL_LIMIT: that is not enough. */
shoal_status shoal_chunk_cache_take(shoal_cached_set *out, const shoal_cache_place *place,
                                    const shoal_manifest *manifest, shoal_error *err);
void shoal_chunk_cache_leave(shoal_cached_set *set);

#endif
