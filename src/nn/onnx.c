/* onnx.c: the graph's nodes as ONNX operators; see onnx.h.
 *
 * Weights are not copied but noted, and only the recurrent ones, whose gates ONNX orders otherwise, are
 * laid out anew. Values in the file are batch x features, batch x c x h x w, or batch x steps x features,
 * and are called "<layer>:<number>". */
#include "nn/onnx.h"

#include <string.h>

#include "base/assert.h"

typedef struct exporter {
  shoal_onnx_file *file;
  const shoal_graph *graph;
  const float *weights;
  const char *prefix, *input;
  const char **outputs; /* value of every node of the graph */
} exporter;

static const char *add_tensor(exporter *e, const shoal_param *param, size_t dims_count, const int64_t *dims,
                              const float *data) {
  const char *name = shoal_onnx_join(e->file, e->prefix, param->name);
  return shoal_onnx_constant(e->file, name, SHOAL_ONNX_FLOAT, dims_count, dims, data);
}

/* A parameter as it is. */
static const char *add_param(exporter *e, uint32_t index) {
  const shoal_param *param = &e->graph->params[index];
  int64_t dims[4];
  for (uint32_t i = 0; i < param->dims_count; i++) dims[i] = param->dims[i];
  return add_tensor(e, param, param->dims_count, dims, e->weights + param->offset);
}

/* ---- operators ---------------------------------------------------------------------- */

static const char *transpose(exporter *e, const char *x, size_t axes_count, const int64_t *axes) {
  shoal_onnx_attribute_ints(e->file, "perm", axes_count, axes);
  return shoal_onnx_emit(e->file, "Transpose", x, NULL);
}

static const char *dense(exporter *e, const shoal_node *node, const char *x) {
  const char *y = shoal_onnx_emit(e->file, "MatMul", x, add_param(e, node->params[0]), NULL);
  if (node->params[1] == SHOAL_NO_PARAM) return y;
  return shoal_onnx_emit(e->file, "Add", y, add_param(e, node->params[1]), NULL);
}

static void attribute_window(exporter *e, const shoal_window *w) {
  shoal_onnx_attribute_ints(e->file, "kernel_shape", 2, (int64_t[]){w->k_h, w->k_w});
  shoal_onnx_attribute_ints(e->file, "strides", 2, (int64_t[]){w->stride_h, w->stride_w});
  shoal_onnx_attribute_ints(e->file, "pads", 4, (int64_t[]){w->pad_h, w->pad_w, w->pad_h, w->pad_w});
}

static const char *conv(exporter *e, const shoal_node *node, const char *x) {
  const char *weight = add_param(e, node->params[0]);
  const char *bias = node->params[1] == SHOAL_NO_PARAM ? NULL : add_param(e, node->params[1]);
  attribute_window(e, &node->window);
  return shoal_onnx_emit(e->file, "Conv", x, weight, bias, NULL);
}

static const char *pool(exporter *e, const shoal_node *node, const char *x) {
  if (node->pool == SHOAL_POOL_AVERAGE) {
    attribute_window(e, &node->window);
    shoal_onnx_attribute_int(e->file, "count_include_pad", 0);
    return shoal_onnx_emit(e->file, "AveragePool", x, NULL);
  }
  if (node->pool == SHOAL_POOL_MIN) x = shoal_onnx_emit(e->file, "Neg", x, NULL);
  attribute_window(e, &node->window);
  x = shoal_onnx_emit(e->file, "MaxPool", x, NULL);
  return node->pool == SHOAL_POOL_MIN ? shoal_onnx_emit(e->file, "Neg", x, NULL) : x;
}

/* In a target shape 0 stands for the batch, which stays as it is. */
static const char *unflatten(exporter *e, const shoal_node *node, const char *x) {
  const shoal_shape *shape = &node->shape;
  if (shape->kind == SHOAL_IMAGE)
    return shoal_onnx_emit(e->file, "Reshape", x,
                           shoal_onnx_ints(e->file, 4, (int64_t[]){0, shape->c, shape->h, shape->w}), NULL);
  return shoal_onnx_emit(e->file, "Reshape", x,
                         shoal_onnx_ints(e->file, 3, (int64_t[]){0, shape->steps, shape->features}), NULL);
}

/* The values at first .. first + count of every sample. */
static const char *slice(exporter *e, const char *x, int64_t first, int64_t count) {
  const char *start = shoal_onnx_ints(e->file, 1, &first),
             *end = shoal_onnx_ints(e->file, 1, (int64_t[]){first + count});
  return shoal_onnx_emit(e->file, "Slice", x, start, end, shoal_onnx_ints(e->file, 1, (int64_t[]){1}), NULL);
}

