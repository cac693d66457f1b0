/* exec.c: see exec.h. */
#include "nn/exec.h"

#include "base/assert.h"
#include "base/clock.h"
#include "nn/loss.h"
#include "nn/op.h"

static float *in_block(float *block, size_t offset) {
  return offset == SHOAL_NOWHERE ? NULL : block + offset;
}

static float *at(const shoal_exec *exec, size_t offset) { return in_block(exec->block, offset); }

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

shoal_norm shoal_call_norm(const shoal_call *c) {
  uint32_t lanes = c->out->kind == SHOAL_IMAGE ? c->lanes : 0;
  return (shoal_norm){shoal_shape_channels(c->out), c->out->h * c->out->w, lanes, c->n, c->out->steps};
}

shoal_gemm shoal_gemm_ab(uint32_t m, uint32_t n, uint32_t k, const float *a, const float *b, float *c) {
  shoal_gemm product = {.m = m, .n = n, .k = k, .a = a, .b = b, .c = c};
  product.a_row = k;
  product.b_row = product.c_row = n;
  product.a_col = product.b_col = 1;
  return product;
}

shoal_gemm shoal_gemm_abt(uint32_t m, uint32_t n, uint32_t k, const float *a, const float *b, float *c) {
  shoal_gemm product = shoal_gemm_ab(m, n, k, a, b, c);
  product.b_row = 1;
  product.b_col = k;
  return product;
}

shoal_gemm shoal_gemm_atb(uint32_t m, uint32_t n, uint32_t k, const float *a, const float *b, float *c) {
  shoal_gemm product = shoal_gemm_ab(m, n, k, a, b, c);
  product.a_row = 1;
  product.a_col = m;
  return product;
}

/* ---- sharing the work on a tile ---- */

/* Less work than this is over before other threads have heard of it. */
enum { BAND_WORK_MIN = 1 << 16 };

static float *scratch_of(const shoal_call *c, uint32_t thread) {
  return thread == 0 ? c->scratch : c->exec->team_scratch + (thread - 1) * c->exec->scratch_floats;
}

typedef struct bands {
  const shoal_call *call;
  const void *own;
  size_t count, unit;
  uint32_t parts;
  shoal_band f;
} bands;

static void run_band(void *context, uint32_t band, uint32_t thread) {
  const bands *b = context;
  shoal_stretch part = shoal_part(b->count, b->unit, band, b->parts);
  shoal_call call = *b->call;
  call.own = b->own;
  call.scratch = scratch_of(b->call, thread);
  if (part.count > 0) b->f(&call, part.first, part.count);
}

void shoal_call_bands(const shoal_call *c, const void *own, double work, size_t count, size_t unit,
                      shoal_band f) {
  uint32_t threads = work < BAND_WORK_MIN ? 1 : shoal_pool_threads(c->exec->team);
  size_t most = (count + unit - 1) / unit;
  bands b = {c, own, count, unit, most < threads ? (uint32_t)most : threads, f};
  shoal_pool_run(c->exec->team, b.parts, run_band, &b);
}

shoal_grid shoal_best_grid(uint32_t cells, uint32_t across_most, uint32_t down_most, shoal_grid_cost cost,
                           const void *own) {
  shoal_grid best = {1, 1};
  uint64_t least = UINT64_MAX;
  for (uint32_t across = 1; across <= cells && across <= across_most; across++)
    for (uint32_t down = 1; across * down <= cells && down <= down_most; down++) {
      uint64_t now = cost(own, (shoal_grid){across, down});
      if (now >= least) continue;
      least = now;
      best = (shoal_grid){across, down};
    }
  return best;
}

/* A band of a product is a few rows of a few columns, these in whole blocks of the kernels'. Another thread's help costs
 * about as much as HELP multiply-adds, and a product of fewer than WORTH_SHARING is not shared. */
enum { BAND_COLS = 32, ROWS_MIN = 8, WORTH_SHARING = 1 << 17, HELP = 1 << 13 };

typedef struct shared_product {
  const shoal_call *call;
  const shoal_gemm *gemm;
  shoal_grid grid; /* columns across, rows down */
} shared_product;

static uint32_t blocks_of(uint32_t size, uint32_t unit) { return (size + unit - 1) / unit; }

static void multiply_band(void *context, uint32_t band, uint32_t thread) {
  const shared_product *p = context;
  shoal_gemm g = *p->gemm;
  shoal_stretch cols = shoal_part(g.n, BAND_COLS, band % p->grid.across, p->grid.across),
                rows = shoal_part(g.m, 1, band / p->grid.across, p->grid.down);
  g.n = (uint32_t)cols.count;
  g.m = (uint32_t)rows.count;
  g.a += rows.first * g.a_row;
  g.b += cols.first * g.b_col;
  g.c += rows.first * g.c_row + cols.first;
  if (g.bias != NULL) g.bias += cols.first;
  g.scratch = scratch_of(p->call, thread);
  p->call->kernels->gemm(&g);
}

