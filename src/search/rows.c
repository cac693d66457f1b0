/* rows.c: see rows.h.
 *
 * A record, in the machine's own byte order, as the file never leaves it:
 *
 *   0   8  the line of the file where the row begins
 *   8   8  of each NUMBER and DATE column: a double; of each TEXT column: 64 times the place of its first
 *          hash in the file of hashes, plus their number less one, or all ones where it is missing
 *   ..  4  of each CATEGORY column: a number
 *
 * filled up to a multiple of 8. Columns that are not used have no place, unless they are the target, or
 * numbers and dates, by which rows can be ordered. */
#include "search/rows.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "data/csv_file.h"
#include "search/distinct.h"

enum {
  SINK_BYTES = 1 << 20,
  WORDS_MAX = 40, /* of a text, before the trigrams */
  RAGGED_ONE_IN = 10,
  NEWS_EVERY_ROWS = 8192,
};
#define NOWHERE UINT32_MAX
#define NO_TEXT UINT64_MAX

/* Bytes that come one after the other: into a file, or where fd is -1 into memory. */
typedef struct sink {
  int fd;
  uint8_t *bytes;
  size_t used, capacity;
  uint64_t total; /* bytes, with those that are in the file */
  void *mapped;
} sink;

struct shoal_rows {
  const shoal_profile *profile;
  uint32_t target;
  bool has_target;
  bool needs_target; /* a cell of it that is no number is an error */
  bool knows_target; /* and so is a class that the profile has not */
  bool is_own, by_place;
  uint64_t count, ragged, ragged_line;
  uint32_t record_bytes;
  uint32_t *places;    /* of each column in a record; NOWHERE */
  uint64_t *bad_cells; /* of each column */
  uint8_t *record;     /* the one that is being made */
  sink records, texts;
  shoal_names loose; /* the target's categories in lower case, without spaces and a dot at the end */
  uint64_t loose_cells;
  char warning[512];
};

static shoal_status fail_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

/* ---- sinks -------------------------------------------------------------------------- */

static bool sink_grow(sink *s, size_t more) {
  if (s->capacity - s->used >= more) return true;
  size_t capacity = s->capacity ? s->capacity * 2 : 4096;
  while (capacity - s->used < more) capacity *= 2;
  uint8_t *bytes = realloc(s->bytes, capacity);
  if (!bytes) return false;
  s->bytes = bytes;
  s->capacity = capacity;
  return true;
}

