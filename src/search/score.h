/* score.h: how good predictions are.
 *
 * Threads: any. */
#ifndef SHOAL_SEARCH_SCORE_H
#define SHOAL_SEARCH_SCORE_H

#include <cjson/cJSON.h>

#include "base/json.h"
#include "search/split.h"

typedef enum shoal_score_kind {
  SHOAL_SCORE_ACCURACY,
  SHOAL_SCORE_BALANCED_ACCURACY,
  SHOAL_SCORE_F1,  /* of two classes that of the positive one; the mean over classes of more */
  SHOAL_SCORE_AUC, /* of two classes the same for both; the mean of each class against the rest */
  SHOAL_SCORE_LOG_LOSS,
  SHOAL_SCORE_RMSE,
  SHOAL_SCORE_MAE,
  SHOAL_SCORE_R2,
  SHOAL_SCORES,
} shoal_score_kind;
const char *shoal_score_name(shoal_score_kind kind); /* "balanced-accuracy" */
bool shoal_score_parse(const char *word, shoal_score_kind *out);
bool shoal_score_higher_is_better(shoal_score_kind kind);
bool shoal_score_fits(shoal_score_kind kind, shoal_problem problem);
shoal_score_kind shoal_score_usual(shoal_problem problem);          /* accuracy; rmse */
bool shoal_score_better(shoal_score_kind kind, double a, double b); /* a than b; NaN is worse than anything */

typedef struct shoal_scores {
  double of[SHOAL_SCORES]; /* NaN where it does not fit */
} shoal_scores;

void shoal_scores_none(shoal_scores *out); /* all NaN */

/* What can be averaged over parts of rows in a score's place: of RMSE its square. */
double shoal_score_to_mean(shoal_score_kind kind, double score);
double shoal_score_from_mean(shoal_score_kind kind, double mean);

/* What a score is expected to be on rows that had no say in choosing (estimate.h). */
typedef struct shoal_estimate {
  double score; /* in the target's units; NaN: not known */
  double error; /* its standard error; NaN: not known */
} shoal_estimate;

/* Probabilities rows x classes (two classes: two), or numbers; labels -1 and right ones that are NaN are
 * left out. As scikit-learn has them: a class that is neither said nor right does not count for f1, one
 * that is not there counts for nothing else; log loss keeps probabilities within [e, 1 - e], e = 2^-23.
 * positive: the class of two whose f1 is meant (shoal_target.positive). */
shoal_status shoal_scores_classes(shoal_scores *out, const float *probability, const int32_t *label,
                                  uint64_t rows, uint32_t classes, uint32_t positive, shoal_error *err);
/* One of them alone, which is quicker. */
shoal_status shoal_score_classes(shoal_score_kind kind, double *out, const float *probability,
                                 const int32_t *label, uint64_t rows, uint32_t classes, uint32_t positive,
                                 shoal_error *err);
void shoal_scores_numbers(shoal_scores *out, const double *predicted, const double *right, uint64_t rows);
void shoal_scores_write(const shoal_scores *scores, shoal_problem problem, shoal_json *json,
                        const char *prefix);
/* "estimate" and "estimate_error", where they are known. */
void shoal_estimate_write(const shoal_estimate *estimate, shoal_json *json);
void shoal_estimate_read(shoal_estimate *out, const cJSON *json);
/* As written without a prefix; what is not there is NaN. */
void shoal_scores_read(shoal_scores *out, const cJSON *json);

#endif
