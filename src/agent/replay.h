/* replay.h: what was lived through, to learn from again: a ring of transitions.
 *
 * A transition is what was seen, what was done, the discounted rewards of up to `n_step` steps, what was seen
 * then, and what its value counts: discount^k after k steps, 0 where the episode ended by itself. Where it
 * was cut off, the last observation of that episode counts on. A window of n steps may begin in one
 * rollout and be completed by the next one of the same stream; it never reaches over the end of an
 * episode, nor over a rollout that is missing: then it closes early, with what was seen last.
 *
 * Observations and rewards are raw. Memory is reserved once: `capacity` transitions to draw from, and room
 * for a round more, so that a round can be taken back.
 *
 * Ownership: create, then destroy. Threads: one at a time. */
#ifndef SHOAL_AGENT_REPLAY_H
#define SHOAL_AGENT_REPLAY_H

#include "agent/learner_internal.h"

typedef struct shoal_replay shoal_replay;

typedef struct shoal_replay_config {
  const shoal_env_kind *kind;
  uint32_t capacity;             /* transitions */
  uint32_t streams, envs, steps; /* of a round at most */
  uint32_t n_step;
  float discount;
  /* There is enough to learn from after so many steps, and episodes that ended by themselves; where these
   * do not come, it is not waited for them for ever. */
  uint32_t warmup, ended;
} shoal_replay_config;

/* SHOAL_INVALID: one of the numbers is zero; SHOAL_LIMIT: more than fits into memory. */
shoal_status shoal_replay_create(shoal_replay **out, const shoal_replay_config *config, shoal_error *err);
void shoal_replay_destroy(shoal_replay *replay);

/* Takes a round's rollouts, in their order, `streams` of them at most; they are of these environments, and
 * sound (learner.c sees to that). SHOAL_CORRUPT: what is here was read from a damaged file; nothing was
 * taken. */
shoal_status shoal_replay_add(shoal_replay *replay, shoal_rollout *const *rollouts, uint32_t count,
                              shoal_error *err);
/* Takes the last round back: all is as it was before. Once. */
void shoal_replay_undo(shoal_replay *replay);

uint32_t shoal_replay_count(const shoal_replay *replay); /* transitions to draw from */
uint64_t shoal_replay_steps(const shoal_replay *replay); /* of environments, that were taken in all */
/* Steps since there was enough to learn from; 0 before. */
uint64_t shoal_replay_lessons(const shoal_replay *replay);

/* n transitions, with replacement, each as likely as the others. All vectors are the caller's. */
typedef struct shoal_replay_batch {
  uint32_t n;
  float *observations; /* n x observation */
  float *actions;      /* n x action_width */
  float *rewards;      /* n: discounted sums */
  float *discounts;    /* n: what the value of `nexts` counts */
  float *nexts;        /* n x observation */
} shoal_replay_batch;
void shoal_replay_draw(const shoal_replay *replay, shoal_key key, shoal_replay_batch *batch);

/* Reserves the vectors of a batch of n; false without memory. release takes an empty one, too. */
bool shoal_replay_batch_init(shoal_replay_batch *batch, const shoal_env_kind *kind, uint32_t n);
void shoal_replay_batch_release(shoal_replay_batch *batch);

/* All of it, for a file; returns how many. */
uint32_t shoal_replay_kept(shoal_replay *replay, shoal_kept *out);

#endif
