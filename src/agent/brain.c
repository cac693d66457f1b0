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
#include "nn/engine.h"
#include "nn/op.h"

enum {
  SHARDS_MAX = 8,
  SHARD_ROWS_MIN = 64,
  TILE_FLOATS = 1 << 17,
  TILE_MIN = 16,
  TILE_MAX = 512,
  SUMS = 8,
  LINE_BYTES = 64, /* of the lines that are put around a body */
};
static const float BETA1 = 0.9f, BETA2 = 0.999f, EPSILON = 1e-5f;

/* A graph and the text that it was made of. */
typedef struct made {
  shoal_model *model;
  shoal_graph *graph;
} made;

struct shoal_brain {
  uint32_t inputs, outputs, steps, state_floats;
  made one, many; /* of one step and of `steps`; `many` is empty where they are the same */
  const shoal_graph *graph, *learn_graph;
  shoal_engine *runner, *learner; /* of one step, to act with; of `steps`, or NULL */
  float *desks;       /* a tile's outputs and their gradients for each thread, sample after sample */
  size_t desk_floats; /* of either */
  float *weights, *slots[2];
  uint64_t steps_done;
  float *shards[SHARDS_MAX], *total; /* the shards' gradients, and room for their sum */
  uint32_t shards_count;             /* of the last lesson; 0: there is no gradient to step with */
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

/* What the engine takes but a network that acts step by step cannot have. */
static shoal_status check_graph(const shoal_brain_config *config, const shoal_graph *graph, bool recurrent,
                                uint32_t steps, shoal_error *err) {
  for (uint32_t i = 0; i < graph->nodes_count; i++) {
    const shoal_node *node = &graph->nodes[i];
    const shoal_layer *layer = &graph->model->layers[node->layer];
    const char *why = NULL;
    if (shoal_node_is(node, SHOAL_OP_RANDOM | SHOAL_OP_WHOLE_SHARD))
      why = "makes a row's outcome depend on more than the row; leave it out";
    else if (recurrent && layer->bidirectional)
      why = "looks at steps to come; leave out bidirectional";
    else if (recurrent && layer->last)
      why = "drops all steps but the last; leave out last";
    else if (recurrent && shoal_node_is(node, SHOAL_OP_MIXES_STEPS))
      why = "mixes steps; a recurrent network needs them one by one";
    if (why != NULL)
      return shoal_fail(err, SHOAL_INVALID, "%s:%u: %s %s", where(config), layer->line, layer->op->word, why);
  }
  const shoal_shape *out = shoal_graph_output(graph);
  shoal_shape_kind kind = recurrent ? SHOAL_SEQUENCE : SHOAL_VECTOR;
  char text[SHOAL_SHAPE_TEXT_MAX];
  if (out->kind != kind || out->steps != steps || out->features != config->outputs)
    return shoal_fail(err, SHOAL_INVALID, "%s: with an output it ends in %s, where %s is needed",
                      where(config), shoal_shape_text(out, text),
                      recurrent ? "a value for each step" : "a vector");
  return SHOAL_OK;
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
  SHOAL_ASSERT(shoal_graph_same_params(net->one.graph, net->many.graph));
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

/* ---- memory ---- */

static uint32_t tile_of(const shoal_graph *graph, bool training) {
  uint64_t values = 0;
  for (uint32_t i = 0; i < graph->nodes_count; i++) values += shoal_shape_values(&graph->nodes[i].shape);
  uint64_t rows = TILE_FLOATS / (training ? 2 * values : values) / TILE_MIN * TILE_MIN;
  if (rows < TILE_MIN) return TILE_MIN;
  return rows < TILE_MAX ? (uint32_t)rows : TILE_MAX;
}

static shoal_status make_engines(shoal_brain *net, const shoal_brain_config *config, shoal_error *err) {
  shoal_engine_config engine = {
      .graph = net->graph, .infer_tile = tile_of(net->graph, false), .pool = config->pool};
  shoal_status status = shoal_engine_create(&net->runner, &engine, err);
  if (status != SHOAL_OK || config->runs_only) return status;
  engine.graph = net->learn_graph;
  engine.use = config->input_gradient ? SHOAL_PLAN_TRAIN_INPUT : SHOAL_PLAN_TRAIN;
  engine.infer_tile = 0;
  engine.tile = tile_of(net->learn_graph, true);
  return shoal_engine_create(&net->learner, &engine, err);
}

/* Takes the memory that is left to take; false when it is short. */
static bool take_all(shoal_brain *net) {
  size_t count = net->graph->weights_count;
  net->weights = shoal_engine_take_zeros(net->runner, count);
  shoal_engine *e = net->learner;
  if (e == NULL) return net->weights != NULL;
  for (int i = 0; i < SHARDS_MAX; i++) net->shards[i] = shoal_engine_take(e, count);
  for (int i = 0; i < 2; i++) net->slots[i] = shoal_engine_take_zeros(e, count);
  net->total = shoal_engine_take(e, count);
  net->desk_floats = (size_t)tile_of(net->learn_graph, true) * net->steps * net->outputs;
  net->desks = shoal_engine_take(e, 2 * net->desk_floats * shoal_engine_threads(e));
  return net->weights != NULL && shoal_engine_has_memory(e);
}

shoal_status shoal_brain_create(shoal_brain **out, const shoal_brain_config *config, shoal_error *err) {
  SHOAL_ASSERT(config->inputs > 0 && config->outputs > 0 && config->steps > 0);
  *out = NULL;
  shoal_brain *net = calloc(1, sizeof *net);
  if (net == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a network");
  *net = (shoal_brain){.inputs = config->inputs, .outputs = config->outputs, .steps = 1};
  shoal_status status = make_graphs(net, config, err);
  if (status == SHOAL_OK) status = make_engines(net, config, err);
  if (status == SHOAL_NO_MEMORY || (status == SHOAL_OK && !take_all(net)))
    status = shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for the network of %s", config->name);
  if (status != SHOAL_OK) {
    shoal_brain_destroy(net);
    return status;
  }
  shoal_graph_init_weights(net->graph, config->seed, net->weights);
  const shoal_node *last = &net->graph->nodes[net->graph->nodes_count - 1];
  const shoal_param *weight = &net->graph->params[last->params[0]];
  for (size_t i = 0; i < weight->count; i++) net->weights[weight->offset + i] *= config->output_scale;
  *out = net;
  return SHOAL_OK;
}

void shoal_brain_destroy(shoal_brain *net) {
  if (net == NULL) return;
  shoal_engine_destroy(net->runner);
  shoal_engine_destroy(net->learner);
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
  SHOAL_ASSERT(net->learner != NULL && (which == 0 || which == 1));
  return net->slots[which];
}

/* ---- between the caller's rows and the engine's ---- */

/* a x b x width to b x a x width. */
static void turn(uint32_t a, uint32_t b, uint32_t width, const float *from, float *to) {
  if (a == 1 || b == 1)
    memcpy(to, from, (size_t)a * b * width * sizeof *to);
  else
    shoal_kernels_get()->swap_rows(a, b, width, from, to);
}

/* rows x steps x width to steps x rows x width, of which there may be more steps: those become zeros. */
static void to_time(uint32_t rows, uint32_t steps, uint32_t steps_all, uint32_t width, const float *from,
                    float *to) {
  size_t line = (size_t)rows * width;
  turn(rows, steps, width, from, to);
  memset(to + steps * line, 0, (steps_all - steps) * line * sizeof *to);
}

/* The caller's rows as a source. */
typedef struct rows {
  const float *x;
  uint32_t steps, steps_all, width;
} rows;

static void fetch_rows(const void *self, uint64_t epoch, uint64_t first, uint32_t n,
                       const shoal_batch *into) {
  const rows *r = self;
  (void)epoch;
  to_time(n, r->steps, r->steps_all, r->width, r->x + first * r->steps * r->width, into->x);
}

/* ---- running ---- */

void shoal_brain_run(shoal_brain *net, const float *weights, uint32_t n, const float *x, float *state,
                     float *out) {
  if (n == 0) return;
  rows in = {x, 1, 1, net->inputs};
  const shoal_source source = {.self = &in, .samples = n, .fetch = fetch_rows};
  uint32_t shards = (n + SHARD_ROWS_MIN - 1) / SHARD_ROWS_MIN, threads = shoal_engine_threads(net->runner);
  if (shards > threads) shards = threads;
  const shoal_pass pass = {.use = SHOAL_PLAN_INFER,
                           .source = &source,
                           .n = n,
                           .shards = shards,
                           .shards_count = shards,
                           .weights = weights != NULL ? weights : net->weights,
                           .out = out,
                           .state = state,
                           .state_after = state};
  shoal_engine_pass(net->runner, &pass);
}

/* ---- learning ---- */

typedef struct lesson {
  const shoal_brain *net;
  const shoal_brain_batch *batch;
  double sums[SHARDS_MAX][SUMS];
} lesson;

/* Shows the caller's judge a copy of the outputs, since the gradient may be written where they are. */
static void judge_tile(void *self, const shoal_tile *tile) {
  lesson *l = self;
  const shoal_brain *net = l->net;
  const shoal_brain_batch *batch = l->batch;
  float *outputs = net->desks + 2 * net->desk_floats * tile->crew;
  float *judged = net->steps == 1 ? tile->gradient : outputs + net->desk_floats;
  double own[SUMS] = {0};
  turn(batch->steps, tile->n, net->outputs, tile->outputs, outputs);
  memset(judged, 0, (size_t)tile->n * batch->steps * net->outputs * sizeof *judged);
  batch->judge(batch->self, tile->first, tile->n, outputs, judged, own);
  if (judged != tile->gradient)
    to_time(tile->n, batch->steps, net->steps, net->outputs, judged, tile->gradient);
  for (int i = 0; i < SUMS; i++) l->sums[tile->shard][i] += own[i];
}

static void keep_input_gradient(void *self, const shoal_tile *tile) {
  const lesson *l = self;
  const shoal_brain_batch *batch = l->batch;
  turn(batch->steps, tile->n, l->net->inputs, tile->input_gradient,
       batch->input_gradient + (size_t)tile->first * batch->steps * l->net->inputs);
}

/* A power of two that follows from the batch alone, since it decides the bits. */
static uint32_t shards_of(uint32_t n, uint32_t steps) {
  uint32_t shards = 1;
  while (shards < SHARDS_MAX && 2 * shards <= n && (uint64_t)n * steps / (2 * shards) >= SHARD_ROWS_MIN)
    shards *= 2;
  return shards;
}

void shoal_brain_learn(shoal_brain *net, const shoal_brain_batch *batch, double sums_out[8]) {
  SHOAL_ASSERT(net->learner != NULL && batch->n > 0 && batch->steps > 0 && batch->steps <= net->steps);
  lesson l = {.net = net, .batch = batch};
  rows in = {batch->x, batch->steps, net->steps, net->inputs};
  const shoal_source source = {.self = &in, .samples = batch->n, .fetch = fetch_rows};
  uint32_t shards = shards_of(batch->n, batch->steps);
  const shoal_pass pass = {.use = batch->input_gradient != NULL ? SHOAL_PLAN_TRAIN_INPUT : SHOAL_PLAN_TRAIN,
                           .source = &source,
                           .n = batch->n,
                           .shards = shards,
                           .shards_count = shards,
                           .weights = net->weights,
                           .gradients = net->shards,
                           .input_only = !batch->weights_too,
                           .self = &l,
                           .judge = judge_tile,
                           .watch = batch->input_gradient != NULL ? keep_input_gradient : NULL,
                           .state = batch->state};
  shoal_engine_pass(net->learner, &pass);
  for (uint32_t v = 0; sums_out != NULL && v < shards; v++)
    for (int i = 0; i < SUMS; i++) sums_out[i] = (v == 0 ? 0 : sums_out[i]) + l.sums[v][i];
  net->shards_count = batch->weights_too ? shards : 0;
}

bool shoal_brain_step(shoal_brain *net, float rate, float clip) {
  SHOAL_ASSERT(net->shards_count > 0);
  const shoal_recipe recipe = {.optimizer = SHOAL_ADAM, .momentum = BETA1, .beta2 = BETA2, .eps = EPSILON};
  shoal_apply apply = {.addends = {.runs_count = net->learn_graph->runs_count,
                                   .parts = net->shards,
                                   .parts_count = net->shards_count,
                                   .total = net->shards_count > 1 ? net->total : net->shards[0]},
                       .update = shoal_optimizer_update(&recipe, rate, net->steps_done + 1),
                       .clip = clip > 0 ? clip : INFINITY,
                       .finite_only = true,
                       .weights = net->weights,
                       .slot1 = net->slots[0],
                       .slot2 = net->slots[1]};
  if (shoal_engine_apply(net->learner, &apply, NULL) != SHOAL_OK) return false;
  net->steps_done++;
  return true;
}

void shoal_brain_follow(shoal_brain *net, const shoal_brain *from, float share) {
  SHOAL_ASSERT(shoal_graph_same_params(net->graph, from->graph));
  size_t count = net->graph->weights_count;
  if (share == 1)
    memcpy(net->weights, from->weights, count * sizeof *net->weights);
  else
    shoal_kernels_get()->follow(count, share, net->weights, from->weights, net->weights);
}