/* The largest band decides how long it takes. Each band pays for packing its columns of b. */
static uint64_t cost_of_bands(const void *own, shoal_grid grid) {
  const shoal_gemm *gemm = own;
  uint64_t packing = gemm->b_col == 1 ? 4 : 16, rows = shoal_largest_part(gemm->m, grid.down),
           cols = shoal_largest_part(blocks_of(gemm->n, BAND_COLS), grid.across);
  return (rows + packing) * (cols * BAND_COLS) * gemm->k + grid.across * grid.down * (uint64_t)HELP;
}

void shoal_call_gemm(const shoal_call *c, shoal_gemm gemm) {
  SHOAL_ASSERT(gemm.a_row == 1 || gemm.a_col == 1);
  SHOAL_ASSERT(gemm.b_row == 1 || gemm.b_col == 1);
  bool shared = (uint64_t)gemm.m * gemm.n * gemm.k >= WORTH_SHARING;
  uint32_t threads = shared ? shoal_pool_threads(c->exec->team) : 1;
  shared_product p = {c, &gemm,
                      shoal_best_grid(threads, blocks_of(gemm.n, BAND_COLS), blocks_of(gemm.m, ROWS_MIN),
                                      cost_of_bands, &gemm)};
  shoal_pool_run(c->exec->team, p.grid.across * p.grid.down, multiply_band, &p);
}

typedef struct addition {
  const float *a, *b;
  float *sum;
} addition;

static void add_band(const shoal_call *call, size_t first, size_t count) {
  const addition *s = call->own;
  if (s->b != NULL)
    call->kernels->add(count, s->a + first, s->b + first, s->sum + first);
  else
    call->kernels->copy_rows(1, count, s->a + first, 0, s->sum + first, 0);
}

void shoal_call_add(const shoal_call *c, size_t count, const float *a, const float *b, float *sum) {
  const addition all = {a, b, sum};
  shoal_call_bands(c, &all, (double)count, count, SHOAL_LANES, add_band);
}

typedef struct columns {
  uint32_t rows, cols;
  const float *x;
  float *sums;
} columns;

static void column_band(const shoal_call *call, size_t first, size_t count) {
  const columns *c = call->own;
  call->kernels->column_sums(c->rows, (uint32_t)count, c->x + first, c->cols, c->sums + first);
}

void shoal_call_column_sums(const shoal_call *c, uint32_t rows, uint32_t cols, const float *x, float *sums) {
  const columns all = {rows, cols, x, sums};
  shoal_call_bands(c, &all, (double)rows * cols, cols, 4 * SHOAL_LANES, column_band);
}

const uint32_t *shoal_exec_keys(const shoal_exec *exec, const shoal_node *node) {
  const shoal_plan *plan = exec->plan;
  uint64_t index = (uint64_t)(node - plan->graph->nodes), seed = plan->graph->model->recipe.seed;
  uint32_t *keys = (uint32_t *)(void *)at(exec, plan->keys);
  const uint64_t *ids = (const uint64_t *)(const void *)at(exec, plan->ids);
  plan->device->kernels->dropout_keys(exec->n, seed + (index << 48), exec->epoch, ids, keys);
  return keys;
}

/* ---- recurrent state ---- */

static size_t carry_width(const shoal_node *node) { return node->op->carries * (size_t)node->shape.features; }

size_t shoal_carry_floats(const shoal_graph *graph) {
  size_t floats = 0;
  for (uint32_t i = 0; i < graph->nodes_count; i++) floats += carry_width(&graph->nodes[i]);
  return floats;
}

/* A carry is a row of matrices, rows x units; an LSTM has two. */
void shoal_carry_copy(const shoal_plan *plan, float *carry, uint32_t rows, uint32_t first, uint32_t n,
                      float *out, const float *in) {
  const shoal_device *device = plan->device;
  size_t at = 0;
  for (uint32_t i = 0; i < plan->graph->nodes_count; i++) {
    const shoal_node *node = &plan->graph->nodes[i];
    size_t units = node->shape.features, count = n * units;
    for (uint32_t k = 0; k < node->op->carries; k++, at += count, carry += rows * units) {
      float *state = carry + first * units;
      if (out != NULL)
        device->copy_out(device, out + at, state, count * sizeof *out);
      else if (in != NULL)
        device->copy_in(device, state, in + at, count * sizeof *in);
      else
        device->kernels->zero(count, state);
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
                  .kernels = plan->device->kernels,
                  .node = node,
                  .in = &node->in,
                  .out = &node->shape,
                  .n = exec->n,
                  .lanes = shoal_lanes_for(exec->n),
                  .y = at(exec, place->value),
                  .saved = at(exec, place->saved),
                  .mark = &exec->marks[index],
                  .scratch = at(exec, place->scratch[back]),
                  .dy = back ? at(exec, place->gradient) : NULL};
  if (node->inputs_count > 0) c.x = at(exec, plan->places[node->inputs[0]].value);
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
      shoal_call_add(c, count, gradient, passes ? c->dy : partial, gradient);
    else if (passes && gradient != NULL)
      shoal_call_add(c, count, c->dy, NULL, gradient);
  }
}

