/* Every layer, activation and loss against finite differences.
 *
 * For each parameter tensor the loss is measured a little to both sides along the
 * gradient, and along a random direction; the slope must be what the gradient says.
 * Values are single precision, and relu and pooling have kinks, so the bound is 1% of the
 * slope and of the norm; the
 * comparison with PyTorch under `make interop` is the sharp one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "gradient.h"
#include "synthetic.h"

static const char *const models[] = {
    "input 7\ndense 5\nloss mean-squared\n",
    "input 7\ndense 5 no-bias\nloss mean-absolute\n",
    "input 7\ndense 5\nloss huber delta 0.5\n",
    "input 7\ndense 5\nloss cross-entropy\n",
    "input 7\ndense 5 softmax\nloss cross-entropy\n",
    "input 7\ndense 3\nloss binary-cross-entropy\n",
    "input 7\ndense 6 sigmoid\ndense 3\nloss mean-squared\n",
    "input 7\ndense 6 tanh\ndense 3\nloss mean-squared\n",
    "input 7\ndense 16 relu\ndense 3\nloss mean-squared\n",
    "input 7\ndense 16 leaky-relu\ndense 3\nloss mean-squared\n",
    "input 7\ndense 6 elu\ndense 3\nloss mean-squared\n",
    "input 7\ndense 6 gelu\ndense 3\nloss mean-squared\n",
    "input 7\ndense 6 silu\ndense 3\nloss mean-squared\n",
    "input 7\ndense 6 softplus\ndense 3\nloss mean-squared\n",
    "input 7\ndense 6 softmax\ndense 3\nloss mean-squared\n",
    "input 7\ndense 6\nidentity\ndense 3\nloss mean-squared\n",
    "input 2x6x5\nconv 3 3x3 tanh\ndense 4\nloss cross-entropy\n",
    "input 2x7x6\nconv 3 3x2 stride 2 pad 1 tanh\nconv 4 2x2 no-bias\nflatten\ndense 4\nloss cross-entropy\n",
    "input 8x6x7\nconv 9 3x3 pad same tanh\nconv 8 3x3\nflatten\ndense 3\nloss cross-entropy\n",
    "input 8x6x8\nconv 9 5x5 pad same tanh\nconv 8 5x5 pad 1\nflatten\ndense 3\nloss cross-entropy\n",
    "input 2x8x8\nconv 3 3x3 pad same tanh\npool max 2x2\ndense 4\nloss cross-entropy\n",
    "input 2x8x8\nconv 3 3x3 tanh\npool min 3x3 stride 2\ndense 4\nloss cross-entropy\n",
    "input 2x8x8\nconv 3 3x3 tanh\npool average 3x3 stride 2 pad 1\ndense 4\nloss cross-entropy\n",
    "input 2x8x8\nconv 3 3x3 tanh\nglobal-pool average\ndense 4\nloss cross-entropy\n",
    "input 2x8x8\nconv 3 3x3 tanh\nglobal-pool max\ndense 4\nloss cross-entropy\n",
    "input 2x8x8\nconv 3 3x3 tanh\nglobal-pool min\ndense 4\nloss cross-entropy\n",
    "input 2x4x4\nconv 2 3x3 pad 1\nflatten\nloss mean-squared\n",
    "input 12\ndense 12 tanh\nreshape 3x2x2\nconv 4 2x2\ndense 3\nloss mean-squared\n",
    "input 12\ndense 12 tanh\nreshape sequence 4x3\nrnn 5\nflatten\ndense 3\nloss mean-squared\n",
    "input tokens 5\nembed 11 6\nrnn 5 last\ndense 4\nloss cross-entropy\n",
    "input tokens 5\nembed 11 6\nrnn 5 relu\ndense 4\nloss cross-entropy\n",
    "input tokens 5\nembed 11 6\nlstm 5\ndense 4\nloss cross-entropy sum-steps\n",
    "input tokens 5\nembed 11 6\nlstm 5 layers 2 bidirectional\ndense 4\nloss cross-entropy\n",
    "input tokens 5\nembed 11 6\nlstm 5 bidirectional last\ndense 4\nloss cross-entropy\n",
    "input sequence 5x3\ngru 5\ndense 2\nloss mean-squared\n",
    "input sequence 5x3\ngru 5 layers 2 bidirectional last\ndense 2\nloss mean-squared\n",
    "input 3\ndense 6 tanh\nrepeat 4\ngru 5\ndense 2\nloss mean-squared\n",
    "input tokens 4\nembed 7 5\nlstm 6 last\nrepeat 4\nlstm 6\ndense 7\nloss cross-entropy\n",
    "input 7\ndense 6\nbatchnorm tanh\ndense 3\nloss mean-squared\nshards 1\n",
    "input 2x5x5\nconv 3 3x3\nbatchnorm tanh\ndense 3\nloss mean-squared\nshards 1\n",
    "input sequence 4x3\nrnn 5\nbatchnorm\ndense 2\nloss mean-squared\nshards 1\n",
    "input 2x5x5\nconv 3 3x3\nbatchnorm batch tanh\ndense 3\nloss mean-squared\n",
    "input 7\ndense 6\nlayernorm tanh\ndense 3\nloss mean-squared\n",
    "input 2x5x5\nconv 3 3x3\nlayernorm tanh\ndense 3\nloss mean-squared\n",
    "input sequence 4x3\nrnn 5\nlayernorm\ndense 2\nloss mean-squared\n",
    "input 7\nlookup 5 3 of 2\ndense 6 tanh\ndense 3\nloss mean-squared\n",
    "input 4\nlookup 6 17 of 4 tanh\ndense 3\nloss cross-entropy\n",
    "x: input 7\na: lookup 9 1 of 1 init normal 1\nb: lookup 5 2 of 3 from x\nconcat a x\ndense 3\nloss "
    "mean-squared\n",
    "input 7\ndense 8 tanh\ndropout 0.4\ndense 3\nloss mean-squared\n",
    "input 2x5x5\nconv 3 3x3 tanh\ndropout 0.3\ndense 3\nloss mean-squared\n",
    "input tokens 5\nembed 11 6\ndropout 0.3\nlstm 5\ndropout 0.3\ndense 4\nloss cross-entropy\n",
    "input 7\na: dense 6 tanh\ndense 6 tanh\nadd a\ndense 3\nloss mean-squared\n",
    "input 7\na: dense 6 tanh\nb: dense 6 tanh\nadd a tanh\nadd b\ndense 3\nloss mean-squared\n",
    "input 7\na: dense 6 tanh\nb: dense 4 tanh from a\nconcat a\ndense 3\nloss mean-squared\n",
    "input 2x5x5\na: conv 3 3x3 pad 1 tanh\nconv 2 3x3 pad 1 tanh\nconcat a\nconv 2 3x3\ndense 3\nloss "
    "mean-squared\n",
    "input sequence 4x3\na: rnn 5\ngru 4\nconcat a\ndense 2\nloss mean-squared\n",
    "input 2x6x6\na: conv 3 3x3 pad 1\nbatchnorm relu\nconv 3 3x3 pad 1\nbatchnorm\nadd a relu\nglobal-pool "
    "average\ndense 3\n"
    "loss cross-entropy\nshards 1\n",
};

enum { SAMPLES = 21 };

typedef struct slope {
  double measured, expected;
} slope;

/* The slope of the loss when the parameter moves along `direction` (of its size). */
static slope measure(shoal_trainer *t, const shoal_source *source, const shoal_param *p,
                     const float *gradient, const float *direction, double step) {
  shoal_train_state *state = shoal_trainer_state(t);
  float *w = state->weights + p->offset, *before = malloc(p->count * sizeof *before);
  float *ignored = malloc(state->weights_count * sizeof *ignored);
  assert_non_null(before);
  assert_non_null(ignored);
  memcpy(before, w, p->count * sizeof *w);
  slope s = {0, 0};
  for (size_t i = 0; i < p->count; i++) s.expected += (double)gradient[p->offset + i] * direction[i];
  double loss[2];
  for (int side = 0; side < 2; side++) {
    for (size_t i = 0; i < p->count; i++)
      w[i] = (float)(before[i] + (side == 0 ? -step : step) * direction[i]);
    loss[side] = gradient_of(t, source, SAMPLES, ignored).loss;
  }
  s.measured = (loss[1] - loss[0]) / (2 * step);
  memcpy(w, before, p->count * sizeof *w);
  free(before);
  free(ignored);
  return s;
}

