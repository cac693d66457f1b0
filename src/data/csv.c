/* csv.c: rows and cells of a CSV file, found in place.
 *
 * A cell points into the file; only one with doubled quotes inside has to be put together elsewhere. */
#include "data/csv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/limits.h"

/* The rows that choose the delimiter. */
enum { PREVIEW_ROWS = 20 };

static shoal_status fail_at(const shoal_csv *csv, const char *at, shoal_status status, shoal_error *err,
                            const char *what) {
  return shoal_fail(err, status, "%s:%" PRIu64 ":%td: %s", csv->name, csv->line, at - csv->line_start + 1,
                    what);
}

static shoal_status fail_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

/* A cell ends at the delimiter and at the end of a line, LF or CRLF. */
static bool is_line_end(const shoal_csv *csv) {
  return csv->at == csv->end || *csv->at == '\n' ||
         (*csv->at == '\r' && csv->end - csv->at > 1 && csv->at[1] == '\n');
}

static bool is_blank(const shoal_csv *csv, char c) {
  return (c == ' ' || c == '\t' || c == '\r') && c != csv->delimiter;
}

static void skip_blanks(shoal_csv *csv) {
  while (!is_line_end(csv) && is_blank(csv, *csv->at)) csv->at++;
}

static void skip_line_end(shoal_csv *csv) {
  if (csv->at == csv->end) return;
  csv->at += *csv->at == '\r' ? 2 : 1;
  csv->line++;
  csv->line_start = csv->at;
}

/* A quoted cell, at its opening quote. One with doubled quotes inside is put together in
 * csv->unquoted; as that may still move, the cell keeps an offset and no pointer. */
static shoal_status quoted_cell(shoal_csv *csv, shoal_csv_cell *cell, shoal_error *err) {
  const char *opening = csv->at++;
  uint64_t opening_line = csv->line;
  const char *opening_line_start = csv->line_start, *piece = csv->at;
  size_t unquoted_start = csv->unquoted.length;
  for (;;) {
    if (csv->at == csv->end) {
      csv->line = opening_line;
      csv->line_start = opening_line_start;
      return fail_at(csv, opening, SHOAL_CORRUPT, err, "the quote that opens here is never closed");
    }
    if (csv->at - opening > SHOAL_CSV_CELL_BYTES_MAX) {
      csv->line = opening_line;
      csv->line_start = opening_line_start;
      return fail_at(csv, opening, SHOAL_LIMIT, err, "a cell of more than a megabyte; is a quote missing?");
    }
    char c = *csv->at++;
    if (c == 0) return fail_at(csv, csv->at - 1, SHOAL_CORRUPT, err, "a zero byte; is this a text file?");
    if (c == '\n') {
      csv->line++;
      csv->line_start = csv->at;
    }
    if (c != '"') continue;
    if (csv->at == csv->end || *csv->at != '"') break;
    shoal_text_add(&csv->unquoted, piece, (size_t)(csv->at - piece)); /* with one of the two quotes */
    piece = ++csv->at;
  }
  size_t length = (size_t)(csv->at - 1 - piece);
  if (csv->unquoted.length > unquoted_start) {
    shoal_text_add(&csv->unquoted, piece, length);
    cell->text = NULL;
    cell->length = csv->unquoted.length - unquoted_start;
  } else {
    cell->text = piece;
    cell->length = length;
  }
  skip_blanks(csv);
  if (!is_line_end(csv) && *csv->at != csv->delimiter)
    return fail_at(csv, csv->at, SHOAL_CORRUPT, err,
                   "text after a closing quote; a quote inside a quoted cell must be doubled");
  return SHOAL_OK;
}

