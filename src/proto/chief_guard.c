/* chief_guard.c: see chief.h: a guarded training: what counts, who is banned, and what is undone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "proto/chief_internal.h"

enum { PEOPLE_MAX = 4096, PEOPLE_KEPT = 256 };
static const double ANYBODY =
    0.1; /* who is not known yet may turn out to lie, too: as much as so many people */
static const double LAST_COSTS =
    0.05; /* what checking a last round may take, of the time of all rounds before it */

/* ---- memory ---- */

/* Behind it lie SHOAL_SAFE_RING times a state and its carry, then PEOPLE_KEPT people; what is not used is
 * zeros. */
typedef struct memory_head {
  uint32_t ring_count, people_count;
  uint64_t others; /* as shoal_guard_people has it */
} memory_head;

static size_t point_bytes(const shoal_chief_config *config) {
  return sizeof(shoal_chief_state) + config->carry_floats * config->parts * sizeof(float);
}

size_t shoal_chief_memory_bytes(const shoal_chief_config *config) {
  if (!config->guard.on || !config->guard.audits) return 0;
  return sizeof(memory_head) + SHOAL_SAFE_RING * point_bytes(config) +
         PEOPLE_KEPT * sizeof(shoal_guard_person);
}

shoal_blob *shoal_chief_memory(const shoal_chief *c) {
  const size_t length = shoal_chief_memory_bytes(&c->config), point = point_bytes(&c->config);
  if (length == 0) return NULL;
  shoal_blob *blob = shoal_blob_create(length);
  SHOAL_ASSERT(blob != NULL);
  uint8_t *at = shoal_blob_bytes(blob), *people_at = at + sizeof(memory_head) + SHOAL_SAFE_RING * point;
  shoal_guard_person people[PEOPLE_KEPT] = {0};
  memory_head head = {.ring_count = c->ring_count};
  memset(at, 0, length);
  head.people_count = shoal_guard_people(c->guard, people, PEOPLE_KEPT, &head.others);
  memcpy(at, &head, sizeof head);
  at += sizeof head;
  for (uint32_t i = 0; i < c->ring_count; i++, at += point) {
    memcpy(at, &c->ring[i].state, sizeof c->ring[i].state);
    if (c->carry_count > 0)
      memcpy(at + sizeof c->ring[i].state, c->ring[i].carry, c->carry_count * sizeof(float));
  }
  memcpy(people_at, people, sizeof people);
  return blob;
}

/* What belongs to a time after the start did not happen. */
static void recall(shoal_chief *c, const void *memory) {
  const uint8_t *at = memory;
  const size_t point = point_bytes(&c->config);
  shoal_guard_person people[PEOPLE_KEPT];
  memory_head head;
  memcpy(&head, at, sizeof head);
  at += sizeof head;
  memcpy(people, at + SHOAL_SAFE_RING * point, sizeof people);
  for (uint32_t i = 0; i < head.ring_count && i < SHOAL_SAFE_RING; i++, at += point) {
    memcpy(&c->ring[i].state, at, sizeof c->ring[i].state);
    if (c->ring[i].state.version > c->safe.version) break;
    if (c->carry_count > 0)
      memcpy(c->ring[i].carry, at + sizeof c->ring[i].state, c->carry_count * sizeof(float));
    c->ring_count = i + 1;
  }
  shoal_guard_remember(c->guard, people, head.people_count < PEOPLE_KEPT ? head.people_count : PEOPLE_KEPT,
                       head.others, c->safe.version);
}

/* ---- for the other files ---- */

/* Rounds from one end of the training, or what may be one, to the next. */
static uint64_t rounds_to_end(const shoal_chief *c) {
  return c->config.guard.may_end_early ? c->config.rounds : c->config.end;
}

/* One auditor does alone what all workers share in other rounds. */
shoal_guard_end shoal_chief_guard_end(const shoal_chief *c, uint64_t unit) {
  uint64_t round = unit / c->config.parts, every = rounds_to_end(c);
  double workers = c->workers_count > 0 ? c->workers_count : 1;
  return (shoal_guard_end){.rounds_left = every > 0 ? every - 1 - round % every : 0,
                           .share = fmin(1, LAST_COSTS * (double)every / workers)};
}

