/* png.c: see png.h.
 *
 * A PNG is eight bytes and then chunks: length, four letters, that many bytes, CRC-32 of letters and bytes.
 *
 *   IHDR   width, height, bits of a pixel, kind of colours, three zeros
 *   IDAT   the pixels, compressed; a zero in front of every row, for "as it is"
 *   IEND
 *
 * Numbers are of four bytes, the high one first. */
#include "base/png.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { DEPTH = 8 };

void shoal_png_u32(shoal_text *out, uint32_t number) {
  const uint8_t bytes[4] = {(uint8_t)(number >> 24), (uint8_t)(number >> 16), (uint8_t)(number >> 8),
                            (uint8_t)number};
  shoal_text_add(out, bytes, sizeof bytes);
}

size_t shoal_png_open(shoal_text *out, const char letters[5]) {
  shoal_png_u32(out, 0);
  size_t start = out->length;
  shoal_text_add(out, letters, 4);
  return start;
}

void shoal_png_close(shoal_text *out, size_t start) {
  if (out->failed) return;
  uint32_t length = (uint32_t)(out->length - start - 4);
  uint8_t *before = (uint8_t *)out->bytes + start - 4;
  for (int i = 0; i < 4; i++) before[i] = (uint8_t)(length >> (24 - 8 * i));
  shoal_png_u32(out, (uint32_t)crc32(0, (const Bytef *)out->bytes + start, length + 4));
}

void shoal_png_begin(shoal_text *out, uint32_t width, uint32_t height, shoal_png_colours colours) {
  shoal_text_add(out, "\x89PNG\r\n\x1a\n", 8);
  size_t chunk = shoal_png_open(out, "IHDR");
  shoal_png_u32(out, width);
  shoal_png_u32(out, height);
  shoal_text_add(out, (const uint8_t[]){DEPTH, (uint8_t)colours, 0, 0, 0}, 5);
  shoal_png_close(out, chunk);
}

void shoal_png_pixels(shoal_text *out, const uint8_t *pixels, size_t row_bytes, uint32_t rows,
                      size_t stride) {
  size_t row = row_bytes + 1, raw_bytes = row * rows;
  uLongf packed_bytes = compressBound((uLong)raw_bytes);
  uint8_t *raw = malloc(raw_bytes), *packed = malloc(packed_bytes);
  bool done = raw && packed;
  for (uint32_t y = 0; done && y < rows; y++) {
    raw[y * row] = 0;
    memcpy(raw + y * row + 1, pixels + y * stride, row_bytes);
  }
  done = done && compress2(packed, &packed_bytes, raw, (uLong)raw_bytes, Z_BEST_COMPRESSION) == Z_OK;
  if (done)
    shoal_text_add(out, packed, packed_bytes);
  else
    out->failed = true;
  free(raw);
  free(packed);
}

void shoal_png_end(shoal_text *out) { shoal_png_close(out, shoal_png_open(out, "IEND")); }

void shoal_png_write(shoal_text *out, uint32_t width, uint32_t height, shoal_png_colours colours,
                     const uint8_t *pixels) {
  size_t row = (size_t)width * (colours == SHOAL_PNG_RGB ? 3 : 1);
  shoal_png_begin(out, width, height, colours);
  size_t chunk = shoal_png_open(out, "IDAT");
  shoal_png_pixels(out, pixels, row, height, row);
  shoal_png_close(out, chunk);
  shoal_png_end(out);
}

void shoal_png_address(shoal_text *out, const shoal_text *png) {
  char *letters = png->failed ? NULL : malloc(png->length / 3 * 4 + 5);
  out->failed |= letters == NULL;
  if (letters == NULL) return;
  EVP_EncodeBlock((unsigned char *)letters, (const unsigned char *)png->bytes, (int)png->length);
  shoal_text_addf(out, "data:image/png;base64,%s", letters);
  free(letters);
}
