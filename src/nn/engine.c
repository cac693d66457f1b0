/* engine.c: see engine.h.
 *
 * Memory, all reserved at create: one block a crew for the plans' tensors, and a copy of it on the host where the
 * device's memory is another. A shard larger than a tile is worked off tile by tile, so that a tile's values stay in the
 * cache of the core. Tiles of a shard add to its gradient in order. */
#include "nn/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/stream.h"
#include "nn/op.h"

enum {
  USES = SHOAL_PLAN_TRAIN_INPUT + 1,
  SHARED_WEIGHTS_MIN = 1 << 16 /* adding up fewer is over before other threads have heard of it */
};

/* A piece of memory, in a list. */
typedef struct piece {
  struct piece *next;
  void *memory;
  size_t bytes;
  const shoal_device *device;
} piece;

struct shoal_engine {
  shoal_engine_config config;
  shoal_device processor; /* the device where the config names none */
  const shoal_device *device;
  const shoal_graph *graph;
  const shoal_kernels *kernels;
  shoal_pool *pool; /* a thread a crew */
  /* Of each crew its memory, a carry for tiles with a state, and its team where it is not one thread; the rest is set
   * for each tile. */
  shoal_exec *crews;
  uint32_t crews_count, crew_threads;
  shoal_plan *plans[USES];
  double *squares, *host_squares; /* of each run's gradient */
  piece *pieces;
  size_t reserved_bytes;
  bool is_short;       /* something could not be taken */
  size_t state_floats; /* of a stream's recurrent state */
  /* With config.times, for every thread: seconds of the kinds of work in their order, where the plan's steps (plan.h)
   * stand for FORWARD, LOSS and BACKWARD. times_stride keeps threads' cache lines apart. */
  double *times;
  size_t times_stride;
};

/* ---- memory ---- */

static void *reserve(shoal_engine *e, const shoal_device *device, size_t bytes) {
  piece *p = e->is_short ? NULL : calloc(1, sizeof *p);
  if (p != NULL) p->memory = device->take(device, bytes > 0 ? bytes : 1, &p->bytes);
  if (p == NULL || p->memory == NULL) {
    e->is_short = true;
    e->reserved_bytes += bytes; /* to say at the end how much all of it would be */
    free(p);
    return NULL;
  }
  p->next = e->pieces;
  p->device = device;
  e->pieces = p;
  e->reserved_bytes += p->bytes;
  return p->memory;
}

float *shoal_engine_take(shoal_engine *e, size_t floats) {
  return reserve(e, e->device, floats * sizeof(float));
}

float *shoal_engine_take_zeros(shoal_engine *e, size_t floats) {
  float *memory = shoal_engine_take(e, floats);
  if (memory != NULL) shoal_engine_zero(e, memory, floats);
  return memory;
}

float *shoal_engine_mirror(shoal_engine *e, float *of, size_t floats) {
  if (e->device->is_host_memory) return of;
  float *memory = reserve(e, &e->processor, floats * sizeof(float));
  if (memory != NULL) memset(memory, 0, floats * sizeof *memory);
  return memory;
}

void shoal_engine_place(const shoal_engine *e, float *to, const float *from, size_t floats) {
  if (to != from && to != NULL) e->device->copy_in(e->device, to, from, floats * sizeof *to);
}

void shoal_engine_gather(const shoal_engine *e, float *to, const float *from, size_t floats) {
  if (to == from)
    e->device->wait(e->device);
  else if (to != NULL)
    e->device->copy_out(e->device, to, from, floats * sizeof *to);
}

void shoal_engine_zero(const shoal_engine *e, float *memory, size_t floats) {
  e->kernels->zero(floats, memory);
}

bool shoal_engine_has_memory(const shoal_engine *e) { return !e->is_short; }
size_t shoal_engine_memory(const shoal_engine *e) { return e->reserved_bytes; }
uint32_t shoal_engine_threads(const shoal_engine *e) { return e->crews_count * e->crew_threads; }
const shoal_plan *shoal_engine_plan(const shoal_engine *e, shoal_plan_use use) { return e->plans[use]; }

/* ---- threads ---- */

static uint32_t largest_tile(const shoal_engine *e) {
  return e->config.tile > e->config.infer_tile ? e->config.tile : e->config.infer_tile;
}