void shoal_chief_audits(const shoal_chief *c, uint64_t *units, uint64_t *checks, uint64_t *rejected) {
  shoal_guard_counts counts = {0};
  if (c->guard != NULL) counts = shoal_guard_count(c->guard);
  *units = counts.units;
  *checks = counts.checks;
  *rejected = counts.rejected;
}

/* ---- who it is ---- */

uint64_t shoal_chief_guard_who(const shoal_chief *c, const shoal_message *hello, const char *name,
                               bool *auditor) {
  *auditor = c->config.guard.key != 0 && hello->lease == c->config.guard.key;
  if (*auditor) return SHOAL_GUARD_AUDITOR;
  uint64_t who = hello->version != 0 ? hello->version : shoal_digest(name, strlen(name));
  return who != SHOAL_GUARD_AUDITOR ? who : 1;
}

const char *shoal_chief_guard_refusal(const shoal_chief *c, uint64_t who, bool auditor) {
  uint32_t auditors = 0;
  for (uint32_t i = 0; i < c->peers_count; i++) auditors += c->peers[i].auditor;
  if (auditor) return auditors < SHOAL_AUDITORS_MAX ? NULL : "the training has its auditor";
  if (!shoal_trust_banned(shoal_guard_trust(c->guard), who)) return NULL;
  return c->config.guard.recheck > 0
             ? "one of its results was wrong: its machine may have faulty memory"
             : "it is banned because one of its results was wrong; an admin can lift the ban";
}

/* ---- safe versions ---- */

static void copy_point(const shoal_chief *c, safe_point *to, const shoal_chief_state *state,
                       const float *carry) {
  to->state = *state;
  if (c->carry_count > 0) memcpy(to->carry, carry, c->carry_count * sizeof *carry);
}

static void remove_point(shoal_chief *c, uint32_t index) {
  safe_point gone = c->ring[index];
  for (uint32_t i = index; i + 1 < c->ring_count; i++) c->ring[i] = c->ring[i + 1];
  c->ring[--c->ring_count] = gone; /* its memory stays */
}

/* The newest that is not newer than this round; the oldest when all are. */
static uint32_t point_before(const shoal_chief *c, uint64_t round) {
  uint32_t index = 0;
  while (index + 1 < c->ring_count && c->ring[index + 1].state.version <= round) index++;
  return index;
}

/* Which one makes room: one that is older than anybody's unchecked results, or else the one without which
 * least would have to be done again: whoever has unchecked results from there on would go back to the one
 * before. */
static uint32_t point_to_spare(const shoal_chief *c) {
  if (point_before(c, shoal_guard_unchecked_of_all(c->guard)) > 0) return 0;
  uint32_t best = 1;
  double best_loss = INFINITY;
  for (uint32_t i = 1; i < c->ring_count; i++) {
    uint64_t from = c->ring[i].state.version, next = UINT64_MAX - 1;
    if (i + 1 < c->ring_count) next = c->ring[i + 1].state.version - 1;
    double people = shoal_guard_unchecked_in(c->guard, from, next);
    double loss = (people + ANYBODY) * (double)(from - c->ring[i - 1].state.version);
    if (loss < best_loss) best = i;
    best_loss = fmin(best_loss, loss);
  }
  return best;
}

void shoal_chief_ring_add(shoal_chief *c) {
  if (c->guard == NULL) return;
  if (c->ring_count > 0 && c->ring[c->ring_count - 1].state.version == c->safe.version) c->ring_count--;
  if (c->ring_count == SHOAL_SAFE_RING) remove_point(c, point_to_spare(c));
  copy_point(c, &c->ring[c->ring_count++], &c->safe, c->safe_carry);
}

void shoal_chief_ring_cut(shoal_chief *c) {
  if (c->guard == NULL) return;
  c->ring_count = 0;
  shoal_chief_ring_add(c);
}

shoal_blob *shoal_chief_versions(const shoal_chief *c) {
  uint64_t versions[SHOAL_SAFE_RING + 2];
  uint32_t count = 0;
  if (c->guard == NULL && c->recorded == c->safe.version) return NULL;
  for (uint32_t i = 0; i < c->ring_count; i++) versions[count++] = c->ring[i].state.version;
  if (c->guard == NULL) versions[count++] = c->safe.version;
  if (c->recorded != c->safe.version) versions[count++] = c->recorded;
  return shoal_blob_of(versions, count * sizeof *versions);
}

