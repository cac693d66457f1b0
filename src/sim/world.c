/* world.c: see world.h.
 *
 * Everything to come is in a heap, by time and then by the order in which it was asked for. A
 * message is there twice: when its first byte reaches the receiver (then it takes its turn on the
 * receiver's link), and when its last byte has. The messages of one way of a connection lie in a
 * list in the order of sending, and whatever falls due there takes the first of the list: so no
 * message of a connection ever overtakes another, however long it was held up. Those that come
 * twice or late are outside of the list. */
#include "sim/world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/random.h"

static const double HELD_S = 0.25;   /* how often TCP tries again while nobody can be reached */
static const double TIMEOUT_S = 3;   /* of a dial that nobody answers */
static const double STRAY_S_MAX = 8; /* how much later than the first a second copy may come */
static const double NOTICE_S = 0.2;  /* until an end hears of a cut, at most */

typedef struct flight {
  shoal_packet packet;
  double left_at;     /* when its last byte was on the sender's link */
  double bytes, gone; /* in all; of them on the link already, when it goes in pieces */
  bool closing;       /* no packet: the sender's end was closed */
  struct flight *next;
} flight;

/* One way of a connection: towards end 0 or towards end 1. */
typedef struct way {
  flight *first, *last, *unreached; /* unreached: the first whose first byte is still to come */
  double reaches, arrives;          /* the latest so far */
  double dead_from;                 /* what had not left by then is lost */
  uint64_t count;
  /* When messages go in pieces: */
  flight *unsent;     /* the first that has not left entirely */
  bool in_turn;       /* waits for its turn on the link, or has it */
  uint64_t next_turn; /* the way behind it */
} way;

typedef struct connection {
  uint32_t node[2]; /* who dialled, who was dialled */
  uint32_t life[2]; /* of theirs */
  bool open[2];
  bool cut;
  way ways[2];
} connection;

typedef struct place {
  shoal_world_link link;
  bool up, silent;
  uint32_t life; /* how often it came up */
  uint32_t group;
  double out_free, in_free;       /* when its link is */
  uint64_t turn_first, turn_last; /* ways that wait for the link, 0 for none */
  bool sending;
} place;

typedef enum event_kind { REACHES, LEAVES, ARRIVES, STRAYS, DIALS, BREAKS, WAKES } event_kind;

typedef struct event {
  double at;
  uint64_t order;
  event_kind kind;
  uint32_t node, life; /* WAKES, BREAKS; STRAYS and the rest: which end, in node */
  uint64_t number;     /* a connection's, or a tag */
  double bytes;        /* REACHES: so many */
  bool last;           /* and with them the message is complete */
  flight *stray;
} event;

struct shoal_world {
  shoal_world_rules rules;
  shoal_key key;
  uint64_t draws, order;
  double now;
  event *events;
  uint32_t events_count, events_size;
  place *places;
  uint32_t places_count, places_max;
  connection *connections;
  uint64_t connections_count, connections_size;
  flight *spare;
  shoal_world_counts counts;
  /* OPENED is told twice from one event. */
  bool second;
  shoal_happening second_happening;
};

/* ---- memory ---- */

shoal_world *shoal_world_create(const shoal_world_rules *rules, uint32_t nodes_max) {
  shoal_world *w = calloc(1, sizeof *w);
  SHOAL_ASSERT(w != NULL);
  w->rules = *rules;
  w->key = shoal_key_make(rules->seed, SHOAL_FOR_SIMULATION, 0, 0);
  w->places = calloc(nodes_max, sizeof *w->places);
  w->places_max = nodes_max;
  SHOAL_ASSERT(w->places != NULL);
  return w;
}

static void spare_flight(shoal_world *w, flight *f) {
  shoal_message_release(&f->packet.message);
  f->next = w->spare;
  w->spare = f;
}

