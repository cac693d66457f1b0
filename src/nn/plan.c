/* plan.c: lifetimes, then places.
 *
 * 1. Which nodes need a gradient, which may work in place of their input, and which
 *    values the backward pass reads again.
 * 2. Each buffer gets the first and the last step that touches it.
 * 3. Buffers are placed by size, largest first, each at the lowest offset where no
 *    buffer that lives at the same time stands. For the few hundred buffers of a model
 *    the quadratic search costs less than a millisecond. */
#include "nn/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "nn/loss.h"
#include "nn/op.h"
#include "nn/tree.h"

enum { ALIGN = 16 };
#define FLOATS_MAX ((size_t)1 << 48) /* far beyond any machine, far below what size_t holds */

typedef struct buffer {
  size_t floats;
  uint32_t first, last; /* steps, both included */
  size_t *place;        /* where the offset goes */
} buffer;

/* What is known of a node. */
typedef struct facts {
  bool needs_gradient;      /* its output does, in training */
  uint32_t readers;         /* how many inputs read it, */
  uint32_t last_reader;     /* and the last node that does */
  uint32_t last_use;        /* the last step that reads its value, without those that share its buffer */
  uint32_t shares;          /* the node whose value buffer it uses: itself, or its input's */
  uint32_t gradient_shares; /* the same of gradients: itself, or its reader's */
} facts;

typedef struct planner {
  shoal_plan *plan;
  const shoal_graph *graph;
  facts *of; /* each node */
  buffer *buffers;
  uint32_t buffers_count;
  uint32_t nodes;
  bool loss_in_place; /* the output's gradient overwrites the output */
  size_t wanted;      /* floats of all buffers, before they share memory */
  bool too_large;
} planner;

size_t shoal_shape_floats(const shoal_shape *shape, uint32_t n) {
  size_t rows = shape->kind == SHOAL_IMAGE ? shoal_lanes_for(n) : n;
  return (size_t)shoal_shape_values(shape) * rows;
}

/* Floats of a node's output, for as many samples as there may be. */
static size_t output_floats(const planner *p, uint32_t node) {
  return shoal_shape_floats(&p->graph->nodes[node].shape, p->plan->samples_max);
}

static uint32_t time_forward(uint32_t node) { return node; }
static uint32_t time_loss(const planner *p) { return p->nodes; }
static uint32_t time_backward(const planner *p, uint32_t node) { return 2 * p->nodes - node; }

