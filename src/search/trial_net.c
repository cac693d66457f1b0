/* trial_net.c: networks of a trial, ready to answer; see trial.h. */
#include <stdlib.h>
#include <string.h>

#include "search/topology.h"
#include "search/trial_internal.h"

enum { ALIGNMENT = 64 };

float *shoal_trial_net_reserve(const shoal_graph *graph) {
  size_t bytes = (graph->weights_count * sizeof(float) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  float *weights = aligned_alloc(ALIGNMENT, bytes > 0 ? bytes : ALIGNMENT);
  if (weights) memset(weights, 0, bytes);
  return weights;
}

/* All but the weights; the network's text is added to `texts`. */
static shoal_status open_fold(shoal_bench *bench, const shoal_values *values, uint64_t trial, uint32_t fold,
                              shoal_trial_net *net, shoal_text *texts, shoal_error *err) {
  const shoal_brief *brief = shoal_bench_brief(bench);
  shoal_encoding_choice choice = shoal_topology_encoding(&brief->space, values);
  shoal_text text;
  shoal_text_init(&text);
  shoal_status status =
      shoal_encoder_fit(&net->encoder, &brief->profile, &choice, &brief->target, shoal_bench_rows(bench),
                        &shoal_bench_split(bench)->train[fold], err);
  if (status == SHOAL_OK)
    status = shoal_bench_model(bench, values, trial, fold, net->encoder, &net->model, &text, err);
  if (status == SHOAL_OK) status = shoal_graph_create(&net->graph, net->model, err);
  if (status == SHOAL_OK) {
    shoal_text_add(texts, text.bytes, text.length);
    net->weights = shoal_trial_net_reserve(net->graph);
    if (net->weights == NULL || texts->failed) status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  }
  shoal_text_release(&text);
  return status;
}

shoal_status shoal_trial_load(shoal_bench *bench, const shoal_values *values, uint64_t trial,
                              const char *state, shoal_trial_net out[SHOAL_FOLDS_MAX], uint32_t *count,
                              shoal_error *err) {
  memset(out, 0, SHOAL_FOLDS_MAX * sizeof *out);
  *count = shoal_bench_split(bench)->folds;
  shoal_status status = SHOAL_OK;
  shoal_text texts;
  shoal_text_init(&texts);
  for (uint32_t f = 0; f < *count && status == SHOAL_OK; f++)
    status = open_fold(bench, values, trial, f, &out[f], &texts, err);
  if (status == SHOAL_OK) {
    char sha256[SHOAL_SHA256_HEX];
    shoal_sha256_hex(texts.bytes, texts.length, sha256);
    status = shoal_trial_state_best(state, trial, sha256, out, *count, err);
  }
  shoal_text_release(&texts);
  for (uint32_t f = 0; f < *count && status != SHOAL_OK; f++) shoal_trial_net_release(&out[f]);
  return status;
}

void shoal_trial_net_release(shoal_trial_net *net) {
  shoal_encoder_destroy(net->encoder);
  shoal_graph_destroy(net->graph);
  shoal_model_destroy(net->model);
  free(net->weights);
  *net = (shoal_trial_net){0};
}

shoal_status shoal_trial_net_predict(const shoal_trial_net *net, const shoal_rows *rows,
                                     const shoal_row_list *list, float *out, shoal_error *err) {
  const shoal_encoded_options options = {.encoder = net->encoder, .rows = rows, .list = list};
  shoal_encoded *encoded;
  shoal_engine *forward = NULL;
  shoal_status status = shoal_encoded_create(&encoded, &options, err);
  if (status != SHOAL_OK) return status;
  status = shoal_forward_create(&forward, net->graph, err);
  if (status == SHOAL_OK) {
    shoal_source source = shoal_encoded_source(encoded);
    shoal_forward_run(forward, net->weights, &source, out);
  }
  shoal_engine_destroy(forward);
  shoal_encoded_destroy(encoded);
  return status;
}
