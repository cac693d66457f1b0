/* Messages through a real RabbitMQ broker, the one that SHOAL_TEST_QUEUE names; SHOAL_TEST_QUEUE_KILL and
 * SHOAL_TEST_QUEUE_RESTART are the commands that kill and start it. Without them the program runs itself
 * again under `tools/rabbitmq run`, which starts one. */
#include "queue/queue.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"

enum { SKIPPED = 77 };
static const double SOON_S = PATIENCE_S;

static shoal_error err;

#define OK(call)                                                 \
  do {                                                           \
    if ((call) != SHOAL_OK) fail_msg("%s: %s", #call, err.text); \
  } while (0)

#define FAILS(call, status, word)                                                       \
  do {                                                                                  \
    assert_int_equal(call, status);                                                     \
    if (strstr(err.text, word) == NULL) fail_msg("'%s' is not in: %s", word, err.text); \
  } while (0)

/* ---- what a connection tells ---- */

typedef struct told {
  int connected, lost, arrived, gone;
  char why[256], queue[SHOAL_QUEUE_NAME_MAX];
} told;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void on_connected(void *self) {
  pthread_mutex_lock(&lock);
  ((told *)self)->connected++;
  pthread_mutex_unlock(&lock);
}

static void on_lost(void *self, const char *why) {
  told *t = self;
  pthread_mutex_lock(&lock);
  t->lost++;
  snprintf(t->why, sizeof t->why, "%s", why);
  pthread_mutex_unlock(&lock);
}

static void on_arrived(void *self) {
  pthread_mutex_lock(&lock);
  ((told *)self)->arrived++;
  pthread_mutex_unlock(&lock);
}

static void on_gone(void *self, const char *queue) {
  told *t = self;
  pthread_mutex_lock(&lock);
  t->gone++;
  snprintf(t->queue, sizeof t->queue, "%s", queue);
  pthread_mutex_unlock(&lock);
}

static told look(told *t) {
  pthread_mutex_lock(&lock);
  told seen = *t;
  pthread_mutex_unlock(&lock);
  return seen;
}

/* ---- small steps ---- */

static const char *url(void) { return getenv("SHOAL_TEST_QUEUE"); }

static shoal_queue *open_with(told *t, uint32_t outbox_max) {
  shoal_queue *queue;
  const shoal_queue_config config = {.url = url(),
                                     .calls = {.self = t,
                                               .connected = t != NULL ? on_connected : NULL,
                                               .lost = t != NULL ? on_lost : NULL,
                                               .arrived = t != NULL ? on_arrived : NULL,
                                               .gone = t != NULL ? on_gone : NULL},
                                     .outbox_max = outbox_max,
                                     .pause_s_max = 0.5};
  OK(shoal_queue_open(&queue, &config, &err));
  return queue;
}

static shoal_queue *open_queue(void) { return open_with(NULL, 0); }

static void declare(shoal_queue *queue, const char *name) {
  OK(shoal_queue_declare(queue, &(shoal_queue_spec){.name = name}, &err));
}

static void send_number(shoal_queue *queue, const char *name, uint32_t number) {
  OK(shoal_queue_send(queue, name, &number, sizeof number, SOON_S, &err));
}

static void flush(shoal_queue *queue) { assert_true(shoal_queue_flush(queue, 2 * SOON_S)); }

static uint64_t count_of(shoal_queue *queue, const char *name) {
  uint64_t messages;
  OK(shoal_queue_count(queue, name, &messages, NULL, &err));
  return messages;
}

static uint32_t number_in(const shoal_delivery *delivery) {
  uint32_t number;
  assert_int_equal(delivery->length, sizeof number);
  memcpy(&number, delivery->bytes, sizeof number);
  return number;
}

/* Takes one, acknowledges it and returns its number. */
static uint32_t take_number(shoal_queue *queue) {
  shoal_delivery delivery;
  assert_true(shoal_queue_take(queue, NULL, SOON_S, &delivery));
  uint32_t number = number_in(&delivery);
  shoal_queue_acknowledge(queue, &delivery);
  shoal_delivery_release(&delivery);
  return number;
}

static void nothing_comes(shoal_queue *queue) {
  shoal_delivery delivery;
  assert_false(shoal_queue_take(queue, NULL, 0.3, &delivery));
}

static void run(const char *what) {
  const char *command = getenv(what);
  assert_non_null(command);
  assert_int_equal(system(command), 0);
}

/* ---- opening ---- */

static void opening_fails(const char *where, shoal_status status, const char *word) {
  shoal_queue *queue;
  FAILS(shoal_queue_open(&queue, &(shoal_queue_config){.url = where}, &err), status, word);
  assert_null(queue);
  assert_null(strstr(err.text, "secret"));
}

/* The broker's URL with another user, password and what follows. */
static const char *changed(const char *who, const char *behind) {
  static char text[256];
  const char *host = strchr(url(), '@');
  assert_non_null(host);
  int length = (int)strcspn(host, "/");
  snprintf(text, sizeof text, "amqp://%s%.*s%s", who, length, host, behind);
  return text;
}

static void a_wrong_url_is_refused_with_what_to_write(void **state) {
  (void)state;
  static const char *const wrong[] = {"",
                                      "localhost:5672",
                                      "http://guest:secret@localhost",
                                      "amqp://guest:secret@localhost:99999/",
                                      "amqp://guest:secret@localhost:x/",
                                      "amqp://guest:sec@secret@localhost/",
                                      "amqp://guest:secret@localhost/a/b",
                                      "amqp://guest:%zzsecret@localhost/"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    opening_fails(wrong[i], SHOAL_INVALID, "amqp://USER:PASSWORD@HOST:PORT/VHOST");
}

static void who_is_not_let_in_is_told(void **state) {
  (void)state;
  opening_fails(changed("shoal:secret", ""), SHOAL_INVALID, "refuses the user 'shoal' with this password");
  opening_fails(changed("nobody:secret", ""), SHOAL_INVALID, "refuses the user 'nobody' with this password");
  char who[128];
  const char *from = url() + strlen("amqp://");
  snprintf(who, sizeof who, "%.*s", (int)strcspn(from, "@"), from);
  opening_fails(changed(who, "/elsewhere"), SHOAL_INVALID, "the virtual host 'elsewhere'");
}

static void a_broker_that_is_not_there_is_an_error(void **state) {
  (void)state;
  opening_fails("amqp://guest:secret@127.0.0.1:1", SHOAL_IO, "127.0.0.1:1: cannot connect");
  opening_fails("amqp://guest:secret@no-such-host.invalid", SHOAL_IO, "no host of that name");
}

static void a_slash_behind_the_port_means_the_default_virtual_host(void **state) {
  (void)state;
  char who[128];
  const char *from = url() + strlen("amqp://");
  shoal_queue *queue;
  snprintf(who, sizeof who, "%.*s", (int)strcspn(from, "@"), from);
  OK(shoal_queue_open(&queue, &(shoal_queue_config){.url = changed(who, "/")}, &err));
  shoal_queue_close(queue);
}

static void with_tls_the_certificate_must_be_trusted(void **state) {
  (void)state;
  const char *tls = getenv("SHOAL_TEST_QUEUE_TLS");
  char by_number[256];
  shoal_queue *queue;
  shoal_queue_config config = {.url = tls, .ca_file = getenv("SHOAL_TEST_QUEUE_CA")};
  OK(shoal_queue_open(&queue, &config, &err));
  declare(queue, "in private");
  OK(shoal_queue_receive(queue, "in private", 5, &err));
  for (uint32_t i = 0; i < 100; i++) {
    send_number(queue, "in private", i);
    assert_int_equal(take_number(queue), i);
  }
  OK(shoal_queue_delete(queue, "in private", &err));
  shoal_queue_close(queue);

  const char *place = strstr(tls, "localhost");
  assert_non_null(place);
  snprintf(by_number, sizeof by_number, "%.*s127.0.0.1%s", (int)(place - tls), tls,
           place + strlen("localhost"));
  config.url = by_number;
  FAILS(shoal_queue_open(&queue, &config, &err), SHOAL_IO, "certificate is for another host");
  config = (shoal_queue_config){.url = tls};
  FAILS(shoal_queue_open(&queue, &config, &err), SHOAL_IO, "vouches for its certificate");
  config.ca_file = "/nowhere.pem";
  FAILS(shoal_queue_open(&queue, &config, &err), SHOAL_INVALID, "/nowhere.pem");
}

static void the_wrong_kind_of_port_is_an_error(void **state) {
  (void)state;
  char wrong[256];
  const char *tls = getenv("SHOAL_TEST_QUEUE_TLS");
  snprintf(wrong, sizeof wrong, "amqp://%s", tls + strlen("amqps://"));
  opening_fails(wrong, SHOAL_IO, "without TLS");
  snprintf(wrong, sizeof wrong, "amqps://%s", url() + strlen("amqp://"));
  opening_fails(wrong, SHOAL_IO, "TLS");
}

/* ---- messages ---- */

static void a_message_arrives_as_it_was_sent(void **state) {
  (void)state;
  static const size_t lengths[] = {0, 1, 1000, 131064, 131065, 3 << 20};
  told t = {0};
  shoal_queue *queue = open_with(&t, 0);
  unsigned char *bytes = malloc(3 << 20);
  assert_non_null(bytes);
  for (size_t i = 0; i < 3 << 20; i++) bytes[i] = (unsigned char)(i * 7 + i / 256);
  declare(queue, "as it was: ünï ' \" /");
  OK(shoal_queue_receive(queue, "as it was: ünï ' \" /", 2, &err));
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    shoal_delivery delivery;
    OK(shoal_queue_send(queue, "as it was: ünï ' \" /", bytes, lengths[i], 0, &err));
    assert_true(shoal_queue_take(queue, NULL, SOON_S, &delivery));
    assert_string_equal(delivery.queue, "as it was: ünï ' \" /");
    assert_false(delivery.again);
    assert_int_equal(delivery.length, lengths[i]);
    assert_non_null(delivery.bytes);
    assert_memory_equal(delivery.bytes, bytes, lengths[i]);
    shoal_queue_acknowledge(queue, &delivery);
    shoal_queue_acknowledge(queue, &delivery); /* more than once does no harm */
    shoal_delivery_release(&delivery);
  }
  flush(queue);
  assert_true(look(&t).arrived > 0);
  assert_int_equal(look(&t).lost, 0);
  OK(shoal_queue_delete(queue, "as it was: ünï ' \" /", &err));
  shoal_queue_close(queue);
  free(bytes);
}

static void what_cannot_be_a_message_or_a_name_is_refused(void **state) {
  (void)state;
  shoal_queue *queue = open_queue();
  char name[300];
  memset(name, 'n', sizeof name);
  name[SHOAL_QUEUE_NAME_MAX] = 0;
  FAILS(shoal_queue_send(queue, name, "", 0, 0, &err), SHOAL_INVALID, "1 to 127 bytes");
  FAILS(shoal_queue_declare(queue, &(shoal_queue_spec){.name = ""}, &err), SHOAL_INVALID, "1 to 127 bytes");
  FAILS(shoal_queue_delete(queue, "\xff", &err), SHOAL_INVALID, "UTF-8");
  FAILS(shoal_queue_receive(queue, "amq.x", 1, &err), SHOAL_INVALID, "amq.");
  FAILS(shoal_queue_receive(queue, "x", 65536, &err), SHOAL_INVALID, "65535");
  FAILS(shoal_queue_declare(queue, &(shoal_queue_spec){.name = "x", .unused_s = -1}, &err), SHOAL_INVALID,
        "times");
  FAILS(shoal_queue_send(queue, "x", name, (size_t)SHOAL_QUEUE_MESSAGE_BYTES_MAX + 1, 0, &err), SHOAL_LIMIT,
        "too large");
  shoal_queue_close(queue);
}

static void two_receivers_share_the_work(void **state) {
  (void)state;
  enum { MESSAGES = 1000 };
  shoal_queue *sender = open_queue(), *receivers[] = {open_queue(), open_queue()};
  static int seen[MESSAGES];
  int shares[2] = {0};
  memset(seen, 0, sizeof seen);
  declare(sender, "shared");
  for (int i = 0; i < 2; i++) OK(shoal_queue_receive(receivers[i], "shared", 10, &err));
  for (uint32_t i = 0; i < MESSAGES; i++) send_number(sender, "shared", i);
  flush(sender);
  double until = shoal_clock_seconds() + SOON_S;
  while (shares[0] + shares[1] < MESSAGES && shoal_clock_seconds() < until)
    for (int i = 0; i < 2; i++) {
      shoal_delivery delivery;
      if (!shoal_queue_take(receivers[i], "shared", 0.01, &delivery)) continue;
      seen[number_in(&delivery)]++;
      shares[i]++;
      shoal_queue_acknowledge(receivers[i], &delivery);
      shoal_delivery_release(&delivery);
    }
  for (int i = 0; i < MESSAGES; i++) assert_int_equal(seen[i], 1);
  assert_true(shares[0] >= MESSAGES / 5 && shares[1] >= MESSAGES / 5);
  OK(shoal_queue_delete(sender, "shared", &err));
  for (int i = 0; i < 2; i++) shoal_queue_close(receivers[i]);
  shoal_queue_close(sender);
}

static void what_was_not_acknowledged_goes_to_another(void **state) {
  (void)state;
  shoal_queue *first = open_queue(), *second = open_queue();
  shoal_delivery a, b;
  declare(first, "handed on");
  send_number(first, "handed on", 1);
  send_number(first, "handed on", 2);
  flush(first);
  OK(shoal_queue_receive(first, "handed on", 2, &err));
  assert_true(shoal_queue_take(first, NULL, SOON_S, &a));
  assert_true(shoal_queue_take(first, NULL, SOON_S, &b));
  OK(shoal_queue_receive(second, "handed on", 2, &err));
  nothing_comes(second);
  shoal_queue_acknowledge(first, &a);
  shoal_queue_close(first);
  assert_int_equal(number_in(&a), 1);
  shoal_delivery_release(&a);
  shoal_delivery_release(&b);
  assert_true(shoal_queue_take(second, NULL, SOON_S, &b));
  assert_true(b.again);
  assert_int_equal(number_in(&b), 2);
  shoal_queue_acknowledge(second, &b);
  shoal_delivery_release(&b);
  nothing_comes(second);
  OK(shoal_queue_delete(second, "handed on", &err));
  shoal_queue_close(second);
}

static void nothing_is_hoarded_by_who_stops_receiving_before_it_acknowledges(void **state) {
  (void)state;
  shoal_queue *queue = open_queue();
  shoal_delivery delivery;
  declare(queue, "one by one");
  for (uint32_t i = 0; i < 3; i++) send_number(queue, "one by one", i);
  flush(queue);
  for (uint32_t i = 0; i < 3; i++) {
    OK(shoal_queue_receive(queue, "one by one", 1, &err));
    assert_true(shoal_queue_take(queue, NULL, SOON_S, &delivery));
    OK(shoal_queue_receive(queue, "one by one", 0, &err));
    shoal_queue_acknowledge(queue, &delivery);
    assert_int_equal(number_in(&delivery), i);
    shoal_delivery_release(&delivery);
    nothing_comes(queue);
    assert_int_equal(count_of(queue, "one by one"), 2 - i);
  }
  OK(shoal_queue_delete(queue, "one by one", &err));
  shoal_queue_close(queue);
}

static void one_can_take_from_one_of_several_queues(void **state) {
  (void)state;
  shoal_queue *queue = open_queue();
  shoal_delivery delivery;
  declare(queue, "left");
  declare(queue, "right");
  OK(shoal_queue_receive(queue, "left", 5, &err));
  OK(shoal_queue_receive(queue, "right", 5, &err));
  send_number(queue, "left", 1);
  send_number(queue, "right", 2);
  assert_true(shoal_queue_take(queue, "right", SOON_S, &delivery));
  assert_int_equal(number_in(&delivery), 2);
  shoal_delivery_release(&delivery);
  assert_true(shoal_queue_take(queue, NULL, SOON_S, &delivery));
  assert_string_equal(delivery.queue, "left");
  shoal_delivery_release(&delivery);
  OK(shoal_queue_delete(queue, "left", &err));
  OK(shoal_queue_delete(queue, "right", &err));
  shoal_queue_close(queue);
}

enum { SENDERS = 3, TAKERS = 2, EACH = 400 };
typedef struct busy {
  shoal_queue *queue;
  uint32_t from;
  int taken[SENDERS * EACH]; /* under the lock */
  int count;
} busy;

static void *send_each(void *self) {
  busy *b = self;
  pthread_mutex_lock(&lock);
  uint32_t from = b->from;
  b->from += EACH;
  pthread_mutex_unlock(&lock);
  for (uint32_t i = 0; i < EACH; i++) send_number(b->queue, "busy", from + i);
  return NULL;
}

static void *take_each(void *self) {
  busy *b = self;
  double until = shoal_clock_seconds() + SOON_S;
  for (bool more = true; more && shoal_clock_seconds() < until;) {
    shoal_delivery delivery;
    bool came = shoal_queue_take(b->queue, NULL, 0.05, &delivery);
    pthread_mutex_lock(&lock);
    if (came) b->taken[number_in(&delivery)]++;
    b->count += came;
    more = b->count < SENDERS * EACH;
    pthread_mutex_unlock(&lock);
    if (!came) continue;
    shoal_queue_acknowledge(b->queue, &delivery);
    shoal_delivery_release(&delivery);
  }
  return NULL;
}

static void many_threads_can_use_one_connection(void **state) {
  (void)state;
  static busy b;
  pthread_t threads[SENDERS + TAKERS];
  b = (busy){.queue = open_with(NULL, 100)};
  declare(b.queue, "busy");
  OK(shoal_queue_receive(b.queue, "busy", 20, &err));
  for (int i = 0; i < SENDERS + TAKERS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, i < SENDERS ? send_each : take_each, &b), 0);
  for (int i = 0; i < SENDERS + TAKERS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < SENDERS * EACH; i++) assert_int_equal(b.taken[i], 1);
  OK(shoal_queue_delete(b.queue, "busy", &err));
  shoal_queue_close(b.queue);
}

