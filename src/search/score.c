/* score.c: see score.h. Sums are in double and in the order of the rows; logarithms are exact.h's, so that
 * scores have the same bits everywhere. */
#include "search/score.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/exact.h"

static const struct {
  const char *name;
  bool higher, numbers;
} kinds[SHOAL_SCORES] = {
    [SHOAL_SCORE_ACCURACY] = {"accuracy", true, false},
    [SHOAL_SCORE_BALANCED_ACCURACY] = {"balanced-accuracy", true, false},
    [SHOAL_SCORE_F1] = {"f1", true, false},
    [SHOAL_SCORE_AUC] = {"auc", true, false},
    [SHOAL_SCORE_LOG_LOSS] = {"log-loss", false, false},
    [SHOAL_SCORE_RMSE] = {"rmse", false, true},
    [SHOAL_SCORE_MAE] = {"mae", false, true},
    [SHOAL_SCORE_R2] = {"r2", true, true},
};

const char *shoal_score_name(shoal_score_kind kind) { return kinds[kind].name; }

bool shoal_score_parse(const char *word, shoal_score_kind *out) {
  for (int i = 0; i < SHOAL_SCORES; i++) {
    if (strcmp(word, kinds[i].name) != 0) continue;
    *out = (shoal_score_kind)i;
    return true;
  }
  return false;
}

bool shoal_score_higher_is_better(shoal_score_kind kind) { return kinds[kind].higher; }

bool shoal_score_fits(shoal_score_kind kind, shoal_problem problem) {
  return kinds[kind].numbers == (problem == SHOAL_REGRESSION);
}

shoal_score_kind shoal_score_usual(shoal_problem problem) {
  return problem == SHOAL_REGRESSION ? SHOAL_SCORE_RMSE : SHOAL_SCORE_ACCURACY;
}

bool shoal_score_better(shoal_score_kind kind, double a, double b) {
  if (isnan(a)) return false;
  if (isnan(b)) return true;
  return kinds[kind].higher ? a > b : a < b;
}

double shoal_score_to_mean(shoal_score_kind kind, double score) {
  return kind == SHOAL_SCORE_RMSE ? score * score : score;
}

double shoal_score_from_mean(shoal_score_kind kind, double mean) {
  return kind == SHOAL_SCORE_RMSE ? sqrt(mean > 0 ? mean : 0) : mean;
}

void shoal_scores_none(shoal_scores *out) {
  for (int i = 0; i < SHOAL_SCORES; i++) out->of[i] = NAN;
}

/* ---- classes ------------------------------------------------------------------------ */

/* What was said and what is right, class by class. */
typedef struct tally {
  uint64_t right, said, hit;
} tally;

static uint32_t largest(const float *values, uint32_t count) {
  uint32_t best = 0;
  for (uint32_t c = 1; c < count; c++)
    if (values[c] > values[best]) best = c;
  return best;
}

static uint64_t count_answers(const float *probability, const int32_t *label, uint64_t rows, uint32_t classes,
                              tally *tallies) {
  uint64_t counted = 0;
  memset(tallies, 0, classes * sizeof *tallies);
  for (uint64_t i = 0; i < rows; i++) {
    if (label[i] < 0) continue;
    uint32_t said = largest(probability + i * classes, classes), right = (uint32_t)label[i];
    tallies[right].right++;
    tallies[said].said++;
    tallies[right].hit += said == right;
    counted++;
  }
  return counted;
}

static double accuracy(const tally *tallies, uint32_t classes, uint64_t counted) {
  uint64_t hits = 0;
  for (uint32_t c = 0; c < classes; c++) hits += tallies[c].hit;
  return (double)hits / (double)counted;
}

/* The mean over the classes that there are of the share that was found. */
static double balanced_accuracy(const tally *tallies, uint32_t classes) {
  double sum = 0;
  uint32_t there = 0;
  for (uint32_t c = 0; c < classes; c++) {
    if (tallies[c].right == 0) continue;
    sum += (double)tallies[c].hit / (double)tallies[c].right;
    there++;
  }
  return sum / there;
}

static double f1_of(const tally *t) {
  uint64_t both = t->right + t->said;
  return both > 0 ? 2 * (double)t->hit / (double)both : 0;
}

