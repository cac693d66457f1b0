/* profile.c: see profile.h. One pass over the file; each column gathers for itself (search/gather). */
#include "search/profile.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/random.h"
#include "data/csv_file.h"
#include "data/date.h"
#include "data/limits.h"
#include "search/gather.h"

static const char *const kind_names[] = {"number", "category", "date", "text", "identifier", "constant"};

enum { SAMPLE_ROWS_MAX = 100000, SAMPLE_VALUES_MAX = 8000000, NEWS_EVERY_ROWS = 8192 };

/* More than one row in so many that is ragged, and the file is something else. */
enum { RAGGED_ONE_IN = 10 };

static shoal_status fail_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

const char *shoal_column_kind_name(shoal_column_kind kind) { return kind_names[kind]; }

bool shoal_column_kind_parse(const char *word, shoal_column_kind *out) {
  for (int i = 0; i < SHOAL_COLUMN_KINDS; i++) {
    if (strcmp(word, kind_names[i]) != 0) continue;
    *out = (shoal_column_kind)i;
    return true;
  }
  return false;
}

void shoal_profile_init(shoal_profile *profile) { *profile = (shoal_profile){0}; }

void shoal_profile_release(shoal_profile *profile) {
  for (uint32_t i = 0; i < profile->columns_count; i++) {
    shoal_column *column = &profile->columns[i];
    free(column->name);
    shoal_names_release(&column->categories);
    free(column->category_counts);
    shoal_names_release(&column->top);
  }
  free(profile->columns);
  free(profile->file);
  shoal_profile_init(profile);
}

void shoal_column_warn(shoal_column *column, const char *format, ...) {
  char text[sizeof column->warning];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  size_t used = strlen(column->warning), more = strlen(text);
  if (used > 0 && used + 2 + more >= sizeof column->warning) return;
  snprintf(column->warning + used, sizeof column->warning - used, "%s%s", used ? "; " : "", text);
}

bool shoal_column_value(const shoal_column *column, const shoal_dialect *dialect, const char *text,
                        size_t length, double *out) {
  *out = NAN;
  if (shoal_cell_is_missing(text, length)) return true;
  double value;
  bool good;
  if (column->kind == SHOAL_DATE) {
    good = shoal_date_read(text, length, column->day_first, &value);
  } else {
    const char *unit = text;
    size_t unit_length = 0;
    good = shoal_dialect_number(dialect, text, length, false, &value) ||
           shoal_dialect_quantity(dialect, text, length, &value, &unit, &unit_length);
    if (unit_length > 0)
      good &= strlen(column->unit) == unit_length && strncasecmp(unit, column->unit, unit_length) == 0;
  }
  if (good) *out = value;
  return good;
}

bool shoal_row_is_ragged(const shoal_csv *csv, uint32_t columns) {
  bool ends_in_delimiter = csv->cells_count == columns + 1 && csv->cells[columns].length == 0;
  return csv->cells_count != columns && !ends_in_delimiter;
}

/* ---- names -------------------------------------------------------------------------- */

/* A name fit to be shown: of one line, and not endless. */
static void clean_name(const shoal_csv_cell *cell, uint32_t place, char *out, size_t size) {
  char line[512];
  size_t length = cell && cell->length < sizeof line ? cell->length : cell ? sizeof line : 0;
  if (length > 0) memcpy(line, cell->text, length);
  for (size_t i = 0; i < length; i++) {
    if (isspace((unsigned char)line[i])) line[i] = ' ';
  }
  shoal_text_plain(out, size, line, length);
  if (out[0] == 0) snprintf(out, size, "column %u", place + 1);
}

/* The first of "NAME", "NAME (2)", "NAME (3)" that is free. again: of each name, the number that may be free
 * next, or 0; without it the time would grow with the square of the columns that have one name. */
static void name_apart(const char *name, const shoal_names *taken, uint32_t *again, char *out, size_t size) {
  uint32_t first = shoal_names_find(taken, name, strlen(name));
  snprintf(out, size, "%s", name);
  if (first == SHOAL_NO_NAME) return;
  uint32_t number = again[first] > 0 ? again[first] : 2;
  do snprintf(out, size, "%s (%u)", name, number++);
  while (shoal_names_find(taken, out, strlen(out)) != SHOAL_NO_NAME);
  again[first] = number;
}

