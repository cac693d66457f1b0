/* api_jobs.c: the routes under /api/v1/jobs. */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "server/api.h"
#include "wire/http_read.h"

enum { LIST_MAX = 1000, POINTS_MAX = 4000, LINES_MAX = 500, EVENTS_MAX = 64 << 20 };

void shoal_api_list_jobs(const shoal_api_call *call) {
  char word[16];
  int state = -1;
  uint64_t before, limit, next;
  if (shoal_query_value(call->request->query, "state", word, sizeof word)) {
    shoal_job_state parsed;
    if (!shoal_job_state_parse(word, &parsed)) {
      shoal_api_error_at(call, 400, "state must be waiting, running, stopped, finished or failed", "state", 0,
                         0);
      return;
    }
    state = (int)parsed;
  }
  if (!shoal_api_number(call, "before", UINT64_MAX / 2, 0, &before) ||
      !shoal_api_number(call, "limit", LIST_MAX, 50, &limit))
    return;
  shoal_text text;
  shoal_json json;
  shoal_error err;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_open(&json, "jobs", '[');
  shoal_status status = SHOAL_OK;
  next = 0;
  if (call->caller.job != 0)
    status = shoal_jobs_write(call->api->jobs, call->caller.job, false, &json, &err);
  else if (limit > 0)
    status = shoal_jobs_list(call->api->jobs, state, before, limit, &call->caller, &json, &next, &err);
  shoal_json_close(&json, ']');
  if (next > 0)
    shoal_json_int(&json, "next", (int64_t)next);
  else
    shoal_json_null(&json, "next");
  shoal_json_close(&json, '}');
  shoal_api_finish(call, 200, status, &text, &err);
}

void shoal_api_answer_job(const shoal_api_call *call, int status, uint64_t id) {
  shoal_text text;
  shoal_json json;
  shoal_error err;
  shoal_json_begin(&json, &text);
  shoal_status written = shoal_jobs_write(call->api->jobs, id, true, &json, &err);
  shoal_api_finish(call, status, written, &text, &err);
}

void shoal_api_show_job(const shoal_api_call *call) {
  if (shoal_api_may_see(call, call->id)) shoal_api_answer_job(call, 200, call->id);
}

static void answer_change(const shoal_api_call *call, shoal_status status, const shoal_error *err) {
  if (status == SHOAL_OK)
    shoal_api_answer_job(call, 200, call->id);
  else
    shoal_api_failed_full(call, err);
}

void shoal_api_stop_job(const shoal_api_call *call) {
  shoal_error err;
  if (!shoal_api_may_change(call, call->id)) return;
  answer_change(call, shoal_jobs_stop(call->api->jobs, call->id, &err), &err);
}

/* A number of the body that is not there is 0. False, and answered, when it is wrong. */
static bool read_more(const shoal_api_call *call, const cJSON *json, const char *field, double most,
                      bool whole, double *out) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, field);
  *out = 0;
  if (item == NULL || cJSON_IsNull(item)) return true;
  *out = cJSON_IsNumber(item) ? item->valuedouble : -1;
  if (*out > 0 && *out <= most && (!whole || *out == floor(*out))) return true;
  shoal_api_error_at(
      call, 400,
      "the body may be {\"epochs\": N} of a training, {\"budget_s\": S} or {\"trials\": N} of a search, "
      "{\"seconds\": S} or {\"steps\": N} of an agent, N a whole number from 1",
      field, 0, 0);
  return false;
}

void shoal_api_resume_job(const shoal_api_call *call) {
  if (!shoal_api_may_change(call, call->id)) return;
  bool has_body = call->request->body != NULL && shoal_blob_length(call->request->body) > 0;
  cJSON *json = has_body ? shoal_api_body(call) : NULL;
  if (has_body && json == NULL) return;
  double epochs, budget_s, trials, seconds, steps;
  bool good = read_more(call, json, "epochs", 1e6, true, &epochs) &&
              read_more(call, json, "budget_s", 1e8, false, &budget_s) &&
              read_more(call, json, "trials", 1e9, true, &trials) &&
              read_more(call, json, "seconds", 1e8, false, &seconds) &&
              read_more(call, json, "steps", 1e15, true, &steps);
  cJSON_Delete(json);
  if (!good) return;
  const shoal_job_more more = {.epochs = (uint32_t)epochs,
                               .budget_s = budget_s,
                               .trials = (uint64_t)trials,
                               .seconds = seconds,
                               .steps = (uint64_t)steps};
  shoal_error err;
  answer_change(call, shoal_jobs_resume(call->api->jobs, call->id, &more, &err), &err);
}