static shoal_status plain_cell(shoal_csv *csv, shoal_csv_cell *cell, shoal_error *err) {
  const char *start = csv->at;
  for (; !is_line_end(csv) && *csv->at != csv->delimiter; csv->at++) {
    if (*csv->at == 0) return fail_at(csv, csv->at, SHOAL_CORRUPT, err, "a zero byte; is this a text file?");
    if (csv->at - start >= SHOAL_CSV_CELL_BYTES_MAX)
      return fail_at(csv, start, SHOAL_LIMIT, err, "a cell of more than a megabyte");
  }
  const char *end = csv->at;
  while (end > start && is_blank(csv, end[-1])) end--;
  cell->text = start;
  cell->length = (size_t)(end - start);
  return SHOAL_OK;
}

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

shoal_status shoal_csv_next(shoal_csv *csv, bool *more, shoal_error *err) {
  csv->cells_count = 0;
  shoal_text_clear(&csv->unquoted);
  *more = false;
  for (;; skip_line_end(csv)) {
    skip_blanks(csv);
    if (csv->at == csv->end) return SHOAL_OK;
    if (!is_line_end(csv)) break;
  }
  for (;;) {
    shoal_status status = reserve_cell(csv, err);
    if (status != SHOAL_OK) return status;
    skip_blanks(csv);
    shoal_csv_cell *cell = &csv->cells[csv->cells_count++];
    *cell = (shoal_csv_cell){.line = csv->line, .column = (uint64_t)(csv->at - csv->line_start) + 1};
    bool quoted = csv->at < csv->end && *csv->at == '"';
    status = quoted ? quoted_cell(csv, cell, err) : plain_cell(csv, cell, err);
    if (status != SHOAL_OK) return status;
    if (is_line_end(csv)) break;
    csv->at++; /* the delimiter */
  }
  skip_line_end(csv);
  if (csv->unquoted.failed) return fail_memory(err);
  size_t offset = 0;
  for (uint32_t i = 0; i < csv->cells_count; i++) {
    if (csv->cells[i].text) continue;
    csv->cells[i].text = csv->unquoted.bytes + offset;
    offset += csv->cells[i].length;
  }
  *more = true;
  return SHOAL_OK;
}

void shoal_csv_rewind(shoal_csv *csv) {
  csv->at = csv->line_start = csv->start;
  csv->line = 1;
  csv->cells_count = 0;
}

/* How good a delimiter is: the cells of the first row, and far more when all the first
 * rows have as many. */
static uint32_t score(shoal_csv *csv, char delimiter) {
  csv->delimiter = delimiter;
  shoal_csv_rewind(csv);
  uint32_t cells = 0;
  for (int row = 0; row < PREVIEW_ROWS; row++) {
    bool more;
    if (shoal_csv_next(csv, &more, NULL) != SHOAL_OK) return cells;
    if (!more) break;
    if (row > 0 && csv->cells_count != cells) return cells;
    cells = csv->cells_count;
  }
  return cells > 1 ? cells + SHOAL_CSV_COLUMNS_MAX : cells;
}

shoal_status shoal_csv_init(shoal_csv *csv, const char *name, const char *bytes, size_t length,
                            shoal_error *err) {
  *csv = (shoal_csv){.name = name, .start = bytes, .end = bytes + length};
  shoal_text_init(&csv->unquoted);
  if (length >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
    csv->start += 3;
  else if (length >= 2 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0))
    return shoal_fail(err, SHOAL_UNSUPPORTED, "%s: is UTF-16; save it as UTF-8", name);
  char best = ',';
  uint32_t best_score = 1;
  for (const char *candidate = ",;\t"; *candidate; candidate++) {
    uint32_t candidate_score = score(csv, *candidate);
    if (candidate_score > best_score) {
      best = *candidate;
      best_score = candidate_score;
    }
  }
  csv->delimiter = best;
  shoal_csv_rewind(csv);
  return SHOAL_OK;
}

void shoal_csv_release(shoal_csv *csv) {
  free(csv->cells);
  shoal_text_release(&csv->unquoted);
  *csv = (shoal_csv){0};
}
