/* api.c: see api.h: finds the route, asks who it is, and has errors look alike. */
#include "server/api.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { JSON_MAX = 2 << 20, SMALL_MAX = 64 << 10 };
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
    {SHOAL_GET, "/api/v1/jobs/*/log", SHOAL_VIEWER, 0, false, shoal_api_job_log},
    {SHOAL_GET, "/api/v1/jobs/*/model", SHOAL_VIEWER, 0, false, shoal_api_job_model},
    {SHOAL_GET, "/api/v1/jobs/*/model.onnx", SHOAL_VIEWER, 0, false, shoal_api_job_onnx},
    {SHOAL_GET, "/api/v1/jobs/*/events", SHOAL_VIEWER, 0, false, shoal_api_job_events},
    {SHOAL_GET, "/api/v1/jobs/*/live", SHOAL_VIEWER, 0, false, shoal_api_job_live},
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
    {SHOAL_GET, "/api/v1/datasets/*/manifest", SHOAL_VOLUNTEER, 0, false, shoal_api_dataset_manifest},
    {SHOAL_GET, "/chunks/*", SHOAL_VOLUNTEER, 0, false, shoal_api_chunk},
    {SHOAL_GET, "/api/v1/workers", SHOAL_VIEWER, 0, false, shoal_api_list_workers},
    {SHOAL_GET, "/api/v1/contributions", SHOAL_VIEWER, 0, false, shoal_api_contributions},
    {SHOAL_GET, "/api/v1/tokens", SHOAL_HOST, 0, false, shoal_api_list_tokens},
    {SHOAL_POST, "/api/v1/tokens", SHOAL_HOST, SMALL_MAX, false, shoal_api_make_token},
    {SHOAL_DELETE, "/api/v1/tokens/*", SHOAL_HOST, 0, false, shoal_api_delete_token},
    {SHOAL_GET, "/api/v1/audit", SHOAL_ADMIN, 0, false, shoal_api_audit},
    {SHOAL_GET, "/metrics", SHOAL_VIEWER, 0, false, shoal_api_metrics},
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

static const char *code_of(int status) {
  switch (status) {
  case 400: return "bad_request";
  case 401: return "unauthorized";
  case 403: return "forbidden";
  case 404: return "not_found";
  case 405: return "method_not_allowed";
  case 409: return "conflict";
  case 413: return "too_large";
  case 422: return "unprocessable";
  case 429: return "too_many";
  case 503: return "unavailable";
  default: return "internal";
  }
}

static void answer_error(shoal_api *api, uint64_t id, int status, const char *text, const char *field,
                         uint32_t line, uint32_t column, uint32_t retry_s) {
  shoal_text body = {0};
  shoal_json json;
  shoal_json_init(&json, &body);
  shoal_json_open(&json, NULL, '{');
  shoal_json_open(&json, "error", '{');
  shoal_json_text(&json, "code", code_of(status));
  shoal_json_text(&json, "text", text);
  if (field != NULL && field[0] != 0) shoal_json_text(&json, "field", field);
  if (line > 0) shoal_json_int(&json, "line", line);
  if (column > 0) shoal_json_int(&json, "column", column);
  shoal_json_close(&json, '}');
  shoal_json_close(&json, '}');
  const shoal_answer answer = {.status = status,
                               .type = "application/json",
                               .body = shoal_blob_of(body.bytes, body.length),
                               .retry_after_s = retry_s};
  shoal_http_answer(api->net, id, &answer);
  shoal_text_release(&body);
}

void shoal_api_error(const shoal_api_call *call, int status, const char *text) {
  answer_error(call->api, call->request->id, status, text, NULL, 0, 0, 0);
}

void shoal_api_error_at(const shoal_api_call *call, int status, const char *text, const char *field,
                        uint32_t line, uint32_t column) {
  answer_error(call->api, call->request->id, status, text, field, line, column, 0);
}

