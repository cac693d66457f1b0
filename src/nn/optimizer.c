/* optimizer.c: see optimizer.h. The arithmetic itself is the kernels' `update`. */
#include "nn/optimizer.h"

#include "base/power.h"
#include "nn/model_internal.h"

/* The numbers of rows; in the recipe, beta1 stands where momentum does. */
#define RATE(usual) "rate", "the rate", offsetof(shoal_recipe, rate), false, usual
#define MOMENTUM "momentum", "the momentum", offsetof(shoal_recipe, momentum), true, 0.9f
#define BETA1 "beta1", "beta1", offsetof(shoal_recipe, momentum), true, 0.9f
#define BETA2(usual) "beta2", "beta2", offsetof(shoal_recipe, beta2), true, usual
#define EPS(usual) "eps", "eps", offsetof(shoal_recipe, eps), false, usual

#define EACH_OPTIMIZER(X)                                                                                 \
  X(SHOAL_SGD, "sgd", .numbers = {{RATE(0.1f)}})                                                          \
  X(SHOAL_MOMENTUM, "momentum", .slots = 1, .has_velocity = true, .numbers = {{RATE(0.05f)}, {MOMENTUM}}) \
  X(SHOAL_NESTEROV, "nesterov", .slots = 1, .has_velocity = true, .numbers = {{RATE(0.05f)}, {MOMENTUM}}) \
  X(SHOAL_ADAGRAD, "adagrad", .slots = 1, .numbers = {{RATE(0.01f)}, {EPS(1e-10f)}})                      \
  X(SHOAL_RMSPROP, "rmsprop", .slots = 1, .numbers = {{RATE(0.001f)}, {BETA2(0.99f)}, {EPS(1e-8f)}})      \
  X(SHOAL_ADAM, "adam", .slots = 2, .numbers = {{RATE(0.001f)}, {BETA1}, {BETA2(0.999f)}, {EPS(1e-8f)}})  \
  X(SHOAL_ADAMW, "adamw", .slots = 2, .numbers = {{RATE(0.001f)}, {BETA1}, {BETA2(0.999f)}, {EPS(1e-8f)}})

const char *const shoal_optimizer_words[] = {EACH_OPTIMIZER(SHOAL_WORD_OF) NULL};
const shoal_optimizer_row shoal_optimizer_rows[] = {EACH_OPTIMIZER(SHOAL_ROW_OF)};

/* Running statistics of batch normalisation move this far towards each round's. */
static const float STATISTIC_SHARE = 0.1f;

bool shoal_optimizer_keeps(const shoal_update *update) {
  return shoal_optimizer_rows[update->kind].slots == 0 && update->l2 == 0;
}

shoal_update shoal_optimizer_update(const shoal_recipe *recipe, float rate, uint64_t step) {
  return (shoal_update){.kind = recipe->optimizer,
                        .rate = rate,
                        .beta1 = recipe->momentum,
                        .beta2 = recipe->beta2,
                        .eps = recipe->eps,
                        .l2 = recipe->l2,
                        .grad_scale = 1,
                        .correction1 = (float)(1 - shoal_power(recipe->momentum, step)),
                        .correction2 = (float)(1 - shoal_power(recipe->beta2, step))};
}

void shoal_optimizer_apply(const shoal_kernels *kernels, const shoal_update *update, const shoal_run *run,
                           const float *from, float *weights, const float *gradient, float *slot1,
                           float *slot2) {
  const float *old = from + run->offset, *g = gradient + run->offset;
  float *w = weights + run->offset;
  if (run->kind == SHOAL_PARAM_STATISTIC) {
    kernels->follow(run->count, STATISTIC_SHARE, old, g, w);
    return;
  }
  shoal_update u = *update;
  if (run->kind != SHOAL_PARAM_WEIGHT) u.l2 = 0;
  kernels->update(&u, run->count, old, w, g, slot1 == NULL ? NULL : slot1 + run->offset,
                  slot2 == NULL ? NULL : slot2 + run->offset);
}
