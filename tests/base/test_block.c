/* Blocks: large ones are used again, and only where they fit. */
#include "base/block.h"

#include <stdint.h>
#include <string.h>

#include "check.h"

static void blocks_are_aligned_and_large_enough(void **state) {
  (void)state;
  static const size_t sizes[] = {1, 64, 1000, 128 << 10, (128 << 10) + 1, 2 << 20, (5 << 20) + 3};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    size_t bytes;
    void *block = shoal_block_take(sizes[i], &bytes);
    assert_non_null(block);
    assert_true(bytes >= sizes[i]);
    assert_int_equal((uintptr_t)block % 64, 0);
    memset(block, 1, bytes);
    shoal_block_give(block, bytes);
  }
}

static void a_large_block_comes_back_when_it_fits(void **state) {
  (void)state;
  size_t bytes, again_bytes;
  void *block = shoal_block_take(3 << 20, &bytes);
  shoal_block_give(block, bytes);
  void *again = shoal_block_take((3 << 20) - 100, &again_bytes);
  assert_ptr_equal(again, block);
  assert_int_equal(again_bytes, bytes);
  shoal_block_give(again, again_bytes);
  void *small = shoal_block_take(1 << 20, &again_bytes); /* a third would be used: not this one */
  assert_ptr_not_equal(small, block);
  shoal_block_give(small, again_bytes);
}

/* More sizes than are kept: the oldest go, the newest comes back. */
static void new_sizes_take_the_place_of_old_ones(void **state) {
  (void)state;
  size_t bytes;
  void *last = NULL;
  for (size_t i = 1; i <= 20; i++) {
    last = shoal_block_take(i * (4 << 20), &bytes);
    assert_non_null(last);
    shoal_block_give(last, bytes);
  }
  assert_ptr_equal(shoal_block_take(20 * (4 << 20), &bytes), last);
  shoal_block_give(last, bytes);
}

static void too_much_is_refused(void **state) {
  (void)state;
  size_t bytes;
  assert_null(shoal_block_take(SIZE_MAX, &bytes));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_are_aligned_and_large_enough),
      cmocka_unit_test(a_large_block_comes_back_when_it_fits),
      cmocka_unit_test(new_sizes_take_the_place_of_old_ones),
      cmocka_unit_test(too_much_is_refused),
  };
  return RUN_TESTS(tests);
}
