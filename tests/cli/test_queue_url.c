/* A broker's URL: what is shown of it, and what stays in the list of processes. */
#include "cli/queue_url.h"

#include <string.h>

#include "check.h"

static const char *plain(const char *url) {
  static char out[64];
  shoal_queue_url_plain(url, out, sizeof out);
  return out;
}

static void nothing_before_the_host_is_shown(void **state) {
  (void)state;
  assert_string_equal(plain("amqp://shoal:secret@10.0.0.5:5672/shoal"), "amqp://10.0.0.5:5672/shoal");
  assert_string_equal(plain("amqps://broker.example/%2F"), "amqps://broker.example/%2F");
  assert_string_equal(plain("amqp://user:pass@word@host/"), "amqp://host/");
  assert_string_equal(plain("amqp://user:pass/word@host/x"), "amqp://host/x");
  assert_string_equal(plain("amqp://u:p@"), "amqp://");
}

static void only_a_scheme_makes_one(void **state) {
  (void)state;
  assert_true(shoal_queue_url_is("amqp://"));
  assert_true(shoal_queue_url_is("amqps://host"));
  assert_false(shoal_queue_url_is("http://amqp://host"));
  assert_false(shoal_queue_url_is("amqp:host"));
  assert_false(shoal_queue_url_is(""));
}

static void words_lose_the_password(void **state) {
  (void)state;
  char name[] = "shoal", option[] = "--queue=amqp://shoal:secret@host/v",
       other[] = "amqp://shoal:secret@host/v";
  char *words[] = {name, option, other, NULL};
  char *url = shoal_queue_url_take(option + strlen("--queue="), 3, words);
  assert_string_equal(url, "amqp://shoal:secret@host/v");
  assert_string_equal(option, "--queue=amqp://************@host/v");
  assert_string_equal(other, "amqp://shoal:secret@host/v"); /* another word, which is not ours */
  shoal_queue_url_free(url);
  char bare[] = "amqp://host/v";
  words[1] = bare;
  url = shoal_queue_url_take(bare, 3, words);
  assert_string_equal(bare, "amqp://host/v");
  shoal_queue_url_free(url);
  shoal_queue_url_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_before_the_host_is_shown),
      cmocka_unit_test(only_a_scheme_makes_one),
      cmocka_unit_test(words_lose_the_password),
  };
  return RUN_TESTS(tests);
}
