/* dialect.c: see dialect.h.
 *
 * The delimiter is the one that gives the first rows equally many cells, best without another delimiter
 * inside them; rows are read by data/csv, once for each candidate. Then the cells of those rows tell the
 * decimal sign, and whether the first row names what stands below. */
#include "data/dialect.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "data/csv.h"
#include "data/date.h"
#include "data/limits.h"

/* The rows that the guess looks at. */
enum { PREVIEW_ROWS = 200, YEARS_ENOUGH = 3 };

static const char DELIMITERS[] = ",;\t|";
static const char *const delimiter_names[] = {"comma", "semicolon", "tab", "pipe"};
static const char *const encoding_names[] = {"utf-8", "latin-1", "utf-16le", "utf-16be"};
enum { ENCODINGS = sizeof encoding_names / sizeof *encoding_names };

static shoal_status fail_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

/* ---- what a person says ------------------------------------------------------------- */

typedef struct word {
  const char *text;
  size_t length;
} word;

static word next_word(const char **at) {
  while (**at == ' ' || **at == '\n' || **at == '\t') (*at)++;
  word out = {*at, strcspn(*at, " \n\t")};
  *at += out.length;
  return out;
}

static bool word_is(word w, const char *text) {
  return w.length == strlen(text) && strncasecmp(w.text, text, w.length) == 0;
}

static bool say_delimiter(shoal_dialect_said *out, word value) {
  for (size_t i = 0; DELIMITERS[i]; i++) {
    if ((value.length == 1 && value.text[0] == DELIMITERS[i]) || word_is(value, delimiter_names[i]))
      out->delimiter = DELIMITERS[i];
  }
  if (word_is(value, "\\t")) out->delimiter = '\t';
  return out->delimiter != 0;
}

static bool say_decimal(shoal_dialect_said *out, word value) {
  if (word_is(value, ".") || word_is(value, "point")) out->decimal = '.';
  if (word_is(value, ",") || word_is(value, "comma")) out->decimal = ',';
  return out->decimal != 0;
}

static bool say_encoding(shoal_dialect_said *out, word value) {
  static const struct {
    const char *name;
    shoal_encoding encoding;
  } more[] = {{"utf8", SHOAL_UTF8},           {"latin1", SHOAL_LATIN1},   {"iso-8859-1", SHOAL_LATIN1},
              {"windows-1252", SHOAL_LATIN1}, {"utf-16", SHOAL_UTF16_LE}, {"utf16", SHOAL_UTF16_LE}};
  for (int i = 0; i < ENCODINGS && !out->encoding_said; i++) {
    out->encoding_said = word_is(value, encoding_names[i]);
    out->encoding = (shoal_encoding)i;
  }
  for (size_t i = 0; i < sizeof more / sizeof *more && !out->encoding_said; i++) {
    out->encoding_said = word_is(value, more[i].name);
    out->encoding = more[i].encoding;
  }
  return out->encoding_said;
}

static bool say_header(shoal_dialect_said *out, word value) {
  if (word_is(value, "yes")) out->header = SHOAL_YES;
  if (word_is(value, "no")) out->header = SHOAL_NO;
  return out->header != SHOAL_NOT_SAID;
}

shoal_status shoal_dialect_say(shoal_dialect_said *out, const char *where, const char *words,
                               shoal_error *err) {
  static const struct {
    const char *name;
    bool (*say)(shoal_dialect_said *, word);
    const char *values;
  } parts[] = {{"delimiter", say_delimiter, "comma, semicolon, tab or pipe"},
               {"decimal", say_decimal, "point or comma"},
               {"encoding", say_encoding, "utf-8, latin-1, utf-16le or utf-16be"},
               {"header", say_header, "yes or no"}};
  enum { PARTS = sizeof parts / sizeof *parts };
  *out = (shoal_dialect_said){0};
  for (const char *at = words;;) {
    word name = next_word(&at);
    if (name.length == 0) return SHOAL_OK;
    size_t i = 0;
    while (i < PARTS && !word_is(name, parts[i].name)) i++;
    if (i == PARTS)
      return shoal_fail(err, SHOAL_INVALID, "%s: '%.*s' is none of delimiter, decimal, encoding and header",
                        where, (int)(name.length > 40 ? 40 : name.length), name.text);
    word value = next_word(&at);
    shoal_dialect_said one = {0};
    if (!parts[i].say(&one, value))
      return shoal_fail(err, SHOAL_INVALID, "%s: %s must be %s, not '%.*s'", where, parts[i].name,
                        parts[i].values, (int)(value.length > 40 ? 40 : value.length), value.text);
    parts[i].say(out, value);
  }
}

