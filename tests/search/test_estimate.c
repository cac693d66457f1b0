/* The estimate of the best of many: of trials that know nothing, of some that know more than others, and of good ones
 * with a bad one among them, judged by folds. */
#include "search/estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "check.h"

enum { ROWS = 300, TRIALS = 60, FEW = 6, SEARCHES = 24, PARTS = 10 };

/* What a search tries. */
typedef enum mixture {
  ALIKE,     /* trials that know nothing, judged by rows held out */
  DIFFERENT, /* some that know more than others */
  ONE_BAD,   /* good ones and the second a bad one, judged by five folds */
  NUMBERS,   /* the same, predicting numbers */
} mixture;

/* A search of trials that are right in a row with a chance of their own (or as far from its number as a deviation of
 * their own), judged by rows whose answers they do not know. */
typedef struct guesses {
  mixture kind;
  shoal_score_kind metric;
  uint32_t trials, width;
  shoal_space space;
  shoal_board *board;
  shoal_table_split split;
  int32_t label[ROWS];
  double right[ROWS];
  float predicted[TRIALS][ROWS * 2];
} guesses;

/* The chance or the deviation, which is what a trial is worth on new rows. */
static double worth_of(mixture kind, uint32_t trial) {
  if (kind == ALIKE) return 0.5;
  if (kind == DIFFERENT) return 0.6 + 0.002 * trial;
  if (kind == ONE_BAD) return trial == 1 ? 0.3 : 0.8;
  return trial == 1 ? 9 : 1;
}

/* Says something of a row: how good that is, as the score's mean has it. */
static double guess_row(guesses *g, uint32_t trial, uint32_t i, shoal_key key, shoal_key rows) {
  double worth = worth_of(g->kind, trial);
  if (g->kind == NUMBERS) {
    double off = worth * (double)shoal_random_normal(key, i);
    g->predicted[trial][i] = (float)(g->right[i] + off);
    return off * off;
  }
  bool common = shoal_random_uniform(key, ROWS + i) < 0.7; /* rows are easy or hard for all alike, mostly */
  bool right = (common ? shoal_random_uniform(rows, i) : shoal_random_uniform(key, i)) < worth;
  uint32_t said = (uint32_t)g->label[i] ^ !right;
  float sure = g->kind == ONE_BAD && trial == 1 ? 0.6f : 0.9f;
  g->predicted[trial][2 * i + said] = sure;
  g->predicted[trial][2 * i + 1 - said] = 1 - sure;
  return right;
}

static void guess(guesses *g, uint32_t trial, uint64_t search, shoal_trial_result *out) {
  shoal_key key = shoal_key_make(search, SHOAL_FOR_SIMULATION, trial, 0);
  shoal_key rows = shoal_key_make(search, SHOAL_FOR_SIMULATION, 8888, 0);
  double own[PARTS] = {0}, all = 0;
  for (uint32_t i = 0; i < ROWS; i++) {
    double one = guess_row(g, trial, i, key, rows);
    own[i % PARTS] += one / (ROWS / PARTS);
    all += one / ROWS;
  }
  memset(out, 0, sizeof *out);
  out->score = shoal_score_from_mean(g->metric, all);
  out->epochs = out->best_epoch = 1;
  out->parts_count = PARTS;
  for (uint32_t p = 0; p < PARTS; p++)
    out->parts[p] = (shoal_trial_part){
        shoal_score_from_mean(g->metric, (PARTS * all - own[p]) / (PARTS - 1)),
        shoal_score_from_mean(g->metric, own[p]),
    };
}

static void open_guesses(guesses *g, uint64_t search, mixture kind, bool older) {
  bool folds = kind == ONE_BAD || kind == NUMBERS;
  g->kind = kind;
  g->metric = kind == NUMBERS ? SHOAL_SCORE_RMSE : SHOAL_SCORE_ACCURACY;
  g->trials = folds ? FEW : TRIALS;
  shoal_space_usual(&g->space, 1000, 4);
  shoal_board_config config = {.scheduler = {.space = &g->space,
                                             .kind = SHOAL_BY_CHANCE,
                                             .seed = search,
                                             .trials = g->trials,
                                             .window = 1,
                                             .rungs = 1,
                                             .epochs = {1},
                                             .higher_is_better = shoal_score_higher_is_better(g->metric)},
                               .lease_s = 10};
  assert_int_equal(shoal_board_create(&g->board, &config, NULL), SHOAL_OK);
  g->split = (shoal_table_split){.folds = folds ? 5 : 1};
  for (uint32_t f = 0; f < g->split.folds; f++) g->split.valid[f].count = ROWS / g->split.folds;
  for (uint32_t i = 0; i < ROWS; i++) {
    shoal_key key = shoal_key_make(search, SHOAL_FOR_SIMULATION, 9999, 0);
    g->label[i] = (int32_t)shoal_random_below(key, i, 2);
    g->right[i] = g->label[i];
  }
  shoal_taken taken;
  static shoal_trial_result result;
  while (shoal_board_take(g->board, "anna", 0, &taken, NULL) == SHOAL_NEXT_UNIT) {
    guess(g, (uint32_t)taken.unit.trial - 1, search, &result);
    if (older) result.parts_count = 0;
    assert_true(shoal_board_done(g->board, taken.unit.number, &result, "anna", 0));
  }
}