void shoal_api_failed(const shoal_api_call *call, const shoal_error *err) {
  int status =
      err->status == SHOAL_NOT_FOUND                                                                     ? 404
      : err->status == SHOAL_CONFLICT                                                                    ? 409
      : err->status == SHOAL_INVALID || err->status == SHOAL_CORRUPT || err->status == SHOAL_UNSUPPORTED ? 422
      : err->status == SHOAL_LIMIT                                                                       ? 413
                                   : 500;
  shoal_api_error(call, status, err->text);
}

void shoal_api_json(const shoal_api_call *call, int status, shoal_text *text) {
  if (text->failed) {
    shoal_api_error(call, 500, "out of memory");
  } else {
    const shoal_answer answer = {
        .status = status, .type = "application/json", .body = shoal_blob_of(text->bytes, text->length)};
    shoal_http_answer(call->api->net, call->request->id, &answer);
  }
  shoal_text_release(text);
}

void shoal_api_empty(const shoal_api_call *call, int status) {
  shoal_http_answer(call->api->net, call->request->id, &(shoal_answer){.status = status});
}

/* ---- who may ---- */

bool shoal_api_may_see(const shoal_api_call *call, uint64_t job) {
  char text[64];
  bool hidden = call->caller.job != 0 && call->caller.job != job;
  shoal_job_row row;
  if (job == 0 || hidden || shoal_store_job(call->api->store, job, &row, NULL) != SHOAL_OK) {
    snprintf(text, sizeof text, "there is no job %.32s", call->names[0]);
    shoal_api_error(call, 404, text);
    return false;
  }
  bool invited = call->caller.job == job || call->caller.level == SHOAL_ADMIN ||
                 strcmp(row.host, call->caller.name) == 0;
  bool may = !row.is_private || invited;
  shoal_job_rows_free(&row, 1);
  if (!may) shoal_api_error(call, 403, "this job is private; ask its host for an invitation");
  return may;
}

