/* chart.c: a curve in a terminal.
 *
 * The plot is a grid of characters, each of 2 x 4 dots where the terminal shows braille, else of one.
 * Values become dots, dots become characters, and the axes are written around them. */
#include "cli/chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/human.h"

/* A braille character is 2 dots wide and 4 high; ASCII has one dot a character. */
enum { DOTS_X = 2, DOTS_Y = 4, PLOT_WIDTH_MIN = 16, PLOT_HEIGHT_MIN = 3 };

typedef struct plot {
  uint32_t width, height;  /* in characters */
  uint32_t dots_x, dots_y; /* in a character */
  double x_min, x_max, y_min, y_max;
  uint8_t *dots; /* a character's dots, in the bits of its braille number */
  bool *marks;
} plot;

/* ---- scales ------------------------------------------------------------------------- */

static void widen(plot *p, const shoal_series *series, size_t *points) {
  for (size_t i = 0; i < series->count; i++) {
    shoal_chart_point point = series->points[i];
    if (!isfinite(point.y)) continue;
    p->x_min = fmin(p->x_min, point.x);
    p->x_max = fmax(p->x_max, point.x);
    p->y_min = fmin(p->y_min, point.y);
    p->y_max = fmax(p->y_max, point.y);
    ++*points;
  }
}

/* The dot, from the left and from the top, that a value falls on. */
static long dot_x(const plot *p, double x) {
  return lround((x - p->x_min) / (p->x_max - p->x_min) * (p->width * p->dots_x - 1));
}

static long dot_y(const plot *p, double y) {
  return lround((p->y_max - y) / (p->y_max - p->y_min) * (p->height * p->dots_y - 1));
}

/* ---- drawing ------------------------------------------------------------------------ */

static void set_dot(plot *p, long x, long y) {
  /* Unicode numbers the dots 1 2 3 7 down the left and 4 5 6 8 down the right. */
  static const uint8_t bits[DOTS_Y][DOTS_X] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
  size_t cell = (size_t)(y / p->dots_y) * p->width + (size_t)(x / p->dots_x);
  p->dots[cell] |= bits[y % p->dots_y][x % p->dots_x];
}

static void draw_segment(plot *p, long x0, long y0, long x1, long y1) {
  long steps = labs(x1 - x0) > labs(y1 - y0) ? labs(x1 - x0) : labs(y1 - y0);
  for (long i = 0; i <= steps; i++) {
    double share = steps ? (double)i / (double)steps : 0;
    set_dot(p, lround((double)x0 + share * (double)(x1 - x0)),
            lround((double)y0 + share * (double)(y1 - y0)));
  }
}

/* Points that share a column of dots are drawn as their mean: a curve of ten thousand noisy
 * rounds is then a line and not a blot. */
static void draw_line(plot *p, const shoal_series *series) {
  long last_x = -1, last_y = 0;
  for (size_t i = 0; i < series->count;) {
    long x = dot_x(p, series->points[i].x);
    double sum = 0;
    size_t count = 0;
    for (; i < series->count && dot_x(p, series->points[i].x) == x; i++) {
      if (isfinite(series->points[i].y)) {
        sum += series->points[i].y;
        count++;
      }
    }
    if (count == 0) continue;
    long y = dot_y(p, sum / (double)count);
    if (last_x < 0)
      set_dot(p, x, y);
    else
      draw_segment(p, last_x, last_y, x, y);
    last_x = x;
    last_y = y;
  }
}

/* Where marks would stand shoulder to shoulder, only some of them are drawn, the last always. */
static void draw_marks(plot *p, const shoal_series *series) {
  size_t every = series->count * 3 / p->width + 1;
  for (size_t i = 0; i < series->count; i++) {
    if ((series->count - 1 - i) % every != 0) continue;
    shoal_chart_point point = series->points[i];
    if (isfinite(point.y))
      p->marks[dot_y(p, point.y) / p->dots_y * p->width + dot_x(p, point.x) / p->dots_x] = true;
  }
}

/* ---- writing ------------------------------------------------------------------------ */

typedef struct pens {
  const char *line, *marks, *dim, *off; /* colours, or empty */
  const char *mark, *line_sample, *axis, *tick, *corner, *floor;
} pens;

static pens pens_for(const shoal_chart *chart) {
  pens pen = {.line = "", .marks = "", .dim = "", .off = ""};
  if (chart->colour)
    pen = (pens){.line = "\x1b[36m", .marks = "\x1b[33m", .dim = "\x1b[2m", .off = "\x1b[0m"};
  pen.mark = chart->utf8 ? "○" : "o";
  pen.line_sample = chart->utf8 ? "⠤" : "*";
  pen.axis = chart->utf8 ? "│" : "|";
  pen.tick = chart->utf8 ? "┤" : "+";
  pen.corner = chart->utf8 ? "└" : "+";
  pen.floor = chart->utf8 ? "─" : "-";
  return pen;
}

