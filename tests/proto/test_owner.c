/* Owners of slices: any number of them, with parts in any order and some twice, make the same
 * versions to the last bit as a trainer on one machine. */
#include "proto/chief.h"
#include "proto/owner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../nn/synthetic.h"
#include "check.h"
#include "nn/trainer.h"

enum { OWNERS_MAX = 4, BATCH = 40, SAMPLES = 100, CHIEF = 1000, WORKER = 1 };

static const char *const NETS[] = {
    "input 6\ndense 5 tanh\ndense 3\nloss cross-entropy\noptimizer momentum rate 0.1 momentum 0.9\nshards "
    "5\n",
    "input 6\ndense 40 relu\ndense 3\nloss cross-entropy\noptimizer adam rate 0.01\nclip 0.5\nl2 "
    "0.01\nshards 3\n",
    "input 2x8x8\nconv 3 3x3\nbatchnorm relu\ndense 3\nloss cross-entropy\noptimizer sgd rate 0.1\nshards "
    "2\n",
    "input 300\ndense 200 tanh\ndense 3\nloss cross-entropy\noptimizer nesterov rate 0.05 momentum 0.9\n"
    "schedule cosine\nshards 4\n",
};

/* One machine's trainer, and a second one that computes parts for owners. */
typedef struct cluster {
  shoal_model *model;
  shoal_graph *graph;
  shoal_trainer *alone, *worker;
  synthetic made_up;
  shoal_source source;
  uint32_t owners_count, shards;
  shoal_slice slices[OWNERS_MAX];
  shoal_owner *owners[OWNERS_MAX];
  uint64_t draws;
} cluster;

static uint32_t draw(cluster *c, uint32_t below) {
  return (uint32_t)shoal_random_below(shoal_key_make(5, SHOAL_FOR_TOY, 1, 2), c->draws++, below);
}

