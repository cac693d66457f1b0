/* episodes.h: whole episodes, put together from rollouts, and the best of them kept.
 *
 * Rollouts are stretches of time: an episode may begin in one and end some rollouts of its stream later.
 * Episodes whose return reaches the bar are kept; where they are more than `keep_steps` steps, the lowest
 * returns make room, of equal ones the oldest. So memory is bounded, and the best stay. An episode of
 * which a part is missing is dropped, and so is one that is longer than the environment's limit, or than
 * `keep_steps`.
 *
 * Ownership: create, then destroy. Threads: one at a time. */
#ifndef SHOAL_AGENT_EPISODES_H
#define SHOAL_AGENT_EPISODES_H

#include "agent/learner_internal.h"

typedef struct shoal_episodes shoal_episodes;

typedef struct shoal_episodes_config {
  const shoal_env_kind *kind;
  uint32_t streams, envs, steps; /* of a round at most */
  uint32_t keep_steps;
} shoal_episodes_config;

/* SHOAL_INVALID: one of the numbers is zero; SHOAL_LIMIT: more than fits into memory. */
shoal_status shoal_episodes_create(shoal_episodes **out, const shoal_episodes_config *config,
                                   shoal_error *err);
void shoal_episodes_destroy(shoal_episodes *episodes);

/* Takes a round's rollouts, in their order, and keeps the episodes that end in them at `bar` or above.
 * They are of these environments, and sound (learner.c sees to that). SHOAL_CORRUPT: what is here was read
 * from a damaged file; nothing was taken. */
shoal_status shoal_episodes_add(shoal_episodes *episodes, shoal_rollout *const *rollouts, uint32_t count,
                                double bar, shoal_error *err);
/* Drops episodes below the bar, the lowest first, as long as `steps_least` steps stay. */
void shoal_episodes_raise(shoal_episodes *episodes, double bar, uint32_t steps_least);

typedef struct shoal_episodes_view {
  uint32_t kept, steps;    /* episodes, and their steps */
  double least, most;      /* of their returns; NAN: there are none */
  uint64_t ended, dropped; /* episodes in all, and those of which a part was missing */
  uint32_t recent;         /* that ended last, a hundred at most: */
  double recent_mean;      /* of their returns; NAN: there are none */
  double worst;            /* return of all that ended; NAN: there are none */
} shoal_episodes_view;
void shoal_episodes_look(const shoal_episodes *episodes, shoal_episodes_view *out);

/* Kept episode i, 0 .. kept - 1: the first of its steps, and how many they are. */
void shoal_episodes_episode(const shoal_episodes *episodes, uint32_t i, uint32_t *first, uint32_t *length);
/* Step i of the kept ones, 0 .. steps - 1, whichever its episode: what was seen, then what was done. */
const float *shoal_episodes_step(const shoal_episodes *episodes, uint32_t i);

/* All of it, for a file; returns how many. */
uint32_t shoal_episodes_kept(shoal_episodes *episodes, shoal_kept *out);

#endif
