/* png.h: PNG pictures as bytes, whole or chunk by chunk.
 *
 * Ownership: none; when memory runs out, out->failed is set. Threads: any. */
#ifndef SHOAL_BASE_PNG_H
#define SHOAL_BASE_PNG_H

#include "base/text.h"

typedef enum shoal_png_colours {
  SHOAL_PNG_GREY = 0,
  SHOAL_PNG_RGB = 2,
  SHOAL_PNG_INDEXED = 3
} shoal_png_colours;

/* A picture: rows from the top, one byte a pixel, or three. */
void shoal_png_write(shoal_text *out, uint32_t width, uint32_t height, shoal_png_colours colours,
                     const uint8_t *pixels);
/* The bytes of a picture as an address that browsers show: "data:image/png;base64,...". */
void shoal_png_address(shoal_text *out, const shoal_text *png);

/* What files of several pictures (agent/apng.h) are made of. */
void shoal_png_begin(shoal_text *out, uint32_t width, uint32_t height, shoal_png_colours colours);
void shoal_png_u32(shoal_text *out, uint32_t number);
/* A chunk is begun, filled and closed; `start` is what open has returned. */
size_t shoal_png_open(shoal_text *out, const char letters[5]);
void shoal_png_close(shoal_text *out, size_t start);
/* Rows as zlib's stream; each begins `stride` bytes after the one before. */
void shoal_png_pixels(shoal_text *out, const uint8_t *pixels, size_t row_bytes, uint32_t rows, size_t stride);
void shoal_png_end(shoal_text *out);

#endif
