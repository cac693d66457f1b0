/* graph.c: from the lines of a model to nodes and parameters.
 *
 * Lowering walks the layers once. `emit` appends a node, `param` a parameter; what a
 * layer means is spelled out in lower_layer and its helpers and nowhere else, so the
 * plan and the exporters only ever meet the simple nodes of graph.h. */
#include "nn/graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/hash.h"

enum { NODES_MAX = 8 * SHOAL_LAYERS_MAX, PARAMS_MAX = 8 * SHOAL_LAYERS_MAX, PARAM_ALIGN = 16 };

typedef struct lowering {
  shoal_graph *graph;
  uint32_t nodes_max, params_max;
  uint32_t *output_of; /* node that carries the output of each layer */
  const shoal_layer *layer;
  uint32_t layer_index;
  bool out_of_memory;
  bool too_large;
} lowering;

static shoal_shape vector_of(uint64_t features) {
  return (shoal_shape){SHOAL_VECTOR, 1, (uint32_t)features, 1, 1, 1};
}

static shoal_shape sequence_of(uint32_t steps, uint32_t features) {
  return (shoal_shape){SHOAL_SEQUENCE, steps, features, 1, 1, 1};
}

/* Appends a node with one input (or none, for UINT32_MAX) and returns its index. */
static uint32_t emit(lowering *l, shoal_node_op op, uint32_t input, shoal_shape shape) {
  shoal_graph *graph = l->graph;
  /* Past the limit every node is the spare one behind the last, until the layer is through. */
  bool full = graph->nodes_count == l->nodes_max;
  l->too_large |= full;
  shoal_node *node = &graph->nodes[graph->nodes_count];
  *node = (shoal_node){.op = op, .layer = l->layer_index, .shape = shape};
  for (int i = 0; i < SHOAL_NODE_PARAMS_MAX; i++) node->params[i] = SHOAL_NO_PARAM;
  if (input != UINT32_MAX) node->inputs[node->inputs_count++] = input;
  return full ? l->nodes_max : graph->nodes_count++;
}

/* Appends a parameter called "<layer><part>.<role>" and returns its index. */
static uint32_t param(lowering *l, const char *part, const char *role, shoal_param_kind kind,
                      uint32_t dims_count, const uint32_t *dims) {
  shoal_graph *graph = l->graph;
  if (graph->params_count == l->params_max) {
    l->too_large = true;
    return graph->params_count - 1;
  }
  shoal_param *p = &graph->params[graph->params_count];
  char name[256];
  int length = snprintf(name, sizeof name, "%s%s.%s", l->layer->name, part, role);
  if (length >= (int)sizeof name) length = (int)sizeof name - 1;
  p->name = shoal_arena_text(graph->memory, name, (size_t)length);
  if (p->name == NULL) l->out_of_memory = true;
  p->kind = kind;
  p->dims_count = dims_count;
  p->count = 1;
  for (uint32_t i = 0; i < dims_count; i++) {
    p->dims[i] = dims[i];
    p->count *= dims[i];
  }
  p->offset = graph->weights_count;
  p->fill = SHOAL_FILL_CONSTANT;
  p->spread = 0;
  graph->weights_count += (p->count + PARAM_ALIGN - 1) / PARAM_ALIGN * PARAM_ALIGN;
  if (graph->weights_count > SHOAL_VALUES_MAX) l->too_large = true;
  if (kind != SHOAL_PARAM_STATISTIC) graph->trainable += p->count;
  return graph->params_count++;
}

/* Sets how a weight starts: as the layer says, else as fits the activation behind it. */
static void fill_weight(lowering *l, uint32_t index, double fan_in, double fan_out,
                        shoal_init_kind automatic) {
  shoal_param *p = &l->graph->params[index];
  shoal_init_kind kind = l->layer->init == SHOAL_INIT_AUTO ? automatic : l->layer->init;
  p->fill = SHOAL_FILL_UNIFORM;
  switch (kind) {
  case SHOAL_INIT_AUTO:
  case SHOAL_INIT_XAVIER: p->spread = (float)sqrt(6.0 / (fan_in + fan_out)); break;
  case SHOAL_INIT_LECUN: p->spread = (float)sqrt(1.0 / fan_in); break;
  case SHOAL_INIT_HE:
    p->fill = SHOAL_FILL_NORMAL;
    p->spread = (float)sqrt(2.0 / fan_in);
    break;
  case SHOAL_INIT_NORMAL:
    p->fill = SHOAL_FILL_NORMAL;
    p->spread = l->layer->init_scale;
    break;
  case SHOAL_INIT_UNIFORM: p->spread = l->layer->init_scale; break;
  case SHOAL_INIT_ZERO: p->fill = SHOAL_FILL_CONSTANT; break;
  }
}

