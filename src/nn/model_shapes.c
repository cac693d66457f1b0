/* model_shapes.c: what shape comes out of a layer, and whether one can.
 *
 * Sizes are refused before they are used: every product goes through checked arithmetic
 * against SHOAL_VALUES_MAX, for the values of a tensor and for the weights of the net. */
#include <stdio.h>

#include "base/checked.h"
#include "nn/model_internal.h"

uint64_t shoal_shape_values(const shoal_shape *shape) {
  return (uint64_t)shape->steps * shape->features * shape->c * shape->h * shape->w;
}

bool shoal_shape_equal(const shoal_shape *a, const shoal_shape *b) {
  return a->kind == b->kind && a->steps == b->steps && a->features == b->features && a->c == b->c &&
         a->h == b->h && a->w == b->w;
}

const char *shoal_shape_text(const shoal_shape *shape, char out[SHOAL_SHAPE_TEXT_MAX]) {
  switch (shape->kind) {
  case SHOAL_VECTOR: snprintf(out, SHOAL_SHAPE_TEXT_MAX, "%u", shape->features); break;
  case SHOAL_IMAGE: snprintf(out, SHOAL_SHAPE_TEXT_MAX, "%ux%ux%u", shape->c, shape->h, shape->w); break;
  case SHOAL_SEQUENCE:
    snprintf(out, SHOAL_SHAPE_TEXT_MAX, "sequence %ux%u", shape->steps, shape->features);
    break;
  case SHOAL_TOKENS: snprintf(out, SHOAL_SHAPE_TEXT_MAX, "tokens %u", shape->steps); break;
  }
  return out;
}

/* ---- limits ------------------------------------------------------------------------- */

/* a * b * c * d, or more than SHOAL_VALUES_MAX where that is too large. */
static uint64_t product(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  uint64_t all;
  if (!shoal_mul_u64(a, b, &all) || !shoal_mul_u64(all, c, &all) || !shoal_mul_u64(all, d, &all))
    return UINT64_MAX;
  return all;
}

static bool too_many_values(shoal_reading *r, shoal_word at, const char *text) {
  char most[SHOAL_GROUPED_MAX];
  return shoal_words_over_limit(&r->words, at, "%s has more values than the limit of %s", text,
                                shoal_grouped(SHOAL_VALUES_MAX, most));
}

bool shoal_check_values(shoal_reading *r, shoal_word at, const shoal_shape *shape) {
  uint64_t image = product(shape->c, shape->h, shape->w, 1);
  char text[SHOAL_SHAPE_TEXT_MAX];
  if (product(image, shape->steps, shape->features, 1) > SHOAL_VALUES_MAX)
    return too_many_values(r, at, shoal_shape_text(shape, text));
  return true;
}

static bool count_weights(shoal_reading *r, uint64_t more) {
  char most[SHOAL_GROUPED_MAX];
  if (!shoal_add_u64(r->weights, more, &r->weights) || r->weights > SHOAL_VALUES_MAX)
    return shoal_words_over_limit(&r->words, r->words.head,
                                  "with this layer the net has more weights than the limit of %s",
                                  shoal_grouped(SHOAL_VALUES_MAX, most));
  return true;
}

/* ---- what a layer is given ----------------------------------------------------------- */

static const shoal_shape *input_shape(const shoal_reading *r, const shoal_layer *layer, uint32_t k) {
  return &r->model->layers[layer->inputs[k]].shape;
}

/* How errors call input k: "'a'", or "the line above". */
static const char *input_text(const shoal_reading *r, uint32_t k, char out[SHOAL_QUOTE_MAX]) {
  if (k > 0 || r->inputs[0].length) return shoal_word_quote(&r->words, r->inputs[k], out);
  return "the line above";
}

/* The place of input k: its name, or else the layer. */
static shoal_word input_place(const shoal_reading *r, uint32_t k) {
  return r->inputs[k].length ? r->inputs[k] : r->words.head;
}

static bool wrong_input(shoal_reading *r, const shoal_shape *in, const char *needed, const char *advice) {
  char name[SHOAL_QUOTE_MAX], shape[SHOAL_SHAPE_TEXT_MAX];
  return shoal_words_fail(&r->words, input_place(r, 0), "needs %s, but %s gives %s; %s", needed,
                          input_text(r, 0, name), shoal_shape_text(in, shape), advice);
}

