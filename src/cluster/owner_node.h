/* owner_node.h: a parameter server: the owner core on a network and a disk.
 *
 * It listens for workers, connects to the chief, learns from it what the job is, and owns one
 * slice until the chief says END. When the chief says so (every few seconds, and at the end of an
 * epoch) it writes its slice to disk; the last two such records stay. Killed and started again it
 * comes back with the bits of the last version that is safe. Where the disk does not take it, the chief and a note
 * say so, and rounds go on. Who dials it and looks for another is told so. When it is stopped or cannot do what the
 * job asks for, it tells the chief.
 *
 * Threads: run blocks; `stop` may be set by a signal or another thread. */
#ifndef SHOAL_CLUSTER_OWNER_NODE_H
#define SHOAL_CLUSTER_OWNER_NODE_H

#include <signal.h>

#include "wire/line.h"
#include "wire/notes.h"

typedef struct shoal_owner_node_config {
  const char *listen, *chief; /* host:port */
  uint32_t slice;
  const char *name;   /* for people: "ps 0" */
  const char *folder; /* where records are kept */
  shoal_way way;
  const char *certificate, *key; /* or NULL */
  shoal_notes notes;
  const volatile sig_atomic_t *stop;
} shoal_owner_node_config;

/* Returns when the job is over, `stop` is set, or something is wrong that waiting will not mend. SHOAL_STOPPED:
 * the chief was stopped, and told so. */
shoal_status shoal_owner_node_run(const shoal_owner_node_config *config, shoal_error *err);

#endif
