/* jobs.c: see jobs.h. */
#include "server/jobs.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "server/folders.h"
#include "server/jobs_internal.h"

enum {
  PEERS_MAX = SHOAL_SPEC_WORKERS_MAX + 8,
  SUMS_MAX = SHOAL_SPEC_WORKERS_MAX + 24,
  LIST_AT_ONCE = 64,
};
static const double LOOK_S = 0.25; /* how often what runs is looked at */
static const double STORE_S = 5;   /* how often progress goes into the store */

/* ---- open jobs ---- */

shoal_open_job *shoal_jobs_first(shoal_jobs *jobs) { return jobs->first; }

shoal_open_job *shoal_jobs_find(shoal_jobs *jobs, uint64_t id) {
  shoal_open_job *job = jobs->first;
  while (job != NULL && job->id != id) job = job->next;
  return job;
}

static void free_job(shoal_open_job *job) {
  if (job->runner != NULL) shoal_runner_destroy(job->runner);
  if (job->searcher != NULL) shoal_searcher_destroy(job->searcher);
  shoal_search_spec_release(&job->search);
  shoal_spec_release(&job->spec);
  free(job->name);
  free(job->host);
  free(job->peers);
  free(job->credited);
  free(job);
}

static void unlink_job(shoal_jobs *jobs, shoal_open_job *job) {
  shoal_open_job **at = &jobs->first;
  while (*at != job) at = &(*at)->next;
  *at = job->next;
}

static uint32_t count_open(const shoal_jobs *jobs) {
  uint32_t count = 0;
  for (const shoal_open_job *job = jobs->first; job != NULL; job = job->next) count++;
  return count;
}

uint64_t shoal_jobs_count_in(const cJSON *json, const char *key) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
  return cJSON_IsNumber(item) && item->valuedouble >= 0 ? (uint64_t)item->valuedouble : 0;
}

static double real_in(const cJSON *json, const char *key) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
  return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

/* What a search had found, likewise; json may be NULL. */
static void recall_search(shoal_searcher_view *found, const cJSON *json) {
  const cJSON *name = cJSON_GetObjectItemCaseSensitive(json, "metric");
  shoal_score_kind metric;
  found->spent_s = fmax(0, real_in(json, "spent_s")); /* 0 of NaN */
  found->search.trials = shoal_jobs_count_in(json, "trials");
  found->search.finished_units = shoal_jobs_count_in(json, "units");
  found->search.best_score = real_in(json, "best_score");
  found->search.best = isfinite(found->search.best_score) ? shoal_jobs_count_in(json, "best") : 0;
  found->members = (uint32_t)shoal_jobs_count_in(json, "members");
  found->test_score = real_in(json, "test_score");
  found->test_rows = shoal_jobs_count_in(json, "test_rows");
  if (!cJSON_IsString(name) || !shoal_score_parse(name->valuestring, &metric)) return;
  found->metric = shoal_score_name(metric);
  found->higher_is_better = shoal_score_higher_is_better(metric);
}

/* How far a job was, until its runner knows better. */
static void recall_progress(shoal_open_job *job, const char *details) {
  cJSON *json = cJSON_Parse(details);
  const cJSON *progress = cJSON_GetObjectItemCaseSensitive(json, "progress");
  job->view.weights = shoal_jobs_count_in(json, "weights");
  job->view.samples = shoal_jobs_count_in(json, "samples");
  job->view.rounds = shoal_jobs_count_in(json, "rounds");
  job->view.progress.epoch = shoal_jobs_count_in(progress, "epoch");
  job->view.progress.round = shoal_jobs_count_in(progress, "round");
  job->view.progress.step = shoal_jobs_count_in(progress, "step");
  if (!job->is_search) job->view.progress.steps = job->view.rounds * job->spec.parsed->recipe.epochs;
  recall_search(&job->found, cJSON_GetObjectItemCaseSensitive(json, "search"));
  cJSON_Delete(json);
}

/* What a job has of any kind of spec, which is taken over. */
static bool take_spec(shoal_open_job *job, shoal_any_spec *spec) {
  job->is_search = spec->is_search;
  if (!spec->is_search) {
    job->spec = spec->train;
  } else {
    job->search = spec->search;
    job->spec = (shoal_spec){.workers_min = job->search.workers_min, .workers_max = job->search.workers_max};
    shoal_text_addf(&job->spec.name, "%s", job->search.name.bytes);
    shoal_text_addf(&job->spec.data, "%s", job->search.data.bytes);
  }
  *spec = (shoal_any_spec){0};
  return !job->spec.name.failed && !job->spec.data.failed;
}

/* Puts a row of the store among the open ones, behind those that came before it. *spec is taken over. */
static shoal_status take_up(shoal_jobs *jobs, const shoal_job_row *row, shoal_any_spec *spec,
                            shoal_error *err) {
  shoal_open_job *job = calloc(1, sizeof *job);
  if (job != NULL) {
    job->name = strdup(row->name);
    job->host = strdup(row->host);
    job->peers = calloc(PEERS_MAX, sizeof *job->peers);
    job->credited = calloc(SUMS_MAX, sizeof *job->credited);
  }
  if (job == NULL || job->name == NULL || job->host == NULL || job->peers == NULL || job->credited == NULL ||
      !take_spec(job, spec)) {
    if (job != NULL) free_job(job);
    return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  }
  job->id = row->id;
  job->is_private = row->is_private;
  job->state = SHOAL_JOB_WAITING;
  job->last_step = UINT64_MAX;
  job->created = row->created;
  job->started = row->started;
  job->view.progress = (shoal_progress_view){
      .loss = NAN, .metric = NAN, .held_out_loss = NAN, .held_out_metric = NAN, .eta_s = NAN};
  job->found.search.best_score = NAN;
  recall_progress(job, row->progress);
  shoal_open_job **at = &jobs->first;
  while (*at != NULL && (*at)->id < job->id) at = &(*at)->next;
  job->next = *at;
  *at = job;
  return SHOAL_OK;
}

