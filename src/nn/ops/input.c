/* input.c: the data itself. Its line is the first of every text; the source of samples fills its node. */
#include "nn/model_internal.h"
#include "nn/onnx.h"
#include "nn/ops/table.h"

static bool read(shoal_reading *r, shoal_layer *layer) {
  shoal_words *w = &r->words;
  if (shoal_words_accept(w, "tokens")) {
    layer->shape = (shoal_shape){SHOAL_TOKENS, 1, 1, 1, 1, 1};
    if (!shoal_words_u32(w, "the number of tokens in a sample", 1, INT32_MAX, &layer->shape.steps))
      return false;
    r->model->carry = shoal_words_accept(w, "carry");
    return true;
  }
  if (!shoal_read_shape(r, layer)) return false;
  if (shoal_word_is(w->word, "carry"))
    return shoal_words_fail(w, w->word,
                            "only a text can continue from batch to batch: carry needs `input tokens N`");
  return true;
}

static void forward(const shoal_call *call) { (void)call; }

const shoal_op shoal_op_input = {.word = "input",
                                 .traits = SHOAL_OP_INPUT,
                                 .read = read,
                                 .write = shoal_write_shape,
                                 .forward = forward,
                                 .onnx = shoal_onnx_same};
