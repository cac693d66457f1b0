/* test_agent_runner.c: a training goes on from its folder, its time stands still while nobody plays, and what
 * actors say is not trusted. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "check.h"
#include "server/agent_audit.h"
#include "server/agent_curve.h"
#include "server/agent_runner.h"

enum { UNITS_MAX = 2 };
static char folder[64];
static shoal_agent_spec spec;
static shoal_error err;
static const shoal_agent_view nothing = {.return_mean = NAN, .score = NAN};

static void changed(void *self) { (void)self; }

static void parse(const char *json) {
  shoal_spec_fault fault;
  assert_int_equal(shoal_agent_spec_parse(&spec, json, strlen(json), &fault, &err), SHOAL_OK);
}

static shoal_agent_runner *start(const shoal_agent_view *before) {
  const shoal_agent_runner_config config = {
      .spec = &spec, .folder = folder, .before = before, .threads = 1, .changed = changed};
  shoal_agent_runner *r;
  assert_int_equal(shoal_agent_runner_start(&r, &config, &err), SHOAL_OK);
  return r;
}

static void wait_for(shoal_agent_runner *r, shoal_agent_phase phase, shoal_agent_view *view) {
  double deadline = shoal_clock_seconds() + PATIENCE_S;
  do {
    shoal_agent_runner_look(r, view);
    usleep(1000);
  } while (view->phase != phase && shoal_clock_seconds() < deadline);
  assert_int_equal(view->phase, phase);
}

/* Who plays: as a volunteer does. */
typedef struct bench {
  const char *name;
  shoal_actor_brief brief;
  shoal_actor *actor;
  shoal_rollout *rollout;
  shoal_play_unit unit;
  shoal_text bytes, policy;
  uint64_t known;
} bench;

static void open_bench(bench *b, shoal_agent_runner *r) {
  shoal_text json = {0};
  *b = (bench){.name = "ann", .known = UINT64_MAX};
  assert_int_equal(shoal_agent_runner_brief(r, &json, &err), SHOAL_OK);
  assert_int_equal(shoal_actor_brief_read(&b->brief, json.bytes, json.length, &err), SHOAL_OK);
  shoal_text_release(&json);
  assert_int_equal(shoal_actor_create(&b->actor, &b->brief.spec, b->brief.envs, b->brief.steps, &err),
                   SHOAL_OK);
  const shoal_rollout_shape shape = {b->brief.spec.kind, b->brief.envs, b->brief.steps,
                                     shoal_policy_memory_floats(shoal_actor_policy(b->actor))};
  assert_int_equal(shoal_rollout_create(&b->rollout, &shape, &err), SHOAL_OK);
}

static void close_bench(bench *b) {
  shoal_rollout_destroy(b->rollout);
  shoal_actor_destroy(b->actor);
  shoal_text_release(&b->bytes);
  shoal_text_release(&b->policy);
  shoal_text_release(&b->unit.state);
}

/* Plays a unit, if there is one; its rollout is in `bytes` then. */
static shoal_coach_next play(bench *b, shoal_agent_runner *r) {
  shoal_coach_next next;
  assert_int_equal(
      shoal_agent_runner_take(r, b->name, UNITS_MAX, b->known, &next, &b->bytes, &b->policy, &err), SHOAL_OK);
  if (next != SHOAL_COACH_UNIT) return next;
  assert_int_equal(shoal_play_unit_read(&b->unit, b->bytes.bytes, b->bytes.length, &err), SHOAL_OK);
  if (b->policy.length > 0)
    assert_int_equal(shoal_policy_read(shoal_actor_policy(b->actor), b->policy.bytes, b->policy.length, &err),
                     SHOAL_OK);
  b->known = b->unit.version;
  assert_int_equal(shoal_actor_play(b->actor, &b->unit, b->rollout, &err), SHOAL_OK);
  shoal_text_clear(&b->bytes);
  shoal_rollout_write(b->rollout, &b->bytes);
  return next;
}

