/* owner.c: see owner.h.
 *
 * Rounds that may be under way at once are version .. version + stale. Each has a place in a
 * ring: the sum so far of parts 0 .. next - 1, and the parts that came before their turn. */
#include "proto/owner.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

/* A round that is being summed. */
typedef struct summing {
  uint32_t next;      /* the part that is added next */
  shoal_blob **early; /* one a part: came before its turn, or NULL */
  float *sum;
  bool asked; /* the squares are with the chief */
} summing;

typedef struct waiting {
  uint64_t peer, version;
  bool with_slots;
} waiting;

struct shoal_owner {
  shoal_owner_config config;
  uint64_t generation;
  shoal_owner_state state;
  summing *rounds; /* a ring of stale + 1 */
  uint32_t rounds_count;
  waiting *pulls;
  uint32_t pulls_count, pulls_size;
  uint64_t chief; /* the peer that said WELCOME; 0 for none */
  bool save, restore;
  uint64_t save_version, restore_version, restore_generation;
  shoal_outbox outbox;
};

static float *floats(size_t count, bool *ok) {
  float *made = aligned_alloc(64, (count * sizeof *made + 63) / 64 * 64 + 64);
  if (made == NULL)
    *ok = false;
  else
    memset(made, 0, count * sizeof *made);
  return made;
}

shoal_status shoal_owner_create(shoal_owner **out, const shoal_owner_config *config, shoal_error *err) {
  SHOAL_ASSERT(config->parts > 0 && (config->mode.kind != SHOAL_ASYNC || config->parts == 1));
  *out = NULL;
  shoal_owner *o = calloc(1, sizeof *o);
  if (o == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a parameter server");
  bool ok = true;
  size_t count = config->slice.count;
  uint32_t slots = shoal_optimizer_slots(config->graph->model->recipe.optimizer);
  o->config = *config;
  o->state.weights = floats(count, &ok);
  bool local = config->mode.kind == SHOAL_LOCAL; /* the outer momentum is the only slot then */
  if (slots > 0 || local) o->state.slot1 = floats(count, &ok);
  if (slots > 1 && !local) o->state.slot2 = floats(count, &ok);
  o->rounds_count = config->mode.stale + 1;
  o->rounds = calloc(o->rounds_count, sizeof *o->rounds);
  ok &= o->rounds != NULL;
  for (uint32_t i = 0; ok && i < o->rounds_count; i++) {
    o->rounds[i].early = calloc(config->parts, sizeof *o->rounds[i].early);
    ok &= o->rounds[i].early != NULL;
    o->rounds[i].sum = floats(count, &ok);
  }
  if (!ok) {
    shoal_owner_destroy(o);
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a slice of %zu weights", count);
  }
  *out = o;
  return SHOAL_OK;
}

static void clear_round(shoal_owner *o, summing *r) {
  for (uint32_t p = 0; p < o->config.parts; p++) {
    shoal_blob_release(r->early[p]);
    r->early[p] = NULL;
  }
  r->next = 0;
  r->asked = false;
}

void shoal_owner_destroy(shoal_owner *o) {
  if (o == NULL) return;
  for (uint32_t i = 0; o->rounds != NULL && i < o->rounds_count; i++) {
    if (o->rounds[i].early != NULL) clear_round(o, &o->rounds[i]);
    free(o->rounds[i].early);
    free(o->rounds[i].sum);
  }
  free(o->rounds);
  free(o->state.weights);
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

static void answer_pull(shoal_owner *o, const waiting *pull) {
  size_t bytes = o->config.slice.count * sizeof(float);
  const float *parts[3] = {o->state.weights, o->state.slot1, o->state.slot2};
  size_t count = 1;
  while (pull->with_slots && count < 3 && parts[count] != NULL) count++;
  shoal_blob *blob = shoal_blob_create(count * bytes);
  SHOAL_ASSERT(blob != NULL);
  for (size_t i = 0; i < count; i++) memcpy(shoal_blob_bytes(blob) + i * bytes, parts[i], bytes);
  say(o, pull->peer,
      (shoal_message){
          .kind = SHOAL_MSG_WEIGHTS, .version = o->state.version, .count = (uint32_t)count, .payload = blob});
}

static void answer_pulls(shoal_owner *o) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < o->pulls_count; i++)
    if (o->pulls[i].version <= o->state.version)
      answer_pull(o, &o->pulls[i]);
    else
      o->pulls[kept++] = o->pulls[i];
  o->pulls_count = kept;
}