/* In whole vectors. */
static size_t largest_scratch(const shoal_engine *e) {
  size_t most = e->kernels->gemm_scratch(UINT32_MAX, UINT32_MAX, UINT32_MAX);
  for (uint32_t i = 0; i < e->graph->nodes_count; i++) {
    const shoal_node *node = &e->graph->nodes[i];
    for (int backward = 0; node->op->scratch != NULL && backward < 2; backward++)
      most = shoal_larger(most, node->op->scratch(node, e->kernels, largest_tile(e), backward));
  }
  return (most + SHOAL_LANES - 1) / SHOAL_LANES * SHOAL_LANES;
}

/* The multiply-adds of the largest operation on a tile. */
static double largest_work(const shoal_engine *e) {
  uint64_t largest = 0;
  for (uint32_t i = 0; i < e->graph->nodes_count; i++) {
    uint64_t flops = shoal_node_flops(e->graph, &e->graph->nodes[i]).forward;
    if (flops > largest) largest = flops;
  }
  return (double)largest / 2 * largest_tile(e);
}

/* How many crews, of how many threads: no more than gain by it. Threads that share a shard gain less than those with
 * shards of their own, and nothing where its operations are over before what one has written has come to another. */
static void choose_crews(shoal_engine *e, uint32_t threads) {
  const double worth_a_thread = 9 << 16; /* multiply-adds, measured on small networks */
  double gain = largest_work(e) / worth_a_thread;
  uint32_t most = gain < 2 ? 1 : gain < threads ? (uint32_t)gain : threads;
  /* Measured: four threads on a shard are a little more than twice as fast as one. */
  const double sharing = 0.6;
  double best = INFINITY;
  uint32_t shards = e->config.shards;
  for (uint32_t crews = 1; crews <= shards && crews <= threads; crews++) {
    uint32_t each = threads / crews < most ? threads / crews : most, turns = (shards + crews - 1) / crews;
    double time = turns / pow(each, sharing);
    if (time > best) continue;
    best = time;
    e->crews_count = crews;
    e->crew_threads = each;
  }
}

