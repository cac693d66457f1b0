/* cifar.c: see cifar.h. Every file is a run of images as it lies in memory. */
#include "data/cifar.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/text.h"

const char *const shoal_cifar_names[10] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                           "dog",      "frog",       "horse", "ship", "truck"};

enum { FILES = 6, CLASSES = 10, CHANNELS = 3, SIDE = 32, RECORD_BYTES = 1 + CHANNELS * SIDE * SIDE };
_Static_assert((int)FILES <= (int)SHOAL_IMAGE_FILES_MAX && (int)FILES <= (int)SHOAL_IMAGE_RUNS_MAX,
               "a run for every file");

static const char *const names[FILES] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                         "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};

void shoal_cifar_cut(shoal_cut *cut) { cut->record = RECORD_BYTES; }

static char *path_of(const char *folder, const char *name) {
  shoal_text path;
  shoal_text_init(&path);
  shoal_text_addf(&path, "%s/%s", folder, name);
  if (path.failed) {
    shoal_text_release(&path);
    return NULL;
  }
  return path.bytes;
}

bool shoal_cifar_is_folder(const char *folder) {
  char *path = path_of(folder, names[0]);
  bool there = path && shoal_file_exists(path);
  free(path);
  return there;
}

static shoal_status add_run(shoal_images *images, const char *path, const shoal_bytes *bytes,
                            const shoal_chunk_store *store, shoal_error *err) {
  uint64_t count = bytes->length / RECORD_BYTES;
  if (count == 0 || bytes->length % RECORD_BYTES != 0)
    return shoal_fail(err, SHOAL_CORRUPT,
                      "%s: %zu bytes are not a whole number of records of %d bytes; is the file incomplete?",
                      path, bytes->length, RECORD_BYTES);
  for (uint64_t i = 0; i < count && !store; i++) {
    if (bytes->data[i * RECORD_BYTES] >= CLASSES)
      return shoal_fail(err, SHOAL_CORRUPT, "%s: record %" PRIu64 " has the label %d; 0 to 9 are possible",
                        path, i + 1, bytes->data[i * RECORD_BYTES]);
  }
  images->chunked[images->runs_count] = shoal_images_file(store, path);
  images->runs[images->runs_count++] = (shoal_image_run){
      .images = bytes->data + 1,
      .image_stride = RECORD_BYTES,
      .labels = bytes->data,
      .label_stride = RECORD_BYTES,
      .first = images->training,
      .count = count,
      .record_bytes = RECORD_BYTES,
  };
  return SHOAL_OK;
}

shoal_status shoal_cifar_open(shoal_images *images, const char *folder, const shoal_chunk_store *store,
                              shoal_error *err) {
  char *paths[FILES] = {0};
  int files = store ? FILES - 1 : FILES;
  shoal_status status = SHOAL_OK;
  for (int i = 0; i < FILES && status == SHOAL_OK; i++) {
    paths[i] = path_of(folder, names[i]);
    if (!paths[i]) status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  }
  if (status == SHOAL_OK)
    status = shoal_bytes_open_all(images->files, (const char *const *)paths, (size_t)files,
                                  SHOAL_DATA_FILE_BYTES_MAX, err);
  images->c = CHANNELS;
  images->h = images->w = SIDE;
  images->classes = CLASSES;
  images->labeled = true;
  for (int i = 0; i < files && status == SHOAL_OK; i++) {
    status = add_run(images, paths[i], &images->files[i], store, err);
    if (status == SHOAL_OK && i < FILES - 1)
      images->training += images->runs[i].count;
    else if (status == SHOAL_OK)
      images->test = images->runs[i].count;
  }
  for (int i = 0; i < FILES; i++) free(paths[i]);
  return status;
}
