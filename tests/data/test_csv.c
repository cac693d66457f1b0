#include "files.h"

#include "data/csv.h"
#include "data/limits.h"

/* Rows as text: cells in brackets, rows on lines, or "! " and the error. */
static char *shown(const char *bytes, size_t length) {
  shoal_text text;
  shoal_text_init(&text);
  shoal_csv csv;
  shoal_error err;
  bool more = true;
  shoal_dialect dialect;
  shoal_dialect_guess(&dialect, NULL, "t.csv", bytes, length,
                      NULL); /* what it refuses, the reader reads all the same */
  shoal_status status = shoal_csv_init(&csv, "t.csv", &dialect, bytes, length, &err);
  while (status == SHOAL_OK) {
    status = shoal_csv_next(&csv, &more, &err);
    if (!more) break;
    for (uint32_t i = 0; i < csv.cells_count; i++)
      shoal_text_addf(&text, "[%.*s]", (int)csv.cells[i].length, csv.cells[i].text);
    shoal_text_add(&text, "\n", 1);
  }
  if (status != SHOAL_OK) shoal_text_addf(&text, "! %s", err.text);
  shoal_csv_release(&csv);
  shoal_text_add(&text, "", 0);
  return text.bytes;
}

static void rows_are_read(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"", ""},
      {"\n\n", ""},
      {"a,b\n1,2\n", "[a][b]\n[1][2]\n"},
      {"a,b\n1,2", "[a][b]\n[1][2]\n"},
      {"a,b\r\n1,2\r\n", "[a][b]\n[1][2]\n"},
      {"\xef\xbb\xbf"
       "a,b\n",
       "[a][b]\n"},
      {"a,,\n,,\n", "[a][][]\n[][][]\n"},
      {"a, b , c d\n", "[a][b][c d]\n"},
      {"a,b\n\n  \n1,2\n\n", "[a][b]\n[1][2]\n"},
      {"\"a,b\",c\n", "[a,b][c]\n"},
      {"\"a \"\"quoted\"\" word\",\"\"\n", "[a \"quoted\" word][]\n"},
      {"\"\"\"\"\n", "[\"]\n"},
      {"\"two\nlines\",x\n1,2\n", "[two\nlines][x]\n[1][2]\n"},
      {"x, \"y\" ,z\n", "[x][y][z]\n"},
      {"it\"s,5'6\"\n", "[it\"s][5'6\"]\n"},
      {"a;b;c\n1,5;2;3\n", "[a][b][c]\n[1,5][2][3]\n"},
      {"a\tb\n1\t\n", "[a][b]\n[1][]\n"},
      {"a\tb c\n\t2\n", "[a][b c]\n[][2]\n"},
      {"a,b;c,d\n1,2;3,4\n", "[a][b;c][d]\n[1][2;3][4]\n"},
      {"a;b\n1;2;3\n", "[a][b]\n[1][2][3]\n"}, /* ragged, but no comma anywhere */
      {"one\ntwo\n", "[one]\n[two]\n"},
      {"\"\"\"x\"\"\",\"y\"\"\"\n\"\"\"z\"\"\",\"\"\n", "[\"x\"][y\"]\n[\"z\"][]\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char *got = shown(cases[i][0], strlen(cases[i][0]));
    assert_string_equal(got, cases[i][1]);
    free(got);
  }
}

static void malformed_rows_are_refused_with_line_and_column(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t length;
    const char *why;
  } cases[] = {
      {"a,b\n1,\"2\n3\n", 0, "t.csv:2:3: the quote that opens here is never closed"},
      {"a,b\n1,\"2\"x\n", 0, "t.csv:2:6: text after a closing quote"},
      {"a,b\n1,\"2\n\"\"3\" 4\n", 0, "t.csv:3:6: text after a closing quote"},
      {"a,b\n1,\0\n", 9, "t.csv:2:3: a zero byte"},
      {"a,b\n1,\"\0\"\n", 10, "t.csv:2:4: a zero byte"},
      {"\xff\xfe"
       "a\0,\0b\0",
       8, "is UTF-16"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    size_t length = cases[i].length ? cases[i].length : strlen(cases[i].bytes);
    char *got = shown(cases[i].bytes, length);
    if (!strstr(got, cases[i].why)) fail_msg("'%s' is not in: %s", cases[i].why, got);
    free(got);
  }
}

static void limits_hold(void **state) {
  (void)state;
  size_t length = SHOAL_CSV_CELL_BYTES_MAX + 16;
  char *bytes = malloc(length);
  assert_non_null(bytes);
  memset(bytes, 'x', length);
  char *got = shown(bytes, length);
  assert_non_null(strstr(got, "t.csv:1:1: a cell of more than a megabyte"));
  free(got);
  bytes[0] = '"';
  got = shown(bytes, length);
  assert_non_null(strstr(got, "t.csv:1:1: a cell of more than a megabyte"));
  free(got);
  memset(bytes, ',', length);
  got = shown(bytes, SHOAL_CSV_COLUMNS_MAX);
  assert_non_null(strstr(got, "more than 16384 cells"));
  free(got);
  got = shown(bytes, SHOAL_CSV_COLUMNS_MAX - 1);
  assert_null(strstr(got, "!"));
  free(got);
  free(bytes);
}

static void cells_know_where_they_begin(void **state) {
  (void)state;
  const char text[] = "a, b\n\"x\ny\",2\n";
  shoal_csv csv;
  shoal_error err;
  bool more;
  const shoal_dialect dialect = {.delimiter = ','};
  assert_int_equal(shoal_csv_init(&csv, "t", &dialect, text, strlen(text), &err), SHOAL_OK);
  assert_int_equal(shoal_csv_next(&csv, &more, &err), SHOAL_OK);
  assert_int_equal(csv.cells[1].line, 1);
  assert_int_equal(csv.cells[1].column, 4);
  assert_int_equal(shoal_csv_next(&csv, &more, &err), SHOAL_OK);
  assert_int_equal(csv.cells[0].line, 2);
  assert_int_equal(csv.cells[1].line, 3);
  assert_int_equal(csv.cells[1].column, 4);
  shoal_csv_rewind(&csv);
  assert_int_equal(shoal_csv_next(&csv, &more, &err), SHOAL_OK);
  assert_int_equal(csv.cells[0].text[0], 'a');
  shoal_csv_release(&csv);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_read),
      cmocka_unit_test(malformed_rows_are_refused_with_line_and_column),
      cmocka_unit_test(limits_hold),
      cmocka_unit_test(cells_know_where_they_begin),
  };
  return RUN_TESTS(tests);
}
