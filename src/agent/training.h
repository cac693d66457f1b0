/* training.h: a whole training on this machine: threads play, the learner learns, and now and then the policy
 * is scored.
 *
 * Where the learner's lag is 0, all threads play a round and then all learn from it. Else threads play while
 * the caller's learns. Scores are taken when the episodes that were played to learn come near the goal, and
 * else seldom; when, follows from steps and returns alone. One that begins badly ends after 20 episodes. So
 * the weights, and where a training ends by its goal, are the same with any number of threads.
 *
 * A limit in seconds holds for all of it. Some time, a tenth at most, is left for the last score, which is of
 * fewer episodes where that is not enough; the first of these may take a little longer. What is being played,
 * learned or scored when the time is up, or when it is stopped, is given up at once: a round counts as a whole
 * or not at all, and is made again when the training continues.
 *
 * Ownership: everything in the options is borrowed for the call. Threads: the caller's, and its own; calls
 * come from the caller's. */
#ifndef SHOAL_AGENT_TRAINING_H
#define SHOAL_AGENT_TRAINING_H

#include <signal.h>

#include "agent/course.h"

enum { SHOAL_SCORE_EPISODES = 100 };

typedef struct shoal_training_view {
  shoal_round_view round;
  double seconds, steps_per_second; /* of late; at the end of it all, over the whole call */
  uint64_t episodes;
  double return_mean,
      return_deviation; /* of the last hundred episodes that were played to learn; NAN: none */
  bool scored;          /* the policy was scored after this round: */
  bool solved;          /* and reached the goal, with 100 episodes */
  shoal_evaluation evaluation;
} shoal_training_view;

typedef struct shoal_training_options {
  shoal_learner *learner; /* the caller's; may have been loaded */
  shoal_learner_config config;
  uint32_t threads;
  double seconds;    /* 0: no limit */
  uint64_t steps;    /* in all; 0: no limit */
  bool until_solved; /* ends as soon as an evaluation of 100 episodes reaches the goal */
  const char *out;   /* saved there now and then and at the end; NULL: not */
  double save_every_s;
  const volatile sig_atomic_t *stop;
  void *self;
  void (*round)(void *self, const shoal_training_view *view); /* may be NULL */
  void (*warn)(void *self, const char *text); /* of a disk without room, which ends nothing; may be NULL */
  double (*elapsed)(void *self);              /* seconds that count; NULL: all since the call */
} shoal_training_options;

/* The last view, with an evaluation of 100 episodes, or of fewer where the seconds end it: maybe of none, with a
 * mean of NAN. SHOAL_STOPPED: by `stop`; all is saved all the same, but not scored again. Other failures: what
 * was learned in this call is saved, and the error says so. While there is no room for `out`, the training goes
 * on; at its end it waits for room until `stop` is set, and then fails with SHOAL_FULL. */
shoal_status shoal_train_agent(const shoal_training_options *options, shoal_training_view *out,
                               shoal_error *err);

#endif
