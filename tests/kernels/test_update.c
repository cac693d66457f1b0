/* Optimiser steps against their formulas in double, and the sums around them. */
#include "kernels/reference.h"

static const shoal_update_kind kinds[] = {
    SHOAL_SGD, SHOAL_MOMENTUM, SHOAL_NESTEROV, SHOAL_ADAGRAD, SHOAL_RMSPROP, SHOAL_ADAM, SHOAL_ADAMW,
};

typedef struct cell {
  double w, s1, s2;
} cell;

/* The formulas of kernels.h, word for word. */
static cell step(const shoal_update *u, cell c, double grad) {
  const double rate = (double)u->rate, b1 = (double)u->beta1, b2 = (double)u->beta2, eps = (double)u->eps;
  double g = (double)u->grad_scale * grad;
  if (u->kind == SHOAL_ADAMW)
    c.w *= 1 - rate * (double)u->l2;
  else
    g += (double)u->l2 * c.w;
  switch (u->kind) {
  case SHOAL_SGD: c.w -= rate * g; break;
  case SHOAL_MOMENTUM:
    c.s1 = b1 * c.s1 + g;
    c.w -= rate * c.s1;
    break;
  case SHOAL_NESTEROV:
    c.s1 = b1 * c.s1 + g;
    c.w -= rate * (g + b1 * c.s1);
    break;
  case SHOAL_ADAGRAD:
    c.s1 += g * g;
    c.w -= rate * g / (sqrt(c.s1) + eps);
    break;
  case SHOAL_RMSPROP:
    c.s1 = b2 * c.s1 + (1 - b2) * g * g;
    c.w -= rate * g / (sqrt(c.s1) + eps);
    break;
  default:
    c.s1 = b1 * c.s1 + (1 - b1) * g;
    c.s2 = b2 * c.s2 + (1 - b2) * g * g;
    c.w -= rate / (double)u->correction1 * c.s1 / (sqrt(c.s2) / sqrt((double)u->correction2) + eps);
  }
  return c;
}

static void every_optimiser_follows_its_formula(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  for (size_t n = 0; n < COUNT_OF(ref_sizes); n++)
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
      const size_t count = ref_sizes[n];
      const shoal_update u = {kinds[k], 0.1f, 0.9f, 0.99f, 1e-3f, 0.02f, 0.5f, 0.19f, 0.0199f};
      const bool has1 = u.kind != SHOAL_SGD, has2 = u.kind == SHOAL_ADAM || u.kind == SHOAL_ADAMW;
      float *w = ref_random(count, -1, 1), *g = ref_random(count, -1, 1);
      float *s1 = ref_random(count, 0, 1), *s2 = ref_random(count, 0, 1);
      double *ew = ref_doubles(count), *e1 = ref_doubles(count), *e2 = ref_doubles(count);
      for (size_t i = 0; i < count; i++) {
        const cell c = step(&u, (cell){(double)w[i], (double)s1[i], (double)s2[i]}, (double)g[i]);
        ew[i] = c.w;
        e1[i] = c.s1;
        e2[i] = c.s2;
      }
      float *w1 = NULL, *s11 = NULL, *s21 = NULL;
      for (int t = 0; t < tables_count; t++) {
        float *got = ref_copy(count, w), *got1 = ref_copy(count, s1), *got2 = ref_copy(count, s2);
        float *moved = ref_floats(count), *moved1 = ref_copy(count, s1), *moved2 = ref_copy(count, s2);
        tables[t]->update(&u, count, got, moved, g, has1 ? moved1 : NULL, has2 ? moved2 : NULL);
        tables[t]->update(&u, count, got, got, g, has1 ? got1 : NULL, has2 ? got2 : NULL);
        ref_same("in its place and elsewhere", tables[t]->name, count, moved, got);
        free(moved);
        free(moved1);
        free(moved2);
        ref_check("w", tables[t], count, got, &w1, ew, 1, 1e-6);
        ref_check("s1", tables[t], count, got1, &s11, e1, 1, 1e-6);
        ref_check("s2", tables[t], count, got2, &s21, e2, 1, 1e-6);
      }
      float *floats[] = {w, g, s1, s2, w1, s11, s21};
      for (size_t i = 0; i < COUNT_OF(floats); i++) free(floats[i]);
      free(ew);
      free(e1);
      free(e2);
    }
}

