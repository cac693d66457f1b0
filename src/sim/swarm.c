/* swarm.c: see swarm.h. Node 0 is the server, members follow; a core knows node i as peer i + 1. */
#include "sim/swarm.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/human.h"
#include "base/random.h"
#include "proto/swarm.h"
#include "sim/swarm_links.h"

const shoal_swarm_mix shoal_swarm_mixes[SHOAL_SWARM_MIXES] = {
    {0.20, 784e3, 128e3}, {0.40, 1500e3, 384e3}, {0.25, 3000e3, 1000e3}, {0.15, 10000e3, 5000e3}};

enum { SERVER = 0, NEIGHBOURS_DEFAULT = 40, SLOTS_DEFAULT = 12, PIECES_DEFAULT = 4, AHEAD = 8 };
enum { FRAME_BYTES = 10, BANS_MAX = 64, ECHOES = 100, UPLOAD_CHUNKS = 16 };
static const double dial_again_s = 0.5; /* a member that has lost neighbours looks for others after so long */

typedef enum timer { TICK, JOIN, LEAVE, NOTICE, DIAL, KILL } timer;
typedef enum content { NOTHING, GOOD, SPOILT } content;

typedef struct member {
  shoal_swarm *core;
  bool alive, corrupt, unreachable, exposed;
  double up, down, joined_at, done_at, tick_at;
  uint8_t *kept;    /* content of each chunk */
  uint8_t *wants;   /* NULL: everything */
  uint32_t missing; /* wanted chunks that are not kept */
  uint32_t *near;   /* neighbours, the server apart */
  uint32_t near_count;
  bool at_server;
  uint32_t bans[BANS_MAX], bans_count; /* who has sent it something bad */
  uint32_t blamed_by;                  /* how many have said that to the server */
} member;

typedef struct sim {
  shoal_swarm_sim config;
  shoal_swarm_result *result;
  shoal_links *links;
  member *members; /* the server first */
  uint32_t count, chunks, unfinished, to_come, kills;
  uint32_t *copies; /* of each chunk with honest members who are there */
  uint32_t covered; /* chunks of which there is one */
  shoal_blob **good, *bad;
  shoal_key key;
  uint64_t draws;
  double limit_s, server_bytes, detect_s;
  bool lazy, warm, clean; /* clean: nothing goes wrong */
} sim;

/* ---- chance and rules ---- */

static double chance(sim *s) { return shoal_random_uniform(s->key, s->draws++); }
static uint32_t below(sim *s, uint32_t n) { return (uint32_t)shoal_random_below(s->key, s->draws++, n); }
static bool one_in(sim *s, uint32_t n) { return below(s, n) == 0; }
static double between(sim *s, double low, double high) { return low * pow(high / low, chance(s)); }

__attribute__((format(printf, 3, 4))) static void violate(sim *s, shoal_swarm_rule rule, const char *format,
                                                          ...) {
  if (s->result->violated != SHOAL_SWARM_WELL) return;
  s->result->violated = rule;
  va_list list;
  va_start(list, format);
  vsnprintf(s->result->text, sizeof s->result->text, format, list);
  va_end(list);
}

const char *shoal_swarm_rule_name(shoal_swarm_rule rule) {
  static const char *const names[SHOAL_SWARM_RULES] = {"none",  "complete", "pure",
                                                       "slots", "memory",   "upload"};
  return names[rule];
}

static double now_of(const sim *s) { return shoal_links_now(s->links); }

static uint64_t content_of(uint32_t chunk) { return (chunk + 1) * 0x9e3779b97f4a7c15u; }

static bool is_good(uint32_t chunk, shoal_blob *blob) {
  uint64_t wanted = content_of(chunk);
  return shoal_blob_length(blob) == sizeof wanted &&
         memcmp(shoal_blob_bytes(blob), &wanted, sizeof wanted) == 0;
}

static bool wants(const member *m, uint32_t chunk) { return m->wants == NULL || m->wants[chunk] != 0; }

/* ---- letters ---- */

