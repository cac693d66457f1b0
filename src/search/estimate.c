/* estimate.c: see estimate.h. */
#include "search/estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  GROUPS = 20,        /* of rows, whose scores tell how far off an estimate may be */
  GROUP_LEAST = 5,    /* rows; with few of them there are fewer groups, two at least */
  PARTS = 5,          /* of held-out rows, by which members are chosen and compared; each fold is one */
  VALUES_MAX = 40000, /* that members are chosen by here: more rows change little and take long */
};

/* A mean over parts, each as often as it has rows; parts without a score are left out. */
typedef struct averaging {
  double sum, weight;
} averaging;

static void average_in(averaging *a, double value, uint64_t rows) {
  if (!isfinite(value)) return;
  a->sum += value * (double)rows;
  a->weight += (double)rows;
}

static double average(const averaging *a) { return a->weight > 0 ? a->sum / a->weight : NAN; }

/* ---- the best trial ----------------------------------------------------------------- */

/* What one trial is worth that all other parts have chosen, part by part. */
static double estimate_best(const shoal_board *board, const shoal_table_split *split,
                            shoal_score_kind metric) {
  averaging mean = {0};
  uint32_t of_fold = shoal_parts_of_fold(split, metric), parts = split->folds * of_fold;
  for (uint32_t p = 0; p < parts; p++) {
    shoal_trial_part best = {NAN, NAN};
    for (uint64_t t = 1; t <= shoal_board_trials(board); t++) {
      const shoal_trial_result *result = shoal_board_trial_at(board, t)->result;
      if (result == NULL || result->failed || !isfinite(result->score) || result->parts_count != parts)
        continue;
      if (shoal_score_better(metric, result->parts[p].others, best.others)) best = result->parts[p];
    }
    uint64_t rows = (split->valid[p / of_fold].count + of_fold - 1 - p % of_fold) / of_fold;
    average_in(&mean, shoal_score_to_mean(metric, best.own), rows);
  }
  return shoal_score_from_mean(metric, average(&mean));
}

/* ---- some of the rows --------------------------------------------------------------- */

/* A copy of what candidates say of some rows. */
typedef struct subset {
  shoal_candidates candidates;
  float *values, *predicted[SHOAL_CANDIDATES_MAX];
  int32_t *label;
  double *right;
} subset;

static void subset_release(subset *s) {
  free(s->values);
  free(s->label);
  free(s->right);
}

static bool subset_reserve(subset *s, const shoal_candidates *all, uint64_t rows) {
  size_t values = (size_t)rows * (all->classes > 0 ? all->classes : 1);
  *s = (subset){.candidates = *all};
  s->values = malloc((all->count * values + 1) * sizeof *s->values);
  s->label = malloc((rows + 1) * sizeof *s->label);
  s->right = malloc((rows + 1) * sizeof *s->right);
  for (uint32_t i = 0; s->values && i < all->count; i++) s->predicted[i] = s->values + i * values;
  s->candidates.predicted = (const float *const *)s->predicted;
  s->candidates.label = s->label;
  s->candidates.right = s->right;
  s->candidates.rows = 0;
  return s->values && s->label && s->right;
}

static void subset_add(subset *s, const shoal_candidates *all, uint64_t row) {
  size_t width = all->classes > 0 ? all->classes : 1, at = s->candidates.rows++;
  for (uint32_t i = 0; i < all->count; i++)
    memcpy(s->predicted[i] + at * width, all->predicted[i] + row * width, width * sizeof(float));
  s->label[at] = all->label ? all->label[row] : 0;
  s->right[at] = all->right ? all->right[row] : 0;
}

/* ---- what members gain together ----------------------------------------------------- */

typedef struct gaining {
  const shoal_candidates *all;
  const shoal_table_split *split;
  shoal_score_kind metric;
  uint32_t rounds, parts;
  uint64_t step; /* every so many-th row is looked at */
  averaging single, all_together;
} gaining;

static uint32_t part_of(const gaining *g, uint64_t row) {
  if (g->split->folds == 1) return (uint32_t)(row / g->step % g->parts);
  uint32_t fold = 0;
  for (; row >= g->split->valid[fold].count; fold++) row -= g->split->valid[fold].count;
  return fold;
}

/* Chosen by `others` with so many rounds, scored on `own`. */
static shoal_status choose_and_score(const gaining *g, const subset *others, const subset *own,
                                     uint32_t rounds, averaging *mean, shoal_error *err) {
  double share[SHOAL_CANDIDATES_MAX], score;
  shoal_status status = shoal_ensemble_choose(&others->candidates, g->metric, rounds, share, &score, err);
  if (status == SHOAL_OK) status = shoal_ensemble_score(&own->candidates, g->metric, share, &score, err);
  if (status == SHOAL_OK) average_in(mean, shoal_score_to_mean(g->metric, score), own->candidates.rows);
  return status;
}

