#include "tables.h"

#include "search/warnings.h"

/* A table of 400 rows: noise, a class, a number, and columns that tell one of them. */
static void put_table(void) {
  FILE *file = fopen("t.csv", "w");
  fprintf(file, "noise,word,copy,outcome,nearly,threshold,scaled,class,price\n");
  unsigned x = 12345;
  for (int i = 0; i < 400; i++) {
    x = x * 1664525u + 1013904223u;
    int noise = (int)(x >> 16) % 1000, class = (int)(x >> 8) % 3, other = (int)(x >> 20) % 5;
    double price = (double)(x >> 4 & 0xffff) / 7;
    fprintf(file, "%d,w%d,v%d,%s,n%d,%d.5,%.6f,%s,%.6f\n", noise, other, other, class == 0 ? "won" : "lost",
            i % 25 == 0 ? (class + 1) % 3 : class, class * 1000 + noise, price * 3 + 7,
            class == 0 ? "yes" : "no", price);
  }
  fclose(file);
}

static void warn_of(shoal_profile *p, const char *target, shoal_problem problem) {
  shoal_error err;
  uint32_t column;
  shoal_rows *rows;
  *p = profile_of("t.csv");
  assert_int_equal(shoal_profile_find(p, target, &column, &err), SHOAL_OK);
  p->columns[column].used = false;
  shoal_rows_options options = {.path = "t.csv", .profile = p, .target = column};
  if (shoal_rows_open(&rows, &options, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_int_equal(shoal_warn_leaks(p, rows, column, problem, &err), SHOAL_OK);
  shoal_rows_close(rows);
}

static void check_warning(const shoal_profile *p, const char *column, const char *word) {
  const char *warning = column_of(p, column)->warning;
  if (word ? !strstr(warning, word) : warning[0] != 0) fail_msg("'%s': '%s'", column, warning);
}

static void columns_that_tell_the_class_are_named(void **state) {
  (void)state;
  put_table();
  shoal_profile p;
  warn_of(&p, "class", SHOAL_BINARY);
  check_warning(&p, "outcome", "tells the target alone");
  check_warning(&p, "threshold", "tells the target alone");
  check_warning(&p, "noise", NULL);
  check_warning(&p, "word", NULL);
  check_warning(&p, "nearly", NULL); /* wrong in some rows */
  check_warning(&p, "price", NULL);
  check_warning(&p, "copy", "says the same as the column 'word'");
  shoal_profile_release(&p);
}

static void columns_that_tell_the_number_are_named(void **state) {
  (void)state;
  put_table();
  shoal_profile p;
  warn_of(&p, "price", SHOAL_REGRESSION);
  check_warning(&p, "scaled", "tells the target alone");
  check_warning(&p, "noise", NULL);
  check_warning(&p, "threshold", NULL);
  shoal_profile_release(&p);
}

/* Where nearly every row is of one class, nearly every column is nearly always right. */
static void a_rare_class_is_no_leak(void **state) {
  (void)state;
  FILE *file = fopen("t.csv", "w");
  fprintf(file, "x,y\n");
  for (int i = 0; i < 1000; i++) fprintf(file, "%d.5,%s\n", i * 37 % 101, i % 200 == 0 ? "yes" : "no");
  fclose(file);
  shoal_profile p;
  warn_of(&p, "y", SHOAL_BINARY);
  check_warning(&p, "x", NULL);
  shoal_profile_release(&p);
}

static void real_tables_leak_nothing(void **state) {
  (void)state;
  if (!shared_data()) skip();
  static const struct {
    const char *file, *target;
    shoal_problem problem;
  } cases[] = {{"titanic.csv", "Survived", SHOAL_BINARY},
               {"adult-train.csv", "income", SHOAL_BINARY},
               {"california-housing.csv", "median_house_value", SHOAL_REGRESSION}};
  for (size_t i = 0; i < 3; i++) {
    char path[4200];
    snprintf(path, sizeof path, "%s/csv/%s", shared_data(), cases[i].file);
    if (symlink(path, "t.csv") != 0) fail();
    shoal_profile p;
    warn_of(&p, cases[i].target, cases[i].problem);
    for (uint32_t c = 0; c < p.columns_count; c++) {
      if (strstr(p.columns[c].warning, "tells")) fail_msg("%s: %s", p.columns[c].name, p.columns[c].warning);
    }
    if (i == 1) check_warning(&p, "education-num", "says the same as the column 'education'");
    shoal_profile_release(&p);
    assert_int_equal(remove("t.csv"), 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(columns_that_tell_the_class_are_named),
      IN_FOLDER(columns_that_tell_the_number_are_named),
      IN_FOLDER(a_rare_class_is_no_leak),
      IN_FOLDER(real_tables_leak_nothing),
  };
  return RUN_TESTS(tests);
}
