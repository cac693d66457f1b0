/* swarm_ask.c: what a member asks of whom. See swarm.h.
 *
 * Every neighbour that has something wanted has a question at all times, so uplinks do not rest while there
 * is something to do; one that answers quickly has as many as it answers in `pipe_s`, which hides the way
 * there and back. So a chunk comes when the neighbour's turns have come round to it, and how long that takes
 * is learnt.
 *
 * When all that a neighbour has is asked for elsewhere, it is asked a second time for the chunk that would
 * come latest, where it promises to be much quicker: so nobody waits at the end for the slowest. */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "proto/swarm_internal.h"

#define NONE (UINT32_MAX - 1)
enum { LOOKED_AT_MAX = 4096 }; /* candidates, of which the rarest is taken */
enum { SAME_MAX = 3 };         /* questions for one chunk, late ones apart */
static const double pipe_s = 0.2;
static const double late_waits = 4; /* a question is late after so many times what is usual */
enum { UNKNOWN_PATIENCES = 12 };    /* what is patience where nothing is known yet of how long answers take */
/* How long the server must have said "not now" before it is told that nobody else gives an urgent chunk, or
 * any to one without neighbours. */
static const double urgent_grace_s = 0.5, alone_grace_s = 1;
/* And any other: nothing has come, for as long as one has patience with neighbours; so many times as long
 * where these are many: what none of them has is likely to be on its way. */
enum { MANY = 8, MANY_PATIENCES = 4 };
static const double smooth = 0.25; /* weight of the newest measurement */
/* How long one leaves who said "not now" alone: twice as long every time. The server longer, where answers
 * take long anyway or none has come yet: it has many to say it to. */
static const double rest_first_s = 0.25, rest_most_s = 4, rest_unknown_s = 30;

/* ---- open chunks ---- */

void shoal_swarm_open(shoal_swarm *s, uint32_t chunk) {
  if (!shoal_bit(s->wanted, chunk) || shoal_bit(s->arrived, chunk) || shoal_bit(s->open, chunk)) return;
  shoal_bit_set(s->open, chunk);
  s->open_count++;
}

void shoal_swarm_close(shoal_swarm *s, uint32_t chunk) {
  if (!shoal_bit(s->open, chunk)) return;
  shoal_bit_clear(s->open, chunk);
  s->open_count--;
}

/* ---- questions ---- */

static bool is_asked(const shoal_swarm_neighbour *n, uint32_t chunk) {
  for (uint32_t i = 0; i < n->asked_count; i++)
    if (n->asked[i].chunk == chunk) return true;
  return false;
}

static void put_question(shoal_swarm *s, shoal_swarm_neighbour *n, uint32_t chunk, bool sole, double now) {
  shoal_swarm_question *q = &n->asked[n->asked_count++];
  *q = (shoal_swarm_question){.number = ++s->questions, .since = now, .chunk = chunk, .sole = sole};
  s->counts.asked++;
  if (chunk != SHOAL_SWARM_ANY) {
    s->asked[chunk]++;
    shoal_swarm_close(s, chunk);
  }
  shoal_swarm_say(
      s, n,
      (shoal_message){.kind = SHOAL_MSG_WANT, .lease = q->number, .shard = chunk, .count = sole ? 1 : 0});
}

static void remove_question(shoal_swarm *s, shoal_swarm_neighbour *n, uint32_t index) {
  uint32_t chunk = n->asked[index].chunk;
  n->asked[index] = n->asked[--n->asked_count];
  s->counts.asked--;
  if (chunk != SHOAL_SWARM_ANY && --s->asked[chunk] == 0) shoal_swarm_open(s, chunk);
}

void shoal_swarm_drop_questions(shoal_swarm *s, shoal_swarm_neighbour *n) {
  while (n->asked_count > 0) remove_question(s, n, n->asked_count - 1);
}

/* A chunk is here: others who were asked for it hear that, and need not send it. */
void shoal_swarm_take_back(shoal_swarm *s, uint32_t chunk, double now) {
  for (uint32_t i = 0; i < s->neighbours_count && s->asked[chunk] > 0; i++) {
    shoal_swarm_neighbour *n = s->neighbours[i];
    for (uint32_t k = 0; k < n->asked_count; k++) {
      if (n->asked[k].chunk != chunk) continue;
      if (n->asked[k].late) n->slow = false;
      remove_question(s, n, k);
      shoal_swarm_say_one(s, n, chunk);
      shoal_swarm_ask(s, n, now);
      break;
    }
  }
}

