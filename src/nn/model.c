/* model.c: reads and writes a model text: layer lines, names and references, and the whole around them.
 *
 * A line is read by its first word: a layer's arguments, then its options in any order.
 * Names refer to earlier lines only, so a layer's inputs are complete when its line is
 * read, and its shape is inferred on the spot, where an error still knows the column. */
#include "nn/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/magic.h"
#include "nn/model_internal.h"
#include "nn/onnx.h"
#include "nn/op.h"
#include "nn/source.h"

static const char *const init_words[] = {
    [SHOAL_INIT_AUTO] = "auto",     [SHOAL_INIT_ZERO] = "zero",
    [SHOAL_INIT_NORMAL] = "normal", [SHOAL_INIT_UNIFORM] = "uniform",
    [SHOAL_INIT_XAVIER] = "xavier", [SHOAL_INIT_HE] = "he",
    [SHOAL_INIT_LECUN] = "lecun",   NULL,
};
static const char *const option_words[] = {SHOAL_EACH_OPTION(SHOAL_WORD_OF) NULL};

uint32_t shoal_model_vocabulary(const shoal_model *model) {
  uint32_t vocabulary = 0;
  for (uint32_t i = 0; i < model->layers_count; i++) {
    const shoal_layer *layer = &model->layers[i];
    if (shoal_op_is(layer->op, SHOAL_OP_TAKES_TOKENS) && (vocabulary == 0 || layer->vocabulary < vocabulary))
      vocabulary = layer->vocabulary;
  }
  return vocabulary;
}

/* ---- names -------------------------------------------------------------------------- */

/* The index of the layer that the text calls by this word, or -1. */
static int find_named(const shoal_reading *r, shoal_word word) {
  for (uint32_t i = 0; i < r->model->layers_count; i++) {
    if (r->model->layers[i].named && shoal_word_is(word, r->model->layers[i].name)) return (int)i;
  }
  return -1;
}

/* Reads the name of an earlier line as input k of the layer. */
static bool read_reference(shoal_reading *r, shoal_layer *layer, uint32_t k) {
  shoal_words *w = &r->words;
  shoal_word at = w->word;
  if (at.length == 0) return shoal_words_expected(w, at, "the name of a line above");
  int index = find_named(r, at);
  if (index < 0) {
    const char *names[SHOAL_LAYERS_MAX + 1] = {NULL};
    size_t count = 0;
    for (uint32_t i = 0; i < r->model->layers_count; i++) {
      if (r->model->layers[i].named) names[count++] = r->model->layers[i].name;
    }
    const shoal_phrase quote = shoal_word_quote(w, at);
    const char *near = shoal_word_near(at, names);
    if (near)
      return shoal_words_fail(w, at, "no line above is named %s; did you mean '%s'?", quote.text, near);
    return shoal_words_fail(w, at, "no line above is named %s; a name is given as in `a: dense 10`",
                            quote.text);
  }
  layer->inputs[k] = (uint32_t)index;
  r->inputs[k] = at;
  shoal_words_advance(w);
  return true;
}

static bool is_keyword(shoal_word word) {
  return shoal_op_named(word.text, word.length) != NULL ||
         shoal_word_find(word, shoal_activation_words) >= 0 ||
         shoal_word_find(word, shoal_setting_words) >= 0 || shoal_word_find(word, option_words) >= 0;
}

/* The current word is "NAME:". */
static bool read_label(shoal_reading *r, shoal_layer *layer) {
  shoal_words *w = &r->words;
  shoal_word name = w->word;
  name.length--;
  if (name.length == 0 || shoal_name_length(name.text) != name.length)
    return shoal_words_fail(
        w, w->word, "%s is no name for a line; names are letters, digits, '_' and '-', from a letter on",
        shoal_word_quote(w, w->word).text);
  const shoal_phrase quote = shoal_word_quote(w, name);
  if (name.length > SHOAL_LINE_NAME_BYTES_MAX)
    return shoal_words_over_limit(w, name, "the name %s is longer than %d characters", quote.text,
                                  SHOAL_LINE_NAME_BYTES_MAX);
  if (is_keyword(name))
    return shoal_words_fail(w, name, "%s is a word of the language and cannot be a name", quote.text);
  int taken = find_named(r, name);
  if (taken >= 0)
    return shoal_words_fail(w, name, "the name %s is already taken by line %u", quote.text,
                            r->model->layers[taken].line);
  layer->name = shoal_arena_text(&r->model->memory, name.text, name.length);
  layer->named = true;
  shoal_words_advance(w);
  return layer->name != NULL;
}

