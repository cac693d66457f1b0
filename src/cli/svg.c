/* svg.c: see svg.h. */
#include "cli/svg.h"

#include <math.h>
#include <stdio.h>

enum { WIDTH = 720, HEIGHT = 440, LEFT = 64, RIGHT = 132, TOP = 44, BOTTOM = 52, COLOURS = 6, MARKS = 4 };
enum { LABEL_HEIGHT = 15, LABELS_MAX = 32 };
static const double LOGARITHMIC_FROM = 200;

/* Told apart without colours by their marks; both sets have enough contrast on their ground. */
static const char *const light[COLOURS] = {"#0b63c5", "#b4490a", "#1a7f37", "#8250df", "#a40e4c", "#57606a"};
static const char *const dark[COLOURS] = {"#6cb6ff", "#f69d50", "#57c46c", "#b392f0", "#f47ca8", "#9da7b1"};

typedef struct frame {
  double x_max, y_max;
  bool logarithmic;
} frame;

static double share(double value, double max, bool logarithmic) {
  return logarithmic ? log(fmax(value, 1)) / log(max) : value / max;
}

static double at_x(const frame *f, double x) {
  return LEFT + share(x, f->x_max, f->logarithmic) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const frame *f, double y) {
  return HEIGHT - BOTTOM - share(y, f->y_max, f->logarithmic) * (HEIGHT - TOP - BOTTOM);
}

/* A round step that gives about five of them. */
static double step_of(double max) {
  double rough = max / 5, power = pow(10, floor(log10(rough))), digit = rough / power;
  return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

static frame make_frame(const shoal_svg *plot) {
  frame f = {.x_max = 1, .y_max = 1};
  for (size_t s = 0; s < plot->series_count; s++)
    for (size_t i = 0; i < plot->series[s].count; i++) {
      const shoal_chart_point *p = &plot->series[s].points[i];
      if (isfinite(p->x)) f.x_max = fmax(f.x_max, p->x);
      if (isfinite(p->y)) f.y_max = fmax(f.y_max, p->y);
    }
  if (plot->ideal) f.y_max = fmax(f.y_max, f.x_max);
  f.logarithmic = f.x_max > LOGARITHMIC_FROM;
  if (f.logarithmic) {
    f.x_max = pow(10, ceil(log10(f.x_max)));
    f.y_max = pow(10, fmax(1, ceil(log10(f.y_max)))); /* from 1 to 1 there is no scale */
  } else {
    f.x_max = ceil(f.x_max / step_of(f.x_max)) * step_of(f.x_max);
    f.y_max = ceil(f.y_max / step_of(f.y_max)) * step_of(f.y_max);
  }
  return f;
}

static void add_text(shoal_text *out, const char *text) {
  for (; *text != '\0'; text++) {
    if (*text == '<')
      shoal_text_addf(out, "&lt;");
    else if (*text == '&')
      shoal_text_addf(out, "&amp;");
    else
      shoal_text_add(out, text, 1);
  }
}

static void add_head(const shoal_svg *plot, shoal_text *out) {
  shoal_text_addf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" "
                  "font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<title>",
                  WIDTH, HEIGHT);
  add_text(out, plot->title);
  shoal_text_addf(out, "</title>\n<style>\n"
                       "  text { fill: #24292f } .grid { stroke: #d0d7de } .ideal { stroke: #6e7781 }\n"
                       "  .back { fill: #ffffff } .line { fill: none; stroke-width: 2 }\n");
  for (int i = 0; i < COLOURS; i++)
    shoal_text_addf(out, "  .s%d { stroke: %s } .m%d { fill: %s }\n", i, light[i], i, light[i]);
  shoal_text_addf(out, "  @media (prefers-color-scheme: dark) {\n"
                       "    text { fill: #e6edf3 } .grid { stroke: #373e47 } .ideal { stroke: #9da7b1 }\n"
                       "    .back { fill: #0d1117 }\n");
  for (int i = 0; i < COLOURS; i++)
    shoal_text_addf(out, "    .s%d { stroke: %s } .m%d { fill: %s }\n", i, dark[i], i, dark[i]);
  shoal_text_addf(out, "  }\n</style>\n<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n", WIDTH, HEIGHT);
}

static void add_x_tick(const frame *f, double value, shoal_text *out) {
  double x = at_x(f, value);
  shoal_text_addf(out,
                  "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n"
                  "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n",
                  x, TOP, x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 18, value);
}

