#include "tables.h"

#include <math.h>
#include <time.h>

/* Rows of one column, made by a format of the row's number. */
static void put_column(const char *path, const char *name, int rows, const char *format) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "%s,other\n", name);
  for (int i = 0; i < rows; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    fprintf(file, format, i);
#pragma GCC diagnostic pop
    fprintf(file, ",%d\n", i % 3);
  }
  assert_int_equal(fclose(file), 0);
}

static void kinds_of_real_tables_are_right(void **state) {
  (void)state;
  if (!shared_data()) skip();
  static const struct {
    const char *file;
    struct {
      const char *name;
      shoal_column_kind kind;
    } columns[12];
  } cases[] = {
      {"titanic.csv",
       {{"PassengerId", SHOAL_IDENTIFIER},
        {"Survived", SHOAL_NUMBER},
        {"Pclass", SHOAL_NUMBER},
        {"Name", SHOAL_TEXT},
        {"Sex", SHOAL_CATEGORY},
        {"Age", SHOAL_NUMBER},
        {"Ticket", SHOAL_CATEGORY},
        {"Fare", SHOAL_NUMBER},
        {"Cabin", SHOAL_CATEGORY},
        {"Embarked", SHOAL_CATEGORY}}},
      {"adult-train.csv",
       {{"age", SHOAL_NUMBER},
        {"workclass", SHOAL_CATEGORY},
        {"fnlwgt", SHOAL_NUMBER},
        {"native-country", SHOAL_CATEGORY},
        {"income", SHOAL_CATEGORY}}},
      {"iris.csv", {{"sepal_length", SHOAL_NUMBER}, {"class", SHOAL_CATEGORY}}},
      {"california-housing.csv",
       {{"longitude", SHOAL_NUMBER},
        {"median_house_value", SHOAL_NUMBER},
        {"ocean_proximity", SHOAL_CATEGORY}}},
      {"winequality-white.csv", {{"density", SHOAL_NUMBER}, {"quality", SHOAL_NUMBER}}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char path[4200];
    snprintf(path, sizeof path, "%s/csv/%s", shared_data(), cases[i].file);
    shoal_profile profile = profile_of(path);
    for (int c = 0; c < 12 && cases[i].columns[c].name; c++)
      check_kind(&profile, cases[i].columns[c].name, cases[i].columns[c].kind);
    shoal_profile_release(&profile);
  }
}

static void kinds_follow_the_cells(void **state) {
  (void)state;
  static const struct {
    const char *name, *format; /* of the row's number */
    int rows;
    shoal_column_kind kind;
  } cases[] = {
      {"x", "%d.5", 100, SHOAL_NUMBER},
      {"x", "%d kg", 100, SHOAL_NUMBER},
      {"x", "\"$%d,200\"", 100, SHOAL_NUMBER},
      {"x", "%d%%", 100, SHOAL_NUMBER},
      {"x", "%d", 100, SHOAL_IDENTIFIER}, /* a number of the row */
      {"x", "%d", 10, SHOAL_NUMBER},      /* which ten rows do not tell */
      {"user_id", "%d", 10, SHOAL_IDENTIFIER},
      {"x", "9%d00", 100, SHOAL_NUMBER},
      {"x", "%03d", 100, SHOAL_IDENTIFIER}, /* zeros in front: codes */
      {"x", "u-%d-abc", 100, SHOAL_IDENTIFIER},
      {"x", "900719925474%06d", 100, SHOAL_IDENTIFIER}, /* more digits than a number has */
      {"x", "the quick brown fox number %d", 100, SHOAL_TEXT},
      {"x", "John Smith%d", 100, SHOAL_TEXT},
      {"x", "0x%x", 10, SHOAL_CATEGORY},
      {"x", "1-Jan-%d", 10, SHOAL_CATEGORY}, /* years of one digit */
      {"x", "2020-01-%02d", 31, SHOAL_DATE}, /* but day 0: 97% of them */
      {"x", "12:%02d", 60, SHOAL_DATE},
      {"x", "same", 30, SHOAL_CONSTANT},
      {"x", "", 30, SHOAL_CONSTANT},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    put_column("t.csv", cases[i].name, cases[i].rows, cases[i].format);
    shoal_profile profile = profile_of("t.csv");
    const shoal_column *column = &profile.columns[0];
    shoal_column_kind expected = cases[i].kind;
    if (column->kind != expected)
      fail_msg("case %zu, %s: %s", i, cases[i].format, shoal_column_kind_name(column->kind));
    bool learned = expected != SHOAL_IDENTIFIER && expected != SHOAL_CONSTANT;
    assert_int_equal(column->used, learned);
    if (!learned && column->warning[0] == 0) fail_msg("case %zu has no warning", i);
    shoal_profile_release(&profile);
  }
}

/* Whole numbers that all differ: of rows in another order, of every third row, names of parcels; and quantities. */
static void codes_of_which_some_look_like_numbers_are_offered_as_categories(void **state) {
  (void)state;
  FILE *file = fopen("t.csv", "w");
  assert_non_null(file);
  fprintf(file, "code,y\n");
  for (uint32_t i = 0; i < 300; i++) fprintf(file, "%08x,%u\n", i * 2654435761u, i % 2);
  assert_int_equal(fclose(file), 0);
  shoal_profile profile = profile_of("t.csv");
  check_kind(&profile, "code", SHOAL_IDENTIFIER);
  assert_non_null(strstr(profile.columns[0].warning, "--columns 'code=category'"));
  shoal_profile_release(&profile);
}

static void only_whole_numbers_that_tell_rows_apart_are_identifiers(void **state) {
  (void)state;
  static const struct {
    const char *name;
    shoal_column_kind kind;
  } columns[] = {{"Order", SHOAL_IDENTIFIER},
                 {"shuffled", SHOAL_IDENTIFIER},
                 {"third", SHOAL_IDENTIFIER},
                 {"PID", SHOAL_IDENTIFIER},
                 {"invoice no.", SHOAL_IDENTIFIER},
                 {"area", SHOAL_NUMBER},
                 {"salary", SHOAL_NUMBER},
                 {"size", SHOAL_NUMBER},
                 {"Year", SHOAL_NUMBER}};
  enum { ROWS = 300, COLUMNS = sizeof columns / sizeof *columns };
  FILE *file = fopen("t.csv", "w");
  assert_non_null(file);
  for (int c = 0; c < COLUMNS; c++) fprintf(file, "%s%c", columns[c].name, c + 1 < COLUMNS ? ',' : '\n');
  for (int i = 0; i < ROWS; i++)
    fprintf(file, "%d,%d,%d,%d,%d,%d,%d,%d.25,%d\n", i + 1, i * 101 % ROWS, i * 101 % ROWS * 3,
            526301100 + i * i * 137, 70 + i * i, 1300 + i * i * 3, 20000 + (i * 7919) % 90001, i, 1700 + i);
  assert_int_equal(fclose(file), 0);
  shoal_profile profile = profile_of("t.csv");
  for (uint32_t c = 0; c < COLUMNS; c++) check_kind(&profile, columns[c].name, columns[c].kind);
  assert_non_null(strstr(profile.columns[0].warning, "--columns 'Order=number'"));
  shoal_profile_release(&profile);
  shoal_column_said said = {.name = (char *)"Order", .kind = SHOAL_NUMBER};
  const shoal_profile_options options = {.path = "t.csv", .seed = 1, .said = &said, .said_count = 1};
  assert_int_equal(shoal_profile_read(&profile, &options, NULL), SHOAL_OK);
  assert_true(profile.columns[0].used);
  assert_string_equal(profile.columns[0].warning, "");
  shoal_profile_release(&profile);
}

static void numbers_that_are_too_large_are_missing_and_told(void **state) {
  (void)state;
  static const char *const cells[] = {"1.5", "inf", "2.25", "-Infinity", "1e400", "7", "8.5", "-3"};
  FILE *file = fopen("t.csv", "w");
  fprintf(file, "x,other\n");
  for (int i = 0; i < 80; i++) fprintf(file, "%s,%d\n", cells[i % 8], i % 3);
  fclose(file);
  shoal_profile profile = profile_of("t.csv");
  check_kind(&profile, "x", SHOAL_NUMBER);
  assert_true(profile.columns[0].max == 8.5);
  assert_string_equal(profile.columns[0].warning,
                      "30 cells are too large for a number, the first 'inf' in line 3: counted as missing");
  double value;
  assert_false(shoal_column_value(&profile.columns[0], &profile.dialect, "inf", 3, &value));
  assert_true(isnan(value));
  shoal_profile_release(&profile);
}

static void units_must_agree(void **state) {
  (void)state;
  FILE *file = fopen("t.csv", "w");
  fprintf(file, "a,b\n");
  for (int i = 0; i < 50; i++) fprintf(file, "%d kg,%d %s\n", i * 3 % 7, i * 3 % 7, i % 2 ? "kg" : "lb");
  fclose(file);
  shoal_profile profile = profile_of("t.csv");
  assert_int_equal(profile.columns[0].kind, SHOAL_NUMBER);
  assert_string_equal(profile.columns[0].unit, "kg");
  assert_int_equal(profile.columns[1].kind, SHOAL_CATEGORY);
  shoal_profile_release(&profile);
}

static void statistics_are_exact(void **state) {
  (void)state;
  put_text("t.csv", "x,c\n1,a\n2,b\n3,a\n4,a\n,b\n?,NA\n");
  shoal_profile p = profile_of("t.csv");
  const shoal_column *x = &p.columns[0], *c = &p.columns[1];
  assert_int_equal(p.rows, 6);
  assert_int_equal(x->missing, 2);
  assert_int_equal(x->distinct, 4);
  assert_true(x->mean == 2.5 && fabs(x->deviation - sqrt(1.25)) < 1e-15 && x->min == 1 && x->max == 4);
  assert_true(x->quartile[0] == 1.75 && x->quartile[1] == 2.5 && x->quartile[2] == 3.25);
  assert_int_equal(x->histogram[0], 1);
  assert_int_equal(x->histogram[SHOAL_HISTOGRAM_BARS - 1], 1);
  assert_int_equal(c->categories.count, 2);
  assert_string_equal(shoal_names_at(&c->categories, 0), "a");
  assert_int_equal(c->category_counts[0], 3);
  assert_int_equal(c->category_counts[1], 2);
  assert_int_equal(c->missing, 1);
  shoal_profile_release(&p);
}

/* More rows than the sample, more values than are counted one by one. */
static void long_columns_are_estimated(void **state) {
  (void)state;
  enum { ROWS = 300000 };
  FILE *file = fopen("t.csv", "w");
  fprintf(file, "x,c,k,u\n");
  for (int i = 0; i < ROWS; i++) {
    unsigned mixed = (unsigned)i * 2654435761u;
    fprintf(file, "%d.5,c%u,k%d,u%d-x\n", i * 7 % ROWS, mixed % 150000, i % 20000 < 10000 ? 0 : i % 20000, i);
  }
  fclose(file);
  shoal_profile p = profile_of("t.csv"), again = profile_of("t.csv");
  const shoal_column *x = &p.columns[0], *c = &p.columns[1], *k = &p.columns[2];
  assert_int_equal(x->kind, SHOAL_NUMBER);
  assert_in_range(x->distinct, ROWS * 0.94, ROWS);
  assert_in_range(c->distinct, 150000 * 0.94, 150000 * 1.06);
  assert_true(fabs(x->quartile[1] - ROWS / 2) < ROWS * 0.01);
  assert_true(x->quartile[1] == again.columns[0].quartile[1]); /* the seed chooses the sample */
  assert_int_equal(k->distinct, 10001);
  check_kind(&p, "u", SHOAL_IDENTIFIER);
  check_kind(&p, "c", SHOAL_CATEGORY);
  assert_int_equal(k->categories.count, SHOAL_CATEGORIES_MAX);
  assert_string_equal(shoal_names_at(&k->categories, 0), "k0");
  assert_int_equal(k->category_counts[0], ROWS / 2);
  shoal_profile_release(&p);
  shoal_profile_release(&again);
}

static void the_order_of_days_and_months_is_the_columns(void **state) {
  (void)state;
  put_text("t.csv", "us,eu,both,x\n1/2/2020,1/2/2020,1/2/2020,1\n1/31/2020,31/1/2020,3/4/2020,2\n");
  shoal_profile p = profile_of("t.csv");
  for (int i = 0; i < 3; i++) assert_int_equal(p.columns[i].kind, SHOAL_DATE);
  assert_false(p.columns[0].day_first);
  assert_true(p.columns[1].day_first);
  assert_true(p.columns[0].min == 1577923200); /* 2 January */
  assert_true(p.columns[1].max == 1580515200); /* 1 February */
  assert_string_equal(p.columns[0].warning, "");
  assert_non_null(strstr(p.columns[2].warning, "month"));
  shoal_profile_release(&p);
}

static shoal_status read_said(shoal_profile *out, const char *name, bool skip, shoal_column_kind kind,
                              shoal_error *err) {
  shoal_column_said said = {.name = (char *)name, .skip = skip, .kind = kind};
  return shoal_profile_read(out, &(shoal_profile_options){.path = "t.csv", .said = &said, .said_count = 1},
                            err);
}

static void a_person_has_the_last_word(void **state) {
  (void)state;
  put_text("t.csv", "zip,age,word\n10,1,old\n20,2,new\n10,x,old\n");
  shoal_profile p;
  shoal_error err;
  assert_int_equal(read_said(&p, "zip", false, SHOAL_CATEGORY, &err), SHOAL_OK);
  assert_int_equal(p.columns[0].kind, SHOAL_CATEGORY);
  assert_int_equal(p.columns[0].guessed, SHOAL_NUMBER);
  assert_int_equal(p.columns[0].categories.count, 2);
  shoal_profile_release(&p);
  assert_int_equal(read_said(&p, "2", false, SHOAL_NUMBER, &err), SHOAL_OK); /* by its number */
  assert_int_equal(p.columns[1].kind, SHOAL_NUMBER);
  assert_non_null(strstr(p.columns[1].warning, "'x' in line 4"));
  shoal_profile_release(&p);
  assert_int_equal(read_said(&p, "zip", true, SHOAL_NUMBER, &err), SHOAL_OK);
  assert_false(p.columns[0].used);
  shoal_profile_release(&p);
  assert_int_equal(read_said(&p, "word", false, SHOAL_NUMBER, &err), SHOAL_INVALID);
  CHECK_SAYS(&err, "t.csv: the column 'word' cannot be read as a number", "line 2 has 'old'");
  assert_int_equal(read_said(&p, "wrod", false, SHOAL_NUMBER, &err), SHOAL_INVALID);
  CHECK_SAYS(&err, "no column is called 'wrod'; did you mean 'word'?");
}

static void names_are_made_different(void **state) {
  (void)state;
  put_text("t.csv", "a,,a,\"two\nlines\"\n1,2,3,4\n");
  shoal_profile p = profile_of("t.csv");
  static const char *const names[] = {"a", "column 2", "a (2)", "two lines"};
  for (int i = 0; i < 4; i++) assert_string_equal(p.columns[i].name, names[i]);
  shoal_profile_release(&p);
  put_text("t.csv", "a,a (3),a,a,a,a (3)\n1,2,3,4,5,6\n");
  p = profile_of("t.csv");
  static const char *const taken[] = {"a", "a (3)", "a (2)", "a (4)", "a (5)", "a (3) (2)"};
  for (int i = 0; i < 6; i++) assert_string_equal(p.columns[i].name, taken[i]);
  shoal_profile_release(&p);
}

static void thousands_of_equal_names_take_no_time(void **state) {
  (void)state;
  enum { COLUMNS = 16000 };
  FILE *file = fopen("t.csv", "w");
  assert_non_null(file);
  for (int row = 0; row < 3; row++)
    for (int i = 0; i < COLUMNS; i++)
      fprintf(file, "%s%s", row == 0 ? "a" : "1", i + 1 < COLUMNS ? "," : "\n");
  assert_int_equal(fclose(file), 0);
  clock_t start = clock();
  shoal_profile p = profile_of("t.csv");
  assert_true(clock() - start < 5 * CLOCKS_PER_SEC);
  assert_string_equal(p.columns[COLUMNS - 1].name, "a (16000)");
  shoal_profile_release(&p);
}

static shoal_text json_of(const shoal_profile *profile) {
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_profile_write(profile, &json, NULL);
  assert_false(text.failed);
  return text;
}

static void a_profile_comes_back_from_json(void **state) {
  (void)state;
  put_text("t.csv", "id,x,c,d,t,k,w\n1,1.5,a,2020-01-01,some words to read,1,1 kg\n2,2.5,b,2020-02-01,other "
                    "words,1,2 kg\n");
  shoal_profile p = profile_of("t.csv"), again;
  shoal_text text = json_of(&p);
  cJSON *json = cJSON_Parse(text.bytes);
  shoal_error err;
  if (shoal_profile_from_json(&again, json, &err) != SHOAL_OK) fail_msg("%s", err.text);
  shoal_text text_again = json_of(&again);
  assert_string_equal(text_again.bytes, text.bytes);
  shoal_text_release(&text_again);
  shoal_profile_release(&again);
  static const char *const wrong[][2] = {
      {"columns", "[]"},
      {"columns", "[{}]"},
      {"columns", "5"},
      {"rows", "-1"},
      {"dialect", "{}"},
      {"sha256", "\""
                 "0123456789012345678901234567890123456789012345678901234567890123456789\""},
      {"file", "null"},
      {"columns", "[null]"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    cJSON *copy = cJSON_Duplicate(json, true);
    cJSON_ReplaceItemInObject(copy, wrong[i][0], cJSON_Parse(wrong[i][1]));
    assert_int_not_equal(shoal_profile_from_json(&again, copy, &err), SHOAL_OK);
    cJSON_Delete(copy);
  }
  static const char *const wrong_column[][2] = {{"kind", "\"what\""},      {"name", "\"\""},
                                                {"missing", "null"},       {"used", "3"},
                                                {"categories", "[\"a\"]"}, {"counts", "[1]"}};
  for (size_t i = 0; i < sizeof wrong_column / sizeof *wrong_column; i++) {
    cJSON *copy = cJSON_Duplicate(json, true);
    cJSON *column = cJSON_GetArrayItem(cJSON_GetObjectItem(copy, "columns"), 2);
    cJSON_ReplaceItemInObject(column, wrong_column[i][0], cJSON_Parse(wrong_column[i][1]));
    if (shoal_profile_from_json(&again, copy, &err) == SHOAL_OK) fail_msg("%s", wrong_column[i][0]);
    CHECK_SAYS(&err, "profile: column 3: ");
    cJSON_Delete(copy);
  }
  cJSON_Delete(json);
  shoal_text_release(&text);
  shoal_profile_release(&p);
}

static void stop_and_progress_work(void **state) {
  (void)state;
  put_text("t.csv", "a,b\n1,2\n");
  shoal_profile p;
  shoal_error err;
  volatile sig_atomic_t stop = 1;
  assert_int_equal(shoal_profile_read(&p, &(shoal_profile_options){.path = "t.csv", .stop = &stop}, &err),
                   SHOAL_STOPPED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(kinds_of_real_tables_are_right),
      IN_FOLDER(kinds_follow_the_cells),
      IN_FOLDER(codes_of_which_some_look_like_numbers_are_offered_as_categories),
      IN_FOLDER(only_whole_numbers_that_tell_rows_apart_are_identifiers),
      IN_FOLDER(numbers_that_are_too_large_are_missing_and_told),
      IN_FOLDER(units_must_agree),
      IN_FOLDER(statistics_are_exact),
      IN_FOLDER(long_columns_are_estimated),
      IN_FOLDER(the_order_of_days_and_months_is_the_columns),
      IN_FOLDER(a_person_has_the_last_word),
      IN_FOLDER(names_are_made_different),
      IN_FOLDER(thousands_of_equal_names_take_no_time),
      IN_FOLDER(a_profile_comes_back_from_json),
      IN_FOLDER(stop_and_progress_work),
  };
  return RUN_TESTS(tests);
}
