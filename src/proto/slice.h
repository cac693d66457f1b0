/* slice.h: the flat vector of weights, cut among its owners.
 *
 * A slice is a stretch of whole runs (nn/graph.h), so that what an owner applies to its
 * slice is what a single machine would have applied there. Slices are as equal as runs allow.
 *
 * Ownership: the caller's arrays. Threads: none. */
#ifndef SHOAL_PROTO_SLICE_H
#define SHOAL_PROTO_SLICE_H

#include "nn/optimizer.h"

typedef struct shoal_slice {
  size_t offset, count; /* floats of the flat vector, the padding behind parameters included */
  size_t first_run, runs_count;
} shoal_slice;

/* Cuts a vector of `weights_count` floats into `slices`; some are empty where there are few runs. */
void shoal_slices_cut(const shoal_run *runs, size_t runs_count, size_t weights_count, uint32_t slices,
                      shoal_slice *out);

#endif