/* Layers without a name get one of their kind and a number: "conv2", or "conv3" where a
 * person has called another line conv2. */
static bool make_names(shoal_reading *r) {
  shoal_model *model = r->model;
  uint32_t counts[SHOAL_OPS_MAX] = {0};
  for (uint32_t i = 0; i < model->layers_count; i++) {
    shoal_layer *layer = &model->layers[i];
    if (layer->named) continue;
    char name[SHOAL_LINE_NAME_BYTES_MAX + 1];
    shoal_word word = {.text = name};
    uint32_t op = 0;
    while (shoal_ops[op] != layer->op) op++;
    do {
      if (i == 0)
        word.length = (uint32_t)snprintf(name, sizeof name, "input");
      else
        word.length = (uint32_t)snprintf(name, sizeof name, "%s%u", layer->op->word, ++counts[op]);
    } while (find_named(r, word) >= 0);
    layer->name = shoal_arena_text(&model->memory, name, word.length);
    if (!layer->name) return false;
  }
  return true;
}

/* ---- the arguments of layers -------------------------------------------------------- */

bool shoal_read_shape(shoal_reading *r, shoal_layer *layer) {
  shoal_words *w = &r->words;
  uint32_t sizes[3];
  bool is_sequence = shoal_words_accept(w, "sequence");
  r->size = w->word;
  uint32_t count =
      is_sequence ? shoal_words_sizes(w, "STEPSxFEATURES such as 20x8", 1, 2, 2, sizes)
                  : shoal_words_sizes(w, "a shape such as 784, 1x28x28 or `sequence 20x8`", 1, 1, 3, sizes);
  if (count == 0) return false;
  if (count == 2 && !is_sequence)
    return shoal_words_fail(
        w, r->size, "two sizes are not enough for an image; write `%.*s sequence %ux%u` or `%.*s 1x%ux%u`",
        (int)w->head.length, w->head.text, sizes[0], sizes[1], (int)w->head.length, w->head.text, sizes[0],
        sizes[1]);
  layer->shape = is_sequence  ? shoal_sequence_of(sizes[0], sizes[1])
                 : count == 1 ? shoal_vector_of(sizes[0])
                              : (shoal_shape){SHOAL_IMAGE, 1, 1, sizes[0], sizes[1], sizes[2]};
  return shoal_check_values(r, r->size, &layer->shape);
}

void shoal_write_shape(const shoal_layer *layer, shoal_text *out) {
  char shape[SHOAL_SHAPE_TEXT_MAX];
  shoal_text_addf(out, " %s", shoal_shape_text(&layer->shape, shape));
}

static bool read_names(shoal_reading *r, shoal_layer *layer) {
  shoal_words *w = &r->words;
  do {
    if (layer->inputs_count == SHOAL_LAYER_INPUTS_MAX)
      return shoal_words_over_limit(w, w->word, "more than %d inputs", SHOAL_LAYER_INPUTS_MAX);
    if (!read_reference(r, layer, layer->inputs_count)) return false;
    layer->inputs_count++;
  } while (w->word.length && !is_keyword(w->word));
  return true;
}

static bool read_arguments(shoal_reading *r, shoal_layer *layer) {
  shoal_words *w = &r->words;
  for (const shoal_field *f = layer->op->arguments; f != NULL && f->type != SHOAL_FIELD_NONE; f++) {
    if (f->word != NULL && !shoal_words_accept(w, f->word))
      return shoal_words_expected(w, w->word, "`%s` and %s", f->word, f->what);
    r->size = w->word;
    if (!shoal_read_field(w, f, layer)) return false;
  }
  return true;
}

/* ---- the options of layers ---------------------------------------------------------- */

