/* encoder.h: from a row's cells to the vector that a network sees.
 *
 * Fitted on the training rows alone, of more than 100,000 on that many drawn from them (categories are
 * counted in all). Numbers: standardised (mean, deviation), robust (median, quartiles), quantile (to a
 * normal distribution by a table of quantiles), or in pieces (piecewise linear: one value for each of so
 * many intervals between quantiles: 0 below, 1 above, between within; centred). A value that occurs often
 * is an edge of its own, so that the intervals are left for the others. What lies far outside what the
 * training rows had is bounded. A missing number gives zeros, with a value of its own that says so where
 * training rows miss any. Dates become numbers: the time, year, day of the month, and sine and cosine of
 * month, weekday and time of day, where they vary. Categories: one-hot, one number (label, the most
 * frequent first), or numbers for a `lookup` layer, which stand at the vector's end. Slot 0 is "unseen":
 * those not in the training rows or fewer than three times; slot 1 is "missing" where training rows miss
 * any. One-hot has no value for a slot that no training row has. Above `one_hot_max` slots one-hot becomes
 * lookup. Texts: hashed into so many values with signs, rare words weighing more, of one length.
 *
 * The target: classes by name (sorted as data/table does), or a number, standardised.
 *
 * Ownership: fit or read, then destroy; profile and rows are borrowed for the call. Threads: read-only
 * after fit. */
#ifndef SHOAL_SEARCH_ENCODER_H
#define SHOAL_SEARCH_ENCODER_H

#include "nn/source.h"
#include "search/rows.h"
#include "search/split.h"

enum {
  SHOAL_PIECES_MAX = 128,
  SHOAL_TARGET_CLASSES_MAX = 1000,
  SHOAL_ENCODED_VALUES_MAX = 1 << 20,
};

typedef enum shoal_number_way {
  SHOAL_STANDARD,
  SHOAL_ROBUST,
  SHOAL_QUANTILE,
  SHOAL_PIECES,
} shoal_number_way;
typedef enum shoal_category_way { SHOAL_ONE_HOT, SHOAL_LABEL, SHOAL_LOOKUP } shoal_category_way;
/* Their words in the order of the enums, and a NULL. */
extern const char *const shoal_number_ways[], *const shoal_category_ways[];

typedef struct shoal_encoding_choice {
  shoal_number_way numbers;
  uint32_t pieces; /* for SHOAL_PIECES: 2 .. 128 */
  shoal_category_way categories;
  uint32_t one_hot_max; /* 0: 64 */
  uint32_t text_values; /* 0: 128 */
} shoal_encoding_choice;

/* What is to be predicted; the same for all encoders of a search. */
typedef struct shoal_target {
  uint32_t column;
  shoal_problem problem;
  shoal_names classes;    /* BINARY and MULTICLASS */
  uint32_t positive;      /* BINARY: the class that f1 is of: the rarer one of the rows to learn from */
  double mean, deviation; /* REGRESSION: the unit of what networks predict */
  uint32_t categories;    /* of a CATEGORY column in the profile; 0: the classes are numbers */
  int32_t *class_of;      /* the class of each category */
  double *numbers;        /* the number of each class, ascending */
} shoal_target;

typedef struct shoal_encoder shoal_encoder;

void shoal_target_init(shoal_target *target);
/* What the rows' target asks for: a number with more than 20 different values, or not whole, is a
 * regression; else classes. `said` overrides (NULL: guess). Errors: one class only, no rows with a target,
 * classes of a number that is not one, more than 1,000 classes. */
shoal_status shoal_target_find(shoal_target *out, const shoal_rows *rows, const shoal_profile *profile,
                               uint32_t column, const shoal_problem *said, shoal_error *err);
/* Mean and deviation, which were those of all rows, of the rows to learn from alone: those of any fold,
 * never a test row; of two classes the positive one: the rarer, of equal ones the second. What the rows' parts
 * are does not depend on them. */
shoal_status shoal_target_fit(shoal_target *target, const shoal_rows *rows, const shoal_profile *profile,
                              const shoal_table_split *split, shoal_error *err);
void shoal_target_release(shoal_target *target);
shoal_status shoal_target_copy(shoal_target *out, const shoal_target *target, shoal_error *err);
void shoal_target_write(const shoal_target *target, shoal_json *json, const char *key);
/* Checked against the profile that it is for. */
shoal_status shoal_target_read(shoal_target *out, const cJSON *json, const shoal_profile *profile,
                               shoal_error *err);
/* The class of a row, or -1 where its target is none of them (or missing); the standardised number. */
int32_t shoal_target_label(const shoal_target *target, const shoal_rows *rows, uint64_t row);
float shoal_target_value(const shoal_target *target, const shoal_rows *rows, uint64_t row);
/* How many rows, of a list or all, have an answer that can be compared with a prediction. */
typedef struct shoal_answers {
  uint64_t known, missing;
  uint64_t other, other_line; /* none of the classes; where the first of them stands */
} shoal_answers;
void shoal_target_count(const shoal_target *target, const shoal_rows *rows, const shoal_row_list *list,
                        shoal_answers *out);
/* Values that a prediction has: a probability for each class, or one number. */
uint32_t shoal_target_width(const shoal_target *target);

shoal_status shoal_encoder_fit(shoal_encoder **out, const shoal_profile *profile,
                               const shoal_encoding_choice *choice, const shoal_target *target,
                               const shoal_rows *rows, const shoal_row_list *training, shoal_error *err);
void shoal_encoder_destroy(shoal_encoder *encoder);
void shoal_encoder_write(const shoal_encoder *encoder, shoal_json *json, const char *key);
shoal_status shoal_encoder_read(shoal_encoder **out, const shoal_profile *profile, const cJSON *json,
                                shoal_error *err);

