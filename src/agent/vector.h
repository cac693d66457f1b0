/* vector.h: many environments of a kind, stepped together: seeds, time limits and the end of episodes.
 *
 * One rule for the end: an environment whose episode ended is reset in the same step. So the observations
 * after a step are those to act on next, always; the last one of the episode that ended is kept beside them
 * (shoal_vector_last). Terminated and cut off are told apart: an episode that ended by itself is
 * SHOAL_TERMINATED even when that was its last step in time, one that only ran out of time is
 * SHOAL_TRUNCATED, and what comes after it still has a value.
 *
 * Environment i of seed s begins with seed s + i, as Gymnasium's vector environments do; later episodes go
 * on with its generator.
 *
 * Ownership: create, then destroy. Threads: one at a time. */
#ifndef SHOAL_AGENT_VECTOR_H
#define SHOAL_AGENT_VECTOR_H

#include "agent/env.h"
#include "base/status.h"

typedef enum shoal_end { SHOAL_GOES_ON, SHOAL_TERMINATED, SHOAL_TRUNCATED } shoal_end;

typedef struct shoal_vector shoal_vector;

enum { SHOAL_VECTOR_COUNT_MAX = 1 << 20 };

/* SHOAL_LIMIT: none, or too many. */
shoal_status shoal_vector_create(shoal_vector **out, const shoal_env_kind *kind, uint32_t count,
                                 shoal_error *err);
void shoal_vector_destroy(shoal_vector *vector);

/* Begins anew everywhere. */
void shoal_vector_reset(shoal_vector *vector, uint64_t seed);
/* rewards and ends: `count` each. */
void shoal_vector_step(shoal_vector *vector, const float *actions, float *rewards, uint8_t *ends);

/* SHOAL_OK, or why environments that run elsewhere (bridge.h) do not answer any more: after that every
 * episode is cut off at every step, and observations are zeros. Whoever plays asks after a stretch of
 * steps. */
shoal_status shoal_vector_check(const shoal_vector *vector, shoal_error *err);

/* count x observation, for the next act; and the last one of an episode that just ended. */
const float *shoal_vector_observations(const shoal_vector *vector);
const float *shoal_vector_last(const shoal_vector *vector, uint32_t index);
const void *shoal_vector_state(const shoal_vector *vector, uint32_t index); /* for draw */
/* From now on, when an episode of the first environment ends, how it ended is drawn on this canvas before the
 * next one begins. It is borrowed; NULL: no more. */
void shoal_vector_watch(shoal_vector *vector, shoal_canvas *canvas);

/* All of it as bytes, to go on elsewhere (on machines of the same byte order, which is little-endian): 0
 * bytes where a state owns more than itself.
 *
 *   0   8   digest of the kind's name
 *   8   4   count
 *   12  4   bytes of a state
 *   16      count states; count generators of 32 bytes; count u32 of steps that the episode has had */
size_t shoal_vector_bytes(const shoal_vector *vector);
void shoal_vector_save(const shoal_vector *vector, void *bytes);
/* False: not what save writes for this kind and count. Nothing in it is trusted. */
bool shoal_vector_load(shoal_vector *vector, const void *bytes, size_t length);

#endif
