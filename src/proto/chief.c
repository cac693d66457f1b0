/* chief.c: see chief.h.
 *
 * Unit (round, part) is number round * parts + part. `version` counts finished rounds; units of
 * the rounds version .. version + stale are offered (in async mode, where a round is one unit, as
 * many as there is room for). Results of rounds that wait for an earlier one are kept. */
#include "proto/chief.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum { EVENTS_MAX = 256 };

typedef struct peer_entry {
  uint64_t peer;
  uint32_t role, slice;
  uint32_t wants; /* worker: units that it has asked for and not got */
  double heard;
  char name[SHOAL_NAME_MAX];
} peer_entry;

typedef struct owner_entry {
  uint64_t peer; /* 0: not here */
  bool ready;    /* at the version and generation of the job */
  uint64_t applied;
  bool saved;          /* has made the version `saving` safe */
  shoal_blob *squares; /* of round squares_round, a double a run; or NULL */
  uint64_t squares_round;
} owner_entry;

typedef struct result {
  bool here;
  shoal_sums sums;
} result;

struct shoal_chief {
  shoal_chief_config config;
  shoal_chief_state now, safe, saving_state;
  shoal_lease_book *book;
  uint64_t offered; /* rounds offered so far */
  result *results;  /* a ring of `window` rounds of parts */
  uint32_t window;
  peer_entry *peers;
  uint32_t peers_count;
  owner_entry *owners;
  bool paused;    /* at the end of an epoch */
  bool announced; /* and the driver knows */
  bool ended;
  bool saving; /* version saving_version is being made safe */
  uint64_t saving_version;
  double next_save, time, closed; /* when the last round was closed */
  double lost_s;                  /* config.lost_s, twice as long after each time in vain */
  shoal_chief_event events[EVENTS_MAX];
  uint32_t events_first, events_count;
  shoal_outbox outbox;
};

static const uint32_t ASYNC_WINDOW = 1024;

static void tell(shoal_chief *c, shoal_chief_event event);

