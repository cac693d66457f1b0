/* agent_act.c: shoal agent act: plays for a learner that is elsewhere, through a broker (agent_queue.h).
 *
 * The caller's thread has the newest policy come in, says hello, and sees signals. Each other thread takes a
 * unit, plays it with the newest policy, and sends what happened. Units are taken in turn, under `turn`; who
 * takes the last that there is a thread for ends receiving before it acknowledges, so that none is held while
 * all play, and the next one that is free begins again. `lock` guards what has come in from the learner. */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/bytes.h"
#include "base/clock.h"
#include "base/human.h"
#include "base/secret.h"
#include "base/thread.h"
#include "cli/agent.h"
#include "cli/agent_queue.h"
#include "cli/cli.h"
#include "cli/queue_url.h"
#include "cli/stop.h"

static const char COMMAND[] = "agent act";
static const double POLICY_S = 0.1, UNIT_S = 0.05, SEND_S = 0.5, PAUSE_S = 0.2;
static const double HELLO_S = 1, HELLO_APART_S = 0.25;
static const double VERSION_S = 2;                   /* that a unit waits for its policy */
static const double NO_LEARNER_S = 2, SILENT_S = 30; /* before it is told */
static const double POLICY_UNUSED_S = 60, LEAVE_S = 1, PAUSE_S_MAX = 2;

typedef struct act act;

typedef struct hand {
  act *act;
  pthread_t thread;
  uint64_t life, version; /* of the policy that its actor has */
  uint64_t brief_number;  /* of the brief that its actor was made by; 0: it has none */
  shoal_actor_brief brief;
  shoal_actor *actor;
  shoal_rollout *rollout;
  shoal_play_unit unit;
  shoal_text policy, message;
} hand;

struct act {
  const char *queue_said, *name;
  uint64_t threads;
  bool json, quiet;
  char *url;
  char actor[SHOAL_AGENT_ACTOR_MAX], policy_queue[SHOAL_QUEUE_NAME_MAX];
  shoal_agent_names names;
  shoal_queue *queue;
  hand *hands;
  uint32_t hands_count;
  double hello_at;

  pthread_mutex_t turn; /* taking units */
  bool receives;
  uint32_t idle; /* hands that want a unit; atomic */

  pthread_mutex_t lock;
  pthread_cond_t news; /* a policy, or the end */
  uint64_t life, version, brief_number;
  shoal_actor_brief brief;
  shoal_text policy;
  bool over, ends;
  shoal_status failed;
  shoal_error error;
  uint64_t played, steps; /* units; of environments */
  double spoke;           /* when a rollout was sent last */
  double heard;           /* when something came from the learner last, or the beginning */
  bool waits;             /* it was told that there is none */
  bool away;
};

static bool stops(const act *a) {
  return __atomic_load_n(shoal_stop_flag(), __ATOMIC_RELAXED) != 0 ||
         __atomic_load_n(&a->ends, __ATOMIC_RELAXED);
}

static void end(act *a, shoal_status status, const shoal_error *err) {
  pthread_mutex_lock(&a->lock);
  if (status != SHOAL_OK && a->failed == SHOAL_OK) {
    a->failed = status;
    a->error = *err;
  }
  __atomic_store_n(&a->ends, true, __ATOMIC_RELAXED);
  pthread_cond_broadcast(&a->news);
  pthread_mutex_unlock(&a->lock);
}

/* ---- what the learner says ---------------------------------------------------------- */