/* `guarded`, and the rule, "mean" as a rule. */
static void open_owners(cluster *c, const char *text, uint32_t owners, const char *mode_text, bool guarded,
                        const char *rule) {
  shoal_error err = {0};
  *c = (cluster){.owners_count = owners};
  if (shoal_model_parse(&c->model, "test", text, strlen(text), &err) != SHOAL_OK) fail_msg("%s", err.text);
  if (shoal_graph_create(&c->graph, c->model, &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_trainer_config config = {.graph = c->graph, .threads = 2, .batch = BATCH, .samples = SAMPLES};
  assert_int_equal(shoal_trainer_create(&c->alone, &config, &err), SHOAL_OK);
  assert_int_equal(shoal_trainer_create(&c->worker, &config, &err), SHOAL_OK);
  c->made_up = (synthetic){.graph = c->graph, .seed = 3};
  c->source = synthetic_source(&c->made_up, SAMPLES);
  c->shards = shoal_trainer_shards(c->worker);
  shoal_slices_cut(c->graph->runs, c->graph->runs_count, c->graph->weights_count, owners, c->slices);
  for (uint32_t s = 0; s < owners; s++) {
    shoal_owner_config owner = {.graph = c->graph,
                                .kernels = shoal_kernels_get(),
                                .slice = c->slices[s],
                                .slice_index = s,
                                .parts = c->shards,
                                .rounds = shoal_trainer_rounds(c->worker),
                                .guarded = guarded};
    assert_int_equal(shoal_rule_parse(rule, &owner.rule, &err), SHOAL_OK);
    assert_int_equal(shoal_mode_parse(mode_text, &owner.mode, &err), SHOAL_OK);
    assert_int_equal(shoal_owner_create(&c->owners[s], &owner, &err), SHOAL_OK);
    memcpy(shoal_owner_state_of(c->owners[s])->weights,
           shoal_trainer_state(c->alone)->weights + c->slices[s].offset, c->slices[s].count * sizeof(float));
  }
}

static void open_cluster(cluster *c, const char *text, uint32_t owners, const char *mode_text) {
  open_owners(c, text, owners, mode_text, false, "mean");
}

static void close_cluster(cluster *c) {
  for (uint32_t s = 0; s < c->owners_count; s++) shoal_owner_destroy(c->owners[s]);
  shoal_trainer_destroy(c->alone);
  shoal_trainer_destroy(c->worker);
  shoal_graph_destroy(c->graph);
  shoal_model_destroy(c->model);
}

static void push(cluster *c, uint64_t round, uint32_t shard, uint32_t s, const float *gradient) {
  shoal_blob *blob = shoal_blob_create(c->slices[s].count * sizeof(float));
  assert_non_null(blob);
  memcpy(shoal_blob_bytes(blob), gradient + c->slices[s].offset, c->slices[s].count * sizeof(float));
  shoal_message m = {
      .kind = SHOAL_MSG_PUSH, .round = round, .shard = shard, .count = 1, .slice = s, .payload = blob};
  shoal_owner_receive(c->owners[s], WORKER, &m);
}

static void introduce_chief(cluster *c) {
  for (uint32_t s = 0; s < c->owners_count; s++) {
    shoal_message m = {.kind = SHOAL_MSG_WELCOME};
    shoal_owner_receive(c->owners[s], CHIEF, &m);
  }
}

/* The next letter of an owner that is not news of its version. */
static shoal_letter next_letter(cluster *c, uint32_t s) {
  shoal_letter letter;
  do assert_true(shoal_outbox_take(shoal_owner_outbox(c->owners[s]), &letter));
  while (letter.message.kind == SHOAL_MSG_APPLIED);
  return letter;
}

/* The chief's half of clipping: adds the squares of all runs in order and answers each owner. */
static void clip(cluster *c, uint64_t round) {
  double squares = 0;
  for (uint32_t s = 0; s < c->owners_count; s++) {
    shoal_letter letter = next_letter(c, s);
    assert_int_equal(letter.message.kind, SHOAL_MSG_SQUARES);
    assert_int_equal(letter.message.round, round);
    const double *of_run = (const double *)(const void *)shoal_blob_bytes(letter.message.payload);
    for (size_t i = 0; i < c->slices[s].runs_count; i++) squares += of_run[i];
    shoal_message_release(&letter.message);
  }
  double norm = sqrt(squares), most = (double)c->model->recipe.clip;
  float scale = norm > most ? (float)(most / norm) : 1;
  for (uint32_t s = 0; s < c->owners_count; s++) {
    shoal_blob *blob = shoal_blob_create(sizeof scale);
    memcpy(shoal_blob_bytes(blob), &scale, sizeof scale);
    shoal_message m = {.kind = SHOAL_MSG_SCALE, .round = round, .payload = blob};
    shoal_owner_receive(c->owners[s], CHIEF, &m);
  }
}

/* Pulls a version from all owners into the worker's weights; they must have it. */
static void pull(cluster *c, uint64_t version) {
  for (uint32_t s = 0; s < c->owners_count; s++) {
    shoal_message ask = {.kind = SHOAL_MSG_PULL, .version = version, .slice = s};
    shoal_owner_receive(c->owners[s], WORKER, &ask);
    shoal_letter letter = next_letter(c, s);
    assert_int_equal(letter.peer, WORKER);
    assert_int_equal(letter.message.kind, SHOAL_MSG_WEIGHTS);
    assert_int_equal(letter.message.version, version);
    assert_int_equal(shoal_blob_length(letter.message.payload), c->slices[s].count * sizeof(float));
    memcpy(shoal_trainer_state(c->worker)->weights + c->slices[s].offset,
           shoal_blob_bytes(letter.message.payload), c->slices[s].count * sizeof(float));
    shoal_message_release(&letter.message);
  }
}

/* One round through the owners: parts computed and pushed in a random order, some twice. */
static void round_through_owners(cluster *c, uint64_t round, float **gradients) {
  uint64_t rounds = shoal_trainer_rounds(c->worker);
  pull(c, round);
  shoal_sums sums[SHOAL_SHARDS_MAX];
  uint32_t order[SHOAL_SHARDS_MAX * OWNERS_MAX], count = 0;
  for (uint32_t v = 0; v < c->shards; v++)
    for (uint32_t s = 0; s < c->owners_count; s++) order[count++] = v * OWNERS_MAX + s;
  shoal_trainer_parts(c->worker, NULL, &c->source, round / rounds, round % rounds, 0, c->shards, gradients,
                      sums);
  for (uint32_t i = count; i > 1; i--) {
    uint32_t j = draw(c, i), swap = order[i - 1];
    order[i - 1] = order[j];
    order[j] = swap;
  }
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t times = 1 + (draw(c, 4) == 0); times > 0; times--)
      push(c, round, order[i] / OWNERS_MAX, order[i] % OWNERS_MAX, gradients[order[i] / OWNERS_MAX]);
  if (c->model->recipe.clip > 0) clip(c, round);
}

static void any_number_of_owners_equals_one_machine(void **state) {
  (void)state;
  for (size_t n = 0; n < sizeof NETS / sizeof NETS[0]; n++)
    for (uint32_t owners = 1; owners <= OWNERS_MAX; owners++) {
      cluster c;
      open_cluster(&c, NETS[n], owners, "sync");
      introduce_chief(&c);
      float *gradients[SHOAL_SHARDS_MAX];
      for (uint32_t v = 0; v < c.shards; v++) gradients[v] = calloc(c.graph->weights_count, sizeof(float));
      for (uint64_t round = 0; round < 7; round++) { /* more than two epochs of three rounds */
        shoal_result result;
        shoal_error err;
        assert_int_equal(shoal_trainer_round(c.alone, &c.source, &result, &err), SHOAL_OK);
        round_through_owners(&c, round, gradients);
      }
      pull(&c, 7);
      const float *got = shoal_trainer_state(c.worker)->weights,
                  *want = shoal_trainer_state(c.alone)->weights;
      assert_memory_equal(got, want, c.graph->weights_count * sizeof(float));
      for (uint32_t v = 0; v < c.shards; v++) free(gradients[v]);
      close_cluster(&c);
    }
}

static uint32_t letters(shoal_owner *owner) {
  uint32_t count = 0;
  shoal_letter letter;
  while (shoal_outbox_take(shoal_owner_outbox(owner), &letter)) {
    shoal_message_release(&letter.message);
    count++;
  }
  return count;
}

static void a_pull_waits_for_its_version(void **state) {
  (void)state;
  cluster c;
  open_cluster(&c, NETS[0], 1, "sync");
  float *gradient = calloc(c.graph->weights_count, sizeof *gradient);
  shoal_message ask = {.kind = SHOAL_MSG_PULL, .version = 1}, other = ask;
  shoal_owner_receive(c.owners[0], WORKER, &ask);
  shoal_owner_receive(c.owners[0], WORKER + 1, &other);
  shoal_owner_gone(c.owners[0], WORKER + 1);
  for (uint32_t v = 0; v < c.shards; v++) {
    assert_int_equal(letters(c.owners[0]), 0);
    push(&c, 0, v, 0, gradient);
  }
  assert_int_equal(letters(c.owners[0]), 1);
  assert_int_equal(shoal_owner_state_of(c.owners[0])->version, 1);
  free(gradient);
  close_cluster(&c);
}

/* Who asks again is answered once, with what it asked for last: pulls that wait are no more than peers. */
static void a_pull_that_comes_twice_is_answered_once(void **state) {
  (void)state;
  cluster c;
  open_cluster(&c, NETS[0], 1, "sync");
  float *gradient = calloc(c.graph->weights_count, sizeof *gradient);
  for (int i = 0; i < 1000; i++) {
    shoal_message ask = {.kind = SHOAL_MSG_PULL, .version = 1};
    shoal_owner_receive(c.owners[0], WORKER, &ask);
  }
  for (uint32_t v = 0; v < c.shards; v++) push(&c, 0, v, 0, gradient);
  assert_int_equal(letters(c.owners[0]), 1);
  free(gradient);
  close_cluster(&c);
}

/* What is not for this owner, this round or this generation changes nothing. */
static void strange_pushes_are_dropped(void **state) {
  (void)state;
  cluster c;
  open_cluster(&c, NETS[0], 2, "sync");
  float *gradient = calloc(c.graph->weights_count, sizeof *gradient);
  shoal_owner *owner = c.owners[0];
  size_t bytes = c.slices[0].count * sizeof(float);
  const shoal_message strange[] = {
      {.kind = SHOAL_MSG_PUSH, .count = 1, .round = 1, .payload = shoal_blob_create(bytes)},
      {.kind = SHOAL_MSG_PUSH, .count = 1, .round = UINT64_MAX, .payload = shoal_blob_create(bytes)},
      {.kind = SHOAL_MSG_PUSH, .count = 1, .shard = c.shards, .payload = shoal_blob_create(bytes)},
      {.kind = SHOAL_MSG_PUSH, .count = 1, .slice = 1, .payload = shoal_blob_create(bytes)},
      {.kind = SHOAL_MSG_PUSH, .count = 1, .generation = 1, .payload = shoal_blob_create(bytes)},
      {.kind = SHOAL_MSG_PUSH, .count = 1, .payload = shoal_blob_create(bytes - 4)},
      {.kind = SHOAL_MSG_PUSH, .count = 1, .payload = NULL},
      {.kind = SHOAL_MSG_PUSH, .payload = shoal_blob_create(bytes)},
      {.kind = SHOAL_MSG_PUSH, .count = 2, .shard = 1, .payload = shoal_blob_create(bytes)}, /* no node */
      {.kind = SHOAL_MSG_PUSH, .count = 1, .format = SHOAL_WIRE_INT8, .payload = shoal_blob_create(3)},
      {.kind = SHOAL_MSG_HELLO, .payload = NULL},
  };
  for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
    shoal_message m = strange[i];
    shoal_owner_receive(owner, WORKER, &m);
  }
  for (uint32_t v = 0; v + 1 < c.shards; v++) push(&c, 0, v, 0, gradient);
  assert_int_equal(shoal_owner_state_of(owner)->version, 0);
  push(&c, 0, c.shards - 1, 0, gradient);
  assert_int_equal(shoal_owner_state_of(owner)->version, 1);
  free(gradient);
  close_cluster(&c);
}

