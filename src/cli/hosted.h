/* hosted.h: a job on a server, from the host's side: watched to its end, its model brought back.
 *
 * Ownership: everything is borrowed for the call. Threads: one. */
#ifndef SHOAL_CLI_HOSTED_H
#define SHOAL_CLI_HOSTED_H

#include <stdio.h>

#include "cli/remote.h"

typedef struct shoal_hosted {
  shoal_remote *api;
  const shoal_remote_options *options; /* for the commands that are told */
  const char *command;                 /* "host": who says what goes wrong */
  uint64_t job;
  /* Where the model goes. NULL: the job's name with .safetensors, and another file that is there is moved
   * aside, to ".previous" or the first of ".previous-2" and on that is free. */
  const char *out;
  FILE *text; /* for people; NULL: nothing */
  bool json;
} shoal_hosted;

/* Follows the job; when it is finished, gets the model. A signal ends it: the job goes on, and how to go on
 * watching is told. *exit_status is that of the command: 0 for a job that is finished, 1 for one that was
 * stopped or has failed, 128 and its number after a signal. */
shoal_status shoal_hosted_watch(const shoal_hosted *hosted, int *exit_status, shoal_error *err);
/* Gets the model as it is. `job` is the JOB. */
shoal_status shoal_hosted_get(const shoal_hosted *hosted, const cJSON *job, shoal_error *err);
/* Whether a model can be saved there, before anything is begun that ends with that. NULL: in this folder. */
shoal_status shoal_hosted_check_out(const char *out, shoal_error *err);
/* What can be done with the job from here. */
void shoal_hosted_tell_commands(const shoal_hosted *hosted);

#endif