static shoal_init_kind init_before(shoal_activation activation) {
  switch (activation) {
  case SHOAL_ACT_RELU:
  case SHOAL_ACT_LEAKY_RELU:
  case SHOAL_ACT_ELU:
  case SHOAL_ACT_GELU:
  case SHOAL_ACT_SILU: return SHOAL_INIT_HE;
  default: return SHOAL_INIT_XAVIER;
  }
}

static bool has_matrix(shoal_layer_op op) {
  switch (op) {
  case SHOAL_LAYER_DENSE:
  case SHOAL_LAYER_CONV:
  case SHOAL_LAYER_EMBED:
  case SHOAL_LAYER_LOOKUP:
  case SHOAL_LAYER_RNN:
  case SHOAL_LAYER_LSTM:
  case SHOAL_LAYER_GRU: return true;
  default: return false;
  }
}

/* The activation that follows this layer: its own, or that of the line after it where that has no
 * weights but those of a normalisation, whose next line counts as well. */
static shoal_activation activation_after(const lowering *l) {
  const shoal_model *model = l->graph->model;
  for (uint32_t i = l->layer_index; i < model->layers_count; i++) {
    const shoal_layer *layer = &model->layers[i];
    bool passes = layer->op == SHOAL_LAYER_BATCHNORM || layer->op == SHOAL_LAYER_LAYERNORM;
    bool follows = i == l->layer_index || (layer->inputs[0] == i - 1 && !has_matrix(layer->op));
    if (!follows) break;
    if (layer->activation != SHOAL_ACT_IDENTITY) return layer->activation;
    if (i > l->layer_index && !passes) break;
  }
  return SHOAL_ACT_IDENTITY;
}

static uint32_t flatten(lowering *l, uint32_t input) {
  const shoal_shape *shape = &l->graph->nodes[input].shape;
  if (shape->kind == SHOAL_VECTOR) return input;
  return emit(l, SHOAL_NODE_FLATTEN, input, vector_of(shoal_shape_values(shape)));
}

static uint32_t lower_dense(lowering *l, uint32_t input) {
  if (l->graph->nodes[input].shape.kind == SHOAL_IMAGE) input = flatten(l, input);
  uint32_t in = l->graph->nodes[input].shape.features, out = l->layer->units;
  uint32_t node = emit(l, SHOAL_NODE_DENSE, input, l->layer->shape);
  uint32_t weight = param(l, "", "weight", SHOAL_PARAM_WEIGHT, 2, (uint32_t[]){in, out});
  fill_weight(l, weight, in, out, init_before(activation_after(l)));
  l->graph->nodes[node].params[0] = weight;
  if (l->layer->bias) l->graph->nodes[node].params[1] = param(l, "", "bias", SHOAL_PARAM_BIAS, 1, &out);
  return node;
}

static shoal_window window_of(const shoal_layer *layer, const shoal_shape *in, const shoal_shape *out) {
  return (shoal_window){.in_c = in->c,
                        .in_h = in->h,
                        .in_w = in->w,
                        .out_c = out->c,
                        .out_h = out->h,
                        .out_w = out->w,
                        .k_h = layer->k_h,
                        .k_w = layer->k_w,
                        .stride_h = layer->stride_h,
                        .stride_w = layer->stride_w,
                        .pad_h = layer->pad_h,
                        .pad_w = layer->pad_w};
}

