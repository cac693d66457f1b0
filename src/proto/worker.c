/* worker.c: see worker.h. */
#include "proto/worker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "proto/chief.h"
#include "proto/codec.h"
#include "proto/proof.h"

/* A unit waits for its weights, is ready for the driver, or is being computed. */
typedef enum unit_state { WAITING, READY, COMPUTING } unit_state;

typedef struct unit {
  shoal_work_unit work;
  uint64_t lease; /* the chief's number */
  unit_state state;
} unit;

struct shoal_worker {
  shoal_worker_config config;
  uint64_t chief, generation; /* chief 0: not connected */
  bool welcome, ended;
  uint64_t *owners; /* peers, 0 for none */
  unit *units;
  uint32_t units_count;
  uint32_t asked;  /* for so many more */
  uint64_t handed; /* numbers given to units */
  /* Weights: those in use, and those that are coming, slice by slice. */
  shoal_blob *weights, *coming;
  uint64_t version, coming_version;
  bool have;                            /* `weights` holds `version` */
  bool fresh;                           /* and no unit was computed from it yet */
  uint64_t *versions, *coming_versions; /* of each slice: in async mode they differ */
  bool *arrived;                        /* slices of the coming version */
  uint64_t *proofs;                     /* guarded: of the slices of what was pushed last */
  bool pulling;
  uint32_t busy;   /* units with the driver, dropped ones too: it reads the weights */
  float *residual; /* what a lossy format has left out so far; NULL for f32 */
  shoal_outbox outbox;
};

