/* search.c: see search.h: choosing what was not said, and the threads that compute units. */
#include "search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/lock.h"
#include "base/room.h"
#include "data/csv_file.h"
#include "search/remarks.h"
#include "search/search_internal.h"
#include "search/warnings.h"

static const uint64_t rows_for_folds = 2000;  /* below that one part is too small to judge by */
static const uint64_t rows_of_epoch = 100000; /* of a longer table an epoch is a part */
static const double share_held_out = 0.2;
enum {
  WINDOW = 16,
  FOLDS = 5,
  NUMBERS_OF_CLASSES = 20, /* as in target.c */
};

/* ---- choosing ---- */

static uint32_t usual_epochs(uint64_t rows) {
  if (rows < 2000) return 81;
  if (rows < 20000) return 54;
  return 27;
}

/* The first rungs are a ninth and a third of a training. */
static void choose_rungs(shoal_scheduler_config *rules, uint32_t epochs) {
  rules->rungs = 0;
  for (uint32_t part = 9; part > 1; part /= 3)
    if (epochs >= 2 * part) rules->epochs[rules->rungs++] = epochs / part;
  rules->epochs[rules->rungs++] = epochs;
}

static void choose_parts(shoal_search *s, uint64_t rows) {
  const shoal_search_options *o = s->options;
  shoal_split_options *split = &s->brief.split;
  split->seed = o->seed;
  split->test_share = o->test ? 0 : o->test_share < 0 ? share_held_out : o->test_share;
  split->folds = o->folds ? o->folds : rows < rows_for_folds && !o->time_column ? FOLDS : 1;
  split->valid_share = split->folds > 1 ? 0 : o->valid_share > 0 ? o->valid_share : share_held_out;
}

static shoal_status choose_metric(shoal_search *s, shoal_error *err) {
  shoal_problem problem = s->brief.target.problem;
  s->brief.metric = s->options->metric ? *s->options->metric : shoal_score_usual(problem);
  if (shoal_score_fits(s->brief.metric, problem)) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID, "%s does not fit a %s problem; the usual metric is %s",
                    shoal_score_name(s->brief.metric), shoal_problem_name(problem),
                    shoal_score_name(shoal_score_usual(problem)));
}

static shoal_status choose_space(shoal_search *s, shoal_error *err) {
  uint32_t features = 0;
  for (uint32_t c = 0; c < s->brief.profile.columns_count; c++) features += s->brief.profile.columns[c].used;
  shoal_space_usual(&s->brief.space, s->brief.profile.rows, features);
  const char *text = s->options->space;
  if (text == NULL) return SHOAL_OK;
  return shoal_space_parse(&s->brief.space, s->options->space_name, text, strlen(text), err);
}

static shoal_status choose_time_column(shoal_search *s, shoal_error *err) {
  s->brief.split.time_column = UINT32_MAX;
  const char *name = s->options->time_column;
  if (name == NULL) return SHOAL_OK;
  uint32_t column;
  shoal_status status = shoal_profile_find(&s->brief.profile, name, &column, err);
  if (status != SHOAL_OK) return status;
  shoal_column_kind kind = s->brief.profile.columns[column].kind;
  if (kind != SHOAL_DATE && kind != SHOAL_NUMBER)
    return shoal_fail(err, SHOAL_INVALID,
                      "the column '%s' was read as %s %s, but a time column must hold dates or numbers; if "
                      "it holds numbers, "
                      "give --columns '%s=number'",
                      name, kind == SHOAL_IDENTIFIER ? "an" : "a", shoal_column_kind_name(kind), name);
  s->brief.split.time_column = column;
  return SHOAL_OK;
}

static void choose_rules(shoal_search *s) {
  const shoal_search_options *o = s->options;
  uint64_t rows = s->brief.profile.rows;
  s->brief.seed = o->seed;
  s->brief.epochs = o->epochs ? o->epochs : usual_epochs(rows);
  s->brief.patience = 0;
  s->brief.epoch_rows = rows > rows_of_epoch ? rows_of_epoch : 0;
  s->rules.scheduler = (shoal_scheduler_config){
      .space = &s->brief.space,
      .kind = o->scheduler,
      .seed = o->seed,
      .trials = o->trials,
      .window = o->window ? o->window : WINDOW,
      .higher_is_better = shoal_score_higher_is_better(s->brief.metric),
  };
  choose_rungs(&s->rules.scheduler, s->brief.epochs);
  s->limits[0] = (shoal_search_limit){.trials = o->trials};
  s->limits_count = 1;
}