/* The newest safe version from before this round is the one to go on from. */
static void make_safe_before(shoal_chief *c, uint64_t round) {
  uint32_t index = point_before(c, round);
  c->safe = c->ring[index].state;
  if (c->carry_count > 0) memcpy(c->safe_carry, c->ring[index].carry, c->carry_count * sizeof(float));
  c->ring_count = index + 1;
}

/* What was made of results from this round on is not to be. */
static void undo(shoal_chief *c, uint64_t round, const char *name) {
  make_safe_before(c, round);
  shoal_chief_go_back(c, name,
                      c->config.guard.recheck > 0
                          ? "computed a wrong result: all of its unchecked work is undone"
                          : "lied: all of its unchecked work is undone",
                      true);
}

/* An earlier chief was killed between banning somebody and undoing what it did. */
static void undo_before_start(shoal_chief *c) {
  uint64_t round = shoal_guard_unchecked_of_banned(c->guard), generation = c->now.generation;
  if (round == UINT64_MAX || c->ring_count == 0) return;
  make_safe_before(c, round);
  c->safe.generation = generation;
  c->now = c->safe;
  c->offered = c->now.version;
  if (c->carry_count > 0) memcpy(c->carry, c->safe_carry, c->carry_count * sizeof(float));
  shoal_guard_back(c->guard, c->now.version);
  shoal_guard_undone(c->guard, 0);
}

/* ---- create and destroy ---- */

shoal_status shoal_chief_guard_create(shoal_chief *c, shoal_error *err) {
  const shoal_chief_guard *guard = &c->config.guard;
  shoal_guard_config config = {.units_max = c->window * c->round_units,
                               .holders_max = c->config.leases.holders_max,
                               .owners = c->config.owners,
                               .parts = c->config.parts,
                               .audits = guard->audits,
                               .recheck = guard->recheck,
                               .people_max = PEOPLE_MAX,
                               .secret = {guard->secret[0], guard->secret[1]}};
  shoal_status status = shoal_guard_create(&c->guard, &config, err);
  for (uint32_t i = 0; status == SHOAL_OK && i < guard->standings_count; i++)
    shoal_trust_put(shoal_guard_trust(c->guard), &guard->standings[i]);
  for (uint32_t i = 0; status == SHOAL_OK && c->carry_count > 0 && i < SHOAL_SAFE_RING; i++) {
    c->ring[i].carry = calloc(c->carry_count, sizeof(float));
    if (c->ring[i].carry == NULL) status = shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a chief");
  }
  if (status == SHOAL_OK && c->config.memory != NULL) recall(c, c->config.memory);
  if (status == SHOAL_OK) undo_before_start(c);
  if (status == SHOAL_OK) shoal_chief_ring_add(c);
  c->config.memory = NULL; /* it was borrowed */
  return status;
}

void shoal_chief_guard_destroy(shoal_chief *c) {
  shoal_guard_destroy(c->guard);
  for (uint32_t i = 0; i < SHOAL_SAFE_RING; i++) free(c->ring[i].carry);
}

/* ---- rulings ---- */

/* As ACCEPT has it. */
static uint32_t scale_bits(float scale) {
  uint32_t bits = 0;
  if (scale < 1) memcpy(&bits, &scale, sizeof bits);
  return bits;
}

static void say_owners(shoal_chief *c, shoal_message_kind kind, uint64_t ticket, uint32_t bits) {
  for (uint32_t s = 0; s < c->config.owners; s++)
    if (c->owners[s].peer != 0)
      shoal_chief_say(c, c->owners[s].peer,
                      (shoal_message){.kind = kind, .lease = ticket, .version = bits, .slice = s});
}

static void take_whole(shoal_chief *c, const shoal_ruling *ruling) {
  shoal_lease lease;
  peer_entry *worker = shoal_chief_find(c, ruling->peer);
  bool running = shoal_lease_find(c->book, ruling->lease, &lease);
  if (!running) return; /* a check of a round that is over */
  shoal_lease_finish(c->book, ruling->lease, ruling->peer, ruling->unit, ruling->proof, c->time);
  if (worker == NULL) return;
  worker->unit_s = c->time - lease.since;
}

static void credit(peer_entry *worker, const shoal_ruling *ruling) {
  if (worker == NULL) return;
  worker->parts_done += ruling->count;
  worker->units_done++;
  worker->seconds_done += worker->unit_s;
}

