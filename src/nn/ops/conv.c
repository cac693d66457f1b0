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

/* With Winograd's way the scratch of the caller is followed by the points, which all threads share. */
static size_t whole_lines(size_t floats) { return (floats + SHOAL_LANES - 1) / SHOAL_LANES * SHOAL_LANES; }

static size_t scratch(const shoal_graph *graph, const shoal_kernels *k, const shoal_node *node, uint32_t n,
                      bool backward) {
  (void)graph, (void)backward;
  shoal_window window = node->window;
  window.lanes = shoal_lanes_for(n);
  if (!shoal_winograd_suits(&window)) return k->conv_scratch(&window);
  return whole_lines(k->winograd_scratch(&window)) + k->winograd_points(&window);
}

/* Floats of a channel of the input, of the output, and of the weights of an output channel. */
static size_t in_plane(const shoal_window *w) { return (size_t)w->in_h * w->in_w * w->lanes; }
static size_t out_plane(const shoal_window *w) { return (size_t)w->out_h * w->out_w * w->lanes; }
static size_t taps(const shoal_window *w) { return (size_t)w->in_c * w->k_h * w->k_w; }

static double work_of(const shoal_window *w) {
  return 2.0 * (double)out_plane(w) * w->out_c * (double)taps(w);
}

static void forward_band(const void *call, size_t first, size_t count, float *scratch_of_band) {
  const shoal_call *c = call;
  shoal_window window = shoal_window_of_call(c);
  const float *bias = shoal_call_weight(c, 1);
  window.out_c = (uint32_t)count;
  c->kernels->conv_forward(&window, c->x, shoal_call_weight(c, 0) + first * taps(&window),
                           bias != NULL ? bias + first : NULL, c->y + first * out_plane(&window),
                           scratch_of_band);
}

/* ---- Winograd's way ---- */

/* Steps that do not wait for each other: a thread does its part of each of them. */
typedef struct winograd_steps {
  const shoal_kernels *kernels;
  const shoal_winograd *job;
  shoal_winograd_step steps[2];
  uint32_t count, group;
} winograd_steps;

enum { PARTS = 64 }; /* of each step, for threads to share */

static void run_winograd(const void *context, size_t first, size_t count, float *scratch_of_band) {
  const winograd_steps *w = context;
  for (uint32_t i = 0; i < w->count; i++) {
    uint64_t elements = shoal_winograd_elements(&w->job->window, w->steps[i]);
    uint32_t from = (uint32_t)(elements * first / PARTS), to = (uint32_t)(elements * (first + count) / PARTS);
    if (from < to) w->kernels->winograd(w->job, w->steps[i], w->group, from, to - from, scratch_of_band);
  }
}

static void winograd_step(const shoal_call *c, const winograd_steps *steps) {
  double work = work_of(&steps->job->window) / c->kernels->winograd_groups(&steps->job->window);
  shoal_call_bands(c, work, PARTS, 1, run_winograd, steps);
}

static shoal_winograd winograd_of(const shoal_call *c, const shoal_window *window) {
  return (shoal_winograd){.window = *window,
                          .x = c->x,
                          .w = shoal_call_weight(c, 0),
                          .bias = shoal_call_weight(c, 1),
                          .y = c->y,
                          .points = c->scratch + whole_lines(c->kernels->winograd_scratch(window))};
}

static void winograd_forward(const shoal_call *c, const shoal_window *window) {
  shoal_winograd job = winograd_of(c, window);
  winograd_step(c, &(winograd_steps){c->kernels, &job, {SHOAL_WINOGRAD_WEIGHTS}, 1, 0});
  for (uint32_t group = 0; group < c->kernels->winograd_groups(window); group++) {
    winograd_step(c, &(winograd_steps){c->kernels, &job, {SHOAL_WINOGRAD_INPUT}, 1, group});
    winograd_step(c, &(winograd_steps){c->kernels, &job, {SHOAL_WINOGRAD_OUTPUT}, 1, group});
  }
}

static void winograd_backward(const shoal_call *c, const shoal_window *window) {
  shoal_winograd job = winograd_of(c, window);
  job.dy = c->dy;
  job.dx = c->dx[0];
  job.dw = shoal_call_gradient(c, 0);
  bool dx = job.dx != NULL;
  if (dx) winograd_step(c, &(winograd_steps){c->kernels, &job, {SHOAL_WINOGRAD_WEIGHTS}, 1, 0});
  for (uint32_t group = 0; group < c->kernels->winograd_groups(window); group++) {
    winograd_step(c,
                  &(winograd_steps){c->kernels, &job, {SHOAL_WINOGRAD_DY, SHOAL_WINOGRAD_INPUT}, 2, group});
    winograd_step(
        c, &(winograd_steps){c->kernels, &job, {SHOAL_WINOGRAD_DW, SHOAL_WINOGRAD_DX}, dx ? 2 : 1, group});
  }
  winograd_step(c, &(winograd_steps){c->kernels, &job, {SHOAL_WINOGRAD_END}, 1, 0});
}

/* ---- either way ---- */

static void forward(const shoal_call *c) {
  shoal_window window = shoal_window_of_call(c);
  if (shoal_winograd_suits(&window))
    winograd_forward(c, &window);
  else
    shoal_call_bands(c, work_of(&window), window.out_c, 1, forward_band, c);
}

static void input_band(const void *call, size_t first, size_t count, float *scratch_of_band) {
  const shoal_call *c = call;
  shoal_window window = shoal_window_of_call(c);
  uint32_t weight_c = window.in_c;
  window.in_c = (uint32_t)count;
  c->kernels->conv_backward_input(&window, c->dy, shoal_call_weight(c, 0) + first * window.k_h * window.k_w,
                                  weight_c, c->dx[0] + first * in_plane(&window), scratch_of_band);
}

static void weights_band(const void *call, size_t first, size_t count, float *scratch_of_band) {
  const shoal_call *c = call;
  (void)scratch_of_band;
  shoal_window window = shoal_window_of_call(c);
  const float *dy = c->dy + first * out_plane(&window);
  float *dbias = shoal_call_gradient(c, 1);
  window.out_c = (uint32_t)count;
  c->kernels->conv_backward_weights(&window, c->x, dy, shoal_call_gradient(c, 0) + first * taps(&window));
  if (dbias != NULL) c->kernels->conv_backward_bias(&window, dy, dbias + first);
}

static void backward(const shoal_call *c) {
  shoal_window window = shoal_window_of_call(c);
  if (!shoal_winograd_suits(&window)) {
    if (c->dx[0] != NULL) shoal_call_bands(c, work_of(&window), window.in_c, 1, input_band, c);
    shoal_call_bands(c, work_of(&window), window.out_c, 1, weights_band, c);
    return;
  }
  float *dbias = shoal_call_gradient(c, 1);
  winograd_backward(c, &window);
  if (dbias != NULL) c->kernels->conv_backward_bias(&window, c->dy, dbias);
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
