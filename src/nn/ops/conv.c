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

/* Bringing one channel of a tile to its points costs about as much as multiplying so many pairs of channels there. */
enum { CHANGE = 4 };

/* How threads share a pass: y or dx is cut by lanes and channels, and each of its values is a sum over `each` channels.
 * Backward these are the outputs' and `channels` the inputs', and dw is cut by both. */
typedef struct winograd_cut {
  uint32_t pieces, groups, tiles, channels, each;
  shoal_grid values, weights;
} winograd_cut;

/* A part brings all channels that it sums over to their points, for its lanes, and the weights once. */
static uint64_t cost_of_values(const void *own, shoal_grid grid) {
  const winograd_cut *cut = own;
  uint64_t groups = shoal_largest_part(cut->groups, grid.across), each = cut->each,
           channels = shoal_largest_part(cut->channels, grid.down);
  return groups * cut->tiles * (CHANGE * (each + channels) + channels * each) +
         CHANGE * channels * each / SHOAL_LANES;
}

/* A part walks over all tiles of all lanes, and its products compute whole vectors of inputs. */
static uint64_t cost_of_weights(const void *own, shoal_grid grid) {
  const winograd_cut *cut = own;
  uint64_t outs = shoal_largest_part(cut->each, grid.across),
           ins = shoal_largest_part(cut->channels, grid.down);
  return CHANGE * (outs + ins) + outs * ((ins + SHOAL_LANES - 1) / SHOAL_LANES * SHOAL_LANES);
}

static winograd_cut cut_of(const shoal_call *c, bool back) {
  shoal_window w = shoal_window_of_call(c);
  winograd_cut cut = {.pieces = shoal_pool_threads(c->exec->team),
                      .groups = w.lanes / SHOAL_LANES,
                      .tiles = w.out_h * w.out_w / 16 + 1,
                      .channels = back ? w.in_c : w.out_c,
                      .each = back ? w.out_c : w.in_c};
  cut.values = shoal_best_grid(cut.pieces, cut.groups, cut.channels, cost_of_values, &cut);
  if (back) cut.weights = shoal_best_grid(cut.pieces, cut.each, cut.channels, cost_of_weights, &cut);
  return cut;
}

/* A piece of a pass is a cell of either grid. A grid may have fewer cells than there are pieces: the others get nothing. */
static void take_values(shoal_winograd *job, const winograd_cut *cut, size_t piece) {
  shoal_grid grid = cut->values;
  if (piece >= grid.across * grid.down) return;
  shoal_stretch lanes = shoal_part(job->window.lanes, SHOAL_LANES, piece % grid.across, grid.across),
                channels = shoal_part(cut->channels, 1, piece / grid.across, grid.down);
  job->first_lane = (uint32_t)lanes.first;
  job->lanes = (uint32_t)lanes.count;
  job->first = (uint32_t)channels.first;
  job->count = (uint32_t)channels.count;
}

static void take_weights(shoal_winograd *job, const winograd_cut *cut, size_t piece) {
  shoal_grid grid = cut->weights;
  if (piece >= grid.across * grid.down) return;
  shoal_stretch outs = shoal_part(cut->each, 1, piece % grid.across, grid.across),
                ins = shoal_part(cut->channels, 1, piece / grid.across, grid.down);
  job->dw_first_out = (uint32_t)outs.first;
  job->dw_outs = (uint32_t)outs.count;
  job->dw_first_in = (uint32_t)ins.first;
  job->dw_ins = (uint32_t)ins.count;
}

static shoal_winograd winograd_of(const shoal_call *c) {
  return (shoal_winograd){.window = shoal_window_of_call(c), .x = c->x, .w = shoal_call_weight(c, 0)};
}

static void winograd_forward_band(const shoal_call *c, size_t first, size_t count) {
  for (size_t piece = first; piece < first + count; piece++) {
    shoal_winograd job = winograd_of(c);
    job.bias = shoal_call_weight(c, 1);
    job.y = c->y;
    take_values(&job, c->own, piece);
    if (job.count > 0) c->kernels->winograd_forward(&job, c->scratch);
  }
}

static void winograd_backward_piece(const shoal_call *c, const winograd_cut *cut, size_t piece) {
  shoal_winograd job = winograd_of(c);
  job.dy = c->dy;
  job.dx = c->dx[0];
  job.dw = shoal_call_gradient(c, 0);
  if (job.dx != NULL) take_values(&job, cut, piece);
  take_weights(&job, cut, piece);
  if (job.count > 0 || job.dw_outs > 0) c->kernels->winograd_backward(&job, c->scratch);
  float *dbias = shoal_call_gradient(c, 1);
  if (dbias == NULL) return;
  shoal_stretch outs = shoal_part(job.window.out_c, 1, piece, cut->pieces);
  job.window.out_c = (uint32_t)outs.count;
  c->kernels->conv_backward_bias(&job.window, c->dy + outs.first * out_plane(&job.window),
                                 dbias + outs.first);
}

static void winograd_backward_band(const shoal_call *c, size_t first, size_t count) {
  for (size_t piece = first; piece < first + count; piece++) winograd_backward_piece(c, c->own, piece);
}

static void run_winograd(const shoal_call *c, double work, bool back) {
  winograd_cut cut = cut_of(c, back);
  shoal_call_bands(c, &cut, work, cut.pieces, 1, back ? winograd_backward_band : winograd_forward_band);
}

/* ---- either way ---- */

static void forward(const shoal_call *c) {
  shoal_window window = shoal_window_of_call(c);
  if (shoal_winograd_suits(&window))
    run_winograd(c, work_of(&window), false);
  else
    shoal_call_bands(c, NULL, work_of(&window), window.out_c, 1, forward_band);
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
    run_winograd(c, work_of(&window), true);
    return;
  }
  if (c->dx[0] != NULL) shoal_call_bands(c, NULL, work_of(&window), window.in_c, 1, input_band);
  shoal_call_bands(c, NULL, work_of(&window), window.out_c, 1, weights_band);
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
