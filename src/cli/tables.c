/* tables.c: see tables.h. */
#include "cli/tables.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/human.h"
#include "cli/classes.h"
#include "cli/cli.h"
#include "search/predictor.h"
#include "search/remarks.h"

static void say(void *command, const char *text) { shoal_cli_warn(command, "%s", text); }

static shoal_listener listener_of(const char *command) {
  return (shoal_listener){.self = (void *)command, .say = say};
}

static const char *target_name(const shoal_predictor *predictor) {
  return shoal_predictor_profile(predictor)->columns[shoal_predictor_target(predictor)->column].name;
}

static shoal_status open_rows(const shoal_tables_options *o, const char *command,
                              const shoal_predictor *predictor, bool unlabeled, shoal_rows **rows,
                              shoal_error *err) {
  shoal_rows_options options = {.path = o->rows,
                                .profile = shoal_predictor_profile(predictor),
                                .target = shoal_predictor_target(predictor)->column,
                                .unlabeled = unlabeled,
                                .other_classes = true};
  shoal_status status = shoal_rows_open(rows, &options, err);
  if (status != SHOAL_OK) return status;
  shoal_listener to = listener_of(command);
  shoal_remark_file(*rows, options.profile, o->rows, &to);
  return SHOAL_OK;
}

/* ---- scores ---- */

void shoal_tables_score_name(shoal_score_kind kind, const shoal_target *target, shoal_text *out) {
  shoal_text_addf(out, "%s", shoal_score_name(kind));
  if (kind != SHOAL_SCORE_F1 || target->problem != SHOAL_BINARY) return;
  const char *name = shoal_names_at(&target->classes, target->positive);
  char shown[41];
  shoal_text_plain(shown, sizeof shown, name, strlen(name));
  shoal_text_addf(out, " of '%s'", shown);
}

void shoal_tables_scores_text(const shoal_scores *scores, const shoal_target *target, shoal_text *out) {
  for (uint32_t k = 0; k < SHOAL_SCORES; k++) {
    if (!isfinite(scores->of[k])) continue;
    shoal_tables_score_name((shoal_score_kind)k, target, out);
    shoal_text_addf(out, " %s  ", shoal_human_number(scores->of[k]).text);
  }
}

void shoal_tables_estimate_text(const shoal_estimate *estimate, shoal_score_kind metric, double valid,
                                const shoal_target *target, shoal_text *out) {
  bool known = isfinite(estimate->score);
  shoal_human chosen = shoal_human_number(valid), expected = shoal_human_number(estimate->score);
  shoal_text_addf(out, known ? "estimate  " : "chosen by ");
  shoal_tables_score_name(metric, target, out);
  if (known) {
    shoal_text_addf(out, " %s", expected.text);
    if (isfinite(estimate->error)) shoal_text_addf(out, " +- %s", shoal_human_number(estimate->error).text);
    bool optimistic =
        shoal_score_better(metric, valid, estimate->score) && strcmp(chosen.text, expected.text);
    shoal_text_addf(out, " expected on new rows (%s on the validation rows%s)", chosen.text,
                    optimistic ? ", which is too optimistic" : "");
  } else {
    shoal_text_addf(out, " %s on the validation rows, which is too optimistic", chosen.text);
  }
}

void shoal_tables_positive_json(const shoal_target *target, shoal_json *json) {
  if (target->problem == SHOAL_BINARY)
    shoal_json_text(json, "positive", shoal_names_at(&target->classes, target->positive));
}

/* ---- eval ---- */

typedef struct evaluation {
  const shoal_predictor *predictor;
  const shoal_rows *table;
  shoal_confusion confusion; /* of classes */
  shoal_scores scores;
  shoal_answers answers;
  uint64_t rows, ragged;
  double seconds;
} evaluation;

static const char *class_name(const void *self, uint32_t index) {
  return shoal_names_at(&shoal_predictor_target(((const evaluation *)self)->predictor)->classes, index);
}

static uint64_t line_of(const void *self, uint64_t row) {
  return shoal_rows_line(((const evaluation *)self)->table, row);
}

static void show_line(const void *self, uint64_t row, shoal_json *json) {
  shoal_json_int(json, "line", (int64_t)line_of(self, row));
}

static void print_json(const evaluation *e) {
  shoal_text line;
  shoal_json json;
  const shoal_confusion_words words = {.self = e, .name = class_name, .show = show_line};
  shoal_cli_event_begin(&json, &line, NULL);
  shoal_scores_write(&e->scores, shoal_predictor_target(e->predictor)->problem, &json, "");
  shoal_tables_positive_json(shoal_predictor_target(e->predictor), &json);
  shoal_json_int(&json, "samples", (int64_t)e->answers.known);
  shoal_json_int(&json, "rows", (int64_t)(e->rows + e->ragged));
  shoal_json_int(&json, "no_answer", (int64_t)e->answers.missing);
  shoal_json_int(&json, "unknown_class", (int64_t)e->answers.other);
  shoal_json_int(&json, "ragged", (int64_t)e->ragged);
  shoal_json_real(&json, "seconds", e->seconds);
  if (e->confusion.classes > 0) shoal_confusion_write(&e->confusion, &words, &json);
  shoal_cli_event_end(&json);
}

