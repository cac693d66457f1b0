/* played.h: rollouts made by hand. */
#ifndef SHOAL_TESTS_AGENT_PLAYED_H
#define SHOAL_TESTS_AGENT_PLAYED_H

#include <stdlib.h>
#include <string.h>

#include "agent/rollout.h"
#include "check.h"

static void *played_floats(size_t count) {
  void *memory = calloc(count + 1, sizeof(float));
  assert_non_null(memory);
  return memory;
}

/* Empty, but for its shape; room for a last observation and an episode in every row. */
static shoal_rollout *played_create(const shoal_env_kind *kind, uint32_t envs, uint32_t steps,
                                    uint32_t stream, uint64_t number) {
  size_t rows = (size_t)envs * steps;
  shoal_rollout *r = calloc(1, sizeof *r);
  assert_non_null(r);
  *r = (shoal_rollout){
      .shape = {.kind = kind, .envs = envs, .steps = steps}, .number = number, .stream = stream};
  r->observations = played_floats((rows + envs) * kind->observation);
  r->actions = played_floats(rows * kind->action_width);
  r->log_probs = played_floats(rows);
  r->rewards = played_floats(rows);
  r->ends = played_floats(rows);
  r->memory = played_floats(1);
  r->last_rows = played_floats(rows);
  r->lasts = played_floats(rows * kind->observation);
  r->returns = played_floats(rows);
  r->lengths = played_floats(rows);
  return r;
}

static void played_destroy(shoal_rollout *r) {
  free(r->observations);
  free(r->actions);
  free(r->log_probs);
  free(r->rewards);
  free(r->ends);
  free(r->memory);
  free(r->last_rows);
  free(r->lasts);
  free(r->returns);
  free(r->lengths);
  free(r);
}

/* The episode of this row ended so; `last` is what was seen last, `total` and `length` are the episode's.
 * Rows in ascending order. */
static inline void played_end(shoal_rollout *r, uint32_t row, shoal_end end, const float *last, float total,
                              uint32_t length) {
  size_t width = r->shape.kind->observation;
  r->ends[row] = (uint8_t)end;
  r->returns[r->episodes_count] = total;
  r->lengths[r->episodes_count++] = length;
  if (end != SHOAL_TRUNCATED) return;
  r->last_rows[r->lasts_count] = row;
  memcpy(r->lasts + r->lasts_count++ * width, last, width * sizeof *last);
}

#endif
