/* owner.c: see owner.h.
 *
 * Rounds that may be under way at once are version .. version + stale. Each has a place in a
 * ring, with the sums of nodes of the tree that are there so far. A sum lies at its first part.
 * Whenever both halves of a node are there, they become one. With a rule they stay apart until all are there. */
#include "proto/owner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "nn/tree.h"
#include "proto/chief.h"
#include "proto/codec.h"
#include "proto/held.h"
#include "proto/proof.h"

/* A round's place in `seen` is not taken by another while the chief may still lease it. */
enum { SEEN_ROUNDS = 1 << 14 };
_Static_assert((int)SEEN_ROUNDS >= (int)SHOAL_ASYNC_WINDOW_MAX,
               "rounds under way at once must have places of their own");
static const double LAG_SHARE = 0.05; /* of the newest in the average */
static const double AHEAD = 1.3;      /* of the lag: a bit more than it dampens swings */
static const double RAMP_EPOCHS = 0.5;

/* The sum of a node, at its first part. */
typedef struct node_sum {
  shoal_blob *sum; /* or NULL */
  uint64_t lease;  /* it came under; 0: none */
  uint32_t width;  /* the node's power of two */
  bool covered;    /* this part is in some sum already */
} node_sum;

/* A round that is being summed. */
typedef struct summing {
  node_sum *nodes;   /* one a part */
  shoal_blob *right; /* what is still to be added to the first node's sum, for the whole; or NULL */
  shoal_blob *cut;   /* leases whose contributions the rule has cut or left out, 8 bytes each; or NULL */
  bool asked;        /* the squares are with the chief */
} summing;

typedef struct waiting {
  uint64_t peer, version, generation;
  bool with_slots;
} waiting;

struct shoal_owner {
  shoal_owner_config config;
  uint64_t generation;
  shoal_owner_state state;
  shoal_blob *weights; /* the state's; shared with those who pulled them */
  summing *rounds;     /* a ring of stale + 1 */
  uint32_t rounds_count;
  uint64_t *seen;    /* async: which round was applied last at place round % SEEN_ROUNDS, plus 1 */
  double lag;        /* of contributions, in versions, averaged */
  shoal_blob *ahead; /* what late contributions are computed from, once somebody asked; NULL: the weights */
  waiting *pulls;
  uint32_t pulls_count, pulls_size;
  uint64_t chief;              /* the peer that said WELCOME; 0 for none */
  bool save, restore, lacking; /* lacking: the driver had no such version, the chief may */
  uint64_t save_version, restore_version, restore_generation;
  uint64_t keeps[SHOAL_OWNER_KEEPS_MAX]; /* versions that stay on disk beside save_version */
  uint32_t keeps_count;
  shoal_held held;            /* guarded */
  shoal_aggregate *aggregate; /* NULL: the mean */
  const float **apart;        /* with it: a round's contributions, by part */
  uint8_t *verdicts;          /* and what the rule says of them */
  uint64_t kept_version;      /* the last that was kept on disk since create or restore; UINT64_MAX: none */
  shoal_outbox outbox;
};

static float *floats_of(shoal_blob *blob) { return (float *)(void *)shoal_blob_bytes(blob); }

static float *floats(size_t count, bool *ok) {
  float *made = aligned_alloc(64, (count * sizeof *made + 63) / 64 * 64 + 64);
  if (made == NULL)
    *ok = false;
  else
    memset(made, 0, count * sizeof *made);
  return made;
}

static bool has_rule(const shoal_owner_config *config) {
  return config->rule.kind != SHOAL_RULE_MEAN || config->rule.bucket > 1;
}

static shoal_status make_aggregate(shoal_owner *o, shoal_error *err) {
  const shoal_owner_config *config = &o->config;
  if (!has_rule(config)) return SHOAL_OK;
  const shoal_aggregate_config rule = {.rule = config->rule,
                                       .kernels = config->kernels,
                                       .contributions = config->parts,
                                       .count = config->slice.count};
  if (config->mode.kind == SHOAL_ASYNC)
    return shoal_fail(err, SHOAL_INVALID,
                      "in mode async contributions come one by one: a rule has nothing to compare");
  o->apart = calloc(config->parts, sizeof *o->apart);
  o->verdicts = calloc(config->parts, sizeof *o->verdicts);
  if (o->apart == NULL || o->verdicts == NULL)
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for %u parts", config->parts);
  shoal_status status = shoal_aggregate_create(&o->aggregate, &rule, err);
  if (status == SHOAL_OK) o->state.centre = shoal_aggregate_centre(o->aggregate);
  return status;
}

