/* notes.h: one line for people, whatever happens; where it goes is the caller's. */
#ifndef SHOAL_NET_NOTES_H
#define SHOAL_NET_NOTES_H

typedef struct shoal_notes {
  void *self;
  void (*note)(void *self, const char *text); /* NULL: nobody reads them */
} shoal_notes;

void shoal_note(const shoal_notes *notes, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
