/* target.c: what a search is to predict; see encoder.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_at.h"
#include "search/encoder.h"

/* A whole number with more different values than this is a quantity, not a name. */
enum { CLASSES_OF_NUMBERS = 20 };

void shoal_target_init(shoal_target *target) {
  *target = (shoal_target){.deviation = 1, .positive = 1};
  shoal_names_init(&target->classes);
}

void shoal_target_release(shoal_target *target) {
  shoal_names_release(&target->classes);
  free(target->class_of);
  free(target->numbers);
  shoal_target_init(target);
}

/* ---- labels ------------------------------------------------------------------------- */

int32_t shoal_target_label(const shoal_target *target, const shoal_rows *rows, uint64_t row) {
  if (target->categories > 0) {
    uint32_t category = shoal_rows_category(rows, row, target->column);
    return category < target->categories ? target->class_of[category] : -1;
  }
  double value = shoal_rows_number(rows, row, target->column);
  uint32_t low = 0, high = target->classes.count;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (target->numbers[middle] < value)
      low = middle + 1;
    else
      high = middle;
  }
  return low < target->classes.count && target->numbers[low] == value ? (int32_t)low : -1;
}

float shoal_target_value(const shoal_target *target, const shoal_rows *rows, uint64_t row) {
  double value = shoal_rows_number(rows, row, target->column);
  return (float)((value - target->mean) / target->deviation);
}

static bool is_missing(const shoal_target *target, const shoal_rows *rows, uint64_t row) {
  if (target->categories > 0) return shoal_rows_category(rows, row, target->column) == SHOAL_MISSING;
  return isnan(shoal_rows_number(rows, row, target->column));
}

void shoal_target_count(const shoal_target *target, const shoal_rows *rows, const shoal_row_list *list,
                        shoal_answers *out) {
  *out = (shoal_answers){0};
  for (uint64_t i = 0, count = list ? list->count : shoal_rows_count(rows); i < count; i++) {
    uint64_t row = list ? list->at[i] : i;
    if (is_missing(target, rows, row))
      out->missing++;
    else if (target->problem == SHOAL_REGRESSION || shoal_target_label(target, rows, row) >= 0)
      out->known++;
    else if (out->other++ == 0)
      out->other_line = shoal_rows_line(rows, row);
  }
}

uint32_t shoal_target_width(const shoal_target *target) {
  return target->problem == SHOAL_REGRESSION ? 1 : target->classes.count;
}

/* ---- finding ------------------------------------------------------------------------ */

typedef struct finder {
  shoal_target *target;
  const shoal_rows *rows;
  const shoal_column *column;
  shoal_error *err;
} finder;

typedef struct sortable {
  const char *name;
  double number;
  uint32_t category;
} sortable;

static int by_number(const void *a, const void *b) {
  double x = ((const sortable *)a)->number, y = ((const sortable *)b)->number;
  return (x > y) - (x < y);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const sortable *)a)->name, ((const sortable *)b)->name);
}

static shoal_status too_many(const finder *f, uint64_t classes) {
  return shoal_fail(
      f->err, SHOAL_LIMIT,
      "the target '%s' has %s%llu different values; %d classes are the most: is it the right column?",
      f->column->name, classes > SHOAL_TARGET_CLASSES_MAX ? "more than " : "",
      (unsigned long long)SHOAL_TARGET_CLASSES_MAX, SHOAL_TARGET_CLASSES_MAX);
}

static shoal_status no_memory(const finder *f) {
  return shoal_fail(f->err, SHOAL_NO_MEMORY, "out of memory while looking at the target '%s'",
                    f->column->name);
}

/* Classes are the categories that rows have, in the order of their names, or of their numbers where all
 * are. */
static shoal_status find_categories(finder *f) {
  shoal_target *t = f->target;
  const shoal_names *names = &f->column->categories;
  t->categories = names->count;
  t->class_of = malloc((names->count + 1) * sizeof *t->class_of);
  bool *seen = calloc(names->count + 1, sizeof *seen);
  sortable *sorted = calloc(names->count + 1, sizeof *sorted);
  shoal_status status = t->class_of && seen && sorted ? SHOAL_OK : no_memory(f);
  uint32_t count = 0;
  bool numbers = true;
  for (uint64_t r = 0, rows = shoal_rows_count(f->rows); r < rows && status == SHOAL_OK; r++) {
    uint32_t category = shoal_rows_category(f->rows, r, t->column);
    if (category < names->count) seen[category] = true;
  }
  for (uint32_t c = 0; c < names->count && status == SHOAL_OK; c++) {
    t->class_of[c] = -1;
    if (!seen[c]) continue;
    sortable *s = &sorted[count++];
    *s = (sortable){.name = shoal_names_at(names, c), .category = c};
    numbers &= shoal_read_f64(s->name, strlen(s->name), &s->number);
  }
  if (status == SHOAL_OK && count > SHOAL_TARGET_CLASSES_MAX) status = too_many(f, count);
  if (status == SHOAL_OK) qsort(sorted, count, sizeof *sorted, numbers ? by_number : by_name);
  for (uint32_t i = 0; i < count && status == SHOAL_OK; i++) {
    t->class_of[sorted[i].category] = (int32_t)i;
    if (shoal_names_add(&t->classes, sorted[i].name, strlen(sorted[i].name)) == SHOAL_NO_NAME)
      status = no_memory(f);
  }
  free(seen);
  free(sorted);
  return status;
}

