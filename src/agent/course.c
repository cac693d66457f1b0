/* course.c: see course.h.
 *
 * A stream is in one of these states:
 *
 *   waits   its next unit may be given out as soon as there is room, and (exact) its version is there
 *   leased  an actor has the unit; the lease ends with its rollout, or when the actor is lost or overdue: then
 *           the stream waits again, with the same unit
 *
 * In both it may have to begin anew: it waits then, with another unit.
 *
 * `next` is the stretch that is played or to be played; rollouts that came in are for the stretches before
 * it, and not learned from yet. `learned` is where the stream stood after the last stretch that was. */
#include "agent/course.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bytes.h"
#include "base/assert.h"
#include "base/hash.h"

static const double LEASE_S = 30;
static const double LEASE_GROWS = 2, LEASE_SHRINKS = 0.99, LEASES_MAX = 16;
static const char MAGIC[8] = "shoalco2";
enum { EAGER_ROOM = 2, HOLDERS_MAX = 4, FAILURES_MAX = 3 };

/* Those who were given a unit, by the digests of their names, one for each time; the last ones only. */
typedef struct holders {
  uint64_t who[HOLDERS_MAX];
  uint32_t count;
} holders;

typedef struct stream {
  uint64_t next;      /* stretch */
  uint64_t skipped;   /* how often it began anew: as many numbers of units were given up */
  bool leased, given; /* now; ever, this unit */
  bool lost;          /* the last lease was given back */
  char actor[SHOAL_ACTOR_NAME_MAX];
  double deadline;
  uint64_t version;      /* that the unit was first given out with */
  holders failed;        /* those who could not play the unit, once for each time, */
  double barred_until;   /* and when they may try again */
  holders holders;       /* of the unit */
  uint64_t before;       /* the unit that came in last, */
  holders before_slower; /* and those who had it and have sent nothing */
  uint64_t author;       /* who left it at `state`; 0: nobody */
  uint32_t in_count;     /* rollouts that wait for the learner */
  shoal_text state;      /* where `next` begins */
  shoal_text learned;    /* where the stretch learned_next begins */
  uint64_t learned_next;
  uint64_t spoilt; /* stretches before that one are left where nobody goes on from */
} stream;

struct shoal_course {
  shoal_course_config config;
  stream *streams;
  uint32_t room; /* rollouts of a stream in memory */
  shoal_rollout *
      *in; /* those that came in. exact: slot (stretch % room) * streams + stream; eager: in order */
  uint32_t in_count;
  uint64_t version;
  uint64_t version_least;  /* the oldest that there was when it went on in another way */
  double lease_s, grew_at; /* of the next unit, and when that was made longer last */
  shoal_play_unit unit;    /* lent */
  shoal_course_view counts;
};

