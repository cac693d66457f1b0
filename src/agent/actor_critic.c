/* actor_critic.c: see actor_critic.h.
 *
 * A recurrent network is walked through a round rollout by rollout, step by step: that gives its outputs, and
 * the state that it has before each sequence. The policy's state before a rollout comes with the rollout. The
 * value network's is kept here, from rollout to rollout of a stream, of which a round may have several; where
 * one is missing between them, it begins with zeros. */
#include "agent/actor_critic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/advantage.h"
#include "agent/exact_math.h"
#include "agent/likelihood.h"
#include "base/power.h"

enum { CHOICES_ON_STACK = 64 };
static const float DEVIATION_LOG_MIN = -5;
static const double BETA1 = 0.9, BETA2 = 0.999, EPSILON = 1e-5;

static shoal_actor_critic *mind_of(const shoal_learner *learner) { return learner->mind; }

/* ---- set-up ------------------------------------------------------------------------- */

shoal_status shoal_actor_critic_spec(const shoal_learner_config *config, shoal_policy_spec *out,
                                     shoal_error *err) {
  bool choices = config->kind->choices > 0;
  if (config->kind->choices > CHOICES_ON_STACK)
    return shoal_fail(err, SHOAL_UNSUPPORTED, "%s has %u choices; %d is the most here", config->kind->name,
                      config->kind->choices, CHOICES_ON_STACK);
  *out = (shoal_policy_spec){.kind = config->kind,
                             .head = choices ? SHOAL_HEAD_CATEGORICAL : SHOAL_HEAD_GAUSSIAN,
                             .body = config->settings.body};
  return SHOAL_OK;
}

static bool reserve_states(shoal_states *states, const shoal_brain *net, uint32_t rows, uint32_t sequences,
                           uint32_t batch) {
  states->width = shoal_brain_state_floats(net);
  states->of_rows = calloc((size_t)rows * states->width + 1, sizeof(float));
  states->of_tails = calloc((size_t)rows * states->width + 1, sizeof(float));
  states->of_sequences = calloc((size_t)sequences * states->width + 1, sizeof(float));
  states->of_batch = calloc((size_t)batch * states->width + 1, sizeof(float));
  return states->of_rows && states->of_tails && states->of_sequences && states->of_batch;
}

static void release_states(shoal_states *states) {
  free(states->of_rows);
  free(states->of_tails);
  free(states->of_sequences);
  free(states->of_batch);
}

static size_t carry_floats(const shoal_learner *learner, const shoal_actor_critic *m) {
  const shoal_agent_settings *s = &learner->config.settings;
  return (size_t)s->streams * s->envs * shoal_brain_state_floats(m->value);
}

static size_t expected_floats(const shoal_learner *learner) {
  const shoal_agent_settings *s = &learner->config.settings;
  return (size_t)s->streams * s->envs * learner->config.kind->observation;
}

/* A minibatch has at most one and a half times as many samples as it should. */
static bool reserve(shoal_learner *learner, shoal_actor_critic *m) {
  const shoal_agent_settings *s = &learner->config.settings;
  uint32_t streams = s->streams, samples = streams * m->rows, observation = learner->config.kind->observation;
  uint32_t batch = samples < 2 * s->minibatch ? samples : 2 * s->minibatch;
  size_t seen = 2 * (size_t)samples + (size_t)streams * s->envs;
  m->seen = calloc(seen * observation, sizeof(float));
  m->values = calloc(seen, sizeof(float));
  m->policy_outputs = calloc(seen * m->outputs, sizeof(float));
  m->log_ratios = calloc(samples, sizeof(float));
  m->advantages = calloc(samples, sizeof(float));
  m->targets = calloc(samples, sizeof(float));
  m->sequences = calloc(samples, sizeof *m->sequences);
  m->order = calloc(samples, sizeof *m->order);
  m->begins = calloc(samples, sizeof *m->begins);
  m->x = calloc((size_t)batch * m->length_max * observation, sizeof(float));
  m->deviations_gradients = calloc((size_t)batch * m->length_max * m->width, sizeof(float));
  m->deviations = calloc(m->width, sizeof(float));
  m->deviations_slots = calloc(2 * (size_t)m->width, sizeof(float));
  m->value_carry = calloc(carry_floats(learner, m) + 1, sizeof(float));
  m->value_carry_new = calloc(carry_floats(learner, m) + 1, sizeof(float));
  m->value_expected = calloc(expected_floats(learner), sizeof(float));
  m->value_expected_new = calloc(expected_floats(learner), sizeof(float));
  return m->seen && m->values && m->policy_outputs && m->log_ratios && m->advantages && m->targets &&
         m->sequences && m->order && m->begins && m->x && m->deviations_gradients && m->deviations &&
         m->deviations_slots && m->value_carry && m->value_carry_new && m->value_expected &&
         m->value_expected_new && reserve_states(&m->policy_states, learner->net, s->envs, samples, batch) &&
         reserve_states(&m->value_states, m->value, s->envs, samples, batch);
}

