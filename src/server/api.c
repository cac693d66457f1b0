/* api.c: see api.h: finds the route, asks who it is, and has errors look alike. */
#include "server/api.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "wire/http_read.h"

enum { JSON_MAX = 2 << 20, SMALL_MAX = 64 << 10, STATE_MAX = 64 << 20, ROLLOUT_MAX = 32 << 20 };
#define UPLOAD_MAX (UINT64_C(4) << 30)

static const shoal_route routes[] = {
    {SHOAL_GET, "/api/v1/server", SHOAL_VIEWER, 0, false, shoal_api_server},
    {SHOAL_GET, "/api/v1/live", SHOAL_VIEWER, 0, false, shoal_api_live},
    {SHOAL_GET, "/api/v1/jobs", SHOAL_VIEWER, 0, false, shoal_api_list_jobs},
    {SHOAL_POST, "/api/v1/jobs", SHOAL_HOST, JSON_MAX, false, shoal_api_submit_job},
    {SHOAL_GET, "/api/v1/jobs/*", SHOAL_VIEWER, 0, false, shoal_api_show_job},
    {SHOAL_DELETE, "/api/v1/jobs/*", SHOAL_HOST, 0, false, shoal_api_delete_job},
    {SHOAL_POST, "/api/v1/jobs/*/stop", SHOAL_HOST, SMALL_MAX, false, shoal_api_stop_job},
    {SHOAL_POST, "/api/v1/jobs/*/resume", SHOAL_HOST, SMALL_MAX, false, shoal_api_resume_job},
    {SHOAL_GET, "/api/v1/jobs/*/history", SHOAL_VIEWER, 0, false, shoal_api_job_history},
    {SHOAL_GET, "/api/v1/jobs/*/workers", SHOAL_VIEWER, 0, false, shoal_api_job_workers},
    {SHOAL_GET, "/api/v1/jobs/*/timeline", SHOAL_VIEWER, 0, false, shoal_api_job_timeline},
    {SHOAL_GET, "/api/v1/jobs/*/swarm", SHOAL_VIEWER, 0, false, shoal_api_job_swarm},
    {SHOAL_GET, "/api/v1/jobs/*/log", SHOAL_VIEWER, 0, false, shoal_api_job_log},
    {SHOAL_GET, "/api/v1/jobs/*/model", SHOAL_VIEWER, 0, false, shoal_api_job_model},
    {SHOAL_GET, "/api/v1/jobs/*/model.onnx", SHOAL_VIEWER, 0, false, shoal_api_job_onnx},
    {SHOAL_GET, "/api/v1/jobs/*/evaluation", SHOAL_VIEWER, 0, false, shoal_api_job_evaluation},
    {SHOAL_GET, "/api/v1/jobs/*/events", SHOAL_VIEWER, 0, false, shoal_api_job_events},
    {SHOAL_GET, "/api/v1/jobs/*/live", SHOAL_VIEWER, 0, false, shoal_api_job_live},
    {SHOAL_GET, "/api/v1/jobs/*/brief", SHOAL_VOLUNTEER, 0, false, shoal_api_job_brief},
    {SHOAL_POST, "/api/v1/jobs/*/units", SHOAL_VOLUNTEER, SMALL_MAX, false, shoal_api_take_unit},
    {SHOAL_POST, "/api/v1/jobs/*/units/*/beat", SHOAL_VOLUNTEER, SMALL_MAX, false, shoal_api_beat_unit},
    {SHOAL_POST, "/api/v1/jobs/*/units/*/failed", SHOAL_VOLUNTEER, SMALL_MAX, false, shoal_api_fail_unit},
    {SHOAL_POST, "/api/v1/jobs/*/units/*/result", SHOAL_VOLUNTEER, JSON_MAX, false, shoal_api_finish_unit},
    {SHOAL_GET, "/api/v1/jobs/*/trials/*/state", SHOAL_VOLUNTEER, 0, false, shoal_api_get_state},
    {SHOAL_PUT, "/api/v1/jobs/*/units/*/state", SHOAL_VOLUNTEER, STATE_MAX, false, shoal_api_put_state},
    {SHOAL_GET, "/api/v1/jobs/*/trials", SHOAL_VIEWER, 0, false, shoal_api_list_trials},
    {SHOAL_GET, "/api/v1/jobs/*/trials/*", SHOAL_VIEWER, 0, false, shoal_api_show_trial},
    {SHOAL_GET, "/api/v1/jobs/*/trials.csv", SHOAL_VIEWER, 0, false, shoal_api_trials_csv},
    {SHOAL_GET, "/api/v1/jobs/*/insight", SHOAL_VIEWER, 0, false, shoal_api_job_insight},
    {SHOAL_POST, "/api/v1/jobs/*/predict", SHOAL_VIEWER, JSON_MAX, false, shoal_api_predict},
    {SHOAL_GET, "/api/v1/envs", SHOAL_VIEWER, 0, false, shoal_api_list_envs},
    {SHOAL_POST, "/api/v1/jobs/*/play", SHOAL_VOLUNTEER, ROLLOUT_MAX, false, shoal_api_play},
    {SHOAL_GET, "/api/v1/jobs/*/points", SHOAL_VIEWER, 0, false, shoal_api_job_points},
    {SHOAL_GET, "/api/v1/jobs/*/checkpoints", SHOAL_VIEWER, 0, false, shoal_api_list_checkpoints},
    {SHOAL_GET, "/api/v1/jobs/*/checkpoints/*", SHOAL_VIEWER, 0, false, shoal_api_get_checkpoint},
    {SHOAL_GET, "/api/v1/jobs/*/checkpoints/*/episode", SHOAL_VIEWER, 0, false, shoal_api_play_episode},
    {SHOAL_GET, "/api/v1/models", SHOAL_VIEWER, 0, false, shoal_api_list_models},
    {SHOAL_POST, "/api/v1/models/check", SHOAL_VIEWER, JSON_MAX, false, shoal_api_check_model},
    {SHOAL_GET, "/api/v1/models/*", SHOAL_VIEWER, 0, false, shoal_api_show_model},
    {SHOAL_PUT, "/api/v1/models/*", SHOAL_HOST, JSON_MAX, false, shoal_api_put_model},
    {SHOAL_DELETE, "/api/v1/models/*", SHOAL_HOST, 0, false, shoal_api_delete_model},
    {SHOAL_GET, "/api/v1/datasets", SHOAL_VIEWER, 0, false, shoal_api_list_datasets},
    {SHOAL_GET, "/api/v1/datasets/*", SHOAL_VIEWER, 0, false, shoal_api_show_dataset},
    {SHOAL_POST, "/api/v1/datasets/*", SHOAL_HOST, SMALL_MAX, false, shoal_api_seal_dataset},
    {SHOAL_DELETE, "/api/v1/datasets/*", SHOAL_HOST, 0, false, shoal_api_delete_dataset},
    {SHOAL_PUT, "/api/v1/datasets/*/files/*", SHOAL_HOST, UPLOAD_MAX, true, shoal_api_upload_file},
    {SHOAL_POST, "/api/v1/datasets/*/profile", SHOAL_VIEWER, SMALL_MAX, false, shoal_api_profile_dataset},
    {SHOAL_GET, "/api/v1/datasets/*/manifest", SHOAL_VOLUNTEER, 0, false, shoal_api_dataset_manifest},
    {SHOAL_GET, "/chunks/*", SHOAL_VOLUNTEER, 0, false, shoal_api_chunk},
    {SHOAL_GET, "/api/v1/workers", SHOAL_VIEWER, 0, false, shoal_api_list_workers},
    {SHOAL_GET, "/api/v1/throughput", SHOAL_VIEWER, 0, false, shoal_api_throughput},
    {SHOAL_GET, "/api/v1/contributions", SHOAL_VIEWER, 0, false, shoal_api_contributions},
    {SHOAL_GET, "/api/v1/tokens", SHOAL_HOST, 0, false, shoal_api_list_tokens},
    {SHOAL_POST, "/api/v1/tokens", SHOAL_HOST, SMALL_MAX, false, shoal_api_make_token},
    {SHOAL_DELETE, "/api/v1/tokens/*", SHOAL_HOST, 0, false, shoal_api_delete_token},
    {SHOAL_GET, "/api/v1/bans", SHOAL_ADMIN, 0, false, shoal_api_list_bans},
    {SHOAL_DELETE, "/api/v1/bans/*", SHOAL_ADMIN, 0, false, shoal_api_lift_ban},
    {SHOAL_GET, "/api/v1/audit", SHOAL_ADMIN, 0, false, shoal_api_audit},
    {SHOAL_GET, "/metrics", SHOAL_METRICS, 0, false, shoal_api_metrics},
    {SHOAL_GET, "/healthz", SHOAL_NOBODY, 0, false, shoal_api_alive},
    {SHOAL_GET, "/readyz", SHOAL_NOBODY, 0, false, shoal_api_ready},
};

