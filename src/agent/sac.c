/* sac.c: see sac.h.
 *
 * An update, for a batch drawn from memory:
 *
 *   1. the policy acts on what was seen and on what was seen next
 *   2. both targets value the next action; from the lower value follow the goals
 *   3. each critic learns the goals, values the policy's action, and tells the gradient of that
 *   4. the policy steps up the gradient of the lower value, the temperature towards the wanted entropy
 *
 * 2 and 3 are two tasks each, one a critic. */
#include "agent/sac.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/exact_math.h"
#include "agent/rehearsal.h"

static const double LOG_TWO = 0.69314718055994530942, HALF_LOG_TWO_PI = 0.91893853320467274178;
static const double TEMPERATURE_LEAST = 1e-6, TEMPERATURE_MOST = 1e6;

enum { CRITICS = 2 };

typedef struct critic {
  shoal_brain *net, *target;
  float *next_values; /* the target's, of what follows */
  float *values;      /* of the policy's actions */
  float *gradients;   /* of these, with respect to observations and actions */
  double loss;
  bool finite;
} critic;

/* The logarithm of the temperature, and its optimiser's state. */
typedef struct warmth {
  double log, slots[2];
  uint64_t steps;
} warmth;

/* Of a round's updates. */
typedef struct tally {
  double loss, value_loss, entropy;
} tally;

typedef struct mind {
  shoal_rehearsal rehearsal;
  critic critics[CRITICS];
  uint32_t inputs;             /* of a critic: observation and action */
  float *outputs;              /* 2 n: the policy's */
  float *noise, *actions;      /* 2 n */
  float *deviations;           /* 2 n */
  float *log_probs;            /* 2 n */
  float *done, *chosen, *next; /* n inputs of critics: what was done, what the policy does, and does next */
  float *goals;                /* n */
  warmth warmth;
  tally tally;
} mind;

/* ---- actions ------------------------------------------------------------------------ */

static float bound_log(float log_deviation) {
  return fminf(fmaxf(log_deviation, SHOAL_LOG_DEVIATION_MIN), SHOAL_LOG_DEVIATION_MAX);
}

/* log(1 - tanh(u)^2), also where that is tiny. */
static double log_slope(double u) {
  double size = fabs(u);
  return 2 * (LOG_TWO - size - shoal_exact_log(1 + shoal_exact_exp(-2 * size)));
}

static double hyperbolic_tangent(double u) {
  double e = shoal_exact_exp(-2 * fabs(u)), size = (1 - e) / (1 + e);
  return u < 0 ? -size : size;
}

double shoal_sac_draw(uint32_t width, const float *outputs, const float *noise, float *actions,
                      float *deviations) {
  double log_prob = 0;
  for (uint32_t i = 0; i < width; i++) {
    float log_deviation = bound_log(outputs[width + i]);
    deviations[i] = (float)shoal_exact_exp(log_deviation);
    double u = (double)outputs[i] + (double)deviations[i] * noise[i];
    actions[i] = (float)hyperbolic_tangent(u);
    log_prob -= 0.5 * (double)noise[i] * noise[i] + log_deviation + HALF_LOG_TWO_PI + log_slope(u);
  }
  return log_prob;
}

void shoal_sac_climb(uint32_t width, const float *outputs, const float *noise, const float *actions,
                     const float *deviations, const float *by_action, float temperature, float weight,
                     float *gradient) {
  for (uint32_t i = 0; i < width; i++) {
    float a = actions[i], log_deviation = outputs[width + i];
    float by_drawn = temperature * 2 * a - by_action[i] * (1 - a * a);
    float by_log = by_drawn * deviations[i] * noise[i] - temperature;
    /* Outside its bounds a logarithm does nothing; it is let back in. */
    bool stuck = (log_deviation >= SHOAL_LOG_DEVIATION_MAX && by_log < 0) ||
                 (log_deviation <= SHOAL_LOG_DEVIATION_MIN && by_log > 0);
    gradient[i] = weight * by_drawn;
    gradient[width + i] = stuck ? 0 : weight * by_log;
  }
}

