/* api_search.c: the routes of searches: what workers ask, and what people look at. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "search/predictor.h"
#include "server/api.h"
#include "server/folders.h"
#include "wire/http_read.h"

enum { TRIALS_AT_ONCE = 1000, ROWS_MAX = 10000, WORKER_NAME_MAX = 64, ATTEMPT_MAX = 1000000000 };

/* ---- for workers ---- */

/* The search that is open and that the caller may work for; answers when there is none. */
static shoal_searcher *find_search(const shoal_api_call *call) {
  const shoal_open_job *job = shoal_jobs_find(call->api->jobs, call->id);
  if (job == NULL || !shoal_access_may_see(&call->caller, call->id, job->is_private, job->host)) {
    shoal_api_error(call, 410, "there is no such search, or it is over");
    return NULL;
  }
  if (job->searcher != NULL) return job->searcher;
  bool is_search = job->kind == SHOAL_JOB_SEARCH;
  shoal_api_error(call, is_search ? 503 : 409,
                  is_search ? "the search has not begun" : "this job is no search");
  return NULL;
}

/* Likewise, where units can be spoken of; a server that has just started must read the table first. */
static shoal_searcher *find_open_search(const shoal_api_call *call) {
  shoal_searcher *searcher = find_search(call);
  if (searcher == NULL || !shoal_searcher_reads(searcher)) return searcher;
  shoal_api_error(call, 503, "the table is still being read");
  return NULL;
}

/* Whether who beats is the one that has this unit, where it came through a queue. */
static bool claims(const shoal_api_call *call, uint64_t unit, uint32_t attempt, const char *worker) {
  shoal_offers *offers = call->api->offers;
  return offers == NULL || shoal_offers_claim(offers, call->id, unit, attempt, worker);
}

static void end_offer(const shoal_api_call *call, uint64_t unit) {
  if (call->api->offers != NULL) shoal_offers_over(call->api->offers, call->id, unit);
}

/* The worker's name in the body; answers when there is none. */
static bool worker_of(const shoal_api_call *call, const cJSON *json, char out[WORKER_NAME_MAX]) {
  const cJSON *worker = cJSON_GetObjectItemCaseSensitive(json, "worker");
  if (!cJSON_IsString(worker) || worker->valuestring[0] == 0) {
    shoal_api_error_at(call, 400, "\"worker\" must be the name of who asks", "worker", 0, 0);
    return false;
  }
  shoal_text_plain(out, WORKER_NAME_MAX, worker->valuestring, strlen(worker->valuestring));
  return true;
}

/* The unit that a request is about, once its ticket was checked. */
typedef struct holding {
  uint64_t unit;
  uint32_t attempt;
  shoal_searcher *searcher;
} holding;

/* Finds the unit in the path, and checks the ticket, which only the worker has that was given this attempt. False, and
 * answered: there is no such unit, the ticket is wrong, or the worker is banned. */
static bool check_holding(const shoal_api_call *call, uint32_t attempt, const char *ticket, holding *out) {
  uint64_t who;
  *out = (holding){.attempt = attempt};
  if (!shoal_read_u64(call->names[1], strlen(call->names[1]), &out->unit)) {
    shoal_api_error(call, 404, "there is no such unit");
    return false;
  }
  out->searcher = find_open_search(call);
  if (out->searcher == NULL) return false;
  if (!shoal_searcher_gave(out->searcher, out->unit, attempt, ticket, &who)) {
    shoal_api_error_at(call, 403,
                       "this unit was given to somebody else: the ticket does not belong to this attempt",
                       "ticket", 0, 0);
    return false;
  }
  return !shoal_api_bans(call, who);
}

