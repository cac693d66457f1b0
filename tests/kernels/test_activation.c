/* Activations: the maths against the C library in double over wide sweeps, slopes against
 * finite differences, softmax against its formula. The largest relative errors are stated
 * here and printed when they grow beyond. */
#include "kernels/reference.h"

static double reference(shoal_activation kind, double x) {
  switch (kind) {
  case SHOAL_ACT_SIGMOID: return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
  case SHOAL_ACT_TANH: return tanh(x);
  case SHOAL_ACT_RELU: return x > 0 ? x : 0;
  case SHOAL_ACT_LEAKY_RELU: return x < 0 ? 0.01 * x : x;
  case SHOAL_ACT_ELU: return x > 0 ? x : expm1(x);
  case SHOAL_ACT_GELU: return 0.5 * x * erfc(-x / sqrt(2));
  case SHOAL_ACT_SILU: return x * reference(SHOAL_ACT_SIGMOID, x);
  case SHOAL_ACT_SOFTPLUS: return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
  default: return x;
  }
}

typedef struct limit {
  shoal_activation kind;
  const char *name;
  double relative; /* the largest relative error where the result is above 1e-35 */
} limit;

static const limit limits[] = {
    {SHOAL_ACT_IDENTITY, "identity", 0},    {SHOAL_ACT_SIGMOID, "sigmoid", 1.6e-7},
    {SHOAL_ACT_TANH, "tanh", 1.6e-7},       {SHOAL_ACT_RELU, "relu", 0},
    {SHOAL_ACT_LEAKY_RELU, "leaky", 1e-7},  {SHOAL_ACT_ELU, "elu", 1e-7},
    {SHOAL_ACT_GELU, "gelu", 4e-7},         {SHOAL_ACT_SILU, "silu", 2e-7},
    {SHOAL_ACT_SOFTPLUS, "softplus", 2e-7},
};

/* Steps of all sizes: fine ones around zero, then through all exponents. */
static float *sweep(size_t *count) {
  enum { LINEAR = 60001, DECADES = 20000 };
  float *x = ref_floats(LINEAR + 2 * DECADES);
  size_t n = 0;
  for (int i = 0; i < LINEAR; i++) x[n++] = (float)(i - LINEAR / 2) * (110.0f / (LINEAR / 2));
  for (int i = 0; i < DECADES; i++) {
    float size = ldexpf(ref_uniform(1, 2), (int)(ref_next() % 160) - 126);
    x[n++] = size;
    x[n++] = -size;
  }
  *count = n;
  return x;
}

static void functions_are_accurate_everywhere(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  size_t count;
  float *x = sweep(&count);
  for (size_t l = 0; l < COUNT_OF(limits); l++) {
    float *first = NULL;
    for (int t = 0; t < tables_count; t++) {
      float *y = ref_filled(count, NAN);
      tables[t]->act_forward(limits[l].kind, count, x, y);
      if (first != NULL) {
        ref_same(limits[l].name, tables[t]->name, count, y, first);
        free(y);
        continue;
      }
      first = y;
      double worst = 0;
      float at = 0;
      for (size_t i = 0; i < count; i++) {
        const double expected = reference(limits[l].kind, (double)x[i]);
        assert_true(isfinite(y[i]));
        if (fabs(expected) < 1e-35) {
          assert_true(fabs((double)y[i]) < 1.1e-35);
        } else {
          const double error = fabs((double)y[i] - expected) / fabs(expected);
          if (error > worst) {
            worst = error;
            at = x[i];
          }
        }
      }
      if (worst > limits[l].relative)
        fail_msg("%s: relative error %.3g at %.9g", limits[l].name, worst, (double)at);
    }
    free(first);
  }
  free(x);
}

