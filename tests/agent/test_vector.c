#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vector.h"

static shoal_vector *make(const char *name, uint32_t count) {
  shoal_vector *vector;
  shoal_error err;
  const shoal_env_kind *kind = shoal_env_find(name);
  assert_non_null(kind);
  assert_int_equal(shoal_vector_create(&vector, kind, count, &err), SHOAL_OK);
  return vector;
}

/* The same environments, by their bytes, in a new vector. */
static shoal_vector *moved(shoal_vector *from, const char *name, uint32_t count) {
  shoal_vector *to = make(name, count);
  uint8_t *bytes = malloc(shoal_vector_bytes(from));
  assert_non_null(bytes);
  shoal_vector_save(from, bytes);
  assert_true(shoal_vector_load(to, bytes, shoal_vector_bytes(from)));
  free(bytes);
  shoal_vector_destroy(from);
  return to;
}

static void environment_i_begins_with_seed_plus_i(void **state) {
  (void)state;
  shoal_vector *many = make("CartPole-v1", 5), *one = make("CartPole-v1", 1);
  shoal_vector_reset(many, 40);
  for (uint64_t i = 0; i < 5; i++) {
    shoal_vector_reset(one, 40 + i);
    assert_memory_equal(shoal_vector_observations(many) + 4 * i, shoal_vector_observations(one),
                        4 * sizeof(float));
  }
  shoal_vector_destroy(many);
  shoal_vector_destroy(one);
}

/* What becomes of one does not depend on how many are stepped together, nor on who its neighbours are. */
static void neighbours_change_nothing(void **state) {
  (void)state;
  enum { COUNT = 531, STEPS = 60 };
  static float actions[COUNT], rewards[COUNT];
  static uint8_t ends[COUNT];
  for (int k = 0; shoal_env_kinds[k]; k++) {
    const shoal_env_kind *kind = shoal_env_kinds[k];
    if (kind->action_width != 1) continue;
    shoal_vector *many = make(kind->name, COUNT), *one = make(kind->name, 1);
    shoal_vector_reset(many, 9);
    for (uint32_t chosen = 0; chosen < COUNT; chosen += 53) {
      shoal_vector_reset(many, 9);
      shoal_vector_reset(one, 9 + chosen);
      for (uint32_t t = 0; t < STEPS; t++) {
        for (uint32_t i = 0; i < COUNT; i++)
          actions[i] = kind->choices ? (float)((i * 7 + t * t) % kind->choices) : sinf((float)(i + t * t));
        float reward;
        uint8_t end;
        shoal_vector_step(many, actions, rewards, ends);
        shoal_vector_step(one, &actions[chosen], &reward, &end);
        assert_int_equal(end, ends[chosen]);
        assert_true(reward == rewards[chosen]);
        assert_memory_equal(shoal_vector_observations(one),
                            shoal_vector_observations(many) + (size_t)chosen * kind->observation,
                            kind->observation * sizeof(float));
      }
    }
    shoal_vector_destroy(many);
    shoal_vector_destroy(one);
  }
}

/* A cart from elsewhere, whose pole hangs down, is computed in another way than those beside it. */
static void a_strange_neighbour_changes_nothing(void **state) {
  (void)state;
  enum { COUNT = 9, HEAD = 16, CART = 32, ANGLE = 16 };
  float actions[COUNT] = {1, 0, 1, 1, 0, 0, 1, 0, 1}, rewards[COUNT];
  uint8_t ends[COUNT];
  for (uint64_t seed = 0; seed < 50; seed++) {
    size_t strange = seed % COUNT;
    shoal_vector *plain = make("CartPole-v1", COUNT), *mixed = make("CartPole-v1", COUNT);
    shoal_vector_reset(plain, seed);
    size_t length = shoal_vector_bytes(plain);
    uint8_t *bytes = malloc(length);
    shoal_vector_save(plain, bytes);
    double down = 3;
    memcpy(bytes + HEAD + strange * CART + ANGLE, &down, sizeof down);
    assert_true(shoal_vector_load(mixed, bytes, length));
    free(bytes);
    shoal_vector_step(mixed, actions, rewards, ends);
    assert_int_equal(ends[strange], SHOAL_TERMINATED);
    shoal_vector_step(plain, actions, rewards, ends);
    for (size_t i = 0; i < COUNT; i++)
      if (i != strange)
        assert_memory_equal(shoal_vector_state(plain, (uint32_t)i), shoal_vector_state(mixed, (uint32_t)i),
                            CART);
    shoal_vector_destroy(plain);
    shoal_vector_destroy(mixed);
  }
}

