/* learner.c: see learner.h: what is the same for all algorithms. */
#include "agent/learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/actor_critic.h"
#include "agent/learner_internal.h"
#include "base/assert.h"
#include "base/human.h"

static const double ROUND_BYTES_MAX = 4.0 * (1 << 30);
enum { WEIGHTS_MAX = 1 << 27 }; /* of which there are some ten copies: gradients, moments, versions */

/* ---- set-up ------------------------------------------------------------------------- */

static shoal_brain_config brain_of(const shoal_learner *learner) {
  const shoal_learner_config *config = &learner->config;
  float scale = learner->ops->output_scale;
  return (shoal_brain_config){.name = "policy",
                              .body = config->settings.body,
                              .inputs = config->kind->observation,
                              .outputs = shoal_policy_outputs(&learner->spec),
                              .steps = SHOAL_SEQUENCE_MAX,
                              .output_scale = scale > 0 ? scale : 1,
                              .seed = config->seed,
                              .pool = learner->pool};
}

/* Before anything of that size is made. */
static shoal_status check_weights(const shoal_learner *learner, shoal_error *err) {
  const shoal_brain_config brain = brain_of(learner);
  uint64_t weights;
  uint32_t floats;
  shoal_status status = shoal_brain_measure(&brain, &weights, &floats, err);
  if (status != SHOAL_OK || weights <= WEIGHTS_MAX) return status;
  return shoal_fail(err, SHOAL_LIMIT, "the layers have %s weights, and may have %s; choose smaller ones",
                    shoal_human_count(weights).text, shoal_human_count(WEIGHTS_MAX).text);
}

static shoal_status create_net(shoal_learner *learner, shoal_error *err) {
  const shoal_brain_config brain = brain_of(learner);
  return shoal_brain_create(&learner->net, &brain, err);
}

static shoal_status create_backup(shoal_learner *learner, shoal_error *err) {
  shoal_kept what[SHOAL_KEPT_MAX];
  learner->before = calloc(1, sizeof *learner->before);
  if (learner->before == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for a learner");
  return shoal_backup_init(learner->before, what, shoal_scaling_kept(learner, what), err);
}

static shoal_status create_parts(shoal_learner *learner, shoal_error *err) {
  const shoal_learner_config *config = &learner->config;
  shoal_status status = learner->ops->spec(config, &learner->spec, err);
  if (status == SHOAL_OK) status = check_weights(learner, err);
  if (status == SHOAL_OK && config->threads > 1)
    status = shoal_pool_create(&learner->pool, config->threads, err);
  if (status == SHOAL_OK) status = shoal_policy_create(&learner->policy, &learner->spec, err);
  if (status == SHOAL_OK) status = create_net(learner, err);
  if (status == SHOAL_OK) status = shoal_scaling_create(learner, err);
  if (status == SHOAL_OK) status = create_backup(learner, err);
  if (status != SHOAL_OK) return status;
  memcpy(shoal_policy_state_of(learner->policy)->weights, shoal_brain_weights(learner->net),
         shoal_brain_weights_count(learner->net) * sizeof(float));
  return learner->ops->create(learner, err);
}

/* Of what is seen alone: images are large. */
static shoal_status check_round(const shoal_learner_config *config, shoal_error *err) {
  const shoal_agent_settings *s = &config->settings;
  double steps = (double)s->streams * s->envs * s->steps;
  double each = (double)config->kind->observation * sizeof(float);
  if (steps * each <= ROUND_BYTES_MAX) return SHOAL_OK;
  return shoal_fail(
      err, SHOAL_LIMIT,
      "a round of %u streams of %u environments, %u steps each, is %s, since an observation is %s "
      "numbers; lower streams, envs or steps",
      s->streams, s->envs, s->steps, shoal_human_bytes(steps * each).text,
      shoal_human_count(config->kind->observation).text);
}

shoal_status shoal_learner_create(shoal_learner **out, const shoal_learner_config *config, shoal_error *err) {
  *out = NULL;
  shoal_status status = shoal_agent_settings_check(&config->settings, err);
  if (status == SHOAL_OK) status = check_round(config, err);
  if (status != SHOAL_OK) return status;
  shoal_learner *learner = calloc(1, sizeof *learner);
  if (learner == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for a learner");
  learner->config = *config;
  learner->ops = shoal_algorithm_ops_of(config->settings.algorithm);
  learner->return_mean = NAN;
  status = create_parts(learner, err);
  if (status != SHOAL_OK) {
    shoal_learner_destroy(learner);
    return status;
  }
  *out = learner;
  return SHOAL_OK;
}

void shoal_learner_destroy(shoal_learner *learner) {
  if (learner == NULL) return;
  if (learner->mind) learner->ops->destroy(learner);
  shoal_brain_destroy(learner->net);
  shoal_policy_destroy(learner->policy);
  shoal_scaling_destroy(learner);
  if (learner->before) shoal_backup_release(learner->before);
  free(learner->before);
  shoal_pool_destroy(learner->pool);
  shoal_text_release(&learner->notes);
  free(learner);
}

const shoal_policy_spec *shoal_learner_spec(const shoal_learner *learner) { return &learner->spec; }
shoal_policy *shoal_learner_policy(shoal_learner *learner) { return learner->policy; }
uint64_t shoal_learner_steps(const shoal_learner *learner) { return learner->steps; }
shoal_pool *shoal_learner_pool(shoal_learner *learner) { return learner->pool; }
shoal_text *shoal_learner_notes(shoal_learner *learner) { return &learner->notes; }
void shoal_learner_interrupt(shoal_learner *learner, const shoal_interrupt *interrupt) {
  learner->interrupt = interrupt;
}
void shoal_learner_scored(shoal_learner *learner, double return_mean) { learner->return_mean = return_mean; }

shoal_rollout_shape shoal_learner_shape(const shoal_learner *learner) {
  return (shoal_rollout_shape){.kind = learner->config.kind,
                               .envs = learner->config.settings.envs,
                               .steps = learner->config.settings.steps,
                               .memory_floats = shoal_policy_memory_floats(learner->policy)};
}

double shoal_learner_progress(const shoal_learner *learner) {
  if (learner->config.steps_all == 0) return 0;
  return fmin(1, (double)learner->steps / (double)learner->config.steps_all);
}

float shoal_learner_rate(const shoal_learner *learner) {
  const shoal_agent_settings *s = &learner->config.settings;
  return s->anneal ? s->rate * (float)(1 - shoal_learner_progress(learner)) : s->rate;
}

/* ---- a round ------------------------------------------------------------------------ */

/* What is in a rollout is sound: it was played here, or read by shoal_rollout_read. */
static bool is_fitting(const shoal_learner *learner, const shoal_rollout *rollout) {
  const shoal_rollout_shape shape = shoal_learner_shape(learner);
  return shoal_rollout_is_of(rollout, &shape) && rollout->stream < learner->config.settings.streams;
}

static bool is_fresh(const shoal_learner *learner, const shoal_rollout *rollout) {
  return rollout->version <= learner->rounds &&
         learner->rounds - rollout->version <= learner->config.settings.lag_max;
}

/* What remains of a round, and how far its rollouts lag behind. */
static uint32_t sift(shoal_learner *learner, shoal_rollout *const *rollouts, uint32_t count,
                     shoal_rollout **kept, double *lag) {
  uint32_t kept_count = 0;
  double lags = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!is_fresh(learner, rollouts[i]) || !is_fitting(learner, rollouts[i])) continue;
    lags += (double)(learner->rounds - rollouts[i]->version);
    kept[kept_count++] = rollouts[i];
  }
  *lag = kept_count > 0 ? lags / kept_count : 0;
  return kept_count;
}

