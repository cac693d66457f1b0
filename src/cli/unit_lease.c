/* unit_lease.c: see unit_lease.h. */
#include "cli/unit_lease.h"

#include <string.h>

static const double USUAL_S = 30;

/* True for a whole number. */
static bool read_whole(const cJSON *json, const char *key, double most, double *out) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
  if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= most)) return false;
  *out = item->valuedouble;
  return *out == (double)(uint64_t)*out;
}

/* Only digits and small letters, since it goes into a path. */
static bool read_ticket(const cJSON *json, char out[SHOAL_UNIT_TICKET_MAX]) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, "ticket");
  const char *ticket = cJSON_IsString(item) ? item->valuestring : "";
  size_t length = strspn(ticket, "0123456789abcdefghijklmnopqrstuvwxyz");
  if (length == 0 || length >= SHOAL_UNIT_TICKET_MAX || ticket[length] != 0) return false;
  memcpy(out, ticket, length + 1);
  return true;
}

bool shoal_unit_lease_read(const cJSON *unit, shoal_unit_lease *out) {
  double number, attempt;
  *out = (shoal_unit_lease){.seconds = USUAL_S};
  if (!read_whole(unit, "unit", 1e15, &number) || !read_whole(unit, "attempt", 1e9, &attempt) ||
      !read_ticket(unit, out->ticket))
    return false;
  out->unit = (uint64_t)number;
  out->attempt = (uint32_t)attempt;
  const cJSON *seconds = cJSON_GetObjectItemCaseSensitive(unit, "lease_s");
  if (cJSON_IsNumber(seconds) && seconds->valuedouble >= 1 && seconds->valuedouble <= 1e6)
    out->seconds = seconds->valuedouble;
  return true;
}

void shoal_unit_lease_begin(const shoal_unit_lease *lease, shoal_json *json, shoal_text *text) {
  shoal_json_begin(json, text);
  shoal_json_open(json, NULL, '{');
  shoal_json_int(json, "attempt", lease->attempt);
  shoal_json_text(json, "ticket", lease->ticket);
}