void shoal_api_delete_job(const shoal_api_call *call) {
  shoal_error err;
  if (!shoal_api_may_change(call, call->id)) return;
  if (shoal_jobs_delete(call->api->jobs, call->id, &err) == SHOAL_OK)
    shoal_api_empty(call, 204);
  else
    shoal_api_failed(call, &err);
}

/* ---- what a job has to show ---- */

void shoal_api_job_history(const shoal_api_call *call) {
  if (!shoal_api_may_see(call, call->id)) return;
  shoal_point *points = calloc(POINTS_MAX, sizeof *points);
  shoal_text text;
  shoal_json json;
  shoal_error err = {.status = SHOAL_NO_MEMORY, .text = "out of memory"};
  size_t count = 0;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  bool ok = points != NULL &&
            shoal_store_points(call->api->store, call->id, 0, points, POINTS_MAX, &count, &err) == SHOAL_OK;
  shoal_json_open(&json, "rounds", '[');
  for (size_t i = 0; ok && i < count; i++) shoal_jobs_write_round(&points[i], &json);
  shoal_json_close(&json, ']');
  ok = ok && shoal_store_points(call->api->store, call->id, 1, points, POINTS_MAX, &count, &err) == SHOAL_OK;
  shoal_json_open(&json, "epochs", '[');
  uint64_t rounds = ok ? shoal_jobs_rounds(call->api->jobs, call->id) : 0;
  for (size_t i = 0; ok && i < count; i++) shoal_jobs_write_epoch(&points[i], rounds, &json);
  shoal_json_close(&json, ']');
  shoal_json_close(&json, '}');
  free(points);
  shoal_api_finish(call, 200, ok ? SHOAL_OK : err.status, &text, &err);
}

void shoal_api_job_workers(const shoal_api_call *call) {
  if (!shoal_api_may_see(call, call->id)) return;
  shoal_text text;
  shoal_json json;
  shoal_error err;
  shoal_json_begin(&json, &text);
  shoal_status status = shoal_jobs_workers(call->api->jobs, call->id, &json, &err);
  shoal_api_finish(call, 200, status, &text, &err);
}

void shoal_api_job_timeline(const shoal_api_call *call) {
  if (!shoal_api_may_see(call, call->id)) return;
  static const shoal_timeline none;
  const shoal_open_job *job = shoal_jobs_find(call->api->jobs, call->id);
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_timeline_write(job != NULL ? &job->timeline : &none, &json);
  shoal_json_close(&json, '}');
  shoal_api_json(call, 200, &text);
}

void shoal_api_job_swarm(const shoal_api_call *call) {
  if (!shoal_api_may_see(call, call->id)) return;
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_volunteers_write_swarm(call->api->volunteers, call->id, &json);
  shoal_api_json(call, 200, &text);
}

void shoal_api_job_log(const shoal_api_call *call) {
  uint64_t after;
  if (!shoal_api_may_see(call, call->id) || !shoal_api_number(call, "after", UINT64_MAX / 2, 0, &after))
    return;
  static shoal_log_row rows[LINES_MAX];
  size_t count = 0;
  shoal_error err;
  if (shoal_store_logs(call->api->store, call->id, after, rows, LINES_MAX, &count, &err) != SHOAL_OK) {
    shoal_api_failed(call, &err);
    return;
  }
  shoal_text text;
  shoal_json json;
  shoal_api_list_begin(&json, &text, "lines");
  for (size_t i = 0; i < count; i++) shoal_jobs_write_line(&rows[i], &json);
  shoal_log_rows_free(rows, count);
  shoal_api_list_end(call, &json);
}

/* ---- files ---- */