static shoal_status sink_flush(sink *s, shoal_error *err) {
  for (size_t done = 0; done < s->used;) {
    ssize_t written = write(s->fd, s->bytes + done, s->used - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      return shoal_fail(err, SHOAL_IO, "a temporary file of the rows: %s; TMPDIR says where such files go",
                        strerror(errno));
    done += (size_t)written;
  }
  s->used = 0;
  return SHOAL_OK;
}

static shoal_status sink_add(sink *s, const void *bytes, size_t length, shoal_error *err) {
  if (s->fd >= 0 && s->used + length > SINK_BYTES) {
    shoal_status status = sink_flush(s, err);
    if (status != SHOAL_OK) return status;
  }
  if (!sink_grow(s, length)) return fail_memory(err);
  if (length > 0) memcpy(s->bytes + s->used, bytes, length);
  s->used += length;
  s->total += length;
  return SHOAL_OK;
}

/* From here on the bytes can be read, at sink_bytes. */
static shoal_status sink_finish(sink *s, shoal_error *err) {
  if (s->fd < 0 || s->total == 0) return SHOAL_OK;
  shoal_status status = sink_flush(s, err);
  if (status != SHOAL_OK) return status;
  void *mapped = mmap(NULL, s->total, PROT_READ, MAP_SHARED, s->fd, 0);
  if (mapped == MAP_FAILED) return shoal_fail(err, SHOAL_NO_MEMORY, "the rows' file: %s", strerror(errno));
  s->mapped = mapped;
  free(s->bytes);
  s->bytes = NULL;
  return SHOAL_OK;
}

static const uint8_t *sink_bytes(const sink *s) { return s->mapped ? s->mapped : s->bytes; }

static void sink_release(sink *s) {
  if (s->mapped) munmap(s->mapped, s->total);
  if (s->fd >= 0) close(s->fd);
  free(s->bytes);
}

/* ---- records ------------------------------------------------------------------------ */

static bool has_place(const shoal_rows *rows, uint32_t c) {
  const shoal_column *column = &rows->profile->columns[c];
  bool kept = column->used || (c == rows->target && rows->has_target);
  return column->kind == SHOAL_NUMBER || column->kind == SHOAL_DATE ||
         (kept && (column->kind == SHOAL_CATEGORY || column->kind == SHOAL_TEXT));
}

static void lay_out(shoal_rows *rows) {
  uint32_t at = 8, count = rows->profile->columns_count;
  for (uint32_t c = 0; c < count; c++) {
    rows->places[c] = NOWHERE;
    if (!has_place(rows, c) || rows->profile->columns[c].kind == SHOAL_CATEGORY) continue;
    rows->places[c] = at;
    at += 8;
  }
  for (uint32_t c = 0; c < count; c++) {
    if (!has_place(rows, c) || rows->profile->columns[c].kind != SHOAL_CATEGORY) continue;
    rows->places[c] = at;
    at += 4;
  }
  rows->record_bytes = (at + 7) / 8 * 8;
}

static shoal_status create(shoal_rows **out, const shoal_profile *profile, uint32_t target, bool has_target,
                           shoal_error *err) {
  shoal_rows *rows = calloc(1, sizeof *rows);
  *out = rows;
  if (!rows) return fail_memory(err);
  rows->profile = profile;
  rows->target = target;
  rows->has_target = has_target;
  rows->records.fd = rows->texts.fd = -1;
  rows->places = calloc(profile->columns_count, sizeof *rows->places);
  rows->bad_cells = calloc(profile->columns_count, sizeof *rows->bad_cells);
  if (!rows->places || !rows->bad_cells) return fail_memory(err);
  lay_out(rows);
  rows->record = calloc(1, rows->record_bytes);
  return rows->record ? SHOAL_OK : fail_memory(err);
}

void shoal_rows_close(shoal_rows *rows) {
  if (!rows) return;
  sink_release(&rows->records);
  sink_release(&rows->texts);
  shoal_names_release(&rows->loose);
  free(rows->places);
  free(rows->bad_cells);
  free(rows->record);
  free(rows);
}

/* ---- texts -------------------------------------------------------------------------- */

typedef struct hashes {
  uint32_t at[SHOAL_TEXT_HASHES];
  uint32_t count;
} hashes;

static void add_hash(hashes *h, char kind, const char *text, size_t length) {
  uint64_t hash = shoal_hash_text(text, length) ^ (uint64_t)(unsigned char)kind * 0x9e3779b97f4a7c15u;
  uint32_t folded = (uint32_t)(hash ^ hash >> 32);
  for (uint32_t i = 0; i < h->count; i++) {
    if (h->at[i] == folded) return;
  }
  if (h->count < SHOAL_TEXT_HASHES) h->at[h->count++] = folded;
}

/* A word in lower case between two spaces; its length with them, 0 at the end. What is beyond ASCII is
 * letters. */
static size_t next_word(const char **at, const char *end, char out[64]) {
  size_t length = 0;
  out[length++] = ' ';
  while (*at < end && !isalnum((unsigned char)**at) && (unsigned char)**at < 0x80) (*at)++;
  for (; *at < end && (isalnum((unsigned char)**at) || (unsigned char)**at >= 0x80); (*at)++) {
    if (length < 62) out[length++] = (char)tolower((unsigned char)**at);
  }
  out[length++] = ' ';
  return length > 2 ? length : 0;
}

/* Words first, as many as may be, then threes of their letters. */
static void hash_text(hashes *h, const char *text, size_t length) {
  const char *end = text + length;
  char word[64];
  size_t bytes;
  h->count = 0;
  for (const char *at = text; h->count < WORDS_MAX && (bytes = next_word(&at, end, word)) > 0;)
    add_hash(h, 'w', word + 1, bytes - 2);
  for (const char *at = text; h->count < SHOAL_TEXT_HASHES && (bytes = next_word(&at, end, word)) > 0;) {
    for (size_t i = 0; i + 3 <= bytes; i++) add_hash(h, 't', word + i, 3);
  }
}

/* ---- cells -------------------------------------------------------------------------- */

/* A row's cells by column of the profile; text NULL: missing. */
typedef struct span {
  const char *text;
  size_t length;
} span;

typedef struct cell_maker {
  shoal_rows *rows;
  const shoal_dialect *dialect;
  const shoal_dialect *otherwise; /* a second way to read numbers, or NULL */
  span *cells;
} cell_maker;

static shoal_status put_text(shoal_rows *rows, span cell, uint8_t *place, shoal_error *err) {
  uint64_t value = NO_TEXT;
  hashes h = {.count = 0};
  if (!shoal_cell_is_missing(cell.text, cell.length)) hash_text(&h, cell.text, cell.length);
  if (h.count > 0) value = rows->texts.total / sizeof *h.at * SHOAL_TEXT_HASHES + h.count - 1;
  memcpy(place, &value, sizeof value);
  return sink_add(&rows->texts, h.at, h.count * sizeof *h.at, err);
}

/* Lower case, no spaces, no dot at the end: as much as files differ in the names of their classes. */
static size_t loosely(span cell, char *out, size_t size) {
  size_t length = 0;
  for (size_t i = 0; i < cell.length && length < size; i++) {
    if (cell.text[i] != ' ') out[length++] = (char)tolower((unsigned char)cell.text[i]);
  }
  while (length > 0 && out[length - 1] == '.') length--;
  return length;
}

/* Two categories that are alike so far cannot be told apart, and none is found then. */
static shoal_status find_loose_names(shoal_rows *rows, shoal_error *err) {
  const shoal_names *names = &rows->profile->columns[rows->target].categories;
  for (uint32_t i = 0; i < names->count; i++) {
    const char *name = shoal_names_at(names, i);
    char loose[256];
    size_t length = loosely((span){name, strlen(name)}, loose, sizeof loose);
    if (shoal_names_find(&rows->loose, loose, length) != SHOAL_NO_NAME) length = 0;
    char unique[32];
    int unique_length = snprintf(unique, sizeof unique, "\n%u", i);
    if (shoal_names_add(&rows->loose, length ? loose : unique, length ? length : (size_t)unique_length) != i)
      return fail_memory(err);
  }
  return SHOAL_OK;
}

static uint32_t find_loosely(shoal_rows *rows, span cell) {
  if (rows->loose.count == 0) return SHOAL_NO_NAME;
  char loose[256];
  uint32_t found = shoal_names_find(&rows->loose, loose, loosely(cell, loose, sizeof loose));
  if (found == SHOAL_NO_NAME || rows->loose_cells++ > 0) return found;
  const shoal_column *column = &rows->profile->columns[rows->target];
  char shown[64];
  shoal_text_plain(shown, sizeof shown, cell.text, cell.length);
  snprintf(rows->warning, sizeof rows->warning, "column '%.60s': '%s' is taken for '%.60s'", column->name,
           shown, shoal_names_at(&column->categories, found));
  return found;
}

static shoal_status put_category(shoal_rows *rows, uint32_t c, span cell, uint8_t *place, shoal_error *err) {
  const shoal_column *column = &rows->profile->columns[c];
  uint32_t value = SHOAL_MISSING;
  if (!shoal_cell_is_missing(cell.text, cell.length)) {
    value = shoal_names_find(&column->categories, cell.text, cell.length);
    if (value == SHOAL_NO_NAME && c == rows->target) value = find_loosely(rows, cell);
    if (value == SHOAL_NO_NAME) value = SHOAL_UNSEEN;
  }
  memcpy(place, &value, sizeof value);
  if (value != SHOAL_UNSEEN || c != rows->target || !rows->knows_target) return SHOAL_OK;
  return shoal_fail(
      err, SHOAL_INVALID,
      "which is no class of the training data (those are '%.40s'%s); mend the cell, or leave the row out",
      column->categories.count ? shoal_names_at(&column->categories, 0) : "",
      column->categories.count > 1 ? " and others" : "");
}

static shoal_status put_number(const cell_maker *maker, uint32_t c, span cell, uint8_t *place,
                               shoal_error *err) {
  shoal_rows *rows = maker->rows;
  const shoal_column *column = &rows->profile->columns[c];
  double value;
  bool good =
      shoal_column_value(column, maker->dialect, cell.text, cell.length, &value) ||
      (maker->otherwise && shoal_column_value(column, maker->otherwise, cell.text, cell.length, &value));
  memcpy(place, &value, sizeof value);
  if (good) return SHOAL_OK;
  rows->bad_cells[c]++;
  if (c != rows->target || !rows->needs_target || column->kind != column->guessed) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID, "which is not a %s; mend the cell, or empty it to leave the row out",
                    shoal_column_kind_name(column->kind));
}

