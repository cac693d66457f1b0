/* test_agent_spec.c: what hosts submit to be learned is read field by field, and written as it is read. */
#include <math.h>
#include <string.h>
#include <sys/resource.h>

#include "check.h"
#include "server/any_spec.h"

static shoal_agent_spec spec;
static shoal_spec_fault fault;
static shoal_error err;

static shoal_status parse(const char *json) {
  err.text[0] = 0;
  return shoal_agent_spec_parse(&spec, json, strlen(json), &fault, &err);
}

static void refuses(const char *json, const char *field, const char *words) {
  assert_int_not_equal(parse(json), SHOAL_OK);
  assert_string_equal(fault.field, field);
  if (strstr(err.text, words) == NULL) fail_msg("%s: %s", json, err.text);
}

static void what_is_left_out_is_usual(void **state) {
  (void)state;
  assert_int_equal(parse("{\"kind\":\"agent\",\"env\":\"CartPole-v1\"}"), SHOAL_OK);
  assert_string_equal(spec.name.bytes, "CartPole-v1");
  assert_int_equal(spec.settings.algorithm, SHOAL_PPO);
  assert_true(spec.until_solved && !spec.exact && !spec.is_private);
  assert_int_equal(spec.seed, 1);
  assert_int_equal(shoal_agent_spec_steps(&spec), spec.settings.budget);
  assert_int_equal(spec.workers_min, 1);
  assert_int_equal(shoal_agent_spec_try(&spec, &fault, &err), SHOAL_OK);
  shoal_agent_spec_release(&spec);
}

static void what_is_written_is_read(void **state) {
  (void)state;
  static const char json[] =
      "{\"kind\":\"agent\",\"name\":\"Cars\",\"env\":\"MountainCar-v0\",\"algorithm\":\"dqn\",\"seed\":7,"
      "\"seconds\":12.5,\"steps\":5000,\"until_solved\":false,\"exact\":true,\"settings\":{\"rate\":0.001,"
      "\"streams\":\"2\",\"duelling\":true},\"body\":\"dense 16 relu\\ndense 8 tanh\",\"workers_min\":2,"
      "\"workers_max\":9,\"private\":true}";
  shoal_text once = {0}, twice = {0};
  shoal_json out;
  assert_int_equal(parse(json), SHOAL_OK);
  assert_float_equal(spec.settings.rate, 0.001f, 1e-9);
  assert_int_equal(spec.settings.streams, 2);
  assert_true(spec.settings.duelling);
  assert_string_equal(spec.settings.body, "dense 16 relu\ndense 8 tanh");
  assert_int_equal(shoal_agent_spec_steps(&spec), 5000);
  for (int i = 0; i < 2; i++) {
    shoal_json_init(&out, i == 0 ? &once : &twice);
    shoal_json_open(&out, NULL, '{');
    shoal_agent_spec_write(&spec, &out);
    shoal_json_close(&out, '}');
    shoal_agent_spec_release(&spec);
    assert_int_equal(parse(once.bytes), SHOAL_OK);
  }
  assert_string_equal(once.bytes, twice.bytes);
  assert_non_null(
      strstr(once.bytes, "\"settings\":{\"rate\":\"0.001\",\"streams\":\"2\",\"duelling\":\"yes\"}"));
  shoal_agent_spec_release(&spec);
  shoal_text_release(&once);
  shoal_text_release(&twice);
}