/* Doubles what comes and sends it back, all in the connection's own thread. */
static void answer(void *self) {
  shoal_delivery delivery;
  shoal_queue **queue = self;
  pthread_mutex_lock(&lock); /* until `queue` is known */
  pthread_mutex_unlock(&lock);
  while (shoal_queue_take(*queue, NULL, 0, &delivery)) {
    uint32_t number = 2 * number_in(&delivery);
    shoal_error e;
    if (shoal_queue_send(*queue, "answers", &number, sizeof number, 0, &e) == SHOAL_OK)
      shoal_queue_acknowledge(*queue, &delivery);
    shoal_delivery_release(&delivery);
  }
}

static void one_can_answer_when_something_arrives(void **state) {
  (void)state;
  shoal_queue *asks = open_queue(), *answers;
  const shoal_queue_config config = {.url = url(), .calls = {.self = &answers, .arrived = answer}};
  declare(asks, "questions");
  declare(asks, "answers");
  pthread_mutex_lock(&lock);
  OK(shoal_queue_open(&answers, &config, &err));
  pthread_mutex_unlock(&lock);
  OK(shoal_queue_receive(answers, "questions", 3, &err));
  OK(shoal_queue_receive(asks, "answers", 3, &err));
  for (uint32_t i = 0; i < 100; i++) {
    send_number(asks, "questions", i);
    assert_int_equal(take_number(asks), 2 * i);
  }
  shoal_queue_close(answers);
  OK(shoal_queue_delete(asks, "questions", &err));
  OK(shoal_queue_delete(asks, "answers", &err));
  shoal_queue_close(asks);
}