static shoal_status make_crews(shoal_engine *e, shoal_error *err) {
  uint32_t threads = e->config.threads < e->device->threads_max ? e->config.threads : e->device->threads_max;
  e->crews_count = e->crew_threads = 1;
  SHOAL_ASSERT(e->config.pool == NULL || shoal_pool_threads(e->config.pool) <= e->device->threads_max);
  if (e->config.pool != NULL)
    e->crews_count = shoal_pool_threads(e->config.pool);
  else
    choose_crews(e, threads);
  e->crews = calloc(e->crews_count, sizeof *e->crews);
  if (e->crews == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for %u threads", threads);
  uint32_t all = shoal_engine_threads(e);
  e->pool = e->config.pool;
  if (e->pool != NULL) return SHOAL_OK;
  shoal_status status =
      shoal_pool_create_at(&e->pool, e->crews_count, (shoal_pool_place){0, e->crew_threads, all}, err);
  for (uint32_t i = 0; status == SHOAL_OK && e->crew_threads > 1 && i < e->crews_count; i++)
    status = shoal_pool_create_at(&e->crews[i].team, e->crew_threads,
                                  (shoal_pool_place){i * e->crew_threads, 1, all}, err);
  return status;
}

/* Tasks for all threads, those of teams too. Every crew gets the same share. */
typedef struct spread {
  const shoal_engine *engine;
  uint32_t tasks;
  shoal_pool_task f;
  void *context;
  uint32_t first, thread; /* in the share of a crew: the first of its tasks and of its threads */
} spread;

static void share_task(void *context, uint32_t index, uint32_t thread) {
  const spread *s = context;
  s->f(s->context, s->first + index, s->thread + thread);
}

static void spread_task(void *context, uint32_t index, uint32_t crew_index) {
  spread share = *(const spread *)context;
  const shoal_engine *e = share.engine;
  shoal_stretch part = shoal_part(share.tasks, 1, index, e->crews_count);
  share.first = (uint32_t)part.first;
  share.thread = crew_index * e->crew_threads;
  shoal_pool_run(e->crews[crew_index].team, (uint32_t)part.count, share_task, &share);
}

static void run_all(shoal_engine *e, uint32_t tasks, shoal_pool_task f, void *context) {
  spread s = {.engine = e, .tasks = tasks, .f = f, .context = context};
  if (e->graph->weights_count < SHARED_WEIGHTS_MIN || e->device->threads_max == 1)
    for (uint32_t i = 0; i < tasks; i++) f(context, i, 0);
  else if (e->crew_threads == 1)
    shoal_pool_run(e->pool, tasks, f, context);
  else
    shoal_pool_run(e->pool, e->crews_count, spread_task, &s);
}

/* ---- times ---- */

static double *times_of(const shoal_engine *e, uint32_t thread) {
  return e->times != NULL ? e->times + thread * e->times_stride : NULL;
}

static double clock_if(const double *times) { return times != NULL ? shoal_clock_seconds() : 0; }

/* Where the time of work that is no step of the plan is. */
static uint32_t time_entry(const shoal_engine *e, shoal_work work) {
  return work < SHOAL_WORK_FORWARD ? work : work + 2 * (e->graph->nodes_count - 1);
}

/* Adds the time since `since`, which came from clock_if, to that of such work, once for each of so many threads. */
static void note_time(const shoal_engine *e, double *times, shoal_work work, double since, uint32_t threads) {
  if (times != NULL) times[time_entry(e, work)] += (shoal_clock_seconds() - since) * threads;
}

void shoal_engine_times_reset(shoal_engine *e) {
  SHOAL_ASSERT(e->times != NULL);
  memset(e->times, 0, shoal_engine_threads(e) * e->times_stride * sizeof *e->times);
}

uint32_t shoal_engine_times(const shoal_engine *e, shoal_work_time *rows) {
  SHOAL_ASSERT(e->times != NULL);
  uint32_t nodes = e->graph->nodes_count, entry = 0, count = 0;
  for (int work = 0; work <= SHOAL_WORK_UPDATE; work++) {
    bool back = work == SHOAL_WORK_BACKWARD, of_node = back || work == SHOAL_WORK_FORWARD;
    for (uint32_t i = 0; i < (of_node ? nodes : 1); i++, entry++) {
      shoal_work_time row = {.work = (shoal_work)work, .node = back ? nodes - 1 - i : i};
      if (back && e->plans[SHOAL_PLAN_TRAIN]->places[row.node].gradient == SHOAL_NOWHERE) continue;
      for (uint32_t thread = 0; thread < shoal_engine_threads(e); thread++)
        row.seconds += times_of(e, thread)[entry];
      if (rows != NULL) rows[count] = row;
      count++;
    }
  }
  return count;
}

/* ---- create ---- */

static shoal_status make_plans(shoal_engine *e, shoal_error *err) {
  shoal_status status = SHOAL_OK;
  for (int use = 0; use <= (int)e->config.use && status == SHOAL_OK; use++) {
    uint32_t tile = use == SHOAL_PLAN_INFER ? e->config.infer_tile : e->config.tile;
    if (tile > 0)
      status = shoal_plan_create(&e->plans[use], e->graph, e->device, (shoal_plan_use)use, tile, err);
  }
  return status;
}

static void reserve_crew(shoal_engine *e, shoal_exec *exec, const float *class_weights) {
  size_t floats = 0;
  for (int use = 0; use < USES; use++)
    if (e->plans[use] != NULL && e->plans[use]->floats > floats) floats = e->plans[use]->floats;
  exec->block = shoal_engine_take(e, floats);
  exec->host = e->device->is_host_memory ? exec->block : reserve(e, &e->processor, floats * sizeof(float));
  exec->marks = reserve(e, &e->processor, e->graph->nodes_count * sizeof *exec->marks);
  exec->scratch_floats = largest_scratch(e);
  exec->team_scratch = shoal_engine_take(e, (e->crew_threads - 1) * exec->scratch_floats);
  exec->class_weights = class_weights;
  exec->carry = shoal_engine_take(e, e->state_floats * largest_tile(e));
}

static void reserve_all(shoal_engine *e) {
  float *class_weights = NULL;
  if (e->config.class_weights != NULL) {
    uint32_t classes = shoal_graph_output(e->graph)->features;
    class_weights = shoal_engine_take(e, classes);
    shoal_engine_place(e, class_weights, e->config.class_weights, classes);
  }
  for (uint32_t i = 0; i < e->crews_count; i++) reserve_crew(e, &e->crews[i], class_weights);
  if (e->config.use == SHOAL_PLAN_INFER) return;
  size_t doubles = e->graph->runs_count * (sizeof(double) / sizeof(float));
  e->squares = (double *)(void *)shoal_engine_take_zeros(e, doubles);
  e->host_squares = (double *)(void *)shoal_engine_mirror(e, (float *)(void *)e->squares, doubles);
  if (!e->config.times) return;
  e->times_stride = (time_entry(e, SHOAL_WORK_UPDATE) + 8) / 8 * 8;
  e->times = reserve(e, &e->processor, shoal_engine_threads(e) * e->times_stride * sizeof *e->times);
  if (e->times != NULL) shoal_engine_times_reset(e);
}

shoal_status shoal_engine_create(shoal_engine **out, const shoal_engine_config *config, shoal_error *err) {
  *out = NULL;
  shoal_engine *e = calloc(1, sizeof *e);
  if (e == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a network");
  shoal_status status = shoal_device_processor(&e->processor, err);
  e->config = *config;
  e->graph = config->graph;
  e->device = config->device != NULL ? config->device : &e->processor;
  e->kernels = e->device->kernels;
  e->state_floats = shoal_carry_floats(e->graph);
  if (status == SHOAL_OK) status = make_plans(e, err);
  if (status == SHOAL_OK) status = make_crews(e, err);
  if (status == SHOAL_OK) reserve_all(e);
  if (e->is_short)
    status = shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory: the model needs more than %.1f GB",
                        (double)e->reserved_bytes / 1e9);
  if (status == SHOAL_OK)
    *out = e;
  else
    shoal_engine_destroy(e);
  return status;
}

void shoal_engine_destroy(shoal_engine *e) {
  if (e == NULL) return;
  for (uint32_t i = 0; e->crews != NULL && i < e->crews_count; i++) shoal_pool_destroy(e->crews[i].team);
  free(e->crews);
  if (e->config.pool == NULL) shoal_pool_destroy(e->pool);
  for (int use = 0; use < USES; use++) shoal_plan_destroy(e->plans[use]);
  for (piece *p = e->pieces, *next; p != NULL; p = next) {
    next = p->next;
    p->device->give(p->device, p->memory, p->bytes);
    free(p);
  }
  free(e);
}

/* ---- pass ---- */

typedef struct pass_work {
  shoal_engine *engine;
  const shoal_pass *pass;
} pass_work;

uint32_t shoal_engine_shard_start(const shoal_graph *graph, uint32_t n, uint32_t shards, uint32_t shard) {
  return (uint32_t)shoal_part(n, graph->samples_unit, shard, shards).first;
}

/* The outputs of a tile, with the output's activation, among those of the pass. */
static void keep_outputs(const shoal_engine *e, const shoal_pass *p, const shoal_tile *tile,
                         const float *outputs) {
  const shoal_kernels *k = e->processor.kernels; /* the outputs are on the host */
  const shoal_shape *shape = shoal_graph_output(e->graph);
  size_t step = (size_t)tile->n * shape->features;
  for (uint32_t s = 0; s < shape->steps; s++) {
    const float *from = outputs + s * step;
    float *to = p->out + ((size_t)s * p->n + tile->first) * shape->features;
    if (e->graph->output_activation == SHOAL_ACT_SOFTMAX)
      k->softmax_forward(tile->n, shape->features, from, to);
    else
      k->act_forward(e->graph->output_activation, step, from, to);
  }
}

static void run_tile(const shoal_engine *e, const shoal_pass *p, shoal_exec *exec, shoal_tile *tile,
                     shoal_used_rows *rows, shoal_sums *sums, double *times) {
  size_t state = e->state_floats;
  shoal_batch batch = shoal_exec_batch(exec);
  double since = clock_if(times);
  if (e->device->is_host_memory) e->device->wait(e->device); /* the last tile may still be read */
  p->source->fetch(p->source->self, p->epoch, p->first + tile->first, tile->n, &batch);
  shoal_exec_send(exec);
  if (rows != NULL) shoal_used_rows_use(rows, batch.tokens, (size_t)tile->n * e->graph->nodes[0].shape.steps);
  note_time(e, times, SHOAL_WORK_FETCH, since, e->crew_threads);
  if (p->state != NULL && state > 0) {
    exec->carry = e->crews[tile->crew].carry;
    exec->carry_rows = tile->n;
    for (uint32_t i = 0; i < tile->n; i++)
      shoal_carry_copy(exec->plan, exec->carry, tile->n, i, 1, NULL, p->state + (tile->first + i) * state);
  }
  shoal_exec_forward(exec);
  if (p->out != NULL || p->judge != NULL) tile->outputs = shoal_exec_outputs(exec);
  /* Before the loss or the judge, since the gradient may overwrite them. */
  if (p->out != NULL) keep_outputs(e, p, tile, tile->outputs);
  if (p->judge != NULL) { /* in place of the loss */
    tile->gradient = shoal_exec_output_gradient(exec);
    p->judge(p->self, tile);
    shoal_exec_send_gradient(exec);
  }
  if (sums != NULL) shoal_exec_loss(exec, sums);
  if (exec->plan->training) shoal_exec_backward(exec);
  for (uint32_t i = 0; p->state_after != NULL && state > 0 && i < tile->n; i++)
    shoal_carry_copy(exec->plan, exec->carry, tile->n, i, 1, p->state_after + (tile->first + i) * state,
                     NULL);
  if (p->watch == NULL) return;
  if (exec->plan->input_gradient) tile->input_gradient = shoal_exec_input_gradient(exec);
  p->watch(p->self, tile);
}

/* Works off a shard, tile by tile. */
static void shard_task(void *context, uint32_t index, uint32_t crew_index) {
  const pass_work *work = context;
  const shoal_engine *e = work->engine;
  const shoal_pass *p = work->pass;
  const shoal_plan *plan = e->plans[p->use];
  uint32_t shard = p->first_shard + index;
  uint32_t start = shoal_engine_shard_start(e->graph, p->n, p->shards, shard),
           end = shoal_engine_shard_start(e->graph, p->n, p->shards, shard + 1);
  /* Of the crew's first thread, which notes the others' as well: they wait meanwhile. */
  double *times = plan->training ? times_of(e, crew_index * e->crew_threads) : NULL, since = clock_if(times);
  float *gradient = plan->training ? p->gradients[index] : NULL;
  shoal_used_rows *rows = p->rows != NULL ? p->rows[index] : NULL;
  if (plan->training) shoal_exec_clear(plan, gradient, rows);
  if (plan->training && start == end) /* without a tile that overwrites the large matrices */
    shoal_engine_zero(e, gradient, e->graph->weights_count);
  note_time(e, times, SHOAL_WORK_CLEAR, since, e->crew_threads);
  if (p->sums != NULL) p->sums[index] = (shoal_sums){0};
  for (uint32_t first = start, n; first < end; first += n) {
    n = end - first < plan->samples_max ? end - first : plan->samples_max;
    shoal_exec exec = e->crews[crew_index];
    exec.plan = plan;
    exec.weights = p->weights;
    exec.gradient = gradient;
    exec.fresh = first == start;
    exec.input_only = p->input_only;
    exec.n = n;
    exec.round_n = p->n;
    exec.epoch = p->epoch;
    exec.carry = p->carry;
    exec.carry_row = p->carry != NULL ? first : 0;
    exec.carry_rows = p->carry_rows;
    exec.step_seconds = times != NULL ? times + SHOAL_WORK_FORWARD : NULL;
    shoal_tile tile = {.shard = shard, .crew = crew_index, .first = first, .n = n};
    run_tile(e, p, &exec, &tile, rows, p->sums != NULL ? &p->sums[index] : NULL, times);
  }
}

void shoal_engine_pass(shoal_engine *e, const shoal_pass *p) {
  SHOAL_ASSERT(e->plans[p->use] != NULL && p->first_shard + p->shards_count <= p->shards);
  SHOAL_ASSERT(p->judge == NULL || (e->plans[p->use]->training && p->sums == NULL));
  SHOAL_ASSERT(p->state_after == NULL || p->state != NULL);
  pass_work work = {e, p};
  shoal_pool_run(e->pool, p->shards_count, shard_task, &work);
}

/* ---- apply ---- */

double *shoal_engine_squares(const shoal_engine *e) { return e->host_squares; }

typedef struct apply_work {
  shoal_engine *engine;
  const shoal_addends *addends;
  const shoal_apply *apply;
  shoal_update update;
  bool adds, squares, updates;
} apply_work;

/* Where a part is missing, neighbours first, as sum_parts does: it is in its left neighbour already. */
static void add_run(const shoal_engine *e, const shoal_addends *a, const shoal_run *run) {
  float *at[SHOAL_SHARDS_MAX];
  uint32_t missing = 0;
  for (uint32_t i = 0; i < a->parts_count; i++) {
    missing += a->parts[i] == NULL;
    at[i] = a->parts[i] != NULL ? a->parts[i] + run->offset : NULL;
  }
  if (missing == 0 && a->parts_count > 1)
    e->kernels->sum_parts(run->count, a->parts_count, (const float *const *)at, a->total + run->offset);
  for (uint32_t width = 1; missing > 0 && width < a->parts_count; width *= 2)
    for (uint32_t i = 0; i + width < a->parts_count; i += 2 * width) {
      if (at[i + width] == NULL) continue;
      SHOAL_ASSERT(at[i] != NULL);
      e->kernels->add(run->count, at[i], at[i + width], at[i]);
      at[i + width] = NULL;
    }
}

static void copy_run(const shoal_addends *a, const shoal_run *run, const float *from) {
  if (a->copy != NULL) shoal_stream_floats(a->copy + run->offset, from + run->offset, run->count);
}

static void run_task(void *context, uint32_t index, uint32_t thread) {
  const apply_work *w = context;
  shoal_engine *e = w->engine;
  const shoal_addends *a = w->addends;
  index += a->first_run;
  const shoal_run *run = &e->graph->runs[index];
  bool has_rows = a->rows != NULL && e->graph->params[run->param].by_rows;
  const shoal_used_rows *rows = has_rows ? a->total_rows : NULL; /* those of the sum that are in use */
  shoal_run stretch;
  double *times = times_of(e, thread), since = clock_if(times);
  for (size_t at = 0; w->adds && shoal_used_rows_next(rows, run, &at, &stretch);) add_run(e, a, &stretch);
  if (w->squares && run->kind != SHOAL_PARAM_STATISTIC)
    e->kernels->square_sum(run->count, a->total + run->offset, &e->squares[index]);
  if (w->apply == NULL) copy_run(a, run, a->total);
  note_time(e, times, SHOAL_WORK_SUM, since, 1);
  if (!w->updates) return;
  since = clock_if(times);
  const shoal_apply *apply = w->apply;
  if (!shoal_optimizer_keeps(&w->update)) rows = NULL;
  for (size_t at = 0; shoal_used_rows_next(rows, run, &at, &stretch);)
    shoal_optimizer_apply(e->kernels, &w->update, &stretch, apply->weights, apply->weights, a->total,
                          apply->slot1, apply->slot2);
  copy_run(a, run, apply->weights);
  note_time(e, times, SHOAL_WORK_UPDATE, since, 1);
}

void shoal_engine_add(shoal_engine *e, const shoal_addends *addends) {
  SHOAL_ASSERT(addends->rows == NULL); /* only apply unites them */
  apply_work w = {.engine = e, .addends = addends, .adds = true};
  run_all(e, addends->runs_count, run_task, &w);
}

shoal_status shoal_engine_apply(shoal_engine *e, const shoal_apply *apply, shoal_error *err) {
  const shoal_addends *a = &apply->addends;
  apply_work w = {
      .engine = e, .addends = a, .apply = apply, .update = apply->update, .adds = a->parts_count > 1};
  if (a->rows != NULL && a->parts_count > 1)
    shoal_used_rows_unite(a->total_rows, a->rows, a->parts_count, e->device, a->total);
  w.squares = apply->clip > 0;
  w.updates = !w.squares;
  run_all(e, a->runs_count, run_task, &w);
  if (w.updates) return SHOAL_OK;
  shoal_engine_gather(e, (float *)(void *)e->host_squares, (const float *)(const void *)e->squares,
                      e->graph->runs_count * (sizeof(double) / sizeof(float)));
  shoal_status status = apply->agree != NULL ? apply->agree(apply->self, err) : SHOAL_OK;
  if (status != SHOAL_OK) return status;
  double squares = 0; /* of all runs in their order, as one machine would add them */
  for (uint32_t i = 0; i < e->graph->runs_count; i++) squares += e->host_squares[i];
  double norm = sqrt(squares);
  if (apply->finite_only && !isfinite(norm))
    return shoal_fail(err, SHOAL_INVALID, "the gradient is not a number");
  if (norm > apply->clip) w.update.grad_scale = (float)((double)apply->clip / norm);
  w.adds = w.squares = false;
  w.updates = true;
  run_all(e, a->runs_count, run_task, &w);
  return SHOAL_OK;
}
