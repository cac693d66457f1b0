/* Whole trainings on a device whose memory the host cannot touch: the bits are the processor's. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "device/far.h"
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(trainings_have_the_bits_of_the_processor)};
  return RUN_TESTS(tests);
}
