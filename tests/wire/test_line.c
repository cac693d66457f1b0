/* A line dials again and again, ever more seldom; beats when nothing is said; and gives up on silence, but
 * not on a long message. Time is the test's own, except where bytes come. */
#include "wire/line.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "check.h"

static const shoal_way WAY = {.wire = SHOAL_WIRE_RAW};

/* The lines of this test are told what their net tells. */
typedef struct home {
  shoal_net *net;
  shoal_line line;
  double now; /* what callbacks take the time for */
  int opened, heard, closed;
} home;

static void opened(void *self, uint64_t peer, const char *address) {
  (void)address;
  home *h = self;
  h->opened += shoal_line_opened(&h->line, peer, h->now);
}

static void received(void *self, uint64_t peer, shoal_message *message) {
  home *h = self;
  h->heard += shoal_line_heard(&h->line, peer, h->now);
  shoal_message_release(message);
}

static void closed(void *self, uint64_t peer, const char *reason) {
  (void)reason;
  home *h = self;
  h->closed += shoal_line_closed(&h->line, peer, h->now);
}

static void start(home *h, const char *address, double now) {
  *h = (home){.now = now};
  const shoal_net_config config = {.calls = {h, opened, received, closed, NULL},
                                   .payload_max = 1 << 20,
                                   .connections_max = 8,
                                   .hello_s = 10,
                                   .stall_s = 10};
  shoal_error err;
  if (shoal_net_create(&h->net, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_line_init(&h->line, address, now);
}

static void a_line_to_nobody_tries_ever_more_seldom(void **state) {
  (void)state;
  home h;
  start(&h, "#:9", 100);
  double wait_s = 0.05;
  for (int tries = 1; tries <= 10; tries++) {
    assert_true(shoal_line_next(&h.line) == h.now);
    shoal_line_tick(&h.line, h.net, &WAY, h.now);
    assert_int_not_equal(h.line.peer, 0);
    assert_true(isinf(shoal_line_next(&h.line))); /* the net tells what comes of it */
    shoal_net_run(h.net, 0);
    assert_int_equal(h.closed, tries);
    assert_int_equal(h.line.peer, 0);
    assert_true(shoal_line_next(&h.line) == h.now + wait_s);
    shoal_line_tick(&h.line, h.net, &WAY, h.now + wait_s / 2); /* too early */
    assert_int_equal(h.line.peer, 0);
    h.now += wait_s;
    wait_s = fmin(2 * wait_s, 3);
  }
  assert_true(h.line.down_since == 100); /* it was never up */
  shoal_net_destroy(h.net);
}

/* A line that is open, though its net knows nothing of it. */
static void open_line(home *h) {
  start(h, "#:9", 100);
  h->line.peer = 12345;
  assert_false(shoal_line_opened(&h->line, 54321, h->now));
  assert_true(shoal_line_opened(&h->line, 12345, h->now));
}

static void a_line_beats_when_nothing_is_said(void **state) {
  (void)state;
  home h;
  open_line(&h);
  double every_s = shoal_line_beat.every_s;
  assert_true(shoal_line_next(&h.line) == 100 + every_s);
  shoal_line_tick(&h.line, h.net, &WAY, 100 + every_s / 2);
  assert_true(h.line.beat.said == 100);
  shoal_line_tick(&h.line, h.net, &WAY, 100 + every_s);
  assert_true(h.line.beat.said == 100 + every_s);
  h.line.beat.said += 1; /* something else was said */
  shoal_line_tick(&h.line, h.net, &WAY, 100.5 + 2 * every_s);
  assert_true(h.line.beat.said == 101 + every_s);
  shoal_net_destroy(h.net);
}

static void a_silent_line_is_given_up_and_dialled_again(void **state) {
  (void)state;
  home h;
  open_line(&h);
  double silence_s = shoal_line_beat.silence_s;
  assert_true(shoal_line_heard(&h.line, 12345, 110));
  assert_false(shoal_line_heard(&h.line, 54321, 130));
  shoal_line_tick(&h.line, h.net, &WAY, 109 + silence_s);
  assert_true(h.line.beat.said == 109 + silence_s); /* it still beats */
  shoal_line_tick(&h.line, h.net, &WAY, 110 + silence_s);
  assert_true(h.line.beat.said == 109 + silence_s); /* it does not: it closes */
  assert_false(shoal_line_closed(&h.line, 54321, 111 + silence_s));
  assert_true(shoal_line_closed(&h.line, 12345, 111 + silence_s));
  assert_false(h.line.open);
  assert_true(h.line.down_since == 111 + silence_s);
  assert_true(shoal_line_next(&h.line) == h.line.down_since + 0.05); /* it had been up: no long wait */
  shoal_net_destroy(h.net);
}

static void a_refused_line_waits_long(void **state) {
  (void)state;
  home h;
  open_line(&h);
  shoal_line_refused(&h.line, h.net);
  assert_true(shoal_line_closed(&h.line, 12345, 110));
  assert_true(shoal_line_next(&h.line) == 113);
  shoal_net_destroy(h.net);
}

/* Whatever came from the other end counts, though the line was not told of a message. */
static void signs_of_life_count_without_a_message(void **state) {
  (void)state;
  home here, there;
  double now = shoal_clock_seconds();
  start(&here, "#:3", now);
  start(&there, "", now);
  uint16_t port;
  assert_int_equal(shoal_net_listen(there.net, "#:3", &port, NULL), SHOAL_OK);
  shoal_line_tick(&here.line, here.net, &WAY, now);
  for (int i = 0; i < 10 && here.opened == 0; i++) {
    shoal_net_run(there.net, 0);
    shoal_net_run(here.net, 0);
  }
  assert_int_equal(here.opened, 1);
  double silence_s = shoal_line_beat.silence_s;
  here.line.beat.heard = now - silence_s - 1; /* long ago; but the connection is new */
  shoal_line_tick(&here.line, here.net, &WAY, shoal_clock_seconds());
  assert_true(here.line.beat.heard >= now);
  for (int i = 0; i < 10; i++) shoal_net_run(here.net, 0);
  assert_int_equal(here.closed, 0);
  /* Time goes on, and nothing comes. */
  shoal_line_tick(&here.line, here.net, &WAY, shoal_clock_seconds() + silence_s);
  for (int i = 0; i < 10; i++) shoal_net_run(here.net, 0);
  assert_int_equal(here.closed, 1);
  shoal_net_destroy(here.net);
  shoal_net_destroy(there.net);
}

static char last_note[200];
static int notes_count;

static void note(void *self, const char *text) {
  (void)self;
  snprintf(last_note, sizeof last_note, "%s", text);
  notes_count++;
}

static void that_nobody_is_there_is_said_now_and_then(void **state) {
  (void)state;
  const shoal_notes notes = {.note = note};
  shoal_told told = {0};
  shoal_line_say_missing("the chief", "no route", &notes, &told, 100);
  assert_string_equal(last_note, "waiting for the chief: no route; trying again");
  shoal_line_say_missing("the chief", "no route", &notes, &told, 159);
  assert_int_equal(notes_count, 1);
  shoal_line_say_missing("the chief", "no route", &notes, &told, 160);
  assert_int_equal(notes_count, 2);
  shoal_line_say_missing("the chief", "no such name", &notes, &told, 161);
  assert_string_equal(last_note,
                      "waiting for the chief: no such name; trying again"); /* another cause, at once */
  shoal_line_say_missing("the chief", "no route", &notes, &told, 162);
  shoal_line_say_missing("the chief", "no such name", &notes, &told, 163);
  assert_int_equal(notes_count, 3); /* both are known */
  told = (shoal_told){0};           /* it was there in between */
  shoal_line_say_missing("the chief", "no route", &notes, &told, 164);
  assert_int_equal(notes_count, 4);
}

/* Whoever is there takes connections and says nothing: it is no chief. */
static void what_never_speaks_is_closed_early_and_was_not_lost(void **state) {
  (void)state;
  home here, there;
  double now = shoal_clock_seconds();
  start(&here, "#:3", now);
  start(&there, "", now);
  uint16_t port;
  assert_int_equal(shoal_net_listen(there.net, "#:3", &port, NULL), SHOAL_OK);
  shoal_line_tick(&here.line, here.net, &WAY, now);
  for (int i = 0; i < 10 && here.opened == 0; i++) {
    shoal_net_run(there.net, 0);
    shoal_net_run(here.net, 0);
  }
  assert_int_equal(here.opened, 1);
  shoal_line_tick(&here.line, here.net, &WAY, now + 9);
  for (int i = 0; i < 10; i++) shoal_net_run(here.net, 0);
  assert_int_equal(here.closed, 0);
  shoal_line_tick(&here.line, here.net, &WAY, now + 11);
  here.now = now + 11;
  for (int i = 0; i < 10; i++) shoal_net_run(here.net, 0);
  assert_int_equal(here.closed, 1);
  assert_true(here.line.down_since == now); /* it was never up */
  assert_true(here.line.wait_s > 0.05);     /* and is tried more seldom */
  shoal_net_destroy(here.net);
  shoal_net_destroy(there.net);
}

static void why_a_line_closed_is_told_as_what_it_is(void **state) {
  (void)state;
  const shoal_notes notes = {.note = note};
  home h;
  notes_count = 0;
  open_line(&h);
  shoal_line_say_closed(&h.line, "the chief", "no Shoal message", true, &notes, 100);
  assert_string_equal(last_note,
                      "waiting for the chief: something answers at #:9, but not as Shoal does: no Shoal "
                      "message; trying for 10 minutes");
  assert_true(shoal_line_closed(&h.line, 12345, 100));
  shoal_line_say_closed(&h.line, "the chief", "no route", true, &notes, 101);
  assert_string_equal(last_note, "waiting for the chief: no route; trying for 10 minutes");
  assert_true(shoal_line_waited(&h.line));
  assert_false(shoal_line_waited(&h.line));
  h.line.peer = 12345;
  assert_true(shoal_line_opened(&h.line, 12345, 170));
  assert_true(shoal_line_heard(&h.line, 12345, 171));
  shoal_line_say_closed(&h.line, "ps 1", "it fell", false, &notes, 172);
  assert_string_equal(last_note, "lost ps 1: it fell; trying again");
  shoal_line_refused(&h.line, h.net); /* which was told with its reason */
  shoal_line_say_closed(&h.line, "ps 1", "refused", false, &notes, 300);
  assert_int_equal(notes_count, 3);
  shoal_net_destroy(h.net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_line_to_nobody_tries_ever_more_seldom),
      cmocka_unit_test(a_line_beats_when_nothing_is_said),
      cmocka_unit_test(a_silent_line_is_given_up_and_dialled_again),
      cmocka_unit_test(a_refused_line_waits_long),
      cmocka_unit_test(signs_of_life_count_without_a_message),
      cmocka_unit_test(that_nobody_is_there_is_said_now_and_then),
      cmocka_unit_test(what_never_speaks_is_closed_early_and_was_not_lost),
      cmocka_unit_test(why_a_line_closed_is_told_as_what_it_is),
  };
  return RUN_TESTS(tests);
}
