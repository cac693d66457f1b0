#include "check.h"

#include <string.h>

#include "base/status.h"

static void a_failure_gives_back_its_status_and_sentence(void **state) {
  (void)state;
  shoal_error err;
  assert_int_equal(shoal_fail(&err, SHOAL_LIMIT, "line %d: too long", 3), SHOAL_LIMIT);
  assert_int_equal(err.status, SHOAL_LIMIT);
  assert_string_equal(err.text, "line 3: too long");
  assert_int_equal(shoal_fail(NULL, SHOAL_IO, "nobody listens"), SHOAL_IO);
}

static void a_prefix_goes_before_the_sentence(void **state) {
  (void)state;
  shoal_error err;
  shoal_fail(&err, SHOAL_INVALID, "line 3: what is 'dens'?");
  shoal_error_prefix(&err, "%s: ", "model.net");
  assert_string_equal(err.text, "model.net: line 3: what is 'dens'?");
  assert_int_equal(err.status, SHOAL_INVALID);
  shoal_error_prefix(NULL, "nobody listens");
}

static void over_long_sentences_are_cut_and_stay_terminated(void **state) {
  (void)state;
  char lengthy[3 * SHOAL_ERROR_TEXT_MAX];
  memset(lengthy, 'x', sizeof lengthy);
  lengthy[sizeof lengthy - 1] = 0;
  shoal_error err;
  shoal_fail(&err, SHOAL_INVALID, "%s", lengthy);
  assert_int_equal(strlen(err.text), SHOAL_ERROR_TEXT_MAX - 1);
  shoal_error_prefix(&err, "a: ");
  assert_int_equal(strlen(err.text), SHOAL_ERROR_TEXT_MAX - 1);
  assert_memory_equal(err.text, "a: xxx", 6);
  shoal_error_prefix(&err, "%s", lengthy);
  assert_int_equal(strlen(err.text), SHOAL_ERROR_TEXT_MAX - 1);
  assert_memory_equal(err.text, "xxx", 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_failure_gives_back_its_status_and_sentence),
      cmocka_unit_test(a_prefix_goes_before_the_sentence),
      cmocka_unit_test(over_long_sentences_are_cut_and_stay_terminated),
  };
  return RUN_TESTS(tests);
}