static flight *new_flight(shoal_world *w) {
  flight *f = w->spare;
  if (f == NULL) {
    f = malloc(sizeof *f);
    SHOAL_ASSERT(f != NULL);
  } else {
    w->spare = f->next;
  }
  *f = (flight){0};
  return f;
}

void shoal_world_destroy(shoal_world *w) {
  if (w == NULL) return;
  for (uint32_t i = 0; i < w->events_count; i++)
    if (w->events[i].stray != NULL) spare_flight(w, w->events[i].stray);
  for (uint64_t c = 0; c < w->connections_count; c++)
    for (int side = 0; side < 2; side++)
      while (w->connections[c].ways[side].first != NULL) {
        flight *f = w->connections[c].ways[side].first;
        w->connections[c].ways[side].first = f->next;
        spare_flight(w, f);
      }
  while (w->spare != NULL) {
    flight *f = w->spare;
    w->spare = f->next;
    free(f);
  }
  free(w->events);
  free(w->places);
  free(w->connections);
  free(w);
}

double shoal_world_now(const shoal_world *w) { return w->now; }
shoal_world_counts shoal_world_count(const shoal_world *w) { return w->counts; }
uint64_t shoal_world_connections(const shoal_world *w) { return w->connections_count; }

uint64_t shoal_world_draw(shoal_world *w, uint64_t below) {
  return shoal_random_below(w->key, w->draws++, below);
}

double shoal_world_share(shoal_world *w) { return shoal_random_uniform(w->key, w->draws++); }

/* ---- the heap ---- */

