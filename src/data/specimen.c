/* specimen.c: see specimen.h. */
#include "data/specimen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "data/hash_tree.h"

static void fill(uint8_t *to, uint64_t count) {
  const shoal_key key = shoal_key_make(1, SHOAL_FOR_TOY, 0, 0);
  for (uint64_t i = 0; i < count; i += 16) {
    uint32_t block[4];
    shoal_random_block(key, 0, i / 16, block);
    memcpy(to + i, block, count - i < 16 ? count - i : 16);
  }
}

static const shoal_manifest_file *file_of(const shoal_specimen *specimen) {
  return &specimen->manifest->files[0];
}

const uint8_t *shoal_specimen_chunk(const shoal_specimen *specimen, uint32_t chunk, uint32_t *length) {
  return specimen->bytes + shoal_cut_chunk(&file_of(specimen)->cut, chunk, length);
}

static void hash_chunks(shoal_specimen *specimen, uint8_t (*leaves)[SHOAL_SHA256_BYTES]) {
  shoal_manifest *m = specimen->manifest;
  uint32_t count = (uint32_t)m->chunks_count, length;
  uint8_t root[SHOAL_SHA256_BYTES];
  for (uint32_t i = 0; i < count; i++) {
    const uint8_t *chunk = shoal_specimen_chunk(specimen, i, &length);
    shoal_sha256_of(chunk, length, leaves[i]);
    shoal_hex(leaves[i], SHOAL_SHA256_BYTES, m->files[0].chunks[i]);
  }
  shoal_hash_tree_root((const uint8_t(*)[SHOAL_SHA256_BYTES])leaves, count, root);
  shoal_hex(root, sizeof root, m->root);
}

shoal_status shoal_specimen_init(shoal_specimen *specimen, uint8_t *bytes, uint64_t count, shoal_error *err) {
  shoal_manifest *m = calloc(1, sizeof *m);
  *specimen = (shoal_specimen){bytes, m};
  if (m == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_manifest_file *file = &m->files[0];
  snprintf(m->name, sizeof m->name, "noise");
  snprintf(m->kind, sizeof m->kind, "text");
  snprintf(file->name, sizeof file->name, "noise");
  file->cut.bytes = m->bytes = count;
  m->files_count = 1;
  file->chunks_count = m->chunks_count = shoal_cut_count(&file->cut);
  file->chunks = calloc(file->chunks_count, sizeof *file->chunks);
  uint8_t(*leaves)[SHOAL_SHA256_BYTES] = calloc(file->chunks_count, sizeof *leaves);
  bool ok = file->chunks != NULL && leaves != NULL;
  if (ok) {
    fill(bytes, count);
    hash_chunks(specimen, leaves);
  } else {
    shoal_specimen_release(specimen);
  }
  free(leaves);
  return ok ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

void shoal_specimen_release(shoal_specimen *specimen) {
  if (specimen->manifest != NULL) shoal_manifest_release(specimen->manifest);
  free(specimen->manifest);
  *specimen = (shoal_specimen){0};
}

bool shoal_specimen_is_chunk(const shoal_specimen *specimen, uint32_t chunk, const void *bytes,
                             size_t length) {
  char hex[SHOAL_SHA256_HEX];
  uint32_t wanted;
  shoal_specimen_chunk(specimen, chunk, &wanted);
  if (length != wanted) return false;
  shoal_sha256_hex(bytes, length, hex);
  return strcmp(hex, file_of(specimen)->chunks[chunk]) == 0;
}

bool shoal_specimen_find(const shoal_specimen *specimen, const char *sha256, uint32_t *chunk) {
  const shoal_manifest_file *file = file_of(specimen);
  for (uint32_t i = 0; i < file->chunks_count; i++) {
    if (strcmp(file->chunks[i], sha256) != 0) continue;
    *chunk = i;
    return true;
  }
  return false;
}

shoal_status shoal_specimen_copy_manifest(const shoal_specimen *specimen, shoal_manifest *out,
                                          shoal_error *err) {
  const shoal_manifest_file *file = file_of(specimen);
  size_t bytes = file->chunks_count * sizeof *file->chunks;
  *out = *specimen->manifest;
  out->files[0].chunks = malloc(bytes);
  if (out->files[0].chunks == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  memcpy(out->files[0].chunks, file->chunks, bytes);
  return SHOAL_OK;
}
