/* idx.c: see idx.h. Parsing, then the files of a folder or around one file. */
#include "data/idx.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

enum { HEAD_BYTES = 4, TYPE_UBYTE = 0x08 };

/* The header alone; the values are not looked at. */
static shoal_status parse_head(shoal_idx *out, const char *name, const uint8_t *bytes, size_t length,
                               size_t *head, shoal_error *err) {
  *out = (shoal_idx){.sample_values = 1};
  if (length < HEAD_BYTES || bytes[0] != 0 || bytes[1] != 0)
    return shoal_fail(err, SHOAL_CORRUPT, "%s: not an IDX file: it should begin with two zero bytes", name);
  if (bytes[2] != TYPE_UBYTE)
    return shoal_fail(err, SHOAL_UNSUPPORTED,
                      "%s: IDX values of type 0x%02x; only unsigned bytes (0x08) are supported", name,
                      bytes[2]);
  out->dims_count = bytes[3];
  if (out->dims_count < 1 || out->dims_count > SHOAL_IDX_DIMS_MAX)
    return shoal_fail(err, SHOAL_UNSUPPORTED, "%s: %u dimensions; 1 to %d are supported", name, bytes[3],
                      SHOAL_IDX_DIMS_MAX);
  *head = HEAD_BYTES + 4 * (size_t)out->dims_count;
  if (length < *head) return shoal_fail(err, SHOAL_CORRUPT, "%s: the file ends inside its header", name);

  for (uint32_t i = 0; i < out->dims_count; i++) {
    const uint8_t *at = bytes + HEAD_BYTES + 4 * i;
    out->dims[i] = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    if (out->dims[i] == 0) return shoal_fail(err, SHOAL_CORRUPT, "%s: dimension %u is zero", name, i + 1);
    if (i > 0) out->sample_values *= out->dims[i]; /* below 2^58, as it was below 2^26 before */
    if (out->sample_values > SHOAL_IMAGE_VALUES_MAX)
      return shoal_fail(err, SHOAL_LIMIT, "%s: an image has more than %d values", name,
                        SHOAL_IMAGE_VALUES_MAX);
  }
  return SHOAL_OK;
}

shoal_status shoal_idx_parse(shoal_idx *out, const char *name, const uint8_t *bytes, size_t length,
                             shoal_error *err) {
  size_t head = 0;
  shoal_status status = parse_head(out, name, bytes, length, &head, err);
  if (status != SHOAL_OK) return status;
  uint64_t wanted = out->dims[0] * out->sample_values, there = length - head;
  if (there != wanted)
    return shoal_fail(err, SHOAL_CORRUPT,
                      "%s: the header announces %" PRIu64 " values, but %" PRIu64
                      " follow; is the file incomplete?",
                      name, wanted, there);
  out->values = bytes + head;
  return SHOAL_OK;
}

void shoal_idx_cut(shoal_cut *cut, const uint8_t *bytes, size_t length) {
  shoal_idx idx;
  size_t head = 0;
  if (parse_head(&idx, "", bytes, length, &head, NULL) != SHOAL_OK || idx.dims_count < 2) return;
  cut->head = head;
  cut->record = idx.sample_values;
}

bool shoal_idx_is_images(const char *path) {
  uint8_t head[HEAD_BYTES] = {0};
  struct stat about;
  if (stat(path, &about) != 0 || !S_ISREG(about.st_mode)) return false; /* a pipe can be read only once */
  gzFile file = gzopen(path, "rb");                                     /* takes plain files as well */
  bool whole = file && gzread(file, head, sizeof head) == (int)sizeof head;
  if (file) gzclose_r(file);
  return whole && head[0] == 0 && head[1] == 0 && head[2] == TYPE_UBYTE && head[3] >= 2 &&
         head[3] <= SHOAL_IDX_DIMS_MAX;
}

/* ---- images and labels -------------------------------------------------------------- */

