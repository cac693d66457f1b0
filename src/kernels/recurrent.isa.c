/* recurrent.isa.c: what happens between the matrix products of recurrent cells.
 *
 * The formulas are in kernels.h; a gate's slope is taken from its activated value. */
#include "kernels/isa.h"
#include "kernels/vmath.h"

V_INLINE vf sigmoid_slope(vf y) { return vf_mul(y, vf_sub(vf_set(1), y)); }
V_INLINE vf tanh_slope(vf y) { return vf_fnma(y, y, vf_set(1)); }

void ISA(lstm_forward)(uint32_t n, uint32_t h, uint32_t units, float *gates, const float *c_prev, float *c,
                       float *y) {
  for (uint32_t sample = 0; sample < n; sample++, gates += 4 * (size_t)h, c_prev += h, c += h, y += h)
    for (uint32_t i = 0; i < units; i += 16) {
      const uint32_t left = units - i;
      float *gi = gates + i, *gf = gi + h, *gg = gf + h, *go = gg + h;
      vf in = vf_sigmoid(vf_load_some(gi, left)), forget = vf_sigmoid(vf_load_some(gf, left));
      vf cell = vf_tanh(vf_load_some(gg, left)), out = vf_sigmoid(vf_load_some(go, left));
      vf state = vf_fma(forget, vf_load_some(c_prev + i, left), vf_mul(in, cell));
      vf_store_some(gi, left, in);
      vf_store_some(gf, left, forget);
      vf_store_some(gg, left, cell);
      vf_store_some(go, left, out);
      vf_store_some(c + i, left, state);
      vf_store_some(y + i, left, vf_mul(out, vf_tanh(state)));
    }
}

void ISA(lstm_backward)(uint32_t n, uint32_t h, uint32_t units, const float *gates, const float *c_prev,
                        const float *c, const float *dy, float *dc, float *dgates) {
  for (uint32_t sample = 0; sample < n; sample++) {
    for (uint32_t i = 0; i < units; i += 16) {
      const uint32_t left = units - i;
      const float *g = gates + i;
      float *d = dgates + i;
      vf in = vf_load_some(g, left), forget = vf_load_some(g + h, left);
      vf cell = vf_load_some(g + 2 * (size_t)h, left), out = vf_load_some(g + 3 * (size_t)h, left);
      vf squashed = vf_tanh(vf_load_some(c + i, left)), from_y = vf_load_some(dy + i, left);
      /* The state's gradient: from the later step, and from y = out tanh(state). */
      vf state = vf_fma(vf_mul(from_y, out), tanh_slope(squashed), vf_load_some(dc + i, left));
      vf_store_some(d, left, vf_mul(vf_mul(state, cell), sigmoid_slope(in)));
      vf_store_some(d + h, left,
                    vf_mul(vf_mul(state, vf_load_some(c_prev + i, left)), sigmoid_slope(forget)));
      vf_store_some(d + 2 * (size_t)h, left, vf_mul(vf_mul(state, in), tanh_slope(cell)));
      vf_store_some(d + 3 * (size_t)h, left, vf_mul(vf_mul(from_y, squashed), sigmoid_slope(out)));
      vf_store_some(dc + i, left, vf_mul(state, forget));
    }
    gates += 4 * (size_t)h;
    dgates += 4 * (size_t)h;
    c_prev += h;
    c += h;
    dy += h;
    dc += h;
  }
}

void ISA(gru_forward)(uint32_t n, uint32_t h, uint32_t units, float *gx, const float *gh, const float *h_prev,
                      float *y) {
  for (uint32_t sample = 0; sample < n;
       sample++, gx += 3 * (size_t)h, gh += 3 * (size_t)h, h_prev += h, y += h)
    for (uint32_t i = 0; i < units; i += 16) {
      const uint32_t left = units - i;
      float *xr = gx + i, *xz = xr + h, *xn = xz + h;
      const float *hr = gh + i, *hz = hr + h, *hn = hz + h;
      vf reset = vf_sigmoid(vf_add(vf_load_some(xr, left), vf_load_some(hr, left)));
      vf keep = vf_sigmoid(vf_add(vf_load_some(xz, left), vf_load_some(hz, left)));
      vf new = vf_tanh(vf_fma(reset, vf_load_some(hn, left), vf_load_some(xn, left)));
      vf_store_some(xr, left, reset);
      vf_store_some(xz, left, keep);
      vf_store_some(xn, left, new);
      vf_store_some(y + i, left, vf_fma(keep, vf_sub(vf_load_some(h_prev + i, left), new), new));
    }
}

void ISA(gru_backward)(uint32_t n, uint32_t h, uint32_t units, const float *gx, const float *gh,
                       const float *h_prev, float *dh, float *dgx, float *dgh) {
  for (uint32_t sample = 0; sample < n; sample++) {
    for (uint32_t i = 0; i < units; i += 16) {
      const uint32_t left = units - i;
      const size_t r = i, z = r + h, c = z + h;
      vf reset = vf_load_some(gx + r, left), keep = vf_load_some(gx + z, left),
         new = vf_load_some(gx + c, left);
      vf d = vf_load_some(dh + i, left);
      vf d_new = vf_mul(vf_mul(d, vf_sub(vf_set(1), keep)), tanh_slope(new));
      vf d_keep = vf_mul(vf_mul(d, vf_sub(vf_load_some(h_prev + i, left), new)), sigmoid_slope(keep));
      vf d_reset = vf_mul(vf_mul(d_new, vf_load_some(gh + c, left)), sigmoid_slope(reset));
      vf_store_some(dgx + r, left, d_reset);
      vf_store_some(dgh + r, left, d_reset);
      vf_store_some(dgx + z, left, d_keep);
      vf_store_some(dgh + z, left, d_keep);
      vf_store_some(dgx + c, left, d_new);
      vf_store_some(dgh + c, left, vf_mul(d_new, reset));
      vf_store_some(dh + i, left, vf_mul(d, keep));
    }
    gx += 3 * (size_t)h;
    gh += 3 * (size_t)h;
    dgx += 3 * (size_t)h;
    dgh += 3 * (size_t)h;
    h_prev += h;
    dh += h;
  }
}
