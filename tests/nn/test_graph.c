/* The graph: what layers become, and what is counted. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "nn/graph.h"
#include "nn/ops/table.h"

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

static void operations_of_the_nodes_add_up_to_the_whole(void **unused) {
  (void)unused;
  static const char *const examples[] = {"lenet5", "lstm-ptb", "mlp-mnist", "resnet-cifar10",
                                         "encoder-decoder"};
  for (size_t e = 0; e < sizeof examples / sizeof examples[0]; e++) {
    char path[512];
    snprintf(path, sizeof path, SHOAL_SOURCE_DIR "/examples/%s.net", examples[e]);
    net n = open_example(path);
    uint64_t forward = 0, training = 0;
    for (uint32_t i = 0; i < n.graph->nodes_count; i++) {
      shoal_flops flops = shoal_node_flops(n.graph, &n.graph->nodes[i]);
      forward += flops.forward;
      training += flops.forward + flops.input_gradient + flops.weight_gradient;
    }
    assert_int_equal(forward, shoal_graph_flops(n.graph, false));
    assert_int_equal(training, shoal_graph_flops(n.graph, true));
    close_net(&n);
  }
}

static void what_reads_the_data_needs_no_input_gradient(void **unused) {
  (void)unused;
  net n = open_net("input 2x4x4\ndense 3 tanh\ndense 5\nloss mean-squared\n");
  uint32_t dense = 0;
  for (uint32_t i = 0; i < n.graph->nodes_count; i++) {
    const shoal_node *node = &n.graph->nodes[i];
    shoal_flops flops = shoal_node_flops(n.graph, node);
    if (node->op != &shoal_op_dense) {
      assert_int_equal(flops.forward + flops.input_gradient + flops.weight_gradient, 0);
      continue;
    }
    dense++;
    uint64_t product = dense == 1 ? 2 * 32 * 3 : 2 * 3 * 5;
    assert_int_equal(flops.forward, product);
    assert_int_equal(flops.input_gradient, dense == 1 ? 0 : product);
    assert_int_equal(flops.weight_gradient, product);
  }
  assert_int_equal(dense, 2);
  close_net(&n);
}

static void the_word_model_has_its_published_size(void **unused) {
  (void)unused;
  net n = open_example(SHOAL_SOURCE_DIR "/examples/lstm-ptb.net");
  assert_int_equal(n.graph->trainable, 10000 * 200 + 2 * (400 * 800 + 800) + 200 * 10000 + 10000);
  close_net(&n);
}

static void a_lookup_starts_like_an_embedding(void **unused) {
  (void)unused;
  net looks = open_net("input 22\nlookup 1200 12 of 8\ndense 5\nloss mean-squared\n");
  net embeds = open_net("input tokens 4\nembed 1200 12\ndense 5\nloss mean-squared\n");
  const shoal_param *table = &looks.graph->params[0], *like = &embeds.graph->params[0];
  assert_string_equal(table->name, "lookup1.table");
  assert_int_equal(table->kind, SHOAL_PARAM_WEIGHT);
  assert_int_equal(table->dims_count, 2);
  assert_int_equal(table->dims[0], 1200);
  assert_int_equal(table->dims[1], 12);
  assert_int_equal(table->fill, like->fill);
  assert_true(table->spread == like->spread);
  assert_int_equal(looks.graph->trainable, 1200 * 12 + (14 + 8 * 12) * 5 + 5);
  assert_int_equal(shoal_graph_flops(looks.graph, false), 2 * (14 + 8 * 12) * 5);
  close_net(&looks);
  close_net(&embeds);
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

static void an_activation_changes_places_with_a_pool_that_alone_reads_it(void **unused) {
  (void)unused;
  static const struct {
    const char *layers;
    bool swapped;
  } cases[] = {
      {"a: conv 4 3x3 pad 1 relu\npool max 2x2\n", true},
      {"a: conv 4 3x3 pad 1\ntanh\npool min 2x2\n", true},
      {"a: conv 4 3x3 pad 1 relu\ndropout 0\nidentity\npool max 2x2\n", true},
      {"a: conv 4 3x3 pad 1 relu\npool average 2x2\n", false},
      {"a: conv 4 3x3 pad 1 gelu\npool max 2x2\n", false},
      {"a: conv 4 3x3 pad 1 relu\ndropout 0.5\npool max 2x2\n", false},
      {"a: conv 4 3x3 pad 1 relu\np: pool max 2x2\nconv 4 3x3 stride 2 pad 1 from a\nadd p\n", false},
      {"a: conv 4 3x3 pad 1 relu\nb: conv 4 3x3 stride 2 pad 1\npool max 2x2 from a\nadd b\n", false},
      /* Two names for the node of a's activation. */
      {"a: conv 4 3x3 pad 1 relu\ndropout 0\np: pool max 2x2\nconv 4 3x3 stride 2 pad 1 from a\nadd p\n",
       false},
      {"a: conv 4 3x3 pad 1 relu\nd: dropout 0\np: pool max 2x2 from a\nconv 4 3x3 stride 2 pad 1 from d\n"
       "add p\n",
       false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char text[512];
    snprintf(text, sizeof text, "input 2x8x8\n%sdense 3\nloss cross-entropy\n", cases[i].layers);
    net n = open_net(text);
    uint32_t pool = 0;
    while (n.graph->nodes[pool].op != &shoal_op_pool) pool++;
    const shoal_node *before = &n.graph->nodes[n.graph->nodes[pool].inputs[0]];
    assert_int_equal(before->op == &shoal_op_conv, cases[i].swapped);
    assert_int_equal(n.graph->nodes[pool + 1].op == &shoal_op_activation, cases[i].swapped);
    /* Whatever was moved, all find the shapes that they expect. */
    for (uint32_t k = 0; k < n.graph->nodes_count; k++) {
      const shoal_node *node = &n.graph->nodes[k];
      if (node->op != &shoal_op_conv && node->op != &shoal_op_pool) continue;
      const shoal_shape *in = &n.graph->nodes[node->inputs[0]].shape;
      assert_int_equal(in->c * in->h * in->w, node->window.in_c * node->window.in_h * node->window.in_w);
      assert_int_equal(
          (node->window.in_h + 2 * node->window.pad_h - node->window.k_h) / node->window.stride_h + 1,
          node->window.out_h);
    }
    close_net(&n);
  }
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

