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

#include "agent/backup.h"
#include "agent/exact_math.h"
#include "agent/replay.h"

static const double LOG_TWO = 0.69314718055994530942, HALF_LOG_TWO_PI = 0.91893853320467274178;
static const double TEMPERATURE_LEAST = 1e-6, TEMPERATURE_MOST = 1e6;

/* Where noise is held because little is found by chance, so many episodes must have ended by themselves
 * before it is worth learning from them. */
enum { CRITICS = 2, GOALS = 10 };

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

typedef struct mind {
  shoal_replay *replay;
  critic critics[CRITICS];
  shoal_backup backup; /* of all but the memory, before a round */
  shoal_replay_batch batch;
  uint32_t inputs;             /* of a critic: observation and action */
  float *seen;                 /* 2 n: scaled observations, then those that came next */
  float *outputs;              /* 2 n: the policy's */
  float *noise, *actions;      /* 2 n */
  float *deviations;           /* 2 n */
  float *log_probs;            /* 2 n */
  float *done, *chosen, *next; /* n inputs of critics: what was done, what the policy does, and does next */
  float *goals;                /* n */
  warmth warmth;
  float rate;       /* of this round */
  uint64_t updates; /* in all */
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
  /* Nothing tells there where the goal is, until it is found. */
  bool hidden = strncmp(kind->name, "MountainCar", strlen("MountainCar")) == 0;
  memcpy(s->body, "dense 64 relu\ndense 64 relu", sizeof "dense 64 relu\ndense 64 relu");
  s->streams = 2;
  s->envs = 4;
  s->steps = carried ? 4 : 512;
  s->lag = 1;
  s->lag_max = 64;
  s->discount = 0.99f;
  s->rate = 1e-3f;
  s->clip = 0;
  s->anneal = false;
  s->scale_observations = true;
  s->scale_rewards = true;
  s->entropy = 0.2f;
  s->memory = 100000;
  s->batch = 128;
  s->warmup = 500;
  s->n_step = 1;
  s->updates = 0.5f;
  s->follow = 0.005f;
  s->hold = hidden ? 32 : 1;
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
  if (shoal_brain_recurrent(learner->net))
    return shoal_fail(err, SHOAL_INVALID,
                      "sac learns from single steps, so its body has no recurrent layer; use ppo");
  if (s->batch == 0 || s->hold == 0)
    return shoal_fail(err, SHOAL_INVALID, "batch (%u) and hold (%u) are at least 1", s->batch, s->hold);
  if (!(s->follow > 0 && s->follow <= 1) || !(s->updates >= 0 && s->updates <= 1000))
    return shoal_fail(err, SHOAL_INVALID,
                      "follow (%g) is above 0 and at most 1, and updates (%g) are 0 to 1000",
                      (double)s->follow, (double)s->updates);
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
  m->seen = calloc(2 * n, o * sizeof(float));
  m->outputs = calloc(2 * n, 2 * w * sizeof(float));
  m->noise = calloc(2 * n, w * sizeof(float));
  m->actions = calloc(2 * n, w * sizeof(float));
  m->deviations = calloc(2 * n, w * sizeof(float));
  m->log_probs = calloc(2 * n, sizeof(float));
  m->done = calloc(n, (o + w) * sizeof(float));
  m->chosen = calloc(n, (o + w) * sizeof(float));
  m->next = calloc(n, (o + w) * sizeof(float));
  m->goals = calloc(n, sizeof(float));
  return shoal_replay_batch_init(&m->batch, kind, (uint32_t)n) && m->seen && m->outputs && m->noise &&
         m->actions && m->deviations && m->log_probs && m->done && m->chosen && m->next && m->goals;
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
    out[n++] =
        (shoal_kept){targets[c], shoal_brain_weights(target), shoal_brain_weights_count(target), false};
  }
  out[n++] = (shoal_kept){"sac.temperature", &m->warmth, sizeof m->warmth, true};
  out[n++] = (shoal_kept){"sac.updates", &m->updates, sizeof m->updates, true};
  return n;
}

