/* search.c: shoal search: from a CSV file to the best network. */
#include "search/search.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/human.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/search_log.h"
#include "cli/search_said.h"
#include "cli/stop.h"
#include "cli/tables.h"
#include "cli/tables_columns.h"
#include "train/training.h"

static const char *const problems[] = {"regression", "classes", NULL};
static const char *const schedulers[] = {"grid", "random", "halving", "model", NULL};
static const double usual_budget_s = 600;
static const uint64_t usual_seed = 1, no_seed = UINT64_MAX; /* no_seed: none was said */

typedef struct search_command {
  const char *path, *target, *test, *budget, *space, *metric, *problem, *scheduler, *time_column, *columns,
      *dialect, *out, *trials_out, *log_dir;
  uint64_t trials, seed, folds, epochs, threads;
  double valid_share, test_share;
  bool resume, json;
  shoal_text folder;
  shoal_text kinds;        /* the columns' kinds, to be shown where the search cannot begin */
  shoal_text remarks_text; /* with --json: what was remarked since the last event that tells it */
  shoal_json remarks;
  shoal_problem problem_said;
  shoal_score_kind metric_said;
  shoal_column_said said[SHOAL_COLUMNS_SAID_MAX];
  char *said_words; /* what the names in it point at */
  uint8_t *space_text;
  shoal_search_options options;
  shoal_progress progress;
  shoal_search *search;  /* or NULL while it is opened */
  shoal_search_log *log; /* or NULL */
  uint64_t units_before; /* that were finished before this command */
} search_command;

/* ---- the command line ---- */