/* The same with attempt and ticket in the body. */
static bool read_holding(const shoal_api_call *call, const cJSON *json, holding *out) {
  const cJSON *attempt = cJSON_GetObjectItemCaseSensitive(json, "attempt");
  const cJSON *ticket = cJSON_GetObjectItemCaseSensitive(json, "ticket");
  if (!cJSON_IsNumber(attempt) || !(attempt->valuedouble >= 1 && attempt->valuedouble <= ATTEMPT_MAX)) {
    shoal_api_error_at(call, 400, "\"attempt\" must be a whole number from 1", "attempt", 0, 0);
    return false;
  }
  if (!cJSON_IsString(ticket)) {
    shoal_api_error_at(call, 400, "\"ticket\" must be the text that came with the unit", "ticket", 0, 0);
    return false;
  }
  return check_holding(call, (uint32_t)attempt->valuedouble, ticket->valuestring, out);
}

void shoal_api_search_brief(const shoal_api_call *call) {
  shoal_searcher *searcher = find_search(call);
  if (searcher == NULL) return;
  shoal_text text;
  shoal_error err;
  shoal_text_init(&text);
  shoal_status status = shoal_searcher_brief(searcher, &text, &err);
  shoal_api_finish(call, 200, status, &text, &err);
}

void shoal_api_take_unit(const shoal_api_call *call) {
  cJSON *json = shoal_api_body(call);
  char worker[WORKER_NAME_MAX];
  if (json == NULL) return;
  bool named = worker_of(call, json, worker);
  cJSON_Delete(json);
  shoal_searcher *searcher = named ? find_search(call) : NULL;
  if (searcher == NULL) return;
  uint64_t who = shoal_standings_meet(shoal_jobs_standings(call->api->jobs), call->caller.token, worker,
                                      call->request->address);
  if (shoal_api_bans(call, who)) return;
  shoal_text text;
  shoal_next next;
  shoal_taken taken;
  shoal_error err;
  shoal_text_init(&text);
  shoal_status status = shoal_searcher_take(searcher, worker, who, &next, &taken, &text, &err);
  if (status != SHOAL_OK || next == SHOAL_NEXT_UNIT)
    shoal_api_finish(call, 200, status, &text, &err);
  else if (next == SHOAL_NEXT_WAITS)
    shoal_api_empty(call, 204);
  else
    shoal_api_error(call, 410, "the search has no more units");
}

void shoal_api_beat_unit(const shoal_api_call *call) {
  cJSON *json = shoal_api_body(call);
  holding h;
  char worker[WORKER_NAME_MAX] = "";
  if (json == NULL) return;
  bool unnamed = cJSON_GetObjectItemCaseSensitive(json, "worker") == NULL;
  bool good = (unnamed || worker_of(call, json, worker)) && read_holding(call, json, &h);
  cJSON_Delete(json);
  if (!good) return;
  if (shoal_searcher_beat(h.searcher, h.unit, h.attempt) && claims(call, h.unit, h.attempt, worker))
    shoal_api_empty(call, 204);
  else
    shoal_api_error(call, 409, "the unit is somebody else's by now, or finished");
}

void shoal_api_fail_unit(const shoal_api_call *call) {
  cJSON *json = shoal_api_body(call);
  holding h;
  if (json == NULL) return;
  const cJSON *why = cJSON_GetObjectItemCaseSensitive(json, "why");
  if (read_holding(call, json, &h)) {
    char text[160];
    const char *given = cJSON_IsString(why) ? why->valuestring : "";
    shoal_text_plain(text, sizeof text, given, strlen(given));
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "given_back")))
      shoal_searcher_give_back(h.searcher, h.unit, h.attempt);
    else
      shoal_searcher_failed(h.searcher, h.unit, h.attempt, text);
    end_offer(call, h.unit);
    shoal_api_empty(call, 204);
  }
  cJSON_Delete(json);
}