/* ---- the passes ---- */

static size_t input_floats(const shoal_exec *exec) {
  return shoal_shape_floats(&exec->plan->graph->nodes[0].shape, exec->n);
}

static size_t output_floats(const shoal_exec *exec) {
  return shoal_shape_floats(shoal_graph_output(exec->plan->graph), exec->n);
}

/* The batch in the block, or in the host's copy of it. */
static shoal_batch batch_in(const shoal_exec *exec, float *block) {
  const shoal_plan *plan = exec->plan;
  float *input = in_block(block, plan->places[0].value);
  bool tokens = plan->graph->nodes[0].shape.kind == SHOAL_TOKENS;
  return (shoal_batch){.x = tokens ? NULL : input,
                       .tokens = tokens ? (int32_t *)(void *)input : NULL,
                       .labels = (int32_t *)(void *)in_block(block, plan->labels),
                       .targets = in_block(block, plan->targets),
                       .weight = in_block(block, plan->weight),
                       .ids = (uint64_t *)(void *)in_block(block, plan->ids)};
}

shoal_batch shoal_exec_batch(const shoal_exec *exec) { return batch_in(exec, exec->host); }

static void send(const shoal_exec *exec, size_t offset, size_t floats) {
  if (offset == SHOAL_NOWHERE || exec->host == exec->block) return;
  const shoal_device *device = exec->plan->device;
  device->copy_in(device, exec->block + offset, exec->host + offset, floats * sizeof(float));
}

static float *receive(const shoal_exec *exec, size_t offset, size_t floats) {
  const shoal_device *device = exec->plan->device;
  if (exec->host == exec->block)
    device->wait(device);
  else
    device->copy_out(device, exec->host + offset, exec->block + offset, floats * sizeof(float));
  return exec->host + offset;
}

void shoal_exec_send(const shoal_exec *exec) {
  const shoal_plan *plan = exec->plan;
  send(exec, plan->places[0].value, input_floats(exec));
  send(exec, plan->ids, 2 * (size_t)exec->n);
}

static const shoal_place *output_place(const shoal_exec *exec) {
  return &exec->plan->places[exec->plan->graph->nodes_count - 1];
}

const float *shoal_exec_outputs(const shoal_exec *exec) {
  return receive(exec, output_place(exec)->value, output_floats(exec));
}

float *shoal_exec_output_gradient(const shoal_exec *exec) {
  return exec->host + output_place(exec)->gradient;
}

void shoal_exec_send_gradient(const shoal_exec *exec) {
  send(exec, output_place(exec)->gradient, output_floats(exec));
}

const float *shoal_exec_input_gradient(const shoal_exec *exec) {
  return receive(exec, exec->plan->places[0].gradient, input_floats(exec));
}

static double now(const shoal_exec *exec) { return exec->step_seconds != NULL ? shoal_clock_seconds() : 0; }

/* Adds the time since *since to a step's, once for each thread of the team, and sets *since to now. */
static void lap(const shoal_exec *exec, uint32_t step, double *since) {
  double before = *since;
  *since = now(exec);
  if (exec->step_seconds != NULL)
    exec->step_seconds[step] += (*since - before) * shoal_pool_threads(exec->team);
}

void shoal_exec_clear(const shoal_plan *plan, float *gradient, shoal_used_rows *rows) {
  const shoal_graph *graph = plan->graph;
  for (uint32_t i = 0; i < graph->nodes_count; i++) {
    const shoal_node *node = &graph->nodes[i];
    for (uint32_t k = node->op->overwrites; k < SHOAL_NODE_PARAMS_MAX; k++) {
      if (node->params[k] == SHOAL_NO_PARAM) continue;
      const shoal_param *param = &graph->params[node->params[k]];
      if (!param->by_rows || rows == NULL)
        plan->device->kernels->zero(param->count, gradient + param->offset);
    }
  }
  if (rows != NULL) shoal_used_rows_clear(rows, plan->device, gradient);
}

