/* ranks.c: see ranks.h.
 *
 * Who computes which shards and owns which slice follows from the number of ranks alone, and every
 * rank knows it of all. So nothing is ever asked for: what goes to whom and comes from whom is listed
 * once, at create, and each phase of a round is one exchange of such a list.
 *
 *   gradients   the sums of own nodes, each slice's stretch to its owner; own shards' losses to all
 *   squares     own runs' squares to all
 *   weights     the own slice to all
 *   rest        slots of the own slice and recurrent state of own shards, to rank 0
 *
 * What is sent is a copy where the original is written again in the next round: see base/stream.h.
 *
 * Gradients that come in are kept beside each other, a slice each. Together with the own ones they are
 * the leaves of what is left of the tree; `joins` lists which is added to which, in order. */
#include "net/ranks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/block.h"
#include "base/hash.h"
#include "base/pool.h"
#include "base/stream.h"
#include "net/shares.h"
#include "nn/optimizer.h"
#include "nn/tree.h"

enum { BLOCKS_MAX = 4 };

/* What rank 0 wants next. */
typedef enum command { COMMAND_ROUND, COMMAND_GATHER, COMMAND_END } command;

typedef struct traffic {
  shoal_piece *sends, *receives;
  uint32_t sends_count, receives_count;
} traffic;

/* Shards first .. first + count - 1: a node of the tree that one rank has all of. */
typedef struct node {
  uint32_t first, count;
} node;

/* into += from, for runs of the own slice; both as if the whole vector were there. */
typedef struct join {
  float *into, *from;
} join;

/* See base/block.h. */
typedef struct block {
  void *memory;
  size_t bytes;
} block;

struct shoal_ranks {
  shoal_ranks_config config;
  const shoal_fabric *fabric;
  const shoal_recipe *recipe;
  const shoal_kernels *kernels;
  shoal_train_state *state; /* the trainer's */
  shoal_pool *pool;
  uint32_t rank, size, shards;
  shoal_shares shares; /* a slice a rank */
  shoal_slice own;     /* this rank's */
  uint32_t parts_first, parts_count;
  shoal_part *parts; /* own shards */
  node nodes[SHOAL_SHARDS_MAX];
  uint32_t nodes_count; /* own */
  uint32_t other_nodes_count;
  float *gradients;         /* one a part */
  float *sent;              /* the sums of own nodes, for other owners */
  float *sent_weights;      /* the own slice, for all others */
  float *received;          /* a slice each */
  block blocks[BLOCKS_MAX]; /* what these four are in */
  uint32_t blocks_count;
  join joins[SHOAL_SHARDS_MAX];
  uint32_t joins_count;
  const float *total; /* the sum over all shards, of the own slice, as if the whole vector were there */
  shoal_sums sums[SHOAL_SHARDS_MAX];
  double *squares; /* one a run */
  size_t carry_floats;
  float *carry; /* of all shards, packed; NULL without */
  traffic gradients_traffic, squares_traffic, weights_traffic, rest_traffic;
  bool over; /* nobody listens any more */
};

/* ---- who has what ---- */

static uint32_t first_shard(const shoal_ranks *k, uint32_t rank) {
  return (uint32_t)((uint64_t)k->shards * rank / k->size);
}

/* How many parts the largest node has that begins at `first` and ends at `end` or before. */
static uint32_t largest_node(uint32_t shards, uint32_t first, uint32_t end) {
  uint32_t count = 1;
  for (uint32_t width = 2; width < 2 * shards && first % width == 0; width *= 2) {
    if (shoal_tree_count(shards, first, width) > end - first) break;
    count = shoal_tree_count(shards, first, width);
  }
  return count;
}

/* The nodes of a rank's shards, as few as possible. Returns how many. */
static uint32_t nodes_of(const shoal_ranks *k, uint32_t rank, node nodes[SHOAL_SHARDS_MAX]) {
  uint32_t end = first_shard(k, rank + 1), count = 0;
  for (uint32_t first = first_shard(k, rank); first < end; first += nodes[count++].count)
    nodes[count] = (node){first, largest_node(k->shards, first, end)};
  return count;
}