static void a_version_is_saved_and_brought_back(void **state) {
  (void)state;
  cluster c;
  open_cluster(&c, NETS[0], 1, "sync");
  shoal_owner *owner = c.owners[0];
  shoal_owner_state *now = shoal_owner_state_of(owner);
  size_t bytes = c.slices[0].count * sizeof(float);
  float *gradient = calloc(c.graph->weights_count, sizeof *gradient);
  float *weights = malloc(bytes), *slot = malloc(bytes);
  for (size_t i = 0; i < c.graph->weights_count; i++) gradient[i] = 1;

  introduce_chief(&c);
  letters(owner);
  shoal_message save = {.kind = SHOAL_MSG_SAVE, .version = 1};
  shoal_owner_receive(owner, CHIEF, &save);
  for (uint32_t v = 0; v < c.shards; v++) push(&c, 0, v, 0, gradient);
  assert_true(shoal_owner_save(owner));
  memcpy(weights, now->weights, bytes);
  memcpy(slot, now->slot1, bytes);
  for (uint32_t v = 0; v < c.shards; v++) push(&c, 1, v, 0, gradient); /* waits until it is safe */
  assert_int_equal(now->version, 1);
  shoal_owner_saved(owner);
  assert_int_equal(now->version, 2);
  assert_int_equal(letters(owner), 3); /* came to 1, saved it, came to 2 */

  save = (shoal_message){.kind = SHOAL_MSG_SAVE, .version = 2}; /* no room for this one, twice */
  for (int tries = 0; tries < 2; tries++) {
    shoal_letter letter;
    shoal_message again = save;
    shoal_owner_receive(owner, CHIEF, &again);
    assert_true(shoal_owner_save(owner));
    shoal_owner_not_saved(owner, "no room");
    assert_false(shoal_owner_save(owner));
    assert_true(shoal_outbox_take(shoal_owner_outbox(owner), &letter));
    assert_int_equal(letter.message.kind, SHOAL_MSG_SAVED);
    assert_int_equal(letter.message.count, SHOAL_SAVED_NOT);
    assert_memory_equal(shoal_blob_bytes(letter.message.payload), "no room", 7);
    shoal_message_release(&letter.message);
  }

  uint64_t version;
  shoal_message forged = {.kind = SHOAL_MSG_RESTORE, .version = 0, .generation = 9}; /* by a worker */
  shoal_owner_receive(owner, WORKER, &forged);
  assert_false(shoal_owner_restore(owner, &version));
  shoal_message restore = {.kind = SHOAL_MSG_RESTORE, .version = 1, .generation = 1};
  shoal_owner_receive(owner, CHIEF, &restore);
  assert_true(shoal_owner_restore(owner, &version));
  assert_int_equal(version, 1);
  memcpy(now->weights, weights, bytes);
  memcpy(now->slot1, slot, bytes);
  now->version = version;
  shoal_owner_restored(owner, true);
  assert_int_equal(shoal_owner_generation(owner), 1);
  for (uint32_t v = 0; v < c.shards; v++) push(&c, 1, v, 0, gradient); /* of the old generation */
  assert_int_equal(now->version, 1);
  free(weights);
  free(slot);
  free(gradient);
  close_cluster(&c);
}

