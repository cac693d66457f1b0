/* brain.c: see brain.h.
 *
 * The body becomes one graph, or two for a recurrent network: one of a single step to act with, one of
 * `steps` steps to learn with; their weights are the same vector. Sequences are turned to the engine's
 * layout, steps x rows x features, tile by tile; shorter ones are filled up with zeros whose gradients are
 * zero.
 *
 * A tile is as many rows as keep a thread's values in its cache. Networks here are small and so are batches:
 * what is not worth waking other threads for is done by the caller's. */
#include "agent/brain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "nn/op.h"
#include "nn/optimizer.h"
#include "nn/plan.h"

enum {
  SHARDS_MAX = 8,
  SHARD_ROWS_MIN = 64,
  TILE_FLOATS = 1 << 17,
  TILE_MIN = 16,
  TILE_MAX = 512,
  ALIGNMENT = 64,
  SUMS = 8,
  LINE_BYTES = 64,              /* of the lines that are put around a body */
  SHARED_WEIGHTS_MIN = 1 << 16, /* of a network whose step is worth waking threads for */
};
static const float BETA1 = 0.9f, BETA2 = 0.999f, EPSILON = 1e-5f;

/* A graph and the text that it was made of. */
typedef struct made {
  shoal_model *model;
  shoal_graph *graph;
} made;

/* What a thread works with. */
typedef struct desk {
  float *block;
  float *outputs, *gradients; /* of a tile, rows in the caller's order */
  float *carry;
} desk;

struct shoal_brain {
  uint32_t inputs, outputs, steps, state_floats;
  bool input_gradient, runs_only;
  const shoal_kernels *kernels;
  shoal_pool *pool;
  uint32_t threads;
  made one, many; /* of one step and of `steps`; `many` is empty where they are the same */
  const shoal_graph *graph, *learn_graph;
  shoal_plan *run_plan, *learn_plan, *input_plan; /* input_plan: with the input's gradient */
  uint32_t run_tile, learn_tile;
  desk *desks; /* one a thread */
  float *weights, *slots[2];
  uint64_t steps_done;
  float *shards[SHARDS_MAX], *total;
  const float *gradient; /* of the last lesson; NULL: there is none to step with */
  shoal_run *runs;
  double *run_squares;
  uint32_t runs_count;
};

/* ---- from the text to a graph ---- */

/* Whether a line of the body is a recurrent layer; the parser says all else. */
static bool names_recurrent(const char *body) {
  for (const char *line = body; line != NULL; line = strchr(line, '\n')) {
    line += strspn(line, " \t\r\n");
    size_t name = strcspn(line, ": \t\n");
    const char *word = line[name] == ':' ? line + name + 1 : line;
    word += strspn(word, " \t");
    const shoal_op *op = shoal_op_named(word, strcspn(word, " \t\r\n"));
    if (op != NULL && op->carries > 0) return true;
  }
  return false;
}

static const char *where(const shoal_brain_config *config) {
  return config->where != NULL ? config->where : "body";
}

static shoal_status parse(made *out, const shoal_brain_config *config, bool sequence, uint32_t steps,
                          shoal_error *err) {
  char input[LINE_BYTES], output[2 * LINE_BYTES];
  if (sequence)
    snprintf(input, sizeof input, "input sequence %ux%u", steps, config->inputs);
  else
    snprintf(input, sizeof input, "input %u", config->inputs);
  snprintf(output, sizeof output, "dense %u\nloss mean-squared", config->outputs);
  shoal_status status = shoal_model_parse_body(&out->model, where(config), input, config->body, output, err);
  if (status != SHOAL_OK) return status;
  status = shoal_graph_create(&out->graph, out->model, err);
  if (status == SHOAL_LIMIT) shoal_error_prefix(err, "%s: ", where(config));
  return status;
}

static void release_made(made *m) {
  shoal_graph_destroy(m->graph);
  shoal_model_destroy(m->model);
  *m = (made){0};
}

static shoal_status refuse(const shoal_brain_config *config, const shoal_layer *layer, const char *why,
                           shoal_error *err) {
  return shoal_fail(err, SHOAL_INVALID, "%s:%u: %s %s", where(config), layer->line, shoal_op_name(layer->op),
                    why);
}

