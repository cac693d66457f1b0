/* power.h: whole powers, with the same bits on every machine.
 *
 * The C library's pow may round differently from one machine to the next; products may not. */
#ifndef SHOAL_BASE_POWER_H
#define SHOAL_BASE_POWER_H

#include <stdint.h>

/* base^exponent by squaring. */
static inline double shoal_power(double base, uint64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2) result *= base;
  }
  return result;
}

#endif