static void stale_rounds_overlap_within_their_window(void **state) {
  (void)state;
  cluster c;
  open_cluster(&c, NETS[0], 1, "stale:2");
  float *gradient = calloc(c.graph->weights_count, sizeof *gradient);
  for (uint64_t round = 3; round > 0; round--) /* round 3 is beyond the window and dropped */
    for (uint32_t v = 0; v < c.shards; v++) push(&c, round, v, 0, gradient);
  assert_int_equal(shoal_owner_state_of(c.owners[0])->version, 0);
  for (uint32_t v = 0; v < c.shards; v++) push(&c, 0, v, 0, gradient);
  assert_int_equal(shoal_owner_state_of(c.owners[0])->version, 3);
  free(gradient);
  close_cluster(&c);
}

/* A whole batch's contribution in async mode, computed from `version`. */
static void push_late(cluster *c, uint64_t round, uint64_t version, const float *gradient) {
  shoal_message m = {.kind = SHOAL_MSG_PUSH,
                     .round = round,
                     .version = version,
                     .count = c->shards,
                     .payload = shoal_blob_of(gradient, c->slices[0].count * sizeof(float))};
  shoal_owner_receive(c->owners[0], WORKER, &m);
}

/* Contributions that come late are applied to weights that momentum has moved on; who asks gets them
 * as they will be then. In the first epoch they count for less. */