static void check_param(shoal_trainer *t, const shoal_source *source, const shoal_param *p,
                        const float *gradient, double loss_scale) {
  if (p->kind == SHOAL_PARAM_STATISTIC) return;
  float *direction = malloc(p->count * sizeof *direction);
  assert_non_null(direction);
  double norm = 0;
  for (size_t i = 0; i < p->count; i++) norm += (double)gradient[p->offset + i] * gradient[p->offset + i];
  norm = sqrt(norm);
  for (int kind = 0; kind < 2; kind++) {
    shoal_key key = shoal_key_make(7, SHOAL_FOR_TOY, (uint64_t)kind, p->offset);
    double length = 0;
    for (size_t i = 0; i < p->count; i++) {
      direction[i] = kind == 0 && norm > 0 ? gradient[p->offset + i] : 2 * shoal_random_uniform(key, i) - 1;
      length += (double)direction[i] * direction[i];
    }
    length = sqrt(length);
    for (size_t i = 0; i < p->count; i++) direction[i] = (float)(direction[i] / length);
    /* A large step meets more kinks, a small one more rounding; one of them has to agree. */
    static const double steps[] = {2e-3, 4e-4};
    double error = INFINITY;
    slope s = {0, 0};
    for (int i = 0; i < 2; i++) {
      s = measure(t, source, p, gradient, direction, steps[i]);
      error = fmin(error, fabs(s.measured * loss_scale - s.expected));
    }
    if (error > 0.01 * (fabs(s.expected) + norm) + 2e-4)
      fail_msg("%s: slope %g, gradient says %g (of a norm of %g)", p->name, s.measured * loss_scale,
               s.expected, norm);
  }
  free(direction);
}