static void play_until(shoal_agent_runner *r, uint64_t steps) {
  bench b;
  shoal_agent_view view;
  shoal_agent_done done;
  open_bench(&b, r);
  double deadline = shoal_clock_seconds() + PATIENCE_S;
  for (shoal_coach_next next = SHOAL_COACH_WAITS; next != SHOAL_COACH_OVER;) {
    next = play(&b, r);
    if (next == SHOAL_COACH_UNIT)
      assert_int_equal(shoal_agent_runner_done(r, "ann", b.bytes.bytes, b.bytes.length, &done, &err),
                       SHOAL_OK);
    else
      usleep(1000);
    shoal_agent_runner_look(r, &view);
    if (view.steps >= steps) break;
    assert_true(shoal_clock_seconds() < deadline);
  }
  close_bench(&b);
}

static void finish(shoal_agent_runner *r, shoal_agent_view *view) {
  shoal_text lines = {0};
  shoal_agent_runner_stop(r);
  shoal_agent_runner_wait(r);
  shoal_agent_runner_look(r, view);
  shoal_agent_runner_take_points(r, &lines);
  shoal_text_release(&lines);
  shoal_agent_runner_destroy(r);
}

static int begin(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/shoal-agent-runner-%d", (int)getpid());
  shoal_remove_folder(folder, NULL);
  return shoal_make_folder(folder, &err) == SHOAL_OK ? 0 : -1;
}

static int end(void **state) {
  (void)state;
  shoal_agent_spec_release(&spec);
  return shoal_remove_folder(folder, NULL) == SHOAL_OK ? 0 : -1;
}

static bool is_there(const char *name) {
  char *path = shoal_path("%s/%s", folder, name);
  bool there = shoal_file_exists(path);
  free(path);
  return there;
}

static void it_is_played_to_its_end(void **state) {
  (void)state;
  shoal_agent_view view;
  parse("{\"env\":\"CartPole-v1\",\"steps\":6000,\"until_solved\":false}");
  shoal_agent_runner *r = start(&nothing);
  wait_for(r, SHOAL_AGENT_OPEN, &view);
  assert_true(shoal_agent_runner_rollout_max(r) > 0);
  play_until(r, UINT64_MAX);
  wait_for(r, SHOAL_AGENT_ENDED, &view);
  finish(r, &view);
  assert_string_equal(view.error, "");
  assert_true(view.finished && view.steps >= 6000 && view.episodes > 0 && view.checkpoints >= 1);
  assert_false(isnan(view.score) || isnan(view.return_mean));
  assert_true(is_there("agent.safetensors") && is_there("model.safetensors") && is_there("curve.jsonl"));
  assert_true(is_there("model.onnx") && view.remark[0] == 0 && view.went_on == 0);
}

/* For other runtimes there are only policies that remember nothing; that is told. */
static void a_policy_that_remembers_is_not_there_as_onnx(void **state) {
  (void)state;
  shoal_agent_view view;
  parse("{\"env\":\"CartPole-v1\",\"until_solved\":false,\"body\":\"gru 8\"}");
  shoal_agent_runner *r = start(&nothing);
  wait_for(r, SHOAL_AGENT_OPEN, &view);
  play_until(r, 2000);
  assert_false(is_there("model.onnx"));
  finish(r, &view);
  assert_true(is_there("model.safetensors") && !is_there("model.onnx"));
  assert_non_null(strstr(view.remark, "not there as ONNX"));
  assert_null(strstr(view.remark, folder));
}

/* Saves that fail for want of room end nothing, and are told of. */
static void a_full_disk_is_remarked_on(void **state) {
  (void)state;
  shoal_agent_view view;
  parse("{\"env\":\"CartPole-v1\",\"steps\":1000000000,\"until_solved\":false}");
  shoal_agent_runner *r = start(&nothing);
  wait_for(r, SHOAL_AGENT_OPEN, &view);
  char *file = shoal_path("%s/agent.safetensors", folder);
  assert_int_equal(symlink("/dev/full", file), 0);
  while (view.remarks == 0) {
    play_until(r, view.steps + 1);
    shoal_agent_runner_look(r, &view);
  }
  assert_int_equal(view.phase, SHOAL_AGENT_OPEN);
  assert_non_null(strstr(view.remark, "agent.safetensors: no space left"));
  assert_null(strstr(view.remark, folder));
  finish(r, &view);
  assert_int_equal(unlink(file), 0);
  free(file);
}

