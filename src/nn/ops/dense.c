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
#include "nn/onnx.h"
#include "nn/ops/table.h"

enum { SPARSE_SHARE = 5, SPARSE_COLUMNS_MIN = 32 };

/* ---- the line ---- */

static bool infer(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  uint64_t inputs = in->kind == SHOAL_SEQUENCE ? in->features : shoal_shape_values(in);
  layer->shape =
      in->kind == SHOAL_SEQUENCE ? shoal_sequence_of(in->steps, layer->units) : shoal_vector_of(layer->units);
  return shoal_count_weights(r, shoal_product(inputs + layer->bias, layer->units, 1, 1));
}

static uint32_t lower(shoal_lowering *l, uint32_t input) {
  if (l->graph->nodes[input].shape.kind == SHOAL_IMAGE) input = shoal_lower_flatten(l, input);
  uint32_t in = l->graph->nodes[input].shape.features, out = l->layer->units;
  uint32_t node = shoal_lower_node(l, &shoal_op_dense, input, l->layer->shape);
  shoal_param *weight =
      shoal_lower_param(l, node, 0, "", "weight", SHOAL_PARAM_WEIGHT, 2, (uint32_t[]){in, out});
  shoal_lower_fill(l, weight, in, out, SHOAL_INIT_AUTO);
  if (l->layer->bias) shoal_lower_param(l, node, 1, "", "bias", SHOAL_PARAM_BIAS, 1, &out);
  return node;
}

/* ---- inputs that are mostly zeros ---- */

/* How many elements other than zero a tile may have; 0 where nobody looks for zeros. */
static uint32_t sparse_most(const shoal_node *node, uint32_t n) {
  if (node->inputs[0] != 0 || node->in.kind != SHOAL_VECTOR) return 0;
  if (node->shape.features < SPARSE_COLUMNS_MIN) return 0;
  uint64_t most = (uint64_t)n * node->in.features / SPARSE_SHARE;
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

typedef struct sparse_product {
  const shoal_gemm *gemm;
  const shoal_sparse *a;
} sparse_product;

static void sparse_band(const shoal_call *c, size_t first, size_t count) {
  const sparse_product *p = c->own;
  shoal_gemm g = *p->gemm;
  shoal_sparse a = *p->a;
  g.m = (uint32_t)count;
  g.a += first * g.a_row;
  g.c += first * g.c_row;
  a.starts += first;
  c->kernels->gemm_sparse(&g, &a);
}

static void multiply_sparse(const shoal_call *c, const shoal_gemm *gemm, const shoal_sparse *a) {
  const sparse_product product = {gemm, a};
  shoal_call_bands(c, &product, 2.0 * gemm->m * gemm->n * gemm->k / SPARSE_SHARE, gemm->m, 1, sparse_band);
}

/* ---- the node ---- */

/* A sparse input is kept in `saved`, and the mark says whether it is one. */
static size_t saved(const shoal_node *node, uint32_t n) { return sparse_floats(n, sparse_most(node, n)); }

static size_t scratch(const shoal_node *node, const shoal_kernels *k, uint32_t n, bool backward) {
  uint32_t rows = n * node->shape.steps, in = node->in.features, out = node->shape.features;
  if (!backward) return k->gemm_scratch(rows, out, in);
  return shoal_larger(shoal_larger(k->gemm_scratch(rows, in, out), k->gemm_scratch(in, out, rows)),
                      sparse_floats(in, sparse_most(node, n)));
}

static void forward(const shoal_call *c) {
  shoal_gemm product = shoal_gemm_ab(shoal_call_rows(c, c->out), c->out->features, c->in->features, c->x,
                                     shoal_call_weight(c, 0), c->y);
  product.bias = shoal_call_weight(c, 1);
  uint32_t most = c->saved != NULL ? sparse_most(c->node, c->n) : 0;
  shoal_sparse a = most > 0 ? sparse_at(c->saved, most) : (shoal_sparse){0};
  *c->mark = most > 0 && c->kernels->sparse_rows(c->n, c->in->features, c->x, most, &a);
  if (*c->mark)
    multiply_sparse(c, &product, &a);
  else
    shoal_call_gemm(c, product);
}

static void backward_weights(const shoal_call *c, uint32_t rows, uint32_t in, uint32_t out) {
  shoal_gemm product = shoal_gemm_atb(in, out, rows, c->x, c->dy, shoal_call_gradient(c, 0));
  product.accumulate = !c->exec->fresh;
  if (!*c->mark) {
    shoal_call_gemm(c, product);
    return;
  }
  uint32_t most = sparse_most(c->node, c->n);
  shoal_sparse a = sparse_at(c->saved, most), turned = sparse_at(c->scratch, most);
  c->kernels->sparse_turn(c->n, in, &a, &turned);
  multiply_sparse(c, &product, &turned);
}

static void backward(const shoal_call *c) {
  uint32_t rows = shoal_call_rows(c, c->out), in = c->in->features, out = c->out->features;
  if (c->dx[0] != NULL)
    shoal_call_gemm(c, shoal_gemm_abt(rows, in, out, c->dy, shoal_call_weight(c, 0), c->dx[0]));
  if (c->exec->input_only) return;
  backward_weights(c, rows, in, out);
  float *dbias = shoal_call_gradient(c, 1);
  if (dbias != NULL) shoal_call_column_sums(c, rows, out, c->dy, dbias);
}

static uint64_t flops(const shoal_node *node) {
  return 2 * (uint64_t)node->shape.steps * node->in.features * node->shape.features;
}

static const char *onnx(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  const char *y = shoal_onnx_emit(e->file, "MatMul", x, shoal_onnx_param(e, node->params[0]), NULL);
  if (node->params[1] == SHOAL_NO_PARAM) return y;
  return shoal_onnx_emit(e->file, "Add", y, shoal_onnx_param(e, node->params[1]), NULL);
}

const shoal_op shoal_op_dense = {
    .word = "dense",
    .options = SHOAL_TAKES(NO_BIAS) | SHOAL_TAKES(INIT),
    .traits = SHOAL_OP_READS_INPUT | SHOAL_OP_HAS_MATRIX,
    .arguments = (const shoal_field[]){SHOAL_COUNT_FIELD("the number of outputs", units), {0}},
    .infer = infer,
    .lower = lower,
    .saved = saved,
    .scratch = scratch,
    .overwrites = 1,
    .forward = forward,
    .backward = backward,
    .flops = flops,
    .onnx = onnx};
