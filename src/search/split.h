/* split.h: which rows are to learn from, which to judge by.
 *
 * Rows of one file are cut into a training part, a validation part (or k folds, each the validation part
 * of one network) and a test part that nothing sees before the end; with a test file all rows of the first
 * one are for training and validation. Who goes where is a pure function of the seed and the row's number:
 * shuffled, with equal shares of each class (classes) or spread over the target's range (numbers), or by
 * time: the last rows in the order of a column.
 *
 * Ownership: make, then release. Threads: read-only after make. */
#ifndef SHOAL_SEARCH_SPLIT_H
#define SHOAL_SEARCH_SPLIT_H

#include "search/rows.h"

typedef enum shoal_problem { SHOAL_REGRESSION, SHOAL_BINARY, SHOAL_MULTICLASS } shoal_problem;
const char *shoal_problem_name(shoal_problem problem); /* "regression" */
bool shoal_problem_parse(const char *word, shoal_problem *out);

enum { SHOAL_FOLDS_MAX = 20 };

typedef struct shoal_target shoal_target; /* encoder.h */

typedef struct shoal_split_options {
  uint64_t seed;
  double test_share;    /* 0 with a test file of its own */
  double valid_share;   /* of the rest; for folds 0 */
  uint32_t folds;       /* 0 or 1: hold-out */
  uint32_t time_column; /* a NUMBER or DATE; UINT32_MAX: shuffled */
} shoal_split_options;

typedef struct shoal_row_list {
  uint64_t *at; /* ascending */
  uint64_t count;
} shoal_row_list;

typedef struct shoal_table_split {
  uint32_t folds;                                                /* at least 1 */
  shoal_row_list train[SHOAL_FOLDS_MAX], valid[SHOAL_FOLDS_MAX]; /* of each fold */
  shoal_row_list test;
  uint64_t duplicates; /* rows of valid (fold 0) or test whose features all stand in a training row, too */
} shoal_table_split;

/* Rows without a target are in no part. By time, fold i learns from the first i + 1 of folds + 1 stretches
 * and is judged by the next one. A class of one row is for training. Refuses parts without rows, and a
 * class of which the training part has none. */
shoal_status shoal_table_split_make(shoal_table_split *out, const shoal_rows *rows,
                                    const shoal_target *target, const shoal_split_options *options,
                                    shoal_error *err);
void shoal_table_split_release(shoal_table_split *split);

#endif
