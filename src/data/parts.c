/* parts.c: see parts.h. */
#include "data/parts.h"

#include <math.h>

void shoal_parts_init(shoal_parts *parts, uint64_t training, uint64_t test, double valid_share) {
  uint64_t valid = 0;
  if (valid_share > 0 && training > 1) {
    valid = (uint64_t)floor((double)training * valid_share + 0.5);
    valid = valid < 1 ? 1 : valid >= training ? training - 1 : valid;
  }
  *parts = (shoal_parts){.count = {training - valid, valid, test}};
  if (valid > 0) shoal_order_init_key(&parts->order, training, shoal_key_make(0, SHOAL_FOR_SPLIT, 0, 0));
}

uint64_t shoal_parts_number(const shoal_parts *parts, shoal_split split, uint64_t i) {
  uint64_t train = parts->count[SHOAL_TRAIN], valid = parts->count[SHOAL_VALID];
  if (split == SHOAL_TEST) return train + valid + i;
  if (split == SHOAL_VALID) i += train;
  return valid > 0 ? shoal_order_at(&parts->order, i) : i;
}
