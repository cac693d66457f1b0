/* snake.h: a snake on a board of 12 x 12: eat, grow, and bite neither the wall nor yourself.
 *
 * It goes on by a field each step; the choices are straight on, left and right. A piece of food is worth 1
 * and makes it one field longer; an end is worth -1: a wall, its own body, or 144 steps without food. The
 * episode also ends, at no cost, when the board is full. After 3000 steps it is cut off. Solved is a mean
 * return of 45.
 *
 * What is seen is turned so that ahead is always up, 62 numbers:
 *   48      the fields at most 3 away, row by row from the one farthest ahead, without its own: 1 is blocked
 *   2, 2    food: how far ahead and to the right, as a share of the board; and the signs of these
 *   3       free fields straight on, to the left and to the right, as a share of the board's side
 *   3       fields that can be reached after that step, as a share of the board
 *   2       the end of its tail: how far ahead and to the right
 *   1, 1    its length as a share of the board; the steps since it ate as a share of those it may */
#ifndef SHOAL_AGENT_ENVS_SNAKE_H
#define SHOAL_AGENT_ENVS_SNAKE_H

#include "agent/env.h"

extern const shoal_env_kind shoal_env_snake;

#endif
