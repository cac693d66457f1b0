/* codec.c: see codec.h.
 *
 * The bytes, little-endian:
 *
 *   f32    count floats
 *   bf16   count halves of floats
 *   int8   for every 1024 values, or what is left of them at the end:
 *            0   4   scale, a float
 *            4   n   bytes, -127 to 127
 *   topk     0   4   n, how many follow: at most one value in 50, but at least one
 *            4   6n  place (4), bf16 (2); places rise
 *
 * Invariants, all of them tested:
 *  1. What is finite is sent as something finite. Where bf16 would round to infinity it takes
 *     its largest value instead, where value + residual overflows it is the largest float, and
 *     the scale of int8 has a ceiling under which 127 * scale does not overflow.
 *  2. What is not finite is sent as such, so that the receiver refuses it and a training that
 *     has blown up is not taken for a healthy one. In int8 the block's scale is then NaN; in
 *     topk such values count as the largest.
 *  3. The residual is finite after encode, whatever the values and it were before: a place whose
 *     value was not finite starts again at zero, and a residual that was not finite counts as
 *     zero.
 *  4. value + residual before = sent + residual after, without any rounding but that of the
 *     first sum. For bf16 that is so by nature. For int8 the scale is rounded up to 16
 *     significant bits, so that byte * scale fits a float; the error is at most half a scale.
 *  5. f32 leaves nothing out, so it neither reads nor writes the residual.
 *
 * After an error of decode the values are unspecified.
 *
 * Speed: gcc -O2 vectorises loops whose length it knows and whose arrays cannot overlap. Hence
 * all loops run over whole blocks on the stack, of which the last is filled up with zeros, and
 * choices are made on the bits as integers. On one core of a server with SSE2, in gigabytes of
 * floats a second, encode with a residual and decode: bf16 3.7 and 13, int8 4.3 and 21, topk 1.3
 * and 38. */
#include "proto/codec.h"

#include <float.h>
#include <string.h>

#include "base/assert.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are sent as they lie in memory");
_Static_assert(FLT_EVAL_METHOD == 0, "sums must round to float at once, or machines differ");

enum {
  BLOCK = SHOAL_INT8_BLOCK,
  SIZE = 0x7fffffff, /* all bits of a float but its sign */
  LARGEST = 0x7f7fffff,
  INFINITE = 0x7f800000, /* as a size; above it are NaNs */
  BF16_LARGEST = 0x7f7f,
  BF16_INFINITE = 0x7f80,
  BF16_NAN = 0x7fc0,
  SCALE_BYTES = 4,
  HEAD_BYTES = 4, /* of topk: how many there are */
  ENTRY_BYTES = 6,
};

static inline uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Sizes compare like the values without their signs. Signed, which SSE2 can compare. */
static inline int32_t size_of(uint32_t bits) { return (int32_t)(bits & SIZE); }

/* ---- what all formats share ---- */

static void add_block(const float *restrict values, const float *restrict residual, float *restrict sums) {
  for (size_t i = 0; i < BLOCK; i++) {
    uint32_t v = bits_of(values[i]), r = bits_of(residual[i]);
    r = size_of(r) < INFINITE ? r : 0;
    uint32_t sum = bits_of(values[i] + float_of(r));
    /* A NaN goes on with the bits it came with: adding changes them on some machines. */
    uint32_t beyond = size_of(v) < INFINITE ? (v & ~(uint32_t)SIZE) | LARGEST : v;
    sums[i] = float_of(size_of(sum) < INFINITE ? sum : beyond);
  }
}

/* n values and residuals as a block of sums. */
static void load(size_t n, const float *values, const float *residual, float *sums) {
  if (n < BLOCK) memset(sums + n, 0, (BLOCK - n) * sizeof *sums);
  if (residual == NULL) {
    memcpy(sums, values, n * sizeof *sums);
  } else if (n == BLOCK) {
    add_block(values, residual, sums);
  } else {
    float values_filled[BLOCK] = {0}, residual_filled[BLOCK] = {0};
    memcpy(values_filled, values, n * sizeof *values);
    memcpy(residual_filled, residual, n * sizeof *residual);
    add_block(values_filled, residual_filled, sums);
  }
}