static void faults_name_their_field(void **state) {
  (void)state;
  refuses("{\"kind\":\"agent\"}", "env", "is missing");
  refuses("{\"env\":\"gym:CartPole-v1\"}", "env", "gym:CartPole-v1 is played by Python");
  refuses("{\"env\":\"gym:os:system-v0\"}", "env", "nothing but environments that are built in");
  refuses("{\"env\":\"gym:\"}", "env", "");
  refuses("{\"env\":\"CartPole-v2\"}", "env", "did you mean 'CartPole-v");
  refuses("{\"env\":7}", "env", "must be a text");
  refuses("{\"env\":\"CartPole-v1\",\"algorithm\":\"sarsa\"}", "algorithm", "ppo");
  refuses("{\"env\":\"CartPole-v1\",\"algorithm\":\"sac\"}", "algorithm", "");
  refuses("{\"env\":\"CartPole-v1\",\"settings\":{\"rat\":1}}", "settings", "rate");
  refuses("{\"env\":\"CartPole-v1\",\"settings\":{\"rate\":[]}}", "settings", "no text");
  refuses("{\"env\":\"CartPole-v1\",\"settings\":{\"body\":\"dense 3\"}}", "settings", "a field of its own");
  refuses("{\"env\":\"CartPole-v1\",\"settings\":[1]}", "settings", "an object");
  refuses("{\"env\":\"CartPole-v1\",\"seconds\":-1}", "seconds", "from 0");
  refuses("{\"env\":\"CartPole-v1\",\"seconds\":1e9}", "seconds", "from 0 to 100,000,000");
  refuses("{\"env\":\"CartPole-v1\",\"steps\":1e16}", "steps", "from 0 to 9,007,199,254,740,992");
  refuses("{\"env\":\"CartPole-v1\",\"steps\":2e15}", "steps", "1,000,000,000,000,000");
  refuses("{\"env\":\"CartPole-v1\",\"until_solved\":1}", "until_solved", "true or false");
  refuses("{\"env\":\"CartPole-v1\",\"name\":\"a/b\"}", "name", "1 to 64");
  refuses("{\"env\":\"CartPole-v1\",\"data\":\"wine\"}", "data", "no field");
  refuses("{\"env\":\"CartPole-v1\",\"workers_min\":3,\"workers_max\":2}", "workers_max", "less");
  refuses("[]", "", "no JSON object");
}

static void tries(const char *json, const char *field, const char *words) {
  assert_int_equal(parse(json), SHOAL_OK);
  assert_int_not_equal(shoal_agent_spec_try(&spec, &fault, &err), SHOAL_OK);
  assert_string_equal(fault.field, field);
  if (strstr(err.text, words) == NULL) fail_msg("%s: %s", json, err.text);
  shoal_agent_spec_release(&spec);
}

static void what_cannot_be_is_found_before_it_begins(void **state) {
  (void)state;
  tries("{\"env\":\"CartPole-v1\",\"body\":\"dense 12 banana\"}", "body", "banana");
  tries("{\"env\":\"CartPole-v1\",\"settings\":{\"envs\":4096,\"steps\":4096}}", "settings", "a rollout of");
  tries("{\"env\":\"MountainCar-v0\",\"settings\":{\"memory\":100000000}}", "settings", "memory");
  tries("{\"env\":\"CartPole-v1\",\"settings\":{\"lag\":5,\"lag_max\":1}}", "settings", "lag");
  tries("{\"env\":\"CartPole-v1\",\"body\":\"dense 4000 tanh\\ndense 4000 tanh\"}", "body",
        "versions of a policy");
  tries("{\"env\":\"CartPole-v1\",\"algorithm\":\"vtrace\",\"body\":\"dense 2200 tanh\\ndense 2200 "
        "tanh\",\"settings\":"
        "{\"lag\":0,\"lag_max\":1}}",
        "body", "weights, and may have");
  tries("{\"env\":\"CartPole-v1\",\"settings\":{\"streams\":1024,\"envs\":64,\"steps\":256}}", "settings",
        "rollouts of 1024 streams");
  tries("{\"env\":\"CartPole-v1\",\"exact\":true,\"settings\":{\"streams\":256,\"envs\":64,\"steps\":256,"
        "\"lag\":7,\"lag_max\":7}}",
        "settings", "rollouts of 256 streams");
  assert_int_equal(
      parse("{\"env\":\"CartPole-v1\",\"settings\":{\"streams\":256,\"envs\":64,\"steps\":256}}"), SHOAL_OK);
  assert_int_equal(shoal_agent_spec_try(&spec, &fault, &err), SHOAL_OK); /* where two of a stream are kept */
  shoal_agent_spec_release(&spec);
  tries("{\"env\":\"CartPole-v1\",\"body\":\"lstm 700\",\"settings\":{\"envs\":4096,\"steps\":1}}", "body",
        "a rollout of");
}