/* Every layer but embed works on numbers. */
static bool check_not_tokens(shoal_reading *r, const shoal_layer *layer) {
  for (uint32_t k = 0; k < layer->inputs_count; k++) {
    char name[SHOAL_QUOTE_MAX], shape[SHOAL_SHAPE_TEXT_MAX];
    const shoal_shape *in = input_shape(r, layer, k);
    if (in->kind == SHOAL_TOKENS)
      return shoal_words_fail(
          &r->words, input_place(r, k),
          "%s gives %s, which are numbers of words; put a line like `embed 10000 200` between",
          input_text(r, k, name), shoal_shape_text(in, shape));
  }
  return true;
}

/* ---- layers ------------------------------------------------------------------------- */

/* conv and pool: the output's height and width. */
static bool infer_window(shoal_reading *r, const shoal_layer *layer, const shoal_shape *in, uint64_t *out_h,
                         uint64_t *out_w) {
  shoal_words *w = &r->words;
  if (layer->pad_h >= layer->k_h || layer->pad_w >= layer->k_w)
    return shoal_words_fail(
        w, r->options[SHOAL_OPTION_PAD],
        "a padding of %ux%u is not smaller than the window of %ux%u; windows at the border "
        "would see nothing of the image",
        layer->pad_h, layer->pad_w, layer->k_h, layer->k_w);
  uint64_t h = (uint64_t)in->h + 2 * (uint64_t)layer->pad_h,
           width = (uint64_t)in->w + 2 * (uint64_t)layer->pad_w;
  if (layer->k_h > h || layer->k_w > width) {
    /* The usual padding keeps the image's size; an even window may be too large even so. */
    uint32_t pad_h = (layer->k_h - 1) / 2, pad_w = (layer->k_w - 1) / 2;
    bool pad_helps = in->h + 2 * (uint64_t)pad_h >= layer->k_h && in->w + 2 * (uint64_t)pad_w >= layer->k_w;
    char padded[32], advice[80] = "";
    bool is_last = in->c == in->h && (in->w == 1 || in->w == 3); /* the channels, as in Keras */
    snprintf(padded, sizeof padded, layer->pad_h == layer->pad_w ? "%u" : "%ux%u", layer->pad_h,
             layer->pad_w);
    if (is_last)
      snprintf(advice, sizeof advice, "; channels come first: `input %ux%ux%u`", in->w, in->c, in->h);
    else if (pad_helps)
      snprintf(advice, sizeof advice, pad_h == pad_w ? " or add `pad %u`" : " or add `pad %ux%u`", pad_h,
               pad_w);
    return shoal_words_fail(
        w, r->size,
        "a %ux%u window does not fit into an image of %ux%u after padding %s; make the window "
        "smaller%s",
        layer->k_h, layer->k_w, in->h, in->w, padded, advice);
  }
  *out_h = (h - layer->k_h) / layer->stride_h + 1;
  *out_w = (width - layer->k_w) / layer->stride_w + 1;
  return true;
}

static bool infer_image_layer(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  if (in->kind != SHOAL_IMAGE)
    return wrong_input(r, in, "an image", "an earlier line like `reshape 1x28x28` can make one");
  if (layer->op == SHOAL_LAYER_GLOBAL_POOL) {
    layer->shape = (shoal_shape){SHOAL_VECTOR, 1, in->c, 1, 1, 1};
    return true;
  }
  uint64_t h = 0, w = 0;
  if (!infer_window(r, layer, in, &h, &w)) return false;
  /* The padding is below the window and the window within the padded image, so neither
   * can pass three times the largest size that was read; past 32 bits it is refused here. */
  uint32_t channels = layer->op == SHOAL_LAYER_CONV ? layer->units : in->c;
  if (product(channels, h, w, 1) > SHOAL_VALUES_MAX) return too_many_values(r, r->size, "its output");
  layer->shape = (shoal_shape){SHOAL_IMAGE, 1, 1, channels, (uint32_t)h, (uint32_t)w};
  if (layer->op == SHOAL_LAYER_POOL) return true;
  return count_weights(r, product(layer->units, in->c, layer->k_h, layer->k_w)) &&
         count_weights(r, layer->bias ? layer->units : 0);
}

static bool infer_dense(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  uint64_t inputs = in->kind == SHOAL_SEQUENCE ? in->features : shoal_shape_values(in);
  layer->shape = (shoal_shape){SHOAL_VECTOR, 1, layer->units, 1, 1, 1};
  if (in->kind == SHOAL_SEQUENCE) {
    layer->shape.kind = SHOAL_SEQUENCE;
    layer->shape.steps = in->steps;
  }
  return count_weights(r, product(inputs, layer->units, 1, 1)) &&
         count_weights(r, layer->bias ? layer->units : 0);
}