/* Makes a record of maker->cells. The error has no place in the file; *at is the column. */
static shoal_status put_row(const cell_maker *maker, uint64_t line, uint32_t *at, shoal_error *err) {
  shoal_rows *rows = maker->rows;
  memcpy(rows->record, &line, sizeof line);
  for (uint32_t c = 0; c < rows->profile->columns_count; c++) {
    if (rows->places[c] == NOWHERE) continue;
    uint8_t *place = rows->record + rows->places[c];
    span cell = maker->cells[c].text ? maker->cells[c] : (span){"", 0};
    shoal_column_kind kind = rows->profile->columns[c].kind;
    shoal_status status = kind == SHOAL_TEXT       ? put_text(rows, cell, place, err)
                          : kind == SHOAL_CATEGORY ? put_category(rows, c, cell, place, err)
                                                   : put_number(maker, c, cell, place, err);
    *at = c;
    if (status != SHOAL_OK) return status;
  }
  rows->count++;
  return sink_add(&rows->records, rows->record, rows->record_bytes, err);
}

/* ---- from a file -------------------------------------------------------------------- */

typedef struct opening {
  const shoal_rows_options *options;
  shoal_csv_file file;
  shoal_dialect dialect;
  shoal_csv csv;
  bool same_file;
  shoal_names names;
  uint32_t *columns; /* of each column of the file that of the profile, or NOWHERE */
  uint64_t ragged, ragged_line;
  uint32_t ragged_cells;
  span *cells;
} opening;

