/* sums.h: what samples add to the sums of a round or an evaluation. */
#ifndef SHOAL_NN_SUMS_H
#define SHOAL_NN_SUMS_H

#include <stdint.h>

typedef struct shoal_sums {
  double loss, weight; /* of weighted sample losses, and of their weights */
  double square;       /* of squared errors (mean squared, absolute, Huber) */
  uint64_t counted;    /* answers with a weight above 0: one a sample, or one a step of a sequence */
  uint64_t correct;    /* the right ones among them */
} shoal_sums;

static inline void shoal_sums_add(shoal_sums *total, const shoal_sums *part) {
  total->loss += part->loss;
  total->weight += part->weight;
  total->square += part->square;
  total->counted += part->counted;
  total->correct += part->correct;
}

#endif