static bool infer_reshape(shoal_reading *r, const shoal_layer *layer, const shoal_shape *in) {
  if (shoal_shape_values(&layer->shape) == shoal_shape_values(in)) return true;
  char to[SHOAL_SHAPE_TEXT_MAX], from[SHOAL_SHAPE_TEXT_MAX];
  char to_values[SHOAL_GROUPED_MAX], from_values[SHOAL_GROUPED_MAX], name[SHOAL_QUOTE_MAX];
  return shoal_words_fail(&r->words, r->size, "%s has %s values, but %s gives %s with %s; they must be equal",
                          shoal_shape_text(&layer->shape, to),
                          shoal_grouped(shoal_shape_values(&layer->shape), to_values), input_text(r, 0, name),
                          shoal_shape_text(in, from), shoal_grouped(shoal_shape_values(in), from_values));
}

static bool infer_embed(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  if (in->kind != SHOAL_TOKENS) return wrong_input(r, in, "tokens", "only `input tokens N` gives them");
  layer->shape = (shoal_shape){SHOAL_SEQUENCE, in->steps, layer->units, 1, 1, 1};
  return count_weights(r, product(layer->vocabulary, layer->units, 1, 1));
}

/* The numbers have no gradient, so nothing that learns may stand before them. */
static bool infer_lookup(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  shoal_words *w = &r->words;
  char name[SHOAL_QUOTE_MAX];
  if (layer->inputs[0] != 0)
    return shoal_words_fail(w, input_place(r, 0),
                            "reads numbers of rows from the data itself, not from %s; put it directly below "
                            "the input on line %u",
                            input_text(r, 0, name), r->model->layers[0].line);
  if (in->kind != SHOAL_VECTOR) return wrong_input(r, in, "a vector", "a line like `input 22` gives one");
  if (layer->columns > in->features)
    return shoal_words_fail(w, r->size, "the input has %u values, so not %u of them can be numbers of rows",
                            in->features, layer->columns);
  uint64_t outputs = in->features - layer->columns + (uint64_t)layer->columns * layer->units;
  if (outputs > SHOAL_VALUES_MAX) return too_many_values(r, w->head, "its output");
  layer->shape = (shoal_shape){SHOAL_VECTOR, 1, (uint32_t)outputs, 1, 1, 1};
  return count_weights(r, product(layer->vocabulary, layer->units, 1, 1));
}

static bool infer_recurrent(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  shoal_words *w = &r->words;
  if (in->kind != SHOAL_SEQUENCE)
    return wrong_input(r, in, "a sequence", "`repeat T` or `reshape sequence TxF` can make one");
  if (layer->bidirectional && r->model->carry)
    return shoal_words_fail(
        w, r->options[SHOAL_OPTION_BIDIRECTIONAL],
        "a net that carries its state cannot read backwards; leave out `bidirectional` here "
        "or `carry` on line %u",
        r->model->layers[0].line);
  if (layer->op == SHOAL_LAYER_RNN && layer->activation != SHOAL_ACT_TANH &&
      layer->activation != SHOAL_ACT_RELU)
    return shoal_words_fail(w, r->options[SHOAL_OPTION_ACTIVATION],
                            "its activation is tanh or relu; put '%s' on a line of its own",
                            shoal_activation_name(layer->activation));

  uint64_t directions = layer->bidirectional ? 2 : 1, width = layer->units;
  uint64_t outputs = width * directions;
  if (outputs > SHOAL_VALUES_MAX) return too_many_values(r, w->head, "its output");
  layer->shape = (shoal_shape){SHOAL_SEQUENCE, in->steps, (uint32_t)outputs, 1, 1, 1};
  if (layer->last) {
    layer->shape.kind = SHOAL_VECTOR;
    layer->shape.steps = 1;
  }
  /* Weights from the input and from the step before, and biases: gru has two of those. */
  uint64_t gates = layer->op == SHOAL_LAYER_LSTM ? 4 : layer->op == SHOAL_LAYER_GRU ? 3 : 1;
  uint64_t biases = layer->op == SHOAL_LAYER_GRU ? 2 : 1;
  uint64_t inputs = in->features;
  for (uint32_t i = 0; i < layer->stack; i++) {
    if (!count_weights(r, product(directions, gates, width, inputs + width + biases))) return false;
    inputs = outputs;
  }
  return true;
}

static bool infer_repeat(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  if (in->kind != SHOAL_VECTOR)
    return wrong_input(r, in, "a vector", "`flatten`, `dense` or `last` on a recurrent line can make one");
  layer->shape = (shoal_shape){SHOAL_SEQUENCE, layer->units, in->features, 1, 1, 1};
  return true;
}

