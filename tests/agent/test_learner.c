/* Learners and whole trainings: settings as text, what is refused, files and damaged ones, the same weights
 * with any number of threads, and training that was interrupted. */
#include "agent/learner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/learner_internal.h"
#include "agent/training.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/random.h"
#include "check.h"

static void must(shoal_status status, const shoal_error *err) {
  if (status != SHOAL_OK) fail_msg("%s", err->text);
}

static shoal_learner_config config_of(const char *env, shoal_algorithm algorithm, uint32_t threads) {
  shoal_error err = {0};
  shoal_learner_config config = {.kind = shoal_env_find(env), .seed = 5, .threads = threads};
  must(shoal_agent_defaults(config.kind, algorithm, &config.settings, &err), &err);
  config.settings.streams = 3;
  config.settings.envs = 4;
  config.settings.steps = 32;
  config.settings.epochs = 2;
  config.settings.minibatch = 64;
  return config;
}

static uint64_t round_steps(const shoal_learner_config *config) {
  return (uint64_t)config->settings.streams * config->settings.envs * config->settings.steps;
}

/* ---- settings ----------------------------------------------------------------------- */

static void settings_survive_as_text(void **state) {
  (void)state;
  shoal_error err = {0};
  shoal_agent_settings before, after;
  must(shoal_agent_defaults(shoal_env_find("CartPole-v1"), SHOAL_PPO, &before, &err), &err);
  must(shoal_agent_set(&before, "rate", "0.00123", &err), &err);
  must(shoal_agent_set(&before, "anneal", "no", &err), &err);
  must(shoal_agent_set(&before, "epochs", "7", &err), &err);
  must(shoal_agent_set(&before, "body", "dense 8 relu;dense 4", &err), &err);
  shoal_text text = {0};
  shoal_agent_settings_write(&before, &text);
  memset(&after, 0, sizeof after);
  must(shoal_agent_settings_read(&after, text.bytes, &err), &err);
  shoal_text again = {0};
  shoal_agent_settings_write(&after, &again);
  assert_string_equal(text.bytes, again.bytes);
  assert_string_equal(after.body, "dense 8 relu\ndense 4");
  assert_int_equal(after.epochs, 7);
  assert_float_equal(after.rate, 0.00123f, 0);
  shoal_text_release(&text);
  shoal_text_release(&again);
}