static void only_an_activation_that_follows_counts(void **unused) {
  (void)unused;
  /* a and b are linear: the relu behind b's line is c's. d's comes after a normalisation, e's after
   * a sum; the line after f starts from elsewhere. */
  net n =
      open_net("input 8\na: dense 8\nb: dense 8\nc: dense 8 relu\nd: dense 8\nlayernorm\nrelu\n"
               "e: dense 8\nadd c relu\nf: dense 8\ng: relu from e\nconcat f\ndense 2\nloss mean-squared\n");
  const struct {
    const char *name;
    int fill;
  } expected[] = {{"a.weight", SHOAL_FILL_UNIFORM}, {"b.weight", SHOAL_FILL_UNIFORM},
                  {"c.weight", SHOAL_FILL_NORMAL},  {"d.weight", SHOAL_FILL_NORMAL},
                  {"e.weight", SHOAL_FILL_NORMAL},  {"f.weight", SHOAL_FILL_UNIFORM}};
  uint32_t found = 0;
  for (uint32_t i = 0; i < n.graph->params_count; i++) {
    const shoal_param *p = &n.graph->params[i];
    if (found == sizeof expected / sizeof expected[0] || strcmp(p->name, expected[found].name) != 0) continue;
    assert_int_equal(p->fill, expected[found++].fill);
  }
  assert_int_equal(found, sizeof expected / sizeof expected[0]);
  close_net(&n);
}

static void too_many_nodes_are_refused(void **unused) {
  (void)unused;
  /* Every sum of 16 lines is 15 nodes; the last layer, when hardly any node is left, is 95. */
  shoal_text text;
  shoal_text_init(&text);
  shoal_text_addf(&text, "input sequence 2x2\n");
  for (int i = 0; i < 16; i++) shoal_text_addf(&text, "n%d: dense 2\n", i);
  for (int i = 0; i < 543; i++) {
    shoal_text_addf(&text, "add");
    for (int k = 0; k < 15; k++) shoal_text_addf(&text, " n%d", k);
    shoal_text_addf(&text, "\n");
  }
  shoal_text_addf(&text, "rnn 2 layers 32 bidirectional\nloss mean-squared\n");
  assert_false(text.failed);
  shoal_model *model;
  shoal_graph *graph;
  shoal_error err = {0};
  if (shoal_model_parse(&model, "test", text.bytes, text.length, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_int_equal(shoal_graph_create(&graph, model, &err), SHOAL_LIMIT);
  assert_null(graph);
  assert_non_null(strstr(err.text, "line 561: with 'rnn1' the model has more than 8,192 nodes"));
  assert_int_equal(shoal_graph_create(&graph, model, NULL), SHOAL_LIMIT);
  shoal_model_destroy(model);
  shoal_text_release(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lenet_has_the_weights_and_operations_of_the_thesis),
      cmocka_unit_test(operations_of_the_nodes_add_up_to_the_whole),
      cmocka_unit_test(what_reads_the_data_needs_no_input_gradient),
      cmocka_unit_test(the_word_model_has_its_published_size),
      cmocka_unit_test(a_lookup_starts_like_an_embedding),
      cmocka_unit_test(parameters_are_named_and_do_not_overlap),
      cmocka_unit_test(a_softmax_before_cross_entropy_is_left_to_the_loss),
      cmocka_unit_test(an_activation_changes_places_with_a_pool_that_alone_reads_it),
      cmocka_unit_test(initial_weights_follow_the_activation_and_the_seed),
      cmocka_unit_test(only_an_activation_that_follows_counts),
      cmocka_unit_test(too_many_nodes_are_refused),
  };
  return RUN_TESTS(tests);
}
