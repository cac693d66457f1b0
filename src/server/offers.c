/* offers.c: see offers.h.
 *
 * The thread inside opens the queue, as often as it takes, and looks at its length every second. All else is
 * done by the caller's thread: it sends (which does not wait), beats, and keeps the list of offers, in the
 * order in which they were sent. `mutex` guards what both see. */
#include "server/offers.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "queue/queue.h"

enum { WORKER_MAX = 64, OFFERS_MIN = 4, OFFERS_MAX = 4096 };
static const double TICK_S = 0.25, LOOK_S = 1;
static const double BEATS_A_LEASE = 8;
static const double SLACK_S = 2;   /* a lease that should be over surely is, after that */
static const double HELPER_S = 20; /* how long somebody counts as at work */
static const double FULL_S = 1;    /* between two tries of a job that has as many workers as it wants */
static const double OPEN_PAUSE_S_MAX = 10, TOKEN_PAUSE_S = 5;
static const double TOKEN_DAYS = 365; /* should a server ever end between a job and its token */

typedef enum offer_state { OFFERED, TAKEN, CLAIMED } offer_state;

typedef struct offer {
  uint64_t job, unit;
  uint32_t attempt;
  offer_state state;
  char *message;
  bool sent;
  double sent_at, beaten;  /* beaten: when its lease was last known to be good */
  char worker[WORKER_MAX]; /* who has claimed it */
} offer;

/* A job whose units are offered. */
typedef struct ground {
  uint64_t job;
  bool ready;
  double not_before; /* another try to get a token */
  double full_until; /* somebody came too many: no more offers until then */
  uint64_t token_id; /* 0: it needs none */
  char token[SHOAL_TOKEN_CHARS + 1];
} ground;

/* Who computed something lately. */
typedef struct helper {
  uint64_t job;
  double seen;
  char name[WORKER_MAX];
} helper;

/* What was last seen of the queue. */
typedef struct sight {
  bool known;
  double at; /* before the broker was asked */
  uint64_t messages, receivers;
} sight;

struct shoal_offers {
  shoal_offers_config config;
  char *url, *folder;
  offer *offers;
  size_t count, room;
  ground *grounds;
  size_t grounds_count, grounds_room;
  helper *helpers;
  size_t helpers_count, helpers_room;
  bool due, begun;
  double next, active_at;

  char *queue_url;
  pthread_t thread;
  bool runs;
  pthread_mutex_t mutex;
  pthread_cond_t news;
  bool ends, away;    /* away: it was said that the broker is */
  shoal_queue *queue; /* NULL: it was never reached yet */
  sight sight;
  bool renewed; /* connected again, or the queue is a new one */
};

/* ---- the thread inside ---- */

static void tell_lost(void *self, const char *why) {
  shoal_offers *o = self;
  pthread_mutex_lock(&o->mutex);
  bool news = !o->away && !o->ends;
  o->away = true;
  o->sight.known = false;
  pthread_mutex_unlock(&o->mutex);
  shoal_text text = {0};
  shoal_text_addf(&text, "the queue is unavailable: %s; trying again", why);
  if (news && !text.failed) o->config.log(o->config.self, text.bytes);
  shoal_text_release(&text);
}

static void tell_connected(void *self) {
  shoal_offers *o = self;
  pthread_mutex_lock(&o->mutex);
  o->away = false;
  o->renewed = true;
  pthread_mutex_unlock(&o->mutex);
  o->config.log(o->config.self, "the queue is here again");
  o->config.wake(o->config.self);
}

static shoal_status open_queue(shoal_offers *o, shoal_error *err) {
  const shoal_queue_config config = {.url = o->queue_url,
                                     .name = "shoal serve",
                                     .calls = {.self = o, .connected = tell_connected, .lost = tell_lost}};
  shoal_queue *queue = NULL;
  shoal_status status = shoal_queue_open(&queue, &config, err);
  if (status == SHOAL_OK)
    status = shoal_queue_declare(queue, &(shoal_queue_spec){.name = SHOAL_UNITS_QUEUE}, err);
  if (status != SHOAL_OK) {
    shoal_queue_close(queue);
    return status;
  }
  pthread_mutex_lock(&o->mutex);
  o->queue = queue;
  pthread_mutex_unlock(&o->mutex);
  return SHOAL_OK;
}