shoal_status shoal_owner_create(shoal_owner **out, const shoal_owner_config *config, shoal_error *err) {
  SHOAL_ASSERT(config->parts > 0);
  *out = NULL;
  shoal_owner *o = calloc(1, sizeof *o);
  if (o == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a parameter server");
  bool ok = true;
  size_t count = config->slice.count;
  uint32_t slots = shoal_optimizer_rows[config->graph->model->recipe.optimizer].slots;
  o->config = *config;
  o->weights = shoal_blob_create(count * sizeof(float));
  ok &= o->weights != NULL;
  if (ok) {
    o->state.weights = floats_of(o->weights);
    memset(o->state.weights, 0, count * sizeof(float));
  }
  bool local = config->mode.kind == SHOAL_LOCAL; /* the outer momentum is the only slot then */
  if (slots > 0 || local) o->state.slot1 = floats(count, &ok);
  if (slots > 1 && !local) o->state.slot2 = floats(count, &ok);
  o->save_version = o->kept_version = UINT64_MAX;
  o->rounds_count = config->mode.stale + 1;
  o->rounds = calloc(o->rounds_count, sizeof *o->rounds);
  ok &= o->rounds != NULL;
  for (uint32_t i = 0; ok && i < o->rounds_count; i++) {
    o->rounds[i].nodes = calloc(config->parts, sizeof *o->rounds[i].nodes);
    ok &= o->rounds[i].nodes != NULL;
  }
  if (config->mode.kind == SHOAL_ASYNC) {
    o->seen = calloc(SEEN_ROUNDS, sizeof *o->seen);
    ok &= o->seen != NULL;
  }
  shoal_status status =
      ok ? make_aggregate(o, err)
         : shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a slice of %zu weights", count);
  if (status != SHOAL_OK) {
    shoal_owner_destroy(o);
    return status;
  }
  *out = o;
  return SHOAL_OK;
}

static void clear_round(shoal_owner *o, summing *r) {
  for (uint32_t p = 0; p < o->config.parts; p++) {
    shoal_blob_release(r->nodes[p].sum);
    r->nodes[p] = (node_sum){0};
  }
  shoal_blob_release(r->right);
  shoal_blob_release(r->cut);
  r->right = r->cut = NULL;
  r->asked = false;
}

void shoal_owner_destroy(shoal_owner *o) {
  if (o == NULL) return;
  for (uint32_t i = 0; o->rounds != NULL && i < o->rounds_count; i++) {
    if (o->rounds[i].nodes != NULL) clear_round(o, &o->rounds[i]);
    free(o->rounds[i].nodes);
  }
  free(o->rounds);
  free(o->seen);
  free(o->apart);
  free(o->verdicts);
  shoal_aggregate_destroy(o->aggregate);
  shoal_held_release(&o->held);
  shoal_blob_release(o->ahead);
  shoal_blob_release(o->weights);
  free(o->state.slot1);
  free(o->state.slot2);
  free(o->pulls);
  shoal_outbox_release(&o->outbox);
  free(o);
}

shoal_owner_state *shoal_owner_state_of(shoal_owner *o) { return &o->state; }
uint64_t shoal_owner_generation(const shoal_owner *o) { return o->generation; }
shoal_outbox *shoal_owner_outbox(shoal_owner *o) { return &o->outbox; }

static void say(shoal_owner *o, uint64_t peer, shoal_message m) {
  m.generation = o->generation;
  m.slice = o->config.slice_index;
  shoal_outbox_put(&o->outbox, peer, m);
}

/* ---- pulls ---- */

/* The weights and the slots behind them. */
static shoal_blob *copy_state(const shoal_owner *o) {
  size_t bytes = o->config.slice.count * sizeof(float);
  const float *parts[3] = {o->state.weights, o->state.slot1, o->state.slot2};
  size_t count = 1;
  while (count < 3 && parts[count] != NULL) count++;
  shoal_blob *blob = shoal_blob_create(count * bytes);
  SHOAL_ASSERT(blob != NULL);
  for (size_t i = 0; i < count; i++) memcpy(shoal_blob_bytes(blob) + i * bytes, parts[i], bytes);
  return blob;
}

/* A run, and where it lies in the slice, with the padding behind it. */
typedef struct stretch {
  const shoal_run *run;
  size_t first, count;
} stretch;

static stretch stretch_of(const shoal_owner *o, size_t index) {
  const shoal_slice *slice = &o->config.slice;
  const shoal_run *run = &o->config.graph->runs[slice->first_run + index];
  size_t first = run->offset - slice->offset;
  size_t end = index + 1 < slice->runs_count ? run[1].offset - slice->offset : slice->count;
  return (stretch){run, first, end - first};
}

/* What comes of these weights will be applied `lag` versions later. Momentum will have carried the
 * weights on by then, and a gradient taken where they will be is worth more than one taken where
 * they are: without this, momentum and delay together make the training swing. */
static void look_ahead(shoal_owner *o) {
  const shoal_recipe *recipe = &o->config.graph->model->recipe;
  bool has_momentum = shoal_optimizer_rows[recipe->optimizer].has_velocity;
  bool late = o->config.mode.kind == SHOAL_ASYNC || o->config.mode.kind == SHOAL_STALE;
  if (!late || !has_momentum || o->lag <= 0) return;
  o->ahead = shoal_blob_create(o->config.slice.count * sizeof(float));
  SHOAL_ASSERT(o->ahead != NULL);
  uint64_t version = o->state.version;
  float rate =
      shoal_recipe_rate_at(recipe, version / o->config.rounds, version % o->config.rounds, o->config.rounds);
  for (size_t i = 0; i < o->config.slice.runs_count; i++) {
    stretch at = stretch_of(o, i);
    float step = at.run->kind == SHOAL_PARAM_STATISTIC ? 0 : -rate * (float)(AHEAD * o->lag);
    o->config.kernels->add_scaled(at.count, o->state.weights + at.first, step, o->state.slot1 + at.first,
                                  floats_of(o->ahead) + at.first);
  }
}

/* All who ask for the same version share the same bytes. */
static void answer_pull(shoal_owner *o, const waiting *pull) {
  if (o->ahead == NULL && !pull->with_slots) look_ahead(o);
  shoal_blob *weights = o->ahead != NULL ? o->ahead : o->weights;
  say(o, pull->peer,
      (shoal_message){.kind = SHOAL_MSG_WEIGHTS,
                      .version = o->state.version,
                      .payload = pull->with_slots ? copy_state(o) : shoal_blob_share(weights)});
}

/* Slots are copied for each who asks, so they are for the chief alone: others could have copies made until
 * there is no memory left. (It may ask before its WELCOME is here, and is answered then.) */
static bool can_answer(const shoal_owner *o, const waiting *pull) {
  return pull->generation == o->generation && !o->restore && !o->lacking &&
         pull->version <= o->state.version && (!pull->with_slots || pull->peer == o->chief);
}

static void answer_pulls(shoal_owner *o) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < o->pulls_count; i++)
    if (can_answer(o, &o->pulls[i]))
      answer_pull(o, &o->pulls[i]);
    else
      o->pulls[kept++] = o->pulls[i];
  o->pulls_count = kept;
}

