/* The lookup layer: what it fetches, what it makes of values that are no numbers of rows, and
 * the order in which it adds up gradients, on every set of kernels. */
#include <math.h>

#include "base/hash.h"
#include "nn/trainer.h"
#include "rig.h"
#include "synthetic.h"

enum { SAMPLES = 9, VALUES = 5, ROWS = 7, WIDTH = 19, COLUMNS = 2, KEPT = VALUES - COLUMNS };
enum { OUTPUTS = KEPT + COLUMNS * WIDTH };

static const char *const NET = "input 5\nlookup 7 19 of 2\nloss mean-squared\n";
static const char *const SETS[] = {"baseline", "avx2", "avx512", "neon"};
enum { SETS_COUNT = sizeof SETS / sizeof SETS[0] };

/* Row i of the data: three values that nobody may touch, then these two. */
static void put_row(rig *r, uint32_t i, float first, float second) {
  shoal_batch batch = shoal_exec_batch(&r->exec);
  const float row[VALUES] = {(float)i, -0.25f * (float)i, 1e30f, first, second};
  memcpy(batch.x + (size_t)i * VALUES, row, sizeof row);
}

static const float *output(const rig *r) { return r->exec.block + r->plan->places[1].value; }

static void assert_row(const rig *r, uint32_t i, uint32_t first, uint32_t second) {
  const float *y = output(r) + (size_t)i * OUTPUTS;
  const float kept[KEPT] = {(float)i, -0.25f * (float)i, 1e30f};
  assert_memory_equal(y, kept, sizeof kept);
  assert_memory_equal(y + KEPT, r->weights + first * WIDTH, WIDTH * sizeof *y);
  assert_memory_equal(y + KEPT + WIDTH, r->weights + second * WIDTH, WIDTH * sizeof *y);
}

static void every_number_becomes_its_row(void **unused) {
  (void)unused;
  for (int s = 0; s < SETS_COUNT; s++) {
    const shoal_kernels *kernels = shoal_kernels_named(SETS[s]);
    if (kernels == NULL) continue;
    rig r;
    rig_open(&r, NET, kernels, SHOAL_PLAN_TRAIN, SAMPLES);
    for (uint32_t i = 0; i < SAMPLES; i++) put_row(&r, i, (float)(i % ROWS), (float)(ROWS - 1 - i % ROWS));
    shoal_exec_forward(&r.exec);
    for (uint32_t i = 0; i < SAMPLES; i++) assert_row(&r, i, i % ROWS, ROWS - 1 - i % ROWS);
    rig_close(&r);
  }
}

static void what_is_no_number_of_a_row_counts_as_the_first(void **unused) {
  (void)unused;
  static const float bad[] = {NAN,     -NAN,        INFINITY,      -INFINITY, -1,      -1e-30f, 0x1p-149f,
                              0.5f,    ROWS - 0.5f, ROWS,          ROWS + 1,  0x1p24f, 1e30f,   -1e30f,
                              0x1p31f, -0x1p31f,    4294967296.0f, 6.9999995f};
  for (int s = 0; s < SETS_COUNT; s++) {
    const shoal_kernels *kernels = shoal_kernels_named(SETS[s]);
    if (kernels == NULL) continue;
    rig r;
    rig_open(&r, NET, kernels, SHOAL_PLAN_TRAIN, SAMPLES);
    for (size_t first = 0; first < sizeof bad / sizeof bad[0]; first += SAMPLES) {
      for (uint32_t i = 0; i < SAMPLES; i++) put_row(&r, i, bad[first + i], 3);
      shoal_exec_forward(&r.exec);
      for (uint32_t i = 0; i < SAMPLES; i++) assert_row(&r, i, 0, 3);
    }
    for (uint32_t i = 0; i < SAMPLES; i++) put_row(&r, i, -0.0f, ROWS - 1);
    shoal_exec_forward(&r.exec);
    for (uint32_t i = 0; i < SAMPLES; i++) assert_row(&r, i, 0, ROWS - 1);
    rig_close(&r);
  }
}

/* Sample after sample, column after column, each in single precision. Both columns of a sample may
 * ask for the same row; a bad number's gradient is the first row's. */