/* What is no whole number from 0 to below rows becomes 0, as in lookup_forward of exec.c. */
static const char *row_numbers(exporter *e, const char *x, uint32_t rows) {
  const char *zero = shoal_onnx_real(e->file, 0);
  const char *whole = shoal_onnx_emit(e->file, "Equal", x, shoal_onnx_emit(e->file, "Floor", x, NULL), NULL);
  const char *low = shoal_onnx_emit(e->file, "GreaterOrEqual", x, zero, NULL);
  const char *high = shoal_onnx_emit(e->file, "Less", x, shoal_onnx_real(e->file, (float)rows), NULL);
  const char *good =
      shoal_onnx_emit(e->file, "And", whole, shoal_onnx_emit(e->file, "And", low, high, NULL), NULL);
  x = shoal_onnx_emit(e->file, "Where", good, x, zero, NULL);
  return shoal_onnx_cast(e->file, x, SHOAL_ONNX_INT64);
}

static const char *lookup(exporter *e, const shoal_node *node, const char *x) {
  const uint32_t *dims = e->graph->params[node->params[0]].dims;
  int64_t in = e->graph->nodes[node->inputs[0]].shape.features, columns = node->columns, kept = in - columns;
  const char *rows = row_numbers(e, slice(e, x, kept, columns), dims[0]);
  const char *y = shoal_onnx_emit(e->file, "Gather", add_param(e, node->params[0]), rows, NULL);
  y = shoal_onnx_emit(e->file, "Reshape", y, shoal_onnx_ints(e->file, 2, (int64_t[]){0, columns * dims[1]}),
                      NULL);
  if (kept == 0) return y;
  x = slice(e, x, 0, kept);
  return shoal_onnx_concat(e->file, 2, (const char *[]){x, y}, 1);
}

/* A weight of `in` rows and gates * h columns as 1 x gates * h x in, with the gates in
 * ONNX's order: its gate g is ours at order[g]. */
static const char *gate_weight(exporter *e, uint32_t index, uint32_t gates, const int *order) {
  const shoal_param *param = &e->graph->params[index];
  size_t in = param->dims[0], width = param->dims[1], h = width / gates;
  const float *from = e->weights + param->offset;
  float *to = shoal_arena_array(&e->file->memory, param->count, sizeof *to);
  e->file->failed |= !to;
  for (size_t g = 0; to && g < gates; g++) {
    for (size_t j = 0; j < h; j++) {
      for (size_t i = 0; i < in; i++) to[(g * h + j) * in + i] = from[i * width + (size_t)order[g] * h + j];
    }
  }
  return add_tensor(e, param, 3, (int64_t[]){1, (int64_t)width, (int64_t)in}, to);
}

/* Both biases, of the input and of the recurrent product, one after the other. Where there
 * is only one, the other is zero. */
static const char *gate_bias(exporter *e, const shoal_node *node, uint32_t gates, const int *order) {
  const shoal_param *param = &e->graph->params[node->params[2]];
  size_t width = param->count, h = width / gates;
  float *to = shoal_arena_array(&e->file->memory, 2 * width, sizeof *to);
  e->file->failed |= !to;
  for (size_t half = 0; to && half < 2; half++) {
    uint32_t index = node->params[2 + half];
    for (size_t g = 0; index != SHOAL_NO_PARAM && g < gates; g++) {
      const float *from = e->weights + e->graph->params[index].offset + (size_t)order[g] * h;
      memcpy(to + half * width + g * h, from, h * sizeof *to);
    }
  }
  return add_tensor(e, param, 2, (int64_t[]){1, 2 * (int64_t)width}, to);
}

/* ONNX wants the steps in front, and gives them with an axis for the direction. */
static const char *recurrent(exporter *e, const shoal_node *node, const char *x) {
  static const int rnn_order[] = {0};
  static const int lstm_order[] = {0, 3, 1, 2}; /* i o f g, from i f g o */
  static const int gru_order[] = {1, 0, 2};     /* z r n, from r z n */
  const char *op = "RNN";
  const int *order = rnn_order;
  uint32_t gates = 1;
  if (node->op == SHOAL_NODE_LSTM) {
    op = "LSTM";
    order = lstm_order;
    gates = 4;
  } else if (node->op == SHOAL_NODE_GRU) {
    op = "GRU";
    order = gru_order;
    gates = 3;
  }
  x = transpose(e, x, 3, (int64_t[]){1, 0, 2});
  const char *weight = gate_weight(e, node->params[0], gates, order);
  const char *again = gate_weight(e, node->params[1], gates, order);
  const char *bias = gate_bias(e, node, gates, order);
  shoal_onnx_attribute_int(e->file, "hidden_size", node->shape.features);
  shoal_onnx_attribute_text(e->file, "direction", node->reverse ? "reverse" : "forward");
  if (node->op == SHOAL_NODE_GRU) shoal_onnx_attribute_int(e->file, "linear_before_reset", 1);
  if (node->op == SHOAL_NODE_RNN)
    shoal_onnx_attribute_texts(e->file, "activations", 1,
                               (const char *[]){node->activation == SHOAL_ACT_RELU ? "Relu" : "Tanh"});
  const char *y = shoal_onnx_emit(e->file, op, x, weight, again, bias, NULL);
  y = shoal_onnx_emit(e->file, "Squeeze", y, shoal_onnx_ints(e->file, 1, (int64_t[]){1}), NULL);
  return transpose(e, y, 3, (int64_t[]){1, 0, 2});
}

