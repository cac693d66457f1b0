/* pendulum.h: a pendulum with a weak motor: swing it up and hold it there.
 *
 * Gymnasium's Pendulum-v1, step for step, with NumPy 2's rule that a float times a constant stays a float. */
#ifndef SHOAL_AGENT_ENVS_PENDULUM_H
#define SHOAL_AGENT_ENVS_PENDULUM_H

#include "agent/env.h"

extern const shoal_env_kind shoal_env_pendulum;

#endif
