/* trainer.c: see trainer.h.
 *
 * Memory, all reserved at create: one block a crew for the plans,
 * one gradient a shard, one vector for their sum, the weights and the optimiser's slots. A
 * shard larger than a tile is worked off tile by tile, so that a tile's activations stay in
 * the cache of the core. Tiles of a shard add to its gradient in order. */
#include "nn/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/pool.h"
#include "nn/loss.h"
#include "nn/op.h"
#include "nn/optimizer.h"
#include "nn/plan.h"
#include "nn/tree.h"

/* A large model is one whose gradients do not stay in the second cache. */
enum { SHARDS_DEFAULT_MAX = 8, IMAGE_TILE = 32, LARGE_MODEL = 1 << 18, HUGE_PAGE = 2 << 20 };

struct shoal_trainer {
  shoal_trainer_config config;
  const shoal_graph *graph;
  const shoal_recipe *recipe;
  const shoal_kernels *kernels;
  shoal_pool *pool;
  /* Crews take shards; the threads of a crew share the work inside its shard. The pool has a thread for each crew, and
   * crew i's other threads are in teams[i]. */
  uint32_t crews, crew_threads;
  shoal_team **teams; /* NULL where a crew is one thread */
  uint32_t threads, shards, tile;
  uint32_t unit; /* samples that stay together in a shard: a vector of them for images, else 1 */
  shoal_plan *train_plan, *infer_plan; /* train_plan is NULL when only evaluating */
  float **blocks;                      /* one a crew */
  float **gradients;                   /* one a shard */
  float *total;                        /* their sum; of a single shard its gradient itself */
  bool has_total;                      /* a round has been made */
  shoal_run *runs;
  double *run_squares;
  size_t runs_count;
  float *eval_carry; /* recurrent state while evaluating or predicting */
  shoal_train_state state;
  /* With config.times, for every thread: seconds of each step of the training plan, then of
   * the loss, then of the kinds of work below. times_stride keeps threads' cache lines apart. */
  double *times;
  size_t times_stride;
  size_t reserved_bytes;
};

enum { TIME_LOSS, TIME_FETCH, TIME_CLEAR, TIME_SUM, TIME_UPDATE, TIMES_BESIDE_STEPS };

/* ---- memory ---- */

/* Large pieces ask for huge pages: a matrix is walked down its columns too, and each row would
 * be another small page for the processor to look up. Where there are none, nothing is lost. */
static void *reserve(shoal_trainer *t, size_t bytes, bool *ok) {
  size_t unit = bytes >= HUGE_PAGE / 2 ? HUGE_PAGE : 64;
  size_t rounded = (bytes + unit - 1) / unit * unit;
  if (rounded == 0) rounded = unit;
  void *memory = aligned_alloc(unit, rounded);
  if (memory == NULL) {
    *ok = false;
    return NULL;
  }
  if (unit == HUGE_PAGE) (void)madvise(memory, rounded, MADV_HUGEPAGE);
  t->reserved_bytes += rounded;
  return memory;
}

static float *reserve_floats(shoal_trainer *t, size_t count, bool *ok) {
  return reserve(t, count * sizeof(float), ok);
}

static float *reserve_zeros(shoal_trainer *t, size_t count, bool *ok) {
  float *floats = reserve_floats(t, count, ok);
  if (floats != NULL) memset(floats, 0, count * sizeof *floats);
  return floats;
}

/* Blocks and gradients are written before they are read, so they are left as they come: a
 * block of a thread that never gets a shard costs no memory. */
static float **reserve_list(shoal_trainer *t, uint32_t count, size_t floats, bool *ok) {
  float **list = calloc(count, sizeof *list);
  if (list == NULL) *ok = false;
  for (uint32_t i = 0; *ok && i < count; i++) list[i] = reserve_floats(t, floats, ok);
  return list;
}

static bool has_images(const shoal_graph *graph) {
  for (uint32_t i = 0; i < graph->nodes_count; i++)
    if (graph->nodes[i].shape.kind == SHOAL_IMAGE) return true;
  return false;
}

/* How many rows a shard should have at least, when there are `shards` already. Images come in
 * vectors of samples; one will do where more threads can help, and under batch normalisation,
 * which keeps a whole shard's images in the cache. Else two: dense layers behind them gain. */
