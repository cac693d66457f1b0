/* simd_avx512.h: a vector is one 512-bit register. See simd.h. */
#ifndef SHOAL_KERNELS_SIMD_AVX512_H
#define SHOAL_KERNELS_SIMD_AVX512_H

#include <immintrin.h>
#include <stddef.h>

#include "kernels/simd_x86.h"

typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;
typedef __m512 vr;

enum { VR = 16, V_ACC = 24 };

V_INLINE vm vm_first(unsigned n) { return (vm)((1u << n) - 1); } /* lanes below n <= 16 */
V_INLINE vm vm_and(vm a, vm b) { return a & b; }
V_INLINE vm vm_and_not(vm a, vm b) { return (vm)(a & ~b); }
V_INLINE vm vm_or(vm a, vm b) { return a | b; }

V_INLINE vf vf_set(float x) { return _mm512_set1_ps(x); }
V_INLINE vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
V_INLINE void vf_store(float *p, vf v) { _mm512_storeu_ps(p, v); }
V_INLINE vf vf_load_part(const float *p, unsigned n) { return _mm512_maskz_loadu_ps(vm_first(n), p); }
V_INLINE void vf_store_part(float *p, unsigned n, vf v) { _mm512_mask_storeu_ps(p, vm_first(n), v); }

V_INLINE vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
V_INLINE vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
V_INLINE vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
V_INLINE vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
V_INLINE vf vf_sqrt(vf a) { return _mm512_sqrt_ps(a); }
V_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }   /* a b + c */
V_INLINE vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); } /* c - a b */
V_INLINE vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
V_INLINE vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }

V_INLINE vm vf_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
V_INLINE vm vf_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
V_INLINE vf vf_select(vm m, vf yes, vf no) { return _mm512_mask_blend_ps(m, no, yes); }

V_INLINE vi vi_set(uint32_t x) { return _mm512_set1_epi32((int)x); }
V_INLINE vi vi_load(const uint32_t *p) { return _mm512_loadu_si512(p); }
V_INLINE void vi_store(uint32_t *p, vi v) { _mm512_storeu_si512(p, v); }
V_INLINE vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
V_INLINE vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
V_INLINE vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
V_INLINE vi vi_or(vi a, vi b) { return _mm512_or_si512(a, b); }
V_INLINE vi vi_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
V_INLINE vi vi_left(vi a, int bits) { return _mm512_slli_epi32(a, (unsigned)bits); }
V_INLINE vi vi_right(vi a, int bits) { return _mm512_srli_epi32(a, (unsigned)bits); }
V_INLINE vm vi_below(vi a, vi b) { return _mm512_cmplt_epu32_mask(a, b); } /* unsigned */
V_INLINE vi vf_bits(vf a) { return _mm512_castps_si512(a); }
V_INLINE vf vi_as_float(vi a) { return _mm512_castsi512_ps(a); }

/* The 64-bit products of unsigned numbers, as high and low halves. */
V_INLINE void vi_multiply(vi a, vi b, vi *high, vi *low) {
  vi even = _mm512_mul_epu32(a, b);
  vi odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32));
  *high = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
  *low = _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}

/* The lane tree of kernels.h. */
V_INLINE float vf_tree(vf v) {
  return v_tree_of_eight(_mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1)));
}

/* Rows become columns: lane j of v[i] changes place with lane i of v[j]. */
V_INLINE void vf_transpose(vf v[16]) {
  vf t[16];
  for (int i = 0; i < 16; i += 4) { /* blocks of 4 x 4 within each 128-bit part */
    __m512d a = _mm512_castps_pd(_mm512_unpacklo_ps(v[i], v[i + 1]));
    __m512d b = _mm512_castps_pd(_mm512_unpackhi_ps(v[i], v[i + 1]));
    __m512d c = _mm512_castps_pd(_mm512_unpacklo_ps(v[i + 2], v[i + 3]));
    __m512d d = _mm512_castps_pd(_mm512_unpackhi_ps(v[i + 2], v[i + 3]));
    t[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
    t[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
    t[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
    t[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
  }
  for (int i = 0; i < 4; i++) { /* then the 4 x 4 parts themselves */
    vf a = _mm512_shuffle_f32x4(t[i], t[i + 4], 0x88), b = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0x88);
    vf c = _mm512_shuffle_f32x4(t[i], t[i + 4], 0xdd), d = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0xdd);
    v[i] = _mm512_shuffle_f32x4(a, b, 0x88);
    v[i + 4] = _mm512_shuffle_f32x4(c, d, 0x88);
    v[i + 8] = _mm512_shuffle_f32x4(a, b, 0xdd);
    v[i + 12] = _mm512_shuffle_f32x4(c, d, 0xdd);
  }
}

/* The lanes that m leaves out, one after the other, and their numbers from `first` on; writes whole
 * vectors and returns how many of the lanes count. */
V_INLINE unsigned vf_pack(vm m, vf v, uint32_t first, float *values, uint32_t *numbers) {
  const vi lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const vm chosen = (vm)~m;
  vf_store(values, _mm512_maskz_compress_ps(chosen, v));
  vi_store(numbers, _mm512_maskz_compress_epi32(chosen, vi_add(lane, vi_set(first))));
  return (unsigned)__builtin_popcount(chosen);
}

V_INLINE vr vr_set(float x) { return vf_set(x); }
V_INLINE vr vr_load(const float *p) { return vf_load(p); }
V_INLINE void vr_store(float *p, vr v) { vf_store(p, v); }
V_INLINE vr vr_load_part(const float *p, unsigned n) { return vf_load_part(p, n); }
V_INLINE void vr_store_part(float *p, unsigned n, vr v) { vf_store_part(p, n, v); }
V_INLINE vr vr_fma(vr a, vr b, vr c) { return vf_fma(a, b, c); }
V_INLINE vr vr_pinned(vr v) { return v; } /* there are enough registers */
V_INLINE vr vr_add(vr a, vr b) { return vf_add(a, b); }
V_INLINE vr vr_sub(vr a, vr b) { return vf_sub(a, b); }
V_INLINE vr vr_mul(vr a, vr b) { return vf_mul(a, b); }
V_INLINE bool vr_any_negative_zero(vr v) {
  return _mm512_cmpeq_epi32_mask(vf_bits(v), vi_set(0x80000000u)) != 0;
}

#endif