/* False: it ends. */
static bool rest(shoal_offers *o, double seconds) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += (time_t)seconds;
  until.tv_nsec += (long)((seconds - floor(seconds)) * 1e9);
  if (until.tv_nsec >= 1000000000) {
    until.tv_sec++;
    until.tv_nsec -= 1000000000;
  }
  pthread_mutex_lock(&o->mutex);
  if (!o->ends) pthread_cond_timedwait(&o->news, &o->mutex, &until);
  bool goes_on = !o->ends;
  pthread_mutex_unlock(&o->mutex);
  return goes_on;
}

static void look_at_queue(shoal_offers *o) {
  shoal_queue_view view;
  sight seen = {.at = shoal_clock_seconds()};
  shoal_queue_look(o->queue, &view);
  uint64_t outbox = view.outbox;
  shoal_status status =
      view.connected ? shoal_queue_count(o->queue, SHOAL_UNITS_QUEUE, &seen.messages, &seen.receivers, NULL)
                     : SHOAL_IO;
  seen.known = status == SHOAL_OK;
  seen.messages += outbox;
  bool made = status == SHOAL_NOT_FOUND && /* somebody has deleted it */
              shoal_queue_declare(o->queue, &(shoal_queue_spec){.name = SHOAL_UNITS_QUEUE}, NULL) == SHOAL_OK;
  pthread_mutex_lock(&o->mutex);
  bool more = seen.receivers > o->sight.receivers;
  o->sight = seen;
  o->renewed = o->renewed || made;
  pthread_mutex_unlock(&o->mutex);
  if (more || made) o->config.wake(o->config.self);
}

static void *watch(void *self) {
  shoal_offers *o = self;
  double pause = LOOK_S;
  shoal_error err;
  while (o->queue == NULL) {
    if (!rest(o, pause)) return NULL;
    if (open_queue(o, &err) == SHOAL_OK)
      tell_connected(o);
    else
      tell_lost(o, err.text);
    pause = fmin(2 * pause, OPEN_PAUSE_S_MAX);
  }
  do look_at_queue(o);
  while (rest(o, LOOK_S));
  return NULL;
}

/* ---- lists ---- */

/* Room for one more; false: no memory. */
static bool make_room(void **at, size_t count, size_t *room, size_t size) {
  if (count < *room) return true;
  size_t more = *room ? 2 * *room : 16;
  void *now = realloc(*at, more * size);
  if (now == NULL) return false;
  *at = now;
  *room = more;
  return true;
}

static void remove_offer(shoal_offers *o, size_t i) {
  free(o->offers[i].message);
  memmove(&o->offers[i], &o->offers[i + 1], (--o->count - i) * sizeof *o->offers);
}

static offer *find_offer(const shoal_offers *o, uint64_t job, uint64_t unit) {
  for (size_t i = 0; i < o->count; i++)
    if (o->offers[i].job == job && o->offers[i].unit == unit) return &o->offers[i];
  return NULL;
}

static size_t count_offered(const shoal_offers *o, uint64_t job) {
  size_t count = 0;
  for (size_t i = 0; i < o->count; i++) count += o->offers[i].job == job && o->offers[i].state == OFFERED;
  return count;
}

/* ---- who helps ---- */

static void see_helper(shoal_offers *o, uint64_t job, const char *name, double now) {
  if (name[0] == 0) return;
  helper *found = NULL;
  for (size_t i = 0; i < o->helpers_count && found == NULL; i++)
    if (o->helpers[i].job == job && strcmp(o->helpers[i].name, name) == 0) found = &o->helpers[i];
  if (found == NULL) {
    if (!make_room((void **)&o->helpers, o->helpers_count, &o->helpers_room, sizeof *o->helpers)) return;
    found = &o->helpers[o->helpers_count++];
    found->job = job;
    snprintf(found->name, sizeof found->name, "%s", name);
  }
  found->seen = now;
}

/* Whether a job has as many workers as it wants at most, and this one is none of them. */
static bool is_full(const shoal_offers *o, const shoal_open_job *job, const char *name) {
  uint32_t others = job->workers;
  for (size_t i = 0; i < o->helpers_count; i++) {
    if (o->helpers[i].job != job->id) continue;
    if (strcmp(o->helpers[i].name, name) == 0) return false;
    others++;
  }
  return others >= job->spec.workers_max;
}

