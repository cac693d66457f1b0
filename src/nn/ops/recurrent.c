/* recurrent.c: rnn, lstm and gru.
 *
 * Parameters: input weight (in x gates h), recurrent weight (h x gates h), bias (gates h), and gru's recurrent bias
 * (gates h). Gates: lstm i f g o, gru r z n.
 *
 * Input products of all steps are one matrix product; then step after step adds the recurrent part. Backward goes
 * through the steps the other way and forms the weight gradients from all of them at once.
 *
 * Saved between the passes, each part a whole number of vectors:
 *   rnn   h0
 *   lstm  h0, c0, gates (steps x n x 4h), cells (steps x n x h)
 *   gru   h0, gates of x (steps x n x 3h), gates of h (steps x n x 3h) */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "nn/lowering.h"
#include "nn/model_internal.h"
#include "nn/onnx_op.h"
#include "nn/ops/table.h"

static uint32_t gates_of(const shoal_op *op) {
  return op == &shoal_op_lstm ? 4 : op == &shoal_op_gru ? 3 : 1;
}

/* ---- the line ---- */

static bool read(shoal_reading *r, shoal_layer *layer) {
  layer->bias = true;
  layer->stack = 1;
  if (layer->op == &shoal_op_rnn) layer->activation = SHOAL_ACT_TANH;
  return shoal_words_u32(&r->words, "the number of outputs", 1, INT32_MAX, &layer->units);
}

static void write(const shoal_model *model, const shoal_layer *layer, shoal_text *out) {
  (void)model;
  shoal_text_addf(out, " %u", layer->units);
  if (layer->stack > 1) shoal_text_addf(out, " layers %u", layer->stack);
  if (layer->bidirectional) shoal_text_addf(out, " bidirectional");
  if (layer->last) shoal_text_addf(out, " last");
}

static bool infer(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  shoal_words *w = &r->words;
  if (in->kind != SHOAL_SEQUENCE)
    return shoal_wrong_input(r, in, "a sequence", "`repeat T` or `reshape sequence TxF` can make one");
  if (layer->bidirectional && r->model->carry)
    return shoal_words_fail(
        w, r->options[SHOAL_OPTION_BIDIRECTIONAL],
        "a net that carries its state cannot read backwards; leave out `bidirectional` here "
        "or `carry` on line %u",
        r->model->layers[0].line);
  if (layer->op == &shoal_op_rnn && layer->activation != SHOAL_ACT_TANH &&
      layer->activation != SHOAL_ACT_RELU)
    return shoal_words_fail(w, r->options[SHOAL_OPTION_ACTIVATION],
                            "its activation is tanh or relu; put '%s' on a line of its own",
                            shoal_activation_name(layer->activation));

  uint64_t directions = layer->bidirectional ? 2 : 1, width = layer->units;
  uint64_t outputs = width * directions;
  if (outputs > SHOAL_VALUES_MAX) return shoal_too_many_values(r, w->head, "its output");
  layer->shape = layer->last ? shoal_vector_of(outputs) : shoal_sequence_of(in->steps, (uint32_t)outputs);
  /* Weights from the input and from the step before, and biases: gru has two of those. */
  uint64_t biases = layer->op == &shoal_op_gru ? 2 : 1, inputs = in->features;
  for (uint32_t i = 0; i < layer->stack; i++) {
    uint64_t count = shoal_product(directions, gates_of(layer->op), width, inputs + width + biases);
    if (!shoal_count_weights(r, count)) return false;
    inputs = outputs;
  }
  return true;
}

