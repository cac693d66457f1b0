#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "data/order.h"
#include "data/parts.h"

static void order_is_a_permutation_for_every_count(void **state) {
  (void)state;
  for (uint64_t n = 1; n <= 1100; n += n < 300 ? 1 : 97) {
    uint8_t *seen = calloc(n, 1);
    shoal_order order;
    shoal_order_init(&order, n, 7, 3);
    for (uint64_t i = 0; i < n; i++) {
      uint64_t at = shoal_order_at(&order, i);
      assert_true(at < n);
      assert_int_equal(seen[at]++, 0);
    }
    free(seen);
  }
}

static void many_positions_are_those_asked_one_by_one(void **state) {
  (void)state;
  const uint64_t counts[] = {1, 5, 63, 64, 65, 700, 60000, ((uint64_t)1 << 40) + 1};
  uint64_t many[300];
  for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
    for (uint32_t length = 0; length <= 300 && length <= counts[k]; length += 13) {
      shoal_order order;
      shoal_order_init(&order, counts[k], 5, length);
      uint64_t first = counts[k] - length; /* up to the last */
      shoal_order_many(&order, first, length, many);
      for (uint32_t i = 0; i < length; i++) assert_true(many[i] == shoal_order_at(&order, first + i));
    }
}

static void order_of_large_counts_stays_below_them(void **state) {
  (void)state;
  const uint64_t counts[] = {60000, 65536, 65537, UINT32_MAX, (uint64_t)1 << 40, ((uint64_t)1 << 62)};
  for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
    shoal_order order;
    shoal_order_init(&order, counts[k], 1, 0);
    uint64_t last = UINT64_MAX;
    for (uint64_t i = 0; i < 1000; i++) {
      uint64_t at = shoal_order_at(&order, counts[k] - 1 - i);
      assert_true(at < counts[k]);
      assert_true(at != last);
      last = at;
    }
  }
}

/* How many of n positions hold the same sample under two orders: about one when they differ. */
static uint64_t shared_places(const shoal_order *a, const shoal_order *b) {
  uint64_t same = 0;
  for (uint64_t i = 0; i < a->n; i++) same += shoal_order_at(a, i) == shoal_order_at(b, i);
  return same;
}

static void order_differs_between_epochs_and_seeds(void **state) {
  (void)state;
  shoal_order a, b, c, again;
  shoal_order_init(&a, 60000, 1, 0);
  shoal_order_init(&b, 60000, 1, 1);
  shoal_order_init(&c, 60000, 2, 0);
  shoal_order_init(&again, 60000, 1, 0);
  assert_true(shared_places(&a, &b) < 12);
  assert_true(shared_places(&a, &c) < 12);
  assert_true(shared_places(&a, &again) == 60000);
}

/* The first position's sample over many epochs: every tenth of the range gets its share. */
static void order_sends_a_position_everywhere(void **state) {
  (void)state;
  enum { N = 1000, EPOCHS = 10000 };
  uint32_t tenth[10] = {0};
  for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
    shoal_order order;
    shoal_order_init(&order, N, 5, epoch);
    tenth[shoal_order_at(&order, 0) * 10 / N]++;
  }
  for (int i = 0; i < 10; i++)
    assert_in_range(tenth[i], EPOCHS / 10 - 150, EPOCHS / 10 + 150); /* five deviations */
}

/* Rounds are consecutive positions: neighbours must not stay neighbours. */
static void order_separates_neighbours(void **state) {
  (void)state;
  shoal_order order;
  shoal_order_init(&order, 60000, 1, 0);
  uint64_t near = 0;
  for (uint64_t i = 1; i < 60000; i++) {
    uint64_t a = shoal_order_at(&order, i - 1), b = shoal_order_at(&order, i);
    near += (a > b ? a - b : b - a) <= 10;
  }
  assert_in_range(near, 5, 50); /* 20 expected */
}

static void order_is_the_same_on_every_machine(void **state) {
  (void)state;
  shoal_order order;
  shoal_order_init(&order, 60000, 1, 0);
  uint64_t hash = 0;
  for (uint64_t i = 0; i < 60000; i++) hash = hash * 31 + shoal_order_at(&order, i);
  assert_true(hash == UINT64_C(0x7756b7bc6b2dc770));
}

static void parts_hold_every_sample_once(void **state) {
  (void)state;
  const double shares[] = {0, 0.01, 0.1, 0.5, 0.9};
  for (uint64_t training = 0; training < 70; training += training < 5 ? 1 : 13) {
    for (int k = 0; k < 5; k++) {
      shoal_parts parts;
      shoal_parts_init(&parts, training, 11, shares[k]);
      uint8_t seen[128] = {0};
      uint64_t all = 0;
      for (int split = 0; split < SHOAL_SPLITS; split++) {
        for (uint64_t i = 0; i < parts.count[split]; i++, all++) {
          uint64_t number = shoal_parts_number(&parts, (shoal_split)split, i);
          assert_true((split == SHOAL_TEST) == (number >= training));
          assert_int_equal(seen[number]++, 0);
        }
      }
      assert_int_equal(all, training + 11);
      assert_true(training == 0 || parts.count[SHOAL_TRAIN] > 0);
      assert_true((parts.count[SHOAL_VALID] > 0) == (shares[k] > 0 && training > 1));
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(order_is_a_permutation_for_every_count),
      cmocka_unit_test(many_positions_are_those_asked_one_by_one),
      cmocka_unit_test(order_of_large_counts_stays_below_them),
      cmocka_unit_test(order_differs_between_epochs_and_seeds),
      cmocka_unit_test(order_sends_a_position_everywhere),
      cmocka_unit_test(order_separates_neighbours),
      cmocka_unit_test(order_is_the_same_on_every_machine),
      cmocka_unit_test(parts_hold_every_sample_once),
  };
  return RUN_TESTS(tests);
}