static int by_double(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The different numbers of the target, ascending, as long as there are at most `max`; *count is max + 1
 * above. */
static bool distinct_numbers(const finder *f, uint32_t max, double *out, uint32_t *count) {
  bool whole = true;
  *count = 0;
  for (uint64_t r = 0, rows = shoal_rows_count(f->rows); r < rows; r++) {
    double value = shoal_rows_number(f->rows, r, f->target->column);
    if (isnan(value)) continue;
    whole &= value == floor(value);
    if (*count > max || bsearch(&value, out, *count, sizeof *out, by_double)) continue;
    if ((*count)++ == max) continue;
    uint32_t at = *count - 1;
    for (; at > 0 && out[at - 1] > value; at--) out[at] = out[at - 1];
    out[at] = value;
  }
  return whole;
}

static shoal_status name_numbers(finder *f, uint32_t count) {
  if (count > SHOAL_TARGET_CLASSES_MAX) return too_many(f, count);
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_status status = SHOAL_OK;
  for (uint32_t c = 0; c < count && status == SHOAL_OK; c++) {
    shoal_text_clear(&text);
    json.comma = false;
    shoal_json_real(&json, NULL, f->target->numbers[c]);
    if (text.failed || shoal_names_add(&f->target->classes, text.bytes, text.length) == SHOAL_NO_NAME)
      status = no_memory(f);
  }
  shoal_text_release(&text);
  return status;
}

/* Mean and deviation of all rows, or of those that are marked. */
static shoal_status measure_numbers(const finder *f, const bool *marked) {
  shoal_target *t = f->target;
  double sum = 0, squares = 0;
  uint64_t count = 0, rows = shoal_rows_count(f->rows);
  for (uint64_t r = 0; r < rows; r++) {
    double value = shoal_rows_number(f->rows, r, t->column);
    if (isnan(value) || (marked && !marked[r])) continue;
    sum += value;
    count++;
  }
  t->mean = sum / (double)(count > 0 ? count : 1);
  for (uint64_t r = 0; r < rows; r++) {
    double value = shoal_rows_number(f->rows, r, t->column);
    if (isnan(value) || (marked && !marked[r])) continue;
    squares += (value - t->mean) * (value - t->mean);
  }
  t->deviation = sqrt(squares / (double)(count > 0 ? count : 1));
  if (!isfinite(t->mean) || !isfinite(t->deviation))
    return shoal_fail(f->err, SHOAL_INVALID,
                      "the numbers of the target '%s' are too large to predict: scale them down",
                      f->column->name);
  if (t->deviation == 0)
    return shoal_fail(f->err, SHOAL_INVALID,
                      "the target '%s' has the same value in all rows%s: there is nothing to predict",
                      f->column->name, marked ? " to learn from" : "");
  return SHOAL_OK;
}

static shoal_status find_numbers(finder *f, const shoal_problem *said) {
  shoal_target *t = f->target;
  uint32_t count;
  t->numbers = malloc((SHOAL_TARGET_CLASSES_MAX + 1) * sizeof *t->numbers);
  if (t->numbers == NULL) return no_memory(f);
  bool whole = distinct_numbers(f, SHOAL_TARGET_CLASSES_MAX, t->numbers, &count);
  bool regression = said ? *said == SHOAL_REGRESSION : count > CLASSES_OF_NUMBERS || !whole;
  if (!regression) return name_numbers(f, count);
  free(t->numbers);
  t->numbers = NULL;
  t->problem = SHOAL_REGRESSION;
  return measure_numbers(f, NULL);
}

/* Of the rows that are marked: the rarer of two classes, of equal ones the second. */
static void find_positive(const finder *f, const bool *marked) {
  uint64_t counts[2] = {0};
  for (uint64_t r = 0, rows = shoal_rows_count(f->rows); r < rows; r++) {
    int32_t label = marked[r] ? shoal_target_label(f->target, f->rows, r) : -1;
    if (label >= 0) counts[label]++;
  }
  f->target->positive = counts[0] < counts[1] ? 0 : 1;
}

shoal_status shoal_target_fit(shoal_target *target, const shoal_rows *rows, const shoal_profile *profile,
                              const shoal_table_split *split, shoal_error *err) {
  if (target->problem == SHOAL_MULTICLASS) return SHOAL_OK;
  finder f = {.target = target, .rows = rows, .column = &profile->columns[target->column], .err = err};
  bool *learns = calloc(shoal_rows_count(rows) + 1, sizeof *learns);
  if (learns == NULL) return no_memory(&f);
  for (uint32_t fold = 0; fold < split->folds; fold++)
    for (uint64_t i = 0; i < split->train[fold].count; i++) learns[split->train[fold].at[i]] = true;
  shoal_status status = SHOAL_OK;
  if (target->problem == SHOAL_BINARY)
    find_positive(&f, learns);
  else
    status = measure_numbers(&f, learns);
  free(learns);
  return status;
}

static bool has_rows(const finder *f, bool category) {
  for (uint64_t r = 0, rows = shoal_rows_count(f->rows); r < rows; r++)
    if (category ? shoal_rows_category(f->rows, r, f->target->column) < SHOAL_UNSEEN
                 : !isnan(shoal_rows_number(f->rows, r, f->target->column)))
      return true;
  return false;
}

static shoal_status check_found(const finder *f, const shoal_problem *said) {
  shoal_target *t = f->target;
  if (t->problem == SHOAL_REGRESSION && t->classes.count == 0) return SHOAL_OK;
  if (t->classes.count == 1)
    return shoal_fail(f->err, SHOAL_INVALID,
                      "the target '%s' has one class only, '%.100s': there is nothing to predict",
                      f->column->name, shoal_names_at(&t->classes, 0));
  if (said && *said == SHOAL_BINARY && t->classes.count != 2)
    return shoal_fail(f->err, SHOAL_INVALID,
                      "the target '%s' has %u classes, not two: leave the problem to be guessed",
                      f->column->name, t->classes.count);
  t->problem = t->classes.count == 2 ? SHOAL_BINARY : SHOAL_MULTICLASS;
  return SHOAL_OK;
}

shoal_status shoal_target_find(shoal_target *out, const shoal_rows *rows, const shoal_profile *profile,
                               uint32_t column, const shoal_problem *said, shoal_error *err) {
  const shoal_column *c = &profile->columns[column];
  shoal_target_init(out);
  out->column = column;
  finder f = {.target = out, .rows = rows, .column = c, .err = err};
  bool number = c->kind == SHOAL_NUMBER || c->kind == SHOAL_DATE, category = c->kind == SHOAL_CATEGORY;
  shoal_status status = SHOAL_OK;
  if (!number && !category)
    status = shoal_fail(
        err, SHOAL_INVALID,
        "the target '%s' is taken for %s, which cannot be predicted; if it is a number or a category, say "
        "so: %s=number or %s=category",
        c->name,
        c->kind == SHOAL_CONSTANT ? "a constant"
        : c->kind == SHOAL_TEXT   ? "free text"
                                  : "an identifier",
        c->name, c->name);
  else if (!has_rows(&f, category))
    status = shoal_fail(err, SHOAL_INVALID, "no row has a value in the target '%s'", c->name);
  else if (category && said && *said == SHOAL_REGRESSION)
    status = shoal_fail(err, SHOAL_INVALID,
                        "the target '%s' has classes, such as '%.100s', where a regression needs numbers",
                        c->name, shoal_names_at(&c->categories, 0));
  if (status == SHOAL_OK) status = category ? find_categories(&f) : find_numbers(&f, said);
  if (status == SHOAL_OK) status = check_found(&f, said);
  if (status != SHOAL_OK) shoal_target_release(out);
  return status;
}

shoal_status shoal_target_copy(shoal_target *out, const shoal_target *target, shoal_error *err) {
  shoal_target_init(out);
  out->column = target->column;
  out->problem = target->problem;
  out->positive = target->positive;
  out->mean = target->mean;
  out->deviation = target->deviation;
  out->categories = target->categories;
  bool whole = true;
  uint32_t classes = target->classes.count;
  for (uint32_t c = 0; c < classes && whole; c++) {
    const char *name = shoal_names_at(&target->classes, c);
    whole = shoal_names_add(&out->classes, name, strlen(name)) != SHOAL_NO_NAME;
  }
  if (target->class_of) {
    out->class_of = malloc((target->categories + 1) * sizeof *out->class_of);
    if (out->class_of) memcpy(out->class_of, target->class_of, target->categories * sizeof *out->class_of);
    whole &= out->class_of != NULL;
  }
  if (target->numbers) {
    out->numbers = malloc((classes + 1) * sizeof *out->numbers);
    if (out->numbers) memcpy(out->numbers, target->numbers, classes * sizeof *out->numbers);
    whole &= out->numbers != NULL;
  }
  if (whole) return SHOAL_OK;
  shoal_target_release(out);
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

/* ---- as JSON ------------------------------------------------------------------------ */

void shoal_target_write(const shoal_target *target, shoal_json *json, const char *key) {
  shoal_json_open(json, key, '{');
  shoal_json_int(json, "column", target->column);
  shoal_json_text(json, "problem", shoal_problem_name(target->problem));
  if (target->problem == SHOAL_REGRESSION) {
    shoal_json_real(json, "mean", target->mean);
    shoal_json_real(json, "deviation", target->deviation);
  } else {
    shoal_names_write(&target->classes, json, "classes");
    if (target->problem == SHOAL_BINARY) shoal_json_int(json, "positive", target->positive);
    shoal_json_open(json, target->categories > 0 ? "class_of" : "numbers", '[');
    for (uint32_t c = 0; c < target->categories; c++) shoal_json_int(json, NULL, target->class_of[c]);
    for (uint32_t c = 0; target->categories == 0 && c < target->classes.count; c++)
      shoal_json_real(json, NULL, target->numbers[c]);
    shoal_json_close(json, ']');
  }
  shoal_json_close(json, '}');
}

static bool read_class_of(shoal_target *t, const cJSON *array, const shoal_column *column) {
  if (!cJSON_IsArray(array) || (uint32_t)cJSON_GetArraySize(array) != column->categories.count) return false;
  t->categories = column->categories.count;
  t->class_of = malloc((t->categories + 1) * sizeof *t->class_of);
  if (t->class_of == NULL || t->categories == 0) return false;
  uint32_t i = 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, array) {
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= -1 && item->valuedouble < t->classes.count))
      return false;
    t->class_of[i++] = (int32_t)item->valuedouble;
  }
  return true;
}

