/* jobs_json.c: jobs, open or stored, and their workers as the API has them; see jobs.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "server/jobs_internal.h"

enum { LIST_AT_ONCE = 64, WORKERS_TOLD_MAX = 1000 };
static const double LATE_TIMES = 3, LATE_S = 1; /* a unit held longer than the last one took is late */

static void write_time(shoal_json *json, const char *key, double time) {
  if (time > 0)
    shoal_json_real(json, key, time);
  else
    shoal_json_null(json, key);
}

static void write_head(shoal_json *json, const shoal_job_row *row, uint32_t workers) {
  shoal_json_int(json, "id", (int64_t)row->id);
  shoal_json_text(json, "name", row->name);
  shoal_json_text(json, "host", row->host);
  shoal_json_text(json, "state", shoal_job_state_name(row->state));
  shoal_json_text(json, "reason", row->reason);
  shoal_json_bool(json, "private", row->is_private);
  shoal_json_real(json, "created", row->created);
  write_time(json, "started", row->started);
  write_time(json, "ended", row->ended);
  shoal_json_int(json, "workers", workers);
}

void shoal_jobs_write_details(const shoal_open_job *job, bool with_model, shoal_json *json) {
  shoal_json_text(json, "kind", shoal_job_kind_name(job->kind));
  shoal_job_ways_of(job->kind)->write(job, with_model, json);
}

/* Which files there are to download. */
static void write_files(const shoal_jobs *jobs, uint64_t id, shoal_json *json) {
  static const struct {
    const char *key, *file;
  } files[] = {{"model", "model.safetensors"},
               {"onnx", "model.onnx"},
               {"events", "events"},
               {"evaluation", "evaluation.json"}};
  shoal_json_open(json, "files", '{');
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    shoal_text path = {0};
    shoal_text_addf(&path, "%s/%" PRIu64 "/%s", jobs->config.folder, id, files[i].file);
    shoal_json_bool(json, files[i].key, !path.failed && shoal_file_exists(path.bytes));
    shoal_text_release(&path);
  }
  shoal_json_close(json, '}');
}

/* "waits for 2 workers: 1 has joined, 1 is paused" */
static void write_waiting(const shoal_open_job *job, char *out, size_t size) {
  char wanted[16] = "a", joined[16] = "none", paused[32] = "";
  if (job->spec.workers_min > 1) snprintf(wanted, sizeof wanted, "%u", job->spec.workers_min);
  if (job->workers > 0) snprintf(joined, sizeof joined, "%u", job->workers);
  if (job->paused > 0)
    snprintf(paused, sizeof paused, ", %u %s paused", job->paused, job->paused == 1 ? "is" : "are");
  snprintf(out, size, "waits for %s worker%s: %s %s joined%s", wanted, job->spec.workers_min > 1 ? "s" : "",
           joined, job->workers > 1 ? "have" : "has", paused);
}

static void write_reason(const shoal_open_job *job, char *out, size_t size) {
  out[0] = 0;
  if (job->stopping)
    snprintf(out, size, "is being stopped");
  else if (job->state == SHOAL_JOB_WAITING && job->workers >= job->spec.workers_min)
    snprintf(out, size, "begins");
  else if (job->state == SHOAL_JOB_WAITING)
    write_waiting(job, out, size);
}

static void write_open(const shoal_jobs *jobs, const shoal_open_job *job, bool with_model, shoal_json *json) {
  char reason[96];
  write_reason(job, reason, sizeof reason);
  const shoal_job_row row = {.id = job->id,
                             .name = job->name,
                             .host = job->host,
                             .state = job->state,
                             .reason = reason,
                             .is_private = job->is_private,
                             .created = job->created,
                             .started = job->started};
  shoal_json_open(json, NULL, '{');
  write_head(json, &row, job->workers + job->helpers);
  shoal_jobs_write_details(job, with_model, json);
  write_files(jobs, job->id, json);
  shoal_json_close(json, '}');
}

static void write_stored_spec(const shoal_job_row *row, shoal_json *json) {
  shoal_any_spec spec;
  shoal_spec_fault fault;
  if (shoal_any_spec_parse(&spec, row->spec, strlen(row->spec), &fault, NULL) != SHOAL_OK) return;
  shoal_json_open(json, "spec", '{');
  shoal_any_spec_write(&spec, json);
  shoal_json_close(json, '}');
  shoal_any_spec_release(&spec);
}

