/* swarm_give.c: whom a member gives what. See swarm.h.
 *
 * Those who ask stand in a line, and are given one chunk a turn: whoever has had one and asks for more goes
 * to its end. So everybody gets the same share however much it asks for. Where one stands that comes for the
 * first time is drawn: if everybody took those who ask in the order in which they came, all would send to
 * the same one at the same time, and wait for its link. */
#include <math.h>

#include "base/assert.h"
#include "proto/swarm_internal.h"

#define NONE (UINT32_MAX - 1)
enum { DRAWN_MAX = 64 }; /* places from the end of the line, among which a newcomer's is drawn */
enum { FEW = 2 }; /* a chunk that no more than so many have, long after it was given, does not spread */
static const double smooth = 0.25; /* weight of the newest measurement */
static const double stuck_look_s = 1;
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

/* A chunk that was given long ago and has not got on: whoever has it is slow, or gone without a word. */
static uint32_t stuck_chunk(shoal_swarm *s, const shoal_swarm_neighbour *n, double now) {
  if (now < s->stuck_look_at || s->again > s->config.chunks / AGAIN_SHARE) return NONE;
  double long_s = fmax(s->config.patience_s, stuck_gives * s->give_s);
  uint32_t best = NONE, few = FEW + 1;
  bool any = false;
  for (uint32_t c = 0; c < s->config.chunks; c++) {
    if (s->holders[c] > FEW || s->holders[c] >= s->neighbours_count) continue;
    if (now - s->given_at[c] < long_s) continue;
    any = true;
    if (s->holders[c] >= few || shoal_bit(n->bits, c)) continue;
    best = c;
    few = s->holders[c];
  }
  if (!any) s->stuck_look_at = now + stuck_look_s;
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
  shoal_swarm_lack(s, chunk, false);
}

/* ---- giving ---- */

/* The question's turn has come: what chunk it gets, or NONE for "not now". */
static uint32_t settle(shoal_swarm *s, shoal_swarm_neighbour *n, const shoal_swarm_demand *ask, double now) {
  if (ask->chunk == SHOAL_SWARM_ANY && n->bad) return NONE;
  uint32_t chunk = ask->chunk == SHOAL_SWARM_ANY ? best_to_give(s, n, now) : ask->chunk;
  if (chunk != NONE && s->config.serves) note_given(s, n, chunk, now);
  return chunk;
}

static void pump(shoal_swarm *s, double now) {
  while (s->giving < s->config.slots && s->line_first != NULL) {
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

/* Whether the server leaves a chunk to others: somebody else who is here has it. */
static bool left_to_others(const shoal_swarm *s, const shoal_swarm_neighbour *n, uint32_t chunk) {
  return s->config.serves && s->holders[chunk] > (shoal_bit(n->bits, chunk) ? 1 : 0);
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
  *ask_at(s, n, n->asks_count++) = (shoal_swarm_demand){.number = m->lease, .chunk = chunk};
  line_up(s, n);
  pump(s, now);
}

/* It has the chunk, so it does not ask for it any more. */
void shoal_swarm_forget_ask(shoal_swarm *s, shoal_swarm_neighbour *n, uint32_t chunk) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n->asks_count; i++) {
    shoal_swarm_demand ask = *ask_at(s, n, i);
    if (ask.chunk != chunk) *ask_at(s, n, kept++) = ask;
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
  pump(s, now);
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
    pump(s, now);
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
  double took_s = now - n->giving_since;
  s->give_s = s->give_s > 0 ? s->give_s + smooth * (took_s - s->give_s) : took_s;
  stop_giving(s, n);
  line_up(s, n);
  pump(s, now);
}
