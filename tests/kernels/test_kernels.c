/* The choice of a table: by the processor, or by the environment. */
#include "kernels/reference.h"

static void the_environment_chooses_the_table(void **state) {
  (void)state;
  unsetenv("SHOAL_KERNELS");
  assert_non_null(shoal_kernels_get());
  setenv("SHOAL_KERNELS", "", 1);
  assert_non_null(shoal_kernels_get());
  setenv("SHOAL_KERNELS", "baseline", 1);
  assert_string_equal(shoal_kernels_get()->name, "baseline");
  setenv("SHOAL_KERNELS", "abacus", 1);
  assert_null(shoal_kernels_get());
  unsetenv("SHOAL_KERNELS");
}

static void the_best_table_is_the_last_that_runs(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int count = ref_tables(tables);
  unsetenv("SHOAL_KERNELS");
  assert_ptr_equal(shoal_kernels_get(), tables[count - 1]);
}

static void tables_are_complete(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int count = ref_tables(tables);
  for (int t = 0; t < count; t++) {
    const unsigned char *bytes = (const unsigned char *)tables[t];
    for (size_t at = 0; at < sizeof *tables[t]; at += sizeof(void *)) {
      void *entry;
      memcpy(&entry, bytes + at, sizeof entry);
      assert_non_null(entry);
    }
    assert_true(tables[t]->spin(1000) > 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_environment_chooses_the_table),
      cmocka_unit_test(the_best_table_is_the_last_that_runs),
      cmocka_unit_test(tables_are_complete),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
