/* chief.c: see chief.h.
 *
 * A unit is a node of a round's tree: number round * parts + first part. Rounds are offered when a
 * worker has nothing else to do, the rounds version .. version + stale at most (in async mode,
 * where a round is one unit, as many as there is room for); how wide the round's nodes are is
 * decided then. Results of rounds that wait for an earlier one are kept.
 *
 * A contribution or a report that is lost on the way shows only in that nothing comes any more: owners
 * and reports stay apart. How long that may take is a guess, and a wrong one takes all back for nothing:
 * so the limit grows with what units and saves have taken, and doubles each time that it was reached. */
#include "proto/chief.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "nn/tree.h"
#include "proto/chief_internal.h"

enum {
  EVENTS_MAX = SHOAL_CHIEF_EVENTS_MAX,
  HOLDERS_TOLD_MAX = 8,
  WANTS_MAX = 64,
  ASYNC_WINDOW_LEAST = 1024,
  AUDITORS_MAX = 2, /* an old connection may be about to end */
};
_Static_assert((int)ASYNC_WINDOW_LEAST <= (int)SHOAL_ASYNC_WINDOW_MAX, "owners remember so many rounds");
static const double EARLY_SHARE = 0.1; /* of the time between beats */
/* Making a version safe takes at most one part in so many of the time. */
static const double SAVING_SHARE = 30;
static const double SAVING_LOST_S = 120; /* an owner that writes may hold up its round so long */
static const double SILENT_BEATS = 1.5;  /* who has missed one does not answer */
static const double UNITS_APART = 3;     /* what is on its way may take as long as so many units */
static const double SAVES_APART = 2;     /* and as so many saves */
static const uint64_t GENERATION_MAX = (uint64_t)1 << 40; /* nobody goes back so often */

/* Rounds that may be under way at once. */
static uint32_t window_of(const shoal_chief_config *config) {
  if (config->mode.kind != SHOAL_ASYNC) return config->mode.stale + 1;
  uint64_t twice = 2 * (uint64_t)config->workers_max;
  if (twice < ASYNC_WINDOW_LEAST) return ASYNC_WINDOW_LEAST;
  return twice < SHOAL_ASYNC_WINDOW_MAX ? (uint32_t)twice : SHOAL_ASYNC_WINDOW_MAX;
}

/* The most units that a round is cut into. */
static uint32_t units_of(const shoal_chief_config *config) {
  return config->mode.kind == SHOAL_ASYNC ? 1 : config->parts;
}

