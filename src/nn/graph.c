/* graph.c: from the lines of a model to nodes and parameters, with the help of each line's operation (lowering.h). */
#include "nn/graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/human.h"
#include "nn/lowering.h"

enum { NODES_MAX = 8 * SHOAL_LAYERS_MAX, PARAMS_MAX = 8 * SHOAL_LAYERS_MAX, PARAM_ALIGN = 16 };

uint32_t shoal_lower_node(shoal_lowering *l, const shoal_op *op, uint32_t input, shoal_shape shape) {
  shoal_graph *graph = l->graph;
  /* Past the limit every node is the spare one behind the last, until the layer is through. */
  bool full = graph->nodes_count == l->nodes_max;
  l->too_large |= full;
  shoal_node *node = &graph->nodes[graph->nodes_count];
  *node = (shoal_node){.op = op, .layer = l->layer_index, .shape = shape};
  for (int i = 0; i < SHOAL_NODE_PARAMS_MAX; i++) node->params[i] = SHOAL_NO_PARAM;
  node->in = input != UINT32_MAX ? graph->nodes[input].shape : shape;
  if (input != UINT32_MAX) node->inputs[node->inputs_count++] = input;
  return full ? l->nodes_max : graph->nodes_count++;
}

void shoal_lower_input(shoal_lowering *l, uint32_t node, uint32_t input) {
  shoal_node *n = &l->graph->nodes[node];
  n->inputs[n->inputs_count++] = input;
}

shoal_param *shoal_lower_param(shoal_lowering *l, uint32_t node, uint32_t slot, const char *part,
                               const char *role, shoal_param_kind kind, uint32_t dims_count,
                               const uint32_t *dims) {
  shoal_graph *graph = l->graph;
  if (graph->params_count == l->params_max) {
    l->too_large = true;
    return &graph->params[graph->params_count - 1];
  }
  shoal_param *p = &graph->params[graph->params_count];
  char name[256];
  int length = snprintf(name, sizeof name, "%s%s.%s", l->layer->name, part, role);
  if (length >= (int)sizeof name) length = (int)sizeof name - 1;
  *p = (shoal_param){.name = shoal_arena_text(&graph->memory, name, (size_t)length),
                     .kind = kind,
                     .dims_count = dims_count,
                     .offset = graph->weights_count,
                     .count = 1};
  if (p->name == NULL) l->out_of_memory = true;
  memcpy(p->dims, dims, dims_count * sizeof *dims);
  for (uint32_t i = 0; i < dims_count; i++) p->count *= dims[i];
  graph->weights_count += (p->count + PARAM_ALIGN - 1) / PARAM_ALIGN * PARAM_ALIGN;
  if (graph->weights_count > SHOAL_VALUES_MAX) l->too_large = true;
  if (kind != SHOAL_PARAM_STATISTIC) graph->trainable += p->count;
  graph->nodes[node].params[slot] = graph->params_count++;
  return p;
}

/* The activation that follows this layer: its own, or that of the line after it where that has no
 * weights but those of a normalisation, whose next line counts as well. */
static shoal_activation activation_after(const shoal_lowering *l) {
  const shoal_model *model = l->graph->model;
  for (uint32_t i = l->layer_index; i < model->layers_count; i++) {
    const shoal_layer *layer = &model->layers[i];
    bool follows =
        i == l->layer_index || (layer->inputs[0] == i - 1 && !shoal_op_is(layer->op, SHOAL_OP_HAS_MATRIX));
    if (!follows) break;
    if (layer->activation != SHOAL_ACT_IDENTITY) return layer->activation;
    if (i > l->layer_index && !shoal_op_is(layer->op, SHOAL_OP_NORMALISES)) break;
  }
  return SHOAL_ACT_IDENTITY;
}

