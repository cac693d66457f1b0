/* searcher.c: see searcher.h.
 *
 * The thread inside opens the search, sleeps until it is over or stopped, and makes its end. `mutex` guards
 * the phase and what is beside it; the search has a lock of its own. */
#include "server/searcher.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "search/table_onnx.h"
#include "server/folders.h"

enum { UNITS_AT_ONCE = 256, NEWS_MAX = 4096, NOTES_BYTES_MAX = 16384 };
static const double AGAIN_S = 0.5; /* before a store that is away is asked again */

struct shoal_searcher {
  shoal_searcher_config config;
  char *folder, *data, *test, *out; /* test: a second file of the set, or NULL */
  shoal_search_options options;
  shoal_search_journal journal;
  shoal_problem problem;
  shoal_score_kind metric;
  pthread_t thread;

  pthread_mutex_t mutex;
  pthread_cond_t news;
  shoal_searcher_phase phase;
  bool wants_end, abandoned;
  bool finished, has_model;
  shoal_error error; /* its text is "" without one */
  shoal_text notes;  /* lines for the log, which nobody has taken yet */
  shoal_search *search;
  double begun;         /* later by the time without workers */
  double ticked;        /* the loop's alone */
  shoal_search_end end; /* members 0: there is no model yet */
  double reading;       /* share of the table that was read */
  char **told;          /* what units came to, as JSON, not taken yet */
  size_t told_count;

  volatile sig_atomic_t stop; /* ends reading and the rest at once */
};

/* ---- what units came to ---- */

static void write_unit(const shoal_space *space, const shoal_unit *unit, const char *worker,
                       const shoal_trial_result *result, double time, shoal_text *out) {
  shoal_trial_result brief = *result;
  brief.curve_count = 0;
  shoal_json json;
  shoal_json_begin(&json, out);
  shoal_json_open(&json, NULL, '{');
  shoal_json_int(&json, "unit", (int64_t)unit->number);
  shoal_json_int(&json, "trial", (int64_t)unit->trial);
  shoal_json_int(&json, "rung", unit->rung);
  shoal_json_text(&json, "worker", worker);
  shoal_json_real(&json, "time", time);
  shoal_values_write(space, &unit->values, &json, "settings");
  shoal_trial_result_write(&brief, &json, "result");
  shoal_json_close(&json, '}');
}

static void write_curve(const shoal_trial_result *result, shoal_text *out) {
  shoal_json json;
  shoal_json_begin(&json, out);
  shoal_json_open(&json, NULL, '[');
  for (uint32_t i = 0; i < result->curve_count; i++) {
    shoal_json_open(&json, NULL, '[');
    shoal_json_int(&json, NULL, result->curve[i].epoch);
    shoal_json_real(&json, NULL, result->curve[i].train_loss);
    shoal_json_real(&json, NULL, result->curve[i].score);
    shoal_json_close(&json, ']');
  }
  shoal_json_close(&json, ']');
}

/* For those who watch. What nobody takes is dropped, the oldest first: it is in the store. */
static void tell(shoal_searcher *s, const shoal_text *summary) {
  char *copy = strdup(summary->bytes);
  if (copy == NULL) return;
  pthread_mutex_lock(&s->mutex);
  if (s->told_count == NEWS_MAX) {
    free(s->told[0]);
    memmove(s->told, s->told + 1, --s->told_count * sizeof *s->told);
  }
  s->told[s->told_count++] = copy;
  pthread_mutex_unlock(&s->mutex);
}

static shoal_status keep(void *self, const shoal_unit *unit, const char *worker,
                         const shoal_trial_result *result, shoal_error *err) {
  shoal_searcher *s = self;
  double time = shoal_clock_wall_seconds();
  shoal_text summary, curve;
  write_unit(&shoal_search_brief(s->search)->space, unit, worker, result, time, &summary);
  write_curve(result, &curve);
  const shoal_unit_row row = {.unit = unit->number,
                              .trial = unit->trial,
                              .worker = (char *)worker,
                              .time = time,
                              .summary = summary.bytes,
                              .curve = curve.bytes};
  shoal_status status = summary.failed || curve.failed
                            ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory")
                            : shoal_store_add_unit(s->config.store, s->config.id, &row, err);
  if (status == SHOAL_OK) tell(s, &summary);
  shoal_text_release(&summary);
  shoal_text_release(&curve);
  return status;
}

typedef shoal_status (*take_result)(void *to, uint64_t unit, const shoal_trial_result *result,
                                    shoal_error *err);

