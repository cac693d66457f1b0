/* Losses: values and slopes against double, weights, padding rows, ties in the largest logit. */
#include "kernels/reference.h"

typedef struct outcome {
  double loss;
  uint64_t correct;
} outcome;

/* d, when given, gets the slopes. */
static outcome reference_cross_entropy(uint32_t rows, uint32_t cols, const float *x, const int32_t *labels,
                                       const float *weight, double scale, double *d) {
  outcome all = {0};
  for (uint32_t r = 0; r < rows; r++, x += cols) {
    const double w = weight != NULL ? (double)weight[r] : 1;
    double largest = (double)x[0], sum = 0;
    int32_t first = 0;
    for (uint32_t c = 1; c < cols; c++)
      if ((double)x[c] > largest) {
        largest = (double)x[c];
        first = (int32_t)c;
      }
    for (uint32_t c = 0; c < cols; c++) sum += exp((double)x[c] - largest);
    for (uint32_t c = 0; c < cols && d != NULL; c++)
      d[r * cols + c] = w * scale * (exp((double)x[c] - largest) / sum - ((int32_t)c == labels[r] ? 1 : 0));
    all.loss += w * (log(sum) + largest - (double)x[labels[r]]);
    all.correct += w > 0 && first == labels[r];
  }
  return all;
}

static void cross_entropy_matches_its_definition(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  for (size_t n = 0; n < COUNT_OF(ref_sizes); n++)
    for (int weighted = 0; weighted < 2; weighted++) {
      const uint32_t rows = 7, cols = ref_sizes[n];
      const size_t count = (size_t)rows * cols;
      float *x = ref_floats(count), *weight = weighted ? ref_random(rows, 0, 2) : NULL, *d = NULL;
      int32_t labels[7];
      for (size_t i = 0; i < count; i++) x[i] = floorf(ref_uniform(-4, 5)) * 3; /* ties among the largest */
      for (uint32_t r = 0; r < rows; r++) labels[r] = (int32_t)(ref_next() % cols);
      if (weight != NULL) weight[3] = 0;
      double *slope = ref_doubles(count);
      const outcome expected = reference_cross_entropy(rows, cols, x, labels, weight, 0.25, slope);

      double first_loss = 0;
      for (int t = 0; t < tables_count; t++) {
        double loss = 1, plain_loss = 1;
        uint64_t correct = 2, plain_correct = 2;
        float *got = ref_copy(count, x); /* in place */
        tables[t]->cross_entropy(rows, cols, got, labels, weight, 0.25f, got, &loss, &correct);
        tables[t]->cross_entropy(rows, cols, x, labels, weight, 0.25f, NULL, &plain_loss, &plain_correct);
        assert_true(fabs(loss - 1 - expected.loss) <= 1e-6 * (1 + expected.loss));
        assert_int_equal(correct - 2, expected.correct);
        assert_true(loss == plain_loss && correct == plain_correct);
        if (t == 0) first_loss = loss;
        assert_true(loss == first_loss);
        ref_check("cross entropy slope", tables[t], count, got, &d, slope, 1, 1e-6);
      }
      free(x);
      free(weight);
      free(d);
      free(slope);
    }
}

static void rows_of_weight_zero_count_for_nothing(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  const float x[4] = {1, 2, NAN, INFINITY}, weight[2] = {1, 0};
  const int32_t labels[2] = {1, 0};
  for (int t = 0; t < tables_count; t++) {
    double loss = 0;
    uint64_t correct = 0;
    float d[4];
    tables[t]->cross_entropy(2, 2, x, labels, weight, 1, d, &loss, &correct);
    assert_true(isfinite(loss) && correct == 1 && d[2] == 0 && d[3] == 0);
    loss = 0;
    tables[t]->element_loss(SHOAL_LOSS_SQUARED, 0, 2, 2, x, x, weight, 1, d, &loss);
    assert_true(loss == 0 && d[2] == 0 && d[3] == 0);
  }
}

static void huge_logits_stay_finite_and_a_nan_shows(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  for (int t = 0; t < tables_count; t++) {
    float x[3] = {3e38f, -3e38f, 0};
    const int32_t label = 1;
    double loss = 0;
    uint64_t correct = 0;
    tables[t]->cross_entropy(1, 3, x, &label, NULL, 1, x, &loss, &correct);
    assert_true(isfinite(loss) && loss > 5e38 && x[0] == 1 && x[1] == -1 && x[2] == 0);
    float bad[3] = {1, NAN, 0};
    loss = 0;
    tables[t]->cross_entropy(1, 3, bad, &label, NULL, 1, NULL, &loss, &correct);
    assert_true(isnan(loss));
  }
}

static double element_reference(shoal_element_loss kind, double param, double p, double t) {
  const double e = p - t;
  switch (kind) {
  case SHOAL_LOSS_SQUARED: return e * e;
  case SHOAL_LOSS_ABSOLUTE: return fabs(e);
  case SHOAL_LOSS_HUBER: return fabs(e) <= param ? e * e / 2 : param * (fabs(e) - param / 2);
  default: return (p > 0 ? p : 0) + log1p(exp(-fabs(p))) - t * p;
  }
}

static void element_losses_match_their_definitions_and_differences(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  for (size_t n = 0; n < COUNT_OF(ref_sizes); n++)
    for (int k = 0; k < 4; k++) {
      const shoal_element_loss kind = (shoal_element_loss)k;
      const uint32_t rows = 4, cols = ref_sizes[n];
      const size_t count = (size_t)rows * cols;
      float *p = ref_random(count, -4, 4), *target = ref_random(count, 0, 1), *d = NULL;
      float *weight = n % 2 == 0 ? ref_random(rows, 0, 2) : NULL;
      double *slope = ref_doubles(count), expected = 0, first_loss = 0;
      for (size_t i = 0; i < count; i++) {
        const double w = weight != NULL ? (double)weight[i / cols] : 1, h = 1e-6;
        const double at = (double)p[i], t = (double)target[i];
        expected += w * element_reference(kind, 0.75, at, t);
        slope[i] = w * 0.5 *
                   (element_reference(kind, 0.75, at + h, t) - element_reference(kind, 0.75, at - h, t)) /
                   (2 * h);
      }
      for (int t = 0; t < tables_count; t++) {
        double loss = 0;
        float *got = ref_copy(count, p);
        tables[t]->element_loss(kind, 0.75f, rows, cols, got, target, weight, 0.5f, got, &loss);
        assert_true(fabs(loss - expected) <= 1e-6 * (1 + expected));
        if (t == 0) first_loss = loss;
        assert_true(loss == first_loss);
        ref_check("element slope", tables[t], count, got, &d, slope, 1, 2e-6);
      }
      free(p);
      free(target);
      free(d);
      free(weight);
      free(slope);
    }
}

static void the_absolute_loss_has_no_slope_at_zero(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  const float p[3] = {1, 2, 3}, target[3] = {1, 3, 1};
  for (int t = 0; t < tables_count; t++) {
    float d[3];
    double loss = 0;
    tables[t]->element_loss(SHOAL_LOSS_ABSOLUTE, 0, 1, 3, p, target, NULL, 1, d, &loss);
    assert_true(loss == 3 && d[0] == 0 && d[1] == -1 && d[2] == 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cross_entropy_matches_its_definition),
      cmocka_unit_test(rows_of_weight_zero_count_for_nothing),
      cmocka_unit_test(huge_logits_stay_finite_and_a_nan_shows),
      cmocka_unit_test(element_losses_match_their_definitions_and_differences),
      cmocka_unit_test(the_absolute_loss_has_no_slope_at_zero),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
