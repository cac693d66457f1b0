/* Convolution by Winograd's way: close to sums in double, and the same bits in every table. */
#include "kernels/reference.h"

/* The whole, or in parts, the later ones first: their order does not matter. */
static void run(void (*pass)(const shoal_winograd *, float *), const shoal_winograd *all, uint32_t channels,
                bool in_parts, float *scratch) {
  uint32_t ins = all->window.in_c, outs = all->window.out_c, lanes = all->window.lanes, cut = lanes / 32 * 16;
  const uint32_t whole[8] = {0, channels, 0, lanes, 0, outs, 0, ins};
  const uint32_t parts[5][8] = {
      {channels / 2, channels - channels / 2, 0, lanes, outs / 3, outs - outs / 3, 0, ins},
      {1, channels / 2 - 1, cut, lanes - cut, 0, outs / 3, 1, ins - 1},
      {1, channels / 2 - 1, 0, cut, 0, 0, 0, 0},
      {0, 1, 0, lanes, 0, 0, 0, 0},
      {0, 0, 0, 0, 0, outs / 3, 0, 1}};
  for (int i = 0; i < (in_parts ? 5 : 1); i++) {
    const uint32_t *of = in_parts ? parts[i] : whole;
    shoal_winograd part = *all;
    part.first = of[0];
    part.count = of[1];
    part.first_lane = of[2];
    part.lanes = of[3];
    part.dw_first_out = of[4];
    part.dw_outs = of[5];
    part.dw_first_in = of[6];
    part.dw_ins = of[7];
    pass(&part, scratch);
  }
}

static double lesser(double a, double b) { return a < b ? a : b; }

/* What a result may be off, as a share of the sum of its products' sizes: twice the worst that
 * was measured, which is 6 units of float's rounding for 3x3 and 21 for 5x5. On an image smaller
 * than the window a sum is that of a few taps, but the rounding is that of all. */
static double bound_of(const shoal_window *s) {
  double taps = lesser(s->k_h, s->in_h) * lesser(s->k_w, s->in_w);
  return (s->k_h == 3 ? 7.2e-7 : 2.5e-6) * s->k_h * s->k_w / taps;
}

static const shoal_window cases[] = {
    /* in_c in_h in_w  out_c out_h out_w  k_h k_w  stride  pad  lanes; out_h and out_w follow */
    {20, 12, 12, 50, 0, 0, 5, 5, 1, 1, 0, 0, 32},
    {8, 12, 12, 8, 0, 0, 5, 5, 1, 1, 2, 2, 16},
    {17, 9, 13, 9, 0, 0, 5, 5, 1, 1, 2, 0, 16},
    {16, 8, 8, 16, 0, 0, 3, 3, 1, 1, 1, 1, 48},
    {33, 7, 11, 31, 0, 0, 3, 3, 1, 1, 1, 0, 16},
    {13, 6, 6, 37, 0, 0, 3, 3, 1, 1, 0, 0, 32},
    {8, 10, 9, 15, 0, 0, 3, 3, 1, 1, 2, 2, 64},
    {8, 5, 8, 8, 0, 0, 5, 5, 1, 1, 4, 4, 16},
    /* outputs smaller than a tile */
    {8, 2, 4, 8, 0, 0, 3, 3, 1, 1, 1, 1, 16},
    {9, 4, 5, 8, 0, 0, 5, 5, 1, 1, 1, 1, 32},
    /* images smaller than the kernel */
    {8, 1, 2, 10, 0, 0, 3, 3, 1, 1, 2, 2, 16},
    {8, 1, 1, 9, 0, 0, 5, 5, 1, 1, 4, 4, 48},
    /* so many channels that the products are cut */
    {250, 4, 4, 8, 0, 0, 3, 3, 1, 1, 1, 1, 16},
    {8, 4, 4, 250, 0, 0, 5, 5, 1, 1, 2, 2, 16},
    {513, 2, 4, 9, 0, 0, 3, 3, 1, 1, 1, 1, 16},
};

