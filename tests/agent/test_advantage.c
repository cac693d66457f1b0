/* Advantages: against the sums that define them, at the ends of episodes, and where no ratio matters. */
#include "agent/advantage.h"

#include <math.h>
#include <string.h>

#include "agent/vector.h"
#include "base/random.h"
#include "check.h"

enum { ENVS = 3, STEPS = 12, ROWS = ENVS * STEPS };

typedef struct scene {
  float rewards[ROWS], values[ROWS + ENVS], last_values[ROWS], log_ratios[ROWS];
  uint8_t ends[ROWS];
  uint32_t last_rows[ROWS];
  shoal_advantage_task task;
} scene;

static void make(scene *s, uint64_t seed, float lambda) {
  shoal_key key = shoal_key_make(seed, SHOAL_FOR_SIMULATION, 0, 0);
  memset(s, 0, sizeof *s);
  uint32_t lasts = 0;
  for (uint32_t row = 0; row < ROWS; row++) {
    uint64_t draw = shoal_random_below(key, 4 * row, 10);
    s->ends[row] = draw == 0 ? SHOAL_TERMINATED : draw == 1 ? SHOAL_TRUNCATED : SHOAL_GOES_ON;
    s->rewards[row] = shoal_random_normal(key, 4 * row + 1);
    s->log_ratios[row] = shoal_random_normal(key, 4 * row + 2);
    if (s->ends[row] != SHOAL_TRUNCATED) continue;
    s->last_rows[lasts] = row;
    s->last_values[lasts++] = shoal_random_normal(key, 4 * row + 3);
  }
  for (uint32_t row = 0; row < ROWS + ENVS; row++) s->values[row] = shoal_random_normal(key, 1000 + row);
  s->task = (shoal_advantage_task){.envs = ENVS,
                                   .steps = STEPS,
                                   .rewards = s->rewards,
                                   .reward_scale = 0.5f,
                                   .ends = s->ends,
                                   .values = s->values,
                                   .lasts_count = lasts,
                                   .last_rows = s->last_rows,
                                   .last_values = s->last_values,
                                   .discount = 0.9f,
                                   .lambda = lambda};
}

/* The value of what follows a row, within its episode. */
static double next_value(const scene *s, uint32_t row) {
  if (s->ends[row] == SHOAL_TERMINATED) return 0;
  for (uint32_t i = 0; i < s->task.lasts_count; i++)
    if (s->last_rows[i] == row) return s->last_values[i];
  return s->values[row + ENVS];
}

static double rho(const scene *s, uint32_t row) { return fmin(1, exp((double)s->log_ratios[row])); }
static double delta(const scene *s, uint32_t row) {
  return (double)s->rewards[row] * 0.5 + (double)0.9f * next_value(s, row) - s->values[row];
}

static void gae_is_the_sum_of_discounted_surprises(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    scene s;
    float advantages[ROWS], targets[ROWS];
    make(&s, seed, 0.8f);
    shoal_advantage_gae(&s.task, advantages, targets);
    for (uint32_t row = 0; row < ROWS; row++) {
      double sum = 0, weight = 1;
      for (uint32_t at = row; at < ROWS; at += ENVS) {
        sum += weight * delta(&s, at);
        weight *= (double)0.9f * (double)0.8f;
        if (s.ends[at] != SHOAL_GOES_ON) break;
      }
      assert_float_equal(advantages[row], sum, 1e-5);
      assert_float_equal(targets[row], sum + s.values[row], 1e-5);
    }
  }
}

/* v_s = V_s + sum of g^(t-s) (product of c up to t - 1) delta_t */
static void vtrace_is_the_sum_that_defines_it(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    scene s;
    float advantages[ROWS], targets[ROWS];
    make(&s, seed, 0.7f);
    shoal_advantage_vtrace(&s.task, s.log_ratios, advantages, targets);
    for (uint32_t row = 0; row < ROWS; row++) {
      double sum = s.values[row], weight = 1;
      for (uint32_t at = row; at < ROWS; at += ENVS) {
        sum += weight * rho(&s, at) * delta(&s, at);
        weight *= (double)0.9f * (double)0.7f * rho(&s, at);
        if (s.ends[at] != SHOAL_GOES_ON) break;
      }
      assert_float_equal(targets[row], sum, 1e-5);
      bool has_next = s.ends[row] == SHOAL_GOES_ON && row + ENVS < ROWS;
      double next = has_next ? targets[row + ENVS] : next_value(&s, row);
      double advantage = rho(&s, row) * ((double)s.rewards[row] * 0.5 + (double)0.9f * next - s.values[row]);
      assert_float_equal(advantages[row], advantage, 1e-5);
    }
  }
}

static void on_policy_vtrace_has_the_targets_of_gae(void **state) {
  (void)state;
  scene s;
  float none[ROWS] = {0}, advantages[ROWS], targets[ROWS], gae_advantages[ROWS], gae_targets[ROWS];
  make(&s, 5, 0.9f);
  shoal_advantage_vtrace(&s.task, none, advantages, targets);
  shoal_advantage_gae(&s.task, gae_advantages, gae_targets);
  for (uint32_t row = 0; row < ROWS; row++) assert_float_equal(targets[row], gae_targets[row], 1e-5);
}

static void a_time_limit_still_has_a_value_and_an_end_has_none(void **state) {
  (void)state;
  const float rewards[2] = {1, 1}, values[3] = {10, 20, 30}, last = 40;
  const uint32_t last_row = 0;
  uint8_t ends[2] = {SHOAL_TRUNCATED, SHOAL_TERMINATED};
  shoal_advantage_task task = {.envs = 1,
                               .steps = 2,
                               .rewards = rewards,
                               .reward_scale = 1,
                               .ends = ends,
                               .values = values,
                               .lasts_count = 1,
                               .last_rows = &last_row,
                               .last_values = &last,
                               .discount = 0.5f,
                               .lambda = 1};
  float advantages[2], targets[2];
  shoal_advantage_gae(&task, advantages, targets);
  assert_float_equal(targets[0], 1 + 0.5 * 40, 1e-6);
  assert_float_equal(targets[1], 1, 1e-6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gae_is_the_sum_of_discounted_surprises),
      cmocka_unit_test(vtrace_is_the_sum_that_defines_it),
      cmocka_unit_test(on_policy_vtrace_has_the_targets_of_gae),
      cmocka_unit_test(a_time_limit_still_has_a_value_and_an_end_has_none),
  };
  return RUN_TESTS(tests);
}