static void destroy(shoal_learner *learner) {
  mind *m = learner->mind;
  if (m == NULL) return;
  shoal_replay_destroy(m->replay);
  for (uint32_t c = 0; c < CRITICS; c++) {
    shoal_brain_destroy(m->critics[c].net);
    shoal_brain_destroy(m->critics[c].target);
    free(m->critics[c].next_values);
    free(m->critics[c].values);
    free(m->critics[c].gradients);
  }
  shoal_backup_release(&m->backup);
  shoal_replay_batch_release(&m->batch);
  float *vectors[] = {m->seen,      m->outputs, m->noise,  m->actions, m->deviations,
                      m->log_probs, m->done,    m->chosen, m->next,    m->goals};
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
  m->inputs = learner->config.kind->observation + learner->config.kind->action_width;
  m->warmth.log = shoal_exact_log(s->entropy);
  status = shoal_replay_create(&m->replay, &replay, err);
  for (uint32_t c = 0; c < CRITICS && status == SHOAL_OK; c++) status = create_critic(learner, m, c, err);
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

/* ---- critics ------------------------------------------------------------------------ */

/* What a critic is given: an observation and an action. */
static void join(const shoal_learner *learner, const float *seen, const float *actions, float *out) {
  const mind *m = learner->mind;
  size_t o = learner->config.kind->observation, w = learner->config.kind->action_width;
  for (uint32_t i = 0; i < m->batch.n; i++) {
    memcpy(out + i * (o + w), seen + i * o, o * sizeof *out);
    memcpy(out + i * (o + w) + o, actions + i * w, w * sizeof *out);
  }
}

static double temperature_of(const mind *m) { return shoal_exact_exp(m->warmth.log); }

static void value_next(void *context, uint32_t which, uint32_t thread) {
  (void)thread;
  mind *m = ((shoal_learner *)context)->mind;
  critic *c = &m->critics[which];
  shoal_brain_run(c->target, shoal_brain_weights(c->target), m->batch.n, m->next, NULL, c->next_values);
}

static void set_goals(const shoal_learner *learner, mind *m) {
  float temperature = (float)temperature_of(m), scale = (float)learner->reward_scale;
  for (uint32_t i = 0; i < m->batch.n; i++) {
    const float values[CRITICS] = {m->critics[0].next_values[i], m->critics[1].next_values[i]};
    m->goals[i] = shoal_sac_goal(scale * m->batch.rewards[i], m->batch.discounts[i], values, temperature,
                                 m->log_probs[m->batch.n + i]);
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
  float weight = 1 / (float)l->mind->batch.n;
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
  shoal_brain_batch goals = {
      .n = m->batch.n, .steps = 1, .x = m->done, .weights_too = true, .judge = judge_goals, .self = &l};
  shoal_brain_learn(c->net, &goals, sums);
  c->loss = sums[0] / m->batch.n;
  c->finite = isfinite(c->loss) && shoal_brain_step(c->net, m->rate, s->clip);
  if (!c->finite) return;
  shoal_brain_follow(c->target, c->net, s->follow);
  shoal_brain_batch values = {.n = m->batch.n,
                              .steps = 1,
                              .x = m->chosen,
                              .input_gradient = c->gradients,
                              .judge = judge_values,
                              .self = &l};
  shoal_brain_learn(c->net, &values, sums);
}

static void for_critics(shoal_learner *learner, shoal_task f) {
  if (learner->pool != NULL) {
    shoal_pool_run(learner->pool, CRITICS, f, learner);
    return;
  }
  for (uint32_t c = 0; c < CRITICS; c++) f(learner, c, 0);
}

/* ---- the policy --------------------------------------------------------------------- */

/* The policy acts on the batch; what comes of it goes to the critics. */
static void act(shoal_learner *learner, mind *m) {
  uint32_t n = m->batch.n, w = learner->config.kind->action_width, o = learner->config.kind->observation;
  shoal_policy_scale(learner->policy, n, m->batch.observations, m->seen);
  shoal_policy_scale(learner->policy, n, m->batch.nexts, m->seen + (size_t)n * o);
  shoal_brain_run(learner->net, shoal_brain_weights(learner->net), 2 * n, m->seen, NULL, m->outputs);
  shoal_key key = shoal_key_make(learner->config.seed, SHOAL_FOR_LEARNING, m->updates, 1);
  shoal_random_normals(key, (size_t)2 * n * w, m->noise);
  for (size_t i = 0; i < 2 * (size_t)n; i++)
    m->log_probs[i] = (float)shoal_sac_draw(w, m->outputs + 2 * i * w, m->noise + i * w, m->actions + i * w,
                                            m->deviations + i * w);
  float low = learner->config.kind->action_low, half = (learner->config.kind->action_high - low) / 2;
  for (size_t i = 0; i < (size_t)n * w; i++) {
    float inside = (m->batch.actions[i] - low) / half - 1;
    m->batch.actions[i] = fminf(fmaxf(inside, -1), 1);
  }
  join(learner, m->seen, m->batch.actions, m->done);
  join(learner, m->seen, m->actions, m->chosen);
  join(learner, m->seen + (size_t)n * o, m->actions + (size_t)n * w, m->next);
}

static void judge_actions(void *self, uint32_t first, uint32_t count, const float *out, float *gradient,
                          double sums[8]) {
  const shoal_learner *learner = self;
  const mind *m = learner->mind;
  uint32_t w = learner->config.kind->action_width, o = learner->config.kind->observation;
  float temperature = (float)temperature_of(m), weight = 1 / (float)m->batch.n;
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

/* Of a round's updates. */
typedef struct tally {
  double loss, value_loss, entropy;
} tally;

static bool teach_policy(shoal_learner *learner, mind *m, tally *all) {
  double sums[8];
  shoal_brain_batch batch = {.n = m->batch.n,
                             .steps = 1,
                             .x = m->seen,
                             .weights_too = true,
                             .judge = judge_actions,
                             .self = learner};
  shoal_brain_learn(learner->net, &batch, sums);
  if (!isfinite(sums[0]) || !shoal_brain_step(learner->net, m->rate, learner->config.settings.clip))
    return false;
  double entropy = -sums[1] / m->batch.n;
  move_temperature(&m->warmth, entropy, -(double)learner->config.kind->action_width, m->rate);
  all->loss += sums[0] / m->batch.n;
  all->entropy += entropy;
  return true;
}

/* ---- a round ------------------------------------------------------------------------ */

/* False: a loss is not finite. */
static bool update(shoal_learner *learner, mind *m, tally *all) {
  shoal_key key = shoal_key_make(learner->config.seed, SHOAL_FOR_LEARNING, m->updates, 0);
  shoal_replay_draw(m->replay, key, &m->batch);
  act(learner, m);
  for_critics(learner, value_next);
  set_goals(learner, m);
  for_critics(learner, teach_critic);
  if (!m->critics[0].finite || !m->critics[1].finite) return false;
  if (!teach_policy(learner, m, all)) return false;
  all->value_loss += m->critics[0].loss + m->critics[1].loss;
  m->updates++;
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
  m->rate = s->anneal ? s->rate * (float)(1 - shoal_learner_progress(learner)) : s->rate;
  tally all = {0};
  while (m->updates < due)
    if (!update(learner, m, &all)) {
      shoal_backup_restore(&m->backup);
      shoal_replay_undo(m->replay);
      return shoal_fail(err, SHOAL_INVALID,
                        "a loss of sac is not finite any more; a lower rate than %g may help",
                        (double)m->rate);
    }
  tell_actors(learner);
  double done = m->updates > from ? (double)(m->updates - from) : NAN;
  view->loss = all.loss / done;
  view->value_loss = all.value_loss / done;
  view->entropy = all.entropy / done;
  view->rate = m->rate;
  return SHOAL_OK;
}

const shoal_algorithm_ops shoal_sac = {
    .spec = spec, .create = create, .destroy = destroy, .round = learn, .kept = kept};