/* Adds the images of one file, and the labels of another unless it is NULL. */
static shoal_status add_run(shoal_images *images, const char *images_path, const shoal_bytes *image_bytes,
                            const char *labels_path, const shoal_bytes *label_bytes, shoal_error *err) {
  shoal_idx pixels, labels = {0};
  shoal_status status = shoal_idx_parse(&pixels, images_path, image_bytes->data, image_bytes->length, err);
  if (status == SHOAL_OK && label_bytes)
    status = shoal_idx_parse(&labels, labels_path, label_bytes->data, label_bytes->length, err);
  if (status != SHOAL_OK) return status;

  if (pixels.dims_count < 2)
    return shoal_fail(err, SHOAL_CORRUPT, "%s: has 1 dimension, like labels; images have 2 to 4",
                      images_path);
  const uint32_t *d = pixels.dims;
  uint32_t c = pixels.dims_count == 4 ? d[1] : 1;
  uint32_t h = pixels.dims_count == 4 ? d[2] : pixels.dims_count == 3 ? d[1] : 1;
  uint32_t w = d[pixels.dims_count - 1];
  if (c > SHOAL_IMAGE_CHANNELS_MAX)
    return shoal_fail(err, SHOAL_LIMIT, "%s: %u channels; at most %d are supported", images_path, c,
                      SHOAL_IMAGE_CHANNELS_MAX);
  if (images->runs_count > 0 && (c != images->c || h != images->h || w != images->w))
    return shoal_fail(err, SHOAL_CORRUPT, "%s: images of %ux%ux%u, where the training images are %ux%ux%u",
                      images_path, c, h, w, images->c, images->h, images->w);
  if (label_bytes && labels.dims_count != 1)
    return shoal_fail(err, SHOAL_CORRUPT, "%s: %u dimensions; labels have one", labels_path,
                      labels.dims_count);
  if (label_bytes && labels.dims[0] != d[0])
    return shoal_fail(err, SHOAL_CORRUPT, "%s: %u labels for the %u images of %s", labels_path,
                      labels.dims[0], d[0], images_path);

  images->c = c;
  images->h = h;
  images->w = w;
  images->labeled = label_bytes != NULL;
  for (uint32_t i = 0; label_bytes && i < d[0]; i++) {
    if (labels.values[i] >= images->classes) images->classes = labels.values[i] + 1u;
  }
  uint64_t first = 0;
  for (uint32_t i = 0; i < images->runs_count; i++) first += images->runs[i].count;
  images->runs[images->runs_count++] = (shoal_image_run){
      .images = pixels.values,
      .image_stride = pixels.sample_values,
      .labels = labels.values,
      .label_stride = 1,
      .first = first,
      .count = d[0],
      .offset = (uint64_t)(pixels.values - image_bytes->data),
      .record_bytes = pixels.sample_values,
  };
  return SHOAL_OK;
}

/* The path of folder/stem-kind-ubyte in one of its spellings; NULL when there is none. */
static char *find_file(const char *folder, const char *stem, const char *kind) {
  for (int spelling = 0; spelling < 4; spelling++) {
    const char *dot = spelling >= 2 ? "." : "-", *zipped = spelling % 2 ? ".gz" : "";
    shoal_text path;
    shoal_text_init(&path);
    shoal_text_addf(&path, "%s/%s%s%s-ubyte%s", folder, stem, dot, kind, zipped);
    if (!path.failed && shoal_file_exists(path.bytes)) return path.bytes;
    shoal_text_release(&path);
  }
  return NULL;
}

bool shoal_idx_is_folder(const char *folder) {
  char *path = find_file(folder, "train-images", "idx3");
  free(path);
  return path != NULL;
}

bool shoal_idx_prepare(shoal_chunk_store *store, const volatile sig_atomic_t *stop, shoal_status *status,
                       shoal_error *err) {
  const shoal_manifest *m = shoal_chunk_store_manifest(store);
  const shoal_manifest_file *images = NULL, *labels = NULL;
  for (uint32_t i = 0; i < m->files_count; i++) {
    if (strncmp(m->files[i].name, "train-images", 12) == 0) images = &m->files[i];
    if (strncmp(m->files[i].name, "train-labels", 12) == 0) labels = &m->files[i];
  }
  if (!images || !labels || images->cut.record == 0) return false;
  uint32_t first = (uint32_t)labels->first_chunk, count = (uint32_t)labels->chunks_count;
  shoal_chunk_store_want(store, (uint32_t)images->first_chunk, 1, true);
  shoal_chunk_store_want(store, first, count, true);
  *status = shoal_chunk_store_wait(store, (uint32_t)images->first_chunk, 1, stop, err);
  if (*status == SHOAL_OK) *status = shoal_chunk_store_wait(store, first, count, stop, err);
  return true;
}

