/* onnx.c: the graph's nodes as ONNX operators, in a protocol-buffer message; see onnx.h.
 *
 * Operators are collected in one text; the constants' bytes are not copied but noted, and only the recurrent
 * weights, whose gates ONNX orders otherwise, are laid out anew. At the end all lengths are known and the
 * file is written in one pass. The numbers of fields are those of onnx.proto. */
#include "nn/onnx.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/file.h"
#include "nn/op.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are written as they lie in memory");

enum { IR_VERSION = 8, OPSET = 17, OPSET_TABLES = 3 };
enum { MODEL_IR_VERSION = 1, MODEL_PRODUCER = 2, MODEL_GRAPH = 7, MODEL_OPSET = 8, MODEL_META = 14 };
enum { META_KEY = 1, META_VALUE = 2 };
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5, NODE_DOMAIN = 7 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_FLOAT = 2, ATTRIBUTE_INT = 3, ATTRIBUTE_INTS = 8 };
enum { ATTRIBUTE_TEXT = 4, ATTRIBUTE_TEXTS = 9, ATTRIBUTE_TYPE = 20 };
enum { TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_TEXT = 3, TYPE_INTS = 7, TYPE_TEXTS = 8 };
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9 };
enum { VALUE_NAME = 1, VALUE_TYPE = 2, TYPE_TENSOR = 1, TENSOR_TYPE_ELEMENT = 1, TENSOR_TYPE_SHAPE = 2 };
enum { SHAPE_DIM = 1, DIM_VALUE = 1, DIM_NAME = 2 };
enum { OPERANDS_MAX = 5, NAME_BYTES_MAX = 512 };

#define FILE_BYTES_MAX ((uint64_t)INT32_MAX) /* of a protocol-buffer message */
static const char tables_domain[] = "ai.onnx.ml",
                  label_encoder[] = "LabelEncoder"; /* its only operator here */

/* A tensor of the file: its message up to the raw bytes, and those. */
struct shoal_onnx_tensor {
  shoal_onnx_tensor *next;
  shoal_protobuf head;
  const void *data;
  size_t bytes;
};

void shoal_onnx_file_init(shoal_onnx_file *file) {
  *file = (shoal_onnx_file){.scope = "", .opset = OPSET};
  shoal_arena_init(&file->memory, (size_t)FILE_BYTES_MAX * 2);
  shoal_protobuf_text(&file->nodes, GRAPH_NAME, "shoal");
}

void shoal_onnx_file_release(shoal_onnx_file *file) {
  for (shoal_onnx_tensor *tensor = file->first; tensor; tensor = tensor->next)
    shoal_text_release(&tensor->head.text);
  shoal_text_release(&file->nodes.text);
  shoal_text_release(&file->attributes.text);
  shoal_text_release(&file->ends.text);
  shoal_text_release(&file->meta.text);
  shoal_arena_release(&file->memory);
}

/* ---- names -------------------------------------------------------------------------- */

const char *shoal_onnx_join(shoal_onnx_file *file, const char *a, const char *b) {
  size_t first = strlen(a), second = strlen(b);
  char *joined = shoal_arena_take(&file->memory, first + second + 1);
  file->failed |= !joined;
  if (!joined) return "";
  memcpy(joined, a, first);
  memcpy(joined + first, b, second);
  return joined;
}

/* A name for a new value. */
static const char *new_name(shoal_onnx_file *file) {
  char text[NAME_BYTES_MAX];
  snprintf(text, sizeof text, "%.*s:%u", NAME_BYTES_MAX - 16, file->scope, file->values++);
  return shoal_onnx_join(file, text, "");
}

/* ---- attributes --------------------------------------------------------------------- */

/* The next one closes it, or its operator. */
static shoal_protobuf *open_attribute(shoal_onnx_file *file, const char *name, int type) {
  shoal_protobuf *out = &file->attributes;
  shoal_protobuf_close(out, out->depth);
  shoal_protobuf_open(out, NODE_ATTRIBUTE);
  shoal_protobuf_text(out, ATTRIBUTE_NAME, name);
  shoal_protobuf_int(out, ATTRIBUTE_TYPE, type);
  return out;
}

void shoal_onnx_attribute_int(shoal_onnx_file *file, const char *name, int64_t value) {
  shoal_protobuf_int(open_attribute(file, name, TYPE_INT), ATTRIBUTE_INT, value);
}

void shoal_onnx_attribute_ints(shoal_onnx_file *file, const char *name, size_t count, const int64_t *values) {
  shoal_protobuf *out = open_attribute(file, name, TYPE_INTS);
  for (size_t i = 0; i < count; i++) shoal_protobuf_int(out, ATTRIBUTE_INTS, values[i]);
}

