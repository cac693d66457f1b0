#include "check.h"

#include <stdio.h>
#include <string.h>

#include "nn/loss.h"
#include "nn/model_internal.h"
#include "nn/ops/table.h"
#include "nn/optimizer.h"

static shoal_model *parse(const char *text) {
  shoal_model *model;
  shoal_error err;
  if (shoal_model_parse(&model, "x.net", text, strlen(text), &err) != SHOAL_OK)
    fail_msg("%s\nin:\n%s", err.text, text);
  return model;
}

static shoal_model *load_example(const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/examples/%s", SHOAL_SOURCE_DIR, name);
  shoal_model *model;
  shoal_error err;
  if (shoal_model_load(&model, path, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return model;
}

static void assert_shape(const shoal_layer *layer, const char *expected) {
  char text[SHOAL_SHAPE_TEXT_MAX];
  assert_string_equal(shoal_shape_text(&layer->shape, text), expected);
}

/* ---- layers ------------------------------------------------------------------------- */

static const struct {
  const char *input, *line, *shape;
  shoal_layer expected; /* what is not named here is 0 */
} layers[] = {
    {"784", "dense 10", "10", {.op = &shoal_op_dense, .units = 10, .bias = true}},
    {"784",
     "dense 10 no-bias relu",
     "10",
     {.op = &shoal_op_dense, .units = 10, .activation = SHOAL_ACT_RELU}},
    {"784",
     "dense 10 init normal 0.01 softmax",
     "10",
     {.op = &shoal_op_dense,
      .units = 10,
      .bias = true,
      .activation = SHOAL_ACT_SOFTMAX,
      .init = SHOAL_INIT_NORMAL,
      .init_scale = 0.01f}},
    {"784",
     "dense 10 init he",
     "10",
     {.op = &shoal_op_dense, .units = 10, .bias = true, .init = SHOAL_INIT_HE}},
    {"784",
     "dense 10 init lecun",
     "10",
     {.op = &shoal_op_dense, .units = 10, .bias = true, .init = SHOAL_INIT_LECUN}},
    {"784",
     "dense 10 gelu init xavier",
     "10",
     {.op = &shoal_op_dense,
      .units = 10,
      .bias = true,
      .activation = SHOAL_ACT_GELU,
      .init = SHOAL_INIT_XAVIER}},
    {"784",
     "dense 10 init zero",
     "10",
     {.op = &shoal_op_dense, .units = 10, .bias = true, .init = SHOAL_INIT_ZERO}},
    {"sequence 20x8",
     "dense 3 sigmoid",
     "sequence 20x3",
     {.op = &shoal_op_dense, .units = 3, .bias = true, .activation = SHOAL_ACT_SIGMOID}},
    {"3x4x5", "dense 7", "7", {.op = &shoal_op_dense, .units = 7, .bias = true}},

    {"1x28x28",
     "conv 20 5x5 tanh",
     "20x24x24",
     {.op = &shoal_op_conv,
      .units = 20,
      .bias = true,
      .window.k_h = 5,
      .window.k_w = 5,
      .window.stride_h = 1,
      .window.stride_w = 1,
      .activation = SHOAL_ACT_TANH}},
    {"3x33x32",
     "conv 8 3x3 stride 2 pad same",
     "8x17x16",
     {.op = &shoal_op_conv,
      .units = 8,
      .bias = true,
      .window.k_h = 3,
      .window.k_w = 3,
      .window.stride_h = 2,
      .window.stride_w = 2,
      .window.pad_h = 1,
      .window.pad_w = 1}},
    {"3x8x9",
     "conv 2 5x3 pad 4x2 stride 3x1 no-bias init uniform 0.5 leaky-relu",
     "2x4x11",
     {.op = &shoal_op_conv,
      .units = 2,
      .window.k_h = 5,
      .window.k_w = 3,
      .window.stride_h = 3,
      .window.stride_w = 1,
      .window.pad_h = 4,
      .window.pad_w = 2,
      .init = SHOAL_INIT_UNIFORM,
      .init_scale = 0.5f,
      .activation = SHOAL_ACT_LEAKY_RELU}},
    {"1x4x4",
     "conv 1 4x4",
     "1x1x1",
     {.op = &shoal_op_conv,
      .units = 1,
      .bias = true,
      .window.k_h = 4,
      .window.k_w = 4,
      .window.stride_h = 1,
      .window.stride_w = 1}},

    {"20x24x25",
     "pool max 2x2",
     "20x12x12",
     {.op = &shoal_op_pool,
      .pool = SHOAL_POOL_MAX,
      .window.k_h = 2,
      .window.k_w = 2,
      .window.stride_h = 2,
      .window.stride_w = 2}},
    {"2x9x9",
     "pool average 3x2 stride 1 pad 1",
     "2x9x10",
     {.op = &shoal_op_pool,
      .pool = SHOAL_POOL_AVERAGE,
      .window.k_h = 3,
      .window.k_w = 2,
      .window.stride_h = 1,
      .window.stride_w = 1,
      .window.pad_h = 1,
      .window.pad_w = 1}},
    {"2x9x9",
     "pool min 3x3 stride 2x3 elu",
     "2x4x3",
     {.op = &shoal_op_pool,
      .pool = SHOAL_POOL_MIN,
      .window.k_h = 3,
      .window.k_w = 3,
      .window.stride_h = 2,
      .window.stride_w = 3,
      .activation = SHOAL_ACT_ELU}},
    {"64x8x8",
     "global-pool average",
     "64",
     {.op = &shoal_op_global_pool,
      .pool = SHOAL_POOL_AVERAGE,
      .window.k_h = 8,
      .window.k_w = 8,
      .window.stride_h = 1,
      .window.stride_w = 1}},
    {"64x8x8",
     "global-pool min",
     "64",
     {.op = &shoal_op_global_pool,
      .pool = SHOAL_POOL_MIN,
      .window.k_h = 8,
      .window.k_w = 8,
      .window.stride_h = 1,
      .window.stride_w = 1}},

    {"3x4x5", "flatten", "60", {.op = &shoal_op_flatten}},
    {"sequence 4x5", "flatten", "20", {.op = &shoal_op_flatten}},
    {"784", "reshape 1x28x28", "1x28x28", {.op = &shoal_op_reshape}},
    {"4x3x5", "reshape sequence 12x5", "sequence 12x5", {.op = &shoal_op_reshape}},
    {"4x3x5", "reshape 60", "60", {.op = &shoal_op_reshape}},

    {"tokens 20",
     "embed 1000 50",
     "sequence 20x50",
     {.op = &shoal_op_embed, .vocabulary = 1000, .units = 50}},
    {"tokens 20",
     "embed 1000 50 init uniform 0.1",
     "sequence 20x50",
     {.op = &shoal_op_embed,
      .vocabulary = 1000,
      .units = 50,
      .init = SHOAL_INIT_UNIFORM,
      .init_scale = 0.1f}},

    {"22",
     "lookup 1200 12 of 8",
     "110",
     {.op = &shoal_op_lookup, .vocabulary = 1200, .units = 12, .columns = 8}},
    {"1",
     "lookup 16777216 1 of 1 tanh init normal 0.5",
     "1",
     {.op = &shoal_op_lookup,
      .vocabulary = 1 << 24,
      .units = 1,
      .columns = 1,
      .activation = SHOAL_ACT_TANH,
      .init = SHOAL_INIT_NORMAL,
      .init_scale = 0.5f}},

    {"sequence 20x8",
     "rnn 16",
     "sequence 20x16",
     {.op = &shoal_op_rnn, .units = 16, .stack = 1, .activation = SHOAL_ACT_TANH}},
    {"sequence 20x8",
     "rnn 16 relu last",
     "16",
     {.op = &shoal_op_rnn, .units = 16, .stack = 1, .last = true, .activation = SHOAL_ACT_RELU}},
    {"sequence 20x8",
     "lstm 200 layers 2 init uniform 0.1",
     "sequence 20x200",
     {.op = &shoal_op_lstm, .units = 200, .stack = 2, .init = SHOAL_INIT_UNIFORM, .init_scale = 0.1f}},
    {"sequence 20x8",
     "lstm 16 bidirectional",
     "sequence 20x32",
     {.op = &shoal_op_lstm, .units = 16, .stack = 1, .bidirectional = true}},
    {"sequence 20x8",
     "gru 16 last layers 3 bidirectional silu",
     "32",
     {.op = &shoal_op_gru,
      .units = 16,
      .stack = 3,
      .bidirectional = true,
      .last = true,
      .activation = SHOAL_ACT_SILU}},
    {"16", "repeat 8", "sequence 8x16", {.op = &shoal_op_repeat, .units = 8}},

    {"16", "dropout 0.5", "16", {.op = &shoal_op_dropout, .rate = 0.5f}},
    {"3x4x5", "dropout 0 relu", "3x4x5", {.op = &shoal_op_dropout, .activation = SHOAL_ACT_RELU}},
    {"3x4x5", "batchnorm relu", "3x4x5", {.op = &shoal_op_batchnorm, .activation = SHOAL_ACT_RELU}},
    {"sequence 4x5", "batchnorm", "sequence 4x5", {.op = &shoal_op_batchnorm}},
    {"8",
     "batchnorm batch tanh",
     "8",
     {.op = &shoal_op_batchnorm, .activation = SHOAL_ACT_TANH, .whole_batch = true}},
    {"sequence 4x5", "layernorm", "sequence 4x5", {.op = &shoal_op_layernorm}},
    {"7", "softplus", "7", {.op = &shoal_op_activation, .activation = SHOAL_ACT_SOFTPLUS}},
    {"7", "identity", "7", {.op = &shoal_op_activation, .activation = SHOAL_ACT_IDENTITY}},
    {"sequence 2x7",
     "softmax",
     "sequence 2x7",
     {.op = &shoal_op_activation, .activation = SHOAL_ACT_SOFTMAX}},
};

static void every_layer_gets_its_fields_and_shape(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
    char text[256];
    /* `dense 2` makes any net end in a vector or a sequence, so that the loss fits; tokens
     * have only been through embed by then. */
    snprintf(text, sizeof text, "input %s\n%s\ndense 2\nloss mean-squared\n", layers[i].input,
             layers[i].line);
    shoal_model *model = parse(text);
    const shoal_layer *got = &model->layers[1], *expected = &layers[i].expected;
    assert_int_equal(model->layers_count, 3);
    assert_shape(&model->layers[0], layers[i].input);
    assert_shape(got, layers[i].shape);
    assert_int_equal(got->op, expected->op);
    assert_int_equal(got->line, 2);
    assert_int_equal(got->inputs_count, 1);
    assert_int_equal(got->inputs[0], 0);
    assert_int_equal(got->activation, expected->activation);
    assert_int_equal(got->units, expected->units);
    assert_int_equal(got->vocabulary, expected->vocabulary);
    assert_int_equal(got->columns, expected->columns);
    assert_int_equal(got->stack, expected->stack);
    assert_int_equal(got->bidirectional, expected->bidirectional);
    assert_int_equal(got->last, expected->last);
    assert_int_equal(got->whole_batch, expected->whole_batch);
    assert_int_equal(got->bias, expected->bias);
    assert_int_equal(got->pool, expected->pool);
    assert_int_equal(got->window.k_h, expected->window.k_h);
    assert_int_equal(got->window.k_w, expected->window.k_w);
    assert_int_equal(got->window.stride_h, expected->window.stride_h);
    assert_int_equal(got->window.stride_w, expected->window.stride_w);
    assert_int_equal(got->window.pad_h, expected->window.pad_h);
    assert_int_equal(got->window.pad_w, expected->window.pad_w);
    assert_true(got->rate == expected->rate);
    assert_int_equal(got->init, expected->init);
    assert_true(got->init_scale == expected->init_scale);
    shoal_model_destroy(model);
  }
}

static void only_an_input_that_says_carry_carries(void **state) {
  (void)state;
  shoal_model *model = parse("input tokens 5\nembed 3 4\nlstm 2\nloss cross-entropy");
  assert_false(model->carry);
  shoal_model_destroy(model);
  model = parse("input tokens 5 carry\nembed 3 4\nlstm 2\nloss cross-entropy");
  assert_true(model->carry);
  shoal_model_destroy(model);
}

/* ---- names -------------------------------------------------------------------------- */

static void branches_join_in_sums_and_concatenations(void **state) {
  (void)state;
  shoal_model *model = parse("x: input 8x6x6\n"
                             "a: conv 8 3x3 pad same\n"
                             "b: conv 9 5x5 pad same from x\n"
                             "   conv 8 1x1\n"
                             "s: add a x relu\n"
                             "   concat x a from b tanh\n"
                             "   conv 8 1x1\n"
                             "   add s\n"
                             "   global-pool max\n"
                             "loss mean-squared\n");
  const shoal_layer *b = &model->layers[2], *sum = &model->layers[4], *joined = &model->layers[5];
  assert_int_equal(b->inputs_count, 1);
  assert_int_equal(b->inputs[0], 0);
  assert_int_equal(sum->inputs_count, 3);
  assert_true(sum->inputs[0] == 3 && sum->inputs[1] == 1 && sum->inputs[2] == 0);
  assert_int_equal(sum->activation, SHOAL_ACT_RELU);
  assert_shape(sum, "8x6x6");
  assert_int_equal(joined->inputs_count, 3);
  assert_true(joined->inputs[0] == 2 && joined->inputs[1] == 0 && joined->inputs[2] == 1);
  assert_shape(joined, "25x6x6");
  assert_true(model->layers[7].inputs[0] == 6 && model->layers[7].inputs[1] == 4);
  shoal_model_destroy(model);

  model = parse("a: input sequence 5x2\nb: dense 3\nconcat a\nc: gru 4 last\nrnn 6 last from b\nconcat c\n"
                "loss mean-squared");
  assert_shape(&model->layers[2], "sequence 5x5");
  assert_shape(&model->layers[5], "10");
  shoal_model_destroy(model);
}

static void names_are_made_where_none_are_given(void **state) {
  (void)state;
  shoal_model *model =
      parse("input 1x9x9\nconv 2 3x3\nconv2: pool max 2x2\nconv 2 2x2\nrelu\nglobal-pool max\n"
            "dense 5\ndense 5\ndense3: dense 5\ntanh\ndense 5\nloss cross-entropy");
  static const char *const expected[] = {"input",       "conv1",        "conv2",  "conv3",
                                         "activation1", "global-pool1", "dense1", "dense2",
                                         "dense3",      "activation2",  "dense4"};
  assert_int_equal(model->layers_count, sizeof expected / sizeof expected[0]);
  for (uint32_t i = 0; i < model->layers_count; i++) {
    assert_string_equal(model->layers[i].name, expected[i]);
    assert_int_equal(model->layers[i].named, i == 2 || i == 8);
  }
  shoal_model_destroy(model);
}

/* ---- settings ----------------------------------------------------------------------- */

#define NET "input 4\ndense 3\n"

static void a_recipe_starts_from_the_defaults(void **state) {
  (void)state;
  shoal_model *model = parse(NET "loss cross-entropy");
  const shoal_recipe *recipe = &model->recipe;
  assert_int_equal(recipe->loss, SHOAL_CROSS_ENTROPY);
  assert_int_equal(recipe->optimizer, SHOAL_SGD);
  assert_true(recipe->rate == 0 && recipe->momentum == 0 && recipe->l2 == 0 && recipe->clip == 0);
  assert_int_equal(recipe->schedule, SHOAL_SCHEDULE_CONSTANT);
  assert_true(recipe->warmup_epochs == 0 && recipe->scale_batch == 0);
  assert_int_equal(recipe->batch, 64);
  assert_int_equal(recipe->epochs, 10);
  assert_int_equal(recipe->seed, 1);
  assert_int_equal(recipe->shards, 0);
  assert_int_equal(recipe->early_stop, 0);
  assert_int_equal(recipe->shuffle, SHOAL_SHUFFLE_ALL);
  assert_false(recipe->augment.flip || recipe->augment.crop);
  assert_false(recipe->class_weights_balanced || recipe->class_weights_count || recipe->sum_steps);
  shoal_model_destroy(model);
}

static void every_setting_is_read(void **state) {
  (void)state;
  shoal_model *model =
      parse("batch 32\nepochs 7\n" NET "loss cross-entropy\nseed 18446744073709551615\nshards 4\n"
            "l2 1e-4\nclip 5\nearly-stop 3\nshuffle lanes\naugment crop 4 flip\nclass-weights 1 0.5 "
            "2\nwarmup 0.5 scale 16\n"
            "optimizer adam rate 0.01 beta1 0.8 beta2 0.9 eps 1e-6\n"
            "schedule step from 3 every 2 factor 0.5");
  const shoal_recipe *recipe = &model->recipe;
  assert_int_equal(recipe->batch, 32);
  assert_int_equal(recipe->epochs, 7);
  assert_true(recipe->seed == UINT64_MAX);
  assert_int_equal(recipe->shards, 4);
  assert_true(recipe->l2 == 1e-4f && recipe->clip == 5);
  assert_int_equal(recipe->early_stop, 3);
  assert_int_equal(recipe->shuffle, SHOAL_SHUFFLE_LANES);
  assert_true(recipe->augment.flip && recipe->augment.crop == 4);
  assert_int_equal(recipe->class_weights_count, 3);
  assert_true(recipe->class_weights[0] == 1 && recipe->class_weights[1] == 0.5f &&
              recipe->class_weights[2] == 2);
  assert_true(recipe->warmup_epochs == 0.5f);
  assert_int_equal(recipe->scale_batch, 16);
  assert_int_equal(recipe->optimizer, SHOAL_ADAM);
  assert_true(recipe->rate == 0.01f && recipe->momentum == 0.8f && recipe->beta2 == 0.9f &&
              recipe->eps == 1e-6f);
  assert_int_equal(recipe->schedule, SHOAL_SCHEDULE_STEP);
  assert_int_equal(recipe->schedule_from, 3);
  assert_int_equal(recipe->schedule_every, 2);
  assert_true(recipe->schedule_factor == 0.5f);
  shoal_model_destroy(model);
}

static void every_loss_is_read(void **state) {
  (void)state;
  static const struct {
    const char *line;
    shoal_loss_kind loss;
    float delta;
    bool sum_steps;
  } losses[] = {
      {"cross-entropy", SHOAL_CROSS_ENTROPY, 1, false},
      {"cross-entropy sum-steps", SHOAL_CROSS_ENTROPY, 1, true},
      {"binary-cross-entropy", SHOAL_BINARY_CROSS_ENTROPY, 1, false},
      {"mean-squared", SHOAL_MEAN_SQUARED, 1, false},
      {"mean-absolute sum-steps", SHOAL_MEAN_ABSOLUTE, 1, true},
      {"huber", SHOAL_HUBER, 1, false},
      {"huber sum-steps delta 0.25", SHOAL_HUBER, 0.25f, true},
  };
  for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
    char text[128];
    snprintf(text, sizeof text, "input sequence 5x4\ndense 3\nloss %s", losses[i].line);
    shoal_model *model = parse(text);
    assert_int_equal(model->recipe.loss, losses[i].loss);
    assert_true(model->recipe.huber_delta == losses[i].delta);
    assert_int_equal(model->recipe.sum_steps, losses[i].sum_steps);
    shoal_model_destroy(model);
  }
}

