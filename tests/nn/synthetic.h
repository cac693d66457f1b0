/* synthetic.h: a made-up source for any model, for tests: every value a pure function
 * of the sample's number. */
#ifndef SHOAL_TESTS_NN_SYNTHETIC_H
#define SHOAL_TESTS_NN_SYNTHETIC_H

#include <string.h>

#include "base/random.h"
#include "nn/graph.h"
#include "nn/source.h"

typedef struct synthetic {
  const shoal_graph *graph;
  uint64_t seed;
} synthetic;

static inline void synthetic_fetch(const void *self, uint64_t epoch, uint64_t first, uint32_t n,
                                   const shoal_batch *into) {
  (void)epoch;
  const synthetic *s = self;
  const shoal_shape *in = &s->graph->nodes[0].shape;
  const shoal_shape *out = &s->graph->nodes[s->graph->nodes_count - 1].shape;
  uint32_t lanes = shoal_lanes_for(n), values = (uint32_t)shoal_shape_values(in);
  uint32_t vocabulary = s->graph->model->layers_count > 1 ? s->graph->model->layers[1].vocabulary : 0;
  uint32_t columns = s->graph->model->layers_count > 1 ? s->graph->model->layers[1].columns : 0;
  if (in->kind == SHOAL_IMAGE) memset(into->x, 0, (size_t)values * lanes * sizeof(float));
  for (uint32_t i = 0; i < n; i++) {
    shoal_key key = shoal_key_make(s->seed, SHOAL_FOR_TOY, first + i, 0);
    for (uint32_t e = 0; e < values; e++) {
      float value = 2 * shoal_random_uniform(key, e) - 1;
      uint32_t t = e / in->features, f = e % in->features;
      if (e >= values - columns) value = (float)shoal_random_below(key, e, vocabulary);
      if (into->tokens != NULL)
        into->tokens[(size_t)e * n + i] = (int32_t)shoal_random_below(key, e, vocabulary);
      if (into->x == NULL) continue;
      if (in->kind == SHOAL_IMAGE) into->x[(size_t)e * lanes + i] = value;
      if (in->kind != SHOAL_IMAGE) into->x[((size_t)t * n + i) * in->features + f] = value;
    }
    for (uint32_t t = 0; t < out->steps; t++) {
      size_t row = (size_t)t * n + i;
      into->weight[row] = 1;
      if (into->labels != NULL)
        into->labels[row] = (int32_t)shoal_random_below(key, 100000 + t, out->features);
      if (into->targets == NULL) continue;
      for (uint32_t f = 0; f < out->features; f++) {
        float value = 2 * shoal_random_uniform(key, 200000 + t * out->features + f) - 1;
        if (s->graph->model->recipe.loss == SHOAL_BINARY_CROSS_ENTROPY) value = value > 0;
        into->targets[row * out->features + f] = value;
      }
    }
    if (into->ids != NULL) into->ids[i] = first + i;
  }
}

static inline shoal_source synthetic_source(const synthetic *s, uint64_t samples) {
  return (shoal_source){.self = s, .samples = samples, .fetch = synthetic_fetch};
}

#endif
