#include "files.h"

#include <math.h>

#include "data/table.h"

static shoal_status open_table(shoal_table *table, const char *path, const char *test_path,
                               const char *target, shoal_target_kind kind, shoal_error *err) {
  shoal_status status = shoal_table_open(table, path, test_path, target, kind, false, err);
  if (status != SHOAL_OK) return status;
  shoal_parts parts;
  shoal_parts_init(&parts, table->training, table->test, 0);
  return shoal_table_scale(table, &parts, err);
}

static void columns_become_standardised_numbers(void **state) {
  (void)state;
  put_text("train.csv", "size,label,weight\n1,b,10\n2,a,\n3,b,30\n?,a,20\n");
  put_text("test.csv", "size,label,weight\n4,a,NA\n");
  shoal_table table;
  shoal_table_init(&table);
  shoal_error err;
  shoal_status status = open_table(&table, "train.csv", "test.csv", "label", SHOAL_TARGET_CLASSES, &err);
  if (status != SHOAL_OK) fail_msg("%s", err.text);
  assert_int_equal(table.training, 4);
  assert_int_equal(table.test, 1);
  assert_int_equal(table.columns.count, 2);
  assert_string_equal(shoal_names_at(&table.columns, 1), "weight");
  assert_string_equal(table.target, "label");
  double size = sqrt(2.0 / 3), weight = sqrt(200.0 / 3);
  const float expected[] = {(float)(-1 / size),
                            (float)(-10 / weight),
                            0,
                            0,
                            (float)(1 / size),
                            (float)(10 / weight),
                            0,
                            0,
                            (float)(2 / size),
                            0};
  for (int i = 0; i < 10; i++) assert_true(table.values[i] == expected[i]);
  const int32_t labels[] = {1, 0, 1, 0, 0};
  assert_memory_equal(table.labels, labels, sizeof labels);
  assert_string_equal(shoal_names_at(&table.classes, 0), "a");
  shoal_table_release(&table);
}

static void headers_are_recognised(void **state) {
  (void)state;
  static const struct {
    const char *text;
    bool header;
    uint64_t rows;
  } cases[] = {
      {"a,b\n1,2\n3,4\n", true, 2},
      {"1,2\n3,4\n", false, 2},
      {"1,yes\n3,no\n", false, 2}, /* a class is not a header */
      {"x,class\n3,no\n4,yes\n", true, 2},
      {"a,1990\n3,4\n5,6\n", true, 2}, /* a name above a number */
      {"\"a\",\"b\"\n1,2\n", true, 1},
      {",b\n1,2\n", true, 1}, /* the index column that pandas writes */
      {"?,2\n3,4\n", false, 2},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    put_text("t.csv", cases[i].text);
    shoal_table table;
    shoal_table_init(&table);
    shoal_error err;
    shoal_target_kind kind = strchr(cases[i].text, 'o') ? SHOAL_TARGET_CLASSES : SHOAL_TARGET_NUMBER;
    if (open_table(&table, "t.csv", NULL, NULL, kind, &err) != SHOAL_OK) fail_msg("%s", err.text);
    assert_int_equal(table.header, cases[i].header);
    assert_int_equal(table.training + table.test, cases[i].rows);
    shoal_table_release(&table);
  }
}

static void classes_are_sorted(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"x,y\n1,b\n1,c\n1,a\n1,b\n", "a b c"},
      {"x,y\n1,10\n1,9\n1,-1\n", "-1 9 10"},
      {"x,y\n1,10\n1,9\n1,ten\n", "10 9 ten"},
  };
  for (size_t i = 0; i < 3; i++) {
    put_text("t.csv", cases[i][0]);
    shoal_table table;
    shoal_table_init(&table);
    shoal_error err;
    if (open_table(&table, "t.csv", NULL, NULL, SHOAL_TARGET_CLASSES, &err) != SHOAL_OK)
      fail_msg("%s", err.text);
    char names[64] = "";
    size_t length = 0;
    for (uint32_t k = 0; k < table.classes.count; k++)
      length += (size_t)snprintf(names + length, sizeof names - length, "%s%s", k ? " " : "",
                                 shoal_names_at(&table.classes, k));
    assert_string_equal(names, cases[i][1]);
    shoal_table_release(&table);
  }
}

