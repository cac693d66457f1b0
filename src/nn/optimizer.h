/* optimizer.h: from summed gradients to new weights, for any stretch of the flat vector.
 *
 * The vector is cut into runs: stretches of one parameter, so that every element of a run
 * is treated alike. What an owner of a slice applies (a trainer, later a parameter server)
 * is the same code on the runs that it owns.
 *
 * Ownership: everything is the caller's. Threads: runs are independent. */
#ifndef SHOAL_NN_OPTIMIZER_H
#define SHOAL_NN_OPTIMIZER_H

#include "nn/graph.h"

enum { SHOAL_RUN_FLOATS_MAX = 16384 };

typedef struct shoal_run {
  size_t offset;
  uint32_t count;
  shoal_param_kind kind;
} shoal_run;

/* The runs of the whole vector, in order; returns how many. With runs NULL only counts. */
size_t shoal_optimizer_runs(const shoal_graph *graph, shoal_run *runs);

/* How many vectors of state the optimiser keeps beside the weights: 0, 1 or 2. */
uint32_t shoal_optimizer_slots(shoal_update_kind kind);

/* The update of round `step` (from 1) at this rate. */
shoal_update shoal_optimizer_update(const shoal_recipe *recipe, float rate, uint64_t step);

/* Applies it to one run: new weights from old ones; `from` may be `weights`. The pointers are to the whole
 * vectors. */
void shoal_optimizer_apply(const shoal_kernels *kernels, const shoal_update *update, const shoal_run *run,
                           const float *from, float *weights, const float *gradient, float *slot1,
                           float *slot2);

#endif
