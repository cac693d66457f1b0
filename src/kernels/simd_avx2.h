/* simd_avx2.h: a vector is two 256-bit registers, lanes 0-7 and 8-15. See simd.h. */
#ifndef SHOAL_KERNELS_SIMD_AVX2_H
#define SHOAL_KERNELS_SIMD_AVX2_H

#include <immintrin.h>
#include <stddef.h>

#include "kernels/simd_x86.h"

typedef struct vf {
  __m256 a, b;
} vf;
typedef struct vi {
  __m256i a, b;
} vi;
typedef struct vm {
  __m256 a, b;
} vm;
typedef __m256 vr;

enum { VR = 8, V_ACC = 12 };

/* A window on this, starting 16 - n words in, is a mask of n lanes. */
static const int32_t v_mask_words[32] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

V_INLINE vi v_mask(unsigned n) {
  const int32_t *words = v_mask_words + 16 - n;
  return (vi){_mm256_loadu_si256((const __m256i *)words), _mm256_loadu_si256((const __m256i *)(words + 8))};
}

V_INLINE vm vm_first(unsigned n) { /* lanes below n <= 16 */
  vi m = v_mask(n);
  return (vm){_mm256_castsi256_ps(m.a), _mm256_castsi256_ps(m.b)};
}
V_INLINE vm vm_and(vm x, vm y) { return (vm){_mm256_and_ps(x.a, y.a), _mm256_and_ps(x.b, y.b)}; }
V_INLINE vm vm_and_not(vm x, vm y) { return (vm){_mm256_andnot_ps(y.a, x.a), _mm256_andnot_ps(y.b, x.b)}; }
V_INLINE vm vm_or(vm x, vm y) { return (vm){_mm256_or_ps(x.a, y.a), _mm256_or_ps(x.b, y.b)}; }

