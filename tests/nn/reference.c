/* reference.c: see reference.h.
 *
 * Every operation is one function below and one row of FORMULAS. It reads the values of its node's inputs and writes
 * the node's value, for all samples. */
#include "reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "check.h"
#include "nn/op.h"

struct reference {
  const shoal_graph *graph;
  uint32_t n;
  bool training;
  uint64_t epoch;
  double *weights;
  double *
      statistics; /* of the weights' length: those of the batch, where batch normalisation keeps its running ones */
  double **settled; /* a node: its value at the weights */
  double **moved;   /* the same with one weight moved */
  double **value;   /* the one to be read now */
  bool moving;
  double **state, **state_after; /* a node: h, then c of lstm, n x features each; NULL where it has none */
  int32_t *labels;               /* n x steps */
  double *targets;               /* n x steps x features */
  double *answer_weights;        /* n x steps */
  uint64_t *ids;
};

/* A node at work. */
typedef struct work {
  const reference *r;
  const shoal_node *node;
  const shoal_shape *in, *out;
  uint32_t index, n;
  const double *x; /* input 0 */
  double *y;
} work;

static void *zeros(size_t count, size_t size) {
  void *memory = calloc(count > 0 ? count : 1, size);
  assert_non_null(memory);
  return memory;
}

static double *doubles(size_t count) { return zeros(count, sizeof(double)); }

static const double *weights_of(const work *w, int slot) {
  uint32_t param = w->node->params[slot];
  return param != SHOAL_NO_PARAM ? w->r->weights + w->r->graph->params[param].offset : NULL;
}

static uint32_t channels_of(const shoal_shape *s) { return s->kind == SHOAL_IMAGE ? s->c : s->features; }
static uint32_t positions_of(const shoal_shape *s) { return s->steps * s->h * s->w; }

/* ---- functions of values ---- */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static double activated(shoal_activation kind, double x) {
  switch (kind) {
  case SHOAL_ACT_IDENTITY: return x;
  case SHOAL_ACT_SIGMOID: return sigmoid(x);
  case SHOAL_ACT_TANH: return tanh(x);
  case SHOAL_ACT_RELU: return x > 0 ? x : 0;
  case SHOAL_ACT_LEAKY_RELU: return x > 0 ? x : 0.01 * x;
  case SHOAL_ACT_ELU: return x > 0 ? x : expm1(x);
  case SHOAL_ACT_GELU: return x / 2 * (1 + erf(x / sqrt(2)));
  case SHOAL_ACT_SILU: return x * sigmoid(x);
  case SHOAL_ACT_SOFTPLUS: return log1p(exp(x));
  case SHOAL_ACT_SOFTMAX: break;
  }
  fail_msg("softmax is no function of one value");
  return NAN;
}

static void softmax(uint32_t count, const double *x, double *y) {
  double sum = 0;
  for (uint32_t i = 0; i < count; i++) sum += exp(x[i]);
  for (uint32_t i = 0; i < count; i++) y[i] = exp(x[i]) / sum;
}

/* Softmax is along the features, so `count` values are whole rows of `features`. */
static void activate(shoal_activation kind, size_t count, uint32_t features, const double *x, double *y) {
  for (size_t i = 0; i < count; i += kind == SHOAL_ACT_SOFTMAX ? features : 1) {
    if (kind == SHOAL_ACT_SOFTMAX)
      softmax(features, x + i, y + i);
    else
      y[i] = activated(kind, x[i]);
  }
}

static void activation(const work *w) {
  activate(w->node->activation, w->n * shoal_shape_values(w->out), w->out->features, w->x, w->y);
}

/* ---- matrices ---- */

/* y (out) += x (in) * weight (in x out) */
static void add_product(uint32_t in, uint32_t out, const double *x, const double *weight, double *y) {
  for (uint32_t i = 0; i < in; i++)
    for (uint32_t o = 0; o < out; o++) y[o] += x[i] * weight[(size_t)i * out + o];
}

static void start_from(uint32_t count, const double *bias, double *y) {
  for (uint32_t i = 0; i < count; i++) y[i] = bias != NULL ? bias[i] : 0;
}

static void dense(const work *w) {
  uint32_t in = w->in->features, out = w->out->features;
  for (size_t row = 0; row < (size_t)w->n * w->out->steps; row++) {
    start_from(out, weights_of(w, 1), w->y + row * out);
    add_product(in, out, w->x + row * in, weights_of(w, 0), w->y + row * out);
  }
}