static void take_counted(shoal_chief *c, shoal_ruling *ruling) {
  peer_entry *worker = shoal_chief_find(c, ruling->peer);
  uint64_t round = ruling->unit / c->config.parts;
  if (round < c->now.version || round >= c->offered) return;
  if (!ruling->finite) ruling->sums.loss = NAN; /* the training has blown up, and owners need not have that */
  credit(worker, ruling);
  if (ruling->finite) say_owners(c, SHOAL_MSG_ACCEPT, ruling->ticket, scale_bits(ruling->scale));
  shoal_chief_keep(c, round, (uint32_t)(ruling->unit % c->config.parts), &ruling->sums, ruling->report);
}

static void tell_standing(shoal_chief *c, shoal_chief_event_kind kind, const shoal_ruling *ruling) {
  const peer_entry *worker = shoal_chief_find(c, ruling->peer);
  shoal_chief_event event = {.kind = kind,
                             .version = c->now.version,
                             .peer = ruling->peer,
                             .standing = shoal_trust_get(shoal_guard_trust(c->guard), ruling->who),
                             .text = ruling->why};
  if (worker != NULL) memcpy(event.name, worker->name, sizeof event.name);
  shoal_chief_tell(c, event);
}

static void send_away(shoal_chief *c, uint64_t peer, const char *why) {
  shoal_chief_say(c, peer,
                  (shoal_message){.kind = SHOAL_MSG_REFUSE, .payload = shoal_blob_of(why, strlen(why))});
  shoal_chief_lose(c, peer, SHOAL_CHIEF_BANNED, why);
}

/* Who lied is told of first, and then the others that came under the same invitation. */
static void ban(shoal_chief *c, const shoal_ruling *ruling) {
  const peer_entry *liar = shoal_chief_find(c, ruling->peer);
  uint64_t unchecked = shoal_guard_unchecked(c->guard, ruling->who);
  char name[SHOAL_NAME_MAX] = "";
  if (liar != NULL) memcpy(name, liar->name, sizeof name);
  if (liar != NULL)
    send_away(c, ruling->peer, ruling->why);
  else
    tell_standing(c, SHOAL_CHIEF_BANNED, ruling);
  for (uint32_t i = 0; i < c->peers_count;) {
    const peer_entry *p = &c->peers[i];
    if (p->role == SHOAL_ROLE_WORKER && !p->auditor && p->who == ruling->who)
      send_away(c, p->peer, "another machine with the same invitation sent wrong results");
    else
      i++;
  }
  if (unchecked == UINT64_MAX || c->ended) return;
  undo(c, unchecked, name);
  shoal_guard_undone(c->guard, ruling->who);
}

static void take_rejected(shoal_chief *c, const shoal_ruling *ruling) {
  peer_entry *worker = shoal_chief_find(c, ruling->peer);
  if (worker == NULL) return;
  worker->rejected++;
  shoal_chief_tell_of(c, SHOAL_CHIEF_REJECTED, worker, ruling->why);
}

static void take_ruling(shoal_chief *c, shoal_ruling *ruling) {
  switch (ruling->kind) {
  case SHOAL_RULING_WHOLE: take_whole(c, ruling); break;
  case SHOAL_RULING_COUNTS: take_counted(c, ruling); break;
  case SHOAL_RULING_COUNTED:
    shoal_chief_say(c, c->owners[ruling->slice].peer,
                    (shoal_message){.kind = SHOAL_MSG_ACCEPT,
                                    .lease = ruling->ticket,
                                    .version = scale_bits(ruling->scale),
                                    .slice = ruling->slice});
    break;
  case SHOAL_RULING_FORGET: say_owners(c, SHOAL_MSG_REJECT, ruling->ticket, 0); break;
  case SHOAL_RULING_FREE: shoal_lease_return(c->book, ruling->lease, ruling->peer); break;
  case SHOAL_RULING_AGREED:
    if (ruling->credits) credit(shoal_chief_find(c, ruling->peer), ruling);
    tell_standing(c, SHOAL_CHIEF_AUDITED, ruling);
    break;
  case SHOAL_RULING_WRONG: ban(c, ruling); break;
  case SHOAL_RULING_REJECTED: take_rejected(c, ruling); break;
  }
}

