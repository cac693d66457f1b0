/* dialect.h: how a CSV file is written: encoding, delimiter, decimal sign, header.
 *
 * All of it is guessed from the first rows, and each part can be said by a person instead, as
 * words: "delimiter ; decimal , encoding latin-1 header no". Reading goes on with cells in UTF-8 whatever
 * the file has.
 *
 * Ownership: plain values. Threads: any. */
#ifndef SHOAL_DATA_DIALECT_H
#define SHOAL_DATA_DIALECT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "base/status.h"

typedef enum shoal_encoding {
  SHOAL_UTF8,   /* with or without a byte order mark */
  SHOAL_LATIN1, /* Windows-1252, its superset */
  SHOAL_UTF16_LE,
  SHOAL_UTF16_BE,
} shoal_encoding;

typedef enum shoal_yes_no { SHOAL_NOT_SAID, SHOAL_YES, SHOAL_NO } shoal_yes_no;

typedef struct shoal_dialect {
  shoal_encoding encoding;
  char delimiter; /* , ; tab | */
  char decimal;   /* . or , */
  char comment;   /* lines that begin with it are no rows; 0: none are */
  bool header;
} shoal_dialect;

/* What a person has said; zero is nothing. */
typedef struct shoal_dialect_said {
  bool encoding_said;
  shoal_encoding encoding;
  char delimiter, decimal; /* 0: not said */
  shoal_yes_no header;
} shoal_dialect_said;

/* As many bytes of a file as a guess needs. */
enum { SHOAL_DIALECT_BYTES = 1 << 20 };

/* From "delimiter ; decimal ,": `where` is what errors call the words. */
shoal_status shoal_dialect_say(shoal_dialect_said *out, const char *where, const char *words,
                               shoal_error *err);

/* `said` may be NULL. From the first bytes of a file (all of it, or at least some hundred rows). Fails on
 * what is no table: nothing but blank lines, binary data; the error says what to do, and *out has what was
 * found until then. */
shoal_status shoal_dialect_guess(shoal_dialect *out, const shoal_dialect_said *said, const char *name,
                                 const char *bytes, size_t length, shoal_error *err);

void shoal_dialect_write(const shoal_dialect *dialect, shoal_json *json, const char *key);
shoal_status shoal_dialect_read(shoal_dialect *out, const cJSON *json, shoal_error *err);

/* Adds bytes of that encoding as UTF-8; what is not UTF-8 in a file that should be counts as Windows-1252,
 * half a character of UTF-16 becomes U+FFFD. */
void shoal_encoding_decode(shoal_encoding encoding, const char *bytes, size_t length, shoal_text *out);

/* A cell as a number: with this decimal sign, with or without separators of thousands, with a sign of
 * currency, a percent sign or a unit behind it ("1.234,5 kg") only where `loose`. */
bool shoal_dialect_number(const shoal_dialect *dialect, const char *text, size_t length, bool loose,
                          double *out);
/* A cell that means a number which no double holds: "inf", "-Infinity", "1e400". */
bool shoal_dialect_too_large(const shoal_dialect *dialect, const char *text, size_t length);
/* The same as where `loose`, with the sign or the unit: a part of text, of no length where there is none. */
bool shoal_dialect_quantity(const shoal_dialect *dialect, const char *text, size_t length, double *out,
                            const char **unit, size_t *unit_length);
/* Empty, ?, NA, N/A, NaN, null, none, -, in any case. */
bool shoal_cell_is_missing(const char *text, size_t length);

#endif
