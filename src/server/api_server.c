/* api_server.c: the routes of the server itself: who is there, access, metrics, the page. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/version.h"
#include "server/api.h"
#include "server/page_files.h"
#include "wire/http_read.h"

enum { LIST_MAX = 1000, DAYS_MAX = 3650 };

/* By what the store says; false: it does not answer. */
static bool count_stored(const shoal_api *api, const shoal_caller *caller,
                         uint64_t counts[SHOAL_JOB_STATES]) {
  shoal_job_row row;
  bool hosts = caller != NULL && caller->level >= SHOAL_HOST;
  if (caller == NULL || caller->job == 0)
    return shoal_store_count_jobs(api->store, hosts && caller->level == SHOAL_ADMIN,
                                  hosts ? caller->name : NULL, counts, NULL) == SHOAL_OK;
  if (shoal_store_job(api->store, caller->job, &row, NULL) != SHOAL_OK) return false;
  counts[row.state]++;
  shoal_job_rows_free(&row, 1);
  return true;
}

/* Jobs that the caller may see; NULL: that everybody may. */
static void count_jobs(const shoal_api *api, const shoal_caller *caller, uint64_t counts[SHOAL_JOB_STATES],
                       double *samples_per_s) {
  memset(counts, 0, SHOAL_JOB_STATES * sizeof *counts);
  *samples_per_s = 0;
  if (!count_stored(api, caller, counts)) return;
  counts[SHOAL_JOB_WAITING] = counts[SHOAL_JOB_RUNNING] = 0;
  for (const shoal_open_job *job = shoal_jobs_first(api->jobs); job != NULL; job = job->next) {
    bool seen =
        caller != NULL ? shoal_access_may_see(caller, job->id, job->is_private, job->host) : !job->is_private;
    if (!seen) continue;
    counts[job->state]++;
    if (job->stopping && counts[SHOAL_JOB_STOPPED] > 0) counts[SHOAL_JOB_STOPPED]--; /* it is not yet */
    *samples_per_s += shoal_open_job_pulse(job).samples_per_s;
  }
}

static void write_words(shoal_json *json, const char *key, const char *const *words) {
  shoal_json_open(json, key, '[');
  while (*words != NULL) shoal_json_text(json, NULL, *words++);
  shoal_json_close(json, ']');
}

void shoal_api_server_json(const shoal_api *api, const shoal_caller *caller, shoal_json *json) {
  uint64_t counts[SHOAL_JOB_STATES];
  double samples_per_s;
  uint32_t idle, paused, workers = shoal_volunteers_count(api->volunteers, &idle, &paused);
  count_jobs(api, caller, counts, &samples_per_s);
  shoal_json_open(json, NULL, '{');
  shoal_json_text(json, "name", "shoal");
  shoal_json_text(json, "version", SHOAL_VERSION);
  if (caller != NULL) {
    shoal_json_text(json, "role", shoal_role_level_name(caller->level));
    shoal_json_text(json, "who", caller->name);
    write_words(json, "optimizers", shoal_optimizer_words);
    write_words(json, "activations", shoal_activation_words);
  }
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
  shoal_json_int(json, "paused", paused);
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
  if (!shoal_live_join(call->api->live, call->request->id, 0, &call->caller)) {
    shoal_api_error(call, 503, "too many watch already");
    return;
  }
  shoal_api_answer(call, &(shoal_answer){.status = 200, .type = "text/event-stream", .stream = true});
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_api_server_json(call->api, NULL, &json);
  if (!text.failed) shoal_live_greet(call->api->net, call->request->id, "server", &text);
  shoal_text_release(&text);
}

/* Like the live updates of the server: what everybody may know who may see more than one job. */
void shoal_api_throughput(const shoal_api_call *call) {
  if (call->caller.job != 0) {
    shoal_api_error(call, 403, "this token is for one job only");
    return;
  }
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_throughput_write(&call->api->throughput, &json);
  shoal_json_close(&json, '}');
  shoal_api_json(call, 200, &text);
}

