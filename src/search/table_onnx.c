/* table_onnx.c: see table_onnx.h.
 *
 * What all networks share is made once: `parts`, batch x (dates, numbers, then for every part of a date
 * as many values as there are dates), with 0 where a cell is missing; `absent`, batch x (dates, numbers);
 * `found`, batch x categories, the number of a cell's category; of texts what their hashes lead to. A
 * network's encoder then picks from these by lists of places: all its values of one kind are computed
 * together, put side by side, and brought into the order of its vector. */
#include "search/table_onnx.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "nn/onnx.h"
#include "search/encoder_internal.h"

enum { OPSET_OF_TEXTS = 18 /* BitwiseXor */, NAME_BYTES = 512, MARKS_MAX = 64, MARK_BYTES = 8 };
static const uint32_t nowhere = UINT32_MAX;
static const double number_max = 1e100; /* as in encoder.c */
static const double seconds_max = 1e13;
static const double above_numbers = 1e300;
static const double squares_min = 1e-60;  /* 0 stays 0 */
static const char own_names[] = "shoal/"; /* what no input's name begins with */

/* The values of one kind, written down before any operator is: (x - from) / width within low .. high,
 * less `less`. Not every kind has all of it. */
typedef struct group {
  size_t count;
  int64_t *to;          /* the place in the vector */
  int64_t *part, *cell; /* the places in `parts` and `absent` */
  int64_t *slot, *wanted;
  double *from, *width, *low, *high, *less;
} group;

/* What all networks share of a column of texts: batch x SHOAL_TEXT_HASHES. */
typedef struct hashed {
  const char *none;   /* whether there is no such hash */
  const char *bucket; /* where its weight is */
  const char *mixed;  /* from which its place in the vector follows, */
  const char *sign;   /* and its sign */
} hashed;

typedef struct made_vector {
  char sha256[SHOAL_SHA256_HEX]; /* of its encoder */
  const char *value;
} made_vector;

typedef struct exporter {
  shoal_onnx_file *file;
  const shoal_predictor *predictor;
  const shoal_profile *profile;
  uint32_t *places;    /* of each column among those of its kind, numbers behind dates; or nowhere */
  const char **inputs; /* of each column */
  uint32_t dates, numbers /* with the dates */, categories, texts_count;
  bool has_parts;    /* something other than the whole of a date is looked at */
  const char *parts; /* NULL: no dates and numbers */
  const char *absent;
  const char *found; /* numbers of categories; NULL: none */
  hashed *texts;
  made_vector *vectors; /* of each network */
  group group;          /* the one being made; its lists have room for a vector */
} exporter;

static bool is_number(const shoal_column *column) {
  return column->kind == SHOAL_NUMBER || column->kind == SHOAL_DATE;
}

static void *take(exporter *e, size_t count, size_t size) {
  void *memory = shoal_arena_array(&e->file->memory, count + 1, size);
  e->file->failed |= !memory;
  return memory;
}

/* ---- operators ---------------------------------------------------------------------- */

static const char *pick(exporter *e, const char *x, size_t count, const int64_t *places) {
  const char *indices = shoal_onnx_ints(e->file, count, places);
  shoal_onnx_attribute_int(e->file, "axis", 1);
  return shoal_onnx_emit(e->file, "Gather", x, indices, NULL);
}

static const char *with(exporter *e, const char *op, const char *x, double y) {
  return shoal_onnx_emit(e->file, op, x, shoal_onnx_doubles(e->file, 0, &y), NULL);
}

static const char *with_int(exporter *e, const char *op, const char *x, int64_t y) {
  return shoal_onnx_emit(e->file, op, x, shoal_onnx_ints(e->file, 0, &y), NULL);
}

static const char *with_all(exporter *e, const char *op, const char *x, size_t count, const double *y) {
  return shoal_onnx_emit(e->file, op, x, shoal_onnx_doubles(e->file, count, y), NULL);
}

static const char *within(exporter *e, const char *x, double low, double high) {
  return with(e, "Min", with(e, "Max", x, low), high);
}

static const char *whole_parts(exporter *e, const char *x, double of) {
  return shoal_onnx_emit(e->file, "Floor", with(e, "Div", x, of), NULL);
}

static const char *add(exporter *e, const char *x, const char *y) {
  return shoal_onnx_emit(e->file, "Add", x, y, NULL);
}

static const char *less(exporter *e, const char *x, const char *y) {
  return shoal_onnx_emit(e->file, "Sub", x, y, NULL);
}

/* ---- inputs ------------------------------------------------------------------------- */

