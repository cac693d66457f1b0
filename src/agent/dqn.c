/* dqn.c: see dqn.h. */
#include "agent/dqn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/backup.h"
#include "agent/replay.h"

/* Where choices are held because little is found by chance, so many episodes must have ended by themselves
 * before it is worth learning from them. */
enum { GOALS = 10 };

typedef struct mind {
  shoal_replay *replay;
  shoal_brain *target;
  shoal_backup backup; /* of the networks, before a round */
  shoal_replay_batch batch;
  float *seen, *seen_next; /* scaled observations */
  float *values_next;      /* outputs after them, the policy's */
  float *values_target;    /* and the target's */
  float *goals;
  uint64_t updates; /* in all */
} mind;

/* ---- the parts ---------------------------------------------------------------------- */

float shoal_dqn_value(const float *outputs, uint32_t choices, bool duelling, uint32_t choice) {
  if (!duelling) return outputs[choice];
  float sum = 0;
  for (uint32_t i = 0; i < choices; i++) sum += outputs[i];
  return outputs[choices] + (outputs[choice] - sum / (float)choices);
}

uint32_t shoal_dqn_best(const float *outputs, uint32_t choices) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < choices; i++)
    if (outputs[i] > outputs[best]) best = i;
  return best;
}

float shoal_dqn_expected(const float *policy, const float *target, uint32_t choices, bool duelling) {
  return shoal_dqn_value(target, choices, duelling, shoal_dqn_best(policy, choices));
}

double shoal_dqn_loss(float error, uint32_t choices, bool duelling, uint32_t choice, float weight,
                      float *gradient) {
  float size = fabsf(error), slope = weight * (size <= 1 ? error : copysignf(1, error));
  float others = duelling ? -slope / (float)choices : 0;
  for (uint32_t i = 0; i < choices; i++) gradient[i] = others;
  gradient[choice] += slope;
  if (duelling) gradient[choices] = slope;
  return size <= 1 ? 0.5 * (double)size * size : (double)size - 0.5;
}

float shoal_dqn_epsilon(const shoal_agent_settings *s, uint64_t steps) {
  float share = s->epsilon_steps > 0 ? fminf(1, (float)steps / s->epsilon_steps) : 1;
  return s->epsilon_from + share * (s->epsilon_to - s->epsilon_from);
}

float shoal_dqn_chance(float share, uint32_t hold) {
  return share / ((float)hold - share * (float)(hold - 1));
}

/* ---- set-up ------------------------------------------------------------------------- */

void shoal_dqn_defaults(const shoal_env_kind *kind, shoal_agent_settings *s) {
  /* Units that begin anew are long enough to see the ends of episodes. */
  bool carried = kind->release == NULL;
  /* Nothing tells there where the goal is, until it is found. */
  bool hidden = strncmp(kind->name, "MountainCar", strlen("MountainCar")) == 0;
  bool lasting = kind->limit == 0 || kind->limit >= 1000; /* long episodes: more care */
  memcpy(s->body, "dense 64 relu\ndense 64 relu", sizeof "dense 64 relu\ndense 64 relu");
  s->streams = 2;
  s->envs = carried ? 8 : 4;
  s->steps = carried ? 8 : 512;
  s->lag = 1;
  s->lag_max = 64;
  s->discount = 0.99f;
  s->rate = lasting ? 5e-4f : 1e-3f;
  s->clip = 10;
  s->anneal = false;
  s->scale_observations = true;
  s->scale_rewards = false;
  s->memory = lasting ? 100000 : 50000;
  s->batch = 128;
  s->warmup = 2000;
  s->n_step = 3;
  s->updates = 0.25f;
  s->follow = 0.01f;
  s->epsilon_from = 1;
  s->epsilon_to = lasting ? 0.02f : 0.05f;
  s->epsilon_steps = lasting ? 50000 : 30000;
  s->hold = hidden ? 32 : 1;
  s->duelling = true;
}

static shoal_status spec(const shoal_learner_config *config, shoal_policy_spec *out, shoal_error *err) {
  if (config->kind->choices == 0)
    return shoal_fail(err, SHOAL_INVALID,
                      "dqn chooses among actions, and those of %s are real numbers; use sac or ppo",
                      config->kind->name);
  *out = (shoal_policy_spec){.kind = config->kind,
                             .head = SHOAL_HEAD_GREEDY,
                             .duelling = config->settings.duelling,
                             .body = config->settings.body};
  return SHOAL_OK;
}

static uint32_t outputs_of(const shoal_learner *learner) { return shoal_policy_outputs(&learner->spec); }

