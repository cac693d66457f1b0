/* norm.c: batchnorm and layernorm: gamma times the value less its mean, in deviations, plus beta.
 *
 * batchnorm normalises each channel over the samples of a tile; with `batch`, a round is one shard and one tile
 * (trainer.c), so over all of the round. Parameters: gamma, beta, and the running mean and variance, which move by
 * averaging and not by the optimiser (channels each).
 *
 * layernorm normalises each sample, or each step of a sequence, over its own values. Parameters: gamma and beta (all
 * values of a vector or an image; a sequence's features). */
#include "nn/lowering.h"
#include "nn/model_internal.h"
#include "nn/onnx.h"
#include "nn/ops/table.h"

enum { WORK_OF_VALUE = 8 }; /* about its floating point operations in a pass */

static bool infer(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  layer->shape = *in;
  uint64_t of_channel = layer->op == &shoal_op_batchnorm ? 4 : 2 * (uint64_t)in->h * in->w;
  return shoal_count_weights(r, shoal_shape_channels(in) * of_channel);
}

static uint32_t lower(shoal_lowering *l, uint32_t input) {
  static const char *const roles[] = {"gamma", "beta", "mean", "variance"};
  const shoal_shape *shape = &l->layer->shape;
  bool batch = l->layer->op == &shoal_op_batchnorm;
  uint32_t node = shoal_lower_node(l, l->layer->op, input, *shape);
  uint32_t dims[3] = {shoal_shape_channels(shape), shape->h, shape->w};
  uint32_t dims_count = shape->kind == SHOAL_IMAGE && !batch ? 3 : 1;
  for (uint32_t k = 0; k < (batch ? 4 : 2); k++) {
    shoal_param_kind kind = k < 2 ? SHOAL_PARAM_SCALE : SHOAL_PARAM_STATISTIC;
    shoal_param *param = shoal_lower_param(l, node, k, "", roles[k], kind, dims_count, dims);
    param->spread = k == 0 || k == 3; /* gamma and variance begin with 1 */
  }
  return node;
}

/* Kernels write the input's gradient at any rate; scratch takes it where nobody wants it. */
static size_t scratch(const shoal_node *node, const shoal_kernels *k, uint32_t n, bool backward) {
  (void)k;
  return backward ? shoal_shape_floats(&node->shape, n) : 0;
}

/* ---- batchnorm ---- */

static size_t saved(const shoal_node *node, uint32_t n) {
  (void)n;
  return 2 * (size_t)shoal_shape_channels(&node->shape);
}

/* The statistics of this tile travel in the gradient, weighted by its share of the round; the running variance is the
 * unbiased one. */
static void add_statistics(const shoal_call *c) {
  shoal_norm shape = shoal_call_norm(c);
  double count = (double)c->n * shape.positions * shape.steps;
  float share = (float)((double)c->n / c->exec->round_n);
  float unbiased = count > 1 ? (float)(count / (count - 1)) : 1;
  c->kernels->add_share(shape.channels, share, 1, c->saved, shoal_call_gradient(c, 2));
  c->kernels->add_share(shape.channels, share, unbiased, c->saved + shape.channels,
                        shoal_call_gradient(c, 3));
}

/* Some of an image's channels. Elsewhere a channel is a column of all rows, and no band is cut. */
static void forward_band(const shoal_call *c, size_t first, size_t count) {
  shoal_norm shape = shoal_call_norm(c);
  size_t at = first * shape.positions * shape.lanes;
  shape.channels = (uint32_t)count;
  const float *gamma = shoal_call_weight(c, 0) + first, *beta = shoal_call_weight(c, 1) + first;
  if (c->exec->plan->training) {
    float *mean = c->saved + first, *var = mean + shoal_shape_channels(c->out);
    c->kernels->batchnorm_train(&shape, c->x + at, gamma, beta, SHOAL_NORM_EPS, c->y + at, mean, var);
  } else {
    c->kernels->batchnorm_infer(&shape, c->x + at, gamma, beta, SHOAL_NORM_EPS,
                                shoal_call_weight(c, 2) + first, shoal_call_weight(c, 3) + first, c->y + at);
  }
}

