/* order.h: the order of samples in an epoch, as a pure function.
 *
 * A keyed permutation of 0..n-1: a Feistel network on an even number of bits (at least
 * six), walked until it lands below n. Any position of any epoch at once, no table. */
#ifndef SHOAL_DATA_ORDER_H
#define SHOAL_DATA_ORDER_H

#include <stdint.h>

#include "base/random.h"

enum { SHOAL_ORDER_ROUNDS = 8 };

typedef struct shoal_order {
  uint64_t n; /* at most 2^62 */
  uint32_t half_bits;
  uint32_t keys[SHOAL_ORDER_ROUNDS];
} shoal_order;

/* The order of training samples. */
void shoal_order_init(shoal_order *order, uint64_t n, uint64_t seed, uint64_t epoch);
/* The order for another purpose. */
void shoal_order_init_key(shoal_order *order, uint64_t n, shoal_key key);
/* position < n. */
uint64_t shoal_order_at(const shoal_order *order, uint64_t position);
/* The same for `count` positions from `first` on, first + count <= n, in a fraction of the time. */
void shoal_order_many(const shoal_order *order, uint64_t first, uint32_t count, uint64_t *out);

#endif
