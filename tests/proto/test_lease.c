/* The lease book: one holder a lease, the first result counts, the overdue is leased again. */
#include "proto/lease.h"

#include <math.h>

#include "base/random.h"
#include "check.h"

static shoal_lease_book *book_of(uint32_t units, uint32_t holders) {
  shoal_lease_rules rules = {
      .units_max = units, .holders_max = holders, .patience = 2, .first_s = 10, .least_s = 0.5};
  shoal_lease_book *book;
  shoal_error err;
  assert_int_equal(shoal_lease_book_create(&book, &rules, &err), SHOAL_OK);
  return book;
}

static shoal_lease take(shoal_lease_book *book, uint64_t worker, double now) {
  shoal_lease lease;
  assert_true(shoal_lease_take(book, worker, now, &lease));
  assert_int_equal(lease.worker, worker);
  assert_true(lease.deadline > now);
  return lease;
}

static bool nothing_for(shoal_lease_book *book, uint64_t worker, double now) {
  shoal_lease lease;
  return !shoal_lease_take(book, worker, now, &lease);
}

static shoal_lease_outcome finish(shoal_lease_book *book, const shoal_lease *lease, uint64_t digest,
                                  double now) {
  return shoal_lease_finish(book, lease->id, lease->worker, lease->unit, digest, now);
}

static void units_go_out_in_order_and_once(void **state) {
  (void)state;
  shoal_lease_book *book = book_of(4, 2);
  for (uint64_t u = 3; u > 0; u--) assert_true(shoal_lease_offer(book, 10 * u));
  assert_int_equal(take(book, 1, 0).unit, 10);
  assert_int_equal(take(book, 1, 0).unit, 20);
  assert_int_equal(take(book, 2, 0).unit, 30);
  assert_true(nothing_for(book, 3, 0));
  assert_true(shoal_lease_offer(book, 5));
  assert_false(shoal_lease_offer(book, 6));
  assert_int_equal(take(book, 3, 0).unit, 5);
  shoal_lease_counts counts = shoal_lease_count(book);
  assert_int_equal(counts.leased, 4);
  assert_int_equal(counts.again, 0);
  shoal_lease_book_destroy(book);
}

static void the_first_result_counts_and_the_second_must_agree(void **state) {
  (void)state;
  shoal_lease_book *book = book_of(2, 3);
  shoal_lease_offer(book, 1);
  shoal_lease a = take(book, 1, 0), b = take(book, 2, 11), c = take(book, 3, 22);
  assert_int_equal(finish(book, &b, 77, 23), SHOAL_LEASE_FIRST);
  assert_int_equal(finish(book, &b, 77, 23), SHOAL_LEASE_STRANGE);
  assert_int_equal(finish(book, &a, 77, 24), SHOAL_LEASE_AGREES);
  assert_int_equal(finish(book, &c, 78, 24), SHOAL_LEASE_DIFFERS);
  assert_int_equal(shoal_lease_count(book).finished, 1);
  shoal_lease_book_destroy(book);
}

static void a_lease_is_its_holders_alone(void **state) {
  (void)state;
  shoal_lease_book *book = book_of(2, 2);
  shoal_lease_offer(book, 1);
  shoal_lease a = take(book, 1, 0);
  assert_int_equal(shoal_lease_finish(book, a.id, 2, 1, 5, 1), SHOAL_LEASE_STRANGE);
  assert_int_equal(shoal_lease_finish(book, a.id, 1, 2, 5, 1), SHOAL_LEASE_STRANGE);
  assert_int_equal(shoal_lease_finish(book, a.id + 1, 1, 1, 5, 1), SHOAL_LEASE_STRANGE);
  shoal_lease_return(book, a.id, 2);
  shoal_lease held;
  assert_true(shoal_lease_held(book, 1, &held));
  assert_int_equal(held.id, a.id);
  assert_int_equal(finish(book, &a, 5, 1), SHOAL_LEASE_FIRST);
  assert_false(shoal_lease_held(book, 1, &held));
  shoal_lease_book_destroy(book);
}