/* Which columns any network looks at, and where they stand: the dates come first. */
static void find_columns(exporter *e) {
  for (uint32_t c = 0; c < e->profile->columns_count; c++) e->places[c] = nowhere;
  for (uint32_t i = 0; i < shoal_predictor_members(e->predictor); i++) {
    uint32_t count;
    const shoal_feature *features =
        shoal_encoder_features(shoal_predictor_member(e->predictor, i, NULL)->encoder, &count);
    for (uint32_t k = 0; k < count; k++) {
      const shoal_feature *f = &features[k];
      e->places[f->column] = 0;
      e->has_parts |= f->part != SHOAL_PART_WHOLE;
    }
  }
  for (uint32_t c = 0; c < e->profile->columns_count; c++)
    if (e->places[c] != nowhere && e->profile->columns[c].kind == SHOAL_DATE) e->places[c] = e->dates++;
  e->numbers = e->dates;
  for (uint32_t c = 0; c < e->profile->columns_count; c++) {
    if (e->places[c] == nowhere || e->profile->columns[c].kind == SHOAL_DATE) continue;
    shoal_column_kind kind = e->profile->columns[c].kind;
    e->places[c] = kind == SHOAL_TEXT     ? e->texts_count++
                   : kind == SHOAL_NUMBER ? e->numbers++
                                          : e->categories++;
  }
}

/* What a text becomes before it gets here is in docs/formats.md. */
static void add_input(exporter *e, uint32_t c, const char *name) {
  switch (e->profile->columns[c].kind) {
  case SHOAL_CATEGORY:
    e->inputs[c] = shoal_onnx_input(e->file, name, SHOAL_ONNX_STRING, 1, (int64_t[]){1});
    break;
  case SHOAL_TEXT:
    e->inputs[c] = shoal_onnx_input(e->file, name, SHOAL_ONNX_INT64, 1, (int64_t[]){SHOAL_TEXT_HASHES});
    break;
  default: e->inputs[c] = shoal_onnx_input(e->file, name, SHOAL_ONNX_DOUBLE, 1, (int64_t[]){1}); break;
  }
}

/* The name, made different from other values' names where it is not. */
static bool name_input(shoal_names *names, const char *name, char out[NAME_BYTES]) {
  const char *before = strncmp(name, own_names, sizeof own_names - 1) == 0 ? "column " : "";
  snprintf(out, NAME_BYTES, "%s%s", before, name);
  for (uint32_t again = 2; shoal_names_find(names, out, strlen(out)) != SHOAL_NO_NAME; again++)
    snprintf(out, NAME_BYTES, "%s%s (%u)", before, name, again);
  return shoal_names_add(names, out, strlen(out)) != SHOAL_NO_NAME;
}

static void describe_input(const shoal_column *column, const char *input, shoal_json *json) {
  shoal_json_open(json, NULL, '{');
  shoal_json_text(json, "input", input);
  shoal_json_text(json, "column", column->name);
  shoal_json_text(json, "kind", shoal_column_kind_name(column->kind));
  if (column->unit[0]) shoal_json_text(json, "unit", column->unit);
  shoal_json_close(json, '}');
}

static void add_inputs(exporter *e) {
  static const char *const outputs[] = {"label", "probabilities", "value"};
  char wanted[NAME_BYTES - 32], name[NAME_BYTES];
  shoal_names names;
  shoal_text text;
  shoal_json json;
  shoal_names_init(&names);
  shoal_json_begin(&json, &text);
  for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
    shoal_names_add(&names, outputs[i], strlen(outputs[i]));
  shoal_json_open(&json, NULL, '[');
  for (uint32_t c = 0; c < e->profile->columns_count; c++) {
    const shoal_column *column = &e->profile->columns[c];
    if (e->places[c] == nowhere) continue;
    snprintf(wanted, sizeof wanted, "%s%s", column->name, column->kind == SHOAL_TEXT ? ".hashed" : "");
    e->file->failed |= !name_input(&names, wanted, name);
    add_input(e, c, name);
    describe_input(column, name, &json);
  }
  shoal_json_close(&json, ']');
  e->file->failed |= text.failed;
  if (!text.failed) shoal_onnx_meta(e->file, "shoal.inputs", text.bytes);
  shoal_text_release(&text);
  shoal_names_release(&names);
}

/* ---- what all networks share -------------------------------------------------------- */

/* Year, day, month, weekday and hour, in the order of shoal_date_part, as encoder.c has them: years of 400
 * begin in March. Whole numbers of this size are exact as doubles. */
