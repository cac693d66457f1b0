/* test_agent_audit.c: a rollout that is played again comes to the same bits; one bit less, and it is a lie. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "check.h"
#include "server/agent_audit.h"

static shoal_error err;

/* A case of somebody honest, in this environment. */
static void make_case(shoal_agent_case *out, const char *env, const char *head, const char *body) {
  shoal_actor_brief brief;
  shoal_actor *actor;
  shoal_rollout *rollout;
  shoal_play_unit unit = {.number = 5, .stream = 1, .seed = 9};
  *out = (shoal_agent_case){.job = 3, .who = 77, .name = "ann"};
  shoal_text_addf(
      &out->brief,
      "{\"env\":\"%s\",\"head\":\"%s\",\"duelling\":false,\"body\":\"%s\",\"envs\":3,\"steps\":50,"
      "\"exact\":false}",
      env, head, body);
  assert_int_equal(shoal_actor_brief_read(&brief, out->brief.bytes, out->brief.length, &err), SHOAL_OK);
  assert_int_equal(shoal_actor_create(&actor, &brief.spec, brief.envs, brief.steps, &err), SHOAL_OK);
  const shoal_rollout_shape shape = {brief.spec.kind, brief.envs, brief.steps,
                                     shoal_policy_memory_floats(shoal_actor_policy(actor))};
  assert_int_equal(shoal_rollout_create(&rollout, &shape, &err), SHOAL_OK);
  shoal_policy_state_of(shoal_actor_policy(actor))->version = 4;
  shoal_policy_write(shoal_actor_policy(actor), &out->policy);
  /* The second stretch of the stream: it begins where the first has ended. */
  assert_int_equal(shoal_actor_play(actor, &unit, rollout, &err), SHOAL_OK);
  unit.number = 7;
  shoal_text_add(&unit.state, rollout->state.bytes, rollout->state.length);
  shoal_play_unit_write(&unit, &out->unit);
  assert_int_equal(shoal_actor_play(actor, &unit, rollout, &err), SHOAL_OK);
  shoal_rollout_write(rollout, &out->rollout);
  shoal_text_release(&unit.state);
  shoal_rollout_destroy(rollout);
  shoal_actor_destroy(actor);
}

/* Another value, under a checksum that is right. */
static void falsify(shoal_agent_case *tried, size_t at) {
  uint32_t crc;
  size_t length = tried->rollout.length - sizeof crc;
  tried->rollout.bytes[at] ^= 1;
  crc = shoal_crc32c(0, tried->rollout.bytes, length);
  memcpy(tried->rollout.bytes + length, &crc, sizeof crc);
}

static void the_same_unit_comes_to_the_same_bits(void **state) {
  (void)state;
  static const char *const cases[][3] = {{"CartPole-v1", "categorical", "dense 16 tanh"},
                                         {"CartPole-v1", "categorical", "lstm 8"},
                                         {"Acrobot-v1", "greedy", "dense 16 relu"},
                                         {"Pendulum-v1", "gaussian", "dense 16 tanh"},
                                         {"MountainCarContinuous-v0", "squashed", "dense 16 tanh"},
                                         {"Snake-v0", "categorical", "dense 16 tanh"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    shoal_agent_case tried;
    make_case(&tried, cases[i][0], cases[i][1], cases[i][2]);
    assert_int_equal(shoal_agent_case_try(&tried), SHOAL_AGENT_AGREES);
    for (size_t at = 56; at < tried.rollout.length - 4; at += tried.rollout.length / 7) {
      falsify(&tried, at);
      assert_int_equal(shoal_agent_case_try(&tried), SHOAL_AGENT_LIES);
      falsify(&tried, at);
    }
    assert_int_equal(shoal_agent_case_try(&tried), SHOAL_AGENT_AGREES);
    shoal_agent_case_release(&tried);
  }
}

static void what_cannot_be_played_is_no_lie(void **state) {
  (void)state;
  shoal_agent_case tried;
  make_case(&tried, "CartPole-v1", "categorical", "dense 16 tanh");
  tried.policy.bytes[30] ^= 1;
  assert_int_equal(shoal_agent_case_try(&tried), SHOAL_AGENT_UNKNOWN);
  shoal_agent_case_release(&tried);
}

static shoal_agent_verdict verdicts[8];
static int verdicts_count;

static void wake(void *self) { (void)self; }

static void judged(void *self, const shoal_agent_case *tried, shoal_agent_verdict verdict) {
  (void)self;
  assert_string_equal(tried->name, "ann");
  verdicts[verdicts_count++ % 8] = verdict;
}

static void checks_are_few_at_a_time(void **state) {
  (void)state;
  shoal_agent_audit *audit;
  shoal_agent_case tried;
  const shoal_agent_audit_calls calls = {NULL, wake, judged};
  const shoal_standing newcomer = {.who = 77}, proven = {.who = 78, .agreed = 1000}, other = {.who = 79};
  verdicts_count = 0;
  assert_int_equal(shoal_agent_audit_create(&audit, &calls, &err), SHOAL_OK);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(shoal_agent_audit_draw(audit, &newcomer), SHOAL_AGENT_CHECKED);
    make_case(&tried, "CartPole-v1", "categorical", "dense 16 tanh");
    if (i == 1) falsify(&tried, 200);
    shoal_agent_audit_add(audit, &tried);
  }
  /* A burst of more cannot count before these are judged; others can be checked meanwhile. */
  for (int i = 0; i < 20; i++)
    assert_int_equal(shoal_agent_audit_draw(audit, &newcomer), SHOAL_AGENT_NO_ROOM);
  assert_int_equal(shoal_agent_audit_draw(audit, &other), SHOAL_AGENT_CHECKED);
  double deadline = shoal_clock_seconds() + PATIENCE_S;
  while (verdicts_count < 2 && shoal_clock_seconds() < deadline) {
    shoal_agent_audit_tick(audit);
    usleep(1000);
  }
  assert_int_equal(verdicts_count, 2);
  assert_int_equal(verdicts[0], SHOAL_AGENT_AGREES);
  assert_int_equal(verdicts[1], SHOAL_AGENT_LIES);
  assert_int_equal(shoal_agent_audit_draw(audit, &newcomer), SHOAL_AGENT_CHECKED);
  int drawn = 0;
  for (int i = 0; i < 10000; i++) drawn += shoal_agent_audit_draw(audit, &proven) == SHOAL_AGENT_CHECKED;
  assert_in_range(drawn, 200, 400); /* 3 in 100 */
  make_case(&tried, "CartPole-v1", "categorical", "dense 16 tanh");
  shoal_agent_audit_add(audit, &tried);
  shoal_agent_audit_destroy(audit);
  assert_int_equal(verdicts_count, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_same_unit_comes_to_the_same_bits),
      cmocka_unit_test(what_cannot_be_played_is_no_lie),
      cmocka_unit_test(checks_are_few_at_a_time),
  };
  return RUN_TESTS(tests);
}
