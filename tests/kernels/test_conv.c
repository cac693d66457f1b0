/* Convolution: the exact chains of the contract, which are themselves close to sums in double. */
#include "kernels/reference.h"

static const shoal_window cases[] = {
    /* in_c in_h in_w  out_c out_h out_w  k_h k_w  stride  pad  lanes; out_h and out_w follow */
    {1, 28, 28, 20, 0, 0, 5, 5, 1, 1, 0, 0, 16}, {20, 12, 12, 13, 0, 0, 5, 5, 1, 1, 0, 0, 16},
    {3, 9, 7, 5, 0, 0, 3, 3, 1, 1, 1, 1, 16},    {3, 9, 7, 5, 0, 0, 3, 3, 2, 2, 1, 1, 32},
    {2, 11, 13, 7, 0, 0, 4, 3, 3, 2, 2, 1, 16},  {5, 6, 6, 6, 0, 0, 1, 1, 1, 1, 0, 0, 16},
    {5, 7, 7, 9, 0, 0, 1, 1, 2, 2, 0, 0, 48},    {1, 5, 5, 1, 0, 0, 5, 5, 1, 1, 0, 0, 16},
    {2, 3, 4, 3, 0, 0, 5, 5, 1, 1, 2, 2, 16},    {4, 10, 10, 8, 0, 0, 2, 2, 2, 2, 0, 0, 16},
    {3, 8, 8, 2, 0, 0, 3, 3, 4, 4, 0, 0, 16},    {1, 1, 17, 11, 0, 0, 1, 5, 1, 1, 0, 2, 16},
    {2, 4, 4, 2, 0, 0, 3, 3, 1, 1, 3, 3, 16},
};

static shoal_window window_of(const shoal_window *from) {
  shoal_window s = *from;
  s.out_h = (s.in_h + 2 * s.pad_h - s.k_h) / s.stride_h + 1;
  s.out_w = (s.in_w + 2 * s.pad_w - s.k_w) / s.stride_w + 1;
  return s;
}

static size_t x_count(const shoal_window *s) { return (size_t)s->in_c * s->in_h * s->in_w * s->lanes; }
static size_t y_count(const shoal_window *s) { return (size_t)s->out_c * s->out_h * s->out_w * s->lanes; }
static size_t w_count(const shoal_window *s) { return (size_t)s->out_c * s->in_c * s->k_h * s->k_w; }

static size_t x_at(const shoal_window *s, uint32_t c, uint32_t y, uint32_t x) {
  return (((size_t)c * s->in_h + y) * s->in_w + x) * s->lanes;
}
static size_t y_at(const shoal_window *s, uint32_t c, uint32_t y, uint32_t x) {
  return (((size_t)c * s->out_h + y) * s->out_w + x) * s->lanes;
}
static size_t w_at(const shoal_window *s, uint32_t o, uint32_t c, uint32_t y, uint32_t x) {
  return (((size_t)o * s->in_c + c) * s->k_h + y) * s->k_w + x;
}

/* The input coordinate of a tap, and whether it is inside. */
static bool inside(uint32_t out, uint32_t tap, uint32_t stride, uint32_t pad, uint32_t size, uint32_t *in) {
  *in = out * stride + tap - pad;
  return *in < size;
}

/* A chain in float, beside the same sum in double, which it may miss by the rounding of
 * each of its links. */
typedef struct chain {
  float sum;
  double exact, size;
  uint32_t links;
} chain;

static void link_on(chain *c, float a, float b) {
  c->sum = fmaf(a, b, c->sum);
  c->exact += (double)a * (double)b;
  c->size += fabs((double)a * (double)b);
  c->links++;
}

static float chain_end(const chain *c) {
  assert_true(fabs((double)c->sum - c->exact) <= (c->size + 1) * (c->links + 1) * 6e-8);
  return c->sum;
}

static void reference_forward(const shoal_window *s, const float *x, const float *w, const float *bias,
                              float *y) {
  for (uint32_t o = 0; o < s->out_c; o++)
    for (uint32_t oy = 0; oy < s->out_h; oy++)
      for (uint32_t ox = 0; ox < s->out_w; ox++)
        for (uint32_t lane = 0; lane < s->lanes; lane++) {
          chain sum = {.sum = bias != NULL ? bias[o] : 0};
          sum.exact = (double)sum.sum;
          uint32_t iy, ix;
          for (uint32_t c = 0; c < s->in_c; c++)
            for (uint32_t i = 0; i < s->k_h; i++)
              for (uint32_t j = 0; j < s->k_w; j++)
                if (inside(oy, i, s->stride_h, s->pad_h, s->in_h, &iy) &&
                    inside(ox, j, s->stride_w, s->pad_w, s->in_w, &ix))
                  link_on(&sum, x[x_at(s, c, iy, ix) + lane], w[w_at(s, o, c, i, j)]);
          y[y_at(s, o, oy, ox) + lane] = chain_end(&sum);
        }
}

/* Each input pixel asks all outputs and taps whether they meet it. */
static void reference_input(const shoal_window *s, const float *dy, const float *w, float *dx) {
  for (uint32_t c = 0; c < s->in_c; c++)
    for (uint32_t y = 0; y < s->in_h; y++)
      for (uint32_t x = 0; x < s->in_w; x++)
        for (uint32_t lane = 0; lane < s->lanes; lane++) {
          chain sum = {0};
          for (uint32_t o = 0; o < s->out_c; o++)
            for (uint32_t i = 0; i < s->k_h; i++)
              for (uint32_t j = 0; j < s->k_w; j++) {
                uint32_t py = y + s->pad_h - i, px = x + s->pad_w - j;
                uint32_t oy = py / s->stride_h, ox = px / s->stride_w;
                if (y + s->pad_h >= i && x + s->pad_w >= j && py % s->stride_h == 0 &&
                    px % s->stride_w == 0 && oy < s->out_h && ox < s->out_w)
                  link_on(&sum, dy[y_at(s, o, oy, ox) + lane], w[w_at(s, o, c, i, j)]);
              }
          dx[x_at(s, c, y, x) + lane] = chain_end(&sum);
        }
}

