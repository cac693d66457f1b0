/* Matchmaking: who works for what, why, and that nobody is moved without a reason. */
#include "proto/match.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/random.h"
#include "check.h"

static shoal_match *new_match(void) {
  shoal_match *match;
  const shoal_match_config config = {.workers_max = 20000, .jobs_max = 2000};
  assert_int_equal(shoal_match_create(&match, &config, NULL), SHOAL_OK);
  return match;
}

static void put_worker(shoal_match *match, shoal_match_worker w) {
  assert_int_equal(shoal_match_put_worker(match, &w, NULL), SHOAL_OK);
}

static void put_job(shoal_match *match, shoal_match_job j) {
  if (j.name == NULL) j.name = "digits";
  if (j.host == NULL) j.host = "Ann";
  assert_int_equal(shoal_match_put_job(match, &j, NULL), SHOAL_OK);
}

static void put_workers(shoal_match *match, uint64_t first, uint64_t last) {
  for (uint64_t id = first; id <= last; id++) put_worker(match, (shoal_match_worker){.id = id});
}

/* How many moves there are to tell of. */
static uint32_t drain(shoal_match *match) {
  uint64_t worker, job;
  uint32_t moves = 0;
  while (shoal_match_next(match, &worker, &job)) {
    assert_int_equal(job, shoal_match_job_of(match, worker));
    moves++;
  }
  return moves;
}

static void check_reason(const shoal_match *match, uint64_t worker, const char *text) {
  char reason[SHOAL_MATCH_REASON_MAX];
  shoal_match_reason(match, worker, reason);
  assert_string_equal(reason, text);
}

static void jobs_get_their_least_in_order_and_then_one_by_one(void **state) {
  (void)state;
  shoal_match *match = new_match();
  put_job(match, (shoal_match_job){.id = 1, .least = 2, .most = 3});
  put_job(match, (shoal_match_job){.id = 2, .least = 1, .most = 9});
  put_job(match, (shoal_match_job){.id = 3, .least = 1, .most = 9});
  put_workers(match, 1, 4);
  assert_int_equal(shoal_match_workers_of(match, 1), 2);
  assert_int_equal(shoal_match_workers_of(match, 2), 1);
  assert_int_equal(shoal_match_workers_of(match, 3), 1);
  drain(match);
  const uint64_t order[] = {1, 2, 3, 2, 3};
  for (uint64_t id = 5; id <= 9; id++) {
    put_workers(match, id, id);
    assert_int_equal(shoal_match_job_of(match, id), order[id - 5]);
    assert_int_equal(drain(match), 1);
  }
  assert_int_equal(shoal_match_workers_of(match, 1), 3);
  assert_int_equal(shoal_match_workers_of(match, 9), 0);
  check_reason(match, 5, "works for job 1 (digits)");
  shoal_match_destroy(match);
}

static void a_job_that_comes_takes_what_others_have_beyond_their_least(void **state) {
  (void)state;
  shoal_match *match = new_match();
  put_job(match, (shoal_match_job){.id = 1, .least = 2, .most = 100});
  put_workers(match, 1, 6);
  assert_int_equal(drain(match), 6);
  put_job(match, (shoal_match_job){.id = 2, .least = 3, .most = 100});
  assert_int_equal(drain(match), 3);
  assert_int_equal(shoal_match_workers_of(match, 1), 3);
  shoal_match_destroy(match);
}

static void who_works_is_not_moved_to_a_job_that_cannot_start_then(void **state) {
  (void)state;
  shoal_match *match = new_match();
  put_job(match, (shoal_match_job){.id = 1, .least = 1, .most = 100});
  put_workers(match, 1, 2);
  drain(match);
  put_job(match, (shoal_match_job){.id = 2, .least = 4, .most = 8});
  assert_int_equal(drain(match), 0);
  put_workers(match, 3, 4);
  assert_int_equal(shoal_match_workers_of(match, 1), 4);
  drain(match);
  put_workers(match, 5, 5); /* with four of job 1's they are enough */
  assert_int_equal(shoal_match_workers_of(match, 1), 1);
  assert_int_equal(shoal_match_workers_of(match, 2), 4);
  assert_int_equal(drain(match), 4);
  shoal_match_destroy(match);
}

