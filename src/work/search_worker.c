/* search_worker.c: see search_worker.h. */
#include "work/search_worker.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_at.h"
#include "search/board.h"
#include "server/folders.h"
#include "work/retry.h"
#include "work/unit_lease.h"

enum { BRIEF_BYTES_MAX = 256 << 20, PATH_BYTES = 256, SLOTS_MAX = 1024 };
static const double save_every_s = 20;
static const double beats_a_lease = 4, beat_again_s = 1;
static const double last_words_s = 2; /* for a server that is slow when this worker leaves */
static const double no_unit_pause_s = 0.3;

/* A unit that is being computed. */
typedef struct slot {
  bool used;
  shoal_unit_lease lease;
  double beat_s, beat_at;     /* how often, and when next */
  volatile sig_atomic_t stop; /* the worker ends, or nobody wants this unit any more */
  bool unwanted;
} slot;

struct shoal_search_worker {
  shoal_search_worker_config config;
  shoal_retry retry;
  shoal_brief brief;
  shoal_bench *bench;
  pthread_t beater;
  bool beats;
  pthread_mutex_t mutex;
  slot *slots;
  volatile sig_atomic_t end; /* of the thread that beats */
  bool over;                 /* the search is */
  shoal_status status;
  shoal_error failure;
};

static bool stops(const shoal_search_worker *w) { return shoal_retry_stops(&w->retry); }

/* ---- asking the server ---- */

/* Asks until there is an answer. POST is sent once by shoal_fetch; all of these may be sent again. */
static shoal_status ask(const shoal_search_worker *w, shoal_fetch *fetch, const shoal_ask *question,
                        shoal_reply *reply, shoal_error *err) {
  double pause = 0;
  shoal_status status;
  do {
    status = shoal_fetch_ask(fetch, question, reply, err);
    if (!shoal_retry_is_passing(reply, status)) return status;
    shoal_reply_release(reply);
    pause = shoal_retry_longer(pause);
    status = shoal_retry_pause(&w->retry, pause, err);
  } while (status == SHOAL_OK);
  return status;
}

static void path_of(const shoal_search_worker *w, const char *what, char out[PATH_BYTES]) {
  snprintf(out, PATH_BYTES, "/api/v1/jobs/%" PRIu64 "/%s", w->config.job, what);
}

/* What a unit is told of by path: "/api/v1/jobs/7/units/3/beat". */
static void unit_path(const shoal_search_worker *w, uint64_t unit, const char *what, char out[PATH_BYTES]) {
  snprintf(out, PATH_BYTES, "/api/v1/jobs/%" PRIu64 "/units/%" PRIu64 "/%s", w->config.job, unit, what);
}

/* The table may still be read by the server. */
static shoal_status get_brief(shoal_search_worker *w, shoal_fetch *fetch, shoal_error *err) {
  char path[PATH_BYTES];
  path_of(w, "brief", path);
  const shoal_ask question = {.path = path, .answer_max = BRIEF_BYTES_MAX};
  while (true) {
    shoal_reply reply = {0};
    shoal_status status = ask(w, fetch, &question, &reply, err);
    bool waits = reply.status == 409;
    if (status == SHOAL_OK)
      status = shoal_brief_read(&w->brief, reply.body.bytes ? reply.body.bytes : "", reply.body.length, err);
    else if (reply.status == 410)
      status = shoal_fail(err, SHOAL_NOT_FOUND, "the search is over");
    shoal_reply_release(&reply);
    if (waits) status = shoal_retry_pause(&w->retry, no_unit_pause_s, err);
    if (!waits || status != SHOAL_OK) return status;
  }
}

/* ---- beats ---- */

static bool holds(const slot *s, const shoal_unit_lease *held) {
  return s->used && s->lease.unit == held->unit && s->lease.attempt == held->attempt;
}