/* Pushed to the right all the time, a pole falls in about ten steps. */
static void an_episode_that_ends_begins_anew_in_the_same_step(void **state) {
  (void)state;
  shoal_vector *vector = make("CartPole-v1", 1);
  shoal_vector_reset(vector, 3);
  uint32_t ended = 0;
  for (uint32_t t = 0; t < 200; t++) {
    float action = 1, reward;
    uint8_t end;
    shoal_vector_step(vector, &action, &reward, &end);
    assert_true(reward == 1.0f);
    const float *now = shoal_vector_observations(vector);
    if (end == SHOAL_GOES_ON) continue;
    assert_int_equal(end, SHOAL_TERMINATED);
    const float *last = shoal_vector_last(vector, 0);
    assert_true(fabsf(last[2]) > 0.2094f || fabsf(last[0]) > 2.4f);
    for (int i = 0; i < 4; i++) assert_true(fabsf(now[i]) <= 0.05f);
    ended++;
  }
  assert_in_range(ended, 15, 25);
  shoal_vector_destroy(vector);
}

static void running_out_of_time_is_told_apart(void **state) {
  (void)state;
  shoal_vector *vector = make("Pendulum-v1", 2);
  shoal_vector_reset(vector, 1);
  for (uint32_t t = 1; t <= 400; t++) {
    float before[6], actions[2] = {1, -1}, rewards[2];
    uint8_t ends[2];
    memcpy(before, shoal_vector_observations(vector), sizeof before);
    shoal_vector_step(vector, actions, rewards, ends);
    for (int i = 0; i < 2; i++) {
      assert_int_equal(ends[i], t % 200 == 0 ? SHOAL_TRUNCATED : SHOAL_GOES_ON);
      if (ends[i] == SHOAL_GOES_ON) continue;
      /* The last observation follows from the one before it; the one to act on next does not. */
      const float *last = shoal_vector_last(vector, (uint32_t)i);
      assert_true(fabsf(last[2] - before[3 * i + 2]) <= 0.05f * (15 + 3 * 1) + 1e-4f);
      assert_true(fabsf(shoal_vector_observations(vector)[3 * i + 2]) <= 1.0f);
      assert_memory_not_equal(last, shoal_vector_observations(vector) + 3 * i, 3 * sizeof(float));
    }
  }
  shoal_vector_destroy(vector);
}

/* Episodes begin at many times: some poles are let fall for a while, then all are balanced by a simple rule.
 * In the middle of it they go on in another vector. */
static void each_of_many_runs_out_of_its_own_time(void **state) {
  (void)state;
  enum { COUNT = 600, STEPS = 700, LIMIT = 200, MOVED_AT = 333 };
  static float actions[COUNT], rewards[COUNT];
  static uint8_t ends[COUNT];
  static uint32_t elapsed[COUNT], cut[COUNT];
  shoal_vector *vector = make("CartPole-v0", COUNT);
  shoal_vector_reset(vector, 5);
  for (uint32_t t = 0; t < STEPS; t++) {
    if (t == MOVED_AT) vector = moved(vector, "CartPole-v0", COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
      const float *seen = shoal_vector_observations(vector) + (size_t)4 * i;
      actions[i] = t < i % 150 || seen[2] + 0.5f * seen[3] + 0.1f * seen[1] > 0;
    }
    shoal_vector_step(vector, actions, rewards, ends);
    for (uint32_t i = 0; i < COUNT; i++) {
      elapsed[i]++;
      if (ends[i] != SHOAL_TERMINATED)
        assert_int_equal(ends[i], elapsed[i] == LIMIT ? SHOAL_TRUNCATED : SHOAL_GOES_ON);
      cut[i] += ends[i] == SHOAL_TRUNCATED;
      if (ends[i] != SHOAL_GOES_ON) elapsed[i] = 0;
    }
  }
  for (uint32_t i = 0; i < COUNT; i++) assert_in_range(cut[i], 1, 3);
  shoal_vector_destroy(vector);
}

/* Balanced by a simple rule until the last step in time, and pushed over just then: it ended by itself. */
static void an_end_in_the_last_step_is_an_end(void **state) {
  (void)state;
  shoal_vector *vector = make("MountainCar-v0", 1);
  uint32_t both = 0, cut = 0;
  for (uint64_t seed = 0; seed < 3000; seed++) {
    shoal_vector_reset(vector, seed);
    /* Left alone for a while, then pushed along: it arrives at about the limit. */
    uint32_t wait = 60 + (uint32_t)(seed % 40);
    for (uint32_t t = 1; t <= 200; t++) {
      const float *now = shoal_vector_observations(vector);
      float action = t <= wait ? 1 : now[1] >= 0 ? 2 : 0, reward;
      uint8_t end;
      shoal_vector_step(vector, &action, &reward, &end);
      const float *last = shoal_vector_last(vector, 0);
      if (t == 200 && end == SHOAL_TERMINATED) both++;
      if (t == 200 && end == SHOAL_TRUNCATED) cut++;
      assert_true(t < 200 || end != SHOAL_GOES_ON);
      if (end != SHOAL_GOES_ON) {
        assert_int_equal(end, last[0] >= 0.5f && last[1] >= 0 ? SHOAL_TERMINATED : SHOAL_TRUNCATED);
        break;
      }
    }
  }
  assert_true(both > 0 && cut > 0);
  shoal_vector_destroy(vector);
}