/* The page's own files, for everybody: what has no secret needs no token. */
static const shoal_route page = {SHOAL_GET, "/", SHOAL_NOBODY, 0, false, shoal_api_page};

const shoal_route *shoal_api_routes(size_t *count) {
  *count = sizeof routes / sizeof routes[0];
  return routes;
}

/* ---- finding the route ---- */

/* Whether a path fits a route's; what stands for its stars goes into names. */
static bool fits(const char *route, const char *path, char names[2][SHOAL_API_NAME_MAX]) {
  size_t star = 0;
  while (*route != 0) {
    if (*route != '*') {
      if (*route++ != *path++) return false;
      continue;
    }
    size_t length = strcspn(path, "/");
    if (length == 0 || length >= SHOAL_API_NAME_MAX) return false;
    memcpy(names[star], path, length);
    names[star++][length] = 0;
    path += length;
    route++;
  }
  return *path == 0;
}

/* *known: there is such a path, perhaps with another method. */
static const shoal_route *find(shoal_method method, const char *path, char names[2][SHOAL_API_NAME_MAX],
                               bool *known) {
  *known = false;
  for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
    if (!fits(routes[i].path, path, names)) continue;
    *known = true;
    if (routes[i].method == method) return &routes[i];
  }
  bool of_api = strncmp(path, "/api/", 5) == 0 || strncmp(path, "/chunks/", 8) == 0;
  if (*known || of_api) return NULL;
  *known = true;
  return method == SHOAL_GET ? &page : NULL;
}

