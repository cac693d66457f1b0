/* dropout.isa.c: dropout with the counter-based numbers of base/random.h.
 *
 * Philox needs ten rounds of multiplications for four numbers, so it runs 16 blocks at a
 * time: in LANES layout one block of 16 samples, in ROWS layout 16 blocks of one sample. */
#include "base/random.h"
#include "kernels/isa.h"
#include "kernels/simd.h"

typedef struct blocks {
  vi word[4];
} blocks;

/* Blocks (0, low) of 16 streams, or of one stream at 16 places. Same as shoal_random_block. */
V_INLINE blocks philox(vi key0, vi key1, vi low, vi low_high) {
  vi x0 = low, x1 = low_high, x2 = vi_set(0), x3 = vi_set(0);
  for (int round = 0; round < 10; round++) {
    vi high0, low0, high1, low1;
    vi_multiply(x0, vi_set(0xd2511f53u), &high0, &low0);
    vi_multiply(x2, vi_set(0xcd9e8d57u), &high1, &low1);
    x0 = vi_xor(vi_xor(high1, x1), key0);
    x2 = vi_xor(vi_xor(high0, x3), key1);
    x1 = low1;
    x3 = low0;
    key0 = vi_add(key0, vi_set(0x9e3779b9u));
    key1 = vi_add(key1, vi_set(0xbb67ae85u));
  }
  return (blocks){{x0, x1, x2, x3}};
}

V_INLINE vf drop(vi numbers, uint32_t threshold, float scale, vf x) {
  return vf_select(vi_below(numbers, vi_set(threshold)), vf_zero(), vf_mul(x, vf_set(scale)));
}

static void dropout_lanes(const shoal_norm *s, const uint32_t *keys, uint32_t threshold, float scale,
                          const float *x, float *y) {
  const size_t features = (size_t)s->channels * s->positions, lanes = s->lanes;
  for (size_t group = 0; group < lanes; group += 16) {
    uint32_t word0[16] = {0}, word1[16] = {0};
    for (size_t i = 0; i < 16 && group + i < s->samples; i++) {
      word0[i] = keys[2 * (group + i)];
      word1[i] = keys[2 * (group + i) + 1];
    }
    const vi key0 = vi_load(word0), key1 = vi_load(word1);
    for (size_t f = 0; f < features; f += 4) {
      const uint64_t block = f / 4;
      blocks b = philox(key0, key1, vi_set((uint32_t)block), vi_set((uint32_t)(block >> 32)));
      for (size_t i = 0; i < 4 && f + i < features; i++) {
        const size_t at = (f + i) * lanes + group;
        vf_store(y + at, drop(b.word[i], threshold, scale, vf_load(x + at)));
      }
    }
  }
}

/* The numbers first .. first + 63 of one stream; first is a multiple of 4. */
static void stream_numbers(const uint32_t key[2], uint64_t first, uint32_t numbers[64]) {
  uint32_t low[16], low_high[16], word[4][16];
  for (uint32_t i = 0; i < 16; i++) {
    const uint64_t block = first / 4 + i;
    low[i] = (uint32_t)block;
    low_high[i] = (uint32_t)(block >> 32);
  }
  blocks b = philox(vi_set(key[0]), vi_set(key[1]), vi_load(low), vi_load(low_high));
  for (int i = 0; i < 4; i++) vi_store(word[i], b.word[i]);
  for (int i = 0; i < 64; i++) numbers[i] = word[i % 4][i / 4];
}

/* One row: the elements from e of a sample's stream. */
static void dropout_row(const uint32_t key[2], uint64_t e, uint32_t count, uint32_t threshold, float scale,
                        const float *x, float *y) {
  uint32_t numbers[64 + 16] = {0}; /* so that a vector may start anywhere in the 64 */
  for (uint32_t done = 0; done < count;) {
    const uint64_t first = (e + done) / 4 * 4;
    stream_numbers(key, first, numbers);
    const uint32_t skip = (uint32_t)(e + done - first);
    const uint32_t here = count - done < 64 - skip ? count - done : 64 - skip;
    for (uint32_t i = 0; i < here; i += 16) {
      vf v = drop(vi_load(numbers + skip + i), threshold, scale, vf_load_some(x + done + i, here - i));
      vf_store_some(y + done + i, here - i, v);
    }
    done += here;
  }
}

void ISA(dropout)(const shoal_norm *s, const uint32_t *keys, uint32_t threshold, float scale, const float *x,
                  float *y) {
  if (s->lanes > 0) {
    dropout_lanes(s, keys, threshold, scale, x, y);
    return;
  }
  for (uint32_t step = 0; step < s->steps; step++)
    for (uint32_t sample = 0; sample < s->samples; sample++) {
      const size_t at = ((size_t)step * s->samples + sample) * s->channels;
      dropout_row(keys + 2 * (size_t)sample, (uint64_t)step * s->channels, s->channels, threshold, scale,
                  x + at, y + at);
    }
}

void ISA(dropout_keys)(uint32_t samples, uint64_t seed, uint64_t epoch, const uint64_t *ids, uint32_t *keys) {
  for (uint32_t i = 0; i < samples; i++) {
    const shoal_key key = shoal_key_make(seed, SHOAL_FOR_DROPOUT, epoch, ids[i]);
    keys[2 * i] = key.word[0];
    keys[2 * i + 1] = key.word[1];
  }
}
