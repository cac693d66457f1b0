/* swarm.c: see swarm.h and swarm_internal.h: who is here, what is here, and what is told to whom. */
#include "proto/swarm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "proto/swarm_internal.h"

enum { PEERS_DEFAULT = 41, SLOTS_DEFAULT = 12, AHEAD_DEFAULT = 16, EVENTS_FIRST = 16 };
static const double patience_default_s = 5;
static const double have_default_s = 0.05;
static const double report_s = 0.25; /* the server hears of what is here at most so much later */
static const double look_s = 0.25;   /* late questions are looked for so often, */
enum { LOOKS_A_WAIT = 16 };          /* or so many times while one waits for an answer, when that is long */
/* Chunks that are told go into one message when there are at most so many between them: a header's worth. */
enum { GAP_MAX = 8 * SHOAL_HEADER_BYTES };

/* ---- create, destroy ---- */

static void set_defaults(shoal_swarm_config *c) {
  if (c->peers_max == 0) c->peers_max = PEERS_DEFAULT;
  if (c->slots == 0) c->slots = SLOTS_DEFAULT;
  if (c->ahead == 0) c->ahead = AHEAD_DEFAULT;
  if (c->patience_s == 0) c->patience_s = patience_default_s;
  if (c->have_s == 0) c->have_s = have_default_s;
}

static bool reserve(shoal_swarm *s) {
  size_t words = s->words, chunks = s->config.chunks;
  s->here = calloc(words, sizeof *s->here);
  s->holders = calloc(chunks, sizeof *s->holders);
  s->neighbours = calloc(s->config.peers_max, sizeof(shoal_swarm_neighbour *));
  s->events_size = EVENTS_FIRST;
  s->events = calloc(s->events_size, sizeof *s->events);
  if (s->here == NULL || s->holders == NULL || s->neighbours == NULL || s->events == NULL ||
      !shoal_places_init(&s->places, s->config.peers_max))
    return false;
  if (s->config.serves) {
    s->lacking = calloc(words, sizeof *s->lacking);
    s->given_at = calloc(chunks, sizeof *s->given_at);
    return s->lacking != NULL && s->given_at != NULL;
  }
  s->wanted = calloc(words, sizeof *s->wanted);
  s->urgent = calloc(words, sizeof *s->urgent);
  s->arrived = calloc(words, sizeof *s->arrived);
  s->open = calloc(words, sizeof *s->open);
  s->asked = calloc(chunks, sizeof *s->asked);
  s->fresh.chunks = calloc(chunks, sizeof *s->fresh.chunks);
  s->reports.chunks = calloc(chunks, sizeof *s->reports.chunks);
  return s->wanted != NULL && s->urgent != NULL && s->arrived != NULL && s->open != NULL &&
         s->asked != NULL && s->fresh.chunks != NULL && s->reports.chunks != NULL;
}

