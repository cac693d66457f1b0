/* gather.c: see gather.h. */
#include "search/gather.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "data/date.h"
#include "data/limits.h"

/* What all columns together may keep. */
static const uint64_t VALUES_MAX = 5000000, TEXT_BYTES_MAX = (uint64_t)256 << 20;
enum { DISTINCT_MAX = 100000 };

/* A share of the cells that a kind takes for all of them. */
static const double nearly_all = 0.95, nearly_every_row = 0.98, nearly_every_row_estimated = 0.93,
                    said_enough = 0.5, mostly = 0.5, some = 0.01;
/* With fewer rows, values that all differ say nothing. */
enum { ROWS_ENOUGH = 20 };

/* ---- gathering ---------------------------------------------------------------------- */

void shoal_gather_init(shoal_gather *gather, const shoal_dialect *dialect, uint32_t columns,
                       uint32_t sample_max, bool keep_values) {
  *gather = (shoal_gather){.dialect = dialect, .sample_max = sample_max, .keep_values = keep_values};
  uint64_t limit = VALUES_MAX / columns, bytes = TEXT_BYTES_MAX / columns;
  if (limit > DISTINCT_MAX) limit = DISTINCT_MAX;
  shoal_distinct_init(&gather->distinct, (uint32_t)limit, bytes > 16 << 20 ? 16 << 20 : bytes);
}

void shoal_gather_release(shoal_gather *gather) {
  for (int i = 0; i < SHOAL_READINGS; i++) free(gather->sample[i]);
  shoal_distinct_release(&gather->distinct);
  *gather = (shoal_gather){0};
}

static void add_moment(shoal_moments *m, double value) {
  double off = value - m->mean;
  m->min = m->count == 0 || value < m->min ? value : m->min;
  m->max = m->count == 0 || value > m->max ? value : m->max;
  m->count++;
  m->mean += off / (double)m->count;
  m->squares += off * (value - m->mean);
}

static bool keep_sample(shoal_gather *g, int reading, int64_t place, double value) {
  double **sample = &g->sample[reading];
  if (place < 0 || (!*sample && isnan(value))) return true;
  if (!*sample) {
    *sample = malloc(g->sample_max * sizeof **sample);
    if (!*sample) return false;
    for (uint32_t i = 0; i < g->sample_max; i++) (*sample)[i] = NAN;
  }
  (*sample)[place] = value;
  return true;
}

static void keep_misfit(shoal_misfit *misfit, const shoal_csv_cell *cell) {
  if (misfit->line > 0) return;
  misfit->line = cell->line;
  shoal_text_plain(misfit->text, sizeof misfit->text, cell->text, cell->length);
}

static bool is_same_unit(const char *unit, const char *text, size_t length) {
  return strlen(unit) == length && strncasecmp(unit, text, length) == 0;
}

/* The first unit is the column's; a number with another one is none. */
static bool read_number(shoal_gather *g, const shoal_csv_cell *cell, double *out) {
  const char *unit;
  size_t length;
  if (shoal_dialect_number(g->dialect, cell->text, cell->length, false, out)) return true;
  if (!shoal_dialect_quantity(g->dialect, cell->text, cell->length, out, &unit, &length)) return false;
  if (length == 0 || length >= sizeof g->unit) return length == 0;
  if (g->unit[0] == 0) memcpy(g->unit, unit, length);
  return is_same_unit(g->unit, unit, length);
}

/* Only 3/4/2020 and 3-4-2020 can be read in two ways. */
static void read_dates(const shoal_csv_cell *cell, double values[SHOAL_READINGS]) {
  double *month = &values[SHOAL_AS_MONTH_FIRST], *day = &values[SHOAL_AS_DAY_FIRST];
  if (!shoal_date_read(cell->text, cell->length, false, month)) *month = NAN;
  *day = *month;
  bool two_ways = cell->length > 3 && (strchr("/-", cell->text[1]) || strchr("/-", cell->text[2]));
  if (two_ways && !shoal_date_read(cell->text, cell->length, true, day)) *day = NAN;
}

