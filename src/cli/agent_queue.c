/* agent_queue.c: see agent_queue.h.
 *
 * The coach learns in a thread of its own; the caller's goes round: what came in is handed to the coach,
 * those who need it get the newest policy, and units that may be played go out, as long as there is somebody
 * to play them. All units are leases of one actor of the coach's course, the queue. */
#include "cli/agent_queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/bridge.h"
#include "agent/bytes.h"
#include "base/clock.h"
#include "base/secret.h"
#include "cli/cli.h"

enum { ACTORS_MAX = 256, OUTBOX_MAX = 4096, PREFETCH = 16, TURN_MESSAGES = 64 };
static const double TURN_S = 0.002, IDLE_S = 0.05, FLUSH_S = 3;
static const double QUEUE_UNUSED_S = 3600, OTHER_LEARNER_S = 15, LOOK_S = 0.5, BYE_S = 3, PAUSE_S_MAX = 2;
static const double ALONE_S = 2; /* before it is told */
static const char LEASER[] = "queue";
static const char PREFIX[] = "shoal.agent.";

typedef struct pupil {
  char name[SHOAL_AGENT_ACTOR_MAX]; /* "": nobody */
  double heard;
  uint64_t sent; /* the version; UINT64_MAX: none */
} pupil;

typedef struct learner {
  const shoal_agent_queue_config *config;
  shoal_agent_names names;
  shoal_queue *queue;
  shoal_coach *coach;
  uint64_t life;
  double lease_s;
  uint32_t streams;
  pupil pupils[ACTORS_MAX];
  uint64_t version; /* that `policy` has; UINT64_MAX: none */
  shoal_text policy, message, unit, scratch;
  bool away;        /* it was told that the broker is */
  uint32_t actors;  /* that are here; atomic */
  double last_here; /* when somebody was */
  bool alone;       /* it was told that nobody is */
} learner;

/* ---- messages ----------------------------------------------------------------------- */

void shoal_agent_message_begin(shoal_text *out, shoal_agent_say say, uint64_t life, const char *actor) {
  uint8_t type = (uint8_t)say, length = actor ? (uint8_t)strlen(actor) : 0;
  shoal_text_clear(out);
  shoal_text_add(out, &type, 1);
  shoal_put_u64(out, life);
  shoal_text_add(out, &length, 1);
  if (length > 0) shoal_text_add(out, actor, length);
}

static bool is_name(const char *text, size_t length, size_t size) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
  for (size_t i = 0; i < length; i++)
    if (text[i] == 0 || strchr(letters, text[i]) == NULL) return false;
  return length < size;
}

bool shoal_agent_message_read(shoal_agent_message *out, const void *bytes, size_t length) {
  shoal_reader r = shoal_reader_of(bytes, length);
  uint8_t type, name_length;
  *out = (shoal_agent_message){0};
  shoal_get_into(&r, &type, 1);
  out->life = shoal_get_u64(&r);
  shoal_get_into(&r, &name_length, 1);
  const uint8_t *name = shoal_get(&r, name_length);
  if (r.failed || type < SHOAL_SAY_HELLO || type > SHOAL_SAY_OVER) return false;
  if (!is_name((const char *)name, name_length, sizeof out->actor)) return false;
  memcpy(out->actor, name, name_length);
  out->say = (shoal_agent_say)type;
  out->body = r.at;
  out->length = r.left;
  return true;
}

shoal_status shoal_agent_names_of(shoal_agent_names *out, const char *name, shoal_error *err) {
  if (name[0] == 0 || !is_name(name, strlen(name), SHOAL_AGENT_NAME_MAX))
    return shoal_fail(err, SHOAL_INVALID,
                      "--name: a training's name is of letters, digits, '-', '_' and '.', %d at most",
                      SHOAL_AGENT_NAME_MAX - 1);
  snprintf(out->units, sizeof out->units, "%s%s.units", PREFIX, name);
  snprintf(out->rollouts, sizeof out->rollouts, "%s%s.rollouts", PREFIX, name);
  return SHOAL_OK;
}

void shoal_agent_policy_queue(char out[SHOAL_QUEUE_NAME_MAX], const char *name, const char *actor) {
  snprintf(out, SHOAL_QUEUE_NAME_MAX, "%s%s.policy.%s", PREFIX, name, actor);
}

/* ---- actors ------------------------------------------------------------------------- */

