/* bridge.h: environments by name: those built in, and any of Gymnasium's, which run in Python.
 *
 *   CartPole-v1                       built in
 *   gym:LunarLander-v3                gymnasium.make("LunarLander-v3")
 *   gym:LunarLander-v3?continuous=true&gravity=-5   with arguments, each a JSON value or else a text
 *   gym:my_module:MyEnv-v0            after `import my_module`, which registers it
 *
 * A process of python3, or of what SHOAL_PYTHON names, has all the environments of a vector (vector.h):
 * they are stepped one after the other, by the same rules as those built in, and with the same seeds.
 * Numbers are in memory that both processes have; a short message asks for a step, another says that it is
 * done.
 *
 * Observations become floats: a Box is flattened, a Discrete becomes a one among zeros, and what is made of
 * such (Dict, Tuple, MultiDiscrete) is its parts in a row, as gymnasium.spaces.flatten has it. Actions are
 * Discrete, MultiDiscrete (each combination is a choice) or a Box with bounds; where its numbers have
 * different bounds, each goes from -1 to 1 here. There is no limit of steps but the environment's own.
 *
 * Opening such a name runs code: whatever gymnasium.make and the module do. Who takes names from strangers
 * uses shoal_env_find instead.
 *
 * Ownership: open, then close. Threads: any may open and close; a shoal_bridged is one thread's at a time. */
#ifndef SHOAL_AGENT_BRIDGE_H
#define SHOAL_AGENT_BRIDGE_H

#include <signal.h>

#include "agent/env.h"
#include "agent/interrupt.h"
#include "base/status.h"

/* The kind stays until it was closed as often as it was opened; its vectors are destroyed before.
 * SHOAL_NOT_FOUND: there is no such name; SHOAL_UNSUPPORTED: its observations or actions are of a kind that
 * cannot be learnt here; SHOAL_IO: Python cannot be run, or has failed; SHOAL_STOPPED: see below. */
shoal_status shoal_env_open(const char *name, const shoal_env_kind **out, shoal_error *err);
void shoal_env_close(const shoal_env_kind *kind); /* NULL is fine */

/* The kind of a name that is built in, or open already; NULL: neither. Starts nothing. */
const shoal_env_kind *shoal_env_opened(const char *name);

/* Whoever waits for Python looks at this flag meanwhile, and once it is set gives up: SHOAL_STOPPED, and the
 * process is ended without further ado. It holds for the whole program, and is borrowed; NULL: none. */
void shoal_env_stop_by(const volatile sig_atomic_t *stop);
/* Likewise for the environments of one kind, where it is bridged; NULL: no more. For one training at a time. */
void shoal_env_interrupt(const shoal_env_kind *kind, const shoal_interrupt *interrupt);

/* Whether this is a name of Gymnasium's; and if so whether a module of Python's is imported for it. */
bool shoal_env_is_bridged(const char *name);
bool shoal_env_imports(const char *name);

/* ---- for vector.c: the environments of a kind that has a bridge ---- */

typedef struct shoal_bridged shoal_bridged;

shoal_status shoal_bridged_create(shoal_bridged **out, const shoal_env_kind *kind, uint32_t count,
                                  shoal_error *err);
void shoal_bridged_destroy(shoal_bridged *bridged); /* NULL is fine */

/* As in vector.h. After a failure observations and rewards are zeros and every episode is cut off at once, so
 * nobody waits for its end. */
void shoal_bridged_reset(shoal_bridged *bridged, uint64_t seed);
void shoal_bridged_step(shoal_bridged *bridged, const float *actions, float *rewards, uint8_t *ends);
const float *shoal_bridged_observations(const shoal_bridged *bridged); /* count x observation */
const float *shoal_bridged_lasts(const shoal_bridged *bridged);        /* likewise, of episodes that ended */
/* For the kind's draw, which shows the observation as numbered bars. */
const void *shoal_bridged_state(const shoal_bridged *bridged, uint32_t index);
/* Likewise, of the last observation of an episode that ended. */
void shoal_bridged_draw_last(const shoal_bridged *bridged, uint32_t index, shoal_canvas *canvas);
/* The first failure. */
shoal_status shoal_bridged_check(const shoal_bridged *bridged, shoal_error *err);

#endif
