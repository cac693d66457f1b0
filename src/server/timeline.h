/* timeline.h: which worker had which unit when: the last few hundred leases of a job, for people.
 *
 * Seen from the messages that pass: LEASE begins a bar, DONE and RETURN end it.
 *
 * Ownership: plain storage; zero to begin with. Threads: one. */
#ifndef SHOAL_SERVER_TIMELINE_H
#define SHOAL_SERVER_TIMELINE_H

#include "base/json.h"
#include "proto/message.h"

enum { SHOAL_TIMELINE_BARS = 500, SHOAL_TIMELINE_NAME_MAX = 64 };

typedef struct shoal_timeline_bar {
  uint64_t lease, round;
  uint32_t first, count;
  char worker[SHOAL_TIMELINE_NAME_MAX];
  double start, end; /* wall time; end 0: not yet */
  bool again;        /* somebody else had it before */
} shoal_timeline_bar;

typedef struct shoal_timeline {
  shoal_timeline_bar bars[SHOAL_TIMELINE_BARS]; /* a ring */
  uint64_t made;
  uint64_t again; /* units that were leased again, in all */
} shoal_timeline;

/* A message to or from a worker passes. */
void shoal_timeline_see(shoal_timeline *timeline, const char *worker, const shoal_message *message,
                        double now);
void shoal_timeline_write(const shoal_timeline *timeline, shoal_json *json); /* "units": [...] */

#endif
