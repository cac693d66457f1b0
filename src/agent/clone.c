/* clone.c: see clone.h.
 *
 * What is kept is learned from in sequences: single steps, or with a recurrent body stretches of an episode,
 * each with the state that the network has before it. Kept episodes are whole, so that is found by going
 * through them from their beginnings, once a round. */
#include "agent/clone.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/actor_critic.h"
#include "agent/backup.h"
#include "kernels/kernels.h"

enum { LANES = 64 }; /* episodes that are gone through side by side */

typedef struct mind {
  shoal_episodes *episodes;
  shoal_backup backup;       /* of everything, before a round */
  uint32_t length_max;       /* of a sequence */
  uint32_t width;            /* of a state; 0 unless recurrent */
  shoal_sequence *sequences; /* all that is kept, in its order */
  uint32_t count, *order;    /* of sequences */
  float *states;             /* before each sequence */
  float *lane_states, *lane_out;

  /* minibatch */
  uint32_t n, steps, samples; /* sequences; steps of the longest; of all */
  float *seen, *x;            /* raw observations, and scaled; n x steps */
  float *weights;             /* likewise: 0 behind the end of a sequence */
  int32_t *labels;
  float *batch_states;

  const shoal_kernels *kernels;
  uint64_t epochs; /* in all */
} mind;

double shoal_clone_bar(const shoal_episodes_view *view, double goal, double share) {
  if (view->recent == 0) return -INFINITY;
  double from = view->worst + share * (goal - view->worst);
  return isfinite(from) ? fmax(from, view->recent_mean) : view->recent_mean;
}

/* ---- set-up ------------------------------------------------------------------------- */

void shoal_clone_defaults(const shoal_env_kind *kind, shoal_agent_settings *s) {
  /* Units that begin anew are long enough to see the ends of episodes. */
  bool carried = kind->release == NULL;
  memcpy(s->body, "dense 64 relu\ndense 64 relu", sizeof "dense 64 relu\ndense 64 relu");
  s->streams = 2;
  s->envs = carried ? 16 : 4;
  s->steps = carried ? 128 : 512;
  s->lag = 0;
  s->rate = 1e-3f;
  s->clip = 1;
  s->anneal = false;
  s->scale_observations = true;
  s->scale_rewards = false;
  s->epochs = 5;
  s->minibatch = 1024;
  s->keep_share = 0.25f;
  s->keep_steps = 50000;
}

static shoal_status spec(const shoal_learner_config *config, shoal_policy_spec *out, shoal_error *err) {
  if (config->kind->choices == 0)
    return shoal_fail(err, SHOAL_INVALID,
                      "clone imitates choices, and the actions of %s are real numbers; use sac or ppo",
                      config->kind->name);
  *out = (shoal_policy_spec){
      .kind = config->kind, .head = SHOAL_HEAD_CATEGORICAL, .body = config->settings.body};
  return SHOAL_OK;
}

static uint32_t kept(shoal_learner *learner, shoal_kept out[SHOAL_KEPT_MAX]) {
  static const char *const names[4] = {"policy.weights", "policy.slot1", "policy.slot2", "policy.steps"};
  mind *m = learner->mind;
  uint32_t n = shoal_brain_kept(learner->net, names, out);
  out[n++] = (shoal_kept){.name = "clone.epochs", .at = &m->epochs, .count = sizeof m->epochs, .bytes = true};
  return n + shoal_episodes_kept(m->episodes, out + n);
}

static void destroy(shoal_learner *learner) {
  mind *m = learner->mind;
  if (m == NULL) return;
  shoal_episodes_destroy(m->episodes);
  shoal_backup_release(&m->backup);
  void *vectors[] = {m->sequences, m->order, m->states,  m->lane_states, m->lane_out,
                     m->seen,      m->x,     m->weights, m->labels,      m->batch_states};
  for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) free(vectors[i]);
  free(m);
  learner->mind = NULL;
}

/* Sequences of a minibatch. */
static uint32_t batch_of(const shoal_learner *learner, const mind *m) {
  uint32_t n = learner->config.settings.minibatch / m->length_max;
  return n > 0 ? n : 1;
}

static bool reserve(const shoal_learner *learner, mind *m) {
  const shoal_agent_settings *s = &learner->config.settings;
  size_t row = learner->config.kind->observation * sizeof(float), state = (m->width + 1) * sizeof(float);
  size_t rows = (size_t)batch_of(learner, m) * m->length_max;
  rows = rows > LANES ? rows : LANES;
  m->sequences = calloc(s->keep_steps, sizeof *m->sequences);
  m->order = calloc(s->keep_steps, sizeof *m->order);
  m->states = calloc(m->width > 0 ? s->keep_steps : 1, state);
  m->lane_states = calloc(LANES, state);
  m->lane_out = calloc(LANES, learner->config.kind->choices * sizeof(float));
  m->seen = calloc(rows, row);
  m->x = calloc(rows, row);
  m->weights = calloc(rows, sizeof *m->weights);
  m->labels = calloc(rows, sizeof *m->labels);
  m->batch_states = calloc(batch_of(learner, m), state);
  return m->sequences && m->order && m->states && m->lane_states && m->lane_out && m->seen && m->x &&
         m->weights && m->labels && m->batch_states;
}

