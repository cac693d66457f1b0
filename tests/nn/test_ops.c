/* Every row of the table of operations is whole, its words lead back to it, and what it computes is what the formulas
 * of reference.h give: outputs, losses and gradients, at awkward sizes.
 *
 * How far the engine may be from the formulas: a float is off by at most EPSILON of itself when it is rounded, so a
 * sum of T terms is off by at most T * EPSILON times the sum of their sizes. reference_terms counts such roundings
 * along the whole way to an output, or to an element of the gradient; as the size of what is added we take the expected
 * value's and, since terms may cancel, that of the largest of its kind:
 *
 *   |got - expected| <= terms * EPSILON * (|expected| + the largest |expected|)
 *
 * Roundings mostly cancel, so most errors are below a tenth of that; in a large value, a factor of 1.001 is seen. */
#include "check.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/far.h"
#include "nn/op.h"
#include "nn/trainer.h"
#include "reference.h"
#include "synthetic.h"

#define EPSILON ((double)FLT_EPSILON / 2)

enum { TEXTS_MAX = 16, WIDE = 40, WHOLE_TENSOR = 100, SAMPLED_OF_TENSOR = 50 };

/* A row needs at least one text, in which it has a line or a node. Where it passes a gradient on, something before it
 * learns. Texts with `carry` run two batches, one after the other. */
typedef struct row_texts {
  const char *word;
  const char *texts[TEXTS_MAX];
} row_texts;

