/* swarm_give.c: whom a member gives what. See swarm.h.
 *
 * Those who ask stand in a line, and are given one chunk a turn: whoever has had one and asks for more goes
 * to its end. So everybody gets the same share however much it asks for. Where one stands that comes for the
 * first time is drawn: if everybody took those who ask in the order in which they came, all would send to
 * the same one at the same time, and wait for its link.
 *
 * How many are sent to at a time follows from the uplink: as many as it serves in `turn_s`, one at least. A
 * chunk that is sent alone is whole, and passed on, before the first of twelve would be; and what only stands
 * in line can be taken back without having cost anything. How fast the uplink is is learnt from the chunks
 * that leave. */
#include <math.h>

#include "base/assert.h"
#include "proto/swarm_internal.h"

#define NONE (UINT32_MAX - 1)
enum { DRAWN_MAX = 64 };         /* places from the end of the line, among which a newcomer's is drawn */
static const double turn_s = 16; /* those who are sent a chunk at a time should all have it in so long */
static const double rate_fades = 0.95; /* what is left of the highest rate when one more has been sent */
static const double overdue = 2;       /* so many times what the uplink explains: the receiver is slow */
static const double unknown_s = 32;    /* the same for the first of all; twice as long with every one more */
/* A chunk does not spread that, long after it was given, no more than these have: an eighth of what others
 * have on average, or 2 in a small swarm. */
enum { FEW_SHARE = 8, SMALL = 32, FEW_OF_SMALL = 2 };
static const double smooth = 0.25; /* weight of the newest measurement */
static const double least_s = 1e-6;
static const double stuck_look_s = 1;
enum { STUCK_LOOKED_AT = 4096 };     /* chunks, at a time */
static const double stuck_gives = 8; /* long: so many times what it takes the server to give a chunk */
enum { AGAIN_SHARE = 4 };            /* at most a fourth of all chunks is given again of its own accord */

/* ---- the line ---- */

/* Behind whom a peer goes that lines up: the last, or when it comes for the first time anybody. */
static shoal_swarm_neighbour *place_in_line(shoal_swarm *s, shoal_swarm_neighbour *n) {
  shoal_swarm_neighbour *before = s->line_last;
  if (n->known) return before;
  n->known = true;
  uint64_t draw = (s->config.seed ^ n->id) * 0x9e3779b97f4a7c15u >> 33;
  for (uint64_t steps = draw % (s->line_count + 1) % DRAWN_MAX; steps > 0; steps--) before = before->before;
  return before;
}

static void line_up(shoal_swarm *s, shoal_swarm_neighbour *n) {
  if (n->in_line || n->giving || n->asks_count == 0) return;
  n->before = place_in_line(s, n);
  n->behind = n->before != NULL ? n->before->behind : s->line_first;
  n->in_line = true;
  s->line_count++;
  if (n->before != NULL)
    n->before->behind = n;
  else
    s->line_first = n;
  if (n->behind != NULL)
    n->behind->before = n;
  else
    s->line_last = n;
}

static void leave_line(shoal_swarm *s, shoal_swarm_neighbour *n) {
  if (!n->in_line) return;
  n->in_line = false;
  s->line_count--;
  if (n->before != NULL)
    n->before->behind = n->behind;
  else
    s->line_first = n->behind;
  if (n->behind != NULL)
    n->behind->before = n->before;
  else
    s->line_last = n->before;
}

static shoal_swarm_demand *ask_at(const shoal_swarm *s, shoal_swarm_neighbour *n, uint32_t i) {
  return &n->asks[(n->asks_first + i) % s->config.ahead];
}

static void say_not_now(shoal_swarm *s, shoal_swarm_neighbour *n, uint64_t number, uint32_t chunk) {
  s->counts.not_now++;
  shoal_swarm_say(s, n, (shoal_message){.kind = SHOAL_MSG_CHUNK, .lease = number, .shard = chunk});
}

/* ---- what the server gives ---- */

void shoal_swarm_lack(shoal_swarm *s, uint32_t chunk, bool lacking) {
  if (shoal_bit(s->lacking, chunk) == lacking) return;
  if (lacking)
    shoal_bit_set(s->lacking, chunk);
  else
    shoal_bit_clear(s->lacking, chunk);
  s->lacking_count += lacking ? 1 : -1u;
}

/* A chunk that nobody here has, beginning anywhere. */
static uint32_t lacking_chunk(const shoal_swarm *s) {
  if (s->lacking_count == 0) return NONE;
  uint32_t first = (uint32_t)((s->config.seed + s->counts.given) * 0x9e3779b97f4a7c15u >> 33) % s->words;
  for (uint32_t i = 0; i < s->words; i++) {
    uint32_t w = (first + i) % s->words;
    if (s->lacking[w] != 0) return w * 64 + (uint32_t)__builtin_ctzll(s->lacking[w]);
  }
  return NONE;
}