static shoal_status create_value(shoal_learner *learner, shoal_actor_critic *m, shoal_error *err) {
  const shoal_brain_config config = {.name = "value",
                                     .body = learner->config.settings.body,
                                     .inputs = learner->config.kind->observation,
                                     .outputs = 1,
                                     .steps = SHOAL_SEQUENCE_MAX,
                                     .output_scale = 1,
                                     .seed = learner->config.seed + 1,
                                     .pool = learner->pool};
  return shoal_brain_create(&m->value, &config, err);
}

/* What a round changes. */
static uint32_t networks(shoal_learner *learner, shoal_kept *out) {
  static const char *const policy[4] = {"policy.weights", "policy.slot1", "policy.slot2", "policy.steps"};
  static const char *const value[4] = {"value.weights", "value.slot1", "value.slot2", "value.steps"};
  shoal_actor_critic *m = mind_of(learner);
  uint32_t n = shoal_brain_kept(learner->net, policy, out);
  n += shoal_brain_kept(m->value, value, out + n);
  out[n++] = (shoal_kept){.name = "policy.deviations", .at = m->deviations, .count = m->width};
  out[n++] = (shoal_kept){
      .name = "policy.deviations_slots", .at = m->deviations_slots, .count = 2 * (size_t)m->width};
  if (m->value_states.width == 0) return n;
  out[n++] = (shoal_kept){.name = "value.carry", .at = m->value_carry, .count = carry_floats(learner, m)};
  out[n++] =
      (shoal_kept){.name = "value.expected", .at = m->value_expected, .count = expected_floats(learner)};
  return n;
}

uint32_t shoal_actor_critic_kept(shoal_learner *learner, shoal_kept out[SHOAL_KEPT_MAX]) {
  return networks(learner, out);
}

/* Half of the range, to begin with: everything is tried. */
static float first_deviation(const shoal_env_kind *kind) {
  double half = 0.5 * ((double)kind->action_high - kind->action_low);
  return half > 0 && half < 1e6 ? (float)shoal_exact_log(half) : 0;
}

shoal_status shoal_actor_critic_create(shoal_learner *learner, shoal_error *err) {
  const shoal_agent_settings *s = &learner->config.settings;
  const shoal_env_kind *kind = learner->config.kind;
  shoal_actor_critic *m = calloc(1, sizeof *m);
  if (m == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for a learner");
  learner->mind = m;
  m->length_max = shoal_brain_recurrent(learner->net) ? SHOAL_SEQUENCE_MAX : 1;
  m->rows = s->steps * s->envs;
  m->envs = s->envs;
  m->width = kind->action_width;
  m->outputs = shoal_policy_outputs(&learner->spec);
  shoal_status status = create_value(learner, m, err);
  if (status == SHOAL_OK && !reserve(learner, m))
    status =
        shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for rounds of %u steps: lower streams, envs or steps",
                   s->streams * m->rows);
  shoal_kept what[SHOAL_KEPT_MAX];
  if (status == SHOAL_OK) status = shoal_backup_init(&m->backup, what, networks(learner, what), err);
  if (status != SHOAL_OK) return status;
  for (uint32_t i = 0; i < m->width; i++) m->deviations[i] = first_deviation(kind);
  shoal_actor_critic_end(learner);
  return SHOAL_OK;
}

