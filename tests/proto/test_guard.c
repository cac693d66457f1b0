/* What counts and who lied, by the guard alone: leases, reports and contributions go in, rulings come out. */
#include "proto/guard.h"

#include <math.h>
#include <string.h>

#include "check.h"
#include "proto/proof.h"

enum { PARTS = 4, ANNA = 101, BOB = 102, CARL = 103, RULINGS_MAX = 64, FAR_FROM_END = 1000 };

typedef struct world {
  shoal_guard *guard;
  uint64_t leases;
  shoal_ruling rulings[RULINGS_MAX]; /* of the last call */
  uint32_t count;
} world;

static world open_world(bool audits) {
  const shoal_guard_config config = {.units_max = PARTS,
                                     .holders_max = 3,
                                     .owners = 1,
                                     .parts = PARTS,
                                     .audits = audits,
                                     .people_max = 16,
                                     .secret = {11, 12}};
  world w = {0};
  assert_int_equal(shoal_guard_create(&w.guard, &config, NULL), SHOAL_OK);
  return w;
}

static void prove(world *w, uint64_t who, uint64_t agreed) {
  shoal_trust_put(shoal_guard_trust(w->guard), &(shoal_standing){.who = who, .agreed = agreed});
}

static void hear(world *w) {
  w->count = 0;
  while (w->count < RULINGS_MAX && shoal_guard_next(w->guard, &w->rulings[w->count])) {
    shoal_blob_release(w->rulings[w->count].report);
    w->count++;
  }
}

static const shoal_ruling *ruled(const world *w, shoal_ruling_kind kind, uint64_t who) {
  for (uint32_t i = 0; i < w->count; i++)
    if (w->rulings[i].kind == kind && w->rulings[i].who == who) return &w->rulings[i];
  return NULL;
}

/* Peers have the numbers of who they are. */
static uint64_t lease_before_end(world *w, uint64_t unit, uint64_t who, uint64_t rounds_left) {
  const shoal_lease given = {.id = ++w->leases, .unit = unit, .worker = who, .since = 0, .deadline = 10};
  uint64_t ticket = shoal_guard_leased(w->guard, &given, 1, who, &(shoal_guard_end){rounds_left, 1});
  assert_true(ticket != 0 && ticket >> 32 == w->leases);
  return ticket;
}

static uint64_t lease(world *w, uint64_t unit, uint64_t who) {
  return lease_before_end(w, unit, who, FAR_FROM_END);
}

static void send(world *w, uint64_t ticket, const char *what, const char *reported, double squares) {
  shoal_sums sums = {.loss = 1};
  shoal_blob *report = shoal_blob_of(&sums, sizeof sums);
  uint64_t proof = shoal_proof(what, strlen(what)), said = shoal_proof(reported, strlen(reported));
  assert_true(shoal_guard_got(w->guard, ticket, 0, proof, squares));
  shoal_guard_done(w->guard, ticket, shoal_proof_join(&said, 1, NULL, 0), &sums, report, 1);
  shoal_blob_release(report);
  hear(w);
}

static void finish(world *w, uint64_t ticket, const char *what) { send(w, ticket, what, what, 1); }

static void a_newcomers_result_waits_for_somebody_proven(void **state) {
  (void)state;
  world w = open_world(true);
  prove(&w, CARL, 1000);
  uint64_t anna = lease(&w, 0, ANNA), bob = lease(&w, 0, BOB), unit;
  finish(&w, anna, "right");
  assert_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA));
  finish(&w, bob, "right"); /* another newcomer proves nothing */
  assert_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA));
  assert_false(shoal_guard_wants(w.guard, ANNA, 2, &unit));
  assert_true(shoal_guard_wants(w.guard, CARL, 2, &unit));
  assert_int_equal(unit, 0);
  finish(&w, lease(&w, 0, CARL), "right");
  assert_non_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA));
  assert_non_null(ruled(&w, SHOAL_RULING_AGREED, ANNA));
  assert_non_null(ruled(&w, SHOAL_RULING_AGREED, BOB));
  assert_non_null(ruled(&w, SHOAL_RULING_FORGET, CARL)); /* one of them is enough for the owners */
  assert_int_equal(shoal_guard_unchecked(w.guard, ANNA),
                   0); /* all three answer for it: they may be in league */
  assert_int_equal(shoal_guard_unchecked(w.guard, CARL), 0);
  shoal_guard_destroy(w.guard);
}