static void saved_bytes_go_on_elsewhere(void **state) {
  (void)state;
  for (int k = 0; shoal_env_kinds[k]; k++) {
    const shoal_env_kind *kind = shoal_env_kinds[k];
    enum { COUNT = 11 };
    shoal_vector *here = make(kind->name, COUNT), *there = make(kind->name, COUNT);
    size_t length = shoal_vector_bytes(here);
    assert_true((length == 0) == (kind->release != NULL));
    float actions[2 * COUNT] = {0}, rewards[2][COUNT];
    uint8_t ends[2][COUNT];
    shoal_vector_reset(here, 5);
    for (int t = 0; t < 30; t++) shoal_vector_step(here, actions, rewards[0], ends[0]);
    if (length > 0) {
      void *bytes = malloc(length);
      shoal_vector_save(here, bytes);
      assert_true(shoal_vector_load(there, bytes, length));
      free(bytes);
      for (int t = 0; t < 300; t++) {
        assert_memory_equal(shoal_vector_observations(here), shoal_vector_observations(there),
                            COUNT * kind->observation * sizeof(float));
        for (int i = 0; i < COUNT; i++) actions[i] = kind->choices ? (float)(t % (int)kind->choices) : 0.7f;
        shoal_vector_step(here, actions, rewards[0], ends[0]);
        shoal_vector_step(there, actions, rewards[1], ends[1]);
        assert_memory_equal(rewards[0], rewards[1], sizeof rewards[0]);
        assert_memory_equal(ends[0], ends[1], sizeof ends[0]);
      }
    }
    shoal_vector_destroy(here);
    shoal_vector_destroy(there);
  }
}

static void bytes_of_something_else_are_refused(void **state) {
  (void)state;
  shoal_vector *vector = make("CartPole-v1", 3), *other = make("CartPole-v0", 3),
               *fewer = make("CartPole-v1", 2);
  size_t length = shoal_vector_bytes(vector);
  uint8_t *bytes = malloc(length);
  shoal_vector_save(vector, bytes);
  assert_true(shoal_vector_load(vector, bytes, length));
  assert_false(shoal_vector_load(vector, bytes, length - 1));
  assert_false(shoal_vector_load(vector, NULL, 0));
  assert_false(shoal_vector_load(other, bytes, length));
  assert_false(shoal_vector_load(fewer, bytes, length));
  uint32_t beyond = 500;
  memcpy(bytes + length - sizeof beyond, &beyond, sizeof beyond); /* steps of an episode that is over */
  assert_false(shoal_vector_load(vector, bytes, length));
  beyond = 499;
  memcpy(bytes + length - sizeof beyond, &beyond, sizeof beyond);
  assert_true(shoal_vector_load(vector, bytes, length));
  float actions[3] = {0}, rewards[3];
  uint8_t ends[3];
  shoal_vector_step(vector, actions, rewards, ends);
  assert_int_equal(ends[2], SHOAL_TRUNCATED);
  free(bytes);
  shoal_vector_destroy(vector);
  shoal_vector_destroy(other);
  shoal_vector_destroy(fewer);
}

static void none_and_too_many_are_refused(void **state) {
  (void)state;
  shoal_vector *vector;
  shoal_error err;
  const shoal_env_kind *kind = shoal_env_find("CartPole-v1");
  assert_int_equal(shoal_vector_create(&vector, kind, 0, &err), SHOAL_LIMIT);
  assert_null(vector);
  assert_int_equal(shoal_vector_create(&vector, kind, SHOAL_VECTOR_COUNT_MAX + 1, &err), SHOAL_LIMIT);
  assert_non_null(strstr(err.text, "1048577"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(environment_i_begins_with_seed_plus_i),
      cmocka_unit_test(neighbours_change_nothing),
      cmocka_unit_test(a_strange_neighbour_changes_nothing),
      cmocka_unit_test(an_episode_that_ends_begins_anew_in_the_same_step),
      cmocka_unit_test(running_out_of_time_is_told_apart),
      cmocka_unit_test(each_of_many_runs_out_of_its_own_time),
      cmocka_unit_test(an_end_in_the_last_step_is_an_end),
      cmocka_unit_test(saved_bytes_go_on_elsewhere),
      cmocka_unit_test(bytes_of_something_else_are_refused),
      cmocka_unit_test(none_and_too_many_are_refused),
  };
  return RUN_TESTS(tests);
}
