/* onnx.c: the graph's nodes as ONNX operators, written as a protocol-buffer message.
 *
 * Operators are collected in one small text; weights are not copied but noted, and only
 * the recurrent ones, whose gates ONNX orders otherwise, are laid out anew. Then all
 * lengths are known and the file is written in one pass.
 *
 * Values in the file are batch x features, batch x c x h x w, or batch x steps x features,
 * and are called "<layer>:<number>". The numbers of fields are those of onnx.proto. */
#include "nn/onnx.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/file.h"
#include "nn/protobuf.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are written as they lie in memory");

enum { IR_VERSION = 8, OPSET = 17 };
enum { MODEL_IR_VERSION = 1, MODEL_PRODUCER = 2, MODEL_GRAPH = 7, MODEL_OPSET = 8 };
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_FLOAT = 2, ATTRIBUTE_INT = 3, ATTRIBUTE_INTS = 8 };
enum { ATTRIBUTE_TEXT = 4, ATTRIBUTE_TEXTS = 9, ATTRIBUTE_TYPE = 20 };
enum { TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_TEXT = 3, TYPE_INTS = 7, TYPE_TEXTS = 8 };
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9 };
enum { VALUE_NAME = 1, VALUE_TYPE = 2, TYPE_TENSOR = 1, TENSOR_TYPE_ELEMENT = 1, TENSOR_TYPE_SHAPE = 2 };
enum { SHAPE_DIM = 1, DIM_VALUE = 1, DIM_NAME = 2 };
typedef enum element { ELEMENT_FLOAT = 1, ELEMENT_INT64 = 7 } element;

#define FILE_BYTES_MAX ((uint64_t)INT32_MAX) /* of a protocol-buffer message */

/* A tensor of the file: its message up to the raw bytes, and those. */
typedef struct initializer {
  struct initializer *next;
  shoal_text head;
  const void *data;
  size_t bytes;
} initializer;

typedef struct exporter {
  const shoal_graph *graph;
  const float *weights;
  shoal_arena memory;    /* names, initializers, gates in ONNX's order */
  bool failed;           /* no memory */
  shoal_text nodes;      /* of the graph message, as fields */
  shoal_text attributes; /* of the node being made */
  initializer *first, **last;
  const char *layer;    /* what new values are called after */
  uint32_t values;      /* made so far */
  const char **outputs; /* value of every node of the graph */
} exporter;

/* ---- messages ----------------------------------------------------------------------- */

/* A name for a new value, after the layer that it belongs to. */
static const char *new_name(exporter *e) {
  char text[512];
  int length = snprintf(text, sizeof text, "%s:%u", e->layer, e->values++);
  SHOAL_ASSERT(length > 0);
  size_t used = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
  const char *name = shoal_arena_text(&e->memory, text, used);
  e->failed |= !name;
  return name ? name : "";
}

/* Adds the message to `out` as a field and empties it. */
static void add_and_release(shoal_text *out, uint32_t field, shoal_text *message) {
  shoal_protobuf_message(out, field, message);
  shoal_text_release(message);
}

static void begin_attribute(shoal_text *attribute, const char *name, int type) {
  shoal_text_init(attribute);
  shoal_protobuf_text(attribute, ATTRIBUTE_NAME, name);
  shoal_protobuf_int(attribute, ATTRIBUTE_TYPE, type);
}

static void attribute_int(exporter *e, const char *name, int64_t value) {
  shoal_text attribute;
  begin_attribute(&attribute, name, TYPE_INT);
  shoal_protobuf_int(&attribute, ATTRIBUTE_INT, value);
  add_and_release(&e->attributes, NODE_ATTRIBUTE, &attribute);
}

static void attribute_float(exporter *e, const char *name, float value) {
  shoal_text attribute;
  begin_attribute(&attribute, name, TYPE_FLOAT);
  shoal_protobuf_float(&attribute, ATTRIBUTE_FLOAT, value);
  add_and_release(&e->attributes, NODE_ATTRIBUTE, &attribute);
}

static void attribute_text(exporter *e, const char *name, const char *value) {
  shoal_text attribute;
  begin_attribute(&attribute, name, TYPE_TEXT);
  shoal_protobuf_text(&attribute, ATTRIBUTE_TEXT, value);
  add_and_release(&e->attributes, NODE_ATTRIBUTE, &attribute);
}