static void add_date_parts(exporter *e, const char *seconds, const char *parts[SHOAL_DATE_PARTS]) {
  seconds = within(e, seconds, -seconds_max, seconds_max);
  const char *days = whole_parts(e, seconds, 86400);
  const char *since = with(e, "Add", days, 4); /* the first day was a Thursday */
  const char *z = with(e, "Add", days, 719468), *era = whole_parts(e, z, 146097);
  const char *of_era = less(e, z, with(e, "Mul", era, 146097));
  const char *y = less(e, of_era, whole_parts(e, of_era, 1460));
  y = add(e, y, whole_parts(e, of_era, 36524));
  y = whole_parts(e, less(e, y, whole_parts(e, of_era, 146096)), 365);
  const char *before = add(e, with(e, "Mul", y, 365), whole_parts(e, y, 4));
  const char *of_year = less(e, of_era, less(e, before, whole_parts(e, y, 100)));
  const char *m = whole_parts(e, with(e, "Add", with(e, "Mul", of_year, 5), 2), 153);
  const char *late = whole_parts(e, m, 10); /* 1 in January and February */
  const char *month_start = whole_parts(e, with(e, "Add", with(e, "Mul", m, 153), 2), 5);
  parts[SHOAL_PART_YEAR] = add(e, add(e, y, with(e, "Mul", era, 400)), late);
  parts[SHOAL_PART_DAY] = with(e, "Add", less(e, of_year, month_start), 1);
  parts[SHOAL_PART_MONTH] = less(e, with(e, "Add", m, 2), with(e, "Mul", late, 12));
  parts[SHOAL_PART_WEEKDAY] = less(e, since, with(e, "Mul", whole_parts(e, since, 7), 7));
  parts[SHOAL_PART_HOUR] = with(e, "Div", less(e, seconds, with(e, "Mul", days, 86400)), 3600);
}

static void add_numbers(exporter *e) {
  const char **values = take(e, e->numbers, sizeof *values);
  if (!values || e->numbers == 0) return;
  for (uint32_t c = 0; c < e->profile->columns_count; c++)
    if (e->places[c] != nowhere && is_number(&e->profile->columns[c])) values[e->places[c]] = e->inputs[c];
  e->file->scope = "shoal/numbers";
  const char *all = shoal_onnx_concat(e->file, e->numbers, values, 1);
  e->absent = shoal_onnx_emit(e->file, "IsNaN", all, NULL);
  const char *zero = shoal_onnx_doubles(e->file, 0, &(double){0});
  all = within(e, shoal_onnx_emit(e->file, "Where", e->absent, zero, all, NULL), -number_max, number_max);
  const char *parts[SHOAL_DATE_PARTS] = {[SHOAL_PART_WHOLE] = all};
  if (e->has_parts) {
    int64_t *dates = take(e, e->dates, sizeof *dates);
    if (!dates) return;
    for (uint32_t i = 0; i < e->dates; i++) dates[i] = i;
    e->file->scope = "shoal/dates";
    add_date_parts(e, pick(e, all, e->dates, dates), parts);
  }
  e->parts = shoal_onnx_concat(e->file, e->has_parts ? SHOAL_DATE_PARTS : 1, parts, 1);
}

/* The mark with those letters raised whose bits are set; false where one of them is no letter. */
static bool raise_letters(const char *mark, uint32_t which, char out[MARK_BYTES]) {
  size_t length = strlen(mark);
  memset(out, 0, MARK_BYTES);
  for (size_t k = 0; k < length; k++) {
    bool raised = which >> k & 1;
    if (raised && !(mark[k] >= 'a' && mark[k] <= 'z')) return false;
    out[k] = raised ? (char)(mark[k] - 'a' + 'A') : mark[k];
  }
  return true;
}

/* Every way to write the marks of missing cells: upper and lower case count alike. */
static size_t missing_marks(exporter *e, const char *out[MARKS_MAX]) {
  static const char *const marks[] = {"", "?", "-", "na", "n/a", "nan", "null", "none"};
  char word[MARK_BYTES];
  size_t count = 0;
  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
    for (uint32_t which = 0; which < 1u << strlen(marks[i]); which++) {
      if (!raise_letters(marks[i], which, word)) continue;
      SHOAL_ASSERT(shoal_cell_is_missing(word, strlen(word)) && count < MARKS_MAX);
      out[count++] = shoal_onnx_join(e->file, word, "");
    }
  }
  return count;
}

/* The number of the category in the profile; behind the last one stand "missing" and "unseen". */
static const char *add_category(exporter *e, const shoal_column *column, const char *input) {
  const shoal_names *names = &column->categories;
  const char **keys = take(e, (size_t)names->count + MARKS_MAX, sizeof *keys);
  int64_t *numbers = take(e, (size_t)names->count + MARKS_MAX, sizeof *numbers);
  if (!keys || !numbers) return "";
  size_t count = missing_marks(e, keys);
  for (size_t i = 0; i < count; i++) numbers[i] = names->count;
  for (uint32_t i = 0; i < names->count; i++) {
    const char *name = shoal_names_at(names, i);
    if (shoal_cell_is_missing(name, strlen(name))) continue;
    keys[count] = name;
    numbers[count++] = i;
  }
  return shoal_onnx_numbers_of_texts(e->file, input, count, keys, numbers, (int64_t)names->count + 1);
}

