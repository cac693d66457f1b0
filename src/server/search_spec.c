/* search_spec.c: see search_spec.h. */
#include "server/search_spec.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/spec_read.h"

enum { TEXT_MAX = 1000 };
static const double budget_max = 1e8;

static const char *const fields[] = {
    "kind",   "name",     "data",  "target",    "columns",    "dialect",     "metric",
    "space",  "problem",  "folds", "valid",     "test_share", "time_column", "epochs",
    "trials", "budget_s", "seed",  "scheduler", "private",    "workers_min", "workers_max"};

/* ---- reading ---- */

typedef struct reading {
  shoal_spec_reader in;
  shoal_search_spec *spec;
} reading;

static shoal_status wrong(const reading *r, const char *field, const char *text) {
  return shoal_spec_wrong(&r->in, field, text);
}

static shoal_status read_text(reading *r, const char *field, size_t most, shoal_text *out) {
  return shoal_spec_read_text(&r->in, field, most, out);
}

static shoal_status read_names(reading *r) {
  shoal_status status = shoal_spec_read_names(&r->in, &r->spec->name, &r->spec->data);
  if (status == SHOAL_OK) status = read_text(r, "target", TEXT_MAX, &r->spec->target);
  if (status == SHOAL_OK && r->spec->target.length == 0)
    status = wrong(r, "target", "is missing: the column to predict");
  return status;
}

void shoal_columns_said_release(shoal_column_said *said, size_t count) {
  for (size_t i = 0; i < count; i++) free(said[i].name);
  free(said);
}

static shoal_status read_column(const cJSON *item, shoal_column_said *said, shoal_error *err) {
  const char *kind = cJSON_IsString(item) ? item->valuestring : "";
  *said = (shoal_column_said){.skip = strcmp(kind, "skip") == 0};
  if (!said->skip && !shoal_column_kind_parse(kind, &said->kind))
    return shoal_fail(
        err, SHOAL_INVALID,
        "\"columns\" has a kind that there is not; there are number, category, date, text, identifier, "
        "constant and skip");
  said->name = strdup(item->string);
  return said->name != NULL ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

shoal_status shoal_columns_said_read(shoal_column_said **out, size_t *count, const cJSON *map,
                                     shoal_error *err) {
  *out = NULL;
  *count = 0;
  if (map == NULL || cJSON_IsNull(map)) return SHOAL_OK;
  if (!cJSON_IsObject(map))
    return shoal_fail(err, SHOAL_INVALID, "\"columns\" must be an object, as in {\"zip\": \"category\"}");
  int all = cJSON_GetArraySize(map);
  if (all > SHOAL_SEARCH_COLUMNS_SAID_MAX)
    return shoal_fail(err, SHOAL_INVALID, "\"columns\" names more than %d columns",
                      SHOAL_SEARCH_COLUMNS_SAID_MAX);
  shoal_column_said *said = calloc((size_t)all + 1, sizeof *said);
  shoal_status status = said != NULL ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  for (const cJSON *item = map->child; item != NULL && status == SHOAL_OK; item = item->next) {
    status = read_column(item, &said[*count], err);
    if (status == SHOAL_OK) (*count)++;
  }
  if (status == SHOAL_OK) {
    *out = said;
    return SHOAL_OK;
  }
  shoal_columns_said_release(said, *count);
  *count = 0;
  return status;
}

static shoal_status read_columns(reading *r) {
  shoal_status status = shoal_columns_said_read(&r->spec->columns, &r->spec->columns_count,
                                                shoal_spec_find(&r->in, "columns"), r->in.err);
  return shoal_spec_blame(&r->in, "columns", status);
}

/* Words that search/ has names for. */
static shoal_status read_words(reading *r) {
  shoal_search_spec *s = r->spec;
  shoal_text scheduler = {0};
  shoal_score_kind metric;
  shoal_dialect_said dialect = {0};
  shoal_status status = read_text(r, "metric", TEXT_MAX, &s->metric);
  if (status == SHOAL_OK) status = read_text(r, "problem", TEXT_MAX, &s->problem);
  if (status == SHOAL_OK) status = read_text(r, "dialect", TEXT_MAX, &s->dialect);
  if (status == SHOAL_OK) status = read_text(r, "time_column", TEXT_MAX, &s->time_column);
  if (status == SHOAL_OK) status = read_text(r, "space", SHOAL_SEARCH_SPACE_MAX, &s->space);
  if (status == SHOAL_OK) status = read_text(r, "scheduler", TEXT_MAX, &scheduler);
  if (status == SHOAL_OK && scheduler.length > 0 && !shoal_scheduler_parse(scheduler.bytes, &s->scheduler))
    status = wrong(r, "scheduler", "must be grid, random, halving or model");
  shoal_text_release(&scheduler);
  if (status == SHOAL_OK && s->metric.length > 0 && !shoal_score_parse(s->metric.bytes, &metric))
    status = wrong(r, "metric", "must be accuracy, balanced-accuracy, f1, auc, log-loss, rmse, mae or r2");
  if (status == SHOAL_OK && s->problem.length > 0 && strcmp(s->problem.bytes, "regression") != 0 &&
      strcmp(s->problem.bytes, "classes") != 0)
    status = wrong(r, "problem", "must be regression or classes");
  if (status == SHOAL_OK && s->dialect.length > 0)
    status = shoal_spec_blame(&r->in, "dialect",
                              shoal_dialect_say(&dialect, "dialect", s->dialect.bytes, r->in.err));
  return status;
}

/* What is wrong with the space is better known now than when the table has been read. */
static shoal_status check_space(reading *r) {
  const shoal_text *text = &r->spec->space;
  if (text->length == 0) return SHOAL_OK;
  shoal_space space;
  shoal_space_usual(&space, 1000, 10);
  shoal_status status = shoal_space_parse(&space, "space", text->bytes, text->length, r->in.err);
  shoal_space_release(&space);
  if (status == SHOAL_OK) return SHOAL_OK;
  const char *reason;
  shoal_spec_place("space", r->in.err, &r->in.fault->line, &r->in.fault->column, &reason);
  return shoal_spec_blame(&r->in, "space", status);
}

static shoal_status read_numbers(reading *r) {
  shoal_search_spec *s = r->spec;
  const shoal_spec_reader *in = &r->in;
  shoal_status status = shoal_spec_read_flag(in, "private", &s->is_private);
  if (status == SHOAL_OK) status = shoal_spec_read_number(in, "budget_s", 0, budget_max, false, &s->budget_s);
  if (status == SHOAL_OK) status = shoal_spec_read_u64(in, "trials", &s->trials);
  if (status == SHOAL_OK) status = shoal_spec_read_u64(in, "seed", &s->seed);
  if (status == SHOAL_OK) status = shoal_spec_read_u32(in, "folds", 0, SHOAL_FOLDS_MAX, &s->folds);
  if (status == SHOAL_OK) status = shoal_spec_read_u32(in, "epochs", 0, SHOAL_CURVE_MAX, &s->epochs);
  if (status == SHOAL_OK) status = shoal_spec_read_number(in, "valid", 0, 0.9, false, &s->valid_share);
  if (status == SHOAL_OK) status = shoal_spec_read_number(in, "test_share", 0, 0.9, false, &s->test_share);
  if (status == SHOAL_OK) status = shoal_spec_read_workers(in, &s->workers_min, &s->workers_max);
  if (status == SHOAL_OK && s->budget_s == 0 && s->trials == 0)
    return wrong(r, "budget_s", "and \"trials\" cannot both be 0: the search would not end");
  return status;
}

static shoal_status read_all(reading *r) {
  shoal_status status = shoal_spec_check_fields(&r->in, fields, sizeof fields / sizeof fields[0], "a search");
  if (status == SHOAL_OK) status = read_names(r);
  if (status == SHOAL_OK) status = read_columns(r);
  if (status == SHOAL_OK) status = read_words(r);
  if (status == SHOAL_OK) status = check_space(r);
  if (status == SHOAL_OK) status = read_numbers(r);
  return status;
}

shoal_status shoal_search_spec_parse(shoal_search_spec *out, const char *json, size_t length,
                                     shoal_spec_fault *fault, shoal_error *err) {
  shoal_search_spec spec = {.scheduler = SHOAL_BY_MODEL,
                            .budget_s = 600,
                            .seed = 1,
                            .test_share = 0.2,
                            .workers_min = 1,
                            .workers_max = SHOAL_SPEC_WORKERS_MAX};
  *fault = (shoal_spec_fault){0};
  cJSON *tree = cJSON_ParseWithLength(json, length);
  if (tree == NULL) return shoal_fail(err, SHOAL_INVALID, "the body is no JSON");
  reading r = {{tree, fault, err}, &spec};
  shoal_status status = read_all(&r);
  cJSON_Delete(tree);
  if (status == SHOAL_OK)
    *out = spec;
  else
    shoal_search_spec_release(&spec);
  return status;
}

void shoal_search_spec_release(shoal_search_spec *spec) {
  shoal_text *const texts[] = {&spec->name,   &spec->data,    &spec->target, &spec->dialect,
                               &spec->metric, &spec->problem, &spec->space,  &spec->time_column};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) shoal_text_release(texts[i]);
  shoal_columns_said_release(spec->columns, spec->columns_count);
  spec->columns = NULL;
  spec->columns_count = 0;
}

