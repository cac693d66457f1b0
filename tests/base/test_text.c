#include "check.h"

#include <string.h>

#include "base/text.h"

static void text_grows_and_always_ends_in_a_zero(void **state) {
  (void)state;
  shoal_text text;
  shoal_text_init(&text);
  assert_null(text.bytes);
  shoal_text_add(&text, NULL, 0);
  assert_string_equal(text.bytes, "");
  for (int i = 0; i < 10000; i++) {
    shoal_text_addf(&text, "%d,", i % 10);
    assert_int_equal(strlen(text.bytes), text.length);
  }
  assert_int_equal(text.length, 20000);
  assert_memory_equal(text.bytes + 19998, "9,", 3);
  shoal_text_clear(&text);
  assert_string_equal(text.bytes, "");
  shoal_text_add(&text, "a\0b", 3);
  assert_memory_equal(text.bytes, "a\0b", 4);
  shoal_text_release(&text);
}

static void without_memory_text_stays_valid_and_says_so(void **state) {
  (void)state;
  shoal_text text;
  shoal_text_init(&text);
  shoal_text_addf(&text, "kept");
  shoal_text_add(&text, "x", SIZE_MAX / 2);
  assert_true(text.failed);
  shoal_text_addf(&text, "dropped");
  assert_string_equal(text.bytes, "kept");
  shoal_text_release(&text);
}

static bool reads_u64(const char *word, uint64_t *out) { return shoal_read_u64(word, strlen(word), out); }
static bool reads_f64(const char *word, double *out) { return shoal_read_f64(word, strlen(word), out); }

static void whole_numbers_are_read_to_their_limits(void **state) {
  (void)state;
  uint64_t u;
  assert_true(reads_u64("0", &u) && u == 0);
  assert_true(reads_u64("18446744073709551615", &u) && u == UINT64_MAX);
  assert_true(shoal_read_u64("123x", 3, &u) && u == 123); /* no zero needed */
}

static void what_is_not_a_whole_number_is_refused(void **state) {
  (void)state;
  uint64_t u;
  static const char *const bad[] = {"",
                                    " 1",
                                    "1 ",
                                    "+1",
                                    "1.0",
                                    "1e3",
                                    "0x10",
                                    "--1",
                                    "-",
                                    "a",
                                    "18446744073709551616",
                                    "99999999999999999999999"};
  for (size_t n = 0; n < sizeof bad / sizeof *bad; n++) {
    assert_false(reads_u64(bad[n], &u));
  }
  assert_false(reads_u64("-1", &u));
}

static void reals_are_read_whole_or_refused(void **state) {
  (void)state;
  double x;
  assert_true(reads_f64("0.1", &x) && x == 0.1);
  assert_true(reads_f64("-1e-3", &x) && x == -0.001);
  assert_true(reads_f64("5.", &x) && x == 5.0);
  assert_true(reads_f64(".5", &x) && x == 0.5);
  assert_true(reads_f64("1e-400", &x) && x == 0.0);
  assert_true(shoal_read_f64("0.25junk", 4, &x) && x == 0.25);
  static const char *const bad[] = {"",  " 1", "1 ", "nan", "inf", "0x1p3", "1e400", "1e",
                                    "-", "e",  ".",  "1,5", "1f",  "1.2.3", "--1"};
  for (size_t n = 0; n < sizeof bad / sizeof *bad; n++) assert_false(reads_f64(bad[n], &x));
  assert_false(shoal_read_f64("1\0002", 3, &x));
}

static void words_are_listed_whatever_joins_them(void **state) {
  (void)state;
  static const char list[] = "batch-size|manual_seed eps=1e-5";
  static const char *const listed[] = {"batchSize", "BATCH_SIZE", "batch-size", "manualseed", "eps=1e-5"};
  static const char *const others[] = {"batch", "size", "eps=1e5", "", "batch-size-", "-"};
  for (size_t i = 0; i < 5; i++) assert_true(shoal_word_listed(list, listed[i], strlen(listed[i])));
  for (size_t i = 0; i < 6; i++) assert_false(shoal_word_listed(list, others[i], strlen(others[i])));
}