/* ---- bounds ---- */

static void a_full_queue_holds_back_who_sends(void **state) {
  (void)state;
  shoal_queue *sender = open_with(NULL, 10), *receiver = open_queue();
  shoal_queue_view view;
  uint32_t sent = 0;
  OK(shoal_queue_declare(sender, &(shoal_queue_spec){.name = "bounded", .length_max = 5}, &err));
  double deadline = shoal_clock_seconds() + SOON_S;
  do {
    if (shoal_queue_send(sender, "bounded", &sent, sizeof sent, 0.1, &err) == SHOAL_OK) sent++;
    shoal_queue_look(sender, &view);
  } while ((view.confirmed < 5 || view.outbox < 10 || view.refused < 10) && shoal_clock_seconds() < deadline);
  assert_int_equal(sent, 15); /* five in the queue, ten in the outbox */
  FAILS(shoal_queue_send(sender, "bounded", &sent, sizeof sent, 0, &err), SHOAL_LIMIT, "10 messages wait");
  shoal_queue_look(sender, &view);
  assert_int_equal(view.confirmed, 5);
  assert_int_equal(view.outbox, 10);
  assert_true(view.refused >= 10);
  assert_int_equal(count_of(receiver, "bounded"), 5);
  assert_false(shoal_queue_flush(sender, 0.1));
  declare(sender, "beside it"); /* which is not held back */
  OK(shoal_queue_receive(receiver, "bounded", 1, &err));
  bool seen[15] = {false};
  for (uint32_t i = 0; i < sent; i++) {
    uint32_t number = take_number(receiver);
    assert_true(number < sent && !seen[number]);
    seen[number] = true;
  }
  flush(sender);
  nothing_comes(receiver);
  OK(shoal_queue_delete(sender, "bounded", &err));
  OK(shoal_queue_delete(sender, "beside it", &err));
  shoal_queue_close(receiver);
  shoal_queue_close(sender);
}

