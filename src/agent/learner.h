/* learner.h: learns from rollouts; one of several algorithms.
 *
 * Work goes in rounds. A round is one unit of each stream; the learner takes their rollouts, in the order of
 * their numbers, trains, and has a new version of the policy. Units of round r are played with version r -
 * lag: with a lag of 0 actors wait while it learns (ppo, clone), with 1 they play meanwhile. Played so, a
 * training is a function of its seed, whoever plays. Actors far away may lag more: then the learner is given
 * rollouts as they come, older ones than `lag_max` versions are refused (counted), and V-trace corrects for
 * the others.
 *
 * Ownership: create, then destroy. Threads: one caller; the threads inside are its own. */
#ifndef SHOAL_AGENT_LEARNER_H
#define SHOAL_AGENT_LEARNER_H

#include "agent/rollout.h"

typedef enum shoal_algorithm {
  SHOAL_PPO,
  SHOAL_VTRACE,
  SHOAL_DQN,
  SHOAL_SAC,
  SHOAL_CLONE,
  SHOAL_ALGORITHMS,
} shoal_algorithm;
const char *shoal_algorithm_name(shoal_algorithm algorithm);
const char *shoal_algorithm_says(shoal_algorithm algorithm); /* in a line: what it is */
bool shoal_algorithm_parse(const char *name, shoal_algorithm *out);
/* All of them, for people: "ppo, vtrace or dqn". */
enum { SHOAL_ALGORITHM_NAMES_MAX = 64 };
void shoal_algorithm_names(char out[SHOAL_ALGORITHM_NAMES_MAX]);

/* What may be set; shoal_agent_settings fills in what suits the environment, and texts override it. */
typedef struct shoal_agent_settings {
  shoal_algorithm algorithm;
  char body[2048];
  uint32_t streams, envs, steps; /* in a round: streams x envs x steps steps */
  uint32_t lag, lag_max;
  uint64_t budget; /* steps of a whole training, where nobody says otherwise */
  float discount, rate, clip;
  bool anneal; /* the rate falls to zero towards the end of `steps_all` */
  bool scale_observations, scale_rewards;
  /* ppo, vtrace */
  float lambda, entropy, value_weight, ratio_clip;
  uint32_t epochs, minibatch;
  /* dqn, sac */
  uint32_t memory, batch, warmup,
      n_step;    /* kept transitions; rows of an update; steps before the first; returns */
  float updates; /* for every step of an environment */
  float follow;  /* share that targets move by */
  float epsilon_from, epsilon_to, epsilon_steps;
  uint32_t hold;
  bool duelling;
  /* clone */
  float keep_share;    /* of the goal that an episode must reach to be kept */
  uint32_t keep_steps; /* kept at most */
} shoal_agent_settings;

/* Defaults for an algorithm in an environment; algorithm SHOAL_ALGORITHMS chooses that, too. SHOAL_INVALID:
 * it cannot act there (dqn in a continuous one). */
shoal_status shoal_agent_defaults(const shoal_env_kind *kind, shoal_algorithm algorithm,
                                  shoal_agent_settings *out, shoal_error *err);
/* One setting by its name, as `shoal agent train --set rate=0.001` has it. SHOAL_INVALID: it is none, or out
 * of its range, or of another algorithm, so that it would do nothing. */
shoal_status shoal_agent_set(shoal_agent_settings *settings, const char *name, const char *value,
                             shoal_error *err);
/* All of them as "name value" lines, for files and --help; and back. */
void shoal_agent_settings_write(const shoal_agent_settings *settings, shoal_text *out);
shoal_status shoal_agent_settings_read(shoal_agent_settings *settings, const char *text, shoal_error *err);

typedef struct shoal_learner shoal_learner;

typedef struct shoal_learner_config {
  const shoal_env_kind *kind;
  shoal_agent_settings settings;
  uint64_t seed;
  uint64_t steps_all; /* that are planned, for what changes over a training; 0: unknown */
  uint32_t threads;
} shoal_learner_config;

shoal_status shoal_learner_create(shoal_learner **out, const shoal_learner_config *config, shoal_error *err);
void shoal_learner_destroy(shoal_learner *learner);

const shoal_policy_spec *shoal_learner_spec(const shoal_learner *learner);
/* The newest version; lent until the next round. */
shoal_policy *shoal_learner_policy(shoal_learner *learner);
/* What a rollout for it is like. */
shoal_rollout_shape shoal_learner_shape(const shoal_learner *learner);
uint64_t shoal_learner_steps(const shoal_learner *learner); /* of environments, in all */
/* Its threads, for who plays while it does not learn; NULL with one thread. */
shoal_pool *shoal_learner_pool(shoal_learner *learner);
/* What else a whole file keeps, for who trains: where the streams stand. Owned by the learner; whoever writes
 * it does so before it is saved. */
shoal_text *shoal_learner_notes(shoal_learner *learner);
/* The score of the newest version, for files. */
void shoal_learner_scored(shoal_learner *learner, double return_mean);

/* What the last round came to. */
typedef struct shoal_round_view {
  uint64_t version, steps;          /* of the policy; of environments, in all */
  uint64_t refused;                 /* rollouts that were too old, in all */
  double loss, value_loss, entropy; /* NAN where the algorithm has none */
  double divergence, clipped;       /* of the new policy from the one that played */
  double rate, epsilon;
  double lag; /* versions, mean of the round's rollouts */
} shoal_round_view;

/* One round's rollouts; those that are too old, or of another shape, are refused. SHOAL_INVALID: the losses
 * are not finite any more; SHOAL_STOPPED: it was interrupted; either way the learner stays as it was. */
shoal_status shoal_learner_round(shoal_learner *learner, shoal_rollout *const *rollouts, uint32_t count,
                                 shoal_round_view *out, shoal_error *err);
/* A round that is refused as a whole: a version more, that is as the one before. */
void shoal_learner_refuse(shoal_learner *learner, uint32_t count, shoal_round_view *out);
/* Asked in a round before every update, from now on; NULL: no more. */
void shoal_learner_interrupt(shoal_learner *learner, const shoal_interrupt *interrupt);

/* Everything, to go on exactly (the memory of dqn and sac among it), or the policy alone, to play. One
 * safetensors file; written beside, then renamed. */
shoal_status shoal_learner_save(const shoal_learner *learner, const char *path, bool whole, shoal_error *err);
shoal_status shoal_learner_load(shoal_learner *learner, const char *path, shoal_error *err);
/* What a file was trained for, and its policy. */
typedef struct shoal_agent_file {
  char env[128];
  shoal_algorithm algorithm;
  uint64_t seed, steps;
  uint64_t steps_all; /* that were planned */
  bool whole;         /* training can go on from it */
  double return_mean; /* of its last evaluation; NAN: none */
  uint64_t weights;   /* of the policy's network */
  shoal_agent_settings settings;
} shoal_agent_file;
/* Whether this is an agent's file; it may be one that cannot be read. */
bool shoal_agent_is(const char *path);
/* policy may be NULL, where it is not wanted. For one, an environment of Gymnasium's must be open (bridge.h),
 * and stay so as long as the policy lives. */
shoal_status shoal_agent_open(const char *path, shoal_agent_file *file, shoal_policy **policy,
                              shoal_error *err);

#endif
