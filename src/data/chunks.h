/* chunks.h: data sets that come in chunks named by their SHA-256, kept in a cache on this machine.
 *
 * A manifest says which files a set has and which chunks they are made of. What is missing is asked for chunk
 * by chunk; every chunk and every file is compared with its hash, each time a set is opened, so that nothing
 * is used that is not what the manifest says. An interrupted fetch goes on where it was. Sets that were
 * not used for longest are removed when the cache would get too large.
 *
 *   CACHE/sets/ID/NAME          a file that is whole; ID is a hash of the set's files
 *   CACHE/sets/ID/.NAME.part    one on its way
 *   CACHE/sets/ID.lock          locked by who fetches the set, shared by those who use it; its time is the
 *                               last use
 *
 * A set that this machine has under its name (named.h), with the same files, is used where it is.
 *
 * A manifest comes from outside: names in it are checked before they become names of files.
 *
 * Ownership: a manifest is parsed, then released; a set is opened, then closed, and not removed by anybody
 * before. Threads: one each; several processes may share a cache. */
#ifndef SHOAL_DATA_CHUNKS_H
#define SHOAL_DATA_CHUNKS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"

enum {
  SHOAL_CHUNK_BYTES = 1 << 20,
  SHOAL_MANIFEST_FILES_MAX = 64,
  SHOAL_FILE_NAME_MAX = 128, /* with the final zero */
};

typedef struct shoal_manifest_file {
  char name[SHOAL_FILE_NAME_MAX];
  uint64_t bytes;
  char sha256[SHOAL_SHA256_HEX];
  uint64_t chunks_count;
  char (*chunks)[SHOAL_SHA256_HEX];
} shoal_manifest_file;

typedef struct shoal_manifest {
  char name[SHOAL_FILE_NAME_MAX];
  char kind[8]; /* "idx", "cifar", "csv", "text", "chars" or "toy" */
  uint32_t files_count;
  shoal_manifest_file files[SHOAL_MANIFEST_FILES_MAX];
  uint64_t bytes; /* of all files */
} shoal_manifest;

/* A manifest is large: the caller has it on the heap. It is filled on success only. */
shoal_status shoal_manifest_parse(shoal_manifest *out, const char *json, size_t length, shoal_error *err);
void shoal_manifest_release(shoal_manifest *manifest);
/* Whether a file of a set may be called that: no path, nothing hidden, no control characters. */
bool shoal_manifest_is_name(const char *name);

/* Where chunks come from. */
typedef struct shoal_chunk_source {
  void *self;
  /* Exactly so many bytes into `into`. They are checked by who asks. */
  shoal_status (*get)(void *self, const char *sha256, uint8_t *into, size_t bytes, shoal_error *err);
  void (*progress)(void *self, uint64_t done, uint64_t all); /* bytes that are here; or NULL */
} shoal_chunk_source;

typedef struct shoal_chunk_set {
  shoal_text data; /* what --data would be */
  int lock;        /* -1: none */
} shoal_chunk_set;

typedef struct shoal_chunk_options {
  const char *cache;                 /* the folder; made where it is missing */
  uint64_t cache_bytes_max;          /* of all sets together */
  const char *data_dir;              /* of named sets; NULL is the default place */
  const volatile sig_atomic_t *stop; /* or NULL */
} shoal_chunk_options;

shoal_status shoal_chunk_set_open(shoal_chunk_set *out, const shoal_manifest *manifest,
                                  const shoal_chunk_options *options, const shoal_chunk_source *source,
                                  shoal_error *err);
void shoal_chunk_set_close(shoal_chunk_set *set);

/* The usual cache: $XDG_CACHE_HOME/shoal or ~/.cache/shoal; the caller frees it, NULL without a home. */
char *shoal_chunk_cache(void);

#endif
