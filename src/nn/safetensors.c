/* safetensors.c: reads the format strictly and writes it in one pass.
 *
 * The header is JSON from anywhere, so it is looked over before cJSON sees it: a header
 * never nests deeper than three brackets, and the number of its values bounds the memory
 * that cJSON takes. What is left to check is then plain: fields, shapes, offsets.
 *
 * A file is mapped, not read: a checkpoint of many gigabytes costs its header only, and
 * pages come in as the tensors are copied. The writers of this project replace a file by
 * renaming, so a mapped one does not change underneath. */
#include "nn/safetensors.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_at.h"
#include "base/magic.h"

enum {
  HEADER_START = 8,
  HEADER_DEPTH_MAX = 3,        /* the header, a tensor, its shape */
  HEADER_VALUES_MAX = 1 << 20, /* about 80 MB of cJSON's memory */
  DATA_ALIGNMENT = 64,
};
static const char METADATA[] = "__metadata__";

static const struct {
  const char *name;
  uint32_t bytes;
} dtypes[] = {
    [SHOAL_F32] = {"F32", 4}, [SHOAL_I64] = {"I64", 8}, [SHOAL_I32] = {"I32", 4},
    [SHOAL_U8] = {"U8", 1},   [SHOAL_F64] = {"F64", 8},
};
enum { DTYPES_COUNT = sizeof dtypes / sizeof dtypes[0] };

/* The values of a shape times the bytes of one. */
static bool tensor_bytes(const shoal_tensor *tensor, uint64_t *out) {
  *out = dtypes[tensor->dtype].bytes;
  for (uint32_t i = 0; i < tensor->dims_count; i++) {
    if (!shoal_mul_u64(*out, tensor->dims[i], out)) return false;
  }
  return true;
}

shoal_tensor shoal_tensor_of(const char *name, shoal_dtype dtype, uint32_t dims_count, const uint32_t *dims,
                             const void *data) {
  shoal_tensor tensor = {.name = name, .dtype = dtype, .dims_count = dims_count, .data = data};
  uint64_t bytes;
  for (uint32_t d = 0; d < dims_count; d++) tensor.dims[d] = dims[d];
  SHOAL_ASSERT(tensor_bytes(&tensor, &bytes));
  tensor.bytes = (size_t)bytes;
  return tensor;
}

shoal_tensor shoal_tensor_vector(const char *name, shoal_dtype dtype, uint64_t count, const void *data) {
  shoal_tensor tensor = shoal_tensor_of(name, dtype, 0, NULL, data);
  tensor.dims[tensor.dims_count++] = count;
  tensor.bytes *= count;
  return tensor;
}

bool shoal_tensor_fits(const shoal_tensor *found, const shoal_tensor *wanted) {
  return found && found->dtype == wanted->dtype && found->dims_count == wanted->dims_count &&
         memcmp(found->dims, wanted->dims, wanted->dims_count * sizeof wanted->dims[0]) == 0;
}

bool shoal_tensor_sha256(const shoal_tensor *tensors, size_t count, char out[SHOAL_SHA256_HEX]) {
  shoal_sha256 *hash = shoal_sha256_create();
  if (!hash) return false;
  for (size_t i = 0; i < count; i++) shoal_sha256_add(hash, tensors[i].data, tensors[i].bytes);
  shoal_sha256_finish_hex(hash, out);
  shoal_sha256_destroy(hash);
  return true;
}

/* ---- writing ------------------------------------------------------------------------ */

static void write_header(shoal_text *header, const shoal_tensor *tensors, size_t tensors_count,
                         const shoal_meta *meta, size_t meta_count) {
  shoal_json json;
  shoal_json_init(&json, header);
  shoal_json_open(&json, NULL, '{');
  if (meta_count > 0) {
    shoal_json_open(&json, METADATA, '{');
    for (size_t i = 0; i < meta_count; i++) shoal_json_text(&json, meta[i].key, meta[i].value);
    shoal_json_close(&json, '}');
  }
  uint64_t offset = 0;
  for (size_t i = 0; i < tensors_count; i++) {
    const shoal_tensor *tensor = &tensors[i];
    uint64_t bytes;
    SHOAL_ASSERT(tensor->dims_count <= SHOAL_TENSOR_DIMS_MAX);
    SHOAL_ASSERT(tensor_bytes(tensor, &bytes) && bytes == tensor->bytes);
    shoal_json_open(&json, tensor->name, '{');
    shoal_json_text(&json, "dtype", dtypes[tensor->dtype].name);
    shoal_json_open(&json, "shape", '[');
    for (uint32_t d = 0; d < tensor->dims_count; d++) shoal_json_int(&json, NULL, (int64_t)tensor->dims[d]);
    shoal_json_close(&json, ']');
    shoal_json_open(&json, "data_offsets", '[');
    shoal_json_int(&json, NULL, (int64_t)offset);
    offset += bytes;
    shoal_json_int(&json, NULL, (int64_t)offset);
    shoal_json_close(&json, ']');
    shoal_json_close(&json, '}');
  }
  shoal_json_close(&json, '}');
  while ((HEADER_START + header->length) % DATA_ALIGNMENT != 0 && !header->failed)
    shoal_text_add(header, " ", 1);
}