shoal_status shoal_swarm_create(shoal_swarm **out, const shoal_swarm_config *config, shoal_error *err) {
  *out = NULL;
  if (config->chunks == 0 || config->chunks > SHOAL_SWARM_CHUNKS_MAX)
    return shoal_fail(err, SHOAL_LIMIT, "a data set of %u chunks cannot be spread; it may have 1 to %d",
                      config->chunks, SHOAL_SWARM_CHUNKS_MAX);
  shoal_swarm *s = calloc(1, sizeof *s);
  if (s == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a swarm");
  s->config = *config;
  set_defaults(&s->config);
  SHOAL_ASSERT(s->config.ahead <= SHOAL_SWARM_AHEAD_MAX);
  s->words = (config->chunks + 63) / 64;
  s->refused_since = s->check_at = s->room_at = s->fresh.due = s->reports.due = INFINITY;
  s->fresh.told = s->reports.told = s->got_at = -INFINITY;
  if (!reserve(s)) {
    shoal_swarm_destroy(s);
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for a swarm of %u chunks", config->chunks);
  }
  for (uint32_t c = 0; config->serves && c < config->chunks; c++) {
    shoal_bit_set(s->here, c);
    shoal_swarm_lack(s, c, true);
  }
  if (config->serves) s->counts.here = config->chunks;
  if (config->wants_all) shoal_swarm_want_all(s, -INFINITY);
  *out = s;
  return SHOAL_OK;
}

static void free_neighbour(shoal_swarm_neighbour *n) {
  if (n == NULL) return;
  free(n->bits);
  free(n->asked);
  free(n->asks);
  free(n);
}

void shoal_swarm_destroy(shoal_swarm *s) {
  if (s == NULL) return;
  for (uint32_t i = 0; i < s->neighbours_count; i++) free_neighbour(s->neighbours[i]);
  shoal_swarm_event event;
  while (shoal_swarm_next(s, &event)) shoal_blob_release(event.payload);
  free(s->events);
  free(s->neighbours);
  free(s->here);
  free(s->holders);
  free(s->wanted);
  free(s->urgent);
  free(s->arrived);
  free(s->open);
  free(s->asked);
  free(s->fresh.chunks);
  free(s->reports.chunks);
  free(s->lacking);
  free(s->given_at);
  shoal_places_release(&s->places);
  shoal_outbox_release(&s->outbox);
  free(s);
}

/* ---- letters and events ---- */

shoal_outbox *shoal_swarm_outbox(shoal_swarm *s) { return &s->outbox; }

void shoal_swarm_say(shoal_swarm *s, const shoal_swarm_neighbour *to, shoal_message message) {
  shoal_outbox_put(&s->outbox, to->id, message);
}

/* Events are as many as there are answers, slots and bad peers: a driver that takes them keeps the ring
 * small. */
void shoal_swarm_tell(shoal_swarm *s, shoal_swarm_event event) {
  if (s->events_count == s->events_size) {
    shoal_swarm_event *events = calloc(2 * (size_t)s->events_size, sizeof *events);
    SHOAL_ASSERT(events != NULL);
    for (uint32_t i = 0; i < s->events_count; i++)
      events[i] = s->events[(s->events_first + i) % s->events_size];
    free(s->events);
    s->events = events;
    s->events_size *= 2;
    s->events_first = 0;
  }
  s->events[(s->events_first + s->events_count++) % s->events_size] = event;
}

bool shoal_swarm_next(shoal_swarm *s, shoal_swarm_event *out) {
  if (s->events_count == 0) return false;
  *out = s->events[s->events_first];
  s->events_first = (s->events_first + 1) % s->events_size;
  s->events_count--;
  return true;
}

/* ---- telling what is here ---- */

void shoal_swarm_say_one(shoal_swarm *s, const shoal_swarm_neighbour *to, uint32_t chunk) {
  shoal_swarm_say(s, to, (shoal_message){.kind = SHOAL_MSG_HAVE, .shard = chunk, .count = 1});
}

/* One HAVE for chunks first .. last, of which those in the list are here. */
static void say_run(shoal_swarm *s, const shoal_swarm_neighbour *to, const uint32_t *chunks, uint32_t count) {
  uint32_t first = chunks[0], span = chunks[count - 1] - first + 1;
  shoal_message m = {.kind = SHOAL_MSG_HAVE, .shard = first, .count = span};
  if (span > count) {
    m.payload = shoal_blob_create((span + 7) / 8);
    SHOAL_ASSERT(m.payload != NULL);
    uint8_t *bytes = shoal_blob_bytes(m.payload);
    memset(bytes, 0, (span + 7) / 8);
    for (uint32_t i = 0; i < count; i++)
      bytes[(chunks[i] - first) / 8] |= (uint8_t)(1u << ((chunks[i] - first) % 8));
  }
  shoal_swarm_say(s, to, m);
}

/* The list is in order. Who has a chunk need not hear that another has it; the server wants to know. */
static void say_list(shoal_swarm *s, const shoal_swarm_neighbour *to, const uint32_t *list, uint32_t count) {
  enum { RUN_MAX = 1024 };
  uint32_t run[RUN_MAX], length = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t c = list[i];
    if (!to->is_server && shoal_bit(to->bits, c)) continue;
    if (length > 0 && (length == RUN_MAX || c - run[length - 1] > GAP_MAX)) {
      say_run(s, to, run, length);
      length = 0;
    }
    run[length++] = c;
  }
  if (length > 0) say_run(s, to, run, length);
}

