/* fuzz_csv.c: any bytes as CSV, first row by row, then written out again, quoted, and read
 * once more: the cells must be the same. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "data/csv.h"
#include "data/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* Adds a row with every cell in quotes. */
static void write_row(shoal_text *out, const shoal_csv *csv, char delimiter) {
  for (uint32_t i = 0; i < csv->cells_count; i++) {
    if (i > 0) shoal_text_add(out, &delimiter, 1);
    shoal_text_add(out, "\"", 1);
    for (size_t k = 0; k < csv->cells[i].length; k++) {
      const char *c = csv->cells[i].text + k;
      shoal_text_add(out, c, 1);
      if (*c == '"') shoal_text_add(out, c, 1);
    }
    shoal_text_add(out, "\"", 1);
  }
  shoal_text_add(out, "\n", 1);
}

/* Reads all rows, and gives them written out; *clean is false where one was refused. */
static shoal_text rewrite(const char *bytes, size_t length, char delimiter, bool *clean) {
  shoal_text out;
  shoal_text_init(&out);
  shoal_csv csv;
  shoal_error err = {0};
  shoal_dialect dialect;
  const shoal_dialect_said said = {.delimiter = delimiter};
  shoal_dialect_guess(&dialect, &said, "fuzz", bytes, length, NULL);
  if (delimiter) dialect = (shoal_dialect){.delimiter = delimiter, .decimal = '.'};
  shoal_status status = shoal_csv_init(&csv, "fuzz", &dialect, bytes, length, &err);
  uint64_t line = 1;
  for (bool more = true; status == SHOAL_OK;) {
    status = shoal_csv_next(&csv, &more, &err);
    if (!more) break;
    SHOAL_ASSERT(csv.cells_count > 0 && csv.cells_count <= SHOAL_CSV_COLUMNS_MAX);
    for (uint32_t i = 0; i < csv.cells_count; i++) {
      SHOAL_ASSERT(csv.cells[i].length <= SHOAL_CSV_CELL_BYTES_MAX && csv.cells[i].line >= line);
      line = csv.cells[i].line;
    }
    write_row(&out, &csv, delimiter ? delimiter : csv.delimiter);
  }
  if (status != SHOAL_OK) SHOAL_ASSERT(strstr(err.text, "fuzz") || status == SHOAL_NO_MEMORY);
  *clean = status == SHOAL_OK && !out.failed;
  shoal_csv_release(&csv);
  return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  bool clean, clean_again;
  shoal_text first = rewrite((const char *)bytes, length, 0, &clean);
  shoal_text fixed = rewrite((const char *)bytes, length, ',', &clean);
  if (clean && fixed.length > 0) {
    shoal_text again = rewrite(fixed.bytes, fixed.length, ',', &clean_again);
    SHOAL_ASSERT(clean_again && again.length == fixed.length);
    SHOAL_ASSERT(memcmp(again.bytes, fixed.bytes, fixed.length) == 0);
    shoal_text_release(&again);
  }
  shoal_text_release(&first);
  shoal_text_release(&fixed);
  return 0;
}