/* False: the server was not reached. */
static bool beat_slot(shoal_search_worker *w, shoal_fetch *fetch, slot *s, const shoal_unit_lease *held) {
  char path[PATH_BYTES];
  shoal_text body;
  shoal_json json;
  shoal_reply reply = {0};
  shoal_error err;
  unit_path(w, held->unit, "beat", path);
  shoal_unit_lease_begin(held, &json, &body);
  shoal_json_text(&json, "worker", w->config.name);
  shoal_json_close(&json, '}');
  if (!body.failed)
    shoal_fetch_ask(fetch, &(shoal_ask){.method = "POST", .path = path, .json = body.bytes}, &reply, &err);
  bool heard = reply.status > 0 && reply.status < 500;
  bool unwanted = reply.status == 403 || reply.status == 409 || reply.status == 410;
  shoal_reply_release(&reply);
  shoal_text_release(&body);
  if (!unwanted) return heard;
  pthread_mutex_lock(&w->mutex);
  if (holds(s, held)) {
    s->unwanted = true;
    __atomic_store_n(&s->stop, 1, __ATOMIC_RELAXED);
  }
  pthread_mutex_unlock(&w->mutex);
  return true;
}

/* Whether a beat is due; then *held is what it is for. A beat that does not arrive is due again soon. */
static bool is_due(shoal_search_worker *w, slot *s, double now, shoal_unit_lease *held) {
  bool stopping = stops(w);
  pthread_mutex_lock(&w->mutex);
  if (s->used && stopping) __atomic_store_n(&s->stop, 1, __ATOMIC_RELAXED);
  bool due = s->used && now >= s->beat_at && !stopping;
  if (due) s->beat_at = now + s->beat_s;
  *held = s->lease;
  pthread_mutex_unlock(&w->mutex);
  return due;
}

/* The slot's next beat; infinity: none, there is nothing to beat for any more. */
static void beat_next(shoal_search_worker *w, slot *s, const shoal_unit_lease *held, double at) {
  pthread_mutex_lock(&w->mutex);
  if (holds(s, held)) s->beat_at = at;
  pthread_mutex_unlock(&w->mutex);
}

/* Goes on, whatever happens, until the worker ends: a connection that could not be made is tried again. */
static void *beat(void *self) {
  shoal_search_worker *w = self;
  shoal_fetch *fetch = NULL;
  shoal_error err;
  shoal_unit_lease held;
  while (!__atomic_load_n(&w->end, __ATOMIC_RELAXED)) {
    shoal_clock_sleep(0.05);
    double now = shoal_clock_seconds();
    for (uint32_t i = 0; i < w->config.threads; i++) {
      if (!is_due(w, &w->slots[i], now, &held)) continue;
      bool heard = (fetch != NULL || shoal_retry_reach(&w->retry, &fetch, &err) == SHOAL_OK) &&
                   beat_slot(w, fetch, &w->slots[i], &held);
      if (!heard) beat_next(w, &w->slots[i], &held, now + beat_again_s);
    }
  }
  shoal_fetch_destroy(fetch);
  return NULL;
}

static slot *take_slot(shoal_search_worker *w, const shoal_unit_lease *held) {
  slot *found = NULL;
  pthread_mutex_lock(&w->mutex);
  for (uint32_t i = 0; i < w->config.threads && found == NULL; i++)
    if (!w->slots[i].used) found = &w->slots[i];
  double beat_s = held->seconds / beats_a_lease;
  if (found)
    *found =
        (slot){.used = true, .lease = *held, .beat_s = beat_s, .beat_at = shoal_clock_seconds() + beat_s};
  pthread_mutex_unlock(&w->mutex);
  return found;
}

static void give_slot(shoal_search_worker *w, slot *s) {
  pthread_mutex_lock(&w->mutex);
  s->used = false;
  pthread_mutex_unlock(&w->mutex);
}

/* ---- one unit ---- */

static shoal_status parse_unit(const shoal_search_worker *w, const char *text, size_t length,
                               shoal_unit_lease *held, shoal_unit *out, shoal_error *err) {
  cJSON *json = cJSON_ParseWithLength(text, length);
  shoal_status status = SHOAL_OK;
  *out = (shoal_unit){0};
  if (!shoal_unit_lease_read(json, held) ||
      !shoal_read_whole_at(json, "trial", (uint64_t)1e15, &out->trial) ||
      !shoal_read_u32_at(json, "rung", SHOAL_RUNGS_MAX, &out->rung) ||
      !shoal_read_u32_at(json, "epochs_from", SHOAL_CURVE_MAX, &out->epochs_from) ||
      !shoal_read_u32_at(json, "epochs_to", SHOAL_CURVE_MAX, &out->epochs_to))
    status = shoal_fail(err, SHOAL_CORRUPT, "the server gave a unit that cannot be read");
  out->number = held->unit;
  if (status == SHOAL_OK)
    status = shoal_values_read(&w->brief.space, cJSON_GetObjectItemCaseSensitive(json, "settings"),
                               &out->values, err);
  cJSON_Delete(json);
  return status;
}