static shoal_status check_settings(const shoal_learner *learner, shoal_error *err) {
  const shoal_agent_settings *s = &learner->config.settings;
  if (shoal_brain_recurrent(learner->net))
    return shoal_fail(err, SHOAL_INVALID,
                      "dqn learns from single steps, so its body has no recurrent layer; use ppo");
  if (s->batch == 0 || s->hold == 0)
    return shoal_fail(err, SHOAL_INVALID, "batch (%u) and hold (%u) are at least 1", s->batch, s->hold);
  if (!(s->follow > 0 && s->follow < 1e9f) || !(s->updates >= 0 && s->updates <= 1000))
    return shoal_fail(err, SHOAL_INVALID, "follow (%g) is above 0, and updates (%g) are 0 to 1000",
                      (double)s->follow, (double)s->updates);
  return SHOAL_OK;
}

static shoal_status create_target(shoal_learner *learner, mind *m, shoal_error *err) {
  shoal_brain_config config = {.name = "target",
                               .body = learner->config.settings.body,
                               .inputs = learner->config.kind->observation,
                               .outputs = outputs_of(learner),
                               .steps = 1,
                               .output_scale = 1,
                               .runs_only = true,
                               .seed = learner->config.seed,
                               .pool = learner->pool};
  shoal_status status = shoal_brain_create(&m->target, &config, err);
  if (status == SHOAL_OK) shoal_brain_follow(m->target, learner->net, 1);
  return status;
}

static bool reserve(shoal_learner *learner, mind *m) {
  const shoal_env_kind *kind = learner->config.kind;
  size_t n = learner->config.settings.batch, outputs = outputs_of(learner);
  m->seen = calloc(n, kind->observation * sizeof(float));
  m->seen_next = calloc(n, kind->observation * sizeof(float));
  m->values_next = calloc(n, outputs * sizeof(float));
  m->values_target = calloc(n, outputs * sizeof(float));
  m->goals = calloc(n, sizeof(float));
  return shoal_replay_batch_init(&m->batch, kind, (uint32_t)n) && m->seen && m->seen_next && m->values_next &&
         m->values_target && m->goals;
}

/* What a round changes beside the memory. */
static uint32_t networks(shoal_learner *learner, shoal_kept *out) {
  static const char *const names[4] = {"policy.weights", "policy.slot1", "policy.slot2", "policy.steps"};
  mind *m = learner->mind;
  uint32_t n = shoal_brain_kept(learner->net, names, out);
  out[n++] = (shoal_kept){"target.weights", shoal_brain_weights(m->target),
                          shoal_brain_weights_count(m->target), false};
  out[n++] = (shoal_kept){"dqn.updates", &m->updates, sizeof m->updates, true};
  return n;
}

static void destroy(shoal_learner *learner) {
  mind *m = learner->mind;
  if (m == NULL) return;
  shoal_replay_destroy(m->replay);
  shoal_brain_destroy(m->target);
  shoal_backup_release(&m->backup);
  shoal_replay_batch_release(&m->batch);
  free(m->seen);
  free(m->seen_next);
  free(m->values_next);
  free(m->values_target);
  free(m->goals);
  free(m);
  learner->mind = NULL;
}

/* What actors do until the next version. */
static void tell_actors(shoal_learner *learner) {
  shoal_policy_state *state = shoal_policy_state_of(learner->policy);
  const shoal_agent_settings *s = &learner->config.settings;
  const mind *m = learner->mind;
  float share = shoal_dqn_epsilon(s, shoal_replay_lessons(m->replay));
  memcpy(state->weights, shoal_brain_weights(learner->net),
         shoal_brain_weights_count(learner->net) * sizeof(float));
  state->epsilon = shoal_dqn_chance(share, s->hold);
  state->hold = s->hold;
}