/* Classes that are neither said nor right are left out of the mean. */
static double f1(const tally *tallies, uint32_t classes, uint32_t positive) {
  if (classes == 2) return f1_of(&tallies[positive]);
  double sum = 0;
  uint32_t there = 0;
  for (uint32_t c = 0; c < classes; c++) {
    if (tallies[c].right + tallies[c].said == 0) continue;
    sum += f1_of(&tallies[c]);
    there++;
  }
  return sum / there;
}

/* Probabilities are kept as far from 0 and 1 as a float can be. */
static double log_loss(const float *probability, const int32_t *label, uint64_t rows, uint32_t classes,
                       uint64_t counted) {
  const double least = FLT_EPSILON, most = (double)(1.0f - FLT_EPSILON);
  double sum = 0;
  for (uint64_t i = 0; i < rows; i++) {
    if (label[i] < 0) continue;
    double p = (double)probability[i * classes + (uint32_t)label[i]];
    sum -= shoal_exact_log(p < least ? least : p > most ? most : p);
  }
  return sum / (double)counted;
}

typedef struct ranked {
  float value;
  bool positive;
} ranked;

static int by_value(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  return (x->value > y->value) - (x->value < y->value);
}

/* The share of pairs, one of the class and one not, that stand in the right order; equal ones count half. */
static double auc_of(const float *probability, const int32_t *label, uint64_t rows, uint32_t classes,
                     uint32_t class, ranked *scratch) {
  uint64_t count = 0, positives = 0;
  for (uint64_t i = 0; i < rows; i++) {
    if (label[i] < 0) continue;
    scratch[count] = (ranked){probability[i * classes + class], (uint32_t)label[i] == class};
    positives += scratch[count++].positive;
  }
  if (positives == 0 || positives == count) return NAN;
  qsort(scratch, count, sizeof *scratch, by_value);
  double halves = 0; /* twice the number of pairs */
  uint64_t below = 0;
  for (uint64_t i = 0; i < count;) {
    uint64_t yes = 0, no = 0;
    float value = scratch[i].value;
    for (; i < count && scratch[i].value == value; i++) {
      yes += scratch[i].positive;
      no += !scratch[i].positive;
    }
    halves += (double)yes * (double)(2 * below + no);
    below += no;
  }
  return halves / 2 / ((double)positives * (double)(count - positives));
}

static double auc(const float *probability, const int32_t *label, uint64_t rows, uint32_t classes,
                  ranked *scratch) {
  if (classes == 2) return auc_of(probability, label, rows, classes, 1, scratch);
  double sum = 0;
  uint32_t there = 0;
  for (uint32_t c = 0; c < classes; c++) {
    double one = auc_of(probability, label, rows, classes, c, scratch);
    if (isnan(one)) continue;
    sum += one;
    there++;
  }
  return there > 0 ? sum / there : NAN;
}

static double score_of(shoal_score_kind kind, const float *probability, const int32_t *label, uint64_t rows,
                       uint32_t classes, uint32_t positive, const tally *tallies, uint64_t counted,
                       ranked *scratch) {
  switch (kind) {
  case SHOAL_SCORE_ACCURACY: return accuracy(tallies, classes, counted);
  case SHOAL_SCORE_BALANCED_ACCURACY: return balanced_accuracy(tallies, classes);
  case SHOAL_SCORE_F1: return f1(tallies, classes, positive);
  case SHOAL_SCORE_AUC: return auc(probability, label, rows, classes, scratch);
  case SHOAL_SCORE_LOG_LOSS: return log_loss(probability, label, rows, classes, counted);
  default: return NAN;
  }
}

