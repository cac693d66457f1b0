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

/* nn/ops/activation.c: the facts of every activation, in the order of their enum; the activation at the end of a layer's
 * line; and the graph without a last one that the loss computes itself. */
typedef struct shoal_activation_row {
  bool never_falls; /* as its argument rises: the largest value's activation is the largest of all */
  bool reads_input; /* its derivative is taken from its argument, not from its value */
  bool wants_he;    /* it passes about half of a signal on: weights before it begin larger */
  const char *onnx; /* the operator; NULL where shoal_onnx_activation writes none or several */
} shoal_activation_row;
extern const shoal_activation_row shoal_activation_rows[];
uint32_t shoal_lower_activation(shoal_lowering *l, uint32_t node);
void shoal_strip_output_activation(shoal_graph *graph);
/* nn/ops/flatten.c */
uint32_t shoal_lower_flatten(shoal_lowering *l, uint32_t input);

#endif
