#include "files.h"

#include <math.h>

#include "data/csv_file.h"
#include "data/date.h"
#include "data/dialect.h"

static shoal_dialect guess(const char *bytes, size_t length) {
  shoal_dialect dialect;
  shoal_error err;
  if (shoal_dialect_guess(&dialect, NULL, "t.csv", bytes, length, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return dialect;
}

static void delimiter_decimal_and_header_are_found(void **state) {
  (void)state;
  static const struct {
    const char *text;
    char delimiter, decimal;
    bool header;
  } cases[] = {
      {"a,b\n1,2\n3,4\n", ',', '.', true},
      {"1.5,2\n3,4\n", ',', '.', false},
      {"a;b;c\n1,5;2;3\n2,25;4;5\n", ';', ',', true},
      {"1,5;2,5;3,5\n1,5;2,5;3,5\n", ';', ',', false},
      {"a\tb\n1.5\tx y, z\n2.5\tu, v\n", '\t', '.', true},
      {"a|b|c\n1|2|x;y\n", '|', '.', true},
      {"a;b\n1.234,50;x\n17,20;y\n", ';', ',', true},
      {"a\tb\n1,234\tx\n2,345.5\ty\n", '\t', '.', true},
      {"name,price\n\"Smith, John\",\"1,50\"\n\"Doe, Jane\",\"2,75\"\n", ',', ',', true},
      {"red,big\nblue,small\nred,small\n", ',', '.', false}, /* the first row's words come again */
      {"colour,size\nred,big\nblue,small\n", ',', '.', true},
      {"2020-01-01,3\n2020-01-02,4\n", ',', '.', false},
      {"12 kg,red\n14 kg,blue\n", ',', '.', false},
      {"weight,colour\n12 kg,red\n14 kg,blue\n", ',', '.', true},
      {"x\n1\n2\n", ',', '.', true},
      {"land,2000,2001,2002,2003\nchad,1.5,2,3,4\nmali,5,6,7,8\n", ',', '.', true},
      {"x,y\n#ff0000,red;dark\n#00ff00,green;light\n", ',', '.', true},
      {"sep=;\na;b\n1;2\n", ';', '.', true},
      {"a,b\r1,2\r3,4\r", ',', '.', true},
      {"\"a;b\",c\n\"1;2\",3\n", ',', '.', true}, /* inside quotes there are no delimiters */
      {"note\nmilk, eggs\nbread, butter, jam\nsalt\n", ';', '.', true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    shoal_dialect d = guess(cases[i].text, strlen(cases[i].text));
    if (d.delimiter != cases[i].delimiter || d.decimal != cases[i].decimal || d.header != cases[i].header)
      fail_msg("case %zu: '%c' '%c' %d", i, d.delimiter, d.decimal, d.header);
  }
}

static void comments_above_the_table_are_no_rows(void **state) {
  (void)state;
  const char text[] = "# made on Monday\n# by hand\na,b\n1,2\n3,4\n";
  shoal_dialect d = guess(text, strlen(text));
  assert_int_equal(d.comment, '#');
  assert_true(d.header);
  const char header[] = "#id,b\n1,2\n3,4\n";
  d = guess(header, strlen(header));
  assert_int_equal(d.comment, 0);
  assert_true(d.header);
}

static void encodings_are_found(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t length;
    shoal_encoding encoding;
  } cases[] = {
      {"a,b\n1,2\n", 8, SHOAL_UTF8},
      {"\xef\xbb\xbf"
       "a,b\n",
       7, SHOAL_UTF8},
      {"caf\xc3\xa9,b\n", 8, SHOAL_UTF8},
      {"caf\xe9,b\n", 7, SHOAL_LATIN1},
      {"\xff\xfe"
       "a\0,\0b\0\n\0"
       "1\0,\0"
       "2\0\n\0",
       18, SHOAL_UTF16_LE},
      {"\xfe\xff\0a\0,\0b\0\n\0"
       "1\0,\0"
       "2\0\n",
       18, SHOAL_UTF16_BE},
      {"a\0,\0b\0\n\0"
       "1\0,\0"
       "2\0\n\0",
       16, SHOAL_UTF16_LE},
      {"\0a\0,\0b\0\n\0"
       "1\0,\0"
       "2\0\n",
       16, SHOAL_UTF16_BE},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    shoal_dialect d = guess(cases[i].bytes, cases[i].length);
    if (d.encoding != cases[i].encoding) fail_msg("case %zu: %d", i, d.encoding);
    assert_int_equal(d.delimiter, ',');
  }
}

static void what_is_no_table_is_refused(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"", "nothing in this file"},
      {" \n\n", "nothing in this file"},
      {"PK\x03\x04xxxx", "save the sheet as CSV"},
      {"\x89PNG\r\n\x1a\n", "an image"},
      {"<!DOCTYPE html><html>", "web page"},
      {"{\"a\": 1}", "JSON"},
      {"[{\"a\": 1}]", "JSON"},
      {"\x01\x02\x03\x04\x05", "no text file"},
      {"%PDF-1.4", "PDF"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    shoal_dialect d;
    shoal_error err;
    assert_int_not_equal(shoal_dialect_guess(&d, NULL, "t.csv", cases[i][0], strlen(cases[i][0]), &err),
                         SHOAL_OK);
    CHECK_SAYS(&err, "t.csv: ", cases[i][1]);
  }
}

static void a_person_has_the_last_word(void **state) {
  (void)state;
  shoal_dialect_said said;
  shoal_error err;
  assert_int_equal(
      shoal_dialect_say(&said, "--dialect", "delimiter ; decimal , encoding latin-1 header no", &err),
      SHOAL_OK);
  shoal_dialect d;
  assert_int_equal(shoal_dialect_guess(&d, &said, "t.csv", "a,b\n1,2\n", 8, &err), SHOAL_OK);
  assert_int_equal(d.delimiter, ';');
  assert_int_equal(d.decimal, ',');
  assert_int_equal(d.encoding, SHOAL_LATIN1);
  assert_false(d.header);
  assert_int_equal(shoal_dialect_say(&said, "--dialect", " delimiter tab ", &err), SHOAL_OK);
  assert_int_equal(said.delimiter, '\t');
  assert_int_equal(shoal_dialect_say(&said, "--dialect", "", &err), SHOAL_OK);
  static const char *const bad[][2] = {{"delimiter x", "comma, semicolon, tab or pipe, not 'x'"},
                                       {"delimiter", "not ''"},
                                       {"headers no", "'headers' is none of"},
                                       {"header maybe", "yes or no"},
                                       {"encoding ebcdic", "utf-8"},
                                       {"decimal ;", "point or comma"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(shoal_dialect_say(&said, "--dialect", bad[i][0], &err), SHOAL_INVALID);
    CHECK_SAYS(&err, "--dialect: ", bad[i][1]);
  }
}

static void a_dialect_comes_back_from_json(void **state) {
  (void)state;
  shoal_dialect d = {SHOAL_UTF16_BE, '\t', ',', '#', true}, again;
  shoal_text text;
  shoal_json json;
  shoal_error err;
  shoal_json_begin(&json, &text);
  shoal_dialect_write(&d, &json, NULL);
  cJSON *parsed = cJSON_Parse(text.bytes);
  assert_int_equal(shoal_dialect_read(&again, parsed, &err), SHOAL_OK);
  assert_memory_equal(&again, &d, sizeof d);
  cJSON_ReplaceItemInObject(parsed, "delimiter", cJSON_CreateString("xx"));
  assert_int_equal(shoal_dialect_read(&again, parsed, &err), SHOAL_CORRUPT);
  cJSON_Delete(parsed);
  shoal_text_release(&text);
}

static void numbers_are_read(void **state) {
  (void)state;
  static const struct {
    const char *text;
    char decimal;
    bool strict, loose;
    double value;
  } cases[] = {
      {"1", '.', true, true, 1},
      {"-1.5e3", '.', true, true, -1500},
      {"+.5", '.', true, true, 0.5},
      {"5.", '.', true, true, 5},
      {"1,234,567.25", '.', true, true, 1234567.25},
      {"1 234 567", '.', true, true, 1234567},
      {"1'234", '.', true, true, 1234},
      {"1\xc2\xa0"
       "234",
       '.', true, true, 1234},
      {"1.234,5", ',', true, true, 1234.5},
      {"0,1", ',', true, true, 0.1},
      {"1,5", '.', false, false, 0},
      {"1.5", ',', false, false, 0},
      {"12,34,567", '.', false, false, 0},
      {"1,2345", '.', false, false, 0},
      {"0.1", '.', true, true, 0.1},
      {"123456789012345678901234567890", '.', true, true, 123456789012345678901234567890.0},
      {"9007199254740993", '.', true, true, 9007199254740992.0},
      {"2.2250738585072014e-308", '.', true, true, 2.2250738585072014e-308},
      {"1e999", '.', false, false, 0},
      {"12 kg", '.', false, true, 12},
      {"12kg", '.', false, true, 12},
      {"$1,200", '.', false, true, 1200},
      {"-$5", '.', false, true, -5},
      {"\xe2\x82\xac 3", '.', false, true, 3},
      {"1.234,5 \xe2\x82\xac", ',', false, true, 1234.5},
      {"45%", '.', false, true, 45},
      {"0x1F", '.', false, false, 0},
      {"inf", '.', false, false, 0},
      {"nan", '.', false, false, 0},
      {"", '.', false, false, 0},
      {"-", '.', false, false, 0},
      {"e5", '.', false, false, 0},
      {"1e", '.', false, true, 1}, /* a unit called e */
      {"12 Main Street", '.', false, false, 0},
      {"A12", '.', false, false, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    shoal_dialect d = {.decimal = cases[i].decimal};
    double strict = 0, loose = 0;
    size_t length = strlen(cases[i].text);
    if (shoal_dialect_number(&d, cases[i].text, length, false, &strict) != cases[i].strict ||
        shoal_dialect_number(&d, cases[i].text, length, true, &loose) != cases[i].loose)
      fail_msg("'%s'", cases[i].text);
    if ((cases[i].strict && strict != cases[i].value) || (cases[i].loose && loose != cases[i].value))
      fail_msg("'%s' is %.17g, %.17g", cases[i].text, strict, loose);
  }
}

/* The quick way must give the double that the C library gives. */
static void numbers_have_the_librarys_bits(void **state) {
  (void)state;
  const shoal_dialect d = {.decimal = '.'};
  uint64_t x = 88172645463325252u;
  for (int i = 0; i < 200000; i++) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    char text[64];
    snprintf(text, sizeof text, "%s%llu.%0*llue%d", x & 1 ? "-" : "", (unsigned long long)(x >> 1) % 1000000,
             (int)((x >> 21) % 12) + 1, (unsigned long long)(x >> 33) % 10, (int)((x >> 55) % 40) - 20);
    double ours;
    assert_true(shoal_dialect_number(&d, text, strlen(text), false, &ours));
    if (ours != strtod(text, NULL)) fail_msg("%s: %.17g", text, ours);
  }
}

static void missing_cells_are_known(void **state) {
  (void)state;
  static const char *const yes[] = {"", "?", "NA", "na", "N/A", "n/a", "NaN", "nan", "NULL", "None", "-"};
  static const char *const no[] = {"0", "no", "--", "nah", "none.", "N", "unknown"};
  for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
    assert_true(shoal_cell_is_missing(yes[i], strlen(yes[i])));
  for (size_t i = 0; i < sizeof no / sizeof *no; i++)
    assert_false(shoal_cell_is_missing(no[i], strlen(no[i])));
}

static void dates_are_read(void **state) {
  (void)state;
  static const struct {
    const char *text;
    bool day_first;
    double seconds; /* NaN: not a date */
  } cases[] = {
      {"1970-01-01", false, 0},
      {"2020-02-29", false, 1582934400},
      {"2021-02-29", false, NAN},
      {"1969-12-31", false, -86400},
      {"1600-03-01", false, -11670912000.0},
      {"2020-01-31T14:05:59Z", false, 1580479559},
      {"2020-01-31 14:05", false, 1580479500},
      {"2020-01-31T14:05:59.5+01:00", false, 1580475959.5},
      {"2020/1/31", false, 1580428800},
      {"31.1.2020", false, 1580428800},
      {"31/1/2020", true, 1580428800},
      {"31/1/2020", false, NAN},
      {"1/31/2020", false, 1580428800},
      {"1/31/20 2:05 PM", false, 1580479500},
      {"31 Jan 2020", false, 1580428800},
      {"31-Jan-20", false, 1580428800},
      {"January 31, 2020", false, 1580428800},
      {"2020-01", false, 1577836800},
      {"00:01", false, 60},
      {"23:59:59", false, 86399},
      {"25:00", false, NAN},
      {"2020", false, NAN},
      {"12.5", false, NAN},
      {"1.2.3", false, NAN},
      {"Mayor", false, NAN},
      {"2020-13-01", false, NAN},
      {"2020-01-01x", false, NAN},
      {"12-34-56", false, NAN},
      {"9999-12-31", false, 253402214400.0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    double seconds;
    bool good = shoal_date_read(cases[i].text, strlen(cases[i].text), cases[i].day_first, &seconds);
    if (good == (cases[i].seconds != cases[i].seconds)) fail_msg("'%s'", cases[i].text);
    if (good && seconds != cases[i].seconds) fail_msg("'%s' is %.17g", cases[i].text, seconds);
  }
}

/* All cells of a file, as text. */
static char *cells_of(const char *path, const shoal_dialect_said *said) {
  shoal_csv_file file;
  shoal_dialect dialect;
  shoal_csv csv;
  shoal_error err;
  bool more = true;
  if (shoal_csv_file_open(&file, path, NULL, &err) != SHOAL_OK ||
      shoal_csv_file_guess(&file, said, &dialect, &err) != SHOAL_OK ||
      shoal_csv_file_read(&file, &dialect, &csv, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
  shoal_text text;
  shoal_text_init(&text);
  for (;;) {
    if (shoal_csv_next(&csv, &more, &err) != SHOAL_OK) fail_msg("%s", err.text);
    if (!more) break;
    for (uint32_t i = 0; i < csv.cells_count; i++)
      shoal_text_addf(&text, "[%.*s]", (int)csv.cells[i].length, csv.cells[i].text);
    shoal_text_addf(&text, "\n");
  }
  shoal_csv_release(&csv);
  shoal_csv_file_close(&file);
  return text.bytes;
}

static void files_come_out_in_utf8(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t length;
    const char *cells;
  } cases[] = {
      {"caf\xe9;b\n\"\x93x\"\"y\x94\";\x80\n", 0,
       "[caf\xc3\xa9][b]\n[\xe2\x80\x9cx\"y\xe2\x80\x9d][\xe2\x82\xac]\n"},
      {"\xff\xfe"
       "a\0,\0\xac\x20\n\0"
       "\x3d\xd8\x00\xde,\0"
       "2\0",
       18, "[a][\xe2\x82\xac]\n[\xf0\x9f\x98\x80][2]\n"},
      {"\xfe\xff\0a\0,\0\xe9\0\n\0"
       "1\0,\0"
       "2",
       16, "[a][\xc3\xa9]\n[1][2]\n"},
      {"caf\xc3\xa9,b\r1,2\r\"x\ry\",4", 0, "[caf\xc3\xa9][b]\n[1][2]\n[x\ry][4]\n"},
      {"# x\na,b\n1,2\n# y\n3,4\n", 0, "[a][b]\n[1][2]\n[3][4]\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    size_t length = cases[i].length ? cases[i].length : strlen(cases[i].bytes);
    put("t.csv", cases[i].bytes, length);
    char *got = cells_of("t.csv", NULL);
    assert_string_equal(got, cases[i].cells);
    free(got);
    put_gzip("t.csv.gz", cases[i].bytes, length);
    got = cells_of("t.csv.gz", NULL);
    assert_string_equal(got, cases[i].cells);
    free(got);
  }
}

static void a_pipe_is_read_once(void **state) {
  (void)state;
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(write(ends[1], "a,b\n1,2\n", 8), 8);
  close(ends[1]);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
  char *got = cells_of(path, NULL);
  assert_string_equal(got, "[a][b]\n[1][2]\n");
  free(got);
  close(ends[0]);
}

/* A stray byte far down in a file of UTF-8 is a letter of Windows-1252, not the end. */
static void one_wrong_byte_is_repaired(void **state) {
  (void)state;
  FILE *file = fopen("t.csv", "w");
  fprintf(file, "a,b\n");
  for (int i = 0; i < 300000; i++) fprintf(file, "x%d,\xc3\xa9\n", i);
  fprintf(file, "caf\xe9,\xc3\xa9\n");
  fclose(file);
  char *got = cells_of("t.csv", NULL);
  assert_non_null(strstr(got, "[caf\xc3\xa9][\xc3\xa9]\n"));
  free(got);
}

/* Longer than a piece of the conversion, with characters of two units everywhere. */
static void long_utf16_is_not_cut(void **state) {
  (void)state;
  enum { ROWS = 200000 };
  FILE *file = fopen("t.csv", "w");
  fwrite("\xff\xfe"
         "x\0\n\0",
         1, 6, file);
  for (int i = 0; i < ROWS; i++)
    fwrite("\x3d\xd8\x00\xde\x3d\xd8\x00\xde"
           "a\0\n\0",
           1, i % 7 ? 12 : 8, file);
  fclose(file);
  char *got = cells_of("t.csv", NULL);
  assert_null(strstr(got, "\xef\xbf\xbd"));
  free(got);
}

static void what_cannot_be_opened_says_why(void **state) {
  (void)state;
  shoal_csv_file file;
  shoal_error err;
  assert_int_equal(shoal_csv_file_open(&file, "no.csv", NULL, &err), SHOAL_NOT_FOUND);
  CHECK_SAYS(&err, "no.csv: no such file");
  assert_int_not_equal(shoal_csv_file_open(&file, ".", NULL, &err), SHOAL_OK);
  CHECK_SAYS(&err, "is a folder; name a CSV file in it");
  put("cut.csv.gz", "\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b", 11);
  assert_int_not_equal(shoal_csv_file_open(&file, "cut.csv.gz", NULL, &err), SHOAL_OK);
  CHECK_SAYS(&err, "damaged or not whole");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(delimiter_decimal_and_header_are_found),
      cmocka_unit_test(comments_above_the_table_are_no_rows),
      cmocka_unit_test(encodings_are_found),
      cmocka_unit_test(what_is_no_table_is_refused),
      cmocka_unit_test(a_person_has_the_last_word),
      cmocka_unit_test(a_dialect_comes_back_from_json),
      cmocka_unit_test(numbers_are_read),
      cmocka_unit_test(numbers_have_the_librarys_bits),
      cmocka_unit_test(missing_cells_are_known),
      cmocka_unit_test(dates_are_read),
      IN_FOLDER(files_come_out_in_utf8),
      cmocka_unit_test(a_pipe_is_read_once),
      IN_FOLDER(one_wrong_byte_is_repaired),
      IN_FOLDER(long_utf16_is_not_cut),
      IN_FOLDER(what_cannot_be_opened_says_why),
  };
  return RUN_TESTS(tests);
}