void shoal_onnx_attribute_float(shoal_onnx_file *file, const char *name, float value) {
  shoal_protobuf_float(open_attribute(file, name, TYPE_FLOAT), ATTRIBUTE_FLOAT, value);
}

void shoal_onnx_attribute_text(shoal_onnx_file *file, const char *name, const char *value) {
  shoal_protobuf_text(open_attribute(file, name, TYPE_TEXT), ATTRIBUTE_TEXT, value);
}

void shoal_onnx_attribute_texts(shoal_onnx_file *file, const char *name, size_t count,
                                const char *const *values) {
  shoal_protobuf *out = open_attribute(file, name, TYPE_TEXTS);
  for (size_t i = 0; i < count; i++) shoal_protobuf_text(out, ATTRIBUTE_TEXTS, values[i]);
}

/* ---- operators ---------------------------------------------------------------------- */

void shoal_onnx_node(shoal_onnx_file *file, const char *op, const char *const *inputs, size_t inputs_count,
                     const char *output) {
  shoal_protobuf *out = &file->nodes;
  shoal_protobuf_close(&file->attributes, file->attributes.depth);
  bool of_tables = strcmp(op, label_encoder) == 0;
  file->tables |= of_tables;
  shoal_protobuf_open(out, GRAPH_NODE);
  for (size_t i = 0; i < inputs_count; i++) shoal_protobuf_text(out, NODE_INPUT, inputs[i]);
  shoal_protobuf_text(out, NODE_OUTPUT, output);
  shoal_protobuf_text(out, NODE_NAME, output);
  shoal_protobuf_text(out, NODE_OP, op);
  out->text.failed |= file->attributes.text.failed;
  shoal_text_add(&out->text, file->attributes.text.bytes, file->attributes.text.length);
  shoal_text_clear(&file->attributes.text);
  if (of_tables) shoal_protobuf_text(out, NODE_DOMAIN, tables_domain);
  shoal_protobuf_close(out, 1);
}

const char *shoal_onnx_emit(shoal_onnx_file *file, const char *op, ...) {
  const char *inputs[OPERANDS_MAX];
  size_t count = 0;
  va_list args;
  va_start(args, op);
  for (const char *input; (input = va_arg(args, const char *));) {
    SHOAL_ASSERT(count < OPERANDS_MAX);
    inputs[count++] = input;
  }
  va_end(args);
  const char *output = new_name(file);
  shoal_onnx_node(file, op, inputs, count, output);
  return output;
}

const char *shoal_onnx_concat(shoal_onnx_file *file, size_t count, const char *const *values, int64_t axis) {
  if (count == 1) return values[0];
  const char *output = new_name(file);
  shoal_onnx_attribute_int(file, "axis", axis);
  shoal_onnx_node(file, "Concat", values, count, output);
  return output;
}

const char *shoal_onnx_cast(shoal_onnx_file *file, const char *value, shoal_onnx_type to) {
  shoal_onnx_attribute_int(file, "to", to);
  return shoal_onnx_emit(file, "Cast", value, NULL);
}

const char *shoal_onnx_numbers_of_texts(shoal_onnx_file *file, const char *value, size_t count,
                                        const char *const *keys, const int64_t *numbers, int64_t otherwise) {
  shoal_onnx_attribute_texts(file, "keys_strings", count, keys);
  shoal_onnx_attribute_ints(file, "values_int64s", count, numbers);
  shoal_onnx_attribute_int(file, "default_int64", otherwise);
  return shoal_onnx_emit(file, label_encoder, value, NULL);
}

const char *shoal_onnx_texts_of_numbers(shoal_onnx_file *file, const char *value, size_t count,
                                        const char *const *texts) {
  shoal_protobuf *out = open_attribute(file, "keys_int64s", TYPE_INTS);
  for (size_t i = 0; i < count; i++) shoal_protobuf_int(out, ATTRIBUTE_INTS, (int64_t)i);
  shoal_onnx_attribute_texts(file, "values_strings", count, texts);
  return shoal_onnx_emit(file, label_encoder, value, NULL);
}

/* ---- constants ---------------------------------------------------------------------- */

