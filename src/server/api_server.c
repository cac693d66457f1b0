/* api_server.c: the routes of the server itself: who is there, access, metrics, the page. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/version.h"
#include "server/api.h"
#include "server/page_files.h"

enum { LIST_MAX = 1000, DAYS_MAX = 3650 };

static void count_jobs(const shoal_api *api, uint64_t counts[SHOAL_JOB_STATES], double *samples_per_s) {
  memset(counts, 0, SHOAL_JOB_STATES * sizeof *counts);
  *samples_per_s = 0;
  if (shoal_store_count_jobs(api->store, counts, NULL) != SHOAL_OK) return;
  counts[SHOAL_JOB_WAITING] = counts[SHOAL_JOB_RUNNING] = 0;
  for (const shoal_open_job *job = shoal_jobs_first(api->jobs); job != NULL; job = job->next) {
    counts[job->state]++;
    *samples_per_s += job->view.progress.samples_per_s;
  }
}

void shoal_api_server_json(const shoal_api *api, const shoal_caller *caller, shoal_json *json) {
  uint64_t counts[SHOAL_JOB_STATES];
  double samples_per_s;
  uint32_t idle, workers = shoal_volunteers_count(api->volunteers, &idle);
  count_jobs(api, counts, &samples_per_s);
  shoal_json_open(json, NULL, '{');
  shoal_json_text(json, "name", "shoal");
  shoal_json_text(json, "version", SHOAL_VERSION);
  if (caller != NULL) shoal_json_text(json, "role", shoal_role_level_name(caller->level));
  if (caller != NULL) shoal_json_text(json, "who", caller->name);
  if (api->open != SHOAL_NOBODY)
    shoal_json_text(json, "open", shoal_role_level_name(api->open));
  else
    shoal_json_null(json, "open");
  shoal_json_bool(json, "tls", api->fingerprint != NULL);
  if (api->fingerprint != NULL)
    shoal_json_text(json, "fingerprint", api->fingerprint);
  else
    shoal_json_null(json, "fingerprint");
  shoal_json_text(json, "store", shoal_store_kind(api->store));
  shoal_json_real(json, "started", api->started);
  shoal_json_open(json, "jobs", '{');
  for (int s = 0; s < SHOAL_JOB_STATES; s++)
    shoal_json_int(json, shoal_job_state_name((shoal_job_state)s), (int64_t)counts[s]);
  shoal_json_close(json, '}');
  shoal_json_int(json, "workers", workers);
  shoal_json_int(json, "idle", idle);
  shoal_json_real(json, "samples_per_s", samples_per_s);
  shoal_json_close(json, '}');
}

void shoal_api_server(const shoal_api_call *call) {
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_api_server_json(call->api, &call->caller, &json);
  shoal_api_json(call, 200, &text);
}

void shoal_api_live(const shoal_api_call *call) {
  if (call->caller.job != 0) {
    shoal_api_error(call, 403, "this token is for one job only");
    return;
  }
  if (!shoal_live_join(call->api->live, call->request->id, 0)) {
    shoal_api_error(call, 503, "too many watch already");
    return;
  }
  shoal_http_answer(call->api->net, call->request->id,
                    &(shoal_answer){.status = 200, .type = "text/event-stream", .stream = true});
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_api_server_json(call->api, NULL, &json);
  if (!text.failed) shoal_live_greet(call->api->net, call->request->id, "server", &text);
  shoal_text_release(&text);
}

void shoal_api_list_workers(const shoal_api_call *call) {
  uint64_t limit;
  if (!shoal_api_number(call, "limit", 10 * LIST_MAX, LIST_MAX, &limit)) return;
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_open(&json, "workers", '[');
  const shoal_volunteer *v = NULL;
  while (limit-- > 0 && (v = shoal_volunteers_next(call->api->volunteers, v)) != NULL)
    if (call->caller.job == 0 || call->caller.job == v->job)
      shoal_volunteers_write(call->api->volunteers, v, &json);
  shoal_json_close(&json, ']');
  shoal_json_close(&json, '}');
  shoal_api_json(call, 200, &text);
}

void shoal_api_contributions(const shoal_api_call *call) {
  shoal_contribution *rows = calloc(LIST_MAX, sizeof *rows);
  size_t count = 0;
  shoal_error err = {.status = SHOAL_NO_MEMORY, .text = "out of memory"};
  if (rows == NULL || shoal_store_contributions(call->api->store, call->caller.job, rows, LIST_MAX, &count,
                                                &err) != SHOAL_OK) {
    free(rows);
    shoal_api_failed(call, &err);
    return;
  }
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_open(&json, "contributions", '[');
  for (size_t i = 0; i < count; i++) {
    shoal_json_open(&json, NULL, '{');
    shoal_json_text(&json, "worker", rows[i].worker);
    shoal_json_int(&json, "units", (int64_t)rows[i].units);
    shoal_json_int(&json, "samples", (int64_t)rows[i].samples);
    shoal_json_real(&json, "seconds", rows[i].seconds);
    shoal_json_close(&json, '}');
  }
  shoal_json_close(&json, ']');
  shoal_json_close(&json, '}');
  shoal_contributions_free(rows, count);
  free(rows);
  shoal_api_json(call, 200, &text);
}

/* ---- tokens ---- */