static void the_longest_overdue_is_leased_again(void **state) {
  (void)state;
  shoal_lease_book *book = book_of(4, 2);
  shoal_lease_offer(book, 1);
  shoal_lease_offer(book, 2);
  take(book, 1, 0);
  take(book, 2, 3);
  assert_true(shoal_lease_next_deadline(book, 0) == 10);
  assert_true(shoal_lease_next_deadline(book, 10) == 13);
  assert_true(isinf(shoal_lease_next_deadline(book, 13))); /* both are overdue: no time will change that */
  assert_true(nothing_for(book, 3, 9.9));
  assert_true(nothing_for(book, 1, 12));       /* it has unit 1 already */
  assert_int_equal(take(book, 3, 14).unit, 1); /* both are overdue, 1 for longer */
  assert_int_equal(take(book, 4, 14).unit, 2);
  assert_true(nothing_for(book, 5, 1000)); /* two holders each are enough */
  assert_int_equal(shoal_lease_count(book).again, 2);
  shoal_lease_book_destroy(book);
}

static void what_a_lost_worker_had_is_free_again(void **state) {
  (void)state;
  shoal_lease_book *book = book_of(4, 2);
  for (uint64_t u = 1; u <= 3; u++) shoal_lease_offer(book, u);
  shoal_lease a = take(book, 1, 0);
  take(book, 1, 0);
  shoal_lease c = take(book, 2, 0);
  shoal_lease_drop(book, 1);
  assert_int_equal(shoal_lease_count(book).free, 2);
  assert_int_equal(finish(book, &a, 1, 1), SHOAL_LEASE_STRANGE);
  shoal_lease_return(book, c.id, 2);
  assert_int_equal(shoal_lease_count(book).free, 3);
  assert_int_equal(take(book, 3, 1).unit, 1);
  shoal_lease_book_destroy(book);
}

static void patience_follows_the_median(void **state) {
  (void)state;
  shoal_lease_book *book = book_of(100, 1);
  const double durations[] = {3, 1, 2, 100, 2};
  double now = 0;
  assert_true(shoal_lease_median(book) == 0);
  for (uint64_t u = 0; u < sizeof durations / sizeof durations[0]; u++) {
    shoal_lease_offer(book, u);
    shoal_lease lease = take(book, 1, now);
    now += durations[u];
    finish(book, &lease, 0, now);
  }
  assert_true(shoal_lease_median(book) == 2);
  shoal_lease_offer(book, 50);
  assert_true(take(book, 1, now).deadline == now + 4); /* twice the median, which is 2 */
  shoal_lease_book_destroy(book);
}

static void forgotten_units_are_strange(void **state) {
  (void)state;
  shoal_lease_book *book = book_of(4, 1);
  for (uint64_t u = 1; u <= 4; u++) shoal_lease_offer(book, u);
  shoal_lease a = take(book, 1, 0), b = take(book, 1, 0), c = take(book, 1, 0);
  finish(book, &a, 1, 1);
  shoal_lease_forget(book, 3);
  assert_int_equal(finish(book, &b, 1, 1), SHOAL_LEASE_STRANGE);
  assert_int_equal(finish(book, &c, 1, 1), SHOAL_LEASE_FIRST);
  assert_true(shoal_lease_offer(book, 7));
  shoal_lease_forget(book, UINT64_MAX);
  assert_true(nothing_for(book, 1, 1));
  assert_true(isinf(shoal_lease_next_deadline(book, 1)));
  shoal_lease_book_destroy(book);
}