static void every_schedule_is_read(void **state) {
  (void)state;
  static const struct {
    const char *line;
    shoal_schedule_kind kind;
    uint32_t from, every;
    float factor, to;
  } schedules[] = {
      {"constant", SHOAL_SCHEDULE_CONSTANT, 1, 1, 0.1f, 0},
      {"step", SHOAL_SCHEDULE_STEP, 1, 1, 0.1f, 0},
      {"step factor 0.5 from 5", SHOAL_SCHEDULE_STEP, 5, 1, 0.5f, 0},
      {"exponential 0.95", SHOAL_SCHEDULE_EXPONENTIAL, 1, 1, 0.95f, 0},
      {"cosine", SHOAL_SCHEDULE_COSINE, 1, 1, 0.1f, 0},
      {"cosine to 1e-5", SHOAL_SCHEDULE_COSINE, 1, 1, 0.1f, 1e-5f},
  };
  for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
    char text[128];
    snprintf(text, sizeof text, NET "loss mean-squared\nschedule %s", schedules[i].line);
    shoal_model *model = parse(text);
    assert_int_equal(model->recipe.schedule, schedules[i].kind);
    assert_int_equal(model->recipe.schedule_from, schedules[i].from);
    assert_int_equal(model->recipe.schedule_every, schedules[i].every);
    assert_true(model->recipe.schedule_factor == schedules[i].factor);
    assert_true(model->recipe.schedule_to == schedules[i].to);
    shoal_model_destroy(model);
  }
}

