/* Ranks: any number of them gives the bits of one machine, from any state, and a failure of one is
 * the end of all, in order. */
#include <stdio.h>

#include "../nn/synthetic.h"
#include "check.h"
#include "cluster/ranks.h"
#include "fabric_threads.h"

enum { RANKS_MAX = 7, EPOCHS = 2 };

typedef struct bench {
  shoal_model *model;
  shoal_graph *graph;
  shoal_trainer *trainer;
  shoal_train_state *state;
  synthetic made_up;
  shoal_source source;
} bench;

static void open_bench(bench *b, const char *text, uint32_t threads, uint32_t batch, uint64_t samples) {
  shoal_error err = {0};
  if (shoal_model_parse(&b->model, "test", text, strlen(text), &err) != SHOAL_OK) fail_msg("%s", err.text);
  if (shoal_graph_create(&b->graph, b->model, &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_trainer_config config = {.graph = b->graph, .threads = threads, .batch = batch, .samples = samples};
  if (shoal_trainer_create(&b->trainer, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
  b->state = shoal_trainer_state(b->trainer);
  b->made_up = (synthetic){.graph = b->graph, .seed = 11};
  b->source = synthetic_source(&b->made_up, samples);
}

static void close_bench(bench *b) {
  shoal_trainer_destroy(b->trainer);
  shoal_graph_destroy(b->graph);
  shoal_model_destroy(b->model);
}

static void same_floats(const float *a, const float *b, size_t count, const char *what) {
  if (a == NULL || b == NULL) {
    assert_true(a == b);
    return;
  }
  for (size_t i = 0; i < count; i++)
    if (memcmp(&a[i], &b[i], sizeof a[i]) != 0)
      fail_msg("%s: number %zu of %zu is %.9g and not %.9g", what, i, count, (double)a[i], (double)b[i]);
}

static void same_state(const shoal_train_state *a, const shoal_train_state *b) {
  assert_int_equal(a->epoch, b->epoch);
  assert_int_equal(a->round, b->round);
  assert_int_equal(a->step, b->step);
  assert_int_equal(a->sums.counted, b->sums.counted);
  assert_int_equal(a->sums.correct, b->sums.correct);
  assert_true(a->sums.loss == b->sums.loss && a->sums.weight == b->sums.weight &&
              a->sums.square == b->sums.square);
  same_floats(a->weights, b->weights, a->weights_count, "weights");
  same_floats(a->slot1, b->slot1, a->weights_count, "the first slot");
  same_floats(a->slot2, b->slot2, a->weights_count, "the second slot");
  same_floats(a->carry, b->carry, a->carry_count, "recurrent state");
}

static void copy_state(shoal_train_state *to, const shoal_train_state *from) {
  shoal_train_state kept = *to;
  *to = *from;
  to->weights = kept.weights;
  to->slot1 = kept.slot1;
  to->slot2 = kept.slot2;
  to->carry = kept.carry;
  size_t bytes = to->weights_count * sizeof(float);
  memcpy(to->weights, from->weights, bytes);
  if (to->slot1 != NULL) memcpy(to->slot1, from->slot1, bytes);
  if (to->slot2 != NULL) memcpy(to->slot2, from->slot2, bytes);
  if (to->carry != NULL) memcpy(to->carry, from->carry, to->carry_count * sizeof(float));
}

/* ---- a world of ranks ---- */

typedef struct member {
  struct world *world;
  bench bench;
  shoal_fabric fabric;
  shoal_ranks *ranks;
  shoal_status status;
  shoal_error err;
  pthread_t thread;
} member;

typedef struct world {
  threads_world threads;
  uint32_t size;
  member members[RANKS_MAX];
} world;

static void open_world(world *w, uint32_t size, const char *text, uint32_t batch, uint64_t samples) {
  memset(w, 0, sizeof *w);
  threads_init(&w->threads, size);
  w->size = size;
  for (uint32_t i = 0; i < size; i++) {
    member *m = &w->members[i];
    m->world = w;
    m->fabric = threads_fabric(&w->threads, i);
    open_bench(&m->bench, text, 1 + i % 2, batch, samples);
    shoal_ranks_config config = {.graph = m->bench.graph,
                                 .trainer = m->bench.trainer,
                                 .source = &m->bench.source,
                                 .fabric = &m->fabric};
    if (shoal_ranks_create(&m->ranks, &config, &m->err) != SHOAL_OK) fail_msg("%s", m->err.text);
  }
}

static void *follow(void *self) {
  member *m = self;
  m->status = shoal_ranks_start(m->ranks, &m->err);
  if (m->status == SHOAL_OK) m->status = shoal_ranks_follow(m->ranks, &m->err);
  return NULL;
}

static void start_followers(world *w) {
  for (uint32_t i = 1; i < w->size; i++)
    assert_int_equal(pthread_create(&w->members[i].thread, NULL, follow, &w->members[i]), 0);
}

static void join_followers(world *w) {
  for (uint32_t i = 1; i < w->size; i++) pthread_join(w->members[i].thread, NULL);
}

static void close_world(world *w) {
  for (uint32_t i = 0; i < w->size; i++) {
    shoal_ranks_destroy(w->members[i].ranks);
    close_bench(&w->members[i].bench);
  }
  threads_release(&w->threads);
}

/* ---- the same bits ---- */

/* Rounds one after the other, here and on one machine; what is at rank 0 is compared after every
 * `gather_every` of them. */
static void train_beside(world *w, bench *alone, uint32_t rounds, uint32_t gather_every) {
  shoal_rounds driver = shoal_ranks_rounds(w->members[0].ranks);
  for (uint32_t i = 1; i <= rounds; i++) {
    shoal_result expected, got;
    shoal_error err = {0};
    assert_int_equal(shoal_trainer_round(alone->trainer, &alone->source, &expected, &err), SHOAL_OK);
    if (driver.next(driver.self, &got, &err) != SHOAL_OK) fail_msg("%s", err.text);
    assert_true(got.loss == expected.loss && got.answers == expected.answers);
    if (i % gather_every != 0 && i != rounds) continue;
    if (driver.gather(driver.self, &err) != SHOAL_OK) fail_msg("%s", err.text);
    same_state(w->members[0].bench.state, alone->state);
  }
}

static void compare(const char *text, uint32_t ranks, uint32_t batch, uint64_t samples, uint32_t before) {
  bench alone = {0};
  open_bench(&alone, text, 2, batch, samples);
  shoal_result result;
  shoal_error err = {0};
  for (uint32_t i = 0; i < before; i++)
    assert_int_equal(shoal_trainer_round(alone.trainer, &alone.source, &result, &err), SHOAL_OK);

  static world w;
  open_world(&w, ranks, text, batch, samples);
  copy_state(w.members[0].bench.state, alone.state);
  start_followers(&w);
  member *leader = &w.members[0];
  assert_int_equal(shoal_ranks_start(leader->ranks, &err), SHOAL_OK);
  train_beside(&w, &alone, EPOCHS * (uint32_t)shoal_trainer_rounds(alone.trainer), 2);
  assert_int_equal(shoal_ranks_end(leader->ranks, &err), SHOAL_OK);
  join_followers(&w);
  for (uint32_t i = 1; i < ranks; i++) {
    assert_int_equal(w.members[i].status, SHOAL_OK);
    assert_int_equal(w.members[i].bench.state->step, alone.state->step);
    same_floats(w.members[i].bench.state->weights, alone.state->weights, alone.state->weights_count,
                "a follower's weights");
  }
  close_world(&w);
  close_bench(&alone);
}

/* Batches whose last round of an epoch is short, so that shards are, or are empty. */
static void compare_all(const char *text, uint32_t batch, uint64_t samples) {
  for (uint32_t ranks = 1; ranks <= RANKS_MAX; ranks++) compare(text, ranks, batch, samples, 0);
}

static void dense_networks_are_the_same_on_any_number_of_ranks(void **unused) {
  (void)unused;
  compare_all("input 31\ndense 33 gelu\ndense 3\nloss mean-squared\noptimizer adamw\nl2 0.01\n"
              "schedule cosine\nwarmup 1\nshards 8\n",
              40, 101);
}

static void convolutions_are_the_same_on_any_number_of_ranks(void **unused) {
  (void)unused;
  compare_all("input 1x12x12\nconv 5 3x3 tanh\npool max 2x2\ndropout 0.2\ndense 17 relu\ndense 7\n"
              "loss cross-entropy\noptimizer momentum rate 0.05\nl2 1e-4\n",
              128, 300);
}

static void clipping_is_the_same_on_any_number_of_ranks(void **unused) {
  (void)unused;
  compare_all("input 200\ndense 150 relu\ndense 120 relu\ndense 40\nloss cross-entropy\n"
              "optimizer adam rate 0.01\nclip 0.05\nshards 6\n",
              48, 120);
}

static void running_statistics_are_the_same_on_any_number_of_ranks(void **unused) {
  (void)unused;
  compare_all("input 2x8x8\na: conv 4 3x3 pad 1\nbatchnorm relu\nconv 4 3x3 pad 1\nbatchnorm\nadd a relu\n"
              "global-pool average\ndense 5\nloss cross-entropy\noptimizer adam\nclip 1\nshards 5\n",
              80, 200);
  compare_all("input 2x8x8\nconv 4 3x3 pad 1\nbatchnorm batch relu\nglobal-pool average\ndense 5\n"
              "loss cross-entropy\noptimizer adam\n",
              80, 200);
}

static void recurrent_state_is_the_same_on_any_number_of_ranks(void **unused) {
  (void)unused;
  compare_all("input tokens 9 carry\nembed 23 12\nlstm 13 layers 2\ndense 23\nloss cross-entropy sum-steps\n"
              "optimizer sgd rate 0.5\nclip 5\nshards 4\n",
              10, 50);
}

static void every_number_of_shards_is_the_same_on_any_number_of_ranks(void **unused) {
  (void)unused;
  for (int shards = 1; shards <= 11; shards++) {
    char text[128];
    snprintf(text, sizeof text,
             "input 5\ndense 7 tanh\ndense 2\nloss mean-squared\noptimizer adagrad\nclip 0.1\nshards %d\n",
             shards);
    compare_all(text, 17, 40);
  }
}

/* In the middle of an epoch, with slots and recurrent state. */
static void a_training_goes_on_from_any_state(void **unused) {
  (void)unused;
  for (uint32_t before = 1; before <= 6; before++)
    compare("input tokens 6 carry\nembed 50 40\ngru 30\ndense 50\nloss cross-entropy\noptimizer adam\n"
            "shards 3\n",
            3, 8, 32, before);
}

/* ---- ends ---- */

static void a_loss_that_is_not_a_number_ends_all_in_order(void **unused) {
  (void)unused;
  const char *text = "input 6\ndense 5 relu\ndense 3\nloss mean-squared\noptimizer sgd rate 1e9\nshards 4\n";
  bench alone = {0};
  open_bench(&alone, text, 1, 16, 64);
  static world w;
  open_world(&w, 3, text, 16, 64);
  start_followers(&w);
  shoal_error err = {0}, expected_err = {0};
  shoal_ranks *leader = w.members[0].ranks;
  assert_int_equal(shoal_ranks_start(leader, &err), SHOAL_OK);
  shoal_rounds driver = shoal_ranks_rounds(leader);
  shoal_result result;
  shoal_status status, expected;
  do {
    expected = shoal_trainer_round(alone.trainer, &alone.source, &result, &expected_err);
    status = driver.next(driver.self, &result, &err);
    assert_int_equal(status, expected);
  } while (status == SHOAL_OK);
  assert_int_equal(status, SHOAL_INVALID);
  assert_string_equal(err.text, expected_err.text);
  assert_int_equal(shoal_ranks_end(leader, &err), SHOAL_OK);
  join_followers(&w);
  for (uint32_t i = 1; i < 3; i++) assert_int_equal(w.members[i].status, SHOAL_INVALID);
  same_floats(w.members[0].bench.state->weights, alone.state->weights, alone.state->weights_count, "weights");
  close_world(&w);
  close_bench(&alone);
}

/* Some rounds and a gathering, as far as the fabric lets it. */
static shoal_status drive(shoal_ranks *leader, shoal_error *err) {
  shoal_status status = shoal_ranks_start(leader, err);
  shoal_rounds driver = shoal_ranks_rounds(leader);
  shoal_result result;
  for (int i = 0; i < 2 && status == SHOAL_OK; i++) status = driver.next(driver.self, &result, err);
  if (status == SHOAL_OK) status = driver.gather(driver.self, err);
  shoal_status end = shoal_ranks_end(leader, err);
  return status == SHOAL_OK ? end : status;
}

static void a_fabric_that_breaks_at_any_call_ends_all(void **unused) {
  (void)unused;
  const char *text =
      "input 6\ndense 50 relu\ndense 3\nloss mean-squared\noptimizer momentum rate 0.1\nclip 1\nshards 3\n";
  for (uint32_t rank = 0; rank < 3; rank++)
    for (uint64_t call = 1;; call++) {
      assert_true(call < 100);
      static world w;
      open_world(&w, 3, text, 16, 64);
      w.threads.breaking_rank = rank;
      w.threads.breaking_call = call;
      start_followers(&w);
      shoal_error err = {0};
      shoal_status status = drive(w.members[0].ranks, &err);
      join_followers(&w);
      bool broke = w.threads.broken;
      if (!broke) assert_int_equal(status, SHOAL_OK);
      /* Rank 0's last call, the end, may have got through. */
      if (broke && rank == 0) assert_int_equal(status, SHOAL_IO);
      for (uint32_t i = 1; i < 3; i++)
        if (i == rank || !broke) assert_int_equal(w.members[i].status, broke ? SHOAL_IO : SHOAL_OK);
      close_world(&w);
      if (!broke) break;
    }
}

/* ---- agreement ---- */

typedef struct voter {
  shoal_fabric fabric;
  shoal_status mine, answer, fabric_status;
  const char *job;
  shoal_error err;
  pthread_t thread;
} voter;

static void *vote(void *self) {
  voter *v = self;
  v->answer = v->mine;
  v->fabric_status = shoal_ranks_agree(&v->fabric, &v->answer, v->job != NULL ? v->job : "", &v->err);
  return NULL;
}

static void vote_all(voter *voters, uint32_t size) {
  threads_world threads;
  threads_init(&threads, size);
  for (uint32_t i = 0; i < size; i++) {
    voters[i].fabric = threads_fabric(&threads, i);
    assert_int_equal(pthread_create(&voters[i].thread, NULL, vote, &voters[i]), 0);
  }
  for (uint32_t i = 0; i < size; i++) {
    pthread_join(voters[i].thread, NULL);
    assert_int_equal(voters[i].fabric_status, SHOAL_OK);
  }
  threads_release(&threads);
}

static void ranks_with_the_same_job_agree(void **unused) {
  (void)unused;
  for (uint32_t size = 1; size <= 4; size++) {
    voter voters[4] = {{.job = "a"}, {.job = "a"}, {.job = "a"}, {.job = "a"}};
    vote_all(voters, size);
    for (uint32_t i = 0; i < size; i++) assert_int_equal(voters[i].answer, SHOAL_OK);
  }
}

static void a_rank_that_failed_is_named_to_all(void **unused) {
  (void)unused;
  voter voters[4] = {{.job = "a"},
                     {.job = "a"},
                     {.mine = SHOAL_NOT_FOUND, .err = {SHOAL_NOT_FOUND, "no file"}},
                     {.job = "a"}};
  vote_all(voters, 4);
  for (uint32_t i = 0; i < 4; i++) {
    assert_int_equal(voters[i].answer, SHOAL_NOT_FOUND);
    assert_string_equal(voters[i].err.text, i == 2 ? "no file" : "rank 2: no file");
  }
}

static void when_all_fail_rank_0_gives_its_own_reason(void **unused) {
  (void)unused;
  voter voters[2] = {{.mine = SHOAL_INVALID, .err = {SHOAL_INVALID, "mine"}},
                     {.mine = SHOAL_IO, .err = {SHOAL_IO, "other"}}};
  vote_all(voters, 2);
  assert_int_equal(voters[0].answer, SHOAL_INVALID);
  assert_string_equal(voters[0].err.text, "mine");
  assert_int_equal(voters[1].answer, SHOAL_IO);
}

static void another_job_is_refused(void **unused) {
  (void)unused;
  voter voters[3] = {{.job = "a"}, {.job = "b"}, {.job = "a"}};
  vote_all(voters, 3);
  for (uint32_t i = 0; i < 3; i++) {
    assert_int_equal(voters[i].answer, SHOAL_INVALID);
    assert_non_null(strstr(voters[i].err.text, "rank 1 has another model"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dense_networks_are_the_same_on_any_number_of_ranks),
      cmocka_unit_test(convolutions_are_the_same_on_any_number_of_ranks),
      cmocka_unit_test(clipping_is_the_same_on_any_number_of_ranks),
      cmocka_unit_test(running_statistics_are_the_same_on_any_number_of_ranks),
      cmocka_unit_test(recurrent_state_is_the_same_on_any_number_of_ranks),
      cmocka_unit_test(every_number_of_shards_is_the_same_on_any_number_of_ranks),
      cmocka_unit_test(a_training_goes_on_from_any_state),
      cmocka_unit_test(a_loss_that_is_not_a_number_ends_all_in_order),
      cmocka_unit_test(a_fabric_that_breaks_at_any_call_ends_all),
      cmocka_unit_test(ranks_with_the_same_job_agree),
      cmocka_unit_test(a_rank_that_failed_is_named_to_all),
      cmocka_unit_test(when_all_fail_rank_0_gives_its_own_reason),
      cmocka_unit_test(another_job_is_refused),
  };
  return RUN_TESTS(tests);
}
