/* Units are offered when somebody receives, claimed once, counted, given back when nobody is there any
 * more, and not given to more workers than a job wants. */
#include "server/offers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "check.h"
#include "queue/queue.h"

enum { SENT_MAX = 64 };
static const double LEASE_S = 2;

/* ---- a broker, a job and its search: this file's are taken in the place of the real ones ---- */

static struct {
  pthread_mutex_t mutex;
  uint64_t receivers, waiting; /* who receive; messages that nobody has taken */
} broker = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static struct {
  uint64_t next; /* unit */
  uint64_t given_back[SENT_MAX];
  size_t given_back_count, beats;
  char *sent[SENT_MAX];
  size_t sent_count;
} search;

static shoal_open_job job;

shoal_status shoal_queue_open(shoal_queue **out, const shoal_queue_config *config, shoal_error *err) {
  (void)config;
  (void)err;
  *out = (shoal_queue *)&broker;
  return SHOAL_OK;
}
void shoal_queue_close(shoal_queue *queue) { (void)queue; }
shoal_status shoal_queue_declare(shoal_queue *queue, const shoal_queue_spec *spec, shoal_error *err) {
  (void)queue;
  (void)err;
  assert_string_equal(spec->name, SHOAL_UNITS_QUEUE);
  return SHOAL_OK;
}
shoal_status shoal_queue_delete(shoal_queue *queue, const char *name, shoal_error *err) {
  (void)queue;
  (void)name;
  (void)err;
  return SHOAL_OK;
}
shoal_status shoal_queue_count(shoal_queue *queue, const char *name, uint64_t *messages, uint64_t *receivers,
                               shoal_error *err) {
  (void)queue;
  (void)name;
  (void)err;
  pthread_mutex_lock(&broker.mutex);
  *messages = broker.waiting;
  *receivers = broker.receivers;
  pthread_mutex_unlock(&broker.mutex);
  return SHOAL_OK;
}
shoal_status shoal_queue_send(shoal_queue *queue, const char *name, const void *bytes, size_t length,
                              double wait_s, shoal_error *err) {
  (void)queue;
  (void)name;
  (void)wait_s;
  (void)err;
  assert_true(search.sent_count < SENT_MAX);
  search.sent[search.sent_count++] = strndup(bytes, length);
  pthread_mutex_lock(&broker.mutex);
  broker.waiting++;
  pthread_mutex_unlock(&broker.mutex);
  return SHOAL_OK;
}
void shoal_queue_look(shoal_queue *queue, shoal_queue_view *out) {
  (void)queue;
  *out = (shoal_queue_view){.connected = true};
}

shoal_open_job *shoal_jobs_first(shoal_jobs *jobs) {
  (void)jobs;
  return &job;
}
shoal_open_job *shoal_jobs_find(shoal_jobs *jobs, uint64_t id) {
  (void)jobs;
  return id == job.id ? &job : NULL;
}
shoal_searcher *shoal_jobs_searcher(shoal_jobs *jobs, uint64_t id) {
  (void)jobs;
  return id == job.id ? job.searcher : NULL;
}
void shoal_jobs_start(shoal_jobs *jobs, shoal_open_job *which) {
  (void)jobs;
  which->searcher = (shoal_searcher *)&search;
  which->found.phase = SHOAL_SEARCHER_OPEN;
}
bool shoal_open_job_is_ready(const shoal_open_job *which) { return which->searcher != NULL; }

shoal_status shoal_searcher_take(shoal_searcher *searcher, const char *worker, uint64_t who, shoal_next *next,
                                 shoal_taken *taken, shoal_text *json, shoal_error *err) {
  (void)searcher;
  assert_int_equal(who, 0);
  (void)err;
  assert_string_equal(worker, "queue");
  *next = SHOAL_NEXT_UNIT;
  *taken = (shoal_taken){.unit.number = search.next++, .attempt = 1};
  shoal_text_addf(json, "{\"unit\":%llu}", (unsigned long long)taken->unit.number);
  return SHOAL_OK;
}
bool shoal_searcher_beat(shoal_searcher *searcher, uint64_t unit, uint32_t attempt) {
  (void)searcher;
  (void)unit;
  search.beats++;
  return attempt == 1;
}
void shoal_searcher_give_back(shoal_searcher *searcher, uint64_t unit, uint32_t attempt) {
  (void)searcher;
  assert_int_equal(attempt, 1);
  assert_true(search.given_back_count < SENT_MAX);
  search.given_back[search.given_back_count++] = unit;
}

/* ---- the tests ---- */

static void wake(void *self) { (void)self; }
static void say(void *self, const char *text) {
  (void)self;
  (void)text;
}

static void set_receivers(uint64_t count) {
  pthread_mutex_lock(&broker.mutex);
  broker.receivers = count;
  pthread_mutex_unlock(&broker.mutex);
}

/* So many messages are taken out of the queue. */
static void take_messages(uint64_t count) {
  pthread_mutex_lock(&broker.mutex);
  broker.waiting -= count;
  pthread_mutex_unlock(&broker.mutex);
}

