/* trial.c: the training of one trial; see trial.h.
 *
 * The folds' networks are trained epoch by epoch beside each other, so that an epoch's score is the mean
 * over all of them. A state may be saved after any round: each network has its own position, and those
 * that have finished the epoch wait for the others when it is taken up again. */
#include "search/trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "search/topology.h"
#include "search/trial_internal.h"

/* ---- set-up ------------------------------------------------------------------------- */

/* Inverse to how often a class occurs, with a mean of 1 over the training rows (as train/task.c has it). */
static shoal_status weigh_classes(const shoal_bench *bench, uint32_t fold, const shoal_recipe *recipe,
                                  float **out, shoal_error *err) {
  const shoal_target *target = &shoal_bench_brief(bench)->target;
  if (!recipe->class_weights_balanced || target->problem == SHOAL_REGRESSION) return SHOAL_OK;
  uint32_t classes = target->classes.count;
  const shoal_row_list *train = &shoal_bench_split(bench)->train[fold];
  uint64_t *counts = calloc(classes, sizeof *counts);
  *out = calloc(classes, sizeof **out);
  if (counts == NULL || *out == NULL) {
    free(counts);
    return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  }
  for (uint64_t i = 0; i < train->count; i++)
    counts[shoal_target_label(target, shoal_bench_rows(bench), train->at[i])]++;
  for (uint32_t c = 0; c < classes; c++)
    if (counts[c] > 0) (*out)[c] = (float)((double)train->count / ((double)classes * (double)counts[c]));
  free(counts);
  return SHOAL_OK;
}

