/* The chief alone: what it does when parts of what it waits for are lost. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "proto/chief.h"

enum { PARTS = 2, ROUNDS = 3, WORKER = 1, OTHER = 2, OWNER = 10 };

static shoal_chief *chief_of(uint64_t start, double save_s) {
  shoal_mode mode;
  assert_int_equal(shoal_mode_parse("sync", &mode, NULL), SHOAL_OK);
  shoal_chief_config config = {
      .parts = PARTS,
      .rounds = ROUNDS,
      .end = ROUNDS,
      .mode = mode,
      .owners = 1,
      .workers_max = 4,
      .beat = {.every_s = 1000, .silence_s = 100000},
      .lost_s = 10,
      .save_s = save_s,
      .leases = {.holders_max = 2, .patience = 2, .first_s = 5, .least_s = 1},
      .job = "{}",
      .start = {.generation = 3, .version = start},
  };
  shoal_chief *chief;
  assert_int_equal(shoal_chief_create(&chief, &config, NULL), SHOAL_OK);
  return chief;
}

static void receive(shoal_chief *chief, uint64_t peer, shoal_message m, double now) {
  m.generation = shoal_chief_generation(chief);
  shoal_chief_receive(chief, peer, &m, now);
}

static void hello(shoal_chief *chief, uint64_t peer, uint32_t role, uint64_t version, bool kept, double now) {
  receive(chief, peer,
          (shoal_message){.kind = SHOAL_MSG_HELLO, .count = role, .version = version, .lease = kept}, now);
}

/* The last letter of this kind to a peer; false when there is none. The outbox is empty afterwards. */
static bool said(shoal_chief *chief, uint64_t peer, shoal_message_kind kind, shoal_message *out) {
  shoal_letter letter;
  bool found = false;
  while (shoal_outbox_take(shoal_chief_outbox(chief), &letter)) {
    if (letter.peer == peer && letter.message.kind == kind) {
      found = true;
      if (out != NULL) *out = letter.message;
    }
    shoal_message_release(&letter.message);
  }
  return found;
}

static bool told(shoal_chief *chief, shoal_chief_event_kind kind) {
  shoal_chief_event event;
  bool found = false;
  while (shoal_chief_next_event(chief, &event)) found |= event.kind == kind;
  return found;
}

/* An owner and a worker are here, and the owner is where it should be. */
static void gather(shoal_chief *chief, double now) {
  hello(chief, OWNER, SHOAL_ROLE_OWNER, 0, false, now);
  shoal_message restore;
  assert_true(said(chief, OWNER, SHOAL_MSG_RESTORE, &restore));
  receive(chief, OWNER, (shoal_message){.kind = SHOAL_MSG_RESTORED, .version = restore.version}, now);
  assert_true(shoal_chief_running(chief));
  hello(chief, WORKER, SHOAL_ROLE_WORKER, 0, false, now);
  told(chief, SHOAL_CHIEF_BACK);
}

static void ask(shoal_chief *chief, uint64_t worker, double now) {
  receive(chief, worker, (shoal_message){.kind = SHOAL_MSG_ASK, .count = 1}, now);
}

static void done(shoal_chief *chief, uint64_t worker, const shoal_message *lease, double now) {
  shoal_sums sums = {.loss = 1, .weight = 1};
  receive(chief, worker,
          (shoal_message){.kind = SHOAL_MSG_DONE,
                          .lease = lease->lease,
                          .round = lease->round,
                          .shard = lease->shard,
                          .payload = shoal_blob_of(&sums, sizeof sums)},
          now);
}

static void applied(shoal_chief *chief, uint64_t version, double now) {
  receive(chief, OWNER, (shoal_message){.kind = SHOAL_MSG_APPLIED, .version = version}, now);
}

/* One worker computes a whole round. */
static void make_round(shoal_chief *chief, uint64_t version, double now) {
  shoal_message lease;
  ask(chief, WORKER, now);
  assert_true(said(chief, WORKER, SHOAL_MSG_LEASE, &lease));
  assert_int_equal(lease.round, version);
  assert_int_equal(lease.count, PARTS);
  done(chief, WORKER, &lease, now);
  applied(chief, version + 1, now);
}

/* A worker is lost after its contribution arrived and before its report did. The owner is past the
 * version that somebody else would need: only going back helps. */
static void a_lost_report_takes_all_back(void **state) {
  (void)state;
  shoal_chief *chief = chief_of(0, 1000);
  gather(chief, 0);
  ask(chief, WORKER, 0);
  assert_true(said(chief, WORKER, SHOAL_MSG_LEASE, NULL));
  applied(chief, 1, 1);
  shoal_chief_gone(chief, WORKER, "test", 2);
  hello(chief, OTHER, SHOAL_ROLE_WORKER, 0, false, 3);
  ask(chief, OTHER, 3);
  assert_false(said(chief, OTHER, SHOAL_MSG_LEASE, NULL)); /* there is nothing that it could do */
  assert_true(shoal_chief_next_tick(chief) <= 11);
  told(chief, SHOAL_CHIEF_BACK);
  shoal_chief_tick(chief, 11.5);
  assert_true(told(chief, SHOAL_CHIEF_BACK));
  assert_true(said(chief, OWNER, SHOAL_MSG_RESTORE, NULL));
  shoal_chief_destroy(chief);
}