static shoal_status create(shoal_learner *learner, shoal_error *err) {
  const shoal_agent_settings *s = &learner->config.settings;
  shoal_replay_config replay = {.kind = learner->config.kind,
                                .capacity = s->memory,
                                .streams = s->streams,
                                .envs = s->envs,
                                .steps = s->steps,
                                .n_step = s->n_step,
                                .discount = s->discount,
                                .warmup = s->warmup,
                                .ended = s->hold > 1 ? GOALS : 0};
  shoal_status status = check_settings(learner, err);
  if (status != SHOAL_OK) return status;
  mind *m = calloc(1, sizeof *m);
  if (m == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  learner->mind = m;
  status = shoal_replay_create(&m->replay, &replay, err);
  if (status == SHOAL_OK) status = create_target(learner, m, err);
  if (status == SHOAL_OK && !reserve(learner, m))
    status = shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for updates of %u rows", s->batch);
  if (status == SHOAL_OK) {
    shoal_kept what[SHOAL_KEPT_MAX];
    status = shoal_backup_init(&m->backup, what, networks(learner, what), err);
  }
  if (status == SHOAL_OK)
    tell_actors(learner);
  else
    destroy(learner);
  return status;
}

static uint32_t kept(shoal_learner *learner, shoal_kept out[SHOAL_KEPT_MAX]) {
  mind *m = learner->mind;
  uint32_t n = networks(learner, out);
  return n + shoal_replay_kept(m->replay, out + n);
}

/* ---- learning ----------------------------------------------------------------------- */

/* What the network ought to have told of each transition. */
static void set_goals(shoal_learner *learner, mind *m) {
  uint32_t choices = learner->config.kind->choices, outputs = outputs_of(learner), n = m->batch.n;
  bool duelling = learner->config.settings.duelling;
  shoal_brain_run(learner->net, shoal_brain_weights(learner->net), n, m->seen_next, NULL, m->values_next);
  shoal_brain_run(m->target, shoal_brain_weights(m->target), n, m->seen_next, NULL, m->values_target);
  for (uint32_t i = 0; i < n; i++) {
    float value = shoal_dqn_expected(m->values_next + (size_t)i * outputs,
                                     m->values_target + (size_t)i * outputs, choices, duelling);
    m->goals[i] = (float)learner->reward_scale * m->batch.rewards[i] + m->batch.discounts[i] * value;
  }
}

static void judge(void *self, uint32_t first, uint32_t count, const float *out, float *gradient,
                  double sums[8]) {
  const shoal_learner *learner = self;
  const mind *m = learner->mind;
  uint32_t choices = learner->config.kind->choices, outputs = outputs_of(learner);
  bool duelling = learner->config.settings.duelling;
  float weight = 1 / (float)m->batch.n, most = (float)(choices - 1);
  for (uint32_t i = 0; i < count; i++) {
    /* Memory may come from a file. */
    uint32_t choice = (uint32_t)fminf(fmaxf(m->batch.actions[first + i], 0), most);
    const float *row = out + (size_t)i * outputs;
    float error = shoal_dqn_value(row, choices, duelling, choice) - m->goals[first + i];
    sums[0] += shoal_dqn_loss(error, choices, duelling, choice, weight, gradient + (size_t)i * outputs);
  }
}

static void move_target(const shoal_learner *learner, mind *m) {
  float follow = learner->config.settings.follow;
  if (follow <= 1)
    shoal_brain_follow(m->target, learner->net, follow);
  else if (m->updates % (uint64_t)follow == 0)
    shoal_brain_follow(m->target, learner->net, 1);
}

/* False: the loss is not finite. */
static bool update(shoal_learner *learner, mind *m, float rate, double *loss) {
  shoal_key key = shoal_key_make(learner->config.seed, SHOAL_FOR_LEARNING, m->updates, 0);
  shoal_replay_draw(m->replay, key, &m->batch);
  shoal_policy_scale(learner->policy, m->batch.n, m->batch.observations, m->seen);
  shoal_policy_scale(learner->policy, m->batch.n, m->batch.nexts, m->seen_next);
  set_goals(learner, m);
  double sums[8];
  shoal_brain_batch batch = {
      .n = m->batch.n, .steps = 1, .x = m->seen, .weights_too = true, .judge = judge, .self = learner};
  shoal_brain_learn(learner->net, &batch, sums);
  if (!isfinite(sums[0]) || !shoal_brain_step(learner->net, rate, learner->config.settings.clip))
    return false;
  *loss += sums[0] / m->batch.n;
  m->updates++;
  move_target(learner, m);
  return true;
}

static shoal_status learn(shoal_learner *learner, shoal_rollout *const *rollouts, uint32_t count,
                          shoal_round_view *view, shoal_error *err) {
  mind *m = learner->mind;
  const shoal_agent_settings *s = &learner->config.settings;
  shoal_status status = shoal_replay_add(m->replay, rollouts, count, err);
  if (status != SHOAL_OK) return status;
  shoal_backup_take(&m->backup);
  uint64_t due = (uint64_t)((double)shoal_replay_lessons(m->replay) * s->updates), from = m->updates;
  float rate = s->anneal ? s->rate * (float)(1 - shoal_learner_progress(learner)) : s->rate;
  double loss = 0;
  while (m->updates < due)
    if (!update(learner, m, rate, &loss)) {
      shoal_backup_restore(&m->backup);
      shoal_replay_undo(m->replay);
      return shoal_fail(err, SHOAL_INVALID,
                        "the loss of dqn is not finite any more; a lower rate than %g may help",
                        (double)rate);
    }
  tell_actors(learner);
  view->loss = m->updates > from ? loss / (double)(m->updates - from) : NAN;
  view->rate = rate;
  view->epsilon = shoal_dqn_epsilon(s, shoal_replay_lessons(m->replay));
  return SHOAL_OK;
}

const shoal_algorithm_ops shoal_dqn = {
    .spec = spec, .create = create, .destroy = destroy, .round = learn, .kept = kept};
