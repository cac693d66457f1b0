/* Files as people have them: each is read, or refused with a sentence that says what to do. */
#include "tables.h"

#include "data/limits.h"

/* n number, c category, d date, t text, i identifier, k constant */
static char letter_of(shoal_column_kind kind) { return "ncdtik"[kind]; }

typedef struct ugly {
  const char *name;
  const char *bytes;
  size_t length;      /* 0: up to the zero */
  void (*make)(void); /* in the place of bytes: writes u.csv */
  const char *said;   /* of the dialect */
  const char *kinds;  /* one letter a column */
  uint64_t rows;
  const char *target;
  const char *words[3]; /* of the sentence, where it is refused; of a warning where there are kinds as well */
} ugly;

static void repeat(const char *header, const char *row, int times) {
  FILE *file = fopen("u.csv", "w");
  assert_non_null(file);
  fputs(header, file);
  for (int i = 0; i < times; i++) fputs(row, file);
  assert_int_equal(fclose(file), 0);
}

static void ten_thousand_columns(void) {
  FILE *file = fopen("u.csv", "w");
  for (int row = 0; row < 4; row++) {
    for (int i = 0; i < 10000; i++) {
      if (row == 0)
        fprintf(file, "%sc%d", i ? "," : "", i);
      else
        fprintf(file, "%s%d.5", i ? "," : "", i * row % 7);
    }
    fprintf(file, "\n");
  }
  fclose(file);
}

static void too_many_columns(void) {
  FILE *file = fopen("u.csv", "w");
  for (int i = 0; i <= SHOAL_CSV_COLUMNS_MAX; i++) fprintf(file, "c%d,", i);
  fprintf(file, "\n1\n");
  fclose(file);
}

static void long_cell(void) {
  FILE *file = fopen("u.csv", "w");
  fprintf(file, "a,b\n1,");
  for (int i = 0; i < 10 << 20; i++) fputc('x', file);
  fprintf(file, "\n");
  fclose(file);
}

static void open_quote(void) {
  repeat("a,b\n", "1,2\n", 100);
  FILE *file = fopen("u.csv", "a");
  fprintf(file, "1,\"never closed\n");
  for (int i = 0; i < 1000; i++) fprintf(file, "1,2\n");
  fclose(file);
}

static void some_ragged(void) {
  repeat("a,b\n", "1.5,x\n2.5,y\n", 20);
  FILE *file = fopen("u.csv", "a");
  fprintf(file, "1,2,3\n1\n");
  fclose(file);
}

static void a_folder(void) { assert_int_equal(mkdir("u.csv", 0700), 0); }

static void a_link_to_nothing(void) { assert_int_equal(symlink("nowhere", "u.csv"), 0); }

static void nobody_may_read(void) {
  put_text("u.csv", "a,b\n1,2\n");
  assert_int_equal(chmod("u.csv", 0), 0);
}

static void identifier_target(void) {
  FILE *file = fopen("u.csv", "w");
  fprintf(file, "x,key\n");
  for (int i = 0; i < 50; i++) fprintf(file, "%d.5,%d\n", i * 37 % 11, i + 1);
  fclose(file);
}

static void zipped(void) { put_gzip("u.csv", "a,b\n1.5,x\n2.5,y\n", 16); }

