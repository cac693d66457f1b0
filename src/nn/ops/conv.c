/* conv.c: convolution of images. Parameters: weight (out_c x in_c x k_h x k_w), bias (out_c) or none. */
#include "nn/lowering.h"
#include "nn/ops/window.h"

static bool read(shoal_reading *r, shoal_layer *layer) {
  layer->bias = true;
  layer->stride_h = layer->stride_w = 1;
  return shoal_words_u32(&r->words, "the number of channels", 1, INT32_MAX, &layer->units) &&
         shoal_window_read(r, layer);
}

static void write(const shoal_model *model, const shoal_layer *layer, shoal_text *out) {
  (void)model;
  shoal_text_addf(out, " %u", layer->units);
  shoal_window_write(layer, 1, 1, out);
}

static bool infer(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  return shoal_window_infer(r, layer, in, layer->units) &&
         shoal_count_weights(r, shoal_product(layer->units, in->c, layer->k_h, layer->k_w)) &&
         shoal_count_weights(r, layer->bias ? layer->units : 0);
}

static uint32_t lower(shoal_lowering *l, uint32_t input) {
  const shoal_layer *layer = l->layer;
  shoal_shape in = l->graph->nodes[input].shape;
  uint32_t node = shoal_lower_node(l, &shoal_op_conv, input, layer->shape);
  l->graph->nodes[node].window = shoal_window_of_layer(layer, &in);
  uint32_t dims[4] = {layer->units, in.c, layer->k_h, layer->k_w};
  shoal_param *weight = shoal_lower_param(l, node, 0, "", "weight", SHOAL_PARAM_WEIGHT, 4, dims);
  double taps = (double)layer->k_h * layer->k_w;
  shoal_lower_fill(l, weight, in.c * taps, layer->units * taps, shoal_lower_init(l));
  if (layer->bias) shoal_lower_param(l, node, 1, "", "bias", SHOAL_PARAM_BIAS, 1, &layer->units);
  return node;
}

static size_t scratch(const shoal_graph *graph, const shoal_kernels *k, const shoal_node *node, uint32_t n,
                      bool backward) {
  (void)graph, (void)backward;
  shoal_window window = node->window;
  window.lanes = shoal_lanes_for(n);
  return shoal_winograd_suits(&window) ? k->winograd_scratch(&window) : k->conv_scratch(&window);
}

static void forward(const shoal_call *c) {
  shoal_window window = shoal_window_of_call(c);
  (shoal_winograd_suits(&window) ? c->kernels->winograd_forward : c->kernels->conv_forward)(
      &window, c->x, shoal_call_weight(c, 0), shoal_call_weight(c, 1), c->y, c->scratch);
}

static void backward(const shoal_call *c) {
  const shoal_kernels *k = c->kernels;
  shoal_window window = shoal_window_of_call(c);
  const float *weight = shoal_call_weight(c, 0);
  float *dweight = shoal_call_gradient(c, 0), *dbias = shoal_call_gradient(c, 1);
  if (shoal_winograd_suits(&window)) {
    k->winograd_backward(&window, c->x, weight, c->dy, c->dx[0], dweight, c->scratch);
  } else {
    if (c->dx[0] != NULL) k->conv_backward_input(&window, c->dy, weight, c->dx[0], c->scratch);
    k->conv_backward_weights(&window, c->x, c->dy, dweight);
  }
  if (dbias != NULL) k->conv_backward_bias(&window, c->dy, dbias);
}

static uint64_t flops(const shoal_graph *graph, const shoal_node *node) {
  (void)graph;
  return 2 * shoal_shape_values(&node->shape) * node->window.in_c * node->window.k_h * node->window.k_w;
}

static const char *onnx(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  const char *weight = shoal_onnx_param(e, node->params[0]);
  const char *bias = node->params[1] == SHOAL_NO_PARAM ? NULL : shoal_onnx_param(e, node->params[1]);
  shoal_window_onnx(e, &node->window);
  return shoal_onnx_emit(e->file, "Conv", x, weight, bias, NULL);
}

const shoal_op shoal_op_conv = {.word = "conv",
                                .options = SHOAL_TAKES(STRIDE) | SHOAL_TAKES(PAD) | SHOAL_TAKES(NO_BIAS) |
                                           SHOAL_TAKES(INIT),
                                .traits = SHOAL_OP_READS_INPUT | SHOAL_OP_HAS_MATRIX | SHOAL_OP_PADS_SAME,
                                .read = read,
                                .write = write,
                                .infer = infer,
                                .lower = lower,
                                .scratch = scratch,
                                .forward = forward,
                                .backward = backward,
                                .flops = flops,
                                .onnx = onnx};
