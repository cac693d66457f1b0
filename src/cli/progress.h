/* progress.h: a line that shows how far a training is, and what the terminal can do.
 *
 *   epoch 3/6 [=====>    ] 62%  12,345 samples/s  loss 0.3312  accuracy 0.879  eta 12s
 *
 * On a terminal the line is drawn over itself, at most ten times a second. Elsewhere (a
 * file, a pipe, a CI log) a plain line appears every ten seconds.
 *
 * Ownership: a shoal_progress is plain storage of the caller's. Threads: one. Time: what
 * the caller passes in. */
#ifndef SHOAL_CLI_PROGRESS_H
#define SHOAL_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/text.h"

typedef struct shoal_terminal {
  bool is_terminal;
  bool utf8;
  bool colour; /* off where NO_COLOR is set or TERM is dumb */
  uint32_t width;
} shoal_terminal;

/* Asks anew each time, because windows change their size. */
shoal_terminal shoal_terminal_of(FILE *stream);

typedef struct shoal_progress {
  FILE *stream; /* NULL: show nothing */
  bool is_terminal;
  bool drawn;  /* a line stands on the terminal */
  double last; /* when something was shown last */
} shoal_progress;

/* What the line says. Numbers that are unknown are NaN and left out. */
typedef struct shoal_progress_view {
  uint64_t epoch, epochs; /* counted from 1; epochs 0: there are none */
  double share;           /* of this epoch, or of all: 0 .. 1 */
  double per_s;
  const char *unit; /* what is counted per second: "samples"; of one of them without the s */
  double loss;
  const char *metric_name; /* or NULL */
  double metric;
  double eta_s;
} shoal_progress_view;

void shoal_progress_init(shoal_progress *progress, FILE *stream, double now);
/* Whether enough time has passed to show something again: so that callers can skip the
 * work of filling in a view. */
bool shoal_progress_due(const shoal_progress *progress, double now);
void shoal_progress_show(shoal_progress *progress, const shoal_progress_view *view, double now);
/* Takes the line away, before anything else is printed. */
void shoal_progress_clear(shoal_progress *progress);

/* The line for a width; without a bar when bar is false. What does not fit is left out,
 * the least important first. Pure. */
void shoal_progress_line(shoal_text *out, const shoal_progress_view *view, uint32_t width, bool bar);

#endif
