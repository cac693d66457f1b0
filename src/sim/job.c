/* job.c: see job.h. The weights of one machine are made here a second time, on the whole vector and
 * with sums written out, so that a mistake in the owners' way of doing it shows. */
#include "sim/job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/random.h"
#include "nn/tree.h"

enum { CHEAP_CARRY = 3, PARTS_IN_DIGITS = 11, BATCH = 16 };

static void *reserve(size_t count, size_t size) {
  void *made = calloc(count > 0 ? count : 1, size);
  SHOAL_ASSERT(made != NULL);
  return made;
}

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t shoal_sim_hash(const float *values, size_t count) {
  uint64_t hash = 0x9e3779b97f4a7c15u + count;
  for (size_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, &values[i], sizeof bits);
    hash = (hash ^ bits) * 0x9fb21c651e98df25u;
    hash ^= hash >> 32;
  }
  return mix(hash);
}

/* ---- counters ---- */

bool shoal_sim_job_counter(const shoal_sim_job *job, uint32_t slice, size_t *place) {
  const shoal_slice *s = &job->slices[slice];
  if (!job->counts || s->runs_count == 0) return false;
  SHOAL_ASSERT(job->graph->runs[s->first_run].count >= 2);
  *place = job->graph->runs[s->first_run].offset;
  return true;
}

/* A digit of two bits a part where that fits in a float's 24, so that any mistake shows. */
static float part_code(const shoal_sim_job *job, uint32_t part) {
  return job->parts <= PARTS_IN_DIGITS ? (float)(1u << 2 * part) : (float)(part + 1);
}

double shoal_sim_job_round(double change, double change_of_second) { return change / change_of_second - 1; }

float shoal_sim_job_counted(const shoal_sim_job *job) {
  float sum = 0;
  for (uint32_t p = 0; p < job->parts; p++) sum += part_code(job, p);
  return -sum;
}

static void count_part(const shoal_sim_job *job, uint64_t round, uint32_t part, const float *weights,
                       float *gradient) {
  for (uint32_t s = 0; s < job->config.owners; s++) {
    size_t at;
    if (!shoal_sim_job_counter(job, s, &at)) continue;
    bool async = job->config.mode.kind == SHOAL_ASYNC;
    if (!async) gradient[at] = part_code(job, part) + (part == 0 ? weights[at] : 0);
    if (async) gradient[at] = part == 0 ? (float)(round + 1) : 0;
    if (async) gradient[at + 1] = part == 0 ? 1 : 0;
  }
}

/* ---- cheap units ---- */

/* One part: gradient, sums, and its recurrent state, which is read and written. */
static shoal_sums cheap_part(const shoal_sim_job *job, uint64_t round, uint32_t part, const float *weights,
                             uint64_t weights_hash, float *carry, float *gradient) {
  uint64_t hash = mix(weights_hash ^ mix(job->config.seed + round * 0x10001u + ((uint64_t)part << 40)));
  if (carry != NULL) hash = mix(hash ^ shoal_sim_hash(carry, CHEAP_CARRY));
  memset(gradient, 0, job->weights_count * sizeof *gradient); /* there is padding behind parameters */
  for (size_t r = 0; r < job->graph->runs_count; r++)
    for (uint32_t i = 0; i < job->graph->runs[r].count; i++) {
      hash = hash * 0x5851f42d4c957f2du + 0x14057b7ef767814fu;
      gradient[job->graph->runs[r].offset + i] = (float)((int64_t)(hash >> 40) - (1 << 23)) / (1 << 25);
    }
  for (uint32_t i = 0; carry != NULL && i < CHEAP_CARRY; i++) carry[i] = (float)(mix(hash + i) >> 44);
  count_part(job, round, part, weights, gradient);
  return (shoal_sums){.loss = (double)(hash >> 20) / 1e9,
                      .weight = 1 + part % 3,
                      .square = (double)(mix(hash) >> 20) / 1e9,
                      .counted = 4,
                      .correct = hash % 5};
}

/* Adds up vectors in the order of nn/tree.h; the sum is in the first. */
static void add_vectors(const shoal_sim_job *job, float *vectors, uint32_t count) {
  size_t n = job->weights_count;
  for (uint32_t width = 1; width < count; width *= 2)
    for (uint32_t i = 0; i + width < count; i += 2 * width) {
      float *to = vectors + i * n;
      const float *from = vectors + (i + width) * n;
      for (size_t k = 0; k < n; k++) to[k] += from[k];
    }
}