static void attribute_texts(exporter *e, const char *name, const char *value) {
  shoal_text attribute;
  begin_attribute(&attribute, name, TYPE_TEXTS);
  shoal_protobuf_text(&attribute, ATTRIBUTE_TEXTS, value);
  add_and_release(&e->attributes, NODE_ATTRIBUTE, &attribute);
}

static void attribute_ints(exporter *e, const char *name, size_t count, const int64_t *values) {
  shoal_text attribute;
  begin_attribute(&attribute, name, TYPE_INTS);
  for (size_t i = 0; i < count; i++) shoal_protobuf_int(&attribute, ATTRIBUTE_INTS, values[i]);
  add_and_release(&e->attributes, NODE_ATTRIBUTE, &attribute);
}

/* One operator with the attributes given before. Its output is called `output`. */
static void write_node(exporter *e, const char *op, const char *const *inputs, size_t inputs_count,
                       const char *output) {
  shoal_text node;
  shoal_text_init(&node);
  for (size_t i = 0; i < inputs_count; i++) shoal_protobuf_text(&node, NODE_INPUT, inputs[i]);
  shoal_protobuf_text(&node, NODE_OUTPUT, output);
  shoal_protobuf_text(&node, NODE_NAME, output);
  shoal_protobuf_text(&node, NODE_OP, op);
  node.failed |= e->attributes.failed;
  shoal_text_add(&node, e->attributes.bytes, e->attributes.length);
  shoal_text_clear(&e->attributes);
  add_and_release(&e->nodes, GRAPH_NODE, &node);
}

enum { OPERANDS_MAX = 5 };

/* The same with a new name for its output, which it returns. The inputs end with NULL. */
__attribute__((sentinel)) static const char *emit(exporter *e, const char *op, ...) {
  const char *inputs[OPERANDS_MAX];
  size_t count = 0;
  va_list args;
  va_start(args, op);
  for (const char *input; (input = va_arg(args, const char *));) {
    SHOAL_ASSERT(count < OPERANDS_MAX);
    inputs[count++] = input;
  }
  va_end(args);
  const char *output = new_name(e);
  write_node(e, op, inputs, count, output);
  return output;
}

/* Notes a tensor; `data` is borrowed until the file is written. Returns the name. */
static const char *add_tensor(exporter *e, const char *name, element type, size_t dims_count,
                              const int64_t *dims, const void *data) {
  initializer *tensor = shoal_arena_take(&e->memory, sizeof *tensor);
  if (!tensor) {
    e->failed = true;
    return name;
  }
  shoal_text message;
  shoal_text_init(&message);
  tensor->data = data;
  tensor->bytes = type == ELEMENT_FLOAT ? sizeof(float) : sizeof(int64_t);
  for (size_t i = 0; i < dims_count; i++) {
    tensor->bytes *= (size_t)dims[i];
    shoal_protobuf_int(&message, TENSOR_DIMS, dims[i]);
  }
  shoal_protobuf_int(&message, TENSOR_TYPE, type);
  shoal_protobuf_text(&message, TENSOR_NAME, name);
  shoal_protobuf_bytes_head(&message, TENSOR_RAW, tensor->bytes);
  shoal_text_init(&tensor->head);
  shoal_protobuf_bytes_head(&tensor->head, GRAPH_INITIALIZER, message.length + tensor->bytes);
  shoal_text_add(&tensor->head, message.bytes, message.length);
  e->failed |= message.failed || tensor->head.failed;
  shoal_text_release(&message);
  *e->last = tensor;
  e->last = &tensor->next;
  return name;
}

/* A constant of whole numbers: a list, or a single one when count is 0. */
static const char *add_ints(exporter *e, size_t count, const int64_t *values) {
  size_t bytes = (count ? count : 1) * sizeof *values;
  int64_t *copy = shoal_arena_take(&e->memory, bytes);
  if (copy) memcpy(copy, values, bytes);
  e->failed |= !copy;
  return add_tensor(e, new_name(e), ELEMENT_INT64, count ? 1 : 0, (int64_t[]){(int64_t)count}, copy);
}

