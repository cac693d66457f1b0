/* sums.h: what samples add to the sums of a round or an evaluation. */
#ifndef SHOAL_NN_SUMS_H
#define SHOAL_NN_SUMS_H

#include <stdint.h>

typedef struct shoal_sums {
  double loss, weight, square;
  uint64_t counted, correct; /* rows with a weight above 0, and the right ones among them */
} shoal_sums;

static inline void shoal_sums_add(shoal_sums *total, const shoal_sums *part) {
  total->loss += part->loss;
  total->weight += part->weight;
  total->square += part->square;
  total->counted += part->counted;
  total->correct += part->correct;
}

#endif