/* Of parts first .. first + count - 1: the left half is the largest power of two below count. */
static float tree_sum(const float *const *parts, uint32_t first, uint32_t count, uint32_t col) {
  if (count == 1) return parts[first][col];
  uint32_t half = 1;
  while (2 * half < count) half *= 2;
  return tree_sum(parts, first, half, col) + tree_sum(parts, first + half, count - half, col);
}

static void sums_have_the_stated_order(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  for (size_t n = 0; n < COUNT_OF(ref_sizes); n++) {
    const uint32_t cols = ref_sizes[n], rows = 9;
    float *x = ref_random((size_t)rows * cols, -1, 1), *start = ref_random(cols, -1, 1);
    float *columns = ref_copy(cols, start), *parts_sum = ref_floats(cols), *two = ref_floats(cols);
    float *scaled = ref_floats(cols);
    const float *parts[9];
    for (uint32_t r = 0; r < rows; r++) {
      parts[r] = x + (size_t)r * cols;
      for (uint32_t c = 0; c < cols; c++) columns[c] += parts[r][c];
    }
    for (uint32_t c = 0; c < cols; c++) {
      two[c] = start[c] + x[c];
      scaled[c] = fmaf(-0.3f, x[c], start[c]);
    }
    for (int t = 0; t < tables_count; t++) {
      float *got = ref_copy(cols, start);
      uint32_t half = cols / 2;
      tables[t]->column_sums(rows, half, x, cols, got);
      tables[t]->column_sums(rows, cols - half, x + half, cols, got + half);
      ref_same("column_sums", tables[t]->name, cols, got, columns);
      for (uint32_t r = 1; r <= rows; r++) {
        for (uint32_t c = 0; c < cols; c++) parts_sum[c] = tree_sum(parts, 0, r, c);
        tables[t]->sum_parts(cols, r, parts, got);
        ref_same("sum_parts", tables[t]->name, cols, got, parts_sum);
      }
      memcpy(got, start, cols * sizeof *got);
      tables[t]->add(cols, got, x, got);
      ref_same("add", tables[t]->name, cols, got, two);
      tables[t]->add_scaled(cols, start, -0.3f, x, got);
      ref_same("add_scaled", tables[t]->name, cols, got, scaled);
      free(got);
    }
    free(x);
    free(start);
    free(columns);
    free(parts_sum);
    free(two);
    free(scaled);
  }
}

static void square_sum_adds_lanes_then_blocks(void **state) {
  (void)state;
  static const size_t counts[] = {0, 1, 17, 4095, 4096, 4097, 10000};
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  for (size_t n = 0; n < COUNT_OF(counts); n++) {
    const size_t count = counts[n];
    float *x = ref_random(count, -1, 1);
    double expected = 0, exact = 0;
    for (size_t first = 0; first < count; first += 4096) {
      float lane[16] = {0};
      for (size_t i = first; i < count && i < first + 4096; i++) {
        lane[i % 16] = fmaf(x[i], x[i], lane[i % 16]);
        exact += (double)x[i] * (double)x[i];
      }
      for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
      expected += (double)lane[0];
    }
    assert_true(fabs(expected - exact) <= 1e-5 * exact);
    for (int t = 0; t < tables_count; t++) assert_true(shoal_square_sum(tables[t], count, x) == expected);
    free(x);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_optimiser_follows_its_formula),
      cmocka_unit_test(sums_have_the_stated_order),
      cmocka_unit_test(square_sum_adds_lanes_then_blocks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