static void take_pull(shoal_owner *o, uint64_t peer, const shoal_message *m) {
  waiting pull = {
      .peer = peer, .version = m->version, .generation = m->generation, .with_slots = m->count > 0};
  if (can_answer(o, &pull)) {
    answer_pull(o, &pull);
    return;
  }
  /* One wait a peer, for what it asked for last: or a message that comes twice would be answered twice,
   * and each answer that is too old asked for again, for ever. */
  for (uint32_t i = 0; i < o->pulls_count; i++)
    if (o->pulls[i].peer == peer && o->pulls[i].with_slots == pull.with_slots) {
      o->pulls[i] = pull;
      return;
    }
  if (o->pulls_count == o->pulls_size) {
    o->pulls_size = o->pulls_size == 0 ? 16 : 2 * o->pulls_size;
    o->pulls = realloc(o->pulls, o->pulls_size * sizeof *o->pulls);
    SHOAL_ASSERT(o->pulls != NULL);
  }
  o->pulls[o->pulls_count++] = pull;
}

void shoal_owner_gone(shoal_owner *o, uint64_t peer) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < o->pulls_count; i++)
    if (o->pulls[i].peer != peer) o->pulls[kept++] = o->pulls[i];
  o->pulls_count = kept;
  if (o->chief == peer) o->chief = 0;
}

/* ---- rounds ---- */

static summing *round_of(shoal_owner *o, uint64_t round) { return &o->rounds[round % o->rounds_count]; }

/* Weights that somebody still has are left as they are: the new ones become a copy. Returns the old ones,
 * to be released, or NULL when the weights may be changed in their place. */
static shoal_blob *renew_weights(shoal_owner *o) {
  shoal_blob_release(o->ahead);
  o->ahead = NULL;
  if (!shoal_blob_is_shared(o->weights)) return NULL;
  shoal_blob *old = o->weights;
  o->weights = shoal_blob_create(shoal_blob_length(old));
  SHOAL_ASSERT(o->weights != NULL);
  o->state.weights = floats_of(o->weights);
  return old;
}

/* Where the slice begins, as if the whole vector were there: runs have their own offsets. */
static float *whole(const shoal_owner *o, float *slice) {
  return slice == NULL ? NULL : (float *)((uintptr_t)slice - o->config.slice.offset * sizeof(float));
}

