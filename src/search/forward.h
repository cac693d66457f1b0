/* forward.h: a network's answers for many rows, without a trainer.
 *
 * Ownership: create, then shoal_engine_destroy; graph and weights are borrowed. Threads: one each. */
#ifndef SHOAL_SEARCH_FORWARD_H
#define SHOAL_SEARCH_FORWARD_H

#include "nn/engine.h"

shoal_status shoal_forward_create(shoal_engine **out, const shoal_graph *graph, shoal_error *err);
/* Outputs of all samples of a source in its order (epoch 0), with the output activation applied. */
void shoal_forward_run(shoal_engine *engine, const float *weights, const shoal_source *source, float *out);

#endif
