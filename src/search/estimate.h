/* estimate.h: what the model of a search is worth on rows that had no say in choosing it.
 *
 * The score of the best of many, on the rows that they were compared by, flatters: it was the best there by luck,
 * too, and so was its best epoch. So each part of those rows (a tenth, or of some scores a fifth) is asked about the
 * trial and the epoch that all other parts found best (shoal_trial_part), and what it says had no say. What members
 * together gain over one trial is found in the same way: chosen by the other parts, compared on this one; what a
 * member gains by being the mean of its folds' networks, from how far candidates are from each other. How far off
 * it may be is told by how the members' scores differ between groups of rows, and by how much luck was taken off.
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
