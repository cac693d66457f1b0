/* model_settings.c: the lines of a model text that are not layers, read and written. The numbers and flags in them are
 * rows, which both directions walk.
 *
 * A setting replaces all that an earlier one of its kind said, which is how a flag
 * overrides the text: what `optimizer adam` leaves out takes adam's defaults, not what
 * was tuned for the optimiser before it. */
#include <stddef.h>
#include <string.h>

#include "nn/loss.h"
#include "nn/model_internal.h"
#include "nn/optimizer.h"

const char *const shoal_setting_words[] = {
    [SHOAL_SETTING_LOSS] = "loss",
    [SHOAL_SETTING_OPTIMIZER] = "optimizer",
    [SHOAL_SETTING_SCHEDULE] = "schedule",
    [SHOAL_SETTING_WARMUP] = "warmup",
    [SHOAL_SETTING_BATCH] = "batch",
    [SHOAL_SETTING_EPOCHS] = "epochs",
    [SHOAL_SETTING_SEED] = "seed",
    [SHOAL_SETTING_SHARDS] = "shards",
    [SHOAL_SETTING_L2] = "l2",
    [SHOAL_SETTING_CLIP] = "clip",
    [SHOAL_SETTING_EARLY_STOP] = "early-stop",
    [SHOAL_SETTING_SHUFFLE] = "shuffle",
    [SHOAL_SETTING_AUGMENT] = "augment",
    [SHOAL_SETTING_CLASS_WEIGHTS] = "class-weights",
};
const char *const shoal_schedule_words[] = {
    [SHOAL_SCHEDULE_CONSTANT] = "constant",
    [SHOAL_SCHEDULE_STEP] = "step",
    [SHOAL_SCHEDULE_EXPONENTIAL] = "exponential",
    [SHOAL_SCHEDULE_COSINE] = "cosine",
    NULL,
};
static const char *const shuffle_words[] = {
    [SHOAL_SHUFFLE_ALL] = "all",
    [SHOAL_SHUFFLE_LANES] = "lanes",
    NULL,
};

enum { EPOCHS_MAX = 1000000000, FIELDS_MAX = 4 /* of a line */ };

/* A word, number or flag of a line. Zero where the line cannot say it means that it was not given. */
typedef struct field {
  const char *word; /* before the value, in any order with others; NULL: the value comes first */
  const char *what; /* as errors call it */
  enum { NONE, KIND, FLAG, U32, U64, REAL } type; /* NONE: the end of a list */
  size_t place;                                   /* in the recipe */
  double usual;                                   /* where no line says it */
  uint32_t least, most;                           /* of an U32 */
  shoal_range range;                              /* of a REAL */
  const char *const *kinds;                       /* the words of a KIND, in the order of its enum */
} field;

#define ROW(said, called, kind, name, otherwise) \
  .word = said, .what = called, .type = kind, .place = offsetof(shoal_recipe, name), .usual = otherwise
#define KIND_ROW(what, name, words) \
  { ROW(NULL, what, KIND, name, 0), .kinds = words }
#define U32_ROW(word, what, name, usual, from, to) \
  { ROW(word, what, U32, name, usual), .least = from, .most = to }
