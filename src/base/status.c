/* status.c: see status.h. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

shoal_status shoal_fail(shoal_error *err, shoal_status status, const char *format, ...) {
  SHOAL_ASSERT(status != SHOAL_OK);
  if (err) {
    err->status = status;
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
  }
  return status;
}

void shoal_error_prefix(shoal_error *err, const char *format, ...) {
  if (!err) return;
  char prefix[SHOAL_ERROR_TEXT_MAX];
  va_list args;
  va_start(args, format);
  vsnprintf(prefix, sizeof prefix, format, args);
  va_end(args);

  /* The end of an over-long sentence is cut off; the prefix, which names the place, stays. */
  size_t shift = strlen(prefix);
  size_t room = sizeof err->text - 1 - shift;
  size_t kept = strnlen(err->text, room);
  memmove(err->text + shift, err->text, kept);
  memcpy(err->text, prefix, shift);
  err->text[shift + kept] = 0;
}
