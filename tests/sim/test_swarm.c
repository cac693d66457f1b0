/* Swarms full of faults break no rule, every rule can be broken, and data spreads about as fast as it can. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "sim/swarm.h"

static void live(const shoal_swarm_sim *config, shoal_swarm_result *result) {
  shoal_swarm_live(config, result);
  if (result->violated != SHOAL_SWARM_WELL)
    fail_msg("seed %llu (%s) breaks the rule '%s': %s", (unsigned long long)config->seed, result->what,
             shoal_swarm_rule_name(result->violated), result->text);
}

static void swarms_full_of_faults_break_no_rule(void **state) {
  (void)state;
  uint64_t left = 0, joined = 0, exposed = 0, bad = 0, late = 0;
  for (uint64_t seed = 0; seed < 120; seed++) {
    shoal_swarm_result result;
    live(&(shoal_swarm_sim){.seed = seed, .drawn = true}, &result);
    left += result.left;
    joined += result.joined;
    exposed += result.exposed;
    bad += result.bad;
    late += result.late;
  }
  assert_true(left > 0 && joined > 0 && exposed > 0 && bad > 0 && late > 0);
}

static void the_same_seed_is_the_same_swarm(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 20; seed++) {
    shoal_swarm_result results[2];
    for (int i = 0; i < 2; i++)
      shoal_swarm_live(&(shoal_swarm_sim){.seed = seed, .drawn = true}, &results[i]);
    assert_true(results[0].last_s == results[1].last_s && results[0].messages == results[1].messages);
    assert_string_equal(results[0].what, results[1].what);
  }
}

/* Each sabotage is found, by its own rule and by no other. */
static void every_rule_can_be_broken(void **state) {
  (void)state;
  static const shoal_swarm_rule rules[SHOAL_SWARM_SABOTAGES] = {[SHOAL_SWARM_GULLIBLE] = SHOAL_SWARM_PURE,
                                                                [SHOAL_SWARM_EAGER] = SHOAL_SWARM_SLOTS,
                                                                [SHOAL_SWARM_HOLE] = SHOAL_SWARM_COMPLETE,
                                                                [SHOAL_SWARM_SPOILT] = SHOAL_SWARM_UPLOAD,
                                                                [SHOAL_SWARM_ECHO] = SHOAL_SWARM_MEMORY};
  for (int sabotage = 1; sabotage < SHOAL_SWARM_SABOTAGES; sabotage++) {
    bool corrupt = sabotage == SHOAL_SWARM_GULLIBLE;
    shoal_swarm_sim config = {.seed = 3,
                              .members = 20,
                              .bytes = 40 << 20,
                              .chunk_bytes = 1 << 20,
                              .rate = 10e6,
                              .latency_s = 0.01,
                              .slots = 3,
                              .corrupt = corrupt ? 0.3 : 0,
                              .sabotage = (shoal_swarm_sabotage)sabotage};
    shoal_swarm_result result;
    shoal_swarm_live(&config, &result);
    if (result.violated != rules[sabotage])
      fail_msg("sabotage %d is found by the rule '%s' and not by '%s': %s", sabotage,
               shoal_swarm_rule_name(result.violated), shoal_swarm_rule_name(rules[sabotage]), result.text);
  }
}

static shoal_swarm_result spread(shoal_swarm_sim config) {
  if (config.bytes == 0) config.bytes = 200 << 20;
  config.chunk_bytes = 1 << 20;
  config.rate = 100e6;
  config.latency_s = 0.001;
  shoal_swarm_result result;
  live(&config, &result);
  return result;
}

static void data_spreads_about_as_fast_as_it_leaves_the_server(void **state) {
  (void)state;
  static const uint32_t members[] = {1, 4, 8, 16, 32};
  for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
    shoal_swarm_result result = spread((shoal_swarm_sim){.members = members[i]});
    assert_int_equal(result.finished, members[i]);
    if (result.last_s > 1.3 * result.bound_s || result.copies > 1.1)
      fail_msg("%u members: %.2f s, at least %.2f, %.2f copies", members[i], result.last_s, result.bound_s,
               result.copies);
  }
}

