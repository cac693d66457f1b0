/* checkpoint.h: a training run in one safetensors file.
 *
 * Tensors: every parameter under its name; "optimizer.1.<name>" and "optimizer.2.<name>"
 * for the optimiser's slots; "state.carry" for recurrent state. Metadata: "shoal.version",
 * "shoal.model" (the model text with its recipe), "shoal.data" (what the data set had
 * fitted: scales, vocabulary, class names; JSON), "shoal.position" (epoch, round, step
 * and the running sums of the epoch, exact, JSON), "shoal.weights_sha256",
 * "shoal.state_sha256" (slots and carry).
 * Statistics have no optimiser slots, so none are stored for them.
 *
 * Ownership: a loaded checkpoint owns its model text and tensors. Threads: none. */
#ifndef SHOAL_NN_CHECKPOINT_H
#define SHOAL_NN_CHECKPOINT_H

#include "nn/graph.h"
#include "nn/safetensors.h"
#include "nn/trainer.h"

/* How large the file of shoal_checkpoint_save will be, rounded up a little. data_json may be NULL. */
uint64_t shoal_checkpoint_bytes(const shoal_graph *graph, const shoal_train_state *state,
                                const char *data_json);
/* data_json may be NULL. Written atomically: the old file stays until the new one is whole. */
shoal_status shoal_checkpoint_save(const char *path, const shoal_graph *graph, const shoal_train_state *state,
                                   const char *data_json, shoal_error *err);

typedef struct shoal_checkpoint {
  char *path; /* what errors call it */
  shoal_safetensors *file;
  shoal_model *model;    /* parsed from the file */
  const char *data_json; /* or NULL */
} shoal_checkpoint;

/* *out is filled on success only. */
shoal_status shoal_checkpoint_load(shoal_checkpoint *out, const char *path, shoal_error *err);
void shoal_checkpoint_release(shoal_checkpoint *checkpoint);

/* Weights only, for eval, predict and export: every parameter of the graph must be there
 * with its shape, finite values not required, checksum verified. */
shoal_status shoal_checkpoint_weights(const shoal_checkpoint *checkpoint, const shoal_graph *graph,
                                      float *weights, shoal_error *err);
/* Where the training stood, and nothing else: the state's vectors are not touched. */
shoal_status shoal_checkpoint_position(const shoal_checkpoint *checkpoint, shoal_train_state *state,
                                       shoal_error *err);
/* The same from its JSON alone; false when a number is missing or makes no sense. */
bool shoal_checkpoint_read_position(shoal_train_state *state, const struct cJSON *position);
/* Everything, to continue training. The optimiser's slots must be there when the state has them. */
shoal_status shoal_checkpoint_resume(const shoal_checkpoint *checkpoint, const shoal_graph *graph,
                                     shoal_train_state *state, shoal_error *err);

#endif
