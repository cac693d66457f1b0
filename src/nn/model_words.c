/* model_words.c: the lowest level of model texts: lines, words, numbers, errors.
 *
 * A line is looked over for bytes that do not belong before any of its words is used, so
 * every word is printable ASCII and can stand in an error text as it is. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "nn/model_internal.h"

#define REAL_MAX 1e9 /* no rate, scale or weight is larger, and floats hold it */

void shoal_words_init(shoal_words *w, const char *name, const char *text, size_t length, shoal_error *err) {
  *w = (shoal_words){.name = name, .next = text, .text_end = text + length, .err = err, .word.text = text};
  /* Some editors put a byte order mark before the text. */
  if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) w->next += 3;
}

/* ---- errors ------------------------------------------------------------------------- */

bool shoal_words_refuse(shoal_words *w, shoal_status status, shoal_word at, const char *format, ...) {
  char sentence[SHOAL_ERROR_TEXT_MAX];
  va_list args;
  va_start(args, format);
  vsnprintf(sentence, sizeof sentence, format, args);
  va_end(args);
  const shoal_phrase foreign = shoal_words_foreign(w);
  size_t length = strlen(sentence);
  if (foreign.text[0]) snprintf(sentence + length, sizeof sentence - length, "; %s", foreign.text);
  w->status = status;
  if (w->is_flag)
    shoal_fail(w->err, status, "%s: %s", w->name, sentence);
  else if (w->head.length)
    shoal_fail(w->err, status, "%s:%u:%u: %.*s: %s", w->name, at.line, at.column, (int)w->head.length,
               w->head.text, sentence);
  else
    shoal_fail(w->err, status, "%s:%u:%u: %s", w->name, at.line, at.column, sentence);
  return false;
}

bool shoal_words_expected(shoal_words *w, shoal_word at, const char *format, ...) {
  char what[SHOAL_ERROR_TEXT_MAX];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  return shoal_words_fail(w, at, "expected %s, found %s", what, shoal_word_quote(w, at).text);
}

bool shoal_words_unknown(shoal_words *w, shoal_word at, const char *thing, const char *const *table) {
  const shoal_phrase quote = shoal_word_quote(w, at);
  if (shoal_words_foreign(w).text[0]) return shoal_words_fail(w, at, "unknown %s %s", thing, quote.text);
  const char *near = shoal_word_near(at, table);
  if (near) return shoal_words_fail(w, at, "unknown %s %s; did you mean '%s'?", thing, quote.text, near);
  const shoal_phrase list = shoal_words_list(table);
  if (at.length == 0) return shoal_words_fail(w, at, "the %s is missing; it is one of %s", thing, list.text);
  return shoal_words_fail(w, at, "unknown %s %s; it is one of %s", thing, quote.text, list.text);
}

shoal_phrase shoal_words_list(const char *const *table) {
  shoal_phrase list = {""};
  for (size_t i = 0, used = 0; table[i] != NULL && used < sizeof list.text; i++)
    used += (size_t)snprintf(list.text + used, sizeof list.text - used, i ? ", %s" : "%s", table[i]);
  return list;
}

shoal_phrase shoal_word_quote(const shoal_words *w, shoal_word word) {
  enum { SHOWN = 40 };
  shoal_phrase quote;
  if (word.length == 0)
    snprintf(quote.text, sizeof quote.text, "%s", w->is_flag ? "nothing" : "the end of the line");
  else
    snprintf(quote.text, sizeof quote.text, word.length <= SHOWN ? "'%.*s'" : "'%.*s...'",
             (int)(word.length <= SHOWN ? word.length : SHOWN), word.text);
  return quote;
}

/* ---- lines and words ---------------------------------------------------------------- */

static shoal_word place(const shoal_words *w, const char *at) {
  return (shoal_word){.text = at, .line = w->line, .column = (uint32_t)(at - w->line_start) + 1};
}

/* Everything up to a comment is printable ASCII and tabs; a comment holds no zero byte. */
static bool check_bytes(shoal_words *w) {
  size_t length = (size_t)(w->line_end - w->line_start);
  const char *zero = memchr(w->line_start, 0, length), *comment = memchr(w->line_start, '#', length);
  if (zero) return shoal_words_fail(w, place(w, zero), "found a zero byte; a model is plain text");
  if (comment) w->line_end = comment;
  for (const char *at = w->line_start; at < w->line_end; at++) {
    if (*at != '\t' && (*at < ' ' || *at > '~'))
      return shoal_words_fail(w, place(w, at),
                              "found the byte 0x%02x; outside of comments only plain ASCII is allowed",
                              (unsigned char)*at);
  }
  return true;
}