/* What a unit needs on its way. */
typedef struct errand {
  shoal_search_worker *worker;
  const shoal_unit_lease *held;
  const shoal_unit *unit;
  shoal_fetch *fetch;
  char state[PATH_BYTES + 256];
} errand;

/* The state from before. A unit that begins its trial has one only when somebody was lost in the middle of
 * it. */
static shoal_status get_state(const errand *e, shoal_error *err) {
  const shoal_search_worker *w = e->worker;
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "/api/v1/jobs/%" PRIu64 "/trials/%" PRIu64 "/state", w->config.job,
           e->unit->trial);
  unlink(e->state);
  if (e->unit->epochs_from == 0 && e->held->attempt == 1) return SHOAL_OK;
  double pause = 0;
  shoal_status status;
  do {
    status = shoal_fetch_file(e->fetch, path, e->state, NULL, NULL, err);
    if (status == SHOAL_NOT_FOUND && e->unit->epochs_from == 0) return SHOAL_OK;
    if (status != SHOAL_IO && status != SHOAL_FULL) return status;
    pause = shoal_retry_longer(pause);
    status = shoal_retry_pause(&w->retry, pause, err);
  } while (status == SHOAL_OK);
  return status;
}

static void put_path(const errand *e, char out[PATH_BYTES]) {
  char what[SHOAL_UNIT_TICKET_MAX + 64];
  snprintf(what, sizeof what, "state?attempt=%u&ticket=%s", e->held->attempt, e->held->ticket);
  unit_path(e->worker, e->held->unit, what, out);
}

static shoal_status put_state(const errand *e, shoal_reply *reply, shoal_error *err) {
  char path[PATH_BYTES];
  put_path(e, path);
  return ask(e->worker, e->fetch, &(shoal_ask){.method = "PUT", .path = path, .file = e->state}, reply, err);
}

/* A checkpoint on the way: whoever goes on with this unit begins there. One that does not arrive is no
 * matter. */
static void saved(void *self) {
  errand *e = self;
  char path[PATH_BYTES];
  shoal_reply reply;
  shoal_error err;
  put_path(e, path);
  shoal_fetch_ask(e->fetch, &(shoal_ask){.method = "PUT", .path = path, .file = e->state}, &reply, &err);
  shoal_reply_release(&reply);
}

static shoal_status post(const errand *e, const char *what, const shoal_text *body, shoal_reply *reply,
                         shoal_error *err) {
  char path[PATH_BYTES];
  unit_path(e->worker, e->held->unit, what, path);
  if (body->failed) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  return ask(e->worker, e->fetch, &(shoal_ask){.method = "POST", .path = path, .json = body->bytes}, reply,
             err);
}

/* Late is not wrong: somebody else's result counts. */
static shoal_status forgive(const shoal_reply *reply, shoal_status status) {
  if (reply->status == 410) return SHOAL_NOT_FOUND;
  return reply->status == 409 ? SHOAL_OK : status;
}

static shoal_status report(const errand *e, const shoal_trial_result *result, shoal_error *err) {
  shoal_text body;
  shoal_json json;
  shoal_reply reply = {0};
  shoal_status status = SHOAL_OK;
  if (!result->failed) {
    status = put_state(e, &reply, err);
    bool unwanted = reply.status == 409 || reply.status == 410;
    if (unwanted || status != SHOAL_OK) {
      status = forgive(&reply, status);
      shoal_reply_release(&reply);
      return status;
    }
    shoal_reply_release(&reply);
  }
  shoal_unit_lease_begin(e->held, &json, &body);
  shoal_json_text(&json, "worker", e->worker->config.name);
  shoal_trial_result_write(result, &json, "result");
  shoal_json_close(&json, '}');
  status = post(e, "result", &body, &reply, err);
  status = forgive(&reply, status);
  shoal_reply_release(&reply);
  shoal_text_release(&body);
  return status;
}

