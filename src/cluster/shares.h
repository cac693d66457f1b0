/* shares.h: the weights of a graph, cut among owners: slices of whole runs.
 *
 * Chief, parameter servers, workers and ranks all cut the same graph, each for itself, and must come to
 * the same slices.
 *
 * Ownership: init, then release; the graph is borrowed for the call. Threads: none. */
#ifndef SHOAL_CLUSTER_SHARES_H
#define SHOAL_CLUSTER_SHARES_H

#include "base/status.h"
#include "proto/slice.h"

typedef struct shoal_shares {
  shoal_slice *slices; /* one an owner */
  uint32_t slices_count;
} shoal_shares;

/* *out can be released whatever comes of it. */
shoal_status shoal_shares_init(shoal_shares *out, const shoal_graph *graph, uint32_t owners,
                               shoal_error *err);
void shoal_shares_release(shoal_shares *shares);

/* Whether so many vectors of every slice, its weights and the slots, fit into a message. */
shoal_status shoal_shares_fit(const shoal_shares *shares, uint32_t vectors, uint64_t message_bytes_max,
                              shoal_error *err);

#endif
