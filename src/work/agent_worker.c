/* agent_worker.c: see agent_worker.h.
 *
 * `lock` guards the newest policy that came and how it ends. A hand is a thread with an actor and a
 * connection of its own. Before it asks it takes over the newest policy, and says which one it has; so an
 * answer without a policy is for that one.
 *
 * A training that goes on after its server was killed, or after it was stopped, comes to other versions and
 * units of the same numbers: what was played before would look like a lie to it. So the brief names its life,
 * and so does every question; where the server has another one, a hand drops policy and rollout and begins
 * with a new brief. */
#include "work/agent_worker.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bytes.h"
#include "agent/coach.h"
#include "agent/libm_digest.h"
#include "base/thread.h"
#include "work/retry.h"

enum {
  MISSES_MAX = 16,
  HANDS_MAX = 1024,
  BRIEF_BYTES_MAX = 1 << 20,
  ANSWER_BYTES_MAX = 256 << 20,
  PATH_BYTES = 512
};
static const double SOON_S = 0.02, LATER_S = 0.1; /* where there is nothing to play just now */
static const double CLOSED_S = 0.3;               /* for a job that is not open */
static const double LIFE_MAX = 9007199254740992;
static const uint64_t NO_VERSION = UINT64_MAX, NO_UNIT = UINT64_MAX;

typedef struct worker {
  const shoal_agent_worker_config *config;
  shoal_retry retry;
  char path[PATH_BYTES];      /* of play, up to life and version */
  volatile sig_atomic_t ends; /* all hands; atomic */
  bool away;                  /* the server, as was told; atomic */

  pthread_mutex_t lock;
  shoal_actor_brief brief;
  uint64_t life;    /* that it is of; 0: the server does not say */
  uint64_t version; /* of `policy`, of that life */
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
  uint64_t cannot;     /* number of the last one, where it could not be played; NO_UNIT: it could */
  uint32_t misses;     /* one after the other */
  uint64_t life;       /* that the actor was made for */
  uint64_t unit_steps; /* of environments, that a unit has */
  uint64_t version;    /* of the actor's policy */
  shoal_text body;     /* the rollout that is to be sent; empty: none */
  bool has_unit;
} hand;

/* ---- asking the server ---- */

/* Once for all hands. */
static void tell_away(worker *w, bool away) {
  if (__atomic_exchange_n(&w->away, away, __ATOMIC_RELAXED) == away) return;
  shoal_note(&w->config->notes,
             away ? "the server is away, or busy; asking until it answers" : "the server answers again");
}

/* How long to wait before the same is asked again; 0: this is the answer. *away grows while nobody answers,
 * and that is told when it was more than a connection that was closed. */
static double pause_after(worker *w, const shoal_reply *reply, shoal_status status, double *away) {
  if (shoal_retry_is_passing(reply, status)) {
    if (*away > 0) tell_away(w, true);
    return *away = shoal_retry_longer(*away);
  }
  *away = 0;
  if (reply->status > 0) tell_away(w, false);
  return status != SHOAL_OK && reply->status == 409 ? CLOSED_S : 0;
}

/* The job is over, or was deleted. */
static bool is_over(const shoal_reply *reply) { return reply->status == 410 || reply->status == 404; }

/* Under the lock, or before there are hands. */
static shoal_status read_brief(worker *w, const shoal_text *body, shoal_error *err) {
  const char *bytes = body->bytes != NULL ? body->bytes : "";
  shoal_status status = shoal_actor_brief_read(&w->brief, bytes, body->length, err);
  if (status == SHOAL_NOT_FOUND) status = err->status = SHOAL_INVALID; /* an environment; the job is there */
  cJSON *json = status == SHOAL_OK ? cJSON_ParseWithLength(bytes, body->length) : NULL;
  const cJSON *life = cJSON_GetObjectItemCaseSensitive(json, "life");
  bool said = cJSON_IsNumber(life) && life->valuedouble >= 1 && life->valuedouble <= LIFE_MAX;
  w->life = said ? (uint64_t)life->valuedouble : 0;
  w->version = NO_VERSION;
  cJSON_Delete(json);
  return status;
}

/* Likewise. SHOAL_NOT_FOUND: the job is over. */
static shoal_status get_brief(worker *w, shoal_fetch *fetch, shoal_error *err) {
  char path[PATH_BYTES];
  double away = 0, pause = 0;
  snprintf(path, sizeof path, "/api/v1/jobs/%" PRIu64 "/brief", w->config->job);
  shoal_status status;
  do {
    shoal_reply reply;
    status = shoal_fetch_ask(fetch, &(shoal_ask){.path = path, .answer_max = BRIEF_BYTES_MAX}, &reply, err);
    pause = pause_after(w, &reply, status, &away);
    if (status == SHOAL_OK)
      status = read_brief(w, &reply.body, err);
    else if (is_over(&reply))
      status = SHOAL_NOT_FOUND;
    shoal_reply_release(&reply);
    if (pause > 0) status = shoal_retry_pause(&w->retry, pause, err);
  } while (pause > 0 && status == SHOAL_OK);
  return status;
}

