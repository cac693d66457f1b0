/* The order with lanes: every sample once an epoch whatever the sizes, and a lane keeps to its blocks. */
#include "data/lanes.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { LANES_MAX = 40 };

typedef struct shape {
  uint64_t samples, block;
  uint32_t batch, lanes, unit; /* rows are cut at multiples of `unit` */
} shape;

static const shape shapes[] = {
    {1000, 100, 64, 4, 16}, {1000, 100, 64, 4, 1},   {1001, 97, 63, 8, 16}, {10, 3, 64, 8, 16},
    {1, 5, 1, 1, 1},        {17, 5, 16, 5, 1},       {500, 400, 50, 10, 1}, /* more parts than blocks */
    {130, 7, 64, 4, 16},                                                    /* the last round has 2 rows */
    {64, 1, 64, 40, 1},     {4096, 64, 512, 10, 16}, {777, 1000, 10, 3, 1},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static uint32_t start(uint32_t rows, uint32_t unit, uint32_t lanes, uint32_t v) {
  uint64_t units = (rows + unit - 1) / unit, at = units * v / lanes * unit;
  return at < rows ? (uint32_t)at : rows;
}

static uint64_t blocks_of(const shape *s, uint64_t *blocks) {
  uint64_t count = 0;
  for (uint64_t at = 0; at < s->samples; at += s->block) blocks[count++] = at;
  blocks[count] = s->samples;
  return count;
}

static shoal_lanes *lanes_of(const shape *s, uint64_t seed, const uint32_t *lane_of_round) {
  uint32_t starts[LANES_MAX + 1], last_starts[LANES_MAX + 1];
  uint32_t last = (uint32_t)((s->samples - 1) % s->batch + 1);
  for (uint32_t v = 0; v <= s->lanes; v++) {
    starts[v] = start(s->batch, s->unit, s->lanes, v);
    last_starts[v] = start(last, s->unit, s->lanes, v);
  }
  uint64_t *blocks = malloc((s->samples / s->block + 2) * sizeof *blocks), count = blocks_of(s, blocks);
  shoal_lanes_config config = {
      .seed = seed,
      .samples = s->samples,
      .batch = s->batch,
      .blocks = blocks,
      .blocks_count = count,
      .deal = {
          .lanes = s->lanes, .starts = starts, .last_starts = last_starts, .lane_of_round = lane_of_round}};
  shoal_lanes *lanes;
  assert_int_equal(shoal_lanes_create(&lanes, &config, NULL), SHOAL_OK);
  free(blocks);
  return lanes;
}

static uint64_t *epoch_of(shoal_lanes *lanes, const shape *s, uint64_t epoch) {
  uint64_t *order = malloc(s->samples * sizeof *order);
  for (uint64_t at = 0; at < s->samples; at += 50)
    shoal_lanes_at(lanes, epoch, at, s->samples - at < 50 ? (uint32_t)(s->samples - at) : 50, order + at);
  return order;
}

static void check_once_each(const uint64_t *order, uint64_t samples) {
  uint8_t *seen = calloc(samples, 1);
  for (uint64_t i = 0; i < samples; i++) {
    assert_true(order[i] < samples);
    assert_int_equal(seen[order[i]]++, 0);
  }
  free(seen);
}

static void every_sample_comes_once_an_epoch(void **state) {
  (void)state;
  for (int k = 0; k < SHAPES; k++) {
    const shape *s = &shapes[k];
    shoal_lanes *lanes = lanes_of(s, 3, NULL);
    for (uint64_t epoch = 0; epoch < 4; epoch++) {
      uint64_t *order = epoch_of(lanes, s, epoch);
      check_once_each(order, s->samples);
      free(order);
    }
    shoal_lanes_destroy(lanes);
  }
}

static void whole_rounds_are_dealt_likewise(void **state) {
  (void)state;
  const shape s = {1003, 50, 20, 3, 1};
  uint32_t lane_of_round[51];
  for (uint32_t r = 0; r < 51; r++) lane_of_round[r] = r / 5 % 3;
  shoal_lanes *lanes = lanes_of(&s, 9, lane_of_round);
  uint64_t *order = epoch_of(lanes, &s, 2);
  check_once_each(order, s.samples);
  assert_int_equal(shoal_lanes_first(lanes, 17 * 20 + 3), 0 * 20);
  assert_int_equal(shoal_lanes_first(lanes, 22 * 20), 5 * 20);
  free(order);
  shoal_lanes_destroy(lanes);
}

static void it_is_a_function_of_seed_and_epoch(void **state) {
  (void)state;
  const shape *s = &shapes[0];
  shoal_lanes *lanes = lanes_of(s, 1, NULL), *same = lanes_of(s, 1, NULL), *other = lanes_of(s, 2, NULL);
  uint64_t *a = epoch_of(lanes, s, 5), *later = epoch_of(lanes, s, 6);
  uint64_t *skip = epoch_of(same, s, 7), one; /* of the same parity, before */
  for (uint64_t i = s->samples; i-- > 0;) {
    shoal_lanes_at(same, 5, i, 1, &one);
    assert_int_equal(one, a[i]);
  }
  uint64_t *b = epoch_of(other, s, 5);
  size_t bytes = s->samples * sizeof *a;
  assert_memory_not_equal(a, later, bytes);
  assert_memory_not_equal(a, b, bytes);
  free(a);
  free(b);
  free(later);
  free(skip);
  shoal_lanes_destroy(lanes);
  shoal_lanes_destroy(same);
  shoal_lanes_destroy(other);
}

/* Lanes of 10,000 samples of 100 blocks: a tenth each, of blocks of its own but for those at its ends, in
 * windows of a few. */
static void a_lane_keeps_to_its_blocks(void **state) {
  (void)state;
  const shape s = {10000, 100, 100, 10, 1};
  shoal_lanes *lanes = lanes_of(&s, 4, NULL);
  uint64_t *order = epoch_of(lanes, &s, 1);
  for (int v = 0; v < 10; v++) {
    bool mine[100] = {0};
    int count = 0, at_once = 0;
    for (int r = 0; r < 100; r++) {
      uint64_t window = (uint64_t)r / 40 * 40;
      bool near[100] = {0};
      for (int i = 0; i < 10; i++) {
        uint64_t block = order[r * 100 + v * 10 + i] / 100;
        count += !mine[block];
        mine[block] = true;
      }
      /* All of the window's blocks so far. */
      for (uint64_t q = window; q <= (uint64_t)r; q++)
        for (int i = 0; i < 10; i++) near[order[q * 100 + (uint64_t)v * 10 + (uint64_t)i] / 100] = true;
      int blocks = 0;
      for (int b = 0; b < 100; b++) blocks += near[b];
      if (blocks > at_once) at_once = blocks;
    }
    assert_true(count <= 11);
    assert_true(at_once <= 5);
    /* What is to be expected is what is then read. */
    uint64_t ahead[16];
    uint32_t all = shoal_lanes_ahead(lanes, 1, (uint64_t)v * 10, ahead, 16);
    assert_int_equal(all, count);
    for (uint32_t i = 0; i < all; i++) assert_true(mine[ahead[i]]);
    assert_int_equal(shoal_lanes_ahead(lanes, 1, (uint64_t)v * 10 + 5000, ahead, 3), 3);
    assert_int_equal(shoal_lanes_first(lanes, (uint64_t)v * 10 + 5003), (uint64_t)v * 10);
  }
  free(order);
  shoal_lanes_destroy(lanes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_sample_comes_once_an_epoch),
      cmocka_unit_test(whole_rounds_are_dealt_likewise),
      cmocka_unit_test(it_is_a_function_of_seed_and_epoch),
      cmocka_unit_test(a_lane_keeps_to_its_blocks),
  };
  return RUN_TESTS(tests);
}
