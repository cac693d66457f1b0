/* vmath.h: exponentials and their kin, 16 at a time, with the same bits everywhere.
 *
 * The C library's functions differ from machine to machine, so these are our own: an
 * argument reduction that is exact or nearly so, then a polynomial in fused multiply-adds,
 * then one exact division where there is one. The coefficients are minimax fits (Remez) to
 * the double-precision functions; tests/kernels/test_activation.c states the relative errors:
 * 4e-7 in the tail of the normal distribution, 2e-7 or less elsewhere. Large arguments
 * saturate instead of overflowing; a NaN stays one. */
#ifndef SHOAL_KERNELS_VMATH_H
#define SHOAL_KERNELS_VMATH_H

#include "kernels/simd.h"

V_INLINE vf vf_abs(vf x) { return vi_as_float(vi_and(vf_bits(x), vi_set(0x7fffffffu))); }
V_INLINE vf vf_neg(vf x) { return vi_as_float(vi_xor(vf_bits(x), vi_set(0x80000000u))); }
V_INLINE vf vf_with_sign(vf x, vf sign) { /* x >= 0 gets the sign of the other */
  return vi_as_float(vi_or(vf_bits(x), vi_and(vf_bits(sign), vi_set(0x80000000u))));
}

/* The reduction of exp: x = n ln 2 + r with |r| <= ln 2 / 2, and e^r - 1 as a polynomial.
 * Adding 3 * 2^22 rounds to an integer and leaves n in the low bits of the float; moved to
 * the exponent's place, those bits multiply a number by 2^n. */
typedef struct v_reduced {
  vi exponent; /* n << 23 */
  vf tail;     /* e^r - 1 */
} v_reduced;

V_INLINE v_reduced v_reduce(vf x) {
  const vf shifter = vf_set(12582912.0f);
  vf shifted = vf_fma(x, vf_set(1.44269504f), shifter);
  vf n = vf_sub(shifted, shifter);
  vf r = vf_fnma(n, vf_set(0.693147182f), x);
  r = vf_fnma(n, vf_set(-1.90465421e-9f), r);
  vf p = vf_fma(r, vf_set(0.00139467244f), vf_set(0.0083667431f));
  p = vf_fma(r, p, vf_set(0.0416662768f));
  p = vf_fma(r, p, vf_set(0.16666542f));
  p = vf_fma(r, p, vf_set(0.5f));
  return (v_reduced){vi_left(vf_bits(shifted), 23), vf_fma(vf_mul(r, r), p, r)};
}

/* e^x; 0 below -87, at most 2.4e38. */
V_INLINE vf vf_exp(vf x) {
  x = vf_min(vf_set(88.37f), x);
  v_reduced e = v_reduce(x);
  vf y = vi_as_float(vi_add(vf_bits(vf_add(e.tail, vf_set(1))), e.exponent));
  return vf_select(vf_lt(x, vf_set(-87)), vf_zero(), y);
}

/* e^x - 1, also accurate near 0. */
V_INLINE vf vf_expm1(vf x) {
  x = vf_max(vf_set(-87), vf_min(vf_set(88.37f), x));
  v_reduced e = v_reduce(x);
  vf power = vi_as_float(vi_add(vi_set(0x3f800000u), e.exponent));
  return vf_fma(power, e.tail, vf_sub(power, vf_set(1)));
}

V_INLINE vf vf_sigmoid(vf x) {
  vf e = vf_exp(vf_neg(vf_abs(x)));
  vf one = vf_set(1);
  return vf_div(vf_select(vf_lt(x, vf_zero()), e, one), vf_add(one, e));
}

V_INLINE vf vf_tanh(vf x) {
  vf a = vf_min(vf_set(9.02f), vf_abs(x)); /* beyond, tanh rounds to 1 */
  vf e = vf_expm1(vf_add(a, a));
  return vf_with_sign(vf_div(e, vf_add(e, vf_set(2))), x);
}

/* 2 artanh(s) for |s| <= 1/3: the common part of the logarithms. */
V_INLINE vf v_twice_artanh(vf s) {
  vf z = vf_mul(s, s);
  vf q = vf_fma(z, vf_set(0.280293375f), vf_set(0.279985368f));
  q = vf_fma(z, q, vf_set(0.400217056f));
  q = vf_fma(z, q, vf_set(0.666664124f));
  return vf_fma(vf_mul(s, z), q, vf_add(s, s));
}

/* log x for normal x > 0; infinity and NaN stay what they are. With x = 2^e m and m in
 * [sqrt(1/2), sqrt(2)), log m = 2 artanh((m - 1) / (m + 1)). */
V_INLINE vf vf_log(vf x) {
  const vf one = vf_set(1);
  vi bits = vf_bits(x);
  vi biased = vi_right(vi_add(bits, vi_set(0x3f800000u - 0x3f3504f3u)), 23); /* e + 127 */
  vf m = vi_as_float(vi_add(vi_sub(bits, vi_left(biased, 23)), vi_set(0x3f800000u)));
  vf e = vf_sub(vi_as_float(vi_or(biased, vi_set(0x4b000000u))), vf_set(8388608.0f + 127));
  vf y = vf_fma(e, vf_set(0.693147182f), v_twice_artanh(vf_div(vf_sub(m, one), vf_add(m, one))));
  return vf_select(vf_lt(x, vf_set(__builtin_inff())), y, x);
}

/* log(1 + e^x). */
V_INLINE vf vf_softplus(vf x) {
  vf u = vf_exp(vf_neg(vf_abs(x)));
  vf log1p = v_twice_artanh(vf_div(u, vf_add(u, vf_set(2))));
  return vf_add(vf_max(vf_zero(), x), log1p);
}

/* The normal distribution: the density at x and the share below it. The tail beyond |x| is
 * the density times a polynomial in 1 / (1 + 0.26 |x|), so that it keeps its relative
 * accuracy where 1 + erf would cancel. */
typedef struct v_normal {
  vf density, below;
} v_normal;

V_INLINE v_normal vf_normal(vf x) {
  const vf one = vf_set(1);
  vf a = vf_min(vf_set(14), vf_abs(x));
  vf square = vf_mul(a, a);
  vf lost = vf_fma(a, a, vf_neg(square)); /* what rounding took from the square */
  vf e = vf_exp(vf_mul(square, vf_set(-0.5f)));
  e = vf_fma(e, vf_mul(lost, vf_set(-0.5f)), e);
  vf t = vf_div(one, vf_fma(a, vf_set(0.26f), one));
  static const float c[10] = {-7.08797734e-06f, 0.103905208f, 0.101726234f, 0.109434575f,  0.0313352309f,
                              0.199892879f,     -0.20055452f, 0.290798277f, -0.170443654f, 0.0339128487f};
  vf g = vf_set(c[9]);
  for (int i = 8; i >= 0; i--) g = vf_fma(g, t, vf_set(c[i]));
  vf tail = vf_mul(e, g);
  vf below = vf_select(vf_lt(x, vf_zero()), tail, vf_sub(one, tail));
  return (v_normal){vf_mul(e, vf_set(0.398942280f)), below};
}

#endif
