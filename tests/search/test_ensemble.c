#include "check.h"

#include <math.h>

#include "search/ensemble.h"

enum { ROWS = 4 };
static const int32_t label[ROWS] = {0, 1, 0, 1};

/* Each is wrong in another row and sure of the others; two together are right in all but nothing is sure. */
static const float first[] = {0.9f, 0.1f, 0.1f, 0.9f, 0.9f, 0.1f, 0.6f, 0.4f};
static const float second[] = {0.4f, 0.6f, 0.1f, 0.9f, 0.9f, 0.1f, 0.1f, 0.9f};
static const float hopeless[] = {0.1f, 0.9f, 0.9f, 0.1f, 0.1f, 0.9f, 0.9f, 0.1f};

static double choose(const float *const *predicted, uint32_t count, shoal_score_kind metric, double *share) {
  const shoal_candidates c = {
      .count = count, .rows = ROWS, .classes = 2, .predicted = predicted, .label = label};
  double score;
  assert_int_equal(shoal_ensemble_choose(&c, metric, 10, share, &score, NULL), SHOAL_OK);
  double sum = 0;
  for (uint32_t i = 0; i < count; i++) sum += share[i];
  assert_true(fabs(sum - 1) < 1e-12);
  return score;
}

static void those_that_help_each_other_are_taken(void **state) {
  (void)state;
  const float *const predicted[] = {hopeless, first, second};
  double share[3];
  assert_true(choose(predicted, 3, SHOAL_SCORE_ACCURACY, share) == 1);
  assert_true(share[0] == 0 && share[1] > 0 && share[2] > 0);
}

static void it_is_never_worse_than_the_best_one(void **state) {
  (void)state;
  const float *const predicted[] = {first, hopeless};
  double share[2];
  assert_true(choose(predicted, 2, SHOAL_SCORE_ACCURACY, share) == 0.75);
  assert_true(share[0] == 1 && share[1] == 0);
}

static void of_equals_the_first_is_taken(void **state) {
  (void)state;
  const float *const predicted[] = {first, first};
  double share[2];
  choose(predicted, 2, SHOAL_SCORE_LOG_LOSS, share);
  assert_true(share[0] == 1);
}

static void equal_scores_are_decided_by_the_loss(void **state) {
  (void)state;
  const float unsure[] = {0.6f, 0.4f, 0.4f, 0.6f, 0.6f, 0.4f, 0.4f, 0.6f};
  const float sure[] = {0.9f, 0.1f, 0.1f, 0.9f, 0.9f, 0.1f, 0.1f, 0.9f};
  const float *const predicted[] = {unsure, sure};
  double share[2];
  assert_true(choose(predicted, 2, SHOAL_SCORE_ACCURACY, share) == 1);
  assert_true(share[1] == 1);
}

static void numbers_are_averaged(void **state) {
  (void)state;
  const float low[] = {0, 1, 2, 3}, high[] = {2, 3, 4, 5};
  const float *const predicted[] = {low, high};
  const double right[] = {1, 2, 3, 4};
  const shoal_candidates c = {.count = 2, .rows = ROWS, .predicted = predicted, .right = right};
  double share[2], score;
  assert_int_equal(shoal_ensemble_choose(&c, SHOAL_SCORE_RMSE, 7, share, &score, NULL), SHOAL_OK);
  assert_true(score == 0 && share[0] == 0.5 && share[1] == 0.5);
}

static void nothing_to_choose_from_is_refused(void **state) {
  (void)state;
  const shoal_candidates c = {.rows = ROWS, .classes = 2, .label = label};
  double share[1], score;
  assert_int_equal(shoal_ensemble_choose(&c, SHOAL_SCORE_ACCURACY, 7, share, &score, NULL), SHOAL_INVALID);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(those_that_help_each_other_are_taken),
      cmocka_unit_test(it_is_never_worse_than_the_best_one),
      cmocka_unit_test(of_equals_the_first_is_taken),
      cmocka_unit_test(equal_scores_are_decided_by_the_loss),
      cmocka_unit_test(numbers_are_averaged),
      cmocka_unit_test(nothing_to_choose_from_is_refused),
  };
  return RUN_TESTS(tests);
}
