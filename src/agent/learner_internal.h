/* learner_internal.h: what learner.c and the algorithms share.
 *
 * learner.c does what is the same for all: settings, scaling of observations and rewards, the policy and its
 * versions, refusing what is too old, files. An algorithm is four functions in a file of its name. */
#ifndef SHOAL_AGENT_LEARNER_INTERNAL_H
#define SHOAL_AGENT_LEARNER_INTERNAL_H

#include "agent/learner.h"
#include "base/pool.h"

/* A vector of floats, or of bytes, that a file keeps under this name. */
typedef struct shoal_kept {
  const char *name; /* "policy.slot1", "replay.actions" */
  void *at;
  size_t count;
  bool bytes; /* elements of one byte; else floats */
  bool grows; /* a file has only the first `used` of them; those behind are zeros */
  size_t used;
} shoal_kept;
enum { SHOAL_KEPT_MAX = 64 };

typedef struct shoal_algorithm_ops {
  /* How the policy's outputs become an action in this kind of environment; SHOAL_INVALID where they
   * cannot. */
  shoal_status (*spec)(const shoal_learner_config *config, shoal_policy_spec *out, shoal_error *err);
  shoal_status (*create)(shoal_learner *learner, shoal_error *err); /* sets learner->mind */
  void (*destroy)(shoal_learner *learner);
  /* Trains on a round. Observations in rollouts are raw; rewards too (learner.c has `reward_scale`). Writes
   * the new weights, epsilon and the like into the policy's state; the caller counts versions. */
  shoal_status (*round)(shoal_learner *learner, shoal_rollout *const *rollouts, uint32_t count,
                        shoal_round_view *view, shoal_error *err);
  /* What a whole file keeps beside the policy; numbers are kept as floats of their own. Returns how many. */
  uint32_t (*kept)(shoal_learner *learner, shoal_kept out[SHOAL_KEPT_MAX]);
  float output_scale; /* of the policy's output layer, to begin with; 0: 1 */
} shoal_algorithm_ops;

extern const shoal_algorithm_ops shoal_ppo, shoal_vtrace, shoal_dqn, shoal_sac, shoal_clone;
const shoal_algorithm_ops *shoal_algorithm_ops_of(shoal_algorithm algorithm);

/* What suits an environment, over what is usual (settings.c). */
void shoal_ppo_defaults(const shoal_env_kind *kind, shoal_agent_settings *settings);
void shoal_vtrace_defaults(const shoal_env_kind *kind, shoal_agent_settings *settings);
void shoal_dqn_defaults(const shoal_env_kind *kind, shoal_agent_settings *settings);
void shoal_sac_defaults(const shoal_env_kind *kind, shoal_agent_settings *settings);
void shoal_clone_defaults(const shoal_env_kind *kind, shoal_agent_settings *settings);

struct shoal_learner {
  shoal_learner_config config;
  const shoal_algorithm_ops *ops;
  shoal_policy_spec spec;
  shoal_policy *policy;
  shoal_brain *net; /* the policy's network, to train: its weights are copied into the policy after a round */
  shoal_pool *pool; /* NULL with one thread */
  void *mind;       /* the algorithm's own */
  uint64_t steps, rounds, refused;
  double reward_scale; /* 1 unless settings.scale_rewards */
  /* Sums that the scalings are made from, over all observations so far (and all discounted returns). */
  double seen, *mean, *squares;
  double returns_seen, returns_mean, returns_squares;
  float *running_returns;      /* an environment each */
  struct shoal_backup *before; /* of those, for a round that comes to nothing (backup.h) */
  double return_mean;          /* of the last score; NAN: none */
  shoal_text notes;            /* see shoal_learner_notes */
  const shoal_interrupt *interrupt;
};

/* scaling.c: takes the round's observations and rewards into the sums; and writes what follows from them into
 * the policy's state. */
shoal_status shoal_scaling_create(shoal_learner *learner, shoal_error *err);
void shoal_scaling_destroy(shoal_learner *learner);
void shoal_scaling_observe(shoal_learner *learner, shoal_rollout *const *rollouts, uint32_t count);
void shoal_scaling_reward(shoal_learner *learner, shoal_rollout *const *rollouts, uint32_t count);
void shoal_scaling_publish(shoal_learner *learner);
uint32_t shoal_scaling_kept(shoal_learner *learner, shoal_kept out[SHOAL_KEPT_MAX]);

/* settings.c: within their ranges, and fit for this kind. */
shoal_status shoal_agent_settings_check(const shoal_agent_settings *settings, shoal_error *err);

/* agent_file.c needs these of learner.c: everything that a whole file keeps. */
uint32_t shoal_learner_kept(shoal_learner *learner, shoal_kept out[SHOAL_KEPT_MAX]);

/* progress of the training from 0 to 1, or 0 where its length is unknown: for what falls off over time. */
double shoal_learner_progress(const shoal_learner *learner);
/* The rate of learning at this point of it. */
float shoal_learner_rate(const shoal_learner *learner);

#endif