static shoal_status read_columns(search_command *c, shoal_error *err) {
  if (c->columns == NULL) return SHOAL_OK;
  c->said_words = strdup(c->columns);
  if (c->said_words == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  c->options.columns = c->said;
  return shoal_search_said_columns(c->said_words, c->said, &c->options.columns_count, err);
}

static shoal_status read_words(search_command *c, shoal_error *err) {
  shoal_search_options *o = &c->options;
  if (c->budget && shoal_options_read_time("--budget", c->budget, &o->seconds, err) != SHOAL_OK)
    return SHOAL_INVALID;
  if (c->metric && !shoal_score_parse(c->metric, &c->metric_said))
    return shoal_fail(
        err, SHOAL_INVALID,
        "--metric: '%s' is not known; there are accuracy, balanced-accuracy, f1, auc, log-loss, rmse, "
        "mae and r2",
        c->metric);
  if (c->metric) o->metric = &c->metric_said;
  if (c->problem) {
    c->problem_said = strcmp(c->problem, "regression") == 0 ? SHOAL_REGRESSION : SHOAL_MULTICLASS;
    o->problem = &c->problem_said;
  }
  if (c->scheduler) shoal_scheduler_parse(c->scheduler, &o->scheduler);
  size_t length;
  shoal_status status = read_columns(c, err);
  if (status == SHOAL_OK && c->space)
    status = shoal_file_read(c->space, SHOAL_MODEL_BYTES_MAX, false, &c->space_text, &length, err);
  if (status == SHOAL_OK && c->dialect) status = shoal_dialect_say(&o->dialect, "--dialect", c->dialect, err);
  return status;
}

/* What comes out must not take the place of what went in, nor of a folder. */
static shoal_status check_places(const search_command *c, shoal_error *err) {
  const char *const in[] = {c->path, c->test, c->space}, *const out[] = {c->out, c->trials_out};
  for (size_t o = 0; o < sizeof out / sizeof out[0]; o++) {
    shoal_status status = shoal_cli_spare_inputs(out[o], in, sizeof in / sizeof in[0], err);
    if (status != SHOAL_OK) return status;
    size_t length = out[o] ? strlen(out[o]) : 1;
    if (length == 0) return shoal_fail(err, SHOAL_INVALID, "a file to write needs a name");
    if (out[o] && (out[o][length - 1] == '/' || shoal_folder_exists(out[o])))
      return shoal_fail(err, SHOAL_INVALID, "%s: is a folder; give the name of a file in it", out[o]);
  }
  return SHOAL_OK;
}

static shoal_status settle(search_command *c, shoal_error *err) {
  if (!c->resume && c->target == NULL)
    return shoal_fail(err, SHOAL_INVALID, "--target is missing: the column to predict");
  shoal_status status = check_places(c, err);
  if (status == SHOAL_OK) status = read_words(c, err);
  if (status != SHOAL_OK) return status;
  shoal_search_options *o = &c->options;
  if (c->budget == NULL && c->trials == 0) o->seconds = usual_budget_s;
  size_t stem = strlen(c->out);
  static const char ending[] = ".safetensors";
  if (stem > strlen(ending) && strcmp(c->out + stem - strlen(ending), ending) == 0) stem -= strlen(ending);
  shoal_text_addf(&c->folder, "%.*s.search", (int)stem, c->out);
  if (c->folder.failed) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  o->path = c->path;
  o->test = c->test;
  o->target = c->target;
  o->space = (const char *)c->space_text;
  o->space_name = c->space;
  o->time_column = c->time_column;
  o->folds = (uint32_t)c->folds;
  o->epochs = (uint32_t)c->epochs;
  o->trials = c->trials;
  o->threads = (uint32_t)c->threads;
  o->seed = c->seed == no_seed ? usual_seed : c->seed;
  o->valid_share = c->valid_share;
  o->test_share = c->test_share;
  o->folder = c->folder.bytes;
  o->resume = c->resume;
  return SHOAL_OK;
}

static bool parse(search_command *c, int argc, char **argv, int *status) {
  const shoal_option options[] = {
      {.name = "The table"},
      {.name = "target",
       .value = "COLUMN",
       .text = &c->target,
       .help = "what to predict: a column's name or number"},
      {.name = "test",
       .value = "FILE",
       .text = &c->test,
       .help = "rows to judge the end by; without it a fifth of the rows is kept for that"},
      {.name = "columns",
       .value = "LIST",
       .text = &c->columns,
       .help =
           "what columns are, where the guess is wrong: zip=category,note=text,id=skip; kinds are number, "
           "category, date, text, identifier, constant. A name with a comma or an equals sign stands in "
           "quotes: '\"a,b\"=category'"},
      {.name = "dialect",
       .value = "WORDS",
       .text = &c->dialect,
       .help = "how the file is written, where the guess is wrong: 'delimiter ; decimal , encoding latin-1 "
               "header no'"},

      {.name = "The search"},
      {.name = "budget",
       .value = "TIME",
       .text = &c->budget,
       .help = "90s, 10m (the default) or 2h, for everything"},
      {.name = "trials",
       .value = "N",
       .whole = &c->trials,
       .whole_min = 1,
       .whole_max = 1000000000,
       .help = "end after N trials in all; with --resume the earlier ones count, too"},
      {.name = "metric",
       .value = "NAME",
       .text = &c->metric,
       .help = "accuracy (of classes), balanced-accuracy, f1 (of two classes that of the rarer one), auc, "
               "log-loss; "
               "rmse (of numbers), mae, r2"},
      {.name = "problem",
       .value = "KIND",
       .text = &c->problem,
       .choices = problems,
       .help = "regression or classes; by default the target's values tell"},
      {.name = "space", .value = "FILE", .text = &c->space, .help = "what may be tried; see docs/search.md"},
      {.name = "scheduler",
       .value = "WAY",
       .text = &c->scheduler,
       .choices = schedulers,
       .help = "model (the default: learns where good ones are and trains those longer), halving, random or "
               "grid"},
      {.name = "folds",
       .value = "K",
       .whole = &c->folds,
       .whole_min = 1,
       .whole_max = SHOAL_FOLDS_MAX,
       .help = "judge trials by K-fold cross-validation; 1 holds rows out; by default 5 below 2,000 rows"},
      {.name = "valid",
       .value = "SHARE",
       .real = &c->valid_share,
       .real_min = 0.01,
       .real_max = 0.9,
       .help = "the share of rows held out to judge trials by; 0.2 by default"},
      {.name = "test-share",
       .value = "SHARE",
       .real = &c->test_share,
       .real_min = 0,
       .real_max = 0.9,
       .help = "without --test: the share of rows for the final score; 0.2 by default, 0 for none"},
      {.name = "time",
       .value = "COLUMN",
       .text = &c->time_column,
       .help = "judge by the latest rows, in the order of this column"},
      {.name = "epochs",
       .value = "N",
       .whole = &c->epochs,
       .whole_min = 1,
       .whole_max = SHOAL_CURVE_MAX,
       .help = "of a whole training"},
      {.name = "seed",
       .value = "N",
       .whole = &c->seed,
       .whole_max = no_seed - 1,
       .help = "another seed tries others; 1 by default"},
      {.name = "threads",
       .value = "N",
       .whole = &c->threads,
       .whole_min = 1,
       .whole_max = SHOAL_THREADS_MAX,
       .help = "trials at the same time; by default one for every processor"},

      {.name = "Output"},
      {.name = "out",
       .value = "FILE",
       .text = &c->out,
       .help = "the model; best.safetensors by default. What the search needs to continue is beside it, in "
               "best.search"},
      {.name = "table", .value = "FILE", .text = &c->trials_out, .help = "write all trials as CSV"},
      {.name = "log-dir",
       .value = "FOLDER",
       .text = &c->log_dir,
       .help = "write TensorBoard event files into this folder: settings, curves and scores of all trials, a "
               "folder for "
               "each trial"},
      {.name = "resume",
       .flag = &c->resume,
       .help = "continue the search of this --out, for another budget or up to more --trials; what it "
               "began with can be left out, and cannot be changed"},
      {.name = "json",
       .flag = &c->json,
       .help = "a line of JSON with the columns, one for every finished trial, and one at the end"},
  };
  const shoal_usage usage = {
      .command = "search",
      .synopses =
          (const char *[]){"FILE.csv --target COLUMN [OPTION...]", "FILE.csv --resume [OPTION...]", NULL},
      .about =
          "Tries networks on a table until the budget is spent, and makes one model of the best of them. It "
          "takes "
          "raw rows: how to read cells is part of it. 'shoal eval' scores it on other rows, 'shoal predict' "
          "predicts them.",
      .operand = "FILE.csv",
      .operands_min = 1,
      .operands_max = 1,
      .options = options,
      .options_count = sizeof options / sizeof options[0],
      .examples = "  shoal search examples/income.csv --target income --budget 2m\n"
                  "  shoal search houses.csv --target price --trials 200 --columns zip=category\n"
                  "  shoal eval best.safetensors --data new-houses.csv\n",
  };
  shoal_operands operands;
  if (!shoal_cli_parse(&usage, argc, argv, &operands, status)) return false;
  c->path = operands.at[0];
  shoal_error err;
  if (settle(c, &err) != SHOAL_OK) {
    *status = shoal_cli_misused("search", &err);
    return false;
  }
  shoal_status same =
      c->resume ? shoal_search_said_again(&c->options, c->scheduler != NULL, c->seed != no_seed, &err)
                : SHOAL_OK;
  if (same == SHOAL_INVALID) *status = shoal_cli_misused("search", &err);
  if (same != SHOAL_OK && same != SHOAL_INVALID) *status = shoal_cli_failed("search", &err);
  return same == SHOAL_OK;
}

/* ---- what is shown ---- */

static const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }

