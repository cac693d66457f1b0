/* rounds.h: who makes the rounds of a training: this process, a cluster, or the ranks of MPI.
 *
 * The one who runs a training (epochs, evaluation, checkpoints, reports) asks for round after
 * round and need not know. All of them work on the state of one trainer (trainer.h): the position
 * and the running sums in it are always those of the last round; weights, the optimiser's slots and
 * recurrent state may be elsewhere until they are gathered.
 *
 * Threads: one caller. */
#ifndef SHOAL_NN_ROUNDS_H
#define SHOAL_NN_ROUNDS_H

#include "nn/trainer.h"

typedef struct shoal_rounds {
  void *self;
  /* One more round. In a cluster that had to go back to an earlier version it may be an earlier one than
   * the last. *out is its result. SHOAL_INVALID: the loss is not a number. */
  shoal_status (*next)(void *self, shoal_result *out, shoal_error *err);
  /* Brings everything in the trainer's state to its position. */
  shoal_status (*gather)(void *self, shoal_error *err);
} shoal_rounds;

#endif
