/* Products that leave out zeros: to the bit the product with them, from rows and turned. */
#include "kernels/reference.h"

typedef struct sparse_case {
  uint32_t m, n, k;
  uint32_t per_mille; /* elements of a that are not zero */
  int start;          /* 0 zero, 1 bias, 2 accumulate */
} sparse_case;

static shoal_sparse room_for(uint32_t rows, uint32_t elements) {
  return (shoal_sparse){.starts = ref_alloc((rows + 1) * sizeof(uint32_t)),
                        .columns = ref_alloc((elements + SHOAL_LANES) * sizeof(uint32_t)),
                        .values = ref_floats(elements + SHOAL_LANES)};
}

static void release(shoal_sparse *a) {
  free(a->starts);
  free(a->columns);
  free(a->values);
}

/* Zeros of both signs, and some rows all zeros or without any. */
static float *mostly_zeros(uint32_t m, uint32_t k, uint32_t per_mille) {
  float *a = ref_floats((size_t)m * k);
  for (uint32_t i = 0; i < m; i++) {
    uint32_t kind = ref_next() % 8, share = kind == 0 ? 0 : kind == 1 ? 1000 : per_mille;
    for (uint32_t j = 0; j < k; j++) {
      float zero = ref_next() % 4 == 0 ? -0.0f : 0.0f;
      a[(size_t)i * k + j] = ref_next() % 1000 < share ? ref_uniform(-1, 1) : zero;
    }
  }
  return a;
}

static uint32_t count_others(size_t count, const float *a) {
  uint32_t others = 0;
  for (size_t i = 0; i < count; i++) others += a[i] != 0;
  return others;
}

/* The product of the baseline's gemm, and gemm_sparse of every table beside it. */
static void check_product(const char *what, shoal_gemm g, const float *start, const shoal_sparse *a) {
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int count = ref_tables(tables);
  const size_t c_count = (g.m - 1) * g.c_row + g.n;
  float *expected = ref_copy(c_count, start);
  g.c = expected;
  g.scratch = ref_scratch(tables[0]->gemm_scratch(g.m, g.n, g.k));
  tables[0]->gemm(&g);
  free(g.scratch);
  g.scratch = NULL;
  for (int i = 0; i < count; i++) {
    float *got = ref_copy(c_count, start);
    g.c = got;
    tables[i]->gemm_sparse(&g, a);
    ref_same(what, tables[i]->name, c_count, got, expected);
    free(got);
  }
  free(expected);
}

/* a is m x k; b for the product is k x n, for that with the turned a it is m x n. */
static void check_both(uint32_t m, uint32_t n, uint32_t k, const float *a, const float *b, const float *bias,
                       const float *start, int how) {
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int count = ref_tables(tables);
  const uint32_t others = count_others((size_t)m * k, a);
  for (int i = 0; i < count; i++) {
    shoal_sparse rows = room_for(m, others), turned = room_for(k, others);
    assert_true(tables[i]->sparse_rows(m, k, a, others, &rows));
    assert_int_equal(rows.starts[m], others);
    tables[i]->sparse_turn(m, k, &rows, &turned);
    assert_int_equal(turned.starts[k], others);
    shoal_gemm g = {.m = m, .n = n, .k = k, .a = a, .a_row = k, .a_col = 1, .b = b, .b_row = n, .b_col = 1};
    g.c_row = n + 3;
    g.bias = how == 1 ? bias : NULL;
    g.accumulate = how == 2;
    check_product("rows", g, start, &rows);
    g.m = k;
    g.k = m;
    g.a_row = 1;
    g.a_col = k;
    check_product("turned", g, start, &turned);
    release(&rows);
    release(&turned);
  }
}

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

static void check_case(sparse_case t) {
  const uint32_t most = larger(t.m, t.k);
  float *a = mostly_zeros(t.m, t.k, t.per_mille), *b = ref_random((size_t)most * t.n, -1, 1);
  float *bias = ref_random(t.n, -1, 1), *start = ref_random((size_t)most * (t.n + 3), -1, 1);
  check_both(t.m, t.n, t.k, a, b, bias, start, t.start);
  free(a);
  free(b);
  free(bias);
  free(start);
}

static void leaving_out_zeros_changes_no_bit(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(ref_sizes); i++)
    for (int start = 0; start < 3; start++) check_case((sparse_case){13, ref_sizes[i], 29, 150, start});
  check_case((sparse_case){64, 256, 108, 130, 1});
  check_case((sparse_case){64, 300, 108, 130, 2});
  check_case((sparse_case){1, 129, 1, 500, 0});
}

static void random_shapes_and_shares(void **state) {
  (void)state;
  for (int i = 0; i < 200; i++)
    check_case((sparse_case){1 + ref_next() % 50, 1 + ref_next() % 150, 1 + ref_next() % 50,
                             ref_next() % 1000, (int)(ref_next() % 3)});
}

/* A sum of -0 turns to 0 at the first zero that adds 0, and at no other: where the chains begin with -0
 * and where a product is too small for anything but a zero with its sign. */
static void signs_of_zero_are_those_of_the_whole_chain(void **state) {
  (void)state;
  enum { M = 17, N = 37, K = 23 };
  for (int round = 0; round < 30; round++) {
    float *a = mostly_zeros(M, K, 100), *b = ref_random((size_t)K * N, -1, 1);
    float *bias = ref_filled(N, -0.0f), *start = ref_filled((size_t)K * (N + 3), -0.0f);
    for (int i = 0; i < M * K; i++) {
      if (round % 2 == 0 && ref_next() % 2 == 0) a[i] = ref_next() % 2 == 0 ? 0.0f : -0.0f;
      if (round % 3 == 0) a[i] *= 1e-38f;
    }
    for (int i = 0; i < K * N; i++) {
      if (round % 3 == 0) b[i] *= 1e-30f;
      if (ref_next() % 3 == 0) b[i] = round % 4 < 2 ? -1.0f : -0.0f;
    }
    for (int how = 0; how < 3; how++) check_both(M, N, K, a, b, bias, start, how);
    free(a);
    free(b);
    free(bias);
    free(start);
  }
}

/* What is no number is no zero: it reaches every sum of its row. */
static void infinities_and_nans_of_a_are_multiplied(void **state) {
  (void)state;
  enum { M = 9, N = 21, K = 40 };
  float *a = mostly_zeros(M, K, 100), *b = ref_random((size_t)K * N, -1, 1);
  float *bias = ref_random(N, -1, 1), *start = ref_random((size_t)K * (N + 3), -1, 1);
  a[3] = INFINITY;
  a[2 * K + 39] = NAN;
  a[5 * K + 16] = -INFINITY;
  a[5 * K + 20] = INFINITY;
  for (int how = 0; how < 3; how++) check_both(M, N, K, a, b, bias, start, how);
  free(a);
  free(b);
  free(bias);
  free(start);
}

static void too_many_elements_are_refused(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int count = ref_tables(tables);
  for (int i = 0; i < count; i++)
    for (uint32_t most = 0; most < 40; most++) {
      float a[3 * 21] = {0};
      for (uint32_t e = 0; e < 20; e++) a[3 * e + 1] = 1;
      shoal_sparse rows = room_for(3, most);
      assert_int_equal(tables[i]->sparse_rows(3, 21, a, most, &rows), most >= 20);
      release(&rows);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(leaving_out_zeros_changes_no_bit),
      cmocka_unit_test(random_shapes_and_shares),
      cmocka_unit_test(signs_of_zero_are_those_of_the_whole_chain),
      cmocka_unit_test(infinities_and_nans_of_a_are_multiplied),
      cmocka_unit_test(too_many_elements_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