static int compare_chunks(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static void flush(shoal_swarm *s, shoal_swarm_fresh *fresh, bool to_server, double now) {
  qsort(fresh->chunks, fresh->count, sizeof *fresh->chunks, compare_chunks);
  for (uint32_t i = 0; i < s->neighbours_count; i++)
    if (s->neighbours[i]->is_server == to_server) say_list(s, s->neighbours[i], fresh->chunks, fresh->count);
  fresh->count = 0;
  fresh->due = INFINITY;
  fresh->told = now;
}

/* At once when nothing was told for a while. */
static void add_fresh(shoal_swarm_fresh *fresh, uint32_t chunk, double pause_s, double now) {
  fresh->chunks[fresh->count++] = chunk;
  fresh->due = fmin(fresh->due, fmax(now, fresh->told + pause_s));
}

/* All that is here, to a new neighbour. */
static void say_all(shoal_swarm *s, const shoal_swarm_neighbour *to) {
  uint32_t chunks = s->config.chunks;
  if (s->counts.here == 0) return;
  shoal_message m = {.kind = SHOAL_MSG_HAVE, .shard = 0, .count = chunks};
  if (s->counts.here < chunks) {
    m.payload = shoal_blob_create((chunks + 7) / 8);
    SHOAL_ASSERT(m.payload != NULL);
    for (uint32_t i = 0; i < (chunks + 7) / 8; i++)
      shoal_blob_bytes(m.payload)[i] = (uint8_t)(s->here[i / 8] >> (i % 8 * 8));
  }
  shoal_swarm_say(s, to, m);
}

/* ---- neighbours ---- */

shoal_swarm_neighbour *shoal_swarm_find(const shoal_swarm *s, uint64_t peer) {
  uint32_t place;
  return peer != 0 && shoal_places_get(&s->places, peer, &place) ? s->neighbours[place] : NULL;
}

static shoal_swarm_neighbour *new_neighbour(const shoal_swarm *s) {
  shoal_swarm_neighbour *n = calloc(1, sizeof *n);
  if (n == NULL) return NULL;
  n->bits = calloc(s->words, sizeof *n->bits);
  n->asks = calloc(s->config.ahead, sizeof *n->asks);
  if (!s->config.serves) n->asked = calloc(s->config.ahead, sizeof *n->asked);
  if (n->bits != NULL && n->asks != NULL && (s->config.serves || n->asked != NULL)) return n;
  free_neighbour(n);
  return NULL;
}

bool shoal_swarm_join(shoal_swarm *s, uint64_t peer, bool is_server, double now) {
  if (peer == 0 || s->neighbours_count == s->config.peers_max || shoal_swarm_find(s, peer) != NULL)
    return false;
  shoal_swarm_neighbour *n = new_neighbour(s);
  if (n == NULL) return false;
  n->id = peer;
  n->is_server = is_server;
  shoal_places_put(&s->places, peer, s->neighbours_count);
  s->neighbours[s->neighbours_count++] = n;
  s->counts.peers++;
  if (!is_server) s->usable++;
  say_all(s, n);
  if (is_server) s->refused_since = INFINITY;
  if (is_server) shoal_swarm_ask(s, n, now);
  return true;
}

static void holder(shoal_swarm *s, uint32_t chunk, bool more) {
  s->holders[chunk] += more ? 1 : -1u;
  s->held += more ? 1 : -1ull;
  if (s->config.serves && s->holders[chunk] <= 1) shoal_swarm_lack(s, chunk, s->holders[chunk] == 0);
}

/* It counts no more among those who have something. */
static void discount(shoal_swarm *s, shoal_swarm_neighbour *n) {
  if (n->is_server || n->bad) return;
  s->usable--;
  for (uint32_t w = 0; w < s->words; w++)
    for (uint64_t bits = n->bits[w]; bits != 0; bits &= bits - 1)
      holder(s, w * 64 + (uint32_t)__builtin_ctzll(bits), false);
}

void shoal_swarm_leave(shoal_swarm *s, uint64_t peer, double now) {
  shoal_swarm_neighbour *n = shoal_swarm_find(s, peer);
  if (n == NULL) return;
  uint32_t place;
  SHOAL_ASSERT(shoal_places_get(&s->places, peer, &place));
  shoal_places_remove(&s->places, peer);
  s->neighbours[place] = s->neighbours[--s->neighbours_count];
  if (place < s->neighbours_count) shoal_places_put(&s->places, s->neighbours[place]->id, place);
  s->counts.peers--;
  discount(s, n);
  if (!s->config.serves) shoal_swarm_drop_questions(s, n);
  shoal_swarm_stop_giving(s, n, now);
  free_neighbour(n);
  if (!s->config.serves) shoal_swarm_ask_all(s, now);
}

/* ---- what is here and wanted ---- */

bool shoal_swarm_is_here(const shoal_swarm *s, uint32_t chunk) {
  return chunk < s->config.chunks && shoal_bit(s->here, chunk);
}

void shoal_swarm_set_here(shoal_swarm *s, uint32_t chunk, double now) {
  if (shoal_bit(s->here, chunk)) return;
  shoal_swarm_close(s, chunk);
  shoal_bit_set(s->here, chunk);
  s->counts.here++;
  if (shoal_bit(s->wanted, chunk)) s->counts.wanted--;
  shoal_bit_clear(s->wanted, chunk);
  if (shoal_bit(s->urgent, chunk)) s->urgent_count--;
  shoal_bit_clear(s->urgent, chunk);
  add_fresh(&s->fresh, chunk, s->config.have_s, now);
  add_fresh(&s->reports, chunk, s->counts.wanted > 0 ? report_s : 0, now);
  shoal_swarm_take_back(s, chunk, now);
}

void shoal_swarm_has(shoal_swarm *s, uint32_t chunk, double now) {
  if (s->config.serves || chunk >= s->config.chunks) return;
  shoal_swarm_set_here(s, chunk, now);
}

/* Wants come in rows, so what follows from them is left to the next tick. */
void shoal_swarm_want(shoal_swarm *s, uint32_t chunk, bool urgent, double now) {
  if (s->config.serves || chunk >= s->config.chunks || shoal_bit(s->here, chunk)) return;
  if (urgent && !shoal_bit(s->urgent, chunk)) {
    shoal_bit_set(s->urgent, chunk);
    s->urgent_count++;
    s->check_at = now;
  }
  if (shoal_bit(s->wanted, chunk)) return;
  shoal_bit_set(s->wanted, chunk);
  s->counts.wanted++;
  shoal_swarm_open(s, chunk);
  s->check_at = now;
}

void shoal_swarm_want_all(shoal_swarm *s, double now) {
  if (s->config.serves) return;
  s->config.wants_all = true;
  for (uint32_t c = 0; c < s->config.chunks; c++) shoal_swarm_want(s, c, false, now);
}

/* ---- what comes ---- */

/* Those of a word's chunks of which this was not known. */
static void take_bits(shoal_swarm *s, shoal_swarm_neighbour *n, uint32_t word, uint64_t said) {
  for (uint64_t bits = said & ~n->bits[word]; bits != 0; bits &= bits - 1) {
    n->has++;
    if (!n->is_server && !n->bad) holder(s, word * 64 + (uint32_t)__builtin_ctzll(bits), true);
  }
  n->bits[word] |= said;
}

/* Word by word, so that a small message that says much costs little. */
static void take_run(shoal_swarm *s, shoal_swarm_neighbour *n, uint32_t first, uint32_t end) {
  for (uint32_t w = first / 64; w <= (end - 1) / 64; w++) {
    uint64_t said = UINT64_MAX;
    if (w == first / 64) said &= UINT64_MAX << first % 64;
    if (w == (end - 1) / 64) said &= UINT64_MAX >> (63 - (end - 1) % 64);
    take_bits(s, n, w, said);
  }
}

static void take_have(shoal_swarm *s, shoal_swarm_neighbour *n, const shoal_message *m, double now) {
  uint64_t end = (uint64_t)m->shard + m->count;
  bool listed = m->payload != NULL;
  if (m->count == 0 || end > s->config.chunks ||
      (listed && shoal_blob_length(m->payload) != ((size_t)m->count + 7) / 8)) {
    s->counts.strange++;
    return;
  }
  const uint8_t *bytes = listed ? shoal_blob_bytes(m->payload) : NULL;
  for (uint32_t i = 0; listed && i < m->count; i++)
    if (bytes[i / 8] >> (i % 8) & 1) take_bits(s, n, (m->shard + i) / 64, (uint64_t)1 << (m->shard + i) % 64);
  if (!listed) take_run(s, n, m->shard, (uint32_t)end);
  shoal_swarm_forget_asks(s, n, m);
  if (!s->config.serves) shoal_swarm_ask(s, n, now);
}

void shoal_swarm_receive(shoal_swarm *s, uint64_t peer, shoal_message *m, double now) {
  shoal_swarm_neighbour *n = shoal_swarm_find(s, peer);
  if (n != NULL && m->kind == SHOAL_MSG_HAVE)
    take_have(s, n, m, now);
  else if (n != NULL && m->kind == SHOAL_MSG_WANT)
    shoal_swarm_asked(s, n, m, now);
  else if (n != NULL && m->kind == SHOAL_MSG_CHUNK && !s->config.serves)
    shoal_swarm_answered(s, n, m, now);
  else
    s->counts.strange++;
  shoal_message_release(m);
}

void shoal_swarm_distrust(shoal_swarm *s, uint64_t peer) {
  shoal_swarm_neighbour *n = shoal_swarm_find(s, peer);
  if (n == NULL || n->bad) return;
  discount(s, n);
  n->bad = true;
  shoal_swarm_drop_questions(s, n);
}

void shoal_swarm_expose(shoal_swarm *s, uint64_t peer, uint32_t chunk) {
  s->counts.bad++;
  shoal_swarm_tell(s, (shoal_swarm_event){.kind = SHOAL_SWARM_BAD, .peer = peer, .chunk = chunk});
  shoal_swarm_distrust(s, peer);
}

void shoal_swarm_checked(shoal_swarm *s, uint64_t peer, uint32_t chunk, bool good, double now) {
  if (s->config.serves || chunk >= s->config.chunks || !shoal_bit(s->arrived, chunk)) return;
  shoal_bit_clear(s->arrived, chunk);
  s->arrived_count--;
  if (good) {
    shoal_swarm_set_here(s, chunk, now);
    shoal_swarm_neighbour *n = shoal_swarm_find(s, peer);
    if (n != NULL) shoal_swarm_ask(s, n, now);
    return;
  }
  shoal_swarm_expose(s, peer, chunk);
  if (s->asked[chunk] == 0) shoal_swarm_open(s, chunk);
  shoal_swarm_ask_all(s, now);
}

/* ---- time ---- */

void shoal_swarm_tick(shoal_swarm *s, double now) {
  if (now >= s->fresh.due) flush(s, &s->fresh, false, now);
  if (now >= s->reports.due) flush(s, &s->reports, true, now);
  if (now >= s->room_at) shoal_swarm_pump(s, now);
  if (now < s->check_at) return;
  double pause_s = s->urgent_count > 0 ? look_s : fmax(look_s, s->wait_s / LOOKS_A_WAIT);
  s->check_at = s->counts.wanted > 0 ? now + pause_s : INFINITY;
  shoal_swarm_check_late(s, now);
  shoal_swarm_ask_all(s, now);
}

double shoal_swarm_next_tick(const shoal_swarm *s) {
  return fmin(fmin(s->check_at, s->room_at), fmin(s->fresh.due, s->reports.due));
}

/* ---- reports ---- */

shoal_swarm_counts shoal_swarm_count(const shoal_swarm *s) {
  shoal_swarm_counts counts = s->counts;
  counts.giving = s->giving;
  return counts;
}

bool shoal_swarm_peer_at(const shoal_swarm *s, uint32_t index, shoal_swarm_peer *out) {
  if (index >= s->neighbours_count) return false;
  const shoal_swarm_neighbour *n = s->neighbours[index];
  *out = (shoal_swarm_peer){.peer = n->id,
                            .is_server = n->is_server,
                            .bad = n->bad,
                            .has = n->has,
                            .asked = n->asked_count,
                            .asks = n->asks_count,
                            .got_bytes = n->got_bytes,
                            .given_bytes = n->given_bytes};
  return true;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bits of words are read as bits of bytes");

const uint8_t *shoal_swarm_bits(const shoal_swarm *s, uint64_t peer) {
  if (peer == 0) return (const uint8_t *)s->here;
  const shoal_swarm_neighbour *n = shoal_swarm_find(s, peer);
  return n != NULL ? (const uint8_t *)n->bits : NULL;
}
