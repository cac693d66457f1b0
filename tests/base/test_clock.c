#include "check.h"

#include "base/clock.h"

static void sleeping_lasts_at_least_as_long_as_asked(void **state) {
  (void)state;
  double start = shoal_clock_seconds();
  shoal_clock_sleep(0.02);
  assert_true(shoal_clock_seconds() - start >= 0.02);
  shoal_clock_sleep(0);
  shoal_clock_sleep(-1);
}

static void the_wall_clock_is_past_2020(void **state) {
  (void)state;
  assert_true(shoal_clock_wall_seconds() > 1577836800.0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sleeping_lasts_at_least_as_long_as_asked),
      cmocka_unit_test(the_wall_clock_is_past_2020),
  };
  return RUN_TESTS(tests);
}
