/* dense.c: a matrix of weights, along the last axis of a vector or a sequence; an image is flattened first.
 *
 * Parameters: weight (in x out), bias (out) or none.
 *
 * A node that reads vectors of the data, as categories and pieces of numbers make them, looks for their zeros: where
 * at most one element in SPARSE_SHARE is something else, only that is multiplied. The bits are the same while weights
 * and gradients are finite, so the data may decide, tile by tile. With fewer columns, looking for zeros costs more than
 * multiplying them. */
#include "nn/lowering.h"
#include "nn/model_internal.h"
#include "nn/onnx_op.h"
#include "nn/ops/table.h"

enum { SPARSE_SHARE = 5, SPARSE_COLUMNS_MIN = 32 };

/* ---- the line ---- */

static bool read(shoal_reading *r, shoal_layer *layer) {
  layer->bias = true;
  return shoal_words_u32(&r->words, "the number of outputs", 1, INT32_MAX, &layer->units);
}

static void write(const shoal_model *model, const shoal_layer *layer, shoal_text *out) {
  (void)model;
  shoal_text_addf(out, " %u", layer->units);
}

static bool infer(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  uint64_t inputs = in->kind == SHOAL_SEQUENCE ? in->features : shoal_shape_values(in);
  layer->shape = (shoal_shape){SHOAL_VECTOR, 1, layer->units, 1, 1, 1};
  if (in->kind == SHOAL_SEQUENCE) {
    layer->shape.kind = SHOAL_SEQUENCE;
    layer->shape.steps = in->steps;
  }
  return shoal_count_weights(r, shoal_product(inputs, layer->units, 1, 1)) &&
         shoal_count_weights(r, layer->bias ? layer->units : 0);
}

static uint32_t lower(shoal_lowering *l, uint32_t input) {
  if (l->graph->nodes[input].shape.kind == SHOAL_IMAGE) input = shoal_lower_flatten(l, input);
  uint32_t in = l->graph->nodes[input].shape.features, out = l->layer->units;
  uint32_t node = shoal_lower_node(l, &shoal_op_dense, input, l->layer->shape);
  shoal_param *weight =
      shoal_lower_param(l, node, 0, "", "weight", SHOAL_PARAM_WEIGHT, 2, (uint32_t[]){in, out});
  shoal_lower_fill(l, weight, in, out, shoal_lower_init(l));
  if (l->layer->bias) shoal_lower_param(l, node, 1, "", "bias", SHOAL_PARAM_BIAS, 1, &out);
  return node;
}

/* ---- inputs that are mostly zeros ---- */

/* How many elements other than zero a tile may have; 0 where nobody looks for zeros. */
static uint32_t sparse_most(const shoal_graph *graph, const shoal_node *node, uint32_t n) {
  const shoal_shape *in = &graph->nodes[0].shape;
  if (node->inputs[0] != 0 || in->kind != SHOAL_VECTOR) return 0;
  if (node->shape.features < SPARSE_COLUMNS_MIN) return 0;
  uint64_t most = (uint64_t)n * in->features / SPARSE_SHARE;
  return most <= INT32_MAX ? (uint32_t)most : 0;
}

static size_t sparse_floats(uint32_t rows, uint32_t most) {
  return most > 0 ? (size_t)rows + 1 + 2 * ((size_t)most + SHOAL_LANES) : 0;
}

/* A sparse matrix in memory of sparse_floats. */
static shoal_sparse sparse_at(float *memory, uint32_t most) {
  uint32_t *words = (uint32_t *)(void *)memory;
  size_t room = (size_t)most + SHOAL_LANES;
  return (shoal_sparse){.values = memory, .columns = words + room, .starts = words + 2 * room};
}

static const uint32_t NOT_SPARSE = UINT32_MAX; /* in the place of the first start */

/* Looks at the tile's input and keeps in `saved` what was found. */
static void find_sparse(const shoal_call *c) {
  uint32_t most = sparse_most(c->exec->plan->graph, c->node, c->n);
  if (c->saved == NULL || most == 0) return;
  shoal_sparse a = sparse_at(c->saved, most);
  if (!c->kernels->sparse_rows(c->n, c->in->features, c->x, most, &a)) a.starts[0] = NOT_SPARSE;
}

/* What find_sparse found; false when the tile is not sparse. */
static bool take_sparse(const shoal_call *c, shoal_sparse *out) {
  uint32_t most = sparse_most(c->exec->plan->graph, c->node, c->n);
  if (c->saved == NULL || most == 0) return false;
  *out = sparse_at(c->saved, most);
  return out->starts[0] != NOT_SPARSE;
}