static const char *step(exporter *e, const shoal_node *node, const char *x) {
  const char *index = shoal_onnx_ints(e->file, 0, (int64_t[]){node->step});
  shoal_onnx_attribute_int(e->file, "axis", 1);
  return shoal_onnx_emit(e->file, "Gather", x, index, NULL);
}

static const char *repeat(exporter *e, const shoal_node *node, const char *x) {
  x = shoal_onnx_emit(e->file, "Unsqueeze", x, shoal_onnx_ints(e->file, 1, (int64_t[]){1}), NULL);
  return shoal_onnx_emit(e->file, "Expand", x,
                         shoal_onnx_ints(e->file, 3, (int64_t[]){1, node->shape.steps, 1}), NULL);
}

static const char *batchnorm(exporter *e, const shoal_node *node, const char *x) {
  bool sequence = node->shape.kind == SHOAL_SEQUENCE; /* its channels come last */
  if (sequence) x = transpose(e, x, 3, (int64_t[]){0, 2, 1});
  const char *params[4];
  for (int i = 0; i < 4; i++) params[i] = add_param(e, node->params[i]);
  shoal_onnx_attribute_float(e->file, "epsilon", SHOAL_NORM_EPS);
  x = shoal_onnx_emit(e->file, "BatchNormalization", x, params[0], params[1], params[2], params[3], NULL);
  return sequence ? transpose(e, x, 3, (int64_t[]){0, 2, 1}) : x;
}

static const char *layernorm(exporter *e, const shoal_node *node, const char *x) {
  const char *gamma = add_param(e, node->params[0]);
  const char *beta = add_param(e, node->params[1]);
  shoal_onnx_attribute_int(e->file, "axis", node->shape.kind == SHOAL_SEQUENCE ? 2 : 1);
  shoal_onnx_attribute_float(e->file, "epsilon", SHOAL_NORM_EPS);
  return shoal_onnx_emit(e->file, "LayerNormalization", x, gamma, beta, NULL);
}

static const char *concat(exporter *e, const shoal_node *node) {
  const char *inputs[SHOAL_LAYER_INPUTS_MAX];
  for (uint32_t i = 0; i < node->inputs_count; i++) inputs[i] = e->outputs[node->inputs[i]];
  return shoal_onnx_concat(e->file, node->inputs_count, inputs, node->shape.kind == SHOAL_SEQUENCE ? 2 : 1);
}

/* x / 2 * (1 + erf(x / sqrt 2)) */
static const char *gelu(exporter *e, const char *x) {
  const char *erf = shoal_onnx_emit(
      e->file, "Erf", shoal_onnx_emit(e->file, "Mul", x, shoal_onnx_real(e->file, 0.70710678f), NULL), NULL);
  const char *half = shoal_onnx_emit(e->file, "Mul", x, shoal_onnx_real(e->file, 0.5f), NULL);
  return shoal_onnx_emit(e->file, "Mul", half,
                         shoal_onnx_emit(e->file, "Add", erf, shoal_onnx_real(e->file, 1), NULL), NULL);
}

static const char *activate(exporter *e, shoal_activation activation, const char *x) {
  switch (activation) {
  case SHOAL_ACT_IDENTITY: return x;
  case SHOAL_ACT_SIGMOID: return shoal_onnx_emit(e->file, "Sigmoid", x, NULL);
  case SHOAL_ACT_TANH: return shoal_onnx_emit(e->file, "Tanh", x, NULL);
  case SHOAL_ACT_RELU: return shoal_onnx_emit(e->file, "Relu", x, NULL);
  case SHOAL_ACT_LEAKY_RELU:
    shoal_onnx_attribute_float(e->file, "alpha", 0.01f);
    return shoal_onnx_emit(e->file, "LeakyRelu", x, NULL);
  case SHOAL_ACT_ELU: return shoal_onnx_emit(e->file, "Elu", x, NULL);
  case SHOAL_ACT_GELU: return gelu(e, x);
  case SHOAL_ACT_SILU:
    return shoal_onnx_emit(e->file, "Mul", x, shoal_onnx_emit(e->file, "Sigmoid", x, NULL), NULL);
  case SHOAL_ACT_SOFTPLUS: return shoal_onnx_emit(e->file, "Softplus", x, NULL);
  case SHOAL_ACT_SOFTMAX:
    shoal_onnx_attribute_int(e->file, "axis", -1);
    return shoal_onnx_emit(e->file, "Softmax", x, NULL);
  }
  SHOAL_ASSERT(!"an activation that ONNX was not taught");
  return x;
}

