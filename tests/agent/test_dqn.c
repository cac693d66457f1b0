/* Q-learning from memory: values that can be worked out by hand, time limits, the same bits for any number of
 * threads, files, rounds that fail; and CartPole. */
#include "agent/dqn.h"

#include <math.h>

#include "lessons.h"
#include "toys.h"

static shoal_learner_config config_of(const shoal_env_kind *kind) {
  shoal_learner_config config = {.kind = kind, .seed = 7, .threads = 1};
  shoal_error err = {0};
  lessons_must(shoal_agent_defaults(kind, SHOAL_DQN, &config.settings, &err), &err);
  return config;
}

/* A small and quick one that always explores. */
static shoal_learner_config toy_config(const shoal_env_kind *kind, bool duelling, uint32_t n_step) {
  shoal_learner_config config = config_of(kind);
  shoal_agent_settings *s = &config.settings;
  memcpy(s->body, "dense 16 tanh", sizeof "dense 16 tanh");
  s->envs = 4;
  s->discount = 0.9f;
  s->scale_observations = false;
  s->memory = 5000;
  s->batch = 64;
  s->warmup = 200;
  s->n_step = n_step;
  s->follow = 0.05f;
  s->rate = 3e-3f;
  s->epsilon_to = 1;
  s->duelling = duelling;
  return config;
}

static void outputs_of(lessons *l, uint32_t n, const float *seen, float *out) {
  shoal_brain_run(l->learner->net, shoal_brain_weights(l->learner->net), n, seen, NULL, out);
}

/* ---- its parts ---- */

static void a_duelling_value_is_that_of_the_state_and_the_advantage_over_the_mean(void **state) {
  (void)state;
  const float outputs[4] = {1, 2, 6, 10};
  assert_float_equal(shoal_dqn_value(outputs, 3, true, 0), 10 + 1 - 3, 1e-6);
  assert_float_equal(shoal_dqn_value(outputs, 3, true, 2), 10 + 6 - 3, 1e-6);
  assert_float_equal(shoal_dqn_value(outputs, 3, false, 2), 6, 0);
  assert_int_equal(shoal_dqn_best(outputs, 3), 2);
  assert_int_equal(shoal_dqn_best((float[]){5, 5, 1}, 3), 0);
}

static void the_policy_chooses_and_the_target_values(void **state) {
  (void)state;
  const float policy[] = {1, 3, 2, 50}, target[] = {9, 4, 2, 10};
  assert_float_equal(shoal_dqn_expected(policy, target, 3, false), 4, 0);
  assert_float_equal(shoal_dqn_expected(policy, target, 3, true), 10 + 4 - 5, 1e-6);
}

static void the_gradient_is_that_of_the_loss(void **state) {
  (void)state;
  const float goals[] = {0.3f, 5, -4};
  for (int which = 0; which < 6; which++) {
    bool duelling = which % 2;
    float goal = goals[which / 2], outputs[4] = {0.5f, -0.25f, 1, 0.75f}, gradient[4], unused[4];
    float value = shoal_dqn_value(outputs, 3, duelling, 1);
    shoal_dqn_loss(value - goal, 3, duelling, 1, 1, gradient);
    for (uint32_t i = 0; i < (duelling ? 4 : 3); i++) {
      float kept = outputs[i], step = 1e-3f;
      outputs[i] = kept + step;
      double more =
          shoal_dqn_loss(shoal_dqn_value(outputs, 3, duelling, 1) - goal, 3, duelling, 1, 1, unused);
      outputs[i] = kept - step;
      double less =
          shoal_dqn_loss(shoal_dqn_value(outputs, 3, duelling, 1) - goal, 3, duelling, 1, 1, unused);
      outputs[i] = kept;
      assert_float_equal(gradient[i], (more - less) / (2 * step), 2e-3);
    }
  }
}

static void random_choices_become_rarer_and_held_ones_are_begun_less_often(void **state) {
  (void)state;
  shoal_agent_settings s = {.epsilon_from = 1, .epsilon_to = 0.2f, .epsilon_steps = 100};
  assert_float_equal(shoal_dqn_epsilon(&s, 0), 1, 0);
  assert_float_equal(shoal_dqn_epsilon(&s, 50), 0.6, 1e-6);
  assert_float_equal(shoal_dqn_epsilon(&s, 100000), 0.2, 1e-6);
  assert_float_equal(shoal_dqn_chance(1, 32), 1, 1e-6);
  assert_float_equal(shoal_dqn_chance(0.3f, 1), 0.3, 1e-6);
  /* Of c begun, each lasts ten steps; of 1 - c, one: 10 c / (10 c + 1 - c) of all steps. */
  float c = shoal_dqn_chance(0.25f, 10);
  assert_float_equal(10 * c / (9 * c + 1), 0.25, 1e-6);
}

/* ---- values ---- */

