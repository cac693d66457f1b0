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
 * the leaves of what is left of the tree, which the engine adds up. */
#include "cluster/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/hash.h"
#include "cluster/shares.h"
#include "nn/tree.h"

/* What rank 0 wants next. */
typedef enum command { COMMAND_ROUND, COMMAND_GATHER, COMMAND_END } command;

typedef struct pieces {
  shoal_piece *list;
  uint32_t count;
} pieces;

typedef struct traffic {
  pieces sends, receives;
} traffic;
enum { GRADIENTS, SQUARES, WEIGHTS, REST, TRAFFICS };

/* Shards first .. first + count - 1: a node of the tree that one rank has all of. */
typedef struct node {
  uint32_t first, count;
} node;

struct shoal_ranks {
  shoal_ranks_config config;
  const shoal_fabric *fabric;
  shoal_engine *engine;     /* the trainer's */
  shoal_train_state *state; /* the trainer's */
  uint32_t rank, size, shards;
  shoal_shares shares; /* a slice a rank */
  shoal_slice own;     /* this rank's */
  uint32_t parts_first, parts_count;
  node nodes[SHOAL_SHARDS_MAX];
  uint32_t nodes_count; /* own */
  uint32_t other_nodes_count;
  float *gradients[SHOAL_SHARDS_MAX]; /* one a part */
  float *sent[SHOAL_SHARDS_MAX];      /* the sums of own nodes, for other owners */
  float *sent_weights;                /* the own slice, for all others */
  float *received;                    /* a slice each */
  float *leaves
      [SHOAL_SHARDS_MAX]; /* of each node, at its first shard: the own slice, as if the whole vector were there */
  shoal_sums sums[SHOAL_SHARDS_MAX];
  size_t carry_floats;
  float *carry; /* of all shards, packed; NULL without */
  traffic traffic[TRAFFICS];
  shoal_arena memory; /* of the lists and of `carry` */
  bool over;          /* nobody listens any more */
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

static bool reserve_all(shoal_ranks *k) {
  size_t weights = k->state->weights_count, others = k->size, slots = 2;
  /* Zeros, since what lies between parameters is sent but never written. */
  for (uint32_t i = 0; i < k->parts_count; i++) k->gradients[i] = shoal_engine_take_zeros(k->engine, weights);
  for (uint32_t i = 0; k->size > 1 && i < k->nodes_count; i++)
    k->sent[i] = shoal_engine_take_zeros(k->engine, weights);
  if (k->size > 1) k->sent_weights = shoal_engine_take_zeros(k->engine, k->own.count);
  k->received = shoal_engine_take_zeros(k->engine, k->other_nodes_count * k->own.count);
  if (k->carry_floats > 0)
    k->carry = shoal_arena_array(&k->memory, k->shards * k->carry_floats, sizeof *k->carry);
  bool ok = k->carry_floats == 0 || k->carry != NULL;
  const size_t sends_max[] = {(k->nodes_count + 1) * others, others, others, slots + 1},
               receives_max[] = {k->shards + others, others, others, (slots + 1) * others};
  for (int i = 0; i < TRAFFICS; i++) {
    traffic *t = &k->traffic[i];
    t->sends.list = shoal_arena_array(&k->memory, sends_max[i], sizeof *t->sends.list);
    t->receives.list = shoal_arena_array(&k->memory, receives_max[i], sizeof *t->receives.list);
    ok &= t->sends.list != NULL && t->receives.list != NULL;
  }
  return ok && shoal_engine_has_memory(k->engine);
}

/* ---- lists ---- */

static void add(pieces *p, uint32_t rank, void *bytes, size_t length) {
  if (length > 0) p->list[p->count++] = (shoal_piece){rank, bytes, length};
}

/* A stretch of an array that all ranks have: its owner sends it, or a copy, and all others receive it. */
static void add_share(traffic *t, const shoal_ranks *k, uint32_t owner, void *bytes, void *copy,
                      size_t length) {
  if (owner != k->rank) add(&t->receives, owner, bytes, length);
  for (uint32_t rank = 0; owner == k->rank && rank < k->size; rank++)
    if (rank != owner) add(&t->sends, rank, copy, length);
}

/* A stretch of an array of rank 0's that another rank has. */
static void add_return(shoal_ranks *k, uint32_t owner, void *bytes, size_t length) {
  if (owner == 0) return;
  if (k->rank == owner) add(&k->traffic[REST].sends, 0, bytes, length);
  if (k->rank == 0) add(&k->traffic[REST].receives, owner, bytes, length);
}

/* Where the whole vector would begin of which this is the own slice. */
static float *whole(const shoal_ranks *k, float *slice) {
  return (float *)((uintptr_t)slice - k->own.offset * sizeof(float));
}

/* Between two ranks, nodes go in ascending order and losses last. */
static void list_gradients(shoal_ranks *k) {
  traffic *t = &k->traffic[GRADIENTS];
  size_t slice_bytes = k->own.count * sizeof(float);
  float *place = k->received;
  for (uint32_t n = 0; n < k->nodes_count; n++) {
    k->leaves[k->nodes[n].first] = k->gradients[k->nodes[n].first - k->parts_first];
    for (uint32_t owner = 0; owner < k->size; owner++)
      if (owner != k->rank)
        add(&t->sends, owner, k->sent[n] + k->shares.slices[owner].offset,
            k->shares.slices[owner].count * sizeof(float));
  }
  for (uint32_t rank = 0; rank < k->size; rank++) {
    node nodes[SHOAL_SHARDS_MAX];
    uint32_t count = rank == k->rank ? 0 : nodes_of(k, rank, nodes);
    for (uint32_t n = 0; n < count; n++) {
      k->leaves[nodes[n].first] = whole(k, place);
      add(&t->receives, rank, place, slice_bytes);
      place += k->own.count;
    }
    uint32_t first = first_shard(k, rank);
    add_share(t, k, rank, &k->sums[first], &k->sums[first],
              (first_shard(k, rank + 1) - first) * sizeof *k->sums);
  }
}

static void list_all(shoal_ranks *k) {
  float *slots[] = {k->state->slot1, k->state->slot2};
  list_gradients(k);
  for (uint32_t owner = 0; owner < k->size; owner++) {
    const shoal_slice *slice = &k->shares.slices[owner];
    double *squares = shoal_engine_squares(k->engine) + slice->first_run;
    add_share(&k->traffic[SQUARES], k, owner, squares, squares, slice->runs_count * sizeof *squares);
    add_share(&k->traffic[WEIGHTS], k, owner, k->state->weights + slice->offset, k->sent_weights,
              slice->count * sizeof(float));
    for (int i = 0; i < 2; i++)
      if (slots[i] != NULL) add_return(k, owner, slots[i] + slice->offset, slice->count * sizeof(float));
    uint32_t first = first_shard(k, owner), count = first_shard(k, owner + 1) - first;
    if (k->carry != NULL)
      add_return(k, owner, k->carry + first * k->carry_floats, count * k->carry_floats * sizeof(float));
  }
}

static shoal_status run_traffic(const shoal_ranks *k, const traffic *t, shoal_error *err) {
  if (t->sends.count + t->receives.count == 0) return SHOAL_OK;
  return k->fabric->exchange(k->fabric->self, t->sends.list, t->sends.count, t->receives.list,
                             t->receives.count, err);
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
  shoal_arena_init(&k->memory, SIZE_MAX);
  k->config = *config;
  k->fabric = config->fabric;
  k->engine = shoal_trainer_engine(config->trainer);
  k->state = shoal_trainer_state(config->trainer);
  k->rank = config->fabric->rank;
  k->size = config->fabric->size;
  k->shards = shoal_trainer_shards(config->trainer);
  k->carry_floats = shoal_trainer_carry_floats(config->trainer);
  SHOAL_ASSERT(k->rank < k->size);

  shoal_status status = cut(k);
  if (status == SHOAL_OK && !reserve_all(k)) status = SHOAL_NO_MEMORY;
  if (status != SHOAL_OK) {
    shoal_fail(err, status, "not enough memory for %u gradients of %zu weights", k->parts_count,
               config->graph->weights_count);
    shoal_ranks_destroy(k);
    return status;
  }
  list_all(k);
  *out = k;
  return SHOAL_OK;
}

void shoal_ranks_destroy(shoal_ranks *k) {
  if (k == NULL) return;
  shoal_shares_release(&k->shares);
  shoal_arena_release(&k->memory);
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

shoal_status shoal_ranks_start(shoal_ranks *k, shoal_error *err) {
  shoal_train_state *state = k->state, from = *state;
  float *const vectors[] = {state->weights, state->slot1, state->slot2, state->carry};
  shoal_status status = k->fabric->broadcast(k->fabric->self, &from, sizeof from, err);
  for (int i = 0; i < 4; i++) {
    size_t count = i < 3 ? state->weights_count : state->carry_count;
    if (status == SHOAL_OK && vectors[i] != NULL && count > 0)
      status = k->fabric->broadcast(k->fabric->self, vectors[i], count * sizeof(float), err);
  }
  k->over = status != SHOAL_OK;
  if (k->over) return status;
  SHOAL_ASSERT(from.weights_count == state->weights_count && from.carry_count == state->carry_count);
  state->epoch = from.epoch;
  state->round = from.round;
  state->step = from.step;
  state->sums = from.sums;
  return status;
}

/* ---- a round ---- */

/* Runs first .. end - 1 of an own node added up, and put where they are sent from unless they are this rank's. */
static void add_node(const shoal_ranks *k, uint32_t n, uint32_t first, uint32_t end, bool is_own) {
  float *const *parts = &k->gradients[k->nodes[n].first - k->parts_first];
  shoal_addends addends = {.first_run = first,
                           .runs_count = end - first,
                           .parts = parts,
                           .parts_count = k->nodes[n].count,
                           .total = parts[0],
                           .copy = is_own ? NULL : k->sent[n]};
  if (end > first) shoal_engine_add(k->engine, &addends);
}

static void compute(shoal_ranks *k) {
  uint32_t own = k->own.first_run, own_end = own + k->own.runs_count, runs = k->config.graph->runs_count;
  shoal_trainer_parts(k->config.trainer, NULL, k->config.source, k->state->epoch, k->state->round,
                      k->parts_first, k->parts_count, k->gradients, k->sums + k->parts_first);
  for (uint32_t n = 0; n < k->nodes_count; n++) {
    add_node(k, n, 0, own, false);
    add_node(k, n, own, own_end, true);
    add_node(k, n, own_end, runs, false);
  }
}

static shoal_status share_squares(void *self, shoal_error *err) {
  const shoal_ranks *k = self;
  return run_traffic(k, &k->traffic[SQUARES], err);
}

static shoal_status apply_gradients(shoal_ranks *k, shoal_error *err) {
  shoal_apply apply = shoal_trainer_apply(k->config.trainer);
  apply.addends = (shoal_addends){.first_run = k->own.first_run,
                                  .runs_count = k->own.runs_count,
                                  .parts = k->leaves,
                                  .parts_count = k->shards,
                                  .total = k->leaves[0],
                                  .copy = k->size > 1 ? whole(k, k->sent_weights) : NULL};
  apply.agree = share_squares;
  apply.self = k;
  shoal_status status = shoal_engine_apply(k->engine, &apply, err);
  return status == SHOAL_OK ? run_traffic(k, &k->traffic[WEIGHTS], err) : status;
}

static shoal_status take_round(shoal_ranks *k, shoal_result *out, shoal_error *err) {
  shoal_trainer *trainer = k->config.trainer;
  shoal_trainer_begin_round(trainer);
  compute(k);
  shoal_status status = run_traffic(k, &k->traffic[GRADIENTS], err);
  if (status != SHOAL_OK) return status;
  shoal_tree_add_sums(k->sums, k->shards, 1);
  status = shoal_trainer_judge_round(trainer, &k->sums[0], out, err);
  if (status == SHOAL_OK) status = apply_gradients(k, err);
  if (status == SHOAL_OK) shoal_trainer_end_round(trainer, &k->sums[0]);
  return status;
}

/* ---- gathering ---- */

static shoal_status take_gather(shoal_ranks *k, shoal_error *err) {
  float *carry = k->carry;
  for (uint32_t v = k->parts_first; carry != NULL && v < k->parts_first + k->parts_count; v++)
    shoal_trainer_get_carry(k->config.trainer, v, carry + v * k->carry_floats);
  shoal_status status = run_traffic(k, &k->traffic[REST], err);
  if (status != SHOAL_OK || k->rank != 0) return status;
  for (uint32_t v = 0; carry != NULL && v < k->shards; v++)
    shoal_trainer_set_carry(k->config.trainer, v, carry + v * k->carry_floats);
  return SHOAL_OK;
}

/* ---- commands ---- */

/* Does one's part of what rank 0 wants. */
static shoal_status obey(shoal_ranks *k, command what, shoal_result *out, shoal_error *err) {
  if (what == COMMAND_ROUND) return take_round(k, out, err);
  return what == COMMAND_GATHER ? take_gather(k, err) : SHOAL_OK;
}

static shoal_status lead(shoal_ranks *k, command what, shoal_result *out, shoal_error *err) {
  SHOAL_ASSERT(k->rank == 0 && !k->over);
  uint32_t number = what;
  shoal_status status = k->fabric->broadcast(k->fabric->self, &number, sizeof number, err);
  if (status == SHOAL_OK) status = obey(k, what, out, err);
  k->over = status != SHOAL_OK || what == COMMAND_END;
  return status;
}

static shoal_status next(void *self, shoal_result *out, shoal_error *err) {
  return lead(self, COMMAND_ROUND, out, err);
}

static shoal_status gather(void *self, shoal_error *err) { return lead(self, COMMAND_GATHER, NULL, err); }

shoal_rounds shoal_ranks_rounds(shoal_ranks *k) {
  SHOAL_ASSERT(k->rank == 0);
  return (shoal_rounds){.self = k, .next = next, .gather = gather};
}

shoal_status shoal_ranks_end(shoal_ranks *k, shoal_error *err) {
  return k->over ? SHOAL_OK : lead(k, COMMAND_END, NULL, err);
}

shoal_status shoal_ranks_follow(shoal_ranks *k, shoal_error *err) {
  SHOAL_ASSERT(k->rank > 0);
  for (;;) {
    uint32_t what;
    shoal_result result;
    shoal_status status = k->fabric->broadcast(k->fabric->self, &what, sizeof what, err);
    if (status == SHOAL_OK) status = obey(k, (command)what, &result, err);
    if (status != SHOAL_OK || what == COMMAND_END) return status;
  }
}