static uint32_t lower_conv(lowering *l, uint32_t input) {
  const shoal_layer *layer = l->layer;
  shoal_shape in = l->graph->nodes[input].shape;
  uint32_t node = emit(l, SHOAL_NODE_CONV, input, layer->shape);
  l->graph->nodes[node].window = window_of(layer, &in, &layer->shape);
  uint32_t dims[4] = {layer->units, in.c, layer->k_h, layer->k_w};
  uint32_t weight = param(l, "", "weight", SHOAL_PARAM_WEIGHT, 4, dims);
  double taps = (double)layer->k_h * layer->k_w;
  fill_weight(l, weight, in.c * taps, layer->units * taps, init_before(activation_after(l)));
  l->graph->nodes[node].params[0] = weight;
  if (layer->bias) l->graph->nodes[node].params[1] = param(l, "", "bias", SHOAL_PARAM_BIAS, 1, &layer->units);
  return node;
}

/* Whether a function never falls as its argument rises: then it may as well be taken of the
 * largest or the smallest value alone. */
static bool never_falls(shoal_activation activation) {
  switch (activation) {
  case SHOAL_ACT_SIGMOID:
  case SHOAL_ACT_TANH:
  case SHOAL_ACT_RELU:
  case SHOAL_ACT_LEAKY_RELU:
  case SHOAL_ACT_ELU:
  case SHOAL_ACT_SOFTPLUS: return true;
  default: return false;
  }
}

/* Whether nobody but the layer at hand reads the node. A layer that adds no node of its own, such
 * as a dropout of 0, is no reader, but those who read the layer read its input's node. */
static bool only_reader(const lowering *l, uint32_t node) {
  const shoal_model *model = l->graph->model;
  for (uint32_t i = 0; i < model->layers_count; i++) {
    bool hands_on = i < l->layer_index && l->output_of[i] == node;
    if (hands_on || i == l->layer_index) continue;
    for (uint32_t k = 0; k < model->layers[i].inputs_count; k++) {
      uint32_t from = model->layers[i].inputs[k];
      if (from < l->layer_index && l->output_of[from] == node) return false;
    }
  }
  return true;
}

/* An activation and then a pool of extremes become the pool and then the activation, which has
 * fewer values to work on. The activation's node turns into the pool's. */
static uint32_t pool_before_activation(lowering *l, uint32_t input) {
  shoal_node *node = &l->graph->nodes[input];
  shoal_node before = *node;
  node->op = SHOAL_NODE_POOL;
  node->layer = l->layer_index;
  node->pool = l->layer->pool;
  node->window = window_of(l->layer, &before.shape, &l->layer->shape);
  node->shape = l->layer->shape;
  uint32_t activation = emit(l, SHOAL_NODE_ACTIVATION, input, l->layer->shape);
  l->graph->nodes[activation].activation = before.activation;
  l->graph->nodes[activation].layer = before.layer;
  return activation;
}

static uint32_t lower_pool(lowering *l, uint32_t input) {
  const shoal_layer *layer = l->layer;
  shoal_shape in = l->graph->nodes[input].shape;
  if (layer->op == SHOAL_LAYER_POOL) {
    const shoal_node *from = &l->graph->nodes[input];
    bool swap = from->op == SHOAL_NODE_ACTIVATION && never_falls(from->activation) &&
                layer->pool != SHOAL_POOL_AVERAGE && only_reader(l, input);
    if (swap) return pool_before_activation(l, input);
    uint32_t node = emit(l, SHOAL_NODE_POOL, input, layer->shape);
    l->graph->nodes[node].pool = layer->pool;
    l->graph->nodes[node].window = window_of(layer, &in, &layer->shape);
    return node;
  }
  shoal_shape pixel = {SHOAL_IMAGE, 1, 1, in.c, 1, 1};
  uint32_t node = emit(l, SHOAL_NODE_POOL, input, pixel);
  l->graph->nodes[node].pool = layer->pool;
  l->graph->nodes[node].window = (shoal_window){.in_c = in.c,
                                                .in_h = in.h,
                                                .in_w = in.w,
                                                .out_c = in.c,
                                                .out_h = 1,
                                                .out_w = 1,
                                                .k_h = in.h,
                                                .k_w = in.w,
                                                .stride_h = 1,
                                                .stride_w = 1};
  return flatten(l, node);
}

