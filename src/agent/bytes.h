/* bytes.h: numbers in little-endian bytes, and out of bytes from strangers.
 *
 * Writing goes to the end of a text, which remembers when memory ran out. Reading stays within its bytes:
 * once something was asked for that is not there, `failed` is set and all answers are zeros, so that a reader
 * checks once at the end.
 *
 * Ownership: a reader borrows its bytes. Threads: none. */
#ifndef SHOAL_AGENT_BYTES_H
#define SHOAL_AGENT_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they are");

static inline void shoal_put_u32(shoal_text *out, uint32_t value) {
  shoal_text_add(out, &value, sizeof value);
}
static inline void shoal_put_u64(shoal_text *out, uint64_t value) {
  shoal_text_add(out, &value, sizeof value);
}
static inline void shoal_put_f32(shoal_text *out, float value) { shoal_text_add(out, &value, sizeof value); }
static inline void shoal_put_f32s(shoal_text *out, const float *values, size_t count) {
  if (count > 0) shoal_text_add(out, values, count * sizeof *values);
}

typedef struct shoal_reader {
  const uint8_t *at;
  size_t left;
  bool failed;
} shoal_reader;

static inline shoal_reader shoal_reader_of(const void *bytes, size_t length) {
  return (shoal_reader){.at = bytes, .left = length};
}

/* The next bytes, or NULL. */
static inline const uint8_t *shoal_get(shoal_reader *r, size_t bytes) {
  if (r->failed || bytes > r->left) {
    r->failed = true;
    return NULL;
  }
  const uint8_t *at = r->at;
  r->at += bytes;
  r->left -= bytes;
  return at;
}

static inline void shoal_get_into(shoal_reader *r, void *to, size_t bytes) {
  const uint8_t *from = shoal_get(r, bytes);
  if (bytes == 0) return;
  if (from != NULL)
    memcpy(to, from, bytes);
  else
    memset(to, 0, bytes);
}

static inline uint32_t shoal_get_u32(shoal_reader *r) {
  uint32_t value;
  shoal_get_into(r, &value, sizeof value);
  return value;
}

static inline uint64_t shoal_get_u64(shoal_reader *r) {
  uint64_t value;
  shoal_get_into(r, &value, sizeof value);
  return value;
}

static inline float shoal_get_f32(shoal_reader *r) {
  float value;
  shoal_get_into(r, &value, sizeof value);
  return value;
}

/* Whether `count` floats at `bytes`, which need no alignment, are all finite. */
static inline bool shoal_all_finite(const void *bytes, size_t count) {
  bool finite = true;
  for (size_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, (const uint8_t *)bytes + i * sizeof bits, sizeof bits);
    finite &= (bits & 0x7f800000) != 0x7f800000;
  }
  return finite;
}

/* Whether they all are within -most .. most. */
static inline bool shoal_all_within(const void *bytes, size_t count, float most) {
  bool within = true;
  for (size_t i = 0; i < count; i++) {
    float value;
    memcpy(&value, (const uint8_t *)bytes + i * sizeof value, sizeof value);
    within &= value >= -most && value <= most; /* NaN is neither */
  }
  return within;
}

#endif