static double bytes_of(const sim *s, const shoal_message *m) {
  double head = SHOAL_HEADER_BYTES + FRAME_BYTES;
  if (m->payload == NULL) return head;
  if (m->kind != SHOAL_MSG_CHUNK) return head + (double)shoal_blob_length(m->payload);
  uint64_t last = s->config.bytes - (uint64_t)(s->chunks - 1) * s->config.chunk_bytes;
  return head + (double)(m->shard + 1 == s->chunks ? last : s->config.chunk_bytes);
}

/* Nobody says that it has what it has not. */
static void check_have(sim *s, uint32_t from, const shoal_message *m) {
  const member *sender = &s->members[from];
  if (from == SERVER || sender->corrupt) return;
  for (uint32_t i = 0; i < m->count; i++) {
    bool said = m->payload == NULL || shoal_blob_bytes(m->payload)[i / 8] >> (i % 8) & 1;
    if (said && sender->kept[m->shard + i] != GOOD)
      violate(s, SHOAL_SWARM_PURE, "member %u says that it has chunk %u, which it has not", from,
              m->shard + i);
  }
}

static void post(sim *s, uint32_t from, uint32_t to, shoal_message message) {
  double bytes = bytes_of(s, &message);
  s->result->messages++;
  if (message.kind == SHOAL_MSG_HAVE && s->config.drawn) check_have(s, from, &message);
  bool lost = s->config.sabotage == SHOAL_SWARM_HOLE && message.kind == SHOAL_MSG_CHUNK && message.shard == 0;
  if (s->config.sabotage == SHOAL_SWARM_SPOILT && message.kind == SHOAL_MSG_WANT && to == SERVER) {
    message.shard = (from + (uint32_t)message.lease) % s->chunks;
    message.count = 1;
  }
  if (!s->members[to].alive || lost) {
    shoal_message_release(&message);
    return;
  }
  bool large = message.kind == SHOAL_MSG_CHUNK && message.payload != NULL;
  if (!large) s->result->small_bytes += bytes;
  if (from == SERVER && message.kind == SHOAL_MSG_CHUNK) s->server_bytes += bytes;
  shoal_links_send(s->links, from, to, message, bytes, large);
  if (shoal_links_transfers(s->links, from) > s->config.slots)
    violate(s, SHOAL_SWARM_SLOTS, "node %u sends to %u peers at a time; it has %u slots", from,
            shoal_links_transfers(s->links, from), s->config.slots);
}

/* ---- the driver of a core ---- */

static void drain(sim *s, uint32_t i);
static void disconnect(sim *s, uint32_t a, uint32_t b);
static void die(sim *s, uint32_t i, double notice_s);

static void set_tick(sim *s, uint32_t i) {
  member *m = &s->members[i];
  double at = shoal_swarm_next_tick(m->core);
  if (at >= m->tick_at) return;
  m->tick_at = fmax(at, now_of(s));
  shoal_links_timer(s->links, i, m->tick_at, TICK);
}

static void count_copy(sim *s, uint32_t chunk, int more) {
  uint32_t before = s->copies[chunk];
  s->copies[chunk] += (uint32_t)more;
  if (before == 0) s->covered++;
  if (s->copies[chunk] == 0) s->covered--;
}

/* The server leaves as soon as it can do so without harm, and faults are over. */
static void consider_leaving(sim *s) {
  if (!s->config.server_leaves || s->covered < s->chunks || s->to_come > 0 || s->kills > 0) return;
  if (s->members[SERVER].alive) die(s, SERVER, 0);
}

static void keep(sim *s, uint32_t i, uint32_t chunk, content c) {
  member *m = &s->members[i];
  if (m->kept[chunk] != NOTHING) violate(s, SHOAL_SWARM_MEMORY, "member %u keeps chunk %u twice", i, chunk);
  m->kept[chunk] = (uint8_t)c;
  if (c == SPOILT && !m->corrupt)
    violate(s, SHOAL_SWARM_PURE, "member %u keeps chunk %u with contents that are not its", i, chunk);
  if (!m->corrupt) count_copy(s, chunk, 1);
  if (wants(m, chunk) && --m->missing == 0) {
    m->done_at = now_of(s);
    if (!m->corrupt) s->unfinished--;
  }
}

