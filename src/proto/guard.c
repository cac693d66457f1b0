/* guard.c: see guard.h.
 *
 * A result:  under way -> whole -> compared, or dropped from any of them
 *
 * A unit has at most RESULTS_MAX results. It is open until its round is closed; then those that were under
 * way are dropped, but for the auditor's, and those of newcomers, who want to be compared with what counted.
 * It goes when all owners have applied its round, so that one that lost its connection can be told again, and
 * nothing is under way. */
#include "proto/guard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/random.h"
#include "proto/aggregate.h"
#include "proto/places.h"
#include "proto/proof.h"

enum {
  RESULTS_MAX = 8,
  BAD_MAX = 3,
  LATE_EACH = 2,
  UNAUDITED_MAX = 200, /* units that count: the next is the auditor's, whatever was drawn */
  LAST_ROUNDS = 8,     /* in which what is drawn is awaited */
};
static const uint64_t NEVER = UINT64_MAX;
static const double OWED_TIMES = 2;  /* so many times a lease an owed result waits for the auditor */
static const double AUDITOR_S = 600; /* and one near the end so long */
#define AUDITOR SHOAL_GUARD_AUDITOR

typedef struct result {
  uint64_t ticket; /* 0: this place is free */
  uint64_t lease, peer, who, unit;
  double since, deadline;
  uint32_t count; /* parts */
  bool blocking;  /* counts only when somebody vouches for it, or the auditor agrees */
  bool drawn;     /* the auditor checks it, before or after: nobody else can vouch for it */
  bool strict;    /* counts only when the auditor agrees, who has `auditor_s` for that */
  double auditor_s;
  bool done, whole, vouched, forgotten;
  bool compared;  /* with the auditor's */
  bool abandoned; /* its lease has ended, for others to have one; it is welcome all the same */
  double done_at;
  uint64_t claimed, proof;
  double squares;
  bool finite, odd;
  float scale; /* once it counts */
  shoal_sums sums;
  shoal_blob *report;
  uint32_t gots;
} result;

typedef struct unit {
  uint64_t key; /* its number, plus 1; 0: this place is free */
  result *results[RESULTS_MAX];
  uint32_t results_count;
  bool closed;
  bool finished; /* a result of it was whole, so nobody gets it any more but to check it */
  bool counted, credited;
  uint64_t counted_ticket, counted_who, counted_proof;
  uint32_t bad; /* results that were not finite, and by whom the first was */
  uint64_t bad_who;
} unit;

/* What is known of somebody in this training. */
typedef shoal_guard_person person;

struct shoal_guard {
  shoal_guard_config config;
  shoal_trust *trust;
  shoal_norms norms;
  result *results;
  uint32_t results_max, *results_free, results_free_count;
  uint32_t results_top; /* no place from here on was ever used; freed ones are used first */
  uint64_t *proofs;     /* of slices: a row of `owners` a result */
  bool *got;            /* likewise */
  shoal_places tickets;
  unit *units;
  uint32_t units_max, *units_free, units_free_count, units_top;
  shoal_places unit_places;
  person *people;
  uint32_t people_count;
  shoal_places people_places;
  uint64_t others;       /* the first unchecked round of anybody whom there was no room to remember; NEVER */
  shoal_ruling *rulings; /* a ring */
  uint32_t rulings_size, rulings_first, rulings_count;
  shoal_guard_counts counts;
  bool stale; /* somebody is proven, or banned, who was not: units must be judged anew */
};

/* ---- create and destroy ---- */

static bool reserve(shoal_guard *g) {
  const shoal_guard_config *config = &g->config;
  g->units_max = 2 * config->units_max + 64;
  g->results_max = g->units_max * (config->holders_max + 1);
  g->results = calloc(g->results_max, sizeof *g->results);
  g->results_free = calloc(g->results_max, sizeof *g->results_free);
  g->proofs = calloc((size_t)g->results_max * config->owners, sizeof *g->proofs);
  g->got = calloc((size_t)g->results_max * config->owners, sizeof *g->got);
  g->units = calloc(g->units_max, sizeof *g->units);
  g->units_free = calloc(g->units_max, sizeof *g->units_free);
  g->people = calloc(config->people_max, sizeof *g->people);
  if (g->results == NULL || g->results_free == NULL || g->proofs == NULL || g->got == NULL ||
      g->units == NULL || g->units_free == NULL || g->people == NULL)
    return false;
  while (g->results_free_count < g->results_max) {
    g->results_free[g->results_free_count] = g->results_max - 1 - g->results_free_count;
    g->results_free_count++;
  }
  while (g->units_free_count < g->units_max) {
    g->units_free[g->units_free_count] = g->units_max - 1 - g->units_free_count;
    g->units_free_count++;
  }
  return shoal_places_init(&g->tickets, g->results_max) && shoal_places_init(&g->unit_places, g->units_max) &&
         shoal_places_init(&g->people_places, config->people_max);
}