/* ---- JSON --------------------------------------------------------------------------- */

void shoal_dialect_write(const shoal_dialect *dialect, shoal_json *json, const char *key) {
  shoal_json_open(json, key, '{');
  shoal_json_text(json, "encoding", encoding_names[dialect->encoding]);
  shoal_json_text_n(json, "delimiter", &dialect->delimiter, 1);
  shoal_json_text_n(json, "decimal", &dialect->decimal, 1);
  shoal_json_text_n(json, "comment", &dialect->comment, dialect->comment != 0);
  shoal_json_bool(json, "header", dialect->header);
  shoal_json_close(json, '}');
}

/* One character of `choices`. */
static bool read_character(char *out, const cJSON *json, const char *key, const char *choices) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
  if (!cJSON_IsString(item) || strlen(item->valuestring) != 1 || !strchr(choices, item->valuestring[0]))
    return false;
  *out = item->valuestring[0];
  return true;
}

shoal_status shoal_dialect_read(shoal_dialect *out, const cJSON *json, shoal_error *err) {
  *out = (shoal_dialect){0};
  const cJSON *encoding = cJSON_GetObjectItemCaseSensitive(json, "encoding");
  const cJSON *header = cJSON_GetObjectItemCaseSensitive(json, "header");
  int i = 0;
  while (i < ENCODINGS &&
         !(cJSON_IsString(encoding) && strcmp(encoding->valuestring, encoding_names[i]) == 0))
    i++;
  if (i == ENCODINGS || !cJSON_IsBool(header) ||
      !read_character(&out->delimiter, json, "delimiter", DELIMITERS) ||
      !read_character(&out->decimal, json, "decimal", ".,"))
    return shoal_fail(err, SHOAL_CORRUPT, "'dialect' is missing or wrong");
  read_character(&out->comment, json, "comment", "#");
  out->encoding = (shoal_encoding)i;
  out->header = cJSON_IsTrue(header);
  return SHOAL_OK;
}

/* ---- encodings ---------------------------------------------------------------------- */

static void add_character(shoal_text *out, uint32_t code) {
  char bytes[4];
  size_t length = 1;
  if (code < 0x80) {
    bytes[0] = (char)code;
  } else if (code < 0x800) {
    bytes[0] = (char)(0xc0 | code >> 6);
    length = 2;
  } else if (code < 0x10000) {
    bytes[0] = (char)(0xe0 | code >> 12);
    length = 3;
  } else {
    bytes[0] = (char)(0xf0 | code >> 18);
    length = 4;
  }
  for (size_t i = 1; i < length; i++) bytes[i] = (char)(0x80 | (code >> 6 * (length - 1 - i) & 0x3f));
  shoal_text_add(out, bytes, length);
}

/* A byte of Windows-1252; the five that it does not have are those of Latin-1. */
static uint32_t windows_1252(unsigned char byte) {
  static const uint16_t special[32] = {0x20ac, 0x81,   0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021,
                                       0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8d,   0x017d, 0x8f,
                                       0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
                                       0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x9d,   0x017e, 0x0178};
  return byte >= 0x80 && byte < 0xa0 ? special[byte - 0x80] : byte;
}

static void decode_bytes(bool utf8, const char *bytes, size_t length, shoal_text *out) {
  for (size_t i = 0; i < length;) {
    size_t good = i;
    while (good < length && (unsigned char)bytes[good] < 0x80) good++;
    size_t character = utf8 && good < length ? shoal_utf8_character(bytes + good, length - good) : 0;
    shoal_text_add(out, bytes + i, good - i + character);
    i = good + character;
    if (character == 0 && i < length) add_character(out, windows_1252((unsigned char)bytes[i++]));
  }
}

static void decode_utf16(bool big, const char *bytes, size_t length, shoal_text *out) {
  static const uint32_t UNKNOWN = 0xfffd;
  const unsigned char *at = (const unsigned char *)bytes;
  uint32_t high = 0; /* the first half of a pair */
  for (size_t i = 0; i + 1 < length; i += 2) {
    uint32_t unit = big ? (uint32_t)at[i] << 8 | at[i + 1] : (uint32_t)at[i + 1] << 8 | at[i];
    bool is_high = unit >= 0xd800 && unit < 0xdc00, is_low = unit >= 0xdc00 && unit < 0xe000;
    if (high && is_low) {
      add_character(out, 0x10000 + (high - 0xd800) * 0x400 + (unit - 0xdc00));
      high = 0;
      continue;
    }
    if (high) add_character(out, UNKNOWN);
    high = is_high ? unit : 0;
    if (!is_high) add_character(out, is_low ? UNKNOWN : unit);
  }
  if (high || length % 2) add_character(out, UNKNOWN);
}