static bool job_exists(const shoal_api_call *call, uint64_t job) {
  shoal_job_row row;
  if (shoal_store_job(call->api->store, job, &row, NULL) != SHOAL_OK) return false;
  shoal_job_rows_free(&row, 1);
  return true;
}

static bool job_is_own(const shoal_api_call *call, uint64_t job) {
  shoal_job_row row;
  if (job == 0 || shoal_store_job(call->api->store, job, &row, NULL) != SHOAL_OK) return false;
  bool own = strcmp(row.host, call->caller.name) == 0;
  shoal_job_rows_free(&row, 1);
  return own;
}

/* Everybody's for an admin, those for own jobs for a host. */
static bool may_have(const shoal_api_call *call, uint64_t job, const char *role) {
  if (call->caller.level == SHOAL_ADMIN) return true;
  bool small = strcmp(role, "viewer") == 0 || strcmp(role, "volunteer") == 0;
  return small && job_is_own(call, job);
}

static void write_token(shoal_json *json, const shoal_token_row *row) {
  shoal_json_int(json, "id", (int64_t)row->id);
  shoal_json_text(json, "role", row->role);
  shoal_json_text(json, "name", row->name);
  if (row->job != 0)
    shoal_json_int(json, "job", (int64_t)row->job);
  else
    shoal_json_null(json, "job");
  shoal_json_real(json, "created", row->created);
  if (row->expires > 0)
    shoal_json_real(json, "expires", row->expires);
  else
    shoal_json_null(json, "expires");
}

void shoal_api_list_tokens(const shoal_api_call *call) {
  shoal_token_row *rows = calloc(LIST_MAX, sizeof *rows);
  size_t count = 0;
  shoal_error err = {.status = SHOAL_NO_MEMORY, .text = "out of memory"};
  if (rows == NULL || shoal_store_tokens(call->api->store, rows, LIST_MAX, &count, &err) != SHOAL_OK) {
    free(rows);
    shoal_api_failed(call, &err);
    return;
  }
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_open(&json, "tokens", '[');
  for (size_t i = 0; i < count; i++) {
    if (!may_have(call, rows[i].job, rows[i].role)) continue;
    shoal_json_open(&json, NULL, '{');
    write_token(&json, &rows[i]);
    shoal_json_close(&json, '}');
  }
  shoal_json_close(&json, ']');
  shoal_json_close(&json, '}');
  shoal_token_rows_free(rows, count);
  free(rows);
  shoal_api_json(call, 200, &text);
}

typedef struct wanted_token {
  shoal_role_level level;
  const char *role, *name;
  uint64_t job;
  double days;
} wanted_token;

/* False: answered already. */
static bool read_token(const shoal_api_call *call, const cJSON *body, wanted_token *out) {
  const cJSON *role = cJSON_GetObjectItemCaseSensitive(body, "role");
  const cJSON *name = cJSON_GetObjectItemCaseSensitive(body, "name");
  const cJSON *job = cJSON_GetObjectItemCaseSensitive(body, "job");
  const cJSON *days = cJSON_GetObjectItemCaseSensitive(body, "days");
  *out = (wanted_token){0};
  if (!cJSON_IsString(role) || !shoal_role_level_parse(role->valuestring, &out->level)) {
    shoal_api_error_at(call, 422, "\"role\" must be viewer, volunteer, host or admin", "role", 0, 0);
    return false;
  }
  if (!cJSON_IsString(name) || !shoal_spec_name_is_good(name->valuestring)) {
    shoal_api_error_at(call, 422, "\"name\" must have 1 to 64 characters", "name", 0, 0);
    return false;
  }
  bool has_job = job != NULL && !cJSON_IsNull(job), has_days = days != NULL && !cJSON_IsNull(days);
  if (has_job && !(cJSON_IsNumber(job) && job->valuedouble >= 1 && job->valuedouble < 9e15)) {
    shoal_api_error_at(call, 422, "\"job\" must be the number of a job", "job", 0, 0);
    return false;
  }
  if (has_days && !(cJSON_IsNumber(days) && days->valuedouble > 0 && days->valuedouble <= DAYS_MAX)) {
    shoal_api_error_at(call, 422, "\"days\" must be a number up to 3650", "days", 0, 0);
    return false;
  }
  out->role = role->valuestring;
  out->name = name->valuestring;
  out->job = has_job ? (uint64_t)job->valuedouble : 0;
  out->days = has_days ? days->valuedouble : 0;
  return true;
}

