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

static void add_attribute(shoal_text *node, const char *key, const shoal_text *value) {
  shoal_text entry = {0};
  shoal_protobuf_text(&entry, MAP_KEY, key);
  shoal_protobuf_message(&entry, MAP_VALUE, value);
  shoal_protobuf_message(node, NODE_ATTRIBUTE, &entry);
  shoal_text_release(&entry);
}

static void add_shape(shoal_text *node, const int64_t *sizes, uint32_t count) {
  shoal_text shape = {0}, list = {0}, value = {0};
  shoal_events_shape(&shape, sizes, count);
  shoal_protobuf_message(&list, LIST_SHAPE, &shape);
  shoal_protobuf_message(&value, ATTRIBUTE_LIST, &list);
  add_attribute(node, "_output_shapes", &value);
  shoal_text_release(&shape);
  shoal_text_release(&list);
  shoal_text_release(&value);
}

/* The first dimension is the samples'. */
static void add_node_shape(shoal_text *node, const shoal_shape *shape) {
  const int64_t image[] = {-1, shape->c, shape->h, shape->w}, rows[] = {-1, shape->steps, shape->features},
                tokens[] = {-1, shape->steps}, vector[] = {-1, shape->features};
  switch (shape->kind) {
  case SHOAL_IMAGE: add_shape(node, image, 4); break;
  case SHOAL_SEQUENCE: add_shape(node, rows, 3); break;
  case SHOAL_TOKENS: add_shape(node, tokens, 2); break;
  default: add_shape(node, vector, 2); break;
  }
  char words[SHOAL_SHAPE_TEXT_MAX];
  shoal_text value = {0};
  shoal_protobuf_text(&value, ATTRIBUTE_TEXT, shoal_shape_text(shape, words));
  add_attribute(node, "shape", &value);
  shoal_text_release(&value);
}

static void begin_node(shoal_text *node, const char *name, const char *kind) {
  shoal_text_clear(node);
  shoal_protobuf_text(node, NODE_NAME, name);
  shoal_protobuf_text(node, NODE_KIND, kind);
}

static void add_param(shoal_text *out, const shoal_param *param) {
  node_name name;
  int64_t sizes[4];
  shoal_text node = {0};
  name_param(param, name);
  for (uint32_t d = 0; d < param->dims_count; d++) sizes[d] = param->dims[d];
  begin_node(&node, name, "parameter");
  add_shape(&node, sizes, param->dims_count);
  shoal_protobuf_message(out, GRAPH_NODE, &node);
  shoal_text_release(&node);
}

static void add_node(shoal_text *out, const shoal_graph *graph, uint32_t index) {
  const shoal_node *from = &graph->nodes[index];
  node_name name;
  shoal_text node = {0};
  name_node(graph, index, name);
  begin_node(&node, name, shoal_node_word(from));
  for (uint32_t i = 0; i < from->inputs_count; i++) {
    name_node(graph, from->inputs[i], name);
    shoal_protobuf_text(&node, NODE_INPUT, name);
  }
  for (uint32_t p = 0; p < SHOAL_NODE_PARAMS_MAX; p++) {
    if (from->params[p] == SHOAL_NO_PARAM) continue;
    name_param(&graph->params[from->params[p]], name);
    shoal_protobuf_text(&node, NODE_INPUT, name);
  }
  add_node_shape(&node, &from->shape);
  shoal_protobuf_message(out, GRAPH_NODE, &node);
  shoal_text_release(&node);
}

static void add_loss(shoal_text *out, const shoal_graph *graph) {
  const char *loss = shoal_loss_name(graph->model->recipe.loss);
  node_name name;
  shoal_text node = {0};
  snprintf(name, sizeof name, "loss/%s", loss);
  begin_node(&node, name, loss);
  name_node(graph, graph->nodes_count - 1, name);
  shoal_protobuf_text(&node, NODE_INPUT, name);
  add_shape(&node, NULL, 0);
  shoal_protobuf_message(out, GRAPH_NODE, &node);
  shoal_text_release(&node);
}

void shoal_events_graph(shoal_events *events, const shoal_graph *graph) {
  shoal_text out = {0}, versions = {0};
  for (uint32_t i = 0; i < graph->params_count; i++) add_param(&out, &graph->params[i]);
  for (uint32_t i = 0; i < graph->nodes_count; i++) add_node(&out, graph, i);
  add_loss(&out, graph);
  shoal_protobuf_int(&versions, VERSIONS_PRODUCER, PRODUCER);
  shoal_protobuf_message(&out, GRAPH_VERSIONS, &versions);
  shoal_events_graph_bytes(events, &out);
  shoal_text_release(&out);
  shoal_text_release(&versions);
}
