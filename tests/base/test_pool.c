#include "check.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/pool.h"

enum { TASKS_MAX = 1000 };

typedef struct record {
  _Atomic uint32_t times[TASKS_MAX]; /* how often each task ran */
  _Atomic uint32_t inside[8];        /* whether each thread is inside a task */
  uint64_t sum[8];                   /* plain, to let a sanitizer see any overlap */
  uint32_t threads;
} record;

static void note(void *context, uint32_t task, uint32_t thread) {
  record *seen = context;
  assert_true(thread < seen->threads);
  assert_int_equal(atomic_fetch_add(&seen->inside[thread], 1), 0);
  atomic_fetch_add(&seen->times[task], 1);
  seen->sum[thread] += task;
  atomic_fetch_sub(&seen->inside[thread], 1);
}

/* 0 threads: no pool, and so the caller alone. */
static void check_runs(uint32_t threads, uint32_t tasks, int runs) {
  shoal_pool *pool = NULL;
  if (threads > 0)
    assert_int_equal(shoal_pool_create(&pool, threads, NULL), SHOAL_OK);
  else
    threads = 1;
  assert_int_equal(shoal_pool_threads(pool), threads);
  for (int run = 0; run < runs; run++) {
    record seen = {.threads = threads};
    shoal_pool_run(pool, tasks, note, &seen);
    uint64_t sum = 0;
    for (uint32_t task = 0; task < TASKS_MAX; task++) assert_int_equal(seen.times[task], task < tasks);
    for (uint32_t thread = 0; thread < 8; thread++) sum += seen.sum[thread];
    assert_int_equal(sum, (uint64_t)tasks * (tasks ? tasks - 1 : 0) / 2);
  }
  shoal_pool_destroy(pool);
}

static void every_task_runs_once_for_any_number_of_threads(void **state) {
  (void)state;
  for (uint32_t threads = 0; threads <= 8; threads++) {
    check_runs(threads, 0, 3);
    check_runs(threads, 1, 3);
    check_runs(threads, 2, 300);
    check_runs(threads, 7, 300);
    check_runs(threads, TASKS_MAX, 20);
  }
}

static void a_pool_that_slept_between_runs_wakes(void **state) {
  (void)state;
  shoal_pool *pool;
  assert_int_equal(shoal_pool_create(&pool, 4, NULL), SHOAL_OK);
  for (int run = 0; run < 20; run++) {
    shoal_clock_sleep(0.002);
    record seen = {.threads = 4};
    shoal_pool_run(pool, 50, note, &seen);
    for (uint32_t task = 0; task < 50; task++) assert_int_equal(seen.times[task], 1);
  }
  shoal_pool_destroy(pool);
}

static void wait_if_not_caller(void *context, uint32_t task, uint32_t thread) {
  (void)task;
  if (thread != 0) shoal_clock_sleep(0.01);
  atomic_fetch_add((_Atomic uint32_t *)context, 1);
}

static void the_caller_waits_for_slow_threads(void **state) {
  (void)state;
  shoal_pool *pool;
  assert_int_equal(shoal_pool_create(&pool, 3, NULL), SHOAL_OK);
  for (int run = 0; run < 10; run++) {
    _Atomic uint32_t finished = 0;
    shoal_pool_run(pool, 6, wait_if_not_caller, &finished);
    assert_int_equal(finished, 6);
  }
  shoal_pool_destroy(pool);
}

static void a_pool_can_end_at_once(void **state) {
  (void)state;
  for (int i = 0; i < 200; i++) {
    shoal_pool *pool;
    assert_int_equal(shoal_pool_create(&pool, 1 + (uint32_t)i % 5, NULL), SHOAL_OK);
    shoal_pool_destroy(pool);
  }
  shoal_pool_destroy(NULL);
}

static void an_impossible_number_of_threads_is_refused(void **state) {
  (void)state;
  shoal_pool *pool;
  shoal_error err;
  assert_int_equal(shoal_pool_create(&pool, 0, &err), SHOAL_INVALID);
  assert_int_equal(shoal_pool_create(&pool, 1000000, &err), SHOAL_INVALID);
  assert_string_equal(err.text, "1000000 threads: must be 1 to 4096");
  assert_null(pool);
}

static void look_for_signals(void *context, uint32_t task, uint32_t thread) {
  (void)task;
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  if (thread != 0 && !sigismember(&mask, SIGINT)) atomic_store((_Atomic bool *)context, true);
}

static void signals_are_left_to_the_caller(void **state) {
  (void)state;
  shoal_pool *pool;
  assert_int_equal(shoal_pool_create(&pool, 4, NULL), SHOAL_OK);
  _Atomic bool reaches_worker = false;
  shoal_pool_run(pool, 100, look_for_signals, &reaches_worker);
  assert_false(reaches_worker);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  assert_false(sigismember(&mask, SIGINT));
  shoal_pool_destroy(pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_task_runs_once_for_any_number_of_threads),
      cmocka_unit_test(a_pool_that_slept_between_runs_wakes),
      cmocka_unit_test(the_caller_waits_for_slow_threads),
      cmocka_unit_test(a_pool_can_end_at_once),
      cmocka_unit_test(an_impossible_number_of_threads_is_refused),
      cmocka_unit_test(signals_are_left_to_the_caller),
  };
  return RUN_TESTS(tests);
}