static void count_helpers(shoal_offers *o, double now) {
  size_t kept = 0;
  for (size_t i = 0; i < o->helpers_count; i++)
    if (now - o->helpers[i].seen <= HELPER_S) o->helpers[kept++] = o->helpers[i];
  o->helpers_count = kept;
  for (shoal_open_job *job = shoal_jobs_first(o->config.jobs); job != NULL; job = job->next) {
    job->helpers = 0;
    for (size_t i = 0; i < kept; i++) job->helpers += o->helpers[i].job == job->id;
  }
}

/* ---- tokens ---- */

static void token_path(const shoal_offers *o, uint64_t job, shoal_text *out) {
  shoal_text_addf(out, "%s/%" PRIu64 "/queue.token", o->folder, job);
}

/* The token that an earlier run has made, where it is still good. */
static bool read_token(const shoal_offers *o, ground *g, const char *path) {
  uint8_t *bytes = NULL;
  size_t length;
  if (shoal_file_read(path, SHOAL_TOKEN_CHARS, false, &bytes, &length, NULL) != SHOAL_OK) return false;
  char header[16 + SHOAL_TOKEN_CHARS];
  shoal_caller caller;
  uint32_t retry;
  snprintf(header, sizeof header, "Bearer %s", (const char *)bytes);
  bool good = length == SHOAL_TOKEN_CHARS &&
              shoal_access_ask(o->config.access, header, "", shoal_clock_wall_seconds(),
                               shoal_clock_seconds(), &caller, &retry) == 0 &&
              caller.token != 0 && caller.job == g->job;
  if (good) memcpy(g->token, bytes, SHOAL_TOKEN_CHARS + 1);
  if (good) g->token_id = caller.token;
  explicit_bzero(header, sizeof header);
  free(bytes);
  return good;
}

static shoal_status keep_token(const char *path, const char *token, shoal_error *err) {
  shoal_writer *writer;
  shoal_status status = shoal_writer_create_secret(&writer, path, err);
  if (status != SHOAL_OK) return status;
  shoal_writer_add(writer, token, SHOAL_TOKEN_CHARS);
  return shoal_writer_commit(writer, err);
}

static void delete_token(shoal_offers *o, ground *g) {
  shoal_text path = {0};
  token_path(o, g->job, &path);
  if (!path.failed) unlink(path.bytes);
  shoal_text_release(&path);
  if (g->token_id == 0) return;
  (void)shoal_store_discard_token(o->config.store, g->token_id, NULL);
  shoal_access_forget(o->config.access, g->token_id);
}

static shoal_status get_token(shoal_offers *o, ground *g, const shoal_open_job *job, shoal_error *err) {
  bool needs = job->is_private ? o->config.open < SHOAL_ADMIN : o->config.open < SHOAL_VOLUNTEER;
  if (!needs) return SHOAL_OK;
  char name[SHOAL_CALLER_NAME_MAX];
  snprintf(name, sizeof name, "queue, job %" PRIu64, job->id);
  shoal_text path = {0};
  token_path(o, g->job, &path);
  shoal_status status = path.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory") : SHOAL_OK;
  if (status == SHOAL_OK && !read_token(o, g, path.bytes)) {
    status = shoal_access_mint(o->config.access, SHOAL_VOLUNTEER, name, job->id, TOKEN_DAYS,
                               shoal_clock_wall_seconds(), g->token, &g->token_id, err);
    if (status == SHOAL_OK) status = keep_token(path.bytes, g->token, err);
    if (status != SHOAL_OK) delete_token(o, g);
  }
  shoal_text_release(&path);
  return status;
}

static ground *find_ground(const shoal_offers *o, uint64_t job) {
  for (size_t i = 0; i < o->grounds_count; i++)
    if (o->grounds[i].job == job) return &o->grounds[i];
  return NULL;
}