static bool read_numbers(shoal_target *t, const cJSON *array) {
  if (!cJSON_IsArray(array) || (uint32_t)cJSON_GetArraySize(array) != t->classes.count) return false;
  t->numbers = malloc((t->classes.count + 1) * sizeof *t->numbers);
  if (t->numbers == NULL) return false;
  uint32_t i = 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, array) {
    if (!cJSON_IsNumber(item) || (i > 0 && !(item->valuedouble > t->numbers[i - 1]))) return false;
    t->numbers[i++] = item->valuedouble;
  }
  return true;
}

/* Older files do not say it: then it is the second class. */
static bool read_positive(shoal_target *t, const cJSON *json) {
  double positive = 1;
  if (cJSON_HasObjectItem(json, "positive") &&
      !shoal_read_real_at(json, "positive", -INFINITY, INFINITY, &positive))
    return false;
  t->positive = positive == 0 ? 0 : 1;
  return positive == 0 || positive == 1;
}

static bool read_classes(shoal_target *t, const cJSON *json, const shoal_column *column, shoal_error *err) {
  if (shoal_names_read(&t->classes, cJSON_GetObjectItemCaseSensitive(json, "classes"),
                       SHOAL_TARGET_CLASSES_MAX, "the target's classes", err) != SHOAL_OK)
    return false;
  if (t->classes.count < 2 || (t->problem == SHOAL_BINARY) != (t->classes.count == 2)) return false;
  if (!read_positive(t, json)) return false;
  if (column->kind == SHOAL_CATEGORY)
    return read_class_of(t, cJSON_GetObjectItemCaseSensitive(json, "class_of"), column);
  return read_numbers(t, cJSON_GetObjectItemCaseSensitive(json, "numbers"));
}

