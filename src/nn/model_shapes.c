/* model_shapes.c: what the shapes of layers have in common; each operation (nn/ops/) says what comes out of it.
 *
 * Sizes are refused before they are used: every product goes through checked arithmetic
 * against SHOAL_VALUES_MAX, for the values of a tensor and for the weights of the net. */
#include <stdio.h>

#include "base/checked.h"
#include "nn/model_internal.h"
#include "nn/op.h"

shoal_shape shoal_vector_of(uint64_t features) {
  return (shoal_shape){SHOAL_VECTOR, 1, (uint32_t)features, 1, 1, 1};
}

shoal_shape shoal_sequence_of(uint32_t steps, uint32_t features) {
  return (shoal_shape){SHOAL_SEQUENCE, steps, features, 1, 1, 1};
}

uint64_t shoal_shape_values(const shoal_shape *shape) {
  return (uint64_t)shape->steps * shape->features * shape->c * shape->h * shape->w;
}

bool shoal_shape_equal(const shoal_shape *a, const shoal_shape *b) {
  return a->kind == b->kind && a->steps == b->steps && a->features == b->features && a->c == b->c &&
         a->h == b->h && a->w == b->w;
}

uint32_t shoal_shape_dims(const shoal_shape *shape, int64_t out[SHOAL_SHAPE_DIMS_MAX]) {
  bool is_image = shape->kind == SHOAL_IMAGE;
  out[0] = is_image ? shape->c : shape->kind == SHOAL_VECTOR ? shape->features : shape->steps;
  out[1] = is_image ? shape->h : shape->features;
  out[2] = shape->w;
  return is_image ? 3 : shape->kind == SHOAL_SEQUENCE ? 2 : 1;
}

const char *shoal_shape_text(const shoal_shape *shape, char out[SHOAL_SHAPE_TEXT_MAX]) {
  static const char *const before[] = {[SHOAL_VECTOR] = "", "", "sequence ", "tokens "};
  int64_t sizes[SHOAL_SHAPE_DIMS_MAX];
  uint32_t count = shoal_shape_dims(shape, sizes);
  int length = snprintf(out, SHOAL_SHAPE_TEXT_MAX, "%s%u", before[shape->kind], (uint32_t)sizes[0]);
  for (uint32_t i = 1; i < count; i++)
    length += snprintf(out + length, SHOAL_SHAPE_TEXT_MAX - (size_t)length, "x%u", (uint32_t)sizes[i]);
  return out;
}

/* ---- limits ------------------------------------------------------------------------- */

uint64_t shoal_product(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  uint64_t all;
  if (!shoal_mul_u64(a, b, &all) || !shoal_mul_u64(all, c, &all) || !shoal_mul_u64(all, d, &all))
    return UINT64_MAX;
  return all;
}

bool shoal_too_many_values(shoal_reading *r, shoal_word at, const char *text) {
  return shoal_words_over_limit(&r->words, at, "%s has more values than the limit of %s", text,
                                shoal_human_count(SHOAL_VALUES_MAX).text);
}

bool shoal_check_values(shoal_reading *r, shoal_word at, const shoal_shape *shape) {
  uint64_t image = shoal_product(shape->c, shape->h, shape->w, 1);
  char text[SHOAL_SHAPE_TEXT_MAX];
  if (shoal_product(image, shape->steps, shape->features, 1) > SHOAL_VALUES_MAX)
    return shoal_too_many_values(r, at, shoal_shape_text(shape, text));
  return true;
}

bool shoal_count_weights(shoal_reading *r, uint64_t more) {
  if (!shoal_add_u64(r->weights, more, &r->weights) || r->weights > SHOAL_VALUES_MAX)
    return shoal_words_over_limit(&r->words, r->words.head,
                                  "with this layer the net has more weights than the limit of %s",
                                  shoal_human_count(SHOAL_VALUES_MAX).text);
  return true;
}

/* ---- what a layer is given ----------------------------------------------------------- */

shoal_phrase shoal_input_text(const shoal_reading *r, uint32_t k) {
  if (k > 0 || r->inputs[0].length) return shoal_word_quote(&r->words, r->inputs[k]);
  return (shoal_phrase){"the line above"};
}

shoal_word shoal_input_place(const shoal_reading *r, uint32_t k) {
  return r->inputs[k].length ? r->inputs[k] : r->words.head;
}

bool shoal_wrong_input(shoal_reading *r, const shoal_shape *in, const char *needed, const char *advice) {
  char shape[SHOAL_SHAPE_TEXT_MAX];
  return shoal_words_fail(&r->words, shoal_input_place(r, 0), "needs %s, but %s gives %s; %s", needed,
                          shoal_input_text(r, 0).text, shoal_shape_text(in, shape), advice);
}

bool shoal_infer_layer(shoal_reading *r, shoal_layer *layer) {
  char text[SHOAL_SHAPE_TEXT_MAX];
  for (uint32_t k = 0; k < layer->inputs_count; k++) {
    const shoal_shape *in = &r->model->layers[layer->inputs[k]].shape;
    if (in->kind == SHOAL_TOKENS && !shoal_op_is(layer->op, SHOAL_OP_TAKES_TOKENS))
      return shoal_words_fail(
          &r->words, shoal_input_place(r, k),
          "%s gives %s, which are numbers of words; put a line like `embed 10000 200` between",
          shoal_input_text(r, k).text, shoal_shape_text(in, text));
  }
  const shoal_shape *in = &r->model->layers[layer->inputs[0]].shape;
  if (layer->op->infer == NULL) layer->shape = *in;
  if (layer->op->infer != NULL && !layer->op->infer(r, layer, in)) return false;
  if (!shoal_check_values(r, r->words.head, &layer->shape)) return false;
  if (layer->activation == SHOAL_ACT_SOFTMAX && layer->shape.kind == SHOAL_IMAGE) {
    shoal_word option = r->options[SHOAL_OPTION_ACTIVATION];
    return shoal_words_fail(&r->words, option.length ? option : r->words.head,
                            "%sneeds a vector or a sequence, found %s; put a line `flatten` before it",
                            option.length ? "softmax " : "", shoal_shape_text(&layer->shape, text));
  }
  return true;
}
