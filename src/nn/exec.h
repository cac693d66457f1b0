/* exec.h: runs a plan on one block of memory.
 *
 * A node is computed by its operation (op.h), forward and backward. Every gradient of a parameter is added to
 * what the gradient vector already holds, so a shard may be worked off in tiles; the
 * first tile of a shard finds it as shoal_exec_clear left it.
 *
 * All of it happens on the plan's device: pointers are the device's memory unless they say that they are the host's.
 * A tile's way is: shoal_exec_batch, which a source fills; send; forward; loss, or a judge that reads what
 * shoal_exec_outputs gives and writes the gradient; backward.
 *
 * Where there are more threads than shards, a team of them shares the work on a tile. An operation is then cut into
 * bands, one for each thread: rows or columns of a matrix product, channels of images, stretches of values; or into the
 * cells of a grid, where it is cut along two lists at once. No element's chain is cut, so the number of threads doesn't
 * change a bit.
 *
 * Ownership: everything in the struct is borrowed. Threads: one exec a thread; the threads of
 * its team work for it inside a call. */
#ifndef SHOAL_NN_EXEC_H
#define SHOAL_NN_EXEC_H

#include "base/pool.h"
#include "nn/plan.h"
#include "nn/source.h"
#include "nn/tree.h"
#include "nn/used_rows.h"

typedef struct shoal_exec {
  const shoal_plan *plan;
  float *block; /* plan->floats floats of the device */
  float *host;  /* as many of the host, for what goes in and out; the block itself where it is the host's */
  const float *weights;       /* the flat vector */
  float *gradient;            /* of the same length; NULL without training */
  uint32_t *marks;            /* a word a node, of the host, that stays from forward to backward */
  bool fresh;                 /* this is the first tile that adds to the gradient */
  bool input_only;            /* only the input's gradient is wanted: `gradient` is of no use afterwards */
  shoal_pool *team;           /* threads that share the tile's work; NULL: the caller alone */
  float *team_scratch;        /* of the team's other threads, */
  size_t scratch_floats;      /* so many each */
  uint32_t n;                 /* samples in this tile */
  uint32_t round_n;           /* samples in the whole round: gradients are means over it */
  uint64_t epoch;             /* for dropout */
  const float *class_weights; /* of the device, or NULL */
  /* Recurrent state of the streams, one row a stream; NULL when state is not carried.
   * Node after node: width floats a row for rnn and gru, twice that for lstm. */
  float *carry;
  uint32_t carry_row;  /* the first sample's row */
  uint32_t carry_rows; /* rows in all */
  /* Seconds of threads, waiting ones of the team among them: an entry a step (plan.h); added to.
   * NULL when nobody wants to know. */
  double *step_seconds;
} shoal_exec;

typedef struct shoal_stretch {
  size_t first, count;
} shoal_stretch;
/* Part `index` <= parts of `size` things that are cut into so many parts, each a whole number of units. */
static inline shoal_stretch shoal_part(size_t size, size_t unit, size_t index, size_t parts) {
  size_t units = (size + unit - 1) / unit;
  size_t first = units * index / parts * unit, end = units * (index + 1) / parts * unit;
  if (first > size) first = size;
  return (shoal_stretch){first, (end < size ? end : size) - first};
}

/* shoal_exec_batch: places on the host for a source to fill. shoal_exec_send copies the samples into the block, and
 * shoal_exec_loss the answers. */
shoal_batch shoal_exec_batch(const shoal_exec *exec);
void shoal_exec_send(const shoal_exec *exec);

/* Makes a gradient vector ready for a fresh tile: zeros, except in the large matrices, which
 * the tile then overwrites, and between parameters, where nothing is read. Of tables it clears only the rows that
 * `rows` has, and empties `rows`; with `rows` NULL it clears whole tables. */
void shoal_exec_clear(const shoal_plan *plan, float *gradient, shoal_used_rows *rows);

void shoal_exec_forward(shoal_exec *exec);
/* Compares with the answers: adds to *sums, and with a training plan writes the gradient of the output. */
void shoal_exec_loss(shoal_exec *exec, shoal_sums *sums);
/* In place of the loss: the last node's values on the host, and where its gradient is to be written there (maybe over
 * the values) before it is sent. */
const float *shoal_exec_outputs(const shoal_exec *exec);
float *shoal_exec_output_gradient(const shoal_exec *exec);
void shoal_exec_send_gradient(const shoal_exec *exec);
void shoal_exec_backward(shoal_exec *exec);
/* The input's gradient on the host, of a plan that has it. */
const float *shoal_exec_input_gradient(const shoal_exec *exec);

/* Floats of recurrent state a stream needs, over all nodes. */
size_t shoal_carry_floats(const shoal_graph *graph);
/* Copies the state of n rows from `first` on out of a carry of `rows` rows to `out`, packed; where that is NULL, from
 * `in` back into it; where both are, zeros. The packed state is the host's. */
void shoal_carry_copy(const shoal_plan *plan, float *carry, uint32_t rows, uint32_t first, uint32_t n,
                      float *out, const float *in);

/* For operations: where a node's state of the first sample is carried (exec->carry is not NULL), and the keys of its
 * random numbers, two words a sample, the same forward and backward. */
float *shoal_exec_carry(const shoal_exec *exec, const shoal_node *node);
const uint32_t *shoal_exec_keys(const shoal_exec *exec, const shoal_node *node);

#endif