static shoal_window window_of(const shoal_window *from) {
  shoal_window s = *from;
  s.out_h = s.in_h + 2 * s.pad_h - s.k_h + 1;
  s.out_w = s.in_w + 2 * s.pad_w - s.k_w + 1;
  return s;
}

static size_t x_count(const shoal_window *s) { return (size_t)s->in_c * s->in_h * s->in_w * s->lanes; }
static size_t y_count(const shoal_window *s) { return (size_t)s->out_c * s->out_h * s->out_w * s->lanes; }
static size_t w_count(const shoal_window *s) { return (size_t)s->out_c * s->in_c * s->k_h * s->k_w; }

/* The three places that meet in each product of a convolution, and a visitor of all of them. */
typedef void visitor(void *context, size_t x, size_t w, size_t y);

static void visit(const shoal_window *s, visitor *f, void *context) {
  for (uint32_t o = 0; o < s->out_c; o++)
    for (uint32_t c = 0; c < s->in_c; c++)
      for (uint32_t i = 0; i < s->k_h; i++)
        for (uint32_t j = 0; j < s->k_w; j++)
          for (uint32_t oy = 0; oy < s->out_h; oy++)
            for (uint32_t ox = 0; ox < s->out_w; ox++) {
              uint32_t iy = oy + i - s->pad_h, ix = ox + j - s->pad_w;
              if (iy >= s->in_h || ix >= s->in_w) continue;
              size_t x = (((size_t)c * s->in_h + iy) * s->in_w + ix) * s->lanes;
              size_t w = (((size_t)o * s->in_c + c) * s->k_h + i) * s->k_w + j;
              size_t y = (((size_t)o * s->out_h + oy) * s->out_w + ox) * s->lanes;
              for (uint32_t lane = 0; lane < s->lanes; lane++) f(context, x + lane, w, y + lane);
            }
}

/* A sum of products into each element of one of the three tensors. */
typedef struct sums {
  const float *x, *w, *y; /* the tensor that is summed into is NULL */
  double *exact, *size;
} sums;

static void add_product(void *context, size_t x, size_t w, size_t y) {
  sums *s = context;
  double product = 1;
  size_t at = 0;
  if (s->x != NULL)
    product *= (double)s->x[x];
  else
    at = x;
  if (s->w != NULL)
    product *= (double)s->w[w];
  else
    at = w;
  if (s->y != NULL)
    product *= (double)s->y[y];
  else
    at = y;
  s->exact[at] += product;
  s->size[at] += fabs(product);
}

/* What a pass gives: its sums in double, started from `start` values. */
static void expect(const shoal_window *s, sums *sum, size_t count, const float *start, size_t per_start) {
  sum->exact = calloc(count, sizeof *sum->exact);
  sum->size = calloc(count, sizeof *sum->size);
  assert_non_null(sum->exact);
  assert_non_null(sum->size);
  for (size_t i = 0; start != NULL && i < count; i++) {
    sum->exact[i] = (double)start[i / per_start];
    sum->size[i] = fabs(sum->exact[i]);
  }
  visit(s, add_product, sum);
}

/* A tile shares its rounding, so an element at the border, the sum of a few products, is as far
 * off as the largest sum beside it. */
static void check(const char *what, const char *table, size_t count, const float *got, const sums *sum,
                  double bound) {
  double largest = 0, worst = 0;
  for (size_t i = 0; i < count; i++) largest = fmax(largest, sum->size[i]);
  for (size_t i = 0; i < count; i++) {
    assert_true(isfinite(got[i]));
    worst = fmax(worst, fabs((double)got[i] - sum->exact[i]));
  }
  if (!(worst <= bound * largest))
    fail_msg("%s of %s is off by %.2g, which is %.2g of the largest sum", what, table, worst,
             worst / largest);
}

/* Each pass writes `count` floats: the first table's are checked, the others' must be equal. */
typedef struct outcome {
  const char *what;
  size_t count;
  float *first;
} outcome;