static void a_job_that_cannot_begin_holds_nobody_whom_another_could_use(void **state) {
  (void)state;
  shoal_match *match = new_match();
  put_job(match, (shoal_match_job){.id = 1, .least = 4, .most = 9});
  put_workers(match, 1, 2); /* nobody else wants them */
  assert_int_equal(shoal_match_workers_of(match, 1), 2);
  drain(match);
  put_job(match, (shoal_match_job){.id = 2, .least = 2, .most = 9});
  assert_int_equal(shoal_match_workers_of(match, 2), 2); /* as many as it needs to begin */
  assert_int_equal(drain(match), 2);
  put_workers(match, 3, 5); /* who would wait for job 1 can as well help job 2 */
  assert_int_equal(shoal_match_workers_of(match, 2), 5);
  drain(match);
  put_workers(match, 6, 6); /* now there are enough for both */
  assert_int_equal(shoal_match_workers_of(match, 1), 4);
  assert_int_equal(shoal_match_workers_of(match, 2), 2);
  shoal_match_destroy(match);
}

static void the_first_of_two_jobs_that_wait_begins_when_workers_are_free(void **state) {
  (void)state;
  shoal_match *match = new_match();
  put_job(match, (shoal_match_job){.id = 1, .least = 1, .most = 9});
  put_workers(match, 1, 3);
  put_job(match, (shoal_match_job){.id = 2, .least = 3, .most = 9});
  put_job(match, (shoal_match_job){.id = 3, .least = 3, .most = 9});
  assert_int_equal(shoal_match_workers_of(match, 1), 3);
  shoal_match_drop_job(match, 1);
  assert_int_equal(shoal_match_workers_of(match, 2), 3);
  shoal_match_destroy(match);
}

static void a_job_that_has_begun_keeps_fewer_than_its_least(void **state) {
  (void)state;
  shoal_match *match = new_match();
  put_job(match, (shoal_match_job){.id = 1, .least = 3, .most = 9});
  put_workers(match, 1, 3);
  put_job(match, (shoal_match_job){.id = 1, .least = 3, .most = 9, .begun = true});
  drain(match);
  shoal_match_drop_worker(match, 3);
  put_job(match, (shoal_match_job){.id = 2, .least = 1, .most = 9});
  assert_int_equal(drain(match), 0);
  assert_int_equal(shoal_match_workers_of(match, 1), 2);
  put_workers(match, 4, 4); /* it gets what it lacks before a later one */
  assert_int_equal(shoal_match_job_of(match, 4), 1);
  shoal_match_destroy(match);
}

static void the_slowest_are_moved_and_the_fastest_taken(void **state) {
  (void)state;
  shoal_match *match = new_match();
  for (uint64_t id = 1; id <= 3; id++) put_worker(match, (shoal_match_worker){.id = id, .speed = (double)id});
  put_job(match, (shoal_match_job){.id = 1, .least = 1, .most = 2});
  assert_int_equal(shoal_match_job_of(match, 1), 0);
  put_job(match, (shoal_match_job){.id = 2, .least = 2, .most = 2});
  assert_int_equal(shoal_match_job_of(match, 1), 2);
  assert_int_equal(shoal_match_job_of(match, 2), 2);
  assert_int_equal(shoal_match_job_of(match, 3), 1);
  assert_int_equal(drain(match), 3);
  shoal_match_destroy(match);
}

static void a_lower_most_gives_workers_back_and_a_dropped_job_all(void **state) {
  (void)state;
  shoal_match *match = new_match();
  put_job(match, (shoal_match_job){.id = 1, .least = 1, .most = 100});
  put_workers(match, 1, 5);
  drain(match);
  put_job(match, (shoal_match_job){.id = 1, .least = 1, .most = 2});
  assert_int_equal(drain(match), 3);
  check_reason(match, 5, "every job that this worker could do has all that it takes; it waits for a place");
  put_job(match, (shoal_match_job){.id = 2, .least = 1, .most = 2});
  assert_int_equal(drain(match), 2);
  shoal_match_drop_job(match, 1);
  assert_int_equal(drain(match), 2);
  shoal_match_drop_job(match, 2);
  assert_int_equal(drain(match), 2);
  check_reason(match, 1, "no job is open; there will be work when somebody hosts one");
  shoal_match_drop_job(match, 2);
  assert_int_equal(drain(match), 0);
  shoal_match_destroy(match);
}