/* The mean change of the weights is the outer optimiser's gradient, upside down. Running statistics get the mean itself:
 * with momentum a variance would end below zero. */
static void apply_outer(shoal_owner *o, shoal_blob *old, const float *sum) {
  const shoal_mode *mode = &o->config.mode;
  if (old != NULL) memcpy(o->state.weights, floats_of(old), o->config.slice.count * sizeof(float));
  for (size_t run = 0; run < o->config.slice.runs_count; run++) {
    stretch at = stretch_of(o, run);
    bool is_statistic = at.run->kind == SHOAL_PARAM_STATISTIC;
    float momentum = is_statistic ? 0 : mode->outer_momentum, rate = is_statistic ? 1 : mode->outer_rate;
    for (size_t i = at.first; i < at.first + at.count; i++) {
      float change = sum[i] / (float)o->config.parts;
      o->state.slot1[i] = momentum * o->state.slot1[i] + change;
      o->state.weights[i] += rate * (change + momentum * o->state.slot1[i]);
    }
  }
}

static bool is_whole(const shoal_owner *o, const summing *r) {
  return r->nodes[0].sum != NULL && r->nodes[0].width >= o->config.parts;
}

/* The sum of all parts of a round that is whole. */
static float *whole_sum(const shoal_owner *o, summing *r) {
  float *sum = floats_of(r->nodes[0].sum);
  if (r->right != NULL) o->config.kernels->add(o->config.slice.count, sum, floats_of(r->right), sum);
  shoal_blob_release(r->right);
  r->right = NULL;
  return sum;
}

/* Run by run: the halves of the sum are added and used while they are in the cache. What lies between
 * runs goes over as it is. */
static void apply_inner(shoal_owner *o, shoal_blob *old, summing *r, float scale) {
  const shoal_recipe *recipe = &o->config.graph->model->recipe;
  uint64_t version = o->state.version, rounds = o->config.rounds;
  float rate = shoal_recipe_rate_at(recipe, version / rounds, version % rounds, rounds);
  shoal_update update = shoal_optimizer_update(recipe, rate, version + 1);
  update.grad_scale = scale;
  float *sum = floats_of(r->nodes[0].sum), *weights = o->state.weights;
  float *from = old != NULL ? floats_of(old) : weights;
  for (size_t i = 0; i < o->config.slice.runs_count; i++) {
    stretch at = stretch_of(o, i);
    if (r->right != NULL)
      o->config.kernels->add(at.count, sum + at.first, floats_of(r->right) + at.first, sum + at.first);
    size_t end = at.first + at.run->count;
    if (old != NULL) memcpy(weights + end, from + end, (at.count - at.run->count) * sizeof(float));
    shoal_optimizer_apply(o->config.kernels, &update, at.run, whole(o, from), whole(o, weights),
                          whole(o, sum), whole(o, o->state.slot1), whole(o, o->state.slot2));
  }
}

static void apply(shoal_owner *o, summing *r, float scale) {
  shoal_blob *old = renew_weights(o);
  if (o->config.mode.kind == SHOAL_LOCAL)
    apply_outer(o, old, whole_sum(o, r));
  else
    apply_inner(o, old, r, scale);
  shoal_blob_release(old);
  o->state.version++;
}

static void send_squares(shoal_owner *o, summing *r) {
  const shoal_slice *slice = &o->config.slice;
  const float *sum = whole(o, whole_sum(o, r));
  shoal_blob *blob = shoal_blob_create(slice->runs_count * sizeof(double));
  SHOAL_ASSERT(blob != NULL);
  double *squares = (double *)(void *)shoal_blob_bytes(blob);
  for (size_t i = 0; i < slice->runs_count; i++) {
    const shoal_run *run = &o->config.graph->runs[slice->first_run + i];
    squares[i] = run->kind == SHOAL_PARAM_STATISTIC
                     ? 0
                     : shoal_square_sum(o->config.kernels, run->count, sum + run->offset);
  }
  say(o, o->chief, (shoal_message){.kind = SHOAL_MSG_SQUARES, .round = o->state.version, .payload = blob});
}

/* Late contributions start small, one part in 1 + lag, and grow to their full size over the first
 * half epoch: where the loss bends most, at the start, a late step of full size throws the weights far
 * off, and they hardly come back. */
static float late_scale(const shoal_owner *o) {
  if (o->config.mode.kind != SHOAL_ASYNC && o->config.mode.kind != SHOAL_STALE) return 1;
  double to_go = 1 - (double)o->state.version / (RAMP_EPOCHS * (double)o->config.rounds);
  return to_go > 0 ? (float)(1 / (1 + o->lag * to_go)) : 1;
}