V_INLINE vf vf_set(float x) { return (vf){_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
V_INLINE vf vf_load(const float *p) { return (vf){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
V_INLINE void vf_store(float *p, vf v) {
  _mm256_storeu_ps(p, v.a);
  _mm256_storeu_ps(p + 8, v.b);
}
V_INLINE vf vf_load_part(const float *p, unsigned n) {
  vi m = v_mask(n);
  return (vf){_mm256_maskload_ps(p, m.a), n > 8 ? _mm256_maskload_ps(p + 8, m.b) : _mm256_setzero_ps()};
}
V_INLINE void vf_store_part(float *p, unsigned n, vf v) {
  vi m = v_mask(n);
  _mm256_maskstore_ps(p, m.a, v.a);
  if (n > 8) _mm256_maskstore_ps(p + 8, m.b, v.b);
}

V_INLINE vf vf_add(vf x, vf y) { return (vf){_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
V_INLINE vf vf_sub(vf x, vf y) { return (vf){_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
V_INLINE vf vf_mul(vf x, vf y) { return (vf){_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
V_INLINE vf vf_div(vf x, vf y) { return (vf){_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
V_INLINE vf vf_sqrt(vf x) { return (vf){_mm256_sqrt_ps(x.a), _mm256_sqrt_ps(x.b)}; }
V_INLINE vf vf_fma(vf x, vf y, vf z) { /* x y + z */
  return (vf){_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
V_INLINE vf vf_fnma(vf x, vf y, vf z) { /* z - x y */
  return (vf){_mm256_fnmadd_ps(x.a, y.a, z.a), _mm256_fnmadd_ps(x.b, y.b, z.b)};
}
V_INLINE vf vf_max(vf x, vf y) { return (vf){_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
V_INLINE vf vf_min(vf x, vf y) { return (vf){_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }

V_INLINE vm vf_lt(vf x, vf y) {
  return (vm){_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ)};
}
V_INLINE vm vf_eq(vf x, vf y) {
  return (vm){_mm256_cmp_ps(x.a, y.a, _CMP_EQ_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_EQ_OQ)};
}
V_INLINE vf vf_select(vm m, vf yes, vf no) {
  return (vf){_mm256_blendv_ps(no.a, yes.a, m.a), _mm256_blendv_ps(no.b, yes.b, m.b)};
}

V_INLINE vi vi_set(uint32_t x) { return (vi){_mm256_set1_epi32((int)x), _mm256_set1_epi32((int)x)}; }
V_INLINE vi vi_load(const uint32_t *p) {
  return (vi){_mm256_loadu_si256((const __m256i *)p), _mm256_loadu_si256((const __m256i *)(p + 8))};
}
V_INLINE void vi_store(uint32_t *p, vi v) {
  _mm256_storeu_si256((__m256i *)p, v.a);
  _mm256_storeu_si256((__m256i *)(p + 8), v.b);
}
V_INLINE vi vi_add(vi x, vi y) { return (vi){_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
V_INLINE vi vi_sub(vi x, vi y) { return (vi){_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)}; }
V_INLINE vi vi_and(vi x, vi y) { return (vi){_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)}; }
V_INLINE vi vi_or(vi x, vi y) { return (vi){_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)}; }
V_INLINE vi vi_xor(vi x, vi y) { return (vi){_mm256_xor_si256(x.a, y.a), _mm256_xor_si256(x.b, y.b)}; }
V_INLINE vi vi_left(vi x, int bits) {
  return (vi){_mm256_slli_epi32(x.a, bits), _mm256_slli_epi32(x.b, bits)};
}
V_INLINE vi vi_right(vi x, int bits) {
  return (vi){_mm256_srli_epi32(x.a, bits), _mm256_srli_epi32(x.b, bits)};
}
V_INLINE vf vi_as_float(vi x) { return (vf){_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)}; }
V_INLINE vi vf_bits(vf x) { return (vi){_mm256_castps_si256(x.a), _mm256_castps_si256(x.b)}; }
V_INLINE vm vi_below(vi x, vi y) { /* unsigned: the top bits turned make it signed */
  vi top = vi_set(0x80000000u);
  x = vi_xor(x, top);
  y = vi_xor(y, top);
  return (vm){_mm256_castsi256_ps(_mm256_cmpgt_epi32(y.a, x.a)),
              _mm256_castsi256_ps(_mm256_cmpgt_epi32(y.b, x.b))};
}

V_INLINE void v_multiply_half(__m256i x, __m256i y, __m256i *high, __m256i *low) {
  __m256i even = _mm256_mul_epu32(x, y);
  __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), _mm256_srli_epi64(y, 32));
  *high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
  *low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}

/* The 64-bit products of unsigned numbers, as high and low halves. */
V_INLINE void vi_multiply(vi x, vi y, vi *high, vi *low) {
  v_multiply_half(x.a, y.a, &high->a, &low->a);
  v_multiply_half(x.b, y.b, &high->b, &low->b);
}

/* The lane tree of kernels.h. */
V_INLINE float vf_tree(vf v) { return v_tree_of_eight(_mm256_add_ps(v.a, v.b)); }

V_INLINE void v_transpose_eight(__m256 v[8]) {
  __m256 t[8];
  for (int i = 0; i < 8; i += 4) { /* blocks of 4 x 4 within each 128-bit half */
    __m256d a = _mm256_castps_pd(_mm256_unpacklo_ps(v[i], v[i + 1]));
    __m256d b = _mm256_castps_pd(_mm256_unpackhi_ps(v[i], v[i + 1]));
    __m256d c = _mm256_castps_pd(_mm256_unpacklo_ps(v[i + 2], v[i + 3]));
    __m256d d = _mm256_castps_pd(_mm256_unpackhi_ps(v[i + 2], v[i + 3]));
    t[i] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, c));
    t[i + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, c));
    t[i + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(b, d));
    t[i + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(b, d));
  }
  for (int i = 0; i < 4; i++) { /* then the halves themselves */
    v[i] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x20);
    v[i + 4] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x31);
  }
}

/* Rows become columns: lane j of v[i] changes place with lane i of v[j]. */
V_INLINE void vf_transpose(vf v[16]) {
  __m256 q[4][8]; /* the quarters, upper left, upper right, lower left, lower right */
  for (int i = 0; i < 8; i++) {
    q[0][i] = v[i].a;
    q[1][i] = v[i].b;
    q[2][i] = v[i + 8].a;
    q[3][i] = v[i + 8].b;
  }
  for (int i = 0; i < 4; i++) v_transpose_eight(q[i]);
  for (int i = 0; i < 8; i++) {
    v[i] = (vf){q[0][i], q[2][i]};
    v[i + 8] = (vf){q[1][i], q[3][i]};
  }
}

/* The lanes that m leaves out, one after the other, and their numbers from `first` on; writes at most
 * whole vectors and returns how many of the lanes count. */
V_INLINE unsigned vf_pack(vm m, vf v, uint32_t first, float *values, uint32_t *numbers) {
  float lane[16];
  unsigned left_out = (unsigned)_mm256_movemask_ps(m.a) | (unsigned)_mm256_movemask_ps(m.b) << 8;
  unsigned count = 0;
  vf_store(lane, v);
  for (unsigned chosen = left_out ^ 0xffff; chosen != 0; chosen &= chosen - 1) {
    unsigned i = (unsigned)__builtin_ctz(chosen);
    values[count] = lane[i];
    numbers[count++] = first + i;
  }
  return count;
}

V_INLINE vr vr_set(float x) { return _mm256_set1_ps(x); }
V_INLINE vr vr_load(const float *p) { return _mm256_loadu_ps(p); }
V_INLINE void vr_store(float *p, vr v) { _mm256_storeu_ps(p, v); }
V_INLINE vr vr_load_part(const float *p, unsigned n) { return _mm256_maskload_ps(p, v_mask(n).a); }
V_INLINE void vr_store_part(float *p, unsigned n, vr v) { _mm256_maskstore_ps(p, v_mask(n).a, v); }
V_INLINE vr vr_fma(vr x, vr y, vr z) { return _mm256_fmadd_ps(x, y, z); }
/* Keeps a value in a register: short of them, the compiler would rather load it again from
 * memory at each use, and loads are what limits such a loop. */
V_INLINE vr vr_pinned(vr v) {
  __asm__("" : "+x"(v));
  return v;
}
V_INLINE vr vr_add(vr x, vr y) { return _mm256_add_ps(x, y); }
V_INLINE vr vr_sub(vr x, vr y) { return _mm256_sub_ps(x, y); }
V_INLINE vr vr_mul(vr x, vr y) { return _mm256_mul_ps(x, y); }
V_INLINE bool vr_any_negative_zero(vr v) {
  __m256i same = _mm256_cmpeq_epi32(_mm256_castps_si256(v), _mm256_set1_epi32(INT32_MIN));
  return _mm256_movemask_epi8(same) != 0;
}

#endif