/* Calls f for every tap of a window's place (row, col) that lies inside the image: the index of its weight within a
 * channel, and of its pixel. */
typedef void (*tap_function)(void *context, uint32_t tap, uint32_t pixel);

static void each_tap(const shoal_window *s, uint32_t row, uint32_t col, tap_function f, void *context) {
  for (uint32_t i = 0; i < s->k_h; i++)
    for (uint32_t j = 0; j < s->k_w; j++) {
      int64_t y = (int64_t)row * s->stride_h + i - s->pad_h, x = (int64_t)col * s->stride_w + j - s->pad_w;
      if (y >= 0 && y < s->in_h && x >= 0 && x < s->in_w)
        f(context, i * s->k_w + j, (uint32_t)(y * s->in_w + x));
    }
}

typedef struct tap_sum {
  const double *weight, *image;
  double sum;
} tap_sum;

static void add_tap(void *context, uint32_t tap, uint32_t pixel) {
  tap_sum *s = context;
  s->sum += s->weight[tap] * s->image[pixel];
}

static void conv(const work *w) {
  const shoal_window *s = &w->node->window;
  const double *weight = weights_of(w, 0), *bias = weights_of(w, 1);
  size_t plane = (size_t)s->in_h * s->in_w, taps = (size_t)s->k_h * s->k_w, at = 0;
  for (uint32_t i = 0; i < w->n; i++)
    for (uint32_t out = 0; out < s->out_c; out++)
      for (uint32_t row = 0; row < s->out_h; row++)
        for (uint32_t col = 0; col < s->out_w; col++, at++) {
          tap_sum sum = {.sum = bias != NULL ? bias[out] : 0};
          for (uint32_t in = 0; in < s->in_c; in++) {
            sum.weight = weight + (out * s->in_c + in) * taps;
            sum.image = w->x + (i * s->in_c + in) * plane;
            each_tap(s, row, col, add_tap, &sum);
          }
          w->y[at] = sum.sum;
        }
}

/* ---- pools ---- */

typedef struct pooled {
  const double *image;
  double sum, largest, smallest;
  uint32_t taps;
} pooled;

static void pool_tap(void *context, uint32_t tap, uint32_t pixel) {
  (void)tap;
  pooled *p = context;
  p->sum += p->image[pixel];
  p->largest = fmax(p->largest, p->image[pixel]);
  p->smallest = fmin(p->smallest, p->image[pixel]);
  p->taps++;
}

static double pooled_value(shoal_pool_kind kind, const pooled *p) {
  if (p->taps == 0) return 0;
  if (kind == SHOAL_POOL_AVERAGE) return p->sum / p->taps;
  return kind == SHOAL_POOL_MAX ? p->largest : p->smallest;
}

static void pool(const work *w) {
  const shoal_window *s = &w->node->window;
  size_t plane = (size_t)s->in_h * s->in_w, at = 0;
  for (size_t image = 0; image < (size_t)w->n * s->in_c; image++)
    for (uint32_t row = 0; row < s->out_h; row++)
      for (uint32_t col = 0; col < s->out_w; col++, at++) {
        pooled p = {.image = w->x + image * plane, .largest = -INFINITY, .smallest = INFINITY};
        each_tap(s, row, col, pool_tap, &p);
        w->y[at] = pooled_value(w->node->pool, &p);
      }
}

/* ---- tables ---- */

static void embed(const work *w) {
  uint32_t width = w->out->features;
  for (size_t row = 0; row < (size_t)w->n * w->out->steps; row++)
    memcpy(w->y + row * width, weights_of(w, 0) + (size_t)w->x[row] * width, width * sizeof *w->y);
}

static void lookup(const work *w) {
  const uint32_t *dims = w->r->graph->params[w->node->params[0]].dims;
  uint32_t in = w->in->features, kept = in - w->node->columns, width = dims[1];
  for (uint32_t i = 0; i < w->n; i++) {
    const double *x = w->x + (size_t)i * in;
    double *y = w->y + (size_t)i * w->out->features;
    memcpy(y, x, kept * sizeof *y);
    for (uint32_t c = 0; c < w->node->columns; c++) {
      double number = x[kept + c];
      bool good = number >= 0 && number < dims[0] && floor(number) == number;
      memcpy(y + kept + c * width, weights_of(w, 0) + (good ? (size_t)number : 0) * width, width * sizeof *y);
    }
  }
}