/* This worker cannot; another one may. */
static void tell_failure(const errand *e, const char *why) {
  shoal_text body;
  shoal_json json;
  shoal_reply reply = {0};
  shoal_error err;
  shoal_unit_lease_begin(e->held, &json, &body);
  shoal_json_text(&json, "why", why);
  shoal_json_close(&json, '}');
  post(e, "failed", &body, &reply, &err);
  shoal_reply_release(&reply);
  shoal_text_release(&body);
}

static void count_unit(const shoal_search_worker *w, const shoal_unit *unit,
                       const shoal_trial_result *result) {
  shoal_worker_count *count = w->config.count;
  if (count == NULL) return;
  uint64_t samples = shoal_trial_samples(&w->brief, shoal_bench_split(w->bench), unit, result);
  __atomic_add_fetch(&count->units, 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(&count->samples, samples, __ATOMIC_RELAXED);
}

/* Another worker goes on from here. This one is to stop, so its own connection answers no more. */
static void save_last(errand *e) {
  shoal_fetch *own = e->fetch;
  shoal_error err;
  const shoal_fetch_config config = {
      .link = e->worker->config.link, .connect_s = last_words_s, .silence_s = last_words_s};
  if (!shoal_file_exists(e->state) || shoal_fetch_create(&e->fetch, &config, &err) != SHOAL_OK) {
    e->fetch = own;
    return;
  }
  saved(e);
  shoal_fetch_destroy(e->fetch);
  e->fetch = own;
}

static bool is_unwanted(shoal_search_worker *w, const slot *s) {
  pthread_mutex_lock(&w->mutex);
  bool unwanted = s->unwanted;
  pthread_mutex_unlock(&w->mutex);
  return unwanted;
}

/* A state that is missing, or not this trial's, or of other epochs, is a trouble of this unit alone. */
static shoal_status of_unit(shoal_status status) {
  return status == SHOAL_NOT_FOUND || status == SHOAL_CONFLICT ? SHOAL_CORRUPT : status;
}

static shoal_status compute(errand *e, slot *s, shoal_trial_result *result, shoal_error *err) {
  shoal_search_worker *w = e->worker;
  shoal_status status = of_unit(get_state(e, err));
  if (status != SHOAL_OK) return status;
  const shoal_trial_options options = {.unit = e->unit,
                                       .state = e->state,
                                       .save_every_s = save_every_s,
                                       .saved = saved,
                                       .self = e,
                                       .stop = &s->stop};
  status = of_unit(shoal_trial_run(w->bench, &options, result, err));
  if (status == SHOAL_OK) status = report(e, result, err);
  if (status == SHOAL_OK) count_unit(w, e->unit, result);
  if (status != SHOAL_STOPPED) return status;
  if (is_unwanted(w, s)) return SHOAL_OK;
  save_last(e);
  return status;
}

shoal_status shoal_search_worker_unit(shoal_search_worker *w, const char *text, size_t length,
                                      shoal_error *err) {
  shoal_unit_lease held;
  shoal_unit unit;
  shoal_status status = parse_unit(w, text, length, &held, &unit, err);
  if (status != SHOAL_OK) return status;
  errand e = {.worker = w, .held = &held, .unit = &unit};
  snprintf(e.state, sizeof e.state, "%s/%" PRIu64 ".safetensors", w->config.folder, held.unit);
  shoal_trial_result *result = malloc(sizeof *result);
  slot *s = result ? take_slot(w, &held) : NULL;
  status =
      s ? shoal_retry_reach(&w->retry, &e.fetch, err) : shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  if (status == SHOAL_OK) {
    status = compute(&e, s, result, err);
    if (status == SHOAL_CORRUPT || status == SHOAL_INVALID || status == SHOAL_LIMIT) {
      beat_next(w, s, &held, INFINITY);
      shoal_cut_folder(err->text, w->config.folder);
      tell_failure(&e, err->text);
      shoal_note(&w->config.notes, "unit %" PRIu64 ": %s", held.unit, err->text);
      status = SHOAL_OK;
    }
    shoal_fetch_destroy(e.fetch);
  }
  if (s) give_slot(w, s);
  unlink(e.state);
  free(result);
  return status;
}

/* ---- taking units ---- */

/* SHOAL_NOT_FOUND: the search is over. *text is the caller's to release. */
static shoal_status take_unit(const shoal_search_worker *w, shoal_fetch *fetch, shoal_reply *reply,
                              shoal_error *err) {
  char path[PATH_BYTES];
  shoal_text body;
  shoal_json json;
  shoal_json_begin(&json, &body);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "worker", w->config.name);
  shoal_json_close(&json, '}');
  path_of(w, "units", path);
  shoal_status status = body.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory") : SHOAL_OK;
  while (status == SHOAL_OK) {
    status = ask(w, fetch, &(shoal_ask){.method = "POST", .path = path, .json = body.bytes}, reply, err);
    if (reply->status != 204) break;
    shoal_reply_release(reply);
    status = shoal_retry_pause(&w->retry, no_unit_pause_s, err);
  }
  shoal_text_release(&body);
  return reply->status == 410 ? SHOAL_NOT_FOUND : status;
}