float shoal_sac_goal(float reward, float discount, const float values[2], float temperature, float log_prob) {
  return reward + discount * (fminf(values[0], values[1]) - temperature * log_prob);
}

/* ---- set-up ------------------------------------------------------------------------- */

void shoal_sac_defaults(const shoal_env_kind *kind, shoal_agent_settings *s) {
  /* Units that begin anew are long enough to see the ends of episodes. */
  bool carried = kind->release == NULL;
  shoal_rehearsal_defaults(kind, s);
  s->envs = 4;
  s->steps = carried ? 4 : 512;
  s->rate = 1e-3f;
  s->clip = 0;
  s->scale_rewards = true;
  s->entropy = 0.2f;
  s->memory = 100000;
  s->warmup = 500;
  s->n_step = 1;
  s->updates = 0.5f;
  s->follow = 0.005f;
}

static shoal_status spec(const shoal_learner_config *config, shoal_policy_spec *out, shoal_error *err) {
  if (config->kind->choices != 0)
    return shoal_fail(err, SHOAL_INVALID,
                      "sac needs actions that are real numbers, and %s has %u choices; use dqn or ppo",
                      config->kind->name, config->kind->choices);
  *out =
      (shoal_policy_spec){.kind = config->kind, .head = SHOAL_HEAD_SQUASHED, .body = config->settings.body};
  return SHOAL_OK;
}

static shoal_status check_settings(const shoal_learner *learner, shoal_error *err) {
  const shoal_agent_settings *s = &learner->config.settings;
  const shoal_env_kind *kind = learner->config.kind;
  if (!(s->follow > 0 && s->follow <= 1))
    return shoal_fail(err, SHOAL_INVALID, "follow (%g) is above 0 and at most 1", (double)s->follow);
  if (!(s->entropy > 0))
    return shoal_fail(err, SHOAL_INVALID, "entropy (%g), the temperature to begin with, is above 0",
                      (double)s->entropy);
  if (!(isfinite(kind->action_low) && isfinite(kind->action_high) && kind->action_low < kind->action_high))
    return shoal_fail(err, SHOAL_INVALID, "sac needs bounds of actions, and %s has none; use ppo",
                      kind->name);
  return SHOAL_OK;
}

