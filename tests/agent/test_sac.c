/* Soft actor-critic: densities and gradients, goals that are known, time limits, the same bits for any
 * number of threads, files, rounds that fail. */
#include "agent/sac.h"

#include <math.h>

#include "lessons.h"
#include "toys.h"

static shoal_learner_config toy_config(const shoal_env_kind *kind) {
  shoal_learner_config config = {.kind = kind, .seed = 7, .threads = 1};
  shoal_error err = {0};
  lessons_must(shoal_agent_defaults(kind, SHOAL_SAC, &config.settings, &err), &err);
  shoal_agent_settings *s = &config.settings;
  memcpy(s->body, "dense 32 relu", sizeof "dense 32 relu");
  s->discount = 0.9f;
  s->scale_observations = s->scale_rewards = false;
  s->memory = 5000;
  s->batch = 64;
  s->warmup = 100;
  s->follow = 0.05f;
  s->rate = 3e-3f;
  return config;
}

/* ---- its parts ---- */

/* Drawn with noise z, the action's density must be that of z over how far the action moves with it. */
static void the_density_is_that_of_the_noise_over_the_stretch(void **state) {
  (void)state;
  const float outputs[] = {0.3f, -0.5f};
  for (float z = -3; z <= 3; z += 0.25f) {
    float a, b, deviation, step = 1e-2f;
    double log_prob = shoal_sac_draw(1, outputs, &z, &a, &deviation);
    shoal_sac_draw(1, outputs, &(float){z - step}, &a, &deviation);
    shoal_sac_draw(1, outputs, &(float){z + step}, &b, &deviation);
    double density = exp(-0.5 * z * z) / sqrt(2 * 3.14159265358979) / ((b - a) / (2.0 * step));
    assert_float_equal(log_prob, log(density), 2e-3);
    assert_float_equal(deviation, exp(-0.5), 1e-6);
  }
  float a, deviation;
  assert_true(isfinite(shoal_sac_draw(1, (float[]){1e6f, 50}, &(float){3}, &a, &deviation)));
  assert_float_equal(a, 1, 0);
}

/* temperature * log density - value, with a value that is 2 a0 - a1^2. */
static double cost(const float *outputs, const float *noise, float temperature) {
  float actions[2], deviations[2];
  double log_prob = shoal_sac_draw(2, outputs, noise, actions, deviations);
  return temperature * log_prob - (2 * actions[0] - (double)actions[1] * actions[1]);
}

static void the_gradient_is_that_of_the_cost(void **state) {
  (void)state;
  float outputs[] = {0.4f, -0.2f, -0.7f, 0.1f};
  const float noise[] = {0.8f, -1.1f}, temperature = 0.3f, step = 1e-2f;
  float actions[2], deviations[2], gradient[4];
  shoal_sac_draw(2, outputs, noise, actions, deviations);
  const float by_action[] = {2, -2 * actions[1]};
  shoal_sac_climb(2, outputs, noise, actions, deviations, by_action, temperature, 0.5f, gradient);
  for (int i = 0; i < 4; i++) {
    float kept = outputs[i];
    outputs[i] = kept + step;
    double more = cost(outputs, noise, temperature);
    outputs[i] = kept - step;
    double less = cost(outputs, noise, temperature);
    outputs[i] = kept;
    assert_float_equal(gradient[i], 0.5 * (more - less) / (2 * step), 1e-3);
  }
}

static void a_goal_counts_the_lower_value_and_the_entropy(void **state) {
  (void)state;
  /* 1 + 0.9 (5 - 0.5 * 2), whichever critic is the lower; and nothing after the end. */
  assert_float_equal(shoal_sac_goal(1, 0.9f, (float[]){5, 7}, 0.5f, 2), 4.6, 1e-6);
  assert_float_equal(shoal_sac_goal(1, 0.9f, (float[]){8, 5}, 0.5f, 2), 4.6, 1e-6);
  assert_float_equal(shoal_sac_goal(1, 0, (float[]){8, 5}, 0.5f, 2), 1, 0);
}

