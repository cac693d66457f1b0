/* simd_neon.h: a vector is four 128-bit registers, lanes 0-3, 4-7, 8-11 and 12-15. See simd.h.
 *
 * vr is a pair of registers: of the 32, twelve pairs of sums leave eight for operands, as much
 * as a block of loads and its broadcasts need, and pairs halve the broadcasts a sum costs. */
#ifndef SHOAL_KERNELS_SIMD_NEON_H
#define SHOAL_KERNELS_SIMD_NEON_H

#include <arm_neon.h>
#include <stddef.h>

typedef struct vf {
  float32x4_t a, b, c, d;
} vf;
typedef struct vi {
  uint32x4_t a, b, c, d;
} vi;
typedef struct vm {
  uint32x4_t a, b, c, d;
} vm;
typedef struct vr {
  float32x4_t a, b;
} vr;

enum { VR = 8, V_ACC = 12 };

/* The bodies of functions that do the same with each register. */
#define V_EACH1(type, f, x) \
  return (type) { f(x.a), f(x.b), f(x.c), f(x.d) }
#define V_EACH2(type, f, x, y) \
  return (type) { f(x.a, y.a), f(x.b, y.b), f(x.c, y.c), f(x.d, y.d) }
#define V_EACH3(type, f, x, y, z) \
  return (type) { f(x.a, y.a, z.a), f(x.b, y.b, z.b), f(x.c, y.c, z.c), f(x.d, y.d, z.d) }

/* The first n of a register's four floats. */
V_INLINE float32x4_t v_load_four(const float *p, unsigned n) {
  if (n >= 4) return vld1q_f32(p);
  float32x4_t v = vdupq_n_f32(0);
  if (n > 0) v = vld1q_lane_f32(p, v, 0);
  if (n > 1) v = vld1q_lane_f32(p + 1, v, 1);
  if (n > 2) v = vld1q_lane_f32(p + 2, v, 2);
  return v;
}
V_INLINE void v_store_four(float *p, unsigned n, float32x4_t v) {
  if (n >= 4) {
    vst1q_f32(p, v);
    return;
  }
  if (n > 0) vst1q_lane_f32(p, v, 0);
  if (n > 1) vst1q_lane_f32(p + 1, v, 1);
  if (n > 2) vst1q_lane_f32(p + 2, v, 2);
}
V_INLINE unsigned v_past(unsigned n, unsigned lanes) { return n > lanes ? n - lanes : 0; }

V_INLINE vm vm_first(unsigned n) { /* lanes below n <= 16 */
  static const uint32_t lane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const uint32x4_t end = vdupq_n_u32(n);
  return (vm){vcltq_u32(vld1q_u32(lane), end), vcltq_u32(vld1q_u32(lane + 4), end),
              vcltq_u32(vld1q_u32(lane + 8), end), vcltq_u32(vld1q_u32(lane + 12), end)};
}
V_INLINE vm vm_and(vm x, vm y) { V_EACH2(vm, vandq_u32, x, y); }
V_INLINE vm vm_and_not(vm x, vm y) { V_EACH2(vm, vbicq_u32, x, y); }
V_INLINE vm vm_or(vm x, vm y) { V_EACH2(vm, vorrq_u32, x, y); }

