/* The estimate of the best of many: of trials that know nothing, and of some that know more than others. */
#include "search/estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "check.h"

enum { ROWS = 300, TRIALS = 60, SEARCHES = 24, PARTS = 10 };

/* A search of trials that are right in a row with a chance of their own, judged by rows whose answers they do not
 * know. */
typedef struct guesses {
  shoal_space space;
  shoal_board *board;
  shoal_table_split split;
  int32_t label[ROWS];
  float predicted[TRIALS][ROWS * 2];
  double score[TRIALS];
} guesses;

static double chance_of(uint32_t trial, bool alike) { return alike ? 0.5 : 0.6 + 0.002 * trial; }

static void guess(guesses *g, uint32_t trial, uint64_t search, bool alike, shoal_trial_result *out) {
  shoal_key key = shoal_key_make(search, SHOAL_FOR_SIMULATION, trial, 0);
  shoal_key rows = shoal_key_make(search, SHOAL_FOR_SIMULATION, 8888, 0);
  double own[PARTS] = {0}, all = 0;
  for (uint32_t i = 0; i < ROWS; i++) {
    bool common = shoal_random_uniform(key, ROWS + i) < 0.7; /* rows are easy or hard for all alike, mostly */
    double roll = common ? shoal_random_uniform(rows, i) : shoal_random_uniform(key, i);
    bool right = roll < chance_of(trial, alike);
    uint32_t said = (uint32_t)g->label[i] ^ !right;
    g->predicted[trial][2 * i + said] = 0.9f;
    g->predicted[trial][2 * i + 1 - said] = 0.1f;
    own[i % PARTS] += right / (double)(ROWS / PARTS);
    all += right / (double)ROWS;
  }
  memset(out, 0, sizeof *out);
  g->score[trial] = out->score = all;
  out->epochs = out->best_epoch = 1;
  out->parts_count = PARTS;
  for (uint32_t p = 0; p < PARTS; p++) {
    double sum = 0;
    for (uint32_t o = 0; o < PARTS; o++) sum += o != p ? own[o] : 0;
    out->parts[p] = (shoal_trial_part){sum / (PARTS - 1), own[p]};
  }
}

static void open_guesses(guesses *g, uint64_t search, bool alike, bool older) {
  shoal_space_usual(&g->space, 1000, 4);
  shoal_board_config config = {.scheduler = {.space = &g->space,
                                             .kind = SHOAL_BY_CHANCE,
                                             .seed = search,
                                             .trials = TRIALS,
                                             .window = 1,
                                             .rungs = 1,
                                             .epochs = {1},
                                             .higher_is_better = true},
                               .lease_s = 10};
  assert_int_equal(shoal_board_create(&g->board, &config, NULL), SHOAL_OK);
  g->split = (shoal_table_split){.folds = 1, .valid[0].count = ROWS};
  for (uint32_t i = 0; i < ROWS; i++)
    g->label[i] = (int32_t)shoal_random_below(shoal_key_make(search, SHOAL_FOR_SIMULATION, 9999, 0), i, 2);
  shoal_taken taken;
  static shoal_trial_result result;
  while (shoal_board_take(g->board, "anna", 0, &taken, NULL) == SHOAL_NEXT_UNIT) {
    guess(g, (uint32_t)taken.unit.trial - 1, search, alike, &result);
    if (older) result.parts_count = 0;
    assert_true(shoal_board_done(g->board, taken.unit.number, &result, "anna", 0));
  }
}

static void close_guesses(guesses *g) {
  shoal_board_destroy(g->board);
  shoal_space_release(&g->space);
}

/* What was said on the rows that chose, what is expected, and what members of such chances have on new rows. */
static shoal_estimate run_search(uint64_t search, bool alike, bool older, double *valid, double *truth) {
  static guesses g;
  open_guesses(&g, search, alike, older);
  uint64_t best[SHOAL_CANDIDATES_MAX];
  const float *predicted[SHOAL_CANDIDATES_MAX];
  uint32_t count = (uint32_t)shoal_board_best(g.board, best, SHOAL_CANDIDATES_MAX);
  for (uint32_t i = 0; i < count; i++) predicted[i] = g.predicted[best[i] - 1];
  const shoal_candidates c = {
      .count = count, .rows = ROWS, .classes = 2, .positive = 1, .predicted = predicted, .label = g.label};
  double share[SHOAL_CANDIDATES_MAX];
  const shoal_target target = {.deviation = 1, .problem = SHOAL_BINARY};
  enum { ROUNDS = 1 }; /* one trial: what it is worth is known then */
  shoal_estimate out;
  assert_int_equal(shoal_ensemble_choose(&c, SHOAL_SCORE_ACCURACY, ROUNDS, share, valid, NULL), SHOAL_OK);
  assert_int_equal(
      shoal_estimate_make(&out, g.board, &g.split, &target, SHOAL_SCORE_ACCURACY, &c, share, ROUNDS, NULL),
      SHOAL_OK);
  *truth = 0;
  for (uint32_t i = 0; i < count; i++) *truth += share[i] * chance_of((uint32_t)best[i] - 1, alike);
  close_guesses(&g);
  return out;
}

static void it_is_centred(bool alike, double flatters_least) {
  double valid_off = 0, estimate_off = 0, error = 0, squares = 0;
  for (uint64_t s = 0; s < SEARCHES; s++) {
    double valid, truth;
    shoal_estimate e = run_search(s, alike, false, &valid, &truth);
    valid_off += (valid - truth) / SEARCHES;
    estimate_off += (e.score - truth) / SEARCHES;
    squares += (e.score - truth) * (e.score - truth) / SEARCHES;
    error += e.error / SEARCHES;
  }
  if (valid_off < flatters_least || fabs(estimate_off) > 0.015)
    fail_msg("off by %g where it was chosen, by %g as estimated", valid_off, estimate_off);
  if (sqrt(squares) > 1.6 * error || sqrt(squares) < error / 1.6)
    fail_msg("said to be off by %g, is by %g", error, sqrt(squares));
}

static void the_best_of_many_that_know_nothing_is_estimated_at_chance(void **state) {
  (void)state;
  it_is_centred(true, 0.02);
}

static void the_best_of_many_that_differ_is_estimated_right(void **state) {
  (void)state;
  it_is_centred(false, 0.01);
}

static void results_of_an_older_shoal_have_none(void **state) {
  (void)state;
  double valid, truth;
  assert_true(isnan(run_search(1, true, true, &valid, &truth).score));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_best_of_many_that_know_nothing_is_estimated_at_chance),
      cmocka_unit_test(the_best_of_many_that_differ_is_estimated_right),
      cmocka_unit_test(results_of_an_older_shoal_have_none),
  };
  return RUN_TESTS(tests);
}
