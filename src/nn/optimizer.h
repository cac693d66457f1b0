/* optimizer.h: what each optimiser is, and from summed gradients to new weights, for any stretch of the flat vector.
 *
 * The vector is cut into runs (graph.h). What an owner of a slice applies (a trainer, a parameter server) is the same
 * code on the runs that it owns.
 *
 * Ownership: everything is the caller's. Threads: runs are independent. */
#ifndef SHOAL_NN_OPTIMIZER_H
#define SHOAL_NN_OPTIMIZER_H

#include "nn/graph.h"

/* All that is particular to an optimiser but its arithmetic, which is the kernels'. */
typedef struct shoal_optimizer_row {
  float rate;                       /* where no line gives one */
  uint32_t slots;                   /* vectors of state beside the weights: 0, 1 or 2 */
  bool has_velocity;                /* the first of them says where the weights are going: momentum */
  const struct shoal_field *fields; /* the numbers of its line, the rate first (model_internal.h) */
} shoal_optimizer_row;

/* In the order of their enum. */
extern const shoal_optimizer_row shoal_optimizer_rows[];

/* True if a finite weight whose gradient is zero stays as it is. */
bool shoal_optimizer_keeps(const shoal_update *update);

/* The update of round `step` (from 1) at this rate. */
shoal_update shoal_optimizer_update(const shoal_recipe *recipe, float rate, uint64_t step);

/* Applies it to one run: new weights from old ones; `from` may be `weights`. The pointers are to the whole
 * vectors. */
void shoal_optimizer_apply(const shoal_kernels *kernels, const shoal_update *update, const shoal_run *run,
                           const float *from, float *weights, const float *gradient, float *slot1,
                           float *slot2);

#endif
