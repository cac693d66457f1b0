/* svg.h: curves as a picture for the web: a plain SVG file, readable on light and on dark pages.
 *
 * Axes begin at 0; where x goes beyond 200 both are logarithmic and begin at 1. Every series has a
 * colour and a mark of its own, and its name at its last point. Pure. */
#ifndef SHOAL_CLI_SVG_H
#define SHOAL_CLI_SVG_H

#include "cli/chart.h"

typedef struct shoal_svg {
  const char *title, *x_name, *y_name;
  const shoal_series *series;
  size_t series_count;
  bool ideal; /* the line y = x, dashed */
} shoal_svg;

/* Adds the whole file to out. */
void shoal_svg_draw(const shoal_svg *plot, shoal_text *out);

#endif