static void a_queue_that_drops_the_oldest_has_the_newest(void **state) {
  (void)state;
  shoal_queue *queue = open_queue();
  OK(shoal_queue_declare(
      queue, &(shoal_queue_spec){.name = "newest", .length_max = 1, .full = SHOAL_QUEUE_DROPS_OLDEST}, &err));
  for (uint32_t i = 0; i <= 50; i++) send_number(queue, "newest", i);
  flush(queue);
  assert_int_equal(count_of(queue, "newest"), 1);
  OK(shoal_queue_receive(queue, "newest", 1, &err));
  assert_int_equal(take_number(queue), 50);
  OK(shoal_queue_delete(queue, "newest", &err));
  shoal_queue_close(queue);
}

static void old_messages_and_unused_queues_go_away(void **state) {
  (void)state;
  shoal_queue *queue = open_queue();
  uint64_t messages;
  OK(shoal_queue_declare(queue, &(shoal_queue_spec){.name = "short-lived", .message_s = 0.2}, &err));
  OK(shoal_queue_declare(queue, &(shoal_queue_spec){.name = "unused", .unused_s = 0.5}, &err));
  send_number(queue, "short-lived", 1);
  send_number(queue, "unused", 1);
  flush(queue);
  double pause = 0.75, deadline = shoal_clock_seconds() + SOON_S;
  do { /* counting a queue is a use of it: so ever more seldom */
    shoal_clock_sleep(pause *= 2);
  } while (shoal_queue_count(queue, "unused", &messages, NULL, &err) == SHOAL_OK &&
           shoal_clock_seconds() < deadline);
  assert_int_equal(count_of(queue, "short-lived"), 0);
  FAILS(shoal_queue_count(queue, "unused", &messages, NULL, &err), SHOAL_NOT_FOUND, "queue unused");
  OK(shoal_queue_delete(queue, "short-lived", &err));
  shoal_queue_close(queue);
}

