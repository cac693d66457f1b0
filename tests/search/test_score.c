#include "check.h"

#include <math.h>
#include <string.h>

#include "search/score.h"

static void near(double found, double wanted) {
  if (!(fabs(found - wanted) < 1e-9)) fail_msg("%.12g, not %.12g", found, wanted);
}

static shoal_scores of_classes(const float *probability, const int32_t *label, uint64_t rows,
                               uint32_t classes) {
  shoal_scores scores;
  assert_int_equal(shoal_scores_classes(&scores, probability, label, rows, classes, 1, NULL), SHOAL_OK);
  return scores;
}

/* Said: 1 1 0 1 0; right: 1 0 0 1 1. */
static const float two[] = {0.2f, 0.8f, 0.4f, 0.6f, 0.9f, 0.1f, 0.3f, 0.7f, 0.6f, 0.4f};
static const int32_t two_labels[] = {1, 0, 0, 1, 1};

static void two_classes(void **state) {
  (void)state;
  shoal_scores s = of_classes(two, two_labels, 5, 2);
  near(s.of[SHOAL_SCORE_ACCURACY], 3.0 / 5);
  near(s.of[SHOAL_SCORE_BALANCED_ACCURACY], (1.0 / 2 + 2.0 / 3) / 2);
  near(s.of[SHOAL_SCORE_F1], 2.0 * 2 / (3 + 3));
  /* Of the six pairs of a one (0.8 0.7 0.4) and a zero (0.6 0.1) five are in order. */
  near(s.of[SHOAL_SCORE_AUC], 5.0 / 6);
  double sum = 0;
  const float right[] = {0.8f, 0.4f, 0.9f, 0.7f, 0.4f};
  for (int i = 0; i < 5; i++) sum -= log((double)right[i]);
  near(s.of[SHOAL_SCORE_LOG_LOSS], sum / 5);
  assert_true(isnan(s.of[SHOAL_SCORE_RMSE]));
}

static void f1_is_of_the_positive_class(void **state) {
  (void)state;
  shoal_scores zero, one = of_classes(two, two_labels, 5, 2);
  assert_int_equal(shoal_scores_classes(&zero, two, two_labels, 5, 2, 0, NULL), SHOAL_OK);
  near(zero.of[SHOAL_SCORE_F1], 2.0 * 1 / (2 + 2));
  for (int k = 0; k <= SHOAL_SCORE_LOG_LOSS; k++)
    if (k != SHOAL_SCORE_F1) near(zero.of[k], one.of[k]);
}

static void equal_probabilities_count_half(void **state) {
  (void)state;
  const float p[] = {0.5f, 0.5f, 0.5f, 0.5f, 0.2f, 0.8f, 0.5f, 0.5f};
  const int32_t label[] = {0, 1, 1, 0};
  /* Pairs: 0.5 against 0.5 twice is a half each, 0.8 against 0.5 twice is right. */
  near(of_classes(p, label, 4, 2).of[SHOAL_SCORE_AUC], (0.5 + 0.5 + 1 + 1) / 4);
}

static void rows_without_a_label_are_left_out(void **state) {
  (void)state;
  float p[12] = {0};
  int32_t label[6] = {1, 0, 0, 1, 1, -1};
  memcpy(p, two, sizeof two);
  p[10] = 1;
  shoal_scores a = of_classes(p, label, 6, 2), b = of_classes(two, two_labels, 5, 2);
  for (int k = 0; k <= SHOAL_SCORE_LOG_LOSS; k++) near(a.of[k], b.of[k]);
}

static void three_classes(void **state) {
  (void)state;
  /* Said: 0 1 1 2; right: 0 1 2 2. */
  const float p[] = {0.7f, 0.2f, 0.1f, 0.1f, 0.8f, 0.1f, 0.2f, 0.5f, 0.3f, 0.3f, 0.3f, 0.4f};
  const int32_t label[] = {0, 1, 2, 2};
  shoal_scores s = of_classes(p, label, 4, 3);
  near(s.of[SHOAL_SCORE_ACCURACY], 3.0 / 4);
  near(s.of[SHOAL_SCORE_BALANCED_ACCURACY], (1 + 1 + 0.5) / 3);
  near(s.of[SHOAL_SCORE_F1], (1 + 2.0 / 3 + 2.0 / 3) / 3);
  near(s.of[SHOAL_SCORE_AUC], (1 + 1 + 1) / 3.0);
}