static void bad_tables_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *text, *target;
    shoal_target_kind kind;
    const char *why;
  } cases[] = {
      {"", NULL, SHOAL_TARGET_NUMBER, "t.csv: there is nothing in this file"},
      {"a,b\n", NULL, SHOAL_TARGET_NUMBER, "t.csv: there are no rows"},
      {"a\n1\n", NULL, SHOAL_TARGET_NUMBER, "t.csv: has one column"},
      {"a,b\n1,2,3\n", NULL, SHOAL_TARGET_NUMBER, "t.csv:2: 3 cells, where the first row has 2"},
      {"a,b\n1,2\n\n1\n", NULL, SHOAL_TARGET_NUMBER, "t.csv:4: 1 cells, where the first row has 2"},
      {"a,a,b\n1,2,3\n", NULL, SHOAL_TARGET_NUMBER, "t.csv:1:3: a second column called 'a'"},
      {"sex,b\nmale,2\n", NULL, SHOAL_TARGET_NUMBER,
       "t.csv:2:1: column 'sex' holds 'male', which is not a number; only numbers can be features: write the "
       "column as numbers, or leave it out; `shoal search` takes words"},
      {"a,b\n1,2\n 0x10,2\n", NULL, SHOAL_TARGET_NUMBER, "t.csv:3:2: column 'a' holds '0x10'"},
      {"a,b\n1,2\n1e300,2\n", NULL, SHOAL_TARGET_NUMBER, "too large a number"},
      {"a,b\n1,2\n1,\n", NULL, SHOAL_TARGET_NUMBER, "t.csv:3:3: the target, column 'b', is empty"},
      {"a,b\n1,2\n1,x\n", NULL, SHOAL_TARGET_NUMBER,
       "t.csv:3:3: column 'b' holds 'x', which is not a number; for classes"},
      {"a,b\n1,2\n", "c", SHOAL_TARGET_NUMBER, "no column is called 'c'"},
      {"width,b\n1,2\n", "widht", SHOAL_TARGET_NUMBER, "did you mean 'width'"},
      {"a,b\n1,2\n", "3", SHOAL_TARGET_NUMBER, "no column is called '3'"},
      {"a,b\n1,x\n1,y\n1,z\n", NULL, SHOAL_TARGET_TWO, "t.csv:4:3: column 'b' holds 'z', a third class"},
      {"a,b\n1,x\n1,x\n", NULL, SHOAL_TARGET_TWO, "is 'x' in every row"},
      {"a,b\n1,caf\xe9\n", NULL, SHOAL_TARGET_CLASSES, "t.csv:2:3: the name of a class is not UTF-8"},
      {"caf\xe9,b\n1,1\n", NULL, SHOAL_TARGET_NUMBER, "t.csv:1:1: the name of a column is not UTF-8"},
      {"a,b\n1,\"2\n", NULL, SHOAL_TARGET_NUMBER, "t.csv:2:3: the quote"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    put_text("t.csv", cases[i].text);
    shoal_table table;
    shoal_table_init(&table);
    shoal_error err;
    assert_int_not_equal(open_table(&table, "t.csv", NULL, cases[i].target, cases[i].kind, &err), SHOAL_OK);
    CHECK_SAYS(&err, cases[i].why);
    shoal_table_release(&table);
  }
}

static void a_target_is_found_by_name_or_number(void **state) {
  (void)state;
  put_text("t.csv", "a,b,2\n1,5,9\n2,6,8\n");
  static const char *const targets[][2] = {{"a", "a"}, {"1", "a"}, {"2", "2"}, {NULL, "2"}, {"3", "2"}};
  for (size_t i = 0; i < 5; i++) {
    shoal_table table;
    shoal_table_init(&table);
    shoal_error err;
    assert_int_equal(open_table(&table, "t.csv", NULL, targets[i][0], SHOAL_TARGET_NUMBER, &err), SHOAL_OK);
    assert_string_equal(table.target, targets[i][1]);
    shoal_table_release(&table);
  }
}