static shoal_status gain_on_part(gaining *g, uint32_t part, shoal_error *err) {
  subset others = {0}, own = {0};
  uint64_t rows = g->all->rows / g->step + 1;
  shoal_status status = subset_reserve(&others, g->all, rows) && subset_reserve(&own, g->all, rows)
                            ? SHOAL_OK
                            : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  for (uint64_t row = 0; row < g->all->rows && status == SHOAL_OK; row += g->step)
    subset_add(part_of(g, row) == part ? &own : &others, g->all, row);
  bool some = own.candidates.rows > 0 && others.candidates.rows > 0;
  if (status == SHOAL_OK && some) status = choose_and_score(g, &others, &own, 1, &g->single, err);
  if (status == SHOAL_OK && some)
    status = choose_and_score(g, &others, &own, g->rounds, &g->all_together, err);
  subset_release(&others);
  subset_release(&own);
  return status;
}

/* The estimate of one trial with what members gain over one: a share of an error, a difference of other scores. */
static double add_gain(const gaining *g, double best) {
  double single = shoal_score_from_mean(g->metric, average(&g->single)),
         together = shoal_score_from_mean(g->metric, average(&g->all_together));
  if (!isfinite(single) || !isfinite(together)) return best;
  if (!shoal_score_higher_is_better(g->metric)) return single > 0 ? best * together / single : best;
  double sum = best + together - single;
  return sum > 1 ? 1 : sum; /* as all scores are that are better when higher */
}

/* ---- how far off -------------------------------------------------------------------- */

static shoal_status find_error(const gaining *g, const double *share, double score, double chosen_by,
                               double *out, shoal_error *err) {
  double sum = 0, squares = 0;
  uint64_t most = g->all->rows / GROUP_LEAST, groups = 0;
  most = most < 2 ? 2 : most > GROUPS ? GROUPS : most;
  *out = NAN;
  for (uint64_t k = 0; k < most; k++) {
    subset some = {0};
    double one = NAN;
    shoal_status status = subset_reserve(&some, g->all, g->all->rows / most + 1)
                              ? SHOAL_OK
                              : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
    for (uint64_t row = k; row < g->all->rows && status == SHOAL_OK; row += most)
      subset_add(&some, g->all, row);
    if (status == SHOAL_OK) status = shoal_ensemble_score(&some.candidates, g->metric, share, &one, err);
    subset_release(&some);
    if (status != SHOAL_OK) return status;
    one = shoal_score_to_mean(g->metric, one);
    if (!isfinite(one)) continue;
    sum += one;
    squares += one * one;
    groups++;
  }
  if (groups < 2) return SHOAL_OK;
  double count = (double)groups, rows = sqrt(fmax(0, squares - sum * sum / count) / (count - 1) / count);
  if (g->metric == SHOAL_SCORE_RMSE) rows = score > 0 ? rows / (2 * score) : 0; /* of the square's root */
  /* What luck was taken off is itself known to a half or so. */
  double luck = (chosen_by - score) / 2;
  *out = sqrt(rows * rows + luck * luck);
  return SHOAL_OK;
}

shoal_status shoal_estimate_make(shoal_estimate *out, const shoal_board *board,
                                 const shoal_table_split *split, const shoal_target *target,
                                 shoal_score_kind metric, const shoal_candidates *candidates,
                                 const double *share, uint32_t rounds, shoal_error *err) {
  *out = (shoal_estimate){NAN, NAN};
  double best = estimate_best(board, split, metric);
  if (!isfinite(best)) return SHOAL_OK;
  uint32_t width = candidates->classes > 0 ? candidates->classes : 1;
  uint64_t rows_max = VALUES_MAX / width > 0 ? VALUES_MAX / width : 1;
  gaining g = {.all = candidates,
               .split = split,
               .metric = metric,
               .rounds = rounds,
               .parts = split->folds > 1 ? split->folds : PARTS,
               .step = (candidates->rows + rows_max - 1) / rows_max};
  shoal_status status = SHOAL_OK;
  for (uint32_t p = 0; p < g.parts && candidates->count > 1 && status == SHOAL_OK; p++)
    status = gain_on_part(&g, p, err);
  if (status != SHOAL_OK) return status;
  bool scaled = metric == SHOAL_SCORE_RMSE || metric == SHOAL_SCORE_MAE;
  double unit = scaled ? target->deviation : 1; /* candidates are in units of it */
  double chosen_by; /* the score on the rows that chose: luck makes it too good, so no estimate is better */
  status = shoal_ensemble_score(candidates, metric, share, &chosen_by, err);
  if (status != SHOAL_OK) return status;
  out->score = add_gain(&g, best);
  if (shoal_score_better(metric, out->score, chosen_by * unit)) out->score = chosen_by * unit;
  status = find_error(&g, share, out->score / unit, chosen_by, &out->error, err);
  out->error *= unit;
  return status;
}
