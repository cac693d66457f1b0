/* A plan that also gives the gradient of the input: against finite differences, and beside one that does
 * not. */
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "nn/exec.h"
#include "nn/plan.h"
#include "synthetic.h"

enum { SAMPLES = 21 };

static const char *const NETS[] = {
    "input 7\ndense 5\nloss mean-squared\n",
    "input 7\ndense 33 tanh\ndense 3\nloss cross-entropy\n",
    "input 7\ntanh\ndense 6 gelu\ndense 3\nloss huber\n",
    "input 7\nsilu\nlayernorm\ndense 3\nloss mean-squared\n",
    "x: input 7\na: dense 6 tanh\nb: dense 4 sigmoid from x\nconcat a x\ndense 3\nloss mean-squared\n",
    "x: input 6\ndense 6 tanh\nadd x\ndense 3\nloss mean-squared\n",
    "input 2x6x5\nconv 3 3x3 tanh\ndense 4\nloss cross-entropy\n",
    "input 8x6x7\nconv 9 3x3 pad same tanh\nconv 8 3x3\nflatten\ndense 3\nloss cross-entropy\n",
    "input 2x8x8\npool average 2x2\nconv 3 3x3 tanh\ndense 4\nloss cross-entropy\n",
    "input 12\nreshape 3x2x2\nconv 4 2x2 tanh\ndense 3\nloss mean-squared\n",
    "input sequence 5x3\nlstm 5\ndense 2\nloss mean-squared\n",
    "input sequence 5x3\ngru 5 layers 2\nrnn 4\ndense 2\nloss mean-squared\n",
    "input 7\nlookup 5 3 of 2\ndense 6 tanh\ndense 3\nloss mean-squared\n",
    "input 3\nrepeat 4\nrnn 5\ndense 2\nloss mean-squared\n",
};

typedef struct rig {
  shoal_model *model;
  shoal_graph *graph;
  shoal_plan *plan;
  float *block, *weights, *gradient;
  size_t input_floats;
} rig;

static float *floats(size_t count) {
  size_t bytes = (count * sizeof(float) + 64) / 64 * 64;
  float *memory = aligned_alloc(64, bytes);
  assert_non_null(memory);
  memset(memory, 0, bytes);
  return memory;
}

