/* picture.h: a canvas as a picture in few colours: what GIF and APNG are made of.
 *
 * A pixel is a colour's number. The first numbers are those of shoal_canvas_pixels: the background, then the
 * inks. Behind them come mixtures of two of these, in quarters, for edges: a picture is drawn at twice its
 * size, and each four pixels become one.
 *
 * Ownership: all memory is the caller's. Threads: none. */
#ifndef SHOAL_AGENT_PICTURE_H
#define SHOAL_AGENT_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/canvas.h"

enum {
  SHOAL_COLOURS_PLAIN = 1 + SHOAL_INKS,
  SHOAL_COLOURS_PAIRS = SHOAL_COLOURS_PLAIN * (SHOAL_COLOURS_PLAIN - 1) / 2,
  SHOAL_COLOURS = SHOAL_COLOURS_PLAIN + 3 * SHOAL_COLOURS_PAIRS,
  SHOAL_COLOUR_BITS = 6, /* that a colour's number needs */
};
_Static_assert(SHOAL_COLOURS <= 1 << SHOAL_COLOUR_BITS, "a colour's number needs more bits");

/* Red, green and blue of each colour. */
void shoal_colours(bool dark, uint8_t rgb[SHOAL_COLOURS][3]);

/* Rows from the top. `scratch` has 4 * width * height bytes. */
void shoal_picture_draw(const shoal_canvas *canvas, uint32_t width, uint32_t height, uint8_t *scratch,
                        uint8_t *pixels);

/* A part of a picture. */
typedef struct shoal_part {
  uint32_t x, y, width, height;
  uint32_t stride;       /* pixels from one row to the next */
  const uint8_t *pixels; /* the first of the part */
} shoal_part;

/* The least part of `pixels` that holds all that differs from `before`; all of it where that is NULL. False:
 * nothing differs. */
bool shoal_picture_changed(const uint8_t *before, const uint8_t *pixels, uint32_t width, uint32_t height,
                           shoal_part *out);

#endif
