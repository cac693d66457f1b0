/* Dropout keeps exactly the elements that base/random.h says, in both layouts. */
#include "base/random.h"
#include "kernels/reference.h"

static void dropout_follows_the_stream_of_each_sample(void **state) {
  (void)state;
  static const shoal_norm cases[] = {
      /* channels positions lanes samples steps */
      {3, 7, 16, 16, 1}, {1, 1, 16, 3, 1},  {5, 4, 32, 17, 1}, {2, 3, 48, 20, 1}, {1, 1, 0, 4, 1},
      {63, 1, 0, 2, 3},  {200, 1, 0, 3, 2}, {33, 1, 0, 5, 7},  {64, 1, 0, 1, 1},
  };
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  const uint32_t threshold = 0x60000000u;
  const float scale = 1.6f;
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    const shoal_norm s = cases[i];
    const size_t count = (size_t)s.channels * s.positions * (s.lanes > 0 ? s.lanes : s.samples * s.steps);
    uint32_t *keys = ref_alloc(sizeof *keys * 2 * s.samples);
    for (uint32_t k = 0; k < 2 * s.samples; k++) keys[k] = ref_next() * 2654435761u;
    float *x = ref_random(count, -1, 1), *expected = ref_filled(count, 0);
    for (uint32_t sample = 0; sample < s.samples; sample++) {
      const shoal_key key = {{keys[2 * sample], keys[2 * sample + 1]}};
      for (uint32_t e = 0; e < s.channels * s.positions * s.steps; e++) {
        const size_t at = s.lanes > 0
                              ? (size_t)e * s.lanes + sample
                              : ((size_t)e / s.channels * s.samples + sample) * s.channels + e % s.channels;
        expected[at] = shoal_random_u32(key, e) >= threshold ? x[at] * scale : 0;
      }
    }
    for (int t = 0; t < tables_count; t++) {
      float *y = ref_copy(count, x); /* in place */
      tables[t]->dropout(&s, keys, threshold, scale, y, y);
      for (size_t at = 0; at < count; at++) {
        if (s.lanes > 0 && at % s.lanes >= s.samples) y[at] = 0;
      }
      ref_same("dropout", tables[t]->name, count, y, expected);
      free(y);
    }
    free(keys);
    free(x);
    free(expected);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(dropout_follows_the_stream_of_each_sample)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