static shoal_sums cheap_unit(shoal_sim_job *job, const shoal_work_unit *unit, const float *weights,
                             float *carry) {
  uint64_t hash = shoal_sim_hash(weights, job->weights_count);
  shoal_sums *sums = job->part_sums;
  for (uint32_t p = 0; p < unit->count; p++)
    sums[p] = cheap_part(job, unit->round, unit->first + p, weights, hash,
                         carry != NULL ? carry + p * job->carry_floats : NULL,
                         job->scratch + p * job->weights_count);
  add_vectors(job, job->scratch, unit->count);
  shoal_tree_add_sums(sums, unit->count, 1);
  return sums[0];
}

/* ---- real units ---- */

/* Samples that are a pure function of their number: dense rows, or tokens. */
static void fetch(const void *self, uint64_t epoch, uint64_t first, uint32_t n, const shoal_batch *into) {
  (void)epoch;
  const shoal_graph *graph = self;
  const shoal_shape *in = &graph->nodes[0].shape, *out = &graph->nodes[graph->nodes_count - 1].shape;
  uint32_t values = (uint32_t)shoal_shape_values(in);
  for (uint32_t i = 0; i < n; i++) {
    shoal_key key = shoal_key_make(11, SHOAL_FOR_SIMULATION, first + i, 1);
    for (uint32_t e = 0; e < values; e++) {
      if (into->tokens != NULL)
        into->tokens[(size_t)e * n + i] =
            (int32_t)shoal_random_below(key, e, shoal_model_vocabulary(graph->model));
      if (into->x != NULL) into->x[(size_t)i * in->features + e] = 2 * shoal_random_uniform(key, e) - 1;
    }
    for (uint32_t t = 0; t < out->steps; t++) {
      into->weight[(size_t)t * n + i] = 1;
      into->labels[(size_t)t * n + i] = (int32_t)shoal_random_below(key, 1000 + t, out->features);
    }
    if (into->ids != NULL) into->ids[i] = first + i;
  }
}

static shoal_sums real_unit(shoal_sim_job *job, const shoal_work_unit *unit, const float *weights,
                            float *carry) {
  shoal_sums sums;
  for (uint32_t p = 0; carry != NULL && p < unit->count; p++)
    shoal_trainer_set_carry(job->trainer, unit->first + p, carry + p * job->carry_floats);
  shoal_trainer_node(job->trainer, weights, &job->source, unit->round / job->rounds,
                     unit->round % job->rounds, unit->first, unit->count, job->scratch, &sums);
  for (uint32_t p = 0; carry != NULL && p < unit->count; p++)
    shoal_trainer_get_carry(job->trainer, unit->first + p, carry + p * job->carry_floats);
  return sums;
}

shoal_work_result shoal_sim_job_compute(shoal_sim_job *job, const shoal_work_unit *unit,
                                        const float *weights) {
  size_t bytes = unit->count * job->carry_floats * sizeof(float);
  shoal_blob *carry = NULL;
  float *floats = NULL;
  if (bytes > 0) {
    carry = shoal_blob_create(bytes);
    SHOAL_ASSERT(carry != NULL);
    floats = (float *)(void *)shoal_blob_bytes(carry);
    if (unit->carry != NULL)
      memcpy(floats, shoal_blob_bytes(unit->carry), bytes);
    else
      memset(floats, 0, bytes);
  }
  shoal_sums sums = job->config.net == SHOAL_SIM_CHEAP ? cheap_unit(job, unit, weights, floats)
                                                       : real_unit(job, unit, weights, floats);
  return (shoal_work_result){.gradient = shoal_blob_of(job->scratch, job->weights_count * sizeof(float)),
                             .sums = sums,
                             .digest = shoal_sim_hash(job->scratch, job->weights_count),
                             .carry = carry};
}

/* ---- one machine ---- */

typedef struct machine {
  float *weights, *slot1, *slot2, *carry;
} machine;

static void step_outer(const shoal_sim_job *job, machine *m, const float *sum) {
  const shoal_mode *mode = &job->config.mode;
  for (size_t i = 0; i < job->weights_count; i++) {
    float change = sum[i] / (float)job->parts;
    m->slot1[i] = mode->outer_momentum * m->slot1[i] + change;
    m->weights[i] += mode->outer_rate * (change + mode->outer_momentum * m->slot1[i]);
  }
}

