/* recurrent.h: the recurrent nodes of exec.c: rnn, lstm and gru.
 *
 * Input products of all steps are one matrix product; then step after step adds the
 * recurrent part. Backward goes through the steps the other way and forms the weight
 * gradients from all of them at once.
 *
 * Ownership, threads: as exec.h. */
#ifndef SHOAL_NN_RECURRENT_H
#define SHOAL_NN_RECURRENT_H

#include "nn/exec.h"

/* What exec.c hands over: all pointers resolved. x is steps x n x in, y steps x n x h. */
typedef struct shoal_cell {
  const shoal_kernels *kernels;
  shoal_team *team; /* or NULL */
  bool fresh;       /* dweight and drecurrent are overwritten, not added to */
  shoal_node_op op;
  shoal_activation activation; /* rnn */
  bool reverse;
  uint32_t n, steps, in, h;
  const float *x;
  float *y;
  const float *weight, *recurrent, *bias, *recurrent_bias;
  float *saved, *scratch;
  float *state;        /* carried rows: h, then c for an lstm; NULL to start from zero */
  size_t state_stride; /* floats from the h rows to the c rows */
  /* backward only */
  float *dy; /* overwritten */
  float *dx; /* NULL when not wanted */
  float *dweight, *drecurrent, *dbias, *drecurrent_bias;
} shoal_cell;

void shoal_cell_forward(const shoal_cell *cell);
void shoal_cell_backward(const shoal_cell *cell);

size_t shoal_cell_saved(shoal_node_op op, uint32_t steps, uint32_t n, uint32_t h);
size_t shoal_cell_scratch(const shoal_kernels *kernels, shoal_node_op op, uint32_t steps, uint32_t n,
                          uint32_t in, uint32_t h, bool backward);

#endif
