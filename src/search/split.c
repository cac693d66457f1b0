/* split.c: see split.h.
 *
 * Rows are put into strata: one a class, or stretches of a few rows that follow each other in the order of
 * the target. Within each they stand in the order of random numbers, one a row, and the first ones go to
 * the test part, the next ones to validation. How many: what rounding took from one stratum is given to
 * the next, so that the shares of the whole are right even where strata are small. */
#include "search/split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "search/encoder.h"

/* Rows of a stratum of numbers. */
enum { STRETCH = 50 };

/* What a row is for; for folds, the number of the one that it is judged in stands in its place. */
enum { PART_TRAIN = 250, PART_TEST, PART_NONE };

static const char *const problem_names[] = {"regression", "binary", "multi-class"};

const char *shoal_problem_name(shoal_problem problem) { return problem_names[problem]; }

bool shoal_problem_parse(const char *word, shoal_problem *out) {
  for (int i = 0; i <= SHOAL_MULTICLASS; i++) {
    if (strcmp(word, problem_names[i]) != 0) continue;
    *out = (shoal_problem)i;
    return true;
  }
  return false;
}

typedef struct entry {
  double by; /* class, target or time */
  uint64_t chance;
  uint64_t row;
} entry;

typedef struct cutter {
  const shoal_split_options *options;
  const shoal_target *target;
  const shoal_rows *rows;
  uint32_t folds;
  entry *entries;
  uint64_t count;
  uint8_t *part; /* of every row */
  shoal_error *err;
} cutter;

static int by_order(const void *a, const void *b) {
  const entry *x = a, *y = b;
  if (x->by != y->by) return x->by < y->by ? -1 : 1;
  return (x->row > y->row) - (x->row < y->row);
}

static int by_chance(const void *a, const void *b) {
  const entry *x = a, *y = b;
  if (x->chance != y->chance) return x->chance < y->chance ? -1 : 1;
  return (x->row > y->row) - (x->row < y->row);
}

/* The rows that have a target, in the order of time, or of class or target. */
static void list_entries(cutter *c) {
  shoal_key key = shoal_key_make(c->options->seed, SHOAL_FOR_SPLIT, 1, 0);
  uint32_t time = c->options->time_column;
  uint64_t rows = shoal_rows_count(c->rows);
  for (uint64_t r = 0; r < rows; r++) {
    double value = c->target->problem == SHOAL_REGRESSION ? shoal_rows_number(c->rows, r, c->target->column)
                                                          : shoal_target_label(c->target, c->rows, r);
    c->part[r] = PART_NONE;
    if (isnan(value) || (c->target->problem != SHOAL_REGRESSION && value < 0)) continue;
    if (time != UINT32_MAX) {
      value = shoal_rows_number(c->rows, r, time);
      if (isnan(value)) value = -INFINITY;
    }
    c->entries[c->count++] = (entry){value, shoal_random_u64(key, r), r};
  }
  qsort(c->entries, c->count, sizeof *c->entries, by_order);
}

/* ---- by time ------------------------------------------------------------------------ */

static void cut_by_time(cutter *c) {
  uint64_t test = (uint64_t)((double)c->count * c->options->test_share + 0.5);
  if (test > c->count) test = c->count;
  uint64_t rest = c->count - test;
  uint64_t valid = (uint64_t)((double)rest * c->options->valid_share + 0.5);
  if (valid > rest) valid = rest;
  for (uint64_t i = 0; i < c->count; i++) {
    uint8_t *part = &c->part[c->entries[i].row];
    if (i >= rest)
      *part = PART_TEST;
    else if (c->folds > 1)
      *part = (uint8_t)(i * (c->folds + 1) / rest); /* the stretch: 0 is for training only */
    else
      *part = i >= rest - valid ? 0 : PART_TRAIN;
  }
}

/* ---- shuffled ----------------------------------------------------------------------- */

/* How many of the next `many` rows a share of all so far leaves for them. */
typedef struct quota {
  double share, seen;
  uint64_t given;
} quota;

static uint64_t take_quota(quota *q, uint64_t many, uint64_t most) {
  q->seen += (double)many;
  double fair = (double)many * q->share, due = floor(q->seen * q->share + 0.5) - (double)q->given;
  if (due < floor(fair)) due = floor(fair);
  if (due > ceil(fair)) due = ceil(fair);
  uint64_t take = due > 0 ? (uint64_t)due : 0;
  if (take > most) take = most;
  q->given += take;
  return take;
}

