/* profile_json.c: a profile as JSON and back. What is read may come from anybody. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_at.h"
#include "data/limits.h"
#include "search/profile.h"

static bool has_range(const shoal_column *column) {
  return column->kind == SHOAL_NUMBER || column->kind == SHOAL_DATE;
}

/* ---- writing ------------------------------------------------------------------------ */

static void write_column(const shoal_column *column, shoal_json *json) {
  shoal_json_open(json, NULL, '{');
  shoal_json_text(json, "name", column->name);
  shoal_json_text(json, "kind", shoal_column_kind_name(column->kind));
  shoal_json_text(json, "guessed", shoal_column_kind_name(column->guessed));
  shoal_json_bool(json, "used", column->used);
  shoal_json_int(json, "missing", (int64_t)column->missing);
  shoal_json_int(json, "distinct", (int64_t)column->distinct);
  if (has_range(column)) {
    shoal_json_real(json, "mean", column->mean);
    shoal_json_real(json, "deviation", column->deviation);
    shoal_json_real(json, "min", column->min);
    shoal_json_real(json, "max", column->max);
    shoal_json_open(json, "quartiles", '[');
    for (int i = 0; i < 3; i++) shoal_json_real(json, NULL, column->quartile[i]);
    shoal_json_close(json, ']');
    shoal_json_open(json, "histogram", '[');
    for (int i = 0; i < SHOAL_HISTOGRAM_BARS; i++) shoal_json_int(json, NULL, (int64_t)column->histogram[i]);
    shoal_json_close(json, ']');
  }
  if (column->kind == SHOAL_NUMBER) shoal_json_text(json, "unit", column->unit);
  if (column->kind == SHOAL_DATE) shoal_json_bool(json, "day_first", column->day_first);
  if (column->kind == SHOAL_CATEGORY) {
    shoal_names_write(&column->categories, json, "categories");
    shoal_json_open(json, "counts", '[');
    for (uint32_t i = 0; i < column->categories.count; i++)
      shoal_json_int(json, NULL, (int64_t)column->category_counts[i]);
    shoal_json_close(json, ']');
  }
  if (column->top.count > 0) shoal_names_write(&column->top, json, "top");
  shoal_json_text(json, "warning", column->warning);
  shoal_json_close(json, '}');
}

/* The last part of a path. */
static const char *name_of(const char *path) {
  const char *slash = path ? strrchr(path, '/') : NULL;
  return slash ? slash + 1 : path ? path : "";
}

void shoal_profile_write(const shoal_profile *profile, shoal_json *json, const char *key) {
  shoal_json_open(json, key, '{');
  shoal_json_text(json, "file", name_of(profile->file)); /* where it lies is nobody's business */
  shoal_dialect_write(&profile->dialect, json, "dialect");
  shoal_json_text(json, "sha256", profile->sha256);
  shoal_json_int(json, "rows", (int64_t)profile->rows);
  shoal_json_int(json, "ragged", (int64_t)profile->ragged);
  shoal_json_int(json, "ragged_line", (int64_t)profile->ragged_line);
  shoal_json_open(json, "columns", '[');
  for (uint32_t i = 0; i < profile->columns_count; i++) write_column(&profile->columns[i], json);
  shoal_json_close(json, ']');
  shoal_json_close(json, '}');
}

/* ---- reading ------------------------------------------------------------------------ */

static shoal_status fail_field(shoal_error *err, const char *field) {
  return shoal_fail(err, SHOAL_CORRUPT, "'%s' is missing or wrong", field);
}

/* A text of at most size - 1 bytes. */
static bool read_text(const cJSON *json, const char *key, char *out, size_t size) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
  if (!cJSON_IsString(item)) return false;
  size_t length = strlen(item->valuestring);
  if (length >= size || !shoal_utf8_valid(item->valuestring, length)) return false;
  memcpy(out, item->valuestring, length + 1);
  return true;
}

static bool read_kind(const cJSON *json, const char *key, shoal_column_kind *out) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
  return cJSON_IsString(item) && shoal_column_kind_parse(item->valuestring, out);
}

/* Infinite statistics (of very large numbers) are null. */
static shoal_status read_range(shoal_column *out, const cJSON *json, shoal_error *err) {
  out->mean = shoal_number_at(json, "mean");
  out->deviation = shoal_number_at(json, "deviation");
  if (!shoal_read_real_at(json, "min", -INFINITY, INFINITY, &out->min) ||
      !shoal_read_real_at(json, "max", -INFINITY, INFINITY, &out->max))
    return fail_field(err, "min");
  const cJSON *quartiles = cJSON_GetObjectItemCaseSensitive(json, "quartiles");
  const cJSON *histogram = cJSON_GetObjectItemCaseSensitive(json, "histogram");
  if (!cJSON_IsArray(quartiles) || cJSON_GetArraySize(quartiles) != 3) return fail_field(err, "quartiles");
  if (!cJSON_IsArray(histogram) || cJSON_GetArraySize(histogram) != SHOAL_HISTOGRAM_BARS)
    return fail_field(err, "histogram");
  int i = 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, quartiles) out->quartile[i++] = cJSON_IsNumber(item) ? item->valuedouble : NAN;
  i = 0;
  cJSON_ArrayForEach(item, histogram) {
    if (!shoal_read_whole(item, UINT64_MAX, &out->histogram[i++])) return fail_field(err, "histogram");
  }
  return SHOAL_OK;
}

