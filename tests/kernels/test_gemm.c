/* Matrix products: against a chain in double, in all layouts, and the exact chain in float. */
#include "kernels/reference.h"

typedef struct gemm_case {
  uint32_t m, n, k;
  bool a_turned, b_turned;
  int start; /* 0 zero, 1 bias, 2 accumulate */
} gemm_case;

static void check_case(gemm_case t) {
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int count = ref_tables(tables);
  const uint32_t m = t.m, n = t.n, k = t.k;
  const size_t c_row = n + 3;
  float *a = ref_random((size_t)m * k, -1, 1), *b = ref_random((size_t)k * n, -1, 1);
  float *bias = ref_random(n, -1, 1), *c = ref_random((size_t)(m - 1) * c_row + n, -1, 1);
  shoal_gemm g = {.m = m, .n = n, .k = k, .a = a, .b = b, .c_row = c_row};
  g.a_row = t.a_turned ? 1 : k;
  g.a_col = t.a_turned ? m : 1;
  g.b_row = t.b_turned ? 1 : n;
  g.b_col = t.b_turned ? k : 1;
  g.bias = t.start == 1 ? bias : NULL;
  g.accumulate = t.start == 2;

  /* The contract is one chain of fused multiply-adds, so the bits are known. */
  float *expected = ref_copy((size_t)(m - 1) * c_row + n, c);
  for (uint32_t i = 0; i < m; i++)
    for (uint32_t j = 0; j < n; j++) {
      float sum = t.start == 1 ? bias[j] : t.start == 2 ? c[i * c_row + j] : 0;
      double exact = (double)sum, size = 1;
      for (uint32_t l = 0; l < k; l++) {
        float x = a[i * g.a_row + l * g.a_col], y = b[l * g.b_row + j * g.b_col];
        sum = fmaf(x, y, sum);
        exact += (double)x * (double)y;
        size += fabs((double)x * (double)y);
      }
      assert_true(fabs((double)sum - exact) <= size * (k + 1) * 6e-8);
      expected[i * c_row + j] = sum;
    }

  for (int i = 0; i < count; i++) {
    float *got = ref_copy((size_t)(m - 1) * c_row + n, c);
    g.c = got;
    g.scratch = ref_scratch(tables[i]->gemm_scratch(m, n, k));
    tables[i]->gemm(&g);
    ref_same("gemm", tables[i]->name, (size_t)(m - 1) * c_row + n, got, expected);
    free(g.scratch);
    free(got);
  }
  free(a);
  free(b);
  free(bias);
  free(c);
  free(expected);
}

static void every_element_is_one_chain_in_the_order_of_k(void **state) {
  (void)state;
  static const uint32_t sizes[] = {1, 2, 7, 13, 16, 17, 31, 33, 49};
  for (size_t i = 0; i < COUNT_OF(sizes); i++)
    for (size_t j = 0; j < COUNT_OF(sizes); j++)
      for (size_t l = 0; l < COUNT_OF(sizes); l++) {
        const int number = (int)(i + 2 * j + 3 * l);
        check_case(
            (gemm_case){sizes[i], sizes[j], sizes[l], number % 2 == 1, number / 2 % 2 == 1, number % 3});
      }
}

static void all_layouts_and_starts_agree(void **state) {
  (void)state;
  for (int a = 0; a < 2; a++)
    for (int b = 0; b < 2; b++)
      for (int start = 0; start < 3; start++) {
        check_case((gemm_case){23, 37, 41, a == 1, b == 1, start});
        check_case((gemm_case){5, 64, 29, a == 1, b == 1, start});
        check_case((gemm_case){64, 10, 50, a == 1, b == 1, start});
        check_case((gemm_case){20, 10, 0, a == 1, b == 1, start});
      }
}