static void look_at_digits(shoal_gather *g, const shoal_csv_cell *cell, double value) {
  static const double exact_max = 9007199254740992; /* 2^53 */
  if (value != floor(value)) g->fractions++;
  if (fabs(value) > exact_max) g->wide++;
  if (g->as[SHOAL_AS_NUMBER].count > 0 && value == g->last + 1) g->steps++;
  g->last = value;
  if (cell->length < 2 || cell->text[0] != '0') return;
  for (size_t i = 1; i < cell->length; i++) {
    if (!isdigit((unsigned char)cell->text[i])) return;
  }
  g->codes++;
}

static uint64_t words_of(const shoal_csv_cell *cell) {
  uint64_t words = 0;
  bool inside = false;
  for (size_t i = 0; i < cell->length; i++) {
    bool space = cell->text[i] == ' ' || cell->text[i] == '\n' || cell->text[i] == '\t';
    words += !space && !inside;
    inside = !space;
  }
  return words;
}

/* Values of long columns of numbers are of no use to anybody: a good part of the time would go into
 * counting them. */
static void drop_values(shoal_gather *g) {
  bool numbers = (double)g->as[SHOAL_AS_NUMBER].count >= nearly_all * (double)g->filled;
  if (numbers && !g->keep_values && g->codes == 0) shoal_distinct_drop(&g->distinct);
}

bool shoal_gather_cell(shoal_gather *g, const shoal_csv_cell *cell, int64_t place) {
  double values[SHOAL_READINGS] = {NAN, NAN, NAN};
  bool good = true, too_large = false;
  if (shoal_cell_is_missing(cell->text, cell->length)) {
    g->missing++;
  } else {
    g->filled++;
    if (read_number(g, cell, &values[SHOAL_AS_NUMBER])) {
      look_at_digits(g, cell, values[SHOAL_AS_NUMBER]);
    } else {
      too_large = shoal_dialect_too_large(g->dialect, cell->text, cell->length);
      values[SHOAL_AS_NUMBER] = NAN;
      if (too_large) keep_misfit(&g->largest, cell);
      g->too_large += too_large;
      read_dates(cell, values);
      g->words += words_of(cell);
      g->bytes += cell->length;
    }
    for (int i = 0; i < SHOAL_READINGS; i++) {
      if (isnan(values[i]) && !(too_large && i == SHOAL_AS_NUMBER))
        keep_misfit(&g->misfit[i], cell);
      else if (!isnan(values[i]))
        add_moment(&g->as[i], values[i]);
    }
    good = shoal_distinct_add(&g->distinct, cell->text, cell->length);
    if (g->distinct.registers && !g->distinct.counts_only && g->filled % 1024 == 0) drop_values(g);
  }
  for (int i = 0; i < SHOAL_READINGS && good; i++) good = keep_sample(g, i, place, values[i]);
  return good;
}

/* ---- the kind ----------------------------------------------------------------------- */

/* Whether the last word of a name is one of these: of "user_id", "invoice no." and "PassengerId" it is "id",
 * "no" and "Id". */
static bool ends_in_word(const char *name, const char *const *words) {
  size_t end = strlen(name);
  while (end > 0 && !isalnum((unsigned char)name[end - 1])) end--;
  size_t start = end;
  while (start > 0 && isalnum((unsigned char)name[start - 1])) {
    start--;
    if (isupper((unsigned char)name[start]) && start > 0 && islower((unsigned char)name[start - 1])) break;
  }
  for (; *words; words++)
    if (strlen(*words) == end - start && strncasecmp(name + start, *words, end - start) == 0) return true;
  return false;
}

