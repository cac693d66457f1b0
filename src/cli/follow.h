/* follow.h: a job on a server, watched until it ends.
 *
 * The server's live events become what `shoal train` would show: a progress line, a line an epoch, notes;
 * of a search, a line for every trial that is better than all before it, of an agent for every score that is.
 * A connection that breaks is made again; epochs and points that were missed are shown then, and the best
 * trial.
 *
 * Ownership: everything is borrowed for the call. Threads: one. */
#ifndef SHOAL_CLI_FOLLOW_H
#define SHOAL_CLI_FOLLOW_H

#include <stdio.h>

#include "cli/remote.h"

typedef struct shoal_follow_config {
  shoal_remote *api;
  uint64_t job;
  FILE *text; /* for people; NULL: nothing */
  bool json;  /* events as lines on standard output */
  const volatile sig_atomic_t *stop;
} shoal_follow_config;

/* Returns when the job is finished, stopped or failed: *out is the JOB, the caller's; or SHOAL_STOPPED when
 * `stop` was set. A server that has never told of the job is not waited for. */
shoal_status shoal_follow(const shoal_follow_config *config, cJSON **out, shoal_error *err);

#endif