/* ---- memory ---- */

static void *reserve(size_t count, size_t bytes, bool *ok) {
  void *memory = calloc(count > 0 ? count : 1, bytes);
  if (memory == NULL) *ok = false;
  return memory;
}

/* Aligned for kernels, on huge pages when there are many. Zeroed, since what lies between parameters is sent
 * but never written. */
static float *reserve_floats(shoal_ranks *k, size_t count, bool *ok) {
  size_t bytes;
  void *memory = shoal_block_take((count > 0 ? count : 1) * sizeof(float), &bytes);
  if (memory == NULL) {
    *ok = false;
    return NULL;
  }
  memset(memory, 0, bytes);
  SHOAL_ASSERT(k->blocks_count < BLOCKS_MAX);
  k->blocks[k->blocks_count++] = (block){memory, bytes};
  return memory;
}

static void reserve_traffic(traffic *t, size_t sends_max, size_t receives_max, bool *ok) {
  t->sends = reserve(sends_max, sizeof *t->sends, ok);
  t->receives = reserve(receives_max, sizeof *t->receives, ok);
}

static void release_traffic(traffic *t) {
  free(t->sends);
  free(t->receives);
}

static bool reserve_all(shoal_ranks *k) {
  bool ok = true;
  size_t weights = k->state->weights_count, others = k->size, slots = 2;
  k->parts = reserve(k->parts_count, sizeof *k->parts, &ok);
  k->gradients = reserve_floats(k, k->parts_count * weights, &ok);
  if (k->size > 1) {
    k->sent = reserve_floats(k, k->nodes_count * weights, &ok);
    k->sent_weights = reserve_floats(k, k->own.count, &ok);
  }
  k->received = reserve_floats(k, k->other_nodes_count * k->own.count, &ok);
  k->squares = reserve(k->shares.runs_count, sizeof *k->squares, &ok);
  if (k->carry_floats > 0) k->carry = reserve(k->shards * k->carry_floats, sizeof *k->carry, &ok);
  reserve_traffic(&k->gradients_traffic, (k->nodes_count + 1) * others, k->shards + others, &ok);
  reserve_traffic(&k->squares_traffic, others, others, &ok);
  reserve_traffic(&k->weights_traffic, others, others, &ok);
  reserve_traffic(&k->rest_traffic, slots + 1, (slots + 1) * others, &ok);
  return ok;
}

/* ---- lists ---- */

static void add_send(traffic *t, uint32_t rank, const void *bytes, size_t length) {
  if (length > 0) t->sends[t->sends_count++] = (shoal_piece){rank, (void *)(uintptr_t)bytes, length};
}

static void add_receive(traffic *t, uint32_t rank, void *bytes, size_t length) {
  if (length > 0) t->receives[t->receives_count++] = (shoal_piece){rank, bytes, length};
}

/* A stretch of an array that all ranks have: its owner sends it, or a copy, and all others receive it. */
static void add_share(traffic *t, const shoal_ranks *k, uint32_t owner, void *bytes, const void *copy,
                      size_t length) {
  if (owner != k->rank) add_receive(t, owner, bytes, length);
  for (uint32_t rank = 0; owner == k->rank && rank < k->size; rank++)
    if (rank != owner) add_send(t, rank, copy, length);
}

/* A stretch of an array of rank 0's that another rank has. */
static void add_return(traffic *t, const shoal_ranks *k, uint32_t owner, void *bytes, size_t length) {
  if (owner == 0) return;
  if (k->rank == owner) add_send(t, 0, bytes, length);
  if (k->rank == 0) add_receive(t, owner, bytes, length);
}

/* Where the whole vector would begin of which this is the own slice. */
static float *whole(const shoal_ranks *k, float *slice) {
  return (float *)((uintptr_t)slice - k->own.offset * sizeof(float));
}

