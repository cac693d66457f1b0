#include "check.h"

#include <stdio.h>
#include <string.h>

#include "cli/options.h"

static struct {
  bool flag;
  const char *text, *choice, *list;
  uint64_t whole;
  double real;
  shoal_operands operands;
  shoal_error err;
} got;

static const char *const fruit[] = {"apple", "pear", NULL};
static const shoal_option options[] = {
    {.name = "Heading"},
    {.name = "flag", .flag = &got.flag, .help = "a flag"},
    {.name = "text", .value = "TEXT", .text = &got.text, .help = "any text"},
    {.name = "choice", .value = "FRUIT", .text = &got.choice, .choices = fruit, .help = "a fruit"},
    {.name = "list", .value = "LIST", .text = &got.list, .help = "a,b"},
    {.name = "whole", .value = "N", .whole = &got.whole, .whole_min = 2, .whole_max = 10, .help = "a number"},
    {.name = "real", .value = "X", .real = &got.real, .real_min = -1, .real_max = 1, .help = "a number"},
};
static const char *const synopses[] = {"WORD [OPTION...]", "--flag", NULL};
static const shoal_usage usage = {
    .command = "test",
    .synopses = synopses,
    .about = "Tests options with a paragraph that is long enough to be wrapped at any sensible width of a "
             "terminal.\n\nAnd another.",
    .operand = "WORD",
    .operands_min = 1,
    .operands_max = 2,
    .options = options,
    .options_count = sizeof options / sizeof options[0],
    .examples = "  shoal test word\n",
};

#define PARSE(...) parse((char *[]){__VA_ARGS__, NULL})

static shoal_parsed parse(char **words) {
  memset(&got, 0, sizeof got);
  got.whole = 5;
  int count = 0;
  while (words[count]) count++;
  return shoal_options_parse(&usage, count, words, &got.operands, &got.err);
}

static void options_and_operands_stand_in_any_order(void **state) {
  (void)state;
  assert_int_equal(PARSE("a", "--flag", "--text=x=y", "b", "--whole", "7", "--real=-0.5", "--choice", "pear"),
                   SHOAL_PARSED);
  assert_true(got.flag);
  assert_string_equal(got.text, "x=y");
  assert_string_equal(got.choice, "pear");
  assert_int_equal(got.whole, 7);
  assert_true(got.real == -0.5);
  assert_int_equal(got.operands.count, 2);
  assert_string_equal(got.operands.at[1], "b");
}

static void operands_that_are_not_given_are_null(void **state) {
  (void)state;
  char *words[] = {"a"};
  memset(&got.operands, 0xff, sizeof got.operands);
  assert_int_equal(shoal_options_parse(&usage, 1, words, &got.operands, &got.err), SHOAL_PARSED);
  assert_string_equal(got.operands.at[0], "a");
  assert_null(got.operands.at[1]);
}

static void two_dashes_end_the_options(void **state) {
  (void)state;
  assert_int_equal(PARSE("--", "--flag", "-h"), SHOAL_PARSED);
  assert_false(got.flag);
  assert_string_equal(got.operands.at[0], "--flag");
  assert_string_equal(got.operands.at[1], "-h");
}

static void a_single_dash_is_an_operand(void **state) {
  (void)state;
  assert_int_equal(PARSE("-"), SHOAL_PARSED);
  assert_string_equal(got.operands.at[0], "-");
}

static void the_last_of_a_repeated_option_counts_and_defaults_stay(void **state) {
  (void)state;
  assert_int_equal(PARSE("a", "--text", "x", "--text", "y"), SHOAL_PARSED);
  assert_string_equal(got.text, "y");
  assert_int_equal(got.whole, 5);
}

static void a_list_is_given_once(void **state) {
  (void)state;
  assert_int_equal(PARSE("a", "--list", "x,y"), SHOAL_PARSED);
  assert_int_equal(PARSE("a", "--list", "x", "--list=y"), SHOAL_PARSED_WRONG);
  assert_string_equal(got.err.text, "--list was given twice; put all of it into one, with commas");
}

static void a_value_may_start_with_a_dash_but_is_no_option(void **state) {
  (void)state;
  assert_int_equal(PARSE("a", "--real", "-1"), SHOAL_PARSED);
  assert_int_equal(PARSE("a", "--text", "--odd"), SHOAL_PARSED);
  assert_string_equal(got.text, "--odd");
  assert_int_equal(PARSE("a", "--text", "--flag"), SHOAL_PARSED_WRONG);
  assert_string_equal(got.err.text, "--text needs a value: --text TEXT");
  assert_int_equal(PARSE("a", "--text=--flag"), SHOAL_PARSED);
}

static void help_is_asked_for_with_a_word_or_a_letter(void **state) {
  (void)state;
  assert_int_equal(PARSE("--help"), SHOAL_PARSED_HELP);
  assert_int_equal(PARSE("a", "-h"), SHOAL_PARSED_HELP);
}