/* ---- queues that are not as one thinks ---- */

static void questions_that_the_broker_refuses_harm_nobody(void **state) {
  (void)state;
  told t = {0};
  shoal_queue *queue = open_with(&t, 0);
  uint64_t messages, receivers;
  declare(queue, "asked");
  OK(shoal_queue_receive(queue, "asked", 1, &err));
  for (int i = 0; i < 3; i++) {
    FAILS(shoal_queue_count(queue, "nowhere", NULL, NULL, &err), SHOAL_NOT_FOUND, "nowhere");
    FAILS(shoal_queue_receive(queue, "nowhere", 1, &err), SHOAL_NOT_FOUND, "nowhere");
    FAILS(shoal_queue_declare(queue, &(shoal_queue_spec){.name = "asked", .length_max = 3}, &err),
          SHOAL_CONFLICT, "asked");
    OK(shoal_queue_delete(queue, "nowhere", &err));
    OK(shoal_queue_count(queue, "asked", &messages, &receivers, &err));
    assert_int_equal(receivers, 1);
    send_number(queue, "asked", 7);
    assert_int_equal(take_number(queue), 7);
  }
  assert_int_equal(look(&t).lost, 0);
  OK(shoal_queue_delete(queue, "asked", &err));
  shoal_queue_close(queue);
}

