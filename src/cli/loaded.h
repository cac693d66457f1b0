/* loaded.h: a trained model from its checkpoint, for the commands that ask it something.
 *
 * Ownership: open, then release, in whatever state open left it. Threads: none. */
#ifndef SHOAL_CLI_LOADED_H
#define SHOAL_CLI_LOADED_H

#include <stdio.h>

#include "data/dataset.h"
#include "nn/checkpoint.h"

typedef struct shoal_loaded {
  const char *path;
  shoal_checkpoint checkpoint;
  shoal_graph *graph;
  shoal_trainer *trainer; /* NULL until shoal_loaded_ready */
} shoal_loaded;

/* Reads the file and builds the graph. A path that names a model's text is told apart. */
shoal_status shoal_loaded_open(shoal_loaded *out, const char *path, shoal_error *err);
/* Makes a trainer that evaluates and predicts, with the weights in it. */
shoal_status shoal_loaded_ready(shoal_loaded *loaded, uint32_t batch, uint32_t threads, shoal_error *err);
void shoal_loaded_release(shoal_loaded *loaded);

const float *shoal_loaded_weights(const shoal_loaded *loaded);

/* Opens a data set as training saw it, and the source of the split with that name; NULL is
 * test, or valid where there is no test, or train. The dataset is the caller's to close,
 * also after a failure. */
typedef struct shoal_loaded_data {
  const char *data, *target, *data_dir;
  double valid_share;
  const char *split;
  bool unlabeled;          /* answers may be absent and are not read */
  const char *const *more; /* unlabeled: files besides `data`; or NULL */
  size_t more_count;
  uint32_t batch;
  FILE *text; /* where it is said how image files are read; or NULL */
} shoal_loaded_data;

shoal_status shoal_loaded_source(const shoal_loaded *loaded, const shoal_loaded_data *asked,
                                 shoal_dataset **dataset, shoal_split *split, shoal_source *source,
                                 shoal_error *err);

extern const char *const shoal_split_names[SHOAL_SPLITS + 1]; /* ends in NULL: choices of --split */

#endif
