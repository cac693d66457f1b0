/* board.h: the trials of a search: what is to be done, who does it, what came out.
 *
 * A pure state machine over the scheduler: workers take units on leases, beat while they compute, and
 * report. An overdue unit is given out again, with the next attempt's number; the first result wins and a
 * later one is counted as late and changes nothing. A unit whose worker was lost or failed three times is
 * set aside: its trial failed. What has happened can be told again: after a restart the results that were
 * kept are reported in the order of their units, those of units that were set aside among them, and
 * everything stands where it stood; units without one are given out again. (Changes of the number of
 * trials are told again, too, each after as many units as then.) Who computed something before the restart
 * goes on: its beat takes the lease up again.
 *
 * A trial that is over by patience may be promoted like others. Its units are given out like others; a
 * worker finds that there is nothing to do and reports the same result again.
 *
 * Ownership: create, then destroy. Threads: one at a time. */
#ifndef SHOAL_SEARCH_BOARD_H
#define SHOAL_SEARCH_BOARD_H

#include "search/trial.h"

enum {
  SHOAL_ATTEMPTS_MAX = 3,
  SHOAL_CANDIDATES_MAX = 24, /* trials of which the model may be made */
};

typedef enum shoal_trial_state {
  SHOAL_TRIAL_WAITS, /* for its next rung, or for a worker */
  SHOAL_TRIAL_RUNS,
  SHOAL_TRIAL_RESTS,  /* not promoted (yet) */
  SHOAL_TRIAL_DONE,   /* to its last rung, or over by patience */
  SHOAL_TRIAL_FAILED, /* exploded, or set aside */
} shoal_trial_state;
const char *shoal_trial_state_name(shoal_trial_state state);

typedef struct shoal_board_trial {
  uint64_t trial;
  shoal_values values;
  shoal_trial_state state;
  uint32_t rung;                /* finished; UINT32_MAX: none yet */
  uint64_t unit;                /* the newest */
  char worker[64];              /* of the newest unit */
  double begun, ended, seconds; /* clock; computing in all */
  shoal_trial_result *result;   /* of the last rung that is finished; or NULL */
} shoal_board_trial;

typedef struct shoal_board shoal_board;
typedef struct shoal_board_config {
  shoal_scheduler_config scheduler;
  double lease_s; /* without a beat; 0: 30 */
} shoal_board_config;
shoal_status shoal_board_create(shoal_board **out, const shoal_board_config *config, shoal_error *err);
void shoal_board_destroy(shoal_board *board);

typedef struct shoal_taken {
  shoal_unit unit;
  uint32_t attempt; /* from 1 */
} shoal_taken;

/* A unit that is to be given out again, the lowest number first, or else a new one. Out of memory: it
 * waits, and err says so. */
shoal_next shoal_board_take(shoal_board *board, const char *worker, double now, shoal_taken *out,
                            shoal_error *err);
/* False: the lease is somebody else's by now, or the unit is finished: stop computing it. A unit that nobody
 * holds, also one that was given out before a restart and not since, is the beating attempt's again, unless a
 * later one was given out. */
bool shoal_board_beat(shoal_board *board, uint64_t unit, uint32_t attempt, double now);
bool shoal_board_unit(const shoal_board *board, uint64_t unit, shoal_unit *out); /* false: never given out */
/* Whether a unit was given out, perhaps before a restart, and has no result yet: then a result of it would
 * count. */
bool shoal_board_wants(shoal_board *board, uint64_t unit, shoal_unit *out);
/* True: it counts. False: late or unknown; nothing changed, or memory is out. result is copied. A unit
 * that was not given out yet, but would be next, counts: before a restart somebody took it. */
bool shoal_board_done(shoal_board *board, uint64_t unit, const shoal_trial_result *result, const char *worker,
                      double now);
/* The worker says that it cannot: the lease ends at once and counts as an attempt; given_back: it does not
 * count. */
void shoal_board_failed(shoal_board *board, uint64_t unit, uint32_t attempt, const char *why, bool given_back,
                        double now);
/* Ends leases that are overdue. Returns when the next one would be; infinity when there is none. */
double shoal_board_tick(shoal_board *board, double now);
/* The next unit that was set aside, each told once: its result (of its trial) must be kept like one of a
 * worker's. False: none. To be asked after take, failed and tick. */
bool shoal_board_set_aside(shoal_board *board, uint64_t *unit);
/* The next trial whose state is of no use to anybody any more, each told once: it has failed, or is
 * trained to its end, where SHOAL_CANDIDATES_MAX others are better. False: none. To be asked after done
 * and set_aside. */
bool shoal_board_spent(shoal_board *board, uint64_t *trial);

uint64_t shoal_board_trials(const shoal_board *board);
const shoal_board_trial *shoal_board_trial_at(const shoal_board *board, uint64_t trial); /* from 1 */
/* Numbers of the trials with a score, the best first: those of the highest rung first only where scores
 * are equal. Returns how many were written, at most max. */
uint64_t shoal_board_best(const shoal_board *board, uint64_t *out, uint64_t max);
uint64_t shoal_board_late(const shoal_board *board);
uint64_t shoal_board_running(const shoal_board *board);
/* Another number of trials: see scheduler.h. */
void shoal_board_extend(shoal_board *board, uint64_t trials);
uint64_t shoal_board_units(const shoal_board *board); /* that the scheduler has given out */

#endif