static bool unexpected(shoal_reading *r, shoal_word at, unsigned allowed) {
  shoal_words *w = &r->words;
  const char *words[SHOAL_OPTION_ACTIVATION + SHOAL_ACTIVATION_WORDS + 1] = {NULL};
  size_t count = 0;
  for (int i = 0; i < SHOAL_OPTION_ACTIVATION; i++)
    if (allowed & 1u << i) words[count++] = option_words[i];
  const shoal_phrase list = shoal_words_list(words);
  bool may_activate = allowed & SHOAL_TAKES(ACTIVATION);
  for (int i = 0; i < SHOAL_ACTIVATION_WORDS && may_activate; i++) words[count++] = shoal_activation_words[i];
  const shoal_phrase quote = shoal_word_quote(w, at);
  const char *near = shoal_word_near(at, words);
  if (shoal_words_foreign(w).text[0]) return shoal_words_fail(w, at, "unexpected %s", quote.text);
  if (shoal_op_named(at.text, at.length) != NULL)
    return shoal_words_fail(w, at, "unexpected %s; every layer has a line of its own", quote.text);
  if (near) return shoal_words_fail(w, at, "unexpected %s; did you mean '%s'?", quote.text, near);
  return shoal_words_fail(w, at, "unexpected %s; here can stand: the end of the line, %s%s", quote.text,
                          list.text, may_activate ? ", an activation" : "");
}

/* "2" for both directions, or "2x1". */
static bool read_pair(shoal_reading *r, const char *what, uint32_t least, uint32_t *h, uint32_t *w) {
  uint32_t sizes[3], count = shoal_words_sizes(&r->words, what, least, 1, 2, sizes);
  if (count == 0) return false;
  *h = sizes[0];
  *w = sizes[count - 1];
  return true;
}

static bool read_pad(shoal_reading *r, shoal_layer *layer) {
  shoal_words *w = &r->words;
  shoal_word at = w->word;
  if (!shoal_op_is(layer->op, SHOAL_OP_PADS_SAME) || !shoal_words_accept(w, "same"))
    return read_pair(r, "a padding such as 2 or 2x1", 0, &layer->window.pad_h, &layer->window.pad_w);
  if (layer->window.k_h % 2 == 0 || layer->window.k_w % 2 == 0)
    return shoal_words_fail(w, at, "`pad same` needs a window of odd sizes, found %ux%u", layer->window.k_h,
                            layer->window.k_w);
  layer->window.pad_h = layer->window.k_h / 2;
  layer->window.pad_w = layer->window.k_w / 2;
  return true;
}

static bool read_init(shoal_reading *r, shoal_layer *layer) {
  shoal_words *w = &r->words;
  int kind = shoal_word_find(w->word, init_words);
  const char *meant = shoal_init_meant(w->word.text, w->word.length);
  if (kind < 0 && meant)
    return shoal_words_fail(w, w->word, "unknown initialiser %s; write `init %s`",
                            shoal_word_quote(w, w->word).text, meant);
  if (kind <= SHOAL_INIT_AUTO) /* which is what a line without `init` has */
    return shoal_words_unknown(w, w->word, "initialiser", init_words + 1);
  layer->init = (shoal_init_kind)kind;
  shoal_words_advance(w);
  if (kind != SHOAL_INIT_NORMAL && kind != SHOAL_INIT_UNIFORM) return true;
  const char *what = kind == SHOAL_INIT_NORMAL ? "the standard deviation" : "the largest value";
  return shoal_words_real(w, what, SHOAL_RANGE_ABOVE_ZERO, &layer->init_scale);
}

static bool read_option(shoal_reading *r, shoal_layer *layer, shoal_option option) {
  switch (option) {
  case SHOAL_OPTION_STRIDE:
    return read_pair(r, "a stride such as 2 or 2x1", 1, &layer->window.stride_h, &layer->window.stride_w);
  case SHOAL_OPTION_PAD: return read_pad(r, layer);
  case SHOAL_OPTION_NO_BIAS: layer->bias = false; return true;
  case SHOAL_OPTION_INIT: return read_init(r, layer);
  case SHOAL_OPTION_LAYERS:
    return shoal_words_u32(&r->words, "the number of layers", 1, SHOAL_STACK_MAX, &layer->stack);
  case SHOAL_OPTION_BIDIRECTIONAL: layer->bidirectional = true; return true;
  case SHOAL_OPTION_LAST: layer->last = true; return true;
  case SHOAL_OPTION_BATCH: layer->whole_batch = true; return true;
  case SHOAL_OPTION_FROM: return read_reference(r, layer, 0);
  default: return true;
  }
}

