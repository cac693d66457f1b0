/* actor_critic.h: what ppo and vtrace share: a policy and a value network that learn from a round of
 * rollouts.
 *
 * A round's steps are samples: number (k * steps + t) * envs + e for environment e at step t of rollout k.
 * They are learned from in sequences: single steps, or with a recurrent body stretches of an episode, which
 * begin with the state that the network had there. Values of a whole round come from one run of the network.
 *
 * Ownership: the learner's `mind`. Threads: those of the learner. */
#ifndef SHOAL_AGENT_ACTOR_CRITIC_H
#define SHOAL_AGENT_ACTOR_CRITIC_H

#include "agent/backup.h"
#include "agent/learner_internal.h"

enum { SHOAL_SEQUENCE_MAX = 32 }; /* steps that a recurrent network looks back while it learns */

typedef struct shoal_sequence {
  uint32_t first; /* sample; the next one is `envs` further */
  uint32_t length;
} shoal_sequence;

/* What a net has before each sequence, where it is recurrent. */
typedef struct shoal_states {
  uint32_t width;
  float *of_rows;      /* an environment of a rollout each: as the walk goes on */
  float *of_tails;     /* the same, where the walk is over and looks one step further */
  float *of_sequences; /* before each */
  float *of_batch;     /* of those in the minibatch */
} shoal_states;

typedef struct shoal_actor_critic {
  shoal_brain *value;
  shoal_backup backup;
  uint32_t length_max;     /* of a sequence */
  uint32_t rows, envs;     /* of a rollout; its environments */
  uint32_t width, outputs; /* of an action; of the policy's network */

  /* the round */
  shoal_rollout *const *rollouts;
  uint32_t count, samples; /* rollouts; their steps */
  float *seen;             /* scaled: count x (steps + 1) x envs, then those before episodes were cut off */
  float *values;           /* of these */
  float *policy_outputs;   /* of these */
  uint32_t lasts;          /* how many were cut off */
  float *log_ratios, *advantages, *targets; /* of samples */
  bool corrected; /* they are vtrace's: steps are measured from the policy of log_ratios */
  shoal_sequence *sequences;
  uint32_t sequences_count, *order;
  uint32_t *begins; /* of samples: the sequence that begins there, or UINT32_MAX */
  shoal_states policy_states, value_states;
  /* The value network's, of every environment of every stream, before its next rollout; and what is seen
   * there, since a rollout that begins elsewhere begins with nothing. */
  float *value_carry, *value_expected;
  float *value_carry_new, *value_expected_new; /* once the round is over */

  /* the minibatch */
  const uint32_t *chosen; /* sequences */
  uint32_t chosen_count, steps, chosen_samples;
  float *x;
  double advantage_mean, advantage_scale;
  float *deviations_gradients;

  /* GAUSSIAN: logs of deviations, and their optimiser's two vectors */
  float *deviations, *deviations_slots;
} shoal_actor_critic;

/* The ops of both. */
shoal_status shoal_actor_critic_spec(const shoal_learner_config *config, shoal_policy_spec *out,
                                     shoal_error *err);
shoal_status shoal_actor_critic_create(shoal_learner *learner, shoal_error *err);
void shoal_actor_critic_destroy(shoal_learner *learner);
uint32_t shoal_actor_critic_kept(shoal_learner *learner, shoal_kept out[SHOAL_KEPT_MAX]);

/* Learns from a round: computes its advantages once, then trains on it for several epochs. vtrace: advantages and
 * targets are corrected for the policy that has changed since the rollouts, and epochs keep near that policy, not near the one
 * that played. SHOAL_INVALID: a loss or a gradient is not finite; SHOAL_STOPPED: the learner was interrupted. After
 * either, all is as it was before. */
shoal_status shoal_actor_critic_learn(shoal_learner *learner, shoal_rollout *const *rollouts, uint32_t count,
                                      bool vtrace, shoal_round_view *view, shoal_error *err);

/* ---- its steps, for tests ---- */

/* Takes a round: scales what was seen, cuts it into sequences. */
void shoal_actor_critic_begin(shoal_learner *learner, shoal_rollout *const *rollouts, uint32_t count);
/* The values of all that was seen, and with them advantages and targets of all samples. */
void shoal_actor_critic_values(shoal_learner *learner);
void shoal_actor_critic_advantages(shoal_learner *learner, bool vtrace);
/* Log pi - log mu of all samples, with the policy as it is now. Where it is recurrent, epochs need its states
 * from here. */
void shoal_actor_critic_ratios(shoal_learner *learner);
/* Sums over an epoch. */
typedef struct shoal_epoch_sums {
  double samples, loss, value_loss, entropy, divergence, clipped;
} shoal_epoch_sums;
/* All samples once, in minibatches. */
shoal_status shoal_actor_critic_epoch(shoal_learner *learner, uint32_t epoch, float rate,
                                      shoal_epoch_sums *sums, shoal_error *err);
/* The round did well: the policy's state gets the new weights. */
void shoal_actor_critic_end(shoal_learner *learner);

#endif
