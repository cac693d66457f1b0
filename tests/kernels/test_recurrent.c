/* Recurrent cells: forward against the formulas in double, backward against finite differences
 * of those formulas. */
#include "kernels/reference.h"

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* One unit of an LSTM; g holds i f g o before activation. */
typedef struct lstm_out {
  double c, y;
} lstm_out;

static lstm_out lstm(const double g[4], double c_prev) {
  const double c = sigmoid(g[1]) * c_prev + sigmoid(g[0]) * tanh(g[2]);
  return (lstm_out){c, sigmoid(g[3]) * tanh(c)};
}

/* How many units the band has that begins at this one: a vector, then all that are left. */
static uint32_t band(uint32_t h, uint32_t first) { return first == 0 && h > 16 ? 16 : h - first; }

static void lstm_forward_matches_its_formula(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  for (size_t n = 0; n < COUNT_OF(ref_sizes); n++) {
    const uint32_t h = ref_sizes[n], samples = 3;
    const size_t count = (size_t)samples * h;
    float *gates = ref_random(4 * count, -3, 3), *c_prev = ref_random(count, -2, 2);
    double *g = ref_doubles(4 * count), *c = ref_doubles(count), *y = ref_doubles(count);
    for (size_t i = 0; i < count; i++) {
      const size_t at = i / h * 4 * h + i % h;
      double pre[4];
      for (int k = 0; k < 4; k++) {
        pre[k] = (double)gates[at + (size_t)k * h];
        g[at + (size_t)k * h] = k == 2 ? tanh(pre[k]) : sigmoid(pre[k]);
      }
      const lstm_out out = lstm(pre, (double)c_prev[i]);
      c[i] = out.c;
      y[i] = out.y;
    }
    float *first_g = NULL, *first_c = NULL, *first_y = NULL;
    for (int t = 0; t < tables_count; t++) {
      float *got_g = ref_copy(4 * count, gates), *got_c = ref_filled(count, NAN),
            *got_y = ref_filled(count, NAN);
      for (uint32_t u = 0; u < h; u += band(h, u))
        tables[t]->lstm_forward(samples, h, band(h, u), got_g + u, c_prev + u, got_c + u, got_y + u);
      ref_check("lstm gates", tables[t], 4 * count, got_g, &first_g, g, 0, 3e-7);
      ref_check("lstm c", tables[t], count, got_c, &first_c, c, 1, 5e-7);
      ref_check("lstm y", tables[t], count, got_y, &first_y, y, 1, 5e-7);
    }
    free(gates);
    free(c_prev);
    free(g);
    free(c);
    free(y);
    free(first_g);
    free(first_c);
    free(first_y);
  }
}

static void lstm_backward_matches_finite_differences(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  for (size_t n = 0; n < COUNT_OF(ref_sizes); n++) {
    const uint32_t h = ref_sizes[n], samples = 2;
    const size_t count = (size_t)samples * h;
    const double step = 1e-5;
    float *pre = ref_random(4 * count, -3, 3), *c_prev = ref_random(count, -2, 2);
    float *dy = ref_random(count, -1, 1), *dc = ref_random(count, -1, 1);
    float *gates = ref_copy(4 * count, pre), *c = ref_floats(count), *y = ref_floats(count);
    tables[0]->lstm_forward(samples, h, h, gates, c_prev, c, y);
    double *dgates = ref_doubles(4 * count), *dc_prev = ref_doubles(count);
    for (size_t i = 0; i < count; i++) {
      const size_t at = i / h * 4 * h + i % h;
      double g[4];
      for (int k = 0; k < 4; k++) g[k] = (double)pre[at + (size_t)k * h];
      for (int k = 0; k < 5; k++) { /* the four gates, then c_prev */
        double low[4], high[4], c_low = (double)c_prev[i], c_high = c_low;
        memcpy(low, g, sizeof low);
        memcpy(high, g, sizeof high);
        if (k < 4) {
          low[k] -= step;
          high[k] += step;
        } else {
          c_low -= step;
          c_high += step;
        }
        const lstm_out a = lstm(low, c_low), b = lstm(high, c_high);
        const double slope = ((double)dc[i] * (b.c - a.c) + (double)dy[i] * (b.y - a.y)) / (2 * step);
        *(k < 4 ? &dgates[at + (size_t)k * h] : &dc_prev[i]) = slope;
      }
    }
    float *first_g = NULL, *first_c = NULL;
    for (int t = 0; t < tables_count; t++) {
      float *got_g = ref_filled(4 * count, NAN), *got_c = ref_copy(count, dc);
      for (uint32_t u = 0; u < h; u += band(h, u))
        tables[t]->lstm_backward(samples, h, band(h, u), gates + u, c_prev + u, c + u, dy + u, got_c + u,
                                 got_g + u);
      ref_check("lstm dgates", tables[t], 4 * count, got_g, &first_g, dgates, 1, 1e-6);
      ref_check("lstm dc", tables[t], count, got_c, &first_c, dc_prev, 1, 1e-6);
    }
    free(pre);
    free(c_prev);
    free(dy);
    free(dc);
    free(gates);
    free(c);
    free(y);
    free(dgates);
    free(dc_prev);
    free(first_g);
    free(first_c);
  }
}