static void every_mistake_has_its_sentence(void **state) {
  (void)state;
  static const struct {
    const char *word, *sentence;
  } cases[] = {
      {"--flga", "unknown option '--flga'; did you mean '--flag'?"},
      {"--wholes=3", "unknown option '--wholes'; did you mean '--whole'?"},
      {"--elephant", "unknown option '--elephant'"},
      {"-x", "unknown option '-x'"},
      {"-flag", "unknown option '-flag'; did you mean '--flag'?"},
      {"--=1", "unknown option '--'"},
      {"--flag=yes", "--flag takes no value"},
      {"--whole", "--whole needs a value: --whole N"},
      {"--whole=", "--whole: '' is not a whole number"},
      {"--whole=ten", "--whole: 'ten' is not a whole number"},
      {"--whole=-3", "--whole: '-3' is not a whole number"},
      {"--whole=3.5", "--whole: '3.5' is not a whole number"},
      {"--whole=1", "--whole: 1 is out of range; it takes 2 to 10"},
      {"--whole=11", "--whole: 11 is out of range; it takes 2 to 10"},
      {"--whole=99999999999999999999", "--whole: 99999999999999999999 is out of range; it takes 2 to 10"},
      {"--real=much", "--real: 'much' is not a number"},
      {"--real=nan", "--real: 'nan' is not a number"},
      {"--real=1.5", "--real: 1.5 is out of range; it takes -1 to 1"},
      {"--choice=cherry", "--choice: 'cherry' is not one of apple or pear"},
      {"--text=", "--text: the value is empty"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(PARSE("a", (char *)cases[i].word), SHOAL_PARSED_WRONG);
    assert_string_equal(got.err.text, cases[i].sentence);
  }
  assert_int_equal(PARSE("a", "b", "c"), SHOAL_PARSED_WRONG);
  assert_string_equal(got.err.text, "unexpected argument 'c'");
  assert_int_equal(PARSE("--flag"), SHOAL_PARSED_WRONG);
  assert_string_equal(got.err.text, "WORD is missing");
}

static void help_fits_the_width_and_names_every_option(void **state) {
  (void)state;
  for (uint32_t width = 43; width <= 120; width++) {
    shoal_text help;
    shoal_text_init(&help);
    shoal_options_help(&usage, width, &help);
    for (const char *line = help.bytes; *line;) {
      size_t length = strcspn(line, "\n");
      assert_in_range(length, 0, width);
      line += length + 1;
    }
    for (size_t i = 1; i < usage.options_count; i++) {
      char flag[32];
      snprintf(flag, sizeof flag, "  --%s", options[i].name);
      assert_non_null(strstr(help.bytes, flag));
    }
    assert_non_null(strstr(help.bytes, "Usage: shoal test WORD [OPTION...]\n   or: shoal test --flag\n"));
    assert_non_null(strstr(help.bytes, ".\n\nAnd another.\n"));
    assert_non_null(strstr(help.bytes, "Examples:\n  shoal test word\n"));
    shoal_text_release(&help);
  }
}

static void a_time_has_its_letter(void **state) {
  (void)state;
  static const struct {
    const char *word;
    double seconds;
  } good[] = {{"90s", 90}, {"10m", 600}, {"2h", 7200}, {"1.5h", 5400}};
  static const char *const bad[] = {"", "s", "soon", "-1m", "0s", "10 m", "1d", "1e9h", "10mm", "0", "nan"};
  double seconds;
  shoal_error err;
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    assert_int_equal(shoal_options_read_time("--t", good[i].word, &seconds, &err), SHOAL_OK);
    assert_true(seconds == good[i].seconds);
  }
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    assert_int_equal(shoal_options_read_time("--t", bad[i], &seconds, &err), SHOAL_INVALID);
    assert_non_null(strstr(err.text, "is no time; write 90s, 10m or 2h"));
  }
  assert_int_equal(shoal_options_read_time("--budget", "15", &seconds, &err), SHOAL_INVALID);
  assert_string_equal(err.text, "--budget: 15 lacks its unit; write 15s, 15m or 15h");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(options_and_operands_stand_in_any_order),
      cmocka_unit_test(operands_that_are_not_given_are_null),
      cmocka_unit_test(two_dashes_end_the_options),
      cmocka_unit_test(a_single_dash_is_an_operand),
      cmocka_unit_test(a_list_is_given_once),
      cmocka_unit_test(the_last_of_a_repeated_option_counts_and_defaults_stay),
      cmocka_unit_test(a_value_may_start_with_a_dash_but_is_no_option),
      cmocka_unit_test(help_is_asked_for_with_a_word_or_a_letter),
      cmocka_unit_test(every_mistake_has_its_sentence),
      cmocka_unit_test(help_fits_the_width_and_names_every_option),
      cmocka_unit_test(a_time_has_its_letter),
  };
  return RUN_TESTS(tests);
}