static void compare(outcome *o, const char *table, float *got, const sums *sum, double bound) {
  if (o->first == NULL) {
    check(o->what, table, o->count, got, sum, bound);
    o->first = got;
    return;
  }
  ref_same(o->what, table, o->count, got, o->first);
  free(got);
}

static void finish(outcome *o, sums *sum) {
  free(o->first);
  free(sum->exact);
  free(sum->size);
}

static void every_case_suits(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    const shoal_window s = window_of(&cases[i]);
    assert_true(shoal_winograd_suits(&s));
  }
}

static void strides_other_kernels_few_channels_and_thin_outputs_do_not_suit(void **state) {
  (void)state;
  shoal_window s = window_of(&cases[3]);
  s.stride_w = 2;
  assert_false(shoal_winograd_suits(&s));
  s = window_of(&cases[3]);
  s.k_h = s.k_w = 1;
  assert_false(shoal_winograd_suits(&s));
  s = window_of(&cases[3]);
  s.k_w = 5;
  assert_false(shoal_winograd_suits(&s));
  s = window_of(&cases[3]);
  s.in_c = 7;
  assert_false(shoal_winograd_suits(&s));
  s = window_of(&cases[3]);
  s.out_c = 7;
  assert_false(shoal_winograd_suits(&s));
  s = window_of(&cases[3]);
  s.out_h = 1; /* most of a tile would be thrown away */
  assert_false(shoal_winograd_suits(&s));
}

static void the_passes_are_close_to_sums_in_double(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    const shoal_window s = window_of(&cases[i]);
    float *x = ref_random(x_count(&s), -1, 1), *w = ref_random(w_count(&s), -1, 1);
    float *dy = ref_random(y_count(&s), -1, 1), *start = ref_random(w_count(&s), -1, 1);
    float *bias = i % 2 == 0 ? ref_random(s.out_c, -1, 1) : NULL;
    sums y = {.x = x, .w = w}, dx = {.w = w, .y = dy}, dw = {.x = x, .y = dy};
    expect(&s, &y, y_count(&s), bias, y_count(&s) / s.out_c);
    expect(&s, &dx, x_count(&s), NULL, 1);
    expect(&s, &dw, w_count(&s), start, 1);
    outcome y_is = {"y", y_count(&s), NULL}, dx_is = {"dx", x_count(&s), NULL},
            dw_is = {"dw", w_count(&s), NULL};
    for (int t = 0; t < 2 * tables_count; t++) {
      const shoal_kernels *k = tables[t / 2];
      const bool in_parts = t % 2 == 1;
      float *scratch = ref_scratch(k->winograd_scratch(&s));
      float *got = ref_filled(y_count(&s), NAN);
      shoal_winograd job = {.window = s, .x = x, .w = w, .bias = bias, .dy = dy, .y = got};
      run(k->winograd_forward, &job, s.out_c, in_parts, scratch);
      compare(&y_is, k->name, got, &y, bound_of(&s));
      float *got_dx = ref_filled(x_count(&s), NAN), *got_dw = ref_copy(w_count(&s), start);
      job.dx = got_dx;
      job.dw = got_dw;
      run(k->winograd_backward, &job, s.in_c, in_parts, scratch);
      compare(&dx_is, k->name, got_dx, &dx, bound_of(&s));
      compare(&dw_is, k->name, got_dw, &dw, bound_of(&s));
      got_dw = ref_copy(w_count(&s), start); /* the same where dx is not wanted */
      job.dx = NULL;
      job.dw = got_dw;
      run(k->winograd_backward, &job, s.in_c, in_parts, scratch);
      compare(&dw_is, k->name, got_dw, &dw, bound_of(&s));
      free(scratch);
    }
    finish(&y_is, &y);
    finish(&dx_is, &dx);
    finish(&dw_is, &dw);
    free(x);
    free(w);
    free(dy);
    free(start);
    free(bias);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_case_suits),
      cmocka_unit_test(strides_other_kernels_few_channels_and_thin_outputs_do_not_suit),
      cmocka_unit_test(the_passes_are_close_to_sums_in_double),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
