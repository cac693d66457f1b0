/* chunked.h: a data set in memory, its manifest, and who brings its chunks, for tests. */
#ifndef SHOAL_TESTS_DATA_CHUNKED_H
#define SHOAL_TESTS_DATA_CHUNKED_H

#include <pthread.h>

#include "base/json.h"
#include "data/chunk_store.h"
#include "data/files.h"
#include "data/hash_tree.h"

enum { CHUNKED_FILES_MAX = 8 };

typedef struct chunked {
  struct {
    const char *name;
    uint8_t *bytes;
    shoal_cut cut;
  } files[CHUNKED_FILES_MAX];
  uint32_t files_count;
  /* Who brings them. */
  shoal_chunk_store *store;
  pthread_t thread;
  volatile sig_atomic_t stop;
  uint32_t brought;
} chunked;

/* The bytes are the set's from now on; NULL: some. */
static inline void add_file(chunked *c, const char *name, uint8_t *bytes, shoal_cut cut) {
  if (bytes == NULL) {
    bytes = malloc(cut.bytes + 1);
    for (size_t i = 0; i < cut.bytes; i++)
      bytes[i] = (uint8_t)(i * 31 + (i >> 9) + c->files_count + (size_t)cut.bytes);
  }
  c->files[c->files_count].name = name;
  c->files[c->files_count].bytes = bytes;
  c->files[c->files_count++].cut = cut;
}

static inline void add_plain(chunked *c, const char *name, size_t length) {
  add_file(c, name, NULL, (shoal_cut){.bytes = length});
}

static inline void release_chunked(chunked *c) {
  for (uint32_t i = 0; i < c->files_count; i++) free(c->files[i].bytes);
}

static inline void write_manifest(const chunked *c, const char *name, const char *kind, shoal_text *text) {
  uint8_t(*hashes)[SHOAL_SHA256_BYTES] = calloc(4096, sizeof *hashes), root[SHOAL_SHA256_BYTES];
  char hex[SHOAL_SHA256_HEX];
  uint64_t count = 0;
  shoal_json json;
  shoal_json_init(&json, text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "name", name);
  shoal_json_text(&json, "kind", kind);
  shoal_json_int(&json, "chunk_bytes", SHOAL_CHUNK_BYTES);
  shoal_json_open(&json, "files", '[');
  for (uint32_t f = 0; f < c->files_count; f++) {
    const shoal_cut *cut = &c->files[f].cut;
    shoal_sha256_hex(c->files[f].bytes, cut->bytes, hex);
    shoal_json_open(&json, NULL, '{');
    shoal_json_text(&json, "name", c->files[f].name);
    shoal_json_int(&json, "bytes", (int64_t)cut->bytes);
    if (cut->record > 0) shoal_json_int(&json, "head", (int64_t)cut->head);
    if (cut->record > 0) shoal_json_int(&json, "record", (int64_t)cut->record);
    shoal_json_text(&json, "sha256", hex);
    shoal_json_open(&json, "chunks", '[');
    for (uint64_t i = 0; i < shoal_cut_count(cut); i++) {
      uint32_t bytes;
      uint64_t offset = shoal_cut_chunk(cut, i, &bytes);
      shoal_sha256_of(c->files[f].bytes + offset, bytes, hashes[count]);
      shoal_hex(hashes[count++], SHOAL_SHA256_BYTES, hex);
      shoal_json_text(&json, NULL, hex);
    }
    shoal_json_close(&json, ']');
    shoal_json_close(&json, '}');
  }
  shoal_json_close(&json, ']');
  shoal_hash_tree_root((const uint8_t(*)[SHOAL_SHA256_BYTES])hashes, count, root);
  shoal_hex(root, sizeof root, hex);
  shoal_json_text(&json, "root", hex);
  shoal_json_close(&json, '}');
  free(hashes);
}

static inline shoal_manifest *manifest_of(const chunked *c, const char *name, const char *kind) {
  shoal_text text = {0};
  shoal_error err;
  shoal_manifest *m = malloc(sizeof *m);
  write_manifest(c, name, kind, &text);
  if (shoal_manifest_parse(m, text.bytes, text.length, &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_text_release(&text);
  return m;
}

static inline void forget_manifest(shoal_manifest *m) {
  shoal_manifest_release(m);
  free(m);
}

/* The bytes of a chunk, by its number in the set. */
static inline const uint8_t *chunk_at(const chunked *c, uint32_t index, uint32_t *bytes) {
  uint32_t file = 0;
  while (index >= shoal_cut_count(&c->files[file].cut))
    index -= (uint32_t)shoal_cut_count(&c->files[file++].cut);
  uint64_t offset = shoal_cut_chunk(&c->files[file].cut, index, bytes);
  return c->files[file].bytes + offset;
}

static inline void put_chunk(const chunked *c, shoal_chunk_store *store, uint32_t index) {
  uint32_t length;
  const uint8_t *bytes = chunk_at(c, index, &length);
  shoal_error err;
  if (shoal_chunk_store_put(store, index, bytes, length, &err) != SHOAL_OK) fail_msg("%s", err.text);
}

/* Brings what is wanted, in a thread, until it is stopped. */
static inline void *bring(void *self) {
  chunked *c = self;
  while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED)) {
    uint32_t index;
    bool urgent;
    if (shoal_chunk_store_next_want(c->store, &index, &urgent)) {
      put_chunk(c, c->store, index);
      __atomic_add_fetch(&c->brought, 1, __ATOMIC_RELAXED);
    } else {
      usleep(100);
    }
  }
  return NULL;
}

static inline void start_bringing(chunked *c, shoal_chunk_store *store) {
  c->store = store;
  c->stop = 0;
  assert_int_equal(pthread_create(&c->thread, NULL, bring, c), 0);
}

static inline void stop_bringing(chunked *c) {
  __atomic_store_n(&c->stop, 1, __ATOMIC_RELAXED);
  pthread_join(c->thread, NULL);
}

#endif