/* Whether a name is one that people give to what only tells rows apart. */
static bool is_id_name(const char *name) {
  static const char *const words[] = {"id",    "uuid",   "guid", "index",  "idx", "row",
                                      "rowid", "rownum", "key",  "serial", "pid", "uid",
                                      "cid",   "sid",    "oid",  "tid",    "rid", NULL};
  return ends_in_word(name, words) || strcmp(name, "#") == 0 || strcasecmp(name, "unnamed: 0") == 0;
}

/* The same with names that can also mean a quantity: they tell something where there are enough rows. */
static bool may_be_id_name(const char *name) {
  static const char *const words[] = {"no",        "nr",     "num",     "number", "order", "code", "ref",
                                      "reference", "record", "account", "parcel", "phone", NULL};
  return ends_in_word(name, words);
}

/* What counts up with the rows is then worth learning from. */
static bool is_time_name(const char *name) {
  static const char *const words[] = {"year", "quarter", "month", "week",   "day",       "date",
                                      "hour", "minute",  "time",  "second", "timestamp", NULL};
  return ends_in_word(name, words);
}

static bool is_share(uint64_t part, uint64_t of, double share) { return (double)part >= share * (double)of; }

static bool all_differ(const shoal_gather *g) {
  double share = g->distinct.registers ? nearly_every_row_estimated : nearly_every_row;
  return g->filled > 1 && is_share(shoal_distinct_count(&g->distinct), g->filled, share);
}

/* Of n whole numbers that come from a range of s by chance, some n * n / 2s are equal to another one, and more
 * where some numbers are likelier: if hardly any are, somebody has dealt them out, a new one to each row. So it is
 * with numbers of rows in another order, or of a part of the rows; not with areas or salaries, whose range is long. */
static bool are_dealt_out(const shoal_gather *g) {
  double rows = (double)g->filled, span = g->as[SHOAL_AS_NUMBER].max - g->as[SHOAL_AS_NUMBER].min + 1;
  double expected = rows * rows / (2 * span), equal = rows - (double)shoal_distinct_count(&g->distinct);
  if (g->distinct.registers) return expected >= 0.2 * rows; /* how many are equal is an estimate */
  return expected >= 10 && equal <= expected / 10;
}

static shoal_column_kind kind_of_numbers(const shoal_gather *g, const char *name) {
  if (g->fractions > 0 || g->unit[0] != 0 || !all_differ(g)) return SHOAL_NUMBER;
  bool enough = g->filled >= ROWS_ENOUGH;
  bool counts = enough && (is_share(g->steps + 1, g->filled, nearly_all) || are_dealt_out(g));
  bool rows_apart = (counts && !is_time_name(name)) || is_id_name(name) || (enough && may_be_id_name(name)) ||
                    is_share(g->wide, g->filled, mostly);
  return rows_apart ? SHOAL_IDENTIFIER : SHOAL_NUMBER;
}

static shoal_column_kind kind_of_strings(const shoal_gather *g, const char *name) {
  double length = (double)g->bytes / (double)g->filled, words = (double)g->words / (double)g->filled;
  uint64_t distinct = shoal_distinct_count(&g->distinct);
  bool enough = g->filled >= ROWS_ENOUGH;
  if (enough && is_share(distinct, g->filled, mostly) && (words > 3 || (length > 25 && words >= 2)))
    return SHOAL_TEXT;
  if (!all_differ(g) || (!enough && !is_id_name(name))) return SHOAL_CATEGORY;
  return words >= 1.5 && enough ? SHOAL_TEXT : SHOAL_IDENTIFIER;
}

static bool day_is_first(const shoal_gather *g) {
  return g->as[SHOAL_AS_DAY_FIRST].count > g->as[SHOAL_AS_MONTH_FIRST].count;
}

static int dates_as(const shoal_gather *g) {
  return day_is_first(g) ? SHOAL_AS_DAY_FIRST : SHOAL_AS_MONTH_FIRST;
}

/* Zip codes, article numbers: zeros in front that are not there by mistake. */
static bool are_codes(const shoal_gather *g) {
  return g->codes > 0 && is_share(g->codes, g->filled, some) && g->fractions == 0 && g->unit[0] == 0;
}