static void it_goes_on_from_its_folder(void **state) {
  (void)state;
  shoal_agent_view view, again;
  parse("{\"env\":\"CartPole-v1\",\"steps\":1000000,\"until_solved\":false}");
  shoal_agent_runner *r = start(&nothing);
  wait_for(r, SHOAL_AGENT_OPEN, &view);
  play_until(r, 4000);
  finish(r, &view);
  assert_false(view.finished);
  assert_true(view.steps >= 4000 && view.seconds > 0);
  assert_true(is_there("model.onnx"));
  /* As if it had been killed after it had gone further than its file. */
  shoal_text late = {0};
  char *curve = shoal_path("%s/curve.jsonl", folder);
  char *beyond = shoal_path("%s/checkpoints/900000.safetensors", folder);
  shoal_text_addf(&late, "{\"steps\":900000,\"seconds\":77}\n");
  assert_int_equal(shoal_agent_curve_add(curve, &late, &err), SHOAL_OK);
  FILE *file = fopen(beyond, "wb");
  assert_non_null(file);
  fclose(file);
  r = start(&view);
  wait_for(r, SHOAL_AGENT_OPEN, &again);
  assert_int_equal(again.steps, view.steps);
  assert_int_equal(again.went_on, view.steps);
  assert_false(is_there("model.onnx")); /* it was the policy's before */
  assert_true(again.seconds >= view.seconds && again.seconds < view.seconds + 30);
  assert_false(shoal_file_exists(beyond));
  double seconds;
  assert_int_equal(shoal_agent_curve_cut(curve, UINT64_MAX, &seconds, &err), SHOAL_OK);
  assert_true(seconds <= view.seconds);
  play_until(r, view.steps + 1);
  finish(r, &again);
  assert_true(again.steps > view.steps && again.episodes >= view.episodes);
  shoal_text_release(&late);
  free(curve);
  free(beyond);
}

static void time_without_anybody_does_not_count(void **state) {
  (void)state;
  shoal_agent_view view, later;
  parse("{\"env\":\"CartPole-v1\",\"seconds\":0.3,\"until_solved\":false}");
  shoal_agent_runner *r = start(&nothing);
  wait_for(r, SHOAL_AGENT_OPEN, &view);
  shoal_agent_runner_tick(r, false);
  shoal_agent_runner_look(r, &view);
  usleep(500000);
  shoal_agent_runner_look(r, &later);
  assert_float_equal(view.seconds, later.seconds, 0);
  assert_int_equal(later.phase, SHOAL_AGENT_OPEN);
  shoal_agent_runner_tick(r, true);
  wait_for(r, SHOAL_AGENT_ENDED, &view);
  finish(r, &view);
  assert_true(view.finished && view.seconds >= 0.3);
}

static void what_actors_say_is_checked(void **state) {
  (void)state;
  shoal_agent_view view;
  shoal_agent_done done;
  bench b;
  parse("{\"env\":\"CartPole-v1\",\"until_solved\":false}");
  shoal_agent_runner *r = start(&nothing);
  wait_for(r, SHOAL_AGENT_OPEN, &view);
  open_bench(&b, r);
  assert_int_equal(play(&b, r), SHOAL_COACH_UNIT);
  assert_true(b.bytes.length <= shoal_agent_runner_rollout_max(r));
  b.bytes.bytes[b.bytes.length / 2] ^= 1;
  assert_int_equal(shoal_agent_runner_done(r, "ann", b.bytes.bytes, b.bytes.length, &done, &err),
                   SHOAL_INVALID);
  b.bytes.bytes[b.bytes.length / 2] ^= 1;
  assert_int_equal(shoal_agent_runner_done(r, "ann", b.bytes.bytes, b.bytes.length, &done, &err), SHOAL_OK);
  assert_true(done.counted && done.steps == (uint64_t)b.brief.envs * b.brief.steps);
  /* Once more, the same. */
  assert_int_equal(shoal_agent_runner_done(r, "bob", b.bytes.bytes, b.bytes.length, &done, &err), SHOAL_OK);
  assert_false(done.counted);
  shoal_agent_runner_look(r, &view);
  assert_int_equal(view.lost, 1);
  assert_int_equal(view.waiting, 1);
  assert_int_equal(view.actors, 2);
  shoal_agent_runner_lost(r, "bob");
  shoal_agent_runner_look(r, &view);
  assert_int_equal(view.actors, 1);
  close_bench(&b);
  finish(r, &view);
}

