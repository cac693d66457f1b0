/* unit_lease.c: see unit_lease.h. */
#include "work/unit_lease.h"

#include "base/json_at.h"
#include <string.h>

static const double USUAL_S = 30;

/* Only digits and small letters, since it goes into a path. */
static bool read_ticket(const cJSON *json, char out[SHOAL_UNIT_TICKET_MAX]) {
  const char *ticket = shoal_text_at(json, "ticket");
  size_t length = strspn(ticket, "0123456789abcdefghijklmnopqrstuvwxyz");
  if (length == 0 || length >= SHOAL_UNIT_TICKET_MAX || ticket[length] != 0) return false;
  memcpy(out, ticket, length + 1);
  return true;
}

bool shoal_unit_lease_read(const cJSON *unit, shoal_unit_lease *out) {
  *out = (shoal_unit_lease){0};
  if (!shoal_read_whole_at(unit, "unit", (uint64_t)1e15, &out->unit) ||
      !shoal_read_u32_at(unit, "attempt", (uint32_t)1e9, &out->attempt) || !read_ticket(unit, out->ticket))
    return false;
  if (!shoal_read_real_at(unit, "lease_s", 1, 1e6, &out->seconds)) out->seconds = USUAL_S;
  return true;
}

void shoal_unit_lease_begin(const shoal_unit_lease *lease, shoal_json *json, shoal_text *text) {
  shoal_json_begin(json, text);
  shoal_json_open(json, NULL, '{');
  shoal_json_int(json, "attempt", lease->attempt);
  shoal_json_text(json, "ticket", lease->ticket);
}