static void a_nan_stays_a_nan_and_infinities_saturate(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  const float x[3] = {NAN, INFINITY, -INFINITY};
  for (int t = 0; t < tables_count; t++) {
    float y[3];
    for (size_t l = 0; l < COUNT_OF(limits); l++) {
      tables[t]->act_forward(limits[l].kind, 3, x, y);
      assert_true(isnan(y[0]));
    }
    tables[t]->act_forward(SHOAL_ACT_SIGMOID, 3, x, y);
    assert_true(y[1] == 1 && y[2] == 0);
    tables[t]->act_forward(SHOAL_ACT_TANH, 3, x, y);
    assert_true(y[1] == 1 && y[2] == -1);
    tables[t]->act_forward(SHOAL_ACT_ELU, 3, x, y);
    assert_true(y[1] == INFINITY && y[2] == -1);
    tables[t]->act_forward(SHOAL_ACT_SOFTPLUS, 3, x, y);
    assert_true(y[1] == INFINITY && y[2] == 0);
  }
}

static void slopes_match_finite_differences(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  for (size_t n = 0; n < COUNT_OF(ref_sizes); n++) {
    const size_t count = ref_sizes[n];
    float *x = ref_random(count, -6, 6), *dy = ref_random(count, -1, 1), *y = ref_floats(count);
    double *expected = ref_doubles(count);
    for (size_t l = 0; l < COUNT_OF(limits); l++) {
      const shoal_activation kind = limits[l].kind;
      const bool from_x = kind == SHOAL_ACT_GELU || kind == SHOAL_ACT_SILU;
      for (size_t i = 0; i < count; i++) {
        const double at = (double)x[i], step = 1e-5;
        expected[i] = (double)dy[i] * (reference(kind, at + step) - reference(kind, at - step)) / (2 * step);
      }
      tables[0]->act_forward(kind, count, x, y);
      float *first = NULL;
      for (int t = 0; t < tables_count; t++) {
        float *dx = ref_copy(count, dy); /* in place, as the contract allows */
        tables[t]->act_backward(kind, count, from_x ? x : NULL, y, dx, dx);
        ref_check(limits[l].name, tables[t], count, dx, &first, expected, 1, 1e-6);
      }
      free(first);
    }
    free(x);
    free(dy);
    free(y);
    free(expected);
  }
}

static void softmax_sums_to_one_and_differentiates(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  for (size_t n = 0; n < COUNT_OF(ref_sizes); n++) {
    const uint32_t cols = ref_sizes[n], rows = 5;
    const size_t count = (size_t)rows * cols;
    float *x = ref_random(count, -20, 20), *dy = ref_random(count, -1, 1), *y = NULL, *dx = NULL;
    double *expected = ref_doubles(count), *slope = ref_doubles(count);
    for (uint32_t r = 0; r < rows; r++) {
      double sum = 0, mean = 0;
      for (uint32_t c = 0; c < cols; c++) sum += exp((double)x[r * cols + c]);
      for (uint32_t c = 0; c < cols; c++) {
        expected[r * cols + c] = exp((double)x[r * cols + c]) / sum;
        mean += expected[r * cols + c] * (double)dy[r * cols + c];
      }
      for (uint32_t c = 0; c < cols; c++)
        slope[r * cols + c] = expected[r * cols + c] * ((double)dy[r * cols + c] - mean);
    }
    for (int t = 0; t < tables_count; t++) {
      float *got = ref_copy(count, x);
      tables[t]->softmax_forward(rows, cols, got, got);
      ref_check("softmax", tables[t], count, got, &y, expected, 0, 4e-6);
    }
    for (int t = 0; t < tables_count; t++) {
      float *got = ref_copy(count, dy);
      tables[t]->softmax_backward(rows, cols, y, got, got);
      ref_check("softmax slope", tables[t], count, got, &dx, slope, 1e-3, 1e-4);
    }
    free(x);
    free(dy);
    free(y);
    free(dx);
    free(expected);
    free(slope);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(functions_are_accurate_everywhere),
      cmocka_unit_test(a_nan_stays_a_nan_and_infinities_saturate),
      cmocka_unit_test(slopes_match_finite_differences),
      cmocka_unit_test(softmax_sums_to_one_and_differentiates),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