static void add_categories(exporter *e) {
  const char **values = take(e, e->categories, sizeof *values);
  if (!values || e->categories == 0) return;
  e->file->scope = "shoal/categories";
  for (uint32_t c = 0; c < e->profile->columns_count; c++)
    if (e->places[c] != nowhere && e->profile->columns[c].kind == SHOAL_CATEGORY)
      values[e->places[c]] = add_category(e, &e->profile->columns[c], e->inputs[c]);
  e->found = shoal_onnx_concat(e->file, e->categories, values, 1);
}

/* x ^ x >> shift, of numbers below 2^32. */
static const char *fold(exporter *e, const char *x, unsigned shift) {
  return shoal_onnx_emit(e->file, "BitwiseXor", x, with_int(e, "Div", x, (int64_t)1 << shift), NULL);
}

/* x times a number below 2^32, modulo 2^32: in halves, so that nothing is above 2^63. */
static const char *times(exporter *e, const char *x, int64_t factor) {
  const char *high = with_int(e, "Mod", with_int(e, "Mul", x, factor >> 16), 1 << 16);
  const char *low = with_int(e, "Mul", x, factor & 0xffff);
  return with_int(e, "Mod", add(e, with_int(e, "Mul", high, 1 << 16), low), (int64_t)1 << 32);
}

/* As in encoder.c. */
static const char *scramble(exporter *e, const char *x) {
  x = times(e, fold(e, x, 16), 0x7feb352d);
  x = times(e, fold(e, x, 15), 0x846ca68b);
  return fold(e, x, 16);
}

static void add_texts(exporter *e) {
  e->texts = take(e, e->texts_count, sizeof *e->texts);
  if (!e->texts || e->texts_count == 0) return;
  e->file->scope = "shoal/texts";
  e->file->opset = OPSET_OF_TEXTS;
  for (uint32_t c = 0; c < e->profile->columns_count; c++) {
    if (e->places[c] == nowhere || e->profile->columns[c].kind != SHOAL_TEXT) continue;
    hashed *t = &e->texts[e->places[c]];
    t->none = with_int(e, "Less", e->inputs[c], 0);
    const char *zero = shoal_onnx_ints(e->file, 0, &(int64_t){0});
    const char *hash = shoal_onnx_emit(e->file, "Where", t->none, zero, e->inputs[c], NULL);
    t->bucket = with_int(e, "Mod", scramble(e, hash), SHOAL_TEXT_BUCKETS);
    t->mixed = scramble(e, with_int(e, "BitwiseXor", hash, 0x9e3779b9));
    const char *odd = with_int(e, "Mod", t->mixed, 2);
    t->sign = shoal_onnx_cast(e->file, with_int(e, "Sub", with_int(e, "Mul", odd, 2), 1), SHOAL_ONNX_FLOAT);
  }
}

/* ---- a network's vector ------------------------------------------------------------- */

/* Values that are computed together stand side by side before they are brought into the vector's order. */
typedef struct vector {
  exporter *e;
  const shoal_feature *features;
  uint32_t features_count, values;
  const char *slots; /* of the features that are categories; see add_slots */
  int64_t *order;    /* of each place of the vector: which of the values side by side */
  int64_t made;
  const char **groups;
  size_t groups_count;
} vector;

/* All that is written down goes into the file as copies, so one group after the other uses the room. */
static group *begin_group(vector *v) {
  v->e->group.count = 0;
  return &v->e->group;
}

static void end_group(vector *v, const group *g, const char *value) {
  for (size_t i = 0; i < g->count; i++) v->order[g->to[i]] = v->made++;
  v->groups[v->groups_count++] = value;
}

/* Value j of a feature of numbers or dates; its place in the group. */
static size_t add_value(vector *v, group *g, const shoal_feature *f, uint32_t j) {
  const exporter *e = v->e;
  int64_t place = e->places[f->column], before = (int64_t)e->numbers + ((int64_t)f->part - 1) * e->dates;
  g->to[g->count] = (int64_t)f->first + j;
  g->part[g->count] = f->part == SHOAL_PART_WHOLE ? place : before + place;
  g->cell[g->count] = place;
  return g->count++;
}

/* 0 where the cell is missing. */
static const char *unless_absent(vector *v, const group *g, const char *zero, const char *x) {
  const char *absent = pick(v->e, v->e->absent, g->count, g->cell);
  return shoal_onnx_emit(v->e->file, "Where", absent, zero, x, NULL);
}

static const char *on_lines(vector *v, const group *g, const char *x) {
  exporter *e = v->e;
  x = with_all(e, "Div", with_all(e, "Sub", x, g->count, g->from), g->count, g->width);
  return with_all(e, "Min", with_all(e, "Max", x, g->count, g->low), g->count, g->high);
}

static void put_line(group *g, size_t i, double from, double width, double low, double high, double less_by) {
  g->from[i] = from;
  g->width[i] = width;
  g->low[i] = low;
  g->high[i] = high;
  g->less[i] = less_by;
}