static void open_rig(rig *r, const char *text, shoal_plan_use use) {
  shoal_error err = {0};
  if (shoal_model_parse(&r->model, "test", text, strlen(text), &err) != SHOAL_OK) fail_msg("%s", err.text);
  if (shoal_graph_create(&r->graph, r->model, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_int_equal(shoal_plan_create(&r->plan, r->graph, shoal_kernels_get(), use, SAMPLES, &err), SHOAL_OK);
  r->block = floats(r->plan->floats);
  r->weights = floats(r->graph->weights_count);
  r->gradient = floats(r->graph->weights_count);
  r->input_floats = shoal_shape_floats(&r->graph->nodes[0].shape, SAMPLES);
  shoal_graph_init_weights(r->graph, 1, r->weights);
}

static void close_rig(rig *r) {
  free(r->block);
  free(r->weights);
  free(r->gradient);
  shoal_plan_destroy(r->plan);
  shoal_graph_destroy(r->graph);
  shoal_model_destroy(r->model);
}

/* The mean loss with the input moved by step * direction; the gradient of the input goes to `out`. */
static double lesson(rig *r, const float *direction, float step, bool input_only, float *out) {
  memset(r->block, 0xff, r->plan->floats * sizeof(float));
  memset(r->gradient, 0, r->graph->weights_count * sizeof(float));
  shoal_exec exec = {.plan = r->plan,
                     .block = r->block,
                     .weights = r->weights,
                     .gradient = r->gradient,
                     .input_only = input_only,
                     .n = SAMPLES,
                     .round_n = SAMPLES};
  synthetic made_up = {.graph = r->graph, .seed = 2};
  shoal_batch batch = shoal_exec_batch(&exec);
  synthetic_fetch(&made_up, 0, 0, SAMPLES, &batch);
  for (size_t i = 0; direction != NULL && i < r->input_floats; i++) batch.x[i] += step * direction[i];
  shoal_sums sums = {0};
  shoal_exec_forward(&exec);
  shoal_exec_loss(&exec, &sums);
  shoal_exec_backward(&exec);
  if (out != NULL) memcpy(out, r->block + r->plan->places[0].gradient, r->input_floats * sizeof *out);
  return sums.loss / (double)sums.counted;
}

/* Whether float i of the input is a number that the loss depends on: no unused lane, no number of a row. */
static bool is_real(const shoal_graph *graph, size_t i) {
  const shoal_shape *in = &graph->nodes[0].shape;
  uint32_t columns = graph->model->layers[1].columns;
  if (in->kind == SHOAL_IMAGE) return i % shoal_lanes_for(SAMPLES) < SAMPLES;
  return columns == 0 || i % in->features < in->features - columns;
}

static void check_slopes(rig *r, const float *gradient) {
  float *direction = floats(r->input_floats);
  double norm = 0;
  for (size_t i = 0; i < r->input_floats; i++)
    if (is_real(r->graph, i)) norm += (double)gradient[i] * gradient[i];
  norm = sqrt(norm);
  assert_true(norm > 1e-4);
  for (uint64_t kind = 0; kind < 3; kind++) {
    double length = 0, expected = 0;
    for (size_t i = 0; i < r->input_floats; i++) {
      shoal_key key = shoal_key_make(7, SHOAL_FOR_TOY, kind, 0);
      float value = kind == 0 ? gradient[i] : 2 * shoal_random_uniform(key, i) - 1;
      direction[i] = is_real(r->graph, i) ? value : 0;
      length += (double)direction[i] * direction[i];
    }
    for (size_t i = 0; i < r->input_floats; i++) {
      direction[i] = (float)(direction[i] / sqrt(length));
      if (direction[i] != 0) expected += (double)gradient[i] * direction[i];
    }
    double error = INFINITY;
    for (int s = 0; s < 2; s++) {
      float step = s == 0 ? 1e-2f : 2e-3f;
      double slope = (lesson(r, direction, step, false, NULL) - lesson(r, direction, -step, false, NULL)) /
                     (2 * (double)step);
      error = fmin(error, fabs(slope - expected));
    }
    if (error > 0.01 * (fabs(expected) + norm) + 1e-5)
      fail_msg("off by %g, gradient says %g (of a norm of %g)", error, expected, norm);
  }
  free(direction);
}

static void the_gradient_of_the_input_matches_finite_differences(void **unused) {
  (void)unused;
  for (size_t i = 0; i < sizeof NETS / sizeof NETS[0]; i++) {
    print_message("net %zu\n", i);
    rig r = {0}, plain = {0};
    open_rig(&r, NETS[i], SHOAL_PLAN_TRAIN_INPUT);
    float *gradient = floats(r.input_floats), *alone = floats(r.input_floats);
    lesson(&r, NULL, 0, true, alone);
    lesson(&r, NULL, 0, false, gradient);
    assert_memory_equal(alone, gradient, r.input_floats * sizeof *gradient);
    open_rig(&plain, NETS[i], SHOAL_PLAN_TRAIN);
    assert_true(plain.plan->places[0].gradient == SHOAL_NOWHERE);
    lesson(&plain, NULL, 0, false, NULL);
    assert_memory_equal(plain.gradient, r.gradient, r.graph->weights_count * sizeof *gradient);
    for (size_t k = 0; k < r.input_floats; k++)
      if (!is_real(r.graph, k) && r.graph->model->layers[1].columns > 0) assert_true(gradient[k] == 0);
    check_slopes(&r, gradient);
    free(gradient);
    free(alone);
    close_rig(&r);
    close_rig(&plain);
  }
}

static void tokens_have_no_gradient(void **unused) {
  (void)unused;
  static const char net[] = "input tokens 5\nembed 11 6\nlstm 5\ndense 4\nloss cross-entropy\n";
  rig r = {0};
  open_rig(&r, net, SHOAL_PLAN_TRAIN);
  shoal_plan *plan;
  shoal_error err = {0};
  assert_int_equal(
      shoal_plan_create(&plan, r.graph, shoal_kernels_get(), SHOAL_PLAN_TRAIN_INPUT, SAMPLES, &err),
      SHOAL_INVALID);
  assert_null(plan);
  close_rig(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_gradient_of_the_input_matches_finite_differences),
      cmocka_unit_test(tokens_have_no_gradient),
  };
  return RUN_TESTS(tests);
}