static void who_receives_is_told_that_the_queue_was_deleted(void **state) {
  (void)state;
  told t = {0};
  shoal_queue *one = open_queue(), *other = open_with(&t, 0);
  shoal_queue_view view;
  declare(one, "deleted");
  OK(shoal_queue_receive(other, "deleted", 1, &err));
  OK(shoal_queue_delete(one, "deleted", &err));
  double until = shoal_clock_seconds() + SOON_S;
  while (look(&t).gone == 0 && shoal_clock_seconds() < until) shoal_clock_sleep(0.01);
  told seen = look(&t);
  assert_int_equal(seen.gone, 1);
  assert_string_equal(seen.queue, "deleted");
  assert_int_equal(seen.lost, 0);
  send_number(one, "deleted", 1);
  flush(one);
  shoal_queue_look(one, &view);
  assert_int_equal(view.dropped, 1);
  shoal_queue_close(other);
  shoal_queue_close(one);
}

/* ---- a broker that is killed ---- */

enum { MANY = 10000, KEPT = 500, KILLED_AT = 3000 };

static void *send_many(void *self) {
  for (uint32_t i = 0; i < MANY; i++) send_number(self, "many", i);
  return NULL;
}

static void *kill_and_start(void *self) {
  (void)self;
  run("SHOAL_TEST_QUEUE_KILL");
  run("SHOAL_TEST_QUEUE_RESTART");
  return NULL;
}

