/* encoder_packed.c: an encoder as vectors of numbers, and back; see encoder.h. Reading trusts nothing: a model
 * file may come from anywhere, and what is read is used without further checks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/encoder_internal.h"

/* Places in a feature's words. */
enum { KIND, COLUMN, PART, POINTS, SLOTS, MISSING, SKIP, VALUES };

/* ---- packing ------------------------------------------------------------------------ */

/* How many numbers a feature has in `to`. */
static uint32_t count_to(const shoal_feature *f) {
  if (f->kind == SHOAL_FEATURE_TEXT || f->kind == SHOAL_FEATURE_TABLE) return f->points;
  return f->kind == SHOAL_FEATURE_PIECES ? f->points - 1 : 0;
}

static uint32_t count_at(const shoal_feature *f) { return shoal_feature_has_points(f->kind) ? f->points : 0; }

static void count(shoal_encoder_packed *out, const shoal_feature *f) {
  out->features_count++;
  if (shoal_feature_has_slots(f->kind)) out->slots_count += f->categories;
  if (shoal_feature_has_scale(f->kind)) out->numbers_count += 2;
  out->numbers_count += count_at(f) + count_to(f);
}

static void add_numbers(shoal_encoder_packed *out, const double *numbers, uint32_t many) {
  if (many > 0) memcpy(out->numbers + out->numbers_count, numbers, many * sizeof *numbers);
  out->numbers_count += many;
}

static void add(shoal_encoder_packed *out, const shoal_feature *f) {
  int32_t *words = out->features + SHOAL_FEATURE_WORDS * out->features_count++;
  bool slots = shoal_feature_has_slots(f->kind);
  words[KIND] = (int32_t)f->kind;
  words[COLUMN] = (int32_t)f->column;
  words[PART] = (int32_t)f->part;
  words[POINTS] = (int32_t)f->points;
  words[SLOTS] = slots ? (int32_t)f->slots : 0;
  words[MISSING] = slots ? (int32_t)f->missing : 0;
  words[SKIP] = slots ? (int32_t)f->skip : 0;
  words[VALUES] = (int32_t)f->values;
  for (uint32_t c = 0; slots && c < f->categories; c++)
    out->slots[out->slots_count++] = (int32_t)f->slot_of[c];
  if (shoal_feature_has_scale(f->kind)) add_numbers(out, (const double[]){f->centre, f->scale}, 2);
  add_numbers(out, f->at, count_at(f));
  add_numbers(out, f->to, count_to(f));
}

shoal_status shoal_encoder_pack(shoal_encoder_packed *out, const shoal_encoder *e, shoal_error *err) {
  *out = (shoal_encoder_packed){0};
  for (uint32_t i = 0; i < e->features_count; i++) count(out, &e->features[i]);
  out->features = malloc((out->features_count * SHOAL_FEATURE_WORDS + 1) * sizeof *out->features);
  out->slots = malloc((out->slots_count + 1) * sizeof *out->slots);
  out->numbers = malloc((out->numbers_count + 1) * sizeof *out->numbers);
  out->features_count = out->slots_count = out->numbers_count = 0;
  if (out->features == NULL || out->slots == NULL || out->numbers == NULL) {
    shoal_encoder_packed_release(out);
    return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  }
  for (uint32_t i = 0; i < e->features_count; i++) add(out, &e->features[i]);
  return SHOAL_OK;
}

void shoal_encoder_packed_release(shoal_encoder_packed *packed) {
  free(packed->features);
  free(packed->slots);
  free(packed->numbers);
  *packed = (shoal_encoder_packed){0};
}

/* ---- unpacking ---------------------------------------------------------------------- */

/* What of the vectors is still to be read. */
typedef struct unpacking {
  const shoal_profile *profile;
  shoal_encoder *encoder;
  const int32_t *slots;
  const double *numbers;
  uint64_t slots_left, numbers_left;
} unpacking;

static bool is_within(int32_t word, uint32_t max) { return word >= 0 && (uint32_t)word <= max; }

/* Finite numbers; ascending where they must be. */
static double *take_numbers(unpacking *u, uint32_t many, bool ascending) {
  if (many > u->numbers_left) return NULL;
  double *out = shoal_arena_array(&u->encoder->memory, (size_t)many + 1, sizeof *out);
  if (out == NULL) return NULL;
  for (uint32_t i = 0; i < many; i++) {
    out[i] = u->numbers[i];
    if (!isfinite(out[i]) || (ascending && i > 0 && !(out[i] > out[i - 1]))) return NULL;
  }
  u->numbers += many;
  u->numbers_left -= many;
  return out;
}

static bool take_scale(unpacking *u, shoal_feature *f) {
  const double *scale = take_numbers(u, 2, false);
  if (scale == NULL) return false;
  f->centre = scale[0];
  f->scale = scale[1];
  return f->scale > 0;
}

