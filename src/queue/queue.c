/* queue.c: see queue.h. What is RabbitMQ's own is in rabbit.h, what is on its way out in outgoing.h.
 *
 * The thread does one turn after another: it reads what has come, does what is asked, acknowledges, sends,
 * and when there was nothing of all that it waits, for the broker's socket or to be woken. What other
 * threads see is under the lock; the connection and the list of known queues are the thread's alone.
 *
 * A message that came is in one of three lists: the inbox, until it is taken; `taken`, until it is
 * acknowledged; `done`, until the broker has been told. When the connection is lost all three are emptied:
 * the broker will deliver again, under other tickets. */
#include "queue/queue.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"
#include "base/thread.h"
#include "queue/outgoing.h"
#include "queue/rabbit.h"

enum { OUTBOX_MAX = 10000, OUTBOX_BYTES_MAX = 64 << 20 };
enum { WINDOW = 512, WINDOW_BYTES = 4 << 20 }; /* sent and not confirmed */
enum { EVENTS_A_TURN = 512, ACKNOWLEDGED_A_TURN = 512 };
static const double TURN_S = 2, ANSWER_S = 30, CLOSE_S = 2, PAUSE_S = 0.1, PAUSE_MOST_S = 10, STABLE_S = 5,
                    SECONDS_MOST = 4294967; /* of the broker's own timers */

/* A message that came. */
typedef struct item {
  struct item *next;
  shoal_delivery delivery; /* without its bytes once it is taken */
} item;

typedef struct items {
  item *first, **end;
  uint64_t count;
} items;

/* A queue that is declared or received from. */
typedef struct known {
  struct known *next;
  char name[SHOAL_QUEUE_NAME_MAX];
  uint32_t number; /* of its receiver */
  bool declared;   /* by `spec`, whose name is the one above */
  shoal_queue_spec spec;
  uint32_t prefetch; /* 0: not received from */
} known;

typedef enum command_kind { DECLARE, DELETE, COUNT, RECEIVE } command_kind;

/* What somebody waits for; it lies on their stack. */
typedef struct command {
  struct command *next;
  command_kind kind;
  shoal_queue_spec spec; /* or its name alone */
  uint32_t prefetch;
  uint64_t messages, receivers;
  bool done;
  shoal_status status;
  shoal_error error;
} command;

struct shoal_queue {
  shoal_queue_calls calls;
  char *url, *name, *ca_file;
  uint64_t outbox_max, outbox_bytes_max;
  double pause_s_max;
  pthread_t thread;
  int wakes; /* an eventfd */

  pthread_mutex_t lock;
  pthread_cond_t changed; /* anything below */
  bool stop, ended, woken;
  int socket;          /* of the connection; -1: none */
  uint64_t connection; /* its number */
  shoal_outgoing outgoing;
  items inbox, taken, done;
  command *commands;
  const command *doing;
  shoal_queue_view view; /* without what can be counted */

  /* The thread's own. */
  shoal_rabbit *rabbit; /* NULL: not connected */
  known *known;
  uint32_t numbers;
  bool blocked;
  double connected_at, try_at, pause_s;
  uint64_t tries;
};

/* ---- lists of messages that came ---- */

static void items_init(items *list) { *list = (items){.end = &list->first}; }

static void items_add(items *list, item *one) {
  one->next = NULL;
  *list->end = one;
  list->end = &one->next;
  list->count++;
}

static item *items_take(items *list, item **at) {
  item *one = *at;
  *at = one->next;
  if (list->end == &one->next) list->end = at;
  list->count--;
  return one;
}

static void items_empty(items *list) {
  while (list->first != NULL) {
    item *one = items_take(list, &list->first);
    shoal_delivery_release(&one->delivery);
    free(one);
  }
}

void shoal_delivery_release(shoal_delivery *delivery) {
  free(delivery->bytes);
  delivery->bytes = NULL;
  delivery->length = 0;
}

/* ---- waking and waiting ---- */

/* The lock is held. */
static void wake(shoal_queue *q) {
  if (q->woken) return;
  q->woken = true;
  uint64_t one = 1;
  /* An eventfd that is not read takes 2^64 of these. */
  if (write(q->wakes, &one, sizeof one) != (ssize_t)sizeof one)
    SHOAL_ASSERT(errno == EINTR || errno == EAGAIN);
}

