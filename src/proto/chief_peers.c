/* chief_peers.c: see chief.h: who comes, who goes, and what was done under a name. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "proto/chief_internal.h"

static const double EARLY_SHARE = 0.1;                    /* of the time between beats */
static const uint64_t GENERATION_MAX = (uint64_t)1 << 40; /* nobody goes back so often */

static bool is_worker(const peer_entry *peer) { return peer->role == SHOAL_ROLE_WORKER && !peer->auditor; }

/* ---- what was done under a name ---- */

static past_entry *find_past(shoal_chief *c, const char *name) {
  for (uint32_t i = 0; i < c->past_count; i++)
    if (strcmp(c->past[i].name, name) == 0) return &c->past[i];
  return NULL;
}

/* Another worker of this name, or NULL. */
static peer_entry *find_twin(shoal_chief *c, const peer_entry *worker) {
  for (uint32_t i = 0; i < c->peers_count; i++) {
    peer_entry *other = &c->peers[i];
    if (other != worker && other->role == worker->role && strcmp(other->name, worker->name) == 0)
      return other;
  }
  return NULL;
}

/* A worker goes: what it has done stays with its name, or with who else has that. */
static void remember(shoal_chief *c, const peer_entry *worker) {
  uint64_t parts = worker->parts_before + worker->parts_done;
  uint64_t units = worker->units_before + worker->units_done;
  double seconds = worker->seconds_before + worker->seconds_done;
  peer_entry *twin = find_twin(c, worker);
  past_entry *past = find_past(c, worker->name);
  if (twin != NULL) {
    twin->parts_before += parts;
    twin->units_before += units;
    twin->seconds_before += seconds;
    twin->rejected += worker->rejected;
    return;
  }
  if (parts == 0 || (past == NULL && c->past_count == c->config.workers_max)) return;
  if (past == NULL) {
    past = &c->past[c->past_count++];
    *past = (past_entry){0};
    memcpy(past->name, worker->name, sizeof past->name);
  }
  past->parts += parts;
  past->units += units;
  past->seconds += seconds;
  past->rejected += worker->rejected;
}

/* A worker is back: what its name had done is its own again. */
static void recall(shoal_chief *c, peer_entry *worker) {
  past_entry *past = find_past(c, worker->name);
  if (past == NULL) return;
  worker->parts_before = past->parts;
  worker->units_before = past->units;
  worker->seconds_before = past->seconds;
  worker->rejected = past->rejected;
  *past = c->past[--c->past_count];
}

/* ---- who comes ---- */

/* It comes from outside and goes to terminals and logs. */
static void read_name(const shoal_message *m, char name[SHOAL_NAME_MAX]) {
  name[0] = 0;
  if (m->payload != NULL)
    shoal_text_plain(name, SHOAL_NAME_MAX, shoal_blob_bytes(m->payload), shoal_blob_length(m->payload));
}

static const char TAKEN[] = "the training has a parameter server of this index already";

/* Why somebody is not welcome; NULL: it is. */
static const char *refusal_of(const shoal_chief *c, const shoal_message *m) {
  if (m->count == SHOAL_ROLE_WORKER && m->round != 0) return "this is the chief, and no parameter server";
  if (m->count == SHOAL_ROLE_WORKER && c->guard != NULL) {
    char name[SHOAL_NAME_MAX];
    bool auditor;
    read_name(m, name);
    uint64_t who = shoal_chief_guard_who(c, m, name, &auditor);
    const char *refusal = shoal_chief_guard_refusal(c, who, auditor);
    if (refusal != NULL || auditor) return refusal;
  }
  if (m->count == SHOAL_ROLE_WORKER)
    return shoal_chief_workers(c) >= c->config.workers_max ? "the training has workers enough" : NULL;
  if (m->count != SHOAL_ROLE_OWNER) return "neither a worker nor a parameter server";
  if (m->slice >= c->config.owners)
    return "the training has no parameter server of this index: its --ps-hosts is a shorter list";
  if (m->generation > GENERATION_MAX) return "its generation cannot be";
  return c->owners[m->slice].peer != 0 ? TAKEN : NULL; /* whose connection may be a dead one */
}

static peer_entry *add_peer(shoal_chief *c, uint64_t peer, const shoal_message *m) {
  shoal_places_put(&c->peer_places, peer, c->peers_count);
  peer_entry *entry = &c->peers[c->peers_count++];
  *entry = (peer_entry){.peer = peer,
                        .role = m->count,
                        .slice = m->slice,
                        .threads = m->shard,
                        .beat = {.said = c->time, .heard = c->time}};
  read_name(m, entry->name);
  if (c->guard != NULL && m->count == SHOAL_ROLE_WORKER)
    entry->who = shoal_chief_guard_who(c, m, entry->name, &entry->auditor);
  c->workers_count += is_worker(entry);
  c->beat_at = fmin(c->beat_at, shoal_beat_next(&entry->beat, &c->config.beat));
  return entry;
}

/* An owner that only lost its connection has the generation in memory. Another is brought to the safe
 * version or the last rest, and all with it, unless they are still there. (In async mode it has forgotten too which
 * contributions it had, so those must be of an old generation.) */
