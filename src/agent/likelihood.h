/* likelihood.h: how likely an action is under a policy's outputs, and which way makes it likelier.
 *
 * Sums run in the order of the outputs, in double precision: the same bits on every machine. `spread` and
 * `by_log_prob` are how much the loss grows with the entropy and with the logarithm of the probability; the
 * gradients say what that means for the outputs.
 *
 * Threads: any. */
#ifndef SHOAL_AGENT_LIKELIHOOD_H
#define SHOAL_AGENT_LIKELIHOOD_H

#include <stdint.h>

typedef struct shoal_likelihood {
  double log_prob, entropy;
} shoal_likelihood;

/* A choice under logits. probs: the probabilities, `choices` of them. A choice that is not one is impossible,
 * with a log_prob of -infinity. */
shoal_likelihood shoal_likelihood_choice(uint32_t choices, const float *logits, float action, double *probs);
/* What follows for the logits; probs and entropy as the function above has them. */
void shoal_likelihood_choice_back(uint32_t choices, const double *probs, float action, double entropy,
                                  double by_log_prob, double spread, float *gradient);

/* Real numbers around means, with deviations whose logarithms are given. */
shoal_likelihood shoal_likelihood_normal(uint32_t width, const float *means, const float *log_deviations,
                                         const float *actions);
/* What follows for the means and for the logarithms. */
void shoal_likelihood_normal_back(uint32_t width, const float *means, const float *log_deviations,
                                  const float *actions, double by_log_prob, double spread, float *gradient,
                                  float *deviations_gradient);

#endif
