/* exec.c: see exec.h. Forward functions first, then backward, then the loss. */
#include "nn/exec.h"

#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "nn/recurrent.h"

/* What a node's functions work with: the exec and the node, with all pointers resolved. */
typedef struct work {
  shoal_exec *exec;
  const shoal_kernels *kernels;
  const shoal_node *node;
  const shoal_shape *in; /* shape of input 0 */
  const shoal_shape *out;
  uint32_t n, lanes;
  const float *x; /* input 0 */
  float *y;
  float *saved, *scratch;
  float *dy;
  float *dx; /* gradient of input 0, or NULL when not wanted */
} work;

static float *at(const shoal_exec *exec, size_t offset) {
  return offset == SHOAL_NOWHERE ? NULL : exec->block + offset;
}

static const float *weight_of(const work *w, int k) {
  uint32_t index = w->node->params[k];
  return index == SHOAL_NO_PARAM ? NULL : w->exec->weights + w->exec->plan->graph->params[index].offset;
}

static float *gradient_of(const work *w, int k) {
  uint32_t index = w->node->params[k];
  return index == SHOAL_NO_PARAM ? NULL : w->exec->gradient + w->exec->plan->graph->params[index].offset;
}

static void gemm(const work *w, const shoal_gemm *product) {
  shoal_team_gemm(w->exec->team, w->kernels, product);
}

static uint32_t rows_of(const work *w, const shoal_shape *shape) { return w->n * shape->steps; }

static size_t floats_of(const work *w, const shoal_shape *shape) { return shoal_shape_floats(shape, w->n); }

static shoal_window window_of(const work *w) {
  shoal_window window = w->node->window;
  window.lanes = w->lanes;
  return window;
}

/* A layer normalisation, a batch normalisation or dropout sees the tensor like this. */
static shoal_norm norm_of(const work *w) {
  if (w->out->kind == SHOAL_IMAGE) return (shoal_norm){w->out->c, w->out->h * w->out->w, w->lanes, w->n, 1};
  return (shoal_norm){w->out->features, 1, 0, w->n, w->out->steps};
}

/* ---- recurrent nodes ---- */

static size_t carry_width(const shoal_node *node) {
  switch (node->op) {
  case SHOAL_NODE_LSTM: return 2 * (size_t)node->shape.features;
  case SHOAL_NODE_RNN:
  case SHOAL_NODE_GRU: return node->shape.features;
  default: return 0;
  }
}

size_t shoal_carry_floats(const shoal_graph *graph) {
  size_t floats = 0;
  for (uint32_t i = 0; i < graph->nodes_count; i++) floats += carry_width(&graph->nodes[i]);
  return floats;
}

/* A carry is a row of matrices, rows x units; an LSTM has two. */
void shoal_carry_pack(const shoal_graph *graph, const float *carry, uint32_t rows, uint32_t first, uint32_t n,
                      float *packed) {
  for (uint32_t i = 0; i < graph->nodes_count; i++) {
    size_t units = graph->nodes[i].shape.features;
    for (size_t done = 0; done < carry_width(&graph->nodes[i]); done += units) {
      memcpy(packed, carry + first * units, n * units * sizeof *packed);
      packed += n * units;
      carry += rows * units;
    }
  }
}

void shoal_carry_unpack(const shoal_graph *graph, float *carry, uint32_t rows, uint32_t first, uint32_t n,
                        const float *packed) {
  for (uint32_t i = 0; i < graph->nodes_count; i++) {
    size_t units = graph->nodes[i].shape.features;
    for (size_t done = 0; done < carry_width(&graph->nodes[i]); done += units) {
      if (packed != NULL)
        memcpy(carry + first * units, packed, n * units * sizeof *packed);
      else
        memset(carry + first * units, 0, n * units * sizeof *carry);
      if (packed != NULL) packed += n * units;
      carry += rows * units;
    }
  }
}

static shoal_cell cell_of(const work *w) {
  const shoal_exec *exec = w->exec;
  shoal_cell cell = {.kernels = w->kernels,
                     .team = exec->team,
                     .fresh = exec->fresh,
                     .op = w->node->op,
                     .activation = w->node->activation,
                     .reverse = w->node->reverse,
                     .n = w->n,
                     .steps = w->in->steps,
                     .in = w->in->features,
                     .h = w->out->features,
                     .x = w->x,
                     .y = w->y,
                     .weight = weight_of(w, 0),
                     .recurrent = weight_of(w, 1),
                     .bias = weight_of(w, 2),
                     .recurrent_bias = weight_of(w, 3),
                     .saved = w->saved,
                     .scratch = w->scratch};
  if (exec->carry != NULL) {
    const shoal_graph *graph = exec->plan->graph;
    size_t before = 0;
    for (const shoal_node *node = graph->nodes; node != w->node; node++) before += carry_width(node);
    cell.state = exec->carry + before * exec->carry_rows + (size_t)exec->carry_row * cell.h;
    cell.state_stride = (size_t)exec->carry_rows * cell.h;
  }
  return cell;
}

