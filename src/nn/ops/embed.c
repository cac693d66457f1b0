/* embed.c: tables of learned rows. embed gives a row for each word; lookup takes the input's last values for numbers of
 * rows and takes the others over. Parameter: table (rows x width).
 *
 * The numbers of rows of a lookup stay in `saved` for the way back. They have no gradient. */
#include "nn/lowering.h"
#include "nn/model_internal.h"
#include "nn/onnx.h"
#include "nn/ops/table.h"

/* ---- the lines ---- */

static const shoal_field arguments[] = {SHOAL_COUNT_FIELD("the number of words", vocabulary),
                                        SHOAL_COUNT_FIELD("the number of values of a word", units),
                                        {0}};
static const shoal_field lookup_arguments[] = {
    SHOAL_U32_FIELD(shoal_layer, NULL, "the number of rows", vocabulary, 0, 1, SHOAL_LOOKUP_ROWS_MAX),
    SHOAL_COUNT_FIELD("the number of values of a row", units),
    SHOAL_U32_FIELD(shoal_layer, "of", "how many of the input's last values are numbers of rows", columns, 0,
                    1, INT32_MAX),
    {0}};

static bool infer(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  if (in->kind != SHOAL_TOKENS) return shoal_wrong_input(r, in, "tokens", "only `input tokens N` gives them");
  layer->shape = shoal_sequence_of(in->steps, layer->units);
  return shoal_count_weights(r, shoal_product(layer->vocabulary, layer->units, 1, 1));
}

/* The numbers have no gradient, so nothing that learns may stand before them. */
static bool infer_lookup(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  shoal_words *w = &r->words;
  if (layer->inputs[0] != 0)
    return shoal_words_fail(w, shoal_input_place(r, 0),
                            "reads numbers of rows from the data itself, not from %s; put it directly below "
                            "the input on line %u",
                            shoal_input_text(r, 0).text, r->model->layers[0].line);
  if (in->kind != SHOAL_VECTOR)
    return shoal_wrong_input(r, in, "a vector", "a line like `input 22` gives one");
  if (layer->columns > in->features)
    return shoal_words_fail(w, r->size, "the input has %u values, so not %u of them can be numbers of rows",
                            in->features, layer->columns);
  uint64_t outputs = in->features - layer->columns + (uint64_t)layer->columns * layer->units;
  if (outputs > SHOAL_VALUES_MAX) return shoal_too_many_values(r, w->head, "its output");
  layer->shape = shoal_vector_of(outputs);
  return shoal_count_weights(r, shoal_product(layer->vocabulary, layer->units, 1, 1));
}

static uint32_t lower(shoal_lowering *l, uint32_t input) {
  const shoal_layer *layer = l->layer;
  uint32_t node = shoal_lower_node(l, layer->op, input, layer->shape);
  shoal_param *table = shoal_lower_param(l, node, 0, "", "table", SHOAL_PARAM_WEIGHT, 2,
                                         (uint32_t[]){layer->vocabulary, layer->units});
  table->by_rows = layer->op == &shoal_op_embed;
  for (const shoal_param *p = l->graph->params; p != table; p++)
    if (p->by_rows) table->first_row = p->first_row + p->dims[0];
  shoal_lower_fill(l, table, layer->units, layer->units, SHOAL_INIT_LECUN);
  l->graph->nodes[node].columns = layer->columns;
  return node;
}

/* ---- embed ---- */

static void forward(const shoal_call *c) {
  c->kernels->embed_forward(shoal_call_rows(c, c->out), c->out->features, shoal_call_weight(c, 0),
                            (const int32_t *)(const void *)c->x, c->y);
}

static void backward(const shoal_call *c) {
  c->kernels->embed_backward(shoal_call_rows(c, c->out), c->out->features,
                             (const int32_t *)(const void *)c->x, c->dy, shoal_call_gradient(c, 0));
}

static const char *onnx(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  return shoal_onnx_emit(e->file, "Gather", shoal_onnx_param(e, node->params[0]), x, NULL);
}

const shoal_op shoal_op_embed = {.word = "embed",
                                 .options = SHOAL_TAKES(INIT),
                                 .traits = SHOAL_OP_READS_INPUT | SHOAL_OP_TAKES_TOKENS | SHOAL_OP_HAS_MATRIX,
                                 .arguments = arguments,
                                 .infer = infer,
                                 .lower = lower,
                                 .forward = forward,
                                 .backward = backward,
                                 .onnx = onnx};