void shoal_actor_critic_destroy(shoal_learner *learner) {
  shoal_actor_critic *m = mind_of(learner);
  if (m == NULL) return;
  shoal_brain_destroy(m->value);
  shoal_backup_release(&m->backup);
  release_states(&m->policy_states);
  release_states(&m->value_states);
  free(m->seen);
  free(m->values);
  free(m->policy_outputs);
  free(m->log_ratios);
  free(m->advantages);
  free(m->targets);
  free(m->sequences);
  free(m->order);
  free(m->begins);
  free(m->x);
  free(m->deviations_gradients);
  free(m->deviations);
  free(m->deviations_slots);
  free(m->value_carry);
  free(m->value_carry_new);
  free(m->value_expected);
  free(m->value_expected_new);
  free(m);
  learner->mind = NULL;
}

void shoal_actor_critic_end(shoal_learner *learner) {
  shoal_actor_critic *m = mind_of(learner);
  shoal_policy_state *state = shoal_policy_state_of(learner->policy);
  size_t count = shoal_brain_weights_count(learner->net);
  memcpy(state->weights, shoal_brain_weights(learner->net), count * sizeof(float));
  if (learner->spec.head == SHOAL_HEAD_GAUSSIAN)
    memcpy(state->weights + count, m->deviations, m->width * sizeof(float));
  if (m->count > 0 && m->value_states.width > 0) {
    memcpy(m->value_carry, m->value_carry_new, carry_floats(learner, m) * sizeof(float));
    memcpy(m->value_expected, m->value_expected_new, expected_floats(learner) * sizeof(float));
  }
  m->count = 0;
}

static void undo(shoal_learner *learner) { shoal_backup_restore(&mind_of(learner)->backup); }

/* ---- a round ------------------------------------------------------------------------ */

/* Where in `seen` a sample is: every rollout there has one step more. */
static size_t seen_row(const shoal_actor_critic *m, uint32_t sample) {
  return sample + (size_t)(sample / m->rows) * m->envs;
}

static const float *action_of(const shoal_actor_critic *m, uint32_t sample) {
  return m->rollouts[sample / m->rows]->actions + (size_t)(sample % m->rows) * m->width;
}

static void scale_seen(shoal_learner *learner, shoal_actor_critic *m) {
  uint32_t observation = learner->config.kind->observation, rows = m->rows + m->envs;
  float *to = m->seen;
  m->lasts = 0;
  for (uint32_t k = 0; k < m->count; k++, to += (size_t)rows * observation)
    shoal_policy_scale(learner->policy, rows, m->rollouts[k]->observations, to);
  for (uint32_t k = 0; k < m->count; k++) {
    uint32_t lasts = m->rollouts[k]->lasts_count;
    if (lasts > 0) shoal_policy_scale(learner->policy, lasts, m->rollouts[k]->lasts, to);
    to += (size_t)lasts * observation;
    m->lasts += lasts;
  }
}

/* A sequence goes on until the episode ends, or it is long enough. */
static void cut(shoal_actor_critic *m) {
  m->sequences_count = 0;
  for (uint32_t i = 0; i < m->samples; i++) m->begins[i] = UINT32_MAX;
  uint32_t steps = m->rows / m->envs;
  for (uint32_t lane = 0; lane < m->count * m->envs; lane++) {
    uint32_t k = lane / m->envs, first = k * m->rows + lane % m->envs;
    shoal_sequence *current = NULL;
    for (uint32_t t = 0; t < steps; t++) {
      uint32_t sample = first + t * m->envs;
      if (current == NULL) {
        m->begins[sample] = m->sequences_count;
        current = &m->sequences[m->sequences_count++];
        *current = (shoal_sequence){.first = sample};
      }
      current->length++;
      bool ended = m->rollouts[k]->ends[sample % m->rows] != SHOAL_GOES_ON;
      if (ended || current->length == m->length_max) current = NULL;
    }
  }
}

