/* batchnorm.c: normalises each channel over the samples of a tile. Parameters: gamma, beta, and the running mean and
 * variance, which move by averaging and not by the optimiser (channels each). */
#include "nn/lowering.h"
#include "nn/model_internal.h"
#include "nn/onnx_op.h"
#include "nn/ops/table.h"

static uint32_t channels_of(const shoal_shape *shape) {
  return shape->kind == SHOAL_IMAGE ? shape->c : shape->features;
}

static bool infer(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  layer->shape = *in;
  return shoal_count_weights(r, 4 * (uint64_t)channels_of(in));
}

static uint32_t lower(shoal_lowering *l, uint32_t input) {
  uint32_t node = shoal_lower_node(l, &shoal_op_batchnorm, input, l->layer->shape);
  uint32_t channels = channels_of(&l->layer->shape);
  shoal_lower_param(l, node, 0, "", "gamma", SHOAL_PARAM_SCALE, 1, &channels)->spread = 1;
  shoal_lower_param(l, node, 1, "", "beta", SHOAL_PARAM_SCALE, 1, &channels);
  shoal_lower_param(l, node, 2, "", "mean", SHOAL_PARAM_STATISTIC, 1, &channels);
  shoal_lower_param(l, node, 3, "", "variance", SHOAL_PARAM_STATISTIC, 1, &channels)->spread = 1;
  return node;
}

static size_t saved(const shoal_graph *graph, const shoal_node *node, uint32_t n) {
  (void)graph, (void)n;
  return 2 * (size_t)channels_of(&node->shape);
}

static size_t scratch(const shoal_graph *graph, const shoal_kernels *k, const shoal_node *node, uint32_t n,
                      bool backward) {
  (void)graph, (void)k;
  return backward ? shoal_shape_floats(&node->shape, n) : 0;
}

/* The statistics of this tile travel in the gradient, weighted by its share of the round; the running variance is the
 * unbiased one. */
static void add_statistics(const shoal_call *c, const shoal_norm *shape, const float *mean,
                           const float *var) {
  double count = (double)c->n * shape->positions * shape->steps;
  float share = (float)((double)c->n / c->exec->round_n);
  float unbiased = count > 1 ? (float)(count / (count - 1)) : 1;
  c->kernels->add_share(shape->channels, share, 1, mean, shoal_call_gradient(c, 2));
  c->kernels->add_share(shape->channels, share, unbiased, var, shoal_call_gradient(c, 3));
}

static void forward(const shoal_call *c) {
  shoal_norm shape = shoal_call_norm(c);
  const float *gamma = shoal_call_weight(c, 0), *beta = shoal_call_weight(c, 1);
  if (!c->exec->plan->training) {
    c->kernels->batchnorm_infer(&shape, c->x, gamma, beta, SHOAL_NORM_EPS, shoal_call_weight(c, 2),
                                shoal_call_weight(c, 3), c->y);
    return;
  }
  float *mean = c->saved, *var = c->saved + shape.channels;
  c->kernels->batchnorm_train(&shape, c->x, gamma, beta, SHOAL_NORM_EPS, c->y, mean, var);
  add_statistics(c, &shape, mean, var);
}

static void backward(const shoal_call *c) {
  shoal_norm shape = shoal_call_norm(c);
  /* The kernel always writes dx; scratch takes it where nobody wants it. */
  float *dx = c->dx[0] != NULL ? c->dx[0] : c->scratch;
  c->kernels->batchnorm_backward(&shape, c->x, shoal_call_weight(c, 0), SHOAL_NORM_EPS, c->saved,
                                 c->saved + shape.channels, c->dy, dx, shoal_call_gradient(c, 0),
                                 shoal_call_gradient(c, 1));
}

static const char *onnx(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  bool sequence = node->shape.kind == SHOAL_SEQUENCE; /* its channels come last */
  if (sequence) x = shoal_onnx_transpose(e, x, 3, (int64_t[]){0, 2, 1});
  const char *params[4];
  for (int i = 0; i < 4; i++) params[i] = shoal_onnx_param(e, node->params[i]);
  shoal_onnx_attribute_float(e->file, "epsilon", SHOAL_NORM_EPS);
  x = shoal_onnx_emit(e->file, "BatchNormalization", x, params[0], params[1], params[2], params[3], NULL);
  return sequence ? shoal_onnx_transpose(e, x, 3, (int64_t[]){0, 2, 1}) : x;
}

const shoal_op shoal_op_batchnorm = {.word = "batchnorm",
                                     .traits = SHOAL_OP_READS_INPUT | SHOAL_OP_GRADIENT_IN_PLACE |
                                               SHOAL_OP_NORMALISES | SHOAL_OP_WHOLE_SHARD,
                                     .infer = infer,
                                     .lower = lower,
                                     .saved = saved,
                                     .scratch = scratch,
                                     .forward = forward,
                                     .backward = backward,
                                     .onnx = onnx};