/* The job's ground, with its token; NULL: not now. */
static const ground *ground_of(shoal_offers *o, const shoal_open_job *job, double now) {
  ground *g = find_ground(o, job->id);
  if (g == NULL) {
    if (!make_room((void **)&o->grounds, o->grounds_count, &o->grounds_room, sizeof *o->grounds)) return NULL;
    g = &o->grounds[o->grounds_count++];
    *g = (ground){.job = job->id};
  }
  if (!g->ready && now >= g->not_before) {
    shoal_error err;
    g->ready = get_token(o, g, job, &err) == SHOAL_OK;
    g->not_before = now + TOKEN_PAUSE_S;
    if (!g->ready) o->config.log(o->config.self, err.text);
  }
  return g->ready && now >= g->full_until ? g : NULL;
}

static void leave_grounds(shoal_offers *o) {
  for (size_t i = 0; i < o->grounds_count;) {
    ground *g = &o->grounds[i];
    if (shoal_jobs_find(o->config.jobs, g->job) != NULL) {
      i++;
      continue;
    }
    delete_token(o, g);
    explicit_bzero(g, sizeof *g);
    *g = o->grounds[--o->grounds_count];
  }
}

/* ---- offers that are out ---- */

/* Those that are over: nobody has beaten for a lease's time, or the search does not give out units. */
static void forget_old(shoal_offers *o, double now) {
  for (size_t i = o->count; i-- > 0;) {
    const shoal_open_job *job = shoal_jobs_find(o->config.jobs, o->offers[i].job);
    bool open = job != NULL && shoal_open_job_is_ready(job);
    if (!open || now - o->offers[i].beaten > o->config.lease_s + SLACK_S) remove_offer(o, i);
  }
}

/* The first ones that were sent are those that are not in the queue any more. */
static void sort_out(shoal_offers *o, const sight *seen) {
  uint64_t known = 0;
  for (size_t i = 0; i < o->count; i++)
    known += o->offers[i].state != CLAIMED && o->offers[i].sent && o->offers[i].sent_at < seen->at;
  uint64_t gone = seen->known && known > seen->messages ? known - seen->messages : 0;
  for (size_t i = 0; i < o->count; i++) {
    offer *f = &o->offers[i];
    if (f->state == CLAIMED) continue;
    bool old = f->sent && f->sent_at < seen->at;
    f->state = old && gone > 0 ? TAKEN : OFFERED;
    gone -= f->state == TAKEN;
  }
}

static void beat_for_offered(shoal_offers *o, double now) {
  for (size_t i = o->count; i-- > 0;) {
    offer *f = &o->offers[i];
    if (f->state != OFFERED || now - f->beaten < o->config.lease_s / BEATS_A_LEASE) continue;
    shoal_searcher *searcher = shoal_jobs_searcher(o->config.jobs, f->job);
    f->beaten = now;
    if (searcher == NULL || !shoal_searcher_beat(searcher, f->unit, f->attempt)) remove_offer(o, i);
  }
}

/* Their messages may still be in the queue: who takes one of them gets the unit, if nobody has it by then. */
static void give_back(shoal_offers *o) {
  for (size_t i = o->count; i-- > 0;) {
    offer *f = &o->offers[i];
    shoal_searcher *searcher = shoal_jobs_searcher(o->config.jobs, f->job);
    if (f->state != OFFERED) continue;
    if (searcher != NULL) shoal_searcher_give_back(searcher, f->unit, f->attempt);
    remove_offer(o, i);
  }
}

/* What a broker may have lost, and what the outbox had no room for. */
static void send_all(shoal_offers *o, shoal_queue *queue, bool again, double now) {
  for (size_t i = 0; i < o->count; i++) {
    offer *f = &o->offers[i];
    if (f->state == CLAIMED || (f->sent && !again)) continue;
    f->sent = shoal_queue_send(queue, SHOAL_UNITS_QUEUE, f->message, strlen(f->message), 0, NULL) == SHOAL_OK;
    f->sent_at = now;
    f->state = OFFERED;
  }
}

/* ---- new ones ---- */

static char *write_message(const shoal_offers *o, const shoal_open_job *job, const ground *g,
                           const shoal_text *unit) {
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "server", o->url);
  shoal_json_text(&json, "token", g->token);
  shoal_json_int(&json, "job", (int64_t)job->id);
  shoal_json_text(&json, "data", job->search.data.bytes);
  shoal_json_raw(&json, "unit", unit->bytes, unit->length);
  shoal_json_close(&json, '}');
  char *message = text.failed || unit->failed ? NULL : strdup(text.bytes);
  if (text.bytes != NULL) explicit_bzero(text.bytes, text.length);
  shoal_text_release(&text);
  return message;
}