/* ---- recurrent ---- */

/* One step of a cell for one sample: h and c come in as the state before and go out as the one after. gates_x and
 * gates_h are what input and state give each gate, biases included. */
typedef void (*cell_step)(const shoal_node *node, uint32_t width, const double *gates_x,
                          const double *gates_h, double *h, double *c);

static void rnn_step(const shoal_node *node, uint32_t width, const double *gates_x, const double *gates_h,
                     double *h, double *c) {
  (void)c;
  for (uint32_t i = 0; i < width; i++) h[i] = activated(node->activation, gates_x[i] + gates_h[i]);
}

/* Gates i f g o: c = f c + i g, h = o tanh(c). */
static void lstm_step(const shoal_node *node, uint32_t width, const double *gates_x, const double *gates_h,
                      double *h, double *c) {
  (void)node;
  for (uint32_t i = 0; i < width; i++) {
    double gate[4];
    for (int g = 0; g < 4; g++) gate[g] = gates_x[g * width + i] + gates_h[g * width + i];
    c[i] = sigmoid(gate[1]) * c[i] + sigmoid(gate[0]) * tanh(gate[2]);
    h[i] = sigmoid(gate[3]) * tanh(c[i]);
  }
}

/* Gates r z n: n = tanh(x + r h), h = (1 - z) n + z h. */
static void gru_step(const shoal_node *node, uint32_t width, const double *gates_x, const double *gates_h,
                     double *h, double *c) {
  (void)node, (void)c;
  for (uint32_t i = 0; i < width; i++) {
    double reset = sigmoid(gates_x[i] + gates_h[i]);
    double keep = sigmoid(gates_x[width + i] + gates_h[width + i]);
    double new = tanh(gates_x[2 * width + i] + reset * gates_h[2 * width + i]);
    h[i] = (1 - keep) * new + keep *h[i];
  }
}

static void recurrent(const work *w, uint32_t gates, cell_step step) {
  uint32_t in = w->in->features, width = w->out->features, steps = w->out->steps, all = gates * width;
  double *gates_x = doubles(all), *gates_h = doubles(all), *h = doubles(2 * (size_t)width), *c = h + width;
  const double *state = w->r->state[w->index];
  double *after = w->r->state_after[w->index];
  for (uint32_t i = 0; i < w->n; i++) {
    memcpy(h, state + 2 * (size_t)i * width, 2 * width * sizeof *h);
    for (uint32_t s = 0; s < steps; s++) {
      size_t row = (size_t)i * steps + (w->node->reverse ? steps - 1 - s : s);
      start_from(all, weights_of(w, 2), gates_x);
      start_from(all, weights_of(w, 3), gates_h);
      add_product(in, all, w->x + row * in, weights_of(w, 0), gates_x);
      add_product(width, all, h, weights_of(w, 1), gates_h);
      step(w->node, width, gates_x, gates_h, h, c);
      memcpy(w->y + row * width, h, width * sizeof *h);
    }
    if (!w->r->moving) memcpy(after + 2 * (size_t)i * width, h, 2 * width * sizeof *h);
  }
  free(gates_x);
  free(gates_h);
  free(h);
}

static void rnn(const work *w) { recurrent(w, 1, rnn_step); }
static void lstm(const work *w) { recurrent(w, 4, lstm_step); }
static void gru(const work *w) { recurrent(w, 3, gru_step); }

/* ---- normalisation and dropout ---- */

static double *statistics_of(const work *w, int slot) {
  return w->r->statistics + w->r->graph->params[w->node->params[slot]].offset;
}

/* The channel of an element of a sample. */
static uint32_t channel_of(const shoal_shape *shape, size_t e) {
  return (uint32_t)(shape->kind == SHOAL_IMAGE ? e / ((size_t)shape->h * shape->w) : e % shape->features);
}