/* Scaled numbers and numbers in pieces: a piece below the one that a number is in is 1, one above 0. */
static void add_lines(vector *v) {
  exporter *e = v->e;
  group *g = begin_group(v);
  for (uint32_t k = 0; k < v->features_count; k++) {
    const shoal_feature *f = &v->features[k];
    if (f->kind == SHOAL_FEATURE_SCALED)
      put_line(g, add_value(v, g, f, 0), f->centre, f->scale, -SHOAL_SCALED_MAX, SHOAL_SCALED_MAX, 0);
    for (uint32_t j = 0; f->kind == SHOAL_FEATURE_PIECES && j < f->values; j++)
      put_line(g, add_value(v, g, f, j), f->at[j], f->at[j + 1] - f->at[j], j == 0 ? -1 : 0,
               j + 1 == f->values ? 2 : 1, f->to[j]);
  }
  if (g->count == 0) return;
  const char *x = on_lines(v, g, pick(e, e->parts, g->count, g->part));
  x = with_all(e, "Sub", x, g->count, g->less);
  x = unless_absent(v, g, shoal_onnx_doubles(e->file, 0, &(double){0}), x);
  end_group(v, g, shoal_onnx_cast(e->file, x, SHOAL_ONNX_FLOAT));
}

/* The tables of all features one after the other, each in as many places as the longest one needs, a power
 * of two. What fills them up lies above every number. */
typedef struct tables {
  size_t size, entries;
  double *at, *width, *to, *rise; /* of each step between two points */
} tables;

static bool lay_out_tables(vector *v, tables *t) {
  exporter *e = v->e;
  size_t count = 0, longest = 1;
  for (uint32_t k = 0; k < v->features_count; k++) {
    if (v->features[k].kind != SHOAL_FEATURE_TABLE) continue;
    count++;
    if (v->features[k].points - 1 > longest) longest = v->features[k].points - 1;
  }
  for (t->size = 1; t->size < longest;) t->size *= 2;
  t->entries = count * t->size;
  double **lists[] = {&t->at, &t->width, &t->to, &t->rise};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    *lists[i] = take(e, t->entries, sizeof **lists[i]);
  if (e->file->failed || count == 0) return false;
  size_t used = 0;
  for (uint32_t k = 0; k < v->features_count; k++) {
    const shoal_feature *f = &v->features[k];
    for (size_t i = 0; f->kind == SHOAL_FEATURE_TABLE && i < t->size; i++, used++) {
      bool step = i + 1 < f->points;
      t->at[used] = step ? f->at[i] : above_numbers;
      t->width[used] = step ? f->at[i + 1] - f->at[i] : 1;
      t->to[used] = step ? f->to[i] : 0;
      t->rise[used] = step ? f->to[i + 1] - f->to[i] : 0;
    }
  }
  return true;
}

static const char *look_up(exporter *e, const tables *t, const double *list, const char *at) {
  return shoal_onnx_emit(e->file, "Gather", shoal_onnx_doubles(e->file, t->entries, list), at, NULL);
}

/* Finds each number's step by halving, then goes as far along it as the number does. */
static void add_tables(vector *v) {
  exporter *e = v->e;
  group *g = begin_group(v);
  tables t;
  if (!lay_out_tables(v, &t)) return;
  for (uint32_t k = 0; k < v->features_count; k++) {
    if (v->features[k].kind != SHOAL_FEATURE_TABLE) continue;
    size_t i = add_value(v, g, &v->features[k], 0);
    g->slot[i] = (int64_t)(i * t.size);
  }
  const char *x = pick(e, e->parts, g->count, g->part);
  const char *at = shoal_onnx_ints(e->file, g->count, g->slot);
  const char *points = shoal_onnx_doubles(e->file, t.entries, t.at);
  for (size_t half = t.size / 2; half > 0; half /= 2) {
    const char *next = with_int(e, "Add", at, (int64_t)half);
    const char *point = shoal_onnx_emit(e->file, "Gather", points, next, NULL);
    const char *passed = shoal_onnx_emit(e->file, "GreaterOrEqual", x, point, NULL);
    at = shoal_onnx_emit(e->file, "Where", passed, next, at, NULL);
  }
  const char *from = shoal_onnx_emit(e->file, "Gather", points, at, NULL);
  const char *part = shoal_onnx_emit(e->file, "Div", less(e, x, from), look_up(e, &t, t.width, at), NULL);
  part = within(e, part, 0, 1);
  x = shoal_onnx_emit(e->file, "Mul", part, look_up(e, &t, t.rise, at), NULL);
  x = add(e, look_up(e, &t, t.to, at), x);
  x = unless_absent(v, g, shoal_onnx_doubles(e->file, 0, &(double){0}), x);
  end_group(v, g, shoal_onnx_cast(e->file, x, SHOAL_ONNX_FLOAT));
}

