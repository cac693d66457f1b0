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
/* 0 .. count - 1 (count > 0), for environments of our own; NumPy has another way. */
uint32_t shoal_pcg64_below(shoal_pcg64 *random, uint32_t count);

__extension__ typedef unsigned __int128 shoal_u128;

/* Here and not in pcg64.c: episodes begin by the million. */
static inline uint64_t shoal_pcg64_u64(shoal_pcg64 *random) {
  const shoal_u128 multiplier = (shoal_u128)0x2360ed051fc65da4 << 64 | 0x4385df649fccf645;
  shoal_u128 increment = (shoal_u128)random->increment[0] << 64 | random->increment[1];
  shoal_u128 state = (shoal_u128)random->state[0] << 64 | random->state[1];
  state = state * multiplier + increment;
  random->state[0] = (uint64_t)(state >> 64);
  random->state[1] = (uint64_t)state;
  uint64_t folded = (uint64_t)(state >> 64) ^ (uint64_t)state;
  unsigned turn = (unsigned)(state >> 122);
  return folded >> turn | folded << (-turn & 63);
}

/* [0, 1), 53 bits */
static inline double shoal_pcg64_double(shoal_pcg64 *random) {
  return (double)(shoal_pcg64_u64(random) >> 11) * 0x1p-53;
}

/* low + (high - low) * double; a power of two may be multiplied in anywhere. */
static inline double shoal_pcg64_uniform(shoal_pcg64 *random, double low, double high) {
  return low + (high - low) * 0x1p-53 * (double)(shoal_pcg64_u64(random) >> 11);
}

#endif