static void warn(void *self, const char *text) {
  search_command *c = self;
  shoal_progress_clear(&c->progress);
  shoal_cli_warn("search", "%s", text);
  if (c->json) shoal_json_text(&c->remarks, NULL, text);
}

static void write_remarks(search_command *c, shoal_json *json) {
  shoal_json_open(json, "remarks", '[');
  if (c->remarks_text.length > 0) shoal_json_raw(json, NULL, c->remarks_text.bytes, c->remarks_text.length);
  shoal_json_close(json, ']');
  shoal_text_clear(&c->remarks_text);
  shoal_json_init(&c->remarks, &c->remarks_text);
}

static void keep_kinds(void *self, const shoal_profile *profile, uint32_t target) {
  search_command *c = self;
  shoal_text_clear(&c->kinds);
  shoal_tables_columns_text(profile, target, &c->kinds);
}

static void show(void *self, const shoal_search_view *view) {
  search_command *c = self;
  double now = shoal_clock_seconds();
  if (!shoal_progress_due(&c->progress, now)) return;
  bool reads = view->phase == SHOAL_SEARCH_READS;
  double per_s = (double)(view->finished_units - c->units_before) / view->seconds;
  if (reads || per_s == 0) per_s = NAN;
  const char *metric = c->search ? shoal_score_name(shoal_search_brief(c->search)->metric) : NULL;
  shoal_progress_view line = {.share = view->share,
                              .per_s = per_s,
                              .unit = "trainings",
                              .loss = NAN,
                              .metric_name = metric,
                              .metric = view->best ? view->best_score : NAN,
                              .eta_s = view->left_s};
  shoal_progress_show(&c->progress, &line, now);
}