static void add_missing(vector *v) {
  group *g = begin_group(v);
  for (uint32_t k = 0; k < v->features_count; k++)
    if (v->features[k].kind == SHOAL_FEATURE_MISSING) add_value(v, g, &v->features[k], 0);
  if (g->count == 0) return;
  const char *x = pick(v->e, v->e->absent, g->count, g->cell);
  end_group(v, g, shoal_onnx_cast(v->e->file, x, SHOAL_ONNX_FLOAT));
}

/* Sine and cosine of so many turns; the cosine is the sine a quarter of a turn later. */
static void add_cycles(vector *v) {
  exporter *e = v->e;
  group *g = begin_group(v);
  for (uint32_t k = 0; k < v->features_count; k++) {
    const shoal_feature *f = &v->features[k];
    double period = f->part == SHOAL_PART_MONTH ? 12 : f->part == SHOAL_PART_WEEKDAY ? 7 : 24;
    for (uint32_t j = 0; f->kind == SHOAL_FEATURE_CYCLE && j < 2; j++)
      put_line(g, add_value(v, g, f, j), j == 0 ? 0 : -period / 4, period, 0, 2, 0);
  }
  if (g->count == 0) return;
  const char *turns = on_lines(v, g, pick(e, e->parts, g->count, g->part));
  turns = shoal_onnx_cast(e->file, turns, SHOAL_ONNX_FLOAT);
  const char *angle = shoal_onnx_emit(e->file, "Mul", turns, shoal_onnx_real(e->file, 6.2831853f), NULL);
  const char *x = shoal_onnx_emit(e->file, "Sin", angle, NULL);
  end_group(v, g, unless_absent(v, g, shoal_onnx_real(e->file, 0), x));
}

/* ---- categories --------------------------------------------------------------------- */

static bool is_category(const shoal_feature *f) {
  return f->kind == SHOAL_FEATURE_ONE_HOT || f->kind == SHOAL_FEATURE_LABEL ||
         f->kind == SHOAL_FEATURE_LOOKUP;
}

/* The slot of each feature that is a category, side by side: one table of all their slots, in which each
 * has its own part. A lookup's slots have its offset already. */
static void add_slots(vector *v) {
  exporter *e = v->e;
  size_t count = 0, entries = 0;
  for (uint32_t k = 0; k < v->features_count; k++)
    if (is_category(&v->features[k])) entries += (size_t)v->features[k].categories + 2;
  int64_t *places = take(e, v->features_count, sizeof *places);
  int64_t *starts = take(e, v->features_count, sizeof *starts), *table = take(e, entries, sizeof *table);
  if (!places || !starts || !table || entries == 0) return;
  size_t used = 0;
  for (uint32_t k = 0; k < v->features_count; k++) {
    const shoal_feature *f = &v->features[k];
    if (!is_category(f)) continue;
    int64_t offset = f->kind == SHOAL_FEATURE_LOOKUP ? f->offset : 0;
    places[count] = e->places[f->column];
    starts[count++] = (int64_t)used;
    for (uint32_t c = 0; c < f->categories; c++) table[used++] = offset + f->slot_of[c];
    table[used++] = offset + f->missing;
    table[used++] = offset; /* unseen */
  }
  const char *at = pick(e, e->found, count, places);
  at = add(e, at, shoal_onnx_ints(e->file, count, starts));
  v->slots = shoal_onnx_emit(e->file, "Gather", shoal_onnx_ints(e->file, used, table), at, NULL);
}

/* The values of all features of a kind of category, with the slot that each is about. */
static bool gather_slots(vector *v, shoal_feature_kind kind) {
  group *g = begin_group(v);
  int64_t slot = 0;
  for (uint32_t k = 0; k < v->features_count; k++) {
    const shoal_feature *f = &v->features[k];
    for (uint32_t j = 0; f->kind == kind && j < f->values; j++) {
      put_line(g, g->count, f->centre, f->scale, -SHOAL_SCALED_MAX, SHOAL_SCALED_MAX, 0);
      g->to[g->count] = (int64_t)f->first + j;
      g->slot[g->count] = slot;
      g->wanted[g->count++] = (int64_t)f->skip + j;
    }
    slot += is_category(f);
  }
  return g->count > 0;
}

static void add_categories_of(vector *v) {
  exporter *e = v->e;
  const group *g = &e->group;
  if (gather_slots(v, SHOAL_FEATURE_ONE_HOT)) {
    const char *wanted = shoal_onnx_ints(e->file, g->count, g->wanted);
    const char *x = shoal_onnx_emit(e->file, "Equal", pick(e, v->slots, g->count, g->slot), wanted, NULL);
    end_group(v, g, shoal_onnx_cast(e->file, x, SHOAL_ONNX_FLOAT));
  }
  if (gather_slots(v, SHOAL_FEATURE_LABEL)) {
    const char *x = shoal_onnx_cast(e->file, pick(e, v->slots, g->count, g->slot), SHOAL_ONNX_DOUBLE);
    end_group(v, g, shoal_onnx_cast(e->file, on_lines(v, g, x), SHOAL_ONNX_FLOAT));
  }
  if (gather_slots(v, SHOAL_FEATURE_LOOKUP))
    end_group(v, g, shoal_onnx_cast(e->file, pick(e, v->slots, g->count, g->slot), SHOAL_ONNX_FLOAT));
}

