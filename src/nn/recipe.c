/* recipe.c: the learning rate of every round.
 *
 * Part of what training computes, so it must come out the same to the last bit on every
 * machine: only + - * / in double, which IEEE 754 fixes, and no function of libm, which
 * may round differently from one library to the next. */
#include <float.h>

#include "base/power.h"
#include "nn/optimizer.h"

float shoal_recipe_rate(const shoal_recipe *recipe) {
  return recipe->rate > 0 ? recipe->rate : shoal_optimizer_rows[recipe->optimizer].rate;
}

/* cos(pi x) for x in [0, 1]. Up to pi / 2 twelve terms of the series are below 1e-16;
 * the other half is its mirror image. */
static double cosine_of_half_turns(double x) {
  if (x > 0.5) return -cosine_of_half_turns(1 - x);
  const double pi = 3.14159265358979323846;
  double square = pi * x * (pi * x);
  double sum = 1;
  for (int k = 12; k >= 1; k--) sum = 1 - square / ((2 * k - 1) * (2 * k)) * sum;
  return sum;
}

static double scheduled(const shoal_recipe *recipe, double rate, uint64_t epoch, double rounds_done,
                        double rounds) {
  switch (recipe->schedule) {
  case SHOAL_SCHEDULE_CONSTANT: return rate;
  case SHOAL_SCHEDULE_STEP:
    if (epoch + 1 < recipe->schedule_from) return rate;
    return rate * shoal_power(recipe->schedule_factor,
                              1 + (epoch + 1 - recipe->schedule_from) / recipe->schedule_every);
  case SHOAL_SCHEDULE_EXPONENTIAL: return rate * shoal_power(recipe->schedule_factor, epoch);
  case SHOAL_SCHEDULE_COSINE: {
    double share = rounds_done / (rounds * recipe->epochs);
    double to = recipe->schedule_to;
    return to + (rate - to) * 0.5 * (1 + cosine_of_half_turns(share < 1 ? share : 1));
  }
  }
  return rate;
}

float shoal_recipe_rate_at(const shoal_recipe *recipe, uint64_t epoch, uint64_t round, uint64_t rounds) {
  double rounds_done = (double)epoch * (double)rounds + (double)round;
  double rate = shoal_recipe_rate(recipe);
  if (recipe->scale_batch) rate = rate * recipe->batch / recipe->scale_batch;
  rate = scheduled(recipe, rate, epoch, rounds_done, (double)rounds);

  /* The first rounds climb in equal steps, and the last of them has the whole rate. */
  double warmup_rounds = (double)recipe->warmup_epochs * (double)rounds;
  if (rounds_done + 1 < warmup_rounds) rate = rate * ((rounds_done + 1) / warmup_rounds);
  return rate < FLT_MAX ? (float)rate : FLT_MAX;
}
