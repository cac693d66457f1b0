/* What trials say of their space: importance as it was put in, lessons where there is evidence and only
 * there. */
#include "search/insight.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "check.h"

enum { MOST = 5000 };

typedef struct trials {
  shoal_space space;
  shoal_values values[MOST];
  shoal_evidence evidence[MOST];
  uint32_t count;
} trials;

typedef double score_of(const shoal_space *space, const shoal_values *values, double noise);

static trials *draw(uint32_t count, uint64_t seed, score_of *score) {
  trials *t = calloc(1, sizeof *t);
  shoal_space_usual(&t->space, 30000, 14);
  t->count = count;
  for (uint32_t i = 0; i < count; i++) {
    shoal_key key = shoal_key_make(seed, SHOAL_FOR_SIMULATION, i, 3);
    for (uint32_t id = 0; id < SHOAL_SETTINGS; id++)
      t->values[i].of[id] = shoal_space_from_unit(&t->space.settings[id], shoal_random_uniform(key, id));
    t->evidence[i] =
        (shoal_evidence){&t->values[i], score(&t->space, &t->values[i], shoal_random_uniform(key, 99)),
                         (uint32_t)shoal_random_below(key, 98, 3)};
  }
  return t;
}

static void release(trials *t) {
  shoal_space_release(&t->space);
  free(t);
}

static shoal_insight find(const trials *t) {
  shoal_insight insight;
  assert_int_equal(shoal_insight_find(&insight, &t->space, t->evidence, t->count, true, NULL), SHOAL_OK);
  return insight;
}

static char *spoken(const trials *t, bool higher) {
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  assert_int_equal(shoal_insight_write(&t->space, t->evidence, t->count, higher, &json, NULL, NULL),
                   SHOAL_OK);
  return text.bytes;
}

static double by_rate(const shoal_space *space, const shoal_values *v, double noise) {
  return -fabs(log(shoal_values_number(space, v, SHOAL_SET_RATE) / 0.002)) + 0.1 * noise;
}

static double by_two(const shoal_space *space, const shoal_values *v, double noise) {
  double layer = strcmp(shoal_values_word(space, v, SHOAL_SET_NORMALISE), "layer") == 0;
  return 2 * layer + fmin(1, shoal_values_number(space, v, SHOAL_SET_WIDTH) / 200) + 0.1 * noise;
}

static double by_chance(const shoal_space *space, const shoal_values *v, double noise) {
  (void)space;
  (void)v;
  return noise;
}

static double by_width(const shoal_space *space, const shoal_values *v, double noise) {
  double width = shoal_values_number(space, v, SHOAL_SET_WIDTH);
  return 0.86 - (width > 256 ? 0.01 : 0) - (width < 128 ? 0.02 : 0) + 0.005 * noise;
}

static void what_matters_is_found(void **state) {
  (void)state;
  trials *t = draw(200, 1, by_rate);
  shoal_insight insight = find(t);
  assert_true(insight.known);
  double others = 0;
  for (uint32_t id = 0; id < SHOAL_SETTINGS; id++)
    if (id != SHOAL_SET_RATE) others += insight.share[id];
  assert_true(insight.share[SHOAL_SET_RATE] > 0.7);
  assert_true(others < 0.15);
  release(t);
  t = draw(300, 2, by_two);
  insight = find(t);
  assert_true(insight.share[SHOAL_SET_NORMALISE] > 0.5);
  assert_true(insight.share[SHOAL_SET_WIDTH] > 0.03);
  for (uint32_t id = 0; id < SHOAL_SETTINGS; id++)
    if (id != SHOAL_SET_WIDTH && id != SHOAL_SET_NORMALISE)
      assert_true(insight.share[id] < insight.share[SHOAL_SET_WIDTH]);
  release(t);
}

static void lessons_are_drawn_where_there_is_evidence(void **state) {
  (void)state;
  trials *t = draw(150, 3, by_width);
  char *text = spoken(t, true);
  assert_non_null(strstr(text, "\"setting\":\"width\",\"text\":\"wider than 2"));
  assert_non_null(strstr(text, " brings nothing here: best of "));
  assert_non_null(strstr(text, "\"text\":\"narrower than "));
  assert_null(strstr(text, "\"setting\":\"activation\",\"text\""));
  cJSON *tree = cJSON_Parse(text);
  assert_non_null(tree);
  assert_int_equal(cJSON_GetObjectItem(tree, "trials")->valueint, 150);
  const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItem(tree, "importance"), 0);
  assert_string_equal(cJSON_GetObjectItem(first, "setting")->valuestring, "width");
  /* One that has one value only is not spoken of. */
  assert_null(strstr(text, "optimizer"));
  cJSON_Delete(tree);
  free(text);
  /* The same trials where less is better teach the opposite. */
  for (uint32_t i = 0; i < t->count; i++) t->evidence[i].score = -t->evidence[i].score;
  text = spoken(t, false);
  assert_non_null(strstr(text, "wider than 2"));
  free(text);
  release(t);
}

