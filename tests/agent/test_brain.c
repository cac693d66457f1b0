/* The network whose caller says what is better: gradients, threads, sequences, steps. */
#include "agent/brain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "check.h"
#include "nn/graph.h"

enum { INPUTS = 5, OUTPUTS = 3, STEPS = 6 };

static const char *const BODIES[] = {"dense 17 tanh\ndense 9 gelu", "lstm 7", "dense 8 tanh\ngru 6 layers 2",
                                     "a: dense 6 tanh\nrnn 5\nconcat a"};

static shoal_brain *make(const char *body, uint32_t steps, shoal_pool *pool) {
  shoal_brain *net;
  shoal_error err = {0};
  shoal_brain_config config = {.name = "net",
                               .body = body,
                               .inputs = INPUTS,
                               .outputs = OUTPUTS,
                               .steps = steps,
                               .output_scale = 1,
                               .input_gradient = true,
                               .seed = 3,
                               .pool = pool};
  if (shoal_brain_create(&net, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
  float *weights = shoal_brain_weights(net);
  for (size_t i = 0; i < shoal_brain_weights_count(net); i++)
    weights[i] += 0.1f * shoal_random_uniform(shoal_key_make(3, SHOAL_FOR_TOY, 0, 0), i);
  return net;
}

static float *numbers(uint64_t seed, size_t count) {
  float *values = malloc((count + 1) * sizeof *values);
  assert_non_null(values);
  for (size_t i = 0; i < count; i++)
    values[i] = 2 * shoal_random_uniform(shoal_key_make(seed, SHOAL_FOR_TOY, 1, 0), i) - 1;
  return values;
}

/* Half the squared distance from targets, weighted so that rows, steps and outputs all differ. */
typedef struct goal {
  uint32_t n, steps;
  const float *targets;
} goal;

static void judge(void *self, uint32_t first, uint32_t count, const float *out, float *gradient,
                  double sums[8]) {
  const goal *g = self;
  size_t row = (size_t)g->steps * OUTPUTS;
  for (size_t i = 0; i < count * row; i++) {
    assert_true(gradient[i] == 0);
    size_t k = first * row + i;
    double weight = 1.0 + (double)(k % 7), d = out[i] - (double)g->targets[k];
    sums[0] += 0.5 * weight * d * d / g->n;
    sums[3] += 1;
    gradient[i] = (float)(weight * d / g->n);
  }
}

typedef struct lesson {
  shoal_brain *net;
  goal goal;
  float *x, *state, *input_gradient;
} lesson;

static double learn(const lesson *l, bool weights_too) {
  double sums[8];
  shoal_brain_batch batch = {.n = l->goal.n,
                             .steps = l->goal.steps,
                             .x = l->x,
                             .state = l->state,
                             .input_gradient = l->input_gradient,
                             .weights_too = weights_too,
                             .judge = judge,
                             .self = (void *)&l->goal};
  shoal_brain_learn(l->net, &batch, sums);
  assert_true(sums[3] == (double)l->goal.n * l->goal.steps * OUTPUTS);
  return sums[0];
}

/* The slope along a direction of `count` numbers at `at`, measured. */
static double slope(const lesson *l, float *at, size_t count, const float *direction, double step) {
  double sides[2];
  float *before = malloc(count * sizeof *before);
  assert_non_null(before);
  memcpy(before, at, count * sizeof *before);
  for (int side = 0; side < 2; side++) {
    for (size_t i = 0; i < count; i++) at[i] = (float)(before[i] + (side == 0 ? -step : step) * direction[i]);
    sides[side] = learn(l, true);
  }
  memcpy(at, before, count * sizeof *before);
  free(before);
  return (sides[1] - sides[0]) / (2 * step);
}

static void check_direction(const lesson *l, float *at, size_t count, const float *gradient,
                            const char *what) {
  float *direction = numbers(11, count);
  double length = 0, expected = 0, norm = 0;
  for (size_t i = 0; i < count; i++) {
    length += (double)direction[i] * direction[i];
    norm += (double)gradient[i] * gradient[i];
  }
  for (size_t i = 0; i < count; i++) {
    direction[i] = (float)(direction[i] / sqrt(length));
    expected += (double)direction[i] * gradient[i];
  }
  double error = fmin(fabs(slope(l, at, count, direction, 1e-2) - expected),
                      fabs(slope(l, at, count, direction, 2e-3) - expected));
  if (error > 0.01 * (fabs(expected) + 0.2 * sqrt(norm)) + 1e-5)
    fail_msg("%s: off by %g, gradient says %g of %g", what, error, expected, sqrt(norm));
  free(direction);
}

/* Adam's first slot is a tenth of the gradient after one step from nothing. */
static void take_gradient(shoal_brain *net, float *gradient) {
  size_t count = shoal_brain_weights_count(net), bytes = count * sizeof(float);
  memset(shoal_brain_slot(net, 0), 0, bytes);
  memset(shoal_brain_slot(net, 1), 0, bytes);
  *shoal_brain_steps(net) = 0;
  float *weights = malloc(bytes);
  assert_non_null(weights);
  memcpy(weights, shoal_brain_weights(net), bytes);
  assert_true(shoal_brain_step(net, 1e-3f, 0));
  memcpy(shoal_brain_weights(net), weights, bytes);
  for (size_t i = 0; i < count; i++) gradient[i] = 10 * shoal_brain_slot(net, 0)[i];
  free(weights);
}

static lesson open_lesson(shoal_brain *net, uint32_t n, uint32_t steps, bool from_state) {
  lesson l = {.net = net, .goal = {.n = n, .steps = steps}};
  l.goal.targets = numbers(1, (size_t)n * steps * OUTPUTS);
  l.x = numbers(2, (size_t)n * steps * INPUTS);
  l.input_gradient = numbers(3, (size_t)n * steps * INPUTS);
  if (from_state) l.state = numbers(4, (size_t)n * shoal_brain_state_floats(net));
  return l;
}

static void close_lesson(lesson *l) {
  free((void *)l->goal.targets);
  free(l->x);
  free(l->input_gradient);
  free(l->state);
}

static void gradients_match_finite_differences(void **unused) {
  (void)unused;
  for (size_t b = 0; b < sizeof BODIES / sizeof BODIES[0]; b++)
    for (uint32_t steps = b == 0 ? 1 : STEPS; steps > 0; steps = steps > 1 && b > 0 ? steps - 2 : 0) {
      shoal_brain *net = make(BODIES[b], b == 0 ? 1 : STEPS, NULL);
      assert_int_equal(shoal_brain_recurrent(net), b > 0);
      lesson l = open_lesson(net, 37, steps, b > 0 && steps % 4 == 0);
      float *gradient = malloc(shoal_brain_weights_count(net) * sizeof *gradient);
      float *inputs = malloc((size_t)37 * steps * INPUTS * sizeof *inputs);
      assert_true(gradient != NULL && inputs != NULL);
      learn(&l, true);
      take_gradient(net, gradient);
      memcpy(inputs, l.input_gradient, (size_t)37 * steps * INPUTS * sizeof *inputs);
      const shoal_graph *graph = shoal_brain_graph(net);
      for (uint32_t p = 0; p < graph->params_count; p++)
        check_direction(&l, shoal_brain_weights(net) + graph->params[p].offset, graph->params[p].count,
                        gradient + graph->params[p].offset, graph->params[p].name);
      check_direction(&l, l.x, (size_t)37 * steps * INPUTS, inputs, "input");
      learn(&l, false);
      assert_memory_equal(inputs, l.input_gradient, (size_t)37 * steps * INPUTS * sizeof *inputs);
      free(gradient);
      free(inputs);
      close_lesson(&l);
      shoal_brain_destroy(net);
    }
}

/* Some steps of training, and what comes out of the network then. */
static void train(const char *body, uint32_t threads, uint32_t n, char sha256[65], float *out) {
  shoal_pool *pool = NULL;
  shoal_error err = {0};
  if (threads > 1) assert_int_equal(shoal_pool_create(&pool, threads, &err), SHOAL_OK);
  bool sequences = body != BODIES[0];
  shoal_brain *net = make(body, sequences ? STEPS : 1, pool);
  lesson l = open_lesson(net, n, sequences ? STEPS : 1, sequences);
  double first = learn(&l, true), last = first;
  for (int i = 0; i < 30; i++) {
    assert_true(shoal_brain_step(net, 3e-3f, 0.5f));
    last = learn(&l, true);
  }
  assert_true(last < 0.95 * first);
  shoal_brain_run(net, NULL, n, l.x, sequences ? l.state : NULL, out);
  shoal_graph_weights_sha256(shoal_brain_graph(net), shoal_brain_weights(net), sha256);
  close_lesson(&l);
  shoal_brain_destroy(net);
  shoal_pool_destroy(pool);
}

static void any_number_of_threads_gives_the_same_bits(void **unused) {
  (void)unused;
  static const uint32_t rows[] = {7, 64, 130, 513, 1500};
  for (int b = 0; b < 2; b++)
    for (int r = 0; r < 5; r++) {
      uint32_t n = b == 0 ? rows[r] : rows[r] / 6 + 1;
      float *alone = numbers(0, (size_t)n * OUTPUTS), *together = numbers(0, (size_t)n * OUTPUTS);
      char one[65], many[65];
      train(BODIES[b], 1, n, one, alone);
      for (uint32_t threads = 2; threads <= 4; threads += 2) {
        train(BODIES[b], threads, n, many, together);
        assert_string_equal(one, many);
        assert_memory_equal(alone, together, (size_t)n * OUTPUTS * sizeof *alone);
      }
      free(alone);
      free(together);
    }
}

/* What learning sees of a sequence is what acting sees step by step; a row does not see its neighbours. */
typedef struct witness {
  uint32_t n, steps;
  float *seen;
} witness;

static void look(void *self, uint32_t first, uint32_t count, const float *out, float *gradient,
                 double sums[8]) {
  (void)gradient, (void)sums;
  const witness *w = self;
  size_t row = (size_t)w->steps * OUTPUTS;
  memcpy(w->seen + first * row, out, count * row * sizeof *out);
}

static void acting_step_by_step_is_learning_on_the_sequence(void **unused) {
  (void)unused;
  enum { N = 150 };
  for (size_t b = 1; b < sizeof BODIES / sizeof BODIES[0]; b++) {
    shoal_brain *net = make(BODIES[b], STEPS, NULL);
    uint32_t state_floats = shoal_brain_state_floats(net), steps = STEPS - 1;
    float *x = numbers(2, (size_t)N * steps * INPUTS), *state = numbers(4, (size_t)N * state_floats);
    witness w = {.n = N, .steps = steps, .seen = numbers(0, (size_t)N * steps * OUTPUTS)};
    shoal_brain_batch batch = {
        .n = N, .steps = steps, .x = x, .state = state, .weights_too = true, .judge = look, .self = &w};
    float *kept = numbers(4, (size_t)N * state_floats);
    shoal_brain_learn(net, &batch, NULL);
    assert_memory_equal(kept, state, (size_t)N * state_floats * sizeof *state);
    for (uint32_t i = 0; i < N; i += 49)
      for (uint32_t t = 0; t < steps; t++) {
        float out[OUTPUTS];
        shoal_brain_run(net, NULL, 1, x + ((size_t)i * steps + t) * INPUTS, state + (size_t)i * state_floats,
                        out);
        assert_memory_equal(out, w.seen + ((size_t)i * steps + t) * OUTPUTS, sizeof out);
      }
    free(x);
    free(state);
    free(kept);
    free(w.seen);
    shoal_brain_destroy(net);
  }
}

static void a_step_is_cut_to_its_norm_and_refuses_what_is_not_finite(void **unused) {
  (void)unused;
  shoal_brain *net = make(BODIES[0], 1, NULL);
  lesson l = open_lesson(net, 64, 1, false);
  size_t count = shoal_brain_weights_count(net);
  learn(&l, true);
  assert_true(shoal_brain_step(net, 1e-3f, 0.01f));
  assert_true(*shoal_brain_steps(net) == 1);
  double squares = 0;
  for (size_t i = 0; i < count; i++)
    squares += 100.0 * shoal_brain_slot(net, 0)[i] * shoal_brain_slot(net, 0)[i];
  assert_true(fabs(sqrt(squares) - 0.01) < 1e-5);
  float *before = malloc(count * sizeof *before);
  assert_non_null(before);
  memcpy(before, shoal_brain_weights(net), count * sizeof *before);
  l.x[3] = INFINITY;
  learn(&l, true);
  assert_false(shoal_brain_step(net, 1e-3f, 0.01f));
  assert_memory_equal(before, shoal_brain_weights(net), count * sizeof *before);
  assert_true(*shoal_brain_steps(net) == 1);
  free(before);
  close_lesson(&l);
  shoal_brain_destroy(net);
}

static void targets_follow_by_a_share(void **unused) {
  (void)unused;
  shoal_brain *net = make(BODIES[0], 1, NULL), *target = make(BODIES[0], 1, NULL);
  size_t count = shoal_brain_weights_count(net);
  float *a = shoal_brain_weights(net), *b = shoal_brain_weights(target);
  for (size_t i = 0; i < count; i++) a[i] = (float)(i % 13), b[i] = 1;
  shoal_brain_follow(target, net, 0.25f);
  for (size_t i = 0; i < count; i++) assert_true(b[i] == 1 + 0.25f * ((float)(i % 13) - 1));
  shoal_brain_follow(target, net, 1);
  assert_memory_equal(a, b, count * sizeof *a);
  shoal_brain_destroy(net);
  shoal_brain_destroy(target);
}

static void output_scale_scales_the_last_layer(void **unused) {
  (void)unused;
  shoal_brain *nets[2];
  shoal_error err = {0};
  float x[INPUTS] = {0.1f, -0.2f, 0.3f, 0.4f, -0.5f}, out[2][OUTPUTS];
  for (int i = 0; i < 2; i++) {
    shoal_brain_config config = {.name = "net",
                                 .body = "dense 8 tanh",
                                 .inputs = INPUTS,
                                 .outputs = OUTPUTS,
                                 .steps = 1,
                                 .output_scale = i == 0 ? 1 : 0.5f,
                                 .runs_only = true,
                                 .seed = 9};
    assert_int_equal(shoal_brain_create(&nets[i], &config, &err), SHOAL_OK);
    shoal_brain_run(nets[i], NULL, 1, x, NULL, out[i]);
    shoal_brain_destroy(nets[i]);
  }
  for (int k = 0; k < OUTPUTS; k++) assert_true(out[0][k] != 0 && out[1][k] == 0.5f * out[0][k]);
}

static shoal_status check_body(const shoal_brain_config *config, shoal_error *err) {
  uint64_t weights;
  uint32_t state_floats;
  return shoal_brain_measure(config, &weights, &state_floats, err);
}

static void bodies_that_cannot_be_are_refused_by_line(void **unused) {
  (void)unused;
  static const struct {
    const char *body, *says;
  } cases[] = {
      {"dense 8 tanh\ndens 4", "body:2:1: unknown layer 'dens'; did you mean 'dense'?"},
      {"dense 64 tan", "body:1:10: dense: unexpected 'tan'"},
      {"dense 8\ndropout 0.5", "body:2: dropout makes"},
      {"dense 8\nbatchnorm", "body:2: batchnorm makes"},
      {"lstm 8 bidirectional", "body:1: lstm looks"},
      {"lstm 8 last", "body:1: lstm drops"},
      {"lstm 8\nflatten\ndense 3", "body:2: flatten mixes"},
      {"lstm 8\nnonsense 3", "body:2:1: there is no layer"},
      {"repeat 4", "a vector"},
      {"# four\ndense 4\nloss cross-entropy", "body:3:1: 'loss' is no layer"},
      {"optimizer adam rate 0.1\ndense 4", "body:1:1: 'optimizer' is no layer"},
      {"dense 4\nrate 0.1", "body:2:1: 'rate' is no layer"},
      {"input 5\ndense 4", "body:1:1: 'input' is no layer"},
      {"a: dense 4\na: dense 4", "body:2:1: the name 'a' is already taken by line 1"},
      {"a: dense 4\ndense 4 from a\ndense 3 from a", "body:2:1: dense: no later line uses"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    shoal_brain *net;
    shoal_error err = {0};
    shoal_brain_config config = {
        .name = "net", .body = cases[i].body, .inputs = INPUTS, .outputs = OUTPUTS, .steps = STEPS};
    assert_int_equal(shoal_brain_create(&net, &config, &err), SHOAL_INVALID);
    assert_null(net);
    if (strstr(err.text, cases[i].says) == NULL) fail_msg("'%s' does not say '%s'", err.text, cases[i].says);
    assert_int_equal(check_body(&config, &err), SHOAL_INVALID);
    assert_non_null(strstr(err.text, cases[i].says));
  }
}

static void errors_of_a_body_name_its_file_and_only_layers(void **unused) {
  (void)unused;
  shoal_error err = {0};
  shoal_brain_config config = {.name = "net",
                               .where = "mis.net",
                               .body = "frobnicate 3",
                               .inputs = INPUTS,
                               .outputs = OUTPUTS,
                               .steps = STEPS};
  assert_int_equal(check_body(&config, &err), SHOAL_INVALID);
  assert_int_equal(
      strncmp(err.text, "mis.net:1:1: there is no layer 'frobnicate'; the layers are dense, conv", 69), 0);
  assert_null(strstr(err.text, "optimizer"));
  assert_null(strstr(err.text, "input"));
  config.body = "gru 8\r\n\n# remembers\ndense 4 tanh";
  assert_int_equal(check_body(&config, &err), SHOAL_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradients_match_finite_differences),
      cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
      cmocka_unit_test(acting_step_by_step_is_learning_on_the_sequence),
      cmocka_unit_test(a_step_is_cut_to_its_norm_and_refuses_what_is_not_finite),
      cmocka_unit_test(targets_follow_by_a_share),
      cmocka_unit_test(output_scale_scales_the_last_layer),
      cmocka_unit_test(bodies_that_cannot_be_are_refused_by_line),
      cmocka_unit_test(errors_of_a_body_name_its_file_and_only_layers),
  };
  return RUN_TESTS(tests);
}
