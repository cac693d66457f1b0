/* metric.c: the one number that a loss is judged by, and how it is printed. */
#include "train/metric.h"

#include <math.h>
#include <stdio.h>

#include "base/human.h"
#include "nn/loss.h"

shoal_metric shoal_metric_of(const shoal_graph *graph) {
  const shoal_loss_row *loss = &shoal_loss_rows[graph->model->recipe.loss];
  if (!loss->counts_right) return SHOAL_RMSE;
  bool tokens = loss->output == SHOAL_ACT_SOFTMAX && shoal_graph_output(graph)->kind == SHOAL_SEQUENCE;
  return tokens ? SHOAL_PERPLEXITY : SHOAL_ACCURACY;
}

const char *shoal_metric_name(shoal_metric metric) {
  static const char *const names[] = {
      [SHOAL_ACCURACY] = "accuracy", [SHOAL_PERPLEXITY] = "perplexity", [SHOAL_RMSE] = "rmse"};
  return names[metric];
}

double shoal_metric_value(const shoal_graph *graph, const shoal_result *result) {
  switch (shoal_metric_of(graph)) {
  case SHOAL_ACCURACY: return result->accuracy;
  case SHOAL_PERPLEXITY: return exp(result->loss); /* the loss is a token's */
  case SHOAL_RMSE: break;
  }
  return result->rmse;
}

void shoal_metric_text(shoal_text *out, const shoal_graph *graph, const shoal_result *result) {
  shoal_text_addf(out, "loss %s  %s %s", shoal_human_number(result->loss).text,
                  shoal_metric_name(shoal_metric_of(graph)),
                  shoal_human_number(shoal_metric_value(graph, result)).text);
  if (shoal_metric_of(graph) == SHOAL_PERPLEXITY)
    shoal_text_addf(out, "  accuracy %s", shoal_human_number(result->accuracy).text);
}

uint32_t shoal_likeliest(const float *probability, uint32_t count) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < count; i++)
    if (probability[i] > probability[best]) best = i;
  return best;
}

const char *shoal_metric_unit(const shoal_graph *graph, uint32_t *rows) {
  const shoal_shape *output = shoal_graph_output(graph);
  *rows = output->steps;
  if (output->kind != SHOAL_SEQUENCE) return "samples";
  return graph->nodes[0].shape.kind == SHOAL_TOKENS ? "tokens" : "steps";
}

static void add_real(shoal_json *json, const char *prefix, const char *name, double value) {
  char key[64];
  snprintf(key, sizeof key, "%s%s", prefix, name);
  shoal_json_real(json, key, value);
}

void shoal_metric_json(shoal_json *json, const char *prefix, const shoal_graph *graph,
                       const shoal_result *result) {
  add_real(json, prefix, "loss", result->loss);
  shoal_metric metric = shoal_metric_of(graph);
  add_real(json, prefix, shoal_metric_name(metric), shoal_metric_value(graph, result));
  if (metric == SHOAL_PERPLEXITY) add_real(json, prefix, "accuracy", result->accuracy);
}
