/* search_insight.c: what a search has taught, as FOLDER/insight.json: which settings matter, which columns,
 * and where the model errs.
 *
 * Columns: how much worse the score gets on rows that the model has not learned from when the cells of one
 * column are dealt to other rows (permutation importance). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "search/forward.h"
#include "search/insight.h"
#include "search/search_internal.h"

/* Columns that are judged: so many in any case, since they are what people ask for, and at most so many. */
enum { COLUMNS_JUDGED_LEAST = 30, COLUMNS_JUDGED_MAX = 200 };

enum {
  ROWS_MAX = 1000, /* that columns are judged by */
  NETS_MAX = 5,    /* of the model's, those with the largest share */
  RESIDUALS_MAX = 1000,
  CLASSES_SHOWN_MAX = 50, /* of a confusion matrix */
};

/* Rows that judge: of the test part, or of the first fold's held-out rows. */
typedef struct judges {
  const shoal_rows *rows;
  uint64_t *at;
  uint64_t count;
  uint32_t width; /* values a prediction has */
  int32_t *label;
  double *right; /* in units of the target's deviation */
} judges;

static void release(judges *j) {
  free(j->at);
  free(j->label);
  free(j->right);
}

/* At most so many of a list, spread over all of it. */
static shoal_status find_judges(judges *j, const shoal_target *target, const shoal_rows *rows,
                                const shoal_row_list *list, uint64_t most, shoal_error *err) {
  uint64_t all = list ? list->count : shoal_rows_count(rows);
  *j = (judges){.rows = rows, .count = all < most ? all : most};
  j->width = shoal_target_width(target);
  j->at = malloc((j->count + 1) * sizeof *j->at);
  j->label = malloc((j->count + 1) * sizeof *j->label);
  j->right = malloc((j->count + 1) * sizeof *j->right);
  if (!j->at || !j->label || !j->right) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  for (uint64_t i = 0; i < j->count; i++) {
    uint64_t place = i * all / j->count, row = list ? list->at[place] : place;
    bool number = target->problem == SHOAL_REGRESSION;
    j->at[i] = row;
    j->label[i] = number ? 0 : shoal_target_label(target, rows, row);
    j->right[i] = number ? (double)shoal_target_value(target, rows, row) : 0;
  }
  return SHOAL_OK;
}

/* ---- columns ---- */

/* The judges' rows, with the cells of one column from other rows. */
typedef struct dealt {
  const shoal_encoder *encoder;
  const judges *judges;
  const uint64_t *deal; /* whose cells row i gets; NULL: its own */
  uint32_t column;
  uint32_t *column_of; /* of each value of the vector */
  float *other;        /* of one row */
} dealt;

static void fetch(const void *self, uint64_t epoch, uint64_t first, uint32_t n, const shoal_batch *into) {
  (void)epoch;
  const dealt *d = self;
  uint32_t values = shoal_encoder_values(d->encoder);
  for (uint32_t i = 0; i < n; i++) {
    uint64_t place = first + i;
    if (into->ids) into->ids[i] = place;
    if (into->x == NULL) continue;
    float *x = into->x + (size_t)i * values;
    shoal_encoder_row(d->encoder, d->judges->rows, d->judges->at[place], x);
    if (d->deal == NULL) continue;
    shoal_encoder_row(d->encoder, d->judges->rows, d->judges->at[d->deal[place]], d->other);
    for (uint32_t v = 0; v < values; v++)
      if (d->column_of[v] == d->column) x[v] = d->other[v];
  }
}

typedef struct chosen_net {
  const shoal_trial_net *net;
  double share;
} chosen_net;

static int by_share(const void *a, const void *b) {
  double x = ((const chosen_net *)a)->share, y = ((const chosen_net *)b)->share;
  return (x < y) - (x > y);
}

