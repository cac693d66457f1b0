/* csv.h: comma-separated values, one row at a time.
 *
 * RFC 4180, and what programs write besides: cells may be quoted, a quote inside is doubled, lines end in
 * LF, CRLF or (where the first one does) CR, a byte order mark is skipped, blank lines are skipped, and so
 * is a first line "sep=;", spaces around a cell are not part of it. How else a file is written,
 * data/dialect says; what it has in Latin-1 comes out as UTF-8.
 *
 * Ownership: init, then release; the bytes must outlive the reader, the name as well. Cells are valid
 * until the next row. Threads: none. */
#ifndef SHOAL_DATA_CSV_H
#define SHOAL_DATA_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "data/dialect.h"

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
  char delimiter, comment;
  shoal_encoding encoding;
  bool lone_cr;     /* lines end in CR */
  bool repairs;     /* bytes that are not UTF-8 are taken for Windows-1252; else cells keep them */
  bool forgets;     /* the bytes are a mapped file: what was read need not stay in memory */
  const char *kept; /* where forgets: bytes before it are not in memory any more */
  bool stops[256];  /* characters that may end a plain cell */
  uint32_t cells_count, cells_capacity;
  shoal_csv_cell *cells; /* of the last row */
  shoal_text changed;    /* the text of those of its cells that do not stand in the file like that */
} shoal_csv;

/* `name` is the file, for errors. Fails on UTF-16 only, which data/csv_file converts; release also after a
 * failure. */
shoal_status shoal_csv_init(shoal_csv *csv, const char *name, const shoal_dialect *dialect, const char *bytes,
                            size_t length, shoal_error *err);
void shoal_csv_release(shoal_csv *csv);

/* Back to the first row. */
void shoal_csv_rewind(shoal_csv *csv);

/* The next row: cells and cells_count. *more is false, and there is no row, at the end. */
shoal_status shoal_csv_next(shoal_csv *csv, bool *more, shoal_error *err);

#endif
