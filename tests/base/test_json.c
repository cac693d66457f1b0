#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/json.h"
#include "base/random.h"

static void commas_keys_and_brackets_fall_into_place(void **state) {
  (void)state;
  shoal_text text;
  shoal_json json;
  shoal_text_init(&text);
  shoal_json_init(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_int(&json, "epoch", -3);
  shoal_json_open(&json, "empty", '[');
  shoal_json_close(&json, ']');
  shoal_json_open(&json, "list", '[');
  shoal_json_real(&json, NULL, 0.5);
  shoal_json_open(&json, NULL, '{');
  shoal_json_close(&json, '}');
  shoal_json_bool(&json, NULL, true);
  shoal_json_close(&json, ']');
  shoal_json_text(&json, "name", "lenet5");
  shoal_json_close(&json, '}');
  assert_string_equal(text.bytes, "{\"epoch\":-3,\"empty\":[],\"list\":[0.5,{},true],\"name\":\"lenet5\"}");
  shoal_text_release(&text);
}

static void check_real(double value, const char *expected) {
  shoal_text text;
  shoal_json json;
  shoal_text_init(&text);
  shoal_json_init(&json, &text);
  shoal_json_real(&json, NULL, value);
  if (expected)
    assert_string_equal(text.bytes, expected);
  else
    assert_true(strtod(text.bytes, NULL) == value);
  shoal_text_release(&text);
}

static void reals_are_short_and_read_back_the_same(void **state) {
  (void)state;
  check_real(0.1, "0.1");
  check_real(3, "3");
  check_real(-0.0, "-0");
  check_real(1e300, "1e+300");
  check_real(0.1 + 0.2, "0.30000000000000004");
  check_real((double)0.1f, "0.10000000149011612");
  check_real(NAN, "null");
  check_real(INFINITY, "null");
  check_real(-INFINITY, "null");
  shoal_key key = shoal_key_make(1, SHOAL_FOR_TOY, 0, 0);
  for (uint64_t i = 0; i < 10000; i++) {
    uint64_t bits = shoal_random_u64(key, i);
    double value;
    memcpy(&value, &bits, sizeof value);
    if (isfinite(value)) check_real(value, NULL);
  }
}

static void text_is_quoted_so_that_a_parser_gives_it_back(void **state) {
  (void)state;
  const char *awkward = "a \"quoted\" \\path\\ \n\t\x01\x1f / \xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x9f \x7f";
  shoal_text text;
  shoal_json json;
  shoal_text_init(&text);
  shoal_json_init(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "a \"key\"", awkward);
  shoal_json_close(&json, '}');
  cJSON *read = cJSON_Parse(text.bytes);
  assert_non_null(read);
  assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(read, "a \"key\"")), awkward);
  cJSON_Delete(read);
  shoal_text_release(&text);
}

static void bytes_that_are_no_characters_are_replaced(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t length;
    const char *expected;
  } cases[] = {
      {"a\xff", 2, "\"a\xef\xbf\xbd\""},                               /* never a first byte */
      {"\xc3", 1, "\"\xef\xbf\xbd\""},                                 /* cut short */
      {"\xc0\xaf", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},                 /* over-long */
      {"\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* surrogate */
      {"\xf4\x90\x80\x80", 4, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
      {"a\0b", 3, "\"a\\u0000b\""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    shoal_text text;
    shoal_json json;
    shoal_text_init(&text);
    shoal_json_init(&json, &text);
    shoal_json_text_n(&json, NULL, cases[i].bytes, cases[i].length);
    assert_string_equal(text.bytes, cases[i].expected);
    shoal_text_release(&text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(commas_keys_and_brackets_fall_into_place),
      cmocka_unit_test(reals_are_short_and_read_back_the_same),
      cmocka_unit_test(text_is_quoted_so_that_a_parser_gives_it_back),
      cmocka_unit_test(bytes_that_are_no_characters_are_replaced),
  };
  return RUN_TESTS(tests);
}