void shoal_actor_critic_begin(shoal_learner *learner, shoal_rollout *const *rollouts, uint32_t count) {
  shoal_actor_critic *m = mind_of(learner);
  m->rollouts = rollouts;
  m->count = count;
  m->samples = count * m->rows;
  shoal_backup_take(&m->backup);
  scale_seen(learner, m);
  cut(m);
}

/* ---- walking a recurrent network ---------------------------------------------------- */

typedef struct walk {
  shoal_learner *learner;
  shoal_brain *net;
  shoal_states *states;
  uint32_t outputs;
  float *out; /* like `seen`, of `outputs` each */
} walk;

static void run_step(const walk *w, uint32_t k, uint32_t t, float *states) {
  const shoal_actor_critic *m = mind_of(w->learner);
  size_t row = (size_t)k * (m->rows + m->envs) + (size_t)t * m->envs;
  shoal_brain_run(w->net, NULL, m->envs, m->seen + row * w->learner->config.kind->observation, states,
                  w->out + row * w->outputs);
}

/* Before step t: states of the sequences that begin there are kept. */
static void keep_states(const walk *w, uint32_t k, uint32_t t) {
  const shoal_actor_critic *m = mind_of(w->learner);
  size_t width = w->states->width;
  for (uint32_t e = 0; e < m->envs; e++) {
    uint32_t begins = m->begins[k * m->rows + t * m->envs + e];
    if (begins == UINT32_MAX) continue;
    memcpy(w->states->of_sequences + begins * width, w->states->of_rows + e * width, width * sizeof(float));
  }
}

/* After step t: an episode that ended leaves nothing behind; where it was cut off, what was seen last is
 * looked at before that. `last` counts these, of all rollouts. */
static void end_episodes(const walk *w, uint32_t k, uint32_t t, uint32_t *last) {
  const shoal_actor_critic *m = mind_of(w->learner);
  const uint8_t *ends = m->rollouts[k]->ends + (size_t)t * m->envs;
  size_t width = w->states->width, observation = w->learner->config.kind->observation;
  size_t lasts = (size_t)m->count * (m->rows + m->envs);
  for (uint32_t e = 0; e < m->envs; e++) {
    if (ends[e] == SHOAL_GOES_ON) continue;
    float *state = w->states->of_rows + e * width;
    if (ends[e] == SHOAL_TRUNCATED) {
      size_t at = lasts + (*last)++;
      shoal_brain_run(w->net, NULL, 1, m->seen + at * observation, state, w->out + at * w->outputs);
    }
    memset(state, 0, width * sizeof(float));
  }
}

/* The states are those before the rollout, and afterwards those behind it. */
static void walk_rollout(const walk *w, uint32_t k, uint32_t *last) {
  const shoal_actor_critic *m = mind_of(w->learner);
  uint32_t steps = m->rows / m->envs;
  for (uint32_t t = 0; t < steps; t++) {
    keep_states(w, k, t);
    run_step(w, k, t, w->states->of_rows);
    end_episodes(w, k, t, last);
  }
  /* What was seen after the last step is seen again at the beginning of the next rollout. */
  memcpy(w->states->of_tails, w->states->of_rows, (size_t)m->envs * w->states->width * sizeof(float));
  run_step(w, k, steps, w->states->of_tails);
}

/* Outputs for all that was seen, where nothing is remembered. */
static void run_all(const walk *w) {
  const shoal_actor_critic *m = mind_of(w->learner);
  shoal_brain_run(w->net, NULL, m->count * (m->rows + m->envs) + m->lasts, m->seen, NULL, w->out);
}

/* What the stream was left with, for each environment that goes on where it was left. */
static void load_value_states(const shoal_learner *learner, const shoal_rollout *rollout) {
  const shoal_actor_critic *m = mind_of(learner);
  size_t width = m->value_states.width, observation = learner->config.kind->observation;
  for (uint32_t e = 0; e < m->envs; e++) {
    size_t at = (size_t)rollout->stream * m->envs + e;
    float *state = m->value_states.of_rows + e * width;
    bool goes_on = memcmp(m->value_expected_new + at * observation, rollout->observations + e * observation,
                          observation * sizeof(float)) == 0;
    if (goes_on)
      memcpy(state, m->value_carry_new + at * width, width * sizeof(float));
    else
      memset(state, 0, width * sizeof(float));
  }
}