static void every_optimiser_has_its_defaults_and_numbers(void **state) {
  (void)state;
  static const struct {
    const char *line;
    shoal_update_kind kind;
    float rate, momentum, beta2, eps;
  } optimizers[] = {
      {"sgd", SHOAL_SGD, 0, 0, 0, 0},
      {"sgd rate 1", SHOAL_SGD, 1, 0, 0, 0},
      {"momentum momentum 0.5 rate 2", SHOAL_MOMENTUM, 2, 0.5f, 0, 0},
      {"nesterov", SHOAL_NESTEROV, 0, 0.9f, 0, 0},
      {"adagrad", SHOAL_ADAGRAD, 0, 0, 0, 1e-10f},
      {"adagrad eps 1e-3", SHOAL_ADAGRAD, 0, 0, 0, 1e-3f},
      {"rmsprop", SHOAL_RMSPROP, 0, 0, 0.99f, 1e-8f},
      {"rmsprop beta2 0.5", SHOAL_RMSPROP, 0, 0, 0.5f, 1e-8f},
      {"adam beta1 0", SHOAL_ADAM, 0, 0, 0.999f, 1e-8f},
      {"adamw", SHOAL_ADAMW, 0, 0.9f, 0.999f, 1e-8f},
  };
  for (size_t i = 0; i < sizeof optimizers / sizeof optimizers[0]; i++) {
    char text[128];
    snprintf(text, sizeof text, NET "loss mean-squared\noptimizer %s", optimizers[i].line);
    shoal_model *model = parse(text);
    assert_int_equal(model->recipe.optimizer, optimizers[i].kind);
    assert_true(model->recipe.rate == optimizers[i].rate);
    assert_true(model->recipe.momentum == optimizers[i].momentum);
    assert_true(model->recipe.beta2 == optimizers[i].beta2);
    assert_true(model->recipe.eps == optimizers[i].eps);
    shoal_model_destroy(model);
  }
}

