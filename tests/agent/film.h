/* film.h: small readers of GIF and APNG for tests, written apart from what they test. Anything unusual
 * fails. */
#ifndef SHOAL_TESTS_FILM_H
#define SHOAL_TESTS_FILM_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "check.h"

enum { FILM_PICTURES_MAX = 64 };

typedef struct film {
  uint32_t width, height, count, colours;
  uint8_t rgb[256][3];
  uint8_t *pictures[FILM_PICTURES_MAX]; /* whole ones, as they are seen */
  uint32_t ticks[FILM_PICTURES_MAX];
  size_t drawn[FILM_PICTURES_MAX]; /* pixels that the file has of it */
  bool loops;
} film;

static inline void film_release(film *f) {
  for (uint32_t i = 0; i < f->count; i++) free(f->pictures[i]);
}

/* A copy of the picture before, to draw on. */
static inline uint8_t *film_next(film *f) {
  assert_true(f->count < FILM_PICTURES_MAX);
  size_t bytes = (size_t)f->width * f->height;
  uint8_t *picture = calloc(1, bytes);
  assert_non_null(picture);
  if (f->count > 0) memcpy(picture, f->pictures[f->count - 1], bytes);
  f->pictures[f->count++] = picture;
  return picture;
}

static inline void film_put(film *f, uint32_t x, uint32_t y, uint32_t w, uint32_t h, const uint8_t *pixels,
                            size_t stride) {
  assert_true(w > 0 && h > 0 && x + w <= f->width && y + h <= f->height);
  uint8_t *picture = film_next(f);
  for (uint32_t row = 0; row < h; row++)
    memcpy(picture + (size_t)(y + row) * f->width + x, pixels + row * stride, w);
  f->drawn[f->count - 1] = (size_t)w * h;
}

/* ---- GIF ---- */

static inline uint32_t gif_u16(const uint8_t *at) { return at[0] | (uint32_t)at[1] << 8; }

/* LZW, by the book: a code's string is its prefix's and one more pixel. */
static inline void gif_unpack(const uint8_t *codes, size_t length, uint32_t bits, uint8_t *out,
                              size_t count) {
  static uint16_t prefix[4096];
  static uint8_t last[4096], stack[4097];
  uint32_t clear = 1u << bits, end = clear + 1, next = end + 1, width = bits + 1;
  size_t bit = 0, done = 0;
  int64_t before = -1;
  uint8_t first = 0;
  for (;;) {
    assert_true(bit + width <= 8 * length);
    uint32_t code = 0;
    for (uint32_t i = 0; i < width; i++, bit++) code |= (uint32_t)(codes[bit / 8] >> bit % 8 & 1) << i;
    if (code == end) break;
    if (code == clear) {
      next = end + 1;
      width = bits + 1;
      before = -1;
      continue;
    }
    assert_true(code < next || (code == next && before >= 0));
    uint32_t at = code, depth = 0;
    if (code == next) {
      stack[depth++] = first;
      at = (uint32_t)before;
    }
    for (; at >= clear; at = prefix[at]) stack[depth++] = last[at];
    stack[depth++] = first = (uint8_t)at;
    if (before >= 0 && next < 4096) {
      prefix[next] = (uint16_t)before;
      last[next++] = first;
      if (next == 1u << width && width < 12) width++;
    }
    before = code;
    assert_true(done + depth <= count);
    while (depth > 0) out[done++] = stack[--depth];
  }
  assert_int_equal(done, count);
  assert_true(8 * length - bit < 8); /* nothing behind it */
}

/* The bytes of blocks that a zero ends. */
static inline size_t gif_blocks(const uint8_t *bytes, size_t length, size_t *at, uint8_t *out) {
  size_t count = 0;
  for (;;) {
    assert_true(*at < length);
    size_t block = bytes[(*at)++];
    if (block == 0) return count;
    assert_true(*at + block <= length);
    memcpy(out + count, bytes + *at, block);
    count += block;
    *at += block;
  }
}

