/* worker_node.h: a worker: the worker core on a network, and a thread that computes.
 *
 * It connects to the chief, learns what the job is, opens the data, connects to the parameter
 * servers, and computes units until the chief says END. Connections that break are made again.
 *
 * Threads: run blocks; `stop` may be set by a signal or another thread. */
#ifndef SHOAL_NET_WORKER_NODE_H
#define SHOAL_NET_WORKER_NODE_H

#include <signal.h>

#include "net/compute.h"
#include "net/line.h"
#include "net/notes.h"

typedef struct shoal_worker_node_config {
  const char *chief; /* host:port */
  const char *name;  /* for people: "worker 1" */
  shoal_way way;
  shoal_compute_options compute;
  double pretend_s; /* for benchmarks: computing a batch is a wait of so many seconds; 0: it is computed */
  shoal_notes notes;
  const volatile sig_atomic_t *stop;
} shoal_worker_node_config;

/* Returns when the job is over, `stop` is set, or something is wrong that waiting will not mend. */
shoal_status shoal_worker_node_run(const shoal_worker_node_config *config, shoal_error *err);

#endif
