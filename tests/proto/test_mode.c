/* Modes as people write them. */
#include "proto/mode.h"

#include <string.h>

#include "check.h"

static shoal_mode parse(const char *text) {
  shoal_mode mode;
  assert_int_equal(shoal_mode_parse(text, &mode, NULL), SHOAL_OK);
  return mode;
}

static void the_words_are_understood(void **state) {
  (void)state;
  assert_int_equal(parse("sync").kind, SHOAL_SYNC);
  assert_int_equal(parse("async").kind, SHOAL_ASYNC);
  shoal_mode stale = parse("stale:64"), local = parse("local:100000");
  assert_int_equal(stale.kind, SHOAL_STALE);
  assert_int_equal(stale.stale, SHOAL_STALE_MAX);
  assert_int_equal(stale.local, 1);
  assert_int_equal(local.kind, SHOAL_LOCAL);
  assert_int_equal(local.local, SHOAL_LOCAL_MAX);
  assert_int_equal(local.stale, 0);
  assert_true(local.outer_rate > 0 && local.outer_momentum > 0 && local.outer_momentum < 1);
}

/* What may be no version behind is sync, and keeps its promise of equal bits. */
static void stale_by_nothing_is_sync(void **state) {
  (void)state;
  assert_int_equal(parse("stale:0").kind, SHOAL_SYNC);
  assert_int_equal(parse("stale:0").stale, 0);
}

static void other_words_are_refused_by_name(void **state) {
  (void)state;
  const char *const wrong[] = {"",         "Sync",      "sync ",    "stale",
                               "stale:",   "stale:-1",  "stale:65", "stale:+1",
                               "stale:1x", "local:",    "local:0",  "local:100001",
                               "async:3",  "stale:1e1", "stale: 1", "local:99999999999999999999999"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    shoal_mode mode;
    shoal_error err = {0};
    if (shoal_mode_parse(wrong[i], &mode, &err) != SHOAL_INVALID) fail_msg("'%s' is taken", wrong[i]);
    assert_non_null(strstr(err.text, wrong[i]));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_words_are_understood),
      cmocka_unit_test(stale_by_nothing_is_sync),
      cmocka_unit_test(other_words_are_refused_by_name),
  };
  return RUN_TESTS(tests);
}