/* The stored details, but with the whole spec in the place of theirs, which has no model. */
static void write_stored_whole(const shoal_job_row *row, shoal_json *json) {
  cJSON *details = cJSON_Parse(row->progress);
  write_stored_spec(row, json);
  for (const cJSON *item = details != NULL ? details->child : NULL; item != NULL; item = item->next) {
    char *value = strcmp(item->string, "spec") != 0 ? cJSON_PrintUnformatted(item) : NULL;
    if (value != NULL) shoal_json_raw(json, item->string, value, strlen(value));
    cJSON_free(value);
  }
  cJSON_Delete(details);
}

/* The details were written by write_details: an object whose members go in here. */
static void write_stored(const shoal_jobs *jobs, const shoal_job_row *row, bool with_model,
                         shoal_json *json) {
  size_t length = strlen(row->progress);
  shoal_json_open(json, NULL, '{');
  write_head(json, row, 0);
  if (with_model)
    write_stored_whole(row, json);
  else if (length > 2)
    shoal_json_raw(json, NULL, row->progress + 1, length - 2);
  write_files(jobs, row->id, json);
  shoal_json_close(json, '}');
}

shoal_status shoal_jobs_write(shoal_jobs *jobs, uint64_t id, bool with_model, shoal_json *json,
                              shoal_error *err) {
  const shoal_open_job *open = shoal_jobs_find(jobs, id);
  if (open != NULL) {
    write_open(jobs, open, with_model, json);
    return SHOAL_OK;
  }
  shoal_job_row row;
  shoal_status status = shoal_store_job(jobs->config.store, id, &row, err);
  if (status != SHOAL_OK) return status;
  write_stored(jobs, &row, with_model, json);
  shoal_job_rows_free(&row, 1);
  return SHOAL_OK;
}

bool shoal_jobs_is_private(shoal_jobs *jobs, uint64_t id) {
  const shoal_open_job *open = shoal_jobs_find(jobs, id);
  if (open != NULL) return open->is_private;
  shoal_job_row row;
  if (shoal_store_job(jobs->config.store, id, &row, NULL) != SHOAL_OK) return true;
  bool is_private = row.is_private;
  shoal_job_rows_free(&row, 1);
  return is_private;
}

uint64_t shoal_jobs_rounds(shoal_jobs *jobs, uint64_t id) {
  const shoal_open_job *open = shoal_jobs_find(jobs, id);
  if (open != NULL) return open->view.rounds;
  shoal_job_row row;
  if (shoal_store_job(jobs->config.store, id, &row, NULL) != SHOAL_OK) return 0;
  cJSON *json = cJSON_Parse(row.progress);
  uint64_t rounds = shoal_jobs_count_in(json, "rounds");
  cJSON_Delete(json);
  shoal_job_rows_free(&row, 1);
  return rounds;
}

shoal_status shoal_jobs_list(shoal_jobs *jobs, int state, uint64_t before, size_t max,
                             const shoal_caller *caller, shoal_json *json, uint64_t *next, shoal_error *err) {
  shoal_job_row rows[LIST_AT_ONCE];
  size_t written = 0, count = 0;
  *next = before;
  do {
    size_t room = max - written < LIST_AT_ONCE ? max - written : LIST_AT_ONCE;
    shoal_status status = shoal_store_jobs(jobs->config.store, state, *next, rows, room, &count, err);
    if (status != SHOAL_OK) return status;
    for (size_t i = 0; i < count; i++) {
      const shoal_open_job *open = shoal_jobs_find(jobs, rows[i].id);
      *next = rows[i].id;
      if (!shoal_access_may_see(caller, rows[i].id, rows[i].is_private, rows[i].host)) continue;
      if (open != NULL && state >= 0 && (int)open->state != state) continue; /* the store is behind */
      if (open != NULL)
        write_open(jobs, open, false, json);
      else
        write_stored(jobs, &rows[i], false, json);
    }
    shoal_job_rows_free(rows, count);
    written += count;
    if (count < room) {
      *next = 0;
      break;
    }
  } while (written < max);
  return SHOAL_OK;
}

void shoal_jobs_write_round(const shoal_point *p, shoal_json *json) {
  shoal_json_open(json, NULL, '[');
  shoal_json_int(json, NULL, (int64_t)p->step);
  shoal_json_real(json, NULL, p->time);
  shoal_json_real(json, NULL, p->loss);
  shoal_json_real(json, NULL, p->metric);
  shoal_json_real(json, NULL, p->samples_per_s);
  shoal_json_close(json, ']');
}

