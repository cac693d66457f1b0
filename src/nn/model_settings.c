/* model_settings.c: the lines of a model text that are not layers.
 *
 * A setting replaces all that an earlier one of its kind said, which is how a flag
 * overrides the text: what `optimizer adam` leaves out takes adam's defaults, not what
 * was tuned for the optimiser before it. */
#include <string.h>

#include "nn/model_internal.h"

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
const char *const shoal_loss_words[] = {
    [SHOAL_CROSS_ENTROPY] = "cross-entropy",
    [SHOAL_BINARY_CROSS_ENTROPY] = "binary-cross-entropy",
    [SHOAL_MEAN_SQUARED] = "mean-squared",
    [SHOAL_MEAN_ABSOLUTE] = "mean-absolute",
    [SHOAL_HUBER] = "huber",
};
const char *const shoal_optimizer_words[] = {
    [SHOAL_SGD] = "sgd",         [SHOAL_MOMENTUM] = "momentum", [SHOAL_NESTEROV] = "nesterov",
    [SHOAL_ADAGRAD] = "adagrad", [SHOAL_RMSPROP] = "rmsprop",   [SHOAL_ADAM] = "adam",
    [SHOAL_ADAMW] = "adamw",
};
const char *const shoal_schedule_words[] = {
    [SHOAL_SCHEDULE_CONSTANT] = "constant",
    [SHOAL_SCHEDULE_STEP] = "step",
    [SHOAL_SCHEDULE_EXPONENTIAL] = "exponential",
    [SHOAL_SCHEDULE_COSINE] = "cosine",
};
const char *const shoal_shuffle_words[] = {
    [SHOAL_SHUFFLE_ALL] = "all",
    [SHOAL_SHUFFLE_LANES] = "lanes",
};

enum { EPOCHS_MAX = 1000000000 };

static void init_loss(shoal_recipe *recipe, shoal_loss_kind loss) {
  recipe->loss = loss;
  recipe->huber_delta = 1;
  recipe->sum_steps = false;
}

static void init_optimizer(shoal_recipe *recipe, shoal_update_kind kind) {
  recipe->optimizer = kind;
  recipe->momentum = 0.9f;
  recipe->beta2 = kind == SHOAL_RMSPROP ? 0.99f : 0.999f;
  recipe->eps = kind == SHOAL_ADAGRAD ? 1e-10f : 1e-8f;
}

static void init_schedule(shoal_recipe *recipe, shoal_schedule_kind kind) {
  recipe->schedule = kind;
  recipe->schedule_from = 1;
  recipe->schedule_every = 1;
  recipe->schedule_factor = 0.1f;
  recipe->schedule_to = 0;
}

void shoal_recipe_init(shoal_recipe *recipe) {
  *recipe = (shoal_recipe){.batch = 64, .epochs = 10, .seed = 1};
  init_loss(recipe, SHOAL_CROSS_ENTROPY);
  init_optimizer(recipe, SHOAL_SGD);
  init_schedule(recipe, SHOAL_SCHEDULE_CONSTANT);
}

/* ---- lines with a kind and options --------------------------------------------------- */

/* Reads the kind that such a line starts with. */
static bool read_kind(shoal_words *w, const char *thing, const char *const *table, size_t count, int *out) {
  *out = shoal_word_find(w->word, table, count);
  if (*out < 0) return shoal_words_unknown(w, w->word, thing, table, count);
  shoal_words_advance(w);
  return true;
}

/* Reads the word of the next option, which must be one of the table and must not be in
 * *seen. `owner` takes these options. */
static bool read_option(shoal_words *w, const char *owner, const char *const *table, size_t count,
                        unsigned *seen, int *out) {
  shoal_word at = w->word;
  char quote[SHOAL_QUOTE_MAX];
  *out = shoal_word_find(at, table, count);
  if (*out < 0 && count == 0)
    return shoal_words_fail(w, at, "%s takes nothing more, found %s", owner, shoal_word_quote(w, at, quote));
  if (*out < 0) return shoal_words_unknown(w, at, "option", table, count);
  if (*seen & 1u << *out) return shoal_words_fail(w, at, "'%s' is given twice", table[*out]);
  *seen |= 1u << *out;
  shoal_words_advance(w);
  return true;
}

static bool read_loss(shoal_reading *r) {
  static const char *const options[] = {"sum-steps", "delta"};
  shoal_words *w = &r->words;
  shoal_recipe *recipe = &r->model->recipe;
  int kind, option;
  if (!read_kind(w, "loss", shoal_loss_words, SHOAL_LOSS_WORDS, &kind)) return false;
  init_loss(recipe, (shoal_loss_kind)kind);
  for (unsigned seen = 0; w->word.length;) {
    if (!read_option(w, shoal_loss_words[kind], options, kind == SHOAL_HUBER ? 2 : 1, &seen, &option))
      return false;
    if (option == 0)
      recipe->sum_steps = true;
    else if (!shoal_words_real(w, "where the loss turns from square to straight", SHOAL_RANGE_ABOVE_ZERO,
                               &recipe->huber_delta))
      return false;
  }
  return true;
}