shoal_status shoal_guard_create(shoal_guard **out, const shoal_guard_config *config, shoal_error *err) {
  SHOAL_ASSERT(config->units_max > 0 && config->owners > 0 && config->people_max > 0 && config->parts > 0);
  *out = NULL;
  shoal_guard *g = calloc(1, sizeof *g);
  if (g == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a guard");
  g->config = *config;
  g->others = NEVER;
  shoal_status status = reserve(g) ? shoal_trust_create(&g->trust, config->people_max, config->secret[0], err)
                                   : shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a guard");
  if (status != SHOAL_OK) {
    shoal_guard_destroy(g);
    return status;
  }
  if (config->recheck > 0) shoal_trust_know_all(g->trust, config->recheck);
  *out = g;
  return SHOAL_OK;
}

void shoal_guard_destroy(shoal_guard *g) {
  if (g == NULL) return;
  shoal_ruling ruling;
  while (shoal_guard_next(g, &ruling)) shoal_blob_release(ruling.report);
  for (uint32_t i = 0; g->results != NULL && i < g->results_max; i++)
    shoal_blob_release(g->results[i].report);
  shoal_trust_destroy(g->trust);
  shoal_places_release(&g->tickets);
  shoal_places_release(&g->unit_places);
  shoal_places_release(&g->people_places);
  free(g->results);
  free(g->results_free);
  free(g->proofs);
  free(g->got);
  free(g->units);
  free(g->units_free);
  free(g->people);
  free(g->rulings);
  free(g);
}

shoal_trust *shoal_guard_trust(shoal_guard *g) { return g->trust; }
shoal_guard_counts shoal_guard_count(const shoal_guard *g) { return g->counts; }

/* ---- rulings ---- */

static shoal_ruling *rule(shoal_guard *g, shoal_ruling_kind kind, const result *r, const char *why) {
  if (g->rulings_count == g->rulings_size) {
    uint32_t size = g->rulings_size == 0 ? 32 : 2 * g->rulings_size;
    shoal_ruling *grown = calloc(size, sizeof *grown);
    SHOAL_ASSERT(grown != NULL);
    for (uint32_t i = 0; i < g->rulings_count; i++)
      grown[i] = g->rulings[(g->rulings_first + i) % g->rulings_size];
    free(g->rulings);
    g->rulings = grown;
    g->rulings_size = size;
    g->rulings_first = 0;
  }
  shoal_ruling *ruling = &g->rulings[(g->rulings_first + g->rulings_count++) % g->rulings_size];
  *ruling = (shoal_ruling){.kind = kind,
                           .ticket = r->ticket,
                           .lease = r->lease,
                           .peer = r->peer,
                           .who = r->who,
                           .unit = r->unit,
                           .proof = r->proof,
                           .count = r->count,
                           .why = why};
  return ruling;
}

bool shoal_guard_has_more(const shoal_guard *g) { return g->rulings_count > 0; }

bool shoal_guard_next(shoal_guard *g, shoal_ruling *out) {
  if (g->rulings_count == 0) return false;
  *out = g->rulings[g->rulings_first];
  g->rulings_first = (g->rulings_first + 1) % g->rulings_size;
  g->rulings_count--;
  return true;
}

/* ---- people ---- */

static person *find_person(const shoal_guard *g, uint64_t who) {
  uint32_t place;
  return shoal_places_get(&g->people_places, who, &place) ? &g->people[place] : NULL;
}

static bool is_idle(const person *p) { return p->unchecked == NEVER && p->owed == 0; }

static uint64_t earlier(uint64_t a, uint64_t b) { return a < b ? a : b; }

static person *take_person(shoal_guard *g, uint64_t who) {
  person *known = find_person(g, who);
  if (known != NULL) return known;
  uint32_t place = 0;
  if (g->people_count < g->config.people_max) {
    place = g->people_count++;
  } else { /* somebody about whom there is nothing to remember */
    while (place + 1 < g->people_count && !is_idle(&g->people[place])) place++;
    g->others = earlier(g->others, g->people[place].unchecked);
    shoal_places_remove(&g->people_places, g->people[place].who);
  }
  shoal_places_put(&g->people_places, who, place);
  g->people[place] = (person){.who = who, .unchecked = NEVER, .unchecked_last = NEVER};
  return &g->people[place];
}

static uint64_t round_of(const shoal_guard *g, uint64_t number) { return number / g->config.parts; }

static void note_unchecked(shoal_guard *g, uint64_t who, uint64_t round) {
  person *p = take_person(g, who);
  if (p->unchecked == NEVER || round < p->unchecked) p->unchecked = round;
  if (p->unchecked_last == NEVER || round > p->unchecked_last) p->unchecked_last = round;
  p->unaudited++;
}

/* The auditor agrees with something of theirs, of this round: what lies before is believed with it. */
static void note_checked(shoal_guard *g, uint64_t who, uint64_t round) {
  person *p = find_person(g, who);
  if (p == NULL || p->unchecked == NEVER) return;
  p->unaudited = 0;
  if (p->unchecked_last <= round)
    p->unchecked = p->unchecked_last = NEVER;
  else if (p->unchecked <= round)
    p->unchecked = round + 1;
}

static void owe(shoal_guard *g, uint64_t who) {
  if (who != AUDITOR) take_person(g, who)->owed = 1;
}

/* Nothing that was done from this version on is there. */
static void cut_person(person *p, uint64_t version) {
  if (p->unchecked == NEVER) return;
  if (p->unchecked >= version) {
    p->unchecked = p->unchecked_last = NEVER;
    p->unaudited = 0;
  } else if (p->unchecked_last >= version) {
    p->unchecked_last = version - 1;
  }
}

uint64_t shoal_guard_unchecked(const shoal_guard *g, uint64_t who) {
  const person *p = find_person(g, who);
  return p != NULL ? p->unchecked : g->others;
}

uint64_t shoal_guard_unchecked_of_all(const shoal_guard *g) {
  uint64_t first = g->others;
  for (uint32_t i = 0; i < g->people_count; i++)
    if (g->people[i].unchecked < first && !shoal_trust_banned(g->trust, g->people[i].who))
      first = g->people[i].unchecked;
  return first;
}

uint64_t shoal_guard_unchecked_of_banned(const shoal_guard *g) {
  uint64_t first = NEVER;
  for (uint32_t i = 0; i < g->people_count; i++)
    if (shoal_trust_banned(g->trust, g->people[i].who)) first = earlier(first, g->people[i].unchecked);
  return first;
}

void shoal_guard_undone(shoal_guard *g, uint64_t who) {
  for (uint32_t i = 0; i < g->people_count; i++) {
    bool meant = who != 0 ? g->people[i].who == who : shoal_trust_banned(g->trust, g->people[i].who);
    if (meant) cut_person(&g->people[i], 0);
  }
}

uint32_t shoal_guard_unchecked_in(const shoal_guard *g, uint64_t first, uint64_t last) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < g->people_count; i++)
    count += g->people[i].unchecked >= first && g->people[i].unchecked <= last &&
             !shoal_trust_banned(g->trust, g->people[i].who);
  return count;
}