static bool infer_norm(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  layer->shape = *in;
  if (layer->op == SHOAL_LAYER_BATCHNORM)
    return count_weights(r, 4 * (uint64_t)(in->kind == SHOAL_IMAGE ? in->c : in->features));
  return count_weights(r, 2 * (in->kind == SHOAL_SEQUENCE ? in->features : shoal_shape_values(in)));
}

/* add and concat: the inputs are different lines whose shapes fit. */
static bool infer_join(shoal_reading *r, shoal_layer *layer) {
  shoal_words *w = &r->words;
  const shoal_shape *first = input_shape(r, layer, 0);
  char name[SHOAL_QUOTE_MAX], first_name[SHOAL_QUOTE_MAX];
  char shape[SHOAL_SHAPE_TEXT_MAX], first_shape[SHOAL_SHAPE_TEXT_MAX];
  bool add = layer->op == SHOAL_LAYER_ADD;
  uint64_t sum = 0; /* of channels or features */
  for (uint32_t k = 0; k < layer->inputs_count; k++) {
    const shoal_shape *in = input_shape(r, layer, k);
    for (uint32_t j = 0; j < k; j++) {
      if (layer->inputs[j] == layer->inputs[k])
        return shoal_words_fail(w, r->inputs[k], "%s is already one of the inputs", input_text(r, k, name));
    }
    shoal_shape same = *first;
    if (!add && in->kind == SHOAL_IMAGE)
      same.c = in->c;
    else if (!add)
      same.features = in->features;
    if (!shoal_shape_equal(&same, in))
      return shoal_words_fail(w, r->inputs[k], "%s has the shape %s, %s %s; they must be equal%s",
                              input_text(r, k, name), shoal_shape_text(in, shape),
                              input_text(r, 0, first_name), shoal_shape_text(first, first_shape),
                              add ? "" : " but for channels or features");
    sum += in->kind == SHOAL_IMAGE ? in->c : in->features;
  }
  layer->shape = *first;
  if (add) return true;
  if (sum > SHOAL_VALUES_MAX) return too_many_values(r, w->head, "its output");
  *(first->kind == SHOAL_IMAGE ? &layer->shape.c : &layer->shape.features) = (uint32_t)sum;
  return true;
}

static bool infer(shoal_reading *r, shoal_layer *layer) {
  const shoal_shape *in = input_shape(r, layer, 0);
  switch (layer->op) {
  case SHOAL_LAYER_INPUT: return true;
  case SHOAL_LAYER_DENSE: return infer_dense(r, layer, in);
  case SHOAL_LAYER_CONV:
  case SHOAL_LAYER_POOL:
  case SHOAL_LAYER_GLOBAL_POOL: return infer_image_layer(r, layer, in);
  case SHOAL_LAYER_FLATTEN:
    layer->shape = (shoal_shape){SHOAL_VECTOR, 1, (uint32_t)shoal_shape_values(in), 1, 1, 1};
    return true;
  case SHOAL_LAYER_RESHAPE: return infer_reshape(r, layer, in);
  case SHOAL_LAYER_EMBED: return infer_embed(r, layer, in);
  case SHOAL_LAYER_LOOKUP: return infer_lookup(r, layer, in);
  case SHOAL_LAYER_RNN:
  case SHOAL_LAYER_LSTM:
  case SHOAL_LAYER_GRU: return infer_recurrent(r, layer, in);
  case SHOAL_LAYER_REPEAT: return infer_repeat(r, layer, in);
  case SHOAL_LAYER_BATCHNORM:
  case SHOAL_LAYER_LAYERNORM: return infer_norm(r, layer, in);
  case SHOAL_LAYER_ADD:
  case SHOAL_LAYER_CONCAT: return infer_join(r, layer);
  case SHOAL_LAYER_DROPOUT:
  case SHOAL_LAYER_ACTIVATION: layer->shape = *in; return true;
  }
  return false;
}

bool shoal_infer_layer(shoal_reading *r, shoal_layer *layer) {
  if (layer->op != SHOAL_LAYER_EMBED && !check_not_tokens(r, layer)) return false;
  if (!infer(r, layer) || !shoal_check_values(r, r->words.head, &layer->shape)) return false;
  if (layer->activation == SHOAL_ACT_SOFTMAX && layer->shape.kind == SHOAL_IMAGE) {
    shoal_word option = r->options[SHOAL_OPTION_ACTIVATION];
    char shape[SHOAL_SHAPE_TEXT_MAX];
    return shoal_words_fail(&r->words, option.length ? option : r->words.head,
                            "softmax needs a vector or a sequence, found %s; put a line `flatten` before it",
                            shoal_shape_text(&layer->shape, shape));
  }
  return true;
}