static void arrived(sim *s, uint32_t i, const shoal_swarm_event *event) {
  bool good = is_good(event->chunk, event->payload);
  shoal_blob_release(event->payload);
  bool taken = good || s->config.sabotage == SHOAL_SWARM_GULLIBLE;
  if (taken) keep(s, i, event->chunk, good ? GOOD : SPOILT);
  shoal_swarm_checked(s->members[i].core, event->peer, event->chunk, taken, now_of(s));
  if (taken) consider_leaving(s);
}

/* A member whom two others have blamed is no longer served, either. */
static void blame(sim *s, uint32_t i, uint32_t bad) {
  member *m = &s->members[i], *accused = &s->members[bad];
  if (m->bans_count < BANS_MAX) m->bans[m->bans_count++] = bad;
  if (!accused->exposed) s->result->exposed++;
  accused->exposed = true;
  disconnect(s, i, bad);
  if (bad != SERVER && ++accused->blamed_by == 2 && accused->at_server) disconnect(s, SERVER, bad);
}

static void give(sim *s, uint32_t i, const shoal_swarm_event *event) {
  member *m = &s->members[i];
  bool spoil = m->corrupt && chance(s) < 0.7;
  if (i != SERVER && !m->corrupt && m->kept[event->chunk] != GOOD)
    violate(s, SHOAL_SWARM_PURE, "member %u gives chunk %u, which it has not", i, event->chunk);
  shoal_blob *blob = shoal_blob_share(spoil ? s->bad : s->good[event->chunk]);
  shoal_swarm_give(m->core, event->peer, event->question, event->chunk, blob, now_of(s));
  if (s->config.sabotage == SHOAL_SWARM_EAGER) shoal_swarm_sent(m->core, event->peer, now_of(s));
}

static void post_letters(sim *s, uint32_t i) {
  shoal_letter letter;
  shoal_outbox *box = shoal_swarm_outbox(s->members[i].core);
  while (shoal_outbox_take(box, &letter)) {
    uint32_t to = (uint32_t)letter.peer - 1;
    bool echo = s->config.sabotage == SHOAL_SWARM_ECHO && i != SERVER && letter.message.payload == NULL;
    for (int k = 0; echo && k < ECHOES; k++) post(s, i, to, letter.message);
    post(s, i, to, letter.message);
  }
}

/* Does what the core of a node wants to be done, until there is nothing more. */
static void drain(sim *s, uint32_t i) {
  member *m = &s->members[i];
  if (!m->alive) return;
  shoal_swarm_event event;
  while (m->alive && shoal_swarm_next(m->core, &event)) {
    if (event.kind == SHOAL_SWARM_ARRIVED)
      arrived(s, i, &event);
    else if (event.kind == SHOAL_SWARM_GIVE)
      give(s, i, &event);
    else
      blame(s, i, (uint32_t)event.peer - 1);
  }
  if (!m->alive) return;
  post_letters(s, i);
  set_tick(s, i);
}

/* ---- connections ---- */

static bool is_near(const member *m, uint32_t other) {
  for (uint32_t k = 0; k < m->near_count; k++)
    if (m->near[k] == other) return true;
  return false;
}

static bool is_banned(const member *m, uint32_t other) {
  for (uint32_t k = 0; k < m->bans_count; k++)
    if (m->bans[k] == other) return true;
  return false;
}

static bool connect_pair(sim *s, uint32_t a, uint32_t b) {
  double now = now_of(s);
  if (!shoal_swarm_join(s->members[a].core, b + 1, b == SERVER, now)) return false;
  if (shoal_swarm_join(s->members[b].core, a + 1, a == SERVER, now)) return true;
  shoal_swarm_leave(s->members[a].core, b + 1, now);
  return false;
}

static void dial(sim *s, uint32_t a, uint32_t b) {
  member *x = &s->members[a], *y = &s->members[b];
  if (a == b || !y->alive || is_near(x, b) || (x->unreachable && y->unreachable)) return;
  if (x->near_count == s->config.neighbours || y->near_count == s->config.neighbours) return;
  if (is_banned(x, b) || is_banned(y, a) || !connect_pair(s, a, b)) return;
  x->near[x->near_count++] = b;
  y->near[y->near_count++] = a;
  drain(s, b);
}