/* What the engine takes but a network that acts step by step cannot have. */
static shoal_status check_graph(const shoal_brain_config *config, const shoal_graph *graph, bool recurrent,
                                uint32_t steps, shoal_error *err) {
  for (uint32_t i = 0; i < graph->nodes_count; i++) {
    const shoal_node *node = &graph->nodes[i];
    const shoal_layer *layer = &graph->model->layers[node->layer];
    if (shoal_node_is(node, SHOAL_OP_RANDOM | SHOAL_OP_WHOLE_SHARD))
      return refuse(config, layer, "makes a row's outcome depend on more than the row; leave it out", err);
    if (recurrent && layer->bidirectional)
      return refuse(config, layer, "looks at steps to come; leave out bidirectional", err);
    if (recurrent && layer->last)
      return refuse(config, layer, "drops all steps but the last; leave out last", err);
    if (recurrent && shoal_node_is(node, SHOAL_OP_MIXES_STEPS))
      return refuse(config, layer, "mixes steps; a recurrent network needs them one by one", err);
  }
  const shoal_shape *out = &graph->nodes[graph->nodes_count - 1].shape;
  shoal_shape_kind kind = recurrent ? SHOAL_SEQUENCE : SHOAL_VECTOR;
  char text[SHOAL_SHAPE_TEXT_MAX];
  if (out->kind != kind || out->steps != steps || out->features != config->outputs)
    return shoal_fail(err, SHOAL_INVALID, "%s: with an output it ends in %s, where %s is needed",
                      where(config), shoal_shape_text(out, text),
                      recurrent ? "a value for each step" : "a vector");
  return SHOAL_OK;
}

static bool same_params(const shoal_graph *a, const shoal_graph *b) {
  if (a->params_count != b->params_count || a->weights_count != b->weights_count) return false;
  for (uint32_t i = 0; i < a->params_count; i++)
    if (a->params[i].offset != b->params[i].offset || a->params[i].count != b->params[i].count) return false;
  return true;
}

/* The body on vectors where that can be, else on sequences. */
static shoal_status make_graphs(shoal_brain *net, const shoal_brain_config *config, shoal_error *err) {
  shoal_status status = parse(&net->one, config, false, 1, err);
  bool recurrent = status == SHOAL_INVALID && names_recurrent(config->body);
  if (recurrent) {
    release_made(&net->one);
    status = parse(&net->one, config, true, 1, err);
  }
  if (status == SHOAL_OK) status = check_graph(config, net->one.graph, recurrent, 1, err);
  if (status != SHOAL_OK) return status;
  net->graph = net->learn_graph = net->one.graph;
  if (!recurrent) return SHOAL_OK;
  net->steps = config->steps;
  net->state_floats = (uint32_t)shoal_carry_floats(net->graph);
  if (net->steps == 1) return SHOAL_OK;
  status = parse(&net->many, config, true, net->steps, err);
  if (status == SHOAL_OK) status = check_graph(config, net->many.graph, true, net->steps, err);
  if (status != SHOAL_OK) return status;
  SHOAL_ASSERT(same_params(net->one.graph, net->many.graph));
  net->learn_graph = net->many.graph;
  return SHOAL_OK;
}

shoal_status shoal_brain_measure(const shoal_brain_config *config, uint64_t *weights, uint32_t *state_floats,
                                 shoal_error *err) {
  shoal_brain net = {0};
  shoal_status status = make_graphs(&net, config, err);
  *weights = status == SHOAL_OK ? net.graph->weights_count : 0;
  *state_floats = net.state_floats;
  release_made(&net.one);
  release_made(&net.many);
  return status;
}

shoal_status shoal_brain_check(const shoal_brain_config *config, shoal_error *err) {
  uint64_t weights;
  uint32_t state_floats;
  return shoal_brain_measure(config, &weights, &state_floats, err);
}

/* ---- memory ---- */