#define REAL_ROW(word, what, name, usual, in) \
  { ROW(word, what, REAL, name, usual), .range = SHOAL_RANGE_##in }

/* Class weights are read and written by themselves. */
static const field setting_fields[SHOAL_SETTINGS][FIELDS_MAX + 1] = {
    [SHOAL_SETTING_LOSS] = {KIND_ROW("loss", loss, shoal_loss_words)},
    [SHOAL_SETTING_OPTIMIZER] = {KIND_ROW("optimizer", optimizer, shoal_optimizer_words)},
    [SHOAL_SETTING_SCHEDULE] = {KIND_ROW("schedule", schedule, shoal_schedule_words)},
    [SHOAL_SETTING_WARMUP] = {REAL_ROW(NULL, "a number of epochs", warmup_epochs, 0, FROM_ZERO),
                              U32_ROW("scale", "the batch that the rate is meant for", scale_batch, 0, 1,
                                      SHOAL_BATCH_MAX)},
    [SHOAL_SETTING_BATCH] = {U32_ROW(NULL, "the samples of a round", batch, 64, 1, SHOAL_BATCH_MAX)},
    [SHOAL_SETTING_EPOCHS] = {U32_ROW(NULL, "the number of epochs", epochs, 10, 1, EPOCHS_MAX)},
    [SHOAL_SETTING_SEED] = {{ROW(NULL, "a seed", U64, seed, 1)}},
    [SHOAL_SETTING_SHARDS] = {U32_ROW(NULL, "the parts of a batch", shards, 0, 0, SHOAL_SHARDS_MAX)},
    [SHOAL_SETTING_L2] = {REAL_ROW(NULL, "the factor", l2, 0, FROM_ZERO)},
    [SHOAL_SETTING_CLIP] = {REAL_ROW(NULL, "the largest norm of a gradient", clip, 0, FROM_ZERO)},
    [SHOAL_SETTING_EARLY_STOP] = {U32_ROW(NULL, "the epochs to wait for a better one", early_stop, 0, 0,
                                          EPOCHS_MAX)},
    [SHOAL_SETTING_SHUFFLE] = {KIND_ROW("shuffle", shuffle, shuffle_words)},
    [SHOAL_SETTING_AUGMENT] = {{ROW("flip", NULL, FLAG, augment.flip, 0)},
                               U32_ROW("crop", "the pixels to move by", augment.crop, 0, 1,
                                       SHOAL_AUGMENT_CROP_MAX)},
};
/* Written even where they say what is usual. */
static const bool is_always_written[SHOAL_SETTINGS] = {
    [SHOAL_SETTING_LOSS] = true,  [SHOAL_SETTING_OPTIMIZER] = true, [SHOAL_SETTING_SCHEDULE] = true,
    [SHOAL_SETTING_BATCH] = true, [SHOAL_SETTING_EPOCHS] = true,    [SHOAL_SETTING_SEED] = true,
};
static const field schedule_fields[][FIELDS_MAX + 1] = {
    [SHOAL_SCHEDULE_CONSTANT] = {{0}},
    [SHOAL_SCHEDULE_STEP] = {U32_ROW("from", "the first epoch of a lower rate", schedule_from, 1, 1,
                                     EPOCHS_MAX),
                             U32_ROW("every", "the epochs of a step", schedule_every, 1, 1, EPOCHS_MAX),
                             REAL_ROW("factor", "the factor", schedule_factor, 0.1, ABOVE_ZERO)},
    [SHOAL_SCHEDULE_EXPONENTIAL] = {REAL_ROW(NULL, "the factor of an epoch", schedule_factor, 0.1,
                                             ABOVE_ZERO)},
    [SHOAL_SCHEDULE_COSINE] = {REAL_ROW("to", "the last rate", schedule_to, 0, FROM_ZERO)},
};
static const field loss_fields[] = {
    REAL_ROW("delta", "where the loss turns from square to straight", huber_delta, 1, ABOVE_ZERO),
    {ROW("sum-steps", NULL, FLAG, sum_steps, 0)},
    {0},
};

/* What the line takes after its kind, in `room` where it has to be put together; `none` where there is no kind. */
static const field *fields_of_kind(const shoal_recipe *recipe, shoal_setting setting, const field *none,
                                   field room[SHOAL_OPTIMIZER_NUMBERS_MAX + 1]) {
  if (setting == SHOAL_SETTING_LOSS) return loss_fields + (shoal_loss_rows[recipe->loss].has_delta ? 0 : 1);
  if (setting == SHOAL_SETTING_SCHEDULE) return schedule_fields[recipe->schedule];
  if (setting != SHOAL_SETTING_OPTIMIZER) return none;
  const shoal_optimizer_number *numbers = shoal_optimizer_rows[recipe->optimizer].numbers;
  size_t count = 0;
  for (const shoal_optimizer_number *n = numbers; n->word != NULL; n++)
    room[count++] = (field){n->word,
                            n->what,
                            REAL,
                            n->field,
                            .usual = n == numbers ? 0 : n->usual, /* a rate that nobody gave is 0 */
                            .range = n->is_share ? SHOAL_RANGE_SHARE : SHOAL_RANGE_ABOVE_ZERO};
  room[count] = (field){0};
  return room;
}

static void put_usual(shoal_recipe *recipe, const field *f) {
  for (; f->type != NONE; f++) {
    void *to = (char *)recipe + f->place;
    switch (f->type) {
    case U64: *(uint64_t *)to = (uint64_t)f->usual; break;
    case REAL: *(float *)to = (float)f->usual; break;
    case FLAG: *(bool *)to = false; break;
    default: *(uint32_t *)to = (uint32_t)f->usual; break;
    }
  }
}

void shoal_recipe_init(shoal_recipe *recipe) {
  *recipe = (shoal_recipe){0};
  for (int s = 0; s < SHOAL_SETTINGS; s++) put_usual(recipe, setting_fields[s]);
  for (int k = 0; k <= SHOAL_SCHEDULE_COSINE; k++) put_usual(recipe, schedule_fields[k]);
  put_usual(recipe, loss_fields);
}

/* ---- reading ------------------------------------------------------------------------ */

static bool read_kind(shoal_words *w, const field *f, uint32_t *out) {
  size_t count = 0;
  while (f->kinds[count] != NULL) count++;
  int kind = shoal_word_find(w->word, f->kinds, count);
  if (kind < 0) return shoal_words_unknown(w, w->word, f->what, f->kinds, count);
  *out = (uint32_t)kind;
  shoal_words_advance(w);
  return true;
}

static bool read_value(shoal_words *w, const field *f, shoal_recipe *recipe) {
  void *to = (char *)recipe + f->place;
  switch (f->type) {
  case KIND: return read_kind(w, f, to);
  case U32: return shoal_words_u32(w, f->what, f->least, f->most, to);
  case U64: return shoal_words_u64(w, f->what, 0, UINT64_MAX, to);
  case REAL: return shoal_words_real(w, f->what, f->range, to);
  default: *(bool *)to = true; return true;
  }
}

/* The rest of the line: fields that have words. */
static bool read_options(shoal_words *w, const field *fields, shoal_recipe *recipe) {
  const char *words[FIELDS_MAX];
  size_t count = 0;
  for (; fields[count].type != NONE; count++) words[count] = fields[count].word;
  if (count == 0) return shoal_words_end(w);
  for (unsigned seen = 0; w->word.length;) {
    int option = shoal_word_find(w->word, words, count);
    if (option < 0) return shoal_words_unknown(w, w->word, "option", words, count);
    if (seen & 1u << option) return shoal_words_fail(w, w->word, "'%s' is given twice", words[option]);
    seen |= 1u << option;
    shoal_words_advance(w);
    if (!read_value(w, &fields[option], recipe)) return false;
  }
  return true;
}

bool shoal_read_rate(shoal_reading *r) {
  r->model->rate_set = true;
  return shoal_words_real(&r->words, "the rate", SHOAL_RANGE_ABOVE_ZERO, &r->model->recipe.rate) &&
         shoal_words_end(&r->words);
}

static bool read_class_weights(shoal_words *w, shoal_recipe *recipe) {
  recipe->class_weights_count = 0;
  memset(recipe->class_weights, 0, sizeof recipe->class_weights);
  recipe->class_weights_balanced = shoal_words_accept(w, "balanced");
  if (recipe->class_weights_balanced) return shoal_words_end(w);
  bool any = false;
  do {
    if (recipe->class_weights_count == SHOAL_CLASS_WEIGHTS_MAX)
      return shoal_words_over_limit(w, w->word, "more than %s weights",
                                    shoal_human_count(SHOAL_CLASS_WEIGHTS_MAX).text);
    float *weight = &recipe->class_weights[recipe->class_weights_count++];
    if (!shoal_words_real(w, "'balanced' or a weight", SHOAL_RANGE_FROM_ZERO, weight)) return false;
    any = any || *weight > 0;
  } while (w->word.length);
  return any || shoal_words_fail(w, w->word, "all weights are 0; at least one class must count");
}

bool shoal_read_setting(shoal_reading *r, shoal_setting setting) {
  static const char *const augment_words[] = {"flip", "crop", "none"};
  shoal_words *w = &r->words;
  shoal_recipe *recipe = &r->model->recipe;
  if (setting == SHOAL_SETTING_CLASS_WEIGHTS) return read_class_weights(w, recipe);
  const field *fields = setting_fields[setting];
  put_usual(recipe, fields);
  if (setting == SHOAL_SETTING_AUGMENT) {
    if (shoal_words_accept(w, "none")) return shoal_words_end(w);
    if (shoal_word_find(w->word, augment_words, 3) < 0)
      return shoal_words_unknown(w, w->word, "option", augment_words, 3);
  }
  if (fields->word == NULL && !read_value(w, fields++, recipe)) return false;
  if (setting == SHOAL_SETTING_OPTIMIZER) {
    if (recipe->optimizer == SHOAL_SGD && shoal_word_is(w->word, "momentum"))
      return shoal_words_fail(w, w->word, "sgd has no momentum; write `optimizer momentum momentum 0.9`");
    recipe->momentum = recipe->beta2 = recipe->eps = 0;
  }
  field room[SHOAL_OPTIMIZER_NUMBERS_MAX + 1];
  float rate = recipe->rate;
  fields = fields_of_kind(recipe, setting, fields, room);
  put_usual(recipe, fields);
  if (r->model->rate_set) recipe->rate = rate;
  if (fields->type != NONE && fields->word == NULL && !read_value(w, fields++, recipe)) return false;
  return read_options(w, fields, recipe);
}

bool shoal_check_loss(shoal_reading *r) {
  const shoal_model *model = r->model;
  const shoal_recipe *recipe = &model->recipe;
  const shoal_shape *output = &model->layers[model->layers_count - 1].shape;
  shoal_words *w = &r->words;
  shoal_word at = r->settings[SHOAL_SETTING_LOSS];
  w->head = at;
  const char *loss = shoal_loss_words[recipe->loss];
  char shape[SHOAL_SHAPE_TEXT_MAX];
  if (output->kind != SHOAL_VECTOR && output->kind != SHOAL_SEQUENCE)
    return shoal_words_fail(w, at,
                            "%s needs a vector or a sequence, but the last layer gives %s; end with a line "
                            "like `dense 10`, `flatten` or `global-pool average`",
                            loss, shoal_shape_text(output, shape));
  if (recipe->loss == SHOAL_CROSS_ENTROPY && output->features < 2)
    return shoal_words_fail(w, at,
                            "cross-entropy needs at least 2 classes, but the last layer gives %s; "
                            "a yes or no takes binary-cross-entropy",
                            shoal_shape_text(output, shape));
  if (recipe->sum_steps && output->kind != SHOAL_SEQUENCE)
    return shoal_words_fail(w, at, "sum-steps needs a sequence, but the last layer gives %s",
                            shoal_shape_text(output, shape));

  bool weighted = recipe->class_weights_balanced || recipe->class_weights_count;
  at = w->head = r->settings[SHOAL_SETTING_CLASS_WEIGHTS];
  if (weighted && recipe->loss != SHOAL_CROSS_ENTROPY)
    return shoal_words_fail(w, at, "weights of classes need the loss cross-entropy, found %s", loss);
  if (recipe->class_weights_count && recipe->class_weights_count != output->features)
    return shoal_words_fail(w, at, "%u weights for %s classes; there must be one for each",
                            recipe->class_weights_count, shoal_human_count(output->features).text);
  return true;
}

/* ---- writing ------------------------------------------------------------------------ */

static bool is_zero(const field *f, const shoal_recipe *recipe) {
  const void *from = (const char *)recipe + f->place;
  switch (f->type) {
  case U64: return *(const uint64_t *)from == 0;
  case REAL: return *(const float *)from == 0;
  case FLAG: return !*(const bool *)from;
  default: return *(const uint32_t *)from == 0;
  }
}

/* Whether a line can say 0. */
static bool takes_zero(const field *f) {
  switch (f->type) {
  case U32: return f->least == 0;
  case REAL: return f->range != SHOAL_RANGE_ABOVE_ZERO;
  case FLAG: return false;
  default: return true;
  }
}

static void write_fields(shoal_text *out, const field *f, const shoal_recipe *recipe) {
  for (; f->type != NONE; f++) {
    const void *from = (const char *)recipe + f->place;
    if (is_zero(f, recipe) && !takes_zero(f)) continue;
    if (f->word != NULL) shoal_text_addf(out, " %s", f->word);
    if (f->type == KIND) shoal_text_addf(out, " %s", f->kinds[*(const uint32_t *)from]);
    if (f->type == U32) shoal_text_addf(out, " %u", *(const uint32_t *)from);
    if (f->type == U64) shoal_text_addf(out, " %llu", (unsigned long long)*(const uint64_t *)from);
    if (f->type == REAL) shoal_write_real(out, " ", *(const float *)from);
  }
}

static void write_class_weights(shoal_text *out, const shoal_recipe *recipe) {
  if (!recipe->class_weights_balanced && !recipe->class_weights_count) return;
  shoal_text_addf(out, "class-weights%s", recipe->class_weights_balanced ? " balanced" : "");
  for (uint32_t i = 0; i < recipe->class_weights_count; i++)
    shoal_write_real(out, " ", recipe->class_weights[i]);
  shoal_text_addf(out, "\n");
}

void shoal_write_settings(const shoal_recipe *recipe, shoal_text *out) {
  static const field none[1];
  field room[SHOAL_OPTIMIZER_NUMBERS_MAX + 1];
  for (int s = 0; s < SHOAL_SETTINGS; s++) {
    bool is_written = is_always_written[s];
    for (const field *f = setting_fields[s]; f->type != NONE; f++) is_written |= !is_zero(f, recipe);
    if (!is_written) continue;
    shoal_text_addf(out, "%s", shoal_setting_words[s]);
    write_fields(out, setting_fields[s], recipe);
    write_fields(out, fields_of_kind(recipe, (shoal_setting)s, none, room), recipe);
    shoal_text_addf(out, "\n");
  }
  write_class_weights(out, recipe);
}
