/* acrobot.h: two links hang from a bar, with a motor between them: swing the tip up above the line.
 *
 * Gymnasium's Acrobot-v1, step for step. */
#ifndef SHOAL_AGENT_ENVS_ACROBOT_H
#define SHOAL_AGENT_ENVS_ACROBOT_H

#include "agent/env.h"

extern const shoal_env_kind shoal_env_acrobot;

#endif
