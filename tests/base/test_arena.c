#include "check.h"

#include <string.h>

#include "base/arena.h"

static void memory_is_zeroed_aligned_and_apart(void **state) {
  (void)state;
  shoal_arena arena;
  shoal_arena_init(&arena, 64 << 20);
  static const size_t sizes[] = {0, 1, 63, 64, 65, 1000, 65535, 65536, 65537, 1 << 20};
  char *previous = NULL;
  size_t previous_bytes = 0;
  for (size_t round = 0; round < 30; round++) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      char *taken = shoal_arena_take(&arena, sizes[i]);
      assert_non_null(taken);
      assert_int_equal((uintptr_t)taken % 64, 0);
      for (size_t j = 0; j < sizes[i]; j++) assert_int_equal(taken[j], 0);
      memset(taken, 0xaa, sizes[i]);
      if (previous && previous_bytes) assert_int_equal((unsigned char)previous[previous_bytes - 1], 0xaa);
      previous = taken;
      previous_bytes = sizes[i];
    }
  }
  shoal_arena_release(&arena);
}

static void the_limit_holds_and_is_reached_exactly(void **state) {
  (void)state;
  shoal_arena arena;
  shoal_arena_init(&arena, 1024);
  assert_null(shoal_arena_take(&arena, 1025));
  assert_non_null(shoal_arena_take(&arena, 960));
  assert_null(shoal_arena_take(&arena, 65));
  assert_non_null(shoal_arena_take(&arena, 64));
  assert_int_equal(arena.used_bytes, 1024);
  assert_null(shoal_arena_take(&arena, 1));
  shoal_arena_release(&arena);
  assert_non_null(shoal_arena_take(&arena, 1024)); /* empty again, with the same limit */
  shoal_arena_release(&arena);
}

static void sizes_that_overflow_are_refused(void **state) {
  (void)state;
  shoal_arena arena;
  shoal_arena_init(&arena, SIZE_MAX);
  assert_null(shoal_arena_take(&arena, SIZE_MAX));
  assert_null(shoal_arena_take(&arena, SIZE_MAX - 100));
  assert_null(shoal_arena_array(&arena, SIZE_MAX / 2, 3));
  assert_null(shoal_arena_text(&arena, "", SIZE_MAX));
  assert_non_null(shoal_arena_array(&arena, 100, 3));
  shoal_arena_release(&arena);
}

static void text_is_copied_with_a_final_zero(void **state) {
  (void)state;
  shoal_arena arena;
  shoal_arena_init(&arena, 1024);
  char *copy = shoal_arena_text(&arena, "dense 10", 5);
  assert_string_equal(copy, "dense");
  assert_string_equal(shoal_arena_text(&arena, NULL, 0), "");
  shoal_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
      cmocka_unit_test(the_limit_holds_and_is_reached_exactly),
      cmocka_unit_test(sizes_that_overflow_are_refused),
      cmocka_unit_test(text_is_copied_with_a_final_zero),
  };
  return RUN_TESTS(tests);
}