/* A thousand random lives of a book, beside a plain count of what must hold. */
static void random_lives_finish_every_unit_once(void **state) {
  (void)state;
  enum { WORKERS = 7, UNITS = 24, HELD_MAX = 4096 };
  for (uint64_t seed = 0; seed < 1000; seed++) {
    shoal_key key = shoal_key_make(seed, SHOAL_FOR_TOY, 0, 0);
    uint64_t draws = 0;
    shoal_lease_book *book = book_of(UNITS, 3);
    for (uint64_t u = 0; u < UNITS; u++) assert_true(shoal_lease_offer(book, u));
    static shoal_lease held[HELD_MAX];
    uint32_t held_count = 0, finished[UNITS] = {0}, left = UNITS;
    double now = 0;
    for (uint32_t step = 0; left > 0; step++) {
      assert_true(step < HELD_MAX);
      now += shoal_random_uniform(key, draws++) * 4;
      uint32_t what = shoal_random_u32(key, draws++) % 8, worker = shoal_random_u32(key, draws++) % WORKERS;
      shoal_lease lease;
      if (what < 4) {
        if (shoal_lease_take(book, worker, now, &lease)) {
          assert_int_equal(finished[lease.unit], 0);
          held[held_count++] = lease;
        }
      } else if (what < 7 && held_count > 0) {
        lease = held[shoal_random_u32(key, draws++) % held_count];
        shoal_lease_outcome outcome = finish(book, &lease, lease.unit * 31, now);
        assert_int_not_equal(outcome, SHOAL_LEASE_DIFFERS);
        if (outcome == SHOAL_LEASE_FIRST) {
          assert_int_equal(finished[lease.unit]++, 0);
          left--;
        }
      } else if (what == 7) {
        shoal_lease_drop(book, worker);
      }
      shoal_lease_counts counts = shoal_lease_count(book);
      assert_int_equal(counts.free + counts.leased, left);
      assert_int_equal(counts.finished, UNITS - left);
    }
    shoal_lease_book_destroy(book);
  }
}

static shoal_lease_book *book_with_lanes(uint32_t units, uint32_t lanes) {
  shoal_lease_rules rules = {
      .units_max = units, .holders_max = 3, .patience = 3, .first_s = 10, .least_s = 0.5, .lanes = lanes};
  shoal_lease_book *book;
  shoal_error err;
  assert_int_equal(shoal_lease_book_create(&book, &rules, &err), SHOAL_OK);
  return book;
}

static void offer_round(shoal_lease_book *book, uint64_t round, uint32_t lanes) {
  for (uint32_t v = 0; v < lanes; v++) assert_true(shoal_lease_offer(book, round * lanes + v));
}

static void a_worker_keeps_its_lanes(void **state) {
  (void)state;
  shoal_lease_book *book = book_with_lanes(16, 4);
  uint32_t lane_of[5] = {0};
  double now = 0;
  for (uint64_t round = 0; round < 20; round++, now += 1) {
    shoal_lease_forget(book, round * 4);
    offer_round(book, round, 4);
    /* Whoever asks first, each gets its own again. */
    for (uint64_t i = 0; i < 4; i++) {
      uint64_t worker = 1 + (i + round) % 4;
      shoal_lease lease = take(book, worker, now);
      if (round == 0) lane_of[worker] = (uint32_t)(lease.unit % 4);
      assert_int_equal(lease.unit % 4, lane_of[worker]);
      assert_true(nothing_for(book, worker, now));
      assert_int_equal(finish(book, &lease, 7, now + 0.5), SHOAL_LEASE_FIRST);
    }
  }
  shoal_lease_book_destroy(book);
}

