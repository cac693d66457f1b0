/* onnx_op.h: what the operations of nn/ops/ write themselves into an ONNX file with.
 *
 * Values in the file are batch x features, batch x c x h x w, or batch x steps x features.
 *
 * Threads: none. */
#ifndef SHOAL_NN_ONNX_OP_H
#define SHOAL_NN_ONNX_OP_H

#include "nn/graph.h"
#include "nn/onnx_file.h"

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