V_INLINE vf vf_set(float x) {
  float32x4_t v = vdupq_n_f32(x);
  return (vf){v, v, v, v};
}
V_INLINE vf vf_load(const float *p) {
  return (vf){vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}
V_INLINE void vf_store(float *p, vf v) {
  vst1q_f32(p, v.a);
  vst1q_f32(p + 4, v.b);
  vst1q_f32(p + 8, v.c);
  vst1q_f32(p + 12, v.d);
}
V_INLINE vf vf_load_part(const float *p, unsigned n) {
  return (vf){v_load_four(p, n), v_load_four(p + 4, v_past(n, 4)), v_load_four(p + 8, v_past(n, 8)),
              v_load_four(p + 12, v_past(n, 12))};
}
V_INLINE void vf_store_part(float *p, unsigned n, vf v) {
  v_store_four(p, n, v.a);
  v_store_four(p + 4, v_past(n, 4), v.b);
  v_store_four(p + 8, v_past(n, 8), v.c);
  v_store_four(p + 12, v_past(n, 12), v.d);
}

V_INLINE vf vf_add(vf x, vf y) { V_EACH2(vf, vaddq_f32, x, y); }
V_INLINE vf vf_sub(vf x, vf y) { V_EACH2(vf, vsubq_f32, x, y); }
V_INLINE vf vf_mul(vf x, vf y) { V_EACH2(vf, vmulq_f32, x, y); }
V_INLINE vf vf_div(vf x, vf y) { V_EACH2(vf, vdivq_f32, x, y); }
V_INLINE vf vf_sqrt(vf x) { V_EACH1(vf, vsqrtq_f32, x); }
V_INLINE vf vf_fma(vf x, vf y, vf z) { V_EACH3(vf, vfmaq_f32, z, x, y); }  /* x y + z */
V_INLINE vf vf_fnma(vf x, vf y, vf z) { V_EACH3(vf, vfmsq_f32, z, x, y); } /* z - x y */
/* The instructions for these order zeros by sign and prefer NaNs; simd.h says otherwise. */
V_INLINE float32x4_t v_max_four(float32x4_t x, float32x4_t y) { return vbslq_f32(vcgtq_f32(x, y), x, y); }
V_INLINE float32x4_t v_min_four(float32x4_t x, float32x4_t y) { return vbslq_f32(vcltq_f32(x, y), x, y); }
V_INLINE vf vf_max(vf x, vf y) { V_EACH2(vf, v_max_four, x, y); }
V_INLINE vf vf_min(vf x, vf y) { V_EACH2(vf, v_min_four, x, y); }

V_INLINE vm vf_lt(vf x, vf y) { V_EACH2(vm, vcltq_f32, x, y); }
V_INLINE vm vf_eq(vf x, vf y) { V_EACH2(vm, vceqq_f32, x, y); }
V_INLINE vf vf_select(vm m, vf yes, vf no) { V_EACH3(vf, vbslq_f32, m, yes, no); }

V_INLINE vi vi_set(uint32_t x) {
  uint32x4_t v = vdupq_n_u32(x);
  return (vi){v, v, v, v};
}
V_INLINE vi vi_load(const uint32_t *p) {
  return (vi){vld1q_u32(p), vld1q_u32(p + 4), vld1q_u32(p + 8), vld1q_u32(p + 12)};
}
V_INLINE void vi_store(uint32_t *p, vi v) {
  vst1q_u32(p, v.a);
  vst1q_u32(p + 4, v.b);
  vst1q_u32(p + 8, v.c);
  vst1q_u32(p + 12, v.d);
}
V_INLINE vi vi_add(vi x, vi y) { V_EACH2(vi, vaddq_u32, x, y); }
V_INLINE vi vi_sub(vi x, vi y) { V_EACH2(vi, vsubq_u32, x, y); }
V_INLINE vi vi_and(vi x, vi y) { V_EACH2(vi, vandq_u32, x, y); }
V_INLINE vi vi_or(vi x, vi y) { V_EACH2(vi, vorrq_u32, x, y); }
V_INLINE vi vi_xor(vi x, vi y) { V_EACH2(vi, veorq_u32, x, y); }
V_INLINE vi vi_left(vi x, int bits) { /* as operators: the intrinsics want a constant */
  return (vi){x.a << (uint32_t)bits, x.b << (uint32_t)bits, x.c << (uint32_t)bits, x.d << (uint32_t)bits};
}
V_INLINE vi vi_right(vi x, int bits) {
  return (vi){x.a >> (uint32_t)bits, x.b >> (uint32_t)bits, x.c >> (uint32_t)bits, x.d >> (uint32_t)bits};
}
V_INLINE vm vi_below(vi x, vi y) { V_EACH2(vm, vcltq_u32, x, y); }
V_INLINE vi vf_bits(vf x) { V_EACH1(vi, vreinterpretq_u32_f32, x); }
V_INLINE vf vi_as_float(vi x) { V_EACH1(vf, vreinterpretq_f32_u32, x); }

V_INLINE void v_multiply_four(uint32x4_t x, uint32x4_t y, uint32x4_t *high, uint32x4_t *low) {
  uint32x4_t first = vreinterpretq_u32_u64(vmull_u32(vget_low_u32(x), vget_low_u32(y)));
  uint32x4_t last = vreinterpretq_u32_u64(vmull_high_u32(x, y));
  *high = vuzp2q_u32(first, last);
  *low = vuzp1q_u32(first, last);
}

/* The 64-bit products of unsigned numbers, as high and low halves. */
V_INLINE void vi_multiply(vi x, vi y, vi *high, vi *low) {
  v_multiply_four(x.a, y.a, &high->a, &low->a);
  v_multiply_four(x.b, y.b, &high->b, &low->b);
  v_multiply_four(x.c, y.c, &high->c, &low->c);
  v_multiply_four(x.d, y.d, &high->d, &low->d);
}

/* Pairs of floats: the lower ones of two registers, and the upper ones. */
V_INLINE float32x4_t v_lower_pairs(float32x4_t x, float32x4_t y) {
  return vreinterpretq_f32_f64(vtrn1q_f64(vreinterpretq_f64_f32(x), vreinterpretq_f64_f32(y)));
}
V_INLINE float32x4_t v_upper_pairs(float32x4_t x, float32x4_t y) {
  return vreinterpretq_f32_f64(vtrn2q_f64(vreinterpretq_f64_f32(x), vreinterpretq_f64_f32(y)));
}

/* The first two levels of the lane tree of kernels.h: lanes i and i + 8, then i + 4. */
V_INLINE float32x4_t v_tree_to_four(vf v) { return vaddq_f32(vaddq_f32(v.a, v.c), vaddq_f32(v.b, v.d)); }

V_INLINE float vf_tree(vf v) {
  float32x4_t four = v_tree_to_four(v);
  return vpadds_f32(vadd_f32(vget_low_f32(four), vget_high_f32(four)));
}

/* The trees of 8 vectors at once: from the third level on, two registers become one. */
V_INLINE void v_trees(const float lanes[8][16], float sums[8]) {
  float32x4_t pairs[4];
  for (int i = 0; i < 4; i++) {
    float32x4_t x = v_tree_to_four(vf_load(lanes[2 * i])), y = v_tree_to_four(vf_load(lanes[2 * i + 1]));
    pairs[i] = vaddq_f32(v_lower_pairs(x, y), v_upper_pairs(x, y));
  }
  vst1q_f32(sums, vpaddq_f32(pairs[0], pairs[1]));
  vst1q_f32(sums + 4, vpaddq_f32(pairs[2], pairs[3]));
}

V_INLINE void v_transpose_four(float32x4_t *x, float32x4_t *y, float32x4_t *z, float32x4_t *w) {
  float32x4_t xy_even = vtrn1q_f32(*x, *y), xy_odd = vtrn2q_f32(*x, *y);
  float32x4_t zw_even = vtrn1q_f32(*z, *w), zw_odd = vtrn2q_f32(*z, *w);
  *x = v_lower_pairs(xy_even, zw_even);
  *y = v_lower_pairs(xy_odd, zw_odd);
  *z = v_upper_pairs(xy_even, zw_even);
  *w = v_upper_pairs(xy_odd, zw_odd);
}

/* Rows become columns: lane j of v[i] changes place with lane i of v[j]. */
V_INLINE void vf_transpose(vf v[16]) {
  for (int i = 0; i < 16; i += 4) { /* within blocks of 4 x 4 */
    v_transpose_four(&v[i].a, &v[i + 1].a, &v[i + 2].a, &v[i + 3].a);
    v_transpose_four(&v[i].b, &v[i + 1].b, &v[i + 2].b, &v[i + 3].b);
    v_transpose_four(&v[i].c, &v[i + 1].c, &v[i + 2].c, &v[i + 3].c);
    v_transpose_four(&v[i].d, &v[i + 1].d, &v[i + 2].d, &v[i + 3].d);
  }
  for (int i = 0; i < 4; i++) { /* then the blocks themselves */
    vf x = v[i], y = v[i + 4], z = v[i + 8], w = v[i + 12];
    v[i] = (vf){x.a, y.a, z.a, w.a};
    v[i + 4] = (vf){x.b, y.b, z.b, w.b};
    v[i + 8] = (vf){x.c, y.c, z.c, w.c};
    v[i + 12] = (vf){x.d, y.d, z.d, w.d};
  }
}

/* The lanes that m leaves out, one after the other, and their numbers from `first` on; writes at most
 * whole vectors and returns how many of the lanes count. */
V_INLINE unsigned vf_pack(vm m, vf v, uint32_t first, float *values, uint32_t *numbers) {
  float lane[16];
  uint32_t left_out[16];
  unsigned count = 0;
  vf_store(lane, v);
  vi_store(left_out, (vi){m.a, m.b, m.c, m.d});
  for (unsigned i = 0; i < 16; i++) {
    values[count] = lane[i];
    numbers[count] = first + i;
    count += left_out[i] == 0;
  }
  return count;
}

V_INLINE vr vr_set(float x) {
  float32x4_t v = vdupq_n_f32(x);
  return (vr){v, v};
}
V_INLINE vr vr_load(const float *p) { return (vr){vld1q_f32(p), vld1q_f32(p + 4)}; }
V_INLINE void vr_store(float *p, vr v) {
  vst1q_f32(p, v.a);
  vst1q_f32(p + 4, v.b);
}
V_INLINE vr vr_load_part(const float *p, unsigned n) {
  return (vr){v_load_four(p, n), v_load_four(p + 4, v_past(n, 4))};
}
V_INLINE void vr_store_part(float *p, unsigned n, vr v) {
  v_store_four(p, n, v.a);
  v_store_four(p + 4, v_past(n, 4), v.b);
}
V_INLINE vr vr_fma(vr x, vr y, vr z) { return (vr){vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b)}; }
V_INLINE vr vr_pinned(vr v) { return v; } /* no instruction would take it from memory */
V_INLINE vr vr_add(vr x, vr y) { return (vr){vaddq_f32(x.a, y.a), vaddq_f32(x.b, y.b)}; }
V_INLINE vr vr_sub(vr x, vr y) { return (vr){vsubq_f32(x.a, y.a), vsubq_f32(x.b, y.b)}; }
V_INLINE vr vr_mul(vr x, vr y) { return (vr){vmulq_f32(x.a, y.a), vmulq_f32(x.b, y.b)}; }
V_INLINE bool vr_any_negative_zero(vr v) {
  const uint32x4_t sign = vdupq_n_u32(0x80000000u);
  uint32x4_t a = vceqq_u32(vreinterpretq_u32_f32(v.a), sign), b = vceqq_u32(vreinterpretq_u32_f32(v.b), sign);
  return vmaxvq_u32(vorrq_u32(a, b)) != 0;
}

#undef V_EACH1
#undef V_EACH2
#undef V_EACH3

#endif