static shoal_status create_critic(shoal_learner *learner, mind *m, uint32_t which, shoal_error *err) {
  static const char *const names[CRITICS] = {"critic 1", "critic 2"};
  critic *c = &m->critics[which];
  uint32_t n = learner->config.settings.batch;
  shoal_key key = shoal_key_make(learner->config.seed, SHOAL_FOR_LEARNING, which, 2);
  shoal_brain_config config = {.name = names[which],
                               .body = learner->config.settings.body,
                               .inputs = m->inputs,
                               .outputs = 1,
                               .steps = 1,
                               .output_scale = 1,
                               .input_gradient = true,
                               .seed = shoal_random_u64(key, 0)};
  shoal_status status = shoal_brain_create(&c->net, &config, err);
  config.input_gradient = false;
  config.runs_only = true;
  if (status == SHOAL_OK) status = shoal_brain_create(&c->target, &config, err);
  if (status != SHOAL_OK) return status;
  shoal_brain_follow(c->target, c->net, 1);
  c->next_values = calloc(n, sizeof(float));
  c->values = calloc(n, sizeof(float));
  c->gradients = calloc(n, m->inputs * sizeof(float));
  return c->next_values && c->values && c->gradients ? SHOAL_OK
                                                     : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

static bool reserve(shoal_learner *learner, mind *m) {
  const shoal_env_kind *kind = learner->config.kind;
  size_t n = learner->config.settings.batch, o = kind->observation, w = kind->action_width;
  m->outputs = calloc(2 * n, 2 * w * sizeof(float));
  m->noise = calloc(2 * n, w * sizeof(float));
  m->actions = calloc(2 * n, w * sizeof(float));
  m->deviations = calloc(2 * n, w * sizeof(float));
  m->log_probs = calloc(2 * n, sizeof(float));
  m->done = calloc(n, (o + w) * sizeof(float));
  m->chosen = calloc(n, (o + w) * sizeof(float));
  m->next = calloc(n, (o + w) * sizeof(float));
  m->goals = calloc(n, sizeof(float));
  return m->outputs && m->noise && m->actions && m->deviations && m->log_probs && m->done && m->chosen &&
         m->next && m->goals;
}

/* What a round changes beside the memory. */
static uint32_t networks(shoal_learner *learner, shoal_kept *out) {
  static const char *const names[1 + CRITICS][4] = {
      {"policy.weights", "policy.slot1", "policy.slot2", "policy.steps"},
      {"critic1.weights", "critic1.slot1", "critic1.slot2", "critic1.steps"},
      {"critic2.weights", "critic2.slot1", "critic2.slot2", "critic2.steps"},
  };
  static const char *const targets[CRITICS] = {"target1.weights", "target2.weights"};
  mind *m = learner->mind;
  uint32_t n = shoal_brain_kept(learner->net, names[0], out);
  for (uint32_t c = 0; c < CRITICS; c++) {
    n += shoal_brain_kept(m->critics[c].net, names[1 + c], out + n);
    shoal_brain *target = m->critics[c].target;
    out[n++] = (shoal_kept){
        .name = targets[c], .at = shoal_brain_weights(target), .count = shoal_brain_weights_count(target)};
  }
  out[n++] =
      (shoal_kept){.name = "sac.temperature", .at = &m->warmth, .count = sizeof m->warmth, .bytes = true};
  return n;
}

static void destroy(shoal_learner *learner) {
  mind *m = learner->mind;
  if (m == NULL) return;
  shoal_rehearsal_release(&m->rehearsal);
  for (uint32_t c = 0; c < CRITICS; c++) {
    shoal_brain_destroy(m->critics[c].net);
    shoal_brain_destroy(m->critics[c].target);
    free(m->critics[c].next_values);
    free(m->critics[c].values);
    free(m->critics[c].gradients);
  }
  float *vectors[] = {m->outputs, m->noise,  m->actions, m->deviations, m->log_probs,
                      m->done,    m->chosen, m->next,    m->goals};
  for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) free(vectors[i]);
  free(m);
  learner->mind = NULL;
}

/* What actors do until the next version. */
static void tell_actors(shoal_learner *learner) {
  shoal_policy_state *state = shoal_policy_state_of(learner->policy);
  memcpy(state->weights, shoal_brain_weights(learner->net),
         shoal_brain_weights_count(learner->net) * sizeof(float));
  state->hold = learner->config.settings.hold;
}

