/* csv.h: comma-separated values, one row at a time.
 *
 * RFC 4180, and what programs write besides: cells may be quoted, a quote inside is
 * doubled, lines end in LF or CRLF, a byte order mark is skipped, blank lines are skipped,
 * spaces around a cell are not part of it. The delimiter (comma, semicolon or tab) is the
 * one that gives the first rows equally many cells, and most of them.
 *
 * Ownership: init, then release; the bytes must outlive the reader, the name as well.
 * Cells are valid until the next row. Threads: none. */
#ifndef SHOAL_DATA_CSV_H
#define SHOAL_DATA_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

typedef struct shoal_csv_cell {
  const char *text; /* length bytes, no zero */
  size_t length;
  uint64_t line, column; /* where it begins, from 1; the column counts bytes */
} shoal_csv_cell;

typedef struct shoal_csv {
  const char *name;
  const char *start, *at, *end;
  const char *line_start;
  uint64_t line;
  char delimiter;
  uint32_t cells_count, cells_capacity;
  shoal_csv_cell *cells; /* of the last row */
  shoal_text unquoted;   /* the text of its cells that held doubled quotes */
} shoal_csv;

/* `name` is the file, for errors. Fails on UTF-16 only; release also after a failure. */
shoal_status shoal_csv_init(shoal_csv *csv, const char *name, const char *bytes, size_t length,
                            shoal_error *err);
void shoal_csv_release(shoal_csv *csv);

/* Back to the first row. */
void shoal_csv_rewind(shoal_csv *csv);

/* The next row: cells and cells_count. *more is false, and there is no row, at the end. */
shoal_status shoal_csv_next(shoal_csv *csv, bool *more, shoal_error *err);

#endif