static long most_memory_kb(void) {
  struct rusage usage;
  assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
  return usage.ru_maxrss;
}

/* It would be half a GB for each of its copies. */
static void a_body_that_is_too_large_is_refused_before_it_is_made(void **state) {
  (void)state;
  long before = most_memory_kb();
  tries("{\"env\":\"CartPole-v1\",\"body\":\"dense 12000 tanh\\ndense 12000 tanh\"}", "body",
        "versions of a policy");
  assert_true(most_memory_kb() - before < 100 << 10);
}

static void a_rollout_is_never_larger_than_its_bound(void **state) {
  (void)state;
  for (int i = 0; shoal_env_kinds[i] != NULL; i++) {
    const shoal_policy_spec policy = {.kind = shoal_env_kinds[i],
                                      .head = shoal_env_kinds[i]->choices > 0 ? SHOAL_HEAD_CATEGORICAL
                                                                              : SHOAL_HEAD_GAUSSIAN,
                                      .body = "lstm 8"};
    shoal_actor *actor;
    shoal_rollout *rollout;
    shoal_text bytes = {0};
    shoal_play_unit unit = {.seed = 3};
    assert_int_equal(shoal_actor_create(&actor, &policy, 3, 40, &err), SHOAL_OK);
    const shoal_rollout_shape shape = {policy.kind, 3, 40,
                                       shoal_policy_memory_floats(shoal_actor_policy(actor))};
    assert_int_equal(shoal_rollout_create(&rollout, &shape, &err), SHOAL_OK);
    assert_int_equal(shoal_actor_play(actor, &unit, rollout, &err), SHOAL_OK);
    shoal_rollout_write(rollout, &bytes);
    assert_true(bytes.length <= shoal_agent_rollout_bytes_max(&shape));
    shoal_text_release(&bytes);
    shoal_rollout_destroy(rollout);
    shoal_actor_destroy(actor);
  }
}

static void kinds_are_told_apart(void **state) {
  (void)state;
  static const struct {
    const char *json;
    shoal_job_kind kind;
  } cases[] = {{"{\"kind\":\"agent\"}", SHOAL_JOB_AGENT},
               {"{\"kind\":\"search\"}", SHOAL_JOB_SEARCH},
               {"{}", SHOAL_JOB_TRAIN},
               {"{\"kind\":3}", SHOAL_JOB_TRAIN},
               {"agent", SHOAL_JOB_TRAIN}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    assert_int_equal(shoal_job_kind_of(cases[i].json, strlen(cases[i].json)), cases[i].kind);
  shoal_any_spec any;
  static const char json[] = "{\"kind\":\"agent\",\"env\":\"Acrobot-v1\",\"name\":\"Arms\"}";
  assert_int_equal(shoal_any_spec_parse(&any, json, strlen(json), &fault, &err), SHOAL_OK);
  assert_string_equal(shoal_any_spec_name(&any), "Arms");
  assert_string_equal(shoal_any_spec_data(&any), "");
  assert_false(shoal_any_spec_is_private(&any));
  shoal_any_spec_release(&any);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_left_out_is_usual),
      cmocka_unit_test(what_is_written_is_read),
      cmocka_unit_test(faults_name_their_field),
      cmocka_unit_test(what_cannot_be_is_found_before_it_begins),
      cmocka_unit_test(a_body_that_is_too_large_is_refused_before_it_is_made),
      cmocka_unit_test(a_rollout_is_never_larger_than_its_bound),
      cmocka_unit_test(kinds_are_told_apart),
  };
  return RUN_TESTS(tests);
}