shoal_status shoal_idx_open_folder(shoal_images *images, const char *folder, const shoal_chunk_store *store,
                                   shoal_error *err) {
  enum { FILES = 4, TRAINING_FILES = 2 };
  static const char *const stems[FILES] = {"train-images", "train-labels", "t10k-images", "t10k-labels"};
  static const char *const kinds[FILES] = {"idx3", "idx1", "idx3", "idx1"};
  char *paths[FILES];
  for (int i = 0; i < FILES; i++) paths[i] = find_file(folder, stems[i], kinds[i]);
  int files = !store && (paths[2] || paths[3]) ? FILES : TRAINING_FILES;
  shoal_status status = SHOAL_OK;
  for (int i = 0; i < files && status == SHOAL_OK; i++) {
    if (!paths[i])
      status =
          shoal_fail(err, SHOAL_NOT_FOUND, "%s: %s-%s-ubyte[.gz] is missing", folder, stems[i], kinds[i]);
  }
  if (status == SHOAL_OK)
    status = shoal_bytes_open_all(images->files, (const char *const *)paths, (size_t)files,
                                  SHOAL_DATA_FILE_BYTES_MAX, err);
  for (int i = 0; i < files && status == SHOAL_OK; i += 2)
    status = add_run(images, paths[i], &images->files[i], paths[i + 1], &images->files[i + 1], err);
  if (status == SHOAL_OK) {
    images->training = images->runs[0].count;
    images->test = files == FILES ? images->runs[1].count : 0;
    images->chunked[0] = shoal_images_file(store, paths[0]);
  }
  for (int i = 0; i < FILES; i++) free(paths[i]);
  return status;
}

/* ---- about.json, and writing ---------------------------------------------------------- */

static const char about_name[] = "about.json";

shoal_status shoal_idx_read_about(shoal_images *images, const char *folder, shoal_names *classes,
                                  char files_sha256[SHOAL_SHA256_HEX], shoal_error *err) {
  char *path = shoal_path("%s/%s", folder, about_name);
  uint8_t *bytes = NULL;
  size_t length = 0;
  if (!path) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status = SHOAL_OK;
  bool there = shoal_file_exists(path);
  if (there) status = shoal_file_read(path, SHOAL_FITTED_JSON_BYTES_MAX, false, &bytes, &length, err);
  cJSON *json = bytes ? cJSON_ParseWithLength((const char *)bytes, length) : NULL;
  const cJSON *names = cJSON_GetObjectItemCaseSensitive(json, "classes");
  const cJSON *sha256 = cJSON_GetObjectItemCaseSensitive(json, "files_sha256");
  if (there && status == SHOAL_OK && !cJSON_IsObject(json))
    status = shoal_fail(err, SHOAL_CORRUPT, "not an object of JSON");
  if (status == SHOAL_OK && names)
    status = shoal_names_read(classes, names, SHOAL_IMAGE_CLASSES_MAX, "classes", err);
  if (status == SHOAL_OK && names && classes->count < images->classes)
    status = shoal_fail(err, SHOAL_CORRUPT, "%u names for %u classes", classes->count, images->classes);
  if (status != SHOAL_OK) shoal_error_prefix(err, "%s: ", about_name);
  if (classes->count > images->classes) images->classes = classes->count;
  if (cJSON_IsString(sha256) && strlen(sha256->valuestring) == SHOAL_SHA256_HEX - 1)
    memcpy(files_sha256, sha256->valuestring, SHOAL_SHA256_HEX);
  cJSON_Delete(json);
  free(bytes);
  free(path);
  return status;
}

/* Begins a file with its header. */
static shoal_status write_head(shoal_writer **out, const char *folder, const char *name, const uint32_t *dims,
                               uint32_t dims_count, shoal_error *err) {
  uint8_t head[HEAD_BYTES + 4 * SHOAL_IDX_DIMS_MAX] = {0, 0, TYPE_UBYTE, (uint8_t)dims_count};
  for (uint32_t i = 0; i < 4 * dims_count; i++)
    head[HEAD_BYTES + i] = (uint8_t)(dims[i / 4] >> (24 - i % 4 * 8));
  char *path = shoal_path("%s/%s", folder, name);
  shoal_status status =
      path ? shoal_writer_create(out, path, err) : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  free(path);
  if (status == SHOAL_OK) shoal_writer_add(*out, head, HEAD_BYTES + 4 * (size_t)dims_count);
  return status;
}