static uint32_t later(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* True if the node's operation can, and nobody else reads what it works on. */
static bool works_in_place(const planner *p, uint32_t i, unsigned trait) {
  const shoal_node *node = &p->graph->nodes[i];
  return node->inputs_count == 1 && p->of[node->inputs[0]].readers == 1 && shoal_node_is(node, trait);
}

static void analyse(planner *p) {
  p->of[0].needs_gradient = p->plan->input_gradient;
  for (uint32_t i = 0; i < p->nodes; i++) {
    const shoal_node *node = &p->graph->nodes[i];
    facts *of = &p->of[i];
    of->shares = of->gradient_shares = i;
    /* Rows are counted in 32 bits: a sample of a sequence is as many as it has steps. */
    p->too_large |= (uint64_t)p->plan->samples_max * node->shape.steps > INT32_MAX;
    for (int k = 0; k < SHOAL_NODE_PARAMS_MAX; k++)
      of->needs_gradient |= p->plan->training && node->params[k] != SHOAL_NO_PARAM;
    for (uint32_t k = 0; k < node->inputs_count; k++)
      of->needs_gradient |= p->of[node->inputs[k]].needs_gradient;
    bool reads_input = of->needs_gradient && shoal_node_is(node, SHOAL_OP_READS_INPUT);
    bool reads_output = of->needs_gradient && shoal_node_is(node, SHOAL_OP_READS_OUTPUT);
    of->last_use = reads_output ? time_backward(p, i) : i + 1 == p->nodes ? time_loss(p) : time_forward(i);
    for (uint32_t k = 0; k < node->inputs_count; k++) {
      facts *input = &p->of[node->inputs[k]];
      input->readers++;
      input->last_reader = i;
      input->last_use = later(input->last_use, reads_input ? time_backward(p, i) : time_forward(i));
    }
  }
  for (uint32_t i = 0; i < p->nodes; i++) {
    if (!works_in_place(p, i, SHOAL_OP_IN_PLACE)) continue;
    uint32_t input = p->graph->nodes[i].inputs[0];
    bool input_needed = p->plan->training && shoal_node_is(&p->graph->nodes[input], SHOAL_OP_READS_OUTPUT);
    if (!input_needed) p->of[i].shares = p->of[input].shares;
  }
  /* Gradients flow from a node to its input: the input takes over the node's buffer. */
  for (uint32_t i = p->nodes; i-- > 0;)
    if (works_in_place(p, i, SHOAL_OP_GRADIENT_IN_PLACE))
      p->of[p->graph->nodes[i].inputs[0]].gradient_shares = p->of[i].gradient_shares;
  uint32_t output = p->nodes - 1;
  p->loss_in_place =
      p->of[output].needs_gradient && !shoal_node_is(&p->graph->nodes[output], SHOAL_OP_READS_OUTPUT);
}

static void want(planner *p, size_t *place, size_t floats, uint32_t first, uint32_t last) {
  *place = SHOAL_NOWHERE;
  if (floats == 0) return;
  size_t rounded = (floats + ALIGN - 1) / ALIGN * ALIGN;
  p->too_large |= rounded > FLOATS_MAX - p->wanted;
  if (p->too_large) return;
  p->wanted += rounded;
  buffer *b = &p->buffers[p->buffers_count++];
  *b = (buffer){rounded, first, last, place};
}

/* The last step that touches the gradient buffer of node i, which others may share. */
static uint32_t last_gradient_use(const planner *p, uint32_t i) {
  uint32_t last = time_backward(p, i);
  for (uint32_t j = 0; j < i; j++)
    if (p->of[j].gradient_shares == i && p->of[j].needs_gradient) last = later(last, time_backward(p, j));
  return last;
}

static void want_values(planner *p) {
  uint32_t output = p->nodes - 1;
  for (uint32_t i = 0; i < p->nodes; i++) {
    if (p->of[i].shares != i) continue;
    uint32_t last = p->of[i].last_use;
    for (uint32_t j = i + 1; j < p->nodes; j++)
      if (p->of[j].shares == i) last = later(last, p->of[j].last_use);
    if (p->loss_in_place && p->of[output].shares == i) last = later(last, last_gradient_use(p, output));
    want(p, &p->plan->places[i].value, output_floats(p, i), time_forward(i), last);
  }
}

static void want_gradients(planner *p) {
  for (uint32_t i = 0; i < p->nodes; i++) {
    if (!p->of[i].needs_gradient || p->of[i].gradient_shares != i) continue;
    if (p->loss_in_place && i + 1 == p->nodes) continue;
    /* Its last reader is the first to write it, or the loss. */
    uint32_t born = i + 1 == p->nodes ? time_loss(p) : time_backward(p, p->of[i].last_reader);
    want(p, &p->plan->places[i].gradient, output_floats(p, i), born, last_gradient_use(p, i));
  }
}

/* Is the gradient of input k of node i already there when node i's backward runs? */
static bool written_before(const planner *p, uint32_t i, uint32_t k) {
  uint32_t input = p->graph->nodes[i].inputs[k];
  for (uint32_t m = 0; m < k; m++)
    if (p->graph->nodes[i].inputs[m] == input) return true;
  return p->of[input].last_reader > i;
}

static void want_work(planner *p) {
  shoal_plan *plan = p->plan;
  const shoal_kernels *kernels = plan->device->kernels;
  for (uint32_t i = 0; i < p->nodes; i++) {
    const shoal_node *node = &p->graph->nodes[i];
    shoal_place *place = &plan->places[i];
    uint32_t forward = time_forward(i), backward = time_backward(p, i);
    bool trains = p->of[i].needs_gradient;
    size_t saved = node->op->saved ? node->op->saved(node, plan->samples_max) : 0;
    want(p, &place->saved, saved, forward, trains ? backward : forward);
    for (int back = 0; node->op->scratch != NULL && back <= trains; back++) {
      uint32_t time = back ? backward : forward;
      want(p, &place->scratch[back], node->op->scratch(node, kernels, plan->samples_max, back), time, time);
    }
    for (uint32_t k = 0; trains && k < node->inputs_count; k++) {
      uint32_t input = node->inputs[k];
      if (p->of[input].needs_gradient && written_before(p, i, k))
        want(p, &place->partial[k], output_floats(p, input), backward, backward);
    }
  }
}

static void want_batch(planner *p) {
  shoal_plan *plan = p->plan;
  const shoal_shape *out = &p->graph->nodes[p->nodes - 1].shape;
  bool labels = shoal_targets_of(&p->graph->model->recipe) == SHOAL_TARGET_CLASSES;
  size_t rows = (size_t)plan->samples_max * out->steps;
  uint32_t end = 2 * p->nodes;
  bool random = shoal_graph_has(p->graph, SHOAL_OP_RANDOM);
  want(p, &plan->labels, labels ? rows : 0, 0, end);
  want(p, &plan->targets, labels ? 0 : rows * out->features, 0, end);
  want(p, &plan->weight, rows, 0, end);
  want(p, &plan->ids, random ? 2 * (size_t)plan->samples_max : 0, 0, end);
  want(p, &plan->keys, random ? 2 * (size_t)plan->samples_max : 0, 0, end);
  want(p, &plan->sums, SHOAL_LOSS_PIECES * sizeof(shoal_sums) / sizeof(float), 0, end);
}

static int by_size(const void *left, const void *right) {
  const buffer *a = left, *b = right;
  if (a->floats != b->floats) return a->floats < b->floats ? 1 : -1;
  return a->first < b->first ? -1 : a->first > b->first;
}

static void place_buffers(planner *p) {
  qsort(p->buffers, p->buffers_count, sizeof *p->buffers, by_size);
  for (uint32_t i = 0; i < p->buffers_count; i++) {
    buffer *b = &p->buffers[i];
    size_t offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (uint32_t j = 0; j < i; j++) {
        const buffer *other = &p->buffers[j];
        bool together = b->first <= other->last && other->first <= b->last;
        bool overlap = offset < *other->place + other->floats && *other->place < offset + b->floats;
        if (!together || !overlap) continue;
        offset = *other->place + other->floats;
        moved = true;
      }
    }
    *b->place = offset;
    if (offset + b->floats > p->plan->floats) p->plan->floats = offset + b->floats;
  }
}

