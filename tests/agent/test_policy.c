/* Policies: what is drawn, how likely it was, what is held, and versions as bytes. */
#include "agent/policy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { SEEN = 3, WIDTH = 3 };

static const shoal_env_kind FIVE = {
    .name = "Five-v0", .observation = SEEN, .choices = 5, .action_width = 1, .limit = 100};
static const shoal_env_kind REAL = {
    .name = "Real-v0", .observation = SEEN, .action_width = WIDTH, .action_low = -2, .action_high = 4};

static shoal_policy *make(const shoal_env_kind *kind, shoal_head head, bool duelling, const char *body) {
  shoal_policy *policy;
  shoal_error err = {0};
  shoal_policy_spec spec = {.kind = kind, .head = head, .duelling = duelling, .body = body};
  if (shoal_policy_create(&policy, &spec, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return policy;
}

/* A policy without hidden layers whose outputs are `biases`, whatever is seen. */
static shoal_policy *constant(const shoal_env_kind *kind, shoal_head head, bool duelling,
                              const float *biases) {
  shoal_policy *policy = make(kind, head, duelling, "");
  shoal_policy_state *state = shoal_policy_state_of(policy);
  shoal_policy_spec spec = {.kind = kind, .head = head, .duelling = duelling};
  uint32_t outputs = shoal_policy_outputs(&spec);
  memset(state->weights, 0, state->weights_count * sizeof *state->weights);
  /* weight (SEEN x outputs), then the bias on the next boundary of 16 */
  size_t bias = ((size_t)SEEN * outputs + 15) / 16 * 16;
  memcpy(state->weights + bias, biases, outputs * sizeof *biases);
  return policy;
}

static shoal_key key_of(uint64_t seed) { return shoal_key_make(seed, SHOAL_FOR_ACTING, 0, 0); }

static void choices_come_as_often_as_they_should(void **unused) {
  (void)unused;
  enum { N = 500, STEPS = 200 };
  static const float logits[5] = {0.5f, -1, 2, 0, -3};
  shoal_policy *policy = constant(&FIVE, SHOAL_HEAD_CATEGORICAL, false, logits);
  assert_int_equal(shoal_policy_memory_floats(policy), 0);
  float *seen = calloc(N * SEEN, sizeof *seen), actions[N], log_probs[N];
  assert_non_null(seen);
  double sum = 0, counts[5] = {0}, pairs[5][5] = {{0}};
  for (int i = 0; i < 5; i++) sum += exp(logits[i]);
  for (uint64_t step = 0; step < STEPS; step++) {
    shoal_policy_act(policy, N, seen, NULL, key_of(1), step, false, actions, log_probs);
    for (int i = 0; i < N; i++) {
      int choice = (int)actions[i];
      assert_true(choice >= 0 && choice < 5 && (float)choice == actions[i]);
      assert_true(fabs(log_probs[i] - (logits[choice] - log(sum))) < 1e-6);
      counts[choice]++;
      if (i > 0) pairs[(int)actions[i - 1]][choice]++;
    }
  }
  double chi = 0, chi_pairs = 0;
  for (int i = 0; i < 5; i++) {
    double p = exp(logits[i]) / sum, expected = p * N * STEPS;
    chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    for (int j = 0; j < 5; j++) {
      double both = p * exp(logits[j]) / sum * (N - 1) * STEPS;
      chi_pairs += (pairs[i][j] - both) * (pairs[i][j] - both) / both;
    }
  }
  assert_true(chi < 23);       /* 4 degrees of freedom: one in ten thousand is above */
  assert_true(chi_pairs < 59); /* 24 */
  shoal_policy_act(policy, N, seen, NULL, key_of(1), 0, true, actions, log_probs);
  for (int i = 0; i < N; i++) assert_true(actions[i] == 2 && fabs(log_probs[i] - (2 - log(sum))) < 1e-6);
  free(seen);
  shoal_policy_destroy(policy);
}

static void a_row_does_not_depend_on_the_others(void **unused) {
  (void)unused;
  enum { N = 600 };
  static const struct {
    const shoal_env_kind *kind;
    shoal_head head;
    const char *body;
  } cases[] = {{&FIVE, SHOAL_HEAD_CATEGORICAL, "dense 8 tanh"},
               {&FIVE, SHOAL_HEAD_GREEDY, "gru 6"},
               {&REAL, SHOAL_HEAD_GAUSSIAN, "lstm 4"},
               {&REAL, SHOAL_HEAD_SQUASHED, "dense 8 relu\ndense 9 relu"}};
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    shoal_policy *policy = make(cases[c].kind, cases[c].head, false, cases[c].body);
    shoal_policy_state_of(policy)->epsilon = 0.5f;
    shoal_policy_state_of(policy)->hold = 3;
    uint32_t width = cases[c].kind->action_width, floats = shoal_policy_memory_floats(policy);
    float *seen = malloc(N * SEEN * sizeof *seen), *all = calloc(2 * N * width, sizeof *all);
    float *memory = calloc(2 * N * floats + 1, sizeof *memory), *probs = calloc(2 * N, sizeof *probs);
    assert_true(seen != NULL && all != NULL && memory != NULL && probs != NULL);
    for (size_t i = 0; i < N * SEEN; i++) seen[i] = shoal_random_normal(key_of(5), i);
    /* The rows in one go, and then those before a cut alone: the same numbers. */
    for (uint64_t step = 0; step < 5; step++) {
      shoal_policy_act(policy, N, seen, memory, key_of(2), step, false, all, probs);
      shoal_policy_act(policy, 301, seen, memory + (size_t)N * floats, key_of(2), step, false,
                       all + N * width, probs + N);
      assert_memory_equal(all, all + N * width, 301 * width * sizeof *all);
      assert_memory_equal(probs, probs + N, 301 * sizeof *probs);
      assert_memory_equal(memory, memory + (size_t)N * floats, (size_t)301 * floats * sizeof *memory);
    }
    free(seen);
    free(all);
    free(memory);
    free(probs);
    shoal_policy_destroy(policy);
  }
}

static void random_choices_have_their_share_and_are_held(void **unused) {
  (void)unused;
  enum { N = 300, STEPS = 400 };
  static const float values[6] = {1, 3, 2, 0, 0, 7}; /* the last: a value, under duelling */
  for (uint32_t hold = 1; hold <= 4; hold += 3) {
    shoal_policy *policy = constant(&FIVE, SHOAL_HEAD_GREEDY, true, values);
    assert_int_equal(shoal_policy_memory_floats(policy), 2);
    shoal_policy_state_of(policy)->epsilon = 0.2f;
    shoal_policy_state_of(policy)->hold = hold;
    float *seen = calloc(N * SEEN, sizeof *seen), actions[N], memory[N][2] = {{0}};
    int since[N] = {0}, kept[N];
    double counts[5] = {0}, all = 0;
    assert_non_null(seen);
    for (uint64_t step = 0; step < STEPS; step++) {
      shoal_policy_act(policy, N, seen, memory[0], key_of(3), step, false, actions, NULL);
      for (int i = 0; i < N; i++) {
        int choice = (int)actions[i];
        counts[choice]++;
        all++;
        if (since[i] > 0) assert_int_equal(choice, kept[i]);
        if (since[i] > 0)
          since[i]--;
        else
          kept[i] = choice, since[i] = (int)memory[i][0];
        assert_true(memory[i][0] < (float)hold && (hold > 1 || memory[i][0] == 0));
      }
    }
    /* Of a cycle of one greedy step with probability 0.8 or `hold` random ones with 0.2. */
    double random = 0.2 * hold / (0.8 + 0.2 * hold);
    for (int i = 0; i < 5; i++) {
      double expected = random / 5 + (i == 1 ? 1 - random : 0);
      assert_true(fabs(counts[i] / all - expected) < 0.01);
    }
    shoal_policy_act(policy, N, seen, memory[0], key_of(3), 0, true, actions, NULL);
    for (int i = 0; i < N; i++) assert_true(actions[i] == 1);
    free(seen);
    shoal_policy_destroy(policy);
  }
}

static double normal_log_density(double x, double mean, double log_deviation) {
  double z = (x - mean) / exp(log_deviation);
  return -0.5 * z * z - log_deviation - 0.5 * log(2 * 3.14159265358979323846);
}

static void gaussian_actions_have_their_moments_and_densities(void **unused) {
  (void)unused;
  enum { N = 300, STEPS = 200 };
  static const float means[WIDTH] = {0.5f, -1, 3}, logs[WIDTH] = {-1, 0.5f, 5}; /* the last is cut to 2 */
  shoal_policy *policy = constant(&REAL, SHOAL_HEAD_GAUSSIAN, false, means);
  shoal_policy_state *state = shoal_policy_state_of(policy);
  memcpy(state->weights + state->weights_count - WIDTH, logs, sizeof logs);
  float *seen = calloc(N * SEEN, sizeof *seen), actions[N][WIDTH], log_probs[N], memory[N][1 + WIDTH] = {{0}};
  double sums[WIDTH] = {0}, squares[WIDTH] = {0}, product = 0;
  assert_non_null(seen);
  for (uint64_t step = 0; step < STEPS; step++) {
    shoal_policy_act(policy, N, seen, memory[0], key_of(4), step, false, actions[0], log_probs);
    for (int i = 0; i < N; i++) {
      double expected = 0, z[WIDTH];
      for (int k = 0; k < WIDTH; k++) {
        double log_deviation = fmin(logs[k], 2);
        z[k] = (actions[i][k] - (double)means[k]) / exp(log_deviation);
        sums[k] += z[k];
        squares[k] += z[k] * z[k];
        expected += normal_log_density(actions[i][k], means[k], log_deviation);
      }
      product += z[0] * z[1];
      assert_true(fabs(log_probs[i] - expected) < 1e-4);
    }
  }
  double n = N * STEPS;
  for (int k = 0; k < WIDTH; k++) {
    assert_true(fabs(sums[k] / n) < 0.02);
    assert_true(fabs(squares[k] / n - 1) < 0.03);
  }
  assert_true(fabs(product / n) < 0.02);
  shoal_policy_act(policy, N, seen, memory[0], key_of(4), 0, true, actions[0], log_probs);
  assert_memory_equal(actions[7], means, sizeof means);
  free(seen);
  shoal_policy_destroy(policy);
}

static void squashed_actions_stay_in_bounds_with_the_right_density(void **unused) {
  (void)unused;
  enum { N = 400 };
  static const float outputs[2 * WIDTH] = {0.3f, -1.5f, 4, -0.5f, 0.2f, 1.5f};
  shoal_policy *policy = constant(&REAL, SHOAL_HEAD_SQUASHED, false, outputs);
  float *seen = calloc(N * SEEN, sizeof *seen), actions[N][WIDTH], log_probs[N], memory[N][1 + WIDTH] = {{0}};
  assert_non_null(seen);
  shoal_policy_act(policy, N, seen, memory[0], key_of(6), 1, false, actions[0], log_probs);
  int compared = 0;
  for (int i = 0; i < N; i++) {
    double expected = 0;
    bool inside = true;
    for (int k = 0; k < WIDTH; k++) {
      assert_true(actions[i][k] >= -2 && actions[i][k] <= 4);
      double a = (actions[i][k] - 1.0) / 3; /* back between -1 and 1 */
      inside &= fabs(a) < 0.99;
      if (!inside) break;
      expected += normal_log_density(atanh(a), outputs[k], outputs[WIDTH + k]) - log(1 - a * a);
    }
    assert_true(isfinite(log_probs[i]));
    if (!inside) continue;
    compared++;
    assert_true(fabs(log_probs[i] - expected) < 2e-3);
  }
  assert_true(compared > 10);
  shoal_policy_act(policy, N, seen, memory[0], key_of(6), 1, true, actions[0], log_probs);
  for (int k = 0; k < WIDTH; k++) assert_true(fabs(actions[3][k] - (1 + 3 * tanh(outputs[k]))) < 1e-6);
  free(seen);
  shoal_policy_destroy(policy);
}

static void noise_is_held_as_long_as_it_says(void **unused) {
  (void)unused;
  static const float outputs[2 * WIDTH] = {0};
  shoal_policy *policy = constant(&REAL, SHOAL_HEAD_SQUASHED, false, outputs);
  shoal_policy_state_of(policy)->hold = 3;
  float seen[SEEN] = {0}, memory[1 + WIDTH] = {0}, actions[9][WIDTH];
  for (uint64_t step = 0; step < 9; step++)
    shoal_policy_act(policy, 1, seen, memory, key_of(7), step, false, actions[step], NULL);
  for (int step = 1; step < 9; step++)
    assert_true((memcmp(actions[step], actions[step - 1], sizeof actions[0]) == 0) == (step % 3 != 0));
  shoal_policy_destroy(policy);
}

static void observations_are_scaled_and_cut(void **unused) {
  (void)unused;
  shoal_policy *policy = make(&FIVE, SHOAL_HEAD_CATEGORICAL, false, "dense 4 tanh");
  shoal_policy_state *state = shoal_policy_state_of(policy);
  float seen[2][SEEN] = {{1, 2, 3}, {-5, 1e9f, 0}}, out[2][SEEN];
  shoal_policy_scale(policy, 2, seen[0], out[0]);
  assert_memory_equal(seen, out, sizeof seen);
  for (int k = 0; k < SEEN; k++) state->mean[k] = (float)k, state->scale[k] = 0.5f;
  state->seen = 10;
  shoal_policy_scale(policy, 2, seen[0], out[0]);
  static const float expected[2][SEEN] = {{0.5f, 0.5f, 0.5f}, {-2.5f, 10, -1}};
  assert_memory_equal(expected, out, sizeof out);
  shoal_policy_destroy(policy);
}

/* Weights so large that nothing stays finite inside: actions and probabilities are, all the same. */
static void whatever_the_weights_are_actions_are_finite(void **unused) {
  (void)unused;
  for (int head = SHOAL_HEAD_CATEGORICAL; head <= SHOAL_HEAD_SQUASHED; head++) {
    const shoal_env_kind *kind = head <= SHOAL_HEAD_GREEDY ? &FIVE : &REAL;
    shoal_policy *policy = make(kind, (shoal_head)head, false, "dense 8\nlstm 4\ndense 6 relu");
    shoal_policy_state *state = shoal_policy_state_of(policy);
    for (size_t i = 0; i < state->weights_count; i++) state->weights[i] = i % 3 == 0 ? 3e38f : -3e38f;
    float seen[4][SEEN] = {{1, 2, 3}, {-1e30f, 1e30f, 0}, {0}}, actions[4 * WIDTH], log_probs[4];
    float *memory = calloc(4, shoal_policy_memory_floats(policy) * sizeof *memory);
    assert_non_null(memory);
    for (int step = 0; step < 3; step++) {
      shoal_policy_act(policy, 4, seen[0], memory, key_of(1), (uint64_t)step, false, actions, log_probs);
      for (uint32_t i = 0; i < 4 * kind->action_width; i++) assert_true(isfinite(actions[i]));
      for (int i = 0; i < 4; i++) assert_true(isfinite(log_probs[i]));
    }
    free(memory);
    shoal_policy_destroy(policy);
  }
}

static void versions_go_there_and_back_and_damage_is_refused(void **unused) {
  (void)unused;
  shoal_policy *from = make(&REAL, SHOAL_HEAD_GAUSSIAN, false, "dense 8 tanh"),
               *to = make(&REAL, SHOAL_HEAD_GAUSSIAN, false, "dense 8 tanh"),
               *other = make(&REAL, SHOAL_HEAD_GAUSSIAN, false, "dense 8 relu");
  shoal_policy_state *a = shoal_policy_state_of(from), *b = shoal_policy_state_of(to);
  a->version = 77;
  a->seen = 1234;
  a->epsilon = 0.25f;
  a->hold = 5;
  for (int k = 0; k < SEEN; k++) a->mean[k] = (float)k, a->scale[k] = 2;
  for (size_t i = 0; i < a->weights_count; i++) a->weights[i] = (float)i * 0.125f;
  shoal_text bytes, again;
  shoal_error err = {0};
  shoal_text_init(&bytes);
  shoal_text_init(&again);
  shoal_policy_write(from, &bytes);
  assert_false(bytes.failed);
  assert_int_equal(shoal_policy_read(to, bytes.bytes, bytes.length, &err), SHOAL_OK);
  assert_true(b->version == 77 && b->seen == 1234 && b->epsilon == 0.25f && b->hold == 5);
  shoal_policy_write(to, &again);
  assert_int_equal(bytes.length, again.length);
  assert_memory_equal(bytes.bytes, again.bytes, bytes.length);
  assert_int_equal(shoal_policy_read(other, bytes.bytes, bytes.length, &err), SHOAL_INVALID);
  assert_non_null(strstr(err.text, "another"));
  for (size_t i = 0; i < bytes.length; i++) {
    bytes.bytes[i] ^= 0x10;
    assert_int_equal(shoal_policy_read(to, bytes.bytes, bytes.length, &err), SHOAL_INVALID);
    bytes.bytes[i] ^= 0x10;
    assert_int_equal(shoal_policy_read(to, bytes.bytes, i, &err), SHOAL_INVALID);
  }
  shoal_text_add(&bytes, "x", 1);
  assert_int_equal(shoal_policy_read(to, bytes.bytes, bytes.length, &err), SHOAL_INVALID);
  /* Written honestly, but not what a version may be. */
  static const struct {
    float epsilon, weight;
    uint32_t hold;
  } wrong[] = {{1.5f, 0, 1}, {NAN, 0, 1}, {0, INFINITY, 1}, {0, NAN, 1}, {0, 0, 0}, {0, 0, UINT32_MAX}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    a->epsilon = wrong[i].epsilon;
    a->hold = wrong[i].hold;
    a->weights[3] = wrong[i].weight;
    shoal_text_clear(&bytes);
    shoal_policy_write(from, &bytes);
    assert_int_equal(shoal_policy_read(to, bytes.bytes, bytes.length, &err), SHOAL_INVALID);
  }
  assert_true(b->version == 77 && b->epsilon == 0.25f && b->hold == 5 && b->weights[3] == 0.375f);
  shoal_text_release(&bytes);
  shoal_text_release(&again);
  shoal_policy_destroy(from);
  shoal_policy_destroy(to);
  shoal_policy_destroy(other);
}

static void heads_that_do_not_suit_the_actions_are_refused(void **unused) {
  (void)unused;
  for (int head = SHOAL_HEAD_CATEGORICAL; head <= SHOAL_HEAD_SQUASHED; head++) {
    shoal_policy *policy;
    shoal_error err = {0};
    shoal_policy_spec spec = {
        .kind = head <= SHOAL_HEAD_GREEDY ? &REAL : &FIVE, .head = (shoal_head)head, .body = ""};
    assert_int_equal(shoal_policy_create(&policy, &spec, &err), SHOAL_INVALID);
    assert_null(policy);
    assert_true(err.text[0] != 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(choices_come_as_often_as_they_should),
      cmocka_unit_test(a_row_does_not_depend_on_the_others),
      cmocka_unit_test(random_choices_have_their_share_and_are_held),
      cmocka_unit_test(gaussian_actions_have_their_moments_and_densities),
      cmocka_unit_test(squashed_actions_stay_in_bounds_with_the_right_density),
      cmocka_unit_test(noise_is_held_as_long_as_it_says),
      cmocka_unit_test(observations_are_scaled_and_cut),
      cmocka_unit_test(whatever_the_weights_are_actions_are_finite),
      cmocka_unit_test(versions_go_there_and_back_and_damage_is_refused),
      cmocka_unit_test(heads_that_do_not_suit_the_actions_are_refused),
  };
  return RUN_TESTS(tests);
}