static shoal_status read_policy(act *a, const shoal_agent_message *m, shoal_error *err) {
  shoal_reader r = shoal_reader_of(m->body, m->length);
  uint32_t brief_length = shoal_get_u32(&r);
  const uint8_t *text = shoal_get(&r, brief_length);
  shoal_actor_brief brief;
  if (text == NULL) return shoal_fail(err, SHOAL_INVALID, "a message with a policy is damaged");
  if (m->life != a->life) {
    shoal_status status = shoal_actor_brief_read(&brief, (const char *)text, brief_length, err);
    if (status != SHOAL_OK) return status;
  }
  pthread_mutex_lock(&a->lock);
  if (m->life != a->life) {
    a->brief = brief;
    a->brief.spec.body = a->brief.body;
    a->brief_number++;
    a->life = m->life;
  }
  a->heard = shoal_clock_seconds();
  a->version++; /* a count of those that came; the policy's own is inside */
  shoal_text_clear(&a->policy);
  shoal_text_add(&a->policy, r.at, r.left);
  pthread_cond_broadcast(&a->news);
  pthread_mutex_unlock(&a->lock);
  return SHOAL_OK;
}

static void listen_to_learner(act *a) {
  shoal_delivery delivery;
  shoal_agent_message message;
  shoal_error err;
  if (!shoal_queue_take(a->queue, a->policy_queue, POLICY_S, &delivery)) return;
  if (shoal_agent_message_read(&message, delivery.bytes, delivery.length)) {
    shoal_status status = SHOAL_OK;
    if (message.say == SHOAL_SAY_POLICY) status = read_policy(a, &message, &err);
    if (message.say == SHOAL_SAY_OVER && (a->life == 0 || message.life == a->life)) {
      a->over = true;
      end(a, SHOAL_OK, NULL);
    }
    if (status != SHOAL_OK) end(a, status, &err);
  }
  shoal_queue_acknowledge(a->queue, &delivery);
  shoal_delivery_release(&delivery);
}

/* A name that was mistyped looks like a learner that has not come yet. */
static void tell_waiting(act *a) {
  double now = shoal_clock_seconds();
  pthread_mutex_lock(&a->lock);
  bool none = a->life == 0, waits = now - a->heard >= (none ? NO_LEARNER_S : SILENT_S);
  pthread_mutex_unlock(&a->lock);
  shoal_queue_view view;
  shoal_queue_look(a->queue, &view);
  if (waits == a->waits || !view.connected) return;
  a->waits = waits;
  if (a->quiet) return;
  if (!waits)
    shoal_cli_warn(COMMAND, "the learner called %s is here", a->name);
  else if (none)
    shoal_cli_warn(COMMAND,
                   "waiting for a learner called %s: shoal agent train --env NAME --queue URL --name %s",
                   a->name, a->name);
  else
    shoal_cli_warn(COMMAND, "nothing was heard of the learner called %s for %.0f s; waiting for it", a->name,
                   SILENT_S);
}

static void say(act *a, shoal_agent_say what) {
  shoal_text message = {0};
  shoal_agent_message_begin(&message, what, a->life, a->actor);
  if (!message.failed)
    (void)shoal_queue_send(a->queue, a->names.rollouts, message.bytes, message.length, 0, NULL);
  shoal_text_release(&message);
}

static void say_hello(act *a) {
  double now = shoal_clock_seconds();
  shoal_queue_view view;
  shoal_queue_look(a->queue, &view);
  if (now < a->hello_at || !view.connected || view.outbox > 0) return;
  a->hello_at = now + HELLO_APART_S;
  pthread_mutex_lock(&a->lock);
  bool silent = now - a->spoke >= HELLO_S;
  pthread_mutex_unlock(&a->lock);
  if (!silent) return;
  say(a, SHOAL_SAY_HELLO);
  pthread_mutex_lock(&a->lock);
  if (a->life != 0) a->spoke = now;
  pthread_mutex_unlock(&a->lock);
}

/* ---- units -------------------------------------------------------------------------- */

/* The learner deletes its queues at the end of the training, and only then. */
static void miss_units(act *a) {
  pthread_mutex_lock(&a->lock);
  bool over = a->life != 0;
  a->over = a->over || over;
  pthread_mutex_unlock(&a->lock);
  if (over) end(a, SHOAL_OK, NULL);
}

