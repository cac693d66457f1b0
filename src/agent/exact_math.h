/* exact_math.h: exponentials and logarithms in double precision, with the same bits on every machine.
 *
 * The C library's may round differently from one machine to the next, and a policy's choices hang on the last
 * bit. Both are right to a few units in the last place. */
#ifndef SHOAL_AGENT_EXACT_MATH_H
#define SHOAL_AGENT_EXACT_MATH_H

#include <stdint.h>
#include <string.h>

/* e^x; 0 below -700, e^700 above 700; a NaN stays one. */
static inline double shoal_exact_exp(double x) {
  if (x < -700) return 0;
  if (x > 700) x = 700;
  if (x != x) return x;
  /* x = n ln 2 + r, |r| <= ln 2 / 2; fourteen terms of the series reach 2^-57. */
  double n = (double)(int)(x * 1.4426950408889634 + (x < 0 ? -0.5 : 0.5));
  double r = (x - n * 0x1.62e42fee00000p-1) - n * 0x1.a39ef35793c76p-33;
  static const double factors[14] = {1,
                                     1,
                                     1.0 / 2,
                                     1.0 / 6,
                                     1.0 / 24,
                                     1.0 / 120,
                                     1.0 / 720,
                                     1.0 / 5040,
                                     1.0 / 40320,
                                     1.0 / 362880,
                                     1.0 / 3628800,
                                     1.0 / 39916800,
                                     1.0 / 479001600,
                                     1.0 / 6227020800};
  double sum = factors[13];
  for (int k = 12; k >= 0; k--) sum = sum * r + factors[k];
  uint64_t bits = (uint64_t)(1023 + (int)n) << 52;
  double power;
  memcpy(&power, &bits, sizeof power);
  return sum * power;
}

/* The natural logarithm of a normal x > 0. */
static inline double shoal_exact_log(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  int e = (int)(bits >> 52) - 1023;
  bits = (bits & 0x000fffffffffffffu) | 0x3ff0000000000000u;
  double m;
  memcpy(&m, &bits, sizeof m);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    e++;
  }
  /* log m = 2 artanh(s), s = (m - 1) / (m + 1). */
  static const double factors[11] = {1,        1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9, 1.0 / 11,
                                     1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
  double s = (m - 1) / (m + 1), s2 = s * s, sum = factors[10];
  for (int k = 9; k >= 0; k--) sum = sum * s2 + factors[k];
  return e * 0.69314718055994530942 + 2 * s * sum;
}

#endif
