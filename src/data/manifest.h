/* manifest.h: which files a data set has, and which chunks they are made of.
 *
 * A chunk is named by its SHA-256 and has at most SHOAL_CHUNK_BYTES. Chunks are numbered through all files,
 * in the order of the files. A file of records of equal length, images say, is cut between records, so that
 * a sample is in one chunk: what stands before the first record is a chunk of its own, then come chunks of
 * as many whole records as there is room for. Other files are cut at every SHOAL_CHUNK_BYTES.
 *
 *   file      "bytes", and where there are records "head" and "record", their length
 *   chunk 0   the head, where it has one
 *   others    SHOAL_CHUNK_BYTES / record * record bytes each, the last one what is left
 *
 * "root" is the root of the tree of hashes (hash_tree.h) over all chunks: with it a chunk can be checked
 * alone.
 *
 * A manifest comes from outside: everything is checked, and names before they become names of files.
 *
 * Ownership: parsed, then released. Threads: any, once parsed. */
#ifndef SHOAL_DATA_MANIFEST_H
#define SHOAL_DATA_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"

enum {
  SHOAL_CHUNK_BYTES = 1 << 20,
  SHOAL_MANIFEST_FILES_MAX = 64,
  SHOAL_FILE_NAME_MAX = 128, /* with the final zero */
};

/* How a file is cut: `record` 0 for one without records. */
typedef struct shoal_cut {
  uint64_t bytes, head, record;
} shoal_cut;

uint64_t shoal_cut_count(const shoal_cut *cut);
/* Where chunk `index` < count of the file begins, and how long it is. */
uint64_t shoal_cut_chunk(const shoal_cut *cut, uint64_t index, uint32_t *bytes);
/* The chunk that byte `offset` < bytes is in. */
uint64_t shoal_cut_find(const shoal_cut *cut, uint64_t offset);

typedef struct shoal_manifest_file {
  char name[SHOAL_FILE_NAME_MAX];
  shoal_cut cut;
  char sha256[SHOAL_SHA256_HEX];
  uint64_t first_chunk; /* its number in the set */
  uint64_t chunks_count;
  char (*chunks)[SHOAL_SHA256_HEX];
} shoal_manifest_file;

typedef struct shoal_manifest {
  char name[SHOAL_FILE_NAME_MAX];
  char kind[8]; /* "idx", "cifar", "csv", "table", "text", "chars" or "toy" */
  char root[SHOAL_SHA256_HEX];
  uint32_t files_count;
  shoal_manifest_file files[SHOAL_MANIFEST_FILES_MAX];
  uint64_t bytes;        /* of all files */
  uint64_t chunks_count; /* of all files; below UINT32_MAX */
} shoal_manifest;

/* A manifest is large: the caller has it on the heap. It is filled on success only. */
shoal_status shoal_manifest_parse(shoal_manifest *out, const char *json, size_t length, shoal_error *err);
void shoal_manifest_release(shoal_manifest *manifest);
/* Whether a file of a set may be called that: no path, nothing hidden, no control characters. */
bool shoal_manifest_is_name(const char *name);
/* Of everything that makes a set what it is: the root, the kind, names, sizes and cuts of files. Not its
 * name. */
void shoal_manifest_id(const shoal_manifest *manifest, char out[SHOAL_SHA256_HEX]);

#endif
