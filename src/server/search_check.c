/* search_check.c: see search_check.h. */
#include "server/search_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A number with more different values than this is an amount and not a class, however they are written; see
 * search/target.c, where the rows decide. */
enum { SURELY_AMOUNTS = 40 };
enum { WINDOW = 16 }; /* of a scheduler that is made only to see whether it can be */

/* Memory that is out is no fault of a field. */
static shoal_status blame(shoal_spec_fault *fault, const char *field, shoal_status status) {
  if (status != SHOAL_OK && status != SHOAL_NO_MEMORY)
    snprintf(fault->field, sizeof fault->field, "%s", field);
  return status;
}

static shoal_status find(const shoal_profile *profile, const char *name, const char *field, uint32_t *column,
                         shoal_spec_fault *fault, shoal_error *err) {
  return blame(fault, field, shoal_profile_find(profile, name, column, err));
}

static shoal_status check_columns(const shoal_search_spec *spec, const shoal_profile *profile,
                                  shoal_spec_fault *fault, shoal_error *err) {
  shoal_status status = SHOAL_OK;
  uint32_t column;
  for (size_t i = 0; i < spec->columns_count && status == SHOAL_OK; i++)
    status = find(profile, spec->columns[i].name, "columns", &column, fault, err);
  return status;
}

/* What the column is, as a person says or as it was found. */
static shoal_column_kind kind_of(const shoal_search_spec *spec, const shoal_profile *profile,
                                 uint32_t column) {
  for (size_t i = 0; i < spec->columns_count; i++) {
    uint32_t said;
    if (shoal_profile_find(profile, spec->columns[i].name, &said, NULL) == SHOAL_OK && said == column &&
        !spec->columns[i].skip)
      return spec->columns[i].kind;
  }
  return profile->columns[column].kind;
}

static shoal_status check_time(const shoal_search_spec *spec, const shoal_profile *profile,
                               shoal_spec_fault *fault, shoal_error *err) {
  uint32_t column;
  if (spec->time_column.length == 0) return SHOAL_OK;
  shoal_status status = find(profile, spec->time_column.bytes, "time_column", &column, fault, err);
  if (status != SHOAL_OK) return status;
  shoal_column_kind kind = kind_of(spec, profile, column);
  if (kind == SHOAL_DATE || kind == SHOAL_NUMBER) return SHOAL_OK;
  status = shoal_fail(err, SHOAL_INVALID, "the column '%s' is a %s: parts by time need a date or a number",
                      profile->columns[column].name, shoal_column_kind_name(kind));
  return blame(fault, "time_column", status);
}

/* Whether the target is surely an amount, or surely classes; false: the rows will tell. */
static bool tell_problem(const shoal_search_spec *spec, const shoal_column *target, shoal_column_kind kind,
                         shoal_problem *out) {
  bool amounts = target->distinct > SURELY_AMOUNTS || target->min != floor(target->min) ||
                 target->max != floor(target->max);
  if (spec->problem.length > 0) {
    *out = strcmp(spec->problem.bytes, "regression") == 0 ? SHOAL_REGRESSION : SHOAL_MULTICLASS;
    return true;
  }
  *out = kind == SHOAL_CATEGORY ? SHOAL_MULTICLASS : SHOAL_REGRESSION;
  return kind == SHOAL_CATEGORY || ((kind == SHOAL_NUMBER || kind == SHOAL_DATE) && amounts);
}

static shoal_status check_target(const shoal_search_spec *spec, const shoal_profile *profile,
                                 shoal_spec_fault *fault, shoal_error *err) {
  uint32_t column;
  shoal_problem problem;
  shoal_score_kind metric;
  shoal_status status = find(profile, spec->target.bytes, "target", &column, fault, err);
  if (status != SHOAL_OK) return status;
  const shoal_column *target = &profile->columns[column];
  shoal_column_kind kind = kind_of(spec, profile, column);
  if (!tell_problem(spec, target, kind, &problem)) return SHOAL_OK;
  if (kind == SHOAL_CATEGORY && problem == SHOAL_REGRESSION) {
    status = shoal_fail(err, SHOAL_INVALID, "the target '%s' has classes, where a regression needs numbers",
                        target->name);
    return blame(fault, "problem", status);
  }
  if (spec->metric.length == 0 || !shoal_score_parse(spec->metric.bytes, &metric) ||
      shoal_score_fits(metric, problem))
    return SHOAL_OK;
  status = shoal_fail(err, SHOAL_INVALID, "%s does not fit the target '%s', which %s; the usual one is %s",
                      spec->metric.bytes, target->name,
                      problem == SHOAL_REGRESSION ? "is an amount" : "has classes",
                      shoal_score_name(shoal_score_usual(problem)));
  return blame(fault, "metric", status);
}

static shoal_status check_space(const shoal_search_spec *spec, const shoal_profile *profile,
                                shoal_spec_fault *fault, shoal_error *err) {
  uint32_t features = 0;
  for (uint32_t c = 0; c < profile->columns_count; c++) features += profile->columns[c].used;
  shoal_space space;
  shoal_space_usual(&space, profile->rows, features);
  const shoal_text *text = &spec->space;
  shoal_status status = SHOAL_OK;
  if (text->length > 0) status = shoal_space_parse(&space, "space", text->bytes, text->length, err);
  const shoal_scheduler_config rules = {
      .space = &space, .kind = spec->scheduler, .window = WINDOW, .rungs = 1, .epochs = {1}};
  shoal_scheduler *scheduler = NULL;
  if (status == SHOAL_OK) status = shoal_scheduler_create(&scheduler, &rules, err);
  shoal_scheduler_destroy(scheduler);
  shoal_space_release(&space);
  return blame(fault, "space", status);
}

shoal_status shoal_search_check(const shoal_search_spec *spec, const shoal_profile *profile,
                                shoal_spec_fault *fault, shoal_error *err) {
  *fault = (shoal_spec_fault){0};
  shoal_status status = check_columns(spec, profile, fault, err);
  if (status == SHOAL_OK) status = check_target(spec, profile, fault, err);
  if (status == SHOAL_OK) status = check_time(spec, profile, fault, err);
  if (status == SHOAL_OK) status = check_space(spec, profile, fault, err);
  return status;
}
