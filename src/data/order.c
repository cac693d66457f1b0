/* order.c: a Feistel network as the shuffle.
 *
 * One round maps (left, right) to (right, left ^ f(right)), which can be undone whatever f
 * is, so the whole is a permutation of 0 .. 4^half_bits - 1. A number at or above n is sent
 * through again until it falls below: that walks along the permutation's cycle, so what is
 * left is a permutation of 0..n-1. The domain is less than four times n, so a walk takes
 * four steps on average at most (for n below 16 it takes a few more, which is nothing). */
#include "data/order.h"

#include "base/assert.h"

/* Small networks are poor shuffles: with two bits there are only a few. */
enum { HALF_BITS_MIN = 3, HALF_BITS_MAX = 31 };
enum { GROUP = 64 }; /* walks side by side */

void shoal_order_init_key(shoal_order *order, uint64_t n, shoal_key key) {
  *order = (shoal_order){.n = n, .half_bits = HALF_BITS_MIN};
  while (order->half_bits < HALF_BITS_MAX && ((uint64_t)1 << (2 * order->half_bits)) < n) order->half_bits++;
  SHOAL_ASSERT(n <= (uint64_t)1 << (2 * HALF_BITS_MAX));
  for (uint32_t i = 0; i < SHOAL_ORDER_ROUNDS; i++) order->keys[i] = shoal_random_u32(key, i);
}

void shoal_order_init(shoal_order *order, uint64_t n, uint64_t seed, uint64_t epoch) {
  shoal_order_init_key(order, n, shoal_key_make(seed, SHOAL_FOR_ORDER, epoch, 0));
}

/* Every bit of the result depends on every bit of x. */
static uint32_t scramble(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

static uint64_t step(const shoal_order *order, uint64_t at) {
  uint32_t mask = ((uint32_t)1 << order->half_bits) - 1;
  uint32_t left = (uint32_t)(at >> order->half_bits), right = (uint32_t)at & mask;
  for (int i = 0; i < SHOAL_ORDER_ROUNDS; i++) {
    uint32_t next = left ^ (scramble(right ^ order->keys[i]) & mask);
    left = right;
    right = next;
  }
  return (uint64_t)left << order->half_bits | right;
}

uint64_t shoal_order_at(const shoal_order *order, uint64_t position) {
  SHOAL_ASSERT(position < order->n);
  uint64_t at = position;
  do at = step(order, at);
  while (at >= order->n);
  return at;
}

/* Every walk takes a step, then those that are not over take another, and so on: neighbours' steps
 * do not wait for each other, and there is no branch to guess wrong. */
static void walk_group(const shoal_order *order, uint64_t first, uint32_t count, uint64_t *out) {
  uint32_t walking[GROUP], left = count;
  for (uint32_t i = 0; i < count; i++) {
    walking[i] = i;
    out[i] = first + i;
  }
  while (left > 0) {
    uint32_t kept = 0;
    for (uint32_t k = 0; k < left; k++) {
      uint32_t i = walking[k];
      out[i] = step(order, out[i]);
      walking[kept] = i;
      kept += out[i] >= order->n;
    }
    left = kept;
  }
}

void shoal_order_many(const shoal_order *order, uint64_t first, uint32_t count, uint64_t *out) {
  SHOAL_ASSERT(first <= order->n && count <= order->n - first);
  for (uint32_t done = 0; done < count;) {
    uint32_t group = count - done < GROUP ? count - done : GROUP;
    walk_group(order, first + done, group, out + done);
    done += group;
  }
}