uint32_t shoal_guard_people(const shoal_guard *g, shoal_guard_person *out, uint32_t max, uint64_t *others) {
  uint32_t count = 0;
  *others = g->others;
  for (uint32_t i = 0; i < g->people_count; i++) {
    if (is_idle(&g->people[i])) continue;
    if (count < max)
      out[count++] = g->people[i];
    else
      *others = earlier(*others, g->people[i].unchecked);
  }
  return count;
}

void shoal_guard_remember(shoal_guard *g, const shoal_guard_person *people, uint32_t count, uint64_t others,
                          uint64_t version) {
  g->others = others < version ? others : NEVER;
  for (uint32_t i = 0; i < count; i++) {
    person *p = take_person(g, people[i].who);
    *p = people[i];
    cut_person(p, version);
  }
}

static bool is_proven(const shoal_guard *g, uint64_t who) {
  return who == AUDITOR || shoal_trust_proven(g->trust, who);
}

/* ---- units and results ---- */

static unit *find_unit(const shoal_guard *g, uint64_t number) {
  uint32_t place;
  return shoal_places_get(&g->unit_places, number + 1, &place) ? &g->units[place] : NULL;
}

static unit *take_unit(shoal_guard *g, uint64_t number) {
  unit *known = find_unit(g, number);
  if (known != NULL || g->units_free_count == 0) return known;
  uint32_t place = g->units_free[--g->units_free_count];
  if (place >= g->units_top) g->units_top = place + 1;
  shoal_places_put(&g->unit_places, number + 1, place);
  g->units[place] = (unit){.key = number + 1};
  return &g->units[place];
}

static result *find_result(const shoal_guard *g, uint64_t ticket) {
  uint32_t place;
  if (ticket == 0 || !shoal_places_get(&g->tickets, ticket, &place)) return NULL;
  return &g->results[place];
}

static void remove_result(shoal_guard *g, result *r) {
  uint32_t place = (uint32_t)(r - g->results), i = 0;
  unit *u = find_unit(g, r->unit);
  while (u->results[i] != r) i++;
  for (u->results_count--; i < u->results_count; i++) u->results[i] = u->results[i + 1];
  shoal_places_remove(&g->tickets, r->ticket);
  shoal_blob_release(r->report);
  *r = (result){0};
  g->results_free[g->results_free_count++] = place;
}

static void remove_unit(shoal_guard *g, unit *u) {
  while (u->results_count > 0) remove_result(g, u->results[0]);
  shoal_places_remove(&g->unit_places, u->key);
  g->units_free[g->units_free_count++] = (uint32_t)(u - g->units);
  u->key = 0;
}

