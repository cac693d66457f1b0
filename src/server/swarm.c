/* swarm.c: see swarm.h.
 *
 * A connection that was let in is a member from the start, but takes no part before its HELLO: until then the
 * core does not know it, and nobody is told of it. */
#include "server/swarm.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/secret.h"
#include "cluster/node.h"
#include "cluster/swarm_words.h"
#include "proto/swarm.h"
#include "wire/link.h"

enum {
  BUCKETS = 1024,
  MEMBERS_MAX = 4000,
  SLOTS = 8,                               /* members that are sent a chunk at the same time */
  READS_MAX = 16,                          /* chunks that are being read, of all swarms */
  SENT_BYTES = 256 << 10,                  /* no more than this waits: the next chunk may come */
  CHOSEN = SHOAL_SWARM_NEIGHBOURS_MAX / 2, /* for a newcomer to a large swarm; others come to it */
  FEW = 8,                                 /* with fewer it gets more */
  BLAMES_MAX = 2,
  CELLS_MAX = 100,
  MEMBERS_WRITTEN = 200,
  FLOWS_MAX = MEMBERS_WRITTEN * (SHOAL_SWARM_NEIGHBOURS_MAX + 2), /* all that these report, and ours */
  FLOWS_WRITTEN = 2000,
};
static const double TELL_S = 0.1, BEAT_S = 5, SILENT_S = 30, KEPT_S = 600, NEVER_S = 3600;

typedef struct member {
  struct member *next;  /* in its swarm */
  struct member *chain; /* in the table by connection */
  struct swarm *swarm;
  struct member *next_sending;
  bool sending; /* in the swarm's list of these */
  uint64_t peer, id;
  uint64_t person; /* behind it: the same in all its connections */
  bool here;       /* has said HELLO */
  bool untold;     /* its neighbours have changed */
  shoal_swarm_hello says;
  char observed[SHOAL_SWARM_HOST_MAX];
  struct member *neighbours[SHOAL_SWARM_NEIGHBOURS_MAX];
  uint32_t neighbours_count;
  uint64_t blamed_by[BLAMES_MAX]; /* people */
  uint32_t blames;
  shoal_swarm_report report;
  double said;
} member;

/* A chunk that is to be read and given: in its swarm's queue, then in `reading`. */
typedef struct give {
  struct give *next;
  struct swarm *swarm; /* NULL: it is gone, and nobody wants the chunk any more */
  uint64_t ticket;
  uint64_t peer, question;
  uint32_t chunk;
} give;

typedef struct swarm {
  struct swarm *next;
  char *set;
  uint64_t job; /* private; or 0 */
  uint64_t id;  /* of the set's content */
  bool is_retired;
  shoal_manifest manifest;
  shoal_swarm *core;
  member *members;
  uint32_t count;
  member *sending; /* the core waits for shoal_swarm_sent of these */
  give *gives, **gives_end;
  double empty_since;
  uint64_t received; /* reported by those who are gone */
} swarm;

struct shoal_swarms {
  shoal_net *net;
  shoal_swarms_calls calls;
  swarm *swarms;
  member *members[BUCKETS];
  give *reading; /* at most READS_MAX */
  uint32_t reading_count;
  uint64_t serial, tickets, draws, sent, received;
  shoal_secret secret;
  shoal_key key;
  double next_tell;
};

/* ---- members ---- */

static member **place_of(shoal_swarms *s, uint64_t peer) {
  member **at = &s->members[peer % BUCKETS];
  while (*at != NULL && (*at)->peer != peer) at = &(*at)->chain;
  return at;
}

static member *find_peer(const shoal_swarms *s, uint64_t peer) {
  member *m = s->members[peer % BUCKETS];
  while (m != NULL && m->peer != peer) m = m->chain;
  return m;
}

static member *find_id(const swarm *w, uint64_t id) {
  member *m = w->members;
  while (m != NULL && m->id != id) m = m->next;
  return m;
}

static bool are_neighbours(const member *a, const member *b) {
  for (uint32_t i = 0; i < a->neighbours_count; i++)
    if (a->neighbours[i] == b) return true;
  return false;
}

