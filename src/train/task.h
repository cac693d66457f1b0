/* task.h: a model and the data it is trained on, put together and ready to train.
 *
 * Every process that computes rounds of a training opens the same task: one machine, a worker, a rank of
 * MPI. Given the same model text and data, all of them come to the same batches, shards and bits.
 *
 * Ownership: open, then close, in whatever state open left it; the model is borrowed.
 * Threads: one. */
#ifndef SHOAL_TRAIN_TASK_H
#define SHOAL_TRAIN_TASK_H

#include "base/hash.h"
#include "data/dataset.h"
#include "nn/trainer.h"

typedef struct shoal_task {
  const shoal_model *model;
  shoal_dataset *dataset;
  shoal_source sources[SHOAL_SPLITS]; /* samples is 0 where a split is missing */
  shoal_text fitted;                  /* what the data set had fitted, JSON */
  float *class_weights;               /* or NULL */
  shoal_graph *graph;
  shoal_trainer *trainer;
} shoal_task;

/* The data first: shoal_task_ready then reserves the memory. */
shoal_status shoal_task_open(shoal_task *out, const shoal_model *model, const shoal_dataset_options *options,
                             shoal_error *err);
shoal_status shoal_task_ready(shoal_task *task, uint32_t threads, shoal_error *err);
/* After open: whether it can be trained, as shoal_task_ready says, without the memory for that. */
shoal_status shoal_task_check(shoal_task *task, shoal_error *err);
/* For local steps with `shuffle lanes`: whole rounds are dealt to lanes. Else parts of rounds are, by
 * shoal_task_ready. */
shoal_status shoal_task_deal_rounds(shoal_task *task, uint32_t lanes, const uint32_t *lane_of_round,
                                    shoal_error *err);
void shoal_task_close(shoal_task *task);

/* Tells whether two machines have the same data, as far as what was fitted to it shows: SHA-256 of that, but
 * for the names of images' classes, which a set has by its name and not in a folder. */
void shoal_task_fingerprint(const shoal_task *task, char out[SHOAL_SHA256_HEX]);

/* Calls `note` with a sentence where a round would take more samples than there are, and with one where the model has
 * more outputs than the data has classes. */
void shoal_task_notes(const shoal_task *task, void (*note)(void *self, const char *text), void *self);

#endif
