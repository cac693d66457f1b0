/* encoder_fit.c: what the training rows say about each column; see encoder.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "data/order.h"
#include "search/encoder_internal.h"
#include "search/exact.h"

enum {
  SAMPLE_MAX = 100000,
  TABLE_POINTS = 100,
  SEEN_LEAST = 3,              /* fewer make a category unseen */
  PIECES_VALUES_MAX = 1 << 13, /* of all columns; many columns get fewer pieces each */
  ONE_HOT_USUAL = 64,
  TEXT_VALUES_USUAL = 128,
  TEXT_VALUES_MAX = 1 << 16,
};

typedef struct fitter {
  shoal_encoder *encoder;
  const shoal_rows *rows;
  const shoal_row_list *training;
  uint64_t *sample; /* rows */
  uint64_t sample_count;
  double *cells, *sorted; /* of one column: in the sample's order; those that are there, ascending */
  uint64_t sorted_count;
  uint32_t pieces; /* 0: standardised instead */
  shoal_error *err;
} fitter;

static shoal_status no_memory(const fitter *f) {
  return shoal_fail(f->err, SHOAL_NO_MEMORY, "not enough memory to fit the encoding of the columns");
}

static bool draw_sample(fitter *f) {
  uint64_t rows = f->training->count;
  f->sample_count = rows < SAMPLE_MAX ? rows : SAMPLE_MAX;
  f->sample = malloc((f->sample_count + 1) * sizeof *f->sample);
  f->cells = malloc((f->sample_count + 1) * sizeof *f->cells);
  f->sorted = malloc((f->sample_count + 1) * sizeof *f->sorted);
  if (!f->sample || !f->cells || !f->sorted) return false;
  shoal_order order;
  shoal_order_init_key(&order, rows, shoal_key_make(0, SHOAL_FOR_SAMPLING, 1, 0));
  for (uint64_t i = 0; i < f->sample_count; i++)
    f->sample[i] = f->training->at[rows > SAMPLE_MAX ? shoal_order_at(&order, i) : i];
  return true;
}

static shoal_status append(fitter *f, const shoal_feature *feature) {
  return shoal_encoder_append(f->encoder, feature) ? SHOAL_OK : no_memory(f);
}

/* ---- numbers ------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The cells of a column, whole or in part, in both orders. */
static void read_cells(fitter *f, uint32_t column, shoal_date_part part) {
  f->sorted_count = 0;
  for (uint64_t i = 0; i < f->sample_count; i++) {
    f->cells[i] = shoal_date_part_of(shoal_rows_number(f->rows, f->sample[i], column), part);
    if (!isnan(f->cells[i])) f->sorted[f->sorted_count++] = f->cells[i];
  }
  if (f->sorted_count > 0) qsort(f->sorted, f->sorted_count, sizeof *f->sorted, by_value);
}

static bool varies(const fitter *f) {
  return f->sorted_count > 0 && f->sorted[0] < f->sorted[f->sorted_count - 1];
}

