/* graph.h: the network as a list of simple nodes, and the table of its parameters.
 *
 * A layer of the text becomes one or more nodes: a dense layer with tanh is a dense
 * node and an activation node, two stacked bidirectional LSTMs are six. Nodes stand
 * in an order in which every input comes before its use; the last one is the output
 * that the loss sees. A final softmax (before cross-entropy) or sigmoid (before binary
 * cross-entropy) is left out, because the loss takes logits; `output_activation` says
 * what a prediction has to apply.
 *
 * All parameters live in one flat vector of floats, each at an offset that is a
 * multiple of 16. Statistics of batch normalisation live there too: training moves
 * them by averaging and not by the optimiser.
 *
 * Ownership: create, then destroy; the model must outlive the graph. Threads:
 * read-only after create. */
#ifndef SHOAL_NN_GRAPH_H
#define SHOAL_NN_GRAPH_H

#include "base/arena.h"
#include "base/random.h"
#include "nn/model.h"

typedef enum shoal_param_kind {
  SHOAL_PARAM_WEIGHT, /* the only kind that l2 applies to */
  SHOAL_PARAM_BIAS,
  SHOAL_PARAM_SCALE,     /* gamma and beta */
  SHOAL_PARAM_STATISTIC, /* running mean and variance: no gradient */
} shoal_param_kind;

typedef struct shoal_param {
  const char *name; /* layer name and role: "conv1.weight", "lstm2.recurrent" */
  shoal_param_kind kind;
  uint32_t dims_count;
  uint32_t dims[4];
  size_t offset, count; /* in floats */
  bool by_rows;         /* a table whose gradient is zero but for the rows of the batch's tokens; */
  size_t first_row;     /* of by_rows: its first row, counted through all such tables */
  /* The initial values: uniform in +-spread, or normal with that deviation, or constant. */
  enum { SHOAL_FILL_CONSTANT, SHOAL_FILL_UNIFORM, SHOAL_FILL_NORMAL } fill;
  float spread;
} shoal_param;

enum { SHOAL_RUN_FLOATS_MAX = 16384 };

/* A stretch of one parameter, so that every element of it is treated alike. */
typedef struct shoal_run {
  size_t offset;
  uint32_t count;
  shoal_param_kind kind;
  uint32_t param;
} shoal_run;

#define SHOAL_NO_PARAM UINT32_MAX

/* Added to the variance by batch and layer normalisation. */
#define SHOAL_NORM_EPS 1e-5f

enum { SHOAL_NODE_PARAMS_MAX = 4 };

typedef struct shoal_node {
  const struct shoal_op *op;
  uint32_t layer; /* index of the layer it comes from */
  uint32_t inputs_count;
  uint32_t inputs[SHOAL_LAYER_INPUTS_MAX];
  shoal_shape in, shape; /* of input 0, or of the output where there is none, and of the output */
  uint32_t params[SHOAL_NODE_PARAMS_MAX]; /* in the order that its operation gives; SHOAL_NO_PARAM */
  shoal_activation activation;            /* of an activation, and an rnn's own (tanh or relu) */
  shoal_pool_kind pool;
  shoal_window window; /* conv, pool; lanes is left 0 */
  bool reverse;        /* recurrent: from the last step to the first */
  uint32_t step;       /* of a step */
  uint32_t columns;    /* of a lookup: how many of the input's last values are numbers of rows */
  float rate;          /* of dropout */
} shoal_node;

typedef struct shoal_graph {
  const shoal_model *model;
  uint32_t nodes_count;
  shoal_node *nodes;
  uint32_t params_count;
  shoal_param *params;
  uint32_t runs_count;
  shoal_run *runs;       /* of the whole flat vector, in order */
  size_t weights_count;  /* floats in the flat vector, a multiple of 16, padding included */
  uint64_t trainable;    /* parameters without padding and statistics */
  uint32_t samples_unit; /* samples that stay together: a vector of them where there are images, else 1 */
  shoal_activation output_activation;
  shoal_arena memory; /* of all of these */
} shoal_graph;

shoal_status shoal_graph_create(shoal_graph **out, const shoal_model *model, shoal_error *err);
void shoal_graph_destroy(shoal_graph *graph);
/* The shape of the last node. */
const shoal_shape *shoal_graph_output(const shoal_graph *graph);
/* True if the flat vector of one is the other's as well, as that of a text with another number of steps. */
bool shoal_graph_same_params(const shoal_graph *a, const shoal_graph *b);

/* Writes the initial values: a pure function of the seed, the parameter's place and
 * the element. Padding is zero. */
void shoal_graph_init_weights(const shoal_graph *graph, uint64_t seed, float *weights);

/* Floating point operations of one sample: multiply-adds of matrix products count as two,
 * the rest is not counted. The whole graph's: forward alone, or a whole training step. */
typedef struct shoal_flops {
  uint64_t forward, input_gradient, weight_gradient;
} shoal_flops;

shoal_flops shoal_node_flops(const shoal_graph *graph, const shoal_node *node);
uint64_t shoal_graph_flops(const shoal_graph *graph, bool training);

/* SHA-256 over name, shape and values of every parameter, in order, without padding. */
void shoal_graph_weights_sha256(const shoal_graph *graph, const float *weights, char out[65]);

#endif