static void write_trial(shoal_json *json, const shoal_search *search, const shoal_board_trial *trial) {
  const shoal_trial_result *result = trial->result;
  shoal_json_int(json, "trial", (int64_t)trial->trial);
  shoal_json_real(json, "score", result->failed ? NAN : result->score);
  shoal_json_int(json, "epochs", result->epochs);
  shoal_json_int(json, "weights", (int64_t)result->weights);
  shoal_json_real(json, "seconds", result->seconds);
  if (result->failed) shoal_json_text(json, "error", result->error);
  shoal_values_write(&shoal_search_brief(search)->space, &trial->values, json, "settings");
}

/* What cannot be written is no reason to stop a search. */
static void go_without_log(search_command *c, const char *why) {
  shoal_progress_clear(&c->progress);
  shoal_cli_warn("search", "%s; no more is written for TensorBoard, but the search continues", why);
  shoal_search_log_close(c->log);
  c->log = NULL;
}

/* A folder that cannot be used at all is a mistake, which is better said before than after the search. */
static shoal_status open_log(search_command *c, shoal_error *err) {
  if (c->log_dir == NULL) return SHOAL_OK;
  shoal_status status = shoal_search_log_open(&c->log, c->log_dir, c->search, err);
  if (status != SHOAL_FULL) return status;
  go_without_log(c, err->text);
  return SHOAL_OK;
}

static void log_trial(search_command *c, const shoal_board_trial *trial) {
  shoal_error err;
  if (c->log != NULL && shoal_search_log_trial(c->log, trial, &err) != SHOAL_OK) go_without_log(c, err.text);
}

static void finished(void *self, const shoal_board_trial *trial, bool best) {
  search_command *c = self;
  const shoal_trial_result *result = trial->result;
  log_trial(c, trial);
  if (c->json) {
    shoal_json json;
    shoal_text line;
    shoal_cli_event_begin(&json, &line, "trial");
    write_trial(&json, c->search, trial);
    shoal_cli_event_end(&json);
  } else if (best) {
    shoal_progress_clear(&c->progress);
    printf("trial %-5" PRIu64 " %s %s  %u epoch%s, %s weights\n", trial->trial,
           shoal_score_name(shoal_search_brief(c->search)->metric), shoal_human_number(result->score).text,
           result->epochs, plural(result->epochs), shoal_human_count(result->weights).text);
    fflush(stdout);
  }
}

/* What each column was taken for: better seen now than when the budget is spent. */
static void print_columns(search_command *c) {
  const shoal_brief *brief = shoal_search_brief(c->search);
  shoal_text text;
  shoal_json json;
  if (c->json) {
    shoal_cli_event_begin(&json, &text, "columns");
    shoal_json_int(&json, "rows", (int64_t)brief->profile.rows);
    shoal_tables_columns_json(&brief->profile, brief->target.column, &json, "columns");
    write_remarks(c, &json);
    shoal_cli_event_end(&json);
    return;
  }
  shoal_text_init(&text);
  shoal_tables_columns_text(&brief->profile, brief->target.column, &text);
  fflush(stdout);
  if (!text.failed) fputs(text.bytes, stderr);
  shoal_text_release(&text);
}

