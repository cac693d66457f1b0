/* played.h: how far the training of an agent is: as a server's JSON tells it, and as people read it.
 *
 *   81,920 steps  54,210/s  return 187.2 +- 60.1  lag 0.8  2 actors  12s left at most
 *
 * Threads: one. */
#ifndef SHOAL_CLI_PLAYED_H
#define SHOAL_CLI_PLAYED_H

#include <cjson/cJSON.h>

#include "base/human.h"
#include "cli/progress.h"

/* Numbers that are not known are NaN. */
typedef struct shoal_played {
  bool is_agent; /* false: the job is another one, and there is nothing else to know */
  bool runs;
  char env[64], algorithm[16];
  uint64_t steps, episodes, refused, lost, actors;
  double seconds, steps_per_second, lag;
  double return_mean, return_deviation; /* of the last hundred episodes that were played to learn */
  double score, score_deviation, goal;  /* of the newest policy that was scored */
  bool solved;
  double share, left_s; /* of what it was asked for, 0 to 1; until it ends, as it looks now */
  bool until_solved;    /* it may end before that */
} shoal_played;

void shoal_played_read(shoal_played *out, const cJSON *job);

/* Until the time (0: no limit) or the steps are used up; NaN: there is no end in sight. */
double shoal_played_left(double seconds_all, double seconds, uint64_t steps_all, uint64_t steps,
                         double steps_per_second);
/* Shows the line, when it is due. */
void shoal_played_show(shoal_progress *progress, const shoal_played *played, double now);
/* What it is worth: while it runs, the mean return of what is played to learn; else its score, where it has
 * one. NaN: nothing is known yet. */
double shoal_played_worth(const shoal_played *played);
/* A return, as people read it: 500, 487.3, 0.62. */
shoal_human shoal_played_number(double value);
/* " 487.3 +- 12.1" */
void shoal_played_add(shoal_text *out, double mean, double deviation);

#endif