/* A second result of a unit is not wrong: the first one may have been lost on its way back. */
void shoal_api_finish_unit(const shoal_api_call *call) {
  cJSON *json = shoal_api_body(call);
  holding h;
  char worker[WORKER_NAME_MAX];
  if (json == NULL) return;
  const cJSON *result = cJSON_GetObjectItemCaseSensitive(json, "result");
  const cJSON *seconds = cJSON_GetObjectItemCaseSensitive(result, "seconds");
  if (worker_of(call, json, worker) && read_holding(call, json, &h)) {
    shoal_error err;
    uint64_t samples;
    shoal_status status = shoal_searcher_done(h.searcher, h.unit, worker, result, &samples, &err);
    if (status == SHOAL_CORRUPT) err.status = SHOAL_INVALID; /* it is the caller's */
    if (status == SHOAL_OK) {
      double spent = cJSON_IsNumber(seconds) && isfinite(seconds->valuedouble) ? seconds->valuedouble : 0;
      shoal_jobs_credit_unit(call->api->jobs, call->id, worker, samples, spent > 0 ? spent : 0);
      shoal_volunteers_credit(call->api->volunteers, call->id, worker, samples);
      end_offer(call, h.unit);
      shoal_api_empty(call, 204);
    } else {
      shoal_api_failed(call, &err);
    }
  }
  cJSON_Delete(json);
}

/* The path of a trial's state; answers when the path's number is none. */
static bool state_of(const shoal_api_call *call, const shoal_searcher *searcher, shoal_text *path) {
  uint64_t trial;
  if (!shoal_read_u64(call->names[1], strlen(call->names[1]), &trial) || trial == 0) {
    shoal_api_error(call, 404, "there is no such trial");
    return false;
  }
  shoal_searcher_state_path(searcher, trial, path);
  if (path->failed) shoal_api_error(call, 503, "out of memory");
  return !path->failed;
}

void shoal_api_get_state(const shoal_api_call *call) {
  shoal_searcher *searcher = find_search(call);
  shoal_text path = {0};
  if (searcher != NULL && state_of(call, searcher, &path)) {
    if (shoal_file_exists(path.bytes))
      shoal_api_answer(
          call, &(shoal_answer){.status = 200, .type = "application/octet-stream", .file = path.bytes});
    else
      shoal_api_error(call, 404, "the trial has no state yet");
  }
  shoal_text_release(&path);
}

/* A state on its way to the disk, which a thread beside the loop writes. */
typedef struct putting {
  shoal_kept_call kept;
  shoal_blob *body;
  shoal_text path;
  shoal_status status;
  shoal_error err;
} putting;

/* A state that a crash takes away is computed again, so nothing waits for the disk. */
static void put_file(void *self) {
  putting *p = self;
  shoal_text part = {0};
  shoal_text_addf(&part, "%s.part", p->path.bytes);
  FILE *file = part.failed ? NULL : fopen(part.bytes, "wb");
  size_t length = shoal_blob_length(p->body);
  bool good = file != NULL && fwrite(shoal_blob_bytes(p->body), 1, length, file) == length;
  if (file != NULL && fclose(file) != 0) good = false;
  if (good && rename(part.bytes, p->path.bytes) != 0) good = false;
  if (part.failed)
    p->status = shoal_fail(&p->err, SHOAL_NO_MEMORY, "out of memory");
  else if (!good)
    p->status = shoal_fail_errno(p->path.bytes, &p->err);
  if (!good && !part.failed) unlink(part.bytes);
  shoal_text_release(&part);
}

static void release_putting(putting *p) {
  shoal_api_release_call(&p->kept);
  if (p->body != NULL) shoal_blob_release(p->body);
  shoal_text_release(&p->path);
  free(p);
}

static void end_putting(void *self, bool ran) {
  putting *p = self;
  const shoal_api_call *call = &p->kept.call;
  if (!ran) p->status = shoal_fail(&p->err, SHOAL_STOPPED, "the server is being stopped");
  if (p->status == SHOAL_OK)
    shoal_api_empty(call, 204);
  else if (shoal_jobs_searcher(call->api->jobs, call->id) == NULL) /* its folder may be gone */
    shoal_api_error(call, 410, "the search is over");
  else
    shoal_api_failed(call, &p->err);
  release_putting(p);
}

