/* parts.h: which samples belong to training, validation and test.
 *
 * A data set numbers its samples: first those meant for training, then those for test.
 * Validation takes a share of the former, chosen by a fixed permutation, so the same
 * file and share always give the same parts, whatever the seed of the training. */
#ifndef SHOAL_DATA_PARTS_H
#define SHOAL_DATA_PARTS_H

#include "data/dataset.h"
#include "data/order.h"

typedef struct shoal_parts {
  uint64_t count[SHOAL_SPLITS];
  shoal_order order; /* of training and validation together; only when there is validation */
} shoal_parts;

/* 0 <= valid_share < 1. At least one sample stays in training. */
void shoal_parts_init(shoal_parts *parts, uint64_t training, uint64_t test, double valid_share);
/* The number of sample i of a part, i < count[split]. */
uint64_t shoal_parts_number(const shoal_parts *parts, shoal_split split, uint64_t i);

#endif