static shoal_status create(shoal_learner *learner, shoal_error *err) {
  const shoal_agent_settings *s = &learner->config.settings;
  shoal_status status = check_settings(learner, err);
  if (status != SHOAL_OK) return status;
  mind *m = calloc(1, sizeof *m);
  if (m == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  learner->mind = m;
  m->inputs = learner->config.kind->observation + learner->config.kind->action_width;
  m->warmth.log = shoal_exact_log(s->entropy);
  status = shoal_rehearsal_init(&m->rehearsal, learner, err);
  for (uint32_t c = 0; c < CRITICS && status == SHOAL_OK; c++) status = create_critic(learner, m, c, err);
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

/* ---- critics ------------------------------------------------------------------------ */

/* What a critic is given: an observation and an action. */
static void join(const shoal_learner *learner, const float *seen, const float *actions, float *out) {
  const mind *m = learner->mind;
  size_t o = learner->config.kind->observation, w = learner->config.kind->action_width;
  for (uint32_t i = 0; i < m->rehearsal.batch.n; i++) {
    memcpy(out + i * (o + w), seen + i * o, o * sizeof *out);
    memcpy(out + i * (o + w) + o, actions + i * w, w * sizeof *out);
  }
}

static double temperature_of(const mind *m) { return shoal_exact_exp(m->warmth.log); }

static void value_next(void *context, uint32_t which, uint32_t thread) {
  (void)thread;
  mind *m = ((shoal_learner *)context)->mind;
  critic *c = &m->critics[which];
  shoal_brain_run(c->target, shoal_brain_weights(c->target), m->rehearsal.batch.n, m->next, NULL,
                  c->next_values);
}

static void set_goals(const shoal_learner *learner, mind *m) {
  float temperature = (float)temperature_of(m), scale = (float)learner->reward_scale;
  for (uint32_t i = 0; i < m->rehearsal.batch.n; i++) {
    const float values[CRITICS] = {m->critics[0].next_values[i], m->critics[1].next_values[i]};
    m->goals[i] = shoal_sac_goal(scale * m->rehearsal.batch.rewards[i], m->rehearsal.batch.discounts[i],
                                 values, temperature, m->log_probs[m->rehearsal.batch.n + i]);
  }
}

/* A critic's lesson: what it is measured by, or the values of what the policy does. */
typedef struct lesson {
  const mind *mind;
  critic *critic;
} lesson;

static void judge_goals(void *self, uint32_t first, uint32_t count, const float *out, float *gradient,
                        double sums[8]) {
  const lesson *l = self;
  float weight = 1 / (float)l->mind->rehearsal.batch.n;
  for (uint32_t i = 0; i < count; i++) {
    float error = out[i] - l->mind->goals[first + i];
    gradient[i] = weight * error;
    sums[0] += 0.5 * (double)error * error;
  }
}

static void judge_values(void *self, uint32_t first, uint32_t count, const float *out, float *gradient,
                         double sums[8]) {
  (void)sums;
  const lesson *l = self;
  memcpy(l->critic->values + first, out, count * sizeof *out);
  for (uint32_t i = 0; i < count; i++) gradient[i] = 1;
}

static void teach_critic(void *context, uint32_t which, uint32_t thread) {
  (void)thread;
  const shoal_learner *learner = context;
  const shoal_agent_settings *s = &learner->config.settings;
  mind *m = learner->mind;
  critic *c = &m->critics[which];
  lesson l = {.mind = m, .critic = c};
  double sums[8];
  shoal_brain_batch goals = {.n = m->rehearsal.batch.n,
                             .steps = 1,
                             .x = m->done,
                             .weights_too = true,
                             .judge = judge_goals,
                             .self = &l};
  shoal_brain_learn(c->net, &goals, sums);
  c->loss = sums[0] / m->rehearsal.batch.n;
  c->finite = isfinite(c->loss) && shoal_brain_step(c->net, m->rehearsal.rate, s->clip);
  if (!c->finite) return;
  shoal_brain_follow(c->target, c->net, s->follow);
  shoal_brain_batch values = {.n = m->rehearsal.batch.n,
                              .steps = 1,
                              .x = m->chosen,
                              .input_gradient = c->gradients,
                              .judge = judge_values,
                              .self = &l};
  shoal_brain_learn(c->net, &values, sums);
}

/* ---- the policy --------------------------------------------------------------------- */

/* The policy acts on the batch; what comes of it goes to the critics. */
static void act(shoal_learner *learner, mind *m) {
  const shoal_rehearsal *r = &m->rehearsal;
  uint32_t n = r->batch.n, w = learner->config.kind->action_width;
  shoal_brain_run(learner->net, shoal_brain_weights(learner->net), 2 * n, r->seen, NULL, m->outputs);
  shoal_key key = shoal_key_make(learner->config.seed, SHOAL_FOR_LEARNING, r->updates, 1);
  shoal_random_normals(key, (size_t)2 * n * w, m->noise);
  for (size_t i = 0; i < 2 * (size_t)n; i++)
    m->log_probs[i] = (float)shoal_sac_draw(w, m->outputs + 2 * i * w, m->noise + i * w, m->actions + i * w,
                                            m->deviations + i * w);
  float low = learner->config.kind->action_low, half = (learner->config.kind->action_high - low) / 2;
  for (size_t i = 0; i < (size_t)n * w; i++) {
    float inside = (r->batch.actions[i] - low) / half - 1;
    r->batch.actions[i] = fminf(fmaxf(inside, -1), 1);
  }
  join(learner, r->seen, r->batch.actions, m->done);
  join(learner, r->seen, m->actions, m->chosen);
  join(learner, r->seen_next, m->actions + (size_t)n * w, m->next);
}

static void judge_actions(void *self, uint32_t first, uint32_t count, const float *out, float *gradient,
                          double sums[8]) {
  const shoal_learner *learner = self;
  const mind *m = learner->mind;
  uint32_t w = learner->config.kind->action_width, o = learner->config.kind->observation;
  float temperature = (float)temperature_of(m), weight = 1 / (float)m->rehearsal.batch.n;
  for (uint32_t i = 0; i < count; i++) {
    size_t row = first + i;
    const critic *lower = &m->critics[m->critics[1].values[row] < m->critics[0].values[row]];
    shoal_sac_climb(w, out + 2 * (size_t)i * w, m->noise + row * w, m->actions + row * w,
                    m->deviations + row * w, lower->gradients + row * m->inputs + o, temperature, weight,
                    gradient + 2 * (size_t)i * w);
    sums[0] += temperature * m->log_probs[row] - lower->values[row];
    sums[1] += m->log_probs[row];
  }
}

/* A step of Adam on the temperature's logarithm: entropy above what is wanted makes it fall. */
static void move_temperature(warmth *w, double entropy, double wanted, double rate) {
  double gradient = entropy - wanted;
  w->steps++;
  w->slots[0] = 0.9 * w->slots[0] + 0.1 * gradient;
  w->slots[1] = 0.999 * w->slots[1] + 0.001 * gradient * gradient;
  double first = w->slots[0] / (1 - shoal_exact_exp((double)w->steps * shoal_exact_log(0.9)));
  double second = w->slots[1] / (1 - shoal_exact_exp((double)w->steps * shoal_exact_log(0.999)));
  double log = w->log - rate * first / (sqrt(second) + 1e-8);
  w->log = fmin(fmax(log, shoal_exact_log(TEMPERATURE_LEAST)), shoal_exact_log(TEMPERATURE_MOST));
}

static bool teach_policy(shoal_learner *learner, mind *m) {
  double sums[8];
  shoal_brain_batch batch = {.n = m->rehearsal.batch.n,
                             .steps = 1,
                             .x = m->rehearsal.seen,
                             .weights_too = true,
                             .judge = judge_actions,
                             .self = learner};
  shoal_brain_learn(learner->net, &batch, sums);
  if (!isfinite(sums[0]) || !shoal_brain_step(learner->net, m->rehearsal.rate, learner->config.settings.clip))
    return false;
  double entropy = -sums[1] / m->rehearsal.batch.n;
  move_temperature(&m->warmth, entropy, -(double)learner->config.kind->action_width, m->rehearsal.rate);
  m->tally.loss += sums[0] / m->rehearsal.batch.n;
  m->tally.entropy += entropy;
  return true;
}

/* ---- a round ------------------------------------------------------------------------ */

static bool update(shoal_learner *learner) {
  mind *m = learner->mind;
  act(learner, m);
  shoal_pool_run(learner->pool, CRITICS, value_next, learner);
  set_goals(learner, m);
  shoal_pool_run(learner->pool, CRITICS, teach_critic, learner);
  if (!m->critics[0].finite || !m->critics[1].finite) return false;
  if (!teach_policy(learner, m)) return false;
  m->tally.value_loss += m->critics[0].loss + m->critics[1].loss;
  return true;
}

static shoal_status learn(shoal_learner *learner, shoal_rollout *const *rollouts, uint32_t count,
                          shoal_round_view *view, shoal_error *err) {
  mind *m = learner->mind;
  uint64_t updates;
  m->tally = (tally){0};
  shoal_status status = shoal_rehearsal_round(&m->rehearsal, learner, rollouts, count, update, &updates, err);
  if (status != SHOAL_OK) return status;
  tell_actors(learner);
  double done = updates > 0 ? (double)updates : NAN;
  view->loss = m->tally.loss / done;
  view->value_loss = m->tally.value_loss / done;
  view->entropy = m->tally.entropy / done;
  view->rate = m->rehearsal.rate;
  return SHOAL_OK;
}

const shoal_algorithm_ops shoal_sac = {
    .spec = spec, .create = create, .destroy = destroy, .round = learn, .kept = kept};