/* A pair of ports that no open job has; 0: none is left. */
static uint16_t find_port(const shoal_jobs *jobs) {
  for (uint16_t port = 1; port < 2 * SHOAL_JOBS_OPEN_MAX; port += 2) {
    bool taken = false;
    for (const shoal_open_job *job = jobs->first; job != NULL; job = job->next) taken |= job->port == port;
    if (!taken) return port;
  }
  return 0;
}

/* ---- specs of both kinds ---- */

shoal_status shoal_any_spec_parse(shoal_any_spec *out, const char *json, size_t length,
                                  shoal_spec_fault *fault, shoal_error *err) {
  *out = (shoal_any_spec){.is_search = shoal_search_spec_is(json, length)};
  shoal_status status = out->is_search ? shoal_search_spec_parse(&out->search, json, length, fault, err)
                                       : shoal_spec_parse(&out->train, json, length, fault, err);
  if (status != SHOAL_OK) *out = (shoal_any_spec){0};
  return status;
}

void shoal_any_spec_release(shoal_any_spec *spec) {
  shoal_spec_release(&spec->train);
  shoal_search_spec_release(&spec->search);
}

void shoal_any_spec_write(const shoal_any_spec *spec, shoal_json *json) {
  if (spec->is_search)
    shoal_search_spec_write(&spec->search, json);
  else
    shoal_spec_write(&spec->train, true, json);
}

/* ---- looking at what runs ---- */

static void store_details(shoal_jobs *jobs, shoal_open_job *job) {
  shoal_text text;
  shoal_json json;
  shoal_text_init(&text);
  shoal_json_init(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_jobs_write_details(job, false, &json);
  shoal_json_close(&json, '}');
  if (!text.failed) (void)shoal_store_set_job_progress(jobs->config.store, job->id, text.bytes, NULL);
  shoal_text_release(&text);
  job->stored_at = shoal_clock_seconds();
}

static void set_state(shoal_jobs *jobs, shoal_open_job *job, shoal_job_state state, const char *reason) {
  double now = shoal_clock_wall_seconds();
  bool ends = state != SHOAL_JOB_WAITING && state != SHOAL_JOB_RUNNING;
  if (state == SHOAL_JOB_RUNNING && job->started == 0) job->started = now;
  job->state = state;
  (void)shoal_store_set_job_state(jobs->config.store, job->id, state, reason, job->started, ends ? now : 0,
                                  NULL);
}

/* Puts points into the store, in their order. Where one goes back, or a runner begins, what the store has
 * from there on never was. The end of an epoch has the step of its last round, which stays. */
static void store_points(shoal_jobs *jobs, shoal_open_job *job, const shoal_point *points, size_t count) {
  shoal_store *store = jobs->config.store;
  for (size_t i = 0, next; i < count; i = next) {
    const shoal_point *first = &points[i];
    if (first->step < job->last_step)
      (void)shoal_store_cut_points(store, job->id, first->kind == 0 ? first->step - 1 : first->step, NULL);
    for (next = i + 1; next < count && points[next].step >= points[next - 1].step;) next++;
    (void)shoal_store_add_points(store, job->id, first, next - i, NULL);
    job->last_step = points[next - 1].step;
  }
}

static void take_points(shoal_jobs *jobs, shoal_open_job *job) {
  size_t count;
  while ((count = shoal_runner_take_points(job->runner, jobs->points, SHOAL_POINTS_AT_ONCE)) > 0) {
    store_points(jobs, job, jobs->points, count);
    jobs->config.calls.points(jobs->config.calls.self, job, jobs->points, count);
  }
}

static void add_line(shoal_jobs *jobs, shoal_open_job *job, double time, const char *text) {
  shoal_log_row row;
  size_t count = 0;
  if (shoal_store_add_log(jobs->config.store, job->id, time, text, NULL) != SHOAL_OK ||
      shoal_store_logs(jobs->config.store, job->id, 0, &row, 1, &count, NULL) != SHOAL_OK || count == 0)
    return;
  jobs->config.calls.line(jobs->config.calls.self, job, &row);
  shoal_log_rows_free(&row, 1);
}

static void take_notes(shoal_jobs *jobs, shoal_open_job *job) {
  double time;
  char *text;
  while (shoal_runner_take_note(job->runner, &time, &text)) {
    add_line(jobs, job, time, text);
    free(text);
  }
}

/* What is credited of a name; NULL: there is no room for more names. */
static shoal_worker_sum *credited_of(shoal_open_job *job, const char *name) {
  uint32_t i = 0;
  while (i < job->credited_count && strcmp(job->credited[i].name, name) != 0) i++;
  if (i == SUMS_MAX) return NULL;
  if (i == job->credited_count) {
    job->credited[i] = (shoal_worker_sum){0};
    snprintf(job->credited[i].name, sizeof job->credited[i].name, "%s", name);
    job->credited_count++;
  }
  return &job->credited[i];
}

/* Samples that so many parts have, on average: what is counted in parts adds up without a loss. */
static uint64_t samples_of(const shoal_open_job *job, uint64_t parts) {
  return (uint64_t)((double)parts * job->view.part_samples + 0.5);
}

/* Puts into the store what workers have done since the last time. */
static void credit(shoal_jobs *jobs, shoal_open_job *job) {
  static shoal_contribution rows[SUMS_MAX];
  static shoal_worker_sum sums[SUMS_MAX], *places[SUMS_MAX];
  uint32_t count = shoal_runner_sums(job->runner, sums, SUMS_MAX);
  size_t rows_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    shoal_worker_sum *known = sums[i].parts > 0 ? credited_of(job, sums[i].name) : NULL;
    if (known == NULL || sums[i].parts <= known->parts) continue;
    places[rows_count] = &sums[i];
    rows[rows_count++] =
        (shoal_contribution){.worker = sums[i].name,
                             .units = sums[i].units - known->units,
                             .samples = samples_of(job, sums[i].parts) - samples_of(job, known->parts),
                             .seconds = fmax(0, sums[i].seconds - known->seconds)};
  }
  if (rows_count == 0 ||
      shoal_store_add_contributions(jobs->config.store, job->id, rows, rows_count, NULL) != SHOAL_OK)
    return; /* what the store did not take is credited with the next */
  for (size_t i = 0; i < rows_count; i++) *credited_of(job, places[i]->name) = *places[i];
}