static void share_places(planner *p) {
  shoal_place *places = p->plan->places;
  for (uint32_t i = 0; i < p->nodes; i++) places[i].value = places[p->of[i].shares].value;
  if (p->loss_in_place) places[p->nodes - 1].gradient = places[p->nodes - 1].value;
  for (uint32_t i = 0; i < p->nodes; i++)
    if (p->of[i].needs_gradient) places[i].gradient = places[p->of[i].gradient_shares].gradient;
}

shoal_status shoal_plan_create(shoal_plan **out, const shoal_graph *graph, const shoal_device *device,
                               shoal_plan_use use, uint32_t samples_max, shoal_error *err) {
  SHOAL_ASSERT(samples_max > 0);
  *out = NULL;
  bool training = use != SHOAL_PLAN_INFER, input_gradient = use == SHOAL_PLAN_TRAIN_INPUT;
  if (input_gradient && graph->nodes[0].shape.kind == SHOAL_TOKENS)
    return shoal_fail(err, SHOAL_INVALID, "the model's input is tokens, which have no gradient");
  shoal_status status = SHOAL_NO_MEMORY;
  shoal_arena work;
  shoal_arena_init(&work, (size_t)1 << 30);
  uint32_t nodes = graph->nodes_count;
  shoal_plan *plan = calloc(1, sizeof *plan);
  if (plan == NULL) goto fail;
  *plan = (shoal_plan){.graph = graph,
                       .device = device,
                       .training = training,
                       .input_gradient = input_gradient,
                       .samples_max = samples_max};
  plan->places = malloc(nodes * sizeof *plan->places);
  planner p = {.plan = plan, .graph = graph, .nodes = nodes};
  p.of = shoal_arena_array(&work, nodes, sizeof *p.of);
  p.buffers = shoal_arena_array(&work, (size_t)nodes * (5 + SHOAL_LAYER_INPUTS_MAX) + 8, sizeof *p.buffers);
  if (plan->places == NULL || p.of == NULL || p.buffers == NULL) goto fail;

  memset(plan->places, 0xff, nodes * sizeof *plan->places); /* SHOAL_NOWHERE */
  analyse(&p);
  want_values(&p);
  want_gradients(&p);
  want_work(&p);
  want_batch(&p);
  if (p.too_large) {
    status =
        shoal_fail(err, SHOAL_LIMIT, "the model is too large for %u samples at a time; try a smaller --batch",
                   samples_max);
    goto fail;
  }
  place_buffers(&p);
  share_places(&p);
  shoal_arena_release(&work);
  *out = plan;
  return SHOAL_OK;

fail:
  shoal_arena_release(&work);
  shoal_plan_destroy(plan);
  return status == SHOAL_NO_MEMORY ? shoal_fail(err, status, "not enough memory to plan the model") : status;
}

void shoal_plan_destroy(shoal_plan *plan) {
  if (plan == NULL) return;
  free(plan->places);
  free(plan);
}
