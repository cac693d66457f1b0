/* screen.c: see screen.h. Each pixel is drawn as SAMPLES x SAMPLES smaller ones, whose colours are mixed. */
#include "cli/screen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "agent/picture.h"
#include "cli/progress.h"

enum { SAMPLES = 4, ROWS_DEFAULT = 24, COLUMNS_MIN = 8, ROWS_MIN = 4 };

/* ---- pictures ----------------------------------------------------------------------- */

void shoal_screen_fit(const shoal_canvas *canvas, uint32_t columns_max, uint32_t rows_max,
                      shoal_screen_form *form) {
  double aspect =
      ((double)canvas->top - (double)canvas->bottom) / ((double)canvas->right - (double)canvas->left);
  uint32_t columns = columns_max > COLUMNS_MIN ? columns_max : COLUMNS_MIN;
  uint32_t most = rows_max > ROWS_MIN ? rows_max : ROWS_MIN;
  double rows = ceil(columns * aspect / 2);
  if (rows > most) {
    rows = most;
    columns = (uint32_t)fmin(fmax(floor(2 * most / aspect), COLUMNS_MIN), columns);
  }
  form->columns = columns;
  form->rows = (uint32_t)fmax(rows, 1);
}

typedef struct colour {
  uint8_t part[3];
} colour;

static bool same_colour(colour a, colour b) { return memcmp(&a, &b, sizeof a) == 0; }

/* The mean of a pixel's samples. */
static colour mix(const uint8_t *samples, size_t stride, const uint8_t rgb[SHOAL_COLOURS][3]) {
  uint32_t sums[3] = {0};
  for (int y = 0; y < SAMPLES; y++)
    for (int x = 0; x < SAMPLES; x++)
      for (int part = 0; part < 3; part++) sums[part] += rgb[samples[(size_t)y * stride + (size_t)x]][part];
  colour out;
  for (int part = 0; part < 3; part++)
    out.part[part] = (uint8_t)((sums[part] + SAMPLES * SAMPLES / 2) / (SAMPLES * SAMPLES));
  return out;
}

/* The nearest of the 6 x 6 x 6 colours of terminals that have 256. */
static uint32_t of_cube(colour c) {
  static const uint8_t levels[6] = {0, 95, 135, 175, 215, 255};
  uint32_t number = 0;
  for (int part = 0; part < 3; part++) {
    uint32_t nearest = 0;
    for (uint32_t i = 1; i < 6; i++)
      if (abs(levels[i] - c.part[part]) < abs(levels[nearest] - c.part[part])) nearest = i;
    number = 6 * number + nearest;
  }
  return 16 + number;
}

/* ground: 38 for what is in front, 48 for what is behind. */
static void add_colour(shoal_text *out, int ground, colour c, shoal_screen_colours colours) {
  if (colours == SHOAL_COLOURS_256)
    shoal_text_addf(out, "\x1b[%d;5;%um", ground, of_cube(c));
  else
    shoal_text_addf(out, "\x1b[%d;2;%u;%u;%um", ground, c.part[0], c.part[1], c.part[2]);
}

/* Colours are said only where they change. */
static void add_blocks(shoal_text *out, const uint8_t *samples, const shoal_screen_form *form,
                       const uint8_t rgb[SHOAL_COLOURS][3]) {
  size_t stride = (size_t)form->columns * SAMPLES;
  colour front = {{0}}, behind = {{0}};
  bool has_front = false, has_behind = false;
  for (uint32_t column = 0; column < form->columns; column++) {
    const uint8_t *upper = samples + (size_t)column * SAMPLES;
    colour high = mix(upper, stride, rgb), low = mix(upper + SAMPLES * stride, stride, rgb);
    bool even = same_colour(high, low); /* then a space will do, which shows only what is behind */
    if (!has_behind || !same_colour(low, behind)) add_colour(out, 48, low, form->colours);
    behind = low;
    has_behind = true;
    if (!even && (!has_front || !same_colour(high, front))) {
      add_colour(out, 38, high, form->colours);
      front = high;
      has_front = true;
    }
    shoal_text_add(out, even ? " " : "\xe2\x96\x80", even ? 1 : 3);
  }
  shoal_text_add(out, "\x1b[0m", 4);
}