/* Who is alone has all lanes after a while; who comes then gets its share soon, and no more. */
static void lanes_go_to_who_has_fewer_or_when_their_holder_is_gone(void **state) {
  (void)state;
  shoal_lease_book *book = book_with_lanes(8, 2);
  offer_round(book, 0, 2);
  shoal_lease a = take(book, 1, 0);
  assert_true(nothing_for(book, 1, 0.5)); /* the other lane is for others, if they come */
  finish(book, &a, 7, 1);
  assert_true(nothing_for(book, 1, 4.9));
  assert_true(shoal_lease_next_deadline(book, 2.4) == 5);
  shoal_lease b = take(book, 1, 5);
  assert_int_equal(b.unit, 1);
  finish(book, &b, 7, 6);
  shoal_lease_forget(book, 2);
  offer_round(book, 1, 2);
  /* Both lanes are 1's, who is here but does not ask. The median is 1 s. */
  assert_true(nothing_for(book, 2, 10));
  assert_true(shoal_lease_next_deadline(book, 10) == 12.5);
  assert_true(nothing_for(book, 2, 12.4));
  shoal_lease c = take(book, 2, 12.5);
  assert_int_equal(c.unit, 2);
  finish(book, &c, 7, 13.5);
  /* 1 has one lane left, which it keeps for longer. */
  assert_true(nothing_for(book, 3, 13.5));
  assert_true(nothing_for(book, 2, 19.9));
  assert_true(shoal_lease_next_deadline(book, 13.5) == 20);
  shoal_lease d = take(book, 3, 20);
  assert_int_equal(d.unit, 3);
  finish(book, &d, 7, 21);
  shoal_lease_forget(book, 4);
  offer_round(book, 2, 2);
  assert_true(nothing_for(book, 1, 30));
  assert_int_equal(take(book, 2, 30).unit, 4);
  /* 3 goes without a lease: its lane is anybody's at once. */
  assert_true(nothing_for(book, 1, 30));
  shoal_lease_drop(book, 3);
  assert_int_equal(take(book, 1, 30).unit, 5);
  shoal_lease_book_destroy(book);
}

static void a_unit_that_comes_back_waits_for_its_lane_anew(void **state) {
  (void)state;
  shoal_lease_book *book = book_with_lanes(8, 2);
  offer_round(book, 0, 2);
  shoal_lease a = take(book, 1, 0), b = take(book, 2, 0);
  finish(book, &a, 7, 1);
  shoal_lease_return(book, b.id, 2);
  assert_true(nothing_for(book, 1, 5));
  assert_true(nothing_for(book, 1, 14.9));
  assert_int_equal(take(book, 1, 15).unit, 1);
  shoal_lease_book_destroy(book);
}

/* Who is slow, since its data is on its way, is waited for. */
static void with_lanes_leases_last_longer(void **state) {
  (void)state;
  shoal_lease_book *book = book_with_lanes(8, 2);
  offer_round(book, 0, 2);
  shoal_lease a = take(book, 1, 0), b = take(book, 2, 0);
  finish(book, &a, 7, 0.01);
  finish(book, &b, 7, 0.01);
  shoal_lease_forget(book, 2);
  offer_round(book, 1, 2);
  a = take(book, 1, 1);
  assert_true(a.deadline == 6);
  b = take(book, 2, 1);
  finish(book, &b, 7, 1.01);
  assert_true(nothing_for(book, 2, 5.9));
  assert_int_equal(take(book, 2, 6).unit, a.unit);
  shoal_lease_book_destroy(book);
}

/* A lane goes from who is slow to who waits, but not before its holder has had the time to fetch its data. */
static void a_new_holder_is_waited_for_some_seconds(void **state) {
  (void)state;
  shoal_lease_book *book = book_with_lanes(8, 2);
  double now = 0;
  for (uint64_t round = 0; round < 8; round++, now += 10) {
    shoal_lease_forget(book, 2 * round);
    offer_round(book, round, 2);
    shoal_lease a = take(book, 1, now);
    finish(book, &a, 7, now + 0.01);
    /* Here 2 is not seen; its unit waits. */
    if (round > 0) assert_true(nothing_for(book, 1, now + 4.9));
    shoal_lease b = take(book, 2, now + 4.9);
    finish(book, &b, 7, now + 4.91);
  }
  shoal_lease_forget(book, 16);
  offer_round(book, 8, 2);
  shoal_lease a = take(book, 1, now);
  finish(book, &a, 7, now + 0.01);
  assert_true(nothing_for(book, 1, now + 0.05));
  assert_int_equal(take(book, 1, now + 0.15).unit, 17);
  shoal_lease_book_destroy(book);
}

/* Many workers and rounds at random: every unit is given exactly once while nothing is overdue, and the
 * book's counts are those of its units. */
