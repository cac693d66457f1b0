/* encoder.c: from cells to values; see encoder.h. What does the fitting is in encoder_fit.c. */
#include "search/encoder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "search/encoder_internal.h"

#define MEMORY_MAX ((size_t)4 << 30)
static const double tame_max = 1e100;
static const double overshoot = 1; /* intervals beyond the outermost edges */

/* ---- a list of features ------------------------------------------------------------- */

shoal_encoder *shoal_encoder_new(const shoal_encoding_choice *choice) {
  shoal_encoder *e = calloc(1, sizeof *e);
  if (e == NULL) return NULL;
  e->choice = *choice;
  shoal_arena_init(&e->memory, MEMORY_MAX);
  return e;
}

void shoal_encoder_destroy(shoal_encoder *e) {
  if (e == NULL) return;
  shoal_arena_release(&e->memory);
  free(e->features);
  free(e);
}

shoal_feature *shoal_encoder_append(shoal_encoder *e, const shoal_feature *feature) {
  if (e->features_count == e->features_capacity) {
    uint32_t capacity = e->features_capacity > 0 ? e->features_capacity * 2 : 32;
    shoal_feature *features = realloc(e->features, capacity * sizeof *features);
    if (features == NULL) return NULL;
    e->features = features;
    e->features_capacity = capacity;
  }
  e->features[e->features_count] = *feature;
  return &e->features[e->features_count++];
}

static int lookups_last(const void *a, const void *b) {
  const shoal_feature *x = a, *y = b;
  bool p = x->kind == SHOAL_FEATURE_LOOKUP, q = y->kind == SHOAL_FEATURE_LOOKUP;
  if (p != q) return p ? 1 : -1;
  return (x->first > y->first) - (x->first < y->first); /* the order in which they came */
}

shoal_status shoal_encoder_place(shoal_encoder *e, shoal_error *err) {
  uint64_t values = 0, vocabulary = 0;
  for (uint32_t i = 0; i < e->features_count; i++) e->features[i].first = i;
  if (e->features_count > 0) qsort(e->features, e->features_count, sizeof *e->features, lookups_last);
  e->lookups = 0;
  for (uint32_t i = 0; i < e->features_count; i++) {
    shoal_feature *f = &e->features[i];
    if (values + f->values > SHOAL_ENCODED_VALUES_MAX)
      return shoal_fail(
          err, SHOAL_LIMIT,
          "the columns become more than %d values: use fewer pieces or columns, or lookup for categories",
          SHOAL_ENCODED_VALUES_MAX);
    f->first = (uint32_t)values;
    values += f->values;
    if (f->kind != SHOAL_FEATURE_LOOKUP) continue;
    f->offset = (uint32_t)vocabulary;
    vocabulary += f->slots;
    e->lookups++;
  }
  /* Category numbers travel as floats. */
  if (vocabulary >= (1u << 24))
    return shoal_fail(err, SHOAL_LIMIT, "the columns have more than %u categories in all", 1u << 24);
  e->values = (uint32_t)values;
  e->vocabulary = (uint32_t)vocabulary;
  return SHOAL_OK;
}

uint32_t shoal_encoder_values(const shoal_encoder *e) { return e->values; }
uint32_t shoal_encoder_lookups(const shoal_encoder *e) { return e->lookups; }
uint32_t shoal_encoder_vocabulary(const shoal_encoder *e) { return e->vocabulary; }

const shoal_feature *shoal_encoder_features(const shoal_encoder *e, uint32_t *count) {
  *count = e->features_count;
  return e->features;
}

uint32_t shoal_encoder_column(const shoal_encoder *e, uint32_t value) {
  SHOAL_ASSERT(value < e->values);
  uint32_t i = 0;
  while (value >= e->features[i].first + e->features[i].values) i++;
  return e->features[i].column;
}

/* ---- numbers ------------------------------------------------------------------------ */

double shoal_tame(double x) { return x > tame_max ? tame_max : x < -tame_max ? -tame_max : x; }