shoal_status shoal_column_names(const shoal_csv *csv, bool header, shoal_names *out, shoal_error *err) {
  uint32_t *again = calloc(csv->cells_count + (size_t)1, sizeof *again);
  if (!again) return fail_memory(err);
  shoal_status status = SHOAL_OK;
  for (uint32_t i = 0; i < csv->cells_count && status == SHOAL_OK; i++) {
    char name[256], apart[280];
    clean_name(header ? &csv->cells[i] : NULL, i, name, sizeof name);
    name_apart(name, out, again, apart, sizeof apart);
    if (shoal_names_add(out, apart, strlen(apart)) == SHOAL_NO_NAME) status = fail_memory(err);
  }
  free(again);
  return status;
}

shoal_status shoal_profile_find(const shoal_profile *profile, const char *name, uint32_t *column,
                                shoal_error *err) {
  for (*column = 0; *column < profile->columns_count; (*column)++) {
    if (strcmp(profile->columns[*column].name, name) == 0) return SHOAL_OK;
  }
  uint64_t place;
  if (shoal_read_u64(name, strlen(name), &place) && place >= 1 && place <= profile->columns_count) {
    *column = (uint32_t)place - 1;
    return SHOAL_OK;
  }
  shoal_names names;
  shoal_names_init(&names);
  for (uint32_t i = 0; i < profile->columns_count; i++) {
    const char *other = profile->columns[i].name;
    shoal_names_add(&names, other, strlen(other)); /* without memory it is one less that is shown */
  }
  shoal_names_fail_column(&names, profile->file ? profile->file : "the table", name, err);
  shoal_names_release(&names);
  return SHOAL_INVALID;
}

/* ---- reading ------------------------------------------------------------------------ */

/* A profile in the making. */
typedef struct reading {
  const shoal_profile_options *options;
  shoal_profile *out;
  shoal_csv_file file;
  shoal_csv csv;
  shoal_gather *columns;
  const shoal_column_said **said; /* of each column, or NULL */
  uint32_t sample_max;
  uint32_t ragged_cells; /* of the first ragged row */
} reading;

static void reading_release(reading *r) {
  for (uint32_t i = 0; r->columns && i < r->out->columns_count; i++) shoal_gather_release(&r->columns[i]);
  free(r->columns);
  free(r->said);
  shoal_csv_release(&r->csv);
  shoal_csv_file_close(&r->file);
}

static shoal_status name_columns(reading *r, shoal_error *err) {
  shoal_profile *out = r->out;
  bool more;
  shoal_status status = shoal_csv_next(&r->csv, &more, err);
  if (status != SHOAL_OK) return status;
  if (!more) return shoal_fail(err, SHOAL_INVALID, "%s: there are no rows in this file", r->file.path);
  shoal_names names;
  shoal_names_init(&names);
  status = shoal_column_names(&r->csv, out->dialect.header, &names, err);
  if (status == SHOAL_OK) {
    out->columns = calloc(names.count, sizeof *out->columns);
    out->columns_count = out->columns ? names.count : 0;
    if (!out->columns) status = fail_memory(err);
  }
  for (uint32_t i = 0; i < out->columns_count && status == SHOAL_OK; i++) {
    out->columns[i].name = strdup(shoal_names_at(&names, i));
    if (!out->columns[i].name) status = fail_memory(err);
  }
  shoal_names_release(&names);
  if (!out->dialect.header) shoal_csv_rewind(&r->csv);
  return status;
}

/* Who is said to be what. */
static shoal_status find_said(reading *r, shoal_error *err) {
  uint32_t count = r->out->columns_count;
  r->said = calloc(count, sizeof *r->said);
  r->columns = calloc(count, sizeof *r->columns);
  if (!r->said || !r->columns) return fail_memory(err);
  for (size_t i = 0; i < r->options->said_count; i++) {
    uint32_t column;
    shoal_status status = shoal_profile_find(r->out, r->options->said[i].name, &column, err);
    if (status != SHOAL_OK) return status;
    r->said[column] = &r->options->said[i];
  }
  r->sample_max = SAMPLE_VALUES_MAX / count < SAMPLE_ROWS_MAX ? SAMPLE_VALUES_MAX / count : SAMPLE_ROWS_MAX;
  for (uint32_t i = 0; i < count; i++)
    shoal_gather_init(&r->columns[i], &r->out->dialect, count, r->sample_max,
                      r->said[i] && !r->said[i]->skip);
  return SHOAL_OK;
}

