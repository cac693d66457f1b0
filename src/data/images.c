/* images.c: see images.h. */
#include "data/images.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

void shoal_images_init(shoal_images *images) { *images = (shoal_images){.c = 1, .h = 1, .w = 1}; }

void shoal_images_release(shoal_images *images) {
  for (int i = 0; i < SHOAL_IMAGE_FILES_MAX; i++) shoal_bytes_close(&images->files[i]);
  free(images->decoded);
  shoal_images_init(images);
}

static const shoal_image_run *run_of(const shoal_images *images, uint64_t number) {
  const shoal_image_run *run = images->runs;
  while (number - run->first >= run->count) {
    run++;
    SHOAL_ASSERT(run < images->runs + images->runs_count);
  }
  return run;
}

const uint8_t *shoal_images_at(const shoal_images *images, uint64_t number) {
  const shoal_image_run *run = run_of(images, number);
  return run->images + (number - run->first) * run->image_stride;
}

uint8_t shoal_images_label(const shoal_images *images, uint64_t number) {
  const shoal_image_run *run = run_of(images, number);
  uint8_t label = run->labels ? run->labels[(number - run->first) * run->label_stride] : 0;
  return label < images->classes ? label : 0;
}

const shoal_manifest_file *shoal_images_file(const shoal_chunk_store *store, const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  const shoal_manifest *m = store ? shoal_chunk_store_manifest(store) : NULL;
  for (uint32_t i = 0; m && i < m->files_count; i++)
    if (strcmp(m->files[i].name, name) == 0) return &m->files[i];
  return NULL;
}

bool shoal_images_chunks(const shoal_images *images, uint64_t number, uint32_t *first, uint32_t *count) {
  const shoal_image_run *run = run_of(images, number);
  const shoal_manifest_file *file = images->chunked[run - images->runs];
  if (!file) return false;
  uint64_t offset = run->offset + (number - run->first) * run->record_bytes;
  uint64_t begin = shoal_cut_find(&file->cut, offset);
  uint64_t end = shoal_cut_find(&file->cut, offset + run->record_bytes - 1);
  *first = (uint32_t)(file->first_chunk + begin);
  *count = (uint32_t)(end - begin + 1);
  return true;
}

typedef struct sums {
  uint64_t value, square;
} sums;

/* Blocks of a fixed size, whose sums fit 32 bits, become vector code: 10 GB a second. */
static void add_bytes(sums *to, const uint8_t *bytes, size_t count) {
  enum { BLOCK = 128 };
  size_t i = 0;
  for (; i + BLOCK <= count; i += BLOCK) {
    uint32_t value = 0, square = 0;
    for (int j = 0; j < BLOCK; j++) {
      value += bytes[i + j];
      square += (uint32_t)bytes[i + j] * bytes[i + j];
    }
    to->value += value;
    to->square += square;
  }
  for (; i < count; i++) {
    to->value += bytes[i];
    to->square += (uint32_t)bytes[i] * bytes[i];
  }
}

static void add_image(sums to[], const shoal_images *images, uint64_t number) {
  size_t plane = (size_t)images->h * images->w;
  const uint8_t *image = shoal_images_at(images, number);
  for (uint32_t c = 0; c < images->c; c++) add_bytes(&to[c], image + c * plane, plane);
}

void shoal_images_fit(shoal_images *images, const shoal_parts *parts) {
  /* Whole numbers can be taken away again: all in the order of the file, without those for
   * validation, is quicker than the training part in the order of the split. */
  sums sum[SHOAL_IMAGE_CHANNELS_MAX] = {0}, held[SHOAL_IMAGE_CHANNELS_MAX] = {0};
  for (uint64_t i = 0; i < images->training; i++) add_image(sum, images, i);
  for (uint64_t i = 0; i < parts->count[SHOAL_VALID]; i++)
    add_image(held, images, shoal_parts_number(parts, SHOAL_VALID, i));
  uint64_t count = parts->count[SHOAL_TRAIN];
  size_t plane = (size_t)images->h * images->w;
  double n = count ? (double)count * (double)plane : 1;
  for (uint32_t c = 0; c < images->c; c++) {
    double mean = (double)(sum[c].value - held[c].value) / n;
    double variance = (double)(sum[c].square - held[c].square) / n - mean * mean;
    images->mean[c] = mean / 255;
    /* A channel of one colour says nothing; it becomes zero. */
    images->deviation[c] = variance > 1e-9 ? sqrt(variance) / 255 : 1;
  }
  shoal_images_scale(images);
}

void shoal_images_scale(shoal_images *images) {
  for (uint32_t c = 0; c < images->c; c++) {
    images->scale[c] = (float)(1 / (255 * images->deviation[c]));
    images->shift[c] = (float)(-images->mean[c] / images->deviation[c]);
  }
}