/* False: the search has no unit to offer now. */
static bool offer_one(shoal_offers *o, shoal_open_job *job, const ground *g, double now) {
  shoal_next next;
  shoal_taken taken;
  shoal_text unit = {0};
  if (!make_room((void **)&o->offers, o->count, &o->room, sizeof *o->offers)) return false;
  shoal_status status = shoal_searcher_take(job->searcher, "queue", 0, &next, &taken, &unit, NULL);
  bool took = status == SHOAL_OK && next == SHOAL_NEXT_UNIT;
  char *message = took ? write_message(o, job, g, &unit) : NULL;
  if (took && message == NULL) shoal_searcher_give_back(job->searcher, taken.unit.number, taken.attempt);
  shoal_text_release(&unit);
  if (message == NULL) return false;
  offer *before = find_offer(o, job->id, taken.unit.number);
  if (before != NULL) remove_offer(o, (size_t)(before - o->offers));
  o->offers[o->count++] = (offer){.job = job->id,
                                  .unit = taken.unit.number,
                                  .attempt = taken.attempt,
                                  .message = message,
                                  .sent_at = now,
                                  .beaten = now};
  return true;
}

static void offer_more(shoal_offers *o, size_t wanted, double now) {
  size_t searches = 0;
  for (const shoal_open_job *job = shoal_jobs_first(o->config.jobs); job != NULL; job = job->next)
    searches += job->kind == SHOAL_JOB_SEARCH && shoal_open_job_is_ready(job);
  if (searches == 0) return;
  size_t share = (wanted + searches - 1) / searches;
  for (shoal_open_job *job = shoal_jobs_first(o->config.jobs); job != NULL; job = job->next) {
    if (job->kind != SHOAL_JOB_SEARCH || job->stopping || !shoal_open_job_is_ready(job)) continue;
    const ground *g = ground_of(o, job, now);
    if (g == NULL) continue;
    for (size_t offered = count_offered(o, job->id); offered < share && offer_one(o, job, g, now);) offered++;
  }
}

/* A search begins when enough wait for it. One that was open when the server started goes on at once: those
 * who computed for it before do not receive, and wait for it with their results. */
static void start_searches(shoal_offers *o, uint64_t receivers) {
  for (shoal_open_job *job = shoal_jobs_first(o->config.jobs), *next; job != NULL; job = next) {
    next = job->next;
    bool enough = receivers > 0 && receivers + job->workers >= job->spec.workers_min;
    if (job->kind == SHOAL_JOB_SEARCH && job->searcher == NULL && (enough || (!o->begun && job->started > 0)))
      shoal_jobs_start(o->config.jobs, job);
  }
  o->begun = true;
}

/* How many offers should wait; 0: there is nobody whom they could be for. */
static size_t wanted_now(shoal_offers *o, const sight *seen, double now) {
  bool active = seen->known && seen->receivers > 0;
  for (size_t i = 0; i < o->count && !active; i++) active = o->offers[i].state != OFFERED;
  if (active) o->active_at = now;
  if (now - o->active_at > o->config.lease_s) return 0;
  uint64_t twice = 2 * seen->receivers;
  return twice > OFFERS_MAX ? OFFERS_MAX : twice > OFFERS_MIN ? (size_t)twice : OFFERS_MIN;
}

double shoal_offers_tick(shoal_offers *o, double now) {
  pthread_mutex_lock(&o->mutex);
  shoal_queue *queue = o->queue;
  sight seen = o->sight;
  bool again = o->renewed;
  o->renewed = false;
  pthread_mutex_unlock(&o->mutex);
  if (!again && !o->due && now < o->next) return o->next;
  o->due = false;
  o->next = now + TICK_S;
  leave_grounds(o);
  forget_old(o, now);
  sort_out(o, &seen);
  beat_for_offered(o, now);
  count_helpers(o, now);
  start_searches(o, seen.known ? seen.receivers : 0);
  size_t wanted = wanted_now(o, &seen, now);
  if (wanted == 0)
    give_back(o);
  else if (seen.known)
    offer_more(o, wanted, now);
  if (queue != NULL) send_all(o, queue, again, now);
  return o->next;
}