static bool is_here(const learner *l, const pupil *p, double now) {
  return p->name[0] != 0 && now - p->heard <= l->lease_s;
}

static uint32_t count_pupils(const learner *l, double now) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < ACTORS_MAX; i++) count += is_here(l, &l->pupils[i], now);
  return count;
}

/* Where there are too many, whoever was silent longest goes. */
static pupil *pupil_of(learner *l, const char *name) {
  pupil *oldest = &l->pupils[0];
  for (uint32_t i = 0; i < ACTORS_MAX; i++) {
    pupil *p = &l->pupils[i];
    if (strcmp(p->name, name) == 0) return p;
    if (p->heard < oldest->heard) oldest = p;
  }
  *oldest = (pupil){.sent = UINT64_MAX};
  memcpy(oldest->name, name, strlen(name) + 1);
  return oldest;
}

static void hear(learner *l, const shoal_agent_message *m, double now) {
  shoal_error err;
  bool counted;
  if (m->actor[0] == 0) return;
  pupil *p = pupil_of(l, m->actor);
  p->heard = now;
  if (m->life != l->life && m->say != SHOAL_SAY_BYE) {
    if (m->say == SHOAL_SAY_HELLO) p->sent = UINT64_MAX;
  } else if (m->say == SHOAL_SAY_BYE) {
    *p = (pupil){0};
  } else if (m->say == SHOAL_SAY_ROLLOUT &&
             shoal_coach_done(l->coach, LEASER, m->body, m->length, &counted, &err) != SHOAL_OK) {
    shoal_cli_warn(l->config->command, "%s: %s", m->actor, err.text);
  }
}

/* Waits so long for the first one. */
static void listen_to_all(learner *l, double wait_s) {
  shoal_delivery delivery;
  for (int i = 0; i < TURN_MESSAGES; i++) {
    if (!shoal_queue_take(l->queue, l->names.rollouts, i == 0 ? wait_s : 0, &delivery)) return;
    shoal_agent_message message;
    if (shoal_agent_message_read(&message, delivery.bytes, delivery.length))
      hear(l, &message, shoal_clock_seconds());
    else
      shoal_cli_warn(l->config->command, "a message of %zu bytes is no rollout; it was thrown away",
                     delivery.length);
    shoal_queue_acknowledge(l->queue, &delivery);
    shoal_delivery_release(&delivery);
  }
}

static bool send_to(learner *l, const pupil *p) {
  char queue[SHOAL_QUEUE_NAME_MAX];
  shoal_agent_policy_queue(queue, l->config->name, p->name);
  return shoal_queue_send(l->queue, queue, l->message.bytes, l->message.length, 0, NULL) == SHOAL_OK;
}

/* The newest policy as a message. */
static void write_policy(learner *l) {
  uint64_t version;
  shoal_coach_policy(l->coach, &version, NULL);
  if (version == l->version) return;
  shoal_coach_policy(l->coach, &l->version, &l->policy);
  shoal_text_clear(&l->scratch);
  shoal_coach_brief(l->coach, 0, &l->scratch);
  shoal_agent_message_begin(&l->message, SHOAL_SAY_POLICY, l->life, NULL);
  shoal_put_u32(&l->message, (uint32_t)l->scratch.length);
  shoal_text_add(&l->message, l->scratch.bytes, l->scratch.length);
  shoal_text_add(&l->message, l->policy.bytes, l->policy.length);
}

static void send_policies(learner *l, const shoal_queue_view *view, double now) {
  write_policy(l);
  for (uint32_t i = 0; i < ACTORS_MAX; i++) {
    pupil *p = &l->pupils[i];
    if (p->sent == l->version || !is_here(l, p, now)) continue;
    /* Where the broker is slow, only those that have none. */
    if (p->sent != UINT64_MAX && view->outbox > l->streams + count_pupils(l, now)) continue;
    if (send_to(l, p)) p->sent = l->version;
  }
}

static void send_units(learner *l, const shoal_queue_view *view, double now) {
  if (!view->connected || count_pupils(l, now) == 0) return;
  for (uint64_t room = view->outbox; room < 2 * (uint64_t)l->streams; room++) {
    if (shoal_coach_take(l->coach, LEASER, l->version, &l->unit, &l->policy) != SHOAL_COACH_UNIT) return;
    shoal_agent_message_begin(&l->scratch, SHOAL_SAY_UNIT, l->life, NULL);
    shoal_text_add(&l->scratch, l->unit.bytes, l->unit.length);
    (void)shoal_queue_send(l->queue, l->names.units, l->scratch.bytes, l->scratch.length, 0, NULL);
  }
}