static shoal_status read_categories(shoal_column *out, const cJSON *json, shoal_error *err) {
  shoal_status status =
      shoal_names_read(&out->categories, cJSON_GetObjectItemCaseSensitive(json, "categories"),
                       SHOAL_CATEGORIES_MAX, "categories", err);
  if (status != SHOAL_OK) return status;
  const cJSON *counts = cJSON_GetObjectItemCaseSensitive(json, "counts");
  if (!cJSON_IsArray(counts) || cJSON_GetArraySize(counts) != (int)out->categories.count)
    return fail_field(err, "counts");
  out->category_counts =
      calloc(out->categories.count ? out->categories.count : 1, sizeof *out->category_counts);
  if (!out->category_counts) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  uint32_t i = 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, counts) {
    if (!shoal_read_whole(item, UINT64_MAX, &out->category_counts[i++])) return fail_field(err, "counts");
  }
  return SHOAL_OK;
}

static shoal_status read_column(shoal_column *out, const cJSON *json, shoal_error *err) {
  char name[SHOAL_NAME_BYTES_MAX + 1];
  if (!read_text(json, "name", name, sizeof name) || name[0] == 0) return fail_field(err, "name");
  if (!read_kind(json, "kind", &out->kind) || !read_kind(json, "guessed", &out->guessed))
    return fail_field(err, "kind");
  if (!shoal_read_whole_at(json, "missing", UINT64_MAX, &out->missing) ||
      !shoal_read_whole_at(json, "distinct", UINT64_MAX, &out->distinct))
    return fail_field(err, "missing");
  const cJSON *used = cJSON_GetObjectItemCaseSensitive(json, "used");
  if (!cJSON_IsBool(used) ||
      (cJSON_IsTrue(used) && (out->kind == SHOAL_IDENTIFIER || out->kind == SHOAL_CONSTANT)))
    return fail_field(err, "used");
  out->used = cJSON_IsTrue(used);
  out->name = strdup(name);
  if (!out->name) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (out->kind == SHOAL_NUMBER && !read_text(json, "unit", out->unit, sizeof out->unit))
    return fail_field(err, "unit");
  out->day_first = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "day_first"));
  if (!read_text(json, "warning", out->warning, sizeof out->warning)) return fail_field(err, "warning");
  shoal_status status = SHOAL_OK;
  if (has_range(out)) status = read_range(out, json, err);
  if (out->kind == SHOAL_CATEGORY) status = read_categories(out, json, err);
  const cJSON *top = cJSON_GetObjectItemCaseSensitive(json, "top");
  if (status == SHOAL_OK && top) status = shoal_names_read(&out->top, top, SHOAL_TOP_VALUES, "top", err);
  return status;
}

/* No two columns may have one name. */
static shoal_status check_names(const shoal_profile *profile, shoal_error *err) {
  shoal_names names;
  shoal_names_init(&names);
  shoal_status status = SHOAL_OK;
  for (uint32_t i = 0; i < profile->columns_count && status == SHOAL_OK; i++) {
    const char *name = profile->columns[i].name;
    uint32_t number = shoal_names_add(&names, name, strlen(name));
    if (number == SHOAL_NO_NAME)
      status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
    else if (number != i)
      status = shoal_fail(err, SHOAL_CORRUPT, "two columns are called '%.60s'", name);
  }
  shoal_names_release(&names);
  return status;
}

static shoal_status read_all(shoal_profile *out, const cJSON *json, shoal_error *err) {
  const cJSON *file = cJSON_GetObjectItemCaseSensitive(json, "file");
  const cJSON *columns = cJSON_GetObjectItemCaseSensitive(json, "columns");
  if (!cJSON_IsString(file)) return fail_field(err, "file");
  out->file = strdup(file->valuestring);
  if (!out->file) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status =
      shoal_dialect_read(&out->dialect, cJSON_GetObjectItemCaseSensitive(json, "dialect"), err);
  if (status != SHOAL_OK) return status;
  if (!read_text(json, "sha256", out->sha256, sizeof out->sha256)) return fail_field(err, "sha256");
  if (!shoal_read_whole_at(json, "rows", UINT64_MAX, &out->rows)) return fail_field(err, "rows");
  if (!shoal_read_whole_at(json, "ragged", UINT64_MAX, &out->ragged) ||
      !shoal_read_whole_at(json, "ragged_line", UINT64_MAX, &out->ragged_line))
    return fail_field(err, "ragged");
  int count = cJSON_IsArray(columns) ? cJSON_GetArraySize(columns) : 0;
  if (count < 1 || count > SHOAL_COLUMNS_MAX) return fail_field(err, "columns");
  out->columns = calloc((size_t)count, sizeof *out->columns);
  if (!out->columns) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  out->columns_count = (uint32_t)count;
  uint32_t i = 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, columns) {
    status = read_column(&out->columns[i++], item, err);
    if (status == SHOAL_OK) continue;
    shoal_error_prefix(err, "column %u: ", i);
    return status;
  }
  return check_names(out, err);
}

shoal_status shoal_profile_from_json(shoal_profile *out, const cJSON *json, shoal_error *err) {
  shoal_profile_init(out);
  shoal_status status = read_all(out, json, err);
  if (status == SHOAL_OK) return SHOAL_OK;
  shoal_error_prefix(err, "profile: ");
  shoal_profile_release(out);
  return status;
}
