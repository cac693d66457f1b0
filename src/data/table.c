/* table.c: from the rows of a CSV file to numbers.
 *
 * A file is read once, row by row, into a table that grows; classes are numbered as they appear and
 * sorted at the end. Then the rows are split and, when it is known which of them are for training,
 * scaled. */
#include "data/table.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/bytes.h"
#include "data/csv.h"
#include "data/limits.h"

static const char *const kind_names[] = {"classes", "two", "number"};

/* One row in five is for test. */
static const double test_share = 0.2;

static shoal_status fail_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

void shoal_table_init(shoal_table *table) { *table = (shoal_table){0}; }

void shoal_table_release(shoal_table *table) {
  shoal_names_release(&table->columns);
  shoal_names_release(&table->classes);
  free(table->mean);
  free(table->deviation);
  free(table->target);
  free(table->raw);
  free(table->values);
  free(table->targets);
  free(table->labels);
  shoal_table_init(table);
}

/* ---- fitted ------------------------------------------------------------------------- */

void shoal_table_write(const shoal_table *table, shoal_json *json) {
  shoal_json_bool(json, "header", table->header);
  shoal_names_write(&table->columns, json, "columns");
  shoal_json_open(json, "mean", '[');
  for (uint32_t i = 0; i < table->columns.count; i++) shoal_json_real(json, NULL, table->mean[i]);
  shoal_json_close(json, ']');
  shoal_json_open(json, "deviation", '[');
  for (uint32_t i = 0; i < table->columns.count; i++) shoal_json_real(json, NULL, table->deviation[i]);
  shoal_json_close(json, ']');
  shoal_json_text(json, "target", table->target ? table->target : "");
  shoal_json_int(json, "target_column", table->target_column);
  shoal_json_text(json, "target_kind", kind_names[table->target_kind]);
  shoal_names_write(&table->classes, json, "classes");
  shoal_json_text(json, "sha256", table->sha256);
}

static shoal_status read_reals(double **out, const cJSON *json, const char *key, uint32_t count,
                               shoal_error *err) {
  const cJSON *array = cJSON_GetObjectItemCaseSensitive(json, key);
  if (!cJSON_IsArray(array) || cJSON_GetArraySize(array) != (int)count)
    return shoal_fail(err, SHOAL_CORRUPT, "'%s' is not a list of %u numbers", key, count);
  *out = calloc(count ? count : 1, sizeof **out);
  if (!*out) return fail_memory(err);
  uint32_t i = 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, array) {
    if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble))
      return shoal_fail(err, SHOAL_CORRUPT, "'%s': item %u is not a number", key, i + 1);
    (*out)[i++] = item->valuedouble;
  }
  return SHOAL_OK;
}

shoal_status shoal_table_read_fitted(shoal_table *table, const cJSON *json, shoal_error *err) {
  const cJSON *target = cJSON_GetObjectItemCaseSensitive(json, "target");
  const cJSON *target_column = cJSON_GetObjectItemCaseSensitive(json, "target_column");
  const cJSON *kind = cJSON_GetObjectItemCaseSensitive(json, "target_kind");
  const cJSON *sha256 = cJSON_GetObjectItemCaseSensitive(json, "sha256");
  shoal_status status = shoal_names_read(&table->columns, cJSON_GetObjectItemCaseSensitive(json, "columns"),
                                         SHOAL_CSV_COLUMNS_MAX, "columns", err);
  if (status == SHOAL_OK)
    status = shoal_names_read(&table->classes, cJSON_GetObjectItemCaseSensitive(json, "classes"),
                              SHOAL_CLASSES_MAX, "classes", err);
  if (status == SHOAL_OK) status = read_reals(&table->mean, json, "mean", table->columns.count, err);
  if (status == SHOAL_OK)
    status = read_reals(&table->deviation, json, "deviation", table->columns.count, err);
  if (status != SHOAL_OK) return status;
  if (table->columns.count == 0) return shoal_fail(err, SHOAL_CORRUPT, "'columns' is empty");
  for (uint32_t i = 0; i < table->columns.count; i++) {
    if (table->deviation[i] <= 0)
      return shoal_fail(err, SHOAL_CORRUPT, "'deviation': item %u is not above zero", i + 1);
  }

  if (!cJSON_IsString(target) || !shoal_utf8_valid(target->valuestring, strlen(target->valuestring)) ||
      !cJSON_IsNumber(target_column) || target_column->valuedouble < 0 ||
      target_column->valuedouble > table->columns.count)
    return shoal_fail(err, SHOAL_CORRUPT, "'target' or 'target_column' is missing or wrong");
  int kinds = sizeof kind_names / sizeof *kind_names, k = 0;
  while (k < kinds && !(cJSON_IsString(kind) && strcmp(kind->valuestring, kind_names[k]) == 0)) k++;
  if (k == kinds) return shoal_fail(err, SHOAL_CORRUPT, "'target_kind' is missing or wrong");
  if ((k == SHOAL_TARGET_NUMBER) != (table->classes.count == 0) ||
      (k == SHOAL_TARGET_TWO && table->classes.count != 2))
    return shoal_fail(err, SHOAL_CORRUPT, "'classes' do not fit 'target_kind'");

  table->header = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "header"));
  table->target = strdup(target->valuestring);
  table->target_column = (uint32_t)target_column->valuedouble;
  table->target_kind = (shoal_target_kind)k;
  if (cJSON_IsString(sha256) && strlen(sha256->valuestring) == sizeof table->sha256 - 1)
    memcpy(table->sha256, sha256->valuestring, sizeof table->sha256);
  table->fitted = true;
  return table->target ? SHOAL_OK : fail_memory(err);
}

