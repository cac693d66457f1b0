/* line.c: see line.h. */
#include "wire/line.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double FIRST_WAIT_S = 0.05, LONGEST_WAIT_S = 3, HELLO_S = 10;
static const double EARLY_S = 0.05; /* that it is open is a sign of life too, a little earlier or later */
const shoal_beat_rules shoal_line_beat = {.every_s = 2, .silence_s = 30};

void shoal_line_init(shoal_line *line, const char *address, double now) {
  *line = (shoal_line){.address = address, .next_try = now, .wait_s = FIRST_WAIT_S, .down_since = now};
}

static void fell(shoal_line *line, double now) {
  if (line->open && line->heard && !line->refused) line->down_since = now;
  line->open = false;
  line->peer = 0;
  line->next_try = now + line->wait_s;
  line->wait_s = fmin(2 * line->wait_s, LONGEST_WAIT_S);
}

void shoal_line_tick(shoal_line *line, shoal_net *net, const shoal_way *way, double now) {
  if (line->peer == 0 && now >= line->next_try) {
    /* Where there is a path, the answer would change nothing: see shoal_node_is_hopeless. */
    shoal_way there = *way;
    there.asks_why = strchr(line->address, '/') == NULL;
    line->peer = shoal_net_dial(net, line->address, &there);
    if (line->peer == 0) fell(line, now);
  }
  if (!line->open) return;
  line->beat.heard = fmax(line->beat.heard, shoal_net_heard(net, line->peer));
  bool said_nothing = !line->heard && line->beat.heard <= line->opened_at + EARLY_S;
  if (said_nothing && now > line->opened_at + HELLO_S) {
    line->opened_at = INFINITY; /* once */
    shoal_net_close(net, line->peer, "nothing was heard within 10 s");
  } else if (shoal_beat_lost(&line->beat, &shoal_line_beat, now)) {
    line->beat.heard = now; /* once */
    shoal_net_close(net, line->peer, "nothing was heard for too long");
  } else if (shoal_beat_due(&line->beat, &shoal_line_beat, now)) {
    line->beat.said = now;
    shoal_net_send(net, line->peer, (shoal_message){.kind = SHOAL_MSG_BEAT});
  }
}

double shoal_line_next(const shoal_line *line) {
  if (line->open) return shoal_beat_next(&line->beat, &shoal_line_beat);
  return line->peer == 0 ? line->next_try : INFINITY;
}

bool shoal_line_opened(shoal_line *line, uint64_t peer, double now) {
  if (line->peer != peer) return false;
  line->open = true;
  line->beat = (shoal_beat){.said = now, .heard = now};
  line->opened_at = now;
  line->heard = line->refused = false;
  return true;
}

bool shoal_line_heard(shoal_line *line, uint64_t peer, double now) {
  if (line->peer != peer) return false;
  line->beat.heard = now;
  if (!line->heard) line->wait_s = FIRST_WAIT_S;
  line->heard = true;
  return true;
}

bool shoal_line_closed(shoal_line *line, uint64_t peer, double now) {
  if (line->peer != peer) return false;
  fell(line, now);
  return true;
}

void shoal_line_refused(shoal_line *line, shoal_net *net) {
  line->wait_s = LONGEST_WAIT_S;
  line->refused = true;
  shoal_net_close(net, line->peer, "refused");
}

void shoal_line_say_waiting(shoal_line *line, const char *who, const char *reason, bool give_up,
                            const shoal_notes *notes, double now) {
  if (!give_up)
    shoal_line_say_missing(who, reason, notes, &line->told, now);
  else if (shoal_told_is_due(&line->told, who, reason, now))
    shoal_note(notes, "waiting for %s: %s; trying for %d minutes", who, reason, SHOAL_LINE_GIVE_UP_S / 60);
}

void shoal_line_say_closed(shoal_line *line, const char *who, const char *reason, bool give_up,
                           const shoal_notes *notes, double now) {
  char text[512];
  if (line->refused) return;
  if (line->open && line->heard) {
    shoal_note(notes, "lost %s: %s; trying again", who, reason);
  } else if (line->open) {
    snprintf(text, sizeof text, "something answers at %s, but not as Shoal does: %s", line->address, reason);
    shoal_line_say_waiting(line, who, text, give_up, notes, now);
  } else {
    shoal_line_say_waiting(line, who, reason, give_up, notes, now);
  }
}

bool shoal_line_waited(shoal_line *line) {
  bool waited = line->told.next > 0;
  line->told = (shoal_told){0};
  return waited;
}

void shoal_line_say_missing(const char *who, const char *reason, const shoal_notes *notes, shoal_told *told,
                            double now) {
  if (shoal_told_is_due(told, who, reason, now))
    shoal_note(notes, "waiting for %s: %s; trying again", who, reason);
}