static void lanes_at_random_lose_no_unit(void **state) {
  (void)state;
  enum { LANES = 7, ROUNDS = 60, WORKERS = 5 };
  shoal_lease_book *book = book_with_lanes(3 * LANES, LANES);
  shoal_key key = {{1, 2}};
  uint64_t drawn = 0, given[ROUNDS * LANES] = {0};
  double now = 0;
  for (uint64_t round = 0; round < ROUNDS; round++) {
    shoal_lease_forget(book, round * LANES);
    offer_round(book, round, LANES);
    for (uint32_t left = LANES; left > 0;) {
      now += 0.1;
      uint64_t worker = 1 + shoal_random_below(key, drawn++, WORKERS);
      shoal_lease lease;
      if (shoal_random_below(key, drawn++, 20) == 0) shoal_lease_drop(book, worker);
      if (!shoal_lease_take(book, worker, now, &lease)) continue;
      given[lease.unit]++;
      if (shoal_random_below(key, drawn++, 4) == 0) {
        shoal_lease_return(book, lease.id, worker);
        given[lease.unit]--;
        continue;
      }
      assert_int_equal(finish(book, &lease, lease.unit, now + 0.01), SHOAL_LEASE_FIRST);
      assert_int_equal(shoal_lease_count(book).free, --left);
    }
  }
  for (uint64_t u = 0; u < ROUNDS * LANES; u++) assert_int_equal(given[u], 1);
  shoal_lease_book_destroy(book);
}

static void who_shall_check_joins_at_once(void **state) {
  (void)state;
  shoal_lease_book *book = book_with_lanes(8, 2);
  shoal_lease a, b, c;
  offer_round(book, 0, 2);
  a = take(book, 1, 0);
  assert_false(shoal_lease_join(book, 1, a.unit, 0, &b)); /* has it */
  assert_false(shoal_lease_join(book, 2, 99, 0, &b));     /* no such unit */
  assert_true(shoal_lease_join(book, 2, a.unit, 0.5, &b));
  assert_int_equal(b.unit, a.unit);
  assert_true(b.since == 0.5);
  assert_int_equal(finish(book, &a, 7, 1), SHOAL_LEASE_FIRST);
  /* Also of what is finished; lanes stay whose they are. */
  assert_true(shoal_lease_join(book, 3, a.unit, 1, &c));
  assert_int_equal(finish(book, &b, 7, 2), SHOAL_LEASE_AGREES);
  assert_int_equal(finish(book, &c, 8, 2), SHOAL_LEASE_DIFFERS);
  assert_int_equal(shoal_lease_count(book).again, 0);
  shoal_lease_forget(book, 2);
  offer_round(book, 1, 2);
  assert_int_equal(take(book, 3, 3).unit, 3);
  assert_int_equal(take(book, 1, 3).unit, 2);
  /* No more than holders_max. */
  assert_true(shoal_lease_join(book, 4, 2, 3, &a));
  assert_true(shoal_lease_join(book, 5, 2, 3, &a));
  assert_false(shoal_lease_join(book, 6, 2, 3, &a));
  shoal_lease_book_destroy(book);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(units_go_out_in_order_and_once),
      cmocka_unit_test(the_first_result_counts_and_the_second_must_agree),
      cmocka_unit_test(a_lease_is_its_holders_alone),
      cmocka_unit_test(the_longest_overdue_is_leased_again),
      cmocka_unit_test(what_a_lost_worker_had_is_free_again),
      cmocka_unit_test(patience_follows_the_median),
      cmocka_unit_test(forgotten_units_are_strange),
      cmocka_unit_test(random_lives_finish_every_unit_once),
      cmocka_unit_test(a_worker_keeps_its_lanes),
      cmocka_unit_test(lanes_go_to_who_has_fewer_or_when_their_holder_is_gone),
      cmocka_unit_test(with_lanes_leases_last_longer),
      cmocka_unit_test(a_new_holder_is_waited_for_some_seconds),
      cmocka_unit_test(a_unit_that_comes_back_waits_for_its_lane_anew),
      cmocka_unit_test(lanes_at_random_lose_no_unit),
      cmocka_unit_test(who_shall_check_joins_at_once),
  };
  return RUN_TESTS(tests);
}
