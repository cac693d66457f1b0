/* agent_worker.h: plays units of a server's agent job, over HTTP.
 *
 * The brief says what is played: an environment that is built in, a policy's shape, and how long. Threads
 * then each ask for a unit (POST play), play it, and send what happened with the question for the next one, on
 * a connection that is kept. A policy that one of them was sent is there for all. A server that goes away is
 * waited for, and a note says so; when it was only out of reach it gets what was played, and a training that
 * went back to what was saved of it begins anew. What is lost is a lease at most.
 *
 * Ownership: everything is borrowed for the call. Threads: run blocks; `stop` may be set by any. */
#ifndef SHOAL_WORK_AGENT_WORKER_H
#define SHOAL_WORK_AGENT_WORKER_H

#include <signal.h>

#include "cluster/worker_node.h"
#include "wire/link.h"
#include "wire/notes.h"

typedef struct shoal_agent_worker_config {
  const shoal_link *link;
  uint64_t job;
  uint64_t number;  /* that the server has given this worker */
  const char *name; /* of it */
  uint32_t threads;
  shoal_worker_count *count; /* units are added there, and steps of environments as samples */
  shoal_notes notes;
  const volatile sig_atomic_t *stop;
} shoal_agent_worker_config;

/* Until the job is over (SHOAL_OK), `stop` is set (SHOAL_STOPPED, after the units at hand), or something is
 * wrong that waiting will not mend; SHOAL_UNSUPPORTED: not on this machine (agent/libm_digest.h). */
shoal_status shoal_agent_worker_run(const shoal_agent_worker_config *config, shoal_error *err);

#endif
