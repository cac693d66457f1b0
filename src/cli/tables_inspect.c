/* tables_inspect.c: what a model of a search is; see tables.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/human.h"
#include "cli/cli.h"
#include "cli/tables.h"
#include "cli/tables_columns.h"
#include "search/predictor.h"

enum { CLASSES_SHOWN = 10, NAME_BYTES = 61 };

/* The networks of one trial, one for each fold. */
typedef struct group {
  uint64_t trial, weights; /* of one network */
  uint32_t first, networks;
  double share; /* of all of them */
} group;

static uint32_t find_groups(const shoal_predictor *p, group *out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < shoal_predictor_members(p); i++) {
    double share;
    const shoal_trial_net *net = shoal_predictor_member(p, i, &share);
    uint64_t trial = shoal_predictor_trial(p, i);
    if (count == 0 || out[count - 1].trial != trial)
      out[count++] = (group){.trial = trial, .weights = net->graph->trainable, .first = i};
    out[count - 1].networks++;
    out[count - 1].share += share;
  }
  return count;
}

/* The layers of a network in one line: "dense 64 relu, dropout 0.1, dense 2". */
static void add_layers(const shoal_predictor *p, uint32_t member, shoal_text *out) {
  const shoal_trial_net *net = shoal_predictor_member(p, member, NULL);
  shoal_text text = {0};
  shoal_model_write(net->model, &text);
  const char *at = text.failed ? "" : text.bytes;
  for (uint32_t l = 0; l < net->model->layers_count && *at; l++) {
    size_t length = strcspn(at, "\n");
    char shown[128];
    shoal_text_plain(shown, sizeof shown, at, length);
    if (l > 0) shoal_text_addf(out, "%s%s", l > 1 ? ", " : "", shown);
    at += length + (at[length] == '\n');
  }
  shoal_text_release(&text);
}

/* ---- as JSON ---- */

static void print_json(const shoal_tables_options *o, const shoal_predictor *p, const group *groups,
                       uint32_t count) {
  const shoal_profile *profile = shoal_predictor_profile(p);
  const shoal_target *target = shoal_predictor_target(p);
  shoal_text line, layers = {0};
  shoal_json json;
  shoal_cli_event_begin(&json, &line, NULL);
  shoal_json_text(&json, "model", o->model);
  shoal_json_text(&json, "made_by", "search");
  shoal_json_text(&json, "table", profile->file);
  shoal_json_int(&json, "rows", (int64_t)profile->rows);
  shoal_json_text(&json, "target", profile->columns[target->column].name);
  shoal_json_text(&json, "problem", shoal_problem_name(target->problem));
  if (target->problem != SHOAL_REGRESSION) shoal_names_write(&target->classes, &json, "classes");
  shoal_json_text(&json, "metric", shoal_score_name(shoal_predictor_metric(p)));
  shoal_json_open(&json, "scores", '{');
  shoal_scores_write(shoal_predictor_valid(p), target->problem, &json, "");
  shoal_json_close(&json, '}');
  shoal_estimate_write(shoal_predictor_estimate(p), &json);
  uint64_t test_rows;
  const shoal_scores *test = shoal_predictor_test(p, &test_rows);
  if (test_rows > 0) {
    shoal_json_open(&json, "test_scores", '{');
    shoal_scores_write(test, target->problem, &json, "");
    shoal_json_close(&json, '}');
    shoal_json_int(&json, "test_rows", (int64_t)test_rows);
  }
  shoal_tables_positive_json(target, &json);
  shoal_tables_columns_json(profile, target->column, &json, "columns");
  shoal_json_open(&json, "members", '[');
  for (uint32_t i = 0; i < count; i++) {
    shoal_text_clear(&layers);
    add_layers(p, groups[i].first, &layers);
    shoal_json_open(&json, NULL, '{');
    shoal_json_int(&json, "trial", (int64_t)groups[i].trial);
    shoal_json_real(&json, "share", groups[i].share);
    shoal_json_int(&json, "networks", groups[i].networks);
    shoal_json_int(&json, "weights", (int64_t)groups[i].weights);
    shoal_json_text(&json, "layers", layers.bytes ? layers.bytes : "");
    shoal_json_close(&json, '}');
  }
  shoal_json_close(&json, ']');
  shoal_text_release(&layers);
  shoal_cli_event_end(&json);
}

/* ---- as text ---- */

static void add_name(const char *name, shoal_text *out) {
  char shown[NAME_BYTES];
  shoal_text_plain(shown, sizeof shown, name, strlen(name));
  shoal_text_addf(out, "%s", shown);
}

