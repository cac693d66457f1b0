/* queue_volunteer.c: see queue_volunteer.h.
 *
 * The caller's thread receives, claims, hands out, and beats for units whose data is still on its way; a
 * thread for every core waits for a unit and computes it. `mutex` guards the slots and what they tell. */
#include "work/queue_volunteer.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/json_at.h"
#include "queue/queue.h"
#include "server/offers.h"
#include "wire/fetch.h"
#include "work/search_shelf.h"
#include "work/turn.h"
#include "work/unit_lease.h"

enum { DATA_NAME_MAX = 256, NOTES_MAX = 16, PATH_BYTES = 128 };
static const double TURN_S = 0.1, LOOK_S = 5, ONCE_S = 1, IDLE_S = 1;
static const double BEATS_A_LEASE = 4;
static const double ASK_S = 5, LEAVE_ASK_S = 2, PATIENCE_S = 10;
static const double FIRST_PAUSE_S = 0.2, LONGEST_PAUSE_S = 5; /* for a server or a broker that is away */
static const double FIRST_RETRY_S = 1,
                    LONGEST_RETRY_S = 60; /* after a unit that could not be computed here */

/* A unit, as a message has it. */
typedef struct task {
  shoal_link link;
  uint64_t job;
  shoal_unit_lease lease;
  double beat_s, beat_at; /* how often the server wants to hear of it, and when next */
  char data[DATA_NAME_MAX];
  char *text; /* the unit, as POST units gives it */
} task;

typedef enum slot_state { SLOT_FREE, SLOT_PREPARES, SLOT_COMPUTES } slot_state;

typedef struct slot {
  struct work *work;
  pthread_t thread;
  slot_state state;
  bool unwanted; /* the server has said so while it was prepared */
  task task;
} slot;

typedef struct work {
  const shoal_work_config *config;
  shoal_queue *queue;
  shoal_search_shelf *shelf;
  shoal_worker_count count;
  /* The caller's thread's own. */
  bool receives;
  bool has_delivery; /* taken, and not claimed yet */
  shoal_delivery delivery;
  task offered; /* what it says */
  double claim_at, claim_pause;
  bool has_spare; /* claimed, and no core is free */
  task spare;
  double once_at, busy_at;
  shoal_work_rate rate;
  shoal_work_rest rest;
  task last; /* its link and job alone: what it worked for; job 0: nothing yet */
  char job_name[SHOAL_LINK_ADDRESS_MAX + 32];

  pthread_mutex_t mutex;
  pthread_cond_t given, freed;
  slot *slots;
  uint32_t slots_count;
  bool ends;
  bool over;                  /* a search is */
  bool away;                  /* it was told that the broker is */
  double not_before, retry_s; /* after something went wrong */
  char *notes[NOTES_MAX];
  uint32_t notes_count;
} work;

static bool stops(const work *w) { return __atomic_load_n(w->config->stop, __ATOMIC_RELAXED) != 0; }

/* ---- what is told, from any thread ---- */

static void add_note(void *self, const char *text) {
  work *w = self;
  char *copy = strdup(text);
  pthread_mutex_lock(&w->mutex);
  if (copy && w->notes_count < NOTES_MAX)
    w->notes[w->notes_count++] = copy;
  else
    free(copy);
  pthread_mutex_unlock(&w->mutex);
}

__attribute__((format(printf, 2, 3))) static void tell(work *w, const char *format, ...) {
  char text[2 * SHOAL_WORK_TEXT_MAX];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  add_note(w, text);
}

static void print_notes(work *w) {
  char *notes[NOTES_MAX];
  pthread_mutex_lock(&w->mutex);
  uint32_t count = w->notes_count;
  memcpy(notes, w->notes, count * sizeof *notes);
  w->notes_count = 0;
  pthread_mutex_unlock(&w->mutex);
  for (uint32_t i = 0; i < count; i++) {
    w->config->notes(w->config->self, notes[i]);
    free(notes[i]);
  }
}

static void tell_lost(void *self, const char *why) {
  work *w = self;
  pthread_mutex_lock(&w->mutex);
  bool news = !w->away;
  w->away = true;
  pthread_mutex_unlock(&w->mutex);
  if (news) tell(w, "lost the queue: %s; trying again", why);
}

