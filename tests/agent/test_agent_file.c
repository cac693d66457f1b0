/* Agents' files: tensors under names that others understand, what is refused, and trainings that go on in
 * another place than where they began. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/coach.h"
#include "agent/learner_internal.h"
#include "check.h"
#include "nn/graph.h"
#include "nn/safetensors.h"
#include "stranger.h"

static void must(shoal_status status, const shoal_error *err) {
  if (status != SHOAL_OK) fail_msg("%s", err->text);
}

static void refuses(shoal_status status, const shoal_error *err, const char *text) {
  assert_int_not_equal(status, SHOAL_OK);
  if (strstr(err->text, text) == NULL) fail_msg("%s", err->text);
}

static shoal_learner_config config_of(const char *env, shoal_algorithm algorithm, const char *body) {
  shoal_learner_config config = {.kind = shoal_env_find(env), .seed = 5, .threads = 1};
  shoal_error err = {0};
  must(shoal_agent_defaults(config.kind, algorithm, &config.settings, &err), &err);
  if (body) must(shoal_agent_set(&config.settings, "body", body, &err), &err);
  return config;
}

static shoal_learner *learner_of(const shoal_learner_config *config) {
  shoal_learner *learner;
  shoal_error err = {0};
  must(shoal_learner_create(&learner, config, &err), &err);
  return learner;
}

static void make_path(char *path) {
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
}

/* ---- what is in it ---- */

static const shoal_tensor *floats_of(const shoal_safetensors *file, const char *name, const uint64_t *dims,
                                     uint32_t dims_count) {
  const shoal_tensor *tensor = shoal_safetensors_find(file, name);
  if (tensor == NULL) fail_msg("there is no '%s'", name);
  assert_int_equal(tensor->dtype, SHOAL_F32);
  assert_int_equal(tensor->dims_count, dims_count);
  assert_memory_equal(tensor->dims, dims, dims_count * sizeof *dims);
  return tensor;
}

static void parameters_are_tensors_with_names_and_shapes(void **state) {
  (void)state;
  char path[] = "/tmp/shoal-test-file-XXXXXX";
  make_path(path);
  shoal_error err = {0};
  shoal_learner_config config = config_of("Pendulum-v1", SHOAL_PPO, "dense 8 tanh;gru 5");
  shoal_learner *learner = learner_of(&config);
  shoal_policy_state *policy = shoal_policy_state_of(shoal_learner_policy(learner));
  policy->seen = 77;
  for (int i = 0; i < 3; i++) {
    policy->mean[i] = (float)i - 1;
    policy->scale[i] = (float)i + 0.5f;
  }
  must(shoal_learner_save(learner, path, false, &err), &err);
  shoal_safetensors *file;
  must(shoal_safetensors_load(&file, path, &err), &err);
  const shoal_graph *graph = shoal_policy_graph(shoal_learner_policy(learner));
  for (uint32_t i = 0; i < graph->params_count; i++) {
    const shoal_param *param = &graph->params[i];
    char name[200];
    uint64_t dims[4];
    for (uint32_t d = 0; d < param->dims_count; d++) dims[d] = param->dims[d];
    snprintf(name, sizeof name, "policy.%s", param->name);
    const shoal_tensor *tensor = floats_of(file, name, dims, param->dims_count);
    assert_memory_equal(tensor->data, policy->weights + param->offset, tensor->bytes);
  }
  assert_non_null(shoal_safetensors_find(file, "policy.dense1.weight"));
  const uint64_t three = 3, one = 1;
  assert_memory_equal(floats_of(file, "policy.observation_mean", &three, 1)->data, policy->mean, 12);
  assert_memory_equal(floats_of(file, "policy.observation_scale", &three, 1)->data, policy->scale, 12);
  assert_memory_equal(floats_of(file, "policy.log_deviations", &one, 1)->data,
                      policy->weights + graph->weights_count, sizeof(float));
  assert_int_equal(file->tensors_count, graph->params_count + 3);
  shoal_safetensors_destroy(file);
  shoal_learner_destroy(learner);
  unlink(path);
}

