/* unit_lease.h: the lease of a search's unit, as the server gave it: what its holder says of the unit must come with it.
 *
 * Ownership: a plain value. Threads: any. */
#ifndef SHOAL_WORK_UNIT_LEASE_H
#define SHOAL_WORK_UNIT_LEASE_H

#include <cjson/cJSON.h>

#include "base/json.h"

enum { SHOAL_UNIT_TICKET_MAX = 80 };

typedef struct shoal_unit_lease {
  uint64_t unit;
  uint32_t attempt;
  char ticket[SHOAL_UNIT_TICKET_MAX];
  double seconds; /* without a beat */
} shoal_unit_lease;

/* False: the unit's JSON has no lease that can be read. */
bool shoal_unit_lease_read(const cJSON *unit, shoal_unit_lease *out);
/* Begins what is said of the unit, as a JSON object. */
void shoal_unit_lease_begin(const shoal_unit_lease *lease, shoal_json *json, shoal_text *text);

#endif