void shoal_encoding_decode(shoal_encoding encoding, const char *bytes, size_t length, shoal_text *out) {
  if (encoding == SHOAL_UTF8 || encoding == SHOAL_LATIN1)
    decode_bytes(encoding == SHOAL_UTF8, bytes, length, out);
  else
    decode_utf16(encoding == SHOAL_UTF16_BE, bytes, length, out);
}

/* UTF-16 without a mark: Western text has a zero in one byte of two, always on the same side. */
static bool looks_like_utf16(const char *bytes, size_t length, bool *big) {
  size_t zeros[2] = {0}, pairs = (length > 4096 ? 4096 : length) / 2;
  for (size_t i = 0; i < pairs * 2; i++) zeros[i % 2] += bytes[i] == 0;
  *big = zeros[0] > zeros[1];
  return pairs > 1 && zeros[*big ? 0 : 1] * 10 > pairs * 4 && zeros[*big ? 1 : 0] * 50 <= pairs;
}

static shoal_encoding guess_encoding(const char *bytes, size_t length) {
  bool big;
  if (length >= 2 && memcmp(bytes, "\xff\xfe", 2) == 0) return SHOAL_UTF16_LE;
  if (length >= 2 && memcmp(bytes, "\xfe\xff", 2) == 0) return SHOAL_UTF16_BE;
  if (length >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) return SHOAL_UTF8;
  if (looks_like_utf16(bytes, length, &big)) return big ? SHOAL_UTF16_BE : SHOAL_UTF16_LE;
  for (size_t i = 0; i < length;) {
    size_t character = bytes[i] == 0 ? 1 : shoal_utf8_character(bytes + i, length - i);
    if (character == 0) return length - i < 4 && i > 0 ? SHOAL_UTF8 : SHOAL_LATIN1; /* cut off at the end? */
    i += character;
  }
  return SHOAL_UTF8;
}

/* ---- what is no table --------------------------------------------------------------- */

static bool begins(const char *bytes, size_t length, const char *with, size_t with_length) {
  return length >= with_length && memcmp(bytes, with, with_length) == 0;
}

static shoal_status refuse_known(const char *name, const char *bytes, size_t length, shoal_error *err) {
  static const struct {
    const char *magic;
    size_t length;
    const char *what;
  } known[] = {
      {"PK\x03\x04", 4, "this is an Excel or zip file; save the sheet as CSV, or unzip it"},
      {"\xd0\xcf\x11\xe0", 4, "this is an Excel file; save the sheet as CSV"},
      {"\x89PNG", 4, "this is an image; a table is needed, saved as CSV"},
      {"\xff\xd8\xff", 3, "this is an image; a table is needed, saved as CSV"},
      {"GIF8", 4, "this is an image; a table is needed, saved as CSV"},
      {"%PDF", 4, "this is a PDF file; save the table in it as CSV"},
      {"PAR1", 4, "this is a Parquet file; save the table as CSV"},
      {"SQLite format 3", 15, "this is an SQLite file; export the table as CSV"},
      {"\x28\xb5\x2f\xfd", 4, "this is packed by zstd; unpack it, or use gzip"},
      {"BZh", 3, "this is packed by bzip2; unpack it, or use gzip"},
      {"\xfd"
       "7zXZ",
       5, "this is packed by xz; unpack it, or use gzip"},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (begins(bytes, length, known[i].magic, known[i].length))
      return shoal_fail(err, SHOAL_INVALID, "%s: %s", name, known[i].what);
  }
  return SHOAL_OK;
}