/* ---- the broker --------------------------------------------------------------------- */

static void tell_lost(void *self, const char *why) {
  learner *l = self;
  if (!l->away) shoal_cli_warn(l->config->command, "lost the queue: %s; trying again", why);
  l->away = true;
}

static void tell_connected(void *self) {
  learner *l = self;
  if (l->away) shoal_cli_warn(l->config->command, "connected to the queue");
  l->away = false;
}

static shoal_status declare(learner *l, const shoal_queue_spec *spec, shoal_error *err) {
  shoal_status status = shoal_queue_declare(l->queue, spec, err);
  if (status != SHOAL_CONFLICT) return status;
  status = shoal_queue_delete(l->queue, spec->name, err); /* of an earlier training, of other streams */
  return status == SHOAL_OK ? shoal_queue_declare(l->queue, spec, err) : status;
}

/* A learner that has died is a receiver for a moment longer. */
static shoal_status check_alone(learner *l, shoal_error *err) {
  double deadline = shoal_clock_seconds() + OTHER_LEARNER_S;
  uint64_t receivers = 0;
  shoal_status status;
  while ((status = shoal_queue_count(l->queue, l->names.rollouts, NULL, &receivers, err)) == SHOAL_OK &&
         receivers > 0 && shoal_clock_seconds() < deadline && !*l->config->stop)
    shoal_clock_sleep(LOOK_S);
  if (status == SHOAL_NOT_FOUND) return SHOAL_OK;
  if (status == SHOAL_OK && receivers > 0)
    return shoal_fail(err, SHOAL_CONFLICT,
                      "there is a learner '%s' at this broker; give this one a --name of its own",
                      l->config->name);
  return status;
}

static shoal_status open_queue(learner *l, shoal_error *err) {
  const shoal_queue_config config = {.url = l->config->url,
                                     .name = "shoal agent train",
                                     .outbox_max = OUTBOX_MAX,
                                     .pause_s_max = PAUSE_S_MAX,
                                     .calls = {.self = l, .lost = tell_lost, .connected = tell_connected}};
  shoal_status status = shoal_queue_open(&l->queue, &config, err);
  if (status == SHOAL_OK) status = check_alone(l, err);
  const shoal_queue_spec units = {
      .name = l->names.units, .length_max = l->streams, .message_s = l->lease_s, .unused_s = QUEUE_UNUSED_S};
  const shoal_queue_spec rollouts = {
      .name = l->names.rollouts, .length_max = 2 * (uint64_t)l->streams, .unused_s = QUEUE_UNUSED_S};
  if (status == SHOAL_OK) status = declare(l, &units, err);
  if (status == SHOAL_OK) status = declare(l, &rollouts, err);
  return status == SHOAL_OK ? shoal_queue_receive(l->queue, l->names.rollouts, PREFETCH, err) : status;
}

/* ---- the training ------------------------------------------------------------------- */

static void round_done(void *self) {
  learner *l = self;
  shoal_coach_view view;
  shoal_coach *coach = __atomic_load_n(&l->coach, __ATOMIC_ACQUIRE);
  if (coach == NULL) return; /* before start has returned */
  shoal_coach_look(coach, &view);
  uint32_t actors = __atomic_load_n(&l->actors, __ATOMIC_RELAXED);
  if (!view.ended && l->config->round) l->config->round(l->config->self, &view.training, actors);
}

static void warn(void *self, const char *text) {
  const learner *l = self;
  if (l->config->warn) l->config->warn(l->config->self, text);
}

static shoal_status check_config(const learner *l, shoal_error *err) {
  const shoal_learner_config *config = &l->config->coach.learner;
  const shoal_agent_settings *s = &config->settings;
  if (shoal_env_is_bridged(config->kind->name))
    return shoal_fail(err, SHOAL_UNSUPPORTED,
                      "--queue is for environments that are built in, and %s is played by Python",
                      config->kind->name);
  double row = 4.0 * (config->kind->observation + config->kind->action_width + 3);
  if (row * s->envs * s->steps > SHOAL_QUEUE_MESSAGE_BYTES_MAX / 2)
    return shoal_fail(err, SHOAL_LIMIT,
                      "a rollout of %u x %u steps is too long for a message; --set envs or steps to less",
                      s->envs, s->steps);
  return SHOAL_OK;
}

