/* layernorm.c: normalises each sample, or each step of a sequence, over its own values. Parameters: gamma and beta (all
 * values of a vector or an image; a sequence's features). */
#include "nn/lowering.h"
#include "nn/model_internal.h"
#include "nn/onnx_op.h"
#include "nn/ops/table.h"

static bool infer(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  layer->shape = *in;
  return shoal_count_weights(r, 2 * (in->kind == SHOAL_SEQUENCE ? in->features : shoal_shape_values(in)));
}

static uint32_t lower(shoal_lowering *l, uint32_t input) {
  const shoal_shape *shape = &l->layer->shape;
  bool image = shape->kind == SHOAL_IMAGE;
  uint32_t node = shoal_lower_node(l, &shoal_op_layernorm, input, *shape);
  uint32_t dims[3] = {image ? shape->c : shape->features, shape->h, shape->w}, dims_count = image ? 3 : 1;
  shoal_lower_param(l, node, 0, "", "gamma", SHOAL_PARAM_SCALE, dims_count, dims)->spread = 1;
  shoal_lower_param(l, node, 1, "", "beta", SHOAL_PARAM_SCALE, dims_count, dims);
  return node;
}

/* A mean and a deviation for each row. */
static size_t saved(const shoal_graph *graph, const shoal_node *node, uint32_t n) {
  (void)graph;
  return 2 * (size_t)n * node->shape.steps;
}

static size_t scratch(const shoal_graph *graph, const shoal_kernels *k, const shoal_node *node, uint32_t n,
                      bool backward) {
  (void)graph, (void)k;
  return backward ? shoal_shape_floats(&node->shape, n) : 0;
}

static void forward(const shoal_call *c) {
  shoal_norm shape = shoal_call_norm(c);
  float *mean = c->saved, *rstd = c->saved + (size_t)c->n * shape.steps;
  c->kernels->layernorm_forward(&shape, c->x, shoal_call_weight(c, 0), shoal_call_weight(c, 1),
                                SHOAL_NORM_EPS, c->y, mean, rstd);
}

static void backward(const shoal_call *c) {
  shoal_norm shape = shoal_call_norm(c);
  const float *mean = c->saved, *rstd = c->saved + (size_t)c->n * shape.steps;
  /* The kernel always writes dx; scratch takes it where nobody wants it. */
  float *dx = c->dx[0] != NULL ? c->dx[0] : c->scratch;
  c->kernels->layernorm_backward(&shape, c->x, shoal_call_weight(c, 0), mean, rstd, c->dy, dx,
                                 shoal_call_gradient(c, 0), shoal_call_gradient(c, 1));
}

static const char *onnx(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  const char *gamma = shoal_onnx_param(e, node->params[0]);
  const char *beta = shoal_onnx_param(e, node->params[1]);
  shoal_onnx_attribute_int(e->file, "axis", node->shape.kind == SHOAL_SEQUENCE ? 2 : 1);
  shoal_onnx_attribute_float(e->file, "epsilon", SHOAL_NORM_EPS);
  return shoal_onnx_emit(e->file, "LayerNormalization", x, gamma, beta, NULL);
}

const shoal_op shoal_op_layernorm = {.word = "layernorm",
                                     .traits = SHOAL_OP_READS_INPUT | SHOAL_OP_NORMALISES,
                                     .infer = infer,
                                     .lower = lower,
                                     .saved = saved,
                                     .scratch = scratch,
                                     .forward = forward,
                                     .backward = backward,
                                     .onnx = onnx};