/* ---- answers ---- */

/* The reason stands in the log alone, since it may name folders and hosts. */
static const char STORE_AWAY[] =
    "the server's store is unavailable; running jobs continue. Try again in a few seconds";
enum { RETRY_S = 2 };

static const char *const method_names[] = {"GET", "POST", "PUT", "DELETE", "OTHER"};

static const char *code_of(int status) {
  switch (status) {
  case 400: return "bad_request";
  case 401: return "unauthorized";
  case 403: return "forbidden";
  case 404: return "not_found";
  case 405: return "method_not_allowed";
  case 409: return "conflict";
  case 410: return "gone";
  case 413: return "too_large";
  case 422: return "unprocessable";
  case 429: return "too_many";
  case 503: return "unavailable";
  default: return "internal";
  }
}

static shoal_blob *write_error(int status, const char *text, const char *field, uint32_t line,
                               uint32_t column) {
  shoal_text body;
  shoal_json json;
  shoal_json_begin(&json, &body);
  shoal_json_open(&json, NULL, '{');
  shoal_json_open(&json, "error", '{');
  shoal_json_text(&json, "code", code_of(status));
  shoal_json_text(&json, "text", text);
  if (field != NULL && field[0] != 0) shoal_json_text(&json, "field", field);
  if (line > 0) shoal_json_int(&json, "line", line);
  if (column > 0) shoal_json_int(&json, "column", column);
  shoal_json_close(&json, '}');
  shoal_json_close(&json, '}');
  shoal_blob *blob = shoal_blob_of(body.bytes, body.length);
  shoal_text_release(&body);
  return blob;
}

static void answer_error(shoal_api *api, uint64_t id, int status, const char *text, const char *field,
                         uint32_t line, uint32_t column, uint32_t retry_s) {
  const shoal_answer answer = {.status = status,
                               .type = "application/json",
                               .body = write_error(status, text, field, line, column),
                               .retry_after_s = retry_s};
  shoal_http_answer(api->net, id, &answer);
}

/* A path that there is, with another method: which ones it takes is told, too. */
static void answer_not_allowed(shoal_api *api, const shoal_request *r) {
  char names[2][SHOAL_API_NAME_MAX];
  shoal_text allow = {0};
  for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
    if (!fits(routes[i].path, r->path, names)) continue;
    const char *name = method_names[routes[i].method];
    shoal_text_addf(&allow, "%s%s%s", allow.length > 0 ? ", " : "", name,
                    routes[i].method == SHOAL_GET ? ", HEAD" : "");
  }
  const shoal_answer answer = {.status = 405,
                               .type = "application/json",
                               .body = write_error(405, "this path does not take that method", NULL, 0, 0),
                               .allow =
                                   allow.length > 0 ? allow.bytes : "GET, HEAD"}; /* those are the page's */
  shoal_http_answer(api->net, r->id, &answer);
  shoal_text_release(&allow);
}