static void take_pull(shoal_owner *o, uint64_t peer, const shoal_message *m) {
  waiting pull = {.peer = peer, .version = m->version, .with_slots = m->count > 0};
  if (pull.version <= o->state.version) {
    answer_pull(o, &pull);
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

/* Where the slice begins, as if the whole vector were there: runs have their own offsets. */
static float *whole(const shoal_owner *o, float *slice) {
  return slice == NULL ? NULL : (float *)((uintptr_t)slice - o->config.slice.offset * sizeof(float));
}

/* The mean change of the weights is the outer optimiser's gradient, upside down. */
static void apply_outer(shoal_owner *o, const float *sum) {
  const shoal_mode *mode = &o->config.mode;
  for (size_t i = 0; i < o->config.slice.count; i++) {
    float change = sum[i] / (float)o->config.parts;
    o->state.slot1[i] = mode->outer_momentum * o->state.slot1[i] + change;
    o->state.weights[i] += mode->outer_rate * (change + mode->outer_momentum * o->state.slot1[i]);
  }
}

static void apply(shoal_owner *o, const float *sum, float scale) {
  const shoal_recipe *recipe = &o->config.graph->model->recipe;
  uint64_t version = o->state.version;
  if (o->config.mode.kind == SHOAL_LOCAL) {
    apply_outer(o, sum);
  } else {
    float rate = shoal_recipe_rate_at(recipe, version / o->config.rounds, version % o->config.rounds,
                                      o->config.rounds);
    shoal_update update = shoal_optimizer_update(recipe, rate, version + 1);
    update.grad_scale = scale;
    for (size_t i = 0; i < o->config.slice.runs_count; i++)
      shoal_optimizer_apply(o->config.kernels, &update, &o->config.runs[o->config.slice.first_run + i],
                            whole(o, o->state.weights), whole(o, (float *)(uintptr_t)sum),
                            whole(o, o->state.slot1), whole(o, o->state.slot2));
  }
  o->state.version++;
}

static void send_squares(shoal_owner *o, const summing *r) {
  const shoal_slice *slice = &o->config.slice;
  shoal_blob *blob = shoal_blob_create(slice->runs_count * sizeof(double));
  SHOAL_ASSERT(blob != NULL);
  double *squares = (double *)(void *)shoal_blob_bytes(blob);
  for (size_t i = 0; i < slice->runs_count; i++) {
    const shoal_run *run = &o->config.runs[slice->first_run + i];
    squares[i] = run->kind == SHOAL_PARAM_STATISTIC
                     ? 0
                     : o->config.kernels->square_sum(run->count, whole(o, r->sum) + run->offset);
  }
  say(o, o->chief, (shoal_message){.kind = SHOAL_MSG_SQUARES, .round = o->state.version, .payload = blob});
}

static void finish_round(shoal_owner *o, summing *r, float scale) {
  apply(o, r->sum, scale);
  clear_round(o, r);
  if (o->save_version == o->state.version) o->save = true;
  if (o->chief != 0)
    say(o, o->chief, (shoal_message){.kind = SHOAL_MSG_APPLIED, .version = o->state.version});
  answer_pulls(o);
}

/* Finishes rounds as long as the one at hand has all its parts. */
static void finish_rounds(shoal_owner *o) {
  const bool clips = o->config.graph->model->recipe.clip > 0 && o->config.mode.kind != SHOAL_LOCAL;
  for (;;) {
    summing *r = round_of(o, o->state.version);
    if (o->save || r->next < o->config.parts) return;
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

static void add_part(shoal_owner *o, summing *r, const float *values) {
  if (r->next == 0)
    memcpy(r->sum, values, o->config.slice.count * sizeof *values);
  else
    o->config.kernels->add(o->config.slice.count, r->sum, values, r->sum);
  r->next++;
}

static void take_push(shoal_owner *o, shoal_message *m) {
  const bool async = o->config.mode.kind == SHOAL_ASYNC;
  uint64_t round = async ? o->state.version : m->round;
  bool fits = m->payload != NULL && shoal_blob_length(m->payload) == o->config.slice.count * sizeof(float);
  if (!fits || m->slice != o->config.slice_index || m->shard >= o->config.parts) return;
  if (round < o->state.version || round - o->state.version >= o->rounds_count) return;
  summing *r = round_of(o, round);
  if (m->shard < r->next || r->early[m->shard] != NULL) return; /* a second one */
  r->early[m->shard] = m->payload;
  m->payload = NULL;
  while (r->next < o->config.parts && r->early[r->next] != NULL) {
    shoal_blob *part = r->early[r->next];
    r->early[r->next] = NULL;
    add_part(o, r, (const float *)(const void *)shoal_blob_bytes(part));
    shoal_blob_release(part);
  }
  finish_rounds(o);
}

static void take_scale(shoal_owner *o, const shoal_message *m) {
  summing *r = round_of(o, o->state.version);
  if (m->round != o->state.version || !r->asked) return;
  float scale;
  memcpy(&scale, shoal_blob_bytes(m->payload), sizeof scale);
  finish_round(o, r, scale);
  finish_rounds(o);
}

/* ---- what the chief says ---- */

static void take_save(shoal_owner *o, const shoal_message *m) {
  if (m->version < o->state.version || (m->version == o->state.version && o->save)) {
    say(o, o->chief,
        (shoal_message){.kind = SHOAL_MSG_SAVED, .version = m->version, .count = 1}); /* missed */
    return;
  }
  o->save_version = m->version;
  if (m->version == o->state.version) o->save = true;
}

bool shoal_owner_save(const shoal_owner *o) { return o->save; }

void shoal_owner_saved(shoal_owner *o) {
  SHOAL_ASSERT(o->save);
  o->save = false;
  if (o->chief != 0) say(o, o->chief, (shoal_message){.kind = SHOAL_MSG_SAVED, .version = o->state.version});
  finish_rounds(o);
}

bool shoal_owner_restore(const shoal_owner *o, uint64_t *version) {
  *version = o->restore_version;
  return o->restore;
}

void shoal_owner_restored(shoal_owner *o, bool found) {
  SHOAL_ASSERT(o->restore);
  o->restore = false;
  if (found) {
    SHOAL_ASSERT(o->state.version == o->restore_version);
    o->generation = o->restore_generation;
  }
  say(o, o->chief,
      (shoal_message){.kind = SHOAL_MSG_RESTORED, .version = o->restore_version, .count = found ? 0 : 1});
}

static void take_restore(shoal_owner *o, const shoal_message *m) {
  for (uint32_t i = 0; i < o->rounds_count; i++) clear_round(o, &o->rounds[i]);
  o->pulls_count = 0;
  o->save = false;
  o->restore = true;
  o->restore_version = m->version;
  o->restore_generation = m->generation;
}

/* A chief, maybe again: what was told to it before may not have arrived. */
static void meet_chief(shoal_owner *o, uint64_t peer) {
  o->chief = peer;
  for (uint32_t i = 0; i < o->rounds_count; i++) o->rounds[i].asked = false;
  if (o->restore) return;
  say(o, peer, (shoal_message){.kind = SHOAL_MSG_APPLIED, .version = o->state.version});
  finish_rounds(o);
}

void shoal_owner_receive(shoal_owner *o, uint64_t peer, shoal_message *m) {
  /* Nobody takes the place of a chief that is here, or speaks for it. */
  if (m->kind == SHOAL_MSG_WELCOME && o->chief == 0) meet_chief(o, peer);
  bool orders = m->kind == SHOAL_MSG_SAVE || m->kind == SHOAL_MSG_SCALE || m->kind == SHOAL_MSG_RESTORE;
  if (orders && peer != o->chief) {
    shoal_message_release(m);
    return;
  }
  if (m->kind == SHOAL_MSG_RESTORE && m->generation > o->generation) {
    take_restore(o, m);
  } else if (m->generation == o->generation && !o->restore) {
    switch (m->kind) {
    case SHOAL_MSG_PULL: take_pull(o, peer, m); break;
    case SHOAL_MSG_PUSH: take_push(o, m); break;
    case SHOAL_MSG_SCALE: take_scale(o, m); break;
    case SHOAL_MSG_SAVE: take_save(o, m); break;
    default: break;
    }
  }
  shoal_message_release(m);
}
