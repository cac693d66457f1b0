/* exec.c: see exec.h. */
#include "nn/exec.h"

#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "nn/loss.h"
#include "nn/op.h"

/* Less work than this is over before other threads have heard of it. */
enum { BAND_WORK_MIN = 1 << 16 };

static float *at(const shoal_exec *exec, size_t offset) {
  return offset == SHOAL_NOWHERE ? NULL : exec->block + offset;
}

/* ---- what operations ask for ---- */

const float *shoal_call_weight(const shoal_call *c, int k) {
  uint32_t index = c->node->params[k];
  return index == SHOAL_NO_PARAM ? NULL : c->exec->weights + c->exec->plan->graph->params[index].offset;
}

float *shoal_call_gradient(const shoal_call *c, int k) {
  uint32_t index = c->node->params[k];
  return index == SHOAL_NO_PARAM ? NULL : c->exec->gradient + c->exec->plan->graph->params[index].offset;
}

const float *shoal_call_input(const shoal_call *c, uint32_t k) {
  return at(c->exec, c->exec->plan->places[c->node->inputs[k]].value);
}

uint32_t shoal_call_rows(const shoal_call *c, const shoal_shape *shape) { return c->n * shape->steps; }

size_t shoal_call_floats(const shoal_call *c, const shoal_shape *shape) {
  return shoal_shape_floats(shape, c->n);
}

shoal_norm shoal_call_norm(const shoal_call *c) {
  if (c->out->kind == SHOAL_IMAGE) return (shoal_norm){c->out->c, c->out->h * c->out->w, c->lanes, c->n, 1};
  return (shoal_norm){c->out->features, 1, 0, c->n, c->out->steps};
}

void shoal_call_gemm(const shoal_call *c, const shoal_gemm *product) {
  shoal_team_gemm(c->exec->team, c->kernels, product);
}

typedef struct bands {
  const shoal_call *call;
  size_t count, unit;
  uint32_t threads;
  shoal_band f;
  const void *context;
} bands;

/* Where band `index` begins. */
static size_t band_start(const bands *b, uint32_t index) {
  size_t units = (b->count + b->unit - 1) / b->unit, start = units * index / b->threads * b->unit;
  return start < b->count ? start : b->count;
}

static void run_band(void *context, uint32_t band, uint32_t thread) {
  const bands *b = context;
  size_t first = band_start(b, band), count = band_start(b, band + 1) - first;
  if (count > 0)
    b->f(b->context, first, count, shoal_team_scratch(b->call->exec->team, thread, b->call->scratch));
}

void shoal_call_bands(const shoal_call *c, double work, size_t count, size_t unit, shoal_band f,
                      const void *context) {
  bands b = {c, count, unit, shoal_team_threads(c->exec->team), f, context};
  if (b.threads == 1 || work < BAND_WORK_MIN)
    f(context, 0, count, c->scratch);
  else
    shoal_team_run(c->exec->team, b.threads, run_band, &b);
}

uint32_t *shoal_exec_keys(const shoal_exec *exec) { return (uint32_t *)(void *)at(exec, exec->plan->keys); }

/* ---- recurrent state ---- */

static size_t carry_width(const shoal_node *node) { return node->op->carries * (size_t)node->shape.features; }

size_t shoal_carry_floats(const shoal_graph *graph) {
  size_t floats = 0;
  for (uint32_t i = 0; i < graph->nodes_count; i++) floats += carry_width(&graph->nodes[i]);
  return floats;
}

/* A carry is a row of matrices, rows x units; an LSTM has two. */
void shoal_carry_pack(const shoal_graph *graph, const float *carry, uint32_t rows, uint32_t first, uint32_t n,
                      float *packed) {
  for (uint32_t i = 0; i < graph->nodes_count; i++) {
    size_t units = graph->nodes[i].shape.features;
    for (size_t done = 0; done < carry_width(&graph->nodes[i]); done += units) {
      memcpy(packed, carry + first * units, n * units * sizeof *packed);
      packed += n * units;
      carry += rows * units;
    }
  }
}

void shoal_carry_unpack(const shoal_graph *graph, float *carry, uint32_t rows, uint32_t first, uint32_t n,
                        const float *packed) {
  for (uint32_t i = 0; i < graph->nodes_count; i++) {
    size_t units = graph->nodes[i].shape.features;
    for (size_t done = 0; done < carry_width(&graph->nodes[i]); done += units) {
      if (packed != NULL)
        memcpy(carry + first * units, packed, n * units * sizeof *packed);
      else
        memset(carry + first * units, 0, n * units * sizeof *carry);
      if (packed != NULL) packed += n * units;
      carry += rows * units;
    }
  }
}