void shoal_api_list_workers(const shoal_api_call *call) {
  uint64_t limit;
  if (!shoal_api_number(call, "limit", 10 * LIST_MAX, LIST_MAX, &limit)) return;
  shoal_text text;
  shoal_json json;
  shoal_api_list_begin(&json, &text, "workers");
  const shoal_volunteer *v = NULL;
  while (limit-- > 0 && (v = shoal_volunteers_next(call->api->volunteers, v)) != NULL)
    if (call->caller.job == 0 || call->caller.job == v->job)
      shoal_volunteers_write(call->api->volunteers, v, call->caller.level == SHOAL_ADMIN, &json);
  shoal_api_list_end(call, &json);
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
  shoal_api_list_begin(&json, &text, "contributions");
  for (size_t i = 0; i < count; i++) {
    shoal_json_open(&json, NULL, '{');
    shoal_json_text(&json, "worker", rows[i].worker);
    shoal_json_int(&json, "units", (int64_t)rows[i].units);
    shoal_json_int(&json, "samples", (int64_t)rows[i].samples);
    shoal_json_real(&json, "seconds", rows[i].seconds);
    shoal_json_close(&json, '}');
  }
  shoal_contributions_free(rows, count);
  free(rows);
  shoal_api_list_end(call, &json);
}

/* ---- tokens ---- */

static bool job_is_own(const shoal_api_call *call, uint64_t job) {
  shoal_job_row row;
  if (job == 0 || shoal_store_job(call->api->store, job, &row, NULL) != SHOAL_OK) return false;
  bool own = shoal_access_owns(&call->caller, row.host);
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
  uint64_t after, limit;
  if (!shoal_api_number(call, "after", UINT64_MAX / 2, 0, &after) ||
      !shoal_api_number(call, "limit", LIST_MAX, LIST_MAX, &limit))
    return;
  shoal_token_row *rows = calloc(limit + 1, sizeof *rows);
  size_t count = 0;
  shoal_error err = {.status = SHOAL_NO_MEMORY, .text = "out of memory"};
  if (rows == NULL || shoal_store_tokens(call->api->store, after, rows, limit, &count, &err) != SHOAL_OK) {
    free(rows);
    shoal_api_failed(call, &err);
    return;
  }
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  if (count == limit && count > 0)
    shoal_json_int(&json, "next", (int64_t)rows[count - 1].id);
  else
    shoal_json_null(&json, "next");
  shoal_json_open(&json, "tokens", '[');
  for (size_t i = 0; i < count; i++) {
    if (!may_have(call, rows[i].job, rows[i].role)) continue;
    shoal_json_open(&json, NULL, '{');
    write_token(&json, &rows[i]);
    shoal_json_close(&json, '}');
  }
  shoal_token_rows_free(rows, count);
  free(rows);
  shoal_api_list_end(call, &json);
}

typedef struct wanted_token {
  shoal_role_level level;
  const char *role, *name;
  uint64_t job;
  double days;
  uint32_t count; /* 0: one, of this very name */
} wanted_token;

