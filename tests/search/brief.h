/* brief.h: a small search for tests: a table whose answer follows from its columns, with some noise. */
#ifndef SHOAL_TESTS_SEARCH_BRIEF_H
#define SHOAL_TESTS_SEARCH_BRIEF_H

#include "table.h"

#include "base/random.h"
#include "search/trial.h"

static const char small_space[] =
    "layers 2\nwidth 16\nshape brick\nresidual no\nactivation relu\ndropout 0.1\n"
    "normalise none\noptimizer adamw\nrate 0.01\nbatch 32\ndecay 1e-4\nnumbers pieces\n"
    "pieces 8\ncategories one-hot\nembedding 4\nbalance no\n";

/* y: a number, or two classes; with one_in, "yes" is every so manieth row, whatever the columns say. */
static inline void put_table(const char *path, uint32_t rows, bool numbers, uint32_t one_in) {
  static const char *const colours[] = {"red", "green", "blue", "grey"};
  shoal_key key = shoal_key_make(7, SHOAL_FOR_TOY, 0, 0);
  shoal_text csv;
  shoal_text_init(&csv);
  shoal_text_addf(&csv, "a,b,colour,y\n");
  for (uint32_t i = 0; i < rows; i++) {
    double a = (double)shoal_random_normal(key, 4 * i), b = (double)shoal_random_normal(key, 4 * i + 1);
    uint32_t colour = (uint32_t)shoal_random_below(key, 4 * i + 2, 4);
    double y = a * b + 0.5 * colour + 0.1 * (double)shoal_random_normal(key, 4 * i + 3);
    if (i % 17 == 0)
      shoal_text_addf(&csv, ",");
    else
      shoal_text_addf(&csv, "%.4f,", a);
    shoal_text_addf(&csv, "%.4f,%s,", b, colours[colour]);
    if (numbers)
      shoal_text_addf(&csv, "%.3f\n", 100 + 10 * y);
    else
      shoal_text_addf(&csv, "%s\n", (one_in > 0 ? i % one_in == 0 : y > 0.7) ? "yes" : "no");
  }
  put(path, csv.bytes, csv.length);
  shoal_text_release(&csv);
}

static inline void brief_of(shoal_brief *b, const char *path, uint32_t folds, const char *space) {
  shoal_error err;
  uint32_t column;
  shoal_rows *rows;
  shoal_brief_init(b);
  const shoal_profile_options options = {.path = path, .seed = 1};
  if (shoal_profile_read(&b->profile, &options, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_int_equal(shoal_profile_find(&b->profile, "y", &column, &err), SHOAL_OK);
  b->profile.columns[column].used = false;
  const shoal_rows_options rows_options = {.path = path, .profile = &b->profile, .target = column};
  if (shoal_rows_open(&rows, &rows_options, &err) != SHOAL_OK) fail_msg("%s", err.text);
  if (shoal_target_find(&b->target, rows, &b->profile, column, NULL, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
  shoal_rows_close(rows);
  b->split = (shoal_split_options){.seed = 1,
                                   .test_share = 0.2,
                                   .valid_share = folds > 1 ? 0 : 0.25,
                                   .folds = folds,
                                   .time_column = UINT32_MAX};
  b->metric = shoal_score_usual(b->target.problem);
  b->epochs = 6;
  b->seed = 3;
  shoal_space_usual(&b->space, b->profile.rows, b->profile.columns_count);
  if (shoal_space_parse(&b->space, "space", space, strlen(space), &err) != SHOAL_OK) fail_msg("%s", err.text);
}

static inline shoal_bench *bench_of(const shoal_brief *brief, const char *path) {
  shoal_bench *bench;
  shoal_error err;
  const shoal_bench_options options = {.brief = brief, .path = path};
  if (shoal_bench_open(&bench, &options, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return bench;
}

static inline shoal_unit unit_of(const shoal_brief *brief, uint64_t trial, uint32_t from, uint32_t to) {
  shoal_unit unit = {.trial = trial, .rung = from > 0, .epochs_from = from, .epochs_to = to};
  shoal_space_grid_at(&brief->space, 0, &unit.values);
  return unit;
}

static inline shoal_trial_result *run_unit(shoal_bench *bench, const shoal_unit *unit, const char *state) {
  shoal_trial_result *result = malloc(sizeof *result);
  shoal_error err;
  const shoal_trial_options options = {.unit = unit, .state = state};
  if (shoal_trial_run(bench, &options, result, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return result;
}

#endif