/* ---- set ---------------------------------------------------------------------------- */

static void set_good(shoal_model *model, const char *key, const char *value) {
  shoal_error err;
  if (shoal_model_set(model, "--flag", key, value, &err) != SHOAL_OK) fail_msg("%s", err.text);
}

static void set_changes_one_setting_and_leaves_the_others(void **state) {
  (void)state;
  shoal_model *model = parse(NET "loss cross-entropy\nbatch 32\nepochs 7");
  set_good(model, "epochs", "6");
  set_good(model, "class-weights", "balanced");
  set_good(model, "schedule", "cosine to 0.001");
  assert_int_equal(model->recipe.epochs, 6);
  assert_int_equal(model->recipe.batch, 32);
  assert_true(model->recipe.class_weights_balanced);
  assert_int_equal(model->recipe.schedule, SHOAL_SCHEDULE_COSINE);
  shoal_model_destroy(model);
}

static void another_optimiser_brings_its_own_defaults_but_keeps_a_rate_set_alone(void **state) {
  (void)state;
  shoal_model *model = parse(NET "loss cross-entropy\noptimizer momentum rate 0.5 momentum 0.7");
  set_good(model, "optimizer", "rmsprop");
  assert_true(model->recipe.rate == 0 && model->recipe.momentum == 0 && model->recipe.beta2 == 0.99f);
  set_good(model, "rate", "0.25");
  set_good(model, "optimizer", "adagrad");
  assert_true(model->recipe.rate == 0.25f && model->recipe.beta2 == 0 && model->recipe.eps == 1e-10f);
  set_good(model, "optimizer", "adam rate 0.125");
  assert_true(model->recipe.rate == 0.125f && model->recipe.eps == 1e-8f);
  shoal_model_destroy(model);
}