/* `data` is borrowed until the file is written. Returns the name. */
static const char *add_constant(shoal_onnx_file *file, const char *name, shoal_onnx_type type,
                                size_t dims_count, const int64_t *dims, const void *data) {
  shoal_onnx_tensor *tensor = shoal_arena_take(&file->memory, sizeof *tensor);
  file->failed |= !tensor;
  if (!tensor) return name;
  shoal_protobuf message = {0};
  tensor->data = data;
  tensor->bytes = type == SHOAL_ONNX_FLOAT ? sizeof(float) : sizeof(int64_t);
  for (size_t i = 0; i < dims_count; i++) {
    tensor->bytes *= (size_t)dims[i];
    shoal_protobuf_int(&message, TENSOR_DIMS, dims[i]);
  }
  shoal_protobuf_int(&message, TENSOR_TYPE, type);
  shoal_protobuf_text(&message, TENSOR_NAME, name);
  shoal_protobuf_bytes_head(&message, TENSOR_RAW, tensor->bytes);
  shoal_protobuf_bytes_head(&tensor->head, GRAPH_INITIALIZER, message.text.length + tensor->bytes);
  shoal_text_add(&tensor->head.text, message.text.bytes, message.text.length);
  file->failed |= message.text.failed || tensor->head.text.failed;
  shoal_text_release(&message.text);
  *(file->last ? file->last : &file->first) = tensor;
  file->last = &tensor->next;
  return name;
}

static const char *add_copy(shoal_onnx_file *file, shoal_onnx_type type, size_t count, const void *values,
                            size_t value_bytes) {
  size_t bytes = (count ? count : 1) * value_bytes;
  void *copy = shoal_arena_take(&file->memory, bytes);
  if (copy) memcpy(copy, values, bytes);
  file->failed |= !copy;
  return add_constant(file, new_name(file), type, count ? 1 : 0, (int64_t[]){(int64_t)count}, copy);
}

const char *shoal_onnx_ints(shoal_onnx_file *file, size_t count, const int64_t *values) {
  return add_copy(file, SHOAL_ONNX_INT64, count, values, sizeof *values);
}

const char *shoal_onnx_doubles(shoal_onnx_file *file, size_t count, const double *values) {
  return add_copy(file, SHOAL_ONNX_DOUBLE, count, values, sizeof *values);
}

const char *shoal_onnx_floats(shoal_onnx_file *file, size_t count, const float *values) {
  return add_copy(file, SHOAL_ONNX_FLOAT, count, values, sizeof *values);
}

const char *shoal_onnx_real(shoal_onnx_file *file, float value) { return shoal_onnx_floats(file, 0, &value); }

/* ---- ends and metadata -------------------------------------------------------------- */

/* Its name, and its type with the batch left open. */
static void add_end(shoal_onnx_file *file, uint32_t field, const char *name, shoal_onnx_type element,
                    size_t dims_count, const int64_t *dims) {
  shoal_protobuf *out = &file->ends;
  shoal_protobuf_open(out, field);
  shoal_protobuf_text(out, VALUE_NAME, name);
  shoal_protobuf_open(out, VALUE_TYPE);
  shoal_protobuf_open(out, TYPE_TENSOR);
  shoal_protobuf_int(out, TENSOR_TYPE_ELEMENT, element);
  shoal_protobuf_open(out, TENSOR_TYPE_SHAPE);
  for (size_t i = 0; i <= dims_count; i++) {
    shoal_protobuf_open(out, SHAPE_DIM);
    if (i == 0)
      shoal_protobuf_text(out, DIM_NAME, "batch");
    else
      shoal_protobuf_int(out, DIM_VALUE, dims[i - 1]);
    shoal_protobuf_close(out, 1);
  }
  shoal_protobuf_close(out, 4);
}

const char *shoal_onnx_input(shoal_onnx_file *file, const char *name, shoal_onnx_type type, size_t dims_count,
                             const int64_t *dims) {
  add_end(file, GRAPH_INPUT, name, type, dims_count, dims);
  return shoal_onnx_join(file, name, "");
}

void shoal_onnx_output(shoal_onnx_file *file, const char *name, const char *value, shoal_onnx_type type,
                       size_t dims_count, const int64_t *dims) {
  if (strcmp(name, value) != 0) shoal_onnx_node(file, "Identity", &value, 1, name);
  add_end(file, GRAPH_OUTPUT, name, type, dims_count, dims);
}

void shoal_onnx_meta(shoal_onnx_file *file, const char *key, const char *value) {
  shoal_protobuf_open(&file->meta, MODEL_META);
  shoal_protobuf_text(&file->meta, META_KEY, key);
  shoal_protobuf_text(&file->meta, META_VALUE, value);
  shoal_protobuf_close(&file->meta, 1);
}

/* ---- the file ----------------------------------------------------------------------- */

static void add_opset(shoal_protobuf *model, const char *domain, int64_t version) {
  shoal_protobuf_open(model, MODEL_OPSET);
  shoal_protobuf_text(model, OPSET_DOMAIN, domain);
  shoal_protobuf_int(model, OPSET_VERSION, version);
  shoal_protobuf_close(model, 1);
}

