/* encoder_json.c: an encoder as JSON, and back; see encoder.h. Reading trusts nothing: a model file may
 * come from anywhere, and what is read is used without further checks. */
#include <math.h>
#include <string.h>

#include "base/json_at.h"
#include "search/encoder_internal.h"

static const char *const kind_names[SHOAL_FEATURES] = {
    [SHOAL_FEATURE_SCALED] = "scaled", [SHOAL_FEATURE_TABLE] = "table",
    [SHOAL_FEATURE_PIECES] = "pieces", [SHOAL_FEATURE_MISSING] = "missing",
    [SHOAL_FEATURE_CYCLE] = "cycle",   [SHOAL_FEATURE_ONE_HOT] = "one-hot",
    [SHOAL_FEATURE_LABEL] = "label",   [SHOAL_FEATURE_LOOKUP] = "lookup",
    [SHOAL_FEATURE_TEXT] = "text",
};
static const char *const part_names[SHOAL_DATE_PARTS] = {"whole", "year", "day", "month", "weekday", "hour"};
const char *const shoal_number_ways[] = {"standard", "robust", "quantile", "pieces", NULL};
const char *const shoal_category_ways[] = {"one-hot", "label", "lookup", NULL};
enum { NUMBER_WAYS = 4, CATEGORY_WAYS = 3 };

/* ---- writing ------------------------------------------------------------------------ */

static void write_reals(shoal_json *json, const char *key, const double *values, uint32_t count) {
  shoal_json_open(json, key, '[');
  for (uint32_t i = 0; i < count; i++) shoal_json_real(json, NULL, values[i]);
  shoal_json_close(json, ']');
}

bool shoal_feature_has_scale(shoal_feature_kind kind) {
  return kind == SHOAL_FEATURE_SCALED || kind == SHOAL_FEATURE_LABEL;
}

bool shoal_feature_has_slots(shoal_feature_kind kind) {
  return kind == SHOAL_FEATURE_ONE_HOT || kind == SHOAL_FEATURE_LABEL || kind == SHOAL_FEATURE_LOOKUP;
}

bool shoal_feature_has_points(shoal_feature_kind kind) {
  return kind == SHOAL_FEATURE_TABLE || kind == SHOAL_FEATURE_PIECES;
}

static void write_feature(const shoal_feature *f, shoal_json *json) {
  shoal_json_open(json, NULL, '{');
  shoal_json_text(json, "kind", kind_names[f->kind]);
  shoal_json_int(json, "column", f->column);
  if (f->part != SHOAL_PART_WHOLE) shoal_json_text(json, "part", part_names[f->part]);
  if (shoal_feature_has_scale(f->kind)) {
    shoal_json_real(json, "centre", f->centre);
    shoal_json_real(json, "scale", f->scale);
  }
  if (shoal_feature_has_points(f->kind)) {
    write_reals(json, "at", f->at, f->points);
    write_reals(json, "to", f->to, f->kind == SHOAL_FEATURE_TABLE ? f->points : f->points - 1);
  }
  if (shoal_feature_has_slots(f->kind)) {
    shoal_json_int(json, "slots", f->slots);
    shoal_json_int(json, "missing", f->missing);
    shoal_json_int(json, "skip", f->skip);
    shoal_json_open(json, "slot_of", '[');
    for (uint32_t c = 0; c < f->categories; c++) shoal_json_int(json, NULL, f->slot_of[c]);
    shoal_json_close(json, ']');
  }
  if (f->kind == SHOAL_FEATURE_TEXT) {
    shoal_json_int(json, "values", f->values);
    write_reals(json, "weights", f->to, f->points);
  }
  shoal_json_close(json, '}');
}

static void write_choice(const shoal_encoding_choice *choice, shoal_json *json) {
  shoal_json_text(json, "numbers", shoal_number_ways[choice->numbers]);
  shoal_json_int(json, "pieces", choice->pieces);
  shoal_json_text(json, "categories", shoal_category_ways[choice->categories]);
  shoal_json_int(json, "one_hot_max", choice->one_hot_max);
  shoal_json_int(json, "text_values", choice->text_values);
}