static const row_texts ROWS[] = {
    {"input",
     {"input 1\ndense 1\nloss mean-squared\n", "input 3x1x1\ndense 2\nloss mean-squared\n",
      "input sequence 1x1\ndense 3\nloss cross-entropy\n",
      "input tokens 1\nembed 3 2\ndense 2\nloss mean-squared\n"}},
    {"dense",
     {"input 17\ndense 33 tanh\ndense 5 no-bias\nloss mean-squared\n",
      "input 41\ndense 33 gelu\ndense 2\nloss mean-squared\n",
      "input sequence 3x5\ndense 7 tanh\ndense 2\nloss mean-squared\n",
      "input 2x3x5\ndense 4 tanh\ndense 3\nloss cross-entropy\n",
      "input 1x4x3\nconv 3 2x2 tanh\ndense 5 tanh\ndense 1\nloss mean-squared\n"}},
    {"conv",
     {"input 1x1x1\nconv 1 1x1\nflatten\nloss mean-squared\n",
      "input 2x6x5\nconv 3 3x3 tanh\ndense 4\nloss cross-entropy\n",
      "input 3x5x4\nconv 5 3x2 stride 2 pad 1 tanh\nconv 4 2x2 no-bias\ndense 3\nloss mean-squared\n",
      "input 2x7x9\nconv 3 2x2 tanh\nconv 3 2x1 stride 3x4 tanh\ndense 2\nloss mean-squared\n",
      "input 1x3x3\nconv 2 5x5 pad same tanh\nconv 3 1x1\nflatten\nloss mean-squared\n",
      /* and in Winograd's way */
      "input 3x4x3\nconv 8 1x1 tanh\nconv 9 3x3 pad same tanh\nglobal-pool average\ndense 3\nloss "
      "cross-entropy\n",
      "input 1x6x7\nconv 9 2x2 tanh\nconv 8 3x3 no-bias\nglobal-pool average\nloss mean-squared\n",
      "input 2x6x5\nconv 8 1x1 tanh\nconv 8 5x5 pad same tanh\nglobal-pool average\ndense 3\nloss "
      "mean-squared\n"}},
    {"pool",
     {"input 1x2x2\nconv 3 2x2\npool max 1x1\nflatten\nloss mean-squared\n",
      "input 2x6x5\nconv 3 2x2 pad 1 tanh\npool max 2x2\ndense 3\nloss mean-squared\n",
      "input 2x6x5\nconv 3 2x2\npool min 3x3 stride 2 pad 1\ndense 3\nloss mean-squared\n",
      "input 2x6x5\nconv 3 2x2 gelu\npool max 3x2 stride 1 pad 2x1\ndense 3\nloss mean-squared\n",
      "input 2x7x6\nconv 3 2x2\npool max 2x1 stride 3x2\ndense 3\nloss mean-squared\n",
      "input 2x6x5\nconv 3 2x2\npool average 3x3 stride 2 pad 1\ndense 3\nloss mean-squared\n",
      "input 2x5x5\nconv 3 2x2\npool average 2x2 stride 3\ndense 3\nloss mean-squared\n",
      "input 2x5x5\nconv 3 2x2\npool average 2x2\ndense 3\nloss mean-squared\n"}},
    {"global-pool",
     {"input 2x1x1\nconv 3 1x1\nglobal-pool max\nloss mean-squared\n",
      "input 2x4x5\nconv 3 2x2 tanh\nglobal-pool max\ndense 3\nloss cross-entropy\n",
      "input 2x4x5\nconv 3 2x2 tanh\nglobal-pool min\ndense 3\nloss cross-entropy\n",
      "input 2x4x5\nconv 3 2x2 tanh\nglobal-pool average\ndense 3\nloss cross-entropy\n"}},
    {"flatten",
     {"input 2x3x5\nconv 3 2x2 tanh\nflatten\ndense 2\nloss mean-squared\n",
      "input sequence 3x5\nrnn 3\nflatten\ndense 2\nloss mean-squared\n"}},
    {"reshape",
     {"input 5\ndense 12 tanh\nreshape 3x2x2\nconv 2 2x2\nflatten\nloss mean-squared\n",
      "input 5\ndense 12 tanh\nreshape sequence 4x3\nrnn 3\ndense 2\nloss mean-squared\n",
      "input 2x3x4\nconv 3 2x2 tanh\nreshape sequence 2x9\ndense 2\nloss mean-squared\n",
      "input sequence 3x5\ndense 4 tanh\nreshape 2x3x2\nconv 3 2x2\nflatten\nloss mean-squared\n"}},
    {"embed",
     {"input tokens 1\nembed 1 1\nflatten\nloss mean-squared\n",
      "input tokens 5\nembed 11 17\ndense 3\nloss cross-entropy\n"}},
    {"lookup",
     {"input 7\nlookup 5 3 of 2\ndense 4 tanh\ndense 3\nloss mean-squared\n",
      "input 4\nlookup 6 17 of 4 tanh\ndense 3\nloss cross-entropy\n",
      "x: input 3\na: lookup 9 1 of 1\nb: lookup 5 2 of 1 from x\nconcat a x\nloss mean-squared\n"}},
    {"rnn",
     {"input sequence 1x1\nrnn 1\nloss mean-squared\n",
      "input sequence 4x3\ndense 2\nrnn 5 relu\ndense 2\nloss mean-squared\n",
      "input sequence 3x3\nrnn 4 layers 2 bidirectional\ndense 2\nloss mean-squared\n",
      "input tokens 3 carry\nembed 7 2\nrnn 3 layers 2\ndense 7\nloss cross-entropy\n"}},
    {"lstm",
     {"input sequence 1x1\nlstm 1\nloss mean-squared\n",
      "input sequence 4x3\ndense 2\nlstm 5\ndense 2\nloss mean-squared\n",
      "input sequence 3x3\nlstm 4 layers 2 bidirectional tanh\ndense 2\nloss mean-squared\n",
      "input tokens 3 carry\nembed 7 2\nlstm 3 layers 2\ndense 7\nloss cross-entropy\n"}},
    {"gru",
     {"input sequence 1x1\ngru 1\nloss mean-squared\n",
      "input sequence 4x3\ndense 2\ngru 5\ndense 2\nloss mean-squared\n",
      "input sequence 3x3\ngru 4 layers 2 bidirectional\ndense 2\nloss mean-squared\n",
      "input tokens 3 carry\nembed 7 2\ngru 3 layers 2\ndense 7\nloss cross-entropy\n"}},
    {"last",
     {"input sequence 1x3\nrnn 5 last\nloss mean-squared\n",
      "input sequence 4x3\nlstm 3 bidirectional last\ndense 2\nloss mean-squared\n",
      "input tokens 3 carry\nembed 5 2\ngru 3 last\ndense 2\nloss mean-squared\n"}},
    {"repeat",
     {"input 3\ndense 2\nrepeat 1\nloss mean-squared\n",
      "input 3\ndense 3 tanh\nrepeat 4\ngru 3\ndense 2\nloss mean-squared\n"}},
    {"dropout",
     {"input 7\ndense 17 tanh\ndropout 0.4\ndense 3\nloss mean-squared\n",
      "input 2x3x5\nconv 3 2x2 tanh\ndropout 0.3\ndense 3\nloss mean-squared\n",
      "input sequence 3x5\ndropout 0.2\nrnn 3\ndropout 0.5\ndense 2\nloss mean-squared\n",
      "input 3\ndense 5\ndropout 0\ndense 2\nloss mean-squared\n"}},
    {"batchnorm",
     {"input 5\ndense 7\nbatchnorm tanh\ndense 3\nloss mean-squared\n",
      "input 2x3x5\nconv 3 2x2\nbatchnorm tanh\ndense 3\nloss mean-squared\n",
      "input 2x1x1\nbatchnorm\ndense 3\nloss mean-squared\n",
      "input sequence 4x3\nrnn 5\nbatchnorm\ndense 2\nloss mean-squared\n",
      "input 5\ndense 7\nbatchnorm batch tanh\ndense 3\nloss mean-squared\n",
      "input 2x3x5\nconv 3 2x2\nbatchnorm tanh batch\ndense 3\nloss mean-squared\n"}},
    {"layernorm",
     {"input 5\ndense 17\nlayernorm tanh\ndense 3\nloss mean-squared\n",
      "input 2x3x5\nconv 3 2x2\nlayernorm tanh\ndense 3\nloss mean-squared\n",
      "input 3x1x1\nlayernorm\ndense 3\nloss mean-squared\n",
      "input sequence 4x3\nrnn 5\nlayernorm\ndense 2\nloss mean-squared\n"}},
    {"add",
     {"input 5\na: dense 3 tanh\nb: dense 3 tanh\nadd a tanh\nadd b\ndense 2\nloss mean-squared\n",
      "input 2x3x5\na: conv 3 2x2 tanh\nb: conv 3 3x3 pad 1 tanh\nc: conv 3 1x1\nadd a b\ndense 2\nloss "
      "mean-squared\n",
      "input sequence 3x3\na: rnn 3\ngru 3\nadd a\ndense 2\nloss mean-squared\n"}},
    {"concat",
     {"input 5\na: dense 3 tanh\nb: dense 4 tanh from a\nconcat a\ndense 2\nloss mean-squared\n",
      "input 2x3x5\na: conv 3 3x3 pad 1 tanh\nconv 2 1x1 tanh\nconcat a\nconv 2 2x2\nflatten\nloss "
      "mean-squared\n",
      "input sequence 3x3\na: rnn 5\ngru 4\nconcat a\ndense 2\nloss mean-squared\n"}},
    {"activation", {"input 3\ndense 2\ntanh\ndense 2\nloss mean-squared\n"}}, /* and below */
};