/* ---- between layouts ---- */

/* steps x n x features <-> n x steps x features */
static void swap_time(uint32_t n, uint32_t steps, uint32_t features, const float *x, float *y, bool to_rows) {
  for (uint32_t t = 0; t < steps; t++)
    for (uint32_t i = 0; i < n; i++) {
      size_t time = ((size_t)t * n + i) * features, row = ((size_t)i * steps + t) * features;
      memcpy(y + (to_rows ? row : time), x + (to_rows ? time : row), features * sizeof *y);
    }
}

static void to_vector(const work *w, const shoal_shape *shape, const float *x, float *y) {
  if (shape->kind == SHOAL_IMAGE)
    w->kernels->lanes_to_rows((uint32_t)shoal_shape_values(shape), w->lanes, w->n, x, y);
  else
    swap_time(w->n, shape->steps, shape->features, x, y, true);
}

static void from_vector(const work *w, const shoal_shape *shape, const float *x, float *y) {
  if (shape->kind == SHOAL_IMAGE)
    w->kernels->rows_to_lanes((uint32_t)shoal_shape_values(shape), w->lanes, w->n, x, y);
  else
    swap_time(w->n, shape->steps, shape->features, x, y, false);
}

/* The part of a concatenation that input k takes up, copied in or out. An image's
 * channels are outermost, so each input is one run; elsewhere it is a run in each row. */
static void concat_part(const work *w, uint32_t k, const float *from, float *to, bool into) {
  const shoal_node *nodes = w->exec->plan->graph->nodes;
  size_t before = 0;
  for (uint32_t i = 0; i < k; i++) {
    const shoal_shape *shape = &nodes[w->node->inputs[i]].shape;
    before += shape->kind == SHOAL_IMAGE ? shape->c : shape->features;
  }
  const shoal_shape *part = &nodes[w->node->inputs[k]].shape;
  bool image = part->kind == SHOAL_IMAGE;
  size_t rows = image ? 1 : rows_of(w, part);
  size_t unit = image ? (size_t)part->h * part->w * w->lanes : 1;
  size_t run = (image ? part->c : part->features) * unit;
  size_t stride = (image ? w->out->c : w->out->features) * unit;
  for (size_t row = 0; row < rows; row++) {
    size_t whole = row * stride + before * unit, alone = row * run;
    memcpy(to + (into ? whole : alone), from + (into ? alone : whole), run * sizeof *to);
  }
}

/* ---- lookup ---- */

/* The row that a value of the data asks for. What is no number of a row asks for the first. */
static int32_t row_asked(float value, uint32_t rows) {
  if (!(value >= 0 && value < (float)rows)) return 0; /* nor does a NaN get past this */
  int32_t row = (int32_t)value;
  return (float)row == value ? row : 0;
}

/* The rows' numbers stay in `saved` for the way back. */
static void lookup_forward(const work *w) {
  const shoal_param *table = &w->exec->plan->graph->params[w->node->params[0]];
  uint32_t columns = w->node->columns, kept = w->in->features - columns;
  const float *x = w->x;
  float *y = w->y;
  int32_t *rows = (int32_t *)(void *)w->saved;
  for (uint32_t i = 0; i < w->n; i++) {
    memcpy(y, x, kept * sizeof *y);
    for (uint32_t c = 0; c < columns; c++) rows[c] = row_asked(x[kept + c], table->dims[0]);
    w->kernels->embed_forward(columns, table->dims[1], weight_of(w, 0), rows, y + kept);
    x += w->in->features;
    y += w->out->features;
    rows += columns;
  }
}

/* The gradient of the values that were taken over; numbers of rows have none. */
static void lookup_backward_input(const work *w) {
  uint32_t columns = w->node->columns, kept = w->in->features - columns;
  for (uint32_t i = 0; i < w->n; i++) {
    float *dx = w->dx + (size_t)i * w->in->features;
    memcpy(dx, w->dy + (size_t)i * w->out->features, kept * sizeof *dx);
    memset(dx + kept, 0, columns * sizeof *dx);
  }
}