/* ---- the node ---- */

static size_t saved(const shoal_graph *graph, const shoal_node *node, uint32_t n) {
  return sparse_floats(n, sparse_most(graph, node, n));
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static size_t scratch(const shoal_graph *graph, const shoal_kernels *k, const shoal_node *node, uint32_t n,
                      bool backward) {
  uint32_t rows = n * node->shape.steps, in = graph->nodes[node->inputs[0]].shape.features,
           out = node->shape.features;
  if (!backward) return k->gemm_scratch(rows, out, in);
  return larger(larger(k->gemm_scratch(rows, in, out), k->gemm_scratch(in, out, rows)),
                sparse_floats(in, sparse_most(graph, node, n)));
}

static void forward(const shoal_call *c) {
  const shoal_gemm product = {.m = shoal_call_rows(c, c->out),
                              .n = c->out->features,
                              .k = c->in->features,
                              .a = c->x,
                              .a_row = c->in->features,
                              .a_col = 1,
                              .b = shoal_call_weight(c, 0),
                              .b_row = c->out->features,
                              .b_col = 1,
                              .c = c->y,
                              .c_row = c->out->features,
                              .bias = shoal_call_weight(c, 1),
                              .scratch = c->scratch};
  shoal_sparse a;
  find_sparse(c);
  if (take_sparse(c, &a))
    shoal_team_gemm_sparse(c->exec->team, c->kernels, &product, &a);
  else
    shoal_call_gemm(c, &product);
}

static void backward_weights(const shoal_call *c, const shoal_gemm *product) {
  shoal_sparse a;
  if (!take_sparse(c, &a)) {
    shoal_call_gemm(c, product);
    return;
  }
  shoal_sparse turned = sparse_at(c->scratch, a.starts[c->n]);
  c->kernels->sparse_turn(c->n, c->in->features, &a, &turned);
  shoal_team_gemm_sparse(c->exec->team, c->kernels, product, &turned);
}

static void backward(const shoal_call *c) {
  uint32_t rows = shoal_call_rows(c, c->out), in = c->in->features, out = c->out->features;
  if (c->dx[0] != NULL)
    shoal_call_gemm(c, &(shoal_gemm){.m = rows,
                                     .n = in,
                                     .k = out,
                                     .a = c->dy,
                                     .a_row = out,
                                     .a_col = 1,
                                     .b = shoal_call_weight(c, 0),
                                     .b_row = 1,
                                     .b_col = out,
                                     .c = c->dx[0],
                                     .c_row = in,
                                     .scratch = c->scratch});
  if (c->exec->input_only) return;
  backward_weights(c, &(shoal_gemm){.m = in,
                                    .n = out,
                                    .k = rows,
                                    .a = c->x,
                                    .a_row = 1,
                                    .a_col = in,
                                    .b = c->dy,
                                    .b_row = out,
                                    .b_col = 1,
                                    .c = shoal_call_gradient(c, 0),
                                    .c_row = out,
                                    .accumulate = !c->exec->fresh,
                                    .scratch = c->scratch});
  float *dbias = shoal_call_gradient(c, 1);
  if (dbias != NULL) c->kernels->column_sums(rows, out, c->dy, dbias);
}

static uint64_t flops(const shoal_graph *graph, const shoal_node *node) {
  return 2 * (uint64_t)node->shape.steps * graph->nodes[node->inputs[0]].shape.features *
         node->shape.features;
}

static const char *onnx(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  const char *y = shoal_onnx_emit(e->file, "MatMul", x, shoal_onnx_param(e, node->params[0]), NULL);
  if (node->params[1] == SHOAL_NO_PARAM) return y;
  return shoal_onnx_emit(e->file, "Add", y, shoal_onnx_param(e, node->params[1]), NULL);
}

const shoal_op shoal_op_dense = {.word = "dense",
                                 .options = SHOAL_TAKES(NO_BIAS) | SHOAL_TAKES(INIT),
                                 .traits = SHOAL_OP_READS_INPUT | SHOAL_OP_HAS_MATRIX,
                                 .read = read,
                                 .write = write,
                                 .infer = infer,
                                 .lower = lower,
                                 .saved = saved,
                                 .scratch = scratch,
                                 .overwrites = 1,
                                 .forward = forward,
                                 .backward = backward,
                                 .flops = flops,
                                 .onnx = onnx};