/* Every activation, as the last word of the second line, and every loss, as the last line. */
static const char *const WITH_ACTIVATION[] = {
    "input 5\ndense 17 %s\ndense 3\nloss mean-squared\n",
    "input sequence 3x2\ndense 4 %s\ndense 3\nloss mean-squared\n",
};
static const char *const WITH_LOSS[] = {
    "input 5\ndense 17\nloss %s\n",
    "input 5\ndense 2\nloss %s\n",
    "input sequence 3x2\ndense 4\nloss %s\n",
    "input sequence 3x2\ndense 4\nloss %s sum-steps\n",
};
static const char *const MORE_LOSSES[] = {
    "input 5\ndense 3\nloss huber delta 0.3\n",
    "input 5\ndense 3 softmax\nloss cross-entropy\n",
    "input 5\ndense 3 sigmoid\nloss binary-cross-entropy\n",
    "input 5\ndense 3 softmax\nloss mean-squared\n",
};

static const uint32_t SAMPLES[] = {1, 3, 17, 33};
enum { SIZES = sizeof SAMPLES / sizeof SAMPLES[0] };

/* ---- what runs ---- */

typedef struct net {
  shoal_model *model;
  shoal_graph *graph;
  float *weights;
  uint32_t n, rounds; /* samples of a batch, and batches */
  synthetic data;
  shoal_source source;
} net;

/* What an engine makes of a net: of the last batch, but for the losses. */
typedef struct outcome {
  float *predictions; /* n x values: samples outermost */
  float *gradient;    /* as long as the weights */
  double mean_loss;   /* of all batches, as in a prediction */
  double loss_sum;    /* in training */
} outcome;

static void *reserve(size_t count, size_t size) {
  void *memory = calloc(count > 0 ? count : 1, size);
  assert_non_null(memory);
  return memory;
}

static const shoal_shape *output_shape(const net *made) {
  return &made->graph->nodes[made->graph->nodes_count - 1].shape;
}

/* Answers of all weights, some of them 0. Wide vectors are mostly zeros, as categories make them: dense has a way of its
 * own for those. */