static void a_bad_value_names_the_flag_and_changes_nothing(void **state) {
  (void)state;
  static const struct {
    const char *key, *value, *message;
  } bad[] = {
      {"epochs", "six",
       "--flag: expected the number of epochs, a whole number from 1 to 1,000,000,000, found 'six'"},
      {"epochs", "",
       "--flag: expected the number of epochs, a whole number from 1 to 1,000,000,000, found nothing"},
      {"epochs", "   ", "--flag: expected the number of epochs"},
      {"epochs", "6 7", "--flag: expected the end of the line, found '7'"},
      {"epochs", "6\n7", "--flag: the value goes over more than one line"},
      {"epochs", "6\x01", "--flag: found the byte 0x01"},
      {"epoch", "6", "--flag: unknown setting 'epoch'; did you mean 'epochs'?"},
      {"dense", "6", "--flag: unknown setting 'dense'; it is one of loss, optimizer, "},
      {"rate", "-1", "--flag: expected the rate, a number above 0"},
      {"rate", "1 2", "--flag: expected the end of the line, found '2'"},
      {"optimizer", "adam rat 1", "--flag: unknown option 'rat'; did you mean 'rate'?"},
      {"loss", "mean-squared", "--flag: weights of classes need the loss cross-entropy, found mean-squared"},
      {"loss", "cross-entropy sum-steps", "--flag: sum-steps needs a sequence, but the last layer gives 3"},
      {"class-weights", "1 2", "--flag: 2 weights for 3 classes; there must be one for each"},
  };
  shoal_model *model = parse(NET "loss cross-entropy\nclass-weights 1 2 3\noptimizer sgd rate 0.5\nepochs 7");
  shoal_text before, after;
  shoal_text_init(&before);
  shoal_text_init(&after);
  shoal_model_write(model, &before);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    shoal_error err;
    assert_int_equal(shoal_model_set(model, "--flag", bad[i].key, bad[i].value, &err), SHOAL_INVALID);
    if (strncmp(err.text, bad[i].message, strlen(bad[i].message)) != 0)
      fail_msg("expected: %s\nfound: %s", bad[i].message, err.text);
    shoal_text_clear(&after);
    shoal_model_write(model, &after);
    assert_string_equal(after.bytes, before.bytes);
    assert_false(model->rate_set);
    assert_int_equal(shoal_model_set(model, "--flag", bad[i].key, bad[i].value, NULL), SHOAL_INVALID);
  }
  shoal_text_release(&before);
  shoal_text_release(&after);
  shoal_model_destroy(model);
}

