/* metric.c: the one number that a loss is judged by, and how it is printed. */
#include "train/metric.h"

#include <math.h>
#include <stdio.h>

#include "base/human.h"
#include "nn/loss.h"

typedef enum metric { ACCURACY, PERPLEXITY, RMSE } metric;

static metric metric_of(const shoal_graph *graph) {
  const shoal_loss_row *loss = &shoal_loss_rows[graph->model->recipe.loss];
  if (loss->targets == SHOAL_TARGET_NUMBER) return RMSE;
  bool tokens = loss->targets == SHOAL_TARGET_CLASSES && shoal_graph_output(graph)->kind == SHOAL_SEQUENCE;
  return tokens ? PERPLEXITY : ACCURACY;
}

const char *shoal_metric_name(const shoal_graph *graph) {
  static const char *const names[] = {[ACCURACY] = "accuracy", [PERPLEXITY] = "perplexity", [RMSE] = "rmse"};
  return names[metric_of(graph)];
}

double shoal_metric_value(const shoal_graph *graph, const shoal_result *result) {
  const double values[] = {[ACCURACY] = result->accuracy,
                           [PERPLEXITY] = exp(result->loss), /* the loss is a token's */
                           [RMSE] = result->rmse};
  return values[metric_of(graph)];
}

void shoal_metric_text(shoal_text *out, const shoal_graph *graph, const shoal_result *result) {
  shoal_text_addf(out, "loss %s  %s %s", shoal_human_number(result->loss).text, shoal_metric_name(graph),
                  shoal_human_number(shoal_metric_value(graph, result)).text);
  if (metric_of(graph) == PERPLEXITY)
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
  add_real(json, prefix, shoal_metric_name(graph), shoal_metric_value(graph, result));
  if (metric_of(graph) == PERPLEXITY) add_real(json, prefix, "accuracy", result->accuracy);
}
