#include "wire/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../nn/in_folder.h"

#define FP "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define TOKEN "abcDEF012_-abcDEF012_x"

static void links_are_read(void **state) {
  (void)state;
  static const struct {
    const char *text, *address, *token, *fingerprint;
    bool tls;
  } cases[] = {
      {"127.0.0.1:8080", "127.0.0.1:8080", "", "", false},
      {"http://shoal.example:8080", "shoal.example:8080", "", "", false},
      {"http://shoal.example:8080/", "shoal.example:8080", "", "", false},
      {"http://shoal.example", "shoal.example:80", "", "", false},
      {"https://shoal.example/work?x=1", "shoal.example:443", "", "", true},
      {"http://h:1/#t=" TOKEN, "h:1", TOKEN, "", false},
      {"http://h:1#t=" TOKEN, "h:1", TOKEN, "", false},
      {"h:1#t=" TOKEN, "h:1", TOKEN, "", false},
      {"https://h:1/jobs/7#t=" TOKEN "&fp=" FP, "h:1", TOKEN, FP, true},
      {"https://h:1/#fp=" FP "&later=yes&t=" TOKEN, "h:1", TOKEN, FP, true},
      {"http://[::1]:8080/#t=" TOKEN, "[::1]:8080", TOKEN, "", false},
      {"https://[fe80::1]/", "[fe80::1]:443", "", "", true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    shoal_link link;
    shoal_error err;
    if (shoal_link_parse(&link, cases[i].text, &err) != SHOAL_OK) fail_msg("%s: %s", cases[i].text, err.text);
    assert_string_equal(link.address, cases[i].address);
    assert_string_equal(link.token, cases[i].token);
    assert_string_equal(link.fingerprint, cases[i].fingerprint);
    assert_int_equal(link.tls, cases[i].tls);
  }
}

static void colons_and_capitals_of_a_fingerprint_do_not_matter(void **state) {
  (void)state;
  char text[200] = "https://h:1#fp=";
  for (int i = 0; i < 32; i++) {
    char pair[4];
    snprintf(pair, sizeof pair, "%sA%x", i ? ":" : "", i % 10);
    strncat(text, pair, sizeof text - strlen(text) - 1);
  }
  shoal_link link;
  shoal_error err;
  if (shoal_link_parse(&link, text, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_int_equal(strlen(link.fingerprint), 64);
  assert_memory_equal(link.fingerprint, "a0a1a2", 6);
}

static void what_is_no_link_is_told_without_the_token(void **state) {
  (void)state;
  static const struct {
    const char *text, *says;
  } cases[] = {
      {"", "there is no port"},
      {"host", "there is no port"},
      {"ftp://host:1#t=" TOKEN, "neither http:// nor https://"},
      {"http://:80#t=" TOKEN, "there is no host"},
      {"http://h:0#t=" TOKEN, "the port is no number"},
      {"http://h:65536#t=" TOKEN, "the port is no number"},
      {"http://h:#t=" TOKEN, "the port is no number"},
      {"http://h x:1#t=" TOKEN, "characters that no host has"},
      {"http://user:secret@h:1#t=" TOKEN, "characters that no host has"},
      {"http://h:1#t=", "too short or too long"},
      {"http://h:1#t=" TOKEN "%0a", "characters that no token has"},
      {"http://h:1#t=" TOKEN "&fp=" FP, "needs https"},
      {"https://h:1#t=" TOKEN "&fp=12", "64 hex digits"},
      {"https://h:1#t=" TOKEN "&fp=" FP "0", "64 hex digits"},
      {"https://h:1#t=" TOKEN "&fp=x" FP, "64 hex digits"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    shoal_link link;
    shoal_error err;
    if (shoal_link_parse(&link, cases[i].text, &err) != SHOAL_INVALID) fail_msg("taken: %s", cases[i].text);
    if (!strstr(err.text, cases[i].says)) fail_msg("'%s' is not in: %s", cases[i].says, err.text);
    assert_null(strstr(err.text, "abcDEF"));
    assert_string_equal(link.token, "");
  }
  char text[1000] = "http://";
  memset(text + 7, 'h', 500);
  shoal_link link;
  assert_int_equal(shoal_link_parse(&link, text, NULL), SHOAL_INVALID);
  memset(text, 0, sizeof text);
  snprintf(text, sizeof text, "h:1#t=%0200d", 1);
  assert_int_equal(shoal_link_parse(&link, text, NULL), SHOAL_INVALID);
}

static void a_token_comes_from_the_link_or_a_file(void **state) {
  (void)state;
  shoal_link link;
  shoal_error err;
  FILE *file = fopen("token", "w");
  fprintf(file, "from-file\n");
  fclose(file);
  assert_int_equal(shoal_link_open(&link, "h:1#t=" TOKEN, "token", &err), SHOAL_OK);
  assert_string_equal(link.token, TOKEN);
  assert_int_equal(shoal_link_open(&link, "h:1", "token", &err), SHOAL_OK);
  assert_string_equal(link.token, "from-file");
  assert_int_equal(shoal_link_open(&link, "h:1", "missing", &err), SHOAL_NOT_FOUND);
  assert_non_null(strstr(err.text, "missing"));
  assert_int_equal(shoal_link_open(&link, "h:1", NULL, &err), SHOAL_OK);
  assert_string_equal(link.token, "");
}

static void a_token_is_wiped_from_its_word_alone(void **state) {
  (void)state;
  char one[] = "http://h:1/#t=" TOKEN, two[] = "--server=h:1#t=x", three[] = "run#2.safetensors";
  char *words[] = {one, two, three};
  shoal_link_wipe(3, words, one);
  assert_null(strstr(one, "abc"));
  assert_memory_equal(one, "http://h:1/#**", 14);
  assert_string_equal(two, "--server=h:1#t=x");
  shoal_link_wipe(3, words, two + strlen("--server="));
  assert_string_equal(two, "--server=h:1#***");
  shoal_link_wipe(3, words, NULL);
  shoal_link_wipe(3, words, "run#2.safetensors"); /* the same letters, but no word of these */
  assert_string_equal(three, "run#2.safetensors");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(links_are_read),
      cmocka_unit_test(colons_and_capitals_of_a_fingerprint_do_not_matter),
      cmocka_unit_test(what_is_no_link_is_told_without_the_token),
      IN_FOLDER(a_token_comes_from_the_link_or_a_file),
      cmocka_unit_test(a_token_is_wiped_from_its_word_alone),
  };
  return RUN_TESTS(tests);
}
