/* novelocity.h: CartPole, of which only positions are seen: where the cart is and how the pole leans, not how
 * fast. An agent has to remember what it saw to know. */
#ifndef SHOAL_AGENT_ENVS_NOVELOCITY_H
#define SHOAL_AGENT_ENVS_NOVELOCITY_H

#include "agent/env.h"

extern const shoal_env_kind shoal_env_cartpole_no_velocity;

#endif