static void finish_round(shoal_owner *o, summing *r, float scale) {
  apply(o, r, scale * late_scale(o));
  shoal_blob *cut = r->cut;
  r->cut = NULL;
  clear_round(o, r);
  if (o->save_version == o->state.version) o->save = true;
  if (o->chief != 0)
    say(o, o->chief, (shoal_message){.kind = SHOAL_MSG_APPLIED, .version = o->state.version, .payload = cut});
  else
    shoal_blob_release(cut);
  answer_pulls(o);
}

/* What the chief is told of the rule's verdicts; NULL: it used all as they were, or nobody knows whose they are. */
static shoal_blob *leases_cut(const shoal_owner *o, const summing *r) {
  size_t count = 0;
  for (uint32_t p = 0; p < o->config.parts; p++)
    count += o->verdicts[p] != SHOAL_VERDICT_USED && r->nodes[p].lease != 0;
  if (count == 0) return NULL;
  shoal_blob *blob = shoal_blob_create(count * sizeof(uint64_t));
  SHOAL_ASSERT(blob != NULL);
  uint8_t *at = shoal_blob_bytes(blob);
  for (uint32_t p = 0; p < o->config.parts; p++) {
    if (o->verdicts[p] == SHOAL_VERDICT_USED || r->nodes[p].lease == 0) continue;
    memcpy(at, &r->nodes[p].lease, sizeof(uint64_t));
    at += sizeof(uint64_t);
  }
  return blob;
}

/* With a rule: once all parts are there, one vector takes their place. */
static void aggregate(shoal_owner *o, summing *r) {
  const uint32_t parts = o->config.parts;
  if (o->aggregate == NULL || r->nodes[0].sum == NULL || r->nodes[0].width >= parts) return;
  for (uint32_t p = 0; p < parts; p++) {
    if (r->nodes[p].sum == NULL) return;
    o->apart[p] = floats_of(r->nodes[p].sum);
  }
  shoal_blob *blob = shoal_blob_create(o->config.slice.count * sizeof(float));
  SHOAL_ASSERT(blob != NULL);
  float *sum = floats_of(blob);
  shoal_aggregate_run(o->aggregate, o->apart, o->state.version, sum, o->verdicts);
  r->cut = leases_cut(o, r);
  for (size_t i = 0; i < o->config.slice.count; i++) sum[i] *= (float)parts;
  for (uint32_t p = 0; p < parts; p++) {
    shoal_blob_release(r->nodes[p].sum);
    r->nodes[p].sum = NULL;
  }
  r->nodes[0].sum = blob;
  r->nodes[0].width = parts;
}

/* Finishes rounds as long as the one at hand has all its parts. */
static void finish_rounds(shoal_owner *o) {
  const shoal_mode_kind mode = o->config.mode.kind;
  const bool clips = o->config.graph->model->recipe.clip > 0 && (mode == SHOAL_SYNC || mode == SHOAL_STALE);
  for (;;) {
    summing *r = round_of(o, o->state.version);
    if (o->save) return;
    aggregate(o, r);
    if (!is_whole(o, r)) return;
    if (clips) {
      if (!r->asked && o->chief != 0) {
        r->asked = true;
        send_squares(o, r);
      }
      return;
    }
    finish_round(o, r, 1);
  }
}

/* Joins the node that begins at `first` with its neighbours as far as these are there. The last two are
 * added when the round is applied, which reads them anyway. */
static void join_nodes(const shoal_owner *o, summing *r, uint32_t first) {
  for (;;) {
    uint32_t width = r->nodes[first].width, left = first / (2 * width) * (2 * width), right = left + width;
    if (width >= o->config.parts) return;
    if (right < o->config.parts) {
      node_sum *a = &r->nodes[left], *b = &r->nodes[right];
      if (a->sum == NULL || b->sum == NULL || a->width != width || b->width != width) return;
      if (2 * width < o->config.parts) {
        o->config.kernels->add(o->config.slice.count, floats_of(a->sum), floats_of(b->sum),
                               floats_of(a->sum));
        shoal_blob_release(b->sum);
      } else {
        r->right = b->sum;
      }
      b->sum = NULL;
    }
    r->nodes[left].width = 2 * width;
    first = left;
  }
}

/* The floats of a contribution in a blob that may be written to; NULL when they are not right. */
static shoal_blob *read_push(const shoal_owner *o, shoal_message *m) {
  size_t count = o->config.slice.count;
  if (m->payload == NULL) return NULL;
  bool plain = m->format == SHOAL_WIRE_F32;
  if (plain && shoal_blob_length(m->payload) != count * sizeof(float)) return NULL;
  if (plain && !shoal_blob_is_shared(m->payload)) {
    shoal_blob *taken = m->payload;
    m->payload = NULL;
    return taken;
  }
  if (plain) return shoal_blob_of(shoal_blob_bytes(m->payload), count * sizeof(float));
  shoal_blob *blob = shoal_blob_create(count * sizeof(float));
  SHOAL_ASSERT(blob != NULL);
  shoal_error err;
  if (shoal_codec_decode(m->format, count, shoal_blob_bytes(m->payload), shoal_blob_length(m->payload),
                         floats_of(blob), &err) == SHOAL_OK)
    return blob;
  shoal_blob_release(blob);
  return NULL;
}

