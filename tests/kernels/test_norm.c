/* Normalisation in both layouts: values against double, slopes against finite differences of
 * a double reference, and lanes without a sample, which hold rubbish and must not matter. */
#include "kernels/reference.h"

static const shoal_norm cases[] = {
    /* channels positions lanes samples steps */
    {3, 5, 16, 16, 1}, {2, 7, 16, 5, 1}, {4, 3, 32, 17, 1}, {1, 1, 48, 31, 1}, {2, 3, 32, 9, 1},
    {1, 1, 0, 7, 1},   {15, 1, 0, 3, 2}, {16, 1, 0, 4, 1},  {17, 1, 0, 2, 3},  {33, 1, 0, 13, 1},
};

static size_t tensor_count(const shoal_norm *s) {
  return (size_t)s->channels * s->positions * (s->lanes > 0 ? s->lanes : s->samples * s->steps);
}

static uint32_t rows_of(const shoal_norm *s) { return s->samples * s->steps; }

/* Where feature f = channel * positions + position of a row (a sample at a step) lies. */
static size_t place(const shoal_norm *s, uint32_t f, uint32_t row) {
  return s->lanes > 0 ? (size_t)f * s->lanes + row : (size_t)row * s->channels + f;
}

static bool in_use(const shoal_norm *s, size_t at) { return s->lanes == 0 || at % s->lanes < s->samples; }

/* Values that take part in one normalisation: for batchnorm a channel, for layernorm a row. */
typedef struct group {
  size_t count, at[512];
  uint32_t gamma[512]; /* which gamma and beta belong to each */
} group;

static group channel_group(const shoal_norm *s, uint32_t channel) {
  group g = {0};
  for (uint32_t row = 0; row < rows_of(s); row++)
    for (uint32_t p = 0; p < s->positions; p++) {
      g.gamma[g.count] = channel;
      g.at[g.count++] = place(s, channel * s->positions + p, row);
    }
  return g;
}

static group row_group(const shoal_norm *s, uint32_t row) {
  group g = {0};
  for (uint32_t f = 0; f < s->channels * s->positions; f++) {
    g.gamma[g.count] = f;
    g.at[g.count++] = place(s, f, row);
  }
  return g;
}

typedef struct moments {
  double mean, variance;
} moments;

static moments moments_of(size_t count, const double *x) {
  moments m = {0};
  for (size_t i = 0; i < count; i++) m.mean += x[i] / (double)count;
  for (size_t i = 0; i < count; i++) m.variance += (x[i] - m.mean) * (x[i] - m.mean) / (double)count;
  return m;
}

/* sum(dy * y) of one group, whose derivative by x is dx. */
static double objective(const group *g, const double *x, const float *gamma, const float *dy, double eps) {
  const moments m = moments_of(g->count, x);
  double sum = 0;
  for (size_t i = 0; i < g->count; i++)
    sum += (double)dy[g->at[i]] * (double)gamma[g->gamma[i]] * (x[i] - m.mean) / sqrt(m.variance + eps);
  return sum;
}

typedef struct expectation {
  double *y, *dx, *dgamma, *dbeta, *first, *second; /* first and second: the moments stored */
} expectation;

static void expect_group(const group *g, const float *x, const float *gamma, const float *beta,
                         const float *dy, double eps, expectation *e) {
  double values[512];
  for (size_t i = 0; i < g->count; i++) values[i] = (double)x[g->at[i]];
  const moments m = moments_of(g->count, values);
  for (size_t i = 0; i < g->count; i++) {
    const double z = (values[i] - m.mean) / sqrt(m.variance + eps), d = (double)dy[g->at[i]];
    e->y[g->at[i]] = z * (double)gamma[g->gamma[i]] + (double)beta[g->gamma[i]];
    e->dgamma[g->gamma[i]] += d * z;
    e->dbeta[g->gamma[i]] += d;
    const double keep = values[i], step = 1e-5;
    values[i] = keep + step;
    const double high = objective(g, values, gamma, dy, eps);
    values[i] = keep - step;
    const double low = objective(g, values, gamma, dy, eps);
    values[i] = keep;
    e->dx[g->at[i]] = (high - low) / (2 * step);
  }
}

/* The lanes in use are compared with the reference, all lanes in use with the other tables;
 * unused lanes of a gradient must be zero. */