/* Owners that have something of it need not keep it. */
static void forget(shoal_guard *g, result *r) {
  if (!r->forgotten) rule(g, SHOAL_RULING_FORGET, r, NULL);
  r->forgotten = true;
}

/* The auditor will not compute this unit: who was drawn owes another. */
static void owe_for(shoal_guard *g, const unit *u) {
  for (uint32_t i = 0; i < u->results_count; i++)
    if (u->results[i]->drawn && u->results[i]->whole && !u->results[i]->compared) owe(g, u->results[i]->who);
}

/* Ends a result that is not whole. */
static void give_up(shoal_guard *g, result *r) {
  const unit *u = find_unit(g, r->unit);
  if (r->who == AUDITOR && u->closed) owe_for(g, u);
  if (r->strict) owe(g, r->who);
  rule(g, SHOAL_RULING_FREE, r, NULL);
  forget(g, r);
  remove_result(g, r);
}

/* Only who holds a lease knows the half of its ticket that is not a number. */
static uint64_t ticket_of(const shoal_guard *g, const shoal_lease *lease) {
  const uint64_t words[] = {g->config.secret[0], g->config.secret[1], lease->id, lease->worker};
  return lease->id << 32 | (uint32_t)shoal_proof_join(words, 4, NULL, 0);
}

/* Whether the unit is computed by others already, so that this lease is for a check. */
static bool is_check(const unit *u, uint64_t who) {
  for (uint32_t i = 0; i < u->results_count; i++)
    if (u->results[i]->who != who && (u->results[i]->blocking || u->results[i]->drawn)) return true;
  return who == AUDITOR;
}

/* Whether the peer has not told yet what came of a lease that it had. */
static bool is_with(const unit *u, uint64_t peer) {
  for (uint32_t i = 0; i < u->results_count; i++)
    if (u->results[i]->peer == peer && !u->results[i]->whole) return true;
  return false;
}

/* Decides how a result will be checked. Whether it is among those of a last round is as secret as the rest.
 * */
static void plan_checks(shoal_guard *g, result *r, const shoal_guard_end *end) {
  if (!g->config.audits || r->who == AUDITOR) return;
  person *p = take_person(g, r->who);
  shoal_key key = shoal_key_make(g->config.secret[1], SHOAL_FOR_AUDITS, r->who, r->unit);
  r->drawn = shoal_trust_wants_auditor(g->trust, r->who, r->lease);
  bool ends = r->drawn && end->rounds_left < LAST_ROUNDS;
  ends |= end->rounds_left == 0 && (double)shoal_random_uniform(key, r->lease) < end->share;
  r->strict = ends || p->owed > 0 || p->unaudited >= UNAUDITED_MAX;
  r->auditor_s = ends ? AUDITOR_S : OWED_TIMES * (r->deadline - r->since);
  if (g->config.recheck >= 1) {
    r->strict = true;
    r->auditor_s = INFINITY;
  }
  r->drawn |= r->strict;
  r->blocking = r->strict || !is_proven(g, r->who);
  p->owed = 0;
}

uint64_t shoal_guard_leased(shoal_guard *g, const shoal_lease *lease, uint32_t count, uint64_t who,
                            const shoal_guard_end *end) {
  unit *u = take_unit(g, lease->unit);
  /* The last place is the auditor's. */
  if (u == NULL || is_with(u, lease->worker) || g->results_free_count == 0 ||
      u->results_count >= (who == AUDITOR ? RESULTS_MAX : RESULTS_MAX - 1))
    return 0;
  g->counts.checks += is_check(u, who);
  uint32_t place = g->results_free[--g->results_free_count];
  if (place >= g->results_top) g->results_top = place + 1;
  result *r = &g->results[place];
  *r = (result){.ticket = ticket_of(g, lease),
                .lease = lease->id,
                .peer = lease->worker,
                .who = who,
                .unit = lease->unit,
                .since = lease->since,
                .deadline = lease->deadline,
                .count = count};
  plan_checks(g, r, end);
  memset(g->got + (size_t)place * g->config.owners, 0, g->config.owners * sizeof *g->got);
  shoal_places_put(&g->tickets, r->ticket, place);
  u->results[u->results_count++] = r;
  return r->ticket;
}

bool shoal_guard_find(const shoal_guard *g, uint64_t ticket, uint64_t peer, uint64_t *lease,
                      uint64_t *number) {
  const result *r = find_result(g, ticket);
  if (r == NULL || r->peer != peer) return false;
  *lease = r->lease;
  *number = r->unit;
  return true;
}

/* ---- comparing ---- */

static result *truth_of(const unit *u) {
  for (uint32_t i = 0; i < u->results_count; i++)
    if (u->results[i]->whole && u->results[i]->who == AUDITOR) return u->results[i];
  return NULL;
}