static void async_weights_look_ahead_by_the_lag(void **state) {
  (void)state;
  cluster c;
  open_cluster(&c, NETS[0], 1, "async");
  shoal_owner *owner = c.owners[0];
  const shoal_owner_state *now = shoal_owner_state_of(owner);
  size_t count = c.slices[0].count, trainable = c.graph->runs[0].count;
  float *gradient = calloc(count, sizeof *gradient), *before = malloc(count * sizeof *before);
  for (size_t i = 0; i < count; i++) gradient[i] = 1;
  memcpy(before, now->weights, count * sizeof *before);
  push_late(&c, 0, 0, gradient); /* not late at all */
  for (size_t i = 0; i < trainable; i++) assert_true(now->weights[i] == before[i] - 0.1f * 1);
  push_late(&c, 0, 0, gradient); /* the same again: dropped */
  assert_int_equal(now->version, 1);
  for (uint64_t round = 1; round < 60; round++) push_late(&c, round, round - 1, gradient); /* one late */
  assert_int_equal(now->version, 60);
  letters(owner);
  shoal_message ask = {.kind = SHOAL_MSG_PULL, .version = 60};
  shoal_owner_receive(owner, WORKER, &ask);
  shoal_letter letter = next_letter(&c, 0);
  const float *got = (const float *)(const void *)shoal_blob_bytes(letter.message.payload);
  for (size_t i = 0; i < trainable; i++) {
    double ahead = ((double)now->weights[i] - (double)got[i]) / (0.1 * (double)now->slot1[i]);
    assert_true(ahead > 1.2 && ahead < 1.35); /* 1.3 times the lag of one */
  }
  shoal_message_release(&letter.message);
  free(gradient);
  free(before);
  close_cluster(&c);
}

static void pull_slots(cluster *c, uint64_t peer) {
  shoal_message ask = {.kind = SHOAL_MSG_PULL, .count = 1};
  shoal_owner_receive(c->owners[0], peer, &ask);
}