static double quantile(const double *sorted, uint64_t count, double p) {
  double at = p * (double)(count - 1);
  uint64_t i = (uint64_t)at;
  if (i + 1 >= count) return sorted[count - 1];
  return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

static void measure(const fitter *f, double *mean, double *deviation) {
  double sum = 0, squares = 0, count = (double)f->sorted_count;
  for (uint64_t i = 0; i < f->sorted_count; i++) sum += f->sorted[i] / count;
  for (uint64_t i = 0; i < f->sorted_count; i++)
    squares += (f->sorted[i] - sum) * (f->sorted[i] - sum) / count;
  *mean = sum;
  *deviation = sqrt(squares);
}

/* A quartile distance of a normal distribution is 1.349 deviations. */
static shoal_status fit_scaled(fitter *f, shoal_feature *feature, bool robust) {
  feature->kind = SHOAL_FEATURE_SCALED;
  feature->values = 1;
  measure(f, &feature->centre, &feature->scale);
  if (robust) {
    double low = quantile(f->sorted, f->sorted_count, 0.25),
           high = quantile(f->sorted, f->sorted_count, 0.75);
    feature->centre = quantile(f->sorted, f->sorted_count, 0.5);
    if (high > low) feature->scale = (high - low) / 1.349;
  }
  return feature->scale > 0 ? append(f, feature) : SHOAL_OK;
}

/* Points at equal steps of probability; where several have one value, it gets the middle of them. */
static shoal_status fit_table(fitter *f, shoal_feature *feature) {
  uint32_t most = f->sorted_count < TABLE_POINTS ? (uint32_t)f->sorted_count : TABLE_POINTS;
  feature->kind = SHOAL_FEATURE_TABLE;
  feature->values = 1;
  feature->at = shoal_arena_array(&f->encoder->memory, most + 2, sizeof(double));
  feature->to = shoal_arena_array(&f->encoder->memory, most + 2, sizeof(double));
  if (feature->at == NULL || feature->to == NULL) return no_memory(f);
  const double *sorted = f->sorted;
  double count = (double)f->sorted_count;
  uint64_t done = 0; /* cells up to the last point's value */
  for (uint32_t k = 0; k <= most; k++) {
    uint64_t i = k < most ? (uint64_t)((k + 0.5) / most * count) : f->sorted_count - 1;
    if (k == 0) i = 0;
    if (i < done) continue;
    uint64_t first = i, end = i + 1;
    while (first > 0 && sorted[first - 1] == sorted[i]) first--;
    while (end < f->sorted_count && sorted[end] == sorted[i]) end++;
    feature->at[feature->points] = sorted[i];
    feature->to[feature->points++] = shoal_normal_quantile(((double)first + (double)end) / 2 / count);
    done = end;
  }
  return feature->points > 1 ? append(f, feature) : SHOAL_OK;
}

/* Edges: values that take more than an interval's share of the cells, then quantiles of the others.
 * Returns how many. */
static uint32_t find_edges(const fitter *f, uint32_t pieces, double *edges) {
  const double *sorted = f->sorted;
  uint64_t count = f->sorted_count, rest = 0;
  uint32_t edges_count = 0;
  double *others = f->cells; /* no longer needed in its own order */
  for (uint64_t i = 0, end; i < count; i = end) {
    for (end = i + 1; end < count && sorted[end] == sorted[i];) end++;
    if ((end - i) * pieces > count)
      edges[edges_count++] = sorted[i];
    else
      for (uint64_t j = i; j < end; j++) others[rest++] = sorted[j];
  }
  uint32_t steps = edges_count + 1 < pieces ? pieces - edges_count : 1;
  for (uint32_t k = 0; k <= steps && rest > 0; k++)
    edges[edges_count++] = others[(uint64_t)((double)k / steps * (double)(rest - 1) + 0.5)];
  qsort(edges, edges_count, sizeof *edges, by_value);
  uint32_t different = 0;
  for (uint32_t i = 0; i < edges_count; i++)
    if (different == 0 || edges[i] > edges[different - 1]) edges[different++] = edges[i];
  return different;
}

/* The mean of each value over the sample. */
static void centre_pieces(const fitter *f, shoal_feature *feature) {
  uint32_t j = 0;
  for (uint64_t i = 0; i < f->sorted_count; i++) {
    double x = f->sorted[i];
    while (j + 1 < feature->values && x >= feature->at[j + 1]) j++;
    for (uint32_t full = 0; full < j; full++) feature->to[full] += 1;
    feature->to[j] += (x - feature->at[j]) / (feature->at[j + 1] - feature->at[j]);
  }
  for (uint32_t v = 0; v < feature->values; v++) feature->to[v] /= (double)f->sorted_count;
}

static shoal_status fit_pieces(fitter *f, shoal_feature *feature) {
  feature->kind = SHOAL_FEATURE_PIECES;
  feature->at = shoal_arena_array(&f->encoder->memory, 2 * (size_t)f->pieces + 2, sizeof(double));
  feature->to = shoal_arena_array(&f->encoder->memory, 2 * (size_t)f->pieces + 2, sizeof(double));
  if (feature->at == NULL || feature->to == NULL) return no_memory(f);
  feature->points = find_edges(f, f->pieces, feature->at);
  if (feature->points < 2) return SHOAL_OK;
  feature->values = feature->points - 1;
  centre_pieces(f, feature);
  return append(f, feature);
}

static shoal_status fit_number(fitter *f, uint32_t column, shoal_date_part part) {
  shoal_feature feature = {.column = column, .part = part};
  read_cells(f, column, part);
  if (!varies(f)) return SHOAL_OK;
  shoal_number_way way = part == SHOAL_PART_WHOLE ? f->encoder->choice.numbers : SHOAL_STANDARD;
  if (way == SHOAL_PIECES && f->pieces > 0) return fit_pieces(f, &feature);
  return way == SHOAL_QUANTILE ? fit_table(f, &feature) : fit_scaled(f, &feature, way == SHOAL_ROBUST);
}

static shoal_status fit_missing(fitter *f, uint32_t column) {
  const shoal_feature feature = {.kind = SHOAL_FEATURE_MISSING, .column = column, .values = 1};
  bool varied = f->sorted_count > 0 && f->sorted_count < f->sample_count;
  return varied ? append(f, &feature) : SHOAL_OK;
}

static shoal_status fit_date(fitter *f, uint32_t column) {
  shoal_status status = SHOAL_OK;
  for (shoal_date_part part = SHOAL_PART_YEAR; part < SHOAL_DATE_PARTS && status == SHOAL_OK; part++) {
    if (part < SHOAL_PART_MONTH) {
      status = fit_number(f, column, part);
      continue;
    }
    const shoal_feature feature = {.kind = SHOAL_FEATURE_CYCLE, .column = column, .part = part, .values = 2};
    read_cells(f, column, part);
    if (varies(f)) status = append(f, &feature);
  }
  return status;
}

/* ---- categories --------------------------------------------------------------------- */

typedef struct counted {
  uint64_t count;
  uint32_t category;
} counted;

static int most_first(const void *a, const void *b) {
  const counted *x = a, *y = b;
  if (x->count != y->count) return x->count > y->count ? -1 : 1;
  return (x->category > y->category) - (x->category < y->category);
}

/* Slots in the order of their counts; returns the rows of slot 0. */
static uint64_t give_slots(const fitter *f, shoal_feature *feature, counted *counts) {
  uint64_t missing = 0, unseen = 0, rows = f->training->count;
  for (uint32_t c = 0; c < feature->categories; c++) counts[c] = (counted){0, c};
  for (uint64_t i = 0; i < rows; i++) {
    uint32_t category = shoal_rows_category(f->rows, f->training->at[i], feature->column);
    if (category < feature->categories)
      counts[category].count++;
    else if (category == SHOAL_MISSING)
      missing++;
    else
      unseen++;
  }
  feature->missing = missing > 0 ? 1 : 0;
  feature->slots = 1 + feature->missing;
  if (feature->categories > 0) qsort(counts, feature->categories, sizeof *counts, most_first);
  for (uint32_t c = 0; c < feature->categories; c++) {
    if (counts[c].count >= SEEN_LEAST)
      feature->slot_of[counts[c].category] = feature->slots++;
    else
      unseen += counts[c].count;
  }
  return unseen;
}

/* Mean and deviation of the slots' numbers. */
static void scale_slots(const fitter *f, shoal_feature *feature) {
  double sum = 0, squares = 0, rows = (double)f->training->count;
  for (uint64_t i = 0; i < f->training->count; i++) {
    double slot =
        shoal_feature_slot(feature, shoal_rows_category(f->rows, f->training->at[i], feature->column));
    sum += slot;
    squares += slot * slot;
  }
  feature->centre = sum / rows;
  feature->scale = sqrt(fmax(squares / rows - feature->centre * feature->centre, 0));
}

static shoal_status fit_category(fitter *f, uint32_t column, uint32_t categories) {
  const shoal_encoding_choice *choice = &f->encoder->choice;
  shoal_feature feature = {.column = column, .categories = categories, .values = 1};
  feature.slot_of = shoal_arena_array(&f->encoder->memory, categories + 1, sizeof *feature.slot_of);
  counted *counts = malloc((categories + 1) * sizeof *counts);
  if (feature.slot_of == NULL || counts == NULL) {
    free(counts);
    return no_memory(f);
  }
  uint64_t unseen = give_slots(f, &feature, counts);
  free(counts);
  if (feature.slots - (unseen == 0) < 2) return SHOAL_OK; /* the same in all training rows */
  uint32_t one_hot_max = choice->one_hot_max > 0 ? choice->one_hot_max : ONE_HOT_USUAL;
  if (choice->categories == SHOAL_LABEL) {
    feature.kind = SHOAL_FEATURE_LABEL;
    scale_slots(f, &feature);
    if (!(feature.scale > 0)) return SHOAL_OK;
  } else if (choice->categories == SHOAL_LOOKUP || feature.slots > one_hot_max) {
    feature.kind = SHOAL_FEATURE_LOOKUP;
  } else {
    feature.kind = SHOAL_FEATURE_ONE_HOT;
    feature.skip = unseen == 0;
    feature.values = feature.slots - feature.skip;
  }
  return append(f, &feature);
}

/* ---- texts -------------------------------------------------------------------------- */

static shoal_status fit_text(fitter *f, uint32_t column) {
  uint32_t values = f->encoder->choice.text_values;
  shoal_feature feature = {.kind = SHOAL_FEATURE_TEXT, .column = column, .points = SHOAL_TEXT_BUCKETS};
  feature.values = values == 0 ? TEXT_VALUES_USUAL : values > TEXT_VALUES_MAX ? TEXT_VALUES_MAX : values;
  feature.to = shoal_arena_array(&f->encoder->memory, SHOAL_TEXT_BUCKETS, sizeof *feature.to);
  uint64_t *last = calloc(SHOAL_TEXT_BUCKETS, sizeof *last); /* row + 1 in which a bucket was last counted */
  if (feature.to == NULL || last == NULL) {
    free(last);
    return no_memory(f);
  }
  for (uint64_t i = 0; i < f->sample_count; i++) {
    uint32_t count;
    const uint32_t *hashes = shoal_rows_text(f->rows, f->sample[i], column, &count);
    for (uint32_t h = 0; h < count; h++) {
      uint32_t bucket = shoal_text_bucket(hashes[h]);
      feature.to[bucket] += last[bucket] != i + 1;
      last[bucket] = i + 1;
    }
  }
  for (uint32_t b = 0; b < SHOAL_TEXT_BUCKETS; b++)
    feature.to[b] = 1 + shoal_exact_log((1 + (double)f->sample_count) / (1 + feature.to[b]));
  free(last);
  return append(f, &feature);
}

/* ---- all of them -------------------------------------------------------------------- */

static bool is_feature(const shoal_profile *profile, const shoal_target *target, uint32_t column) {
  return profile->columns[column].used && column != target->column;
}

static uint32_t choose_pieces(const shoal_profile *profile, const shoal_target *target, uint32_t asked) {
  uint32_t numbers = 0;
  for (uint32_t c = 0; c < profile->columns_count; c++) {
    shoal_column_kind kind = profile->columns[c].kind;
    numbers += is_feature(profile, target, c) && (kind == SHOAL_NUMBER || kind == SHOAL_DATE);
  }
  uint32_t most = numbers > 0 ? PIECES_VALUES_MAX / numbers : PIECES_VALUES_MAX;
  uint32_t pieces = asked < most ? asked : most;
  if (pieces > SHOAL_PIECES_MAX) pieces = SHOAL_PIECES_MAX;
  return pieces >= 2 ? pieces : 0;
}

static shoal_status fit_column(fitter *f, const shoal_profile *profile, uint32_t c) {
  const shoal_column *column = &profile->columns[c];
  shoal_status status = SHOAL_OK;
  switch (column->kind) {
  case SHOAL_NUMBER:
  case SHOAL_DATE:
    status = fit_number(f, c, SHOAL_PART_WHOLE);
    if (status == SHOAL_OK) status = fit_missing(f, c);
    return status == SHOAL_OK && column->kind == SHOAL_DATE ? fit_date(f, c) : status;
  case SHOAL_CATEGORY: return fit_category(f, c, column->categories.count);
  case SHOAL_TEXT: return fit_text(f, c);
  default: return SHOAL_OK;
  }
}

/* Two categories that are numbers with different units: "70.1 kg" and "70100 g". */
static bool mixed_units(const shoal_names *names, const char *found[2]) {
  const char *first = NULL;
  for (uint32_t i = 0; i < names->count; i++) {
    const char *name = shoal_names_at(names, i), *unit = name + strspn(name, "+-0123456789.,");
    unit += strspn(unit, " ");
    if (unit == name || *unit == 0 || strcspn(name, "0123456789") > 1) continue;
    if (first == NULL) {
      first = unit;
      found[0] = name;
    } else if (strcmp(first, unit) != 0) {
      found[1] = name;
      return true;
    }
  }
  return false;
}

/* Why nothing was left to learn from. */
static shoal_status no_features(const shoal_profile *profile, const shoal_target *target, shoal_error *err) {
  const shoal_column *rare = NULL;
  for (uint32_t c = 0; c < profile->columns_count && rare == NULL; c++)
    if (is_feature(profile, target, c) && profile->columns[c].kind == SHOAL_CATEGORY)
      rare = &profile->columns[c];
  if (rare == NULL)
    return shoal_fail(
        err, SHOAL_INVALID,
        "there is no column to learn from: all but the target are identifiers, constant or left out");
  const char *cells[2];
  if (mixed_units(&rare->categories, cells))
    return shoal_fail(
        err, SHOAL_INVALID,
        "there is nothing to learn from: no value of '%.60s' is frequent enough, of %llu. It has "
        "numbers with different units, such as '%.30s' and '%.30s': write all in one, and it "
        "is a number",
        rare->name, (unsigned long long)rare->distinct, cells[0], cells[1]);
  return shoal_fail(
      err, SHOAL_INVALID,
      "there is nothing to learn from: no value of '%.60s' is frequent enough, of %llu: three rows "
      "to learn from must have it; if it is a number or a text, say so: %.60s=number or "
      "%.60s=text",
      rare->name, (unsigned long long)rare->distinct, rare->name, rare->name);
}

shoal_status shoal_encoder_fit(shoal_encoder **out, const shoal_profile *profile,
                               const shoal_encoding_choice *choice, const shoal_target *target,
                               const shoal_rows *rows, const shoal_row_list *training, shoal_error *err) {
  *out = NULL;
  fitter f = {.encoder = shoal_encoder_new(choice), .rows = rows, .training = training, .err = err};
  f.pieces = choose_pieces(profile, target, choice->pieces);
  shoal_status status = f.encoder && draw_sample(&f) ? SHOAL_OK : no_memory(&f);
  for (uint32_t c = 0; c < profile->columns_count && status == SHOAL_OK; c++)
    if (is_feature(profile, target, c)) status = fit_column(&f, profile, c);
  if (status == SHOAL_OK) status = shoal_encoder_place(f.encoder, err);
  if (status == SHOAL_OK && f.encoder->values == 0) status = no_features(profile, target, err);
  free(f.sample);
  free(f.cells);
  free(f.sorted);
  if (status == SHOAL_OK)
    *out = f.encoder;
  else
    shoal_encoder_destroy(f.encoder);
  return status;
}