static void opening_release(opening *o) {
  shoal_names_release(&o->names);
  free(o->columns);
  free(o->cells);
  shoal_csv_release(&o->csv);
  shoal_csv_file_close(&o->file);
}

/* Whether a row has the names of all columns that are wanted. */
static shoal_status has_names(const opening *o, bool *out, shoal_error *err) {
  const shoal_profile *profile = o->options->profile;
  shoal_names names;
  shoal_names_init(&names);
  shoal_status status = shoal_column_names(&o->csv, true, &names, err);
  *out = status == SHOAL_OK;
  for (uint32_t c = 0; c < profile->columns_count && *out; c++) {
    const char *name = profile->columns[c].name;
    if (profile->columns[c].used) *out = shoal_names_find(&names, name, strlen(name)) != SHOAL_NO_NAME;
  }
  shoal_names_release(&names);
  return status;
}

/* How the file is written. Another file than the profile's is looked at anew, with the profile in mind. */
static shoal_status find_dialect(opening *o, shoal_error *err) {
  const shoal_rows_options *options = o->options;
  const shoal_profile *profile = options->profile;
  o->same_file = strcmp(o->file.sha256, profile->sha256) == 0;
  o->dialect = profile->dialect;
  if (o->same_file) return shoal_csv_file_read(&o->file, &o->dialect, &o->csv, err);
  shoal_status status = shoal_csv_file_guess(&o->file, &options->dialect, &o->dialect, err);
  if (status != SHOAL_OK) return status;
  if (!options->dialect.decimal && o->dialect.delimiter == profile->dialect.delimiter)
    o->dialect.decimal = profile->dialect.decimal;
  status = shoal_csv_file_read(&o->file, &o->dialect, &o->csv, err);
  bool more = false, named = false;
  if (status == SHOAL_OK) status = shoal_csv_next(&o->csv, &more, err);
  if (status == SHOAL_OK && more) status = has_names(o, &named, err);
  if (status == SHOAL_OK && named && profile->dialect.header && options->dialect.header == SHOAL_NOT_SAID)
    o->dialect.header = true;
  shoal_csv_rewind(&o->csv);
  return status;
}

