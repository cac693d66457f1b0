/* Rows of embeddings in use: the stretches of a run, and rounds with the bits of those that go over whole tables. */
#include "nn/used_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "nn/trainer.h"
#include "synthetic.h"

typedef struct bench {
  shoal_model *model;
  shoal_graph *graph;
  shoal_trainer *trainer;
  synthetic made_up;
  shoal_source source;
} bench;

enum { BATCH = 24, SAMPLES = 5 * BATCH };

static void open_bench(bench *b, const char *training) {
  char text[512];
  snprintf(text, sizeof text, "input tokens 3\nembed 700 50\nrnn 5 last\ndense 4\nloss cross-entropy\n%s",
           training);
  assert_int_equal(shoal_model_parse(&b->model, "test", text, strlen(text), NULL), SHOAL_OK);
  assert_int_equal(shoal_graph_create(&b->graph, b->model, NULL), SHOAL_OK);
  shoal_trainer_config config = {.graph = b->graph, .threads = 2, .batch = BATCH, .samples = SAMPLES};
  assert_int_equal(shoal_trainer_create(&b->trainer, &config, NULL), SHOAL_OK);
  b->made_up = (synthetic){.graph = b->graph, .seed = 11};
  b->source = synthetic_source(&b->made_up, SAMPLES);
}

static void close_bench(bench *b) {
  shoal_trainer_destroy(b->trainer);
  shoal_graph_destroy(b->graph);
  shoal_model_destroy(b->model);
}

static void run_round(bench *b) {
  shoal_result result;
  assert_int_equal(shoal_trainer_round(b->trainer, &b->source, &result, NULL), SHOAL_OK);
}

static void compute_parts(bench *b, float *gradient) {
  shoal_sums sums;
  shoal_trainer_node(b->trainer, shoal_trainer_state(b->trainer)->weights, &b->source, 0, 1, 0,
                     shoal_trainer_shards(b->trainer), gradient, &sums);
}

static void a_round_by_rows_has_the_bits_of_one_over_whole_tables(void **state) {
  (void)state;
  const char *const trainings[] = {"optimizer sgd rate 0.3\nshards 3\n", "optimizer sgd rate 0.3\nshards 1\n",
                                   "optimizer sgd rate 0.3\nl2 0.01\nclip 0.1\nshards 4\n",
                                   "optimizer momentum rate 0.1\nshards 3\n",
                                   "optimizer adam rate 0.01\nclip 0.1\nshards 2\n"};
  for (size_t i = 0; i < sizeof trainings / sizeof *trainings; i++) {
    bench rows, tables;
    open_bench(&rows, trainings[i]);
    open_bench(&tables, trainings[i]);
    size_t bytes = rows.graph->weights_count * sizeof(float);
    float *gradient = aligned_alloc(64, bytes);
    for (int round = 0; round < 12; round++) {
      /* What is written here is no round's, so the next one knows of no rows. */
      compute_parts(&tables, gradient);
      if (round == 7) compute_parts(&rows, gradient);
      run_round(&rows);
      run_round(&tables);
      const shoal_param *table = &rows.graph->params[0];
      assert_true(table->by_rows);
      assert_memory_equal(shoal_trainer_last_gradient(rows.trainer) + table->offset,
                          shoal_trainer_last_gradient(tables.trainer) + table->offset,
                          table->count * sizeof(float));
      assert_memory_equal(shoal_trainer_state(rows.trainer)->weights,
                          shoal_trainer_state(tables.trainer)->weights, bytes);
    }
    free(gradient);
    close_bench(&rows);
    close_bench(&tables);
  }
}

static void the_stretches_of_runs_are_the_rows_in_use(void **state) {
  (void)state;
  bench b;
  open_bench(&b, "shards 1\n");
  shoal_used_rows *rows;
  assert_int_equal(shoal_used_rows_create(&rows, b.graph, NULL), SHOAL_OK);
  shoal_device device;
  assert_int_equal(shoal_device_processor(&device, NULL), SHOAL_OK);
  float *gradient = calloc(b.graph->weights_count, sizeof *gradient);
  shoal_used_rows_clear(rows, &device, gradient);
  const int32_t tokens[] = {699, 0, 327, 327, 12, 655};
  shoal_used_rows_use(rows, tokens, 6);
  const shoal_run *runs = b.graph->runs;
  shoal_run stretch;
  for (uint32_t i = 0; i < b.graph->runs_count; i++)
    for (size_t at = 0; runs[i].param == 0 && shoal_used_rows_next(rows, &runs[i], &at, &stretch);) {
      assert_true(stretch.offset >= runs[i].offset && stretch.offset + stretch.count <= runs[i].offset + at);
      for (uint32_t k = 0; k < stretch.count; k++) gradient[stretch.offset + k] += 1;
    }
  for (uint32_t row = 0; row < 700; row++)
    for (uint32_t k = 0; k < 50; k++) {
      bool used = row == 699 || row == 0 || row == 327 || row == 12 || row == 655;
      assert_true(gradient[b.graph->params[0].offset + row * 50 + k] == (used ? 1 : 0));
    }
  shoal_used_rows_clear(rows, &device, gradient);
  for (size_t i = 0; i < b.graph->weights_count; i++) assert_true(gradient[i] == 0);
  size_t at = 0;
  assert_false(shoal_used_rows_next(rows, &runs[0], &at, &stretch));
  free(gradient);
  shoal_used_rows_destroy(rows);
  close_bench(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_stretches_of_runs_are_the_rows_in_use),
      cmocka_unit_test(a_round_by_rows_has_the_bits_of_one_over_whole_tables),
  };
  return RUN_TESTS(tests);
}
