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

/* How the threads share two lists: so many stretches of the first, times so many of the second. */
typedef struct grid {
  uint32_t across, down;
} grid;

typedef struct stretch {
  uint32_t first, count;
} stretch;

static stretch stretch_of(uint32_t count, uint32_t unit, size_t index, size_t of) {
  size_t first = shoal_part_start(count, unit, index, of), end = shoal_part_start(count, unit, index + 1, of);
  return (stretch){(uint32_t)first, (uint32_t)(end - first)};
}

/* Making a channel's points of a tile costs about as much as so many of the products of two channels there. */
enum { CHANGE = 4 };

/* What a thread does of y or dx, with `each` channels to sum over: for its lanes it makes the points of all of these. */
static uint64_t cost_of_values(uint32_t lanes, uint32_t channels, uint32_t each) {
  return lanes * (CHANGE * (uint64_t)each + channels * (uint64_t)(each + CHANGE));
}

/* The same of dw, for all lanes. Its products have whole vectors of inputs. */
static uint64_t cost_of_weights(uint32_t outs, uint32_t ins, uint32_t unused) {
  (void)unused;
  uint64_t columns = (ins + SHOAL_LANES - 1) / SHOAL_LANES * SHOAL_LANES;
  return CHANGE * ((uint64_t)outs + ins) + outs * columns;
}

/* The grid whose largest cell costs least. */
static grid best_grid(uint32_t threads, uint32_t across, uint32_t down,
                      uint64_t (*cost)(uint32_t, uint32_t, uint32_t), uint32_t each) {
  grid best = {1, 1};
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 1; i <= threads && i <= across; i++)
    for (uint32_t k = 1; i * k <= threads && k <= down; k++) {
      uint64_t now = cost((across + i - 1) / i, (down + k - 1) / k, each);
      if (now >= least) continue;
      least = now;
      best = (grid){i, k};
    }
  return best;
}

/* Sets the part of y or dx that cell `cell` of so many has, or leaves it empty where the grid has fewer. */
static void take_values(shoal_winograd *job, size_t cell, size_t cells, uint32_t channels, uint32_t each) {
  uint32_t lanes = job->window.lanes;
  grid g = best_grid((uint32_t)cells, lanes / SHOAL_LANES, channels, cost_of_values, each);
  if (cell >= g.across * g.down) return;
  stretch of_lanes = stretch_of(lanes, SHOAL_LANES, cell % g.across, g.across),
          of_channels = stretch_of(channels, 1, cell / g.across, g.down);
  job->first_lane = of_lanes.first;
  job->lanes = of_lanes.count;
  job->first = of_channels.first;
  job->count = of_channels.count;
}

/* The same of dw. */
static void take_weights(shoal_winograd *job, size_t cell, size_t cells) {
  uint32_t outs = job->window.out_c, ins = job->window.in_c;
  grid g = best_grid((uint32_t)cells, outs, ins, cost_of_weights, 0);
  if (cell >= g.across * g.down) return;
  stretch of_outs = stretch_of(outs, 1, cell % g.across, g.across),
          of_ins = stretch_of(ins, 1, cell / g.across, g.down);
  job->dw_first_out = of_outs.first;
  job->dw_outs = of_outs.count;
  job->dw_first_in = of_ins.first;
  job->dw_ins = of_ins.count;
}

static shoal_winograd winograd_of(const shoal_call *c) {
  return (shoal_winograd){.window = shoal_window_of_call(c), .x = c->x, .w = shoal_call_weight(c, 0)};
}

static void winograd_forward_cell(const shoal_call *c, size_t cell, size_t cells) {
  shoal_winograd job = winograd_of(c);
  job.bias = shoal_call_weight(c, 1);
  job.y = c->y;
  take_values(&job, cell, cells, job.window.out_c, job.window.in_c);
  if (job.count > 0) c->kernels->winograd_forward(&job, c->scratch);
}

static void winograd_backward_cell(const shoal_call *c, size_t cell, size_t cells) {
  shoal_winograd job = winograd_of(c);
  job.dy = c->dy;
  job.dx = c->dx[0];
  job.dw = shoal_call_gradient(c, 0);
  if (job.dx != NULL) take_values(&job, cell, cells, job.window.in_c, job.window.out_c);
  take_weights(&job, cell, cells);
  if (job.count > 0 || job.dw_outs > 0) c->kernels->winograd_backward(&job, c->scratch);
  float *dbias = shoal_call_gradient(c, 1);
  if (dbias == NULL) return;
  stretch outs = stretch_of(job.window.out_c, 1, cell, cells);
  job.window.out_c = outs.count;
  c->kernels->conv_backward_bias(&job.window, c->dy + outs.first * out_plane(&job.window),
                                 dbias + outs.first);
}

/* ---- either way ---- */

static void forward(const shoal_call *c) {
  shoal_window window = shoal_window_of_call(c);
  if (shoal_winograd_suits(&window))
    shoal_call_cells(c, work_of(&window), winograd_forward_cell);
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
    shoal_call_cells(c, work_of(&window), winograd_backward_cell);
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
