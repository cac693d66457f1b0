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
#include "server/agent_audit.h"
#include "server/folders.h"
#include "server/jobs_internal.h"

enum { LIST_AT_ONCE = 64 };
static const double LOOK_S = 0.25; /* how often what runs is looked at */
static const double STORE_S = 5;   /* how often progress goes into the store */

/* ---- kinds ---- */

const shoal_job_ways *shoal_job_ways_of(shoal_job_kind kind) {
  static const shoal_job_ways *const ways[] = {[SHOAL_JOB_TRAIN] = &shoal_train_ways,
                                               [SHOAL_JOB_SEARCH] = &shoal_search_ways,
                                               [SHOAL_JOB_AGENT] = &shoal_agent_ways};
  return ways[kind];
}

static const shoal_job_ways *ways_of(const shoal_open_job *job) { return shoal_job_ways_of(job->kind); }

bool shoal_open_job_has_begun(const shoal_open_job *job) { return ways_of(job)->has_begun(job); }

bool shoal_open_job_is_ready(const shoal_open_job *job) {
  return shoal_open_job_has_begun(job) && ways_of(job)->is_ready(job);
}

shoal_job_pulse shoal_open_job_pulse(const shoal_open_job *job) {
  shoal_job_pulse pulse = {.loss = NAN};
  ways_of(job)->pulse(job, &pulse);
  return pulse;
}

/* ---- open jobs ---- */

shoal_open_job *shoal_jobs_first(shoal_jobs *jobs) { return jobs->first; }

shoal_open_job *shoal_jobs_find(shoal_jobs *jobs, uint64_t id) {
  shoal_open_job *job = jobs->first;
  while (job != NULL && job->id != id) job = job->next;
  return job;
}