shoal_status shoal_chief_create(shoal_chief **out, const shoal_chief_config *config, shoal_error *err) {
  SHOAL_ASSERT(config->parts > 0 && config->rounds > 0 && config->owners > 0);
  *out = NULL;
  shoal_chief *c = calloc(1, sizeof *c);
  if (c == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a chief");
  c->config = *config;
  c->window = config->mode.kind == SHOAL_ASYNC ? ASYNC_WINDOW : config->mode.stale + 1;
  c->now = c->safe = config->start;
  c->now.generation = c->safe.generation = config->start.generation + 1;
  c->offered = c->now.version;
  c->next_save = config->save_s;
  c->lost_s = config->lost_s;
  c->results = calloc((size_t)c->window * config->parts, sizeof *c->results);
  c->peers = calloc(config->workers_max + config->owners, sizeof *c->peers);
  c->owners = calloc(config->owners, sizeof *c->owners);
  shoal_lease_rules rules = config->leases;
  rules.units_max = c->window * config->parts;
  shoal_status status = c->results != NULL && c->peers != NULL && c->owners != NULL
                            ? shoal_lease_book_create(&c->book, &rules, err)
                            : shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a chief");
  if (status != SHOAL_OK) {
    shoal_chief_destroy(c);
    return status;
  }
  tell(c, (shoal_chief_event){.kind = SHOAL_CHIEF_BACK,
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
  shoal_lease_book_destroy(c->book);
  free(c->results);
  free(c->peers);
  free(c->owners);
  shoal_outbox_release(&c->outbox);
  free(c);
}

shoal_outbox *shoal_chief_outbox(shoal_chief *c) { return &c->outbox; }
uint64_t shoal_chief_version(const shoal_chief *c) { return c->now.version; }
uint64_t shoal_chief_generation(const shoal_chief *c) { return c->now.generation; }
shoal_lease_counts shoal_chief_leases(const shoal_chief *c) { return shoal_lease_count(c->book); }

uint32_t shoal_chief_workers(const shoal_chief *c) {
  uint32_t workers = 0;
  for (uint32_t i = 0; i < c->peers_count; i++) workers += c->peers[i].role == SHOAL_ROLE_WORKER;
  return workers;
}

bool shoal_chief_running(const shoal_chief *c) {
  for (uint32_t s = 0; s < c->config.owners; s++)
    if (c->owners[s].peer == 0 || !c->owners[s].ready) return false;
  return true;
}

/* ---- telling ---- */

/* A full queue forgets rounds first: they are only for the eye. */
static void tell(shoal_chief *c, shoal_chief_event event) {
  if (c->events_count == EVENTS_MAX && event.kind == SHOAL_CHIEF_ROUND) return;
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

static void tell_of_peer(shoal_chief *c, shoal_chief_event_kind kind, const peer_entry *peer,
                         const char *text) {
  shoal_chief_event event = {.kind = kind, .version = c->now.version, .text = text};
  memcpy(event.name, peer->name, sizeof event.name);
  tell(c, event);
}

static void say(shoal_chief *c, uint64_t peer, shoal_message m) {
  m.generation = c->now.generation;
  shoal_outbox_put(&c->outbox, peer, m);
}

static shoal_blob *blob_of(const void *bytes, size_t length) {
  shoal_blob *blob = shoal_blob_create(length);
  SHOAL_ASSERT(blob != NULL);
  memcpy(shoal_blob_bytes(blob), bytes, length);
  return blob;
}

static void say_to_owners(shoal_chief *c, shoal_message_kind kind, uint64_t version) {
  for (uint32_t s = 0; s < c->config.owners; s++)
    if (c->owners[s].peer != 0)
      say(c, c->owners[s].peer, (shoal_message){.kind = kind, .version = version, .slice = s});
}

/* ---- peers ---- */

static peer_entry *find_peer(shoal_chief *c, uint64_t peer) {
  for (uint32_t i = 0; i < c->peers_count; i++)
    if (c->peers[i].peer == peer) return &c->peers[i];
  return NULL;
}

/* ---- leases ---- */

/* The oldest version that a unit of this round may be computed from. */
static uint64_t version_for(const shoal_chief *c, uint64_t round) {
  if (c->config.mode.kind == SHOAL_ASYNC) return 0;
  return round > c->config.mode.stale ? round - c->config.mode.stale : 0;
}

static void offer(shoal_chief *c) {
  uint64_t end = c->now.version + c->window;
  if (end > c->config.end) end = c->config.end;
  /* Nothing of the next epoch before the driver has had this one's end. */
  uint64_t epoch_end = (c->now.version / c->config.rounds + 1) * c->config.rounds;
  if (end > epoch_end) end = epoch_end;
  for (; c->offered < end; c->offered++)
    for (uint32_t part = 0; part < c->config.parts; part++) {
      bool room = shoal_lease_offer(c->book, c->offered * c->config.parts + part);
      SHOAL_ASSERT(room);
    }
}

static void serve(shoal_chief *c) {
  if (c->paused || c->ended || !shoal_chief_running(c)) return;
  offer(c);
  for (uint32_t i = 0; i < c->peers_count; i++) {
    peer_entry *worker = &c->peers[i];
    shoal_lease lease;
    while (worker->wants > 0 && shoal_lease_take(c->book, worker->peer, c->time, &lease)) {
      worker->wants--;
      uint64_t round = lease.unit / c->config.parts;
      say(c, worker->peer,
          (shoal_message){.kind = SHOAL_MSG_LEASE,
                          .lease = lease.id,
                          .round = round,
                          .shard = (uint32_t)(lease.unit % c->config.parts),
                          .version = version_for(c, round)});
    }
  }
}

/* ---- going back ---- */

static void forget_squares(owner_entry *owner) {
  shoal_blob_release(owner->squares);
  owner->squares = NULL;
}

static void go_back(shoal_chief *c, const char *why) {
  uint64_t generation = c->now.generation + 1;
  c->now = c->safe;
  c->now.generation = c->safe.generation = generation;
  c->offered = c->now.version;
  c->closed = c->time;
  c->saving = c->paused = c->ended = false;
  shoal_lease_forget(c->book, UINT64_MAX);
  memset(c->results, 0, (size_t)c->window * c->config.parts * sizeof *c->results);
  for (uint32_t s = 0; s < c->config.owners; s++) {
    c->owners[s].ready = false;
    forget_squares(&c->owners[s]);
  }
  /* What workers had is void; they ask again when they hear of the new generation. */
  for (uint32_t i = 0; i < c->peers_count; i++) {
    c->peers[i].wants = 0;
    if (c->peers[i].role == SHOAL_ROLE_WORKER)
      say(c, c->peers[i].peer, (shoal_message){.kind = SHOAL_MSG_WAIT});
  }
  say_to_owners(c, SHOAL_MSG_RESTORE, c->now.version);
  tell(c, (shoal_chief_event){
              .kind = SHOAL_CHIEF_BACK, .version = c->now.version, .state = c->now, .text = why});
}

/* ---- rounds ---- */

static result *results_of(shoal_chief *c, uint64_t round) {
  return &c->results[round % c->window * c->config.parts];
}

static void start_saving(shoal_chief *c) {
  c->saving = true;
  c->saving_version = c->now.version + 1;
  for (uint32_t s = 0; s < c->config.owners; s++) c->owners[s].saved = false;
  say_to_owners(c, SHOAL_MSG_SAVE, c->saving_version);
}

/* A version is safe when all owners have it, and the chief too has come to it. */
static void finish_saving(shoal_chief *c) {
  if (!c->saving || c->now.version < c->saving_version) return;
  for (uint32_t s = 0; s < c->config.owners; s++)
    if (!c->owners[s].saved) return;
  c->saving = false;
  c->next_save = c->time + c->config.save_s;
  c->safe = c->saving_state;
  c->lost_s = c->config.lost_s;
  tell(c, (shoal_chief_event){.kind = SHOAL_CHIEF_SAFE, .version = c->safe.version, .state = c->safe});
}

/* Closes the round at hand when all its parts are in; false when they are not. */
static bool close_round(shoal_chief *c) {
  result *results = results_of(c, c->now.version);
  for (uint32_t part = 0; part < c->config.parts; part++)
    if (!results[part].here) return false;
  shoal_sums sums = {0};
  for (uint32_t part = 0; part < c->config.parts; part++) shoal_sums_add(&sums, &results[part].sums);
  memset(results, 0, c->config.parts * sizeof *results);
  if (!isfinite(sums.loss)) {
    c->ended = true;
    tell(c, (shoal_chief_event){.kind = SHOAL_CHIEF_FAILED, .version = c->now.version, .sums = sums});
    return false;
  }
  if (c->now.version % c->config.rounds == 0) c->now.epoch = (shoal_sums){0};
  shoal_sums_add(&c->now.epoch, &sums);
  c->now.version++;
  c->closed = c->time;
  shoal_lease_forget(c->book, c->now.version * c->config.parts);
  tell(c, (shoal_chief_event){.kind = SHOAL_CHIEF_ROUND, .version = c->now.version, .sums = sums});
  if (c->saving && c->saving_version == c->now.version) c->saving_state = c->now;
  finish_saving(c);
  if (c->now.version % c->config.rounds == 0) {
    c->paused = true;
    c->announced = false;
  } else if (!c->saving && c->time >= c->next_save && c->now.version + 1 < c->config.end) {
    start_saving(c);
  }
  return true;
}

/* Whether an owner has not made a version whose parts were all reported. */
static bool behind(const shoal_chief *c) {
  for (uint32_t s = 0; s < c->config.owners; s++)
    if (c->owners[s].applied < c->now.version) return true;
  return false;
}

/* The end of an epoch is told when every owner has made its last version. */
static void announce(shoal_chief *c) {
  if (!c->paused || c->announced || behind(c)) return;
  c->announced = true;
  tell(c, (shoal_chief_event){
              .kind = SHOAL_CHIEF_EPOCH, .version = c->now.version, .sums = c->now.epoch, .state = c->now});
}

void shoal_chief_go_on(shoal_chief *c, double now) {
  SHOAL_ASSERT(c->paused && c->announced);
  c->time = now;
  c->paused = false;
  if (c->now.version >= c->config.end) {
    c->ended = true;
    tell(c, (shoal_chief_event){.kind = SHOAL_CHIEF_END, .version = c->now.version, .state = c->now});
    return;
  }
  serve(c);
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
    say(c, c->owners[s].peer,
        (shoal_message){.kind = SHOAL_MSG_SCALE,
                        .round = m->round,
                        .slice = s,
                        .payload = blob_of(&scale, sizeof scale)});
}

/* ---- what comes in ---- */

static void take_hello(shoal_chief *c, uint64_t peer, const shoal_message *m) {
  bool owner = m->count == SHOAL_ROLE_OWNER, worker = m->count == SHOAL_ROLE_WORKER;
  const char *refusal = NULL;
  if (find_peer(c, peer) != NULL) return;
  if (!owner && !worker) refusal = "neither a worker nor a parameter server";
  if (owner && m->slice >= c->config.owners) refusal = "the job has no such slice";
  if (worker && shoal_chief_workers(c) >= c->config.workers_max) refusal = "the job has workers enough";
  if (owner && refusal == NULL && c->owners[m->slice].peer != 0) refusal = "the slice has an owner";
  if (refusal != NULL) {
    say(c, peer, (shoal_message){.kind = SHOAL_MSG_REFUSE, .payload = blob_of(refusal, strlen(refusal))});
    return;
  }
  peer_entry *entry = &c->peers[c->peers_count++];
  *entry = (peer_entry){.peer = peer, .role = m->count, .slice = m->slice, .heard = c->time};
  size_t length = m->payload != NULL ? shoal_blob_length(m->payload) : 0;
  if (length >= SHOAL_NAME_MAX) length = SHOAL_NAME_MAX - 1;
  if (length > 0) memcpy(entry->name, shoal_blob_bytes(m->payload), length);
  say(c, peer,
      (shoal_message){.kind = SHOAL_MSG_WELCOME, .payload = blob_of(c->config.job, strlen(c->config.job))});
  tell_of_peer(c, SHOAL_CHIEF_JOINED, entry, owner ? "parameter server" : "worker");
  if (!owner) return;
  c->owners[m->slice] = (owner_entry){.peer = peer, .applied = m->version};
  /* An owner that only lost its connection has the generation in memory. Another is brought to the
   * safe version, and all with it, unless they are still there. */
  bool kept = m->lease == 1 && m->generation == c->now.generation;
  if (kept)
    c->owners[m->slice].ready = true;
  else if (c->offered > c->safe.version)
    go_back(c, "a parameter server came without its memory");
  else
    say(c, peer, (shoal_message){.kind = SHOAL_MSG_RESTORE, .version = c->safe.version, .slice = m->slice});
}

/* Sums as they travel in DONE. */
static bool read_sums(const shoal_message *m, shoal_sums *out) {
  if (m->payload == NULL || shoal_blob_length(m->payload) < sizeof *out) return false;
  memcpy(out, shoal_blob_bytes(m->payload), sizeof *out);
  return true;
}

static void take_done(shoal_chief *c, peer_entry *worker, const shoal_message *m) {
  uint64_t unit = m->round * c->config.parts + m->shard;
  shoal_sums sums;
  if (m->shard >= c->config.parts || !read_sums(m, &sums)) return;
  switch (shoal_lease_finish(c->book, m->lease, worker->peer, unit, m->version, c->time)) {
  case SHOAL_LEASE_FIRST: {
    result *r = &results_of(c, m->round)[m->shard];
    *r = (result){.here = true, .sums = sums};
    while (!c->paused && !c->ended && close_round(c)) {
    }
    break;
  }
  case SHOAL_LEASE_DIFFERS: tell_of_peer(c, SHOAL_CHIEF_DIFFERS, worker, ""); break;
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
  c->owners[slice].applied = m->version;
}

static void from_worker(shoal_chief *c, peer_entry *worker, const shoal_message *m) {
  switch (m->kind) {
  case SHOAL_MSG_ASK: worker->wants = m->count; break;
  case SHOAL_MSG_DONE: take_done(c, worker, m); break;
  case SHOAL_MSG_RETURN: shoal_lease_return(c->book, m->lease, worker->peer); break;
  default: break;
  }
}

static void from_owner(shoal_chief *c, const peer_entry *owner, shoal_message *m) {
  switch (m->kind) {
  case SHOAL_MSG_SQUARES: take_squares(c, owner->slice, m); break;
  case SHOAL_MSG_APPLIED: c->owners[owner->slice].applied = m->version; break;
  case SHOAL_MSG_SAVED: take_saved(c, owner->slice, m); break;
  case SHOAL_MSG_RESTORED: take_restored(c, owner->slice, m); break;
  default: break;
  }
}

void shoal_chief_receive(shoal_chief *c, uint64_t peer, shoal_message *m, double now) {
  c->time = now;
  peer_entry *entry = find_peer(c, peer);
  if (entry != NULL) entry->heard = now;
  if (m->kind == SHOAL_MSG_HELLO)
    take_hello(c, peer, m);
  else if (entry != NULL && m->generation == c->now.generation && entry->role == SHOAL_ROLE_WORKER)
    from_worker(c, entry, m);
  else if (entry != NULL && m->generation == c->now.generation)
    from_owner(c, entry, m);
  else if (entry != NULL && m->kind == SHOAL_MSG_ASK) /* it has not heard of the generation yet */
    say(c, peer, (shoal_message){.kind = SHOAL_MSG_WAIT});
  shoal_message_release(m);
  announce(c);
  serve(c);
}

void shoal_chief_gone(shoal_chief *c, uint64_t peer, const char *why, double now) {
  c->time = now;
  peer_entry *entry = find_peer(c, peer);
  if (entry == NULL) return;
  tell_of_peer(c, SHOAL_CHIEF_LOST, entry, why);
  if (entry->role == SHOAL_ROLE_WORKER)
    shoal_lease_drop(c->book, peer);
  else {
    forget_squares(&c->owners[entry->slice]);
    c->owners[entry->slice] = (owner_entry){0};
  }
  *entry = c->peers[--c->peers_count];
  serve(c);
}

void shoal_chief_tick(shoal_chief *c, double now) {
  c->time = now;
  for (uint32_t i = 0; i < c->peers_count;)
    if (now - c->peers[i].heard >= c->config.silence_s)
      shoal_chief_gone(c, c->peers[i].peer, "it has been silent for too long", now);
    else
      i++;
  if (shoal_chief_running(c) && behind(c) && now - c->closed >= c->lost_s) {
    c->lost_s *= 2; /* or it was only slow */
    go_back(c, "a contribution was lost on the way");
  }
  serve(c);
}

double shoal_chief_next_tick(const shoal_chief *c) {
  double next = shoal_lease_next_deadline(c->book);
  for (uint32_t i = 0; i < c->peers_count; i++) next = fmin(next, c->peers[i].heard + c->config.silence_s);
  return behind(c) ? fmin(next, c->closed + c->lost_s) : next;
}
