/* onnx.h: a trained model as an ONNX file (opset 17), for other runtimes.
 *
 * Input "input" is batch x the model's input shape (tokens: batch x steps, int64); output
 * "output" is what `shoal predict` gives, output activation included. Recurrent state
 * starts at zero. Threads: none. */
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

#endif