static bool read_options(shoal_reading *r, shoal_layer *layer) {
  shoal_words *w = &r->words;
  unsigned allowed = layer->op->options | SHOAL_TAKES(FROM);
  if (!layer->op->is_inner)
    allowed |= SHOAL_TAKES(ACTIVATION); /* the line of an activation has one already */
  while (w->word.length) {
    shoal_word at = w->word;
    int option = shoal_word_find(at, option_words);
    int activation = shoal_word_find(at, shoal_activation_words);
    if (activation >= 0) option = SHOAL_OPTION_ACTIVATION;
    if (option < 0 || !(allowed & 1u << option)) return unexpected(r, at, allowed);
    if (r->options[option].length && activation >= 0)
      return shoal_words_fail(w, at, "a second activation; give it a line of its own");
    if (r->options[option].length)
      return shoal_words_fail(w, at, "'%s' is given twice", option_words[option]);
    r->options[option] = at;
    shoal_words_advance(w);
    if (activation >= 0)
      layer->activation = (shoal_activation)activation;
    else if (!read_option(r, layer, (shoal_option)option))
      return false;
  }
  return true;
}

/* ---- lines -------------------------------------------------------------------------- */

static bool unknown_layer(shoal_reading *r, bool named) {
  const char *words[SHOAL_OPS_MAX + SHOAL_ACTIVATION_WORDS + SHOAL_SETTINGS + 1] = {NULL};
  size_t count = 0;
  for (uint32_t i = 0; i < shoal_ops_count; i++) {
    bool is_given = r->layers_only && shoal_op_is(shoal_ops[i], SHOAL_OP_INPUT);
    if (!shoal_ops[i]->is_inner && !is_given) words[count++] = shoal_ops[i]->word;
  }
  for (int i = 0; i < SHOAL_ACTIVATION_WORDS; i++) words[count++] = shoal_activation_words[i];
  const shoal_phrase layers = shoal_words_list(words);
  for (int i = 0; i < SHOAL_SETTINGS && !named && !r->layers_only; i++)
    words[count++] = shoal_setting_words[i];

  /* Words that are near to a layer of ours and mean another. */
  static const char others[] = "conv1d conv3d deconv selu celu prelu";
  shoal_words *w = &r->words;
  shoal_word at = w->word;
  bool is_other = shoal_word_listed(others, at.text, at.length);
  const char *colon = at.length > 0 ? memchr(at.text, ':', at.length) : NULL;
  shoal_word label = {.text = at.text, .length = colon ? (uint32_t)(colon - at.text) : 0};
  if (colon && shoal_name_length(at.text) == label.length && !is_keyword(label) &&
      !shoal_words_foreign(w).text[0])
    return shoal_words_fail(w, at, "a space is missing behind the ':' of %s", shoal_word_quote(w, at).text);
  if (at.length == 0 || shoal_words_foreign(w).text[0] || (!is_other && shoal_word_near(at, words)))
    return shoal_words_unknown(w, at, "layer", words);
  if (at.length >= 2 && memcmp(at.text, "//", 2) == 0)
    return shoal_words_fail(w, at, "a comment begins with '#'");
  const char *bracket = memchr(at.text, '(', at.length);
  if (bracket > at.text) at.length = (uint32_t)(bracket - at.text);
  return shoal_words_fail(w, at, "there is no layer %s; the layers are %s", shoal_word_quote(w, at).text,
                          layers.text);
}

static bool refuse_in_body(shoal_reading *r) {
  return shoal_words_fail(&r->words, r->words.word,
                          "%s is no layer, and here stand layers only; leave the line out",
                          shoal_word_quote(&r->words, r->words.word).text);
}

