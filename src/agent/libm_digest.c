/* libm_digest.c: see libm_digest.h. Two versions of a library differ in about one value of 1,500: with so many
 * tries of each function none is missed. */
#include "agent/libm_digest.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/hash.h"

enum { TRIES = 16384, BATCH = 64 };
static const double ANGLE_MAX = 100, FACTOR_MAX = 30; /* what environments ask for is between these */
static const volatile double TWO = 2;                 /* the compiler must not know that it is a square */

/* Try i of a range, up and down; no round numbers. */
static double place(uint32_t i, double most) { return most * (2 * ((double)i + 0.37) / TRIES - 1); }

void shoal_libm_digest(char out[SHOAL_LIBM_DIGEST_MAX]) {
  double values[4 * BATCH];
  uint64_t digest = 0;
  for (uint32_t first = 0; first < TRIES; first += BATCH) {
    for (uint32_t i = 0; i < BATCH; i++) {
      double angle = place(first + i, ANGLE_MAX), factor = place(first + i, FACTOR_MAX);
      double *tried = values + 4 * i;
      tried[0] = sin(angle);
      tried[1] = cos(angle);
      tried[2] = pow(factor, TWO);
      tried[3] = (double)powf((float)factor, (float)TWO);
    }
    const uint64_t chain[2] = {digest, shoal_digest(values, sizeof values)};
    digest = shoal_digest(chain, sizeof chain);
  }
  snprintf(out, SHOAL_LIBM_DIGEST_MAX, "%016" PRIx64, digest);
}
