/* canvas.h: a small picture that environments draw on.
 *
 * Shapes are kept as a list, in the units that the environment chose with shoal_canvas_view; who shows them
 * draws them as large as it likes: the terminal (characters), a GIF or APNG (pixels), the page (as JSON, on
 * its own canvas). The first shape lies below the later ones.
 *
 * Ownership: init, then release. Threads: none. */
#ifndef SHOAL_AGENT_CANVAS_H
#define SHOAL_AGENT_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* Colours by what they are for; who shows them has a palette, light or dark. */
typedef enum shoal_ink {
  SHOAL_INK_LINE,   /* ground, tracks, outlines */
  SHOAL_INK_BODY,   /* what moves */
  SHOAL_INK_ACCENT, /* what matters about it: a pole, a wheel, a flame */
  SHOAL_INK_GOAL,
  SHOAL_INK_FAINT, /* hints and backgrounds */
  SHOAL_INKS,
} shoal_ink;

enum { SHOAL_SHAPE_POINTS_MAX = 32 };

typedef struct shoal_shape_drawn {
  enum { SHOAL_DRAWN_LINE, SHOAL_DRAWN_AREA, SHOAL_DRAWN_DISC } form; /* open line; filled polygon; disc */
  shoal_ink ink;
  float width; /* LINE: of the pen; DISC: its radius */
  uint32_t points_count;
  float points[SHOAL_SHAPE_POINTS_MAX][2]; /* x to the right, y up; DISC: its centre */
} shoal_shape_drawn;

typedef struct shoal_canvas {
  float left, right, bottom, top; /* what is seen */
  uint32_t shapes_count, capacity;
  shoal_shape_drawn *shapes;
  bool failed; /* memory ran out: some shapes are missing */
} shoal_canvas;

void shoal_canvas_init(shoal_canvas *canvas);
void shoal_canvas_release(shoal_canvas *canvas);
/* Removes all shapes, and says what part of the plane is seen. */
void shoal_canvas_view(shoal_canvas *canvas, float left, float right, float bottom, float top);
void shoal_canvas_line(shoal_canvas *canvas, shoal_ink ink, float width, const float (*points)[2],
                       uint32_t count);
void shoal_canvas_area(shoal_canvas *canvas, shoal_ink ink, const float (*points)[2], uint32_t count);
void shoal_canvas_box(shoal_canvas *canvas, shoal_ink ink, float left, float right, float bottom, float top);
void shoal_canvas_disc(shoal_canvas *canvas, shoal_ink ink, float x, float y, float radius);

/* {"view":[l,r,b,t],"shapes":[{"form":"line","ink":"body","width":w,"points":[x,y,x,y,...]},...]} */
void shoal_canvas_json(const shoal_canvas *canvas, shoal_text *out);

/* As pixels, a colour's number each (0: the background; else 1 + ink), rows from the top; the view is fitted
 * into the picture and keeps its proportions. */
void shoal_canvas_pixels(const shoal_canvas *canvas, uint32_t width, uint32_t height, uint8_t *pixels);

#endif