/* The current word says which layer; anything before it was a name. */
static bool read_layer(shoal_reading *r, shoal_layer *layer) {
  shoal_words *w = &r->words;
  shoal_model *model = r->model;
  int activation = shoal_word_find(w->word, shoal_activation_words);
  layer->op = activation >= 0 ? shoal_activation_op : shoal_op_named(w->word.text, w->word.length);
  if (layer->op == NULL) return unknown_layer(r, layer->named);
  bool is_input = shoal_op_is(layer->op, SHOAL_OP_INPUT);
  if (is_input && r->layers_only) return refuse_in_body(r);
  if (activation >= 0) layer->activation = (shoal_activation)activation;
  layer->line = w->line;
  w->head = w->word;
  shoal_words_advance(w);

  if (is_input != (model->layers_count == 0))
    return model->layers_count
               ? shoal_words_fail(w, w->head, "a second input; the first is on line %u",
                                  model->layers[0].line)
               : shoal_words_fail(w, w->head,
                                  "a layer before the input; start with a line like `input 1x28x28`");
  if (r->settings[SHOAL_SETTING_LOSS].length)
    return shoal_words_fail(w, w->head, "a layer after the loss on line %u; move it above that line",
                            r->settings[SHOAL_SETTING_LOSS].line);
  r->heads[model->layers_count] = w->head;
  if (is_input) return layer->op->read(r, layer) && shoal_words_end(w);

  layer->inputs_count = 1;
  layer->inputs[0] = model->layers_count - 1;
  layer->bias = (layer->op->options & SHOAL_TAKES(NO_BIAS)) != 0;
  if (!read_arguments(r, layer)) return false;
  if (layer->op->read != NULL && !layer->op->read(r, layer)) return false;
  if (shoal_op_is(layer->op, SHOAL_OP_JOINS) && !read_names(r, layer)) return false;
  if (!read_options(r, layer) || !shoal_infer_layer(r, layer)) return false;
  for (uint32_t k = 0; k < layer->inputs_count; k++) r->used[layer->inputs[k]] = true;
  return true;
}

static bool read_line(shoal_reading *r) {
  shoal_words *w = &r->words;
  int setting = shoal_word_find(w->word, shoal_setting_words);
  bool is_rate = shoal_word_is(w->word, "rate");
  if (r->layers_only && (setting >= 0 || is_rate)) return refuse_in_body(r);
  if (setting >= 0) {
    w->head = w->word;
    if (r->settings[setting].length)
      return shoal_words_fail(w, w->word, "already given on line %u", r->settings[setting].line);
    r->settings[setting] = w->word;
    shoal_words_advance(w);
    return shoal_read_setting(r, (shoal_setting)setting);
  }
  if (is_rate)
    return shoal_words_fail(w, w->word, "the rate stands on the optimizer's line: `optimizer %s rate 0.1`",
                            shoal_optimizer_words[r->model->recipe.optimizer]);

  shoal_model *model = r->model;
  if (model->layers_count == SHOAL_LAYERS_MAX)
    return shoal_words_over_limit(w, w->word, "more than %s layers",
                                  shoal_human_count(SHOAL_LAYERS_MAX).text);
  shoal_layer *layer = &model->layers[model->layers_count];
  r->size = (shoal_word){0};
  memset(r->options, 0, sizeof r->options);
  memset(r->inputs, 0, sizeof r->inputs);
  if (w->word.text[w->word.length - 1] == ':') {
    if (!read_label(r, layer)) return false;
    if (shoal_word_find(w->word, shoal_setting_words) >= 0)
      return shoal_words_fail(w, w->word, "only layers have names, and '%.*s' is none", (int)w->word.length,
                              w->word.text);
  }
  if (!read_layer(r, layer)) return false;
  model->layers_count++;
  return true;
}

/* ---- the whole ---------------------------------------------------------------------- */

bool shoal_model_takes_whole_batch(const shoal_model *model) {
  for (uint32_t i = 0; i < model->layers_count; i++)
    if (model->layers[i].whole_batch) return true;
  return false;
}

/* Whether a round can be what its layers need it to be. */
static bool check_round(shoal_reading *r) {
  shoal_words *w = &r->words;
  const shoal_recipe *recipe = &r->model->recipe;
  if (!shoal_model_takes_whole_batch(r->model)) return true;
  w->head = r->settings[SHOAL_SETTING_SHARDS];
  if (recipe->shards > 1)
    return shoal_words_fail(
        w, w->head,
        "%u shards, but `batchnorm batch` needs a round to be one; leave `batch` out there "
        "to normalise each shard by itself",
        recipe->shards);
  w->head = r->settings[SHOAL_SETTING_BATCH];
  if (recipe->batch > SHOAL_FETCH_MAX)
    return shoal_words_over_limit(w, w->head, "%s samples, but `batchnorm batch` takes at most %s at once",
                                  shoal_human_count(recipe->batch).text,
                                  shoal_human_count(SHOAL_FETCH_MAX).text);
  return true;
}

