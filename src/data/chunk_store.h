/* chunk_store.h: the chunks of a data set that are on this machine, and those that are wanted.
 *
 * The files of the set lie in a cache at their full length, with holes where a chunk is missing, so that
 * they can be mapped before they are whole. A chunk is here when its bytes were compared with its hash,
 * since the store was opened: what an earlier run has left on the disk is compared at open. Whoever reads a
 * file sees to it that the chunks are here first.
 *
 *   CACHE/sets/ID/NAME    a file; ID is the set's (shoal_manifest_id)
 *   CACHE/sets/ID.lock    shared by those who use the set; its time is the last use
 *
 * Sets that were not used for longest are removed when the cache would get too large. Several processes may
 * have one set open: what they write is the same. A set that this machine has under its name (named.h),
 * with the same content, zipped or not, is used where it is, and is here as a whole; so is a set without
 * files.
 *
 * Who computes says what it wants and waits; who fetches asks what is wanted, brings it from wherever and
 * puts it in. A chunk that is wanted urgently goes before all that is only to be expected.
 *
 * Ownership: open, then close; the manifest is borrowed. Threads: any, for all but open and close. */
#ifndef SHOAL_DATA_CHUNK_STORE_H
#define SHOAL_DATA_CHUNK_STORE_H

#include <signal.h>

#include "data/manifest.h"

typedef struct shoal_chunk_store shoal_chunk_store;

typedef struct shoal_chunk_store_options {
  const char *cache;                 /* the folder; made where it is missing */
  uint64_t cache_bytes_max;          /* of all sets together */
  const char *data_dir;              /* of named sets; NULL is the default place */
  const volatile sig_atomic_t *stop; /* ends open early; or NULL */
  void *self;
  void (*wanted)(void *self); /* more is wanted, or more urgently: from the thread that wants it; or NULL */
} shoal_chunk_store_options;

shoal_status shoal_chunk_store_open(shoal_chunk_store **out, const shoal_manifest *manifest,
                                    const shoal_chunk_store_options *options, shoal_error *err);
void shoal_chunk_store_close(shoal_chunk_store *store); /* NULL is fine */

/* What --data would be: the folder, "text:FOLDER", a file, or the name of a set that is here. */
const char *shoal_chunk_store_data(const shoal_chunk_store *store);
const shoal_manifest *shoal_chunk_store_manifest(const shoal_chunk_store *store);
uint32_t shoal_chunk_store_count(const shoal_chunk_store *store);
uint32_t shoal_chunk_store_bytes_of(const shoal_chunk_store *store, uint32_t index);
const char *shoal_chunk_store_hash_of(const shoal_chunk_store *store, uint32_t index); /* hexadecimal */

bool shoal_chunk_store_is_whole(shoal_chunk_store *store);
bool shoal_chunk_store_has(shoal_chunk_store *store, uint32_t index);
/* Takes a chunk in. SHOAL_CORRUPT: it is not what its name says; nothing is written. One that is here
 * already is looked at and left. */
shoal_status shoal_chunk_store_put(shoal_chunk_store *store, uint32_t index, const void *bytes, size_t length,
                                   shoal_error *err);
/* The bytes of a chunk, for others: shoal_chunk_store_bytes_of of them. SHOAL_NOT_FOUND: it is not here.
 * SHOAL_CORRUPT: the disk has something else by now; it is not here any more. */
shoal_status shoal_chunk_store_read(shoal_chunk_store *store, uint32_t index, void *into, shoal_error *err);

/* Adds to what is wanted. What is here, or wanted as urgently already, is passed over. */
void shoal_chunk_store_want(shoal_chunk_store *store, uint32_t first, uint32_t count, bool urgent);
/* The next of what is wanted: urgent ones first, in the order of asking. Each is told once, and once more
 * when it becomes urgent. False: nothing is new. */
bool shoal_chunk_store_next_want(shoal_chunk_store *store, uint32_t *index, bool *urgent);
/* Until all of them are here. SHOAL_STOPPED when *stop is set (looked at ten times a second; NULL: never),
 * SHOAL_CORRUPT for one that was here and that the disk has lost, or what shoal_chunk_store_fail has said. */
shoal_status shoal_chunk_store_wait(shoal_chunk_store *store, uint32_t first, uint32_t count,
                                    const volatile sig_atomic_t *stop, shoal_error *err);
/* Who fetches gives up: those who wait, now and later, get this. SHOAL_OK takes it back. */
void shoal_chunk_store_fail(shoal_chunk_store *store, shoal_status status, const char *why);

typedef struct shoal_chunk_progress {
  uint64_t bytes_here, bytes_wanted, bytes_all; /* wanted: here or not */
  uint64_t bytes_put;                           /* that came since open */
  uint32_t chunks_here, chunks_put;
} shoal_chunk_progress;

shoal_chunk_progress shoal_chunk_store_progress(shoal_chunk_store *store);

/* The usual cache: $XDG_CACHE_HOME/shoal or ~/.cache/shoal; the caller frees it, NULL without a home. */
char *shoal_chunk_cache(void);

#endif