static void make_token(const shoal_api_call *call, const wanted_token *wanted) {
  char token[SHOAL_TOKEN_CHARS + 1];
  shoal_error err;
  double now = shoal_clock_wall_seconds();
  uint64_t id;
  if (wanted->job != 0 && !job_exists(call, wanted->job)) {
    shoal_api_error_at(call, 422, "there is no such job", "job", 0, 0);
    return;
  }
  if (shoal_access_mint(call->api->access, wanted->level, wanted->name, wanted->job, wanted->days, now, token,
                        &id, &err) != SHOAL_OK) {
    shoal_api_failed(call, &err);
    return;
  }
  shoal_text text, link = {0};
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_text_addf(&link, "%s/#t=%s", call->api->url, token);
  if (call->api->fingerprint != NULL) shoal_text_addf(&link, "&fp=%s", call->api->fingerprint);
  const shoal_token_row row = {.id = id,
                               .role = (char *)wanted->role,
                               .name = (char *)wanted->name,
                               .job = wanted->job,
                               .created = now,
                               .expires = wanted->days > 0 ? now + 86400 * wanted->days : 0};
  shoal_json_open(&json, NULL, '{');
  write_token(&json, &row);
  shoal_json_text(&json, "token", token);
  shoal_json_text(&json, "link", link.bytes);
  shoal_json_close(&json, '}');
  shoal_text_release(&link);
  shoal_api_json(call, 201, &text);
}

void shoal_api_make_token(const shoal_api_call *call) {
  shoal_blob *blob = call->request->body;
  cJSON *body = blob != NULL
                    ? cJSON_ParseWithLength((const char *)shoal_blob_bytes(blob), shoal_blob_length(blob))
                    : NULL;
  wanted_token wanted;
  if (!cJSON_IsObject(body))
    shoal_api_error(call, 400, "the body is no JSON object");
  else if (read_token(call, body, &wanted)) {
    if (may_have(call, wanted.job, wanted.role))
      make_token(call, &wanted);
    else
      shoal_api_error(call, 403, "a host may invite viewers and volunteers to own jobs");
  }
  cJSON_Delete(body);
}

void shoal_api_delete_token(const shoal_api_call *call) {
  shoal_token_row *rows = calloc(LIST_MAX, sizeof *rows);
  size_t count = 0;
  bool may = false;
  shoal_error err = {.status = SHOAL_NO_MEMORY, .text = "out of memory"};
  shoal_status status =
      rows != NULL ? shoal_store_tokens(call->api->store, rows, LIST_MAX, &count, &err) : SHOAL_NO_MEMORY;
  for (size_t i = 0; status == SHOAL_OK && i < count; i++)
    if (rows[i].id == call->id) may = may_have(call, rows[i].job, rows[i].role);
  if (status == SHOAL_OK && !may) status = shoal_fail(&err, SHOAL_NOT_FOUND, "there is no such token");
  if (status == SHOAL_OK) status = shoal_store_delete_token(call->api->store, call->id, &err);
  if (rows != NULL) shoal_token_rows_free(rows, count);
  free(rows);
  if (status == SHOAL_OK)
    shoal_api_empty(call, 204);
  else
    shoal_api_failed(call, &err);
}

void shoal_api_audit(const shoal_api_call *call) {
  enum { ROWS = 200 };
  shoal_audit_row rows[ROWS];
  uint64_t before;
  size_t count = 0;
  shoal_error err;
  if (!shoal_api_number(call, "before", UINT64_MAX / 2, 0, &before)) return;
  if (shoal_store_audit(call->api->store, before, rows, ROWS, &count, &err) != SHOAL_OK) {
    shoal_api_failed(call, &err);
    return;
  }
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_open(&json, "entries", '[');
  for (size_t i = 0; i < count; i++) {
    shoal_json_open(&json, NULL, '{');
    shoal_json_int(&json, "number", (int64_t)rows[i].number);
    shoal_json_real(&json, "time", rows[i].time);
    shoal_json_text(&json, "who", rows[i].who);
    shoal_json_text(&json, "what", rows[i].what);
    shoal_json_close(&json, '}');
  }
  shoal_json_close(&json, ']');
  shoal_json_close(&json, '}');
  shoal_audit_rows_free(rows, count);
  shoal_api_json(call, 200, &text);
}

/* ---- metrics ---- */

static void gauge(shoal_text *out, const char *name, const char *help, double value) {
  shoal_text_addf(out, "# HELP %s %s\n# TYPE %s gauge\n%s %.17g\n", name, help, name, name, value);
}