/* Long k is cut into pieces, tall m into groups, and rows a page apart are packed. */
static void blocking_changes_no_bit(void **state) {
  (void)state;
  check_case((gemm_case){14, 35, 800, false, true, 1});
  check_case((gemm_case){7, 33, 1201, true, false, 2});
  check_case((gemm_case){13, 49, 1024, false, false, 1});
  check_case((gemm_case){300, 17, 40, false, false, 0});
  check_case((gemm_case){261, 33, 512, false, true, 1});
}

/* Short sums walk along the rows of c with all of b packed: up to where b is too large for it. */
static void short_sums_in_long_rows_change_no_bit(void **state) {
  (void)state;
  for (int turned = 0; turned < 2; turned++) {
    const bool t = turned == 1;
    check_case((gemm_case){97, 480, 128, t, t, 1});  /* panels of 32 columns, as many as fit */
    check_case((gemm_case){97, 496, 128, !t, t, 2}); /* and of 16 */
    check_case((gemm_case){97, 516, 127, t, t, 0});  /* would fit but for the last panel */
  }
  for (int number = 0; number < 12; number++) {
    const bool a = number % 2 == 1, b = number / 2 % 2 == 1;
    const int start = number / 4;
    check_case((gemm_case){24, 97, 129, a, b, start});
    check_case((gemm_case){101, 2083, 3, a, b, start});
    check_case((gemm_case){530, 511, 1, a, b, start});
    check_case((gemm_case){96, 17, 0, a, b, start});
    check_case((gemm_case){20, 13200, 2, a, b, start}); /* c is large, its rows are few */
  }
}

static void random_shapes_in_random_layouts(void **state) {
  (void)state;
  for (int i = 0; i < 400; i++) {
    /* Mostly small, sometimes large, never all three. */
    uint32_t size[3];
    for (int d = 0; d < 3; d++) size[d] = 1 + ref_next() % (ref_next() % 4 == 0 ? 300 : 40);
    if (ref_next() % 8 == 0) size[ref_next() % 3] = 512 * (1 + ref_next() % 2);
    while ((uint64_t)size[0] * size[1] * size[2] > 1000000) size[ref_next() % 3] = 1 + ref_next() % 40;
    check_case((gemm_case){size[0], size[1], size[2], ref_next() % 2 == 1, ref_next() % 2 == 1,
                           (int)(ref_next() % 3)});
  }
}

/* Any three floats, tiny, huge, infinite or not a number: one multiply-add, rounded once. */
static void multiply_add_is_fused_for_all_values(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int count = ref_tables(tables);
  enum { N = 2048 };
  float *b = ref_floats(N), *c = ref_floats(N), *expected = ref_floats(N);
  for (int round = 0; round < 50; round++) {
    float a;
    uint32_t bits = ref_next() << 8 ^ ref_next();
    memcpy(&a, &bits, sizeof a);
    for (int i = 0; i < N; i++) {
      bits = ref_next() << 8 ^ ref_next();
      memcpy(b + i, &bits, sizeof *b);
      bits = ref_next() << 8 ^ ref_next();
      memcpy(c + i, &bits, sizeof *c);
      if (i % 2 == 0) /* what is left is what the product's rounding took */
        c[i] = -a * b[i];
      expected[i] = fmaf(a, b[i], c[i]);
    }
    for (int t = 0; t < count; t++) {
      float *got = ref_copy(N, c), *scratch = ref_scratch(tables[t]->gemm_scratch(1, N, 1));
      const shoal_gemm g = {1, N, 1, &a, 1, 1, b, N, 1, got, N, NULL, true, scratch};
      tables[t]->gemm(&g);
      ref_same("fused", tables[t]->name, N, got, expected);
      free(got);
      free(scratch);
    }
  }
  free(b);
  free(c);
  free(expected);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_element_is_one_chain_in_the_order_of_k),
      cmocka_unit_test(all_layouts_and_starts_agree),
      cmocka_unit_test(blocking_changes_no_bit),
      cmocka_unit_test(short_sums_in_long_rows_change_no_bit),
      cmocka_unit_test(random_shapes_in_random_layouts),
      cmocka_unit_test(multiply_add_is_fused_for_all_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