static shoal_status replay_row(const shoal_unit_row *row, take_result take, void *to, shoal_error *err) {
  shoal_trial_result *result = malloc(sizeof *result);
  cJSON *json = cJSON_Parse(row->summary);
  shoal_status status =
      result ? shoal_trial_result_read(result, cJSON_GetObjectItemCaseSensitive(json, "result"), err)
             : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (status == SHOAL_OK) status = take(to, row->unit, result, err);
  cJSON_Delete(json);
  free(result);
  return status;
}

static shoal_status replay(void *self, take_result take, void *to, shoal_error *err) {
  const shoal_searcher *s = self;
  shoal_unit_row *rows = calloc(UNITS_AT_ONCE, sizeof *rows);
  if (rows == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  size_t count = UNITS_AT_ONCE;
  uint64_t first = 0;
  shoal_status status = SHOAL_OK;
  while (status == SHOAL_OK && count == UNITS_AT_ONCE) {
    status = shoal_store_units(s->config.store, s->config.id, first, rows, UNITS_AT_ONCE, &count, err);
    if (status == SHOAL_UNAVAILABLE && !__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
      shoal_clock_sleep(AGAIN_S);
      status = SHOAL_OK;
      count = UNITS_AT_ONCE;
      continue;
    }
    if (status != SHOAL_OK) break;
    for (size_t i = 0; i < count && status == SHOAL_OK; i++) status = replay_row(&rows[i], take, to, err);
    if (count > 0) first = rows[count - 1].unit + 1;
    shoal_unit_rows_free(rows, count);
  }
  free(rows);
  return status;
}

bool shoal_searcher_take_news(shoal_searcher *s, shoal_text *json) {
  pthread_mutex_lock(&s->mutex);
  bool any = s->told_count > 0;
  if (any) {
    shoal_text_addf(json, "%s", s->told[0]);
    free(s->told[0]);
    memmove(s->told, s->told + 1, --s->told_count * sizeof *s->told);
  }
  pthread_mutex_unlock(&s->mutex);
  return any;
}

/* ---- the thread inside ---- */

static void set_phase(shoal_searcher *s, shoal_searcher_phase phase) {
  pthread_mutex_lock(&s->mutex);
  s->phase = phase;
  pthread_mutex_unlock(&s->mutex);
  s->config.changed(s->config.self);
}

static void read_some(void *self, const shoal_search_view *view) {
  shoal_searcher *s = self;
  if (view->phase != SHOAL_SEARCH_READS) return;
  pthread_mutex_lock(&s->mutex);
  s->reading = view->share;
  pthread_mutex_unlock(&s->mutex);
}

/* For those who host: what is left of a path is the name of the set and of the file, or a file of the
 * job's. */
static void cut_folders(const shoal_searcher *s, char *text) {
  shoal_cut_path(text, s->data, 2);
  shoal_cut_folder(text, s->folder);
}

/* For the log. */
static void add_note(void *self, const char *text) {
  shoal_searcher *s = self;
  char line[SHOAL_ERROR_TEXT_MAX];
  snprintf(line, sizeof line, "%s", text);
  cut_folders(s, line);
  pthread_mutex_lock(&s->mutex);
  if (s->notes.length < NOTES_BYTES_MAX) shoal_text_addf(&s->notes, "%s\n", line);
  pthread_mutex_unlock(&s->mutex);
}

bool shoal_searcher_take_notes(shoal_searcher *s, shoal_text *lines) {
  pthread_mutex_lock(&s->mutex);
  bool any = s->notes.length > 0;
  if (any) shoal_text_add(lines, s->notes.bytes, s->notes.length);
  shoal_text_clear(&s->notes);
  pthread_mutex_unlock(&s->mutex);
  return any && !lines->failed;
}

static void set_error(shoal_searcher *s, const shoal_error *err) {
  pthread_mutex_lock(&s->mutex);
  s->error = *err;
  cut_folders(s, s->error.text);
  pthread_mutex_unlock(&s->mutex);
}

/* Whether it may go on to its end; false: it was abandoned. */
static bool wait_for_end(shoal_searcher *s) {
  pthread_mutex_lock(&s->mutex);
  while (!s->wants_end && !s->abandoned) pthread_cond_wait(&s->news, &s->mutex);
  bool end = !s->abandoned;
  pthread_mutex_unlock(&s->mutex);
  return end;
}

/* For other runtimes; without it the search is no less finished. */
static void save_onnx(shoal_searcher *s) {
  shoal_predictor *predictor = NULL;
  shoal_text path = {0};
  shoal_error err;
  shoal_text_addf(&path, "%s/model.onnx", s->folder);
  shoal_status status = path.failed ? shoal_fail(&err, SHOAL_NO_MEMORY, "out of memory")
                                    : shoal_predictor_load(&predictor, s->out, &err);
  if (status == SHOAL_OK) status = shoal_predictor_onnx(predictor, path.bytes, &err);
  if (status != SHOAL_OK) {
    if (!path.failed) unlink(path.bytes); /* of the model before */
    shoal_error_prefix(&err, "the model is not there as ONNX: ");
    add_note(s, err.text);
  }
  shoal_predictor_destroy(predictor);
  shoal_text_release(&path);
}

static void make_end(shoal_searcher *s) {
  shoal_search_end end;
  shoal_error err;
  set_phase(s, SHOAL_SEARCHER_GATHERS);
  shoal_status status = shoal_search_finish(s->search, s->out, &end, &err);
  if (status == SHOAL_OK) save_onnx(s);
  if (status != SHOAL_OK && status != SHOAL_STOPPED) set_error(s, &err);
  pthread_mutex_lock(&s->mutex);
  s->has_model = status == SHOAL_OK;
  if (s->has_model) s->end = end;
  pthread_mutex_unlock(&s->mutex);
}

static void *run(void *self) {
  shoal_searcher *s = self;
  shoal_search_calls calls = {.self = s, .remark = add_note, .progress = read_some};
  shoal_error err;
  shoal_status status = shoal_search_open(&s->search, &s->options, &calls, &s->stop, &err);
  if (status == SHOAL_OK) {
    set_phase(s, SHOAL_SEARCHER_OPEN);
    if (wait_for_end(s)) make_end(s);
  } else if (status != SHOAL_STOPPED) {
    set_error(s, &err);
  }
  set_phase(s, SHOAL_SEARCHER_ENDED);
  return NULL;
}

/* ---- starting and ending ---- */

/* "" is as good as nothing. */
static const char *said(const shoal_text *text) { return text->length > 0 ? text->bytes : NULL; }

static shoal_status fill_options(shoal_searcher *s, shoal_error *err) {
  const shoal_search_spec *spec = s->config.spec;
  shoal_text record = {0};
  shoal_text_addf(&record, "%s/search.json", s->folder);
  if (record.failed) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  s->journal = (shoal_search_journal){.self = s, .keep = keep, .replay = replay};
  s->options = (shoal_search_options){
      .path = s->data,
      .test = s->test,
      .target = spec->target.bytes,
      .columns = spec->columns,
      .columns_count = spec->columns_count,
      .space = said(&spec->space),
      .space_name = "space",
      .time_column = said(&spec->time_column),
      .scheduler = spec->scheduler,
      .folds = spec->folds,
      .valid_share = spec->valid_share,
      .test_share = spec->test_share,
      .epochs = spec->epochs,
      .trials = spec->trials,
      .seconds = spec->budget_s > 0 ? fmax(1, spec->budget_s - s->config.spent_s) : 0,
      .threads = s->config.threads,
      .seed = spec->seed,
      .folder = s->folder,
      .resume = shoal_file_exists(record.bytes),
      .journal = &s->journal,
      .lease_s = s->config.lease_s > 0 ? s->config.lease_s : SHOAL_LEASE_S,
  };
  shoal_text_release(&record);
  if (spec->metric.length > 0 && shoal_score_parse(spec->metric.bytes, &s->metric))
    s->options.metric = &s->metric;
  if (spec->problem.length > 0) {
    s->problem = strcmp(spec->problem.bytes, "regression") == 0 ? SHOAL_REGRESSION : SHOAL_MULTICLASS;
    s->options.problem = &s->problem;
  }
  if (spec->dialect.length == 0) return SHOAL_OK;
  return shoal_dialect_say(&s->options.dialect, "dialect", spec->dialect.bytes, err);
}

/* A set of two files is "TRAIN.csv,TEST.csv". */
static bool copy_paths(shoal_searcher *s) {
  s->folder = strdup(s->config.folder);
  s->data = strdup(s->config.data);
  s->told = calloc(NEWS_MAX, sizeof *s->told);
  shoal_text out = {0};
  shoal_text_addf(&out, "%s/model.safetensors", s->config.folder);
  s->out = out.failed ? NULL : strdup(out.bytes);
  shoal_text_release(&out);
  char *comma = s->data ? strstr(s->data, ".csv,") : NULL;
  if (comma != NULL) {
    comma[strlen(".csv")] = 0;
    s->test = strdup(comma + strlen(".csv,"));
  }
  return s->folder && s->data && s->told && s->out && (comma == NULL || s->test);
}

static void release(shoal_searcher *s) {
  shoal_search_close(s->search);
  for (size_t i = 0; i < s->told_count; i++) free(s->told[i]);
  free(s->told);
  free(s->folder);
  free(s->data);
  free(s->test);
  free(s->out);
  pthread_cond_destroy(&s->news);
  pthread_mutex_destroy(&s->mutex);
  shoal_text_release(&s->notes);
  free(s);
}

shoal_status shoal_searcher_start(shoal_searcher **out, const shoal_searcher_config *config,
                                  shoal_error *err) {
  *out = NULL;
  shoal_searcher *s = calloc(1, sizeof *s);
  if (s == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  s->config = *config;
  s->begun = shoal_clock_seconds();
  s->reading = NAN;
  pthread_mutex_init(&s->mutex, NULL);
  pthread_cond_init(&s->news, NULL);
  shoal_status status =
      copy_paths(s) ? fill_options(s, err) : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (status == SHOAL_OK && pthread_create(&s->thread, NULL, run, s) != 0)
    status = shoal_fail(err, SHOAL_IO, "no thread could be started");
  if (status != SHOAL_OK) {
    release(s);
    return status;
  }
  *out = s;
  return SHOAL_OK;
}

static shoal_status keep_nothing(void *self, const shoal_unit *unit, const char *worker,
                                 const shoal_trial_result *result, shoal_error *err) {
  (void)self, (void)unit, (void)worker, (void)result, (void)err;
  return SHOAL_OK;
}

static shoal_status replay_nothing(void *self, take_result take, void *to, shoal_error *err) {
  (void)self, (void)take, (void)to, (void)err;
  return SHOAL_OK;
}

shoal_status shoal_searcher_try(const shoal_search_spec *spec, const char *data, shoal_error *err) {
  const char *place = getenv("TMPDIR");
  shoal_text folder = {0};
  shoal_text_addf(&folder, "%s/shoal-try-XXXXXX", place != NULL && place[0] != 0 ? place : "/tmp");
  shoal_searcher *s = calloc(1, sizeof *s);
  shoal_status status = SHOAL_OK;
  if (folder.failed || s == NULL)
    status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  else if (mkdtemp(folder.bytes) == NULL)
    status = shoal_fail(err, SHOAL_IO, "no temporary folder could be made");
  if (status != SHOAL_OK) {
    shoal_text_release(&folder);
    free(s);
    return status;
  }
  s->config = (shoal_searcher_config){.spec = spec, .folder = folder.bytes, .data = data, .threads = 1};
  pthread_mutex_init(&s->mutex, NULL);
  pthread_cond_init(&s->news, NULL);
  status = copy_paths(s) ? fill_options(s, err) : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  s->journal = (shoal_search_journal){.self = s, .keep = keep_nothing, .replay = replay_nothing};
  const shoal_search_calls calls = {.self = s};
  if (status == SHOAL_OK) status = shoal_search_open(&s->search, &s->options, &calls, &s->stop, err);
  release(s);
  (void)shoal_remove_folder(folder.bytes, NULL);
  shoal_text_release(&folder);
  return status;
}

static void end(shoal_searcher *s, bool abandoned) {
  pthread_mutex_lock(&s->mutex);
  s->wants_end = true;
  s->abandoned = s->abandoned || abandoned;
  bool reads = s->phase == SHOAL_SEARCHER_READS;
  pthread_cond_broadcast(&s->news);
  pthread_mutex_unlock(&s->mutex);
  if (abandoned || reads) __atomic_store_n(&s->stop, 1, __ATOMIC_RELAXED);
}

void shoal_searcher_stop(shoal_searcher *s) { end(s, false); }
void shoal_searcher_abandon(shoal_searcher *s) { end(s, true); }
void shoal_searcher_wait(shoal_searcher *s) { pthread_join(s->thread, NULL); }
void shoal_searcher_destroy(shoal_searcher *s) { release(s); }

/* ---- what the loop asks ---- */

/* Once the end is wanted nothing comes in any more: the thread inside may read the trials already. */
static shoal_searcher_phase phase_of(shoal_searcher *s) {
  pthread_mutex_lock(&s->mutex);
  shoal_searcher_phase phase = s->phase;
  if (phase == SHOAL_SEARCHER_OPEN && s->wants_end) phase = SHOAL_SEARCHER_GATHERS;
  pthread_mutex_unlock(&s->mutex);
  return phase;
}

void shoal_searcher_look(shoal_searcher *s, shoal_searcher_view *out) {
  pthread_mutex_lock(&s->mutex);
  *out =
      (shoal_searcher_view){.phase = s->phase,
                            .finished = s->finished,
                            .has_model = s->has_model,
                            .spent_s = s->config.spent_s + shoal_clock_seconds() - s->begun,
                            .members = s->end.members,
                            .test_score = NAN,
                            .valid_score = s->has_model ? s->end.valid_score : NAN,
                            .estimate = s->has_model ? s->end.estimate : (shoal_estimate){NAN, NAN},
                            .test_rows = s->end.has_test ? s->end.test_rows : 0,
                            .search = {.phase = SHOAL_SEARCH_READS, .share = s->reading, .best_score = NAN}};
  const shoal_search_end made = s->end;
  if (s->phase == SHOAL_SEARCHER_ENDED) snprintf(out->error, sizeof out->error, "%s", s->error.text);
  pthread_mutex_unlock(&s->mutex);
  if (out->phase == SHOAL_SEARCHER_READS || s->search == NULL) return;
  shoal_score_kind metric = shoal_search_brief(s->search)->metric;
  shoal_search_look(s->search, &out->search);
  out->metric = shoal_score_name(metric);
  out->higher_is_better = shoal_score_higher_is_better(metric);
  if (made.has_test) out->test_score = made.test.of[metric];
}

/* Both clocks go on from where they stood. */
static void wait_unpaid(shoal_searcher *s, double seconds) {
  pthread_mutex_lock(&s->mutex);
  s->begun += seconds;
  pthread_mutex_unlock(&s->mutex);
  shoal_search_waited(s->search, seconds);
}

void shoal_searcher_tick(shoal_searcher *s, bool has_workers) {
  double now = shoal_clock_seconds(), before = s->ticked;
  shoal_searcher_phase phase = phase_of(s);
  s->ticked = phase == SHOAL_SEARCHER_OPEN ? now : 0;
  if (phase != SHOAL_SEARCHER_OPEN) return;
  if (!has_workers && before > 0) wait_unpaid(s, now - before);
  if (!shoal_search_tick(s->search)) return;
  pthread_mutex_lock(&s->mutex);
  s->finished = !s->wants_end;
  s->wants_end = true;
  pthread_cond_broadcast(&s->news);
  pthread_mutex_unlock(&s->mutex);
}

static shoal_status check_open(shoal_searcher *s, shoal_error *err) {
  shoal_searcher_phase phase = phase_of(s);
  if (phase == SHOAL_SEARCHER_OPEN) return SHOAL_OK;
  return shoal_fail(err, SHOAL_CONFLICT,
                    phase == SHOAL_SEARCHER_READS ? "the table is still being read" : "the search is over");
}

shoal_status shoal_searcher_brief(shoal_searcher *s, shoal_text *json, shoal_error *err) {
  shoal_status status = check_open(s, err);
  if (status == SHOAL_OK) shoal_brief_write(shoal_search_brief(s->search), json);
  return status == SHOAL_OK && json->failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory") : status;
}

/* "WHO" and a signature, as hexadecimal digits. */
static void make_ticket(const shoal_searcher *s, uint64_t unit, uint32_t attempt, uint64_t who,
                        char out[SHOAL_TICKET_CHARS + 1]) {
  char text[128];
  uint8_t signature[SHOAL_SHA256_BYTES];
  int length = snprintf(text, sizeof text, "ticket %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu64,
                        s->config.id, unit, attempt, who);
  shoal_secret_sign(s->config.secret, text, (size_t)length, signature);
  snprintf(out, SHOAL_TICKET_CHARS + 1, "%016" PRIx64, who);
  shoal_hex(signature, 16, out + 16);
}

bool shoal_searcher_gave(const shoal_searcher *s, uint64_t unit, uint32_t attempt, const char *ticket,
                         uint64_t *who) {
  char good[SHOAL_TICKET_CHARS + 1];
  if (strlen(ticket) != SHOAL_TICKET_CHARS || sscanf(ticket, "%16" SCNx64, who) != 1) return false;
  make_ticket(s, unit, attempt, *who, good);
  return CRYPTO_memcmp(ticket, good, SHOAL_TICKET_CHARS) == 0;
}

static void write_taken(const shoal_searcher *s, const shoal_taken *taken, uint64_t who, shoal_text *out) {
  const shoal_unit *unit = &taken->unit;
  char ticket[SHOAL_TICKET_CHARS + 1];
  make_ticket(s, unit->number, taken->attempt, who, ticket);
  shoal_json json;
  shoal_json_begin(&json, out);
  shoal_json_open(&json, NULL, '{');
  shoal_json_int(&json, "unit", (int64_t)unit->number);
  shoal_json_int(&json, "attempt", taken->attempt);
  shoal_json_text(&json, "ticket", ticket);
  shoal_json_int(&json, "trial", (int64_t)unit->trial);
  shoal_json_int(&json, "rung", unit->rung);
  shoal_json_int(&json, "epochs_from", unit->epochs_from);
  shoal_json_int(&json, "epochs_to", unit->epochs_to);
  shoal_json_real(&json, "lease_s", s->options.lease_s);
  shoal_values_write(&shoal_search_brief(s->search)->space, &unit->values, &json, "settings");
  shoal_json_close(&json, '}');
}

shoal_status shoal_searcher_take(shoal_searcher *s, const char *worker, uint64_t who, shoal_next *next,
                                 shoal_taken *taken, shoal_text *json, shoal_error *err) {
  shoal_searcher_phase phase = phase_of(s);
  *next = phase == SHOAL_SEARCHER_READS ? SHOAL_NEXT_WAITS : SHOAL_NEXT_NONE;
  if (phase != SHOAL_SEARCHER_OPEN) return SHOAL_OK;
  shoal_error why = {0};
  *next = shoal_search_take(s->search, worker, taken, &why);
  if (why.status != SHOAL_OK) {
    if (err) *err = why;
    return why.status;
  }
  if (*next == SHOAL_NEXT_UNIT) write_taken(s, taken, who, json);
  return SHOAL_OK;
}

bool shoal_searcher_beat(shoal_searcher *s, uint64_t unit, uint32_t attempt) {
  return phase_of(s) == SHOAL_SEARCHER_OPEN && shoal_search_beat(s->search, unit, attempt);
}

static uint64_t count_samples(const shoal_searcher *s, uint64_t unit, const shoal_trial_result *result) {
  shoal_unit about;
  if (!shoal_board_unit(shoal_search_board(s->search), unit, &about)) return 0;
  return shoal_trial_samples(shoal_search_brief(s->search), shoal_search_split(s->search), &about, result);
}

shoal_status shoal_searcher_done(shoal_searcher *s, uint64_t unit, const char *worker, const cJSON *json,
                                 uint64_t *samples, shoal_error *err) {
  *samples = 0;
  shoal_status status = check_open(s, err);
  if (status != SHOAL_OK) return status;
  shoal_trial_result *result = malloc(sizeof *result);
  bool counts = false;
  status =
      result ? shoal_trial_result_read(result, json, err) : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (status == SHOAL_OK) status = shoal_search_done(s->search, unit, worker, result, &counts, err);
  if (status == SHOAL_OK && !counts)
    status = shoal_fail(err, SHOAL_CONFLICT, "unit %" PRIu64 " has its result, or was never given out", unit);
  if (status == SHOAL_OK) *samples = count_samples(s, unit, result);
  free(result);
  return status;
}

void shoal_searcher_failed(shoal_searcher *s, uint64_t unit, uint32_t attempt, const char *why) {
  if (phase_of(s) == SHOAL_SEARCHER_OPEN) shoal_search_failed(s->search, unit, attempt, why, false);
}

void shoal_searcher_give_back(shoal_searcher *s, uint64_t unit, uint32_t attempt) {
  if (phase_of(s) == SHOAL_SEARCHER_OPEN) shoal_search_failed(s->search, unit, attempt, "given back", true);
}

bool shoal_searcher_reads(shoal_searcher *s) { return phase_of(s) == SHOAL_SEARCHER_READS; }

uint64_t shoal_searcher_held(shoal_searcher *s, uint64_t unit, uint32_t attempt) {
  shoal_unit about;
  if (!shoal_searcher_beat(s, unit, attempt)) return 0;
  return shoal_board_unit(shoal_search_board(s->search), unit, &about) ? about.trial : 0;
}

void shoal_searcher_state_path(const shoal_searcher *s, uint64_t trial, shoal_text *out) {
  shoal_text_addf(out, "%s/trials/%" PRIu64 ".safetensors", s->folder, trial);
}