static shoal_status match_places(opening *o, bool *has_target, shoal_error *err) {
  const shoal_profile *profile = o->options->profile;
  uint32_t count = o->names.count, target = o->options->target;
  bool without = count + 1 == profile->columns_count && target != UINT32_MAX && o->options->unlabeled;
  if (count != profile->columns_count && !without)
    return shoal_fail(
        err, SHOAL_INVALID,
        "%s: %u columns, where the training data have %u, and no names to find them by; give it a first "
        "row with names, or the same columns",
        o->file.path, count, profile->columns_count);
  for (uint32_t i = 0; i < count; i++) o->columns[i] = without && i >= target ? i + 1 : i;
  *has_target = target != UINT32_MAX && !without;
  return SHOAL_OK;
}

static shoal_status fail_no_column(const char *file, const shoal_names *has, const char *name, bool is_target,
                                   shoal_error *err) {
  if (is_target)
    return shoal_fail(err, SHOAL_INVALID, "%s: the target column '%.60s' is missing", file, name);
  const char **names = calloc(has->count + 1, sizeof *names);
  for (uint32_t i = 0; names && i < has->count; i++) names[i] = shoal_names_at(has, i);
  const char *nearest = names ? shoal_nearest(name, strlen(name), names, has->count) : NULL;
  shoal_fail(err, SHOAL_INVALID, "%s: the column '%.60s' of the training data is missing%s%.60s%s", file,
             name, nearest ? "; is it the one called '" : "", nearest ? nearest : "", nearest ? "'?" : "");
  free(names);
  return SHOAL_INVALID;
}

shoal_status shoal_rows_check_names(const shoal_profile *profile, uint32_t target, bool unlabeled,
                                    const char *file, const shoal_names *names, shoal_error *err) {
  for (uint32_t c = 0; c < profile->columns_count; c++) {
    const char *name = profile->columns[c].name;
    bool is_target = c == target, wanted = is_target ? !unlabeled : profile->columns[c].used;
    if (wanted && shoal_names_find(names, name, strlen(name)) == SHOAL_NO_NAME)
      return fail_no_column(file, names, name, is_target, err);
  }
  return SHOAL_OK;
}

static shoal_status match_names(opening *o, bool *has_target, shoal_error *err) {
  const shoal_profile *profile = o->options->profile;
  uint32_t target = o->options->target;
  *has_target = false;
  for (uint32_t c = 0; c < profile->columns_count; c++) {
    const char *name = profile->columns[c].name;
    uint32_t i = shoal_names_find(&o->names, name, strlen(name));
    if (i == SHOAL_NO_NAME) continue;
    o->columns[i] = c;
    *has_target |= c == target;
  }
  return shoal_rows_check_names(profile, target, o->options->unlabeled, o->file.path, &o->names, err);
}

/* Which column of the file is which of the profile; leaves the reader before the first row of cells. */
static shoal_status match_columns(opening *o, bool *has_target, shoal_error *err) {
  const shoal_profile *profile = o->options->profile;
  bool more;
  shoal_status status = shoal_csv_next(&o->csv, &more, err);
  if (status != SHOAL_OK) return status;
  if (!more) return shoal_fail(err, SHOAL_INVALID, "%s: there are no rows in this file", o->file.path);
  status = shoal_column_names(&o->csv, o->dialect.header, &o->names, err);
  if (status != SHOAL_OK) return status;
  o->columns = malloc(o->names.count * sizeof *o->columns);
  o->cells = calloc(profile->columns_count, sizeof *o->cells);
  if (!o->columns || !o->cells) return fail_memory(err);
  for (uint32_t i = 0; i < o->names.count; i++) o->columns[i] = NOWHERE;
  if (!o->dialect.header) shoal_csv_rewind(&o->csv);
  bool by_name = o->dialect.header && profile->dialect.header;
  return by_name ? match_names(o, has_target, err) : match_places(o, has_target, err);
}

