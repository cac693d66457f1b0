/* spawn.h: processes that this one starts, looks after and ends.
 *
 * They run in a process group of their own, so that Ctrl-C at the terminal reaches the parent
 * alone, which then ends them in order; and they die with the parent, however it dies. Whoever
 * dies before that is started again, later and later, but for the leader: when it has ended, so
 * has the work.
 *
 * Who ends soon after its start time after time is given up, and at once who says by its status that another
 * try is of no use: 2, it was called wrongly, or 127, there is no such program. The work has failed when one
 * of those is vital, or nobody is left who works. Who only says that its machine cannot be reached is tried
 * longer, lost_tries times in a row.
 *
 * Ownership: create, then end. Threads: one caller; a thread inside watches. */
#ifndef SHOAL_CLI_SPAWN_H
#define SHOAL_CLI_SPAWN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "wire/notes.h"

typedef struct shoal_spawn shoal_spawn;

typedef enum shoal_spawn_output {
  SHOAL_OUTPUT_ERRORS, /* standard error is this process's; what it prints else is dropped */
  SHOAL_OUTPUT_ALL,    /* both are this process's */
  SHOAL_OUTPUT_NAMED,  /* lines of both go to this process's standard error, the name in front */
} shoal_spawn_output;

typedef struct shoal_spawn_process {
  const char *name;         /* for people: "worker 1" */
  const char *program;      /* as the shell finds it; NULL: this one */
  const char *const *words; /* what follows the program, ending in NULL */
  shoal_spawn_output output;
  bool lifeline; /* standard input is a pipe that ends with this process (lifeline.h); else there is none */
  bool leads;    /* one at most */
  bool vital;    /* without it nobody can work */
  bool works;
  int lost; /* a status that says no more than that its machine cannot be reached, which may pass; or 0 */
  uint32_t lost_tries;
} shoal_spawn_process;

enum { SHOAL_SPAWN_ARGUMENTS_MAX = 64 };

/* From the thread inside. */
typedef struct shoal_spawn_calls {
  shoal_notes notes;
  void *self;
  void (*failed)(void *self, const shoal_error *err); /* the work has, once; who runs still does */
} shoal_spawn_calls;

shoal_status shoal_spawn_create(shoal_spawn **out, uint32_t max, const shoal_spawn_calls *calls,
                                shoal_error *err);
/* Adds one; all is copied. Called before start. */
void shoal_spawn_add(shoal_spawn *spawn, const shoal_spawn_process *process);
/* The one added last runs in this network namespace, a file such as /run/netns/NAME; copied. */
void shoal_spawn_in_network(shoal_spawn *spawn, const char *path);
shoal_status shoal_spawn_start(shoal_spawn *spawn, shoal_error *err);

/* Whether the leader has ended; *status is then what a shell would say: 128 + N after signal N. */
bool shoal_spawn_leader_ended(shoal_spawn *spawn, int *status);
/* Says a line through the leader's lifeline; text is not copied. */
void shoal_spawn_tell_leader(shoal_spawn *spawn, const char *text);

/* Waits a little for those that are ending by themselves, lets go of the others' lifelines, stops them
 * where that does not help, and destroys. */
void shoal_spawn_end(shoal_spawn *spawn);

#endif