/* ---- header and columns ------------------------------------------------------------- */

/* What a column of the file is. */
enum { COLUMN_IGNORED = -1, COLUMN_TARGET = -2 }; /* or the number of the feature */

/* A file while it is read. */
typedef struct sheet {
  const char *path;
  shoal_bytes bytes;
  shoal_csv csv;
  bool header;
  shoal_names names; /* of all its columns */
  int32_t *columns;  /* one a column, as above */
  uint64_t first;    /* rows that were read from another file before */
} sheet;

static void sheet_release(sheet *s) {
  shoal_csv_release(&s->csv);
  shoal_names_release(&s->names);
  shoal_bytes_close(&s->bytes);
  free(s->columns);
}

/* Names the columns, after the first row where that is a header. */
static shoal_status read_header(sheet *s, shoal_error *err) {
  bool more;
  shoal_status status = shoal_csv_next(&s->csv, &more, err);
  if (status != SHOAL_OK) return status;
  if (!more) return shoal_fail(err, SHOAL_CORRUPT, "%s: there is nothing in this file", s->path);
  uint32_t count = s->csv.cells_count;
  if (!s->header) shoal_csv_rewind(&s->csv);
  for (uint32_t i = 0; i < count; i++) {
    const shoal_csv_cell *cell = s->header ? &s->csv.cells[i] : NULL;
    char place[32];
    int length = snprintf(place, sizeof place, "column %u", i + 1);
    if (cell && (cell->length > SHOAL_NAME_BYTES_MAX || !shoal_utf8_valid(cell->text, cell->length)))
      return shoal_fail(err, SHOAL_CORRUPT,
                        "%s:%" PRIu64 ":%" PRIu64 ": the name of a column is not UTF-8 or too long", s->path,
                        cell->line, cell->column);
    bool named = cell && cell->length > 0;
    uint32_t number =
        shoal_names_add(&s->names, named ? cell->text : place, named ? cell->length : (size_t)length);
    if (number == SHOAL_NO_NAME) return fail_memory(err);
    if (number != i)
      return shoal_fail(err, SHOAL_CORRUPT, "%s:%" PRIu64 ":%" PRIu64 ": a second column called '%.60s'",
                        s->path, cell ? cell->line : 1, cell ? cell->column : 1,
                        shoal_names_at(&s->names, number));
  }
  return SHOAL_OK;
}

/* The place of the target column that a person named. */
static shoal_status find_target(const sheet *s, const char *target, uint32_t *out, shoal_error *err) {
  *out = s->names.count - 1;
  if (!target) return SHOAL_OK;
  uint64_t place;
  *out = shoal_names_find(&s->names, target, strlen(target));
  if (*out != SHOAL_NO_NAME) return SHOAL_OK;
  if (shoal_read_u64(target, strlen(target), &place) && place >= 1 && place <= s->names.count) {
    *out = (uint32_t)place - 1;
    return SHOAL_OK;
  }
  return shoal_names_fail_column(&s->names, s->path, target, err);
}

