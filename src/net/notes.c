/* notes.c: see notes.h. */
#include "net/notes.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/status.h"

void shoal_note(const shoal_notes *notes, const char *format, ...) {
  if (notes->note == NULL) return;
  char text[SHOAL_ERROR_TEXT_MAX];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  notes->note(notes->self, text);
}
