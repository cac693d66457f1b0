/* chief.c: see chief.h: what is here, what is told, what comes in. The rest is in the files that
 * chief_internal.h names. */
#include "proto/chief.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "nn/tree.h"
#include "proto/chief_internal.h"

enum { EVENTS_MAX = SHOAL_CHIEF_EVENTS_MAX, WANTS_MAX = 64, ASYNC_WINDOW_LEAST = 1024 };
_Static_assert((int)ASYNC_WINDOW_LEAST <= (int)SHOAL_ASYNC_WINDOW_MAX, "owners remember so many rounds");

/* Rounds that may be under way at once. */
static uint32_t window_of(const shoal_chief_config *config) {
  if (config->mode.kind != SHOAL_ASYNC) return config->mode.stale + 1;
  uint64_t twice = 2 * (uint64_t)config->workers_max;
  if (twice < ASYNC_WINDOW_LEAST) return ASYNC_WINDOW_LEAST;
  return twice < SHOAL_ASYNC_WINDOW_MAX ? (uint32_t)twice : SHOAL_ASYNC_WINDOW_MAX;
}

static bool reserve(shoal_chief *c) {
  const shoal_chief_config *config = &c->config;
  size_t units = c->round_units, places = c->window * units;
  c->rounds = calloc(c->window, sizeof *c->rounds);
  c->here = calloc(places, sizeof *c->here);
  c->sums = calloc(places, sizeof *c->sums);
  const uint32_t peers_max = config->workers_max + config->owners + SHOAL_AUDITORS_MAX;
  c->peers = calloc(peers_max, sizeof *c->peers);
  c->owners = calloc(config->owners, sizeof *c->owners);
  c->past = calloc(config->workers_max, sizeof *c->past);
  if (c->past == NULL && config->workers_max > 0) return false;
  if (c->rounds == NULL || c->here == NULL || c->sums == NULL || c->peers == NULL || c->owners == NULL ||
      !shoal_places_init(&c->peer_places, peers_max))
    return false;
  for (uint32_t i = 0; i < c->window; i++)
    c->rounds[i] = (open_round){.here = &c->here[i * units], .sums = &c->sums[i * units]};
  c->carry_count = config->carry_floats * config->parts;
  if (c->carry_count == 0) return true;
  float **carries[] = {&c->carry, &c->safe_carry, &c->saving_carry, &c->next_carry, &c->rest_carry};
  for (int i = 0; i < 5; i++) {
    *carries[i] = calloc(c->carry_count, sizeof(float));
    if (*carries[i] == NULL) return false;
    if (config->carry != NULL) memcpy(*carries[i], config->carry, c->carry_count * sizeof(float));
  }
  return true;
}