static void fetch(const void *self, uint64_t epoch, uint64_t first, uint32_t n, const shoal_batch *into) {
  static const float weights[] = {1, 0.5f, 2, 0, 1};
  const synthetic *data = self;
  synthetic_fetch(self, epoch, first, n, into);
  const shoal_shape *in = &data->graph->nodes[0].shape;
  for (size_t e = 0; in->kind == SHOAL_VECTOR && in->features >= WIDE && e < (size_t)n * in->features; e++)
    if ((first + e / in->features + e % in->features) % 10 != 0) into->x[e] = 0;
  uint32_t steps = data->graph->nodes[data->graph->nodes_count - 1].shape.steps;
  for (uint32_t t = 0; t < steps; t++)
    for (uint32_t i = 0; i < n; i++) into->weight[t * n + i] = weights[(first + i + 2 * t) % 5];
}

static void open_net(net *made, const char *text, uint32_t n) {
  shoal_error err = {0};
  *made = (net){.n = n};
  if (shoal_model_parse(&made->model, "test", text, strlen(text), &err) != SHOAL_OK)
    fail_msg("%s\n%s", err.text, text);
  made->model->recipe.shards = 1; /* batch normalisation takes the statistics of a shard */
  if (shoal_graph_create(&made->graph, made->model, &err) != SHOAL_OK) fail_msg("%s\n%s", err.text, text);
  made->rounds = made->model->carry ? 2 : 1;
  made->data = (synthetic){.graph = made->graph, .seed = 5};
  made->source = (shoal_source){.self = &made->data, .samples = (uint64_t)n * made->rounds, .fetch = fetch};
  made->weights = reserve(made->graph->weights_count, sizeof *made->weights);
  shoal_graph_init_weights(made->graph, 1, made->weights);
  /* Biases off zero, so that nothing is right by luck. */
  for (size_t i = 0; i < made->graph->weights_count; i++)
    made->weights[i] += 0.2f * shoal_random_uniform(shoal_key_make(3, SHOAL_FOR_TOY, 0, 0), i);
}

static void close_net(net *made) {
  free(made->weights);
  shoal_graph_destroy(made->graph);
  shoal_model_destroy(made->model);
}

static void open_outcome(outcome *out, const net *made) {
  *out = (outcome){.predictions = reserve(made->n * shoal_shape_values(output_shape(made)), sizeof(float)),
                   .gradient = reserve(made->graph->weights_count, sizeof(float))};
}

static void close_outcome(outcome *out) {
  free(out->predictions);
  free(out->gradient);
}