shoal_status shoal_course_create(shoal_course **out, const shoal_course_config *config, shoal_error *err) {
  *out = NULL;
  if (config->streams < 1 || config->streams > SHOAL_STREAMS_MAX)
    return shoal_fail(err, SHOAL_INVALID, "%u streams: must be 1 to %d", config->streams, SHOAL_STREAMS_MAX);
  if (config->lag > SHOAL_LAG_MAX)
    return shoal_fail(err, SHOAL_INVALID, "a lag of %u: must be 0 to %d", config->lag, SHOAL_LAG_MAX);
  shoal_course *c = calloc(1, sizeof *c);
  if (c == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for the units of a training");
  c->config = *config;
  if (!(c->config.lease_s > 0)) c->config.lease_s = LEASE_S;
  c->lease_s = c->config.lease_s;
  c->grew_at = -INFINITY;
  c->room = config->eager ? EAGER_ROOM : config->lag + 1;
  c->streams = calloc(config->streams, sizeof *c->streams);
  c->in = calloc((size_t)config->streams * c->room, sizeof(shoal_rollout *));
  if (c->streams == NULL || c->in == NULL) {
    shoal_course_destroy(c);
    return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for the units of a training");
  }
  c->unit.seed = config->seed;
  *out = c;
  return SHOAL_OK;
}

void shoal_course_destroy(shoal_course *c) {
  if (c == NULL) return;
  for (uint32_t s = 0; c->streams && s < c->config.streams; s++) {
    shoal_text_release(&c->streams[s].state);
    shoal_text_release(&c->streams[s].learned);
  }
  for (uint32_t i = 0; c->in && i < c->config.streams * c->room; i++) shoal_rollout_destroy(c->in[i]);
  free(c->streams);
  free(c->in);
  shoal_text_release(&c->unit.state);
  free(c);
}

/* ---- giving out --------------------------------------------------------------------- */

static uint64_t unit_number(const shoal_course *c, uint32_t s) {
  return (c->streams[s].next + c->streams[s].skipped) * c->config.streams + s;
}

/* The version that a stretch is played with. */
static uint64_t version_for(const shoal_course *c, uint64_t stretch) {
  if (c->config.eager) return c->version;
  uint64_t version = stretch > c->config.lag ? stretch - c->config.lag : 0;
  return version > c->version_least ? version : c->version_least;
}

static bool may_play(const shoal_course *c, const stream *s) {
  return !s->leased && s->in_count < c->room && version_for(c, s->next) <= c->version;
}

static uint64_t digest_of(const char *actor) {
  char plain[SHOAL_ACTOR_NAME_MAX];
  shoal_text_plain(plain, sizeof plain, actor, strlen(actor));
  uint64_t digest = shoal_digest(plain, strlen(plain));
  return digest != 0 ? digest : 1;
}

static void add_holder(holders *h, uint64_t who) {
  if (h->count == HOLDERS_MAX) memmove(h->who, h->who + 1, --h->count * sizeof *h->who);
  h->who[h->count++] = who;
}

static bool has_holder(const holders *h, uint64_t who) {
  for (uint32_t i = 0; i < h->count; i++)
    if (h->who[i] == who) return true;
  return false;
}

/* False: it is none. */
static bool remove_holder(holders *h, uint64_t who) {
  for (uint32_t i = 0; i < h->count; i++)
    if (h->who[i] == who) {
      memmove(h->who + i, h->who + i + 1, (--h->count - i) * sizeof *h->who);
      return true;
    }
  return false;
}

static void end_lease(shoal_course *c, stream *s) {
  s->leased = false;
  s->actor[0] = 0;
  c->counts.running--;
}

/* False: out of memory. */
static bool copy_text(shoal_text *to, const shoal_text *from) {
  shoal_text_clear(to);
  to->failed = false;
  shoal_text_add(to, from->bytes, from->length);
  return !to->failed;
}

/* One who cannot play a unit is given others first: it may be the only one who cannot. */
static bool is_barred(const stream *s, uint64_t who, double now) {
  return has_holder(&s->failed, who) && now < s->barred_until;
}

bool shoal_course_take(shoal_course *c, const char *actor, double now, const shoal_play_unit **out) {
  shoal_course_tick(c, now);
  uint64_t who = digest_of(actor);
  stream *best = NULL;
  for (uint32_t i = 0; i < c->config.streams; i++) {
    stream *s = &c->streams[i];
    if (may_play(c, s) && !is_barred(s, who, now) && (best == NULL || s->next < best->next)) best = s;
  }
  if (best == NULL || !copy_text(&c->unit.state, &best->state)) return false;
  uint32_t s = (uint32_t)(best - c->streams);
  c->counts.given_again += best->given;
  c->counts.running++;
  if (!best->given) best->version = version_for(c, best->next);
  add_holder(&best->holders, who);
  best->leased = best->given = true;
  best->lost = false;
  best->deadline = now + c->lease_s;
  shoal_text_plain(best->actor, sizeof best->actor, actor, strlen(actor));
  c->unit.number = unit_number(c, s);
  c->unit.stream = s;
  c->unit.version = version_for(c, best->next);
  *out = &c->unit;
  return true;
}

bool shoal_course_unit(shoal_course *c, uint64_t unit, const shoal_play_unit **out) {
  uint32_t i = (uint32_t)(unit % c->config.streams);
  const stream *s = &c->streams[i];
  if (unit_number(c, i) != unit || !s->given || !copy_text(&c->unit.state, &s->state)) return false;
  c->unit.number = unit;
  c->unit.stream = i;
  c->unit.version = version_for(c, s->next);
  *out = &c->unit;
  return true;
}

static bool holds(const stream *s, const char *actor) {
  char plain[SHOAL_ACTOR_NAME_MAX];
  shoal_text_plain(plain, sizeof plain, actor, strlen(actor));
  return s->leased && strcmp(s->actor, plain) == 0;
}

static void give_back(shoal_course *c, stream *s) {
  end_lease(c, s);
  s->lost = true;
}

void shoal_course_lost(shoal_course *c, const char *actor, double now) {
  (void)now;
  for (uint32_t i = 0; i < c->config.streams; i++)
    if (holds(&c->streams[i], actor)) give_back(c, &c->streams[i]);
}

static stream *longest_held(shoal_course *c, const char *actor, uint32_t *held) {
  stream *longest = NULL;
  *held = 0;
  for (uint32_t i = 0; i < c->config.streams; i++) {
    stream *s = &c->streams[i];
    if (!holds(s, actor)) continue;
    ++*held;
    if (longest == NULL || s->deadline < longest->deadline) longest = s;
  }
  return longest;
}

void shoal_course_bound(shoal_course *c, const char *actor, uint32_t most) {
  uint32_t held;
  for (stream *s; (s = longest_held(c, actor, &held)) != NULL && held >= most;) give_back(c, s);
}

/* The unit is nobody's: not of those either who play it now. */
static void begin_anew(shoal_course *c, stream *s) {
  if (s->leased) end_lease(c, s);
  shoal_text_clear(&s->state);
  s->given = s->lost = false;
  s->holders.count = s->failed.count = 0;
  s->author = 0;
  s->skipped++;
  c->counts.anew++;
}

void shoal_course_back(shoal_course *c, uint64_t unit, const char *actor, bool failed) {
  uint32_t i = (uint32_t)(unit % c->config.streams);
  stream *s = &c->streams[i];
  if (unit_number(c, i) != unit) return;
  c->counts.late += !failed;
  if (!failed) (void)remove_holder(&s->holders, digest_of(actor));
  if (!holds(s, actor)) return;
  give_back(c, s);
  if (!failed) return;
  add_holder(&s->failed, digest_of(actor));
  s->barred_until = s->deadline;
  if (s->failed.count == FAILURES_MAX) begin_anew(c, s);
}

void shoal_course_lied(shoal_course *c, const char *actor, double now) {
  uint64_t who = digest_of(actor);
  shoal_course_lost(c, actor, now);
  for (uint32_t i = 0; i < c->config.streams; i++)
    if (c->streams[i].author == who) {
      begin_anew(c, &c->streams[i]);
      c->streams[i].spoilt = c->streams[i].next;
      shoal_text_clear(&c->streams[i].learned);
    }
}

double shoal_course_tick(shoal_course *c, double now) {
  double soonest = INFINITY;
  for (uint32_t i = 0; i < c->config.streams; i++) {
    stream *s = &c->streams[i];
    if (!s->leased) continue;
    if (s->deadline <= now)
      end_lease(c, s);
    else
      soonest = fmin(soonest, s->deadline);
  }
  return soonest;
}

/* ---- coming in ---------------------------------------------------------------------- */

static bool is_of_version(const shoal_course *c, const stream *s, uint64_t version) {
  if (!c->config.eager) return version == version_for(c, s->next);
  if (version > c->version) return false;
  return c->config.behind_max == 0 || (version >= s->version && c->version - version <= c->config.behind_max);
}

/* A rollout that is asked for: of the stretch that its stream is at, by somebody who was given it, and by a
 * version that it may have. */
static bool is_wanted(const shoal_course *c, const shoal_rollout *rollout, const char *actor) {
  if (rollout->stream >= c->config.streams || !shoal_rollout_is_of(rollout, &c->config.shape)) return false;
  const stream *s = &c->streams[rollout->stream];
  if (!s->given || rollout->number != unit_number(c, rollout->stream) || s->in_count == c->room) return false;
  return has_holder(&s->holders, digest_of(actor)) && is_of_version(c, s, rollout->version);
}

/* Whether its lease had ended, and it comes all the same: perhaps after another's. Of those who never had it,
 * nothing is overdue. */
static bool is_overdue(shoal_course *c, const shoal_rollout *rollout, bool wanted, const char *actor) {
  if (rollout->stream >= c->config.streams) return false;
  stream *s = &c->streams[rollout->stream];
  if (!wanted) return rollout->number == s->before && remove_holder(&s->before_slower, digest_of(actor));
  return s->leased ? !holds(s, actor) : !s->lost;
}

/* Many may be overdue at once, and be one reason for longer leases. */
static void judge_lease(shoal_course *c, bool overdue, double now) {
  double least = c->config.lease_s;
  if (!overdue) {
    c->lease_s = fmax(least, LEASE_SHRINKS * c->lease_s);
  } else if (now - c->grew_at >= c->lease_s) {
    c->lease_s = fmin(LEASE_GROWS * c->lease_s, LEASES_MAX * least);
    c->grew_at = now;
  }
}

bool shoal_course_done(shoal_course *c, shoal_rollout *rollout, const char *actor, double now) {
  bool wanted = is_wanted(c, rollout, actor);
  stream *s = wanted ? &c->streams[rollout->stream] : NULL;
  judge_lease(c, is_overdue(c, rollout, wanted, actor), now);
  if (s == NULL || !copy_text(&s->state, &rollout->state)) {
    shoal_rollout_destroy(rollout);
    c->counts.late++;
    return false;
  }
  size_t slot =
      c->config.eager ? c->in_count : (size_t)(s->next % c->room) * c->config.streams + rollout->stream;
  SHOAL_ASSERT(c->in[slot] == NULL);
  c->in[slot] = rollout;
  c->in_count++;
  c->counts.units++;
  if (s->leased) end_lease(c, s);
  s->author = digest_of(actor);
  (void)remove_holder(&s->holders, s->author);
  s->before = rollout->number;
  s->before_slower = s->holders;
  s->holders.count = s->failed.count = 0;
  s->given = false;
  s->in_count++;
  s->next++;
  return true;
}

/* ---- rounds ------------------------------------------------------------------------- */

/* Where the rollouts of the oldest round that nobody has learned from are. */
static shoal_rollout **oldest_round(shoal_course *c) {
  return c->config.eager ? c->in : c->in + (size_t)(c->counts.rounds % c->room) * c->config.streams;
}

shoal_rollout *const *shoal_course_round(shoal_course *c, uint32_t *count) {
  shoal_rollout **round = oldest_round(c);
  for (uint32_t i = 0; i < c->config.streams; i++)
    if (round[i] == NULL) return NULL;
  *count = c->config.streams;
  return round;
}

/* Where the rollout's stream stands after it becomes where it goes on from after a restart. Of a stream,
 * rollouts are learned from in the order of its stretches. */
static void settle(shoal_course *c, shoal_rollout *rollout) {
  stream *s = &c->streams[rollout->stream];
  shoal_text_release(&s->learned);
  s->learned = rollout->state;
  shoal_text_init(&rollout->state);
  s->learned_next = s->next - s->in_count + 1;
  if (s->learned_next <= s->spoilt) shoal_text_clear(&s->learned);
  s->in_count--;
  shoal_rollout_destroy(rollout);
}

void shoal_course_learned(shoal_course *c, uint64_t version) {
  shoal_rollout **round = oldest_round(c);
  uint32_t count = c->config.streams;
  for (uint32_t i = 0; i < count; i++) {
    settle(c, round[i]);
    round[i] = NULL;
  }
  c->in_count -= count;
  if (c->config.eager) {
    memmove(c->in, c->in + count, c->in_count * sizeof(shoal_rollout *));
    memset(c->in + c->in_count, 0, count * sizeof(shoal_rollout *));
  }
  c->counts.rounds++;
  c->version = version;
}

uint64_t shoal_course_oldest(const shoal_course *c) {
  return c->config.eager ? c->version : version_for(c, c->counts.rounds);
}

void shoal_course_look(const shoal_course *c, shoal_course_view *out) { *out = c->counts; }

/* ---- restarts ----------------------------------------------------------------------- */

/* The bytes, little-endian:
 *
 *   offset  bytes  what
 *   0       8      "shoalco2"
 *   8       4      streams
 *   12      4      1: eager
 *   16      8      rounds learned from
 *   24      8      version
 *   32      8      the oldest version that a unit may ask for
 *   40      ...    for every stream: 8 its next stretch, 8 the length of its state, the state */
void shoal_course_write(const shoal_course *c, shoal_text *out) {
  shoal_text_add(out, MAGIC, sizeof MAGIC);
  shoal_put_u32(out, c->config.streams);
  shoal_put_u32(out, c->config.eager);
  shoal_put_u64(out, c->counts.rounds);
  shoal_put_u64(out, c->version);
  shoal_put_u64(out, c->version_least);
  for (uint32_t i = 0; i < c->config.streams; i++) {
    const stream *s = &c->streams[i];
    shoal_put_u64(out, s->learned_next);
    shoal_put_u64(out, s->learned.length);
    shoal_text_add(out, s->learned.bytes, s->learned.length);
  }
}

static shoal_status damaged(shoal_error *err) {
  return shoal_fail(err, SHOAL_INVALID, "where the streams stand is damaged");
}

/* One that was written in the other way goes on where its environments stand, in step with all others. */
static shoal_status read_stream(const shoal_course *c, stream *s, bool eager, shoal_reader *r,
                                shoal_error *err) {
  uint64_t next = shoal_get_u64(r), length = shoal_get_u64(r);
  bool strange = eager ? next > c->counts.rounds * c->config.streams : next != c->counts.rounds;
  if (strange || length > r->left) return damaged(err);
  s->next = s->learned_next = eager == c->config.eager ? next : c->counts.rounds;
  const uint8_t *state = shoal_get(r, (size_t)length);
  if (r->failed) return damaged(err);
  shoal_text_add(&s->learned, state, (size_t)length);
  if (s->learned.failed || !copy_text(&s->state, &s->learned))
    return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for where the streams stand");
  return SHOAL_OK;
}

shoal_status shoal_course_read(shoal_course *c, const void *bytes, size_t length, shoal_error *err) {
  SHOAL_ASSERT(c->counts.rounds == 0 && c->in_count == 0 && c->counts.running == 0);
  shoal_reader r = shoal_reader_of(bytes, length);
  const uint8_t *magic = shoal_get(&r, sizeof MAGIC);
  uint32_t streams = shoal_get_u32(&r), eager = shoal_get_u32(&r);
  uint64_t rounds = shoal_get_u64(&r), version = shoal_get_u64(&r), version_least = shoal_get_u64(&r);
  if (r.failed || memcmp(magic, MAGIC, sizeof MAGIC) != 0 || eager > 1 || version_least > version ||
      rounds > UINT64_MAX / SHOAL_STREAMS_MAX)
    return damaged(err);
  if (streams != c->config.streams)
    return shoal_fail(err, SHOAL_INVALID, "it has %u streams, and %u are asked for", streams,
                      c->config.streams);
  c->counts.rounds = rounds;
  c->counts.units = rounds * streams;
  c->version = version;
  c->version_least = (eager != 0) == c->config.eager ? version_least : version;
  shoal_status status = SHOAL_OK;
  for (uint32_t i = 0; i < c->config.streams && status == SHOAL_OK; i++)
    status = read_stream(c, &c->streams[i], eager != 0, &r, err);
  return status == SHOAL_OK && r.left > 0 ? damaged(err) : status;
}