static bool differ(const unit *u) {
  const result *first = NULL;
  for (uint32_t i = 0; i < u->results_count; i++) {
    const result *r = u->results[i];
    if (!r->whole) continue;
    if (first != NULL && r->proof != first->proof) return true;
    if (first == NULL) first = r;
  }
  return false;
}

/* Whether somebody else who is proven has a whole result: an equal one, where none differ. */
static bool has_voucher(const shoal_guard *g, const unit *u, const result *r) {
  for (uint32_t i = 0; i < u->results_count; i++) {
    const result *other = u->results[i];
    if (other->whole && other->who != r->who && is_proven(g, other->who)) return true;
  }
  return false;
}

static void credit(shoal_guard *g, const result *r) {
  bool proven = is_proven(g, r->who);
  shoal_trust_agreed(g->trust, r->who);
  g->stale |= !proven && is_proven(g, r->who);
  g->counts.agreed++;
  unit *u = find_unit(g, r->unit);
  rule(g, SHOAL_RULING_AGREED, r, NULL)->credits = u->counted && u->counted_who == AUDITOR && !u->credited;
  u->credited = true;
}

/* The auditor agrees. */
static void agree(shoal_guard *g, result *r) {
  if (r->compared || r->who == AUDITOR) return;
  r->compared = true;
  note_checked(g, r->who, round_of(g, r->unit));
  if (!r->vouched) credit(g, r);
}

/* Somebody who is proven agrees. It is the auditor who makes somebody proven. */
static void vouch(shoal_guard *g, result *r) {
  if (r->vouched || r->compared || r->drawn || r->who == AUDITOR) return;
  r->vouched = true;
  if (shoal_trust_get(g->trust, r->who).agreed + 1 < SHOAL_TRUST_PROVES) credit(g, r);
}

/* All that is under way of somebody who lied: it does not count. */
static void drop_person(shoal_guard *g, uint64_t who) {
  for (uint32_t i = 0; i < g->results_top; i++) {
    result *r = &g->results[i];
    if (r->ticket == 0 || r->who != who) continue;
    const unit *u = find_unit(g, r->unit);
    if (u->counted && u->counted_ticket == r->ticket) continue;
    forget(g, r);
    remove_result(g, r);
  }
}

static void lie(shoal_guard *g, result *r, const char *why) {
  uint64_t who = r->who;
  r->compared = true;
  g->counts.wrong++;
  if (!shoal_trust_banned(g->trust, who)) {
    shoal_trust_wrong(g->trust, who);
    rule(g, SHOAL_RULING_WRONG, r, why);
  }
  drop_person(g, who);
  g->stale = true;
}

static double norm_of(const result *r) { return sqrt(r->squares) / r->count; }

/* All who say the same of a unit answer for it, until the auditor agrees with them. */
static void note_answers(shoal_guard *g, const unit *u) {
  for (uint32_t i = 0; i < u->results_count; i++)
    if (u->results[i]->whole && u->results[i]->who != AUDITOR)
      note_unchecked(g, u->results[i]->who, round_of(g, u->key - 1));
}

/* A ruling that waits stays where it is: nothing is added while it is filled in. */
static void count(shoal_guard *g, unit *u, result *r, bool audited) {
  u->counted = true;
  u->counted_ticket = r->ticket;
  u->counted_who = r->who;
  u->counted_proof = r->proof;
  g->counts.units++;
  shoal_ruling *ruling = rule(g, SHOAL_RULING_COUNTS, r, NULL);
  ruling->sums = r->sums;
  ruling->report = shoal_blob_share(r->report);
  ruling->finite = r->finite;
  double limit = shoal_norms_limit(&g->norms);
  r->scale = !g->config.audits && r->finite && norm_of(r) > limit ? (float)(limit / norm_of(r)) : 1;
  ruling->scale = r->scale;
  if (r->finite) shoal_norms_add(&g->norms, fmin(norm_of(r), limit));
  if (g->config.audits && !audited) note_answers(g, u);
}

/* The auditor's result is here. */
static void compare_with(shoal_guard *g, unit *u, result *truth) {
  const uint64_t number = u->key - 1, proof = truth->proof;
  for (uint32_t i = 0; i < u->results_count && !u->counted; i++) /* a volunteer's, to its credit */
    if (u->results[i]->whole && u->results[i]->who != AUDITOR && u->results[i]->proof == proof)
      count(g, u, u->results[i], true);
  if (!u->counted) count(g, u, truth, true);
  for (uint32_t i = 0; i < u->results_count; i++)
    if (u->results[i]->whole && u->results[i]->proof == proof) agree(g, u->results[i]);
  for (bool found = true; found;) { /* a lie removes results, of this unit too */
    found = false;
    for (uint32_t i = 0; i < u->results_count && !found; i++) {
      result *r = u->results[i];
      found = r->whole && !r->compared && r->who != AUDITOR && r->proof != proof;
      if (found) lie(g, r, "its result is not what the unit gives");
    }
    SHOAL_ASSERT(u->key == number + 1);
  }
}