static void *work(void *self) {
  shoal_search_worker *w = self;
  shoal_fetch *fetch = NULL;
  shoal_error err;
  shoal_status status = shoal_retry_reach(&w->retry, &fetch, &err);
  while (status == SHOAL_OK) {
    shoal_reply reply = {0};
    status = take_unit(w, fetch, &reply, &err);
    if (status == SHOAL_OK) status = shoal_search_worker_unit(w, reply.body.bytes, reply.body.length, &err);
    shoal_reply_release(&reply);
  }
  shoal_fetch_destroy(fetch);
  pthread_mutex_lock(&w->mutex);
  if (status == SHOAL_NOT_FOUND)
    w->over = true;
  else if (w->status == SHOAL_OK) {
    w->status = status;
    w->failure = err;
  }
  pthread_mutex_unlock(&w->mutex);
  return NULL;
}

shoal_status shoal_search_worker_run(shoal_search_worker *w, shoal_error *err) {
  pthread_t threads[SLOTS_MAX];
  uint32_t made = 0;
  while (made < w->config.threads && pthread_create(&threads[made], NULL, work, w) == 0) made++;
  for (uint32_t i = 0; i < made; i++) pthread_join(threads[i], NULL);
  if (made == 0) return shoal_fail(err, SHOAL_NO_MEMORY, "cannot start a thread");
  if (w->status == SHOAL_OK || (w->over && w->status == SHOAL_STOPPED)) return SHOAL_OK;
  if (err) *err = w->failure;
  return w->status;
}

/* ---- open and close ---- */

shoal_status shoal_search_worker_open(shoal_search_worker **out, const shoal_search_worker_config *config,
                                      shoal_error *err) {
  *out = NULL;
  shoal_search_worker *w = calloc(1, sizeof *w);
  if (w == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  w->config = *config;
  w->retry = (shoal_retry){.link = config->link, .stop = config->stop};
  if (w->config.threads > SLOTS_MAX) w->config.threads = SLOTS_MAX;
  shoal_brief_init(&w->brief);
  pthread_mutex_init(&w->mutex, NULL);
  w->slots = calloc(w->config.threads, sizeof *w->slots);
  shoal_fetch *fetch = NULL;
  shoal_status status = w->slots ? shoal_make_folder(config->folder, err)
                                 : shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  if (status == SHOAL_OK) status = shoal_retry_reach(&w->retry, &fetch, err);
  if (status == SHOAL_OK) status = get_brief(w, fetch, err);
  shoal_fetch_destroy(fetch);
  if (status == SHOAL_OK) {
    const shoal_bench_options options = {
        .brief = &w->brief, .path = config->table, .folder = config->folder, .stop = config->stop};
    status = shoal_bench_open(&w->bench, &options, err);
  }
  if (status == SHOAL_OK && pthread_create(&w->beater, NULL, beat, w) != 0)
    status = shoal_fail(err, SHOAL_NO_MEMORY, "cannot start a thread");
  if (status != SHOAL_OK) {
    shoal_search_worker_close(w);
    return status;
  }
  w->beats = true;
  *out = w;
  return SHOAL_OK;
}

void shoal_search_worker_close(shoal_search_worker *w) {
  if (w == NULL) return;
  __atomic_store_n(&w->end, 1, __ATOMIC_RELAXED);
  if (w->beats) pthread_join(w->beater, NULL);
  shoal_bench_close(w->bench);
  shoal_brief_release(&w->brief);
  shoal_remove_folder(w->config.folder, NULL);
  pthread_mutex_destroy(&w->mutex);
  free(w->slots);
  free(w);
}
