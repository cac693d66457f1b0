#include "check.h"

#include <string.h>

#include "base/file.h"
#include "nn/in_folder.h"
#include "nn/onnx.h"

/* That other runtimes compute the same is for tests/interop. Here: the bytes are a whole
 * message, values are made before they are used, and tensors have the size of their shape. */

/* ---- a reader of protocol buffers --------------------------------------------------- */

typedef struct bytes {
  const uint8_t *at, *end;
} bytes;

typedef struct field {
  uint32_t number;
  uint64_t value; /* kind 0 */
  bytes content;  /* kind 2 */
} field;

static uint64_t read_varint(bytes *from) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    assert_true(from->at < from->end);
    uint8_t byte = *from->at++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  fail_msg("a number without an end");
  return 0;
}

static bool next_field(bytes *from, field *out) {
  if (from->at == from->end) return false;
  uint64_t key = read_varint(from);
  *out = (field){.number = (uint32_t)(key >> 3)};
  uint64_t length = 0;
  switch (key & 7) {
  case 0: out->value = read_varint(from); return true;
  case 1: length = 8; break;
  case 2: length = read_varint(from); break;
  case 5: length = 4; break;
  default: fail_msg("unknown kind of field");
  }
  assert_true(length <= (uint64_t)(from->end - from->at));
  out->content = (bytes){from->at, from->at + length};
  from->at += length;
  return true;
}

/* ---- a checker of graphs ------------------------------------------------------------ */

enum { NAMES_MAX = 512, NAME_MAX_BYTES = 64 };

typedef struct checked {
  char names[NAMES_MAX][NAME_MAX_BYTES]; /* values that exist */
  size_t names_count;
  char ops[1024]; /* "Conv MaxPool ..." in order */
  bool made_output;
} checked;

static const char *text_of(bytes content) {
  static char text[NAME_MAX_BYTES];
  size_t length = (size_t)(content.end - content.at);
  assert_true(length < sizeof text);
  memcpy(text, content.at, length);
  text[length] = 0;
  return text;
}

static bool is_known(const checked *c, const char *name) {
  for (size_t i = 0; i < c->names_count; i++) {
    if (strcmp(c->names[i], name) == 0) return true;
  }
  return false;
}

static void add_name(checked *c, const char *name) {
  if (is_known(c, name)) fail_msg("'%s' is made twice", name);
  assert_true(c->names_count < NAMES_MAX);
  memcpy(c->names[c->names_count++], name, strlen(name) + 1);
}

static void check_tensor(checked *c, bytes message) {
  uint64_t values = 1, type = 0, raw = 0;
  field f;
  while (next_field(&message, &f)) {
    if (f.number == 1) values *= f.value;
    if (f.number == 2) type = f.value;
    if (f.number == 8) add_name(c, text_of(f.content));
    if (f.number == 9) raw = (uint64_t)(f.content.end - f.content.at);
  }
  assert_true(type == 1 || type == 7);
  assert_int_equal(raw, values * (type == 1 ? 4 : 8));
}

static void check_node(checked *c, bytes message) {
  field f;
  for (bytes left = message; next_field(&left, &f);) {
    if (f.number == 1 && !is_known(c, text_of(f.content)))
      fail_msg("'%s' is used before it is made", text_of(f.content));
    if (f.number == 4) {
      size_t used = strlen(c->ops);
      snprintf(c->ops + used, sizeof c->ops - used, "%s%s", used ? " " : "", text_of(f.content));
    }
  }
  for (bytes left = message; next_field(&left, &f);) {
    if (f.number == 2) {
      add_name(c, text_of(f.content));
      c->made_output |= strcmp(text_of(f.content), "output") == 0;
    }
  }
}

static void check_graph(checked *c, bytes message) {
  field f;
  bool input = false, output = false;
  for (bytes left = message; next_field(&left, &f);) {
    field name;
    bytes content = f.content;
    if (f.number == 5) check_tensor(c, f.content);
    if (f.number == 11 || f.number == 12) {
      assert_true(next_field(&content, &name) && name.number == 1);
      assert_string_equal(text_of(name.content), f.number == 11 ? "input" : "output");
      input |= f.number == 11;
      output |= f.number == 12;
    }
    if (f.number == 11) add_name(c, "input");
  }
  assert_true(input && output);
  for (bytes left = message; next_field(&left, &f);) {
    if (f.number == 1) check_node(c, f.content);
  }
  assert_true(c->made_output);
}

/* Exports a model with fresh weights and checks the file. */
static void export_and_check(const char *text, checked *c) {
  shoal_model *model;
  shoal_graph *graph = NULL;
  shoal_error err = {0};
  memset(c, 0, sizeof *c);
  if (shoal_model_parse(&model, "test.net", text, strlen(text), &err) != SHOAL_OK ||
      shoal_graph_create(&graph, model, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
  float *weights = calloc(graph->weights_count, sizeof *weights);
  shoal_graph_init_weights(graph, 1, weights);
  if (shoal_onnx_save("a.onnx", graph, weights, &err) != SHOAL_OK) fail_msg("%s", err.text);
  uint8_t *file;
  size_t length;
  assert_int_equal(shoal_file_read("a.onnx", 1 << 24, false, &file, &length, &err), SHOAL_OK);
  bytes left = {file, file + length};
  bool ir = false, opset = false, graph_there = false;
  for (field f; next_field(&left, &f);) {
    if (f.number == 1) ir = f.value == 8;
    if (f.number == 8) {
      field version;
      while (next_field(&f.content, &version)) opset |= version.number == 2 && version.value == 17;
    }
    if (f.number == 7) {
      graph_there = true;
      check_graph(c, f.content);
    }
  }
  assert_true(ir && opset && graph_there);
  free(file);
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
      {"input sequence 5x2\ngru 3 bidirectional\nrnn 2 relu last\nrepeat 4\nloss mean-squared\n",
       "Transpose GRU Squeeze Transpose Transpose GRU Squeeze Transpose Concat Transpose RNN Squeeze "
       "Transpose "
       "Gather Unsqueeze Expand Identity"},
      {"input 4\na: dense 3 gelu\nb: dense 3 silu\ndropout 0.5\nadd a\nconcat a b\nleaky-relu\nloss "
       "mean-squared\n",
       "MatMul Add Mul Erf Mul Add Mul MatMul Add Sigmoid Mul Add Concat LeakyRelu Identity"},
  };
  checked c;
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
  assert_int_equal(shoal_onnx_save("/dev/full", graph, weights, &err), SHOAL_IO);
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