/* Text that is marked up: not rows and cells. */
static shoal_status refuse_markup(const char *name, const char *bytes, size_t length, shoal_error *err) {
  size_t at = begins(bytes, length, "\xef\xbb\xbf", 3) ? 3 : 0;
  while (at < length && isspace((unsigned char)bytes[at])) at++;
  const char *text = bytes + at;
  size_t left = length - at;
  if (left == 0) return shoal_fail(err, SHOAL_CORRUPT, "%s: there is nothing in this file", name);
  static const char *const tags[] = {"<!doctype", "<html", "<?xml", "<table", "<svg"};
  for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
    size_t tag = strlen(tags[i]);
    if (left >= tag && strncasecmp(text, tags[i], tag) == 0)
      return shoal_fail(err, SHOAL_INVALID,
                        "%s: this is a web page or XML, not a table; download the data themselves as CSV",
                        name);
  }
  size_t second = 1;
  while (second < left && isspace((unsigned char)text[second])) second++;
  bool object = text[0] == '{' && second < left && (text[second] == '"' || text[second] == '}');
  bool list = text[0] == '[' && second < left && (text[second] == '{' || text[second] == '[');
  if (object || list)
    return shoal_fail(err, SHOAL_INVALID, "%s: this is JSON; write it as CSV, one row a line, names first",
                      name);
  return SHOAL_OK;
}

/* Some zero bytes are left to the reader, which says in which line they are. */
static shoal_status refuse_binary(const char *name, const char *bytes, size_t length, shoal_error *err) {
  size_t controls = 0, looked = length > 4096 ? 4096 : length;
  for (size_t i = 0; i < looked; i++) {
    unsigned char c = (unsigned char)bytes[i];
    controls += c < 0x20 && !(c >= '\t' && c <= '\r') && c != 0x1a;
  }
  if (controls * 10 <= looked) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID, "%s: this is no text file; save the table as CSV", name);
}

/* ---- the delimiter ------------------------------------------------------------------ */

/* The text of a preview: whole rows, where the file goes on. */
typedef struct preview {
  const char *name, *bytes;
  size_t length;
} preview;

/* A number with either sign: its comma is no delimiter. */
static bool is_number_somehow(const shoal_csv_cell *cell) {
  static const shoal_dialect point = {.decimal = '.'}, comma = {.decimal = ','};
  double value;
  return shoal_dialect_number(&comma, cell->text, cell->length, false, &value) ||
         shoal_dialect_number(&point, cell->text, cell->length, false, &value);
}

static bool holds_delimiter(const shoal_csv_cell *cell) {
  for (size_t i = 0; DELIMITERS[i]; i++) {
    if (memchr(cell->text, DELIMITERS[i], cell->length)) return !is_number_somehow(cell);
  }
  return false;
}

/* How many of the preview's rows have as many cells as most, and how clean those are; 0 for one cell. */
static double score_of(const preview *p, char delimiter, char comment) {
  shoal_dialect dialect = {.delimiter = delimiter, .decimal = '.', .comment = comment};
  shoal_csv csv;
  uint32_t counts[PREVIEW_ROWS], rows = 0;
  uint64_t cells = 0, unclean = 0;
  bool more = true;
  shoal_status status = shoal_csv_init(&csv, p->name, &dialect, p->bytes, p->length, NULL);
  while (status == SHOAL_OK && rows < PREVIEW_ROWS) {
    status = shoal_csv_next(&csv, &more, NULL);
    if (status != SHOAL_OK && rows == 0 && csv.cells_count > 0) { /* what there is up to the fault */
      counts[rows++] = csv.cells_count;
      cells += csv.cells_count;
    }
    if (status != SHOAL_OK || !more) break;
    counts[rows++] = csv.cells_count;
    cells += csv.cells_count;
    for (uint32_t i = 0; i < csv.cells_count; i++) unclean += holds_delimiter(&csv.cells[i]);
  }
  shoal_csv_release(&csv);
  uint32_t usual = 0, usual_rows = 0;
  for (uint32_t i = 0; i < rows; i++) {
    uint32_t same = 0;
    for (uint32_t k = 0; k < rows; k++) same += counts[k] == counts[i];
    if (same > usual_rows || (same == usual_rows && counts[i] > usual)) {
      usual = counts[i];
      usual_rows = same;
    }
  }
  if (usual < 2) return 0;
  double alike = (double)usual_rows / rows, clean = 1 - (double)unclean / (double)cells;
  return alike * alike * (0.5 + 0.5 * clean) * (1 + 0.05 * (usual > 20 ? 20 : usual));
}

/* For a table of one column: the delimiter that its cells hold least often. */
static char least_seen(const preview *p) {
  size_t seen[sizeof DELIMITERS] = {0}, best = 0;
  for (size_t i = 0; i < p->length; i++) {
    const char *found = p->bytes[i] ? strchr(DELIMITERS, p->bytes[i]) : NULL;
    if (found) seen[found - DELIMITERS]++;
  }
  for (size_t i = 1; DELIMITERS[i]; i++) {
    if (seen[i] < seen[best]) best = i;
  }
  return DELIMITERS[best];
}