static void free_job(shoal_open_job *job) {
  if (shoal_open_job_has_begun(job)) ways_of(job)->destroy(job);
  shoal_agent_spec_release(&job->agent);
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

double shoal_jobs_real_in(const cJSON *json, const char *key) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
  return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

/* What a job has of any kind of spec, which is taken over. */
static bool take_spec(shoal_open_job *job, shoal_any_spec *spec) {
  bool is_train = spec->kind == SHOAL_JOB_TRAIN, is_search = spec->kind == SHOAL_JOB_SEARCH;
  job->kind = spec->kind;
  job->spec = spec->train;
  job->search = spec->search;
  job->agent = spec->agent;
  if (!is_train) {
    shoal_text_addf(&job->spec.name, "%s", shoal_any_spec_name(spec));
    shoal_text_addf(&job->spec.data, "%s", shoal_any_spec_data(spec));
    job->spec.workers_min = is_search ? job->search.workers_min : job->agent.workers_min;
    job->spec.workers_max = is_search ? job->search.workers_max : job->agent.workers_max;
  }
  *spec = (shoal_any_spec){0};
  return !job->spec.name.failed && !job->spec.data.failed;
}

static void recall(shoal_open_job *job, const char *details) {
  cJSON *json = cJSON_Parse(details);
  ways_of(job)->recall(job, json);
  cJSON_Delete(json);
}

/* Puts a row of the store among the open ones, behind those that came before it. *spec is taken over. */
static shoal_status take_up(shoal_jobs *jobs, const shoal_job_row *row, shoal_any_spec *spec,
                            shoal_error *err) {
  shoal_open_job *job = calloc(1, sizeof *job);
  if (job != NULL) {
    job->name = strdup(row->name);
    job->host = strdup(row->host);
    job->peers = calloc(SHOAL_JOB_PEERS_MAX, sizeof *job->peers);
    job->credited = calloc(SHOAL_JOB_SUMS_MAX, sizeof *job->credited);
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
  recall(job, row->progress);
  shoal_open_job **at = &jobs->first;
  while (*at != NULL && (*at)->id < job->id) at = &(*at)->next;
  job->next = *at;
  *at = job;
  return SHOAL_OK;
}

/* ---- looking at what runs ---- */

void shoal_jobs_store_details(shoal_jobs *jobs, shoal_open_job *job) {
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

void shoal_jobs_set_state(shoal_jobs *jobs, shoal_open_job *job, shoal_job_state state, const char *reason) {
  double now = shoal_clock_wall_seconds();
  bool ends = state != SHOAL_JOB_WAITING && state != SHOAL_JOB_RUNNING;
  if (state == SHOAL_JOB_RUNNING && job->started == 0) job->started = now;
  job->state = state;
  (void)shoal_store_set_job_state(jobs->config.store, job->id, state, reason, job->started, ends ? now : 0,
                                  NULL);
}

void shoal_jobs_add_line(shoal_jobs *jobs, shoal_open_job *job, double time, const char *text) {
  shoal_log_row stored, row = {.number = job->lines + 1, .time = time, .text = (char *)text};
  size_t count = 0;
  if (shoal_store_add_log(jobs->config.store, job->id, time, text, NULL) != SHOAL_OK) return;
  /* While the store is away, it will have the next number. */
  if (shoal_store_logs(jobs->config.store, job->id, 0, &stored, 1, &count, NULL) == SHOAL_OK && count > 0) {
    row.number = stored.number;
    shoal_log_rows_free(&stored, 1);
  }
  job->lines = row.number;
  jobs->config.calls.line(jobs->config.calls.self, job, &row);
}

void shoal_jobs_teach(shoal_jobs *jobs, const shoal_standing *standing) {
  for (shoal_open_job *job = jobs->first; job != NULL; job = job->next)
    if (job->runner != NULL) shoal_runner_teach(job->runner, standing);
}

shoal_standings *shoal_jobs_standings(shoal_jobs *jobs) { return jobs->standings; }

void shoal_jobs_blame(shoal_jobs *jobs, uint64_t who, uint64_t by) {
  shoal_standing standing;
  if (shoal_standings_blame(jobs->standings, who, by, &standing)) shoal_jobs_teach(jobs, &standing);
}

shoal_status shoal_jobs_lift_ban(shoal_jobs *jobs, uint64_t id, const char *by, shoal_error *err) {
  shoal_standing standing;
  shoal_status status = shoal_standings_lift(jobs->standings, id, by, &standing, err);
  if (status == SHOAL_OK) shoal_jobs_teach(jobs, &standing);
  return status;
}

static void close_job(shoal_jobs *jobs, shoal_open_job *job) {
  uint64_t id = job->id;
  unlink_job(jobs, job);
  free_job(job);
  jobs->config.calls.closed(jobs->config.calls.self, id);
}

void shoal_jobs_goes_on(shoal_jobs *jobs, shoal_open_job *job, uint32_t workers, bool changed, double now) {
  shoal_job_state state = workers > 0 ? SHOAL_JOB_RUNNING : SHOAL_JOB_WAITING;
  changed |= state != job->state;
  if (state != job->state && !job->stopping) shoal_jobs_set_state(jobs, job, state, "");
  if (now - job->stored_at >= STORE_S) shoal_jobs_store_details(jobs, job);
  if (changed) jobs->config.calls.changed(jobs->config.calls.self, job);
}

void shoal_jobs_conclude(shoal_jobs *jobs, shoal_open_job *job, shoal_job_state state, const char *line,
                         const char *reason) {
  shoal_jobs_store_details(jobs, job);
  shoal_jobs_add_line(jobs, job, shoal_clock_wall_seconds(), line);
  shoal_jobs_set_state(jobs, job, state, reason);
  close_job(jobs, job);
}

void shoal_jobs_credit_unit(shoal_jobs *jobs, uint64_t id, const char *worker, uint64_t samples,
                            double seconds) {
  const shoal_contribution row = {
      .worker = (char *)worker, .units = 1, .samples = samples, .seconds = seconds};
  (void)shoal_store_add_contributions(jobs->config.store, id, &row, 1, NULL);
}

/* One that waits says how many are paused. */
static void tell_paused(shoal_jobs *jobs, shoal_open_job *job) {
  if (job->paused == job->paused_told) return;
  job->paused_told = job->paused;
  if (job->state == SHOAL_JOB_WAITING) jobs->config.calls.changed(jobs->config.calls.self, job);
}

double shoal_jobs_tick(shoal_jobs *jobs, double now) {
  shoal_agent_audit_tick(jobs->audit);
  if (now < jobs->next_look) return jobs->next_look;
  for (shoal_open_job *job = jobs->first, *next; job != NULL; job = next) {
    next = job->next;
    tell_paused(jobs, job);
    if (shoal_open_job_has_begun(job))
      ways_of(job)->look(jobs, job, now);
    else if (job->starts_later)
      shoal_jobs_start(jobs, job);
    else if (job->failure[0] != 0)
      shoal_jobs_conclude(jobs, job, SHOAL_JOB_FAILED, job->failure, job->failure);
  }
  jobs->next_look = now + LOOK_S;
  return jobs->next_look;
}

/* ---- from state to state ---- */

void shoal_jobs_wake(void *self) {
  shoal_jobs *jobs = self;
  jobs->config.calls.wake(jobs->config.calls.self);
}

shoal_status shoal_jobs_folder_of(const shoal_jobs *jobs, uint64_t id, shoal_text *out, shoal_error *err) {
  shoal_text_addf(out, "%s/%" PRIu64, jobs->config.folder, id);
  return out->failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory") : SHOAL_OK;
}

static shoal_status start(shoal_jobs *jobs, shoal_open_job *job, shoal_error *err) {
  shoal_text folder = {0};
  shoal_status status = shoal_jobs_folder_of(jobs, job->id, &folder, err);
  if (status == SHOAL_OK) status = shoal_make_folder(folder.bytes, err);
  if (status == SHOAL_OK) status = ways_of(job)->start(jobs, job, folder.bytes, err);
  shoal_text_release(&folder);
  return status;
}

void shoal_jobs_start(shoal_jobs *jobs, shoal_open_job *job) {
  shoal_error err;
  if (shoal_open_job_has_begun(job) || jobs->closing || job->failure[0] != 0 ||
      start(jobs, job, &err) == SHOAL_OK)
    return;
  job->starts_later = err.status == SHOAL_UNAVAILABLE;
  if (job->starts_later) return; /* the store is away; the next tick tries again */
  shoal_cut_folder(err.text, jobs->config.folder);
  shoal_datasets_cut_folder(jobs->config.datasets, err.text);
  snprintf(job->failure, sizeof job->failure, "%s", err.text); /* the next tick concludes it */
}

/* As the store has it. */
static shoal_status write_spec(const shoal_any_spec *spec, shoal_text *out, shoal_error *err) {
  shoal_json json;
  shoal_json_init(&json, out);
  shoal_json_open(&json, NULL, '{');
  shoal_any_spec_write(spec, &json);
  shoal_json_close(&json, '}');
  if (!out->failed) return SHOAL_OK;
  shoal_text_release(out);
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

shoal_status shoal_jobs_submit(shoal_jobs *jobs, shoal_any_spec *spec, const char *host, uint64_t *id,
                               shoal_error *err) {
  if (count_open(jobs) >= SHOAL_JOBS_OPEN_MAX)
    return shoal_fail(err, SHOAL_LIMIT, "%d jobs are open already; stop one, or wait", SHOAL_JOBS_OPEN_MAX);
  shoal_text text = {0};
  shoal_status status = write_spec(spec, &text, err);
  if (status != SHOAL_OK) return status;
  shoal_job_row row = {.name = (char *)shoal_any_spec_name(spec),
                       .host = (char *)host,
                       .state = SHOAL_JOB_WAITING,
                       .reason = "",
                       .is_private = shoal_any_spec_is_private(spec),
                       .spec = text.bytes,
                       .progress = "{}",
                       .created = shoal_clock_wall_seconds()};
  status = shoal_store_add_job(jobs->config.store, &row, id, err);
  shoal_text_release(&text);
  if (status != SHOAL_OK) return status;
  row.id = *id;
  status = take_up(jobs, &row, spec, err);
  if (status != SHOAL_OK) {
    (void)shoal_store_delete_job(jobs->config.store, *id, NULL);
    return status;
  }
  shoal_open_job *job = shoal_jobs_find(jobs, *id);
  shoal_jobs_store_details(jobs, job);
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
  if (shoal_open_job_has_begun(job)) {
    ways_of(job)->stop(job);
    jobs->config.calls.changed(jobs->config.calls.self, job);
  } else {
    close_job(jobs, job);
  }
  return SHOAL_OK;
}

shoal_status shoal_jobs_no_data(uint64_t id, const char *data, shoal_error *err) {
  return shoal_fail(err, SHOAL_CONFLICT,
                    "the data set '%s', which job %" PRIu64 " needs to continue, is not there any more", data,
                    id);
}

static shoal_status store_spec(shoal_jobs *jobs, uint64_t id, const shoal_any_spec *spec, shoal_error *err) {
  shoal_text text = {0};
  shoal_status status = write_spec(spec, &text, err);
  if (status == SHOAL_OK) status = shoal_store_set_job_spec(jobs->config.store, id, text.bytes, err);
  shoal_text_release(&text);
  return status;
}

static shoal_status reopen(shoal_jobs *jobs, const shoal_job_row *row, const shoal_job_more *more,
                           shoal_error *err) {
  shoal_any_spec spec;
  shoal_spec_fault fault;
  shoal_status status = shoal_any_spec_parse(&spec, row->spec, strlen(row->spec), &fault, err);
  if (status != SHOAL_OK) return status;
  const shoal_job_ways *ways = shoal_job_ways_of(spec.kind);
  if (row->state == SHOAL_JOB_FINISHED && !ways->has_more(more))
    status = shoal_fail(err, SHOAL_CONFLICT, "job %" PRIu64 " is finished; give more %s to continue", row->id,
                        ways->wants);
  if (status == SHOAL_OK && ways->check != NULL) status = ways->check(jobs, row->id, &spec, err);
  if (status == SHOAL_OK) status = ways->add_more(&spec, more, row, err);
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
  if (shoal_jobs_folder_of(jobs, id, &folder, NULL) == SHOAL_OK)
    (void)shoal_remove_folder(folder.bytes, NULL);
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

static shoal_job_kind kind_of(shoal_jobs *jobs, uint64_t id) {
  const shoal_open_job *open = shoal_jobs_find(jobs, id);
  if (open != NULL) return open->kind;
  shoal_job_row row;
  if (shoal_store_job(jobs->config.store, id, &row, NULL) != SHOAL_OK) return SHOAL_JOB_TRAIN;
  shoal_job_kind kind = shoal_job_kind_of(row.spec, strlen(row.spec));
  shoal_job_rows_free(&row, 1);
  return kind;
}

/* When a file of a job's is there, for people. */
static const char *when_there(const char *name, shoal_job_kind kind) {
  bool is_events = strcmp(name, "events") == 0, is_onnx = strcmp(name, "model.onnx") == 0;
  bool is_insight = strcmp(name, "insight.json") == 0 || strcmp(name, "trials.csv") == 0;
  bool is_evaluation = strcmp(name, "evaluation.json") == 0;
  if (kind != SHOAL_JOB_SEARCH && is_insight) return "only searches have one";
  if (is_evaluation && kind != SHOAL_JOB_TRAIN) return "only trainings have one";
  if (is_evaluation) return "a classifier has one after its first epoch";
  switch (kind) {
  case SHOAL_JOB_AGENT:
    return is_events ? "agents have none: GET .../points has their curves"
           : is_onnx ? "there is one when it is finished or stopped, unless its network remembers"
                     : "there is one after the first round";
  case SHOAL_JOB_SEARCH:
    return is_events ? "a search has none" : "there is one when it is finished or stopped";
  default:
    return is_events ? "there are some after its first rounds"
           : is_onnx ? "there is one when it is finished or stopped"
                     : "there is one after the first epoch";
  }
}

shoal_status shoal_jobs_file(shoal_jobs *jobs, uint64_t id, const char *name, shoal_text *out,
                             shoal_error *err) {
  shoal_text_addf(out, "%s/%" PRIu64 "/%s", jobs->config.folder, id, name);
  if (out->failed) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (access(out->bytes, R_OK) != 0)
    return shoal_fail(err, SHOAL_NOT_FOUND, "job %" PRIu64 " has no %s yet; %s", id, name,
                      when_there(name, kind_of(jobs, id)));
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
  char *secret = shoal_path("%s/secret", config->folder);
  status = secret == NULL ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory")
                          : shoal_secret_keep(&jobs->secret, secret, err);
  free(secret);
  if (status == SHOAL_OK) status = shoal_standings_open(&jobs->standings, config->store, &jobs->secret, err);
  if (status == SHOAL_OK) status = shoal_jobs_open_audit(jobs, err);
  if (status == SHOAL_OK) status = take_up_stored(jobs, SHOAL_JOB_WAITING, err);
  if (status == SHOAL_OK) status = take_up_stored(jobs, SHOAL_JOB_RUNNING, err);
  if (status != SHOAL_OK) {
    shoal_jobs_close(jobs);
    return status;
  }
  *out = jobs;
  return SHOAL_OK;
}

void shoal_jobs_end(shoal_jobs *jobs) {
  jobs->closing = true;
  for (shoal_open_job *job = jobs->first; job != NULL; job = job->next)
    if (shoal_open_job_has_begun(job)) ways_of(job)->end(job);
}

bool shoal_jobs_are_closing(const shoal_jobs *jobs) { return jobs->closing; }

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
  shoal_agent_audit_destroy(jobs->audit);
  for (shoal_open_job *job = jobs->first; job != NULL; job = job->next)
    if (job->runner != NULL) shoal_runner_abandon(job->runner);
  while (jobs->first != NULL) {
    shoal_open_job *job = jobs->first;
    if (shoal_open_job_has_begun(job)) ways_of(job)->see_off(jobs, job);
    jobs->first = job->next;
    free_job(job);
  }
  shoal_standings_close(jobs->standings);
  free(jobs);
}
