/* liars.c: see liars.h. */
#include "bench/liars.h"

#include <stdlib.h>

#include "proto/trust.h"

static int compare_counts(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* One worker's life: the audits of its honest units go to the counters, and the lies until one is audited come
 * back. */
static uint64_t live(shoal_trust *trust, uint64_t who, uint64_t honest, uint64_t *audits, uint64_t *lately) {
  uint64_t unit = 0;
  for (; unit < honest; unit++) {
    if (!shoal_trust_audits(trust, who, unit)) continue;
    shoal_trust_agreed(trust, who);
    *audits += 1;
    *lately += unit + SHOAL_LIARS_LATELY >= honest;
  }
  uint64_t lies = 1;
  while (!shoal_trust_audits(trust, who, unit++)) lies++;
  shoal_trust_wrong(trust, who);
  return lies;
}

shoal_status shoal_liars_measure(uint64_t honest, uint32_t liars, uint64_t seed, shoal_liars *out,
                                 shoal_error *err) {
  shoal_trust *trust = NULL;
  uint64_t *lies = calloc(liars, sizeof *lies), audits = 0, lately = 0;
  shoal_status status = lies != NULL ? shoal_trust_create(&trust, liars, seed, err)
                                     : shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  for (uint32_t i = 0; status == SHOAL_OK && i < liars; i++)
    lies[i] = live(trust, i + 1, honest, &audits, &lately);
  if (status == SHOAL_OK) {
    qsort(lies, liars, sizeof *lies, compare_counts);
    uint64_t last = honest < SHOAL_LIARS_LATELY ? honest : SHOAL_LIARS_LATELY;
    *out = (shoal_liars){.honest = honest,
                         .audited = honest > 0 ? (double)audits / (double)honest / liars : 0,
                         .audited_lately = last > 0 ? (double)lately / (double)last / liars : 0,
                         .half = lies[(uint64_t)(liars - 1) * 50 / 100],
                         .most_90 = lies[(uint64_t)(liars - 1) * 90 / 100],
                         .most_99 = lies[(uint64_t)(liars - 1) * 99 / 100],
                         .all = lies[liars - 1]};
  }
  shoal_trust_destroy(trust);
  free(lies);
  return status;
}