static void backward_band(const shoal_call *c, size_t first, size_t count) {
  shoal_norm shape = shoal_call_norm(c);
  size_t at = first * shape.positions * shape.lanes;
  shape.channels = (uint32_t)count;
  const float *mean = c->saved + first, *var = mean + shoal_shape_channels(c->out);
  float *dx = c->dx[0] != NULL ? c->dx[0] + at : c->scratch;
  c->kernels->batchnorm_backward(&shape, c->x + at, shoal_call_weight(c, 0) + first, SHOAL_NORM_EPS, mean,
                                 var, c->dy + at, dx, shoal_call_gradient(c, 0) + first,
                                 shoal_call_gradient(c, 1) + first);
}

static void run(const shoal_call *c) {
  uint32_t channels = shoal_shape_channels(c->out);
  shoal_call_bands(c, NULL, WORK_OF_VALUE * (double)shoal_call_floats(c, c->out), channels,
                   c->out->kind == SHOAL_IMAGE ? 1 : channels, c->dy == NULL ? forward_band : backward_band);
  if (c->dy == NULL && c->exec->plan->training) add_statistics(c);
}

static const char *onnx(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  bool sequence = node->shape.kind == SHOAL_SEQUENCE; /* its channels come last */
  if (sequence) x = shoal_onnx_transpose(e, x, (int64_t[]){0, 2, 1});
  const char *params[4];
  for (int i = 0; i < 4; i++) params[i] = shoal_onnx_param(e, node->params[i]);
  shoal_onnx_attribute_float(e->file, "epsilon", SHOAL_NORM_EPS);
  x = shoal_onnx_emit(e->file, "BatchNormalization", x, params[0], params[1], params[2], params[3], NULL);
  return sequence ? shoal_onnx_transpose(e, x, (int64_t[]){0, 2, 1}) : x;
}

const shoal_op shoal_op_batchnorm = {.word = "batchnorm",
                                     .options = SHOAL_TAKES(BATCH),
                                     .traits = SHOAL_OP_READS_INPUT | SHOAL_OP_GRADIENT_IN_PLACE |
                                               SHOAL_OP_NORMALISES | SHOAL_OP_WHOLE_SHARD,
                                     .infer = infer,
                                     .lower = lower,
                                     .saved = saved,
                                     .scratch = scratch,
                                     .forward = run,
                                     .backward = run,
                                     .onnx = onnx};

/* ---- layernorm ---- */

/* A mean and a deviation for each row. */
static size_t layernorm_saved(const shoal_node *node, uint32_t n) {
  return 2 * (size_t)n * node->shape.steps;
}

/* Some rows of a vector or a sequence, or a whole image. */
static void layernorm_band(const shoal_call *c, size_t first, size_t count) {
  shoal_norm shape = shoal_call_norm(c);
  float *mean = c->saved + first, *rstd = mean + (size_t)c->n * shape.steps;
  size_t at = first * shape.channels;
  if (shape.lanes == 0) {
    shape.samples = (uint32_t)count;
    shape.steps = 1;
  }
  c->kernels->layernorm_forward(&shape, c->x + at, shoal_call_weight(c, 0), shoal_call_weight(c, 1),
                                SHOAL_NORM_EPS, c->y + at, mean, rstd);
}

static void layernorm_forward(const shoal_call *c) {
  size_t rows = shoal_call_rows(c, c->out);
  shoal_call_bands(c, NULL, WORK_OF_VALUE * (double)shoal_call_floats(c, c->out), rows,
                   c->out->kind == SHOAL_IMAGE ? rows : 1, layernorm_band);
}

static void layernorm_backward(const shoal_call *c) {
  shoal_norm shape = shoal_call_norm(c);
  const float *mean = c->saved, *rstd = c->saved + (size_t)c->n * shape.steps;
  float *dx = c->dx[0] != NULL ? c->dx[0] : c->scratch;
  c->kernels->layernorm_backward(&shape, c->x, shoal_call_weight(c, 0), mean, rstd, c->dy, dx,
                                 shoal_call_gradient(c, 0), shoal_call_gradient(c, 1));
}

static const char *layernorm_onnx(shoal_onnx_export *e, const shoal_node *node, const char *x) {
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
                                     .saved = layernorm_saved,
                                     .scratch = scratch,
                                     .forward = layernorm_forward,
                                     .backward = layernorm_backward,
                                     .onnx = layernorm_onnx};
