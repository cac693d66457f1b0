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

static const char *const shuffle_words[] = {
    [SHOAL_SHUFFLE_ALL] = "all", [SHOAL_SHUFFLE_LANES] = "lanes", NULL};

enum { EPOCHS_MAX = 1000000000 };

#define KIND(what, name, words) SHOAL_KIND_FIELD(shoal_recipe, what, name, words)
#define FLAG(word, name) SHOAL_FLAG_FIELD(shoal_recipe, word, name)
#define U32(word, what, name, usual, from, to) \
  SHOAL_U32_FIELD(shoal_recipe, word, what, name, usual, from, to)
#define REAL(word, what, name, usual, in) SHOAL_REAL_FIELD(shoal_recipe, word, what, name, usual, in)

#define EACH_SCHEDULE(X)                                                             \
  X(SHOAL_SCHEDULE_CONSTANT, "constant", {0})                                        \
  X(SHOAL_SCHEDULE_STEP, "step",                                                     \
    U32("from", "the first epoch of a lower rate", schedule_from, 1, 1, EPOCHS_MAX), \
    U32("every", "the epochs of a step", schedule_every, 1, 1, EPOCHS_MAX),          \
    REAL("factor", "the factor", schedule_factor, 0.1, ABOVE_ZERO))                  \
  X(SHOAL_SCHEDULE_EXPONENTIAL, "exponential",                                       \
    REAL(NULL, "the factor of an epoch", schedule_factor, 0.1, ABOVE_ZERO))          \
  X(SHOAL_SCHEDULE_COSINE, "cosine", REAL("to", "the last rate", schedule_to, 0, FROM_ZERO))

const char *const shoal_setting_words[] = {SHOAL_EACH_SETTING(SHOAL_WORD_OF) NULL};
const char *const shoal_schedule_words[] = {EACH_SCHEDULE(SHOAL_WORD_OF) NULL};
static const shoal_field setting_fields[][SHOAL_FIELDS_MAX + 1] = {SHOAL_EACH_SETTING(SHOAL_ROW_OF)};
static const shoal_field schedule_fields[][SHOAL_FIELDS_MAX + 1] = {EACH_SCHEDULE(SHOAL_ROW_OF)};
static const shoal_field loss_fields[SHOAL_FIELDS_MAX + 1] = {
    REAL("delta", "where the loss turns from square to straight", huber_delta, 1, ABOVE_ZERO),
    FLAG("sum-steps", sum_steps),
};

/* What the line takes after its kind; `others` where no other fields follow a kind. */
static const shoal_field *fields_of_kind(const shoal_recipe *recipe, shoal_setting setting,
                                         const shoal_field *others) {
  switch (setting) {
  case SHOAL_SETTING_LOSS: return loss_fields + (shoal_loss_rows[recipe->loss].has_delta ? 0 : 1);
  case SHOAL_SETTING_SCHEDULE: return schedule_fields[recipe->schedule];
  case SHOAL_SETTING_OPTIMIZER: return shoal_optimizer_rows[recipe->optimizer].fields;
  default: return others;
  }
}