/* Every one that the set has. */
static shoal_status some_scores(shoal_scores *out, uint32_t set, const float *probability,
                                const int32_t *label, uint64_t rows, uint32_t classes, uint32_t positive,
                                shoal_error *err) {
  shoal_scores_none(out);
  for (uint64_t i = 0; i < rows * classes; i++)
    if (isnan(probability[i])) return SHOAL_OK;
  bool ranks = (set & (1u << SHOAL_SCORE_AUC)) != 0;
  tally *tallies = calloc(classes, sizeof *tallies);
  ranked *scratch = ranks ? malloc((rows + 1) * sizeof *scratch) : NULL;
  shoal_status status = SHOAL_OK;
  if (tallies == NULL || (ranks && scratch == NULL)) {
    status =
        shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory to score %llu rows", (unsigned long long)rows);
  } else {
    uint64_t counted = count_answers(probability, label, rows, classes, tallies);
    for (int k = 0; k < SHOAL_SCORES && counted > 0; k++)
      if (set & (1u << k))
        out->of[k] = score_of((shoal_score_kind)k, probability, label, rows, classes, positive, tallies,
                              counted, scratch);
  }
  free(tallies);
  free(scratch);
  return status;
}

shoal_status shoal_scores_classes(shoal_scores *out, const float *probability, const int32_t *label,
                                  uint64_t rows, uint32_t classes, uint32_t positive, shoal_error *err) {
  return some_scores(out, UINT32_MAX, probability, label, rows, classes, positive, err);
}

shoal_status shoal_score_classes(shoal_score_kind kind, double *out, const float *probability,
                                 const int32_t *label, uint64_t rows, uint32_t classes, uint32_t positive,
                                 shoal_error *err) {
  shoal_scores scores;
  shoal_status status = some_scores(&scores, 1u << kind, probability, label, rows, classes, positive, err);
  *out = scores.of[kind];
  return status;
}

/* ---- numbers ------------------------------------------------------------------------ */

void shoal_scores_numbers(shoal_scores *out, const double *predicted, const double *right, uint64_t rows) {
  double squares = 0, absolute = 0, sum = 0, around = 0;
  uint64_t counted = 0;
  shoal_scores_none(out);
  for (uint64_t i = 0; i < rows; i++) {
    if (isnan(right[i])) continue;
    double error = predicted[i] - right[i];
    squares += error * error;
    absolute += fabs(error);
    sum += right[i];
    counted++;
  }
  if (counted == 0) return;
  double mean = sum / (double)counted;
  for (uint64_t i = 0; i < rows; i++)
    if (!isnan(right[i])) around += (right[i] - mean) * (right[i] - mean);
  out->of[SHOAL_SCORE_RMSE] = sqrt(squares / (double)counted);
  out->of[SHOAL_SCORE_MAE] = absolute / (double)counted;
  if (counted < 2) return;
  out->of[SHOAL_SCORE_R2] = around > 0 ? 1 - squares / around : squares == 0 ? 1 : 0;
}

/* ---- as JSON ------------------------------------------------------------------------ */

void shoal_scores_write(const shoal_scores *scores, shoal_problem problem, shoal_json *json,
                        const char *prefix) {
  shoal_text key;
  shoal_text_init(&key);
  for (int k = 0; k < SHOAL_SCORES; k++) {
    if (!shoal_score_fits((shoal_score_kind)k, problem)) continue;
    shoal_text_clear(&key);
    shoal_text_addf(&key, "%s%s", prefix != NULL ? prefix : "", kinds[k].name);
    if (!key.failed) shoal_json_real(json, key.bytes, scores->of[k]);
  }
  shoal_text_release(&key);
}

void shoal_scores_read(shoal_scores *out, const cJSON *json) {
  shoal_scores_none(out);
  for (int k = 0; k < SHOAL_SCORES; k++) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, kinds[k].name);
    if (cJSON_IsNumber(item)) out->of[k] = item->valuedouble;
  }
}

void shoal_estimate_write(const shoal_estimate *estimate, shoal_json *json) {
  if (!isfinite(estimate->score)) return;
  shoal_json_real(json, "estimate", estimate->score);
  shoal_json_real(json, "estimate_error", estimate->error);
}

void shoal_estimate_read(shoal_estimate *out, const cJSON *json) {
  const cJSON *score = cJSON_GetObjectItemCaseSensitive(json, "estimate"),
              *error = cJSON_GetObjectItemCaseSensitive(json, "estimate_error");
  out->score = cJSON_IsNumber(score) ? score->valuedouble : NAN;
  out->error = cJSON_IsNumber(error) ? error->valuedouble : NAN;
}