static shoal_status read_row(reading *r, shoal_error *err) {
  shoal_profile *out = r->out;
  if (shoal_row_is_ragged(&r->csv, out->columns_count)) {
    if (out->ragged++ == 0) {
      out->ragged_line = r->csv.cells[0].line;
      r->ragged_cells = r->csv.cells_count;
    }
    return SHOAL_OK;
  }
  int64_t place = (int64_t)out->rows;
  if (out->rows >= r->sample_max) {
    shoal_key key = shoal_key_make(r->options->seed, SHOAL_FOR_SAMPLING, 0, 0);
    place = (int64_t)shoal_random_below(key, out->rows, out->rows + 1);
    if (place >= r->sample_max) place = -1;
  }
  out->rows++;
  for (uint32_t i = 0; i < out->columns_count; i++) {
    if (!shoal_gather_cell(&r->columns[i], &r->csv.cells[i], place)) return fail_memory(err);
  }
  return SHOAL_OK;
}

static shoal_status read_rows(reading *r, shoal_error *err) {
  const shoal_profile_options *options = r->options;
  for (uint64_t row = 0;; row++) {
    if (row % NEWS_EVERY_ROWS == 0) {
      if (options->stop && __atomic_load_n(options->stop, __ATOMIC_RELAXED))
        return shoal_fail(err, SHOAL_STOPPED, "%s: stopped", r->file.path);
      if (options->progress)
        options->progress(options->self, (uint64_t)(r->csv.at - r->file.bytes), r->file.length);
    }
    bool more;
    shoal_status status = shoal_csv_next(&r->csv, &more, err);
    if (status != SHOAL_OK || !more) return status;
    status = read_row(r, err);
    if (status != SHOAL_OK) return status;
  }
}

static shoal_status check_rows(const reading *r, shoal_error *err) {
  const shoal_profile *p = r->out;
  if (p->rows + p->ragged == 0)
    return shoal_fail(
        err, SHOAL_INVALID,
        "%s: there are no rows below the names of the columns; if the first row is data, say 'header no'",
        r->file.path);
  if (p->ragged * RAGGED_ONE_IN <= p->rows + p->ragged) return SHOAL_OK;
  char delimiter[] = {'\'', p->dialect.delimiter, '\'', 0};
  return shoal_fail(
      err, SHOAL_INVALID,
      "%s:%" PRIu64 ": %u cell%s, where the first row has %u; so it is with %" PRIu64 " of %" PRIu64
      " rows. Is the delimiter right (%s), or does a title stand above the table? Remove that, or mend "
      "the rows",
      r->file.path, p->ragged_line, r->ragged_cells, r->ragged_cells == 1 ? "" : "s", p->columns_count,
      p->ragged, p->rows + p->ragged, p->dialect.delimiter == '\t' ? "a tab" : delimiter);
}

static shoal_status finish(reading *r, shoal_error *err) {
  shoal_profile *out = r->out;
  uint32_t sampled = out->rows < r->sample_max ? (uint32_t)out->rows : r->sample_max;
  for (uint32_t i = 0; i < out->columns_count; i++) {
    shoal_status status = shoal_gather_finish(&r->columns[i], r->said[i], sampled, &out->columns[i], err);
    if (status == SHOAL_INVALID)
      shoal_error_prefix(err, "%s: the column '%.60s' ", r->file.path, out->columns[i].name);
    if (status != SHOAL_OK) return status;
  }
  memcpy(out->sha256, r->file.sha256, sizeof out->sha256);
  out->file = strdup(r->file.path);
  return out->file ? SHOAL_OK : fail_memory(err);
}

shoal_status shoal_profile_read(shoal_profile *out, const shoal_profile_options *options, shoal_error *err) {
  shoal_profile_init(out);
  reading r = {.options = options, .out = out};
  shoal_status status = shoal_csv_file_open(&r.file, options->path, options->folder, err);
  if (status != SHOAL_OK) return status;
  status = shoal_csv_file_guess(&r.file, &options->dialect, &out->dialect, err);
  if (status == SHOAL_OK) status = shoal_csv_file_read(&r.file, &out->dialect, &r.csv, err);
  if (status == SHOAL_OK) status = name_columns(&r, err);
  if (status == SHOAL_OK) status = find_said(&r, err);
  if (status == SHOAL_OK) status = read_rows(&r, err);
  if (status == SHOAL_OK) status = check_rows(&r, err);
  if (status == SHOAL_OK) status = finish(&r, err);
  reading_release(&r);
  if (status != SHOAL_OK) shoal_profile_release(out);
  return status;
}
