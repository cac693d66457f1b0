/* dataset_internal.h: what the files of a data set share: dataset.c opens it, dataset_source.c feeds the engine. */
#ifndef SHOAL_DATA_DATASET_INTERNAL_H
#define SHOAL_DATA_DATASET_INTERNAL_H

#include "base/hash.h"
#include "data/dataset.h"
#include "data/image_list.h"
#include "data/images.h"
#include "data/lanes.h"
#include "data/names.h"
#include "data/noise.h"
#include "data/parts.h"
#include "data/table.h"
#include "data/text.h"
#include "kernels/kernels.h"

typedef enum shoal_data_kind {
  SHOAL_DATA_IMAGES,
  SHOAL_DATA_TABLE,
  SHOAL_DATA_TEXT,
  SHOAL_DATA_REVERSE,
  SHOAL_DATA_WAVE,
  SHOAL_DATA_NOISE,
  SHOAL_DATA_KINDS
} shoal_data_kind;

/* What self of a source points at. */
typedef struct shoal_view {
  const shoal_dataset *dataset;
  shoal_split split;
  uint64_t seed;
  shoal_streams streams; /* SHOAL_DATA_TEXT */
  shoal_lanes *lanes;    /* or NULL */
  uint64_t *stored;      /* with lanes and validation: the training samples' numbers, ascending; else NULL */
  uint64_t *blocks;      /* with lanes: where blocks begin, as lanes.h has them */
  shoal_augment augment; /* of images for training */
  struct shoal_view *older;
} shoal_view;

struct shoal_dataset {
  shoal_data_kind kind;
  char *name; /* as the user gave it */
  shoal_shape input, output;
  shoal_target_kind targets;
  bool one_hot; /* classes as targets: 1 for the right one, 0 for the others */

  shoal_images images;
  shoal_image_list files; /* SHOAL_DATA_IMAGES: the PNG and JPEG files that they are from, if they are */
  shoal_text note;        /* what was done to those */
  char files_sha256[SHOAL_SHA256_HEX]; /* of the folder that one file in five was held out of; else empty */
  const shoal_kernels *kernels;        /* SHOAL_DATA_IMAGES */
  shoal_table table;
  shoal_tokens tokens;
  uint32_t alphabet;  /* SHOAL_DATA_REVERSE */
  shoal_noise *noise; /* SHOAL_DATA_NOISE */

  shoal_parts parts;        /* all but SHOAL_DATA_TEXT */
  shoal_chunk_store *store; /* where it is opened piece by piece; else NULL */
  uint32_t classes;
  shoal_names class_names; /* SHOAL_DATA_IMAGES; the others keep theirs elsewhere */
  uint64_t *class_counts;  /* in TRAIN */
  shoal_view *views;       /* newest first */
};

/* Images and tables: the class of a sample, 0 where it has none. */
int32_t shoal_dataset_label(const shoal_dataset *dataset, uint64_t number);
void shoal_dataset_forget_sources(shoal_dataset *dataset);

#endif