/* Sample after sample, column after column: the order of the sums. */
static void lookup_backward(const work *w) {
  if (w->dx != NULL) lookup_backward_input(w);
  const shoal_param *table = &w->exec->plan->graph->params[w->node->params[0]];
  uint32_t columns = w->node->columns, kept = w->in->features - columns;
  const int32_t *rows = (const int32_t *)(const void *)w->saved;
  for (uint32_t i = 0; i < w->n; i++)
    w->kernels->embed_backward(columns, table->dims[1], rows + (size_t)i * columns,
                               w->dy + (size_t)i * w->out->features + kept, gradient_of(w, 0));
}

/* ---- dropout ---- */

/* Zeroes values with the node's rate and scales the rest; backward does the same to the
 * gradient, because the keys come out the same. */
static void drop(const work *w, const float *x, float *y) {
  const shoal_exec *exec = w->exec;
  const shoal_plan *plan = exec->plan;
  const uint64_t *ids = (const uint64_t *)(const void *)at(exec, plan->ids);
  uint32_t *keys = (uint32_t *)(void *)at(exec, plan->keys);
  uint64_t node = (uint64_t)(w->node - plan->graph->nodes);
  for (uint32_t i = 0; i < w->n; i++) {
    shoal_key key = shoal_key_make(exec->seed + (node << 48), SHOAL_FOR_DROPOUT, exec->epoch, ids[i]);
    keys[2 * i] = key.word[0];
    keys[2 * i + 1] = key.word[1];
  }
  uint32_t threshold = (uint32_t)(w->node->rate * 4294967296.0);
  shoal_norm shape = norm_of(w);
  w->kernels->dropout(&shape, keys, threshold, 1 / (1 - w->node->rate), x, y);
}

/* ---- inputs that are mostly zeros ---- */

/* A dense node that reads vectors of the data, as categories and pieces of numbers make them, looks
 * for their zeros: where at most one element in SPARSE_SHARE is something else, only that is
 * multiplied. The bits are the same while weights and gradients are finite, so the data may decide,
 * tile by tile. Beside fewer columns, looking for zeros costs more than multiplying them. */
enum { SPARSE_SHARE = 5, SPARSE_COLUMNS_MIN = 32 };

