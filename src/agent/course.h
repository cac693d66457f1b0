/* course.h: the units of a training: what is to be played next, who plays it, what has come in.
 *
 * A pure state machine, used alike by threads of this process, by volunteers through the server and by actors
 * behind a broker. Units are leases: one whose actor is lost or silent is given out again, and the first
 * rollout of a unit counts, by whoever held it last or a few times before. Where rollouts come after their
 * lease, actors are only slow: later leases are longer, up to 16 times, as long as that goes on. Unit n is of
 * stream n % streams, and stretch n / streams of it unless that began anew; a stretch begins where the one
 * before it ended, so a stream has one unit to play at a time. Two ways:
 *
 *   exact   units of round r wait for version r - lag, and are played with that one; a round is complete when
 *           all its streams are in. What comes of it is a function of the seed, whoever plays.
 *   eager   units are given out at once, with the newest version; a round is any `streams` rollouts, as they
 *           come. No actor waits for another; old rollouts are the learner's to correct or to refuse.
 *
 * At most lag + 1 rollouts of a stream are in memory (eager: two), so nothing grows: a stream whose rollouts
 * nobody has learned from yet has nothing to play.
 *
 * Actors may lie. A stream whose unit three could not play in a row, or one three times, a lease apart, or that
 * stands where somebody left it who has lied, begins anew, under a number that nobody has had: what was played
 * of the one before counts no more.
 *
 * Ownership: create, then destroy. Threads: one at a time. */
#ifndef SHOAL_AGENT_COURSE_H
#define SHOAL_AGENT_COURSE_H

#include "agent/learner.h"

typedef struct shoal_course shoal_course;

typedef struct shoal_course_config {
  shoal_rollout_shape shape;
  uint32_t streams, lag;
  bool eager;
  uint64_t seed;
  double lease_s; /* of a unit whose actor says nothing; 0: 30 */
  /* eager: rollouts of versions further behind do not count, nor those of versions from before their unit was
   * first given out: they could not be checked. 0: all count. */
  uint32_t behind_max;
} shoal_course_config;

enum { SHOAL_STREAMS_MAX = 4096, SHOAL_LAG_MAX = 7, SHOAL_ACTOR_NAME_MAX = 128 };

/* SHOAL_INVALID: streams, lag or shape are out of range. */
shoal_status shoal_course_create(shoal_course **out, const shoal_course_config *config, shoal_error *err);
void shoal_course_destroy(shoal_course *course);

/* False: nothing to play until a rollout comes in or a version is there. The unit and its text are lent until
 * the next call. */
bool shoal_course_take(shoal_course *course, const char *actor, double now, const shoal_play_unit **out);
/* The rollout becomes the course's. False: late or not asked for; it is destroyed, and counted. */
bool shoal_course_done(shoal_course *course, shoal_rollout *rollout, const char *actor, double now);
/* A unit that was given out and is not in yet, as it is; lent likewise. False: it is none of those. */
bool shoal_course_unit(shoal_course *course, uint64_t unit, const shoal_play_unit **out);
void shoal_course_lost(shoal_course *course, const char *actor, double now); /* all units that it holds */
/* It gives back a unit that it was given: what it played of that does not count, or (failed) it cannot be
 * played. */
void shoal_course_back(shoal_course *course, uint64_t unit, const char *actor, bool failed);
/* It is lost, and what streams it has played last begin anew. */
void shoal_course_lied(shoal_course *course, const char *actor, double now);
/* Before it takes one more, and may hold `most`: those that it has had longest are given to others. */
void shoal_course_bound(shoal_course *course, const char *actor, uint32_t most);
/* Ends leases that are overdue; returns when the next one would be, infinity when there is none. */
double shoal_course_tick(shoal_course *course, double now);

/* A complete round, in order; lent until shoal_course_learned. NULL: not yet. */
shoal_rollout *const *shoal_course_round(shoal_course *course, uint32_t *count);
/* The learner has taken the round in, and has this version now. */
void shoal_course_learned(shoal_course *course, uint64_t version);
/* The oldest version that a unit may still ask for. */
uint64_t shoal_course_oldest(const shoal_course *course);

typedef struct shoal_course_view {
  uint64_t rounds; /* learned from */
  uint64_t units;  /* rollouts that came in and counted */
  uint64_t running, late, given_again;
  uint64_t anew; /* streams that had to begin anew */
} shoal_course_view;
void shoal_course_look(const shoal_course *course, shoal_course_view *out);

/* Where all streams stood after the last round that was learned from, to go on after a restart; and back,
 * into a course that is new. It may go on in the other way: then units are played with the versions from that
 * one on, since older ones are not kept. SHOAL_INVALID: not for a course like this, or damaged. */
void shoal_course_write(const shoal_course *course, shoal_text *out);
shoal_status shoal_course_read(shoal_course *course, const void *bytes, size_t length, shoal_error *err);

#endif