static const char *add_real(exporter *e, float value) {
  float *copy = shoal_arena_take(&e->memory, sizeof *copy);
  if (copy) *copy = value;
  e->failed |= !copy;
  return add_tensor(e, new_name(e), ELEMENT_FLOAT, 0, NULL, copy);
}

/* A parameter as it is. */
static const char *add_param(exporter *e, uint32_t index) {
  const shoal_param *param = &e->graph->params[index];
  int64_t dims[4];
  for (uint32_t i = 0; i < param->dims_count; i++) dims[i] = param->dims[i];
  return add_tensor(e, param->name, ELEMENT_FLOAT, param->dims_count, dims, e->weights + param->offset);
}

/* ---- operators ---------------------------------------------------------------------- */

static const char *transpose(exporter *e, const char *x, size_t axes_count, const int64_t *axes) {
  attribute_ints(e, "perm", axes_count, axes);
  return emit(e, "Transpose", x, NULL);
}

static const char *dense(exporter *e, const shoal_node *node, const char *x) {
  const char *y = emit(e, "MatMul", x, add_param(e, node->params[0]), NULL);
  if (node->params[1] == SHOAL_NO_PARAM) return y;
  return emit(e, "Add", y, add_param(e, node->params[1]), NULL);
}

static void attribute_window(exporter *e, const shoal_window *w) {
  attribute_ints(e, "kernel_shape", 2, (int64_t[]){w->k_h, w->k_w});
  attribute_ints(e, "strides", 2, (int64_t[]){w->stride_h, w->stride_w});
  attribute_ints(e, "pads", 4, (int64_t[]){w->pad_h, w->pad_w, w->pad_h, w->pad_w});
}

static const char *conv(exporter *e, const shoal_node *node, const char *x) {
  const char *weight = add_param(e, node->params[0]);
  const char *bias = node->params[1] == SHOAL_NO_PARAM ? NULL : add_param(e, node->params[1]);
  attribute_window(e, &node->window);
  return emit(e, "Conv", x, weight, bias, NULL);
}

static const char *pool(exporter *e, const shoal_node *node, const char *x) {
  if (node->pool == SHOAL_POOL_AVERAGE) {
    attribute_window(e, &node->window);
    attribute_int(e, "count_include_pad", 0);
    return emit(e, "AveragePool", x, NULL);
  }
  if (node->pool == SHOAL_POOL_MIN) x = emit(e, "Neg", x, NULL);
  attribute_window(e, &node->window);
  x = emit(e, "MaxPool", x, NULL);
  return node->pool == SHOAL_POOL_MIN ? emit(e, "Neg", x, NULL) : x;
}

/* In a target shape 0 stands for the batch, which stays as it is. */
static const char *unflatten(exporter *e, const shoal_node *node, const char *x) {
  const shoal_shape *shape = &node->shape;
  if (shape->kind == SHOAL_IMAGE)
    return emit(e, "Reshape", x, add_ints(e, 4, (int64_t[]){0, shape->c, shape->h, shape->w}), NULL);
  return emit(e, "Reshape", x, add_ints(e, 3, (int64_t[]){0, shape->steps, shape->features}), NULL);
}

/* A weight of `in` rows and gates * h columns as 1 x gates * h x in, with the gates in
 * ONNX's order: its gate g is ours at order[g]. */
static const char *gate_weight(exporter *e, uint32_t index, uint32_t gates, const int *order) {
  const shoal_param *param = &e->graph->params[index];
  size_t in = param->dims[0], width = param->dims[1], h = width / gates;
  const float *from = e->weights + param->offset;
  float *to = shoal_arena_array(&e->memory, param->count, sizeof *to);
  e->failed |= !to;
  for (size_t g = 0; to && g < gates; g++) {
    for (size_t j = 0; j < h; j++) {
      for (size_t i = 0; i < in; i++) to[(g * h + j) * in + i] = from[i * width + (size_t)order[g] * h + j];
    }
  }
  return add_tensor(e, param->name, ELEMENT_FLOAT, 3, (int64_t[]){1, (int64_t)width, (int64_t)in}, to);
}

/* Both biases, of the input and of the recurrent product, one after the other. Where there
 * is only one, the other is zero. */
