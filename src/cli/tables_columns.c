/* tables_columns.c: see tables_columns.h. */
#include "cli/tables_columns.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/human.h"

enum {
  NAME_BYTES = 33, /* of a name that is shown, with its zero */
  VALUE_BYTES = 21,
  VALUES_SHOWN = 3,
  LINES_MAX = 30, /* of a line a column */
  LINE_WIDTH = 100,
  GROUP_MAX = 500, /* columns of a kind that are named */
};
/* Of dates that a calendar has: the years 0 and 9999. */
static const double date_min = -62167219200.0, date_max = 253402300799.0;

/* Whole numbers whole, others with some figures. */
static void add_number(double number, shoal_text *out) {
  bool whole = fabs(number) < 1e12 && number == floor(number);
  shoal_text_addf(out, whole ? "%.0f" : "%.5g", number);
}

/* Times of day have no date: they are kept as on the first of January 1970. */
static bool is_time(const shoal_column *column) { return column->min >= 0 && column->max < 86400; }

static void add_date(double seconds, bool is_time, shoal_text *out) {
  struct tm day;
  char text[32];
  time_t whole = (time_t)(seconds < date_min ? date_min : seconds > date_max ? date_max : seconds);
  if (gmtime_r(&whole, &day) == NULL ||
      strftime(text, sizeof text, is_time ? "%H:%M:%S" : "%Y-%m-%d", &day) == 0)
    return;
  shoal_text_addf(out, "%s", text);
}

static void add_values(const shoal_column *column, bool briefly, shoal_text *out) {
  uint32_t count = briefly ? 0 : column->categories.count;
  shoal_text_addf(out, "%s value%s", shoal_human_count(column->distinct).text,
                  column->distinct == 1 ? "" : "s");
  for (uint32_t i = 0; i < count && i < VALUES_SHOWN; i++) {
    const char *name = shoal_names_at(&column->categories, i);
    char shown[VALUE_BYTES];
    shoal_text_plain(shown, sizeof shown, name, strlen(name));
    shoal_text_addf(out, "%s%s", i == 0 ? ": " : ", ", shown);
  }
  if (count > VALUES_SHOWN) shoal_text_addf(out, ", ...");
}

static void add_content(const shoal_column *column, bool briefly, shoal_text *out) {
  char unit[sizeof column->unit];
  switch (column->kind) {
  case SHOAL_NUMBER:
    add_number(column->min, out);
    shoal_text_addf(out, " to ");
    add_number(column->max, out);
    shoal_text_plain(unit, sizeof unit, column->unit, strlen(column->unit));
    shoal_text_addf(out, "%s%s", unit[0] ? " " : "", unit);
    break;
  case SHOAL_DATE:
    add_date(column->min, is_time(column), out);
    shoal_text_addf(out, " to ");
    add_date(column->max, is_time(column), out);
    break;
  case SHOAL_CATEGORY: add_values(column, briefly, out); break;
  default: shoal_text_addf(out, "%s different", shoal_human_count(column->distinct).text); break;
  }
}

static void add_missing(const shoal_column *column, uint64_t rows, shoal_text *out) {
  if (column->missing == 0 || rows == 0) return;
  double percent = 100 * (double)column->missing / (double)rows;
  if (percent < 0.1)
    shoal_text_addf(out, ", under 0.1%% missing");
  else
    shoal_text_addf(out, ", %.3g%% missing", percent);
}

static void plain_name(const shoal_column *column, char out[NAME_BYTES]) {
  shoal_text_plain(out, NAME_BYTES, column->name, strlen(column->name));
}

/* Characters, of a name in UTF-8. */
static int width_of(const char *text) {
  int width = 0;
  for (; *text; text++) width += ((unsigned char)*text & 0xc0) != 0x80;
  return width;
}

static void add_line(const shoal_profile *profile, uint32_t c, bool is_target, int width, shoal_text *out) {
  const shoal_column *column = &profile->columns[c];
  char name[NAME_BYTES];
  plain_name(column, name);
  shoal_text_addf(out, "  %s%*s  %-10s  ", name, width - width_of(name), "",
                  shoal_column_kind_name(column->kind));
  add_content(column, false, out);
  add_missing(column, profile->rows, out);
  if (is_target)
    shoal_text_addf(out, " (the target)");
  else if (!column->used)
    shoal_text_addf(out, " (not learned from)");
  shoal_text_add(out, "\n", 1);
}