/* A line of the log: who or where, and what. */
static void log_line(const shoal_api *api, const char *kind, const char *key, const char *value,
                     const char *what) {
  shoal_text fields = {0};
  shoal_json json;
  shoal_json_init(&json, &fields);
  shoal_json_text(&json, key, value);
  shoal_json_text(&json, "what", what);
  if (!fields.failed) api->log(api->self, kind, fields.bytes);
  shoal_text_release(&fields);
}

/* What programs ask by the hundred: it is neither counted against their address nor written down. */
static bool is_often(const char *path) {
  char names[2][SHOAL_API_NAME_MAX];
  static const char *const often[] = {"/chunks/*",
                                      "/api/v1/jobs/*/units",
                                      "/api/v1/jobs/*/units/*/beat",
                                      "/api/v1/jobs/*/units/*/failed",
                                      "/api/v1/jobs/*/units/*/result",
                                      "/api/v1/jobs/*/units/*/state",
                                      "/api/v1/jobs/*/trials/*/state",
                                      "/api/v1/jobs/*/play",
                                      "/api/v1/jobs/*/predict",
                                      "/api/v1/datasets/*/profile"};
  for (size_t i = 0; i < sizeof often / sizeof often[0]; i++)
    if (fits(often[i], path, names)) return true;
  return false;
}

/* What changes something is written down, in the store and in the log. */
static void audit(const shoal_api_call *call, int status) {
  const shoal_request *r = call->request;
  if (r->method == SHOAL_GET || strcmp(r->path, "/api/v1/models/check") == 0 || is_often(r->path)) return;
  char who[SHOAL_CALLER_TEXT_MAX];
  shoal_text what = {0};
  shoal_error err;
  shoal_access_describe(&call->caller, r->address, who);
  shoal_text_addf(&what, "%s %s: %d", method_names[r->method], r->path, status);
  if (call->api->about[0] != 0) shoal_text_addf(&what, " (%s)", call->api->about);
  call->api->about[0] = 0;
  if (!what.failed) {
    log_line(call->api, status < 400 ? "change" : "refused", "who", who, what.bytes);
    if (shoal_store_add_audit(call->api->store, shoal_clock_wall_seconds(), who, what.bytes, &err) !=
        SHOAL_OK)
      log_line(call->api, "error", "path", r->path, err.text);
  }
  shoal_text_release(&what);
}

void shoal_api_about(const shoal_api_call *call, const char *format, ...) {
  char text[SHOAL_API_ABOUT_MAX];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  shoal_text_plain(call->api->about, sizeof call->api->about, text, strlen(text));
}

void shoal_api_answer(const shoal_api_call *call, const shoal_answer *answer) {
  audit(call, answer->status);
  shoal_http_answer(call->api->net, call->request->id, answer);
}

void shoal_api_error(const shoal_api_call *call, int status, const char *text) {
  shoal_api_error_at(call, status, text, NULL, 0, 0);
}

void shoal_api_error_at(const shoal_api_call *call, int status, const char *text, const char *field,
                        uint32_t line, uint32_t column) {
  const shoal_answer answer = {.status = status,
                               .type = "application/json",
                               .body = write_error(status, text, field, line, column),
                               .retry_after_s = status == 503 ? RETRY_S : 0};
  shoal_api_answer(call, &answer);
}

/* What an error is in HTTP; limit: what SHOAL_LIMIT is. */
static int status_of(const shoal_error *err, int limit) {
  switch (err->status) {
  case SHOAL_NOT_FOUND: return 404;
  case SHOAL_CONFLICT: return 409;
  case SHOAL_INVALID:
  case SHOAL_UNSUPPORTED: return 422;
  case SHOAL_LIMIT: return limit;
  case SHOAL_NO_MEMORY:
  case SHOAL_UNAVAILABLE:
  case SHOAL_STOPPED: return 503;
  default: return 500;
  }
}

