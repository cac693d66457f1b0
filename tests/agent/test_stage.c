/* Stages: environments that own more than their bytes are carried by what they have been through. */
#include "agent/stage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "check.h"

enum { ENVS = 5, LIMIT = 9, WIDTH_MAX = 2 };

/* ---- a walk that owns where it is, and counts its steps over all environments ---- */

static uint64_t steps_taken;

static void reset_walk(void *state, shoal_pcg64 *random) {
  double **owned = state;
  if (*owned == NULL) *owned = malloc(sizeof **owned);
  assert_non_null(*owned);
  **owned = shoal_pcg64_uniform(random, -1, 1);
}

static void step_walk(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms,
                      float *rewards, bool *ended) {
  for (uint32_t i = 0; i < count; i++) {
    double *x = ((double **)states)[i];
    *x += 0.5 * (double)actions[i] - 0.4 + shoal_pcg64_uniform(&randoms[i], -0.3, 0.3);
    rewards[i] = (float)*x;
    ended[i] = *x > 3;
    steps_taken++;
  }
}

static void observe_walk(const void *states, uint32_t count, float *out) {
  for (uint32_t i = 0; i < count; i++) out[i] = (float)*((double *const *)states)[i];
}

static void release_walk(void *state) { free(*(double **)state); }

static const shoal_env_kind CHOICES = {.name = "Owns-v0",
                                       .observation = 1,
                                       .choices = 5,
                                       .action_width = 1,
                                       .limit = LIMIT,
                                       .bytes = sizeof(double *),
                                       .reset = reset_walk,
                                       .step = step_walk,
                                       .observe = observe_walk,
                                       .release = release_walk};
static const shoal_env_kind NUMBERS = {.name = "Owns-v1",
                                       .observation = 1,
                                       .action_width = 1,
                                       .action_low = 0,
                                       .action_high = 4,
                                       .limit = LIMIT,
                                       .bytes = sizeof(double *),
                                       .reset = reset_walk,
                                       .step = step_walk,
                                       .observe = observe_walk,
                                       .release = release_walk};
static const shoal_env_kind ENDLESS = {.name = "Owns-v2",
                                       .observation = 1,
                                       .choices = 5,
                                       .action_width = 1,
                                       .bytes = sizeof(double *),
                                       .reset = reset_walk,
                                       .step = step_walk,
                                       .observe = observe_walk,
                                       .release = release_walk};