/* Of so many chunks at most, from the next on; when there are none among them the next time goes on behind
 * them, and when that was the last of all rests for a while. */
static void pass_stuck(shoal_swarm *s, double now) {
  s->stuck_next += STUCK_LOOKED_AT;
  if (s->stuck_next < s->config.chunks) return;
  s->stuck_next = 0;
  s->stuck_look_at = now + stuck_look_s;
}

/* A chunk that was given long ago and has not got on: whoever has it is slow, or gone without a word. In a
 * large swarm it goes to one that has got on itself. */
static uint32_t stuck_chunk(shoal_swarm *s, const shoal_swarm_neighbour *n, double now) {
  if (now < s->stuck_look_at || s->again > s->config.chunks / AGAIN_SHARE) return NONE;
  bool small = s->neighbours_count <= SMALL;
  if (!small && (uint64_t)n->has * s->neighbours_count < s->held) return NONE;
  double long_s = fmax(s->config.patience_s, stuck_gives * s->give_s);
  uint32_t most = small ? FEW_OF_SMALL : (uint32_t)(s->held / s->config.chunks / FEW_SHARE);
  uint32_t best = NONE, few = most + 1, end = s->stuck_next + STUCK_LOOKED_AT;
  bool any = false;
  for (uint32_t c = s->stuck_next; c < end && c < s->config.chunks; c++) {
    if (s->holders[c] > most || s->holders[c] >= s->neighbours_count) continue;
    if (now - s->given_at[c] < long_s) continue;
    any = true;
    if (s->holders[c] >= few || shoal_bit(n->bits, c)) continue;
    best = c;
    few = s->holders[c];
  }
  if (!any) pass_stuck(s, now);
  s->again += best != NONE;
  return best;
}

static uint32_t best_to_give(shoal_swarm *s, const shoal_swarm_neighbour *n, double now) {
  uint32_t chunk = lacking_chunk(s);
  return chunk != NONE ? chunk : stuck_chunk(s, n, now);
}

/* Who gets a chunk from the server will have it: nobody else needs to get it here in the meantime. */
static void note_given(shoal_swarm *s, shoal_swarm_neighbour *n, uint32_t chunk, double now) {
  s->given_at[chunk] = now;
  if (shoal_bit(n->bits, chunk)) return;
  shoal_bit_set(n->bits, chunk);
  n->has++;
  if (n->bad) return; /* nobody gets it there */
  s->holders[chunk]++;
  s->held++;
  shoal_swarm_lack(s, chunk, false);
}

/* ---- how many at a time ---- */

/* The highest rate of late counts: a receiver that is slow makes a lower one, which says nothing. */
static void measure(shoal_swarm *s, const shoal_swarm_neighbour *n, double took_s) {
  s->give_s = s->give_s > 0 ? s->give_s + smooth * (took_s - s->give_s) : took_s;
  s->sent++;
  s->sent_rate = fmax((double)(s->sent - n->sent_before) / took_s, rate_fades * s->sent_rate);
}

/* Whether one more may be sent a chunk. Those who have waited for theirs longer than the uplink explains do
 * not count; when the next of them does not is noted. The server uses all its slots. */
static bool has_room(shoal_swarm *s, double now) {
  if (s->giving >= s->config.slots) return false;
  double most = s->sent_rate > 0 ? ceil(turn_s * s->sent_rate) : 1;
  if (s->config.serves || most >= s->config.slots) return true;
  double slow_s = s->sent_rate > 0 ? overdue * most / s->sent_rate : ldexp(unknown_s, (int)s->giving - 1);
  uint32_t counted = 0;
  double next = INFINITY;
  for (uint32_t i = 0; i < s->neighbours_count; i++) {
    const shoal_swarm_neighbour *n = s->neighbours[i];
    if (!n->giving || now >= n->giving_since + slow_s) continue;
    counted++;
    next = fmin(next, n->giving_since + slow_s);
  }
  if (counted < most) return true;
  s->room_at = next;
  return false;
}

/* ---- giving ---- */

/* Whether the server leaves a chunk to others: somebody else who is here has it. */
static bool left_to_others(const shoal_swarm *s, const shoal_swarm_neighbour *n, uint32_t chunk) {
  return s->config.serves && s->holders[chunk] > (shoal_bit(n->bits, chunk) ? 1 : 0);
}

/* The question's turn has come: what chunk it gets, or NONE for "not now". */
static uint32_t settle(shoal_swarm *s, shoal_swarm_neighbour *n, const shoal_swarm_demand *ask, double now) {
  if (ask->chunk == SHOAL_SWARM_ANY && n->bad) return NONE;
  /* While it stood in line another may have got it. */
  if (ask->chunk != SHOAL_SWARM_ANY && !ask->sole && left_to_others(s, n, ask->chunk)) return NONE;
  uint32_t chunk = ask->chunk == SHOAL_SWARM_ANY ? best_to_give(s, n, now) : ask->chunk;
  if (chunk != NONE && s->config.serves) note_given(s, n, chunk, now);
  return chunk;
}

