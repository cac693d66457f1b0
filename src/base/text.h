/* text.h: growing strings, and numbers read strictly.
 *
 * Ownership: a shoal_text owns its bytes; init, then release. When memory runs
 * out it stays valid and `failed` is set, so a writer checks once at the end.
 * Threads: none. */
#ifndef SHOAL_BASE_TEXT_H
#define SHOAL_BASE_TEXT_H

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

/* Each reads the whole of `word` (length bytes, no zero needed) or answers false:
 * no white space, no trailing characters, no overflow; reals are finite. */
bool shoal_read_u64(const char *word, size_t length, uint64_t *out);
bool shoal_read_i64(const char *word, size_t length, int64_t *out);
bool shoal_read_f64(const char *word, size_t length, double *out);

/* The candidate nearest to word by edit distance, or NULL when none is near:
 * for "unknown layer 'dens'; did you mean 'dense'?". */
const char *shoal_nearest(const char *word, size_t length, const char *const *candidates, size_t count);

#endif
