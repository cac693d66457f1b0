/* compute.c: see compute.h. */
#include "cluster/compute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "nn/optimizer.h"
#include "nn/tree.h"

static const double USUAL_TIMES = 1.4, USUAL_SHARE = 0.02;

/* The same data gives the same fitted text; a text's vocabulary, a table's scales, names of classes. */
static shoal_status check_data(const shoal_compute *c, const char *data, shoal_error *err) {
  char sha256[SHOAL_SHA256_HEX];
  shoal_task_fingerprint(&c->task, sha256);
  bool same =
      strcmp(sha256, c->job->fitted_sha256) == 0 && c->task.sources[SHOAL_TRAIN].samples == c->job->samples;
  if (same) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID,
                    "%s is not the data that the chief trains on: samples, scales, classes or words differ; "
                    "copy its data here, or say where it is with --data",
                    data);
}

/* In local mode replicas have whole rounds. */
static shoal_status deal_rounds(shoal_compute *c, shoal_error *err) {
  const shoal_job *job = c->job;
  if (job->lanes == 0 || job->mode.kind != SHOAL_LOCAL) return SHOAL_OK;
  uint32_t *lane_of_round = calloc(job->inner_rounds, sizeof *lane_of_round);
  if (lane_of_round == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for the job");
  for (uint64_t round = 0; round < job->rounds; round++)
    for (uint32_t part = 0; part < job->parts; part++) {
      uint64_t first, count = shoal_job_unit(job, round, part, &first);
      for (uint64_t i = 0; i < count; i++) lane_of_round[first + i] = part;
    }
  shoal_status status = shoal_task_deal_rounds(&c->task, job->lanes, lane_of_round, err);
  free(lane_of_round);
  return status;
}

shoal_status shoal_compute_open(shoal_compute *c, const shoal_job *job, const shoal_compute_options *options,
                                shoal_error *err) {
  *c = (shoal_compute){.job = job};
  shoal_dataset_options data = {.data = options->data != NULL ? options->data : job->data.bytes,
                                .target = options->target,
                                .valid_share = job->valid_share,
                                .data_dir = options->data_dir,
                                .store = options->store,
                                .stop = options->stop};
  /* Who has all of the data fits it again, which tells whether it is the chief's. */
  if (options->store != NULL && !shoal_chunk_store_is_whole(options->store) && job->fitted.length > 0)
    data.fitted_json = job->fitted.bytes;
  if (data.target == NULL && job->target.length > 0) data.target = job->target.bytes;
  shoal_status status =
      shoal_model_parse(&c->model, "the job's model", job->model.bytes, job->model.length, err);
  if (status == SHOAL_OK) status = shoal_task_open(&c->task, c->model, &data, err);
  if (status == SHOAL_OK) status = check_data(c, data.data, err);
  if (status == SHOAL_OK) status = shoal_task_ready(&c->task, options->threads, err);
  if (status != SHOAL_OK) return status;
  if (shoal_trainer_rounds(c->task.trainer) != job->inner_rounds ||
      (job->mode.kind != SHOAL_LOCAL && shoal_trainer_shards(c->task.trainer) != job->parts))
    return shoal_fail(err, SHOAL_INVALID, "the chief cuts rounds in another way; is it another version?");
  return deal_rounds(c, err);
}

void shoal_compute_close(shoal_compute *c) {
  shoal_task_close(&c->task);
  shoal_model_destroy(c->model);
  *c = (shoal_compute){0};
}

bool shoal_compute_has(const shoal_compute *c, const shoal_work_unit *unit) {
  uint32_t width;
  size_t carry = unit->count * shoal_trainer_carry_floats(c->task.trainer) * sizeof(float);
  return unit->round / c->job->rounds < c->model->recipe.epochs &&
         shoal_tree_is_node(c->job->parts, unit->first, unit->count, &width) &&
         (c->job->mode.kind != SHOAL_LOCAL || unit->count == 1) &&
         (unit->carry == NULL || shoal_blob_length(unit->carry) == carry);
}

double shoal_compute_batches(const shoal_compute *c, const shoal_work_unit *unit) {
  uint64_t first;
  if (c->job->mode.kind == SHOAL_LOCAL)
    return (double)shoal_job_unit(c->job, unit->round, unit->first, &first);
  return (double)unit->count / c->job->parts;
}

/* ---- its data ---- */

/* The positions of the epoch that a unit has. */
static uint64_t span_of(const shoal_compute *c, const shoal_work_unit *unit, uint64_t *n) {
  const uint64_t samples = c->task.sources[SHOAL_TRAIN].samples, batch = c->model->recipe.batch;
  uint64_t round = unit->round % c->job->rounds, first, end;
  if (c->job->mode.kind == SHOAL_LOCAL) {
    uint64_t rounds = shoal_job_unit(c->job, unit->round, unit->first, &round);
    first = round * batch;
    end = (round + rounds) * batch;
  } else {
    uint32_t rows = (uint32_t)(samples - round * batch < batch ? samples - round * batch : batch);
    first = round * batch + shoal_trainer_shard_start(c->task.trainer, rows, unit->first);
    end = round * batch + shoal_trainer_shard_start(c->task.trainer, rows, unit->first + unit->count);
  }
  *n = (end < samples ? end : samples) - first;
  return first;
}

uint64_t shoal_compute_samples(const shoal_compute *c, const shoal_work_unit *unit) {
  uint64_t n;
  (void)span_of(c, unit, &n);
  return n;
}

bool shoal_compute_wants(const shoal_compute *c, const shoal_work_unit *unit) {
  uint64_t n, first = span_of(c, unit, &n);
  return shoal_dataset_want(c->task.dataset, &c->task.sources[SHOAL_TRAIN], unit->round / c->job->rounds,
                            first, n);
}

shoal_status shoal_compute_wait(const shoal_compute *c, const shoal_work_unit *unit,
                                const volatile sig_atomic_t *stop, shoal_error *err) {
  uint64_t n, first = span_of(c, unit, &n);
  return shoal_dataset_wait(c->task.dataset, &c->task.sources[SHOAL_TRAIN], unit->round / c->job->rounds,
                            first, n, stop, err);
}

void shoal_compute_expect(const shoal_compute *c, const shoal_work_unit *unit) {
  uint64_t n, first = span_of(c, unit, &n);
  if (n > 0)
    shoal_dataset_expect(c->task.dataset, &c->task.sources[SHOAL_TRAIN], unit->round / c->job->rounds, first,
                         c->model->recipe.epochs);
}

/* ---- gradients ---- */

static float *floats_of(shoal_blob *blob) { return (float *)(void *)shoal_blob_bytes(blob); }

static float *carry_at(shoal_blob *blob, size_t index) {
  return blob != NULL ? floats_of(blob) + index : NULL;
}

static double norm_of(const shoal_graph *graph, const float *gradient) {
  double squares = 0;
  for (uint32_t i = 0; i < graph->params_count; i++) {
    const shoal_param *param = &graph->params[i];
    if (param->kind == SHOAL_PARAM_STATISTIC) continue;
    squares += shoal_square_sum(shoal_kernels_get(), param->count, gradient + param->offset);
  }
  return sqrt(squares);
}

/* The longest that a gradient may be. In async mode the whole of a batch's is here, so the recipe's
 * limit is kept here too. */
static double longest(shoal_compute *c, double norm) {
  bool async = c->job->mode.kind == SHOAL_ASYNC;
  double limit = c->usual_norm > 0 ? USUAL_TIMES * c->usual_norm : norm;
  if (async && c->model->recipe.clip > 0) limit = fmin(limit, (double)c->model->recipe.clip);
  double kept = fmin(norm, limit);
  c->usual_norm += c->usual_norm > 0 ? USUAL_SHARE * (kept - c->usual_norm) : kept;
  return limit;
}

static void limit_norm(shoal_compute *c, float *gradient) {
  if (c->job->mode.kind != SHOAL_ASYNC && c->job->mode.kind != SHOAL_STALE) return;
  double norm = norm_of(c->task.graph, gradient), limit = longest(c, norm);
  if (!(norm > limit)) return;
  float scale = (float)(limit / norm);
  for (size_t i = 0; i < c->task.graph->weights_count; i++) gradient[i] *= scale;
}

static void compute_gradient(shoal_compute *c, const shoal_work_unit *unit, const float *weights,
                             shoal_work_result *out) {
  shoal_trainer *trainer = c->task.trainer;
  size_t carry = shoal_trainer_carry_floats(trainer);
  for (uint32_t p = 0; carry > 0 && p < unit->count; p++)
    shoal_trainer_set_carry(trainer, unit->first + p, carry_at(unit->carry, p * carry));
  float *gradient = floats_of(out->gradient);
  shoal_trainer_node(trainer, weights, &c->task.sources[SHOAL_TRAIN], unit->round / c->job->rounds,
                     unit->round % c->job->rounds, unit->first, unit->count, gradient, &out->sums);
  limit_norm(c, gradient);
  if (carry == 0) return;
  out->carry = shoal_blob_create(unit->count * carry * sizeof(float));
  SHOAL_ASSERT(out->carry != NULL);
  for (uint32_t p = 0; p < unit->count; p++)
    shoal_trainer_get_carry(trainer, unit->first + p, carry_at(out->carry, p * carry));
}

/* ---- local steps ---- */

static void start_afresh(shoal_compute *c, uint64_t epoch, uint64_t round, const float *weights) {
  shoal_train_state *state = shoal_trainer_state(c->task.trainer);
  size_t bytes = state->weights_count * sizeof(float);
  memcpy(state->weights, weights, bytes);
  if (state->slot1 != NULL) memset(state->slot1, 0, bytes);
  if (state->slot2 != NULL) memset(state->slot2, 0, bytes);
  if (state->carry != NULL) memset(state->carry, 0, state->carry_count * sizeof(float));
  state->epoch = epoch;
  state->round = round;
  state->step = 0;
  state->sums = (shoal_sums){0};
  shoal_trainer_place(c->task.trainer);
}

static void compute_change(shoal_compute *c, const shoal_work_unit *unit, const float *weights,
                           shoal_work_result *out) {
  uint64_t first, rounds = shoal_job_unit(c->job, unit->round, unit->first, &first);
  start_afresh(c, unit->round / c->job->rounds, first, weights);
  const shoal_train_state *state = shoal_trainer_state(c->task.trainer);
  bool finite = true;
  for (uint64_t i = 0; i < rounds && finite; i++) {
    shoal_result result;
    finite = shoal_trainer_round(c->task.trainer, &c->task.sources[SHOAL_TRAIN], &result, NULL) == SHOAL_OK;
  }
  shoal_trainer_gather(c->task.trainer);
  float *change = floats_of(out->gradient);
  shoal_kernels_get()->add_scaled(state->weights_count, state->weights, -1, weights, change);
  out->sums = state->sums;
  if (!finite) out->sums.loss = NAN;
}

void shoal_compute_unit(shoal_compute *c, const shoal_work_unit *unit, const float *weights,
                        shoal_work_result *out) {
  size_t bytes = c->task.graph->weights_count * sizeof(float);
  *out = (shoal_work_result){.gradient = shoal_blob_create(bytes)};
  SHOAL_ASSERT(out->gradient != NULL);
  if (c->job->mode.kind == SHOAL_LOCAL)
    compute_change(c, unit, weights, out);
  else
    compute_gradient(c, unit, weights, out);
  /* Where results of one unit may differ anyway, nobody compares them. */
  bool compared = c->job->mode.kind == SHOAL_SYNC || c->job->mode.kind == SHOAL_LOCAL;
  if (compared) out->digest = shoal_digest(shoal_blob_bytes(out->gradient), bytes);
}
