/* Each checker catches a core that is broken on purpose, and it is that checker and no other. */
#include <stdio.h>

#include "check.h"
#include "sim/life.h"

/* Lives seeds until `enough` of them broke a rule; every one must have broken this one. */
static void is_caught(shoal_sim_sabotage sabotage, const char *mode_text, shoal_sim_checker by,
                      uint64_t seeds, uint32_t enough) {
  shoal_mode mode;
  if (mode_text != NULL) assert_int_equal(shoal_mode_parse(mode_text, &mode, NULL), SHOAL_OK);
  uint32_t caught = 0;
  for (uint64_t seed = 0; seed < seeds && caught < enough; seed++) {
    shoal_sim_report report;
    shoal_sim_live(
        &(shoal_sim_config){.seed = seed, .mode = mode_text != NULL ? &mode : NULL, .sabotage = sabotage},
        &report);
    if (report.violated == SHOAL_SIM_NOTHING) continue;
    if (report.violated != by)
      fail_msg("seed %llu: caught by '%s' instead of '%s': %s", (unsigned long long)seed,
               shoal_sim_checker_name(report.violated), shoal_sim_checker_name(by), report.text);
    caught++;
  }
  if (caught < enough)
    fail_msg("only %u of %llu lives were caught by '%s'", caught, (unsigned long long)seeds,
             shoal_sim_checker_name(by));
}

static void samples_catches_a_part_that_counts_twice(void **state) {
  (void)state;
  is_caught(SHOAL_SABOTAGE_PART_TWICE, NULL, SHOAL_SIM_SAMPLES, 300, 10);
  is_caught(SHOAL_SABOTAGE_PART_TWICE, "sync", SHOAL_SIM_SAMPLES, 300, 10);
  is_caught(SHOAL_SABOTAGE_PART_TWICE, "stale:2", SHOAL_SIM_SAMPLES, 300, 10);
}

static void leases_catches_a_lease_with_two_holders(void **state) {
  (void)state;
  is_caught(SHOAL_SABOTAGE_TWO_HOLDERS, NULL, SHOAL_SIM_LEASES, 100, 50);
}

static void versions_catches_a_generation_that_comes_twice(void **state) {
  (void)state;
  is_caught(SHOAL_SABOTAGE_SAME_GENERATION, NULL, SHOAL_SIM_VERSIONS, 300, 50);
}

static void bits_catches_one_bit(void **state) {
  (void)state;
  is_caught(SHOAL_SABOTAGE_FLIP_BIT, "sync", SHOAL_SIM_BITS, 300, 50);
  is_caught(SHOAL_SABOTAGE_FLIP_BIT, "local:4", SHOAL_SIM_BITS, 300, 50);
}

static void staleness_catches_weights_that_are_too_old(void **state) {
  (void)state;
  is_caught(SHOAL_SABOTAGE_OLD_WEIGHTS, "sync", SHOAL_SIM_STALENESS, 300, 50);
  is_caught(SHOAL_SABOTAGE_OLD_WEIGHTS, "stale:2", SHOAL_SIM_STALENESS, 300, 20);
}

static void differs_catches_a_chief_that_does_not_compare(void **state) {
  (void)state;
  is_caught(SHOAL_SABOTAGE_BLIND, "sync", SHOAL_SIM_DIFFERS, 3000, 5);
}

static void durable_catches_what_is_not_flushed(void **state) {
  (void)state;
  is_caught(SHOAL_SABOTAGE_NO_FLUSH, NULL, SHOAL_SIM_DURABLE, 300, 30);
}

static void durable_catches_what_is_thrown_away_too_soon(void **state) {
  (void)state;
  is_caught(SHOAL_SABOTAGE_SHORT_MEMORY, NULL, SHOAL_SIM_DURABLE, 300, 10);
}

static void durable_catches_a_record_that_is_written_over(void **state) {
  (void)state;
  is_caught(SHOAL_SABOTAGE_IN_PLACE, NULL, SHOAL_SIM_DURABLE, 300, 20);
}

/* Lies of those who should be newcomers count; and an auditor that lies has the honest banned. */
static void guard_catches_who_is_believed_too_soon(void **state) {
  (void)state;
  is_caught(SHOAL_SABOTAGE_GULLIBLE, "sync", SHOAL_SIM_GUARD, 300, 20);
}

static void guard_catches_that_the_honest_are_banned(void **state) {
  (void)state;
  is_caught(SHOAL_SABOTAGE_SLANDER, "sync", SHOAL_SIM_GUARD, 300, 50);
}

static void deadlock_catches_a_report_that_never_arrives(void **state) {
  (void)state;
  is_caught(SHOAL_SABOTAGE_LOST_DONE, NULL, SHOAL_SIM_DEADLOCK, 60, 20);
}

static void memory_catches_a_flood(void **state) {
  (void)state;
  is_caught(SHOAL_SABOTAGE_FLOOD, NULL, SHOAL_SIM_MEMORY, 60, 50);
}

static void memory_catches_what_is_asked_again_and_again(void **state) {
  (void)state;
  is_caught(SHOAL_SABOTAGE_ECHO, NULL, SHOAL_SIM_MEMORY, 60, 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(samples_catches_a_part_that_counts_twice),
      cmocka_unit_test(leases_catches_a_lease_with_two_holders),
      cmocka_unit_test(versions_catches_a_generation_that_comes_twice),
      cmocka_unit_test(bits_catches_one_bit),
      cmocka_unit_test(staleness_catches_weights_that_are_too_old),
      cmocka_unit_test(differs_catches_a_chief_that_does_not_compare),
      cmocka_unit_test(durable_catches_what_is_not_flushed),
      cmocka_unit_test(durable_catches_what_is_thrown_away_too_soon),
      cmocka_unit_test(durable_catches_a_record_that_is_written_over),
      cmocka_unit_test(guard_catches_who_is_believed_too_soon),
      cmocka_unit_test(guard_catches_that_the_honest_are_banned),
      cmocka_unit_test(deadlock_catches_a_report_that_never_arrives),
      cmocka_unit_test(memory_catches_a_flood),
      cmocka_unit_test(memory_catches_what_is_asked_again_and_again),
  };
  return RUN_TESTS(tests);
}
