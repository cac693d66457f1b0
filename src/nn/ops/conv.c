/* conv.c: convolution of images. Parameters: weight (out_c x in_c x k_h x k_w), bias (out_c) or none. */
#include "nn/lowering.h"
#include "nn/ops/window.h"

static bool infer(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  return shoal_window_infer(r, layer, in) &&
         shoal_count_weights(r, shoal_product(layer->units, in->c, layer->window.k_h, layer->window.k_w)) &&
         shoal_count_weights(r, layer->bias ? layer->units : 0);
}

static uint32_t lower(shoal_lowering *l, uint32_t input) {
  const shoal_layer *layer = l->layer;
  shoal_shape in = l->graph->nodes[input].shape;
  uint32_t node = shoal_lower_node(l, &shoal_op_conv, input, layer->shape);
  l->graph->nodes[node].window = layer->window;
  uint32_t dims[4] = {layer->units, in.c, layer->window.k_h, layer->window.k_w};
  shoal_param *weight = shoal_lower_param(l, node, 0, "", "weight", SHOAL_PARAM_WEIGHT, 4, dims);
  double taps = (double)layer->window.k_h * layer->window.k_w;
  shoal_lower_fill(l, weight, in.c * taps, layer->units * taps, SHOAL_INIT_AUTO);
  if (layer->bias) shoal_lower_param(l, node, 1, "", "bias", SHOAL_PARAM_BIAS, 1, &layer->units);
  return node;
}

static size_t scratch(const shoal_node *node, const shoal_kernels *k, uint32_t n, bool backward) {
  (void)backward;
  shoal_window window = node->window;
  window.lanes = shoal_lanes_for(n);
  return shoal_winograd_suits(&window) ? k->winograd_scratch(&window) : k->conv_scratch(&window);
}

/* Floats of a channel of the input, of the output, and of the weights of an output channel. */
static size_t in_plane(const shoal_window *w) { return (size_t)w->in_h * w->in_w * w->lanes; }
static size_t out_plane(const shoal_window *w) { return (size_t)w->out_h * w->out_w * w->lanes; }
static size_t taps(const shoal_window *w) { return (size_t)w->in_c * w->k_h * w->k_w; }

static double work_of(const shoal_window *w) {
  return 2.0 * (double)out_plane(w) * w->out_c * (double)taps(w);
}

static void forward_band(const shoal_call *c, size_t first, size_t count) {
  shoal_window window = shoal_window_of_call(c);
  const float *bias = shoal_call_weight(c, 1);
  window.out_c = (uint32_t)count;
  c->kernels->conv_forward(&window, c->x, shoal_call_weight(c, 0) + first * taps(&window),
                           bias != NULL ? bias + first : NULL, c->y + first * out_plane(&window), c->scratch);
}

/* ---- Winograd's way ---- */

enum { PARTS = 64 }; /* of the channels, for threads to share */

/* Where part `part` of so many channels begins. */
static uint32_t part_start(uint32_t channels, size_t part) { return (uint32_t)(channels * part / PARTS); }

static shoal_winograd winograd_of(const shoal_call *c, size_t first, size_t count) {
  shoal_winograd job = {.window = shoal_window_of_call(c), .x = c->x, .w = shoal_call_weight(c, 0)};
  job.first_in = part_start(job.window.in_c, first);
  job.ins = part_start(job.window.in_c, first + count) - job.first_in;
  job.first_out = part_start(job.window.out_c, first);
  job.outs = part_start(job.window.out_c, first + count) - job.first_out;
  return job;
}

static void winograd_forward_band(const shoal_call *c, size_t first, size_t count) {
  shoal_winograd job = winograd_of(c, first, count);
  job.bias = shoal_call_weight(c, 1);
  job.y = c->y;
  if (job.outs > 0) c->kernels->winograd_forward(&job, c->scratch);
}

static void winograd_backward_band(const shoal_call *c, size_t first, size_t count) {
  shoal_winograd job = winograd_of(c, first, count);
  job.dy = c->dy;
  job.dx = c->dx[0];
  job.dw = shoal_call_gradient(c, 0);
  float *dbias = shoal_call_gradient(c, 1);
  if (job.outs > 0 || (job.dx != NULL && job.ins > 0)) c->kernels->winograd_backward(&job, c->scratch);
  job.window.out_c = job.outs;
  if (dbias != NULL)
    c->kernels->conv_backward_bias(&job.window, c->dy + job.first_out * out_plane(&job.window),
                                   dbias + job.first_out);
}

/* ---- either way ---- */

static void forward(const shoal_call *c) {
  shoal_window window = shoal_window_of_call(c);
  if (shoal_winograd_suits(&window))
    shoal_call_bands(c, work_of(&window), PARTS, 1, winograd_forward_band);
  else
    shoal_call_bands(c, work_of(&window), window.out_c, 1, forward_band);
}

static void input_band(const shoal_call *c, size_t first, size_t count) {
  shoal_window window = shoal_window_of_call(c);
  uint32_t weight_c = window.in_c;
  window.in_c = (uint32_t)count;
  c->kernels->conv_backward_input(&window, c->dy, shoal_call_weight(c, 0) + first * window.k_h * window.k_w,
                                  weight_c, c->dx[0] + first * in_plane(&window), c->scratch);
}

static void weights_band(const shoal_call *c, size_t first, size_t count) {
  shoal_window window = shoal_window_of_call(c);
  const float *dy = c->dy + first * out_plane(&window);
  float *dbias = shoal_call_gradient(c, 1);
  window.out_c = (uint32_t)count;
  c->kernels->conv_backward_weights(&window, c->x, dy, shoal_call_gradient(c, 0) + first * taps(&window));
  if (dbias != NULL) c->kernels->conv_backward_bias(&window, dy, dbias + first);
}

static void backward(const shoal_call *c) {
  shoal_window window = shoal_window_of_call(c);
  if (shoal_winograd_suits(&window)) {
    shoal_call_bands(c, work_of(&window), PARTS, 1, winograd_backward_band);
    return;
  }
  if (c->dx[0] != NULL) shoal_call_bands(c, work_of(&window), window.in_c, 1, input_band);
  shoal_call_bands(c, work_of(&window), window.out_c, 1, weights_band);
}

static uint64_t flops(const shoal_node *node) {
  return 2 * shoal_shape_values(&node->shape) * taps(&node->window);
}

static const char *onnx(shoal_onnx_export *e, const shoal_node *node, const char *x) {
  const char *weight = shoal_onnx_param(e, node->params[0]);
  const char *bias = node->params[1] == SHOAL_NO_PARAM ? NULL : shoal_onnx_param(e, node->params[1]);
  shoal_window_onnx(e, &node->window);
  return shoal_onnx_emit(e->file, "Conv", x, weight, bias, NULL);
}

const shoal_op shoal_op_conv = {
    .word = "conv",
    .options = SHOAL_TAKES(STRIDE) | SHOAL_TAKES(PAD) | SHOAL_TAKES(NO_BIAS) | SHOAL_TAKES(INIT),
    .traits = SHOAL_OP_READS_INPUT | SHOAL_OP_HAS_MATRIX | SHOAL_OP_PADS_SAME,
    .arguments = (const shoal_field[]){SHOAL_COUNT_FIELD("the number of channels", units), {0}},
    .read = shoal_window_read,
    .write = shoal_window_write,
    .infer = infer,
    .lower = lower,
    .scratch = scratch,
    .forward = forward,
    .backward = backward,
    .flops = flops,
    .onnx = onnx};
