/* A team: its products have the bits of the caller's alone, and its tasks run once each. */
#include "nn/team.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "check.h"

enum { THREADS_MAX = 5 };

static float *floats(size_t count) {
  void *p = NULL;
  assert_int_equal(posix_memalign(&p, 64, count > 0 ? count * sizeof(float) : 1), 0);
  return p;
}

static float *noise(size_t count, uint64_t which) {
  float *made = floats(count);
  shoal_key key = shoal_key_make(1, SHOAL_FOR_TOY, which, 0);
  for (size_t i = 0; i < count; i++) made[i] = shoal_random_uniform(key, i) - 0.5f;
  return made;
}

typedef struct product_case {
  uint32_t m, n, k;
} product_case;

/* Layouts and starts are counted through: a and b turned or not, zero, bias or what c holds. */
enum { VARIANTS = 12 };

static void check_product(const shoal_kernels *kernels, shoal_team *const teams[THREADS_MAX], product_case t,
                          int variant) {
  const size_t c_row = t.n + 3, c_count = (t.m - 1) * c_row + t.n;
  bool a_turned = variant % 2 == 1, b_turned = variant / 2 % 2 == 1;
  float *a = noise((size_t)t.m * t.k, 0), *b = noise((size_t)t.k * t.n, 1), *bias = noise(t.n, 2);
  float *start = noise(c_count, 3), *alone = floats(c_count), *together = floats(c_count);
  shoal_gemm g = {.m = t.m,
                  .n = t.n,
                  .k = t.k,
                  .a = a,
                  .a_row = a_turned ? 1 : t.k,
                  .a_col = a_turned ? t.m : 1,
                  .b = b,
                  .b_row = b_turned ? 1 : t.n,
                  .b_col = b_turned ? t.k : 1,
                  .c = alone,
                  .c_row = c_row,
                  .bias = variant / 4 == 1 ? bias : NULL,
                  .accumulate = variant / 4 == 2,
                  .scratch = floats(kernels->gemm_scratch(t.m, t.n, t.k))};
  memcpy(alone, start, c_count * sizeof *alone);
  kernels->gemm(&g);
  g.c = together;
  for (int i = 0; i < THREADS_MAX; i++) {
    memcpy(together, start, c_count * sizeof *together);
    shoal_team_gemm(teams[i], kernels, &g);
    assert_memory_equal(together, alone, c_count * sizeof *alone);
  }
  free(a);
  free(b);
  free(bias);
  free(start);
  free(alone);
  free(together);
  free(g.scratch);
}

static void a_team_multiplies_to_the_same_bits(void **unused) {
  (void)unused;
  /* Shared by rows, by columns, with fewer bands than threads, and too small to be shared. */
  static const product_case cases[] = {{70, 31, 97},  {20, 800, 50},   {800, 20, 50}, {1, 640, 300},
                                       {640, 1, 300}, {101, 103, 107}, {13, 33, 600}, {200, 650, 20},
                                       {300, 512, 1}, {64, 64, 0},     {3, 5, 7}};
  const shoal_kernels *kernels = shoal_kernels_get();
  assert_non_null(kernels);
  shoal_error err = {0};
  shoal_team *teams[THREADS_MAX];
  size_t scratch = kernels->gemm_scratch(UINT32_MAX, UINT32_MAX, UINT32_MAX);
  for (uint32_t i = 0; i < THREADS_MAX; i++) {
    assert_int_equal(shoal_team_create(&teams[i], i + 1, (shoal_pool_place){0, 1, i + 1}, scratch, &err),
                     SHOAL_OK);
    assert_int_equal(shoal_team_threads(teams[i]), i + 1);
  }
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (int variant = 0; variant < VARIANTS; variant++) check_product(kernels, teams, cases[i], variant);
  for (int i = 0; i < THREADS_MAX; i++) shoal_team_destroy(teams[i]);
}

static void count_task(void *context, uint32_t task, uint32_t thread) {
  (void)thread;
  ((unsigned *)context)[task]++;
}

static void every_task_runs_once_with_a_team_and_without(void **unused) {
  (void)unused;
  shoal_error err = {0};
  shoal_team *team;
  assert_int_equal(shoal_team_create(&team, 3, (shoal_pool_place){0, 1, 3}, 0, &err), SHOAL_OK);
  assert_int_equal(shoal_team_threads(NULL), 1);
  shoal_team *const teams[] = {team, NULL};
  for (int i = 0; i < 2; i++) {
    unsigned counts[64] = {0};
    shoal_team_run(teams[i], 64, count_task, counts);
    for (int task = 0; task < 64; task++) assert_int_equal(counts[task], 1);
  }
  shoal_team_destroy(team);
  shoal_team_destroy(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_team_multiplies_to_the_same_bits),
      cmocka_unit_test(every_task_runs_once_with_a_team_and_without),
  };
  return RUN_TESTS(tests);
}
