/* op.h: an operation, whole: its line in the model text, its node in the graph, how it is computed and exported.
 *
 * An operation is one file, nn/ops/NAME.c, and one row of the table in nn/ops/table.h; a family such as rnn, lstm
 * and gru shares a file. The reader and writer of model texts, the graph, the plan, the execution, the exporters
 * and the reports are loops over rows: outside nn/ops/ nothing names a kind of node. docs/tour.md adds one, step by
 * step.
 *
 * A line of the text (shoal_layer) becomes one or more nodes (shoal_node). Most rows are both; some only ever stand
 * for a line (global-pool makes a node of pool) or for a node (the last step of a sequence).
 *
 * Ownership: rows are constants. Threads: any. */
#ifndef SHOAL_NN_OP_H
#define SHOAL_NN_OP_H

#include "nn/exec.h"

struct shoal_reading;
struct shoal_lowering;
struct shoal_onnx_export;

/* What a row says of itself, as bits. */
enum {
  /* How the backward pass uses memory. */
  SHOAL_OP_READS_INPUT = 1 << 0,       /* it reads the input again */
  SHOAL_OP_READS_OUTPUT = 1 << 1,      /* it reads the output again */
  SHOAL_OP_IN_PLACE = 1 << 2,          /* the output may overwrite the input */
  SHOAL_OP_GRADIENT_IN_PLACE = 1 << 3, /* the input's gradient may overwrite the output's */
  SHOAL_OP_PASSES_GRADIENT = 1 << 4,   /* every input's gradient is the output's: there is no backward */
  /* What kind of operation it is. */
  SHOAL_OP_INPUT = 1 << 5,           /* it stands for the data */
  SHOAL_OP_TAKES_TOKENS = 1 << 6,    /* its input is numbers of words; all others work on values */
  SHOAL_OP_HAS_MATRIX = 1 << 7,      /* it multiplies by weights: values after it have a scale of their own */
  SHOAL_OP_NORMALISES = 1 << 8,      /* the activation after it decides how the weights before it begin */
  SHOAL_OP_WHOLE_SHARD = 1 << 9,     /* a sample's outcome depends on the other samples of its tile */
  SHOAL_OP_RANDOM = 1 << 10,         /* it draws random numbers while training */
  SHOAL_OP_MIXES_STEPS = 1 << 11,    /* a step's outcome depends on other steps, without a state */
  SHOAL_OP_OWN_ACTIVATION = 1 << 12, /* the activation of its line works inside of it */
  SHOAL_OP_PADS_SAME = 1 << 13,      /* its line may say `pad same` */
  SHOAL_OP_JOINS = 1 << 14,          /* its line names earlier ones, which are inputs from the second on */
};

/* One run of a node, forward or backward, with all pointers resolved. They are memory of the plan's device: an operation
 * passes them to kernels and never looks at what they point to (device/device.h). */
typedef struct shoal_call {
  shoal_exec *exec;
  const shoal_kernels *kernels;
  const shoal_node *node;
  const shoal_shape *in, *out; /* of input 0 and of the output */
  uint32_t n, lanes;           /* samples, and lanes of images */
  const float *x;              /* input 0 */
  float *y;
  float *saved, *scratch;
  const void *own; /* of a band: what the operation has handed to it */
  uint32_t *mark;  /* a word of the host that stays from forward to backward */
  float *dy;       /* backward only, NULL forward, and so are these: */
  /* The gradients of the inputs; NULL for an input whose gradient nobody wants. A node with one input and no parameters
   * has dx[0] whenever it runs backward, which it does only when that gradient is wanted. */
  float *dx[SHOAL_LAYER_INPUTS_MAX];
} shoal_call;

typedef struct shoal_op {
  const char *word; /* its line begins with it, and reports call its nodes so */
  bool is_inner;    /* no line begins with the word: other lines make its nodes */
  unsigned options; /* of its line, beside the common ones: bits of shoal_option */
  unsigned traits;  /* SHOAL_OP_... */

  /* The line. Each may be NULL. */
  const struct shoal_field *arguments;                       /* of the layer (model_internal.h) */
  bool (*read)(struct shoal_reading *r, shoal_layer *layer); /* those that are no fields, behind them */
  void (*write)(const shoal_layer *layer, shoal_text *out);
  /* Sets layer->shape and counts the weights; NULL: the shape is the input's. */
  bool (*infer)(struct shoal_reading *r, shoal_layer *layer, const shoal_shape *in);
  /* Adds its nodes to the graph and returns the last one; NULL: one node of this row. */
  uint32_t (*lower)(struct shoal_lowering *l, uint32_t input);

  /* The node. */
  unsigned (*node_traits)(const shoal_node *node); /* beside `traits`, what depends on the node; or NULL */
  /* Floats that it keeps from forward to backward, and scratch; NULL: none. */
  size_t (*saved)(const shoal_node *node, uint32_t n);
  size_t (*scratch)(const shoal_node *node, const shoal_kernels *k, uint32_t n, bool backward);
  uint32_t carries;    /* recurrent: vectors of the output's width that go on from batch to batch */
  uint32_t overwrites; /* so many parameters, from the first, whose gradients a fresh tile overwrites */
  void (*forward)(const shoal_call *call);
  void (*backward)(const shoal_call *call);
  uint64_t (*flops)(const shoal_node *node); /* forward, of one sample; NULL: 0 */
  /* Writes its operators and returns the name of the value that they give. x is input 0, or that of the file. */
  const char *(*onnx)(struct shoal_onnx_export *e, const shoal_node *node, const char *x);
} shoal_op;