/* Looks for neighbours until there are enough, three quarters of what there may be, or few are found. */
static void dial_some(sim *s, uint32_t i) {
  uint32_t enough = s->config.neighbours * 3 / 8 + 1;
  member *m = &s->members[i];
  if (s->count <= s->config.neighbours) {
    for (uint32_t b = 1; b < s->count && m->alive; b++) dial(s, i, b);
  } else {
    uint32_t start = m->near_count;
    for (uint32_t tries = 0; tries < 4 * enough && m->near_count < start + enough; tries++)
      dial(s, i, 1 + below(s, s->count - 1));
  }
  drain(s, i);
}

static void forget_near(member *m, uint32_t other) {
  for (uint32_t k = 0; k < m->near_count; k++)
    if (m->near[k] == other) m->near[k--] = m->near[--m->near_count];
}

static void disconnect(sim *s, uint32_t a, uint32_t b) {
  double now = now_of(s);
  uint32_t ends[2] = {a, b};
  shoal_links_cut(s->links, a, b);
  for (int e = 0; e < 2; e++) {
    uint32_t i = ends[e], other = ends[1 - e];
    member *m = &s->members[i];
    if (other == SERVER) m->at_server = false;
    forget_near(m, other);
    if (!m->alive) continue;
    shoal_swarm_leave(m->core, other + 1, now);
    if (i != SERVER && m->near_count < s->config.neighbours / 4)
      shoal_links_timer(s->links, i, now + dial_again_s, DIAL);
  }
  drain(s, a);
  drain(s, b);
}

/* ---- coming and going ---- */

static void fill_in(sim *s, member *m) {
  shoal_swarm_config config = {.chunks = s->chunks,
                               .chunk_bytes = sizeof(uint64_t),
                               .serves = m == s->members,
                               .wants_all = m != s->members && m->wants == NULL,
                               .peers_max = m == s->members ? s->count : s->config.neighbours + 1,
                               .slots = s->config.slots,
                               .ahead = AHEAD,
                               .seed = s->config.seed * 1000003 + (uint64_t)(m - s->members)};
  shoal_error err;
  SHOAL_ASSERT(shoal_swarm_create(&m->core, &config, &err) == SHOAL_OK);
  m->kept = calloc(s->chunks, 1);
  m->near = calloc(s->config.neighbours, sizeof *m->near);
  SHOAL_ASSERT(m->kept != NULL && m->near != NULL);
  m->tick_at = INFINITY;
}

static void want_part(sim *s, member *m) {
  for (uint32_t c = 0; c < s->chunks; c++)
    if (m->wants[c]) shoal_swarm_want(m->core, c, s->config.on_demand || one_in(s, 3), now_of(s));
}

/* Some is on its disk from another time. */
static void bring_along(sim *s, uint32_t i) {
  member *m = &s->members[i];
  double share = chance(s) * chance(s);
  for (uint32_t c = 0; c < s->chunks; c++) {
    if (chance(s) >= share) continue;
    keep(s, i, c, GOOD);
    shoal_swarm_has(m->core, c, now_of(s));
  }
}

static void start(sim *s, uint32_t i) {
  member *m = &s->members[i];
  if (s->config.on_demand) {
    m->wants = calloc(s->chunks, 1);
    SHOAL_ASSERT(m->wants != NULL);
    memset(m->wants, 1, s->chunks);
  } else if (s->lazy && one_in(s, 2)) {
    m->wants = calloc(s->chunks, 1);
    SHOAL_ASSERT(m->wants != NULL);
    for (uint32_t c = 0; c < s->chunks; c++) m->wants[c] = one_in(s, 3);
    m->wants[below(s, s->chunks)] = 1;
  }
  fill_in(s, m);
  m->alive = true;
  m->joined_at = now_of(s);
  for (uint32_t c = 0; c < s->chunks; c++) m->missing += wants(m, c);
  if (!m->corrupt) s->unfinished++;
  if (m->wants != NULL) want_part(s, m);
  if (s->warm && one_in(s, 2)) bring_along(s, i);
  if (s->members[SERVER].alive && connect_pair(s, i, SERVER)) {
    m->at_server = true;
    drain(s, SERVER);
  }
  drain(s, i);
}

