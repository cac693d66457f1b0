/* Virtual time and the network in it: what arrives, when, in which order, and what never does. */
#include "check.h"
#include "sim/world.h"

static const shoal_world_link LINK = {.rate = 1000, .latency_s = 0.5};
enum { HEADER = SHOAL_HEADER_BYTES };

static shoal_world *world_of(uint32_t nodes, const shoal_world_link *link) {
  shoal_world *w =
      shoal_world_create(&(shoal_world_rules){.seed = 1, .push_scale = 1, .pull_scale = 1}, nodes);
  for (uint32_t i = 0; i < nodes; i++) shoal_world_up(w, shoal_world_add(w, link));
  return w;
}

/* Opens a connection and hears of it at both ends. */
static uint64_t connect(shoal_world *w, uint32_t from, uint32_t to) {
  uint64_t connection = shoal_world_dial(w, from, to);
  shoal_happening h;
  assert_true(shoal_world_next(w, &h));
  assert_int_equal(h.kind, SHOAL_WORLD_OPENED);
  assert_int_equal(h.node, to);
  assert_true(shoal_world_next(w, &h));
  assert_int_equal(h.node, from);
  return connection;
}

/* A message whose number is in `round`, with so many bytes in all. */
static void send(shoal_world *w, uint64_t connection, uint32_t from, uint64_t number, size_t bytes) {
  shoal_blob *payload = bytes > HEADER ? shoal_blob_create(bytes - HEADER) : NULL;
  shoal_world_send(w, connection, from,
                   (shoal_packet){.message = {.kind = SHOAL_MSG_PUSH, .round = number, .payload = payload}});
}

static uint64_t arrives(shoal_world *w, uint32_t node) {
  shoal_happening h;
  assert_true(shoal_world_next(w, &h));
  assert_int_equal(h.kind, SHOAL_WORLD_ARRIVED);
  assert_int_equal(h.node, node);
  shoal_message_release(&h.packet.message);
  return h.packet.message.round;
}

static void assert_now(shoal_world *w, double expected) {
  assert_true(shoal_world_now(w) > expected - 1e-9 && shoal_world_now(w) < expected + 1e-9);
}

static void a_message_takes_its_bytes_and_the_latency(void **state) {
  (void)state;
  shoal_world *w = world_of(2, &LINK);
  uint64_t c = connect(w, 0, 1);
  double start = shoal_world_now(w);
  send(w, c, 0, 1, 1000);
  send(w, c, 0, 2, 500);
  assert_int_equal(arrives(w, 1), 1);
  assert_now(w, start + 1.5);
  assert_int_equal(arrives(w, 1), 2);
  assert_now(w, start + 2);
  shoal_world_destroy(w);
}

static void many_who_send_to_one_share_its_link(void **state) {
  (void)state;
  enum { SENDERS = 4 };
  shoal_world *w = world_of(1 + SENDERS, &LINK);
  uint64_t c[SENDERS];
  for (uint32_t i = 0; i < SENDERS; i++) c[i] = connect(w, 1 + i, 0);
  double start = shoal_world_now(w);
  for (uint32_t i = 0; i < SENDERS; i++) send(w, c[i], 1 + i, i, 1000);
  for (uint32_t i = 0; i < SENDERS; i++) arrives(w, 0);
  assert_now(w, start + 0.5 + SENDERS);
  shoal_world_destroy(w);
}

static void what_had_not_left_a_dead_node_never_arrives(void **state) {
  (void)state;
  shoal_world *w = world_of(2, &LINK);
  uint64_t c = connect(w, 0, 1);
  for (uint64_t i = 1; i <= 3; i++) send(w, c, 0, i, 1000);
  shoal_world_wake(w, SHOAL_WORLD_NOBODY, shoal_world_now(w) + 1.2, 7);
  shoal_happening h;
  assert_true(shoal_world_next(w, &h));
  assert_int_equal(h.tag, 7);
  shoal_world_down(w, 0, false);
  assert_int_equal(arrives(w, 1), 1);
  assert_true(shoal_world_next(w, &h)); /* and then the end, told by the process's system */
  assert_int_equal(h.kind, SHOAL_WORLD_CLOSED);
  assert_false(shoal_world_next(w, &h));
  assert_int_equal(shoal_world_count(w).lost, 2);
  shoal_world_destroy(w);
}