static const char *gate_bias(exporter *e, const shoal_node *node, uint32_t gates, const int *order) {
  const shoal_param *param = &e->graph->params[node->params[2]];
  size_t width = param->count, h = width / gates;
  float *to = shoal_arena_array(&e->memory, 2 * width, sizeof *to);
  e->failed |= !to;
  for (size_t half = 0; to && half < 2; half++) {
    uint32_t index = node->params[2 + half];
    for (size_t g = 0; index != SHOAL_NO_PARAM && g < gates; g++) {
      const float *from = e->weights + e->graph->params[index].offset + (size_t)order[g] * h;
      memcpy(to + half * width + g * h, from, h * sizeof *to);
    }
  }
  return add_tensor(e, param->name, ELEMENT_FLOAT, 2, (int64_t[]){1, 2 * (int64_t)width}, to);
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
  attribute_int(e, "hidden_size", node->shape.features);
  attribute_text(e, "direction", node->reverse ? "reverse" : "forward");
  if (node->op == SHOAL_NODE_GRU) attribute_int(e, "linear_before_reset", 1);
  if (node->op == SHOAL_NODE_RNN)
    attribute_texts(e, "activations", node->activation == SHOAL_ACT_RELU ? "Relu" : "Tanh");
  const char *y = emit(e, op, x, weight, again, bias, NULL);
  y = emit(e, "Squeeze", y, add_ints(e, 1, (int64_t[]){1}), NULL);
  return transpose(e, y, 3, (int64_t[]){1, 0, 2});
}

static const char *step(exporter *e, const shoal_node *node, const char *x) {
  const char *index = add_ints(e, 0, (int64_t[]){node->step});
  attribute_int(e, "axis", 1);
  return emit(e, "Gather", x, index, NULL);
}

static const char *repeat(exporter *e, const shoal_node *node, const char *x) {
  x = emit(e, "Unsqueeze", x, add_ints(e, 1, (int64_t[]){1}), NULL);
  return emit(e, "Expand", x, add_ints(e, 3, (int64_t[]){1, node->shape.steps, 1}), NULL);
}

static const char *batchnorm(exporter *e, const shoal_node *node, const char *x) {
  bool sequence = node->shape.kind == SHOAL_SEQUENCE; /* its channels come last */
  if (sequence) x = transpose(e, x, 3, (int64_t[]){0, 2, 1});
  const char *params[4];
  for (int i = 0; i < 4; i++) params[i] = add_param(e, node->params[i]);
  attribute_float(e, "epsilon", SHOAL_NORM_EPS);
  x = emit(e, "BatchNormalization", x, params[0], params[1], params[2], params[3], NULL);
  return sequence ? transpose(e, x, 3, (int64_t[]){0, 2, 1}) : x;
}

static const char *layernorm(exporter *e, const shoal_node *node, const char *x) {
  const char *gamma = add_param(e, node->params[0]);
  const char *beta = add_param(e, node->params[1]);
  attribute_int(e, "axis", node->shape.kind == SHOAL_SEQUENCE ? 2 : 1);
  attribute_float(e, "epsilon", SHOAL_NORM_EPS);
  return emit(e, "LayerNormalization", x, gamma, beta, NULL);
}

static const char *concat(exporter *e, const shoal_node *node) {
  const char *inputs[SHOAL_LAYER_INPUTS_MAX];
  for (uint32_t i = 0; i < node->inputs_count; i++) inputs[i] = e->outputs[node->inputs[i]];
  attribute_int(e, "axis", node->shape.kind == SHOAL_SEQUENCE ? 2 : 1);
  const char *output = new_name(e);
  write_node(e, "Concat", inputs, node->inputs_count, output);
  return output;
}

/* x / 2 * (1 + erf(x / sqrt 2)) */
static const char *gelu(exporter *e, const char *x) {
  const char *erf = emit(e, "Erf", emit(e, "Mul", x, add_real(e, 0.70710678f), NULL), NULL);
  const char *half = emit(e, "Mul", x, add_real(e, 0.5f), NULL);
  return emit(e, "Mul", half, emit(e, "Add", erf, add_real(e, 1), NULL), NULL);
}