static void remove_neighbour(member *a, const member *b) {
  for (uint32_t i = 0; i < a->neighbours_count; i++) {
    if (a->neighbours[i] != b) continue;
    a->neighbours[i] = a->neighbours[--a->neighbours_count];
    a->untold = true;
    return;
  }
}

static void isolate(member *m) {
  for (uint32_t i = 0; i < m->neighbours_count; i++) remove_neighbour(m->neighbours[i], m);
  m->neighbours_count = 0;
  m->untold = true;
}

static bool was_blamed_by(const member *who, const member *by) {
  for (uint32_t i = 0; i < who->blames; i++)
    if (who->blamed_by[i] == by->person) return true;
  return false;
}

static bool may_be_neighbours(const member *a, const member *b) {
  bool blamed =
      a->blames >= BLAMES_MAX || b->blames >= BLAMES_MAX || was_blamed_by(a, b) || was_blamed_by(b, a);
  return a != b && a->here && b->here && !blamed && a->says.port != 0 && b->says.port != 0 &&
         a->neighbours_count < SHOAL_SWARM_NEIGHBOURS_MAX &&
         b->neighbours_count < SHOAL_SWARM_NEIGHBOURS_MAX && !are_neighbours(a, b);
}

/* One at random of those that could be a's neighbours; NULL: there is none. */
static member *draw(shoal_swarms *s, const swarm *w, const member *a) {
  member *drawn = NULL;
  uint64_t seen = 0;
  for (member *b = w->members; b != NULL; b = b->next)
    if (may_be_neighbours(a, b) && shoal_random_below(s->key, s->draws++, ++seen) == 0) drawn = b;
  return drawn;
}

static void choose_neighbours(shoal_swarms *s, swarm *w, member *a) {
  uint32_t wanted = w->count <= SHOAL_SWARM_NEIGHBOURS_MAX ? SHOAL_SWARM_NEIGHBOURS_MAX : CHOSEN;
  while (a->neighbours_count < wanted) {
    member *b = draw(s, w, a);
    if (b == NULL) return;
    a->neighbours[a->neighbours_count++] = b;
    b->neighbours[b->neighbours_count++] = a;
    a->untold = b->untold = true;
  }
}

/* ---- what is told ---- */

static void say(shoal_swarms *s, member *m, shoal_message message, double now) {
  m->said = now;
  shoal_net_send(s->net, m->peer, message);
}

/* The same for both of them, and known to nobody else. */
static uint64_t key_of(const shoal_swarms *s, uint64_t a, uint64_t b) {
  uint64_t pair[2] = {a < b ? a : b, a < b ? b : a};
  return shoal_secret_number(&s->secret, pair, sizeof pair);
}