static void tell_actors(shoal_learner *learner) {
  memcpy(shoal_policy_state_of(learner->policy)->weights, shoal_brain_weights(learner->net),
         shoal_brain_weights_count(learner->net) * sizeof(float));
}

static shoal_status create(shoal_learner *learner, shoal_error *err) {
  const shoal_agent_settings *s = &learner->config.settings;
  if (s->epochs == 0 || s->minibatch == 0)
    return shoal_fail(err, SHOAL_INVALID, "epochs (%u) and minibatch (%u) are at least 1", s->epochs,
                      s->minibatch);
  shoal_episodes_config episodes = {.kind = learner->config.kind,
                                    .streams = s->streams,
                                    .envs = s->envs,
                                    .steps = s->steps,
                                    .keep_steps = s->keep_steps};
  mind *m = calloc(1, sizeof *m);
  if (m == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  learner->mind = m;
  m->kernels = shoal_kernels_get();
  m->width = shoal_brain_state_floats(learner->net);
  m->length_max = m->width > 0 ? SHOAL_SEQUENCE_MAX : 1;
  shoal_status status = shoal_episodes_create(&m->episodes, &episodes, err);
  if (status == SHOAL_OK && !reserve(learner, m))
    status = shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for minibatches of %u rows", s->minibatch);
  if (status == SHOAL_OK) {
    shoal_kept what[SHOAL_KEPT_MAX];
    status = shoal_backup_init(&m->backup, what, kept(learner, what), err);
  }
  if (status == SHOAL_OK)
    tell_actors(learner);
  else
    destroy(learner);
  return status;
}

/* ---- sequences ---------------------------------------------------------------------- */

static void cut(mind *m, uint32_t episodes) {
  m->count = 0;
  for (uint32_t i = 0; i < episodes; i++) {
    uint32_t first, length;
    shoal_episodes_episode(m->episodes, i, &first, &length);
    for (uint32_t done = 0; done < length; done += m->length_max)
      m->sequences[m->count++] = (shoal_sequence){
          .first = first + done, .length = length - done < m->length_max ? length - done : m->length_max};
  }
}

/* An episode on the way: its step, and the sequence that begins there or later. */
typedef struct lane {
  uint32_t at, sequence, last; /* last: of its sequences */
} lane;

static void begin_lane(const mind *m, uint32_t episode, uint32_t *sequence, lane *out, float *state) {
  uint32_t first, length;
  shoal_episodes_episode(m->episodes, episode, &first, &length);
  uint32_t sequences = (length + m->length_max - 1) / m->length_max;
  *out = (lane){.at = first, .sequence = *sequence, .last = *sequence + sequences - 1};
  *sequence += sequences;
  memset(state, 0, m->width * sizeof *state);
}

/* Keeps the states before sequences that begin where the lanes are, and drops lanes that need not go on.
 * Returns how many are left. */
static uint32_t keep_states(mind *m, lane *lanes, uint32_t count) {
  uint32_t left = 0;
  for (uint32_t i = 0; i < count; i++) {
    lane l = lanes[i];
    const float *state = m->lane_states + (size_t)i * m->width;
    bool begins = l.at == m->sequences[l.sequence].first, done = begins && l.sequence == l.last;
    if (begins) memcpy(m->states + (size_t)l.sequence++ * m->width, state, m->width * sizeof *state);
    if (done) continue;
    lanes[left] = l;
    memmove(m->lane_states + (size_t)left++ * m->width, state, m->width * sizeof *state);
  }
  return left;
}

/* The states before all sequences, with the network as it is. */
static void find_states(shoal_learner *learner, mind *m, uint32_t episodes) {
  uint32_t width = learner->config.kind->observation, next = 0, sequence = 0, count = 0;
  lane lanes[LANES];
  while (next < episodes || count > 0) {
    for (; count < LANES && next < episodes; count++)
      begin_lane(m, next++, &sequence, &lanes[count], m->lane_states + (size_t)count * m->width);
    count = keep_states(m, lanes, count);
    for (uint32_t i = 0; i < count; i++)
      memcpy(m->seen + (size_t)i * width, shoal_episodes_step(m->episodes, lanes[i].at++),
             width * sizeof *m->seen);
    shoal_policy_scale(learner->policy, count, m->seen, m->x);
    shoal_brain_run(learner->net, NULL, count, m->x, m->lane_states, m->lane_out);
  }
}

/* ---- learning ----------------------------------------------------------------------- */

static void judge(void *self, uint32_t first, uint32_t count, const float *out, float *gradient,
                  double sums[8]) {
  const shoal_learner *learner = self;
  const mind *m = learner->mind;
  size_t row = (size_t)first * m->steps;
  uint64_t correct = 0;
  m->kernels->cross_entropy(count * m->steps, learner->config.kind->choices, out, m->labels + row,
                            m->weights + row, 1 / (float)m->samples, gradient, &sums[0], &correct);
}

/* The sequences in an order of their own for every epoch. */
static void shuffle(const shoal_learner *learner, mind *m) {
  shoal_key key = shoal_key_make(learner->config.seed, SHOAL_FOR_LEARNING, m->epochs, 0);
  for (uint32_t i = 0; i < m->count; i++) {
    uint32_t j = (uint32_t)shoal_random_below(key, i, i + 1);
    m->order[i] = m->order[j];
    m->order[j] = i;
  }
}

/* A sequence as row i of the minibatch, filled up with zeros. */
static void gather_sequence(const shoal_learner *learner, mind *m, uint32_t i, uint32_t which) {
  const shoal_sequence *sequence = &m->sequences[which];
  uint32_t width = learner->config.kind->observation;
  float most = (float)(learner->config.kind->choices - 1); /* rows may come from a file */
  for (uint32_t t = 0; t < m->steps; t++) {
    size_t row = (size_t)i * m->steps + t;
    bool within = t < sequence->length;
    const float *step = within ? shoal_episodes_step(m->episodes, sequence->first + t) : NULL;
    if (within)
      memcpy(m->seen + row * width, step, width * sizeof *step);
    else
      memset(m->seen + row * width, 0, width * sizeof *m->seen);
    m->labels[row] = within ? (int32_t)fminf(fmaxf(step[width], 0), most) : 0;
    m->weights[row] = within ? 1 : 0;
  }
  memcpy(m->batch_states + (size_t)i * m->width, m->states + (size_t)which * m->width,
         m->width * sizeof *m->states);
}

static void gather(const shoal_learner *learner, mind *m, uint32_t first, uint32_t n) {
  m->n = n;
  m->steps = 1;
  m->samples = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t length = m->sequences[m->order[first + i]].length;
    m->steps = length > m->steps ? length : m->steps;
    m->samples += length;
  }
  for (uint32_t i = 0; i < n; i++) gather_sequence(learner, m, i, m->order[first + i]);
  shoal_policy_scale(learner->policy, n * m->steps, m->seen, m->x);
}

