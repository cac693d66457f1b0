/* recurrent.c: rnn, lstm and gru.
 *
 * Parameters: input weight (in x gates h), recurrent weight (h x gates h), bias (gates h), and gru's recurrent bias
 * (gates h). Gates: lstm i f g o, gru r z n.
 *
 * Input products of all steps are one matrix product; then step after step adds the recurrent part. Backward goes
 * through the steps the other way and forms the weight gradients from all of them at once. In a step threads share the
 * units: each computes the gates of its own and what follows from them, and they wait for each other once a step.
 *
 * Saved between the passes, each part a whole number of vectors:
 *   rnn   h0
 *   lstm  h0, c0, gates (steps x n x 4h), cells (steps x n x h)
 *   gru   h0, gates of x (steps x n x 3h), gates of h (steps x n x 3h) */
#include <stdio.h>

#include "base/assert.h"
#include "nn/lowering.h"
#include "nn/model_internal.h"
#include "nn/onnx.h"
#include "nn/ops/table.h"

/* What the three are: their gates, and their operator in ONNX, which has our gate order[g] as its gate g. */
typedef struct family {
  uint32_t gates;
  const char *onnx;
  uint32_t order[4];
} family;

static const family rnn = {1, "RNN", {0}};
static const family lstm = {4, "LSTM", {0, 3, 1, 2}}; /* i o f g, from i f g o */
static const family gru = {3, "GRU", {1, 0, 2}};      /* z r n, from r z n */

static const family *family_of(const shoal_op *op) {
  return op == &shoal_op_lstm ? &lstm : op == &shoal_op_gru ? &gru : &rnn;
}

static uint32_t gates_of(const shoal_op *op) { return family_of(op)->gates; }

/* ---- the line ---- */

