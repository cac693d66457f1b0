/* events_graph.c: a network as TensorBoard's graph. A layer is a group, "conv1", with its nodes in it, "conv1/conv" and
 * "conv1/tanh", and its parameters, "conv1/weight". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/events_fields.h"
#include "nn/op.h"

enum { NAME_MAX_BYTES = 256, PRODUCER = 22 };

typedef char node_name[NAME_MAX_BYTES];

/* The layer in whose group a node is shown. An activation that was moved behind a pool is shown with that, or the two
 * groups would seem to lead to each other. */
static uint32_t layer_of(const shoal_graph *graph, uint32_t index) {
  const shoal_node *node = &graph->nodes[index];
  return node->op == shoal_activation_op ? graph->nodes[node->inputs[0]].layer : node->layer;
}

/* Nodes of the same layer and kind are numbered. */
static void name_node(const shoal_graph *graph, uint32_t index, node_name out) {
  const shoal_node *node = &graph->nodes[index];
  uint32_t before = 0;
  for (uint32_t i = 0; i < index; i++)
    before += layer_of(graph, i) == layer_of(graph, index) &&
              strcmp(shoal_node_word(&graph->nodes[i]), shoal_node_word(node)) == 0;
  const char *layer = graph->model->layers[layer_of(graph, index)].name;
  if (before == 0)
    snprintf(out, NAME_MAX_BYTES, "%.200s/%s", layer, shoal_node_word(node));
  else
    snprintf(out, NAME_MAX_BYTES, "%.200s/%s_%u", layer, shoal_node_word(node), before + 1);
}

/* "conv1.weight" is in the group conv1. */
static void name_param(const shoal_param *param, node_name out) {
  snprintf(out, NAME_MAX_BYTES, "%.250s", param->name);
  char *dot = strrchr(out, '.');
  if (dot != NULL) *dot = '/';
}

/* Opens an entry of a node's map of attributes, and its value: two messages. */
static void open_attribute(shoal_protobuf *out, const char *key) {
  shoal_protobuf_open(out, NODE_ATTRIBUTE);
  shoal_protobuf_text(out, MAP_KEY, key);
  shoal_protobuf_open(out, MAP_VALUE);
}

static void add_shape(shoal_protobuf *out, const int64_t *sizes, uint32_t count) {
  open_attribute(out, "_output_shapes");
  shoal_protobuf_open(out, ATTRIBUTE_LIST);
  shoal_events_shape(out, LIST_SHAPE, sizes, count);
  shoal_protobuf_close(out, 3);
}

/* The first dimension is the samples'. */
static void add_node_shape(shoal_protobuf *out, const shoal_shape *shape) {
  int64_t sizes[1 + SHOAL_SHAPE_DIMS_MAX] = {-1};
  char words[SHOAL_SHAPE_TEXT_MAX];
  add_shape(out, sizes, 1 + shoal_shape_dims(shape, sizes + 1));
  open_attribute(out, "shape");
  shoal_protobuf_text(out, ATTRIBUTE_TEXT, shoal_shape_text(shape, words));
  shoal_protobuf_close(out, 2);
}

static void open_node(shoal_protobuf *out, const char *name, const char *kind) {
  shoal_protobuf_open(out, GRAPH_NODE);
  shoal_protobuf_text(out, NODE_NAME, name);
  shoal_protobuf_text(out, NODE_KIND, kind);
}

static void add_param(shoal_protobuf *out, const shoal_param *param) {
  node_name name;
  int64_t sizes[4];
  name_param(param, name);
  for (uint32_t d = 0; d < param->dims_count; d++) sizes[d] = param->dims[d];
  open_node(out, name, "parameter");
  add_shape(out, sizes, param->dims_count);
  shoal_protobuf_close(out, 1);
}

static void add_node(shoal_protobuf *out, const shoal_graph *graph, uint32_t index) {
  const shoal_node *from = &graph->nodes[index];
  node_name name;
  name_node(graph, index, name);
  open_node(out, name, shoal_node_word(from));
  for (uint32_t i = 0; i < from->inputs_count; i++) {
    name_node(graph, from->inputs[i], name);
    shoal_protobuf_text(out, NODE_INPUT, name);
  }
  for (uint32_t p = 0; p < SHOAL_NODE_PARAMS_MAX; p++) {
    if (from->params[p] == SHOAL_NO_PARAM) continue;
    name_param(&graph->params[from->params[p]], name);
    shoal_protobuf_text(out, NODE_INPUT, name);
  }
  add_node_shape(out, &from->shape);
  shoal_protobuf_close(out, 1);
}

static void add_loss(shoal_protobuf *out, const shoal_graph *graph) {
  const char *loss = shoal_loss_words[graph->model->recipe.loss];
  node_name name;
  snprintf(name, sizeof name, "loss/%s", loss);
  open_node(out, name, loss);
  name_node(graph, graph->nodes_count - 1, name);
  shoal_protobuf_text(out, NODE_INPUT, name);
  add_shape(out, NULL, 0);
  shoal_protobuf_close(out, 1);
}

void shoal_events_graph(shoal_events *events, const shoal_graph *graph) {
  shoal_protobuf *out = shoal_events_begin(events);
  shoal_protobuf_open(out, EVENT_GRAPH);
  for (uint32_t i = 0; i < graph->params_count; i++) add_param(out, &graph->params[i]);
  for (uint32_t i = 0; i < graph->nodes_count; i++) add_node(out, graph, i);
  add_loss(out, graph);
  shoal_protobuf_open(out, GRAPH_VERSIONS);
  shoal_protobuf_int(out, VERSIONS_PRODUCER, PRODUCER);
  shoal_events_write(events);
}
