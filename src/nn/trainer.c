/* trainer.c: see trainer.h. The engine (engine.h) computes; here is what belongs to a training: how a round is cut, where
 * it stands, what a round's result is. */
#include "nn/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "nn/loss.h"
#include "nn/op.h"
#include "nn/tree.h"

/* A large model is one whose gradients do not stay in the second cache. */
enum {
  SHARDS_DEFAULT_MAX = 8,
  IMAGE_TILE = 32, /* samples; it decides the bits, since sums over a tile are added to the gradient as one */
  LARGE_MODEL = 1 << 18
};

struct shoal_trainer {
  shoal_trainer_config config;
  const shoal_graph *graph;
  const shoal_recipe *recipe;
  shoal_engine *engine;
  uint32_t shards;
  float *gradients[SHOAL_SHARDS_MAX]; /* one a shard */
  float *total;                       /* their sum; of a single shard its gradient itself */
  /* Of these, as the last round left them; NULL without tables. */
  shoal_used_rows *rows[SHOAL_SHARDS_MAX], *total_rows;
  bool has_total; /* a round has been made */
  /* What changes while training, on the device; `state` has the host's copies. */
  float *weights, *slot1, *slot2, *carry;
  float *eval_carry; /* recurrent state while evaluating or predicting */
  float *host_total;
  shoal_train_state state;
};

/* ---- how a round is cut ---- */

static bool has_images(const shoal_graph *graph) { return graph->samples_unit > 1; }

/* How many rows a shard should have at least, when there are `shards` already. Images come in
 * vectors of samples; one will do where more threads can help, and under batch normalisation,
 * which keeps a whole shard's images in the cache. Else two: dense layers behind them gain. */
static uint32_t least_rows(const shoal_graph *graph, uint32_t shards) {
  if (!has_images(graph)) return graph->weights_count > LARGE_MODEL ? 128 : 48;
  return shards < 4 || shoal_graph_has(graph, SHOAL_OP_WHOLE_SHARD) ? SHOAL_LANES : 2 * SHOAL_LANES;
}

/* The number of shards decides the result's bits, so it follows from the model and the
 * batch alone: a power of two, with enough rows a shard that adding up the gradients is cheap
 * beside computing them. One, where a layer needs the whole batch. */
uint32_t shoal_trainer_shards_of(const shoal_graph *graph, uint32_t batch) {
  uint32_t asked = graph->model->recipe.shards;
  if (shoal_model_takes_whole_batch(graph->model)) return 1;
  if (asked > 0) return asked < batch ? asked : batch;
  uint64_t rows = (uint64_t)batch * (has_images(graph) ? 1 : graph->nodes[0].shape.steps);
  uint32_t shards = 1;
  while (shards < SHARDS_DEFAULT_MAX && 2 * shards <= batch &&
         rows / (2 * shards) >= least_rows(graph, shards))
    shards *= 2;
  return shards;
}