static void wrong_settings_are_named(void **state) {
  (void)state;
  const char *const wrong[][3] = {{"rat", "1", "did you mean 'rate'"},
                                  {"lr", "1", "there is no setting 'lr'; did you mean 'rate'?"},
                                  {"learning_rate", "1", "did you mean 'rate'?"},
                                  {"gamma", "1", "did you mean 'discount'?"},
                                  {"batch_size", "1", "did you mean 'minibatch'?"},
                                  {"ent_coef", "1", "did you mean 'entropy'?"},
                                  {"clip_range", "1", "did you mean 'ratio_clip'?"},
                                  {"n_steps", "1", "did you mean 'steps'?"},
                                  {"colour", "1", "'colour'; ppo has streams, envs, steps, lag, "},
                                  {"colour", "1", ", epochs, minibatch, body"},
                                  {"buffer_size", "1", "memory: is a setting of dqn and sac, and does"},
                                  {"rate", "fast", "'fast' is not a number"},
                                  {"rate", "-1", "not within"},
                                  {"epochs", "0", "not within"},
                                  {"epochs", "1.5", "not a whole number"},
                                  {"minibatch", "0", "0 is not within 1 to 1,048,576"},
                                  {"memory", "10", "is a setting of dqn and sac, and does nothing with ppo"},
                                  {"batch", "5", "did you mean 'minibatch'?"},
                                  {"keep_share", "3", "is a setting of clone"},
                                  {"anneal", "maybe", "yes or no"}};
  shoal_agent_settings settings;
  shoal_error err = {0};
  must(shoal_agent_defaults(shoal_env_find("CartPole-v1"), SHOAL_PPO, &settings, &err), &err);
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    assert_int_equal(shoal_agent_set(&settings, wrong[i][0], wrong[i][1], &err), SHOAL_INVALID);
    if (strstr(err.text, wrong[i][2]) == NULL) fail_msg("%s", err.text);
  }
  shoal_learner_config config = config_of("CartPole-v1", SHOAL_PPO, 1);
  shoal_learner *learner;
  must(shoal_agent_set(&config.settings, "body", "dense many", &err), &err);
  assert_int_equal(shoal_learner_create(&learner, &config, &err), SHOAL_INVALID);
  assert_null(learner);
  assert_int_equal(strncmp(err.text, "body:1:7: dense: ", 17), 0);
  must(shoal_agent_defaults(shoal_env_find("CartPole-v1"), SHOAL_DQN, &settings, &err), &err);
  must(shoal_agent_set(&settings, "memory", "1000", &err), &err);
  const char *const of_dqn[][2] = {
      {"buffer_size", "memory"}, {"tau", "follow"}, {"batch_size", "batch"}, {"n_steps", "n_step"}};
  for (size_t i = 0; i < sizeof of_dqn / sizeof of_dqn[0]; i++) {
    assert_int_equal(shoal_agent_set(&settings, of_dqn[i][0], "1", &err), SHOAL_INVALID);
    assert_string_equal(strstr(err.text, "did you mean '") + 14 + strlen(of_dqn[i][1]), "'?");
    assert_non_null(strstr(err.text, of_dqn[i][1]));
  }
  assert_int_equal(shoal_agent_set(&settings, "epochs", "3", &err), SHOAL_INVALID);
  must(shoal_agent_set(&settings, "follow", "200", &err), &err);
  must(shoal_agent_settings_check(&settings, &err), &err);
  must(shoal_agent_set(&settings, "follow", "2.5", &err), &err);
  assert_int_equal(shoal_agent_settings_check(&settings, &err), SHOAL_INVALID);
}

/* ---- refusing ----------------------------------------------------------------------- */

/* Images, as environments in Python may have them. */
static void a_round_that_is_too_large_says_why(void **state) {
  (void)state;
  shoal_learner_config config = config_of("CartPole-v1", SHOAL_PPO, 1);
  shoal_env_kind kind = *config.kind;
  shoal_learner *learner;
  shoal_error err = {0};
  kind.observation = 96 * 96 * 3;
  config.kind = &kind;
  config.settings.envs = 64;
  config.settings.steps = 2048;
  assert_int_equal(shoal_learner_create(&learner, &config, &err), SHOAL_LIMIT);
  assert_non_null(strstr(err.text, "is 43.5 GB, since an observation is 27,648 numbers; lower streams"));
}

static void rollouts_that_are_too_old_are_refused_and_counted(void **state) {
  (void)state;
  shoal_error err = {0};
  shoal_learner_config config = config_of("CartPole-v1", SHOAL_VTRACE, 1);
  config.settings.lag_max = 2;
  shoal_learner *learner;
  shoal_actor *actor;
  shoal_rollout *rollout;
  must(shoal_learner_create(&learner, &config, &err), &err);
  must(shoal_actor_create(&actor, shoal_learner_spec(learner), 4, 32, &err), &err);
  shoal_rollout_shape shape = shoal_learner_shape(learner);
  must(shoal_rollout_create(&rollout, &shape, &err), &err);
  const shoal_play_unit unit = {.seed = 1};
  must(shoal_actor_play(actor, &unit, rollout, &err), &err);
  shoal_round_view view;
  const double lags[] = {0, 1, 2, 0};
  for (uint64_t round = 0; round < 4; round++) {
    must(shoal_learner_round(learner, &rollout, 1, &view, &err), &err); /* of version 0 */
    assert_int_equal(view.version, round + 1);
    assert_float_equal(view.lag, lags[round], 0);
    assert_int_equal(view.refused, round < 3 ? 0 : 1);
    assert_int_equal(view.steps, 128 * (round < 3 ? round + 1 : 3));
  }
  rollout->version = 5; /* one that is yet to come */
  must(shoal_learner_round(learner, &rollout, 1, &view, &err), &err);
  assert_int_equal(view.refused, 2);
  rollout->version = 5;
  rollout->stream = 3;
  must(shoal_learner_round(learner, &rollout, 1, &view, &err), &err);
  assert_int_equal(view.refused, 3);
  shoal_rollout_destroy(rollout);
  shoal_actor_destroy(actor);
  shoal_learner_destroy(learner);
}