static bool check_whole(shoal_reading *r) {
  shoal_words *w = &r->words;
  const shoal_model *model = r->model;
  shoal_word end = {.line = w->line ? w->line : 1, .column = 1};
  if (model->layers_count == 0)
    return shoal_words_fail(w, end, "the text ends without an input; start with a line like `input 1x28x28`");
  if (!r->settings[SHOAL_SETTING_LOSS].length)
    return shoal_words_fail(w, end, "the text ends without a loss; add a line like `loss cross-entropy`");
  for (uint32_t i = 0; i + 1 < model->layers_count; i++) {
    w->head = r->heads[i];
    if (!r->used[i]) return shoal_words_fail(w, r->heads[i], "no later line uses this one's output");
  }
  w->head = (shoal_word){0};
  if (r->weights == 0)
    return shoal_words_fail(w, end,
                            "there is nothing to train: no line has weights; add one like `dense 10`");
  return shoal_check_loss(r) && check_round(r);
}

/* A text, or the piece of one, whose lines are counted anew. */
typedef struct piece {
  const char *text;
  size_t length;
  bool layers_only;
} piece;

static bool read_all(shoal_reading *r, const char *name, const piece *pieces, size_t count,
                     shoal_error *err) {
  for (size_t i = 0; i < count; i++) {
    shoal_words_init(&r->words, name, pieces[i].text, pieces[i].length, err);
    r->layers_only = pieces[i].layers_only;
    while (shoal_words_next_line(&r->words))
      if (r->words.word.length && !read_line(r)) return false;
    if (r->words.status != SHOAL_OK) return false;
  }
  return check_whole(r) && make_names(r);
}

static shoal_status parse(shoal_model **out, const char *name, const piece *pieces, size_t count,
                          shoal_error *err) {
  *out = NULL;
  size_t layers_max = count; /* one a line */
  for (size_t i = 0; i < count; i++) {
    if (pieces[i].length > SHOAL_MODEL_BYTES_MAX)
      return shoal_fail(err, SHOAL_LIMIT, "%s:1:1: the text is longer than %s bytes", name,
                        shoal_human_count(SHOAL_MODEL_BYTES_MAX).text);
    for (size_t k = 0; k < pieces[i].length; k++) layers_max += pieces[i].text[k] == '\n';
  }
  if (layers_max > SHOAL_LAYERS_MAX) layers_max = SHOAL_LAYERS_MAX;

  shoal_status status = SHOAL_OK;
  shoal_model *model = calloc(1, sizeof *model);
  shoal_reading *r = calloc(1, sizeof *r);
  if (model) {
    shoal_arena_init(&model->memory, 16 * SHOAL_MODEL_BYTES_MAX);
    model->layers = shoal_arena_array(&model->memory, layers_max, sizeof *model->layers);
  }
  if (model && model->layers && r) {
    r->model = model;
    shoal_recipe_init(&model->recipe);
    if (read_all(r, name, pieces, count, err)) *out = model;
    status = r->words.status;
  }
  if (!*out) shoal_model_destroy(model);
  free(r);
  if (*out || status != SHOAL_OK) return status;
  return shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory while reading the model", name);
}

shoal_status shoal_model_parse(shoal_model **out, const char *name, const char *text, size_t length,
                               shoal_error *err) {
  const piece whole = {.text = text, .length = length};
  return parse(out, name, &whole, 1, err);
}

shoal_status shoal_model_parse_body(shoal_model **out, const char *name, const char *input, const char *body,
                                    const char *output, shoal_error *err) {
  const piece pieces[] = {{.text = input, .length = strlen(input)},
                          {.text = body, .length = strlen(body), .layers_only = true},
                          {.text = output, .length = strlen(output)}};
  return parse(out, name, pieces, sizeof pieces / sizeof pieces[0], err);
}

shoal_status shoal_model_load(shoal_model **out, const char *path, shoal_error *err) {
  *out = NULL;
  uint8_t *text;
  size_t length;
  shoal_status status = shoal_onnx_refuse(path, err);
  if (status != SHOAL_OK) return status;
  const shoal_magic *magic = shoal_magic_of_file(path);
  if (magic)
    return shoal_fail(err, SHOAL_UNSUPPORTED, "%s: this is %s; Shoal reads texts (.net) and its own models",
                      path, magic->what);
  status = shoal_file_read(path, SHOAL_MODEL_BYTES_MAX, false, &text, &length, err);
  if (status == SHOAL_LIMIT)
    return shoal_fail(err, SHOAL_LIMIT, "%s: the text is longer than %s bytes, and no model is", path,
                      shoal_human_count(SHOAL_MODEL_BYTES_MAX).text);
  if (status != SHOAL_OK) return status;
  status = shoal_model_parse(out, path, (const char *)text, length, err);
  free(text);
  return status;
}