static void die(sim *s, uint32_t i, double notice_s) {
  member *m = &s->members[i];
  if (!m->alive) return;
  m->alive = false;
  for (uint32_t c = 0; i != SERVER && !m->corrupt && c < s->chunks; c++)
    if (m->kept[c] == GOOD) count_copy(s, c, -1);
  if (i != SERVER && !m->corrupt && m->missing > 0) s->unfinished--;
  for (uint32_t k = 0; k < m->near_count; k++) shoal_links_cut(s->links, i, m->near[k]);
  shoal_links_cut(s->links, i, SERVER);
  shoal_links_timer(s->links, i, now_of(s) + notice_s, NOTICE);
}

/* Those who were connected with it notice that it is gone. */
static void notice(sim *s, uint32_t i) {
  member *m = &s->members[i];
  while (m->near_count > 0) disconnect(s, i, m->near[0]);
  if (m->at_server) disconnect(s, i, SERVER);
  for (uint32_t k = 1; i == SERVER && k < s->count; k++)
    if (s->members[k].at_server) disconnect(s, k, SERVER);
  shoal_swarm_destroy(m->core);
  m->core = NULL;
}

static void kill_some(sim *s) {
  for (uint32_t i = 1; i < s->count; i++)
    if (s->members[i].alive && chance(s) < s->config.killed) {
      die(s, i, s->detect_s);
      s->result->left++;
    }
  s->kills = 0;
}

/* ---- setting up ---- */

static void draw_config(sim *s) {
  shoal_swarm_sim *c = &s->config;
  s->clean = one_in(s, 4);
  c->members = 1 + below(s, one_in(s, 4) ? 60 : 12);
  c->chunk_bytes = 1 << 20;
  c->bytes = (uint64_t)((one_in(s, 8) ? 20 : 2) * chance(s) * 20 * (1 << 20)) + 1;
  c->rate = between(s, s->clean ? 1e6 : 1e5, 1e8);
  c->server_rate = c->rate * (one_in(s, 2) ? 1 : between(s, 0.3, 10));
  c->latency_s = between(s, 1e-4, 0.2);
  c->slots = 1 + below(s, 6);
  c->neighbours = NEIGHBOURS_DEFAULT;
  c->pieces = 1 + below(s, 4);
  if (s->clean) {
    c->server_rate = fmin(c->server_rate, 2 * c->rate);
    return;
  }
  c->mixed = one_in(s, 3);
  c->churn = one_in(s, 2) ? chance(s) : 0;
  c->killed = one_in(s, 3) ? chance(s) * 0.9 : 0;
  c->corrupt = one_in(s, 2) ? chance(s) * 0.5 : 0;
  c->server_leaves = one_in(s, 2);
  s->lazy = one_in(s, 4);
  s->warm = one_in(s, 3);
  s->detect_s = one_in(s, 2) ? 0 : chance(s) * 10;
  if (!c->server_leaves) c->neighbours = 2 + below(s, NEIGHBOURS_DEFAULT);
  c->server_leaves = c->server_leaves && c->members < c->neighbours / 2;
}

static void set_defaults(sim *s) {
  shoal_swarm_sim *c = &s->config;
  s->clean = c->churn == 0 && c->killed == 0 && c->corrupt == 0 && !c->mixed;
  if (c->neighbours == 0) c->neighbours = NEIGHBOURS_DEFAULT;
  if (c->slots == 0) c->slots = SLOTS_DEFAULT;
  if (c->pieces == 0) c->pieces = PIECES_DEFAULT;
  if (c->server_rate == 0) c->server_rate = c->rate;
}

