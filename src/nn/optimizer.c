/* optimizer.c: see optimizer.h. The arithmetic itself is the kernels' `update`. */
#include "nn/optimizer.h"

#include "base/power.h"
#include "nn/model_internal.h"

/* A rate that no line gives is 0 in the recipe; beta1 stands there where momentum does. */
#define NUMBER(word, what, name, usual, in) SHOAL_REAL_FIELD(shoal_recipe, word, what, name, usual, in)
#define RATE NUMBER("rate", "the rate", rate, 0, ABOVE_ZERO)
#define MOMENTUM NUMBER("momentum", "the momentum", momentum, 0.9, SHARE)
#define BETA1 NUMBER("beta1", "beta1", momentum, 0.9, SHARE)
#define BETA2(usual) NUMBER("beta2", "beta2", beta2, usual, SHARE)
#define EPS(usual) NUMBER("eps", "eps", eps, usual, ABOVE_ZERO)

static const shoal_field sgd[SHOAL_FIELDS_MAX + 1] = {RATE};
static const shoal_field momentum[SHOAL_FIELDS_MAX + 1] = {RATE, MOMENTUM};
static const shoal_field adagrad[SHOAL_FIELDS_MAX + 1] = {RATE, EPS(1e-10)};
static const shoal_field rmsprop[SHOAL_FIELDS_MAX + 1] = {RATE, BETA2(0.99), EPS(1e-8)};
static const shoal_field adam[SHOAL_FIELDS_MAX + 1] = {RATE, BETA1, BETA2(0.999), EPS(1e-8)};

#define EACH_OPTIMIZER(X)                                                                            \
  X(SHOAL_SGD, "sgd", .rate = 0.1f, .fields = sgd)                                                   \
  X(SHOAL_MOMENTUM, "momentum", .rate = 0.05f, .slots = 1, .has_velocity = true, .fields = momentum) \
  X(SHOAL_NESTEROV, "nesterov", .rate = 0.05f, .slots = 1, .has_velocity = true, .fields = momentum) \
  X(SHOAL_ADAGRAD, "adagrad", .rate = 0.01f, .slots = 1, .fields = adagrad)                          \
  X(SHOAL_RMSPROP, "rmsprop", .rate = 0.001f, .slots = 1, .fields = rmsprop)                         \
  X(SHOAL_ADAM, "adam", .rate = 0.001f, .slots = 2, .fields = adam)                                  \
  X(SHOAL_ADAMW, "adamw", .rate = 0.001f, .slots = 2, .fields = adam)

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
