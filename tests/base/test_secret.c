#include "nn/in_folder.h"

#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/secret.h"

/* RFC 4231, test case 2 has a key of four bytes; HMAC fills keys up with zeros. */
static void signing_agrees_with_the_published_example(void **state) {
  (void)state;
  const shoal_secret secret = {"Jefe"};
  const char *text = "what do ya want for nothing?";
  uint8_t signature[SHOAL_SHA256_BYTES];
  char hex[SHOAL_SHA256_HEX];
  shoal_secret_sign(&secret, text, strlen(text), signature);
  shoal_hex(signature, sizeof signature, hex);
  assert_string_equal(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  assert_int_equal(shoal_secret_number(&secret, text, strlen(text)), 0x4e7560bf46c1dc5b);
}

static void a_kept_secret_is_the_same_the_next_time_and_nobody_elses(void **state) {
  (void)state;
  shoal_secret first, second, other;
  struct stat about;
  assert_int_equal(shoal_secret_keep(&first, "secret", NULL), SHOAL_OK);
  assert_int_equal(shoal_secret_keep(&second, "secret", NULL), SHOAL_OK);
  assert_int_equal(shoal_secret_keep(&other, "other", NULL), SHOAL_OK);
  assert_memory_equal(&first, &second, sizeof first);
  assert_memory_not_equal(&first, &other, sizeof first);
  assert_int_equal(stat("secret", &about), 0);
  assert_int_equal(about.st_mode & 0777, 0600);
}

static void a_damaged_secret_is_an_error_and_stays(void **state) {
  (void)state;
  shoal_secret secret;
  shoal_error err;
  struct stat about;
  assert_int_equal(shoal_file_write("secret", "short", 5, NULL), SHOAL_OK);
  assert_int_equal(shoal_secret_keep(&secret, "secret", &err), SHOAL_CORRUPT);
  assert_string_equal(err.text, "secret: must have 32 bytes, but has 5; delete it to get a new one");
  assert_int_equal(stat("secret", &about), 0);
  assert_int_equal(about.st_size, 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(signing_agrees_with_the_published_example),
      IN_FOLDER(a_kept_secret_is_the_same_the_next_time_and_nobody_elses),
      IN_FOLDER(a_damaged_secret_is_an_error_and_stays),
  };
  return RUN_TESTS(tests);
}