static bool reserve(shoal_chief *c) {
  const shoal_chief_config *config = &c->config;
  size_t units = units_of(config), places = c->window * units;
  c->rounds = calloc(c->window, sizeof *c->rounds);
  c->here = calloc(places, sizeof *c->here);
  c->sums = calloc(places, sizeof *c->sums);
  const uint32_t peers_max = config->workers_max + config->owners + AUDITORS_MAX;
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
  float **carries[] = {&c->carry, &c->safe_carry, &c->saving_carry, &c->next_carry};
  for (int i = 0; i < 4; i++) {
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
  c->now = c->safe = config->start;
  c->now.generation = c->safe.generation = config->start.generation + 1;
  c->offered = c->now.version;
  c->paused = c->now.version == config->end; /* a rest is all that is left to tell */
  c->next_save = INFINITY;
  c->lost_s = config->lost_s;
  shoal_lease_rules rules = config->leases;
  rules.units_max = c->window * units_of(config);
  shoal_status status = reserve(c) ? shoal_lease_book_create(&c->book, &rules, err)
                                   : shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a chief");
  if (status == SHOAL_OK && config->guard.on) status = shoal_chief_guard_create(c, err);
  if (status != SHOAL_OK) {
    shoal_chief_destroy(c);
    return status;
  }
  shoal_chief_tell(c, (shoal_chief_event){.kind = SHOAL_CHIEF_BACK,
                                          .version = c->now.version,
                                          .state = c->now,
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
                            .seconds_before = c->past[index].seconds};
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

static void set_wants(shoal_chief *c, peer_entry *peer, uint32_t wants) {
  c->wanting += (wants > 0) - (peer->wants > 0);
  peer->wants = wants;
}

void shoal_chief_say(shoal_chief *c, uint64_t peer, shoal_message m) {
  m.generation = c->now.generation;
  peer_entry *entry = shoal_chief_find(c, peer);
  if (entry != NULL) entry->beat.said = c->time;
  shoal_outbox_put(&c->outbox, peer, m);
}

/* Whether an owner has made a version of which a part was not reported: its worker was lost between
 * the two. Nobody can compute that part again, since the version that it starts from is gone. (In async
 * mode any version will do.) */
static bool unreported(const shoal_chief *c) {
  if (c->config.mode.kind == SHOAL_ASYNC) return false;
  for (uint32_t s = 0; s < c->config.owners; s++)
    if (c->owners[s].applied > c->now.version) return true;
  return false;
}

/* ---- leases ---- */

/* The oldest version that a unit of this round may be computed from. */
static uint64_t version_for(const shoal_chief *c, uint64_t round) {
  if (c->config.mode.kind == SHOAL_ASYNC) return 0;
  return round > c->config.mode.stale ? round - c->config.mode.stale : 0;
}

static open_round *round_of(shoal_chief *c, uint64_t round) { return &c->rounds[round % c->window]; }

/* How wide a round's units are: such that the last worker is done soonest, if all are equal; of
 * those the widest, since every unit costs a transfer. */
static uint32_t choose_width(const shoal_chief *c) {
  uint32_t parts = c->config.parts, workers = shoal_chief_workers(c), best = 1, best_time = UINT32_MAX;
  if (c->config.mode.kind == SHOAL_LOCAL) return 1; /* changes of the weights are no sums */
  /* Who keeps to its lane, and rules that compare contributions, want them apart. */
  if (c->config.single || c->config.leases.lanes > 0) return 1;
  if (c->config.mode.kind == SHOAL_ASYNC) workers = 1;
  if (workers == 0) workers = 1;
  for (uint32_t width = 1;; width *= 2) {
    uint32_t units = (parts + width - 1) / width, turns = (units + workers - 1) / workers;
    uint32_t time = turns * (width < parts ? width : parts);
    if (time <= best_time) {
      best = width;
      best_time = time;
    }
    if (width >= parts) return best;
  }
}

static uint64_t epoch_end(const shoal_chief *c) {
  return (c->now.version / c->config.rounds + 1) * c->config.rounds;
}

/* Nothing of the next epoch before the driver has had this one's end. */
static bool may_offer(const shoal_chief *c) {
  return !c->rest_wanted && c->offered < c->now.version + c->window && c->offered < epoch_end(c) &&
         c->offered < c->config.end;
}

static void offer(shoal_chief *c) {
  open_round *round = round_of(c, c->offered);
  round->width = choose_width(c);
  for (uint32_t first = 0; first < c->config.parts; first += round->width) {
    bool room = shoal_lease_offer(c->book, c->offered * c->config.parts + first);
    SHOAL_ASSERT(room);
  }
  c->offered++;
  c->begun = true;
}

/* The recurrent state that parts of a round start from; zeros at the start of an epoch. */
static shoal_blob *carry_for(const shoal_chief *c, uint64_t round, uint32_t first, uint32_t count) {
  if (c->carry == NULL || round % c->config.rounds == 0) return NULL;
  return shoal_blob_of(c->carry + first * c->config.carry_floats,
                       count * c->config.carry_floats * sizeof(float));
}

/* Says who is late when a unit is leased again. */
static void tell_late(shoal_chief *c, const shoal_lease *lease) {
  uint64_t workers[HOLDERS_TOLD_MAX];
  uint32_t count = shoal_lease_holders(c->book, lease->unit, workers, HOLDERS_TOLD_MAX);
  for (uint32_t i = 0; i < count; i++) {
    peer_entry *peer = shoal_chief_find(c, workers[i]);
    if (peer == NULL || workers[i] == lease->worker) continue;
    peer->late = true;
    shoal_chief_tell_of(c, SHOAL_CHIEF_LATE, peer, "");
  }
}

uint32_t shoal_chief_count_of(shoal_chief *c, uint64_t unit) {
  return shoal_tree_count(c->config.parts, (uint32_t)(unit % c->config.parts),
                          round_of(c, unit / c->config.parts)->width);
}

/* Something to check, in a guarded training. */
static bool find_check(shoal_chief *c, const peer_entry *worker, shoal_lease *lease) {
  uint64_t unit;
  return c->guard != NULL && shoal_guard_wants(c->guard, worker->who, c->time, &unit) &&
         shoal_lease_join(c->book, worker->peer, unit, c->time, lease);
}

/* The auditor gets what is to be checked, and nothing else; others get that when there is nothing new to do. */
static bool find_work(shoal_chief *c, const peer_entry *worker, shoal_lease *lease) {
  if (worker->auditor) return find_check(c, worker, lease);
  if (c->guard != NULL && !shoal_guard_may_have(c->guard, worker->who)) return false;
  if (!shoal_lease_has_free(c->book) && may_offer(c)) offer(c);
  bool again = !shoal_lease_has_free(c->book);
  /* With lanes who checks another's unit would have to fetch its data: that is left to the auditor. */
  if (again && c->config.leases.lanes == 0 && find_check(c, worker, lease)) return true;
  if (!shoal_lease_take(c->book, worker->peer, c->time, lease)) return false;
  if (again) tell_late(c, lease);
  return true;
}

static bool serve_one(shoal_chief *c, peer_entry *worker) {
  shoal_lease lease;
  if (!find_work(c, worker, &lease)) return false;
  uint64_t round = lease.unit / c->config.parts, ticket = lease.id;
  uint32_t first = (uint32_t)(lease.unit % c->config.parts), count = shoal_chief_count_of(c, lease.unit);
  if (c->guard != NULL) ticket = shoal_guard_leased(c->guard, &lease, count, worker->who);
  if (ticket == 0) {
    shoal_lease_return(c->book, lease.id, worker->peer);
    return false;
  }
  set_wants(c, worker, worker->wants - 1);
  shoal_chief_say(c, worker->peer,
                  (shoal_message){.kind = SHOAL_MSG_LEASE,
                                  .lease = ticket,
                                  .round = round,
                                  .shard = first,
                                  .count = count,
                                  .version = version_for(c, round),
                                  .payload = carry_for(c, round, first, count)});
  return true;
}

/* Whether there may be something for somebody. */
static bool may_lease(const shoal_chief *c) {
  return may_offer(c) || shoal_lease_has_any(c->book, c->time) || c->guard != NULL;
}

/* Everybody gets one before anybody gets two. What owners have made already needs nobody's work: a
 * report is on its way, or was lost. */
static void serve(shoal_chief *c) {
  if (c->paused || c->ended || !shoal_chief_running(c) || unreported(c)) return;
  for (bool served = true; served;) {
    served = false;
    for (uint32_t i = 0; i < c->peers_count && c->wanting > 0 && may_lease(c); i++)
      if (c->peers[i].wants > 0) served |= serve_one(c, &c->peers[i]);
  }
}

/* ---- going back ---- */

static void forget_squares(owner_entry *owner) {
  shoal_blob_release(owner->squares);
  owner->squares = NULL;
}

static void ask_to_restore(shoal_chief *c, uint32_t slice) {
  shoal_chief_say(c, c->owners[slice].peer,
                  (shoal_message){.kind = SHOAL_MSG_RESTORE, .version = c->safe.version, .slice = slice});
}

/* The peer of a slice's owner, or NULL. */
static const peer_entry *owner_of(shoal_chief *c, uint32_t slice) {
  return c->owners[slice].peer != 0 ? shoal_chief_find(c, c->owners[slice].peer) : NULL;
}

void shoal_chief_go_back(shoal_chief *c, const char *name, const char *why, bool undoes) {
  uint64_t generation = c->now.generation + 1;
  bool resting = c->paused && c->safe.version == c->now.version;
  c->now = c->safe;
  c->now.generation = c->safe.generation = generation;
  c->offered = c->now.version;
  c->begun = false;
  c->moved = c->time;
  c->saving = c->announced = c->ended = false;
  c->paused = resting;
  shoal_lease_forget(c->book, UINT64_MAX);
  memset(c->here, 0, (size_t)c->window * units_of(&c->config) * sizeof *c->here);
  if (c->guard != NULL) shoal_guard_back(c->guard, c->now.version);
  if (c->carry != NULL) memcpy(c->carry, c->safe_carry, c->carry_count * sizeof *c->carry);
  for (uint32_t s = 0; s < c->config.owners; s++) {
    c->owners[s].ready = false;
    forget_squares(&c->owners[s]);
  }
  /* What workers had is void; they ask again when they hear of the new generation. */
  for (uint32_t i = 0; i < c->peers_count; i++) {
    set_wants(c, &c->peers[i], 0);
    if (c->peers[i].role == SHOAL_ROLE_WORKER)
      shoal_chief_say(c, c->peers[i].peer, (shoal_message){.kind = SHOAL_MSG_WAIT});
  }
  for (uint32_t s = 0; s < c->config.owners; s++)
    if (c->owners[s].peer != 0) ask_to_restore(c, s);
  shoal_chief_event event = {
      .kind = SHOAL_CHIEF_BACK, .version = c->now.version, .state = c->now, .text = why, .undoes = undoes};
  if (name != NULL) memcpy(event.name, name, sizeof event.name);
  shoal_chief_tell(c, event);
}

/* `who` is the cause, or NULL. */
static void go_back(shoal_chief *c, const peer_entry *who, const char *why) {
  shoal_chief_go_back(c, who != NULL ? who->name : NULL, why, false);
}

/* ---- rounds ---- */

static void ask_to_save(shoal_chief *c, uint32_t slice) {
  c->owners[slice].saved = false;
  shoal_chief_say(c, c->owners[slice].peer,
                  (shoal_message){.kind = SHOAL_MSG_SAVE,
                                  .version = c->saving_version,
                                  .round = c->safe.version,
                                  .slice = slice,
                                  .payload = shoal_chief_ring_versions(c)});
}

static void start_saving(shoal_chief *c, uint64_t version) {
  c->saving = true;
  c->saving_version = version;
  for (uint32_t s = 0; s < c->config.owners; s++) ask_to_save(c, s);
}

static void note_saving_state(shoal_chief *c) {
  if (!c->saving || c->saving_version != c->now.version) return;
  c->saving_since = c->time;
  c->saving_state = c->now;
  if (c->carry != NULL) memcpy(c->saving_carry, c->carry, c->carry_count * sizeof *c->carry);
}

/* Whether owners may be writing: before the chief has come to the version that is to be kept they are not
 * held up by it. */
static bool writing(const shoal_chief *c) { return c->saving && c->now.version >= c->saving_version; }

/* A version is safe when all owners have it, and the chief too has come to it. */
static void finish_saving(shoal_chief *c) {
  if (!writing(c)) return;
  for (uint32_t s = 0; s < c->config.owners; s++)
    if (!c->owners[s].saved) return;
  double took = c->time - c->saving_since;
  c->saving = false;
  c->next_save = c->time + fmax(c->config.save_s, SAVING_SHARE * took);
  c->lost_s = fmax(c->config.lost_s, SAVES_APART * took);
  c->safe = c->saving_state;
  if (c->carry != NULL) memcpy(c->safe_carry, c->saving_carry, c->carry_count * sizeof *c->carry);
  shoal_chief_ring_add(c);
  shoal_chief_tell(
      c, (shoal_chief_event){.kind = SHOAL_CHIEF_SAFE, .version = c->safe.version, .state = c->safe});
}

/* A version that no owner can be past when it is asked to keep it. In async mode they may be ahead of the
 * chief by what all workers have under way. */
static uint64_t version_to_save(const shoal_chief *c) {
  uint64_t newest = c->now.version;
  for (uint32_t s = 0; s < c->config.owners; s++)
    if (c->owners[s].applied > newest) newest = c->owners[s].applied;
  return newest + 1 + (c->config.mode.kind == SHOAL_ASYNC ? c->workers_count : c->config.mode.stale);
}

/* From time to time; what lies behind the next rest is left to it. */
static void save_sometimes(shoal_chief *c) {
  if (c->saving || c->time < c->next_save || !shoal_chief_running(c)) return;
  uint64_t version = version_to_save(c);
  if (version <= epoch_end(c)) start_saving(c, version);
}

/* Closes the round at hand when all its units are in; false when they are not. */
static bool close_round(shoal_chief *c) {
  if (c->now.version == c->offered) return false;
  open_round *round = round_of(c, c->now.version);
  for (uint32_t first = 0; first < c->config.parts; first += round->width)
    if (!round->here[first]) return false;
  if (c->guard != NULL && shoal_guard_disputes(c->guard, c->now.version)) return false;
  memset(round->here, 0, units_of(&c->config) * sizeof *round->here);
  if (c->carry != NULL && c->config.guard.audits)
    memcpy(c->carry, c->next_carry, c->carry_count * sizeof *c->carry);
  shoal_tree_add_sums(round->sums, c->config.parts, round->width);
  const shoal_sums sums = round->sums[0];
  if (!isfinite(sums.loss)) {
    c->ended = true;
    shoal_chief_tell(
        c, (shoal_chief_event){.kind = SHOAL_CHIEF_FAILED, .version = c->now.version, .sums = sums});
    return false;
  }
  if (c->now.version % c->config.rounds == 0) c->now.epoch = (shoal_sums){0};
  shoal_sums_add(&c->now.epoch, &sums);
  c->now.version++;
  c->moved = c->time;
  shoal_lease_forget(c->book, c->now.version * c->config.parts);
  shoal_chief_guard_close(c);
  shoal_chief_tell(c,
                   (shoal_chief_event){
                       .kind = SHOAL_CHIEF_ROUND, .version = c->now.version, .sums = sums, .state = c->now});
  note_saving_state(c);
  finish_saving(c);
  bool epoch_is_over = c->now.version % c->config.rounds == 0;
  if (c->now.version == c->offered && (epoch_is_over || c->rest_wanted)) {
    c->paused = true;
    c->announced = false;
  } else if (!epoch_is_over) {
    save_sometimes(c);
  }
  return true;
}

/* The first owner that has not made a version whose parts were all reported; `owners` when all have. */
static uint32_t first_behind(const shoal_chief *c) {
  uint32_t s = 0;
  while (s < c->config.owners && c->owners[s].applied >= c->now.version) s++;
  return s;
}

static bool behind(const shoal_chief *c) { return first_behind(c) < c->config.owners; }

/* Both happen for a moment in every round. When they last, something was lost on the way. */
static bool apart(const shoal_chief *c) { return shoal_chief_running(c) && (behind(c) || unreported(c)); }

/* How long they may be apart before that is believed. An owner tells of a version that it keeps only when
 * it has kept it. What a worker still sends to a slow owner takes about as long as what it got from there,
 * which is part of the time of its unit. */
static double lost_limit(const shoal_chief *c) {
  double limit = fmax(c->lost_s, UNITS_APART * shoal_lease_median(c->book));
  return writing(c) ? fmax(limit, SAVING_LOST_S) : limit;
}

/* A rest is told when every owner has made its last version and keeps it safe. */
static void announce(shoal_chief *c) {
  if (c->rest_wanted && !c->paused && c->now.version == c->offered) {
    c->paused = true;
    c->announced = false;
  }
  if (!c->paused || c->announced || c->ended || !shoal_chief_running(c) || behind(c)) return;
  if (c->saving && c->saving_version <= c->now.version) return;
  if (c->guard != NULL && shoal_guard_pending(c->guard)) return; /* what it finds may change the version */
  c->saving = false; /* a later version, which will not be made before the rest */
  if (c->safe.version != c->now.version) {
    start_saving(c, c->now.version);
    note_saving_state(c);
    return;
  }
  c->announced = true;
  shoal_chief_tell(
      c, (shoal_chief_event){
             .kind = SHOAL_CHIEF_REST, .version = c->now.version, .sums = c->now.epoch, .state = c->now});
}

void shoal_chief_rest(shoal_chief *c, double now) {
  c->time = now;
  c->rest_wanted = true;
  announce(c);
}

void shoal_chief_go_on(shoal_chief *c, double now) {
  c->time = now;
  if (!c->paused) return; /* what the driver has is of a version that did not stay */
  c->rest_wanted = c->paused = c->announced = false;
  serve(c);
}

void shoal_chief_end(shoal_chief *c, const char *text) {
  c->ended = true;
  for (uint32_t i = 0; i < c->peers_count; i++)
    shoal_chief_say(c, c->peers[i].peer,
                    (shoal_message){.kind = SHOAL_MSG_END, .payload = shoal_blob_of(text, strlen(text))});
}

void shoal_chief_give(shoal_chief *c, uint32_t slice, shoal_blob *state) {
  SHOAL_ASSERT(slice < c->config.owners);
  shoal_chief_say(
      c, c->owners[slice].peer,
      (shoal_message){.kind = SHOAL_MSG_GIVE, .version = c->now.version, .slice = slice, .payload = state});
}

void shoal_chief_fall_back(shoal_chief *c, const shoal_chief_state *state, const float *carry, double now) {
  c->time = now;
  uint64_t generation = c->now.generation;
  c->safe = *state;
  if (c->carry != NULL && carry != NULL) memcpy(c->safe_carry, carry, c->carry_count * sizeof *carry);
  c->now.generation = generation;
  shoal_chief_ring_cut(c);
  go_back(c, NULL, "a parameter server has lost what it kept");
}

/* Clipping: with the squares of all slices the norm is known, and each owner its factor. They are
 * added run after run, as on one machine. */
static void take_squares(shoal_chief *c, uint32_t slice, shoal_message *m) {
  if (m->payload == NULL) return;
  forget_squares(&c->owners[slice]);
  c->owners[slice].squares = m->payload;
  c->owners[slice].squares_round = m->round;
  m->payload = NULL;
  for (uint32_t s = 0; s < c->config.owners; s++)
    if (c->owners[s].squares == NULL || c->owners[s].squares_round != m->round) return;
  double total = 0;
  for (uint32_t s = 0; s < c->config.owners; s++) {
    const double *squares = (const double *)(const void *)shoal_blob_bytes(c->owners[s].squares);
    size_t count = shoal_blob_length(c->owners[s].squares) / sizeof *squares;
    for (size_t i = 0; i < count; i++) total += squares[i];
  }
  double norm = sqrt(total);
  float scale = norm > (double)c->config.clip ? (float)((double)c->config.clip / norm) : 1;
  for (uint32_t s = 0; s < c->config.owners; s++)
    shoal_chief_say(c, c->owners[s].peer,
                    (shoal_message){.kind = SHOAL_MSG_SCALE,
                                    .round = m->round,
                                    .slice = s,
                                    .payload = shoal_blob_of(&scale, sizeof scale)});
}

/* ---- what comes in ---- */

/* It comes from outside and goes to terminals and logs. */
static void read_name(const shoal_message *m, char name[SHOAL_NAME_MAX]) {
  name[0] = 0;
  if (m->payload != NULL)
    shoal_text_plain(name, SHOAL_NAME_MAX, shoal_blob_bytes(m->payload), shoal_blob_length(m->payload));
}

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
  return c->owners[m->slice].peer != 0 ? "the training has a parameter server of this index already" : NULL;
}

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
}

/* A worker is back: what its name had done is its own again. */
static void recall(shoal_chief *c, peer_entry *worker) {
  past_entry *past = find_past(c, worker->name);
  if (past == NULL) return;
  worker->parts_before = past->parts;
  worker->units_before = past->units;
  worker->seconds_before = past->seconds;
  *past = c->past[--c->past_count];
}

static bool is_worker(const peer_entry *peer) { return peer->role == SHOAL_ROLE_WORKER && !peer->auditor; }

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
 * version, and all with it, unless they are still there. (In async mode it has forgotten too which
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
    if (c->saving) ask_to_save(c, m->slice);
  } else if (ahead)
    go_back(c, owner_of(c, m->slice), "comes from another training");
  else if (c->offered > c->safe.version || (c->begun && c->config.mode.kind == SHOAL_ASYNC))
    go_back(c, owner_of(c, m->slice), "was started again");
  else
    ask_to_restore(c, m->slice);
}