/* Comments stand above the table, if there are any. */
static bool begins_with_comment(const preview *p) {
  size_t at = begins(p->bytes, p->length, "\xef\xbb\xbf", 3) ? 3 : 0;
  while (at < p->length && isspace((unsigned char)p->bytes[at])) at++;
  return at < p->length && p->bytes[at] == '#';
}

static void guess_delimiter(shoal_dialect *out, const preview *p, char said) {
  static const char comments[] = {0, '#'};
  static const double clearly = 1.02; /* better: #id may be a name */
  double best = 0;
  out->delimiter = said;
  for (size_t c = 0; c < (begins_with_comment(p) ? 2 : 1); c++) {
    for (size_t i = 0; DELIMITERS[i]; i++) {
      if (said && DELIMITERS[i] != said) continue;
      double score = score_of(p, DELIMITERS[i], comments[c]);
      if (score <= (comments[c] ? best * clearly : best)) continue;
      best = score;
      out->delimiter = DELIMITERS[i];
      out->comment = comments[c];
    }
  }
  if (!out->delimiter) out->delimiter = least_seen(p);
}

/* ---- decimal sign and header -------------------------------------------------------- */

/* 1,234,567: with a comma before every three digits. */
static bool is_grouped(const char *text, size_t length, char separator) {
  size_t at = 0, groups = 0;
  if (at < length && (text[at] == '-' || text[at] == '+')) at++;
  size_t digits = 0;
  for (; at < length; at++) {
    if (text[at] == separator) {
      if (digits == 0 || digits > 3 || (groups > 0 && digits != 3)) return false;
      groups++;
      digits = 0;
    } else if (isdigit((unsigned char)text[at])) {
      digits++;
    } else {
      return false;
    }
  }
  return groups > 0 && digits == 3;
}

/* What a column of the preview holds below its first cell. */
typedef struct below {
  uint32_t filled, numbers, loose, dates; /* loose: numbers with a unit */
  bool again;                             /* the first cell's text comes once more */
} below;

typedef struct first_row {
  uint32_t count;
  shoal_text pool;
  size_t *ends;
  below *below;
  uint64_t with_point, with_comma;
} first_row;

static void count_decimal(first_row *f, const shoal_dialect *dialect, const shoal_csv_cell *cell) {
  static const shoal_dialect point = {.decimal = '.'}, comma = {.decimal = ','};
  const char *unit;
  size_t unit_length;
  double value;
  bool has_comma = memchr(cell->text, ',', cell->length), has_point = memchr(cell->text, '.', cell->length);
  if ((!has_comma && !has_point) || cell->length > 64) return;
  bool as_comma = shoal_dialect_quantity(&comma, cell->text, cell->length, &value, &unit, &unit_length);
  bool as_point = shoal_dialect_quantity(&point, cell->text, cell->length, &value, &unit, &unit_length);
  if (as_comma && as_point) {
    /* 1,234 is one of both; beside semicolons it is a fraction, as is 1.234 beside anything else. */
    bool comma_grouped = is_grouped(cell->text, cell->length, ',');
    if (comma_grouped && dialect->delimiter != ';') return;
    as_point = !comma_grouped;
    as_comma = comma_grouped;
  }
  f->with_comma += as_comma && has_comma;
  f->with_point += as_point && has_point;
}

static bool is_text(const char *a, size_t a_length, const shoal_csv_cell *cell) {
  return a_length == cell->length && memcmp(a, cell->text, a_length) == 0;
}

static const char *first_cell(const first_row *f, uint32_t i, size_t *length) {
  size_t start = i ? f->ends[i - 1] : 0;
  *length = f->ends[i] - start;
  return f->pool.bytes ? f->pool.bytes + start : "";
}

static void look_below(first_row *f, const shoal_dialect *dialect, const shoal_csv *csv) {
  for (uint32_t i = 0; i < csv->cells_count && i < f->count; i++) {
    const shoal_csv_cell *cell = &csv->cells[i];
    below *b = &f->below[i];
    double value;
    if (shoal_cell_is_missing(cell->text, cell->length)) continue;
    b->filled++;
    if (shoal_dialect_number(dialect, cell->text, cell->length, false, &value))
      b->numbers++;
    else if (shoal_dialect_number(dialect, cell->text, cell->length, true, &value))
      b->loose++;
    else if (shoal_date_read(cell->text, cell->length, false, &value) ||
             shoal_date_read(cell->text, cell->length, true, &value))
      b->dates++;
    size_t length;
    const char *text = first_cell(f, i, &length);
    b->again |= is_text(text, length, cell);
  }
}

