/* table.h: a CSV file as numbers to learn from: feature columns and one target column.
 *
 * Features are numbers, standardised with the mean and deviation of the training part; a
 * missing one (empty, ?, NA, N/A, NaN, null, none or -) counts as the mean. The target is a class
 * by name, one of two names, or a number in its own units. How the file is written, and
 * whether it has a header, is seen from its rows (data/dialect).
 *
 * One file is split: one row in five, by a hash of its number, is for test. With two files
 * the second one is the test part. Rows are numbered through, training rows first.
 *
 * A table that was fitted before takes scales and classes from there, and finds columns by
 * name, in any order (by place where there is no header). All rows of the file are then
 * for test, unless it is the very file that was fitted: that is split as it was.
 *
 * Ownership: init, open, then scale or release. Threads: read-only after scale. */
#ifndef SHOAL_DATA_TABLE_H
#define SHOAL_DATA_TABLE_H

#include <cjson/cJSON.h>

#include "base/hash.h"
#include "data/names.h"
#include "data/parts.h"
#include "nn/loss.h"

typedef struct shoal_table {
  bool header;
  shoal_names columns;      /* the features */
  double *mean, *deviation; /* of each */
  char *target;             /* its column's name */
  uint32_t target_column;   /* its place in the file, from 0; SHOAL_NO_NAME: it was not found */
  shoal_target_kind target_kind;
  shoal_names classes;           /* CLASSES and TWO: sorted by number when all are numbers, by bytes else */
  char sha256[SHOAL_SHA256_HEX]; /* of the training file */
  bool fitted;                   /* all of the above came from JSON */

  uint64_t training, test; /* rows */
  bool labeled;
  double *raw;     /* rows x columns; missing is NaN; freed by scale */
  float *values;   /* rows x columns; NULL before scale */
  float *targets;  /* NUMBER and TWO */
  int32_t *labels; /* CLASSES and TWO */
} shoal_table;

void shoal_table_init(shoal_table *table);
void shoal_table_release(shoal_table *table);

/* What an earlier shoal_table_write gave; before open. */
shoal_status shoal_table_read_fitted(shoal_table *table, const cJSON *json, shoal_error *err);
void shoal_table_write(const shoal_table *table, shoal_json *json);

/* test_path may be NULL. target is a column's name or its number from 1; NULL is the last
 * column, or the fitted one. unlabeled: the target column may be absent and is not read;
 * all rows are for test. */
shoal_status shoal_table_open(shoal_table *table, const char *path, const char *test_path, const char *target,
                              shoal_target_kind kind, bool unlabeled, shoal_error *err);

/* Fits mean and deviation to the training part, unless they were given, and makes values. */
shoal_status shoal_table_scale(shoal_table *table, const shoal_parts *parts, shoal_error *err);

#endif