/* Waits for a unit, and plays it. */
static void play_next(bench *b, shoal_agent_runner *r) {
  double deadline = shoal_clock_seconds() + PATIENCE_S;
  shoal_coach_next next;
  while ((next = play(b, r)) == SHOAL_COACH_WAITS && shoal_clock_seconds() < deadline) usleep(1000);
  assert_int_equal(next, SHOAL_COACH_UNIT);
}

static shoal_status send(shoal_agent_runner *r, bench *b, const char *actor, shoal_agent_done *done) {
  shoal_text_clear(&b->bytes);
  shoal_rollout_write(b->rollout, &b->bytes);
  return shoal_agent_runner_done(r, actor, b->bytes.bytes, b->bytes.length, done, &err);
}

/* The first rounds of somebody honest. */
static shoal_agent_runner *begin_training(bench *b, const char *json) {
  shoal_agent_view view;
  parse(json);
  shoal_agent_runner *r = start(&nothing);
  wait_for(r, SHOAL_AGENT_OPEN, &view);
  open_bench(b, r);
  play_until(r, (uint64_t)3 * spec.settings.streams * b->brief.envs * b->brief.steps);
  return r;
}

static void wait_for_version(shoal_agent_runner *r, uint64_t version, shoal_agent_view *view) {
  double deadline = shoal_clock_seconds() + PATIENCE_S;
  do {
    usleep(1000);
    shoal_agent_runner_look(r, view);
  } while (view->version < version && shoal_clock_seconds() < deadline);
  assert_true(view->version >= version);
}

/* Who says to have played with a version from long ago cannot be checked. */
static void lies_about_old_versions_do_not_count(void **state) {
  (void)state;
  bench b;
  shoal_agent_view view;
  shoal_agent_done done;
  shoal_agent_runner *r =
      begin_training(&b, "{\"env\":\"CartPole-v1\",\"until_solved\":false,\"settings\":{\"streams\":1}}");
  play_next(&b, r);
  assert_true(b.rollout->version >= 3);
  uint64_t version = b.rollout->version;
  for (uint64_t older = 0; older < version; older++) {
    b.rollout->version = older;
    assert_int_equal(send(r, &b, "ann", &done), SHOAL_OK);
    assert_true(!done.counted && done.steps == 0);
  }
  b.rollout->version = version;
  assert_int_equal(send(r, &b, "eve", &done), SHOAL_OK); /* who was not given it */
  assert_false(done.counted);
  assert_int_equal(send(r, &b, "ann", &done), SHOAL_OK);
  assert_true(done.counted);
  close_bench(&b);
  finish(r, &view);
}

/* What finds no room to be checked: it does not count, and the unit is there for others. */
static void what_is_refused_is_given_again(void **state) {
  (void)state;
  bench b;
  shoal_agent_view view;
  shoal_agent_done done;
  shoal_agent_runner *r =
      begin_training(&b, "{\"env\":\"CartPole-v1\",\"until_solved\":false,\"settings\":{\"streams\":1}}");
  play_next(&b, r);
  uint64_t number = b.unit.number;
  assert_int_equal(shoal_agent_runner_refuse(r, "ann", b.bytes.bytes, b.bytes.length, &err), SHOAL_OK);
  assert_int_equal(shoal_agent_runner_refuse(r, "ann", "garbage", 7, &err), SHOAL_INVALID);
  assert_int_equal(send(r, &b, "ann", &done), SHOAL_OK);
  assert_false(done.counted);
  play_next(&b, r);
  assert_int_equal(b.unit.number, number);
  assert_int_equal(send(r, &b, "ann", &done), SHOAL_OK);
  assert_true(done.counted);
  close_bench(&b);
  finish(r, &view);
}