static shoal_status write_path(worker *w, shoal_error *err) {
  char math[SHOAL_LIBM_DIGEST_MAX];
  shoal_text path;
  shoal_libm_digest(math);
  shoal_text_init(&path);
  shoal_text_addf(&path, "/api/v1/jobs/%" PRIu64 "/play?number=%" PRIu64 "&math=%s&worker=", w->config->job,
                  w->config->number, math);
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
  bool there = w->version != NO_VERSION && w->life == h->life;
  if (there && (h->version == NO_VERSION || w->version > h->version))
    status = read_policy(h, w->policy.bytes, w->policy.length, err);
  pthread_mutex_unlock(&w->lock);
  return status;
}

static void share_policy(hand *h, const void *bytes, size_t length) {
  worker *w = h->worker;
  pthread_mutex_lock(&w->lock);
  if (w->life == h->life && (w->version == NO_VERSION || h->version > w->version)) {
    shoal_text_clear(&w->policy);
    shoal_text_add(&w->policy, bytes, length);
    w->version = w->policy.failed ? NO_VERSION : h->version;
    w->policy.failed = false;
  }
  pthread_mutex_unlock(&w->lock);
}

/* ---- an actor for a life of the training ---- */

static void release_actor(hand *h) {
  shoal_rollout_destroy(h->rollout);
  shoal_actor_destroy(h->actor);
  h->rollout = NULL;
  h->actor = NULL;
}

/* Under the lock. */
static shoal_status make_actor(hand *h, shoal_error *err) {
  const shoal_actor_brief *brief = &h->worker->brief;
  h->version = NO_VERSION;
  h->cannot = NO_UNIT;
  h->life = h->worker->life;
  h->unit_steps = (uint64_t)brief->envs * brief->steps;
  shoal_status status = shoal_actor_create(&h->actor, &brief->spec, brief->envs, brief->steps, err);
  if (status != SHOAL_OK) return status;
  const shoal_rollout_shape shape = {.kind = brief->spec.kind,
                                     .envs = brief->envs,
                                     .steps = brief->steps,
                                     .memory_floats =
                                         shoal_policy_memory_floats(shoal_actor_policy(h->actor))};
  return shoal_rollout_create(&h->rollout, &shape, err);
}

/* The server has another life of the training: the first hand that hears of it asks for its brief. */
static shoal_status begin_anew(hand *h, shoal_error *err) {
  worker *w = h->worker;
  shoal_text_clear(&h->body);
  release_actor(h);
  pthread_mutex_lock(&w->lock);
  shoal_status status = w->life == h->life ? get_brief(w, h->fetch, err) : SHOAL_OK;
  if (status == SHOAL_OK) status = make_actor(h, err);
  pthread_mutex_unlock(&w->lock);
  return status;
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
  if (count == NULL || h->body.length == 0) return;
  __atomic_add_fetch(&count->units, 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(&count->samples, h->unit_steps, __ATOMIC_RELAXED);
}

/* Whether the server refuses because of this word of the question. */
static bool objects_to(const shoal_reply *reply, const char *word) {
  if (reply->status != 409 || reply->body.length == 0) return false;
  cJSON *json = cJSON_ParseWithLength(reply->body.bytes, reply->body.length);
  const cJSON *error = cJSON_GetObjectItemCaseSensitive(json, "error");
  const char *field = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(error, "field"));
  bool does = field != NULL && strcmp(field, word) == 0;
  cJSON_Delete(json);
  return does;
}

/* Sends the rollout that there is, and asks for a unit. */
static shoal_status ask(hand *h, shoal_reply *reply, shoal_error *err) {
  char path[PATH_BYTES + 120], life[32] = "", version[32] = "", cannot[32] = "";
  if (h->life != 0) snprintf(life, sizeof life, "&life=%" PRIu64, h->life);
  if (h->version != NO_VERSION) snprintf(version, sizeof version, "&version=%" PRIu64, h->version);
  if (h->cannot != NO_UNIT) snprintf(cannot, sizeof cannot, "&cannot=%" PRIu64, h->cannot);
  snprintf(path, sizeof path, "%s%s%s%s", h->worker->path, life, version, cannot);
  const shoal_ask question = {.method = "POST",
                              .path = path,
                              .bytes = h->body.length > 0 ? h->body.bytes : NULL,
                              .bytes_count = h->body.length,
                              .keeps = true,
                              .answer_max = ANSWER_BYTES_MAX};
  shoal_status status = shoal_fetch_ask(h->fetch, &question, reply, err);
  if (status != SHOAL_OK) return is_over(reply) ? SHOAL_NOT_FOUND : status;
  count_unit(h);
  if (h->body.length > 0) h->misses = 0;
  shoal_text_clear(&h->body);
  h->cannot = NO_UNIT;
  h->has_unit = reply->status == 200;
  return h->has_unit ? read_unit(h, &reply->body, err) : SHOAL_OK;
}

