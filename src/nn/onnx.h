/* onnx.h: a trained model as an ONNX file (opset 17), for other runtimes.
 *
 * Input "input" is batch x the model's input shape (tokens: batch x steps, int64); output
 * "output" is what `shoal predict` gives, output activation included. Recurrent state
 * starts at zero. Values in the file are batch x features, batch x c x h x w, or batch x steps x features.
 * Threads: none. */
#ifndef SHOAL_NN_ONNX_H
#define SHOAL_NN_ONNX_H

#include "nn/graph.h"
#include "nn/onnx_file.h"

/* Written atomically. */
shoal_status shoal_onnx_save(const char *path, const shoal_graph *graph, const float *weights,
                             shoal_error *err);

/* The operators of a model inside a larger file: from the value `input` to the one that is returned. The
 * prefix keeps its names apart from others. Prefix and weights are borrowed until the file is written. */
const char *shoal_onnx_graph(shoal_onnx_file *file, const char *prefix, const shoal_graph *graph,
                             const float *weights, const char *input);

/* What the operations of nn/ops/ write themselves into the file with. */
typedef struct shoal_onnx_export {
  shoal_onnx_file *file;
  const shoal_graph *graph;
  const float *weights;
  const char *prefix, *input;
  const char **outputs; /* value of every node of the graph */
} shoal_onnx_export;

/* A parameter as it is, or under its name with other dimensions and values. */
const char *shoal_onnx_param(shoal_onnx_export *e, uint32_t index);
const char *shoal_onnx_param_as(shoal_onnx_export *e, uint32_t index, size_t dims_count, const int64_t *dims,
                                const float *data);
const char *shoal_onnx_transpose(shoal_onnx_export *e, const char *x, size_t axes_count, const int64_t *axes);
/* nn/ops/activation.c */
const char *shoal_onnx_activation(shoal_onnx_export *e, shoal_activation activation, const char *x);

#endif