/* Volunteers that begin to train at once need all of it now, and ask for certain chunks rather than any. */
static void the_server_sends_about_a_copy_also_when_all_is_urgent(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 5; seed++) {
    shoal_swarm_result result =
        spread((shoal_swarm_sim){.seed = seed, .members = 5, .on_demand = true, .bytes = 50 << 20});
    assert_int_equal(result.finished, 5);
    if (result.copies > 1.1) fail_msg("seed %llu: %.2f copies", (unsigned long long)seed, result.copies);
  }
}

static void the_baselines_take_the_time_that_they_should(void **state) {
  (void)state;
  double once = (200 << 20) / 100e6;
  shoal_swarm_result tree = spread((shoal_swarm_sim){.members = 31, .way = SHOAL_SWARM_TREE});
  assert_true(fabs(tree.last_s / once - 5) < 0.05);
  assert_true(fabs(tree.copies - 5) < 0.01);
  tree = spread((shoal_swarm_sim){.members = 32, .way = SHOAL_SWARM_TREE});
  assert_true(fabs(tree.last_s / once - 6) < 0.05);
  shoal_swarm_result server =
      spread((shoal_swarm_sim){.members = 8, .bytes = 50 << 20, .way = SHOAL_SWARM_SERVER});
  assert_true(fabs(server.copies - 8) < 0.01);
  assert_true(server.last_s > 8 * server.bound_s && server.last_s < 8 * server.bound_s + 3);
}

/* Links as people have them, where an uplink may need a minute for a chunk. */
static void on_mixed_links_the_server_sends_little_more_than_a_copy(void **state) {
  (void)state;
  enum { SEEDS = 6 };
  double times = 0;
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    shoal_swarm_result result;
    live(&(shoal_swarm_sim){.seed = seed,
                            .members = 100,
                            .bytes = 100000000,
                            .chunk_bytes = 1 << 20,
                            .rate = 1e6,
                            .server_rate = 12.5e6,
                            .latency_s = 0.03,
                            .mixed = true},
         &result);
    times += result.last_s / result.bound_s / SEEDS;
    if (result.copies > 1.5) fail_msg("seed %llu: %.2f copies", (unsigned long long)seed, result.copies);
  }
  if (times > 1.5) fail_msg("%.2f times the least possible", times);
}

static void half_of_the_members_die_in_the_middle(void **state) {
  (void)state;
  shoal_swarm_result result = spread((shoal_swarm_sim){.members = 24, .killed = 0.5});
  assert_true(result.left > 4);
  assert_int_equal(result.finished, 24 - result.left);
}

static void a_fifth_sends_corrupted_chunks(void **state) {
  (void)state;
  shoal_swarm_result result = spread((shoal_swarm_sim){.members = 30, .corrupt = 0.2});
  assert_true(result.exposed > 0 && result.bad > 0 && result.finished < 30);
}

static void the_server_leaves_and_nobody_is_stuck_at_99_percent(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 5; seed++) {
    shoal_swarm_result result = spread((shoal_swarm_sim){.seed = seed, .members = 20, .server_leaves = true});
    assert_int_equal(result.finished, 20);
    assert_true(result.copies < 1.05);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(swarms_full_of_faults_break_no_rule),
      cmocka_unit_test(the_same_seed_is_the_same_swarm),
      cmocka_unit_test(every_rule_can_be_broken),
      cmocka_unit_test(data_spreads_about_as_fast_as_it_leaves_the_server),
      cmocka_unit_test(the_server_sends_about_a_copy_also_when_all_is_urgent),
      cmocka_unit_test(the_baselines_take_the_time_that_they_should),
      cmocka_unit_test(on_mixed_links_the_server_sends_little_more_than_a_copy),
      cmocka_unit_test(half_of_the_members_die_in_the_middle),
      cmocka_unit_test(a_fifth_sends_corrupted_chunks),
      cmocka_unit_test(the_server_leaves_and_nobody_is_stuck_at_99_percent),
  };
  return RUN_TESTS(tests);
}
