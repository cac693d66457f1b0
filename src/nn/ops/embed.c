/* embed.c: embed, a learned row for each word. Parameter: table (vocabulary x width). */
#include "nn/lowering.h"
#include "nn/model_internal.h"
#include "nn/onnx_op.h"
#include "nn/ops/table.h"

static bool read(shoal_reading *r, shoal_layer *layer) {
  return shoal_words_u32(&r->words, "the number of words", 1, INT32_MAX, &layer->vocabulary) &&
         shoal_words_u32(&r->words, "the number of values of a word", 1, INT32_MAX, &layer->units);
}

static void write(const shoal_model *model, const shoal_layer *layer, shoal_text *out) {
  (void)model;
  shoal_text_addf(out, " %u %u", layer->vocabulary, layer->units);
}

static bool infer(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  if (in->kind != SHOAL_TOKENS) return shoal_wrong_input(r, in, "tokens", "only `input tokens N` gives them");
  layer->shape = shoal_sequence_of(in->steps, layer->units);
  return shoal_count_weights(r, shoal_product(layer->vocabulary, layer->units, 1, 1));
}

static uint32_t lower(shoal_lowering *l, uint32_t input) {
  const shoal_layer *layer = l->layer;
  uint32_t node = shoal_lower_node(l, &shoal_op_embed, input, layer->shape);
  shoal_param *table = shoal_lower_param(l, node, 0, "", "table", SHOAL_PARAM_WEIGHT, 2,
                                         (uint32_t[]){layer->vocabulary, layer->units});
  shoal_lower_fill(l, table, layer->units, layer->units, SHOAL_INIT_LECUN);
  return node;
}

static void forward(const shoal_call *c) {
  c->kernels->embed_forward(shoal_call_rows(c, c->out), c->out->features, shoal_call_weight(c, 0),
                            (const int32_t *)(const void *)c->x, c->y);
}

static void backward(const shoal_call *c) {
  c->kernels->embed_backward(shoal_call_rows(c, c->out), c->out->features,
                             (const int32_t *)(const void *)c->x, c->dy, shoal_call_gradient(c, 0));
}

static const char *onnx(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  return shoal_onnx_emit(e->file, "Gather", shoal_onnx_param(e, node->params[0]), x, NULL);
}

const shoal_op shoal_op_embed = {.word = "embed",
                                 .options = SHOAL_TAKES(INIT),
                                 .traits = SHOAL_OP_READS_INPUT | SHOAL_OP_TAKES_TOKENS | SHOAL_OP_HAS_MATRIX,
                                 .read = read,
                                 .write = write,
                                 .infer = infer,
                                 .lower = lower,
                                 .forward = forward,
                                 .backward = backward,
                                 .onnx = onnx};