static shoal_status predict_one(const shoal_trial_net *net, dealt *d, float *out, shoal_error *err) {
  uint32_t values = shoal_encoder_values(net->encoder);
  shoal_engine *forward;
  d->encoder = net->encoder;
  d->other = malloc(((size_t)values + 1) * sizeof *d->other);
  d->column_of = malloc(((size_t)values + 1) * sizeof *d->column_of);
  shoal_status status = d->other && d->column_of ? shoal_forward_create(&forward, net->graph, err)
                                                 : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (status == SHOAL_OK) {
    for (uint32_t v = 0; v < values; v++) d->column_of[v] = shoal_encoder_column(net->encoder, v);
    const shoal_source source = {.self = d, .samples = d->judges->count, .fetch = fetch};
    shoal_forward_run(forward, net->weights, &source, out);
    shoal_engine_destroy(forward);
  }
  free(d->other);
  free(d->column_of);
  return status;
}

/* What some networks say together of the dealt rows. */
static shoal_status predict(const chosen_net *nets, uint32_t count, dealt *d, float *sum, float *one,
                            shoal_error *err) {
  size_t values = d->judges->count * d->judges->width;
  double shares = 0;
  memset(sum, 0, values * sizeof *sum);
  for (uint32_t i = 0; i < count; i++) {
    shoal_status status = predict_one(nets[i].net, d, one, err);
    if (status != SHOAL_OK) return status;
    for (size_t v = 0; v < values; v++) sum[v] += (float)nets[i].share * one[v];
    shares += nets[i].share;
  }
  for (size_t v = 0; v < values; v++) sum[v] /= (float)shares;
  return SHOAL_OK;
}