/* A round is over, and a newcomer comes with its result: is it what counted? */
static void compare_late(shoal_guard *g, unit *u) {
  for (uint32_t i = 0; i < u->results_count; i++) {
    result *r = u->results[i];
    if (!r->whole || r->compared || r->ticket == u->counted_ticket) continue;
    if (r->proof != u->counted_proof) { /* nobody can tell any more who is wrong */
      owe(g, u->counted_who);
      owe(g, r->who);
      r->compared = true;
    } else if (u->counted_who != r->who && is_proven(g, u->counted_who)) {
      vouch(g, r);
    }
  }
}

static void compare_equal(shoal_guard *g, unit *u) {
  for (uint32_t i = 0; i < u->results_count; i++) {
    result *r = u->results[i];
    if (!r->whole) continue;
    bool has = has_voucher(g, u, r);
    if (!u->counted && (has ? !r->strict : !(r->blocking || r->odd))) count(g, u, r, false);
    if (has && (r->blocking || r->odd)) vouch(g, r);
  }
}

/* Without audits the first that can be used counts. */
static void take_first(shoal_guard *g, unit *u) {
  for (uint32_t i = 0; i < u->results_count && !u->counted; i++)
    if (u->results[i]->whole) count(g, u, u->results[i], false);
}

static void judge(shoal_guard *g, unit *u) {
  result *truth = truth_of(u);
  if (!g->config.audits)
    take_first(g, u);
  else if (truth != NULL)
    compare_with(g, u, truth);
  else if (u->closed)
    compare_late(g, u);
  else if (!differ(u)) /* else the auditor is wanted */
    compare_equal(g, u);
  for (uint32_t i = 0; u->counted && i < u->results_count; i++)
    if (u->results[i]->whole && u->results[i]->ticket != u->counted_ticket) forget(g, u->results[i]);
}

/* ---- what comes in ---- */

/* Without audits: what is not finite is not taken, unless two find so, or one again and again. */
static bool is_refused(shoal_guard *g, unit *u, result *r) {
  if (r->finite || g->config.audits) return false;
  bool other = u->bad > 0 && u->bad_who != r->who;
  u->bad_who = r->who;
  if (++u->bad >= BAD_MAX || other) return false;
  g->counts.rejected++;
  rule(g, SHOAL_RULING_REJECTED, r, "values that are not finite");
  return true;
}

/* Sees whether a result is whole now, and what follows for its unit. */
static void complete_one(shoal_guard *g, result *r) {
  const uint32_t owners = g->config.owners;
  if (r->whole || !r->done || r->gots < owners) return;
  const uint64_t *proofs = g->proofs + (size_t)(r - g->results) * owners;
  if (shoal_proof_join(proofs, owners, NULL, 0) != r->claimed) {
    lie(g, r, "what it sent is not what it reported");
    return;
  }
  unit *u = find_unit(g, r->unit);
  r->proof = shoal_proof_join(proofs, owners, shoal_blob_bytes(r->report), shoal_blob_length(r->report));
  r->finite = isfinite(r->squares) && isfinite(r->sums.loss);
  r->odd = !r->finite || norm_of(r) > shoal_norms_limit(&g->norms);
  if (is_refused(g, u, r)) {
    give_up(g, r);
    return;
  }
  if (r->odd && r->finite) {
    g->counts.rejected += !g->config.audits;
    if (!g->config.audits) rule(g, SHOAL_RULING_REJECTED, r, "far longer than others; it was scaled down");
  }
  r->whole = true;
  u->finished = true;
  rule(g, SHOAL_RULING_WHOLE, r, NULL);
  judge(g, u);
}

static void judge_stale(shoal_guard *g) {
  while (g->stale) {
    g->stale = false;
    for (uint32_t i = 0; i < g->units_top; i++)
      if (g->units[i].key != 0) judge(g, &g->units[i]);
  }
}

static void complete(shoal_guard *g, result *r) {
  complete_one(g, r);
  judge_stale(g);
}

void shoal_guard_done(shoal_guard *g, uint64_t ticket, uint64_t proof, const shoal_sums *sums,
                      shoal_blob *report, double now) {
  result *r = find_result(g, ticket);
  if (r == NULL || r->done) return;
  r->done = true;
  r->done_at = now;
  r->claimed = proof;
  r->sums = *sums;
  r->report = shoal_blob_share(report);
  complete(g, r);
}