static void tell_connected(void *self) {
  work *w = self;
  pthread_mutex_lock(&w->mutex);
  w->away = false;
  pthread_mutex_unlock(&w->mutex);
  tell(w, "connected to the queue");
}

/* ---- messages ---- */

static void release_task(task *t) {
  free(t->text);
  *t = (task){0};
}

/* A token goes into a header: nothing but its letters. */
static bool read_token(const char *text, char out[SHOAL_TOKEN_MAX]) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  size_t length = strlen(text);
  if (length >= SHOAL_TOKEN_MAX || strspn(text, letters) != length) return false;
  memcpy(out, text, length + 1);
  return true;
}

static bool read_message(const char *bytes, size_t length, task *out) {
  static const uint64_t whole_max = (uint64_t)1e15;
  cJSON *json = shoal_utf8_valid(bytes, length) ? cJSON_ParseWithLength(bytes, length) : NULL;
  const cJSON *unit = cJSON_GetObjectItemCaseSensitive(json, "unit");
  const char *server = shoal_text_at(json, "server"), *data = shoal_text_at(json, "data");
  shoal_error err;
  *out = (task){0};
  bool good = shoal_link_parse(&out->link, server, &err) == SHOAL_OK &&
              read_token(shoal_text_at(json, "token"), out->link.token) &&
              shoal_read_whole_at(json, "job", whole_max, &out->job) &&
              shoal_unit_lease_read(unit, &out->lease) && data[0] != 0 && strlen(data) < sizeof out->data;
  if (good) {
    out->beat_s = out->lease.seconds / BEATS_A_LEASE;
    memcpy(out->data, data, strlen(data) + 1);
    out->text = cJSON_PrintUnformatted(unit);
  }
  good = good && out->text != NULL;
  if (!good) release_task(out);
  cJSON_Delete(json);
  return good;
}

/* ---- what it says to the server of a unit ---- */

typedef enum answer { ANSWER_YES, ANSWER_NO, ANSWER_AWAY } answer;

static answer post(const task *t, const char *what, const shoal_text *body, double patience_s,
                   const volatile sig_atomic_t *stop) {
  char path[PATH_BYTES];
  shoal_fetch *fetch;
  shoal_reply reply;
  shoal_error err;
  const shoal_fetch_config config = {
      .link = &t->link, .connect_s = patience_s, .silence_s = patience_s, .stop = stop};
  if (body->failed || shoal_fetch_create(&fetch, &config, &err) != SHOAL_OK) return ANSWER_AWAY;
  snprintf(path, sizeof path, "/api/v1/jobs/%" PRIu64 "/units/%" PRIu64 "/%s", t->job, t->lease.unit, what);
  shoal_status status =
      shoal_fetch_ask(fetch, &(shoal_ask){.method = "POST", .path = path, .json = body->bytes}, &reply, &err);
  bool refused = reply.status >= 400 && reply.status < 500 && reply.status != 429;
  shoal_reply_release(&reply);
  shoal_fetch_destroy(fetch);
  return status == SHOAL_OK ? ANSWER_YES : refused ? ANSWER_NO : ANSWER_AWAY;
}

/* The first one claims it. */
static answer beat(const work *w, const task *t) {
  shoal_text body;
  shoal_json json;
  shoal_unit_lease_begin(&t->lease, &json, &body);
  shoal_json_text(&json, "worker", w->config->name);
  shoal_json_close(&json, '}');
  answer said = post(t, "beat", &body, ASK_S, w->config->stop);
  shoal_text_release(&body);
  return said;
}

/* Others may have it at once. Also said on the way out. */
static void give_back(const task *t, const char *why) {
  shoal_text body;
  shoal_json json;
  shoal_unit_lease_begin(&t->lease, &json, &body);
  shoal_json_text(&json, "why", why);
  shoal_json_bool(&json, "given_back", true);
  shoal_json_close(&json, '}');
  (void)post(t, "failed", &body, LEAVE_ASK_S, NULL);
  shoal_text_release(&body);
}

/* ---- the threads that compute ---- */

/* False: nobody wants it any more. */
static bool begin_to_compute(slot *s) {
  work *w = s->work;
  pthread_mutex_lock(&w->mutex);
  bool wanted = !s->unwanted;
  s->state = SLOT_COMPUTES;
  pthread_mutex_unlock(&w->mutex);
  return wanted;
}