/* embed and lookup. */
static uint32_t lower_table(lowering *l, shoal_node_op op, uint32_t input) {
  const shoal_layer *layer = l->layer;
  uint32_t node = emit(l, op, input, layer->shape);
  uint32_t table =
      param(l, "", "table", SHOAL_PARAM_WEIGHT, 2, (uint32_t[]){layer->vocabulary, layer->units});
  fill_weight(l, table, layer->units, layer->units, SHOAL_INIT_LECUN);
  l->graph->nodes[node].params[0] = table;
  l->graph->nodes[node].columns = layer->columns;
  return node;
}

/* One direction of one recurrent layer. */
static uint32_t lower_cell(lowering *l, uint32_t input, bool reverse, const char *part) {
  const shoal_layer *layer = l->layer;
  uint32_t in = l->graph->nodes[input].shape.features, h = layer->units;
  uint32_t gates = layer->op == SHOAL_LAYER_LSTM ? 4 : layer->op == SHOAL_LAYER_GRU ? 3 : 1;
  shoal_node_op op = layer->op == SHOAL_LAYER_LSTM  ? SHOAL_NODE_LSTM
                     : layer->op == SHOAL_LAYER_GRU ? SHOAL_NODE_GRU
                                                    : SHOAL_NODE_RNN;
  uint32_t width = gates * h;
  uint32_t node = emit(l, op, input, sequence_of(l->graph->nodes[input].shape.steps, h));
  uint32_t weight = param(l, part, "weight", SHOAL_PARAM_WEIGHT, 2, (uint32_t[]){in, width});
  fill_weight(l, weight, h, h, SHOAL_INIT_LECUN);
  uint32_t recurrent = param(l, part, "recurrent", SHOAL_PARAM_WEIGHT, 2, (uint32_t[]){h, width});
  fill_weight(l, recurrent, h, h, SHOAL_INIT_LECUN);
  uint32_t bias = param(l, part, "bias", SHOAL_PARAM_BIAS, 1, &width);
  shoal_node *n = &l->graph->nodes[node];
  n->params[0] = weight;
  n->params[1] = recurrent;
  n->params[2] = bias;
  if (op == SHOAL_NODE_GRU) n->params[3] = param(l, part, "recurrent_bias", SHOAL_PARAM_BIAS, 1, &width);
  n->reverse = reverse;
  n->activation =
      layer->op == SHOAL_LAYER_RNN && layer->activation == SHOAL_ACT_RELU ? SHOAL_ACT_RELU : SHOAL_ACT_TANH;
  return node;
}

static uint32_t concat2(lowering *l, uint32_t a, uint32_t b, shoal_shape shape) {
  uint32_t node = emit(l, SHOAL_NODE_CONCAT, a, shape);
  l->graph->nodes[node].inputs[l->graph->nodes[node].inputs_count++] = b;
  return node;
}

static uint32_t lower_recurrent(lowering *l, uint32_t input) {
  const shoal_layer *layer = l->layer;
  uint32_t h = layer->units;
  for (uint32_t k = 0; k < layer->stack; k++) {
    char part[32] = "";
    if (layer->stack > 1) snprintf(part, sizeof part, ".%u", k + 1);
    uint32_t steps = l->graph->nodes[input].shape.steps;
    bool top_last = layer->last && k + 1 == layer->stack;
    uint32_t forward = lower_cell(l, input, false, part);
    if (!layer->bidirectional) {
      input = forward;
      if (top_last) {
        input = emit(l, SHOAL_NODE_STEP, forward, vector_of(h));
        l->graph->nodes[input].step = steps - 1;
      }
      continue;
    }
    char reverse_part[48];
    snprintf(reverse_part, sizeof reverse_part, "%s.reverse", part);
    uint32_t backward = lower_cell(l, input, true, reverse_part);
    if (!top_last) {
      input = concat2(l, forward, backward, sequence_of(steps, 2 * h));
      continue;
    }
    /* Each direction's last step is the one it computed last. */
    uint32_t end = emit(l, SHOAL_NODE_STEP, forward, vector_of(h));
    l->graph->nodes[end].step = steps - 1;
    uint32_t start = emit(l, SHOAL_NODE_STEP, backward, vector_of(h));
    input = concat2(l, end, start, vector_of(2 * (uint64_t)h));
  }
  return input;
}

