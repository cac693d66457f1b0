/* backup.h: copies of vectors, to go back to when a round has to be undone.
 *
 * What is copied is named as for a file (shoal_kept), so the list that a learner keeps is also what it
 * goes back to.
 *
 * Ownership: init, then release; what is listed is borrowed and stays in its place. Threads: none. */
#ifndef SHOAL_AGENT_BACKUP_H
#define SHOAL_AGENT_BACKUP_H

#include "agent/learner_internal.h"

typedef struct shoal_backup {
  shoal_kept what[SHOAL_KEPT_MAX];
  uint32_t count;
  char *bytes; /* the copies, one after the other */
} shoal_backup;

shoal_status shoal_backup_init(shoal_backup *backup, const shoal_kept *what, uint32_t count,
                               shoal_error *err);
void shoal_backup_release(shoal_backup *backup);
void shoal_backup_take(shoal_backup *backup);
void shoal_backup_restore(const shoal_backup *backup);

/* A network's weights, and what its optimiser has, under these names: weights, the two
 * vectors, the count of steps. Returns 4. */
uint32_t shoal_brain_kept(shoal_brain *net, const char *const names[4], shoal_kept *out);

#endif