static bool before(const event *a, const event *b) {
  return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void add_event(shoal_world *w, event e) {
  if (w->events_count == w->events_size) {
    w->events_size = w->events_size == 0 ? 256 : 2 * w->events_size;
    w->events = realloc(w->events, w->events_size * sizeof *w->events);
    SHOAL_ASSERT(w->events != NULL);
  }
  e.order = w->order++;
  if (e.at < w->now) e.at = w->now;
  uint32_t i = w->events_count++;
  for (; i > 0 && before(&e, &w->events[(i - 1) / 2]); i = (i - 1) / 2) w->events[i] = w->events[(i - 1) / 2];
  w->events[i] = e;
}

static event take_event(shoal_world *w) {
  event first = w->events[0], last = w->events[--w->events_count];
  uint32_t i = 0;
  for (;;) {
    uint32_t child = 2 * i + 1;
    if (child >= w->events_count) break;
    if (child + 1 < w->events_count && before(&w->events[child + 1], &w->events[child])) child++;
    if (!before(&w->events[child], &last)) break;
    w->events[i] = w->events[child];
    i = child;
  }
  if (w->events_count > 0) w->events[i] = last;
  return first;
}

/* ---- nodes ---- */

uint32_t shoal_world_add(shoal_world *w, const shoal_world_link *link) {
  SHOAL_ASSERT(w->places_count < w->places_max);
  w->places[w->places_count] = (place){.link = *link};
  return w->places_count++;
}

void shoal_world_up(shoal_world *w, uint32_t node) {
  SHOAL_ASSERT(!w->places[node].up);
  w->places[node].up = true;
  w->places[node].life++;
  w->places[node].out_free = w->places[node].in_free = w->now;
}

void shoal_world_group(shoal_world *w, uint32_t node, uint32_t group) { w->places[node].group = group; }

void shoal_world_wake(shoal_world *w, uint32_t node, double at, uint64_t tag) {
  uint32_t life = node == SHOAL_WORLD_NOBODY ? 0 : w->places[node].life;
  add_event(w, (event){.at = at, .kind = WAKES, .node = node, .life = life, .number = tag});
}

static connection *connection_of(const shoal_world *w, uint64_t number) {
  SHOAL_ASSERT(number > 0 && number <= w->connections_count);
  return &w->connections[number - 1];
}

static bool reachable(const shoal_world *w, const connection *c) {
  return w->places[c->node[0]].group == w->places[c->node[1]].group;
}

/* Whether this end is still the one that the connection was made with. */
static bool alive(const shoal_world *w, const connection *c, int end) {
  const place *p = &w->places[c->node[end]];
  return p->up && p->life == c->life[end];
}

static double latency(shoal_world *w, const connection *c) {
  const shoal_world_link *a = &w->places[c->node[0]].link, *b = &w->places[c->node[1]].link;
  double jitter = fmax(a->jitter_s, b->jitter_s);
  return fmax(a->latency_s, b->latency_s) + (jitter > 0 ? jitter * shoal_world_share(w) : 0);
}

/* ---- connections ---- */

uint64_t shoal_world_dial(shoal_world *w, uint32_t from, uint32_t to) {
  if (w->connections_count == w->connections_size) {
    w->connections_size = w->connections_size == 0 ? 64 : 2 * w->connections_size;
    w->connections = realloc(w->connections, w->connections_size * sizeof *w->connections);
    SHOAL_ASSERT(w->connections != NULL);
  }
  connection *c = &w->connections[w->connections_count++];
  *c = (connection){.node = {from, to}, .life = {w->places[from].life, w->places[to].life}};
  c->ways[0].dead_from = c->ways[1].dead_from = INFINITY;
  add_event(w, (event){.at = w->now + 2 * latency(w, c), .kind = DIALS, .number = w->connections_count});
  return w->connections_count;
}

uint32_t shoal_world_other(const shoal_world *w, uint64_t number, uint32_t node) {
  const connection *c = connection_of(w, number);
  return c->node[0] == node ? c->node[1] : c->node[0];
}

static double bytes_of(const shoal_world *w, const shoal_message *m) {
  double payload = m->payload != NULL ? (double)shoal_blob_length(m->payload) : 0;
  bool weights = m->kind == SHOAL_MSG_WEIGHTS || m->kind == SHOAL_MSG_GIVE;
  double scale = m->kind == SHOAL_MSG_PUSH ? w->rules.push_scale : weights ? w->rules.pull_scale : 1;
  return SHOAL_HEADER_BYTES + payload * scale;
}

static void append(shoal_world *w, way *to, flight *f) {
  if (to->last != NULL)
    to->last->next = f;
  else
    to->first = f;
  to->last = f;
  if (to->unreached == NULL) to->unreached = f;
  if (++to->count > w->counts.under_way_max) w->counts.under_way_max = to->count;
}

/* Puts a flight on the sender's link and tells when its first byte is at the other end. */
static double depart(shoal_world *w, const connection *c, int end, flight *f) {
  place *from = &w->places[c->node[1 - end]];
  double start = fmax(w->now, from->out_free);
  f->left_at = start + f->bytes / from->link.rate;
  from->out_free = f->left_at;
  return start + latency(w, c);
}

/* A copy of its own, outside of the connection's order. */
static void stray(shoal_world *w, uint64_t number, int end, const flight *f) {
  flight *copy = new_flight(w);
  *copy = *f;
  copy->next = NULL;
  copy->packet.message.payload = shoal_blob_share(f->packet.message.payload);
  double at = f->left_at + latency(w, connection_of(w, number)) + STRAY_S_MAX * pow(shoal_world_share(w), 3);
  add_event(w, (event){.at = at, .kind = STRAYS, .node = (uint32_t)end, .number = number, .stray = copy});
}

static bool may_stray(shoal_message_kind kind) {
  return kind == SHOAL_MSG_PUSH || kind == SHOAL_MSG_DONE || kind == SHOAL_MSG_PULL ||
         kind == SHOAL_MSG_WEIGHTS;
}

/* ---- pieces: a way is named by its connection and its end ---- */

static void take_turn(shoal_world *w, uint64_t number, int end) {
  connection *c = connection_of(w, number);
  place *from = &w->places[c->node[1 - end]];
  uint64_t name = number << 1 | (uint64_t)end;
  c->ways[end].in_turn = true;
  c->ways[end].next_turn = 0;
  if (from->turn_last != 0)
    connection_of(w, from->turn_last >> 1)->ways[from->turn_last & 1].next_turn = name;
  else
    from->turn_first = name;
  from->turn_last = name;
}

/* Puts the next bytes of a way on the link, up to the end of a message; returns how many. `before` are on it
 * already in this turn. */
static double send_part(shoal_world *w, const place *from, uint64_t number, uint32_t end, double before) {
  way *on = &connection_of(w, number)->ways[end];
  flight *f = on->unsent;
  double bytes = fmin(w->rules.piece_bytes - before, f->bytes - f->gone);
  f->gone += bytes;
  bool last = f->gone >= f->bytes;
  f->left_at = w->now + (before + bytes) / from->link.rate;
  if (last) on->unsent = f->next;
  add_event(
      w,
      (event){
          .at = on->reaches, .kind = REACHES, .node = end, .number = number, .bytes = bytes, .last = last});
  return bytes;
}

/* The next piece of whoever's turn it is: part of a message, or several small ones. */
static void send_piece(shoal_world *w, place *from) {
  uint64_t number = from->turn_first >> 1;
  uint32_t end = from->turn_first & 1;
  from->sending = number != 0;
  if (!from->sending) return;
  connection *c = connection_of(w, number);
  way *on = &c->ways[end];
  from->turn_first = on->next_turn;
  if (from->turn_first == 0) from->turn_last = 0;
  on->reaches = fmax(on->reaches, w->now + latency(w, c));
  double bytes = 0;
  while (on->unsent != NULL && bytes < w->rules.piece_bytes) bytes += send_part(w, from, number, end, bytes);
  add_event(w,
            (event){.at = w->now + bytes / from->link.rate, .kind = LEAVES, .node = end, .number = number});
}

static void leave(shoal_world *w, const event *e) {
  connection *c = connection_of(w, e->number);
  way *on = &c->ways[e->node];
  on->in_turn = false;
  if (on->unsent != NULL) take_turn(w, e->number, (int)e->node);
  send_piece(w, &w->places[c->node[1 - e->node]]);
}

static void launch_in_pieces(shoal_world *w, uint64_t number, int end, flight *f) {
  connection *c = connection_of(w, number);
  way *on = &c->ways[end];
  place *from = &w->places[c->node[1 - end]];
  append(w, on, f);
  if (on->unsent == NULL) on->unsent = f;
  if (!on->in_turn) take_turn(w, number, end);
  if (!from->sending) send_piece(w, from);
}

static void launch(shoal_world *w, uint64_t number, int end, flight *f) {
  connection *c = connection_of(w, number);
  way *to = &c->ways[end];
  if (w->rules.piece_bytes > 0) {
    launch_in_pieces(w, number, end, f);
    return;
  }
  double reaches = depart(w, c, end, f);
  if (!f->closing && may_stray(f->packet.message.kind)) {
    if (w->rules.twice > 0 && shoal_world_share(w) < w->rules.twice) {
      stray(w, number, end, f);
      w->counts.twice++;
    }
    if (w->rules.late > 0 && shoal_world_share(w) < w->rules.late) {
      stray(w, number, end, f);
      w->counts.late++;
      spare_flight(w, f);
      return;
    }
  }
  to->reaches = fmax(to->reaches, reaches);
  append(w, to, f);
  add_event(w, (event){.at = to->reaches,
                       .kind = REACHES,
                       .node = (uint32_t)end,
                       .number = number,
                       .bytes = f->bytes,
                       .last = true});
}

static int end_of(const connection *c, uint32_t node) {
  SHOAL_ASSERT(c->node[0] == node || c->node[1] == node);
  return c->node[0] == node ? 0 : 1;
}

void shoal_world_send(shoal_world *w, uint64_t number, uint32_t from, shoal_packet packet) {
  connection *c = connection_of(w, number);
  int end = end_of(c, from);
  if (!c->open[end] || !alive(w, c, end)) {
    shoal_message_release(&packet.message);
    w->counts.lost++;
    return;
  }
  flight *f = new_flight(w);
  f->packet = packet;
  f->bytes = bytes_of(w, &packet.message);
  launch(w, number, 1 - end, f);
}

static void send_close(shoal_world *w, uint64_t number, int end) {
  flight *f = new_flight(w);
  f->closing = true;
  f->bytes = SHOAL_HEADER_BYTES;
  launch(w, number, 1 - end, f);
}

void shoal_world_close(shoal_world *w, uint64_t number, uint32_t node) {
  connection *c = connection_of(w, number);
  int end = end_of(c, node);
  if (!c->open[end]) return;
  c->open[end] = false;
  send_close(w, number, end);
}

/* An end hears that the connection is gone. */
static void break_end(shoal_world *w, uint64_t number, int end, double at) {
  const connection *c = connection_of(w, number);
  add_event(w,
            (event){.at = at, .kind = BREAKS, .node = (uint32_t)end, .life = c->life[end], .number = number});
}

bool shoal_world_cut(shoal_world *w, uint64_t number) {
  connection *c = connection_of(w, number);
  SHOAL_ASSERT(w->rules.piece_bytes == 0);
  if (c->cut || !c->open[0] || !c->open[1]) return false;
  c->cut = true;
  for (int end = 0; end < 2; end++) break_end(w, number, end, w->now + NOTICE_S * shoal_world_share(w));
  return true;
}

void shoal_world_down(shoal_world *w, uint32_t node, bool silently) {
  place *p = &w->places[node];
  SHOAL_ASSERT(p->up && (silently || w->rules.piece_bytes == 0));
  for (uint64_t number = 1; number <= w->connections_count; number++) {
    connection *c = connection_of(w, number);
    if (c->node[0] != node && c->node[1] != node) continue;
    int end = end_of(c, node);
    if (!c->open[end]) continue;
    c->open[end] = false;
    c->ways[1 - end].dead_from = w->now;
    p->out_free = w->now; /* what was queued is lost with it; the close goes at once */
    if (!silently) send_close(w, number, end);
    if (!silently) c->ways[1 - end].last->left_at = w->now;
  }
  p->up = false;
  p->silent = silently;
}

/* ---- what happens ---- */

/* The first byte is there: the message, or the piece, takes its turn on the receiver's link. */
static void reach(shoal_world *w, const event *e) {
  connection *c = connection_of(w, e->number);
  way *on = &c->ways[e->node];
  flight *f = on->unreached;
  SHOAL_ASSERT(f != NULL);
  place *to = &w->places[c->node[e->node]];
  double start = fmax(w->now, to->in_free);
  to->in_free = start + e->bytes / to->link.rate;
  if (!e->last) return;
  on->unreached = f->next;
  on->arrives = fmax(on->arrives, fmax(to->in_free, f->left_at + to->link.latency_s));
  add_event(w, (event){.at = on->arrives, .kind = ARRIVES, .node = e->node, .number = e->number});
}

static bool told_closed(shoal_world *w, uint64_t number, int end, shoal_happening *out) {
  connection *c = connection_of(w, number);
  if (!c->open[end] || !alive(w, c, end)) return false;
  c->open[end] = false;
  *out = (shoal_happening){.kind = SHOAL_WORLD_CLOSED, .node = c->node[end], .connection = number};
  return true;
}

/* A message for an end that is closed: a machine that is up says so to the sender. */
static void refuse(shoal_world *w, uint64_t number, int end) {
  connection *c = connection_of(w, number);
  const place *p = &w->places[c->node[end]];
  if ((p->up || !p->silent) && c->open[1 - end]) break_end(w, number, 1 - end, w->now + latency(w, c));
}

/* A flight is at its end; true when there is something to tell. */
static bool land(shoal_world *w, uint64_t number, int end, const flight *f, shoal_happening *out) {
  connection *c = connection_of(w, number);
  bool dead = c->cut || f->left_at > c->ways[end].dead_from;
  if (dead || !c->open[end] || !alive(w, c, end)) {
    if (!f->closing) w->counts.lost++;
    if (!dead && !f->closing) refuse(w, number, end);
    return false;
  }
  if (f->closing) return told_closed(w, number, end, out);
  w->counts.messages++;
  w->counts.bytes += (uint64_t)f->bytes;
  *out = (shoal_happening){
      .kind = SHOAL_WORLD_ARRIVED, .node = c->node[end], .connection = number, .packet = f->packet};
  return true;
}

static bool arrive(shoal_world *w, const event *e, shoal_happening *out) {
  connection *c = connection_of(w, e->number);
  way *on = &c->ways[e->node];
  if (!reachable(w, c)) {
    add_event(w, (event){.at = w->now + HELD_S, .kind = ARRIVES, .node = e->node, .number = e->number});
    return false;
  }
  flight *f = on->first;
  SHOAL_ASSERT(f != NULL && f != on->unreached);
  on->first = f->next;
  if (on->first == NULL) on->last = NULL;
  on->count--;
  bool told = land(w, e->number, (int)e->node, f, out);
  if (told) f->packet.message.payload = NULL;
  spare_flight(w, f);
  return told;
}

/* A second copy, or a late one; it too is held up while its end cannot be reached. */
static bool arrive_astray(shoal_world *w, const event *e, shoal_happening *out) {
  if (!reachable(w, connection_of(w, e->number))) {
    event again = *e;
    again.at = w->now + HELD_S;
    add_event(w, again);
    return false;
  }
  bool told = land(w, e->number, (int)e->node, e->stray, out);
  if (told) e->stray->packet.message.payload = NULL;
  spare_flight(w, e->stray);
  return told;
}

static bool answer_dial(shoal_world *w, const event *e, shoal_happening *out) {
  connection *c = connection_of(w, e->number);
  const place *to = &w->places[c->node[1]];
  if (!alive(w, c, 0)) return false;
  if (reachable(w, c) && to->up) {
    c->life[1] = to->life;
    c->open[0] = c->open[1] = true;
    *out = (shoal_happening){.kind = SHOAL_WORLD_OPENED, .node = c->node[1], .connection = e->number};
    w->second = true;
    w->second_happening = *out;
    w->second_happening.node = c->node[0];
    return true;
  }
  bool nobody = !reachable(w, c) || to->silent;
  c->open[0] = true; /* so that its end is told */
  break_end(w, e->number, 0, w->now + (nobody ? TIMEOUT_S : 0));
  return false;
}

static bool happen(shoal_world *w, const event *e, shoal_happening *out) {
  switch (e->kind) {
  case REACHES: reach(w, e); return false;
  case LEAVES: leave(w, e); return false;
  case ARRIVES: return arrive(w, e, out);
  case STRAYS: return arrive_astray(w, e, out);
  case DIALS: return answer_dial(w, e, out);
  case BREAKS: return told_closed(w, e->number, (int)e->node, out);
  case WAKES:
    if (e->node != SHOAL_WORLD_NOBODY && (!w->places[e->node].up || w->places[e->node].life != e->life))
      return false;
    *out = (shoal_happening){.kind = SHOAL_WORLD_WOKEN, .node = e->node, .tag = e->number};
    return true;
  }
  return false;
}

bool shoal_world_next(shoal_world *w, shoal_happening *out) {
  if (w->second) {
    w->second = false;
    *out = w->second_happening;
    /* The end that was dialled may have closed it at once. */
    const connection *c = connection_of(w, out->connection);
    if (c->open[0] && alive(w, c, 0)) return true;
  }
  while (w->events_count > 0) {
    event e = take_event(w);
    w->now = e.at;
    if (happen(w, &e, out)) return true;
  }
  return false;
}
