/* metric.c: the one number that a loss is judged by, and how it is printed. */
#include "train/metric.h"

#include <math.h>
#include <stdio.h>

#include "base/human.h"

static const shoal_shape *output_shape(const shoal_graph *graph) {
  return &graph->nodes[graph->nodes_count - 1].shape;
}

shoal_metric shoal_metric_of(const shoal_graph *graph) {
  switch (graph->model->recipe.loss) {
  case SHOAL_CROSS_ENTROPY:
    return output_shape(graph)->kind == SHOAL_SEQUENCE ? SHOAL_PERPLEXITY : SHOAL_ACCURACY;
  case SHOAL_BINARY_CROSS_ENTROPY: return SHOAL_ACCURACY;
  case SHOAL_MEAN_SQUARED:
  case SHOAL_MEAN_ABSOLUTE:
  case SHOAL_HUBER: break;
  }
  return SHOAL_RMSE;
}

const char *shoal_metric_name(shoal_metric metric) {
  switch (metric) {
  case SHOAL_ACCURACY: return "accuracy";
  case SHOAL_PERPLEXITY: return "perplexity";
  case SHOAL_RMSE: break;
  }
  return "rmse";
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

const char *shoal_metric_unit(const shoal_graph *graph, uint32_t *rows) {
  const shoal_shape *output = output_shape(graph);
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
