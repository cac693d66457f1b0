/* spawn.h: processes of this program on this machine, started again when they die.
 *
 * They run in a process group of their own, so that Ctrl-C at the terminal reaches the parent
 * alone, which then ends them in order; and they die with the parent, however it dies.
 *
 * Ownership: create, then end. Threads: one caller; a thread inside watches. */
#ifndef SHOAL_CLI_SPAWN_H
#define SHOAL_CLI_SPAWN_H

#include <stdint.h>

#include "base/status.h"
#include "net/notes.h"

typedef struct shoal_spawn shoal_spawn;

enum { SHOAL_SPAWN_ARGUMENTS_MAX = 64 };

/* notes are told from the thread inside. */
shoal_status shoal_spawn_create(shoal_spawn **out, uint32_t max, const shoal_notes *notes, shoal_error *err);
/* Adds one: this program with these words, ending in NULL; all are copied. Called before start. */
void shoal_spawn_add(shoal_spawn *spawn, const char *name, const char *const *words);
shoal_status shoal_spawn_start(shoal_spawn *spawn, shoal_error *err);
/* Waits a little for those that are ending by themselves, stops the others, and destroys. */
void shoal_spawn_end(shoal_spawn *spawn);

#endif