static bool infer(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  shoal_words *w = &r->words;
  bool is_rnn = layer->op == &shoal_op_rnn;
  if (layer->stack == 0) layer->stack = 1;
  if (is_rnn && !r->options[SHOAL_OPTION_ACTIVATION].length) layer->activation = SHOAL_ACT_TANH;
  if (in->kind != SHOAL_SEQUENCE)
    return shoal_wrong_input(r, in, "a sequence", "`repeat T` or `reshape sequence TxF` can make one");
  if (layer->bidirectional && r->model->carry)
    return shoal_words_fail(
        w, r->options[SHOAL_OPTION_BIDIRECTIONAL],
        "a net that carries its state cannot read backwards; leave out `bidirectional` here "
        "or `carry` on line %u",
        r->model->layers[0].line);
  if (is_rnn && layer->activation != SHOAL_ACT_TANH && layer->activation != SHOAL_ACT_RELU)
    return shoal_words_fail(w, r->options[SHOAL_OPTION_ACTIVATION],
                            "its activation is tanh or relu; put '%s' on a line of its own",
                            shoal_activation_words[layer->activation]);

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
  for (uint32_t k = 0; k < 2; k++) {
    const uint32_t dims[] = {k == 0 ? in : h, width};
    const char *role = k == 0 ? "weight" : "recurrent";
    shoal_param *weight = shoal_lower_param(l, node, k, part, role, SHOAL_PARAM_WEIGHT, 2, dims);
    shoal_lower_fill(l, weight, h, h, SHOAL_INIT_LECUN);
  }
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

static size_t whole(size_t floats) { return (floats + SHOAL_LANES - 1) / SHOAL_LANES * SHOAL_LANES; }

/* Hands out parts of a buffer one after the other. */
static float *take(float **cursor, size_t floats) {
  float *part = *cursor;
  *cursor += whole(floats);
  return part;
}

static size_t saved(const shoal_node *node, uint32_t n) {
  size_t h = node->shape.features, rows = (size_t)node->shape.steps * n, state = whole(n * h);
  if (node->op == &shoal_op_lstm) return 2 * state + whole(rows * 4 * h) + whole(rows * h);
  if (node->op == &shoal_op_gru) return state + 2 * whole(rows * 3 * h);
  return state;
}

static size_t scratch(const shoal_node *node, const shoal_kernels *k, uint32_t n, bool backward) {
  uint32_t in = node->in.features, h = node->shape.features;
  uint32_t width = gates_of(node->op) * h, rows = node->shape.steps * n;
  if (!backward) return shoal_larger(k->gemm_scratch(rows, width, in), k->gemm_scratch(n, width, h));
  size_t gemm = shoal_larger(k->gemm_scratch(rows, in, width), k->gemm_scratch(n, h, width));
  gemm = shoal_larger(gemm, shoal_larger(k->gemm_scratch(in, width, rows), k->gemm_scratch(h, width, rows)));
  size_t gradients = whole((size_t)rows * width);
  if (node->op == &shoal_op_gru) gradients *= 2;
  return gradients + 2 * whole((size_t)n * h) + whole((size_t)width * h) + gemm;
}

/* One run of a node, and the step at hand. x is steps x n x in, y steps x n x h. */
typedef struct cell {
  shoal_call call; /* its scratch is what is left for products */
  const shoal_op *op;
  uint32_t n, steps, in, h, width; /* width: of all gates */
  size_t state, step_gates;        /* floats of a step's outputs, and of its gates */
  float *start[2];                 /* outputs before the first step, and lstm's cells; */
  float *carried[2];               /* these rows go on from batch to batch; NULL to start from zero */
  float *all_gates, *all_gates_h, *all_cells; /* parts of `saved`, NULL without; rnn's gates are in y */
  /* The step; everything is of all units. */
  float *y, *gates, *gates_h, *cells; /* gates: before activation, and after it; gates_h: gru, else NULL */
  const float *h_prev, *c_prev;
  bool is_first; /* forward without a state, and backward at the last step: there is nothing to add */
  /* Backward; dg_later is that of the later step. */
  float *dy, *dg, *dg_h, *dh, *dc;
  const float *dg_later;
  float *recurrent_back; /* the recurrent weight, turned */
} cell;

static cell cell_of(const shoal_call *call) {
  uint32_t n = call->n, h = call->out->features, width = gates_of(call->node->op) * h;
  cell c = {.call = *call,
            .op = call->node->op,
            .n = n,
            .steps = call->in->steps,
            .in = call->in->features,
            .h = h,
            .width = width,
            .state = (size_t)n * h,
            .step_gates = (size_t)n * width,
            .all_gates = call->y};
  float *cursor = call->saved;
  for (uint32_t v = 0; v < c.op->carries; v++) c.start[v] = take(&cursor, c.state);
  if (c.op != &shoal_op_rnn) c.all_gates = take(&cursor, c.steps * c.step_gates);
  if (c.op == &shoal_op_lstm) c.all_cells = take(&cursor, c.steps * c.state);
  if (c.op == &shoal_op_gru) c.all_gates_h = take(&cursor, c.steps * c.step_gates);
  if (call->exec->carry != NULL) {
    c.carried[0] = shoal_exec_carry(call->exec, call->node);
    c.carried[1] = c.carried[0] + (size_t)call->exec->carry_rows * h;
  }
  return c;
}

static void load_state(const cell *c) {
  for (uint32_t v = 0; v < c->op->carries; v++)
    if (c->carried[v] != NULL)
      c->call.kernels->copy_rows(1, c->state, c->carried[v], 0, c->start[v], 0);
    else
      c->call.kernels->zero(c->state, c->start[v]);
}

static void store_state(const cell *c) {
  const float *all[] = {c->call.y, c->all_cells};
  SHOAL_ASSERT(c->carried[0] == NULL || !c->call.node->reverse);
  for (uint32_t v = 0; v < c->op->carries && c->carried[v] != NULL; v++)
    c->call.kernels->copy_rows(1, c->state, all[v] + (c->steps - 1) * c->state, 0, c->carried[v], 0);
}

/* Goes to the step that is computed as number s, and returns where in time it is. */
static uint32_t go_to(cell *c, uint32_t s) {
  bool reverse = c->call.node->reverse;
  uint32_t t = reverse ? c->steps - 1 - s : s, before = reverse ? t + 1 : t - 1;
  c->y = c->call.y + t * c->state;
  c->gates = c->all_gates + t * c->step_gates;
  c->h_prev = s > 0 ? c->call.y + before * c->state : c->start[0];
  if (c->all_gates_h != NULL) c->gates_h = c->all_gates_h + t * c->step_gates;
  if (c->all_cells != NULL) {
    c->cells = c->all_cells + t * c->state;
    c->c_prev = s > 0 ? c->all_cells + before * c->state : c->start[1];
  }
  return t;
}

enum { UNITS = 32 }; /* which a thread takes at least */

static void run_units(const cell *c, shoal_band f) {
  shoal_call_bands(&c->call, c, 2.0 * (double)c->step_gates * c->h, c->h, UNITS, f);
}

/* The recurrent part of these units' gates; for all units at once where they are all. */
static void recurrent_gates(const cell *c, size_t first, size_t count, float *scratch) {
  const float *weight = shoal_call_weight(&c->call, 1), *bias = shoal_call_weight(&c->call, 3);
  float *out = c->gates_h != NULL ? c->gates_h : c->gates;
  size_t stripe = count == c->h ? c->width : count;
  for (size_t at = first; at < c->width; at += stripe == count ? c->h : stripe) {
    shoal_gemm product = shoal_gemm_ab(c->n, (uint32_t)stripe, c->h, c->h_prev, weight + at, out + at);
    product.b_row = product.c_row = c->width;
    product.bias = bias != NULL ? bias + at : NULL;
    product.accumulate = c->gates_h == NULL;
    product.scratch = scratch;
    c->call.kernels->gemm(&product);
  }
}

/* Where elements are by themselves: a stretch of each sample, or one of all where the units are all. */
static uint32_t stretches(const cell *c, size_t *count) {
  if (*count < c->h) return c->n;
  *count *= c->n;
  return 1;
}

static void forward_units(const shoal_call *call, size_t first, size_t count) {
  const cell *c = call->own;
  const shoal_kernels *k = call->kernels;
  uint32_t units = (uint32_t)count;
  float *gates = c->gates + first, *y = c->y + first;
  if (!c->is_first) recurrent_gates(c, first, count, call->scratch);
  if (c->op == &shoal_op_lstm)
    k->lstm_forward(c->n, c->h, units, gates, c->c_prev + first, c->cells + first, y);
  else if (c->op == &shoal_op_gru)
    k->gru_forward(c->n, c->h, units, gates, c->gates_h + first, c->h_prev + first, y);
  else
    for (uint32_t i = stretches(c, &count); i > 0; i--, y += c->h)
      k->act_forward(call->node->activation, count, y, y);
}

static void forward(const shoal_call *call) {
  cell c = cell_of(call);
  load_state(&c);
  shoal_gemm inputs =
      shoal_gemm_ab(c.steps * c.n, c.width, c.in, call->x, shoal_call_weight(call, 0), c.all_gates);
  inputs.bias = shoal_call_weight(call, 2);
  shoal_call_gemm(call, inputs);
  for (uint32_t s = 0; s < c.steps; s++) {
    go_to(&c, s);
    c.is_first = s == 0 && c.carried[0] == NULL && c.gates_h == NULL;
    run_units(&c, forward_units);
  }
  store_state(&c);
}

static void backward_units(const shoal_call *call, size_t first, size_t count) {
  const cell *c = call->own;
  const shoal_kernels *k = call->kernels;
  uint32_t units = (uint32_t)count;
  float *dy = c->dy + first, *dh = c->dh + first, *dg = c->dg + first;
  if (!c->is_first) {
    shoal_gemm product = shoal_gemm_ab(c->n, units, c->width, c->dg_later, c->recurrent_back + first, dh);
    product.b_row = product.c_row = c->h;
    product.accumulate = c->gates_h != NULL;
    product.scratch = call->scratch;
    k->gemm(&product);
    size_t length = count;
    uint32_t lines = stretches(c, &length);
    for (size_t i = 0, at = 0; i < lines; i++, at += c->h) k->add(length, dy + at, dh + at, dy + at);
  }
  if (c->op == &shoal_op_lstm) {
    k->lstm_backward(c->n, c->h, units, c->gates + first, c->c_prev + first, c->cells + first, dy,
                     c->dc + first, dg);
  } else if (c->op == &shoal_op_gru) {
    k->gru_backward(c->n, c->h, units, c->gates + first, c->gates_h + first, c->h_prev + first, dy, dg,
                    c->dg_h + first);
    k->copy_rows(c->n, count, dy, c->h, dh, c->h); /* the direct part of the gradient of h_prev */
  } else {
    uint32_t lines = stretches(c, &count);
    for (size_t i = 0, at = 0; i < lines; i++, at += c->h)
      k->act_backward(call->node->activation, count, NULL, c->y + first + at, dy + at, dg + at);
  }
}

static void turn_band(const shoal_call *call, size_t first, size_t count) {
  const cell *c = call->own;
  c->call.kernels->lanes_to_rows(c->h, c->width, (uint32_t)count, shoal_call_weight(call, 1) + first,
                                 c->recurrent_back + first * c->h);
}

/* dw (in x width) [+]= x' (in x rows) * d (rows x width) */
static void weights_gradient(const cell *c, uint32_t in, uint32_t rows, const float *x, const float *d,
                             bool accumulate, float *dw) {
  shoal_gemm product = shoal_gemm_atb(in, c->width, rows, x, d, dw);
  product.accumulate = accumulate;
  shoal_call_gemm(&c->call, product);
}

static void backward(const shoal_call *call) {
  cell c = cell_of(call);
  uint32_t rows = c.steps * c.n;
  float **scratch = &c.call.scratch;
  float *dgates = take(scratch, c.steps * c.step_gates);
  float *dgates_h = c.all_gates_h != NULL ? take(scratch, c.steps * c.step_gates) : dgates;
  c.dh = take(scratch, c.state);
  c.dc = take(scratch, c.state);
  c.recurrent_back = take(scratch, (size_t)c.width * c.h);
  shoal_call_bands(&c.call, &c, (double)c.width * c.h, c.width, SHOAL_LANES,
                   turn_band); /* once for all steps */
  call->kernels->zero(c.state, c.dc);
  c.is_first = true;
  for (uint32_t s = c.steps; s-- > 0;) {
    uint32_t t = go_to(&c, s);
    c.dy = call->dy + t * c.state;
    c.dg = dgates + t * c.step_gates;
    c.dg_h = dgates_h + t * c.step_gates;
    run_units(&c, backward_units);
    c.dg_later = c.dg_h;
    c.is_first = false;
  }

  if (call->dx[0] != NULL)
    shoal_call_gemm(&c.call,
                    shoal_gemm_abt(rows, c.in, c.width, dgates, shoal_call_weight(call, 0), call->dx[0]));
  bool accumulate = !call->exec->fresh;
  weights_gradient(&c, c.in, rows, call->x, dgates, accumulate, shoal_call_gradient(call, 0));
  shoal_call_column_sums(call, rows, c.width, dgates, shoal_call_gradient(call, 2));
  if (c.all_gates_h != NULL)
    shoal_call_column_sums(call, rows, c.width, dgates_h, shoal_call_gradient(call, 3));
  /* The recurrent weight saw h0 at the first step and the step before at all others. */
  float *drecurrent = shoal_call_gradient(call, 1);
  bool reverse = call->node->reverse;
  if (c.carried[0] != NULL) {
    const float *d_first = dgates_h + (reverse ? c.steps - 1 : 0) * c.step_gates;
    weights_gradient(&c, c.h, c.n, c.start[0], d_first, accumulate, drecurrent);
    accumulate = true;
  }
  /* With a single step this is a sum of nothing, but it clears. */
  const float *h_before = reverse ? call->y + c.state : call->y;
  const float *d_after = reverse ? dgates_h : dgates_h + c.step_gates;
  weights_gradient(&c, c.h, rows - c.n, h_before, d_after, accumulate, drecurrent);
}

static uint64_t flops(const shoal_node *node) {
  uint64_t in = node->in.features, h = node->shape.features;
  return 2 * gates_of(node->op) * (uint64_t)node->shape.steps * (in + h) * h;
}

/* A matrix of `in` rows and gates * h columns, turned, with the gates in ONNX's order. */
static void turn_gates(const family *f, size_t in, size_t width, const float *from, float *to) {
  size_t h = width / f->gates;
  for (size_t column = 0; column < width; column++) {
    const float *source = from + f->order[column / h] * h + column % h;
    for (size_t i = 0; i < in; i++) to[column * in + i] = source[i * width];
  }
}

/* A weight as 1 x gates * h x in. */
static const char *gate_weight(shoal_onnx_export *e, uint32_t index, const family *f) {
  const shoal_param *param = &e->graph->params[index];
  uint32_t in = param->dims[0], width = param->dims[1];
  float *to = shoal_arena_array(&e->file->memory, param->count, sizeof *to);
  e->file->failed |= !to;
  if (to) turn_gates(f, in, width, e->weights + param->offset, to);
  return shoal_onnx_param_as(e, index, 3, (int64_t[]){1, width, in}, to);
}

/* Both biases, of the input and of the recurrent product, one after the other. Where there
 * is only one, the other is zero. */
static const char *gate_bias(shoal_onnx_export *e, const shoal_node *node, const family *f) {
  size_t width = e->graph->params[node->params[2]].count;
  float *to = shoal_arena_array(&e->file->memory, 2 * width, sizeof *to);
  e->file->failed |= !to;
  for (size_t half = 0; to && half < 2; half++) {
    uint32_t index = node->params[2 + half];
    if (index != SHOAL_NO_PARAM)
      turn_gates(f, 1, width, e->weights + e->graph->params[index].offset, to + half * width);
  }
  return shoal_onnx_param_as(e, node->params[2], 2, (int64_t[]){1, 2 * (int64_t)width}, to);
}

/* ONNX wants the steps in front, and gives them with an axis for the direction. */
static const char *onnx(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  const family *f = family_of(node->op);
  x = shoal_onnx_transpose(e, x, (int64_t[]){1, 0, 2});
  const char *weight = gate_weight(e, node->params[0], f);
  const char *again = gate_weight(e, node->params[1], f);
  const char *bias = gate_bias(e, node, f);
  shoal_onnx_attribute_int(e->file, "hidden_size", node->shape.features);
  shoal_onnx_attribute_text(e->file, "direction", node->reverse ? "reverse" : "forward");
  if (node->op == &shoal_op_gru) shoal_onnx_attribute_int(e->file, "linear_before_reset", 1);
  if (node->op == &shoal_op_rnn)
    shoal_onnx_attribute_texts(e->file, "activations", 1,
                               (const char *[]){node->activation == SHOAL_ACT_RELU ? "Relu" : "Tanh"});
  const char *y = shoal_onnx_emit(e->file, f->onnx, x, weight, again, bias, NULL);
  y = shoal_onnx_emit(e->file, "Squeeze", y, shoal_onnx_ints(e->file, 1, (int64_t[]){1}), NULL);
  return shoal_onnx_transpose(e, y, (int64_t[]){1, 0, 2});
}

#define ROW(name, also, vectors)                                                                             \
  {                                                                                                          \
    .word = name,                                                                                            \
    .options = SHOAL_TAKES(LAYERS) | SHOAL_TAKES(BIDIRECTIONAL) | SHOAL_TAKES(LAST) | SHOAL_TAKES(INIT),     \
    .traits = SHOAL_OP_READS_INPUT | SHOAL_OP_READS_OUTPUT | SHOAL_OP_HAS_MATRIX | (also),                   \
    .arguments = (const shoal_field[]){SHOAL_COUNT_FIELD("the number of outputs", units), {0}},              \
    .infer = infer, .lower = lower, .saved = saved, .scratch = scratch, .carries = vectors, .overwrites = 2, \
    .forward = forward, .backward = backward, .flops = flops, .onnx = onnx                                   \
  }

const shoal_op shoal_op_rnn = ROW("rnn", SHOAL_OP_OWN_ACTIVATION, 1);
const shoal_op shoal_op_lstm = ROW("lstm", 0, 2);
const shoal_op shoal_op_gru = ROW("gru", 0, 1);
