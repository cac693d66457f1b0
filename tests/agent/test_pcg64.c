#include "check.h"

#include "agent/pcg64.h"

/* Printed by numpy.random.default_rng(seed).random(). */
static void doubles_are_those_of_numpy(void **state) {
  (void)state;
  static const struct {
    uint64_t seed;
    double first[4];
  } known[] = {
      {42, {0.7739560485559633, 0.4388784397520523, 0.8585979199113825, 0.6973680290593639}},
      {0, {0.6369616873214543, 0.2697867137638703, 0.04097352393619469, 0.016527635528529094}},
      {4294967295, {0.2519435680449965, 0.21906579628685663, 0.28728472043517017, 0.6189813025326831}},
      {1099511627781, {0.004739459374490829, 0.3725845824112115, 0.5872294266977701, 0.15139964872492384}},
      {UINT64_MAX, {0.6800266789616931, 0.8453117585624743, 0.007403081599260064, 0.8945681264391473}},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    shoal_pcg64 random;
    shoal_pcg64_seed(&random, known[i].seed);
    for (int j = 0; j < 4; j++) assert_true(shoal_pcg64_double(&random) == known[i].first[j]);
  }
}

static void uniform_is_scaled_as_numpy_does_it(void **state) {
  (void)state;
  shoal_pcg64 random;
  shoal_pcg64_seed(&random, 42);
  assert_true(shoal_pcg64_uniform(&random, -0.05, 0.05) == -0.05 + (0.05 - -0.05) * 0.7739560485559633);
}

static void a_copy_goes_on_alike(void **state) {
  (void)state;
  shoal_pcg64 random;
  shoal_pcg64_seed(&random, 7);
  shoal_pcg64_u64(&random);
  shoal_pcg64 copy = random;
  for (int i = 0; i < 10; i++) assert_true(shoal_pcg64_u64(&random) == shoal_pcg64_u64(&copy));
}

static void whole_numbers_are_below_and_spread(void **state) {
  (void)state;
  shoal_pcg64 random;
  shoal_pcg64_seed(&random, 1);
  uint32_t counts[7] = {0};
  for (int i = 0; i < 7000; i++) {
    uint32_t drawn = shoal_pcg64_below(&random, 7);
    assert_true(drawn < 7);
    counts[drawn]++;
  }
  for (int i = 0; i < 7; i++) assert_in_range(counts[i], 880, 1120);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(doubles_are_those_of_numpy),
      cmocka_unit_test(uniform_is_scaled_as_numpy_does_it),
      cmocka_unit_test(a_copy_goes_on_alike),
      cmocka_unit_test(whole_numbers_are_below_and_spread),
  };
  return RUN_TESTS(tests);
}
