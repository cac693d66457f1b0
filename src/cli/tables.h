/* tables.h: eval and predict with a model that takes raw rows of a table (search/predictor.h).
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

/* Prints all scores of the rows' answers. */
shoal_status shoal_tables_eval(const shoal_tables_options *options, shoal_error *err);
/* CSV, a line for every row: the prediction, then of classes the probability of each; or lines of JSON.
 * Ignores answers, should the file have them. */
shoal_status shoal_tables_predict(const shoal_tables_options *options, shoal_error *err);

#endif