/* Names the features of the table after the first file: all columns but the target. */
static shoal_status choose_columns(shoal_table *table, const sheet *s, const char *target, shoal_error *err) {
  shoal_status status = find_target(s, target, &table->target_column, err);
  if (status != SHOAL_OK) return status;
  if (s->names.count < 2)
    return shoal_fail(err, SHOAL_INVALID, "%s: has one column; features and a target are needed", s->path);
  table->header = s->header;
  table->target = strdup(shoal_names_at(&s->names, table->target_column));
  bool failed = !table->target;
  for (uint32_t i = 0; i < s->names.count; i++) {
    const char *name = shoal_names_at(&s->names, i);
    if (i != table->target_column)
      failed |= shoal_names_add(&table->columns, name, strlen(name)) == SHOAL_NO_NAME;
  }
  return failed ? fail_memory(err) : SHOAL_OK;
}

/* Says for each column of a file what it is to the table. */
static shoal_status match_columns(const shoal_table *table, sheet *s, bool labeled, shoal_error *err) {
  uint32_t features = table->columns.count, count = s->names.count;
  s->columns = malloc(count * sizeof *s->columns);
  if (!s->columns) return fail_memory(err);
  for (uint32_t i = 0; i < count; i++) s->columns[i] = COLUMN_IGNORED;

  if (!s->header || !table->header) {
    bool target = count == features + 1;
    if (!target && (labeled || count != features))
      return shoal_fail(err, SHOAL_INVALID, "%s: %u columns, where the training data have %u and a target",
                        s->path, count, features);
    for (uint32_t i = 0; i < count; i++) {
      bool after = target && i > table->target_column;
      s->columns[i] = target && i == table->target_column ? COLUMN_TARGET : (int32_t)(i - after);
    }
    return SHOAL_OK;
  }
  for (uint32_t i = 0; i < features; i++) {
    const char *name = shoal_names_at(&table->columns, i);
    uint32_t column = shoal_names_find(&s->names, name, strlen(name));
    if (column == SHOAL_NO_NAME)
      return shoal_fail(err, SHOAL_INVALID, "%s: the column '%.60s' of the training data is missing", s->path,
                        name);
    s->columns[column] = (int32_t)i;
  }
  uint32_t column = shoal_names_find(&s->names, table->target, strlen(table->target));
  if (column == SHOAL_NO_NAME && labeled)
    return shoal_fail(
        err, SHOAL_INVALID,
        "%s: the target column '%.60s' is missing; to predict without it, use `shoal predict --input`",
        s->path, table->target);
  if (column != SHOAL_NO_NAME && s->columns[column] == COLUMN_IGNORED) s->columns[column] = COLUMN_TARGET;
  return SHOAL_OK;
}

/* ---- rows --------------------------------------------------------------------------- */

/* A growing table: rows of raw numbers and what their target is. */
typedef struct growing {
  uint64_t rows, capacity;
  double *raw;
  double *targets;  /* NUMBER */
  uint32_t *labels; /* else: numbers in table->classes as they stand while reading */
} growing;

static void growing_release(growing *g) {
  free(g->raw);
  free(g->targets);
  free(g->labels);
}

static shoal_status reserve_row(growing *g, uint32_t features, const sheet *s, shoal_error *err) {
  if (g->rows < g->capacity) return SHOAL_OK;
  uint64_t capacity = g->capacity ? g->capacity * 2 : 256;
  if (g->rows * features >= SHOAL_TABLE_VALUES_MAX)
    return shoal_fail(err, SHOAL_LIMIT, "%s:%" PRIu64 ": more than %" PRIu64 " numbers", s->path, s->csv.line,
                      SHOAL_TABLE_VALUES_MAX);
  double *raw = realloc(g->raw, capacity * features * sizeof *raw);
  if (raw) g->raw = raw;
  double *targets = realloc(g->targets, capacity * sizeof *targets);
  if (targets) g->targets = targets;
  uint32_t *labels = realloc(g->labels, capacity * sizeof *labels);
  if (labels) g->labels = labels;
  if (!raw || !targets || !labels) return fail_memory(err);
  g->capacity = capacity;
  return SHOAL_OK;
}

static shoal_status fail_cell(const sheet *s, uint32_t column, shoal_error *err, const char *advice) {
  const shoal_csv_cell *cell = &s->csv.cells[column];
  int shown = cell->length > 60 ? 60 : (int)cell->length;
  return shoal_fail(err, SHOAL_INVALID, "%s:%" PRIu64 ":%" PRIu64 ": column '%.60s' holds '%.*s'%s", s->path,
                    cell->line, cell->column, shoal_names_at(&s->names, column), shown, cell->text, advice);
}

