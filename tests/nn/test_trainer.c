/* The trainer: the same bits for any number of threads, nothing allocated in a round,
 * recurrent state carried, a bad loss refused. */
#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "check.h"
#include "nn/ops/table.h"
#include "nn/trainer.h"
#include "synthetic.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNTS_ALLOCATIONS 0
#endif
#endif
#ifndef COUNTS_ALLOCATIONS
#define COUNTS_ALLOCATIONS 1
#endif

#if COUNTS_ALLOCATIONS
/* Every allocation of this program passes here and is counted. */
static _Atomic unsigned long allocations;
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void *malloc(size_t bytes) {
  allocations++;
  return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
  allocations++;
  return __libc_calloc(count, bytes);
}
void *realloc(void *memory, size_t bytes) {
  allocations++;
  return __libc_realloc(memory, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  allocations++;
  return __libc_memalign(alignment, bytes);
}
#endif

typedef struct bench {
  shoal_model *model;
  shoal_graph *graph;
  shoal_trainer *trainer;
  synthetic made_up;
  shoal_source source;
} bench;

static void open_bench(bench *b, const char *text, uint32_t threads, uint32_t batch, uint64_t samples) {
  shoal_error err = {0};
  if (shoal_model_parse(&b->model, "test", text, strlen(text), &err) != SHOAL_OK) fail_msg("%s", err.text);
  if (shoal_graph_create(&b->graph, b->model, &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_trainer_config config = {.graph = b->graph, .threads = threads, .batch = batch, .samples = samples};
  if (shoal_trainer_create(&b->trainer, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
  b->made_up = (synthetic){.graph = b->graph, .seed = 11};
  b->source = synthetic_source(&b->made_up, samples);
}

static void close_bench(bench *b) {
  shoal_trainer_destroy(b->trainer);
  shoal_graph_destroy(b->graph);
  shoal_model_destroy(b->model);
}

static void run_rounds(bench *b, uint32_t rounds) {
  shoal_result result;
  shoal_error err = {0};
  for (uint32_t i = 0; i < rounds; i++)
    if (shoal_trainer_round(b->trainer, &b->source, &result, &err) != SHOAL_OK) fail_msg("%s", err.text);
}

static void fingerprint(bench *b, char out[SHOAL_SHA256_HEX]) {
  shoal_graph_weights_sha256(b->graph, shoal_trainer_state(b->trainer)->weights, out);
}

enum { NETS_COUNT = 6 };

static const char *const NETS[NETS_COUNT] = {
    "input 1x12x12\nconv 5 3x3 tanh\npool max 2x2\ndropout 0.2\ndense 17 relu\ndense 7\nloss cross-entropy\n"
    "optimizer momentum rate 0.05\nl2 1e-4\n",
    "input tokens 9 carry\nembed 23 12\nlstm 13 layers 2\ndense 23\nloss cross-entropy sum-steps\noptimizer "
    "sgd rate 2\n"
    "clip 5\n",
    "input 2x8x8\na: conv 4 3x3 pad 1\nbatchnorm relu\nconv 4 3x3 pad 1\nbatchnorm\nadd a relu\nglobal-pool "
    "average\n"
    "dense 5\nloss cross-entropy\noptimizer adam\n",
    "input 31\ndense 33 gelu\ndense 3\nloss mean-squared\noptimizer adamw\nl2 0.01\nschedule cosine\nwarmup "
    "1\n",
    "input 12\nlookup 29 7 of 5\ndense 21 silu\ndense 4\nloss cross-entropy\noptimizer adamw rate 0.01\nl2 "
    "0.1\n",
    "input 31\ndense 33\nbatchnorm batch relu\ndense 3\nloss mean-squared\noptimizer momentum rate 0.02\n",
};

/* Networks with products large enough to be shared inside a shard, and with convolutions by
 * Winograd's way. */
static const char *const LARGER_NETS[NETS_COUNT] = {
    "input 200\ndense 150 relu\ndense 40\nloss cross-entropy\noptimizer momentum rate 0.05\nshards 2\n",
    "input sequence 5x40\ngru 48 bidirectional\nlstm 33 last\ndense 9\nloss cross-entropy\n"
    "optimizer sgd rate 0.1\nclip 1\nshards 1\n",
    "input tokens 6 carry\nembed 50 40\nrnn 70\ndense 50\nloss cross-entropy\n"
    "optimizer sgd rate 0.1\nshards 3\n",
    "input 8x9x9\nconv 9 3x3 pad 1 tanh\npool max 2x2\nconv 8 5x5 pad 2 relu\npool min 2x2\ndense 5\n"
    "loss cross-entropy\noptimizer sgd rate 0.05\n",
    "input 20\nlookup 40 33 of 7\ndense 150 relu\ndense 6\nloss cross-entropy\noptimizer adam\nshards 3\n",
    "input 8x9x9\nbatchnorm batch\na: conv 9 3x3 pad 1\nbatchnorm batch relu\nadd a\nglobal-pool average\n"
    "dense 5\nloss cross-entropy\noptimizer adam\n",
};

/* Batches of one sample, of a part of a vector, and of a vector and one; the last round of an
 * epoch is always short. Where `shards` is asked for, some are empty then. */
static void any_batch_is_the_same_on_any_number_of_threads(void **unused) {
  (void)unused;
  static const uint32_t batches[] = {1, 2, 3, 15, 17, 33, 64, 70};
  for (size_t i = 0; i < NETS_COUNT; i++)
    for (size_t k = 0; k < sizeof batches / sizeof batches[0]; k++) {
      char first[SHOAL_SHA256_HEX] = "", again[SHOAL_SHA256_HEX];
      for (uint32_t threads = 1; threads <= 5; threads++) {
        bench b = {0};
        open_bench(&b, LARGER_NETS[i], threads, batches[k], 2 * batches[k] + 1);
        run_rounds(&b, 4);
        fingerprint(&b, threads == 1 ? first : again);
        if (threads > 1) assert_string_equal(first, again);
        close_bench(&b);
      }
    }
}

static void any_number_of_threads_gives_the_same_bits(void **unused) {
  (void)unused;
  for (size_t i = 0; i < NETS_COUNT; i++) {
    char first[SHOAL_SHA256_HEX] = "", again[SHOAL_SHA256_HEX];
    for (uint32_t threads = 1; threads <= 5; threads++) {
      bench b = {0};
      open_bench(&b, NETS[i], threads, 70, 300); /* the last round of an epoch is short */
      run_rounds(&b, 12);
      fingerprint(&b, threads == 1 ? first : again);
      if (threads > 1) assert_string_equal(first, again);
      close_bench(&b);
    }
  }
}

static void a_batch_that_is_normalised_as_a_whole_is_one_shard(void **unused) {
  (void)unused;
  bench b = {0};
  open_bench(&b, "input 2x8x8\nbatchnorm batch\ndense 3\nloss cross-entropy\n", 2, 300, 300);
  assert_int_equal(shoal_trainer_shards(b.trainer), 1);
  shoal_trainer *other;
  shoal_trainer_config config = {
      .graph = b.graph, .threads = 1, .batch = SHOAL_FETCH_MAX + 1, .samples = 5000};
  shoal_error err = {0};
  assert_int_equal(shoal_trainer_create(&other, &config, &err), SHOAL_LIMIT);
  assert_non_null(strstr(err.text, "a batch of 1025 samples"));
  close_bench(&b);
}

static void a_round_allocates_nothing(void **unused) {
  (void)unused;
#if COUNTS_ALLOCATIONS
  for (size_t i = 0; i < NETS_COUNT; i++) {
    bench b = {0};
    open_bench(&b, NETS[i], 2, 64, 256);
    run_rounds(&b, 1);
    unsigned long before = allocations;
    run_rounds(&b, 8);
    shoal_trainer_evaluate(b.trainer, &b.source);
    assert_int_equal(before, allocations);
    close_bench(&b);
  }
#else
  skip();
#endif
}

static void training_lowers_the_loss(void **unused) {
  (void)unused;
  for (size_t i = 0; i < NETS_COUNT; i++) {
    bench b = {0};
    open_bench(&b, NETS[i], 2, 64, 64);
    double before = shoal_trainer_evaluate(b.trainer, &b.source).loss;
    run_rounds(&b, 60);
    double after = shoal_trainer_evaluate(b.trainer, &b.source).loss;
    if (!(after < 0.98 * before)) fail_msg("net %zu: loss %g became %g", i, before, after);
    close_bench(&b);
  }
}

/* A copy of the whole state continues to the same bits: nothing else is kept from round to round.
 * Four rounds come before an epoch's last, in which shards are short and some are empty. */
static void check_copied_state(const char *net, uint32_t rounds) {
  bench a = {0}, b = {0};
  open_bench(&a, net, 2, 70, 300);
  open_bench(&b, net, 1, 70, 300);
  run_rounds(&a, rounds);
  shoal_train_state *from = shoal_trainer_state(a.trainer), *to = shoal_trainer_state(b.trainer);
  to->epoch = from->epoch;
  to->round = from->round;
  to->step = from->step;
  memcpy(to->weights, from->weights, from->weights_count * sizeof(float));
  if (from->slot1 != NULL) memcpy(to->slot1, from->slot1, from->weights_count * sizeof(float));
  if (from->slot2 != NULL) memcpy(to->slot2, from->slot2, from->weights_count * sizeof(float));
  if (from->carry != NULL) memcpy(to->carry, from->carry, from->carry_count * sizeof(float));
  run_rounds(&a, 6);
  run_rounds(&b, 6);
  char left[SHOAL_SHA256_HEX], right[SHOAL_SHA256_HEX];
  fingerprint(&a, left);
  fingerprint(&b, right);
  assert_string_equal(left, right);
  close_bench(&a);
  close_bench(&b);
}

static void a_copied_state_goes_on_to_the_same_bits(void **unused) {
  (void)unused;
  for (size_t i = 0; i < NETS_COUNT; i++) {
    check_copied_state(NETS[i], 4);
    check_copied_state(NETS[i], 7);
    check_copied_state(LARGER_NETS[i], 4);
  }
}

static void a_loss_that_is_not_a_number_leaves_the_weights_alone(void **unused) {
  (void)unused;
  bench b = {0};
  open_bench(&b, "input 7\ndense 3\nloss mean-squared\noptimizer sgd rate 1e9\n", 1, 16, 64);
  shoal_error err = {0};
  shoal_result result;
  shoal_status status = SHOAL_OK;
  char before[SHOAL_SHA256_HEX], after[SHOAL_SHA256_HEX];
  for (int i = 0; i < 100 && status == SHOAL_OK; i++) {
    fingerprint(&b, before);
    status = shoal_trainer_round(b.trainer, &b.source, &result, &err);
  }
  assert_int_equal(status, SHOAL_INVALID);
  assert_non_null(strstr(err.text, "lower --rate"));
  fingerprint(&b, after);
  assert_string_equal(before, after);
  close_bench(&b);
}

/* Predictions do not depend on how many samples are asked for at once. */
static void predictions_do_not_depend_on_the_cut(void **unused) {
  (void)unused;
  bench b = {0};
  open_bench(&b, NETS[0], 2, 70, 70);
  float all[70 * 7], one[7];
  shoal_trainer_predict(b.trainer, &b.source, 0, 70, all);
  for (uint32_t i = 0; i < 70; i++) {
    shoal_trainer_predict(b.trainer, &b.source, i, 1, one);
    assert_memory_equal(one, all + 7 * i, sizeof one);
  }
  close_bench(&b);
}

/* With carried state two short windows see what one long window sees. */
static void carried_state_joins_windows(void **unused) {
  (void)unused;
  bench b = {0};
  open_bench(&b, "input tokens 4 carry\nembed 9 6\nlstm 5\ngru 4\ndense 9\nloss cross-entropy\n", 1, 2, 2);
  float first[4 * 2 * 9], second[4 * 2 * 9], fresh[4 * 2 * 9];
  shoal_trainer_reset_carry(b.trainer);
  shoal_trainer_predict(b.trainer, &b.source, 0, 2, first);
  shoal_trainer_predict(b.trainer, &b.source, 0, 2, second);
  shoal_trainer_reset_carry(b.trainer);
  shoal_trainer_predict(b.trainer, &b.source, 0, 2, fresh);
  assert_memory_equal(first, fresh, sizeof first);
  assert_memory_not_equal(first, second, sizeof first);
  close_bench(&b);
}

/* The right ones are counted among rows with a weight, so the whole must be those rows too. */
static void classes_of_weight_zero_are_not_counted(void **unused) {
  (void)unused;
  bench b = {0};
  open_bench(&b, "input 4\ndense 3\nloss cross-entropy\noptimizer sgd rate 0.1\n", 1, 64, 64);
  const float weights[] = {1, 0, 1};
  shoal_trainer *weighted;
  shoal_trainer_config config = {
      .graph = b.graph, .threads = 1, .batch = 64, .samples = 64, .class_weights = weights};
  shoal_error err = {0};
  assert_int_equal(shoal_trainer_create(&weighted, &config, &err), SHOAL_OK);
  uint64_t expected = 0;
  for (uint64_t i = 0; i < 64; i++)
    expected += shoal_random_below(shoal_key_make(11, SHOAL_FOR_TOY, i, 0), 100000, 3) != 1;
  shoal_result result;
  assert_int_equal(shoal_trainer_round(weighted, &b.source, &result, &err), SHOAL_OK);
  assert_true(expected < 64 && result.answers == (double)expected);
  shoal_trainer_destroy(weighted);
  close_bench(&b);
}

static void times_cover_the_work_and_change_no_bit(void **unused) {
  (void)unused;
  for (size_t i = 0; i < NETS_COUNT; i++) {
    bench b = {0};
    open_bench(&b, NETS[i], 2, 70, 300);
    run_rounds(&b, 6);
    shoal_trainer *timed;
    shoal_trainer_config config = {
        .graph = b.graph, .threads = 2, .batch = 70, .samples = 300, .times = true};
    shoal_error err = {0};
    assert_int_equal(shoal_trainer_create(&timed, &config, &err), SHOAL_OK);
    shoal_result result;
    for (int r = 0; r < 6; r++)
      assert_int_equal(shoal_trainer_round(timed, &b.source, &result, &err), SHOAL_OK);
    size_t bytes = b.graph->weights_count * sizeof(float);
    assert_memory_equal(shoal_trainer_state(timed)->weights, shoal_trainer_state(b.trainer)->weights, bytes);

    shoal_work_time rows[128];
    uint32_t count = shoal_engine_times(shoal_trainer_engine(timed), NULL), seen = 0;
    assert_in_range(count, 1, 128);
    assert_int_equal(shoal_engine_times(shoal_trainer_engine(timed), rows), count);
    for (uint32_t k = 0; k < count; k++) {
      bool of_node = rows[k].work == SHOAL_WORK_FORWARD || rows[k].work == SHOAL_WORK_BACKWARD;
      bool input = of_node && b.graph->nodes[rows[k].node].op == &shoal_op_input;
      bool nothing_to_sum = rows[k].work == SHOAL_WORK_SUM && shoal_trainer_shards(timed) == 1;
      assert_true(rows[k].seconds > 0 || input || nothing_to_sum);
      assert_true(rows[k].node < b.graph->nodes_count);
      seen |= 1u << rows[k].work;
    }
    assert_int_equal(seen, (1u << (SHOAL_WORK_UPDATE + 1)) - 1);
    shoal_engine_times_reset(shoal_trainer_engine(timed));
    shoal_engine_times(shoal_trainer_engine(timed), rows);
    for (uint32_t k = 0; k < count; k++) assert_true(rows[k].seconds == 0);
    shoal_trainer_destroy(timed);
    close_bench(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
      cmocka_unit_test(any_batch_is_the_same_on_any_number_of_threads),
      cmocka_unit_test(a_batch_that_is_normalised_as_a_whole_is_one_shard),
      cmocka_unit_test(a_round_allocates_nothing),
      cmocka_unit_test(training_lowers_the_loss),
      cmocka_unit_test(a_copied_state_goes_on_to_the_same_bits),
      cmocka_unit_test(a_loss_that_is_not_a_number_leaves_the_weights_alone),
      cmocka_unit_test(predictions_do_not_depend_on_the_cut),
      cmocka_unit_test(carried_state_joins_windows),
      cmocka_unit_test(classes_of_weight_zero_are_not_counted),
      cmocka_unit_test(times_cover_the_work_and_change_no_bit),
  };
  return RUN_TESTS(tests);
}