/* Whoever is proven, what is drawn is for the auditor to say. */
static void two_who_are_proven_cannot_vouch_for_each_other(void **state) {
  (void)state;
  world w = open_world(true);
  prove(&w, ANNA, SHOAL_TRUST_PROVES); /* every unit is drawn */
  prove(&w, BOB, SHOAL_TRUST_PROVES);
  uint64_t unit;
  uint64_t anna = lease(&w, 0, ANNA), bob = lease(&w, 0, BOB);
  finish(&w, anna, "lie");
  finish(&w, bob, "lie");
  assert_null(ruled(&w, SHOAL_RULING_AGREED, BOB));
  assert_int_equal(shoal_guard_unchecked(w.guard, ANNA), 0);
  assert_true(shoal_guard_wants(w.guard, SHOAL_GUARD_AUDITOR, 2, &unit));
  finish(&w, lease(&w, 0, SHOAL_GUARD_AUDITOR), "right");
  assert_non_null(ruled(&w, SHOAL_RULING_WRONG, ANNA));
  assert_non_null(ruled(&w, SHOAL_RULING_WRONG, BOB));
  shoal_guard_destroy(w.guard);
}

/* Two are found at once, and all go back for the first: the second is no less banned. */
static void a_second_liar_is_not_forgotten_when_all_go_back(void **state) {
  (void)state;
  world w = open_world(true);
  finish(&w, lease(&w, 0, ANNA), "lie");
  finish(&w, lease(&w, 0, BOB), "lie");
  const uint64_t proof = shoal_proof("right", 5), ticket = lease(&w, 0, SHOAL_GUARD_AUDITOR);
  shoal_sums sums = {.loss = 1};
  shoal_blob *report = shoal_blob_of(&sums, sizeof sums);
  shoal_guard_got(w.guard, ticket, 0, proof, 1);
  shoal_guard_done(w.guard, ticket, shoal_proof_join(&proof, 1, NULL, 0), &sums, report, 1);
  shoal_blob_release(report);
  shoal_ruling first;
  do {
    assert_true(shoal_guard_next(w.guard, &first));
    shoal_blob_release(first.report);
  } while (first.kind != SHOAL_RULING_WRONG);
  shoal_guard_back(w.guard, 0);
  hear(&w);
  assert_int_equal(w.count, 1);
  assert_int_equal(w.rulings[0].kind, SHOAL_RULING_WRONG);
  assert_true(w.rulings[0].who != first.who);
  shoal_guard_destroy(w.guard);
}

/* However many units a friend vouches for, one by which somebody would be proven is the auditor's. */
static void nobody_is_proven_without_the_auditor(void **state) {
  (void)state;
  world w = open_world(true);
  prove(&w, BOB, 100000);
  for (uint64_t round = 0; round < 50; round++) {
    finish(&w, lease(&w, round * PARTS, ANNA), "lie");
    finish(&w, lease(&w, round * PARTS, BOB), "lie");
    assert_false(shoal_trust_proven(shoal_guard_trust(w.guard), ANNA));
    shoal_guard_close(w.guard, round + 1, round + 1);
    hear(&w);
  }
  assert_int_equal(shoal_guard_unchecked(w.guard, ANNA), 0); /* all of it would be undone */
  assert_int_equal(shoal_guard_unchecked(w.guard, BOB), 0);
  shoal_guard_destroy(w.guard);
}

/* At the end there is no later audit that could find a lie. */
static void in_the_last_round_results_wait_for_the_auditor(void **state) {
  (void)state;
  world w = open_world(true);
  prove(&w, ANNA, 100000);
  prove(&w, BOB, 100000);
  finish(&w, lease_before_end(&w, 0, ANNA, 0), "right");
  assert_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA));
  uint64_t unit;
  assert_false(shoal_guard_wants(w.guard, BOB, 2, &unit));
  assert_true(shoal_guard_wants(w.guard, SHOAL_GUARD_AUDITOR, 2, &unit));
  finish(&w, lease(&w, 0, SHOAL_GUARD_AUDITOR), "right");
  assert_non_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA));
  assert_int_equal(shoal_guard_unchecked(w.guard, ANNA), UINT64_MAX);
  shoal_guard_destroy(w.guard);
}

/* But not for ever. */
static void an_auditor_that_never_comes_holds_up_nothing_for_ever(void **state) {
  (void)state;
  world w = open_world(true);
  prove(&w, ANNA, 100000);
  finish(&w, lease_before_end(&w, 0, ANNA, 0), "right");
  double until = shoal_guard_next_tick(w.guard, 20, 10);
  assert_true(isfinite(until));
  shoal_guard_tick(w.guard, until - 1, 10);
  hear(&w);
  assert_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA));
  shoal_guard_tick(w.guard, until, 10);
  hear(&w);
  assert_non_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA));
  assert_int_equal(shoal_guard_unchecked(w.guard, ANNA), 0);
  shoal_guard_destroy(w.guard);
}