/* The one place that knows what is tested. A device of NULL is the processor. */
static void run_engine(const net *made, const shoal_device *device, outcome *out) {
  shoal_error err = {0};
  shoal_trainer *t = NULL;
  const shoal_shape *shape = output_shape(made);
  uint32_t n = made->n, steps = shape->steps, width = shape->features;
  shoal_trainer_config config = {
      .graph = made->graph, .device = device, .threads = 1, .batch = n, .samples = made->source.samples};
  if (shoal_trainer_create(&t, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
  memcpy(shoal_trainer_state(t)->weights, made->weights, made->graph->weights_count * sizeof(float));
  shoal_trainer_place(t);
  out->mean_loss = shoal_trainer_evaluate(t, &made->source).loss;
  shoal_trainer_reset_carry(t);
  float *rows = reserve((size_t)steps * n * width, sizeof *rows); /* steps outermost */
  for (uint32_t round = 0; round < made->rounds; round++) {
    shoal_sums sums;
    shoal_trainer_predict(t, &made->source, (uint64_t)round * n, n, rows);
    shoal_trainer_node(t, made->weights, &made->source, 0, round, 0, 1, out->gradient, &sums);
    out->loss_sum = sums.loss;
  }
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t s = 0; s < steps; s++)
      memcpy(out->predictions + ((size_t)i * steps + s) * width, rows + ((size_t)s * n + i) * width,
             width * sizeof *rows);
  free(rows);
  shoal_trainer_destroy(t);
}

/* ---- the comparison ---- */

/* The largest error, as a share of what is allowed. */
static double worst_error(size_t count, const double *expected, const float *got, double terms) {
  double largest = 0, worst = 0;
  for (size_t i = 0; i < count; i++) largest = fmax(largest, fabs(expected[i]));
  for (size_t i = 0; i < count; i++) {
    double error = fabs((double)got[i] - expected[i]),
           allowed = terms * EPSILON * (fabs(expected[i]) + largest);
    if (!(error <= 0)) worst = fmax(worst, isfinite(error) && allowed > 0 ? error / allowed : INFINITY);
  }
  return worst;
}

/* What an outcome should be. Of a large parameter's gradient only some elements are known, taken at random: each costs
 * two runs of the formulas. */
typedef struct expectation {
  double *predictions, *slopes;
  size_t predictions_count, slopes_count;
  size_t *weights; /* where the slopes are in the gradient */
  double mean_loss, loss_sum;
  double terms, terms_backward;
} expectation;

static void expect_slopes(const net *made, reference *r, expectation *e) {
  for (uint32_t i = 0; i < made->graph->params_count; i++) {
    const shoal_param *p = &made->graph->params[i];
    bool whole = p->count <= WHOLE_TENSOR;
    shoal_key key = shoal_key_make(11, SHOAL_FOR_TOY, i, made->n);
    for (size_t k = 0; k < (whole ? p->count : SAMPLED_OF_TENSOR); k++) {
      size_t weight = p->offset + (whole ? k : (size_t)shoal_random_below(key, k, p->count));
      e->weights[e->slopes_count] = weight;
      e->slopes[e->slopes_count++] = reference_slope(r, weight);
    }
  }
}

static void open_expectation(expectation *e, const net *made) {
  size_t elements = made->graph->weights_count + (size_t)made->graph->params_count * SAMPLED_OF_TENSOR;
  *e = (expectation){.predictions_count = made->n * shoal_shape_values(output_shape(made))};
  e->predictions = reserve(e->predictions_count, sizeof *e->predictions);
  e->slopes = reserve(elements, sizeof *e->slopes);
  e->weights = reserve(elements, sizeof *e->weights);
  reference *predicting = reference_create(made->graph, made->weights, made->n, false);
  reference *training = reference_create(made->graph, made->weights, made->n, true);
  double sum = 0, weight = 0;
  for (uint32_t round = 0; round < made->rounds; round++) {
    reference_batch(predicting, &made->source, 0, (uint64_t)round * made->n);
    reference_batch(training, &made->source, 0, (uint64_t)round * made->n);
    sum += reference_loss_of(predicting).sum;
    weight += reference_loss_of(predicting).weight;
  }
  e->mean_loss = sum / weight;
  e->loss_sum = reference_loss_of(training).sum;
  e->terms = reference_terms(predicting, false);
  e->terms_backward = reference_terms(training, true);
  reference_predictions(predicting, e->predictions);
  expect_slopes(made, training, e);
  reference_destroy(predicting);
  reference_destroy(training);
}

static void close_expectation(expectation *e) {
  free(e->predictions);
  free(e->slopes);
  free(e->weights);
}

typedef struct errors {
  double predictions, losses, gradient; /* as shares of what is allowed */
} errors;

static errors compare(const expectation *e, const outcome *got) {
  float *gradient = reserve(e->slopes_count, sizeof *gradient);
  for (size_t i = 0; i < e->slopes_count; i++) gradient[i] = got->gradient[e->weights[i]];
  const float mean_loss = (float)got->mean_loss, loss_sum = (float)got->loss_sum;
  errors worst = {worst_error(e->predictions_count, e->predictions, got->predictions, e->terms),
                  fmax(worst_error(1, &e->mean_loss, &mean_loss, e->terms),
                       worst_error(1, &e->loss_sum, &loss_sum, e->terms_backward)),
                  worst_error(e->slopes_count, e->slopes, gradient, e->terms_backward)};
  free(gradient);
  return worst;
}

static bool within(errors e) { return e.predictions <= 1 && e.losses <= 1 && e.gradient <= 1; }

static void check_outcome(const expectation *e, const outcome *got, const net *made, const char *text) {
  errors found = compare(e, got);
  if (!within(found))
    fail_msg("with %u samples the errors of outputs, losses and gradient are %g, %g and %g times what is "
             "allowed:\n%s",
             made->n, found.predictions, found.losses, found.gradient, text);
}

static bool same_bits(const net *made, const outcome *a, const outcome *b) {
  size_t predictions = made->n * shoal_shape_values(output_shape(made)) * sizeof(float);
  return memcmp(a->predictions, b->predictions, predictions) == 0 &&
         memcmp(a->gradient, b->gradient, made->graph->weights_count * sizeof(float)) == 0 &&
         memcmp(&a->mean_loss, &b->mean_loss, sizeof a->mean_loss) == 0 &&
         memcmp(&a->loss_sum, &b->loss_sum, sizeof a->loss_sum) == 0;
}

/* On the processor, and on a device whose memory the host cannot touch. */
static void check_text(const char *text) {
  for (int i = 0; i < SIZES; i++) {
    net made;
    outcome near, beyond;
    expectation e;
    open_net(&made, text, SAMPLES[i]);
    open_outcome(&near, &made);
    open_outcome(&beyond, &made);
    open_expectation(&e, &made);
    run_engine(&made, NULL, &near);
    check_outcome(&e, &near, &made, text);
    run_engine(&made, far_open(FAR_SOUND, 0), &beyond);
    far_close();
    check_outcome(&e, &beyond, &made, text);
    if (!same_bits(&made, &near, &beyond)) fail_msg("the devices' bits differ:\n%s", text);
    close_expectation(&e);
    close_outcome(&near);
    close_outcome(&beyond);
    close_net(&made);
  }
}

/* ---- the tests ---- */

static void words_are_unique_and_lead_to_their_rows(void **state) {
  (void)state;
  for (uint32_t i = 0; i < shoal_ops_count; i++) {
    const shoal_op *op = shoal_ops[i];
    assert_ptr_equal(shoal_op_named(op->word, strlen(op->word)), op->is_inner ? NULL : op);
    for (uint32_t j = 0; j < i; j++) assert_string_not_equal(op->word, shoal_ops[j]->word);
  }
  assert_null(shoal_op_named("dens", 4));
  assert_null(shoal_op_named("", 0));
}

/* A row that makes nodes can compute, learn and be exported. One that only stands for a line makes nodes of others. */
static void rows_are_whole(void **state) {
  (void)state;
  for (uint32_t i = 0; i < shoal_ops_count; i++) {
    const shoal_op *op = shoal_ops[i];
    bool learns = op->backward != NULL || shoal_op_is(op, SHOAL_OP_PASSES_GRADIENT | SHOAL_OP_INPUT);
    assert_true(op->forward != NULL ? op->onnx != NULL && learns : op->lower != NULL && op->backward == NULL);
    assert_true((op->read == NULL) == (op->write == NULL));
  }
}

static const row_texts *texts_of(const char *word) {
  for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
    if (strcmp(ROWS[i].word, word) == 0) return &ROWS[i];
  fail_msg("no text of this test has the operation '%s'", word);
  return NULL;
}

static bool has_row(const net *made, const shoal_op *op) {
  for (uint32_t i = 0; i < made->model->layers_count; i++)
    if (made->model->layers[i].op == op) return true;
  for (uint32_t i = 0; i < made->graph->nodes_count; i++)
    if (made->graph->nodes[i].op == op) return true;
  return false;
}

static void every_row_computes_what_its_formula_says(void **state) {
  (void)state;
  for (uint32_t i = 0; i < shoal_ops_count; i++) {
    const row_texts *row = texts_of(shoal_ops[i]->word);
    for (int k = 0; k < TEXTS_MAX && row->texts[k] != NULL; k++) {
      net made;
      open_net(&made, row->texts[k], 1);
      if (!has_row(&made, shoal_ops[i])) fail_msg("no '%s' in\n%s", shoal_ops[i]->word, row->texts[k]);
      close_net(&made);
      check_text(row->texts[k]);
    }
  }
}

static void convolutions_are_computed_both_ways(void **state) {
  (void)state;
  uint32_t direct = 0, winograd3 = 0, winograd5 = 0;
  for (int k = 0; k < TEXTS_MAX && texts_of("conv")->texts[k] != NULL; k++) {
    net made;
    open_net(&made, texts_of("conv")->texts[k], 1);
    for (uint32_t i = 0; i < made.graph->nodes_count; i++) {
      const shoal_node *node = &made.graph->nodes[i];
      if (strcmp(node->op->word, "conv") != 0) continue;
      *(!shoal_winograd_suits(&node->window) ? &direct
        : node->window.k_h == 3              ? &winograd3
                                             : &winograd5) += 1;
    }
    close_net(&made);
  }
  assert_true(direct > 0 && winograd3 > 0 && winograd5 > 0);
}

/* The texts have one place for a word. */
static void check_with(const char *const *texts, size_t count, const char *word) {
  for (size_t i = 0; i < count; i++) {
    char text[200];
    const char *place = strstr(texts[i], "%s");
    assert_non_null(place);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(place - texts[i]), texts[i], word, place + 2);
    check_text(text);
  }
}