static void all_arrive_though_the_broker_is_killed(void **state) {
  (void)state;
  told t = {0}, u = {0};
  shoal_queue *sender = open_with(&t, 1000), *receiver = open_with(&u, 0);
  pthread_t sends, kills;
  static bool seen[MANY], kept[KEPT];
  uint32_t arrived = 0, again = 0;
  bool killed = false;
  memset(seen, 0, sizeof seen);
  memset(kept, 0, sizeof kept);
  OK(shoal_queue_declare(sender, &(shoal_queue_spec){.name = "many", .length_max = 100000}, &err));
  declare(sender, "kept");
  for (uint32_t i = 0; i < KEPT; i++) send_number(sender, "kept", i);
  flush(sender);

  OK(shoal_queue_receive(receiver, "many", 50, &err));
  assert_int_equal(pthread_create(&sends, NULL, send_many, sender), 0);
  double until = shoal_clock_seconds() + SOON_S;
  while (arrived < MANY && shoal_clock_seconds() < until) {
    shoal_delivery delivery;
    if (!shoal_queue_take(receiver, "many", 0.1, &delivery)) continue;
    uint32_t number = number_in(&delivery);
    assert_true(number < MANY);
    again += seen[number];
    arrived += !seen[number];
    seen[number] = true;
    shoal_queue_acknowledge(receiver, &delivery);
    shoal_delivery_release(&delivery);
    if (arrived == KILLED_AT && !killed) {
      killed = true;
      assert_int_equal(pthread_create(&kills, NULL, kill_and_start, NULL), 0);
    }
  }
  assert_int_equal(arrived, MANY);
  assert_true(killed);
  pthread_join(sends, NULL);
  pthread_join(kills, NULL);
  flush(sender);
  print_message("%u arrived more than once\n", again);

  const told *both[] = {&t, &u};
  for (int i = 0; i < 2; i++) {
    EVENTUALLY(look((told *)both[i]).connected == 1); /* a slow broker may have gone away once more */
    told seen_told = look((told *)both[i]);
    assert_true(seen_told.lost >= 1);
    assert_non_null(strstr(seen_told.why, "RabbitMQ at 127.0.0.1:"));
  }
  shoal_queue_view view;
  shoal_queue_look(sender, &view);
  assert_true(view.connections >= 2);
  assert_int_equal(view.outbox, 0);
  assert_int_equal(view.sent, MANY + KEPT);
  assert_int_equal(view.confirmed, MANY + KEPT);

  /* What was confirmed before is there: once, unless a slow broker goes away once more. */
  int lost = look(&u).lost;
  OK(shoal_queue_receive(receiver, "many", 0, &err));
  OK(shoal_queue_receive(receiver, "kept", 100, &err));
  for (arrived = again = 0; arrived < KEPT;) {
    uint32_t number = take_number(receiver);
    assert_true(number < KEPT);
    again += kept[number];
    arrived += !kept[number];
    kept[number] = true;
  }
  if (look(&u).lost == lost) {
    nothing_comes(receiver);
    assert_int_equal(again, 0);
  }
  OK(shoal_queue_delete(sender, "many", &err));
  OK(shoal_queue_delete(sender, "kept", &err));
  shoal_queue_close(receiver);
  shoal_queue_close(sender);
}