/* To the last bit, with all that changes from version to version. */
static void a_policy_comes_back_as_it_was(void **state) {
  (void)state;
  static const struct {
    const char *env, *body;
    shoal_algorithm algorithm;
  } cases[] = {{"CartPole-v1", "gru 4", SHOAL_PPO},
               {"MountainCar-v0", "dense 4 relu", SHOAL_DQN},
               {"Pendulum-v1", "dense 4 relu", SHOAL_SAC},
               {"Pendulum-v1", "dense 4 relu", SHOAL_VTRACE}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char path[] = "/tmp/shoal-test-file-XXXXXX";
    make_path(path);
    shoal_error err = {0};
    shoal_learner_config config = config_of(cases[i].env, cases[i].algorithm, cases[i].body);
    shoal_learner *learner = learner_of(&config);
    shoal_policy_state *policy = shoal_policy_state_of(shoal_learner_policy(learner));
    policy->version = 123456789;
    policy->seen = 987654321;
    policy->epsilon = 0.1f;
    policy->mean[0] = 1.0f / 3;
    shoal_text before = {0}, after = {0};
    shoal_policy_write(shoal_learner_policy(learner), &before);
    must(shoal_learner_save(learner, path, false, &err), &err);
    shoal_agent_file file;
    shoal_policy *read;
    must(shoal_agent_open(path, &file, &read, &err), &err);
    shoal_policy_write(read, &after);
    assert_int_equal(after.length, before.length);
    assert_memory_equal(after.bytes, before.bytes, before.length);
    shoal_policy_destroy(read);
    shoal_text_release(&before);
    shoal_text_release(&after);
    shoal_learner_destroy(learner);
    unlink(path);
  }
}

/* ---- what is refused ---- */

/* The same file with another value in its metadata. */
static void change_meta(const char *path, const char *key, const char *value) {
  shoal_safetensors *file;
  shoal_error err = {0};
  must(shoal_safetensors_load(&file, path, &err), &err);
  static const char *const keys[] = {"shoal.agent", "shoal.agent.env", "shoal.agent.settings",
                                     "shoal.agent.state", "shoal.agent.sha256"};
  shoal_meta meta[5];
  for (int i = 0; i < 5; i++) {
    meta[i] = (shoal_meta){keys[i], shoal_safetensors_meta(file, keys[i])};
    if (strcmp(keys[i], key) == 0) meta[i].value = value;
  }
  must(shoal_safetensors_save(path, file->tensors, file->tensors_count, meta, 5, &err), &err);
  shoal_safetensors_destroy(file);
}

static void what_is_not_for_it_is_refused_and_named(void **state) {
  (void)state;
  char path[] = "/tmp/shoal-test-file-XXXXXX";
  make_path(path);
  shoal_error err = {0};
  shoal_learner_config config = config_of("CartPole-v1", SHOAL_PPO, "dense 4 tanh");
  shoal_learner_config wider = config_of("CartPole-v1", SHOAL_PPO, "dense 8 tanh");
  shoal_learner *learner = learner_of(&config), *other = learner_of(&wider);
  shoal_agent_file file;
  shoal_policy *policy;
  must(shoal_learner_save(learner, path, true, &err), &err);
  refuses(shoal_learner_load(other, path, &err), &err, "does not fit these settings");
  change_meta(path, "shoal.agent", "1");
  refuses(shoal_agent_open(path, &file, NULL, &err), &err, "version '1'; this Shoal reads version 2");
  must(shoal_learner_save(learner, path, true, &err), &err);
  change_meta(path, "shoal.agent.env", "MountainCar-v0");
  refuses(shoal_agent_open(path, &file, &policy, &err), &err,
          "'policy.dense1.weight' is missing or has another shape");
  must(shoal_learner_save(learner, path, true, &err), &err);
  change_meta(path, "shoal.agent.state",
              "{\"seed\":\"5\",\"steps\":0,\"steps_all\":0,\"return_mean\":null,\"whole\":true,\"version\":0,"
              "\"seen\":0,\"hold\":0,\"epsilon\":0}");
  refuses(shoal_agent_open(path, &file, &policy, &err), &err, "'shoal.agent.state' is damaged");
  shoal_policy_state_of(shoal_learner_policy(learner))->weights[0] = NAN;
  must(shoal_learner_save(learner, path, true, &err), &err);
  refuses(shoal_agent_open(path, &file, &policy, &err), &err, "finite");
  shoal_learner_destroy(learner);
  shoal_learner_destroy(other);
  unlink(path);
}