static void settle(slot *s, shoal_status status, const shoal_error *err) {
  work *w = s->work;
  const task *t = &s->task;
  bool over = status == SHOAL_NOT_FOUND, wrong = status != SHOAL_OK && status != SHOAL_STOPPED && !over;
  if (status == SHOAL_STOPPED || wrong) give_back(t, wrong ? err->text : "its worker leaves");
  pthread_mutex_lock(&w->mutex);
  w->over = w->over || over;
  if (wrong) {
    w->not_before = shoal_clock_seconds() + w->retry_s;
    w->retry_s = fmin(2 * w->retry_s, LONGEST_RETRY_S);
  } else if (status == SHOAL_OK) {
    w->retry_s = FIRST_RETRY_S;
  }
  pthread_mutex_unlock(&w->mutex);
  if (wrong) tell(w, "job %" PRIu64 " of %s: %s", t->job, t->link.address, err->text);
}

static void compute(slot *s) {
  work *w = s->work;
  const task *t = &s->task;
  shoal_search_worker *worker;
  shoal_error err = {0};
  shoal_status status = shoal_search_shelf_take(w->shelf, &t->link, t->job, t->data, &worker, &err);
  if (status == SHOAL_OK) {
    if (begin_to_compute(s)) status = shoal_search_worker_unit(worker, t->text, strlen(t->text), &err);
    shoal_search_shelf_give(w->shelf, worker, status == SHOAL_NOT_FOUND);
  }
  settle(s, status, &err);
}

static void *run_slot(void *self) {
  slot *s = self;
  work *w = s->work;
  pthread_mutex_lock(&w->mutex);
  while (!w->ends) {
    if (s->state == SLOT_FREE) {
      pthread_cond_wait(&w->given, &w->mutex);
      continue;
    }
    pthread_mutex_unlock(&w->mutex);
    compute(s);
    pthread_mutex_lock(&w->mutex);
    release_task(&s->task);
    s->state = SLOT_FREE;
    pthread_cond_broadcast(&w->freed);
  }
  pthread_mutex_unlock(&w->mutex);
  return NULL;
}

/* ---- the caller's thread ---- */

static uint32_t free_slots(work *w) {
  uint32_t count = 0;
  pthread_mutex_lock(&w->mutex);
  for (uint32_t i = 0; i < w->slots_count; i++) count += w->slots[i].state == SLOT_FREE;
  pthread_mutex_unlock(&w->mutex);
  return count;
}

static bool is_same(const task *a, const task *b) {
  return a->job == b->job && a->lease.unit == b->lease.unit && a->lease.attempt == b->lease.attempt &&
         strcmp(a->link.address, b->link.address) == 0;
}

/* A message may come twice. */
static bool has_task(work *w, const task *t) {
  bool has = w->has_spare && is_same(&w->spare, t);
  pthread_mutex_lock(&w->mutex);
  for (uint32_t i = 0; i < w->slots_count; i++)
    has = has || (w->slots[i].state != SLOT_FREE && is_same(&w->slots[i].task, t));
  pthread_mutex_unlock(&w->mutex);
  return has;
}

/* Takes the task over; false: no core is free. */
static bool hand_out(work *w, task *t) {
  slot *found = NULL;
  pthread_mutex_lock(&w->mutex);
  for (uint32_t i = 0; i < w->slots_count && !found; i++)
    if (w->slots[i].state == SLOT_FREE) found = &w->slots[i];
  if (found) {
    found->task = *t;
    found->unwanted = false;
    found->state = SLOT_PREPARES;
    pthread_cond_broadcast(&w->given);
  }
  pthread_mutex_unlock(&w->mutex);
  if (found) *t = (task){0};
  return found != NULL;
}

/* While the broker is away this would wait for it: then it is done later. */
static void receive(work *w, bool wanted) {
  shoal_queue_view view;
  shoal_error err;
  if (wanted == w->receives) return;
  shoal_queue_look(w->queue, &view);
  if (!view.connected) return;
  shoal_status status = shoal_queue_receive(w->queue, SHOAL_UNITS_QUEUE, wanted ? 1 : 0, &err);
  if (status == SHOAL_NOT_FOUND) /* somebody has deleted it */
    (void)shoal_queue_declare(w->queue, &(shoal_queue_spec){.name = SHOAL_UNITS_QUEUE}, &err);
  if (status == SHOAL_OK) w->receives = wanted;
}

