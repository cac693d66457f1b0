/* dropout.c: zeroes values with a rate while training and scales the rest. No parameters.
 *
 * Random numbers are keyed by seed, node, epoch and sample; backward does the same to the gradient, because the keys
 * come out the same. */
#include "nn/lowering.h"
#include "nn/model_internal.h"
#include "nn/onnx.h"
#include "nn/ops/table.h"

static const shoal_field arguments[] = {
    SHOAL_REAL_FIELD(shoal_layer, NULL, "the share to drop", rate, 0, SHARE), {0}};

static uint32_t lower(shoal_lowering *l, uint32_t input) {
  if (l->layer->rate == 0) return input;
  uint32_t node = shoal_lower_node(l, &shoal_op_dropout, input, l->layer->shape);
  l->graph->nodes[node].rate = l->layer->rate;
  return node;
}

static void drop(const shoal_call *c, const float *x, float *y) {
  const uint32_t *keys = shoal_exec_keys(c->exec, c->node);
  uint32_t threshold = (uint32_t)(c->node->rate * 4294967296.0);
  shoal_norm shape = shoal_call_norm(c);
  c->kernels->dropout(&shape, keys, threshold, 1 / (1 - c->node->rate), x, y);
}

static void forward(const shoal_call *c) {
  if (c->exec->plan->training)
    drop(c, c->x, c->y);
  else if (c->x != c->y)
    c->kernels->copy_rows(1, shoal_call_floats(c, c->out), c->x, 0, c->y, 0);
}

static void backward(const shoal_call *c) { drop(c, c->dy, c->dx[0]); }

const shoal_op shoal_op_dropout = {.word = "dropout",
                                   .traits = SHOAL_OP_IN_PLACE | SHOAL_OP_GRADIENT_IN_PLACE | SHOAL_OP_RANDOM,
                                   .arguments = arguments,
                                   .lower = lower,
                                   .forward = forward,
                                   .backward = backward,
                                   .onnx = shoal_onnx_same};