static void print_scores(const evaluation *e) {
  shoal_text line;
  shoal_text_init(&line);
  shoal_tables_scores_text(&e->scores, shoal_predictor_target(e->predictor), &line);
  shoal_text_addf(&line, "on %s row%s in %s", shoal_human_count(e->answers.known).text,
                  e->answers.known == 1 ? "" : "s", shoal_human_seconds(e->seconds).text);
  if (e->answers.known < e->rows + e->ragged)
    shoal_text_addf(&line, "; %s not scored", shoal_human_count(e->rows + e->ragged - e->answers.known).text);
  shoal_cli_print_line(&line);
  const shoal_confusion_words words = {.self = e, .name = class_name};
  const shoal_classes_view view = {
      .unit = "rows", .place = "line", .number = line_of, .width = shoal_terminal_of(stdout).width};
  if (e->confusion.classes > 0) shoal_classes_text(&line, &e->confusion, &words, &view);
  if (!line.failed && line.length > 0) fwrite(line.bytes, 1, line.length, stdout);
  shoal_text_release(&line);
}

/* Class by class, of the rows that have an answer. */
static shoal_status confuse(evaluation *e, const double *predicted, shoal_error *err) {
  const shoal_target *target = shoal_predictor_target(e->predictor);
  uint32_t classes = target->classes.count;
  if (target->problem == SHOAL_REGRESSION) return SHOAL_OK;
  shoal_status status = shoal_confusion_init(&e->confusion, classes, false, err);
  for (uint64_t row = 0; row < e->rows && status == SHOAL_OK; row++) {
    int32_t label = shoal_target_label(target, e->table, row);
    const double *values = predicted + row * classes;
    uint32_t guess = shoal_prediction_class(target, values);
    if (label >= 0)
      shoal_confusion_add(&e->confusion, &(shoal_confusion_sample){row, (uint32_t)label, guess, values[guess],
                                                                   values[label]});
  }
  if (status == SHOAL_OK) shoal_confusion_finish(&e->confusion);
  return status;
}