static void begin_putting(const shoal_api_call *call, const shoal_searcher *searcher, uint64_t trial) {
  putting *p = calloc(1, sizeof *p);
  if (p == NULL) {
    shoal_api_error(call, 503, "out of memory");
    return;
  }
  p->body = shoal_blob_share(call->request->body);
  shoal_searcher_state_path(searcher, trial, &p->path);
  const shoal_chore chore = {.subject = "", .self = p, .run = put_file, .done = end_putting};
  if (shoal_api_keep_call(&p->kept, call) && !p->path.failed && shoal_chores_add(call->api->reads, &chore))
    return;
  shoal_api_error(call, 503, "too many wait already; try again");
  release_putting(p);
}

void shoal_api_put_state(const shoal_api_call *call) {
  uint64_t attempt;
  char ticket[SHOAL_TICKET_CHARS + 1] = "";
  holding h;
  if (!shoal_api_number(call, "attempt", ATTEMPT_MAX, 0, &attempt)) return;
  (void)shoal_query_value(call->request->query, "ticket", ticket, sizeof ticket);
  if (!check_holding(call, (uint32_t)attempt, ticket, &h)) return;
  if (call->request->body == NULL) {
    shoal_api_error(call, 400, "the body must be the state of the trial");
    return;
  }
  uint64_t trial = shoal_searcher_held(h.searcher, h.unit, h.attempt);
  if (trial == 0) {
    shoal_api_error(call, 409, "the unit is somebody else's by now, or finished");
    return;
  }
  (void)claims(call, h.unit, h.attempt, "");
  begin_putting(call, h.searcher, trial);
}

/* ---- for people ---- */

void shoal_api_list_trials(const shoal_api_call *call) {
  uint64_t from, limit;
  if (!shoal_api_may_see(call, call->id) || !shoal_api_number(call, "from", UINT64_MAX / 2, 0, &from) ||
      !shoal_api_number(call, "limit", TRIALS_AT_ONCE, TRIALS_AT_ONCE, &limit))
    return;
  shoal_unit_row *rows = calloc(TRIALS_AT_ONCE, sizeof *rows);
  shoal_text text;
  shoal_json json;
  shoal_error err;
  size_t count = 0;
  shoal_status status = rows != NULL
                            ? shoal_store_units(call->api->store, call->id, from, rows, limit, &count, &err)
                            : shoal_fail(&err, SHOAL_NO_MEMORY, "out of memory");
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_open(&json, "trials", '[');
  for (size_t i = 0; i < count; i++) shoal_json_raw(&json, NULL, rows[i].summary, strlen(rows[i].summary));
  shoal_json_close(&json, ']');
  if (count > 0 && count == limit)
    shoal_json_int(&json, "next", (int64_t)rows[count - 1].unit + 1);
  else
    shoal_json_null(&json, "next");
  shoal_json_close(&json, '}');
  shoal_unit_rows_free(rows, count);
  free(rows);
  shoal_api_finish(call, 200, status, &text, &err);
}

void shoal_api_show_trial(const shoal_api_call *call) {
  uint64_t trial;
  shoal_unit_row row;
  shoal_error err;
  if (!shoal_api_may_see(call, call->id)) return;
  if (!shoal_read_u64(call->names[1], strlen(call->names[1]), &trial)) trial = 0;
  if (shoal_store_trial(call->api->store, call->id, trial, &row, &err) != SHOAL_OK) {
    shoal_api_failed(call, &err);
    return;
  }
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_raw(&json, NULL, row.summary + 1, strlen(row.summary) - 2); /* the members of an object */
  shoal_json_raw(&json, "curve", row.curve, strlen(row.curve));
  shoal_json_close(&json, '}');
  shoal_unit_rows_free(&row, 1);
  shoal_api_json(call, 200, &text);
}

static void answer_file(const shoal_api_call *call, const char *file, const char *type,
                        const char *download) {
  if (!shoal_api_may_see(call, call->id)) return;
  shoal_text path = {0};
  shoal_error err;
  if (shoal_jobs_file(call->api->jobs, call->id, file, &path, &err) == SHOAL_OK)
    shoal_api_answer(call,
                     &(shoal_answer){.status = 200, .type = type, .file = path.bytes, .download = download});
  else
    shoal_api_failed(call, &err);
  shoal_text_release(&path);
}

