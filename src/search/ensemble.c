/* ensemble.c: see ensemble.h.
 *
 * Caruana et al., "Ensemble selection from libraries of models" (2004). Where two choices have the same
 * score, as with accuracy on few rows they often do, the one with the smaller loss is taken. */
#include "search/ensemble.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct chooser {
  const shoal_candidates *candidates;
  shoal_score_kind metric;
  uint64_t values; /* of one prediction */
  double *sum;     /* of those taken */
  float *mean;     /* with one more; classes */
  double *numbers; /* likewise; numbers */
  shoal_error *err;
} chooser;

typedef struct judged {
  double score, loss;
} judged;

static bool better(const chooser *c, const judged *a, const judged *b) {
  if (shoal_score_better(c->metric, a->score, b->score)) return true;
  if (shoal_score_better(c->metric, b->score, a->score)) return false;
  return a->loss < b->loss;
}

/* The sum of `taken` predictions and one more (NULL: none), as a mean. */
static shoal_status judge(chooser *c, uint32_t taken, const float *more, judged *out) {
  const shoal_candidates *k = c->candidates;
  double count = taken + (more ? 1 : 0);
  shoal_scores scores;
  if (k->classes == 0) {
    for (uint64_t i = 0; i < c->values; i++)
      c->numbers[i] = (c->sum[i] + (more ? (double)more[i] : 0)) / count;
    shoal_scores_numbers(&scores, c->numbers, k->right, k->rows);
    *out = (judged){scores.of[c->metric], scores.of[SHOAL_SCORE_RMSE]};
    return SHOAL_OK;
  }
  for (uint64_t i = 0; i < c->values; i++)
    c->mean[i] = (float)((c->sum[i] + (more ? (double)more[i] : 0)) / count);
  shoal_status status = shoal_score_classes(c->metric, &out->score, c->mean, k->label, k->rows, k->classes,
                                            k->positive, c->err);
  if (status != SHOAL_OK || c->metric == SHOAL_SCORE_LOG_LOSS) {
    out->loss = out->score;
    return status;
  }
  return shoal_score_classes(SHOAL_SCORE_LOG_LOSS, &out->loss, c->mean, k->label, k->rows, k->classes,
                             k->positive, c->err);
}

/* The candidate that helps most. */
static shoal_status next(chooser *c, uint32_t taken, uint32_t *out, judged *best) {
  *best = (judged){NAN, INFINITY};
  *out = 0;
  for (uint32_t i = 0; i < c->candidates->count; i++) {
    judged one;
    shoal_status status = judge(c, taken, c->candidates->predicted[i], &one);
    if (status != SHOAL_OK) return status;
    if (i > 0 && !better(c, &one, best)) continue;
    *best = one;
    *out = i;
  }
  return SHOAL_OK;
}

static void take(chooser *c, uint32_t candidate) {
  const float *predicted = c->candidates->predicted[candidate];
  for (uint64_t i = 0; i < c->values; i++) c->sum[i] += (double)predicted[i];
}

/* Takes candidates one after the other; those up to where all together were best count. */
static shoal_status choose(chooser *c, uint32_t rounds, uint32_t *order, uint32_t *counted, double *score) {
  judged best = {NAN, INFINITY};
  *counted = 0;
  for (uint32_t r = 0; r < rounds; r++) {
    judged now;
    shoal_status status = next(c, r, &order[r], &now);
    if (status != SHOAL_OK) return status;
    take(c, order[r]);
    if (r > 0 && !better(c, &now, &best)) continue;
    best = now;
    *counted = r + 1;
  }
  *score = best.score;
  return SHOAL_OK;
}

static bool open_chooser(chooser *c, const shoal_candidates *candidates, shoal_score_kind metric,
                         shoal_error *err) {
  *c = (chooser){.candidates = candidates, .metric = metric, .err = err};
  c->values = candidates->rows * (candidates->classes > 0 ? candidates->classes : 1);
  c->sum = calloc(c->values + 1, sizeof *c->sum);
  c->mean = malloc((c->values + 1) * sizeof *c->mean);
  c->numbers = malloc((c->values + 1) * sizeof *c->numbers);
  return c->sum && c->mean && c->numbers;
}

static void close_chooser(chooser *c) {
  free(c->sum);
  free(c->mean);
  free(c->numbers);
}

shoal_status shoal_ensemble_choose(const shoal_candidates *candidates, shoal_score_kind metric,
                                   uint32_t rounds, double *share, double *score, shoal_error *err) {
  if (candidates->count == 0 || rounds == 0 || candidates->rows == 0)
    return shoal_fail(err, SHOAL_INVALID, "there is nothing to choose from");
  chooser c;
  bool whole = open_chooser(&c, candidates, metric, err);
  uint32_t *order = calloc(rounds, sizeof *order), counted = 0;
  shoal_status status = whole && order ? choose(&c, rounds, order, &counted, score)
                                       : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  memset(share, 0, candidates->count * sizeof *share);
  for (uint32_t r = 0; r < counted && status == SHOAL_OK; r++) share[order[r]] += 1.0 / counted;
  close_chooser(&c);
  free(order);
  return status;
}

shoal_status shoal_ensemble_score(const shoal_candidates *candidates, shoal_score_kind metric,
                                  const double *share, double *score, shoal_error *err) {
  chooser c;
  judged one = {NAN, NAN};
  shoal_status status = open_chooser(&c, candidates, metric, err)
                            ? SHOAL_OK
                            : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  for (uint32_t i = 0; i < candidates->count && status == SHOAL_OK; i++)
    for (uint64_t v = 0; v < c.values && share[i] > 0; v++)
      c.sum[v] += share[i] * (double)candidates->predicted[i][v];
  if (status == SHOAL_OK) status = judge(&c, 1, NULL, &one);
  *score = one.score;
  close_chooser(&c);
  return status;
}