static void teach_all(shoal_jobs *jobs, const shoal_standing *standing) {
  for (shoal_open_job *job = jobs->first; job != NULL; job = job->next)
    if (job->runner != NULL) shoal_runner_teach(job->runner, standing);
}

/* What a chief learns of somebody is kept, and a ban is all jobs'. */
static void take_lessons(shoal_jobs *jobs, shoal_open_job *job) {
  shoal_runner_lesson lesson;
  while (shoal_runner_take_lesson(job->runner, &lesson))
    if (shoal_standings_learn(jobs->standings, &lesson.standing, lesson.name, lesson.why, job->id))
      teach_all(jobs, &lesson.standing);
}

shoal_standings *shoal_jobs_standings(shoal_jobs *jobs) { return jobs->standings; }

void shoal_jobs_blame(shoal_jobs *jobs, uint64_t who, uint64_t by) {
  shoal_standing standing;
  if (shoal_standings_blame(jobs->standings, who, by, &standing)) teach_all(jobs, &standing);
}

shoal_status shoal_jobs_lift_ban(shoal_jobs *jobs, uint64_t id, const char *by, shoal_error *err) {
  shoal_standing standing;
  shoal_status status = shoal_standings_lift(jobs->standings, id, by, &standing, err);
  if (status == SHOAL_OK) teach_all(jobs, &standing);
  return status;
}

static void look_at_peers(shoal_jobs *jobs, shoal_open_job *job) {
  credit(jobs, job);
  take_lessons(jobs, job);
  job->peers_count = shoal_runner_peers(job->runner, job->peers, PEERS_MAX);
}

static void close_job(shoal_jobs *jobs, shoal_open_job *job) {
  uint64_t id = job->id;
  unlink_job(jobs, job);
  free_job(job);
  jobs->config.calls.closed(jobs->config.calls.self, id);
}

/* ---- searches ---- */

static void take_trials(shoal_jobs *jobs, shoal_open_job *job) {
  shoal_text row = {0};
  while (shoal_searcher_take_news(job->searcher, &row)) {
    jobs->config.calls.trial(jobs->config.calls.self, job, &row);
    shoal_text_clear(&row);
  }
  shoal_text_release(&row);
}

static void take_remarks(shoal_jobs *jobs, shoal_open_job *job) {
  shoal_text lines = {0};
  if (shoal_searcher_take_notes(job->searcher, &lines)) {
    char *rest = lines.bytes;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
      if (line[0] != 0) add_line(jobs, job, shoal_clock_wall_seconds(), line);
  }
  shoal_text_release(&lines);
}

/* The searcher has ended: what becomes of the job? */
static void conclude_search(shoal_jobs *jobs, shoal_open_job *job) {
  const shoal_searcher_view *found = &job->found;
  bool broken = found->error[0] != 0;
  shoal_job_state state = broken            ? SHOAL_JOB_FAILED
                          : found->finished ? SHOAL_JOB_FINISHED
                                            : SHOAL_JOB_STOPPED;
  store_details(jobs, job);
  add_line(jobs, job, shoal_clock_wall_seconds(),
           broken            ? found->error
           : found->finished ? "finished"
                             : "stopped");
  set_state(jobs, job, state, found->error);
  close_job(jobs, job);
}

/* What was found before stays known until the searcher knows it, too: it may never come to that. */
static void look_at_found(shoal_open_job *job) {
  shoal_searcher_view before = job->found, *found = &job->found;
  shoal_searcher_look(job->searcher, found);
  if (found->metric != NULL) return;
  found->search.trials = before.search.trials;
  found->search.finished_units = before.search.finished_units;
  found->search.best = before.search.best;
  found->search.best_score = before.search.best_score;
  found->metric = before.metric;
  found->higher_is_better = before.higher_is_better;
  found->members = before.members;
  found->test_score = before.test_score;
  found->test_rows = before.test_rows;
}

