/* forward.c: see forward.h. */
#include "search/forward.h"

#include <stdlib.h>

#include "nn/exec.h"
#include "nn/plan.h"

enum { TILE = 256, ALIGNMENT = 64 };

struct shoal_forward {
  shoal_plan *plan;
  float *block;
};

shoal_status shoal_forward_create(shoal_forward **out, const shoal_graph *graph, shoal_error *err) {
  *out = NULL;
  const shoal_kernels *kernels = shoal_kernels_get();
  if (kernels == NULL)
    return shoal_fail(
        err, SHOAL_UNSUPPORTED,
        "SHOAL_KERNELS names kernels that are unknown or that this processor cannot run: unset it");
  shoal_forward *f = calloc(1, sizeof *f);
  if (f == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status = shoal_plan_create(&f->plan, graph, kernels, SHOAL_PLAN_INFER, TILE, err);
  if (status == SHOAL_OK) {
    size_t bytes = (f->plan->floats * sizeof(float) + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    f->block = aligned_alloc(ALIGNMENT, bytes);
    if (f->block == NULL)
      status = shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a network's values");
  }
  if (status == SHOAL_OK)
    *out = f;
  else
    shoal_forward_destroy(f);
  return status;
}

void shoal_forward_destroy(shoal_forward *f) {
  if (f == NULL) return;
  shoal_plan_destroy(f->plan);
  free(f->block);
  free(f);
}

static void copy_outputs(const shoal_exec *exec, float *out) {
  const shoal_graph *graph = exec->plan->graph;
  const shoal_kernels *k = exec->plan->kernels;
  uint32_t last = graph->nodes_count - 1, features = graph->nodes[last].shape.features;
  const float *value = exec->block + exec->plan->places[last].value;
  if (graph->output_activation == SHOAL_ACT_SOFTMAX)
    k->softmax_forward(exec->n, features, value, out);
  else
    k->act_forward(graph->output_activation, (size_t)exec->n * features, value, out);
}

void shoal_forward_run(shoal_forward *f, const float *weights, const shoal_source *source, float *out) {
  const shoal_graph *graph = f->plan->graph;
  uint32_t features = graph->nodes[graph->nodes_count - 1].shape.features;
  for (uint64_t first = 0; first < source->samples; first += TILE) {
    uint64_t left = source->samples - first;
    shoal_exec exec = {.plan = f->plan, .block = f->block, .weights = weights};
    exec.n = exec.round_n = left < TILE ? (uint32_t)left : TILE;
    shoal_batch batch = shoal_exec_batch(&exec);
    source->fetch(source->self, 0, first, exec.n, &batch);
    shoal_exec_forward(&exec);
    copy_outputs(&exec, out + first * features);
  }
}
