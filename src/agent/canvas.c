/* canvas.c: see canvas.h. Pixels are filled row by row: a polygon between every other two of its edges, a
 * disc between its two ends; a line is a polygon for each of its pieces and a disc at each of its points. */
#include "agent/canvas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"

static const char *const ink_names[SHOAL_INKS] = {"line", "body", "accent", "goal", "faint"};
static const char *const form_names[] = {"line", "area", "disc"};

void shoal_canvas_init(shoal_canvas *canvas) { *canvas = (shoal_canvas){.right = 1, .top = 1}; }

void shoal_canvas_release(shoal_canvas *canvas) {
  free(canvas->shapes);
  shoal_canvas_init(canvas);
}

void shoal_canvas_view(shoal_canvas *canvas, float left, float right, float bottom, float top) {
  SHOAL_ASSERT(isfinite(left) && isfinite(right) && isfinite(bottom) && isfinite(top));
  SHOAL_ASSERT(left < right && bottom < top);
  canvas->left = left;
  canvas->right = right;
  canvas->bottom = bottom;
  canvas->top = top;
  canvas->shapes_count = 0;
  canvas->failed = false;
}

/* Room for one more; NULL: memory ran out. */
static shoal_shape_drawn *room(shoal_canvas *canvas) {
  if (canvas->shapes_count == canvas->capacity) {
    uint32_t capacity = canvas->capacity ? canvas->capacity * 2 : 16;
    shoal_shape_drawn *grown = realloc(canvas->shapes, capacity * sizeof *grown);
    if (!grown) {
      canvas->failed = true;
      return NULL;
    }
    canvas->shapes = grown;
    canvas->capacity = capacity;
  }
  return &canvas->shapes[canvas->shapes_count];
}

/* A state from elsewhere may put a shape anywhere, or nowhere: such a one is left out. */
static bool drawable(const float (*points)[2], uint32_t count) {
  static const float FAR = 1e6f;
  for (uint32_t i = 0; i < count; i++)
    if (!(fabsf(points[i][0]) <= FAR && fabsf(points[i][1]) <= FAR)) return false;
  return true;
}

static void add(shoal_canvas *canvas, int form, shoal_ink ink, float width, const float (*points)[2],
                uint32_t count) {
  SHOAL_ASSERT(count >= 1 && count <= SHOAL_SHAPE_POINTS_MAX && ink < SHOAL_INKS && width >= 0);
  shoal_shape_drawn *shape = room(canvas);
  if (!shape || !drawable(points, count)) return;
  *shape = (shoal_shape_drawn){.form = form, .ink = ink, .width = width, .points_count = count};
  memcpy(shape->points, points, count * sizeof *points);
  canvas->shapes_count++;
}

void shoal_canvas_line(shoal_canvas *canvas, shoal_ink ink, float width, const float (*points)[2],
                       uint32_t count) {
  add(canvas, SHOAL_DRAWN_LINE, ink, width, points, count);
}

void shoal_canvas_area(shoal_canvas *canvas, shoal_ink ink, const float (*points)[2], uint32_t count) {
  add(canvas, SHOAL_DRAWN_AREA, ink, 0, points, count);
}

void shoal_canvas_box(shoal_canvas *canvas, shoal_ink ink, float left, float right, float bottom, float top) {
  shoal_canvas_area(canvas, ink,
                    (const float[][2]){{left, bottom}, {right, bottom}, {right, top}, {left, top}}, 4);
}

void shoal_canvas_disc(shoal_canvas *canvas, shoal_ink ink, float x, float y, float radius) {
  add(canvas, SHOAL_DRAWN_DISC, ink, radius, (const float[][2]){{x, y}}, 1);
}

/* ---- JSON ------------------------------------------------------------------------------- */

/* Five digits are enough for a picture, and short. */
static void number(shoal_json *json, const char *key, float value) {
  char digits[32];
  int length = snprintf(digits, sizeof digits, "%.5g", (double)value);
  shoal_json_raw(json, key, digits, (size_t)length);
}

void shoal_canvas_json(const shoal_canvas *canvas, shoal_text *out) {
  shoal_json json;
  shoal_json_init(&json, out);
  shoal_json_open(&json, NULL, '{');
  shoal_json_open(&json, "view", '[');
  const float view[4] = {canvas->left, canvas->right, canvas->bottom, canvas->top};
  for (int i = 0; i < 4; i++) number(&json, NULL, view[i]);
  shoal_json_close(&json, ']');
  shoal_json_open(&json, "shapes", '[');
  for (uint32_t s = 0; s < canvas->shapes_count; s++) {
    const shoal_shape_drawn *shape = &canvas->shapes[s];
    shoal_json_open(&json, NULL, '{');
    shoal_json_text(&json, "form", form_names[shape->form]);
    shoal_json_text(&json, "ink", ink_names[shape->ink]);
    if (shape->form != SHOAL_DRAWN_AREA) number(&json, "width", shape->width);
    shoal_json_open(&json, "points", '[');
    for (uint32_t p = 0; p < shape->points_count; p++) {
      number(&json, NULL, shape->points[p][0]);
      number(&json, NULL, shape->points[p][1]);
    }
    shoal_json_close(&json, ']');
    shoal_json_close(&json, '}');
  }
  shoal_json_close(&json, ']');
  shoal_json_close(&json, '}');
}