/* Async: whether a round's contribution is the first. */
static bool first_time(shoal_owner *o, uint64_t round) {
  uint64_t *place = &o->seen[round % SEEN_ROUNDS];
  if (*place > round) return false;
  *place = round + 1;
  return true;
}

/* How many versions lie between what a contribution was computed from and what it is applied to. */
static void note_lag(shoal_owner *o, uint64_t applied_to, uint64_t computed_from) {
  if (computed_from > applied_to) return;
  o->lag += LAG_SHARE * ((double)(applied_to - computed_from) - o->lag);
}

/* Whether parts shard .. shard + count - 1 of a round can still be used: they are a node of a round under way, and
 * none of them was here before. */
static bool is_wanted(shoal_owner *o, uint64_t round, uint32_t shard, uint32_t count, uint32_t *width) {
  const bool async = o->config.mode.kind == SHOAL_ASYNC;
  if (async) round = o->state.version;
  if (!shoal_tree_is_node(o->config.parts, shard, count, width) || (async && *width < o->config.parts) ||
      (o->aggregate != NULL && count > 1) || round < o->state.version ||
      round - o->state.version >= o->rounds_count)
    return false;
  const summing *r = round_of(o, round);
  for (uint32_t p = 0; p < count; p++)
    if (r->nodes[shard + p].covered) return false;
  return true;
}

/* A contribution counts. Its floats are taken over. */
static void use(shoal_owner *o, const shoal_held_entry *e) {
  const bool async = o->config.mode.kind == SHOAL_ASYNC;
  uint32_t width;
  if (!is_wanted(o, e->round, e->shard, e->count, &width) || (async && !first_time(o, e->round))) {
    shoal_blob_release(e->sum);
    return;
  }
  uint64_t round = async ? o->state.version : e->round;
  summing *r = round_of(o, round);
  note_lag(o, round, e->version);
  for (uint32_t p = 0; p < e->count; p++) r->nodes[e->shard + p].covered = true;
  r->nodes[e->shard].sum = e->sum;
  r->nodes[e->shard].lease = e->lease;
  r->nodes[e->shard].width = width;
  if (o->aggregate == NULL) join_nodes(o, r, e->shard);
  finish_rounds(o);
}

static void take_push(shoal_owner *o, shoal_message *m) {
  uint32_t width;
  if (m->slice != o->config.slice_index || !is_wanted(o, m->round, m->shard, m->count, &width)) return;
  shoal_held_entry entry = {
      .round = m->round, .version = m->version, .shard = m->shard, .count = m->count, .sum = read_push(o, m)};
  if (entry.sum != NULL) use(o, &entry);
}

/* ---- guarded ---- */

static void tell_of(shoal_owner *o, const shoal_held_entry *e) {
  if (o->chief == 0) return; /* it is told when it is here */
  say(o, o->chief,
      (shoal_message){.kind = SHOAL_MSG_GOT,
                      .lease = e->lease,
                      .round = e->round,
                      .version = e->proof,
                      .shard = e->shard,
                      .count = e->count,
                      .payload = shoal_blob_of(&e->squares, sizeof e->squares)});
}

/* The sum of the squares; NAN when a value is not finite. Statistics of a batch are no gradient. */
static double squares_of(const shoal_owner *o, shoal_blob *sum) {
  const shoal_slice *slice = &o->config.slice;
  if (!shoal_codec_finite(slice->count, floats_of(sum))) return NAN;
  double squares = 0;
  for (size_t i = 0; i < slice->runs_count; i++) {
    stretch at = stretch_of(o, i);
    if (at.run->kind != SHOAL_PARAM_STATISTIC)
      squares += shoal_square_sum(o->config.kernels, at.run->count, floats_of(sum) + at.first);
  }
  return squares;
}