static const char *activate(exporter *e, shoal_activation activation, const char *x) {
  switch (activation) {
  case SHOAL_ACT_IDENTITY: return x;
  case SHOAL_ACT_SIGMOID: return emit(e, "Sigmoid", x, NULL);
  case SHOAL_ACT_TANH: return emit(e, "Tanh", x, NULL);
  case SHOAL_ACT_RELU: return emit(e, "Relu", x, NULL);
  case SHOAL_ACT_LEAKY_RELU: attribute_float(e, "alpha", 0.01f); return emit(e, "LeakyRelu", x, NULL);
  case SHOAL_ACT_ELU: return emit(e, "Elu", x, NULL);
  case SHOAL_ACT_GELU: return gelu(e, x);
  case SHOAL_ACT_SILU: return emit(e, "Mul", x, emit(e, "Sigmoid", x, NULL), NULL);
  case SHOAL_ACT_SOFTPLUS: return emit(e, "Softplus", x, NULL);
  case SHOAL_ACT_SOFTMAX: attribute_int(e, "axis", -1); return emit(e, "Softmax", x, NULL);
  }
  SHOAL_ASSERT(!"an activation that ONNX was not taught");
  return x;
}

/* The operators of one node; the value that holds its output. */
static const char *convert(exporter *e, const shoal_node *node) {
  const char *x = node->inputs_count > 0 ? e->outputs[node->inputs[0]] : NULL;
  switch (node->op) {
  case SHOAL_NODE_INPUT: return "input";
  case SHOAL_NODE_DENSE: return dense(e, node, x);
  case SHOAL_NODE_CONV: return conv(e, node, x);
  case SHOAL_NODE_POOL: return pool(e, node, x);
  case SHOAL_NODE_FLATTEN: return emit(e, "Flatten", x, NULL);
  case SHOAL_NODE_UNFLATTEN: return unflatten(e, node, x);
  case SHOAL_NODE_EMBED: return emit(e, "Gather", add_param(e, node->params[0]), x, NULL);
  case SHOAL_NODE_RNN:
  case SHOAL_NODE_LSTM:
  case SHOAL_NODE_GRU: return recurrent(e, node, x);
  case SHOAL_NODE_STEP: return step(e, node, x);
  case SHOAL_NODE_REPEAT: return repeat(e, node, x);
  case SHOAL_NODE_DROPOUT: return x;
  case SHOAL_NODE_BATCHNORM: return batchnorm(e, node, x);
  case SHOAL_NODE_LAYERNORM: return layernorm(e, node, x);
  case SHOAL_NODE_ADD: return emit(e, "Add", x, e->outputs[node->inputs[1]], NULL);
  case SHOAL_NODE_CONCAT: return concat(e, node);
  case SHOAL_NODE_ACTIVATION: return activate(e, node->activation, x);
  }
  SHOAL_ASSERT(!"a node that ONNX was not taught");
  return x;
}

/* ---- the file ----------------------------------------------------------------------- */

static void add_dim(shoal_text *shape, int64_t value) {
  shoal_text dim;
  shoal_text_init(&dim);
  shoal_protobuf_int(&dim, DIM_VALUE, value);
  add_and_release(shape, SHAPE_DIM, &dim);
}

/* An input or output of the whole: its name, and its type with the batch left open. */
static void add_value_info(shoal_text *graph, uint32_t field, const char *name, const shoal_shape *shape) {
  shoal_text batch, dims, tensor, type, value;
  shoal_text_init(&batch);
  shoal_text_init(&dims);
  shoal_text_init(&tensor);
  shoal_text_init(&type);
  shoal_text_init(&value);
  shoal_protobuf_text(&batch, DIM_NAME, "batch");
  add_and_release(&dims, SHAPE_DIM, &batch);
  if (shape->kind == SHOAL_IMAGE) {
    add_dim(&dims, shape->c);
    add_dim(&dims, shape->h);
    add_dim(&dims, shape->w);
  } else {
    if (shape->kind != SHOAL_VECTOR) add_dim(&dims, shape->steps);
    if (shape->kind != SHOAL_TOKENS) add_dim(&dims, shape->features);
  }
  shoal_protobuf_int(&tensor, TENSOR_TYPE_ELEMENT,
                     shape->kind == SHOAL_TOKENS ? ELEMENT_INT64 : ELEMENT_FLOAT);
  add_and_release(&tensor, TENSOR_TYPE_SHAPE, &dims);
  add_and_release(&type, TYPE_TENSOR, &tensor);
  shoal_protobuf_text(&value, VALUE_NAME, name);
  add_and_release(&value, VALUE_TYPE, &type);
  add_and_release(graph, field, &value);
}