bool shoal_words_next_line(shoal_words *w) {
  w->head = (shoal_word){0};
  if (w->next == w->text_end) return false;
  w->line++;
  w->line_start = w->rest = w->next;
  const char *newline = memchr(w->next, '\n', (size_t)(w->text_end - w->next));
  w->line_end = newline ? newline : w->text_end;
  w->next = newline ? newline + 1 : w->text_end;
  if (w->line_end > w->line_start && w->line_end[-1] == '\r') w->line_end--;

  if (w->line_end - w->line_start > SHOAL_LINE_BYTES_MAX)
    return shoal_words_over_limit(w, place(w, w->line_start), "the line is longer than %s characters",
                                  shoal_human_count(SHOAL_LINE_BYTES_MAX).text);
  if (!check_bytes(w)) return false;
  shoal_words_advance(w);
  return true;
}

static bool is_space(char c) { return c == ' ' || c == '\t'; }

void shoal_words_advance(shoal_words *w) {
  while (w->rest < w->line_end && is_space(*w->rest)) w->rest++;
  w->word = place(w, w->rest);
  while (w->rest < w->line_end && !is_space(*w->rest)) w->rest++;
  w->word.length = (uint32_t)(w->rest - w->word.text);
}

bool shoal_word_is(shoal_word word, const char *text) {
  return word.length == strlen(text) && memcmp(word.text, text, word.length) == 0;
}

bool shoal_words_accept(shoal_words *w, const char *text) {
  bool same = shoal_word_is(w->word, text);
  if (same) shoal_words_advance(w);
  return same;
}

int shoal_word_find(shoal_word word, const char *const *table) {
  for (int i = 0; table[i] != NULL; i++)
    if (shoal_word_is(word, table[i])) return i;
  return -1;
}

const char *shoal_word_near(shoal_word word, const char *const *table) {
  size_t count = 0;
  while (table[count] != NULL) count++;
  return shoal_nearest(word.text, word.length, table, count);
}

bool shoal_words_end(shoal_words *w) {
  return w->word.length == 0 || shoal_words_expected(w, w->word, "the end of the line");
}

size_t shoal_name_length(const char *at) {
  size_t length = 0;
  for (;; length++) {
    char c = at[length];
    bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!is_letter && (length == 0 || ((c < '0' || c > '9') && c != '-'))) return length;
  }
}

/* ---- numbers ------------------------------------------------------------------------ */

static bool read_u64(shoal_words *w, const char *what, uint64_t least, uint64_t most, uint64_t *out) {
  if (!shoal_read_u64(w->word.text, w->word.length, out) || *out < least || *out > most)
    return shoal_words_expected(w, w->word, "%s, a whole number from %s to %s", what,
                                shoal_human_count(least).text, shoal_human_count(most).text);
  shoal_words_advance(w);
  return true;
}

bool shoal_words_u32(shoal_words *w, const char *what, uint32_t least, uint32_t most, uint32_t *out) {
  uint64_t value;
  if (!read_u64(w, what, least, most, &value)) return false;
  *out = (uint32_t)value;
  return true;
}

/* How many sizes the word holds, or 0 when it does not read as sizes. */
static uint32_t split_sizes(shoal_word word, uint32_t least, uint32_t out[3]) {
  const char *at = word.text, *end = word.text + word.length;
  for (uint32_t count = 0; count < 3;) {
    const char *x = memchr(at, 'x', (size_t)(end - at));
    uint64_t value;
    if (!shoal_read_u64(at, (size_t)((x ? x : end) - at), &value) || value < least ||
        value > SHOAL_VALUES_MAX)
      return 0;
    out[count++] = (uint32_t)value;
    if (!x) return count;
    at = x + 1;
  }
  return 0;
}