static void every_activation_computes_what_its_formula_says(void **state) {
  (void)state;
  for (int a = 0; shoal_activation_words[a] != NULL; a++)
    check_with(WITH_ACTIVATION, sizeof WITH_ACTIVATION / sizeof WITH_ACTIVATION[0],
               shoal_activation_words[a]);
}

static void every_loss_computes_what_its_formula_says(void **state) {
  (void)state;
  for (int l = 0; shoal_loss_words[l] != NULL; l++)
    check_with(WITH_LOSS, sizeof WITH_LOSS / sizeof WITH_LOSS[0], shoal_loss_words[l]);
  for (size_t i = 0; i < sizeof MORE_LOSSES / sizeof MORE_LOSSES[0]; i++) check_text(MORE_LOSSES[i]);
}

static size_t largest_of(size_t count, const double *x) {
  size_t largest = 0;
  for (size_t i = 0; i < count; i++)
    if (fabs(x[i]) > fabs(x[largest])) largest = i;
  return largest;
}

/* The comparison sees an error of a thousandth in one output, in one element of the gradient, or in the loss. */
static void a_small_error_is_noticed(void **state) {
  (void)state;
  const float wrong = 1.001f;
  for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
    for (int k = 0; k < TEXTS_MAX && ROWS[i].texts[k] != NULL; k++) {
      net made;
      outcome got;
      expectation e;
      open_net(&made, ROWS[i].texts[k], 3);
      open_outcome(&got, &made);
      open_expectation(&e, &made);
      run_engine(&made, NULL, &got);
      assert_true(within(compare(&e, &got)));
      float *output = &got.predictions[largest_of(e.predictions_count, e.predictions)], right = *output;
      *output *= wrong;
      assert_true(compare(&e, &got).predictions > 1);
      *output = NAN;
      assert_true(compare(&e, &got).predictions > 1);
      *output = right;
      float *slope = &got.gradient[e.weights[largest_of(e.slopes_count, e.slopes)]];
      right = *slope;
      *slope *= wrong;
      assert_true(compare(&e, &got).gradient > 1);
      *slope = right;
      got.loss_sum *= wrong;
      assert_true(compare(&e, &got).losses > 1);
      close_expectation(&e);
      close_outcome(&got);
      close_net(&made);
    }
}

