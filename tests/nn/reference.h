/* reference.h: the forward pass of a graph in double, written the plain way, for tests to compare devices with.
 *
 * The formulas are those that nn/model.h, nn/ops/ and kernels/kernels.h state; nothing of kernels/ is called. A value is
 * an array of samples, each with its elements in the order of the shape: steps, then features; or channels, then rows,
 * then columns. There are no lanes, no tiles and no threads, and no backward pass: a slope is a central difference of
 * the loss.
 *
 * Ownership: create, then destroy; the graph outlives the reference. What reference_... returns stays until the next
 * batch. A test fails where memory runs out, or where a node's operation has no formula here.
 * Threads: one at a time. */
#ifndef SHOAL_TESTS_NN_REFERENCE_H
#define SHOAL_TESTS_NN_REFERENCE_H

#include "nn/graph.h"
#include "nn/source.h"

typedef struct reference reference;

/* For batches of n samples. With `training`, batch normalisation takes the statistics of the batch and dropout drops;
 * without, both are as in a prediction. The weights are copied. */
reference *reference_create(const shoal_graph *graph, const float *weights, uint32_t n, bool training);
void reference_destroy(reference *r);

/* Computes the samples `first` .. first + n - 1 of an epoch. Where the model carries recurrent state, it goes on from
 * the batch before; the first batch starts from zeros. */
void reference_batch(reference *r, const shoal_source *source, uint64_t epoch, uint64_t first);

typedef struct reference_loss {
  double sum;       /* over all answers: weight times loss, as in shoal_sums */
  double weight;    /* the sum of the weights */
  double objective; /* what training takes the gradient of: sum / samples, and without sum-steps / steps */
} reference_loss;

/* Of the last batch. */
reference_loss reference_loss_of(const reference *r);
const double *reference_output(const reference *r, uint32_t node); /* n x values */
/* The last node's output with the output activation applied: n x values. */
void reference_predictions(const reference *r, double *out);

/* What the gradient vector of training holds at this weight: the slope of the objective, or, for a statistic of batch
 * normalisation, the batch's own. */
double reference_slope(reference *r, size_t weight);

/* How many roundings, one after the other, the last node's output has behind it at most, counted as the terms of the
 * longest sum of each node and a few for each function; with `backward`, the same for an element of the gradient. */
double reference_terms(const reference *r, bool backward);

#endif