static void a_rest_is_told_again_when_an_owner_was_lost(void **state) {
  (void)state;
  shoal_chief *chief = chief_of(0, 1000);
  gather(chief, 0);
  make_round(chief, 0, 1);
  shoal_chief_rest(chief, 2);
  receive(chief, OWNER, (shoal_message){.kind = SHOAL_MSG_SAVED, .version = 1}, 3);
  assert_true(told(chief, SHOAL_CHIEF_REST));
  shoal_chief_gone(chief, OWNER, "test", 4);
  hello(chief, OWNER + 1, SHOAL_ROLE_OWNER, 1, true, 5);
  assert_true(told(chief, SHOAL_CHIEF_REST));
  shoal_chief_destroy(chief);
}

static void going_on_counts_while_an_owner_is_away(void **state) {
  (void)state;
  shoal_chief *chief = chief_of(0, 1000);
  gather(chief, 0);
  make_round(chief, 0, 1);
  shoal_chief_rest(chief, 2);
  receive(chief, OWNER, (shoal_message){.kind = SHOAL_MSG_SAVED, .version = 1}, 3);
  assert_true(told(chief, SHOAL_CHIEF_REST));
  shoal_chief_gone(chief, OWNER, "test", 4);
  shoal_chief_go_on(chief, 4);
  hello(chief, OWNER, SHOAL_ROLE_OWNER, 1, true, 5);
  assert_false(told(chief, SHOAL_CHIEF_REST));
  make_round(chief, 1, 6);
  shoal_chief_destroy(chief);
}

static void a_chief_that_starts_at_the_end_rests(void **state) {
  (void)state;
  shoal_chief *chief = chief_of(ROUNDS, 1000);
  told(chief, SHOAL_CHIEF_BACK);
  hello(chief, OWNER, SHOAL_ROLE_OWNER, 0, false, 0);
  receive(chief, OWNER, (shoal_message){.kind = SHOAL_MSG_RESTORED, .version = ROUNDS}, 1);
  assert_true(told(chief, SHOAL_CHIEF_REST));
  shoal_chief_destroy(chief);
}

static void an_owner_that_is_lost_while_it_saves_is_asked_again(void **state) {
  (void)state;
  shoal_chief *chief = chief_of(0, 1000);
  gather(chief, 0);
  make_round(chief, 0, 1);
  shoal_chief_rest(chief, 2);
  assert_true(said(chief, OWNER, SHOAL_MSG_SAVE, NULL));
  shoal_chief_gone(chief, OWNER, "test", 3); /* what it would have said is lost */
  hello(chief, OWNER, SHOAL_ROLE_OWNER, 1, true, 4);
  assert_true(said(chief, OWNER, SHOAL_MSG_SAVE, NULL));
  shoal_chief_destroy(chief);
}

static void nothing_is_saved_while_an_owner_is_away(void **state) {
  (void)state;
  shoal_chief *chief = chief_of(0, 0);
  gather(chief, 0);
  shoal_message lease;
  ask(chief, WORKER, 1);
  assert_true(said(chief, WORKER, SHOAL_MSG_LEASE, &lease));
  shoal_chief_gone(chief, OWNER, "test", 2);
  done(chief, WORKER, &lease, 3); /* it would be time to make the next version safe */
  hello(chief, OWNER, SHOAL_ROLE_OWNER, 1, true, 4);
  make_round(chief, 1, 5); /* and now it is */
  assert_true(said(chief, OWNER, SHOAL_MSG_SAVE, NULL));
  shoal_chief_destroy(chief);
}

/* A driver that waits until the next tick must not spin. */
static void the_next_tick_is_never_in_the_past(void **state) {
  (void)state;
  shoal_chief *chief = chief_of(0, 1000);
  gather(chief, 0);
  ask(chief, WORKER, 0);
  said(chief, WORKER, SHOAL_MSG_LEASE, NULL);
  for (double now = 0; now < 50; now += 1) {
    shoal_chief_tick(chief, now);
    assert_true(shoal_chief_next_tick(chief) > now); /* the unit is overdue from 5 s on */
  }
  shoal_chief_gone(chief, OWNER, "test", 50);
  for (double now = 50; now < 100; now += 1) {
    shoal_chief_tick(chief, now);
    assert_true(shoal_chief_next_tick(chief) > now);
  }
  shoal_chief_destroy(chief);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_lost_report_takes_all_back),
      cmocka_unit_test(a_rest_is_told_again_when_an_owner_was_lost),
      cmocka_unit_test(going_on_counts_while_an_owner_is_away),
      cmocka_unit_test(a_chief_that_starts_at_the_end_rests),
      cmocka_unit_test(an_owner_that_is_lost_while_it_saves_is_asked_again),
      cmocka_unit_test(nothing_is_saved_while_an_owner_is_away),
      cmocka_unit_test(the_next_tick_is_never_in_the_past),
  };
  return RUN_TESTS(tests);
}