/* What is in it is for `make interop` to try; here, that every kind of head has one, and memories none. */
static void a_policy_is_exported_unless_it_remembers(void **state) {
  (void)state;
  static const struct {
    const char *env, *body;
    shoal_algorithm algorithm;
    shoal_status status;
  } cases[] = {{"CartPole-v1", "dense 4 tanh", SHOAL_PPO, SHOAL_OK},
               {"MountainCar-v0", "dense 4 relu", SHOAL_DQN, SHOAL_OK},
               {"Pendulum-v1", "dense 4 relu", SHOAL_SAC, SHOAL_OK},
               {"Pendulum-v1", "dense 4 relu", SHOAL_VTRACE, SHOAL_OK},
               {"CartPole-v1", "gru 4", SHOAL_PPO, SHOAL_UNSUPPORTED}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char path[] = "/tmp/shoal-test-file-XXXXXX";
    make_path(path);
    unlink(path);
    shoal_error err = {0};
    shoal_learner_config config = config_of(cases[i].env, cases[i].algorithm, cases[i].body);
    shoal_learner *learner = learner_of(&config);
    shoal_policy_state_of(shoal_learner_policy(learner))->seen = i % 2; /* scaled, and not */
    assert_int_equal(shoal_policy_onnx(shoal_learner_policy(learner), path, &err), cases[i].status);
    assert_int_equal(access(path, R_OK) == 0, cases[i].status == SHOAL_OK);
    shoal_learner_destroy(learner);
    unlink(path);
  }
}

/* ---- going on elsewhere ---- */

static uint64_t train_here(const shoal_learner_config *config, const char *path, uint64_t steps) {
  shoal_learner *learner = learner_of(config);
  shoal_training_view view;
  shoal_error err = {0};
  if (access(path, R_OK) == 0) must(shoal_learner_load(learner, path, &err), &err);
  const shoal_training_options options = {
      .learner = learner, .config = *config, .threads = 1, .steps = steps, .out = path};
  must(shoal_train_agent(&options, &view, &err), &err);
  uint64_t reached = shoal_learner_steps(learner);
  shoal_learner_destroy(learner);
  return reached;
}

static uint64_t train_there(const shoal_learner_config *config, const char *path, uint64_t steps) {
  shoal_coach_config there = {.learner = *config, .steps = steps, .file = path};
  shoal_coach *coach;
  stranger actors[2];
  pthread_t threads[2];
  shoal_coach_view view;
  shoal_error err = {0};
  must(shoal_coach_start(&coach, &there, &err), &err);
  for (int i = 0; i < 2; i++) {
    stranger_begin(&actors[i], coach, i == 0 ? "first" : "second");
    assert_int_equal(pthread_create(&threads[i], NULL, stranger_run, &actors[i]), 0);
  }
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 2; i++) stranger_end(&actors[i]);
  shoal_coach_wait(coach);
  shoal_coach_look(coach, &view);
  assert_string_equal(view.error, "");
  shoal_coach_destroy(coach);
  return view.training.round.steps;
}

/* From one process to actors that do not wait for each other, and back, and once more. */
static void a_training_goes_on_with_actors_elsewhere_and_back(void **state) {
  (void)state;
  static const struct {
    shoal_algorithm algorithm;
    const char *body;
  } cases[] = {{SHOAL_VTRACE, "dense 8 tanh"}, {SHOAL_VTRACE, "gru 8"}, {SHOAL_DQN, "dense 8 relu"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char path[] = "/tmp/shoal-test-file-XXXXXX";
    make_path(path);
    unlink(path);
    shoal_learner_config config = config_of("CartPole-v1", cases[i].algorithm, cases[i].body);
    uint64_t steps = 0, before;
    for (int turn = 0; turn < 4; turn++) {
      before = steps;
      steps = (turn % 2 ? train_there : train_here)(&config, path, steps + 5000);
      assert_true(steps >= before + 5000 && steps < before + 20000);
    }
    unlink(path);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parameters_are_tensors_with_names_and_shapes),
      cmocka_unit_test(a_policy_comes_back_as_it_was),
      cmocka_unit_test(what_is_not_for_it_is_refused_and_named),
      cmocka_unit_test(a_policy_is_exported_unless_it_remembers),
      cmocka_unit_test(a_training_goes_on_with_actors_elsewhere_and_back),
  };
  return RUN_TESTS(tests);
}
