/* Lives full of faults break no rule, are the same for the same seed, and have seen every fault. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "sim/job.h"
#include "sim/life.h"

static void live(const shoal_sim_config *config, shoal_sim_report *report) {
  shoal_sim_live(config, report);
  if (report->violated != SHOAL_SIM_NOTHING)
    fail_msg("seed %llu (%s) breaks the rule '%s': %s", (unsigned long long)config->seed, report->what,
             shoal_sim_checker_name(report->violated), report->text);
}

static void lives_full_of_faults_break_no_rule(void **state) {
  (void)state;
  uint64_t faults[SHOAL_FAULTS] = {0}, backs = 0, differs = 0, again = 0;
  for (uint64_t seed = 0; seed < 400; seed++) {
    shoal_sim_report report;
    live(&(shoal_sim_config){.seed = seed}, &report);
    for (int f = 0; f < SHOAL_FAULTS; f++) faults[f] += report.faults[f];
    backs += report.backs;
    differs += report.differs;
    again += report.again;
  }
  for (int f = 0; f < SHOAL_FAULTS; f++)
    if (faults[f] == 0) fail_msg("no life has seen: %s", shoal_sim_fault_name(f));
  assert_true(backs > 400 && differs > 0 && again > 0);
}

static void every_mode_lives(void **state) {
  (void)state;
  const char *const modes[] = {"sync", "stale:0", "stale:1", "stale:5", "async", "local:1", "local:7"};
  for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++)
    for (uint64_t seed = 1000; seed < 1060; seed++) {
      shoal_mode mode;
      assert_int_equal(shoal_mode_parse(modes[m], &mode, NULL), SHOAL_OK);
      shoal_sim_report report;
      live(&(shoal_sim_config){.seed = seed, .mode = &mode}, &report);
    }
}

static void hundreds_of_workers_live(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 6; seed++) {
    shoal_sim_report report;
    live(&(shoal_sim_config){.seed = seed, .workers = 300}, &report);
    assert_int_equal(report.workers, 300);
  }
}

static void as_many_parameter_servers_as_there_may_be_live(void **state) {
  (void)state;
  const char *const modes[] = {"sync", "stale:2", "async", "local:3"};
  for (uint64_t seed = 0; seed < 20; seed++) {
    shoal_mode mode;
    assert_int_equal(shoal_mode_parse(modes[seed % 4], &mode, NULL), SHOAL_OK);
    shoal_sim_report report;
    live(&(shoal_sim_config){.seed = seed, .owners = SHOAL_SIM_OWNERS_MAX, .mode = &mode}, &report);
    assert_int_equal(report.owners, SHOAL_SIM_OWNERS_MAX);
  }
}

/* Keeping a version takes longer than a contribution is waited for, and often longer than silence is borne.
 * Nothing is lost by that, so nobody goes back: all do once, when the chief starts. */
static void slow_disks_take_nobody_back(void **state) {
  (void)state;
  shoal_mode mode;
  assert_int_equal(shoal_mode_parse("sync", &mode, NULL), SHOAL_OK);
  uint32_t quiet = 0;
  for (uint64_t seed = 0; seed < 300; seed++) {
    shoal_sim_report report;
    live(&(shoal_sim_config){.seed = seed, .mode = &mode, .slow_disks = true}, &report);
    if (strstr(report.what, "no faults") == NULL) continue;
    quiet++;
    if (report.backs != 1)
      fail_msg("seed %llu: went back %llu times", (unsigned long long)seed, (unsigned long long)report.backs);
  }
  assert_true(quiet > 10);
}

static void the_same_seed_is_the_same_life(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 20; seed++) {
    shoal_sim_report reports[2];
    shoal_text logs[2] = {{0}, {0}};
    memset(reports, 0, sizeof reports);
    for (int i = 0; i < 2; i++)
      shoal_sim_live(&(shoal_sim_config){.seed = seed, .log = &logs[i], .trace = true}, &reports[i]);
    assert_string_equal(logs[0].bytes, logs[1].bytes);
    assert_int_equal(reports[0].messages, reports[1].messages);
    assert_true(reports[0].virtual_s == reports[1].virtual_s);
    shoal_text_release(&logs[0]);
    shoal_text_release(&logs[1]);
  }
}

/* ---- worlds to measure in ---- */

static double seconds_of(uint32_t owners, uint32_t workers, double rate, double model_bytes,
                         const char *mode_text) {
  shoal_mode mode;
  assert_int_equal(shoal_mode_parse(mode_text, &mode, NULL), SHOAL_OK);
  shoal_world_link link = {.rate = rate, .latency_s = 0.0001};
  shoal_sim_costs costs = {.owners = owners,
                           .parts = 8,
                           .rounds = 50,
                           .server = link,
                           .worker = link,
                           .part_s = 0.01,
                           .push_bytes = model_bytes,
                           .pull_bytes = model_bytes};
  shoal_sim_report report;
  live(&(shoal_sim_config){.seed = 1, .workers = workers, .mode = &mode, .costs = &costs}, &report);
  assert_int_equal(report.rounds, 50);
  return report.virtual_s;
}

static void a_measured_world_takes_the_time_that_it_should(void **state) {
  (void)state;
  /* On a fast network computing is all: 50 rounds of 8 parts, shared by the workers. */
  double alone = seconds_of(1, 1, 1e12, 0, "sync");
  assert_true(fabs(alone - 4) < 0.1);
  assert_true(fabs(alone / seconds_of(1, 8, 1e12, 0, "sync") - 8) < 1.5);
  /* On a slow one the server's link is all: eight workers pull a megabyte a round over it, all at the
   * same time, and then push one. */
  double slow = seconds_of(1, 8, 1e8, 1e6, "sync"), one_way = 50 * 8 * 0.01;
  assert_true(slow > 2 * one_way && slow < 2 * one_way + 50 * 0.02);
  /* Many servers share what one had to carry. */
  assert_true(seconds_of(SHOAL_SIM_OWNERS_MAX, 8, 1e8, 1e6, "sync") < slow / 2);
  /* In async mode nobody waits for anybody. */
  assert_true(fabs(alone / seconds_of(1, 8, 1e12, 0, "async") - 8) < 1.5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lives_full_of_faults_break_no_rule),
      cmocka_unit_test(every_mode_lives),
      cmocka_unit_test(hundreds_of_workers_live),
      cmocka_unit_test(as_many_parameter_servers_as_there_may_be_live),
      cmocka_unit_test(slow_disks_take_nobody_back),
      cmocka_unit_test(the_same_seed_is_the_same_life),
      cmocka_unit_test(a_measured_world_takes_the_time_that_it_should),
  };
  return RUN_TESTS(tests);
}
