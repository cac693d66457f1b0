/* forward.c: see forward.h. */
#include "search/forward.h"

enum { TILE = 256, ROWS_MAX = 1 << 20 };

shoal_status shoal_forward_create(shoal_engine **out, const shoal_graph *graph, shoal_error *err) {
  const shoal_engine_config config = {.graph = graph, .infer_tile = TILE};
  return shoal_engine_create(out, &config, err);
}

void shoal_forward_run(shoal_engine *engine, const float *weights, const shoal_source *source, float *out) {
  const shoal_graph *graph = shoal_engine_plan(engine, SHOAL_PLAN_INFER)->graph;
  size_t features = graph->nodes[graph->nodes_count - 1].shape.features;
  for (uint64_t first = 0; first < source->samples; first += ROWS_MAX) {
    uint64_t left = source->samples - first;
    const shoal_pass pass = {.use = SHOAL_PLAN_INFER,
                             .source = source,
                             .first = first,
                             .n = left < ROWS_MAX ? (uint32_t)left : ROWS_MAX,
                             .shards = 1,
                             .shards_count = 1,
                             .weights = weights,
                             .out = out + first * features};
    shoal_engine_pass(engine, &pass);
  }
}
