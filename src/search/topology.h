/* topology.h: the network that a trial's values ask for, as a model's text.
 *
 * Plain: layers of dense, normalisation, activation, dropout. Residual: each of the layers becomes a block
 * of two dense ones of its width, whose result is added to what came in; where the width changes, a dense
 * layer stands before the block. Explicit topologies are plain. The rate warms up shortly and follows a
 * cosine down to 0 over all epochs, so a trial that gets more of them later must know from the beginning
 * how many there are.
 *
 * Threads: any. */
#ifndef SHOAL_SEARCH_TOPOLOGY_H
#define SHOAL_SEARCH_TOPOLOGY_H

#include "search/encoder.h"
#include "search/space.h"

typedef struct shoal_topology_io {
  uint32_t inputs, lookups, vocabulary; /* of the encoder */
  shoal_problem problem;
  uint32_t classes;
  uint64_t rows;   /* to train with: batches are not larger than a fourth of them */
  uint32_t epochs; /* of a whole training */
  uint64_t seed;
} shoal_topology_io;

/* How the trial wants its rows. Where one-hot becomes lookup for a column with many categories, they get
 * SHOAL_EMBEDDING_USUAL learned values, since `embedding` has an effect with lookup only. */
enum { SHOAL_EMBEDDING_USUAL = 8 };
shoal_encoding_choice shoal_topology_encoding(const shoal_space *space, const shoal_values *values);
/* "input 22\nlookup ...\ndense 256 silu\n...", added to out. Whether it is too large to be,
 * shoal_model_parse says. */
shoal_status shoal_topology_write(const shoal_space *space, const shoal_values *values,
                                  const shoal_topology_io *io, shoal_text *out, shoal_error *err);
/* The widths of the hidden layers, the widest of them `width`, the narrowest a fourth of it; returns how
 * many. */
uint32_t shoal_topology_widths(shoal_net_shape shape, uint32_t layers, uint32_t width,
                               uint32_t out[SHOAL_HIDDEN_MAX]);

#endif
