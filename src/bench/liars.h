/* liars.h: how soon proto/trust.h finds workers that turn to lying, and what its audits cost the honest.
 *
 * Threads: any; ownership: plain values. */
#ifndef SHOAL_BENCH_LIARS_H
#define SHOAL_BENCH_LIARS_H

#include <stdint.h>

#include "base/status.h"

enum { SHOAL_LIARS_MAX = 1000000, SHOAL_LIARS_LATELY = 1000 };

typedef struct shoal_liars {
  uint64_t honest;       /* units that each had done right before its first lie */
  double audited;        /* the share of these that was computed again, */
  double audited_lately; /* and of the last 1000 of them */
  uint64_t half, most_90, most_99,
      all; /* lies until so many percent of the liars are found: 50, 90, 99, 100 */
} shoal_liars;

/* So many liars, every one with audits of its own; a pure function of its arguments. */
shoal_status shoal_liars_measure(uint64_t honest, uint32_t liars, uint64_t seed, shoal_liars *out,
                                 shoal_error *err);

#endif