static void be_awake(shoal_queue *q) {
  uint64_t count;
  pthread_mutex_lock(&q->lock);
  if (q->woken && read(q->wakes, &count, sizeof count) == (ssize_t)sizeof count) q->woken = false;
  pthread_mutex_unlock(&q->lock);
}

static struct timespec moment(double seconds) {
  double whole = floor(seconds);
  return (struct timespec){.tv_sec = (time_t)whole, .tv_nsec = (long)((seconds - whole) * 1e9)};
}

/* Until something has changed; the lock is held. False: it is `until` already. */
static bool wait_until(shoal_queue *q, double until) {
  if (shoal_clock_seconds() >= until) return false;
  struct timespec at = moment(until);
  pthread_cond_timedwait(&q->changed, &q->lock, &at);
  return true;
}

static double deadline(double wait_s) { return shoal_clock_seconds() + fmin(fmax(wait_s, 0), 1e9); }

static bool stops(shoal_queue *q) {
  pthread_mutex_lock(&q->lock);
  bool stop = q->stop;
  pthread_mutex_unlock(&q->lock);
  return stop;
}

/* ---- what the thread tells ---- */

static void tell(void (*call)(void *self), void *self) {
  if (call != NULL) call(self);
}

static void tell_text(void (*call)(void *self, const char *text), void *self, const char *text) {
  if (call != NULL) call(self, text);
}

/* ---- known queues ---- */

static known **find_known(shoal_queue *q, const char *name) {
  known **at = &q->known;
  while (*at != NULL && strcmp((*at)->name, name) != 0) at = &(*at)->next;
  return at;
}

static known *know(shoal_queue *q, const char *name) {
  known **at = find_known(q, name);
  if (*at != NULL) return *at;
  known *one = calloc(1, sizeof *one);
  if (one == NULL) return NULL;
  snprintf(one->name, sizeof one->name, "%s", name);
  one->number = ++q->numbers;
  *at = one;
  return one;
}

static void forget(known **at) {
  known *one = *at;
  *at = one->next;
  free(one);
}

static known **known_of_number(shoal_queue *q, uint32_t number) {
  known **at = &q->known;
  while (*at != NULL && (*at)->number != number) at = &(*at)->next;
  return at;
}

/* ---- what is asked ---- */