static void print_target(const shoal_predictor *p, shoal_text *line) {
  const shoal_profile *profile = shoal_predictor_profile(p);
  const shoal_target *target = shoal_predictor_target(p);
  shoal_text_addf(line, "%-9s ", "target");
  add_name(profile->columns[target->column].name, line);
  if (target->problem == SHOAL_REGRESSION) {
    shoal_text_addf(line, ", a number");
  } else {
    shoal_text_addf(line, ", %u classes: ", target->classes.count);
    for (uint32_t c = 0; c < target->classes.count && c < CLASSES_SHOWN; c++) {
      if (c > 0) shoal_text_addf(line, ", ");
      add_name(shoal_names_at(&target->classes, c), line);
    }
    if (target->classes.count > CLASSES_SHOWN) shoal_text_addf(line, ", ...");
  }
  shoal_cli_print_line(line);
  shoal_text_addf(line, "%-9s ", "made from");
  add_name(profile->file, line);
  shoal_text_addf(line, ", %s row%s", shoal_human_count(profile->rows).text, profile->rows == 1 ? "" : "s");
  shoal_cli_print_line(line);
}

/* On the rows that its networks were chosen by, and on those that nothing else has seen. */
static void print_scores(const shoal_predictor *p, shoal_text *line) {
  const shoal_scores *scores = shoal_predictor_valid(p);
  const shoal_target *target = shoal_predictor_target(p);
  uint64_t test_rows;
  const shoal_scores *test = shoal_predictor_test(p, &test_rows);
  shoal_text_addf(line, "%-9s ", "scores");
  size_t before = line->length;
  shoal_tables_scores_text(scores, target, line);
  if (line->length > before)
    shoal_text_addf(line, "on the rows that its networks were chosen by");
  else
    shoal_text_addf(line, "not recorded; chosen for %s", shoal_score_name(shoal_predictor_metric(p)));
  shoal_cli_print_line(line);
  const shoal_estimate *estimate = shoal_predictor_estimate(p);
  shoal_score_kind metric = shoal_predictor_metric(p);
  if (isfinite(estimate->score)) {
    shoal_tables_estimate_text(estimate, metric, scores->of[metric], target, line);
    shoal_cli_print_line(line);
  }
  if (test_rows == 0) return;
  shoal_text_addf(line, "%-9s ", "test");
  shoal_tables_scores_text(test, target, line);
  shoal_text_addf(line, "on %s row%s that nothing else saw", shoal_human_count(test_rows).text,
                  test_rows == 1 ? "" : "s");
  shoal_cli_print_line(line);
}

static void print_text(const shoal_tables_options *o, const shoal_predictor *p, const group *groups,
                       uint32_t count) {
  const shoal_profile *profile = shoal_predictor_profile(p);
  uint32_t used = 0, networks = shoal_predictor_members(p);
  shoal_text line;
  shoal_text_init(&line);
  add_name(o->model, &line);
  shoal_text_addf(&line, ": a model of 'shoal search', which takes raw rows of a table");
  shoal_cli_print_line(&line);
  print_target(p, &line);
  print_scores(p, &line);
  for (uint32_t c = 0; c < profile->columns_count; c++) used += profile->columns[c].used;
  shoal_text_addf(&line, "%-9s %s, of which %s %s learned from\n", "columns",
                  shoal_human_count(profile->columns_count).text, shoal_human_count(used).text,
                  used == 1 ? "is" : "are");
  shoal_tables_columns_text(profile, shoal_predictor_target(p)->column, &line);
  shoal_text_addf(&line, "%-9s %u, from %u trial%s", "networks", networks, count, count == 1 ? "" : "s");
  shoal_cli_print_line(&line);
  for (uint32_t i = 0; i < count; i++) {
    shoal_text_addf(&line, "  trial %llu, share %.3g, ", (unsigned long long)groups[i].trial,
                    groups[i].share);
    if (groups[i].networks > 1) shoal_text_addf(&line, "%u times ", groups[i].networks);
    shoal_text_addf(&line, "%s weights: ", shoal_human_count(groups[i].weights).text);
    add_layers(p, groups[i].first, &line);
    shoal_cli_print_line(&line);
  }
  shoal_text_addf(&line, "%-9s shoal predict ", "use");
  shoal_human_quote(&line, o->model);
  shoal_text_addf(&line, " --input ROWS.csv\n%-9s shoal eval ", "");
  shoal_human_quote(&line, o->model);
  shoal_text_addf(&line, " --data ROWS-WITH-ANSWERS.csv");
  shoal_cli_print_line(&line);
  shoal_text_release(&line);
}

shoal_status shoal_tables_inspect(const shoal_tables_options *o, shoal_error *err) {
  shoal_predictor *predictor;
  shoal_status status = shoal_predictor_load(&predictor, o->model, err);
  if (status != SHOAL_OK) return status;
  group *groups = calloc(shoal_predictor_members(predictor) + 1, sizeof *groups);
  if (groups == NULL) {
    status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  } else {
    uint32_t count = find_groups(predictor, groups);
    if (o->json)
      print_json(o, predictor, groups, count);
    else
      print_text(o, predictor, groups, count);
  }
  free(groups);
  shoal_predictor_destroy(predictor);
  return status;
}
