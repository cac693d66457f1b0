/* chart.h: a curve in a terminal.
 *
 *   0.912 ┤⡇
 *         │⠘⢄
 *   0.611 ┤ ⠈⠢⢄○
 *         │    ⠉⠒⠤⣀⣀○
 *   0.310 ┤         ⠉⠒○
 *         └────────────
 *          1  epoch  3   ⠤ train  ○ test
 *
 * One series is a line of braille dots, the other is marks, so that the two can be told
 * apart without colours. Without UTF-8 everything is ASCII. Pure. */
#ifndef SHOAL_CLI_CHART_H
#define SHOAL_CLI_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

typedef struct shoal_chart_point {
  double x, y;
} shoal_chart_point;

/* Points stand in the order of x. Those with a y that is not finite are left out. */
typedef struct shoal_series {
  const char *name;
  const shoal_chart_point *points;
  size_t count;
} shoal_series;

typedef struct shoal_chart {
  shoal_series line, marks;
  const char *x_name;
  uint32_t width, height; /* of the whole chart, in characters */
  bool utf8, colour;
} shoal_chart;

/* Adds the chart's lines to out, or nothing where there are not two points to draw. */
void shoal_chart_draw(const shoal_chart *chart, shoal_text *out);

#endif