static void put_usual(shoal_recipe *recipe, const shoal_field *f) {
  for (; f->type != SHOAL_FIELD_NONE; f++) {
    void *to = (char *)recipe + f->place;
    switch (f->type) {
    case SHOAL_FIELD_U64: *(uint64_t *)to = (uint64_t)f->usual; break;
    case SHOAL_FIELD_REAL: *(float *)to = (float)f->usual; break;
    case SHOAL_FIELD_FLAG: *(bool *)to = false; break;
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

/* The rest of the line: fields that have words. */
static bool read_options(shoal_words *w, const shoal_field *fields, shoal_recipe *recipe) {
  const char *words[SHOAL_FIELDS_MAX + 1] = {NULL};
  for (size_t i = 0; fields[i].type != SHOAL_FIELD_NONE; i++) words[i] = fields[i].word;
  if (words[0] == NULL) return shoal_words_end(w);
  for (unsigned seen = 0; w->word.length;) {
    int option = shoal_word_find(w->word, words);
    if (option < 0) return shoal_words_unknown(w, w->word, "option", words);
    if (seen & 1u << option) return shoal_words_fail(w, w->word, "'%s' is given twice", words[option]);
    seen |= 1u << option;
    shoal_words_advance(w);
    if (!shoal_read_field(w, &fields[option], recipe)) return false;
  }
  return true;
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
  static const char *const augment_words[] = {"flip", "crop", "none", NULL};
  shoal_words *w = &r->words;
  shoal_recipe *recipe = &r->model->recipe;
  if (setting == SHOAL_SETTING_CLASS_WEIGHTS) return read_class_weights(w, recipe);
  const shoal_field *fields = setting_fields[setting];
  put_usual(recipe, fields);
  if (setting == SHOAL_SETTING_AUGMENT) {
    if (shoal_words_accept(w, "none")) return shoal_words_end(w);
    if (shoal_word_find(w->word, augment_words) < 0)
      return shoal_words_unknown(w, w->word, "option", augment_words);
  }
  if (fields->word == NULL && !shoal_read_field(w, fields++, recipe)) return false;
  if (setting == SHOAL_SETTING_OPTIMIZER) recipe->momentum = recipe->beta2 = recipe->eps = 0;
  float rate = recipe->rate;
  fields = fields_of_kind(recipe, setting, fields);
  put_usual(recipe, fields);
  if (r->model->rate_set) recipe->rate = rate;
  if (fields->type != SHOAL_FIELD_NONE && fields->word == NULL && !shoal_read_field(w, fields++, recipe))
    return false;
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
  if (shoal_targets_of(recipe) == SHOAL_TARGET_CLASSES && output->features < 2)
    return shoal_words_fail(w, at,
                            "%s needs at least 2 classes, but the last layer gives %s; "
                            "a yes or no takes binary-cross-entropy",
                            loss, shoal_shape_text(output, shape));
  if (recipe->sum_steps && output->kind != SHOAL_SEQUENCE)
    return shoal_words_fail(w, at, "sum-steps needs a sequence, but the last layer gives %s",
                            shoal_shape_text(output, shape));

  bool weighted = recipe->class_weights_balanced || recipe->class_weights_count;
  at = w->head = r->settings[SHOAL_SETTING_CLASS_WEIGHTS];
  if (weighted && shoal_targets_of(recipe) != SHOAL_TARGET_CLASSES)
    return shoal_words_fail(w, at, "weights of classes need the loss cross-entropy, found %s", loss);
  if (recipe->class_weights_count && recipe->class_weights_count != output->features)
    return shoal_words_fail(w, at, "%u weights for %s classes; there must be one for each",
                            recipe->class_weights_count, shoal_human_count(output->features).text);
  return true;
}

/* ---- writing ------------------------------------------------------------------------ */

/* A line is left out where all that it would say is zero, and is zero without it. */
void shoal_write_settings(const shoal_recipe *recipe, shoal_text *out) {
  static const shoal_field none[1];
  for (int s = 0; s < SHOAL_SETTINGS; s++) {
    const shoal_field *of_kind = fields_of_kind(recipe, (shoal_setting)s, none);
    bool is_written = of_kind != none;
    for (const shoal_field *f = setting_fields[s]; f->type != SHOAL_FIELD_NONE; f++)
      is_written |= f->usual != 0 || !shoal_field_is_zero(f, recipe);
    if (!is_written) continue;
    shoal_text_addf(out, "%s", shoal_setting_words[s]);
    shoal_write_fields(out, setting_fields[s], recipe);
    shoal_write_fields(out, of_kind, recipe);
    shoal_text_addf(out, "\n");
  }
  if (!recipe->class_weights_balanced && !recipe->class_weights_count) return;
  shoal_text_addf(out, "class-weights%s", recipe->class_weights_balanced ? " balanced" : "");
  for (uint32_t i = 0; i < recipe->class_weights_count; i++) shoal_write_real(out, recipe->class_weights[i]);
  shoal_text_addf(out, "\n");
}
