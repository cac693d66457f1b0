/* activation.c: functions of single values, and softmax along the features. No parameters.
 *
 * Most activations stand at the end of another operation's line. A last softmax (before cross-entropy) or sigmoid
 * (before binary cross-entropy) is left out of the graph, because the loss takes logits. */
#include "nn/ops/activation.h"

#include <string.h>

#include "nn/loss.h"
#include "nn/lowering.h"
#include "nn/model_internal.h"

/* ---- the functions ---- */

static const char *onnx_identity(shoal_onnx_file *file, const char *x) {
  (void)file;
  return x;
}
static const char *onnx_sigmoid(shoal_onnx_file *file, const char *x) {
  return shoal_onnx_emit(file, "Sigmoid", x, NULL);
}
static const char *onnx_tanh(shoal_onnx_file *file, const char *x) {
  return shoal_onnx_emit(file, "Tanh", x, NULL);
}
static const char *onnx_relu(shoal_onnx_file *file, const char *x) {
  return shoal_onnx_emit(file, "Relu", x, NULL);
}
static const char *onnx_leaky_relu(shoal_onnx_file *file, const char *x) {
  shoal_onnx_attribute_float(file, "alpha", 0.01f);
  return shoal_onnx_emit(file, "LeakyRelu", x, NULL);
}
static const char *onnx_elu(shoal_onnx_file *file, const char *x) {
  return shoal_onnx_emit(file, "Elu", x, NULL);
}
/* x / 2 * (1 + erf(x / sqrt 2)) */
static const char *onnx_gelu(shoal_onnx_file *file, const char *x) {
  const char *erf = shoal_onnx_emit(
      file, "Erf", shoal_onnx_emit(file, "Mul", x, shoal_onnx_real(file, 0.70710678f), NULL), NULL);
  const char *half = shoal_onnx_emit(file, "Mul", x, shoal_onnx_real(file, 0.5f), NULL);
  return shoal_onnx_emit(file, "Mul", half, shoal_onnx_emit(file, "Add", erf, shoal_onnx_real(file, 1), NULL),
                         NULL);
}
static const char *onnx_silu(shoal_onnx_file *file, const char *x) {
  return shoal_onnx_emit(file, "Mul", x, shoal_onnx_emit(file, "Sigmoid", x, NULL), NULL);
}
static const char *onnx_softplus(shoal_onnx_file *file, const char *x) {
  return shoal_onnx_emit(file, "Softplus", x, NULL);
}
static const char *onnx_softmax(shoal_onnx_file *file, const char *x) {
  shoal_onnx_attribute_int(file, "axis", -1);
  return shoal_onnx_emit(file, "Softmax", x, NULL);
}

const char *const shoal_activation_words[] = {
    [SHOAL_ACT_IDENTITY] = "identity",
    [SHOAL_ACT_SIGMOID] = "sigmoid",
    [SHOAL_ACT_TANH] = "tanh",
    [SHOAL_ACT_RELU] = "relu",
    [SHOAL_ACT_LEAKY_RELU] = "leaky-relu",
    [SHOAL_ACT_ELU] = "elu",
    [SHOAL_ACT_GELU] = "gelu",
    [SHOAL_ACT_SILU] = "silu",
    [SHOAL_ACT_SOFTPLUS] = "softplus",
    [SHOAL_ACT_SOFTMAX] = "softmax",
};

const shoal_activation_row shoal_activation_rows[] = {
    [SHOAL_ACT_IDENTITY] = {.onnx = onnx_identity},
    [SHOAL_ACT_SIGMOID] = {.never_falls = true, .onnx = onnx_sigmoid},
    [SHOAL_ACT_TANH] = {.never_falls = true, .onnx = onnx_tanh},
    [SHOAL_ACT_RELU] = {.never_falls = true, .wants_he = true, .onnx = onnx_relu},
    [SHOAL_ACT_LEAKY_RELU] = {.never_falls = true, .wants_he = true, .onnx = onnx_leaky_relu},
    [SHOAL_ACT_ELU] = {.never_falls = true, .wants_he = true, .onnx = onnx_elu},
    [SHOAL_ACT_GELU] = {.reads_input = true, .wants_he = true, .onnx = onnx_gelu},
    [SHOAL_ACT_SILU] = {.reads_input = true, .wants_he = true, .onnx = onnx_silu},
    [SHOAL_ACT_SOFTPLUS] = {.never_falls = true, .onnx = onnx_softplus},
    [SHOAL_ACT_SOFTMAX] = {.onnx = onnx_softmax},
};

const char *shoal_activation_name(shoal_activation activation) { return shoal_activation_words[activation]; }

shoal_init_kind shoal_activation_init(shoal_activation activation) {
  return shoal_activation_rows[activation].wants_he ? SHOAL_INIT_HE : SHOAL_INIT_XAVIER;
}

const char *shoal_onnx_activation(shoal_onnx_export *e, shoal_activation activation, const char *x) {
  return shoal_activation_rows[activation].onnx(e->file, x);
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
  memset(&graph->nodes[graph->nodes_count], 0, sizeof *last);
}

/* ---- the node ---- */

static unsigned node_traits(const shoal_node *node) {
  if (node->activation == SHOAL_ACT_SOFTMAX) return SHOAL_OP_READS_OUTPUT;
  bool reads_input = shoal_activation_rows[node->activation].reads_input;
  return SHOAL_OP_GRADIENT_IN_PLACE |
         (reads_input ? SHOAL_OP_READS_INPUT : SHOAL_OP_READS_OUTPUT | SHOAL_OP_IN_PLACE);
}

enum { WORK_OF_VALUE = 16 }; /* about the floating point operations of a function of one value */

static void forward_band(const void *call, size_t first, size_t count, float *scratch) {
  const shoal_call *c = call;
  (void)scratch;
  c->kernels->act_forward(c->node->activation, count, c->x + first, c->y + first);
}

static void backward_band(const void *call, size_t first, size_t count, float *scratch) {
  const shoal_call *c = call;
  (void)scratch;
  c->kernels->act_backward(c->node->activation, count, c->x + first, c->y + first, c->dy + first,
                           c->dx[0] + first);
}

static void forward(const shoal_call *c) {
  size_t count = shoal_call_floats(c, c->out);
  if (c->node->activation == SHOAL_ACT_SOFTMAX)
    c->kernels->softmax_forward(shoal_call_rows(c, c->out), c->out->features, c->x, c->y);
  else
    shoal_call_bands(c, WORK_OF_VALUE * (double)count, count, SHOAL_LANES, forward_band, c);
}

static void backward(const shoal_call *c) {
  size_t count = shoal_call_floats(c, c->out);
  if (c->dx[0] == NULL) return;
  if (c->node->activation == SHOAL_ACT_SOFTMAX)
    c->kernels->softmax_backward(shoal_call_rows(c, c->out), c->out->features, c->y, c->dy, c->dx[0]);
  else
    shoal_call_bands(c, WORK_OF_VALUE * (double)count, count, SHOAL_LANES, backward_band, c);
}

static const char *onnx(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  return shoal_onnx_activation(e, node->activation, x);
}

const shoal_op shoal_op_activation = {.word = "activation",
                                      .is_inner = true,
                                      .lower = lower,
                                      .node_traits = node_traits,
                                      .forward = forward,
                                      .backward = backward,
                                      .onnx = onnx};
