/* chores.h: slow work of a server, done one after another by a thread of its own, so that the loop never
 * waits.
 *
 * A chore is added by the loop, run by the thread, and handed back to the loop, which is woken for that.
 *
 * Ownership: create, then destroy. A chore's `self` is whoever's made it, until `done`. Threads: the loop's;
 * `run` is called by the thread inside, and may touch nothing that the loop touches meanwhile. */
#ifndef SHOAL_SERVER_CHORES_H
#define SHOAL_SERVER_CHORES_H

#include <stdbool.h>

#include "base/status.h"

typedef struct shoal_chores shoal_chores;

enum { SHOAL_CHORES_MAX = 64, SHOAL_CHORE_SUBJECT_MAX = 192 };

typedef struct shoal_chore {
  const char *subject; /* what it is about, copied: "wine"; "" where nobody asks */
  void *self;
  void (*run)(void *self);
  /* By shoal_chores_tick, or by destroy; `ran` is false for one that was not begun. Releases self. */
  void (*done)(void *self, bool ran);
} shoal_chore;

/* wake is called from the thread inside: tick is due. */
shoal_status shoal_chores_create(shoal_chores **out, void *self, void (*wake)(void *self), shoal_error *err);
/* Waits for the one that is being done. All that were added are handed back. */
void shoal_chores_destroy(shoal_chores *chores);

/* False: SHOAL_CHORES_MAX wait already, and self stays the caller's. */
bool shoal_chores_add(shoal_chores *chores, const shoal_chore *chore);
/* Whether one about this was added and not handed back yet. */
bool shoal_chores_has(shoal_chores *chores, const char *subject);
void shoal_chores_tick(shoal_chores *chores);

#endif