static bool is_loopback(const char *host) {
  return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

/* Where `to` may find `of`: where it came from; and where it says it is, when both came from one place, and
 * so may be in one house. Else anybody could have others dial whomever it likes. */
static void add_addresses(shoal_swarm_contact *out, const member *of, const member *to) {
  bool together = strcmp(of->observed, to->observed) == 0;
  bool elsewhere = of->says.address[0] != 0 && strcmp(of->says.address, of->observed) != 0;
  if (together && elsewhere)
    shoal_swarm_address(out->addresses[out->addresses_count++], of->says.address, of->says.port);
  if (shoal_link_is_numeric(of->observed) && (together || !is_loopback(of->observed)))
    shoal_swarm_address(out->addresses[out->addresses_count++], of->observed, of->says.port);
}

static void tell_peers(shoal_swarms *s, member *m, double now) {
  shoal_swarm_contacts *peers = calloc(1, sizeof *peers);
  if (peers == NULL) return;
  peers->you = m->id;
  for (uint32_t i = 0; i < m->neighbours_count; i++) {
    const member *other = m->neighbours[i];
    shoal_swarm_contact *n = &peers->list[peers->count++];
    n->id = other->id;
    n->key = key_of(s, m->id, other->id);
    snprintf(n->name, sizeof n->name, "%s", other->says.name);
    snprintf(n->fingerprint, sizeof n->fingerprint, "%s", other->says.fingerprint);
    add_addresses(n, other, m);
  }
  shoal_text text = {0};
  shoal_swarm_contacts_write(peers, &text);
  if (!text.failed) {
    const shoal_message message = {.kind = SHOAL_MSG_PEERS,
                                   .payload = shoal_blob_of(text.bytes, text.length)};
    say(s, m, message, now);
    m->untold = false;
  }
  shoal_text_release(&text);
  free(peers);
}

/* ---- swarms ---- */

static swarm *find_swarm(const shoal_swarms *s, const char *set, uint64_t job) {
  swarm *w = s != NULL ? s->swarms : NULL;
  while (w != NULL && (w->is_retired || w->job != job || strcmp(w->set, set) != 0)) w = w->next;
  return w;
}

static void free_gives(give *first) {
  for (give *g = first, *next; g != NULL; g = next) {
    next = g->next;
    free(g);
  }
}

static void destroy_swarm(swarm *w) {
  free_gives(w->gives);
  shoal_swarm_destroy(w->core);
  shoal_manifest_release(&w->manifest);
  free(w->set);
  free(w);
}

static shoal_status open_swarm(shoal_swarms *s, swarm *w, shoal_error *err) {
  char id[SHOAL_SHA256_HEX];
  shoal_status status = s->calls.manifest(s->calls.self, w->set, &w->manifest, err);
  if (status != SHOAL_OK) return status;
  if (w->manifest.chunks_count == 0 || w->manifest.chunks_count > SHOAL_SWARM_CHUNKS_MAX)
    return shoal_fail(err, SHOAL_NOT_FOUND, "%s has no chunks to be fetched", w->set);
  shoal_manifest_id(&w->manifest, id);
  w->id = shoal_swarm_set_of(id);
  const shoal_swarm_config config = {.chunks = (uint32_t)w->manifest.chunks_count,
                                     .chunk_bytes = SHOAL_CHUNK_BYTES,
                                     .serves = true,
                                     .peers_max = MEMBERS_MAX,
                                     .slots = SLOTS,
                                     .seed = w->id};
  return shoal_swarm_create(&w->core, &config, err);
}

static swarm *create_swarm(shoal_swarms *s, const char *set, uint64_t job, int *refused) {
  swarm *w = calloc(1, sizeof *w);
  shoal_error err = {0};
  *refused = 503;
  if (w == NULL) return NULL;
  w->job = job;
  w->gives_end = &w->gives;
  w->set = strdup(set);
  shoal_status status = w->set != NULL ? open_swarm(s, w, &err) : SHOAL_NO_MEMORY;
  if (status != SHOAL_OK) {
    *refused = status == SHOAL_NOT_FOUND ? 404 : 503;
    destroy_swarm(w);
    return NULL;
  }
  w->next = s->swarms;
  s->swarms = w;
  return w;
}

static void forget_swarm(shoal_swarms *s, swarm *w) {
  swarm **at = &s->swarms;
  while (*at != w) at = &(*at)->next;
  *at = w->next;
  for (give *g = s->reading; g != NULL; g = g->next)
    if (g->swarm == w) g->swarm = NULL;
  destroy_swarm(w);
}

/* Nobody finds it under its name any more; it goes when its members have left. */
static void retire(shoal_swarms *s, swarm *w) {
  w->is_retired = true;
  for (member *m = w->members; m != NULL; m = m->next)
    shoal_net_close(s->net, m->peer, "the data set is deleted");
}

void shoal_swarms_forget(shoal_swarms *s, const char *set) {
  for (swarm *w = s->swarms; w != NULL; w = w->next)
    if (!w->is_retired && strcmp(w->set, set) == 0) retire(s, w);
}

/* ---- who comes and goes ---- */

int shoal_swarms_admit(shoal_swarms *s, uint64_t peer, const char *set, uint64_t job, const char *address) {
  int refused = 0;
  swarm *w = find_swarm(s, set, job);
  if (w == NULL) w = create_swarm(s, set, job, &refused);
  if (w == NULL) return refused;
  member *m = w->count < MEMBERS_MAX ? calloc(1, sizeof *m) : NULL;
  if (m == NULL) return 503;
  m->swarm = w;
  m->peer = peer;
  m->id = ++s->serial;
  snprintf(m->observed, sizeof m->observed, "%s", address);
  m->next = w->members;
  w->members = m;
  w->count++;
  m->chain = s->members[peer % BUCKETS];
  s->members[peer % BUCKETS] = m;
  return 0;
}

static uint64_t received_by(const member *m) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < m->report.count; i++) bytes += m->report.from[i].bytes;
  return bytes;
}