/* ---- reading ---- */

static shoal_search_view view_of(const shoal_search *s, shoal_search_phase phase, double share) {
  double seconds = shoal_clock_seconds() - s->begun;
  return (shoal_search_view){
      .phase = phase,
      .share = share,
      .seconds = seconds,
      .left_s = s->options->seconds > 0 ? fmax(0, s->options->seconds - seconds) : NAN,
      .trials = s->board ? shoal_board_trials(s->board) : 0,
      .finished_units = s->finished_units,
      .best = s->best,
      .best_score = s->best ? shoal_board_trial_at(s->board, s->best)->result->score : NAN,
  };
}

static void tell(shoal_search *s, shoal_search_phase phase, double share) {
  shoal_search_view view = view_of(s, phase, share);
  if (s->calls.progress) s->calls.progress(s->calls.self, &view);
}

static void read_some(void *self, uint64_t bytes, uint64_t of) {
  tell(self, SHOAL_SEARCH_READS, of > 0 ? (double)bytes / (double)of : NAN);
}

static shoal_status read_rows(shoal_search *s, uint32_t target, shoal_rows **rows, shoal_error *err) {
  const shoal_search_options *o = s->options;
  shoal_rows_options options = {
      .path = o->path,
      .profile = &s->brief.profile,
      .dialect = o->dialect,
      .target = target,
      .progress = read_some,
      .self = s,
      .stop = s->stop,
  };
  return shoal_rows_open(rows, &options, err);
}

static shoal_status read_profile(shoal_search *s, shoal_error *err) {
  const shoal_search_options *o = s->options;
  shoal_profile_options options = {
      .path = o->path,
      .dialect = o->dialect,
      .said = o->columns,
      .said_count = o->columns_count,
      .seed = o->seed,
      .progress = read_some,
      .self = s,
      .stop = s->stop,
  };
  return shoal_profile_read(&s->brief.profile, &options, err);
}

static void warn_of_table(shoal_search *s) {
  const shoal_profile *p = &s->brief.profile;
  shoal_text text;
  shoal_text_init(&text);
  for (uint32_t c = 0; c < p->columns_count && s->calls.warn; c++) {
    if (p->columns[c].warning[0] == 0) continue;
    shoal_text_clear(&text);
    shoal_text_addf(&text, "column '%s': %s", p->columns[c].name, p->columns[c].warning);
    if (!text.failed) s->calls.warn(s->calls.self, text.bytes);
  }
  if (p->ragged > 0 && s->calls.warn) {
    shoal_text_clear(&text);
    shoal_text_addf(&text, "%llu row%s too many or too few cells, the first in line %llu: left out",
                    (unsigned long long)p->ragged, p->ragged == 1 ? " has" : "s have",
                    (unsigned long long)p->ragged_line);
    if (!text.failed) s->calls.warn(s->calls.self, text.bytes);
  }
  shoal_text_release(&text);
}

static void warn_of_split(shoal_search *s) {
  uint64_t duplicates = shoal_bench_split(s->bench)->duplicates;
  if (duplicates == 0 || s->calls.remark == NULL) return;
  shoal_text text;
  shoal_text_init(&text);
  shoal_text_addf(
      &text,
      "%llu of the held-out rows %s the same features as a row to learn from: scores may be too optimistic",
      (unsigned long long)duplicates, duplicates == 1 ? "has" : "have");
  if (!text.failed) s->calls.remark(s->calls.self, text.bytes);
  shoal_text_release(&text);
}

/* What the caller is told about rows. */
static shoal_listener listener_of(const shoal_search *s) {
  return (shoal_listener){.self = s->calls.self, .say = s->calls.remark};
}

static const char *target_name(const shoal_search *s) {
  return s->brief.profile.columns[s->brief.target.column].name;
}