shoal_status shoal_safetensors_save(const char *path, const shoal_tensor *tensors, size_t tensors_count,
                                    const shoal_meta *meta, size_t meta_count, shoal_error *err) {
  shoal_text header = {0};
  write_header(&header, tensors, tensors_count, meta, meta_count);
  shoal_writer *writer;
  shoal_status status;
  if (header.failed)
    status = shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", path);
  else if (header.length > SHOAL_SAFETENSORS_HEADER_MAX)
    status = shoal_fail(err, SHOAL_LIMIT, "%s: names, shapes and metadata take %zu bytes; %d is the most",
                        path, header.length, SHOAL_SAFETENSORS_HEADER_MAX);
  else
    status = shoal_writer_create(&writer, path, err);
  if (status == SHOAL_OK) {
    uint8_t length[HEADER_START];
    for (int i = 0; i < HEADER_START; i++) length[i] = (uint8_t)((uint64_t)header.length >> (8 * i));
    shoal_writer_add(writer, length, sizeof length);
    shoal_writer_add(writer, header.bytes, header.length);
    for (size_t i = 0; i < tensors_count; i++) shoal_writer_add(writer, tensors[i].data, tensors[i].bytes);
    status = shoal_writer_commit(writer, err);
  }
  shoal_text_release(&header);
  return status;
}

/* ---- reading ------------------------------------------------------------------------ */

/* A file being read, and what it keeps afterwards: names and metadata live in `header`. */
typedef struct reader {
  shoal_safetensors file; /* first, so that a pointer to it is one to the reader */
  void *mapped;           /* the whole file, or NULL where it is in `copied` */
  size_t mapped_bytes;
  cJSON *header;
  const shoal_tensor **by_name;
  const uint8_t *data; /* behind the header */
  uint64_t data_bytes;
  shoal_error *err; /* while reading */
  uint8_t copied[];
} reader;

#define CORRUPT(r, ...) shoal_fail((r)->err, SHOAL_CORRUPT, __VA_ARGS__)

/* Whether the header is safe to hand to cJSON: few values, flat, and no zero in a string,
 * which C would take for its end. Whether it is JSON at all is for cJSON to say. */
static shoal_status look_over(reader *r, const char *text, size_t length) {
  size_t values = 0;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c == 0 || (in_string && c < 0x20))
      return CORRUPT(r, "the header holds byte %d at offset %zu, which JSON does not allow", c,
                     HEADER_START + i);
    if (in_string && c == '\\') {
      if (length - i > 6 && memcmp(text + i, "\\u0000", 6) == 0)
        return CORRUPT(r, "a text in the header holds a zero character");
      i++;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '{' || c == '[')) {
      if (++depth > HEADER_DEPTH_MAX)
        return CORRUPT(r, "the header nests too deep at offset %zu", HEADER_START + i);
    } else if (!in_string && (c == '}' || c == ']')) {
      depth--;
    } else if (!in_string && c == ',' && ++values > HEADER_VALUES_MAX) {
      return shoal_fail(r->err, SHOAL_LIMIT, "the header holds more than %d values", HEADER_VALUES_MAX);
    }
  }
  return SHOAL_OK;
}

bool shoal_safetensors_real(const cJSON *item, double *out) {
  *out = cJSON_IsNumber(item) ? item->valuedouble : NAN;
  return cJSON_IsNumber(item) || cJSON_IsNull(item);
}

static shoal_status read_dtype(reader *r, shoal_tensor *tensor, const cJSON *item) {
  if (!cJSON_IsString(item)) return CORRUPT(r, "tensor '%s': 'dtype' is not a text", tensor->name);
  for (int i = 0; i < DTYPES_COUNT; i++) {
    if (strcmp(item->valuestring, dtypes[i].name) == 0) {
      tensor->dtype = (shoal_dtype)i;
      return SHOAL_OK;
    }
  }
  return shoal_fail(r->err, SHOAL_UNSUPPORTED,
                    "tensor '%s' holds values of type '%s'; Shoal reads F64, F32, I64, I32 and U8",
                    tensor->name, item->valuestring);
}

