/* toys.h: environments whose values can be worked out by hand. */
#ifndef SHOAL_TESTS_AGENT_TOYS_H
#define SHOAL_TESTS_AGENT_TOYS_H

#include <math.h>
#include <string.h>

#include "agent/env.h"

/* Four cells in a row, begun in any; choice 1 goes right, 0 left. Behind the last one there is 1, and the
 * end. */
enum { CORRIDOR = 4 };

static void corridor_reset(void *state, shoal_pcg64 *random) {
  *(int *)state = (int)(CORRIDOR * shoal_pcg64_double(random));
}

static void corridor_step(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms,
                          float *rewards, bool *ended) {
  (void)randoms;
  for (uint32_t i = 0; i < count; i++) {
    int *cell = (int *)states + i;
    *cell += actions[i] > 0 ? 1 : -1;
    if (*cell < 0) *cell = 0;
    ended[i] = *cell >= CORRIDOR;
    rewards[i] = ended[i] ? 1 : 0;
    if (ended[i]) *cell = CORRIDOR - 1;
  }
}

static void corridor_observe(const void *states, uint32_t count, float *out) {
  for (uint32_t i = 0; i < count; i++)
    for (int cell = 0; cell < CORRIDOR; cell++)
      out[i * CORRIDOR + (uint32_t)cell] = ((const int *)states)[i] == cell ? 1 : 0;
}

static const shoal_env_kind corridor = {.name = "Corridor",
                                        .observation = CORRIDOR,
                                        .choices = 2,
                                        .action_width = 1,
                                        .limit = 12,
                                        .solved = 1,
                                        .bytes = sizeof(int),
                                        .reset = corridor_reset,
                                        .step = corridor_step,
                                        .observe = corridor_observe};

/* Nothing is seen, every step earns 1, and only time ends it: worth 1 / (1 - discount) for ever. */
static void treadmill_reset(void *state, shoal_pcg64 *random) {
  (void)random;
  *(int *)state = 0;
}

static void treadmill_step(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms,
                           float *rewards, bool *ended) {
  (void)states;
  (void)actions;
  (void)randoms;
  for (uint32_t i = 0; i < count; i++) {
    rewards[i] = 1;
    ended[i] = false;
  }
}

static void treadmill_observe(const void *states, uint32_t count, float *out) {
  (void)states;
  for (uint32_t i = 0; i < count; i++) out[i] = 1;
}

static const shoal_env_kind treadmill = {.name = "Treadmill",
                                         .observation = 1,
                                         .choices = 2,
                                         .action_width = 1,
                                         .limit = 3,
                                         .solved = NAN,
                                         .bytes = sizeof(int),
                                         .reset = treadmill_reset,
                                         .step = treadmill_step,
                                         .observe = treadmill_observe};

/* The same for real-valued actions. */
static const shoal_env_kind free_treadmill = {.name = "FreeTreadmill",
                                              .observation = 1,
                                              .action_width = 1,
                                              .action_low = -1,
                                              .action_high = 1,
                                              .limit = 3,
                                              .solved = NAN,
                                              .bytes = sizeof(int),
                                              .reset = treadmill_reset,
                                              .step = treadmill_step,
                                              .observe = treadmill_observe};

/* A dart: one of two signs is seen, and the two numbers of the action should be 3 and -1 under the first,
 * 1 and 3 under the second; the reward is minus the squared distance. One step. */
static const float dart_goals[2][2] = {{3, -1}, {1, 3}};

static void dart_reset(void *state, shoal_pcg64 *random) {
  *(int *)state = shoal_pcg64_double(random) < 0.5 ? 0 : 1;
}

static void dart_step(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms,
                      float *rewards, bool *ended) {
  (void)randoms;
  for (uint32_t i = 0; i < count; i++) {
    const float *goal = dart_goals[((int *)states)[i] & 1];
    float x = actions[2 * i] - goal[0], y = actions[2 * i + 1] - goal[1];
    rewards[i] = -(x * x + y * y);
    ended[i] = true;
  }
}

static void dart_observe(const void *states, uint32_t count, float *out) {
  for (uint32_t i = 0; i < count; i++) out[i] = ((const int *)states)[i] & 1 ? 1 : -1;
}

static const shoal_env_kind dart = {.name = "Dart",
                                    .observation = 1,
                                    .action_width = 2,
                                    .action_low = -2,
                                    .action_high = 4,
                                    .solved = -0.1,
                                    .bytes = sizeof(int),
                                    .reset = dart_reset,
                                    .step = dart_step,
                                    .observe = dart_observe};

/* Every test uses some of them. */
static inline void toys_used(void) {
  (void)corridor;
  (void)treadmill;
  (void)free_treadmill;
  (void)dart;
}

#endif
