#include "check.h"

#include "base/power.h"

static void powers_are_products(void **state) {
  (void)state;
  assert_true(shoal_power(3, 0) == 1 && shoal_power(0, 0) == 1);
  assert_true(shoal_power(3, 13) == 1594323);
  assert_true(shoal_power(-2, 5) == -32);
  assert_true(shoal_power(0.5, 60) == 0x1p-60);
}

static void large_exponents_end_at_zero_or_infinity(void **state) {
  (void)state;
  assert_true(shoal_power(0.9, UINT64_MAX) == 0);
  assert_true(shoal_power(1.1, UINT64_MAX) == __builtin_inf());
  assert_true(shoal_power(1, UINT64_MAX) == 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(powers_are_products),
      cmocka_unit_test(large_exponents_end_at_zero_or_infinity),
  };
  return RUN_TESTS(tests);
}
