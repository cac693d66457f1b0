/* optimizer.h: what each optimiser is, and from summed gradients to new weights, for any stretch of the flat vector.
 *
 * The vector is cut into runs (graph.h). What an owner of a slice applies (a trainer, a parameter server) is the same
 * code on the runs that it owns.
 *
 * Ownership: everything is the caller's. Threads: runs are independent. */
#ifndef SHOAL_NN_OPTIMIZER_H
#define SHOAL_NN_OPTIMIZER_H

#include "nn/graph.h"

/* A number that an optimiser takes: `optimizer adam beta1 0.9`. */
typedef struct shoal_optimizer_number {
  const char *word;
  const char *what; /* as errors call it */
  size_t field;     /* the float of the recipe, in bytes from its start */
  bool
      is_share; /* true: from 0 to below 1; false: above 0, where 0 in the recipe means that it was not given */
  float usual;
} shoal_optimizer_number;

enum { SHOAL_OPTIMIZER_NUMBERS_MAX = 4 };
/* All that is particular to an optimiser but its arithmetic, which is the kernels'. */
typedef struct shoal_optimizer_row {
  uint32_t slots;    /* vectors of state beside the weights: 0, 1 or 2 */
  bool has_velocity; /* the first of them says where the weights are going: momentum */
  shoal_optimizer_number numbers[SHOAL_OPTIMIZER_NUMBERS_MAX + 1]; /* the rate, others; no word: the end */
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
