/* text.c: see text.h. Texts double as they grow; words are compared by edit distance in three rows. */
#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

/* ---- growing strings ---------------------------------------------------------------- */

void shoal_text_init(shoal_text *text) { *text = (shoal_text){0}; }

void shoal_text_release(shoal_text *text) {
  free(text->bytes);
  shoal_text_init(text);
}

void shoal_text_clear(shoal_text *text) {
  text->length = 0;
  text->failed = false;
  if (text->bytes) text->bytes[0] = 0;
}

/* Makes room for `more` bytes and the final zero. */
static bool reserve(shoal_text *text, size_t more) {
  if (text->failed) return false;
  size_t needed;
  if (__builtin_add_overflow(text->length, more, &needed) || needed > SIZE_MAX / 2 - 1) {
    text->failed = true;
    return false;
  }
  if (needed < text->capacity) return true;
  size_t capacity = text->capacity ? text->capacity : 64;
  while (capacity <= needed) capacity *= 2;
  char *bytes = realloc(text->bytes, capacity);
  if (!bytes) {
    text->failed = true;
    return false;
  }
  text->bytes = bytes;
  text->capacity = capacity;
  return true;
}

void shoal_text_add(shoal_text *text, const void *bytes, size_t length) {
  if (!reserve(text, length)) return;
  if (length) memcpy(text->bytes + text->length, bytes, length);
  text->length += length;
  text->bytes[text->length] = 0;
}

void shoal_text_addv(shoal_text *text, const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, args);
  SHOAL_ASSERT(length >= 0);
  if (reserve(text, (size_t)length)) {
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, again);
    text->length += (size_t)length;
  }
  va_end(again);
}

void shoal_text_addf(shoal_text *text, const char *format, ...) {
  va_list args;
  va_start(args, format);
  shoal_text_addv(text, format, args);
  va_end(args);
}

/* ---- numbers ------------------------------------------------------------------------ */

bool shoal_read_u64(const char *word, size_t length, uint64_t *out) {
  uint64_t value = 0;
  for (size_t i = 0; i < length; i++) {
    if (word[i] < '0' || word[i] > '9') return false;
    uint64_t digit = (uint64_t)(word[i] - '0');
    if (__builtin_mul_overflow(value, 10u, &value) || __builtin_add_overflow(value, digit, &value))
      return false;
  }
  *out = value;
  return length > 0;
}

bool shoal_read_f64(const char *word, size_t length, double *out) {
  /* strtod also takes spaces, hexadecimal, "inf" and "nan"; decimal characters keep those out. */
  char copy[512];
  if (length == 0 || length >= sizeof copy) return false;
  for (size_t i = 0; i < length; i++) {
    if (word[i] == 0 || !strchr("0123456789+-.eE", word[i])) return false;
  }
  memcpy(copy, word, length);
  copy[length] = 0;
  char *end;
  double value = strtod(copy, &end);
  if (end != copy + length || !isfinite(value)) return false;
  *out = value;
  return true;
}

const char *shoal_grouped(uint64_t number, char out[SHOAL_GROUPED_MAX]) {
  char digits[24];
  int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
  char *to = out;
  for (int i = 0; i < length; i++) {
    if (i > 0 && (length - i) % 3 == 0) *to++ = ',';
    *to++ = digits[i];
  }
  *to = 0;
  return out;
}

/* ---- UTF-8 -------------------------------------------------------------------------- */

size_t shoal_utf8_character(const char *text, size_t length) {
  const unsigned char *c = (const unsigned char *)text;
  if (c[0] < 0x80) return c[0] != 0;
  size_t bytes = c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : 2;
  if (c[0] < 0xc2 || c[0] > 0xf4 || bytes > length) return 0;
  for (size_t i = 1; i < bytes; i++) {
    if ((c[i] & 0xc0) != 0x80) return 0;
  }
  bool over_long = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xf0 && c[1] < 0x90);
  bool surrogate = c[0] == 0xed && c[1] > 0x9f;
  bool past_last = c[0] == 0xf4 && c[1] > 0x8f;
  return over_long || surrogate || past_last ? 0 : bytes;
}

bool shoal_utf8_valid(const char *text, size_t length) {
  for (size_t i = 0; i < length;) {
    size_t bytes = shoal_utf8_character(text + i, length - i);
    if (bytes == 0) return false;
    i += bytes;
  }
  return true;
}

/* U+0080 to U+009F are controls, too: terminals take U+009B for the beginning of an escape sequence. */
static bool is_control(const unsigned char *character) {
  return character[0] < 0x20 || character[0] == 0x7f || (character[0] == 0xc2 && character[1] < 0xa0);
}