void shoal_exec_forward(shoal_exec *exec) {
  double since = now(exec);
  for (uint32_t i = 0; i < exec->plan->graph->nodes_count; i++) {
    shoal_call c = call_of(exec, i, false);
    c.node->op->forward(&c);
    lap(exec, i, &since);
  }
}

void shoal_exec_backward(shoal_exec *exec) {
  uint32_t nodes = exec->plan->graph->nodes_count;
  double since = now(exec);
  for (uint32_t i = nodes; i-- > 0;) {
    if (exec->plan->places[i].gradient == SHOAL_NOWHERE) continue;
    shoal_call c = call_of(exec, i, true);
    backward(&c, i);
    lap(exec, 2 * nodes - i, &since);
  }
}

typedef struct loss_pieces {
  const shoal_kernels *kernels;
  const shoal_batch *batch;
  uint32_t rows, cols;
  const float *p;
  float *d; /* or NULL */
  float scale;
  shoal_sums *sums; /* of each piece */
} loss_pieces;

static const double ELEMENT_WORK = 16; /* of an exponential, in multiply-adds */

static void cross_entropy_piece(void *context, uint32_t index, uint32_t thread) {
  (void)thread;
  const loss_pieces *l = context;
  shoal_stretch part = shoal_part(l->rows, 1, index, SHOAL_LOSS_PIECES);
  size_t at_row = part.first * l->cols;
  if (part.count > 0)
    l->kernels->cross_entropy((uint32_t)part.count, l->cols, l->p + at_row, l->batch->labels + part.first,
                              l->batch->weight + part.first, l->scale, l->d != NULL ? l->d + at_row : NULL,
                              &l->sums[index].loss, &l->sums[index].correct);
}

static void element_loss(const loss_pieces *l, const shoal_recipe *recipe) {
  const shoal_batch *batch = l->batch;
  const shoal_kernels *k = l->kernels;
  if (shoal_targets_of(recipe) == SHOAL_TARGET_TWO)
    k->binary_right(l->rows, l->cols, l->p, batch->targets, batch->weight, &l->sums->correct);
  else
    k->element_loss(SHOAL_LOSS_SQUARED, 0, l->rows, l->cols, l->p, batch->targets, batch->weight, 1, NULL,
                    &l->sums->square);
  k->element_loss(shoal_loss_rows[recipe->loss].element, recipe->huber_delta, l->rows, l->cols, l->p,
                  batch->targets, batch->weight, l->scale, l->d, &l->sums->loss);
}

void shoal_exec_loss(shoal_exec *exec, shoal_sums *sums) {
  double since = now(exec);
  const shoal_plan *plan = exec->plan;
  const shoal_recipe *recipe = &plan->graph->model->recipe;
  const shoal_shape *shape = shoal_graph_output(plan->graph);
  const shoal_place *place = output_place(exec);
  shoal_batch batch = batch_in(exec, exec->block);
  bool labels = shoal_targets_of(recipe) == SHOAL_TARGET_CLASSES;
  double scale = 1.0 / exec->round_n;
  if (!recipe->sum_steps) scale /= shape->steps;
  if (!labels) scale /= shape->features;
  loss_pieces l = {.kernels = plan->device->kernels,
                   .batch = &batch,
                   .rows = exec->n * shape->steps,
                   .cols = shape->features,
                   .p = at(exec, place->value),
                   .d = plan->training ? at(exec, place->gradient) : NULL,
                   .scale = (float)scale,
                   .sums = (shoal_sums *)(void *)at(exec, plan->sums)};
  size_t sums_floats = SHOAL_LOSS_PIECES * sizeof *l.sums / sizeof(float);
  send(exec, plan->labels, l.rows);
  send(exec, plan->targets, (size_t)l.rows * l.cols);
  send(exec, plan->weight, l.rows);
  l.kernels->zero(sums_floats, at(exec, plan->sums));
  l.kernels->weigh_rows(l.rows, batch.labels, plan->training && labels ? exec->class_weights : NULL,
                        batch.weight, &l.sums->weight, &l.sums->counted);
  if (labels)
    shoal_pool_run(ELEMENT_WORK * l.rows * l.cols < BAND_WORK_MIN ? NULL : exec->team, SHOAL_LOSS_PIECES,
                   cross_entropy_piece, &l);
  else
    element_loss(&l, recipe);

  const shoal_sums *found = (const shoal_sums *)(const void *)receive(exec, plan->sums, sums_floats);
  for (int i = 0; i < SHOAL_LOSS_PIECES; i++) {
    shoal_sums piece = found[i];
    if (!labels) piece.loss /= l.cols;
    piece.square /= l.cols;
    shoal_sums_add(sums, &piece);
  }
  lap(exec, plan->graph->nodes_count, &since);
}