static void place_owner(shoal_chief *c, uint64_t peer, const shoal_message *m) {
  bool kept = m->lease == 1 && m->generation == c->now.generation && m->round == c->config.job_digest;
  /* One that knew another chief, or another job, must not take this generation for an old one. */
  bool ahead = !kept && m->generation >= c->now.generation;
  c->owners[m->slice] = (owner_entry){.peer = peer, .applied = m->version};
  if (ahead) c->now.generation = m->generation;
  c->moved = c->time;
  c->owners[m->slice].ready = kept;
  if (kept) {
    /* It may have been silent because it wrote. That it has saved was not heard, so it is asked again. */
    if (c->saving) shoal_chief_ask_to_save(c, m->slice);
  } else if (ahead)
    shoal_chief_go_back_for(c, shoal_chief_owner_of(c, m->slice), "comes from another training");
  else if (c->offered > shoal_chief_newest(c)->version || (c->begun && c->config.mode.kind == SHOAL_ASYNC))
    shoal_chief_go_back_for(c, shoal_chief_owner_of(c, m->slice), "was started again");
  else
    shoal_chief_ask_to_restore(c, m->slice);
}

void shoal_chief_take_hello(shoal_chief *c, uint64_t peer, const shoal_message *m) {
  if (shoal_chief_find(c, peer) != NULL) return;
  const char *refusal = refusal_of(c, m);
  if (refusal != NULL) {
    shoal_chief_event event = {.kind = SHOAL_CHIEF_REFUSED, .peer = peer, .text = refusal};
    read_name(m, event.name);
    shoal_chief_tell(c, event);
    shoal_chief_say(c, peer,
                    (shoal_message){.kind = SHOAL_MSG_REFUSE,
                                    .count = refusal == TAKEN ? SHOAL_REFUSED_FOR_NOW : 0,
                                    .payload = shoal_blob_of(refusal, strlen(refusal))});
    return;
  }
  bool owner = m->count == SHOAL_ROLE_OWNER;
  peer_entry *entry = add_peer(c, peer, m);
  shoal_chief_say(c, peer,
                  (shoal_message){.kind = SHOAL_MSG_WELCOME,
                                  .lease = c->config.instance,
                                  .payload = shoal_blob_of(c->config.job, strlen(c->config.job))});
  if (is_worker(entry)) recall(c, entry);
  shoal_chief_event event = {.kind = SHOAL_CHIEF_JOINED,
                             .version = c->now.version,
                             .peer = peer,
                             .twin = !owner && find_twin(c, entry) != NULL,
                             .text = owner            ? "parameter server"
                                     : entry->auditor ? "auditor"
                                                      : "worker"};
  memcpy(event.name, entry->name, sizeof event.name);
  shoal_chief_tell(c, event);
  if (owner) place_owner(c, peer, m);
}

/* ---- who goes ---- */

void shoal_chief_lose(shoal_chief *c, uint64_t peer, shoal_chief_event_kind how, const char *why) {
  peer_entry *entry = shoal_chief_find(c, peer);
  if (entry == NULL) return;
  shoal_chief_tell_of(c, how, entry, why);
  if (entry->role == SHOAL_ROLE_WORKER) {
    shoal_lease_drop(c->book, peer);
    if (c->guard != NULL) shoal_guard_gone(c->guard, peer);
    if (is_worker(entry)) remember(c, entry);
  } else {
    shoal_chief_forget_squares(&c->owners[entry->slice]);
    c->owners[entry->slice] = (owner_entry){0};
    c->announced = false; /* what the driver asked it for may be lost: a rest is told again */
  }
  shoal_chief_set_wants(c, entry, 0);
  c->workers_count -= is_worker(entry);
  shoal_places_remove(&c->peer_places, peer);
  const peer_entry *last = &c->peers[--c->peers_count];
  if (entry != last) shoal_places_put(&c->peer_places, last->peer, (uint32_t)(entry - c->peers));
  *entry = *last;
}

/* Beats that are almost due go out too, so that thousands of peers don't each want a tick of their own.
 * Whoever is given up must be told to the driver, who closes the connection: while there is no room for
 * that, the rest waits for the next tick. */
void shoal_chief_beat_peers(shoal_chief *c) {
  const shoal_beat_rules *rules = &c->config.beat;
  if (c->time < c->beat_at) return;
  c->beat_at = INFINITY;
  for (uint32_t i = 0; i < c->peers_count;) {
    const peer_entry *p = &c->peers[i];
    if (shoal_beat_lost(&p->beat, rules, c->time) && c->events_count < SHOAL_CHIEF_EVENTS_MAX) {
      shoal_chief_lose(c, p->peer, SHOAL_CHIEF_LOST, "it has been silent for too long");
      continue;
    }
    if (shoal_beat_due(&p->beat, rules, c->time + EARLY_SHARE * rules->every_s))
      shoal_chief_say(c, p->peer, (shoal_message){.kind = SHOAL_MSG_BEAT});
    c->beat_at = fmin(c->beat_at, shoal_beat_next(&p->beat, rules));
    i++;
  }
}