static float *gradient_of(const shoal_ranks *k, uint32_t shard) {
  return k->gradients + (shard - k->parts_first) * k->state->weights_count;
}

static float *sent_of(const shoal_ranks *k, uint32_t own_node) {
  return k->sent + own_node * k->state->weights_count;
}

/* What is left to add when the nodes lie at their first shards and NULL at all others: of two
 * neighbours of a width, the left one is never missing where the right one is there. */
static void list_joins(shoal_ranks *k, float *at[SHOAL_SHARDS_MAX]) {
  for (uint32_t width = 1; width < k->shards; width *= 2)
    for (uint32_t i = 0; i + width < k->shards; i += 2 * width) {
      if (at[i + width] == NULL) continue;
      SHOAL_ASSERT(at[i] != NULL);
      k->joins[k->joins_count++] = (join){at[i], at[i + width]};
      at[i + width] = NULL;
    }
  k->total = at[0];
}

/* Between two ranks, nodes go in ascending order and losses last. */
static void list_gradients(shoal_ranks *k) {
  traffic *t = &k->gradients_traffic;
  size_t slice_bytes = k->own.count * sizeof(float);
  float *at[SHOAL_SHARDS_MAX] = {NULL}, *place = k->received;
  for (uint32_t n = 0; n < k->nodes_count; n++) {
    at[k->nodes[n].first] = gradient_of(k, k->nodes[n].first);
    for (uint32_t owner = 0; owner < k->size; owner++)
      if (owner != k->rank)
        add_send(t, owner, sent_of(k, n) + k->shares.slices[owner].offset,
                 k->shares.slices[owner].count * sizeof(float));
  }
  for (uint32_t rank = 0; rank < k->size; rank++) {
    node nodes[SHOAL_SHARDS_MAX];
    uint32_t count = rank == k->rank ? 0 : nodes_of(k, rank, nodes);
    for (uint32_t n = 0; n < count; n++) {
      at[nodes[n].first] = whole(k, place);
      add_receive(t, rank, place, slice_bytes);
      place += k->own.count;
    }
    uint32_t first = first_shard(k, rank);
    add_share(t, k, rank, &k->sums[first], &k->sums[first],
              (first_shard(k, rank + 1) - first) * sizeof *k->sums);
  }
  if (k->own.count > 0) list_joins(k, at);
}

static void list_rest(shoal_ranks *k, uint32_t owner) {
  traffic *t = &k->rest_traffic;
  const shoal_slice *slice = &k->shares.slices[owner];
  float *slots[] = {k->state->slot1, k->state->slot2};
  for (int i = 0; i < 2; i++)
    if (slots[i] != NULL) add_return(t, k, owner, slots[i] + slice->offset, slice->count * sizeof(float));
  uint32_t first = first_shard(k, owner), count = first_shard(k, owner + 1) - first;
  if (k->carry != NULL)
    add_return(t, k, owner, k->carry + first * k->carry_floats, count * k->carry_floats * sizeof(float));
}

static void list_all(shoal_ranks *k) {
  list_gradients(k);
  for (uint32_t owner = 0; owner < k->size; owner++) {
    const shoal_slice *slice = &k->shares.slices[owner];
    double *squares = k->squares + slice->first_run;
    add_share(&k->squares_traffic, k, owner, squares, squares, slice->runs_count * sizeof *squares);
    add_share(&k->weights_traffic, k, owner, k->state->weights + slice->offset, k->sent_weights,
              slice->count * sizeof(float));
    list_rest(k, owner);
  }
}

static shoal_status run_traffic(const shoal_ranks *k, const traffic *t, shoal_error *err) {
  if (t->sends_count + t->receives_count == 0) return SHOAL_OK;
  return k->fabric->exchange(k->fabric->self, t->sends, t->sends_count, t->receives, t->receives_count, err);
}

