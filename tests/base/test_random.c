#include "check.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/random.h"

/* The known answers that come with Random123, the authors' own implementation. */
static void philox_gives_the_published_answers(void **state) {
  (void)state;
  static const struct {
    uint64_t low, high;
    shoal_key key;
    uint32_t answer[4];
  } known[] = {
      {0, 0, {{0, 0}}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {UINT64_MAX, UINT64_MAX, {{UINT32_MAX, UINT32_MAX}}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {0x85a308d3243f6a88,
       0x0370734413198a2e,
       {{0xa4093822, 0x299f31d0}},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (size_t i = 0; i < 3; i++) {
    uint32_t block[4];
    shoal_random_block(known[i].key, known[i].high, known[i].low, block);
    assert_memory_equal(block, known[i].answer, sizeof block);
  }
}

static void single_numbers_are_the_words_of_the_blocks(void **state) {
  (void)state;
  shoal_key key = shoal_key_make(7, SHOAL_FOR_INIT, 1, 2);
  for (uint64_t i = 0; i < 16; i++) {
    uint32_t block[4];
    shoal_random_block(key, 0, i / 4, block);
    assert_int_equal(shoal_random_u32(key, i), block[i % 4]);
    shoal_random_block(key, 1, i / 2, block);
    uint64_t pair = block[i % 2 * 2] | (uint64_t)block[i % 2 * 2 + 1] << 32;
    assert_true(shoal_random_u64(key, i) == pair);
  }
}

static void every_part_of_a_key_changes_the_stream(void **state) {
  (void)state;
  static const uint64_t parts[][4] = {
      {1, SHOAL_FOR_INIT, 0, 0},  {2, SHOAL_FOR_INIT, 0, 0},
      {1, SHOAL_FOR_ORDER, 0, 0}, {1, SHOAL_FOR_INIT, 1, 0},
      {1, SHOAL_FOR_INIT, 0, 1},  {0, SHOAL_FOR_INIT, 1, 1},
      {1, SHOAL_FOR_INIT, 1, 1},  {1, SHOAL_FOR_INIT, (uint64_t)1 << 40, 0},
  };
  enum { COUNT = sizeof parts / sizeof *parts };
  shoal_key keys[COUNT];
  for (int i = 0; i < COUNT; i++) {
    keys[i] = shoal_key_make(parts[i][0], (shoal_purpose)parts[i][1], parts[i][2], parts[i][3]);
    for (int j = 0; j < i; j++) assert_memory_not_equal(&keys[i], &keys[j], sizeof keys[i]);
  }
}

static void uniform_numbers_fill_zero_to_one(void **state) {
  (void)state;
  enum { COUNT = 100000, PARTS = 20 };
  shoal_key key = shoal_key_make(1, SHOAL_FOR_TOY, 0, 0);
  int hits[PARTS] = {0};
  for (uint64_t i = 0; i < COUNT; i++) {
    float x = shoal_random_uniform(key, i);
    assert_true(x >= 0.0f && x < 1.0f);
    hits[(int)(x * PARTS)]++;
  }
  for (int i = 0; i < PARTS; i++)
    assert_in_range(hits[i], COUNT / PARTS - 400, COUNT / PARTS + 400); /* 6 deviations */
}

static void numbers_below_n_reach_all_of_them_and_no_more(void **state) {
  (void)state;
  shoal_key key = shoal_key_make(1, SHOAL_FOR_ORDER, 0, 0);
  int hits[7] = {0};
  for (uint64_t i = 0; i < 70000; i++) {
    uint64_t x = shoal_random_below(key, i, 7);
    assert_true(x < 7);
    hits[x]++;
    assert_true(shoal_random_below(key, i, 1) == 0);
    assert_true(shoal_random_below(key, i, UINT64_MAX) < UINT64_MAX);
  }
  for (int i = 0; i < 7; i++) assert_in_range(hits[i], 10000 - 600, 10000 + 600);
}

/* The distribution function of a normal number is the uniform number that it was made from. */
static void normal_numbers_invert_the_distribution_function(void **state) {
  (void)state;
  shoal_key key = shoal_key_make(3, SHOAL_FOR_INIT, 0, 0);
  double sum = 0, sum_of_squares = 0;
  enum { COUNT = 200000 };
  for (uint64_t i = 0; i < COUNT; i++) {
    double x = (double)shoal_random_normal(key, i);
    double p = ((double)(shoal_random_u64(key, i) >> 12) + 0.5) * 0x1p-52;
    double error = fabs(0.5 * erfc(-x / sqrt(2.0)) - p);
    assert_true(error < 1e-6 * (p < 0.5 ? p : 1 - p));
    sum += x;
    sum_of_squares += x * x;
  }
  assert_true(fabs(sum / COUNT) < 0.01);
  assert_true(fabs(sum_of_squares / COUNT - 1.0) < 0.02);
}

/* Recorded once; any compiler and machine must give these bits. */
static void normal_numbers_have_the_same_bits_everywhere(void **state) {
  (void)state;
  shoal_key key = shoal_key_make(42, SHOAL_FOR_INIT, 3, 1);
  uint32_t crc = 0;
  for (uint64_t i = 0; i < 100000; i++) {
    float x = shoal_random_normal(key, i);
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint8_t bytes[4] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16), (uint8_t)(bits >> 24)};
    crc = shoal_crc32c(crc, bytes, sizeof bytes);
  }
  assert_int_equal(crc, 0x9edfa187);
}

static void many_normal_numbers_are_the_same_as_one_by_one(void **state) {
  (void)state;
  shoal_key key = shoal_key_make(3, SHOAL_FOR_TOY, 1, 2);
  for (size_t count = 0; count <= 300; count += 43) {
    float many[301];
    many[count] = 9;
    shoal_random_normals(key, count, many);
    for (size_t i = 0; i < count; i++) assert_true(many[i] == shoal_random_normal(key, i));
    assert_true(many[count] == 9);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(philox_gives_the_published_answers),
      cmocka_unit_test(single_numbers_are_the_words_of_the_blocks),
      cmocka_unit_test(every_part_of_a_key_changes_the_stream),
      cmocka_unit_test(uniform_numbers_fill_zero_to_one),
      cmocka_unit_test(numbers_below_n_reach_all_of_them_and_no_more),
      cmocka_unit_test(normal_numbers_invert_the_distribution_function),
      cmocka_unit_test(normal_numbers_have_the_same_bits_everywhere),
      cmocka_unit_test(many_normal_numbers_are_the_same_as_one_by_one),
  };
  return RUN_TESTS(tests);
}
