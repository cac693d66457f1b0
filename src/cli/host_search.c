/* host_search.c: see host_search.h. */
#include "cli/host_search.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "server/search_spec.h"

static const char *const problems[] = {"regression", "classes", NULL};
static const char *const schedulers[] = {"grid", "random", "halving", "model", NULL};

void shoal_host_search_declare(shoal_host_search *s, shoal_option lines[SHOAL_HOST_SEARCH_OPTIONS]) {
  const shoal_option own[SHOAL_HOST_SEARCH_OPTIONS] = {
      {.name = "Search (of a table; as in shoal search)"},
      {.name = "budget",
       .value = "TIME",
       .text = &s->budget,
       .help = "90s, 10m (the default) or 2h, for everything"},
      {.name = "trials",
       .value = "N",
       .whole = &s->trials,
       .whole_min = 1,
       .whole_max = 1000000000,
       .help = "end after N trials"},
      {.name = "metric",
       .value = "NAME",
       .text = &s->metric,
       .help = "what is best: accuracy, balanced-accuracy, f1, auc, log-loss; rmse, mae, r2"},
      {.name = "problem",
       .value = "KIND",
       .text = &s->problem,
       .choices = problems,
       .help = "regression or classes; by default the target's values tell"},
      {.name = "space", .value = "FILE", .text = &s->space, .help = "what may be tried; see docs/search.md"},
      {.name = "scheduler",
       .value = "WAY",
       .text = &s->scheduler,
       .choices = schedulers,
       .help = "model (the default), halving, random or grid"},
      {.name = "folds",
       .value = "K",
       .whole = &s->folds,
       .whole_min = 1,
       .whole_max = SHOAL_FOLDS_MAX,
       .help = "judge trials by K-fold cross-validation"},
      {.name = "test", .value = "FILE", .text = &s->test, .help = "rows to judge the end by"},
      {.name = "test-share",
       .value = "SHARE",
       .real = &s->test_share,
       .real_min = 0,
       .real_max = 0.9,
       .help = "without --test: the share of rows for the final score; 0.2 by default"},
      {.name = "time",
       .value = "COLUMN",
       .text = &s->time_column,
       .help = "judge by the latest rows, in the order of this column"},
      {.name = "columns",
       .value = "LIST",
       .text = &s->columns,
       .help = "what columns are, where the guess is wrong: zip=category,note=text,id=skip"},
      {.name = "dialect",
       .value = "WORDS",
       .text = &s->dialect,
       .help = "how the file is written, where the guess is wrong: 'delimiter ; decimal , header no'"},
  };
  memcpy(lines, own, sizeof own);
}

const char *shoal_host_search_given(const shoal_host_search *s) {
  const struct {
    const char *name;
    bool given;
  } all[] = {{"--budget", s->budget},    {"--trials", s->trials > 0},
             {"--metric", s->metric},    {"--problem", s->problem},
             {"--space", s->space},      {"--scheduler", s->scheduler},
             {"--folds", s->folds > 0},  {"--test", s->test},
             {"--time", s->time_column}, {"--test-share", s->test_share >= 0},
             {"--columns", s->columns},  {"--dialect", s->dialect}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (all[i].given) return all[i].name;
  return NULL;
}

shoal_status shoal_host_search_read(shoal_host_search *s, shoal_error *err) {
  size_t length;
  if (s->budget && shoal_options_read_time("--budget", s->budget, &s->budget_s, err) != SHOAL_OK)
    return SHOAL_INVALID;
  if (s->columns) {
    s->columns_words = strdup(s->columns);
    if (!s->columns_words) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
    shoal_status status = shoal_search_said_columns(s->columns_words, s->said, &s->said_count, err);
    if (status != SHOAL_OK) return status;
  }
  if (!s->space) return SHOAL_OK;
  return shoal_file_read(s->space, SHOAL_SEARCH_SPACE_MAX, false, &s->space_text, &length, err);
}

void shoal_host_search_release(shoal_host_search *s) {
  free(s->space_text);
  free(s->columns_words);
}

static void write_text(shoal_json *json, const char *key, const char *text) {
  if (text) shoal_json_text(json, key, text);
}

void shoal_host_search_write(const shoal_host_search *s, shoal_json *json) {
  shoal_json_text(json, "kind", "search");
  write_text(json, "metric", s->metric);
  write_text(json, "problem", s->problem);
  write_text(json, "scheduler", s->scheduler);
  write_text(json, "time_column", s->time_column);
  write_text(json, "dialect", s->dialect);
  write_text(json, "space", (const char *)s->space_text);
  if (s->budget || s->trials > 0) shoal_json_real(json, "budget_s", s->budget_s); /* trials alone: no limit */
  if (s->trials > 0) shoal_json_int(json, "trials", (int64_t)s->trials);
  if (s->folds > 0) shoal_json_int(json, "folds", (int64_t)s->folds);
  if (s->test_share >= 0) shoal_json_real(json, "test_share", s->test_share);
  if (s->said_count == 0) return;
  shoal_json_open(json, "columns", '{');
  for (size_t i = 0; i < s->said_count; i++) {
    const shoal_column_said *said = &s->said[i];
    shoal_json_text(json, said->name, said->skip ? "skip" : shoal_column_kind_name(said->kind));
  }
  shoal_json_close(json, '}');
}