void shoal_swarm_pump(shoal_swarm *s, double now) {
  s->room_at = INFINITY;
  while (s->line_first != NULL && has_room(s, now)) {
    shoal_swarm_neighbour *n = s->line_first;
    leave_line(s, n);
    shoal_swarm_demand ask = *ask_at(s, n, 0);
    n->asks_first = (n->asks_first + 1) % s->config.ahead;
    n->asks_count--;
    uint32_t chunk = settle(s, n, &ask, now);
    if (chunk == NONE) {
      say_not_now(s, n, ask.number, ask.chunk);
      line_up(s, n);
      continue;
    }
    n->giving = true;
    n->giving_number = ask.number;
    n->giving_since = now;
    n->sent_before = s->sent;
    s->giving++;
    shoal_swarm_tell(s, (shoal_swarm_event){
                            .kind = SHOAL_SWARM_GIVE, .peer = n->id, .chunk = chunk, .question = ask.number});
  }
}

static bool asks_already(const shoal_swarm *s, shoal_swarm_neighbour *n, uint32_t chunk) {
  for (uint32_t i = 0; i < n->asks_count; i++)
    if (chunk != SHOAL_SWARM_ANY && ask_at(s, n, i)->chunk == chunk) return true;
  return false;
}

void shoal_swarm_asked(shoal_swarm *s, shoal_swarm_neighbour *n, const shoal_message *m, double now) {
  uint32_t chunk = m->shard;
  bool any = chunk == SHOAL_SWARM_ANY;
  if (any ? !s->config.serves : chunk >= s->config.chunks) {
    s->counts.strange++;
    say_not_now(s, n, m->lease, chunk);
    return;
  }
  if (n->asks_count == s->config.ahead || asks_already(s, n, chunk) || (!any && !shoal_bit(s->here, chunk)) ||
      (!any && m->count != 1 && left_to_others(s, n, chunk))) {
    say_not_now(s, n, m->lease, chunk);
    return;
  }
  *ask_at(s, n, n->asks_count++) =
      (shoal_swarm_demand){.number = m->lease, .chunk = chunk, .sole = m->count == 1};
  line_up(s, n);
  shoal_swarm_pump(s, now);
}

static bool says(const shoal_message *have, uint32_t chunk) {
  uint32_t i = chunk - have->shard;
  if (chunk < have->shard || i >= have->count) return false;
  return have->payload == NULL || shoal_blob_bytes(have->payload)[i / 8] >> (i % 8) & 1;
}

void shoal_swarm_forget_asks(shoal_swarm *s, shoal_swarm_neighbour *n, const shoal_message *have) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n->asks_count; i++) {
    shoal_swarm_demand ask = *ask_at(s, n, i);
    if (!says(have, ask.chunk)) *ask_at(s, n, kept++) = ask;
  }
  n->asks_count = kept;
  if (kept == 0) leave_line(s, n);
}

static void stop_giving(shoal_swarm *s, shoal_swarm_neighbour *n) {
  if (!n->giving) return;
  n->giving = n->under_way = false;
  s->giving--;
}

void shoal_swarm_stop_giving(shoal_swarm *s, shoal_swarm_neighbour *n, double now) {
  n->asks_count = 0;
  leave_line(s, n);
  stop_giving(s, n);
  shoal_swarm_pump(s, now);
}

void shoal_swarm_give(shoal_swarm *s, uint64_t peer, uint64_t question, uint32_t chunk, shoal_blob *blob,
                      double now) {
  shoal_swarm_neighbour *n = shoal_swarm_find(s, peer);
  if (n == NULL || !n->giving || n->under_way || n->giving_number != question) {
    shoal_blob_release(blob);
    return;
  }
  if (blob == NULL) {
    say_not_now(s, n, question, chunk);
    stop_giving(s, n);
    line_up(s, n);
    shoal_swarm_pump(s, now);
    return;
  }
  uint64_t bytes = shoal_blob_length(blob);
  n->under_way = true;
  n->given_bytes += bytes;
  s->counts.given_bytes += bytes;
  s->counts.given++;
  shoal_swarm_say(
      s, n, (shoal_message){.kind = SHOAL_MSG_CHUNK, .lease = question, .shard = chunk, .payload = blob});
}

void shoal_swarm_sent(shoal_swarm *s, uint64_t peer, double now) {
  shoal_swarm_neighbour *n = shoal_swarm_find(s, peer);
  if (n == NULL || !n->under_way) return;
  measure(s, n, fmax(now - n->giving_since, least_s));
  stop_giving(s, n);
  line_up(s, n);
  shoal_swarm_pump(s, now);
}