static void end_delivery(work *w) {
  shoal_queue_acknowledge(w->queue, &w->delivery);
  shoal_delivery_release(&w->delivery);
  w->has_delivery = false;
  release_task(&w->offered);
}

static void take_message(work *w, double wait_s) {
  if (!shoal_queue_take(w->queue, SHOAL_UNITS_QUEUE, wait_s, &w->delivery)) return;
  w->has_delivery = true;
  w->claim_at = 0;
  w->claim_pause = FIRST_PAUSE_S;
  bool good = read_message(w->delivery.bytes, w->delivery.length, &w->offered);
  if (!good) tell(w, "a message of %zu bytes is no unit; it was thrown away", w->delivery.length);
  if (!good || has_task(w, &w->offered)) end_delivery(w);
}

/* A message is acknowledged when its unit is ours, or will never be. */
static void claim(work *w, double now) {
  if (now < w->claim_at) return;
  answer said = beat(w, &w->offered);
  if (said == ANSWER_AWAY) {
    w->claim_at = now + w->claim_pause;
    w->claim_pause = fmin(2 * w->claim_pause, LONGEST_PAUSE_S);
    return;
  }
  if (said == ANSWER_YES) {
    w->offered.beat_at = now + w->offered.beat_s;
    if (free_slots(w) <= 1) receive(w, false); /* before the broker hears that there is room for another */
    w->last.link = w->offered.link;
    w->last.job = w->offered.job;
    snprintf(w->job_name, sizeof w->job_name, "job %" PRIu64 " of %s", w->last.job, w->last.link.address);
    if (!hand_out(w, &w->offered)) {
      w->spare = w->offered;
      w->offered = (task){0};
      w->has_spare = true;
    }
  }
  end_delivery(w);
}

/* For what is prepared, and what waits; those that compute have somebody who beats for them. */
static void beat_for_others(work *w, double now) {
  if (w->has_spare && now >= w->spare.beat_at) {
    w->spare.beat_at = now + w->spare.beat_s;
    w->has_spare = beat(w, &w->spare) != ANSWER_NO;
    if (!w->has_spare) release_task(&w->spare);
  }
  for (uint32_t i = 0; i < w->slots_count; i++) {
    slot *s = &w->slots[i];
    pthread_mutex_lock(&w->mutex);
    bool due = s->state == SLOT_PREPARES && now >= s->task.beat_at;
    if (due) s->task.beat_at = now + s->task.beat_s;
    task t = s->task; /* its text is not looked at */
    pthread_mutex_unlock(&w->mutex);
    if (!due || beat(w, &t) != ANSWER_NO) continue;
    pthread_mutex_lock(&w->mutex);
    if (s->state == SLOT_PREPARES && is_same(&s->task, &t)) s->unwanted = true;
    pthread_mutex_unlock(&w->mutex);
  }
}

static void wait_for_slot(work *w) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += (long)(TURN_S * 1e9);
  if (until.tv_nsec >= 1000000000) {
    until.tv_sec++;
    until.tv_nsec -= 1000000000;
  }
  pthread_mutex_lock(&w->mutex);
  bool any = false;
  for (uint32_t i = 0; i < w->slots_count; i++) any = any || w->slots[i].state == SLOT_FREE;
  if (!any) pthread_cond_timedwait(&w->freed, &w->mutex, &until);
  pthread_mutex_unlock(&w->mutex);
}

static void look_around(work *w, double now) {
  char note[SHOAL_WORK_TEXT_MAX];
  if (!shoal_work_rest_look(&w->rest, w->config, LOOK_S, now, note)) return;
  tell(w, "%s%s", note, w->rest.reason != SHOAL_MANNERS_WORKS ? "; what has begun is finished" : "");
}