/* An epoch over the kept steps. */
static shoal_status learn_epoch(shoal_learner *learner, mind *m, uint32_t steps, float rate, double *loss,
                                shoal_error *err) {
  uint32_t most = batch_of(learner, m);
  *loss = 0;
  shuffle(learner, m);
  for (uint32_t first = 0; first < m->count; first += most) {
    if (shoal_interrupted(learner->interrupt)) return shoal_fail(err, SHOAL_STOPPED, "stopped");
    gather(learner, m, first, m->count - first < most ? m->count - first : most);
    double sums[8];
    shoal_brain_batch batch = {.n = m->n,
                               .steps = m->steps,
                               .x = m->x,
                               .state = m->width > 0 ? m->batch_states : NULL,
                               .weights_too = true,
                               .judge = judge,
                               .self = learner};
    shoal_brain_learn(learner->net, &batch, sums);
    if (!isfinite(sums[0]) || !shoal_brain_step(learner->net, rate, learner->config.settings.clip))
      return shoal_fail(err, SHOAL_INVALID,
                        "the loss of clone is not finite any more; a lower rate than %g may help",
                        (double)rate);
    *loss += sums[0] / steps;
  }
  m->epochs++;
  return SHOAL_OK;
}

static shoal_status learn(shoal_learner *learner, shoal_rollout *const *rollouts, uint32_t count,
                          shoal_round_view *view, shoal_error *err) {
  mind *m = learner->mind;
  const shoal_agent_settings *s = &learner->config.settings;
  double goal = learner->config.kind->solved, loss = NAN;
  float rate = shoal_learner_rate(learner);
  shoal_episodes_view look;
  shoal_backup_take(&m->backup);
  shoal_episodes_look(m->episodes, &look);
  shoal_status status =
      shoal_episodes_add(m->episodes, rollouts, count, shoal_clone_bar(&look, goal, s->keep_share), err);
  if (status != SHOAL_OK) return status;
  shoal_episodes_look(m->episodes, &look);
  shoal_episodes_raise(m->episodes, shoal_clone_bar(&look, goal, s->keep_share), s->minibatch);
  shoal_episodes_look(m->episodes, &look);
  cut(m, look.kept);
  if (m->width > 0) find_states(learner, m, look.kept);
  for (uint32_t epoch = 0; epoch < s->epochs && status == SHOAL_OK && look.steps > 0; epoch++)
    status = learn_epoch(learner, m, look.steps, rate, &loss, err);
  if (status != SHOAL_OK) {
    shoal_backup_restore(&m->backup);
    return status;
  }
  tell_actors(learner);
  view->loss = loss;
  view->rate = rate;
  return SHOAL_OK;
}

const shoal_algorithm_ops shoal_clone = {
    .spec = spec, .create = create, .destroy = destroy, .round = learn, .kept = kept};
