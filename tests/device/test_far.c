/* Whole trainings on a device whose memory the host cannot touch: the bits are the processor's. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "device/far.h"
#include "nn/engine.h"
#include "nn/synthetic.h"
#include "nn/trainer.h"

/* Every optimiser's slots, clipping, class weights, shards and tiles, dropout, running statistics, carried state. */
static const char *const NETS[] = {
    "input 1x9x9\nconv 5 3x3 pad 1\nbatchnorm relu\npool max 2x2\ndropout 0.3\ndense 7 tanh\ndense 3\nloss "
    "cross-entropy\noptimizer adam rate 0.01\nclip 0.5\nshards 3\nclass-weights 1 2 0.5\n",
    "input tokens 5 carry\nembed 13 7\nlstm 6 layers 2\ndense 13\nloss cross-entropy\noptimizer momentum "
    "rate "
    "0.1\nclip 0.1\nshards 2\n",
    "input 45\ndense 33 gelu\nlayernorm\ndense 4\nloss huber\noptimizer sgd rate 0.1\nl2 0.01\n",
};
enum { SAMPLES = 67, BATCH = 33, ROUNDS = 5 };

typedef struct trained {
  char sha256[SHOAL_SHA256_HEX];
  double loss, test_loss;
} trained;

static trained train(const char *text, const shoal_device *device) {
  shoal_error err = {0};
  shoal_model *model;
  shoal_graph *graph;
  shoal_trainer *t;
  if (shoal_model_parse(&model, "test", text, strlen(text), &err) != SHOAL_OK) fail_msg("%s", err.text);
  if (shoal_graph_create(&graph, model, &err) != SHOAL_OK) fail_msg("%s", err.text);
  synthetic made_up = {.graph = graph, .seed = 2};
  shoal_source source = synthetic_source(&made_up, model->carry ? 2 * BATCH : SAMPLES);
  shoal_trainer_config config = {
      .graph = graph,
      .device = device,
      .threads = 3,
      .batch = BATCH,
      .samples = source.samples,
      .class_weights = model->recipe.class_weights_count > 0 ? model->recipe.class_weights : NULL};
  if (shoal_trainer_create(&t, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_result result;
  trained out = {.loss = 0};
  for (int i = 0; i < ROUNDS; i++) {
    if (shoal_trainer_round(t, &source, &result, &err) != SHOAL_OK) fail_msg("%s", err.text);
    out.loss += result.loss;
  }
  out.test_loss = shoal_trainer_evaluate(t, &source).loss;
  shoal_trainer_gather(t);
  shoal_graph_weights_sha256(graph, shoal_trainer_state(t)->weights, out.sha256);
  shoal_trainer_destroy(t);
  shoal_graph_destroy(graph);
  shoal_model_destroy(model);
  return out;
}

static void trainings_have_the_bits_of_the_processor(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof NETS / sizeof NETS[0]; i++) {
    trained near = train(NETS[i], NULL), beyond = train(NETS[i], far_open(FAR_SOUND, 0));
    far_close();
    assert_string_equal(near.sha256, beyond.sha256);
    assert_true(near.loss == beyond.loss && near.test_loss == beyond.test_loss);
  }
}

/* ---- a pass with all that goes in and out ---- */

enum { N = 6, STEPS = 4, VALUES = 5, CELLS = 3, OUTPUTS = 2 };

typedef struct outcome {
  float out[STEPS * N * OUTPUTS], input_gradient[STEPS * N * VALUES], state_after[N * 2 * CELLS],
      gradient[1024];
} outcome;

static void judge(void *self, const shoal_tile *tile) {
  (void)self;
  for (size_t i = 0; i < STEPS * N * OUTPUTS; i++)
    tile->gradient[i] = 0.5f * tile->outputs[i] + 0.01f * (float)(i % 7);
}

static void watch(void *self, const shoal_tile *tile) {
  outcome *o = self;
  memcpy(o->input_gradient, tile->input_gradient, sizeof o->input_gradient);
}

/* A judge and a watcher, state that comes in and goes out, random numbers. */
static void pass(const shoal_device *device, uint64_t seed, outcome *o) {
  static const char text[] = "input sequence 4x5\nlstm 3\ndropout 0.3\ndense 2\nloss mean-squared\n";
  shoal_error err = {0};
  shoal_model *model;
  shoal_graph *graph;
  shoal_engine *engine;
  if (shoal_model_parse(&model, "test", text, strlen(text), &err) != SHOAL_OK) fail_msg("%s", err.text);
  if (shoal_graph_create(&graph, model, &err) != SHOAL_OK) fail_msg("%s", err.text);
  const shoal_engine_config config = {.graph = graph,
                                      .device = device,
                                      .use = SHOAL_PLAN_TRAIN_INPUT,
                                      .tile = N,
                                      .infer_tile = N,
                                      .threads = 1};
  if (shoal_engine_create(&engine, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
  size_t count = graph->weights_count;
  assert_true(count <= sizeof o->gradient / sizeof *o->gradient);
  /* Between parameters nothing is written. */
  float *weights = shoal_engine_take(engine, count), *gradient = shoal_engine_take_zeros(engine, count);
  float *host = shoal_engine_mirror(engine, weights, count), state[N * 2 * CELLS];
  assert_true(shoal_engine_has_memory(engine));
  for (size_t i = 0; i < count; i++) host[i] = 0.3f - 0.07f * (float)(i % 9);
  for (size_t i = 0; i < sizeof state / sizeof *state; i++) state[i] = 0.1f * (float)(i % 5) - 0.2f;
  shoal_engine_place(engine, weights, host, count);
  synthetic made_up = {.graph = graph, .seed = seed};
  shoal_source source = synthetic_source(&made_up, N);
  memset(o, 0, sizeof *o);
  shoal_engine_pass(engine, &(shoal_pass){.use = SHOAL_PLAN_TRAIN_INPUT,
                                          .source = &source,
                                          .n = N,
                                          .shards = 1,
                                          .shards_count = 1,
                                          .weights = weights,
                                          .gradients = (float *const[]){gradient},
                                          .out = o->out,
                                          .self = o,
                                          .judge = judge,
                                          .watch = watch,
                                          .state = state,
                                          .state_after = o->state_after});
  shoal_engine_gather(engine, o->gradient, gradient, count);
  shoal_engine_destroy(engine);
  shoal_graph_destroy(graph);
  shoal_model_destroy(model);
}

static bool is_same(const outcome *a, const outcome *b) { return memcmp(a, b, sizeof *a) == 0; }

static void every_copy_of_a_pass_is_needed(void **state) {
  (void)state;
  static outcome near, beyond;
  pass(NULL, 3, &near);
  pass(far_open(FAR_SOUND, 0), 3, &beyond);
  far_close();
  assert_true(is_same(&near, &beyond));
  far_counts all = far_last_count();
  assert_true(all.in > 0 && all.out > 0);
  for (uint64_t i = 0; i < all.in + all.out; i++) {
    bool in = i < all.in;
    pass(far_open(FAR_SOUND, 0), 4,
         &beyond); /* so that no memory of the host has the right values from before */
    far_close();
    pass(far_open(in ? FAR_DROPS_COPY_IN : FAR_DROPS_COPY_OUT, in ? i : i - all.in), 3, &beyond);
    far_close();
    if (is_same(&near, &beyond))
      fail_msg("nothing depends on copy %d of %d in and %d out", (int)i, (int)all.in, (int)all.out);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(trainings_have_the_bits_of_the_processor),
                                     cmocka_unit_test(every_copy_of_a_pass_is_needed)};
  return RUN_TESTS(tests);
}