static void step(const shoal_sim_job *job, machine *m, uint64_t version, const float *sum) {
  const shoal_kernels *kernels = shoal_kernels_get();
  const shoal_recipe *recipe = &job->model->recipe;
  float rate = shoal_recipe_rate_at(recipe, version / job->rounds, version % job->rounds, job->rounds);
  shoal_update update = shoal_optimizer_update(recipe, rate, version + 1);
  if (recipe->clip > 0) {
    double squares = 0;
    for (size_t i = 0; i < job->graph->runs_count; i++)
      squares += shoal_square_sum(kernels, job->graph->runs[i].count, sum + job->graph->runs[i].offset);
    double norm = sqrt(squares);
    if (norm > (double)recipe->clip) update.grad_scale = (float)((double)recipe->clip / norm);
  }
  for (size_t i = 0; i < job->graph->runs_count; i++)
    shoal_optimizer_apply(kernels, &update, &job->graph->runs[i], m->weights, m->weights, sum, m->slot1,
                          m->slot2);
}

static void one_machine_cheap(shoal_sim_job *job) {
  size_t n = job->weights_count;
  machine m = {.weights = reserve(n, sizeof(float)),
               .slot1 = reserve(n, sizeof(float)),
               .slot2 = reserve(n, sizeof(float)),
               .carry = reserve(job->parts * job->carry_floats, sizeof(float))};
  shoal_sums *sums = job->part_sums;
  memcpy(m.weights, job->first, n * sizeof *m.weights);
  memcpy(job->versions, job->first, n * sizeof *m.weights);
  for (uint64_t r = 0; r < job->end; r++) {
    if (r % job->rounds == 0) memset(m.carry, 0, job->parts * job->carry_floats * sizeof *m.carry);
    uint64_t hash = shoal_sim_hash(m.weights, n);
    for (uint32_t p = 0; p < job->parts; p++)
      sums[p] =
          cheap_part(job, r, p, m.weights, hash,
                     job->carry_floats > 0 ? m.carry + p * job->carry_floats : NULL, job->scratch + p * n);
    add_vectors(job, job->scratch, job->parts);
    shoal_tree_add_sums(sums, job->parts, 1);
    if (job->config.mode.kind == SHOAL_LOCAL)
      step_outer(job, &m, job->scratch);
    else
      step(job, &m, r, job->scratch);
    job->sums[r] = sums[0];
    memcpy(job->versions + (r + 1) * n, m.weights, n * sizeof *m.weights);
  }
  free(m.weights);
  free(m.slot1);
  free(m.slot2);
  free(m.carry);
}

static void one_machine_real(shoal_sim_job *job) {
  size_t n = job->weights_count;
  memcpy(job->versions, job->first, n * sizeof(float));
  for (uint64_t r = 0; r < job->end; r++) {
    shoal_result result;
    shoal_status status = shoal_trainer_round(job->trainer, &job->source, &result, NULL);
    SHOAL_ASSERT(status == SHOAL_OK);
    memcpy(job->versions + (r + 1) * n, shoal_trainer_state(job->trainer)->weights, n * sizeof(float));
  }
}

/* ---- making it ---- */

static const char *const nets[] = {
    [SHOAL_SIM_CHEAP] = "input 5\ndense 6 tanh\ndense 3\nloss cross-entropy\n",
    [SHOAL_SIM_DENSE] = "input 6\ndense 9 tanh\ndense 3\nloss cross-entropy\n"
                        "optimizer momentum rate 0.1 momentum 0.9\nshards 4\n",
    [SHOAL_SIM_CLIPPED] = "input 6\ndense 9 tanh\ndense 3\nloss cross-entropy\n"
                          "optimizer adam rate 0.01\nclip 0.3\nshards 3\n",
    [SHOAL_SIM_RECURRENT] = "input tokens 4 carry\nembed 9 5\nlstm 6\ndense 9\nloss cross-entropy\n"
                            "optimizer sgd rate 0.5\nshards 3\n",
};

static const char *const recipes[] = {
    "optimizer sgd rate 1\n",
    "optimizer momentum rate 0.1 momentum 0.9\n",
    "optimizer adam rate 0.01\n",
    "optimizer momentum rate 0.1 momentum 0.9\nclip 0.3\n",
};

/* For measuring: a layer a parameter server, so that slices are equal. */
static void write_layers(uint32_t owners, shoal_text *out) {
  shoal_text_addf(out, "input 1\n");
  for (uint32_t s = 0; s < owners; s++) shoal_text_addf(out, "dense 1\n");
  shoal_text_addf(out, "loss mean-squared\n");
}

