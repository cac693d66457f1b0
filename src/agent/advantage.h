/* advantage.h: how much better an action was than what was expected, and what should have been expected.
 *
 * Two ways, over one rollout (rows t * envs + e):
 *
 *   gae     delta_t = r_t + g V_{t+1} - V_t;  A_t = delta_t + g lambda A_{t+1};  target V_t + A_t
 *   vtrace  rho = min(1, pi/mu), c = lambda min(1, pi/mu);  delta_t = rho_t (r_t + g V_{t+1} - V_t);
 *           acc_t = delta_t + g c_t acc_{t+1};  target v_t = V_t + acc_t;
 *           A_t = rho_t (r_t + g v_{t+1} - V_t)
 *
 * Where an episode terminated nothing follows: V_{t+1} is 0. Where it was cut off V_{t+1} is the value of
 * what was seen last, which `last_values` has. Neither looks across the end of an episode.
 *
 * Threads: any. */
#ifndef SHOAL_AGENT_ADVANTAGE_H
#define SHOAL_AGENT_ADVANTAGE_H

#include <stdint.h>

typedef struct shoal_advantage_task {
  uint32_t envs, steps;
  const float *rewards; /* steps x envs */
  float reward_scale;
  const uint8_t *ends; /* steps x envs, shoal_end */
  const float *values; /* (steps + 1) x envs */
  uint32_t lasts_count;
  const uint32_t *last_rows; /* where it was cut off, ascending */
  const float *last_values;  /* one for each */
  float discount, lambda;
} shoal_advantage_task;

/* advantages, targets: steps x envs. */
void shoal_advantage_gae(const shoal_advantage_task *task, float *advantages, float *targets);
/* log_ratios: log pi - log mu of each row. */
void shoal_advantage_vtrace(const shoal_advantage_task *task, const float *log_ratios, float *advantages,
                            float *targets);

#endif