/* The mean over all elements of a channel, of the batch, or with `mean` that of the squared distances from it. */
static double channel_mean(const work *w, uint32_t channel, const double *mean) {
  size_t values = shoal_shape_values(w->out);
  double sum = 0;
  for (size_t e = 0; e < w->n * values; e++)
    if (channel_of(w->out, e % values) == channel)
      sum += mean != NULL ? (w->x[e] - *mean) * (w->x[e] - *mean) : w->x[e];
  return sum / ((double)w->n * positions_of(w->out));
}

static void batchnorm(const work *w) {
  size_t values = shoal_shape_values(w->out);
  double count = (double)w->n * positions_of(w->out);
  const double *gamma = weights_of(w, 0), *beta = weights_of(w, 1);
  for (uint32_t c = 0; c < channels_of(w->out); c++) {
    double mean = weights_of(w, 2)[c], variance = weights_of(w, 3)[c];
    if (w->r->training) {
      mean = channel_mean(w, c, NULL);
      variance = channel_mean(w, c, &mean);
      if (!w->r->moving) {
        statistics_of(w, 2)[c] = mean;
        statistics_of(w, 3)[c] = count > 1 ? variance * count / (count - 1) : variance; /* the unbiased one */
      }
    }
    double scale = gamma[c] / sqrt(variance + (double)SHOAL_NORM_EPS);
    for (size_t e = 0; e < w->n * values; e++)
      if (channel_of(w->out, e % values) == c) w->y[e] = (w->x[e] - mean) * scale + beta[c];
  }
}

/* A row is a sample, or a step of a sequence. */
static void layernorm(const work *w) {
  size_t width = shoal_shape_values(w->out) / w->out->steps;
  const double *gamma = weights_of(w, 0), *beta = weights_of(w, 1);
  for (size_t row = 0; row < (size_t)w->n * w->out->steps; row++) {
    const double *x = w->x + row * width;
    double mean = 0, variance = 0;
    for (size_t i = 0; i < width; i++) mean += x[i] / (double)width;
    for (size_t i = 0; i < width; i++) variance += (x[i] - mean) * (x[i] - mean) / (double)width;
    double scale = 1 / sqrt(variance + (double)SHOAL_NORM_EPS);
    for (size_t i = 0; i < width; i++) w->y[row * width + i] = (x[i] - mean) * scale * gamma[i] + beta[i];
  }
}

static void dropout(const work *w) {
  const reference *r = w->r;
  size_t values = shoal_shape_values(w->out);
  double rate = w->node->rate;
  uint32_t threshold = (uint32_t)(rate * 0x1p32);
  for (uint32_t i = 0; i < w->n; i++) {
    uint64_t seed = r->graph->model->recipe.seed + ((uint64_t)w->index << 48);
    shoal_key key = shoal_key_make(seed, SHOAL_FOR_DROPOUT, r->epoch, r->ids[i]);
    for (size_t e = 0; e < values; e++) {
      uint32_t numbers[4];
      shoal_random_block(key, 0, e / 4, numbers);
      bool kept = numbers[e % 4] >= threshold;
      double x = w->x[i * values + e];
      w->y[i * values + e] = !r->training ? x : kept ? x / (1 - rate) : 0;
    }
  }
}

/* ---- values that only move ---- */

static void input(const work *w) { (void)w; }

static void same(const work *w) { memcpy(w->y, w->x, w->n * shoal_shape_values(w->out) * sizeof *w->y); }

static void last(const work *w) {
  uint32_t width = w->out->features;
  for (size_t i = 0; i < w->n; i++)
    memcpy(w->y + i * width, w->x + (i * w->in->steps + w->node->step) * width, width * sizeof *w->y);
}

static void repeat(const work *w) {
  uint32_t width = w->out->features, steps = w->out->steps;
  for (size_t row = 0; row < (size_t)w->n * steps; row++)
    memcpy(w->y + row * width, w->x + row / steps * width, width * sizeof *w->y);
}

static void add(const work *w) {
  const double *other = w->r->value[w->node->inputs[1]];
  for (size_t e = 0; e < w->n * shoal_shape_values(w->out); e++) w->y[e] = w->x[e] + other[e];
}

/* Each input's channels, or each step's features, one after the other. */
static void concat(const work *w) {
  const shoal_graph *graph = w->r->graph;
  uint32_t steps = w->out->steps;
  size_t whole = shoal_shape_values(w->out) / steps, before = 0;
  for (uint32_t k = 0; k < w->node->inputs_count; k++) {
    uint32_t from = w->node->inputs[k];
    size_t part = shoal_shape_values(&graph->nodes[from].shape) / steps;
    for (size_t row = 0; row < (size_t)w->n * steps; row++)
      memcpy(w->y + row * whole + before, w->r->value[from] + row * part, part * sizeof *w->y);
    before += part;
  }
}

