/* What becomes of letters until a broker has confirmed them. */
#include "queue/outgoing.h"

#include <math.h>
#include <string.h>

#include "check.h"

static shoal_outgoing outgoing;
static uint64_t tags;

static int begin(void **state) {
  (void)state;
  tags = 0;
  shoal_outgoing_init(&outgoing);
  return 0;
}

static int end(void **state) {
  (void)state;
  shoal_outgoing_release(&outgoing);
  return 0;
}

/* One letter for each character, to the queue of that name. */
static void add(const char *letters) {
  for (; *letters != 0; letters++) {
    char name[2] = {*letters, 0};
    assert_true(shoal_outgoing_add(&outgoing, name, letters, 1));
  }
}

/* Sends all that can be, under the next tags, and compares which those are. */
static void sends(const char *expected, double now) {
  char seen[32] = "";
  size_t count = 0;
  for (const shoal_letter *letter; (letter = shoal_outgoing_next(&outgoing, now)) != NULL;) {
    assert_int_equal(letter->length, 1);
    assert_int_equal(letter->bytes[0], letter->queue[0]);
    assert_true(count < sizeof seen - 1);
    seen[count++] = letter->queue[0];
    shoal_outgoing_sent(&outgoing, ++tags);
  }
  assert_string_equal(seen, expected);
}

static void a_letter_is_gone_once_it_is_confirmed(void **state) {
  (void)state;
  add("abc");
  assert_int_equal(shoal_outgoing_count(&outgoing), 3);
  assert_int_equal(shoal_outgoing_bytes(&outgoing), 3);
  sends("abc", 0);
  assert_int_equal(shoal_outgoing_confirm(&outgoing, 2, false), 1);
  assert_int_equal(shoal_outgoing_count(&outgoing), 2);
  assert_int_equal(shoal_outgoing_confirm(&outgoing, 2, false), 0);
  assert_int_equal(shoal_outgoing_confirm(&outgoing, 7, false), 0);
  assert_int_equal(shoal_outgoing_confirm(&outgoing, 3, true), 2);
  assert_int_equal(shoal_outgoing_count(&outgoing), 0);
  assert_int_equal(shoal_outgoing_bytes(&outgoing), 0);
  add("d");
  sends("d", 0);
}

static void what_was_sent_and_lost_goes_first_and_in_order(void **state) {
  (void)state;
  add("abcd");
  sends("abcd", 0);
  shoal_outgoing_confirm(&outgoing, 2, false);
  add("ef");
  shoal_outgoing_lost(&outgoing);
  tags = 0;
  add("g");
  sends("acdefg", 0);
  shoal_outgoing_lost(&outgoing);
  shoal_outgoing_lost(&outgoing);
  tags = 0;
  sends("acdefg", 0);
  assert_int_equal(shoal_outgoing_confirm(&outgoing, 6, true), 6);
  shoal_outgoing_lost(&outgoing);
  sends("", 0);
}

static void a_refused_letter_rests_longer_each_time_and_holds_up_nobody(void **state) {
  (void)state;
  double now = 100, rested = 0;
  add("abc");
  sends("abc", now);
  assert_true(isinf(shoal_outgoing_due(&outgoing)));
  for (int i = 0; i < 10; i++) {
    assert_int_equal(shoal_outgoing_refuse(&outgoing, i == 0 ? 2 : tags, false, now), 1);
    double rest = shoal_outgoing_due(&outgoing) - now;
    assert_true(rest >= rested && rest <= 1.001);
    assert_true(rest > rested || rest > 0.99);
    rested = rest;
    add("x");
    sends("x", now); /* another goes on */
    shoal_outgoing_confirm(&outgoing, tags, false);
    sends("", now + rest / 2);
    now += rest + 0.0001;
    sends("b", now);
  }
  assert_int_equal(shoal_outgoing_confirm(&outgoing, tags, true), 3);
}

static void several_can_be_refused_at_once(void **state) {
  (void)state;
  add("abcd");
  sends("abcd", 0);
  assert_int_equal(shoal_outgoing_refuse(&outgoing, 3, true, 0), 3);
  add("e");
  sends("abce", 1);
  assert_int_equal(shoal_outgoing_count(&outgoing), 5);
}

static void it_knows_whether_the_first_so_many_are_done(void **state) {
  (void)state;
  add("abc");
  assert_true(shoal_outgoing_has(&outgoing, 1));
  sends("abc", 0);
  shoal_outgoing_confirm(&outgoing, 1, false);
  assert_false(shoal_outgoing_has(&outgoing, 1));
  assert_true(shoal_outgoing_has(&outgoing, 2));
  shoal_outgoing_refuse(&outgoing, 2, false, 0);
  assert_true(shoal_outgoing_has(&outgoing, 2));
  sends("b", 9);
  shoal_outgoing_confirm(&outgoing, tags, false);
  assert_false(shoal_outgoing_has(&outgoing, 2));
  assert_true(shoal_outgoing_has(&outgoing, 3));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_letter_is_gone_once_it_is_confirmed, begin, end),
      cmocka_unit_test_setup_teardown(what_was_sent_and_lost_goes_first_and_in_order, begin, end),
      cmocka_unit_test_setup_teardown(a_refused_letter_rests_longer_each_time_and_holds_up_nobody, begin,
                                      end),
      cmocka_unit_test_setup_teardown(several_can_be_refused_at_once, begin, end),
      cmocka_unit_test_setup_teardown(it_knows_whether_the_first_so_many_are_done, begin, end),
  };
  return RUN_TESTS(tests);
}
