/* scaling.c: means and spreads of what is seen and of what is earned, so that networks meet numbers around
 * one.
 *
 * Each round's numbers are summed up in the order of the rollouts, and joined with those before (Chan's way
 * of joining two sets of a count, a mean and a sum of squared distances). */
#include <math.h>
#include <stdlib.h>

#include "agent/learner_internal.h"

static const double LEAST_VARIANCE = 1e-8;

shoal_status shoal_scaling_create(shoal_learner *learner, shoal_error *err) {
  const shoal_agent_settings *settings = &learner->config.settings;
  uint32_t width = learner->config.kind->observation;
  learner->reward_scale = 1;
  learner->mean = calloc(width, sizeof(double));
  learner->squares = calloc(width, sizeof(double));
  learner->running_returns = calloc((size_t)settings->streams * settings->envs, sizeof(float));
  if (learner->mean && learner->squares && learner->running_returns) return SHOAL_OK;
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for a learner");
}

void shoal_scaling_destroy(shoal_learner *learner) {
  free(learner->mean);
  free(learner->squares);
  free(learner->running_returns);
}

/* A set of numbers, by its count, mean and squared distances from it. */
typedef struct set {
  double count, mean, squares;
} set;

static void join(set *to, const set *from) {
  if (from->count == 0) return;
  double count = to->count + from->count, apart = from->mean - to->mean;
  to->mean += apart * (from->count / count);
  to->squares += from->squares + apart * apart * (to->count * (from->count / count));
  to->count = count;
}

/* Column `d` of the rollouts' observations. */
static set column_of(shoal_rollout *const *rollouts, uint32_t count, uint32_t d, uint32_t width) {
  set out = {0};
  double sum = 0;
  for (uint32_t k = 0; k < count; k++) {
    size_t rows = (size_t)rollouts[k]->shape.steps * rollouts[k]->shape.envs;
    for (size_t row = 0; row < rows; row++) sum += rollouts[k]->observations[row * width + d];
    out.count += (double)rows;
  }
  out.mean = out.count > 0 ? sum / out.count : 0;
  for (uint32_t k = 0; k < count; k++) {
    size_t rows = (size_t)rollouts[k]->shape.steps * rollouts[k]->shape.envs;
    for (size_t row = 0; row < rows; row++) {
      double apart = rollouts[k]->observations[row * width + d] - out.mean;
      out.squares += apart * apart;
    }
  }
  return out;
}

void shoal_scaling_observe(shoal_learner *learner, shoal_rollout *const *rollouts, uint32_t count) {
  uint32_t width = learner->config.kind->observation;
  double seen = learner->seen;
  for (uint32_t d = 0; d < width; d++) {
    set all = {learner->seen, learner->mean[d], learner->squares[d]};
    set round = column_of(rollouts, count, d, width);
    join(&all, &round);
    learner->mean[d] = all.mean;
    learner->squares[d] = all.squares;
    seen = all.count;
  }
  learner->seen = seen;
}

void shoal_scaling_publish(shoal_learner *learner) {
  shoal_policy_state *state = shoal_policy_state_of(learner->policy);
  if (!learner->config.settings.scale_observations) return;
  bool any = learner->seen > 0;
  state->seen = any ? (uint64_t)learner->seen : 0;
  for (uint32_t d = 0; d < learner->config.kind->observation; d++) {
    state->mean[d] = any ? (float)learner->mean[d] : 0;
    state->scale[d] = any ? (float)(1 / sqrt(learner->squares[d] / learner->seen + LEAST_VARIANCE)) : 1;
  }
}

/* What has been earned up to each step, discounted as if time ran backwards: its spread is that of
 * returns. */
void shoal_scaling_reward(shoal_learner *learner, shoal_rollout *const *rollouts, uint32_t count) {
  const shoal_agent_settings *settings = &learner->config.settings;
  if (!settings->scale_rewards) return;
  set all = {learner->returns_seen, learner->returns_mean, learner->returns_squares};
  for (uint32_t k = 0; k < count; k++) {
    const shoal_rollout *rollout = rollouts[k];
    uint32_t envs = rollout->shape.envs;
    float *running = learner->running_returns + (size_t)rollout->stream * envs;
    for (uint32_t row = 0; row < rollout->shape.steps * envs; row++) {
      float *earned = &running[row % envs];
      *earned = *earned * settings->discount + rollout->rewards[row];
      const set one = {1, *earned, 0};
      join(&all, &one);
      if (rollout->ends[row] != SHOAL_GOES_ON) *earned = 0;
    }
  }
  learner->returns_seen = all.count;
  learner->returns_mean = all.mean;
  learner->returns_squares = all.squares;
  learner->reward_scale = all.count > 0 ? 1 / sqrt(all.squares / all.count + LEAST_VARIANCE) : 1;
}

static shoal_kept bytes_of(const char *name, void *at, size_t count) {
  return (shoal_kept){.name = name, .at = at, .count = count, .bytes = true};
}

uint32_t shoal_scaling_kept(shoal_learner *learner, shoal_kept out[SHOAL_KEPT_MAX]) {
  const shoal_agent_settings *settings = &learner->config.settings;
  size_t width = learner->config.kind->observation;
  uint32_t count = 0;
  out[count++] = bytes_of("scaling.seen", &learner->seen, sizeof(double));
  out[count++] = bytes_of("scaling.mean", learner->mean, width * sizeof(double));
  out[count++] = bytes_of("scaling.squares", learner->squares, width * sizeof(double));
  out[count++] = bytes_of("scaling.reward", &learner->reward_scale, sizeof(double));
  out[count++] = bytes_of("scaling.returns_seen", &learner->returns_seen, sizeof(double));
  out[count++] = bytes_of("scaling.returns_mean", &learner->returns_mean, sizeof(double));
  out[count++] = bytes_of("scaling.returns_squares", &learner->returns_squares, sizeof(double));
  out[count++] = (shoal_kept){.name = "scaling.running",
                              .at = learner->running_returns,
                              .count = (size_t)settings->streams * settings->envs};
  return count;
}