static void forget_sending(swarm *w, const member *m) {
  member **at = &w->sending;
  while (*at != m) at = &(*at)->next_sending;
  *at = m->next_sending;
}

void shoal_swarms_closed(shoal_swarms *s, uint64_t peer) {
  member **at = place_of(s, peer), *m = *at;
  if (m == NULL) return;
  *at = m->chain;
  swarm *w = m->swarm;
  isolate(m);
  member **link = &w->members;
  while (*link != m) link = &(*link)->next;
  *link = m->next;
  w->count--;
  if (m->sending) forget_sending(w, m);
  w->received += received_by(m);
  double now = shoal_clock_seconds();
  if (m->here) shoal_swarm_leave(w->core, peer, now);
  w->empty_since = now;
  free(m);
}

/* ---- what members say ---- */

static void refuse(shoal_swarms *s, member *m, const char *why) {
  shoal_net_send(s->net, m->peer, shoal_node_refuse(why));
  shoal_net_close(s->net, m->peer, why);
}

static void hear_hello(shoal_swarms *s, member *m, const shoal_message *message, const char *name,
                       uint64_t person, double now) {
  size_t length;
  shoal_error err;
  const char *text = shoal_node_payload(message, &length);
  if (m->here) return;
  if (message->count != SHOAL_ROLE_PEER || message->round != m->swarm->id) {
    refuse(s, m, "the data set has changed; begin anew");
  } else if (shoal_swarm_hello_read(&m->says, text, length, &err) != SHOAL_OK) {
    refuse(s, m, err.text);
  } else if (!shoal_swarm_join(m->swarm->core, m->peer, false, now)) {
    refuse(s, m, "too many fetch this data");
  } else {
    if (name != NULL) shoal_text_plain(m->says.name, sizeof m->says.name, name, strlen(name));
    m->person = person != 0 ? person : m->id;
    m->here = m->untold = true;
    choose_neighbours(s, m->swarm, m);
  }
}

static void hear_report(shoal_swarms *s, member *m, const shoal_message *message) {
  size_t length;
  shoal_swarm_report said;
  const char *text = shoal_node_payload(message, &length);
  if (shoal_swarm_report_read(&said, text, length, NULL) != SHOAL_OK) return;
  for (uint32_t i = 0; i < said.count; i++) /* nobody gets more than all from anybody */
    if (said.from[i].bytes > m->swarm->manifest.bytes) said.from[i].bytes = m->swarm->manifest.bytes;
  uint64_t before = received_by(m);
  m->report = said;
  uint64_t after = received_by(m);
  if (after > before) s->received += after - before;
}

/* Blamed by enough others, it is named to nobody any more; they have left it by themselves. */
static void hear_blame(shoal_swarms *s, member *by, const shoal_message *message) {
  member *who = find_id(by->swarm, message->lease);
  if (who == NULL || !are_neighbours(who, by)) return;
  remove_neighbour(who, by);
  remove_neighbour(by, who);
  if (was_blamed_by(who, by)) return;
  s->calls.blamed(s->calls.self, by->swarm->set, who->says.name, by->says.name, message->shard);
  if (who->blames < BLAMES_MAX) who->blamed_by[who->blames++] = by->person;
  if (who->blames < BLAMES_MAX) return;
  isolate(who);
  shoal_swarm_distrust(who->swarm->core, who->peer);
}

static void hear(shoal_swarms *s, member *m, shoal_message *message, const char *name, uint64_t person,
                 double now) {
  if (message->kind == SHOAL_MSG_HELLO)
    hear_hello(s, m, message, name, person, now);
  else if (!m->here)
    shoal_net_close(s->net, m->peer, "expected HELLO");
  else if (message->kind == SHOAL_MSG_REPORT)
    hear_report(s, m, message);
  else if (message->kind == SHOAL_MSG_BLAME)
    hear_blame(s, m, message);
  else
    shoal_swarm_receive(m->swarm->core, m->peer, message, now);
}

void shoal_swarms_received(shoal_swarms *s, uint64_t peer, shoal_message *message, const char *name,
                           uint64_t person) {
  member *m = find_peer(s, peer);
  if (m != NULL) hear(s, m, message, name, person, shoal_clock_seconds());
  shoal_message_release(message);
}

