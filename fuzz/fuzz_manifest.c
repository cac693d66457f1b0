/* fuzz_manifest.c: any bytes as the manifest that a server sends to a volunteer. What is taken has names that
 * stay in their folder, and chunks that cover every file once. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "data/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check_file(const shoal_manifest_file *file) {
  SHOAL_ASSERT(shoal_manifest_is_name(file->name) && strchr(file->name, '/') == NULL && file->name[0] != '.');
  SHOAL_ASSERT(file->chunks_count == shoal_cut_count(&file->cut));
  uint64_t end = 0;
  for (uint64_t i = 0; i < file->chunks_count; i++) {
    uint32_t chunk_bytes;
    SHOAL_ASSERT(shoal_cut_chunk(&file->cut, i, &chunk_bytes) == end);
    SHOAL_ASSERT(chunk_bytes > 0 && chunk_bytes <= SHOAL_CHUNK_BYTES);
    SHOAL_ASSERT(shoal_cut_find(&file->cut, end) == i);
    SHOAL_ASSERT(strlen(file->chunks[i]) + 1 == sizeof file->chunks[i]);
    end += chunk_bytes;
  }
  SHOAL_ASSERT(end == file->cut.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  shoal_manifest *manifest = malloc(sizeof *manifest);
  char *text = malloc(length + 1); /* no zero byte behind them, as in an answer */
  SHOAL_ASSERT(manifest != NULL && text != NULL);
  memcpy(text, bytes, length);
  text[length] = '}';
  shoal_error err = {0};
  if (shoal_manifest_parse(manifest, text, length, &err) == SHOAL_OK) {
    uint64_t all = 0;
    SHOAL_ASSERT(manifest->files_count <= SHOAL_MANIFEST_FILES_MAX);
    for (uint32_t i = 0; i < manifest->files_count; i++) {
      SHOAL_ASSERT(manifest->files[i].first_chunk == all);
      check_file(&manifest->files[i]);
      all += manifest->files[i].chunks_count;
    }
    SHOAL_ASSERT(all == manifest->chunks_count);
    shoal_manifest_release(manifest);
  } else {
    SHOAL_ASSERT(err.text[0] != 0);
  }
  free(text);
  free(manifest);
  return 0;
}
