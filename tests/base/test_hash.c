#include "check.h"

#include <string.h>

#include "base/hash.h"

static void sha256_agrees_with_the_published_examples(void **state) {
  (void)state;
  char hex[SHOAL_SHA256_HEX];
  shoal_sha256_hex("abc", 3, hex);
  assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  shoal_sha256_hex("", 0, hex);
  assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void sha256_in_pieces_is_sha256_at_once(void **state) {
  (void)state;
  const char *text = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  uint8_t digest[SHOAL_SHA256_BYTES];
  char hex[SHOAL_SHA256_HEX], whole[SHOAL_SHA256_HEX];
  shoal_sha256 *hash = shoal_sha256_create();
  assert_non_null(hash);
  for (size_t i = 0; i < strlen(text); i += 7) shoal_sha256_add(hash, text + i, 7);
  shoal_sha256_finish(hash, digest);
  shoal_sha256_destroy(hash);
  shoal_hex(digest, sizeof digest, hex);
  shoal_sha256_hex(text, strlen(text), whole);
  assert_string_equal(hex, whole);
  assert_string_equal(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  shoal_sha256_destroy(NULL);
}

/* The examples of RFC 3720, appendix B.4. */
static void crc32c_agrees_with_the_published_examples(void **state) {
  (void)state;
  uint8_t bytes[32];
  memset(bytes, 0, sizeof bytes);
  assert_int_equal(shoal_crc32c(0, bytes, sizeof bytes), 0x8a9136aa);
  memset(bytes, 0xff, sizeof bytes);
  assert_int_equal(shoal_crc32c(0, bytes, sizeof bytes), 0x62a8ab43);
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)i;
  assert_int_equal(shoal_crc32c(0, bytes, sizeof bytes), 0x46dd794e);
  assert_int_equal(shoal_crc32c(0, "123456789", 9), 0xe3069283);
  assert_int_equal(shoal_crc32c(shoal_crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
  assert_int_equal(shoal_crc32c(0, NULL, 0), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sha256_agrees_with_the_published_examples),
      cmocka_unit_test(sha256_in_pieces_is_sha256_at_once),
      cmocka_unit_test(crc32c_agrees_with_the_published_examples),
  };
  return RUN_TESTS(tests);
}
