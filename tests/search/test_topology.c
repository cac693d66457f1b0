/* Networks from values: shapes, blocks, recipes; every one of them is a model. */
#include "search/topology.h"

#include <string.h>

#include "base/random.h"
#include "check.h"
#include "nn/graph.h"
#include "nn/model.h"

static shoal_space space_of(uint64_t rows, const char *text) {
  shoal_space space;
  shoal_error err = {0};
  shoal_space_usual(&space, rows, 14);
  if (shoal_space_parse(&space, "test", text, strlen(text), &err) != SHOAL_OK) fail_msg("%s", err.text);
  return space;
}

static const shoal_topology_io classes = {
    .inputs = 22, .problem = SHOAL_BINARY, .classes = 2, .rows = 30000, .epochs = 40, .seed = 7};

/* The text of a network, which must parse. */
static shoal_model *make(const shoal_space *space, const shoal_values *values, const shoal_topology_io *io,
                         shoal_text *text) {
  shoal_error err = {0};
  shoal_model *model = NULL;
  shoal_text_init(text);
  if (shoal_topology_write(space, values, io, text, &err) != SHOAL_OK) fail_msg("%s", err.text);
  if (shoal_model_parse(&model, "trial", text->bytes, text->length, &err) != SHOAL_OK)
    fail_msg("%s\n%s", err.text, text->bytes);
  return model;
}

static void check_widths(shoal_net_shape shape, uint32_t layers, const uint32_t *expected) {
  uint32_t widths[SHOAL_HIDDEN_MAX];
  assert_int_equal(shoal_topology_widths(shape, layers, 64, widths), layers);
  for (uint32_t i = 0; i < layers; i++) assert_int_equal(widths[i], expected[i]);
}

static void shapes_have_their_widths(void **state) {
  (void)state;
  check_widths(SHOAL_BRICK, 3, (uint32_t[]){64, 64, 64});
  check_widths(SHOAL_FUNNEL, 4, (uint32_t[]){64, 48, 32, 16});
  check_widths(SHOAL_TRIANGLE, 3, (uint32_t[]){16, 40, 64});
  check_widths(SHOAL_DIAMOND, 3, (uint32_t[]){16, 64, 16});
  check_widths(SHOAL_DIAMOND, 4, (uint32_t[]){16, 64, 64, 16});
  check_widths(SHOAL_HOURGLASS, 5, (uint32_t[]){64, 40, 16, 40, 64});
  check_widths(SHOAL_STAIRS, 6, (uint32_t[]){64, 64, 40, 40, 16, 16});
  for (uint32_t shape = 0; shape < SHOAL_NET_SHAPES; shape++) {
    for (uint32_t layers = 1; layers <= SHOAL_HIDDEN_MAX; layers++) {
      uint32_t widths[SHOAL_HIDDEN_MAX], widest = 0;
      shoal_topology_widths(shape, layers, 3, widths);
      for (uint32_t i = 0; i < layers; i++) {
        assert_in_range(widths[i], 1, 3);
        if (widths[i] > widest) widest = widths[i];
      }
      assert_int_equal(widest, 3);
    }
  }
}

static void the_text_says_all(void **state) {
  (void)state;
  shoal_space space =
      space_of(30000, "layers 2\nwidth 64\nshape funnel\nresidual no\nactivation silu\ndropout 0.25\n"
                      "normalise layer\nrate 0.003\nbatch 256\ndecay 0.01\nbalance yes\ncategories one-hot");
  shoal_values values = {0};
  shoal_text text;
  shoal_model *model = make(&space, &values, &classes, &text);
  assert_string_equal(text.bytes,
                      "input 22\ndense 64\nlayernorm\nsilu\ndropout 0.25\ndense 16\nlayernorm\nsilu\n"
                      "dropout 0.25\ndense 2\nloss cross-entropy\noptimizer adamw rate 0.003\nl2 0.01\n"
                      "schedule cosine\nwarmup 2\nbatch 256\nepochs 40\nseed 7\nclass-weights balanced\n");
  shoal_model_destroy(model);
  shoal_text_release(&text);

  shoal_topology_io number = classes;
  number.problem = SHOAL_REGRESSION;
  number.rows = 100;
  model = make(&space, &values, &number, &text);
  assert_int_equal(model->recipe.loss, SHOAL_MEAN_SQUARED);
  assert_int_equal(model->layers[model->layers_count - 1].shape.features, 1);
  assert_int_equal(model->recipe.batch, 25); /* a fourth of the rows */
  assert_false(model->recipe.class_weights_balanced);
  shoal_model_destroy(model);
  shoal_text_release(&text);
  shoal_space_release(&space);
}