/* ---- create ---- */

static shoal_status cut(shoal_ranks *k) {
  shoal_status status = shoal_shares_init(&k->shares, k->config.graph, k->size, NULL);
  if (status != SHOAL_OK) return status;
  k->own = k->shares.slices[k->rank];
  k->parts_first = first_shard(k, k->rank);
  k->parts_count = first_shard(k, k->rank + 1) - k->parts_first;
  for (uint32_t rank = 0; rank < k->size; rank++) k->other_nodes_count += nodes_of(k, rank, k->nodes);
  k->nodes_count = nodes_of(k, k->rank, k->nodes);
  k->other_nodes_count -= k->nodes_count;
  return SHOAL_OK;
}

shoal_status shoal_ranks_create(shoal_ranks **out, const shoal_ranks_config *config, shoal_error *err) {
  *out = NULL;
  shoal_ranks *k = calloc(1, sizeof *k);
  if (k == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  k->config = *config;
  k->fabric = config->fabric;
  k->recipe = &config->graph->model->recipe;
  k->kernels = shoal_kernels_get();
  k->state = shoal_trainer_state(config->trainer);
  k->rank = config->fabric->rank;
  k->size = config->fabric->size;
  k->shards = shoal_trainer_shards(config->trainer);
  k->carry_floats = shoal_trainer_carry_floats(config->trainer);
  SHOAL_ASSERT(k->rank < k->size && k->kernels != NULL);

  shoal_status status = cut(k);
  if (status == SHOAL_OK && !reserve_all(k)) status = SHOAL_NO_MEMORY;
  if (status != SHOAL_OK)
    shoal_fail(err, status, "not enough memory for %u gradients of %zu weights", k->parts_count,
               config->graph->weights_count);
  else
    status = shoal_pool_create(&k->pool, config->threads, err);
  if (status != SHOAL_OK) {
    shoal_ranks_destroy(k);
    return status;
  }
  for (uint32_t i = 0; i < k->parts_count; i++)
    k->parts[i] = (shoal_part){.shard = k->parts_first + i, .gradient = gradient_of(k, k->parts_first + i)};
  list_all(k);
  *out = k;
  return SHOAL_OK;
}

void shoal_ranks_destroy(shoal_ranks *k) {
  if (k == NULL) return;
  shoal_pool_destroy(k->pool);
  release_traffic(&k->gradients_traffic);
  release_traffic(&k->squares_traffic);
  release_traffic(&k->weights_traffic);
  release_traffic(&k->rest_traffic);
  for (uint32_t i = 0; i < k->blocks_count; i++) shoal_block_give(k->blocks[i].memory, k->blocks[i].bytes);
  shoal_shares_release(&k->shares);
  free(k->parts);
  free(k->squares);
  free(k->carry);
  free(k);
}

/* ---- the start ---- */

/* What a rank tells rank 0, and what rank 0 tells all. */
typedef struct report {
  uint32_t status;
  char job[SHOAL_SHA256_HEX];
  char text[SHOAL_ERROR_TEXT_MAX];
} report;

static void note_failure(report *answer, uint32_t rank, const report *from, const char *job) {
  if (answer->status != SHOAL_OK) return;
  if (from->status != SHOAL_OK) {
    answer->status = from->status;
    snprintf(answer->text, sizeof answer->text, "rank %u: %.*s", rank, SHOAL_ERROR_TEXT_MAX - 32, from->text);
  } else if (strcmp(from->job, job) != 0) {
    answer->status = SHOAL_INVALID;
    snprintf(answer->text, sizeof answer->text,
             "rank %u has another model, other data or another version of this program than rank 0; all "
             "ranks need the same",
             rank);
  }
}

/* Rank 0 hears the others, one after the other, and makes the answer. */
static shoal_status hear_all(const shoal_fabric *fabric, const report *own, report *answer,
                             shoal_error *err) {
  shoal_status status = SHOAL_OK;
  *answer = *own;
  for (uint32_t rank = 1; rank < fabric->size && status == SHOAL_OK; rank++) {
    report from;
    shoal_piece piece = {rank, &from, sizeof from};
    status = fabric->exchange(fabric->self, NULL, 0, &piece, 1, err);
    if (status == SHOAL_OK) note_failure(answer, rank, &from, own->job);
  }
  return status;
}

shoal_status shoal_ranks_agree(const shoal_fabric *fabric, shoal_status *ready, const char *job,
                               shoal_error *err) {
  report own = {.status = *ready}, answer = {.status = SHOAL_OK};
  shoal_sha256_hex(job, strlen(job), own.job);
  if (*ready != SHOAL_OK && err != NULL) snprintf(own.text, sizeof own.text, "%s", err->text);
  shoal_piece piece = {0, &own, sizeof own};
  shoal_status status = fabric->rank == 0 ? hear_all(fabric, &own, &answer, err)
                                          : fabric->exchange(fabric->self, &piece, 1, NULL, 0, err);
  if (status == SHOAL_OK) status = fabric->broadcast(fabric->self, &answer, sizeof answer, err);
  if (status != SHOAL_OK || *ready != SHOAL_OK || answer.status == SHOAL_OK) return status;
  *ready = (shoal_status)answer.status;
  shoal_fail(err, *ready, "%s", answer.text);
  return SHOAL_OK;
}

static shoal_status broadcast_floats(const shoal_ranks *k, float *floats, size_t count, shoal_error *err) {
  if (floats == NULL || count == 0) return SHOAL_OK;
  return k->fabric->broadcast(k->fabric->self, floats, count * sizeof *floats, err);
}

shoal_status shoal_ranks_start(shoal_ranks *k, shoal_error *err) {
  shoal_train_state *state = k->state;
  /* The numbers of rank 0's state, with the pointers of one's own. */
  shoal_train_state from = *state;
  shoal_status status = k->fabric->broadcast(k->fabric->self, &from, sizeof from, err);
  if (status == SHOAL_OK) {
    from.weights = state->weights;
    from.slot1 = state->slot1;
    from.slot2 = state->slot2;
    from.carry = state->carry;
    SHOAL_ASSERT(from.weights_count == state->weights_count && from.carry_count == state->carry_count);
    *state = from;
    status = broadcast_floats(k, state->weights, state->weights_count, err);
  }
  if (status == SHOAL_OK) status = broadcast_floats(k, state->slot1, state->weights_count, err);
  if (status == SHOAL_OK) status = broadcast_floats(k, state->slot2, state->weights_count, err);
  if (status == SHOAL_OK) status = broadcast_floats(k, state->carry, state->carry_count, err);
  if (status != SHOAL_OK) k->over = true;
  return status;
}

/* ---- a round ---- */

/* Adds up own nodes, a run of the whole vector, and puts what is not for this rank where it is sent from. */
static void sum_nodes_task(void *context, uint32_t index, uint32_t thread) {
  (void)thread;
  const shoal_ranks *k = context;
  const shoal_run *run = &k->shares.runs[index];
  bool own = index >= k->own.first_run && index - k->own.first_run < k->own.runs_count;
  for (uint32_t n = 0; n < k->nodes_count; n++) {
    const float *parts[SHOAL_SHARDS_MAX];
    const node *sum = &k->nodes[n];
    float *into = gradient_of(k, sum->first) + run->offset;
    for (uint32_t i = 0; i < sum->count; i++) parts[i] = gradient_of(k, sum->first + i) + run->offset;
    if (sum->count > 1) k->kernels->sum_parts(run->count, sum->count, parts, into);
    if (!own) shoal_stream_floats(sent_of(k, n) + run->offset, into, run->count);
  }
}

static void compute(shoal_ranks *k) {
  for (uint32_t i = 0; i < k->parts_count; i++) {
    k->parts[i].epoch = k->state->epoch;
    k->parts[i].round = k->state->round;
  }
  shoal_trainer_parts(k->config.trainer, k->config.source, k->parts, k->parts_count);
  for (uint32_t i = 0; i < k->parts_count; i++) k->sums[k->parts[i].shard] = k->parts[i].sums;
  if (k->parts_count > 0) shoal_pool_run(k->pool, (uint32_t)k->shares.runs_count, sum_nodes_task, k);
}

/* The second half of a round: a run of the own slice. */
typedef struct apply {
  const shoal_ranks *ranks;
  shoal_update update;
} apply;

static const shoal_run *own_run(const shoal_ranks *k, uint32_t index) {
  return &k->shares.runs[k->own.first_run + index];
}

static void sum_run(const shoal_ranks *k, const shoal_run *run) {
  for (uint32_t i = 0; i < k->joins_count; i++) {
    float *into = k->joins[i].into + run->offset;
    k->kernels->add(run->count, into, k->joins[i].from + run->offset, into);
  }
}

static void sum_task(void *context, uint32_t index, uint32_t thread) {
  (void)thread;
  const shoal_ranks *k = ((const apply *)context)->ranks;
  const shoal_run *run = own_run(k, index);
  sum_run(k, run);
  k->squares[k->own.first_run + index] =
      run->kind == SHOAL_PARAM_STATISTIC ? 0 : k->kernels->square_sum(run->count, k->total + run->offset);
}

static void update_task(void *context, uint32_t index, uint32_t thread) {
  (void)thread;
  const apply *a = context;
  const shoal_ranks *k = a->ranks;
  const shoal_run *run = own_run(k, index);
  const shoal_train_state *state = k->state;
  shoal_optimizer_apply(k->kernels, &a->update, run, state->weights, state->weights, k->total, state->slot1,
                        state->slot2);
  if (k->size > 1)
    shoal_stream_floats(k->sent_weights + (run->offset - k->own.offset), state->weights + run->offset,
                        run->count);
}

static void sum_and_update_task(void *context, uint32_t index, uint32_t thread) {
  const apply *a = context;
  sum_run(a->ranks, own_run(a->ranks, index));
  update_task(context, index, thread);
}

/* As on one machine: squares are added in the order of runs. */
static shoal_status clip(const shoal_ranks *k, shoal_update *update, shoal_error *err) {
  shoal_status status = run_traffic(k, &k->squares_traffic, err);
  if (status != SHOAL_OK) return status;
  double squares = 0;
  for (size_t i = 0; i < k->shares.runs_count; i++) squares += k->squares[i];
  double norm = sqrt(squares);
  if (norm > k->recipe->clip) update->grad_scale = (float)(k->recipe->clip / norm);
  return SHOAL_OK;
}

static shoal_status apply_gradients(shoal_ranks *k, shoal_error *err) {
  float rate = shoal_trainer_rate(k->config.trainer);
  apply a = {.ranks = k, .update = shoal_optimizer_update(k->recipe, rate, k->state->step + 1)};
  uint32_t runs = (uint32_t)k->own.runs_count;
  shoal_status status = SHOAL_OK;
  if (k->recipe->clip <= 0) {
    shoal_pool_run(k->pool, runs, sum_and_update_task, &a);
  } else {
    shoal_pool_run(k->pool, runs, sum_task, &a);
    status = clip(k, &a.update, err);
    if (status == SHOAL_OK) shoal_pool_run(k->pool, runs, update_task, &a);
  }
  return status == SHOAL_OK ? run_traffic(k, &k->weights_traffic, err) : status;
}

static void begin_round(shoal_train_state *state) {
  if (state->round > 0) return;
  state->loss_sum = state->weight_sum = state->square_sum = 0;
  state->counted = state->correct = 0;
  if (state->carry != NULL) memset(state->carry, 0, state->carry_count * sizeof *state->carry);
}

static void end_round(shoal_train_state *state, const shoal_sums *sums, uint64_t rounds) {
  state->loss_sum += sums->loss;
  state->weight_sum += sums->weight;
  state->square_sum += sums->square;
  state->counted += sums->counted;
  state->correct += sums->correct;
  state->step++;
  if (++state->round == rounds) {
    state->round = 0;
    state->epoch++;
  }
}

static shoal_status take_round(shoal_ranks *k, shoal_result *out, shoal_error *err) {
  shoal_train_state *state = k->state;
  begin_round(state);
  compute(k);
  shoal_status status = run_traffic(k, &k->gradients_traffic, err);
  if (status != SHOAL_OK) return status;
  shoal_tree_add_sums(k->sums, k->shards, 1);
  *out = shoal_trainer_result(k->config.trainer, &k->sums[0]);
  if (!out->finite)
    return shoal_fail(err, SHOAL_INVALID,
                      "the loss is not a number in epoch %llu, round %llu; try a lower --rate or --clip 1",
                      (unsigned long long)state->epoch + 1, (unsigned long long)state->round + 1);
  status = apply_gradients(k, err);
  if (status == SHOAL_OK) end_round(state, &k->sums[0], shoal_trainer_rounds(k->config.trainer));
  return status;
}

/* ---- gathering ---- */

static shoal_status take_gather(shoal_ranks *k, shoal_error *err) {
  float *carry = k->carry;
  for (uint32_t v = k->parts_first; carry != NULL && v < k->parts_first + k->parts_count; v++)
    shoal_trainer_get_carry(k->config.trainer, v, carry + v * k->carry_floats);
  shoal_status status = run_traffic(k, &k->rest_traffic, err);
  if (status != SHOAL_OK || k->rank != 0) return status;
  for (uint32_t v = 0; carry != NULL && v < k->shards; v++)
    shoal_trainer_set_carry(k->config.trainer, v, carry + v * k->carry_floats);
  return SHOAL_OK;
}

/* ---- commands ---- */

static shoal_status lead(shoal_ranks *k, command what, shoal_error *err) {
  SHOAL_ASSERT(k->rank == 0 && !k->over);
  uint32_t number = what;
  return k->fabric->broadcast(k->fabric->self, &number, sizeof number, err);
}

static shoal_status next(void *self, shoal_result *out, shoal_error *err) {
  shoal_ranks *k = self;
  shoal_status status = lead(k, COMMAND_ROUND, err);
  if (status == SHOAL_OK) status = take_round(k, out, err);
  k->over = status != SHOAL_OK;
  return status;
}

static shoal_status gather(void *self, shoal_error *err) {
  shoal_ranks *k = self;
  shoal_status status = lead(k, COMMAND_GATHER, err);
  if (status == SHOAL_OK) status = take_gather(k, err);
  k->over = status != SHOAL_OK;
  return status;
}

shoal_rounds shoal_ranks_rounds(shoal_ranks *k) {
  SHOAL_ASSERT(k->rank == 0);
  return (shoal_rounds){.self = k, .next = next, .gather = gather};
}

shoal_status shoal_ranks_end(shoal_ranks *k, shoal_error *err) {
  if (k->over) return SHOAL_OK;
  shoal_status status = lead(k, COMMAND_END, err);
  k->over = true;
  return status;
}

shoal_status shoal_ranks_follow(shoal_ranks *k, shoal_error *err) {
  SHOAL_ASSERT(k->rank > 0);
  for (;;) {
    uint32_t what;
    shoal_result result;
    shoal_status status = k->fabric->broadcast(k->fabric->self, &what, sizeof what, err);
    if (status == SHOAL_OK && what == COMMAND_END) return SHOAL_OK;
    if (status == SHOAL_OK && what == COMMAND_ROUND) status = take_round(k, &result, err);
    if (status == SHOAL_OK && what == COMMAND_GATHER) status = take_gather(k, err);
    if (status != SHOAL_OK) return status;
  }
}