/* ---- how many terms a sum has ---- */

static double inputs_and_outputs(const work *w) { return (double)w->in->features + w->out->features; }

/* Winograd's way has up to six times the error of the sum itself (kernels/winograd.isa.c). */
static double window_terms(const work *w) {
  const shoal_window *s = &w->node->window;
  double terms = (double)(s->in_c + s->out_c) * s->k_h * s->k_w;
  return shoal_winograd_suits(s) ? 6 * terms : terms;
}

static double pool_terms(const work *w) { return (double)w->node->window.k_h * w->node->window.k_w; }

/* The state goes through all steps. */
static double recurrent_terms(const work *w) {
  return (double)w->out->steps * (w->in->features + 4.0 * w->out->features);
}

static double channel_terms(const work *w) { return (double)w->n * positions_of(w->out); }
static double row_terms(const work *w) { return (double)shoal_shape_values(w->out) / w->out->steps; }

/* ---- the table ---- */

typedef struct formula {
  const char *word;
  void (*forward)(const work *w);
  double (*terms)(
      const work *w); /* of the longest sum in either direction, but for sums over samples; NULL: 1 */
} formula;

static const formula FORMULAS[] = {
    {"input", input, NULL},
    {"dense", dense, inputs_and_outputs},
    {"conv", conv, window_terms},
    {"pool", pool, pool_terms},
    {"flatten", same, NULL},
    {"reshape", same, NULL},
    {"embed", embed, NULL},
    {"lookup", lookup, NULL},
    {"rnn", rnn, recurrent_terms},
    {"lstm", lstm, recurrent_terms},
    {"gru", gru, recurrent_terms},
    {"last", last, NULL},
    {"repeat", repeat, NULL},
    {"dropout", dropout, NULL},
    {"batchnorm", batchnorm, channel_terms},
    {"layernorm", layernorm, row_terms},
    {"add", add, NULL},
    {"concat", concat, NULL},
    {"activation", activation, row_terms},
};

static const formula *formula_of(const shoal_node *node) {
  for (size_t i = 0; i < sizeof FORMULAS / sizeof FORMULAS[0]; i++)
    if (strcmp(FORMULAS[i].word, node->op->word) == 0) return &FORMULAS[i];
  fail_msg("tests/nn/reference.c has no formula for '%s'", node->op->word);
  return NULL;
}

static work work_of(const reference *r, uint32_t index) {
  const shoal_node *node = &r->graph->nodes[index];
  work w = {.r = r, .node = node, .out = &node->shape, .index = index, .n = r->n, .y = r->value[index]};
  if (node->inputs_count > 0) {
    w.in = &r->graph->nodes[node->inputs[0]].shape;
    w.x = r->value[node->inputs[0]];
  }
  return w;
}

/* ---- from create to destroy ---- */

static const shoal_shape *output_shape(const reference *r) {
  return &r->graph->nodes[r->graph->nodes_count - 1].shape;
}

reference *reference_create(const shoal_graph *graph, const float *weights, uint32_t n, bool training) {
  reference *r = zeros(1, sizeof *r);
  *r = (reference){.graph = graph, .n = n, .training = training};
  r->weights = doubles(graph->weights_count);
  r->statistics = doubles(graph->weights_count);
  for (uint32_t i = 0; i < graph->params_count; i++) /* what lies between parameters is nobody's */
    for (size_t e = 0; e < graph->params[i].count; e++)
      r->weights[graph->params[i].offset + e] = weights[graph->params[i].offset + e];
  r->settled = zeros(graph->nodes_count, sizeof *r->settled);
  r->moved = zeros(graph->nodes_count, sizeof *r->moved);
  r->value = zeros(graph->nodes_count, sizeof *r->value);
  r->state = zeros(graph->nodes_count, sizeof *r->state);
  r->state_after = zeros(graph->nodes_count, sizeof *r->state_after);
  for (uint32_t i = 0; i < graph->nodes_count; i++) {
    const shoal_node *node = &graph->nodes[i];
    r->settled[i] = doubles(n * shoal_shape_values(&node->shape));
    r->moved[i] = doubles(n * shoal_shape_values(&node->shape));
    r->value[i] = r->settled[i];
    if (node->op->carries == 0) continue;
    r->state[i] = doubles(2 * (size_t)n * node->shape.features);
    r->state_after[i] = doubles(2 * (size_t)n * node->shape.features);
  }
  const shoal_shape *out = output_shape(r);
  size_t answers = (size_t)n * out->steps;
  r->labels = zeros(answers, sizeof *r->labels);
  r->targets = doubles(answers * out->features);
  r->answer_weights = doubles(answers);
  r->ids = zeros(n, sizeof *r->ids);
  return r;
}