/* The server's own trouble may name its folders: whoever runs it reads that in the log, and nobody else. */
static const char *text_for_callers(const shoal_api *api, const shoal_request *r, const shoal_error *err,
                                    int status) {
  if (err->status == SHOAL_UNAVAILABLE) return STORE_AWAY;
  if (status != 500) return err->text;
  log_line(api, "error", "path", r->path, err->text);
  return "something is wrong on the server; its log says what";
}

static void fail(const shoal_api_call *call, const shoal_error *err, int limit) {
  int status = status_of(err, limit);
  shoal_api_error(call, status, text_for_callers(call->api, call->request, err, status));
}

void shoal_api_failed(const shoal_api_call *call, const shoal_error *err) { fail(call, err, 413); }

void shoal_api_failed_full(const shoal_api_call *call, const shoal_error *err) { fail(call, err, 429); }

void shoal_api_json(const shoal_api_call *call, int status, shoal_text *text) {
  if (text->failed) {
    shoal_api_error(call, 503, "out of memory");
  } else {
    const shoal_answer answer = {.status = status,
                                 .type = "application/json",
                                 .body = shoal_blob_of(text->bytes, text->length),
                                 .retry_after_s = status == 503 ? RETRY_S : 0};
    shoal_api_answer(call, &answer);
  }
  shoal_text_release(text);
}

void shoal_api_finish(const shoal_api_call *call, int http_status, shoal_status status, shoal_text *text,
                      const shoal_error *err) {
  if (status == SHOAL_OK) {
    shoal_api_json(call, http_status, text);
  } else {
    shoal_text_release(text);
    shoal_api_failed(call, err);
  }
}

void shoal_api_bytes(const shoal_api_call *call, const void *bytes, size_t length,
                     const shoal_answer *answer) {
  shoal_answer whole = *answer;
  whole.body = shoal_blob_create(length);
  if (whole.body == NULL) {
    shoal_api_error(call, 503, "the server has not the memory for that now; try again");
    return;
  }
  if (length > 0) memcpy(shoal_blob_bytes(whole.body), bytes, length);
  shoal_api_answer(call, &whole);
}

cJSON *shoal_api_body(const shoal_api_call *call) {
  shoal_blob *body = call->request->body;
  cJSON *json = body != NULL
                    ? cJSON_ParseWithLength((const char *)shoal_blob_bytes(body), shoal_blob_length(body))
                    : NULL;
  if (cJSON_IsObject(json)) return json;
  cJSON_Delete(json);
  shoal_api_error(call, 400, "the body is no JSON object");
  return NULL;
}

void shoal_api_list_begin(shoal_json *json, shoal_text *text, const char *key) {
  shoal_json_begin(json, text);
  shoal_json_open(json, NULL, '{');
  shoal_json_open(json, key, '[');
}

void shoal_api_list_end(const shoal_api_call *call, shoal_json *json) {
  shoal_json_close(json, ']');
  shoal_json_close(json, '}');
  shoal_api_json(call, 200, json->out);
}

void shoal_api_empty(const shoal_api_call *call, int status) {
  shoal_api_answer(call, &(shoal_answer){.status = status});
}

/* ---- who may ---- */

/* A job that the caller may see, whose row is then the caller's to free; answers when not. */
static bool find_job(const shoal_api_call *call, uint64_t job, shoal_job_row *row) {
  shoal_error err;
  bool hidden = job == 0 || (call->caller.job != 0 && call->caller.job != job);
  shoal_status status = hidden ? shoal_fail(&err, SHOAL_NOT_FOUND, "there is no job %.32s", call->names[0])
                               : shoal_store_job(call->api->store, job, row, &err);
  if (status != SHOAL_OK) {
    shoal_api_failed(call, &err);
    return false;
  }
  if (!row->is_private || shoal_access_invited(&call->caller, job, row->host)) return true;
  shoal_job_rows_free(row, 1);
  shoal_api_error(call, 403, "this job is private; ask its host for an invitation");
  return false;
}

bool shoal_api_may_see(const shoal_api_call *call, uint64_t job) {
  shoal_job_row row;
  bool may = find_job(call, job, &row);
  if (may) shoal_job_rows_free(&row, 1);
  return may;
}

bool shoal_api_may_change(const shoal_api_call *call, uint64_t job) {
  shoal_job_row row;
  if (!find_job(call, job, &row)) return false;
  bool may = call->caller.level == SHOAL_ADMIN || shoal_access_owns(&call->caller, row.host);
  shoal_api_about(call, "%s", row.name);
  shoal_job_rows_free(&row, 1);
  if (!may) shoal_api_error(call, 403, "only its host and admins may do that");
  return may;
}