/* A state that nobody could go on from is refused; and where one cannot, the stream begins anew after a while. */
static void a_poisoned_state_ends_nothing(void **state) {
  (void)state;
  bench b;
  shoal_agent_view view;
  shoal_agent_done done;
  shoal_agent_runner *r =
      begin_training(&b, "{\"env\":\"CartPole-v1\",\"until_solved\":false,\"settings\":{\"streams\":1}}");
  play_next(&b, r);
  uint64_t number = b.unit.number;
  assert_true(b.unit.state.length > 0);
  shoal_text_clear(&b.rollout->state);
  shoal_text_addf(&b.rollout->state, "poison");
  assert_int_equal(send(r, &b, "ann", &done), SHOAL_INVALID);
  for (int i = 0; i < 2; i++) {
    b.name = i == 0 ? "bob" : "cid";
    play_next(&b, r);
    assert_int_equal(b.unit.number, number);
    shoal_agent_runner_give_up(r, b.name, number);
  }
  b.name = "ann";
  play_next(&b, r);
  assert_true(b.unit.number != number);
  assert_int_equal(b.unit.state.length, 0);
  assert_int_equal(send(r, &b, "ann", &done), SHOAL_OK);
  assert_true(done.counted);
  /* Who has lied has left its streams; they are played from their beginnings. */
  shoal_agent_runner_lied(r, "ann");
  play_next(&b, r);
  assert_int_equal(b.unit.state.length, 0);
  close_bench(&b);
  shoal_agent_runner_lost(r, "ann"); /* with that unit */
  shoal_agent_runner_look(r, &view);
  play_until(r, view.steps + 4000);
  finish(r, &view);
  assert_string_equal(view.error, "");
}

/* Numbers that are sound one by one, and that nothing can be learned from. */
static void a_round_that_cannot_be_learned_from_is_refused(void **state) {
  (void)state;
  bench b;
  shoal_agent_view view, after;
  shoal_agent_done done;
  shoal_agent_runner *r = begin_training(
      &b, "{\"env\":\"CartPole-v1\",\"until_solved\":false,\"exact\":true,\"settings\":{\"streams\":2}}");
  shoal_agent_runner_look(r, &view);
  for (uint32_t i = 0; i < spec.settings.streams; i++) {
    play_next(&b, r);
    for (uint32_t row = 0; row < b.brief.envs * b.brief.steps; row++) b.rollout->log_probs[row] = -1e9f;
    assert_int_equal(send(r, &b, "ann", &done), SHOAL_OK);
    assert_true(done.counted);
  }
  wait_for_version(r, view.version + 1, &after);
  for (int i = 0; i < 100 * PATIENCE_S && after.refused == 0;
       i++) { /* what is told of a round may come after its policy */
    usleep(10000);
    shoal_agent_runner_look(r, &after);
  }
  assert_true(after.refused > 0 && after.phase == SHOAL_AGENT_OPEN);
  uint64_t steps = after.steps;
  play_until(r, steps + 4000);
  close_bench(&b);
  finish(r, &view);
  assert_string_equal(view.error, "");
  assert_true(view.steps >= steps + 4000);
}

/* One that asks and asks leaves units for others. */
static void nobody_has_all_units(void **state) {
  (void)state;
  shoal_agent_view view;
  shoal_coach_next next;
  shoal_text unit = {0}, policy = {0};
  parse("{\"env\":\"CartPole-v1\",\"until_solved\":false,\"settings\":{\"streams\":4}}");
  shoal_agent_runner *r = start(&nothing);
  wait_for(r, SHOAL_AGENT_OPEN, &view);
  for (int i = 0; i < 50; i++) {
    assert_int_equal(shoal_agent_runner_take(r, "greedy", UNITS_MAX, UINT64_MAX, &next, &unit, &policy, &err),
                     SHOAL_OK);
    assert_int_equal(next, SHOAL_COACH_UNIT);
  }
  for (int i = 0; i < 3; i++) {
    assert_int_equal(shoal_agent_runner_take(r, "ann", 9, UINT64_MAX, &next, &unit, &policy, &err), SHOAL_OK);
    assert_int_equal(next, i < 2 ? SHOAL_COACH_UNIT : SHOAL_COACH_WAITS);
  }
  shoal_text_release(&unit);
  shoal_text_release(&policy);
  finish(r, &view);
}