/* The operators of one node; the value that holds its output. */
static const char *convert(exporter *e, const shoal_node *node) {
  const char *x = node->inputs_count > 0 ? e->outputs[node->inputs[0]] : NULL;
  switch (node->op) {
  case SHOAL_NODE_INPUT: return e->input;
  case SHOAL_NODE_DENSE: return dense(e, node, x);
  case SHOAL_NODE_CONV: return conv(e, node, x);
  case SHOAL_NODE_POOL: return pool(e, node, x);
  case SHOAL_NODE_FLATTEN: return shoal_onnx_emit(e->file, "Flatten", x, NULL);
  case SHOAL_NODE_UNFLATTEN: return unflatten(e, node, x);
  case SHOAL_NODE_EMBED: return shoal_onnx_emit(e->file, "Gather", add_param(e, node->params[0]), x, NULL);
  case SHOAL_NODE_LOOKUP: return lookup(e, node, x);
  case SHOAL_NODE_RNN:
  case SHOAL_NODE_LSTM:
  case SHOAL_NODE_GRU: return recurrent(e, node, x);
  case SHOAL_NODE_STEP: return step(e, node, x);
  case SHOAL_NODE_REPEAT: return repeat(e, node, x);
  case SHOAL_NODE_DROPOUT: return x;
  case SHOAL_NODE_BATCHNORM: return batchnorm(e, node, x);
  case SHOAL_NODE_LAYERNORM: return layernorm(e, node, x);
  case SHOAL_NODE_ADD: return shoal_onnx_emit(e->file, "Add", x, e->outputs[node->inputs[1]], NULL);
  case SHOAL_NODE_CONCAT: return concat(e, node);
  case SHOAL_NODE_ACTIVATION: return activate(e, node->activation, x);
  }
  SHOAL_ASSERT(!"a node that ONNX was not taught");
  return x;
}

/* ---- the file ----------------------------------------------------------------------- */

const char *shoal_onnx_graph(shoal_onnx_file *file, const char *prefix, const shoal_graph *graph,
                             const float *weights, const char *input) {
  exporter e = {.file = file, .graph = graph, .weights = weights, .prefix = prefix, .input = input};
  e.outputs = shoal_arena_array(&file->memory, graph->nodes_count, sizeof *e.outputs);
  if (!e.outputs) {
    file->failed = true;
    return "";
  }
  for (uint32_t i = 0; i < graph->nodes_count; i++) {
    file->scope = shoal_onnx_join(file, prefix, graph->model->layers[graph->nodes[i].layer].name);
    e.outputs[i] = convert(&e, &graph->nodes[i]);
  }
  file->scope = shoal_onnx_join(file, prefix, "output");
  return activate(&e, graph->output_activation, e.outputs[graph->nodes_count - 1]);
}

static size_t dims_of(const shoal_shape *shape, int64_t dims[3]) {
  size_t count = 0;
  if (shape->kind == SHOAL_IMAGE) {
    dims[count++] = shape->c;
    dims[count++] = shape->h;
    dims[count++] = shape->w;
    return count;
  }
  if (shape->kind != SHOAL_VECTOR) dims[count++] = shape->steps;
  if (shape->kind != SHOAL_TOKENS) dims[count++] = shape->features;
  return count;
}

static shoal_onnx_type type_of(const shoal_shape *shape) {
  return shape->kind == SHOAL_TOKENS ? SHOAL_ONNX_INT64 : SHOAL_ONNX_FLOAT;
}

shoal_status shoal_onnx_save(const char *path, const shoal_graph *graph, const float *weights,
                             shoal_error *err) {
  const shoal_shape *in = &graph->nodes[0].shape, *out = &graph->nodes[graph->nodes_count - 1].shape;
  shoal_onnx_file file;
  int64_t dims[3];
  shoal_onnx_file_init(&file);
  const char *input = shoal_onnx_input(&file, "input", type_of(in), dims_of(in, dims), dims);
  const char *last = shoal_onnx_graph(&file, "", graph, weights, input);
  shoal_onnx_node(&file, "Identity", &last, 1, "output");
  shoal_onnx_output(&file, "output", type_of(out), dims_of(out, dims), dims);
  shoal_status status = shoal_onnx_file_write(&file, path, err);
  shoal_onnx_file_release(&file);
  return status;
}