static void add_letters(shoal_text *out, const uint8_t *samples, const shoal_screen_form *form) {
  static const char letters[] = {' ',
                                 [1 + SHOAL_INK_LINE] = '-',
                                 [1 + SHOAL_INK_BODY] = '#',
                                 [1 + SHOAL_INK_ACCENT] = '*',
                                 [1 + SHOAL_INK_GOAL] = '+',
                                 [1 + SHOAL_INK_FAINT] = '.'};
  size_t stride = (size_t)form->columns * SAMPLES;
  for (uint32_t column = 0; column < form->columns; column++) {
    uint32_t counts[SHOAL_COLOURS_PLAIN] = {0}, most = 0;
    for (uint32_t y = 0; y < 2 * SAMPLES; y++)
      for (uint32_t x = 0; x < SAMPLES; x++) counts[samples[y * stride + column * SAMPLES + x]]++;
    for (uint32_t i = 1; i < SHOAL_COLOURS_PLAIN; i++)
      if (counts[i] > (most ? counts[most] : SAMPLES)) most = i; /* a thin line is seen, a trace of one not */
    shoal_text_add(out, &letters[most], 1);
  }
}

void shoal_screen_picture(shoal_text *out, const shoal_canvas *canvas, const shoal_screen_form *form) {
  uint32_t width = form->columns * SAMPLES, height = form->rows * 2 * SAMPLES;
  uint8_t *samples = malloc((size_t)width * height);
  if (!samples) {
    out->failed = true;
    return;
  }
  uint8_t rgb[SHOAL_COLOURS][3];
  shoal_colours(form->dark, rgb);
  shoal_canvas_pixels(canvas, width, height, samples);
  for (uint32_t row = 0; row < form->rows; row++) {
    const uint8_t *first = samples + (size_t)row * 2 * SAMPLES * width;
    if (form->colours == SHOAL_COLOURS_NONE)
      add_letters(out, first, form);
    else
      add_blocks(out, first, form, rgb);
    shoal_text_add(out, "\n", 1);
  }
  free(samples);
}

/* ---- the terminal ------------------------------------------------------------------- */

bool shoal_screen_is_dark(void) {
  const char *said = getenv("COLORFGBG"); /* "15;0": what is in front, then what is behind */
  const char *behind = said ? strrchr(said, ';') : NULL;
  return !behind || (strcmp(behind, ";7") != 0 && strcmp(behind, ";15") != 0);
}

static shoal_screen_colours colours_of(const shoal_terminal *terminal) {
  const char *said = getenv("COLORTERM");
  if (!terminal->colour || !terminal->utf8) return SHOAL_COLOURS_NONE;
  bool all = said && (strstr(said, "truecolor") || strstr(said, "24bit"));
  return all ? SHOAL_COLOURS_ALL : SHOAL_COLOURS_256;
}

void shoal_screen_init(shoal_screen *screen, FILE *stream, bool dark) {
  *screen = (shoal_screen){.stream = stream, .form = {.dark = dark}};
}

static uint32_t window_rows(FILE *stream) {
  struct winsize size;
  return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : ROWS_DEFAULT;
}

/* To the place of the picture before, or to a place of its own where it does not fit there. */
static void go_back(shoal_screen *screen, shoal_text *out, const shoal_screen_form *before, bool resized) {
  if (!screen->drawn)
    shoal_text_addf(out, "\x1b[?25l"); /* the cursor hides meanwhile */
  else if (resized)
    shoal_text_addf(out, "\x1b[2J\x1b[H");
  else
    shoal_text_addf(out, "\r\x1b[%uA", before->rows);
}

void shoal_screen_show(shoal_screen *screen, const shoal_canvas *canvas, const char *line) {
  shoal_terminal terminal = shoal_terminal_of(screen->stream);
  uint32_t rows = window_rows(screen->stream);
  shoal_screen_form before = screen->form;
  /* The last column stays free: some terminals wrap as soon as it is written. */
  shoal_screen_fit(canvas, terminal.width - 1, rows - 2, &screen->form);
  screen->form.colours = colours_of(&terminal);
  bool resized = terminal.width != screen->columns || rows != screen->rows ||
                 before.rows != screen->form.rows || before.columns != screen->form.columns;
  shoal_text out;
  shoal_text_init(&out);
  go_back(screen, &out, &before, resized);
  shoal_screen_picture(&out, canvas, &screen->form);
  shoal_text_addf(&out, "%.*s\x1b[K", (int)terminal.width - 1, line);
  if (!out.failed) {
    fwrite(out.bytes, 1, out.length, screen->stream);
    fflush(screen->stream);
    screen->drawn = true;
    screen->columns = terminal.width;
    screen->rows = rows;
  }
  shoal_text_release(&out);
}

void shoal_screen_release(shoal_screen *screen) {
  if (!screen->drawn) return;
  fprintf(screen->stream, "\x1b[0m\x1b[?25h\n");
  fflush(screen->stream);
  screen->drawn = false;
}
