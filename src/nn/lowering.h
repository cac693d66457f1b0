/* lowering.h: from lines to nodes: what the operations of nn/ops/ build the graph with.
 *
 * The graph walks the layers once and hands each to its operation's `lower`, which adds nodes and parameters.
 * Running out of memory or of room is noted in the lowering, and the graph looks for it after each layer.
 *
 * Threads: none. */
#ifndef SHOAL_NN_LOWERING_H
#define SHOAL_NN_LOWERING_H

#include "nn/op.h"

typedef struct shoal_lowering {
  shoal_graph *graph;
  uint32_t nodes_max, params_max;
  uint32_t *output_of; /* node that carries the output of each layer */
  const shoal_layer *layer;
  uint32_t layer_index;
  bool out_of_memory, too_large;
} shoal_lowering;

/* Appends a node with one input (or none, for UINT32_MAX) and returns its index. */
uint32_t shoal_lower_node(shoal_lowering *l, const shoal_op *op, uint32_t input, shoal_shape shape);
void shoal_lower_input(shoal_lowering *l, uint32_t node, uint32_t input); /* one more */

/* Appends the parameter "<layer><part>.<role>", zeros at first, as number `slot` of the node. */
shoal_param *shoal_lower_param(shoal_lowering *l, uint32_t node, uint32_t slot, const char *part,
                               const char *role, shoal_param_kind kind, uint32_t dims_count,
                               const uint32_t *dims);
/* How a weight begins: as the layer's line says, else `automatic`, or with AUTO what suits the activation after it. */
void shoal_lower_fill(const shoal_lowering *l, shoal_param *param, double fan_in, double fan_out,
                      shoal_init_kind automatic);
/* True if only the layer at hand reads the node. */
bool shoal_lower_only_reader(const shoal_lowering *l, uint32_t node);

/* nn/ops/activation.c: the activation at the end of a layer's line, and the graph without a last one that the loss
 * computes itself. */
uint32_t shoal_lower_activation(shoal_lowering *l, uint32_t node);
shoal_init_kind shoal_activation_init(shoal_activation activation); /* of weights before it */
/* True if the activation never falls as its argument rises: the largest value's activation is then the largest of all. */
bool shoal_activation_never_falls(shoal_activation activation);
void shoal_strip_output_activation(shoal_graph *graph);
/* nn/ops/flatten.c */
uint32_t shoal_lower_flatten(shoal_lowering *l, uint32_t input);

#endif
