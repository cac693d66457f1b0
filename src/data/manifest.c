/* manifest.c: see manifest.h. */
#include "data/manifest.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_at.h"
#include "base/text.h"
#include "data/hash_tree.h"
#include "data/limits.h"

static const char *const kinds[] = {"idx", "cifar", "csv", "table", "text", "chars", "toy"};
enum { KINDS = sizeof kinds / sizeof *kinds };
static const char no_memory[] = "memory"; /* what a field's reader says is wrong when it has none */

/* ---- how files are cut ---- */

static uint64_t step_of(const shoal_cut *cut) {
  bool has_records = cut->record > 0 && cut->record <= SHOAL_CHUNK_BYTES;
  return has_records ? SHOAL_CHUNK_BYTES / cut->record * cut->record : SHOAL_CHUNK_BYTES;
}

uint64_t shoal_cut_count(const shoal_cut *cut) {
  uint64_t step = step_of(cut), left = cut->bytes > cut->head ? cut->bytes - cut->head : 0;
  return (cut->head > 0 && cut->bytes > 0) + (left + step - 1) / step;
}

uint64_t shoal_cut_chunk(const shoal_cut *cut, uint64_t index, uint32_t *bytes) {
  uint64_t step = step_of(cut), begin = 0, end = cut->head;
  if (cut->head == 0 || index > 0) {
    begin = cut->head + (index - (cut->head > 0)) * step;
    end = begin + step;
  }
  *bytes = (uint32_t)((end < cut->bytes ? end : cut->bytes) - begin);
  return begin;
}

uint64_t shoal_cut_find(const shoal_cut *cut, uint64_t offset) {
  if (offset < cut->head) return 0;
  return (cut->head > 0) + (offset - cut->head) / step_of(cut);
}

/* ---- reading ---- */

bool shoal_manifest_is_name(const char *name) {
  size_t length = strlen(name);
  if (length == 0 || length >= SHOAL_FILE_NAME_MAX || name[0] == '.') return false;
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)name[i];
    if (c < ' ' || c == 0x7f || c == '/' || c == '\\') return false;
  }
  return shoal_utf8_valid(name, length);
}

static bool read_hash(const char *text, char out[SHOAL_SHA256_HEX]) {
  if (text == NULL || strlen(text) != SHOAL_SHA256_HEX - 1 ||
      strspn(text, "0123456789abcdef") != SHOAL_SHA256_HEX - 1)
    return false;
  memcpy(out, text, SHOAL_SHA256_HEX);
  return true;
}

/* Head and record are there only where there are records. */
static bool read_cut(const cJSON *json, shoal_cut *out) {
  const cJSON *head = cJSON_GetObjectItemCaseSensitive(json, "head");
  const cJSON *record = cJSON_GetObjectItemCaseSensitive(json, "record");
  return shoal_read_whole_at(json, "bytes", SHOAL_DATA_FILE_BYTES_MAX, &out->bytes) &&
         (head == NULL || shoal_read_whole(head, SHOAL_CHUNK_BYTES, &out->head)) &&
         (record == NULL || shoal_read_whole(record, SHOAL_DATA_FILE_BYTES_MAX, &out->record));
}

/* The first field that is wrong, or NULL. */
static const char *read_file(shoal_manifest_file *file, const cJSON *json) {
  const char *name = shoal_find_text(json, "name");
  if (name == NULL || !shoal_manifest_is_name(name)) return "the name of a file";
  memcpy(file->name, name, strlen(name) + 1);
  if (!read_cut(json, &file->cut)) return "the size of a file";
  if (!read_hash(shoal_find_text(json, "sha256"), file->sha256)) return "the sha256 of a file";
  const cJSON *chunks = cJSON_GetObjectItemCaseSensitive(json, "chunks"), *chunk;
  uint64_t count = shoal_cut_count(&file->cut);
  if (!cJSON_IsArray(chunks) || (uint64_t)cJSON_GetArraySize(chunks) != count) return "the number of chunks";
  file->chunks = calloc(count > 0 ? count : 1, sizeof *file->chunks);
  if (file->chunks == NULL) return no_memory;
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
    to->first_chunk = m->chunks_count;
    m->bytes += to->cut.bytes;
    m->chunks_count += to->chunks_count;
  }
  return NULL;
}