static inline size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static bool block_is_finite(const float *values) {
  int32_t beyond = 0;
  for (size_t i = 0; i < BLOCK; i++) beyond |= size_of(bits_of(values[i])) >= INFINITE;
  return !beyond;
}

bool shoal_codec_finite(size_t count, const float *values) {
  bool finite = true;
  size_t at = 0;
  for (; finite && count - at >= BLOCK; at += BLOCK) finite = block_is_finite(values + at);
  for (; finite && at < count; at++) finite = size_of(bits_of(values[at])) < INFINITE;
  return finite;
}

/* Copies a decoded block to where it belongs, or refuses it. */
static shoal_status hand_out(size_t n, const float *block, float *values, shoal_error *err) {
  if (!block_is_finite(block)) return shoal_fail(err, SHOAL_INVALID, "values that are not finite");
  memcpy(values, block, n * sizeof *values);
  return SHOAL_OK;
}

/* ---- f32 ---- */

static shoal_status f32_decode(size_t count, const uint8_t *bytes, float *values, shoal_error *err) {
  for (size_t at = 0, n; at < count; at += n) {
    n = smaller(BLOCK, count - at);
    float block[BLOCK];
    if (n < BLOCK) memset(block, 0, sizeof block);
    memcpy(block, bytes + at * sizeof *values, n * sizeof *values);
    shoal_status status = hand_out(n, block, values + at, err);
    if (status != SHOAL_OK) return status;
  }
  return SHOAL_OK;
}

/* ---- bf16 ---- */

static inline uint32_t bf16_of(uint32_t bits) {
  int32_t size = size_of(bits);
  int32_t rounded = (int32_t)(((uint32_t)size + 0x7fff + (size >> 16 & 1)) >> 16);
  rounded = rounded < BF16_LARGEST ? rounded : BF16_LARGEST;
  int32_t beyond = size == INFINITE ? BF16_INFINITE : BF16_NAN;
  return (uint32_t)(size < INFINITE ? rounded : beyond) | (bits >> 16 & 0x8000);
}

/* What stays behind of a sum of which `sent` went out as bf16. */
static inline float bf16_rest(float sum, uint32_t sent) {
  uint32_t rest = bits_of(sum - float_of(sent << 16));
  return float_of(size_of(rest) < INFINITE ? rest : 0); /* infinite less infinite is a NaN too */
}

static void bf16_block(const float *restrict sums, uint16_t *restrict halves, float *restrict rest) {
  for (size_t i = 0; i < BLOCK; i++) {
    uint32_t sent = bf16_of(bits_of(sums[i]));
    halves[i] = (uint16_t)sent;
    rest[i] = bf16_rest(sums[i], sent);
  }
}

static void bf16_encode(size_t count, const float *values, float *residual, uint8_t *out) {
  for (size_t at = 0, n; at < count; at += n) {
    n = smaller(BLOCK, count - at);
    float sums[BLOCK], rest[BLOCK];
    uint16_t halves[BLOCK];
    load(n, values + at, residual != NULL ? residual + at : NULL, sums);
    bf16_block(sums, halves, rest);
    memcpy(out + at * sizeof *halves, halves, n * sizeof *halves);
    if (residual != NULL) memcpy(residual + at, rest, n * sizeof *rest);
  }
}

static void bf16_widen(const uint16_t *restrict halves, float *restrict values) {
  for (size_t i = 0; i < BLOCK; i++) values[i] = float_of((uint32_t)halves[i] << 16);
}