/* With the turn. False: not now; there may be no learner yet. */
static bool receive(act *a, bool wanted) {
  shoal_queue_view view;
  if (wanted == __atomic_load_n(&a->receives, __ATOMIC_RELAXED)) return true;
  shoal_queue_look(a->queue, &view);
  if (!view.connected) return false;
  shoal_status status = shoal_queue_receive(a->queue, a->names.units, wanted ? 1 : 0, NULL);
  if (status == SHOAL_NOT_FOUND && wanted) miss_units(a);
  if (status != SHOAL_OK) return false;
  __atomic_store_n(&a->receives, wanted, __ATOMIC_RELAXED);
  return true;
}

/* Somebody has deleted a queue: the learner at its end. */
static void tell_gone(void *self, const char *queue) {
  act *a = self;
  if (strcmp(queue, a->names.units) == 0) __atomic_store_n(&a->receives, false, __ATOMIC_RELAXED);
}

static void tell_lost(void *self, const char *why) {
  act *a = self;
  if (!a->away) shoal_cli_warn(COMMAND, "lost the queue: %s; trying again", why);
  a->away = true;
}

static void tell_connected(void *self) {
  act *a = self;
  if (a->away) shoal_cli_warn(COMMAND, "connected to the queue");
  a->away = false;
}

static bool take_unit(act *a, shoal_delivery *out) {
  bool taken = false;
  pthread_mutex_lock(&a->turn);
  if (!receive(a, true)) {
    shoal_clock_sleep(PAUSE_S);
  } else if (shoal_queue_take(a->queue, a->names.units, UNIT_S, out)) {
    if (__atomic_sub_fetch(&a->idle, 1, __ATOMIC_RELAXED) == 0) (void)receive(a, false);
    shoal_queue_acknowledge(a->queue, out);
    pthread_mutex_lock(&a->lock);
    a->heard = shoal_clock_seconds();
    pthread_mutex_unlock(&a->lock);
    taken = true;
  }
  pthread_mutex_unlock(&a->turn);
  return taken;
}

static void wait_for_news(act *a, double seconds) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += (long)(seconds * 1e9);
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_cond_timedwait(&a->news, &a->lock, &until);
}

/* ---- playing ------------------------------------------------------------------------ */

static void dismiss_actor(hand *h) {
  shoal_rollout_destroy(h->rollout);
  shoal_actor_destroy(h->actor);
  h->rollout = NULL;
  h->actor = NULL;
  h->brief_number = 0;
}

static shoal_status make_actor(hand *h, shoal_error *err) {
  shoal_status status = shoal_actor_create(&h->actor, &h->brief.spec, h->brief.envs, h->brief.steps, err);
  if (status != SHOAL_OK) return status;
  const shoal_rollout_shape shape = {.kind = h->brief.spec.kind,
                                     .envs = h->brief.envs,
                                     .steps = h->brief.steps,
                                     .memory_floats =
                                         shoal_policy_memory_floats(shoal_actor_policy(h->actor))};
  return shoal_rollout_create(&h->rollout, &shape, err);
}

/* What has come in since. False: nothing of this life has. */
static bool copy_news(hand *h, uint64_t life, bool *new_brief, bool *new_policy) {
  act *a = h->act;
  pthread_mutex_lock(&a->lock);
  bool known = a->life == life;
  *new_brief = known && h->brief_number != a->brief_number;
  *new_policy = known && (*new_brief || h->version != a->version);
  if (*new_brief) {
    h->brief = a->brief;
    h->brief.spec.body = h->brief.body;
  }
  if (*new_policy) {
    shoal_text_clear(&h->policy);
    shoal_text_add(&h->policy, a->policy.bytes, a->policy.length);
    h->version = a->version;
  }
  uint64_t number = a->brief_number;
  pthread_mutex_unlock(&a->lock);
  if (*new_brief) {
    dismiss_actor(h);
    h->brief_number = number;
  }
  return known;
}