float *shoal_exec_carry(const shoal_exec *exec, const shoal_node *node) {
  size_t before = 0;
  for (const shoal_node *other = exec->plan->graph->nodes; other != node; other++)
    before += carry_width(other);
  return exec->carry + before * exec->carry_rows + (size_t)exec->carry_row * node->shape.features;
}

/* ---- nodes ---- */

static shoal_call call_of(shoal_exec *exec, uint32_t index, bool back) {
  const shoal_plan *plan = exec->plan;
  const shoal_node *node = &plan->graph->nodes[index];
  const shoal_place *place = &plan->places[index];
  shoal_call c = {.exec = exec,
                  .kernels = plan->kernels,
                  .node = node,
                  .in = &node->shape,
                  .out = &node->shape,
                  .n = exec->n,
                  .lanes = shoal_lanes_for(exec->n),
                  .y = at(exec, place->value),
                  .saved = at(exec, place->saved),
                  .scratch = at(exec, back ? place->scratch_backward : place->scratch_forward),
                  .dy = at(exec, place->gradient)};
  if (node->inputs_count > 0) {
    c.in = &plan->graph->nodes[node->inputs[0]].shape;
    c.x = at(exec, plan->places[node->inputs[0]].value);
  }
  return c;
}

/* Gives every input its gradient: written where it belongs, or beside it and then added. */
static void backward(shoal_call *c, uint32_t index) {
  shoal_exec *exec = c->exec;
  const shoal_place *places = exec->plan->places;
  const shoal_node *node = c->node;
  bool passes = shoal_op_is(node->op, SHOAL_OP_PASSES_GRADIENT);
  for (uint32_t k = 0; k < node->inputs_count; k++) {
    size_t partial = places[index].partial[k];
    c->dx[k] = at(exec, partial != SHOAL_NOWHERE ? partial : places[node->inputs[k]].gradient);
  }
  if (!passes && node->op->backward != NULL) node->op->backward(c);
  for (uint32_t k = 0; k < node->inputs_count; k++) {
    uint32_t input = node->inputs[k];
    size_t count = shoal_shape_floats(&exec->plan->graph->nodes[input].shape, exec->n);
    float *gradient = at(exec, places[input].gradient), *partial = at(exec, places[index].partial[k]);
    if (partial != NULL)
      c->kernels->add(count, gradient, passes ? c->dy : partial, gradient);
    else if (passes && gradient != NULL)
      c->kernels->copy_rows(1, count, c->dy, 0, gradient, 0);
  }
}

/* ---- the passes ---- */

shoal_batch shoal_exec_batch(const shoal_exec *exec) {
  const shoal_plan *plan = exec->plan;
  float *input = at(exec, plan->places[0].value);
  bool tokens = plan->graph->nodes[0].shape.kind == SHOAL_TOKENS;
  return (shoal_batch){.x = tokens ? NULL : input,
                       .tokens = tokens ? (int32_t *)(void *)input : NULL,
                       .labels = (int32_t *)(void *)at(exec, plan->labels),
                       .targets = at(exec, plan->targets),
                       .weight = at(exec, plan->weight),
                       .ids = (uint64_t *)(void *)at(exec, plan->ids)};
}

/* Adds the time since *since to an entry of step_seconds, once for each thread of the team, and
 * sets *since to now; with START there is no entry yet. */
#define START UINT32_MAX

static void lap(const shoal_exec *exec, uint32_t entry, double *since) {
  if (exec->step_seconds == NULL) return;
  double now = shoal_clock_seconds();
  if (entry != START) exec->step_seconds[entry] += (now - *since) * shoal_team_threads(exec->team);
  *since = now;
}

void shoal_exec_clear(const shoal_graph *graph, float *gradient) {
  for (uint32_t i = 0; i < graph->nodes_count; i++) {
    const shoal_node *node = &graph->nodes[i];
    for (uint32_t k = node->op->overwrites; k < SHOAL_NODE_PARAMS_MAX; k++) {
      if (node->params[k] == SHOAL_NO_PARAM) continue;
      const shoal_param *param = &graph->params[node->params[k]];
      memset(gradient + param->offset, 0, param->count * sizeof *gradient);
    }
  }
}

void shoal_exec_forward(shoal_exec *exec) {
  const shoal_plan *plan = exec->plan;
  double since = 0;
  lap(exec, START, &since);
  for (uint32_t s = 0; s < plan->loss_step; s++) {
    shoal_call c = call_of(exec, plan->steps[s].node, false);
    c.node->op->forward(&c);
    lap(exec, s, &since);
  }
}

