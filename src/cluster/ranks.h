/* ranks.h: synchronous training by ranks that were started together (fabric.h), to the same bits as
 * on one machine.
 *
 * Every rank has all weights, computes some of a round's shards, always the same ones, and owns a
 * slice of the weights with its optimiser state. A round:
 *
 *   1. compute   Each rank computes its shards and adds up what makes whole nodes of nn/tree.h.
 *   2. exchange  The sums of these nodes go to the owners of the slices, each its stretch; the
 *                shards' losses go to all.
 *   3. agree     All add the losses in the order of the tree, so all know whether the round
 *                counts. With clipping, owners tell all ranks the squares of their runs.
 *   4. apply     Each owner adds its slice in the order of the tree, and the optimiser steps on it.
 *   5. share     New slices go to all ranks.
 *
 * Others call that a reduce-scatter and an all-gather with the optimiser's state sharded. There may be
 * more ranks than shards or slices; those have less to do, or nothing.
 *
 * Rank 0 leads: its state is where all begin, and it says what comes next, by way of the rounds that it
 * drives. The others follow. After a failure nobody can go on.
 *
 * A model with recurrent state needs rounds that are all whole, as texts are cut (nn/source.h).
 *
 * Ownership: everything in the config is borrowed and outlives the ranks. Nothing is allocated
 * after create. Threads: one caller; those inside are its own. */
#ifndef SHOAL_CLUSTER_RANKS_H
#define SHOAL_CLUSTER_RANKS_H

#include "cluster/fabric.h"
#include "nn/rounds.h"

/* Whether all ranks are ready and mean the same job. *ready is how this rank's own preparations went,
 * with the reason in err; `job` is a text that must be the same everywhere. Afterwards *ready is the
 * answer: one's own failure, or the first one of another rank, "rank 2: " before its reason, or SHOAL_OK
 * for all. What is returned is about the fabric alone. */
shoal_status shoal_ranks_agree(const shoal_fabric *fabric, shoal_status *ready, const char *job,
                               shoal_error *err);

typedef struct shoal_ranks shoal_ranks;

typedef struct shoal_ranks_config {
  const shoal_graph *graph;
  shoal_trainer *trainer; /* of this graph */
  const shoal_source *source;
  const shoal_fabric *fabric;
} shoal_ranks_config;

/* Only reserves: what can go wrong here can be told to the others by shoal_ranks_agree. */
shoal_status shoal_ranks_create(shoal_ranks **out, const shoal_ranks_config *config, shoal_error *err);
void shoal_ranks_destroy(shoal_ranks *ranks);

/* Rank 0's whole state, which may come from a checkpoint, becomes that of all. */
shoal_status shoal_ranks_start(shoal_ranks *ranks, shoal_error *err);

/* Rank 0: the rounds to drive; weights are always there, slots and recurrent state when gathered. A
 * loss that is not finite fails as in shoal_trainer_round, and is the end for all ranks. */
shoal_rounds shoal_ranks_rounds(shoal_ranks *ranks);
/* Rank 0: no more rounds. Does nothing after a failure. */
shoal_status shoal_ranks_end(shoal_ranks *ranks, shoal_error *err);

/* The others: takes part until rank 0 ends. SHOAL_INVALID: the loss is not a number. */
shoal_status shoal_ranks_follow(shoal_ranks *ranks, shoal_error *err);

#endif
