/* notes.c: see notes.h. */
#include "wire/notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/status.h"

static const double TELL_AGAIN_S = 60;

void shoal_note(const shoal_notes *notes, const char *format, ...) {
  if (notes->note == NULL) return;
  char text[SHOAL_ERROR_TEXT_MAX];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  notes->note(notes->self, text);
}

void shoal_warn(const shoal_notes *notes, const char *text) {
  if (notes->warn != NULL)
    notes->warn(notes->self, text);
  else
    shoal_note(notes, "%s", text);
}

bool shoal_told_is_due(shoal_told *told, const char *who, const char *why, double now) {
  uint64_t digest = shoal_digest(who, strlen(who)) ^ 31 * shoal_digest(why, strlen(why));
  for (uint32_t i = 0; i < SHOAL_TOLD_MAX && i < told->next; i++) {
    if (told->last[i].digest != digest) continue;
    if (now < told->last[i].at + TELL_AGAIN_S) return false;
    told->last[i].at = now;
    return true;
  }
  uint32_t place = told->next++ % SHOAL_TOLD_MAX;
  told->last[place].digest = digest;
  told->last[place].at = now;
  return true;
}