static void draw_rates(sim *s, member *m) {
  m->up = m->down = s->config.rate;
  double drawn = chance(s);
  for (int k = 0; s->config.mixed && k < SHOAL_SWARM_MIXES; k++) {
    m->up = shoal_swarm_mixes[k].up_bits_s / 8;
    m->down = shoal_swarm_mixes[k].down_bits_s / 8;
    if ((drawn -= shoal_swarm_mixes[k].share) < 0) break;
  }
}

/* The data must leave the server once, come to everybody, and be sent by somebody as often as it comes. */
static double bound_of(const sim *s) {
  double bytes = (double)s->config.bytes, least_down = INFINITY, up = s->config.server_rate;
  for (uint32_t i = 1; i <= s->config.members; i++) {
    least_down = fmin(least_down, s->members[i].down);
    up += s->members[i].up;
  }
  return fmax(bytes / s->config.server_rate, fmax(bytes / least_down, s->config.members * bytes / up));
}

static void set_up(sim *s) {
  const shoal_swarm_sim *c = &s->config;
  uint32_t joiners = (uint32_t)(c->churn * c->members);
  s->chunks = (uint32_t)((c->bytes + c->chunk_bytes - 1) / c->chunk_bytes);
  s->count = 1 + c->members + joiners;
  s->members = calloc(s->count, sizeof *s->members);
  s->copies = calloc(s->chunks, sizeof *s->copies);
  s->good = calloc(s->chunks, sizeof(shoal_blob *));
  SHOAL_ASSERT(s->members != NULL && s->copies != NULL && s->good != NULL);
  for (uint32_t k = 0; k < s->chunks; k++)
    s->good[k] = shoal_blob_of(&(uint64_t){content_of(k)}, sizeof(uint64_t));
  s->bad = shoal_blob_of(&(uint64_t){7}, sizeof(uint64_t));
  s->links = shoal_links_create(s->count, (double)c->chunk_bytes / c->pieces);
  for (uint32_t i = 0; i < s->count; i++) {
    member *m = &s->members[i];
    draw_rates(s, m);
    if (i == SERVER) m->up = m->down = c->server_rate;
    m->corrupt = i != SERVER && chance(s) < c->corrupt;
    m->unreachable = c->on_demand && i == 1;
    m->unreachable |= !s->clean && c->drawn && !c->server_leaves && one_in(s, 5);
    m->done_at = INFINITY;
    shoal_links_set(s->links, i, m->up, m->down, c->latency_s);
  }
  s->result->bound_s = bound_of(s);
}

static void plan_churn(sim *s) {
  const shoal_swarm_sim *c = &s->config;
  double span = s->result->bound_s;
  for (uint32_t i = c->members + 1; i < s->count; i++, s->to_come++)
    shoal_links_timer(s->links, i, span * chance(s), JOIN);
  for (uint32_t i = 1; c->churn > 0 && i <= c->members; i++)
    if (chance(s) < c->churn) {
      shoal_links_timer(s->links, i, span * chance(s), LEAVE);
      s->to_come++;
    }
  s->kills = c->killed > 0;
  if (s->kills) shoal_links_timer(s->links, SERVER, span * 0.5, KILL);
}

static void tear_down(sim *s) {
  for (uint32_t i = 0; i < s->count; i++) {
    shoal_swarm_destroy(s->members[i].core);
    free(s->members[i].kept);
    free(s->members[i].wants);
    free(s->members[i].near);
  }
  shoal_links_destroy(s->links);
  for (uint32_t k = 0; k < s->chunks; k++) shoal_blob_release(s->good[k]);
  shoal_blob_release(s->bad);
  free(s->good);
  free(s->members);
  free(s->copies);
}

/* ---- running ---- */

static void on_timer(sim *s, uint32_t i, timer what) {
  member *m = &s->members[i];
  switch (what) {
  case TICK:
    if (!m->alive || m->tick_at > now_of(s)) return;
    m->tick_at = INFINITY;
    shoal_swarm_tick(m->core, now_of(s));
    drain(s, i);
    return;
  case JOIN:
    s->to_come--;
    s->result->joined++;
    start(s, i);
    dial_some(s, i);
    break;
  case LEAVE:
    s->to_come--;
    if (m->alive) s->result->left++;
    die(s, i, s->detect_s);
    break;
  case NOTICE: notice(s, i); break;
  case DIAL:
    if (m->alive) dial_some(s, i);
    return;
  case KILL: kill_some(s); break;
  }
  consider_leaving(s);
}