/* download: the end of the name to save it by; NULL: it is not there to be saved. */
static void answer_file(const shoal_api_call *call, const char *file, const char *type,
                        const char *download) {
  if (!shoal_api_may_see(call, call->id)) return;
  shoal_text path = {0}, name = {0};
  shoal_error err;
  if (shoal_jobs_file(call->api->jobs, call->id, file, &path, &err) == SHOAL_OK) {
    if (download != NULL) shoal_text_addf(&name, "job-%llu%s", (unsigned long long)call->id, download);
    const shoal_answer answer = {.status = 200, .type = type, .file = path.bytes, .download = name.bytes};
    shoal_api_answer(call, &answer);
  } else {
    shoal_api_failed(call, &err);
  }
  shoal_text_release(&path);
  shoal_text_release(&name);
}

void shoal_api_job_model(const shoal_api_call *call) {
  answer_file(call, "model.safetensors", "application/octet-stream", ".safetensors");
}

void shoal_api_job_onnx(const shoal_api_call *call) {
  answer_file(call, "model.onnx", "application/octet-stream", ".onnx");
}

void shoal_api_job_evaluation(const shoal_api_call *call) {
  answer_file(call, "evaluation.json", "application/json", NULL);
}

/* A run that was stopped and resumed has several files, and one behind the other they are one. All of them
 * together are at most EVENTS_MAX bytes. */
static shoal_status gather_events(const char *folder, shoal_text *out, shoal_error *err) {
  struct dirent **names;
  int count = scandir(folder, &names, NULL, alphasort);
  shoal_status status = SHOAL_OK;
  if (count < 0) return shoal_fail(err, SHOAL_NOT_FOUND, "there are no events yet");
  for (int i = 0; i < count; i++) {
    shoal_text path = {0};
    uint8_t *bytes = NULL;
    size_t length;
    shoal_text_addf(&path, "%s/%s", folder, names[i]->d_name);
    if (status == SHOAL_OK && names[i]->d_name[0] != '.') {
      status = shoal_file_read(path.bytes, EVENTS_MAX, false, &bytes, &length, err);
      if (status == SHOAL_OK && length > EVENTS_MAX - out->length)
        status = shoal_fail(err, SHOAL_LIMIT, "the events are more than %d MB", EVENTS_MAX >> 20);
      if (status == SHOAL_OK) shoal_text_add(out, bytes, length);
      free(bytes);
    }
    shoal_text_release(&path);
    free(names[i]);
  }
  free(names);
  if (status == SHOAL_OK && out->failed) status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (status == SHOAL_OK && out->length == 0)
    status = shoal_fail(err, SHOAL_NOT_FOUND, "there are no events yet");
  return status;
}

void shoal_api_job_events(const shoal_api_call *call) {
  if (!shoal_api_may_see(call, call->id)) return;
  shoal_text folder = {0}, bytes = {0};
  shoal_error err;
  shoal_status status = shoal_jobs_file(call->api->jobs, call->id, "events", &folder, &err);
  if (status == SHOAL_OK) status = gather_events(folder.bytes, &bytes, &err);
  if (status == SHOAL_OK)
    shoal_api_bytes(call, bytes.bytes, bytes.length,
                    &(shoal_answer){.status = 200,
                                    .type = "application/octet-stream",
                                    .download = "events.out.tfevents.shoal"});
  else
    shoal_api_failed(call, &err);
  shoal_text_release(&folder);
  shoal_text_release(&bytes);
}

/* ---- live ---- */

void shoal_api_job_live(const shoal_api_call *call) {
  if (!shoal_api_may_see(call, call->id)) return;
  if (!shoal_live_join(call->api->live, call->request->id, call->id, &call->caller)) {
    shoal_api_error(call, 503, "too many watch already");
    return;
  }
  shoal_api_answer(call, &(shoal_answer){.status = 200, .type = "text/event-stream", .stream = true});
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  if (shoal_jobs_write(call->api->jobs, call->id, true, &json, NULL) == SHOAL_OK && !text.failed)
    shoal_live_greet(call->api->net, call->request->id, "job", &text);
  shoal_text_release(&text);
}

/* ---- for workers ---- */

void shoal_api_job_brief(const shoal_api_call *call) {
  const shoal_open_job *job = shoal_jobs_find(call->api->jobs, call->id);
  if (job != NULL && job->kind == SHOAL_JOB_AGENT)
    shoal_api_agent_brief(call);
  else
    shoal_api_search_brief(call);
}