static void check_model(const char *text) {
  shoal_error err = {0};
  shoal_model *model = NULL;
  shoal_graph *graph = NULL;
  shoal_trainer *t = NULL;
  if (shoal_model_parse(&model, "test", text, strlen(text), &err) != SHOAL_OK)
    fail_msg("%s\n%s", err.text, text);
  if (shoal_graph_create(&graph, model, &err) != SHOAL_OK) fail_msg("%s\n%s", err.text, text);
  shoal_trainer_config config = {.graph = graph, .threads = 1, .batch = SAMPLES, .samples = SAMPLES};
  if (shoal_trainer_create(&t, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_train_state *state = shoal_trainer_state(t);
  /* Biases off zero, so that nothing is right by luck. */
  for (size_t i = 0; i < state->weights_count; i++)
    state->weights[i] += 0.2f * shoal_random_uniform(shoal_key_make(3, SHOAL_FOR_TOY, 0, 0), i);
  float *gradient = malloc(state->weights_count * sizeof *gradient);
  assert_non_null(gradient);
  synthetic made_up = {.graph = graph, .seed = 5};
  shoal_source source = synthetic_source(&made_up, SAMPLES);
  shoal_result result = gradient_of(t, &source, SAMPLES, gradient);
  assert_true(result.finite);
  double scale = model->recipe.sum_steps ? graph->nodes[graph->nodes_count - 1].shape.steps : 1;
  for (uint32_t i = 0; i < graph->params_count; i++)
    check_param(t, &source, &graph->params[i], gradient, scale);
  free(gradient);
  shoal_trainer_destroy(t);
  shoal_graph_destroy(graph);
  shoal_model_destroy(model);
}

static void gradients_match_finite_differences(void **unused) {
  (void)unused;
  for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
    print_message("model %zu\n", i);
    check_model(models[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_match_finite_differences)};
  return RUN_TESTS(tests);
}