static bool keep_first_row(first_row *f, const shoal_csv *csv) {
  f->count = csv->cells_count;
  f->ends = calloc(f->count ? f->count : 1, sizeof *f->ends);
  f->below = calloc(f->count ? f->count : 1, sizeof *f->below);
  if (!f->ends || !f->below) return false;
  for (uint32_t i = 0; i < f->count; i++) {
    shoal_text_add(&f->pool, csv->cells[i].text, csv->cells[i].length);
    f->ends[i] = f->pool.length;
  }
  return !f->pool.failed;
}

/* Goes through the preview once: with `header` for what stands below the first row, else for decimal
 * signs. */
static shoal_status look(first_row *f, const preview *p, const shoal_dialect *dialect, bool header,
                         shoal_error *err) {
  shoal_csv csv;
  bool more = true, good = true;
  shoal_status status = shoal_csv_init(&csv, p->name, dialect, p->bytes, p->length, NULL);
  for (uint32_t row = 0; status == SHOAL_OK && row < PREVIEW_ROWS && good; row++) {
    status = shoal_csv_next(&csv, &more, NULL);
    if (status != SHOAL_OK || !more) break;
    if (!header) {
      for (uint32_t i = 0; i < csv.cells_count; i++) count_decimal(f, dialect, &csv.cells[i]);
    } else if (row == 0) {
      good = keep_first_row(f, &csv);
    } else {
      look_below(f, dialect, &csv);
    }
  }
  shoal_csv_release(&csv);
  return good ? SHOAL_OK : fail_memory(err); /* what cannot be read is refused by who reads it all */
}

/* A header has no number, or a name above a column's number, or years one after the other; and its names are
 * not the values below. */
static bool is_header(const first_row *f, const shoal_dialect *dialect) {
  bool numbers = false, names = false, above_number = false, again = false;
  uint32_t years = 0;
  double last = NAN;
  for (uint32_t i = 0; i < f->count; i++) {
    size_t length;
    const char *text = first_cell(f, i, &length);
    const below *b = &f->below[i];
    if (shoal_cell_is_missing(text, length)) continue;
    double value;
    bool is_number = shoal_dialect_number(dialect, text, length, false, &value) ||
                     shoal_date_read(text, length, false, &value) ||
                     shoal_date_read(text, length, true, &value) ||
                     (b->loose > 0 && shoal_dialect_number(dialect, text, length, true, &value));
    years += is_number && value == last + 1 && value > 1800 && value < 2200;
    if (is_number) last = value;
    numbers |= is_number;
    names |= !is_number;
    above_number |= !is_number && b->filled > 0 && (b->numbers + b->loose + b->dates) * 5 >= b->filled * 4;
    again |= !is_number && b->again;
  }
  return names && (above_number || years >= YEARS_ENOUGH || (!numbers && !again));
}

/* ---- the guess ---------------------------------------------------------------------- */

/* Cuts the last row where it may be half a row. */
static void cut_last_row(preview *p) {
  if (p->length < SHOAL_DIALECT_BYTES / 2) return;
  size_t length = p->length;
  while (length > 0 && p->bytes[length - 1] != '\n' && p->bytes[length - 1] != '\r') length--;
  if (length > 0) p->length = length;
}

static shoal_status guess_text(shoal_dialect *out, const shoal_dialect_said *said, preview p,
                               shoal_error *err) {
  shoal_status status = refuse_markup(p.name, p.bytes, p.length, err);
  if (status == SHOAL_OK) status = refuse_binary(p.name, p.bytes, p.length, err);
  if (status != SHOAL_OK) return status;
  cut_last_row(&p);
  guess_delimiter(out, &p, said->delimiter);
  first_row f = {0};
  shoal_text_init(&f.pool);
  out->decimal = said->decimal;
  if (!said->decimal) {
    status = look(&f, &p, out, false, err);
    out->decimal = f.with_comma > f.with_point ? ',' : '.';
  }
  out->header = said->header == SHOAL_YES;
  if (status == SHOAL_OK && said->header == SHOAL_NOT_SAID) {
    status = look(&f, &p, out, true, err);
    out->header = status == SHOAL_OK && is_header(&f, out);
  }
  shoal_text_release(&f.pool);
  free(f.ends);
  free(f.below);
  return status;
}