void shoal_lower_fill(const shoal_lowering *l, shoal_param *p, double fan_in, double fan_out,
                      shoal_init_kind automatic) {
  shoal_init_kind kind = l->layer->init == SHOAL_INIT_AUTO ? automatic : l->layer->init;
  if (kind == SHOAL_INIT_AUTO)
    kind = shoal_activation_rows[activation_after(l)].wants_he ? SHOAL_INIT_HE : SHOAL_INIT_XAVIER;
  bool is_normal = kind == SHOAL_INIT_HE || kind == SHOAL_INIT_NORMAL;
  p->fill = kind == SHOAL_INIT_ZERO ? SHOAL_FILL_CONSTANT
            : is_normal             ? SHOAL_FILL_NORMAL
                                    : SHOAL_FILL_UNIFORM;
  switch (kind) {
  case SHOAL_INIT_AUTO:
  case SHOAL_INIT_XAVIER: p->spread = (float)sqrt(6.0 / (fan_in + fan_out)); break;
  case SHOAL_INIT_LECUN: p->spread = (float)sqrt(1.0 / fan_in); break;
  case SHOAL_INIT_HE: p->spread = (float)sqrt(2.0 / fan_in); break;
  case SHOAL_INIT_NORMAL:
  case SHOAL_INIT_UNIFORM: p->spread = l->layer->init_scale; break;
  case SHOAL_INIT_ZERO: break;
  }
}

/* A layer that adds no node of its own, such as a dropout of 0, is no reader, but those who read the layer read its
 * input's node. */
