/* toy.c: see toy.h. */
#include "data/toy.h"

#include <math.h>

#include "base/random.h"

enum { REVERSE, WAVE };

int32_t shoal_toy_token(uint64_t number, uint32_t step, uint32_t alphabet) {
  shoal_key key = shoal_key_make(0, SHOAL_FOR_TOY, REVERSE, number);
  return (int32_t)shoal_random_below(key, step, alphabet);
}

void shoal_toy_wave_input(uint64_t number, float out[SHOAL_TOY_WAVE_INPUTS]) {
  shoal_key key = shoal_key_make(0, SHOAL_FOR_TOY, WAVE, number);
  out[0] = 1.0f + 2.0f * shoal_random_uniform(key, 0);
  out[1] = 2.0f * shoal_random_uniform(key, 1) - 1.0f;
  out[2] = 0.25f + 0.75f * shoal_random_uniform(key, 2);
}

/* sin(2 pi turns), to 1e-13, by its series: the C library's sine differs in its last bits from
 * one machine to the next. */
static double sine_of_turns(double turns) {
  double r = turns - floor(turns + 0.5); /* -1/2 to 1/2, then folded to -1/4 to 1/4 */
  if (r > 0.25) r = 0.5 - r;
  if (r < -0.25) r = -0.5 - r;
  double x = 6.28318530717958647692 * r, square = x * x, term = x, sum = x;
  for (int k = 3; k <= 19; k += 2) {
    term *= -square / (k * (k - 1));
    sum += term;
  }
  return sum;
}

float shoal_toy_wave(const float input[SHOAL_TOY_WAVE_INPUTS], uint32_t step, uint32_t steps) {
  double turns = (double)input[0] * step / steps + 0.5 * (double)input[1];
  return (float)((double)input[2] * sine_of_turns(turns));
}