static uint32_t least_rows(const shoal_graph *graph, uint32_t shards) {
  if (!has_images(graph)) return graph->weights_count > LARGE_MODEL ? 128 : 48;
  return shards < 4 || shoal_graph_has(graph, SHOAL_OP_WHOLE_SHARD) ? SHOAL_LANES : 2 * SHOAL_LANES;
}

/* The number of shards decides the result's bits, so it follows from the model and the
 * batch alone: a power of two, with enough rows a shard that adding up the gradients is cheap
 * beside computing them. */
uint32_t shoal_trainer_shards_of(const shoal_graph *graph, uint32_t batch) {
  uint32_t asked = graph->model->recipe.shards;
  if (asked > 0) return asked < batch ? asked : batch;
  uint64_t rows = (uint64_t)batch * (has_images(graph) ? 1 : graph->nodes[0].shape.steps);
  uint32_t shards = 1;
  while (shards < SHARDS_DEFAULT_MAX && 2 * shards <= batch &&
         rows / (2 * shards) >= least_rows(graph, shards))
    shards *= 2;
  return shards;
}

/* Where shard v of n samples begins. Images are cut at whole vectors of samples. */
uint32_t shoal_trainer_shard_start(const shoal_trainer *t, uint32_t n, uint32_t v) {
  uint64_t units = (n + t->unit - 1) / t->unit;
  uint64_t start = units * v / t->shards * t->unit;
  return start < n ? (uint32_t)start : n;
}

static uint32_t largest_shard(const shoal_trainer *t) {
  uint32_t largest = 0;
  for (uint32_t v = 0; v < t->shards; v++) {
    uint32_t n = shoal_trainer_shard_start(t, t->config.batch, v + 1) -
                 shoal_trainer_shard_start(t, t->config.batch, v);
    if (n > largest) largest = n;
  }
  return largest;
}

/* Batch normalisation sees as much of a shard at once as a source gives; without it, images
 * go in small tiles. */
static uint32_t choose_tile(const shoal_trainer *t) {
  uint32_t shard = largest_shard(t);
  bool small = has_images(t->graph) && !shoal_graph_has(t->graph, SHOAL_OP_WHOLE_SHARD);
  uint32_t most = small ? IMAGE_TILE : SHOAL_FETCH_MAX;
  return shard < most ? shard : most;
}

/* ---- threads ---- */

static size_t largest_scratch(const shoal_trainer *t) {
  size_t most = t->kernels->gemm_scratch(UINT32_MAX, UINT32_MAX, UINT32_MAX);
  for (uint32_t i = 0; i < t->graph->nodes_count; i++) {
    const shoal_node *node = &t->graph->nodes[i];
    for (int backward = 0; node->op->scratch != NULL && backward < 2; backward++) {
      size_t scratch = node->op->scratch(t->graph, t->kernels, node, t->tile, backward);
      if (scratch > most) most = scratch;
    }
  }
  return most;
}

/* How many crews, of how many threads. Threads that share a shard gain less than those with shards of their own. */
static void choose_crews(shoal_trainer *t) {
  const double sharing =
      0.6; /* measured: four threads on a shard are a little more than twice as fast as one */
  double best = INFINITY;
  for (uint32_t crews = 1; crews <= t->shards && crews <= t->threads; crews++) {
    uint32_t each = t->threads / crews, turns = (t->shards + crews - 1) / crews;
    double time = turns / pow(each, sharing);
    if (time > best) continue;
    best = time;
    t->crews = crews;
    t->crew_threads = each;
  }
}

