/* encoder_internal.h: what encoder.c, encoder_fit.c, encoder_json.c and encoder_packed.c share. */
#ifndef SHOAL_SEARCH_ENCODER_INTERNAL_H
#define SHOAL_SEARCH_ENCODER_INTERNAL_H

#include "base/arena.h"
#include "search/encoder.h"

enum { SHOAL_TEXT_BUCKETS = 4096 }; /* in which words are counted, for their weights */

struct shoal_encoder {
  shoal_encoding_choice choice;
  uint32_t values, lookups, vocabulary;
  uint32_t features_count, features_capacity;
  shoal_feature *features; /* the lookups last */
  shoal_arena memory;      /* of what the features point at */
};

shoal_encoder *shoal_encoder_new(const shoal_encoding_choice *choice); /* NULL without memory */
/* A copy of the feature at the end, or NULL without memory; its place in the vector is
 * shoal_encoder_place's work. */
shoal_feature *shoal_encoder_append(shoal_encoder *encoder, const shoal_feature *feature);
/* Puts the lookups last and gives every feature its place. SHOAL_LIMIT when the vector is too long. */
shoal_status shoal_encoder_place(shoal_encoder *encoder, shoal_error *err);

/* The part of a date, or the number itself; NaN where it is missing. */
double shoal_date_part_of(double seconds, shoal_date_part part);
/* Numbers within +-1e100, so that differences and squares stay finite. */
double shoal_tame(double x);
uint32_t shoal_feature_slot(const shoal_feature *feature, uint32_t category);
uint32_t shoal_text_bucket(uint32_t hash);

enum { SHOAL_TEXT_VALUES_MAX = 1 << 16 };
bool shoal_feature_has_scale(shoal_feature_kind kind);
bool shoal_feature_has_slots(shoal_feature_kind kind);
bool shoal_feature_has_points(shoal_feature_kind kind);
/* Whether a column of this kind can have the feature. */
bool shoal_feature_fits(const shoal_feature *feature, shoal_column_kind kind);
/* The choice that shoal_encoder_write_choice wrote; false where it is none. */
bool shoal_encoder_read_choice(const cJSON *json, shoal_encoding_choice *out);

#endif