uint32_t shoal_trainer_shard_start(const shoal_trainer *t, uint32_t n, uint32_t v) {
  return shoal_engine_shard_start(t->graph, n, t->shards, v);
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

/* ---- create ---- */

/* Zeros on the device, and the host's copy of them. */
static void take(shoal_trainer *t, size_t floats, float **on_device, float **on_host) {
  *on_device = shoal_engine_take_zeros(t->engine, floats);
  *on_host = shoal_engine_mirror(t->engine, *on_device, floats);
}

/* Takes all memory; false when it is short. */
static bool take_all(shoal_trainer *t) {
  shoal_engine *e = t->engine;
  shoal_train_state *state = &t->state;
  size_t weights = state->weights_count = t->graph->weights_count;
  uint32_t slots = shoal_optimizer_rows[t->recipe->optimizer].slots;
  bool training = t->config.samples > 0, carries = t->graph->model->carry, ok = true;
  if (carries) state->carry_count = shoal_carry_floats(t->graph) * t->config.batch;
  take(t, weights, &t->weights, &state->weights);
  if (carries) t->eval_carry = shoal_engine_take_zeros(e, state->carry_count);
  if (!training) return shoal_engine_has_memory(e);
  if (slots > 0) take(t, weights, &t->slot1, &state->slot1);
  if (slots > 1) take(t, weights, &t->slot2, &state->slot2);
  if (carries) take(t, state->carry_count, &t->carry, &state->carry);
  for (uint32_t v = 0; v < t->shards; v++) {
    t->gradients[v] = shoal_engine_take(e, weights);
    ok &= shoal_used_rows_create(&t->rows[v], t->graph, NULL) == SHOAL_OK;
  }
  t->total = t->gradients[0];
  t->total_rows = t->rows[0];
  if (t->shards > 1) {
    t->total = shoal_engine_take(e, weights);
    ok &= shoal_used_rows_create(&t->total_rows, t->graph, NULL) == SHOAL_OK;
  }
  t->host_total = shoal_engine_mirror(e, t->total, weights);
  return ok && shoal_engine_has_memory(e);
}

shoal_status shoal_trainer_create(shoal_trainer **out, const shoal_trainer_config *config, shoal_error *err) {
  SHOAL_ASSERT(config->batch > 0 && config->threads > 0);
  *out = NULL;
  const shoal_graph *graph = config->graph;
  SHOAL_ASSERT(graph->model->recipe.shards <= SHOAL_SHARDS_MAX);
  bool training = config->samples > 0;
  if (training && config->batch > SHOAL_FETCH_MAX && shoal_model_takes_whole_batch(graph->model))
    return shoal_fail(err, SHOAL_LIMIT,
                      "a batch of %u samples, but `batchnorm batch` takes at most %d at once", config->batch,
                      SHOAL_FETCH_MAX);
  shoal_trainer *t = calloc(1, sizeof *t);
  if (t == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a trainer");
  t->config = *config;
  t->graph = graph;
  t->recipe = &graph->model->recipe;
  t->shards = shoal_trainer_shards_of(graph, config->batch);
  uint32_t tile = choose_tile(t);
  const shoal_engine_config engine = {.graph = graph,
                                      .device = config->device,
                                      .use = training ? SHOAL_PLAN_TRAIN : SHOAL_PLAN_INFER,
                                      .tile = tile,
                                      .infer_tile = tile,
                                      .threads = config->threads,
                                      .shards = t->shards,
                                      .class_weights = config->class_weights,
                                      .times = training && config->times};
  shoal_status status = shoal_engine_create(&t->engine, &engine, err);
  if (status == SHOAL_OK && !take_all(t))
    status = shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory: the model needs more than %.1f GB",
                        (double)shoal_engine_memory(t->engine) / 1e9);
  if (status == SHOAL_NO_MEMORY)
    shoal_error_prefix(err, "with batches of %u samples (a smaller --batch needs less): ", config->batch);
  if (status != SHOAL_OK) {
    shoal_trainer_destroy(t);
    return status;
  }
  if (training) shoal_graph_init_weights(graph, t->recipe->seed, t->state.weights);
  shoal_trainer_place(t);
  *out = t;
  return SHOAL_OK;
}

void shoal_trainer_destroy(shoal_trainer *t) {
  if (t == NULL) return;
  shoal_engine_destroy(t->engine);
  for (uint32_t v = 0; v < t->shards; v++) shoal_used_rows_destroy(t->rows[v]);
  if (t->shards > 1) shoal_used_rows_destroy(t->total_rows);
  free(t);
}

shoal_train_state *shoal_trainer_state(shoal_trainer *t) { return &t->state; }
shoal_engine *shoal_trainer_engine(const shoal_trainer *t) { return t->engine; }

void shoal_trainer_place(shoal_trainer *t) {
  const shoal_train_state *state = &t->state;
  shoal_engine_place(t->engine, t->weights, state->weights, state->weights_count);
  shoal_engine_place(t->engine, t->slot1, state->slot1, state->weights_count);
  shoal_engine_place(t->engine, t->slot2, state->slot2, state->weights_count);
  shoal_engine_place(t->engine, t->carry, state->carry, state->carry_count);
}

void shoal_trainer_gather(shoal_trainer *t) {
  const shoal_train_state *state = &t->state;
  shoal_engine_gather(t->engine, state->weights, t->weights, state->weights_count);
  shoal_engine_gather(t->engine, state->slot1, t->slot1, state->weights_count);
  shoal_engine_gather(t->engine, state->slot2, t->slot2, state->weights_count);
  shoal_engine_gather(t->engine, state->carry, t->carry, state->carry_count);
}

uint64_t shoal_trainer_rounds(const shoal_trainer *t) {
  return (t->config.samples + t->config.batch - 1) / t->config.batch;
}

uint32_t shoal_trainer_shards(const shoal_trainer *t) { return t->shards; }

shoal_result shoal_trainer_result(const shoal_trainer *t, const shoal_sums *sums) {
  bool counts = shoal_targets_of(t->recipe) != SHOAL_TARGET_NUMBER;
  double weight = sums->weight > 0 ? sums->weight : 1;
  double counted = sums->counted > 0 ? (double)sums->counted : 1;
  return (shoal_result){.loss = sums->loss / weight,
                        .accuracy = counts ? (double)sums->correct / counted : NAN,
                        .rmse = counts ? NAN : sqrt(sums->square / weight),
                        .answers = (double)sums->counted,
                        .finite = isfinite(sums->loss)};
}

/* ---- parts of a round ---- */

static uint32_t at_most(uint64_t left, uint32_t most) { return left < most ? (uint32_t)left : most; }

/* All shards of n samples. */
static shoal_pass pass_of(const shoal_trainer *t, shoal_plan_use use, const shoal_source *source,
                          uint64_t first, uint32_t n) {
  return (shoal_pass){.use = use,
                      .source = source,
                      .first = first,
                      .n = n,
                      .shards = t->shards,
                      .shards_count = t->shards,
                      .weights = t->weights,
                      .carry = use == SHOAL_PLAN_INFER ? t->eval_carry : t->carry,
                      .carry_rows = t->config.batch};
}

void shoal_trainer_parts(shoal_trainer *t, const float *weights, const shoal_source *source, uint64_t epoch,
                         uint64_t round, uint32_t first, uint32_t count, float *const *gradients,
                         shoal_sums *sums) {
  SHOAL_ASSERT(t->total != NULL && round < shoal_trainer_rounds(t) && first + count <= t->shards);
  uint64_t start = round * t->config.batch;
  shoal_pass pass =
      pass_of(t, SHOAL_PLAN_TRAIN, source, start, at_most(t->config.samples - start, t->config.batch));
  pass.epoch = epoch;
  pass.first_shard = first;
  pass.shards_count = count;
  if (weights != NULL) pass.weights = weights;
  pass.gradients = gradients;
  pass.sums = sums;
  /* What a round knows of the rows of its gradients does not hold any more once they are written by other ways. */
  bool is_round = gradients == t->gradients;
  if (is_round && t->rows[0] != NULL) pass.rows = t->rows;
  for (uint32_t v = 0; !is_round && v < t->shards; v++) shoal_used_rows_forget(t->rows[v]);
  if (!is_round) shoal_used_rows_forget(t->total_rows);
  shoal_engine_pass(t->engine, &pass);
}

/* Kernels write whole vectors, past the end of a parameter too; whoever compares or sends gradients wants
 * the same bytes for the same work. */
static void clear_gaps(const shoal_trainer *t, float *gradient) {
  size_t end = 0;
  for (uint32_t i = 0; i < t->graph->runs_count; i++) {
    const shoal_run *run = &t->graph->runs[i];
    memset(gradient + end, 0, (run->offset - end) * sizeof *gradient);
    end = run->offset + run->count;
  }
  memset(gradient + end, 0, (t->state.weights_count - end) * sizeof *gradient);
}

/* The gradient is the host's, so where that is not the device's memory, it goes by way of the sum's. */
void shoal_trainer_node(shoal_trainer *t, const float *weights, const shoal_source *source, uint64_t epoch,
                        uint64_t round, uint32_t first, uint32_t count, float *gradient, shoal_sums *sums) {
  SHOAL_ASSERT(count > 0 && count <= t->shards && first <= t->shards - count);
  bool is_host = t->weights == t->state.weights;
  float *total = is_host ? gradient : t->total, *parts[SHOAL_SHARDS_MAX];
  if (!is_host) shoal_engine_place(t->engine, t->weights, weights, t->state.weights_count);
  for (uint32_t v = 0; v < count; v++) parts[v] = count == 1 ? total : t->gradients[first + v];
  shoal_sums all[SHOAL_SHARDS_MAX];
  shoal_trainer_parts(t, is_host ? weights : NULL, source, epoch, round, first, count, parts, all);
  shoal_tree_add_sums(all, count, 1);
  *sums = all[0];
  const shoal_addends addends = {
      .runs_count = t->graph->runs_count, .parts = parts, .parts_count = count, .total = total};
  if (count > 1) shoal_engine_add(t->engine, &addends);
  if (!is_host) shoal_engine_gather(t->engine, gradient, total, t->state.weights_count);
  clear_gaps(t, gradient);
}

size_t shoal_trainer_carry_floats(const shoal_trainer *t) {
  return t->carry != NULL ? shoal_carry_floats(t->graph) * largest_shard(t) : 0;
}

/* Of a shard, to `out` or from `in`. */
static void copy_carry(const shoal_trainer *t, uint32_t shard, float *out, const float *in) {
  uint32_t rows = t->config.batch, first = shoal_trainer_shard_start(t, rows, shard);
  shoal_carry_copy(shoal_engine_plan(t->engine, SHOAL_PLAN_TRAIN), t->carry, rows, first,
                   shoal_trainer_shard_start(t, rows, shard + 1) - first, out, in);
}

void shoal_trainer_get_carry(const shoal_trainer *t, uint32_t shard, float *out) {
  memset(out, 0, shoal_trainer_carry_floats(t) * sizeof *out);
  copy_carry(t, shard, out, NULL);
}

void shoal_trainer_set_carry(shoal_trainer *t, uint32_t shard, const float *carry) {
  copy_carry(t, shard, NULL, carry);
}

/* ---- a round ---- */

float shoal_trainer_rate(const shoal_trainer *t) {
  return shoal_recipe_rate_at(t->recipe, t->state.epoch, t->state.round, shoal_trainer_rounds(t));
}

void shoal_trainer_begin_round(shoal_trainer *t) {
  shoal_train_state *state = &t->state;
  if (state->round > 0) return;
  state->sums = (shoal_sums){0};
  if (t->carry != NULL) shoal_engine_zero(t->engine, t->carry, state->carry_count);
}

shoal_status shoal_trainer_judge_round(const shoal_trainer *t, const shoal_sums *sums, shoal_result *out,
                                       shoal_error *err) {
  *out = shoal_trainer_result(t, sums);
  if (out->finite) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID,
                    "the loss is not a number in epoch %llu, round %llu; try a lower --rate or --clip 1",
                    (unsigned long long)t->state.epoch + 1, (unsigned long long)t->state.round + 1);
}

