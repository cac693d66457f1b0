#include "check.h"

#include <stdio.h>
#include <string.h>

#include "base/magic.h"

#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

static void files_are_known_by_their_first_bytes(void **state) {
  (void)state;
  assert_true(shoal_magic_of(BYTES("\x89PNG\r\n\x1a\n...."))->is_read);
  assert_string_equal(shoal_magic_of(BYTES("RIFF\1\2\3\4WEBPVP8 "))->what, "a WebP image");
  assert_false(shoal_magic_of(BYTES("GIF89a"))->is_read);
  assert_false(shoal_magic_of(BYTES("PK\3\4...."))->is_image);
  assert_null(shoal_magic_of(BYTES("RIFF\1\2\3\4WAVE")));
  assert_null(shoal_magic_of(BYTES("\x89PNG")));
  assert_null(shoal_magic_of(NULL, 0));
}

static void texts_are_of_no_kind(void **state) {
  (void)state;
  assert_null(shoal_magic_of(BYTES("BMI,age,GIF8\n20,30,1\n")));
  assert_null(shoal_magic_of(BYTES("GIF8,1\n")));
  assert_null(shoal_magic_of(BYTES("input 1x28x28\n")));
  assert_null(shoal_magic_of(BYTES("II*,MM,PK\n")));
}

static void what_is_no_file_is_of_no_kind(void **state) {
  (void)state;
  assert_null(shoal_magic_of_file("/"));
  assert_null(shoal_magic_of_file("/nowhere"));
  assert_null(shoal_magic_of_file("/dev/null"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(files_are_known_by_their_first_bytes),
      cmocka_unit_test(texts_are_of_no_kind),
      cmocka_unit_test(what_is_no_file_is_of_no_kind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
