/* rig.h: a model's text, planned and ready to run tile by tile, for tests below the engine. */
#ifndef SHOAL_TESTS_NN_RIG_H
#define SHOAL_TESTS_NN_RIG_H

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "nn/exec.h"

typedef struct rig {
  shoal_model *model;
  shoal_graph *graph;
  shoal_device device;
  shoal_plan *plan;
  shoal_exec exec; /* of a whole round, `samples` of them */
  float *weights, *gradient;
} rig;

static inline float *rig_floats(size_t count) {
  size_t bytes = (count * sizeof(float) + 64) / 64 * 64;
  float *memory = aligned_alloc(64, bytes);
  assert_non_null(memory);
  memset(memory, 0, bytes);
  return memory;
}

/* The rig must not be moved: its plan points into it. */
static inline void rig_open(rig *r, const char *text, const shoal_kernels *kernels, shoal_plan_use use,
                            uint32_t samples) {
  shoal_error err = {0};
  *r = (rig){.device = shoal_device_with(kernels)};
  if (shoal_model_parse(&r->model, "test", text, strlen(text), &err) != SHOAL_OK) fail_msg("%s", err.text);
  if (shoal_graph_create(&r->graph, r->model, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_int_equal(shoal_plan_create(&r->plan, r->graph, &r->device, use, samples, &err), SHOAL_OK);
  r->weights = rig_floats(r->graph->weights_count);
  r->gradient = rig_floats(r->graph->weights_count);
  shoal_graph_init_weights(r->graph, 1, r->weights);
  float *block = rig_floats(r->plan->floats);
  r->exec = (shoal_exec){.plan = r->plan,
                         .block = block,
                         .host = block,
                         .weights = r->weights,
                         .gradient = r->gradient,
                         .marks = calloc(r->graph->nodes_count, sizeof *r->exec.marks),
                         .fresh = true,
                         .n = samples,
                         .round_n = samples};
  assert_non_null(r->exec.marks);
}

static inline void rig_close(rig *r) {
  free(r->exec.block);
  free(r->exec.marks);
  free(r->weights);
  free(r->gradient);
  shoal_plan_destroy(r->plan);
  shoal_graph_destroy(r->graph);
  shoal_model_destroy(r->model);
}

#endif