/* ---- which chunk ---- */

/* Chunks that are equally rare are taken in an order that is each member's own. */
static uint32_t tie_of(const shoal_swarm *s, uint32_t chunk) {
  uint64_t x = (s->config.seed ^ chunk) * 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
  return (uint32_t)(x >> 32);
}

typedef struct choice {
  uint32_t chunk, rarity, tie, looked_at;
} choice;

static void look_at(const shoal_swarm *s, const shoal_swarm_neighbour *n, uint32_t chunk, choice *best) {
  best->looked_at++;
  uint32_t rarity = s->holders[chunk];
  if (rarity > best->rarity || (s->asked[chunk] > 0 && is_asked(n, chunk))) return;
  uint32_t tie = tie_of(s, chunk);
  if (rarity == best->rarity && best->chunk != NONE && tie >= best->tie) return;
  best->chunk = chunk;
  best->rarity = rarity;
  best->tie = tie;
}

/* The rarest open chunk that the neighbour has. Of very many, those of a stretch that begins anywhere. */
static uint32_t rarest(const shoal_swarm *s, const shoal_swarm_neighbour *n, const uint64_t *only) {
  choice best = {.chunk = NONE, .rarity = UINT32_MAX};
  uint32_t first = s->config.chunks > LOOKED_AT_MAX ? tie_of(s, (uint32_t)s->questions) % s->words : 0;
  for (uint32_t i = 0; i < s->words && best.looked_at < LOOKED_AT_MAX; i++) {
    uint32_t w = first + i < s->words ? first + i : first + i - s->words;
    uint64_t bits = s->open[w];
    if (!n->is_server) bits &= n->bits[w];
    if (only != NULL) bits &= only[w];
    for (; bits != 0; bits &= bits - 1) look_at(s, n, w * 64 + (uint32_t)__builtin_ctzll(bits), &best);
  }
  return best.chunk;
}

/* When the answer is expected. One that is overdue will take as long again as it took so far. */
static double expected_at(const shoal_swarm *s, const shoal_swarm_neighbour *n, const shoal_swarm_question *q,
                          double now) {
  double at = q->since + (n->wait_s > 0 ? n->wait_s : s->wait_s);
  return at > now ? at : now + (now - q->since);
}

/* The last ones: of the chunks that others are asked for, the one that is expected latest, if it would come
 * from here in less than a fourth of the time that is left. */
static uint32_t slowest(const shoal_swarm *s, const shoal_swarm_neighbour *n, double now) {
  double usual_s = s->wait_s > 0 ? s->wait_s : s->config.patience_s;
  double latest = now + 4 * (n->wait_s > 0 ? n->wait_s : usual_s);
  uint32_t best = NONE;
  for (uint32_t i = 0; i < s->neighbours_count; i++) {
    const shoal_swarm_neighbour *other = s->neighbours[i];
    if (other == n) continue;
    for (uint32_t k = 0; k < other->asked_count; k++) {
      const shoal_swarm_question *q = &other->asked[k];
      if (q->chunk == SHOAL_SWARM_ANY || s->asked[q->chunk] >= SAME_MAX) continue;
      double at = expected_at(s, other, q, now);
      if (at <= latest) continue;
      if (!shoal_bit(s->wanted, q->chunk) || shoal_bit(s->arrived, q->chunk)) continue;
      if (!(n->is_server || shoal_bit(n->bits, q->chunk)) || is_asked(n, q->chunk)) continue;
      latest = at;
      best = q->chunk;
    }
  }
  return best;
}

static uint32_t choose(const shoal_swarm *s, const shoal_swarm_neighbour *n, double now) {
  uint32_t chunk = NONE;
  if (s->open_count > 0 && s->urgent_count > 0) chunk = rarest(s, n, s->urgent);
  if (s->open_count > 0 && chunk == NONE) chunk = rarest(s, n, NULL);
  if (chunk == NONE && n->asked_count == 0) chunk = slowest(s, n, now);
  return chunk;
}

/* ---- asking ---- */

