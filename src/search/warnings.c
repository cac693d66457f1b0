/* warnings.c: see warnings.h.
 *
 * Rows are taken evenly from the table. Of each column every row gets a code: equal cells equal codes,
 * numbered as they come. Then a column tells the target where the class that a code has most often among
 * the even rows is right for the odd ones, or, of a column of many numbers, where the target of the
 * nearest even row is; and two columns say the same where all their codes are equal. */
#include "search/warnings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/distinct.h"

enum { ROWS_MAX = 20000, CELLS_MAX = 50000000, ROWS_ENOUGH = 40, VALUES_MAX = 100 };

#define NOBODY UINT32_MAX

static const double tells = 0.99, tells_number = 0.999, common_class = 0.95;

typedef struct looking {
  const shoal_rows *rows;
  const shoal_profile *profile;
  uint32_t count;  /* rows that are looked at */
  uint64_t *at;    /* which */
  uint32_t *codes; /* of the column at hand */
  uint32_t codes_count;
  double *numbers;             /* of the column at hand, where it has any */
  uint32_t *target_codes;      /* classes */
  double *target_numbers;      /* REGRESSION */
  struct coded *table, *pairs; /* room for `places` and `count` */
  uint32_t places;
  struct placed *order;
  uint32_t *nearest;
  double *sums; /* room for 2 x count */
} looking;

/* A value and the code that it has, or a code and its class. */
typedef struct coded {
  uint64_t value;
  uint32_t code, used;
} coded;

static void looking_release(looking *l) {
  free(l->at);
  free(l->codes);
  free(l->numbers);
  free(l->target_codes);
  free(l->target_numbers);
  free(l->table);
  free(l->pairs);
  free(l->order);
  free(l->nearest);
  free(l->sums);
}

/* ---- codes -------------------------------------------------------------------------- */

static uint64_t value_at(const looking *l, uint32_t column, uint64_t row, double *number) {
  shoal_column_kind kind = l->profile->columns[column].kind;
  *number = NAN;
  if (kind == SHOAL_CATEGORY) return shoal_rows_category(l->rows, row, column);
  if (kind == SHOAL_TEXT) {
    uint32_t count;
    const uint32_t *text = shoal_rows_text(l->rows, row, column, &count);
    return count ? shoal_hash_text((const char *)text, count * sizeof *text) : 0;
  }
  *number = shoal_rows_number(l->rows, row, column);
  uint64_t bits = 1;
  if (!isnan(*number)) memcpy(&bits, number, sizeof bits);
  return bits;
}

static uint32_t code_of(looking *l, uint64_t value) {
  uint32_t mask = l->places - 1, at = (uint32_t)((value * 0x9e3779b97f4a7c15u) >> 32) & mask;
  while (l->table[at].used && l->table[at].value != value) at = (at + 1) & mask;
  if (!l->table[at].used) l->table[at] = (coded){.value = value, .code = l->codes_count++, .used = 1};
  return l->table[at].code;
}

static void code_column(looking *l, uint32_t column) {
  memset(l->table, 0, l->places * sizeof *l->table);
  l->codes_count = 0;
  for (uint32_t i = 0; i < l->count; i++) {
    uint64_t value = value_at(l, column, l->at[i], &l->numbers[i]);
    l->codes[i] = code_of(l, value);
  }
}

/* ---- the nearest rows ---------------------------------------------------------------- */

typedef struct placed {
  double number;
  uint32_t row; /* of those that are looked at */
} placed;

static int by_number(const void *a, const void *b) {
  const placed *x = a, *y = b;
  return x->number != y->number ? (x->number < y->number ? -1 : 1) : x->row < y->row ? -1 : x->row > y->row;
}

/* Of each odd row that has a number the even one whose number is nearest; NOBODY else. */
static void find_nearest(looking *l) {
  uint32_t filled = 0, last = NOBODY;
  for (uint32_t i = 0; i < l->count; i++) {
    l->nearest[i] = NOBODY;
    if (!isnan(l->numbers[i])) l->order[filled++] = (placed){l->numbers[i], i};
  }
  qsort(l->order, filled, sizeof *l->order, by_number);
  for (uint32_t i = 0; i < filled; i++) {
    uint32_t row = l->order[i].row;
    if (row % 2 == 0) last = row;
    if (row % 2 == 1) l->nearest[row] = last;
  }
  last = NOBODY;
  for (uint32_t i = filled; i-- > 0;) {
    uint32_t row = l->order[i].row, below = l->nearest[row];
    if (row % 2 == 0) last = row;
    if (row % 2 == 0 || last == NOBODY) continue;
    if (below == NOBODY || l->numbers[last] - l->numbers[row] < l->numbers[row] - l->numbers[below])
      l->nearest[row] = last;
  }
}

/* ---- how much a column tells -------------------------------------------------------- */

static int by_code_and_class(const void *a, const void *b) {
  const coded *x = a, *y = b;
  return x->value != y->value ? (x->value < y->value ? -1 : 1)
         : x->code != y->code ? (x->code < y->code ? -1 : 1)
                              : 0;
}

