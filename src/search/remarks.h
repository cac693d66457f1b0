/* remarks.h: what a person should know of the rows of a table and of its parts, in sentences.
 *
 * Columns have warnings of their own (profile.h, warnings.h); these are about rows: those that are left out, a
 * file that has no names for its columns, a test file that holds rows of the table, a class that a part lacks.
 *
 * Ownership: everything is borrowed for the call. Threads: none; `say` is called from the caller's. */
#ifndef SHOAL_SEARCH_REMARKS_H
#define SHOAL_SEARCH_REMARKS_H

#include "search/encoder.h"
#include "search/score.h"

typedef struct shoal_listener {
  void *self;
  void (*say)(void *self, const char *text); /* NULL: nobody listens */
} shoal_listener;

/* Of another file than the profile's: columns found by their place, cells that are not what their column is, rows
 * with too few or too many cells, classes that are written in another way. */
void shoal_remark_file(const shoal_rows *rows, const shoal_profile *profile, const char *file,
                       const shoal_listener *to);
/* Rows that have no answer, or none of the classes, and what becomes of them: "left out", "not scored". */
void shoal_remark_answers(const shoal_answers *answers, const char *file, const char *column,
                          const char *fate, const shoal_listener *to);
/* That test rows stand in the table as well, or that both are one file. */
shoal_status shoal_remark_shared(const shoal_target *target, const shoal_rows *table, const char *table_name,
                                 const shoal_rows *test, const char *test_name, const shoal_listener *to,
                                 shoal_error *err);
/* Classes of which no row judges the trials, or none is there for the last score; test: of a file of its own, or
 * NULL. */
shoal_status shoal_remark_rare(const shoal_target *target, const shoal_rows *rows,
                               const shoal_table_split *split, const shoal_rows *test,
                               const shoal_listener *to, shoal_error *err);
/* Where accuracy is the measure: that most of the rows are of one class, so that to answer it always is nearly
 * right. */
shoal_status shoal_remark_imbalance(const shoal_target *target, const shoal_rows *rows,
                                    shoal_score_kind metric, const shoal_listener *to, shoal_error *err);

#endif