static void look_at_search(shoal_jobs *jobs, shoal_open_job *job, double now) {
  shoal_searcher_phase before = job->found.phase;
  uint64_t units = job->found.search.finished_units, trials = job->found.search.trials;
  shoal_searcher_tick(job->searcher, job->workers + job->helpers > 0);
  look_at_found(job);
  take_trials(jobs, job);
  take_remarks(jobs, job);
  if (job->found.phase == SHOAL_SEARCHER_ENDED) {
    shoal_searcher_wait(job->searcher);
    conclude_search(jobs, job);
    return;
  }
  shoal_job_state state = job->workers + job->helpers > 0 ? SHOAL_JOB_RUNNING : SHOAL_JOB_WAITING;
  bool changed = state != job->state || before != job->found.phase ||
                 units != job->found.search.finished_units || trials != job->found.search.trials;
  if (state != job->state && !job->stopping) set_state(jobs, job, state, "");
  if (now - job->stored_at >= STORE_S) store_details(jobs, job);
  if (changed) jobs->config.calls.changed(jobs->config.calls.self, job);
}

shoal_searcher *shoal_jobs_searcher(shoal_jobs *jobs, uint64_t id) {
  shoal_open_job *job = shoal_jobs_find(jobs, id);
  return job != NULL ? job->searcher : NULL;
}

void shoal_jobs_credit_unit(shoal_jobs *jobs, uint64_t id, const char *worker, uint64_t samples,
                            double seconds) {
  const shoal_contribution row = {
      .worker = (char *)worker, .units = 1, .samples = samples, .seconds = seconds};
  (void)shoal_store_add_contributions(jobs->config.store, id, &row, 1, NULL);
}

/* ---- trainings ---- */

/* The runner has ended: what becomes of the job? */
static void conclude(shoal_jobs *jobs, shoal_open_job *job) {
  const shoal_runner_view *view = &job->view;
  store_details(jobs, job);
  bool cut = view->error[0] == 0 && (view->outcome == SHOAL_INTERRUPTED || view->outcome == SHOAL_CUT_OFF);
  if (cut) {
    add_line(jobs, job, shoal_clock_wall_seconds(), "stopped");
    set_state(jobs, job, SHOAL_JOB_STOPPED, "");
  } else if (view->finished) {
    add_line(jobs, job, shoal_clock_wall_seconds(), "finished");
    set_state(jobs, job, SHOAL_JOB_FINISHED, view->outcome == SHOAL_STOPPED_EARLY ? "early stopping" : "");
  } else {
    add_line(jobs, job, shoal_clock_wall_seconds(), view->error);
    set_state(jobs, job, SHOAL_JOB_FAILED, view->error);
  }
  close_job(jobs, job);
}

static void look_at(shoal_jobs *jobs, shoal_open_job *job, double now) {
  shoal_progress_view before = job->view.progress;
  shoal_runner_phase phase = job->view.phase;
  shoal_runner_view view;
  shoal_runner_look(job->runner, &view);
  if (view.phase != SHOAL_RUNNER_PREPARING) job->view = view; /* until then, what was known before */
  if (job->workers == 0) {                                    /* what was measured last is true no more */
    job->view.progress.samples_per_s = 0;
    job->view.progress.eta_s = NAN;
  }
  take_points(jobs, job);
  take_notes(jobs, job);
  look_at_peers(jobs, job);
  if (job->view.phase == SHOAL_RUNNER_ENDED) {
    shoal_runner_wait(job->runner);
    conclude(jobs, job);
    return;
  }
  shoal_job_state state = job->workers > 0 ? SHOAL_JOB_RUNNING : SHOAL_JOB_WAITING;
  bool changed = state != job->state || before.step != job->view.progress.step || phase != job->view.phase;
  if (state != job->state && !job->stopping) set_state(jobs, job, state, "");
  if (now - job->stored_at >= STORE_S) store_details(jobs, job);
  if (changed) jobs->config.calls.changed(jobs->config.calls.self, job);
}

double shoal_jobs_tick(shoal_jobs *jobs, double now) {
  if (now < jobs->next_look) return jobs->next_look;
  for (shoal_open_job *job = jobs->first, *next; job != NULL; job = next) {
    next = job->next;
    if (job->searcher != NULL)
      look_at_search(jobs, job, now);
    else if (job->runner != NULL)
      look_at(jobs, job, now);
    else if (job->view.phase == SHOAL_RUNNER_ENDED)
      conclude(jobs, job);
  }
  jobs->next_look = now + LOOK_S;
  return jobs->next_look;
}

/* ---- from state to state ---- */

static void runner_changed(void *self) {
  shoal_jobs *jobs = self;
  jobs->config.calls.wake(jobs->config.calls.self);
}

static shoal_status folder_of(const shoal_jobs *jobs, uint64_t id, shoal_text *out, shoal_error *err) {
  shoal_text_addf(out, "%s/%" PRIu64, jobs->config.folder, id);
  return out->failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory") : SHOAL_OK;
}