static shoal_status read_shape(reader *r, shoal_tensor *tensor, const cJSON *item) {
  if (!cJSON_IsArray(item)) return CORRUPT(r, "tensor '%s': 'shape' is not a list", tensor->name);
  const cJSON *dim;
  cJSON_ArrayForEach(dim, item) {
    if (tensor->dims_count == SHOAL_TENSOR_DIMS_MAX)
      return shoal_fail(r->err, SHOAL_UNSUPPORTED, "tensor '%s' has more than %d dimensions", tensor->name,
                        SHOAL_TENSOR_DIMS_MAX);
    if (!shoal_read_whole(dim, UINT64_MAX, &tensor->dims[tensor->dims_count++]))
      return CORRUPT(r, "tensor '%s': 'shape' holds something other than sizes", tensor->name);
  }
  return SHOAL_OK;
}

static shoal_status read_offsets(reader *r, shoal_tensor *tensor, const cJSON *item) {
  uint64_t begin, end;
  if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != 2 ||
      !shoal_read_whole(item->child, UINT64_MAX, &begin) ||
      !shoal_read_whole(item->child->next, UINT64_MAX, &end))
    return CORRUPT(r, "tensor '%s': 'data_offsets' is not a pair of offsets", tensor->name);
  if (begin > end || end > r->data_bytes)
    return CORRUPT(r, "tensor '%s' lies at %llu to %llu, outside the file's %llu bytes of data", tensor->name,
                   (unsigned long long)begin, (unsigned long long)end, (unsigned long long)r->data_bytes);
  tensor->data = r->data + begin;
  tensor->bytes = (size_t)(end - begin);
  return SHOAL_OK;
}

static shoal_status read_tensor(reader *r, shoal_tensor *tensor, const cJSON *item) {
  static const struct {
    const char *key;
    shoal_status (*read)(reader *r, shoal_tensor *tensor, const cJSON *item);
  } fields[] = {{"dtype", read_dtype}, {"shape", read_shape}, {"data_offsets", read_offsets}};
  enum { FIELDS_COUNT = sizeof fields / sizeof fields[0] };

  if (!cJSON_IsObject(item)) return CORRUPT(r, "tensor '%s' is not described by an object", item->string);
  tensor->name = item->string;
  bool seen[FIELDS_COUNT] = {false};
  const cJSON *field;
  cJSON_ArrayForEach(field, item) {
    int i = 0;
    while (i < FIELDS_COUNT && strcmp(field->string, fields[i].key) != 0) i++;
    if (i == FIELDS_COUNT) return CORRUPT(r, "tensor '%s': unknown field '%s'", tensor->name, field->string);
    if (seen[i]) return CORRUPT(r, "tensor '%s': '%s' is given twice", tensor->name, field->string);
    seen[i] = true;
    shoal_status status = fields[i].read(r, tensor, field);
    if (status != SHOAL_OK) return status;
  }
  for (int i = 0; i < FIELDS_COUNT; i++) {
    if (!seen[i]) return CORRUPT(r, "tensor '%s': '%s' is missing", tensor->name, fields[i].key);
  }
  uint64_t bytes;
  if (!tensor_bytes(tensor, &bytes) || bytes != tensor->bytes)
    return CORRUPT(r, "tensor '%s' has %zu bytes, which its shape and type do not make", tensor->name,
                   tensor->bytes);
  return SHOAL_OK;
}

static int compare_meta(const void *a, const void *b) {
  return strcmp(((const shoal_meta *)a)->key, ((const shoal_meta *)b)->key);
}

static shoal_status read_metadata(reader *r, const cJSON *object) {
  shoal_safetensors *file = &r->file;
  if (!cJSON_IsObject(object)) return CORRUPT(r, "'%s' is not an object", METADATA);
  if (file->meta) return CORRUPT(r, "'%s' is given twice", METADATA);
  file->meta = calloc((size_t)cJSON_GetArraySize(object) + 1, sizeof *file->meta);
  if (!file->meta) return shoal_fail(r->err, SHOAL_NO_MEMORY, "out of memory");
  const cJSON *item;
  cJSON_ArrayForEach(item, object) {
    if (!cJSON_IsString(item)) return CORRUPT(r, "metadata '%s' is not a text", item->string);
    file->meta[file->meta_count++] = (shoal_meta){item->string, item->valuestring};
  }
  qsort(file->meta, file->meta_count, sizeof *file->meta, compare_meta);
  for (size_t i = 1; i < file->meta_count; i++) {
    if (strcmp(file->meta[i - 1].key, file->meta[i].key) == 0)
      return CORRUPT(r, "metadata '%s' is given twice", file->meta[i].key);
  }
  return SHOAL_OK;
}