static shoal_status write_part(const shoal_images *images, const char *folder, const char *stem,
                               uint64_t first, uint64_t count, shoal_error *err) {
  const uint32_t dims[SHOAL_IDX_DIMS_MAX] = {(uint32_t)count, images->c, images->h, images->w};
  char name[64];
  shoal_writer *writer;
  snprintf(name, sizeof name, "%s-images-idx3-ubyte", stem);
  shoal_status status = write_head(&writer, folder, name, dims, SHOAL_IDX_DIMS_MAX, err);
  if (status != SHOAL_OK) return status;
  size_t bytes = (size_t)images->c * images->h * images->w;
  for (uint64_t i = 0; i < count; i++) shoal_writer_add(writer, shoal_images_at(images, first + i), bytes);
  status = shoal_writer_commit(writer, err);
  snprintf(name, sizeof name, "%s-labels-idx1-ubyte", stem);
  if (status == SHOAL_OK) status = write_head(&writer, folder, name, dims, 1, err);
  if (status != SHOAL_OK) return status;
  for (uint64_t i = 0; i < count; i++) {
    uint8_t label = shoal_images_label(images, first + i);
    shoal_writer_add(writer, &label, 1);
  }
  return shoal_writer_commit(writer, err);
}

shoal_status shoal_idx_write_folder(const shoal_images *images, const shoal_names *classes,
                                    const char *files_sha256, const char *folder, shoal_error *err) {
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  if (classes->count > 0) shoal_names_write(classes, &json, "classes");
  if (files_sha256[0]) shoal_json_text(&json, "files_sha256", files_sha256);
  shoal_json_close(&json, '}');
  char *path = shoal_path("%s/%s", folder, about_name);
  shoal_status status = path && !text.failed ? shoal_file_write(path, text.bytes, text.length, err)
                                             : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  free(path);
  shoal_text_release(&text);
  if (status == SHOAL_OK) status = write_part(images, folder, "train", 0, images->training, err);
  if (status == SHOAL_OK && images->test > 0)
    status = write_part(images, folder, "t10k", images->training, images->test, err);
  return status;
}

/* ---- one file ------------------------------------------------------------------------- */

/* ".../t10k-images-idx3-ubyte.gz" -> ".../t10k-labels-idx1-ubyte.gz"; NULL for other names.
 * The file of labels may be zipped where the images are not, and the other way round. */
static char *labels_beside(const char *images_path) {
  const char *slash = strrchr(images_path, '/');
  size_t folder_bytes = slash ? (size_t)(slash - images_path) : 1;
  const char *name = slash ? slash + 1 : images_path, *images = strstr(name, "images");
  if (!images || (size_t)(images - name) > SHOAL_NAME_BYTES_MAX) return NULL;
  shoal_text folder, stem;
  shoal_text_init(&folder);
  shoal_text_init(&stem);
  shoal_text_add(&folder, slash ? images_path : ".", folder_bytes);
  shoal_text_addf(&stem, "%.*slabels", (int)(images - name), name);
  char *found = folder.failed || stem.failed ? NULL : find_file(folder.bytes, stem.bytes, "idx1");
  shoal_text_release(&folder);
  shoal_text_release(&stem);
  return found;
}

shoal_status shoal_idx_open_file(shoal_images *images, const char *path, bool unlabeled, bool as_test,
                                 shoal_error *err) {
  char *labels = unlabeled ? NULL : labels_beside(path);
  shoal_status status = shoal_bytes_open(&images->files[0], path, SHOAL_DATA_FILE_BYTES_MAX, err);
  if (status == SHOAL_OK && labels)
    status = shoal_bytes_open(&images->files[1], labels, SHOAL_DATA_FILE_BYTES_MAX, err);
  if (status == SHOAL_OK)
    status = add_run(images, path, &images->files[0], labels, labels ? &images->files[1] : NULL, err);
  if (status == SHOAL_OK) {
    images->training = as_test ? 0 : images->runs[0].count;
    images->test = as_test ? images->runs[0].count : 0;
  }
  free(labels);
  return status;
}