/* A file of `rows` rows: x is the row's number, y is it times ten. */
static void put_rows(const char *path, int rows) {
  FILE *file = fopen(path, "w");
  fprintf(file, "x,y\n");
  for (int i = 0; i < rows; i++) fprintf(file, "%d,%d\n", i, i * 10);
  fclose(file);
}

static void a_fifth_of_the_rows_is_for_test(void **state) {
  (void)state;
  put_rows("t.csv", 5000);
  shoal_table table;
  shoal_table_init(&table);
  shoal_error err;
  assert_int_equal(shoal_table_open(&table, "t.csv", NULL, NULL, SHOAL_TARGET_NUMBER, false, &err), SHOAL_OK);
  assert_in_range(table.test, 900, 1100);
  assert_int_equal(table.training + table.test, 5000);
  /* Every row is there once, with its target; each part keeps the file's order. */
  for (uint64_t i = 0; i < 5000; i++) {
    assert_true((float)table.raw[i] * 10 == table.targets[i]);
    assert_true(i == 0 || i == table.training || table.raw[i] > table.raw[i - 1]);
  }
  shoal_table_release(&table);
}

static void short_files_have_training_rows(void **state) {
  (void)state;
  for (int rows = 1; rows < 12; rows++) {
    put_rows("t.csv", rows);
    shoal_table table;
    shoal_table_init(&table);
    shoal_error err;
    assert_int_equal(open_table(&table, "t.csv", NULL, NULL, SHOAL_TARGET_NUMBER, &err), SHOAL_OK);
    assert_true(table.training > 0);
    assert_int_equal(table.training + table.test, rows);
    shoal_table_release(&table);
  }
}