/* Where one auditor has too many workers, somebody else may check what is owed. */
static void what_is_owed_may_be_vouched_for_when_the_auditor_is_late(void **state) {
  (void)state;
  world w = open_world(true);
  prove(&w, ANNA, SHOAL_TRUST_PROVES); /* every unit is drawn */
  prove(&w, BOB, 100000);
  uint64_t unit;
  finish(&w, lease(&w, 0, ANNA), "right");
  shoal_guard_close(w.guard, 1, 1);
  finish(&w, lease(&w, PARTS, ANNA), "right");
  assert_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA));
  assert_false(shoal_guard_wants(w.guard, BOB, 2, &unit));
  double until = shoal_guard_next_tick(w.guard, 2, 10);
  assert_true(until < 60);
  shoal_guard_tick(w.guard, until, 10);
  hear(&w);
  assert_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA));
  assert_true(shoal_guard_wants(w.guard, BOB, until, &unit));
  finish(&w, lease(&w, PARTS, BOB), "right");
  assert_non_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA));
  assert_int_equal(shoal_guard_unchecked(w.guard, ANNA), 0); /* the auditor has not said so */
  shoal_guard_destroy(w.guard);
}

/* Chance may spare somebody for long, but not for any length of time. */
static void after_many_units_an_audit_comes_for_sure(void **state) {
  (void)state;
  world w = open_world(true);
  uint64_t longest = 0, since = 0;
  prove(&w, ANNA, 100000);
  for (uint64_t round = 0; round < 20000; round++, since++) {
    uint64_t unit;
    uint64_t ticket = lease(&w, round * PARTS, ANNA);
    bool checked = shoal_guard_wants(w.guard, SHOAL_GUARD_AUDITOR, 0, &unit);
    uint64_t auditor = checked ? lease(&w, round * PARTS, SHOAL_GUARD_AUDITOR) : 0;
    finish(&w, ticket, "right");
    if (checked) finish(&w, auditor, "right");
    if (since > longest) longest = since;
    if (checked) since = 0;
    shoal_guard_close(w.guard, round + 1, round + 1);
    hear(&w);
  }
  assert_true(longest > 100 && longest <= 201);
  shoal_guard_destroy(w.guard);
}

static void what_is_unchecked_is_remembered_by_another_guard(void **state) {
  (void)state;
  world w = open_world(true), next = open_world(true);
  prove(&w, ANNA, 100000);
  prove(&w, BOB, 100000);
  for (uint64_t round = 0; round < 6; round++) {
    finish(&w, lease(&w, round * PARTS, round < 3 ? ANNA : BOB), "lie");
    shoal_guard_close(w.guard, round + 1, round + 1);
    hear(&w);
  }
  shoal_guard_person people[2];
  uint64_t others;
  assert_int_equal(shoal_guard_people(w.guard, people, 2, &others), 2);
  assert_true(others == UINT64_MAX);
  shoal_guard_remember(next.guard, people, 2, others, 3); /* from round 3 on all is done again */
  assert_int_equal(shoal_guard_unchecked(next.guard, ANNA), 0);
  assert_true(shoal_guard_unchecked(next.guard, BOB) == UINT64_MAX);
  assert_int_equal(shoal_guard_people(w.guard, people, 1, &others), 1); /* no room for both */
  shoal_guard_destroy(next.guard);
  next = open_world(true);
  shoal_guard_remember(next.guard, people, 1, others, 6);
  assert_true(shoal_guard_unchecked(next.guard, BOB) <= 3); /* one of those who are not told apart */
  shoal_guard_destroy(next.guard);
  shoal_guard_destroy(w.guard);
}

static void newcomers_who_agree_do_not_outvote_the_auditor(void **state) {
  (void)state;
  world w = open_world(true);
  finish(&w, lease(&w, 0, ANNA), "lie");
  finish(&w, lease(&w, 0, BOB), "lie");
  finish(&w, lease(&w, 0, SHOAL_GUARD_AUDITOR), "right");
  assert_non_null(ruled(&w, SHOAL_RULING_COUNTS, SHOAL_GUARD_AUDITOR));
  assert_non_null(ruled(&w, SHOAL_RULING_WRONG, ANNA));
  assert_non_null(ruled(&w, SHOAL_RULING_WRONG, BOB));
  assert_true(shoal_trust_banned(shoal_guard_trust(w.guard), ANNA));
  assert_true(shoal_trust_banned(shoal_guard_trust(w.guard), BOB));
  shoal_guard_destroy(w.guard);
}