void shoal_jobs_write_line(const shoal_log_row *line, shoal_json *json) {
  shoal_json_open(json, NULL, '{');
  shoal_json_int(json, "number", (int64_t)line->number);
  shoal_json_real(json, "time", line->time);
  shoal_json_text(json, "text", line->text);
  shoal_json_close(json, '}');
}

void shoal_jobs_write_epoch(const shoal_point *p, uint64_t rounds, shoal_json *json) {
  shoal_json_open(json, NULL, '{');
  shoal_json_int(json, "epoch", rounds > 0 ? (int64_t)(p->step / rounds) : 0);
  shoal_json_int(json, "step", (int64_t)p->step);
  shoal_json_real(json, "time", p->time);
  shoal_json_real(json, "loss", p->loss);
  shoal_json_real(json, "metric", p->metric);
  shoal_json_real(json, "held_out_loss", p->held_out_loss);
  shoal_json_real(json, "held_out_metric", p->held_out_metric);
  shoal_json_close(json, '}');
}

/* ---- workers of a job ---- */

static const shoal_chief_peer *peer_called(const shoal_open_job *job, const char *name) {
  for (uint32_t i = 0; job != NULL && i < job->peers_count; i++)
    if (job->peers[i].role == SHOAL_ROLE_WORKER && strcmp(job->peers[i].name, name) == 0)
      return &job->peers[i];
  return NULL;
}

/* Who works for another kind than a training has no connection to a chief. */
static bool is_here(const shoal_jobs *jobs, const shoal_open_job *job, const char *worker) {
  const shoal_jobs_calls *calls = &jobs->config.calls;
  return job != NULL && job->kind != SHOAL_JOB_TRAIN && calls->is_here(calls->self, job->id, worker);
}

static void write_worker(const shoal_jobs *jobs, const shoal_open_job *job, const shoal_contribution *c,
                         uint64_t samples, shoal_json *json) {
  const shoal_chief_peer *peer = peer_called(job, c->worker);
  shoal_json_open(json, NULL, '{');
  shoal_json_text(json, "name", c->worker);
  shoal_json_bool(json, "here", peer != NULL || is_here(jobs, job, c->worker));
  shoal_json_int(json, "units", (int64_t)c->units);
  shoal_json_int(json, "samples", (int64_t)c->samples);
  shoal_json_real(json, "share", samples > 0 ? (double)c->samples / (double)samples : 0);
  shoal_json_real(json, "seconds", c->seconds);
  shoal_json_real(json, "samples_per_s", c->seconds > 0 ? (double)c->samples / c->seconds : 0);
  shoal_json_real(json, "lag_s", peer != NULL ? peer->silent_s : 0);
  shoal_json_int(json, "units_held", peer != NULL && peer->held_s > 0);
  shoal_json_bool(json, "late",
                  peer != NULL && peer->unit_s > 0 && peer->held_s > LATE_TIMES * peer->unit_s + LATE_S);
  if (peer != NULL && peer->standing.who != 0) {
    shoal_json_text(json, "standing", shoal_standing_name(shoal_standing_word_of(&peer->standing)));
    shoal_json_int(json, "audits_agreed", (int64_t)peer->standing.agreed);
    shoal_json_int(json, "audits_wrong", (int64_t)peer->standing.wrong);
    shoal_json_int(json, "rejected", (int64_t)peer->rejected);
  }
  shoal_json_close(json, '}');
}

shoal_status shoal_jobs_workers(shoal_jobs *jobs, uint64_t id, shoal_json *json, shoal_error *err) {
  shoal_contribution *rows = calloc(WORKERS_TOLD_MAX, sizeof *rows);
  if (rows == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  size_t count = 0;
  uint64_t samples = 0;
  shoal_status status =
      shoal_store_contributions(jobs->config.store, id, rows, WORKERS_TOLD_MAX, &count, err);
  if (status == SHOAL_OK) {
    for (size_t i = 0; i < count; i++) samples += rows[i].samples;
    shoal_json_open(json, NULL, '{');
    shoal_json_open(json, "workers", '[');
    const shoal_open_job *job = shoal_jobs_find(jobs, id);
    for (size_t i = 0; i < count; i++) write_worker(jobs, job, &rows[i], samples, json);
    shoal_json_close(json, ']');
    shoal_json_close(json, '}');
    shoal_contributions_free(rows, count);
  }
  free(rows);
  return status;
}
