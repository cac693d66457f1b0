/* apng.c: see apng.h.
 *
 * The chunks of a PNG (base/png.h), and those that make it move:
 *
 *   IHDR   as of every PNG
 *   acTL   pictures, times (0: for ever)
 *   PLTE   the colours
 *   fcTL   sequence, width, height, x, y, ticks and ticks a second (two bytes each), stays, replaces: a
 *          picture follows
 *   IDAT   the first one's pixels, compressed
 *   fdAT   sequence, the pixels of a later one
 *   IEND */
#include "agent/apng.h"

#include "base/png.h"

void shoal_apng_count(shoal_text *out, uint32_t pictures) {
  size_t chunk = shoal_png_open(out, "acTL");
  shoal_png_u32(out, pictures);
  shoal_png_u32(out, 0);
  shoal_png_close(out, chunk);
}

void shoal_apng_begin(shoal_text *out, uint32_t width, uint32_t height, const uint8_t rgb[SHOAL_COLOURS][3]) {
  shoal_png_begin(out, width, height, SHOAL_PNG_INDEXED);
  shoal_apng_count(out, 1);
  size_t chunk = shoal_png_open(out, "PLTE");
  shoal_text_add(out, rgb, SHOAL_COLOURS * sizeof rgb[0]);
  shoal_png_close(out, chunk);
}

static void add_control(shoal_text *out, uint32_t sequence, const shoal_part *part, uint32_t ticks) {
  size_t chunk = shoal_png_open(out, "fcTL");
  shoal_png_u32(out, sequence);
  shoal_png_u32(out, part->width);
  shoal_png_u32(out, part->height);
  shoal_png_u32(out, part->x);
  shoal_png_u32(out, part->y);
  shoal_png_u32(out, ticks << 16 | SHOAL_APNG_TICKS);
  shoal_text_add(out, (const uint8_t[]){0, 0}, 2);
  shoal_png_close(out, chunk);
}

void shoal_apng_add(shoal_text *out, uint32_t *sequence, const shoal_part *part, uint32_t ticks) {
  bool first = *sequence == 0;
  add_control(out, (*sequence)++, part, ticks);
  size_t chunk = shoal_png_open(out, first ? "IDAT" : "fdAT");
  if (!first) shoal_png_u32(out, (*sequence)++);
  shoal_png_pixels(out, part->pixels, part->width, part->height, part->stride);
  shoal_png_close(out, chunk);
}

void shoal_apng_end(shoal_text *out) { shoal_png_end(out); }
