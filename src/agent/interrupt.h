/* interrupt.h: whether what takes a while is to be given up.
 *
 * Who is given one asks it many times a second while it works or waits, and when the answer is yes comes back
 * soon, with SHOAL_STOPPED. The answer may be no again later, to others.
 *
 * Ownership: it is lent to those who ask. Threads: any may ask, at the same time. */
#ifndef SHOAL_AGENT_INTERRUPT_H
#define SHOAL_AGENT_INTERRUPT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct shoal_interrupt {
  bool (*asked)(void *self);
  void *self;
} shoal_interrupt;

/* NULL: nobody interrupts. */
static inline bool shoal_interrupted(const shoal_interrupt *interrupt) {
  return interrupt != NULL && interrupt->asked(interrupt->self);
}

#endif