/* ---- what the core wants ---- */

static void queue_give(swarm *w, const shoal_swarm_event *e, double now) {
  give *g = calloc(1, sizeof *g);
  if (g == NULL) {
    shoal_swarm_give(w->core, e->peer, e->question, e->chunk, NULL, now);
    return;
  }
  *g = (give){.swarm = w, .peer = e->peer, .question = e->question, .chunk = e->chunk};
  *w->gives_end = g;
  w->gives_end = &g->next;
}

static const char *hash_of(const swarm *w, uint32_t chunk) {
  for (uint32_t f = 0; f < w->manifest.files_count; f++) {
    const shoal_manifest_file *file = &w->manifest.files[f];
    if (chunk < file->first_chunk + file->chunks_count) return file->chunks[chunk - file->first_chunk];
  }
  return "";
}

static void note_sending(swarm *w, member *m) {
  if (m->sending) return;
  m->sending = true;
  m->next_sending = w->sending;
  w->sending = m;
}

/* The chunk was read, or cannot be. */
static void hand_over(shoal_swarms *s, const give *g, shoal_blob *chunk, double now) {
  member *m = find_peer(s, g->peer);
  if (chunk != NULL && m != NULL) {
    note_sending(g->swarm, m);
    s->sent += shoal_blob_length(chunk);
  }
  shoal_swarm_give(g->swarm->core, g->peer, g->question, g->chunk, chunk, now);
}

void shoal_swarms_take(shoal_swarms *s, uint64_t ticket, shoal_blob *chunk) {
  give **at = &s->reading;
  while (*at != NULL && (*at)->ticket != ticket) at = &(*at)->next;
  give *g = *at;
  if (g == NULL || g->swarm == NULL)
    shoal_blob_release(chunk);
  else
    hand_over(s, g, chunk, shoal_clock_seconds());
  if (g == NULL) return;
  *at = g->next;
  s->reading_count--;
  free(g);
}

/* Has the first of the queue read; false: that cannot be now. */
static bool read_first(shoal_swarms *s, swarm *w) {
  give *g = w->gives;
  w->gives = g->next;
  if (w->gives == NULL) w->gives_end = &w->gives;
  g->ticket = ++s->tickets;
  g->next = s->reading;
  s->reading = g;
  s->reading_count++;
  if (s->calls.read(s->calls.self, hash_of(w, g->chunk), g->ticket)) return true;
  s->reading = g->next;
  s->reading_count--;
  g->next = w->gives;
  if (w->gives == NULL) w->gives_end = &g->next;
  w->gives = g;
  return false;
}

/* False: some are left, and cannot be read now. */
static bool serve_gives(shoal_swarms *s, swarm *w) {
  bool goes_on = true;
  while (w->gives != NULL && s->reading_count < READS_MAX && goes_on) goes_on = read_first(s, w);
  return goes_on && s->reading_count < READS_MAX;
}

static void follow_core(shoal_swarms *s, swarm *w, double now) {
  shoal_swarm_event e;
  while (shoal_swarm_next(w->core, &e)) {
    if (e.kind == SHOAL_SWARM_GIVE)
      queue_give(w, &e, now);
    else
      shoal_blob_release(e.payload); /* who has everything asks for nothing */
  }
  shoal_letter letter;
  while (shoal_outbox_take(shoal_swarm_outbox(w->core), &letter)) {
    member *m = find_peer(s, letter.peer);
    if (m != NULL)
      say(s, m, letter.message, now);
    else
      shoal_message_release(&letter.message);
  }
}

/* ---- from time to time ---- */

/* Those whose chunk has left, or nearly. */
static void note_sent(shoal_swarms *s, swarm *w, double now) {
  for (member **at = &w->sending; *at != NULL;) {
    member *m = *at;
    if (shoal_net_queued(s->net, m->peer) > SENT_BYTES) {
      at = &m->next_sending;
      continue;
    }
    *at = m->next_sending;
    m->sending = false;
    shoal_swarm_sent(w->core, m->peer, now);
  }
}