/* ---- without librabbitmq ---- */

static void without_the_library_it_says_how_to_get_it(void **state) {
  (void)state;
  opening_fails("amqp://guest:secret@127.0.0.1:1", SHOAL_UNSUPPORTED, "librabbitmq-dev");
}

static bool is_built_in(void) {
  shoal_queue *queue;
  return shoal_queue_open(&queue, &(shoal_queue_config){.url = ""}, NULL) != SHOAL_UNSUPPORTED;
}

int main(int argc, char **argv) {
  (void)argc;
  if (!is_built_in()) {
    const struct CMUnitTest none[] = {cmocka_unit_test(without_the_library_it_says_how_to_get_it)};
    return RUN_TESTS(none);
  }
  if (url() == NULL) {
    if (access("/usr/lib/rabbitmq/bin/rabbitmq-server", X_OK) != 0) {
      fprintf(stderr,
              "SKIPPED, NOTHING WAS TESTED: there is no RabbitMQ here; tools/deps test installs it\n");
      return SKIPPED;
    }
    execl(SHOAL_SOURCE_DIR "/tools/rabbitmq", "rabbitmq", "run", argv[0], (char *)NULL);
    perror(SHOAL_SOURCE_DIR "/tools/rabbitmq");
    return 1;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_wrong_url_is_refused_with_what_to_write),
      cmocka_unit_test(who_is_not_let_in_is_told),
      cmocka_unit_test(a_broker_that_is_not_there_is_an_error),
      cmocka_unit_test(a_slash_behind_the_port_means_the_default_virtual_host),
      cmocka_unit_test(with_tls_the_certificate_must_be_trusted),
      cmocka_unit_test(the_wrong_kind_of_port_is_an_error),
      cmocka_unit_test(a_message_arrives_as_it_was_sent),
      cmocka_unit_test(what_cannot_be_a_message_or_a_name_is_refused),
      cmocka_unit_test(two_receivers_share_the_work),
      cmocka_unit_test(what_was_not_acknowledged_goes_to_another),
      cmocka_unit_test(nothing_is_hoarded_by_who_stops_receiving_before_it_acknowledges),
      cmocka_unit_test(one_can_take_from_one_of_several_queues),
      cmocka_unit_test(many_threads_can_use_one_connection),
      cmocka_unit_test(one_can_answer_when_something_arrives),
      cmocka_unit_test(a_full_queue_holds_back_who_sends),
      cmocka_unit_test(a_queue_that_drops_the_oldest_has_the_newest),
      cmocka_unit_test(old_messages_and_unused_queues_go_away),
      cmocka_unit_test(questions_that_the_broker_refuses_harm_nobody),
      cmocka_unit_test(who_receives_is_told_that_the_queue_was_deleted),
      cmocka_unit_test(all_arrive_though_the_broker_is_killed),
  };
  return RUN_TESTS(tests);
}
