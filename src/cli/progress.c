/* progress.c: what the terminal can do, and the line that is drawn over itself while training. */
#include "cli/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/human.h"

/* ---- the terminal ------------------------------------------------------------------- */

/* The locale's own answer would need setlocale, which changes how numbers are read and
 * printed in the whole process. */
static bool locale_is_utf8(void) {
  static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char *value = getenv(names[i]);
    if (value && value[0]) return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
  }
  return false;
}

shoal_terminal shoal_terminal_of(FILE *stream) {
  shoal_terminal terminal = {.width = 80, .utf8 = locale_is_utf8()};
  int fd = fileno(stream);
  const char *term = getenv("TERM");
  bool is_dumb = term && strcmp(term, "dumb") == 0;
  terminal.is_terminal = isatty(fd) && !is_dumb;
  const char *no_colour = getenv("NO_COLOR");
  terminal.colour = terminal.is_terminal && !(no_colour && no_colour[0]);

  struct winsize size;
  uint64_t columns;
  const char *forced = getenv("COLUMNS");
  if (forced && shoal_read_u64(forced, strlen(forced), &columns) && columns > 0 && columns < 10000)
    terminal.width = (uint32_t)columns;
  else if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    terminal.width = size.ws_col;
  return terminal;
}

/* ---- the line ----------------------------------------------------------------------- */

enum { BAR_MIN = 4, BAR_MAX = 30 };

static void add_bar(shoal_text *out, double share, uint32_t cells) {
  uint32_t full = (uint32_t)(share * cells);
  shoal_text_add(out, "[", 1);
  for (uint32_t i = 0; i < cells; i++) shoal_text_add(out, i < full ? "=" : i == full ? ">" : " ", 1);
  shoal_text_add(out, "] ", 2);
}

void shoal_progress_line(shoal_text *out, const shoal_progress_view *view, uint32_t width, bool bar) {
  char head[64] = "", percent[16], parts[4][64];
  if (view->epochs > 0)
    snprintf(head, sizeof head, "epoch %llu/%llu ", (unsigned long long)view->epoch,
             (unsigned long long)view->epochs);
  double share = fmin(fmax(view->share, 0), 1);
  snprintf(percent, sizeof percent, "%.0f%%", floor(share * 100));

  /* In the order shown, and the order in which they give way when the line is too long. */
  enum { RATE, LOSS, METRIC, ETA, PARTS };
  static const int gives_way[PARTS] = {RATE, METRIC, ETA, LOSS};
  memset(parts, 0, sizeof parts);
  if (isfinite(view->per_s)) {
    /* What takes longer than a second is counted by the minute, or by the hour. */
    const struct {
      double seconds;
      const char *name;
    } times[] = {{1, "s"}, {60, "min"}, {3600, "h"}}, *per = times;
    while (per < &times[2] && view->per_s * per->seconds < 1) per++;
    uint64_t count = (uint64_t)(view->per_s * per->seconds);
    size_t letters = strlen(view->unit);
    if (count == 1 && view->unit[letters - 1] == 's') letters--;
    snprintf(parts[RATE], sizeof parts[RATE], "  %s %.*s/%s", shoal_human_count(count).text, (int)letters,
             view->unit, per->name);
  }
  if (isfinite(view->loss))
    snprintf(parts[LOSS], sizeof parts[LOSS], "  loss %s", shoal_human_number(view->loss).text);
  if (view->metric_name && isfinite(view->metric))
    snprintf(parts[METRIC], sizeof parts[METRIC], "  %s %.*f", view->metric_name, view->metric < 10 ? 3 : 1,
             view->metric);
  if (isfinite(view->eta_s))
    snprintf(parts[ETA], sizeof parts[ETA], "  eta %s", shoal_human_seconds(view->eta_s).text);

  size_t fixed = strlen(head) + strlen(percent);
  size_t length = fixed;
  for (int i = 0; i < PARTS; i++) length += strlen(parts[i]);
  size_t bar_min = bar ? BAR_MIN + 3 : 0;
  for (int i = 0; i < PARTS && length + bar_min > width; i++) {
    length -= strlen(parts[gives_way[i]]);
    parts[gives_way[i]][0] = 0;
  }

  shoal_text_addf(out, "%s", head);
  if (bar && length + bar_min <= width) {
    size_t cells = width - length - 3;
    add_bar(out, share, (uint32_t)(cells < BAR_MAX ? cells : BAR_MAX));
  }
  shoal_text_addf(out, "%s", percent);
  for (int i = 0; i < PARTS; i++) shoal_text_addf(out, "%s", parts[i]);
}

/* ---- showing it --------------------------------------------------------------------- */

static const double redraw_s = 0.1; /* on a terminal */
static const double repeat_s = 10;  /* elsewhere */

void shoal_progress_init(shoal_progress *progress, FILE *stream, double now) {
  *progress = (shoal_progress){.stream = stream, .last = now};
  if (stream) progress->is_terminal = shoal_terminal_of(stream).is_terminal;
}

bool shoal_progress_due(const shoal_progress *progress, double now) {
  return progress->stream && now - progress->last >= (progress->is_terminal ? redraw_s : repeat_s);
}

void shoal_progress_show(shoal_progress *progress, const shoal_progress_view *view, double now) {
  shoal_text line;
  shoal_text_init(&line);
  if (progress->is_terminal) {
    /* The last column stays free: some terminals wrap as soon as it is written. */
    uint32_t width = shoal_terminal_of(progress->stream).width - 1;
    shoal_progress_line(&line, view, width, true);
    if (!line.failed) fprintf(progress->stream, "\r%.*s\x1b[K", (int)width, line.bytes);
    progress->drawn = true;
  } else {
    shoal_progress_line(&line, view, 200, false);
    if (!line.failed) fprintf(progress->stream, "%s\n", line.bytes);
  }
  fflush(progress->stream);
  shoal_text_release(&line);
  progress->last = now;
}

void shoal_progress_clear(shoal_progress *progress) {
  if (progress->drawn) {
    fprintf(progress->stream, "\r\x1b[K");
    fflush(progress->stream);
  }
  progress->drawn = false;
}