/* False: answered already. */
static bool read_token(const shoal_api_call *call, const cJSON *body, wanted_token *out) {
  const cJSON *role = cJSON_GetObjectItemCaseSensitive(body, "role");
  const cJSON *name = cJSON_GetObjectItemCaseSensitive(body, "name");
  const cJSON *job = cJSON_GetObjectItemCaseSensitive(body, "job");
  const cJSON *days = cJSON_GetObjectItemCaseSensitive(body, "days");
  const cJSON *count = cJSON_GetObjectItemCaseSensitive(body, "count");
  *out = (wanted_token){0};
  if (!cJSON_IsString(role) || !shoal_role_level_parse(role->valuestring, &out->level)) {
    shoal_api_error_at(call, 422, "\"role\" must be metrics, viewer, volunteer, host or admin", "role", 0, 0);
    return false;
  }
  if (!cJSON_IsString(name) || !shoal_spec_name_is_good(name->valuestring) ||
      strlen(name->valuestring) >= SHOAL_CALLER_NAME_MAX) {
    shoal_api_error_at(call, 422, "\"name\" must have 1 to 63 bytes, none of them / \\ : * ? \" < > | % #",
                       "name", 0, 0);
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
  bool has_count = count != NULL && !cJSON_IsNull(count);
  if (has_count &&
      !(cJSON_IsNumber(count) && count->valuedouble >= 1 && count->valuedouble <= SHOAL_TOKENS_AT_ONCE_MAX &&
        count->valuedouble == floor(count->valuedouble))) {
    shoal_api_error_at(call, 422, "\"count\" must be a whole number from 1 to 500", "count", 0, 0);
    return false;
  }
  out->count = has_count ? (uint32_t)count->valuedouble : 0;
  out->role = role->valuestring;
  out->name = name->valuestring;
  out->job = has_job ? (uint64_t)job->valuedouble : 0;
  out->days = has_days ? days->valuedouble : 0;
  return true;
}

/* A token that was just made, with its secret: the number-th of several, 0 for one. */
static void write_made(const shoal_api_call *call, const wanted_token *wanted, uint32_t number, uint64_t id,
                       const char *token, double now, shoal_json *json) {
  char name[SHOAL_CALLER_NAME_MAX];
  shoal_text link = {0}, base = {0};
  shoal_access_numbered(wanted->name, number, name);
  shoal_access_link_base(&base, call->api->url, call->request->host, call->request->origin);
  shoal_access_link(&link, base.failed ? call->api->url : base.bytes, token, call->api->fingerprint);
  const shoal_token_row row = {.id = id,
                               .role = (char *)wanted->role,
                               .name = name,
                               .job = wanted->job,
                               .created = now,
                               .expires = wanted->days > 0 ? now + 86400 * wanted->days : 0};
  shoal_json_open(json, NULL, '{');
  write_token(json, &row);
  shoal_json_text(json, "token", token);
  shoal_json_text(json, "link", link.bytes);
  shoal_json_close(json, '}');
  shoal_text_release(&link);
  shoal_text_release(&base);
}

static void answer_made(const shoal_api_call *call, const wanted_token *wanted, const uint64_t *ids,
                        char (*tokens)[SHOAL_TOKEN_CHARS + 1], double now) {
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  if (wanted->count > 0) {
    shoal_json_open(&json, NULL, '{');
    shoal_json_open(&json, "tokens", '[');
    for (uint32_t i = 0; i < wanted->count; i++)
      write_made(call, wanted, i + 1, ids[i], tokens[i], now, &json);
    shoal_json_close(&json, ']');
    shoal_json_close(&json, '}');
    shoal_api_about(call, "%u, %s, %s", wanted->count, wanted->role, wanted->name);
  } else {
    write_made(call, wanted, 0, ids[0], tokens[0], now, &json);
    shoal_api_about(call, "%s, %s", wanted->role, wanted->name);
  }
  shoal_api_json(call, 201, &text);
}

static void make_token(const shoal_api_call *call, const wanted_token *wanted) {
  size_t count = wanted->count > 0 ? wanted->count : 1;
  char(*tokens)[SHOAL_TOKEN_CHARS + 1] = calloc(count, sizeof *tokens);
  uint64_t *ids = calloc(count, sizeof *ids);
  shoal_error err;
  shoal_access *access = call->api->access;
  double now = shoal_clock_wall_seconds();
  shoal_status status;
  if (tokens == NULL || ids == NULL)
    status = shoal_fail(&err, SHOAL_NO_MEMORY, "out of memory");
  else if (wanted->count > 0)
    status = shoal_access_mint_many(access, wanted->level, wanted->name, wanted->job, wanted->days, now,
                                    wanted->count, tokens, ids, &err);
  else
    status = shoal_access_mint(access, wanted->level, wanted->name, wanted->job, wanted->days, now, tokens[0],
                               ids, &err);
  if (status == SHOAL_OK)
    answer_made(call, wanted, ids, tokens, now);
  else if (status == SHOAL_NOT_FOUND)
    shoal_api_error_at(call, 422, err.text, "job", 0, 0);
  else
    shoal_api_failed_full(call, &err);
  if (tokens != NULL) OPENSSL_cleanse(tokens, count * sizeof *tokens);
  free(tokens);
  free(ids);
}

void shoal_api_make_token(const shoal_api_call *call) {
  cJSON *body = shoal_api_body(call);
  wanted_token wanted;
  if (body == NULL) return;
  if (read_token(call, body, &wanted)) {
    if (may_have(call, wanted.job, wanted.role))
      make_token(call, &wanted);
    else
      shoal_api_error(call, 403, "a host may invite viewers and volunteers to own jobs");
  }
  cJSON_Delete(body);
}

void shoal_api_delete_token(const shoal_api_call *call) {
  shoal_token_row row;
  shoal_error err;
  shoal_status status = shoal_store_token_by_id(call->api->store, call->id, &row, &err);
  if (status == SHOAL_OK) {
    bool may = may_have(call, row.job, row.role);
    if (may) shoal_api_about(call, "%s, %s", row.role, row.name);
    shoal_token_rows_free(&row, 1);
    status = may ? shoal_store_delete_token(call->api->store, call->id, &err)
                 : shoal_fail(&err, SHOAL_NOT_FOUND, "there is no such token");
  }
  if (status != SHOAL_OK) {
    shoal_api_failed(call, &err);
    return;
  }
  shoal_access_forget(call->api->access, call->id);
  shoal_volunteers_close_token(call->api->volunteers, call->id);
  shoal_live_close_token(call->api->live, call->api->net, call->id);
  shoal_api_empty(call, 204);
}

/* ---- bans ---- */

void shoal_api_list_bans(const shoal_api_call *call) {
  shoal_text text;
  shoal_json json;
  shoal_error err;
  shoal_json_begin(&json, &text);
  shoal_status status = shoal_standings_write_bans(shoal_jobs_standings(call->api->jobs), &json, &err);
  shoal_api_finish(call, 200, status, &text, &err);
}

void shoal_api_lift_ban(const shoal_api_call *call) {
  char by[SHOAL_CALLER_TEXT_MAX];
  shoal_error err;
  shoal_access_describe(&call->caller, call->request->address, by);
  if (shoal_jobs_lift_ban(call->api->jobs, call->id, by, &err) != SHOAL_OK) {
    shoal_api_failed(call, &err);
    return;
  }
  shoal_volunteers_reconsider(call->api->volunteers);
  shoal_api_empty(call, 204);
}

/* ---- the audit log ---- */

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
  shoal_api_list_begin(&json, &text, "entries");
  for (size_t i = 0; i < count; i++) {
    shoal_json_open(&json, NULL, '{');
    shoal_json_int(&json, "number", (int64_t)rows[i].number);
    shoal_json_real(&json, "time", rows[i].time);
    shoal_json_text(&json, "who", rows[i].who);
    shoal_json_text(&json, "what", rows[i].what);
    shoal_json_close(&json, '}');
  }
  shoal_audit_rows_free(rows, count);
  shoal_api_list_end(call, &json);
}