/* One unit of a GRU; in holds r z n of the x part, r z n of the h part, and h_prev. */
static double gru(const double in[7]) {
  const double r = sigmoid(in[0] + in[3]), z = sigmoid(in[1] + in[4]);
  return (1 - z) * tanh(in[2] + r * in[5]) + z * in[6];
}

static void gru_matches_its_formula_and_finite_differences(void **state) {
  (void)state;
  const shoal_kernels *tables[REF_TABLES_MAX];
  const int tables_count = ref_tables(tables);
  for (size_t n = 0; n < COUNT_OF(ref_sizes); n++) {
    const uint32_t h = ref_sizes[n], samples = 2;
    const size_t count = (size_t)samples * h;
    const double step = 1e-5;
    float *pre = ref_random(3 * count, -2, 2), *gh = ref_random(3 * count, -2, 2);
    float *h_prev = ref_random(count, -1, 1), *dh = ref_random(count, -1, 1);
    double *y = ref_doubles(count), *dgx = ref_doubles(3 * count), *dgh = ref_doubles(3 * count);
    double *dh_prev = ref_doubles(count);
    for (size_t i = 0; i < count; i++) {
      const size_t at = i / h * 3 * h + i % h;
      double in[7];
      for (size_t k = 0; k < 3; k++) {
        in[k] = (double)pre[at + k * h];
        in[3 + k] = (double)gh[at + k * h];
      }
      in[6] = (double)h_prev[i];
      y[i] = gru(in);
      for (size_t k = 0; k < 7; k++) {
        double low[7], high[7];
        memcpy(low, in, sizeof low);
        memcpy(high, in, sizeof high);
        low[k] -= step;
        high[k] += step;
        *(k < 3   ? &dgx[at + k * h]
          : k < 6 ? &dgh[at + (k - 3) * h]
                  : &dh_prev[i]) = (double)dh[i] * (gru(high) - gru(low)) / (2 * step);
      }
    }
    float *first_y = NULL, *first_g = NULL, *first_x = NULL, *first_h = NULL, *first_dh = NULL;
    for (int t = 0; t < tables_count; t++) {
      float *gx = ref_copy(3 * count, pre), *got_y = ref_filled(count, NAN);
      for (uint32_t u = 0; u < h; u += band(h, u))
        tables[t]->gru_forward(samples, h, band(h, u), gx + u, gh + u, h_prev + u, got_y + u);
      ref_check("gru y", tables[t], count, got_y, &first_y, y, 1, 5e-7);
      float *got_x = ref_filled(3 * count, NAN), *got_h = ref_filled(3 * count, NAN),
            *got_dh = ref_copy(count, dh);
      for (uint32_t u = 0; u < h; u += band(h, u))
        tables[t]->gru_backward(samples, h, band(h, u), gx + u, gh + u, h_prev + u, got_dh + u, got_x + u,
                                got_h + u);
      ref_check("gru dgx", tables[t], 3 * count, got_x, &first_x, dgx, 1, 1e-6);
      ref_check("gru dgh", tables[t], 3 * count, got_h, &first_h, dgh, 1, 1e-6);
      ref_check("gru dh", tables[t], count, got_dh, &first_dh, dh_prev, 1, 1e-6);
      if (first_g != NULL) ref_same("gru gates", tables[t]->name, 3 * count, gx, first_g);
      free(first_g);
      first_g = gx;
    }
    free(pre);
    free(gh);
    free(h_prev);
    free(dh);
    free(y);
    free(dgx);
    free(dgh);
    free(dh_prev);
    free(first_y);
    free(first_g);
    free(first_x);
    free(first_h);
    free(first_dh);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lstm_forward_matches_its_formula),
      cmocka_unit_test(lstm_backward_matches_finite_differences),
      cmocka_unit_test(gru_matches_its_formula_and_finite_differences),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