shoal_apply shoal_trainer_apply(const shoal_trainer *t) {
  return (shoal_apply){.addends = {.runs_count = t->graph->runs_count,
                                   .parts = t->gradients,
                                   .parts_count = t->shards,
                                   .total = t->total,
                                   .rows = t->rows[0] != NULL ? t->rows : NULL,
                                   .total_rows = t->total_rows},
                       .update = shoal_optimizer_update(t->recipe, shoal_trainer_rate(t), t->state.step + 1),
                       .clip = t->recipe->clip,
                       .weights = t->weights,
                       .slot1 = t->slot1,
                       .slot2 = t->slot2};
}

void shoal_trainer_end_round(shoal_trainer *t, const shoal_sums *sums) {
  shoal_train_state *state = &t->state;
  shoal_sums_add(&state->sums, sums);
  state->step++;
  if (++state->round < shoal_trainer_rounds(t)) return;
  state->round = 0;
  state->epoch++;
}

shoal_status shoal_trainer_round(shoal_trainer *t, const shoal_source *source, shoal_result *out,
                                 shoal_error *err) {
  shoal_sums sums[SHOAL_SHARDS_MAX];
  shoal_trainer_begin_round(t);
  shoal_trainer_parts(t, NULL, source, t->state.epoch, t->state.round, 0, t->shards, t->gradients, sums);
  shoal_tree_add_sums(sums, t->shards, 1);
  shoal_status status = shoal_trainer_judge_round(t, &sums[0], out, err);
  if (status != SHOAL_OK) return status;
  shoal_apply apply = shoal_trainer_apply(t);
  status = shoal_engine_apply(t->engine, &apply, err);
  SHOAL_ASSERT(status == SHOAL_OK);
  t->has_total = true;
  shoal_trainer_end_round(t, &sums[0]);
  return SHOAL_OK;
}