static void leave_value_states(const shoal_learner *learner, const shoal_rollout *rollout) {
  const shoal_actor_critic *m = mind_of(learner);
  size_t width = m->value_states.width, observation = learner->config.kind->observation;
  size_t at = (size_t)rollout->stream * m->envs;
  memcpy(m->value_carry_new + at * width, m->value_states.of_rows, m->envs * width * sizeof(float));
  memcpy(m->value_expected_new + at * observation, rollout->observations + m->rows * observation,
         m->envs * observation * sizeof(float));
}

void shoal_actor_critic_values(shoal_learner *learner) {
  shoal_actor_critic *m = mind_of(learner);
  const walk w = {learner, m->value, &m->value_states, 1, m->values};
  if (m->value_states.width == 0) {
    run_all(&w);
    return;
  }
  memcpy(m->value_carry_new, m->value_carry, carry_floats(learner, m) * sizeof(float));
  memcpy(m->value_expected_new, m->value_expected, expected_floats(learner) * sizeof(float));
  for (uint32_t k = 0, last = 0; k < m->count; k++) {
    load_value_states(learner, m->rollouts[k]);
    walk_rollout(&w, k, &last);
    leave_value_states(learner, m->rollouts[k]);
  }
}

/* ---- advantages --------------------------------------------------------------------- */

void shoal_actor_critic_advantages(shoal_learner *learner, bool vtrace) {
  shoal_actor_critic *m = mind_of(learner);
  const shoal_agent_settings *s = &learner->config.settings;
  const float *last_values = m->values + (size_t)m->count * (m->rows + m->envs);
  m->corrected = vtrace;
  for (uint32_t k = 0; k < m->count; k++) {
    const shoal_rollout *rollout = m->rollouts[k];
    size_t at = (size_t)k * m->rows;
    const shoal_advantage_task task = {.envs = m->envs,
                                       .steps = m->rows / m->envs,
                                       .rewards = rollout->rewards,
                                       .reward_scale = (float)learner->reward_scale,
                                       .ends = rollout->ends,
                                       .values = m->values + (size_t)k * (m->rows + m->envs),
                                       .lasts_count = rollout->lasts_count,
                                       .last_rows = rollout->last_rows,
                                       .last_values = last_values,
                                       .discount = s->discount,
                                       .lambda = s->lambda};
    if (vtrace)
      shoal_advantage_vtrace(&task, m->log_ratios + at, m->advantages + at, m->targets + at);
    else
      shoal_advantage_gae(&task, m->advantages + at, m->targets + at);
    last_values += rollout->lasts_count;
  }
}

/* How likely the sample's action is under these outputs; probs is for choices. */
static shoal_likelihood likelihood_of(const shoal_learner *learner, uint32_t sample, const float *outputs,
                                      double *probs) {
  const shoal_actor_critic *m = mind_of(learner);
  const float *action = action_of(m, sample);
  if (learner->spec.head == SHOAL_HEAD_CATEGORICAL)
    return shoal_likelihood_choice(m->outputs, outputs, action[0], probs);
  return shoal_likelihood_normal(m->width, outputs, m->deviations, action);
}

static double log_ratio(const shoal_actor_critic *m, uint32_t sample, double log_prob) {
  return log_prob - m->rollouts[sample / m->rows]->log_probs[sample % m->rows];
}

/* Those that came with the rollout. */
static void load_policy_states(const shoal_learner *learner, const shoal_rollout *rollout) {
  const shoal_actor_critic *m = mind_of(learner);
  size_t width = m->policy_states.width, memory = rollout->shape.memory_floats;
  for (uint32_t e = 0; e < m->envs; e++)
    memcpy(m->policy_states.of_rows + e * width, rollout->memory + e * memory, width * sizeof(float));
}

