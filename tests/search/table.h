/* table.h: what the tests of search share: a folder of their own, and small tables read from it. */
#ifndef SHOAL_TESTS_SEARCH_TABLE_H
#define SHOAL_TESTS_SEARCH_TABLE_H

#include "data/files.h"

#include "search/encoder.h"

typedef struct table {
  shoal_profile profile;
  shoal_rows *rows;
  shoal_target target;
} table;

static inline void table_open(table *t, const char *csv, const char *target, const char *said) {
  shoal_error err;
  uint32_t column;
  put_text("table.csv", csv);
  shoal_column_said columns[8];
  char words[128];
  size_t count = 0;
  snprintf(words, sizeof words, "%s", said);
  for (char *rest = words, *word; (word = strsep(&rest, " ")) && *word;) {
    columns[count].name = strsep(&word, "=");
    columns[count].skip = strcmp(word, "skip") == 0;
    if (!columns[count].skip) assert_true(shoal_column_kind_parse(word, &columns[count].kind));
    count++;
  }
  const shoal_profile_options options = {
      .path = "table.csv", .seed = 1, .said = columns, .said_count = count};
  if (shoal_profile_read(&t->profile, &options, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_int_equal(shoal_profile_find(&t->profile, target, &column, &err), SHOAL_OK);
  t->profile.columns[column].used = false;
  const shoal_rows_options rows = {.path = "table.csv", .profile = &t->profile, .target = column};
  if (shoal_rows_open(&t->rows, &rows, &err) != SHOAL_OK) fail_msg("%s", err.text);
  if (shoal_target_find(&t->target, t->rows, &t->profile, column, NULL, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
}

static inline void table_close(table *t) {
  shoal_target_release(&t->target);
  shoal_rows_close(t->rows);
  shoal_profile_release(&t->profile);
}

/* All rows of a table. */
static inline shoal_row_list all_rows(const table *t) {
  shoal_row_list list = {.count = shoal_rows_count(t->rows)};
  list.at = malloc((list.count + 1) * sizeof *list.at);
  for (uint64_t i = 0; i < list.count; i++) list.at[i] = i;
  return list;
}

#endif