bool shoal_lower_only_reader(const shoal_lowering *l, uint32_t node) {
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

const char *shoal_node_word(const shoal_node *node) {
  return node->op == shoal_activation_op ? shoal_activation_words[node->activation] : node->op->word;
}

bool shoal_graph_has(const shoal_graph *graph, unsigned trait) {
  for (uint32_t i = 0; i < graph->nodes_count; i++)
    if (shoal_node_is(&graph->nodes[i], trait)) return true;
  return false;
}

/* How many nodes and parameters the layers can become at most: a small model takes little memory. A direction of a
 * recurrent layer is a cell, its last step and half of a concatenation; no other layer has more. */
static void count_most(shoal_lowering *l, const shoal_model *model) {
  enum { NODES = 3, PARAMS = 4 };
  uint64_t nodes = 0, params = 0;
  for (uint32_t i = 0; i < model->layers_count; i++) {
    uint64_t parts = 2 * (uint64_t)model->layers[i].stack + 1;
    nodes += NODES * parts + model->layers[i].inputs_count;
    params += PARAMS * parts;
  }
  l->nodes_max = nodes < NODES_MAX ? (uint32_t)nodes : NODES_MAX;
  l->params_max = params < PARAMS_MAX ? (uint32_t)params : PARAMS_MAX;
}

/* Cuts the flat vector into runs; false when memory is short. */
static bool cut_runs(shoal_graph *graph) {
  size_t most = graph->params_count + graph->weights_count / SHOAL_RUN_FLOATS_MAX + 1;
  graph->runs = shoal_arena_array(&graph->memory, most, sizeof *graph->runs);
  if (graph->runs == NULL) return false;
  for (uint32_t i = 0; i < graph->params_count; i++) {
    const shoal_param *p = &graph->params[i];
    for (size_t start = 0; start < p->count; start += SHOAL_RUN_FLOATS_MAX) {
      size_t left = p->count - start, count = left < SHOAL_RUN_FLOATS_MAX ? left : SHOAL_RUN_FLOATS_MAX;
      graph->runs[graph->runs_count++] = (shoal_run){p->offset + start, (uint32_t)count, p->kind, i};
    }
  }
  return true;
}

shoal_status shoal_graph_create(shoal_graph **out, const shoal_model *model, shoal_error *err) {
  *out = NULL;
  shoal_status status;
  shoal_graph *graph = calloc(1, sizeof *graph);
  shoal_lowering l = {.graph = graph};
  if (graph == NULL) goto no_memory;
  graph->model = model;
  shoal_arena_init(&graph->memory, (size_t)1 << 28);
  count_most(&l, model);
  graph->nodes = shoal_arena_array(&graph->memory, (size_t)l.nodes_max + 1, sizeof *graph->nodes);
  graph->params = shoal_arena_array(&graph->memory, l.params_max, sizeof *graph->params);
  l.output_of = shoal_arena_array(&graph->memory, model->layers_count, sizeof *l.output_of);
  if (graph->nodes == NULL || graph->params == NULL || l.output_of == NULL) goto no_memory;

  for (uint32_t i = 0; i < model->layers_count; i++) {
    const shoal_layer *layer = l.layer = &model->layers[i];
    l.layer_index = i;
    uint32_t input = layer->inputs_count > 0 ? l.output_of[layer->inputs[0]] : UINT32_MAX;
    uint32_t node = layer->op->lower != NULL ? layer->op->lower(&l, input)
                                             : shoal_lower_node(&l, layer->op, input, layer->shape);
    l.output_of[i] = shoal_lower_activation(&l, node);
    if (l.out_of_memory) goto no_memory;
    if (l.too_large) {
      status = shoal_fail(err, SHOAL_LIMIT,
                          "line %u: with '%s' the model has more than %s nodes, %s parameters or %s weights; "
                          "make it smaller",
                          layer->line, layer->name, shoal_human_count(NODES_MAX).text,
                          shoal_human_count(PARAMS_MAX).text, shoal_human_count(SHOAL_VALUES_MAX).text);
      goto fail;
    }
  }
  if (!cut_runs(graph)) goto no_memory;
  shoal_strip_output_activation(graph);
  graph->samples_unit = 1;
  for (uint32_t i = 0; i < graph->nodes_count; i++)
    if (graph->nodes[i].shape.kind == SHOAL_IMAGE) graph->samples_unit = SHOAL_LANES;
  *out = graph;
  return SHOAL_OK;

no_memory:
  status = shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for the model");
fail:
  shoal_graph_destroy(graph);
  return status;
}

bool shoal_graph_same_params(const shoal_graph *a, const shoal_graph *b) {
  bool same = a->params_count == b->params_count && a->weights_count == b->weights_count;
  for (uint32_t i = 0; same && i < a->params_count; i++)
    same = a->params[i].offset == b->params[i].offset && a->params[i].count == b->params[i].count;
  return same;
}

const shoal_shape *shoal_graph_output(const shoal_graph *graph) {
  return &graph->nodes[graph->nodes_count - 1].shape;
}

void shoal_graph_destroy(shoal_graph *graph) {
  if (graph == NULL) return;
  shoal_arena_release(&graph->memory);
  free(graph);
}

/* Four numbers a call: a model of millions of weights starts in milliseconds. */
static void fill_uniform(shoal_key key, size_t count, float *w) {
  uint32_t words[4];
  for (size_t e = 0; e < count; e++) {
    if (e % 4 == 0) shoal_random_block(key, 0, e / 4, words);
    w[e] = 2 * ((float)(words[e % 4] >> 8) * 0x1p-24f) - 1;
  }
}

void shoal_graph_init_weights(const shoal_graph *graph, uint64_t seed, float *weights) {
  memset(weights, 0, graph->weights_count * sizeof *weights);
  for (uint32_t i = 0; i < graph->params_count; i++) {
    const shoal_param *p = &graph->params[i];
    shoal_key key = shoal_key_make(seed, SHOAL_FOR_INIT, i, 0);
    float *w = weights + p->offset;
    if (p->fill == SHOAL_FILL_UNIFORM) fill_uniform(key, p->count, w);
    if (p->fill == SHOAL_FILL_NORMAL) shoal_random_normals(key, p->count, w);
    for (size_t e = 0; e < p->count; e++)
      w[e] = p->fill == SHOAL_FILL_CONSTANT ? p->spread : p->spread * w[e];
  }
}

/* True if nothing that learns lies before the node: the data itself needs no gradient. */
static bool reads_data(const shoal_graph *graph, uint32_t index) {
  const shoal_node *node = &graph->nodes[index];
  while (node->inputs_count == 1 && node->params[0] == SHOAL_NO_PARAM) node = &graph->nodes[node->inputs[0]];
  return shoal_op_is(node->op, SHOAL_OP_INPUT);
}

shoal_flops shoal_node_flops(const shoal_graph *graph, const shoal_node *node) {
  if (node->op->flops == NULL) return (shoal_flops){0};
  uint64_t forward = node->op->flops(node);
  bool data = reads_data(graph, node->inputs[0]);
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
  shoal_sha256_finish_hex(hash, out);
  shoal_sha256_destroy(hash);
}