static void write_job_metrics(const shoal_api *api, shoal_text *out) {
  static const char *const names[] = {"shoal_job_step", "shoal_job_loss", "shoal_job_samples_per_second",
                                      "shoal_job_workers", "shoal_job_units_leased_again"};
  for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
    shoal_text_addf(out, "# TYPE %s gauge\n", names[n]);
    for (const shoal_open_job *job = shoal_jobs_first(api->jobs); job != NULL; job = job->next) {
      const shoal_progress_view *p = &job->view.progress;
      const double values[] = {(double)p->step, p->loss, p->samples_per_s, job->workers,
                               (double)job->timeline.again};
      if (values[n] == values[n])
        shoal_text_addf(out, "%s{job=\"%" PRIu64 "\"} %.17g\n", names[n], job->id, values[n]);
    }
  }
}

void shoal_api_metrics(const shoal_api_call *call) {
  const shoal_api *api = call->api;
  uint64_t counts[SHOAL_JOB_STATES], in, out;
  double samples_per_s;
  uint32_t idle, workers = shoal_volunteers_count(api->volunteers, &idle);
  shoal_text text = {0};
  count_jobs(api, counts, &samples_per_s);
  shoal_net_moved(api->net, &in, &out);
  shoal_text_addf(&text, "# HELP shoal_jobs Jobs by state.\n# TYPE shoal_jobs gauge\n");
  for (int s = 0; s < SHOAL_JOB_STATES; s++)
    shoal_text_addf(&text, "shoal_jobs{state=\"%s\"} %" PRIu64 "\n", shoal_job_state_name((shoal_job_state)s),
                    counts[s]);
  gauge(&text, "shoal_workers", "Volunteers that are here.", workers);
  gauge(&text, "shoal_workers_idle", "Volunteers without a job.", idle);
  gauge(&text, "shoal_samples_per_second", "Samples trained on, all jobs together.", samples_per_s);
  gauge(&text, "shoal_received_bytes", "Bytes of messages that came in.", (double)in);
  gauge(&text, "shoal_sent_bytes", "Bytes of messages that went out.", (double)out);
  gauge(&text, "shoal_uptime_seconds", "Since the server started.",
        shoal_clock_wall_seconds() - api->started);
  write_job_metrics(api, &text);
  const shoal_answer answer = {.status = 200,
                               .type = "text/plain; version=0.0.4; charset=utf-8",
                               .body = shoal_blob_of(text.bytes, text.length)};
  shoal_http_answer(api->net, call->request->id, &answer);
  shoal_text_release(&text);
}

/* ---- the page ---- */

static const shoal_page_file *page_file(const char *path) {
  for (size_t i = 0; i < shoal_page_files_count; i++)
    if (strcmp(shoal_page_files[i].path, path) == 0) return &shoal_page_files[i];
  return NULL;
}

static shoal_blob *unzipped(const shoal_page_file *file) {
  enum { PAGE_MAX = 8 << 20 };
  shoal_blob *out = shoal_blob_create(PAGE_MAX);
  z_stream stream = {.next_in = (unsigned char *)file->bytes, .avail_in = (unsigned)file->length};
  if (out == NULL || inflateInit2(&stream, 15 + 16) != Z_OK) {
    shoal_blob_release(out);
    return NULL;
  }
  stream.next_out = shoal_blob_bytes(out);
  stream.avail_out = PAGE_MAX;
  bool ok = inflate(&stream, Z_FINISH) == Z_STREAM_END;
  size_t length = stream.total_out;
  inflateEnd(&stream);
  if (!ok) {
    shoal_blob_release(out);
    return NULL;
  }
  shoal_blob_shorten(out, length);
  return out;
}

/* Files of the page by their path; every other path without a dot is a view of the page. */
void shoal_api_page(const shoal_api_call *call) {
  const shoal_request *r = call->request;
  const shoal_page_file *file = page_file(r->path);
  if (file == NULL && strchr(r->path, '.') == NULL) file = page_file("/index.html");
  if (file == NULL) {
    shoal_api_error(call, 404, "there is no such file");
    return;
  }
  shoal_answer answer = {.status = 200, .type = file->type, .etag = file->etag};
  if (r->if_none_match[0] != 0 && strstr(r->if_none_match, file->etag) != NULL) {
    answer.status = 304;
    answer.type = NULL;
  } else if (strstr(r->accept_encoding, "gzip") != NULL) {
    answer.body = shoal_blob_of(file->bytes, file->length);
    answer.encoding = "gzip";
  } else {
    answer.body = unzipped(file);
  }
  shoal_http_answer(call->api->net, r->id, &answer);
}