bool shoal_api_bans(const shoal_api_call *call, uint64_t who) {
  if (!shoal_standings_get(shoal_jobs_standings(call->api->jobs), who).banned) return false;
  shoal_api_error(call, 403, "gets no work here: results of this worker were wrong");
  return true;
}

bool shoal_api_number(const shoal_api_call *call, const char *name, uint64_t most, uint64_t otherwise,
                      uint64_t *out) {
  char value[32];
  *out = otherwise;
  if (!shoal_query_value(call->request->query, name, value, sizeof value)) return true;
  if (shoal_read_u64(value, strlen(value), out) && *out <= most) return true;
  char text[128];
  snprintf(text, sizeof text, "%s must be a whole number up to %" PRIu64, name, most);
  shoal_api_error_at(call, 400, text, name, 0, 0);
  return false;
}

bool shoal_api_keep_call(shoal_kept_call *out, const shoal_api_call *call) {
  const shoal_request *r = call->request;
  out->path = strdup(r->path);
  out->address = strdup(r->address);
  out->request =
      (shoal_request){.id = r->id, .method = r->method, .path = out->path, .address = out->address};
  out->call = *call;
  out->call.request = &out->request;
  return out->path != NULL && out->address != NULL;
}

void shoal_api_release_call(shoal_kept_call *kept) {
  free(kept->path);
  free(kept->address);
}

/* ---- requests ---- */

/* What is asked: by whom at least, whether a page of another site may not, and whether it is asked by the
 * hundred. */
typedef struct demand {
  shoal_role_level level;
  bool own_pages, often;
} demand;

typedef struct verdict {
  int status; /* 0: the caller may */
  uint32_t retry_s;
  char text[96];
} verdict;

static verdict refuse(int status, uint32_t retry_s, const char *text) {
  verdict v = {.status = status, .retry_s = retry_s};
  snprintf(v.text, sizeof v.text, "%s", text);
  return v;
}

/* Who asks, and whether they may: of requests and WebSockets alike. */
static verdict judge(shoal_api *api, const shoal_request *r, const demand *d, shoal_caller *caller) {
  uint32_t retry_s = 0;
  int refused = (d->often ? shoal_access_ask_often : shoal_access_ask)(
      api->access, r->authorization, r->address, shoal_clock_wall_seconds(), shoal_clock_seconds(), caller,
      &retry_s);
  if (refused == 429) return refuse(429, retry_s, "too many requests; wait a little");
  if (d->level == SHOAL_NOBODY) return (verdict){0};
  if (refused == 503) return refuse(503, RETRY_S, STORE_AWAY);
  if (refused != 0 || caller->level == SHOAL_NOBODY)
    return refuse(401, 0, "this needs a token that is valid: use an invitation link");
  if (caller->token == 0 && api->open != SHOAL_NOBODY && !shoal_access_host_is_local(r->host) &&
      shoal_access_is_loopback(r->address))
    return refuse(403, 0, "asked under a name that is not this machine's");
  if (d->own_pages && r->origin[0] != 0 && !shoal_access_same_origin(r->host, r->origin))
    return refuse(403, 0, "a page of another site may not do that");
  if (caller->level >= d->level) return (verdict){0};
  char text[96];
  snprintf(text, sizeof text, "this needs the role %s; yours is %s", shoal_role_level_name(d->level),
           shoal_role_level_name(caller->level));
  return refuse(403, 0, text);
}

/* Whether a route can do without the store. What volunteers ask for by the hundred can as far as they are
 * known: their work goes on. */
static bool is_without_store(const shoal_route *route, const shoal_request *r) {
  return route->level == SHOAL_NOBODY || route->answer == shoal_api_metrics || is_often(r->path);
}

/* Whether the caller may use the route now; answers when not. */
static bool authorise(shoal_api *api, const shoal_request *r, const shoal_route *route,
                      shoal_caller *caller) {
  const demand d = {route->level, r->method != SHOAL_GET, is_often(r->path)};
  verdict v = judge(api, r, &d, caller);
  shoal_store_state health;
  shoal_store_health(api->store, &health);
  if (v.status == 0 && !health.up && !is_without_store(route, r)) v = refuse(503, RETRY_S, STORE_AWAY);
  if (v.status != 0) answer_error(api, r->id, v.status, v.text, NULL, 0, 0, v.retry_s);
  return v.status == 0;
}

