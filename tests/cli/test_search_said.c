/* What --columns says, and how the columns of a table are shown. */
#include "cli/search_said.h"

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "cli/tables_columns.h"

static shoal_column_said said[SHOAL_COLUMNS_SAID_MAX];
static char words[256];

static size_t read_columns(const char *text) {
  shoal_error err;
  size_t count;
  snprintf(words, sizeof words, "%s", text);
  if (shoal_search_said_columns(words, said, &count, &err) != SHOAL_OK) fail_msg("%s: %s", text, err.text);
  return count;
}

static void refuse(const char *text, const char *word) {
  shoal_error err;
  size_t count;
  snprintf(words, sizeof words, "%s", text);
  assert_int_equal(shoal_search_said_columns(words, said, &count, &err), SHOAL_INVALID);
  if (strstr(err.text, word) == NULL) fail_msg("%s: %s", text, err.text);
}

static void columns_are_named_with_their_kinds(void **state) {
  (void)state;
  assert_int_equal(read_columns("zip=category,note=skip,a=b=number"), 3);
  assert_string_equal(said[0].name, "zip");
  assert_int_equal(said[0].kind, SHOAL_CATEGORY);
  assert_true(said[1].skip && !said[0].skip);
  assert_string_equal(said[2].name, "a=b");
  assert_int_equal(said[2].kind, SHOAL_NUMBER);
}

static void names_can_stand_in_quotes(void **state) {
  (void)state;
  assert_int_equal(read_columns("\"a,b\"=category,\"say \"\"x\"\", y=z\"=text,plain=date"), 3);
  assert_string_equal(said[0].name, "a,b");
  assert_int_equal(said[0].kind, SHOAL_CATEGORY);
  assert_string_equal(said[1].name, "say \"x\", y=z");
  assert_int_equal(said[1].kind, SHOAL_TEXT);
  assert_string_equal(said[2].name, "plain");
}

static void other_words_are_refused(void **state) {
  (void)state;
  refuse("zip", "not NAME=KIND");
  refuse("=number", "not NAME=KIND");
  refuse("a,b=number", "not NAME=KIND");
  refuse("\"\"=number", "not NAME=KIND");
  refuse("\"a\"number", "not NAME=KIND");
  refuse("\"a,b=number", "has no end");
  refuse("a=colour", "no kind of column");
  refuse("a=", "no kind of column");
  refuse("a=a-kind-that-is-far-too-long-to-be-one", "no kind of column");
}

static void all_columns_are_shown_many_of_them_kind_by_kind(void **state) {
  (void)state;
  shoal_column columns[60] = {
      {.name = "age", .kind = SHOAL_NUMBER, .min = 18, .max = 80, .missing = 11, .used = true},
      {.name = "id", .kind = SHOAL_IDENTIFIER, .distinct = 100},
      {.name = "d", .kind = SHOAL_DATE, .max = 86400, .used = true},
      {.name = "y", .kind = SHOAL_NUMBER}};
  shoal_profile profile = {.rows = 100, .columns_count = 4, .columns = columns};
  shoal_text text = {0};
  shoal_tables_columns_text(&profile, 3, &text);
  assert_string_equal(text.bytes, "  age  number      18 to 80, 11% missing\n"
                                  "  id   identifier  100 different (not learned from)\n"
                                  "  d    date        1970-01-01 to 1970-01-02\n"
                                  "  y    number      0 to 0 (the target)\n");
  char names[60][8];
  for (int c = 4; c < 60; c++) {
    snprintf(names[c], sizeof names[c], "c%d", c);
    columns[c] = (shoal_column){.name = names[c], .kind = SHOAL_CATEGORY, .distinct = 3, .used = true};
  }
  profile.columns_count = 60;
  shoal_text_clear(&text);
  shoal_tables_columns_text(&profile, 3, &text);
  assert_non_null(strstr(text.bytes,
                         "  y  number      0 to 0 (the target)\n  number, 1: age (18 to 80, 11% missing)\n"
                         "  category, 56: c4 (3 values), c5 (3 values), "));
  assert_non_null(strstr(text.bytes, "c59 (3 values)\n  date, 1: d (1970-01-01 to 1970-01-02)\n"
                                     "  identifier, 1 not learned from: id\n"));
  for (const char *line = text.bytes, *end; (end = strchr(line, '\n')); line = end + 1)
    assert_in_range(end - line, 1, 100);
  shoal_text_release(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(columns_are_named_with_their_kinds),
      cmocka_unit_test(names_can_stand_in_quotes),
      cmocka_unit_test(other_words_are_refused),
      cmocka_unit_test(all_columns_are_shown_many_of_them_kind_by_kind),
  };
  return RUN_TESTS(tests);
}
