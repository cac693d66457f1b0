/* mode.c: see mode.h. */
#include "proto/mode.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* DiLoCo's settings (Douillard et al. 2023), which need no tuning over two orders of H. */
static const float OUTER_RATE = 0.7f, OUTER_MOMENTUM = 0.9f;

static bool number_after(const char *text, const char *word, uint32_t most, uint32_t *out) {
  size_t length = strlen(word);
  if (strncmp(text, word, length) != 0 || text[length] < '0' || text[length] > '9') return false;
  char *end;
  unsigned long long value = strtoull(text + length, &end, 10);
  if (*end != '\0' || value > most) return false;
  *out = (uint32_t)value;
  return true;
}

shoal_status shoal_mode_parse(const char *text, shoal_mode *out, shoal_error *err) {
  *out = (shoal_mode){
      .kind = SHOAL_SYNC, .local = 1, .outer_rate = OUTER_RATE, .outer_momentum = OUTER_MOMENTUM};
  if (strcmp(text, "sync") == 0) return SHOAL_OK;
  if (strcmp(text, "async") == 0) {
    out->kind = SHOAL_ASYNC;
    return SHOAL_OK;
  }
  if (number_after(text, "stale:", SHOAL_STALE_MAX, &out->stale)) {
    out->kind = out->stale > 0 ? SHOAL_STALE : SHOAL_SYNC;
    return SHOAL_OK;
  }
  if (number_after(text, "local:", SHOAL_LOCAL_MAX, &out->local) && out->local > 0) {
    out->kind = SHOAL_LOCAL;
    return SHOAL_OK;
  }
  return shoal_fail(err, SHOAL_INVALID,
                    "'%s' is no mode; there are sync, async, stale:N (N up to %d) and local:H (H from 1)",
                    text, SHOAL_STALE_MAX);
}