static shoal_status update(hand *h, uint64_t life, bool *known, shoal_error *err) {
  bool new_brief, new_policy;
  shoal_status status = SHOAL_OK;
  *known = copy_news(h, life, &new_brief, &new_policy);
  if (new_brief) status = make_actor(h, err);
  if (status == SHOAL_OK && new_policy)
    status = shoal_policy_read(shoal_actor_policy(h->actor), h->policy.bytes, h->policy.length, err);
  return status;
}

/* Until the policy is there that the unit wants. False: it is not to be played. */
static bool prepare(hand *h, const shoal_agent_message *m) {
  act *a = h->act;
  shoal_error err;
  double deadline = shoal_clock_seconds() + VERSION_S;
  while (!stops(a)) {
    bool known;
    shoal_status status = update(h, m->life, &known, &err);
    if (status != SHOAL_OK) {
      end(a, status, &err);
      return false;
    }
    uint64_t version = known ? shoal_policy_state_of(shoal_actor_policy(h->actor))->version : 0;
    if (known && (!h->brief.exact || version == h->unit.version)) return true;
    if (shoal_clock_seconds() >= deadline || (known && version > h->unit.version)) return false;
    pthread_mutex_lock(&a->lock);
    if (!known) a->spoke = 0; /* so that it is told soon */
    if (h->version == a->version) wait_for_news(a, UNIT_S);
    pthread_mutex_unlock(&a->lock);
  }
  return false;
}

static void send_rollout(hand *h, uint64_t life) {
  act *a = h->act;
  shoal_agent_message_begin(&h->message, SHOAL_SAY_ROLLOUT, life, a->actor);
  shoal_rollout_write(h->rollout, &h->message);
  shoal_status status = SHOAL_LIMIT;
  while (status == SHOAL_LIMIT && !stops(a))
    status = shoal_queue_send(a->queue, a->names.rollouts, h->message.bytes, h->message.length, SEND_S, NULL);
  pthread_mutex_lock(&a->lock);
  a->spoke = shoal_clock_seconds();
  a->played++;
  a->steps += (uint64_t)h->brief.envs * h->brief.steps;
  pthread_mutex_unlock(&a->lock);
}

static void play(hand *h, const shoal_delivery *delivery) {
  shoal_agent_message m;
  shoal_error err;
  if (!shoal_agent_message_read(&m, delivery->bytes, delivery->length) || m.say != SHOAL_SAY_UNIT ||
      shoal_play_unit_read(&h->unit, m.body, m.length, &err) != SHOAL_OK) {
    shoal_cli_warn(COMMAND, "a message of %zu bytes is no unit; it was thrown away", delivery->length);
    return;
  }
  if (!prepare(h, &m)) return;
  if (shoal_actor_play(h->actor, &h->unit, h->rollout, &err) == SHOAL_OK)
    send_rollout(h, m.life);
  else
    shoal_cli_warn(COMMAND, "a unit could not be played: %s", err.text);
}

static void *run_hand(void *self) {
  hand *h = self;
  act *a = h->act;
  shoal_delivery delivery;
  __atomic_add_fetch(&a->idle, 1, __ATOMIC_RELAXED);
  while (!stops(a)) {
    if (!take_unit(a, &delivery)) continue;
    play(h, &delivery);
    shoal_delivery_release(&delivery);
    __atomic_add_fetch(&a->idle, 1, __ATOMIC_RELAXED);
  }
  return NULL;
}

/* ---- the command -------------------------------------------------------------------- */