/* What a target can be. */
static shoal_status check_target(const opening *o, shoal_error *err) {
  if (o->options->target == UINT32_MAX || o->options->unlabeled) return SHOAL_OK;
  const shoal_column *column = &o->options->profile->columns[o->options->target];
  static const char *const why[SHOAL_COLUMN_KINDS] = {[SHOAL_TEXT] = "holds free text",
                                                      [SHOAL_IDENTIFIER] = "is different in nearly every row",
                                                      [SHOAL_CONSTANT] =
                                                          "has the same value, or none, in every row"};
  if (!why[column->kind]) return SHOAL_OK;
  bool other_kind = column->kind != SHOAL_CONSTANT;
  return shoal_fail(err, SHOAL_INVALID,
                    "%s: the target '%.60s' %s, so there is nothing to learn; choose another column%s",
                    o->file.path, column->name, why[column->kind],
                    other_kind ? ", or say that it is a category or a number" : "");
}

static shoal_status skip_ragged(opening *o, shoal_error *err) {
  if (o->ragged++ == 0) {
    o->ragged_line = o->csv.cells[0].line;
    o->ragged_cells = o->csv.cells_count;
  }
  if (!o->options->unlabeled) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID,
                    "%s:%" PRIu64 ": %u cells, where the first row has %u; mend the row, since each "
                    "one gets an answer",
                    o->file.path, o->ragged_line, o->csv.cells_count, o->names.count);
}

/* Says where in the file the cell of a column is. */
static void place_error(const opening *o, uint32_t column, shoal_error *err) {
  for (uint32_t i = 0; err && i < o->names.count; i++) {
    if (o->columns[i] != column) continue;
    const shoal_csv_cell *cell = &o->csv.cells[i];
    char shown[64];
    shoal_text_plain(shown, sizeof shown, cell->text, cell->length);
    shoal_error_prefix(err, "%s:%" PRIu64 ":%" PRIu64 ": the target '%.60s' holds '%s', ", o->file.path,
                       cell->line, cell->column, o->options->profile->columns[column].name, shown);
    return;
  }
}

static shoal_status read_file_row(opening *o, const cell_maker *maker, shoal_error *err) {
  if (shoal_row_is_ragged(&o->csv, o->names.count)) return skip_ragged(o, err);
  for (uint32_t i = 0; i < o->names.count; i++) {
    if (o->columns[i] != NOWHERE)
      o->cells[o->columns[i]] = (span){o->csv.cells[i].text, o->csv.cells[i].length};
  }
  uint32_t column;
  shoal_status status = put_row(maker, o->csv.cells[0].line, &column, err);
  if (status == SHOAL_INVALID) place_error(o, column, err);
  return status;
}

static shoal_status read_file_rows(opening *o, shoal_rows *rows, shoal_error *err) {
  const shoal_rows_options *options = o->options;
  const cell_maker maker = {.rows = rows, .dialect = &o->dialect, .cells = o->cells};
  for (uint64_t row = 0;; row++) {
    if (row % NEWS_EVERY_ROWS == 0) {
      if (options->stop && __atomic_load_n(options->stop, __ATOMIC_RELAXED))
        return shoal_fail(err, SHOAL_STOPPED, "%s: stopped", o->file.path);
      if (options->progress)
        options->progress(options->self, (uint64_t)(o->csv.at - o->file.bytes), o->file.length);
    }
    bool more;
    shoal_status status = shoal_csv_next(&o->csv, &more, err);
    if (status != SHOAL_OK || !more) return status;
    status = read_file_row(o, &maker, err);
    if (status != SHOAL_OK) return status;
  }
}

