/* simd.h: 64-byte vectors, the same in every instruction set.
 *
 * The kernels are written once, for vectors of 16 floats; the file chosen here says what
 * such a vector is made of. All of them define the same types and functions:
 *
 *   vf   16 floats           vi   16 integers of 32 bits           vm   16 truth values
 *   vr   VR floats in one register or two: for the loops that live from register blocking
 *        and work on each lane by itself, so that any width gives the same bits
 *   V_ACC  how many vr can be sums at a time while the others hold operands
 *
 * Every function is one exactly rounded operation per lane, or moves bits. So two
 * instruction sets cannot differ, except in which NaN they make. max and min answer the
 * second operand when the two are equal or not comparable. Part loads fill with zeros. */
#ifndef SHOAL_KERNELS_SIMD_H
#define SHOAL_KERNELS_SIMD_H

#include <stdint.h>

#define V_INLINE static inline __attribute__((always_inline, unused))

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include "kernels/simd_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__)
#include "kernels/simd_avx2.h"
#elif defined(SHOAL_NEON) /* from the build: on ARM64 the compiler has it for the baseline too */
#include "kernels/simd_neon.h"
#else
#include "kernels/simd_generic.h"
#endif

/* The next 16 floats of an array of which `left` remain: whole, or the first few. */
V_INLINE vf vf_load_some(const float *p, size_t left) {
  return left >= 16 ? vf_load(p) : vf_load_part(p, (unsigned)left);
}

V_INLINE void vf_store_some(float *p, size_t left, vf v) {
  if (left >= 16)
    vf_store(p, v);
  else
    vf_store_part(p, (unsigned)left, v);
}

V_INLINE vf vf_zero(void) { return vf_set(0); }

/* The same with something else than zeros past the end. */
V_INLINE vf vf_load_filled(const float *p, size_t left, vf fill) {
  return left >= 16 ? vf_load(p) : vf_select(vm_first((unsigned)left), vf_load_part(p, (unsigned)left), fill);
}

/* The lanes of v that are among the `left` that remain; zero in the others. */
V_INLINE vf vf_keep(vf v, size_t left) {
  return left >= 16 ? v : vf_select(vm_first((unsigned)left), v, vf_zero());
}

/* The largest of a row's values. */
V_INLINE float row_largest(size_t count, const float *x) {
  vf largest = vf_set(x[0]);
  for (size_t i = 0; i < count; i += 16) largest = vf_max(largest, vf_load_filled(x + i, count - i, largest));
  float lane[16];
  vf_store(lane, largest);
  for (int i = 1; i < 16; i++) lane[0] = lane[0] > lane[i] ? lane[0] : lane[i];
  return lane[0];
}

#endif