static void cut_stratum(cutter *c, entry *entries, uint64_t count, quota *test, quota *valid,
                        uint64_t *dealt) {
  qsort(entries, count, sizeof *entries, by_chance);
  uint64_t for_test = take_quota(test, count, count - 1);
  uint64_t rest = count - for_test, for_valid = take_quota(valid, rest, rest - 1);
  for (uint64_t i = 0; i < count; i++) {
    uint8_t *part = &c->part[entries[i].row];
    if (i < for_test)
      *part = PART_TEST;
    else if (c->folds > 1)
      *part = (uint8_t)((*dealt)++ % c->folds);
    else
      *part = i < for_test + for_valid ? 0 : PART_TRAIN;
  }
}

static void cut_shuffled(cutter *c) {
  quota test = {.share = c->options->test_share}, valid = {.share = c->options->valid_share};
  bool classes = c->target->problem != SHOAL_REGRESSION;
  uint64_t dealt = 0;
  for (uint64_t i = 0, next; i < c->count; i = next) {
    next = i + 1;
    while (next < c->count && (classes ? c->entries[next].by == c->entries[i].by : next - i < STRETCH))
      next++;
    cut_stratum(c, c->entries + i, next - i, &test, &valid, &dealt);
  }
}

/* ---- lists -------------------------------------------------------------------------- */

static bool is_valid(const cutter *c, uint8_t part, uint32_t fold) {
  return c->folds > 1 && c->options->time_column != UINT32_MAX ? part == fold + 1 : part == fold;
}

static bool is_train(const cutter *c, uint8_t part, uint32_t fold) {
  if (c->folds <= 1) return part == PART_TRAIN;
  if (part >= PART_TEST) return false;
  return c->options->time_column != UINT32_MAX ? part <= fold : part != fold;
}

static bool list_rows(const cutter *c, shoal_row_list *list, uint32_t fold,
                      bool (*is)(const cutter *c, uint8_t part, uint32_t fold)) {
  uint64_t rows = shoal_rows_count(c->rows);
  for (uint64_t r = 0; r < rows; r++) list->count += is(c, c->part[r], fold);
  list->at = malloc((list->count + 1) * sizeof *list->at);
  if (list->at == NULL) return false;
  for (uint64_t r = 0, i = 0; r < rows; r++)
    if (is(c, c->part[r], fold)) list->at[i++] = r;
  return true;
}

static bool is_test(const cutter *c, uint8_t part, uint32_t fold) {
  (void)c;
  (void)fold;
  return part == PART_TEST;
}

static shoal_status list_parts(cutter *c, shoal_table_split *out) {
  bool whole = list_rows(c, &out->test, 0, is_test);
  for (uint32_t f = 0; f < c->folds && whole; f++)
    whole = list_rows(c, &out->train[f], f, is_train) && list_rows(c, &out->valid[f], f, is_valid);
  return whole ? SHOAL_OK
               : shoal_fail(c->err, SHOAL_NO_MEMORY, "not enough memory for the parts of the table");
}

/* ---- what must hold ----------------------------------------------------------------- */

static uint64_t count_class(const cutter *c, uint32_t class) {
  uint64_t count = 0;
  for (uint64_t i = 0; i < c->count; i++)
    count += shoal_target_label(c->target, c->rows, c->entries[i].row) == (int32_t) class;
  return count;
}

static shoal_status check_classes(const cutter *c, const shoal_row_list *train, uint32_t fold) {
  uint32_t classes = c->target->classes.count;
  uint64_t *seen = calloc(classes, sizeof *seen);
  if (seen == NULL) return shoal_fail(c->err, SHOAL_NO_MEMORY, "out of memory");
  for (uint64_t i = 0; i < train->count; i++) seen[shoal_target_label(c->target, c->rows, train->at[i])]++;
  shoal_status status = SHOAL_OK;
  for (uint32_t k = 0; k < classes && status == SHOAL_OK; k++) {
    if (seen[k] > 0) continue;
    unsigned long long rows = count_class(c, k);
    const char *name = shoal_names_at(&c->target->classes, k);
    status =
        c->folds > 1
            ? shoal_fail(c->err, SHOAL_INVALID,
                         "class '%.100s' has %llu row%s, too few for %u folds: none is left to learn from in "
                         "fold %u; "
                         "--folds 1 holds rows out instead; or leave its rows out of the file",
                         name, rows, rows == 1 ? "" : "s", c->folds, fold + 1)
            : shoal_fail(
                  c->err, SHOAL_INVALID,
                  "class '%.100s' has %llu row%s, and none to learn from: all fall into the other parts; "
                  "leave them out of the file, or split the table in another way",
                  name, rows, rows == 1 ? "" : "s");
  }
  free(seen);
  return status;
}