/* ---- examples and writing ----------------------------------------------------------- */

static const char *const examples[] = {
    "lenet5.net",         "mlp-mnist.net",          "lstm-ptb.net",        "char-lstm.net",
    "resnet-cifar10.net", "vector-to-sequence.net", "encoder-decoder.net",
};

static void lenet5_has_the_shapes_of_the_thesis(void **state) {
  (void)state;
  static const char *const shapes[] = {"1x28x28", "20x24x24", "20x12x12", "50x8x8", "50x4x4", "500", "10"};
  shoal_model *model = load_example("lenet5.net");
  assert_int_equal(model->layers_count, 7);
  for (uint32_t i = 0; i < 7; i++) assert_shape(&model->layers[i], shapes[i]);
  assert_int_equal(model->layers[5].activation, SHOAL_ACT_TANH);
  assert_int_equal(model->recipe.loss, SHOAL_CROSS_ENTROPY);
  shoal_model_destroy(model);
}

static void every_example_ends_in_what_its_data_needs(void **state) {
  (void)state;
  static const char *const outputs[] = {
      "10", "10", "sequence 20x10000", "sequence 64x65", "10", "sequence 32x1", "sequence 8x16"};
  for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
    shoal_model *model = load_example(examples[i]);
    assert_shape(&model->layers[model->layers_count - 1], outputs[i]);
    shoal_model_destroy(model);
  }
}