/* ---- trainings ---------------------------------------------------------------------- */

static uint64_t weights_of(shoal_learner *learner) {
  const shoal_policy_state *policy = shoal_policy_state_of(shoal_learner_policy(learner));
  return shoal_digest(policy->weights, policy->weights_count * sizeof(float));
}

static shoal_learner *train(const shoal_learner_config *config, uint64_t steps, const char *in,
                            const char *out) {
  shoal_error err = {0};
  shoal_learner *learner;
  shoal_training_view view;
  must(shoal_learner_create(&learner, config, &err), &err);
  if (in) must(shoal_learner_load(learner, in, &err), &err);
  const shoal_training_options options = {
      .learner = learner, .config = *config, .threads = config->threads, .steps = steps, .out = out};
  must(shoal_train_agent(&options, &view, &err), &err);
  assert_int_equal(shoal_learner_steps(learner), steps);
  assert_int_equal(view.evaluation.episodes, 100);
  return learner;
}

static const struct {
  const char *env;
  shoal_algorithm algorithm;
  uint32_t lag;
} cases[] = {{"CartPole-v1", SHOAL_PPO, 0},
             {"CartPole-v1", SHOAL_VTRACE, 1},
             {"CartPole-v1", SHOAL_VTRACE, 3},
             {"Pendulum-v1", SHOAL_PPO, 0}};
enum { CASES = sizeof cases / sizeof cases[0] };

static shoal_learner_config case_of(int i, uint32_t threads) {
  shoal_learner_config config = config_of(cases[i].env, cases[i].algorithm, threads);
  config.settings.lag = cases[i].lag;
  return config;
}

static void any_number_of_threads_trains_the_same(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++) {
    uint64_t hashes[4];
    for (uint32_t threads = 1; threads <= 3; threads++) {
      shoal_learner_config config = case_of(i, threads);
      shoal_learner *learner = train(&config, 12 * round_steps(&config), NULL, NULL);
      hashes[threads] = weights_of(learner);
      shoal_learner_destroy(learner);
    }
    assert_int_equal(hashes[1], hashes[2]);
    assert_int_equal(hashes[1], hashes[3]);
    shoal_learner_config other = case_of(i, 2);
    other.seed++;
    shoal_learner *learner = train(&other, 12 * round_steps(&other), NULL, NULL);
    assert_int_not_equal(weights_of(learner), hashes[1]);
    shoal_learner_destroy(learner);
  }
}

static void an_interrupted_training_comes_to_the_same(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++) {
    char path[] = "/tmp/shoal-test-learner-XXXXXX";
    close(mkstemp(path));
    shoal_learner_config config = case_of(i, 2);
    uint64_t steps = round_steps(&config);
    shoal_learner *straight = train(&config, 12 * steps, NULL, NULL);
    shoal_learner_destroy(train(&config, 5 * steps, NULL, path));
    shoal_learner_destroy(train(&config, 7 * steps, path, path));
    shoal_learner *resumed = train(&config, 12 * steps, path, NULL);
    assert_int_equal(weights_of(straight), weights_of(resumed));
    shoal_learner_destroy(straight);
    shoal_learner_destroy(resumed);
    unlink(path);
  }
}