void reference_destroy(reference *r) {
  if (r == NULL) return;
  for (uint32_t i = 0; i < r->graph->nodes_count; i++) {
    free(r->settled[i]);
    free(r->moved[i]);
    free(r->state[i]);
    free(r->state_after[i]);
  }
  free(r->settled);
  free(r->moved);
  free(r->value);
  free(r->state);
  free(r->state_after);
  free(r->weights);
  free(r->statistics);
  free(r->labels);
  free(r->targets);
  free(r->answer_weights);
  free(r->ids);
  free(r);
}

/* ---- a batch ---- */

/* A sample fetched alone has its values in their order, an image's with a lane's distance. */
static void fetch_sample(reference *r, const shoal_source *source, uint64_t position, uint32_t i) {
  const shoal_shape *in = &r->graph->nodes[0].shape, *out = output_shape(r);
  size_t values = shoal_shape_values(in), answers = (size_t)out->steps * out->features;
  size_t distance = in->kind == SHOAL_IMAGE ? shoal_lanes_for(1) : 1;
  bool tokens = in->kind == SHOAL_TOKENS, labels = r->graph->model->recipe.loss == SHOAL_CROSS_ENTROPY;
  float *x = zeros(values * distance, sizeof *x), *targets = zeros(answers, sizeof *targets),
        *weight = zeros(out->steps, sizeof *weight);
  int32_t *numbers = zeros(values, sizeof *numbers);
  shoal_batch into = {.x = tokens ? NULL : x,
                      .tokens = tokens ? numbers : NULL,
                      .labels = labels ? r->labels + (size_t)i * out->steps : NULL,
                      .targets = labels ? NULL : targets,
                      .weight = weight,
                      .ids = &r->ids[i]};
  source->fetch(source->self, r->epoch, position, 1, &into);
  for (size_t e = 0; e < values; e++)
    r->settled[0][i * values + e] = tokens ? numbers[e] : (double)x[e * distance];
  for (size_t e = 0; e < answers; e++) r->targets[i * answers + e] = targets[e];
  for (uint32_t t = 0; t < out->steps; t++) r->answer_weights[(size_t)i * out->steps + t] = weight[t];
  free(x);
  free(targets);
  free(weight);
  free(numbers);
}

static void run_node(const reference *r, uint32_t index) {
  work w = work_of(r, index);
  formula_of(w.node)->forward(&w);
}

void reference_batch(reference *r, const shoal_source *source, uint64_t epoch, uint64_t first) {
  r->epoch = epoch;
  for (uint32_t i = 0; i < r->n; i++) fetch_sample(r, source, first + i, i);
  for (uint32_t i = 0; i < r->graph->nodes_count; i++) {
    const shoal_node *node = &r->graph->nodes[i];
    if (node->op->carries > 0 && r->graph->model->carry)
      memcpy(r->state[i], r->state_after[i], 2 * (size_t)r->n * node->shape.features * sizeof(double));
    run_node(r, i);
  }
}

const double *reference_output(const reference *r, uint32_t node) { return r->settled[node]; }

void reference_predictions(const reference *r, double *out) {
  const shoal_shape *shape = output_shape(r);
  activate(r->graph->output_activation, r->n * shoal_shape_values(shape), shape->features,
           r->settled[r->graph->nodes_count - 1], out);
}

/* ---- the loss ---- */