static shoal_status check_parts(const cutter *c, const shoal_table_split *out) {
  unsigned long long count = c->count;
  if (c->options->test_share > 0 && out->test.count == 0)
    return shoal_fail(
        c->err, SHOAL_INVALID,
        "the test part has no row: %llu rows are too few to set some aside; give a larger share, or a test "
        "file",
        count);
  for (uint32_t f = 0; f < c->folds; f++) {
    if (out->train[f].count == 0 || out->valid[f].count == 0)
      return shoal_fail(
          c->err, SHOAL_INVALID,
          "%llu rows with a target are too few: the %s part has none of them; a table needs ten or more",
          count, out->train[f].count == 0 ? "training" : "validation");
    if (c->target->problem == SHOAL_REGRESSION) continue;
    shoal_status status = check_classes(c, &out->train[f], f);
    if (status != SHOAL_OK) return status;
  }
  return SHOAL_OK;
}

static int by_number(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static uint64_t count_known(const cutter *c, const uint64_t *digests, uint64_t count,
                            const shoal_row_list *list) {
  uint64_t known = 0;
  for (uint64_t i = 0; i < list->count; i++) {
    uint64_t digest = shoal_rows_digest(c->rows, list->at[i]);
    known += bsearch(&digest, digests, count, sizeof digest, by_number) != NULL;
  }
  return known;
}

static shoal_status count_duplicates(const cutter *c, shoal_table_split *out) {
  const shoal_row_list *train = &out->train[0];
  uint64_t *digests = malloc((train->count + 1) * sizeof *digests);
  if (digests == NULL) return shoal_fail(c->err, SHOAL_NO_MEMORY, "not enough memory to look for equal rows");
  for (uint64_t i = 0; i < train->count; i++) digests[i] = shoal_rows_digest(c->rows, train->at[i]);
  qsort(digests, train->count, sizeof *digests, by_number);
  out->duplicates = count_known(c, digests, train->count, &out->valid[0]) +
                    count_known(c, digests, train->count, &out->test);
  free(digests);
  return SHOAL_OK;
}

static shoal_status check_options(const shoal_split_options *options, shoal_error *err) {
  if (options->folds > SHOAL_FOLDS_MAX)
    return shoal_fail(err, SHOAL_INVALID, "%u folds; %d is the most", options->folds, SHOAL_FOLDS_MAX);
  if (!(options->test_share >= 0 && options->test_share < 1))
    return shoal_fail(err, SHOAL_INVALID, "the share of the test part is %g; it must be from 0 to below 1",
                      options->test_share);
  if (options->folds <= 1 && !(options->valid_share > 0 && options->valid_share < 1))
    return shoal_fail(err, SHOAL_INVALID,
                      "the share of the validation part is %g; it must be between 0 and 1",
                      options->valid_share);
  return SHOAL_OK;
}

shoal_status shoal_table_split_make(shoal_table_split *out, const shoal_rows *rows,
                                    const shoal_target *target, const shoal_split_options *options,
                                    shoal_error *err) {
  *out = (shoal_table_split){.folds = options->folds > 1 ? options->folds : 1};
  shoal_status status = check_options(options, err);
  if (status != SHOAL_OK) return status;
  uint64_t count = shoal_rows_count(rows);
  cutter c = {.options = options, .target = target, .rows = rows, .folds = out->folds, .err = err};
  c.entries = malloc((count + 1) * sizeof *c.entries);
  c.part = malloc(count + 1);
  if (c.entries == NULL || c.part == NULL) {
    status =
        shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory to split %llu rows", (unsigned long long)count);
  } else {
    list_entries(&c);
    if (options->time_column != UINT32_MAX)
      cut_by_time(&c);
    else
      cut_shuffled(&c);
    status = list_parts(&c, out);
  }
  if (status == SHOAL_OK) status = check_parts(&c, out);
  if (status == SHOAL_OK) status = count_duplicates(&c, out);
  free(c.entries);
  free(c.part);
  if (status != SHOAL_OK) shoal_table_split_release(out);
  return status;
}

void shoal_table_split_release(shoal_table_split *split) {
  for (uint32_t f = 0; f < SHOAL_FOLDS_MAX; f++) {
    free(split->train[f].at);
    free(split->valid[f].at);
  }
  free(split->test.at);
  *split = (shoal_table_split){0};
}