/* Turns every node, then names the last value "output". */
static void convert_all(exporter *e) {
  const shoal_graph *graph = e->graph;
  for (uint32_t i = 0; i < graph->nodes_count; i++) {
    e->layer = graph->model->layers[graph->nodes[i].layer].name;
    e->outputs[i] = convert(e, &graph->nodes[i]);
  }
  e->layer = "output";
  const char *last = activate(e, graph->output_activation, e->outputs[graph->nodes_count - 1]);
  write_node(e, "Identity", &last, 1, "output");
}

static shoal_status write_file(exporter *e, const char *path, shoal_error *err) {
  const shoal_graph *graph = e->graph;
  shoal_text opset, model, head, tail;
  shoal_text_init(&opset);
  shoal_text_init(&model);
  shoal_text_init(&head);
  shoal_text_init(&tail);
  shoal_protobuf_text(&opset, OPSET_DOMAIN, "");
  shoal_protobuf_int(&opset, OPSET_VERSION, OPSET);
  shoal_protobuf_int(&model, MODEL_IR_VERSION, IR_VERSION);
  shoal_protobuf_text(&model, MODEL_PRODUCER, "shoal");
  add_and_release(&model, MODEL_OPSET, &opset);
  shoal_protobuf_text(&head, GRAPH_NAME, "shoal");
  add_value_info(&tail, GRAPH_INPUT, "input", &graph->nodes[0].shape);
  add_value_info(&tail, GRAPH_OUTPUT, "output", &graph->nodes[graph->nodes_count - 1].shape);

  uint64_t graph_bytes = (uint64_t)head.length + e->nodes.length + tail.length;
  for (const initializer *tensor = e->first; tensor; tensor = tensor->next)
    graph_bytes += (uint64_t)tensor->head.length + tensor->bytes;
  shoal_protobuf_bytes_head(&model, MODEL_GRAPH, graph_bytes);

  shoal_writer *writer = NULL;
  shoal_status status;
  if (e->failed || e->nodes.failed || model.failed || head.failed || tail.failed)
    status = shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", path);
  else if (model.length + graph_bytes > FILE_BYTES_MAX)
    status =
        shoal_fail(err, SHOAL_LIMIT, "%s: the model takes %llu bytes; an ONNX file holds at most %llu", path,
                   (unsigned long long)(model.length + graph_bytes), (unsigned long long)FILE_BYTES_MAX);
  else
    status = shoal_writer_create(&writer, path, err);
  if (status == SHOAL_OK) {
    shoal_writer_add(writer, model.bytes, model.length);
    shoal_writer_add(writer, head.bytes, head.length);
    shoal_writer_add(writer, e->nodes.bytes, e->nodes.length);
    for (const initializer *tensor = e->first; tensor; tensor = tensor->next) {
      shoal_writer_add(writer, tensor->head.bytes, tensor->head.length);
      shoal_writer_add(writer, tensor->data, tensor->bytes);
    }
    shoal_writer_add(writer, tail.bytes, tail.length);
    status = shoal_writer_commit(writer, err);
  }
  shoal_text_release(&model);
  shoal_text_release(&head);
  shoal_text_release(&tail);
  return status;
}

shoal_status shoal_onnx_save(const char *path, const shoal_graph *graph, const float *weights,
                             shoal_error *err) {
  exporter e = {.graph = graph, .weights = weights};
  e.last = &e.first;
  shoal_arena_init(&e.memory, (size_t)FILE_BYTES_MAX * 2);
  shoal_text_init(&e.nodes);
  shoal_text_init(&e.attributes);
  e.outputs = shoal_arena_array(&e.memory, graph->nodes_count, sizeof *e.outputs);
  shoal_status status;
  if (!e.outputs) {
    status = shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", path);
  } else {
    convert_all(&e);
    status = write_file(&e, path, err);
  }
  for (initializer *tensor = e.first; tensor; tensor = tensor->next) shoal_text_release(&tensor->head);
  shoal_text_release(&e.attributes);
  shoal_text_release(&e.nodes);
  shoal_arena_release(&e.memory);
  return status;
}