static uint32_t lower_norm(lowering *l, uint32_t input) {
  shoal_shape shape = l->graph->nodes[input].shape;
  bool batch = l->layer->op == SHOAL_LAYER_BATCHNORM;
  uint32_t node = emit(l, batch ? SHOAL_NODE_BATCHNORM : SHOAL_NODE_LAYERNORM, input, shape);
  uint32_t dims[4] = {shape.features, 0, 0, 0}, dims_count = 1;
  if (shape.kind == SHOAL_IMAGE) {
    dims[0] = shape.c;
    if (!batch) {
      dims[1] = shape.h;
      dims[2] = shape.w;
      dims_count = 3;
    }
  }
  uint32_t gamma = param(l, "", "gamma", SHOAL_PARAM_SCALE, dims_count, dims);
  l->graph->params[gamma].spread = 1;
  uint32_t beta = param(l, "", "beta", SHOAL_PARAM_SCALE, dims_count, dims);
  shoal_node *n = &l->graph->nodes[node];
  n->params[0] = gamma;
  n->params[1] = beta;
  if (batch) {
    n->params[2] = param(l, "", "mean", SHOAL_PARAM_STATISTIC, 1, dims);
    n->params[3] = param(l, "", "variance", SHOAL_PARAM_STATISTIC, 1, dims);
    l->graph->params[n->params[3]].spread = 1;
  }
  return node;
}

static uint32_t lower_layer(lowering *l) {
  const shoal_layer *layer = l->layer;
  uint32_t input = layer->inputs_count > 0 ? l->output_of[layer->inputs[0]] : UINT32_MAX;
  switch (layer->op) {
  case SHOAL_LAYER_INPUT: return emit(l, SHOAL_NODE_INPUT, UINT32_MAX, layer->shape);
  case SHOAL_LAYER_DENSE: return lower_dense(l, input);
  case SHOAL_LAYER_CONV: return lower_conv(l, input);
  case SHOAL_LAYER_POOL:
  case SHOAL_LAYER_GLOBAL_POOL: return lower_pool(l, input);
  case SHOAL_LAYER_FLATTEN: return flatten(l, input);
  case SHOAL_LAYER_RESHAPE:
    input = flatten(l, input);
    if (layer->shape.kind == SHOAL_VECTOR) return input;
    return emit(l, SHOAL_NODE_UNFLATTEN, input, layer->shape);
  case SHOAL_LAYER_EMBED: return lower_table(l, SHOAL_NODE_EMBED, input);
  case SHOAL_LAYER_LOOKUP: return lower_table(l, SHOAL_NODE_LOOKUP, input);
  case SHOAL_LAYER_RNN:
  case SHOAL_LAYER_LSTM:
  case SHOAL_LAYER_GRU: return lower_recurrent(l, input);
  case SHOAL_LAYER_REPEAT: return emit(l, SHOAL_NODE_REPEAT, input, layer->shape);
  case SHOAL_LAYER_DROPOUT: {
    if (layer->rate == 0) return input;
    uint32_t node = emit(l, SHOAL_NODE_DROPOUT, input, layer->shape);
    l->graph->nodes[node].rate = layer->rate;
    return node;
  }
  case SHOAL_LAYER_BATCHNORM:
  case SHOAL_LAYER_LAYERNORM: return lower_norm(l, input);
  case SHOAL_LAYER_ADD: {
    for (uint32_t i = 1; i < layer->inputs_count; i++) {
      uint32_t node = emit(l, SHOAL_NODE_ADD, input, layer->shape);
      l->graph->nodes[node].inputs[l->graph->nodes[node].inputs_count++] = l->output_of[layer->inputs[i]];
      input = node;
    }
    return input;
  }
  case SHOAL_LAYER_CONCAT: {
    if (layer->inputs_count == 1) return input;
    uint32_t node = emit(l, SHOAL_NODE_CONCAT, input, layer->shape);
    shoal_node *n = &l->graph->nodes[node];
    for (uint32_t i = 1; i < layer->inputs_count; i++)
      n->inputs[n->inputs_count++] = l->output_of[layer->inputs[i]];
    return node;
  }
  case SHOAL_LAYER_ACTIVATION: return input;
  }
  return input;
}

