#include "tables.h"

#include <math.h>

static shoal_rows *open_rows(const char *path, const shoal_profile *profile, uint32_t target,
                             bool unlabeled) {
  shoal_rows *rows;
  shoal_error err;
  shoal_rows_options options = {.path = path, .profile = profile, .target = target, .unlabeled = unlabeled};
  if (shoal_rows_open(&rows, &options, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return rows;
}

static const char table[] = "id,x,c,d,t,y\n"
                            "1,1.5,red,2020-01-01,The quick brown fox jumps,no\n"
                            "2,,green,,,yes\n"
                            "3,?,NA,1970-01-02,the QUICK fox,no\n"
                            "4,4.5,red,2020-01-01,something else of many words,yes\n";

static const shoal_column_said kinds[] = {{.name = "id", .kind = SHOAL_IDENTIFIER},
                                          {.name = "t", .kind = SHOAL_TEXT}};

static shoal_profile table_profile(void) {
  shoal_profile profile;
  shoal_error err;
  put_text("t.csv", table);
  if (shoal_profile_read(&profile, &(shoal_profile_options){.path = "t.csv", .said = kinds, .said_count = 2},
                         &err) != SHOAL_OK)
    fail_msg("%s", err.text);
  return profile;
}

static void cells_are_kept(void **state) {
  (void)state;
  shoal_profile p = table_profile();
  shoal_rows *rows = open_rows("t.csv", &p, 5, false);
  assert_int_equal(shoal_rows_count(rows), 4);
  assert_true(shoal_rows_has_target(rows));
  assert_true(shoal_rows_number(rows, 0, 1) == 1.5 && shoal_rows_number(rows, 3, 1) == 4.5);
  assert_true(isnan(shoal_rows_number(rows, 1, 1)) && isnan(shoal_rows_number(rows, 2, 1)));
  assert_true(shoal_rows_number(rows, 0, 3) == 1577836800 && shoal_rows_number(rows, 2, 3) == 86400);
  assert_true(isnan(shoal_rows_number(rows, 1, 3)));
  uint32_t red = shoal_names_find(&p.columns[2].categories, "red", 3);
  assert_int_equal(shoal_rows_category(rows, 0, 2), red);
  assert_int_equal(shoal_rows_category(rows, 3, 2), red);
  assert_int_equal(shoal_rows_category(rows, 2, 2), SHOAL_MISSING);
  assert_int_equal(shoal_rows_line(rows, 2), 4);
  assert_int_equal(shoal_rows_category(rows, 0, 0), SHOAL_MISSING); /* an identifier is not kept */
  shoal_rows_close(rows);
  shoal_profile_release(&p);
}

static bool holds(const uint32_t *hashes, uint32_t count, uint32_t hash) {
  for (uint32_t i = 0; i < count; i++) {
    if (hashes[i] == hash) return true;
  }
  return false;
}

static void texts_share_the_hashes_of_their_words(void **state) {
  (void)state;
  shoal_profile p = table_profile();
  shoal_rows *rows = open_rows("t.csv", &p, 5, false);
  uint32_t fox, quick, none, other;
  const uint32_t *a = shoal_rows_text(rows, 0, 4, &fox), *b = shoal_rows_text(rows, 2, 4, &quick);
  const uint32_t *c = shoal_rows_text(rows, 3, 4, &other);
  assert_null(shoal_rows_text(rows, 1, 4, &none));
  assert_int_equal(none, 0);
  assert_true(fox > quick && fox <= SHOAL_TEXT_HASHES && quick > 3);
  for (uint32_t i = 0; i < quick; i++)
    assert_true(holds(a, fox, b[i])); /* all of it stands in the first, in any case */
  uint32_t shared = 0;
  for (uint32_t i = 0; i < other; i++) shared += holds(a, fox, c[i]);
  assert_true(shared < other / 4);
  shoal_rows_close(rows);
  shoal_profile_release(&p);
}

static void long_texts_have_an_end(void **state) {
  (void)state;
  FILE *file = fopen("t.csv", "w");
  fprintf(file, "t,y\n");
  for (int i = 0; i < 30; i++) {
    for (int k = 0; k < 200; k++) fprintf(file, "word%dx%d ", i, k);
    fprintf(file, ",%d\n", i % 2);
  }
  fclose(file);
  shoal_profile p = profile_of("t.csv");
  assert_int_equal(p.columns[0].kind, SHOAL_TEXT);
  shoal_rows *rows = open_rows("t.csv", &p, 1, false);
  for (uint64_t r = 0; r < 30; r++) {
    uint32_t count;
    const uint32_t *hashes = shoal_rows_text(rows, r, 0, &count);
    assert_int_equal(count, SHOAL_TEXT_HASHES);
    assert_non_null(hashes);
  }
  shoal_rows_close(rows);
  shoal_profile_release(&p);
}

static void other_files_are_matched_by_name(void **state) {
  (void)state;
  shoal_profile p = table_profile();
  /* In another order, with another delimiter and decimal sign, more columns, no identifier, a new
   * category. */
  put_text("other.csv", "extra;y;t;d;c;x\n1;yes;hello there;2.1.2020;blue;2,5\n1;No.;x;;red;-3,5\n");
  shoal_rows *rows = open_rows("other.csv", &p, 5, false);
  assert_int_equal(shoal_rows_count(rows), 2);
  assert_true(shoal_rows_number(rows, 0, 1) == 2.5 && shoal_rows_number(rows, 1, 1) == -3.5);
  assert_int_equal(shoal_rows_category(rows, 0, 2), SHOAL_UNSEEN);
  assert_true(shoal_rows_number(rows, 0, 3) == 1577923200);
  uint32_t no = shoal_names_find(&p.columns[5].categories, "no", 2);
  assert_int_equal(shoal_rows_category(rows, 1, 5), no); /* "No." */
  assert_non_null(strstr(shoal_rows_warning(rows), "'No.' is taken for 'no'"));
  shoal_rows_close(rows);

  put_text("other.csv", "x,c,d,t\n1,red,2020-01-01,words\n"); /* without the target */
  rows = open_rows("other.csv", &p, 5, true);
  assert_false(shoal_rows_has_target(rows));
  assert_int_equal(shoal_rows_category(rows, 0, 5), SHOAL_MISSING);
  shoal_rows_close(rows);

  put_text("other.csv", "x,c,d,t,y\n1,red,2020-01-01,words,whatever\n"); /* with one that is not asked for */
  rows = open_rows("other.csv", &p, 5, true);
  assert_int_equal(shoal_rows_category(rows, 0, 5), SHOAL_UNSEEN);
  shoal_rows_close(rows);
  shoal_profile_release(&p);
}

static void files_without_names_are_matched_by_place(void **state) {
  (void)state;
  put_text("t.csv", "1,a,2.5\n2,b,3.5\n3,a,1.5\n");
  shoal_profile p = profile_of("t.csv");
  put_text("other.csv", "7,b,0.5\n");
  shoal_rows *rows = open_rows("other.csv", &p, 2, false);
  assert_true(shoal_rows_number(rows, 0, 0) == 7 && shoal_rows_number(rows, 0, 2) == 0.5);
  shoal_rows_close(rows);
  put_text("other.csv", "7,b\n8,a\n");
  rows = open_rows("other.csv", &p, 2, true);
  assert_int_equal(shoal_rows_count(rows), 2);
  assert_int_equal(shoal_rows_category(rows, 1, 1), 0);
  shoal_rows_close(rows);
  shoal_profile_release(&p);
}

static void what_does_not_fit_is_refused(void **state) {
  (void)state;
  shoal_profile p = table_profile();
  static const struct {
    const char *text;
    bool unlabeled;
    const char *why;
  } bad[] = {
      {"x,c,d,t,y\n1,red,2020-01-01,words,maybe\n", false,
       "other.csv:2:24: the target 'y' holds 'maybe', which is no class"},
      {"x,c,t,y\n1,red,words,no\n", false, "the column 'd' of the training data is missing"},
      {"x,colour,c2,d,t,y\n1,red,a,,words,no\n", false, "is missing; is it the one called 'c2'?"},
      {"x,c,d,t\n1,red,,words\n", false, "the target column 'y' is missing"},
      {"x,c,d,t,y\n1,red,,words,no\n1,red\n", true, "other.csv:3: 2 cells, where the first row has 5"},
      {"x,c,d,t,y\n1,red,,words,no\n1,red\n", false, "other.csv:3: 2 cells"},
      {"1,red\n", false, "2 columns, where the training data have 6"},
      {"x,c,d,t,y\n", false, "no rows"},
      {"", false, "nothing in this file"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    put_text("other.csv", bad[i].text);
    shoal_rows *rows;
    shoal_error err;
    shoal_rows_options options = {
        .path = "other.csv", .profile = &p, .target = 5, .unlabeled = bad[i].unlabeled};
    if (shoal_rows_open(&rows, &options, &err) == SHOAL_OK) fail_msg("case %zu was taken", i);
    assert_null(rows);
    CHECK_SAYS(&err, bad[i].why);
  }
  shoal_profile_release(&p);
}

static void words_among_numbers_are_missing_but_not_in_the_target(void **state) {
  (void)state;
  FILE *file = fopen("t.csv", "w");
  fprintf(file, "x,y\n");
  for (int i = 0; i < 99; i++) fprintf(file, "%d.5,%d.25\n", i, i * 3);
  fprintf(file, "many,1\n");
  fclose(file);
  shoal_profile p = profile_of("t.csv");
  shoal_rows *rows = open_rows("t.csv", &p, 1, false);
  assert_int_equal(shoal_rows_bad_cells(rows, 0), 1);
  assert_true(isnan(shoal_rows_number(rows, 99, 0)));
  shoal_rows_close(rows);
  shoal_error err;
  shoal_rows_options options = {.path = "t.csv", .profile = &p, .target = 0};
  assert_int_equal(shoal_rows_open(&rows, &options, &err), SHOAL_INVALID);
  CHECK_SAYS(&err, "t.csv:101:1: the target 'x' holds 'many', which is not a number");
  rows = open_rows("t.csv", &p, 0, true);
  assert_true(isnan(shoal_rows_number(rows, 99, 0)));
  shoal_rows_close(rows);
  shoal_profile_release(&p);
}

static void equal_features_have_equal_digests(void **state) {
  (void)state;
  shoal_profile p = table_profile();
  put_text("other.csv", "id,x,c,d,t,y\n"
                        "1,1,red,2020-01-01,some words,no\n2,1,red,2020-01-01,some words,yes\n"
                        "3,1,red,2020-01-01,some word,no\n4,2,red,2020-01-01,some words,no\n"
                        "5,,red,2020-01-01,some words,no\n6,1,green,2020-01-01,some words,no\n"
                        "7,?,red,2020-01-01,some words,yes\n");
  shoal_rows *rows = open_rows("other.csv", &p, 5, false);
  uint64_t first = shoal_rows_digest(rows, 0);
  assert_true(first == shoal_rows_digest(rows, 1)); /* target and identifier are no features */
  for (uint64_t i = 2; i < 7; i++) assert_true(first != shoal_rows_digest(rows, i));
  assert_true(shoal_rows_digest(rows, 4) == shoal_rows_digest(rows, 6));
  shoal_rows_close(rows);
  shoal_profile_release(&p);
}

static void cells_need_no_file(void **state) {
  (void)state;
  put_text("t.csv", "a;b;c\n1,5;red;1\n2,5;blue;2\n");
  shoal_profile p = profile_of("t.csv");
  const char *const cells[] = {" 2.25 ", "red ", NULL, "2,75", "pink", NULL,
                               NULL,     NULL,   NULL, "x",    "blue", NULL};
  shoal_rows *rows;
  shoal_error err;
  assert_int_equal(shoal_rows_of_cells(&rows, &p, 2, cells, 4, &err), SHOAL_OK);
  assert_int_equal(shoal_rows_count(rows), 4);
  assert_true(shoal_rows_number(rows, 0, 0) == 2.25 && shoal_rows_number(rows, 1, 0) == 2.75);
  assert_true(isnan(shoal_rows_number(rows, 2, 0)) && isnan(shoal_rows_number(rows, 3, 0)));
  assert_int_equal(shoal_rows_bad_cells(rows, 0), 1);
  assert_true(shoal_rows_category(rows, 0, 1) < 2);
  assert_int_equal(shoal_rows_category(rows, 1, 1), SHOAL_UNSEEN);
  assert_int_equal(shoal_rows_category(rows, 2, 1), SHOAL_MISSING);
  assert_false(shoal_rows_has_target(rows));
  shoal_rows_close(rows);
  shoal_profile_release(&p);
}

/* More than one piece of the file that records go through. */
static void many_rows_are_all_there(void **state) {
  (void)state;
  enum { ROWS = 200000 };
  FILE *file = fopen("t.csv", "w");
  fprintf(file, "x,t,y\n");
  for (int i = 0; i < ROWS; i++) fprintf(file, "%d.5,a few words and then number%d,%d\n", i, i, i % 3);
  fclose(file);
  shoal_profile p = profile_of("t.csv");
  shoal_rows *rows = open_rows("t.csv", &p, 2, false);
  assert_int_equal(shoal_rows_count(rows), ROWS);
  for (uint64_t i = 0; i < ROWS; i += 997) {
    uint32_t count;
    assert_true(shoal_rows_number(rows, i, 0) == (double)i + 0.5 &&
                shoal_rows_number(rows, i, 2) == (double)(i % 3));
    assert_non_null(shoal_rows_text(rows, i, 1, &count));
    assert_in_range(count, 10, SHOAL_TEXT_HASHES);
  }
  shoal_rows_close(rows);
  shoal_profile_release(&p);
}

static void the_adult_test_file_is_read(void **state) {
  (void)state;
  if (!shared_data()) skip();
  char train[4200], test[4200];
  snprintf(train, sizeof train, "%s/csv/adult-train.csv", shared_data());
  snprintf(test, sizeof test, "%s/csv/adult-test.csv", shared_data());
  shoal_profile p = profile_of(train);
  shoal_rows *rows = open_rows(test, &p, 14, false);
  assert_int_equal(shoal_rows_count(rows), 16281);
  uint64_t low = 0;
  for (uint64_t i = 0; i < 16281; i++) low += shoal_rows_category(rows, i, 14) == 0;
  assert_int_equal(low, 12435);
  assert_non_null(strstr(shoal_rows_warning(rows), "'<=50K.' is taken for '<=50K'"));
  shoal_rows_close(rows);
  shoal_profile_release(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(cells_are_kept),
      IN_FOLDER(texts_share_the_hashes_of_their_words),
      IN_FOLDER(long_texts_have_an_end),
      IN_FOLDER(other_files_are_matched_by_name),
      IN_FOLDER(files_without_names_are_matched_by_place),
      IN_FOLDER(what_does_not_fit_is_refused),
      IN_FOLDER(words_among_numbers_are_missing_but_not_in_the_target),
      IN_FOLDER(equal_features_have_equal_digests),
      IN_FOLDER(cells_need_no_file),
      IN_FOLDER(many_rows_are_all_there),
      cmocka_unit_test(the_adult_test_file_is_read),
  };
  return RUN_TESTS(tests);
}