static shoal_status start_runner(shoal_jobs *jobs, shoal_open_job *job, const char *folder, const char *data,
                                 shoal_error *err) {
  job->port = find_port(jobs);
  if (job->port == 0) return shoal_fail(err, SHOAL_LIMIT, "%d jobs run already", SHOAL_JOBS_OPEN_MAX);
  uint32_t standings_count;
  const shoal_standing *standings = shoal_standings_all(jobs->standings, &standings_count);
  const shoal_runner_config config = {.id = job->id,
                                      .spec = &job->spec,
                                      .folder = folder,
                                      .data = data,
                                      .data_dir = jobs->config.named_dir,
                                      .threads = jobs->config.threads,
                                      .port = job->port,
                                      .standings = standings,
                                      .standings_count = standings_count,
                                      .self = jobs,
                                      .changed = runner_changed};
  return shoal_runner_start(&job->runner, &config, err);
}

static shoal_status start_searcher(shoal_jobs *jobs, shoal_open_job *job, const char *folder,
                                   const char *data, shoal_error *err) {
  const shoal_searcher_config config = {.id = job->id,
                                        .spec = &job->search,
                                        .folder = folder,
                                        .data = data,
                                        .threads = jobs->config.threads,
                                        .spent_s = job->found.spent_s,
                                        .lease_s = jobs->config.lease_s,
                                        .store = jobs->config.store,
                                        .self = jobs,
                                        .changed = runner_changed};
  return shoal_searcher_start(&job->searcher, &config, err);
}

static shoal_status start(shoal_jobs *jobs, shoal_open_job *job, shoal_error *err) {
  shoal_text folder = {0}, data = {0};
  shoal_status status = folder_of(jobs, job->id, &folder, err);
  if (status == SHOAL_OK) status = shoal_make_folder(folder.bytes, err);
  if (status == SHOAL_OK)
    status = shoal_datasets_path(jobs->config.datasets, job->spec.data.bytes, &data, err);
  if (status == SHOAL_OK)
    status = job->is_search ? start_searcher(jobs, job, folder.bytes, data.bytes, err)
                            : start_runner(jobs, job, folder.bytes, data.bytes, err);
  shoal_text_release(&folder);
  shoal_text_release(&data);
  return status;
}

bool shoal_open_job_is_ready(const shoal_open_job *job) {
  if (job->is_search) return job->searcher != NULL && job->found.phase == SHOAL_SEARCHER_OPEN;
  return job->runner != NULL && job->view.phase == SHOAL_RUNNER_OPEN;
}

void shoal_jobs_start(shoal_jobs *jobs, shoal_open_job *job) {
  shoal_error err;
  if (job->runner != NULL || job->searcher != NULL || jobs->closing ||
      job->view.phase == SHOAL_RUNNER_ENDED || start(jobs, job, &err) == SHOAL_OK)
    return;
  job->view.phase = SHOAL_RUNNER_ENDED; /* the next tick concludes it */
  job->view.outcome = SHOAL_BROKEN;
  shoal_cut_folder(err.text, jobs->config.folder);
  shoal_datasets_cut_folder(jobs->config.datasets, err.text);
  snprintf(job->view.error, sizeof job->view.error, "%s", err.text);
}

