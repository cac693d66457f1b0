/* screen.h: a canvas drawn over itself in the terminal.
 *
 * A character is two pixels, one above the other: an upper half block (U+2580) in the colour of the upper
 * one, on the colour of the lower one. Where the terminal has no UTF-8 or no colours, a character stands
 * for what there is most of at its place. The picture is as large as the window lets it be, whatever size
 * that has just now; under it is a line of text.
 *
 * Ownership: init, then release, which leaves the last picture standing and the cursor below it. Threads:
 * one. */
#ifndef SHOAL_CLI_SCREEN_H
#define SHOAL_CLI_SCREEN_H

#include <stdio.h>

#include "agent/canvas.h"

typedef enum shoal_screen_colours {
  SHOAL_COLOURS_NONE, /* characters only */
  SHOAL_COLOURS_256,
  SHOAL_COLOURS_ALL, /* 24 bits */
} shoal_screen_colours;

typedef struct shoal_screen_form {
  uint32_t columns, rows; /* of characters */
  shoal_screen_colours colours;
  bool dark;
} shoal_screen_form;

/* As many columns and rows as keep the canvas's proportions and fit in so many. Pure. */
void shoal_screen_fit(const shoal_canvas *canvas, uint32_t columns_max, uint32_t rows_max,
                      shoal_screen_form *form);
/* The picture, `rows` lines that each end in "\n". Pure; out->failed when memory runs out. */
void shoal_screen_picture(shoal_text *out, const shoal_canvas *canvas, const shoal_screen_form *form);

typedef struct shoal_screen {
  FILE *stream;
  shoal_screen_form form; /* of the picture that stands there */
  bool drawn;
  uint32_t columns, rows; /* of the window at that time */
} shoal_screen;

/* What the terminal says about its background, where it says so. */
bool shoal_screen_is_dark(void);
void shoal_screen_init(shoal_screen *screen, FILE *stream, bool dark);
void shoal_screen_show(shoal_screen *screen, const shoal_canvas *canvas, const char *line);
void shoal_screen_release(shoal_screen *screen);

#endif