static shoal_status check_rows(const opening *o, const shoal_rows *rows, shoal_error *err) {
  if (rows->count + o->ragged == 0)
    return shoal_fail(err, SHOAL_INVALID, "%s: there are no rows in this file", o->file.path);
  if (o->ragged * RAGGED_ONE_IN <= rows->count + o->ragged) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID,
                    "%s:%" PRIu64 ": %u cells, where the first row has %u; so it is with %" PRIu64
                    " of %" PRIu64 " rows; mend them",
                    o->file.path, o->ragged_line, o->ragged_cells, o->names.count, o->ragged,
                    rows->count + o->ragged);
}

static shoal_status fill(opening *o, shoal_rows **out, shoal_error *err) {
  const shoal_rows_options *options = o->options;
  bool has_target = false;
  shoal_status status = find_dialect(o, err);
  if (status == SHOAL_OK) status = check_target(o, err);
  if (status == SHOAL_OK) status = match_columns(o, &has_target, err);
  if (status == SHOAL_OK) status = create(out, options->profile, options->target, has_target, err);
  if (status != SHOAL_OK) return status;
  shoal_rows *rows = *out;
  rows->needs_target = !options->unlabeled;
  rows->knows_target = !options->unlabeled && !options->other_classes && !o->same_file;
  rows->is_own = o->same_file;
  rows->by_place = o->dialect.header != options->profile->dialect.header;
  if (has_target && !o->same_file) status = find_loose_names(rows, err);
  if (status == SHOAL_OK) status = shoal_unnamed_file(options->folder, &rows->records.fd, err);
  if (status == SHOAL_OK) status = shoal_unnamed_file(options->folder, &rows->texts.fd, err);
  if (status == SHOAL_OK) status = read_file_rows(o, rows, err);
  if (status == SHOAL_OK) status = check_rows(o, rows, err);
  rows->ragged = o->ragged;
  rows->ragged_line = o->ragged_line;
  if (status == SHOAL_OK) status = sink_finish(&rows->records, err);
  if (status == SHOAL_OK) status = sink_finish(&rows->texts, err);
  return status;
}

shoal_status shoal_rows_open(shoal_rows **out, const shoal_rows_options *options, shoal_error *err) {
  *out = NULL;
  SHOAL_ASSERT(options->target == UINT32_MAX || options->target < options->profile->columns_count);
  opening o = {.options = options};
  shoal_names_init(&o.names);
  shoal_status status = shoal_csv_file_open(&o.file, options->path, options->folder, err);
  if (status == SHOAL_OK) status = fill(&o, out, err);
  opening_release(&o);
  if (status == SHOAL_OK) return SHOAL_OK;
  shoal_rows_close(*out);
  *out = NULL;
  return status;
}

/* Without the spaces around it, as a file's reader gives cells. */
static span trimmed(const char *text) {
  if (!text) return (span){0};
  while (isspace((unsigned char)*text)) text++;
  size_t length = strlen(text);
  while (length > 0 && isspace((unsigned char)text[length - 1])) length--;
  return (span){text, length};
}

shoal_status shoal_rows_of_cells(shoal_rows **out, const shoal_profile *profile, uint32_t target,
                                 const char *const *cells, uint64_t count, shoal_error *err) {
  static const shoal_dialect point = {.delimiter = ',', .decimal = '.'};
  shoal_status status = create(out, profile, target, false, err);
  span *spans = calloc(profile->columns_count, sizeof *spans);
  if (status == SHOAL_OK && !spans) status = fail_memory(err);
  const cell_maker maker = {.rows = *out, .dialect = &point, .otherwise = &profile->dialect, .cells = spans};
  for (uint64_t row = 0; row < count && status == SHOAL_OK; row++) {
    for (uint32_t c = 0; c < profile->columns_count; c++) {
      const char *text = cells[row * profile->columns_count + c];
      spans[c] = trimmed(text);
    }
    uint32_t column;
    status = put_row(&maker, row + 1, &column, err);
  }
  free(spans);
  if (status == SHOAL_OK) return SHOAL_OK;
  shoal_rows_close(*out);
  *out = NULL;
  return status;
}