const float *shoal_trainer_last_gradient(const shoal_trainer *t) {
  if (!t->has_total) return NULL;
  shoal_engine_gather(t->engine, t->host_total, t->total, t->state.weights_count);
  return t->host_total;
}

shoal_result shoal_trainer_epoch_result(const shoal_trainer *t) {
  return shoal_trainer_result(t, &t->state.sums);
}

/* ---- without training ---- */

void shoal_trainer_reset_carry(shoal_trainer *t) {
  if (t->eval_carry != NULL) shoal_engine_zero(t->engine, t->eval_carry, t->state.carry_count);
}

shoal_result shoal_trainer_evaluate(shoal_trainer *t, const shoal_source *source) {
  return shoal_trainer_evaluate_each(t, source, NULL);
}

shoal_result shoal_trainer_evaluate_each(shoal_trainer *t, const shoal_source *source,
                                         const shoal_trainer_watch *watch) {
  shoal_trainer_reset_carry(t);
  shoal_sums total = {0}, sums[SHOAL_SHARDS_MAX];
  for (uint64_t first = 0; first < source->samples; first += t->config.batch) {
    uint32_t n = at_most(source->samples - first, t->config.batch);
    shoal_pass pass = pass_of(t, SHOAL_PLAN_INFER, source, first, n);
    pass.sums = sums;
    if (watch != NULL) pass.out = watch->outputs;
    shoal_engine_pass(t->engine, &pass);
    shoal_tree_add_sums(sums, t->shards, 1);
    shoal_sums_add(&total, &sums[0]);
    if (watch != NULL) watch->batch(watch->self, first, n);
  }
  return shoal_trainer_result(t, &total);
}

void shoal_trainer_predict(shoal_trainer *t, const shoal_source *source, uint64_t first, uint32_t n,
                           float *out) {
  SHOAL_ASSERT(n <= t->config.batch);
  shoal_pass pass = pass_of(t, SHOAL_PLAN_INFER, source, first, n);
  pass.out = out;
  shoal_engine_pass(t->engine, &pass);
}
