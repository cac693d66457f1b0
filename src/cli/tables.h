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

#include "base/status.h"

typedef struct shoal_tables_options {
  const char *model, *rows; /* MODEL.safetensors, FILE.csv */
  const char *output;       /* of predict: a file; NULL: standard output */
  uint64_t count;           /* of predict: rows at most */
  uint32_t threads;
  bool json;
} shoal_tables_options;

/* Prints all scores of the rows that have an answer, and how many have none. */
shoal_status shoal_tables_eval(const shoal_tables_options *options, shoal_error *err);
/* CSV, a line for every row: the prediction, then of classes the probability of each; or lines of JSON.
 * Ignores answers, should the file have them. */
shoal_status shoal_tables_predict(const shoal_tables_options *options, shoal_error *err);
/* What the model is: target, columns, networks, scores, and how to use it. */
shoal_status shoal_tables_inspect(const shoal_tables_options *options, shoal_error *err);

#endif