static void on_event(sim *s, shoal_links_event *event) {
  double now = now_of(s);
  if (event->kind == SHOAL_LINKS_TIMER) {
    on_timer(s, event->to, (timer)event->what);
    return;
  }
  uint32_t i = event->kind == SHOAL_LINKS_SENT ? event->from : event->to;
  member *m = &s->members[i];
  if (!m->alive || m->core == NULL) {
    if (event->kind == SHOAL_LINKS_LETTER) shoal_message_release(&event->message);
    return;
  }
  if (event->kind == SHOAL_LINKS_SENT)
    shoal_swarm_sent(m->core, event->to + 1, now);
  else
    shoal_swarm_receive(m->core, event->from + 1, &event->message, now);
  drain(s, i);
}

static void check_memory(sim *s) {
  uint64_t pairs = (uint64_t)s->count * (s->config.neighbours + 1);
  if (shoal_links_waiting(s->links) > pairs * 2 * AHEAD)
    violate(s, SHOAL_SWARM_MEMORY, "%llu letters are under way between %u nodes",
            (unsigned long long)shoal_links_waiting(s->links), s->count);
}

static void run_peers(sim *s) {
  enum { LOOK_EVERY = 64 };
  fill_in(s, &s->members[SERVER]);
  s->members[SERVER].alive = true;
  for (uint32_t i = 1; i <= s->config.members; i++) start(s, i);
  for (uint32_t i = 1; s->config.way == SHOAL_SWARM_PEERS && i <= s->config.members; i++) dial_some(s, i);
  plan_churn(s);
  shoal_links_event event;
  for (uint64_t n = 0; (s->unfinished > 0 || s->to_come > 0) && s->result->violated == SHOAL_SWARM_WELL;
       n++) {
    if (!shoal_links_next(s->links, &event)) {
      violate(s, SHOAL_SWARM_COMPLETE, "%u members wait and nothing will ever happen", s->unfinished);
      return;
    }
    on_event(s, &event);
    if (n % LOOK_EVERY == 0) check_memory(s);
    if (now_of(s) > s->limit_s)
      violate(s, SHOAL_SWARM_COMPLETE, "%u members have not everything after %s", s->unfinished,
              shoal_human_seconds(now_of(s)).text);
  }
}

/* ---- the tree ---- */

/* Node i has the set after turn r, where 2^r is the first power above i, and then sends it to i + 2^r, i +
 * 2^(r+1) and so on. */
static void send_next(sim *s, uint32_t *turns, uint32_t i) {
  uint64_t to = i + ((uint64_t)1 << turns[i]++);
  if (to > s->config.members) return;
  s->result->messages++;
  if (i == SERVER) s->server_bytes += (double)s->config.bytes;
  shoal_links_send(s->links, i, (uint32_t)to, (shoal_message){.kind = SHOAL_MSG_CHUNK},
                   (double)s->config.bytes, true);
}

static void run_tree(sim *s) {
  uint32_t *turns = calloc(s->count, sizeof *turns);
  SHOAL_ASSERT(turns != NULL);
  s->unfinished = s->config.members;
  for (uint32_t i = 0; i <= s->config.members; i++) s->members[i].alive = true;
  send_next(s, turns, SERVER);
  shoal_links_event event;
  while (shoal_links_next(s->links, &event)) {
    if (event.kind == SHOAL_LINKS_SENT) {
      send_next(s, turns, event.from);
      continue;
    }
    while (event.to >> turns[event.to] != 0) turns[event.to]++;
    s->members[event.to].done_at = now_of(s);
    s->unfinished--;
    send_next(s, turns, event.to);
  }
  free(turns);
}

/* ---- what came of it ---- */