/* ---- metrics ---- */

static void head(shoal_text *out, const char *name, const char *type, const char *help) {
  shoal_text_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void series(shoal_text *out, const char *name, const char *type, const char *help, double value) {
  head(out, name, type, help);
  shoal_text_addf(out, "%s %.17g\n", name, value);
}

/* Of those that the caller may see. */
static void write_job_metrics(const shoal_api *api, const shoal_caller *caller, shoal_text *out) {
  static const struct {
    const char *name, *type, *help;
  } all[] = {
      {"shoal_job_step", "gauge", "Rounds that are done, of a search units; fewer when a job has gone back."},
      {"shoal_job_loss", "gauge", "Mean loss of the last rounds."},
      {"shoal_job_samples_per_second", "gauge", "Samples trained on; of an agent, steps played."},
      {"shoal_job_workers", "gauge", "Volunteers that work for the job."},
      {"shoal_job_units_leased_again", "counter",
       "Units given to a second volunteer, since the server started."},
  };
  for (size_t n = 0; n < sizeof all / sizeof all[0]; n++) {
    head(out, all[n].name, all[n].type, all[n].help);
    for (const shoal_open_job *job = shoal_jobs_first(api->jobs); job != NULL; job = job->next) {
      const shoal_job_pulse pulse = shoal_open_job_pulse(job);
      if (!shoal_access_may_see(caller, job->id, job->is_private, job->host)) continue;
      const double values[] = {(double)pulse.step, pulse.loss, pulse.samples_per_s, job->workers,
                               (double)job->timeline.again};
      if (values[n] == values[n])
        shoal_text_addf(out, "%s{job=\"%" PRIu64 "\"} %.17g\n", all[n].name, job->id, values[n]);
    }
  }
}

void shoal_api_metrics(const shoal_api_call *call) {
  const shoal_api *api = call->api;
  uint64_t counts[SHOAL_JOB_STATES], in, out;
  double samples_per_s;
  shoal_store_state health;
  uint32_t idle, paused, workers = shoal_volunteers_count(api->volunteers, &idle, &paused);
  shoal_text text = {0};
  count_jobs(api, &call->caller, counts, &samples_per_s);
  shoal_net_moved(api->net, &in, &out);
  head(&text, "shoal_jobs", "gauge", "Jobs by state, of those that the caller may see.");
  for (int s = 0; s < SHOAL_JOB_STATES; s++)
    shoal_text_addf(&text, "shoal_jobs{state=\"%s\"} %" PRIu64 "\n", shoal_job_state_name((shoal_job_state)s),
                    counts[s]);
  series(&text, "shoal_workers", "gauge", "Volunteers that are here.", workers);
  series(&text, "shoal_workers_idle", "gauge", "Volunteers that have nothing to compute and are not paused.",
         idle);
  series(&text, "shoal_workers_paused", "gauge", "Volunteers that cannot work now.", paused);
  series(&text, "shoal_samples_per_second", "gauge",
         "Samples trained on and steps played, all jobs together.", samples_per_s);
  series(&text, "shoal_received_bytes", "counter", "Bytes of messages that came in.", (double)in);
  series(&text, "shoal_sent_bytes", "counter", "Bytes of messages that went out.", (double)out);
  series(&text, "shoal_uptime_seconds", "gauge", "Since the server started.",
         shoal_clock_wall_seconds() - api->started);
  shoal_store_health(api->store, &health);
  series(&text, "shoal_store_up", "gauge",
         "1 if the store can be read and written, 0 while it is unavailable.", health.up);
  series(&text, "shoal_store_failed_writes", "counter", "Changes that the store did not take at once.",
         (double)health.failures);
  series(&text, "shoal_store_due_writes", "gauge", "Changes that are kept until the store takes them.",
         (double)health.due);
  series(&text, "shoal_store_lost_writes", "counter",
         "Writes that were dropped: too many were waiting, or the store refused them.", (double)health.lost);
  write_job_metrics(api, &call->caller, &text);
  if (text.failed)
    shoal_api_error(call, 503, "out of memory");
  else
    shoal_api_bytes(call, text.bytes, text.length,
                    &(shoal_answer){.status = 200, .type = "text/plain; version=0.0.4; charset=utf-8"});
  shoal_text_release(&text);
}

/* ---- for those who keep the server running ---- */

void shoal_api_alive(const shoal_api_call *call) {
  shoal_text text = {0};
  shoal_text_addf(&text, "{\"alive\":true}");
  shoal_api_json(call, 200, &text);
}

/* Why, as far as everybody may know: the log has the rest. */
void shoal_api_ready(const shoal_api_call *call) {
  shoal_store_state health;
  shoal_text text = {0};
  shoal_store_health(call->api->store, &health);
  if (health.up)
    shoal_text_addf(&text, "{\"ready\":true}");
  else
    shoal_text_addf(
        &text,
        "{\"ready\":false,\"reason\":\"the store (%s) has been unavailable for %.0f s; the server's "
        "log says why\",\"due_writes\":%" PRIu64 "}",
        shoal_store_kind(call->api->store), shoal_clock_seconds() - health.since, health.due);
  shoal_api_json(call, health.up ? 200 : 503, &text);
}

/* ---- the page ---- */

/* As web/src/routes.ts has them. */
static bool is_view(const char *path) {
  static const char *const views[] = {"/",      "/workers", "/host",   "/search",
                                      "/agent", "/work",    "/access", "/compare"};
  static const char jobs[] = "/jobs/";
  uint64_t job;
  for (size_t i = 0; i < sizeof views / sizeof views[0]; i++)
    if (strcmp(path, views[i]) == 0) return true;
  return strncmp(path, jobs, sizeof jobs - 1) == 0 &&
         shoal_read_u64(path + sizeof jobs - 1, strlen(path + sizeof jobs - 1), &job);
}

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

/* Files of the page by their path, and its views. Elsewhere the page says that there is nothing. */
void shoal_api_page(const shoal_api_call *call) {
  const shoal_request *r = call->request;
  const shoal_page_file *file = page_file(r->path);
  bool is_there = file != NULL || is_view(r->path);
  if (file == NULL && strchr(r->path, '.') == NULL) file = page_file("/index.html");
  if (file == NULL) {
    shoal_api_error(call, 404, "there is no such file");
    return;
  }
  shoal_answer answer = {
      .status = is_there ? 200 : 404, .type = file->type, .etag = is_there ? file->etag : NULL};
  if (is_there && r->if_none_match[0] != 0 && strstr(r->if_none_match, file->etag) != NULL) {
    answer.status = 304;
    answer.type = NULL;
  } else if (strstr(r->accept_encoding, "gzip") != NULL) {
    answer.body = shoal_blob_of(file->bytes, file->length);
    answer.encoding = "gzip";
  } else {
    answer.body = unzipped(file);
    if (answer.body == NULL) {
      shoal_api_error(call, 503, "the server has not the memory for that now; try again");
      return;
    }
  }
  shoal_api_answer(call, &answer);
}