/* ---- texts -------------------------------------------------------------------------- */

/* Every hash's weight is added, with its sign, to the value that it belongs to; then all are brought to
 * one length. */
static const char *read_text(exporter *e, const shoal_feature *f) {
  const hashed *t = &e->texts[e->places[f->column]];
  float *weights = take(e, f->points, sizeof *weights);
  if (!weights) return "";
  for (uint32_t i = 0; i < f->points; i++) weights[i] = (float)f->to[i];
  const char *weight =
      shoal_onnx_emit(e->file, "Gather", shoal_onnx_floats(e->file, f->points, weights), t->bucket, NULL);
  const char *zero = shoal_onnx_real(e->file, 0);
  weight = shoal_onnx_emit(e->file, "Mul", weight, t->sign, NULL);
  weight = shoal_onnx_emit(e->file, "Where", t->none, zero, weight, NULL);
  const char *at = with_int(e, "Div", with_int(e, "Mul", t->mixed, f->values), (int64_t)1 << 32);
  shoal_onnx_attribute_int(e->file, "start", 0);
  shoal_onnx_attribute_int(e->file, "end", 1);
  const char *shape[] = {shoal_onnx_emit(e->file, "Shape", at, NULL),
                         shoal_onnx_ints(e->file, 1, (int64_t[]){f->values})};
  const char *zeros = shoal_onnx_emit(e->file, "Expand", zero, shoal_onnx_concat(e->file, 2, shape, 0), NULL);
  shoal_onnx_attribute_int(e->file, "axis", 1);
  shoal_onnx_attribute_text(e->file, "reduction", "add");
  const char *x = shoal_onnx_emit(e->file, "ScatterElements", zeros, at, weight, NULL);
  const char *wide = shoal_onnx_cast(e->file, x, SHOAL_ONNX_DOUBLE);
  const char *squares =
      shoal_onnx_emit(e->file, "ReduceSum", shoal_onnx_emit(e->file, "Mul", wide, wide, NULL),
                      shoal_onnx_ints(e->file, 1, (int64_t[]){1}), NULL);
  const char *length = shoal_onnx_emit(e->file, "Sqrt", with(e, "Max", squares, squares_min), NULL);
  wide = shoal_onnx_emit(e->file, "Div", with(e, "Mul", wide, sqrt((double)f->values) / 4), length, NULL);
  return shoal_onnx_cast(e->file, wide, SHOAL_ONNX_FLOAT);
}

static void add_texts_of(vector *v) {
  for (uint32_t k = 0; k < v->features_count; k++) {
    const shoal_feature *f = &v->features[k];
    if (f->kind != SHOAL_FEATURE_TEXT) continue;
    group *g = begin_group(v);
    for (uint32_t j = 0; j < f->values; j++) g->to[g->count++] = (int64_t)f->first + j;
    end_group(v, g, read_text(v->e, f));
  }
}

/* ---- the networks ------------------------------------------------------------------- */

static const char *add_vector(exporter *e, const shoal_encoder *encoder) {
  vector v = {.e = e, .values = shoal_encoder_values(encoder)};
  v.features = shoal_encoder_features(encoder, &v.features_count);
  v.order = take(e, v.values, sizeof *v.order);
  v.groups = take(e, (size_t)v.features_count + 1, sizeof *v.groups); /* each has a feature or more */
  if (!v.order || !v.groups) return "";
  add_lines(&v);
  add_tables(&v);
  add_missing(&v);
  add_cycles(&v);
  add_slots(&v);
  if (v.slots) add_categories_of(&v);
  add_texts_of(&v);
  if (e->file->failed) return "";
  SHOAL_ASSERT(v.made == (int64_t)v.values);
  const char *values = shoal_onnx_concat(e->file, v.groups_count, v.groups, 1);
  bool ordered = true;
  for (uint32_t i = 0; i < v.values; i++) ordered &= v.order[i] == (int64_t)i;
  return ordered ? values : pick(e, values, v.values, v.order);
}

/* What an encoder is, in few words. */
static void encoder_sha256(exporter *e, const shoal_encoder *encoder, char out[SHOAL_SHA256_HEX]) {
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_encoder_write(encoder, &json, NULL);
  e->file->failed |= text.failed;
  shoal_sha256_hex(text.bytes, text.length, out);
  shoal_text_release(&text);
}