/* ---- writing ---- */

static void write_text(shoal_json *json, const char *key, const shoal_text *text) {
  if (text->length > 0) shoal_json_text(json, key, text->bytes);
}

void shoal_search_spec_write(const shoal_search_spec *spec, shoal_json *json) {
  shoal_json_text(json, "kind", "search");
  write_text(json, "name", &spec->name);
  write_text(json, "data", &spec->data);
  write_text(json, "target", &spec->target);
  shoal_json_open(json, "columns", '{');
  for (size_t i = 0; i < spec->columns_count; i++) {
    const shoal_column_said *said = &spec->columns[i];
    shoal_json_text(json, said->name, said->skip ? "skip" : shoal_column_kind_name(said->kind));
  }
  shoal_json_close(json, '}');
  write_text(json, "dialect", &spec->dialect);
  write_text(json, "metric", &spec->metric);
  write_text(json, "problem", &spec->problem);
  write_text(json, "space", &spec->space);
  write_text(json, "time_column", &spec->time_column);
  shoal_json_text(json, "scheduler", shoal_scheduler_name(spec->scheduler));
  shoal_json_real(json, "budget_s", spec->budget_s);
  shoal_json_int(json, "trials", (int64_t)spec->trials);
  shoal_json_int(json, "folds", spec->folds);
  shoal_json_real(json, "valid", spec->valid_share);
  shoal_json_real(json, "test_share", spec->test_share);
  shoal_json_int(json, "epochs", spec->epochs);
  shoal_json_int(json, "seed", (int64_t)spec->seed);
  shoal_json_int(json, "workers_min", spec->workers_min);
  shoal_json_int(json, "workers_max", spec->workers_max);
  shoal_json_bool(json, "private", spec->is_private);
}