shoal_status shoal_chief_create(shoal_chief **out, const shoal_chief_config *config, shoal_error *err) {
  SHOAL_ASSERT(config->parts > 0 && config->rounds > 0 && config->owners > 0);
  *out = NULL;
  shoal_chief *c = calloc(1, sizeof *c);
  if (c == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a chief");
  c->config = *config;
  c->window = window_of(config);
  c->round_units = config->mode.kind == SHOAL_ASYNC ? 1 : config->parts;
  c->now = c->safe = config->start;
  c->now.generation = c->safe.generation = config->start.generation + 1;
  c->offered = c->recorded = c->now.version;
  c->not_saved = UINT64_MAX;
  c->next_save = INFINITY;
  c->lost_s = config->lost_s;
  shoal_lease_rules rules = config->leases;
  rules.units_max = c->window * c->round_units;
  shoal_status status = reserve(c) ? shoal_lease_book_create(&c->book, &rules, err)
                                   : shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a chief");
  if (status == SHOAL_OK && config->guard.on) status = shoal_chief_guard_create(c, err);
  c->paused = c->now.version == config->end; /* a rest is all that is left to tell */
  if (status != SHOAL_OK) {
    shoal_chief_destroy(c);
    return status;
  }
  shoal_chief_tell(c, (shoal_chief_event){.kind = SHOAL_CHIEF_BACK,
                                          .version = c->now.version,
                                          .state = c->now,
                                          .undoes = c->now.version < config->start.version,
                                          .text = "the chief started"});
  *out = c;
  return SHOAL_OK;
}

void shoal_chief_destroy(shoal_chief *c) {
  if (c == NULL) return;
  for (uint32_t s = 0; c->owners != NULL && s < c->config.owners; s++)
    shoal_blob_release(c->owners[s].squares);
  shoal_chief_guard_destroy(c);
  shoal_lease_book_destroy(c->book);
  free(c->rounds);
  free(c->here);
  free(c->sums);
  free(c->carry);
  free(c->safe_carry);
  free(c->saving_carry);
  free(c->next_carry);
  free(c->rest_carry);
  shoal_places_release(&c->peer_places);
  free(c->peers);
  free(c->past);
  free(c->owners);
  shoal_outbox_release(&c->outbox);
  free(c);
}

shoal_outbox *shoal_chief_outbox(shoal_chief *c) { return &c->outbox; }
uint64_t shoal_chief_version(const shoal_chief *c) { return c->now.version; }
uint64_t shoal_chief_generation(const shoal_chief *c) { return c->now.generation; }
shoal_lease_counts shoal_chief_leases(const shoal_chief *c) { return shoal_lease_count(c->book); }
const float *shoal_chief_carry(const shoal_chief *c) { return c->carry; }
const float *shoal_chief_safe_carry(const shoal_chief *c) { return c->safe_carry; }

uint32_t shoal_chief_workers(const shoal_chief *c) { return c->workers_count; }

uint64_t shoal_chief_owner(const shoal_chief *c, uint32_t slice) { return c->owners[slice].peer; }

bool shoal_chief_peer_at(const shoal_chief *c, uint32_t index, double now, shoal_chief_peer *out) {
  if (index >= c->peers_count) return false;
  const peer_entry *p = &c->peers[index];
  *out = (shoal_chief_peer){.role = p->auditor ? SHOAL_ROLE_AUDITOR : p->role,
                            .slice = p->slice,
                            .threads = p->threads,
                            .parts_done = p->parts_done,
                            .parts_before = p->parts_before,
                            .units_done = p->units_done,
                            .units_before = p->units_before,
                            .seconds_done = p->seconds_done,
                            .seconds_before = p->seconds_before,
                            .bytes_in = p->bytes_in,
                            .bytes_out = p->bytes_out,
                            .unit_s = p->unit_s,
                            .silent_s = now - p->beat.heard,
                            .rejected = p->rejected};
  if (c->guard != NULL && p->role == SHOAL_ROLE_WORKER && !p->auditor)
    out->standing = shoal_trust_get(shoal_guard_trust(c->guard), p->who);
  memcpy(out->name, p->name, sizeof out->name);
  shoal_lease lease;
  if (p->role == SHOAL_ROLE_WORKER && shoal_lease_held(c->book, p->peer, &lease))
    out->held_s = now - lease.since;
  if (p->role == SHOAL_ROLE_OWNER && c->owners[p->slice].applied < c->now.version)
    out->rounds_behind = c->now.version - c->owners[p->slice].applied;
  return true;
}

bool shoal_chief_past_at(const shoal_chief *c, uint32_t index, shoal_chief_peer *out) {
  if (index >= c->past_count) return false;
  *out = (shoal_chief_peer){.role = SHOAL_ROLE_WORKER,
                            .parts_before = c->past[index].parts,
                            .units_before = c->past[index].units,
                            .seconds_before = c->past[index].seconds,
                            .rejected = c->past[index].rejected};
  memcpy(out->name, c->past[index].name, sizeof out->name);
  return true;
}

bool shoal_chief_running(const shoal_chief *c) {
  for (uint32_t s = 0; s < c->config.owners; s++)
    if (c->owners[s].peer == 0 || !c->owners[s].ready) return false;
  return true;
}

/* ---- telling ---- */

/* Events that are only for the eye: a full queue does not take them. */
static bool is_news(shoal_chief_event_kind kind) {
  return kind == SHOAL_CHIEF_ROUND || kind == SHOAL_CHIEF_JOINED || kind == SHOAL_CHIEF_REFUSED ||
         kind == SHOAL_CHIEF_LEFT || kind == SHOAL_CHIEF_LOST || kind == SHOAL_CHIEF_LATE ||
         kind == SHOAL_CHIEF_AGAIN || kind == SHOAL_CHIEF_AUDITED || kind == SHOAL_CHIEF_REJECTED;
}

void shoal_chief_tell(shoal_chief *c, shoal_chief_event event) {
  if (c->events_count == EVENTS_MAX && is_news(event.kind)) return;
  if (c->events_count == EVENTS_MAX) {
    c->events_first = (c->events_first + 1) % EVENTS_MAX;
    c->events_count--;
  }
  c->events[(c->events_first + c->events_count++) % EVENTS_MAX] = event;
}

bool shoal_chief_next_event(shoal_chief *c, shoal_chief_event *out) {
  if (c->events_count == 0) return false;
  *out = c->events[c->events_first];
  c->events_first = (c->events_first + 1) % EVENTS_MAX;
  c->events_count--;
  return true;
}

void shoal_chief_tell_of(shoal_chief *c, shoal_chief_event_kind kind, const peer_entry *peer,
                         const char *text) {
  shoal_chief_event event = {.kind = kind, .version = c->now.version, .peer = peer->peer, .text = text};
  memcpy(event.name, peer->name, sizeof event.name);
  if (c->guard != NULL && peer->role == SHOAL_ROLE_WORKER && !peer->auditor)
    event.standing = shoal_trust_get(shoal_guard_trust(c->guard), peer->who);
  shoal_chief_tell(c, event);
}

peer_entry *shoal_chief_find(shoal_chief *c, uint64_t peer) {
  uint32_t place;
  return shoal_places_get(&c->peer_places, peer, &place) ? &c->peers[place] : NULL;
}

void shoal_chief_set_wants(shoal_chief *c, peer_entry *peer, uint32_t wants) {
  c->wanting += (wants > 0) - (peer->wants > 0);
  peer->wants = wants;
}

void shoal_chief_say(shoal_chief *c, uint64_t peer, shoal_message m) {
  m.generation = c->now.generation;
  peer_entry *entry = shoal_chief_find(c, peer);
  if (entry != NULL) entry->beat.said = c->time;
  shoal_outbox_put(&c->outbox, peer, m);
}

/* ---- what comes in ---- */

/* What DONE carries: sums, then the recurrent state of the unit's parts. */
bool shoal_chief_read_done(shoal_chief *c, const shoal_message *m, uint32_t count, shoal_sums *sums) {
  size_t carry = count * c->config.carry_floats * sizeof(float);
  if (m->payload == NULL || shoal_blob_length(m->payload) != sizeof *sums + carry) return false;
  memcpy(sums, shoal_blob_bytes(m->payload), sizeof *sums);
  return true;
}

/* Of a training that is not guarded. */
static void take_done(shoal_chief *c, peer_entry *worker, const shoal_message *m) {
  if (m->round < c->now.version || m->round >= c->offered || m->shard >= c->config.parts) return;
  uint32_t count = shoal_tree_count(c->config.parts, m->shard, shoal_chief_round_of(c, m->round)->width);
  shoal_sums sums;
  if (!shoal_chief_read_done(c, m, count, &sums)) return;
  shoal_lease lease = {0};
  shoal_lease_find(c->book, m->lease, &lease);
  /* Only from one version must results be equal. */
  uint64_t digest = c->config.mode.kind == SHOAL_SYNC || c->config.mode.kind == SHOAL_LOCAL ? m->version : 0;
  uint64_t unit = m->round * c->config.parts + m->shard;
  switch (shoal_lease_finish(c->book, m->lease, worker->peer, unit, digest, c->time)) {
  case SHOAL_LEASE_FIRST:
    worker->parts_done += count;
    worker->unit_s = c->time - lease.since;
    worker->units_done++;
    worker->seconds_done += worker->unit_s;
    shoal_chief_keep(c, m->round, m->shard, &sums, m->payload);
    shoal_chief_close_rounds(c);
    break;
  case SHOAL_LEASE_DIFFERS: shoal_chief_tell_of(c, SHOAL_CHIEF_DIFFERS, worker, ""); break;
  default: break;
  }
}

static void from_worker(shoal_chief *c, peer_entry *worker, const shoal_message *m) {
  switch (m->kind) {
  case SHOAL_MSG_ASK: {
    uint64_t wants = (uint64_t)worker->wants + m->count;
    shoal_chief_set_wants(c, worker, wants < WANTS_MAX ? (uint32_t)wants : WANTS_MAX);
    break;
  }
  case SHOAL_MSG_DONE:
    shoal_chief_not_late(c, worker);
    if (c->guard != NULL)
      shoal_chief_guard_done(c, worker, m);
    else
      take_done(c, worker, m);
    break;
  case SHOAL_MSG_RETURN:
    if (c->guard != NULL)
      shoal_chief_guard_returned(c, worker, m->lease);
    else
      shoal_lease_return(c->book, m->lease, worker->peer);
    break;
  default: break;
  }
}

static void from_owner(shoal_chief *c, peer_entry *owner, shoal_message *m) {
  switch (m->kind) {
  case SHOAL_MSG_SQUARES: shoal_chief_take_squares(c, owner->slice, m); break;
  case SHOAL_MSG_APPLIED:
    shoal_chief_guard_cut(c, m);
    c->owners[owner->slice].applied = m->version;
    c->moved = c->time;
    shoal_chief_guard_close(c);
    break;
  case SHOAL_MSG_GOT: shoal_chief_guard_got(c, owner->slice, m); break;
  case SHOAL_MSG_SAVED:
    owner->bytes_in = m->lease;
    owner->bytes_out = m->round;
    shoal_chief_take_saved(c, owner->slice, m);
    break;
  case SHOAL_MSG_RESTORED: shoal_chief_take_restored(c, owner->slice, m); break;
  default: break;
  }
}

void shoal_chief_receive(shoal_chief *c, uint64_t peer, shoal_message *m, double now) {
  c->time = now;
  peer_entry *entry = shoal_chief_find(c, peer);
  if (entry != NULL) entry->beat.heard = now;
  if (m->kind == SHOAL_MSG_HELLO)
    shoal_chief_take_hello(c, peer, m);
  else if (entry != NULL && m->generation == c->now.generation && entry->role == SHOAL_ROLE_WORKER)
    from_worker(c, entry, m);
  else if (entry != NULL && m->generation == c->now.generation)
    from_owner(c, entry, m);
  else if (entry != NULL && m->kind == SHOAL_MSG_ASK) /* it has not heard of the generation yet */
    shoal_chief_say(c, peer, (shoal_message){.kind = SHOAL_MSG_WAIT});
  shoal_message_release(m);
  /* The training has begun: the first save is due a while from now. */
  if (isinf(c->next_save) && shoal_chief_running(c)) shoal_chief_begin(c);
  shoal_chief_announce(c);
  shoal_chief_serve(c);
}

void shoal_chief_gone(shoal_chief *c, uint64_t peer, const char *why, double now) {
  c->time = now;
  shoal_chief_lose(c, peer, SHOAL_CHIEF_LOST, why);
  shoal_chief_guard_settle(c);
  shoal_chief_serve(c);
}

void shoal_chief_left(shoal_chief *c, uint64_t peer, const char *why, double now) {
  c->time = now;
  shoal_chief_lose(c, peer, SHOAL_CHIEF_LEFT, why);
  shoal_chief_guard_settle(c);
  shoal_chief_serve(c);
}

void shoal_chief_tick(shoal_chief *c, double now) {
  c->time = now;
  shoal_chief_beat_peers(c);
  if (c->guard != NULL) shoal_guard_tick(c->guard, now, shoal_chief_lost_limit(c));
  shoal_chief_guard_settle(c);
  if (now >= shoal_chief_apart_until(c)) shoal_chief_go_back_apart(c);
  shoal_chief_announce(c);
  shoal_chief_serve(c);
}

double shoal_chief_next_tick(const shoal_chief *c) {
  double next = shoal_lease_next_deadline(c->book, c->time);
  if (c->peers_count > 0) next = fmin(next, c->beat_at);
  if (c->guard != NULL)
    next = fmin(next, shoal_guard_next_tick(c->guard, c->time, shoal_chief_lost_limit(c)));
  return fmin(next, shoal_chief_apart_until(c));
}