static void a_proven_workers_result_counts_at_once_and_is_remembered_as_unchecked(void **state) {
  (void)state;
  world w = open_world(true);
  prove(&w, ANNA, 100000);
  uint64_t drawn = UINT64_MAX;
  for (uint64_t round = 0; round < 500 && drawn == UINT64_MAX; round++) {
    uint64_t unit = round * PARTS, wanted;
    uint64_t ticket = lease(&w, unit, ANNA);
    bool checked = shoal_guard_wants(w.guard, SHOAL_GUARD_AUDITOR, 0, &wanted);
    if (checked) drawn = round;
    uint64_t auditor = checked ? lease(&w, unit, SHOAL_GUARD_AUDITOR) : 0;
    finish(&w, ticket, "right"); /* or a lie: nobody knows yet */
    assert_non_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA));
    assert_int_equal(shoal_guard_unchecked(w.guard, ANNA), 0);
    shoal_guard_close(w.guard, round + 1, round + 1);
    hear(&w);
    if (!checked) continue;
    assert_true(shoal_guard_pending(w.guard)); /* the check goes on when the round is over */
    finish(&w, auditor, "something else");
    assert_non_null(ruled(&w, SHOAL_RULING_WRONG, ANNA));
    assert_int_equal(shoal_guard_unchecked(w.guard, ANNA), 0); /* where all must go back to */
  }
  assert_true(drawn != UINT64_MAX);
  shoal_guard_destroy(w.guard);
}

/* An audit that nobody had time for is made up for: the next unit counts only when it was checked. */
static void a_missed_audit_is_owed(void **state) {
  (void)state;
  world w = open_world(true);
  prove(&w, ANNA, SHOAL_TRUST_PROVES); /* every unit is drawn */
  finish(&w, lease(&w, 0, ANNA), "right");
  assert_non_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA));
  shoal_guard_close(w.guard, 1, 1);
  finish(&w, lease(&w, PARTS, ANNA), "right");
  assert_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA));
  finish(&w, lease(&w, PARTS, SHOAL_GUARD_AUDITOR), "right");
  assert_non_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA));
  shoal_guard_destroy(w.guard);
}

static void what_is_sent_must_be_what_is_reported(void **state) {
  (void)state;
  world w = open_world(true);
  prove(&w, ANNA, 100000);
  send(&w, lease(&w, 0, ANNA), "lie", "right", 1);
  assert_non_null(ruled(&w, SHOAL_RULING_WRONG, ANNA));
  assert_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA));
  shoal_guard_destroy(w.guard);
}

static void only_its_holder_can_name_a_lease(void **state) {
  (void)state;
  world w = open_world(true);
  uint64_t ticket = lease(&w, 0, ANNA), found, unit;
  assert_true(shoal_guard_find(w.guard, ticket, ANNA, &found, &unit));
  assert_false(shoal_guard_find(w.guard, ticket, BOB, &found, &unit));
  assert_false(shoal_guard_got(w.guard, ticket ^ 1, 0, 5, 1));
  assert_false(shoal_guard_got(w.guard, ticket >> 32, 0, 5, 1));
  assert_false(shoal_guard_got(w.guard, 0, 0, 5, 1));
  uint64_t other = lease(&w, 1, ANNA);
  assert_true((uint32_t)ticket != (uint32_t)other);
  shoal_guard_destroy(w.guard);
}

static void a_result_that_is_much_longer_than_others_is_checked_first(void **state) {
  (void)state;
  world w = open_world(true);
  prove(&w, ANNA, 100000);
  for (uint64_t round = 0; round < 20; round++) {
    finish(&w, lease(&w, round * PARTS, ANNA), "right");
    shoal_guard_close(w.guard, round + 1, round + 1);
    hear(&w);
  }
  send(&w, lease(&w, 20 * PARTS, ANNA), "long", "long", 81); /* a norm of 9 beside 1 */
  assert_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA));
  send(&w, lease(&w, 20 * PARTS, SHOAL_GUARD_AUDITOR), "long", "long", 81);
  assert_non_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA)); /* it was right all the same */
  send(&w, lease(&w, 20 * PARTS + 1, ANNA), "nan", "nan", NAN);
  assert_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA));
  send(&w, lease(&w, 20 * PARTS + 1, SHOAL_GUARD_AUDITOR), "nan", "nan", NAN);
  const shoal_ruling *blown = ruled(&w, SHOAL_RULING_COUNTS, ANNA);
  assert_non_null(blown); /* so the training has blown up, and owners do not get it */
  assert_false(blown->finite);
  shoal_guard_destroy(w.guard);
}

