/* pool.c: pool and global-pool, whose window is the whole image. No parameters. */
#include "nn/lowering.h"
#include "nn/ops/window.h"

const char *const shoal_pool_words[] = {
    [SHOAL_POOL_MAX] = "max", [SHOAL_POOL_MIN] = "min", [SHOAL_POOL_AVERAGE] = "average", NULL};

/* ---- the lines ---- */

static const shoal_field arguments[] = {
    SHOAL_KIND_FIELD(shoal_layer, "kind of pooling", pool, shoal_pool_words), {0}};

/* Each channel is one window of all that it has. */
static bool infer_global(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  layer->window = (shoal_window){.k_h = in->h, .k_w = in->w, .stride_h = 1, .stride_w = 1};
  if (!shoal_window_infer(r, layer, in)) return false;
  layer->shape = shoal_vector_of(in->c);
  return true;
}

static uint32_t add_node(shoal_lowering *l, uint32_t input) {
  const shoal_window *w = &l->layer->window;
  shoal_shape shape = {SHOAL_IMAGE, 1, 1, w->out_c, w->out_h, w->out_w};
  uint32_t node = shoal_lower_node(l, &shoal_op_pool, input, shape);
  l->graph->nodes[node].pool = l->layer->pool;
  l->graph->nodes[node].window = *w;
  return node;
}

/* An activation and then a pool of extremes become the pool and then the activation, which has
 * fewer values to work on: the two nodes change places. */
static uint32_t lower(shoal_lowering *l, uint32_t input) {
  shoal_node *nodes = l->graph->nodes, activation = nodes[input];
  bool swap = activation.op == &shoal_op_activation && l->layer->pool != SHOAL_POOL_AVERAGE &&
              shoal_activation_rows[activation.activation].never_falls && shoal_lower_only_reader(l, input);
  if (!swap) return add_node(l, input);
  uint32_t node = add_node(l, activation.inputs[0]);
  activation.inputs[0] = input;
  activation.in = activation.shape = nodes[node].shape;
  nodes[input] = nodes[node];
  nodes[node] = activation;
  return node;
}

static uint32_t lower_global(shoal_lowering *l, uint32_t input) {
  return shoal_lower_flatten(l, add_node(l, input));
}

/* ---- the node ---- */

static unsigned node_traits(const shoal_node *node) {
  return node->pool == SHOAL_POOL_AVERAGE ? 0 : SHOAL_OP_READS_INPUT | SHOAL_OP_READS_OUTPUT;
}

/* Some of the channels, forward or backward. */
static void band(const shoal_call *c, size_t first, size_t count) {
  shoal_window window = shoal_window_of_call(c);
  size_t in = first * window.in_h * window.in_w * window.lanes;
  size_t out = first * window.out_h * window.out_w * window.lanes;
  window.in_c = window.out_c = (uint32_t)count;
  if (c->dy == NULL)
    c->kernels->pool_forward(c->node->pool, &window, c->x + in, c->y + out);
  else
    c->kernels->pool_backward(c->node->pool, &window, c->x + in, c->y + out, c->dy + out, c->dx[0] + in);
}

static void run(const shoal_call *c) {
  double passes = c->dy == NULL ? 1 : 2;
  shoal_call_bands(c, NULL, passes * (double)shoal_call_floats(c, c->in), c->in->c, 1, band);
}

static const char *onnx(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  if (node->pool == SHOAL_POOL_AVERAGE) {
    shoal_window_onnx(e, &node->window);
    shoal_onnx_attribute_int(e->file, "count_include_pad", 0);
    return shoal_onnx_emit(e->file, "AveragePool", x, NULL);
  }
  if (node->pool == SHOAL_POOL_MIN) x = shoal_onnx_emit(e->file, "Neg", x, NULL);
  shoal_window_onnx(e, &node->window);
  x = shoal_onnx_emit(e->file, "MaxPool", x, NULL);
  return node->pool == SHOAL_POOL_MIN ? shoal_onnx_emit(e->file, "Neg", x, NULL) : x;
}

const shoal_op shoal_op_pool = {.word = "pool",
                                .options = SHOAL_TAKES(STRIDE) | SHOAL_TAKES(PAD),
                                .arguments = arguments,
                                .read = shoal_window_read,
                                .write = shoal_window_write,
                                .infer = shoal_window_infer,
                                .lower = lower,
                                .node_traits = node_traits,
                                .forward = run,
                                .backward = run,
                                .onnx = onnx};

const shoal_op shoal_op_global_pool = {
    .word = "global-pool", .arguments = arguments, .infer = infer_global, .lower = lower_global};