static void an_earlier_job_is_filled_up_from_a_later_one_that_waits_in_vain(void **state) {
  (void)state;
  shoal_match *match = new_match();
  put_job(match, (shoal_match_job){.id = 1, .least = 3, .most = 3});
  put_job(match, (shoal_match_job){.id = 2, .least = 3, .most = 3});
  put_workers(match, 1, 5);
  assert_int_equal(shoal_match_workers_of(match, 2), 2);
  drain(match);
  shoal_match_drop_worker(match, 1);
  assert_int_equal(shoal_match_workers_of(match, 1), 3);
  assert_int_equal(shoal_match_workers_of(match, 2), 1);
  assert_int_equal(drain(match), 1);
  shoal_match_drop_worker(match, 2);
  assert_int_equal(drain(match), 1);
  shoal_match_drop_worker(match, 3); /* nothing would fill job 1 up now */
  assert_int_equal(shoal_match_workers_of(match, 1), 2);
  assert_int_equal(drain(match), 0);
  shoal_match_destroy(match);
}

static void a_choice_is_kept_and_a_private_job_takes_only_the_invited(void **state) {
  (void)state;
  shoal_match *match = new_match();
  put_worker(match, (shoal_match_worker){.id = 1, .job = 7});
  put_worker(match, (shoal_match_worker){.id = 2, .host = "Bob"});
  put_worker(match, (shoal_match_worker){.id = 3, .job = 8, .invited = true});
  put_worker(match, (shoal_match_worker){.id = 4, .job = 8});
  put_worker(match, (shoal_match_worker){.id = 5, .job = 7, .host = "Bob"});
  check_reason(match, 1, "job 7 is not open; this worker waits for it");
  check_reason(match, 2, "no job of Bob is open; there will be work when that host hosts one");
  put_job(match, (shoal_match_job){.id = 6, .least = 9, .most = 9});
  assert_int_equal(shoal_match_workers_of(match, 6), 0);
  put_job(match, (shoal_match_job){.id = 7, .least = 9, .most = 9});
  put_job(match, (shoal_match_job){.id = 8, .least = 1, .most = 9, .host = "Bob", .is_private = true});
  assert_int_equal(shoal_match_job_of(match, 1), 7);
  assert_int_equal(shoal_match_job_of(match, 3), 8);
  assert_int_equal(drain(match), 2);
  check_reason(match, 2, "every job of Bob is private; this worker needs an invitation to one");
  check_reason(match, 4, "job 8 (digits) is private; this worker needs an invitation to it");
  check_reason(match, 5, "job 7 (digits) is not of the host that this worker chose");
  put_job(match, (shoal_match_job){.id = 8, .least = 1, .most = 9, .host = "Bob"});
  assert_int_equal(shoal_match_workers_of(match, 8), 3);
  put_job(match, (shoal_match_job){.id = 7, .least = 9, .most = 9, .host = "Bob"});
  assert_int_equal(shoal_match_job_of(match, 5), 7);
  put_worker(match, (shoal_match_worker){.id = 1, .job = 8}); /* changes its mind */
  assert_int_equal(shoal_match_job_of(match, 1), 8);
  put_job(match, (shoal_match_job){.id = 8, .least = 1, .most = 9, .host = "Bob", .is_private = true});
  assert_int_equal(shoal_match_workers_of(match, 8), 1);
  shoal_match_destroy(match);
}

static void a_paused_worker_counts_for_nothing(void **state) {
  (void)state;
  shoal_match *match = new_match();
  put_job(match, (shoal_match_job){.id = 1, .least = 1, .most = 1});
  put_workers(match, 1, 2);
  assert_int_equal(drain(match), 1);
  put_worker(match, (shoal_match_worker){.id = 1, .paused = true});
  assert_int_equal(shoal_match_job_of(match, 2), 1);
  assert_int_equal(drain(match), 2);
  check_reason(match, 1, "this worker is paused");
  put_worker(match, (shoal_match_worker){.id = 1});
  assert_int_equal(drain(match), 0);
  shoal_match_drop_worker(match, 2);
  assert_int_equal(shoal_match_job_of(match, 1), 1);
  shoal_match_drop_worker(match, 2);
  check_reason(match, 2, "there is no such worker here");
  shoal_match_destroy(match);
}