static float tree(float lane[16]) {
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; i++) lane[i] += lane[i + half];
  return lane[0];
}

static void reference_weights(const shoal_window *s, const float *x, const float *dy, float *dw,
                              float *dbias) {
  float lanes[16];
  uint32_t iy, ix;
  for (uint32_t o = 0; o < s->out_c; o++) {
    for (uint32_t c = 0; c < s->in_c; c++)
      for (uint32_t i = 0; i < s->k_h; i++)
        for (uint32_t j = 0; j < s->k_w; j++) {
          for (uint32_t l = 0; l < 16; l++) {
            chain sum = {0};
            for (uint32_t group = 0; group < s->lanes; group += 16)
              for (uint32_t oy = 0; oy < s->out_h; oy++)
                for (uint32_t ox = 0; ox < s->out_w; ox++)
                  if (inside(oy, i, s->stride_h, s->pad_h, s->in_h, &iy) &&
                      inside(ox, j, s->stride_w, s->pad_w, s->in_w, &ix))
                    link_on(&sum, x[x_at(s, c, iy, ix) + group + l], dy[y_at(s, o, oy, ox) + group + l]);
            lanes[l] = chain_end(&sum);
          }
          dw[w_at(s, o, c, i, j)] += tree(lanes);
        }
    for (uint32_t l = 0; l < 16; l++) {
      lanes[l] = 0;
      for (uint32_t group = 0; group < s->lanes; group += 16)
        for (uint32_t oy = 0; oy < s->out_h; oy++)
          for (uint32_t ox = 0; ox < s->out_w; ox++) lanes[l] += dy[y_at(s, o, oy, ox) + group + l];
    }
    dbias[o] += tree(lanes);
  }
}

static void forward_is_the_stated_chain(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    const shoal_window s = window_of(&cases[i]);
    float *x = ref_random(x_count(&s), -1, 1), *w = ref_random(w_count(&s), -1, 1);
    float *bias = i % 2 == 0 ? ref_random(s.out_c, -1, 1) : NULL;
    float *expected = ref_floats(y_count(&s));
    reference_forward(&s, x, w, bias, expected);
    for (int t = 0; t < tables_count; t++) {
      float *y = ref_filled(y_count(&s), NAN), *scratch = ref_scratch(tables[t]->conv_scratch(&s));
      tables[t]->conv_forward(&s, x, w, bias, y, scratch);
      ref_same("conv y", tables[t]->name, y_count(&s), y, expected);
      free(y);
      free(scratch);
    }
    free(x);
    free(w);
    free(bias);
    free(expected);
  }
}

static void input_gradient_is_the_stated_chain(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    const shoal_window s = window_of(&cases[i]);
    float *dy = ref_random(y_count(&s), -1, 1), *w = ref_random(w_count(&s), -1, 1);
    float *expected = ref_floats(x_count(&s));
    reference_input(&s, dy, w, expected);
    for (int t = 0; t < tables_count; t++) {
      float *dx = ref_filled(x_count(&s), NAN), *scratch = ref_scratch(tables[t]->conv_scratch(&s));
      /* In two stretches of channels, as threads share it. */
      shoal_window front = s, back = s;
      front.in_c = s.in_c / 2;
      back.in_c = s.in_c - front.in_c;
      size_t plane = x_count(&s) / s.in_c, area = (size_t)s.k_h * s.k_w;
      tables[t]->conv_backward_input(&back, dy, w + front.in_c * area, s.in_c, dx + front.in_c * plane,
                                     scratch);
      if (front.in_c > 0) tables[t]->conv_backward_input(&front, dy, w, s.in_c, dx, scratch);
      ref_same("conv dx", tables[t]->name, x_count(&s), dx, expected);
      free(dx);
      free(scratch);
    }
    free(dy);
    free(w);
    free(expected);
  }
}

static void weight_gradient_is_the_stated_chains_and_tree(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    const shoal_window s = window_of(&cases[i]);
    float *x = ref_random(x_count(&s), -1, 1), *dy = ref_random(y_count(&s), -1, 1);
    float *start = ref_random(w_count(&s), -1, 1), *start_bias = ref_random(s.out_c, -1, 1);
    float *expected = ref_copy(w_count(&s), start), *expected_bias = ref_copy(s.out_c, start_bias);
    reference_weights(&s, x, dy, expected, expected_bias);
    for (int t = 0; t < tables_count; t++) {
      float *dw = ref_copy(w_count(&s), start), *dbias = ref_copy(s.out_c, start_bias);
      tables[t]->conv_backward_weights(&s, x, dy, dw);
      tables[t]->conv_backward_bias(&s, dy, dbias);
      ref_same("conv dw", tables[t]->name, w_count(&s), dw, expected);
      ref_same("conv dbias", tables[t]->name, s.out_c, dbias, expected_bias);
      free(dw);
      free(dbias);
    }
    free(x);
    free(dy);
    free(start);
    free(start_bias);
    free(expected);
    free(expected_bias);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(forward_is_the_stated_chain),
      cmocka_unit_test(input_gradient_is_the_stated_chain),
      cmocka_unit_test(weight_gradient_is_the_stated_chains_and_tree),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
