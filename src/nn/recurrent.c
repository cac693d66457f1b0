/* recurrent.c: see recurrent.h.
 *
 * Saved between the passes, each part a whole number of vectors:
 *   rnn   h0
 *   lstm  h0, c0, gates (steps x n x 4h), cells (steps x n x h)
 *   gru   h0, gates of x (steps x n x 3h), gates of h (steps x n x 3h) */
#include "nn/recurrent.h"

#include <string.h>

#include "base/assert.h"

static size_t whole(size_t floats) { return (floats + SHOAL_LANES - 1) / SHOAL_LANES * SHOAL_LANES; }

static uint32_t gates_of(shoal_node_op op) {
  return op == SHOAL_NODE_LSTM ? 4 : op == SHOAL_NODE_GRU ? 3 : 1;
}

/* Hands out parts of a buffer one after the other. */
static float *take(float **cursor, size_t floats) {
  float *part = *cursor;
  *cursor += whole(floats);
  return part;
}

size_t shoal_cell_saved(shoal_node_op op, uint32_t steps, uint32_t n, uint32_t h) {
  size_t rows = (size_t)steps * n, state = whole((size_t)n * h);
  if (op == SHOAL_NODE_LSTM) return 2 * state + whole(rows * 4 * h) + whole(rows * h);
  if (op == SHOAL_NODE_GRU) return state + 2 * whole(rows * 3 * h);
  return state;
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

size_t shoal_cell_scratch(const shoal_kernels *k, shoal_node_op op, uint32_t steps, uint32_t n, uint32_t in,
                          uint32_t h, bool backward) {
  uint32_t width = gates_of(op) * h, rows = steps * n;
  if (!backward) return larger(k->gemm_scratch(rows, width, in), k->gemm_scratch(n, width, h));
  size_t gemm = larger(k->gemm_scratch(rows, in, width), k->gemm_scratch(n, h, width));
  gemm = larger(gemm, larger(k->gemm_scratch(in, width, rows), k->gemm_scratch(h, width, rows)));
  size_t gradients = whole((size_t)rows * width);
  if (op == SHOAL_NODE_GRU) gradients *= 2;
  return gradients + 2 * whole((size_t)n * h) + whole((size_t)width * h) + gemm;
}

/* The parts of `saved`, the same for both passes. */
typedef struct parts {
  float *h0, *c0, *gates, *cells, *gates_h;
} parts;

static parts saved_parts(const shoal_cell *c) {
  float *cursor = c->saved;
  size_t rows = (size_t)c->steps * c->n, state = (size_t)c->n * c->h;
  parts p = {.h0 = take(&cursor, state)};
  if (c->op == SHOAL_NODE_LSTM) {
    p.c0 = take(&cursor, state);
    p.gates = take(&cursor, rows * 4 * c->h);
    p.cells = take(&cursor, rows * c->h);
  }
  if (c->op == SHOAL_NODE_GRU) {
    p.gates = take(&cursor, rows * 3 * c->h);
    p.gates_h = take(&cursor, rows * 3 * c->h);
  }
  return p;
}

static void load_state(const shoal_cell *c, const parts *p) {
  size_t bytes = (size_t)c->n * c->h * sizeof(float);
  if (c->state != NULL) {
    memcpy(p->h0, c->state, bytes);
    if (p->c0 != NULL) memcpy(p->c0, c->state + c->state_stride, bytes);
  } else {
    memset(p->h0, 0, bytes);
    if (p->c0 != NULL) memset(p->c0, 0, bytes);
  }
}

static void store_state(const shoal_cell *c, const parts *p) {
  if (c->state == NULL) return;
  SHOAL_ASSERT(!c->reverse);
  size_t state = (size_t)c->n * c->h, last = (size_t)(c->steps - 1) * state;
  memcpy(c->state, c->y + last, state * sizeof(float));
  if (p->cells != NULL) memcpy(c->state + c->state_stride, p->cells + last, state * sizeof(float));
}

/* out (rows x width) [+]= a (rows x in) * w (in x width) */
static void product(const shoal_cell *c, uint32_t rows, uint32_t width, uint32_t in, const float *a,
                    const float *w, const float *bias, bool accumulate, float *out, float *scratch) {
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
static void product_back(const shoal_cell *c, uint32_t rows, uint32_t width, uint32_t in, const float *d,
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
static void product_weights(const shoal_cell *c, uint32_t rows, uint32_t width, uint32_t in, const float *a,
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

void shoal_cell_forward(const shoal_cell *c) {
  const shoal_kernels *k = c->kernels;
  uint32_t width = gates_of(c->op) * c->h, rows = c->steps * c->n;
  size_t state = (size_t)c->n * c->h, step_gates = (size_t)c->n * width;
  parts p = saved_parts(c);
  load_state(c, &p);
  float *before = c->op == SHOAL_NODE_RNN ? c->y : p.gates; /* gates before activation */
  product(c, rows, width, c->in, c->x, c->weight, c->bias, false, before, c->scratch);

  const float *h_prev = p.h0, *c_prev = p.c0;
  for (uint32_t s = 0; s < c->steps; s++) {
    uint32_t t = c->reverse ? c->steps - 1 - s : s;
    float *y = c->y + t * state, *gates = before + t * step_gates;
    if (c->op == SHOAL_NODE_GRU) {
      float *gates_h = p.gates_h + t * step_gates;
      product(c, c->n, width, c->h, h_prev, c->recurrent, c->recurrent_bias, false, gates_h, c->scratch);
      k->gru_forward(c->n, c->h, gates, gates_h, h_prev, y);
    } else {
      if (s > 0 || c->state != NULL)
        product(c, c->n, width, c->h, h_prev, c->recurrent, NULL, true, gates, c->scratch);
      if (c->op == SHOAL_NODE_LSTM) {
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

void shoal_cell_backward(const shoal_cell *c) {
  const shoal_kernels *k = c->kernels;
  uint32_t width = gates_of(c->op) * c->h, rows = c->steps * c->n;
  size_t state = (size_t)c->n * c->h, step_gates = (size_t)c->n * width;
  parts p = saved_parts(c);
  float *cursor = c->scratch;
  float *dgates = take(&cursor, (size_t)rows * width);
  float *dgates_h = c->op == SHOAL_NODE_GRU ? take(&cursor, (size_t)rows * width) : dgates;
  float *dh = take(&cursor, state), *dc = take(&cursor, state);
  float *recurrent_back = take(&cursor, (size_t)width * c->h); /* transposed once for all steps */
  float *gemm = cursor;
  k->lanes_to_rows(c->h, width, width, c->recurrent, recurrent_back);
  memset(dc, 0, state * sizeof(float));

  for (uint32_t s = c->steps; s-- > 0;) {
    uint32_t t = c->reverse ? c->steps - 1 - s : s;
    uint32_t t_prev = c->reverse ? t + 1 : t - 1; /* only used when s > 0 */
    float *dy = c->dy + t * state, *dg = dgates + t * step_gates, *dg_h = dgates_h + t * step_gates;
    const float *h_prev = s > 0 ? c->y + t_prev * state : p.h0;
    if (s + 1 < c->steps) k->add(state, dy, dh, dy);
    if (c->op == SHOAL_NODE_LSTM) {
      const float *c_prev = s > 0 ? p.cells + t_prev * state : p.c0;
      k->lstm_backward(c->n, c->h, p.gates + t * step_gates, c_prev, p.cells + t * state, dy, dc, dg);
    } else if (c->op == SHOAL_NODE_GRU) {
      k->gru_backward(c->n, c->h, p.gates + t * step_gates, p.gates_h + t * step_gates, h_prev, dy, dg, dg_h);
      memcpy(dh, dy, state * sizeof(float)); /* the direct part of the gradient of h_prev */
    } else {
      k->act_backward(c->activation, state, NULL, c->y + t * state, dy, dg);
    }
    if (s > 0) product(c, c->n, c->h, width, dg_h, recurrent_back, NULL, c->op == SHOAL_NODE_GRU, dh, gemm);
  }

  if (c->dx != NULL) product_back(c, rows, width, c->in, dgates, c->weight, c->dx, gemm);
  product_weights(c, rows, width, c->in, c->x, dgates, !c->fresh, c->dweight, gemm);
  k->column_sums(rows, width, dgates, c->dbias);
  if (c->op == SHOAL_NODE_GRU) k->column_sums(rows, width, dgates_h, c->drecurrent_bias);
  /* The recurrent weight saw h0 at the first step and the step before at all others. */
  bool accumulate = !c->fresh;
  if (c->state != NULL) {
    const float *d_first = dgates_h + (c->reverse ? c->steps - 1 : 0) * step_gates;
    product_weights(c, c->n, width, c->h, p.h0, d_first, accumulate, c->drecurrent, gemm);
    accumulate = true;
  }
  /* With a single step this is a sum of nothing, but it clears. */
  const float *h_before = c->reverse ? c->y + state : c->y;
  const float *d_after = c->reverse ? dgates_h : dgates_h + step_gates;
  product_weights(c, rows - c->n, width, c->h, h_before, d_after, accumulate, c->drecurrent, gemm);
}
