/* worker_node.h: a worker: the worker core on a network, and a thread that computes.
 *
 * It connects to the chief, learns what the job is, opens the data, connects to the parameter
 * servers, and computes units until the chief says END. Connections that break are made again. When it leaves
 * earlier, since it was stopped or cannot do what the job asks for, it tells the chief why. With compute.store set, units
 * wait for their data on the thread that computes.
 *
 * Threads: run blocks; `stop` may be set by a signal or another thread. */
#ifndef SHOAL_CLUSTER_WORKER_NODE_H
#define SHOAL_CLUSTER_WORKER_NODE_H

#include <signal.h>

#include "cluster/compute.h"
#include "wire/line.h"
#include "wire/notes.h"

/* What a worker has done, for other threads that look meanwhile: read with __atomic_load_n. */
typedef struct shoal_worker_count {
  uint64_t units, samples;
} shoal_worker_count;

typedef struct shoal_worker_node_config {
  const char *chief; /* host:port, or host:port/path; parameter servers at "/path" are on its host and port */
  const char *name;  /* for people: "worker 1" */
  shoal_way way;
  shoal_compute_options compute;
  double pretend_s; /* for benchmarks: computing a batch is a wait of this many seconds; 0: it is computed */
  uint64_t faulty_from; /* for tests: this unit and all later ones come out wrong, from 1; 0: none */
  uint64_t key;         /* the chief's, of its auditor (proto/chief.h); 0: a worker as others */
  const char *ps;       /* where parameter server 0 is, whatever the job says; or NULL */
  bool beside_chief; /* in the chief's process, which tells of all that comes and goes: this one does not */
  shoal_notes notes;
  shoal_worker_count *count; /* counted up; or NULL */
  const volatile sig_atomic_t *stop;
} shoal_worker_node_config;

/* Returns when the job is over, `stop` is set, or something is wrong that waiting will not mend. SHOAL_STOPPED:
 * the chief was stopped, and told so. */
shoal_status shoal_worker_node_run(const shoal_worker_node_config *config, shoal_error *err);

#endif
