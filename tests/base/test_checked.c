#include "check.h"

#include "base/checked.h"

static void results_that_fit_are_right(void **state) {
  (void)state;
  uint64_t out;
  assert_true(shoal_mul_u64(UINT32_MAX, UINT32_MAX, &out) && out == 0xfffffffe00000001u);
  assert_true(shoal_add_u64(UINT64_MAX - 1, 1, &out) && out == UINT64_MAX);
}

static void results_that_do_not_fit_are_refused(void **state) {
  (void)state;
  uint64_t out;
  assert_false(shoal_mul_u64((uint64_t)1 << 32, (uint64_t)1 << 32, &out));
  assert_false(shoal_add_u64(UINT64_MAX, 1, &out));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(results_that_fit_are_right),
      cmocka_unit_test(results_that_do_not_fit_are_refused),
  };
  return RUN_TESTS(tests);
}