static shoal_status bf16_decode(size_t count, const uint8_t *bytes, float *values, shoal_error *err) {
  for (size_t at = 0, n; at < count; at += n) {
    n = smaller(BLOCK, count - at);
    uint16_t halves[BLOCK];
    float block[BLOCK];
    if (n < BLOCK) memset(halves, 0, sizeof halves);
    memcpy(halves, bytes + at * sizeof *halves, n * sizeof *halves);
    bf16_widen(halves, block);
    shoal_status status = hand_out(n, block, values + at, err);
    if (status != SHOAL_OK) return status;
  }
  return SHOAL_OK;
}

/* ---- int8 ---- */

/* The largest scale of 16 bits whose 127-fold is a float. */
static const float SCALE_LARGEST = 0x1.0204p121f;

static int32_t largest_size(const float *sums) {
  int32_t largest = 0;
  for (size_t i = 0; i < BLOCK; i++) {
    int32_t size = size_of(bits_of(sums[i]));
    largest = size > largest ? size : largest;
  }
  return largest;
}

/* The scale for a block whose largest value is this: a 127th of it, rounded up to 16 bits. It is
 * never under the smallest normal float, where it would have fewer bits than that or be zero. */
static float scale_for(float largest) {
  float scale = largest / 127;
  if (scale < FLT_MIN) return FLT_MIN;
  scale = float_of((bits_of(scale) + 0xff) & ~(uint32_t)0xff);
  return scale < SCALE_LARGEST ? scale : SCALE_LARGEST;
}

static void int8_block(const float *restrict sums, float scale, int8_t *restrict bytes,
                       float *restrict rest) {
  /* Beside this number floats are whole: adding it rounds to nearest even, and leaves the result,
   * which is at most 127, in the lowest bits. */
  const float whole = 0x1.8p23f;
  for (size_t i = 0; i < BLOCK; i++) {
    float shifted = sums[i] / scale + whole;
    bytes[i] = (int8_t)(bits_of(shifted) & 0xff);
    rest[i] = sums[i] - (shifted - whole) * scale;
  }
}

/* A block in which something is not finite: no byte means anything, and what can stays behind. */
static void int8_refuse(const float *restrict sums, int8_t *restrict bytes, float *restrict rest) {
  memset(bytes, 0, BLOCK);
  for (size_t i = 0; i < BLOCK; i++) {
    uint32_t sum = bits_of(sums[i]);
    rest[i] = float_of(size_of(sum) < INFINITE ? sum : 0);
  }
}

static void int8_encode(size_t count, const float *values, float *residual, uint8_t *out) {
  for (size_t at = 0, n; at < count; at += n) {
    n = smaller(BLOCK, count - at);
    float sums[BLOCK], rest[BLOCK], scale;
    int8_t bytes[BLOCK];
    load(n, values + at, residual != NULL ? residual + at : NULL, sums);
    int32_t largest = largest_size(sums);
    if (largest < INFINITE) {
      scale = scale_for(float_of((uint32_t)largest));
      int8_block(sums, scale, bytes, rest);
    } else {
      scale = float_of((uint32_t)BF16_NAN << 16);
      int8_refuse(sums, bytes, rest);
    }
    memcpy(out, &scale, SCALE_BYTES);
    memcpy(out + SCALE_BYTES, bytes, n);
    out += SCALE_BYTES + n;
    if (residual != NULL) memcpy(residual + at, rest, n * sizeof *rest);
  }
}

static bool int8_widen(const int8_t *restrict bytes, float scale, float *restrict values) {
  int8_t wrong = 0;
  for (size_t i = 0; i < BLOCK; i++) {
    wrong |= bytes[i] == INT8_MIN;
    values[i] = (float)bytes[i] * scale;
  }
  return !wrong;
}

