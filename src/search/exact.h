/* exact.h: exp and log with the same bits on every machine.
 *
 * The C library's may round differently from one machine to the next, and a search must repeat exactly.
 * These use only sums, products and quotients, and are right to some units of the last place.
 *
 * Threads: any. */
#ifndef SHOAL_SEARCH_EXACT_H
#define SHOAL_SEARCH_EXACT_H

#include <math.h>

/* Of a finite x > 0: x = m 2^e with m near 1, and log m = 2 artanh((m - 1) / (m + 1)). */
static inline double shoal_exact_log(double x) {
  int e;
  double m = frexp(x, &e); /* exact */
  if (m < 0.70710678118654752) {
    m *= 2;
    e--;
  }
  double t = (m - 1) / (m + 1), square = t * t, sum = 0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return e * 0.69314718055994531 + 2 * t * sum;
}

/* Of x from -700 to 700: by the whole powers of 2 in it, and the series of the rest. */
static inline double shoal_exact_exp(double x) {
  double whole = floor(x / 0.69314718055994531 + 0.5);
  double rest = x - whole * 0.69314718055994531, sum = 1;
  for (int k = 16; k >= 1; k--) sum = 1 + rest / k * sum;
  return ldexp(sum, (int)whole);
}

#endif