static void hold_push(shoal_owner *o, uint64_t peer, shoal_message *m) {
  uint32_t width;
  if (m->lease == 0 || m->slice != o->config.slice_index || m->format != o->config.format ||
      m->payload == NULL || !shoal_tree_is_node(o->config.parts, m->shard, m->count, &width) ||
      !shoal_held_has_room(&o->held, peer, m->lease))
    return;
  shoal_held_entry entry = {.lease = m->lease,
                            .peer = peer,
                            .round = m->round,
                            .version = m->version,
                            .shard = m->shard,
                            .count = m->count,
                            .proof = shoal_proof(shoal_blob_bytes(m->payload), shoal_blob_length(m->payload)),
                            .squares = NAN};
  entry.sum = read_push(o, m);
  if (entry.sum != NULL) entry.squares = squares_of(o, entry.sum);
  if (isnan(entry.squares)) { /* it will never be used */
    shoal_blob_release(entry.sum);
    entry.sum = NULL;
  }
  shoal_held_add(&o->held, &entry);
  tell_of(o, &entry);
}

/* ACCEPT says in `version` the bits of a float that it is multiplied by; 0: it is as it is. */
static void take_accept(shoal_owner *o, const shoal_message *m) {
  shoal_held_entry entry;
  uint32_t bits = (uint32_t)m->version;
  float scale = 1;
  if (!shoal_held_take(&o->held, m->lease, &entry) || entry.sum == NULL) return;
  if (bits != 0) memcpy(&scale, &bits, sizeof scale);
  for (size_t i = 0; bits != 0 && i < o->config.slice.count; i++) floats_of(entry.sum)[i] *= scale;
  use(o, &entry);
}

static void take_reject(shoal_owner *o, const shoal_message *m) {
  shoal_held_entry entry;
  if (shoal_held_take(&o->held, m->lease, &entry)) shoal_blob_release(entry.sum);
}

static void take_scale(shoal_owner *o, const shoal_message *m) {
  summing *r = round_of(o, o->state.version);
  if (m->round != o->state.version || !r->asked) return;
  float scale;
  memcpy(&scale, shoal_blob_bytes(m->payload), sizeof scale);
  finish_round(o, r, scale);
  finish_rounds(o);
}

/* ---- the chief ---- */

shoal_message shoal_owner_hello(const shoal_owner *o, const char *name) {
  return (shoal_message){.kind = SHOAL_MSG_HELLO,
                         .count = SHOAL_ROLE_OWNER,
                         .slice = o->config.slice_index,
                         .lease = o->generation > 0 && !o->restore && !o->lacking,
                         .generation = o->generation,
                         .version = o->state.version,
                         .round = o->config.job_digest,
                         .payload = shoal_blob_of(name, strlen(name))};
}

/* Versions that are safe now: the newest, and where the chief may want to go further back a list of them. */
static void note_keeps(shoal_owner *o, const shoal_message *m) {
  size_t count = m->payload != NULL ? shoal_blob_length(m->payload) / sizeof(uint64_t) : 0;
  if (count >= SHOAL_OWNER_KEEPS_MAX) count = SHOAL_OWNER_KEEPS_MAX - 1;
  if (count > 0) memcpy(o->keeps, shoal_blob_bytes(m->payload), count * sizeof *o->keeps);
  if (count == 0) o->keeps[count++] = m->round;
  o->keeps_count = (uint32_t)count;
}

/* The chief asks again when the answer was lost with the connection, since writing may have taken longer
 * than silence is borne. What is on disk already is not written a second time, or that could go on for
 * ever. */
static void take_save(shoal_owner *o, const shoal_message *m) {
  bool kept = m->version == o->kept_version, missed = !kept && m->version < o->state.version;
  if (kept || missed) {
    say(o, o->chief,
        (shoal_message){
            .kind = SHOAL_MSG_SAVED, .version = m->version, .count = missed ? SHOAL_SAVED_LATE : 0});
    return;
  }
  o->save_version = m->version;
  note_keeps(o, m);
  if (m->version == o->state.version) o->save = true;
}

bool shoal_owner_save(const shoal_owner *o) { return o->save; }

uint32_t shoal_owner_keeps(const shoal_owner *o, uint64_t versions[SHOAL_OWNER_KEEPS_MAX]) {
  memcpy(versions, o->keeps, o->keeps_count * sizeof *versions);
  versions[o->keeps_count] = o->state.version;
  return o->keeps_count + 1;
}

static void end_save(shoal_owner *o, shoal_message saved) {
  SHOAL_ASSERT(o->save);
  o->save = false;
  saved.kind = SHOAL_MSG_SAVED;
  saved.version = o->state.version;
  if (o->chief != 0)
    say(o, o->chief, saved);
  else
    shoal_message_release(&saved);
  finish_rounds(o);
}

void shoal_owner_saved(shoal_owner *o) {
  o->kept_version = o->state.version;
  end_save(o, (shoal_message){0});
}

void shoal_owner_not_saved(shoal_owner *o, const char *why) {
  end_save(o, (shoal_message){.count = SHOAL_SAVED_NOT, .payload = shoal_blob_of(why, strlen(why))});
}

