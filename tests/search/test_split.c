#include "table.h"

#include "search/split.h"

static const shoal_split_options shuffled = {
    .seed = 1, .test_share = 0.2, .valid_share = 0.25, .time_column = UINT32_MAX};

/* Rows with a number, and one of three classes: a in every row but each tenth (b) and each hundredth (c). */
static void open_classes(table *t, uint32_t rows) {
  shoal_text csv;
  shoal_text_init(&csv);
  shoal_text_addf(&csv, "x,class\n");
  for (uint32_t i = 0; i < rows; i++)
    shoal_text_addf(&csv, "%u.5,%s\n", i * 7 % 1009, i % 100 == 0 ? "c" : i % 10 == 0 ? "b" : "a");
  table_open(t, csv.bytes, "class", "x=number");
  shoal_text_release(&csv);
}

static void open_numbers(table *t, uint32_t rows) {
  shoal_text csv;
  shoal_text_init(&csv);
  shoal_text_addf(&csv, "x,y\n");
  for (uint32_t i = 0; i < rows; i++) shoal_text_addf(&csv, "%u.25,%u.5\n", i, i * 37 % 997);
  table_open(t, csv.bytes, "y", "x=number y=number");
  shoal_text_release(&csv);
}

static uint64_t of_class(const table *t, const shoal_row_list *list, int32_t class) {
  uint64_t count = 0;
  for (uint64_t i = 0; i < list->count; i++)
    count += shoal_target_label(&t->target, t->rows, list->at[i]) == class;
  return count;
}

/* Every row stands in one of the lists, which are ascending. */
static void check_cover(const shoal_row_list *const *lists, int count, uint64_t rows) {
  uint8_t *seen = calloc(rows, 1);
  for (int l = 0; l < count; l++)
    for (uint64_t i = 0; i < lists[l]->count; i++) {
      assert_true(i == 0 || lists[l]->at[i] > lists[l]->at[i - 1]);
      assert_int_equal(seen[lists[l]->at[i]]++, 0);
    }
  for (uint64_t r = 0; r < rows; r++) assert_int_equal(seen[r], 1);
  free(seen);
}

static void classes_have_equal_shares(void **state) {
  (void)state;
  table t;
  shoal_table_split s;
  open_classes(&t, 1000);
  assert_int_equal(shoal_table_split_make(&s, t.rows, &t.target, &shuffled, NULL), SHOAL_OK);
  check_cover((const shoal_row_list *const[]){&s.train[0], &s.valid[0], &s.test}, 3, 1000);
  assert_int_equal(s.test.count, 200);
  assert_int_equal(s.valid[0].count, 200);
  assert_int_equal(of_class(&t, &s.test, 2), 2);
  assert_int_equal(of_class(&t, &s.test, 1), 18);
  assert_int_equal(of_class(&t, &s.valid[0], 2), 2);
  assert_in_range(of_class(&t, &s.valid[0], 1), 17, 19);
  shoal_table_split_release(&s);
  table_close(&t);
}

static void the_seed_decides(void **state) {
  (void)state;
  table t;
  shoal_table_split a, b, c;
  open_classes(&t, 500);
  shoal_split_options other = shuffled;
  other.seed = 2;
  assert_int_equal(shoal_table_split_make(&a, t.rows, &t.target, &shuffled, NULL), SHOAL_OK);
  assert_int_equal(shoal_table_split_make(&b, t.rows, &t.target, &shuffled, NULL), SHOAL_OK);
  assert_int_equal(shoal_table_split_make(&c, t.rows, &t.target, &other, NULL), SHOAL_OK);
  assert_memory_equal(a.test.at, b.test.at, a.test.count * sizeof *a.test.at);
  assert_memory_not_equal(a.test.at, c.test.at, a.test.count * sizeof *a.test.at);
  shoal_table_split_release(&a);
  shoal_table_split_release(&b);
  shoal_table_split_release(&c);
  table_close(&t);
}

static void numbers_are_spread_over_their_range(void **state) {
  (void)state;
  table t;
  shoal_table_split s;
  open_numbers(&t, 2000);
  shoal_split_options options = shuffled;
  options.valid_share = 0.15;
  assert_int_equal(shoal_table_split_make(&s, t.rows, &t.target, &options, NULL), SHOAL_OK);
  assert_int_equal(s.test.count, 400);
  assert_in_range(s.valid[0].count, 239, 241);
  /* Each quarter of the range has a quarter of the part. */
  uint64_t low = 0;
  for (uint64_t i = 0; i < s.valid[0].count; i++)
    low += shoal_rows_number(t.rows, s.valid[0].at[i], t.target.column) < 997.0 / 4;
  assert_in_range(low, 55, 65);
  shoal_table_split_release(&s);
  table_close(&t);
}

static void folds_are_each_judged_once(void **state) {
  (void)state;
  table t;
  shoal_table_split s;
  open_classes(&t, 1000);
  const shoal_split_options options = {.seed = 3, .test_share = 0.1, .folds = 5, .time_column = UINT32_MAX};
  assert_int_equal(shoal_table_split_make(&s, t.rows, &t.target, &options, NULL), SHOAL_OK);
  assert_int_equal(s.folds, 5);
  check_cover((const shoal_row_list *const[]){&s.valid[0], &s.valid[1], &s.valid[2], &s.valid[3], &s.valid[4],
                                              &s.test},
              6, 1000);
  for (int f = 0; f < 5; f++) {
    check_cover((const shoal_row_list *const[]){&s.valid[f], &s.train[f], &s.test}, 3, 1000);
    assert_in_range(of_class(&t, &s.valid[f], 1), 16, 17);
    assert_in_range(of_class(&t, &s.valid[f], 2), 1, 2);
  }
  shoal_table_split_release(&s);
  table_close(&t);
}