static void close_guesses(guesses *g) {
  shoal_board_destroy(g->board);
  shoal_space_release(&g->space);
}

/* What was said on the rows that chose, what is expected, and what members of such chances have on new rows. */
static shoal_estimate run_search(uint64_t search, mixture kind, bool older, double *valid, double *truth) {
  static guesses g;
  open_guesses(&g, search, kind, older);
  uint64_t best[SHOAL_CANDIDATES_MAX];
  const float *predicted[SHOAL_CANDIDATES_MAX];
  uint32_t count = (uint32_t)shoal_board_best(g.board, best, SHOAL_CANDIDATES_MAX);
  for (uint32_t i = 0; i < count; i++) predicted[i] = g.predicted[best[i] - 1];
  const shoal_candidates c = {.count = count,
                              .rows = ROWS,
                              .classes = kind == NUMBERS ? 0 : 2,
                              .positive = 1,
                              .predicted = predicted,
                              .label = g.label,
                              .right = g.right};
  double share[SHOAL_CANDIDATES_MAX];
  const shoal_target target = {.deviation = 1, .problem = kind == NUMBERS ? SHOAL_REGRESSION : SHOAL_BINARY};
  enum { ROUNDS = 1 }; /* one trial: what it is worth is known then */
  shoal_estimate out;
  assert_int_equal(shoal_ensemble_choose(&c, g.metric, ROUNDS, share, valid, NULL), SHOAL_OK);
  assert_int_equal(shoal_estimate_make(&out, g.board, &g.split, &target, g.metric, &c, share, ROUNDS, NULL),
                   SHOAL_OK);
  assert_false(shoal_score_better(g.metric, out.score, *valid));
  *truth = 0;
  for (uint32_t i = 0; i < count; i++) *truth += share[i] * worth_of(kind, (uint32_t)best[i] - 1);
  close_guesses(&g);
  return out;
}

/* By how much validation flatters at least, in the score's unit. */
static void it_is_centred(mixture kind, double flatters_least) {
  double valid_off = 0, estimate_off = 0, error = 0, squares = 0;
  for (uint64_t s = 0; s < SEARCHES; s++) {
    double valid, truth;
    shoal_estimate e = run_search(s, kind, false, &valid, &truth);
    valid_off += (kind == NUMBERS ? truth - valid : valid - truth) / SEARCHES;
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
  it_is_centred(ALIKE, 0.02);
}

static void the_best_of_many_that_differ_is_estimated_right(void **state) {
  (void)state;
  it_is_centred(DIFFERENT, 0.01);
}

/* How far a bad one is from the others says nothing of what the good ones gain together. */
static void a_bad_trial_among_good_ones_makes_no_accuracy_better(void **state) {
  (void)state;
  it_is_centred(ONE_BAD, 0.01);
}

static void a_bad_trial_among_good_ones_makes_no_error_smaller(void **state) {
  (void)state;
  it_is_centred(NUMBERS, 0.01);
}

static void results_of_an_older_shoal_have_none(void **state) {
  (void)state;
  double valid, truth;
  assert_true(isnan(run_search(1, ALIKE, true, &valid, &truth).score));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_best_of_many_that_know_nothing_is_estimated_at_chance),
      cmocka_unit_test(the_best_of_many_that_differ_is_estimated_right),
      cmocka_unit_test(a_bad_trial_among_good_ones_makes_no_accuracy_better),
      cmocka_unit_test(a_bad_trial_among_good_ones_makes_no_error_smaller),
      cmocka_unit_test(results_of_an_older_shoal_have_none),
  };
  return RUN_TESTS(tests);
}
