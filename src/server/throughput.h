/* throughput.h: the samples per second of all public jobs together over the last hour, for pages that are
 * opened later.
 *
 * Ownership: plain storage; zero to begin with. Threads: one. */
#ifndef SHOAL_SERVER_THROUGHPUT_H
#define SHOAL_SERVER_THROUGHPUT_H

#include <stdint.h>

#include "base/json.h"

enum { SHOAL_THROUGHPUT_POINTS = 1800, SHOAL_THROUGHPUT_EVERY_S = 2 };

typedef struct shoal_throughput {
  struct shoal_throughput_point {
    double time, samples_per_s;
  } points[SHOAL_THROUGHPUT_POINTS]; /* a ring */
  uint64_t made;
  double next; /* wall time */
} shoal_throughput;

/* Whether a point is due. now: wall time, which may be set back. */
bool shoal_throughput_is_due(const shoal_throughput *throughput, double now);
void shoal_throughput_add(shoal_throughput *throughput, double now, double samples_per_s);
void shoal_throughput_write(const shoal_throughput *throughput,
                            shoal_json *json); /* "points": [[time, rate]] */

#endif
