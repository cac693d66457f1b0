/* attack.c: see attack.h.
 *
 * Who audits and who computes the parts of the banned does not matter here, since results are pure
 * functions: the honest gradient of every part is computed once, and stands for the second opinion. */
#include "bench/attack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/order.h"
#include "nn/optimizer.h"
#include "nn/trainer.h"
#include "proto/trust.h"

enum {
  WORKERS = SHOAL_ATTACK_WORKERS,
  HONEST = SHOAL_ATTACK_WORKERS - SHOAL_ATTACK_BAD,
  ROWS = SHOAL_ATTACK_ROWS,
  CLASSES = 10,
  PIECES = 2 * WORKERS, /* of uneven data */
  SAFE_EVERY = 20,      /* rounds */
  SAFE_KEPT = 4,        /* versions */
};
static const float NOISE_TIMES = 5, FLIP_TIMES = -3, ALIE_DEVIATIONS = 1.5f, INNER_TIMES = -0.5f;

static const char model_text[] = "input 784\ndense 100 relu\ndense 10\nloss cross-entropy\n"
                                 "optimizer momentum rate 0.05\nbatch 448\nshards 14\n";

const char *const shoal_attack_names[SHOAL_ATTACKS] = {"none", "noise", "flip", "labels",
                                                       "alie", "inner", "copy", "traitor"};

/* ---- data ---- */

/* The labels of all training samples, in the order of epoch 0, which positions stand for. */
static void read_labels(const shoal_source *train, int32_t *labels) {
  for (uint64_t p = 0; p < train->samples; p += SHOAL_FETCH_MAX) {
    uint64_t left = train->samples - p;
    uint32_t n = left < SHOAL_FETCH_MAX ? (uint32_t)left : SHOAL_FETCH_MAX;
    shoal_batch into = {.labels = labels + p};
    train->fetch(train->self, 0, p, n, &into);
  }
}

/* Sorted by class, cut into pieces, and each worker gets two of them by chance. */
static void deal_uneven(const int32_t *labels, uint64_t samples, uint32_t each, uint32_t *sorted,
                        uint32_t *dealt) {
  uint32_t count = 0, piece = each / 2;
  for (int32_t c = 0; c < CLASSES; c++)
    for (uint32_t p = 0; p < samples; p++)
      if (labels[p] == c) sorted[count++] = p;
  shoal_order order;
  shoal_order_init_key(&order, PIECES, shoal_key_make(1, SHOAL_FOR_SIMULATION, 1, 0));
  for (uint32_t i = 0; i < PIECES; i++) {
    uint32_t from = (uint32_t)shoal_order_at(&order, i) * piece;
    for (uint32_t k = 0; k < piece; k++) dealt[(size_t)i * piece + k] = sorted[from + k];
  }
}