void shoal_encoder_write_choice(const shoal_encoder *e, shoal_json *json, const char *key) {
  shoal_json_open(json, key, '{');
  write_choice(&e->choice, json);
  shoal_json_close(json, '}');
}

void shoal_encoder_write(const shoal_encoder *e, shoal_json *json, const char *key) {
  shoal_json_open(json, key, '{');
  write_choice(&e->choice, json);
  shoal_json_open(json, "features", '[');
  for (uint32_t i = 0; i < e->features_count; i++) write_feature(&e->features[i], json);
  shoal_json_close(json, ']');
  shoal_json_close(json, '}');
}

/* ---- reading ------------------------------------------------------------------------ */

static bool read_word(const cJSON *json, const char *key, const char *const *words, uint32_t count,
                      uint32_t *out) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
  for (uint32_t i = 0; i < count && cJSON_IsString(item); i++) {
    if (strcmp(item->valuestring, words[i]) != 0) continue;
    *out = i;
    return true;
  }
  return false;
}

/* Finite numbers; ascending where they must be. */
static double *read_reals(shoal_encoder *e, const cJSON *json, const char *key, bool ascending,
                          uint32_t *count) {
  const cJSON *array = cJSON_GetObjectItemCaseSensitive(json, key), *item;
  if (!cJSON_IsArray(array)) return NULL;
  *count = (uint32_t)cJSON_GetArraySize(array);
  double *out = shoal_arena_array(&e->memory, (size_t)*count + 1, sizeof *out);
  uint32_t i = 0;
  if (out == NULL) return NULL;
  cJSON_ArrayForEach(item, array) {
    if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble)) return NULL;
    if (ascending && i > 0 && !(item->valuedouble > out[i - 1])) return NULL;
    out[i++] = item->valuedouble;
  }
  return out;
}

static bool read_points(shoal_encoder *e, shoal_feature *f, const cJSON *json) {
  uint32_t to = 0;
  f->at = read_reals(e, json, "at", true, &f->points);
  f->to = read_reals(e, json, "to", false, &to);
  if (f->at == NULL || f->to == NULL || f->points < 2) return false;
  bool table = f->kind == SHOAL_FEATURE_TABLE;
  f->values = table ? 1 : f->points - 1;
  return to == (table ? f->points : f->points - 1);
}

static bool read_slots(shoal_encoder *e, shoal_feature *f, const cJSON *json, const shoal_column *column) {
  const cJSON *array = cJSON_GetObjectItemCaseSensitive(json, "slot_of"), *item;
  if (!shoal_read_u32_at(json, "slots", SHOAL_CATEGORIES_MAX + 2, &f->slots) || f->slots < 1 ||
      !shoal_read_u32_at(json, "missing", 1, &f->missing) || f->missing >= f->slots ||
      !shoal_read_u32_at(json, "skip", 1, &f->skip))
    return false;
  if (!cJSON_IsArray(array) || (uint32_t)cJSON_GetArraySize(array) != column->categories.count) return false;
  if (f->slots > column->categories.count + 2) return false;
  f->categories = column->categories.count;
  f->slot_of = shoal_arena_array(&e->memory, (size_t)f->categories + 1, sizeof *f->slot_of);
  if (f->slot_of == NULL) return false;
  uint32_t i = 0;
  cJSON_ArrayForEach(item, array) {
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble < f->slots)) return false;
    f->slot_of[i++] = (uint32_t)item->valuedouble;
  }
  f->values = f->kind == SHOAL_FEATURE_ONE_HOT ? f->slots - f->skip : 1;
  return f->values > 0;
}

static bool read_text(shoal_encoder *e, shoal_feature *f, const cJSON *json) {
  f->to = read_reals(e, json, "weights", false, &f->points);
  return f->to != NULL && f->points == SHOAL_TEXT_BUCKETS &&
         shoal_read_u32_at(json, "values", SHOAL_TEXT_VALUES_MAX, &f->values) && f->values > 0;
}

