/* reads.h: chunks that are read for somebody by the thread of chores, so that a slow disk holds up nobody
 * else.
 *
 * Ownership: the source is taken over; what was read is `done`'s. Threads: the loop's. */
#ifndef SHOAL_SERVER_READS_H
#define SHOAL_SERVER_READS_H

#include "server/chores.h"
#include "server/manifest.h"

/* Told once, in the loop: the chunk, or NULL and why not. `number` is what was given to begin. */
typedef void (*shoal_read_done)(void *self, uint64_t number, shoal_blob *chunk, const shoal_error *err);

/* False: so many wait already that this one cannot, or there is no memory; the source stays the caller's,
 * and nobody is told. */
bool shoal_reads_begin(shoal_chores *chores, const shoal_chunk_source *source, void *self, uint64_t number,
                       shoal_read_done done);

#endif
