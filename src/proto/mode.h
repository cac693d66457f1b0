/* mode.h: how contributions become versions.
 *
 *   sync       version r + 1 is version r with the parts of round r, all computed from version r
 *   stale:N    the same, but parts of round r may be computed from any version from r - N on
 *   async      every contribution, a whole batch's, is applied as it comes
 *   local:H    the epoch's rounds are dealt out to units of up to H of them; a contribution is what
 *              these steps of the recipe's own optimiser make of the weights; the mean of R
 *              contributions is applied by an outer optimiser: Nesterov's momentum
 *
 * Threads, ownership: plain values. */
#ifndef SHOAL_PROTO_MODE_H
#define SHOAL_PROTO_MODE_H

#include <stdint.h>

#include "base/status.h"

typedef enum shoal_mode_kind { SHOAL_SYNC, SHOAL_STALE, SHOAL_ASYNC, SHOAL_LOCAL } shoal_mode_kind;

/* The window in async mode: rounds under way at once. Owners tell a second contribution for a round from
 * a first one as long as no more of them are. */
enum { SHOAL_STALE_MAX = 64, SHOAL_LOCAL_MAX = 100000, SHOAL_ASYNC_WINDOW_MAX = 1 << 14 };

typedef struct shoal_mode {
  shoal_mode_kind kind;
  uint32_t stale;                   /* N; 0 but in SHOAL_STALE */
  uint32_t local;                   /* H; 1 but in SHOAL_LOCAL */
  float outer_rate, outer_momentum; /* SHOAL_LOCAL */
} shoal_mode;

/* From the words above; "sync" is a mode of stale 0. */
shoal_status shoal_mode_parse(const char *text, shoal_mode *out, shoal_error *err);

#endif