bool shoal_guard_got(shoal_guard *g, uint64_t ticket, uint32_t slice, uint64_t proof, double squares) {
  result *r = find_result(g, ticket);
  if (r == NULL || r->forgotten) return false;
  size_t place = (size_t)(r - g->results) * g->config.owners + slice;
  const unit *u = find_unit(g, r->unit);
  if (g->got[place]) { /* the owner was away, and may not have heard */
    if (u->counted && u->counted_ticket == ticket && r->finite) {
      shoal_ruling *ruling = rule(g, SHOAL_RULING_COUNTED, r, NULL);
      ruling->slice = slice;
      ruling->scale = r->scale;
    }
    return true;
  }
  g->got[place] = true;
  g->proofs[place] = proof;
  r->squares += squares;
  r->gots++;
  complete(g, r);
  return true;
}

bool shoal_guard_cut(shoal_guard *g, uint64_t ticket, uint64_t *peer) {
  const result *r = find_result(g, ticket);
  if (r == NULL) return false;
  g->counts.rejected++;
  *peer = r->peer;
  return true;
}

void shoal_guard_returned(shoal_guard *g, uint64_t ticket) {
  result *r = find_result(g, ticket);
  if (r != NULL && !r->whole) give_up(g, r);
}

void shoal_guard_gone(shoal_guard *g, uint64_t peer) {
  for (uint32_t i = 0; i < g->results_top; i++)
    if (g->results[i].ticket != 0 && g->results[i].peer == peer && !g->results[i].whole)
      give_up(g, &g->results[i]);
}

/* ---- who checks what ---- */

/* Somebody who can check `r` is at it, and not overdue; or has. */
static bool is_being_checked(const shoal_guard *g, const unit *u, const result *r, double now) {
  for (uint32_t i = 0; i < u->results_count; i++) {
    const result *other = u->results[i];
    bool able = r == NULL ? is_proven(g, other->who) : other->who != r->who && is_proven(g, other->who);
    if (able && (other->whole || other->deadline > now)) return true;
  }
  return false;
}

static bool has_result_of(const unit *u, uint64_t who) {
  for (uint32_t i = 0; i < u->results_count; i++)
    if (u->results[i]->who == who) return true;
  return false;
}

static bool is_wanted(const shoal_guard *g, const unit *u, uint64_t who, double now) {
  if (u->key == 0 || u->closed || has_result_of(u, who)) return false;
  if (differ(u)) return who == AUDITOR;
  if (u->finished && !u->counted && u->results_count == 0) return true; /* its results were lies */
  for (uint32_t i = 0; i < u->results_count; i++) {
    const result *r = u->results[i];
    bool blocking = r->blocking || r->odd;
    if (r->who == AUDITOR || r->compared || !(blocking || r->drawn)) continue;
    if (who == AUDITOR && r->drawn) return true;
    if ((blocking || who == AUDITOR) && !r->strict && !r->vouched && !is_being_checked(g, u, r, now))
      return true;
  }
  /* What is left of a unit whose first result was a lie may wait for somebody who does not come. */
  return u->finished && !u->counted && !is_being_checked(g, u, NULL, now);
}

bool shoal_guard_may_have(const shoal_guard *g, uint64_t who) {
  uint32_t waiting = 0;
  if (!g->config.audits || is_proven(g, who)) return true;
  for (uint32_t i = 0; i < g->results_top; i++) {
    const result *r = &g->results[i];
    waiting += r->ticket != 0 && r->who == who && r->whole && !r->compared && !r->vouched;
  }
  return waiting < SHOAL_TRUST_PROVES;
}

/* What is checked first: what holds up its round; then in an order that nobody knows, since the auditor may
 * never come to the rest. */
static double rank_of(const shoal_guard *g, const unit *u) {
  shoal_key key = shoal_key_make(g->config.secret[1], SHOAL_FOR_AUDITS, 0, 0);
  return (u->counted ? 1 : 0) + (double)shoal_random_uniform(key, u->key);
}

bool shoal_guard_wants(const shoal_guard *g, uint64_t who, double now, uint64_t *number) {
  double best = INFINITY;
  if (!g->config.audits || !is_proven(g, who)) return false;
  for (uint32_t i = 0; i < g->units_top; i++) {
    const unit *u = &g->units[i];
    if (u->key == 0 || !is_wanted(g, u, who, now) || rank_of(g, u) >= best) continue;
    best = rank_of(g, u);
    *number = u->key - 1;
  }
  return best < INFINITY;
}

/* ---- time, and rounds that are over ---- */

static uint32_t under_way(const unit *u) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < u->results_count; i++) count += !u->results[i]->whole;
  return count;
}

/* Results of closed units that are awaited of a peer. */
static uint32_t late_of(const shoal_guard *g, uint64_t peer) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < g->results_top; i++) {
    const result *r = &g->results[i];
    if (r->ticket != 0 && r->peer == peer && !r->whole) count += find_unit(g, r->unit)->closed;
  }
  return count;
}

static bool is_awaited(const shoal_guard *g, const result *r) {
  if (r->who == AUDITOR) return true;
  return r->blocking && !is_proven(g, r->who) && late_of(g, r->peer) < LATE_EACH;
}

