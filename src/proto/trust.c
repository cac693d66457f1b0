/* trust.c: see trust.h. */
#include "proto/trust.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/random.h"
#include "proto/places.h"

static const double LEAST_SHARE = 0.03;
static const double NEWCOMERS_SHARE = 0.25; /* that is the auditor's alone */

enum { FOR_ANY = 0, FOR_AUDITOR = 1 };

struct shoal_trust {
  uint64_t seed;
  double known_share; /* 0: strangers */
  shoal_standing *standings;
  uint32_t count, max;
  shoal_places places; /* of standings, by who */
};

shoal_status shoal_trust_create(shoal_trust **out, uint32_t standings_max, uint64_t seed, shoal_error *err) {
  SHOAL_ASSERT(standings_max > 0);
  *out = NULL;
  shoal_trust *t = calloc(1, sizeof *t);
  if (t != NULL) t->standings = calloc(standings_max, sizeof *t->standings);
  if (t == NULL || t->standings == NULL || !shoal_places_init(&t->places, standings_max)) {
    shoal_trust_destroy(t);
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for %u standings", standings_max);
  }
  t->seed = seed;
  t->max = standings_max;
  *out = t;
  return SHOAL_OK;
}

void shoal_trust_destroy(shoal_trust *t) {
  if (t == NULL) return;
  shoal_places_release(&t->places);
  free(t->standings);
  free(t);
}

void shoal_trust_know_all(shoal_trust *t, double share) { t->known_share = share; }

/* ---- standings ---- */

static const shoal_standing *find(const shoal_trust *t, uint64_t who) {
  uint32_t place;
  return shoal_places_get(&t->places, who, &place) ? &t->standings[place] : NULL;
}

/* How much would be lost with it. */
static uint64_t worth(const shoal_standing *s) { return s->banned ? UINT64_MAX : s->agreed; }

/* A place for somebody new: a free one, or that of who has least to lose. */
static shoal_standing *make_room(shoal_trust *t, uint64_t who) {
  uint32_t place = 0;
  if (t->count < t->max) {
    place = t->count++;
  } else {
    for (uint32_t i = 1; i < t->count; i++)
      if (worth(&t->standings[i]) < worth(&t->standings[place])) place = i;
    shoal_places_remove(&t->places, t->standings[place].who);
  }
  shoal_places_put(&t->places, who, place);
  t->standings[place] = (shoal_standing){.who = who};
  return &t->standings[place];
}

static shoal_standing *take(shoal_trust *t, uint64_t who) {
  SHOAL_ASSERT(who != 0);
  uint32_t place;
  return shoal_places_get(&t->places, who, &place) ? &t->standings[place] : make_room(t, who);
}

void shoal_trust_put(shoal_trust *t, const shoal_standing *standing) { *take(t, standing->who) = *standing; }

shoal_standing shoal_trust_get(const shoal_trust *t, uint64_t who) {
  const shoal_standing *known = find(t, who);
  return known != NULL ? *known : (shoal_standing){.who = who};
}

bool shoal_trust_at(const shoal_trust *t, uint32_t index, shoal_standing *out) {
  if (index >= t->count) return false;
  *out = t->standings[index];
  return true;
}

shoal_standing_word shoal_standing_word_of(const shoal_standing *s) {
  if (s->banned) return SHOAL_BANNED;
  return s->agreed >= SHOAL_TRUST_PROVES ? SHOAL_PROVEN : SHOAL_UNPROVEN;
}

const char *shoal_standing_name(shoal_standing_word word) {
  static const char *const names[] = {
      [SHOAL_UNPROVEN] = "unproven", [SHOAL_PROVEN] = "proven", [SHOAL_BANNED] = "banned"};
  return names[word];
}

bool shoal_trust_proven(const shoal_trust *t, uint64_t who) {
  const shoal_standing *known = find(t, who);
  if (t->known_share > 0) return known == NULL || !known->banned;
  return known != NULL && shoal_standing_word_of(known) == SHOAL_PROVEN;
}

bool shoal_trust_banned(const shoal_trust *t, uint64_t who) {
  const shoal_standing *known = find(t, who);
  return known != NULL && known->banned;
}

/* ---- audits ---- */

double shoal_trust_share(uint64_t agreed) {
  if (agreed <= SHOAL_TRUST_PROVES) return 1;
  double share = 1 / (double)(agreed - SHOAL_TRUST_PROVES + 1);
  return share > LEAST_SHARE ? share : LEAST_SHARE;
}

/* How many have agreed, as far as they count: who is doubted begins anew as one that was just proven. */
static uint64_t agreed_since(const shoal_standing *s) {
  if (s->doubted == 0 || s->agreed < SHOAL_TRUST_PROVES) return s->agreed;
  uint64_t since = s->agreed > s->doubted ? SHOAL_TRUST_PROVES + s->agreed - s->doubted : SHOAL_TRUST_PROVES;
  return since < s->agreed ? since : s->agreed;
}

static double drawn(const shoal_trust *t, uint64_t who, uint32_t stream, uint64_t unit) {
  return shoal_random_uniform(shoal_key_make(t->seed, SHOAL_FOR_AUDITS, who, stream), unit);
}

bool shoal_trust_audits(const shoal_trust *t, uint64_t who, uint64_t unit) {
  const shoal_standing standing = shoal_trust_get(t, who);
  double share = t->known_share > 0 ? t->known_share : shoal_trust_share(agreed_since(&standing));
  return drawn(t, who, FOR_ANY, unit) < share;
}

bool shoal_trust_wants_auditor(const shoal_trust *t, uint64_t who, uint64_t unit) {
  if (shoal_trust_proven(t, who)) return shoal_trust_audits(t, who, unit);
  return shoal_trust_get(t, who).agreed + 1 >= SHOAL_TRUST_PROVES ||
         drawn(t, who, FOR_AUDITOR, unit) < NEWCOMERS_SHARE;
}

void shoal_trust_agreed(shoal_trust *t, uint64_t who) { take(t, who)->agreed++; }

void shoal_trust_wrong(shoal_trust *t, uint64_t who) {
  shoal_standing *s = take(t, who);
  s->wrong++;
  s->banned = true;
}

void shoal_trust_doubt(shoal_trust *t, uint64_t who) {
  shoal_standing *s = take(t, who);
  s->doubted = s->agreed;
}
