/* rehearsal.c: see rehearsal.h. */
#include "agent/rehearsal.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

/* Where choices or noise are held because little is found by chance, so many episodes must have ended by
 * themselves before it is worth learning from them. */
enum { GOALS = 10 };

/* ---- set-up ------------------------------------------------------------------------- */

void shoal_rehearsal_defaults(const shoal_env_kind *kind, shoal_agent_settings *s) {
  /* Nothing tells there where the goal is, until it is found. */
  bool hidden = strncmp(kind->name, "MountainCar", strlen("MountainCar")) == 0;
  memcpy(s->body, "dense 64 relu\ndense 64 relu", sizeof "dense 64 relu\ndense 64 relu");
  s->streams = 2;
  s->lag = 1;
  s->lag_max = 64;
  s->discount = 0.99f;
  s->anneal = false;
  s->scale_observations = true;
  s->batch = 128;
  s->hold = hidden ? 32 : 1;
}

static shoal_status check(const shoal_learner *learner, shoal_error *err) {
  const shoal_agent_settings *s = &learner->config.settings;
  if (shoal_brain_recurrent(learner->net))
    return shoal_fail(err, SHOAL_INVALID,
                      "%s learns from single steps out of its memory, which have lost what a recurrent layer "
                      "remembers; leave it out of the body, or use ppo%s",
                      shoal_algorithm_name(s->algorithm),
                      learner->config.kind->choices > 0 ? ", vtrace or clone" : " or vtrace");
  if (s->batch == 0 || s->hold == 0)
    return shoal_fail(err, SHOAL_INVALID, "batch (%u) and hold (%u) are at least 1", s->batch, s->hold);
  if (!(s->updates >= 0 && s->updates <= 1000))
    return shoal_fail(err, SHOAL_INVALID, "updates (%g) are 0 to 1000", (double)s->updates);
  return SHOAL_OK;
}

static shoal_status create_replay(shoal_rehearsal *r, const shoal_learner *learner, shoal_error *err) {
  const shoal_agent_settings *s = &learner->config.settings;
  const shoal_replay_config config = {.kind = learner->config.kind,
                                      .capacity = s->memory,
                                      .streams = s->streams,
                                      .envs = s->envs,
                                      .steps = s->steps,
                                      .n_step = s->n_step,
                                      .discount = s->discount,
                                      .warmup = s->warmup,
                                      .ended = s->hold > 1 ? GOALS : 0};
  return shoal_replay_create(&r->replay, &config, err);
}

shoal_status shoal_rehearsal_init(shoal_rehearsal *r, const shoal_learner *learner, shoal_error *err) {
  uint32_t n = learner->config.settings.batch, observation = learner->config.kind->observation;
  *r = (shoal_rehearsal){0};
  shoal_status status = check(learner, err);
  if (status == SHOAL_OK) status = create_replay(r, learner, err);
  if (status != SHOAL_OK) return status;
  r->seen = calloc(2 * (size_t)n, observation * sizeof *r->seen);
  r->seen_next = r->seen ? r->seen + (size_t)n * observation : NULL;
  if (shoal_replay_batch_init(&r->batch, learner->config.kind, n) && r->seen) return SHOAL_OK;
  shoal_rehearsal_release(r);
  return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for updates of %u rows", n);
}

void shoal_rehearsal_release(shoal_rehearsal *r) {
  shoal_replay_destroy(r->replay);
  shoal_replay_batch_release(&r->batch);
  shoal_backup_release(&r->backup);
  free(r->seen);
  *r = (shoal_rehearsal){0};
}

static shoal_kept updates_of(shoal_rehearsal *r) {
  return (shoal_kept){.name = "replay.updates", .at = &r->updates, .count = sizeof r->updates, .bytes = true};
}

shoal_status shoal_rehearsal_guard(shoal_rehearsal *r, const shoal_kept *what, uint32_t count,
                                   shoal_error *err) {
  shoal_kept all[SHOAL_KEPT_MAX];
  SHOAL_ASSERT(count < SHOAL_KEPT_MAX);
  memcpy(all, what, count * sizeof *what);
  all[count] = updates_of(r);
  return shoal_backup_init(&r->backup, all, count + 1, err);
}

uint32_t shoal_rehearsal_kept(shoal_rehearsal *r, shoal_kept *out) {
  out[0] = updates_of(r);
  return 1 + shoal_replay_kept(r->replay, out + 1);
}

/* ---- a round ------------------------------------------------------------------------ */

static void draw(shoal_rehearsal *r, const shoal_learner *learner) {
  shoal_key key = shoal_key_make(learner->config.seed, SHOAL_FOR_LEARNING, r->updates, 0);
  shoal_replay_draw(r->replay, key, &r->batch);
  shoal_policy_scale(learner->policy, r->batch.n, r->batch.observations, r->seen);
  shoal_policy_scale(learner->policy, r->batch.n, r->batch.nexts, r->seen_next);
}

static shoal_status update_until(shoal_rehearsal *r, shoal_learner *learner, uint64_t due,
                                 shoal_rehearsal_update update, shoal_error *err) {
  while (r->updates < due) {
    if (shoal_interrupted(learner->interrupt)) return shoal_fail(err, SHOAL_STOPPED, "stopped");
    draw(r, learner);
    if (!update(learner))
      return shoal_fail(err, SHOAL_INVALID,
                        "a loss of %s is not finite any more; a lower rate than %g may help",
                        shoal_algorithm_name(learner->config.settings.algorithm), (double)r->rate);
    r->updates++;
  }
  return SHOAL_OK;
}

shoal_status shoal_rehearsal_round(shoal_rehearsal *r, shoal_learner *learner, shoal_rollout *const *rollouts,
                                   uint32_t count, shoal_rehearsal_update update, uint64_t *done,
                                   shoal_error *err) {
  const shoal_agent_settings *s = &learner->config.settings;
  shoal_status status = shoal_replay_add(r->replay, rollouts, count, err);
  if (status != SHOAL_OK) return status;
  shoal_backup_take(&r->backup);
  uint64_t due = (uint64_t)((double)shoal_replay_lessons(r->replay) * s->updates), from = r->updates;
  r->rate = shoal_learner_rate(learner);
  status = update_until(r, learner, due, update, err);
  if (status != SHOAL_OK) {
    shoal_backup_restore(&r->backup);
    shoal_replay_undo(r->replay);
    return status;
  }
  *done = r->updates - from;
  return SHOAL_OK;
}