static void memory_must_suffice_and_the_reason_says_how_much(void **state) {
  (void)state;
  shoal_match *match = new_match();
  put_worker(match, (shoal_match_worker){.id = 1, .memory_bytes = 256000000});
  put_worker(match, (shoal_match_worker){.id = 2, .memory_bytes = 256000000, .job = 1});
  put_worker(match, (shoal_match_worker){.id = 3, .memory_bytes = 2000000000, .job = 1});
  put_worker(match, (shoal_match_worker){.id = 4, .memory_bytes = 2000000000, .job = 1});
  put_job(match, (shoal_match_job){.id = 1, .least = 1, .most = 1, .memory_bytes = 1500000001});
  check_reason(match, 1, "every job needs at least 1,501 MB of memory and this worker lends 256 MB");
  check_reason(match, 2, "job 1 (digits) needs 1,501 MB of memory and this worker lends 256 MB");
  check_reason(match, 4, "job 1 (digits) has all the workers that it takes; this one waits for a place");
  put_job(match, (shoal_match_job){.id = 1, .least = 1, .most = 4, .memory_bytes = 1000});
  assert_int_equal(shoal_match_workers_of(match, 1), 4);
  shoal_match_destroy(match);
}

static void wrong_wishes_are_refused(void **state) {
  (void)state;
  shoal_match *match = new_match();
  shoal_error err;
  shoal_match_job none = {.id = 1, .name = "", .host = "", .least = 0, .most = 1};
  shoal_match_job turned = {.id = 1, .name = "", .host = "", .least = 3, .most = 2};
  shoal_match_job zero = {.id = 0, .name = "", .host = "", .least = 1, .most = 1};
  shoal_match_worker nobody = {.id = 0};
  assert_int_equal(shoal_match_put_job(match, &none, &err), SHOAL_INVALID);
  assert_int_equal(shoal_match_put_job(match, &turned, &err), SHOAL_INVALID);
  assert_int_equal(shoal_match_put_job(match, &zero, &err), SHOAL_INVALID);
  assert_int_equal(shoal_match_put_worker(match, &nobody, &err), SHOAL_INVALID);
  assert_int_equal(drain(match), 0);
  shoal_match_destroy(match);
}

static void long_names_fit_and_are_not_cut_in_a_character(void **state) {
  (void)state;
  shoal_match *match = new_match();
  char name[400];
  for (size_t i = 0; i + 2 < sizeof name; i += 2) memcpy(name + i, "ü", 3);
  name[398] = 0;
  put_worker(match, (shoal_match_worker){.id = 1, .job = UINT64_MAX, .host = name});
  put_worker(match, (shoal_match_worker){.id = 2, .host = name});
  char reason[SHOAL_MATCH_REASON_MAX];
  put_job(match, (shoal_match_job){.id = UINT64_MAX, .least = 1, .most = 1, .name = name, .host = name});
  shoal_match_reason(match, 1, reason);
  assert_null(strchr(reason, '?'));
  assert_non_null(strstr(reason, "works for job 18446744073709551615 (üü"));
  shoal_match_reason(match, 2, reason);
  assert_null(strchr(reason, '?'));
  shoal_match_destroy(match);
}

static void more_than_there_may_be_are_refused_and_a_place_can_be_used_again(void **state) {
  (void)state;
  shoal_match *match;
  shoal_error err;
  const shoal_match_config config = {.workers_max = 2, .jobs_max = 1};
  assert_int_equal(shoal_match_create(&match, &config, NULL), SHOAL_OK);
  put_job(match, (shoal_match_job){.id = 1, .least = 1, .most = 9, .host = "a"});
  const shoal_match_job second = {.id = 2, .least = 1, .most = 9, .name = "", .host = "b"};
  assert_int_equal(shoal_match_put_job(match, &second, &err), SHOAL_LIMIT);
  put_worker(match, (shoal_match_worker){.id = 1, .host = "c"});
  put_worker(match, (shoal_match_worker){.id = 2, .host = "d"});
  const shoal_match_worker third = {.id = 3, .host = "e"};
  assert_int_equal(shoal_match_put_worker(match, &third, &err), SHOAL_LIMIT);
  for (uint64_t id = 3; id < 100; id++) { /* with every host's name another, all of them in use */
    char host[16];
    snprintf(host, sizeof host, "host %d", (int)id);
    shoal_match_drop_worker(match, id - 2);
    put_worker(match, (shoal_match_worker){.id = id, .host = host});
    put_worker(match, (shoal_match_worker){.id = id, .host = host + 1});
  }
  put_worker(match, (shoal_match_worker){.id = 99});
  assert_int_equal(shoal_match_job_of(match, 99), 1);
  shoal_match_drop_job(match, 1);
  assert_int_equal(shoal_match_put_job(match, &second, &err), SHOAL_OK);
  assert_int_equal(shoal_match_job_of(match, 99), 2);
  shoal_match_destroy(match);
}

