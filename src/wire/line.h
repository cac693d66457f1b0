/* line.h: a connection that this side keeps up: dials, beats, notices silence, dials again.
 *
 * Silence is counted from the last sign of life (net.h), not from the last whole message, which may take
 * minutes on a slow link.
 *
 * After a failure the next try waits, twice as long each time, up to a few seconds. Whoever has
 * had nobody at the other end for SHOAL_LINE_GIVE_UP_S should give up, with a message.
 *
 * Ownership: plain storage of the caller's; the address is borrowed. Threads: the net's. */
#ifndef SHOAL_WIRE_LINE_H
#define SHOAL_WIRE_LINE_H

#include "proto/beat.h"
#include "wire/net.h"
#include "wire/notes.h"

enum { SHOAL_LINE_GIVE_UP_S = 600 };
extern const shoal_beat_rules shoal_line_beat; /* every 2 s; silent for 30 s is lost */

typedef struct shoal_line {
  const char *address;
  uint64_t peer; /* 0: not even dialling */
  bool open;
  double next_try, wait_s;
  double down_since; /* that nobody was there who wanted this one */
  double opened_at;
  bool heard;      /* a message came over this connection */
  bool refused;    /* or the other end wants nothing of this one: the reason was told */
  shoal_told told; /* why nobody is there */
  shoal_beat beat;
} shoal_line;

void shoal_line_init(shoal_line *line, const char *address, double now);
/* Dials when it is time, says BEAT when nothing else was said, gives up a silent connection: one
 * of which nothing was ever heard after ten seconds. */
void shoal_line_tick(shoal_line *line, shoal_net *net, const shoal_way *way, double now);
double shoal_line_next(const shoal_line *line);
/* What the net tells, when the peer is this line's: true. */
bool shoal_line_opened(shoal_line *line, uint64_t peer, double now);
bool shoal_line_heard(shoal_line *line, uint64_t peer, double now);
bool shoal_line_closed(shoal_line *line, uint64_t peer, double now);

/* The other end wants nothing of this one: closes, and waits as long as ever before the next try. */
void shoal_line_refused(shoal_line *line, shoal_net *net);

/* Its connection is closed, for this reason: says that `who` is lost, or is not there yet, or that what is
 * there does not speak as Shoal does. Before shoal_line_closed. give_up: this side will, after so long. */
void shoal_line_say_closed(shoal_line *line, const char *who, const char *reason, bool give_up,
                           const shoal_notes *notes, double now);
/* The same for any other reason why nobody is there: each at once, then now and then. */
void shoal_line_say_waiting(shoal_line *line, const char *who, const char *reason, bool give_up,
                            const shoal_notes *notes, double now);
/* What was waited for is there: true when that was said. */
bool shoal_line_waited(shoal_line *line);

/* Says that nobody is there yet, likewise. *told is zeros before, and after it was reached. */
void shoal_line_say_missing(const char *who, const char *reason, const shoal_notes *notes, shoal_told *told,
                            double now);

#endif
