/* search_said.c: see search_said.h. */
#include "cli/search_said.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- columns ---- */

/* A name in quotes, of which two are one; *at is behind it then. NULL: there is no end. */
static char *read_quoted(char **at) {
  char *name = ++*at, *to = name;
  for (; **at; (*at)++) {
    if (**at == '"' && *++*at != '"') {
      *to = 0;
      return name;
    }
    *to++ = **at;
  }
  return NULL;
}

/* A name as it stands, up to the last equals sign before the next comma, where *at is then. */
static char *read_plain(char **at) {
  char *name = *at, *end = name + strcspn(name, ","), *equals = end;
  while (equals > name && *equals != '=') equals--;
  if (*equals != '=' || equals == name) return NULL;
  *at = equals;
  return name;
}

static shoal_status read_kind(const char *word, size_t length, shoal_column_said *said, shoal_error *err) {
  char kind[16];
  bool fits = length < sizeof kind;
  memcpy(kind, word, fits ? length : 0);
  kind[fits ? length : 0] = 0;
  said->skip = strcmp(kind, "skip") == 0;
  if (said->skip || shoal_column_kind_parse(kind, &said->kind)) return SHOAL_OK;
  return shoal_fail(
      err, SHOAL_INVALID,
      "--columns: '%.*s' is no kind of column; there are number, category, date, text, identifier, constant "
      "and skip",
      (int)(length < 100 ? length : 100), word);
}

shoal_status shoal_search_said_columns(char *words, shoal_column_said out[SHOAL_COLUMNS_SAID_MAX],
                                       size_t *count, shoal_error *err) {
  *count = 0;
  for (char *at = words; *at;) {
    char *start = at;
    int shown = (int)strcspn(start, ",");
    char first = *start, *name = first == '"' ? read_quoted(&at) : read_plain(&at);
    if (name == NULL && first == '"')
      return shoal_fail(err, SHOAL_INVALID, "--columns: a name in quotes has no end");
    if (name == NULL || *name == 0 || *at != '=')
      return shoal_fail(err, SHOAL_INVALID,
                        "--columns: '%.*s' is not NAME=KIND; a name with a comma or an equals sign stands in "
                        "quotes: \"a,b\"=category",
                        shown < 100 ? shown : 100, start);
    if (*count == SHOAL_COLUMNS_SAID_MAX)
      return shoal_fail(err, SHOAL_LIMIT, "--columns: more than %d columns", SHOAL_COLUMNS_SAID_MAX);
    *at++ = 0;
    size_t length = strcspn(at, ",");
    out[*count] = (shoal_column_said){.name = name};
    shoal_status status = read_kind(at, length, &out[(*count)++], err);
    if (status != SHOAL_OK) return status;
    at += length + (at[length] == ',');
  }
  return SHOAL_OK;
}

/* ---- said again ---- */

static shoal_status differs(const char *option, const char *began_with, shoal_error *err) {
  return shoal_fail(err, SHOAL_INVALID,
                    "%s cannot be changed with --resume: the search began with %s; leave it out, or begin "
                    "anew without --resume",
                    option, began_with);
}

static shoal_status differs_number(const char *option, double began_with, shoal_error *err) {
  char text[40];
  snprintf(text, sizeof text, "%.9g", began_with);
  return differs(option, text, err);
}

static const char *column_name(const shoal_brief *brief, uint32_t column) {
  return column == UINT32_MAX ? "none" : brief->profile.columns[column].name;
}

static shoal_status check_column(const shoal_brief *brief, const char *option, const char *said,
                                 uint32_t began_with, shoal_error *err) {
  uint32_t column;
  if (said == NULL) return SHOAL_OK;
  shoal_status status = shoal_profile_find(&brief->profile, said, &column, err);
  if (status != SHOAL_OK || column == began_with) return status;
  char text[100];
  snprintf(text, sizeof text, began_with == UINT32_MAX ? "%.80s" : "'%.80s'", column_name(brief, began_with));
  return differs(option, text, err);
}