static const ugly cases[] = {
    {.name = "no header", .bytes = "1.5,x\n2.5,y\n3.5,x\n", .kinds = "nc", .rows = 3},
    {.name = "byte order mark",
     .bytes = "\xef\xbb\xbf"
              "a,b\n1.5,x\n2.5,y\n",
     .kinds = "nc",
     .rows = 2,
     .target = "a"},
    {.name = "Latin-1",
     .bytes = "gr\xf6\xdf"
              "e,stadt\n1.5,K\xf6ln\n2.5,M\xfcnchen\n",
     .kinds = "nc",
     .rows = 2,
     .target = "gr\xc3\xb6\xc3\x9f"
               "e"},
    {.name = "UTF-16, low byte first",
     .bytes = "\xff\xfe"
              "a\0,\0b\0\r\0\n\0"
              "1\0.\0"
              "5\0,\0x\0\n\0"
              "2\0,\0y\0\n\0",
     .length = 32,
     .kinds = "nc",
     .rows = 2},
    {.name = "UTF-16, high byte first",
     .bytes = "\xfe\xff\0a\0,\0b\0\n\0"
              "1\0,\0x\0\n\0"
              "2\0,\0y\0\n",
     .length = 26,
     .kinds = "nc",
     .rows = 2},
    {.name = "UTF-16 without a mark",
     .bytes = "a\0,\0b\0\n\0"
              "1\0,\0x\0\n\0"
              "2\0,\0y\0\n\0",
     .length = 24,
     .kinds = "nc",
     .rows = 2},
    {.name = "a few ragged rows", .make = some_ragged, .kinds = "nc", .rows = 40},
    {.name = "ragged rows",
     .bytes = "a,b\n1,2\n1,2,3\n4\n",
     .words = {"u.csv:3: 3 cells, where the first row has 2", "mend the rows"}},
    {.name = "a title above the table",
     .bytes = "My table\n\na,b\n1,2\n3,4\n",
     .words = {"cells, where the first row has 1", "title"}},
    {.name = "quotes with newlines",
     .bytes = "a,b\n1.5,\"two\nlines\"\n2.5,\"say \"\"hi\"\"\"\n",
     .kinds = "nc",
     .rows = 2},
    {.name = "one class only",
     .bytes = "a,y\n1.5,x\n2.5,x\n3.5,x\n",
     .kinds = "nk",
     .rows = 3,
     .target = "y",
     .words = {"the target 'y' has the same value", "choose another column"}},
    {.name = "no such target",
     .bytes = "a,label\n1.5,x\n2.5,y\n",
     .kinds = "nc",
     .rows = 2,
     .target = "labels",
     .words = {"no column is called 'labels'; did you mean 'label'?"}},
    {.name = "ten thousand columns", .make = ten_thousand_columns, .rows = 3},
    {.name = "too many columns", .make = too_many_columns, .words = {"more than 16384 cells in a row"}},
    {.name = "no rows", .bytes = "a,b,c\n", .words = {"no rows below the names", "header no"}},
    {.name = "no bytes", .bytes = "", .words = {"nothing in this file"}},
    {.name = "blank lines only", .bytes = "\n \n\r\n", .words = {"nothing in this file"}},
    {.name = "zero bytes",
     .bytes = "a,b\n1,2\n3,\0\0\n5,6\n7,8\n",
     .length = 21,
     .words = {"u.csv:3:3: a zero byte", "remove them"}},
    {.name = "units", .bytes = "w,c\n12 kg,x\n13.5 kg,y\n14kg,x\n", .kinds = "nc", .rows = 3, .target = "w"},
    {.name = "units that differ",
     .bytes = "w,c\n12 kg,1.5\n13 lb,2.5\n14 kg,3.5\n15 lb,1\n",
     .kinds = "cn",
     .rows = 4},
    {.name = "decimal comma",
     .bytes = "a;b\n1,5;x\n2,25;y\n-3,125;x\n",
     .kinds = "nc",
     .rows = 3,
     .target = "a"},
    {.name = "separators of thousands",
     .bytes = "a,b\n\"1,234\",x\n\"12,345,678.5\",y\n\"1\",x\n",
     .kinds = "nc",
     .rows = 3},
    {.name = "both, the other way round",
     .bytes = "a;b\n1.234,5;x\n12.345.678,25;y\n1,5;x\n",
     .kinds = "nc",
     .rows = 3},
    {.name = "currency", .bytes = "a,b\n$5,x\n\"$1,200\",y\n-$3.50,x\n", .kinds = "nc", .rows = 3},
    {.name = "percent", .bytes = "a,b\n5%,x\n12.5%,y\n100 %,x\n", .kinds = "nc", .rows = 3},
    {.name = "tabs", .bytes = "a\tb\n1.5\tx, y\n2.5\t\n", .kinds = "nc", .rows = 2},
    {.name = "pipes", .bytes = "a|b\n1.5|x\n2.5|y\n", .kinds = "nc", .rows = 2},
    {.name = "semicolons", .bytes = "a;b\n1.5;x\n2.5;y\n", .kinds = "nc", .rows = 2},
    {.name = "what Excel writes above",
     .bytes = "sep=;\r\na;b\r\n1,5;x\r\n2,5;y\r\n",
     .kinds = "nc",
     .rows = 2},
    {.name = "carriage returns alone", .bytes = "a,b\r1.5,x\r2.5,y\r", .kinds = "nc", .rows = 2},
    {.name = "carriage returns and line feeds",
     .bytes = "a,b\r\n1.5,x\r\n\r\n2.5,y\r\n",
     .kinds = "nc",
     .rows = 2},
    {.name = "two columns of one name",
     .bytes = "a,a,b\n1.5,2.5,x\n3.5,4.5,y\n",
     .kinds = "nnc",
     .rows = 2,
     .target = "a (2)"},
    {.name = "empty names",
     .bytes = "a,,b\n1.5,2.5,x\n3.5,4.5,y\n",
     .kinds = "nnc",
     .rows = 2,
     .target = "column 2"},
    {.name = "names in quotes",
     .bytes = "\"a, b\",\"c\"\"d\"\n1.5,x\n2.5,y\n",
     .kinds = "nc",
     .rows = 2,
     .target = "c\"d"},
    {.name = "a column without cells", .bytes = "a,b,c\n1.5,,x\n2.5,,y\n", .kinds = "nkc", .rows = 2},
    {.name = "a target without cells",
     .bytes = "a,y\n1.5,\n2.5,NA\n",
     .kinds = "nk",
     .rows = 2,
     .target = "y",
     .words = {"the target 'y' has the same value, or none"}},
    {.name = "a delimiter at the end of every line",
     .bytes = "a,b,\n1.5,x,\n2.5,y,\n",
     .kinds = "nck",
     .rows = 2},
    {.name = "the same, but for the header",
     .bytes = "a,b\n1.5,x,\n2.5,y,\n3.5,x,\n",
     .kinds = "nc",
     .rows = 3},
    {.name = "blank lines between", .bytes = "\n\na,b\n\n1.5,x\n\n\n2.5,y\n\n", .kinds = "nc", .rows = 2},
    {.name = "comments",
     .bytes = "# a note\n# another, with a comma, or two\na,b\n1.5,x\n# one more\n2.5,y\n",
     .kinds = "nc",
     .rows = 2},
    {.name = "a cell of ten megabytes",
     .make = long_cell,
     .words = {"u.csv:2:3: a cell of more than a megabyte", "shorten it"}},
    {.name = "a quote that is never closed",
     .make = open_quote,
     .words = {"u.csv:102:3: the quote that opens here is never closed"}},
    {.name = "text behind a quote",
     .bytes = "a,b\n1,\"x\"y\n",
     .words = {"u.csv:2:6: text after a closing quote", "doubled"}},
    {.name = "an image",
     .bytes = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
     .length = 16,
     .words = {"this is an image"}},
    {.name = "binary data",
     .bytes = "\x01\x02\x03\x04\x05\x06\0\x07,\n\x08\x0e\x0f",
     .length = 13,
     .words = {"no text file", "as CSV"}},
    {.name = "JSON", .bytes = "[\n  {\"a\": 1, \"b\": 2}\n]\n", .words = {"this is JSON; write it as CSV"}},
    {.name = "a web page",
     .bytes = "\n<!doctype html>\n<html><body>404</body></html>\n",
     .words = {"web page", "download"}},
    {.name = "an Excel file",
     .bytes = "PK\x03\x04\x14\0\x06\0",
     .length = 8,
     .words = {"Excel", "save the sheet as CSV"}},
    {.name = "one column", .bytes = "a\n1.5\n2.5\n3.5\n", .kinds = "n", .rows = 3},
    {.name = "one column with commas inside",
     .bytes = "note\nmilk, eggs\nbread\nsalt, oil, tea\n",
     .kinds = "c",
     .rows = 3},
    {.name = "one row", .bytes = "a,b\n1.5,x\n", .kinds = "kk", .rows = 1},
    {.name = "dates in many ways",
     .bytes = "d,x\n2020-01-31,1\n31.1.2020,2\n1/31/2020,3\n31 Jan 2020,4\n\"Jan 31, 2020\",5\n"
              "2020-01-31T14:00:00Z,6\n",
     .kinds = "dn",
     .rows = 6},
    {.name = "dates before 1970 and far ahead",
     .bytes = "d,x\n1815-12-10,1\n1969-12-31,2\n2345-06-07,3\n9999-12-31,4\n",
     .kinds = "dn",
     .rows = 4,
     .target = "x"},
    {.name = "inf and nan", .bytes = "a,b\nnan,x\n1.5,y\nNaN,x\n2.5,y\n", .kinds = "nc", .rows = 4},
    {.name = "inf among few numbers",
     .bytes = "a,b\n1.5,x\ninf,y\n2.5,x\n",
     .kinds = "nc",
     .rows = 3,
     .words = {"1 cell is too large for a number, the first 'inf' in line 3"}},
    {.name = "numbers of base 16", .bytes = "a,b\n0x1F,1.5\n0x2A,2.5\n0x1F,3.5\n", .kinds = "cn", .rows = 3},
    {.name = "zeros in front",
     .bytes = "a,b\n007,1.5\n012,2.5\n007,3.5\n",
     .kinds = "cn",
     .rows = 3,
     .words = {"codes"}},
    {.name = "beyond 2^53",
     .bytes = "a,b\n9007199254740993,x\n9007199254740995,y\n9007199254740997,x\n",
     .kinds = "ic",
     .rows = 3},
    {.name = "an identifier as the target",
     .make = identifier_target,
     .kinds = "ni",
     .rows = 50,
     .target = "key",
     .words = {"the target 'key' is different in nearly every row", "choose another column"}},
    {.name = "a folder", .make = a_folder, .words = {"is a folder; name a CSV file in it"}},
    {.name = "a file that is not there", .make = a_link_to_nothing, .words = {"u.csv: no such file"}},
    {.name = "a file that nobody may read",
     .make = nobody_may_read,
     .words = {"may not be read; change its permissions"}},
    {.name = "gzip", .make = zipped, .kinds = "nc", .rows = 2},
    {.name = "half of a gzip file",
     .bytes = "\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\xd4",
     .length = 12,
     .words = {"damaged or not whole", "copy it again"}},
    {.name = "spaces around cells",
     .bytes = "a , b\n 1.5 , x \n 2.5, y\n",
     .kinds = "nc",
     .rows = 2,
     .target = "b"},
    {.name = "missing in many ways",
     .bytes = "a,b\n1.5,x\nNA,?\nn/a,null\nNone,-\n,NaN\n2.5,y\n",
     .kinds = "nc",
     .rows = 6},
    {.name = "a flag that is there or not",
     .bytes = "a,flag\n1.5,yes\n2.5,\n3.5,yes\n",
     .kinds = "nc",
     .rows = 3},
    {.name = "said: a delimiter that is not there",
     .bytes = "a,b\n1,2\n3,4\n",
     .said = "delimiter ;",
     .kinds = "n",
     .rows = 2},
    {.name = "said: no header", .bytes = "a,b\nc,d\ne,f\n", .said = "header no", .kinds = "cc", .rows = 3},
};