/* Each answer is a copy of everything: whoever likes could ask until there is no memory left. */
static void slots_are_only_for_the_chief(void **state) {
  (void)state;
  cluster c;
  open_cluster(&c, NETS[0], 1, "sync");
  for (int i = 0; i < 1000; i++) pull_slots(&c, WORKER);
  assert_int_equal(letters(c.owners[0]), 0);
  pull_slots(&c, CHIEF); /* before its WELCOME, which is on its way */
  assert_int_equal(letters(c.owners[0]), 0);
  introduce_chief(&c);
  shoal_letter letter = next_letter(&c, 0);
  assert_int_equal(letter.peer, CHIEF);
  assert_int_equal(letter.message.kind, SHOAL_MSG_WEIGHTS);
  assert_int_equal(shoal_blob_length(letter.message.payload), 2 * c.slices[0].count * sizeof(float));
  shoal_message_release(&letter.message);
  pull_slots(&c, CHIEF);
  pull_slots(&c, WORKER);
  assert_int_equal(letters(c.owners[0]), 1);
  close_cluster(&c);
}

static bool is_saved_at_once(cluster *c, uint64_t version, uint32_t *missed) {
  shoal_message save = {.kind = SHOAL_MSG_SAVE, .version = version};
  shoal_owner_receive(c->owners[0], CHIEF, &save);
  shoal_letter letter;
  if (!shoal_outbox_take(shoal_owner_outbox(c->owners[0]), &letter)) return false;
  assert_int_equal(letter.message.kind, SHOAL_MSG_SAVED);
  assert_int_equal(letter.message.version, version);
  *missed = letter.message.count;
  return true;
}

/* While it wrote, the chief took its silence for death: the answer was lost with the connection. */
static void a_version_that_is_kept_is_not_written_again(void **state) {
  (void)state;
  cluster c;
  open_cluster(&c, NETS[0], 1, "sync");
  float *gradient = calloc(c.graph->weights_count, sizeof *gradient);
  uint32_t missed;
  introduce_chief(&c);
  letters(c.owners[0]);
  assert_false(is_saved_at_once(&c, 0, &missed));
  assert_true(shoal_owner_save(c.owners[0]));
  assert_false(is_saved_at_once(&c, 0, &missed)); /* it is at it: there will be one answer */
  shoal_owner_saved(c.owners[0]);
  assert_int_equal(letters(c.owners[0]), 1);
  shoal_owner_gone(c.owners[0], CHIEF);
  introduce_chief(&c);
  letters(c.owners[0]);
  assert_true(is_saved_at_once(&c, 0, &missed));
  assert_int_equal(missed, 0);
  assert_false(shoal_owner_save(c.owners[0]));
  for (uint32_t v = 0; v < c.shards; v++) push(&c, 0, v, 0, gradient);
  letters(c.owners[0]);
  assert_true(is_saved_at_once(&c, 0, &missed)); /* it is still on disk */
  assert_int_equal(missed, 0);
  assert_false(is_saved_at_once(&c, 1, &missed)); /* another version */
  assert_true(shoal_owner_save(c.owners[0]));
  shoal_owner_saved(c.owners[0]);
  letters(c.owners[0]);
  assert_true(is_saved_at_once(&c, 0, &missed)); /* and now it may be gone */
  assert_int_equal(missed, 1);
  free(gradient);
  close_cluster(&c);
}

/* ---- guarded ---- */

static void push_under(cluster *c, uint64_t peer, uint64_t lease, uint32_t shard, float value) {
  size_t count = c->slices[0].count;
  shoal_blob *blob = shoal_blob_create(count * sizeof(float));
  assert_non_null(blob);
  for (size_t i = 0; i < count; i++) ((float *)(void *)shoal_blob_bytes(blob))[i] = value;
  shoal_message m = {.kind = SHOAL_MSG_PUSH, .lease = lease, .shard = shard, .count = 1, .payload = blob};
  shoal_owner_receive(c->owners[0], peer, &m);
}

