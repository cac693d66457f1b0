/* The graph: what layers become, and what is counted. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "nn/graph.h"

typedef struct net {
  shoal_model *model;
  shoal_graph *graph;
} net;

static net open_net(const char *text) {
  net n = {0};
  shoal_error err = {0};
  if (shoal_model_parse(&n.model, "test", text, strlen(text), &err) != SHOAL_OK) fail_msg("%s", err.text);
  if (shoal_graph_create(&n.graph, n.model, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return n;
}

static net open_example(const char *path) {
  net n = {0};
  shoal_error err = {0};
  if (shoal_model_load(&n.model, path, &err) != SHOAL_OK) fail_msg("%s", err.text);
  if (shoal_graph_create(&n.graph, n.model, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return n;
}

static void close_net(net *n) {
  shoal_graph_destroy(n->graph);
  shoal_model_destroy(n->model);
}

static void lenet_has_the_weights_and_operations_of_the_thesis(void **unused) {
  (void)unused;
  net n = open_example(SHOAL_SOURCE_DIR "/examples/lenet5.net");
  assert_int_equal(n.graph->trainable, 431080);
  assert_int_equal(shoal_graph_flops(n.graph, false), 2 * (288000 + 1600000 + 400000 + 5000));
  /* Three times forward, but the first convolution needs no gradient of the image. */
  assert_int_equal(shoal_graph_flops(n.graph, true), 6 * 2293000 - 2 * 288000);
  close_net(&n);
}

static void the_word_model_has_its_published_size(void **unused) {
  (void)unused;
  net n = open_example(SHOAL_SOURCE_DIR "/examples/lstm-ptb.net");
  assert_int_equal(n.graph->trainable, 10000 * 200 + 2 * (400 * 800 + 800) + 200 * 10000 + 10000);
  close_net(&n);
}

static void parameters_are_named_and_do_not_overlap(void **unused) {
  (void)unused;
  net n = open_net(
      "input sequence 4x3\ngru 5 layers 2 bidirectional\nbatchnorm\nout: dense 2\nloss mean-squared\n");
  static const char *const names[] = {"gru1.1.weight",
                                      "gru1.1.recurrent",
                                      "gru1.1.bias",
                                      "gru1.1.recurrent_bias",
                                      "gru1.1.reverse.weight",
                                      "gru1.1.reverse.recurrent",
                                      "gru1.1.reverse.bias",
                                      "gru1.1.reverse.recurrent_bias",
                                      "gru1.2.weight",
                                      "gru1.2.recurrent",
                                      "gru1.2.bias",
                                      "gru1.2.recurrent_bias",
                                      "gru1.2.reverse.weight",
                                      "gru1.2.reverse.recurrent",
                                      "gru1.2.reverse.bias",
                                      "gru1.2.reverse.recurrent_bias",
                                      "batchnorm1.gamma",
                                      "batchnorm1.beta",
                                      "batchnorm1.mean",
                                      "batchnorm1.variance",
                                      "out.weight",
                                      "out.bias"};
  assert_int_equal(n.graph->params_count, sizeof names / sizeof names[0]);
  size_t end = 0;
  for (uint32_t i = 0; i < n.graph->params_count; i++) {
    assert_string_equal(n.graph->params[i].name, names[i]);
    assert_int_equal(n.graph->params[i].offset % 16, 0);
    assert_true(n.graph->params[i].offset >= end);
    end = n.graph->params[i].offset + n.graph->params[i].count;
  }
  assert_true(end <= n.graph->weights_count);
  close_net(&n);
}

static void a_softmax_before_cross_entropy_is_left_to_the_loss(void **unused) {
  (void)unused;
  net with = open_net("input 3\ndense 4 softmax\nloss cross-entropy\n");
  net without = open_net("input 3\ndense 4\nloss cross-entropy\n");
  assert_int_equal(with.graph->nodes_count, without.graph->nodes_count);
  assert_int_equal(with.graph->output_activation, SHOAL_ACT_SOFTMAX);
  assert_int_equal(without.graph->output_activation, SHOAL_ACT_SOFTMAX);
  net squared = open_net("input 3\ndense 4 softmax\nloss mean-squared\n");
  assert_int_equal(squared.graph->nodes_count, with.graph->nodes_count + 1);
  assert_int_equal(squared.graph->output_activation, SHOAL_ACT_IDENTITY);
  close_net(&with);
  close_net(&without);
  close_net(&squared);
}

static void initial_weights_follow_the_activation_and_the_seed(void **unused) {
  (void)unused;
  net n = open_net(
      "input 200\na: dense 300 relu\nb: dense 100 tanh\nc: dense 100 init normal 0.5\nloss mean-squared\n");
  float *weights = malloc(n.graph->weights_count * sizeof *weights);
  float *again = malloc(n.graph->weights_count * sizeof *again);
  assert_true(weights != NULL && again != NULL);
  shoal_graph_init_weights(n.graph, 1, weights);
  shoal_graph_init_weights(n.graph, 1, again);
  assert_memory_equal(weights, again, n.graph->weights_count * sizeof *weights);
  shoal_graph_init_weights(n.graph, 2, again);
  assert_memory_not_equal(weights, again, n.graph->weights_count * sizeof *weights);
  /* He: sqrt(2 / 200). Xavier, uniform: sqrt(6 / 400) / sqrt(3). As asked: 0.5. */
  const double deviations[] = {0.1, 0, sqrt(2.0 / 400), 0, 0.5, 0};
  for (uint32_t i = 0; i < n.graph->params_count; i++) {
    const shoal_param *p = &n.graph->params[i];
    double sum = 0, squares = 0;
    for (size_t e = 0; e < p->count; e++) {
      sum += weights[p->offset + e];
      squares += (double)weights[p->offset + e] * weights[p->offset + e];
    }
    assert_true(fabs(sum / (double)p->count) < 0.01);
    assert_true(fabs(sqrt(squares / (double)p->count) - deviations[i]) < 0.01);
  }
  free(weights);
  free(again);
  close_net(&n);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lenet_has_the_weights_and_operations_of_the_thesis),
      cmocka_unit_test(the_word_model_has_its_published_size),
      cmocka_unit_test(parameters_are_named_and_do_not_overlap),
      cmocka_unit_test(a_softmax_before_cross_entropy_is_left_to_the_loss),
      cmocka_unit_test(initial_weights_follow_the_activation_and_the_seed),
  };
  return RUN_TESTS(tests);
}
