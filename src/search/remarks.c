/* remarks.c: see remarks.h. */
#include "search/remarks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/human.h"
#include "search/distinct.h"

enum {
  COLUMNS_MAX = 20, /* that are named; the others are counted */
  CLASSES_MAX = 5,
};

__attribute__((format(printf, 2, 3))) static void say(const shoal_listener *to, const char *format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  shoal_text_plain(text, sizeof text, text, strlen(text)); /* names and classes are from strangers */
  if (to->say) to->say(to->self, text);
}

static const char *rows_have(uint64_t count) { return count == 1 ? "row has" : "rows have"; }

/* ---- a file ------------------------------------------------------------------------- */

static void remark_cells(const shoal_rows *rows, const shoal_profile *profile, const shoal_listener *to) {
  uint32_t named = 0, others = 0;
  for (uint32_t c = 0; c < profile->columns_count; c++) {
    uint64_t bad = shoal_rows_bad_cells(rows, c);
    const shoal_column *column = &profile->columns[c];
    if (bad == 0 || !column->used) continue;
    if (named++ >= COLUMNS_MAX) {
      others++;
      continue;
    }
    say(to, "%s cell%s of '%.60s' %s no %s%s: taken as missing", shoal_human_count(bad).text,
        bad == 1 ? "" : "s", column->name, bad == 1 ? "is" : "are", shoal_column_kind_name(column->kind),
        bad == 1 ? "" : "s");
  }
  if (others > 0) say(to, "so it is with cells of %u more column%s", others, others == 1 ? "" : "s");
}

void shoal_remark_file(const shoal_rows *rows, const shoal_profile *profile, const char *file,
                       const shoal_listener *to) {
  uint64_t line, ragged = shoal_rows_ragged(rows, &line);
  if (shoal_rows_is_own(rows)) return;
  if (shoal_rows_by_place(rows))
    say(to, "%s has %s: its columns are taken in the order of the training data", file,
        profile->dialect.header ? "no row with the columns' names" : "names that the training data had not");
  if (shoal_rows_warning(rows)[0] != 0) say(to, "%s: %s", file, shoal_rows_warning(rows));
  if (ragged > 0)
    say(to, "%s: %s %s too many or too few cells, the first in line %llu: left out", file,
        shoal_human_count(ragged).text, rows_have(ragged), (unsigned long long)line);
  remark_cells(rows, profile, to);
}

/* ---- answers ------------------------------------------------------------------------ */

void shoal_remark_answers(const shoal_answers *answers, const char *file, const char *column,
                          const char *fate, const shoal_listener *to) {
  if (answers->missing > 0)
    say(to, "%s: %s %s no value in '%.60s': %s", file, shoal_human_count(answers->missing).text,
        rows_have(answers->missing), column, fate);
  if (answers->other > 0)
    say(to, "%s: %s %s a value in '%.60s' that is none of the classes, the first in line %llu: %s", file,
        shoal_human_count(answers->other).text, rows_have(answers->other), column,
        (unsigned long long)answers->other_line, fate);
}

/* ---- rows of both files ------------------------------------------------------------- */

