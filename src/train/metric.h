/* metric.h: what a result is judged by, and how it is shown.
 *
 * Every model has a loss. Beside it stands what people ask about: the accuracy of a
 * classifier, the perplexity of a text model (e to the loss of a token), the root mean
 * squared error of a regression. Threads: any. */
#ifndef SHOAL_TRAIN_METRIC_H
#define SHOAL_TRAIN_METRIC_H

#include "base/json.h"
#include "nn/trainer.h"

const char *shoal_metric_name(const shoal_graph *graph); /* "accuracy" */
double shoal_metric_value(const shoal_graph *graph, const shoal_result *result);

/* The first of the most probable answers. */
uint32_t shoal_likeliest(const float *probability, uint32_t count);

/* What results count: "samples", or "tokens" or "steps" of sequences, *rows in each sample. */
const char *shoal_metric_unit(const shoal_graph *graph, uint32_t *rows);

/* "loss 0.3312  accuracy 0.8790"; a text model has its accuracy as well. */
void shoal_metric_text(shoal_text *out, const shoal_graph *graph, const shoal_result *result);
/* The same under their names, each with the prefix: "test_loss". */
void shoal_metric_json(shoal_json *json, const char *prefix, const shoal_graph *graph,
                       const shoal_result *result);

#endif
