/* The actor-critics, ppo and vtrace: gradients, the policy that played has a ratio of one, the same bits with
 * any number of threads, files, rounds that come to nothing; and that they learn. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/actor_critic.h"
#include "agent/likelihood.h"
#include "lessons.h"

/* ---- likelihoods -------------------------------------------------------------------- */

static void a_choices_gradient_is_the_slope(void **state) {
  (void)state;
  enum { CHOICES = 4 };
  const float logits[CHOICES] = {0.3f, -1.2f, 2.0f, 0.1f};
  double probs[CHOICES], sum = 0;
  const double by_log_prob = 0.7, spread = -0.4, step = 1e-3;
  for (int action = 0; action < CHOICES; action++) {
    shoal_likelihood likely = shoal_likelihood_choice(CHOICES, logits, (float)action, probs);
    float gradient[CHOICES];
    shoal_likelihood_choice_back(CHOICES, probs, (float)action, likely.entropy, by_log_prob, spread,
                                 gradient);
    for (int i = 0; i < CHOICES; i++) {
      double at[2], other[CHOICES];
      for (int side = 0; side < 2; side++) {
        float moved[CHOICES];
        memcpy(moved, logits, sizeof moved);
        moved[i] += (float)(side ? step : -step);
        shoal_likelihood there = shoal_likelihood_choice(CHOICES, moved, (float)action, other);
        at[side] = by_log_prob * there.log_prob + spread * there.entropy;
      }
      assert_float_equal(gradient[i], (at[1] - at[0]) / (2 * step), 1e-3);
    }
  }
  for (int i = 0; i < CHOICES; i++) sum += probs[i];
  assert_float_equal(sum, 1, 1e-12);
}

static void a_normal_actions_gradient_is_the_slope(void **state) {
  (void)state;
  enum { WIDTH = 2 };
  const float means[WIDTH] = {0.5f, -1}, logs[WIDTH] = {-0.3f, 0.4f}, actions[WIDTH] = {1, 0.2f};
  const double by_log_prob = 0.7, spread = -0.4, step = 1e-3;
  float gradient[WIDTH], deviations[WIDTH];
  shoal_likelihood_normal_back(WIDTH, means, logs, actions, by_log_prob, spread, gradient, deviations);
  for (int i = 0; i < 2 * WIDTH; i++) {
    double at[2];
    for (int side = 0; side < 2; side++) {
      float moved[2 * WIDTH] = {means[0], means[1], logs[0], logs[1]};
      moved[i] += (float)(side ? step : -step);
      shoal_likelihood there = shoal_likelihood_normal(WIDTH, moved, moved + WIDTH, actions);
      at[side] = by_log_prob * there.log_prob + spread * there.entropy;
    }
    float slope = i < WIDTH ? gradient[i] : deviations[i - WIDTH];
    assert_float_equal(slope, (at[1] - at[0]) / (2 * step), 2e-3);
  }
}

/* ---- learners ----------------------------------------------------------------------- */

static shoal_learner_config config_of(const char *env, shoal_algorithm algorithm, const char *body) {
  shoal_error err = {0};
  shoal_learner_config config = {.kind = shoal_env_find(env), .seed = 3, .steps_all = 100000, .threads = 1};
  lessons_must(shoal_agent_defaults(config.kind, algorithm, &config.settings, &err), &err);
  config.settings.streams = 2;
  config.settings.envs = 4;
  config.settings.steps = 50;
  config.settings.minibatch = 64;
  config.settings.epochs = 3;
  if (body) lessons_must(shoal_agent_set(&config.settings, "body", body, &err), &err);
  return config;
}

static const struct {
  const char *env;
  shoal_algorithm algorithm;
  const char *body;
} cases[] = {
    {"CartPole-v1", SHOAL_PPO, NULL},           {"CartPole-v1", SHOAL_VTRACE, NULL},
    {"CartPole-v1", SHOAL_PPO, "gru 16"},       {"CartPole-v1", SHOAL_VTRACE, "dense 8 tanh;lstm 8"},
    {"Pendulum-v1", SHOAL_PPO, "dense 8 tanh"}, {"Pendulum-v1", SHOAL_VTRACE, "gru 8"},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static shoal_learner_config case_of(int i) {
  return config_of(cases[i].env, cases[i].algorithm, cases[i].body);
}

/* Also through episodes that end within a rollout, and with a state that comes from the one before. */
static void who_played_has_a_ratio_of_one(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++) {
    lessons l;
    shoal_learner_config config = case_of(i);
    lessons_begin(&l, &config);
    lessons_rounds(&l, 3);
    lessons_play(&l);
    shoal_actor_critic_begin(l.learner, l.rollouts, config.settings.streams);
    shoal_actor_critic_ratios(l.learner);
    const shoal_actor_critic *m = l.learner->mind;
    assert_int_equal(m->samples, 400);
    for (uint32_t sample = 0; sample < m->samples; sample++)
      if (!(fabsf(m->log_ratios[sample]) < 1e-5f))
        fail_msg("case %d, sample %u: %g", i, sample, (double)m->log_ratios[sample]);
    lessons_end(&l);
  }
}