static shoal_status read_number(const sheet *s, uint32_t column, double *out, const char *advice,
                                shoal_error *err) {
  const shoal_csv_cell *cell = &s->csv.cells[column];
  if (!shoal_read_f64(cell->text, cell->length, out)) return fail_cell(s, column, err, advice);
  if (fabs(*out) > FLT_MAX) return fail_cell(s, column, err, ", which is too large a number");
  return SHOAL_OK;
}

static shoal_status read_target(shoal_table *table, growing *g, const sheet *s, uint32_t column,
                                shoal_error *err) {
  const shoal_csv_cell *cell = &s->csv.cells[column];
  g->targets[g->rows] = 0;
  g->labels[g->rows] = 0;
  if (cell->length == 0)
    return shoal_fail(err, SHOAL_INVALID, "%s:%" PRIu64 ":%" PRIu64 ": the target, column '%.60s', is empty",
                      s->path, cell->line, cell->column, table->target);
  if (table->target_kind == SHOAL_TARGET_NUMBER)
    return read_number(s, column, &g->targets[g->rows],
                       ", which is not a number; for classes the model needs `loss cross-entropy`", err);
  if (cell->length > SHOAL_NAME_BYTES_MAX || !shoal_utf8_valid(cell->text, cell->length))
    return shoal_fail(err, SHOAL_INVALID,
                      "%s:%" PRIu64 ":%" PRIu64 ": the name of a class is not UTF-8 or too long", s->path,
                      cell->line, cell->column);
  uint32_t known = shoal_names_find(&table->classes, cell->text, cell->length);
  if (known == SHOAL_NO_NAME && (table->fitted || s->first > 0))
    return fail_cell(s, column, err, ", which is no class of the training data");
  if (known == SHOAL_NO_NAME && table->target_kind == SHOAL_TARGET_TWO && table->classes.count == 2)
    return fail_cell(s, column, err, ", a third class; `loss binary-cross-entropy` takes two");
  if (known == SHOAL_NO_NAME && table->classes.count >= SHOAL_CLASSES_MAX)
    return fail_cell(s, column, err, ": there are too many classes; is it a number?");
  if (known == SHOAL_NO_NAME) known = shoal_names_add(&table->classes, cell->text, cell->length);
  g->labels[g->rows] = known;
  return known == SHOAL_NO_NAME ? fail_memory(err) : SHOAL_OK;
}

static shoal_status read_row(shoal_table *table, growing *g, const sheet *s, bool labeled, shoal_error *err) {
  uint32_t features = table->columns.count;
  if (s->csv.cells_count != s->names.count)
    return shoal_fail(err, SHOAL_CORRUPT, "%s:%" PRIu64 ": %u cells, where the first row has %u", s->path,
                      s->csv.cells[0].line, s->csv.cells_count, s->names.count);
  shoal_status status = reserve_row(g, features, s, err);
  for (uint32_t i = 0; i < s->csv.cells_count && status == SHOAL_OK; i++) {
    int32_t what = s->columns[i];
    if (what == COLUMN_TARGET && labeled) status = read_target(table, g, s, i, err);
    if (what < 0) continue;
    double *value = &g->raw[g->rows * features + (uint32_t)what];
    if (shoal_cell_is_missing(s->csv.cells[i].text, s->csv.cells[i].length))
      *value = NAN;
    else
      status = read_number(s, i, value,
                           ", which is not a number; only numbers can be features: write the column as "
                           "numbers, or leave it out; `shoal search` takes words",
                           err);
  }
  if (status == SHOAL_OK) g->rows++;
  return status;
}

/* Finds out how the file is written. Its text must be UTF-8 as it is. */
static shoal_status open_rows(sheet *s, shoal_error *err) {
  const char *bytes = (const char *)s->bytes.data;
  shoal_dialect dialect;
  shoal_status status = shoal_dialect_guess(&dialect, NULL, s->path, bytes, s->bytes.length, err);
  if (status != SHOAL_OK) return status;
  s->header = dialect.header;
  dialect.encoding = SHOAL_UTF8;
  return shoal_csv_init(&s->csv, s->path, &dialect, bytes, s->bytes.length, err);
}