/* One direction of one recurrent layer. */
static uint32_t lower_cell(shoal_lowering *l, uint32_t input, bool reverse, const char *part) {
  const shoal_layer *layer = l->layer;
  uint32_t in = l->graph->nodes[input].shape.features, h = layer->units, width = gates_of(layer->op) * h;
  uint32_t node =
      shoal_lower_node(l, layer->op, input, shoal_sequence_of(l->graph->nodes[input].shape.steps, h));
  shoal_param *weight =
      shoal_lower_param(l, node, 0, part, "weight", SHOAL_PARAM_WEIGHT, 2, (uint32_t[]){in, width});
  shoal_lower_fill(l, weight, h, h, SHOAL_INIT_LECUN);
  shoal_param *recurrent =
      shoal_lower_param(l, node, 1, part, "recurrent", SHOAL_PARAM_WEIGHT, 2, (uint32_t[]){h, width});
  shoal_lower_fill(l, recurrent, h, h, SHOAL_INIT_LECUN);
  shoal_lower_param(l, node, 2, part, "bias", SHOAL_PARAM_BIAS, 1, &width);
  if (layer->op == &shoal_op_gru)
    shoal_lower_param(l, node, 3, part, "recurrent_bias", SHOAL_PARAM_BIAS, 1, &width);
  l->graph->nodes[node].reverse = reverse;
  l->graph->nodes[node].activation = layer->activation;
  return node;
}

static uint32_t last_step(shoal_lowering *l, uint32_t input, uint32_t step) {
  uint32_t node = shoal_lower_node(l, &shoal_op_step, input, shoal_vector_of(l->layer->units));
  l->graph->nodes[node].step = step;
  return node;
}

static uint32_t lower_directions(shoal_lowering *l, uint32_t input, const char *part, bool last) {
  uint32_t steps = l->graph->nodes[input].shape.steps, h = l->layer->units;
  uint32_t forward = lower_cell(l, input, false, part);
  if (!l->layer->bidirectional) return last ? last_step(l, forward, steps - 1) : forward;
  char reverse_part[48];
  snprintf(reverse_part, sizeof reverse_part, "%s.reverse", part);
  uint32_t backward = lower_cell(l, input, true, reverse_part);
  shoal_shape both = shoal_sequence_of(steps, 2 * h);
  if (last) { /* each direction's last step is the one that it computed last */
    forward = last_step(l, forward, steps - 1);
    backward = last_step(l, backward, 0);
    both = shoal_vector_of(2 * (uint64_t)h);
  }
  uint32_t node = shoal_lower_node(l, &shoal_op_concat, forward, both);
  shoal_lower_input(l, node, backward);
  return node;
}

static uint32_t lower(shoal_lowering *l, uint32_t input) {
  for (uint32_t k = 0; k < l->layer->stack; k++) {
    char part[32] = "";
    if (l->layer->stack > 1) snprintf(part, sizeof part, ".%u", k + 1);
    input = lower_directions(l, input, part, l->layer->last && k + 1 == l->layer->stack);
  }
  return input;
}

/* ---- the node ---- */

/* One run of a node. x is steps x n x in, y steps x n x h. */
typedef struct cell {
  const shoal_kernels *kernels;
  shoal_team *team; /* or NULL */
  bool fresh;       /* dweight and drecurrent are overwritten, not added to */
  const shoal_op *op;
  shoal_activation activation; /* rnn */
  bool reverse;
  uint32_t n, steps, in, h;
  const float *x;
  float *y;
  const float *weight, *recurrent, *bias, *recurrent_bias;
  float *saved, *scratch;
  float *state;        /* carried rows: h, then c for an lstm; NULL to start from zero */
  size_t state_stride; /* floats from the h rows to the c rows */
} cell;

static cell cell_of(const shoal_call *c) {
  const shoal_exec *exec = c->exec;
  cell made = {.kernels = c->kernels,
               .team = exec->team,
               .fresh = exec->fresh,
               .op = c->node->op,
               .activation = c->node->activation,
               .reverse = c->node->reverse,
               .n = c->n,
               .steps = c->in->steps,
               .in = c->in->features,
               .h = c->out->features,
               .x = c->x,
               .y = c->y,
               .weight = shoal_call_weight(c, 0),
               .recurrent = shoal_call_weight(c, 1),
               .bias = shoal_call_weight(c, 2),
               .recurrent_bias = shoal_call_weight(c, 3),
               .saved = c->saved,
               .scratch = c->scratch};
  if (exec->carry != NULL) {
    made.state = shoal_exec_carry(exec, c->node);
    made.state_stride = (size_t)exec->carry_rows * made.h;
  }
  return made;
}