static void assert_corridor_is_known(bool duelling, uint32_t n_step) {
  lessons l;
  shoal_learner_config config = toy_config(&corridor, duelling, n_step);
  lessons_begin(&l, &config);
  lessons_rounds(&l, 300);
  float seen[CORRIDOR * CORRIDOR] = {0}, out[CORRIDOR * 3];
  for (int cell = 0; cell < CORRIDOR; cell++) seen[cell * CORRIDOR + cell] = 1;
  outputs_of(&l, CORRIDOR, seen, out);
  for (int cell = 0; cell < CORRIDOR; cell++) {
    const float *row = out + cell * (duelling ? 3 : 2);
    double right = pow(0.9, CORRIDOR - 1 - cell),
           left = 0.9 * pow(0.9, CORRIDOR - 1 - (cell > 0 ? cell - 1 : 0));
    if (n_step == 1) assert_float_equal(shoal_dqn_value(row, 2, duelling, 1), right, 0.04);
    if (n_step == 1) assert_float_equal(shoal_dqn_value(row, 2, duelling, 0), left, 0.04);
    assert_int_equal(shoal_dqn_best(row, 2), 1);
  }
  assert_float_equal(lessons_score(&l, 50), 1, 0);
  lessons_end(&l);
}

static void values_are_those_worked_out_by_hand(void **state) {
  (void)state;
  assert_corridor_is_known(false, 1);
  assert_corridor_is_known(true, 1);
  assert_corridor_is_known(true, 3);
}

static void what_comes_after_a_time_limit_has_its_value(void **state) {
  (void)state;
  for (uint32_t n_step = 1; n_step <= 5; n_step += 4) {
    lessons l;
    shoal_learner_config config = toy_config(&treadmill, false, n_step);
    lessons_begin(&l, &config);
    lessons_rounds(&l, 600);
    float out[2];
    outputs_of(&l, 1, &(float){1}, out);
    assert_float_equal(out[0], 10, 0.7);
    assert_float_equal(out[1], 10, 0.7);
    lessons_end(&l);
  }
}

static void targets_may_be_copied_now_and_then(void **state) {
  (void)state;
  lessons l;
  shoal_learner_config config = toy_config(&corridor, false, 1);
  config.settings.follow = 50;
  lessons_begin(&l, &config);
  lessons_rounds(&l, 300);
  assert_float_equal(lessons_score(&l, 50), 1, 0);
  lessons_end(&l);
}

static void cartpole_is_solved(void **state) {
  (void)state;
  shoal_learner_config config = config_of(shoal_env_find("CartPole-v1"));
  config.threads = 2;
  lessons l;
  double score = 0;
  lessons_begin(&l, &config);
  for (int i = 0; i < 60 && score < 475; i++) {
    lessons_rounds(&l, 25);
    score = lessons_score(&l, 100);
  }
  assert_true(score >= 475);
  lessons_end(&l);
}

/* ---- what any learner must hold to ---- */

static void any_number_of_threads_gives_the_same_bits(void **state) {
  (void)state;
  shoal_learner_config config = toy_config(&corridor, true, 3);
  config.settings.batch = 256;
  lessons_check_threads(&config, 40);
}

static void a_file_is_enough_to_go_on_exactly(void **state) {
  (void)state;
  shoal_learner_config config = toy_config(&corridor, true, 3);
  config.settings.epsilon_to = 0.1f;
  config.settings.epsilon_steps = 3000;
  config.settings.hold = 4;
  lessons_check_files(&config, 30);
}

/* Their sum over a window is more than a float holds. */
static void spoil_three_rewards(shoal_rollout *rollout) {
  for (uint32_t t = 2; t < 5; t++) rollout->rewards[t * rollout->shape.envs] = 3e38f;
}

static void a_round_that_is_not_finite_is_as_if_it_had_never_been(void **state) {
  (void)state;
  shoal_learner_config config = toy_config(&corridor, true, 3);
  /* Many small updates, so that some go well before one meets those rewards. */
  config.settings.memory = 1000;
  config.settings.batch = 4;
  config.settings.updates = 10;
  lessons_check_spoilt(&config, 20, spoil_three_rewards, "not finite");
}

static void what_it_cannot_do_is_refused(void **state) {
  (void)state;
  shoal_learner_config config = toy_config(&corridor, true, 1);
  shoal_agent_settings settings;
  shoal_learner *learner;
  shoal_error err = {0};
  assert_int_equal(shoal_agent_defaults(&dart, SHOAL_DQN, &settings, &err), SHOAL_INVALID);
  assert_non_null(strstr(err.text, "real numbers"));
  memcpy(config.settings.body, "lstm 8", sizeof "lstm 8");
  assert_int_equal(shoal_learner_create(&learner, &config, &err), SHOAL_INVALID);
  assert_non_null(strstr(err.text, "recurrent"));
  config = toy_config(&corridor, true, 1);
  config.settings.follow = 0;
  assert_int_equal(shoal_learner_create(&learner, &config, &err), SHOAL_INVALID);
  assert_non_null(strstr(err.text, "follow"));
}

int main(void) {
  toys_used();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_duelling_value_is_that_of_the_state_and_the_advantage_over_the_mean),
      cmocka_unit_test(the_policy_chooses_and_the_target_values),
      cmocka_unit_test(the_gradient_is_that_of_the_loss),
      cmocka_unit_test(random_choices_become_rarer_and_held_ones_are_begun_less_often),
      cmocka_unit_test(values_are_those_worked_out_by_hand),
      cmocka_unit_test(what_comes_after_a_time_limit_has_its_value),
      cmocka_unit_test(targets_may_be_copied_now_and_then),
      cmocka_unit_test(cartpole_is_solved),
      cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
      cmocka_unit_test(a_file_is_enough_to_go_on_exactly),
      cmocka_unit_test(a_round_that_is_not_finite_is_as_if_it_had_never_been),
      cmocka_unit_test(what_it_cannot_do_is_refused),
  };
  return RUN_TESTS(tests);
}