static void by_time_the_last_rows_are_held_out(void **state) {
  (void)state;
  table t;
  shoal_table_split s;
  open_numbers(&t, 100);
  shoal_split_options options = shuffled;
  options.time_column = 0;
  assert_int_equal(shoal_table_split_make(&s, t.rows, &t.target, &options, NULL), SHOAL_OK);
  assert_int_equal(s.test.count, 20);
  assert_int_equal(s.test.at[0], 80);
  assert_int_equal(s.valid[0].count, 20);
  assert_int_equal(s.valid[0].at[0], 60);
  shoal_table_split_release(&s);
  options = (shoal_split_options){.folds = 4, .time_column = 0};
  assert_int_equal(shoal_table_split_make(&s, t.rows, &t.target, &options, NULL), SHOAL_OK);
  for (uint32_t f = 0; f < 4; f++) {
    assert_int_equal(s.train[f].count, 20 * (f + 1));
    assert_int_equal(s.valid[f].count, 20);
    assert_int_equal(s.valid[f].at[0], 20 * (f + 1));
  }
  shoal_table_split_release(&s);
  table_close(&t);
}

static void equal_rows_across_the_parts_are_counted(void **state) {
  (void)state;
  table t;
  shoal_table_split s;
  shoal_text csv;
  shoal_text_init(&csv);
  shoal_text_addf(&csv, "x,y\n");
  for (int i = 0; i < 100; i++) shoal_text_addf(&csv, "%d.5,%d.25\n", i < 50 ? 3 : i, i);
  table_open(&t, csv.bytes, "y", "x=number y=number");
  shoal_split_options options = {.test_share = 0.2, .valid_share = 0.25, .time_column = 1};
  assert_int_equal(shoal_table_split_make(&s, t.rows, &t.target, &options, NULL), SHOAL_OK);
  assert_int_equal(s.duplicates, 0); /* the first fifty are all for training */
  shoal_table_split_release(&s);
  options.time_column = UINT32_MAX;
  assert_int_equal(shoal_table_split_make(&s, t.rows, &t.target, &options, NULL), SHOAL_OK);
  uint64_t equal = 0;
  for (uint64_t i = 0; i < s.valid[0].count; i++) equal += s.valid[0].at[i] < 50;
  for (uint64_t i = 0; i < s.test.count; i++) equal += s.test.at[i] < 50;
  assert_int_equal(s.duplicates, equal);
  assert_true(equal > 10);
  shoal_table_split_release(&s);
  shoal_text_release(&csv);
  table_close(&t);
}

static void rows_without_a_target_are_in_no_part(void **state) {
  (void)state;
  table t;
  shoal_table_split s;
  shoal_text csv;
  shoal_text_init(&csv);
  shoal_text_addf(&csv, "x,y\n");
  for (int i = 0; i < 100; i++) shoal_text_addf(&csv, "%d.5,%s\n", i, i % 4 == 3 ? "" : i % 2 ? "yes" : "no");
  table_open(&t, csv.bytes, "y", "");
  assert_int_equal(shoal_table_split_make(&s, t.rows, &t.target, &shuffled, NULL), SHOAL_OK);
  assert_int_equal(s.train[0].count + s.valid[0].count + s.test.count, 75);
  for (uint64_t i = 0; i < s.train[0].count; i++) assert_true(s.train[0].at[i] % 4 != 3);
  shoal_table_split_release(&s);
  shoal_text_release(&csv);
  table_close(&t);
}

static void what_cannot_be_split_is_refused(void **state) {
  (void)state;
  table t;
  shoal_table_split s;
  shoal_error err;
  shoal_text csv;
  shoal_text_init(&csv);
  shoal_text_addf(&csv, "x,y\n");
  for (int i = 0; i < 30; i++) shoal_text_addf(&csv, "%d.5,%s\n", i, i == 29 ? "rare" : i % 2 ? "yes" : "no");
  table_open(&t, csv.bytes, "y", "x=number");
  /* A class of one row is for training, but in folds it is judged once and never learned there. */
  assert_int_equal(shoal_table_split_make(&s, t.rows, &t.target, &shuffled, &err), SHOAL_OK);
  shoal_table_split_release(&s);
  const shoal_split_options folds = {.folds = 5, .time_column = UINT32_MAX};
  assert_int_equal(shoal_table_split_make(&s, t.rows, &t.target, &folds, &err), SHOAL_INVALID);
  CHECK_SAYS(&err, "'rare'", "folds");
  shoal_split_options by_time = shuffled;
  by_time.time_column = 0;
  assert_int_equal(shoal_table_split_make(&s, t.rows, &t.target, &by_time, &err), SHOAL_INVALID);
  CHECK_SAYS(&err, "'rare'");
  const shoal_split_options none = {.valid_share = 0, .time_column = UINT32_MAX};
  assert_int_equal(shoal_table_split_make(&s, t.rows, &t.target, &none, &err), SHOAL_INVALID);
  const shoal_split_options many = {.folds = 21, .time_column = UINT32_MAX};
  assert_int_equal(shoal_table_split_make(&s, t.rows, &t.target, &many, &err), SHOAL_INVALID);
  shoal_text_release(&csv);
  table_close(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(classes_have_equal_shares),
      IN_FOLDER(the_seed_decides),
      IN_FOLDER(numbers_are_spread_over_their_range),
      IN_FOLDER(folds_are_each_judged_once),
      IN_FOLDER(by_time_the_last_rows_are_held_out),
      IN_FOLDER(equal_rows_across_the_parts_are_counted),
      IN_FOLDER(rows_without_a_target_are_in_no_part),
      IN_FOLDER(what_cannot_be_split_is_refused),
  };
  return RUN_TESTS(tests);
}
