/* maze.h: a maze of 8 x 8, new in every episode: find the way from the left side to the exit on the right.
 *
 * The choices are up, right, down and left; against a wall one stays. A step costs 0.01, one against a wall
 * 0.02, the exit is worth 1. After 200 steps the episode is cut off. Solved is a mean return of 0.6.
 *
 * What is seen, 24 numbers; the first five groups have one for up, right, down and left:
 *   4       1 where there is no wall
 *   4       how far one sees that way, as a share of the side
 *   4       1 where one can go and has not been
 *   4       how often one has been there, in quarters, up to 4; 1 behind a wall
 *   4       1 for where one first came from
 *   2, 2    the exit: how far to the right and up, as a share of the side; and the signs of these
 * So who goes where it has not been while it can, and back else, needs no memory. */
#ifndef SHOAL_AGENT_ENVS_MAZE_H
#define SHOAL_AGENT_ENVS_MAZE_H

#include "agent/env.h"

extern const shoal_env_kind shoal_env_maze;

#endif
