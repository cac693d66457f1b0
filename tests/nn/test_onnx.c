#include "check.h"

#include <string.h>

#include "nn/in_folder.h"
#include "nn/onnx.h"
#include "nn/onnx_check.h"

/* Exports a model with fresh weights and checks the file. */
static void export_and_check(const char *text, checked *c) {
  shoal_model *model;
  shoal_graph *graph = NULL;
  shoal_error err = {0};
  if (shoal_model_parse(&model, "test.net", text, strlen(text), &err) != SHOAL_OK ||
      shoal_graph_create(&graph, model, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
  float *weights = calloc(graph->weights_count, sizeof *weights);
  shoal_graph_init_weights(graph, 1, weights);
  if (shoal_onnx_save("a.onnx", graph, weights, &err) != SHOAL_OK) fail_msg("%s", err.text);
  check_onnx_file("a.onnx", c);
  assert_true(c->opset == 17 && c->opset_tables == 0);
  assert_string_equal(c->inputs, "input");
  assert_string_equal(c->outputs, "output");
  free(weights);
  shoal_graph_destroy(graph);
  shoal_model_destroy(model);
}

/* ---- tests -------------------------------------------------------------------------- */

static void every_layer_becomes_its_operators(void **state) {
  (void)state;
  static const struct {
    const char *net, *ops;
  } cases[] = {
      {"input 4\ndense 3 tanh\ndense 2 no-bias\nloss mean-squared\n", "MatMul Add Tanh MatMul Identity"},
      {"input 4\ndense 3 softmax\nloss cross-entropy\n", "MatMul Add Softmax Identity"},
      {"input 4\ndense 3\nloss binary-cross-entropy\n", "MatMul Add Sigmoid Identity"},
      {"input 1x8x8\nconv 2 3x3 stride 2 pad 1 relu\npool max 2x2\ndense 2\nloss mean-squared\n",
       "Conv MaxPool Relu Flatten MatMul Add Identity"},
      {"input 1x8x8\nconv 2 3x3 no-bias\npool min 2x2 pad 1\nglobal-pool average\nloss mean-squared\n",
       "Conv Neg MaxPool Neg AveragePool Flatten Identity"},
      {"input 8\ndense 8\nreshape 2x2x2\nlayernorm\nreshape sequence 4x2\nbatchnorm\nflatten\nloss "
       "mean-squared\n",
       "MatMul Add Reshape LayerNormalization Flatten Reshape Transpose BatchNormalization Transpose Flatten "
       "Identity"},
      {"input tokens 5\nembed 9 4\nlstm 3 layers 2 last\ndense 2\nloss mean-squared\n",
       "Gather Transpose LSTM Squeeze Transpose Transpose LSTM Squeeze Transpose Gather MatMul Add Identity"},
      {"input 5\nlookup 9 4 of 2\ndense 2\nloss mean-squared\n",
       "Slice Floor Equal GreaterOrEqual Less And And Where Cast Gather Reshape Slice Concat MatMul Add "
       "Identity"},
      {"input 2\nlookup 9 4 of 2\ndense 2\nloss mean-squared\n",
       "Slice Floor Equal GreaterOrEqual Less And And Where Cast Gather Reshape MatMul Add Identity"},
      {"input sequence 5x2\ngru 3 bidirectional\nrnn 2 relu last\nrepeat 4\nloss mean-squared\n",
       "Transpose GRU Squeeze Transpose Transpose GRU Squeeze Transpose Concat Transpose RNN Squeeze "
       "Transpose "
       "Gather Unsqueeze Expand Identity"},
      {"input 4\na: dense 3 gelu\nb: dense 3 silu\ndropout 0.5\nadd a\nconcat a b\nleaky-relu\nloss "
       "mean-squared\n",
       "MatMul Add Mul Erf Mul Add Mul MatMul Add Sigmoid Mul Add Concat LeakyRelu Identity"},
  };
  static checked c;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    export_and_check(cases[i].net, &c);
    assert_string_equal(c.ops, cases[i].ops);
  }
}

static void a_failed_export_leaves_the_old_file(void **state) {
  (void)state;
  const char *text = "input 100\ndense 100\nloss mean-squared\n";
  shoal_model *model;
  shoal_graph *graph;
  shoal_error err;
  assert_int_equal(shoal_model_parse(&model, "test.net", text, strlen(text), &err), SHOAL_OK);
  assert_int_equal(shoal_graph_create(&graph, model, &err), SHOAL_OK);
  float *weights = calloc(graph->weights_count, sizeof *weights);
  assert_int_equal(shoal_onnx_save("/dev/full", graph, weights, &err), SHOAL_FULL);
  assert_non_null(strstr(err.text, "/dev/full: no space left"));
  FILE *old = fopen("a.onnx", "w");
  fputs("old", old);
  fclose(old);
  limit_files(8192);
  assert_int_equal(shoal_onnx_save("a.onnx", graph, weights, &err), SHOAL_IO);
  limit_files(0);
  assert_int_equal(files_here(), 1);
  uint8_t *content;
  size_t length;
  assert_int_equal(shoal_file_read("a.onnx", 100, false, &content, &length, &err), SHOAL_OK);
  assert_string_equal((char *)content, "old");
  free(content);
  assert_int_equal(shoal_onnx_save("nowhere/a.onnx", graph, weights, &err), SHOAL_NOT_FOUND);
  free(weights);
  shoal_graph_destroy(graph);
  shoal_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(every_layer_becomes_its_operators),
      IN_FOLDER(a_failed_export_leaves_the_old_file),
  };
  return RUN_TESTS(tests);
}
