/* Chores are done by another thread, in their order, and handed back by tick. */
#include "server/chores.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "check.h"

typedef struct probe {
  int *order, *count; /* of what was handed back */
  int number, ran, handed_back;
  bool told_ran;
  pthread_t by;
  volatile int *gate; /* run waits until it is open; NULL: not */
} probe;

static void run(void *self) {
  probe *p = self;
  while (p->gate != NULL && !__atomic_load_n(p->gate, __ATOMIC_ACQUIRE)) shoal_clock_sleep(0.001);
  p->by = pthread_self();
  p->ran++;
}

static void done(void *self, bool ran) {
  probe *p = self;
  p->order[(*p->count)++] = p->number;
  p->told_ran = ran;
  p->handed_back++;
}

static void wake(void *self) { __atomic_fetch_add((int *)self, 1, __ATOMIC_RELEASE); }

static void wait_for(int *wakes, int count) {
  double until = shoal_clock_seconds() + PATIENCE_S;
  while (__atomic_load_n(wakes, __ATOMIC_ACQUIRE) < count && shoal_clock_seconds() < until)
    shoal_clock_sleep(0.001);
  assert_true(__atomic_load_n(wakes, __ATOMIC_ACQUIRE) >= count);
}

static void chores_are_run_elsewhere_and_handed_back_in_order(void **state) {
  (void)state;
  enum { COUNT = 5 };
  shoal_chores *chores;
  int wakes = 0, order[COUNT], count = 0;
  probe probes[COUNT];
  assert_int_equal(shoal_chores_create(&chores, &wakes, wake, NULL), SHOAL_OK);
  for (int i = 0; i < COUNT; i++) {
    probes[i] = (probe){.order = order, .count = &count, .number = i};
    assert_true(shoal_chores_add(chores, &(shoal_chore){"some", &probes[i], run, done}));
  }
  wait_for(&wakes, COUNT);
  assert_int_equal(count, 0);
  assert_true(shoal_chores_has(chores, "some"));
  shoal_chores_tick(chores);
  assert_false(shoal_chores_has(chores, "some"));
  assert_int_equal(count, COUNT);
  for (int i = 0; i < COUNT; i++) {
    assert_int_equal(order[i], i);
    assert_true(probes[i].ran == 1 && probes[i].handed_back == 1 && probes[i].told_ran);
    assert_false(pthread_equal(probes[i].by, pthread_self()));
  }
  shoal_chores_destroy(chores);
  assert_int_equal(count, COUNT);
}

static void too_many_are_refused_and_the_end_hands_all_back(void **state) {
  (void)state;
  shoal_chores *chores;
  volatile int gate = 0;
  int wakes = 0, order[SHOAL_CHORES_MAX], count = 0;
  static probe probes[SHOAL_CHORES_MAX];
  assert_int_equal(shoal_chores_create(&chores, &wakes, wake, NULL), SHOAL_OK);
  for (int i = 0; i < SHOAL_CHORES_MAX; i++) {
    probes[i] = (probe){.order = order, .count = &count, .number = i, .gate = &gate};
    assert_true(shoal_chores_add(chores, &(shoal_chore){i == 0 ? "first" : "x", &probes[i], run, done}));
  }
  probe one_more = {.order = order, .count = &count};
  assert_false(shoal_chores_add(chores, &(shoal_chore){"x", &one_more, run, done}));
  assert_true(shoal_chores_has(chores, "first"));
  assert_false(shoal_chores_has(chores, "other"));
  __atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
  wait_for(&wakes, 1);
  shoal_chores_destroy(chores);
  assert_int_equal(count, SHOAL_CHORES_MAX);
  for (int i = 0; i < SHOAL_CHORES_MAX; i++) {
    assert_int_equal(order[i], i);
    assert_true(probes[i].handed_back == 1 && probes[i].told_ran == (probes[i].ran == 1));
  }
  assert_int_equal(probes[0].ran, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(chores_are_run_elsewhere_and_handed_back_in_order),
      cmocka_unit_test(too_many_are_refused_and_the_end_hands_all_back),
  };
  return RUN_TESTS(tests);
}