void shoal_api_job_insight(const shoal_api_call *call) {
  answer_file(call, "insight.json", "application/json", NULL);
}

void shoal_api_trials_csv(const shoal_api_call *call) {
  answer_file(call, "trials.csv", "text/csv", "trials.csv");
}

/* ---- predicting ---- */

/* A request that waits for the thread of chores. */
typedef struct prediction {
  shoal_kept_call kept;
  cJSON *body;
  shoal_text path, answer;
  shoal_status status;
  shoal_error err;
} prediction;

/* A cell of JSON as a CSV file would have it; NULL: missing. */
static const char *cell_of(const cJSON *value, char *room, size_t size) {
  if (cJSON_IsString(value)) return value->valuestring;
  if (cJSON_IsBool(value)) return cJSON_IsTrue(value) ? "true" : "false";
  if (!cJSON_IsNumber(value)) return NULL;
  snprintf(room, size, "%.17g", value->valuedouble);
  return room;
}

enum { NUMBER_TEXT = 32, CELLS_MAX = 1 << 22 };

/* A row of the body as cells by column. The names that it has are added to those of all rows. */
static shoal_status read_row(const shoal_names *columns, const cJSON *row, const char **cells, char *room,
                             shoal_names *names, shoal_error *err) {
  if (!cJSON_IsObject(row)) return shoal_fail(err, SHOAL_INVALID, "a row is no object of columns and values");
  for (const cJSON *item = row->child; item != NULL; item = item->next) {
    size_t length = strlen(item->string);
    uint32_t column = shoal_names_find(columns, item->string, length);
    if (shoal_names_add(names, item->string, length) == SHOAL_NO_NAME)
      return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
    if (column == SHOAL_NO_NAME) continue;
    cells[column] = cell_of(item, room + (size_t)column * NUMBER_TEXT, NUMBER_TEXT);
  }
  return SHOAL_OK;
}

/* The rows of the body, by the rule of files (search/rows.h): a column that the model uses must be in
 * some row, and names that it does not know are passed over. What a row lacks that another has is a
 * missing cell. */
static shoal_status read_cells(const shoal_predictor *predictor, const cJSON *rows, const char **cells,
                               char *room, shoal_error *err) {
  const shoal_profile *profile = shoal_predictor_profile(predictor);
  shoal_names columns, names;
  shoal_names_init(&columns);
  shoal_names_init(&names);
  shoal_status status = SHOAL_OK;
  for (uint32_t c = 0; c < profile->columns_count && status == SHOAL_OK; c++) {
    const char *name = profile->columns[c].name;
    if (shoal_names_add(&columns, name, strlen(name)) == SHOAL_NO_NAME)
      status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  }
  size_t at = 0;
  const cJSON *row;
  cJSON_ArrayForEach(row, rows) {
    if (status == SHOAL_OK)
      status = read_row(&columns, row, cells + at, room + at * NUMBER_TEXT, &names, err);
    at += profile->columns_count;
  }
  if (status == SHOAL_OK && at > 0)
    status = shoal_rows_check_names(profile, shoal_predictor_target(predictor)->column, true, "\"rows\"",
                                    &names, err);
  shoal_names_release(&columns);
  shoal_names_release(&names);
  return status;
}

static shoal_status predict_cells(const shoal_predictor *predictor, const char *const *cells, uint64_t count,
                                  shoal_text *answer, shoal_error *err) {
  const shoal_target *target = shoal_predictor_target(predictor);
  size_t width = shoal_target_width(target);
  shoal_rows *rows = NULL;
  double *values = malloc((count + 1) * width * sizeof *values);
  shoal_status status = values == NULL ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory")
                                       : shoal_rows_of_cells(&rows, shoal_predictor_profile(predictor),
                                                             target->column, cells, count, err);
  if (status == SHOAL_OK) status = shoal_predictor_run(predictor, rows, NULL, 1, values, err);
  if (status == SHOAL_OK) {
    shoal_json json;
    shoal_json_begin(&json, answer);
    shoal_json_open(&json, NULL, '{');
    shoal_json_open(&json, "predictions", '[');
    for (uint64_t r = 0; r < count; r++) {
      shoal_json_open(&json, NULL, '{');
      shoal_prediction_write(target, values + r * width, &json);
      shoal_json_close(&json, '}');
    }
    shoal_json_close(&json, ']');
    shoal_json_close(&json, '}');
  }
  shoal_rows_close(rows);
  free(values);
  return status;
}