/* ---- pixels ----------------------------------------------------------------------------- */

typedef struct picture {
  uint32_t width, height;
  uint8_t *pixels;
  double scale, left, top; /* a point (x, y) lies at ((x - left) * scale, (top - y) * scale) */
  uint8_t colour;
} picture;

typedef struct spot {
  double x, y;
} spot;

static spot place(const picture *to, const float point[2]) {
  return (spot){((double)point[0] - to->left) * to->scale, (to->top - (double)point[1]) * to->scale};
}

/* Pixels whose middle lies in [from, until) of a row. */
static void fill_row(const picture *to, uint32_t row, double from, double until) {
  double first = fmax(ceil(from - 0.5), 0), end = fmin(ceil(until - 0.5), (double)to->width);
  if (first < end)
    memset(to->pixels + (size_t)row * to->width + (uint32_t)first, to->colour, (size_t)(end - first));
}

/* The rows whose middle lies in [from, until). False: none is in the picture. */
static bool rows_of(const picture *to, double from, double until, uint32_t *first, uint32_t *end) {
  double a = fmax(ceil(from - 0.5), 0), b = fmin(ceil(until - 0.5), (double)to->height);
  if (!(a < b)) return false;
  *first = (uint32_t)a;
  *end = (uint32_t)b;
  return true;
}

static void fill_polygon(const picture *to, const spot *points, uint32_t count) {
  if (count < 3) return;
  double top = points[0].y, bottom = points[0].y;
  for (uint32_t i = 1; i < count; i++) {
    top = fmin(top, points[i].y);
    bottom = fmax(bottom, points[i].y);
  }
  uint32_t first, end;
  if (!rows_of(to, top, bottom, &first, &end)) return;
  for (uint32_t row = first; row < end; row++) {
    double middle = row + 0.5, crossings[SHOAL_SHAPE_POINTS_MAX];
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
      spot a = points[i], b = points[(i + 1) % count];
      if ((a.y <= middle) == (b.y <= middle)) continue;
      double x = a.x + (b.x - a.x) * (middle - a.y) / (b.y - a.y);
      uint32_t at = found++;
      for (; at > 0 && crossings[at - 1] > x; at--) crossings[at] = crossings[at - 1];
      crossings[at] = x;
    }
    for (uint32_t i = 0; i + 1 < found; i += 2) fill_row(to, row, crossings[i], crossings[i + 1]);
  }
}

static void fill_disc(const picture *to, spot centre, double radius) {
  uint32_t first, end;
  if (!rows_of(to, centre.y - radius, centre.y + radius, &first, &end)) return;
  for (uint32_t row = first; row < end; row++) {
    double off = row + 0.5 - centre.y, half = sqrt(fmax(radius * radius - off * off, 0));
    fill_row(to, row, centre.x - half, centre.x + half);
  }
}

/* A piece of a line, `half` to either side. */
static void fill_piece(const picture *to, spot a, spot b, double half) {
  double x = b.x - a.x, y = b.y - a.y, length = hypot(x, y);
  if (length == 0) return;
  x *= half / length;
  y *= half / length;
  spot corners[4] = {{a.x - y, a.y + x}, {b.x - y, b.y + x}, {b.x + y, b.y - x}, {a.x + y, a.y - x}};
  fill_polygon(to, corners, 4);
}

static void fill_shape(const picture *to, const shoal_shape_drawn *shape) {
  spot points[SHOAL_SHAPE_POINTS_MAX];
  uint32_t count = shape->points_count;
  for (uint32_t i = 0; i < count; i++) points[i] = place(to, shape->points[i]);
  double width = (double)shape->width * to->scale;
  switch (shape->form) {
  case SHOAL_DRAWN_LINE:
    width = fmax(width / 2, 0.5); /* a pixel at least */
    for (uint32_t i = 0; i + 1 < count; i++) fill_piece(to, points[i], points[i + 1], width);
    for (uint32_t i = 0; i < count; i++) fill_disc(to, points[i], width);
    break;
  case SHOAL_DRAWN_AREA: fill_polygon(to, points, count); break;
  case SHOAL_DRAWN_DISC: fill_disc(to, points[0], fmax(width, 0.5)); break;
  }
}

void shoal_canvas_pixels(const shoal_canvas *canvas, uint32_t width, uint32_t height, uint8_t *pixels) {
  memset(pixels, 0, (size_t)width * height);
  double across = (double)canvas->right - (double)canvas->left;
  double down = (double)canvas->top - (double)canvas->bottom;
  picture to = {.width = width, .height = height, .pixels = pixels};
  to.scale = fmin(width / across, height / down);
  to.left = (double)canvas->left - (width / to.scale - across) / 2;
  to.top = (double)canvas->top + (height / to.scale - down) / 2;
  for (uint32_t s = 0; s < canvas->shapes_count; s++) {
    to.colour = (uint8_t)(1 + canvas->shapes[s].ink);
    fill_shape(&to, &canvas->shapes[s]);
  }
}
