/* The memory of transitions: n-step windows over rollouts and up to the ends of episodes, when there is
 * enough, the ring, taking a round back, files. */
#include "agent/replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "played.h"

/* A line: one number is seen, one of four choices is made. */
static const shoal_env_kind line = {.name = "line", .observation = 1, .choices = 4, .action_width = 1};

static shoal_replay *create(uint32_t capacity, uint32_t streams, uint32_t envs, uint32_t steps,
                            uint32_t n_step) {
  shoal_replay_config config = {.kind = &line,
                                .capacity = capacity,
                                .streams = streams,
                                .envs = envs,
                                .steps = steps,
                                .n_step = n_step,
                                .discount = 0.5f};
  shoal_replay *replay;
  shoal_error err = {0};
  if (shoal_replay_create(&replay, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return replay;
}

static void add(shoal_replay *replay, shoal_rollout *rollout) {
  shoal_error err = {0};
  if (shoal_replay_add(replay, &rollout, 1, &err) != SHOAL_OK) fail_msg("%s", err.text);
}

/* One environment that sees first, first + 1, ... and is rewarded with what it sees. */
static shoal_rollout *walk(uint32_t first, uint32_t steps) {
  shoal_rollout *r = played_create(&line, 1, steps, 0, 0);
  for (uint32_t t = 0; t <= steps; t++) r->observations[t] = (float)(first + t);
  for (uint32_t t = 0; t < steps; t++) {
    r->rewards[t] = (float)(first + t);
    r->actions[t] = (float)((first + t) % 4);
  }
  return r;
}

typedef struct transition {
  float seen, action, reward, discount, next;
} transition;

/* All that can be drawn, found by drawing often; in the order of what was seen. */
static uint32_t all_of(const shoal_replay *replay, transition *out) {
  uint32_t count = 0;
  shoal_replay_batch batch;
  assert_true(shoal_replay_batch_init(&batch, &line, 8192));
  if (shoal_replay_count(replay) > 0) shoal_replay_draw(replay, (shoal_key){{1, 2}}, &batch);
  for (uint32_t i = 0; i < batch.n && shoal_replay_count(replay) > 0; i++) {
    transition t = {batch.observations[i], batch.actions[i], batch.rewards[i], batch.discounts[i],
                    batch.nexts[i]};
    uint32_t at = 0;
    while (at < count && memcmp(&out[at], &t, sizeof t) != 0) at++;
    if (at < count) continue;
    for (at = count++; at > 0 && out[at - 1].seen > t.seen; at--) out[at] = out[at - 1];
    out[at] = t;
  }
  shoal_replay_batch_release(&batch);
  return count;
}

static void expect(const shoal_replay *replay, const transition *wanted, uint32_t count) {
  transition found[64];
  assert_int_equal(shoal_replay_count(replay), count);
  assert_int_equal(all_of(replay, found), count);
  for (uint32_t i = 0; i < count; i++) {
    assert_float_equal(found[i].seen, wanted[i].seen, 0);
    assert_float_equal(found[i].action, wanted[i].action, 0);
    assert_float_equal(found[i].reward, wanted[i].reward, 1e-6);
    assert_float_equal(found[i].discount, wanted[i].discount, 1e-6);
    assert_float_equal(found[i].next, wanted[i].next, 0);
  }
}

static void a_window_sums_discounted_rewards_over_two_rollouts(void **state) {
  (void)state;
  shoal_replay *replay = create(100, 1, 1, 4, 3);
  shoal_rollout *a = walk(1, 4), *b = walk(5, 4);
  add(replay, a);
  /* 1 + 2/2 + 3/4, 2 + 3/2 + 4/4; what began at 3 and 4 waits for the next rollout. */
  expect(replay, (transition[]){{1, 1, 2.75f, 0.125f, 4}, {2, 2, 4.5f, 0.125f, 5}}, 2);
  add(replay, b);
  expect(replay,
         (transition[]){{1, 1, 2.75f, 0.125f, 4},
                        {2, 2, 4.5f, 0.125f, 5},
                        {3, 3, 6.25f, 0.125f, 6},
                        {4, 0, 8, 0.125f, 7},
                        {5, 1, 9.75f, 0.125f, 8},
                        {6, 2, 11.5f, 0.125f, 9}},
         6);
  assert_int_equal(shoal_replay_steps(replay), 8);
  played_destroy(a);
  played_destroy(b);
  shoal_replay_destroy(replay);
}

static void a_terminated_episode_has_nothing_behind_it(void **state) {
  (void)state;
  shoal_replay *replay = create(100, 1, 1, 4, 3);
  shoal_rollout *a = walk(1, 4);
  played_end(a, 2, SHOAL_TERMINATED, NULL, 6, 3);
  add(replay, a);
  /* 4 begins the next episode, and its window is open. */
  expect(replay, (transition[]){{1, 1, 2.75f, 0, 4}, {2, 2, 3.5f, 0, 4}, {3, 3, 3, 0, 4}}, 3);
  played_destroy(a);
  shoal_replay_destroy(replay);
}

static void an_episode_that_was_cut_off_goes_on_from_what_was_seen_last(void **state) {
  (void)state;
  shoal_replay *replay = create(100, 1, 1, 4, 3);
  shoal_rollout *a = walk(1, 4);
  played_end(a, 1, SHOAL_TRUNCATED, &(float){77}, 3, 2);
  played_end(a, 2, SHOAL_TRUNCATED, &(float){78}, 3, 1);
  add(replay, a);
  expect(replay, (transition[]){{1, 1, 2, 0.25f, 77}, {2, 2, 2, 0.5f, 77}, {3, 3, 3, 0.5f, 78}}, 3);
  played_destroy(a);
  shoal_replay_destroy(replay);
}

static void a_missing_rollout_closes_windows_at_what_was_seen_before_it(void **state) {
  (void)state;
  shoal_replay *replay = create(100, 1, 1, 4, 3);
  shoal_rollout *a = walk(1, 4), *b = walk(20, 4);
  add(replay, a);
  add(replay, b);
  expect(replay,
         (transition[]){{1, 1, 2.75f, 0.125f, 4},
                        {2, 2, 4.5f, 0.125f, 5},
                        {3, 3, 5, 0.25f, 5},
                        {4, 0, 4, 0.5f, 5},
                        {20, 0, 36, 0.125f, 23},
                        {21, 1, 37.75f, 0.125f, 24}},
         6);
  played_destroy(a);
  played_destroy(b);
  shoal_replay_destroy(replay);
}

static void there_is_enough_after_the_warmup_and_some_ends(void **state) {
  (void)state;
  shoal_replay_config config = {.kind = &line,
                                .capacity = 100,
                                .streams = 1,
                                .envs = 1,
                                .steps = 4,
                                .n_step = 1,
                                .discount = 0.5f,
                                .warmup = 8,
                                .ended = 2};
  for (uint32_t ends = 0; ends <= 2; ends++) {
    shoal_replay *replay;
    assert_int_equal(shoal_replay_create(&replay, &config, NULL), SHOAL_OK);
    uint64_t enough_at = 0;
    for (uint32_t i = 0; i < 60; i++) {
      shoal_rollout *r = walk(4 * i, 4);
      /* None ends, or one does in round 5 and again in round 10, or both do in round 0. */
      if ((ends == 1 && i == 5) || (ends == 1 && i == 10)) played_end(r, 3, SHOAL_TERMINATED, NULL, 0, 1);
      if (ends == 2 && i == 0) {
        played_end(r, 1, SHOAL_TERMINATED, NULL, 0, 1);
        played_end(r, 3, SHOAL_TERMINATED, NULL, 0, 1);
      }
      add(replay, r);
      played_destroy(r);
      if (enough_at == 0 && shoal_replay_lessons(replay) > 0)
        enough_at = shoal_replay_steps(replay) - shoal_replay_lessons(replay);
    }
    assert_int_equal(enough_at, ends == 0 ? 160 : ends == 1 ? 44 : 8);
    shoal_replay_destroy(replay);
  }
}

static void the_ring_keeps_the_newest(void **state) {
  (void)state;
  shoal_replay *replay = create(5, 1, 1, 4, 1);
  for (uint32_t i = 0; i < 10; i++) {
    shoal_rollout *r = walk(4 * i, 4);
    add(replay, r);
    played_destroy(r);
  }
  transition found[64];
  assert_int_equal(shoal_replay_count(replay), 5);
  assert_int_equal(all_of(replay, found), 5);
  for (uint32_t i = 0; i < 5; i++) assert_float_equal(found[i].seen, 35 + i, 0);
  shoal_replay_destroy(replay);
}

/* ---- against all episodes at once ---- */

enum { STREAMS = 2, ENVS = 3, STEPS = 7, ROUNDS = 9, LANES = STREAMS * ENVS, N = 4, TIMES = STEPS * ROUNDS };

typedef struct history {
  float seen[LANES][TIMES + 1], rewards[LANES][TIMES], last[LANES][TIMES];
  uint8_t ends[LANES][TIMES];
} history;

static void invent(history *h, uint64_t seed) {
  shoal_key key = shoal_key_make(seed, SHOAL_FOR_SIMULATION, 0, 0);
  uint64_t i = 0;
  for (uint32_t l = 0; l < LANES; l++)
    for (uint32_t t = 0; t <= TIMES; t++) {
      h->seen[l][t] = (float)(l * 1000 + t);
      if (t == TIMES) continue;
      h->rewards[l][t] = shoal_random_uniform(key, i++);
      h->last[l][t] = (float)(100000 + l * 1000 + t);
      uint64_t dice = shoal_random_below(key, i++, 12);
      h->ends[l][t] = dice == 0 ? SHOAL_TERMINATED : dice == 1 ? SHOAL_TRUNCATED : SHOAL_GOES_ON;
    }
}

static shoal_rollout *stretch(const history *h, uint32_t round, uint32_t stream) {
  shoal_rollout *r = played_create(&line, ENVS, STEPS, stream, round * STREAMS + stream);
  for (uint32_t row = 0; row < ENVS * (STEPS + 1); row++) {
    uint32_t l = stream * ENVS + row % ENVS, t = round * STEPS + row / ENVS;
    r->observations[row] = h->seen[l][t];
    if (row >= ENVS * STEPS) continue;
    r->rewards[row] = h->rewards[l][t];
    r->actions[row] = (float)(t % 4);
    if (h->ends[l][t] != SHOAL_GOES_ON) played_end(r, row, h->ends[l][t], &h->last[l][t], 0, 0);
  }
  return r;
}

static void add_round(shoal_replay *replay, const history *h, uint32_t round) {
  shoal_rollout *rollouts[STREAMS];
  shoal_error err = {0};
  for (uint32_t s = 0; s < STREAMS; s++) rollouts[s] = stretch(h, round, s);
  if (shoal_replay_add(replay, rollouts, STREAMS, &err) != SHOAL_OK) fail_msg("%s", err.text);
  for (uint32_t s = 0; s < STREAMS; s++) played_destroy(rollouts[s]);
}

/* The transition that begins at t, worked out with the whole history at hand; false: it is not closed yet. */
static bool transition_of(const history *h, uint32_t l, uint32_t t, transition *out) {
  *out = (transition){.seen = h->seen[l][t], .action = (float)(t % 4), .discount = 1};
  for (uint32_t k = 0; k < N; k++) {
    if (t + k >= TIMES) return false;
    out->reward += out->discount * h->rewards[l][t + k];
    out->discount *= 0.5f;
    out->next = h->seen[l][t + k + 1];
    if (h->ends[l][t + k] == SHOAL_TRUNCATED) out->next = h->last[l][t + k];
    if (h->ends[l][t + k] == SHOAL_TERMINATED) out->discount = 0;
    if (h->ends[l][t + k] != SHOAL_GOES_ON) return true;
  }
  return true;
}

static void windows_equal_those_of_whole_episodes(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 20; seed++) {
    history h;
    invent(&h, seed);
    shoal_replay *replay = create(10000, STREAMS, ENVS, STEPS, N);
    for (uint32_t round = 0; round < ROUNDS; round++) add_round(replay, &h, round);
    static transition found[LANES * TIMES];
    uint32_t count = all_of(replay, found), wanted = 0;
    for (uint32_t l = 0; l < LANES; l++)
      for (uint32_t t = 0; t < TIMES; t++) {
        transition one;
        if (!transition_of(&h, l, t, &one)) continue;
        assert_memory_equal(&found[wanted], &one, sizeof one);
        wanted++;
      }
    assert_int_equal(count, wanted);
    assert_int_equal(shoal_replay_count(replay), wanted);
    shoal_replay_destroy(replay);
  }
}

/* ---- undo and files ---- */

static void assert_same(const shoal_replay *a, const shoal_replay *b) {
  transition of_a[LANES * TIMES], of_b[LANES * TIMES];
  uint32_t count = all_of(a, of_a);
  assert_int_equal(all_of(b, of_b), count);
  assert_memory_equal(of_a, of_b, count * sizeof *of_a);
  assert_int_equal(shoal_replay_steps(a), shoal_replay_steps(b));
}

static void a_round_that_was_taken_back_leaves_no_trace(void **state) {
  (void)state;
  history h, other;
  invent(&h, 1);
  invent(&other, 2);
  shoal_replay *straight = create(50, STREAMS, ENVS, STEPS, N);
  shoal_replay *undone = create(50, STREAMS, ENVS, STEPS, N);
  for (uint32_t round = 0; round < ROUNDS; round++) {
    add_round(undone, &other, round);
    shoal_replay_undo(undone);
    assert_same(straight, undone);
    add_round(straight, &h, round);
    add_round(undone, &h, round);
    assert_same(straight, undone);
  }
  shoal_replay_destroy(straight);
  shoal_replay_destroy(undone);
}

static void what_a_file_keeps_is_enough_to_go_on(void **state) {
  (void)state;
  history h;
  invent(&h, 3);
  shoal_replay *straight = create(50, STREAMS, ENVS, STEPS, N), *loaded;
  for (uint32_t round = 0; round < 5; round++) add_round(straight, &h, round);
  loaded = create(50, STREAMS, ENVS, STEPS, N);
  shoal_kept from[SHOAL_KEPT_MAX], to[SHOAL_KEPT_MAX];
  uint32_t count = shoal_replay_kept(straight, from);
  assert_int_equal(shoal_replay_kept(loaded, to), count);
  for (uint32_t i = 0; i < count; i++) {
    assert_string_equal(from[i].name, to[i].name);
    assert_int_equal(from[i].count, to[i].count);
    memcpy(to[i].at, from[i].at, from[i].count * (from[i].bytes ? 1 : sizeof(float)));
  }
  for (uint32_t round = 5; round < ROUNDS; round++) {
    add_round(straight, &h, round);
    add_round(loaded, &h, round);
    assert_same(straight, loaded);
  }
  shoal_replay_destroy(straight);
  shoal_replay_destroy(loaded);
}

static void counts_of_a_damaged_file_are_refused(void **state) {
  (void)state;
  for (uint32_t which = 0; which < 2; which++) {
    shoal_replay *replay = create(50, 1, 1, 4, 3);
    shoal_kept kept[SHOAL_KEPT_MAX];
    uint32_t count = shoal_replay_kept(replay, kept);
    const char *name = which == 0 ? "replay.open" : "replay.tally";
    for (uint32_t i = 0; i < count; i++)
      if (strcmp(kept[i].name, name) == 0) memset(kept[i].at, 0xff, kept[i].count);
    shoal_error err = {0};
    shoal_rollout *r = walk(0, 4);
    assert_int_equal(shoal_replay_add(replay, &r, 1, &err), SHOAL_CORRUPT);
    assert_non_null(strstr(err.text, "damaged"));
    played_destroy(r);
    shoal_replay_destroy(replay);
  }
}

static void impossible_sizes_are_refused(void **state) {
  (void)state;
  shoal_replay *replay;
  shoal_error err = {0};
  shoal_replay_config config = {
      .kind = &line, .capacity = 10, .streams = 1, .envs = 1, .steps = 1, .n_step = 0, .discount = 0.5f};
  assert_int_equal(shoal_replay_create(&replay, &config, &err), SHOAL_INVALID);
  config.n_step = 1;
  config.capacity = UINT32_MAX;
  assert_int_equal(shoal_replay_create(&replay, &config, &err), SHOAL_LIMIT);
  assert_null(replay);
}

/* It is the observation that makes it so, and the memory that the user can change. */
static void a_memory_that_is_too_large_says_why(void **state) {
  (void)state;
  shoal_replay *replay;
  shoal_error err = {0};
  shoal_env_kind images = line;
  images.observation = 96 * 96 * 3;
  shoal_replay_config config = {.kind = &images,
                                .capacity = 100000,
                                .streams = 2,
                                .envs = 8,
                                .steps = 32,
                                .n_step = 1,
                                .discount = 0.5f};
  assert_int_equal(shoal_replay_create(&replay, &config, &err), SHOAL_LIMIT);
  assert_non_null(strstr(err.text, "memory: 100,000 steps are 22.1 GB"));
  assert_non_null(strstr(err.text, "an observation is 27,648 numbers"));
  char *most = strstr(err.text, "keep fewer: 18,"), digits[8];
  if (most == NULL) fail_msg("%s", err.text);
  snprintf(digits, sizeof digits, "18%.3s", most + strlen("keep fewer: 18,"));
  config.capacity = (uint32_t)strtoul(digits, NULL, 10) + 1;
  assert_int_equal(shoal_replay_create(&replay, &config, &err), SHOAL_LIMIT);
  config.capacity = 1;
  config.envs = 1 << 20;
  assert_int_equal(shoal_replay_create(&replay, &config, &err), SHOAL_LIMIT);
  assert_non_null(strstr(err.text, "lower streams, envs, steps or n_step"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_window_sums_discounted_rewards_over_two_rollouts),
      cmocka_unit_test(a_terminated_episode_has_nothing_behind_it),
      cmocka_unit_test(an_episode_that_was_cut_off_goes_on_from_what_was_seen_last),
      cmocka_unit_test(a_missing_rollout_closes_windows_at_what_was_seen_before_it),
      cmocka_unit_test(there_is_enough_after_the_warmup_and_some_ends),
      cmocka_unit_test(the_ring_keeps_the_newest),
      cmocka_unit_test(windows_equal_those_of_whole_episodes),
      cmocka_unit_test(a_round_that_was_taken_back_leaves_no_trace),
      cmocka_unit_test(what_a_file_keeps_is_enough_to_go_on),
      cmocka_unit_test(counts_of_a_damaged_file_are_refused),
      cmocka_unit_test(impossible_sizes_are_refused),
      cmocka_unit_test(a_memory_that_is_too_large_says_why),
  };
  return RUN_TESTS(tests);
}
