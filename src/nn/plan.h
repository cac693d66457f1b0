/* plan.h: where every tensor of a graph lives in one block of memory, and the order of work.
 *
 * Time is counted in steps: forward through the nodes, the loss, then backward through
 * them in reverse. Node i of n goes forward at step i and backward at step 2 n - i, and the
 * loss is step n. Every buffer is needed from one step to another; buffers whose times
 * do not meet share memory. Activations and dropout work in place where nobody needs
 * what they overwrite. A plan is made for at most `samples_max` samples; fewer use the
 * front of each buffer.
 *
 * Ownership: create, then destroy; graph and device outlive the plan. Threads: read-only
 * after create: one plan serves many threads, each with a block of its own. */
#ifndef SHOAL_NN_PLAN_H
#define SHOAL_NN_PLAN_H

#include "device/device.h"
#include "nn/graph.h"

#define SHOAL_NOWHERE SIZE_MAX

/* The loss is computed in so many pieces, so that threads can share it and its sum stays the same. */
enum { SHOAL_LOSS_PIECES = 64 };

/* Offsets are in floats from the start of the block, multiples of 16. */
typedef struct shoal_place {
  size_t value; /* the output; tokens are int32 */
  /* Of the output; NOWHERE when nobody wants what lies before it: the node has no step backward. */
  size_t gradient;
  size_t saved;      /* kept from forward to backward */
  size_t scratch[2]; /* forward and backward */
  /* A tensor that several nodes read gets its gradient as a sum: all but the first to
   * write it write here and add. NOWHERE where the gradient is written directly. */
  size_t partial[SHOAL_LAYER_INPUTS_MAX];
} shoal_place;

typedef enum shoal_plan_use {
  SHOAL_PLAN_INFER,
  SHOAL_PLAN_TRAIN,
  SHOAL_PLAN_TRAIN_INPUT, /* the gradient of the input as well: places[0].gradient holds it at the end */
} shoal_plan_use;

typedef struct shoal_plan {
  const shoal_graph *graph;
  const shoal_device *device;
  bool training, input_gradient;
  uint32_t samples_max;
  shoal_place *places;                       /* one a node */
  size_t labels, targets, weight, ids, keys; /* of the batch; NOWHERE when not needed */
  size_t sums;                               /* SHOAL_LOSS_PIECES of shoal_sums */
  size_t floats;                             /* the block's size */
} shoal_plan;

/* An input of tokens has no gradient: SHOAL_INVALID. */
shoal_status shoal_plan_create(shoal_plan **out, const shoal_graph *graph, const shoal_device *device,
                               shoal_plan_use use, uint32_t samples_max, shoal_error *err);
void shoal_plan_destroy(shoal_plan *plan);

/* Floats that a tensor of this shape takes for n samples, in its layout. */
size_t shoal_shape_floats(const shoal_shape *shape, uint32_t n);

#endif