void shoal_exec_backward(shoal_exec *exec) {
  const shoal_plan *plan = exec->plan;
  double since = 0;
  lap(exec, START, &since);
  for (uint32_t s = plan->loss_step; s < plan->steps_count; s++) {
    uint32_t index = plan->steps[s].node;
    shoal_call c = call_of(exec, index, true);
    backward(&c, index);
    lap(exec, s, &since);
  }
}

/* Rows whose every answer is on the right side of one half. */
static uint64_t count_binary(uint32_t rows, uint32_t cols, const float *p, const float *t,
                             const float *weight) {
  uint64_t correct = 0;
  for (uint32_t r = 0; r < rows; r++) {
    bool right = weight[r] > 0;
    for (uint32_t c = 0; c < cols; c++)
      right &= (p[(size_t)r * cols + c] > 0) == (t[(size_t)r * cols + c] > 0.5f);
    correct += right;
  }
  return correct;
}

/* Cross-entropy in a fixed number of pieces, so that threads can share it and its sum stays
 * the same. */
enum { LOSS_PIECES = 64 };

typedef struct loss_pieces {
  const shoal_kernels *kernels;
  uint32_t rows, cols;
  const float *p;
  float *d; /* or NULL */
  const shoal_batch *batch;
  float scale;
  double sum[LOSS_PIECES];
  uint64_t correct[LOSS_PIECES];
} loss_pieces;

static void cross_entropy_piece(void *context, uint32_t index, uint32_t thread) {
  (void)thread;
  loss_pieces *l = context;
  uint32_t first = (uint32_t)((uint64_t)l->rows * index / LOSS_PIECES);
  uint32_t end = (uint32_t)((uint64_t)l->rows * (index + 1) / LOSS_PIECES);
  size_t at_row = (size_t)first * l->cols;
  if (first < end)
    l->kernels->cross_entropy(end - first, l->cols, l->p + at_row, l->batch->labels + first,
                              l->batch->weight + first, l->scale, l->d != NULL ? l->d + at_row : NULL,
                              &l->sum[index], &l->correct[index]);
}

static void cross_entropy(shoal_exec *exec, loss_pieces *l, shoal_sums *sums) {
  shoal_team_run(exec->team, LOSS_PIECES, cross_entropy_piece, l);
  for (int i = 0; i < LOSS_PIECES; i++) {
    sums->loss += l->sum[i];
    sums->correct += l->correct[i];
  }
}

static void loss(shoal_exec *exec, shoal_sums *sums) {
  const shoal_plan *plan = exec->plan;
  const shoal_graph *graph = plan->graph;
  const shoal_recipe *recipe = &graph->model->recipe;
  const shoal_place *place = &plan->places[graph->nodes_count - 1];
  const shoal_shape *shape = &graph->nodes[graph->nodes_count - 1].shape;
  shoal_batch batch = shoal_exec_batch(exec);
  uint32_t rows = exec->n * shape->steps, cols = shape->features;
  const float *p = at(exec, place->value);
  float *d = plan->training ? at(exec, place->gradient) : NULL;

  if (exec->class_weights != NULL && plan->training && batch.labels != NULL)
    for (uint32_t r = 0; r < rows; r++) batch.weight[r] *= exec->class_weights[batch.labels[r]];
  for (uint32_t r = 0; r < rows; r++) {
    sums->counted += batch.weight[r] > 0;
    sums->weight += batch.weight[r];
  }

  double scale = 1.0 / exec->round_n;
  if (!recipe->sum_steps) scale /= shape->steps;
  if (recipe->loss == SHOAL_CROSS_ENTROPY) {
    loss_pieces pieces = {.kernels = plan->kernels,
                          .rows = rows,
                          .cols = cols,
                          .p = p,
                          .d = d,
                          .batch = &batch,
                          .scale = (float)scale};
    cross_entropy(exec, &pieces, sums);
    return;
  }
  scale /= cols;
  double sum = 0, square = 0;
  if (recipe->loss == SHOAL_BINARY_CROSS_ENTROPY)
    sums->correct += count_binary(rows, cols, p, batch.targets, batch.weight);
  else
    plan->kernels->element_loss(SHOAL_LOSS_SQUARED, 0, rows, cols, p, batch.targets, batch.weight, 1, NULL,
                                &square);
  plan->kernels->element_loss(shoal_loss_rows[recipe->loss].element, recipe->huber_delta, rows, cols, p,
                              batch.targets, batch.weight, (float)scale, d, &sum);
  sums->loss += sum / cols;
  sums->square += square / cols;
}

void shoal_exec_loss(shoal_exec *exec, shoal_sums *sums) {
  double since = 0;
  lap(exec, START, &since);
  loss(exec, sums);
  lap(exec, exec->plan->steps_count, &since);
}
