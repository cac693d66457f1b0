/* Slices of the vector of weights: whole runs, one after the other, all of them, about equal. */
#include "proto/slice.h"

#include "base/random.h"
#include "check.h"

enum { RUNS_MAX = 200, SLICES_MAX = 64, ALIGN = 16 };

/* Runs of random lengths up to `most`, with padding behind them; returns the length of the vector. */
static size_t draw_runs(uint64_t seed, size_t count, uint32_t most, shoal_run *runs) {
  shoal_key key = shoal_key_make(seed, SHOAL_FOR_TOY, 1, 0);
  size_t at = 0;
  for (size_t i = 0; i < count; i++) {
    runs[i] = (shoal_run){.offset = at, .count = 1 + (uint32_t)shoal_random_below(key, i, most)};
    at += (runs[i].count + ALIGN - 1) / ALIGN * ALIGN;
  }
  return at;
}

static void slices_are_whole_runs_and_cover_the_vector(void **state) {
  (void)state;
  shoal_run runs[RUNS_MAX];
  shoal_slice slices[SLICES_MAX];
  for (uint64_t seed = 0; seed < 500; seed++) {
    size_t count = 1 + seed % RUNS_MAX, weights = draw_runs(seed, count, 3000, runs), at = 0, run = 0;
    uint32_t cuts = 1 + (uint32_t)(seed * 7 % SLICES_MAX);
    shoal_slices_cut(runs, count, weights, cuts, slices);
    for (uint32_t s = 0; s < cuts; s++) {
      assert_int_equal(slices[s].offset, at);
      if (slices[s].runs_count > 0) assert_int_equal(runs[slices[s].first_run].offset, at);
      if (slices[s].runs_count == 0) assert_int_equal(slices[s].count, 0);
      assert_int_equal(slices[s].first_run, run);
      at += slices[s].count;
      run += slices[s].runs_count;
    }
    assert_int_equal(at, weights);
    assert_int_equal(run, count);
  }
}

/* No slice is larger than its share by more than a run. */
static void slices_are_as_equal_as_runs_allow(void **state) {
  (void)state;
  enum { MOST = 500 };
  shoal_run runs[RUNS_MAX];
  shoal_slice slices[SLICES_MAX];
  for (uint64_t seed = 0; seed < 100; seed++) {
    size_t weights = draw_runs(seed, RUNS_MAX, MOST, runs);
    for (uint32_t cuts = 1; cuts <= SLICES_MAX; cuts *= 2) {
      shoal_slices_cut(runs, RUNS_MAX, weights, cuts, slices);
      for (uint32_t s = 0; s < cuts; s++) assert_true(slices[s].count <= weights / cuts + 1 + MOST + ALIGN);
    }
  }
}

static void more_slices_than_runs_leaves_some_empty(void **state) {
  (void)state;
  shoal_slice slices[4];
  const shoal_run one = {.count = 100};
  shoal_slices_cut(&one, 1, 112, 4, slices);
  assert_int_equal(slices[0].count, 112);
  for (int s = 1; s < 4; s++) {
    assert_int_equal(slices[s].count, 0);
    assert_int_equal(slices[s].runs_count, 0);
    assert_int_equal(slices[s].offset, 112);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(slices_are_whole_runs_and_cover_the_vector),
      cmocka_unit_test(slices_are_as_equal_as_runs_allow),
      cmocka_unit_test(more_slices_than_runs_leaves_some_empty),
  };
  return RUN_TESTS(tests);
}