static float *floats(size_t count) {
  size_t bytes = (count * sizeof(float) + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
  float *memory = aligned_alloc(ALIGNMENT, bytes);
  if (memory != NULL) memset(memory, 0, bytes);
  return memory;
}

static uint32_t tile_of(const shoal_graph *graph, bool training) {
  uint64_t values = 0;
  for (uint32_t i = 0; i < graph->nodes_count; i++) values += shoal_shape_values(&graph->nodes[i].shape);
  uint64_t rows = TILE_FLOATS / (training ? 2 * values : values) / TILE_MIN * TILE_MIN;
  if (rows < TILE_MIN) return TILE_MIN;
  return rows < TILE_MAX ? (uint32_t)rows : TILE_MAX;
}

static shoal_status make_plans(shoal_brain *net, shoal_error *err) {
  net->run_tile = tile_of(net->graph, false);
  net->learn_tile = tile_of(net->learn_graph, true);
  shoal_status status =
      shoal_plan_create(&net->run_plan, net->graph, net->kernels, SHOAL_PLAN_INFER, net->run_tile, err);
  if (status == SHOAL_OK && !net->runs_only)
    status = shoal_plan_create(&net->learn_plan, net->learn_graph, net->kernels, SHOAL_PLAN_TRAIN,
                               net->learn_tile, err);
  if (status == SHOAL_OK && !net->runs_only && net->input_gradient)
    status = shoal_plan_create(&net->input_plan, net->learn_graph, net->kernels, SHOAL_PLAN_TRAIN_INPUT,
                               net->learn_tile, err);
  return status;
}

static size_t block_floats(const shoal_brain *net) {
  const shoal_plan *plans[] = {net->run_plan, net->learn_plan, net->input_plan};
  size_t most = 0;
  for (int i = 0; i < 3; i++)
    if (plans[i] != NULL && plans[i]->floats > most) most = plans[i]->floats;
  return most;
}

static bool reserve_desk(const shoal_brain *net, desk *d) {
  uint32_t tile = net->run_tile > net->learn_tile ? net->run_tile : net->learn_tile;
  size_t rows = (size_t)net->learn_tile * net->steps;
  d->block = floats(block_floats(net));
  d->carry = floats((size_t)tile * net->state_floats);
  d->outputs = floats(net->runs_only ? 0 : rows * net->outputs);
  d->gradients = floats(net->runs_only || net->steps == 1 ? 0 : rows * net->outputs);
  return d->block != NULL && d->carry != NULL && d->outputs != NULL && d->gradients != NULL;
}

static bool reserve_learning(shoal_brain *net) {
  size_t count = net->graph->weights_count;
  bool ok = true;
  for (int i = 0; i < SHARDS_MAX; i++) ok &= (net->shards[i] = floats(count)) != NULL;
  for (int i = 0; i < 2; i++) ok &= (net->slots[i] = floats(count)) != NULL;
  net->total = floats(count);
  net->runs_count = (uint32_t)shoal_optimizer_runs(net->graph, NULL);
  net->runs = calloc(net->runs_count, sizeof *net->runs);
  net->run_squares = calloc(net->runs_count, sizeof *net->run_squares);
  ok = ok && net->total != NULL && net->runs != NULL && net->run_squares != NULL;
  if (ok) shoal_optimizer_runs(net->graph, net->runs);
  return ok;
}

static bool reserve(shoal_brain *net) {
  net->weights = floats(net->graph->weights_count);
  net->desks = calloc(net->threads, sizeof *net->desks);
  bool ok = net->weights != NULL && net->desks != NULL;
  for (uint32_t t = 0; ok && t < net->threads; t++) ok = reserve_desk(net, &net->desks[t]);
  return ok && (net->runs_only || reserve_learning(net));
}

static void scale_output(shoal_brain *net, float scale) {
  const shoal_node *last = &net->graph->nodes[net->graph->nodes_count - 1];
  const shoal_param *weight = &net->graph->params[last->params[0]];
  for (size_t i = 0; i < weight->count; i++) net->weights[weight->offset + i] *= scale;
}

shoal_status shoal_brain_create(shoal_brain **out, const shoal_brain_config *config, shoal_error *err) {
  SHOAL_ASSERT(config->inputs > 0 && config->outputs > 0 && config->steps > 0);
  *out = NULL;
  const shoal_kernels *kernels = shoal_kernels_get();
  if (kernels == NULL)
    return shoal_fail(
        err, SHOAL_UNSUPPORTED,
        "SHOAL_KERNELS names kernels that are unknown or that this processor cannot run: unset it");
  shoal_brain *net = calloc(1, sizeof *net);
  if (net == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a network");
  *net = (shoal_brain){.inputs = config->inputs,
                       .outputs = config->outputs,
                       .steps = 1,
                       .input_gradient = config->input_gradient,
                       .runs_only = config->runs_only,
                       .kernels = kernels,
                       .pool = config->pool,
                       .threads = config->pool != NULL ? shoal_pool_threads(config->pool) : 1};
  shoal_status status = make_graphs(net, config, err);
  if (status == SHOAL_OK) status = make_plans(net, err);
  if (status == SHOAL_OK && !reserve(net))
    status = shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for the network of %s", config->name);
  if (status != SHOAL_OK) {
    shoal_brain_destroy(net);
    return status;
  }
  shoal_graph_init_weights(net->graph, config->seed, net->weights);
  scale_output(net, config->output_scale);
  *out = net;
  return SHOAL_OK;
}

void shoal_brain_destroy(shoal_brain *net) {
  if (net == NULL) return;
  for (uint32_t t = 0; net->desks != NULL && t < net->threads; t++) {
    free(net->desks[t].block);
    free(net->desks[t].carry);
    free(net->desks[t].outputs);
    free(net->desks[t].gradients);
  }
  free(net->desks);
  for (int i = 0; i < SHARDS_MAX; i++) free(net->shards[i]);
  for (int i = 0; i < 2; i++) free(net->slots[i]);
  free(net->total);
  free(net->runs);
  free(net->run_squares);
  free(net->weights);
  shoal_plan_destroy(net->run_plan);
  shoal_plan_destroy(net->learn_plan);
  shoal_plan_destroy(net->input_plan);
  release_made(&net->one);
  release_made(&net->many);
  free(net);
}

bool shoal_brain_recurrent(const shoal_brain *net) { return net->state_floats > 0; }
uint32_t shoal_brain_state_floats(const shoal_brain *net) { return net->state_floats; }
size_t shoal_brain_weights_count(const shoal_brain *net) { return net->graph->weights_count; }
float *shoal_brain_weights(shoal_brain *net) { return net->weights; }
const struct shoal_graph *shoal_brain_graph(const shoal_brain *net) { return net->graph; }
uint64_t *shoal_brain_steps(shoal_brain *net) { return &net->steps_done; }

float *shoal_brain_slot(shoal_brain *net, int which) {
  SHOAL_ASSERT(!net->runs_only && (which == 0 || which == 1));
  return net->slots[which];
}

/* ---- running ---- */

static void run_tasks(const shoal_brain *net, uint32_t tasks, shoal_pool_task f, void *context) {
  if (net->pool != NULL && tasks > 1) {
    shoal_pool_run(net->pool, tasks, f, context);
    return;
  }
  for (uint32_t i = 0; i < tasks; i++) f(context, i, 0);
}

static void load_carry(const shoal_exec *exec, const float *state, uint32_t floats_each) {
  for (uint32_t i = 0; i < exec->n; i++)
    shoal_carry_unpack(exec->plan->graph, exec->carry, exec->n, i, 1, state + (size_t)i * floats_each);
}

static void store_carry(const shoal_exec *exec, float *state, uint32_t floats_each) {
  for (uint32_t i = 0; i < exec->n; i++)
    shoal_carry_pack(exec->plan->graph, exec->carry, exec->n, i, 1, state + (size_t)i * floats_each);
}

static float *output_of(const shoal_exec *exec) {
  return exec->block + exec->plan->places[exec->plan->graph->nodes_count - 1].value;
}

typedef struct errand {
  shoal_brain *net;
  const float *weights, *x;
  float *state, *out;
  uint32_t n, piece;
} errand;

static void run_piece(void *context, uint32_t task, uint32_t thread) {
  const errand *e = context;
  const shoal_brain *net = e->net;
  uint32_t first = task * e->piece, left = e->n - first;
  shoal_exec exec = {.plan = net->run_plan, .block = net->desks[thread].block, .weights = e->weights};
  exec.n = exec.round_n = exec.carry_rows = left < e->piece ? left : e->piece;
  memcpy(shoal_exec_batch(&exec).x, e->x + (size_t)first * net->inputs,
         (size_t)exec.n * net->inputs * sizeof(float));
  float *state = NULL;
  if (e->state != NULL && net->state_floats > 0) {
    state = e->state + (size_t)first * net->state_floats;
    exec.carry = net->desks[thread].carry;
    load_carry(&exec, state, net->state_floats);
  }
  shoal_exec_forward(&exec);
  if (state != NULL) store_carry(&exec, state, net->state_floats);
  memcpy(e->out + (size_t)first * net->outputs, output_of(&exec),
         (size_t)exec.n * net->outputs * sizeof(float));
}

void shoal_brain_run(shoal_brain *net, const float *weights, uint32_t n, const float *x, float *state,
                     float *out) {
  if (n == 0) return;
  uint32_t share = (n + net->threads - 1) / net->threads;
  if (share < SHARD_ROWS_MIN) share = SHARD_ROWS_MIN;
  errand e = {.net = net,
              .weights = weights != NULL ? weights : net->weights,
              .x = x,
              .state = state,
              .out = out,
              .n = n,
              .piece = share < net->run_tile ? share : net->run_tile};
  run_tasks(net, (n + e.piece - 1) / e.piece, run_piece, &e);
}

/* ---- learning ---- */

typedef struct lesson {
  shoal_brain *net;
  const shoal_brain_batch *batch;
  const shoal_plan *plan;
  uint32_t shards;
  double sums[SHARDS_MAX][SUMS];
} lesson;

/* rows x steps x width to steps x rows x width, of which there may be more steps: those become zeros. */
static void to_time(uint32_t rows, uint32_t steps, uint32_t steps_all, uint32_t width, const float *from,
                    float *to) {
  size_t line = (size_t)rows * width;
  if (steps == 1) memcpy(to, from, line * sizeof *to);
  for (uint32_t t = 0; steps > 1 && t < steps; t++)
    for (uint32_t i = 0; i < rows; i++)
      memcpy(to + t * line + (size_t)i * width, from + ((size_t)i * steps + t) * width, width * sizeof *to);
  memset(to + steps * line, 0, (steps_all - steps) * line * sizeof *to);
}

static void from_time(uint32_t rows, uint32_t steps, uint32_t width, const float *from, float *to) {
  size_t line = (size_t)rows * width;
  if (steps == 1) memcpy(to, from, line * sizeof *to);
  for (uint32_t t = 0; steps > 1 && t < steps; t++)
    for (uint32_t i = 0; i < rows; i++)
      memcpy(to + ((size_t)i * steps + t) * width, from + t * line + (size_t)i * width, width * sizeof *to);
}

/* Asks the judge about a tile that has gone forward, and puts its answer where backward looks for it: that
 * may be where the outputs are, so the judge is shown a copy. */
static void judge_tile(const lesson *l, const shoal_exec *exec, const desk *d, uint32_t first, double *sums) {
  const shoal_brain *net = l->net;
  const shoal_brain_batch *batch = l->batch;
  uint32_t last = exec->plan->graph->nodes_count - 1;
  float *gradient = exec->block + exec->plan->places[last].gradient;
  float *judged = net->steps == 1 ? gradient : d->gradients;
  double own[SUMS] = {0};
  from_time(exec->n, batch->steps, net->outputs, output_of(exec), d->outputs);
  memset(judged, 0, (size_t)exec->n * batch->steps * net->outputs * sizeof *judged);
  batch->judge(batch->self, first, exec->n, d->outputs, judged, own);
  if (judged != gradient) to_time(exec->n, batch->steps, net->steps, net->outputs, judged, gradient);
  for (int i = 0; i < SUMS; i++) sums[i] += own[i];
}

static void learn_tile(const lesson *l, uint32_t first, uint32_t n, const desk *d, float *gradient,
                       bool fresh, double *sums) {
  const shoal_brain *net = l->net;
  const shoal_brain_batch *batch = l->batch;
  size_t row = (size_t)batch->steps * net->inputs;
  shoal_exec exec = {.plan = l->plan,
                     .block = d->block,
                     .weights = net->weights,
                     .gradient = gradient,
                     .fresh = fresh,
                     .input_only = !batch->weights_too,
                     .n = n,
                     .round_n = batch->n,
                     .carry_rows = n};
  to_time(n, batch->steps, net->steps, net->inputs, batch->x + first * row, shoal_exec_batch(&exec).x);
  if (batch->state != NULL && net->state_floats > 0) {
    exec.carry = d->carry;
    load_carry(&exec, batch->state + (size_t)first * net->state_floats, net->state_floats);
  }
  shoal_exec_forward(&exec);
  judge_tile(l, &exec, d, first, sums);
  shoal_exec_backward(&exec);
  if (batch->input_gradient != NULL)
    from_time(n, batch->steps, net->inputs, exec.block + exec.plan->places[0].gradient,
              batch->input_gradient + first * row);
}

static uint32_t shard_start(const lesson *l, uint32_t v) {
  return (uint32_t)((uint64_t)l->batch->n * v / l->shards);
}

static void learn_shard(void *context, uint32_t v, uint32_t thread) {
  lesson *l = context;
  const shoal_brain *net = l->net;
  uint32_t start = shard_start(l, v), end = shard_start(l, v + 1);
  shoal_exec_clear(net->graph, net->shards[v]);
  for (uint32_t first = start; first < end; first += net->learn_tile)
    learn_tile(l, first, end - first < net->learn_tile ? end - first : net->learn_tile, &net->desks[thread],
               net->shards[v], first == start, l->sums[v]);
}

/* A power of two that follows from the batch alone, since it decides the bits. */
static uint32_t shards_of(uint32_t n, uint32_t steps) {
  uint32_t shards = 1;
  while (shards < SHARDS_MAX && 2 * shards <= n && (uint64_t)n * steps / (2 * shards) >= SHARD_ROWS_MIN)
    shards *= 2;
  return shards;
}

static void sum_run(void *context, uint32_t index, uint32_t thread) {
  (void)thread;
  const lesson *l = context;
  const shoal_run *run = &l->net->runs[index];
  const float *parts[SHARDS_MAX];
  for (uint32_t v = 0; v < l->shards; v++) parts[v] = l->net->shards[v] + run->offset;
  l->net->kernels->sum_parts(run->count, l->shards, parts, l->net->total + run->offset);
}

/* A task for each run of the weights. */
static void for_runs(const shoal_brain *net, shoal_pool_task f, void *context) {
  if (net->graph->weights_count >= SHARED_WEIGHTS_MIN) {
    run_tasks(net, net->runs_count, f, context);
    return;
  }
  for (uint32_t i = 0; i < net->runs_count; i++) f(context, i, 0);
}

void shoal_brain_learn(shoal_brain *net, const shoal_brain_batch *batch, double sums_out[8]) {
  SHOAL_ASSERT(!net->runs_only && batch->n > 0 && batch->steps > 0 && batch->steps <= net->steps);
  SHOAL_ASSERT(batch->input_gradient == NULL || net->input_gradient);
  lesson l = {.net = net,
              .batch = batch,
              .plan = batch->input_gradient != NULL ? net->input_plan : net->learn_plan,
              .shards = shards_of(batch->n, batch->steps)};
  run_tasks(net, l.shards, learn_shard, &l);
  for (uint32_t v = 0; sums_out != NULL && v < l.shards; v++)
    for (int i = 0; i < SUMS; i++) sums_out[i] = (v == 0 ? 0 : sums_out[i]) + l.sums[v][i];
  net->gradient = NULL;
  if (!batch->weights_too) return;
  if (l.shards > 1) for_runs(net, sum_run, &l);
  net->gradient = l.shards > 1 ? net->total : net->shards[0];
}

/* ---- a step ---- */

typedef struct stride {
  shoal_brain *net;
  shoal_update update;
} stride;

static void square_run(void *context, uint32_t index, uint32_t thread) {
  (void)thread;
  shoal_brain *net = ((stride *)context)->net;
  net->run_squares[index] =
      net->kernels->square_sum(net->runs[index].count, net->gradient + net->runs[index].offset);
}

static void update_run(void *context, uint32_t index, uint32_t thread) {
  (void)thread;
  const stride *s = context;
  shoal_brain *net = s->net;
  shoal_optimizer_apply(net->kernels, &s->update, &net->runs[index], net->weights, net->weights,
                        net->gradient, net->slots[0], net->slots[1]);
}

bool shoal_brain_step(shoal_brain *net, float rate, float clip) {
  SHOAL_ASSERT(net->gradient != NULL);
  shoal_recipe recipe = {.optimizer = SHOAL_ADAM, .momentum = BETA1, .beta2 = BETA2, .eps = EPSILON};
  stride s = {.net = net, .update = shoal_optimizer_update(&recipe, rate, net->steps_done + 1)};
  for_runs(net, square_run, &s);
  double squares = 0;
  for (uint32_t i = 0; i < net->runs_count; i++) squares += net->run_squares[i];
  if (!isfinite(squares)) return false;
  double norm = sqrt(squares);
  if (clip > 0 && norm > clip) s.update.grad_scale = (float)(clip / norm);
  for_runs(net, update_run, &s);
  net->steps_done++;
  return true;
}

void shoal_brain_follow(shoal_brain *net, const shoal_brain *from, float share) {
  SHOAL_ASSERT(same_params(net->graph, from->graph));
  size_t count = net->graph->weights_count;
  if (share == 1) {
    memcpy(net->weights, from->weights, count * sizeof *net->weights);
    return;
  }
  for (size_t i = 0; i < count; i++) net->weights[i] += share * (from->weights[i] - net->weights[i]);
}