/* How long one waits for a neighbour who takes `wait_s` as a rule; 0: that is not known yet. */
static double patience_of(const shoal_swarm *s, double wait_s) {
  double least_s = wait_s > 0 ? s->config.patience_s : UNKNOWN_PATIENCES * s->config.patience_s;
  return fmax(least_s, late_waits * (wait_s > 0 ? wait_s : s->wait_s));
}

static uint32_t window_of(const shoal_swarm *s, const shoal_swarm_neighbour *n) {
  double window = n->gap_s > 0 ? 1 + pipe_s / n->gap_s : 1;
  return window < s->config.ahead ? (uint32_t)window : s->config.ahead;
}

/* The server is asked for a certain chunk only when no neighbour has it, or all who have it were asked. */
static uint32_t choose_of_server(const shoal_swarm *s, const shoal_swarm_neighbour *n) {
  if (s->open_count == 0) return NONE;
  uint32_t chunk = s->urgent_count > 0 ? rarest(s, n, s->urgent) : NONE;
  if (chunk == NONE || s->holders[chunk] > s->asked[chunk]) chunk = rarest(s, n, NULL);
  if (chunk == NONE) return NONE;
  return s->usable == 0 || s->holders[chunk] <= s->asked[chunk] ? chunk : NONE;
}

/* Whether there are questions for certain chunks now. */
static bool ask_server_for(shoal_swarm *s, shoal_swarm_neighbour *n, double now) {
  bool has_others = s->usable > 0;
  double refused_s = now - s->refused_since;
  double starved_s = has_others ? fmin(refused_s, now - s->got_at) : refused_s;
  double grace_s = has_others ? patience_of(s, s->wait_s) : alone_grace_s;
  if (s->usable >= MANY) grace_s *= MANY_PATIENCES;
  uint32_t certain = 0, window = window_of(s, n);
  for (uint32_t i = 0; i < n->asked_count; i++) certain += n->asked[i].chunk != SHOAL_SWARM_ANY;
  if (starved_s >= grace_s && has_others) window = 1;
  while (certain < window && n->asked_count < s->config.ahead) {
    uint32_t chunk = choose_of_server(s, n);
    if (chunk == NONE) break;
    bool urgent = shoal_bit(s->urgent, chunk);
    bool sole = s->config.alone || starved_s >= (urgent ? urgent_grace_s : grace_s);
    if (s->config.wants_all && !sole && !urgent) break;
    put_question(s, n, chunk, sole, now);
    certain++;
  }
  return certain > 0;
}

/* Who wants everything takes what the server has given least: so that it gives different chunks to all. */
static void ask_server_for_any(shoal_swarm *s, shoal_swarm_neighbour *n, double now) {
  uint32_t any = 0, window = window_of(s, n);
  for (uint32_t i = 0; i < n->asked_count; i++) any += n->asked[i].chunk == SHOAL_SWARM_ANY;
  while (any < window && n->asked_count + 1 < s->config.ahead && s->counts.wanted > s->arrived_count + any) {
    put_question(s, n, SHOAL_SWARM_ANY, false, now);
    any++;
  }
}

void shoal_swarm_ask(shoal_swarm *s, shoal_swarm_neighbour *n, double now) {
  if (s->urgent_count > 0) n->rest_until = fmin(n->rest_until, now + rest_most_s);
  if (n->bad || n->slow || now < n->rest_until || s->counts.wanted == 0) return;
  if (n->is_server) {
    if (!ask_server_for(s, n, now) && s->config.wants_all) ask_server_for_any(s, n, now);
    return;
  }
  for (uint32_t window = window_of(s, n); n->asked_count < window;) {
    uint32_t chunk = choose(s, n, now);
    if (chunk == NONE) return;
    put_question(s, n, chunk, false, now);
  }
}

void shoal_swarm_ask_all(shoal_swarm *s, double now) {
  if (s->counts.wanted == 0) return;
  for (uint32_t i = 0; i < s->neighbours_count; i++) shoal_swarm_ask(s, s->neighbours[i], now);
}

/* ---- answers ---- */

static double smoothed(double old, double measured) {
  return old > 0 ? old + smooth * (measured - old) : measured;
}