static void look_after(shoal_swarms *s, member *m, double now) {
  double heard = shoal_net_heard(s->net, m->peer);
  if (m->here && m->says.port != 0 && m->neighbours_count < FEW && m->blames < BLAMES_MAX)
    choose_neighbours(s, m->swarm, m);
  if (m->here && m->untold) tell_peers(s, m, now);
  if (heard > 0 && now - heard > SILENT_S)
    shoal_net_close(s->net, m->peer, "silent for 30 seconds");
  else if (m->here && now - m->said >= BEAT_S)
    say(s, m, (shoal_message){.kind = SHOAL_MSG_BEAT}, now);
}

/* Returns when it wants to be looked after again. Letters go before it is asked what has been sent: those of
 * chunks that were read since then are not in the net's queues yet. */
static double look_after_swarm(shoal_swarms *s, swarm *w, bool tells, double now) {
  follow_core(s, w, now);
  note_sent(s, w, now);
  for (member *m = tells ? w->members : NULL; m != NULL; m = m->next) look_after(s, m, now);
  shoal_swarm_tick(w->core, now);
  follow_core(s, w, now);
  bool can_read = serve_gives(s, w);
  follow_core(s, w, now);
  return w->gives != NULL && can_read ? now : shoal_swarm_next_tick(w->core);
}

double shoal_swarms_tick(shoal_swarms *s, double now) {
  bool tells = now >= s->next_tell;
  double next = s->swarms != NULL ? s->next_tell : now + NEVER_S;
  if (tells) next = s->next_tell = now + TELL_S;
  for (swarm *w = s->swarms, *after; w != NULL; w = after) {
    after = w->next;
    if (w->count == 0 && (w->is_retired || now - w->empty_since > KEPT_S))
      forget_swarm(s, w);
    else
      next = fmin(next, look_after_swarm(s, w, tells, now));
  }
  return next;
}

/* ---- for people ---- */

static void write_cells(const swarm *w, const uint8_t *bits, shoal_json *json) {
  uint32_t chunks = (uint32_t)w->manifest.chunks_count, cells = chunks < CELLS_MAX ? chunks : CELLS_MAX;
  char text[CELLS_MAX + 1];
  for (uint32_t c = 0; c < cells; c++) {
    uint32_t first = (uint32_t)((uint64_t)c * chunks / cells),
             end = (uint32_t)((uint64_t)(c + 1) * chunks / cells);
    uint32_t here = 0;
    for (uint32_t i = first; i < end && bits != NULL; i++) here += bits[i / 8] >> i % 8 & 1;
    text[c] = (char)('0' + 9 * here / (end - first));
  }
  text[cells] = 0;
  shoal_json_text(json, "cells", text);
}

static void write_member(const swarm *w, const member *m, const shoal_swarm_peer *p, shoal_json *json) {
  uint64_t from_peers = 0;
  for (uint32_t i = 0; i < m->report.count; i++)
    if (m->report.from[i].id != 0) from_peers += m->report.from[i].bytes;
  shoal_json_open(json, NULL, '{');
  shoal_json_int(json, "id", (int64_t)m->id);
  shoal_json_text(json, "name", m->says.name);
  shoal_json_int(json, "here", p->has);
  write_cells(w, shoal_swarm_bits(w->core, m->peer), json);
  shoal_json_int(json, "from_server", (int64_t)p->given_bytes);
  shoal_json_int(json, "from_peers", (int64_t)from_peers);
  shoal_json_int(json, "to_peers", (int64_t)m->report.to_peers);
  shoal_json_int(json, "blamed", m->blames);
  shoal_json_close(json, '}');
}

/* What came from one to another; from 0: the server. */
typedef struct flow {
  uint64_t from, to, bytes;
} flow;

static int by_bytes_then_place(const void *a, const void *b) {
  const flow *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  if (x->to != y->to) return x->to < y->to ? -1 : 1;
  return (x->from > y->from) - (x->from < y->from);
}

static void add_flow(flow *list, uint32_t *count, uint64_t from, uint64_t to, uint64_t bytes) {
  if (bytes > 0) list[(*count)++] = (flow){from, to, bytes};
}

