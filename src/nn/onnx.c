/* onnx.c: the graph's nodes as ONNX operators; see onnx.h.
 *
 * Weights are not copied but noted, and only the recurrent ones, whose gates ONNX orders otherwise, are
 * laid out anew. Values are called "<layer>:<number>". */
#include "nn/onnx.h"

#include "nn/op.h"

const char *shoal_onnx_param_as(shoal_onnx_export *e, uint32_t index, size_t dims_count, const int64_t *dims,
                                const float *data) {
  const char *name = shoal_onnx_join(e->file, e->prefix, e->graph->params[index].name);
  return shoal_onnx_constant(e->file, name, SHOAL_ONNX_FLOAT, dims_count, dims, data);
}

const char *shoal_onnx_param(shoal_onnx_export *e, uint32_t index) {
  const shoal_param *param = &e->graph->params[index];
  int64_t dims[4];
  for (uint32_t i = 0; i < param->dims_count; i++) dims[i] = param->dims[i];
  return shoal_onnx_param_as(e, index, param->dims_count, dims, e->weights + param->offset);
}

const char *shoal_onnx_transpose(shoal_onnx_export *e, const char *x, size_t axes_count,
                                 const int64_t *axes) {
  shoal_onnx_attribute_ints(e->file, "perm", axes_count, axes);
  return shoal_onnx_emit(e->file, "Transpose", x, NULL);
}

const char *shoal_onnx_graph(shoal_onnx_file *file, const char *prefix, const shoal_graph *graph,
                             const float *weights, const char *input) {
  shoal_onnx_export e = {.file = file, .graph = graph, .weights = weights, .prefix = prefix, .input = input};
  e.outputs = shoal_arena_array(&file->memory, graph->nodes_count, sizeof *e.outputs);
  if (!e.outputs) {
    file->failed = true;
    return "";
  }
  for (uint32_t i = 0; i < graph->nodes_count; i++) {
    file->scope = shoal_onnx_join(file, prefix, graph->model->layers[graph->nodes[i].layer].name);
    const shoal_node *node = &graph->nodes[i];
    e.outputs[i] = node->op->onnx(&e, node, node->inputs_count > 0 ? e.outputs[node->inputs[0]] : NULL);
  }
  file->scope = shoal_onnx_join(file, prefix, "output");
  return shoal_onnx_activation(&e, graph->output_activation, e.outputs[graph->nodes_count - 1]);
}

static shoal_onnx_type type_of(const shoal_shape *shape) {
  return shape->kind == SHOAL_TOKENS ? SHOAL_ONNX_INT64 : SHOAL_ONNX_FLOAT;
}

shoal_status shoal_onnx_save(const char *path, const shoal_graph *graph, const float *weights,
                             shoal_error *err) {
  const shoal_shape *in = &graph->nodes[0].shape, *out = shoal_graph_output(graph);
  shoal_onnx_file file;
  int64_t dims[SHOAL_SHAPE_DIMS_MAX];
  shoal_onnx_file_init(&file);
  const char *input = shoal_onnx_input(&file, "input", type_of(in), shoal_shape_dims(in, dims), dims);
  const char *last = shoal_onnx_graph(&file, "", graph, weights, input);
  shoal_onnx_output(&file, "output", last, type_of(out), shoal_shape_dims(out, dims), dims);
  shoal_status status = shoal_onnx_file_write(&file, path, err);
  shoal_onnx_file_release(&file);
  return status;
}