static shoal_column_kind guess_kind(const shoal_gather *g, const char *name) {
  if (g->filled == 0) return SHOAL_CONSTANT;
  /* One value or none at all is as good as two values. */
  if (shoal_distinct_count(&g->distinct) == 1) return g->missing > 0 ? SHOAL_CATEGORY : SHOAL_CONSTANT;
  bool numbers = is_share(g->as[SHOAL_AS_NUMBER].count + g->too_large, g->filled, nearly_all) &&
                 is_share(g->as[SHOAL_AS_NUMBER].count, g->filled, mostly);
  if (numbers && !are_codes(g)) return kind_of_numbers(g, name);
  if (numbers) return all_differ(g) && g->filled >= ROWS_ENOUGH ? SHOAL_IDENTIFIER : SHOAL_CATEGORY;
  if (is_share(g->as[dates_as(g)].count, g->filled, nearly_all)) return SHOAL_DATE;
  return kind_of_strings(g, name);
}

/* ---- the column --------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static bool fill_from_sample(shoal_column *out, const double *sample, uint32_t sampled) {
  double *sorted = malloc((sampled ? sampled : 1) * sizeof *sorted);
  if (!sorted) return false;
  uint32_t count = 0;
  for (uint32_t i = 0; i < sampled && sample; i++) {
    if (!isnan(sample[i])) sorted[count++] = sample[i];
  }
  qsort(sorted, count, sizeof *sorted, by_value);
  double width = out->max - out->min;
  for (uint32_t i = 0; i < count; i++) {
    double bar = width > 0 && isfinite(width) ? (sorted[i] - out->min) / width * SHOAL_HISTOGRAM_BARS : 0;
    out->histogram[bar >= SHOAL_HISTOGRAM_BARS ? SHOAL_HISTOGRAM_BARS - 1 : bar > 0 ? (int)bar : 0]++;
  }
  for (int i = 0; i < 3 && count > 0; i++) {
    double at = (i + 1) * 0.25 * (count - 1);
    uint32_t below = (uint32_t)at, above = below + 1 < count ? below + 1 : below;
    out->quartile[i] = sorted[below] + (at - below) * (sorted[above] - sorted[below]);
  }
  free(sorted);
  return true;
}

static bool fill_statistics(const shoal_gather *g, int reading, uint32_t sampled, shoal_column *out) {
  const shoal_moments *m = &g->as[reading];
  out->mean = m->mean;
  out->deviation = m->count > 0 ? sqrt(m->squares / (double)m->count) : 0;
  out->min = m->min;
  out->max = m->max;
  return fill_from_sample(out, g->sample[reading], sampled);
}

static const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }

static void warn(const shoal_gather *g, int reading, shoal_column *out) {
  uint64_t rows = g->filled + g->missing, distinct = out->distinct;
  if (g->filled == 0)
    shoal_column_warn(out, "every cell is missing: not learned from");
  else if (out->kind == SHOAL_CONSTANT)
    shoal_column_warn(out, "the same value in every row: not learned from");
  else if (out->kind == SHOAL_IDENTIFIER && out->guessed == SHOAL_IDENTIFIER)
    shoal_column_warn(
        out,
        "the values differ in nearly every row, like row numbers: the column is not used unless "
        "you give --columns '%.60s=%s'",
        out->name, g->as[SHOAL_AS_NUMBER].count == g->filled ? "number" : "category");
  uint64_t too_large = out->kind == SHOAL_NUMBER ? g->too_large : 0;
  if (too_large > 0)
    shoal_column_warn(out,
                      "%" PRIu64 " cell%s too large for a number, the first '%s' in line %" PRIu64
                      ": counted as missing",
                      too_large, too_large == 1 ? " is" : "s are", g->largest.text, g->largest.line);
  if ((out->kind == SHOAL_NUMBER || out->kind == SHOAL_DATE) &&
      g->as[reading].count + too_large < g->filled) {
    uint64_t bad = g->filled - g->as[reading].count - too_large;
    shoal_column_warn(out, "%" PRIu64 " cell%s no %s, such as '%s' in line %" PRIu64 ": counted as missing",
                      bad, bad == 1 ? " is" : "s are", out->kind == SHOAL_NUMBER ? "number" : "date",
                      g->misfit[reading].text, g->misfit[reading].line);
  }
  if (g->filled > 0 && is_share(g->missing, rows, mostly))
    shoal_column_warn(out, "%.0f%% of the cells are missing", 100 * (double)g->missing / (double)rows);
  if (are_codes(g) && out->guessed == out->kind && out->kind == SHOAL_CATEGORY)
    shoal_column_warn(out, "zeros in front: taken for codes, not numbers");
  const shoal_moments *day = &g->as[SHOAL_AS_DAY_FIRST], *month = &g->as[SHOAL_AS_MONTH_FIRST];
  bool told_apart =
      day->count != month->count || (day->mean == month->mean && day->squares == month->squares);
  if (out->kind == SHOAL_DATE && !told_apart)
    shoal_column_warn(out, "the month is taken to stand before the day");
  if (out->kind == SHOAL_CATEGORY && distinct > SHOAL_CATEGORIES_MAX)
    shoal_column_warn(out, "%" PRIu64 " different value%s, of which the %d most frequent count", distinct,
                      plural(distinct), SHOAL_CATEGORIES_MAX);
}

/* A person's kind must suit at least half of the cells. */
static shoal_status check_said(const shoal_gather *g, shoal_column_kind kind, int reading, shoal_error *err) {
  if (kind != SHOAL_NUMBER && kind != SHOAL_DATE) return SHOAL_OK;
  if (is_share(g->as[reading].count, g->filled, said_enough)) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID,
                    "cannot be read as a %s: only %" PRIu64 " of %" PRIu64 " cells are, and line %" PRIu64
                    " has '%s'",
                    shoal_column_kind_name(kind), g->as[reading].count, g->filled, g->misfit[reading].line,
                    g->misfit[reading].text);
}