/* How long it took, and how far apart its answers are while it has something to answer. */
static void measure(shoal_swarm *s, shoal_swarm_neighbour *n, const shoal_swarm_question *q, double now) {
  enum { LEAST_US = 1 };
  const double least_s = LEAST_US * 1e-6;
  n->slow = false;
  n->rest_s = 0;
  n->gap_s = smoothed(n->gap_s, fmax(now - fmax(n->answered_at, q->since), least_s));
  n->answered_at = now;
  if (n->is_server) return;
  n->wait_s = smoothed(n->wait_s, fmax(now - q->since, least_s));
  s->wait_s = smoothed(s->wait_s, n->wait_s);
}

static void take_not_now(shoal_swarm *s, shoal_swarm_neighbour *n, double now) {
  bool only = n->is_server && s->usable == 0; /* there is nobody else to wait for */
  double most_s = rest_most_s;
  if (n->is_server) most_s = s->wait_s > 0 ? fmax(rest_most_s, s->wait_s) : rest_unknown_s;
  n->rest_s = only ? rest_first_s : fmin(fmax(2 * n->rest_s, rest_first_s), most_s);
  n->rest_until = now + n->rest_s;
  if (n->is_server && s->refused_since == INFINITY) s->refused_since = now;
}

static void take_chunk(shoal_swarm *s, shoal_swarm_neighbour *n, shoal_message *m, double now) {
  uint64_t bytes = shoal_blob_length(m->payload);
  n->got_bytes += bytes;
  s->counts.got_bytes += bytes;
  if (n->is_server) s->counts.server_bytes += bytes;
  if (shoal_bit(s->here, m->shard) || shoal_bit(s->arrived, m->shard)) {
    s->counts.twice++;
    return;
  }
  s->counts.got++;
  s->got_at = now;
  shoal_swarm_close(s, m->shard);
  shoal_bit_set(s->arrived, m->shard);
  s->arrived_count++;
  shoal_swarm_tell(s,
                   (shoal_swarm_event){
                       .kind = SHOAL_SWARM_ARRIVED, .peer = n->id, .chunk = m->shard, .payload = m->payload});
  m->payload = NULL;
}

/* An answer to a question that was taken back, or that nobody asked. */
static void take_stray(shoal_swarm *s, const shoal_message *m) {
  if (shoal_swarm_is_here(s, m->shard) && m->payload != NULL)
    s->counts.twice++;
  else if (m->payload != NULL)
    s->counts.strange++;
}

void shoal_swarm_answered(shoal_swarm *s, shoal_swarm_neighbour *n, shoal_message *m, double now) {
  uint32_t i = 0;
  while (i < n->asked_count && n->asked[i].number != m->lease) i++;
  if (i == n->asked_count || n->bad) {
    take_stray(s, m);
    return;
  }
  shoal_swarm_question q = n->asked[i];
  remove_question(s, n, i);
  bool fits = m->shard < s->config.chunks && (q.chunk == SHOAL_SWARM_ANY || q.chunk == m->shard);
  if (m->payload == NULL || !fits) {
    if (m->payload != NULL) s->counts.strange++;
    take_not_now(s, n, now);
    shoal_swarm_ask_all(s, now);
    return;
  }
  if (shoal_blob_length(m->payload) > s->config.chunk_bytes) {
    shoal_swarm_expose(s, n->id, m->shard);
    shoal_swarm_ask_all(s, now);
    return;
  }
  measure(s, n, &q, now);
  if (n->is_server && !q.sole) s->refused_since = INFINITY;
  take_chunk(s, n, m, now);
  shoal_swarm_ask(s, n, now);
}

/* ---- late ---- */

static bool mark_late(shoal_swarm *s, shoal_swarm_neighbour *n, double now) {
  double patience_s = patience_of(s, n->wait_s);
  bool any = false;
  for (uint32_t i = 0; i < n->asked_count; i++) {
    shoal_swarm_question *q = &n->asked[i];
    if (q->late || q->chunk == SHOAL_SWARM_ANY || now - q->since < patience_s) continue;
    q->late = n->slow = any = true;
    s->counts.late++;
    shoal_swarm_open(s, q->chunk);
  }
  return any;
}

bool shoal_swarm_check_late(shoal_swarm *s, double now) {
  bool any = false;
  for (uint32_t i = 0; i < s->neighbours_count; i++) any |= mark_late(s, s->neighbours[i], now);
  return any;
}