void shoal_actor_critic_ratios(shoal_learner *learner) {
  shoal_actor_critic *m = mind_of(learner);
  const walk w = {learner, learner->net, &m->policy_states, m->outputs, m->policy_outputs};
  if (m->policy_states.width == 0) run_all(&w);
  for (uint32_t k = 0, last = 0; k < m->count && m->policy_states.width > 0; k++) {
    load_policy_states(learner, m->rollouts[k]);
    walk_rollout(&w, k, &last);
  }
  for (uint32_t sample = 0; sample < m->samples; sample++) {
    double probs[CHOICES_ON_STACK];
    const float *outputs = m->policy_outputs + seen_row(m, sample) * m->outputs;
    m->log_ratios[sample] =
        (float)log_ratio(m, sample, likelihood_of(learner, sample, outputs, probs).log_prob);
  }
}

/* ---- a minibatch -------------------------------------------------------------------- */

/* Sum and squares of the chosen samples' advantages, in their order: made to be around zero, one apart. */
static void measure_advantages(shoal_actor_critic *m) {
  double sum = 0, squares = 0;
  for (uint32_t i = 0; i < m->chosen_count; i++) {
    const shoal_sequence *sequence = &m->sequences[m->chosen[i]];
    for (uint32_t t = 0; t < sequence->length; t++) sum += m->advantages[sequence->first + t * m->envs];
  }
  m->advantage_mean = sum / m->chosen_samples;
  for (uint32_t i = 0; i < m->chosen_count; i++) {
    const shoal_sequence *sequence = &m->sequences[m->chosen[i]];
    for (uint32_t t = 0; t < sequence->length; t++) {
      double apart = m->advantages[sequence->first + t * m->envs] - m->advantage_mean;
      squares += apart * apart;
    }
  }
  m->advantage_scale = 1 / (sqrt(squares / m->chosen_samples) + 1e-8);
}

static void gather_states(const shoal_actor_critic *m, const shoal_states *states) {
  for (uint32_t i = 0; i < m->chosen_count && states->width > 0; i++)
    memcpy(states->of_batch + (size_t)i * states->width,
           states->of_sequences + (size_t)m->chosen[i] * states->width, states->width * sizeof(float));
}

/* What was seen in the chosen sequences, shorter ones filled up with zeros. */
static void gather(shoal_learner *learner, shoal_actor_critic *m) {
  size_t observation = learner->config.kind->observation;
  m->steps = 1;
  m->chosen_samples = 0;
  for (uint32_t i = 0; i < m->chosen_count; i++) {
    uint32_t length = m->sequences[m->chosen[i]].length;
    m->steps = length > m->steps ? length : m->steps;
    m->chosen_samples += length;
  }
  for (uint32_t i = 0; i < m->chosen_count; i++) {
    const shoal_sequence *sequence = &m->sequences[m->chosen[i]];
    float *to = m->x + (size_t)i * m->steps * observation;
    for (uint32_t t = 0; t < sequence->length; t++, to += observation)
      memcpy(to, m->seen + seen_row(m, sequence->first + t * m->envs) * observation,
             observation * sizeof(float));
    memset(to, 0, (m->steps - sequence->length) * observation * sizeof(float));
  }
  gather_states(m, &m->policy_states);
  gather_states(m, &m->value_states);
  measure_advantages(m);
}

/* How the loss changes with the logarithm of an action's probability. The clipped ratio has no slope where
 * the policy has already gone further than it should on this round's word. */
static double slope_of(double ratio_clip, double moved, double advantage, double sums[8]) {
  double ratio = shoal_exact_exp(moved);
  double low = 1 - ratio_clip, high = 1 + ratio_clip;
  double cut_ratio = ratio < low ? low : ratio > high ? high : ratio;
  bool is_cut = cut_ratio * advantage < ratio * advantage;
  sums[0] -= is_cut ? cut_ratio * advantage : ratio * advantage;
  sums[3] += cut_ratio != ratio;
  return is_cut ? 0 : -advantage * ratio;
}