shoal_status shoal_dialect_guess(shoal_dialect *out, const shoal_dialect_said *said, const char *name,
                                 const char *bytes, size_t length, shoal_error *err) {
  static const shoal_dialect_said nothing;
  *out = (shoal_dialect){.delimiter = ',', .decimal = '.'};
  if (!said) said = &nothing;
  if (length > SHOAL_DIALECT_BYTES) length = SHOAL_DIALECT_BYTES;
  if (length == 0) return shoal_fail(err, SHOAL_CORRUPT, "%s: there is nothing in this file", name);
  shoal_status status = refuse_known(name, bytes, length, err);
  if (status != SHOAL_OK) return status;
  out->encoding = said->encoding_said ? said->encoding : guess_encoding(bytes, length);
  preview p = {.name = name, .bytes = bytes, .length = length};
  if (out->encoding == SHOAL_UTF8 || out->encoding == SHOAL_LATIN1) return guess_text(out, said, p, err);
  shoal_text text;
  shoal_text_init(&text);
  shoal_encoding_decode(out->encoding, bytes, length, &text);
  p.bytes = text.bytes;
  p.length = text.length;
  status = text.failed ? fail_memory(err) : guess_text(out, said, p, err);
  shoal_text_release(&text);
  return status;
}

/* ---- numbers ------------------------------------------------------------------------ */

/* The bytes of a separator of thousands at the front, 0 where there is none: the other one of . and ,
 * and ' and spaces of three widths. */
static size_t separator_at(const char *text, size_t length, char decimal) {
  if (length == 0) return 0;
  if (text[0] == (decimal == '.' ? ',' : '.') || text[0] == '\'' || text[0] == ' ') return 1;
  if (length > 1 && memcmp(text, "\xc2\xa0", 2) == 0) return 2;
  if (length > 2 && memcmp(text, "\xe2\x80\xaf", 3) == 0) return 3;
  return 0;
}

static bool digit_at(const char *text, size_t length, size_t i) {
  return i < length && text[i] >= '0' && text[i] <= '9';
}

static bool three_digits_at(const char *text, size_t length, size_t i) {
  return digit_at(text, length, i) && digit_at(text, length, i + 1) && digit_at(text, length, i + 2) &&
         !digit_at(text, length, i + 3);
}

/* A number as it was scanned: its digits as one integer, and the power of ten that goes with it. */
typedef struct scanned {
  uint64_t digits;
  int digits_count; /* from the first that is not 0 */
  int fraction;     /* digits behind the decimal sign */
  int exponent;
} scanned;

static void add_digit(scanned *s, char c) {
  if (s->digits_count > 0 || c != '0') s->digits_count++;
  if (s->digits_count <= 18) s->digits = s->digits * 10 + (uint64_t)(c - '0');
}

/* The bytes of the number at the front of text, 0 where there is none. */
static size_t scan_number(const char *text, size_t length, char decimal, scanned *s) {
  size_t at = 0, digits = 0, separator = 0;
  *s = (scanned){0};
  if (at < length && (text[at] == '-' || text[at] == '+')) at++;
  size_t start = at;
  while (digit_at(text, length, at)) add_digit(s, text[at++]);
  digits = at - start;
  if (digits >= 1 && digits <= 3) {
    const char *first = text + at;
    separator = separator_at(first, length - at, decimal);
    while (separator > 0 && length - at >= separator && memcmp(text + at, first, separator) == 0 &&
           three_digits_at(text, length, at + separator)) {
      at += separator;
      for (int i = 0; i < 3; i++) add_digit(s, text[at++]);
    }
  }
  if (at < length && text[at] == decimal && (digits > 0 || digit_at(text, length, at + 1))) {
    for (at++; digit_at(text, length, at); s->fraction++) {
      add_digit(s, text[at++]);
      digits++;
    }
  }
  if (digits == 0) return 0;
  if (at < length && (text[at] == 'e' || text[at] == 'E')) {
    size_t e = at + 1;
    bool negative = e < length && text[e] == '-';
    if (e < length && (text[e] == '-' || text[e] == '+')) e++;
    if (digit_at(text, length, e)) {
      for (; digit_at(text, length, e); e++) {
        if (s->exponent < 100000) s->exponent = s->exponent * 10 + (text[e] - '0');
      }
      if (negative) s->exponent = -s->exponent;
      at = e;
    }
  }
  return at;
}