/* Reads one file onto the end of g. The first one names the table's columns, unless the
 * table was fitted before. */
static shoal_status read_file(shoal_table *table, growing *g, const char *path, const char *target,
                              bool labeled, char sha256[SHOAL_SHA256_HEX], shoal_error *err) {
  sheet s = {.path = path, .first = g->rows};
  shoal_names_init(&s.names);
  shoal_status status = shoal_bytes_open(&s.bytes, path, SHOAL_DATA_FILE_BYTES_MAX, err);
  if (status != SHOAL_OK) return status;
  if (sha256) shoal_sha256_hex(s.bytes.data, s.bytes.length, sha256);
  status = open_rows(&s, err);
  if (status == SHOAL_OK) status = read_header(&s, err);
  if (status == SHOAL_OK && !table->target) status = choose_columns(table, &s, target, err);
  if (status == SHOAL_OK) status = match_columns(table, &s, labeled, err);
  uint64_t before = g->rows;
  for (bool more = true; status == SHOAL_OK;) {
    status = shoal_csv_next(&s.csv, &more, err);
    if (!more) break;
    if (status == SHOAL_OK) status = read_row(table, g, &s, labeled, err);
  }
  if (status == SHOAL_OK && g->rows == before)
    status = shoal_fail(err, SHOAL_INVALID, "%s: there are no rows in this file", path);
  sheet_release(&s);
  return status;
}

/* ---- classes and the split ---------------------------------------------------------- */

typedef struct sortable {
  const char *name;
  double number;
  uint32_t old;
} sortable;

static int by_number(const void *a, const void *b) {
  const sortable *x = a, *y = b;
  return x->number < y->number ? -1 : x->number > y->number ? 1 : strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const sortable *)a)->name, ((const sortable *)b)->name);
}

/* Sorts the classes, which stand in the order of their appearance. */
static shoal_status sort_classes(shoal_table *table, growing *g, shoal_error *err) {
  uint32_t count = table->classes.count;
  sortable *sorted = calloc(count, sizeof *sorted);
  uint32_t *order = calloc(count, sizeof *order), *place = calloc(count, sizeof *place);
  shoal_status status = SHOAL_OK;
  if (!sorted || !order || !place) {
    status = fail_memory(err);
    goto end;
  }
  bool numbers = true;
  for (uint32_t i = 0; i < count; i++) {
    sorted[i] = (sortable){.name = shoal_names_at(&table->classes, i), .old = i};
    numbers &= shoal_read_f64(sorted[i].name, strlen(sorted[i].name), &sorted[i].number);
  }
  qsort(sorted, count, sizeof *sorted, numbers ? by_number : by_name);
  for (uint32_t i = 0; i < count; i++) {
    order[i] = sorted[i].old;
    place[sorted[i].old] = i;
  }
  if (!shoal_names_reorder(&table->classes, order)) {
    status = fail_memory(err);
    goto end;
  }
  for (uint64_t row = 0; row < g->rows; row++) g->labels[row] = place[g->labels[row]];
end:
  free(sorted);
  free(order);
  free(place);
  return status;
}

static bool is_test_row(uint64_t row) {
  shoal_key key = shoal_key_make(0, SHOAL_FOR_SPLIT, 1, 0);
  return shoal_random_uniform(key, row) < test_share;
}

/* Moves the rows into the table, those of training first, and keeps their order. */
static shoal_status settle(shoal_table *table, growing *g, bool split, shoal_error *err) {
  uint32_t features = table->columns.count;
  if (split) {
    table->training = 0;
    for (uint64_t row = 0; row < g->rows; row++) table->training += !is_test_row(row);
    if (table->training == 0) /* of a very short file */
      split = false;
    table->training = split ? table->training : g->rows;
    table->test = g->rows - table->training;
  }
  if (split) {
    table->raw = malloc(g->rows * features * sizeof *table->raw);
  } else {
    table->raw = g->raw;
    g->raw = NULL;
  }
  table->targets = calloc(g->rows, sizeof *table->targets);
  table->labels = calloc(g->rows, sizeof *table->labels);
  if (!table->raw || !table->targets || !table->labels) return fail_memory(err);
  uint64_t next_training = 0, next_test = table->training;
  for (uint64_t row = 0; row < g->rows; row++) {
    uint64_t to = !split ? row : is_test_row(row) ? next_test++ : next_training++;
    if (split) memcpy(table->raw + to * features, g->raw + row * features, features * sizeof *table->raw);
    if (!table->labeled) continue;
    bool number = table->target_kind == SHOAL_TARGET_NUMBER;
    table->labels[to] = number ? 0 : (int32_t)g->labels[row];
    table->targets[to] = number ? (float)g->targets[row] : (float)g->labels[row];
  }
  return SHOAL_OK;
}

