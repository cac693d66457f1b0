/* onnx.h: a trained model as an ONNX file (opset 17), for other runtimes, and such a file in the making:
 * operators, constants, what goes in and comes out.
 *
 * Operators are given in the order in which they are computed, each with the attributes that were given
 * just before it. Values are known by their names; new ones are called after the scope, "dense1:7". When
 * memory runs out names are "" and the write at the end says so, so nothing need be checked on the way.
 *
 *     const char *x = shoal_onnx_input(file, "x", SHOAL_ONNX_FLOAT, 1, (int64_t[]){3});
 *     const char *y = shoal_onnx_emit(file, "Add", x, shoal_onnx_real(file, 1), NULL);
 *
 * Ownership: init, then release; names live as long. Threads: none. */
#ifndef SHOAL_NN_ONNX_H
#define SHOAL_NN_ONNX_H

#include "base/arena.h"
#include "nn/graph.h"
#include "nn/protobuf.h"

/* As onnx.proto numbers them. */
typedef enum shoal_onnx_type {
  SHOAL_ONNX_FLOAT = 1,
  SHOAL_ONNX_INT64 = 7,
  SHOAL_ONNX_STRING = 8,
  SHOAL_ONNX_DOUBLE = 11,
} shoal_onnx_type;

typedef struct shoal_onnx_tensor shoal_onnx_tensor;

typedef struct shoal_onnx_file {
  const char *scope; /* what new values are called after; set by who adds them */
  shoal_arena memory;
  bool failed;   /* no memory */
  bool tables;   /* operators of the domain "ai.onnx.ml" are used */
  int64_t opset; /* 17; raised by who uses an operator of a later one */
  uint32_t values;
  shoal_protobuf nodes;      /* fields of the graph message: its name and nodes, */
  shoal_protobuf ends;       /* its inputs and outputs */
  shoal_protobuf attributes; /* of the node being made */
  shoal_protobuf meta;       /* fields of the model message */
  shoal_onnx_tensor *first, **last;
} shoal_onnx_file;

void shoal_onnx_file_init(shoal_onnx_file *file);
void shoal_onnx_file_release(shoal_onnx_file *file);
/* Atomically. */
shoal_status shoal_onnx_file_write(const shoal_onnx_file *file, const char *path, shoal_error *err);

/* Fails where the path is one of ONNX: such files are written and not read. */
shoal_status shoal_onnx_refuse(const char *path, shoal_error *err);

/* A copy of a text that lives as long as the file; "a" and "b" become "ab". */
const char *shoal_onnx_join(shoal_onnx_file *file, const char *a, const char *b);

/* Tensors of batch x dims. The output is a value that is made, under its own name or another. */
const char *shoal_onnx_input(shoal_onnx_file *file, const char *name, shoal_onnx_type type, size_t dims_count,
                             const int64_t *dims);
void shoal_onnx_output(shoal_onnx_file *file, const char *name, const char *value, shoal_onnx_type type,
                       size_t dims_count, const int64_t *dims);
void shoal_onnx_meta(shoal_onnx_file *file, const char *key, const char *value);

void shoal_onnx_attribute_int(shoal_onnx_file *file, const char *name, int64_t value);
void shoal_onnx_attribute_ints(shoal_onnx_file *file, const char *name, size_t count, const int64_t *values);
void shoal_onnx_attribute_float(shoal_onnx_file *file, const char *name, float value);
void shoal_onnx_attribute_text(shoal_onnx_file *file, const char *name, const char *value);
void shoal_onnx_attribute_texts(shoal_onnx_file *file, const char *name, size_t count,
                                const char *const *values);

/* One operator. Its output has the name that is given. */
void shoal_onnx_node(shoal_onnx_file *file, const char *op, const char *const *inputs, size_t inputs_count,
                     const char *output);
/* The same with a new name for its output, which is returned. At most five inputs, and NULL at their end. */
const char *shoal_onnx_emit(shoal_onnx_file *file, const char *op, ...) __attribute__((sentinel));
/* All of them along the second axis; one is returned as it is. */
const char *shoal_onnx_concat(shoal_onnx_file *file, size_t count, const char *const *values, int64_t axis);
const char *shoal_onnx_cast(shoal_onnx_file *file, const char *value, shoal_onnx_type to);
/* From category's text to number, and back; what is not among the keys gets `otherwise`. */
const char *shoal_onnx_numbers_of_texts(shoal_onnx_file *file, const char *value, size_t count,
                                        const char *const *keys, const int64_t *numbers, int64_t otherwise);
const char *shoal_onnx_texts_of_numbers(shoal_onnx_file *file, const char *value, size_t count,
                                        const char *const *texts);

/* Constants, copied: a list, or a single number where count is 0. */
const char *shoal_onnx_ints(shoal_onnx_file *file, size_t count, const int64_t *values);
const char *shoal_onnx_floats(shoal_onnx_file *file, size_t count, const float *values);
const char *shoal_onnx_doubles(shoal_onnx_file *file, size_t count, const double *values);
const char *shoal_onnx_real(shoal_onnx_file *file, float value);

/* ---- models ---- */

/* Input "input" is batch x the model's input shape (tokens: batch x steps, int64); output "output" is what
 * `shoal predict` gives, output activation included. Recurrent state starts at zero. Written atomically. */
shoal_status shoal_onnx_save(const char *path, const shoal_graph *graph, const float *weights,
                             shoal_error *err);

/* The operators of a model inside a larger file: from the value `input` to the one that is returned. The
 * prefix keeps its names apart from others. Prefix and weights are borrowed until the file is written. */
const char *shoal_onnx_graph(shoal_onnx_file *file, const char *prefix, const shoal_graph *graph,
                             const float *weights, const char *input);

/* What the operations of nn/ops/ write themselves into the file with. Values there are batch x features,
 * batch x c x h x w, or batch x steps x features. */
typedef struct shoal_onnx_export {
  shoal_onnx_file *file;
  const shoal_graph *graph;
  const float *weights;
  const char *prefix;
  const char **outputs; /* value of every node of the graph */
} shoal_onnx_export;

/* A parameter as it is, or under its name with other dimensions and values, which are borrowed until the file is
 * written. */
const char *shoal_onnx_param(shoal_onnx_export *e, uint32_t index);
const char *shoal_onnx_param_as(shoal_onnx_export *e, uint32_t index, size_t dims_count, const int64_t *dims,
                                const float *data);
/* For the row of an operation: x as it is. */
const char *shoal_onnx_same(shoal_onnx_export *e, const shoal_node *node, const char *x);
const char *shoal_onnx_transpose(shoal_onnx_export *e, const char *x, const int64_t axes[3]);
/* nn/ops/activation.c */
const char *shoal_onnx_activation(shoal_onnx_export *e, shoal_activation activation, const char *x);

#endif