static bool parse(act *a, int argc, char **argv, int *status) {
  const shoal_option options[] = {
      {.name = "queue",
       .value = "URL",
       .text = &a->queue_said,
       .help = "the broker: amqp://USER:PASSWORD@HOST:PORT/VHOST, or amqps://"},
      {.name = "name", .value = "NAME", .text = &a->name, .help = "of the training; 'agent' by default"},
      {.name = "threads",
       .value = "N",
       .whole = &a->threads,
       .whole_min = 1,
       .whole_max = SHOAL_THREADS_MAX,
       .help = "by default one for every processor"},
      {.name = "json", .flag = &a->json, .help = "a line of JSON at the end"},
      {.name = "quiet", .flag = &a->quiet, .help = "print nothing but errors"},
  };
  const shoal_usage usage = {
      .command = COMMAND,
      .synopses = (const char *[]){"--queue URL [OPTION...]", NULL},
      .about = "Plays for a training that 'shoal agent train --queue URL' learns from, here or on another "
               "machine. Any number may come and go; one that is started first waits. It ends with the "
               "training, or with Ctrl-C.",
      .options = options,
      .options_count = sizeof options / sizeof options[0],
      .examples = "  shoal agent act --queue amqp://shoal:PASSWORD@10.0.0.5/shoal\n",
  };
  shoal_operands operands;
  return shoal_cli_parse(&usage, argc, argv, &operands, status);
}

/* HOST-PROCESS-RANDOM: no two are the same. */
static shoal_status name_actor(act *a, shoal_error *err) {
  char host[17] = "";
  uint32_t number;
  (void)gethostname(host, sizeof host - 1);
  for (char *at = host; *at; at++)
    if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-", *at) == NULL) *at = '-';
  shoal_status status = shoal_draw(&number, sizeof number, err);
  if (status != SHOAL_OK) return status;
  snprintf(a->actor, sizeof a->actor, "%s-%d-%08" PRIx32, host, (int)getpid(), number);
  shoal_agent_policy_queue(a->policy_queue, a->name, a->actor);
  return SHOAL_OK;
}

/* The broker may come later than this actor; one that refuses it will not change its mind. */
static shoal_status connect_queue(act *a, shoal_error *err) {
  const shoal_queue_config config = {
      .url = a->url,
      .name = "shoal agent act",
      .outbox_max = 1 + 2 * (uint32_t)a->threads,
      .pause_s_max = PAUSE_S_MAX,
      .calls = {.self = a, .lost = tell_lost, .connected = tell_connected, .gone = tell_gone}};
  shoal_status status;
  bool waited = false;
  for (double pause = PAUSE_S; (status = shoal_queue_open(&a->queue, &config, err)) == SHOAL_IO;
       pause = fmin(2 * pause, PAUSE_S_MAX)) {
    if (!waited) shoal_cli_warn(COMMAND, "%s; waiting for it", err->text);
    waited = true;
    for (double until = shoal_clock_seconds() + pause; !stops(a) && shoal_clock_seconds() < until;)
      shoal_clock_sleep(POLICY_S);
    if (stops(a)) return shoal_fail(err, SHOAL_STOPPED, "stopped");
  }
  if (status == SHOAL_OK && waited) shoal_cli_warn(COMMAND, "connected to the queue");
  return status;
}

static shoal_status open_queue(act *a, shoal_error *err) {
  const shoal_queue_spec policy = {.name = a->policy_queue,
                                   .length_max = 1,
                                   .full = SHOAL_QUEUE_DROPS_OLDEST,
                                   .unused_s = POLICY_UNUSED_S};
  shoal_status status = shoal_agent_names_of(&a->names, a->name, err);
  if (status == SHOAL_OK) status = name_actor(a, err);
  if (status == SHOAL_OK) status = connect_queue(a, err);
  if (status == SHOAL_OK) status = shoal_queue_declare(a->queue, &policy, err);
  return status == SHOAL_OK ? shoal_queue_receive(a->queue, a->policy_queue, 1, err) : status;
}