static shoal_status predict_rows(const shoal_predictor *predictor, const cJSON *rows, shoal_text *answer,
                                 shoal_error *err) {
  const shoal_profile *profile = shoal_predictor_profile(predictor);
  uint64_t count = (uint64_t)cJSON_GetArraySize(rows);
  size_t cells_count = (count + 1) * profile->columns_count;
  if (cells_count > CELLS_MAX)
    return shoal_fail(err, SHOAL_LIMIT, "%" PRIu64 " rows of %u columns are too many at once; ask in parts",
                      count, profile->columns_count);
  const char **cells = calloc(cells_count, sizeof *cells);
  char *room = malloc(cells_count * NUMBER_TEXT);
  shoal_status status = cells != NULL && room != NULL ? read_cells(predictor, rows, cells, room, err)
                                                      : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (status == SHOAL_OK) status = predict_cells(predictor, cells, count, answer, err);
  free(cells);
  free(room);
  return status;
}

static void run_prediction(void *self) {
  prediction *p = self;
  shoal_predictor *predictor = NULL;
  const cJSON *rows = cJSON_GetObjectItemCaseSensitive(p->body, "rows");
  p->status = shoal_predictor_load(&predictor, p->path.bytes, &p->err);
  if (p->status == SHOAL_OK) p->status = predict_rows(predictor, rows, &p->answer, &p->err);
  shoal_predictor_destroy(predictor);
}

static void release_prediction(prediction *p) {
  shoal_api_release_call(&p->kept);
  cJSON_Delete(p->body);
  shoal_text_release(&p->path);
  free(p);
}

static void end_prediction(void *self, bool ran) {
  prediction *p = self;
  if (!ran) p->status = shoal_fail(&p->err, SHOAL_STOPPED, "the server is being stopped");
  if (p->status != SHOAL_OK) shoal_cut_path(p->err.text, p->path.bytes, 1);
  shoal_api_finish(&p->kept.call, 200, p->status, &p->answer, &p->err);
  release_prediction(p);
}

void shoal_api_predict(const shoal_api_call *call) {
  if (!shoal_api_may_see(call, call->id)) return;
  shoal_text path = {0};
  shoal_error err;
  cJSON *body = shoal_api_body(call);
  const cJSON *rows = cJSON_GetObjectItemCaseSensitive(body, "rows");
  bool good = cJSON_IsArray(rows) && cJSON_GetArraySize(rows) <= ROWS_MAX;
  if (body != NULL && !good)
    shoal_api_error_at(call, 400, "\"rows\" must be a list of at most 10000 objects, column by column",
                       "rows", 0, 0);
  if (good && shoal_jobs_file(call->api->jobs, call->id, "model.safetensors", &path, &err) != SHOAL_OK) {
    shoal_api_failed(call, &err);
    cJSON_Delete(body);
    shoal_text_release(&path);
    return;
  }
  prediction *p = good ? calloc(1, sizeof *p) : NULL;
  if (p == NULL) {
    if (good) shoal_api_error(call, 503, "out of memory");
    cJSON_Delete(body);
    shoal_text_release(&path);
    return;
  }
  *p = (prediction){.body = body, .path = path};
  bool kept = shoal_api_keep_call(&p->kept, call);
  const shoal_chore chore = {.subject = "", .self = p, .run = run_prediction, .done = end_prediction};
  if (kept && shoal_chores_add(call->api->chores, &chore)) return;
  shoal_api_error(call, 503, "too many wait already; try again");
  release_prediction(p);
}