/* ---- planted errors ---- */

/* Runs on the far device with a fault; whether the comparison sees it. */
static bool is_seen(const net *made, const expectation *e, far_fault fault, uint64_t at) {
  outcome got;
  open_outcome(&got, made);
  run_engine(made, far_open(fault, at), &got);
  far_close();
  bool seen = !within(compare(e, &got));
  close_outcome(&got);
  return seen;
}

/* An operation whose values are off by a thousandth: the row that stands in for the right one, in all of its nodes. */
static struct {
  const shoal_op *right;
  shoal_op wrong;
  bool backward;
  uint64_t wrongs; /* how often it was wrong */
} planted;

static void spoil(const shoal_call *c, size_t floats, float *values) {
  c->kernels->add_scaled(floats, values, 1e-3f, values, values);
  planted.wrongs++;
}

/* The right row does the work: operations of a family ask a node which of them it is. */
static void do_right(const shoal_call *c, void (*work)(const shoal_call *call)) {
  shoal_node *node = (shoal_node *)(uintptr_t)c->node;
  node->op = planted.right;
  work(c);
  node->op = &planted.wrong;
}

static size_t right_saved(const shoal_node *node, uint32_t n) {
  shoal_node right = *node;
  right.op = planted.right;
  return planted.right->saved(&right, n);
}

static size_t right_scratch(const shoal_node *node, const shoal_kernels *k, uint32_t n, bool backward) {
  shoal_node right = *node;
  right.op = planted.right;
  return planted.right->scratch(&right, k, n, backward);
}

static void wrong_forward(const shoal_call *c) {
  do_right(c, planted.right->forward);
  if (!planted.backward) spoil(c, shoal_call_floats(c, c->out), c->y);
}

static void wrong_backward(const shoal_call *c) {
  do_right(c, planted.right->backward);
  if (!planted.backward) return;
  for (uint32_t k = 0; k < c->node->inputs_count; k++) {
    const shoal_shape *in = &c->exec->plan->graph->nodes[c->node->inputs[k]].shape;
    if (c->dx[k] != NULL) spoil(c, shoal_call_floats(c, in), c->dx[k]);
  }
  for (int k = 0; k < SHOAL_NODE_PARAMS_MAX; k++)
    if (c->node->params[k] != SHOAL_NO_PARAM)
      spoil(c, c->exec->plan->graph->params[c->node->params[k]].count, shoal_call_gradient(c, k));
}