static double element_loss(const shoal_recipe *recipe, double p, double t) {
  double distance = fabs(p - t), delta = recipe->huber_delta;
  switch (recipe->loss) {
  case SHOAL_MEAN_SQUARED: return distance * distance;
  case SHOAL_MEAN_ABSOLUTE: return distance;
  case SHOAL_HUBER: return distance <= delta ? distance * distance / 2 : delta * (distance - delta / 2);
  case SHOAL_BINARY_CROSS_ENTROPY: return log1p(exp(p)) - t * p; /* of a logit */
  case SHOAL_CROSS_ENTROPY: break;
  }
  fail_msg("cross-entropy has no loss of one element");
  return NAN;
}

/* The loss of an answer: of a sample, or of a step. */
static double answer_loss(const reference *r, size_t answer) {
  const shoal_recipe *recipe = &r->graph->model->recipe;
  uint32_t features = output_shape(r)->features;
  const double *p = r->value[r->graph->nodes_count - 1] + answer * features;
  double sum = 0;
  if (recipe->loss == SHOAL_CROSS_ENTROPY) {
    for (uint32_t f = 0; f < features; f++) sum += exp(p[f]);
    return log(sum) - p[r->labels[answer]];
  }
  for (uint32_t f = 0; f < features; f++)
    sum += element_loss(recipe, p[f], r->targets[answer * features + f]);
  return sum / features;
}

reference_loss reference_loss_of(const reference *r) {
  uint32_t steps = output_shape(r)->steps;
  reference_loss loss = {0};
  for (size_t i = 0; i < (size_t)r->n * steps; i++) {
    if (r->answer_weights[i] != 0) loss.sum += r->answer_weights[i] * answer_loss(r, i);
    loss.weight += r->answer_weights[i];
  }
  loss.objective = loss.sum / r->n / (r->graph->model->recipe.sum_steps ? 1 : steps);
  return loss;
}

/* ---- slopes ---- */

static const shoal_param *param_of(const shoal_graph *graph, size_t weight, uint32_t *index) {
  for (uint32_t i = 0; i < graph->params_count; i++) {
    const shoal_param *p = &graph->params[i];
    *index = i;
    if (weight >= p->offset && weight < p->offset + p->count) return p;
  }
  fail_msg("there is no weight %zu", weight);
  return NULL;
}

static bool node_has_param(const shoal_node *node, uint32_t param) {
  for (int i = 0; i < SHOAL_NODE_PARAMS_MAX; i++)
    if (node->params[i] == param) return true;
  return false;
}

/* The objective at these weights, with all nodes computed again that the parameter reaches. */
static double objective_moved(reference *r, uint32_t param) {
  for (uint32_t i = 0; i < r->graph->nodes_count; i++) {
    const shoal_node *node = &r->graph->nodes[i];
    bool reached = node_has_param(node, param);
    for (uint32_t k = 0; k < node->inputs_count; k++)
      reached |= r->value[node->inputs[k]] == r->moved[node->inputs[k]];
    if (!reached) continue;
    r->value[i] = r->moved[i];
    run_node(r, i);
  }
  double objective = reference_loss_of(r).objective;
  for (uint32_t i = 0; i < r->graph->nodes_count; i++) r->value[i] = r->settled[i];
  return objective;
}

double reference_slope(reference *r, size_t weight) {
  /* A millionth is so small that kinks of relu, of pools and of losses lie elsewhere, and so large that a double's
   * rounding leaves ten digits. */
  const double step = 1e-6;
  uint32_t param;
  if (param_of(r->graph, weight, &param)->kind == SHOAL_PARAM_STATISTIC) return r->statistics[weight];
  double before = r->weights[weight], objective[2];
  r->moving = true;
  for (int side = 0; side < 2; side++) {
    r->weights[weight] = side == 0 ? before - step : before + step;
    objective[side] = objective_moved(r, param);
  }
  r->moving = false;
  r->weights[weight] = before;
  return (objective[1] - objective[0]) / (2 * step);
}

/* ---- roundings ---- */

double reference_terms(const reference *r, bool backward) {
  enum { OF_A_FUNCTION = 4 };
  double terms = output_shape(r)->features, samples = 0;
  for (uint32_t i = 0; i < r->graph->nodes_count; i++) {
    work w = work_of(r, i);
    const formula *f = formula_of(w.node);
    terms += OF_A_FUNCTION + (f->terms != NULL ? f->terms(&w) : 1);
    samples = fmax(samples, (double)r->n * positions_of(w.out));
  }
  return backward ? 2 * terms + samples : terms;
}
