/* mountaincar.h: a car in a valley whose engine is too weak for the hill: gain speed by going back and
 * forth.
 *
 * Gymnasium's MountainCar-v0 (full throttle left, right or none) and MountainCarContinuous-v0 (any
 * throttle, and fuel costs), step for step. */
#ifndef SHOAL_AGENT_ENVS_MOUNTAINCAR_H
#define SHOAL_AGENT_ENVS_MOUNTAINCAR_H

#include "agent/env.h"

extern const shoal_env_kind shoal_env_mountaincar, shoal_env_mountaincar_continuous;

#endif