static void check_used(const char *what, const shoal_kernels *table, const shoal_norm *s, float *got,
                       float **kept, const double *expected, bool zero_else) {
  for (size_t i = 0; i < tensor_count(s); i++)
    if (!in_use(s, i)) {
      assert_true(zero_else ? got[i] == 0 : isfinite(got[i]));
      got[i] = 0;
    }
  ref_check(what, table, tensor_count(s), got, kept, expected, 1, 2e-5);
}

static void check_normalisation(const shoal_norm *s, bool batch) {
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  const size_t count = tensor_count(s), params = batch ? s->channels : (size_t)s->channels * s->positions;
  const size_t groups = batch ? s->channels : rows_of(s);
  const float eps = 0.01f;
  float *x = ref_random(count, -3, 4), *dy = ref_random(count, -1, 1);
  float *gamma = ref_random(params, 0.5f, 2), *beta = ref_random(params, -1, 1);
  float *start = ref_random(params, -1, 1);
  for (size_t i = 0; i < count; i++)
    if (!in_use(s, i)) dy[i] = 0;

  expectation e = {ref_doubles(count),  ref_doubles(count),  ref_doubles(params),
                   ref_doubles(params), ref_doubles(groups), ref_doubles(groups)};
  for (size_t i = 0; i < params; i++) e.dgamma[i] = e.dbeta[i] = (double)start[i];
  for (uint32_t i = 0; i < groups; i++) {
    const group g = batch ? channel_group(s, i) : row_group(s, i);
    double values[512];
    for (size_t j = 0; j < g.count; j++) values[j] = (double)x[g.at[j]];
    const moments m = moments_of(g.count, values);
    e.first[i] = m.mean;
    e.second[i] = batch ? m.variance : 1 / sqrt(m.variance + (double)eps);
    expect_group(&g, x, gamma, beta, dy, (double)eps, &e);
  }

  float *y1 = NULL, *first1 = NULL, *second1 = NULL, *dx1 = NULL, *dgamma1 = NULL, *dbeta1 = NULL;
  for (int t = 0; t < tables_count; t++) {
    const shoal_kernels *k = tables[t];
    float *y = ref_filled(count, NAN), *first = ref_filled(groups, NAN), *second = ref_filled(groups, NAN);
    float *dx = ref_copy(count, dy), *dgamma = ref_copy(params, start), *dbeta = ref_copy(params, start);
    if (batch) {
      float *again = ref_filled(count, NAN);
      k->batchnorm_train(s, x, gamma, beta, eps, y, first, second);
      k->batchnorm_infer(s, x, gamma, beta, eps, first, second, again);
      ref_same("batchnorm_infer", k->name, count, again, y);
      k->batchnorm_backward(s, x, gamma, eps, first, second, dx, dx, dgamma, dbeta);
      free(again);
    } else {
      k->layernorm_forward(s, x, gamma, beta, eps, y, first, second);
      k->layernorm_backward(s, x, gamma, first, second, dy, dx, dgamma, dbeta);
    }
    check_used("norm y", k, s, y, &y1, e.y, false);
    check_used("norm dx", k, s, dx, &dx1, e.dx, true);
    ref_check("norm mean", k, groups, first, &first1, e.first, 1, 1e-6);
    ref_check("norm variance", k, groups, second, &second1, e.second, 1, 1e-5);
    ref_check("norm dgamma", k, params, dgamma, &dgamma1, e.dgamma, 1, 1e-5);
    ref_check("norm dbeta", k, params, dbeta, &dbeta1, e.dbeta, 1, 1e-5);
  }
  float *floats[] = {x, dy, gamma, beta, start, y1, first1, second1, dx1, dgamma1, dbeta1};
  for (size_t i = 0; i < COUNT_OF(floats); i++) free(floats[i]);
  double *doubles[] = {e.y, e.dx, e.dgamma, e.dbeta, e.first, e.second};
  for (size_t i = 0; i < COUNT_OF(doubles); i++) free(doubles[i]);
}

static void batchnorm_matches_its_formula_and_finite_differences(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(cases); i++) check_normalisation(&cases[i], true);
}

static void layernorm_matches_its_formula_and_finite_differences(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(cases); i++) check_normalisation(&cases[i], false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(batchnorm_matches_its_formula_and_finite_differences),
      cmocka_unit_test(layernorm_matches_its_formula_and_finite_differences),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