bool shoal_feature_fits(const shoal_feature *f, shoal_column_kind kind) {
  if (shoal_feature_has_slots(f->kind)) return kind == SHOAL_CATEGORY && f->part == SHOAL_PART_WHOLE;
  if (f->kind == SHOAL_FEATURE_TEXT) return kind == SHOAL_TEXT && f->part == SHOAL_PART_WHOLE;
  if (f->kind == SHOAL_FEATURE_CYCLE) return kind == SHOAL_DATE && f->part >= SHOAL_PART_MONTH;
  return kind == SHOAL_DATE || (kind == SHOAL_NUMBER && f->part == SHOAL_PART_WHOLE);
}

static bool read_feature(shoal_encoder *e, const cJSON *json, const shoal_profile *profile) {
  shoal_feature f = {.values = 1};
  uint32_t kind, part = SHOAL_PART_WHOLE;
  if (profile->columns_count == 0 || !read_word(json, "kind", kind_names, SHOAL_FEATURES, &kind) ||
      !shoal_read_u32_at(json, "column", profile->columns_count - 1, &f.column))
    return false;
  if (cJSON_HasObjectItem(json, "part") && !read_word(json, "part", part_names, SHOAL_DATE_PARTS, &part))
    return false;
  f.kind = (shoal_feature_kind)kind;
  f.part = (shoal_date_part)part;
  const shoal_column *column = &profile->columns[f.column];
  if (!column->used || !shoal_feature_fits(&f, column->kind)) return false;
  if (shoal_feature_has_scale(f.kind) &&
      !(shoal_read_real_at(json, "centre", -INFINITY, INFINITY, &f.centre) &&
        shoal_read_real_at(json, "scale", -INFINITY, INFINITY, &f.scale) && f.scale > 0))
    return false;
  if (shoal_feature_has_points(f.kind) && !read_points(e, &f, json)) return false;
  if (shoal_feature_has_slots(f.kind) && !read_slots(e, &f, json, column)) return false;
  if (f.kind == SHOAL_FEATURE_TEXT && !read_text(e, &f, json)) return false;
  if (f.kind == SHOAL_FEATURE_CYCLE) f.values = 2;
  return shoal_encoder_append(e, &f) != NULL;
}

bool shoal_encoder_read_choice(const cJSON *json, shoal_encoding_choice *out) {
  uint32_t numbers, categories;
  if (!read_word(json, "numbers", shoal_number_ways, NUMBER_WAYS, &numbers) ||
      !read_word(json, "categories", shoal_category_ways, CATEGORY_WAYS, &categories))
    return false;
  out->numbers = (shoal_number_way)numbers;
  out->categories = (shoal_category_way)categories;
  return shoal_read_u32_at(json, "pieces", SHOAL_PIECES_MAX, &out->pieces) &&
         shoal_read_u32_at(json, "one_hot_max", UINT32_MAX, &out->one_hot_max) &&
         shoal_read_u32_at(json, "text_values", UINT32_MAX, &out->text_values);
}

shoal_status shoal_encoder_read(shoal_encoder **out, const shoal_profile *profile, const cJSON *json,
                                shoal_error *err) {
  *out = NULL;
  shoal_encoding_choice choice = {0};
  const cJSON *features = cJSON_GetObjectItemCaseSensitive(json, "features"), *item;
  if (!shoal_encoder_read_choice(json, &choice) || !cJSON_IsArray(features))
    return shoal_fail(err, SHOAL_CORRUPT, "what turns cells into values ('encoder') is damaged");
  shoal_encoder *e = shoal_encoder_new(&choice);
  if (e == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status = SHOAL_OK;
  uint32_t number = 0;
  cJSON_ArrayForEach(item, features) {
    number++;
    if (read_feature(e, item, profile)) continue;
    status = shoal_fail(err, SHOAL_CORRUPT, "feature %u of the encoder is damaged or does not fit its column",
                        number);
    break;
  }
  if (status == SHOAL_OK) status = shoal_encoder_place(e, err);
  if (status == SHOAL_OK && e->values == 0)
    status = shoal_fail(err, SHOAL_CORRUPT, "the encoder has no features");
  if (status == SHOAL_OK)
    *out = e;
  else
    shoal_encoder_destroy(e);
  return status;
}
