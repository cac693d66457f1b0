/* The chief alone: what it does when parts of what it waits for are lost. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "proto/chief.h"
#include "proto/proof.h"

enum { PARTS = 2, ROUNDS = 3, WORKER = 1, OTHER = 2, OWNER = 10 };

static shoal_chief_config config_of(const char *mode_text, uint64_t start, double save_s) {
  shoal_mode mode;
  assert_int_equal(shoal_mode_parse(mode_text, &mode, NULL), SHOAL_OK);
  return (shoal_chief_config){
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
}

static shoal_chief *chief_of(uint64_t start, double save_s) {
  shoal_chief_config config = config_of("sync", start, save_s);
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

/* Takes all events. Returns how many of this kind tell of the peer; *seconds is the last one's. */
static uint32_t count_told(shoal_chief *chief, shoal_chief_event_kind kind, uint64_t peer, double *seconds) {
  shoal_chief_event event;
  uint32_t count = 0;
  while (shoal_chief_next_event(chief, &event)) {
    if (event.kind != kind || event.peer != peer) continue;
    *seconds = event.seconds;
    count++;
  }
  return count;
}

/* Another worker comes, takes over the unit that is overdue, and is lost. Returns how often WORKER is told of as late. */
static uint32_t take_over(shoal_chief *chief, double now) {
  double ignored;
  hello(chief, OTHER, SHOAL_ROLE_WORKER, 0, false, now);
  ask(chief, OTHER, now);
  shoal_chief_tick(chief, now);
  assert_true(said(chief, OTHER, SHOAL_MSG_LEASE, NULL));
  uint32_t late = count_told(chief, SHOAL_CHIEF_LATE, WORKER, &ignored);
  shoal_chief_gone(chief, OTHER, "test", now);
  return late;
}

/* However often its unit is taken over, that is one episode, until the worker reports something. One that is late in every
 * round is told of once a minute. */
