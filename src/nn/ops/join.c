/* join.c: add and concat: several lines become one. No parameters. */
#include "nn/lowering.h"
#include "nn/model_internal.h"
#include "nn/onnx.h"
#include "nn/ops/table.h"

/* ---- the lines ---- */

/* The inputs are different lines whose shapes fit. */
static bool infer(shoal_reading *r, shoal_layer *layer, const shoal_shape *first) {
  shoal_words *w = &r->words;
  char shape[SHOAL_SHAPE_TEXT_MAX], first_shape[SHOAL_SHAPE_TEXT_MAX];
  bool add = layer->op == &shoal_op_add;
  uint64_t sum = 0; /* of channels or features */
  for (uint32_t k = 0; k < layer->inputs_count; k++) {
    shoal_shape in = r->model->layers[layer->inputs[k]].shape, same = *first;
    for (uint32_t j = 0; j < k; j++) {
      if (layer->inputs[j] == layer->inputs[k])
        return shoal_words_fail(w, r->inputs[k], "%s is already one of the inputs",
                                shoal_input_text(r, k).text);
    }
    if (!add && in.kind == first->kind) {
      same.c = in.c;
      same.features = in.features;
    }
    if (!shoal_shape_equal(&same, &in))
      return shoal_words_fail(w, r->inputs[k], "%s has the shape %s, %s %s; they must be equal%s",
                              shoal_input_text(r, k).text, shoal_shape_text(&in, shape),
                              shoal_input_text(r, 0).text, shoal_shape_text(first, first_shape),
                              add ? "" : " but for channels or features");
    sum += shoal_shape_channels(&in);
  }
  layer->shape = *first;
  if (add) return true;
  if (sum > SHOAL_VALUES_MAX) return shoal_too_many_values(r, w->head, "its output");
  *(first->kind == SHOAL_IMAGE ? &layer->shape.c : &layer->shape.features) = (uint32_t)sum;
  return true;
}

/* concat takes all inputs at once; add takes two, so that more of them become a chain. */
static uint32_t lower(shoal_lowering *l, uint32_t input) {
  const shoal_layer *layer = l->layer;
  for (uint32_t i = 1; i < layer->inputs_count; i++) {
    if (i == 1 || layer->op == &shoal_op_add) input = shoal_lower_node(l, layer->op, input, layer->shape);
    shoal_lower_input(l, input, l->output_of[layer->inputs[i]]);
  }
  return input;
}

/* ---- add ---- */

static void forward_add(const shoal_call *c) {
  shoal_call_add(c, shoal_call_floats(c, c->out), c->x, shoal_call_input(c, 1), c->y);
}

static const char *onnx_add(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  return shoal_onnx_emit(e->file, "Add", x, e->outputs[node->inputs[1]], NULL);
}

const shoal_op shoal_op_add = {.word = "add",
                               .traits = SHOAL_OP_JOINS | SHOAL_OP_PASSES_GRADIENT,
                               .infer = infer,
                               .lower = lower,
                               .forward = forward_add,
                               .onnx = onnx_add};

/* ---- concat ---- */

/* Copies some rows of each input to its part of the whole or, backward, that part of the gradient to the input's. An
 * image's channels are outermost, so it is a single row. */
static void concat_band(const shoal_call *c, size_t first, size_t rows) {
  const shoal_node *nodes = c->exec->plan->graph->nodes;
  size_t unit = c->out->kind == SHOAL_IMAGE ? (size_t)c->out->h * c->out->w * c->lanes : 1;
  size_t whole = shoal_shape_channels(c->out) * unit, at = first * whole;
  for (uint32_t k = 0; k < c->node->inputs_count; k++) {
    size_t run = shoal_shape_channels(&nodes[c->node->inputs[k]].shape) * unit;
    if (c->dy == NULL)
      c->kernels->copy_rows(rows, run, shoal_call_input(c, k) + first * run, run, c->y + at, whole);
    else if (c->dx[k] != NULL)
      c->kernels->copy_rows(rows, run, c->dy + at, whole, c->dx[k] + first * run, run);
    at += run;
  }
}

static void run_concat(const shoal_call *c) {
  size_t rows = c->out->kind == SHOAL_IMAGE ? 1 : shoal_call_rows(c, c->out);
  shoal_call_bands(c, NULL, (double)shoal_call_floats(c, c->out), rows, 1, concat_band);
}

static const char *onnx_concat(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  (void)x;
  const char *inputs[SHOAL_LAYER_INPUTS_MAX];
  for (uint32_t i = 0; i < node->inputs_count; i++) inputs[i] = e->outputs[node->inputs[i]];
  return shoal_onnx_concat(e->file, node->inputs_count, inputs, node->shape.kind == SHOAL_SEQUENCE ? 2 : 1);
}

const shoal_op shoal_op_concat = {.word = "concat",
                                  .traits = SHOAL_OP_JOINS,
                                  .infer = infer,
                                  .lower = lower,
                                  .forward = run_concat,
                                  .backward = run_concat,
                                  .onnx = onnx_concat};