/* ---- reading ------------------------------------------------------------------------ */

static const uint8_t *field(const shoal_rows *rows, uint64_t row, uint32_t column) {
  SHOAL_ASSERT(row < rows->count && column < rows->profile->columns_count);
  if (rows->places[column] == NOWHERE) return NULL;
  return sink_bytes(&rows->records) + row * rows->record_bytes + rows->places[column];
}

uint64_t shoal_rows_count(const shoal_rows *rows) { return rows->count; }

uint64_t shoal_rows_line(const shoal_rows *rows, uint64_t row) {
  SHOAL_ASSERT(row < rows->count);
  uint64_t line;
  memcpy(&line, sink_bytes(&rows->records) + row * rows->record_bytes, sizeof line);
  return line;
}

uint64_t shoal_rows_bad_cells(const shoal_rows *rows, uint32_t column) {
  SHOAL_ASSERT(column < rows->profile->columns_count);
  return rows->bad_cells[column];
}

bool shoal_rows_has_target(const shoal_rows *rows) { return rows->has_target; }

bool shoal_rows_is_own(const shoal_rows *rows) { return rows->is_own; }

bool shoal_rows_by_place(const shoal_rows *rows) { return rows->by_place; }

uint64_t shoal_rows_ragged(const shoal_rows *rows, uint64_t *line) {
  *line = rows->ragged_line;
  return rows->ragged;
}

const char *shoal_rows_warning(const shoal_rows *rows) { return rows->warning; }

double shoal_rows_number(const shoal_rows *rows, uint64_t row, uint32_t column) {
  const uint8_t *place = field(rows, row, column);
  shoal_column_kind kind = rows->profile->columns[column].kind;
  double value = NAN;
  if (place && (kind == SHOAL_NUMBER || kind == SHOAL_DATE)) memcpy(&value, place, sizeof value);
  return value;
}

uint32_t shoal_rows_category(const shoal_rows *rows, uint64_t row, uint32_t column) {
  const uint8_t *place = field(rows, row, column);
  uint32_t value = SHOAL_MISSING;
  if (place && rows->profile->columns[column].kind == SHOAL_CATEGORY) memcpy(&value, place, sizeof value);
  return value;
}

const uint32_t *shoal_rows_text(const shoal_rows *rows, uint64_t row, uint32_t column, uint32_t *count) {
  const uint8_t *place = field(rows, row, column);
  uint64_t value = NO_TEXT;
  if (place && rows->profile->columns[column].kind == SHOAL_TEXT) memcpy(&value, place, sizeof value);
  *count = 0;
  if (value == NO_TEXT) return NULL;
  *count = (uint32_t)(value % SHOAL_TEXT_HASHES) + 1;
  return (const uint32_t *)sink_bytes(&rows->texts) + value / SHOAL_TEXT_HASHES;
}

static uint64_t digest_of(const shoal_rows *rows, uint64_t row, uint32_t column) {
  shoal_column_kind kind = rows->profile->columns[column].kind;
  if (kind == SHOAL_TEXT) {
    uint32_t count;
    const uint32_t *hashes_at = shoal_rows_text(rows, row, column, &count);
    return count ? shoal_hash_text((const char *)hashes_at, count * sizeof *hashes_at) : 1;
  }
  if (kind == SHOAL_CATEGORY) return shoal_rows_category(rows, row, column);
  double value = shoal_rows_number(rows, row, column);
  uint64_t bits = 1;
  if (!isnan(value)) memcpy(&bits, &value, sizeof bits);
  return bits;
}

uint64_t shoal_rows_digest(const shoal_rows *rows, uint64_t row) {
  uint64_t digest = 0;
  for (uint32_t c = 0; c < rows->profile->columns_count; c++) {
    if (!rows->profile->columns[c].used || c == rows->target) continue;
    uint64_t words[2] = {digest, digest_of(rows, row, c)};
    digest = shoal_hash_text((const char *)words, sizeof words);
  }
  return digest;
}