/* The last part of a path: on a server, where files lie is nobody's business. */
static const char *file_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* Rows whose target is no number, though it was said to be one. */
static uint64_t warn_of_words(const shoal_search *s, const shoal_rows *rows, const char *path,
                              const char *fate) {
  uint64_t words = shoal_rows_bad_cells(rows, s->brief.target.column);
  if (words == 0) return 0;
  shoal_text text = {0};
  shoal_text_addf(&text, "%s: %llu row%s no number in '%.60s': %s", file_name(path),
                  (unsigned long long)words, words == 1 ? " has" : "s have", target_name(s), fate);
  if (s->calls.remark && !text.failed) s->calls.remark(s->calls.self, text.bytes);
  shoal_text_release(&text);
  return words;
}

static void warn_of_answers(const shoal_search *s, const shoal_rows *rows, const char *path,
                            const char *fate) {
  shoal_answers answers;
  shoal_listener to = listener_of(s);
  shoal_target_count(&s->brief.target, rows, NULL, &answers);
  answers.missing -= warn_of_words(s, rows, path, fate);
  shoal_remark_answers(&answers, file_name(path), target_name(s), fate, &to);
}

/* ---- a target that is nearly a number ---- */

/* What was said of a column, or NULL. */
static const shoal_column_said *said_of(const shoal_search *s, uint32_t column) {
  for (size_t i = 0; i < s->options->columns_count; i++) {
    uint32_t at;
    if (shoal_profile_find(&s->brief.profile, s->options->columns[i].name, &at, NULL) == SHOAL_OK &&
        at == column)
      return &s->options->columns[i];
  }
  return NULL;
}

/* Categories that are numbers in most rows, and more different ones than classes that are called by numbers are: a few
 * words have made classes of a quantity. The sentence that says so. */
static bool says_numbers(const shoal_search *s, uint32_t target, shoal_text *out) {
  const shoal_column *column = &s->brief.profile.columns[target];
  if (column->kind != SHOAL_CATEGORY || said_of(s, target)) return false;
  uint64_t values = 0, numbers = 0, words = 0, others = 0;
  const char *other = NULL;
  for (uint32_t i = 0; i < column->categories.count; i++) {
    const char *name = shoal_names_at(&column->categories, i);
    double number;
    if (shoal_read_f64(name, strlen(name), &number)) {
      values++;
      numbers += column->category_counts[i];
    } else {
      others += column->category_counts[i];
      if (words++ == 0) other = name;
    }
  }
  if (other == NULL || values <= NUMBERS_OF_CLASSES || numbers <= others) return false;
  shoal_text_addf(out,
                  "'%.60s' is a number in %llu of %llu rows, but %llu hold%s %s'%.40s': correct them, or say "
                  "--columns %.60s=number, which leaves those rows out",
                  column->name, (unsigned long long)numbers, (unsigned long long)(numbers + others),
                  (unsigned long long)others, others == 1 ? "s" : "", words == 1 ? "" : "others, such as ",
                  other, column->name);
  return !out->failed;
}

/* An error about too many or too rare classes, where the target is nearly a number, says that instead. */
static shoal_status explain(const shoal_search *s, uint32_t target, shoal_status status, shoal_error *err) {
  shoal_text text = {0};
  if ((status == SHOAL_INVALID || status == SHOAL_LIMIT) && says_numbers(s, target, &text))
    shoal_fail(err, status, "%s", text.bytes);
  shoal_text_release(&text);
  return status;
}

static void warn_of_numbers(const shoal_search *s) {
  shoal_text text = {0};
  if (s->calls.remark && says_numbers(s, s->brief.target.column, &text))
    s->calls.remark(s->calls.self, text.bytes);
  shoal_text_release(&text);
}

static shoal_status find_target(shoal_search *s, uint32_t *target, shoal_error *err) {
  shoal_status status = shoal_profile_find(&s->brief.profile, s->options->target, target, err);
  if (status != SHOAL_OK) return status;
  shoal_column *column = &s->brief.profile.columns[*target];
  column->used = false;
  if (s->calls.read) s->calls.read(s->calls.self, &s->brief.profile, *target);
  const shoal_column_said *said = said_of(s, *target);
  if (said && said->skip)
    return shoal_fail(err, SHOAL_INVALID,
                      "'%.60s' is the target, and cannot be left out (%.60s=skip): say one or the other",
                      column->name, column->name);
  return SHOAL_OK;
}