/* sums: loss, entropy, divergence, clipped. */
static void judge_sample(const shoal_learner *learner, uint32_t sample, const float *out, float *gradient,
                         float *deviations_gradient, double sums[8]) {
  const shoal_actor_critic *m = mind_of(learner);
  const shoal_agent_settings *s = &learner->config.settings;
  double probs[CHOICES_ON_STACK];
  shoal_likelihood likely = likelihood_of(learner, sample, out, probs);
  double apart = log_ratio(m, sample, likely.log_prob), each = 1.0 / m->chosen_samples;
  double advantage = (m->advantages[sample] - m->advantage_mean) * m->advantage_scale;
  double moved = m->corrected ? apart - m->log_ratios[sample] : apart;
  double slope = each * slope_of(s->ratio_clip, moved, advantage, sums);
  double spread = -each * s->entropy;
  sums[1] += likely.entropy;
  sums[2] += shoal_exact_exp(apart) - 1 - apart;
  if (learner->spec.head == SHOAL_HEAD_CATEGORICAL)
    shoal_likelihood_choice_back(m->outputs, probs, action_of(m, sample)[0], likely.entropy, slope, spread,
                                 gradient);
  else
    shoal_likelihood_normal_back(m->width, out, m->deviations, action_of(m, sample), slope, spread, gradient,
                                 deviations_gradient);
}

static void judge_policy(void *self, uint32_t first, uint32_t count, const float *out, float *gradient,
                         double sums[8]) {
  const shoal_learner *learner = self;
  const shoal_actor_critic *m = mind_of(learner);
  for (uint32_t i = 0; i < count; i++) {
    const shoal_sequence *sequence = &m->sequences[m->chosen[first + i]];
    for (uint32_t t = 0; t < sequence->length; t++) {
      size_t row = (size_t)i * m->steps + t, at = (size_t)(first + i) * m->steps + t;
      judge_sample(learner, sequence->first + t * m->envs, out + row * m->outputs,
                   gradient + row * m->outputs, m->deviations_gradients + at * m->width, sums);
    }
  }
}

static void judge_value(void *self, uint32_t first, uint32_t count, const float *out, float *gradient,
                        double sums[8]) {
  const shoal_learner *learner = self;
  const shoal_actor_critic *m = mind_of(learner);
  double each = 2.0 * learner->config.settings.value_weight / m->chosen_samples;
  for (uint32_t i = 0; i < count; i++) {
    const shoal_sequence *sequence = &m->sequences[m->chosen[first + i]];
    for (uint32_t t = 0; t < sequence->length; t++) {
      size_t row = (size_t)i * m->steps + t;
      double apart = (double)out[row] - m->targets[sequence->first + t * m->envs];
      gradient[row] = (float)(each * apart);
      sums[0] += apart * apart;
    }
  }
}

/* Adam's step for the logarithms of deviations, as far as they may go. `step` counts from 1. */
static void step_deviations(shoal_actor_critic *m, float rate, uint64_t step) {
  double correction1 = 1 - shoal_power(BETA1, step), correction2 = 1 - shoal_power(BETA2, step);
  for (uint32_t d = 0; d < m->width; d++) {
    double gradient = 0;
    for (uint32_t i = 0; i < m->chosen_count; i++)
      for (uint32_t t = 0; t < m->sequences[m->chosen[i]].length; t++)
        gradient += m->deviations_gradients[((size_t)i * m->steps + t) * m->width + d];
    float *first = &m->deviations_slots[d], *second = &m->deviations_slots[m->width + d];
    *first = (float)(BETA1 * *first + (1 - BETA1) * gradient);
    *second = (float)(BETA2 * *second + (1 - BETA2) * gradient * gradient);
    double moved = m->deviations[d] - rate * (*first / correction1) / (sqrt(*second / correction2) + EPSILON);
    m->deviations[d] = fminf(fmaxf((float)moved, DEVIATION_LOG_MIN), SHOAL_LOG_DEVIATION_MAX);
  }
}