static shoal_status start_coach(learner *l, shoal_error *err) {
  shoal_coach_config config = l->config->coach;
  config.self = l;
  config.changed = round_done;
  config.warn = warn;
  shoal_status status = shoal_draw(&l->life, sizeof l->life, err);
  if (status != SHOAL_OK) return status;
  l->life |= 1;
  shoal_coach *coach = NULL;
  status = shoal_coach_start(&coach, &config, err);
  __atomic_store_n(&l->coach, coach, __ATOMIC_RELEASE);
  return status;
}

/* Of a broker that is away it is told already. */
static uint32_t look_for_actors(learner *l, bool connected, double now) {
  uint32_t count = count_pupils(l, now);
  __atomic_store_n(&l->actors, count, __ATOMIC_RELAXED);
  if (count > 0 || !connected) l->last_here = now;
  bool alone = now - l->last_here >= ALONE_S;
  if (alone == l->alone || (!alone && count == 0)) return count;
  l->alone = alone;
  if (l->config->actors) l->config->actors(l->config->self, count);
  return count;
}

static void turns(learner *l) {
  shoal_coach_view coach;
  shoal_queue_view queue;
  l->last_here = shoal_clock_seconds();
  for (;;) {
    shoal_coach_look(l->coach, &coach);
    if (coach.ended) return;
    if (*l->config->stop) shoal_coach_stop(l->coach);
    shoal_queue_look(l->queue, &queue);
    double now = shoal_clock_seconds();
    bool alone = look_for_actors(l, queue.connected, now) == 0;
    send_policies(l, &queue, now);
    send_units(l, &queue, now);
    listen_to_all(l, alone ? IDLE_S : TURN_S);
  }
}

/* All actors may go; and nothing is left behind, unless the training is to go on. */
static void say_over(learner *l, bool stopped) {
  if (stopped) return;
  listen_to_all(l, IDLE_S); /* somebody may just have come */
  double now = shoal_clock_seconds();
  shoal_agent_message_begin(&l->message, SHOAL_SAY_OVER, l->life, NULL);
  for (uint32_t i = 0; i < ACTORS_MAX; i++)
    if (is_here(l, &l->pupils[i], now)) (void)send_to(l, &l->pupils[i]);
  shoal_queue_view view;
  shoal_queue_look(l->queue, &view);
  if (!view.connected || !shoal_queue_flush(l->queue, FLUSH_S)) return;
  /* Those who receive from a queue that is deleted lose their connection; so they go first. */
  for (double until = now + BYE_S; count_pupils(l, now) > 0 && now < until; now = shoal_clock_seconds())
    listen_to_all(l, IDLE_S);
  (void)shoal_queue_delete(l->queue, l->names.units, NULL);
  (void)shoal_queue_delete(l->queue, l->names.rollouts, NULL);
}

static shoal_status judge(const shoal_coach_view *view, bool stopped, shoal_training_view *out,
                          shoal_error *err) {
  *out = view->training;
  if (view->error[0]) return shoal_fail(err, view->status, "%s", view->error);
  return stopped ? shoal_fail(err, SHOAL_STOPPED, "stopped") : SHOAL_OK;
}

static void release(learner *l) {
  shoal_queue_close(l->queue);
  shoal_coach_destroy(l->coach);
  shoal_text_release(&l->policy);
  shoal_text_release(&l->message);
  shoal_text_release(&l->unit);
  shoal_text_release(&l->scratch);
}

shoal_status shoal_agent_queue_train(const shoal_agent_queue_config *config, shoal_training_view *out,
                                     shoal_error *err) {
  learner l = {.config = config,
               .version = UINT64_MAX,
               .lease_s = config->coach.lease_s,
               .streams = config->coach.learner.settings.streams};
  shoal_coach_view view;
  shoal_status status = shoal_agent_names_of(&l.names, config->name, err);
  if (status == SHOAL_OK) status = check_config(&l, err);
  if (status == SHOAL_OK) status = open_queue(&l, err);
  if (status == SHOAL_OK) status = start_coach(&l, err);
  if (status == SHOAL_OK) {
    turns(&l);
    shoal_coach_wait(l.coach);
    shoal_coach_look(l.coach, &view);
    bool stopped = *config->stop != 0 && !view.solved;
    say_over(&l, stopped);
    status = judge(&view, stopped, out, err);
  }
  release(&l);
  return status;
}