static shoal_status declare(shoal_queue *q, const shoal_queue_spec *spec, shoal_error *err) {
  known *one = know(q, spec->name);
  if (one == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for a queue");
  shoal_status status = shoal_rabbit_declare(q->rabbit, spec, err);
  if (status != SHOAL_OK) return status;
  one->declared = true;
  one->spec = *spec;
  one->spec.name = one->name;
  return SHOAL_OK;
}

static shoal_status delete_queue(shoal_queue *q, const char *name, shoal_error *err) {
  known **at = find_known(q, name);
  if (*at != NULL && (*at)->prefetch > 0) {
    shoal_status status = shoal_rabbit_receive_end(q->rabbit, (*at)->number, err);
    if (status != SHOAL_OK) return status;
    (*at)->prefetch = 0;
  }
  shoal_status status = shoal_rabbit_delete(q->rabbit, name, err);
  if (status == SHOAL_OK && *at != NULL) forget(at);
  return status;
}

static shoal_status receive(shoal_queue *q, const char *name, uint32_t prefetch, shoal_error *err) {
  uint64_t messages, receivers;
  known *one = know(q, name);
  if (one == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for a queue");
  if (one->prefetch == prefetch) return SHOAL_OK;
  shoal_status status = SHOAL_OK;
  if (one->prefetch > 0) status = shoal_rabbit_receive_end(q->rabbit, one->number, err);
  if (status != SHOAL_OK) return status;
  one->prefetch = 0;
  if (prefetch == 0) return SHOAL_OK;
  /* Asked first: to receive from a queue that is not there would close the channel. */
  status = shoal_rabbit_count(q->rabbit, name, &messages, &receivers, err);
  if (status == SHOAL_OK) status = shoal_rabbit_receive(q->rabbit, name, one->number, prefetch, err);
  if (status == SHOAL_OK) one->prefetch = prefetch;
  return status;
}

static shoal_status do_command(shoal_queue *q, command *c) {
  switch (c->kind) {
  case DECLARE: return declare(q, &c->spec, &c->error);
  case DELETE: return delete_queue(q, c->spec.name, &c->error);
  case COUNT: return shoal_rabbit_count(q->rabbit, c->spec.name, &c->messages, &c->receivers, &c->error);
  case RECEIVE: break;
  }
  return receive(q, c->spec.name, c->prefetch, &c->error);
}

/* One of them. One during which the connection is lost is done again. */
static bool do_next_command(shoal_queue *q) {
  pthread_mutex_lock(&q->lock);
  command *c = q->commands;
  q->doing = c;
  pthread_mutex_unlock(&q->lock);
  if (c == NULL) return false;
  shoal_status status = do_command(q, c);
  pthread_mutex_lock(&q->lock);
  q->doing = NULL;
  if (shoal_rabbit_lost(q->rabbit) == NULL) {
    q->commands = c->next;
    c->status = status;
    c->done = true;
  }
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
  return true;
}

/* Who asks: puts it behind the others and waits. */
static shoal_status ask(shoal_queue *q, command *c, shoal_error *err) {
  const double until = deadline(ANSWER_S);
  pthread_mutex_lock(&q->lock);
  command **at = &q->commands;
  while (*at != NULL) at = &(*at)->next;
  *at = c;
  wake(q);
  while (!c->done && wait_until(q, until)) {
  }
  while (!c->done && q->doing == c) pthread_cond_wait(&q->changed, &q->lock);
  if (!c->done) {
    for (at = &q->commands; *at != c;) at = &(*at)->next;
    *at = c->next;
    c->status =
        shoal_fail(&c->error, SHOAL_IO, "the broker cannot be reached, for %.0f seconds now", ANSWER_S);
  }
  pthread_mutex_unlock(&q->lock);
  if (c->status != SHOAL_OK && err != NULL) *err = c->error;
  return c->status;
}

/* ---- what comes ---- */

static void take_in(shoal_queue *q, shoal_rabbit_event *event) {
  known **at = known_of_number(q, event->number);
  item *one = calloc(1, sizeof *one);
  if (*at == NULL ||
      one == NULL) { /* of a queue that was deleted; else it comes again with the next connection */
    free(one);
    free(event->bytes);
    return;
  }
  one->delivery = (shoal_delivery){
      .bytes = event->bytes, .length = event->length, .again = event->again, .ticket = event->ticket};
  memcpy(one->delivery.queue, (*at)->name, sizeof one->delivery.queue);
  pthread_mutex_lock(&q->lock);
  one->delivery.connection = q->connection;
  items_add(&q->inbox, one);
  q->view.received++;
  pthread_mutex_unlock(&q->lock);
}

static void lose_queue(shoal_queue *q, known **at) {
  char name[SHOAL_QUEUE_NAME_MAX];
  memcpy(name, (*at)->name, sizeof name);
  forget(at);
  tell_text(q->calls.gone, q->calls.self, name);
}

static void take_word(shoal_queue *q, const shoal_rabbit_event *event) {
  pthread_mutex_lock(&q->lock);
  switch (event->kind) {
  case SHOAL_RABBIT_CONFIRMED:
    q->view.confirmed += shoal_outgoing_confirm(&q->outgoing, event->tag, event->and_before);
    break;
  case SHOAL_RABBIT_REFUSED:
    q->view.refused +=
        shoal_outgoing_refuse(&q->outgoing, event->tag, event->and_before, shoal_clock_seconds());
    break;
  case SHOAL_RABBIT_RETURNED: q->view.dropped++; break;
  case SHOAL_RABBIT_OVERSIZED: q->view.oversized++; break;
  default: break;
  }
  pthread_mutex_unlock(&q->lock);
}

static bool read_events(shoal_queue *q) {
  shoal_rabbit_event event;
  uint32_t count = 0;
  bool arrived = false;
  while (count < EVENTS_A_TURN && shoal_rabbit_next(q->rabbit, &event)) {
    count++;
    if (event.kind == SHOAL_RABBIT_DELIVERED) {
      take_in(q, &event);
      arrived = true;
    } else if (event.kind == SHOAL_RABBIT_GONE) {
      known **at = known_of_number(q, event.number);
      if (*at != NULL) lose_queue(q, at);
    } else if (event.kind == SHOAL_RABBIT_BLOCKED || event.kind == SHOAL_RABBIT_UNBLOCKED) {
      q->blocked = event.kind == SHOAL_RABBIT_BLOCKED;
    } else {
      take_word(q, &event);
    }
  }
  if (count > 0) {
    pthread_mutex_lock(&q->lock);
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
  }
  if (arrived) tell(q->calls.arrived, q->calls.self);
  return count > 0;
}

/* ---- what goes out ---- */

static bool acknowledge_some(shoal_queue *q) {
  uint32_t count = 0;
  for (bool more = true; more && count < ACKNOWLEDGED_A_TURN; count += more) {
    pthread_mutex_lock(&q->lock);
    item *one = q->done.first != NULL ? items_take(&q->done, &q->done.first) : NULL;
    pthread_mutex_unlock(&q->lock);
    more = one != NULL && shoal_rabbit_acknowledge(q->rabbit, one->delivery.ticket) == SHOAL_OK;
    free(one);
  }
  return count > 0;
}

/* The lock is held. */
static bool window_is_open(const shoal_queue *q) {
  const shoal_letters *sent = &q->outgoing.sent;
  return !q->blocked && sent->count < WINDOW && (sent->bytes < WINDOW_BYTES || sent->count == 0);
}

static bool send_some(shoal_queue *q) {
  for (uint32_t count = 0;; count++) {
    uint64_t tag;
    pthread_mutex_lock(&q->lock);
    const shoal_letter *letter =
        window_is_open(q) ? shoal_outgoing_next(&q->outgoing, shoal_clock_seconds()) : NULL;
    pthread_mutex_unlock(&q->lock);
    if (letter == NULL ||
        shoal_rabbit_send(q->rabbit, letter->queue, letter->bytes, letter->length, &tag) != SHOAL_OK)
      return count > 0;
    pthread_mutex_lock(&q->lock);
    shoal_outgoing_sent(&q->outgoing, tag);
    pthread_mutex_unlock(&q->lock);
  }
}

/* ---- the connection ---- */

static shoal_status connect_to(shoal_queue *q, shoal_error *err) {
  const shoal_rabbit_place place = {.url = q->url, .name = q->name, .ca_file = q->ca_file};
  return shoal_rabbit_connect(&q->rabbit, &place, err);
}

static void be_connected(shoal_queue *q) {
  q->blocked = false;
  q->connected_at = shoal_clock_seconds();
  pthread_mutex_lock(&q->lock);
  q->socket = shoal_rabbit_socket(q->rabbit);
  q->connection++;
  q->view.connected = true;
  q->view.connections++;
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
}

/* Each pause is about twice the one before; a little by chance, so that not all come back at the same
 * moment. */
static void plan_next_try(shoal_queue *q) {
  const shoal_key key = shoal_key_make((uint64_t)getpid(), SHOAL_FOR_SAMPLING, 0, 0);
  q->try_at = shoal_clock_seconds() + q->pause_s * (0.75 + 0.5 * shoal_random_uniform(key, ++q->tries));
  q->pause_s = fmin(2 * q->pause_s, q->pause_s_max);
}

static void be_disconnected(shoal_queue *q) {
  pthread_mutex_lock(&q->lock);
  q->socket = -1;
  q->view.connected = false;
  shoal_outgoing_lost(&q->outgoing);
  items_empty(&q->inbox);
  items_empty(&q->taken);
  items_empty(&q->done);
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
  shoal_rabbit_disconnect(q->rabbit);
  q->rabbit = NULL;
}

static void lose(shoal_queue *q) {
  char why[640];
  snprintf(why, sizeof why, "%s", shoal_rabbit_lost(q->rabbit));
  be_disconnected(q);
  if (shoal_clock_seconds() - q->connected_at >= STABLE_S) q->pause_s = fmin(PAUSE_S, q->pause_s_max);
  plan_next_try(q);
  tell_text(q->calls.lost, q->calls.self, why);
}

/* What was known is declared and received from again. A queue that is not as it was is no longer known. */
static void restore(shoal_queue *q) {
  for (known **at = &q->known; *at != NULL && shoal_rabbit_lost(q->rabbit) == NULL;) {
    known *one = *at;
    uint32_t prefetch = one->prefetch;
    shoal_status status = one->declared ? shoal_rabbit_declare(q->rabbit, &one->spec, NULL) : SHOAL_OK;
    one->prefetch = 0;
    if (status == SHOAL_OK) status = receive(q, one->name, prefetch, NULL);
    if (shoal_rabbit_lost(q->rabbit) != NULL) {
      one->prefetch = prefetch;
    } else if (status != SHOAL_OK) {
      lose_queue(q, at);
      continue;
    }
    at = &one->next;
  }
}

static void connect_again(shoal_queue *q) {
  shoal_error err;
  if (connect_to(q, &err) != SHOAL_OK) {
    plan_next_try(q);
    tell_text(q->calls.lost, q->calls.self, err.text);
    return;
  }
  be_connected(q);
  restore(q);
  if (shoal_rabbit_lost(q->rabbit) == NULL) tell(q->calls.connected, q->calls.self);
}

/* ---- the thread ---- */

/* For the socket, unless it is -1, or to be woken, at most until then. */
static void wait_for(shoal_queue *q, int socket, double until) {
  struct pollfd polls[] = {{.fd = q->wakes, .events = POLLIN}, {.fd = socket, .events = POLLIN}};
  double seconds = fmin(until - shoal_clock_seconds(), TURN_S);
  poll(polls, 2, seconds > 0 ? (int)ceil(seconds * 1000) : 0);
  be_awake(q);
}

static void turn(shoal_queue *q) {
  bool busy = read_events(q);
  busy |= shoal_rabbit_lost(q->rabbit) == NULL && do_next_command(q);
  busy |= acknowledge_some(q);
  busy |= send_some(q);
  if (shoal_rabbit_lost(q->rabbit) != NULL) {
    lose(q);
  } else if (!busy) {
    pthread_mutex_lock(&q->lock);
    double due = shoal_outgoing_due(&q->outgoing);
    pthread_mutex_unlock(&q->lock);
    wait_for(q, shoal_rabbit_socket(q->rabbit), due);
  }
}

static void *live(void *self) {
  shoal_queue *q = self;
  while (!stops(q)) {
    if (q->rabbit != NULL)
      turn(q);
    else if (shoal_clock_seconds() < q->try_at)
      wait_for(q, -1, q->try_at);
    else
      connect_again(q);
  }
  if (q->rabbit != NULL) {
    while (acknowledge_some(q)) {
    }
    be_disconnected(q);
  }
  pthread_mutex_lock(&q->lock);
  q->ended = true;
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
  return NULL;
}

/* ---- open and close ---- */

static void release(shoal_queue *q) {
  shoal_rabbit_disconnect(q->rabbit);
  shoal_outgoing_release(&q->outgoing);
  items_empty(&q->inbox);
  items_empty(&q->taken);
  items_empty(&q->done);
  while (q->known != NULL) forget(&q->known);
  if (q->wakes >= 0) close(q->wakes);
  pthread_cond_destroy(&q->changed);
  pthread_mutex_destroy(&q->lock);
  if (q->url != NULL) explicit_bzero(q->url, strlen(q->url));
  free(q->url);
  free(q->name);
  free(q->ca_file);
  free(q);
}

static shoal_queue *make(const shoal_queue_config *config) {
  shoal_queue *q = calloc(1, sizeof *q);
  if (q == NULL) return NULL;
  q->calls = config->calls;
  q->outbox_max = config->outbox_max > 0 ? config->outbox_max : OUTBOX_MAX;
  q->outbox_bytes_max = config->outbox_bytes_max > 0 ? config->outbox_bytes_max : OUTBOX_BYTES_MAX;
  q->pause_s_max = config->pause_s_max > 0 ? config->pause_s_max : PAUSE_MOST_S;
  q->pause_s = fmin(PAUSE_S, q->pause_s_max);
  q->socket = -1;
  shoal_outgoing_init(&q->outgoing);
  items_init(&q->inbox);
  items_init(&q->taken);
  items_init(&q->done);
  pthread_mutex_init(&q->lock, NULL);
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&q->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  q->wakes = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  q->url = strdup(config->url);
  q->name = strdup(config->name != NULL ? config->name : "shoal");
  q->ca_file = config->ca_file != NULL ? strdup(config->ca_file) : NULL;
  if (q->wakes >= 0 && q->url != NULL && q->name != NULL && (q->ca_file != NULL) == (config->ca_file != NULL))
    return q;
  release(q);
  return NULL;
}

shoal_status shoal_queue_open(shoal_queue **out, const shoal_queue_config *config, shoal_error *err) {
  *out = NULL;
  shoal_queue *q = make(config);
  if (q == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory or files for a connection");
  shoal_status status = connect_to(q, err);
  if (status == SHOAL_OK) {
    be_connected(q);
    if (shoal_thread_start(&q->thread, live, q) != 0)
      status = shoal_fail(err, SHOAL_NO_MEMORY, "cannot start a thread");
  }
  if (status != SHOAL_OK) {
    release(q);
    return status;
  }
  *out = q;
  return SHOAL_OK;
}

void shoal_queue_close(shoal_queue *queue) {
  if (queue == NULL) return;
  const double until = deadline(CLOSE_S);
  pthread_mutex_lock(&queue->lock);
  queue->stop = true;
  wake(queue);
  while (!queue->ended && wait_until(queue, until)) {
  }
  /* It hangs in a socket whose other end takes nothing. */
  if (!queue->ended && queue->socket >= 0) shutdown(queue->socket, SHUT_RDWR);
  pthread_mutex_unlock(&queue->lock);
  pthread_join(queue->thread, NULL);
  release(queue);
}

/* ---- what others call ---- */

static shoal_status check_name(const char *name, shoal_error *err) {
  size_t length = strlen(name);
  if (length == 0 || length >= SHOAL_QUEUE_NAME_MAX || !shoal_utf8_valid(name, length))
    return shoal_fail(err, SHOAL_INVALID, "a queue's name has 1 to %d bytes of UTF-8",
                      SHOAL_QUEUE_NAME_MAX - 1);
  if (strncmp(name, "amq.", 4) == 0)
    return shoal_fail(err, SHOAL_INVALID, "a queue's name must not begin with 'amq.', which is the broker's");
  return SHOAL_OK;
}

static bool is_time(double seconds) { return seconds >= 0 && seconds <= SECONDS_MOST; }

shoal_status shoal_queue_declare(shoal_queue *queue, const shoal_queue_spec *spec, shoal_error *err) {
  shoal_status status = check_name(spec->name, err);
  if (status != SHOAL_OK) return status;
  if (!is_time(spec->message_s) || !is_time(spec->unused_s))
    return shoal_fail(err, SHOAL_INVALID, "queue %s: times must be between 0 and %.0f seconds", spec->name,
                      SECONDS_MOST);
  return ask(queue, &(command){.kind = DECLARE, .spec = *spec}, err);
}

shoal_status shoal_queue_delete(shoal_queue *queue, const char *name, shoal_error *err) {
  shoal_status status = check_name(name, err);
  return status == SHOAL_OK ? ask(queue, &(command){.kind = DELETE, .spec.name = name}, err) : status;
}

shoal_status shoal_queue_count(shoal_queue *queue, const char *name, uint64_t *messages, uint64_t *receivers,
                               shoal_error *err) {
  shoal_status status = check_name(name, err);
  if (status != SHOAL_OK) return status;
  command c = {.kind = COUNT, .spec.name = name};
  status = ask(queue, &c, err);
  if (messages != NULL) *messages = c.messages;
  if (receivers != NULL) *receivers = c.receivers;
  return status;
}

shoal_status shoal_queue_receive(shoal_queue *queue, const char *name, uint32_t prefetch, shoal_error *err) {
  shoal_status status = check_name(name, err);
  if (status != SHOAL_OK) return status;
  if (prefetch > SHOAL_QUEUE_PREFETCH_MAX)
    return shoal_fail(err, SHOAL_INVALID, "queue %s: at most %d messages can be fetched ahead", name,
                      SHOAL_QUEUE_PREFETCH_MAX);
  return ask(queue, &(command){.kind = RECEIVE, .spec.name = name, .prefetch = prefetch}, err);
}

/* The lock is held. */
static bool has_room(const shoal_queue *q, size_t length) {
  uint64_t count = shoal_outgoing_count(&q->outgoing), bytes = shoal_outgoing_bytes(&q->outgoing);
  return count == 0 ||
         (count < q->outbox_max && bytes < q->outbox_bytes_max && length <= q->outbox_bytes_max - bytes);
}

shoal_status shoal_queue_send(shoal_queue *queue, const char *name, const void *bytes, size_t length,
                              double wait_s, shoal_error *err) {
  shoal_status status = check_name(name, err);
  if (status != SHOAL_OK) return status;
  if (length > SHOAL_QUEUE_MESSAGE_BYTES_MAX)
    return shoal_fail(err, SHOAL_LIMIT,
                      "queue %s: a message of %zu bytes is too large; at most %d can be sent", name, length,
                      SHOAL_QUEUE_MESSAGE_BYTES_MAX);
  const double until = deadline(wait_s);
  pthread_mutex_lock(&queue->lock);
  bool room = has_room(queue, length);
  while (!room && wait_until(queue, until)) room = has_room(queue, length);
  if (!room) {
    status = shoal_fail(err, SHOAL_LIMIT, "queue %s: %llu messages wait for the broker already", name,
                        (unsigned long long)shoal_outgoing_count(&queue->outgoing));
  } else if (!shoal_outgoing_add(&queue->outgoing, name, bytes, length)) {
    status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for a message");
  } else {
    queue->view.sent++;
    wake(queue);
  }
  pthread_mutex_unlock(&queue->lock);
  return status;
}

bool shoal_queue_flush(shoal_queue *queue, double wait_s) {
  const double until = deadline(wait_s);
  pthread_mutex_lock(&queue->lock);
  const uint64_t added = queue->outgoing.added;
  bool has = shoal_outgoing_has(&queue->outgoing, added);
  while (has && wait_until(queue, until)) has = shoal_outgoing_has(&queue->outgoing, added);
  pthread_mutex_unlock(&queue->lock);
  return !has;
}

/* The lock is held. */
static item **find_in_inbox(shoal_queue *q, const char *name) {
  item **at = &q->inbox.first;
  while (*at != NULL && name != NULL && strcmp((*at)->delivery.queue, name) != 0) at = &(*at)->next;
  return at;
}

bool shoal_queue_take(shoal_queue *queue, const char *name, double wait_s, shoal_delivery *out) {
  const double until = deadline(wait_s);
  pthread_mutex_lock(&queue->lock);
  item **at = find_in_inbox(queue, name);
  while (*at == NULL && wait_until(queue, until)) at = find_in_inbox(queue, name);
  bool found = *at != NULL;
  if (found) {
    item *one = items_take(&queue->inbox, at);
    *out = one->delivery;
    one->delivery.bytes = NULL; /* the taker's now */
    items_add(&queue->taken, one);
  }
  pthread_mutex_unlock(&queue->lock);
  return found;
}

void shoal_queue_acknowledge(shoal_queue *queue, const shoal_delivery *delivery) {
  pthread_mutex_lock(&queue->lock);
  item **at = &queue->taken.first;
  while (*at != NULL &&
         ((*at)->delivery.ticket != delivery->ticket || (*at)->delivery.connection != delivery->connection))
    at = &(*at)->next;
  if (*at != NULL) {
    items_add(&queue->done, items_take(&queue->taken, at));
    wake(queue);
  }
  pthread_mutex_unlock(&queue->lock);
}

void shoal_queue_look(shoal_queue *queue, shoal_queue_view *out) {
  pthread_mutex_lock(&queue->lock);
  *out = queue->view;
  out->outbox = shoal_outgoing_count(&queue->outgoing);
  out->outbox_bytes = shoal_outgoing_bytes(&queue->outgoing);
  out->inbox = queue->inbox.count;
  pthread_mutex_unlock(&queue->lock);
}