static inline void read_gif(film *f, const uint8_t *bytes, size_t length) {
  *f = (film){0};
  assert_true(length > 13 && memcmp(bytes, "GIF89a", 6) == 0);
  f->width = gif_u16(bytes + 6);
  f->height = gif_u16(bytes + 8);
  assert_true(bytes[10] & 0x80);
  f->colours = 2u << (bytes[10] & 7);
  size_t at = 13 + 3 * f->colours;
  assert_true(at < length);
  memcpy(f->rgb, bytes + 13, 3 * f->colours);
  uint8_t *data = malloc(length), *pixels = malloc((size_t)f->width * f->height);
  uint32_t ticks = 0;
  assert_true(data && pixels);
  while (bytes[at] != 0x3b) {
    assert_true(at + 12 < length);
    if (bytes[at] == 0x21 && bytes[at + 1] == 0xff) {
      assert_memory_equal(bytes + at + 2, "\x0bNETSCAPE2.0\x03\x01\0\0", 16);
      at += 2;
      gif_blocks(bytes, length, &at, data);
      f->loops = true;
    } else if (bytes[at] == 0x21) {
      assert_memory_equal(bytes + at + 1, "\xf9\x04\x04", 3); /* stays; no transparent colour */
      ticks = gif_u16(bytes + at + 4);
      assert_int_equal(bytes[at + 7], 0);
      at += 8;
    } else {
      assert_int_equal(bytes[at], 0x2c);
      uint32_t x = gif_u16(bytes + at + 1), y = gif_u16(bytes + at + 3), w = gif_u16(bytes + at + 5),
               h = gif_u16(bytes + at + 7), bits = bytes[at + 10];
      assert_int_equal(bytes[at + 9], 0);
      assert_true(bits >= 2 && bits <= 8);
      assert_true((size_t)w * h <= (size_t)f->width * f->height);
      at += 11;
      size_t packed = gif_blocks(bytes, length, &at, data);
      gif_unpack(data, packed, bits, pixels, (size_t)w * h);
      film_put(f, x, y, w, h, pixels, w);
      f->ticks[f->count - 1] = ticks;
    }
    assert_true(at < length);
  }
  assert_int_equal(at + 1, length);
  free(data);
  free(pixels);
}

/* ---- APNG ---- */

static inline uint32_t png_u32(const uint8_t *at) {
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Bit by bit: x^32 + x^26 + ... + 1, the low bit first. */
static inline uint32_t png_crc(const uint8_t *bytes, size_t length) {
  uint32_t crc = 0xffffffff;
  for (size_t i = 0; i < length; i++) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc;
}

typedef struct png_control {
  uint32_t width, height, x, y;
} png_control;

static inline void png_pixels(film *f, const png_control *c, const uint8_t *packed, size_t length) {
  size_t row = (size_t)c->width + 1;
  uLongf bytes = (uLongf)(row * c->height);
  uint8_t *raw = malloc(bytes);
  assert_non_null(raw);
  assert_int_equal(uncompress(raw, &bytes, packed, (uLong)length), Z_OK);
  assert_int_equal(bytes, row * c->height);
  for (uint32_t y = 0; y < c->height; y++) assert_int_equal(raw[y * row], 0);
  film_put(f, c->x, c->y, c->width, c->height, raw + 1, row);
  free(raw);
}

static inline void read_apng(film *f, const uint8_t *bytes, size_t length) {
  *f = (film){0};
  assert_true(length > 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0);
  uint32_t sequence = 0, pictures = 0, ticks = 0;
  png_control control = {0};
  bool ended = false;
  for (size_t at = 8; at < length;) {
    assert_true(!ended && at + 12 <= length);
    uint32_t size = png_u32(bytes + at);
    const uint8_t *letters = bytes + at + 4, *data = letters + 4;
    assert_true(at + 12 + size <= length);
    assert_int_equal(png_u32(data + size), png_crc(letters, 4 + size));
    if (memcmp(letters, "IHDR", 4) == 0) {
      assert_int_equal(at, 8);
      f->width = png_u32(data);
      f->height = png_u32(data + 4);
      assert_memory_equal(data + 8, "\x08\x03\0\0\0", 5);
    } else if (memcmp(letters, "acTL", 4) == 0) {
      assert_int_equal(f->count, 0);
      pictures = png_u32(data);
      f->loops = png_u32(data + 4) == 0;
    } else if (memcmp(letters, "PLTE", 4) == 0) {
      f->colours = size / 3;
      memcpy(f->rgb, data, size);
    } else if (memcmp(letters, "fcTL", 4) == 0) {
      assert_int_equal(size, 26);
      assert_int_equal(png_u32(data), sequence++);
      control = (png_control){png_u32(data + 4), png_u32(data + 8), png_u32(data + 12), png_u32(data + 16)};
      assert_int_equal(data[22] << 8 | data[23], 1000);
      assert_memory_equal(data + 24, "\0\0", 2);
      ticks = (uint32_t)(data[20] << 8 | data[21]);
    } else if (memcmp(letters, "IDAT", 4) == 0) {
      assert_true(f->count == 0 && control.width == f->width && control.height == f->height);
      png_pixels(f, &control, data, size);
      f->ticks[0] = ticks;
    } else if (memcmp(letters, "fdAT", 4) == 0) {
      assert_true(f->count > 0);
      assert_int_equal(png_u32(data), sequence++);
      png_pixels(f, &control, data + 4, size - 4);
      f->ticks[f->count - 1] = ticks;
    } else {
      assert_memory_equal(letters, "IEND", 4);
      ended = true;
    }
    at += 12 + size;
  }
  assert_true(ended);
  assert_int_equal(pictures, f->count);
}

#endif