static uint32_t usual_class(const looking *l, double *share) {
  uint32_t *counts =
      l->table ? (uint32_t *)l->table : NULL; /* as many places as there are classes, at least */
  memset(counts, 0, l->places * sizeof *counts);
  uint32_t usual = 0;
  for (uint32_t i = 0; i < l->count; i++) {
    counts[l->target_codes[i]]++;
    if (counts[l->target_codes[i]] > counts[usual]) usual = l->target_codes[i];
  }
  uint32_t right = 0; /* among the odd rows, as with what a column tells */
  for (uint32_t i = 1; i < l->count; i += 2) right += l->target_codes[i] == usual;
  *share = (double)right / (l->count / 2);
  return usual;
}

/* The share of odd rows whose class is the one that their code has most often among the even ones. */
static double share_told(looking *l, uint32_t usual) {
  uint32_t pairs = 0, *best = (uint32_t *)l->sums; /* room for 4 x count */
  for (uint32_t i = 0; i < l->count; i += 2)
    l->pairs[pairs++] = (coded){.value = l->codes[i], .code = l->target_codes[i]};
  qsort(l->pairs, pairs, sizeof *l->pairs, by_code_and_class);
  for (uint32_t i = 0; i < l->codes_count; i++) best[i] = usual;
  for (uint32_t i = 0, most = 0; i < pairs;) {
    uint32_t same = 1;
    while (i + same < pairs && by_code_and_class(&l->pairs[i], &l->pairs[i + same]) == 0) same++;
    if (i == 0 || l->pairs[i].value != l->pairs[i - 1].value) most = 0;
    if (same > most) {
      most = same;
      best[l->pairs[i].value] = l->pairs[i].code;
    }
    i += same;
  }
  uint32_t right = 0, asked = 0;
  for (uint32_t i = 1; i < l->count; i += 2, asked++) right += best[l->codes[i]] == l->target_codes[i];
  return asked ? (double)right / asked : 0;
}

/* The same where the class is that of the nearest row. */
static double nearest_share_told(looking *l, uint32_t usual) {
  uint32_t right = 0, asked = 0;
  find_nearest(l);
  for (uint32_t i = 1; i < l->count; i += 2, asked++) {
    uint32_t told = l->nearest[i] == NOBODY ? usual : l->target_codes[l->nearest[i]];
    right += told == l->target_codes[i];
  }
  return asked ? (double)right / asked : 0;
}

static double mean_of_target(const looking *l) {
  double mean = 0;
  for (uint32_t i = 0; i < l->count; i++) mean += l->target_numbers[i] / l->count;
  return mean;
}

/* R2, among the odd rows, of the number of the nearest row. */
static double nearest_told(looking *l) {
  double mean = mean_of_target(l), off = 0, all = 0;
  find_nearest(l);
  for (uint32_t i = 1; i < l->count; i += 2) {
    double told = l->nearest[i] == NOBODY ? mean : l->target_numbers[l->nearest[i]],
           right = l->target_numbers[i];
    off += (right - told) * (right - told);
    all += (right - mean) * (right - mean);
  }
  return all > 0 ? 1 - off / all : 0;
}

/* R2, among the odd rows, of the mean that a code has among the even ones. */
static double means_told(const looking *l) {
  double *sums = l->sums, *counts = l->sums + l->count;
  for (uint32_t i = 0; i < l->codes_count; i++) sums[i] = counts[i] = 0;
  double mean = mean_of_target(l), off = 0, all = 0;
  for (uint32_t i = 0; i < l->count; i += 2) {
    sums[l->codes[i]] += l->target_numbers[i];
    counts[l->codes[i]]++;
  }
  for (uint32_t i = 1; i < l->count; i += 2) {
    uint32_t code = l->codes[i];
    double told = counts[code] > 0 ? sums[code] / counts[code] : mean, right = l->target_numbers[i];
    off += (right - told) * (right - told);
    all += (right - mean) * (right - mean);
  }
  return all > 0 ? 1 - off / all : 0;
}

/* ---- warnings ----------------------------------------------------------------------- */

/* Puts a sentence in front of those that are there. */
static void warn_first(shoal_column *column, const char *sentence) {
  char before[sizeof column->warning];
  memcpy(before, column->warning, sizeof before);
  column->warning[0] = 0;
  shoal_column_warn(column, "%s", sentence);
  if (before[0]) shoal_column_warn(column, "%s", before);
}

static void warn_leak(looking *l, shoal_column *column, shoal_problem problem, uint32_t usual) {
  bool numbers = column->kind == SHOAL_NUMBER || column->kind == SHOAL_DATE;
  double told;
  if (problem == SHOAL_REGRESSION) {
    told = numbers && l->codes_count > VALUES_MAX ? nearest_told(l) : means_told(l);
    if (told <= tells_number) return;
  } else {
    told = numbers && l->codes_count > VALUES_MAX ? nearest_share_told(l, usual) : share_told(l, usual);
    if (told <= tells) return;
  }
  warn_first(column,
             "tells the target alone, nearly always: is it known before the target is? If not, leave it out");
}

