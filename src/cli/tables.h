/* tables.h: eval, predict and inspect with a model that takes raw rows of a table (search/predictor.h).
 *
 * What a person should know of the rows (columns found by their place, cells that could not be read, rows that are
 * not scored) is said on standard error.
 *
 * Ownership: nothing is kept. Threads: one caller. */
#ifndef SHOAL_CLI_TABLES_H
#define SHOAL_CLI_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "search/predictor.h"

typedef struct shoal_tables_options {
  const char *model, *rows; /* MODEL.safetensors, FILE.csv */
  const char *output;       /* of predict: a file; NULL: standard output */
  uint64_t count;           /* of predict: rows at most */
  uint32_t threads;
  bool json;
} shoal_tables_options;

/* The name of a score; of f1, where there are two classes, with the one that is meant: "f1 of 'fraud'". */
void shoal_tables_score_name(shoal_score_kind kind, const shoal_target *target, shoal_text *out);
/* All that there are: "accuracy 0.98  f1 of 'fraud' 0.7  ". */
void shoal_tables_scores_text(const shoal_scores *scores, const shoal_target *target, shoal_text *out);
/* "estimate  accuracy 0.8031 +- 0.0120 expected on new rows (0.8312 on the validation rows ...)". */
void shoal_tables_estimate_text(const shoal_estimate *estimate, shoal_score_kind metric, double valid,
                                const shoal_target *target, shoal_text *out);
/* The positive class, of two, as "positive". */
void shoal_tables_positive_json(const shoal_target *target, shoal_json *json);

/* Prints all scores of the rows that have an answer, of classes also class by class, and how many have none. */
shoal_status shoal_tables_eval(const shoal_tables_options *options, shoal_error *err);
/* CSV, a line for every row: the prediction, then of classes the probability of each; or lines of JSON.
 * Ignores answers, should the file have them. */
shoal_status shoal_tables_predict(const shoal_tables_options *options, shoal_error *err);
/* What the model is: target, columns, networks, scores, and how to use it. */
shoal_status shoal_tables_inspect(const shoal_tables_options *options, shoal_error *err);

#endif