static void a_machine_without_power_tells_nobody(void **state) {
  (void)state;
  shoal_world *w = world_of(2, &LINK);
  uint64_t c = connect(w, 0, 1);
  shoal_world_down(w, 0, true);
  send(w, c, 1, 1, 100);
  shoal_happening h;
  assert_false(shoal_world_next(w, &h));
  /* Once it is up again it does not know the connection, and says so. */
  shoal_world_up(w, 0);
  send(w, c, 1, 2, 100);
  assert_true(shoal_world_next(w, &h));
  assert_int_equal(h.kind, SHOAL_WORLD_CLOSED);
  assert_int_equal(h.node, 1);
  shoal_world_destroy(w);
}

static void a_partition_holds_up_and_then_lets_through_in_order(void **state) {
  (void)state;
  shoal_world *w = world_of(2, &LINK);
  uint64_t c = connect(w, 0, 1);
  shoal_world_group(w, 1, 1);
  for (uint64_t i = 1; i <= 5; i++) send(w, c, 0, i, 200);
  shoal_world_wake(w, SHOAL_WORLD_NOBODY, shoal_world_now(w) + 20, 7);
  shoal_happening h;
  assert_true(shoal_world_next(w, &h));
  assert_int_equal(h.tag, 7);
  shoal_world_group(w, 1, 0);
  for (uint64_t i = 1; i <= 5; i++) assert_int_equal(arrives(w, 1), i);
  shoal_world_destroy(w);
}

static void a_cut_loses_what_is_under_way_and_both_hear_of_it(void **state) {
  (void)state;
  shoal_world *w = world_of(2, &LINK);
  uint64_t c = connect(w, 0, 1);
  send(w, c, 0, 1, 1000);
  assert_true(shoal_world_cut(w, c));
  assert_false(shoal_world_cut(w, c));
  bool heard[2] = {false, false};
  shoal_happening h;
  while (shoal_world_next(w, &h)) {
    assert_int_equal(h.kind, SHOAL_WORLD_CLOSED);
    heard[h.node] = true;
  }
  assert_true(heard[0] && heard[1]);
  shoal_world_destroy(w);
}

static void nobody_answers_where_nobody_is(void **state) {
  (void)state;
  shoal_world *w = world_of(2, &LINK);
  shoal_world_down(w, 1, false);
  uint64_t c = shoal_world_dial(w, 0, 1);
  shoal_happening h;
  assert_true(shoal_world_next(w, &h));
  assert_int_equal(h.kind, SHOAL_WORLD_CLOSED);
  assert_int_equal(h.connection, c);
  assert_now(w, 1); /* refused at once: there and back */
  shoal_world_destroy(w);
}

static void some_messages_come_twice_or_late_but_none_is_lost(void **state) {
  (void)state;
  enum { SENT = 500 };
  shoal_world *w = shoal_world_create(
      &(shoal_world_rules){.seed = 3, .push_scale = 1, .pull_scale = 1, .twice = 0.2, .late = 0.2}, 2);
  shoal_world_link fast = {.rate = 1e6, .latency_s = 0.001};
  for (int i = 0; i < 2; i++) shoal_world_up(w, shoal_world_add(w, &fast));
  uint64_t c = connect(w, 0, 1), last = 0;
  for (uint64_t i = 0; i < SENT; i++) send(w, c, 0, i, 100);
  uint32_t count[SENT] = {0}, overtaken = 0;
  shoal_happening h;
  while (shoal_world_next(w, &h)) {
    count[h.packet.message.round]++;
    overtaken += h.packet.message.round < last;
    last = h.packet.message.round;
    shoal_message_release(&h.packet.message);
  }
  uint32_t twice = 0;
  for (uint64_t i = 0; i < SENT; i++) {
    assert_true(count[i] == 1 || count[i] == 2);
    twice += count[i] == 2;
  }
  assert_int_equal(twice, shoal_world_count(w).twice);
  assert_true(twice > SENT / 10 && overtaken > SENT / 10);
  shoal_world_destroy(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_message_takes_its_bytes_and_the_latency),
      cmocka_unit_test(many_who_send_to_one_share_its_link),
      cmocka_unit_test(what_had_not_left_a_dead_node_never_arrives),
      cmocka_unit_test(a_machine_without_power_tells_nobody),
      cmocka_unit_test(a_partition_holds_up_and_then_lets_through_in_order),
      cmocka_unit_test(a_cut_loses_what_is_under_way_and_both_hear_of_it),
      cmocka_unit_test(nobody_answers_where_nobody_is),
      cmocka_unit_test(some_messages_come_twice_or_late_but_none_is_lost),
  };
  return RUN_TESTS(tests);
}