/* Digits that a double holds exactly, times or over a power of ten that it holds exactly, are rounded
 * once: the nearest double. Others are left to the C library. */
static bool value_of(const char *text, size_t length, char decimal, const scanned *s, double *out) {
  static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  int power = s->exponent - s->fraction;
  if (s->digits_count <= 15 && power >= -22 && power <= 22) {
    double digits = (double)s->digits, value = power < 0 ? digits / tens[-power] : digits * tens[power];
    *out = text[0] == '-' ? -value : value;
    return true;
  }
  char plain[512];
  size_t used = 0;
  for (size_t i = 0; i < length; i++) {
    char c = text[i] == decimal ? '.' : text[i];
    if (!memchr("0123456789+-.eE", c, 15)) continue;
    if (text[i] != decimal && c == '.') continue;
    if (used == sizeof plain) return false;
    plain[used++] = c;
  }
  return shoal_read_f64(plain, used, out);
}

static size_t currency_at(const char *text, size_t length) {
  static const char *const signs[] = {"$",   "\xe2\x82\xac", "\xc2\xa3", "\xc2\xa5", "US$", "USD",
                                      "EUR", "GBP",          "CHF",      "JPY",      "CNY", "INR",
                                      "AUD", "CAD",          "SEK",      "NOK",      "DKK", "\xe2\x82\xb9"};
  if (length == 0 || (*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'z')) return 0;
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
    size_t sign = strlen(signs[i]);
    if (length > sign && memcmp(text, signs[i], sign) == 0) return sign;
  }
  return 0;
}

/* A unit is one word without digits: kg, m/s, %, degrees with their sign. */
static bool is_unit(const char *text, size_t length) {
  enum { UNIT_MAX = 15 };
  if (length > UNIT_MAX) return false;
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)text[i];
    if (!isalpha(c) && c < 0x80 && !strchr("%$/^\"'*", c)) return false;
  }
  return true;
}

bool shoal_dialect_quantity(const shoal_dialect *dialect, const char *text, size_t length, double *out,
                            const char **unit, size_t *unit_length) {
  *unit = text;
  *unit_length = 0;
  bool negative = length > 1 && text[0] == '-';
  size_t before = currency_at(text + negative, length - negative);
  if (before > 0) {
    *unit = text + negative;
    *unit_length = before;
    text += negative + before;
    length -= negative + before;
    while (length > 0 && *text == ' ') text++, length--;
  }
  scanned s;
  size_t used = scan_number(text, length, dialect->decimal, &s);
  if (used == 0 || !value_of(text, used, dialect->decimal, &s, out)) return false;
  if (before > 0 && negative) *out = -*out;
  if (used == length) return true;
  text += used;
  length -= used;
  while (length > 0 && *text == ' ') text++, length--;
  if (length > 1 && memcmp(text, "\xc2\xa0", 2) == 0) text += 2, length -= 2;
  if (before > 0 || !is_unit(text, length)) return false;
  *unit = text;
  *unit_length = length;
  return true;
}

bool shoal_dialect_number(const shoal_dialect *dialect, const char *text, size_t length, bool loose,
                          double *out) {
  if (length == 0) return false;
  if (loose) {
    const char *unit;
    size_t unit_length;
    return shoal_dialect_quantity(dialect, text, length, out, &unit, &unit_length);
  }
  scanned s;
  return scan_number(text, length, dialect->decimal, &s) == length &&
         value_of(text, length, dialect->decimal, &s, out);
}

bool shoal_dialect_too_large(const shoal_dialect *dialect, const char *text, size_t length) {
  size_t sign = length > 0 && (*text == '-' || *text == '+'), rest = length - sign;
  if ((rest == 3 && strncasecmp(text + sign, "inf", 3) == 0) ||
      (rest == 8 && strncasecmp(text + sign, "infinity", 8) == 0))
    return true;
  scanned s;
  double value;
  return length > 0 && scan_number(text, length, dialect->decimal, &s) == length &&
         !value_of(text, length, dialect->decimal, &s, &value);
}

bool shoal_cell_is_missing(const char *text, size_t length) {
  static const char *const marks[] = {"?", "NA", "N/A", "NaN", "null", "none", "-"};
  if (length == 0) return true;
  if (length > 4 || (*text >= '0' && *text <= '9')) return false;
  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
    if (length == strlen(marks[i]) && strncasecmp(text, marks[i], length) == 0) return true;
  }
  return false;
}
