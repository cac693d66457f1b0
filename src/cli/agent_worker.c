/* agent_worker.c: see agent_worker.h.
 *
 * `lock` guards the newest policy that came and how it ends. A hand is a thread with an actor and a
 * connection of its own. Before it asks it takes over the newest policy, and says which one it has; so an
 * answer without a policy is for that one.
 *
 * A server that was killed goes on from what it saved last, and comes to other versions and units of the same
 * numbers: what was played for the one before would look like a lie to it. So a hand asks on every new
 * connection when the server began, and drops policy and rollout of another one. */
#include "cli/agent_worker.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bytes.h"
#include "agent/coach.h"
#include "base/clock.h"
#include "net/fetch.h"

enum { HANDS_MAX = 1024, BRIEF_BYTES_MAX = 1 << 20, ANSWER_BYTES_MAX = 256 << 20, PATH_BYTES = 512 };
static const double FIRST_PAUSE_S = 0.2, LONGEST_PAUSE_S = 5; /* for a server that is away */
static const double SOON_S = 0.02, LATER_S = 0.1;             /* where there is nothing to play just now */
static const double CLOSED_S = 0.3;                           /* for a job that is not open */
static const double TURN_S = 0.05;
static const uint64_t NO_VERSION = UINT64_MAX;

typedef struct worker {
  const shoal_agent_worker_config *config;
  shoal_actor_brief brief;
  char path[PATH_BYTES];      /* of play, up to the version */
  volatile sig_atomic_t ends; /* all hands; atomic */

  pthread_mutex_t lock;
  uint64_t version; /* of `policy` */
  double started;   /* the server that it is of */
  shoal_text policy;
  bool over;
  shoal_status status;
  shoal_error failure;
} worker;

typedef struct hand {
  worker *worker;
  pthread_t thread;
  shoal_fetch *fetch;
  shoal_actor *actor;
  shoal_rollout *rollout;
  shoal_play_unit unit;
  bool met;         /* it is known which server is at the other end of the connection */
  double started;   /* when that began */
  uint64_t version; /* of the actor's policy */
  shoal_text body;  /* the rollout that is to be sent; empty: none */
  bool has_unit;
} hand;

static bool stops(const worker *w) {
  return __atomic_load_n(w->config->stop, __ATOMIC_RELAXED) != 0 ||
         __atomic_load_n(&w->ends, __ATOMIC_RELAXED) != 0;
}

/* Sleeps, unless it is to stop. */
static shoal_status pause_for(const worker *w, double seconds, shoal_error *err) {
  double end = shoal_clock_seconds() + seconds;
  for (double left = seconds; !stops(w) && left > 0; left = end - shoal_clock_seconds())
    shoal_clock_sleep(fmin(left, TURN_S));
  return stops(w) ? shoal_fail(err, SHOAL_STOPPED, "stopped") : SHOAL_OK;
}

/* ---- asking the server ---- */

static shoal_status reach(const worker *w, shoal_fetch **out, shoal_error *err) {
  const shoal_fetch_config config = {.link = w->config->link, .stop = w->config->stop};
  return shoal_fetch_create(out, &config, err);
}

/* Whether asking again may help: the server is away, or busy. */
static bool is_passing(const shoal_reply *reply, shoal_status status) {
  return status != SHOAL_STOPPED && status != SHOAL_NO_MEMORY && (reply->status == 0 || reply->status >= 500);
}

/* How long to wait before the same is asked again; 0: this is the answer. *away grows while nobody
 * answers. */
static double pause_after(const shoal_reply *reply, shoal_status status, double *away) {
  bool passes = is_passing(reply, status) || reply->status == 429;
  double pause = passes ? *away : reply->status == 409 ? CLOSED_S : 0;
  *away = passes ? fmin(2 * *away, LONGEST_PAUSE_S) : FIRST_PAUSE_S;
  return pause;
}