static shoal_status check_columns(const shoal_search_options *o, const shoal_brief *brief, shoal_error *err) {
  for (size_t i = 0; i < o->columns_count; i++) {
    uint32_t at;
    shoal_status status = shoal_profile_find(&brief->profile, o->columns[i].name, &at, err);
    if (status != SHOAL_OK) return status;
    const shoal_column *column = &brief->profile.columns[at];
    bool same = o->columns[i].skip ? !column->used : column->kind == o->columns[i].kind;
    if (same) continue;
    char text[140];
    snprintf(text, sizeof text, "%.80s=%s", column->name, shoal_column_kind_name(column->kind));
    return differs("--columns", text, err);
  }
  return SHOAL_OK;
}

static shoal_status check_space(const shoal_search_options *o, const shoal_brief *brief, shoal_error *err) {
  if (o->space == NULL) return SHOAL_OK;
  shoal_space said;
  shoal_text ours = {0}, theirs = {0};
  uint32_t features = 0;
  for (uint32_t c = 0; c < brief->profile.columns_count; c++) features += brief->profile.columns[c].used;
  shoal_space_usual(&said, brief->profile.rows, features);
  shoal_status status = shoal_space_parse(&said, o->space_name, o->space, strlen(o->space), err);
  if (status == SHOAL_OK) {
    shoal_space_write(&said, &ours);
    shoal_space_write(&brief->space, &theirs);
    if (ours.failed || theirs.failed)
      status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
    else if (strcmp(ours.bytes, theirs.bytes) != 0)
      status = differs("--space", "another one, which its brief.json has", err);
  }
  shoal_text_release(&ours);
  shoal_text_release(&theirs);
  shoal_space_release(&said);
  return status;
}

static shoal_status check_words(const shoal_search_options *o, const shoal_brief *brief, shoal_error *err) {
  bool numbers = brief->target.problem == SHOAL_REGRESSION;
  if (o->metric && *o->metric != brief->metric)
    return differs("--metric", shoal_score_name(brief->metric), err);
  if (o->problem && (*o->problem == SHOAL_REGRESSION) != numbers)
    return differs("--problem", numbers ? "regression" : "classes", err);
  return SHOAL_OK;
}

/* Shares that had no effect, beside folds or a test file, can be any. */
static shoal_status check_numbers(const shoal_search_options *o, const shoal_brief *brief, shoal_error *err) {
  const shoal_split_options *split = &brief->split;
  uint32_t folds = split->folds > 1 ? split->folds : 1;
  if (o->folds != 0 && o->folds != folds) return differs_number("--folds", folds, err);
  if (o->epochs != 0 && o->epochs != brief->epochs) return differs_number("--epochs", brief->epochs, err);
  if (o->valid_share > 0 && folds == 1 && fabs(o->valid_share - split->valid_share) > 1e-12)
    return differs_number("--valid", split->valid_share, err);
  if (o->test_share >= 0 && o->test == NULL && fabs(o->test_share - split->test_share) > 1e-12)
    return differs_number("--test-share", split->test_share, err);
  return SHOAL_OK;
}

shoal_status shoal_search_said_again(const shoal_search_options *o, bool scheduler_said, bool seed_said,
                                     shoal_error *err) {
  shoal_brief brief;
  shoal_scheduler_kind scheduler;
  shoal_status status = shoal_search_recorded(o->folder, &brief, &scheduler, err);
  if (status != SHOAL_OK) return status;
  status = check_column(&brief, "--target", o->target, brief.target.column, err);
  if (status == SHOAL_OK)
    status = check_column(&brief, "--time", o->time_column, brief.split.time_column, err);
  if (status == SHOAL_OK) status = check_columns(o, &brief, err);
  if (status == SHOAL_OK) status = check_words(o, &brief, err);
  if (status == SHOAL_OK) status = check_numbers(o, &brief, err);
  if (status == SHOAL_OK) status = check_space(o, &brief, err);
  if (status == SHOAL_OK && scheduler_said && o->scheduler != scheduler)
    status = differs("--scheduler", shoal_scheduler_name(scheduler), err);
  char seed[24];
  snprintf(seed, sizeof seed, "%" PRIu64, brief.seed);
  if (status == SHOAL_OK && seed_said && o->seed != brief.seed) status = differs("--seed", seed, err);
  shoal_brief_release(&brief);
  return status;
}
