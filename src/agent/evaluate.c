/* evaluate.c: how good a policy is; see rollout.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rollout.h"
#include "base/assert.h"

enum { ENVS_MAX = 100 };

/* Environments at play; the sums are over episodes that are done. */
typedef struct contest {
  shoal_policy *policy;
  const shoal_env_kind *kind;
  shoal_vector *vector;
  uint32_t envs, episodes, counted; /* episodes: that are asked for */
  uint32_t running;                 /* environments whose share is not done */
  float *memory, *actions, *rewards;
  uint8_t *ends;
  double *returns;             /* of the episodes that run */
  uint32_t *lengths, *to_play; /* to_play: episodes of each environment's share */
  double sum, steps, least, most;
  double middle, squares; /* the mean so far, and the squares of what returns differ from it */
} contest;

static shoal_status open(contest *c, shoal_error *err) {
  shoal_status status = shoal_vector_create(&c->vector, c->kind, c->envs, err);
  if (status != SHOAL_OK) return status;
  size_t floats = shoal_policy_memory_floats(c->policy);
  c->memory = calloc(c->envs * floats + 1, sizeof *c->memory);
  c->actions = calloc((size_t)c->envs * c->kind->action_width, sizeof *c->actions);
  c->rewards = calloc(c->envs, sizeof *c->rewards);
  c->ends = calloc(c->envs, sizeof *c->ends);
  c->returns = calloc(c->envs, sizeof *c->returns);
  c->lengths = calloc(c->envs, sizeof *c->lengths);
  c->to_play = calloc(c->envs, sizeof *c->to_play);
  if (c->memory == NULL || c->actions == NULL || c->rewards == NULL || c->ends == NULL ||
      c->returns == NULL || c->lengths == NULL || c->to_play == NULL)
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for an evaluation");
  for (uint32_t e = 0; e < c->envs; e++) c->to_play[e] = c->episodes / c->envs + (e < c->episodes % c->envs);
  return SHOAL_OK;
}

static void release(contest *c) {
  shoal_vector_destroy(c->vector);
  free(c->memory);
  free(c->actions);
  free(c->rewards);
  free(c->ends);
  free(c->returns);
  free(c->lengths);
  free(c->to_play);
}

static void count_episode(contest *c, uint32_t e) {
  double value = c->returns[e];
  c->counted++;
  c->sum += value;
  double off = value - c->middle;
  c->middle += off / c->counted;
  c->squares += off * (value - c->middle);
  c->steps += c->lengths[e];
  c->least = fmin(c->least, value);
  c->most = fmax(c->most, value);
  if (--c->to_play[e] == 0) c->running--;
}

/* One that no limit would ever end. It cannot be begun anew alone, so it is the last of its environment. */
static void cut_off(contest *c, uint32_t e) {
  if (c->to_play[e] == 0) return;
  c->to_play[e] = 1;
  count_episode(c, e);
}

/* After a step. */
static void note_ends(contest *c) {
  uint32_t floats = shoal_policy_memory_floats(c->policy);
  for (uint32_t e = 0; e < c->envs; e++) {
    c->returns[e] += (double)c->rewards[e];
    c->lengths[e]++;
    if (c->ends[e] == SHOAL_GOES_ON) {
      if (c->kind->limit == 0 && c->lengths[e] >= SHOAL_EVALUATION_STEPS_MAX) cut_off(c, e);
      continue;
    }
    if (c->to_play[e] > 0) count_episode(c, e);
    c->returns[e] = 0;
    c->lengths[e] = 0;
    memset(c->memory + (size_t)e * floats, 0, floats * sizeof *c->memory);
  }
}

shoal_status shoal_evaluate_policy(shoal_policy *policy, const shoal_env_kind *kind, uint32_t episodes,
                                   uint64_t seed, const shoal_interrupt *interrupt, shoal_evaluation *out,
                                   shoal_error *err) {
  SHOAL_ASSERT(episodes > 0);
  contest c = {.policy = policy,
               .kind = kind,
               .envs = episodes < ENVS_MAX ? episodes : ENVS_MAX,
               .episodes = episodes,
               .least = INFINITY,
               .most = -INFINITY};
  shoal_status status = open(&c, err);
  if (status == SHOAL_OK) {
    shoal_key key = shoal_key_make(seed, SHOAL_FOR_ACTING, 0, 0);
    c.running = c.envs;
    shoal_vector_reset(c.vector, seed);
    for (uint64_t step = 0; c.running > 0 && !shoal_interrupted(interrupt); step++) {
      shoal_policy_act(policy, c.envs, shoal_vector_observations(c.vector), c.memory, key, step, true,
                       c.actions, NULL);
      shoal_vector_step(c.vector, c.actions, c.rewards, c.ends);
      note_ends(&c);
    }
    status = shoal_vector_check(c.vector, err);
    if (status == SHOAL_OK && c.running > 0) status = shoal_fail(err, SHOAL_STOPPED, "stopped");
  }
  if (status == SHOAL_OK) {
    *out = (shoal_evaluation){.episodes = c.counted,
                              .mean = c.sum / c.counted,
                              .deviation = sqrt(c.squares / c.counted),
                              .least = c.least,
                              .most = c.most,
                              .mean_length = c.steps / c.counted};
  }
  release(&c);
  return status;
}