/* The job is over, or was deleted. */
static bool is_over(const shoal_reply *reply) { return reply->status == 410 || reply->status == 404; }

static shoal_status get_brief(worker *w, shoal_error *err) {
  char path[PATH_BYTES];
  shoal_fetch *fetch;
  double away = FIRST_PAUSE_S, pause = 0;
  snprintf(path, sizeof path, "/api/v1/jobs/%" PRIu64 "/brief", w->config->job);
  shoal_status status = reach(w, &fetch, err);
  if (status != SHOAL_OK) return status;
  do {
    shoal_reply reply;
    status = shoal_fetch_ask(fetch, &(shoal_ask){.path = path, .answer_max = BRIEF_BYTES_MAX}, &reply, err);
    pause = status == SHOAL_OK ? 0 : pause_after(&reply, status, &away);
    w->over = status != SHOAL_OK && is_over(&reply);
    if (status == SHOAL_OK)
      status =
          shoal_actor_brief_read(&w->brief, reply.body.bytes ? reply.body.bytes : "", reply.body.length, err);
    shoal_reply_release(&reply);
    if (pause > 0) status = pause_for(w, pause, err);
  } while (pause > 0 && status == SHOAL_OK);
  shoal_fetch_destroy(fetch);
  return status;
}

static shoal_status write_path(worker *w, shoal_error *err) {
  shoal_text path;
  shoal_text_init(&path);
  shoal_text_addf(&path, "/api/v1/jobs/%" PRIu64 "/play?number=%" PRIu64 "&worker=", w->config->job,
                  w->config->number);
  shoal_fetch_escape(&path, w->config->name);
  bool fits = !path.failed && path.length < sizeof w->path;
  if (fits) memcpy(w->path, path.bytes, path.length + 1);
  shoal_text_release(&path);
  return fits ? SHOAL_OK : shoal_fail(err, SHOAL_LIMIT, "the name of this worker is too long");
}

/* ---- policies ---- */

static shoal_status read_policy(hand *h, const void *bytes, size_t length, shoal_error *err) {
  shoal_policy *policy = shoal_actor_policy(h->actor);
  shoal_status status = shoal_policy_read(policy, bytes, length, err);
  if (status == SHOAL_OK) h->version = shoal_policy_state_of(policy)->version;
  return status;
}

/* What another hand was sent. */
static shoal_status take_over_policy(hand *h, shoal_error *err) {
  worker *w = h->worker;
  shoal_status status = SHOAL_OK;
  pthread_mutex_lock(&w->lock);
  bool there = w->version != NO_VERSION && w->started == h->started;
  if (there && (h->version == NO_VERSION || w->version > h->version))
    status = read_policy(h, w->policy.bytes, w->policy.length, err);
  pthread_mutex_unlock(&w->lock);
  return status;
}

static void share_policy(hand *h, const void *bytes, size_t length) {
  worker *w = h->worker;
  pthread_mutex_lock(&w->lock);
  if (w->version == NO_VERSION || w->started != h->started || h->version > w->version) {
    shoal_text_clear(&w->policy);
    shoal_text_add(&w->policy, bytes, length);
    w->version = w->policy.failed ? NO_VERSION : h->version;
    w->started = h->started;
    w->policy.failed = false;
  }
  pthread_mutex_unlock(&w->lock);
}

/* ---- the server ---- */

/* When it began; NaN: it does not say. */
static double read_started(const shoal_text *body) {
  cJSON *json = body->length > 0 ? cJSON_ParseWithLength(body->bytes, body->length) : NULL;
  const cJSON *started = cJSON_GetObjectItemCaseSensitive(json, "started");
  double value = cJSON_IsNumber(started) ? started->valuedouble : NAN;
  cJSON_Delete(json);
  return value;
}

