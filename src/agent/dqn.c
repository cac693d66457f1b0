/* dqn.c: see dqn.h. */
#include "agent/dqn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rehearsal.h"

typedef struct mind {
  shoal_rehearsal rehearsal;
  shoal_brain *target;
  float *values_next;   /* outputs after what was seen next, the policy's */
  float *values_target; /* and the target's */
  float *goals;
  double loss; /* of this round's updates */
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
  /* Many places look alike there, and choices differ little: it takes more care, and less foresight. */
  bool crooked = strncmp(kind->name, "Maze", strlen("Maze")) == 0;
  bool lasting = kind->limit == 0 || kind->limit >= 1000; /* long episodes: more care */
  shoal_rehearsal_defaults(kind, s);
  s->envs = carried ? 8 : 4;
  s->steps = carried ? 8 : 512;
  s->rate = lasting ? 5e-4f : 1e-3f;
  s->clip = 10;
  s->scale_rewards = false;
  s->memory = lasting ? 100000 : 50000;
  s->warmup = 2000;
  s->n_step = 3;
  s->updates = 0.25f;
  s->follow = 0.01f;
  s->epsilon_from = 1;
  s->epsilon_to = lasting ? 0.02f : 0.05f;
  s->epsilon_steps = lasting ? 50000 : 30000;
  s->duelling = true;
  if (!crooked) return;
  s->budget = 1500000;
  s->discount = 0.97f;
  s->anneal = true;
  s->memory = 200000;
  s->n_step = 1;
  s->follow = 0.005f;
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
  size_t n = learner->config.settings.batch, outputs = outputs_of(learner);
  m->values_next = calloc(n, outputs * sizeof(float));
  m->values_target = calloc(n, outputs * sizeof(float));
  m->goals = calloc(n, sizeof(float));
  return m->values_next && m->values_target && m->goals;
}

/* What a round changes beside the memory. */
static uint32_t networks(shoal_learner *learner, shoal_kept *out) {
  static const char *const names[4] = {"policy.weights", "policy.slot1", "policy.slot2", "policy.steps"};
  mind *m = learner->mind;
  uint32_t n = shoal_brain_kept(learner->net, names, out);
  out[n++] = (shoal_kept){.name = "target.weights",
                          .at = shoal_brain_weights(m->target),
                          .count = shoal_brain_weights_count(m->target)};
  return n;
}

static void destroy(shoal_learner *learner) {
  mind *m = learner->mind;
  if (m == NULL) return;
  shoal_rehearsal_release(&m->rehearsal);
  shoal_brain_destroy(m->target);
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
  float share = shoal_dqn_epsilon(s, shoal_replay_lessons(m->rehearsal.replay));
  memcpy(state->weights, shoal_brain_weights(learner->net),
         shoal_brain_weights_count(learner->net) * sizeof(float));
  state->epsilon = shoal_dqn_chance(share, s->hold);
  state->hold = s->hold;
}

static shoal_status create(shoal_learner *learner, shoal_error *err) {
  const shoal_agent_settings *s = &learner->config.settings;
  if (!(s->follow > 0)) return shoal_fail(err, SHOAL_INVALID, "follow (%g) is above 0", (double)s->follow);
  mind *m = calloc(1, sizeof *m);
  if (m == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  learner->mind = m;
  shoal_status status = shoal_rehearsal_init(&m->rehearsal, learner, err);
  if (status == SHOAL_OK) status = create_target(learner, m, err);
  if (status == SHOAL_OK && !reserve(learner, m))
    status = shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for updates of %u rows", s->batch);
  if (status == SHOAL_OK) {
    shoal_kept what[SHOAL_KEPT_MAX];
    status = shoal_rehearsal_guard(&m->rehearsal, what, networks(learner, what), err);
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
  return n + shoal_rehearsal_kept(&m->rehearsal, out + n);
}

/* ---- learning ----------------------------------------------------------------------- */

/* What the network ought to have told of each transition. */
static void set_goals(shoal_learner *learner, mind *m) {
  const shoal_rehearsal *r = &m->rehearsal;
  uint32_t choices = learner->config.kind->choices, outputs = outputs_of(learner), n = r->batch.n;
  bool duelling = learner->config.settings.duelling;
  shoal_brain_run(learner->net, shoal_brain_weights(learner->net), n, r->seen_next, NULL, m->values_next);
  shoal_brain_run(m->target, shoal_brain_weights(m->target), n, r->seen_next, NULL, m->values_target);
  for (uint32_t i = 0; i < n; i++) {
    float value = shoal_dqn_expected(m->values_next + (size_t)i * outputs,
                                     m->values_target + (size_t)i * outputs, choices, duelling);
    m->goals[i] = (float)learner->reward_scale * r->batch.rewards[i] + r->batch.discounts[i] * value;
  }
}

static void judge(void *self, uint32_t first, uint32_t count, const float *out, float *gradient,
                  double sums[8]) {
  const shoal_learner *learner = self;
  const mind *m = learner->mind;
  const shoal_replay_batch *batch = &m->rehearsal.batch;
  uint32_t choices = learner->config.kind->choices, outputs = outputs_of(learner);
  bool duelling = learner->config.settings.duelling;
  float weight = 1 / (float)batch->n, most = (float)(choices - 1);
  for (uint32_t i = 0; i < count; i++) {
    /* Memory may come from a file. */
    uint32_t choice = (uint32_t)fminf(fmaxf(batch->actions[first + i], 0), most);
    const float *row = out + (size_t)i * outputs;
    float error = shoal_dqn_value(row, choices, duelling, choice) - m->goals[first + i];
    sums[0] += shoal_dqn_loss(error, choices, duelling, choice, weight, gradient + (size_t)i * outputs);
  }
}

static void move_target(const shoal_learner *learner, mind *m) {
  float follow = learner->config.settings.follow;
  if (follow <= 1)
    shoal_brain_follow(m->target, learner->net, follow);
  else if ((m->rehearsal.updates + 1) % (uint64_t)follow == 0)
    shoal_brain_follow(m->target, learner->net, 1);
}

static bool update(shoal_learner *learner) {
  mind *m = learner->mind;
  const shoal_rehearsal *r = &m->rehearsal;
  set_goals(learner, m);
  double sums[8];
  shoal_brain_batch batch = {
      .n = r->batch.n, .steps = 1, .x = r->seen, .weights_too = true, .judge = judge, .self = learner};
  shoal_brain_learn(learner->net, &batch, sums);
  if (!isfinite(sums[0]) || !shoal_brain_step(learner->net, r->rate, learner->config.settings.clip))
    return false;
  m->loss += sums[0] / r->batch.n;
  move_target(learner, m);
  return true;
}

static shoal_status learn(shoal_learner *learner, shoal_rollout *const *rollouts, uint32_t count,
                          shoal_round_view *view, shoal_error *err) {
  mind *m = learner->mind;
  uint64_t done;
  m->loss = 0;
  shoal_status status = shoal_rehearsal_round(&m->rehearsal, learner, rollouts, count, update, &done, err);
  if (status != SHOAL_OK) return status;
  tell_actors(learner);
  view->loss = done > 0 ? m->loss / (double)done : NAN;
  view->rate = m->rehearsal.rate;
  view->epsilon = shoal_dqn_epsilon(&learner->config.settings, shoal_replay_lessons(m->rehearsal.replay));
  return SHOAL_OK;
}

const shoal_algorithm_ops shoal_dqn = {
    .spec = spec, .create = create, .destroy = destroy, .round = learn, .kept = kept};