static void blocks_add_what_came_in(void **state) {
  (void)state;
  shoal_space space = space_of(30000, "layers 3\nwidth 64\nshape diamond\nresidual yes\nactivation relu\n"
                                      "dropout 0\nnormalise batch\nbatch 256\nrate 0.01");
  shoal_values values = {0};
  shoal_text text;
  shoal_model *model = make(&space, &values, &classes, &text);
  assert_non_null(strstr(text.bytes, "input 22\nway1: dense 16\nbatchnorm\ndense 16 relu\ndense 16\n"
                                     "block1: add way1\nway2: dense 64\nbatchnorm\n"));
  shoal_model_destroy(model);
  shoal_text_release(&text);
  shoal_space_release(&space);
  space = space_of(
      30000, "layers 2\nwidth 64\nshape brick\nresidual yes\nnormalise none\nactivation relu\ndropout 0\n"
             "rate 0.01");
  model = make(&space, &values, &classes, &text);
  assert_non_null(
      strstr(text.bytes, "block1: add way1\ndense 64 relu\ndense 64\nblock2: add block1\nrelu\ndense 2\n"));
  shoal_model_destroy(model);
  shoal_text_release(&text);
  shoal_space_release(&space);
}

static void explicit_topologies_are_taken_as_they_are(void **state) {
  (void)state;
  shoal_space space =
      space_of(30000, "topology 64 relu, 32 tanh\ntopology 5 elu\ndropout 0\nnormalise none\nrate 0.1");
  shoal_values values = {0};
  shoal_text text;
  shoal_model *model = make(&space, &values, &classes, &text);
  assert_non_null(strstr(text.bytes, "input 22\ndense 64 relu\ndense 32 tanh\ndense 2\n"));
  shoal_model_destroy(model);
  shoal_text_release(&text);
  values.of[SHOAL_SET_TOPOLOGY] = 1;
  model = make(&space, &values, &classes, &text);
  assert_non_null(strstr(text.bytes, "input 22\ndense 5 elu\ndense 2\n"));
  shoal_model_destroy(model);
  shoal_text_release(&text);
  shoal_space_release(&space);
}

static void encodings_follow_the_values(void **state) {
  (void)state;
  shoal_space space =
      space_of(30000, "numbers quantile pieces\npieces 12\ncategories label lookup\nembedding 5");
  shoal_values values = {0};
  values.of[SHOAL_SET_PIECES] = values.of[SHOAL_SET_EMBEDDING] = 0;
  shoal_encoding_choice choice = shoal_topology_encoding(&space, &values);
  assert_int_equal(choice.numbers, SHOAL_QUANTILE);
  assert_int_equal(choice.categories, SHOAL_LABEL);
  values.of[SHOAL_SET_NUMBERS] = values.of[SHOAL_SET_CATEGORIES] = 1;
  choice = shoal_topology_encoding(&space, &values);
  assert_int_equal(choice.numbers, SHOAL_PIECES);
  assert_int_equal(choice.pieces, 12);
  assert_int_equal(choice.categories, SHOAL_LOOKUP);
  shoal_space_release(&space);
}

static void lookups_come_first(void **state) {
  (void)state;
  shoal_space space =
      space_of(30000, "layers 1\nwidth 9\ncategories lookup one-hot\nembedding 5\nrate 0.01\nbatch 8");
  shoal_topology_io io = classes;
  io.lookups = 8;
  io.vocabulary = 1200;
  shoal_values values = {0};
  shoal_text text;
  shoal_model *model = make(&space, &values, &io, &text);
  assert_non_null(strstr(text.bytes, "input 22\nlookup 1200 5 of 8\n"));
  assert_int_equal(model->layers[1].shape.features, 14 + 8 * 5);
  shoal_model_destroy(model);
  shoal_text_release(&text);
  values.of[SHOAL_SET_CATEGORIES] = 1; /* one column of so many categories that one-hot became lookup */
  model = make(&space, &values, &io, &text);
  assert_non_null(strstr(text.bytes, "lookup 1200 8 of 8\n"));
  shoal_model_destroy(model);
  shoal_text_release(&text);
  shoal_space_release(&space);
}