shoal_status shoal_target_read(shoal_target *out, const cJSON *json, const shoal_profile *profile,
                               shoal_error *err) {
  shoal_target_init(out);
  double column;
  const cJSON *problem = cJSON_GetObjectItemCaseSensitive(json, "problem");
  bool good = shoal_read_real_at(json, "column", -INFINITY, INFINITY, &column) && column >= 0 &&
              column < profile->columns_count && cJSON_IsString(problem) &&
              shoal_problem_parse(problem->valuestring, &out->problem);
  if (good) {
    out->column = (uint32_t)column;
    const shoal_column *c = &profile->columns[out->column];
    bool number = c->kind == SHOAL_NUMBER || c->kind == SHOAL_DATE;
    if (out->problem == SHOAL_REGRESSION)
      good = number && shoal_read_real_at(json, "mean", -INFINITY, INFINITY, &out->mean) &&
             shoal_read_real_at(json, "deviation", -INFINITY, INFINITY, &out->deviation) &&
             out->deviation > 0;
    else
      good = (number || c->kind == SHOAL_CATEGORY) && read_classes(out, json, c, err);
  }
  if (good) return SHOAL_OK;
  shoal_target_release(out);
  return shoal_fail(err, SHOAL_CORRUPT,
                    "what is to be predicted ('target') is damaged or does not fit the columns");
}