static void make_graph(shoal_sim_job *job) {
  bool cheap = job->config.net == SHOAL_SIM_CHEAP;
  shoal_text text;
  shoal_text_init(&text);
  if (job->config.light)
    write_layers(job->config.owners, &text);
  else
    shoal_text_addf(&text, "%s", nets[job->config.net]);
  if (cheap) shoal_text_addf(&text, "%s", recipes[job->config.recipe]);
  SHOAL_ASSERT(!text.failed);
  shoal_error err;
  shoal_status status = shoal_model_parse(&job->model, "the simulator", text.bytes, text.length, &err);
  shoal_text_release(&text);
  if (status == SHOAL_OK) status = shoal_graph_create(&job->graph, job->model, &err);
  SHOAL_ASSERT(status == SHOAL_OK);
  job->weights_count = job->graph->weights_count;
  shoal_slices_cut(job->graph->runs, job->graph->runs_count, job->weights_count, job->config.owners,
                   job->slices);
  bool local = job->config.mode.kind == SHOAL_LOCAL;
  job->slots = local ? 1 : shoal_optimizer_rows[job->model->recipe.optimizer].slots;
}

static void make_trainer(shoal_sim_job *job) {
  shoal_trainer_config config = {
      .graph = job->graph, .threads = 1, .batch = BATCH, .samples = job->config.rounds * BATCH};
  shoal_error err;
  shoal_status status = shoal_trainer_create(&job->trainer, &config, &err);
  SHOAL_ASSERT(status == SHOAL_OK);
  job->source = (shoal_source){.self = job->graph, .samples = config.samples, .fetch = fetch};
  job->parts = shoal_trainer_shards(job->trainer);
  job->carry_floats = shoal_trainer_carry_floats(job->trainer);
}

static void make_first(shoal_sim_job *job) {
  job->first = reserve(job->weights_count, sizeof *job->first);
  shoal_graph_init_weights(job->graph, job->model->recipe.seed, job->first);
  float counted = job->config.mode.kind == SHOAL_ASYNC ? 0 : shoal_sim_job_counted(job);
  for (uint32_t s = 0; s < job->config.owners; s++) {
    size_t at;
    if (shoal_sim_job_counter(job, s, &at)) job->first[at] = counted;
    if (shoal_sim_job_counter(job, s, &at) && job->config.mode.kind == SHOAL_ASYNC) job->first[at + 1] = 0;
  }
}

shoal_sim_job *shoal_sim_job_create(const shoal_sim_job_config *config) {
  SHOAL_ASSERT(config->owners > 0 && config->owners <= SHOAL_SIM_OWNERS_MAX && config->rounds > 0);
  shoal_sim_job *job = reserve(1, sizeof *job);
  job->config = *config;
  const bool cheap = config->net == SHOAL_SIM_CHEAP, plain = config->format == SHOAL_WIRE_F32;
  const shoal_mode_kind mode = config->mode.kind;
  make_graph(job);
  job->parts = config->parts;
  job->carry_floats = config->carry ? CHEAP_CARRY : 0;
  if (!cheap) make_trainer(job);
  job->rounds = config->rounds;
  job->end = config->rounds * config->epochs;
  /* With thousands of workers the counters would be more than floats can tell apart. */
  job->counts = cheap && config->recipe == 0 && plain && mode != SHOAL_LOCAL && !config->light;
  job->exact = !config->light && plain && (mode == SHOAL_SYNC || mode == SHOAL_LOCAL);
  job->scratch = reserve(job->parts * job->weights_count, sizeof *job->scratch);
  job->part_sums = reserve(job->parts, sizeof *job->part_sums);
  make_first(job);
  if (job->exact) {
    job->versions = reserve((job->end + 1) * job->weights_count, sizeof *job->versions);
    if (cheap) job->sums = reserve(job->end, sizeof *job->sums);
    if (cheap)
      one_machine_cheap(job);
    else
      one_machine_real(job);
  }
  return job;
}

void shoal_sim_job_destroy(shoal_sim_job *job) {
  if (job == NULL) return;
  shoal_trainer_destroy(job->trainer);
  free(job->first);
  free(job->versions);
  free(job->sums);
  free(job->part_sums);
  free(job->scratch);
  shoal_graph_destroy(job->graph);
  shoal_model_destroy(job->model);
  free(job);
}