void shoal_chief_guard_settle(shoal_chief *c) {
  shoal_ruling ruling;
  if (c->guard == NULL) return;
  do {
    while (shoal_guard_next(c->guard, &ruling)) {
      take_ruling(c, &ruling);
      shoal_blob_release(ruling.report);
    }
    shoal_chief_close_rounds(c); /* of which more may follow */
  } while (shoal_guard_has_more(c->guard));
}

void shoal_chief_guard_close(shoal_chief *c) {
  if (c->guard == NULL) return;
  uint64_t applied = c->now.version;
  for (uint32_t s = 0; s < c->config.owners; s++)
    if (c->owners[s].applied < applied) applied = c->owners[s].applied;
  shoal_guard_close(c->guard, c->now.version, applied);
}

/* ---- what comes in ---- */

void shoal_chief_guard_done(shoal_chief *c, peer_entry *worker, const shoal_message *m) {
  uint64_t lease, unit;
  shoal_sums sums;
  if (!shoal_guard_find(c->guard, m->lease, worker->peer, &lease, &unit) ||
      unit != m->round * c->config.parts + m->shard)
    return;
  bool open = m->round >= c->now.version && m->round < c->offered;
  /* How long a report of a closed round must be is not known any more; it is only compared. */
  bool read = open ? shoal_chief_read_done(c, m, shoal_chief_count_of(c, unit), &sums)
                   : m->payload != NULL && shoal_blob_length(m->payload) >= sizeof sums;
  if (!read) return;
  if (!open) memcpy(&sums, shoal_blob_bytes(m->payload), sizeof sums);
  shoal_guard_done(c->guard, m->lease, m->version, &sums, m->payload, c->time);
  shoal_chief_guard_settle(c);
}

void shoal_chief_guard_got(shoal_chief *c, uint32_t slice, const shoal_message *m) {
  double squares;
  if (c->guard == NULL || m->payload == NULL) return;
  memcpy(&squares, shoal_blob_bytes(m->payload), sizeof squares);
  if (!shoal_guard_got(c->guard, m->lease, slice, m->version, squares))
    shoal_chief_say(c, c->owners[slice].peer,
                    (shoal_message){.kind = SHOAL_MSG_REJECT, .lease = m->lease, .slice = slice});
  shoal_chief_guard_settle(c);
}

void shoal_chief_guard_cut(shoal_chief *c, const shoal_message *m) {
  if (c->guard == NULL || m->payload == NULL) return;
  size_t count = shoal_blob_length(m->payload) / sizeof(uint64_t);
  for (size_t i = 0; i < count && i < c->config.parts; i++) {
    uint64_t ticket, peer;
    memcpy(&ticket, shoal_blob_bytes(m->payload) + i * sizeof ticket, sizeof ticket);
    peer_entry *worker = shoal_guard_cut(c->guard, ticket, &peer) ? shoal_chief_find(c, peer) : NULL;
    if (worker != NULL) worker->rejected++;
  }
}

void shoal_chief_guard_returned(shoal_chief *c, const peer_entry *worker, uint64_t ticket) {
  uint64_t lease, unit;
  if (!shoal_guard_find(c->guard, ticket, worker->peer, &lease, &unit)) return;
  shoal_guard_returned(c->guard, ticket);
  shoal_chief_guard_settle(c);
}

/* ---- from elsewhere ---- */

void shoal_chief_set_standing(shoal_chief *c, const shoal_standing *standing, double now) {
  c->time = now;
  if (c->guard == NULL) return;
  shoal_trust *trust = shoal_guard_trust(c->guard);
  const shoal_standing known = shoal_trust_get(trust, standing->who);
  if (standing->banned || known.banned)
    shoal_trust_put(trust, standing);
  else if (standing->doubted > 0) /* what is known here of its units is newer */
    shoal_trust_doubt(trust, standing->who);
  if (known.banned || !standing->banned) return;
  uint64_t peer = 0;
  for (uint32_t i = 0; i < c->peers_count; i++)
    if (c->peers[i].role == SHOAL_ROLE_WORKER && !c->peers[i].auditor && c->peers[i].who == standing->who)
      peer = c->peers[i].peer;
  if (peer != 0)
    ban(c, &(shoal_ruling){.who = standing->who, .peer = peer, .why = "it lied in another training"});
  shoal_chief_guard_settle(c);
}