static void parse_all(const shoal_space *space, uint64_t expected) {
  assert_int_equal(shoal_space_grid(space), expected);
  for (uint64_t i = 0; i < expected; i++) {
    shoal_values values;
    shoal_space_grid_at(space, i, &values);
    shoal_text text;
    shoal_model_destroy(make(space, &values, &classes, &text));
    shoal_text_release(&text);
  }
}

static void every_point_of_a_grid_parses(void **state) {
  (void)state;
  shoal_space space = space_of(
      30000,
      "layers 1..5\nwidth 1 9\nshape brick funnel triangle diamond hourglass stairs\nresidual no yes\n"
      "activation relu softplus\ndropout 0 0.3\nnormalise none batch layer\noptimizer sgd adamw\nrate 0.01\n"
      "batch 32\ndecay 0\nnumbers standard\ncategories one-hot\nbalance no yes");
  parse_all(&space, (1 + 4 * 6) * 2 * 2 * 2 * 2 * 3 * 2 * 2);
  shoal_space_release(&space);
}

static void every_optimizer_and_activation_parses(void **state) {
  (void)state;
  shoal_space space = space_of(
      30000,
      "layers 2\nwidth 4\nshape brick\nresidual no yes\ndropout 0.1\nnormalise none\nrate 0.01\nbatch 32\n"
      "activation identity sigmoid tanh relu leaky-relu elu gelu silu softplus softmax\ndecay 0.1\n"
      "optimizer sgd momentum nesterov adagrad rmsprop adam adamw\nnumbers standard\ncategories one-hot");
  parse_all(&space, 2 * 10 * 7);
  shoal_space_release(&space);
}

static void check_graph(const shoal_model *model) {
  shoal_graph *graph;
  shoal_error err = {0};
  if (shoal_graph_create(&graph, model, &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_graph_destroy(graph);
}

static void ten_thousand_usual_points_are_networks(void **state) {
  (void)state;
  static const uint64_t rows[] = {500, 2500, 10000, 32000, 1000000};
  for (uint64_t i = 0; i < 10000; i++) {
    shoal_space space;
    shoal_space_usual(&space, rows[i % 5], i % 7 ? 14 : 300);
    shoal_key key = shoal_key_make(i, SHOAL_FOR_SIMULATION, 0, 0);
    shoal_values values;
    for (uint32_t id = 0; id < SHOAL_SETTINGS; id++)
      values.of[id] = shoal_space_from_unit(&space.settings[id], shoal_random_uniform(key, id));
    shoal_topology_io io = classes;
    io.problem = i % 3;
    io.classes = io.problem == SHOAL_MULTICLASS ? 10 : 2;
    io.rows = rows[i % 5];
    io.epochs = 1 + i % 100;
    io.seed = UINT64_MAX - i;
    bool lookup = shoal_topology_encoding(&space, &values).categories == SHOAL_LOOKUP;
    io.lookups = lookup ? 1 + i % 22 : 0;
    io.vocabulary = lookup ? 300 : 0;
    shoal_text text;
    shoal_model *model = make(&space, &values, &io, &text);
    if (i % 50 == 0) check_graph(model);
    shoal_model_destroy(model);
    shoal_text_release(&text);
    shoal_space_release(&space);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shapes_have_their_widths),
      cmocka_unit_test(the_text_says_all),
      cmocka_unit_test(blocks_add_what_came_in),
      cmocka_unit_test(explicit_topologies_are_taken_as_they_are),
      cmocka_unit_test(encodings_follow_the_values),
      cmocka_unit_test(lookups_come_first),
      cmocka_unit_test(every_point_of_a_grid_parses),
      cmocka_unit_test(every_optimizer_and_activation_parses),
      cmocka_unit_test(ten_thousand_usual_points_are_networks),
  };
  return RUN_TESTS(tests);
}