static void who_is_late_is_told_once_and_when_it_is_back(void **state) {
  (void)state;
  shoal_chief_config config = config_of("sync", 0, 1000);
  config.rounds = config.end = 100;
  config.lost_s = 1e6;
  config.leases.patience = 1;
  static const struct {
    double taken[2], done; /* when it is taken over, and when the worker reports */
    uint32_t told;
  } ROUNDS_AT[] = {{{6, 20}, 25, 1}, {{56, 0}, 57, 0}, {{95, 0}, 100, 1}};
  shoal_chief *chief;
  assert_int_equal(shoal_chief_create(&chief, &config, NULL), SHOAL_OK);
  gather(chief, 0);
  double now = 0, seconds = 0;
  for (uint64_t i = 0; i < 3; i++) {
    shoal_message slow;
    ask(chief, WORKER, now);
    assert_true(said(chief, WORKER, SHOAL_MSG_LEASE, &slow));
    assert_int_equal(take_over(chief, ROUNDS_AT[i].taken[0]), ROUNDS_AT[i].told);
    if (ROUNDS_AT[i].taken[1] > 0) assert_int_equal(take_over(chief, ROUNDS_AT[i].taken[1]), 0);
    now = ROUNDS_AT[i].done;
    done(chief, WORKER, &slow, now);
    applied(chief, i + 1, now);
    assert_int_equal(count_told(chief, SHOAL_CHIEF_AGAIN, WORKER, &seconds), ROUNDS_AT[i].told);
  }
  assert_true(seconds == 5);
  shoal_chief_destroy(chief);
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

static void saved(shoal_chief *chief, uint64_t version, double now) {
  receive(chief, OWNER, (shoal_message){.kind = SHOAL_MSG_SAVED, .version = version}, now);
}

static void not_saved(shoal_chief *chief, uint64_t version, double now) {
  receive(chief, OWNER,
          (shoal_message){.kind = SHOAL_MSG_SAVED, .version = version, .count = SHOAL_SAVED_NOT}, now);
}

/* A rest is told, nothing counts as safe, and the next version is tried. */
static void a_full_disk_does_not_hold_up_the_training(void **state) {
  (void)state;
  shoal_chief *chief = chief_of(0, 0);
  gather(chief, 0);
  make_round(chief, 0, 1);
  shoal_message save;
  assert_true(said(chief, OWNER, SHOAL_MSG_SAVE, &save));
  assert_int_equal(save.version, 2);
  make_round(chief, 1, 2);
  not_saved(chief, 2, 3);
  shoal_chief_rest(chief, 4);
  assert_true(said(chief, OWNER, SHOAL_MSG_SAVE, NULL) == false); /* it has just been tried */
  assert_true(told(chief, SHOAL_CHIEF_REST));
  shoal_chief_go_on(chief, 5);
  make_round(chief, 2, 6);
  assert_true(said(chief, OWNER, SHOAL_MSG_SAVE, &save));
  assert_int_equal(save.version, 3);
  not_saved(chief, 3, 7);
  shoal_chief_event event;
  bool rests = false;
  while (shoal_chief_next_event(chief, &event)) {
    assert_true(event.kind != SHOAL_CHIEF_SAFE);
    rests |= event.kind == SHOAL_CHIEF_REST && event.version == 3;
  }
  assert_true(rests);
  shoal_chief_destroy(chief);
}

/* The driver has the weights of a rest that could not be made safe: all go back there. What the driver is to keep is
 * the version that is safe all the same. */
static void all_go_back_to_a_rest_that_is_not_safe(void **state) {
  (void)state;
  shoal_chief *chief = chief_of(0, 1000);
  gather(chief, 0);
  make_round(chief, 0, 1);
  shoal_chief_rest(chief, 2);
  not_saved(chief, 1, 3);
  assert_true(told(chief, SHOAL_CHIEF_REST));
  shoal_chief_go_on(chief, 4);
  make_round(chief, 1, 5);
  shoal_chief_gone(chief, OWNER, "test", 6);
  hello(chief, OWNER, SHOAL_ROLE_OWNER, 0, false, 7);
  shoal_chief_event event;
  bool back = false;
  while (shoal_chief_next_event(chief, &event)) {
    if (event.kind != SHOAL_CHIEF_BACK) continue;
    back = true;
    assert_int_equal(event.version, 1);
    assert_int_equal(event.state.version, 0);
    assert_int_equal(event.state.generation, shoal_chief_generation(chief));
  }
  assert_true(back);
  shoal_message restore;
  assert_true(said(chief, OWNER, SHOAL_MSG_RESTORE, &restore));
  assert_int_equal(restore.version, 1);
  receive(chief, OWNER, (shoal_message){.kind = SHOAL_MSG_RESTORED, .version = 1, .count = 1}, 8);
  assert_true(told(chief, SHOAL_CHIEF_LACKS));
  shoal_chief_give(chief, 0, shoal_blob_of("", 0));
  receive(chief, OWNER, (shoal_message){.kind = SHOAL_MSG_RESTORED, .version = 1}, 9);
  make_round(chief, 1, 10);
  shoal_chief_destroy(chief);
}

/* Until the driver has kept what is safe, it may come back with what it kept before. */
static void what_the_driver_has_kept_stays_with_the_owners(void **state) {
  (void)state;
  shoal_chief *chief = chief_of(0, 0);
  gather(chief, 0);
  shoal_message save;
  for (uint64_t version = 0; version < 3; version++) {
    make_round(chief, version, 10.0 * (double)version);
    shoal_letter letter;
    while (shoal_outbox_take(shoal_chief_outbox(chief), &letter)) {
      save = letter.message;
      if (save.kind != SHOAL_MSG_SAVE) {
        shoal_message_release(&letter.message);
        continue;
      }
      const uint64_t both[] = {save.round, 0};
      if (save.round == 0) assert_null(save.payload);
      if (save.round != 0) {
        assert_int_equal(shoal_blob_length(save.payload), sizeof both);
        assert_memory_equal(shoal_blob_bytes(save.payload), both, sizeof both);
      }
      shoal_message_release(&letter.message);
    }
    told(chief, SHOAL_CHIEF_ROUND);
    if (version == 1) receive(chief, OWNER, (shoal_message){.kind = SHOAL_MSG_SAVED, .version = 2}, 15);
  }
  shoal_chief_destroy(chief);
}

/* A worker reports a whole round; nothing comes from the owner. */
static void report_round(shoal_chief *chief, double leased, double reported) {
  shoal_message lease;
  ask(chief, WORKER, leased);
  assert_true(said(chief, WORKER, SHOAL_MSG_LEASE, &lease));
  done(chief, WORKER, &lease, reported);
}

static bool goes_back(shoal_chief *chief, double now) {
  told(chief, SHOAL_CHIEF_BACK);
  shoal_chief_tick(chief, now);
  return told(chief, SHOAL_CHIEF_BACK);
}

static void a_lost_contribution_takes_all_back(void **state) {
  (void)state;
  shoal_chief *chief = chief_of(0, 1000);
  gather(chief, 0);
  report_round(chief, 0, 1);
  assert_false(goes_back(chief, 10.5));
  assert_true(shoal_chief_next_tick(chief) == 11);
  assert_true(goes_back(chief, 11));
  receive(chief, OWNER, (shoal_message){.kind = SHOAL_MSG_RESTORED}, 12);
  report_round(chief, 12, 13);
  assert_false(goes_back(chief, 32)); /* twice as long as before */
  assert_true(goes_back(chief, 33.5));
  shoal_chief_destroy(chief);
}

/* An owner tells of the version that it keeps only when it has kept it. */
static void an_owner_that_writes_has_lost_nothing(void **state) {
  (void)state;
  shoal_chief *chief = chief_of(0, 0);
  gather(chief, 0);
  make_round(chief, 0, 1);
  assert_true(said(chief, OWNER, SHOAL_MSG_SAVE, NULL));
  report_round(chief, 2, 3); /* it comes to version 2, and writes that down */
  assert_false(goes_back(chief, 100));
  applied(chief, 2, 103);
  saved(chief, 2, 103);
  assert_true(told(chief, SHOAL_CHIEF_SAFE));
  report_round(chief, 103, 104); /* from now on it is known to be slow */
  assert_false(goes_back(chief, 103 + 2 * 100 - 1));
  assert_true(goes_back(chief, 104 + 2 * 100));
  shoal_chief_destroy(chief);
}

static void an_owner_that_writes_for_ever_is_given_up(void **state) {
  (void)state;
  shoal_chief *chief = chief_of(0, 0);
  gather(chief, 0);
  make_round(chief, 0, 1);
  report_round(chief, 2, 3);
  assert_true(goes_back(chief, 124));
  shoal_chief_destroy(chief);
}

/* What is still on its way to a slow owner takes about as long as what came from there. */
static void where_units_take_long_more_time_is_given(void **state) {
  (void)state;
  shoal_chief *chief = chief_of(0, 1000);
  gather(chief, 0);
  report_round(chief, 0, 100);
  assert_false(goes_back(chief, 100 + 299));
  assert_true(goes_back(chief, 100 + 300));
  shoal_chief_destroy(chief);
}

/* A clock starts anywhere. */
static void the_first_save_is_a_while_after_the_beginning(void **state) {
  (void)state;
  const double start = 1e6;
  shoal_chief *chief = chief_of(0, 50);
  hello(chief, WORKER, SHOAL_ROLE_WORKER, 0, false, start - 1000); /* long before the owner */
  gather(chief, start);
  make_round(chief, 0, start + 49);
  assert_false(said(chief, OWNER, SHOAL_MSG_SAVE, NULL));
  make_round(chief, 1, start + 51);
  shoal_chief_destroy(chief);
  chief = chief_of(0, 50);
  gather(chief, start);
  make_round(chief, 0, start + 51);
  assert_true(said(chief, OWNER, SHOAL_MSG_SAVE, NULL));
  shoal_chief_destroy(chief);
}

/* It may have been silent because it wrote. The rest goes on meanwhile; what counts is what it has. */
static void a_save_that_outlasts_a_connection_counts(void **state) {
  (void)state;
  shoal_message save;
  shoal_chief *chief = chief_of(0, 0);
  gather(chief, 0);
  make_round(chief, 0, 1);
  assert_true(said(chief, OWNER, SHOAL_MSG_SAVE, NULL));
  report_round(chief, 2, 3);
  shoal_chief_gone(chief, OWNER, "test", 13);
  hello(chief, OWNER, SHOAL_ROLE_OWNER, 2, true, 14);
  assert_true(said(chief, OWNER, SHOAL_MSG_SAVE, &save));
  assert_int_equal(save.version, 2);
  told(chief, SHOAL_CHIEF_SAFE);
  saved(chief, 2, 15);
  assert_true(told(chief, SHOAL_CHIEF_SAFE));
  shoal_chief_destroy(chief);
}

static void names_from_outside_can_be_printed(void **state) {
  (void)state;
  static const char name[] = "ada\x1b[2J\n\x7f\xc3\xa9";
  shoal_chief *chief = chief_of(0, 1000);
  told(chief, SHOAL_CHIEF_BACK);
  receive(chief, WORKER,
          (shoal_message){.kind = SHOAL_MSG_HELLO,
                          .count = SHOAL_ROLE_WORKER,
                          .payload = shoal_blob_of(name, sizeof name)}, /* its zero too */
          0);
  shoal_chief_event event;
  assert_true(shoal_chief_next_event(chief, &event));
  assert_int_equal(event.kind, SHOAL_CHIEF_JOINED);
  assert_string_equal(event.name, "ada?[2J??é?");
  char longest[2 * SHOAL_NAME_MAX];
  memset(longest, 'x', sizeof longest);
  receive(chief, OTHER,
          (shoal_message){.kind = SHOAL_MSG_HELLO,
                          .count = SHOAL_ROLE_WORKER,
                          .payload = shoal_blob_of(longest, sizeof longest)},
          0);
  assert_true(shoal_chief_next_event(chief, &event));
  assert_int_equal(strlen(event.name), SHOAL_NAME_MAX - 1);
  shoal_chief_destroy(chief);
}

/* However many there are: the driver closes their connections. */
static void everybody_who_falls_silent_is_told_with_its_connection(void **state) {
  (void)state;
  enum { SILENT = 3 * SHOAL_CHIEF_EVENTS_MAX };
  shoal_chief_config config = config_of("sync", 0, 1000);
  config.workers_max = SILENT;
  config.beat = (shoal_beat_rules){.every_s = 1, .silence_s = 5};
  shoal_chief *chief;
  assert_int_equal(shoal_chief_create(&chief, &config, NULL), SHOAL_OK);
  for (uint64_t peer = 1; peer <= SILENT; peer++) hello(chief, peer, SHOAL_ROLE_WORKER, 0, false, 0);
  told(chief, SHOAL_CHIEF_BACK);
  bool lost[SILENT + 1] = {false};
  uint32_t count = 0;
  shoal_chief_event event;
  for (int tick = 0; tick < 4; tick++) {
    assert_int_equal(shoal_chief_workers(chief), SILENT - count);
    shoal_chief_tick(chief, 6);
    while (shoal_chief_next_event(chief, &event)) {
      assert_int_equal(event.kind, SHOAL_CHIEF_LOST);
      assert_true(event.peer >= 1 && event.peer <= SILENT && !lost[event.peer]);
      lost[event.peer] = true;
      count++;
    }
  }
  assert_int_equal(count, SILENT);
  shoal_chief_destroy(chief);
}

static void a_loss_that_is_no_number_ends_the_training(void **state) {
  (void)state;
  shoal_chief *chief = chief_of(0, 1000);
  gather(chief, 0);
  shoal_message lease;
  ask(chief, WORKER, 0);
  assert_true(said(chief, WORKER, SHOAL_MSG_LEASE, &lease));
  shoal_sums sums = {.loss = NAN, .weight = 1};
  receive(chief, WORKER,
          (shoal_message){.kind = SHOAL_MSG_DONE,
                          .lease = lease.lease,
                          .round = lease.round,
                          .payload = shoal_blob_of(&sums, sizeof sums)},
          1);
  assert_true(told(chief, SHOAL_CHIEF_FAILED));
  assert_false(goes_back(chief, 1000));
  shoal_chief_destroy(chief);
}

/* Owners remember so many rounds; with more under way one could be applied twice. */
static void async_rounds_under_way_are_as_many_as_owners_remember(void **state) {
  (void)state;
  shoal_chief_config config = config_of("async", 0, 1000);
  config.workers_max = 40000;
  config.rounds = config.end = 40000;
  shoal_chief *chief;
  assert_int_equal(shoal_chief_create(&chief, &config, NULL), SHOAL_OK);
  gather(chief, 0);
  shoal_message lease = {0};
  uint32_t leases = 0;
  for (ask(chief, WORKER, 0); said(chief, WORKER, SHOAL_MSG_LEASE, &lease); ask(chief, WORKER, 0)) {
    assert_int_equal(lease.round, leases++);
    assert_int_equal(lease.count, PARTS);
  }
  assert_int_equal(leases, SHOAL_ASYNC_WINDOW_MAX);
  shoal_chief_destroy(chief);
}

/* A save was asked for of a version that will not be made: the driver wants a rest before. */
static void a_rest_does_not_wait_for_a_version_behind_it(void **state) {
  (void)state;
  shoal_message save;
  shoal_chief *chief = chief_of(0, 0);
  gather(chief, 0);
  make_round(chief, 0, 1);
  assert_true(said(chief, OWNER, SHOAL_MSG_SAVE, &save));
  assert_int_equal(save.version, 2);
  shoal_chief_rest(chief, 2); /* before anybody has asked for a unit of round 1 */
  assert_true(said(chief, OWNER, SHOAL_MSG_SAVE, &save));
  assert_int_equal(save.version, 1);
  saved(chief, 1, 3);
  assert_true(told(chief, SHOAL_CHIEF_REST));
  shoal_chief_destroy(chief);
}

/* Owners apply what comes; the chief counts rounds in order, and is behind. */
static void in_async_mode_a_version_ahead_of_all_owners_is_saved(void **state) {
  (void)state;
  shoal_chief_config config = config_of("async", 0, 0);
  config.rounds = config.end = 100;
  shoal_chief *chief;
  assert_int_equal(shoal_chief_create(&chief, &config, NULL), SHOAL_OK);
  gather(chief, 0);
  shoal_message lease, save;
  ask(chief, WORKER, 0);
  assert_true(said(chief, WORKER, SHOAL_MSG_LEASE, &lease));
  applied(chief, 7, 1);
  done(chief, WORKER, &lease, 2);
  assert_true(said(chief, OWNER, SHOAL_MSG_SAVE, &save));
  assert_int_equal(save.version, 7 + 1 + 1); /* its one worker may have one more under way */
  shoal_chief_destroy(chief);
}

static void hello_as(shoal_chief *chief, uint64_t peer, shoal_message m, const char *name) {
  m.kind = SHOAL_MSG_HELLO;
  m.payload = shoal_blob_of(name, strlen(name));
  receive(chief, peer, m, 0);
}

static bool next_of(shoal_chief *chief, shoal_chief_event_kind kind, shoal_chief_event *out) {
  while (shoal_chief_next_event(chief, out))
    if (out->kind == kind) return true;
  return false;
}

static void who_is_not_taken_is_told_by_name_and_reason(void **state) {
  (void)state;
  static const struct {
    shoal_message hello;
    const char *part;
  } cases[] = {
      {{.count = SHOAL_ROLE_OWNER, .slice = 1}, "no parameter server of this index"},
      {{.count = SHOAL_ROLE_OWNER, .slice = 0}, "of this index already"},
      {{.count = SHOAL_ROLE_WORKER, .round = 77}, "this is the chief, and no parameter server"},
      {{.count = 9}, "neither a worker nor a parameter server"},
  };
  shoal_chief *chief = chief_of(0, 1000);
  gather(chief, 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    shoal_chief_event event;
    hello_as(chief, 50 + i, cases[i].hello, "ada");
    assert_true(next_of(chief, SHOAL_CHIEF_REFUSED, &event));
    assert_string_equal(event.name, "ada");
    assert_int_equal(event.peer, 50 + i);
    assert_non_null(strstr(event.text, cases[i].part));
    assert_true(said(chief, 50 + i, SHOAL_MSG_REFUSE, NULL));
  }
  assert_int_equal(shoal_chief_workers(chief), 1);
  shoal_chief_destroy(chief);
}

/* What was done under a name, by who is here and by who was. */
static uint64_t parts_of(const shoal_chief *chief, const char *name, uint32_t *rows) {
  uint64_t parts = 0;
  shoal_chief_peer peer;
  *rows = 0;
  for (uint32_t i = 0; shoal_chief_peer_at(chief, i, 0, &peer); i++)
    if (strcmp(peer.name, name) == 0) parts += peer.parts_done + peer.parts_before, (*rows)++;
  for (uint32_t i = 0; shoal_chief_past_at(chief, i, &peer); i++)
    if (strcmp(peer.name, name) == 0) parts += peer.parts_done + peer.parts_before, (*rows)++;
  return parts;
}

static void what_a_worker_has_done_stays_with_its_name(void **state) {
  (void)state;
  const shoal_message worker = {.count = SHOAL_ROLE_WORKER};
  shoal_chief *chief = chief_of(0, 1000);
  gather(chief, 0);
  shoal_chief_gone(chief, WORKER, "test", 0);
  hello_as(chief, WORKER, worker, "ada");
  make_round(chief, 0, 0);
  uint32_t rows;
  shoal_chief_event event;
  shoal_chief_left(chief, WORKER, "it is late", 0);
  assert_true(next_of(chief, SHOAL_CHIEF_LEFT, &event));
  assert_string_equal(event.name, "ada");
  assert_string_equal(event.text, "it is late");
  assert_int_equal(shoal_chief_workers(chief), 0);
  assert_int_equal(parts_of(chief, "ada", &rows), PARTS);
  assert_int_equal(rows, 1);
  hello_as(chief, WORKER, worker, "ada"); /* back again */
  assert_true(next_of(chief, SHOAL_CHIEF_JOINED, &event));
  assert_false(event.twin);
  make_round(chief, 1, 0);
  assert_int_equal(parts_of(chief, "ada", &rows), 2 * PARTS);
  assert_int_equal(rows, 1);
  hello_as(chief, OTHER, worker, "ada"); /* and once more */
  assert_true(next_of(chief, SHOAL_CHIEF_JOINED, &event));
  assert_true(event.twin);
  shoal_chief_gone(chief, WORKER, "test", 0);
  assert_int_equal(parts_of(chief, "ada", &rows), 2 * PARTS);
  assert_int_equal(rows, 1);
  shoal_chief_gone(chief, OTHER, "test", 0);
  assert_int_equal(parts_of(chief, "ada", &rows), 2 * PARTS);
  assert_int_equal(rows, 1);
  shoal_chief_destroy(chief);
}

static void who_takes_all_back_is_named(void **state) {
  (void)state;
  shoal_chief *chief = chief_of(0, 1000);
  gather(chief, 0);
  make_round(chief, 0, 0);
  shoal_chief_gone(chief, OWNER, "test", 1);
  shoal_message hello = {
      .kind = SHOAL_MSG_HELLO, .count = SHOAL_ROLE_OWNER, .payload = shoal_blob_of("ps 0", 4)};
  shoal_chief_receive(chief, OWNER + 1, &hello, 1);
  shoal_chief_event event;
  assert_true(next_of(chief, SHOAL_CHIEF_BACK, &event));
  assert_string_equal(event.name, "ps 0");
  assert_string_equal(event.text, "was started again");
  shoal_chief_destroy(chief);
}

/* ---- guarded ---- */

enum { AUDITOR = 30, KEY = 4711 };

static shoal_chief_config guarded_config(const shoal_standing *standings, uint32_t count) {
  shoal_chief_config config = config_of("sync", 0, 0);
  config.guard = (shoal_chief_guard){.on = true,
                                     .audits = true,
                                     .secret = {1, 2},
                                     .key = KEY,
                                     .standings = standings,
                                     .standings_count = count};
  return config;
}

static shoal_chief *guarded_chief(const shoal_standing *standings, uint32_t count) {
  shoal_chief_config config = guarded_config(standings, count);
  shoal_chief *chief;
  assert_int_equal(shoal_chief_create(&chief, &config, NULL), SHOAL_OK);
  return chief;
}

static void come(shoal_chief *chief, uint64_t peer, uint64_t who, uint64_t key, double now) {
  receive(chief, peer,
          (shoal_message){.kind = SHOAL_MSG_HELLO, .count = SHOAL_ROLE_WORKER, .version = who, .lease = key},
          now);
}

/* A result under a lease: the contribution is with the owner, and reported. */
static void send_result(shoal_chief *chief, uint64_t peer, const shoal_message *lease, uint64_t what,
                        double now) {
  shoal_sums sums = {.loss = 1, .weight = 1};
  double squares = 1;
  receive(chief, OWNER,
          (shoal_message){.kind = SHOAL_MSG_GOT,
                          .lease = lease->lease,
                          .version = what,
                          .payload = shoal_blob_of(&squares, sizeof squares)},
          now);
  receive(chief, peer,
          (shoal_message){.kind = SHOAL_MSG_DONE,
                          .lease = lease->lease,
                          .round = lease->round,
                          .shard = lease->shard,
                          .version = shoal_proof_join(&what, 1, NULL, 0),
                          .payload = shoal_blob_of(&sums, sizeof sums)},
          now);
}

static bool banned(shoal_chief *chief, bool *undone) {
  shoal_chief_event event;
  bool found = false;
  *undone = false;
  while (shoal_chief_next_event(chief, &event)) {
    found |= event.kind == SHOAL_CHIEF_BANNED;
    *undone |= event.kind == SHOAL_CHIEF_BACK && event.undoes;
  }
  return found;
}

static void begin_guarded(shoal_chief *chief) {
  hello(chief, OWNER, SHOAL_ROLE_OWNER, 0, false, 0);
  receive(chief, OWNER, (shoal_message){.kind = SHOAL_MSG_RESTORED, .version = 0}, 0);
  receive(chief, OWNER, (shoal_message){.kind = SHOAL_MSG_SAVED, .version = 0}, 0);
  said(chief, OWNER, SHOAL_MSG_SAVE, NULL);
}

/* A newcomer lies: it is banned, what it did was never used, and it does not come back. */
static void a_newcomer_that_lies_is_banned_and_nothing_is_undone(void **state) {
  (void)state;
  shoal_chief *chief = guarded_chief(NULL, 0);
  shoal_message mine, check;
  bool undone;
  begin_guarded(chief);
  come(chief, WORKER, 77, 0, 1);
  come(chief, AUDITOR, 0, KEY, 1);
  assert_int_equal(shoal_chief_workers(chief), 1); /* the auditor is none */
  ask(chief, WORKER, 1);
  assert_true(said(chief, WORKER, SHOAL_MSG_LEASE, &mine));
  ask(chief, AUDITOR, 1);
  assert_true(said(chief, AUDITOR, SHOAL_MSG_LEASE, &check));
  assert_int_equal(check.shard, mine.shard);
  assert_true(check.lease != mine.lease);
  send_result(chief, WORKER, &mine, 666, 2);
  assert_false(said(chief, OWNER, SHOAL_MSG_ACCEPT, NULL));
  send_result(chief, AUDITOR, &check, 5, 3);
  shoal_message accepted;
  assert_true(said(chief, OWNER, SHOAL_MSG_ACCEPT, &accepted));
  assert_true(accepted.lease == check.lease);
  assert_true(banned(chief, &undone));
  assert_false(undone);
  assert_int_equal(shoal_chief_workers(chief), 0);
  come(chief, WORKER + 1, 77, 0, 4);
  assert_true(said(chief, WORKER + 1, SHOAL_MSG_REFUSE, NULL));
  shoal_chief_set_standing(chief, &(shoal_standing){.who = 77}, 5); /* somebody lifts it */
  come(chief, WORKER + 2, 77, 0, 5);
  assert_true(said(chief, WORKER + 2, SHOAL_MSG_WELCOME, NULL));
  shoal_chief_destroy(chief);
}

/* Two machines share an invitation: both are sent away, and the one that lied is told of first. */
static void of_those_who_share_an_invitation_the_liar_is_told_of_first(void **state) {
  (void)state;
  shoal_chief *chief = guarded_chief(NULL, 0);
  shoal_message mine, check;
  shoal_chief_event event;
  uint64_t told[2];
  size_t count = 0;
  begin_guarded(chief);
  come(chief, WORKER + 1, 77, 0, 1); /* honest, and here before the other */
  come(chief, WORKER, 77, 0, 1);
  come(chief, AUDITOR, 0, KEY, 1);
  ask(chief, WORKER, 1);
  assert_true(said(chief, WORKER, SHOAL_MSG_LEASE, &mine));
  ask(chief, AUDITOR, 1);
  assert_true(said(chief, AUDITOR, SHOAL_MSG_LEASE, &check));
  send_result(chief, WORKER, &mine, 666, 2);
  send_result(chief, AUDITOR, &check, 5, 3);
  while (shoal_chief_next_event(chief, &event)) {
    if (event.kind != SHOAL_CHIEF_BANNED) continue;
    assert_true(count < 2);
    assert_true((strstr(event.text, "another machine") != NULL) == (count == 1));
    told[count++] = event.peer;
  }
  assert_int_equal(count, 2);
  assert_true(told[0] == WORKER && told[1] == WORKER + 1);
  assert_int_equal(shoal_chief_workers(chief), 0);
  shoal_chief_destroy(chief);
}

/* A proven worker lies for a while: all go back to before its first unchecked unit. */
static void lies_that_were_used_are_undone(void **state) {
  (void)state;
  const shoal_standing proven = {.who = 77, .agreed = SHOAL_TRUST_PROVES + 1}; /* every other unit is drawn */
  shoal_chief *chief = guarded_chief(&proven, 1);
  bool undone = false, caught = false;
  begin_guarded(chief);
  come(chief, WORKER, 77, 0, 1);
  come(chief, AUDITOR, 0, KEY, 1);
  ask(chief, AUDITOR, 1);
  uint64_t version = 0;
  for (double now = 1; !caught && version < ROUNDS; now++) {
    shoal_message mine, check;
    ask(chief, WORKER, now);
    shoal_letter letter;
    bool leased = false, checked = false;
    while (shoal_outbox_take(shoal_chief_outbox(chief), &letter)) {
      bool is_lease = letter.message.kind == SHOAL_MSG_LEASE;
      if (is_lease && letter.peer == WORKER) mine = letter.message, leased = true;
      if (is_lease && letter.peer == AUDITOR) check = letter.message, checked = true;
      shoal_message_release(&letter.message);
    }
    assert_true(leased);
    send_result(chief, WORKER, &mine, 666, now);
    if (checked) send_result(chief, AUDITOR, &check, 5, now);
    caught = banned(chief, &undone);
    if (caught) break;
    applied(chief, ++version, now);
  }
  assert_true(caught && version > 0); /* with these secrets the second unit is drawn, or the third */
  assert_true(undone);
  assert_int_equal(shoal_chief_version(chief), 0);
  assert_int_equal(shoal_chief_workers(chief), 0);
  shoal_chief_destroy(chief);
}

/* A proven worker does rounds alone, and each version is made safe. Returns how many. */
static uint64_t make_safe_rounds(shoal_chief *chief, uint64_t rounds) {
  for (uint64_t round = 0; round < rounds; round++) {
    shoal_message mine, save;
    double now = 1 + (double)round;
    ask(chief, WORKER, now);
    if (!said(chief, WORKER, SHOAL_MSG_LEASE, &mine)) return round;
    send_result(chief, WORKER, &mine, 666, now);
    applied(chief, round + 1, now);
    if (shoal_chief_version(chief) != round + 1) return round; /* it was drawn, so near the end */
    if (said(chief, OWNER, SHOAL_MSG_SAVE, &save))
      receive(chief, OWNER, (shoal_message){.kind = SHOAL_MSG_SAVED, .version = save.version}, now);
  }
  return rounds;
}

/* The chief is killed, and another goes on. Then a lie of before comes to light. */
static void a_chief_that_starts_anew_can_undo_what_was_done_before(void **state) {
  (void)state;
  const shoal_standing proven = {.who = 77, .agreed = 100000};
  shoal_chief_config config = guarded_config(&proven, 1);
  config.end = config.rounds = 1000;
  shoal_chief *chief;
  assert_int_equal(shoal_chief_create(&chief, &config, NULL), SHOAL_OK);
  begin_guarded(chief);
  come(chief, WORKER, 77, 0, 1);
  assert_int_equal(make_safe_rounds(chief, 20), 20);
  shoal_chief_event event;
  while (shoal_chief_next_event(chief, &event))
    if (event.kind == SHOAL_CHIEF_SAFE) config.start = event.state;
  assert_true(config.start.version > 10);
  shoal_blob *memory = shoal_chief_memory(chief);
  assert_int_equal(shoal_blob_length(memory), shoal_chief_memory_bytes(&config));
  shoal_chief_destroy(chief);
  config.memory = shoal_blob_bytes(memory);
  const shoal_standing liar = {.who = 77, .wrong = 1, .banned = true};
  config.guard.standings = &liar; /* it was killed before anything was undone */
  assert_int_equal(shoal_chief_create(&chief, &config, NULL), SHOAL_OK);
  assert_int_equal(shoal_chief_version(chief), 0);
  assert_true(next_of(chief, SHOAL_CHIEF_BACK, &event));
  assert_true(event.undoes && event.version == 0);
  shoal_chief_destroy(chief);
  config.guard.standings = &proven;
  assert_int_equal(shoal_chief_create(&chief, &config, NULL), SHOAL_OK);
  shoal_blob_release(memory);
  hello(chief, OWNER, SHOAL_ROLE_OWNER, 0, false, 50);
  receive(chief, OWNER, (shoal_message){.kind = SHOAL_MSG_RESTORED, .version = config.start.version}, 50);
  come(chief, WORKER, 77, 0, 51);
  told(chief, SHOAL_CHIEF_BACK);
  shoal_chief_set_standing(chief, &(shoal_standing){.who = 77, .wrong = 1, .banned = true}, 52);
  bool undone = false;
  while (shoal_chief_next_event(chief, &event)) undone |= event.kind == SHOAL_CHIEF_BACK && event.undoes;
  assert_true(undone);
  assert_int_equal(shoal_chief_version(chief), 0);
  shoal_message restore;
  assert_true(said(chief, OWNER, SHOAL_MSG_RESTORE, &restore));
  assert_int_equal(restore.version, 0);
  shoal_chief_destroy(chief);
}

/* Safe versions: the oldest stays as long as somebody has unchecked results since, however long that is. */
static void a_version_from_before_all_unchecked_results_stays(void **state) {
  (void)state;
  const shoal_standing proven[] = {{.who = 77, .agreed = 100000}, {.who = 78, .agreed = 100000}};
  shoal_chief_config config = guarded_config(proven, 2);
  config.end = config.rounds = 1000;
  shoal_chief *chief;
  assert_int_equal(shoal_chief_create(&chief, &config, NULL), SHOAL_OK);
  begin_guarded(chief);
  come(chief, WORKER, 77, 0, 1);
  assert_int_equal(make_safe_rounds(chief, 1), 1);
  shoal_chief_gone(chief, WORKER, "test", 2); /* with a result that nobody has checked */
  come(chief, WORKER, 78, 0, 3);
  for (uint64_t round = 1; round < 100; round++) {
    shoal_message mine, save;
    ask(chief, WORKER, 4 + (double)round);
    assert_true(said(chief, WORKER, SHOAL_MSG_LEASE, &mine));
    send_result(chief, WORKER, &mine, 5, 4 + (double)round);
    applied(chief, round + 1, 4 + (double)round);
    if (said(chief, OWNER, SHOAL_MSG_SAVE, &save))
      receive(chief, OWNER, (shoal_message){.kind = SHOAL_MSG_SAVED, .version = save.version},
              4 + (double)round);
    told(chief, SHOAL_CHIEF_SAFE);
    if (shoal_chief_version(chief) != round + 1) break; /* a check is owed, and there is no auditor */
  }
  assert_true(shoal_chief_version(chief) > 10);
  come(chief, OTHER, 77, 0, 200);
  shoal_chief_set_standing(chief, &(shoal_standing){.who = 77, .wrong = 1, .banned = true}, 201);
  assert_int_equal(shoal_chief_version(chief), 0);
  shoal_chief_destroy(chief);
}

/* With lanes nobody else has a unit's data: what is to be checked is for the auditor, who has all. */
static void with_lanes_only_the_auditor_checks(void **state) {
  (void)state;
  const shoal_standing proven = {.who = 88, .agreed = 100000};
  shoal_chief_config config = guarded_config(&proven, 1);
  config.leases.lanes = PARTS;
  shoal_message mine[PARTS], check;
  shoal_chief *chief;
  assert_int_equal(shoal_chief_create(&chief, &config, NULL), SHOAL_OK);
  begin_guarded(chief);
  come(chief, WORKER, 77, 0, 1);
  for (uint32_t p = 0; p < PARTS; p++) { /* all units of the round are a newcomer's */
    ask(chief, WORKER, 2);
    if (p > 0) shoal_chief_tick(chief, 100); /* nobody else comes for the second lane */
    assert_true(said(chief, WORKER, SHOAL_MSG_LEASE, &mine[p]));
    assert_int_equal(mine[p].count, 1);
    send_result(chief, WORKER, &mine[p], 5, 3 + 98 * p);
  }
  come(chief, OTHER, 88, 0, 300);
  ask(chief, OTHER, 300);
  assert_false(said(chief, OTHER, SHOAL_MSG_LEASE, NULL));
  assert_int_equal(shoal_chief_version(chief), 0);
  come(chief, AUDITOR, 0, KEY, 301);
  for (uint32_t p = 0; p < PARTS; p++) {
    ask(chief, AUDITOR, 301);
    assert_true(said(chief, AUDITOR, SHOAL_MSG_LEASE, &check));
    send_result(chief, AUDITOR, &check, 5, 302);
  }
  assert_int_equal(shoal_chief_version(chief), 1);
  shoal_chief_destroy(chief);
}

static uint64_t rejected_of(const shoal_chief *chief, const char *name) {
  shoal_chief_peer peer;
  for (uint32_t i = 0; shoal_chief_peer_at(chief, i, 0, &peer); i++)
    if (strcmp(peer.name, name) == 0) return peer.rejected;
  return UINT64_MAX;
}

/* What an owner's rule leaves out counts as rejected, of whose it was, and stays with its name. */
static void what_a_rule_left_out_is_counted(void **state) {
  (void)state;
  shoal_chief_config config = guarded_config(NULL, 0);
  config.guard.audits = false;
  config.single = true;
  shoal_chief *chief;
  assert_int_equal(shoal_chief_create(&chief, &config, NULL), SHOAL_OK);
  begin_guarded(chief);
  const shoal_message worker = {.count = SHOAL_ROLE_WORKER, .version = 77};
  hello_as(chief, WORKER, worker, "ada");
  shoal_message mine[PARTS];
  for (uint32_t p = 0; p < PARTS; p++) {
    ask(chief, WORKER, 1);
    assert_true(said(chief, WORKER, SHOAL_MSG_LEASE, &mine[p]));
  }
  for (uint32_t p = 0; p < PARTS; p++) send_result(chief, WORKER, &mine[p], 5 + p, 2);
  assert_int_equal(rejected_of(chief, "ada"), 0);
  const uint64_t cut[] = {mine[1].lease, mine[1].lease + 1}; /* the second is nobody's */
  receive(chief, OWNER,
          (shoal_message){.kind = SHOAL_MSG_APPLIED, .version = 1, .payload = shoal_blob_of(cut, sizeof cut)},
          3);
  assert_int_equal(rejected_of(chief, "ada"), 1);
  uint64_t units, checks, rejected;
  shoal_chief_audits(chief, &units, &checks, &rejected);
  assert_int_equal(rejected, 1);
  shoal_chief_gone(chief, WORKER, "test", 4);
  hello_as(chief, OTHER, worker, "ada");
  assert_int_equal(rejected_of(chief, "ada"), 1);
  shoal_chief_destroy(chief);
}

/* Doubts of another training make audits here, and do not change what is known of its units. */
static void a_doubt_from_elsewhere_is_heard(void **state) {
  (void)state;
  const shoal_standing proven = {.who = 77, .agreed = 100000};
  shoal_chief *chief = guarded_chief(&proven, 1);
  begin_guarded(chief);
  come(chief, WORKER, 77, 0, 1);
  shoal_chief_set_standing(chief, &(shoal_standing){.who = 77, .agreed = 50, .doubted = 50}, 2);
  shoal_chief_peer peer;
  bool found = false;
  for (uint32_t i = 0; shoal_chief_peer_at(chief, i, 0, &peer); i++) {
    if (peer.role != SHOAL_ROLE_WORKER) continue;
    found = true;
    assert_true(peer.standing.agreed == 100000 && peer.standing.doubted == 100000 && !peer.standing.banned);
  }
  assert_true(found);
  shoal_chief_destroy(chief);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(who_is_late_is_told_once_and_when_it_is_back),
      cmocka_unit_test(a_chief_that_starts_anew_can_undo_what_was_done_before),
      cmocka_unit_test(a_version_from_before_all_unchecked_results_stays),
      cmocka_unit_test(with_lanes_only_the_auditor_checks),
      cmocka_unit_test(what_a_rule_left_out_is_counted),
      cmocka_unit_test(a_doubt_from_elsewhere_is_heard),
      cmocka_unit_test(a_lost_report_takes_all_back),
      cmocka_unit_test(a_rest_is_told_again_when_an_owner_was_lost),
      cmocka_unit_test(going_on_counts_while_an_owner_is_away),
      cmocka_unit_test(a_chief_that_starts_at_the_end_rests),
      cmocka_unit_test(an_owner_that_is_lost_while_it_saves_is_asked_again),
      cmocka_unit_test(nothing_is_saved_while_an_owner_is_away),
      cmocka_unit_test(a_full_disk_does_not_hold_up_the_training),
      cmocka_unit_test(all_go_back_to_a_rest_that_is_not_safe),
      cmocka_unit_test(what_the_driver_has_kept_stays_with_the_owners),
      cmocka_unit_test(the_next_tick_is_never_in_the_past),
      cmocka_unit_test(a_lost_contribution_takes_all_back),
      cmocka_unit_test(an_owner_that_writes_has_lost_nothing),
      cmocka_unit_test(an_owner_that_writes_for_ever_is_given_up),
      cmocka_unit_test(where_units_take_long_more_time_is_given),
      cmocka_unit_test(the_first_save_is_a_while_after_the_beginning),
      cmocka_unit_test(a_save_that_outlasts_a_connection_counts),
      cmocka_unit_test(names_from_outside_can_be_printed),
      cmocka_unit_test(everybody_who_falls_silent_is_told_with_its_connection),
      cmocka_unit_test(a_loss_that_is_no_number_ends_the_training),
      cmocka_unit_test(async_rounds_under_way_are_as_many_as_owners_remember),
      cmocka_unit_test(a_rest_does_not_wait_for_a_version_behind_it),
      cmocka_unit_test(in_async_mode_a_version_ahead_of_all_owners_is_saved),
      cmocka_unit_test(who_is_not_taken_is_told_by_name_and_reason),
      cmocka_unit_test(what_a_worker_has_done_stays_with_its_name),
      cmocka_unit_test(who_takes_all_back_is_named),
      cmocka_unit_test(a_newcomer_that_lies_is_banned_and_nothing_is_undone),
      cmocka_unit_test(of_those_who_share_an_invitation_the_liar_is_told_of_first),
      cmocka_unit_test(lies_that_were_used_are_undone),
  };
  return RUN_TESTS(tests);
}
