/* source.h: where samples come from, as the engine sees it.
 *
 * A source answers for one pass over its samples: position p of epoch e is always the
 * same sample, whoever asks and in whatever order, so any machine can compute any part
 * of any round. Data sets (data/dataset.h) make sources; tests make their own.
 *
 * Continuous text has as many streams as the batch has rows: position p is row
 * p % batch of round p / batch.
 *
 * Ownership: what `self` points at outlives the users of the source.
 * Threads: fetch is called by many threads at once. */
#ifndef SHOAL_NN_SOURCE_H
#define SHOAL_NN_SOURCE_H

#include <stdint.h>

/* More samples than this are never asked for at once. */
enum { SHOAL_FETCH_MAX = 1024 };

/* Where fetch writes n samples. Only the pointers that the model needs are set. */
typedef struct shoal_batch {
  float *x;        /* ROWS, TIME, or LANES with the unused lanes zero */
  int32_t *tokens; /* TIME: steps x n */
  int32_t *labels; /* n, or steps x n when the output is a sequence */
  float *targets;  /* n x features, or steps x n x features */
  float *weight;   /* n, or steps x n; 1 for an ordinary sample, 0 for padding */
  uint64_t *ids;   /* n: the samples' own numbers, for dropout */
} shoal_batch;

typedef struct shoal_source {
  const void *self;
  uint64_t samples; /* positions in an epoch, padding included */
  void (*fetch)(const void *self, uint64_t epoch, uint64_t first, uint32_t n, const shoal_batch *into);
} shoal_source;

#endif