static volatile sig_atomic_t stop;
static void stop_soon(void *self, const shoal_training_view *view) {
  (void)self;
  __atomic_store_n(&stop, view->round.version >= 3, __ATOMIC_RELAXED); /* as the system would, for threads */
}

static void a_signal_ends_it_and_all_is_saved(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++) {
    char path[] = "/tmp/shoal-test-learner-XXXXXX";
    close(mkstemp(path));
    shoal_error err = {0};
    shoal_learner *learner;
    shoal_training_view view;
    shoal_learner_config config = case_of(i, 2);
    must(shoal_learner_create(&learner, &config, &err), &err);
    stop = 0;
    const shoal_training_options options = {.learner = learner,
                                            .config = config,
                                            .threads = 2,
                                            .steps = 1000000000,
                                            .out = path,
                                            .stop = &stop,
                                            .round = stop_soon};
    assert_int_equal(shoal_train_agent(&options, &view, &err), SHOAL_STOPPED);
    shoal_agent_file file;
    must(shoal_agent_open(path, &file, NULL, &err), &err);
    assert_int_equal(file.steps, 3 * round_steps(&config));
    assert_true(file.whole);
    shoal_learner_destroy(learner);
    unlink(path);
  }
}

/* ---- actors that lag ---------------------------------------------------------------- */

enum { STREAMS = 6 };

/* Actors that take units at once and hand them in whenever: rollouts are of several versions, and some too old. */
static void who_lags_teaches_all_the_same(void **state) {
  (void)state;
  shoal_error err = {0};
  shoal_learner_config config = config_of("CartPole-v1", SHOAL_VTRACE, 1);
  must(shoal_agent_defaults(config.kind, SHOAL_VTRACE, &config.settings, &err), &err);
  config.settings.streams = STREAMS;
  config.settings.lag_max = 2;
  shoal_learner *learner;
  shoal_actor *actor;
  shoal_course *course;
  must(shoal_learner_create(&learner, &config, &err), &err);
  must(shoal_actor_create(&actor, shoal_learner_spec(learner), config.settings.envs, config.settings.steps,
                          &err),
       &err);
  const shoal_course_config course_config = {
      .shape = shoal_learner_shape(learner), .streams = STREAMS, .eager = true, .seed = 5};
  must(shoal_course_create(&course, &course_config, &err), &err);
  shoal_rollout *out[STREAMS] = {0};
  shoal_key key = shoal_key_make(3, SHOAL_FOR_SIMULATION, 0, 0);
  shoal_round_view view = {0};
  double lags = 0;
  for (uint64_t draw = 0; view.version < 60; draw++) {
    const shoal_play_unit *unit;
    uint32_t slot = (uint32_t)shoal_random_below(key, draw, STREAMS), count;
    if (out[slot] == NULL && shoal_course_take(course, "actor", 0, &unit)) {
      shoal_text bytes = {0};
      shoal_policy_write(shoal_learner_policy(learner), &bytes);
      must(shoal_policy_read(shoal_actor_policy(actor), bytes.bytes, bytes.length, &err), &err);
      shoal_text_release(&bytes);
      must(shoal_rollout_create(&out[slot], &course_config.shape, &err), &err);
      must(shoal_actor_play(actor, unit, out[slot], &err), &err);
    } else if (out[slot] &&
               shoal_random_below(key, draw + 1000000, 1 + slot * slot) == 0) { /* some are slow */
      assert_true(shoal_course_done(course, out[slot], "actor", 0));
      out[slot] = NULL;
    }
    shoal_rollout *const *round = shoal_course_round(course, &count);
    if (round == NULL) continue;
    must(shoal_learner_round(learner, round, count, &view, &err), &err);
    shoal_course_learned(course, view.version);
    lags += view.lag;
  }
  shoal_evaluation score;
  must(shoal_evaluate_policy(shoal_learner_policy(learner), config.kind, 20, 1, NULL, &score, &err), &err);
  assert_true(view.refused > 0);
  if (!(lags / 60 > 0.2)) fail_msg("a lag of %g", lags / 60);
  if (!(score.mean > 200)) fail_msg("a score of %g", score.mean);
  for (int i = 0; i < STREAMS; i++) shoal_rollout_destroy(out[i]);
  shoal_course_destroy(course);
  shoal_actor_destroy(actor);
  shoal_learner_destroy(learner);
}