static shoal_offers *begin(uint32_t workers_max) {
  memset(&search, 0, sizeof search);
  broker.receivers = broker.waiting = 0;
  job = (shoal_open_job){
      .id = 7, .kind = SHOAL_JOB_SEARCH, .spec = {.workers_min = 1, .workers_max = workers_max}};
  shoal_text_addf(&job.search.data, "adult");
  const shoal_offers_config config = {.queue = "amqp://nobody",
                                      .url = "http://127.0.0.1:1",
                                      .open = SHOAL_ADMIN,
                                      .folder = "jobs",
                                      .lease_s = LEASE_S,
                                      .wake = wake,
                                      .log = say};
  shoal_offers *offers;
  assert_int_equal(shoal_offers_create(&offers, &config, NULL), SHOAL_OK);
  return offers;
}

static void end(shoal_offers *offers) {
  shoal_offers_destroy(offers);
  for (size_t i = 0; i < search.sent_count; i++) free(search.sent[i]);
  shoal_text_release(&job.search.data);
}

/* Ticks for so long. */
static void run(shoal_offers *offers, double seconds) {
  for (double until = shoal_clock_seconds() + seconds; shoal_clock_seconds() < until;) {
    shoal_offers_tick(offers, shoal_clock_seconds());
    shoal_clock_sleep(0.02);
  }
}

static void run_until_sent(shoal_offers *offers, size_t count) {
  for (int i = 0; i < 50 * PATIENCE_S && search.sent_count < count; i++) run(offers, 0.02);
  assert_true(search.sent_count >= count);
}

static void nothing_is_offered_to_nobody_and_more_than_receive_to_some(void **state) {
  (void)state;
  shoal_offers *offers = begin(1000);
  run(offers, 1.5);
  assert_int_equal(search.sent_count, 0);
  assert_null(job.searcher);
  set_receivers(3);
  run_until_sent(offers, 6);
  run(offers, 0.5);
  assert_int_equal(search.sent_count, 6);
  assert_string_equal(search.sent[0], "{\"server\":\"http://127.0.0.1:1\",\"token\":\"\",\"job\":7,"
                                      "\"data\":\"adult\",\"unit\":{\"unit\":0}}");
  assert_true(search.beats > 0); /* for those that wait in the queue */
  end(offers);
}

static void an_offer_is_claimed_by_one_and_who_claims_is_counted(void **state) {
  (void)state;
  shoal_offers *offers = begin(1000);
  set_receivers(1);
  run_until_sent(offers, 4);
  take_messages(2);
  assert_true(shoal_offers_claim(offers, 7, 0, 1, "anna"));
  assert_true(shoal_offers_claim(offers, 7, 0, 1, "anna"));
  assert_true(shoal_offers_claim(offers, 7, 0, 1, "")); /* who does not say its name may put a state */
  assert_false(shoal_offers_claim(offers, 7, 0, 1, "ben"));
  assert_true(shoal_offers_claim(offers, 7, 1, 1, "ben"));
  assert_true(shoal_offers_claim(offers, 7, 999, 1, "ben")); /* it came another way */
  run(offers, 0.3);
  assert_int_equal(job.helpers, 2);
  assert_int_equal(search.given_back_count, 0);
  shoal_offers_over(offers, 7, 0);
  assert_true(shoal_offers_claim(offers, 7, 0, 1, "ben")); /* it is no offer any more */
  run_until_sent(offers, 6);
  end(offers);
}

static void a_job_gets_no_more_workers_than_it_wants(void **state) {
  (void)state;
  shoal_offers *offers = begin(1);
  set_receivers(2);
  run_until_sent(offers, 4);
  take_messages(2);
  assert_true(shoal_offers_claim(offers, 7, 0, 1, "anna"));
  assert_false(shoal_offers_claim(offers, 7, 1, 1, "ben"));
  assert_int_equal(search.given_back_count, 1);
  assert_int_equal(search.given_back[0], 1);
  assert_true(shoal_offers_claim(offers, 7, 2, 1, "anna")); /* who is there may have more */
  job.spec.workers_max = 2;
  assert_true(shoal_offers_claim(offers, 7, 3, 1, "ben"));
  run(offers, 0.3);
  assert_int_equal(job.helpers, 2);
  end(offers);
}

static void what_nobody_takes_is_given_back(void **state) {
  (void)state;
  shoal_offers *offers = begin(1000);
  set_receivers(1);
  run_until_sent(offers, 4);
  set_receivers(0);
  for (int i = 0; i < PATIENCE_S && search.given_back_count < search.sent_count; i++) run(offers, 1);
  assert_int_equal(search.given_back_count, search.sent_count);
  end(offers);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_is_offered_to_nobody_and_more_than_receive_to_some),
      cmocka_unit_test(an_offer_is_claimed_by_one_and_who_claims_is_counted),
      cmocka_unit_test(a_job_gets_no_more_workers_than_it_wants),
      cmocka_unit_test(what_nobody_takes_is_given_back),
  };
  return RUN_TESTS(tests);
}