/* The scaling that the networks learn with is the one that was played with, but in the first round, where
 * there was none. */
static shoal_status learn(shoal_learner *learner, shoal_rollout *const *rollouts, uint32_t count,
                          shoal_round_view *view, shoal_error *err) {
  bool first = !(learner->seen > 0);
  shoal_backup_take(learner->before);
  shoal_scaling_reward(learner, rollouts, count);
  if (first) {
    shoal_scaling_observe(learner, rollouts, count);
    shoal_scaling_publish(learner);
  }
  shoal_status status = learner->ops->round(learner, rollouts, count, view, err);
  if (status != SHOAL_OK) {
    shoal_backup_restore(learner->before);
    shoal_scaling_publish(learner);
    return status;
  }
  if (!first) {
    shoal_scaling_observe(learner, rollouts, count);
    shoal_scaling_publish(learner);
  }
  for (uint32_t i = 0; i < count; i++)
    learner->steps += (uint64_t)rollouts[i]->shape.envs * rollouts[i]->shape.steps;
  return SHOAL_OK;
}

static const shoal_round_view NOTHING_LEARNED = {.loss = NAN,
                                                 .value_loss = NAN,
                                                 .entropy = NAN,
                                                 .divergence = NAN,
                                                 .clipped = NAN,
                                                 .rate = NAN,
                                                 .epsilon = NAN};

static void next_version(shoal_learner *learner, uint32_t refused, shoal_round_view *out) {
  learner->refused += refused;
  learner->rounds++;
  shoal_policy_state_of(learner->policy)->version = learner->rounds;
  out->version = learner->rounds;
  out->steps = learner->steps;
  out->refused = learner->refused;
}

void shoal_learner_refuse(shoal_learner *learner, uint32_t count, shoal_round_view *out) {
  *out = NOTHING_LEARNED;
  next_version(learner, count, out);
}

shoal_status shoal_learner_round(shoal_learner *learner, shoal_rollout *const *rollouts, uint32_t count,
                                 shoal_round_view *out, shoal_error *err) {
  *out = NOTHING_LEARNED;
  SHOAL_ASSERT(count <= learner->config.settings.streams);
  shoal_rollout **kept = calloc(count + 1, sizeof(shoal_rollout *));
  if (kept == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for a round");
  uint32_t kept_count = sift(learner, rollouts, count, kept, &out->lag);
  shoal_status status = kept_count > 0 ? learn(learner, kept, kept_count, out, err) : SHOAL_OK;
  free(kept);
  if (status != SHOAL_OK) return status;
  next_version(learner, count - kept_count, out);
  return SHOAL_OK;
}

/* ---- what a file keeps -------------------------------------------------------------- */

uint32_t shoal_learner_kept(shoal_learner *learner, shoal_kept out[SHOAL_KEPT_MAX]) {
  uint32_t count = learner->ops->kept(learner, out);
  SHOAL_ASSERT(count + 16 <= SHOAL_KEPT_MAX);
  count += shoal_scaling_kept(learner, out + count);
  out[count++] = (shoal_kept){
      .name = "learner.steps", .at = &learner->steps, .count = sizeof learner->steps, .bytes = true};
  out[count++] = (shoal_kept){
      .name = "learner.rounds", .at = &learner->rounds, .count = sizeof learner->rounds, .bytes = true};
  out[count++] = (shoal_kept){
      .name = "learner.refused", .at = &learner->refused, .count = sizeof learner->refused, .bytes = true};
  return count;
}
