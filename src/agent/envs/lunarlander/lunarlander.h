/* lunarlander.h: a lander with three engines comes down on rough ground: bring it to rest between the
 * flags.
 *
 * Gymnasium's LunarLander-v3 and LunarLanderContinuous-v3, without wind, on Box2D (see body.h). They are
 * there where the program was built with that library. */
#ifndef SHOAL_AGENT_ENVS_LUNARLANDER_H
#define SHOAL_AGENT_ENVS_LUNARLANDER_H

#include "agent/env.h"

extern const shoal_env_kind shoal_env_lunarlander, shoal_env_lunarlander_continuous;

#endif
