/* activation.c: functions of single values, and softmax along the features. No parameters.
 *
 * Most activations stand at the end of another operation's line. A last softmax (before cross-entropy) or sigmoid
 * (before binary cross-entropy) is left out of the graph, because the loss takes logits. */
#include "nn/loss.h"
#include "nn/lowering.h"
#include "nn/model_internal.h"
#include "nn/onnx.h"
#include "nn/ops/table.h"

/* ---- the functions ---- */

#define EACH_ACTIVATION(X)                                                                          \
  X(SHOAL_ACT_IDENTITY, "identity", .onnx = NULL)                                                   \
  X(SHOAL_ACT_SIGMOID, "sigmoid", .never_falls = true, .onnx = "Sigmoid")                           \
  X(SHOAL_ACT_TANH, "tanh", .never_falls = true, .onnx = "Tanh")                                    \
  X(SHOAL_ACT_RELU, "relu", .never_falls = true, .wants_he = true, .onnx = "Relu")                  \
  X(SHOAL_ACT_LEAKY_RELU, "leaky-relu", .never_falls = true, .wants_he = true, .onnx = "LeakyRelu") \
  X(SHOAL_ACT_ELU, "elu", .never_falls = true, .wants_he = true, .onnx = "Elu")                     \
  X(SHOAL_ACT_GELU, "gelu", .reads_input = true, .wants_he = true)                                  \
  X(SHOAL_ACT_SILU, "silu", .reads_input = true, .wants_he = true)                                  \
  X(SHOAL_ACT_SOFTPLUS, "softplus", .never_falls = true, .onnx = "Softplus")                        \
  X(SHOAL_ACT_SOFTMAX, "softmax", .onnx = "Softmax")

const char *const shoal_activation_words[] = {EACH_ACTIVATION(SHOAL_WORD_OF) NULL};
_Static_assert(sizeof shoal_activation_words / sizeof *shoal_activation_words == SHOAL_ACTIVATION_WORDS + 1,
               "nn/model.h counts the activations");
const shoal_activation_row shoal_activation_rows[] = {EACH_ACTIVATION(SHOAL_ROW_OF)};

/* x / 2 * (1 + erf(x / sqrt 2)) */
static const char *onnx_gelu(shoal_onnx_file *file, const char *x) {
  const char *scaled = shoal_onnx_emit(file, "Mul", x, shoal_onnx_real(file, 0.70710678f), NULL);
  const char *erf = shoal_onnx_emit(file, "Erf", scaled, NULL);
  const char *half = shoal_onnx_emit(file, "Mul", x, shoal_onnx_real(file, 0.5f), NULL);
  return shoal_onnx_emit(file, "Mul", half, shoal_onnx_emit(file, "Add", erf, shoal_onnx_real(file, 1), NULL),
                         NULL);
}

const char *shoal_onnx_activation(shoal_onnx_export *e, shoal_activation activation, const char *x) {
  shoal_onnx_file *file = e->file;
  switch (activation) {
  case SHOAL_ACT_IDENTITY: return x;
  case SHOAL_ACT_GELU: return onnx_gelu(file, x);
  case SHOAL_ACT_SILU:
    return shoal_onnx_emit(file, "Mul", x, shoal_onnx_emit(file, "Sigmoid", x, NULL), NULL);
  case SHOAL_ACT_LEAKY_RELU: shoal_onnx_attribute_float(file, "alpha", 0.01f); break;
  case SHOAL_ACT_SOFTMAX: shoal_onnx_attribute_int(file, "axis", -1); break;
  default: break;
  }
  return shoal_onnx_emit(file, shoal_activation_rows[activation].onnx, x, NULL);
}

/* ---- the line ---- */

static uint32_t lower(shoal_lowering *l, uint32_t input) {
  (void)l;
  return input; /* the line's activation comes last, as on every line */
}

uint32_t shoal_lower_activation(shoal_lowering *l, uint32_t node) {
  shoal_activation activation = l->layer->activation;
  if (activation == SHOAL_ACT_IDENTITY || shoal_op_is(l->layer->op, SHOAL_OP_OWN_ACTIVATION)) return node;
  node = shoal_lower_node(l, &shoal_op_activation, node, l->graph->nodes[node].shape);
  l->graph->nodes[node].activation = activation;
  return node;
}

void shoal_strip_output_activation(shoal_graph *graph) {
  shoal_activation wanted = graph->output_activation = shoal_loss_rows[graph->model->recipe.loss].output;
  const shoal_node *last = &graph->nodes[graph->nodes_count - 1];
  if (wanted == SHOAL_ACT_IDENTITY || last->op != &shoal_op_activation || last->activation != wanted) return;
  graph->nodes_count--;
}

/* ---- the node ---- */

static unsigned node_traits(const shoal_node *node) {
  if (node->activation == SHOAL_ACT_SOFTMAX) return SHOAL_OP_READS_OUTPUT;
  bool reads_input = shoal_activation_rows[node->activation].reads_input;
  return SHOAL_OP_GRADIENT_IN_PLACE |
         (reads_input ? SHOAL_OP_READS_INPUT : SHOAL_OP_READS_OUTPUT | SHOAL_OP_IN_PLACE);
}

enum { WORK_OF_VALUE = 16 }; /* about the floating point operations of a function of one value */

/* Some of the values, forward or backward. */
static void band(const shoal_call *c, size_t first, size_t count) {
  if (c->dy == NULL)
    c->kernels->act_forward(c->node->activation, count, c->x + first, c->y + first);
  else
    c->kernels->act_backward(c->node->activation, count, c->x + first, c->y + first, c->dy + first,
                             c->dx[0] + first);
}

/* Some of the rows. */
static void softmax_band(const shoal_call *c, size_t first, size_t count) {
  uint32_t rows = (uint32_t)count, features = c->out->features;
  size_t at = first * features;
  if (c->dy == NULL)
    c->kernels->softmax_forward(rows, features, c->x + at, c->y + at);
  else
    c->kernels->softmax_backward(rows, features, c->y + at, c->dy + at, c->dx[0] + at);
}

static void run(const shoal_call *c) {
  size_t count = shoal_call_floats(c, c->out);
  if (c->node->activation != SHOAL_ACT_SOFTMAX)
    shoal_call_bands(c, NULL, WORK_OF_VALUE * (double)count, count, SHOAL_LANES, band);
  else
    shoal_call_bands(c, NULL, WORK_OF_VALUE * (double)count, shoal_call_rows(c, c->out), 1, softmax_band);
}

static const char *onnx(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  return shoal_onnx_activation(e, node->activation, x);
}

const shoal_op shoal_op_activation = {.word = "activation",
                                      .is_inner = true,
                                      .lower = lower,
                                      .node_traits = node_traits,
                                      .forward = run,
                                      .backward = run,
                                      .onnx = onnx};