static shoal_status int8_decode(size_t count, const uint8_t *in, float *values, shoal_error *err) {
  for (size_t at = 0, n; at < count; at += n) {
    n = smaller(BLOCK, count - at);
    uint32_t scale;
    int8_t bytes[BLOCK];
    float block[BLOCK];
    memcpy(&scale, in, SCALE_BYTES);
    if (n < BLOCK) memset(bytes, 0, sizeof bytes);
    memcpy(bytes, in + SCALE_BYTES, n);
    in += SCALE_BYTES + n;
    /* As bits, negative numbers and NaNs are above it too. */
    if (scale > bits_of(SCALE_LARGEST))
      return shoal_fail(err, SHOAL_INVALID, "a scale that is negative, too large or not finite");
    if (!int8_widen(bytes, float_of(scale), block))
      return shoal_fail(err, SHOAL_INVALID, "a byte of -128, where -127 is the least");
    memcpy(values + at, block, n * sizeof *block);
  }
  return SHOAL_OK;
}

/* ---- topk ---- */

static size_t topk_entries(size_t count) {
  SHOAL_ASSERT(count <= UINT32_MAX);
  size_t share = count / SHOAL_TOPK_SHARE;
  return count > 0 && share == 0 ? 1 : share;
}

/* The size of the k-th largest of the sums, digit by digit from the highest: a histogram of the
 * digit among those that share all higher digits shows in which bin the k-th lies. *equals gets
 * how many of those with just this size are among the k. */
static int32_t kth_largest(size_t count, const float *sums, size_t k, size_t *equals) {
  static const struct { unsigned shift, bits; } digits[] = {{20, 11}, {9, 11}, {0, 9}}; /* 31 bits in all */
  uint32_t found = 0;
  for (size_t d = 0; d < sizeof digits / sizeof digits[0]; d++) {
    unsigned shift = digits[d].shift, above = shift + digits[d].bits;
    uint32_t last = (1u << digits[d].bits) - 1, bins[1 << 11] = {0};
    for (size_t i = 0; i < count; i++) {
      uint32_t size = bits_of(sums[i]) & SIZE;
      if (size >> above == found) bins[size >> shift & last]++;
    }
    uint32_t bin = last;
    for (; bins[bin] < k; bin--) {
      SHOAL_ASSERT(bin > 0);
      k -= bins[bin];
    }
    found = found << digits[d].bits | bin;
  }
  *equals = k;
  return (int32_t)found;
}

static size_t topk_encode(size_t count, const float *values, float *residual, uint8_t *out) {
  const float *sums = values;
  if (residual != NULL) { /* which has room for the sums, so that no other memory is needed */
    sums = residual;
    for (size_t at = 0, n; at < count; at += n) {
      n = smaller(BLOCK, count - at);
      float block[BLOCK];
      load(n, values + at, residual + at, block);
      memcpy(residual + at, block, n * sizeof *block);
    }
  }
  size_t k = topk_entries(count), equals = 0;
  uint32_t entries = (uint32_t)k;
  memcpy(out, &entries, HEAD_BYTES);
  if (k == 0) return HEAD_BYTES;
  int32_t least = kth_largest(count, sums, k, &equals);
  uint8_t *entry = out + HEAD_BYTES;
  for (size_t i = 0; i < count; i++) {
    float sum = sums[i];
    int32_t size = size_of(bits_of(sum));
    if (size < least || (size == least && equals == 0)) continue;
    if (size == least) equals--;
    uint32_t place = (uint32_t)i, sent = bf16_of(bits_of(sum));
    memcpy(entry, &place, 4);
    memcpy(entry + 4, &sent, 2);
    entry += ENTRY_BYTES;
    if (residual != NULL) residual[i] = bf16_rest(sum, sent);
  }
  SHOAL_ASSERT(entry == out + HEAD_BYTES + k * ENTRY_BYTES);
  /* With so many that are not finite, some were not sent. They must not stay behind. */
  if (residual != NULL && least >= INFINITE)
    for (size_t i = 0; i < count; i++)
      if (size_of(bits_of(residual[i])) >= INFINITE) residual[i] = 0;
  return HEAD_BYTES + k * ENTRY_BYTES;
}