static void check_words(const ugly *u, const char *text) {
  for (int i = 0; i < 3 && u->words[i]; i++) {
    if (!strstr(text, u->words[i])) fail_msg("%s: '%s' is not in: %s", u->name, u->words[i], text);
  }
}

static void check_columns(const ugly *u, const shoal_profile *profile) {
  if (profile->rows != u->rows) fail_msg("%s: %llu rows", u->name, (unsigned long long)profile->rows);
  if (!u->kinds) return;
  char kinds[64] = "";
  for (uint32_t i = 0; i < profile->columns_count && i < 63; i++)
    kinds[i] = letter_of(profile->columns[i].kind);
  if (strcmp(kinds, u->kinds) != 0) fail_msg("%s: %s, not %s", u->name, kinds, u->kinds);
  if (!u->words[0] || u->target) return;
  char warnings[4096] = "";
  size_t used = 0;
  for (uint32_t i = 0; i < profile->columns_count && used < sizeof warnings; i++)
    used += (size_t)snprintf(warnings + used, sizeof warnings - used, "%s ", profile->columns[i].warning);
  check_words(u, warnings);
}

/* Rows of the same file, with the target where there is one. */
static void check_rows(const ugly *u, const shoal_profile *profile) {
  shoal_error err;
  uint32_t target = UINT32_MAX;
  shoal_rows *rows = NULL;
  shoal_status status = SHOAL_OK;
  if (u->target) status = shoal_profile_find(profile, u->target, &target, &err);
  shoal_rows_options options = {.path = "u.csv", .profile = profile, .target = target};
  if (status == SHOAL_OK) status = shoal_rows_open(&rows, &options, &err);
  bool refused = u->target && u->words[0];
  if (status == SHOAL_OK && refused) fail_msg("%s: was taken", u->name);
  if (status != SHOAL_OK && !refused) fail_msg("%s: %s", u->name, err.text);
  if (refused) check_words(u, err.text);
  if (status == SHOAL_OK && shoal_rows_count(rows) != u->rows) fail_msg("%s: other rows", u->name);
  shoal_rows_close(rows);
}

