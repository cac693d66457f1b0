/* random.h: random numbers as a pure function of a key and a counter (Philox 4x32-10).
 *
 * There is no state to carry or to share: number i of stream (key) is the same on
 * every machine, in any order of asking. Keys are made from what the number is for:
 * a seed, a purpose, an epoch, a sample. */
#ifndef SHOAL_BASE_RANDOM_H
#define SHOAL_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* What a stream of numbers is for; part of the key, so streams never meet. The numbers are part of
 * every result: new ones come at the end. */
typedef enum shoal_purpose {
  SHOAL_FOR_INIT = 1,
  SHOAL_FOR_ORDER,
  SHOAL_FOR_DROPOUT,
  SHOAL_FOR_SPLIT,
  SHOAL_FOR_TOY,
  SHOAL_FOR_SAMPLING,
  SHOAL_FOR_SIMULATION,
  SHOAL_FOR_BUCKETS,
  SHOAL_FOR_AUDITS,
  SHOAL_FOR_SEARCH,
  SHOAL_FOR_ACTING,
  SHOAL_FOR_EPISODES,
  SHOAL_FOR_LEARNING,
  SHOAL_FOR_AUGMENT,
} shoal_purpose;

typedef struct shoal_key {
  uint32_t word[2];
} shoal_key;

/* A key from a seed, a purpose and two more numbers (layer and parameter, say). */
shoal_key shoal_key_make(uint64_t seed, shoal_purpose purpose, uint64_t a, uint64_t b);

/* The four 32-bit numbers of block (high, low) of the stream. */
void shoal_random_block(shoal_key key, uint64_t high, uint64_t low, uint32_t out[4]);

uint32_t shoal_random_u32(shoal_key key, uint64_t i);
uint64_t shoal_random_u64(shoal_key key, uint64_t i);
float shoal_random_uniform(shoal_key key, uint64_t i); /* [0, 1), 24 bits */
float shoal_random_normal(shoal_key key, uint64_t i);  /* mean 0, deviation 1 */
/* Numbers 0 .. count - 1 of shoal_random_normal, in less time. */
void shoal_random_normals(shoal_key key, size_t count, float *out);
uint64_t shoal_random_below(shoal_key key, uint64_t i, uint64_t n); /* 0 .. n-1, n > 0 */

/* The inverse of the normal distribution function, 0 < p < 1; the same bits on every machine. */
double shoal_normal_quantile(double p);

#endif