static shoal_status topk_decode(size_t count, const uint8_t *bytes, size_t length, float *values,
                                shoal_error *err) {
  size_t most = topk_entries(count);
  uint32_t entries = 0;
  if (length >= HEAD_BYTES) memcpy(&entries, bytes, HEAD_BYTES);
  if (length < HEAD_BYTES || entries > most || length != HEAD_BYTES + (size_t)entries * ENTRY_BYTES)
    return shoal_fail(err, SHOAL_INVALID, "%zu bytes for %u of %zu values in topk; at most %zu may be sent",
                      length, entries, count, most);
  if (count > 0) memset(values, 0, count * sizeof *values);
  uint64_t next = 0;
  for (const uint8_t *entry = bytes + HEAD_BYTES; entry < bytes + length; entry += ENTRY_BYTES) {
    uint32_t place, sent = 0;
    memcpy(&place, entry, 4);
    memcpy(&sent, entry + 4, 2);
    if (place < next || place >= count)
      return shoal_fail(err, SHOAL_INVALID, "place %u of %zu, where at least %llu was due", place, count,
                        (unsigned long long)next);
    if (size_of(sent << 16) >= INFINITE) return shoal_fail(err, SHOAL_INVALID, "values that are not finite");
    values[place] = float_of(sent << 16);
    next = (uint64_t)place + 1;
  }
  return SHOAL_OK;
}

/* ---- all of them ---- */

static const char *const names[SHOAL_WIRE_FORMATS] = {
    [SHOAL_WIRE_F32] = "f32",
    [SHOAL_WIRE_BF16] = "bf16",
    [SHOAL_WIRE_INT8] = "int8",
    [SHOAL_WIRE_TOPK] = "topk",
};

const char *shoal_codec_name(shoal_wire_format format) {
  SHOAL_ASSERT(format < SHOAL_WIRE_FORMATS);
  return names[format];
}

bool shoal_codec_named(const char *name, shoal_wire_format *out) {
  for (int format = 0; format < SHOAL_WIRE_FORMATS; format++)
    if (strcmp(name, names[format]) == 0) {
      *out = (shoal_wire_format)format;
      return true;
    }
  return false;
}

size_t shoal_codec_bytes(shoal_wire_format format, size_t count) {
  SHOAL_ASSERT(format < SHOAL_WIRE_FORMATS && count <= SIZE_MAX / 8);
  switch (format) {
  case SHOAL_WIRE_BF16: return count * 2;
  case SHOAL_WIRE_INT8: return count + (count + BLOCK - 1) / BLOCK * SCALE_BYTES;
  case SHOAL_WIRE_TOPK: return HEAD_BYTES + topk_entries(count) * ENTRY_BYTES;
  default: return count * sizeof(float);
  }
}

size_t shoal_codec_encode(shoal_wire_format format, size_t count, const float *values, float *residual,
                          uint8_t *out) {
  size_t bytes = shoal_codec_bytes(format, count);
  switch (format) {
  case SHOAL_WIRE_BF16: bf16_encode(count, values, residual, out); break;
  case SHOAL_WIRE_INT8: int8_encode(count, values, residual, out); break;
  case SHOAL_WIRE_TOPK: return topk_encode(count, values, residual, out);
  default:
    if (bytes > 0) memcpy(out, values, bytes);
  }
  return bytes;
}

shoal_status shoal_codec_decode(shoal_wire_format format, size_t count, const uint8_t *bytes, size_t length,
                                float *values, shoal_error *err) {
  if (format >= SHOAL_WIRE_FORMATS)
    return shoal_fail(err, SHOAL_INVALID, "values in unknown format %u", (unsigned)format);
  if (format == SHOAL_WIRE_TOPK) return topk_decode(count, bytes, length, values, err);
  size_t due = shoal_codec_bytes(format, count);
  if (length != due)
    return shoal_fail(err, SHOAL_INVALID, "%zu bytes for %zu values in %s, which take %zu", length, count,
                      names[format], due);
  switch (format) {
  case SHOAL_WIRE_BF16: return bf16_decode(count, bytes, values, err);
  case SHOAL_WIRE_INT8: return int8_decode(count, bytes, values, err);
  default: return f32_decode(count, bytes, values, err);
  }
}