/* Those to the first MEMBERS_WRITTEN, the largest ones first. */
static void write_flows(const shoal_swarms *s, const swarm *w, shoal_json *json) {
  shoal_swarm_peer p;
  uint32_t count = 0;
  flow *list = malloc(FLOWS_MAX * sizeof *list);
  for (uint32_t i = 0; list != NULL && i < MEMBERS_WRITTEN && shoal_swarm_peer_at(w->core, i, &p); i++) {
    const member *m = find_peer(s, p.peer);
    if (m == NULL) continue;
    add_flow(list, &count, 0, m->id, p.given_bytes);
    for (uint32_t f = 0; f < m->report.count; f++)
      if (m->report.from[f].id != 0)
        add_flow(list, &count, m->report.from[f].id, m->id, m->report.from[f].bytes);
  }
  if (count > 0) qsort(list, count, sizeof *list, by_bytes_then_place);
  shoal_json_open(json, "flows", '[');
  for (uint32_t i = 0; i < count && i < FLOWS_WRITTEN; i++) {
    shoal_json_open(json, NULL, '{');
    shoal_json_int(json, "from", (int64_t)list[i].from);
    shoal_json_int(json, "to", (int64_t)list[i].to);
    shoal_json_int(json, "bytes", (int64_t)list[i].bytes);
    shoal_json_close(json, '}');
  }
  shoal_json_close(json, ']');
  free(list);
}

static void write_members(const shoal_swarms *s, const swarm *w, shoal_json *json) {
  shoal_swarm_peer p;
  shoal_json_open(json, "members", '[');
  for (uint32_t i = 0; i < MEMBERS_WRITTEN && shoal_swarm_peer_at(w->core, i, &p); i++) {
    const member *m = find_peer(s, p.peer);
    if (m != NULL) write_member(w, m, &p, json);
  }
  shoal_json_close(json, ']');
}

void shoal_swarms_write(const shoal_swarms *s, const char *set, uint64_t job, shoal_json *json) {
  const swarm *w = find_swarm(s, set, job);
  uint64_t bytes = w != NULL ? w->manifest.bytes : 0, received = w != NULL ? w->received : 0;
  uint64_t sent = w != NULL ? shoal_swarm_count(w->core).given_bytes : 0;
  for (const member *m = w != NULL ? w->members : NULL; m != NULL; m = m->next) received += received_by(m);
  shoal_json_open(json, NULL, '{');
  shoal_json_text(json, "set", set);
  shoal_json_int(json, "chunks", w != NULL ? (int64_t)w->manifest.chunks_count : 0);
  shoal_json_int(json, "bytes", (int64_t)bytes);
  shoal_json_int(json, "sent", (int64_t)sent);
  shoal_json_real(json, "copies", bytes > 0 ? (double)sent / (double)bytes : 0);
  shoal_json_int(json, "received", (int64_t)received);
  if (w != NULL) {
    write_members(s, w, json);
    write_flows(s, w, json);
  } else {
    shoal_json_open(json, "members", '[');
    shoal_json_close(json, ']');
    shoal_json_open(json, "flows", '[');
    shoal_json_close(json, ']');
  }
  shoal_json_close(json, '}');
}

void shoal_swarms_moved(const shoal_swarms *s, uint64_t *sent, uint64_t *received) {
  *sent = s->sent;
  *received = s->received;
}

/* ---- create and destroy ---- */

shoal_status shoal_swarms_create(shoal_swarms **out, shoal_net *net, const shoal_swarms_calls *calls,
                                 shoal_error *err) {
  shoal_swarms *s = calloc(1, sizeof *s);
  uint64_t seed = 0;
  if (s == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status = shoal_secret_draw(&s->secret, err);
  if (status != SHOAL_OK) {
    free(s);
    return status;
  }
  s->net = net;
  s->calls = *calls;
  memcpy(&seed, s->secret.bytes, sizeof seed);
  s->key = shoal_key_make(seed, SHOAL_FOR_SAMPLING, 0, 0);
  *out = s;
  return SHOAL_OK;
}

void shoal_swarms_destroy(shoal_swarms *s) {
  if (s == NULL) return;
  for (size_t b = 0; b < BUCKETS; b++)
    for (member *m = s->members[b], *next; m != NULL; m = next) {
      next = m->chain;
      free(m);
    }
  for (swarm *w = s->swarms, *next; w != NULL; w = next) {
    next = w->next;
    destroy_swarm(w);
  }
  free_gives(s->reading);
  free(s);
}
