/* brain.h: a network whose caller says what is better: it writes the gradient of the outputs, and the rest is
 * the engine's.
 *
 * The text is a body as in model texts (docs/guide.md), layers only: "dense 64 tanh\ndense 64 tanh". Input
 * and output layers are put around it. A body that needs sequences (a recurrent layer at its front) makes the
 * network recurrent: it then works on sequences, with a state for each row. Dropout, batch normalisation and
 * layers that look ahead (bidirectional, last) are refused.
 *
 * Rows are cut into a number of shards that follows from their count alone, and shards' gradients are added
 * in the order of nn/tree.h: any number of threads gives the same bits.
 *
 * Ownership: create, then destroy. Threads: one caller; the threads inside are those of the pool. */
#ifndef SHOAL_AGENT_BRAIN_H
#define SHOAL_AGENT_BRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"

typedef struct shoal_brain shoal_brain;

typedef struct shoal_brain_config {
  const char *name;  /* "policy" */
  const char *where; /* what errors call the body: the name of its file; NULL: "body" */
  const char *body;
  uint32_t inputs, outputs;
  uint32_t steps;      /* of a sequence, at most; 1 where the body is not recurrent */
  float output_scale;  /* of the output layer's first weights; 1 leaves them as they come */
  bool input_gradient; /* shoal_brain_learn may be asked for the inputs' gradient */
  bool runs_only;      /* no memory for learning, which must not be asked for */
  uint64_t seed;
  shoal_pool *pool; /* borrowed; NULL: the caller's thread alone */
} shoal_brain_config;

/* How many weights the network would have, and floats of a row's state, before anything large is made. SHOAL_INVALID:
 * the body is not a list of layers that takes these inputs; the error names its line: "body:1:10: ...". */
shoal_status shoal_brain_measure(const shoal_brain_config *config, uint64_t *weights, uint32_t *state_floats,
                                 shoal_error *err);
/* SHOAL_INVALID: likewise. */
shoal_status shoal_brain_create(shoal_brain **out, const shoal_brain_config *config, shoal_error *err);
void shoal_brain_destroy(shoal_brain *net);

bool shoal_brain_recurrent(const shoal_brain *net);
uint32_t shoal_brain_state_floats(const shoal_brain *net); /* a row's; 0 unless recurrent */
size_t shoal_brain_weights_count(const shoal_brain *net);
float *shoal_brain_weights(shoal_brain *net); /* the flat vector; may be written between calls */
struct shoal_graph;
const struct shoal_graph *shoal_brain_graph(const shoal_brain *net); /* names and shapes, for files */

/* n rows of one step: outputs; with a state (n x state floats) it goes on from there and is left as it is
 * after the step; NULL: from zeros. weights NULL: the network's own. What comes out of a row does not depend
 * on the others: bit for bit. */
void shoal_brain_run(shoal_brain *net, const float *weights, uint32_t n, const float *x, float *state,
                     float *out);

/* n rows of `steps` steps (x: n x steps x inputs). After each piece forward, `judge` is called with the
 * rows [first, first + count) and their outputs (count x steps x outputs), and writes their gradients, zeros
 * when it is called: those of the mean, so it divides by n itself. It is called from several threads, each
 * row once; `sums` has its piece's own eight numbers, zeros at first, which are added up in order into
 * `sums_out` (may be NULL). */
typedef void (*shoal_brain_judge)(void *self, uint32_t first, uint32_t count, const float *out,
                                  float *gradient, double sums[8]);
typedef struct shoal_brain_batch {
  uint32_t n, steps;
  const float *x;
  const float *state;    /* n x state floats, to begin with; NULL: zeros */
  float *input_gradient; /* like x; NULL: not wanted */
  bool weights_too;      /* false: only the input's gradient is wanted, and there is none to step with */
  shoal_brain_judge judge;
  void *self;
} shoal_brain_batch;
/* Leaves the gradient in the network, for shoal_brain_step. */
void shoal_brain_learn(shoal_brain *net, const shoal_brain_batch *batch, double sums_out[8]);
/* The optimiser's step (Adam, epsilon 1e-5 as is usual here) with that gradient, cut to this norm where
 * that is above zero. False: the gradient is not finite, and nothing was changed. */
bool shoal_brain_step(shoal_brain *net, float rate, float clip);
/* weights = weights + share * (from's - weights): targets that follow slowly; share 1 copies. Both are made
 * of the same texts. */
void shoal_brain_follow(shoal_brain *net, const shoal_brain *from, float share);

/* For checkpoints: the optimiser's two vectors and its count of steps. */
float *shoal_brain_slot(shoal_brain *net, int which);
uint64_t *shoal_brain_steps(shoal_brain *net);

#endif