/* How many elements other than zero a tile may have; 0 where nobody looks for zeros. */
static uint32_t sparse_most(const shoal_graph *graph, const shoal_node *node, uint32_t n) {
  const shoal_shape *in = &graph->nodes[0].shape;
  if (node->op != SHOAL_NODE_DENSE || node->inputs[0] != 0 || in->kind != SHOAL_VECTOR) return 0;
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
static void find_sparse(const work *w) {
  uint32_t most = sparse_most(w->exec->plan->graph, w->node, w->n);
  if (w->saved == NULL || most == 0) return;
  shoal_sparse a = sparse_at(w->saved, most);
  if (!w->kernels->sparse_rows(w->n, w->in->features, w->x, most, &a)) a.starts[0] = NOT_SPARSE;
}

/* What find_sparse found; false when the tile is not sparse. */
static bool take_sparse(const work *w, shoal_sparse *out) {
  uint32_t most = sparse_most(w->exec->plan->graph, w->node, w->n);
  if (w->saved == NULL || most == 0) return false;
  *out = sparse_at(w->saved, most);
  return out->starts[0] != NOT_SPARSE;
}

/* ---- forward ---- */

static void dense_forward(const work *w) {
  const shoal_gemm product = {.m = rows_of(w, w->out),
                              .n = w->out->features,
                              .k = w->in->features,
                              .a = w->x,
                              .a_row = w->in->features,
                              .a_col = 1,
                              .b = weight_of(w, 0),
                              .b_row = w->out->features,
                              .b_col = 1,
                              .c = w->y,
                              .c_row = w->out->features,
                              .bias = weight_of(w, 1),
                              .scratch = w->scratch};
  shoal_sparse a;
  find_sparse(w);
  if (take_sparse(w, &a))
    shoal_team_gemm_sparse(w->exec->team, w->kernels, &product, &a);
  else
    gemm(w, &product);
}

static void batchnorm_forward(const work *w) {
  shoal_norm shape = norm_of(w);
  const float *gamma = weight_of(w, 0), *beta = weight_of(w, 1);
  if (!w->exec->plan->training) {
    w->kernels->batchnorm_infer(&shape, w->x, gamma, beta, SHOAL_NORM_EPS, weight_of(w, 2), weight_of(w, 3),
                                w->y);
    return;
  }
  float *mean = w->saved, *var = w->saved + shape.channels;
  w->kernels->batchnorm_train(&shape, w->x, gamma, beta, SHOAL_NORM_EPS, w->y, mean, var);
  /* The statistics of this tile travel in the gradient, weighted by its share of the
   * round; the running variance is the unbiased one. */
  float *mean_sum = gradient_of(w, 2), *var_sum = gradient_of(w, 3);
  double count = (double)w->n * shape.positions * shape.steps;
  float share = (float)((double)w->n / w->exec->round_n);
  float unbiased = count > 1 ? (float)(count / (count - 1)) : 1;
  for (uint32_t c = 0; c < shape.channels; c++) {
    mean_sum[c] += share * mean[c];
    var_sum[c] += share * (unbiased * var[c]);
  }
}

static void layernorm_forward(const work *w) {
  shoal_norm shape = norm_of(w);
  float *mean = w->saved, *rstd = w->saved + (size_t)w->n * shape.steps;
  w->kernels->layernorm_forward(&shape, w->x, weight_of(w, 0), weight_of(w, 1), SHOAL_NORM_EPS, w->y, mean,
                                rstd);
}

static void activation_forward(const work *w) {
  if (w->node->activation != SHOAL_ACT_SOFTMAX)
    w->kernels->act_forward(w->node->activation, floats_of(w, w->out), w->x, w->y);
  else
    w->kernels->softmax_forward(rows_of(w, w->out), w->out->features, w->x, w->y);
}

static void forward(const work *w) {
  const shoal_kernels *k = w->kernels;
  const shoal_node *node = w->node;
  shoal_window window = window_of(w);
  switch (node->op) {
  case SHOAL_NODE_INPUT: break; /* the source has filled it */
  case SHOAL_NODE_DENSE: dense_forward(w); break;
  case SHOAL_NODE_CONV:
    (shoal_winograd_suits(&window) ? k->winograd_forward : k->conv_forward)(
        &window, w->x, weight_of(w, 0), weight_of(w, 1), w->y, w->scratch);
    break;
  case SHOAL_NODE_POOL: k->pool_forward(node->pool, &window, w->x, w->y); break;
  case SHOAL_NODE_FLATTEN: to_vector(w, w->in, w->x, w->y); break;
  case SHOAL_NODE_UNFLATTEN: from_vector(w, w->out, w->x, w->y); break;
  case SHOAL_NODE_EMBED:
    k->embed_forward(rows_of(w, w->out), w->out->features, weight_of(w, 0),
                     (const int32_t *)(const void *)w->x, w->y);
    break;
  case SHOAL_NODE_LOOKUP: lookup_forward(w); break;
  case SHOAL_NODE_RNN:
  case SHOAL_NODE_LSTM:
  case SHOAL_NODE_GRU: {
    shoal_cell cell = cell_of(w);
    shoal_cell_forward(&cell);
    break;
  }
  case SHOAL_NODE_STEP: {
    size_t step = (size_t)w->n * w->out->features;
    memcpy(w->y, w->x + node->step * step, step * sizeof *w->y);
    break;
  }
  case SHOAL_NODE_REPEAT: {
    size_t step = (size_t)w->n * w->out->features;
    for (uint32_t t = 0; t < w->out->steps; t++) memcpy(w->y + t * step, w->x, step * sizeof *w->y);
    break;
  }
  case SHOAL_NODE_DROPOUT:
    if (w->exec->plan->training)
      drop(w, w->x, w->y);
    else if (w->x != w->y)
      memcpy(w->y, w->x, floats_of(w, w->out) * sizeof *w->y);
    break;
  case SHOAL_NODE_BATCHNORM: batchnorm_forward(w); break;
  case SHOAL_NODE_LAYERNORM: layernorm_forward(w); break;
  case SHOAL_NODE_ADD:
    k->add(floats_of(w, w->out), w->x, at(w->exec, w->exec->plan->places[node->inputs[1]].value), w->y);
    break;
  case SHOAL_NODE_CONCAT:
    for (uint32_t i = 0; i < node->inputs_count; i++)
      concat_part(w, i, at(w->exec, w->exec->plan->places[node->inputs[i]].value), w->y, true);
    break;
  case SHOAL_NODE_ACTIVATION: activation_forward(w); break;
  }
}

/* ---- backward ---- */

static void dense_backward_weights(const work *w, const shoal_gemm *product) {
  shoal_sparse a;
  if (!take_sparse(w, &a)) {
    gemm(w, product);
    return;
  }
  shoal_sparse turned = sparse_at(w->scratch, a.starts[w->n]);
  w->kernels->sparse_turn(w->n, w->in->features, &a, &turned);
  shoal_team_gemm_sparse(w->exec->team, w->kernels, product, &turned);
}

static void dense_backward(const work *w) {
  uint32_t rows = rows_of(w, w->out), in = w->in->features, out = w->out->features;
  if (w->dx != NULL)
    gemm(w, &(shoal_gemm){.m = rows,
                          .n = in,
                          .k = out,
                          .a = w->dy,
                          .a_row = out,
                          .a_col = 1,
                          .b = weight_of(w, 0),
                          .b_row = 1,
                          .b_col = out,
                          .c = w->dx,
                          .c_row = in,
                          .scratch = w->scratch});
  if (w->exec->input_only) return;
  dense_backward_weights(w, &(shoal_gemm){.m = in,
                                          .n = out,
                                          .k = rows,
                                          .a = w->x,
                                          .a_row = 1,
                                          .a_col = in,
                                          .b = w->dy,
                                          .b_row = out,
                                          .b_col = 1,
                                          .c = gradient_of(w, 0),
                                          .c_row = out,
                                          .accumulate = !w->exec->fresh,
                                          .scratch = w->scratch});
  if (w->node->params[1] != SHOAL_NO_PARAM) w->kernels->column_sums(rows, out, w->dy, gradient_of(w, 1));
}

static void conv_backward(const work *w, const shoal_window *window) {
  const shoal_kernels *k = w->kernels;
  if (shoal_winograd_suits(window)) {
    k->winograd_backward(window, w->x, weight_of(w, 0), w->dy, w->dx, gradient_of(w, 0), w->scratch);
  } else {
    if (w->dx != NULL) k->conv_backward_input(window, w->dy, weight_of(w, 0), w->dx, w->scratch);
    k->conv_backward_weights(window, w->x, w->dy, gradient_of(w, 0));
  }
  if (w->node->params[1] != SHOAL_NO_PARAM) k->conv_backward_bias(window, w->dy, gradient_of(w, 1));
}

static void recurrent_backward(const work *w) {
  shoal_cell cell = cell_of(w);
  cell.dy = w->dy;
  cell.dx = w->dx;
  cell.dweight = gradient_of(w, 0);
  cell.drecurrent = gradient_of(w, 1);
  cell.dbias = gradient_of(w, 2);
  cell.drecurrent_bias = gradient_of(w, 3);
  shoal_cell_backward(&cell);
}

static void layernorm_backward(const work *w) {
  shoal_norm shape = norm_of(w);
  const float *mean = w->saved, *rstd = w->saved + (size_t)w->n * shape.steps;
  /* The kernel writes dx always; scratch takes it where nobody wants it. */
  float *dx = w->dx != NULL ? w->dx : w->scratch;
  w->kernels->layernorm_backward(&shape, w->x, weight_of(w, 0), mean, rstd, w->dy, dx, gradient_of(w, 0),
                                 gradient_of(w, 1));
}

static void batchnorm_backward(const work *w) {
  shoal_norm shape = norm_of(w);
  float *dx = w->dx != NULL ? w->dx : w->scratch;
  w->kernels->batchnorm_backward(&shape, w->x, weight_of(w, 0), SHOAL_NORM_EPS, w->saved,
                                 w->saved + shape.channels, w->dy, dx, gradient_of(w, 0), gradient_of(w, 1));
}

static void repeat_backward(const work *w) {
  size_t step = (size_t)w->n * w->out->features;
  memcpy(w->dx, w->dy, step * sizeof *w->dx);
  for (uint32_t t = 1; t < w->out->steps; t++) w->kernels->add(step, w->dx, w->dy + t * step, w->dx);
}

static void step_backward(const work *w) {
  size_t step = (size_t)w->n * w->out->features;
  memset(w->dx, 0, floats_of(w, w->in) * sizeof *w->dx);
  memcpy(w->dx + w->node->step * step, w->dy, step * sizeof *w->dx);
}

static void activation_backward(const work *w) {
  if (w->node->activation != SHOAL_ACT_SOFTMAX)
    w->kernels->act_backward(w->node->activation, floats_of(w, w->out), w->x, w->y, w->dy, w->dx);
  else
    w->kernels->softmax_backward(rows_of(w, w->out), w->out->features, w->y, w->dy, w->dx);
}

/* Nodes with one input and their parameters. dx is NULL when nothing lies before. */
static void backward(const work *w) {
  const shoal_kernels *k = w->kernels;
  const shoal_node *node = w->node;
  shoal_window window = window_of(w);
  switch (node->op) {
  case SHOAL_NODE_DENSE: dense_backward(w); return;
  case SHOAL_NODE_CONV: conv_backward(w, &window); return;
  case SHOAL_NODE_EMBED:
    k->embed_backward(rows_of(w, w->out), w->out->features, (const int32_t *)(const void *)w->x, w->dy,
                      gradient_of(w, 0));
    return;
  case SHOAL_NODE_LOOKUP: lookup_backward(w); return;
  case SHOAL_NODE_RNN:
  case SHOAL_NODE_LSTM:
  case SHOAL_NODE_GRU: recurrent_backward(w); return;
  case SHOAL_NODE_BATCHNORM: batchnorm_backward(w); return;
  case SHOAL_NODE_LAYERNORM: layernorm_backward(w); return;
  default: break;
  }
  if (w->dx == NULL) return;
  switch (node->op) {
  case SHOAL_NODE_POOL: k->pool_backward(node->pool, &window, w->x, w->y, w->dy, w->dx); break;
  case SHOAL_NODE_FLATTEN: from_vector(w, w->in, w->dy, w->dx); break;
  case SHOAL_NODE_UNFLATTEN: to_vector(w, w->out, w->dy, w->dx); break;
  case SHOAL_NODE_STEP: step_backward(w); break;
  case SHOAL_NODE_REPEAT: repeat_backward(w); break;
  case SHOAL_NODE_DROPOUT: drop(w, w->dy, w->dx); break;
  case SHOAL_NODE_ACTIVATION: activation_backward(w); break;
  default: SHOAL_ASSERT(false);
  }
}

static work work_of(shoal_exec *exec, uint32_t index, bool back) {
  const shoal_plan *plan = exec->plan;
  const shoal_node *node = &plan->graph->nodes[index];
  const shoal_place *place = &plan->places[index];
  work w = {.exec = exec,
            .kernels = plan->kernels,
            .node = node,
            .in = &node->shape,
            .out = &node->shape,
            .n = exec->n,
            .lanes = shoal_lanes_for(exec->n),
            .y = at(exec, place->value),
            .saved = at(exec, place->saved),
            .scratch = at(exec, back ? place->scratch_backward : place->scratch_forward),
            .dy = at(exec, place->gradient)};
  if (node->inputs_count > 0) {
    w.in = &plan->graph->nodes[node->inputs[0]].shape;
    w.x = at(exec, plan->places[node->inputs[0]].value);
  }
  return w;
}

/* Gives every input its gradient: written where it belongs, or beside it and then added. */
static void backward_inputs(work *w, uint32_t index) {
  shoal_exec *exec = w->exec;
  const shoal_place *places = exec->plan->places;
  const shoal_node *node = w->node;
  bool spreads = node->op == SHOAL_NODE_ADD || node->op == SHOAL_NODE_CONCAT;
  for (uint32_t k = 0; k < node->inputs_count; k++) {
    uint32_t input = node->inputs[k];
    size_t count = shoal_shape_floats(&exec->plan->graph->nodes[input].shape, exec->n);
    float *gradient = at(exec, places[input].gradient), *partial = at(exec, places[index].partial[k]);
    w->dx = partial != NULL ? partial : gradient;
    if (!spreads) backward(w);
    if (w->dx == NULL) continue;
    if (node->op == SHOAL_NODE_CONCAT) concat_part(w, k, w->dy, w->dx, false);
    if (node->op == SHOAL_NODE_ADD) {
      if (partial != NULL) {
        w->kernels->add(count, gradient, w->dy, gradient);
        continue;
      }
      memcpy(gradient, w->dy, count * sizeof *gradient);
    }
    if (partial != NULL) w->kernels->add(count, gradient, partial, gradient);
  }
}

/* ---- the passes ---- */

shoal_batch shoal_exec_batch(const shoal_exec *exec) {
  const shoal_plan *plan = exec->plan;
  float *input = at(exec, plan->places[0].value);
  bool tokens = plan->graph->nodes[0].shape.kind == SHOAL_TOKENS;
  return (shoal_batch){.x = tokens ? NULL : input,
                       .tokens = tokens ? (int32_t *)(void *)input : NULL,
                       .labels = (int32_t *)(void *)at(exec, plan->labels),
                       .targets = at(exec, plan->targets),
                       .weight = at(exec, plan->weight),
                       .ids = (uint64_t *)(void *)at(exec, plan->ids)};
}

/* Adds the time since *since to an entry of step_seconds, once for each thread of the team, and
 * sets *since to now; with START there is no entry yet. */
#define START UINT32_MAX

static void lap(const shoal_exec *exec, uint32_t entry, double *since) {
  if (exec->step_seconds == NULL) return;
  double now = shoal_clock_seconds();
  if (entry != START) exec->step_seconds[entry] += (now - *since) * shoal_team_threads(exec->team);
  *since = now;
}

/* How many of a node's parameters, from the first, its backward function overwrites when fresh. */
static int overwritten(shoal_node_op op) {
  switch (op) {
  case SHOAL_NODE_DENSE: return 1;
  case SHOAL_NODE_RNN:
  case SHOAL_NODE_LSTM:
  case SHOAL_NODE_GRU: return 2;
  default: return 0;
  }
}

void shoal_exec_clear(const shoal_graph *graph, float *gradient) {
  for (uint32_t i = 0; i < graph->nodes_count; i++) {
    const shoal_node *node = &graph->nodes[i];
    for (int k = overwritten(node->op); k < SHOAL_NODE_PARAMS_MAX; k++) {
      if (node->params[k] == SHOAL_NO_PARAM) continue;
      const shoal_param *param = &graph->params[node->params[k]];
      memset(gradient + param->offset, 0, param->count * sizeof *gradient);
    }
  }
}

void shoal_exec_forward(shoal_exec *exec) {
  const shoal_plan *plan = exec->plan;
  double since = 0;
  lap(exec, START, &since);
  for (uint32_t s = 0; s < plan->loss_step; s++) {
    work w = work_of(exec, plan->steps[s].node, false);
    forward(&w);
    lap(exec, s, &since);
  }
}

void shoal_exec_backward(shoal_exec *exec) {
  const shoal_plan *plan = exec->plan;
  double since = 0;
  lap(exec, START, &since);
  for (uint32_t s = plan->loss_step; s < plan->steps_count; s++) {
    uint32_t index = plan->steps[s].node;
    work w = work_of(exec, index, true);
    backward_inputs(&w, index);
    lap(exec, s, &since);
  }
}

static shoal_element_loss element_loss_of(shoal_loss_kind loss) {
  switch (loss) {
  case SHOAL_BINARY_CROSS_ENTROPY: return SHOAL_LOSS_BINARY;
  case SHOAL_MEAN_ABSOLUTE: return SHOAL_LOSS_ABSOLUTE;
  case SHOAL_HUBER: return SHOAL_LOSS_HUBER;
  default: return SHOAL_LOSS_SQUARED;
  }
}

/* Rows whose every answer is on the right side of one half. */
static uint64_t count_binary(uint32_t rows, uint32_t cols, const float *p, const float *t,
                             const float *weight) {
  uint64_t correct = 0;
  for (uint32_t r = 0; r < rows; r++) {
    bool right = weight[r] > 0;
    for (uint32_t c = 0; c < cols; c++)
      right &= (p[(size_t)r * cols + c] > 0) == (t[(size_t)r * cols + c] > 0.5f);
    correct += right;
  }
  return correct;
}

/* Cross-entropy in a fixed number of pieces, so that threads can share it and its sum stays
 * the same. */
enum { LOSS_PIECES = 64 };

typedef struct loss_pieces {
  const shoal_kernels *kernels;
  uint32_t rows, cols;
  const float *p;
  float *d; /* or NULL */
  const shoal_batch *batch;
  float scale;
  double sum[LOSS_PIECES];
  uint64_t correct[LOSS_PIECES];
} loss_pieces;

static void cross_entropy_piece(void *context, uint32_t index, uint32_t thread) {
  (void)thread;
  loss_pieces *l = context;
  uint32_t first = (uint32_t)((uint64_t)l->rows * index / LOSS_PIECES);
  uint32_t end = (uint32_t)((uint64_t)l->rows * (index + 1) / LOSS_PIECES);
  size_t at_row = (size_t)first * l->cols;
  if (first < end)
    l->kernels->cross_entropy(end - first, l->cols, l->p + at_row, l->batch->labels + first,
                              l->batch->weight + first, l->scale, l->d != NULL ? l->d + at_row : NULL,
                              &l->sum[index], &l->correct[index]);
}

static void cross_entropy(shoal_exec *exec, loss_pieces *l, shoal_sums *sums) {
  shoal_team_run(exec->team, LOSS_PIECES, cross_entropy_piece, l);
  for (int i = 0; i < LOSS_PIECES; i++) {
    sums->loss += l->sum[i];
    sums->correct += l->correct[i];
  }
}

static void loss(shoal_exec *exec, shoal_sums *sums) {
  const shoal_plan *plan = exec->plan;
  const shoal_graph *graph = plan->graph;
  const shoal_recipe *recipe = &graph->model->recipe;
  const shoal_place *place = &plan->places[graph->nodes_count - 1];
  const shoal_shape *shape = &graph->nodes[graph->nodes_count - 1].shape;
  shoal_batch batch = shoal_exec_batch(exec);
  uint32_t rows = exec->n * shape->steps, cols = shape->features;
  const float *p = at(exec, place->value);
  float *d = plan->training ? at(exec, place->gradient) : NULL;

  if (exec->class_weights != NULL && plan->training && batch.labels != NULL)
    for (uint32_t r = 0; r < rows; r++) batch.weight[r] *= exec->class_weights[batch.labels[r]];
  for (uint32_t r = 0; r < rows; r++) {
    sums->counted += batch.weight[r] > 0;
    sums->weight += batch.weight[r];
  }

  double scale = 1.0 / exec->round_n;
  if (!recipe->sum_steps) scale /= shape->steps;
  if (recipe->loss == SHOAL_CROSS_ENTROPY) {
    loss_pieces pieces = {.kernels = plan->kernels,
                          .rows = rows,
                          .cols = cols,
                          .p = p,
                          .d = d,
                          .batch = &batch,
                          .scale = (float)scale};
    cross_entropy(exec, &pieces, sums);
    return;
  }
  scale /= cols;
  double sum = 0, square = 0;
  if (recipe->loss == SHOAL_BINARY_CROSS_ENTROPY)
    sums->correct += count_binary(rows, cols, p, batch.targets, batch.weight);
  else
    plan->kernels->element_loss(SHOAL_LOSS_SQUARED, 0, rows, cols, p, batch.targets, batch.weight, 1, NULL,
                                &square);
  plan->kernels->element_loss(element_loss_of(recipe->loss), recipe->huber_delta, rows, cols, p,
                              batch.targets, batch.weight, (float)scale, d, &sum);
  sums->loss += sum / cols;
  sums->square += square / cols;
}

void shoal_exec_loss(shoal_exec *exec, shoal_sums *sums) {
  double since = 0;
  lap(exec, START, &since);
  loss(exec, sums);
  lap(exec, exec->plan->steps_count, &since);
}

/* ---- sizes, for the plan ---- */

size_t shoal_exec_saved(const shoal_graph *graph, const shoal_node *node, uint32_t n) {
  switch (node->op) {
  case SHOAL_NODE_DENSE: return sparse_floats(n, sparse_most(graph, node, n));
  case SHOAL_NODE_RNN:
  case SHOAL_NODE_LSTM:
  case SHOAL_NODE_GRU: return shoal_cell_saved(node->op, node->shape.steps, n, node->shape.features);
  case SHOAL_NODE_LOOKUP: return (size_t)n * node->columns;
  case SHOAL_NODE_BATCHNORM: return 2 * graph->params[node->params[2]].count;
  case SHOAL_NODE_LAYERNORM: return 2 * (size_t)n * node->shape.steps;
  default: return 0;
  }
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

size_t shoal_exec_scratch(const shoal_graph *graph, const shoal_kernels *k, const shoal_node *node,
                          uint32_t n, bool back) {
  if (node->inputs_count == 0) return 0;
  const shoal_node *input = &graph->nodes[node->inputs[0]];
  uint32_t rows = n * node->shape.steps, in = input->shape.features, out = node->shape.features;
  switch (node->op) {
  case SHOAL_NODE_DENSE:
    if (!back) return k->gemm_scratch(rows, out, in);
    return larger(larger(k->gemm_scratch(rows, in, out), k->gemm_scratch(in, out, rows)),
                  sparse_floats(in, sparse_most(graph, node, n)));
  case SHOAL_NODE_CONV: {
    shoal_window window = node->window;
    window.lanes = shoal_lanes_for(n);
    return shoal_winograd_suits(&window) ? k->winograd_scratch(&window) : k->conv_scratch(&window);
  }
  case SHOAL_NODE_RNN:
  case SHOAL_NODE_LSTM:
  case SHOAL_NODE_GRU: return shoal_cell_scratch(k, node->op, node->shape.steps, n, in, out, back);
  case SHOAL_NODE_BATCHNORM:
  case SHOAL_NODE_LAYERNORM: return back ? shoal_shape_floats(&node->shape, n) : 0;
  default: return 0;
  }
}