uint32_t shoal_words_sizes(shoal_words *w, const char *what, uint32_t least, uint32_t fewest, uint32_t most,
                           uint32_t out[3]) {
  uint32_t count = w->word.length ? split_sizes(w->word, least, out) : 0;
  if (count > 0 && (count < fewest || count > most)) return shoal_words_expected(w, w->word, "%s", what);
  if (count == 0)
    return shoal_words_expected(w, w->word, "%s, of whole numbers from %u to %s", what, least,
                                shoal_human_count(SHOAL_VALUES_MAX).text);
  shoal_words_advance(w);
  return count;
}

bool shoal_words_real(shoal_words *w, const char *what, shoal_range range, float *out) {
  static const char *const words[] = {
      [SHOAL_RANGE_FROM_ZERO] = "from 0 to 1e9",
      [SHOAL_RANGE_ABOVE_ZERO] = "above 0 and at most 1e9",
      [SHOAL_RANGE_SHARE] = "from 0 to below 1",
  };
  double value;
  bool good = shoal_read_f64(w->word.text, w->word.length, &value) && value <= REAL_MAX && value >= -REAL_MAX;
  /* The range is that of the float, which may have been rounded to its edge. Adding zero
   * turns the negative zero into the common one. */
  float rounded = good ? (float)value + 0.0f : 0;
  good = good && (range == SHOAL_RANGE_ABOVE_ZERO ? rounded > 0 : rounded >= 0) &&
         (range != SHOAL_RANGE_SHARE || rounded < 1);
  if (!good) return shoal_words_expected(w, w->word, "%s, a number %s", what, words[range]);
  *out = rounded;
  shoal_words_advance(w);
  return true;
}

void shoal_write_real(shoal_text *out, float value) {
  char text[32];
  double read;
  snprintf(text, sizeof text, "%.0f", (double)value);
  if (value >= 1e6f || !shoal_read_f64(text, strlen(text), &read) || (float)read != value) {
    for (int digits = 1; digits <= 9; digits++) {
      snprintf(text, sizeof text, "%.*g", digits, (double)value);
      if (shoal_read_f64(text, strlen(text), &read) && (float)read == value) break;
    }
  }
  shoal_text_addf(out, " %s", text);
}

/* ---- fields ------------------------------------------------------------------------- */

static bool read_kind(shoal_words *w, const shoal_field *f, uint32_t *out) {
  int kind = shoal_word_find(w->word, f->kinds);
  if (kind < 0) return shoal_words_unknown(w, w->word, f->what, f->kinds);
  *out = (uint32_t)kind;
  shoal_words_advance(w);
  return true;
}

bool shoal_read_field(shoal_words *w, const shoal_field *f, void *owner) {
  void *to = (char *)owner + f->place;
  switch (f->type) {
  case SHOAL_FIELD_KIND: return read_kind(w, f, to);
  case SHOAL_FIELD_U32: return shoal_words_u32(w, f->what, f->least, f->most, to);
  case SHOAL_FIELD_U64: return read_u64(w, f->what, 0, UINT64_MAX, to);
  case SHOAL_FIELD_REAL: return shoal_words_real(w, f->what, f->range, to);
  default: *(bool *)to = true; return true;
  }
}

bool shoal_field_is_zero(const shoal_field *f, const void *owner) {
  static const char zeros[sizeof(uint64_t)];
  return memcmp((const char *)owner + f->place, zeros, f->bytes) == 0;
}

void shoal_write_fields(shoal_text *out, const shoal_field *f, const void *owner) {
  for (; f->type != SHOAL_FIELD_NONE; f++) {
    const void *from = (const char *)owner + f->place;
    bool takes_zero = f->least == 0 && f->range != SHOAL_RANGE_ABOVE_ZERO;
    if (!takes_zero && shoal_field_is_zero(f, owner)) continue;
    if (f->word != NULL) shoal_text_addf(out, " %s", f->word);
    if (f->type == SHOAL_FIELD_KIND) shoal_text_addf(out, " %s", f->kinds[*(const uint32_t *)from]);
    if (f->type == SHOAL_FIELD_U32) shoal_text_addf(out, " %u", *(const uint32_t *)from);
    if (f->type == SHOAL_FIELD_U64)
      shoal_text_addf(out, " %llu", (unsigned long long)*(const uint64_t *)from);
    if (f->type == SHOAL_FIELD_REAL) shoal_write_real(out, *(const float *)from);
  }
}
