/* manifest.c: reading a manifest from outside; see chunks.h. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/chunks.h"
#include "data/limits.h"

static const char *const kinds[] = {"idx", "cifar", "csv", "text", "chars", "toy"};
enum { KINDS = sizeof kinds / sizeof *kinds };

bool shoal_manifest_is_name(const char *name) {
  size_t length = strlen(name);
  if (length == 0 || length >= SHOAL_FILE_NAME_MAX || name[0] == '.') return false;
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)name[i];
    if (c < ' ' || c == 0x7f || c == '/' || c == '\\') return false;
  }
  return shoal_utf8_valid(name, length);
}

static const char *text_of(const cJSON *json, const char *key) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
  return cJSON_IsString(item) ? item->valuestring : NULL;
}

static bool read_hash(const char *text, char out[SHOAL_SHA256_HEX]) {
  if (text == NULL || strlen(text) != SHOAL_SHA256_HEX - 1 ||
      strspn(text, "0123456789abcdef") != SHOAL_SHA256_HEX - 1)
    return false;
  memcpy(out, text, SHOAL_SHA256_HEX);
  return true;
}

static bool read_bytes(const cJSON *json, uint64_t *out) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, "bytes");
  double value = cJSON_IsNumber(item) ? item->valuedouble : -1;
  if (!(value >= 0 && value <= (double)SHOAL_DATA_FILE_BYTES_MAX) || floor(value) != value) return false;
  *out = (uint64_t)value;
  return true;
}

/* The first field that is wrong, or NULL. */
static const char *read_file(shoal_manifest_file *file, const cJSON *json) {
  const char *name = text_of(json, "name");
  if (name == NULL || !shoal_manifest_is_name(name)) return "the name of a file";
  memcpy(file->name, name, strlen(name) + 1);
  if (!read_bytes(json, &file->bytes)) return "the size of a file";
  if (!read_hash(text_of(json, "sha256"), file->sha256)) return "the sha256 of a file";
  const cJSON *chunks = cJSON_GetObjectItemCaseSensitive(json, "chunks"), *chunk;
  uint64_t count = (file->bytes + SHOAL_CHUNK_BYTES - 1) / SHOAL_CHUNK_BYTES;
  if (!cJSON_IsArray(chunks) || (uint64_t)cJSON_GetArraySize(chunks) != count) return "the number of chunks";
  file->chunks = calloc(count > 0 ? count : 1, sizeof *file->chunks);
  if (file->chunks == NULL) return "the memory of this machine";
  cJSON_ArrayForEach(chunk, chunks) {
    if (!read_hash(cJSON_IsString(chunk) ? chunk->valuestring : NULL, file->chunks[file->chunks_count]))
      return "the name of a chunk";
    file->chunks_count++;
  }
  return NULL;
}

static bool is_there_twice(const shoal_manifest *m, const char *name) {
  int count = 0;
  for (uint32_t i = 0; i < m->files_count; i++) count += strcmp(m->files[i].name, name) == 0;
  return count > 1;
}

static const char *read_files(shoal_manifest *m, const cJSON *files) {
  int count = cJSON_IsArray(files) ? cJSON_GetArraySize(files) : -1;
  bool toy = strcmp(m->kind, "toy") == 0;
  if (count < 0 || count > SHOAL_MANIFEST_FILES_MAX || (count == 0) != toy) return "the number of files";
  const cJSON *file;
  cJSON_ArrayForEach(file, files) {
    shoal_manifest_file *to = &m->files[m->files_count++];
    const char *wrong = read_file(to, file);
    if (wrong) return wrong;
    if (is_there_twice(m, to->name)) return "a name that is there twice";
    m->bytes += to->bytes;
  }
  return NULL;
}

static const char *read_fields(shoal_manifest *m, const cJSON *json) {
  const char *name = text_of(json, "name"), *kind = text_of(json, "kind");
  const cJSON *chunk_bytes = cJSON_GetObjectItemCaseSensitive(json, "chunk_bytes");
  if (name == NULL || !shoal_manifest_is_name(name)) return "its name";
  memcpy(m->name, name, strlen(name) + 1);
  for (int i = 0; i < KINDS && kind != NULL; i++)
    if (strcmp(kind, kinds[i]) == 0) memcpy(m->kind, kind, strlen(kind) + 1);
  if (m->kind[0] == 0) return "its kind";
  if (!cJSON_IsNumber(chunk_bytes) || chunk_bytes->valuedouble != SHOAL_CHUNK_BYTES)
    return "the size of chunks";
  return read_files(m, cJSON_GetObjectItemCaseSensitive(json, "files"));
}

shoal_status shoal_manifest_parse(shoal_manifest *out, const char *text, size_t length, shoal_error *err) {
  memset(out, 0, sizeof *out);
  cJSON *json = shoal_utf8_valid(text, length) ? cJSON_ParseWithLength(text, length) : NULL;
  const char *wrong = cJSON_IsObject(json) ? read_fields(out, json) : "everything";
  cJSON_Delete(json);
  if (wrong == NULL) return SHOAL_OK;
  shoal_manifest_release(out);
  return shoal_fail(err, SHOAL_INVALID, "the server sent a manifest that cannot be used: %s is wrong", wrong);
}

void shoal_manifest_release(shoal_manifest *manifest) {
  for (uint32_t i = 0; i < manifest->files_count; i++) free(manifest->files[i].chunks);
  memset(manifest, 0, sizeof *manifest);
}
