/* What audits cost, and how soon a liar is caught: long lives in which nothing goes wrong but lies. The tables of
 * docs/audits.md are printed here. */
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "sim/life.h"

enum { WORKERS = 10, LIVES = 50 };

/* The first `proven` liars have agreed so often, or with 0 all workers. */
static shoal_sim_report live(uint64_t seed, uint64_t rounds, uint64_t agreed, uint32_t proven,
                             shoal_sim_lie lie, uint32_t liars) {
  shoal_mode mode;
  shoal_sim_report report;
  assert_int_equal(shoal_mode_parse("sync", &mode, NULL), SHOAL_OK);
  shoal_sim_live(&(shoal_sim_config){.seed = seed,
                                     .workers = WORKERS,
                                     .owners = 1,
                                     .mode = &mode,
                                     .guarded = true,
                                     .calm = true,
                                     .end = rounds,
                                     .agreed = agreed,
                                     .proven = proven,
                                     .lie = lie,
                                     .liars = liars},
                 &report);
  if (report.violated != SHOAL_SIM_NOTHING) fail_msg("seed %llu: %s", (unsigned long long)seed, report.text);
  return report;
}

static void audits_cost_less_than_five_in_a_hundred(void **state) {
  (void)state;
  static const struct {
    const char *who;
    uint64_t agreed, rounds;
  } rows[] = {{"newcomers, 100 rounds", 0, 100},
              {"newcomers, 1000 rounds", 0, 1000},
              {"newcomers, 3000 rounds", 0, 3000},
              {"proven for long", 1000, 1000}};
  print_message("units computed again, as a share of those that count, %d workers:\n", WORKERS);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    uint64_t units = 0, checks = 0;
    for (uint64_t seed = 0; seed < 2; seed++) {
      shoal_sim_report report = live(seed, rows[i].rounds, rows[i].agreed, 0, SHOAL_LIE_ALWAYS, 0);
      units += report.units;
      checks += report.checks;
    }
    double share = (double)checks / (double)units;
    print_message("  %-24s %6.2f%%  (%llu of %llu)\n", rows[i].who, 100 * share, (unsigned long long)checks,
                  (unsigned long long)units);
    if (rows[i].agreed > 0) assert_true(share > 0.02 && share < 0.05);
  }
}

static int compare(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void liars_are_caught_within_a_few_units(void **state) {
  (void)state;
  static const struct {
    const char *what;
    shoal_sim_lie lie;
    uint64_t agreed;
    uint32_t proven, liars;
    uint64_t rounds, median_most;
    bool stays; /* what it did before its last audit that agreed */
  } rows[] = {
      {"always, from the first unit on", SHOAL_LIE_ALWAYS, 0, 0, 1, 100, 4, false},
      {"two that agree, from the first", SHOAL_LIE_PAIR, 0, 0, 2, 100, 4, false},
      {"what is sent is not what is reported", SHOAL_LIE_DIGEST, 0, 0, 1, 100, 2, false},
      {"every tenth unit", SHOAL_LIE_SOMETIMES, 0, 0, 1, 1500, 300, true},
      {"always, once it is proven", SHOAL_LIE_TRUSTED, 0, 0, 1, 500, 10, false},
      {"always, after 1000 audits agreed", SHOAL_LIE_TRUSTED, 1000, 0, 1, 600, 50, false},
      {"two that agree, after 1000 each", SHOAL_LIE_PAIR, 1000, 0, 2, 600, 50, false},
      {"one of 1000 and three newcomers agree", SHOAL_LIE_PAIR, 1000, 1, 4, 600, 50, false},
      {"the last three rounds, after 1000", SHOAL_LIE_LAST, 1000, 0, 1, 250, 6, false},
  };
  print_message("units from a liar's first lie until it is banned, %d lives each:\n", LIVES);
  print_message("  %-38s %6s %6s %6s %6s  not caught  lies used, not undone\n", "it lies", "median", "mean",
                "90%", "most");
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    uint64_t after[LIVES], count = 0, used = 0, stayed = 0;
    double sum = 0;
    for (uint64_t seed = 0; seed < LIVES; seed++) {
      shoal_sim_report report =
          live(seed, rows[i].rounds, rows[i].agreed, rows[i].proven, rows[i].lie, rows[i].liars);
      used += report.lies_used;
      stayed += report.lies_stayed;
      if (report.caught_after == 0) continue;
      sum += (double)report.caught_after;
      after[count++] = report.caught_after;
    }
    assert_true(count > 0);
    qsort(after, count, sizeof *after, compare);
    print_message("  %-38s %6llu %6.1f %6llu %6llu  %10llu  %llu, in %llu lives\n", rows[i].what,
                  (unsigned long long)after[count / 2], sum / (double)count,
                  (unsigned long long)after[count * 9 / 10], (unsigned long long)after[count - 1],
                  (unsigned long long)(LIVES - count), (unsigned long long)used, (unsigned long long)stayed);
    assert_true(count > LIVES * 9 / 10);
    assert_true(rows[i].stays || (count == LIVES && stayed == 0));
    assert_true(after[count / 2] <= rows[i].median_most);
  }
}

/* Machines of one's own, one of them with faulty memory, beside every other kind of fault: with all units computed twice
 * nothing wrong counts, so that the bits are one machine's (a rule that every life is checked for); with a share of them the
 * machine is found, and what it did is undone. */
static void a_faulty_machine_among_known_ones_is_found(void **state) {
  (void)state;
  shoal_mode mode;
  assert_int_equal(shoal_mode_parse("sync", &mode, NULL), SHOAL_OK);
  static const shoal_sim_lie LIES[] = {SHOAL_LIE_ALWAYS, SHOAL_LIE_SOMETIMES};
  uint32_t always = 0, found = 0;
  for (uint64_t seed = 0; seed < 48; seed++) {
    const double recheck = seed % 2 == 0 ? 1 : 0.3;
    shoal_sim_report report;
    shoal_sim_live(&(shoal_sim_config){.seed = seed,
                                       .workers = 3,
                                       .mode = &mode,
                                       .guarded = true,
                                       .recheck = recheck,
                                       .lie = LIES[seed / 2 % 2],
                                       .liars = 1,
                                       .end = 30},
                   &report);
    if (report.violated != SHOAL_SIM_NOTHING)
      fail_msg("seed %llu: %s", (unsigned long long)seed, report.text);
    if (recheck >= 1) assert_int_equal(report.lies_used, 0);
    always += LIES[seed / 2 % 2] == SHOAL_LIE_ALWAYS && report.lies > 0;
    found += LIES[seed / 2 % 2] == SHOAL_LIE_ALWAYS && report.banned == 1;
  }
  print_message("a faulty machine was found in %u of %u lives\n", found, always);
  assert_true(always >= 15 && found >= always - 3); /* or others were quicker with all of its units */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(audits_cost_less_than_five_in_a_hundred),
      cmocka_unit_test(liars_are_caught_within_a_few_units),
      cmocka_unit_test(a_faulty_machine_among_known_ones_is_found),
  };
  return RUN_TESTS(tests);
}