static bool take_points(unpacking *u, shoal_feature *f) {
  if (f->points < 2) return false;
  f->at = take_numbers(u, f->points, true);
  f->to = f->at ? take_numbers(u, count_to(f), false) : NULL;
  f->values = f->kind == SHOAL_FEATURE_TABLE ? 1 : f->points - 1;
  return f->to != NULL;
}

static bool take_slots(unpacking *u, shoal_feature *f, const int32_t *words) {
  uint32_t categories = u->profile->columns[f->column].categories.count;
  if (!is_within(words[SLOTS], categories + 2) || words[SLOTS] < 1 || !is_within(words[MISSING], 1) ||
      words[MISSING] >= words[SLOTS] || !is_within(words[SKIP], 1) || categories > u->slots_left)
    return false;
  f->slots = (uint32_t)words[SLOTS];
  f->missing = (uint32_t)words[MISSING];
  f->skip = (uint32_t)words[SKIP];
  f->categories = categories;
  f->slot_of = shoal_arena_array(&u->encoder->memory, (size_t)categories + 1, sizeof *f->slot_of);
  if (f->slot_of == NULL) return false;
  for (uint32_t c = 0; c < categories; c++) {
    if (!is_within(u->slots[c], f->slots - 1)) return false;
    f->slot_of[c] = (uint32_t)u->slots[c];
  }
  u->slots += categories;
  u->slots_left -= categories;
  f->values = f->kind == SHOAL_FEATURE_ONE_HOT ? f->slots - f->skip : 1;
  return f->values > 0;
}

static bool take_text(unpacking *u, shoal_feature *f, const int32_t *words) {
  if (f->points != SHOAL_TEXT_BUCKETS || words[VALUES] < 1 || words[VALUES] > SHOAL_TEXT_VALUES_MAX)
    return false;
  f->values = (uint32_t)words[VALUES];
  f->to = take_numbers(u, f->points, false);
  return f->to != NULL;
}

static bool take_feature(unpacking *u, const int32_t *words) {
  if (u->profile->columns_count == 0 || !is_within(words[KIND], SHOAL_FEATURES - 1) ||
      !is_within(words[COLUMN], u->profile->columns_count - 1) ||
      !is_within(words[PART], SHOAL_DATE_PARTS - 1) || words[POINTS] < 0)
    return false;
  shoal_feature f = {.kind = (shoal_feature_kind)words[KIND],
                     .column = (uint32_t)words[COLUMN],
                     .part = (shoal_date_part)words[PART],
                     .values = 1};
  const shoal_column *column = &u->profile->columns[f.column];
  if (!column->used || !shoal_feature_fits(&f, column->kind)) return false;
  if (f.kind == SHOAL_FEATURE_CYCLE) f.values = 2;
  if (shoal_feature_has_points(f.kind) || f.kind == SHOAL_FEATURE_TEXT) f.points = (uint32_t)words[POINTS];
  if (shoal_feature_has_slots(f.kind) && !take_slots(u, &f, words)) return false;
  if (shoal_feature_has_scale(f.kind) && !take_scale(u, &f)) return false;
  if (shoal_feature_has_points(f.kind) && !take_points(u, &f)) return false;
  if (f.kind == SHOAL_FEATURE_TEXT && !take_text(u, &f, words)) return false;
  return shoal_encoder_append(u->encoder, &f) != NULL;
}

static shoal_status take_all(unpacking *u, const shoal_encoder_packed *packed, shoal_error *err) {
  for (uint64_t i = 0; i < packed->features_count; i++)
    if (!take_feature(u, packed->features + SHOAL_FEATURE_WORDS * i))
      return shoal_fail(err, SHOAL_CORRUPT,
                        "feature %llu of the encoder is damaged or does not fit its column",
                        (unsigned long long)i + 1);
  if (u->slots_left > 0 || u->numbers_left > 0)
    return shoal_fail(err, SHOAL_CORRUPT, "the encoder has more numbers than its features need");
  shoal_status status = shoal_encoder_place(u->encoder, err);
  if (status == SHOAL_OK && u->encoder->values == 0)
    status = shoal_fail(err, SHOAL_CORRUPT, "the encoder has no features");
  return status;
}

shoal_status shoal_encoder_unpack(shoal_encoder **out, const shoal_profile *profile, const cJSON *choice,
                                  const shoal_encoder_packed *packed, shoal_error *err) {
  *out = NULL;
  shoal_encoding_choice chosen = {0};
  if (!shoal_encoder_read_choice(choice, &chosen))
    return shoal_fail(err, SHOAL_CORRUPT, "what turns cells into values ('encoder') is damaged");
  unpacking u = {.profile = profile,
                 .encoder = shoal_encoder_new(&chosen),
                 .slots = packed->slots,
                 .numbers = packed->numbers,
                 .slots_left = packed->slots_count,
                 .numbers_left = packed->numbers_count};
  if (u.encoder == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status = take_all(&u, packed, err);
  if (status == SHOAL_OK)
    *out = u.encoder;
  else
    shoal_encoder_destroy(u.encoder);
  return status;
}