/* A unit that cannot be played, or whose rollout is refused, is somebody else's fault: who played the stream
 * before may have lied. Unless it is so with one after the other: false. */
static bool miss(hand *h) {
  shoal_text_clear(&h->body);
  return ++h->misses < MISSES_MAX;
}

/* Until there is a unit. SHOAL_NOT_FOUND: the job is over; SHOAL_UNSUPPORTED: it is not for this machine. */
static shoal_status take_unit(hand *h, shoal_error *err) {
  const shoal_retry *retry = &h->worker->retry;
  double away = 0, idle = SOON_S;
  h->has_unit = false;
  shoal_status status = SHOAL_OK;
  while (status == SHOAL_OK && !h->has_unit) {
    shoal_reply reply;
    status = take_over_policy(h, err);
    if (status != SHOAL_OK) return status;
    status = ask(h, &reply, err);
    double pause = pause_after(h->worker, &reply, status, &away);
    bool anew = objects_to(&reply, "life"), foreign = objects_to(&reply, "math");
    if (status == SHOAL_OK && !h->has_unit) {
      pause = idle;
      idle = fmin(2 * idle, LATER_S);
    }
    bool refused = reply.status == 400 && miss(h);
    shoal_reply_release(&reply);
    if (refused) status = SHOAL_OK;
    if (foreign) return err->status = SHOAL_UNSUPPORTED;
    if (pause > 0) status = shoal_retry_pause(retry, pause, err);
    if (anew && status == SHOAL_OK) status = begin_anew(h, err);
  }
  return status;
}

static shoal_status play_unit(hand *h, shoal_error *err) {
  shoal_status status = shoal_actor_play(h->actor, &h->unit, h->rollout, err);
  if (status == SHOAL_INVALID && miss(h)) {
    h->cannot = h->unit.number;
    return SHOAL_OK;
  }
  if (status != SHOAL_OK) return status;
  shoal_text_clear(&h->body);
  shoal_rollout_write(h->rollout, &h->body);
  return h->body.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for what was played")
                        : SHOAL_OK;
}

/* ---- hands ---- */

static shoal_status make_hand(hand *h, shoal_error *err) {
  pthread_mutex_lock(&h->worker->lock);
  shoal_status status = make_actor(h, err);
  pthread_mutex_unlock(&h->worker->lock);
  return status == SHOAL_OK ? shoal_retry_reach(&h->worker->retry, &h->fetch, err) : status;
}

static void release_hand(hand *h) {
  shoal_fetch_destroy(h->fetch);
  release_actor(h);
  shoal_text_release(&h->unit.state);
  shoal_text_release(&h->body);
}

/* The first that ends says how; a hand that cannot go on ends them all. */
static void tell_end(worker *w, shoal_status status, const shoal_error *err) {
  __atomic_store_n(&w->ends, 1, __ATOMIC_RELAXED); /* first: who has the lock may be waiting for the server */
  pthread_mutex_lock(&w->lock);
  if (status == SHOAL_NOT_FOUND) {
    w->over = true;
  } else if (w->status == SHOAL_OK || w->status == SHOAL_STOPPED) {
    w->status = status;
    w->failure = *err;
  }
  pthread_mutex_unlock(&w->lock);
}

static void *run_hand(void *self) {
  hand *h = self;
  shoal_error err = {0};
  shoal_status status = make_hand(h, &err);
  while (status == SHOAL_OK) {
    status = take_unit(h, &err);
    if (status == SHOAL_OK) status = play_unit(h, &err);
    if (status == SHOAL_OK && shoal_retry_stops(&h->worker->retry))
      status = shoal_fail(&err, SHOAL_STOPPED, "stopped");
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
    good = shoal_thread_start(&hands[made].thread, run_hand, &hands[made]) == 0;
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
  w->retry = (shoal_retry){.link = config->link, .stop = config->stop, .ends = &w->ends};
  pthread_mutex_init(&w->lock, NULL);
  shoal_fetch *fetch = NULL;
  shoal_status status = write_path(w, err);
  if (status == SHOAL_OK) status = shoal_retry_reach(&w->retry, &fetch, err);
  if (status == SHOAL_OK) status = get_brief(w, fetch, err);
  shoal_fetch_destroy(fetch);
  if (status == SHOAL_OK)
    status = run_hands(w, err);
  else if (status == SHOAL_NOT_FOUND)
    status = SHOAL_OK;
  shoal_text_release(&w->policy);
  pthread_mutex_destroy(&w->lock);
  free(w);
  return status;
}