/* Asks over the connection that is used from now on. */
static shoal_status meet(hand *h, shoal_reply *reply, shoal_error *err) {
  shoal_status status = shoal_fetch_ask(
      h->fetch, &(shoal_ask){.path = "/api/v1/server", .answer_max = BRIEF_BYTES_MAX}, reply, err);
  if (status != SHOAL_OK) return status;
  double started = read_started(&reply->body);
  if (started != h->started) {
    h->version = NO_VERSION;
    shoal_text_clear(&h->body);
  }
  h->started = started;
  h->met = true;
  return SHOAL_OK;
}

/* ---- units ---- */

/* 4 the unit's length, the unit, the policy where the actor has another one. */
static shoal_status read_unit(hand *h, const shoal_text *answer, shoal_error *err) {
  shoal_reader r = shoal_reader_of(answer->bytes, answer->length);
  uint32_t length = shoal_get_u32(&r);
  const uint8_t *unit = shoal_get(&r, length);
  if (unit == NULL) return shoal_fail(err, SHOAL_CORRUPT, "the server's answer has no unit in it");
  shoal_status status = shoal_play_unit_read(&h->unit, unit, length, err);
  if (status == SHOAL_OK && r.left > 0) {
    status = read_policy(h, r.at, r.left, err);
    if (status == SHOAL_OK) share_policy(h, r.at, r.left);
  }
  if (status == SHOAL_OK && h->version != h->unit.version)
    status =
        shoal_fail(err, SHOAL_CORRUPT, "the server asks for version %" PRIu64 " of a policy, and sent none",
                   h->unit.version);
  return status;
}

