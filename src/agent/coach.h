/* coach.h: a training whose actors are elsewhere: units, policies and rollouts as bytes.
 *
 * A thread of its own learns, scores and saves, as training.h does; actors are whoever calls take and done:
 * the server's routes, or a broker's loop. Actors never wait for each other (course.h, eager) unless `exact` is
 * asked for. What an actor knows is told by the version that it has, so a late joiner gets the newest policy
 * with its first unit, and one that is lost costs a lease.
 *
 * Ownership: start, wait, then destroy; the config is copied. Threads: any may call all but start, wait and
 * destroy; `changed` and `warn` come from the thread inside, and must not wait. */
#ifndef SHOAL_AGENT_COACH_H
#define SHOAL_AGENT_COACH_H

#include "agent/training.h"

typedef struct shoal_coach shoal_coach;

typedef struct shoal_coach_config {
  shoal_learner_config learner;
  bool exact;
  bool checked; /* actors may lie: only rollouts count that can be played again, from states that are some */
  double lease_s;        /* of a unit whose actor says nothing; 0: 30 */
  double seconds;        /* 0: no limit; what is paused does not count */
  double seconds_before; /* of those, that were spent in an earlier life */
  uint64_t steps;        /* in all; 0: no limit */
  bool until_solved;
  bool anew;          /* the file is not read, even where it is there */
  const char *file;   /* all of it, to go on: read at the start where it is there, written now and then */
  const char *policy; /* the newest policy alone, to play; likewise; NULL: it is not written */
  /* Policies alone, one now and then, for who wants to see earlier ones: FOLDER/STEPS.safetensors, at most
   * SHOAL_COACH_CHECKPOINTS, thinned out evenly; NULL: none. */
  const char *folder;
  double save_every_s;
  void *self;
  void (*changed)(void *self);
  void (*warn)(void *self, const char *text); /* of a disk without room, which ends nothing; may be NULL */
} shoal_coach_config;

enum { SHOAL_COACH_CHECKPOINTS = 64 };

typedef struct shoal_coach_view {
  bool ended, solved;
  bool finished;                    /* to its end, and not because it was stopped */
  char error[SHOAL_ERROR_TEXT_MAX]; /* "" unless it ended with one */
  shoal_status status;              /* of that error */
  shoal_training_view training;     /* of the last round */
  shoal_course_view course;
  double seconds;   /* that count, up to now */
  uint32_t actors;  /* that have been heard of within a lease */
  uint64_t waiting; /* rollouts that the learner has not taken yet */
  uint64_t bytes_in, bytes_out;
} shoal_coach_view;

shoal_status shoal_coach_start(shoal_coach **out, const shoal_coach_config *config, shoal_error *err);
void shoal_coach_stop(shoal_coach *coach); /* ends soon; all is saved */
/* While nobody plays, its time stands still. */
void shoal_coach_pause(shoal_coach *coach, bool paused);
void shoal_coach_wait(shoal_coach *coach);
void shoal_coach_destroy(shoal_coach *coach); /* after wait */
void shoal_coach_look(shoal_coach *coach, shoal_coach_view *out);

/* ---- for actors ---- */

/* What an actor needs to begin: environment, head, body, envs, steps, and so on, as JSON of bounded size; and
 * back. An actor makes only environments that are built in of it. `life`: a number of the caller's for what
 * has been so far, which reading leaves out; 0: none. */
void shoal_coach_brief(shoal_coach *coach, uint64_t life, shoal_text *json);
typedef struct shoal_actor_brief {
  char env[128], body[2048];
  shoal_policy_spec spec; /* its body points to the one above */
  uint32_t envs, steps;
  bool exact; /* a unit is played with its version and no other; else with the newest that the actor has */
} shoal_actor_brief;
shoal_status shoal_actor_brief_read(shoal_actor_brief *out, const char *json, size_t length,
                                    shoal_error *err);

typedef enum shoal_coach_next { SHOAL_COACH_UNIT, SHOAL_COACH_WAITS, SHOAL_COACH_OVER } shoal_coach_next;
/* The next unit as bytes (rollout.h), and the policy that it asks for unless the actor has that version
 * already (then it is left empty). known: the actor's version, UINT64_MAX for none. */
shoal_coach_next shoal_coach_take(shoal_coach *coach, const char *actor, uint64_t known, shoal_text *unit,
                                  shoal_text *policy);
/* False: late, or nobody asked for it. SHOAL_INVALID: not what a rollout looks like; the actor lied or is
 * broken, or its unit was. */
shoal_status shoal_coach_done(shoal_coach *coach, const char *actor, const void *bytes, size_t length,
                              bool *counted, shoal_error *err);
/* Likewise, but whatever it is, it does not count, and its unit is given out again. */
shoal_status shoal_coach_refuse(shoal_coach *coach, const char *actor, const void *bytes, size_t length,
                                shoal_error *err);
/* The actor cannot play its unit of this number. */
void shoal_coach_give_up(shoal_coach *coach, const char *actor, uint64_t number);
/* What it takes to play a rollout again, asked before it is handed in: its unit and the policy that it says to
 * be played with, as bytes. False: nobody asked for it, or that version is not there any more. */
bool shoal_coach_evidence(shoal_coach *coach, const void *bytes, size_t length, shoal_text *unit,
                          shoal_text *policy);
void shoal_coach_lost(shoal_coach *coach, const char *actor);
/* It is lost, and streams that stand where it left them begin anew. */
void shoal_coach_lied(shoal_coach *coach, const char *actor);
/* Before it takes one more, and may hold `most`: those that it has had longest are given to others. */
void shoal_coach_bound(shoal_coach *coach, const char *actor, uint32_t most);
/* Seconds since it was heard of last; 0: it is not known. */
double shoal_coach_silent(shoal_coach *coach, const char *actor);
/* The newest policy; bytes may be NULL. */
void shoal_coach_policy(shoal_coach *coach, uint64_t *version, shoal_text *bytes);

/* What a rollout for it is like. */
shoal_rollout_shape shoal_coach_shape(const shoal_coach *coach);

/* The steps of all checkpoints that are in a folder, in order; at most so many. */
uint32_t shoal_coach_checkpoints(const char *folder, uint64_t *out, uint32_t most);

/* Points of the curves since `from` (a count), as JSON lines the page and the API have: steps, seconds,
 * return_mean, return_deviation, steps_per_second, lag, and the score where one was taken. Returns the new
 * count. */
uint64_t shoal_coach_news(shoal_coach *coach, uint64_t from, shoal_text *json);

/* An episode of a policy file (one of the checkpoints, or the newest), for the page's canvas: JSON with a
 * list of pictures as canvas.h has them, one before every step and one of how it ended, the rewards, and the
 * pace. */
shoal_status shoal_coach_episode(const char *path, uint64_t seed, uint32_t pictures_max, shoal_text *json,
                                 shoal_error *err);

#endif