static shoal_status start_hands(act *a, shoal_error *err) {
  a->hands = calloc(a->threads, sizeof *a->hands);
  if (a->hands == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for threads");
  int failure = 0;
  while (!failure && a->hands_count < a->threads) {
    hand *h = &a->hands[a->hands_count];
    h->act = a;
    failure = shoal_thread_start(&h->thread, run_hand, h);
    a->hands_count += !failure;
  }
  if (!failure) return SHOAL_OK;
  return shoal_fail(err, SHOAL_LIMIT, "a thread could not be started: %s; ask for fewer", strerror(failure));
}

static void join_hands(act *a) {
  end(a, SHOAL_OK, NULL);
  for (uint32_t i = 0; i < a->hands_count; i++) {
    hand *h = &a->hands[i];
    pthread_join(h->thread, NULL);
    dismiss_actor(h);
    shoal_text_release(&h->unit.state);
    shoal_text_release(&h->policy);
    shoal_text_release(&h->message);
  }
  free(a->hands);
}

static shoal_status run(act *a, shoal_error *err) {
  shoal_status status = open_queue(a, err);
  a->heard = shoal_clock_seconds();
  if (status == SHOAL_OK) status = start_hands(a, err);
  if (status == SHOAL_STOPPED) status = SHOAL_OK;
  while (status == SHOAL_OK && !stops(a)) {
    say_hello(a);
    listen_to_learner(a);
    tell_waiting(a);
  }
  join_hands(a);
  shoal_queue_view view = {0};
  if (a->queue) shoal_queue_look(a->queue, &view);
  if (view.connected) {
    say(a, SHOAL_SAY_BYE);
    (void)shoal_queue_flush(a->queue, LEAVE_S);
    (void)shoal_queue_delete(a->queue, a->policy_queue, NULL);
  }
  shoal_queue_close(a->queue);
  if (status == SHOAL_OK && a->failed != SHOAL_OK) {
    *err = a->error;
    status = a->failed;
  }
  return status;
}

static void print_end(const act *a, double seconds) {
  if (!a->json) {
    if (a->quiet) return;
    printf("played %s unit%s, %s steps, in %.1f s%s\n", shoal_human_count(a->played).text,
           a->played == 1 ? "" : "s", shoal_human_count(a->steps).text, seconds,
           a->over ? "; the training is over" : "");
    return;
  }
  shoal_json json;
  shoal_text line;
  shoal_cli_event_begin(&json, &line, "end");
  shoal_json_int(&json, "units", (int64_t)a->played);
  shoal_json_int(&json, "steps", (int64_t)a->steps);
  shoal_json_real(&json, "seconds", seconds);
  shoal_json_bool(&json, "over", a->over);
  shoal_cli_event_end(&json);
}

int shoal_cli_agent_act(int argc, char **argv) {
  act a = {.name = "agent", .threads = shoal_cli_threads()};
  shoal_error err;
  int exit_status;
  if (!parse(&a, argc, argv, &exit_status)) return exit_status;
  if (a.queue_said == NULL) {
    shoal_fail(&err, SHOAL_INVALID, "--queue is missing: the broker that the learner uses");
    return shoal_cli_misused(COMMAND, &err);
  }
  a.url = shoal_queue_url_take(a.queue_said, argc, argv);
  pthread_mutex_init(&a.turn, NULL);
  pthread_mutex_init(&a.lock, NULL);
  pthread_cond_init(&a.news, NULL);
  shoal_stop_catch();
  double begun = shoal_clock_seconds();
  shoal_status status = a.url ? run(&a, &err) : shoal_fail(&err, SHOAL_NO_MEMORY, "not enough memory");
  if (status == SHOAL_OK) {
    print_end(&a, shoal_clock_seconds() - begun);
    exit_status = shoal_cli_finish(COMMAND, SHOAL_EXIT_OK);
  } else {
    exit_status = shoal_cli_failed(COMMAND, &err);
  }
  shoal_text_release(&a.policy);
  shoal_queue_url_free(a.url);
  pthread_cond_destroy(&a.news);
  pthread_mutex_destroy(&a.lock);
  pthread_mutex_destroy(&a.turn);
  return exit_status;
}