/* "Lot Area 1300 to 215245, 3% missing": behind others on a line, or on the next one. */
static void add_entry(const shoal_profile *profile, const shoal_column *column, bool first, int *used,
                      shoal_text *out) {
  char name[NAME_BYTES];
  shoal_text entry = {0};
  plain_name(column, name);
  shoal_text_addf(&entry, "%s", name);
  if (column->used || column->missing > 0) {
    shoal_text_addf(&entry, " (");
    add_content(column, true, &entry);
    add_missing(column, profile->rows, &entry);
    shoal_text_addf(&entry, ")");
  }
  int width = entry.failed ? 0 : width_of(entry.bytes);
  if (!first && *used + width + 3 > LINE_WIDTH) {
    shoal_text_addf(out, ",\n    ");
    *used = 4;
  } else {
    shoal_text_addf(out, first ? " " : ", ");
  }
  *used += width + 2;
  if (!entry.failed) shoal_text_addf(out, "%s", entry.bytes);
  shoal_text_release(&entry);
}

/* All columns of a kind that are learned from, or that are not. */
static void add_group(const shoal_profile *profile, uint32_t target, shoal_column_kind kind, bool learned,
                      shoal_text *out) {
  uint32_t count = 0, shown = 0;
  int used = 24;
  for (uint32_t c = 0; c < profile->columns_count; c++)
    count += c != target && profile->columns[c].kind == kind && profile->columns[c].used == learned;
  if (count == 0) return;
  shoal_text_addf(out, "  %s, %s%s:", shoal_column_kind_name(kind), shoal_human_count(count).text,
                  learned ? "" : " not learned from");
  for (uint32_t c = 0; c < profile->columns_count; c++) {
    const shoal_column *column = &profile->columns[c];
    if (c == target || column->kind != kind || column->used != learned || shown == GROUP_MAX) continue;
    add_entry(profile, column, shown++ == 0, &used, out);
  }
  if (count > shown)
    shoal_text_addf(out, ", and %s more (--json lists them)", shoal_human_count(count - shown).text);
  shoal_text_add(out, "\n", 1);
}

void shoal_tables_columns_text(const shoal_profile *profile, uint32_t target, shoal_text *out) {
  int width = 0;
  uint32_t count = profile->columns_count;
  bool lines = count <= LINES_MAX;
  for (uint32_t c = 0; c < count; c++) {
    char name[NAME_BYTES];
    plain_name(&profile->columns[c], name);
    if ((lines || c == target) && width_of(name) > width) width = width_of(name);
  }
  for (uint32_t c = 0; c < count; c++)
    if (lines || c == target) add_line(profile, c, c == target, width, out);
  for (int kind = 0; kind < SHOAL_COLUMN_KINDS && !lines; kind++) {
    add_group(profile, target, (shoal_column_kind)kind, true, out);
    add_group(profile, target, (shoal_column_kind)kind, false, out);
  }
}

void shoal_tables_columns_json(const shoal_profile *profile, uint32_t target, shoal_json *json,
                               const char *key) {
  shoal_json_open(json, key, '[');
  for (uint32_t c = 0; c < profile->columns_count; c++) {
    const shoal_column *column = &profile->columns[c];
    shoal_json_open(json, NULL, '{');
    shoal_json_text(json, "name", column->name);
    shoal_json_text(json, "kind", shoal_column_kind_name(column->kind));
    shoal_json_text(json, "use", c == target ? "target" : column->used ? "feature" : "none");
    shoal_json_int(json, "missing", (int64_t)column->missing);
    shoal_json_int(json, "distinct", (int64_t)column->distinct);
    if (column->kind == SHOAL_NUMBER || column->kind == SHOAL_DATE) {
      shoal_json_real(json, "min", column->min);
      shoal_json_real(json, "max", column->max);
    }
    shoal_json_close(json, '}');
  }
  shoal_json_close(json, ']');
}