static void take_hello(shoal_chief *c, uint64_t peer, const shoal_message *m) {
  if (shoal_chief_find(c, peer) != NULL) return;
  const char *refusal = refusal_of(c, m);
  if (refusal != NULL) {
    shoal_chief_event event = {.kind = SHOAL_CHIEF_REFUSED, .peer = peer, .text = refusal};
    read_name(m, event.name);
    shoal_chief_tell(c, event);
    shoal_chief_say(
        c, peer,
        (shoal_message){.kind = SHOAL_MSG_REFUSE, .payload = shoal_blob_of(refusal, strlen(refusal))});
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

/* What DONE carries: sums, then the recurrent state of the unit's parts. */
bool shoal_chief_read_done(shoal_chief *c, const shoal_message *m, uint32_t count, shoal_sums *sums) {
  size_t carry = count * c->config.carry_floats * sizeof(float);
  if (m->payload == NULL || shoal_blob_length(m->payload) != sizeof *sums + carry) return false;
  memcpy(sums, shoal_blob_bytes(m->payload), sizeof *sums);
  return true;
}

void shoal_chief_keep(shoal_chief *c, uint64_t number, uint32_t first, const shoal_sums *sums,
                      shoal_blob *report) {
  open_round *round = round_of(c, number);
  uint32_t count = shoal_tree_count(c->config.parts, first, round->width);
  round->here[first] = true;
  round->sums[first] = *sums;
  if (c->carry == NULL) return;
  float *carry = c->config.guard.audits ? c->next_carry : c->carry;
  memcpy(carry + first * c->config.carry_floats, shoal_blob_bytes(report) + sizeof *sums,
         count * c->config.carry_floats * sizeof(float));
}

void shoal_chief_close_rounds(shoal_chief *c) {
  while (!c->paused && !c->ended && close_round(c)) {
  }
}

static void take_done(shoal_chief *c, peer_entry *worker, const shoal_message *m) {
  if (m->round < c->now.version || m->round >= c->offered || m->shard >= c->config.parts) return;
  uint32_t count = shoal_tree_count(c->config.parts, m->shard, round_of(c, m->round)->width);
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
    if (worker->late) shoal_chief_tell_of(c, SHOAL_CHIEF_AGAIN, worker, "");
    worker->late = false;
    shoal_chief_keep(c, m->round, m->shard, &sums, m->payload);
    shoal_chief_close_rounds(c);
    break;
  case SHOAL_LEASE_DIFFERS: shoal_chief_tell_of(c, SHOAL_CHIEF_DIFFERS, worker, ""); break;
  default: break;
  }
}

static void take_saved(shoal_chief *c, uint32_t slice, const shoal_message *m) {
  if (!c->saving || m->version != c->saving_version) return;
  if (m->count != 0) { /* it was too late; another time */
    c->saving = false;
    c->next_save = c->time + c->config.save_s;
    return;
  }
  c->owners[slice].saved = true;
  finish_saving(c);
}

static void take_restored(shoal_chief *c, uint32_t slice, const shoal_message *m) {
  if (m->version != c->now.version) return;
  c->owners[slice].ready = m->count == 0;
  if (m->count == 0 && c->saving) ask_to_save(c, slice); /* that it had been asked before, it has forgotten */
  c->owners[slice].applied = m->version;
  if (m->count != 0)
    shoal_chief_tell(
        c, (shoal_chief_event){.kind = SHOAL_CHIEF_LACKS, .version = c->now.version, .slice = slice});
}

static void from_worker(shoal_chief *c, peer_entry *worker, const shoal_message *m) {
  switch (m->kind) {
  case SHOAL_MSG_ASK: {
    uint64_t wants = (uint64_t)worker->wants + m->count;
    set_wants(c, worker, wants < WANTS_MAX ? (uint32_t)wants : WANTS_MAX);
    break;
  }
  case SHOAL_MSG_DONE:
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
  case SHOAL_MSG_SQUARES: take_squares(c, owner->slice, m); break;
  case SHOAL_MSG_APPLIED:
    c->owners[owner->slice].applied = m->version;
    c->moved = c->time;
    shoal_chief_guard_close(c);
    break;
  case SHOAL_MSG_GOT: shoal_chief_guard_got(c, owner->slice, m); break;
  case SHOAL_MSG_SAVED:
    owner->bytes_in = m->lease;
    owner->bytes_out = m->round;
    take_saved(c, owner->slice, m);
    break;
  case SHOAL_MSG_RESTORED: take_restored(c, owner->slice, m); break;
  default: break;
  }
}

/* All are here for the first time. Where somebody may turn out to lie, the beginning too must be somewhere to go back
 * to. */
static void begin(shoal_chief *c) {
  c->next_save = c->time + c->config.save_s;
  if (!c->config.guard.audits || c->saving || c->offered > c->now.version) return;
  start_saving(c, c->now.version);
  note_saving_state(c);
}

void shoal_chief_receive(shoal_chief *c, uint64_t peer, shoal_message *m, double now) {
  c->time = now;
  peer_entry *entry = shoal_chief_find(c, peer);
  if (entry != NULL) entry->beat.heard = now;
  if (m->kind == SHOAL_MSG_HELLO)
    take_hello(c, peer, m);
  else if (entry != NULL && m->generation == c->now.generation && entry->role == SHOAL_ROLE_WORKER)
    from_worker(c, entry, m);
  else if (entry != NULL && m->generation == c->now.generation)
    from_owner(c, entry, m);
  else if (entry != NULL && m->kind == SHOAL_MSG_ASK) /* it has not heard of the generation yet */
    shoal_chief_say(c, peer, (shoal_message){.kind = SHOAL_MSG_WAIT});
  shoal_message_release(m);
  /* The training has begun: the first save is due a while from now. */
  if (isinf(c->next_save) && shoal_chief_running(c)) begin(c);
  announce(c);
  serve(c);
}

void shoal_chief_lose(shoal_chief *c, uint64_t peer, shoal_chief_event_kind how, const char *why) {
  peer_entry *entry = shoal_chief_find(c, peer);
  if (entry == NULL) return;
  shoal_chief_tell_of(c, how, entry, why);
  if (entry->role == SHOAL_ROLE_WORKER) {
    shoal_lease_drop(c->book, peer);
    if (c->guard != NULL) shoal_guard_gone(c->guard, peer);
    if (is_worker(entry)) remember(c, entry);
  } else {
    forget_squares(&c->owners[entry->slice]);
    c->owners[entry->slice] = (owner_entry){0};
    c->announced = false; /* what the driver asked it for may be lost: a rest is told again */
  }
  set_wants(c, entry, 0);
  c->workers_count -= is_worker(entry);
  shoal_places_remove(&c->peer_places, peer);
  const peer_entry *last = &c->peers[--c->peers_count];
  if (entry != last) shoal_places_put(&c->peer_places, last->peer, (uint32_t)(entry - c->peers));
  *entry = *last;
}

void shoal_chief_gone(shoal_chief *c, uint64_t peer, const char *why, double now) {
  c->time = now;
  shoal_chief_lose(c, peer, SHOAL_CHIEF_LOST, why);
  shoal_chief_guard_settle(c);
  serve(c);
}

void shoal_chief_left(shoal_chief *c, uint64_t peer, const char *why, double now) {
  c->time = now;
  shoal_chief_lose(c, peer, SHOAL_CHIEF_LEFT, why);
  shoal_chief_guard_settle(c);
  serve(c);
}

/* Beats that are almost due go out too, so that thousands of peers don't each want a tick of their own.
 * Whoever is given up must be told to the driver, who closes the connection: while there is no room for
 * that, the rest waits for the next tick. */
static void beat_peers(shoal_chief *c) {
  const shoal_beat_rules *rules = &c->config.beat;
  if (c->time < c->beat_at) return;
  c->beat_at = INFINITY;
  for (uint32_t i = 0; i < c->peers_count;) {
    const peer_entry *p = &c->peers[i];
    if (shoal_beat_lost(&p->beat, rules, c->time) && c->events_count < EVENTS_MAX) {
      shoal_chief_lose(c, p->peer, SHOAL_CHIEF_LOST, "it has been silent for too long");
      continue;
    }
    if (shoal_beat_due(&p->beat, rules, c->time + EARLY_SHARE * rules->every_s))
      shoal_chief_say(c, p->peer, (shoal_message){.kind = SHOAL_MSG_BEAT});
    c->beat_at = fmin(c->beat_at, shoal_beat_next(&p->beat, rules));
    i++;
  }
}

/* Owners and reports have been apart for too long. An owner that is silent as well has lost nothing yet. */
static void go_back_apart(shoal_chief *c) {
  uint32_t slice = first_behind(c);
  const peer_entry *owner = slice < c->config.owners ? owner_of(c, slice) : NULL;
  if (owner == NULL)
    go_back(c, NULL, "a report was lost on the way");
  else if (c->time > owner->beat.heard + SILENT_BEATS * c->config.beat.every_s)
    go_back(c, owner, "does not answer");
  else
    go_back(c, owner, "did not get a contribution, or is too slow");
}

void shoal_chief_tick(shoal_chief *c, double now) {
  c->time = now;
  beat_peers(c);
  if (c->guard != NULL) shoal_guard_tick(c->guard, now, lost_limit(c));
  shoal_chief_guard_settle(c);
  if (apart(c) && now >= c->moved + lost_limit(c)) {
    c->lost_s = 2 * lost_limit(c); /* or it was only slow */
    /* Perhaps an owner wrote for longer than its workers bore its silence: the training gets on first. */
    c->next_save = fmax(c->next_save, now + c->lost_s);
    go_back_apart(c);
  }
  announce(c);
  serve(c);
}

double shoal_chief_next_tick(const shoal_chief *c) {
  double next = shoal_lease_next_deadline(c->book, c->time);
  if (c->peers_count > 0) next = fmin(next, c->beat_at);
  if (c->guard != NULL) next = fmin(next, shoal_guard_next_tick(c->guard, c->time, lost_limit(c)));
  return apart(c) ? fmin(next, c->moved + lost_limit(c)) : next;
}
