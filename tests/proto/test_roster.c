/* The roster against a plain array. */
#include "proto/roster.h"

#include <string.h>

#include "base/random.h"
#include "check.h"

enum { ENTRIES = 200, STEPS = 20000 };

typedef struct thing {
  shoal_roster_entry entry;
  bool in;
} thing;

static bool before(const shoal_roster_entry *a, const shoal_roster_entry *b) {
  return a->number != b->number ? a->number < b->number : a->serial < b->serial;
}

static void check_against_array(const shoal_roster *roster, const thing *things, uint64_t amount) {
  const thing *first = NULL, *last = NULL;
  uint32_t count = 0, all = 0;
  for (int i = 0; i < ENTRIES; i++) {
    const thing *t = &things[i];
    all += t->in;
    if (!t->in || t->entry.amount < amount) continue;
    count++;
    if (first == NULL || before(&t->entry, &first->entry)) first = t;
    if (last == NULL || before(&last->entry, &t->entry)) last = t;
  }
  assert_ptr_equal(shoal_roster_first(roster, amount), first);
  assert_ptr_equal(shoal_roster_last(roster, amount), last);
  assert_int_equal(shoal_roster_count(roster, amount, ENTRIES), count);
  assert_int_equal(shoal_roster_count(roster, amount, 3), count < 3 ? count : 3);
  assert_int_equal(roster->count, all);
}

static void the_first_and_last_that_fit_are_found_whatever_came_and_went(void **state) {
  (void)state;
  shoal_roster roster = {0};
  static thing things[ENTRIES];
  memset(things, 0, sizeof things);
  shoal_key key = shoal_key_make(1, SHOAL_FOR_SIMULATION, 0, 0);
  for (uint64_t step = 0; step < STEPS; step++) {
    thing *t = &things[shoal_random_below(key, 4 * step, ENTRIES)];
    if (t->in) {
      shoal_roster_remove(&t->entry);
    } else {
      t->entry.number = shoal_random_below(key, 4 * step + 1, 9);
      t->entry.serial = (uint64_t)(t - things);
      t->entry.amount = shoal_random_below(key, 4 * step + 2, 50);
      t->entry.owner = t;
      shoal_roster_add(&roster, &t->entry);
    }
    t->in = !t->in;
    check_against_array(&roster, things, shoal_random_below(key, 4 * step + 3, 52));
  }
}

static void an_empty_one_has_nothing(void **state) {
  (void)state;
  shoal_roster roster = {0};
  shoal_roster_entry entry = {0};
  assert_null(shoal_roster_first(&roster, 0));
  assert_null(shoal_roster_last(&roster, 0));
  assert_int_equal(shoal_roster_count(&roster, 0, 9), 0);
  shoal_roster_remove(&entry);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_first_and_last_that_fit_are_found_whatever_came_and_went),
      cmocka_unit_test(an_empty_one_has_nothing),
  };
  return RUN_TESTS(tests);
}