static void the_nearest_word_is_suggested_and_no_far_one(void **state) {
  (void)state;
  static const char *const layers[] = {"dense", "conv",    "pool",
                                       "lstm",  "dropout", "a-name-so-long-that-nobody-types-it"};
  static const struct {
    const char *typed, *meant;
  } cases[] = {{"dens", "dense"},  {"desne", "dense"}, {"Conv", "conv"},
               {"ppool", "pool"},  {"LTSM", "lstm"},   {"drop-out", "dropout"},
               {"dense", "dense"}, {"POOL", "pool"},   {"xyzzy", NULL},
               {"cope", NULL}, /* half of it is another word */
               {"x", NULL},        {"", NULL},         {"another-name-so-long-that-nobody-types-it", NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *found = shoal_nearest(cases[i].typed, strlen(cases[i].typed), layers, 6);
    if (cases[i].meant)
      assert_string_equal(found, cases[i].meant);
    else
      assert_null(found);
  }
}

static void only_utf8_is_taken(void **state) {
  (void)state;
  static const char *const good[] = {"", "a", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"};
  static const char *const bad[] = {
      "\x80",   "\xc1\x81", "\xc3", "\xe0\x9f\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
      "caf\xe9"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    assert_true(shoal_utf8_valid(good[i], strlen(good[i])));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_false(shoal_utf8_valid(bad[i], strlen(bad[i])));
  assert_false(shoal_utf8_valid("a\0b", 3));
}

/* What becomes of a text in a place of so many bytes. */
static void check_plain(const char *from, size_t length, size_t size, const char *wanted) {
  char out[64];
  memset(out, 'x', sizeof out);
  shoal_text_plain(out, size, from, length);
  assert_string_equal(out, wanted);
  assert_int_equal(out[size], 'x');
  char place[64] = {0}; /* and in its own */
  memcpy(place, from, length);
  shoal_text_plain(place, size, place, length);
  assert_string_equal(place, wanted);
}

static void text_from_strangers_is_made_plain(void **state) {
  (void)state;
  check_plain("", 0, 60, "");
  check_plain("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x9f~", 14, 60,
              "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x9f");
  check_plain("\033[31mred\n\a\x7f\0.", 13, 60, "?[31mred????.");
  check_plain("\xc2\x9b"
              "31m\xc2\xa0",
              7, 60, "?31m\xc2\xa0"); /* U+009B begins a sequence, too */
  check_plain("a\xff\xc3+\xe2\x82", 6, 60, "a??+??");
  /* A character is there whole or not at all. */
  check_plain("ab\xc3\xa9", 4, 5, "ab\xc3\xa9");
  check_plain("ab\xc3\xa9", 4, 4, "ab");
  check_plain("ab\xc3\xa9", 4, 3, "ab");
  check_plain("ab", 2, 1, "");
}

static void plain_text_is_padded_by_characters(void **state) {
  (void)state;
  shoal_text text = {0};
  assert_int_equal(shoal_text_add_plain(&text, "", 2), 0);
  assert_int_equal(shoal_text_add_plain(&text, "\xc3\xa9\x1b\x80", 5), 3);
  assert_int_equal(shoal_text_add_plain(&text, "longer", 5), 6);
  assert_string_equal(text.bytes, "  \xc3\xa9\?\?  longer");
  shoal_text_release(&text);
}

static void numbers_are_grouped_by_thousands(void **state) {
  (void)state;
  char out[SHOAL_GROUPED_MAX];
  assert_string_equal(shoal_grouped(0, out), "0");
  assert_string_equal(shoal_grouped(999, out), "999");
  assert_string_equal(shoal_grouped(1000, out), "1,000");
  assert_string_equal(shoal_grouped(UINT64_MAX, out), "18,446,744,073,709,551,615");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_grows_and_always_ends_in_a_zero),
      cmocka_unit_test(without_memory_text_stays_valid_and_says_so),
      cmocka_unit_test(whole_numbers_are_read_to_their_limits),
      cmocka_unit_test(what_is_not_a_whole_number_is_refused),
      cmocka_unit_test(reals_are_read_whole_or_refused),
      cmocka_unit_test(words_are_listed_whatever_joins_them),
      cmocka_unit_test(the_nearest_word_is_suggested_and_no_far_one),
      cmocka_unit_test(only_utf8_is_taken),
      cmocka_unit_test(text_from_strangers_is_made_plain),
      cmocka_unit_test(plain_text_is_padded_by_characters),
      cmocka_unit_test(numbers_are_grouped_by_thousands),
  };
  return RUN_TESTS(tests);
}
