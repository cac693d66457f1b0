/* estimate.h: what the model of a search is worth on rows that had no say in choosing it.
 *
 * The score of the best of many trials, on the rows that compared them, is too optimistic: the trial was the best
 * there partly by luck, and so was its best epoch. So the rows are divided into ten parts (five for some scores). Each
 * part scores the trial and the epoch that the other parts found best (shoal_trial_part); this score had no influence
 * on the choice. The gain of several members over one trial is estimated in the same way: the other parts choose them,
 * and this part compares. No estimate is better than the score that chose the members. With folds each member is the
 * mean of its folds' networks, but every held-out row judges one of them: what the mean gains cannot be seen there, and
 * is left out, so that the estimate errs to the cautious side. The standard error follows from how the members' scores
 * differ between groups of rows, and from how much optimism was removed.
 *
 * Everything follows from the trials' results and the candidates' predictions, to the bit. Threads: any. */
#ifndef SHOAL_SEARCH_ESTIMATE_H
#define SHOAL_SEARCH_ESTIMATE_H

#include "search/board.h"
#include "search/ensemble.h"

/* *out is not known (NaN) where results are of an older Shoal. candidates: with their predictions on the held-out
 * rows, fold after fold; share: of each in the model; rounds: as in choosing them. */
shoal_status shoal_estimate_make(shoal_estimate *out, const shoal_board *board,
                                 const shoal_table_split *split, const shoal_target *target,
                                 shoal_score_kind metric, const shoal_candidates *candidates,
                                 const double *share, uint32_t rounds, shoal_error *err);

#endif