static void close_unit(shoal_guard *g, unit *u) {
  bool auditing = false;
  for (uint32_t i = 0; i < u->results_count; i++) auditing |= u->results[i]->who == AUDITOR;
  for (uint32_t i = 0; i < u->results_count;) {
    result *r = u->results[i];
    if (r->whole || is_awaited(g, r)) {
      i++;
      continue;
    }
    give_up(g, r);
  }
  if (!auditing) owe_for(g, u);
  u->closed = true;
}

void shoal_guard_close(shoal_guard *g, uint64_t closed, uint64_t applied) {
  for (uint32_t i = 0; i < g->units_top; i++) {
    unit *u = &g->units[i];
    if (u->key == 0 || round_of(g, u->key - 1) >= closed) continue;
    if (!u->closed) close_unit(g, u);
    if (round_of(g, u->key - 1) < applied && under_way(u) == 0) remove_unit(g, u);
  }
}

static void keep_bans(shoal_guard *g) {
  shoal_ruling ruling;
  for (uint32_t left = g->rulings_count; left > 0 && shoal_guard_next(g, &ruling); left--) {
    shoal_blob_release(ruling.report);
    if (ruling.kind != SHOAL_RULING_WRONG) continue;
    g->rulings[(g->rulings_first + g->rulings_count++) % g->rulings_size] = ruling;
  }
}

void shoal_guard_back(shoal_guard *g, uint64_t version) {
  keep_bans(g);
  for (uint32_t i = 0; i < g->units_top; i++)
    if (g->units[i].key != 0) remove_unit(g, &g->units[i]);
  for (uint32_t i = 0; i < g->people_count; i++) cut_person(&g->people[i], version);
  if (g->others >= version) g->others = NEVER;
}

static double late_at(const result *r) { return r->deadline + (r->deadline - r->since); }

/* Somebody who holds one of all leases that a unit may have, and has had it for twice as long as it may,
 * makes room. */
static bool blocks(const shoal_guard *g, const result *r, double now) {
  if (r->abandoned || r->who == AUDITOR || now < late_at(r)) return false;
  const unit *u = find_unit(g, r->unit);
  uint32_t leases = 0;
  for (uint32_t i = 0; i < u->results_count; i++)
    leases += !u->results[i]->whole && !u->results[i]->abandoned;
  return leases >= g->config.holders_max;
}

/* Waits for the auditor's word. */
static bool is_kept_waiting(const result *r) { return r->strict && r->whole && !r->compared; }

/* The auditor does not come: somebody else may vouch for the result; near the end it counts like any other.
 * */
static void wait_no_longer(shoal_guard *g, result *r) {
  r->strict = r->drawn = false;
  if (r->auditor_s == AUDITOR_S) r->blocking = !is_proven(g, r->who);
  take_person(g, r->who)->unaudited = 0;
  judge(g, find_unit(g, r->unit));
}

void shoal_guard_tick(shoal_guard *g, double now, double patience_s) {
  for (uint32_t i = 0; i < g->results_top; i++) {
    result *r = &g->results[i];
    if (r->ticket != 0 && is_kept_waiting(r) && now >= r->done_at + r->auditor_s) wait_no_longer(g, r);
    if (r->ticket == 0 || r->whole) continue;
    if (r->done && now >= r->done_at + patience_s) {
      give_up(g, r);
    } else if (blocks(g, r, now)) {
      rule(g, SHOAL_RULING_FREE, r, NULL);
      r->abandoned = true;
    }
  }
  judge_stale(g);
}

double shoal_guard_next_tick(const shoal_guard *g, double now, double patience_s) {
  double next = INFINITY;
  for (uint32_t i = 0; i < g->results_top; i++) {
    const result *r = &g->results[i];
    if (r->ticket != 0 && is_kept_waiting(r)) next = fmin(next, r->done_at + r->auditor_s);
    if (r->ticket == 0 || r->whole) continue;
    if (r->done) next = fmin(next, r->done_at + patience_s);
    double due = r->deadline > now ? r->deadline : late_at(r);
    if (due > now) next = fmin(next, due);
  }
  return next;
}

bool shoal_guard_disputes(const shoal_guard *g, uint64_t round) {
  for (uint32_t i = 0; g->config.audits && i < g->units_top; i++) {
    const unit *u = &g->units[i];
    if (u->key != 0 && round_of(g, u->key - 1) == round && differ(u) && truth_of(u) == NULL) return true;
  }
  return false;
}

bool shoal_guard_pending(const shoal_guard *g) {
  for (uint32_t i = 0; i < g->results_top; i++) {
    const result *r = &g->results[i];
    if (r->ticket != 0 && r->who == AUDITOR && !r->whole && find_unit(g, r->unit)->closed) return true;
  }
  return false;
}