void shoal_text_plain(char *to, size_t size, const void *from, size_t length) {
  const char *text = from;
  size_t written = 0;
  SHOAL_ASSERT(size > 0);
  for (size_t i = 0, bytes; i < length; i += bytes) {
    size_t valid = shoal_utf8_character(text + i, length - i);
    bool shown = valid > 0 && !is_control((const unsigned char *)text + i);
    bytes = valid > 0 ? valid : 1;
    size_t needed = shown ? bytes : 1;
    if (needed >= size - written) break;
    if (shown)
      memmove(to + written, text + i, bytes);
    else
      to[written] = '?';
    written += needed;
  }
  to[written] = 0;
}

uint32_t shoal_text_add_plain(shoal_text *text, const char *from, uint32_t columns) {
  size_t before = text->length, length = strlen(from);
  uint32_t has = 0;
  shoal_text_add(text, from, length);
  if (text->failed) return has;
  if (length > 0) {
    shoal_text_plain(text->bytes + before, length + 1, from, length);
    text->length = before + strlen(text->bytes + before);
  }
  for (size_t i = before; i < text->length; i++) has += ((unsigned char)text->bytes[i] & 0xc0) != 0x80;
  if (has < columns) shoal_text_addf(text, "%*s", (int)(columns - has), "");
  return has;
}

/* ---- did you mean ------------------------------------------------------------------- */

enum { WORD_MAX = 32 };

static char plain_letter(char c) { return c == '_' ? '-' : c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static bool is_same(char a, char b) { return plain_letter(a) == plain_letter(b); }

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* How many letters to insert, delete, replace or swap with their neighbour to turn a into b.
 * Three rows of the usual table suffice: row i needs row i-1, and row i-2 for a swap. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length) {
  size_t rows[3][WORD_MAX + 1];
  size_t *before = rows[0], *above = rows[1], *row = rows[2];
  for (size_t j = 0; j <= b_length; j++) above[j] = j;
  for (size_t i = 1; i <= a_length; i++) {
    row[0] = i;
    for (size_t j = 1; j <= b_length; j++) {
      size_t replace = above[j - 1] + !is_same(a[i - 1], b[j - 1]);
      row[j] = least(replace, least(above[j], row[j - 1]) + 1);
      if (i > 1 && j > 1 && is_same(a[i - 1], b[j - 2]) && is_same(a[i - 2], b[j - 1]))
        row[j] = least(row[j], before[j - 2] + 1);
    }
    size_t *oldest = before;
    before = above;
    above = row;
    row = oldest;
  }
  return above[b_length];
}

const char *shoal_nearest(const char *word, size_t length, const char *const *candidates, size_t count) {
  if (length == 0 || length > WORD_MAX) return NULL;
  /* About one letter in three may be wrong: further off, a suggestion puzzles more than it helps. */
  size_t near = length < 3 ? 1 : (length + 1) / 3;
  const char *nearest = NULL;
  for (size_t i = 0; i < count; i++) {
    size_t candidate_length = strlen(candidates[i]);
    if (candidate_length > WORD_MAX) continue;
    size_t far = distance(word, length, candidates[i], candidate_length);
    if (far <= near && far < candidate_length && (!nearest || far < near)) {
      nearest = candidates[i];
      near = far;
    }
  }
  return nearest;
}

/* A hyphen or '_' between words: batch-size is also written batchSize. That of 1e-5 is a sign. */
static bool is_joint(const char *word, size_t length) {
  return length > 1 && plain_letter(word[0]) == '-' && plain_letter(word[1]) >= 'a';
}

bool shoal_word_listed(const char *list, const char *word, size_t length) {
  while (*list) {
    const char *end = list + strcspn(list, " |"), *at = word, *word_end = word + length;
    for (;; list++, at++) {
      list += is_joint(list, (size_t)(end - list));
      at += is_joint(at, (size_t)(word_end - at));
      if (list == end || at == word_end || !is_same(*list, *at)) break;
    }
    if (list == end && at == word_end) return true;
    list = end + (*end != 0);
  }
  return false;
}

const char *shoal_synonym(const char *word, size_t length, const shoal_synonyms *table, size_t table_count,
                          const char *const *candidates, size_t count) {
  for (size_t i = 0; i < table_count; i++)
    for (size_t k = 0; k < count && shoal_word_listed(table[i].theirs, word, length); k++)
      if (strcmp(candidates[k], table[i].ours) == 0) return candidates[k];
  return NULL;
}