bool shoal_api_may_change(const shoal_api_call *call, uint64_t job) {
  if (!shoal_api_may_see(call, job)) return false;
  shoal_job_row row;
  if (shoal_store_job(call->api->store, job, &row, NULL) != SHOAL_OK) {
    shoal_api_error(call, 404, "the job is gone");
    return false;
  }
  bool may = call->caller.level == SHOAL_ADMIN || strcmp(row.host, call->caller.name) == 0;
  shoal_job_rows_free(&row, 1);
  if (!may) shoal_api_error(call, 403, "only its host and admins may do that");
  return may;
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

/* ---- requests ---- */

static bool check_page(shoal_api *api, const shoal_request *r) {
  bool safe = r->method == SHOAL_GET || r->origin[0] == 0 || shoal_access_same_origin(r->host, r->origin);
  if (!safe) answer_error(api, r->id, 403, "a page of another site may not do that", NULL, 0, 0, 0);
  return safe;
}

/* Whether the caller may use the route; answers when not. */
static bool authorise(shoal_api *api, const shoal_request *r, const shoal_route *route,
                      shoal_caller *caller) {
  uint32_t retry_s = 0;
  int refused = shoal_access_ask(api->access, r->authorization, r->address, shoal_clock_wall_seconds(),
                                 shoal_clock_seconds(), caller, &retry_s);
  if (refused == 429) {
    answer_error(api, r->id, 429, "too many requests; wait a little", NULL, 0, 0, retry_s);
    return false;
  }
  if (route->level == SHOAL_NOBODY) return true;
  if (refused == 503) {
    answer_error(api, r->id, 503, "the store does not answer", NULL, 0, 0, 5);
    return false;
  }
  if (refused != 0 || caller->level == SHOAL_NOBODY) {
    answer_error(api, r->id, 401, "this needs a token that is valid: use an invitation link", NULL, 0, 0, 0);
    return false;
  }
  if (caller->token == 0 && api->open != SHOAL_NOBODY && !shoal_access_host_is_local(r->host) &&
      shoal_access_is_loopback(r->address)) {
    answer_error(api, r->id, 403, "asked under a name that is not this machine's", NULL, 0, 0, 0);
    return false;
  }
  if (caller->level >= route->level) return check_page(api, r);
  char text[96];
  snprintf(text, sizeof text, "this needs the role %s; yours is %s", shoal_role_level_name(route->level),
           shoal_role_level_name(caller->level));
  answer_error(api, r->id, 403, text, NULL, 0, 0, 0);
  return false;
}

uint64_t shoal_api_begins(shoal_api *api, const shoal_request *r, char **file) {
  shoal_api_pending *p = &api->pending[r->id % SHOAL_API_PENDING];
  *p = (shoal_api_pending){.id = r->id, .refused = true};
  char names[2][SHOAL_API_NAME_MAX] = {{0}};
  bool known;
  const shoal_route *route = find(r->method, r->path, names, &known);
  if (route == NULL) {
    answer_error(api, r->id, known ? 405 : 404,
                 known ? "this path does not take that method" : "there is no such path", NULL, 0, 0, 0);
    return 0;
  }
  if (!authorise(api, r, route, &p->caller)) return 0;
  if (route->upload) {
    shoal_error err;
    if (shoal_datasets_incoming(api->datasets, names[0], names[1], file, &err) != SHOAL_OK) {
      int status = err.status == SHOAL_CONFLICT ? 409 : err.status == SHOAL_LIMIT ? 413 : 422;
      answer_error(api, r->id, status, err.text, NULL, 0, 0, 0);
      return 0;
    }
  }
  p->refused = false;
  if (!route->upload) return route->body_max;
  uint64_t room = shoal_datasets_room(api->datasets, names[0], names[1]);
  return room < route->body_max ? room : route->body_max;
}

static void log_change(const shoal_api *api, const char *who, const char *what) {
  shoal_text fields = {0};
  shoal_json json;
  shoal_json_init(&json, &fields);
  shoal_json_text(&json, "who", who);
  shoal_json_text(&json, "what", what);
  if (!fields.failed) api->log(api->self, "change", fields.bytes);
  shoal_text_release(&fields);
}

/* What changes something is written down, in the store and in the log. */
static void audit(shoal_api *api, const shoal_api_call *call) {
  char who[SHOAL_CALLER_TEXT_MAX];
  static const char *const methods[] = {"GET", "POST", "PUT", "DELETE", "OTHER"};
  bool changes =
      call->request->method != SHOAL_GET && strcmp(call->request->path, "/api/v1/models/check") != 0;
  if (!changes) return;
  shoal_text what = {0};
  shoal_access_describe(&call->caller, call->request->address, who);
  shoal_text_addf(&what, "%s %s", methods[call->request->method], call->request->path);
  if (!what.failed) {
    (void)shoal_store_add_audit(api->store, shoal_clock_wall_seconds(), who, what.bytes, NULL);
    log_change(api, who, what.bytes);
  }
  shoal_text_release(&what);
}

void shoal_api_asked(shoal_api *api, const shoal_request *r) {
  shoal_api_pending *p = &api->pending[r->id % SHOAL_API_PENDING];
  if (p->id != r->id) {
    answer_error(api, r->id, 503, "too many requests at once; try again", NULL, 0, 0, 1);
    return;
  }
  if (p->refused) return;
  shoal_api_call call = {.api = api, .request = r, .caller = p->caller};
  bool known;
  const shoal_route *route = find(r->method, r->path, call.names, &known);
  if (route == NULL) return;
  if (!shoal_read_u64(call.names[0], strlen(call.names[0]), &call.id)) call.id = 0;
  audit(api, &call);
  route->answer(&call);
}

void shoal_api_left(shoal_api *api, uint64_t id) { shoal_live_leave(api->live, id); }

int shoal_api_admits(shoal_api *api, uint64_t peer, const shoal_request *r) {
  shoal_caller caller;
  uint32_t retry_s;
  int refused = shoal_access_ask(api->access, r->authorization, r->address, shoal_clock_wall_seconds(),
                                 shoal_clock_seconds(), &caller, &retry_s);
  if (refused != 0) return refused;
  if (caller.level == SHOAL_NOBODY) return 401;
  if (caller.level < SHOAL_VOLUNTEER) return 403;
  if (r->origin[0] != 0 && !shoal_access_same_origin(r->host, r->origin)) return 403;
  return shoal_volunteers_admit(api->volunteers, peer, r->path, r->address, &caller);
}