static void print_table(const search_command *c) {
  const shoal_brief *brief = shoal_search_brief(c->search);
  const shoal_table_split *split = shoal_search_split(c->search);
  uint32_t used = 0;
  for (uint32_t i = 0; i < brief->profile.columns_count; i++) used += brief->profile.columns[i].used;
  shoal_text line;
  shoal_text_init(&line);
  shoal_text_addf(&line, "%s: %s row%s, %u of %u columns to learn from; %s: %s", c->path,
                  shoal_human_count(brief->profile.rows).text, plural(brief->profile.rows), used,
                  brief->profile.columns_count, brief->profile.columns[brief->target.column].name,
                  shoal_problem_name(brief->target.problem));
  if (brief->target.problem != SHOAL_REGRESSION)
    shoal_text_addf(&line, ", %u classes", brief->target.classes.count);
  shoal_cli_print_line(&line);
  if (split->folds > 1)
    shoal_text_addf(&line, "trials are judged by %u-fold cross-validation", split->folds);
  else
    shoal_text_addf(&line, "trials are judged by %s held-out row%s",
                    shoal_human_count(split->valid[0].count).text, plural(split->valid[0].count));
  if (split->test.count > 0)
    shoal_text_addf(&line, ", the model by %s that nothing else sees",
                    shoal_human_count(split->test.count).text);
  shoal_cli_print_line(&line);
  shoal_text_release(&line);
  fflush(stdout);
}

static void print_end(const search_command *c, const shoal_search_end *end, double seconds) {
  const shoal_brief *brief = shoal_search_brief(c->search);
  shoal_text line;
  shoal_text_init(&line);
  uint64_t trials = shoal_board_trials(shoal_search_board(c->search));
  shoal_text_addf(&line, "%s trial%s in %s; the model is made of ", shoal_human_count(trials).text,
                  plural(trials), shoal_human_seconds(seconds).text);
  if (end->members == 1)
    shoal_text_addf(&line, "the best one");
  else
    shoal_text_addf(&line, "%u of them", end->members);
  shoal_cli_print_line(&line);
  shoal_tables_estimate_text(&end->estimate, brief->metric, end->valid_score, &brief->target, &line);
  shoal_cli_print_line(&line);
  if (end->has_test) {
    shoal_text_addf(&line, "test      ");
    shoal_tables_scores_text(&end->test, &brief->target, &line);
    shoal_text_addf(&line, "on %s row%s that nothing else saw", shoal_human_count(end->test_rows).text,
                    plural(end->test_rows));
    shoal_cli_print_line(&line);
  }
  shoal_text_addf(&line, "%s", c->out);
  shoal_cli_print_line(&line);
  shoal_text_release(&line);
}

static void print_end_json(search_command *c, const shoal_search_end *end, double seconds) {
  const shoal_brief *brief = shoal_search_brief(c->search);
  shoal_json json;
  shoal_text line;
  shoal_cli_event_begin(&json, &line, "done");
  shoal_json_int(&json, "trials", (int64_t)shoal_board_trials(shoal_search_board(c->search)));
  shoal_json_real(&json, "seconds", seconds);
  shoal_json_text(&json, "metric", shoal_score_name(brief->metric));
  shoal_tables_positive_json(&brief->target, &json);
  shoal_json_int(&json, "members", end->members);
  shoal_json_real(&json, "valid_score", end->valid_score);
  shoal_estimate_write(&end->estimate, &json);
  uint64_t best;
  if (shoal_board_best(shoal_search_board(c->search), &best, 1) == 1) {
    const shoal_board_trial *trial = shoal_board_trial_at(shoal_search_board(c->search), best);
    shoal_json_open(&json, "best", '{');
    write_trial(&json, c->search, trial);
    shoal_json_close(&json, '}');
  }
  if (end->has_test) {
    shoal_scores_write(&end->test, brief->target.problem, &json, "test_");
    shoal_json_int(&json, "test_rows", (int64_t)end->test_rows);
  }
  write_remarks(c, &json);
  shoal_json_text(&json, "model", c->out);
  shoal_cli_event_end(&json);
}

/* ---- running ---- */

static shoal_status write_table(const search_command *c, shoal_error *err) {
  if (c->trials_out == NULL) return SHOAL_OK;
  shoal_text table;
  shoal_text_init(&table);
  shoal_search_table(c->search, &table);
  shoal_status status = table.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory")
                                     : shoal_file_write(c->trials_out, table.bytes, table.length, err);
  shoal_text_release(&table);
  return status;
}

/* Trials that were begun may still be trained on. */
static void warn_of_enough(const search_command *c, uint64_t trials) {
  if (!c->resume || c->trials == 0 || trials <= c->trials) return;
  shoal_cli_warn(
      "search",
      "%s are done already, and --trials %" PRIu64
      " is how many there may be in all: no new one is begun; give a larger number, or leave it out "
      "for another --budget",
      shoal_human_count(trials).text, c->trials);
}