static void order(cluster *c, uint64_t from, shoal_message_kind kind, uint64_t lease) {
  shoal_message m = {.kind = kind, .lease = lease};
  shoal_owner_receive(c->owners[0], from, &m);
}

/* What the chief is told of a contribution: its sum of squares; -1: nothing. */
static double told_squares(cluster *c, uint64_t lease) {
  shoal_letter letter;
  double squares = -1;
  while (shoal_outbox_take(shoal_owner_outbox(c->owners[0]), &letter)) {
    if (letter.message.kind == SHOAL_MSG_GOT && letter.message.lease == lease && letter.peer == CHIEF)
      memcpy(&squares, shoal_blob_bytes(letter.message.payload), sizeof squares);
    shoal_message_release(&letter.message);
  }
  return squares;
}

static void a_guarded_contribution_counts_when_the_chief_says_so(void **state) {
  (void)state;
  cluster c;
  open_owners(&c, NETS[0], 1, "sync", true, "mean");
  const shoal_owner_state *now = shoal_owner_state_of(c.owners[0]);
  introduce_chief(&c);
  letters(c.owners[0]);
  for (uint32_t v = 0; v < c.shards; v++) push_under(&c, WORKER, 0, v, 1); /* without a lease: never */
  assert_int_equal(letters(c.owners[0]), 0);
  push_under(&c, WORKER + 1, 99, 0, 7); /* a lie */
  assert_true(told_squares(&c, 99) > 0);
  push_under(&c, WORKER + 1, 98, 0, NAN);
  assert_true(isnan(told_squares(&c, 98)));
  order(&c, CHIEF, SHOAL_MSG_REJECT, 99);
  order(&c, CHIEF, SHOAL_MSG_ACCEPT, 98); /* NAN is never applied, whoever says so */
  for (uint32_t v = 0; v < c.shards; v++) push_under(&c, WORKER, 10 + v, v, 1);
  order(&c, WORKER, SHOAL_MSG_ACCEPT, 10); /* by a worker */
  for (uint32_t v = 1; v < c.shards; v++) order(&c, CHIEF, SHOAL_MSG_ACCEPT, 10 + v);
  assert_int_equal(now->version, 0);
  order(&c, CHIEF, SHOAL_MSG_ACCEPT, 10);
  assert_int_equal(now->version, 1);
  cluster free_one;
  open_cluster(&free_one, NETS[0], 1, "sync");
  float *gradient = malloc(c.graph->weights_count * sizeof *gradient);
  for (size_t i = 0; i < c.graph->weights_count; i++) gradient[i] = 1;
  for (uint32_t v = 0; v < c.shards; v++) push(&free_one, 0, v, 0, gradient);
  assert_memory_equal(now->weights, shoal_owner_state_of(free_one.owners[0])->weights,
                      c.slices[0].count * sizeof(float));
  free(gradient);
  close_cluster(&free_one);
  close_cluster(&c);
}

/* One peer cannot fill the memory, and a chief that was away is told again. */
static void held_contributions_are_bounded_and_told_again(void **state) {
  (void)state;
  cluster c;
  open_owners(&c, NETS[0], 1, "sync", true, "mean");
  for (uint64_t lease = 1; lease <= 100; lease++) push_under(&c, WORKER, lease, 0, 1);
  assert_int_equal(letters(c.owners[0]), 0);
  introduce_chief(&c);
  assert_int_equal(letters(c.owners[0]), 1 + 8); /* where it is, and what it holds */
  close_cluster(&c);
}

static void a_rule_takes_the_place_of_the_sum(void **state) {
  (void)state;
  cluster c, same;
  open_owners(&c, NETS[0], 1, "sync", false, "median");
  open_cluster(&same, NETS[0], 1, "sync");
  size_t count = c.graph->weights_count;
  float *gradient = malloc(count * sizeof *gradient);
  for (uint32_t v = 0; v < c.shards; v++) { /* two of five lie */
    for (size_t i = 0; i < count; i++) gradient[i] = v < 2 ? -6 : 1;
    push(&c, 0, v, 0, gradient);
    for (size_t i = 0; i < count; i++) gradient[i] = 1;
    push(&same, 0, v, 0, gradient);
  }
  assert_int_equal(shoal_owner_state_of(c.owners[0])->version, 1);
  assert_memory_equal(shoal_owner_state_of(c.owners[0])->weights,
                      shoal_owner_state_of(same.owners[0])->weights, c.slices[0].count * sizeof(float));
  free(gradient);
  close_cluster(&c);
  close_cluster(&same);
}

