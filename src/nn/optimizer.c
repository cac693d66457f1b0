/* optimizer.c: see optimizer.h. The arithmetic itself is the kernels' `update`. */
#include "nn/optimizer.h"

#include "base/power.h"

/* Running statistics of batch normalisation move this far towards each round's. */
static const float STATISTIC_SHARE = 0.1f;

size_t shoal_optimizer_runs(const shoal_graph *graph, shoal_run *runs) {
  size_t count = 0;
  for (uint32_t i = 0; i < graph->params_count; i++) {
    const shoal_param *p = &graph->params[i];
    for (size_t start = 0; start < p->count; start += SHOAL_RUN_FLOATS_MAX) {
      size_t left = p->count - start;
      if (runs != NULL)
        runs[count] = (shoal_run){
            p->offset + start, left < SHOAL_RUN_FLOATS_MAX ? (uint32_t)left : SHOAL_RUN_FLOATS_MAX, p->kind};
      count++;
    }
  }
  return count;
}

uint32_t shoal_optimizer_slots(shoal_update_kind kind) {
  switch (kind) {
  case SHOAL_SGD: return 0;
  case SHOAL_ADAM:
  case SHOAL_ADAMW: return 2;
  default: return 1;
  }
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
    for (uint32_t i = 0; i < run->count; i++) w[i] = old[i] + STATISTIC_SHARE * (g[i] - old[i]);
    return;
  }
  shoal_update u = *update;
  if (run->kind != SHOAL_PARAM_WEIGHT) u.l2 = 0;
  kernels->update(&u, run->count, old, w, g, slot1 == NULL ? NULL : slot1 + run->offset,
                  slot2 == NULL ? NULL : slot2 + run->offset);
}