static shoal_stage *make(const shoal_env_kind *kind) {
  shoal_stage *stage;
  shoal_error err = {0};
  if (shoal_stage_create(&stage, kind, ENVS, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return stage;
}

static void act(shoal_stage *stage, const shoal_env_kind *kind, uint64_t step, float *rewards,
                uint8_t *ends) {
  float actions[ENVS * WIDTH_MAX];
  shoal_key key = shoal_key_make(4, SHOAL_FOR_TOY, step, 0);
  for (uint32_t i = 0; i < ENVS * kind->action_width; i++)
    actions[i] = kind->choices > 0 ? (float)shoal_random_below(key, i, kind->choices)
                                   : 2 * shoal_random_uniform(key, i) - 0.5f;
  shoal_stage_step(stage, actions, rewards, ends);
}

static uint8_t *save(const shoal_stage *stage, size_t *length) {
  *length = shoal_stage_bytes(stage);
  uint8_t *bytes = malloc(*length + 1);
  assert_non_null(bytes);
  shoal_stage_save(stage, bytes);
  return bytes;
}

/* Both go on together: whatever follows is the same. */
static void go_on(shoal_stage *here, shoal_stage *there, const shoal_env_kind *kind, uint64_t from) {
  for (uint64_t step = from; step < from + 40; step++) {
    float rewards[2][ENVS];
    uint8_t ends[2][ENVS];
    size_t bytes = ENVS * kind->observation * sizeof(float);
    assert_memory_equal(shoal_stage_observations(here), shoal_stage_observations(there), bytes);
    act(here, kind, step, rewards[0], ends[0]);
    act(there, kind, step, rewards[1], ends[1]);
    assert_memory_equal(rewards[0], rewards[1], sizeof rewards[0]);
    assert_memory_equal(ends[0], ends[1], sizeof ends[0]);
    for (uint32_t i = 0; i < ENVS; i++)
      if (ends[0][i] != SHOAL_GOES_ON)
        assert_memory_equal(shoal_stage_last(here, i), shoal_stage_last(there, i),
                            kind->observation * sizeof(float));
  }
}

static void check_carried(const shoal_env_kind *kind, uint64_t steps) {
  shoal_stage *here = make(kind), *there = make(kind);
  float rewards[ENVS];
  uint8_t ends[ENVS];
  shoal_stage_reset(here, 12);
  for (uint64_t step = 0; step < steps; step++) act(here, kind, step, rewards, ends);
  act(there, kind, 5, rewards, ends); /* it has been elsewhere */
  size_t length;
  uint8_t *bytes = save(here, &length);
  assert_true(length > 0 && shoal_stage_load(there, bytes, length));
  go_on(here, there, kind, steps);
  free(bytes);
  shoal_stage_destroy(here);
  shoal_stage_destroy(there);
}

static void what_owns_more_than_its_bytes_goes_on_elsewhere(void **unused) {
  (void)unused;
  for (uint64_t steps = 0; steps < 30; steps += 3) {
    check_carried(&CHOICES, steps);
    check_carried(&NUMBERS, steps);
  }
}

static void every_kind_that_is_built_in_goes_on_elsewhere(void **unused) {
  (void)unused;
  for (int k = 0; shoal_env_kinds[k] != NULL; k++) {
    if (shoal_env_kinds[k]->action_width > WIDTH_MAX) continue;
    print_message("%s\n", shoal_env_kinds[k]->name);
    check_carried(shoal_env_kinds[k], 0);
    check_carried(shoal_env_kinds[k], 130);
  }
}

static void one_that_is_on_the_way_plays_only_the_rest(void **unused) {
  (void)unused;
  shoal_stage *here = make(&CHOICES), *there = make(&CHOICES);
  float rewards[ENVS];
  uint8_t ends[ENVS];
  size_t length;
  uint64_t seed = 0;
  for (bool ended = true; ended; seed++) { /* until there is one with whom nobody ends soon */
    shoal_stage_reset(here, seed);
    shoal_stage_reset(there, seed);
    ended = false;
    for (uint64_t step = 0; step < 3; step++) {
      act(here, &CHOICES, step, rewards, ends);
      for (int i = 0; i < ENVS; i++) ended |= ends[i] != SHOAL_GOES_ON;
    }
    for (uint64_t step = 0; step < 2; step++) act(there, &CHOICES, step, rewards, ends);
  }
  uint8_t *bytes = save(here, &length);
  uint64_t before = steps_taken;
  assert_true(shoal_stage_load(here, bytes, length));
  assert_true(steps_taken == before); /* it stands there */
  assert_true(shoal_stage_load(there, bytes, length));
  assert_true(steps_taken == before + ENVS);
  act(there, &CHOICES, 77, rewards, ends);
  before = steps_taken;
  assert_true(shoal_stage_load(there, bytes, length)); /* it has gone too far */
  assert_true(steps_taken > before + ENVS);
  go_on(here, there, &CHOICES, 3);
  free(bytes);
  shoal_stage_destroy(here);
  shoal_stage_destroy(there);
}

static void one_of_another_seed_is_not_on_the_way(void **unused) {
  (void)unused;
  shoal_stage *here = make(&CHOICES), *there = make(&CHOICES);
  size_t length;
  shoal_stage_reset(here, 1);
  shoal_stage_reset(there, 2);
  uint8_t *bytes = save(here, &length);
  assert_true(shoal_stage_load(there, bytes, length));
  go_on(here, there, &CHOICES, 0);
  free(bytes);
  shoal_stage_destroy(here);
  shoal_stage_destroy(there);
}

static void bytes_that_are_no_trail_are_refused(void **unused) {
  (void)unused;
  for (int numbers = 0; numbers < 2; numbers++) {
    const shoal_env_kind *kind = numbers ? &NUMBERS : &CHOICES;
    shoal_stage *stage = make(kind), *there = make(kind);
    float rewards[ENVS];
    uint8_t ends[ENVS];
    size_t length;
    for (uint64_t step = 0; step < 5; step++) act(stage, kind, step, rewards, ends);
    uint8_t *bytes = save(stage, &length);
    for (size_t i = 0; i < length; i++) assert_false(shoal_stage_load(there, bytes, i));
    bytes[length] = 0;
    assert_false(shoal_stage_load(there, bytes, length + 1));
    for (size_t at = 0; at < 24; at++) {
      if (at >= 8 && at < 16) continue; /* any seed is one */
      bytes[at] ^= 1;
      assert_false(shoal_stage_load(there, bytes, length));
      bytes[at] ^= 1;
    }
    uint32_t word = LIMIT;
    memcpy(bytes + 28, &word, sizeof word);
    assert_false(shoal_stage_load(there, bytes, length));
    free(bytes);
    bytes = save(stage, &length);
    memset(bytes + 32, 0xff, 4); /* no choice, and no number */
    assert_int_equal(shoal_stage_load(there, bytes, length), !numbers);
    act(there, kind, 9, rewards, ends);
    free(bytes);
    shoal_stage_destroy(stage);
    shoal_stage_destroy(there);
  }
}

/* Four is the fastest way to the end: eight of them are never one episode. */
static void an_episode_that_would_have_ended_is_no_trail(void **unused) {
  (void)unused;
  enum { HEAD = 24, EACH = 8, STEPS = LIMIT - 1 };
  shoal_stage *stage = make(&CHOICES);
  size_t length;
  uint8_t *bytes = save(stage, &length), longer[HEAD + ENVS * EACH + STEPS];
  assert_int_equal(length, HEAD + ENVS * EACH);
  memcpy(longer, bytes, HEAD + EACH);
  memset(longer + HEAD + EACH, 4, STEPS);
  memcpy(longer + HEAD + EACH + STEPS, bytes + HEAD + EACH, (ENVS - 1) * EACH);
  for (uint32_t steps = 0; steps <= STEPS; steps += STEPS) {
    memcpy(longer + HEAD + 4, &steps, sizeof steps);
    assert_false(shoal_stage_load(stage, longer, sizeof longer));
  }
  memset(longer + HEAD + EACH, 0, STEPS);
  assert_true(shoal_stage_load(stage, longer, sizeof longer));
  free(bytes);
  shoal_stage_destroy(stage);
}

static void an_episode_without_end_is_not_carried(void **unused) {
  (void)unused;
  shoal_stage *stage = make(&ENDLESS);
  assert_int_equal(shoal_stage_bytes(stage), 0);
  uint8_t bytes[64] = {0};
  assert_false(shoal_stage_load(stage, bytes, sizeof bytes));
  shoal_stage_destroy(stage);
  shoal_error err = {0};
  assert_int_equal(shoal_stage_create(&stage, &CHOICES, 0, &err), SHOAL_LIMIT);
}

static void episodes_differ_from_one_another(void **unused) {
  (void)unused;
  shoal_stage *stage = make(&CHOICES);
  float firsts[64], rewards[ENVS];
  int count = 0;
  uint8_t ends[ENVS];
  shoal_stage_reset(stage, 8);
  for (int i = 0; i < ENVS; i++) firsts[count++] = shoal_stage_observations(stage)[i];
  for (uint64_t step = 0; step < 60 && count + ENVS < 64; step++) {
    act(stage, &CHOICES, step, rewards, ends);
    for (int i = 0; i < ENVS; i++)
      if (ends[i] != SHOAL_GOES_ON) firsts[count++] = shoal_stage_observations(stage)[i];
  }
  assert_true(count > 20);
  for (int i = 0; i < count; i++)
    for (int j = 0; j < i; j++) assert_true(firsts[i] != firsts[j]);
  shoal_stage_destroy(stage);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_owns_more_than_its_bytes_goes_on_elsewhere),
      cmocka_unit_test(every_kind_that_is_built_in_goes_on_elsewhere),
      cmocka_unit_test(one_that_is_on_the_way_plays_only_the_rest),
      cmocka_unit_test(one_of_another_seed_is_not_on_the_way),
      cmocka_unit_test(bytes_that_are_no_trail_are_refused),
      cmocka_unit_test(an_episode_that_would_have_ended_is_no_trail),
      cmocka_unit_test(an_episode_without_end_is_not_carried),
      cmocka_unit_test(episodes_differ_from_one_another),
  };
  return RUN_TESTS(tests);
}
