/* notes.h: one line for people, whatever happens; where it goes is the caller's.
 *
 * Ownership: `self` is borrowed, and outlives whoever has these notes; the text is lent for the call, and who
 * wants to keep it copies it. Threads: `note` is called by the thread that has something to say: for a
 * worker or a parameter server the one that runs the node, for a chief the one that asks for rounds
 * (chief_node.h). Nodes that are given the same `self` may call at the same time. */
#ifndef SHOAL_WIRE_NOTES_H
#define SHOAL_WIRE_NOTES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct shoal_notes {
  void *self;
  void (*note)(void *self, const char *text); /* NULL: nobody reads them */
  void (*warn)(void *self, const char *text); /* what is told even to who wants no notes; NULL: as a note */
} shoal_notes;

void shoal_note(const shoal_notes *notes, const char *format, ...) __attribute__((format(printf, 2, 3)));
void shoal_warn(const shoal_notes *notes, const char *text);

/* What was told lately: whoever tries again every few seconds need not tell of each time. Zeros at the start. */
enum { SHOAL_TOLD_MAX = 8 };
typedef struct shoal_told {
  struct {
    uint64_t digest; /* of who and why */
    double at;
  } last[SHOAL_TOLD_MAX];
  uint32_t next; /* 0: nothing was told */
} shoal_told;
/* Whether it is to be told now: for the first time, or after a minute again. */
bool shoal_told_is_due(shoal_told *told, const char *who, const char *why, double now);

#endif