/* Said before anything else is found out about rows that say nothing. */
static shoal_status check_features(const shoal_search *s, uint32_t target, shoal_error *err) {
  const shoal_profile *p = &s->brief.profile;
  const shoal_column *other = NULL;
  for (uint32_t c = 0; c < p->columns_count; c++) {
    if (p->columns[c].used) return SHOAL_OK;
    if (c != target && p->columns[c].kind == SHOAL_IDENTIFIER && other == NULL) other = &p->columns[c];
  }
  if (other == NULL)
    return shoal_fail(err, SHOAL_INVALID,
                      "there is no column to learn from: all but the target are constant or left out");
  return shoal_fail(err, SHOAL_INVALID,
                    "there is no column to learn from: all but the target are identifiers, constant or left "
                    "out; if '%.60s' holds more than row numbers, give --columns '%.60s=number' (or "
                    "category, or text)",
                    other->name, other->name);
}

/* Of a new search: all that the brief has, from the table and what was said. */
static shoal_status choose(shoal_search *s, shoal_rows **rows, shoal_error *err) {
  uint32_t target = 0;
  shoal_profile *profile = &s->brief.profile;
  shoal_status status = read_profile(s, err);
  if (status == SHOAL_OK) status = find_target(s, &target, err);
  if (status == SHOAL_OK) status = read_rows(s, target, rows, err);
  if (status == SHOAL_OK)
    status =
        explain(s, target,
                shoal_target_find(&s->brief.target, *rows, profile, target, s->options->problem, err), err);
  if (status == SHOAL_OK) status = check_features(s, target, err);
  if (status == SHOAL_OK) status = shoal_warn_leaks(profile, *rows, target, s->brief.target.problem, err);
  if (status == SHOAL_OK) status = explain(s, target, choose_metric(s, err), err);
  if (status == SHOAL_OK) status = choose_space(s, err);
  if (status == SHOAL_OK) status = choose_time_column(s, err);
  if (status == SHOAL_OK) {
    choose_parts(s, shoal_rows_count(*rows));
    choose_rules(s);
    warn_of_table(s);
    warn_of_answers(s, *rows, s->options->path, "left out");
  }
  return status;
}

/* Rows are given to the bench in any case. */
static shoal_status open_bench(shoal_search *s, shoal_rows *rows, shoal_error *err) {
  shoal_bench_options options = {
      .brief = &s->brief,
      .path = s->options->path,
      .rows = rows,
      .progress = read_some,
      .self = s,
      .stop = s->stop,
  };
  return shoal_bench_open(&s->bench, &options, err);
}

