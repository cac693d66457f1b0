/* search_end.c: the end of a search: the best trials together as a model, scored on unseen rows. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "search/estimate.h"
#include "search/search_internal.h"

enum {
  CANDIDATES = SHOAL_CANDIDATES_MAX, /* trials that may become members */
  SELECTIONS = 16,                   /* how often one is taken, so an upper bound on members, too */
};

/* The best trials, loaded, with what they say about the held-out rows. */
typedef struct gathering {
  uint64_t trials[CANDIDATES];
  uint32_t count;
  shoal_trial_net (*nets)[SHOAL_FOLDS_MAX];
  float *predicted[CANDIDATES]; /* fold after fold */
  uint64_t rows;
  uint32_t width; /* values a row: classes, or 1 */
  int32_t *label;
  double *right;
} gathering;

static void release(gathering *g) {
  for (uint32_t i = 0; i < CANDIDATES; i++) free(g->predicted[i]);
  for (uint32_t i = 0; g->nets && i < CANDIDATES; i++)
    for (uint32_t f = 0; f < SHOAL_FOLDS_MAX; f++) shoal_trial_net_release(&g->nets[i][f]);
  free(g->nets);
  free(g->label);
  free(g->right);
}

/* What is right, for the held-out rows of all folds. */
static shoal_status gather_answers(const shoal_search *s, gathering *g, shoal_error *err) {
  const shoal_table_split *split = shoal_bench_split(s->bench);
  const shoal_target *target = &s->brief.target;
  const shoal_rows *rows = shoal_bench_rows(s->bench);
  for (uint32_t f = 0; f < split->folds; f++) g->rows += split->valid[f].count;
  g->width = shoal_target_width(target);
  g->label = malloc(g->rows * sizeof *g->label);
  g->right = malloc(g->rows * sizeof *g->right);
  if (g->label == NULL || g->right == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  uint64_t at = 0;
  for (uint32_t f = 0; f < split->folds; f++)
    for (uint64_t i = 0; i < split->valid[f].count; i++, at++) {
      uint64_t row = split->valid[f].at[i];
      bool number = target->problem == SHOAL_REGRESSION;
      g->label[at] = number ? 0 : shoal_target_label(target, rows, row);
      g->right[at] = number ? (double)shoal_target_value(target, rows, row) : 0;
    }
  return SHOAL_OK;
}

/* One trial, each fold's network on the rows that it has not learned from. */
static shoal_status gather_trial(shoal_search *s, gathering *g, uint32_t i, shoal_error *err) {
  const shoal_table_split *split = shoal_bench_split(s->bench);
  const shoal_board_trial *trial = shoal_board_trial_at(s->board, g->trials[i]);
  shoal_text path;
  shoal_text_init(&path);
  shoal_search_state_path(s, trial->trial, &path);
  uint32_t nets;
  shoal_status status = path.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory")
                                    : shoal_trial_load(s->bench, &trial->values, trial->trial, path.bytes,
                                                       g->nets[i], &nets, err);
  shoal_text_release(&path);
  if (status != SHOAL_OK) return status;
  g->predicted[i] = malloc(g->rows * g->width * sizeof(float));
  if (g->predicted[i] == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  float *at = g->predicted[i];
  for (uint32_t f = 0; f < split->folds && status == SHOAL_OK; f++) {
    status = shoal_trial_net_predict(&g->nets[i][f], shoal_bench_rows(s->bench), &split->valid[f], at, err);
    at += split->valid[f].count * g->width;
  }
  return status;
}

/* States come from workers, too: one that is missing or damaged costs its trial, not the search. */
static bool may_go_without(shoal_status status) {
  return status == SHOAL_NOT_FOUND || status == SHOAL_CORRUPT;
}

static void warn_of_trial(const shoal_search *s, uint64_t trial, const char *why) {
  shoal_text text = {0};
  shoal_text_addf(&text, "trial %" PRIu64 " is left out: %s", trial, why);
  if (s->calls.remark && !text.failed) s->calls.remark(s->calls.self, text.bytes);
  shoal_text_release(&text);
}

static shoal_status gather(shoal_search *s, gathering *g, shoal_error *err) {
  uint64_t best[CANDIDATES];
  uint32_t found = (uint32_t)shoal_board_best(s->board, best, CANDIDATES);
  if (found == 0)
    return shoal_fail(err, SHOAL_NOT_FOUND, "no trial has come to a score; give the search more time");
  g->nets = calloc(CANDIDATES, sizeof *g->nets);
  if (g->nets == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status = gather_answers(s, g, err);
  for (uint32_t i = 0; i < found && status == SHOAL_OK; i++) {
    shoal_error trouble;
    g->trials[g->count] = best[i];
    status = gather_trial(s, g, g->count, &trouble);
    if (status == SHOAL_OK) {
      g->count++;
    } else if (may_go_without(status) && (i + 1 < found || g->count > 0)) {
      warn_of_trial(s, best[i], trouble.text);
      status = SHOAL_OK;
    } else if (err) {
      *err = trouble;
    }
  }
  return status;
}

/* All scores of the members together on the held-out rows, in the target's own units. */
static shoal_status score_members(const shoal_search *s, const gathering *g, const double *share,
                                  shoal_scores *out, shoal_error *err) {
  const shoal_target *target = &s->brief.target;
  size_t values = g->rows * g->width;
  double *sum = calloc(values + 1, sizeof *sum), *right = malloc((g->rows + 1) * sizeof *right);
  float *probability = malloc((values + 1) * sizeof *probability);
  shoal_status status = SHOAL_OK;
  if (sum == NULL || right == NULL || probability == NULL)
    status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  for (uint32_t i = 0; i < g->count && status == SHOAL_OK; i++)
    for (size_t v = 0; v < values && share[i] > 0; v++) sum[v] += share[i] * (double)g->predicted[i][v];
  if (status == SHOAL_OK && target->problem == SHOAL_REGRESSION) {
    for (uint64_t r = 0; r < g->rows; r++) {
      sum[r] = sum[r] * target->deviation + target->mean;
      right[r] = g->right[r] * target->deviation + target->mean;
    }
    shoal_scores_numbers(out, sum, right, g->rows);
  } else if (status == SHOAL_OK) {
    for (size_t v = 0; v < values; v++) probability[v] = (float)sum[v];
    status = shoal_scores_classes(out, probability, g->label, g->rows, g->width, target->positive, err);
  }
  free(sum);
  free(right);
  free(probability);
  return status;
}

static shoal_status build(shoal_search *s, gathering *g, const double *share, shoal_predictor **out,
                          shoal_search_end *end, shoal_error *err) {
  uint32_t folds = shoal_bench_split(s->bench)->folds;
  shoal_status status =
      shoal_predictor_create(out, &s->brief.profile, &s->brief.target, s->brief.metric, err);
  for (uint32_t i = 0; i < g->count; i++) {
    if (!(share[i] > 0)) continue;
    end->members++;
    for (uint32_t f = 0; f < folds && status == SHOAL_OK; f++)
      status = shoal_predictor_add(*out, &g->nets[i][f], share[i] / folds, g->trials[i], err);
  }
  shoal_scores scores;
  shoal_scores_none(&scores);
  if (status == SHOAL_OK) status = score_members(s, g, share, &scores, err);
  if (status == SHOAL_OK) shoal_predictor_set_valid(*out, &scores);
  if (status == SHOAL_OK) shoal_predictor_set_estimate(*out, &end->estimate);
  return status;
}

/* The rows that the end is judged by: a file's (*opened is the caller's to close), the test part, or where
 * there is none the first fold's held-out rows, which have no say in the end's scores. */
static shoal_status open_judges(const shoal_search *s, shoal_rows **opened, const shoal_rows **rows,
                                const shoal_row_list **list, shoal_error *err) {
  const shoal_table_split *split = shoal_bench_split(s->bench);
  *rows = shoal_bench_rows(s->bench);
  *list = split->test.count > 0 ? &split->test : &split->valid[0];
  if (s->test == NULL) return SHOAL_OK;
  shoal_rows_options options = {.path = s->test,
                                .profile = &s->brief.profile,
                                .dialect = s->options->dialect,
                                .target = s->brief.target.column,
                                .stop = s->stop};
  shoal_status status = shoal_rows_open(opened, &options, err);
  *rows = *opened;
  *list = NULL;
  return status;
}

static shoal_status score_test(const shoal_search *s, shoal_predictor *predictor, const shoal_rows *rows,
                               const shoal_row_list *list, shoal_search_end *end, shoal_error *err) {
  if (s->test == NULL && shoal_bench_split(s->bench)->test.count == 0) return SHOAL_OK;
  shoal_answers answers;
  shoal_target_count(&s->brief.target, rows, list, &answers);
  end->has_test = true;
  end->test_rows = answers.known;
  shoal_status status = shoal_predictor_scores(predictor, rows, list, s->options->threads, &end->test, err);
  if (status == SHOAL_OK) shoal_predictor_set_test(predictor, &end->test, end->test_rows);
  return status;
}

/* A model that took hours is not lost to a full disk: it waits for room, as long as nobody stops it. */
static shoal_status save_patiently(const shoal_search *s, shoal_predictor *predictor, const char *out,
                                   shoal_error *err) {
  shoal_status status = shoal_predictor_save(predictor, out, err);
  if (status != SHOAL_FULL) return status;
  shoal_text text;
  shoal_text_init(&text);
  shoal_text_addf(&text, "%s; waiting until there is room", err->text);
  if (s->calls.remark && !text.failed) s->calls.remark(s->calls.self, text.bytes);
  shoal_text_release(&text);
  while (status == SHOAL_FULL && shoal_room_wait(out, 0, s->stop))
    status = shoal_predictor_save(predictor, out, err);
  return status;
}

/* The model holds its test scores. Where they cannot be had it is saved all the same, and then it fails. */
static shoal_status save_judged(const shoal_search *s, shoal_predictor *predictor, const char *out,
                                shoal_search_end *end, shoal_error *err) {
  shoal_rows *opened = NULL;
  const shoal_rows *rows;
  const shoal_row_list *list;
  shoal_status status = open_judges(s, &opened, &rows, &list, err);
  if (status == SHOAL_OK) status = score_test(s, predictor, rows, list, end, err);
  shoal_error trouble;
  shoal_status saved = save_patiently(s, predictor, out, &trouble);
  if (status == SHOAL_OK && saved != SHOAL_OK) {
    status = saved;
    if (err) *err = trouble;
  }
  if (status == SHOAL_OK) status = shoal_search_write_insight(s, predictor, end, rows, list, err);
  shoal_rows_close(opened);
  return status;
}

/* Which of the candidates become the model, and what it is worth. */
static shoal_status choose(const shoal_search *s, const gathering *g, double *share, shoal_search_end *end,
                           shoal_error *err) {
  const shoal_brief *brief = &s->brief;
  shoal_candidates candidates = {.count = g->count,
                                 .rows = g->rows,
                                 .classes = brief->target.problem == SHOAL_REGRESSION ? 0 : g->width,
                                 .positive = brief->target.positive,
                                 .predicted = (const float *const *)g->predicted,
                                 .label = g->label,
                                 .right = g->right};
  shoal_status status =
      shoal_ensemble_choose(&candidates, brief->metric, SELECTIONS, share, &end->valid_score, err);
  if (brief->metric == SHOAL_SCORE_RMSE || brief->metric == SHOAL_SCORE_MAE)
    end->valid_score *= brief->target.deviation; /* candidates are compared in units of it */
  if (status != SHOAL_OK) return status;
  return shoal_estimate_make(&end->estimate, s->board, shoal_bench_split(s->bench), &brief->target,
                             brief->metric, &candidates, share, SELECTIONS, err);
}

shoal_status shoal_search_finish(shoal_search *s, const char *out, shoal_search_end *end, shoal_error *err) {
  *end = (shoal_search_end){.estimate = {NAN, NAN}};
  gathering g = {0};
  double share[CANDIDATES] = {0};
  shoal_predictor *predictor = NULL;
  shoal_status status = s->status;
  if (status != SHOAL_OK && err) *err = s->failure;
  if (status == SHOAL_OK) status = gather(s, &g, err);
  if (status == SHOAL_OK) status = choose(s, &g, share, end, err);
  if (status == SHOAL_OK) status = build(s, &g, share, &predictor, end, err);
  if (status == SHOAL_OK) status = save_judged(s, predictor, out, end, err);
  shoal_predictor_destroy(predictor);
  release(&g);
  return status;
}

/* ---- the table of trials ---- */

static void add_cell(shoal_text *out, double value) {
  if (isfinite(value))
    shoal_text_addf(out, ",%.9g", value);
  else
    shoal_text_add(out, ",", 1);
}

static void add_values(const shoal_search *s, const shoal_board_trial *trial, shoal_text *out) {
  const shoal_space *space = &s->brief.space;
  for (uint32_t id = 0; id < SHOAL_SETTINGS; id++) {
    const shoal_setting *setting = &space->settings[id];
    double value = trial->values.of[id];
    if (!shoal_values_matter(space, &trial->values, (shoal_setting_id)id))
      shoal_text_add(out, ",", 1);
    else if (id == SHOAL_SET_TOPOLOGY)
      shoal_text_addf(out, ",\"%s\"", space->topologies[(uint32_t)value]);
    else if (setting->is_choice)
      shoal_text_addf(out, ",%s", setting->choices[(uint32_t)value]);
    else
      add_cell(out, value);
  }
}

void shoal_search_table(const shoal_search *s, shoal_text *out) {
  shoal_text_addf(out, "trial,state,score,epochs,best_epoch,weights,seconds");
  for (uint32_t k = 0; k < SHOAL_SCORES; k++)
    if (shoal_score_fits((shoal_score_kind)k, s->brief.target.problem))
      shoal_text_addf(out, ",%s", shoal_score_name((shoal_score_kind)k));
  for (uint32_t id = 0; id < SHOAL_SETTINGS; id++)
    shoal_text_addf(out, ",%s", s->brief.space.settings[id].name);
  shoal_text_add(out, "\n", 1);
  for (uint64_t t = 1; t <= shoal_board_trials(s->board); t++) {
    const shoal_board_trial *trial = shoal_board_trial_at(s->board, t);
    const shoal_trial_result *result = trial->result;
    shoal_text_addf(out, "%" PRIu64 ",%s", t, shoal_trial_state_name(trial->state));
    add_cell(out, result && !result->failed ? result->score : NAN);
    add_cell(out, result ? result->epochs : NAN);
    add_cell(out, result ? result->best_epoch : NAN);
    add_cell(out, result ? (double)result->weights : NAN);
    add_cell(out, trial->seconds);
    for (uint32_t k = 0; k < SHOAL_SCORES; k++)
      if (shoal_score_fits((shoal_score_kind)k, s->brief.target.problem))
        add_cell(out, result ? result->scores.of[k] : NAN);
    add_values(s, trial, out);
    shoal_text_add(out, "\n", 1);
  }
}