/* All of the model's message that goes before its graph, whose length it notes. */
static void make_head(const shoal_onnx_file *file, shoal_protobuf *model, uint64_t graph_bytes) {
  shoal_protobuf_int(model, MODEL_IR_VERSION, IR_VERSION);
  shoal_protobuf_text(model, MODEL_PRODUCER, "shoal");
  add_opset(model, "", file->opset);
  if (file->tables) add_opset(model, tables_domain, OPSET_TABLES);
  shoal_text_add(&model->text, file->meta.text.bytes, file->meta.text.length);
  shoal_protobuf_bytes_head(model, MODEL_GRAPH, graph_bytes);
}

shoal_status shoal_onnx_refuse(const char *path, shoal_error *err) {
  const char *end = strrchr(path, '.');
  if (!end || strcmp(end, ".onnx") != 0) return SHOAL_OK;
  return shoal_fail(err, SHOAL_UNSUPPORTED, "%s: Shoal writes ONNX and does not read it", path);
}

shoal_status shoal_onnx_file_write(const shoal_onnx_file *file, const char *path, shoal_error *err) {
  const shoal_text *nodes = &file->nodes.text, *ends = &file->ends.text;
  uint64_t graph_bytes = (uint64_t)nodes->length + ends->length;
  for (const shoal_onnx_tensor *tensor = file->first; tensor; tensor = tensor->next)
    graph_bytes += (uint64_t)tensor->head.text.length + tensor->bytes;
  shoal_protobuf head = {0};
  make_head(file, &head, graph_bytes);
  uint64_t bytes = head.text.length + graph_bytes;

  shoal_writer *writer = NULL;
  shoal_status status;
  if (file->failed || nodes->failed || ends->failed || file->meta.text.failed || head.text.failed)
    status = shoal_fail(err, SHOAL_NO_MEMORY, "%s: out of memory", path);
  else if (bytes > FILE_BYTES_MAX)
    status = shoal_fail(err, SHOAL_LIMIT, "%s: the model takes %llu bytes; an ONNX file holds at most %llu",
                        path, (unsigned long long)bytes, (unsigned long long)FILE_BYTES_MAX);
  else
    status = shoal_writer_create(&writer, path, err);
  if (status == SHOAL_OK) {
    shoal_writer_add(writer, head.text.bytes, head.text.length);
    shoal_writer_add(writer, nodes->bytes, nodes->length);
    for (const shoal_onnx_tensor *tensor = file->first; tensor; tensor = tensor->next) {
      shoal_writer_add(writer, tensor->head.text.bytes, tensor->head.text.length);
      shoal_writer_add(writer, tensor->data, tensor->bytes);
    }
    shoal_writer_add(writer, ends->bytes, ends->length);
    status = shoal_writer_commit(writer, err);
  }
  shoal_text_release(&head.text);
  return status;
}

/* ---- models ------------------------------------------------------------------------- */

const char *shoal_onnx_param_as(shoal_onnx_export *e, uint32_t index, size_t dims_count, const int64_t *dims,
                                const float *data) {
  const char *name = shoal_onnx_join(e->file, e->prefix, e->graph->params[index].name);
  return add_constant(e->file, name, SHOAL_ONNX_FLOAT, dims_count, dims, data);
}

const char *shoal_onnx_param(shoal_onnx_export *e, uint32_t index) {
  const shoal_param *param = &e->graph->params[index];
  int64_t dims[4];
  for (uint32_t i = 0; i < param->dims_count; i++) dims[i] = param->dims[i];
  return shoal_onnx_param_as(e, index, param->dims_count, dims, e->weights + param->offset);
}

const char *shoal_onnx_same(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  (void)e, (void)node;
  return x;
}

const char *shoal_onnx_transpose(shoal_onnx_export *e, const char *x, const int64_t axes[3]) {
  shoal_onnx_attribute_ints(e->file, "perm", 3, axes);
  return shoal_onnx_emit(e->file, "Transpose", x, NULL);
}

const char *shoal_onnx_graph(shoal_onnx_file *file, const char *prefix, const shoal_graph *graph,
                             const float *weights, const char *input) {
  shoal_onnx_export e = {.file = file, .graph = graph, .weights = weights, .prefix = prefix};
  e.outputs = shoal_arena_array(&file->memory, graph->nodes_count, sizeof *e.outputs);
  file->failed |= !e.outputs;
  if (!e.outputs) return "";
  for (uint32_t i = 0; i < graph->nodes_count; i++) {
    file->scope = shoal_onnx_join(file, prefix, graph->model->layers[graph->nodes[i].layer].name);
    const shoal_node *node = &graph->nodes[i];
    const char *x = node->inputs_count > 0 ? e.outputs[node->inputs[0]] : input;
    e.outputs[i] = node->op->onnx(&e, node, x);
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
