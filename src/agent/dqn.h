/* dqn.h: values of choices, learned from memory (double, duelling, n-step Q-learning).
 *
 * The network tells for every choice what return may be expected after it. What it ought to have told is,
 * for a transition drawn from memory, the rewards of n steps and then the value of what was seen: of the
 * choice that the network prefers there, as a second, slower network values it. The loss is Huber's. The
 * second network follows by a share of the way with every update, or is copied every so many
 * (settings.follow above 1).
 *
 * To explore, actors choose at random now and then, less and less often, and keep to a random choice for
 * `hold` steps: small steps to and fro would lead nowhere where a swing is needed.
 *
 * The algorithm's functions are in learner_internal.h; what is here are its parts that can be tested. */
#ifndef SHOAL_AGENT_DQN_H
#define SHOAL_AGENT_DQN_H

#include "agent/learner_internal.h"

/* The value of a choice, from a row of outputs: `choices` values, or as many advantages and a value. */
float shoal_dqn_value(const float *outputs, uint32_t choices, bool duelling, uint32_t choice);
/* The choice of the highest value; of equal ones the first. */
uint32_t shoal_dqn_best(const float *outputs, uint32_t choices);
/* What is expected where the outputs are these: the target's value of the choice that the policy prefers. */
float shoal_dqn_expected(const float *policy, const float *target, uint32_t choices, bool duelling);
/* Huber's loss of an error, with its bend at 1, and into the row of gradients: `weight` times what the
 * outputs did to it. */
double shoal_dqn_loss(float error, uint32_t choices, bool duelling, uint32_t choice, float weight,
                      float *gradient);
/* The share of steps with random choices, after so many steps of learning. */
float shoal_dqn_epsilon(const shoal_agent_settings *settings, uint64_t steps);
/* How likely a random choice must be that is then kept for `hold` steps, for this share of all steps. */
float shoal_dqn_chance(float share, uint32_t hold);

#endif