/* A search that is taken up again and has nothing left to try says so; its model is made anew all the same. */
static void warn_of_nothing(const search_command *c) {
  shoal_search_view now;
  shoal_search_look(c->search, &now);
  bool reached = c->trials > 0 && now.trials == c->trials; /* of more it is said before */
  if (!c->resume || !reached || now.finished_units > c->units_before) return;
  shoal_cli_warn(
      "search",
      "nothing was tried: there %s %s trial%s already, and --trials %" PRIu64
      " is how many there may be in all; give a larger number, or leave it out for another --budget",
      now.trials == 1 ? "is" : "are", shoal_human_count(now.trials).text, plural(now.trials), c->trials);
}

/* A search that was stopped still gives the best model so far. */
static shoal_status run_search(search_command *c, bool *stopped, shoal_error *err) {
  double start = shoal_clock_seconds();
  shoal_search_calls calls = {
      .self = c, .warn = warn, .remark = warn, .read = keep_kinds, .progress = show, .finished = finished};
  shoal_status status = shoal_search_open(&c->search, &c->options, &calls, shoal_stop_flag(), err);
  shoal_progress_clear(&c->progress);
  if (status != SHOAL_OK && !c->json && !c->kinds.failed && c->kinds.length > 0)
    fputs(c->kinds.bytes, stderr);
  if (status != SHOAL_OK) return status;
  print_columns(c);
  if (!c->json) print_table(c);
  shoal_search_view before;
  shoal_search_look(c->search, &before);
  c->units_before = before.finished_units;
  warn_of_enough(c, before.trials);
  status = open_log(c, err);
  if (status != SHOAL_OK) return status;
  status = shoal_search_run(c->search, err);
  *stopped = status == SHOAL_STOPPED;
  shoal_progress_clear(&c->progress);
  if (status == SHOAL_OK) warn_of_nothing(c);
  if (status != SHOAL_OK && !*stopped) return status;
  shoal_search_end end;
  if (!c->resume) shoal_cli_keep_previous("search", "model", c->out, false, NULL);
  status = shoal_search_finish(c->search, c->out, &end, err);
  if (status == SHOAL_NOT_FOUND && *stopped) return SHOAL_OK;
  if (status != SHOAL_OK) return status;
  double seconds = shoal_clock_seconds() - start;
  if (c->json)
    print_end_json(c, &end, seconds);
  else
    print_end(c, &end, seconds);
  return write_table(c, err); /* the model is there all the same, and has been told about */
}

static void release(search_command *c) {
  shoal_search_log_close(c->log);
  shoal_search_close(c->search);
  shoal_text_release(&c->folder);
  shoal_text_release(&c->kinds);
  shoal_text_release(&c->remarks_text);
  free(c->said_words);
  free(c->space_text);
}

static int run(int argc, char **argv) {
  search_command c = {.out = "best.safetensors",
                      .seed = no_seed,
                      .threads = shoal_cli_threads(),
                      .test_share = -1,
                      .options = {.scheduler = SHOAL_BY_MODEL}};
  int exit_status;
  shoal_text_init(&c.folder);
  shoal_text_init(&c.kinds);
  shoal_json_begin(&c.remarks, &c.remarks_text);
  if (!parse(&c, argc, argv, &exit_status)) {
    release(&c);
    return exit_status;
  }
  shoal_stop_catch();
  shoal_stop_says("stopping; the best model so far will be written");
  shoal_progress_init(&c.progress, stderr, shoal_clock_seconds());
  shoal_error err;
  bool stopped = false;
  shoal_status status = run_search(&c, &stopped, &err);
  shoal_progress_clear(&c.progress);
  if (status != SHOAL_OK)
    exit_status = shoal_cli_failed("search", &err);
  else if (stopped)
    exit_status = shoal_cli_stopped("search");
  else
    exit_status = shoal_cli_finish("search", SHOAL_EXIT_OK);
  release(&c);
  return exit_status;
}

const shoal_command shoal_command_search = {"search", "from a CSV file to the best network", run};