shoal_status shoal_table_open(shoal_table *table, const char *path, const char *test_path, const char *target,
                              shoal_target_kind kind, bool unlabeled, shoal_error *err) {
  if (unlabeled && !table->fitted)
    return shoal_fail(err, SHOAL_INVALID, "%s: a table without a target needs a trained model", path);
  if (table->fitted && kind != table->target_kind)
    return shoal_fail(err, SHOAL_INVALID, "%s: the target was fitted as %s, the model's loss needs %s", path,
                      kind_names[table->target_kind], kind_names[kind]);
  table->target_kind = kind;
  table->labeled = !unlabeled;
  growing g = {0};
  char sha256[SHOAL_SHA256_HEX];
  shoal_status status = read_file(table, &g, path, target, table->labeled, sha256, err);
  if (status != SHOAL_OK) goto end;
  bool refitted = table->fitted && strcmp(sha256, table->sha256) == 0;
  bool all_test = unlabeled || (table->fitted && !refitted && !test_path);
  table->training = all_test ? 0 : g.rows;
  if (!table->fitted) memcpy(table->sha256, sha256, sizeof sha256);
  if (test_path) status = read_file(table, &g, test_path, target, table->labeled, NULL, err);
  if (status != SHOAL_OK) goto end;
  table->test = g.rows - table->training;

  if (!table->fitted && kind != SHOAL_TARGET_NUMBER) {
    if (table->classes.count < 2) {
      status = shoal_fail(err, SHOAL_INVALID, "%s: the target, column '%.60s', is '%.60s' in every row", path,
                          table->target, shoal_names_at(&table->classes, 0));
      goto end;
    }
    status = sort_classes(table, &g, err);
  }
  if (status == SHOAL_OK) status = settle(table, &g, !all_test && !test_path, err);
end:
  growing_release(&g);
  return status;
}

/* ---- scaling ------------------------------------------------------------------------ */

/* Mean and deviation of one column over the training part, without what is missing. */
static void fit_column(shoal_table *table, const shoal_parts *parts, uint32_t column) {
  uint32_t features = table->columns.count;
  uint64_t rows = parts->count[SHOAL_TRAIN], present = 0;
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < rows; i++) {
    double value = table->raw[shoal_parts_number(parts, SHOAL_TRAIN, i) * features + column];
    if (isnan(value)) continue;
    sum += value;
    present++;
  }
  double mean = present ? sum / (double)present : 0;
  for (uint64_t i = 0; i < rows; i++) {
    double value = table->raw[shoal_parts_number(parts, SHOAL_TRAIN, i) * features + column];
    if (!isnan(value)) squares += (value - mean) * (value - mean);
  }
  double deviation = present ? sqrt(squares / (double)present) : 0;
  table->mean[column] = mean;
  /* A column that never changes says nothing; it becomes zero. */
  table->deviation[column] = deviation > 1e-12 * fabs(mean) && deviation > 0 ? deviation : 1;
}

shoal_status shoal_table_scale(shoal_table *table, const shoal_parts *parts, shoal_error *err) {
  uint32_t features = table->columns.count;
  uint64_t count = (table->training + table->test) * features;
  if (!table->fitted) {
    table->mean = calloc(features, sizeof *table->mean);
    table->deviation = calloc(features, sizeof *table->deviation);
    if (!table->mean || !table->deviation) return fail_memory(err);
    for (uint32_t i = 0; i < features; i++) fit_column(table, parts, i);
  }
  table->values = malloc(count * sizeof *table->values);
  if (!table->values) return fail_memory(err);
  for (uint64_t i = 0; i < count; i++) {
    uint32_t column = (uint32_t)(i % features);
    double scaled = (table->raw[i] - table->mean[column]) / table->deviation[column];
    table->values[i] = isnan(scaled) ? 0.0f : (float)fmin(fmax(scaled, -FLT_MAX), FLT_MAX);
  }
  free(table->raw);
  table->raw = NULL;
  return SHOAL_OK;
}