shoal_status shoal_gather_finish(const shoal_gather *g, const shoal_column_said *said, uint32_t sampled,
                                 shoal_column *out, shoal_error *err) {
  out->guessed = guess_kind(g, out->name);
  out->kind = said && !said->skip ? said->kind : out->guessed;
  out->missing = g->missing;
  out->distinct = shoal_distinct_count(&g->distinct);
  if (out->distinct > g->filled) out->distinct = g->filled; /* an estimate */
  out->used =
      out->kind != SHOAL_IDENTIFIER && out->kind != SHOAL_CONSTANT && !(said && said->skip) && g->filled > 0;
  int reading = out->kind == SHOAL_DATE ? dates_as(g) : SHOAL_AS_NUMBER;
  shoal_status status = check_said(g, out->kind, reading, err);
  if (status != SHOAL_OK) return status;
  bool good = true;
  if (out->kind == SHOAL_NUMBER || out->kind == SHOAL_DATE) {
    out->day_first = out->kind == SHOAL_DATE && day_is_first(g);
    if (out->kind == SHOAL_NUMBER) memcpy(out->unit, g->unit, sizeof out->unit);
    good = fill_statistics(g, reading, sampled, out);
  } else if (out->kind == SHOAL_CATEGORY) {
    good = shoal_distinct_most(&g->distinct, SHOAL_CATEGORIES_MAX, SHOAL_NAME_BYTES_MAX, &out->categories,
                               &out->category_counts);
  } else {
    enum { SHOWN_BYTES_MAX = 400 };
    good = shoal_distinct_most(&g->distinct, SHOAL_TOP_VALUES, SHOWN_BYTES_MAX, &out->top, NULL);
  }
  warn(g, reading, out);
  return good ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}