static shoal_status score_of(const shoal_search *s, const judges *j, const float *predicted, double *out,
                             shoal_error *err) {
  shoal_scores scores;
  shoal_status status = SHOAL_OK;
  if (s->brief.target.problem != SHOAL_REGRESSION) {
    status =
        shoal_scores_classes(&scores, predicted, j->label, j->count, j->width, s->brief.target.positive, err);
  } else {
    double *numbers = malloc((j->count + 1) * sizeof *numbers);
    if (numbers == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
    for (uint64_t i = 0; i < j->count; i++) numbers[i] = (double)predicted[i];
    shoal_scores_numbers(&scores, numbers, j->right, j->count);
    free(numbers);
  }
  if (status == SHOAL_OK) *out = scores.of[s->brief.metric];
  return status;
}

/* A shuffle that leaves no row its own cells: each gets those of the next in a random order. */
static void deal_cells(uint64_t *deal, uint64_t *order, uint64_t count, uint64_t seed, uint32_t column) {
  shoal_key key = shoal_key_make(seed, SHOAL_FOR_SEARCH, 3, column);
  for (uint64_t i = 0; i < count; i++) order[i] = i;
  for (uint64_t i = count; i > 1; i--) {
    uint64_t j = shoal_random_below(key, i, i), held = order[i - 1];
    order[i - 1] = order[j];
    order[j] = held;
  }
  for (uint64_t i = 0; i < count; i++) deal[order[i]] = order[(i + 1) % count];
}

/* Columns take a moment more than what is left of the budget, when trials have run to its end; less where
 * somebody waits. */
static double time_for_columns(const shoal_search *s) {
  double seconds = s->options->seconds, now = shoal_clock_seconds();
  if (__atomic_load_n(s->stop, __ATOMIC_RELAXED) != 0) return now + 1;
  if (!(seconds > 0)) return INFINITY;
  return fmax(s->begun + seconds, now) + fmin(10, 0.05 * seconds);
}

/* Why some were not judged. */
static void write_columns_why(uint32_t judged, uint32_t used, bool late, shoal_json *json) {
  char why[200];
  if (judged == used) return;
  if (late)
    snprintf(why, sizeof why,
             "the time ran out after %u of %u columns; with a longer budget all columns are judged", judged,
             used);
  else
    snprintf(why, sizeof why, "of %u columns the first %u are judged: all would take long", used, judged);
  shoal_json_text(json, "columns_why", why);
}

static shoal_status write_columns(const shoal_search *s, const chosen_net *nets, uint32_t nets_count,
                                  const judges *j, shoal_json *json, shoal_error *err) {
  size_t values = (j->count + 1) * j->width;
  float *sum = malloc(values * sizeof *sum), *one = malloc(values * sizeof *one);
  uint64_t *deal = malloc((j->count + 1) * sizeof *deal), *order = malloc((j->count + 1) * sizeof *order);
  dealt d = {.judges = j};
  double before = NAN, after = NAN;
  shoal_status status = sum && one && deal && order ? predict(nets, nets_count, &d, sum, one, err)
                                                    : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (status == SHOAL_OK) status = score_of(s, j, sum, &before, err);
  double sign = shoal_score_higher_is_better(s->brief.metric) ? 1 : -1;
  bool scaled = s->brief.metric == SHOAL_SCORE_RMSE || s->brief.metric == SHOAL_SCORE_MAE;
  shoal_json_open(json, "columns", '[');
  uint32_t judged = 0, used = 0;
  double until = time_for_columns(s);
  bool late = false;
  for (uint32_t c = 0; c < s->brief.profile.columns_count && status == SHOAL_OK; c++) {
    if (!s->brief.profile.columns[c].used) continue;
    used++;
    late = late || (judged >= COLUMNS_JUDGED_LEAST && shoal_clock_seconds() > until);
    if (late || judged == COLUMNS_JUDGED_MAX) continue;
    judged++;
    deal_cells(deal, order, j->count, s->brief.seed, c);
    d.deal = deal;
    d.column = c;
    status = predict(nets, nets_count, &d, sum, one, err);
    if (status == SHOAL_OK) status = score_of(s, j, sum, &after, err);
    shoal_json_open(json, NULL, '{');
    shoal_json_text(json, "column", s->brief.profile.columns[c].name);
    shoal_json_real(json, "importance", sign * (before - after) * (scaled ? s->brief.target.deviation : 1));
    shoal_json_close(json, '}');
  }
  shoal_json_close(json, ']');
  write_columns_why(judged, used, late, json);
  free(sum);
  free(one);
  free(deal);
  free(order);
  return status;
}

/* ---- where the model errs ---- */

static void write_confusion(const shoal_target *target, const judges *j, const double *predicted,
                            shoal_json *json) {
  uint32_t classes = target->classes.count;
  if (classes > CLASSES_SHOWN_MAX) return;
  uint64_t counts[CLASSES_SHOWN_MAX][CLASSES_SHOWN_MAX] = {0};
  for (uint64_t i = 0; i < j->count; i++) {
    uint32_t likeliest = shoal_prediction_class(target, predicted + i * classes);
    if (j->label[i] >= 0) counts[j->label[i]][likeliest]++;
  }
  shoal_json_open(json, "confusion", '{');
  shoal_json_open(json, "classes", '[');
  for (uint32_t c = 0; c < classes; c++) shoal_json_text(json, NULL, shoal_names_at(&target->classes, c));
  shoal_json_close(json, ']');
  shoal_json_open(json, "counts", '['); /* rows: what is right; columns: what was predicted */
  for (uint32_t a = 0; a < classes; a++) {
    shoal_json_open(json, NULL, '[');
    for (uint32_t b = 0; b < classes; b++) shoal_json_int(json, NULL, (int64_t)counts[a][b]);
    shoal_json_close(json, ']');
  }
  shoal_json_close(json, ']');
  shoal_json_close(json, '}');
}

static void write_residuals(const shoal_target *target, const judges *j, const double *predicted,
                            shoal_json *json) {
  uint64_t shown = j->count < RESIDUALS_MAX ? j->count : RESIDUALS_MAX;
  shoal_json_open(json, "residuals", '[');
  for (uint64_t i = 0; i < shown; i++) {
    uint64_t place = i * j->count / shown;
    shoal_json_open(json, NULL, '[');
    shoal_json_real(json, NULL, predicted[place]);
    shoal_json_real(json, NULL, j->right[place] * target->deviation + target->mean);
    shoal_json_close(json, ']');
  }
  shoal_json_close(json, ']');
}

static shoal_status write_errors(const shoal_search *s, const shoal_predictor *p, const shoal_rows *rows,
                                 const shoal_row_list *list, shoal_json *json, shoal_error *err) {
  const shoal_target *target = &s->brief.target;
  judges j;
  shoal_status status = find_judges(&j, target, rows, list, UINT64_MAX, err);
  double *predicted = status == SHOAL_OK ? malloc((j.count + 1) * j.width * sizeof *predicted) : NULL;
  if (status == SHOAL_OK)
    status = predicted ? shoal_predictor_run(p, rows, list, s->options->threads, predicted, err)
                       : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (status == SHOAL_OK && target->problem == SHOAL_REGRESSION)
    write_residuals(target, &j, predicted, json);
  else if (status == SHOAL_OK)
    write_confusion(target, &j, predicted, json);
  free(predicted);
  release(&j);
  return status;
}

/* ---- all of it ---- */

static void write_members(const shoal_predictor *p, shoal_json *json) {
  shoal_json_open(json, "members", '[');
  for (uint32_t i = 0; i < shoal_predictor_members(p); i++) {
    double share = 0;
    uint64_t trial = shoal_predictor_trial(p, i);
    if (i > 0 && trial == shoal_predictor_trial(p, i - 1)) continue; /* its other folds */
    for (uint32_t k = i; k < shoal_predictor_members(p) && shoal_predictor_trial(p, k) == trial; k++) {
      double part;
      shoal_predictor_member(p, k, &part);
      share += part;
    }
    shoal_json_open(json, NULL, '{');
    shoal_json_int(json, "trial", (int64_t)trial);
    shoal_json_real(json, "share", share);
    shoal_json_close(json, '}');
  }
  shoal_json_close(json, ']');
}

static shoal_status write_space(const shoal_search *s, shoal_json *json, shoal_error *err) {
  shoal_text text;
  shoal_json inner;
  shoal_json_begin(&inner, &text);
  shoal_status status =
      shoal_insight_board(&s->brief.space, s->board, s->rules.scheduler.higher_is_better, &inner, NULL, err);
  if (status == SHOAL_OK && text.failed) status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (status == SHOAL_OK) shoal_json_raw(json, NULL, text.bytes + 1, text.length - 2); /* its members */
  shoal_text_release(&text);
  return status;
}

static shoal_status write_all(const shoal_search *s, const shoal_predictor *p, const shoal_search_end *end,
                              const shoal_rows *rows, const shoal_row_list *list, shoal_json *json,
                              shoal_error *err) {
  chosen_net nets[SHOAL_MEMBERS_MAX];
  uint32_t count = shoal_predictor_members(p);
  for (uint32_t i = 0; i < count; i++) nets[i].net = shoal_predictor_member(p, i, &nets[i].share);
  qsort(nets, count, sizeof *nets, by_share);
  judges j = {0};
  shoal_json_open(json, NULL, '{');
  shoal_status status = write_space(s, json, err);
  if (status == SHOAL_OK) status = write_errors(s, p, rows, list, json, err);
  if (status == SHOAL_OK) status = find_judges(&j, &s->brief.target, rows, list, ROWS_MAX, err);
  if (status == SHOAL_OK) status = write_columns(s, nets, count < NETS_MAX ? count : NETS_MAX, &j, json, err);
  write_members(p, json);
  shoal_json_open(json, "scores", '{');
  shoal_json_real(json, "valid", end->valid_score);
  shoal_estimate_write(&end->estimate, json);
  if (end->has_test) {
    shoal_json_open(json, "test", '{');
    shoal_scores_write(&end->test, s->brief.target.problem, json, "");
    shoal_json_close(json, '}');
    shoal_json_int(json, "test_rows", (int64_t)end->test_rows);
  }
  shoal_json_close(json, '}');
  shoal_json_close(json, '}');
  release(&j);
  return status;
}

shoal_status shoal_search_write_insight(const shoal_search *s, const shoal_predictor *p,
                                        const shoal_search_end *end, const shoal_rows *rows,
                                        const shoal_row_list *list, shoal_error *err) {
  shoal_text text, table;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_text_init(&table);
  shoal_status status = write_all(s, p, end, rows, list, &json, err);
  if (status == SHOAL_OK) status = shoal_search_write_file(s, "insight.json", &text, err);
  if (status == SHOAL_OK) {
    shoal_search_table(s, &table);
    status = shoal_search_write_file(s, "trials.csv", &table, err);
  }
  shoal_text_release(&text);
  shoal_text_release(&table);
  return status;
}