static shoal_status open_new(shoal_search *s, shoal_error *err) {
  shoal_rows *rows = NULL;
  if (s->options->test) {
    s->test = strdup(s->options->test);
    if (s->test == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  }
  shoal_status status = choose(s, &rows, err);
  if (status != SHOAL_OK) {
    shoal_rows_close(rows);
    return status;
  }
  status = explain(s, s->brief.target.column, open_bench(s, rows, err), err);
  if (status == SHOAL_OK) warn_of_numbers(s);
  if (status == SHOAL_OK)
    status = shoal_target_fit(&s->brief.target, shoal_bench_rows(s->bench), &s->brief.profile,
                              shoal_bench_split(s->bench), err);
  return status;
}

/* That it is the table which the search began with. */
static shoal_status check_table(const shoal_search *s, shoal_error *err) {
  shoal_csv_file file;
  shoal_status status = shoal_csv_file_open(&file, s->options->path, NULL, err);
  if (status != SHOAL_OK) return status;
  if (strcmp(file.sha256, s->brief.profile.sha256) != 0)
    status = shoal_fail(
        err, SHOAL_INVALID,
        "%s: it is not the table that this search began with; give that, or start over without --resume",
        s->options->path);
  shoal_csv_file_close(&file);
  return status;
}

/* Everything there is to say of the rows that judge; test: of a file, or NULL. */
static shoal_status warn_of_judges(const shoal_search *s, const shoal_rows *test, shoal_error *err) {
  shoal_listener to = listener_of(s);
  const shoal_rows *rows = shoal_bench_rows(s->bench);
  shoal_status status = SHOAL_OK;
  if (test) {
    shoal_remark_file(test, &s->brief.profile, file_name(s->test), &to);
    warn_of_answers(s, test, s->test, "not scored");
    status = shoal_remark_shared(&s->brief.target, rows, file_name(s->options->path), test,
                                 file_name(s->test), &to, err);
  }
  if (status == SHOAL_OK)
    status = shoal_remark_rare(&s->brief.target, rows, shoal_bench_split(s->bench), test, &to, err);
  if (status == SHOAL_OK) status = shoal_remark_imbalance(&s->brief.target, rows, s->brief.metric, &to, err);
  return status;
}

/* Better known now than when the budget is spent. */
static shoal_status check_judges(const shoal_search *s, shoal_error *err) {
  if (s->test == NULL) return warn_of_judges(s, NULL, err);
  shoal_rows *rows;
  const shoal_rows_options options = {.path = s->test,
                                      .profile = &s->brief.profile,
                                      .dialect = s->options->dialect,
                                      .target = s->brief.target.column,
                                      .stop = s->stop};
  shoal_status status = shoal_rows_open(&rows, &options, err);
  if (status != SHOAL_OK) return status;
  status = warn_of_judges(s, rows, err);
  shoal_rows_close(rows);
  return status;
}

static shoal_status open_again(shoal_search *s, shoal_error *err) {
  shoal_status status = shoal_search_read_record(s, err);
  if (status == SHOAL_OK) status = check_table(s, err);
  if (status != SHOAL_OK) return status;
  s->rules.scheduler.space = &s->brief.space;
  if (s->options->test) {
    free(s->test);
    s->test = strdup(s->options->test);
    if (s->test == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  }
  return open_bench(s, NULL, err);
}

/* The folder is made when everything else is known to be good; one that is there already is nobody else's from
 * the beginning. */
static shoal_status open_folder(shoal_search *s, shoal_error *err) {
  if (s->options->resume) return SHOAL_OK;
  shoal_status status = s->lock == SHOAL_NO_LOCK ? shoal_search_lock(s, err) : SHOAL_OK;
  return status == SHOAL_OK ? shoal_search_begin_record(s, err) : status;
}

/* States that nobody will want again: else the folder grows with every trial. With the mutex. */
static void drop_spent(shoal_search *s) {
  uint64_t trial;
  while (shoal_board_spent(s->board, &trial)) {
    shoal_text path = {0};
    shoal_search_state_path(s, trial, &path);
    if (!path.failed) unlink(path.bytes);
    shoal_text_release(&path);
  }
}

shoal_status shoal_search_open(shoal_search **out, const shoal_search_options *options,
                               const shoal_search_calls *calls, const volatile sig_atomic_t *stop,
                               shoal_error *err) {
  *out = NULL;
  shoal_search *s = calloc(1, sizeof *s);
  if (s == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  s->options = options;
  s->calls = *calls;
  s->stop = stop;
  s->lock = SHOAL_NO_LOCK;
  s->begun = shoal_clock_seconds();
  shoal_brief_init(&s->brief);
  shoal_text_init(&s->states);
  pthread_mutex_init(&s->mutex, NULL);
  pthread_cond_init(&s->news, NULL);
  shoal_text_addf(&s->states, "%s/trials", options->folder);
  shoal_status status = shoal_file_exists(options->folder) ? shoal_search_lock(s, err) : SHOAL_OK;
  if (status == SHOAL_OK) status = options->resume ? open_again(s, err) : open_new(s, err);
  if (status == SHOAL_OK) status = check_judges(s, err);
  s->rules.lease_s = options->lease_s > 0 ? options->lease_s : INFINITY;
  if (status == SHOAL_OK) status = shoal_board_create(&s->board, &s->rules, err);
  if (status == SHOAL_OK) status = open_folder(s, err);
  if (status == SHOAL_OK) status = shoal_search_replay(s, err);
  if (status == SHOAL_OK) status = shoal_search_extend(s, err);
  if (status != SHOAL_OK) {
    shoal_search_close(s);
    return status;
  }
  drop_spent(s);
  warn_of_split(s);
  *out = s;
  return SHOAL_OK;
}

void shoal_search_close(shoal_search *s) {
  if (s == NULL) return;
  if (s->journal) fclose(s->journal);
  shoal_board_destroy(s->board);
  shoal_bench_close(s->bench);
  shoal_brief_release(&s->brief);
  shoal_text_release(&s->states);
  shoal_lock_give(s->lock);
  pthread_cond_destroy(&s->news);
  pthread_mutex_destroy(&s->mutex);
  free(s->test);
  free(s);
}

const shoal_brief *shoal_search_brief(const shoal_search *s) { return &s->brief; }
const shoal_board *shoal_search_board(const shoal_search *s) { return s->board; }
const shoal_table_split *shoal_search_split(const shoal_search *s) { return shoal_bench_split(s->bench); }

/* ---- trying ---- */

static bool halts(const shoal_search *s) { return __atomic_load_n(&s->halt, __ATOMIC_RELAXED) != 0; }

static bool is_better(const shoal_search *s, double score) {
  if (isnan(score)) return false;
  if (s->best == 0) return true;
  double best = shoal_board_trial_at(s->board, s->best)->result->score;
  return s->rules.scheduler.higher_is_better ? score > best : score < best;
}

shoal_status shoal_search_done(shoal_search *s, uint64_t unit, const char *worker,
                               const shoal_trial_result *result, bool *counts, shoal_error *err) {
  shoal_status status = SHOAL_OK;
  *counts = false;
  pthread_mutex_lock(&s->mutex);
  shoal_unit about;
  bool wanted = shoal_board_wants(s->board, unit, &about);
  if (wanted && result->epochs > about.epochs_to)
    status = shoal_fail(err, SHOAL_INVALID, "the result is of %u epochs; the unit has %u", result->epochs,
                        about.epochs_to);
  if (wanted && status == SHOAL_OK) status = shoal_search_keep(s, &about, worker, result, err);
  if (wanted && status == SHOAL_OK) {
    bool best = !result->failed && is_better(s, result->score);
    *counts = shoal_board_done(s->board, unit, result, worker, shoal_clock_seconds());
    s->finished_units++;
    if (best) s->best = about.trial;
    drop_spent(s);
    if (s->calls.finished)
      s->calls.finished(s->calls.self, shoal_board_trial_at(s->board, about.trial), best);
  }
  pthread_cond_broadcast(&s->news);
  pthread_mutex_unlock(&s->mutex);
  return status;
}

/* What choosing members and scoring them will take, guessed from what there is to do. */
static double time_to_finish(const shoal_search *s) {
  return fmin(0.05 * s->options->seconds, 10 + 2e-5 * (double)s->brief.profile.rows);
}

void shoal_search_waited(shoal_search *s, double seconds) {
  pthread_mutex_lock(&s->mutex);
  s->begun += seconds;
  pthread_mutex_unlock(&s->mutex);
}

/* With the mutex. */
static bool is_spent(const shoal_search *s) {
  double seconds = s->options->seconds;
  return seconds > 0 && shoal_clock_seconds() >= s->begun + seconds - time_to_finish(s);
}

/* Units that were set aside have a result like others. With the mutex. */
static void keep_set_aside(shoal_search *s) {
  uint64_t number;
  shoal_unit unit;
  shoal_error err;
  while (shoal_board_set_aside(s->board, &number)) {
    if (!shoal_board_unit(s->board, number, &unit)) continue;
    const shoal_board_trial *trial = shoal_board_trial_at(s->board, unit.trial);
    shoal_status status = shoal_search_keep(s, &unit, trial->worker, trial->result, &err);
    if (status != SHOAL_OK && s->status == SHOAL_OK) {
      s->status = status;
      s->failure = err;
      __atomic_store_n(&s->halt, 1, __ATOMIC_RELAXED);
    }
    s->finished_units++;
    if (s->calls.finished) s->calls.finished(s->calls.self, trial, false);
  }
  drop_spent(s);
}

shoal_next shoal_search_take(shoal_search *s, const char *worker, shoal_taken *out, shoal_error *err) {
  pthread_mutex_lock(&s->mutex);
  if (is_spent(s) || halts(s)) {
    pthread_mutex_unlock(&s->mutex);
    return SHOAL_NEXT_NONE;
  }
  shoal_next next = shoal_board_take(s->board, worker, shoal_clock_seconds(), out, err);
  keep_set_aside(s);
  s->exhausted = next == SHOAL_NEXT_NONE;
  pthread_mutex_unlock(&s->mutex);
  return next;
}

bool shoal_search_beat(shoal_search *s, uint64_t unit, uint32_t attempt) {
  pthread_mutex_lock(&s->mutex);
  bool good = shoal_board_beat(s->board, unit, attempt, shoal_clock_seconds());
  pthread_mutex_unlock(&s->mutex);
  return good;
}

void shoal_search_failed(shoal_search *s, uint64_t unit, uint32_t attempt, const char *why, bool given_back) {
  pthread_mutex_lock(&s->mutex);
  shoal_board_failed(s->board, unit, attempt, why, given_back, shoal_clock_seconds());
  keep_set_aside(s);
  pthread_cond_broadcast(&s->news);
  pthread_mutex_unlock(&s->mutex);
}

bool shoal_search_tick(shoal_search *s) {
  pthread_mutex_lock(&s->mutex);
  shoal_board_tick(s->board, shoal_clock_seconds());
  keep_set_aside(s);
  bool over = is_spent(s) || halts(s) || (s->exhausted && shoal_board_running(s->board) == 0);
  pthread_mutex_unlock(&s->mutex);
  return over;
}

/* ---- threads of this process ---- */

/* A thread cannot go on: all end. */
static void give_up(shoal_search *s, shoal_status status, const shoal_error *err) {
  pthread_mutex_lock(&s->mutex);
  if (s->status == SHOAL_OK) {
    s->status = status;
    s->failure = *err;
  }
  __atomic_store_n(&s->halt, 1, __ATOMIC_RELAXED);
  pthread_cond_broadcast(&s->news);
  pthread_mutex_unlock(&s->mutex);
}

static void wait_some(shoal_search *s) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += 100000000;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    until.tv_sec++;
  }
  pthread_cond_timedwait(&s->news, &s->mutex, &until);
}

static shoal_status compute(shoal_search *s, const shoal_taken *taken, shoal_trial_result *result,
                            shoal_error *err) {
  shoal_text path;
  shoal_text_init(&path);
  shoal_search_state_path(s, taken->unit.trial, &path);
  shoal_trial_options options = {
      .unit = &taken->unit, .state = path.bytes, .save_every_s = 30, .stop = &s->halt};
  shoal_status status = path.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory")
                                    : shoal_trial_run(s->bench, &options, result, err);
  shoal_text_release(&path);
  return status;
}

/* Waits for a unit; false when there will be none. */
static bool wait_for_unit(shoal_search *s, shoal_taken *taken, shoal_error *err) {
  while (!halts(s)) {
    err->status = SHOAL_OK;
    shoal_next next = shoal_search_take(s, "here", taken, err);
    if (next != SHOAL_NEXT_WAITS) return next == SHOAL_NEXT_UNIT;
    if (err->status != SHOAL_OK) {
      give_up(s, err->status, err);
      return false;
    }
    pthread_mutex_lock(&s->mutex);
    if (!halts(s)) wait_some(s);
    pthread_mutex_unlock(&s->mutex);
  }
  return false;
}

/* While a disk is full, the threads that have something to write wait, and that costs none of the budget. Returns
 * false if the search is stopped. */
static bool wait_for_room(shoal_search *s, const shoal_error *err) {
  static const double tell_every_s = 60;
  double begun = shoal_clock_seconds();
  shoal_text text, path;
  shoal_text_init(&text);
  shoal_text_init(&path);
  shoal_text_addf(&text, "%s; waiting until there is room", err->text);
  shoal_text_addf(&path, "%s/search.json", s->options->folder);
  pthread_mutex_lock(&s->mutex);
  bool is_first = !s->waits_for_room;
  if (is_first && s->calls.remark && !text.failed &&
      (s->room_told == 0 || begun - s->room_told > tell_every_s)) {
    s->room_told = begun;
    s->calls.remark(s->calls.self, text.bytes);
  }
  s->waits_for_room = true;
  pthread_mutex_unlock(&s->mutex);
  bool again = !path.failed && shoal_room_wait(path.bytes, 0, &s->halt);
  pthread_mutex_lock(&s->mutex);
  if (is_first) {
    s->begun += shoal_clock_seconds() - begun;
    s->waits_for_room = false;
  }
  pthread_mutex_unlock(&s->mutex);
  shoal_text_release(&text);
  shoal_text_release(&path);
  return again;
}

static shoal_status work_on(shoal_search *s, const shoal_taken *taken, shoal_trial_result *result,
                            shoal_error *err) {
  bool counts;
  shoal_status status;
  do status = compute(s, taken, result, err);
  while (status == SHOAL_FULL && wait_for_room(s, err));
  if (status == SHOAL_OK) {
    do status = shoal_search_done(s, taken->unit.number, "here", result, &counts, err);
    while (status == SHOAL_FULL && wait_for_room(s, err));
  }
  if (status == SHOAL_FULL && halts(s)) status = SHOAL_STOPPED;
  if (status != SHOAL_STOPPED) return status;
  shoal_search_failed(s, taken->unit.number, taken->attempt, "stopped", true);
  return SHOAL_OK;
}

static void *work(void *self) {
  shoal_search *s = self;
  shoal_taken taken;
  shoal_error err;
  shoal_trial_result *result = malloc(sizeof *result);
  shoal_status status = result ? SHOAL_OK : shoal_fail(&err, SHOAL_NO_MEMORY, "out of memory");
  while (status == SHOAL_OK && wait_for_unit(s, &taken, &err)) status = work_on(s, &taken, result, &err);
  if (status != SHOAL_OK) give_up(s, status, &err);
  pthread_mutex_lock(&s->mutex);
  s->busy--;
  pthread_cond_broadcast(&s->news);
  pthread_mutex_unlock(&s->mutex);
  free(result);
  return NULL;
}

/* Of the time or of the trials, whichever is nearer its end; NaN without either. A third of the trials goes on from
 * every rung, about. */
static double share_of_budget(const shoal_search *s) {
  const shoal_scheduler_config *rules = &s->rules.scheduler;
  bool by_rungs = rules->kind == SHOAL_BY_HALVING || rules->kind == SHOAL_BY_MODEL;
  double seconds = s->options->seconds, units = 0, trials = (double)s->options->trials;
  for (uint32_t r = 0; r < (by_rungs ? rules->rungs : 1); r++, trials /= 3) units += trials;
  double of_time = seconds > 0 ? (shoal_clock_seconds() - s->begun) / seconds : NAN;
  double share = fmax(of_time, units > 0 ? (double)s->finished_units / units : NAN);
  return share > 1 ? 1 : share;
}

void shoal_search_look(shoal_search *s, shoal_search_view *out) {
  pthread_mutex_lock(&s->mutex);
  *out = view_of(s, SHOAL_SEARCH_TRIES, share_of_budget(s));
  pthread_mutex_unlock(&s->mutex);
}

/* The caller's thread shows how far it is and watches the clock. */
static void watch(shoal_search *s) {
  while (s->busy > 0) {
    if (is_spent(s) || __atomic_load_n(s->stop, __ATOMIC_RELAXED) != 0) {
      __atomic_store_n(&s->halt, 1, __ATOMIC_RELAXED);
      pthread_cond_broadcast(&s->news);
    }
    tell(s, SHOAL_SEARCH_TRIES, share_of_budget(s));
    wait_some(s);
  }
}

shoal_status shoal_search_run(shoal_search *s, shoal_error *err) {
  uint32_t threads = s->options->threads, made = 0;
  pthread_t *thread = calloc(threads, sizeof *thread);
  if (thread == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  pthread_mutex_lock(&s->mutex);
  while (made < threads && pthread_create(&thread[made], NULL, work, s) == 0) made++;
  s->busy = made;
  if (made > 0) watch(s);
  pthread_mutex_unlock(&s->mutex);
  for (uint32_t t = 0; t < made; t++) pthread_join(thread[t], NULL);
  free(thread);
  if (made == 0) return shoal_fail(err, SHOAL_IO, "no thread could be started");
  if (s->status != SHOAL_OK) {
    if (err) *err = s->failure;
    return s->status;
  }
  if (__atomic_load_n(s->stop, __ATOMIC_RELAXED) != 0)
    return shoal_fail(err, SHOAL_STOPPED, "stopped; --resume continues it");
  return SHOAL_OK;
}