static bool learn_minibatch(shoal_learner *learner, float rate, shoal_epoch_sums *sums) {
  shoal_actor_critic *m = mind_of(learner);
  float clip = learner->config.settings.clip;
  double policy[8], value[8];
  shoal_brain_batch batch = {.n = m->chosen_count,
                             .steps = m->steps,
                             .x = m->x,
                             .state = m->policy_states.width > 0 ? m->policy_states.of_batch : NULL,
                             .weights_too = true,
                             .judge = judge_policy,
                             .self = learner};
  shoal_brain_learn(learner->net, &batch, policy);
  if (!isfinite(policy[0]) || !shoal_brain_step(learner->net, rate, clip)) return false;
  if (learner->spec.head == SHOAL_HEAD_GAUSSIAN) step_deviations(m, rate, *shoal_brain_steps(learner->net));
  batch.judge = judge_value;
  batch.state = m->value_states.width > 0 ? m->value_states.of_batch : NULL;
  shoal_brain_learn(m->value, &batch, value);
  if (!isfinite(value[0]) || !shoal_brain_step(m->value, rate, clip)) return false;
  sums->samples += m->chosen_samples;
  sums->loss += policy[0];
  sums->entropy += policy[1];
  sums->divergence += policy[2];
  sums->clipped += policy[3];
  sums->value_loss += value[0];
  return true;
}

/* ---- an epoch ----------------------------------------------------------------------- */

static void shuffle(shoal_learner *learner, shoal_actor_critic *m, uint32_t epoch) {
  shoal_key key = shoal_key_make(learner->config.seed, SHOAL_FOR_LEARNING, learner->rounds, epoch);
  for (uint32_t i = 0; i < m->sequences_count; i++) {
    uint32_t j = (uint32_t)shoal_random_below(key, i, i + 1);
    m->order[i] = m->order[j];
    m->order[j] = i;
  }
}

shoal_status shoal_actor_critic_epoch(shoal_learner *learner, uint32_t epoch, float rate,
                                      shoal_epoch_sums *sums, shoal_error *err) {
  shoal_actor_critic *m = mind_of(learner);
  uint32_t wanted = learner->config.settings.minibatch;
  uint32_t batches = (m->samples + wanted / 2) / wanted;
  if (batches > m->sequences_count) batches = m->sequences_count;
  if (batches == 0) batches = 1;
  shuffle(learner, m, epoch);
  for (uint32_t b = 0; b < batches; b++) {
    uint32_t start = (uint32_t)((uint64_t)m->sequences_count * b / batches);
    uint32_t end = (uint32_t)((uint64_t)m->sequences_count * (b + 1) / batches);
    if (shoal_interrupted(learner->interrupt)) return shoal_fail(err, SHOAL_STOPPED, "stopped");
    m->chosen = m->order + start;
    m->chosen_count = end - start;
    gather(learner, m);
    if (!learn_minibatch(learner, rate, sums))
      return shoal_fail(err, SHOAL_INVALID,
                        "the loss of %s is not finite any more; a lower rate than %g may help",
                        shoal_algorithm_name(learner->config.settings.algorithm), (double)rate);
  }
  return SHOAL_OK;
}

static void tell(const shoal_epoch_sums *sums, float rate, shoal_round_view *view) {
  view->loss = sums->loss / sums->samples;
  view->value_loss = sums->value_loss / sums->samples;
  view->entropy = sums->entropy / sums->samples;
  view->divergence = sums->divergence / sums->samples;
  view->clipped = sums->clipped / sums->samples;
  view->rate = rate;
}

shoal_status shoal_actor_critic_learn(shoal_learner *learner, shoal_rollout *const *rollouts, uint32_t count,
                                      bool vtrace, shoal_round_view *view, shoal_error *err) {
  float rate = shoal_learner_rate(learner);
  shoal_epoch_sums sums = {0};
  shoal_actor_critic_begin(learner, rollouts, count);
  if (vtrace) shoal_actor_critic_ratios(learner);
  shoal_actor_critic_values(learner);
  shoal_actor_critic_advantages(learner, vtrace);
  if (!vtrace && shoal_brain_recurrent(learner->net)) shoal_actor_critic_ratios(learner);
  for (uint32_t epoch = 0; epoch < learner->config.settings.epochs; epoch++) {
    sums = (shoal_epoch_sums){0};
    shoal_status status = shoal_actor_critic_epoch(learner, epoch, rate, &sums, err);
    if (status == SHOAL_OK) continue;
    undo(learner);
    return status;
  }
  shoal_actor_critic_end(learner);
  tell(&sums, rate, view);
  return SHOAL_OK;
}