static shoal_api_pending *pending_of(shoal_api *api, uint64_t id) {
  return &api->pending[id % api->pending_max];
}

/* How large a body may be: where it depends on what is asked for, often less than the route's most. */
static uint64_t body_room(shoal_api *api, const shoal_route *route, char names[2][SHOAL_API_NAME_MAX]) {
  uint64_t room = route->body_max;
  if (route->upload) room = shoal_datasets_room(api->datasets, names[0], names[1]);
  if (route->answer == shoal_api_play) room = shoal_api_play_room(api, names[0]);
  return room < route->body_max ? room : route->body_max;
}

/* Whether a rollout is refused, and answered, before its body comes: the room for one is a running job's. */
static bool refuses_rollout(shoal_api *api, const shoal_request *r, const shoal_route *route,
                            const shoal_caller *caller) {
  shoal_api_call call = {.api = api, .request = r, .caller = *caller};
  bool known;
  if (route->answer != shoal_api_play) return false;
  find(r->method, r->path, call.names, &known);
  if (!shoal_read_u64(call.names[0], strlen(call.names[0]), &call.id)) call.id = 0;
  return shoal_api_play_refuses(&call);
}

uint64_t shoal_api_begins(shoal_api *api, const shoal_request *r, char **file) {
  shoal_api_pending *p = pending_of(api, r->id);
  *p = (shoal_api_pending){.id = r->id, .refused = true};
  char names[2][SHOAL_API_NAME_MAX] = {{0}};
  bool known;
  const shoal_route *route = find(r->method, r->path, names, &known);
  if (route == NULL) {
    if (known)
      answer_not_allowed(api, r);
    else
      answer_error(api, r->id, 404, "there is no such path", NULL, 0, 0, 0);
    return 0;
  }
  if (!authorise(api, r, route, &p->caller)) return 0;
  if (route->upload) {
    shoal_error err;
    shoal_status taken = shoal_chores_has(api->chores, names[0])
                             ? shoal_fail(&err, SHOAL_CONFLICT, "its files are being checked; wait for that")
                             : shoal_datasets_incoming(api->datasets, names[0], names[1], file, &err);
    if (taken != SHOAL_OK) {
      int status = status_of(&err, 413);
      answer_error(api, r->id, status, text_for_callers(api, r, &err, status), NULL, 0, 0,
                   status == 503 ? RETRY_S : 0);
      return 0;
    }
  }
  if (refuses_rollout(api, r, route, &p->caller)) return 0;
  p->refused = false;
  return body_room(api, route, names);
}

void shoal_api_asked(shoal_api *api, const shoal_request *r) {
  const shoal_api_pending *p = pending_of(api, r->id);
  SHOAL_ASSERT(p->id == r->id); /* numbers are the net's own, and a connection has one request at a time */
  if (p->refused) return;
  shoal_api_call call = {.api = api, .request = r, .caller = p->caller};
  bool known;
  const shoal_route *route = find(r->method, r->path, call.names, &known);
  SHOAL_ASSERT(route != NULL); /* it was there when the request began */
  if (!shoal_read_u64(call.names[0], strlen(call.names[0]), &call.id)) call.id = 0;
  api->about[0] = 0;
  route->answer(&call);
}

shoal_status shoal_api_reserve(shoal_api *api, uint32_t connections_max, shoal_error *err) {
  api->pending_max = connections_max + 1;
  api->pending = calloc(api->pending_max, sizeof *api->pending);
  return api->pending != NULL ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

void shoal_api_release(shoal_api *api) {
  shoal_api_play_release(api);
  free(api->pending);
  api->pending = NULL;
}

void shoal_api_left(shoal_api *api, uint64_t id) {
  shoal_live_leave(api->live, id);
  shoal_api_play_left(api, id);
}

int shoal_api_admits(shoal_api *api, uint64_t peer, const shoal_request *r) {
  shoal_caller caller;
  const demand d = {.level = SHOAL_VOLUNTEER, .own_pages = true};
  verdict v = judge(api, r, &d, &caller);
  return v.status != 0 ? v.status : shoal_volunteers_admit(api->volunteers, peer, r, &caller);
}