/* Whether an error planted in the row's forward or backward pass is seen, where the text has it do something: then *ran
 * grows. */
static bool sees_planted(const net *made, const expectation *e, const shoal_op *op, bool backward, int *ran) {
  planted.right = op;
  planted.wrong = *op;
  planted.wrongs = 0;
  if (op->saved != NULL) planted.wrong.saved = right_saved;
  if (op->scratch != NULL) planted.wrong.scratch = right_scratch;
  planted.backward = backward;
  planted.wrong.forward = wrong_forward;
  if (op->backward != NULL) planted.wrong.backward = wrong_backward;
  for (uint32_t i = 0; i < made->graph->nodes_count; i++)
    if (made->graph->nodes[i].op == op) made->graph->nodes[i].op = &planted.wrong;
  bool seen = is_seen(made, e, FAR_SOUND, 0);
  for (uint32_t i = 0; i < made->graph->nodes_count; i++)
    if (made->graph->nodes[i].op == &planted.wrong) made->graph->nodes[i].op = op;
  *ran += planted.wrongs > 0;
  return seen || planted.wrongs == 0;
}

static bool computes(const shoal_op *op) { return op->forward != NULL && !shoal_op_is(op, SHOAL_OP_INPUT); }

/* In the order of copies: the state, of create and of the test, then the first tile's samples, their numbers where the
 * text draws random ones, the answers and their weights;
 * the last one brings the gradient out. Words and classes that were not copied are no numbers of anything. */
/* ran: how many texts so far had the row run forward, and backward. */
static void check_planted(const char *text, const shoal_op *op, int ran[2]) {
  net made;
  expectation e;
  open_net(&made, text, 3);
  open_expectation(&e, &made);
  if (is_seen(&made, &e, FAR_SOUND, 0)) fail_msg("the sound device is wrong:\n%s", text);
  bool tokens = made.graph->nodes[0].shape.kind == SHOAL_TOKENS,
       labels = made.model->recipe.loss == SHOAL_CROSS_ENTROPY;
  uint64_t tile = made.model->carry ? 4 : 2; /* where copies of the first tile begin */
  uint64_t answers = tile + 1 + shoal_graph_has(made.graph, SHOAL_OP_RANDOM);
  if (!tokens && !is_seen(&made, &e, FAR_DROPS_COPY_IN, tile)) fail_msg("samples are missing:\n%s", text);
  if (!labels && !is_seen(&made, &e, FAR_DROPS_COPY_IN, answers)) fail_msg("answers are missing:\n%s", text);
  if (!is_seen(&made, &e, FAR_DROPS_COPY_IN, answers + 1)) fail_msg("weights are missing:\n%s", text);
  if (!is_seen(&made, &e, FAR_DROPS_COPY_OUT, far_last_count().out - 1))
    fail_msg("the gradient is missing:\n%s", text);
  if (computes(op) && !sees_planted(&made, &e, op, false, &ran[0]))
    fail_msg("%s is wrong forward:\n%s", op->word, text);
  if (op->backward != NULL && !sees_planted(&made, &e, op, true, &ran[1]))
    fail_msg("%s is wrong backward:\n%s", op->word, text);
  close_expectation(&e);
  close_net(&made);
}

static void a_device_that_errs_is_noticed(void **state) {
  (void)state;
  for (uint32_t i = 0; i < shoal_ops_count; i++) {
    const row_texts *row = texts_of(shoal_ops[i]->word);
    int ran[2] = {0};
    for (int k = 0; k < TEXTS_MAX && row->texts[k] != NULL; k++)
      check_planted(row->texts[k], shoal_ops[i], ran);
    if (computes(shoal_ops[i]) && ran[0] == 0) fail_msg("no text runs %s forward", shoal_ops[i]->word);
    if (shoal_ops[i]->backward != NULL && ran[1] == 0)
      fail_msg("no text runs %s backward", shoal_ops[i]->word);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(words_are_unique_and_lead_to_their_rows),
      cmocka_unit_test(rows_are_whole),
      cmocka_unit_test(every_row_computes_what_its_formula_says),
      cmocka_unit_test(convolutions_are_computed_both_ways),
      cmocka_unit_test(every_activation_computes_what_its_formula_says),
      cmocka_unit_test(every_loss_computes_what_its_formula_says),
      cmocka_unit_test(a_small_error_is_noticed),
      cmocka_unit_test(a_device_that_errs_is_noticed),
  };
  return RUN_TESTS(tests);
}
