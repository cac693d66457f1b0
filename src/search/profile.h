/* profile.h: what the columns of a table hold, found in one pass over the file with bounded memory.
 *
 * Each column gets a kind by what its cells look like, and statistics to show; a person can say another
 * kind. A number column whose cells have a unit or a currency sign throughout is a number. Statistics are
 * exact where they can be (counts, mean, deviation, smallest, largest); quantiles and histogram come from
 * a sample of at most 100,000 rows that the seed chooses, and the number of different values is exact up
 * to 100,000 (in tables of more than 50 columns less) and an estimate above. A file of any length is read
 * in pieces: what is kept does not grow with it.
 *
 * Ownership: init, then release. Threads: read-only once made. */
#ifndef SHOAL_SEARCH_PROFILE_H
#define SHOAL_SEARCH_PROFILE_H

#include <signal.h>

#include "base/hash.h"
#include "data/csv.h"
#include "data/dialect.h"
#include "data/names.h"

enum {
  SHOAL_COLUMNS_MAX = 20000,
  SHOAL_CATEGORIES_MAX = 10000, /* kept of a column, the most frequent; the rest is "unseen" */
  SHOAL_HISTOGRAM_BARS = 20,
  SHOAL_TOP_VALUES = 10,
  SHOAL_UNIT_BYTES = 16,
};

typedef enum shoal_column_kind {
  SHOAL_NUMBER,
  SHOAL_CATEGORY,
  SHOAL_DATE,       /* a day, a time or both: several common ways to write it */
  SHOAL_TEXT,       /* free text: becomes hashed words and parts of words */
  SHOAL_IDENTIFIER, /* different in (nearly) every row: not learned from */
  SHOAL_CONSTANT,   /* one value, or none: likewise */
  SHOAL_COLUMN_KINDS,
} shoal_column_kind;
const char *shoal_column_kind_name(shoal_column_kind kind); /* "number" */
bool shoal_column_kind_parse(const char *word, shoal_column_kind *out);

typedef struct shoal_column {
  char *name; /* "column 3" without a header; made different from its neighbours where it is not */
  shoal_column_kind kind, guessed;
  bool used; /* as a feature; false for the target, identifiers, constants, and where a person says so */
  uint64_t missing, distinct;
  double mean, deviation, min, max;         /* NUMBER, DATE (seconds since 1970) */
  double quartile[3];                       /* of the sample */
  uint64_t histogram[SHOAL_HISTOGRAM_BARS]; /* NUMBER, DATE: from min to max, of the sample */
  shoal_names categories;                   /* CATEGORY: the most frequent first */
  uint64_t *category_counts;                /* one a category */
  shoal_names top;                          /* TEXT, IDENTIFIER, CONSTANT: values to show */
  char unit[SHOAL_UNIT_BYTES];              /* NUMBER: "kg" where cells have it, else "" */
  bool day_first;                           /* DATE: 3/4/2020 is in April */
  char warning[256];                        /* or "": what a person should know of it */
} shoal_column;

typedef struct shoal_profile {
  char *file;
  shoal_dialect dialect;
  char sha256[SHOAL_SHA256_HEX]; /* of the file */
  uint64_t rows;                 /* good ones */
  uint64_t ragged;               /* rows with too few or too many cells, left out */
  uint64_t ragged_line;          /* the first of them */
  uint32_t columns_count;
  shoal_column *columns;
} shoal_profile;

/* What a person says of a column: "age=number", "zip=category", "note=skip". */
typedef struct shoal_column_said {
  char *name; /* or its number from 1 */
  bool skip;
  shoal_column_kind kind;
} shoal_column_said;

typedef struct shoal_profile_options {
  const char *path; /* .csv, .csv.gz */
  shoal_dialect_said dialect;
  const shoal_column_said *said;
  size_t said_count;
  uint64_t seed;
  void (*progress)(void *self, uint64_t bytes, uint64_t of); /* or NULL */
  void *self;
  const volatile sig_atomic_t *stop; /* or NULL */
  const char *folder;                /* for temporary files; NULL: the usual one */
} shoal_profile_options;

/* Refuses, saying what to do: no rows, no columns, all rows ragged, a kind that fits less than half of the
 * cells ("age=number": line 7 has "old"), a name that is not there (with the nearest one). Rows that are
 * ragged in a file where most are not are left out and counted; more than a tenth of them is an error that
 * names the first line. */
shoal_status shoal_profile_read(shoal_profile *out, const shoal_profile_options *options, shoal_error *err);
void shoal_profile_init(shoal_profile *profile);
void shoal_profile_release(shoal_profile *profile);

/* By name, or by number from 1 where no column has that name; the error has the nearest name. */
shoal_status shoal_profile_find(const shoal_profile *profile, const char *name, uint32_t *column,
                                shoal_error *err);

/* All of it as JSON and back: what a model keeps, what the page shows, and what workers get. */
void shoal_profile_write(const shoal_profile *profile, shoal_json *json, const char *key);
shoal_status shoal_profile_from_json(shoal_profile *out, const cJSON *json, shoal_error *err);

/* A cell of a NUMBER or DATE column as that number, NaN where it is missing; false where it is something
 * else. Numbers may have the column's unit. */
bool shoal_column_value(const shoal_column *column, const shoal_dialect *dialect, const char *text,
                        size_t length, double *out);
/* The names of the columns as the row that was just read has them, or by place where it is no header; all
 * are different. */
shoal_status shoal_column_names(const shoal_csv *csv, bool header, shoal_names *out, shoal_error *err);
/* Whether the row has other than so many cells; a delimiter at the end of the line is no cell more. */
bool shoal_row_is_ragged(const shoal_csv *csv, uint32_t columns);
/* Adds a sentence to the warning, as far as there is room. */
void shoal_column_warn(shoal_column *column, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
