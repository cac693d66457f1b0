/* turn.h: what workers of both kinds, of a server and of a queue, do at every turn: look whether
 * their owner wants them to rest, and measure how fast they are.
 *
 * Ownership: plain storage of the caller's, zeroed at first. Threads: one. Time: what the caller passes
 * in. */
#ifndef SHOAL_WORK_TURN_H
#define SHOAL_WORK_TURN_H

#include "work/volunteer.h"

typedef struct shoal_work_rest {
  shoal_manners_reason reason;       /* SHOAL_MANNERS_WORKS: it does not rest */
  char text[SHOAL_MANNERS_TEXT_MAX]; /* why it rests, with figures that are renewed now and then */
  shoal_manners_watch watch;
  shoal_manners_mood mood;
  double looked_at, text_at, load_told_at; /* load_told_at: that it rests for the load; 0: never */
  bool told;                               /* it was said that it rests now */
} shoal_work_rest;

/* Looks around, at most every so often. True: `note` says what has changed. A load that comes and goes is not
 * told of every time. */
bool shoal_work_rest_look(shoal_work_rest *rest, const shoal_work_config *config, double every_s, double now,
                          char note[SHOAL_WORK_TEXT_MAX]);

typedef struct shoal_work_rate {
  double at, samples_per_s;
  uint64_t samples;
} shoal_work_rate;

/* Over some seconds. */
void shoal_work_rate_measure(shoal_work_rate *rate, const shoal_worker_count *count, double now);

#endif