/* ---- any calls at all ---- */

enum { WORKERS = 24, JOBS = 7, HOSTS = 3, RUNS = 300, CALLS = 150 };

static const char *const hosts[HOSTS] = {"Ann", "Bob", "Cem"};

/* What the calls so far have said; a number of 0: not there. */
typedef struct world {
  shoal_match_worker workers[WORKERS];
  shoal_match_job jobs[JOBS];
  uint64_t since[JOBS]; /* the order of coming */
  uint64_t told[WORKERS];
  uint64_t calls;
  shoal_key key;
  uint64_t draws;
} world;

static uint64_t draw(world *w, uint64_t n) { return shoal_random_below(w->key, w->draws++, n); }

static bool may_work(const shoal_match_worker *w, const shoal_match_job *j) {
  if (w->id == 0 || j->id == 0 || w->paused || w->memory_bytes < j->memory_bytes) return false;
  if (w->job != 0 && w->job != j->id) return false;
  if (w->host != NULL && strcmp(w->host, j->host) != 0) return false;
  return !j->is_private || (w->invited && w->job == j->id);
}

static void change_worker(world *w, shoal_match *match, size_t i) {
  if (draw(w, 4) == 0) {
    shoal_match_drop_worker(match, i + 1);
    w->workers[i].id = w->told[i] = 0;
    return;
  }
  w->workers[i] = (shoal_match_worker){.id = i + 1,
                                       .job = draw(w, 4) == 0 ? 1 + draw(w, JOBS) : 0,
                                       .invited = draw(w, 2) == 0,
                                       .host = draw(w, 4) == 0 ? hosts[draw(w, HOSTS)] : NULL,
                                       .memory_bytes = draw(w, 5),
                                       .speed = (double)draw(w, 4),
                                       .paused = draw(w, 6) == 0};
  put_worker(match, w->workers[i]);
}

static void change_job(world *w, shoal_match *match, size_t i) {
  if (draw(w, 3) == 0) {
    shoal_match_drop_job(match, i + 1);
    w->jobs[i].id = 0;
    return;
  }
  if (w->jobs[i].id == 0) w->since[i] = ++w->calls;
  uint32_t least = 1 + (uint32_t)draw(w, 6);
  w->jobs[i] = (shoal_match_job){.id = i + 1,
                                 .name = "job",
                                 .host = hosts[draw(w, HOSTS)],
                                 .is_private = draw(w, 4) == 0,
                                 .begun = draw(w, 2) == 0,
                                 .least = least,
                                 .most = least + (uint32_t)draw(w, 6),
                                 .memory_bytes = draw(w, 4)};
  put_job(match, w->jobs[i]);
}

static void check_workers(const world *w, const shoal_match *match) {
  uint32_t counts[JOBS] = {0};
  for (size_t i = 0; i < WORKERS; i++) {
    uint64_t job = shoal_match_job_of(match, i + 1);
    if (w->workers[i].id == 0) assert_int_equal(job, 0);
    if (job == 0) continue;
    assert_true(may_work(&w->workers[i], &w->jobs[job - 1]));
    counts[job - 1]++;
  }
  for (size_t j = 0; j < JOBS; j++) {
    assert_int_equal(shoal_match_workers_of(match, j + 1), counts[j]);
    if (w->jobs[j].id != 0) assert_in_range(counts[j], 0, w->jobs[j].most);
  }
}

static bool lacks(const world *w, const shoal_match *match, uint64_t job) {
  return shoal_match_workers_of(match, job) < w->jobs[job - 1].least;
}

static bool waits(const world *w, const shoal_match *match, uint64_t job) {
  return lacks(w, match, job) && !w->jobs[job - 1].begun;
}

/* No job has room for an idle worker, or, unless it waits itself, for one of a job that waits; none lacks
 * workers that are to be had. */
