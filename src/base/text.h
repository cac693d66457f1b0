/* text.h: growing strings, numbers read strictly and written for people, UTF-8.
 *
 * Ownership: a shoal_text owns its bytes; init, then release. When memory runs
 * out it stays valid and `failed` is set, so a writer checks once at the end.
 * Threads: none. */
#ifndef SHOAL_BASE_TEXT_H
#define SHOAL_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct shoal_text {
  char *bytes; /* always ends in a zero once anything was added; NULL before */
  size_t length;
  size_t capacity;
  bool failed;
} shoal_text;

void shoal_text_init(shoal_text *text);
void shoal_text_release(shoal_text *text);
void shoal_text_clear(shoal_text *text);
void shoal_text_add(shoal_text *text, const void *bytes, size_t length);
void shoal_text_addf(shoal_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void shoal_text_addv(shoal_text *text, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* Each reads the whole of `word` (length bytes, no zero needed) or answers false:
 * no white space, no trailing characters, no overflow; reals are finite. */
bool shoal_read_u64(const char *word, size_t length, uint64_t *out);
bool shoal_read_f64(const char *word, size_t length, double *out);

/* 1234567 as "1,234,567". Returns out. */
enum { SHOAL_GROUPED_MAX = 32 };
const char *shoal_grouped(uint64_t number, char out[SHOAL_GROUPED_MAX]);

/* The bytes of the UTF-8 character at the front of text (length > 0), or 0 when they are not
 * one: over-long forms, surrogates, anything past U+10FFFF, and the zero byte, which ends names. */
size_t shoal_utf8_character(const char *text, size_t length);
bool shoal_utf8_valid(const char *text, size_t length);
/* Text from strangers, fit for a terminal: as much of it as `size` bytes hold, with a zero behind it, and '?'
 * for every control character and every byte that is not UTF-8. `to` may be `from`. */
void shoal_text_plain(char *to, size_t size, const void *from, size_t length);
/* Adds such a text, and spaces until it has so many characters. Returns how many it has without them. */
uint32_t shoal_text_add_plain(shoal_text *text, const char *from, uint32_t columns);

/* The candidate nearest to word by edit distance, or NULL when none is near:
 * for "unknown layer 'dens'; did you mean 'dense'?". */
const char *shoal_nearest(const char *word, size_t length, const char *const *candidates, size_t count);
/* What other programs call one of our words, with spaces between: {"rate", "lr learning-rate"}. */
typedef struct shoal_synonyms {
  const char *ours, *theirs;
} shoal_synonyms;
/* Returns the first candidate that lists `word` among its synonyms, or NULL. The comparison ignores case, and '-' and
 * '_' before a letter; elsewhere the two are the same. */
const char *shoal_synonym(const char *word, size_t length, const shoal_synonyms *table, size_t table_count,
                          const char *const *candidates, size_t count);
/* Whether one of the words of a list, with spaces or bars between, is `word`, compared in the same way. */
bool shoal_word_listed(const char *list, const char *word, size_t length);

#endif