/* The same as three vectors and the choice as JSON, which takes a tenth of the room: the encoders of a table of
 * thousands of columns are millions of numbers. */
enum { SHOAL_FEATURE_WORDS = 8 };
typedef struct shoal_encoder_packed {
  int32_t *features; /* SHOAL_FEATURE_WORDS each: kind, column, part, points, slots, missing, skip, values */
  int32_t *slots;    /* slot_of, feature after feature */
  double *numbers;   /* centre and scale, at, to, feature after feature */
  uint64_t features_count, slots_count, numbers_count;
} shoal_encoder_packed;
shoal_status shoal_encoder_pack(shoal_encoder_packed *out, const shoal_encoder *encoder, shoal_error *err);
void shoal_encoder_packed_release(shoal_encoder_packed *packed);
void shoal_encoder_write_choice(const shoal_encoder *encoder, shoal_json *json, const char *key);
shoal_status shoal_encoder_unpack(shoal_encoder **out, const shoal_profile *profile, const cJSON *choice,
                                  const shoal_encoder_packed *packed, shoal_error *err);

uint32_t shoal_encoder_values(const shoal_encoder *encoder); /* of the vector */
uint32_t
shoal_encoder_lookups(const shoal_encoder *encoder); /* how many of them, at the end, are category numbers */
uint32_t shoal_encoder_vocabulary(const shoal_encoder *encoder); /* above all of those numbers */
void shoal_encoder_row(const shoal_encoder *encoder, const shoal_rows *rows, uint64_t row, float *out);
/* The column that value i comes from. */
uint32_t shoal_encoder_column(const shoal_encoder *encoder, uint32_t value);

/* What the vector is made of, in its order: all that an export needs to say the same in other words. */
typedef enum shoal_feature_kind {
  SHOAL_FEATURE_SCALED, /* (x - centre) / scale, within +-SHOAL_SCALED_MAX; 0 where missing */
  SHOAL_FEATURE_TABLE,  /* to[] linearly between at[], constant outside; 0 where missing */
  SHOAL_FEATURE_PIECES, /* value j: (x - at[j]) / (at[j + 1] - at[j]) within 0..1, the first from -1, the last
                            to 2, less to[j]; all 0 where missing */
  SHOAL_FEATURE_MISSING, /* 1 where missing, else 0 */
  SHOAL_FEATURE_CYCLE,   /* sine and cosine of the part over its period; 0 where missing */
  SHOAL_FEATURE_ONE_HOT, /* value slot - skip is 1; none where slot < skip */
  SHOAL_FEATURE_LABEL,   /* (slot - centre) / scale, within +-SHOAL_SCALED_MAX */
  SHOAL_FEATURE_LOOKUP,  /* offset + slot */
  SHOAL_FEATURE_TEXT,
  SHOAL_FEATURES,
} shoal_feature_kind;

/* What of a date a feature sees. */
typedef enum shoal_date_part {
  SHOAL_PART_WHOLE, /* the number itself: also of columns that are no dates */
  SHOAL_PART_YEAR,
  SHOAL_PART_DAY,
  SHOAL_PART_MONTH,   /* from 0, of 12 */
  SHOAL_PART_WEEKDAY, /* from 0, Sunday, of 7 */
  SHOAL_PART_HOUR,    /* with its fraction, of 24 */
  SHOAL_DATE_PARTS,
} shoal_date_part;

#define SHOAL_SCALED_MAX 8.0

typedef struct shoal_feature {
  shoal_feature_kind kind;
  uint32_t column;
  shoal_date_part part;
  uint32_t first, values;        /* in the vector */
  double centre, scale;          /* SCALED, LABEL */
  uint32_t points;               /* TABLE, PIECES: of at; TEXT: of to */
  double *at, *to;               /* PIECES: points - 1 of to */
  uint32_t categories;           /* ONE_HOT, LABEL, LOOKUP: of slot_of, as many as the profile has */
  uint32_t *slot_of;             /* the slot of each category; an unseen one has 0 */
  uint32_t slots, missing, skip; /* the slot of a missing one: 1, or 0 without one of its own */
  uint32_t offset;               /* LOOKUP */
} shoal_feature;
const shoal_feature *shoal_encoder_features(const shoal_encoder *encoder, uint32_t *count);

/* Rows as a source for the engine. Encoded once and kept where all of them take at most `keep_bytes`, else
 * at every fetch. With `order` the training order: shuffled by the seed each epoch; an epoch has at most
 * `epoch_rows` samples (0: all): a longer table goes on where the last epoch ended. Without it the rows'
 * own order. */
typedef struct shoal_encoded shoal_encoded;
typedef struct shoal_encoded_options {
  const shoal_encoder *encoder;
  const shoal_target *target; /* NULL: unlabeled */
  const shoal_rows *rows;
  const shoal_row_list *list; /* NULL: all */
  bool order;
  uint64_t seed, epoch_rows, keep_bytes;
} shoal_encoded_options;
shoal_status shoal_encoded_create(shoal_encoded **out, const shoal_encoded_options *options,
                                  shoal_error *err);
void shoal_encoded_destroy(shoal_encoded *encoded);
shoal_source shoal_encoded_source(const shoal_encoded *encoded);
uint64_t shoal_encoded_bytes(uint64_t rows, const shoal_encoder *encoder); /* that keeping takes */
/* The same kept vectors in another order, for another trial: the kept ones are shared and counted. */
shoal_status shoal_encoded_share(shoal_encoded **out, shoal_encoded *from, uint64_t seed, shoal_error *err);

#endif