static size_t whole(size_t floats) { return (floats + SHOAL_LANES - 1) / SHOAL_LANES * SHOAL_LANES; }

/* Hands out parts of a buffer one after the other. */
static float *take(float **cursor, size_t floats) {
  float *part = *cursor;
  *cursor += whole(floats);
  return part;
}

static size_t saved(const shoal_graph *graph, const shoal_node *node, uint32_t n) {
  (void)graph;
  size_t h = node->shape.features, rows = (size_t)node->shape.steps * n, state = whole(n * h);
  if (node->op == &shoal_op_lstm) return 2 * state + whole(rows * 4 * h) + whole(rows * h);
  if (node->op == &shoal_op_gru) return state + 2 * whole(rows * 3 * h);
  return state;
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static size_t scratch(const shoal_graph *graph, const shoal_kernels *k, const shoal_node *node, uint32_t n,
                      bool backward) {
  uint32_t in = graph->nodes[node->inputs[0]].shape.features, h = node->shape.features;
  uint32_t width = gates_of(node->op) * h, rows = node->shape.steps * n;
  if (!backward) return larger(k->gemm_scratch(rows, width, in), k->gemm_scratch(n, width, h));
  size_t gemm = larger(k->gemm_scratch(rows, in, width), k->gemm_scratch(n, h, width));
  gemm = larger(gemm, larger(k->gemm_scratch(in, width, rows), k->gemm_scratch(h, width, rows)));
  size_t gradients = whole((size_t)rows * width);
  if (node->op == &shoal_op_gru) gradients *= 2;
  return gradients + 2 * whole((size_t)n * h) + whole((size_t)width * h) + gemm;
}

/* The parts of `saved`, the same for both passes. */
typedef struct parts {
  float *h0, *c0, *gates, *cells, *gates_h;
} parts;

static parts saved_parts(const cell *c) {
  float *cursor = c->saved;
  size_t rows = (size_t)c->steps * c->n, state = (size_t)c->n * c->h;
  parts p = {.h0 = take(&cursor, state)};
  if (c->op == &shoal_op_lstm) {
    p.c0 = take(&cursor, state);
    p.gates = take(&cursor, rows * 4 * c->h);
    p.cells = take(&cursor, rows * c->h);
  }
  if (c->op == &shoal_op_gru) {
    p.gates = take(&cursor, rows * 3 * c->h);
    p.gates_h = take(&cursor, rows * 3 * c->h);
  }
  return p;
}

static void load_state(const cell *c, const parts *p) {
  const shoal_kernels *k = c->kernels;
  size_t state = (size_t)c->n * c->h;
  if (c->state != NULL) {
    k->copy_rows(1, state, c->state, 0, p->h0, 0);
    if (p->c0 != NULL) k->copy_rows(1, state, c->state + c->state_stride, 0, p->c0, 0);
  } else {
    k->zero(state, p->h0);
    if (p->c0 != NULL) k->zero(state, p->c0);
  }
}

static void store_state(const cell *c, const parts *p) {
  if (c->state == NULL) return;
  SHOAL_ASSERT(!c->reverse);
  size_t state = (size_t)c->n * c->h, last = (size_t)(c->steps - 1) * state;
  c->kernels->copy_rows(1, state, c->y + last, 0, c->state, 0);
  if (p->cells != NULL) c->kernels->copy_rows(1, state, p->cells + last, 0, c->state + c->state_stride, 0);
}

/* out (rows x width) [+]= a (rows x in) * w (in x width) */
static void product(const cell *c, uint32_t rows, uint32_t width, uint32_t in, const float *a, const float *w,
                    const float *bias, bool accumulate, float *out, float *scratch) {
  shoal_team_gemm(c->team, c->kernels,
                  &(shoal_gemm){.m = rows,
                                .n = width,
                                .k = in,
                                .a = a,
                                .a_row = in,
                                .a_col = 1,
                                .b = w,
                                .b_row = width,
                                .b_col = 1,
                                .c = out,
                                .c_row = width,
                                .bias = bias,
                                .accumulate = accumulate,
                                .scratch = scratch});
}

/* out (rows x in) = d (rows x width) * w^T, for w (in x width) */
static void product_back(const cell *c, uint32_t rows, uint32_t width, uint32_t in, const float *d,
                         const float *w, float *out, float *scratch) {
  shoal_team_gemm(c->team, c->kernels,
                  &(shoal_gemm){.m = rows,
                                .n = in,
                                .k = width,
                                .a = d,
                                .a_row = width,
                                .a_col = 1,
                                .b = w,
                                .b_row = 1,
                                .b_col = width,
                                .c = out,
                                .c_row = in,
                                .scratch = scratch});
}

/* dw (in x width) [+]= a^T (in x rows) * d (rows x width) */
static void product_weights(const cell *c, uint32_t rows, uint32_t width, uint32_t in, const float *a,
                            const float *d, bool accumulate, float *dw, float *scratch) {
  shoal_team_gemm(c->team, c->kernels,
                  &(shoal_gemm){.m = in,
                                .n = width,
                                .k = rows,
                                .a = a,
                                .a_row = 1,
                                .a_col = in,
                                .b = d,
                                .b_row = width,
                                .b_col = 1,
                                .c = dw,
                                .c_row = width,
                                .accumulate = accumulate,
                                .scratch = scratch});
}

static void forward(const shoal_call *call) {
  const cell made = cell_of(call), *c = &made;
  const shoal_kernels *k = c->kernels;
  uint32_t width = gates_of(c->op) * c->h, rows = c->steps * c->n;
  size_t state = (size_t)c->n * c->h, step_gates = (size_t)c->n * width;
  parts p = saved_parts(c);
  load_state(c, &p);
  float *before = c->op == &shoal_op_rnn ? c->y : p.gates; /* gates before activation */
  product(c, rows, width, c->in, c->x, c->weight, c->bias, false, before, c->scratch);

  const float *h_prev = p.h0, *c_prev = p.c0;
  for (uint32_t s = 0; s < c->steps; s++) {
    uint32_t t = c->reverse ? c->steps - 1 - s : s;
    float *y = c->y + t * state, *gates = before + t * step_gates;
    if (c->op == &shoal_op_gru) {
      float *gates_h = p.gates_h + t * step_gates;
      product(c, c->n, width, c->h, h_prev, c->recurrent, c->recurrent_bias, false, gates_h, c->scratch);
      k->gru_forward(c->n, c->h, gates, gates_h, h_prev, y);
    } else {
      if (s > 0 || c->state != NULL)
        product(c, c->n, width, c->h, h_prev, c->recurrent, NULL, true, gates, c->scratch);
      if (c->op == &shoal_op_lstm) {
        float *cells = p.cells + t * state;
        k->lstm_forward(c->n, c->h, gates, c_prev, cells, y);
        c_prev = cells;
      } else {
        k->act_forward(c->activation, state, y, y);
      }
    }
    h_prev = y;
  }
  store_state(c, &p);
}

static void backward(const shoal_call *call) {
  const cell made = cell_of(call), *c = &made;
  float *dweight = shoal_call_gradient(call, 0), *drecurrent = shoal_call_gradient(call, 1),
        *drecurrent_bias = shoal_call_gradient(call, 3);
  const shoal_kernels *k = c->kernels;
  uint32_t width = gates_of(c->op) * c->h, rows = c->steps * c->n;
  size_t state = (size_t)c->n * c->h, step_gates = (size_t)c->n * width;
  parts p = saved_parts(c);
  float *cursor = c->scratch;
  float *dgates = take(&cursor, (size_t)rows * width);
  float *dgates_h = c->op == &shoal_op_gru ? take(&cursor, (size_t)rows * width) : dgates;
  float *dh = take(&cursor, state), *dc = take(&cursor, state);
  float *recurrent_back = take(&cursor, (size_t)width * c->h); /* transposed once for all steps */
  float *gemm = cursor;
  k->lanes_to_rows(c->h, width, width, c->recurrent, recurrent_back);
  k->zero(state, dc);

  for (uint32_t s = c->steps; s-- > 0;) {
    uint32_t t = c->reverse ? c->steps - 1 - s : s;
    uint32_t t_prev = c->reverse ? t + 1 : t - 1; /* only used when s > 0 */
    float *dy = call->dy + t * state, *dg = dgates + t * step_gates, *dg_h = dgates_h + t * step_gates;
    const float *h_prev = s > 0 ? c->y + t_prev * state : p.h0;
    if (s + 1 < c->steps) k->add(state, dy, dh, dy);
    if (c->op == &shoal_op_lstm) {
      const float *c_prev = s > 0 ? p.cells + t_prev * state : p.c0;
      k->lstm_backward(c->n, c->h, p.gates + t * step_gates, c_prev, p.cells + t * state, dy, dc, dg);
    } else if (c->op == &shoal_op_gru) {
      k->gru_backward(c->n, c->h, p.gates + t * step_gates, p.gates_h + t * step_gates, h_prev, dy, dg, dg_h);
      k->copy_rows(1, state, dy, 0, dh, 0); /* the direct part of the gradient of h_prev */
    } else {
      k->act_backward(c->activation, state, NULL, c->y + t * state, dy, dg);
    }
    if (s > 0) product(c, c->n, c->h, width, dg_h, recurrent_back, NULL, c->op == &shoal_op_gru, dh, gemm);
  }

  if (call->dx[0] != NULL) product_back(c, rows, width, c->in, dgates, c->weight, call->dx[0], gemm);
  product_weights(c, rows, width, c->in, c->x, dgates, !c->fresh, dweight, gemm);
  k->column_sums(rows, width, dgates, shoal_call_gradient(call, 2));
  if (drecurrent_bias != NULL) k->column_sums(rows, width, dgates_h, drecurrent_bias);
  /* The recurrent weight saw h0 at the first step and the step before at all others. */
  bool accumulate = !c->fresh;
  if (c->state != NULL) {
    const float *d_first = dgates_h + (c->reverse ? c->steps - 1 : 0) * step_gates;
    product_weights(c, c->n, width, c->h, p.h0, d_first, accumulate, drecurrent, gemm);
    accumulate = true;
  }
  /* With a single step this is a sum of nothing, but it clears. */
  const float *h_before = c->reverse ? c->y + state : c->y;
  const float *d_after = c->reverse ? dgates_h : dgates_h + step_gates;
  product_weights(c, rows - c->n, width, c->h, h_before, d_after, accumulate, drecurrent, gemm);
}

static uint64_t flops(const shoal_graph *graph, const shoal_node *node) {
  uint64_t in = graph->nodes[node->inputs[0]].shape.features, h = node->shape.features;
  return 2 * gates_of(node->op) * (uint64_t)node->shape.steps * (in + h) * h;
}

/* A weight of `in` rows and gates * h columns as 1 x gates * h x in, with the gates in
 * ONNX's order: its gate g is ours at order[g]. */
static const char *gate_weight(shoal_onnx_export *e, uint32_t index, uint32_t gates, const int *order) {
  const shoal_param *param = &e->graph->params[index];
  size_t in = param->dims[0], width = param->dims[1], h = width / gates;
  const float *from = e->weights + param->offset;
  float *to = shoal_arena_array(&e->file->memory, param->count, sizeof *to);
  e->file->failed |= !to;
  for (size_t g = 0; to && g < gates; g++) {
    for (size_t j = 0; j < h; j++) {
      for (size_t i = 0; i < in; i++) to[(g * h + j) * in + i] = from[i * width + (size_t)order[g] * h + j];
    }
  }
  return shoal_onnx_param_as(e, index, 3, (int64_t[]){1, (int64_t)width, (int64_t)in}, to);
}

/* Both biases, of the input and of the recurrent product, one after the other. Where there
 * is only one, the other is zero. */
static const char *gate_bias(shoal_onnx_export *e, const shoal_node *node, uint32_t gates, const int *order) {
  const shoal_param *param = &e->graph->params[node->params[2]];
  size_t width = param->count, h = width / gates;
  float *to = shoal_arena_array(&e->file->memory, 2 * width, sizeof *to);
  e->file->failed |= !to;
  for (size_t half = 0; to && half < 2; half++) {
    uint32_t index = node->params[2 + half];
    for (size_t g = 0; index != SHOAL_NO_PARAM && g < gates; g++) {
      const float *from = e->weights + e->graph->params[index].offset + (size_t)order[g] * h;
      memcpy(to + half * width + g * h, from, h * sizeof *to);
    }
  }
  return shoal_onnx_param_as(e, node->params[2], 2, (int64_t[]){1, 2 * (int64_t)width}, to);
}

/* ONNX wants the steps in front, and gives them with an axis for the direction. */
static const char *onnx(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  static const int rnn_order[] = {0};
  static const int lstm_order[] = {0, 3, 1, 2}; /* i o f g, from i f g o */
  static const int gru_order[] = {1, 0, 2};     /* z r n, from r z n */
  const char *op = "RNN";
  const int *order = rnn_order;
  uint32_t gates = gates_of(node->op);
  if (node->op == &shoal_op_lstm) {
    op = "LSTM";
    order = lstm_order;
  } else if (node->op == &shoal_op_gru) {
    op = "GRU";
    order = gru_order;
  }
  x = shoal_onnx_transpose(e, x, 3, (int64_t[]){1, 0, 2});
  const char *weight = gate_weight(e, node->params[0], gates, order);
  const char *again = gate_weight(e, node->params[1], gates, order);
  const char *bias = gate_bias(e, node, gates, order);
  shoal_onnx_attribute_int(e->file, "hidden_size", node->shape.features);
  shoal_onnx_attribute_text(e->file, "direction", node->reverse ? "reverse" : "forward");
  if (node->op == &shoal_op_gru) shoal_onnx_attribute_int(e->file, "linear_before_reset", 1);
  if (node->op == &shoal_op_rnn)
    shoal_onnx_attribute_texts(e->file, "activations", 1,
                               (const char *[]){node->activation == SHOAL_ACT_RELU ? "Relu" : "Tanh"});
  const char *y = shoal_onnx_emit(e->file, op, x, weight, again, bias, NULL);
  y = shoal_onnx_emit(e->file, "Squeeze", y, shoal_onnx_ints(e->file, 1, (int64_t[]){1}), NULL);
  return shoal_onnx_transpose(e, y, 3, (int64_t[]){1, 0, 2});
}

#define ROW(name, also, vectors)                                                                            \
  {                                                                                                         \
    .word = name,                                                                                           \
    .options = SHOAL_TAKES(LAYERS) | SHOAL_TAKES(BIDIRECTIONAL) | SHOAL_TAKES(LAST) | SHOAL_TAKES(INIT),    \
    .traits = SHOAL_OP_READS_INPUT | SHOAL_OP_READS_OUTPUT | SHOAL_OP_HAS_MATRIX | (also), .read = read,    \
    .write = write, .infer = infer, .lower = lower, .saved = saved, .scratch = scratch, .carries = vectors, \
    .overwrites = 2, .forward = forward, .backward = backward, .flops = flops, .onnx = onnx                 \
  }

const shoal_op shoal_op_rnn = ROW("rnn", SHOAL_OP_OWN_ACTIVATION, 1);
const shoal_op shoal_op_lstm = ROW("lstm", 0, 2);
const shoal_op shoal_op_gru = ROW("gru", 0, 1);
