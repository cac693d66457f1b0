/* images.h: images of bytes with a label each, in the files that hold them.
 *
 * Images stay bytes in mapped files; they become numbers, (value / 255 - mean) / deviation
 * with one mean and deviation a channel, when a batch is fetched. Images are numbered
 * through: those for training first, then those for test.
 *
 * With a store (chunk_store.h) only those for training are opened, and an image must not be looked at
 * before its chunks are here.
 *
 * Ownership: init, open or add files, then release. The struct must stay where it is in
 * between (shoal_bytes). Threads: read-only once opened. */
#ifndef SHOAL_DATA_IMAGES_H
#define SHOAL_DATA_IMAGES_H

#include "base/status.h"
#include "data/bytes.h"
#include "data/chunk_store.h"
#include "data/limits.h"
#include "data/manifest.h"
#include "data/parts.h"

/* Images that lie at equal distances. */
typedef struct shoal_image_run {
  const uint8_t *images;
  size_t image_stride;
  const uint8_t *labels; /* NULL without */
  size_t label_stride;
  uint64_t first, count; /* its images are first .. first + count - 1 */
  uint64_t offset;       /* in its file, of the first image with what belongs to it */
  size_t record_bytes;   /* from one to the next */
} shoal_image_run;

enum { SHOAL_IMAGE_RUNS_MAX = 6, SHOAL_IMAGE_FILES_MAX = 6 };

typedef struct shoal_images {
  uint32_t c, h, w;
  uint64_t training, test; /* how many */
  bool labeled;
  uint32_t classes; /* the largest label and 1, or more */
  uint32_t runs_count;
  shoal_image_run runs[SHOAL_IMAGE_RUNS_MAX];
  shoal_bytes files[SHOAL_IMAGE_FILES_MAX];
  uint8_t *decoded; /* the runs' bytes where they are in no file, owned; or NULL */
  const shoal_manifest_file *chunked[SHOAL_IMAGE_RUNS_MAX]; /* the runs' files in a store; NULL without */
  double mean[SHOAL_IMAGE_CHANNELS_MAX], deviation[SHOAL_IMAGE_CHANNELS_MAX];
  float scale[SHOAL_IMAGE_CHANNELS_MAX], shift[SHOAL_IMAGE_CHANNELS_MAX]; /* of bytes */
} shoal_images;

/* The store's file that a run is in; NULL without a store. `path` is where it lies. */
const shoal_manifest_file *shoal_images_file(const shoal_chunk_store *store, const char *path);
/* The chunks that an image is in, with what belongs to it; false without a store. */
bool shoal_images_chunks(const shoal_images *images, uint64_t number, uint32_t *first, uint32_t *count);

void shoal_images_init(shoal_images *images);
void shoal_images_release(shoal_images *images);

const uint8_t *shoal_images_at(const shoal_images *images, uint64_t number);
/* 0 without labels, and for one that is no class. */
uint8_t shoal_images_label(const shoal_images *images, uint64_t number);

/* Sets mean and deviation to those of the training part. */
void shoal_images_fit(shoal_images *images, const shoal_parts *parts);
/* Makes scale and shift from mean and deviation. */
void shoal_images_scale(shoal_images *images);

#endif