void shoal_model_destroy(shoal_model *model) {
  if (!model) return;
  shoal_arena_release(&model->memory);
  free(model);
}

shoal_status shoal_model_set(shoal_model *model, const char *where, const char *key, const char *value,
                             shoal_error *err) {
  shoal_reading *r = calloc(1, sizeof *r);
  if (!r) return shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", where);
  r->model = model;
  shoal_words *w = &r->words;
  shoal_words_init(w, where, value, strlen(value), err);
  w->is_flag = true;

  const shoal_model before = *model;
  shoal_word word = {.text = key, .length = (uint32_t)strlen(key)};
  int setting = shoal_word_find(word, shoal_setting_words);
  bool is_rate = shoal_word_is(word, "rate");
  /* An empty value has no line: then the word is the end of one, and the reader says so. */
  bool good = shoal_words_next_line(w) || w->status == SHOAL_OK;
  if (good && w->next != w->text_end)
    good = shoal_words_fail(w, w->word, "the value goes over more than one line");
  else if (good && is_rate)
    good = shoal_words_real(w, "the rate", SHOAL_RANGE_ABOVE_ZERO, &model->recipe.rate) && shoal_words_end(w);
  else if (good && setting < 0)
    good = shoal_words_unknown(w, word, "setting", shoal_setting_words);
  else if (good)
    good = shoal_read_setting(r, (shoal_setting)setting);
  model->rate_set |= is_rate;
  good = good && shoal_check_loss(r) && check_round(r);
  if (!good) *model = before;
  shoal_status status = w->status;
  free(r);
  return status;
}

/* ---- writing ------------------------------------------------------------------------ */

static void add_layer(shoal_text *out, const shoal_model *model, uint32_t index) {
  const shoal_layer *layer = &model->layers[index];
  bool alone = layer->op->is_inner; /* a line of an activation begins with its name */
  if (layer->named) shoal_text_addf(out, "%s: ", layer->name);
  shoal_text_addf(out, "%s", alone ? shoal_activation_words[layer->activation] : layer->op->word);
  if (layer->op->arguments != NULL) shoal_write_fields(out, layer->op->arguments, layer);
  if (layer->op->write != NULL) layer->op->write(layer, out);
  if (index == 0 && model->carry) shoal_text_addf(out, " carry");
  for (uint32_t k = 1; k < layer->inputs_count; k++)
    shoal_text_addf(out, " %s", model->layers[layer->inputs[k]].name);
  if ((layer->op->options & SHOAL_TAKES(NO_BIAS)) && !layer->bias) shoal_text_addf(out, " no-bias");
  if (layer->stack > 1) shoal_text_addf(out, " layers %u", layer->stack);
  if (layer->bidirectional) shoal_text_addf(out, " bidirectional");
  if (layer->last) shoal_text_addf(out, " last");
  if (layer->whole_batch) shoal_text_addf(out, " batch");
  if (layer->init != SHOAL_INIT_AUTO) shoal_text_addf(out, " init %s", init_words[layer->init]);
  if (layer->init == SHOAL_INIT_NORMAL || layer->init == SHOAL_INIT_UNIFORM)
    shoal_write_real(out, layer->init_scale);
  if (!alone && layer->activation != SHOAL_ACT_IDENTITY)
    shoal_text_addf(out, " %s", shoal_activation_words[layer->activation]);
  if (index > 0 && layer->inputs[0] != index - 1)
    shoal_text_addf(out, " from %s", model->layers[layer->inputs[0]].name);
  shoal_text_addf(out, "\n");
}

/* The settings with their defaults: a checkpoint must mean the same when a later version has others. What is off, and a
 * rate that nobody gave, is left out. */
void shoal_model_write(const shoal_model *model, shoal_text *out) {
  for (uint32_t i = 0; i < model->layers_count; i++) add_layer(out, model, i);
  shoal_write_settings(&model->recipe, out);
}
