/* simd_x86.h: the lane tree, for all x86 processors with 256-bit registers. See simd.h. */
#ifndef SHOAL_KERNELS_SIMD_X86_H
#define SHOAL_KERNELS_SIMD_X86_H

#include <immintrin.h>

/* The lane tree of kernels.h from its second level on: lanes i and i + 8 are added already. */
V_INLINE float v_tree_of_eight(__m256 eight) {
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* The trees of 8 vectors at once: at each level two vectors become one, so that the eight
 * sums cost a third of what eight single trees do. */
V_INLINE void v_trees(const float lanes[8][16], float sums[8]) {
  __m256 v[8];
  for (int i = 0; i < 8; i++) v[i] = _mm256_add_ps(_mm256_loadu_ps(lanes[i]), _mm256_loadu_ps(lanes[i] + 8));
  for (int i = 0; i < 4; i++)
    v[i] = _mm256_add_ps(_mm256_permute2f128_ps(v[i], v[i + 4], 0x20),
                         _mm256_permute2f128_ps(v[i], v[i + 4], 0x31));
  for (int i = 0; i < 4; i += 2) {
    __m256d a = _mm256_castps_pd(v[i]), b = _mm256_castps_pd(v[i + 1]);
    v[i] =
        _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(a, b)), _mm256_castpd_ps(_mm256_unpackhi_pd(a, b)));
  }
  _mm256_storeu_ps(sums,
                   _mm256_add_ps(_mm256_shuffle_ps(v[0], v[2], 0x88), _mm256_shuffle_ps(v[0], v[2], 0xdd)));
}

#endif
