/* flatten.c: flatten and reshape: the same values in another layout. No parameters.
 *
 * The node of flatten makes a vector of anything, that of reshape anything of a vector; a line `reshape` is both. */
#include "nn/lowering.h"
#include "nn/model_internal.h"
#include "nn/onnx.h"
#include "nn/ops/table.h"

/* ---- the lines ---- */

static bool infer(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  (void)r;
  layer->shape = shoal_vector_of(shoal_shape_values(in));
  return true;
}

uint32_t shoal_lower_flatten(shoal_lowering *l, uint32_t input) {
  const shoal_shape *shape = &l->graph->nodes[input].shape;
  if (shape->kind == SHOAL_VECTOR) return input;
  return shoal_lower_node(l, &shoal_op_flatten, input, shoal_vector_of(shoal_shape_values(shape)));
}

static bool infer_reshape(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  if (shoal_shape_values(&layer->shape) == shoal_shape_values(in)) return true;
  char to[SHOAL_SHAPE_TEXT_MAX], from[SHOAL_SHAPE_TEXT_MAX];
  return shoal_words_fail(&r->words, r->size, "%s has %s values, but %s gives %s with %s; they must be equal",
                          shoal_shape_text(&layer->shape, to),
                          shoal_human_count(shoal_shape_values(&layer->shape)).text,
                          shoal_input_text(r, 0).text, shoal_shape_text(in, from),
                          shoal_human_count(shoal_shape_values(in)).text);
}

static uint32_t lower_reshape(shoal_lowering *l, uint32_t input) {
  input = shoal_lower_flatten(l, input);
  if (l->layer->shape.kind == SHOAL_VECTOR) return input;
  return shoal_lower_node(l, &shoal_op_reshape, input, l->layer->shape);
}

/* ---- the nodes ---- */

/* To a vector from this shape, or from a vector to it. */
static void turn(const shoal_call *c, const shoal_shape *shape, bool to_vector, const float *x, float *y) {
  const shoal_kernels *k = c->kernels;
  if (shape->kind == SHOAL_IMAGE)
    (to_vector ? k->lanes_to_rows : k->rows_to_lanes)((uint32_t)shoal_shape_values(shape), c->lanes, c->n, x,
                                                      y);
  else
    k->swap_rows(to_vector ? shape->steps : c->n, to_vector ? c->n : shape->steps, shape->features, x, y);
}

static void forward(const shoal_call *c) { turn(c, c->in, true, c->x, c->y); }
static void backward(const shoal_call *c) { turn(c, c->in, false, c->dy, c->dx[0]); }
static void forward_reshape(const shoal_call *c) { turn(c, c->out, false, c->x, c->y); }
static void backward_reshape(const shoal_call *c) { turn(c, c->out, true, c->dy, c->dx[0]); }

static const char *onnx(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  (void)node;
  return shoal_onnx_emit(e->file, "Flatten", x, NULL);
}

/* In a target shape 0 stands for the batch, which stays as it is. */
static const char *onnx_reshape(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  int64_t sizes[1 + SHOAL_SHAPE_DIMS_MAX] = {0};
  uint32_t count = 1 + shoal_shape_dims(&node->shape, sizes + 1);
  return shoal_onnx_emit(e->file, "Reshape", x, shoal_onnx_ints(e->file, count, sizes), NULL);
}

const shoal_op shoal_op_flatten = {.word = "flatten",
                                   .traits = SHOAL_OP_MIXES_STEPS,
                                   .infer = infer,
                                   .lower = shoal_lower_flatten,
                                   .forward = forward,
                                   .backward = backward,
                                   .onnx = onnx};

const shoal_op shoal_op_reshape = {.word = "reshape",
                                   .traits = SHOAL_OP_MIXES_STEPS,
                                   .read = shoal_read_shape,
                                   .write = shoal_write_shape,
                                   .infer = infer_reshape,
                                   .lower = lower_reshape,
                                   .forward = forward_reshape,
                                   .backward = backward_reshape,
                                   .onnx = onnx_reshape};
