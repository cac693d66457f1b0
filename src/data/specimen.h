/* specimen.h: a data set of random bytes in memory, to measure and to test how data travels.
 *
 * It is one file, "noise", whose chunks are known by their hashes like those of any set.
 *
 * Ownership: init, then release; the bytes are the caller's. Threads: any, once it is there. */
#ifndef SHOAL_DATA_SPECIMEN_H
#define SHOAL_DATA_SPECIMEN_H

#include "data/manifest.h"

typedef struct shoal_specimen {
  const uint8_t *bytes;
  shoal_manifest *manifest;
} shoal_specimen;

/* Fills the bytes, always alike, and lists their chunks. */
shoal_status shoal_specimen_init(shoal_specimen *specimen, uint8_t *bytes, uint64_t count, shoal_error *err);
void shoal_specimen_release(shoal_specimen *specimen);

const uint8_t *shoal_specimen_chunk(const shoal_specimen *specimen, uint32_t chunk, uint32_t *length);
/* Whether these bytes have the length and the hash of that chunk. */
bool shoal_specimen_is_chunk(const shoal_specimen *specimen, uint32_t chunk, const void *bytes,
                             size_t length);
/* Which chunk has this hash; false: none. */
bool shoal_specimen_find(const shoal_specimen *specimen, const char *sha256, uint32_t *chunk);
/* A manifest of its own, for the caller to release. */
shoal_status shoal_specimen_copy_manifest(const shoal_specimen *specimen, shoal_manifest *out,
                                          shoal_error *err);

#endif