/* The activation at the end of a layer's line; an rnn's own works inside its cell. */
static uint32_t lower_activation(lowering *l, uint32_t node) {
  shoal_activation activation = l->layer->activation;
  if (activation == SHOAL_ACT_IDENTITY) return node;
  if (l->layer->op == SHOAL_LAYER_RNN && (activation == SHOAL_ACT_TANH || activation == SHOAL_ACT_RELU))
    return node;
  node = emit(l, SHOAL_NODE_ACTIVATION, node, l->graph->nodes[node].shape);
  l->graph->nodes[node].activation = activation;
  return node;
}

/* Takes off a last softmax or sigmoid that the loss computes itself. */
static void strip_output_activation(shoal_graph *graph) {
  graph->output_activation = SHOAL_ACT_IDENTITY;
  shoal_activation wanted = SHOAL_ACT_IDENTITY;
  if (graph->model->recipe.loss == SHOAL_CROSS_ENTROPY) wanted = SHOAL_ACT_SOFTMAX;
  if (graph->model->recipe.loss == SHOAL_BINARY_CROSS_ENTROPY) wanted = SHOAL_ACT_SIGMOID;
  if (wanted == SHOAL_ACT_IDENTITY) return;
  graph->output_activation = wanted;
  const shoal_node *last = &graph->nodes[graph->nodes_count - 1];
  if (last->op != SHOAL_NODE_ACTIVATION || last->activation != wanted) return;
  graph->nodes_count--;
  memset(&graph->nodes[graph->nodes_count], 0, sizeof *last);
}

/* How many nodes and parameters the layers can become at most: a small model takes little memory. */
static void count_most(lowering *l, const shoal_model *model) {
  /* A direction of a recurrent layer is a cell, its last step and half of a concatenation. */
  enum { CELL_NODES = 3, CELL_PARAMS = 4, OTHER_NODES = 3, OTHER_PARAMS = 4 };
  uint64_t nodes = 0, params = 0;
  for (uint32_t i = 0; i < model->layers_count; i++) {
    const shoal_layer *layer = &model->layers[i];
    nodes += 2 * CELL_NODES * layer->stack + layer->inputs_count + OTHER_NODES;
    params += 2 * CELL_PARAMS * layer->stack + OTHER_PARAMS;
  }
  l->nodes_max = nodes < NODES_MAX ? (uint32_t)nodes : NODES_MAX;
  l->params_max = params < PARAMS_MAX ? (uint32_t)params : PARAMS_MAX;
}

shoal_status shoal_graph_create(shoal_graph **out, const shoal_model *model, shoal_error *err) {
  *out = NULL;
  shoal_status status;
  shoal_graph *graph = calloc(1, sizeof *graph);
  lowering l = {.graph = graph};
  if (graph == NULL) goto no_memory;
  graph->model = model;
  graph->memory = calloc(1, sizeof *graph->memory);
  if (graph->memory == NULL) goto no_memory;
  shoal_arena_init(graph->memory, (size_t)1 << 28);
  count_most(&l, model);
  graph->nodes = shoal_arena_array(graph->memory, (size_t)l.nodes_max + 1, sizeof *graph->nodes);
  graph->params = shoal_arena_array(graph->memory, l.params_max, sizeof *graph->params);
  l.output_of = shoal_arena_array(graph->memory, model->layers_count, sizeof *l.output_of);
  if (graph->nodes == NULL || graph->params == NULL || l.output_of == NULL) goto no_memory;

  for (uint32_t i = 0; i < model->layers_count; i++) {
    l.layer = &model->layers[i];
    l.layer_index = i;
    l.output_of[i] = lower_activation(&l, lower_layer(&l));
    if (l.out_of_memory) goto no_memory;
    if (l.too_large) {
      char nodes[SHOAL_GROUPED_MAX], params[SHOAL_GROUPED_MAX], weights[SHOAL_GROUPED_MAX];
      status = shoal_fail(err, SHOAL_LIMIT,
                          "line %u: with '%s' the model has more than %s nodes, %s parameters or %s weights; "
                          "make it smaller",
                          l.layer->line, l.layer->name, shoal_grouped(NODES_MAX, nodes),
                          shoal_grouped(PARAMS_MAX, params), shoal_grouped(SHOAL_VALUES_MAX, weights));
      goto fail;
    }
  }
  strip_output_activation(graph);
  *out = graph;
  return SHOAL_OK;

no_memory:
  status = shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for the model");
fail:
  shoal_graph_destroy(graph);
  return status;
}