/* Which of the numbers below an optimiser takes, as letters: its formula says which. */
static const char *const optimizer_options[] = {
    [SHOAL_SGD] = "r",       [SHOAL_MOMENTUM] = "rm", [SHOAL_NESTEROV] = "rm", [SHOAL_ADAGRAD] = "re",
    [SHOAL_RMSPROP] = "r2e", [SHOAL_ADAM] = "r12e",   [SHOAL_ADAMW] = "r12e",
};

static bool read_optimizer_number(shoal_words *w, shoal_recipe *recipe, char letter) {
  switch (letter) {
  case 'r': return shoal_words_real(w, "the rate", SHOAL_RANGE_ABOVE_ZERO, &recipe->rate);
  case 'm': return shoal_words_real(w, "the momentum", SHOAL_RANGE_SHARE, &recipe->momentum);
  case '1': return shoal_words_real(w, "beta1", SHOAL_RANGE_SHARE, &recipe->momentum);
  case '2': return shoal_words_real(w, "beta2", SHOAL_RANGE_SHARE, &recipe->beta2);
  default: return shoal_words_real(w, "eps", SHOAL_RANGE_ABOVE_ZERO, &recipe->eps);
  }
}

static bool read_optimizer(shoal_reading *r) {
  shoal_words *w = &r->words;
  shoal_recipe *recipe = &r->model->recipe;
  int kind, option;
  if (!read_kind(w, "optimizer", shoal_optimizer_words, SHOAL_OPTIMIZER_WORDS, &kind)) return false;
  if (kind == SHOAL_SGD && shoal_word_is(w->word, "momentum"))
    return shoal_words_fail(w, w->word, "sgd has no momentum; write `optimizer momentum momentum 0.9`");
  init_optimizer(recipe, (shoal_update_kind)kind);
  if (!r->model->rate_set) recipe->rate = 0;

  const char *letters = optimizer_options[kind];
  const char *words[5];
  size_t count = strlen(letters);
  for (size_t i = 0; i < count; i++) {
    words[i] = letters[i] == 'r'   ? "rate"
               : letters[i] == 'm' ? "momentum"
               : letters[i] == '1' ? "beta1"
               : letters[i] == '2' ? "beta2"
                                   : "eps";
  }
  for (unsigned seen = 0; w->word.length;) {
    if (!read_option(w, shoal_optimizer_words[kind], words, count, &seen, &option) ||
        !read_optimizer_number(w, recipe, letters[option]))
      return false;
  }
  return true;
}

bool shoal_read_rate(shoal_reading *r) {
  r->model->rate_set = true;
  return shoal_words_real(&r->words, "the rate", SHOAL_RANGE_ABOVE_ZERO, &r->model->recipe.rate) &&
         shoal_words_end(&r->words);
}

static bool read_step_options(shoal_words *w, shoal_recipe *recipe) {
  static const char *const options[] = {"from", "every", "factor"};
  for (unsigned seen = 0; w->word.length;) {
    int option;
    if (!read_option(w, "step", options, 3, &seen, &option)) return false;
    bool good =
        option == 0
            ? shoal_words_u32(w, "the first epoch of a lower rate", 1, EPOCHS_MAX, &recipe->schedule_from)
        : option == 1 ? shoal_words_u32(w, "the epochs of a step", 1, EPOCHS_MAX, &recipe->schedule_every)
                      : shoal_words_real(w, "the factor", SHOAL_RANGE_ABOVE_ZERO, &recipe->schedule_factor);
    if (!good) return false;
  }
  return true;
}

static bool read_schedule(shoal_reading *r) {
  shoal_words *w = &r->words;
  shoal_recipe *recipe = &r->model->recipe;
  int kind;
  if (!read_kind(w, "schedule", shoal_schedule_words, SHOAL_SCHEDULE_WORDS, &kind)) return false;
  init_schedule(recipe, (shoal_schedule_kind)kind);
  switch (recipe->schedule) {
  case SHOAL_SCHEDULE_CONSTANT: break;
  case SHOAL_SCHEDULE_STEP: return read_step_options(w, recipe);
  case SHOAL_SCHEDULE_EXPONENTIAL:
    if (!shoal_words_real(w, "the factor of an epoch", SHOAL_RANGE_ABOVE_ZERO, &recipe->schedule_factor))
      return false;
    break;
  case SHOAL_SCHEDULE_COSINE:
    if (shoal_words_accept(w, "to") &&
        !shoal_words_real(w, "the last rate", SHOAL_RANGE_FROM_ZERO, &recipe->schedule_to))
      return false;
    break;
  }
  return shoal_words_end(w);
}

static bool read_warmup(shoal_reading *r) {
  shoal_words *w = &r->words;
  shoal_recipe *recipe = &r->model->recipe;
  recipe->scale_batch = 0;
  if (!shoal_words_real(w, "a number of epochs", SHOAL_RANGE_FROM_ZERO, &recipe->warmup_epochs)) return false;
  if (shoal_words_accept(w, "scale") &&
      !shoal_words_u32(w, "the batch that the rate is meant for", 1, SHOAL_BATCH_MAX, &recipe->scale_batch))
    return false;
  return shoal_words_end(w);
}

