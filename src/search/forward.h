/* forward.h: a network's answers for many rows, without a trainer.
 *
 * Ownership: create, then destroy; graph and weights are borrowed. Threads: one each. */
#ifndef SHOAL_SEARCH_FORWARD_H
#define SHOAL_SEARCH_FORWARD_H

#include "nn/graph.h"
#include "nn/source.h"

typedef struct shoal_forward shoal_forward;

shoal_status shoal_forward_create(shoal_forward **out, const shoal_graph *graph, shoal_error *err);
void shoal_forward_destroy(shoal_forward *forward);
/* Outputs of all samples of a source in its order (epoch 0), with the output activation applied. */
void shoal_forward_run(shoal_forward *forward, const float *weights, const shoal_source *source, float *out);

#endif
