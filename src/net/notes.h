/* notes.h: one line for people, whatever happens; where it goes is the caller's.
 *
 * Ownership: `self` is borrowed, and outlives whoever has these notes; the text is lent for the call, and who
 * wants to keep it copies it. Threads: `note` is called by the thread that has something to say: for a
 * worker or a parameter server the one that runs the node, for a chief the one that asks for rounds
 * (chief_node.h). Nodes that are given the same `self` may call at the same time. */
#ifndef SHOAL_NET_NOTES_H
#define SHOAL_NET_NOTES_H

typedef struct shoal_notes {
  void *self;
  void (*note)(void *self, const char *text); /* NULL: nobody reads them */
} shoal_notes;

void shoal_note(const shoal_notes *notes, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