bool shoal_owner_restore(const shoal_owner *o, uint64_t *version) {
  *version = o->restore_version;
  return o->restore;
}

static void restored(shoal_owner *o) {
  o->state.version = o->restore_version;
  o->generation = o->restore_generation;
  say(o, o->chief, (shoal_message){.kind = SHOAL_MSG_RESTORED, .version = o->state.version});
  answer_pulls(o);
}

void shoal_owner_restored(shoal_owner *o, bool found) {
  SHOAL_ASSERT(o->restore);
  o->restore = false;
  o->lacking = !found;
  if (found) {
    restored(o);
    return;
  }
  shoal_message m = {.kind = SHOAL_MSG_RESTORED, .version = o->restore_version, .count = 1};
  m.generation = o->restore_generation;
  m.slice = o->config.slice_index;
  shoal_outbox_put(&o->outbox, o->chief, m);
}

/* What it lacked comes from the chief: weights, then slots. */
static void take_given(shoal_owner *o, const shoal_message *m) {
  size_t bytes = o->config.slice.count * sizeof(float), count = 1;
  float *parts[3] = {o->state.weights, o->state.slot1, o->state.slot2};
  while (count < 3 && parts[count] != NULL) count++;
  if (!o->lacking || m->generation != o->restore_generation || m->version != o->restore_version ||
      m->payload == NULL || shoal_blob_length(m->payload) != count * bytes)
    return;
  for (size_t i = 0; i < count; i++) memcpy(parts[i], shoal_blob_bytes(m->payload) + i * bytes, bytes);
  if (o->state.centre != NULL) memset(o->state.centre, 0, bytes);
  o->lacking = false;
  restored(o);
}

static void take_restore(shoal_owner *o, const shoal_message *m) {
  for (uint32_t i = 0; i < o->rounds_count; i++) clear_round(o, &o->rounds[i]);
  if (o->seen != NULL) memset(o->seen, 0, SEEN_ROUNDS * sizeof *o->seen);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < o->pulls_count; i++)
    if (o->pulls[i].generation >= m->generation) o->pulls[kept++] = o->pulls[i];
  o->pulls_count = kept;
  shoal_held_clear(&o->held);
  shoal_blob_release(renew_weights(o)); /* the driver, or the chief, writes others */
  o->save = false;
  o->save_version = o->kept_version = UINT64_MAX;
  o->restore = true;
  o->lacking = false;
  o->restore_version = m->version;
  o->restore_generation = m->generation;
}

/* A chief, maybe again: what was told to it before may not have arrived. */
static void meet_chief(shoal_owner *o, uint64_t peer) {
  o->chief = peer;
  for (uint32_t i = 0; i < o->rounds_count; i++) o->rounds[i].asked = false;
  if (o->restore || o->lacking) return;
  say(o, peer, (shoal_message){.kind = SHOAL_MSG_APPLIED, .version = o->state.version});
  for (uint32_t i = 0; i < o->held.count; i++) tell_of(o, &o->held.entries[i]);
  finish_rounds(o);
  answer_pulls(o);
}

void shoal_owner_receive(shoal_owner *o, uint64_t peer, shoal_message *m) {
  /* Nobody takes the place of a chief that is here, or speaks for it. */
  if (m->kind == SHOAL_MSG_WELCOME && o->chief == 0) meet_chief(o, peer);
  bool orders = m->kind == SHOAL_MSG_SAVE || m->kind == SHOAL_MSG_SCALE || m->kind == SHOAL_MSG_RESTORE ||
                m->kind == SHOAL_MSG_GIVE || m->kind == SHOAL_MSG_ACCEPT || m->kind == SHOAL_MSG_REJECT;
  if (orders && peer != o->chief) {
    shoal_message_release(m);
    return;
  }
  if (m->kind == SHOAL_MSG_RESTORE && m->generation > o->generation) {
    take_restore(o, m);
  } else if (m->kind == SHOAL_MSG_GIVE) {
    take_given(o, m);
  } else if (m->kind == SHOAL_MSG_PULL && m->generation >= o->generation) {
    take_pull(o, peer, m); /* who knows of a generation that is about to begin here waits for it */
  } else if (m->generation == o->generation && !o->restore && !o->lacking) {
    switch (m->kind) {
    case SHOAL_MSG_PUSH:
      if (o->config.guarded)
        hold_push(o, peer, m);
      else
        take_push(o, m);
      break;
    case SHOAL_MSG_ACCEPT: take_accept(o, m); break;
    case SHOAL_MSG_REJECT: take_reject(o, m); break;
    case SHOAL_MSG_SCALE: take_scale(o, m); break;
    case SHOAL_MSG_SAVE: take_save(o, m); break;
    default: break;
    }
  }
  shoal_message_release(m);
}
