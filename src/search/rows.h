/* rows.h: a table's rows in a form that can be read at random: fixed records in one mapped file.
 *
 * The second pass over a CSV file, which knows the columns from a profile: of this file, or of the one
 * that a model was trained on (then columns are found by name in any order, or by place without a header).
 * A record has the cells of all columns but the unused ones (of those only numbers and dates); the file is
 * a temporary one in `folder`, unlinked at once, so memory does not grow with the rows and nothing is left
 * behind.
 *
 * Cells: NUMBER is a double, NaN where missing. DATE is a double, seconds since 1970, NaN where missing.
 * CATEGORY is the number of the category in the profile, SHOAL_MISSING, or SHOAL_UNSEEN. TEXT is at most
 * SHOAL_TEXT_HASHES numbers: hashes of its words and of the letters' trigrams, for the encoder to fold.
 * The target is a column like others; with unlabeled it may be absent.
 *
 * Ownership: open, then close; the profile is borrowed. Threads: read-only after open. */
#ifndef SHOAL_SEARCH_ROWS_H
#define SHOAL_SEARCH_ROWS_H

#include "search/profile.h"

#define SHOAL_MISSING UINT32_MAX
#define SHOAL_UNSEEN (UINT32_MAX - 1)
enum { SHOAL_TEXT_HASHES = 64 };

typedef struct shoal_rows shoal_rows;

typedef struct shoal_rows_options {
  const char *path;
  const shoal_profile *profile; /* another file than its own has a dialect of its own */
  shoal_dialect_said dialect;
  uint32_t target;    /* column of the profile; UINT32_MAX: none */
  bool unlabeled;     /* the target need not be there */
  bool other_classes; /* a class that the training data have not is SHOAL_UNSEEN, not an error */
  const char *folder; /* NULL: where temporary files go */
  void (*progress)(void *self, uint64_t bytes, uint64_t of); /* or NULL */
  void *self;
  const volatile sig_atomic_t *stop;
} shoal_rows_options;

/* In another file than the profile's, a class that differs from one of the training data only by case,
 * spaces or a dot at its end is that one, with a warning; other new classes are an error, unless
 * `unlabeled` or `other_classes`. Cells that are not what their column is (a word among numbers) are missing
 * and counted; in the target they are an error that names line and column, unless only a person's word has made it
 * a number: then other cells were known to be there. Ragged rows as in profile.h; where
 * `unlabeled`, they are an error, since every row wants an answer. A column that the profile uses and the file
 * lacks is an error. */
shoal_status shoal_rows_open(shoal_rows **out, const shoal_rows_options *options, shoal_error *err);
/* The rule of which columns rows must have, by name: all that the profile uses, and the target unless
 * `unlabeled`; others are passed over. `file` is what the error calls the rows. */
shoal_status shoal_rows_check_names(const shoal_profile *profile, uint32_t target, bool unlabeled,
                                    const char *file, const shoal_names *names, shoal_error *err);
/* Rows without a file, for a form or a request: cells by column of the profile, NULL where missing.
 * Numbers have a decimal point, or are written as the profile's file has them. */
shoal_status shoal_rows_of_cells(shoal_rows **out, const shoal_profile *profile, uint32_t target,
                                 const char *const *cells, uint64_t rows, shoal_error *err);
void shoal_rows_close(shoal_rows *rows);

uint64_t shoal_rows_count(const shoal_rows *rows);
uint64_t shoal_rows_line(const shoal_rows *rows, uint64_t row); /* where it stands in the file */
uint64_t shoal_rows_bad_cells(const shoal_rows *rows, uint32_t column);
bool shoal_rows_has_target(const shoal_rows *rows);
/* Whether it is the very file that the profile was made of. */
bool shoal_rows_is_own(const shoal_rows *rows);
/* Whether columns were found by their place, since of the two files only one has names. */
bool shoal_rows_by_place(const shoal_rows *rows);
/* Rows with too few or too many cells, which were left out; *line is the first one's. */
uint64_t shoal_rows_ragged(const shoal_rows *rows, uint64_t *line);
/* What a person should know of the file, or "". */
const char *shoal_rows_warning(const shoal_rows *rows);
double shoal_rows_number(const shoal_rows *rows, uint64_t row, uint32_t column);
uint32_t shoal_rows_category(const shoal_rows *rows, uint64_t row, uint32_t column);
/* The hashes of a text cell; *count 0 where it is missing. */
const uint32_t *shoal_rows_text(const shoal_rows *rows, uint64_t row, uint32_t column, uint32_t *count);
/* A hash of all features of a row, for duplicates. */
uint64_t shoal_rows_digest(const shoal_rows *rows, uint64_t row);

#endif
