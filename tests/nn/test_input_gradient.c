/* A plan that also gives the gradient of the input: against finite differences, and beside one that does
 * not. */
#include <math.h>

#include "rig.h"
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

static size_t input_floats(const rig *r) { return shoal_shape_floats(&r->graph->nodes[0].shape, SAMPLES); }

/* The mean loss with the input moved by step * direction; the gradient of the input goes to `out`. */
static double lesson(rig *r, const float *direction, float step, bool input_only, float *out) {
  memset(r->exec.block, 0xff, r->plan->floats * sizeof(float));
  memset(r->gradient, 0, r->graph->weights_count * sizeof(float));
  r->exec.fresh = false;
  r->exec.input_only = input_only;
  synthetic made_up = {.graph = r->graph, .seed = 2};
  shoal_batch batch = shoal_exec_batch(&r->exec);
  synthetic_fetch(&made_up, 0, 0, SAMPLES, &batch);
  for (size_t i = 0; direction != NULL && i < input_floats(r); i++) batch.x[i] += step * direction[i];
  shoal_sums sums = {0};
  shoal_exec_forward(&r->exec);
  shoal_exec_loss(&r->exec, &sums);
  shoal_exec_backward(&r->exec);
  if (out != NULL) memcpy(out, shoal_exec_input_gradient(&r->exec), input_floats(r) * sizeof *out);
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
  float *direction = rig_floats(input_floats(r));
  double norm = 0;
  for (size_t i = 0; i < input_floats(r); i++)
    if (is_real(r->graph, i)) norm += (double)gradient[i] * gradient[i];
  norm = sqrt(norm);
  assert_true(norm > 1e-4);
  for (uint64_t kind = 0; kind < 3; kind++) {
    double length = 0, expected = 0;
    for (size_t i = 0; i < input_floats(r); i++) {
      shoal_key key = shoal_key_make(7, SHOAL_FOR_TOY, kind, 0);
      float value = kind == 0 ? gradient[i] : 2 * shoal_random_uniform(key, i) - 1;
      direction[i] = is_real(r->graph, i) ? value : 0;
      length += (double)direction[i] * direction[i];
    }
    for (size_t i = 0; i < input_floats(r); i++) {
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
    rig r, plain;
    rig_open(&r, NETS[i], shoal_kernels_get(), SHOAL_PLAN_TRAIN_INPUT, SAMPLES);
    float *gradient = rig_floats(input_floats(&r)), *alone = rig_floats(input_floats(&r));
    lesson(&r, NULL, 0, true, alone);
    lesson(&r, NULL, 0, false, gradient);
    assert_memory_equal(alone, gradient, input_floats(&r) * sizeof *gradient);
    rig_open(&plain, NETS[i], shoal_kernels_get(), SHOAL_PLAN_TRAIN, SAMPLES);
    assert_true(plain.plan->places[0].gradient == SHOAL_NOWHERE);
    lesson(&plain, NULL, 0, false, NULL);
    assert_memory_equal(plain.gradient, r.gradient, r.graph->weights_count * sizeof *gradient);
    for (size_t k = 0; k < input_floats(&r); k++)
      if (!is_real(r.graph, k) && r.graph->model->layers[1].columns > 0) assert_true(gradient[k] == 0);
    check_slopes(&r, gradient);
    free(gradient);
    free(alone);
    rig_close(&r);
    rig_close(&plain);
  }
}

static void tokens_have_no_gradient(void **unused) {
  (void)unused;
  static const char net[] = "input tokens 5\nembed 11 6\nlstm 5\ndense 4\nloss cross-entropy\n";
  rig r;
  rig_open(&r, net, shoal_kernels_get(), SHOAL_PLAN_TRAIN, SAMPLES);
  shoal_plan *plan;
  shoal_error err = {0};
  assert_int_equal(shoal_plan_create(&plan, r.graph, &r.device, SHOAL_PLAN_TRAIN_INPUT, SAMPLES, &err),
                   SHOAL_INVALID);
  assert_null(plan);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_gradient_of_the_input_matches_finite_differences),
      cmocka_unit_test(tokens_have_no_gradient),
  };
  return RUN_TESTS(tests);
}