static void without_audits_the_first_counts_and_is_limited(void **state) {
  (void)state;
  world w = open_world(false);
  for (uint64_t round = 0; round < 20; round++) {
    finish(&w, lease(&w, round * PARTS, ANNA), "any");
    assert_non_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA));
    shoal_guard_close(w.guard, round + 1, round + 1);
    hear(&w);
  }
  send(&w, lease(&w, 20 * PARTS, ANNA), "long", "long", 32 * 32);
  assert_non_null(ruled(&w, SHOAL_RULING_REJECTED, ANNA));
  assert_true(fabsf(ruled(&w, SHOAL_RULING_COUNTS, ANNA)->scale - 0.25f) < 1e-6f);
  send(&w, lease(&w, 20 * PARTS + 1, ANNA), "nan", "nan", NAN);
  assert_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA));
  assert_non_null(ruled(&w, SHOAL_RULING_FREE, ANNA)); /* somebody else is to try */
  send(&w, lease(&w, 20 * PARTS + 1, BOB), "nan", "nan", NAN);
  assert_non_null(ruled(&w, SHOAL_RULING_COUNTS, BOB)); /* who finds the same */
  assert_false(ruled(&w, SHOAL_RULING_COUNTS, BOB)->finite);
  shoal_guard_destroy(w.guard);
}

/* Two results that were equal and not enough become enough when one of the two is proven by other units. */
static void who_becomes_proven_vouches_for_others(void **state) {
  (void)state;
  world w = open_world(true);
  prove(&w, BOB, SHOAL_TRUST_PROVES - 1);
  finish(&w, lease(&w, 0, ANNA), "right");
  finish(&w, lease(&w, 0, BOB), "right");
  assert_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA));
  finish(&w, lease(&w, 1, BOB), "other");
  finish(&w, lease(&w, 1, SHOAL_GUARD_AUDITOR), "other");
  assert_non_null(ruled(&w, SHOAL_RULING_COUNTS, ANNA)); /* unit 0 */
  shoal_guard_destroy(w.guard);
}

static void a_contribution_that_never_arrives_frees_its_unit(void **state) {
  (void)state;
  world w = open_world(true);
  uint64_t ticket = lease(&w, 0, ANNA);
  shoal_sums sums = {.loss = 1};
  shoal_blob *report = shoal_blob_of(&sums, sizeof sums);
  shoal_guard_done(w.guard, ticket, 5, &sums, report, 1);
  shoal_blob_release(report);
  shoal_guard_tick(w.guard, 5, 10);
  hear(&w);
  assert_int_equal(w.count, 0);
  assert_true(shoal_guard_next_tick(w.guard, 10.5, 10) <= 11);
  shoal_guard_tick(w.guard, 11, 10);
  hear(&w);
  assert_non_null(ruled(&w, SHOAL_RULING_FREE, ANNA));
  assert_false(shoal_guard_got(w.guard, ticket, 0, 5, 1)); /* too late: the owner may forget it */
  shoal_guard_destroy(w.guard);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_newcomers_result_waits_for_somebody_proven),
      cmocka_unit_test(newcomers_who_agree_do_not_outvote_the_auditor),
      cmocka_unit_test(two_who_are_proven_cannot_vouch_for_each_other),
      cmocka_unit_test(a_second_liar_is_not_forgotten_when_all_go_back),
      cmocka_unit_test(nobody_is_proven_without_the_auditor),
      cmocka_unit_test(in_the_last_round_results_wait_for_the_auditor),
      cmocka_unit_test(an_auditor_that_never_comes_holds_up_nothing_for_ever),
      cmocka_unit_test(what_is_owed_may_be_vouched_for_when_the_auditor_is_late),
      cmocka_unit_test(after_many_units_an_audit_comes_for_sure),
      cmocka_unit_test(what_is_unchecked_is_remembered_by_another_guard),
      cmocka_unit_test(a_proven_workers_result_counts_at_once_and_is_remembered_as_unchecked),
      cmocka_unit_test(a_missed_audit_is_owed),
      cmocka_unit_test(what_is_sent_must_be_what_is_reported),
      cmocka_unit_test(only_its_holder_can_name_a_lease),
      cmocka_unit_test(a_result_that_is_much_longer_than_others_is_checked_first),
      cmocka_unit_test(without_audits_the_first_counts_and_is_limited),
      cmocka_unit_test(who_becomes_proven_vouches_for_others),
      cmocka_unit_test(a_contribution_that_never_arrives_frees_its_unit),
  };
  return RUN_TESTS(tests);
}