static shoal_status score(const shoal_tables_options *o, const shoal_rows *rows, evaluation *e,
                          shoal_error *err) {
  const shoal_target *target = shoal_predictor_target(e->predictor);
  shoal_listener to = listener_of("eval");
  uint64_t line;
  e->rows = shoal_rows_count(rows);
  e->ragged = shoal_rows_ragged(rows, &line);
  shoal_target_count(target, rows, NULL, &e->answers);
  if (shoal_rows_is_own(rows))
    shoal_cli_warn("eval", "%s is the table that the model was made from: scores on it are too optimistic",
                   o->rows);
  shoal_remark_answers(&e->answers, o->rows, target_name(e->predictor), "not scored", &to);
  if (e->answers.known == 0)
    return shoal_fail(err, SHOAL_INVALID, "%s: no row has an answer in '%.60s' to compare predictions with",
                      o->rows, target_name(e->predictor));
  e->table = rows;
  double *predicted = malloc((e->rows * shoal_target_width(target) + 1) * sizeof *predicted);
  if (predicted == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status = shoal_predictor_run(e->predictor, rows, NULL, o->threads, predicted, err);
  if (status == SHOAL_OK)
    status = shoal_predictor_judge(e->predictor, rows, NULL, predicted, &e->scores, err);
  if (status == SHOAL_OK) status = confuse(e, predicted, err);
  free(predicted);
  return status;
}

shoal_status shoal_tables_eval(const shoal_tables_options *o, shoal_error *err) {
  shoal_predictor *predictor = NULL;
  shoal_rows *rows = NULL;
  double start = shoal_clock_seconds();
  evaluation e = {0};
  shoal_status status = shoal_predictor_load(&predictor, o->model, err);
  if (status == SHOAL_OK) status = open_rows(o, "eval", predictor, false, &rows, err);
  e.predictor = predictor;
  if (status == SHOAL_OK) status = score(o, rows, &e, err);
  e.seconds = shoal_clock_seconds() - start;
  if (status == SHOAL_OK && o->json) print_json(&e);
  if (status == SHOAL_OK && !o->json) print_scores(&e);
  shoal_confusion_release(&e.confusion);
  shoal_rows_close(rows);
  shoal_predictor_destroy(predictor);
  return status;
}

/* ---- predict ---- */

/* A cell, in quotes where it needs them. */
static void add_cell(shoal_text *line, const char *text) {
  if (strpbrk(text, ",\"\r\n") == NULL) {
    shoal_text_add(line, text, strlen(text));
    return;
  }
  shoal_text_add(line, "\"", 1);
  for (; *text; text++) shoal_text_add(line, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
  shoal_text_add(line, "\"", 1);
}

static void add_header(const shoal_target *target, const char *name, shoal_text *line) {
  add_cell(line, name);
  for (uint32_t c = 0; target->problem != SHOAL_REGRESSION && c < target->classes.count; c++) {
    shoal_text cell;
    shoal_text_init(&cell);
    shoal_text_addf(&cell, "p(%s)", shoal_names_at(&target->classes, c));
    shoal_text_add(line, ",", 1);
    if (!cell.failed) add_cell(line, cell.bytes);
    shoal_text_release(&cell);
  }
}

static void add_row(const shoal_target *target, const double *values, shoal_text *line) {
  if (target->problem == SHOAL_REGRESSION) {
    shoal_text_addf(line, "%.9g", values[0]);
    return;
  }
  add_cell(line, shoal_names_at(&target->classes, shoal_prediction_class(target, values)));
  for (uint32_t c = 0; c < target->classes.count; c++) shoal_text_addf(line, ",%.6f", values[c]);
}

static void add_json(const shoal_target *target, const double *values, uint64_t row, shoal_text *line) {
  shoal_json json;
  shoal_json_init(&json, line);
  shoal_json_open(&json, NULL, '{');
  shoal_json_int(&json, "row", (int64_t)row);
  shoal_prediction_write(target, values, &json);
  shoal_json_close(&json, '}');
}

static void emit(shoal_writer *file, shoal_text *line) {
  shoal_text_add(line, "\n", 1);
  if (!line->failed && file)
    shoal_writer_add(file, line->bytes, line->length);
  else if (!line->failed)
    fwrite(line->bytes, 1, line->length, stdout);
  shoal_text_clear(line);
}

static void emit_all(const shoal_tables_options *o, const shoal_predictor *predictor, const double *values,
                     uint64_t rows, shoal_writer *file) {
  const shoal_target *target = shoal_predictor_target(predictor);
  size_t width = shoal_target_width(target);
  shoal_text line;
  shoal_text_init(&line);
  if (!o->json) {
    add_header(target, shoal_predictor_profile(predictor)->columns[target->column].name, &line);
    emit(file, &line);
  }
  for (uint64_t r = 0; r < rows; r++) {
    if (o->json)
      add_json(target, values + r * width, r, &line);
    else
      add_row(target, values + r * width, &line);
    emit(file, &line);
  }
  shoal_text_release(&line);
}

/* Everything is predicted before anything is written. */
static shoal_status predict(const shoal_tables_options *o, const shoal_predictor *predictor,
                            const shoal_rows *rows, shoal_writer *file, shoal_error *err) {
  const shoal_target *target = shoal_predictor_target(predictor);
  size_t width = shoal_target_width(target);
  uint64_t bytes, count = shoal_rows_count(rows) < o->count ? shoal_rows_count(rows) : o->count;
  double *values = NULL;
  if (!shoal_mul_u64(count + 1, width * sizeof *values, &bytes) || (values = malloc(bytes)) == NULL)
    return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for %llu rows", (unsigned long long)count);
  shoal_row_list list = {.at = malloc((count + 1) * sizeof *list.at), .count = count};
  for (uint64_t r = 0; list.at && r < count; r++) list.at[r] = r;
  shoal_status status = list.at ? shoal_predictor_run(predictor, rows, &list, o->threads, values, err)
                                : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (status == SHOAL_OK) emit_all(o, predictor, values, count, file);
  free(list.at);
  free(values);
  return status;
}

shoal_status shoal_tables_predict(const shoal_tables_options *o, shoal_error *err) {
  shoal_predictor *predictor = NULL;
  shoal_rows *rows = NULL;
  shoal_writer *file = NULL;
  shoal_status status = shoal_cli_spare_inputs(o->output, (const char *const[]){o->rows, o->model}, 2, err);
  if (status == SHOAL_OK) status = shoal_predictor_load(&predictor, o->model, err);
  if (status == SHOAL_OK) status = open_rows(o, "predict", predictor, true, &rows, err);
  if (status == SHOAL_OK && o->output) status = shoal_writer_create(&file, o->output, err);
  if (status == SHOAL_OK) status = predict(o, predictor, rows, file, err);
  if (status == SHOAL_OK && file) {
    status = shoal_writer_commit(file, err);
    file = NULL;
  }
  shoal_writer_abandon(file);
  shoal_rows_close(rows);
  shoal_predictor_destroy(predictor);
  return status;
}
