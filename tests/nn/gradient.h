/* gradient.h: the gradient of the mean loss over the first n samples of a source, as one shard, without an update.
 * `gradient` has weights_count floats. */
#ifndef SHOAL_TESTS_NN_GRADIENT_H
#define SHOAL_TESTS_NN_GRADIENT_H

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "nn/trainer.h"

static inline shoal_result gradient_of(shoal_trainer *t, const shoal_source *source, uint32_t n,
                                       float *gradient) {
  const shoal_train_state *state = shoal_trainer_state(t);
  size_t bytes = state->weights_count * sizeof *gradient;
  float *aligned = aligned_alloc(64, bytes);
  SHOAL_ASSERT(aligned != NULL);
  memset(aligned, 0, bytes);
  shoal_sums sums;
  const shoal_pass pass = {.use = SHOAL_PLAN_TRAIN,
                           .source = source,
                           .n = n,
                           .shards = 1,
                           .shards_count = 1,
                           .weights = state->weights,
                           .gradients = &aligned,
                           .sums = &sums};
  shoal_engine_pass(shoal_trainer_engine(t), &pass);
  memcpy(gradient, aligned, bytes);
  free(aligned);
  return shoal_trainer_result(t, &sums);
}

#endif