static int by_number(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* Of a row's features and its answer. */
static uint64_t digest_of(const shoal_target *target, const shoal_rows *rows, uint64_t row) {
  uint64_t words[2] = {shoal_rows_digest(rows, row), 0};
  if (target->problem == SHOAL_REGRESSION) {
    double value = shoal_rows_number(rows, row, target->column);
    memcpy(&words[1], &value, sizeof value);
  } else {
    words[1] = (uint64_t)(int64_t)shoal_target_label(target, rows, row);
  }
  return shoal_hash_text((const char *)words, sizeof words);
}

static shoal_status count_shared(const shoal_target *target, const shoal_rows *table, const shoal_rows *test,
                                 uint64_t *out, shoal_error *err) {
  uint64_t count = shoal_rows_count(table), *digests = malloc((count + 1) * sizeof *digests);
  if (digests == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory to look for equal rows");
  for (uint64_t r = 0; r < count; r++) digests[r] = digest_of(target, table, r);
  qsort(digests, count, sizeof *digests, by_number);
  *out = 0;
  for (uint64_t r = 0; r < shoal_rows_count(test); r++) {
    uint64_t digest = digest_of(target, test, r);
    *out += bsearch(&digest, digests, count, sizeof digest, by_number) != NULL;
  }
  free(digests);
  return SHOAL_OK;
}

shoal_status shoal_remark_shared(const shoal_target *target, const shoal_rows *table, const char *table_name,
                                 const shoal_rows *test, const char *test_name, const shoal_listener *to,
                                 shoal_error *err) {
  if (to->say == NULL) return SHOAL_OK;
  if (shoal_rows_is_own(test)) {
    say(to,
        "%s holds the very rows that are learned from: the last score says nothing of new rows; give others, "
        "or leave out the test file, and a part of the rows is kept for that",
        test_name);
    return SHOAL_OK;
  }
  uint64_t shared = 0, count = shoal_rows_count(test);
  shoal_status status = count_shared(target, table, test, &shared, err);
  if (status != SHOAL_OK || shared == 0) return status;
  say(to, "%s of the %s rows of %s stand%s in %s as well, answers and all: the last score %s",
      shoal_human_count(shared).text, shoal_human_count(count).text, test_name, shared == 1 ? "s" : "",
      table_name, 2 * shared > count ? "says little of new rows" : "may be too optimistic");
  return SHOAL_OK;
}

/* ---- classes that a part lacks ------------------------------------------------------ */

static void count_rows(const shoal_target *target, const shoal_rows *rows, const shoal_row_list *list,
                       uint64_t *counts) {
  for (uint64_t i = 0, count = list ? list->count : shoal_rows_count(rows); i < count; i++) {
    int32_t label = shoal_target_label(target, rows, list ? list->at[i] : i);
    if (label >= 0) counts[label]++;
  }
}

static void remark_lacking(const shoal_target *target, const uint64_t *all, const uint64_t *part,
                           const char *where, const shoal_listener *to) {
  uint32_t lacking = 0;
  for (uint32_t c = 0; c < target->classes.count; c++) {
    if (part[c] > 0 || lacking++ >= CLASSES_MAX) continue;
    say(to, "class '%.60s' has %s row%s, and none %s", shoal_names_at(&target->classes, c),
        shoal_human_count(all[c]).text, all[c] == 1 ? "" : "s", where);
  }
  if (lacking > CLASSES_MAX)
    say(to, "so it is with %u more class%s", lacking - CLASSES_MAX, lacking == CLASSES_MAX + 1 ? "" : "es");
}

shoal_status shoal_remark_rare(const shoal_target *target, const shoal_rows *rows,
                               const shoal_table_split *split, const shoal_rows *test,
                               const shoal_listener *to, shoal_error *err) {
  uint32_t classes = target->classes.count;
  if (target->problem == SHOAL_REGRESSION || to->say == NULL) return SHOAL_OK;
  uint64_t *all = calloc(3 * (size_t)classes, sizeof *all);
  if (all == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  uint64_t *valid = all + classes, *last = valid + classes;
  count_rows(target, rows, NULL, all);
  for (uint32_t f = 0; f < split->folds; f++) count_rows(target, rows, &split->valid[f], valid);
  remark_lacking(target, all, valid, "is among those that judge the trials", to);
  if (test || split->test.count > 0) {
    count_rows(target, test ? test : rows, test ? NULL : &split->test, last);
    remark_lacking(target, all, last, "is there for the last score", to);
  }
  free(all);
  return SHOAL_OK;
}

/* ---- classes of unequal size -------------------------------------------------------- */

shoal_status shoal_remark_imbalance(const shoal_target *target, const shoal_rows *rows,
                                    shoal_score_kind metric, const shoal_listener *to, shoal_error *err) {
  static const double most = 0.8;
  uint32_t classes = target->classes.count, usual = 0;
  if (target->problem == SHOAL_REGRESSION || metric != SHOAL_SCORE_ACCURACY || to->say == NULL)
    return SHOAL_OK;
  uint64_t *counts = calloc(classes, sizeof *counts), all = 0;
  if (counts == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  count_rows(target, rows, NULL, counts);
  for (uint32_t c = 0; c < classes; c++) {
    all += counts[c];
    if (counts[c] > counts[usual]) usual = c;
  }
  double share = all > 0 ? (double)counts[usual] / (double)all : 0;
  const char *name = shoal_names_at(&target->classes, usual);
  if (share >= most)
    say(to,
        "%.3g%% of the rows are of class '%.60s', so always answering '%.60s' gives an accuracy of %.4f; "
        "--metric balanced-accuracy, f1 or auc says more about the other class%s",
        100 * share, name, name, share, classes == 2 ? "" : "es");
  free(counts);
  return SHOAL_OK;
}