/* How far a round of vtrace moves the policy from where it began: the mean of |log ratio|. */
static double moved_by_a_round(float ratio_clip) {
  lessons l;
  shoal_learner_config config = case_of(1);
  config.settings.ratio_clip = ratio_clip;
  lessons_begin(&l, &config);
  lessons_play(&l);
  shoal_actor_critic_begin(l.learner, l.rollouts, config.settings.streams);
  shoal_actor_critic_ratios(l.learner);
  shoal_actor_critic_values(l.learner);
  shoal_actor_critic_advantages(l.learner, true);
  shoal_epoch_sums sums = {0};
  shoal_error err = {0};
  for (uint32_t epoch = 0; epoch < 30; epoch++)
    lessons_must(shoal_actor_critic_epoch(l.learner, epoch, 0.003f, &sums, &err), &err);
  shoal_actor_critic_ratios(l.learner);
  const shoal_actor_critic *m = l.learner->mind;
  double sum = 0;
  for (uint32_t sample = 0; sample < m->samples; sample++) sum += fabs((double)m->log_ratios[sample]);
  double mean = sum / m->samples;
  lessons_end(&l);
  return mean;
}

/* Else a policy that does all right is carried away by noise. */
static void vtrace_stays_near_where_the_round_began(void **state) {
  (void)state;
  double bounded = moved_by_a_round(0.2f), unbounded = moved_by_a_round(10);
  if (!(bounded < 0.3 && unbounded > 2 * bounded))
    fail_msg("%g with a bound, %g without", bounded, unbounded);
}

/* All samples are in sequences, once each, and no sequence goes over the end of an episode. */
static void sequences_cover_a_round(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++) {
    lessons l;
    shoal_learner_config config = case_of(i);
    lessons_begin(&l, &config);
    lessons_play(&l);
    shoal_actor_critic_begin(l.learner, l.rollouts, config.settings.streams);
    const shoal_actor_critic *m = l.learner->mind;
    uint8_t *seen = calloc(m->samples, 1);
    for (uint32_t s = 0; s < m->sequences_count; s++)
      for (uint32_t t = 0; t < m->sequences[s].length; t++) {
        uint32_t sample = m->sequences[s].first + t * m->envs;
        assert_true(sample < m->samples && !seen[sample]);
        seen[sample] = 1;
        bool last = t + 1 == m->sequences[s].length;
        assert_true(last || l.rollouts[sample / m->rows]->ends[sample % m->rows] == SHOAL_GOES_ON);
      }
    for (uint32_t sample = 0; sample < m->samples; sample++) assert_int_equal(seen[sample], 1);
    free(seen);
    lessons_end(&l);
  }
}

static void any_number_of_threads_gives_the_same_bits(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++) {
    shoal_learner_config config = case_of(i);
    lessons_check_threads(&config, 4);
  }
}

static void training_goes_on_from_a_file(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++) {
    shoal_learner_config config = case_of(i);
    lessons_check_files(&config, 3);
  }
}

static void spoil(shoal_rollout *rollout) {
  rollout->rewards[17] = 3e38f;
  rollout->rewards[21] = 3e38f;
}

static void a_round_that_is_not_finite_leaves_no_trace(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++) {
    shoal_learner_config config = case_of(i);
    config.settings.scale_rewards = false;
    lessons_check_spoilt(&config, 2, spoil, "not finite");
  }
}

/* A learner that learns nothing stays near 20 (and near -1200 in Pendulum-v1, which takes long). */
static void they_learn(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    lessons l;
    shoal_learner_config config = case_of(i);
    config.settings.envs = 16;
    config.settings.minibatch = 256;
    config.settings.epochs = 8;
    lessons_begin(&l, &config);
    double before = lessons_score(&l, 20);
    lessons_rounds(&l, 50);
    double after = lessons_score(&l, 20);
    if (!(before < 100 && after > 150)) fail_msg("case %d: from %g to %g", i, before, after);
    lessons_end(&l);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_choices_gradient_is_the_slope),
      cmocka_unit_test(a_normal_actions_gradient_is_the_slope),
      cmocka_unit_test(who_played_has_a_ratio_of_one),
      cmocka_unit_test(vtrace_stays_near_where_the_round_began),
      cmocka_unit_test(sequences_cover_a_round),
      cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
      cmocka_unit_test(training_goes_on_from_a_file),
      cmocka_unit_test(a_round_that_is_not_finite_leaves_no_trace),
      cmocka_unit_test(they_learn),
  };
  return RUN_TESTS(tests);
}