static bool read_shuffle(shoal_reading *r) {
  int kind;
  if (!read_kind(&r->words, "shuffle", shoal_shuffle_words, SHOAL_SHUFFLE_WORDS, &kind)) return false;
  r->model->recipe.shuffle = (shoal_shuffle_kind)kind;
  return shoal_words_end(&r->words);
}

static bool read_augment(shoal_reading *r) {
  static const char *const options[] = {"flip", "crop", "none"};
  shoal_words *w = &r->words;
  shoal_augment *augment = &r->model->recipe.augment;
  *augment = (shoal_augment){0};
  if (shoal_words_accept(w, "none")) return shoal_words_end(w);
  unsigned seen = 0;
  do {
    int option;
    if (!read_option(w, "augment", options, seen ? 2 : 3, &seen, &option)) return false;
    if (option == 0)
      augment->flip = true;
    else if (!shoal_words_u32(w, "the pixels to move by", 1, SHOAL_AUGMENT_CROP_MAX, &augment->crop))
      return false;
  } while (w->word.length);
  return true;
}

static bool read_class_weights(shoal_reading *r) {
  shoal_words *w = &r->words;
  shoal_recipe *recipe = &r->model->recipe;
  recipe->class_weights_count = 0;
  memset(recipe->class_weights, 0, sizeof recipe->class_weights);
  recipe->class_weights_balanced = shoal_words_accept(w, "balanced");
  if (recipe->class_weights_balanced) return shoal_words_end(w);
  bool any = false;
  do {
    if (recipe->class_weights_count == SHOAL_CLASS_WEIGHTS_MAX) {
      char most[SHOAL_GROUPED_MAX];
      return shoal_words_over_limit(w, w->word, "more than %s weights",
                                    shoal_grouped(SHOAL_CLASS_WEIGHTS_MAX, most));
    }
    float *weight = &recipe->class_weights[recipe->class_weights_count++];
    if (!shoal_words_real(w, "'balanced' or a weight", SHOAL_RANGE_FROM_ZERO, weight)) return false;
    any = any || *weight > 0;
  } while (w->word.length);
  return any || shoal_words_fail(w, w->word, "all weights are 0; at least one class must count");
}

/* ---- all of them -------------------------------------------------------------------- */

bool shoal_read_setting(shoal_reading *r, shoal_setting setting) {
  shoal_words *w = &r->words;
  shoal_recipe *recipe = &r->model->recipe;
  bool good = true;
  switch (setting) {
  case SHOAL_SETTING_LOSS: return read_loss(r);
  case SHOAL_SETTING_OPTIMIZER: return read_optimizer(r);
  case SHOAL_SETTING_SCHEDULE: return read_schedule(r);
  case SHOAL_SETTING_WARMUP: return read_warmup(r);
  case SHOAL_SETTING_SHUFFLE: return read_shuffle(r);
  case SHOAL_SETTING_AUGMENT: return read_augment(r);
  case SHOAL_SETTING_CLASS_WEIGHTS: return read_class_weights(r);
  case SHOAL_SETTING_BATCH:
    good = shoal_words_u32(w, "the samples of a round", 1, SHOAL_BATCH_MAX, &recipe->batch);
    break;
  case SHOAL_SETTING_EPOCHS:
    good = shoal_words_u32(w, "the number of epochs", 1, EPOCHS_MAX, &recipe->epochs);
    break;
  case SHOAL_SETTING_SEED: good = shoal_words_u64(w, "a seed", 0, UINT64_MAX, &recipe->seed); break;
  case SHOAL_SETTING_SHARDS:
    good = shoal_words_u32(w, "the parts of a batch", 0, SHOAL_SHARDS_MAX, &recipe->shards);
    break;
  case SHOAL_SETTING_L2: good = shoal_words_real(w, "the factor", SHOAL_RANGE_FROM_ZERO, &recipe->l2); break;
  case SHOAL_SETTING_CLIP:
    good = shoal_words_real(w, "the largest norm of a gradient", SHOAL_RANGE_FROM_ZERO, &recipe->clip);
    break;
  case SHOAL_SETTING_EARLY_STOP:
    good = shoal_words_u32(w, "the epochs to wait for a better one", 0, EPOCHS_MAX, &recipe->early_stop);
    break;
  case SHOAL_SETTINGS: return false; /* only the number of them */
  }
  return good && shoal_words_end(w);
}

bool shoal_check_loss(shoal_reading *r) {
  const shoal_model *model = r->model;
  const shoal_recipe *recipe = &model->recipe;
  const shoal_shape *output = &model->layers[model->layers_count - 1].shape;
  shoal_words *w = &r->words;
  shoal_word at = r->settings[SHOAL_SETTING_LOSS];
  w->head = at;
  const char *loss = shoal_loss_words[recipe->loss];
  char shape[SHOAL_SHAPE_TEXT_MAX], classes[SHOAL_GROUPED_MAX];
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
                            recipe->class_weights_count, shoal_grouped(output->features, classes));
  return true;
}
