/* Who is believed: newcomers are always audited, the proven seldom, liars never again believed. */
#include "check.h"
#include "proto/trust.h"

enum { ANNA = 7, BOB = 8, UNITS = 100000 };

static shoal_trust *trust_of(uint32_t max) {
  shoal_trust *trust;
  assert_int_equal(shoal_trust_create(&trust, max, 42, NULL), SHOAL_OK);
  return trust;
}

static double audited(const shoal_trust *trust, uint64_t who) {
  uint32_t count = 0;
  for (uint64_t unit = 0; unit < UNITS; unit++) count += shoal_trust_audits(trust, who, unit);
  return (double)count / UNITS;
}

static void newcomers_are_always_audited(void **state) {
  (void)state;
  shoal_trust *trust = trust_of(8);
  for (int i = 0; i < SHOAL_TRUST_PROVES; i++) {
    assert_false(shoal_trust_proven(trust, ANNA));
    assert_true(audited(trust, ANNA) == 1);
    shoal_trust_agreed(trust, ANNA);
  }
  assert_true(shoal_trust_proven(trust, ANNA));
  assert_false(shoal_trust_proven(trust, BOB));
  shoal_trust_destroy(trust);
}

static void the_share_falls_with_agreement_to_three_in_a_hundred(void **state) {
  (void)state;
  shoal_trust *trust = trust_of(8);
  double before = 1;
  for (int i = 0; i < 200; i++) {
    double share = shoal_trust_share((uint64_t)i);
    assert_true(share <= before);
    before = share;
    shoal_trust_agreed(trust, ANNA);
  }
  assert_true(before == 0.03);
  double measured = audited(trust, ANNA);
  assert_true(measured > 0.027 && measured < 0.033);
  shoal_trust_destroy(trust);
}

/* The draw depends on the secret, and on who it is. */
static void the_draw_is_not_the_same_for_all(void **state) {
  (void)state;
  shoal_trust *trust = trust_of(8), *other;
  assert_int_equal(shoal_trust_create(&other, 8, 43, NULL), SHOAL_OK);
  const shoal_standing anna = {.who = ANNA, .agreed = 1000}, bob = {.who = BOB, .agreed = 1000};
  shoal_trust_put(trust, &anna);
  shoal_trust_put(trust, &bob);
  shoal_trust_put(other, &anna);
  uint32_t both = 0, seeds = 0;
  for (uint64_t unit = 0; unit < UNITS; unit++) {
    bool drawn = shoal_trust_audits(trust, ANNA, unit);
    both += drawn && shoal_trust_audits(trust, BOB, unit);
    seeds += drawn && shoal_trust_audits(other, ANNA, unit);
  }
  assert_true(both < UNITS / 400 && seeds < UNITS / 400); /* 3% of 3%, not 3% */
  shoal_trust_destroy(trust);
  shoal_trust_destroy(other);
}

static void a_wrong_result_bans_until_it_is_lifted(void **state) {
  (void)state;
  shoal_trust *trust = trust_of(8);
  for (int i = 0; i < 100; i++) shoal_trust_agreed(trust, ANNA);
  shoal_trust_wrong(trust, ANNA);
  assert_true(shoal_trust_banned(trust, ANNA));
  assert_false(shoal_trust_proven(trust, ANNA));
  shoal_standing kept = shoal_trust_get(trust, ANNA);
  assert_int_equal(shoal_standing_word_of(&kept), SHOAL_BANNED);
  assert_string_equal(shoal_standing_name(shoal_standing_word_of(&kept)), "banned");
  assert_int_equal(kept.agreed, 100);
  assert_int_equal(kept.wrong, 1);
  kept = (shoal_standing){.who = ANNA}; /* lifted: a newcomer again */
  shoal_trust_put(trust, &kept);
  assert_false(shoal_trust_banned(trust, ANNA));
  assert_false(shoal_trust_proven(trust, ANNA));
  shoal_trust_destroy(trust);
}

static void strangers_push_out_strangers_and_never_the_banned(void **state) {
  (void)state;
  shoal_trust *trust = trust_of(4);
  shoal_trust_wrong(trust, ANNA);
  for (int i = 0; i < 10; i++) shoal_trust_agreed(trust, BOB);
  for (uint64_t who = 100; who < 200; who++) shoal_trust_agreed(trust, who);
  assert_true(shoal_trust_banned(trust, ANNA));
  assert_true(shoal_trust_proven(trust, BOB));
  shoal_standing standing;
  uint32_t count = 0;
  while (shoal_trust_at(trust, count, &standing)) count++;
  assert_int_equal(count, 4);
  shoal_trust_destroy(trust);
}

/* Others complain: it is audited often for a while, and nothing else happens to it. */
static void who_is_doubted_is_audited_more_and_never_banned(void **state) {
  (void)state;
  shoal_trust *trust = trust_of(8);
  for (int i = 0; i < 1000; i++) shoal_trust_agreed(trust, ANNA);
  double before = audited(trust, ANNA);
  for (int i = 0; i < 100; i++) shoal_trust_doubt(trust, ANNA);
  assert_true(audited(trust, ANNA) == 1 && before < 0.04);
  assert_true(shoal_trust_proven(trust, ANNA));
  assert_false(shoal_trust_banned(trust, ANNA));
  for (int i = 0; i < 3; i++) shoal_trust_agreed(trust, ANNA);
  double later = audited(trust, ANNA);
  assert_true(later > 0.2 && later < 0.3);
  for (int i = 0; i < 40; i++) shoal_trust_agreed(trust, ANNA);
  assert_true(audited(trust, ANNA) < 0.04); /* it has worn off */
  shoal_trust_destroy(trust);
}

static double by_auditor(const shoal_trust *trust, uint64_t who) {
  uint32_t count = 0;
  for (uint64_t unit = 0; unit < UNITS; unit++) count += shoal_trust_wants_auditor(trust, who, unit);
  return (double)count / UNITS;
}

static void some_audits_are_the_auditors_alone(void **state) {
  (void)state;
  shoal_trust *trust = trust_of(8);
  double newcomer = by_auditor(trust, ANNA);
  assert_true(newcomer > 0.24 && newcomer < 0.26);
  for (int i = 0; i < SHOAL_TRUST_PROVES - 1; i++) shoal_trust_agreed(trust, ANNA);
  assert_true(by_auditor(trust, ANNA) == 1); /* the one that proves it */
  for (int i = 0; i < 1000; i++) shoal_trust_agreed(trust, ANNA);
  double proven = by_auditor(trust, ANNA);
  assert_true(proven > 0.027 && proven < 0.033);
  shoal_trust_destroy(trust);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(newcomers_are_always_audited),
      cmocka_unit_test(the_share_falls_with_agreement_to_three_in_a_hundred),
      cmocka_unit_test(the_draw_is_not_the_same_for_all),
      cmocka_unit_test(a_wrong_result_bans_until_it_is_lifted),
      cmocka_unit_test(strangers_push_out_strangers_and_never_the_banned),
      cmocka_unit_test(who_is_doubted_is_audited_more_and_never_banned),
      cmocka_unit_test(some_audits_are_the_auditors_alone),
  };
  return RUN_TESTS(tests);
}