/* ---- lookup ---- */

static size_t saved(const shoal_node *node, uint32_t n) { return (size_t)n * node->columns; }

static void forward_lookup(const shoal_call *c) {
  const shoal_kernels *k = c->kernels;
  uint32_t columns = c->node->columns, kept = c->in->features - columns, in = c->in->features,
           out = c->out->features;
  const uint32_t *dims = c->exec->plan->graph->params[c->node->params[0]].dims;
  int32_t *rows = (int32_t *)(void *)c->saved;
  k->copy_rows(c->n, kept, c->x, in, c->y, out);
  k->row_numbers(c->n, columns, c->x + kept, in, dims[0], rows);
  for (uint32_t i = 0; i < c->n; i++)
    k->embed_forward(columns, dims[1], shoal_call_weight(c, 0), rows + (size_t)i * columns,
                     c->y + (size_t)i * out + kept);
}

/* Sample after sample, column after column: the order of the sums. */
static void backward_lookup(const shoal_call *c) {
  const shoal_kernels *k = c->kernels;
  uint32_t columns = c->node->columns, kept = c->in->features - columns, in = c->in->features,
           out = c->out->features;
  if (c->dx[0] != NULL) {
    k->zero((size_t)c->n * in, c->dx[0]);
    k->copy_rows(c->n, kept, c->dy, out, c->dx[0], in);
  }
  const uint32_t width = c->exec->plan->graph->params[c->node->params[0]].dims[1];
  const int32_t *rows = (const int32_t *)(const void *)c->saved;
  for (uint32_t i = 0; i < c->n; i++)
    k->embed_backward(columns, width, rows + (size_t)i * columns, c->dy + (size_t)i * out + kept,
                      shoal_call_gradient(c, 0));
}

/* The values at first .. first + count of every sample. */
static const char *slice(shoal_onnx_export *e, const char *x, int64_t first, int64_t count) {
  const char *start = shoal_onnx_ints(e->file, 1, &first),
             *end = shoal_onnx_ints(e->file, 1, (int64_t[]){first + count});
  return shoal_onnx_emit(e->file, "Slice", x, start, end, shoal_onnx_ints(e->file, 1, (int64_t[]){1}), NULL);
}

/* What is no whole number from 0 to below rows becomes 0, as in the kernel row_numbers. */
static const char *row_numbers(shoal_onnx_export *e, const char *x, uint32_t rows) {
  const char *zero = shoal_onnx_real(e->file, 0);
  const char *whole = shoal_onnx_emit(e->file, "Equal", x, shoal_onnx_emit(e->file, "Floor", x, NULL), NULL);
  const char *low = shoal_onnx_emit(e->file, "GreaterOrEqual", x, zero, NULL);
  const char *high = shoal_onnx_emit(e->file, "Less", x, shoal_onnx_real(e->file, (float)rows), NULL);
  const char *good =
      shoal_onnx_emit(e->file, "And", whole, shoal_onnx_emit(e->file, "And", low, high, NULL), NULL);
  x = shoal_onnx_emit(e->file, "Where", good, x, zero, NULL);
  return shoal_onnx_cast(e->file, x, SHOAL_ONNX_INT64);
}

static const char *onnx_lookup(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  const uint32_t *dims = e->graph->params[node->params[0]].dims;
  int64_t in = node->in.features, columns = node->columns, kept = in - columns;
  const char *rows = row_numbers(e, slice(e, x, kept, columns), dims[0]);
  const char *y = shoal_onnx_emit(e->file, "Gather", shoal_onnx_param(e, node->params[0]), rows, NULL);
  y = shoal_onnx_emit(e->file, "Reshape", y, shoal_onnx_ints(e->file, 2, (int64_t[]){0, columns * dims[1]}),
                      NULL);
  if (kept == 0) return y;
  x = slice(e, x, 0, kept);
  return shoal_onnx_concat(e->file, 2, (const char *[]){x, y}, 1);
}

const shoal_op shoal_op_lookup = {.word = "lookup",
                                  .options = SHOAL_TAKES(INIT),
                                  .traits = SHOAL_OP_HAS_MATRIX,
                                  .arguments = lookup_arguments,
                                  .infer = infer_lookup,
                                  .lower = lower,
                                  .saved = saved,
                                  .forward = forward_lookup,
                                  .backward = backward_lookup,
                                  .onnx = onnx_lookup};
