/* apng.c: see apng.h.
 *
 * A PNG is eight bytes and then chunks: length, four letters, that many bytes, CRC-32 of letters and bytes.
 *
 *   IHDR   width, height, bits of a pixel, kind of colours, three zeros
 *   acTL   pictures, times (0: for ever)
 *   PLTE   the colours
 *   fcTL   sequence, width, height, x, y, ticks and ticks a second (two bytes each), stays, replaces: a
 *          picture follows
 *   IDAT   the first one's pixels, compressed; a zero in front of every row, for "as it is"
 *   fdAT   sequence, the pixels of a later one
 *   IEND
 *
 * Numbers are of four bytes, the high one first. */
#include "agent/apng.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { DEPTH = 8, INDEXED = 3 };

static void add_u32(shoal_text *out, uint32_t number) {
  const uint8_t bytes[4] = {(uint8_t)(number >> 24), (uint8_t)(number >> 16), (uint8_t)(number >> 8),
                            (uint8_t)number};
  shoal_text_add(out, bytes, sizeof bytes);
}

/* A chunk is begun, filled and closed; *start is where its letters are. */
static void open_chunk(shoal_text *out, const char letters[5], size_t *start) {
  add_u32(out, 0);
  *start = out->length;
  shoal_text_add(out, letters, 4);
}

static void close_chunk(shoal_text *out, size_t start) {
  if (out->failed) return;
  uint32_t length = (uint32_t)(out->length - start - 4);
  uint8_t *before = (uint8_t *)out->bytes + start - 4;
  for (int i = 0; i < 4; i++) before[i] = (uint8_t)(length >> (24 - 8 * i));
  add_u32(out, (uint32_t)crc32(0, (const Bytef *)out->bytes + start, length + 4));
}

void shoal_apng_count(shoal_text *out, uint32_t pictures) {
  size_t chunk;
  open_chunk(out, "acTL", &chunk);
  add_u32(out, pictures);
  add_u32(out, 0);
  close_chunk(out, chunk);
}

void shoal_apng_begin(shoal_text *out, uint32_t width, uint32_t height, const uint8_t rgb[SHOAL_COLOURS][3]) {
  size_t chunk;
  shoal_text_add(out, "\x89PNG\r\n\x1a\n", 8);
  open_chunk(out, "IHDR", &chunk);
  add_u32(out, width);
  add_u32(out, height);
  shoal_text_add(out, (const uint8_t[]){DEPTH, INDEXED, 0, 0, 0}, 5);
  close_chunk(out, chunk);
  shoal_apng_count(out, 1);
  open_chunk(out, "PLTE", &chunk);
  shoal_text_add(out, rgb, SHOAL_COLOURS * sizeof rgb[0]);
  close_chunk(out, chunk);
}

static void add_control(shoal_text *out, uint32_t sequence, const shoal_part *part, uint32_t ticks) {
  size_t chunk;
  open_chunk(out, "fcTL", &chunk);
  add_u32(out, sequence);
  add_u32(out, part->width);
  add_u32(out, part->height);
  add_u32(out, part->x);
  add_u32(out, part->y);
  add_u32(out, ticks << 16 | SHOAL_APNG_TICKS);
  shoal_text_add(out, (const uint8_t[]){0, 0}, 2);
  close_chunk(out, chunk);
}

/* The pixels as zlib's stream, at the end of `out`. */
static void add_pixels(shoal_text *out, const shoal_part *part) {
  size_t row = (size_t)part->width + 1, raw_bytes = row * part->height;
  uLongf packed_bytes = compressBound((uLong)raw_bytes);
  uint8_t *raw = malloc(raw_bytes), *packed = malloc(packed_bytes);
  bool done = raw && packed;
  for (uint32_t y = 0; done && y < part->height; y++) {
    raw[y * row] = 0;
    memcpy(raw + y * row + 1, part->pixels + (size_t)y * part->stride, part->width);
  }
  done = done && compress2(packed, &packed_bytes, raw, (uLong)raw_bytes, Z_BEST_COMPRESSION) == Z_OK;
  if (done)
    shoal_text_add(out, packed, packed_bytes);
  else
    out->failed = true;
  free(raw);
  free(packed);
}

void shoal_apng_add(shoal_text *out, uint32_t *sequence, const shoal_part *part, uint32_t ticks) {
  bool first = *sequence == 0;
  size_t chunk;
  add_control(out, (*sequence)++, part, ticks);
  open_chunk(out, first ? "IDAT" : "fdAT", &chunk);
  if (!first) add_u32(out, (*sequence)++);
  add_pixels(out, part);
  close_chunk(out, chunk);
}

void shoal_apng_end(shoal_text *out) {
  size_t chunk;
  open_chunk(out, "IEND", &chunk);
  close_chunk(out, chunk);
}