shoal_status shoal_jobs_submit(shoal_jobs *jobs, shoal_any_spec *spec, const char *host, uint64_t *id,
                               shoal_error *err) {
  if (count_open(jobs) >= SHOAL_JOBS_OPEN_MAX)
    return shoal_fail(err, SHOAL_LIMIT, "%d jobs are open already; stop one, or wait", SHOAL_JOBS_OPEN_MAX);
  shoal_text text = {0};
  shoal_json json;
  shoal_json_init(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_any_spec_write(spec, &json);
  shoal_json_close(&json, '}');
  if (text.failed) {
    shoal_text_release(&text);
    return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  }
  shoal_job_row row = {.name = spec->is_search ? spec->search.name.bytes : spec->train.name.bytes,
                       .host = (char *)host,
                       .state = SHOAL_JOB_WAITING,
                       .reason = "",
                       .is_private = spec->is_search ? spec->search.is_private : spec->train.is_private,
                       .spec = text.bytes,
                       .progress = "{}",
                       .created = shoal_clock_wall_seconds()};
  shoal_status status = shoal_store_add_job(jobs->config.store, &row, id, err);
  shoal_text_release(&text);
  if (status != SHOAL_OK) return status;
  row.id = *id;
  status = take_up(jobs, &row, spec, err);
  if (status != SHOAL_OK) {
    (void)shoal_store_delete_job(jobs->config.store, *id, NULL);
    return status;
  }
  shoal_open_job *job = shoal_jobs_find(jobs, *id);
  store_details(jobs, job);
  jobs->config.calls.changed(jobs->config.calls.self, job);
  return SHOAL_OK;
}

shoal_status shoal_jobs_stop(shoal_jobs *jobs, uint64_t id, shoal_error *err) {
  shoal_open_job *job = shoal_jobs_find(jobs, id);
  if (job == NULL) {
    shoal_job_row row;
    shoal_status status = shoal_store_job(jobs->config.store, id, &row, err);
    if (status != SHOAL_OK) return status;
    shoal_fail(err, SHOAL_CONFLICT, "job %" PRIu64 " is %s; only one that waits or runs can be stopped", id,
               shoal_job_state_name(row.state));
    shoal_job_rows_free(&row, 1);
    return SHOAL_CONFLICT;
  }
  shoal_status status = shoal_store_set_job_state(jobs->config.store, id, SHOAL_JOB_STOPPED, "", job->started,
                                                  shoal_clock_wall_seconds(), err);
  if (status != SHOAL_OK) return status;
  job->stopping = true;
  if (job->runner != NULL) shoal_runner_stop(job->runner);
  if (job->searcher != NULL) shoal_searcher_stop(job->searcher);
  if (job->runner != NULL || job->searcher != NULL) {
    jobs->config.calls.changed(jobs->config.calls.self, job);
  } else {
    close_job(jobs, job);
  }
  return SHOAL_OK;
}

/* Changes what there is to do. */
static shoal_status add_more(shoal_any_spec *spec, const shoal_job_more *more, const shoal_job_row *row,
                             shoal_error *err) {
  if (!spec->is_search) {
    if (more->epochs == 0) return SHOAL_OK;
    uint32_t epochs = spec->train.parsed->recipe.epochs;
    if (more->epochs < epochs)
      return shoal_fail(err, SHOAL_INVALID, "\"epochs\" must not be less than %u", epochs);
    return shoal_spec_set_epochs(&spec->train, more->epochs, err);
  }
  cJSON *json = cJSON_Parse(row->progress);
  const cJSON *search = cJSON_GetObjectItemCaseSensitive(json, "search");
  uint64_t done = shoal_jobs_count_in(search, "trials");
  double spent_s = fmax(0, real_in(search, "spent_s"));
  cJSON_Delete(json);
  bool has_all = more->trials == done && row->state == SHOAL_JOB_FINISHED && more->budget_s == 0;
  if (more->trials > 0 && (more->trials < done || has_all))
    return shoal_fail(err, SHOAL_INVALID,
                      "%" PRIu64 " trials are done already; \"trials\" is how many in all", done);
  if (more->trials > 0 && more->trials < spec->search.trials)
    return shoal_fail(err, SHOAL_INVALID, "\"trials\" must not be less than %" PRIu64, spec->search.trials);
  if (more->trials > 0) spec->search.trials = more->trials;
  if (more->budget_s > 0) spec->search.budget_s = more->budget_s + spent_s;
  return SHOAL_OK;
}

/* Whether the table of a search is still the one that it began with. */
static shoal_status check_table(shoal_jobs *jobs, uint64_t id, const char *data, shoal_error *err) {
  shoal_set_table table = {0};
  shoal_text folder = {0}, record = {0};
  shoal_brief brief;
  shoal_scheduler_kind scheduler;
  shoal_status status = shoal_datasets_table(jobs->config.datasets, data, &table, err);
  if (status == SHOAL_OK) status = folder_of(jobs, id, &folder, err);
  shoal_text_addf(&record, "%s/search.json", folder.bytes != NULL ? folder.bytes : "");
  bool has_both = table.profile.length > 0 && !record.failed && shoal_file_exists(record.bytes);
  if (status == SHOAL_OK && has_both &&
      shoal_search_recorded(folder.bytes, &brief, &scheduler, NULL) == SHOAL_OK) {
    cJSON *profile = cJSON_Parse(table.profile.bytes);
    const cJSON *sha256 = cJSON_GetObjectItemCaseSensitive(profile, "sha256");
    if (cJSON_IsString(sha256) && strcmp(sha256->valuestring, brief.profile.sha256) != 0)
      status = shoal_fail(err, SHOAL_CONFLICT,
                          "the data set '%s' is not the one that job %" PRIu64
                          " began with: upload that again, or begin a new search",
                          data, id);
    cJSON_Delete(profile);
    shoal_brief_release(&brief);
  }
  shoal_set_table_release(&table);
  shoal_text_release(&folder);
  shoal_text_release(&record);
  return status;
}

/* Without its data a job that goes on would fail, and what became of it before would be gone. */
static shoal_status check_set(shoal_jobs *jobs, uint64_t id, const shoal_any_spec *spec, shoal_error *err) {
  const char *data = spec->is_search ? spec->search.data.bytes : spec->train.data.bytes;
  shoal_text path = {0};
  shoal_status status = spec->is_search ? check_table(jobs, id, data, err)
                                        : shoal_datasets_path(jobs->config.datasets, data, &path, err);
  shoal_text_release(&path);
  if (status != SHOAL_NOT_FOUND && status != SHOAL_INVALID) return status;
  return shoal_fail(err, SHOAL_CONFLICT,
                    "the data set '%s', which job %" PRIu64 " needs to go on, is not there any more", data,
                    id);
}

static shoal_status store_spec(shoal_jobs *jobs, uint64_t id, const shoal_any_spec *spec, shoal_error *err) {
  shoal_text text = {0};
  shoal_json json;
  shoal_json_init(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_any_spec_write(spec, &json);
  shoal_json_close(&json, '}');
  shoal_status status = text.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory")
                                    : shoal_store_set_job_spec(jobs->config.store, id, text.bytes, err);
  shoal_text_release(&text);
  return status;
}

static shoal_status reopen(shoal_jobs *jobs, const shoal_job_row *row, const shoal_job_more *more,
                           shoal_error *err) {
  shoal_any_spec spec;
  shoal_spec_fault fault;
  shoal_status status = shoal_any_spec_parse(&spec, row->spec, strlen(row->spec), &fault, err);
  if (status != SHOAL_OK) return status;
  bool has_more = spec.is_search ? more->budget_s > 0 || more->trials > 0 : more->epochs > 0;
  if (row->state == SHOAL_JOB_FINISHED && !has_more)
    status = shoal_fail(err, SHOAL_CONFLICT, "job %" PRIu64 " is finished; give more %s to go on", row->id,
                        spec.is_search ? "\"budget_s\" or \"trials\"" : "\"epochs\"");
  if (status == SHOAL_OK) status = check_set(jobs, row->id, &spec, err);
  if (status == SHOAL_OK) status = add_more(&spec, more, row, err);
  if (status == SHOAL_OK) status = store_spec(jobs, row->id, &spec, err);
  if (status == SHOAL_OK)
    status = shoal_store_set_job_state(jobs->config.store, row->id, SHOAL_JOB_WAITING, "", 0, 0, err);
  if (status == SHOAL_OK) {
    status = take_up(jobs, row, &spec, err);
    if (status != SHOAL_OK)
      (void)shoal_store_set_job_state(jobs->config.store, row->id, row->state, row->reason, 0, 0, NULL);
  }
  shoal_any_spec_release(&spec);
  return status;
}

shoal_status shoal_jobs_resume(shoal_jobs *jobs, uint64_t id, const shoal_job_more *more, shoal_error *err) {
  if (shoal_jobs_find(jobs, id) != NULL)
    return shoal_fail(err, SHOAL_CONFLICT, "job %" PRIu64 " is open already", id);
  if (count_open(jobs) >= SHOAL_JOBS_OPEN_MAX)
    return shoal_fail(err, SHOAL_LIMIT, "%d jobs are open already; stop one, or wait", SHOAL_JOBS_OPEN_MAX);
  shoal_job_row row;
  shoal_status status = shoal_store_job(jobs->config.store, id, &row, err);
  if (status != SHOAL_OK) return status;
  status = reopen(jobs, &row, more, err);
  shoal_job_rows_free(&row, 1);
  if (status == SHOAL_OK) jobs->config.calls.changed(jobs->config.calls.self, shoal_jobs_find(jobs, id));
  return status;
}

shoal_status shoal_jobs_delete(shoal_jobs *jobs, uint64_t id, shoal_error *err) {
  if (shoal_jobs_find(jobs, id) != NULL)
    return shoal_fail(err, SHOAL_CONFLICT, "job %" PRIu64 " is open; stop it first", id);
  bool is_private = shoal_jobs_is_private(jobs, id);
  shoal_status status = shoal_store_delete_job(jobs->config.store, id, err);
  if (status != SHOAL_OK) return status;
  shoal_text folder = {0};
  if (folder_of(jobs, id, &folder, NULL) == SHOAL_OK) (void)shoal_remove_folder(folder.bytes, NULL);
  shoal_text_release(&folder);
  jobs->config.calls.deleted(jobs->config.calls.self, id, is_private);
  return SHOAL_OK;
}

static bool uses(const char *spec, const char *data) {
  cJSON *json = cJSON_Parse(spec);
  const cJSON *name = cJSON_GetObjectItemCaseSensitive(json, "data");
  bool same = cJSON_IsString(name) && strcmp(name->valuestring, data) == 0;
  cJSON_Delete(json);
  return same;
}

/* Of those that are in such a state; *id stays 0 when there is none. */
static shoal_status find_needing(shoal_jobs *jobs, shoal_job_state state, const char *data, uint64_t *id,
                                 shoal_error *err) {
  shoal_job_row rows[LIST_AT_ONCE];
  uint64_t before = 0;
  size_t count = LIST_AT_ONCE;
  while (*id == 0 && count == LIST_AT_ONCE) {
    shoal_status status =
        shoal_store_jobs(jobs->config.store, (int)state, before, rows, LIST_AT_ONCE, &count, err);
    if (status != SHOAL_OK) return status;
    for (size_t i = 0; i < count; i++) {
      before = rows[i].id;
      if (*id == 0 && uses(rows[i].spec, data)) *id = rows[i].id;
    }
    shoal_job_rows_free(rows, count);
  }
  return SHOAL_OK;
}

shoal_status shoal_jobs_needing(shoal_jobs *jobs, const char *data, uint64_t *id, shoal_error *err) {
  *id = 0;
  for (const shoal_open_job *job = jobs->first; job != NULL && *id == 0; job = job->next)
    if (strcmp(job->spec.data.bytes, data) == 0) *id = job->id;
  shoal_status status = SHOAL_OK;
  if (*id == 0) status = find_needing(jobs, SHOAL_JOB_STOPPED, data, id, err);
  if (*id == 0 && status == SHOAL_OK) status = find_needing(jobs, SHOAL_JOB_FAILED, data, id, err);
  return status;
}

static bool is_search(shoal_jobs *jobs, uint64_t id) {
  const shoal_open_job *open = shoal_jobs_find(jobs, id);
  if (open != NULL) return open->is_search;
  shoal_job_row row;
  if (shoal_store_job(jobs->config.store, id, &row, NULL) != SHOAL_OK) return false;
  bool is = shoal_search_spec_is(row.spec, strlen(row.spec));
  shoal_job_rows_free(&row, 1);
  return is;
}

/* When a file of a job's is there, for people. */
static const char *when_there(const char *name, bool is_search) {
  if (is_search && strcmp(name, "events") == 0) return "a search has none";
  if (is_search || strcmp(name, "model.onnx") == 0) return "there is one when it is finished or stopped";
  if (strcmp(name, "insight.json") == 0 || strcmp(name, "trials.csv") == 0) return "only searches have one";
  return strcmp(name, "events") == 0 ? "there are some after its first rounds"
                                     : "there is one after the first epoch";
}

shoal_status shoal_jobs_file(shoal_jobs *jobs, uint64_t id, const char *name, shoal_text *out,
                             shoal_error *err) {
  shoal_text_addf(out, "%s/%" PRIu64 "/%s", jobs->config.folder, id, name);
  if (out->failed) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (access(out->bytes, R_OK) != 0)
    return shoal_fail(err, SHOAL_NOT_FOUND, "job %" PRIu64 " has no %s yet; %s", id, name,
                      when_there(name, is_search(jobs, id)));
  return SHOAL_OK;
}

/* ---- open and close ---- */

static shoal_status take_up_stored(shoal_jobs *jobs, shoal_job_state state, shoal_error *err) {
  shoal_job_row rows[LIST_AT_ONCE];
  uint64_t before = 0;
  size_t count;
  do {
    shoal_status status =
        shoal_store_jobs(jobs->config.store, (int)state, before, rows, LIST_AT_ONCE, &count, err);
    if (status != SHOAL_OK) return status;
    for (size_t i = 0; i < count; i++) {
      shoal_any_spec spec;
      shoal_spec_fault fault;
      shoal_error why;
      before = rows[i].id;
      if (shoal_any_spec_parse(&spec, rows[i].spec, strlen(rows[i].spec), &fault, &why) == SHOAL_OK) {
        status = take_up(jobs, &rows[i], &spec, err);
        shoal_any_spec_release(&spec);
        if (status != SHOAL_OK) break;
      } else {
        (void)shoal_store_set_job_state(jobs->config.store, rows[i].id, SHOAL_JOB_FAILED, why.text, 0,
                                        shoal_clock_wall_seconds(), NULL);
      }
    }
    shoal_job_rows_free(rows, count);
    if (status != SHOAL_OK) return status;
  } while (count == LIST_AT_ONCE);
  return SHOAL_OK;
}

shoal_status shoal_jobs_open(shoal_jobs **out, const shoal_jobs_config *config, shoal_error *err) {
  shoal_status status = shoal_make_folder(config->folder, err);
  if (status != SHOAL_OK) return status;
  shoal_jobs *jobs = calloc(1, sizeof *jobs);
  if (jobs == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  jobs->config = *config;
  status = shoal_standings_open(&jobs->standings, config->store, err);
  if (status == SHOAL_OK) status = take_up_stored(jobs, SHOAL_JOB_WAITING, err);
  if (status == SHOAL_OK) status = take_up_stored(jobs, SHOAL_JOB_RUNNING, err);
  if (status != SHOAL_OK) {
    shoal_jobs_close(jobs);
    return status;
  }
  *out = jobs;
  return SHOAL_OK;
}

/* Waits for a runner that was told to stop, and keeps what it had to tell. */
static void see_off(shoal_jobs *jobs, shoal_open_job *job) {
  shoal_runner_wait(job->runner);
  shoal_runner_look(job->runner, &job->view);
  take_points(jobs, job);
  take_notes(jobs, job);
  look_at_peers(jobs, job);
  store_details(jobs, job);
  if (job->view.finished)
    set_state(jobs, job, SHOAL_JOB_FINISHED, "");
  else if (job->stopping)
    add_line(jobs, job, shoal_clock_wall_seconds(), "stopped");
}

static void see_search_off(shoal_jobs *jobs, shoal_open_job *job) {
  shoal_searcher_wait(job->searcher);
  look_at_found(job);
  take_trials(jobs, job);
  store_details(jobs, job);
}

void shoal_jobs_end(shoal_jobs *jobs) {
  jobs->closing = true;
  for (shoal_open_job *job = jobs->first; job != NULL; job = job->next) {
    if (job->runner != NULL) shoal_runner_stop(job->runner);
    if (job->searcher != NULL) shoal_searcher_abandon(job->searcher);
  }
}

bool shoal_jobs_are_ending(shoal_jobs *jobs) {
  for (const shoal_open_job *job = jobs->first; job != NULL; job = job->next) {
    shoal_runner_view view = {.phase = SHOAL_RUNNER_ENDED};
    if (job->runner != NULL) shoal_runner_look(job->runner, &view);
    if (view.phase != SHOAL_RUNNER_ENDED) return true;
  }
  return false;
}

void shoal_jobs_close(shoal_jobs *jobs) {
  if (jobs == NULL) return;
  shoal_jobs_end(jobs);
  for (shoal_open_job *job = jobs->first; job != NULL; job = job->next)
    if (job->runner != NULL) shoal_runner_abandon(job->runner);
  while (jobs->first != NULL) {
    shoal_open_job *job = jobs->first;
    if (job->runner != NULL) see_off(jobs, job);
    if (job->searcher != NULL) see_search_off(jobs, job);
    jobs->first = job->next;
    free_job(job);
  }
  shoal_standings_close(jobs->standings);
  free(jobs);
}