/* Numbers of accounts, parcels, phones: whole, as long as each other, and another one in every row. */
static void warn_of_long_numbers(const looking *l, shoal_column *column) {
  enum { LONG = 1000000 };
  if (column->kind != SHOAL_NUMBER || l->codes_count < l->count || !(column->min >= LONG) ||
      floor(log10(column->min)) != floor(log10(column->max)))
    return;
  for (uint32_t i = 0; i < l->count; i++)
    if (l->numbers[i] != floor(l->numbers[i])) return;
  shoal_column_warn(
      column,
      "every row has a different whole number of %.0f digits: if the column only tells rows apart, leave it "
      "out (--columns '%.60s=skip')",
      floor(log10(column->min)) + 1, column->name);
}

typedef struct seen {
  uint64_t hash;
  uint32_t column;
} seen;

/* Where most values differ from row to row, so do all such columns' codes; then the values themselves
 * count. */
static uint64_t hash_column(looking *l, uint32_t column) {
  uint64_t hash = shoal_hash_text((const char *)l->codes, l->count * sizeof *l->codes);
  if (l->codes_count < l->count / 4) return hash;
  const shoal_names *names = &l->profile->columns[column].categories;
  for (uint32_t i = 0; i < l->count; i++) {
    double number;
    uint64_t words[2] = {hash, value_at(l, column, l->at[i], &number)};
    const char *name = words[1] < names->count ? shoal_names_at(names, (uint32_t)words[1]) : NULL;
    if (name) words[1] = shoal_hash_text(name, strlen(name));
    hash = shoal_hash_text((const char *)words, sizeof words);
  }
  return hash;
}

static void warn_same(shoal_profile *profile, uint32_t column, const seen *before, uint32_t before_count,
                      uint64_t hash) {
  for (uint32_t i = 0; i < before_count; i++) {
    if (before[i].hash != hash) continue;
    shoal_column_warn(&profile->columns[column], "says the same as the column '%.60s', value for value",
                      profile->columns[before[i].column].name);
    return;
  }
}

static bool has_target(const looking *l, uint32_t target, uint64_t row) {
  if (l->profile->columns[target].kind != SHOAL_CATEGORY)
    return !isnan(shoal_rows_number(l->rows, row, target));
  return shoal_rows_category(l->rows, row, target) < SHOAL_UNSEEN;
}

static bool prepare(looking *l, uint32_t target, uint32_t columns) {
  uint64_t rows = shoal_rows_count(l->rows), max = CELLS_MAX / columns;
  if (max > ROWS_MAX) max = ROWS_MAX;
  l->places = 64;
  while (l->places < 2 * max) l->places *= 2;
  l->at = calloc(max, sizeof *l->at);
  l->codes = calloc(max, sizeof *l->codes);
  l->numbers = calloc(max, sizeof *l->numbers);
  l->target_codes = calloc(max, sizeof *l->target_codes);
  l->target_numbers = calloc(max, sizeof *l->target_numbers);
  l->table = calloc(l->places, sizeof *l->table);
  l->pairs = calloc(max, sizeof *l->pairs);
  l->order = calloc(max, sizeof *l->order);
  l->nearest = calloc(max, sizeof *l->nearest);
  l->sums = calloc(2 * max, sizeof *l->sums);
  if (!l->at || !l->codes || !l->numbers || !l->target_codes || !l->target_numbers || !l->table ||
      !l->pairs || !l->order || !l->nearest || !l->sums)
    return false;
  uint64_t step = rows / max + 1;
  for (uint64_t row = 0; row < rows && l->count < max; row += step) {
    if (has_target(l, target, row)) l->at[l->count++] = row;
  }
  code_column(l, target);
  memcpy(l->target_codes, l->codes, l->count * sizeof *l->codes);
  memcpy(l->target_numbers, l->numbers, l->count * sizeof *l->numbers);
  return true;
}

shoal_status shoal_warn_leaks(shoal_profile *profile, const shoal_rows *rows, uint32_t target,
                              shoal_problem problem, shoal_error *err) {
  looking l = {.rows = rows, .profile = profile};
  uint32_t count = profile->columns_count, before_count = 0;
  seen *before = calloc(count, sizeof *before);
  shoal_status status =
      before && prepare(&l, target, count) ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (status != SHOAL_OK || l.count < ROWS_ENOUGH) goto end;
  double usual_share;
  uint32_t usual = usual_class(&l, &usual_share);
  for (uint32_t c = 0; c < count; c++) {
    if (!profile->columns[c].used || c == target) continue;
    code_column(&l, c);
    warn_of_long_numbers(&l, &profile->columns[c]);
    if (l.codes_count > 1) {
      uint64_t hash = hash_column(&l, c);
      warn_same(profile, c, before, before_count, hash);
      before[before_count++] = (seen){hash, c};
    }
    bool worth = problem == SHOAL_REGRESSION || usual_share < common_class;
    if (worth && profile->columns[c].kind != SHOAL_TEXT) warn_leak(&l, &profile->columns[c], problem, usual);
  }
end:
  free(before);
  looking_release(&l);
  return status;
}
