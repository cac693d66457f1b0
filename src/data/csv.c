/* csv.c: rows and cells of a CSV file, found in place.
 *
 * A cell points into the file; only one with doubled quotes inside, or in another encoding, has to be put
 * together elsewhere. */
#include "data/csv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/limits.h"

static const size_t FORGET_BYTES = (size_t)64 << 20;

static shoal_status fail_at(const shoal_csv *csv, const char *at, shoal_status status, shoal_error *err,
                            const char *what) {
  return shoal_fail(err, status, "%s:%" PRIu64 ":%td: %s", csv->name, csv->line, at - csv->line_start + 1,
                    what);
}

static shoal_status fail_zero(const shoal_csv *csv, const char *at, shoal_error *err) {
  return fail_at(csv, at, SHOAL_CORRUPT, err,
                 "a zero byte; is this a text file? If it is, remove them: tr -d '\\000' < FILE > CLEAN");
}

static shoal_status fail_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

/* A cell ends at the delimiter and at the end of a line. */
static bool is_line_end(const shoal_csv *csv) {
  return csv->at == csv->end || *csv->at == '\n' ||
         (*csv->at == '\r' && (csv->lone_cr || (csv->end - csv->at > 1 && csv->at[1] == '\n')));
}

static bool is_blank(const shoal_csv *csv, char c) {
  return (c == ' ' || c == '\t' || c == '\r') && c != csv->delimiter;
}

static void skip_blanks(shoal_csv *csv) {
  while (!is_line_end(csv) && is_blank(csv, *csv->at)) csv->at++;
}

static void skip_line_end(shoal_csv *csv) {
  if (csv->at == csv->end) return;
  bool two = *csv->at == '\r' && csv->end - csv->at > 1 && csv->at[1] == '\n';
  csv->at += two ? 2 : 1;
  csv->line++;
  csv->line_start = csv->at;
}

/* ---- cells -------------------------------------------------------------------------- */

/* Adds a piece of a cell that is put together elsewhere. */
static void add_piece(shoal_csv *csv, const char *piece, size_t length) {
  if (csv->encoding == SHOAL_LATIN1 || csv->repairs)
    shoal_encoding_decode(csv->encoding, piece, length, &csv->changed);
  else
    shoal_text_add(&csv->changed, piece, length);
}

/* The cell's text: that of the file, or from `changed_start` on what was put together. As that may still
 * move, the cell keeps no pointer until the row is whole. */
static void set_text(shoal_csv *csv, shoal_csv_cell *cell, const char *piece, size_t length,
                     bool beyond_ascii, size_t changed_start) {
  bool foreign = beyond_ascii && (csv->encoding == SHOAL_LATIN1 || csv->repairs);
  if (csv->changed.length > changed_start || foreign) {
    add_piece(csv, piece, length);
    cell->text = NULL;
    cell->length = csv->changed.length - changed_start;
  } else {
    cell->text = piece;
    cell->length = length;
  }
}

/* A quoted cell, at its opening quote. */
static shoal_status quoted_cell(shoal_csv *csv, shoal_csv_cell *cell, shoal_error *err) {
  const char *opening = csv->at++;
  uint64_t opening_line = csv->line;
  const char *opening_line_start = csv->line_start, *piece = csv->at;
  size_t changed_start = csv->changed.length;
  unsigned char bits = 0;
  for (;;) {
    bool endless = csv->at == csv->end;
    if (endless || csv->at - opening > SHOAL_CSV_CELL_BYTES_MAX) {
      csv->line = opening_line;
      csv->line_start = opening_line_start;
      return endless
                 ? fail_at(
                       csv, opening, SHOAL_CORRUPT, err,
                       "the quote that opens here is never closed; remove it, or double it where it is part "
                       "of a quoted cell")
                 : fail_at(csv, opening, SHOAL_LIMIT, err,
                           "a cell of more than a megabyte; is a quote missing?");
    }
    char c = *csv->at++;
    bits |= (unsigned char)c;
    if (c == 0) return fail_zero(csv, csv->at - 1, err);
    if (c == '\n' || (c == '\r' && csv->lone_cr && (csv->at == csv->end || *csv->at != '\n'))) {
      csv->line++;
      csv->line_start = csv->at;
    }
    if (c != '"') continue;
    if (csv->at == csv->end || *csv->at != '"') break;
    add_piece(csv, piece, (size_t)(csv->at - piece)); /* with one of the two quotes */
    piece = ++csv->at;
  }
  set_text(csv, cell, piece, (size_t)(csv->at - 1 - piece), bits >= 0x80, changed_start);
  skip_blanks(csv);
  if (!is_line_end(csv) && *csv->at != csv->delimiter)
    return fail_at(csv, csv->at, SHOAL_CORRUPT, err,
                   "text after a closing quote; a quote inside a quoted cell must be doubled");
  return SHOAL_OK;
}

static shoal_status plain_cell(shoal_csv *csv, shoal_csv_cell *cell, shoal_error *err) {
  const char *start = csv->at, *at = start;
  unsigned char bits = 0;
  for (;; at++) {
    while (at < csv->end && !csv->stops[(unsigned char)*at]) bits |= (unsigned char)*at++;
    csv->at = at;
    if (is_line_end(csv) || *at == csv->delimiter) break;
    if (*at == 0) return fail_zero(csv, at, err);
  }
  if (at - start > SHOAL_CSV_CELL_BYTES_MAX)
    return fail_at(csv, start, SHOAL_LIMIT, err,
                   "a cell of more than a megabyte; shorten it, or leave its column out");
  while (at > start && is_blank(csv, at[-1])) at--;
  set_text(csv, cell, start, (size_t)(at - start), bits >= 0x80, csv->changed.length);
  return SHOAL_OK;
}

