/* sac.h: real-valued actions, learned from memory (soft actor-critic).
 *
 * Two critics tell what return may be expected after an action, entropy counted in; each has a target that
 * follows slowly, and the lower of the two targets is believed. The policy's outputs are means and
 * logarithms of deviations; an action is the hyperbolic tangent of what is drawn, so within -1 and 1 here,
 * and within the environment's bounds outside. The policy climbs the critics: their gradient with respect
 * to the action is its own. What entropy is worth, the temperature, moves so that entropy stays near minus
 * the action's width.
 *
 * The two critics are worked on side by side, a thread each.
 *
 * The algorithm's functions are in learner_internal.h; what is here are its parts that can be tested. */
#ifndef SHOAL_AGENT_SAC_H
#define SHOAL_AGENT_SAC_H

#include "agent/learner_internal.h"

/* Draws from a row of outputs (width means, width logarithms) with `noise` (width normal numbers): actions in
 * -1 .. 1, and the deviations that they were drawn with. Returns the logarithm of their density. */
double shoal_sac_draw(uint32_t width, const float *outputs, const float *noise, float *actions,
                      float *deviations);
/* What a critic ought to tell: the reward, and the lower of two values of what is done next, its entropy
 * counted in, as far as that counts. */
float shoal_sac_goal(float reward, float discount, const float values[2], float temperature, float log_prob);
/* The gradient of temperature * log density - value with respect to the outputs, `weight` times; by_action is
 * that of the value with respect to the actions. */
void shoal_sac_climb(uint32_t width, const float *outputs, const float *noise, const float *actions,
                     const float *deviations, const float *by_action, float temperature, float weight,
                     float *gradient);

#endif
