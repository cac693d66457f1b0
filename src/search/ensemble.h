/* ensemble.h: which of the best trials, together, predict best.
 *
 * Greedy selection with replacement over predictions on the validation rows: the trial that helps most is
 * added, again and again; how often one was taken is its share.
 *
 * Threads: any. */
#ifndef SHOAL_SEARCH_ENSEMBLE_H
#define SHOAL_SEARCH_ENSEMBLE_H

#include "search/score.h"

typedef struct shoal_candidates {
  uint32_t count; /* trials, the best first */
  uint64_t rows;
  uint32_t classes;              /* 0: numbers */
  uint32_t positive;             /* of two classes: see score.h */
  const float *const *predicted; /* of each: rows x classes, or rows (standardised) */
  const int32_t *label;          /* classes */
  const double *right;           /* numbers, standardised */
} shoal_candidates;

/* share[i] adds up to 1; rounds: how often one is taken, at most; *score of all together. Begins with the
 * best one, so it is never worse than that on these rows. */
shoal_status shoal_ensemble_choose(const shoal_candidates *candidates, shoal_score_kind metric,
                                   uint32_t rounds, double *share, double *score, shoal_error *err);
/* The score of candidates together, each with its share. */
shoal_status shoal_ensemble_score(const shoal_candidates *candidates, shoal_score_kind metric,
                                  const double *share, double *score, shoal_error *err);

#endif
