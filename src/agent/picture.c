/* picture.c: see picture.h. */
#include "agent/picture.h"

#include <string.h>

/* The page's own colours (web/style/colours.css). */
static const uint8_t LIGHT[SHOAL_COLOURS_PLAIN][3] = {
    {0xff, 0xff, 0xff}, /* the background */
    [1 + SHOAL_INK_LINE] = {0x4f, 0x63, 0x6c},
    [1 + SHOAL_INK_BODY] = {0x0b, 0x6b, 0x74},
    [1 + SHOAL_INK_ACCENT] = {0xb4, 0x47, 0x0f},
    [1 + SHOAL_INK_GOAL] = {0x1c, 0x8b, 0x4a},
    [1 + SHOAL_INK_FAINT] = {0xdb, 0xe4, 0xe7},
};
static const uint8_t DARK[SHOAL_COLOURS_PLAIN][3] = {
    {0x12, 0x22, 0x29},
    [1 + SHOAL_INK_LINE] = {0xa3, 0xb8, 0xc0},
    [1 + SHOAL_INK_BODY] = {0x63, 0xcb, 0xd2},
    [1 + SHOAL_INK_ACCENT] = {0xf2, 0xa3, 0x6b},
    [1 + SHOAL_INK_GOAL] = {0x7f, 0xd4, 0x9d},
    [1 + SHOAL_INK_FAINT] = {0x26, 0x40, 0x4a},
};

/* The number of the colour that has `quarters` (1 to 3) of b and the rest of a; a < b. */
static uint8_t mixture(uint32_t a, uint32_t b, uint32_t quarters) {
  uint32_t pair = a * (2 * SHOAL_COLOURS_PLAIN - a - 1) / 2 + (b - a - 1);
  return (uint8_t)(SHOAL_COLOURS_PLAIN + 3 * pair + quarters - 1);
}

void shoal_colours(bool dark, uint8_t rgb[SHOAL_COLOURS][3]) {
  const uint8_t(*plain)[3] = dark ? DARK : LIGHT;
  memcpy(rgb, plain, sizeof LIGHT);
  for (uint32_t a = 0; a < SHOAL_COLOURS_PLAIN; a++)
    for (uint32_t b = a + 1; b < SHOAL_COLOURS_PLAIN; b++)
      for (uint32_t quarters = 1; quarters < 4; quarters++)
        for (int part = 0; part < 3; part++)
          rgb[mixture(a, b, quarters)][part] =
              (uint8_t)(((4 - quarters) * plain[a][part] + quarters * plain[b][part] + 2) / 4);
}

/* Four pixels as one. Where three or four colours meet, the two that there is most of share the rest. */
static uint8_t blend(uint8_t p, uint8_t q, uint8_t r, uint8_t s) {
  if (p == q && q == r && r == s) return p;
  uint8_t counts[SHOAL_COLOURS_PLAIN] = {0};
  counts[p]++;
  counts[q]++;
  counts[r]++;
  counts[s]++;
  uint32_t most = 0, second = SHOAL_COLOURS_PLAIN;
  for (uint32_t i = 1; i < SHOAL_COLOURS_PLAIN; i++)
    if (counts[i] > counts[most]) most = i;
  for (uint32_t i = 0; i < SHOAL_COLOURS_PLAIN; i++)
    if (i != most && (second == SHOAL_COLOURS_PLAIN || counts[i] > counts[second])) second = i;
  uint32_t of_second = counts[second];
  return most < second ? mixture(most, second, of_second) : mixture(second, most, 4 - of_second);
}

void shoal_picture_draw(const shoal_canvas *canvas, uint32_t width, uint32_t height, uint8_t *scratch,
                        uint8_t *pixels) {
  size_t row = (size_t)2 * width;
  shoal_canvas_pixels(canvas, 2 * width, 2 * height, scratch);
  for (uint32_t y = 0; y < height; y++) {
    const uint8_t *upper = scratch + 2 * y * row, *lower = upper + row;
    uint8_t *out = pixels + (size_t)y * width;
    for (uint32_t x = 0; x < width; x++)
      out[x] = blend(upper[2 * x], upper[2 * x + 1], lower[2 * x], lower[2 * x + 1]);
  }
}

bool shoal_picture_changed(const uint8_t *before, const uint8_t *pixels, uint32_t width, uint32_t height,
                           shoal_part *out) {
  *out = (shoal_part){0, 0, width, height, width, pixels};
  if (!before) return true;
  uint32_t left = width, right = 0, top = height, bottom = 0;
  for (uint32_t y = 0; y < height; y++) {
    const uint8_t *a = before + (size_t)y * width, *b = pixels + (size_t)y * width;
    if (memcmp(a, b, width) == 0) continue;
    uint32_t first = 0, last = width - 1;
    while (a[first] == b[first]) first++;
    while (a[last] == b[last]) last--;
    if (first < left) left = first;
    if (last > right) right = last;
    if (y < top) top = y;
    bottom = y;
  }
  if (top == height) return false;
  out->x = left;
  out->y = top;
  out->width = right - left + 1;
  out->height = bottom - top + 1;
  out->pixels = pixels + (size_t)top * width + left;
  return true;
}