/* With --once: whether the search that it worked for is over. A token that is good no more says so, too. */
static bool is_over(work *w, double now) {
  static const char *const ends[] = {"finished", "stopped", "failed"};
  pthread_mutex_lock(&w->mutex);
  bool over = w->over;
  pthread_mutex_unlock(&w->mutex);
  if (over || w->last.job == 0 || now < w->once_at || free_slots(w) < w->slots_count) return over;
  w->once_at = now + ONCE_S;
  char path[PATH_BYTES], state[16];
  shoal_fetch *fetch;
  shoal_reply reply;
  shoal_error err;
  const shoal_fetch_config config = {
      .link = &w->last.link, .connect_s = ASK_S, .silence_s = ASK_S, .stop = w->config->stop};
  if (shoal_fetch_create(&fetch, &config, &err) != SHOAL_OK) return false;
  snprintf(path, sizeof path, "/api/v1/jobs/%" PRIu64, w->last.job);
  shoal_status status = shoal_fetch_ask(fetch, &(shoal_ask){.path = path}, &reply, &err);
  cJSON *json = status == SHOAL_OK && reply.body.bytes ? cJSON_Parse(reply.body.bytes) : NULL;
  shoal_plain_at(json, "state", state, sizeof state);
  over = reply.status == 401 || reply.status == 403 || reply.status == 404 || reply.status == 410;
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) over = over || strcmp(state, ends[i]) == 0;
  cJSON_Delete(json);
  shoal_reply_release(&reply);
  shoal_fetch_destroy(fetch);
  return over;
}

/* Between two units it is not idle. */
static shoal_work_state state_of(work *w, bool connected, double now) {
  if (free_slots(w) < w->slots_count) w->busy_at = now;
  if (w->shelf && shoal_search_shelf_opens(w->shelf)) return SHOAL_WORK_FETCHING;
  if (w->busy_at > 0 && now - w->busy_at < IDLE_S) return SHOAL_WORK_COMPUTING;
  if (w->rest.reason != SHOAL_MANNERS_WORKS) return SHOAL_WORK_PAUSED;
  return connected ? SHOAL_WORK_IDLE : SHOAL_WORK_AWAY;
}

static void show(work *w, double now, bool leaves) {
  shoal_queue_view queue = {0};
  shoal_work_rate_measure(&w->rate, &w->count, now);
  if (w->queue) shoal_queue_look(w->queue, &queue);
  shoal_work_state state = state_of(w, queue.connected, now);
  bool works = state == SHOAL_WORK_FETCHING || state == SHOAL_WORK_COMPUTING;
  const shoal_work_view view = {.state = state,
                                .text = state == SHOAL_WORK_PAUSED ? w->rest.text
                                        : state == SHOAL_WORK_IDLE ? "no units are in the queue"
                                                                   : "",
                                .connected = queue.connected,
                                .leaves = leaves,
                                .job = works ? w->last.job : 0,
                                .job_name = w->job_name,
                                .host = "",
                                .from_server = w->shelf ? shoal_search_shelf_fetched(w->shelf) : 0,
                                .units = __atomic_load_n(&w->count.units, __ATOMIC_RELAXED),
                                .samples = __atomic_load_n(&w->count.samples, __ATOMIC_RELAXED),
                                .samples_per_s = w->rate.samples_per_s};
  w->config->shows(w->config->self, &view, now);
}

static void turn(work *w, double now) {
  look_around(w, now);
  if (w->has_spare && hand_out(w, &w->spare)) w->has_spare = false;
  uint32_t room = free_slots(w);
  pthread_mutex_lock(&w->mutex);
  bool rests = w->rest.reason != SHOAL_MANNERS_WORKS || now < w->not_before;
  pthread_mutex_unlock(&w->mutex);
  bool wants = room > 0 && !rests && !w->has_spare;
  if (!w->has_delivery) receive(w, wants);
  /* One may be here that was on its way when there was still room. */
  if (!w->has_delivery && !w->has_spare) take_message(w, room > 0 ? TURN_S : 0);
  if (w->has_delivery) claim(w, now);
  if (w->has_delivery) shoal_clock_sleep(TURN_S);
  if (room == 0) wait_for_slot(w);
  beat_for_others(w, now);
  print_notes(w);
  show(w, now, false);
}

/* ---- from the beginning to the end ---- */