static void a_deviation_at_its_bound_is_let_back_but_not_pushed_on(void **state) {
  (void)state;
  float outputs[] = {0, 5}, noise = 1, action, deviation, gradient[2];
  shoal_sac_draw(1, outputs, &noise, &action, &deviation);
  assert_float_equal(deviation, exp(2), 1e-4);
  shoal_sac_climb(1, outputs, &noise, &action, &deviation, &(float){0}, 0.001f, 1, gradient);
  assert_true(gradient[1] > 0); /* towards a smaller deviation, since that is more likely to stay within */
  shoal_sac_climb(1, outputs, &(float){0}, &(float){0}, &deviation, &(float){0}, 0.5f, 1, gradient);
  assert_float_equal(gradient[1], 0, 0);
}

/* ---- what it learns ---- */

static void it_finds_actions_within_the_bounds_of_the_environment(void **state) {
  (void)state;
  lessons l;
  shoal_learner_config config = toy_config(&dart);
  lessons_begin(&l, &config);
  double before = lessons_score(&l, 100);
  lessons_rounds(&l, 250);
  double after = lessons_score(&l, 100);
  assert_true(before < -2);
  assert_true(after > -0.1);
  /* The temperature holds the entropy near minus the action's width. */
  assert_float_equal(l.view.entropy, -2, 0.8);
  lessons_end(&l);
}

static void what_comes_after_a_time_limit_has_its_value(void **state) {
  (void)state;
  lessons l;
  shoal_learner_config config = toy_config(&free_treadmill);
  config.settings.entropy = 1e-3f;
  lessons_begin(&l, &config);
  lessons_rounds(&l, 200);
  /* The loss of the policy is minus the value, but for the entropy, which is worth next to nothing here. */
  assert_float_equal(-l.view.loss, 10, 0.7);
  lessons_end(&l);
}

/* ---- what any learner must hold to ---- */

static void any_number_of_threads_gives_the_same_bits(void **state) {
  (void)state;
  shoal_learner_config config = toy_config(&dart);
  config.settings.batch = 256;
  lessons_check_threads(&config, 20);
}

static void a_file_is_enough_to_go_on_exactly(void **state) {
  (void)state;
  shoal_learner_config config = toy_config(&free_treadmill);
  config.settings.n_step = 3;
  config.settings.hold = 4;
  config.settings.warmup = 10;
  lessons_check_files(&config, 20);
}

static void spoil_a_reward(shoal_rollout *rollout) { rollout->rewards[5] = 3e38f; }

static void a_round_that_is_not_finite_is_as_if_it_had_never_been(void **state) {
  (void)state;
  shoal_learner_config config = toy_config(&dart);
  /* Many small updates, so that some go well before one meets that reward. */
  config.seed = 8;
  config.settings.memory = 500;
  config.settings.batch = 4;
  config.settings.updates = 20;
  lessons_check_spoilt(&config, 20, spoil_a_reward, "not finite");
}

static void what_it_cannot_do_is_refused(void **state) {
  (void)state;
  shoal_learner_config config = toy_config(&dart);
  shoal_agent_settings settings;
  shoal_learner *learner;
  shoal_error err = {0};
  assert_int_equal(shoal_agent_defaults(&corridor, SHOAL_SAC, &settings, &err), SHOAL_INVALID);
  assert_non_null(strstr(err.text, "2 choices"));
  memcpy(config.settings.body, "gru 8", sizeof "gru 8");
  assert_int_equal(shoal_learner_create(&learner, &config, &err), SHOAL_INVALID);
  assert_non_null(strstr(err.text, "recurrent"));
  config = toy_config(&dart);
  config.settings.entropy = 0;
  assert_int_equal(shoal_learner_create(&learner, &config, &err), SHOAL_INVALID);
  assert_non_null(strstr(err.text, "entropy"));
}

int main(void) {
  toys_used();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_density_is_that_of_the_noise_over_the_stretch),
      cmocka_unit_test(the_gradient_is_that_of_the_cost),
      cmocka_unit_test(a_goal_counts_the_lower_value_and_the_entropy),
      cmocka_unit_test(a_deviation_at_its_bound_is_let_back_but_not_pushed_on),
      cmocka_unit_test(it_finds_actions_within_the_bounds_of_the_environment),
      cmocka_unit_test(what_comes_after_a_time_limit_has_its_value),
      cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
      cmocka_unit_test(a_file_is_enough_to_go_on_exactly),
      cmocka_unit_test(a_round_that_is_not_finite_is_as_if_it_had_never_been),
      cmocka_unit_test(what_it_cannot_do_is_refused),
  };
  return RUN_TESTS(tests);
}
