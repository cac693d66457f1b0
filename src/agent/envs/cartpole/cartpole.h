/* cartpole.h: a pole on a cart that is pushed left or right: keep it upright.
 *
 * Gymnasium's CartPole, step for step. v0 is the older of the two: 200 steps, and solved at 195. */
#ifndef SHOAL_AGENT_ENVS_CARTPOLE_H
#define SHOAL_AGENT_ENVS_CARTPOLE_H

#include "agent/env.h"

extern const shoal_env_kind shoal_env_cartpole_v1, shoal_env_cartpole_v0;

#endif
