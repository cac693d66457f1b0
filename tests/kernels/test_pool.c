/* Pooling against the plain definition, with borders, strides and ties. */
#include "kernels/reference.h"

static const shoal_window cases[] = {
    /* channels in_h in_w  -  -  -  k_h k_w  stride  pad  lanes */
    {2, 24, 24, 2, 0, 0, 2, 2, 2, 2, 0, 0, 16}, {3, 7, 5, 3, 0, 0, 3, 3, 2, 2, 1, 1, 16},
    {1, 6, 9, 1, 0, 0, 3, 2, 1, 1, 1, 0, 32},   {4, 5, 5, 4, 0, 0, 5, 5, 1, 1, 2, 2, 16},
    {2, 8, 8, 2, 0, 0, 2, 2, 3, 3, 0, 0, 48},   {1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 16},
};

static shoal_window window_of(const shoal_window *from) {
  shoal_window s = *from;
  s.out_h = (s.in_h + 2 * s.pad_h - s.k_h) / s.stride_h + 1;
  s.out_w = (s.in_w + 2 * s.pad_w - s.k_w) / s.stride_w + 1;
  return s;
}

/* One output of one lane: its value, and the input that it came from (the first of equals). */
static double pool_one(shoal_pool_kind kind, const shoal_window *s, const float *x, uint32_t c, uint32_t oy,
                       uint32_t ox, uint32_t lane, size_t *from, uint32_t *taps) {
  double value = 0;
  *taps = 0;
  for (uint32_t i = 0; i < s->k_h; i++)
    for (uint32_t j = 0; j < s->k_w; j++) {
      uint32_t y = oy * s->stride_h + i - s->pad_h, z = ox * s->stride_w + j - s->pad_w;
      if (y >= s->in_h || z >= s->in_w) continue;
      const size_t at = (((size_t)c * s->in_h + y) * s->in_w + z) * s->lanes + lane;
      const double v = (double)x[at];
      if (kind == SHOAL_POOL_AVERAGE) {
        value += v;
      } else if (*taps == 0 || (kind == SHOAL_POOL_MAX ? v > value : v < value)) {
        value = v;
        *from = at;
      }
      (*taps)++;
    }
  return kind == SHOAL_POOL_AVERAGE ? value / *taps : value;
}

static void pooling_matches_its_definition_forward_and_backward(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  for (size_t n = 0; n < COUNT_OF(cases); n++)
    for (int k = 0; k < 3; k++) {
      const shoal_pool_kind kind = (shoal_pool_kind)k;
      const shoal_window s = window_of(&cases[n]);
      const size_t in = (size_t)s.in_c * s.in_h * s.in_w * s.lanes;
      const size_t out = (size_t)s.out_c * s.out_h * s.out_w * s.lanes;
      float *x = ref_floats(in), *dy = ref_random(out, -1, 1), *y = NULL, *dx = NULL;
      double *expected = ref_doubles(out), *slope = ref_doubles(in);
      for (size_t i = 0; i < in; i++) x[i] = floorf(ref_uniform(-3, 4)); /* few values: ties are common */

      size_t at = 0;
      for (uint32_t c = 0; c < s.out_c; c++)
        for (uint32_t oy = 0; oy < s.out_h; oy++)
          for (uint32_t ox = 0; ox < s.out_w; ox++)
            for (uint32_t lane = 0; lane < s.lanes; lane++, at++) {
              size_t from = 0;
              uint32_t taps;
              expected[at] = pool_one(kind, &s, x, c, oy, ox, lane, &from, &taps);
              if (kind != SHOAL_POOL_AVERAGE) {
                slope[from] += (double)dy[at];
                continue;
              }
              for (uint32_t i = 0; i < s.k_h; i++)
                for (uint32_t j = 0; j < s.k_w; j++) {
                  uint32_t iy = oy * s.stride_h + i - s.pad_h, ix = ox * s.stride_w + j - s.pad_w;
                  if (iy < s.in_h && ix < s.in_w)
                    slope[(((size_t)c * s.in_h + iy) * s.in_w + ix) * s.lanes + lane] +=
                        (double)dy[at] / taps;
                }
            }

      for (int t = 0; t < tables_count; t++) {
        float *got = ref_filled(out, NAN);
        tables[t]->pool_forward(kind, &s, x, got);
        ref_check("pool", tables[t], out, got, &y, expected, 1, 1e-6);
      }
      for (int t = 0; t < tables_count; t++) {
        float *got = ref_filled(in, NAN);
        tables[t]->pool_backward(kind, &s, x, y, dy, got);
        ref_check("pool slope", tables[t], in, got, &dx, slope, 1, 2e-6);
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
  const struct CMUnitTest tests[] = {cmocka_unit_test(pooling_matches_its_definition_forward_and_backward)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