static shoal_status make_crews(shoal_trainer *t, shoal_error *err) {
  choose_crews(t);
  uint32_t all = t->crews * t->crew_threads;
  shoal_status status = shoal_pool_create_beside(&t->pool, t->crews, all - t->crews, err);
  if (status != SHOAL_OK || t->crew_threads == 1) return status;
  t->teams = calloc(t->crews, sizeof *t->teams);
  if (t->teams == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for %u threads", all);
  size_t scratch = largest_scratch(t);
  for (uint32_t i = 0; status == SHOAL_OK && i < t->crews; i++)
    status = shoal_team_create(&t->teams[i], t->crew_threads, all - t->crew_threads, scratch, err);
  return status;
}

/* Reserves what only training needs. */
static void reserve_training(shoal_trainer *t, bool *ok) {
  shoal_train_state *state = &t->state;
  size_t weights = state->weights_count;
  uint32_t slots = shoal_optimizer_slots(t->recipe->optimizer);
  if (slots > 0) state->slot1 = reserve_zeros(t, weights, ok);
  if (slots > 1) state->slot2 = reserve_zeros(t, weights, ok);
  if (t->graph->model->carry) state->carry = reserve_zeros(t, state->carry_count, ok);
  t->gradients = reserve_list(t, t->shards, weights, ok);
  if (*ok) t->total = t->shards > 1 ? reserve_floats(t, weights, ok) : t->gradients[0];
  t->runs_count = shoal_optimizer_runs(t->graph, NULL);
  t->runs = reserve(t, t->runs_count * sizeof *t->runs, ok);
  t->run_squares = reserve(t, t->runs_count * sizeof *t->run_squares, ok);
  if (!t->config.times) return;
  t->times_stride = (t->train_plan->steps_count + TIMES_BESIDE_STEPS + 7) / 8 * 8;
  t->times = reserve(t, t->threads * t->times_stride * sizeof *t->times, ok);
  if (t->times != NULL) shoal_trainer_times_reset(t);
}

/* Reserves everything; false when memory is short. */
static bool reserve_all(shoal_trainer *t) {
  bool ok = true;
  size_t block = t->infer_plan->floats;
  if (t->train_plan != NULL && t->train_plan->floats > block) block = t->train_plan->floats;
  t->blocks = reserve_list(t, t->crews, block, &ok);
  shoal_train_state *state = &t->state;
  state->weights_count = t->graph->weights_count;
  state->weights = reserve_zeros(t, state->weights_count, &ok);
  if (t->graph->model->carry) {
    state->carry_count = shoal_carry_floats(t->graph) * t->config.batch;
    t->eval_carry = reserve_zeros(t, state->carry_count, &ok);
  }
  if (t->train_plan != NULL) reserve_training(t, &ok);
  return ok;
}

shoal_status shoal_trainer_create(shoal_trainer **out, const shoal_trainer_config *config, shoal_error *err) {
  SHOAL_ASSERT(config->batch > 0 && config->threads > 0);
  *out = NULL;
  const shoal_kernels *kernels = shoal_kernels_get();
  if (kernels == NULL)
    return shoal_fail(
        err, SHOAL_UNSUPPORTED,
        "SHOAL_KERNELS names kernels that are unknown or that this processor cannot run: unset it, or name "
        "baseline, avx2, avx512 or neon");
  const shoal_graph *graph = config->graph;
  SHOAL_ASSERT(graph->model->recipe.shards <= SHOAL_SHARDS_MAX);
  shoal_trainer *t = calloc(1, sizeof *t);
  if (t == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a trainer");
  bool training = config->samples > 0;
  t->config = *config;
  t->graph = graph;
  t->recipe = &graph->model->recipe;
  t->kernels = kernels;
  t->shards = shoal_trainer_shards_of(graph, config->batch);
  t->threads = config->threads;
  t->unit = has_images(graph) ? SHOAL_LANES : 1;
  t->tile = choose_tile(t);

  shoal_status status = shoal_plan_create(&t->infer_plan, graph, kernels, SHOAL_PLAN_INFER, t->tile, err);
  if (status == SHOAL_OK && training)
    status = shoal_plan_create(&t->train_plan, graph, kernels, SHOAL_PLAN_TRAIN, t->tile, err);
  if (status == SHOAL_OK) status = make_crews(t, err);
  if (status == SHOAL_OK && !reserve_all(t))
    status =
        shoal_fail(err, SHOAL_NO_MEMORY,
                   "not enough memory: the model needs more than %.1f GB at batch %u; try a smaller --batch",
                   (double)t->reserved_bytes / 1e9, config->batch);
  if (status != SHOAL_OK) {
    shoal_trainer_destroy(t);
    return status;
  }
  if (training) {
    shoal_optimizer_runs(graph, t->runs);
    shoal_graph_init_weights(graph, t->recipe->seed, t->state.weights);
  }
  *out = t;
  return SHOAL_OK;
}

void shoal_trainer_destroy(shoal_trainer *t) {
  if (t == NULL) return;
  for (uint32_t i = 0; t->teams != NULL && i < t->crews; i++) shoal_team_destroy(t->teams[i]);
  free(t->teams);
  shoal_pool_destroy(t->pool);
  for (uint32_t i = 0; t->blocks != NULL && i < t->crews; i++) free(t->blocks[i]);
  for (uint32_t v = 0; t->gradients != NULL && v < t->shards; v++) free(t->gradients[v]);
  free(t->blocks);
  free(t->gradients);
  if (t->shards > 1) free(t->total);
  free(t->runs);
  free(t->run_squares);
  free(t->times);
  free(t->eval_carry);
  free(t->state.weights);
  free(t->state.slot1);
  free(t->state.slot2);
  free(t->state.carry);
  shoal_plan_destroy(t->train_plan);
  shoal_plan_destroy(t->infer_plan);
  free(t);
}

shoal_train_state *shoal_trainer_state(shoal_trainer *t) { return &t->state; }

uint64_t shoal_trainer_rounds(const shoal_trainer *t) {
  return (t->config.samples + t->config.batch - 1) / t->config.batch;
}

uint32_t shoal_trainer_shards(const shoal_trainer *t) { return t->shards; }

size_t shoal_trainer_memory(const shoal_trainer *t) { return t->reserved_bytes; }

/* ---- times ---- */

static double *times_of(const shoal_trainer *t, uint32_t thread) {
  return t->times != NULL ? t->times + thread * t->times_stride : NULL;
}

static double clock_if(const double *times) { return times != NULL ? shoal_clock_seconds() : 0; }

/* Adds the time since `since`, which came from clock_if, to one of TIME_*. */
static void note_time(const shoal_trainer *t, double *times, uint32_t what, double since) {
  if (times != NULL) times[t->train_plan->steps_count + what] += shoal_clock_seconds() - since;
}

void shoal_trainer_times_reset(shoal_trainer *t) {
  SHOAL_ASSERT(t->times != NULL);
  memset(t->times, 0, t->threads * t->times_stride * sizeof *t->times);
}

static shoal_work_time work_time(const shoal_trainer *t, shoal_work work, uint32_t node, uint32_t entry) {
  shoal_work_time row = {.work = work, .node = node};
  for (uint32_t thread = 0; thread < t->threads; thread++) row.seconds += times_of(t, thread)[entry];
  return row;
}

uint32_t shoal_trainer_times(const shoal_trainer *t, shoal_work_time *rows) {
  SHOAL_ASSERT(t->times != NULL);
  const shoal_plan *plan = t->train_plan;
  uint32_t beside = plan->steps_count;
  if (rows == NULL) return beside + TIMES_BESIDE_STEPS;
  *rows++ = work_time(t, SHOAL_WORK_CLEAR, 0, beside + TIME_CLEAR);
  *rows++ = work_time(t, SHOAL_WORK_FETCH, 0, beside + TIME_FETCH);
  for (uint32_t s = 0; s < plan->loss_step; s++)
    *rows++ = work_time(t, SHOAL_WORK_FORWARD, plan->steps[s].node, s);
  *rows++ = work_time(t, SHOAL_WORK_LOSS, 0, beside + TIME_LOSS);
  for (uint32_t s = plan->loss_step; s < plan->steps_count; s++)
    *rows++ = work_time(t, SHOAL_WORK_BACKWARD, plan->steps[s].node, s);
  *rows++ = work_time(t, SHOAL_WORK_SUM, 0, beside + TIME_SUM);
  *rows++ = work_time(t, SHOAL_WORK_UPDATE, 0, beside + TIME_UPDATE);
  return beside + TIMES_BESIDE_STEPS;
}

/* ---- shards ---- */

/* One pass over a stretch of a source, cut into shards for the threads. */
typedef struct pass {
  shoal_trainer *trainer;
  const shoal_plan *plan;
  const shoal_source *source;
  uint64_t epoch, first;
  uint32_t n;
  const float *weights;
  float *carry;
  float *predictions; /* where outputs go, or NULL */
  bool without_loss;  /* answers are not known */
  shoal_sums sums[SHOAL_SHARDS_MAX];
} pass;

static void copy_outputs(const shoal_exec *exec, uint32_t row, uint32_t rows, float *out) {
  const shoal_graph *graph = exec->plan->graph;
  const shoal_kernels *k = exec->plan->kernels;
  const shoal_shape *shape = &graph->nodes[graph->nodes_count - 1].shape;
  const float *value = exec->block + exec->plan->places[graph->nodes_count - 1].value;
  size_t step = (size_t)exec->n * shape->features;
  for (uint32_t s = 0; s < shape->steps; s++) {
    const float *from = value + s * step;
    float *to = out + ((size_t)s * rows + row) * shape->features;
    if (graph->output_activation == SHOAL_ACT_SOFTMAX)
      k->softmax_forward(exec->n, shape->features, from, to);
    else
      k->act_forward(graph->output_activation, step, from, to);
  }
}

/* Works off samples start .. start + n of the pass, tile by tile. */
static void run_samples(pass *p, uint32_t start, uint32_t n, uint32_t thread, float *gradient,
                        shoal_sums *sums) {
  const shoal_trainer *t = p->trainer;
  double *times = p->plan->training ? times_of(t, thread) : NULL;
  for (uint32_t done = 0; done < n;) {
    uint32_t tile = n - done < t->tile ? n - done : t->tile;
    shoal_exec exec = {.plan = p->plan,
                       .block = t->blocks[thread],
                       .weights = p->weights,
                       .gradient = gradient,
                       .fresh = done == 0,
                       .team = t->teams != NULL ? t->teams[thread] : NULL,
                       .n = tile,
                       .round_n = p->n,
                       .seed = t->recipe->seed,
                       .epoch = p->epoch,
                       .class_weights = t->config.class_weights,
                       .carry = p->carry,
                       .carry_row = start + done,
                       .carry_rows = t->config.batch,
                       .step_seconds = times};
    shoal_batch batch = shoal_exec_batch(&exec);
    double since = clock_if(times);
    p->source->fetch(p->source->self, p->epoch, p->first + start + done, tile, &batch);
    note_time(t, times, TIME_FETCH, since);
    shoal_exec_forward(&exec);
    if (p->predictions != NULL) copy_outputs(&exec, start + done, p->n, p->predictions);
    if (!p->without_loss) shoal_exec_loss(&exec, sums);
    if (p->plan->training) shoal_exec_backward(&exec);
    done += tile;
  }
}

/* The gradient of shard v of the pass and its sums. */
static void run_shard(pass *p, uint32_t v, uint32_t thread, float *gradient, shoal_sums *sums) {
  shoal_trainer *t = p->trainer;
  uint32_t start = shoal_trainer_shard_start(t, p->n, v),
           n = shoal_trainer_shard_start(t, p->n, v + 1) - start;
  if (p->plan->training) {
    double *times = times_of(t, thread), since = clock_if(times);
    if (n > 0)
      shoal_exec_clear(t->graph, gradient);
    else
      memset(gradient, 0, t->graph->weights_count * sizeof *gradient);
    note_time(t, times, TIME_CLEAR, since);
  }
  *sums = (shoal_sums){0};
  run_samples(p, start, n, thread, gradient, sums);
}

static void shard_task(void *context, uint32_t v, uint32_t thread) {
  pass *p = context;
  run_shard(p, v, thread, p->plan->training ? p->trainer->gradients[v] : NULL, &p->sums[v]);
}

static shoal_sums run_pass(pass *p) {
  shoal_pool_run(p->trainer->pool, p->trainer->shards, shard_task, p);
  shoal_tree_add_sums(p->sums, p->trainer->shards, 1);
  return p->sums[0];
}

shoal_result shoal_trainer_result(const shoal_trainer *t, const shoal_sums *sums) {
  bool counts = shoal_loss_rows[t->recipe->loss].counts_right;
  double weight = sums->weight > 0 ? sums->weight : 1;
  double counted = sums->counted > 0 ? (double)sums->counted : 1;
  return (shoal_result){.loss = sums->loss / weight,
                        .accuracy = counts ? (double)sums->correct / counted : NAN,
                        .rmse = counts ? NAN : sqrt(sums->square / weight),
                        .answers = (double)sums->counted,
                        .finite = isfinite(sums->loss)};
}

/* ---- a round ---- */

/* Tasks for all threads, those of teams too. Every crew gets the same share. */
typedef struct spread {
  shoal_trainer *trainer;
  uint32_t tasks;
  shoal_pool_task f;
  void *context;
} spread;

typedef struct share {
  const spread *all;
  uint32_t first, thread; /* of the share's tasks, and of its crew's threads */
} share;

static void share_task(void *context, uint32_t index, uint32_t thread) {
  const share *s = context;
  s->all->f(s->all->context, s->first + index, s->thread + thread);
}

static void spread_task(void *context, uint32_t index, uint32_t crew) {
  const spread *s = context;
  const shoal_trainer *t = s->trainer;
  uint32_t first = (uint32_t)((uint64_t)s->tasks * index / t->crews),
           end = (uint32_t)((uint64_t)s->tasks * (index + 1) / t->crews);
  share part = {s, first, crew * t->crew_threads};
  shoal_team_run(t->teams[crew], end - first, share_task, &part);
}

static void run_all(shoal_trainer *t, uint32_t tasks, shoal_pool_task f, void *context) {
  spread s = {t, tasks, f, context};
  if (t->teams == NULL)
    shoal_pool_run(t->pool, tasks, f, context);
  else
    shoal_pool_run(t->pool, t->crews, spread_task, &s);
}

/* The task of the second half of a round: one run of the flat vector. */
typedef struct apply {
  shoal_trainer *trainer;
  shoal_update update;
} apply;

static void sum_run(shoal_trainer *t, const shoal_run *run, uint32_t thread) {
  if (t->shards == 1) return;
  double *times = times_of(t, thread), since = clock_if(times);
  const float *parts[SHOAL_SHARDS_MAX];
  for (uint32_t v = 0; v < t->shards; v++) parts[v] = t->gradients[v] + run->offset;
  t->kernels->sum_parts(run->count, t->shards, parts, t->total + run->offset);
  note_time(t, times, TIME_SUM, since);
}

static void sum_task(void *context, uint32_t index, uint32_t thread) {
  shoal_trainer *t = ((apply *)context)->trainer;
  const shoal_run *run = &t->runs[index];
  sum_run(t, run, thread);
  double *times = times_of(t, thread), since = clock_if(times);
  t->run_squares[index] =
      run->kind == SHOAL_PARAM_STATISTIC ? 0 : t->kernels->square_sum(run->count, t->total + run->offset);
  note_time(t, times, TIME_SUM, since);
}

static void update_run(const apply *a, const shoal_run *run, uint32_t thread) {
  double *times = times_of(a->trainer, thread), since = clock_if(times);
  shoal_train_state *state = &a->trainer->state;
  shoal_optimizer_apply(a->trainer->kernels, &a->update, run, state->weights, state->weights,
                        a->trainer->total, state->slot1, state->slot2);
  note_time(a->trainer, times, TIME_UPDATE, since);
}

static void update_task(void *context, uint32_t index, uint32_t thread) {
  const apply *a = context;
  update_run(a, &a->trainer->runs[index], thread);
}

static void sum_and_update_task(void *context, uint32_t index, uint32_t thread) {
  const apply *a = context;
  sum_run(a->trainer, &a->trainer->runs[index], thread);
  update_run(a, &a->trainer->runs[index], thread);
}

static void apply_gradients(shoal_trainer *t, float rate) {
  apply a = {.trainer = t, .update = shoal_optimizer_update(t->recipe, rate, t->state.step + 1)};
  uint32_t runs = (uint32_t)t->runs_count;
  if (t->recipe->clip <= 0) {
    run_all(t, runs, sum_and_update_task, &a);
    return;
  }
  run_all(t, runs, sum_task, &a);
  double squares = 0;
  for (size_t i = 0; i < t->runs_count; i++) squares += t->run_squares[i];
  double norm = sqrt(squares);
  if (norm > t->recipe->clip) a.update.grad_scale = (float)(t->recipe->clip / norm);
  run_all(t, runs, update_task, &a);
}

float shoal_trainer_rate(const shoal_trainer *t) {
  return shoal_recipe_rate_at(t->recipe, t->state.epoch, t->state.round, shoal_trainer_rounds(t));
}

static pass round_pass(shoal_trainer *t, const shoal_source *source, uint64_t epoch, uint64_t round) {
  pass p = {.trainer = t,
            .plan = t->train_plan,
            .source = source,
            .epoch = epoch,
            .first = round * t->config.batch,
            .weights = t->state.weights,
            .carry = t->state.carry};
  uint64_t left = t->config.samples - p.first;
  p.n = left < t->config.batch ? (uint32_t)left : t->config.batch;
  return p;
}

typedef struct parts_work {
  shoal_trainer *trainer;
  const float *weights;
  const shoal_source *source;
  shoal_part *parts;
} parts_work;

static void part_task(void *context, uint32_t index, uint32_t thread) {
  parts_work *work = context;
  shoal_part *part = &work->parts[index];
  pass p = round_pass(work->trainer, work->source, part->epoch, part->round);
  p.weights = work->weights;
  run_shard(&p, part->shard, thread, part->gradient, &part->sums);
}

static void run_parts(shoal_trainer *t, const float *weights, const shoal_source *source, shoal_part *parts,
                      uint32_t count) {
  SHOAL_ASSERT(t->train_plan != NULL);
  for (uint32_t i = 0; i < count; i++)
    SHOAL_ASSERT(parts[i].shard < t->shards && parts[i].round < shoal_trainer_rounds(t));
  parts_work work = {t, weights, source, parts};
  shoal_pool_run(t->pool, count, part_task, &work);
}

void shoal_trainer_parts(shoal_trainer *t, const shoal_source *source, shoal_part *parts, uint32_t count) {
  run_parts(t, t->state.weights, source, parts, count);
}

/* The task of adding up a node: one run of the flat vector. */
typedef struct node_work {
  shoal_trainer *trainer;
  uint32_t first, count;
  float *sum;
} node_work;

static void node_sum_task(void *context, uint32_t index, uint32_t thread) {
  (void)thread;
  const node_work *work = context;
  const shoal_trainer *t = work->trainer;
  const shoal_run *run = &t->runs[index];
  const float *parts[SHOAL_SHARDS_MAX];
  for (uint32_t v = 0; v < work->count; v++) parts[v] = t->gradients[work->first + v] + run->offset;
  t->kernels->sum_parts(run->count, work->count, parts, work->sum + run->offset);
}

/* Kernels write whole vectors, past the end of a parameter too; whoever compares or sends gradients wants
 * the same bytes for the same work. */
static void clear_gaps(const shoal_trainer *t, float *gradient) {
  size_t end = 0;
  for (size_t i = 0; i < t->runs_count; i++) {
    memset(gradient + end, 0, (t->runs[i].offset - end) * sizeof *gradient);
    end = t->runs[i].offset + t->runs[i].count;
  }
  memset(gradient + end, 0, (t->state.weights_count - end) * sizeof *gradient);
}

void shoal_trainer_node(shoal_trainer *t, const float *weights, const shoal_source *source, uint64_t epoch,
                        uint64_t round, uint32_t first, uint32_t count, float *gradient, shoal_sums *sums) {
  SHOAL_ASSERT(count > 0 && count <= t->shards && first <= t->shards - count);
  shoal_part parts[SHOAL_SHARDS_MAX];
  for (uint32_t v = 0; v < count; v++)
    parts[v] = (shoal_part){.epoch = epoch,
                            .round = round,
                            .shard = first + v,
                            .gradient = count == 1 ? gradient : t->gradients[first + v]};
  run_parts(t, weights, source, parts, count);
  shoal_sums all[SHOAL_SHARDS_MAX];
  for (uint32_t v = 0; v < count; v++) all[v] = parts[v].sums;
  shoal_tree_add_sums(all, count, 1);
  *sums = all[0];
  node_work work = {t, first, count, gradient};
  if (count > 1) run_all(t, (uint32_t)t->runs_count, node_sum_task, &work);
  clear_gaps(t, gradient);
}

size_t shoal_trainer_carry_floats(const shoal_trainer *t) {
  return t->state.carry != NULL ? shoal_carry_floats(t->graph) * largest_shard(t) : 0;
}

void shoal_trainer_get_carry(const shoal_trainer *t, uint32_t shard, float *out) {
  uint32_t rows = t->config.batch, first = shoal_trainer_shard_start(t, rows, shard);
  memset(out, 0, shoal_trainer_carry_floats(t) * sizeof *out);
  shoal_carry_pack(t->graph, t->state.carry, rows, first,
                   shoal_trainer_shard_start(t, rows, shard + 1) - first, out);
}

void shoal_trainer_set_carry(shoal_trainer *t, uint32_t shard, const float *carry) {
  uint32_t rows = t->config.batch, first = shoal_trainer_shard_start(t, rows, shard);
  shoal_carry_unpack(t->graph, t->state.carry, rows, first,
                     shoal_trainer_shard_start(t, rows, shard + 1) - first, carry);
}

shoal_status shoal_trainer_round(shoal_trainer *t, const shoal_source *source, shoal_result *out,
                                 shoal_error *err) {
  SHOAL_ASSERT(t->train_plan != NULL);
  shoal_train_state *state = &t->state;
  if (state->round == 0) {
    state->loss_sum = state->weight_sum = state->square_sum = 0;
    state->counted = state->correct = 0;
    if (state->carry != NULL) memset(state->carry, 0, state->carry_count * sizeof *state->carry);
  }
  pass p = round_pass(t, source, state->epoch, state->round);
  shoal_sums sums = run_pass(&p);
  *out = shoal_trainer_result(t, &sums);
  if (!out->finite)
    return shoal_fail(err, SHOAL_INVALID,
                      "the loss is not a number in epoch %llu, round %llu; try a lower --rate or --clip 1",
                      (unsigned long long)state->epoch + 1, (unsigned long long)state->round + 1);
  apply_gradients(t, shoal_trainer_rate(t));
  t->has_total = true;
  state->loss_sum += sums.loss;
  state->weight_sum += sums.weight;
  state->square_sum += sums.square;
  state->counted += sums.counted;
  state->correct += sums.correct;
  state->step++;
  if (++state->round == shoal_trainer_rounds(t)) {
    state->round = 0;
    state->epoch++;
  }
  return SHOAL_OK;
}

const float *shoal_trainer_last_gradient(const shoal_trainer *t) { return t->has_total ? t->total : NULL; }

shoal_result shoal_trainer_epoch_result(const shoal_trainer *t) {
  shoal_sums sums = {.loss = t->state.loss_sum,
                     .weight = t->state.weight_sum,
                     .square = t->state.square_sum,
                     .counted = t->state.counted,
                     .correct = t->state.correct};
  return shoal_trainer_result(t, &sums);
}

/* ---- without training ---- */

void shoal_trainer_reset_carry(shoal_trainer *t) {
  if (t->eval_carry != NULL) memset(t->eval_carry, 0, t->state.carry_count * sizeof *t->eval_carry);
}

shoal_result shoal_trainer_evaluate(shoal_trainer *t, const shoal_source *source) {
  return shoal_trainer_evaluate_each(t, source, NULL);
}

shoal_result shoal_trainer_evaluate_each(shoal_trainer *t, const shoal_source *source,
                                         const shoal_trainer_watch *watch) {
  shoal_trainer_reset_carry(t);
  shoal_sums total = {0};
  for (uint64_t first = 0; first < source->samples; first += t->config.batch) {
    pass p = {.trainer = t,
              .plan = t->infer_plan,
              .source = source,
              .first = first,
              .weights = t->state.weights,
              .carry = t->eval_carry,
              .predictions = watch != NULL ? watch->outputs : NULL};
    uint64_t left = source->samples - first;
    p.n = left < t->config.batch ? (uint32_t)left : t->config.batch;
    shoal_sums sums = run_pass(&p);
    shoal_sums_add(&total, &sums);
    if (watch != NULL) watch->batch(watch->self, first, p.n);
  }
  return shoal_trainer_result(t, &total);
}

void shoal_trainer_predict(shoal_trainer *t, const shoal_source *source, uint64_t first, uint32_t n,
                           float *out) {
  SHOAL_ASSERT(n <= t->config.batch);
  pass p = {.trainer = t,
            .plan = t->infer_plan,
            .source = source,
            .first = first,
            .n = n,
            .weights = t->state.weights,
            .carry = t->eval_carry,
            .predictions = out,
            .without_loss = true};
  run_pass(&p);
}

shoal_result shoal_trainer_gradient(shoal_trainer *t, const shoal_source *source, uint64_t epoch,
                                    uint64_t first, uint32_t n, float *gradient) {
  SHOAL_ASSERT(t->train_plan != NULL);
  pass p = {.trainer = t,
            .plan = t->train_plan,
            .source = source,
            .epoch = epoch,
            .first = first,
            .n = n,
            .weights = t->state.weights};
  shoal_sums sums = {0};
  memset(gradient, 0, t->graph->weights_count * sizeof *gradient);
  run_samples(&p, 0, n, 0, gradient, &sums);
  return shoal_trainer_result(t, &sums);
}