static void check_ugly(const ugly *u) {
  if (remove("u.csv") != 0) assert_int_equal(access("u.csv", F_OK), -1);
  if (u->make)
    u->make();
  else
    put("u.csv", u->bytes, u->length ? u->length : strlen(u->bytes));
  if (u->make == nobody_may_read && access("u.csv", R_OK) == 0) return; /* root may */
  shoal_profile_options options = {.path = "u.csv"};
  shoal_profile profile;
  shoal_error err;
  if (u->said) assert_int_equal(shoal_dialect_say(&options.dialect, "said", u->said, &err), SHOAL_OK);
  shoal_status status = shoal_profile_read(&profile, &options, &err);
  if (status != SHOAL_OK && u->rows > 0) fail_msg("%s: %s", u->name, err.text);
  if (status == SHOAL_OK && u->rows == 0) fail_msg("%s: was taken", u->name);
  if (status != SHOAL_OK) {
    check_words(u, err.text);
    if (!strstr(err.text, "u.csv")) fail_msg("%s: no file in: %s", u->name, err.text);
    return;
  }
  check_columns(u, &profile);
  check_rows(u, &profile);
  shoal_profile_release(&profile);
}

static void ugly_files_are_read_or_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_ugly(&cases[i]);
  print_message("%zu files\n", sizeof cases / sizeof *cases);
}

int main(void) {
  const struct CMUnitTest tests[] = {IN_FOLDER(ugly_files_are_read_or_refused)};
  return RUN_TESTS(tests);
}