static void classes_that_are_not_there_count_for_nothing(void **state) {
  (void)state;
  /* Four classes; only 0 and 2 are right, 0 and 1 are said, 3 is neither. */
  const float p[] = {0.9f, 0.1f, 0, 0, 0.1f, 0.6f, 0.3f, 0};
  const int32_t label[] = {0, 2};
  shoal_scores s = of_classes(p, label, 2, 4);
  near(s.of[SHOAL_SCORE_BALANCED_ACCURACY], (1.0 + 0) / 2);
  near(s.of[SHOAL_SCORE_F1], (1.0 + 0 + 0) / 3);
  near(s.of[SHOAL_SCORE_AUC], 1);
}

static void a_sure_mistake_costs_a_finite_loss(void **state) {
  (void)state;
  const float p[] = {1, 0};
  const int32_t wrong[] = {1}, right[] = {0};
  near(of_classes(p, wrong, 1, 2).of[SHOAL_SCORE_LOG_LOSS], -log(0x1p-23));
  assert_true(of_classes(p, right, 1, 2).of[SHOAL_SCORE_LOG_LOSS] > 0);
}

static void one_score_alone_is_the_same(void **state) {
  (void)state;
  shoal_scores all = of_classes(two, two_labels, 5, 2);
  for (int k = 0; k <= SHOAL_SCORE_LOG_LOSS; k++) {
    double one;
    assert_int_equal(shoal_score_classes((shoal_score_kind)k, &one, two, two_labels, 5, 2, 1, NULL),
                     SHOAL_OK);
    assert_true(one == all.of[k]);
  }
}

static void predictions_that_are_no_numbers_have_no_score(void **state) {
  (void)state;
  float p[10];
  memcpy(p, two, sizeof two);
  p[3] = NAN;
  shoal_scores s = of_classes(p, two_labels, 5, 2);
  for (int k = 0; k < SHOAL_SCORES; k++) assert_true(isnan(s.of[k]));
}

static void numbers(void **state) {
  (void)state;
  const double predicted[] = {2, 4, 5, 9}, right[] = {1, 4, 7, NAN};
  shoal_scores s;
  shoal_scores_numbers(&s, predicted, right, 4);
  near(s.of[SHOAL_SCORE_RMSE], sqrt(5.0 / 3));
  near(s.of[SHOAL_SCORE_MAE], 1);
  near(s.of[SHOAL_SCORE_R2], 1 - 5.0 / 18);
  const double same[] = {3, 3};
  shoal_scores_numbers(&s, predicted, same, 2);
  near(s.of[SHOAL_SCORE_R2], 0);
  shoal_scores_numbers(&s, same, same, 2);
  near(s.of[SHOAL_SCORE_R2], 1);
}

static void names_lead_back(void **state) {
  (void)state;
  for (int k = 0; k < SHOAL_SCORES; k++) {
    shoal_score_kind kind = SHOAL_SCORES;
    assert_true(shoal_score_parse(shoal_score_name((shoal_score_kind)k), &kind));
    assert_int_equal(kind, k);
  }
  shoal_score_kind kind;
  assert_false(shoal_score_parse("acuracy", &kind));
  assert_true(shoal_score_better(SHOAL_SCORE_RMSE, 1, 2));
  assert_true(shoal_score_better(SHOAL_SCORE_AUC, 2, 1));
  assert_true(shoal_score_better(SHOAL_SCORE_AUC, 2, NAN));
  assert_false(shoal_score_better(SHOAL_SCORE_AUC, NAN, NAN));
}

static void scores_survive_json(void **state) {
  (void)state;
  shoal_scores s = of_classes(two, two_labels, 5, 2), again;
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_scores_write(&s, SHOAL_BINARY, &json, "");
  shoal_json_close(&json, '}');
  cJSON *parsed = cJSON_Parse(text.bytes);
  shoal_scores_read(&again, parsed);
  for (int k = 0; k < SHOAL_SCORES; k++) assert_true(again.of[k] == s.of[k] || isnan(s.of[k]));
  assert_true(isnan(again.of[SHOAL_SCORE_MAE]));
  cJSON_Delete(parsed);
  shoal_text_release(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_classes),
      cmocka_unit_test(f1_is_of_the_positive_class),
      cmocka_unit_test(equal_probabilities_count_half),
      cmocka_unit_test(rows_without_a_label_are_left_out),
      cmocka_unit_test(three_classes),
      cmocka_unit_test(classes_that_are_not_there_count_for_nothing),
      cmocka_unit_test(a_sure_mistake_costs_a_finite_loss),
      cmocka_unit_test(one_score_alone_is_the_same),
      cmocka_unit_test(predictions_that_are_no_numbers_have_no_score),
      cmocka_unit_test(numbers),
      cmocka_unit_test(names_lead_back),
      cmocka_unit_test(scores_survive_json),
  };
  return RUN_TESTS(tests);
}
