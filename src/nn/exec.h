/* exec.h: runs a plan on one block of memory.
 *
 * A node is computed by its operation (op.h), forward and backward. Every gradient of a parameter is added to
 * what the gradient vector already holds, so a shard may be worked off in tiles; the
 * first tile of a shard finds it as shoal_exec_clear left it.
 *
 * Ownership: everything in the struct is borrowed. Threads: one exec a thread; the threads of
 * its team work for it inside a call. */
#ifndef SHOAL_NN_EXEC_H
#define SHOAL_NN_EXEC_H

#include "nn/plan.h"
#include "nn/source.h"
#include "nn/sums.h"
#include "nn/team.h"

typedef struct shoal_exec {
  const shoal_plan *plan;
  float *block;               /* plan->floats floats, aligned to 64 bytes */
  const float *weights;       /* the flat vector */
  float *gradient;            /* of the same length; NULL without training */
  bool fresh;                 /* this is the first tile that adds to the gradient */
  bool input_only;            /* only the input's gradient is wanted: `gradient` is of no use afterwards */
  shoal_team *team;           /* threads that share the tile's work, or NULL */
  uint32_t n;                 /* samples in this tile */
  uint32_t round_n;           /* samples in the whole round: gradients are means over it */
  uint64_t seed, epoch;       /* dropout's keys */
  const float *class_weights; /* or NULL */
  /* Recurrent state of the streams, one row a stream; NULL when state is not carried.
   * Node after node: width floats a row for rnn and gru, twice that for lstm. */
  float *carry;
  uint32_t carry_row;  /* the first sample's row */
  uint32_t carry_rows; /* rows in all */
  /* Seconds of threads, waiting ones of the team among them: an entry a step of the plan, then
   * one for the loss; added to. NULL when nobody wants to know. */
  double *step_seconds;
} shoal_exec;

/* The batch's places in the block, for a source to fill. */
shoal_batch shoal_exec_batch(const shoal_exec *exec);

/* Makes a gradient vector ready for a fresh tile: zeros, except in the large matrices, which
 * the tile then overwrites, and between parameters, where nothing is read. */
void shoal_exec_clear(const shoal_graph *graph, float *gradient);

void shoal_exec_forward(shoal_exec *exec);
/* Adds to *sums, and with a training plan writes the gradient of the output. */
void shoal_exec_loss(shoal_exec *exec, shoal_sums *sums);
void shoal_exec_backward(shoal_exec *exec);

/* Floats of recurrent state a stream needs, over all nodes. */
size_t shoal_carry_floats(const shoal_graph *graph);
/* Copies the state of n rows from `first` on out of a carry of `rows` rows, packed, or back into it
 * (NULL: zeros). */
void shoal_carry_pack(const shoal_graph *graph, const float *carry, uint32_t rows, uint32_t first, uint32_t n,
                      float *packed);
void shoal_carry_unpack(const shoal_graph *graph, float *carry, uint32_t rows, uint32_t first, uint32_t n,
                        const float *packed);

/* For operations: where a node's state of the first sample is carried (exec->carry is not NULL), and the block's place
 * for keys of random numbers, two words a sample. */
float *shoal_exec_carry(const shoal_exec *exec, const shoal_node *node);
uint32_t *shoal_exec_keys(const shoal_exec *exec);

#endif
