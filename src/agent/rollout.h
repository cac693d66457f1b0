/* rollout.h: the unit of an agent's training: play so many steps, tell what happened.
 *
 * A learner's environments are cut into streams, each a few environments that are played together by one
 * actor at a time. A unit is the next stretch of a stream: which policy, where the environments stand, how
 * long. The rollout is a pure function of the unit and the policy's bytes, so it does not matter who plays
 * it, and one that was lost is played again. Where environments cannot be carried from machine to machine
 * (stage.h: those that are bridged), the actor that played the stretch before goes on, and any other begins
 * the unit with a reset from its own seed: such streams are best given to the same actor again.
 *
 * Ownership: rollouts are created for a shape and destroyed. Threads: none. */
#ifndef SHOAL_AGENT_ROLLOUT_H
#define SHOAL_AGENT_ROLLOUT_H

#include "agent/interrupt.h"
#include "agent/policy.h"
#include "agent/vector.h"

typedef struct shoal_rollout_shape {
  const shoal_env_kind *kind;
  uint32_t envs, steps;
  uint32_t memory_floats; /* of the policy, a row's */
} shoal_rollout_shape;

typedef struct shoal_play_unit {
  uint64_t number; /* 0, 1, ... over the whole training */
  uint32_t stream;
  uint64_t version; /* of the policy */
  uint64_t seed;    /* of the training */
  shoal_text state; /* where the stream stands: vector's bytes and the policy's memory; empty: begin anew */
} shoal_play_unit;

/* Rows are in the order of time: row t * envs + e. */
typedef struct shoal_rollout {
  shoal_rollout_shape shape;
  uint64_t number, version;
  uint32_t stream;
  float *observations; /* (steps + 1) x envs x observation; those after the last step, too */
  float *actions;      /* steps x envs x action_width */
  float *log_probs;    /* steps x envs, of the policy that played */
  float *rewards;
  uint8_t *ends; /* shoal_end */
  float *memory; /* envs x memory floats: the policy's, before the first step */
  /* Where an episode was cut off, what was seen last, in the order of rows. */
  uint32_t lasts_count;
  uint32_t *last_rows; /* row numbers */
  float *lasts;        /* x observation */
  /* Episodes that ended in it: their whole returns and lengths, in the order of rows. */
  uint32_t episodes_count;
  float *returns;
  uint32_t *lengths;
  shoal_text state; /* of the stream, after it */
} shoal_rollout;

enum { SHOAL_ROLLOUT_ROWS_MAX = 1 << 24, SHOAL_STREAM_BYTES_MAX = 1 << 26 };

/* What is read from bytes is no larger: observations, actions, rewards, returns, probabilities, memory. */
#define SHOAL_ROLLOUT_VALUE_MAX 1e9

/* SHOAL_LIMIT: no rows, or more than there may be. */
shoal_status shoal_rollout_create(shoal_rollout **out, const shoal_rollout_shape *shape, shoal_error *err);
void shoal_rollout_destroy(shoal_rollout *rollout);
bool shoal_rollout_is_of(const shoal_rollout *rollout, const shoal_rollout_shape *shape);

/* Compact bytes for messages: little-endian, choices as bytes; and back, with nothing trusted: shape, counts
 * and lengths must fit, numbers must be finite and within SHOAL_ROLLOUT_VALUE_MAX. SHOAL_INVALID tells what
 * does not, and what they were to be read into is as before. A unit's text is the caller's, as in text.h. */
void shoal_rollout_write(const shoal_rollout *rollout, shoal_text *out);
shoal_status shoal_rollout_read(shoal_rollout *rollout, const void *bytes, size_t length, shoal_error *err);
/* What a rollout's bytes say that they are of, without a look at the rest. False: they are none. */
bool shoal_rollout_names(const void *bytes, size_t length, uint64_t *number, uint64_t *version);
void shoal_play_unit_write(const shoal_play_unit *unit, shoal_text *out);
shoal_status shoal_play_unit_read(shoal_play_unit *unit, const void *bytes, size_t length, shoal_error *err);

/* An actor: environments and a policy, to play units with. */
typedef struct shoal_actor shoal_actor;
shoal_status shoal_actor_create(shoal_actor **out, const shoal_policy_spec *spec, uint32_t envs,
                                uint32_t steps, shoal_error *err);
void shoal_actor_destroy(shoal_actor *actor);
shoal_policy *shoal_actor_policy(shoal_actor *actor); /* to read versions into */
/* The unit, with the policy that the actor has, into a rollout of its shape. SHOAL_INVALID: the unit's state
 * is not for it. SHOAL_STOPPED: it was interrupted; the unit may be played later, or by another. */
shoal_status shoal_actor_play(shoal_actor *actor, const shoal_play_unit *unit, shoal_rollout *out,
                              shoal_error *err);
/* Whether a unit may begin there: nothing in it is trusted, and where the actor stands is open afterwards.
 * SHOAL_INVALID: it may not. */
shoal_status shoal_actor_check_state(shoal_actor *actor, const shoal_text *state, shoal_error *err);
/* Asked at every step from now on; NULL: no more. */
void shoal_actor_interrupt(shoal_actor *actor, const shoal_interrupt *interrupt);

/* Whole episodes, for the score: `episodes` of them, greedily, in environments of this seed. Each environment
 * plays its share one after the other, so that short episodes count no more than long ones. Where episodes
 * have no limit (bridge.h), one counts as it stands after SHOAL_EVALUATION_STEPS_MAX steps, and its
 * environment plays no more: so an evaluation ends. `interrupt` may be NULL. */
enum { SHOAL_EVALUATION_STEPS_MAX = 20000 };
typedef struct shoal_evaluation {
  uint32_t episodes; /* that count */
  double mean, deviation, least, most, mean_length;
} shoal_evaluation;
shoal_status shoal_evaluate_policy(shoal_policy *policy, const shoal_env_kind *kind, uint32_t episodes,
                                   uint64_t seed, const shoal_interrupt *interrupt, shoal_evaluation *out,
                                   shoal_error *err);

#endif