static shoal_status open_fold(shoal_trial_work *w, uint32_t f, shoal_text *text, shoal_error *err) {
  shoal_trial_fold *fold = &w->folds[f];
  const shoal_brief *brief = shoal_bench_brief(w->bench);
  const shoal_unit *unit = w->options->unit;
  shoal_encoding_choice choice = shoal_topology_encoding(&brief->space, &unit->values);
  shoal_status status = shoal_bench_take(w->bench, &choice, f, &fold->entry, err);
  if (status == SHOAL_OK)
    status = shoal_bench_model(w->bench, &unit->values, unit->trial, f, fold->entry->encoder, &fold->model,
                               text, err);
  if (status == SHOAL_OK)
    status = shoal_encoded_share(&fold->train, fold->entry->train, shoal_bench_seed(w->bench, unit->trial, f),
                                 err);
  if (status == SHOAL_OK) status = shoal_graph_create(&fold->graph, fold->model, err);
  if (status == SHOAL_OK)
    status = weigh_classes(w->bench, f, &fold->model->recipe, &fold->class_weights, err);
  if (status == SHOAL_OK) {
    shoal_trainer_config config = {.graph = fold->graph,
                                   .threads = 1,
                                   .batch = fold->model->recipe.batch,
                                   .samples = shoal_encoded_source(fold->train).samples,
                                   .class_weights = fold->class_weights};
    status = shoal_trainer_create(&fold->trainer, &config, err);
  }
  if (status == SHOAL_OK) status = shoal_forward_create(&fold->forward, fold->graph, err);
  if (status != SHOAL_OK) return status;
  size_t width = shoal_target_width(&brief->target);
  fold->predicted = malloc((shoal_bench_split(w->bench)->valid[f].count * width + 1) * sizeof(float));
  fold->best = shoal_trial_net_reserve(fold->graph);
  return fold->predicted && fold->best ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

static shoal_status open_folds(shoal_trial_work *w, shoal_error *err) {
  shoal_text text, all;
  shoal_text_init(&text);
  shoal_text_init(&all);
  shoal_status status = SHOAL_OK;
  for (uint32_t f = 0; f < w->folds_count && status == SHOAL_OK; f++) {
    status = open_fold(w, f, &text, err);
    shoal_text_add(&all, text.bytes ? text.bytes : "", text.length);
  }
  if (status == SHOAL_OK && all.failed) status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (status == SHOAL_OK) shoal_sha256_hex(all.bytes, all.length, w->models_sha256);
  shoal_text_release(&text);
  shoal_text_release(&all);
  return status;
}

static void close_folds(shoal_trial_work *w) {
  for (uint32_t f = 0; f < w->folds_count; f++) {
    shoal_trial_fold *fold = &w->folds[f];
    shoal_engine_destroy(fold->forward);
    shoal_trainer_destroy(fold->trainer);
    shoal_graph_destroy(fold->graph);
    shoal_model_destroy(fold->model);
    shoal_encoded_destroy(fold->train);
    shoal_bench_give(w->bench, fold->entry);
    free(fold->class_weights);
    free(fold->predicted);
    free(fold->best);
  }
}

/* ---- an epoch ----------------------------------------------------------------------- */

typedef struct course {
  shoal_trial_work *work;
  double *numbers; /* a fold's predictions in the target's units */
  float *some;     /* predictions of a part of the rows, and what is right for them */
  double *right;
  int32_t *labels;
  double saved_at;
  shoal_error *err;
} course;

static bool stopped(const course *c) {
  const volatile sig_atomic_t *stop = c->work->options->stop;
  return stop && __atomic_load_n(stop, __ATOMIC_RELAXED) != 0;
}

static shoal_status save(course *c) {
  const shoal_trial_options *o = c->work->options;
  if (o->state == NULL) return SHOAL_OK;
  shoal_status status = shoal_trial_state_save(c->work, c->err);
  c->saved_at = shoal_clock_seconds();
  if (status == SHOAL_OK && o->saved) o->saved(o->self);
  return status;
}

static bool save_is_due(const course *c) {
  double every = c->work->options->save_every_s;
  return every > 0 && shoal_clock_seconds() - c->saved_at >= every;
}

static void explode(shoal_trial_work *w, const char *what) {
  w->result->failed = true;
  w->result->score = NAN;
  shoal_scores_none(&w->result->scores);
  snprintf(w->result->error, sizeof w->result->error, "%s in epoch %u: a lower rate may help", what,
           w->result->epochs + 1);
}

/* The rest of a fold's epoch. */
static shoal_status train_fold(course *c, shoal_trial_fold *fold) {
  shoal_train_state *state = shoal_trainer_state(fold->trainer);
  shoal_source source = shoal_encoded_source(fold->train);
  uint64_t wanted = (uint64_t)c->work->result->epochs + 1;
  while (state->epoch < wanted) {
    shoal_result round;
    shoal_error trouble;
    if (stopped(c)) return SHOAL_STOPPED;
    if (shoal_trainer_round(fold->trainer, &source, &round, &trouble) != SHOAL_OK) {
      explode(c->work, "the loss is not a number");
      return SHOAL_OK;
    }
    if (save_is_due(c)) {
      shoal_status status = save(c);
      if (status != SHOAL_OK) return status;
    }
  }
  return SHOAL_OK;
}

/* In the target's units. */
static const double *own_units(course *c, const float *predicted, uint64_t rows) {
  const shoal_target *target = &shoal_bench_brief(c->work->bench)->target;
  for (uint64_t i = 0; i < rows; i++) c->numbers[i] = (double)predicted[i] * target->deviation + target->mean;
  return c->numbers;
}

/* All scores of predictions, or the metric alone. */
static shoal_status score_rows(course *c, const float *predicted, const int32_t *labels, const double *right,
                               uint64_t rows, bool all, shoal_scores *out) {
  const shoal_brief *brief = shoal_bench_brief(c->work->bench);
  uint32_t classes = brief->target.classes.count, positive = brief->target.positive;
  if (brief->target.problem == SHOAL_REGRESSION) {
    shoal_scores_numbers(out, own_units(c, predicted, rows), right, rows);
    return SHOAL_OK;
  }
  if (all) return shoal_scores_classes(out, predicted, labels, rows, classes, positive, c->err);
  shoal_scores_none(out);
  return shoal_score_classes(brief->metric, &out->of[brief->metric], predicted, labels, rows, classes,
                             positive, c->err);
}

/* The mean over the folds. */
static shoal_status score_folds(course *c, bool all, shoal_scores *out) {
  const shoal_bench *bench = c->work->bench;
  shoal_scores sum = {{0}};
  for (uint32_t f = 0; f < c->work->folds_count; f++) {
    shoal_scores one;
    shoal_status status =
        score_rows(c, c->work->folds[f].predicted, shoal_bench_labels(bench, f), shoal_bench_right(bench, f),
                   shoal_bench_split(bench)->valid[f].count, all, &one);
    if (status != SHOAL_OK) return status;
    for (int k = 0; k < SHOAL_SCORES; k++) sum.of[k] += one.of[k];
  }
  for (int k = 0; k < SHOAL_SCORES; k++) out->of[k] = sum.of[k] / c->work->folds_count;
  return SHOAL_OK;
}

uint32_t shoal_parts_of_fold(const shoal_table_split *split, shoal_score_kind metric) {
  enum { ROWS_LEAST = 5, PARTS = 10, PARTS_LEAST = 5 };
  bool adds_up = metric == SHOAL_SCORE_ACCURACY || metric == SHOAL_SCORE_LOG_LOSS ||
                 metric == SHOAL_SCORE_RMSE || metric == SHOAL_SCORE_MAE;
  uint64_t parts = (adds_up ? PARTS : PARTS_LEAST) / split->folds;
  for (uint32_t f = 0; f < split->folds; f++)
    if (parts > split->valid[f].count / ROWS_LEAST) parts = split->valid[f].count / ROWS_LEAST;
  return parts > 1 ? (uint32_t)parts : 1;
}

/* The metric of each part of a fold's held-out rows. */
static shoal_status score_parts(course *c, uint32_t f, uint32_t parts, double *own) {
  const shoal_bench *bench = c->work->bench;
  const int32_t *labels = shoal_bench_labels(bench, f);
  const double *right = shoal_bench_right(bench, f);
  uint32_t width = shoal_target_width(&shoal_bench_brief(bench)->target);
  for (uint32_t p = 0; p < parts; p++) {
    uint64_t count = 0;
    for (uint64_t i = p; i < shoal_bench_split(bench)->valid[f].count; i += parts, count++) {
      memcpy(c->some + count * width, c->work->folds[f].predicted + i * width, width * sizeof(float));
      if (labels) c->labels[count] = labels[i];
      if (right) c->right[count] = right[i];
    }
    shoal_scores one;
    shoal_status status = score_rows(c, c->some, c->labels, c->right, count, false, &one);
    if (status != SHOAL_OK) return status;
    own[p] = one.of[shoal_bench_brief(bench)->metric];
  }
  return SHOAL_OK;
}

/* Of each part: whether this epoch is the best one by all others, and what the part itself says of it then. */
static shoal_status judge_parts(course *c) {
  shoal_trial_work *w = c->work;
  shoal_trial_result *r = w->result;
  shoal_score_kind metric = shoal_bench_brief(w->bench)->metric;
  uint32_t of_fold = shoal_parts_of_fold(shoal_bench_split(w->bench), metric);
  double own[SHOAL_PARTS_MAX], sum = 0;
  uint32_t count = 0;
  for (uint32_t f = 0; f < w->folds_count; f++) {
    shoal_status status = score_parts(c, f, of_fold, own + (size_t)f * of_fold);
    if (status != SHOAL_OK) return status;
  }
  bool first = r->parts_count == 0;
  r->parts_count = w->folds_count * of_fold;
  for (uint32_t p = 0; p < r->parts_count; p++) {
    if (isnan(own[p])) continue;
    sum += shoal_score_to_mean(metric, own[p]);
    count++;
  }
  for (uint32_t p = 0; p < r->parts_count; p++) {
    bool scored = !isnan(own[p]);
    double rest = sum - (scored ? shoal_score_to_mean(metric, own[p]) : 0);
    double others = count > scored ? shoal_score_from_mean(metric, rest / (count - scored)) : NAN;
    if (first || shoal_score_better(metric, others, r->parts[p].others))
      r->parts[p] = (shoal_trial_part){others, own[p]};
  }
  return SHOAL_OK;
}

/* An epoch is over in all folds: scores, the best weights, patience. */
static shoal_status end_epoch(course *c) {
  shoal_trial_work *w = c->work;
  shoal_trial_result *r = w->result;
  const shoal_brief *brief = shoal_bench_brief(w->bench);
  double loss = 0;
  for (uint32_t f = 0; f < w->folds_count; f++) {
    shoal_trial_fold *fold = &w->folds[f];
    shoal_source source = shoal_encoded_source(fold->entry->valid);
    shoal_forward_run(fold->forward, shoal_trainer_state(fold->trainer)->weights, &source, fold->predicted);
    loss += shoal_trainer_epoch_result(fold->trainer).loss / w->folds_count;
  }
  shoal_scores scores;
  shoal_status status = score_folds(c, false, &scores);
  if (status != SHOAL_OK) return status;
  double score = scores.of[brief->metric];
  if (isnan(score) || isinf(score)) {
    explode(w, "the predictions are not numbers");
    return SHOAL_OK;
  }
  status = judge_parts(c);
  if (status != SHOAL_OK) return status;
  r->epochs++;
  r->curve[r->curve_count++] = (shoal_curve_point){r->epochs, loss, score};
  if (r->best_epoch == 0 || shoal_score_better(brief->metric, score, r->score)) {
    r->best_epoch = r->epochs;
    r->score = score;
    for (uint32_t f = 0; f < w->folds_count; f++) {
      const shoal_train_state *state = shoal_trainer_state(w->folds[f].trainer);
      memcpy(w->folds[f].best, state->weights, state->weights_count * sizeof(float));
    }
    status = score_folds(c, true, &r->scores);
  }
  r->over = brief->patience > 0 && r->epochs - r->best_epoch >= brief->patience;
  if (w->options->epoch) w->options->epoch(w->options->self, &r->curve[r->curve_count - 1]);
  return status;
}

static shoal_status run_epochs(course *c) {
  shoal_trial_work *w = c->work;
  const shoal_trial_result *r = w->result;
  while (r->epochs < w->options->unit->epochs_to && !r->over && !r->failed) {
    for (uint32_t f = 0; f < w->folds_count && !r->failed; f++) {
      shoal_status status = train_fold(c, &w->folds[f]);
      if (status != SHOAL_OK) return status;
    }
    if (r->failed) break;
    shoal_status status = end_epoch(c);
    if (status != SHOAL_OK) return status;
  }
  return SHOAL_OK;
}

/* ---- a unit ------------------------------------------------------------------------- */

static void name_weights(shoal_trial_work *w) {
  char hex[SHOAL_SHA256_HEX];
  shoal_text all;
  shoal_text_init(&all);
  for (uint32_t f = 0; f < w->folds_count; f++) {
    shoal_graph_weights_sha256(w->folds[f].graph, w->folds[f].best, hex);
    shoal_text_add(&all, hex, SHOAL_SHA256_HEX - 1);
  }
  if (w->folds_count > 1 && !all.failed) shoal_sha256_hex(all.bytes, all.length, hex);
  memcpy(w->result->sha256, hex, sizeof hex);
  shoal_text_release(&all);
}

static uint64_t largest_valid(const shoal_table_split *split) {
  uint64_t most = 0;
  for (uint32_t f = 0; f < split->folds; f++)
    if (split->valid[f].count > most) most = split->valid[f].count;
  return most;
}

/* Where the trial stands: at its beginning, or as its state says. */
static shoal_status take_up(shoal_trial_work *w, shoal_error *err) {
  const shoal_trial_options *o = w->options;
  shoal_trial_result *r = w->result;
  shoal_status status = o->state ? shoal_trial_state_load(w, err) : SHOAL_NOT_FOUND;
  if (status == SHOAL_NOT_FOUND && o->unit->epochs_from == 0) {
    *r = (shoal_trial_result){.score = NAN, .weights = w->folds[0].graph->trainable};
    shoal_scores_none(&r->scores);
    return SHOAL_OK;
  }
  if (status == SHOAL_NOT_FOUND && o->state == NULL)
    return shoal_fail(err, SHOAL_NOT_FOUND, "trial %llu cannot continue without its state",
                      (unsigned long long)o->unit->trial);
  if (status != SHOAL_OK) return status;
  if (r->epochs > o->unit->epochs_to || (r->epochs < o->unit->epochs_from && !r->over))
    return shoal_fail(err, SHOAL_CONFLICT, "%s: trial %llu has %u epochs; the unit is from %u to %u",
                      o->state, (unsigned long long)o->unit->trial, r->epochs, o->unit->epochs_from,
                      o->unit->epochs_to);
  return SHOAL_OK;
}

static shoal_status run(shoal_trial_work *w, shoal_error *err) {
  double began = shoal_clock_seconds();
  course c = {.work = w, .saved_at = began, .err = err};
  uint64_t rows = largest_valid(shoal_bench_split(w->bench)) + 1;
  c.numbers = malloc(rows * sizeof *c.numbers);
  c.some = malloc(rows * shoal_target_width(&shoal_bench_brief(w->bench)->target) * sizeof *c.some);
  c.right = malloc(rows * sizeof *c.right);
  c.labels = malloc(rows * sizeof *c.labels);
  shoal_status status = c.numbers && c.some && c.right && c.labels
                            ? SHOAL_OK
                            : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (status == SHOAL_OK) status = open_folds(w, err);
  if (status == SHOAL_OK) status = take_up(w, err);
  if (status == SHOAL_OK) {
    status = run_epochs(&c);
    if (!w->result->failed) name_weights(w);
    if (status == SHOAL_STOPPED || (status == SHOAL_OK && !w->result->failed)) {
      shoal_status saved = save(&c);
      if (saved != SHOAL_OK) status = saved;
    }
  }
  if (status == SHOAL_STOPPED) shoal_fail(err, SHOAL_STOPPED, "stopped");
  w->result->seconds = shoal_clock_seconds() - began;
  free(c.numbers);
  free(c.some);
  free(c.right);
  free(c.labels);
  return status;
}

shoal_status shoal_trial_run(shoal_bench *bench, const shoal_trial_options *options, shoal_trial_result *out,
                             shoal_error *err) {
  const shoal_unit *unit = options->unit;
  memset(out, 0, sizeof *out);
  if (unit->epochs_to > shoal_bench_brief(bench)->epochs || unit->epochs_from >= unit->epochs_to)
    return shoal_fail(err, SHOAL_INVALID,
                      "a unit of trial %llu from epoch %u to %u does not fit a training of %u",
                      (unsigned long long)unit->trial, unit->epochs_from, unit->epochs_to,
                      shoal_bench_brief(bench)->epochs);
  shoal_trial_work *w = calloc(1, sizeof *w);
  if (w == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  w->bench = bench;
  w->options = options;
  w->result = out;
  w->folds_count = shoal_bench_split(bench)->folds;
  shoal_status status = run(w, err);
  close_folds(w);
  free(w);
  return status;
}

uint64_t shoal_trial_samples(const shoal_brief *brief, const shoal_table_split *split, const shoal_unit *unit,
                             const shoal_trial_result *result) {
  uint64_t rows = 0;
  for (uint32_t f = 0; f < split->folds; f++) {
    uint64_t count = split->train[f].count, most = brief->epoch_rows;
    rows += most > 0 && most < count ? most : count;
  }
  return result->epochs > unit->epochs_from ? rows * (result->epochs - unit->epochs_from) : 0;
}
