/* steps.c: between vectors and sequences: `last` takes one step of a sequence, repeat makes a sequence of equal steps.
 * No parameters. */
#include "nn/model_internal.h"
#include "nn/onnx.h"
#include "nn/ops/table.h"

/* ---- one step ---- */

static void step_forward(const shoal_call *c) {
  size_t step = (size_t)c->n * c->out->features;
  c->kernels->copy_rows(1, step, c->x + c->node->step * step, 0, c->y, 0);
}

static void step_backward(const shoal_call *c) {
  size_t step = (size_t)c->n * c->out->features;
  c->kernels->zero(shoal_call_floats(c, c->in), c->dx[0]);
  c->kernels->copy_rows(1, step, c->dy, 0, c->dx[0] + c->node->step * step, 0);
}

static const char *step_onnx(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  const char *index = shoal_onnx_ints(e->file, 0, (int64_t[]){node->step});
  shoal_onnx_attribute_int(e->file, "axis", 1);
  return shoal_onnx_emit(e->file, "Gather", x, index, NULL);
}

const shoal_op shoal_op_step = {
    .word = "last", .is_inner = true, .forward = step_forward, .backward = step_backward, .onnx = step_onnx};

/* ---- repeat ---- */

static bool repeat_infer(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  if (in->kind != SHOAL_VECTOR)
    return shoal_wrong_input(r, in, "a vector",
                             "`flatten`, `dense` or `last` on a recurrent line can make one");
  layer->shape = shoal_sequence_of(layer->units, in->features);
  return true;
}

static void repeat_forward(const shoal_call *c) {
  size_t step = (size_t)c->n * c->out->features;
  c->kernels->copy_rows(c->out->steps, step, c->x, 0, c->y, step);
}

static void repeat_backward(const shoal_call *c) {
  size_t step = (size_t)c->n * c->out->features;
  c->kernels->copy_rows(1, step, c->dy, 0, c->dx[0], 0);
  for (uint32_t t = 1; t < c->out->steps; t++) c->kernels->add(step, c->dx[0], c->dy + t * step, c->dx[0]);
}

static const char *repeat_onnx(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  x = shoal_onnx_emit(e->file, "Unsqueeze", x, shoal_onnx_ints(e->file, 1, (int64_t[]){1}), NULL);
  return shoal_onnx_emit(e->file, "Expand", x,
                         shoal_onnx_ints(e->file, 3, (int64_t[]){1, node->shape.steps, 1}), NULL);
}

const shoal_op shoal_op_repeat = {
    .word = "repeat",
    .arguments = (const shoal_field[]){SHOAL_COUNT_FIELD("the number of steps", units), {0}},
    .infer = repeat_infer,
    .forward = repeat_forward,
    .backward = repeat_backward,
    .onnx = repeat_onnx};