static void check_jobs(const world *w, const shoal_match *match) {
  for (size_t j = 0; j < JOBS; j++) {
    const shoal_match_job *job = &w->jobs[j];
    uint32_t count = shoal_match_workers_of(match, j + 1), vain = 0, spare[JOBS] = {0};
    for (size_t i = 0; job->id != 0 && i < WORKERS; i++) {
      uint64_t other = shoal_match_job_of(match, i + 1);
      if (!may_work(&w->workers[i], job) || other == job->id) continue;
      bool in_vain = other == 0 || (waits(w, match, other) && !waits(w, match, job->id));
      if (in_vain) assert_false(count < job->most);
      if (other == 0 || count >= job->least) continue;
      uint32_t others = shoal_match_workers_of(match, other), least = w->jobs[other - 1].least;
      if (spare[other - 1] + least < others) spare[other - 1]++;
      vain += waits(w, match, other) || (others < least && w->since[other - 1] > w->since[j]);
    }
    for (size_t other = 0; other < JOBS; other++) vain += spare[other];
    if (job->id != 0 && count < job->least) assert_true(count + vain < job->least);
  }
}

static void check_moves(world *w, shoal_match *match) {
  uint64_t worker, job;
  uint32_t moved[WORKERS] = {0};
  while (shoal_match_next(match, &worker, &job)) {
    assert_in_range(worker, 1, WORKERS);
    assert_int_equal(++moved[worker - 1], 1);
    assert_int_not_equal(w->told[worker - 1], job);
    w->told[worker - 1] = job;
  }
  for (size_t i = 0; i < WORKERS; i++) {
    assert_int_equal(w->told[i], shoal_match_job_of(match, i + 1));
    char reason[SHOAL_MATCH_REASON_MAX];
    shoal_match_reason(match, i + 1, reason);
    assert_true(strlen(reason) > 10);
  }
}

static void whatever_happens_the_rules_hold(void **state) {
  (void)state;
  for (uint64_t run = 0; run < RUNS; run++) {
    world w = {.key = shoal_key_make(run, SHOAL_FOR_SIMULATION, 0, 0)};
    shoal_match *match = new_match();
    for (int call = 0; call < CALLS; call++) {
      if (draw(&w, 4) == 0)
        change_job(&w, match, draw(&w, JOBS));
      else
        change_worker(&w, match, draw(&w, WORKERS));
      check_workers(&w, match);
      check_jobs(&w, match);
      if (draw(&w, 2) == 0) check_moves(&w, match);
    }
    check_moves(&w, match);
    /* Nothing new, no moves. */
    for (size_t i = 0; i < WORKERS; i++)
      if (w.workers[i].id != 0) put_worker(match, w.workers[i]);
    for (size_t j = 0; j < JOBS; j++)
      if (w.jobs[j].id != 0) put_job(match, w.jobs[j]);
    assert_int_equal(drain(match), 0);
    shoal_match_destroy(match);
  }
}

static void the_same_calls_give_the_same_moves(void **state) {
  (void)state;
  world w[2];
  shoal_match *match[2];
  for (int k = 0; k < 2; k++) {
    w[k] = (world){.key = shoal_key_make(77, SHOAL_FOR_SIMULATION, 0, 0)};
    match[k] = new_match();
  }
  for (int call = 0; call < 2000; call++) {
    for (int k = 0; k < 2; k++) {
      if (draw(&w[k], 4) == 0)
        change_job(&w[k], match[k], draw(&w[k], JOBS));
      else
        change_worker(&w[k], match[k], draw(&w[k], WORKERS));
    }
    uint64_t worker[2] = {0}, job[2] = {0};
    while (shoal_match_next(match[0], &worker[0], &job[0])) {
      assert_true(shoal_match_next(match[1], &worker[1], &job[1]));
      assert_int_equal(worker[0], worker[1]);
      assert_int_equal(job[0], job[1]);
    }
    assert_false(shoal_match_next(match[1], &worker[1], &job[1]));
  }
  for (int k = 0; k < 2; k++) shoal_match_destroy(match[k]);
}

/* ---- many ---- */

enum { MANY_WORKERS = 10000, MANY_JOBS = 1000 };

/* Of the processor's time: on a busy machine a call may stand still. */
static double used_s(void) { return (double)clock() / CLOCKS_PER_SEC; }
static double slowest, since;
static void start(void) { since = used_s(); }
static void stop(void) {
  double took = used_s() - since;
  if (took > slowest) slowest = took;
}