static void a_choice_that_falls_behind_is_named(void **state) {
  (void)state;
  trials *t = draw(150, 4, by_two);
  char *text = spoken(t, true);
  assert_non_null(strstr(text, "normalise batch falls behind here"));
  assert_non_null(strstr(text, "normalise none falls behind here"));
  assert_null(strstr(text, "normalise layer falls behind"));
  free(text);
  release(t);
}

static double by_rule(const shoal_space *space, const shoal_values *v, double noise) {
  double layer = strcmp(shoal_values_word(space, v, SHOAL_SET_NORMALISE), "layer") == 0;
  return noise + 0.4 * layer;
}

static void what_is_worse_as_a_rule_is_told_though_some_are_good(void **state) {
  (void)state;
  trials *t = draw(200, 11, by_rule);
  /* How long each was trained says most of its score, and nothing of its settings. */
  for (uint32_t i = 0; i < t->count; i++) {
    t->evidence[i].rung = i % 3;
    t->evidence[i].score += 3.0 * (i % 3);
  }
  char *text = spoken(t, true);
  assert_non_null(strstr(text, "is usually worse here: in pairs of one of these "));
  assert_non_null(strstr(text, "\"text\":\"normalise "));
  assert_null(strstr(text, "normalise layer"));
  free(text);
  release(t);
}

static void noise_teaches_little(void **state) {
  (void)state;
  uint32_t lessons = 0;
  for (uint64_t seed = 0; seed < 20; seed++) {
    trials *t = draw(120, 100 + seed, by_chance);
    char *text = spoken(t, true);
    for (const char *at = text; (at = strstr(at, "\"text\"")) != NULL; at++) lessons++;
    free(text);
    release(t);
  }
  /* Some forty things are looked at in each: a few seem to be so once in a hundred times. */
  print_message("%u lessons from noise\n", lessons);
  assert_true(lessons < 20);
}

static void too_few_trials_say_nothing(void **state) {
  (void)state;
  for (uint32_t count = 0; count < SHOAL_EVIDENCE_LEAST; count += 19) {
    trials *t = draw(count, 5, by_rate);
    char *text = spoken(t, true), expected[200];
    snprintf(expected, sizeof expected,
             "{\"trials\":%u,\"importance\":[],\"lessons\":[],\"lessons_why\":\"lessons need 20 trials with "
             "scores that "
             "differ; there are %u\"}",
             count, count);
    assert_string_equal(text, expected);
    free(text);
    release(t);
  }
  /* Nor do many that are all alike. */
  trials *t = draw(100, 5, by_rate);
  for (uint32_t i = 0; i < 100; i++) t->evidence[i].score = 0.5;
  char *text = spoken(t, true);
  assert_non_null(strstr(
      text, "{\"trials\":100,\"importance\":[],\"lessons\":[],\"lessons_why\":\"lessons need 20 trials"));
  free(text);
  release(t);
}

static void the_same_trials_say_the_same(void **state) {
  (void)state;
  trials *t = draw(MOST, 6, by_width);
  double begun = shoal_clock_seconds();
  char *once = spoken(t, true);
  print_message("%d trials: %.3f s\n", MOST, shoal_clock_seconds() - begun);
  char *again = spoken(t, true);
  assert_string_equal(once, again);
  free(once);
  free(again);
  release(t);
}

static void a_board_speaks_for_its_trials(void **state) {
  (void)state;
  shoal_space space;
  shoal_space_usual(&space, 30000, 14);
  shoal_board_config config = {.scheduler = {.space = &space,
                                             .kind = SHOAL_BY_CHANCE,
                                             .trials = 100,
                                             .window = 4,
                                             .rungs = 1,
                                             .epochs = {5},
                                             .higher_is_better = true}};
  shoal_board *board;
  assert_int_equal(shoal_board_create(&board, &config, NULL), SHOAL_OK);
  static shoal_trial_result result;
  shoal_taken taken;
  while (shoal_board_take(board, "anna", 0, &taken, NULL) == SHOAL_NEXT_UNIT) {
    result.failed = taken.unit.trial % 10 == 0;
    result.score = result.failed ? NAN : by_rate(&space, &taken.unit.values, 0);
    assert_true(shoal_board_done(board, taken.unit.number, &result, "anna", 0));
  }
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  assert_int_equal(shoal_insight_board(&space, board, true, &json, NULL, NULL), SHOAL_OK);
  assert_non_null(strstr(text.bytes, "{\"trials\":90,\"importance\":[{\"setting\":\"rate\""));
  shoal_text_release(&text);
  shoal_board_destroy(board);
  shoal_space_release(&space);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_matters_is_found),
      cmocka_unit_test(lessons_are_drawn_where_there_is_evidence),
      cmocka_unit_test(a_choice_that_falls_behind_is_named),
      cmocka_unit_test(what_is_worse_as_a_rule_is_told_though_some_are_good),
      cmocka_unit_test(noise_teaches_little),
      cmocka_unit_test(too_few_trials_say_nothing),
      cmocka_unit_test(the_same_trials_say_the_same),
      cmocka_unit_test(a_board_speaks_for_its_trials),
  };
  return RUN_TESTS(tests);
}