static void add_cell(shoal_text *out, const pens *pen, bool utf8, uint8_t dots, bool mark) {
  if (mark) {
    shoal_text_addf(out, "%s%s%s", pen->marks, pen->mark, pen->off);
  } else if (!dots) {
    shoal_text_add(out, " ", 1);
  } else if (!utf8) {
    shoal_text_addf(out, "%s*%s", pen->line, pen->off);
  } else {
    /* U+2800 and the dots, as three bytes of UTF-8. */
    unsigned char bytes[] = {0xe2, (unsigned char)(0xa0 | dots >> 6), (unsigned char)(0x80 | (dots & 0x3f)),
                             0};
    shoal_text_addf(out, "%s%s%s", pen->line, (const char *)bytes, pen->off);
  }
}

static void write_rows(const shoal_chart *chart, const plot *p, const pens *pen, int label_width,
                       shoal_text *out) {
  for (uint32_t row = 0; row < p->height; row++) {
    bool labelled = row == 0 || row == p->height - 1 || (p->height % 2 == 1 && row == p->height / 2);
    if (labelled) {
      double value = p->y_max - (p->y_max - p->y_min) * row / (p->height - 1);
      shoal_text_addf(out, "%s%*s %s%s", pen->dim, label_width, shoal_human_number(value).text, pen->tick,
                      pen->off);
    } else {
      shoal_text_addf(out, "%s%*s %s%s", pen->dim, label_width, "", pen->axis, pen->off);
    }
    uint32_t last = p->width;
    while (last > 0 && !p->dots[row * p->width + last - 1] && !p->marks[row * p->width + last - 1]) last--;
    for (uint32_t column = 0; column < last; column++) {
      size_t cell = row * p->width + column;
      add_cell(out, pen, chart->utf8, p->dots[cell], p->marks[cell]);
    }
    shoal_text_add(out, "\n", 1);
  }
}

static void write_floor(const shoal_chart *chart, const plot *p, const pens *pen, int label_width,
                        shoal_text *out) {
  shoal_text_addf(out, "%s%*s %s", pen->dim, label_width, "", pen->corner);
  for (uint32_t i = 0; i < p->width; i++) shoal_text_addf(out, "%s", pen->floor);

  char first[32], last[32];
  snprintf(first, sizeof first, "%.6g", p->x_min);
  snprintf(last, sizeof last, "%.6g", p->x_max);
  size_t used = strlen(first) + strlen(last) + strlen(chart->x_name);
  size_t free_columns = p->width > used ? p->width - used : 2;
  shoal_text_addf(out, "\n%*s  %s%*s%s%*s%s%s\n", label_width, "", first, (int)(free_columns / 2), "",
                  chart->x_name, (int)(free_columns - free_columns / 2), "", last, pen->off);

  shoal_text_addf(out, "%*s  %s%s%s%s%s %s", label_width, "", pen->line, pen->line_sample, pen->line_sample,
                  pen->line_sample, pen->off, chart->line.name);
  if (chart->marks.count > 0)
    shoal_text_addf(out, "   %s%s%s %s", pen->marks, pen->mark, pen->off, chart->marks.name);
  shoal_text_add(out, "\n", 1);
}

void shoal_chart_draw(const shoal_chart *chart, shoal_text *out) {
  plot p = {.x_min = INFINITY, .x_max = -INFINITY, .y_min = INFINITY, .y_max = -INFINITY};
  size_t points = 0;
  widen(&p, &chart->line, &points);
  widen(&p, &chart->marks, &points);
  if (points < 2 || p.x_min == p.x_max) return;
  /* A flat curve gets some room above and below. */
  if (p.y_max - p.y_min < 1e-9 * fmax(fabs(p.y_max), 1e-9)) {
    p.y_max += fmax(fabs(p.y_max), 1e-9) * 0.1;
    p.y_min -= fmax(fabs(p.y_min), 1e-9) * 0.1;
  }

  int label_width = (int)strlen(shoal_human_number(p.y_max).text);
  int low_width = (int)strlen(shoal_human_number(p.y_min).text);
  label_width = (label_width > low_width ? label_width : low_width) + 1;
  uint32_t margin = (uint32_t)label_width + 3;
  p.width = chart->width > margin + PLOT_WIDTH_MIN ? chart->width - margin : PLOT_WIDTH_MIN;
  p.height = chart->height > PLOT_HEIGHT_MIN + 3 ? chart->height - 3 : PLOT_HEIGHT_MIN;
  p.dots_x = chart->utf8 ? DOTS_X : 1;
  p.dots_y = chart->utf8 ? DOTS_Y : 1;

  size_t cells = (size_t)p.width * p.height;
  p.dots = calloc(cells, 1);
  p.marks = calloc(cells, sizeof *p.marks);
  if (p.dots && p.marks) {
    draw_line(&p, &chart->line);
    draw_marks(&p, &chart->marks);
    pens pen = pens_for(chart);
    write_rows(chart, &p, &pen, label_width, out);
    write_floor(chart, &p, &pen, label_width, out);
  }
  free(p.dots);
  free(p.marks);
}