/* ---- what workers say ---- */

/* One worker too many: the unit is free again, for those that the job has. */
static void turn_away(shoal_offers *o, offer *f, double now) {
  shoal_searcher *searcher = shoal_jobs_searcher(o->config.jobs, f->job);
  ground *g = find_ground(o, f->job);
  if (g != NULL) g->full_until = now + FULL_S;
  if (searcher != NULL) shoal_searcher_give_back(searcher, f->unit, f->attempt);
  remove_offer(o, (size_t)(f - o->offers));
}

bool shoal_offers_claim(shoal_offers *o, uint64_t job, uint64_t unit, uint32_t attempt, const char *worker) {
  offer *f = find_offer(o, job, unit);
  if (f == NULL || f->attempt != attempt) return true;
  if (f->state == CLAIMED && f->worker[0] != 0 && worker[0] != 0 && strcmp(f->worker, worker) != 0)
    return false;
  double now = shoal_clock_seconds();
  const shoal_open_job *open = shoal_jobs_find(o->config.jobs, job);
  if (f->state != CLAIMED && worker[0] != 0 && open != NULL && is_full(o, open, worker)) {
    turn_away(o, f, now);
    return false;
  }
  o->due = o->due || f->state != CLAIMED;
  f->state = CLAIMED;
  f->beaten = now;
  if (worker[0] != 0) snprintf(f->worker, sizeof f->worker, "%s", worker);
  see_helper(o, job, f->worker, now);
  return true;
}

void shoal_offers_over(shoal_offers *o, uint64_t job, uint64_t unit) {
  offer *f = find_offer(o, job, unit);
  o->due = true; /* the search may have another one now */
  if (f == NULL) return;
  see_helper(o, job, f->worker, shoal_clock_seconds());
  remove_offer(o, (size_t)(f - o->offers));
}

/* ---- create and destroy ---- */

static shoal_status begin(shoal_offers *o, shoal_error *err) {
  shoal_status status = open_queue(o, err);
  if (status == SHOAL_IO) {
    tell_lost(o, err->text);
    status = SHOAL_OK;
  }
  if (status != SHOAL_OK) {
    shoal_error_prefix(err, "--queue: ");
    return status;
  }
  if (pthread_create(&o->thread, NULL, watch, o) != 0)
    return shoal_fail(err, SHOAL_NO_MEMORY, "cannot start a thread");
  o->runs = true;
  return SHOAL_OK;
}

shoal_status shoal_offers_create(shoal_offers **out, const shoal_offers_config *config, shoal_error *err) {
  *out = NULL;
  shoal_offers *o = calloc(1, sizeof *o);
  if (o == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  o->config = *config;
  o->active_at = -INFINITY;
  pthread_mutex_init(&o->mutex, NULL);
  pthread_cond_init(&o->news, NULL);
  shoal_text url = {0};
  shoal_text_addf(&url, "%s", config->url);
  if (config->fingerprint != NULL) shoal_text_addf(&url, "/#fp=%s", config->fingerprint);
  o->url = url.failed ? NULL : strdup(url.bytes);
  shoal_text_release(&url);
  o->folder = strdup(config->folder);
  o->queue_url = strdup(config->queue);
  bool has_all = o->url != NULL && o->folder != NULL && o->queue_url != NULL;
  shoal_status status = has_all ? begin(o, err) : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (status != SHOAL_OK) {
    shoal_offers_destroy(o);
    return status;
  }
  *out = o;
  return SHOAL_OK;
}

void shoal_offers_destroy(shoal_offers *o) {
  if (o == NULL) return;
  pthread_mutex_lock(&o->mutex);
  o->ends = true;
  pthread_cond_broadcast(&o->news);
  pthread_mutex_unlock(&o->mutex);
  if (o->runs) pthread_join(o->thread, NULL);
  shoal_queue_close(o->queue);
  while (o->count > 0) remove_offer(o, o->count - 1);
  free(o->offers);
  free(o->grounds);
  free(o->helpers);
  free(o->url);
  free(o->folder);
  if (o->queue_url != NULL) explicit_bzero(o->queue_url, strlen(o->queue_url));
  free(o->queue_url);
  pthread_cond_destroy(&o->news);
  pthread_mutex_destroy(&o->mutex);
  free(o);
}
