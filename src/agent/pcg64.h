/* pcg64.h: the random numbers that Gymnasium's environments start from, bit for bit NumPy's.
 *
 * A generator seeded with an integer as numpy.random.default_rng does it: SeedSequence, then PCG64 (XSL-RR).
 * Everything else in Shoal draws from base/random.h; environments draw from this, so that the same seed
 * begins the same episode here and there.
 *
 * Ownership: a plain value; copies go on alike. Threads: none. */
#ifndef SHOAL_AGENT_PCG64_H
#define SHOAL_AGENT_PCG64_H

#include <stdint.h>

/* Two 128-bit numbers, each as its high and its low half. */
typedef struct shoal_pcg64 {
  uint64_t state[2], increment[2];
} shoal_pcg64;

void shoal_pcg64_seed(shoal_pcg64 *random, uint64_t seed);
uint64_t shoal_pcg64_u64(shoal_pcg64 *random);
double shoal_pcg64_double(shoal_pcg64 *random);                           /* [0, 1), 53 bits */
double shoal_pcg64_uniform(shoal_pcg64 *random, double low, double high); /* low + (high - low) * double */
/* 0 .. count - 1 (count > 0), for environments of our own; NumPy has another way. */
uint32_t shoal_pcg64_below(shoal_pcg64 *random, uint32_t count);

#endif
