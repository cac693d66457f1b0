/* scheduler.h: which trial is trained next, and for how long.
 *
 * A pure state machine. Units are numbered from 0; unit k depends on the settings and on the results of
 * units 0 .. k - window - 1 alone, whatever else is known by then. So many workers as the window is wide
 * never wait long, and any number of them, in any order, come to the same units. Results can be reported
 * in any order.
 *
 * grid: every point of the grid, to its last rung at once. random: points of the space, likewise. halving:
 * a new trial gets the epochs of the first rung; of those that have finished a rung, the best third go on
 * to the next one, as soon as that can be seen (asynchronous successive halving). model: the same, with
 * new points from a tree of Parzen estimators over the results so far (of the highest rung that has enough
 * of them), and one in ten at random.
 *
 * The end: when there may be no new trials, what results still promote goes on; a unit then waits for as
 * many results, in their order, as it takes to see one. When there is nothing more of that kind, the best
 * trial of every rung goes on to the last one, so that a search of a few trials has at least one that is
 * fully trained.
 *
 * Failed trials do not count among those of which a third goes on.
 *
 * Memory: proportional to the units. Ownership: create, then destroy; the space is borrowed. Threads: one. */
#ifndef SHOAL_SEARCH_SCHEDULER_H
#define SHOAL_SEARCH_SCHEDULER_H

#include "search/space.h"

typedef enum shoal_scheduler_kind {
  SHOAL_BY_GRID,
  SHOAL_BY_CHANCE,
  SHOAL_BY_HALVING,
  SHOAL_BY_MODEL,
} shoal_scheduler_kind;
const char *shoal_scheduler_name(shoal_scheduler_kind kind); /* "grid" "random" "halving" "model" */
bool shoal_scheduler_parse(const char *word, shoal_scheduler_kind *out);

enum { SHOAL_RUNGS_MAX = 8, SHOAL_WINDOW_MAX = 4096 };

typedef struct shoal_scheduler_config {
  const shoal_space *space;
  shoal_scheduler_kind kind;
  uint64_t seed;
  uint64_t trials; /* new ones at most; 0: no end. May be raised later */
  uint32_t window; /* at least 1 */
  uint32_t rungs;
  uint32_t epochs[SHOAL_RUNGS_MAX]; /* in all, up to the end of each rung; ascending */
  bool higher_is_better;
} shoal_scheduler_config;

typedef struct shoal_unit {
  uint64_t number;
  uint64_t trial; /* from 1 */
  uint32_t rung;  /* from 0 */
  uint32_t epochs_from, epochs_to;
  shoal_values values;
} shoal_unit;

typedef enum shoal_next {
  SHOAL_NEXT_UNIT,
  SHOAL_NEXT_WAITS, /* for results */
  SHOAL_NEXT_NONE,  /* all is given out that the number of trials allows, though results may be missing */
} shoal_next;

typedef struct shoal_scheduler shoal_scheduler;
shoal_status shoal_scheduler_create(shoal_scheduler **out, const shoal_scheduler_config *config,
                                    shoal_error *err);
void shoal_scheduler_destroy(shoal_scheduler *scheduler);

/* The next unit in the order of their numbers, each once. Out of memory: it waits, and err says so. */
shoal_next shoal_scheduler_next(shoal_scheduler *scheduler, shoal_unit *out, shoal_error *err);
/* Of a unit that was given out, once. NaN: it failed, and its trial is over. */
void shoal_scheduler_report(shoal_scheduler *scheduler, uint64_t unit, double score);
/* Another number of trials, more or fewer; 0: no end. One that is not above those that have begun ends the
 * search as described above: for a budget of time that is used up. It changes what comes after the units
 * that have been given out: to repeat a search, call it again after just as many of them. Trials that come
 * after an end know of all results before it, so they wait for them. */
void shoal_scheduler_extend(shoal_scheduler *scheduler, uint64_t trials);
bool shoal_scheduler_unit(const shoal_scheduler *scheduler, uint64_t unit,
                          shoal_unit *out);                       /* one given out earlier */
uint64_t shoal_scheduler_units(const shoal_scheduler *scheduler); /* given out */

#endif