static shoal_status deal(shoal_attack_data *data, shoal_error *err) {
  uint64_t samples = data->train.samples;
  data->each = (uint32_t)(samples / PIECES * 2);
  if (data->each < ROWS)
    return shoal_fail(err, SHOAL_INVALID, "%llu training samples are too few for %d workers with %d each",
                      (unsigned long long)samples, WORKERS, ROWS);
  int32_t *labels = calloc(samples, sizeof *labels);
  uint32_t *sorted = calloc(samples, sizeof *sorted);
  for (int i = 0; i < 2; i++) data->dealt[i] = calloc((size_t)WORKERS * data->each, sizeof(uint32_t));
  bool ok = labels != NULL && sorted != NULL && data->dealt[0] != NULL && data->dealt[1] != NULL;
  if (ok) {
    read_labels(&data->train, labels);
    for (uint32_t p = 0; p < WORKERS * data->each; p++) data->dealt[0][p] = p; /* shuffled already */
    deal_uneven(labels, samples, data->each, sorted, data->dealt[1]);
  }
  free(labels);
  free(sorted);
  return ok ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

shoal_status shoal_attack_open(shoal_attack_data *data, const char *name, const char *data_dir,
                               shoal_error *err) {
  *data = (shoal_attack_data){0};
  shoal_status status = shoal_model_parse(&data->model, "attack", model_text, sizeof model_text - 1, err);
  if (status == SHOAL_OK) status = shoal_graph_create(&data->graph, data->model, err);
  const shoal_dataset_options options = {.data = name, .data_dir = data_dir};
  if (status == SHOAL_OK) status = shoal_dataset_open(&data->dataset, &options, data->model, err);
  if (status == SHOAL_OK && (shoal_dataset_samples(data->dataset, SHOAL_TEST) == 0 ||
                             shoal_dataset_classes(data->dataset) != CLASSES))
    status = shoal_fail(err, SHOAL_INVALID, "%s is no data with %d classes and a test part; try mnist", name,
                        CLASSES);
  uint32_t batch = data->model != NULL ? data->model->recipe.batch : 0;
  if (status == SHOAL_OK)
    status = shoal_dataset_source(data->dataset, SHOAL_TRAIN, batch, 1, &data->train, err);
  if (status == SHOAL_OK)
    status = shoal_dataset_source(data->dataset, SHOAL_TEST, batch, 1, &data->test, err);
  return status == SHOAL_OK ? deal(data, err) : status;
}

void shoal_attack_close(shoal_attack_data *data) {
  free(data->dealt[0]);
  free(data->dealt[1]);
  shoal_dataset_close(data->dataset);
  shoal_graph_destroy(data->graph);
  shoal_model_destroy(data->model);
  *data = (shoal_attack_data){0};
}

/* What workers see: part v of a round is the next samples of worker v, in an order of its own. */
typedef struct share_view {
  const shoal_attack_data *data;
  const uint32_t *dealt;
  uint64_t seed;
  bool turned; /* labels */
} share_view;

static void fetch_one(const share_view *view, uint32_t sample, uint32_t i, const shoal_batch *into) {
  const shoal_source *train = &view->data->train;
  size_t features = view->data->graph->nodes[0].shape.features;
  shoal_batch one = {.x = into->x != NULL ? into->x + i * features : NULL,
                     .labels = into->labels != NULL ? into->labels + i : NULL,
                     .weight = into->weight != NULL ? into->weight + i : NULL,
                     .ids = into->ids != NULL ? into->ids + i : NULL};
  train->fetch(train->self, 0, sample, 1, &one);
  if (view->turned && one.labels != NULL) *one.labels = CLASSES - 1 - *one.labels;
}

static void fetch(const void *self, uint64_t epoch, uint64_t first, uint32_t n, const shoal_batch *into) {
  const share_view *view = self;
  uint32_t each = view->data->each;
  shoal_order order;
  uint64_t last = WORKERS;
  for (uint32_t i = 0; i < n; i++) {
    uint64_t p = first + i, worker = p / ROWS % WORKERS, round = p / (ROWS * WORKERS);
    shoal_key key = shoal_key_make(view->seed, SHOAL_FOR_ORDER, epoch, worker);
    if (worker != last) shoal_order_init_key(&order, each, key);
    last = worker;
    fetch_one(view, view->dealt[worker * each + shoal_order_at(&order, round * ROWS + p % ROWS)], i, into);
  }
}

/* ---- a training ---- */

/* A version that training can go back to. */
typedef struct safe_version {
  uint64_t version; /* UINT64_MAX: none */
  float *weights, *slot, *centre;
} safe_version;

typedef struct training {
  const shoal_attack_data *data;
  const shoal_attack_case *what;
  shoal_attack_result *result;
  const shoal_kernels *kernels;
  shoal_trainer *trainer;
  shoal_aggregate *aggregate;
  shoal_trust *trust;
  size_t count; /* floats of a vector */
  share_view honest_view, turned_view;
  shoal_source honest, turned;
  uint64_t version, steps, rounds; /* rounds: of an epoch */
  float *memory;                   /* all vectors below */
  float *truth[WORKERS], *lies[WORKERS], *first[WORKERS], *gradient;
  const float *sent[WORKERS];
  bool banned[WORKERS];
  uint64_t right[WORKERS]; /* the last round in which it was found right */
  uint32_t *lied;          /* of each round in the weights: how many lies */
  safe_version safe[SAFE_KEPT];
} training;

static bool is_bad(uint32_t worker) { return worker >= HONEST; }
static uint64_t who(uint32_t worker) { return worker + 1; } /* numbers in trust.h begin at 1 */

static float *next_vector(training *t, size_t *used) {
  float *vector = t->memory + *used;
  *used += t->count;
  return vector;
}

static shoal_status reserve(training *t, shoal_error *err) {
  size_t vectors = 3 * WORKERS + 1 + 3 * SAFE_KEPT, used = 0;
  t->count = t->data->graph->weights_count;
  t->memory = aligned_alloc(64, vectors * t->count * sizeof *t->memory);
  t->lied = calloc(t->steps + 1, sizeof *t->lied);
  if (t->memory == NULL || t->lied == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  memset(t->memory, 0, vectors * t->count * sizeof *t->memory);
  for (uint32_t v = 0; v < WORKERS; v++) {
    t->truth[v] = next_vector(t, &used);
    t->lies[v] = next_vector(t, &used);
    t->first[v] = next_vector(t, &used);
  }
  t->gradient = next_vector(t, &used);
  for (uint32_t s = 0; s < SAFE_KEPT; s++)
    t->safe[s] =
        (safe_version){UINT64_MAX, next_vector(t, &used), next_vector(t, &used), next_vector(t, &used)};
  return SHOAL_OK;
}

static shoal_status set_up(training *t, shoal_error *err) {
  const shoal_attack_data *data = t->data;
  t->rounds = data->each / ROWS;
  t->steps = t->rounds * t->what->epochs;
  t->kernels = shoal_kernels_get();
  t->honest_view = (share_view){data, data->dealt[t->what->uneven], t->what->seed, false};
  t->turned_view = t->honest_view;
  t->turned_view.turned = true;
  t->honest = (shoal_source){&t->honest_view, t->rounds * ROWS * WORKERS, fetch};
  t->turned = (shoal_source){&t->turned_view, t->honest.samples, fetch};
  shoal_trainer_config config = {
      .graph = data->graph, .threads = 1, .batch = ROWS * WORKERS, .samples = t->honest.samples};
  shoal_status status = reserve(t, err);
  if (status == SHOAL_OK) status = shoal_trainer_create(&t->trainer, &config, err);
  if (status != SHOAL_OK) return status;
  shoal_graph_init_weights(data->graph, t->what->seed, shoal_trainer_state(t->trainer)->weights);
  const shoal_aggregate_config rule = {
      .rule = t->what->rule, .kernels = t->kernels, .contributions = WORKERS, .count = t->count};
  return shoal_aggregate_create(&t->aggregate, &rule, err);
}

static void take_down(training *t) {
  shoal_trust_destroy(t->trust);
  shoal_aggregate_destroy(t->aggregate);
  shoal_trainer_destroy(t->trainer);
  free(t->memory);
  free(t->lied);
}

/* ---- lies ---- */

static void compute(training *t, const shoal_source *source, uint32_t worker, float *out) {
  shoal_sums sums;
  shoal_trainer_node(t->trainer, shoal_trainer_state(t->trainer)->weights, source, t->version / t->rounds,
                     t->version % t->rounds, worker, 1, out, &sums);
}

static void scale(size_t count, float factor, const float *x, float *out) {
  for (size_t c = 0; c < count; c++) out[c] = factor * x[c];
}

static void make_noise(const training *t, uint32_t worker) {
  shoal_key key = shoal_key_make(t->what->seed, SHOAL_FOR_SIMULATION, worker, t->version);
  float *lie = t->lies[worker];
  for (size_t c = 0; c < t->count; c += 4) { /* vectors are whole lanes */
    uint32_t words[4];
    shoal_random_block(key, 0, c, words);
    for (size_t k = 0; k < 4; k++) lie[c + k] = (float)(int32_t)words[k] * 0x1p-31f;
  }
  double truth = shoal_square_sum(t->kernels, t->count, t->truth[worker]);
  double noise = shoal_square_sum(t->kernels, t->count, lie);
  scale(t->count, NOISE_TIMES * (float)sqrt(truth / noise), lie, lie);
}

/* The same lie for all: mean + deviations * deviation + times * mean of the honest. */
static void make_common(const training *t, float *lie, float times, float deviations) {
  for (size_t c = 0; c < t->count; c++) {
    float mean = 0, square = 0;
    for (uint32_t v = 0; v < HONEST; v++) mean += t->truth[v][c];
    mean /= HONEST;
    for (uint32_t v = 0; v < HONEST; v++) square += (t->truth[v][c] - mean) * (t->truth[v][c] - mean);
    lie[c] = times * mean + deviations * sqrtf(square / HONEST);
  }
}

static bool is_trusted(const training *t, uint32_t worker) {
  bool late = t->version >= t->steps / 4;
  return late && (!t->what->audits || shoal_trust_proven(t->trust, who(worker)));
}

/* What a bad worker sends; *common is made by the first who needs it. */
static const float *lie_of(training *t, uint32_t worker, const float **common) {
  float *lie = t->lies[worker];
  switch (t->what->attack) {
  case SHOAL_ATTACK_NOISE: make_noise(t, worker); return lie;
  case SHOAL_ATTACK_FLIP: scale(t->count, FLIP_TIMES, t->truth[worker], lie); return lie;
  case SHOAL_ATTACK_LABELS: compute(t, &t->turned, worker, lie); return lie;
  case SHOAL_ATTACK_ALIE:
    if (*common == NULL) make_common(t, lie, 1, -ALIE_DEVIATIONS);
    break;
  case SHOAL_ATTACK_INNER:
    if (*common == NULL) make_common(t, lie, INNER_TIMES, 0);
    break;
  case SHOAL_ATTACK_COPY: return t->first[worker];
  case SHOAL_ATTACK_TRAITOR:
    if (!is_trusted(t, worker)) return t->truth[worker];
    scale(t->count, FLIP_TIMES, t->truth[worker], lie);
    return lie;
  default: return t->truth[worker];
  }
  if (*common == NULL) *common = lie;
  return *common;
}

static void send_all(training *t) {
  const float *common = NULL;
  for (uint32_t v = 0; v < WORKERS; v++) compute(t, &t->honest, v, t->truth[v]);
  for (uint32_t v = 0; v < WORKERS; v++) {
    if (t->version == 0) memcpy(t->first[v], t->truth[v], t->count * sizeof(float));
    t->sent[v] = is_bad(v) && !t->banned[v] ? lie_of(t, v, &common) : t->truth[v];
  }
}

/* ---- versions ---- */

/* Which place the next one takes: the oldest stays while somebody has not been found right since. */
static safe_version *place_for_safe(training *t) {
  safe_version *oldest = NULL, *second = NULL;
  uint64_t right = UINT64_MAX;
  for (uint32_t v = 0; v < WORKERS; v++)
    if (!t->banned[v] && t->right[v] < right) right = t->right[v];
  for (uint32_t i = 0; i < SAFE_KEPT; i++) {
    safe_version *s = &t->safe[i];
    if (s->version == UINT64_MAX) return s;
    if (oldest == NULL || s->version < oldest->version) {
      second = oldest;
      oldest = s;
    } else if (second == NULL || s->version < second->version) {
      second = s;
    }
  }
  return second->version <= right ? oldest : second;
}

static void keep_safe(training *t) {
  if (t->version % SAFE_EVERY != 0) return;
  for (uint32_t i = 0; i < SAFE_KEPT; i++)
    if (t->safe[i].version == t->version) return; /* it went back there */
  const shoal_train_state *state = shoal_trainer_state(t->trainer);
  safe_version *s = place_for_safe(t);
  const float *centre = shoal_aggregate_centre(t->aggregate);
  s->version = t->version;
  memcpy(s->weights, state->weights, t->count * sizeof(float));
  memcpy(s->slot, state->slot1, t->count * sizeof(float));
  if (centre != NULL) memcpy(s->centre, centre, t->count * sizeof(float));
}

/* To the newest version that is not newer than this, or the oldest there is. */
static void go_back(training *t, uint64_t most) {
  safe_version *best = NULL;
  for (uint32_t i = 0; i < SAFE_KEPT; i++) {
    safe_version *s = &t->safe[i];
    if (s->version > t->version) continue;
    bool better = best == NULL || (s->version <= most ? best->version > most || s->version > best->version
                                                      : best->version > most && s->version < best->version);
    if (better) best = s;
  }
  shoal_train_state *state = shoal_trainer_state(t->trainer);
  float *centre = shoal_aggregate_centre(t->aggregate);
  t->result->went_back++;
  t->result->rounds_lost += t->version - best->version;
  t->version = best->version;
  memcpy(state->weights, best->weights, t->count * sizeof(float));
  memcpy(state->slot1, best->slot, t->count * sizeof(float));
  if (centre != NULL) memcpy(centre, best->centre, t->count * sizeof(float));
  for (uint32_t i = 0; i < SAFE_KEPT; i++)
    if (t->safe[i].version > t->version) t->safe[i].version = UINT64_MAX;
  for (uint32_t v = 0; v < WORKERS; v++) /* what was found right later is no more */
    if (t->right[v] > t->version) t->right[v] = t->version;
}

static void apply(training *t) {
  const shoal_recipe *recipe = &t->data->model->recipe;
  shoal_train_state *state = shoal_trainer_state(t->trainer);
  shoal_aggregate_run(t->aggregate, t->sent, t->what->seed + t->version, t->gradient, NULL);
  shoal_update update = shoal_optimizer_update(recipe, recipe->rate, t->version + 1);
  update.grad_scale = WORKERS; /* a part's gradient is its part of the round's mean */
  for (size_t i = 0; i < t->data->graph->runs_count; i++)
    shoal_optimizer_apply(t->kernels, &update, &t->data->graph->runs[i], state->weights, state->weights,
                          t->gradient, state->slot1, state->slot2);
  t->version++;
}

/* ---- audits ---- */

static void ban(training *t, uint32_t worker) {
  shoal_trust_wrong(t->trust, who(worker));
  t->banned[worker] = true;
  t->result->banned++;
  t->result->banned_honest += !is_bad(worker);
  t->sent[worker] = t->truth[worker]; /* which somebody else computes from now on */
}

/* Checks what is drawn, and in the last round everything; true when the round has to be left, and training goes on from an older version. */
static bool audit(training *t) {
  bool back = false;
  uint64_t most = UINT64_MAX;
  bool last = t->version + 1 == t->steps;
  for (uint32_t v = 0; v < WORKERS; v++) {
    if (t->banned[v] || (!last && !shoal_trust_audits(t->trust, who(v), t->result->rounds))) continue;
    t->result->audits++;
    if (memcmp(t->sent[v], t->truth[v], t->count * sizeof(float)) == 0) {
      shoal_trust_agreed(t->trust, who(v));
      t->right[v] = t->version;
      continue;
    }
    bool counted = shoal_trust_proven(t->trust, who(v)); /* units since the last that was found right */
    ban(t, v);
    back |= counted;
    if (counted && t->right[v] < most) most = t->right[v];
  }
  if (back) go_back(t, most);
  return back;
}

/* ---- the whole ---- */

static void count_lies(training *t) {
  t->lied[t->version] = 0;
  for (uint32_t v = HONEST; v < WORKERS; v++) {
    bool lies = memcmp(t->sent[v], t->truth[v], t->count * sizeof(float)) != 0;
    t->lied[t->version] += lies;
  }
}

static shoal_status train(training *t, const volatile sig_atomic_t *stop, shoal_error *err) {
  shoal_attack_result *result = t->result;
  shoal_status status = SHOAL_OK;
  if (t->what->audits) status = shoal_trust_create(&t->trust, WORKERS, t->what->seed, err);
  while (status == SHOAL_OK && t->version < t->steps) {
    if (__atomic_load_n(stop, __ATOMIC_RELAXED) != 0) return shoal_fail(err, SHOAL_STOPPED, "stopped");
    keep_safe(t);
    send_all(t);
    for (uint32_t v = 0; v < WORKERS; v++) result->units += !t->banned[v];
    bool left = t->what->audits && audit(t);
    result->rounds++;
    if (left) continue;
    count_lies(t);
    apply(t);
  }
  return status;
}

shoal_status shoal_attack_run(const shoal_attack_data *data, const shoal_attack_case *what,
                              const volatile sig_atomic_t *stop, shoal_attack_result *out, shoal_error *err) {
  *out = (shoal_attack_result){0};
  training t = {.data = data, .what = what, .result = out};
  shoal_status status = set_up(&t, err);
  if (status == SHOAL_OK) status = train(&t, stop, err);
  if (status == SHOAL_OK) {
    out->accuracy = shoal_trainer_evaluate(t.trainer, &data->test).accuracy;
    for (uint64_t v = 0; v < t.steps; v++) out->lies_kept += t.lied[v];
    shoal_graph_weights_sha256(data->graph, shoal_trainer_state(t.trainer)->weights, out->sha256);
  }
  take_down(&t);
  return status;
}