static void count_unit(const hand *h) {
  shoal_worker_count *count = h->worker->config->count;
  const shoal_actor_brief *brief = &h->worker->brief;
  if (count == NULL || h->body.length == 0) return;
  __atomic_add_fetch(&count->units, 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(&count->samples, (uint64_t)brief->envs * brief->steps, __ATOMIC_RELAXED);
}

/* Sends the rollout that there is, and asks for a unit. */
static shoal_status ask(hand *h, shoal_reply *reply, shoal_error *err) {
  char path[PATH_BYTES + 40], version[32] = "";
  if (h->version != NO_VERSION) snprintf(version, sizeof version, "&version=%" PRIu64, h->version);
  snprintf(path, sizeof path, "%s%s", h->worker->path, version);
  const shoal_ask question = {.method = "POST",
                              .path = path,
                              .bytes = h->body.length > 0 ? h->body.bytes : NULL,
                              .bytes_count = h->body.length,
                              .keeps = true,
                              .answer_max = ANSWER_BYTES_MAX};
  shoal_status status = shoal_fetch_ask(h->fetch, &question, reply, err);
  if (status != SHOAL_OK) return is_over(reply) ? SHOAL_NOT_FOUND : status;
  count_unit(h);
  shoal_text_clear(&h->body);
  h->has_unit = reply->status == 200;
  return h->has_unit ? read_unit(h, &reply->body, err) : SHOAL_OK;
}

/* Until there is a unit. SHOAL_NOT_FOUND: the job is over. */
static shoal_status take_unit(hand *h, shoal_error *err) {
  double away = FIRST_PAUSE_S, idle = SOON_S;
  h->has_unit = false;
  shoal_status status = SHOAL_OK;
  while (status == SHOAL_OK && !h->has_unit) {
    shoal_reply reply;
    double pause = 0;
    bool asks = h->met;
    if (asks) status = take_over_policy(h, err);
    if (status != SHOAL_OK) return status;
    status = asks ? ask(h, &reply, err) : meet(h, &reply, err);
    if (status == SHOAL_OK && asks && !h->has_unit) {
      pause = idle;
      idle = fmin(2 * idle, LATER_S);
    } else if (status != SHOAL_OK) {
      pause = pause_after(&reply, status, &away);
    }
    if (asks) h->met = reply.kept;
    shoal_reply_release(&reply);
    if (pause > 0) status = pause_for(h->worker, pause, err);
  }
  return status;
}

static shoal_status play_unit(hand *h, shoal_error *err) {
  shoal_status status = shoal_actor_play(h->actor, &h->unit, h->rollout, err);
  if (status != SHOAL_OK) return status;
  shoal_text_clear(&h->body);
  shoal_rollout_write(h->rollout, &h->body);
  return h->body.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for what was played")
                        : SHOAL_OK;
}

/* ---- hands ---- */

static shoal_status make_hand(hand *h, shoal_error *err) {
  const shoal_actor_brief *brief = &h->worker->brief;
  h->version = NO_VERSION;
  h->started = NAN;
  shoal_status status = shoal_actor_create(&h->actor, &brief->spec, brief->envs, brief->steps, err);
  if (status != SHOAL_OK) return status;
  const shoal_rollout_shape shape = {.kind = brief->spec.kind,
                                     .envs = brief->envs,
                                     .steps = brief->steps,
                                     .memory_floats =
                                         shoal_policy_memory_floats(shoal_actor_policy(h->actor))};
  status = shoal_rollout_create(&h->rollout, &shape, err);
  return status == SHOAL_OK ? reach(h->worker, &h->fetch, err) : status;
}

static void release_hand(hand *h) {
  shoal_fetch_destroy(h->fetch);
  shoal_rollout_destroy(h->rollout);
  shoal_actor_destroy(h->actor);
  shoal_text_release(&h->unit.state);
  shoal_text_release(&h->body);
}

/* The first that ends says how; a hand that cannot go on ends them all. */
static void tell_end(worker *w, shoal_status status, const shoal_error *err) {
  pthread_mutex_lock(&w->lock);
  if (status == SHOAL_NOT_FOUND) {
    w->over = true;
  } else if (w->status == SHOAL_OK || w->status == SHOAL_STOPPED) {
    w->status = status;
    w->failure = *err;
  }
  pthread_mutex_unlock(&w->lock);
  __atomic_store_n(&w->ends, 1, __ATOMIC_RELAXED);
}

static void *run_hand(void *self) {
  hand *h = self;
  shoal_error err = {0};
  shoal_status status = make_hand(h, &err);
  while (status == SHOAL_OK) {
    status = take_unit(h, &err);
    if (status == SHOAL_OK) status = play_unit(h, &err);
    if (status == SHOAL_OK && stops(h->worker)) status = shoal_fail(&err, SHOAL_STOPPED, "stopped");
  }
  tell_end(h->worker, status, &err);
  release_hand(h);
  return NULL;
}

static shoal_status run_hands(worker *w, shoal_error *err) {
  uint32_t wanted = w->config->threads < HANDS_MAX ? w->config->threads : HANDS_MAX, made = 0;
  hand *hands = calloc(wanted, sizeof *hands);
  for (bool good = hands != NULL; good && made < wanted; made += good) {
    hands[made].worker = w;
    good = pthread_create(&hands[made].thread, NULL, run_hand, &hands[made]) == 0;
  }
  for (uint32_t i = 0; i < made; i++) pthread_join(hands[i].thread, NULL);
  free(hands);
  if (made == 0) return shoal_fail(err, SHOAL_NO_MEMORY, "cannot start a thread");
  if (w->over) return SHOAL_OK;
  if (err) *err = w->failure;
  return w->status;
}

shoal_status shoal_agent_worker_run(const shoal_agent_worker_config *config, shoal_error *err) {
  worker *w = calloc(1, sizeof *w);
  if (w == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  w->config = config;
  w->version = NO_VERSION;
  pthread_mutex_init(&w->lock, NULL);
  shoal_status status = write_path(w, err);
  if (status == SHOAL_OK) status = get_brief(w, err);
  if (status == SHOAL_OK)
    status = run_hands(w, err);
  else if (w->over)
    status = SHOAL_OK;
  shoal_text_release(&w->policy);
  pthread_mutex_destroy(&w->lock);
  free(w);
  return status;
}