shoal_status shoal_worker_create(shoal_worker **out, const shoal_worker_config *config, shoal_error *err) {
  SHOAL_ASSERT(config->units > 0 && config->owners > 0);
  *out = NULL;
  shoal_worker *w = calloc(1, sizeof *w);
  if (w == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a worker");
  w->config = *config;
  w->owners = calloc(config->owners, sizeof *w->owners);
  w->arrived = calloc(config->owners, sizeof *w->arrived);
  w->proofs = calloc(config->owners, sizeof *w->proofs);
  w->versions = calloc(config->owners, sizeof *w->versions);
  w->coming_versions = calloc(config->owners, sizeof *w->coming_versions);
  w->units = calloc(config->units, sizeof *w->units);
  w->weights = shoal_blob_create(config->weights_count * sizeof(float));
  w->coming = shoal_blob_create(config->weights_count * sizeof(float));
  /* What is left for the next unit would make that one depend on this. */
  bool lossy = config->format == SHOAL_WIRE_TOPK || (config->format != SHOAL_WIRE_F32 && !config->guarded);
  if (lossy) w->residual = calloc(config->weights_count, sizeof *w->residual);
  if ((lossy && w->residual == NULL) || w->owners == NULL || w->arrived == NULL || w->proofs == NULL ||
      w->versions == NULL || w->coming_versions == NULL || w->units == NULL || w->weights == NULL ||
      w->coming == NULL) {
    shoal_worker_destroy(w);
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for %zu weights", config->weights_count);
  }
  *out = w;
  return SHOAL_OK;
}

void shoal_worker_destroy(shoal_worker *w) {
  if (w == NULL) return;
  for (uint32_t i = 0; w->units != NULL && i < w->units_count; i++)
    shoal_blob_release(w->units[i].work.carry);
  free(w->residual);
  free(w->owners);
  free(w->arrived);
  free(w->proofs);
  free(w->versions);
  free(w->coming_versions);
  free(w->units);
  shoal_blob_release(w->weights);
  shoal_blob_release(w->coming);
  shoal_outbox_release(&w->outbox);
  free(w);
}

shoal_outbox *shoal_worker_outbox(shoal_worker *w) { return &w->outbox; }

static void say(shoal_worker *w, uint64_t peer, shoal_message m) {
  m.generation = w->generation;
  shoal_outbox_put(&w->outbox, peer, m);
}

/* What was asked for is on its way, so only the rest is asked for: or there would be more leases than
 * places, and each one too many goes back and forth. */
static void ask(shoal_worker *w) {
  if (w->chief == 0 || !w->welcome || w->ended || w->units_count + w->asked >= w->config.units) return;
  uint32_t more = w->config.units - w->units_count - w->asked;
  w->asked += more;
  say(w, w->chief, (shoal_message){.kind = SHOAL_MSG_ASK, .count = more});
}

/* ---- weights ---- */

static void drop_unit(shoal_worker *w, uint32_t index, bool tell) {
  if (tell) say(w, w->chief, (shoal_message){.kind = SHOAL_MSG_RETURN, .lease = w->units[index].lease});
  shoal_blob_release(w->units[index].work.carry);
  w->units[index] = w->units[--w->units_count];
}

static bool any(const shoal_worker *w, unit_state state) {
  for (uint32_t i = 0; i < w->units_count; i++)
    if (w->units[i].state == state) return true;
  return false;
}

/* What the weights in use mean for a unit that waits for some. In async mode each unit wants a
 * pull of its own, for the newest. */
static void judge(shoal_worker *w) {
  const bool async = w->config.mode.kind == SHOAL_ASYNC;
  for (uint32_t i = 0; i < w->units_count;) {
    unit *u = &w->units[i];
    bool waits = u->state == WAITING;
    if (waits && w->have && !async && w->version > u->work.round) {
      drop_unit(w, i, true); /* its round is over */
      continue;
    }
    bool fits = async ? w->fresh : w->version >= u->work.version;
    if (waits && w->have && fits) {
      u->state = READY;
      u->work.version = w->version;
    }
    i++;
  }
}

static void send_pull(shoal_worker *w, uint32_t slice) {
  w->arrived[slice] = false;
  say(w, w->owners[slice],
      (shoal_message){.kind = SHOAL_MSG_PULL, .version = w->coming_version, .slice = slice});
}

static void send_pulls(shoal_worker *w, uint64_t version) {
  w->pulling = true;
  w->coming_version = version;
  for (uint32_t s = 0; s < w->config.owners; s++) send_pull(w, s);
}

/* Pulls what the oldest unit without its weights needs. */
static void pull(shoal_worker *w) {
  if (w->pulling || !any(w, WAITING)) return;
  for (uint32_t s = 0; s < w->config.owners; s++)
    if (w->owners[s] == 0) return;
  uint64_t version = UINT64_MAX;
  for (uint32_t i = 0; i < w->units_count; i++)
    if (w->units[i].state == WAITING && w->units[i].work.version < version)
      version = w->units[i].work.version;
  send_pulls(w, version);
}

/* Takes the new weights into use once they are whole and nobody computes with the old. */
static void swap_weights(shoal_worker *w) {
  if (!w->pulling || w->busy > 0) return;
  for (uint32_t s = 0; s < w->config.owners; s++)
    if (!w->arrived[s]) return;
  shoal_blob *old = w->weights;
  w->weights = w->coming;
  w->coming = old;
  w->version = w->coming_version;
  memcpy(w->versions, w->coming_versions, w->config.owners * sizeof *w->versions);
  w->have = w->fresh = true;
  w->pulling = false;
  for (uint32_t i = 0; i < w->units_count; i++)
    if (w->units[i].state == READY) w->units[i].state = WAITING; /* newer is better */
  judge(w);
  pull(w);
  ask(w);
}

/* An owner is further than was asked for. Slices of different versions don't go together, so those
 * that have arrived must come again. */
static void raise_version(shoal_worker *w, uint64_t version) {
  w->coming_version = version;
  for (uint32_t s = 0; s < w->config.owners; s++)
    if (w->arrived[s]) send_pull(w, s);
}

/* Puts a slice in its place. When it is all there is, the message's own bytes will do. */
static void keep_slice(shoal_worker *w, const shoal_slice *slice, shoal_message *m) {
  if (w->config.owners == 1) {
    shoal_blob_release(w->coming);
    w->coming = m->payload;
    m->payload = NULL;
    return;
  }
  memcpy((float *)(void *)shoal_blob_bytes(w->coming) + slice->offset, shoal_blob_bytes(m->payload),
         slice->count * sizeof(float));
}

static void take_weights(shoal_worker *w, uint64_t peer, shoal_message *m) {
  uint32_t s = m->slice;
  if (!w->pulling || s >= w->config.owners || w->owners[s] != peer || m->payload == NULL) return;
  const shoal_slice *slice = &w->config.slices[s];
  if (shoal_blob_length(m->payload) != slice->count * sizeof(float)) return;
  if (m->version < w->coming_version) {
    send_pull(w, s);
    return;
  }
  if (w->config.mode.kind != SHOAL_ASYNC && m->version > w->coming_version) raise_version(w, m->version);
  keep_slice(w, slice, m);
  w->arrived[s] = true;
  w->coming_versions[s] = m->version;
  swap_weights(w);
}

/* ---- units ---- */

static void take_lease(shoal_worker *w, shoal_message *m) {
  if (w->asked > 0) w->asked--;
  if (w->units_count == w->config.units) {
    say(w, w->chief, (shoal_message){.kind = SHOAL_MSG_RETURN, .lease = m->lease});
    return;
  }
  w->units[w->units_count++] = (unit){.lease = m->lease,
                                      .work = {.lease = ++w->handed,
                                               .round = m->round,
                                               .first = m->shard,
                                               .count = m->count,
                                               .version = m->version,
                                               .carry = m->payload}};
  m->payload = NULL;
  uint32_t before = w->units_count;
  judge(w);
  pull(w);
  if (w->units_count < before) ask(w); /* it was over before it began: nobody else will ask */
}

bool shoal_worker_next(shoal_worker *w, shoal_work_unit *out, const float **weights) {
  for (uint32_t i = 0; i < w->units_count; i++) {
    if (w->units[i].state != READY) continue;
    w->units[i].state = COMPUTING;
    w->fresh = false;
    w->busy++;
    *out = w->units[i].work;
    out->carry = shoal_blob_share(out->carry);
    *weights = (const float *)(const void *)shoal_blob_bytes(w->weights);
    return true;
  }
  return false;
}

/* A slice of the gradient as it travels. In f32 the gradient's own bytes do. */
static shoal_blob *encode(shoal_worker *w, const shoal_slice *slice, shoal_blob *gradient) {
  if (w->config.format == SHOAL_WIRE_F32)
    return shoal_blob_part(gradient, slice->offset * sizeof(float), slice->count * sizeof(float));
  shoal_blob *blob = shoal_blob_create(shoal_codec_bytes(w->config.format, slice->count));
  SHOAL_ASSERT(blob != NULL);
  const float *values = (const float *)(const void *)shoal_blob_bytes(gradient) + slice->offset;
  float *residual = w->residual != NULL ? w->residual + slice->offset : NULL;
  shoal_blob_shorten(
      blob, shoal_codec_encode(w->config.format, slice->count, values, residual, shoal_blob_bytes(blob)));
  return blob;
}

static void push(shoal_worker *w, const unit *u, shoal_blob *gradient) {
  for (uint32_t s = 0; s < w->config.owners; s++) {
    shoal_blob *payload = encode(w, &w->config.slices[s], gradient);
    if (w->config.guarded) w->proofs[s] = shoal_proof(shoal_blob_bytes(payload), shoal_blob_length(payload));
    say(w, w->owners[s],
        (shoal_message){.kind = SHOAL_MSG_PUSH,
                        .format = w->config.format,
                        .lease = w->config.guarded ? u->lease : 0,
                        .round = u->work.round,
                        .version = w->versions[s],
                        .shard = u->work.first,
                        .count = u->work.count,
                        .slice = s,
                        .payload = payload});
  }
}

/* Owners refuse what is not finite in a lossy format, and their round would never be whole. The chief must
 * know that the training has blown up. */
static bool is_refused(const shoal_worker *w, shoal_blob *gradient) {
  const float *values = (const float *)(const void *)shoal_blob_bytes(gradient);
  return w->config.format != SHOAL_WIRE_F32 && !shoal_codec_finite(w->config.weights_count, values);
}

/* Sums, then the recurrent state. */
static shoal_blob *report_of(const shoal_worker *w, const shoal_work_result *result) {
  shoal_sums sums = result->sums;
  if (is_refused(w, result->gradient)) sums.loss = NAN;
  size_t carry = result->carry != NULL ? shoal_blob_length(result->carry) : 0;
  shoal_blob *blob = shoal_blob_create(sizeof sums + carry);
  SHOAL_ASSERT(blob != NULL);
  memcpy(shoal_blob_bytes(blob), &sums, sizeof sums);
  if (carry > 0) memcpy(shoal_blob_bytes(blob) + sizeof sums, shoal_blob_bytes(result->carry), carry);
  return blob;
}

static void push_and_report(shoal_worker *w, const unit *u, const shoal_work_result *result) {
  push(w, u, result->gradient);
  uint64_t digest =
      w->config.guarded ? shoal_proof_join(w->proofs, w->config.owners, NULL, 0) : result->digest;
  say(w, w->chief,
      (shoal_message){.kind = SHOAL_MSG_DONE,
                      .lease = u->lease,
                      .round = u->work.round,
                      .shard = u->work.first,
                      .version = digest,
                      .payload = report_of(w, result)});
  /* The next round will want the next version: it can come while the lease does. In async mode it is
   * whatever is newest once this contribution has been applied. */
  bool async = w->config.mode.kind == SHOAL_ASYNC;
  if (!w->pulling) send_pulls(w, async ? 0 : u->work.version + 1);
}

bool shoal_worker_done(shoal_worker *w, uint64_t lease, const shoal_work_result *result) {
  SHOAL_ASSERT(w->busy > 0);
  w->busy--;
  uint32_t index = 0;
  while (index < w->units_count && w->units[index].work.lease != lease) index++;
  bool whole = w->chief != 0 && index < w->units_count;
  for (uint32_t s = 0; s < w->config.owners; s++) whole &= w->owners[s] != 0;
  if (index < w->units_count) {
    const unit u = w->units[index];
    drop_unit(w, index, !whole && w->chief != 0);
    if (whole) push_and_report(w, &u, result);
  }
  shoal_blob_release(result->gradient);
  shoal_blob_release(result->carry);
  swap_weights(w);
  ask(w);
  return whole;
}

/* ---- connections ---- */

/* Everything that was under way is void. */
static void start_over(shoal_worker *w) {
  while (w->units_count > 0) drop_unit(w, 0, false);
  w->asked = 0;
  w->pulling = w->have = false;
}

shoal_message shoal_worker_hello(const char *name, uint32_t threads, uint64_t key) {
  return (shoal_message){.kind = SHOAL_MSG_HELLO,
                         .count = SHOAL_ROLE_WORKER,
                         .shard = threads,
                         .lease = key,
                         .payload = shoal_blob_of(name, strlen(name))};
}

void shoal_worker_chief(shoal_worker *w, uint64_t peer, bool told) {
  w->chief = peer;
  w->welcome = false;
  start_over(w);
  if (!told) say(w, peer, shoal_worker_hello(w->config.name, w->config.threads, w->config.key));
}

void shoal_worker_owner(shoal_worker *w, uint32_t slice, uint64_t peer) {
  SHOAL_ASSERT(slice < w->config.owners);
  w->owners[slice] = peer;
  w->pulling = false;
  pull(w);
}

void shoal_worker_gone(shoal_worker *w, uint64_t peer) {
  if (peer == w->chief) {
    w->chief = 0;
    w->welcome = false;
    start_over(w);
  }
  for (uint32_t s = 0; s < w->config.owners; s++)
    if (w->owners[s] == peer) {
      w->owners[s] = 0;
      w->pulling = false;
    }
}

/* The chief's word on the generation counts; a new one voids what was under way. */
static void hear_chief(shoal_worker *w, const shoal_message *m) {
  if (m->generation == w->generation && w->welcome) return;
  w->generation = m->generation;
  start_over(w);
}

void shoal_worker_receive(shoal_worker *w, uint64_t peer, shoal_message *m) {
  if (peer == w->chief && w->chief != 0) {
    hear_chief(w, m);
    switch (m->kind) {
    case SHOAL_MSG_WELCOME:
      w->welcome = true;
      ask(w);
      break;
    case SHOAL_MSG_WAIT: ask(w); break;
    case SHOAL_MSG_LEASE: take_lease(w, m); break;
    case SHOAL_MSG_END: w->ended = true; break;
    default: break;
    }
  } else if (m->kind == SHOAL_MSG_WEIGHTS && m->generation == w->generation) {
    take_weights(w, peer, m);
  }
  shoal_message_release(m);
}
