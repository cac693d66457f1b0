/* Filtered cloning: the bar and how it rises, memory that does not grow, CartPole-v0; the same bits for
 * any number of threads, files, rounds that fail. */
#include "agent/clone.h"

#include <math.h>

#include "lessons.h"
#include "toys.h"

static shoal_learner_config config_of(const shoal_env_kind *kind) {
  shoal_learner_config config = {.kind = kind, .seed = 7, .threads = 1};
  shoal_error err = {0};
  lessons_must(shoal_agent_defaults(kind, SHOAL_CLONE, &config.settings, &err), &err);
  return config;
}

static shoal_learner_config toy_config(void) {
  shoal_learner_config config = config_of(&corridor);
  shoal_agent_settings *s = &config.settings;
  memcpy(s->body, "dense 16 tanh", sizeof "dense 16 tanh");
  s->envs = 4;
  s->steps = 20;
  s->minibatch = 128;
  s->keep_steps = 600;
  s->scale_observations = false;
  s->rate = 3e-3f;
  return config;
}

static void the_bar_is_a_share_of_the_way_and_rises_with_what_is_reached(void **state) {
  (void)state;
  shoal_episodes_view view = {.recent = 0, .worst = NAN, .recent_mean = NAN};
  assert_true(shoal_clone_bar(&view, 195, 0.25) == -INFINITY);
  view = (shoal_episodes_view){.recent = 100, .worst = 15, .recent_mean = 22};
  assert_float_equal(shoal_clone_bar(&view, 195, 0.25), 60, 1e-9);
  view.recent_mean = 120;
  assert_float_equal(shoal_clone_bar(&view, 195, 0.25), 120, 1e-9);
  /* A goal below zero, and none. */
  view = (shoal_episodes_view){.recent = 100, .worst = -500, .recent_mean = -480};
  assert_float_equal(shoal_clone_bar(&view, -100, 0.5), -300, 1e-9);
  assert_float_equal(shoal_clone_bar(&view, NAN, 0.5), -480, 1e-9);
}

static void cartpole_is_solved_and_what_is_kept_stays_bounded(void **state) {
  (void)state;
  shoal_learner_config config = config_of(shoal_env_find("CartPole-v0"));
  config.threads = 2;
  lessons l;
  double score = 0;
  lessons_begin(&l, &config);
  shoal_kept before[SHOAL_KEPT_MAX], after[SHOAL_KEPT_MAX];
  uint32_t count = l.learner->ops->kept(l.learner, before);
  for (int i = 0; i < 300 && score < 195; i++) {
    lessons_rounds(&l, 1);
    score = lessons_score(&l, 100);
  }
  assert_true(score >= 195);
  assert_int_equal(l.learner->ops->kept(l.learner, after), count);
  for (uint32_t i = 0; i < count; i++) assert_int_equal(before[i].count, after[i].count);
  lessons_end(&l);
}

static void it_learns_the_way_out_of_a_corridor(void **state) {
  (void)state;
  lessons l;
  shoal_learner_config config = toy_config();
  lessons_begin(&l, &config);
  lessons_rounds(&l, 40);
  assert_float_equal(lessons_score(&l, 50), 1, 0);
  assert_true(l.view.loss < 0.68); /* log 2 is knowing nothing */
  lessons_end(&l);
}

static void any_number_of_threads_gives_the_same_bits(void **state) {
  (void)state;
  shoal_learner_config config = toy_config();
  lessons_check_threads(&config, 10);
}

static void a_file_is_enough_to_go_on_exactly(void **state) {
  (void)state;
  shoal_learner_config config = toy_config();
  lessons_check_files(&config, 7);
}

static void spoil_observations(shoal_rollout *rollout) {
  uint32_t count = rollout->shape.envs * (rollout->shape.steps + 1) * CORRIDOR;
  for (uint32_t i = 0; i < count; i++) rollout->observations[i] = i % 2 ? 3e38f : -3e38f;
}

static void a_round_that_is_not_finite_is_as_if_it_had_never_been(void **state) {
  (void)state;
  shoal_learner_config config = toy_config();
  memcpy(config.settings.body, "dense 16 relu\ndense 16 relu", sizeof "dense 16 relu\ndense 16 relu");
  lessons_check_spoilt(&config, 5, spoil_observations, "not finite");
}

static void what_it_cannot_do_is_refused(void **state) {
  (void)state;
  shoal_learner_config config = toy_config();
  shoal_agent_settings settings;
  shoal_learner *learner;
  shoal_error err = {0};
  assert_int_equal(shoal_agent_defaults(&dart, SHOAL_CLONE, &settings, &err), SHOAL_INVALID);
  assert_non_null(strstr(err.text, "real numbers"));
  config.settings.minibatch = 0;
  assert_int_equal(shoal_learner_create(&learner, &config, &err), SHOAL_INVALID);
  assert_non_null(strstr(err.text, "minibatch"));
}

int main(void) {
  toys_used();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_bar_is_a_share_of_the_way_and_rises_with_what_is_reached),
      cmocka_unit_test(cartpole_is_solved_and_what_is_kept_stays_bounded),
      cmocka_unit_test(it_learns_the_way_out_of_a_corridor),
      cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
      cmocka_unit_test(a_file_is_enough_to_go_on_exactly),
      cmocka_unit_test(a_round_that_is_not_finite_is_as_if_it_had_never_been),
      cmocka_unit_test(what_it_cannot_do_is_refused),
  };
  return RUN_TESTS(tests);
}
