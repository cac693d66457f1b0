#include "table.h"

#include "search/remarks.h"

/* All that was said, a line each. */
static void hear(void *self, const char *text) { shoal_text_addf(self, "%s\n", text); }

static void check_heard(shoal_text *heard, const char *const *words) {
  for (; *words; words++)
    if (heard->bytes == NULL || strstr(heard->bytes, *words) == NULL)
      fail_msg("'%s' is not in: %s", *words, heard->bytes ? heard->bytes : "");
  shoal_text_clear(heard);
}

#define CHECK_HEARD(heard, ...) check_heard(heard, (const char *const[]){__VA_ARGS__, NULL})

static void check_silence(shoal_text *heard) {
  if (heard->length > 0) fail_msg("%s", heard->bytes);
}

static shoal_rows *open_other(const table *t, const char *csv, bool unlabeled) {
  shoal_rows *rows;
  shoal_error err;
  put_text("other.csv", csv);
  const shoal_rows_options options = {.path = "other.csv",
                                      .profile = &t->profile,
                                      .target = t->target.column,
                                      .unlabeled = unlabeled,
                                      .other_classes = true};
  if (shoal_rows_open(&rows, &options, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return rows;
}

static const char few[] = "x,k,y\n1.5,a,yes\n2.5,b,no\n3.5,a,yes\n4.5,b,no\n5.5,a,\n6.5,b,yes\n";

static void what_is_odd_in_a_file_is_said(void **state) {
  (void)state;
  table t;
  shoal_text heard = {0};
  const shoal_listener to = {.self = &heard, .say = hear};
  table_open(&t, few, "y", "x=number k=category y=category");
  shoal_remark_file(t.rows, &t.profile, "table.csv", &to);
  check_silence(&heard);
  shoal_rows *rows = open_other(&t, "x,k,y\n1,a,Yes\nold,a,no\nyoung,b,no\n", false);
  shoal_remark_file(rows, &t.profile, "other.csv", &to);
  CHECK_HEARD(&heard, "2 cells of 'x' are no numbers: taken as missing", "'Yes' is taken for 'yes'");
  shoal_rows_close(rows);
  rows = open_other(&t, "1,a,yes\n2,b,no\nthree,b,no\n", false);
  shoal_remark_file(rows, &t.profile, "other.csv", &to);
  CHECK_HEARD(&heard, "other.csv has no row with the columns' names",
              "1 cell of 'x' is no number: taken as missing");
  shoal_rows_close(rows);
  rows = open_other(&t, "k,x\na,1\n", true);
  shoal_remark_file(rows, &t.profile, "other.csv", &to);
  check_silence(&heard);
  shoal_rows_close(rows);
  shoal_text_release(&heard);
  table_close(&t);
}

static void rows_without_an_answer_are_counted(void **state) {
  (void)state;
  table t;
  shoal_answers answers;
  shoal_text heard = {0};
  const shoal_listener to = {.self = &heard, .say = hear};
  table_open(&t, few, "y", "x=number k=category y=category");
  shoal_target_count(&t.target, t.rows, NULL, &answers);
  assert_int_equal(answers.known, 5);
  assert_int_equal(answers.missing, 1);
  assert_int_equal(answers.other, 0);
  shoal_rows *rows = open_other(&t, "x,k,y\n1,a,yes\n2,b,maybe\n3,a,\n4,a,maybe\n5,a,?\n", false);
  shoal_target_count(&t.target, rows, NULL, &answers);
  assert_int_equal(answers.known, 1);
  assert_int_equal(answers.missing, 2);
  assert_int_equal(answers.other, 2);
  shoal_remark_answers(&answers, "other.csv", "y", "not scored", &to);
  CHECK_HEARD(&heard, "other.csv: 2 rows have no value in 'y': not scored",
              "2 rows have a value in 'y' that is none of the classes, the first in line 3: not scored");
  shoal_rows_close(rows);
  table_close(&t);

  table_open(&t, "x,y\n1.5,1\n2.5,2\n3.5,1\n4.5,2\n", "y",
             "x=number y=number"); /* classes that are numbers */
  rows = open_other(&t, "x,y\n1,1\n2,3\n3,\n", false);
  shoal_target_count(&t.target, rows, NULL, &answers);
  assert_int_equal(answers.known, 1);
  assert_int_equal(answers.missing, 1);
  assert_int_equal(answers.other, 1);
  assert_int_equal(answers.other_line, 3);
  shoal_rows_close(rows);
  table_close(&t);
  shoal_text_release(&heard);
}

static void rows_of_both_files_are_found(void **state) {
  (void)state;
  table t;
  shoal_error err;
  shoal_text heard = {0};
  const shoal_listener to = {.self = &heard, .say = hear};
  table_open(&t, few, "y", "x=number k=category y=category");
  assert_int_equal(shoal_remark_shared(&t.target, t.rows, "t", t.rows, "u", &to, &err), SHOAL_OK);
  CHECK_HEARD(&heard, "u holds the very rows that are learned from");
  shoal_rows *rows = open_other(&t, "x,k,y\n2.5,b,no\n1.5,a,yes\n9,a,no\n", false);
  assert_int_equal(shoal_remark_shared(&t.target, t.rows, "t", rows, "u", &to, &err), SHOAL_OK);
  CHECK_HEARD(&heard, "2 of the 3 rows of u stand in t as well, answers and all", "says little");
  shoal_rows_close(rows);
  rows = open_other(&t, "x,k,y\n2.5,b,no\n1.5,a,no\n9,a,no\n", false); /* the second with another answer */
  assert_int_equal(shoal_remark_shared(&t.target, t.rows, "t", rows, "u", &to, &err), SHOAL_OK);
  CHECK_HEARD(&heard, "1 of the 3 rows of u stands in t as well", "may be too optimistic");
  shoal_rows_close(rows);
  rows = open_other(&t, "x,k,y\n7,b,no\n8,a,yes\n", false);
  assert_int_equal(shoal_remark_shared(&t.target, t.rows, "t", rows, "u", &to, &err), SHOAL_OK);
  check_silence(&heard);
  shoal_rows_close(rows);
  shoal_text_release(&heard);
  table_close(&t);
}

static void classes_that_a_part_lacks_are_named(void **state) {
  (void)state;
  table t;
  shoal_error err;
  shoal_text heard = {0};
  const shoal_listener to = {.self = &heard, .say = hear};
  table_open(&t, few, "y", "x=number k=category y=category");
  uint64_t yes[] = {0}, no[] = {1}, both[] = {2, 3};
  shoal_table_split split = {.folds = 1, .valid = {{both, 2}}, .test = {no, 1}};
  assert_int_equal(shoal_remark_rare(&t.target, t.rows, &split, NULL, &to, &err), SHOAL_OK);
  CHECK_HEARD(&heard, "class 'yes' has 3 rows, and none is there for the last score\n");
  split.test = (shoal_row_list){0};
  split.valid[0] = (shoal_row_list){yes, 1};
  assert_int_equal(shoal_remark_rare(&t.target, t.rows, &split, NULL, &to, &err), SHOAL_OK);
  CHECK_HEARD(&heard, "class 'no' has 2 rows, and none is among those that judge the trials\n");
  split.valid[0] = (shoal_row_list){both, 2};
  assert_int_equal(shoal_remark_rare(&t.target, t.rows, &split, t.rows, &to, &err), SHOAL_OK);
  check_silence(&heard);
  shoal_text_release(&heard);
  table_close(&t);
}

static void what_is_said_is_fit_for_a_terminal(void **state) {
  (void)state;
  table t;
  shoal_error err;
  shoal_text heard = {0};
  const shoal_listener to = {.self = &heard, .say = hear};
  table_open(&t, "x,k,y\n1.5,a,yes\n2.5,b,n\x1bo\n3.5,a,yes\n4.5,b,n\x1bo\n5.5,a,yes\n", "y",
             "x=number k=category y=category");
  uint64_t yes[] = {0}, both[] = {1, 2};
  const shoal_table_split split = {.folds = 1, .valid = {{both, 2}}, .test = {yes, 1}};
  assert_int_equal(shoal_remark_rare(&t.target, t.rows, &split, NULL, &to, &err), SHOAL_OK);
  CHECK_HEARD(&heard, "class 'n?o' has 2 rows, and none is there for the last score\n");
  shoal_text_release(&heard);
  table_close(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(what_is_odd_in_a_file_is_said),      IN_FOLDER(rows_without_an_answer_are_counted),
      IN_FOLDER(rows_of_both_files_are_found),       IN_FOLDER(classes_that_a_part_lacks_are_named),
      IN_FOLDER(what_is_said_is_fit_for_a_terminal),
  };
  return RUN_TESTS(tests);
}