/* Writing, reading and writing again ends where it began. */
static void assert_round_trip(const shoal_model *model) {
  shoal_text first, second;
  shoal_text_init(&first);
  shoal_text_init(&second);
  shoal_model_write(model, &first);
  shoal_model *again = parse(first.bytes);
  shoal_model_write(again, &second);
  assert_string_equal(first.bytes, second.bytes);
  assert_int_equal(again->layers_count, model->layers_count);
  for (uint32_t i = 0; i < model->layers_count; i++) {
    assert_string_equal(again->layers[i].name, model->layers[i].name);
    assert_true(shoal_shape_equal(&again->layers[i].shape, &model->layers[i].shape));
    assert_memory_equal(again->layers[i].inputs, model->layers[i].inputs, sizeof model->layers[i].inputs);
  }
  shoal_model_destroy(again);
  shoal_text_release(&first);
  shoal_text_release(&second);
}

static void every_example_and_layer_survives_writing(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
    shoal_model *model = load_example(examples[i]);
    assert_round_trip(model);
    shoal_model_destroy(model);
  }
  for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
    char text[256];
    snprintf(text, sizeof text, "input %s\n%s\ndense 2\nloss huber\n", layers[i].input, layers[i].line);
    shoal_model *model = parse(text);
    assert_round_trip(model);
    shoal_model_destroy(model);
  }
}

/* A row is a word with facts behind it, so that what is said of one here holds for those to come. */
static void every_optimiser_loss_and_activation_survives_writing_with_all_that_it_takes(void **state) {
  (void)state;
  char text[256];
  for (int kind = 0; shoal_optimizer_words[kind] != NULL; kind++) {
    const shoal_optimizer_row *row = &shoal_optimizer_rows[kind];
    assert_string_equal(row->fields[0].word, "rate");
    shoal_recipe wanted = {.optimizer = (shoal_update_kind)kind};
    assert_true(shoal_recipe_rate(&wanted) == row->rate);
    int used = snprintf(text, sizeof text, NET "loss huber\noptimizer %s", shoal_optimizer_words[kind]);
    for (int n = 0; row->fields[n].word != NULL; n++) {
      float value = 0.5f + 0.0625f * (float)n;
      memcpy((char *)&wanted + row->fields[n].place, &value, sizeof value);
      used += snprintf(text + used, sizeof text - (size_t)used, " %s %g", row->fields[n].word, value);
    }
    shoal_model *model = parse(text);
    const shoal_recipe *found = &model->recipe;
    assert_int_equal(found->optimizer, kind);
    assert_true(found->rate == wanted.rate && found->momentum == wanted.momentum);
    assert_true(found->beta2 == wanted.beta2 && found->eps == wanted.eps);
    assert_round_trip(model);
    shoal_text written = {0};
    shoal_model_write(model, &written);
    assert_non_null(strstr(written.bytes, strstr(text, "optimizer")));
    shoal_text_release(&written);
    shoal_model_destroy(model);
  }
  int losses = 0;
  while (shoal_loss_words[losses] != NULL) losses++;
  for (int i = 0; i < SHOAL_ACTIVATION_WORDS * losses; i++) {
    int a = i / losses, loss = i % losses;
    snprintf(text, sizeof text, "input 4\n%s\ndense 3\nloss %s%s\n", shoal_activation_words[a],
             shoal_loss_words[loss], shoal_loss_rows[loss].has_delta ? " delta 0.25" : "");
    shoal_model *model = parse(text);
    assert_int_equal(model->layers[1].activation, a);
    assert_int_equal(model->recipe.loss, loss);
    assert_true(model->recipe.huber_delta == (shoal_loss_rows[loss].has_delta ? 0.25f : 1));
    assert_round_trip(model);
    shoal_model_destroy(model);
  }
  assert_null(shoal_activation_words[SHOAL_ACTIVATION_WORDS]);
}