/* Of an actor that is twenty versions behind, where the algorithm does not mind. */
static void what_may_be_learned_from_can_be_checked(void **state) {
  (void)state;
  shoal_agent_view view;
  shoal_agent_case tried = {0};
  bench slow;
  parse("{\"env\":\"MountainCar-v0\",\"algorithm\":\"dqn\",\"until_solved\":false,"
        "\"settings\":{\"streams\":4,\"updates\":0.01}}");
  shoal_agent_runner *r = start(&nothing);
  wait_for(r, SHOAL_AGENT_OPEN, &view);
  open_bench(&slow, r);
  assert_int_equal(play(&slow, r), SHOAL_COACH_UNIT);
  uint64_t round = (uint64_t)4 * slow.brief.envs * slow.brief.steps;
  play_until(r, 20 * round);
  shoal_agent_runner_look(r, &view);
  assert_true(view.version >= slow.known + 20);
  assert_true(shoal_agent_runner_evidence(r, slow.bytes.bytes, slow.bytes.length, &tried.brief, &tried.unit,
                                          &tried.policy));
  shoal_text_add(&tried.rollout, slow.bytes.bytes, slow.bytes.length);
  assert_int_equal(shoal_agent_case_try(&tried), SHOAL_AGENT_AGREES);
  shoal_agent_done done;
  assert_int_equal(shoal_agent_runner_done(r, "ann", slow.bytes.bytes, slow.bytes.length, &done, &err),
                   SHOAL_OK);
  assert_true(done.counted);
  /* Handed in already, it is nobody's to check. */
  assert_false(shoal_agent_runner_evidence(r, slow.bytes.bytes, slow.bytes.length, &tried.brief, &tried.unit,
                                           &tried.policy));
  shoal_agent_case_release(&tried);
  close_bench(&slow);
  finish(r, &view);
}

/* Nobody has learned from what waits: nothing more is given out, and nothing grows. */
static void rollouts_that_wait_are_bounded(void **state) {
  (void)state;
  shoal_agent_view view;
  bench b;
  shoal_agent_done done;
  uint64_t most = 0;
  parse("{\"env\":\"CartPole-v1\",\"until_solved\":false,\"settings\":{\"streams\":8,\"epochs\":60}}");
  shoal_agent_runner *r = start(&nothing);
  wait_for(r, SHOAL_AGENT_OPEN, &view);
  open_bench(&b, r);
  for (int i = 0; i < 200; i++) {
    if (play(&b, r) == SHOAL_COACH_UNIT)
      assert_int_equal(shoal_agent_runner_done(r, "ann", b.bytes.bytes, b.bytes.length, &done, &err),
                       SHOAL_OK);
    shoal_agent_runner_look(r, &view);
    if (view.waiting > most) most = view.waiting;
  }
  assert_in_range(most, 1, 16);
  close_bench(&b);
  finish(r, &view);
}

static void a_damaged_file_ends_it_with_a_reason(void **state) {
  (void)state;
  shoal_agent_view view;
  char *path = shoal_path("%s/agent.safetensors", folder);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  fputs("no agent", file);
  fclose(file);
  parse("{\"env\":\"CartPole-v1\"}");
  shoal_agent_runner *r = start(&nothing);
  wait_for(r, SHOAL_AGENT_ENDED, &view);
  assert_true(view.error[0] != 0 && strstr(view.error, folder) == NULL);
  finish(r, &view);
  free(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(it_is_played_to_its_end, begin, end),
      cmocka_unit_test_setup_teardown(a_policy_that_remembers_is_not_there_as_onnx, begin, end),
      cmocka_unit_test_setup_teardown(a_full_disk_is_remarked_on, begin, end),
      cmocka_unit_test_setup_teardown(it_goes_on_from_its_folder, begin, end),
      cmocka_unit_test_setup_teardown(time_without_anybody_does_not_count, begin, end),
      cmocka_unit_test_setup_teardown(what_actors_say_is_checked, begin, end),
      cmocka_unit_test_setup_teardown(what_may_be_learned_from_can_be_checked, begin, end),
      cmocka_unit_test_setup_teardown(lies_about_old_versions_do_not_count, begin, end),
      cmocka_unit_test_setup_teardown(what_is_refused_is_given_again, begin, end),
      cmocka_unit_test_setup_teardown(a_poisoned_state_ends_nothing, begin, end),
      cmocka_unit_test_setup_teardown(a_round_that_cannot_be_learned_from_is_refused, begin, end),
      cmocka_unit_test_setup_teardown(nobody_has_all_units, begin, end),
      cmocka_unit_test_setup_teardown(rollouts_that_wait_are_bounded, begin, end),
      cmocka_unit_test_setup_teardown(a_damaged_file_ends_it_with_a_reason, begin, end),
  };
  return RUN_TESTS(tests);
}