static void gradients_are_added_in_the_order_of_samples_and_columns(void **unused) {
  (void)unused;
  static const uint32_t asked[SAMPLES][COLUMNS] = {{1, 1}, {0, 6}, {6, 1}, {2, 2}, {1, 0},
                                                   {6, 6}, {3, 1}, {1, 2}, {0, 0}};
  for (int s = 0; s < SETS_COUNT; s++) {
    const shoal_kernels *kernels = shoal_kernels_named(SETS[s]);
    if (kernels == NULL) continue;
    rig r;
    rig_open(&r, NET, kernels, SHOAL_PLAN_TRAIN, SAMPLES);
    for (uint32_t i = 0; i < SAMPLES; i++) put_row(&r, i, (float)asked[i][0], (float)asked[i][1]);
    put_row(&r, SAMPLES - 1, NAN, 99);
    shoal_exec_clear(r.plan, r.gradient, NULL);
    shoal_exec_forward(&r.exec);
    float *dy = r.exec.block + r.plan->places[1].gradient;
    float expected[ROWS * WIDTH] = {0};
    for (uint32_t e = 0; e < SAMPLES * OUTPUTS; e++) dy[e] = (float)(1 + e * 7919 % 1000) / 3;
    for (uint32_t i = 0; i < SAMPLES; i++)
      for (uint32_t c = 0; c < COLUMNS; c++)
        for (uint32_t k = 0; k < WIDTH; k++)
          expected[asked[i][c] * WIDTH + k] += dy[i * OUTPUTS + KEPT + c * WIDTH + k];
    shoal_exec_backward(&r.exec);
    assert_memory_equal(r.gradient, expected, sizeof expected);
    rig_close(&r);
  }
}

/* Ten rounds on the kernels that SHOAL_KERNELS names, and the hash of the weights. */
static void train(uint32_t threads, char out[SHOAL_SHA256_HEX]) {
  static const char net[] = "input 12\nlookup 200 13 of 5\ndense 40 silu\nbatchnorm\ndense 4\nloss "
                            "cross-entropy\noptimizer adamw rate 0.01\nl2 0.1\nclip 1\n";
  enum { BATCH = 100, COUNT = 350 };
  shoal_error err = {0};
  shoal_model *model = NULL;
  shoal_graph *graph = NULL;
  shoal_trainer *trainer = NULL;
  if (shoal_model_parse(&model, "test", net, sizeof net - 1, &err) != SHOAL_OK) fail_msg("%s", err.text);
  if (shoal_graph_create(&graph, model, &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_trainer_config config = {.graph = graph, .threads = threads, .batch = BATCH, .samples = COUNT};
  if (shoal_trainer_create(&trainer, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
  synthetic made_up = {.graph = graph, .seed = 3};
  shoal_source source = synthetic_source(&made_up, COUNT);
  for (int i = 0; i < 10; i++) {
    shoal_result result;
    if (shoal_trainer_round(trainer, &source, &result, &err) != SHOAL_OK) fail_msg("%s", err.text);
  }
  shoal_graph_weights_sha256(graph, shoal_trainer_state(trainer)->weights, out);
  shoal_trainer_destroy(trainer);
  shoal_graph_destroy(graph);
  shoal_model_destroy(model);
}

static void training_gives_the_same_bits_on_any_kernels_and_threads(void **unused) {
  (void)unused;
  char first[SHOAL_SHA256_HEX] = "", again[SHOAL_SHA256_HEX];
  for (int s = 0; s < SETS_COUNT; s++) {
    if (shoal_kernels_named(SETS[s]) == NULL) continue;
    assert_int_equal(setenv("SHOAL_KERNELS", SETS[s], 1), 0);
    for (uint32_t threads = 1; threads <= 3; threads++) {
      train(threads, again);
      if (first[0] == 0) memcpy(first, again, sizeof first);
      assert_string_equal(again, first);
    }
  }
  unsetenv("SHOAL_KERNELS");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_number_becomes_its_row),
      cmocka_unit_test(what_is_no_number_of_a_row_counts_as_the_first),
      cmocka_unit_test(gradients_are_added_in_the_order_of_samples_and_columns),
      cmocka_unit_test(training_gives_the_same_bits_on_any_kernels_and_threads),
  };
  return RUN_TESTS(tests);
}