/* ---- files -------------------------------------------------------------------------- */

static void a_file_plays_as_the_learner_did(void **state) {
  (void)state;
  char path[] = "/tmp/shoal-test-learner-XXXXXX";
  close(mkstemp(path));
  shoal_error err = {0};
  shoal_learner_config config = config_of("CartPole-v1", SHOAL_PPO, 1);
  shoal_learner *learner = train(&config, 10 * round_steps(&config), NULL, NULL);
  shoal_evaluation before, after;
  must(shoal_evaluate_policy(shoal_learner_policy(learner), config.kind, 10, 9, NULL, &before, &err), &err);
  must(shoal_learner_save(learner, path, false, &err), &err);
  shoal_agent_file file;
  shoal_policy *policy;
  must(shoal_agent_open(path, &file, &policy, &err), &err);
  assert_string_equal(file.env, "CartPole-v1");
  assert_int_equal(file.algorithm, SHOAL_PPO);
  assert_int_equal(file.seed, 5);
  assert_false(file.whole);
  must(shoal_evaluate_policy(policy, config.kind, 10, 9, NULL, &after, &err), &err);
  assert_float_equal(before.mean, after.mean, 0);
  assert_float_equal(before.deviation, after.deviation, 0);
  assert_float_equal(before.mean_length, after.mean_length, 0);
  assert_int_equal(shoal_learner_load(learner, path, &err), SHOAL_INVALID); /* the policy alone */
  shoal_policy_destroy(policy);
  shoal_learner_destroy(learner);
  unlink(path);
}

/* Any byte may be wrong: the file is refused, or it is one that no byte of matters. */
static void damaged_files_are_refused(void **state) {
  (void)state;
  char path[] = "/tmp/shoal-test-learner-XXXXXX";
  close(mkstemp(path));
  shoal_error err = {0};
  shoal_learner_config config = config_of("CartPole-v1", SHOAL_PPO, 1);
  must(shoal_agent_set(&config.settings, "body", "dense 4", &err), &err);
  shoal_learner *learner = train(&config, round_steps(&config), NULL, path);
  uint8_t *bytes;
  size_t length, refused = 0, tried = 0;
  must(shoal_file_read(path, 1 << 24, false, &bytes, &length, &err), &err);
  for (size_t at = 0; at < length; at += 1 + length / 400, tried++) {
    FILE *file = fopen(path, "wb");
    bytes[at] ^= 0x10;
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    fclose(file);
    bytes[at] ^= 0x10;
    refused += shoal_learner_load(learner, path, &err) != SHOAL_OK;
  }
  assert_true(refused > tried * 8 / 10);
  assert_int_equal(truncate(path, (off_t)(length / 2)), 0);
  assert_int_not_equal(shoal_learner_load(learner, path, &err), SHOAL_OK);
  free(bytes);
  shoal_learner_destroy(learner);
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(settings_survive_as_text),
      cmocka_unit_test(wrong_settings_are_named),
      cmocka_unit_test(a_round_that_is_too_large_says_why),
      cmocka_unit_test(rollouts_that_are_too_old_are_refused_and_counted),
      cmocka_unit_test(any_number_of_threads_trains_the_same),
      cmocka_unit_test(an_interrupted_training_comes_to_the_same),
      cmocka_unit_test(a_signal_ends_it_and_all_is_saved),
      cmocka_unit_test(who_lags_teaches_all_the_same),
      cmocka_unit_test(a_file_plays_as_the_learner_did),
      cmocka_unit_test(damaged_files_are_refused),
  };
  return RUN_TESTS(tests);
}