/* The vector of a network. Those of networks that were trained on the same rows are often the same. */
static const char *vector_of(exporter *e, uint32_t number, const shoal_encoder *encoder) {
  made_vector *made = &e->vectors[number];
  encoder_sha256(e, encoder, made->sha256);
  for (uint32_t i = 0; i < number; i++)
    if (strcmp(e->vectors[i].sha256, made->sha256) == 0) return made->value = e->vectors[i].value;
  return made->value = add_vector(e, encoder);
}

/* What the networks say, each by its share. */
static const char *add_members(exporter *e) {
  uint32_t count = shoal_predictor_members(e->predictor);
  const char *sum = NULL;
  e->vectors = take(e, count, sizeof *e->vectors);
  for (uint32_t i = 0; e->vectors && i < count; i++) {
    double share;
    const shoal_trial_net *net = shoal_predictor_member(e->predictor, i, &share);
    char number[32];
    snprintf(number, sizeof number, "%s%u/", own_names, i);
    const char *prefix = shoal_onnx_join(e->file, number, "");
    e->file->scope = shoal_onnx_join(e->file, prefix, "encoder");
    const char *x = vector_of(e, i, net->encoder);
    x = shoal_onnx_graph(e->file, prefix, net->graph, net->weights, x);
    x = with(e, "Mul", shoal_onnx_cast(e->file, x, SHOAL_ONNX_DOUBLE), share);
    sum = sum ? add(e, sum, x) : x;
  }
  return sum;
}

static void add_classes(exporter *e, const shoal_target *target, const char *sum) {
  uint32_t count = target->classes.count;
  const char **names = take(e, count, sizeof *names);
  shoal_text text;
  shoal_json json;
  if (!names) return;
  for (uint32_t i = 0; i < count; i++) names[i] = shoal_names_at(&target->classes, i);
  shoal_onnx_attribute_int(e->file, "axis", 1);
  shoal_onnx_attribute_int(e->file, "keepdims", 0);
  const char *best = shoal_onnx_emit(e->file, "ArgMax", sum, NULL);
  const char *label = shoal_onnx_texts_of_numbers(e->file, best, count, names);
  shoal_onnx_output(e->file, "label", label, SHOAL_ONNX_STRING, 0, NULL);
  const char *probabilities = shoal_onnx_cast(e->file, sum, SHOAL_ONNX_FLOAT);
  shoal_onnx_output(e->file, "probabilities", probabilities, SHOAL_ONNX_FLOAT, 1, (int64_t[]){count});
  shoal_json_begin(&json, &text);
  shoal_names_write(&target->classes, &json, NULL);
  e->file->failed |= text.failed;
  if (!text.failed) shoal_onnx_meta(e->file, "shoal.classes", text.bytes);
  shoal_text_release(&text);
}

static void add_outputs(exporter *e, const char *sum) {
  const shoal_target *target = shoal_predictor_target(e->predictor);
  e->file->scope = "shoal/answer";
  shoal_onnx_meta(e->file, "shoal.target", e->profile->columns[target->column].name);
  shoal_onnx_meta(e->file, "shoal.problem", shoal_problem_name(target->problem));
  if (target->problem != SHOAL_REGRESSION) {
    add_classes(e, target, sum);
    return;
  }
  const char *value = with(e, "Add", with(e, "Mul", sum, target->deviation), target->mean);
  shoal_onnx_output(e->file, "value", value, SHOAL_ONNX_DOUBLE, 1, (int64_t[]){1});
}

static void reserve_group(exporter *e) {
  group *g = &e->group;
  uint32_t most = 0;
  for (uint32_t i = 0; i < shoal_predictor_members(e->predictor); i++) {
    uint32_t values = shoal_encoder_values(shoal_predictor_member(e->predictor, i, NULL)->encoder);
    if (values > most) most = values;
  }
  int64_t **ints[] = {&g->to, &g->part, &g->cell, &g->slot, &g->wanted};
  double **reals[] = {&g->from, &g->width, &g->low, &g->high, &g->less};
  for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) *ints[i] = take(e, most, sizeof **ints[i]);
  for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) *reals[i] = take(e, most, sizeof **reals[i]);
}

static void make_file(exporter *e) {
  reserve_group(e);
  add_inputs(e);
  add_numbers(e);
  add_categories(e);
  add_texts(e);
  const char *sum = e->file->failed ? NULL : add_members(e);
  if (sum) add_outputs(e, sum);
}

shoal_status shoal_predictor_onnx(const shoal_predictor *predictor, const char *path, shoal_error *err) {
  shoal_onnx_file file;
  shoal_onnx_file_init(&file);
  exporter e = {.file = &file, .predictor = predictor, .profile = shoal_predictor_profile(predictor)};
  e.places = take(&e, e.profile->columns_count, sizeof *e.places);
  e.inputs = take(&e, e.profile->columns_count, sizeof *e.inputs);
  if (!file.failed) {
    find_columns(&e);
    make_file(&e);
  }
  shoal_status status = shoal_onnx_file_write(&file, path, err);
  shoal_onnx_file_release(&file);
  return status;
}