static shoal_match_worker nth_worker(uint64_t i) {
  return (shoal_match_worker){.id = i + 1,
                              .memory_bytes = 1000 + i * 37 % 5000,
                              .speed = (double)(i * 7919 % 10007),
                              .host = i % 5 == 0 ? hosts[i % HOSTS] : NULL,
                              .job = i % 7 == 0 ? 1 + i % (2 * MANY_JOBS) : 0};
}

static void report(const char *what, uint32_t calls, double total) {
  printf("match: %-28s %8.1f us a call, %8.1f us the slowest\n", what, 1e6 * total / calls, 1e6 * slowest);
  assert_true(slowest < 1);
  slowest = 0;
}

static void ten_thousand_workers_and_a_thousand_jobs_are_quick(void **state) {
  (void)state;
  shoal_match *match = new_match();
  double begin = shoal_clock_seconds();
  for (uint64_t i = 0; i < MANY_JOBS; i++) {
    start();
    put_job(match, (shoal_match_job){.id = i + 1,
                                     .host = hosts[i % HOSTS],
                                     .least = 1 + (uint32_t)i % 20,
                                     .most = 40,
                                     .memory_bytes = i * 13 % 5000});
    stop();
  }
  report("jobs come", MANY_JOBS, shoal_clock_seconds() - begin);
  begin = shoal_clock_seconds();
  for (uint64_t i = 0; i < MANY_WORKERS; i++) {
    start();
    put_worker(match, nth_worker(i));
    stop();
  }
  report("workers come", MANY_WORKERS, shoal_clock_seconds() - begin);
  begin = shoal_clock_seconds();
  for (uint64_t i = 0; i < MANY_WORKERS; i += 10) {
    start();
    shoal_match_drop_worker(match, i + 1);
    stop();
    start();
    put_worker(match, nth_worker(i));
    stop();
  }
  report("workers go and come", MANY_WORKERS / 5, shoal_clock_seconds() - begin);
  begin = shoal_clock_seconds();
  for (uint64_t i = 0; i < MANY_JOBS; i++) {
    start();
    shoal_match_drop_job(match, i + 1);
    stop();
  }
  report("jobs go", MANY_JOBS, shoal_clock_seconds() - begin);
  start();
  put_job(match, (shoal_match_job){.id = 5000, .least = 1, .most = 20000});
  stop();
  report("one job takes all", 1, slowest);
  start();
  put_job(match, (shoal_match_job){.id = 5001, .least = 4000, .most = 20000});
  stop();
  report("another takes 4,000 of these", 1, slowest);
  assert_int_equal(shoal_match_workers_of(match, 5001), 4000);
  shoal_match_destroy(match);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(jobs_get_their_least_in_order_and_then_one_by_one),
      cmocka_unit_test(a_job_that_comes_takes_what_others_have_beyond_their_least),
      cmocka_unit_test(who_works_is_not_moved_to_a_job_that_cannot_start_then),
      cmocka_unit_test(a_job_that_cannot_begin_holds_nobody_whom_another_could_use),
      cmocka_unit_test(the_first_of_two_jobs_that_wait_begins_when_workers_are_free),
      cmocka_unit_test(a_job_that_has_begun_keeps_fewer_than_its_least),
      cmocka_unit_test(the_slowest_are_moved_and_the_fastest_taken),
      cmocka_unit_test(a_lower_most_gives_workers_back_and_a_dropped_job_all),
      cmocka_unit_test(an_earlier_job_is_filled_up_from_a_later_one_that_waits_in_vain),
      cmocka_unit_test(a_choice_is_kept_and_a_private_job_takes_only_the_invited),
      cmocka_unit_test(a_paused_worker_counts_for_nothing),
      cmocka_unit_test(memory_must_suffice_and_the_reason_says_how_much),
      cmocka_unit_test(wrong_wishes_are_refused),
      cmocka_unit_test(long_names_fit_and_are_not_cut_in_a_character),
      cmocka_unit_test(more_than_there_may_be_are_refused_and_a_place_can_be_used_again),
      cmocka_unit_test(whatever_happens_the_rules_hold),
      cmocka_unit_test(the_same_calls_give_the_same_moves),
      cmocka_unit_test(ten_thousand_workers_and_a_thousand_jobs_are_quick),
  };
  return RUN_TESTS(tests);
}