static void add_y_tick(const frame *f, double value, shoal_text *out) {
  double y = at_y(f, value);
  shoal_text_addf(out,
                  "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n"
                  "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                  LEFT, y, WIDTH - RIGHT, y, LEFT - 8, y + 4, value);
}

static void add_axes(const shoal_svg *plot, const frame *f, shoal_text *out) {
  const double max[2] = {f->x_max, f->y_max};
  void (*const add[2])(const frame *, double, shoal_text *) = {add_x_tick, add_y_tick};
  for (int axis = 0; axis < 2; axis++) {
    double step = step_of(max[axis]);
    for (double v = f->logarithmic ? 1 : 0; v <= max[axis] * 1.0001; v = f->logarithmic ? v * 10 : v + step)
      add[axis](f, v, out);
  }
  shoal_text_addf(out, "<text x=\"%d\" y=\"24\" font-size=\"15\">", LEFT);
  add_text(out, plot->title);
  shoal_text_addf(out, "</text>\n<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", (LEFT + WIDTH - RIGHT) / 2,
                  HEIGHT - 12);
  add_text(out, plot->x_name);
  shoal_text_addf(out, "</text>\n<text transform=\"translate(18 %d) rotate(-90)\" text-anchor=\"middle\">",
                  (TOP + HEIGHT - BOTTOM) / 2);
  add_text(out, plot->y_name);
  shoal_text_addf(out, "</text>\n");
}

static void add_mark(size_t series, double x, double y, shoal_text *out) {
  unsigned colour = series % COLOURS;
  switch (series % MARKS) {
  case 0:
    shoal_text_addf(out, "<circle class=\"m%u\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", colour, x, y);
    break;
  case 1:
    shoal_text_addf(out, "<rect class=\"m%u\" x=\"%.1f\" y=\"%.1f\" width=\"7\" height=\"7\"/>\n", colour,
                    x - 3.5, y - 3.5);
    break;
  case 2:
    shoal_text_addf(out, "<path class=\"m%u\" d=\"M%.1f %.1fl5 9h-10z\"/>\n", colour, x, y - 5.5);
    break;
  default:
    shoal_text_addf(out, "<path class=\"m%u\" d=\"M%.1f %.1fl5 5l-5 5l-5 -5z\"/>\n", colour, x, y - 5);
    break;
  }
}

static const shoal_chart_point *last_point(const shoal_series *series) {
  for (size_t i = series->count; i > 0; i--)
    if (isfinite(series->points[i - 1].y)) return &series->points[i - 1];
  return NULL;
}

static void add_series(const shoal_series *series, size_t number, const frame *f, shoal_text *out) {
  shoal_text_addf(out, "<polyline class=\"line s%u\" points=\"", (unsigned)(number % COLOURS));
  for (size_t i = 0; i < series->count; i++)
    if (isfinite(series->points[i].y))
      shoal_text_addf(out, "%.1f,%.1f ", at_x(f, series->points[i].x), at_y(f, series->points[i].y));
  shoal_text_addf(out, "\"/>\n");
  for (size_t i = 0; i < series->count; i++)
    if (isfinite(series->points[i].y))
      add_mark(number, at_x(f, series->points[i].x), at_y(f, series->points[i].y), out);
}

/* Names beside the last points, moved apart where they would lie on each other. */
static void add_names(const shoal_svg *plot, const frame *f, shoal_text *out) {
  double taken[LABELS_MAX];
  size_t count = 0;
  for (size_t s = 0; s < plot->series_count && count < LABELS_MAX; s++) {
    const shoal_chart_point *last = last_point(&plot->series[s]);
    if (last == NULL) continue;
    double y = at_y(f, last->y) + 4;
    for (size_t i = 0; i < count; i++) {
      if (fabs(y - taken[i]) > LABEL_HEIGHT - 1) continue; /* rounding must not bring it back here */
      y = taken[i] + LABEL_HEIGHT;
      i = (size_t)-1; /* the new place may be taken too */
    }
    taken[count++] = y;
    add_mark(s, WIDTH - RIGHT + 14, y - 4, out);
    shoal_text_addf(out, "<text x=\"%d\" y=\"%.1f\">", WIDTH - RIGHT + 24, y);
    add_text(out, plot->series[s].name);
    shoal_text_addf(out, "</text>\n");
  }
}

void shoal_svg_draw(const shoal_svg *plot, shoal_text *out) {
  frame f = make_frame(plot);
  add_head(plot, out);
  add_axes(plot, &f, out);
  if (plot->ideal) {
    double end = fmin(f.x_max, f.y_max), start = f.logarithmic ? 1 : 0;
    shoal_text_addf(out,
                    "<line class=\"ideal\" stroke-dasharray=\"6 5\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
                    "y2=\"%.1f\"/>\n",
                    at_x(&f, start), at_y(&f, start), at_x(&f, end), at_y(&f, end));
  }
  for (size_t s = 0; s < plot->series_count; s++) add_series(&plot->series[s], s, &f, out);
  add_names(plot, &f, out);
  shoal_text_addf(out, "</svg>\n");
}