static uint8_t digit(char c) { return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10); }

/* The root that its chunks have; false without memory. */
static bool find_root(const shoal_manifest *m, char out[SHOAL_SHA256_HEX]) {
  uint8_t(*leaves)[SHOAL_SHA256_BYTES] = malloc((m->chunks_count + 1) * sizeof *leaves);
  if (leaves == NULL) return false;
  for (uint32_t f = 0; f < m->files_count; f++)
    for (uint64_t c = 0; c < m->files[f].chunks_count; c++)
      for (int i = 0; i < SHOAL_SHA256_BYTES; i++) {
        const char *hex = m->files[f].chunks[c] + 2 * (size_t)i;
        leaves[m->files[f].first_chunk + c][i] = (uint8_t)(digit(hex[0]) << 4 | digit(hex[1]));
      }
  uint8_t root[SHOAL_SHA256_BYTES];
  shoal_hash_tree_root((const uint8_t(*)[SHOAL_SHA256_BYTES])leaves, m->chunks_count, root);
  shoal_hex(root, sizeof root, out);
  free(leaves);
  return true;
}

static const char *read_fields(shoal_manifest *m, const cJSON *json) {
  const char *name = shoal_find_text(json, "name"), *kind = shoal_find_text(json, "kind");
  const cJSON *chunk_bytes = cJSON_GetObjectItemCaseSensitive(json, "chunk_bytes");
  if (name == NULL || !shoal_manifest_is_name(name)) return "its name";
  memcpy(m->name, name, strlen(name) + 1);
  for (int i = 0; i < KINDS && kind != NULL; i++)
    if (strcmp(kind, kinds[i]) == 0) memcpy(m->kind, kind, strlen(kind) + 1);
  if (m->kind[0] == 0) return "its kind";
  if (!cJSON_IsNumber(chunk_bytes) || chunk_bytes->valuedouble != SHOAL_CHUNK_BYTES)
    return "the size of chunks";
  const char *wrong = read_files(m, cJSON_GetObjectItemCaseSensitive(json, "files"));
  if (wrong != NULL) return wrong;
  char root[SHOAL_SHA256_HEX];
  if (!read_hash(shoal_find_text(json, "root"), m->root)) return "the root of its chunks";
  if (!find_root(m, root)) return no_memory;
  return strcmp(root, m->root) == 0 ? NULL : "the root, which is not that of its chunks,";
}

shoal_status shoal_manifest_parse(shoal_manifest *out, const char *text, size_t length, shoal_error *err) {
  memset(out, 0, sizeof *out);
  cJSON *json = shoal_utf8_valid(text, length) ? cJSON_ParseWithLength(text, length) : NULL;
  const char *wrong = cJSON_IsObject(json) ? read_fields(out, json) : "everything";
  cJSON_Delete(json);
  if (wrong == NULL) return SHOAL_OK;
  shoal_manifest_release(out);
  if (wrong == no_memory) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a manifest");
  return shoal_fail(err, SHOAL_INVALID, "the server sent a manifest that cannot be used: %s is wrong", wrong);
}

void shoal_manifest_release(shoal_manifest *manifest) {
  for (uint32_t i = 0; i < manifest->files_count; i++) free(manifest->files[i].chunks);
  memset(manifest, 0, sizeof *manifest);
}

void shoal_manifest_id(const shoal_manifest *m, char out[SHOAL_SHA256_HEX]) {
  enum { ID_LINE_MAX = SHOAL_FILE_NAME_MAX + 64 }; /* a name and three numbers, or the kind and the root */
  char text[(SHOAL_MANIFEST_FILES_MAX + 1) * ID_LINE_MAX];
  size_t length = (size_t)snprintf(text, ID_LINE_MAX, "%s\n%s\n", m->kind, m->root);
  for (uint32_t i = 0; i < m->files_count; i++) {
    const shoal_cut *cut = &m->files[i].cut;
    length += (size_t)snprintf(text + length, ID_LINE_MAX, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n",
                               cut->bytes, cut->head, cut->record, m->files[i].name);
  }
  shoal_sha256_hex(text, length, out);
}
