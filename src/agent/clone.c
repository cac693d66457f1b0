/* clone.c: see clone.h. */
#include "agent/clone.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/backup.h"
#include "kernels/kernels.h"

typedef struct mind {
  shoal_episodes *episodes;
  shoal_backup backup; /* of everything, before a round */
  uint32_t *order;     /* keep_steps */
  float *seen, *x;     /* minibatch: raw observations, and scaled */
  int32_t *labels;
  uint32_t n; /* of the minibatch at hand */
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
  out[n++] = (shoal_kept){"clone.epochs", &m->epochs, sizeof m->epochs, true};
  return n + shoal_episodes_kept(m->episodes, out + n);
}

static void destroy(shoal_learner *learner) {
  mind *m = learner->mind;
  if (m == NULL) return;
  shoal_episodes_destroy(m->episodes);
  shoal_backup_release(&m->backup);
  free(m->order);
  free(m->seen);
  free(m->x);
  free(m->labels);
  free(m);
  learner->mind = NULL;
}

static bool reserve(const shoal_learner *learner, mind *m) {
  const shoal_agent_settings *s = &learner->config.settings;
  size_t row = learner->config.kind->observation * sizeof(float);
  m->order = calloc(s->keep_steps, sizeof *m->order);
  m->seen = calloc(s->minibatch, row);
  m->x = calloc(s->minibatch, row);
  m->labels = calloc(s->minibatch, sizeof *m->labels);
  return m->order && m->seen && m->x && m->labels;
}

static void tell_actors(shoal_learner *learner) {
  memcpy(shoal_policy_state_of(learner->policy)->weights, shoal_brain_weights(learner->net),
         shoal_brain_weights_count(learner->net) * sizeof(float));
}

static shoal_status create(shoal_learner *learner, shoal_error *err) {
  const shoal_agent_settings *s = &learner->config.settings;
  if (shoal_brain_recurrent(learner->net))
    return shoal_fail(err, SHOAL_INVALID,
                      "clone learns from single steps, so its body has no recurrent layer; use ppo");
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

/* ---- learning ----------------------------------------------------------------------- */

static void judge(void *self, uint32_t first, uint32_t count, const float *out, float *gradient,
                  double sums[8]) {
  const shoal_learner *learner = self;
  const mind *m = learner->mind;
  uint64_t correct = 0;
  m->kernels->cross_entropy(count, learner->config.kind->choices, out, m->labels + first, NULL,
                            1 / (float)m->n, gradient, &sums[0], &correct);
}

/* The kept steps in an order of their own for every epoch. */
static void shuffle(const shoal_learner *learner, mind *m, uint32_t count) {
  shoal_key key = shoal_key_make(learner->config.seed, SHOAL_FOR_LEARNING, m->epochs, 0);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t j = (uint32_t)shoal_random_below(key, i, i + 1);
    m->order[i] = m->order[j];
    m->order[j] = i;
  }
}

static void gather(const shoal_learner *learner, mind *m, uint32_t first, uint32_t n) {
  uint32_t width = learner->config.kind->observation;
  float most = (float)(learner->config.kind->choices - 1); /* rows may come from a file */
  for (uint32_t i = 0; i < n; i++) {
    const float *row = shoal_episodes_step(m->episodes, m->order[first + i]);
    memcpy(m->seen + (size_t)i * width, row, width * sizeof *row);
    m->labels[i] = (int32_t)fminf(fmaxf(row[width], 0), most);
  }
  m->n = n;
  shoal_policy_scale(learner->policy, n, m->seen, m->x);
}

/* An epoch over the kept steps. False: the loss is not finite. */
static bool learn_epoch(shoal_learner *learner, mind *m, uint32_t count, float rate, double *loss) {
  const shoal_agent_settings *s = &learner->config.settings;
  *loss = 0;
  shuffle(learner, m, count);
  for (uint32_t first = 0; first < count; first += s->minibatch) {
    gather(learner, m, first, count - first < s->minibatch ? count - first : s->minibatch);
    double sums[8];
    shoal_brain_batch batch = {
        .n = m->n, .steps = 1, .x = m->x, .weights_too = true, .judge = judge, .self = learner};
    shoal_brain_learn(learner->net, &batch, sums);
    if (!isfinite(sums[0]) || !shoal_brain_step(learner->net, rate, s->clip)) return false;
    *loss += sums[0] / count;
  }
  m->epochs++;
  return true;
}

static shoal_status learn(shoal_learner *learner, shoal_rollout *const *rollouts, uint32_t count,
                          shoal_round_view *view, shoal_error *err) {
  mind *m = learner->mind;
  const shoal_agent_settings *s = &learner->config.settings;
  double goal = learner->config.kind->solved, loss = NAN;
  float rate = s->anneal ? s->rate * (float)(1 - shoal_learner_progress(learner)) : s->rate;
  shoal_episodes_view look;
  shoal_backup_take(&m->backup);
  shoal_episodes_look(m->episodes, &look);
  shoal_status status =
      shoal_episodes_add(m->episodes, rollouts, count, shoal_clone_bar(&look, goal, s->keep_share), err);
  if (status != SHOAL_OK) return status;
  shoal_episodes_look(m->episodes, &look);
  shoal_episodes_raise(m->episodes, shoal_clone_bar(&look, goal, s->keep_share), s->minibatch);
  shoal_episodes_look(m->episodes, &look);
  bool finite = true;
  for (uint32_t epoch = 0; epoch < s->epochs && finite && look.steps > 0; epoch++)
    finite = learn_epoch(learner, m, look.steps, rate, &loss);
  if (!finite) {
    shoal_backup_restore(&m->backup);
    return shoal_fail(err, SHOAL_INVALID,
                      "the loss of clone is not finite any more; a lower rate than %g may help",
                      (double)rate);
  }
  tell_actors(learner);
  view->loss = loss;
  view->rate = rate;
  return SHOAL_OK;
}

const shoal_algorithm_ops shoal_clone = {
    .spec = spec, .create = create, .destroy = destroy, .round = learn, .kept = kept};
