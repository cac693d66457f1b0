/* likelihood.c: see likelihood.h. */
#include "agent/likelihood.h"

#include <math.h>

#include "agent/exact_math.h"

static const double half_log_two_pi = 0.91893853320467274178;

/* ---- choices ------------------------------------------------------------------------ */

shoal_likelihood shoal_likelihood_choice(uint32_t choices, const float *logits, float action, double *probs) {
  double most = logits[0], sum = 0, mean = 0, log_prob = -INFINITY;
  for (uint32_t i = 1; i < choices; i++) most = logits[i] > most ? logits[i] : most;
  for (uint32_t i = 0; i < choices; i++) sum += probs[i] = shoal_exact_exp(logits[i] - most);
  double log_sum = most + shoal_exact_log(sum);
  for (uint32_t i = 0; i < choices; i++) {
    probs[i] /= sum;
    mean += probs[i] * (logits[i] - log_sum);
    if ((float)i == action) log_prob = logits[i] - log_sum;
  }
  return (shoal_likelihood){.log_prob = log_prob, .entropy = -mean};
}

/* d log p(a) / d logit = [a] - p;  d H / d logit = -p (log p + H) */
void shoal_likelihood_choice_back(uint32_t choices, const double *probs, float action, double entropy,
                                  double by_log_prob, double spread, float *gradient) {
  for (uint32_t i = 0; i < choices; i++) {
    double log_p = probs[i] > 1e-300 ? shoal_exact_log(probs[i]) : 0;
    double for_log_prob = ((float)i == action) - probs[i];
    gradient[i] = (float)(by_log_prob * for_log_prob - spread * probs[i] * (log_p + entropy));
  }
}

/* ---- real numbers ------------------------------------------------------------------- */

shoal_likelihood shoal_likelihood_normal(uint32_t width, const float *means, const float *log_deviations,
                                         const float *actions) {
  shoal_likelihood out = {0};
  for (uint32_t i = 0; i < width; i++) {
    double z = ((double)actions[i] - means[i]) * shoal_exact_exp(-(double)log_deviations[i]);
    out.log_prob -= 0.5 * z * z + log_deviations[i] + half_log_two_pi;
    out.entropy += log_deviations[i] + half_log_two_pi + 0.5;
  }
  return out;
}

/* d log p / d mean = z / s;  d log p / d log s = z^2 - 1;  d H / d log s = 1 */
void shoal_likelihood_normal_back(uint32_t width, const float *means, const float *log_deviations,
                                  const float *actions, double by_log_prob, double spread, float *gradient,
                                  float *deviations_gradient) {
  for (uint32_t i = 0; i < width; i++) {
    double inverse = shoal_exact_exp(-(double)log_deviations[i]);
    double z = ((double)actions[i] - means[i]) * inverse;
    gradient[i] = (float)(by_log_prob * z * inverse);
    deviations_gradient[i] = (float)(by_log_prob * (z * z - 1) + spread);
  }
}