/* A table fitted to the file, as JSON. */
static cJSON *fit(const char *path, shoal_target_kind kind) {
  shoal_table table;
  shoal_table_init(&table);
  shoal_error err;
  if (open_table(&table, path, NULL, NULL, kind, &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_text text;
  shoal_text_init(&text);
  shoal_json json;
  shoal_json_init(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_table_write(&table, &json);
  shoal_json_close(&json, '}');
  cJSON *parsed = cJSON_Parse(text.bytes);
  assert_non_null(parsed);
  shoal_text_release(&text);
  shoal_table_release(&table);
  return parsed;
}

static shoal_status reopen(shoal_table *table, const cJSON *json, const char *path, bool unlabeled,
                           shoal_error *err) {
  shoal_table_init(table);
  shoal_status status = shoal_table_read_fitted(table, json, err);
  if (status == SHOAL_OK)
    status = shoal_table_open(table, path, NULL, NULL, table->target_kind, unlabeled, err);
  shoal_parts parts;
  shoal_parts_init(&parts, table->training, table->test, 0);
  return status == SHOAL_OK ? shoal_table_scale(table, &parts, err) : status;
}

static void a_fitted_table_reopens_to_the_same_bits(void **state) {
  (void)state;
  put_rows("t.csv", 300);
  shoal_table first, again;
  shoal_table_init(&first);
  shoal_error err;
  assert_int_equal(open_table(&first, "t.csv", NULL, NULL, SHOAL_TARGET_NUMBER, &err), SHOAL_OK);
  cJSON *json = fit("t.csv", SHOAL_TARGET_NUMBER);
  assert_int_equal(reopen(&again, json, "t.csv", false, &err), SHOAL_OK);
  assert_int_equal(again.training, first.training); /* the same file: the same split */
  assert_int_equal(again.test, first.test);
  assert_memory_equal(again.values, first.values, 300 * sizeof(float));
  assert_memory_equal(again.targets, first.targets, 300 * sizeof(float));
  cJSON_Delete(json);
  shoal_table_release(&first);
  shoal_table_release(&again);
}

static void another_file_is_all_for_test(void **state) {
  (void)state;
  put_text("t.csv", "a,b,c\n1,2,x\n3,4,y\n5,7,x\n");
  cJSON *json = fit("t.csv", SHOAL_TARGET_CLASSES);
  shoal_table table;
  shoal_error err;

  put_text("other.csv", "extra,c,b,a\n0,y,4,3\n0,x,2,1\n"); /* by name, in any order */
  if (reopen(&table, json, "other.csv", false, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_int_equal(table.training, 0);
  assert_int_equal(table.test, 2);
  assert_int_equal(table.labels[0], 1);
  assert_true(table.values[0] == (float)((3 - table.mean[0]) / table.deviation[0]));
  shoal_table_release(&table);

  put_text("other.csv", "1,2,x\n3,4,y\n"); /* by place, without a header */
  assert_int_equal(reopen(&table, json, "other.csv", false, &err), SHOAL_OK);
  assert_int_equal(table.test, 2);
  shoal_table_release(&table);

  put_text("other.csv", "a,b\n1,2\n"); /* without the target */
  assert_int_equal(reopen(&table, json, "other.csv", true, &err), SHOAL_OK);
  assert_false(table.labeled);
  shoal_table_release(&table);
  put_text("other.csv", "1,2\n");
  assert_int_equal(reopen(&table, json, "other.csv", true, &err), SHOAL_OK);
  shoal_table_release(&table);
  put_text("other.csv", "a,b,c\n1,2,\n3,4,never seen\n"); /* with one that is not read */
  assert_int_equal(reopen(&table, json, "other.csv", true, &err), SHOAL_OK);
  assert_int_equal(table.test, 2);
  shoal_table_release(&table);

  static const struct {
    const char *text;
    bool unlabeled;
    const char *why;
  } bad[] = {
      {"a,b,c\n1,2,z\n", false, "'z', which is no class of the training data"},
      {"a,c\n1,x\n", false, "the column 'b' of the training data is missing"},
      {"a,b\n1,2\n", false, "the target column 'c' is missing"},
      {"1,2\n", false, "2 columns, where the training data have 2 and a target"},
      {"1,2,x,3\n", true, "4 columns"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    put_text("other.csv", bad[i].text);
    assert_int_not_equal(reopen(&table, json, "other.csv", bad[i].unlabeled, &err), SHOAL_OK);
    CHECK_SAYS(&err, "other.csv", bad[i].why);
    shoal_table_release(&table);
  }
  cJSON_Delete(json);
}

static void damaged_json_is_refused(void **state) {
  (void)state;
  put_text("t.csv", "a,b,c\n1,2,x\n3,4,y\n5,7,x\n");
  static const char *const changes[][2] = {
      {"columns", "[]"},         {"columns", "[\"a\"]"},  {"mean", "[1]"},
      {"mean", "[1, \"x\"]"},    {"deviation", "[1, 0]"}, {"classes", "[]"},
      {"target_kind", "\"no\""}, {"target_column", "7"},  {"target_column", "-1"},
      {"target", "5"},           {"mean", "5"},           {"classes", "[\"x\", \"x\"]"},
  };
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    cJSON *json = fit("t.csv", SHOAL_TARGET_CLASSES);
    cJSON_ReplaceItemInObject(json, changes[i][0], cJSON_Parse(changes[i][1]));
    shoal_table table;
    shoal_error err;
    assert_int_equal(reopen(&table, json, "t.csv", false, &err), SHOAL_CORRUPT);
    shoal_table_release(&table);
    cJSON_Delete(json);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(columns_become_standardised_numbers),
      IN_FOLDER(headers_are_recognised),
      IN_FOLDER(classes_are_sorted),
      IN_FOLDER(bad_tables_are_refused),
      IN_FOLDER(a_target_is_found_by_name_or_number),
      IN_FOLDER(a_fifth_of_the_rows_is_for_test),
      IN_FOLDER(short_files_have_training_rows),
      IN_FOLDER(a_fitted_table_reopens_to_the_same_bits),
      IN_FOLDER(another_file_is_all_for_test),
      IN_FOLDER(damaged_json_is_refused),
  };
  return RUN_TESTS(tests);
}
