/* agent_trainer.h: a training from inside, for coach.c: the same loop that learns, scores, saves and ends,
 * with actors that come to ask.
 *
 * Ownership: a trainer is lent from `opened` until `closes`. Threads: any may call these meanwhile; `opened`
 * and `closes` come from the thread that trains. */
#ifndef SHOAL_AGENT_AGENT_TRAINER_H
#define SHOAL_AGENT_AGENT_TRAINER_H

#include "agent/training.h"

typedef struct shoal_agent_trainer shoal_agent_trainer;

/* Rollouts of versions no older than this can be played again, where the lag_max of the settings is not less. */
enum { SHOAL_CHECKED_LAG_MAX = 64 };

/* Who plays in place of threads of the training itself. */
typedef struct shoal_agent_trainer_outside {
  bool eager;
  bool checked; /* only rollouts count that can be played again */
  double lease_s;
  void *self;
  void (*opened)(void *self, shoal_agent_trainer *trainer);
  void (*closes)(void *self);
} shoal_agent_trainer_outside;

shoal_status shoal_train_outside(const shoal_training_options *options,
                                 const shoal_agent_trainer_outside *outside, shoal_training_view *out,
                                 shoal_error *err);

/* Both texts are added to. False: nothing to play now. */
bool shoal_agent_trainer_take(shoal_agent_trainer *trainer, const char *actor, uint64_t known,
                              shoal_text *unit, shoal_text *policy);
/* The rollout becomes the trainer's. False: late, or nobody asked for it. */
bool shoal_agent_trainer_done(shoal_agent_trainer *trainer, shoal_rollout *rollout, const char *actor);
/* The unit of this number, and the policy of this version, to play it again; both texts are added to. False:
 * one of them is not there, or there no more. */
bool shoal_agent_trainer_evidence(shoal_agent_trainer *trainer, uint64_t number, uint64_t version,
                                  shoal_text *unit, shoal_text *policy);
void shoal_agent_trainer_lost(shoal_agent_trainer *trainer, const char *actor);
/* As course.h has these. */
void shoal_agent_trainer_back(shoal_agent_trainer *trainer, uint64_t number, const char *actor, bool failed);
void shoal_agent_trainer_lied(shoal_agent_trainer *trainer, const char *actor);
void shoal_agent_trainer_bound(shoal_agent_trainer *trainer, const char *actor, uint32_t most);
/* The newest; bytes may be NULL. */
uint64_t shoal_agent_trainer_policy(shoal_agent_trainer *trainer, shoal_text *bytes);
void shoal_agent_trainer_course(shoal_agent_trainer *trainer, shoal_course_view *out);

#endif
