/* Whole episodes out of rollouts: put together, kept by their returns within bounds, and what is refused. */
#include "agent/episodes.h"

#include <math.h>
#include <string.h>

#include "played.h"

/* A line: one number is seen, one of four choices is made. */
static const shoal_env_kind line = {
    .name = "line", .observation = 1, .choices = 4, .action_width = 1, .limit = 20};

enum { STEPS = 6 };

static shoal_episodes *create(uint32_t keep_steps) {
  shoal_episodes_config config = {
      .kind = &line, .streams = 1, .envs = 2, .steps = STEPS, .keep_steps = keep_steps};
  shoal_episodes *episodes;
  shoal_error err = {0};
  if (shoal_episodes_create(&episodes, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return episodes;
}

/* Stretch number `round` of two environments: the first sees 100, 101, ..., the second 500, 501, ... */
static shoal_rollout *stretch(uint32_t round) {
  shoal_rollout *r = played_create(&line, 2, STEPS, 0, round);
  for (uint32_t row = 0; row < 2 * (STEPS + 1); row++)
    r->observations[row] = (float)((row % 2 ? 500 : 100) + round * STEPS + row / 2);
  for (uint32_t row = 0; row < 2 * STEPS; row++) r->actions[row] = (float)((round * STEPS + row / 2) % 4);
  return r;
}

static void add(shoal_episodes *episodes, shoal_rollout *rollout, double bar) {
  shoal_error err = {0};
  if (shoal_episodes_add(episodes, &rollout, 1, bar, &err) != SHOAL_OK) fail_msg("%s", err.text);
  played_destroy(rollout);
}

static shoal_episodes_view look(const shoal_episodes *episodes) {
  shoal_episodes_view view;
  shoal_episodes_look(episodes, &view);
  return view;
}

/* The first environment ends in step t (of the whole time) with this return and length. */
static void end_first(shoal_rollout *r, uint32_t t, float total, uint32_t length) {
  played_end(r, 2 * (t % STEPS), SHOAL_TERMINATED, NULL, total, length);
}

static void an_episode_is_put_together_over_rollouts(void **state) {
  (void)state;
  shoal_episodes *episodes = create(100);
  shoal_rollout *r = stretch(0);
  end_first(r, 2, 7, 3);
  add(episodes, r, 0);
  add(episodes, stretch(1), 0);
  r = stretch(2);
  end_first(r, 13, 9, 11);
  add(episodes, r, 0);
  shoal_episodes_view view = look(episodes);
  assert_int_equal(view.kept, 2);
  assert_int_equal(view.steps, 14);
  for (uint32_t i = 0; i < 14; i++) {
    assert_float_equal(shoal_episodes_step(episodes, i)[0], 100 + i, 0);
    assert_float_equal(shoal_episodes_step(episodes, i)[1], (i % 4), 0);
  }
  assert_int_equal(view.ended, 2);
  assert_int_equal(view.dropped, 0);
  assert_float_equal(view.least, 7, 0);
  assert_float_equal(view.most, 9, 0);
  assert_float_equal(view.worst, 7, 0);
  assert_float_equal(view.recent_mean, 8, 1e-6);
  shoal_episodes_destroy(episodes);
}

static void one_of_which_a_part_is_missing_is_dropped(void **state) {
  (void)state;
  shoal_episodes *episodes = create(100);
  shoal_rollout *r;
  add(episodes, stretch(0), 0);
  r = stretch(2); /* stretch 1 was lost */
  end_first(r, 13, 9, 14);
  end_first(r, 16, 5, 3);
  add(episodes, r, 0);
  assert_int_equal(look(episodes).dropped, 1);
  assert_int_equal(look(episodes).kept, 1);
  assert_float_equal(shoal_episodes_step(episodes, 0)[0], 114, 0);
  /* A length that is not what was seen. */
  r = stretch(3);
  end_first(r, 19, 9, 4);
  add(episodes, r, 0);
  assert_int_equal(look(episodes).dropped, 2);
  shoal_episodes_destroy(episodes);
}

static void episodes_at_the_bar_are_kept_and_those_below_are_not(void **state) {
  (void)state;
  shoal_episodes *episodes = create(100);
  shoal_rollout *r = stretch(0);
  end_first(r, 0, 9.5f, 1);
  end_first(r, 1, 10, 1);
  end_first(r, 3, 11, 2);
  add(episodes, r, 10);
  assert_int_equal(look(episodes).kept, 2);
  assert_float_equal(look(episodes).least, 10, 0);
  assert_float_equal(look(episodes).recent_mean, 30.5 / 3, 1e-5);
  shoal_episodes_destroy(episodes);
}

/* Six episodes of a step each, with these returns. */
static void add_singles(shoal_episodes *episodes, uint32_t round, const float returns[STEPS]) {
  shoal_rollout *r = stretch(round);
  for (uint32_t t = 0; t < STEPS; t++) end_first(r, t, returns[t], 1);
  add(episodes, r, -INFINITY);
}

static void the_best_stay_and_of_equals_the_newest(void **state) {
  (void)state;
  shoal_episodes *episodes = create(4);
  add_singles(episodes, 0, (float[]){5, 1, 9, 5, 3, 5});
  /* 5 (100), 9 (102), 5 (103), 5 (105) stay. */
  assert_int_equal(look(episodes).steps, 4);
  assert_float_equal(look(episodes).least, 5, 0);
  assert_float_equal(shoal_episodes_step(episodes, 0)[0], 100, 0);
  add_singles(episodes, 1, (float[]){4, 5, 6, 2, 1, 0});
  /* 5 (107) drove out 5 (100), and 6 (108) drove out 5 (103). */
  const float seen[] = {102, 105, 107, 108};
  for (uint32_t i = 0; i < 4; i++) assert_float_equal(shoal_episodes_step(episodes, i)[0], seen[i], 0);
  assert_int_equal(look(episodes).kept, 4);
  shoal_episodes_destroy(episodes);
}

static void a_long_one_does_not_drive_out_better_ones(void **state) {
  (void)state;
  shoal_episodes *episodes = create(6);
  add_singles(episodes, 0, (float[]){5, 5, 5, 5, 1, 1});
  shoal_rollout *r = stretch(1);
  end_first(r, 8, 4, 3);
  add(episodes, r, -INFINITY); /* three steps, where only two are worse */
  assert_int_equal(look(episodes).kept, 6);
  r = stretch(2);
  end_first(r, 13, 4, 5);
  end_first(r, 15, 4, 2);
  add(episodes, r, -INFINITY);
  assert_int_equal(look(episodes).kept, 5);
  assert_int_equal(look(episodes).steps, 6);
  assert_float_equal(look(episodes).least, 4, 0);
  shoal_episodes_destroy(episodes);
}

static void raising_the_bar_drops_the_lowest_but_leaves_enough(void **state) {
  (void)state;
  shoal_episodes *episodes = create(100);
  add_singles(episodes, 0, (float[]){1, 2, 3, 4, 5, 6});
  shoal_episodes_raise(episodes, 3, 0);
  assert_int_equal(look(episodes).kept, 4);
  assert_float_equal(shoal_episodes_step(episodes, 0)[0], 102, 0);
  shoal_episodes_raise(episodes, 100, 2);
  assert_int_equal(look(episodes).kept, 2);
  assert_float_equal(look(episodes).least, 5, 0);
  shoal_episodes_destroy(episodes);
}

static void one_that_is_longer_than_all_room_is_dropped(void **state) {
  (void)state;
  shoal_episodes *episodes = create(8);
  add(episodes, stretch(0), 0);
  shoal_rollout *r = stretch(1);
  end_first(r, 8, 50, 9);
  end_first(r, 11, 5, 3);
  add(episodes, r, 0);
  assert_int_equal(look(episodes).kept, 1);
  assert_int_equal(look(episodes).dropped, 1);
  assert_int_equal(look(episodes).steps, 3);
  shoal_episodes_destroy(episodes);
}

static void counts_of_a_damaged_file_are_refused(void **state) {
  (void)state;
  const char *const names[] = {"episodes.list", "episodes.lanes", "episodes.tally"};
  for (int which = 0; which < 3; which++) {
    shoal_episodes *episodes = create(8);
    shoal_error err = {0};
    shoal_kept kept[SHOAL_KEPT_MAX];
    shoal_rollout *r = stretch(1);
    add_singles(episodes, 0, (float[]){1, 2, 3, 4, 5, 6});
    uint32_t count = shoal_episodes_kept(episodes, kept);
    for (uint32_t i = 0; i < count; i++)
      if (strcmp(kept[i].name, names[which]) == 0) memset(kept[i].at, 0x77, kept[i].count);
    assert_int_equal(shoal_episodes_add(episodes, &r, 1, 0, &err), SHOAL_CORRUPT);
    played_destroy(r);
    shoal_episodes_destroy(episodes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_episode_is_put_together_over_rollouts),
      cmocka_unit_test(one_of_which_a_part_is_missing_is_dropped),
      cmocka_unit_test(episodes_at_the_bar_are_kept_and_those_below_are_not),
      cmocka_unit_test(the_best_stay_and_of_equals_the_newest),
      cmocka_unit_test(a_long_one_does_not_drive_out_better_ones),
      cmocka_unit_test(raising_the_bar_drops_the_lowest_but_leaves_enough),
      cmocka_unit_test(one_that_is_longer_than_all_room_is_dropped),
      cmocka_unit_test(counts_of_a_damaged_file_are_refused),
  };
  return RUN_TESTS(tests);
}