static void check_end(sim *s) {
  for (uint32_t i = 1; i < s->count && s->config.way != SHOAL_SWARM_TREE; i++) {
    member *m = &s->members[i];
    if (!m->alive || m->corrupt) continue;
    for (uint32_t c = 0; c < s->chunks; c++)
      if (wants(m, c) && (m->kept[c] != GOOD || !shoal_swarm_is_here(m->core, c)))
        violate(s, SHOAL_SWARM_COMPLETE, "member %u has not chunk %u at the end", i, c);
  }
  bool told =
      s->clean && s->config.way == SHOAL_SWARM_PEERS && s->chunks >= UPLOAD_CHUNKS && s->config.slots > 1;
  if (told && s->result->copies > 1.5 + 2.0 / s->chunks)
    violate(s, SHOAL_SWARM_UPLOAD, "the server has sent %.2f copies", s->result->copies);
}

static int compare_reals(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void sum_up(sim *s) {
  shoal_swarm_result *r = s->result;
  double *times = calloc(s->count, sizeof *times);
  SHOAL_ASSERT(times != NULL);
  r->members = s->config.members;
  r->chunks = s->chunks;
  r->copies = s->server_bytes / (double)s->config.bytes;
  for (uint32_t i = 0; i < s->count; i++) {
    const member *m = &s->members[i];
    r->sent_bytes += shoal_links_moved(s->links, i);
    if (i != SERVER && m->alive && !m->corrupt && m->done_at < INFINITY)
      times[r->finished++] = m->done_at - m->joined_at;
    if (m->core == NULL) continue;
    shoal_swarm_counts counts = shoal_swarm_count(m->core);
    r->twice += counts.twice;
    r->bad += counts.bad;
    r->late += counts.late;
    r->not_now += counts.not_now;
    r->strange += counts.strange;
  }
  qsort(times, r->finished, sizeof *times, compare_reals);
  if (r->finished > 0) {
    r->first_s = times[0];
    r->median_s = times[r->finished / 2];
    r->last_s = times[r->finished - 1];
  }
  free(times);
}

static void describe(sim *s) {
  const shoal_swarm_sim *c = &s->config;
  char faults[128] = "";
  snprintf(faults, sizeof faults, "%s%s%s%s%s%s", c->churn > 0 ? ", churn" : "",
           c->killed > 0 ? ", killed" : "", c->corrupt > 0 ? ", corrupt" : "",
           c->server_leaves ? ", server leaves" : "", s->lazy ? ", parts" : "",
           s->warm ? ", some there" : "");
  snprintf(s->result->what, sizeof s->result->what, "%u members, %u chunks, %s/s%s, %.1f ms, %u slots%s",
           c->members, s->chunks, shoal_human_bytes(c->rate).text, c->mixed ? " mixed" : "",
           c->latency_s * 1e3, c->slots, faults);
}

/* So long nothing takes that is not stuck: as if the server sent everything to everybody, many times over. */
static double limit_of(const sim *s) {
  if (!s->config.drawn)
    return 1000 +
           (100 + (s->config.way == SHOAL_SWARM_SERVER ? 3 * s->config.members : 0)) * s->result->bound_s;
  return 1000 +
         20 * (s->config.members + 1) * (double)s->config.bytes /
             fmin(s->config.server_rate, s->config.rate) +
         20 * s->result->bound_s;
}

void shoal_swarm_live(const shoal_swarm_sim *config, shoal_swarm_result *result) {
  *result = (shoal_swarm_result){0};
  sim s = {.config = *config,
           .result = result,
           .key = shoal_key_make(config->seed, SHOAL_FOR_SIMULATION, 0x5a, config->drawn)};
  if (config->drawn)
    draw_config(&s);
  else
    set_defaults(&s);
  SHOAL_ASSERT(s.config.members > 0 && s.config.members <= SHOAL_SWARM_MEMBERS_MAX && s.config.bytes > 0);
  set_up(&s);
  describe(&s);
  s.limit_s = limit_of(&s);
  if (config->way == SHOAL_SWARM_TREE)
    run_tree(&s);
  else
    run_peers(&s);
  sum_up(&s);
  check_end(&s);
  tear_down(&s);
}