/* The leases of contributions that were not used as they were go to the chief with APPLIED. */
static void what_a_rule_leaves_out_is_told_by_lease(void **state) {
  (void)state;
  cluster c;
  open_owners(&c, NETS[0], 1, "sync", true, "multi-krum:1");
  introduce_chief(&c);
  letters(c.owners[0]);
  for (uint32_t v = 0; v < c.shards; v++) push_under(&c, WORKER, 10 + v, v, v == 3 ? 5 : 1);
  for (uint32_t v = 0; v < c.shards; v++) order(&c, CHIEF, SHOAL_MSG_ACCEPT, 10 + v);
  shoal_letter letter;
  size_t told = 0;
  bool found = false;
  while (shoal_outbox_take(shoal_owner_outbox(c.owners[0]), &letter)) {
    if (letter.message.kind == SHOAL_MSG_APPLIED && letter.message.payload != NULL) {
      told = shoal_blob_length(letter.message.payload) / 8;
      for (size_t i = 0; i < told; i++) {
        uint64_t lease;
        memcpy(&lease, shoal_blob_bytes(letter.message.payload) + 8 * i, 8);
        found |= lease == 13;
      }
    }
    shoal_message_release(&letter.message);
  }
  assert_true(found);
  assert_int_equal(told, 3); /* of five, the best two are taken */
  close_cluster(&c);
}

static void the_chief_says_which_versions_stay(void **state) {
  (void)state;
  cluster c;
  uint64_t keeps[SHOAL_OWNER_KEEPS_MAX];
  open_cluster(&c, NETS[0], 1, "sync");
  introduce_chief(&c);
  shoal_message plain = {.kind = SHOAL_MSG_SAVE, .version = 9, .round = 4};
  shoal_owner_receive(c.owners[0], CHIEF, &plain);
  assert_int_equal(shoal_owner_keeps(c.owners[0], keeps), 2);
  assert_int_equal(keeps[0], 4);
  const uint64_t ring[] = {2, 3, 7, 8, 9, 10, 11, 12, 13, 14};
  shoal_message save = {
      .kind = SHOAL_MSG_SAVE, .version = 20, .round = 8, .payload = shoal_blob_of(ring, 32)};
  shoal_owner_receive(c.owners[0], CHIEF, &save);
  assert_int_equal(shoal_owner_keeps(c.owners[0], keeps), 5);
  assert_int_equal(keeps[3], 8);
  shoal_message much = {.kind = SHOAL_MSG_SAVE, .version = 21, .payload = shoal_blob_of(ring, sizeof ring)};
  shoal_owner_receive(c.owners[0], CHIEF, &much);
  assert_int_equal(shoal_owner_keeps(c.owners[0], keeps), SHOAL_OWNER_KEEPS_MAX);
  close_cluster(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(async_weights_look_ahead_by_the_lag),
      cmocka_unit_test(any_number_of_owners_equals_one_machine),
      cmocka_unit_test(a_pull_waits_for_its_version),
      cmocka_unit_test(a_pull_that_comes_twice_is_answered_once),
      cmocka_unit_test(strange_pushes_are_dropped),
      cmocka_unit_test(a_version_is_saved_and_brought_back),
      cmocka_unit_test(stale_rounds_overlap_within_their_window),
      cmocka_unit_test(slots_are_only_for_the_chief),
      cmocka_unit_test(a_version_that_is_kept_is_not_written_again),
      cmocka_unit_test(a_guarded_contribution_counts_when_the_chief_says_so),
      cmocka_unit_test(held_contributions_are_bounded_and_told_again),
      cmocka_unit_test(a_rule_takes_the_place_of_the_sum),
      cmocka_unit_test(what_a_rule_leaves_out_is_told_by_lease),
      cmocka_unit_test(the_chief_says_which_versions_stay),
  };
  return RUN_TESTS(tests);
}
