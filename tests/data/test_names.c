#include "files.h"

#include "data/names.h"

static void names_keep_their_numbers(void **state) {
  (void)state;
  enum { COUNT = 5000 };
  shoal_names names;
  shoal_names_init(&names);
  assert_true(shoal_names_find(&names, "x", 1) == SHOAL_NO_NAME);
  char name[16];
  for (uint32_t i = 0; i < COUNT; i++) {
    int length = snprintf(name, sizeof name, "n%u", i);
    assert_int_equal(shoal_names_add(&names, name, (size_t)length), i);
  }
  for (uint32_t i = 0; i < COUNT; i++) {
    int length = snprintf(name, sizeof name, "n%u", i);
    assert_int_equal(shoal_names_find(&names, name, (size_t)length), i);
    assert_int_equal(shoal_names_add(&names, name, (size_t)length), i);
    assert_string_equal(shoal_names_at(&names, i), name);
  }
  assert_int_equal(names.count, COUNT);
  /* A name is its bytes, no more and no fewer. */
  assert_true(shoal_names_find(&names, "n12345", 6) == SHOAL_NO_NAME);
  assert_int_equal(shoal_names_find(&names, "n12345", 3), 12);
  assert_int_equal(shoal_names_add(&names, "", 0), COUNT);
  assert_int_equal(shoal_names_find(&names, "x", 0), COUNT);
  shoal_names_release(&names);
}

static void reordered_names_are_found_in_their_new_places(void **state) {
  (void)state;
  shoal_names names;
  shoal_names_init(&names);
  const uint32_t order[] = {2, 0, 1};
  shoal_names_add(&names, "a", 1);
  shoal_names_add(&names, "b", 1);
  shoal_names_add(&names, "c", 1);
  assert_true(shoal_names_reorder(&names, order));
  assert_string_equal(shoal_names_at(&names, 0), "c");
  assert_int_equal(shoal_names_find(&names, "b", 1), 2);
  assert_int_equal(shoal_names_add(&names, "d", 1), 3);
  shoal_names_release(&names);
}

static void names_survive_json(void **state) {
  (void)state;
  const char *words[] = {"plain", "with \"quotes\"", "a\\b", "\n", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x9f",
                         ""};
  shoal_names names, again;
  shoal_names_init(&names);
  shoal_names_init(&again);
  for (size_t i = 0; i < 6; i++) shoal_names_add(&names, words[i], strlen(words[i]));
  shoal_text text;
  shoal_text_init(&text);
  shoal_json json;
  shoal_json_init(&json, &text);
  shoal_names_write(&names, &json, NULL);
  cJSON *parsed = cJSON_Parse(text.bytes);
  shoal_error err;
  assert_int_equal(shoal_names_read(&again, parsed, 6, "words", &err), SHOAL_OK);
  assert_int_equal(again.count, 6);
  for (uint32_t i = 0; i < 6; i++) assert_string_equal(shoal_names_at(&again, i), words[i]);
  shoal_names_release(&again);
  assert_int_equal(shoal_names_read(&again, parsed, 5, "words", &err), SHOAL_LIMIT);
  cJSON_Delete(parsed);
  shoal_names_release(&again);

  static const char *const bad[] = {"{}", "[1]", "[\"a\", \"a\"]", "null", "[\"\xff\"]"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    parsed = cJSON_Parse(bad[i]);
    assert_int_equal(shoal_names_read(&again, parsed, 9, "words", &err), SHOAL_CORRUPT);
    CHECK_SAYS(&err, "words");
    cJSON_Delete(parsed);
    shoal_names_release(&again);
  }
  shoal_names_release(&names);
  shoal_text_release(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_keep_their_numbers),
      cmocka_unit_test(reordered_names_are_found_in_their_new_places),
      cmocka_unit_test(names_survive_json),
  };
  return RUN_TESTS(tests);
}