/* By place; of tensors at one place the empty ones come first. */
static int compare_places(const void *a, const void *b) {
  const shoal_tensor *x = a, *y = b;
  if (x->data != y->data) return (const uint8_t *)x->data < (const uint8_t *)y->data ? -1 : 1;
  return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int compare_names(const void *a, const void *b) {
  return strcmp((*(const shoal_tensor *const *)a)->name, (*(const shoal_tensor *const *)b)->name);
}

/* Puts the tensors in the order of their data and checks that they fill it, each byte once. */
static shoal_status check_places(reader *r) {
  shoal_safetensors *file = &r->file;
  qsort(file->tensors, file->tensors_count, sizeof *file->tensors, compare_places);
  const uint8_t *end = r->data;
  for (size_t i = 0; i < file->tensors_count; i++) {
    const shoal_tensor *tensor = &file->tensors[i];
    if ((const uint8_t *)tensor->data < end)
      return CORRUPT(r, "tensor '%s' overlaps '%s'", tensor->name, file->tensors[i - 1].name);
    if ((const uint8_t *)tensor->data > end)
      return CORRUPT(r, "there is a gap before tensor '%s'", tensor->name);
    end += tensor->bytes;
  }
  if (end != r->data + r->data_bytes)
    return CORRUPT(r, "%zu bytes at the end belong to no tensor", (size_t)(r->data + r->data_bytes - end));
  return SHOAL_OK;
}

static shoal_status check_names(reader *r) {
  const shoal_safetensors *file = &r->file;
  const shoal_tensor **by_name = r->by_name;
  for (size_t i = 0; i < file->tensors_count; i++) by_name[i] = &file->tensors[i];
  qsort(by_name, file->tensors_count, sizeof *by_name, compare_names);
  for (size_t i = 1; i < file->tensors_count; i++) {
    if (strcmp(by_name[i - 1]->name, by_name[i]->name) == 0)
      return CORRUPT(r, "tensor '%s' is there twice", by_name[i]->name);
  }
  return SHOAL_OK;
}

static shoal_status read_header(reader *r) {
  shoal_safetensors *file = &r->file;
  size_t count = (size_t)cJSON_GetArraySize(r->header) + 1;
  file->tensors = calloc(count, sizeof *file->tensors);
  r->by_name = calloc(count, sizeof *r->by_name);
  if (!file->tensors || !r->by_name) return shoal_fail(r->err, SHOAL_NO_MEMORY, "out of memory");
  const cJSON *item;
  cJSON_ArrayForEach(item, r->header) {
    shoal_status status = strcmp(item->string, METADATA) == 0
                              ? read_metadata(r, item)
                              : read_tensor(r, &file->tensors[file->tensors_count++], item);
    if (status != SHOAL_OK) return status;
  }
  shoal_status status = check_places(r);
  return status == SHOAL_OK ? check_names(r) : status;
}

/* `usual` is said of bytes that tell nothing themselves. */
static shoal_status not_ours(reader *r, const uint8_t *bytes, size_t length, const char *usual) {
  static const char advice[] = "Shoal reads the models that it has trained itself";
  const shoal_magic *magic = shoal_magic_of(bytes, length);
  if (magic) return CORRUPT(r, "this is %s; %s", magic->what, advice);
  size_t plain = 0, looked = length < 64 ? length : 64;
  while (plain < looked && (bytes[plain] >= ' ' || memchr("\t\r\n", bytes[plain], 3))) plain++;
  if (plain > 0 && plain == looked) return CORRUPT(r, "this is a text; %s", advice);
  return CORRUPT(r, "%s", usual);
}

/* The bytes are r's own and stay where they are. */
static shoal_status read_file(reader *r, const uint8_t *bytes, size_t length) {
  if (length < HEADER_START) return not_ours(r, bytes, length, "too short for a safetensors file");
  uint64_t header_bytes = 0;
  for (int i = 0; i < HEADER_START; i++) header_bytes |= (uint64_t)bytes[i] << (8 * i);
  if (header_bytes > length - HEADER_START)
    return not_ours(r, bytes, length,
                    "not a safetensors file, or cut short: its header would end behind the file");
  if (header_bytes > SHOAL_SAFETENSORS_HEADER_MAX)
    return shoal_fail(r->err, SHOAL_LIMIT, "its header has %llu bytes; %d is the most",
                      (unsigned long long)header_bytes, SHOAL_SAFETENSORS_HEADER_MAX);
  const char *text = (const char *)bytes + HEADER_START;
  r->data = bytes + HEADER_START + header_bytes;
  r->data_bytes = length - HEADER_START - header_bytes;
  if (header_bytes == 0 || text[0] != '{')
    return not_ours(r, bytes, length, "not a safetensors file: its header does not start with '{'");

  shoal_status status = look_over(r, text, (size_t)header_bytes);
  if (status != SHOAL_OK) return status;
  const char *end = NULL;
  r->header = cJSON_ParseWithLengthOpts(text, (size_t)header_bytes, &end, false);
  if (!r->header)
    return CORRUPT(r, "the header is not JSON at offset %zu",
                   HEADER_START + (end ? (size_t)(end - text) : 0));
  for (; end < text + header_bytes; end++) {
    if (*end != ' ') return CORRUPT(r, "the header goes on after its JSON");
  }
  return read_header(r);
}

/* Maps the file at `path`; an empty one maps to nothing. */
static shoal_status map_file(reader *r, const char *path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return shoal_fail(r->err, SHOAL_NOT_FOUND, "no such file");
  struct stat about;
  shoal_status status = SHOAL_OK;
  bool known = fd >= 0 && fstat(fd, &about) == 0;
  if (known && !S_ISREG(about.st_mode)) {
    status = shoal_fail(r->err, SHOAL_INVALID, "is not a file");
  } else if (known && about.st_size > 0) {
    r->mapped_bytes = (size_t)about.st_size;
    r->mapped = mmap(NULL, r->mapped_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    known = r->mapped != MAP_FAILED;
  }
  if (!known) {
    r->mapped = NULL;
    status = shoal_fail(r->err, SHOAL_IO, "%s", strerror(errno));
  }
  if (fd >= 0) close(fd);
  return status;
}

/* Hands the reader over, or ends it and says which file was at fault. */
static shoal_status finish(reader *r, const char *name, shoal_status status, shoal_safetensors **out) {
  if (status == SHOAL_OK) {
    r->err = NULL;
    *out = &r->file;
  } else {
    shoal_error_prefix(r->err, "%s: ", name);
    shoal_safetensors_destroy(&r->file);
  }
  return status;
}

shoal_status shoal_safetensors_load(shoal_safetensors **out, const char *path, shoal_error *err) {
  *out = NULL;
  reader *r = calloc(1, sizeof *r);
  if (!r) return shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", path);
  r->err = err;
  shoal_status status = map_file(r, path);
  if (status == SHOAL_OK) status = read_file(r, r->mapped, r->mapped_bytes);
  return finish(r, path, status, out);
}

shoal_status shoal_safetensors_parse(shoal_safetensors **out, const char *name, const uint8_t *bytes,
                                     size_t length, shoal_error *err) {
  *out = NULL;
  reader *r = calloc(1, sizeof *r + length);
  if (!r) return shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", name);
  r->err = err;
  if (length > 0) memcpy(r->copied, bytes, length);
  return finish(r, name, read_file(r, r->copied, length), out);
}

void shoal_safetensors_destroy(shoal_safetensors *file) {
  if (!file) return;
  reader *r = (reader *)file;
  if (r->mapped) munmap(r->mapped, r->mapped_bytes);
  cJSON_Delete(r->header);
  free(r->by_name);
  free(file->tensors);
  free(file->meta);
  free(r);
}

const shoal_tensor *shoal_safetensors_find(const shoal_safetensors *file, const char *name) {
  const reader *r = (const reader *)file;
  const shoal_tensor wanted = {.name = name}, *key = &wanted;
  const shoal_tensor **found = bsearch(&key, r->by_name, file->tensors_count, sizeof key, compare_names);
  return found ? *found : NULL;
}

const char *shoal_safetensors_meta(const shoal_safetensors *file, const char *key) {
  const shoal_meta wanted = {.key = key};
  if (!file->meta) return NULL;
  const shoal_meta *found = bsearch(&wanted, file->meta, file->meta_count, sizeof *file->meta, compare_meta);
  return found ? found->value : NULL;
}

bool shoal_safetensors_has(const char *path, const char *key) {
  shoal_safetensors *file;
  if (shoal_safetensors_load(&file, path, NULL) != SHOAL_OK) return false;
  bool has = shoal_safetensors_meta(file, key) != NULL;
  shoal_safetensors_destroy(file);
  return has;
}