static double within(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

/* Year, month (from 0) and day of so many days since 1970: years of 400 begin in March. */
static void civil(int64_t days, int64_t *year, int64_t *month, int64_t *day) {
  int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, of_era = z - era * 146097;
  int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  int64_t of_year = of_era - (365 * y + y / 4 - y / 100), m = (5 * of_year + 2) / 153;
  *day = of_year - (153 * m + 2) / 5 + 1;
  *month = m < 10 ? m + 2 : m - 10;
  *year = y + era * 400 + (*month <= 1);
}

double shoal_date_part_of(double seconds, shoal_date_part part) {
  static const double day_s = 86400, seconds_max = 1e13;
  if (part == SHOAL_PART_WHOLE || isnan(seconds)) return shoal_tame(seconds);
  double days = floor(within(seconds, -seconds_max, seconds_max) / day_s);
  int64_t year, month, day, weekday = ((int64_t)days % 7 + 11) % 7; /* the first day was a Thursday */
  civil((int64_t)days, &year, &month, &day);
  switch (part) {
  case SHOAL_PART_YEAR: return (double)year;
  case SHOAL_PART_DAY: return (double)day;
  case SHOAL_PART_MONTH: return (double)month;
  case SHOAL_PART_WEEKDAY: return (double)weekday;
  default: return (within(seconds, -seconds_max, seconds_max) - days * day_s) / 3600;
  }
}

/* The sine of t turns, from its series: the C library's differs from machine to machine. */
static double sine(double t) {
  t -= floor(t);
  double sign = t >= 0.5 ? -1 : 1;
  if (t >= 0.5) t -= 0.5;
  if (t > 0.25) t = 0.5 - t;
  double x = 6.283185307179586 * t, square = x * x, sum = 0;
  for (int k = 17; k >= 3; k -= 2) sum = (1 + sum) * (-square / (double)(k * (k - 1)));
  return sign * x * (1 + sum);
}

static void put_cycle(const shoal_feature *f, double x, float *out) {
  double period = f->part == SHOAL_PART_MONTH ? 12 : f->part == SHOAL_PART_WEEKDAY ? 7 : 24;
  out[0] = (float)sine(x / period);
  out[1] = (float)sine(x / period + 0.25);
}

/* The last i with at[i] <= x, within 0 .. points - 2. */
static uint32_t interval(const shoal_feature *f, double x) {
  uint32_t low = 0, high = f->points - 2;
  while (low < high) {
    uint32_t middle = (low + high + 1) / 2;
    if (f->at[middle] <= x)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

static float table_value(const shoal_feature *f, double x) {
  if (x <= f->at[0]) return (float)f->to[0];
  if (x >= f->at[f->points - 1]) return (float)f->to[f->points - 1];
  uint32_t i = interval(f, x);
  double part = (x - f->at[i]) / (f->at[i + 1] - f->at[i]);
  return (float)(f->to[i] + part * (f->to[i + 1] - f->to[i]));
}

static void put_pieces(const shoal_feature *f, double x, float *out) {
  uint32_t i = interval(f, x), last = f->values - 1;
  double part = (x - f->at[i]) / (f->at[i + 1] - f->at[i]);
  part = within(part, i == 0 ? -overshoot : 0, i == last ? 1 + overshoot : 1);
  for (uint32_t j = 0; j < i; j++) out[j] = (float)(1 - f->to[j]);
  out[i] = (float)(part - f->to[i]);
  for (uint32_t j = i + 1; j <= last; j++) out[j] = (float)-f->to[j];
}

static void put_number(const shoal_feature *f, double x, float *out) {
  bool missing = isnan(x);
  if (f->kind == SHOAL_FEATURE_MISSING) {
    out[0] = missing ? 1 : 0;
    return;
  }
  if (missing) {
    memset(out, 0, f->values * sizeof *out);
    return;
  }
  x = shoal_date_part_of(x, f->part);
  switch (f->kind) {
  case SHOAL_FEATURE_SCALED:
    out[0] = (float)within((x - f->centre) / f->scale, -SHOAL_SCALED_MAX, SHOAL_SCALED_MAX);
    break;
  case SHOAL_FEATURE_TABLE: out[0] = table_value(f, x); break;
  case SHOAL_FEATURE_PIECES: put_pieces(f, x, out); break;
  default: put_cycle(f, x, out); break;
  }
}

/* ---- categories and texts ----------------------------------------------------------- */

uint32_t shoal_feature_slot(const shoal_feature *f, uint32_t category) {
  if (category == SHOAL_MISSING) return f->missing;
  return category < f->categories ? f->slot_of[category] : 0;
}

static void put_category(const shoal_feature *f, uint32_t category, float *out) {
  uint32_t slot = shoal_feature_slot(f, category);
  if (f->kind == SHOAL_FEATURE_LOOKUP) {
    out[0] = (float)(f->offset + slot);
  } else if (f->kind == SHOAL_FEATURE_LABEL) {
    out[0] = (float)within(((double)slot - f->centre) / f->scale, -SHOAL_SCALED_MAX, SHOAL_SCALED_MAX);
  } else {
    memset(out, 0, f->values * sizeof *out);
    if (slot >= f->skip) out[slot - f->skip] = 1;
  }
}

static uint32_t scramble(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

uint32_t shoal_text_bucket(uint32_t hash) { return scramble(hash) % SHOAL_TEXT_BUCKETS; }

/* Every hash is added to one of the values, with a sign of its own, so that what falls together cancels
 * out on average. The vector's length is a quarter of what standardised numbers would have. */
static void put_text(const shoal_feature *f, const uint32_t *hashes, uint32_t count, float *out) {
  memset(out, 0, f->values * sizeof *out);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t mixed = scramble(hashes[i] ^ 0x9e3779b9u), at = (uint32_t)(((uint64_t)mixed * f->values) >> 32);
    float weight = (float)f->to[shoal_text_bucket(hashes[i])];
    out[at] += mixed & 1 ? weight : -weight;
  }
  double squares = 0;
  for (uint32_t j = 0; j < f->values; j++) squares += (double)out[j] * (double)out[j];
  if (squares == 0) return;
  float scale = (float)(sqrt((double)f->values) / 4 / sqrt(squares));
  for (uint32_t j = 0; j < f->values; j++) out[j] *= scale;
}

void shoal_encoder_row(const shoal_encoder *e, const shoal_rows *rows, uint64_t row, float *out) {
  for (uint32_t i = 0; i < e->features_count; i++) {
    const shoal_feature *f = &e->features[i];
    float *to = out + f->first;
    switch (f->kind) {
    case SHOAL_FEATURE_ONE_HOT:
    case SHOAL_FEATURE_LABEL:
    case SHOAL_FEATURE_LOOKUP: put_category(f, shoal_rows_category(rows, row, f->column), to); break;
    case SHOAL_FEATURE_TEXT: {
      uint32_t count;
      const uint32_t *hashes = shoal_rows_text(rows, row, f->column, &count);
      put_text(f, hashes, count, to);
      break;
    }
    default: put_number(f, shoal_rows_number(rows, row, f->column), to); break;
    }
  }
}
