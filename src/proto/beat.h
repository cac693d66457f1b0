/* beat.h: whether the other end of a connection is still there.
 *
 * Whoever holds a connection says BEAT when there was nothing else to say for a while, and gives
 * up a connection on which nothing came for much longer: a machine that lost its power closes
 * nothing.
 *
 * Threads, ownership: plain values. Time: the caller's. */
#ifndef SHOAL_PROTO_BEAT_H
#define SHOAL_PROTO_BEAT_H

#include <stdbool.h>

typedef struct shoal_beat {
  double said, heard; /* when, last */
} shoal_beat;

typedef struct shoal_beat_rules {
  double every_s, silence_s;
} shoal_beat_rules;

static inline bool shoal_beat_due(const shoal_beat *beat, const shoal_beat_rules *rules, double now) {
  return now >= beat->said + rules->every_s;
}

static inline bool shoal_beat_lost(const shoal_beat *beat, const shoal_beat_rules *rules, double now) {
  return now >= beat->heard + rules->silence_s;
}

/* When one of the two will be true, to the last bit: a caller who waits until then must not find that
 * it is not. */
static inline double shoal_beat_next(const shoal_beat *beat, const shoal_beat_rules *rules) {
  double due = beat->said + rules->every_s, lost = beat->heard + rules->silence_s;
  return due < lost ? due : lost;
}

#endif