void shoal_graph_destroy(shoal_graph *graph) {
  if (graph == NULL) return;
  if (graph->memory != NULL) shoal_arena_release(graph->memory);
  free(graph->memory);
  free(graph);
}

/* Four numbers a call: a model of millions of weights starts in milliseconds. */
static void fill_uniform(shoal_key key, float spread, size_t count, float *w) {
  uint32_t words[4];
  for (size_t e = 0; e < count; e++) {
    if (e % 4 == 0) shoal_random_block(key, 0, e / 4, words);
    w[e] = spread * (2 * ((float)(words[e % 4] >> 8) * 0x1p-24f) - 1);
  }
}

void shoal_graph_init_weights(const shoal_graph *graph, uint64_t seed, float *weights) {
  memset(weights, 0, graph->weights_count * sizeof *weights);
  for (uint32_t i = 0; i < graph->params_count; i++) {
    const shoal_param *p = &graph->params[i];
    shoal_key key = shoal_key_make(seed, SHOAL_FOR_INIT, i, 0);
    float *w = weights + p->offset;
    switch (p->fill) {
    case SHOAL_FILL_CONSTANT:
      for (size_t e = 0; e < p->count; e++) w[e] = p->spread;
      break;
    case SHOAL_FILL_UNIFORM: fill_uniform(key, p->spread, p->count, w); break;
    case SHOAL_FILL_NORMAL:
      shoal_random_normals(key, p->count, w);
      for (size_t e = 0; e < p->count; e++) w[e] *= p->spread;
      break;
    }
  }
}

static uint64_t forward_flops(const shoal_graph *graph, const shoal_node *node) {
  const shoal_shape *in = node->inputs_count > 0 ? &graph->nodes[node->inputs[0]].shape : &node->shape;
  const shoal_shape *out = &node->shape;
  uint64_t cell = 2 * (uint64_t)out->steps * (in->features + (uint64_t)out->features) * out->features;
  switch (node->op) {
  case SHOAL_NODE_DENSE: return 2 * (uint64_t)out->steps * in->features * out->features;
  case SHOAL_NODE_CONV: return 2 * shoal_shape_values(out) * in->c * node->window.k_h * node->window.k_w;
  case SHOAL_NODE_RNN: return cell;
  case SHOAL_NODE_LSTM: return 4 * cell;
  case SHOAL_NODE_GRU: return 3 * cell;
  default: return 0;
  }
}

shoal_flops shoal_node_flops(const shoal_graph *graph, const shoal_node *node) {
  uint64_t forward = forward_flops(graph, node);
  if (forward == 0) return (shoal_flops){0};
  /* The data itself needs no gradient. */
  uint32_t source = node->inputs[0];
  while (graph->nodes[source].op == SHOAL_NODE_FLATTEN) source = graph->nodes[source].inputs[0];
  bool data = graph->nodes[source].op == SHOAL_NODE_INPUT;
  return (shoal_flops){.forward = forward, .input_gradient = data ? 0 : forward, .weight_gradient = forward};
}

uint64_t shoal_graph_flops(const shoal_graph *graph, bool training) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < graph->nodes_count; i++) {
    shoal_flops flops = shoal_node_flops(graph, &graph->nodes[i]);
    total += flops.forward;
    if (training) total += flops.input_gradient + flops.weight_gradient;
  }
  return total;
}

void shoal_graph_weights_sha256(const shoal_graph *graph, const float *weights, char out[SHOAL_SHA256_HEX]) {
  shoal_sha256 *hash = shoal_sha256_create();
  SHOAL_ASSERT(hash != NULL);
  for (uint32_t i = 0; i < graph->params_count; i++) {
    const shoal_param *p = &graph->params[i];
    shoal_sha256_add(hash, p->name, strlen(p->name) + 1);
    shoal_sha256_add(hash, p->dims, p->dims_count * sizeof p->dims[0]);
    shoal_sha256_add(hash, weights + p->offset, p->count * sizeof *weights);
  }
  uint8_t digest[SHOAL_SHA256_BYTES];
  shoal_sha256_finish(hash, digest);
  shoal_sha256_destroy(hash);
  shoal_hex(digest, sizeof digest, out);
}