/* The broker may be away when this begins, as at any time. */
static shoal_status open_queue(work *w, shoal_error *err) {
  const shoal_queue_config config = {.url = w->config->queue,
                                     .name = w->config->name,
                                     .calls = {.self = w, .connected = tell_connected, .lost = tell_lost}};
  double pause = FIRST_PAUSE_S;
  while (true) {
    shoal_status status = shoal_queue_open(&w->queue, &config, err);
    if (status == SHOAL_OK) {
      status = shoal_queue_declare(w->queue, &(shoal_queue_spec){.name = SHOAL_UNITS_QUEUE}, err);
      if (status == SHOAL_OK) tell_connected(w);
      if (status != SHOAL_IO) return status;
      shoal_queue_close(w->queue);
      w->queue = NULL;
    }
    if (status != SHOAL_IO) return status;
    tell_lost(w, err->text);
    print_notes(w);
    double until = shoal_clock_seconds() + pause;
    while (!stops(w) && shoal_clock_seconds() < until) shoal_clock_sleep(TURN_S);
    if (stops(w)) return shoal_fail(err, SHOAL_STOPPED, "stopped");
    show(w, shoal_clock_seconds(), false);
    pause = fmin(2 * pause, LONGEST_PAUSE_S);
  }
}

static shoal_status start_slots(work *w, shoal_error *err) {
  w->slots = calloc(w->config->threads, sizeof *w->slots);
  for (uint32_t i = 0; w->slots && i < w->config->threads; i++) {
    w->slots[i].work = w;
    if (pthread_create(&w->slots[i].thread, NULL, run_slot, &w->slots[i]) != 0) break;
    w->slots_count++;
  }
  return w->slots_count > 0 ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "cannot start a thread");
}

/* False: something still computes, and cannot be waited for. */
static bool end_slots(work *w) {
  double until = shoal_clock_seconds() + PATIENCE_S;
  pthread_mutex_lock(&w->mutex);
  w->ends = true;
  pthread_cond_broadcast(&w->given);
  pthread_mutex_unlock(&w->mutex);
  while (free_slots(w) < w->slots_count && shoal_clock_seconds() < until) shoal_clock_sleep(0.02);
  if (free_slots(w) < w->slots_count) return false;
  for (uint32_t i = 0; i < w->slots_count; i++) pthread_join(w->slots[i].thread, NULL);
  return true;
}

/* Messages that are not acknowledged go back to the queue when its connection ends. */
static bool leave(work *w, bool began) {
  if (w->queue && w->receives) receive(w, false);
  bool ended = end_slots(w);
  if (w->has_spare) give_back(&w->spare, "its worker leaves");
  if (w->has_delivery) shoal_delivery_release(&w->delivery);
  release_task(&w->spare);
  release_task(&w->offered);
  shoal_queue_close(w->queue);
  w->queue = NULL;
  print_notes(w);
  if (!began) return ended;
  show(w, shoal_clock_seconds(), true);
  if (!ended)
    w->config->notes(w->config->self, "leaves in the middle of a unit; somebody else will compute it");
  w->config->left(w->config->self);
  return ended;
}

shoal_status shoal_queue_volunteer_run(const shoal_work_config *config, shoal_error *err) {
  work *w = calloc(1, sizeof *w);
  if (w == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  w->config = config;
  w->retry_s = FIRST_RETRY_S;
  pthread_mutex_init(&w->mutex, NULL);
  pthread_cond_init(&w->given, NULL);
  pthread_cond_init(&w->freed, NULL);
  const shoal_search_shelf_config shelf = {.name = config->name,
                                           .cache = config->cache,
                                           .data_dir = config->data_dir,
                                           .cache_bytes_max = config->cache_bytes_max,
                                           .threads = config->threads,
                                           .count = &w->count,
                                           .notes = {.self = w, .note = add_note},
                                           .stop = config->stop};
  shoal_status status = shoal_search_shelf_create(&w->shelf, &shelf, err);
  if (status == SHOAL_OK) status = start_slots(w, err);
  if (status == SHOAL_OK) status = open_queue(w, err);
  for (double now; status == SHOAL_OK && !stops(w);) {
    now = shoal_clock_seconds();
    if (config->once && is_over(w, now)) break;
    turn(w, now);
  }
  bool well = status == SHOAL_OK || status == SHOAL_STOPPED;
  if (!leave(w, well)) { /* what still computes uses this memory: the process ends first */
    fflush(NULL);
    _exit(EXIT_SUCCESS);
  }
  shoal_search_shelf_destroy(w->shelf);
  free(w->slots);
  pthread_cond_destroy(&w->freed);
  pthread_cond_destroy(&w->given);
  pthread_mutex_destroy(&w->mutex);
  explicit_bzero(w, sizeof *w);
  free(w);
  return status == SHOAL_STOPPED ? SHOAL_OK : status;
}
