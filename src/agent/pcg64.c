/* pcg64.c: see pcg64.h. SeedSequence hashes the seed's 32-bit words into a pool of four, and draws the
 * generator's two 128-bit numbers from that. */
#include "agent/pcg64.h"

enum { POOL = 4 };
static const uint32_t INIT_A = 0x43b0d7e5, MULTIPLY_A = 0x931e8875;
static const uint32_t INIT_B = 0x8b51f9dd, MULTIPLY_B = 0x58f38ded;
static const uint32_t MIX_LEFT = 0xca01f9dd, MIX_RIGHT = 0x4973f715;

static uint32_t hash_word(uint32_t value, uint32_t *constant, uint32_t multiplier) {
  value ^= *constant;
  *constant *= multiplier;
  value *= *constant;
  return value ^ value >> 16;
}

static uint32_t mix(uint32_t x, uint32_t y) {
  uint32_t result = MIX_LEFT * x - MIX_RIGHT * y;
  return result ^ result >> 16;
}

/* Eight words, four 64-bit numbers, the low half of each first. */
static void seed_sequence(uint64_t seed, uint32_t out[8]) {
  uint32_t pool[POOL], constant = INIT_A;
  for (int i = 0; i < POOL; i++) {
    uint32_t word = i == 0 ? (uint32_t)seed : i == 1 ? (uint32_t)(seed >> 32) : 0;
    pool[i] = hash_word(word, &constant, MULTIPLY_A);
  }
  for (int from = 0; from < POOL; from++)
    for (int to = 0; to < POOL; to++)
      if (from != to) pool[to] = mix(pool[to], hash_word(pool[from], &constant, MULTIPLY_A));
  constant = INIT_B;
  for (int i = 0; i < 8; i++) out[i] = hash_word(pool[i % POOL], &constant, MULTIPLY_B);
}

static void split(shoal_u128 value, uint64_t halves[2]) {
  halves[0] = (uint64_t)(value >> 64);
  halves[1] = (uint64_t)value;
}

void shoal_pcg64_seed(shoal_pcg64 *random, uint64_t seed) {
  uint32_t words[8];
  uint64_t v[4];
  seed_sequence(seed, words);
  for (int i = 0; i < 4; i++) v[i] = (uint64_t)words[2 * i + 1] << 32 | words[2 * i];
  shoal_u128 start = (shoal_u128)v[0] << 64 | v[1], sequence = (shoal_u128)v[2] << 64 | v[3];
  shoal_u128 increment = sequence << 1 | 1; /* the state after a step from zero */
  split(increment, random->increment);
  split(increment + start, random->state);
  shoal_pcg64_u64(random);
}

uint32_t shoal_pcg64_below(shoal_pcg64 *random, uint32_t count) {
  return (uint32_t)((shoal_pcg64_u64(random) >> 32) * count >> 32);
}