/* The table, in the order in which errors list the words. */
extern const shoal_op *const shoal_ops[];
extern const uint32_t shoal_ops_count;
enum { SHOAL_OPS_MAX = 64 };
/* The operation whose line begins with this word, or NULL. */
const shoal_op *shoal_op_named(const char *word, size_t length);
extern const shoal_op *const shoal_activation_op; /* of a line that is an activation alone */

static inline bool shoal_op_is(const shoal_op *op, unsigned trait) { return (op->traits & trait) != 0; }
static inline bool shoal_node_is(const shoal_node *node, unsigned trait) {
  return ((node->op->traits | (node->op->node_traits ? node->op->node_traits(node) : 0)) & trait) != 0;
}
/* What reports call the node: "conv", "tanh". */
const char *shoal_node_word(const shoal_node *node);
bool shoal_graph_has(const shoal_graph *graph, unsigned trait); /* in any of its nodes */

/* Parameter k of the node, its gradient, and the value of input k; NULL where the node has no such parameter. */
const float *shoal_call_weight(const shoal_call *call, int k);
float *shoal_call_gradient(const shoal_call *call, int k);
const float *shoal_call_input(const shoal_call *call, uint32_t k);
/* Of two things that share scratch. */
static inline size_t shoal_larger(size_t a, size_t b) { return a > b ? a : b; }
/* Rows of a tensor of this shape as a matrix, and all of its floats. */
static inline uint32_t shoal_call_rows(const shoal_call *call, const shoal_shape *shape) {
  return call->n * shape->steps;
}
static inline size_t shoal_call_floats(const shoal_call *call, const shoal_shape *shape) {
  return shoal_shape_floats(shape, call->n);
}
/* How normalisations and dropout see the output. */
shoal_norm shoal_call_norm(const shoal_call *call);
/* Products of matrices that lie row after row: c (m x n) = a (m x k) b (k x n), the same with b turned, which is n x k
 * then, and with a turned, which is k x m. Without bias, accumulation and scratch, of which shoal_call_gemm uses the
 * call's. */
shoal_gemm shoal_gemm_ab(uint32_t m, uint32_t n, uint32_t k, const float *a, const float *b, float *c);
shoal_gemm shoal_gemm_abt(uint32_t m, uint32_t n, uint32_t k, const float *a, const float *b, float *c);
shoal_gemm shoal_gemm_atb(uint32_t m, uint32_t n, uint32_t k, const float *a, const float *b, float *c);
void shoal_call_gemm(const shoal_call *call, shoal_gemm product);
/* sum = a + b, or a copy of a where b is NULL. */
void shoal_call_add(const shoal_call *call, size_t count, const float *a, const float *b, float *sum);
/* Adds the columns of x (rows x cols) to sums. */
void shoal_call_column_sums(const shoal_call *call, uint32_t rows, uint32_t cols, const float *x,
                            float *sums);
/* Calls f for stretches of 0 .. count - 1 that are multiples of `unit`, one for each thread of the team, where `work`,
 * about the floating point operations of all, is worth it. A stretch must give the same bits alone and within a larger
 * one. The call that f gets is this one, but for `own`, and its scratch, which is the thread's and as large as the
 * node's. */
typedef void (*shoal_band)(const shoal_call *call, size_t first, size_t count);
void shoal_call_bands(const shoal_call *call, const void *own, double work, size_t count, size_t unit,
                      shoal_band f);

/* Two lists cut for threads: one into `across` parts, the other into `down`. A cell is a part of each. */
typedef struct shoal_grid {
  uint32_t across, down;
} shoal_grid;
/* The one that costs least, of those with at most `cells` cells. */
typedef uint64_t (*shoal_grid_cost)(const void *own, shoal_grid grid);
shoal_grid shoal_best_grid(uint32_t cells, uint32_t across_most, uint32_t down_most, shoal_grid_cost cost,
                           const void *own);
/* So many things in so many parts: the size of the largest. */
static inline uint32_t shoal_largest_part(uint32_t size, uint32_t parts) {
  return (size + parts - 1) / parts;
}

#endif