/* ---- rows --------------------------------------------------------------------------- */

/* Room for one more cell. */
static shoal_status reserve_cell(shoal_csv *csv, shoal_error *err) {
  if (csv->cells_count < csv->cells_capacity) return SHOAL_OK;
  if (csv->cells_count >= SHOAL_CSV_COLUMNS_MAX)
    return shoal_fail(err, SHOAL_LIMIT, "%s:%" PRIu64 ": more than %d cells in a row", csv->name, csv->line,
                      SHOAL_CSV_COLUMNS_MAX);
  uint32_t capacity = csv->cells_capacity ? csv->cells_capacity * 2 : 64;
  shoal_csv_cell *cells = realloc(csv->cells, capacity * sizeof *cells);
  if (!cells) return fail_memory(err);
  csv->cells = cells;
  csv->cells_capacity = capacity;
  return SHOAL_OK;
}

/* Gives the pages behind the reader back; they can be read from the file again. */
static void forget(shoal_csv *csv) {
  if (!csv->forgets || (size_t)(csv->at - csv->kept) < FORGET_BYTES) return;
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t from = ((uintptr_t)csv->kept + page - 1) / page * page, to = (uintptr_t)csv->at / page * page;
  if (to > from) madvise((void *)from, to - from, MADV_DONTNEED);
  csv->kept = csv->at;
}

/* To the next line that is neither blank nor a comment; false at the end. */
static bool find_row(shoal_csv *csv) {
  for (;; skip_line_end(csv)) {
    skip_blanks(csv);
    if (csv->at == csv->end) return false;
    if (csv->comment && *csv->at == csv->comment) {
      while (!is_line_end(csv)) csv->at++;
      continue;
    }
    if (!is_line_end(csv)) return true;
  }
}

static shoal_status read_cells(shoal_csv *csv, shoal_error *err) {
  for (;;) {
    shoal_status status = reserve_cell(csv, err);
    if (status != SHOAL_OK) return status;
    skip_blanks(csv);
    shoal_csv_cell *cell = &csv->cells[csv->cells_count++];
    *cell = (shoal_csv_cell){.line = csv->line, .column = (uint64_t)(csv->at - csv->line_start) + 1};
    bool quoted = csv->at < csv->end && *csv->at == '"';
    status = quoted ? quoted_cell(csv, cell, err) : plain_cell(csv, cell, err);
    if (status != SHOAL_OK) return status;
    if (is_line_end(csv)) return SHOAL_OK;
    csv->at++; /* the delimiter */
  }
}

shoal_status shoal_csv_next(shoal_csv *csv, bool *more, shoal_error *err) {
  csv->cells_count = 0;
  shoal_text_clear(&csv->changed);
  forget(csv);
  *more = false;
  if (!find_row(csv)) return SHOAL_OK;
  shoal_status status = read_cells(csv, err);
  if (status != SHOAL_OK) return status;
  skip_line_end(csv);
  if (csv->changed.failed) return fail_memory(err);
  size_t offset = 0;
  for (uint32_t i = 0; i < csv->cells_count; i++) {
    if (csv->cells[i].text) continue;
    csv->cells[i].text = csv->changed.bytes + offset;
    offset += csv->cells[i].length;
  }
  *more = true;
  return SHOAL_OK;
}

void shoal_csv_rewind(shoal_csv *csv) {
  csv->at = csv->line_start = csv->kept = csv->start;
  csv->line = 1;
  csv->cells_count = 0;
  /* Excel writes the delimiter above the table. */
  if (csv->end - csv->start >= 5 && memcmp(csv->start, "sep=", 4) == 0 && csv->start[4] == csv->delimiter) {
    while (!is_line_end(csv)) csv->at++;
    skip_line_end(csv);
  }
}

/* Whether the first line ends in a CR alone. */
static bool ends_in_cr(const char *at, const char *end) {
  while (at < end && *at != '\n' && *at != '\r') at++;
  return at < end && *at == '\r' && (end - at < 2 || at[1] != '\n');
}

shoal_status shoal_csv_init(shoal_csv *csv, const char *name, const shoal_dialect *dialect, const char *bytes,
                            size_t length, shoal_error *err) {
  *csv = (shoal_csv){.name = name,
                     .start = bytes,
                     .end = bytes + length,
                     .delimiter = dialect->delimiter,
                     .comment = dialect->comment,
                     .encoding = dialect->encoding};
  shoal_text_init(&csv->changed);
  if (length >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
    csv->start += 3;
  else if (length >= 2 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0))
    return shoal_fail(err, SHOAL_UNSUPPORTED, "%s: is UTF-16; save it as UTF-8", name);
  csv->lone_cr = ends_in_cr(csv->start, csv->end);
  const char stops[] = {csv->delimiter, '\n', '\r', 0};
  for (size_t i = 0; i < sizeof stops; i++) csv->stops[(unsigned char)stops[i]] = true;
  shoal_csv_rewind(csv);
  return SHOAL_OK;
}

void shoal_csv_release(shoal_csv *csv) {
  free(csv->cells);
  shoal_text_release(&csv->changed);
  *csv = (shoal_csv){0};
}