static void a_written_model_says_everything_in_the_shortest_way(void **state) {
  (void)state;
  shoal_model *model = parse("\xef\xbb\xbf# a comment, with an \xc3\xbcmlaut\r\n"
                             "seed 7\r\n"
                             "x: input   2x9x9   # an image\r\n"
                             "\tconv 2 3x3 pad same stride 2x1 relu init normal 0.0100\r\n"
                             "pool max 3x3 stride 3x3 \r\n"
                             "\n"
                             "y: flatten\n"
                             "conv 4 9x5 from x pad 0x0 no-bias stride 1 identity\n"
                             "dropout .25\n"
                             "dense 6\n"
                             "add y tanh\n"
                             "loss huber delta 3\n"
                             "optimizer adamw\nl2 0.1\nclip 0\nwarmup 0 scale 0032\nschedule cosine");
  static const char *const expected = "x: input 2x9x9\n"
                                      "conv 2 3x3 stride 2x1 pad 1 init normal 0.01 relu\n"
                                      "pool max 3x3\n"
                                      "y: flatten\n"
                                      "conv 4 9x5 no-bias from x\n"
                                      "dropout 0.25\n"
                                      "dense 6\n"
                                      "add y tanh\n"
                                      "loss huber delta 3\n"
                                      "optimizer adamw beta1 0.9 beta2 0.999 eps 1e-08\n"
                                      "schedule cosine to 0\n"
                                      "warmup 0 scale 32\n"
                                      "batch 64\n"
                                      "epochs 10\n"
                                      "seed 7\n"
                                      "l2 0.1\n";
  shoal_text written;
  shoal_text_init(&written);
  shoal_model_write(model, &written);
  assert_string_equal(written.bytes, expected);
  shoal_text_release(&written);
  shoal_model_destroy(model);
}

static void floats_are_written_so_that_they_read_back_the_same(void **state) {
  (void)state;
  static const char *const numbers[][2] = {
      {"0.1", "0.1"},
      {"0.10000000149011612", "0.1"},
      {"1e-8", "1e-08"},
      {"5", "5"},
      {"100000", "100000"},
      {"1e9", "1e+09"},
      {"0.333333333333", "0.33333334"},
      {"1.0", "1"},
      {"1e-45", "1e-45"},
      {"16777217", "16777216"},
  };
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    char text[128], expected[64];
    snprintf(text, sizeof text, NET "loss mean-squared\noptimizer sgd rate %s", numbers[i][0]);
    snprintf(expected, sizeof expected, "\noptimizer sgd rate %s\n", numbers[i][1]);
    shoal_model *model = parse(text);
    shoal_text written;
    shoal_text_init(&written);
    shoal_model_write(model, &written);
    if (!strstr(written.bytes, expected)) fail_msg("expected %s in %s", expected, written.bytes);
    assert_round_trip(model);
    shoal_text_release(&written);
    shoal_model_destroy(model);
  }
}

/* ---- limits that are not over ------------------------------------------------------- */

static void a_net_may_be_as_large_as_the_limits(void **state) {
  (void)state;
  shoal_text text;
  shoal_text_init(&text);
  shoal_text_addf(&text, "input 4\n");
  for (int i = 2; i < SHOAL_LAYERS_MAX; i++) shoal_text_addf(&text, "tanh\n");
  shoal_text_addf(&text, "dense %d\nloss cross-entropy\nclass-weights", SHOAL_CLASS_WEIGHTS_MAX);
  for (int i = 0; i < SHOAL_CLASS_WEIGHTS_MAX; i++) shoal_text_addf(&text, " 1.17549435e-%d", i % 39);
  shoal_model *model = parse(text.bytes);
  assert_int_equal(model->layers_count, SHOAL_LAYERS_MAX);
  assert_int_equal(model->recipe.class_weights_count, SHOAL_CLASS_WEIGHTS_MAX);
  assert_round_trip(model);
  shoal_model_destroy(model);
  shoal_text_release(&text);

  model = parse("input 1\nrepeat 2147483647\nflatten\ndense 1 no-bias\nloss mean-squared");
  assert_shape(&model->layers[2], "2147483647");
  shoal_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_layer_gets_its_fields_and_shape),
      cmocka_unit_test(only_an_input_that_says_carry_carries),
      cmocka_unit_test(branches_join_in_sums_and_concatenations),
      cmocka_unit_test(names_are_made_where_none_are_given),
      cmocka_unit_test(a_recipe_starts_from_the_defaults),
      cmocka_unit_test(every_setting_is_read),
      cmocka_unit_test(every_loss_is_read),
      cmocka_unit_test(every_schedule_is_read),
      cmocka_unit_test(every_optimiser_has_its_defaults_and_numbers),
      cmocka_unit_test(set_changes_one_setting_and_leaves_the_others),
      cmocka_unit_test(another_optimiser_brings_its_own_defaults_but_keeps_a_rate_set_alone),
      cmocka_unit_test(a_bad_value_names_the_flag_and_changes_nothing),
      cmocka_unit_test(lenet5_has_the_shapes_of_the_thesis),
      cmocka_unit_test(every_example_ends_in_what_its_data_needs),
      cmocka_unit_test(every_example_and_layer_survives_writing),
      cmocka_unit_test(every_optimiser_loss_and_activation_survives_writing_with_all_that_it_takes),
      cmocka_unit_test(a_written_model_says_everything_in_the_shortest_way),
      cmocka_unit_test(floats_are_written_so_that_they_read_back_the_same),
      cmocka_unit_test(a_net_may_be_as_large_as_the_limits),
  };
  return RUN_TESTS(tests);
}
