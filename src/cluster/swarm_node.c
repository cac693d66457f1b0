/* swarm_node.c: see swarm_node.h.
 *
 * A member that the server has named is in `members` for as long as it is named or connected:
 *
 *   APART      not connected; dialled when it is time, by the younger of the two at once, by the other a
 *              little later
 *   DIALLING   on its way
 *   GREETED    has been sent HELLO; its own is waited for
 *   JOINED     both have said HELLO: the core knows it, under the number of its connection
 *
 * When two dial each other at the same time, both keep the connection that the younger one made. */
#include "cluster/swarm_node.h"

#include <inttypes.h>
#include <math.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "cluster/node.h"
#include "cluster/swarm_words.h"
#include "proto/swarm.h"
#include "wire/certificate.h"

enum {
  MEMBERS_MAX = 2 * SHOAL_SWARM_NEIGHBOURS_MAX,
  CONNECTIONS_MAX = MEMBERS_MAX + 16,
  TRIES_MAX = 6,
  PAYLOAD_MAX = 1 << 20,  /* a chunk, or a list of peers */
  SENT_BYTES = 128 << 10, /* no more than this waits: the next chunk may come */
};
static const double TURN_S = 0.5, REPORT_S = 1, WAITS_S = 0.25, RETRY_S = 0.5, RETRY_MOST_S = 30,
                    GOODBYE_S = 0.2, COMPANY_S = 1;

typedef enum member_state { APART, DIALLING, GREETED, JOINED } member_state;

typedef struct member {
  shoal_swarm_contact is;
  bool listed; /* the server names it */
  bool bad;    /* it sent what was not right: never again */
  member_state state;
  uint64_t peer; /* its connection; 0: none */
  bool dialled;  /* by this side */
  bool sending;  /* the core waits for shoal_swarm_sent */
  double next_try, said;
  uint32_t tries;
  uint64_t from;
} member;

struct shoal_swarm_node {
  shoal_swarm_node_config config;
  pthread_t thread;
  volatile sig_atomic_t stop;
  pthread_mutex_t lock; /* of view */
  shoal_swarm_view view;

  /* The thread's own. */
  shoal_net *net;
  shoal_swarm *core;
  shoal_line server;
  bool server_joined, over;
  double named_at; /* when the server first named others, in this connection to it; 0: not yet */
  uint64_t you;    /* this one's number; 0: not told yet */
  char address[SHOAL_SWARM_HOST_MAX], fingerprint[SHOAL_SHA256_HEX];
  uint16_t port;
  member members[MEMBERS_MAX];
  uint32_t members_count;
  uint64_t from_server, from_peers, to_peers, bad;
  double next_report;
  uint64_t reported;
};

/* ---- telling ---- */

static bool stops(const shoal_swarm_node *n) {
  return n->over || __atomic_load_n(&n->stop, __ATOMIC_RELAXED) != 0;
}

__attribute__((format(printf, 2, 3))) static void tell(shoal_swarm_node *n, const char *format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (n->config.notes.note != NULL) n->config.notes.note(n->config.notes.self, text);
}

static void publish(shoal_swarm_node *n) {
  uint32_t joined = 0;
  for (uint32_t i = 0; i < n->members_count; i++) joined += n->members[i].state == JOINED;
  pthread_mutex_lock(&n->lock);
  n->view.from_server = n->from_server;
  n->view.from_peers = n->from_peers;
  n->view.to_peers = n->to_peers;
  n->view.peers = joined;
  n->view.bad = (uint32_t)n->bad;
  n->view.port = n->port;
  pthread_mutex_unlock(&n->lock);
}

/* Nothing that waiting would mend. */
static void give_up(shoal_swarm_node *n, const shoal_error *err) {
  pthread_mutex_lock(&n->lock);
  if (n->view.status == SHOAL_OK) {
    n->view.status = err->status;
    n->view.error = *err;
  }
  pthread_mutex_unlock(&n->lock);
  n->over = true;
  if (n->config.shelf.failed != NULL) n->config.shelf.failed(n->config.shelf.self, err);
}

/* ---- members ---- */

static member *member_of_peer(shoal_swarm_node *n, uint64_t peer) {
  for (uint32_t i = 0; i < n->members_count; i++)
    if (n->members[i].peer == peer) return &n->members[i];
  return NULL;
}

static member *member_of_id(shoal_swarm_node *n, uint64_t id) {
  for (uint32_t i = 0; i < n->members_count; i++)
    if (n->members[i].is.id == id) return &n->members[i];
  return NULL;
}

/* It has no connection any more. */
static void part(shoal_swarm_node *n, member *m, double now) {
  if (m->state == JOINED) shoal_swarm_leave(n->core, m->peer, now);
  double wait_s = fmin(RETRY_S * (double)(1u << m->tries), RETRY_MOST_S);
  m->state = APART;
  m->peer = 0;
  m->sending = false;
  m->next_try = now + wait_s;
}

static void drop(shoal_swarm_node *n, member *m, const char *reason, double now) {
  uint64_t peer = m->peer;
  part(n, m, now);
  if (peer != 0) shoal_net_close(n->net, peer, reason);
}

/* Those that the server names no more and that are not connected are forgotten; the bad ones when room is
 * needed. */
static void forget(shoal_swarm_node *n, bool bad_too) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n->members_count; i++) {
    const member *m = &n->members[i];
    if (m->listed || m->peer != 0 || (m->bad && !bad_too)) n->members[kept++] = *m;
  }
  n->members_count = kept;
}

static void add(shoal_swarm_node *n, const shoal_swarm_contact *is, double now) {
  if (n->members_count == MEMBERS_MAX) forget(n, true);
  if (n->members_count == MEMBERS_MAX) return;
  double wait_s = n->you > is->id ? 0 : WAITS_S;
  n->members[n->members_count++] = (member){.is = *is, .listed = true, .next_try = now + wait_s};
}

static void hear_peers(shoal_swarm_node *n, const shoal_message *m, double now) {
  shoal_swarm_contacts *peers = calloc(1, sizeof *peers);
  shoal_error err;
  size_t length;
  const char *text = shoal_node_payload(m, &length);
  if (peers == NULL) return;
  if (shoal_swarm_contacts_read(peers, text, length, &err) != SHOAL_OK) {
    shoal_net_close(n->net, n->server.peer, err.text);
    free(peers);
    return;
  }
  n->you = peers->you;
  if (n->named_at == 0) n->named_at = now;
  for (uint32_t i = 0; i < n->members_count; i++) n->members[i].listed = false;
  for (uint32_t i = 0; i < peers->count; i++) {
    member *known = member_of_id(n, peers->list[i].id);
    if (known != NULL) {
      known->is = peers->list[i];
      known->listed = true;
    }
  }
  forget(n, false);
  for (uint32_t i = 0; i < peers->count; i++)
    if (peers->list[i].id != n->you && member_of_id(n, peers->list[i].id) == NULL)
      add(n, &peers->list[i], now);
  free(peers);
}

static void say_hello(shoal_swarm_node *n, member *m) {
  shoal_net_send(n->net, m->peer,
                 (shoal_message){.kind = SHOAL_MSG_HELLO,
                                 .count = SHOAL_ROLE_PEER,
                                 .round = n->config.set,
                                 .version = n->you,
                                 .lease = m->is.key,
                                 .payload = shoal_blob_of(n->config.name, strlen(n->config.name))});
}

/* Both have said HELLO. */
static void join(shoal_swarm_node *n, member *m, double now) {
  m->state = JOINED;
  m->tries = 0;
  m->said = now;
  if (!shoal_swarm_join(n->core, m->peer, false, now)) {
    m->state = GREETED;
    drop(n, m, "there are enough neighbours", now);
  }
}

static bool is_wanted(const shoal_swarm_node *n, const member *m) {
  bool speaks = (n->config.certificate != NULL) == (m->is.fingerprint[0] != 0);
  return m->listed && !m->bad && m->is.addresses_count > 0 && speaks && m->tries < TRIES_MAX;
}

static void dial(shoal_swarm_node *n, member *m, double now) {
  const char *address = m->is.addresses[m->tries % m->is.addresses_count];
  const shoal_way way = {.wire = SHOAL_WIRE_RAW,
                         .tls = m->is.fingerprint[0] != 0,
                         .fingerprint = m->is.fingerprint[0] != 0 ? m->is.fingerprint : NULL};
  m->tries++;
  m->dialled = true;
  m->peer = shoal_net_dial(n->net, address, &way);
  m->state = DIALLING;
  if (m->peer == 0) part(n, m, now);
}

static double look_after_members(shoal_swarm_node *n, double now) {
  double next = INFINITY;
  for (uint32_t i = 0; i < n->members_count; i++) {
    member *m = &n->members[i];
    if (m->state == APART && !n->config.alone && is_wanted(n, m)) {
      if (now >= m->next_try)
        dial(n, m, now);
      else
        next = fmin(next, m->next_try);
    }
    if (m->state != JOINED) continue;
    if (now - shoal_net_heard(n->net, m->peer) > shoal_line_beat.silence_s) {
      drop(n, m, "silent for too long", now);
    } else if (now - m->said >= shoal_line_beat.every_s) {
      m->said = now;
      shoal_net_send(n->net, m->peer, (shoal_message){.kind = SHOAL_MSG_BEAT});
    }
  }
  return next;
}

/* Somebody who connected says who it is. */
static void hear_stranger(shoal_swarm_node *n, uint64_t peer, const shoal_message *m, double now) {
  member *who =
      m->kind == SHOAL_MSG_HELLO && m->count == SHOAL_ROLE_PEER ? member_of_id(n, m->version) : NULL;
  bool known = who != NULL && !who->bad && who->is.key == m->lease && m->round == n->config.set;
  if (!known) {
    shoal_net_send(n->net, peer, shoal_node_refuse("the server has not named you"));
    shoal_net_close(n->net, peer, "not named by the server");
    return;
  }
  if (who->peer != 0 && who->dialled && n->you > who->is.id) {
    shoal_net_close(n->net, peer, "there is a connection already");
    return;
  }
  if (who->peer != 0) drop(n, who, "another connection took its place", now);
  who->peer = peer;
  who->dialled = false;
  say_hello(n, who);
  join(n, who, now);
}

static void hear_member(shoal_swarm_node *n, member *m, shoal_message *message, double now) {
  if (message->kind == SHOAL_MSG_REFUSE) {
    drop(n, m, "refused", now);
  } else if (m->state == GREETED) {
    bool right = message->kind == SHOAL_MSG_HELLO && message->lease == m->is.key;
    if (right)
      join(n, m, now);
    else
      drop(n, m, "expected HELLO", now);
  } else if (m->state == JOINED) {
    shoal_swarm_receive(n->core, m->peer, message, now);
  }
}

/* ---- the server ---- */

static void say_to_server(shoal_swarm_node *n, shoal_message message) {
  if (!n->server.open) {
    shoal_message_release(&message);
    return;
  }
  n->server.beat.said = shoal_clock_seconds();
  shoal_net_send(n->net, n->server.peer, message);
}

static void say_hello_to_server(shoal_swarm_node *n) {
  shoal_swarm_hello hello = {.port = n->port};
  shoal_text_plain(hello.name, sizeof hello.name, n->config.name, strlen(n->config.name));
  snprintf(hello.address, sizeof hello.address, "%s", n->address);
  snprintf(hello.fingerprint, sizeof hello.fingerprint, "%s", n->fingerprint);
  shoal_text text = {0};
  shoal_swarm_hello_write(&hello, &text);
  if (!text.failed)
    say_to_server(n, (shoal_message){.kind = SHOAL_MSG_HELLO,
                                     .count = SHOAL_ROLE_PEER,
                                     .round = n->config.set,
                                     .version = n->port,
                                     .payload = shoal_blob_of(text.bytes, text.length)});
  shoal_text_release(&text);
}

static void report(shoal_swarm_node *n, double now) {
  uint64_t moved = n->from_server + n->from_peers + n->to_peers;
  if (now < n->next_report || !n->server_joined || moved == n->reported) return;
  n->next_report = now + REPORT_S;
  n->reported = moved;
  shoal_swarm_report said = {.to_peers = n->to_peers, .count = 1, .from = {{0, n->from_server}}};
  for (uint32_t i = 0; i < n->members_count && said.count <= SHOAL_SWARM_NEIGHBOURS_MAX; i++)
    if (n->members[i].from > 0)
      said.from[said.count++] = (shoal_swarm_flow){n->members[i].is.id, n->members[i].from};
  shoal_text text = {0};
  shoal_swarm_report_write(&said, &text);
  if (!text.failed)
    say_to_server(
        n, (shoal_message){.kind = SHOAL_MSG_REPORT, .payload = shoal_blob_of(text.bytes, text.length)});
  shoal_text_release(&text);
}

static void hear_server(shoal_swarm_node *n, shoal_message *m, double now) {
  if (m->kind == SHOAL_MSG_PEERS) {
    hear_peers(n, m, now);
  } else if (m->kind == SHOAL_MSG_REFUSE) {
    char why[SHOAL_NODE_TEXT_MAX];
    shoal_error err;
    shoal_node_text(m, why);
    shoal_fail(&err, SHOAL_INVALID, "the server does not give the data: %s", why);
    give_up(n, &err);
  } else if (n->server_joined) {
    shoal_swarm_receive(n->core, n->server.peer, m, now);
  }
}

/* The server is asked once there are others to ask as well, or it is clear that there are none: it need not
 * give what they have. */
static void join_server(shoal_swarm_node *n, double now) {
  if (!n->server.open || n->server_joined || n->named_at == 0) return;
  bool company = false, hope = false;
  for (uint32_t i = 0; i < n->members_count; i++) {
    company |= n->members[i].state == JOINED;
    hope |= n->members[i].state != JOINED && n->members[i].tries <= 1 && is_wanted(n, &n->members[i]);
  }
  if (!company && hope && !n->config.alone && now - n->named_at < COMPANY_S) return;
  n->server_joined = shoal_swarm_join(n->core, n->server.peer, true, now);
}

/* ---- what the net tells ---- */

static void opened(void *self, uint64_t peer, const char *address) {
  (void)address;
  shoal_swarm_node *n = self;
  double now = shoal_clock_seconds();
  if (shoal_line_opened(&n->server, peer, now)) {
    n->named_at = 0;
    say_hello_to_server(n);
    return;
  }
  member *m = member_of_peer(n, peer);
  if (m == NULL) return; /* somebody connected: HELLO says who */
  m->state = GREETED;
  say_hello(n, m);
}

static void received(void *self, uint64_t peer, shoal_message *message) {
  shoal_swarm_node *n = self;
  double now = shoal_clock_seconds();
  member *m = NULL;
  if (shoal_line_heard(&n->server, peer, now))
    hear_server(n, message, now);
  else if ((m = member_of_peer(n, peer)) != NULL)
    hear_member(n, m, message, now);
  else
    hear_stranger(n, peer, message, now);
  shoal_message_release(message);
}

static void closed(void *self, uint64_t peer, const char *reason) {
  shoal_swarm_node *n = self;
  double now = shoal_clock_seconds();
  if (peer == n->server.peer) {
    if (n->server_joined) shoal_swarm_leave(n->core, peer, now);
    n->server_joined = false;
    if (shoal_net_refusal_is_final(shoal_net_refusal(reason))) {
      shoal_error err;
      shoal_fail(&err, SHOAL_INVALID, "the data of this job: %s", reason);
      give_up(n, &err);
    }
    if (!stops(n))
      shoal_line_say_closed(&n->server, "the server's data", reason, false, &n->config.notes, now);
    shoal_line_closed(&n->server, peer, now);
    return;
  }
  member *m = member_of_peer(n, peer);
  if (m != NULL) part(n, m, now);
}

/* ---- what the core wants ---- */

static void check_chunk(shoal_swarm_node *n, shoal_swarm_event *e, double now) {
  const shoal_shelf *shelf = &n->config.shelf;
  size_t length = e->payload != NULL ? shoal_blob_length(e->payload) : 0;
  member *m = member_of_peer(n, e->peer);
  shoal_error err = {0};
  shoal_status status =
      shelf->put(shelf->self, e->chunk, e->payload ? shoal_blob_bytes(e->payload) : NULL, length, &err);
  shoal_blob_release(e->payload);
  if (status != SHOAL_OK && status != SHOAL_CORRUPT) { /* this disk's fault, and not its sender's */
    give_up(n, &err);
    return;
  }
  if (status == SHOAL_OK && m != NULL) {
    m->from += length;
    n->from_peers += length;
  } else if (status == SHOAL_OK) {
    n->from_server += length;
  }
  shoal_swarm_checked(n->core, e->peer, e->chunk, status == SHOAL_OK, now);
}

static void give_chunk(shoal_swarm_node *n, const shoal_swarm_event *e, double now) {
  const shoal_shelf *shelf = &n->config.shelf;
  size_t length = shelf->length(shelf->self, e->chunk);
  shoal_blob *blob = shoal_blob_create(length);
  if (blob != NULL && shelf->read(shelf->self, e->chunk, shoal_blob_bytes(blob), NULL) != SHOAL_OK) {
    shoal_blob_release(blob);
    blob = NULL;
  }
  member *m = member_of_peer(n, e->peer);
  if (m != NULL) m->sending = true;
  if (blob != NULL && m != NULL) n->to_peers += length;
  shoal_swarm_give(n->core, e->peer, e->question, e->chunk, blob, now);
}

static void leave_bad(shoal_swarm_node *n, const shoal_swarm_event *e, double now) {
  member *m = member_of_peer(n, e->peer);
  n->bad++;
  if (m == NULL) {
    shoal_error err;
    shoal_fail(&err, SHOAL_CORRUPT,
               "chunk %u that the server sent is not what its hash says; its disk may be damaged", e->chunk);
    if (e->peer == n->server.peer) give_up(n, &err);
    return;
  }
  tell(n, "%s sent a chunk that is not what its hash says; it is asked no more", m->is.name);
  say_to_server(n, (shoal_message){.kind = SHOAL_MSG_BLAME,
                                   .shard = e->chunk,
                                   .lease = m->is.id,
                                   .payload = shoal_blob_of(m->is.name, strlen(m->is.name))});
  m->bad = true;
  drop(n, m, "a chunk that is not what its hash says", now);
}

/* Those whose chunk has left, or nearly. */
static void note_sent(shoal_swarm_node *n, double now) {
  for (uint32_t i = 0; i < n->members_count; i++) {
    member *m = &n->members[i];
    if (!m->sending || shoal_net_queued(n->net, m->peer) > SENT_BYTES) continue;
    m->sending = false;
    shoal_swarm_sent(n->core, m->peer, now);
  }
}

static void follow_core(shoal_swarm_node *n, double now) {
  shoal_swarm_event e;
  while (!n->over && shoal_swarm_next(n->core, &e)) {
    if (e.kind == SHOAL_SWARM_ARRIVED)
      check_chunk(n, &e, now);
    else if (e.kind == SHOAL_SWARM_GIVE)
      give_chunk(n, &e, now);
    else if (e.kind == SHOAL_SWARM_BAD)
      leave_bad(n, &e, now);
  }
  shoal_letter letter;
  while (shoal_outbox_take(shoal_swarm_outbox(n->core), &letter)) {
    member *m = member_of_peer(n, letter.peer);
    if (m != NULL) m->said = now;
    shoal_net_send(n->net, letter.peer, letter.message);
  }
}

static void hear_wants(shoal_swarm_node *n, double now) {
  const shoal_shelf *shelf = &n->config.shelf;
  uint32_t chunk;
  bool urgent;
  while (shelf->next_want != NULL && shelf->next_want(shelf->self, &chunk, &urgent))
    shoal_swarm_want(n->core, chunk, urgent, now);
}

/* ---- the thread ---- */

static void *run(void *self) {
  shoal_swarm_node *n = self;
  while (!stops(n)) {
    double now = shoal_clock_seconds(), next = now + TURN_S;
    hear_wants(n, now);
    note_sent(n, now);
    join_server(n, now);
    shoal_swarm_tick(n->core, now);
    follow_core(n, now);
    shoal_line_tick(&n->server, n->net, &n->config.way, now);
    next = fmin(next, look_after_members(n, now));
    report(n, now);
    publish(n);
    next = fmin(next, fmin(shoal_swarm_next_tick(n->core), shoal_line_next(&n->server)));
    shoal_net_run(n->net, fmax(0, next - now));
  }
  n->next_report = 0;
  report(n, shoal_clock_seconds());
  double until = shoal_clock_seconds() + GOODBYE_S;
  if (n->server.peer != 0) shoal_net_close(n->net, n->server.peer, "leaving");
  while (n->server.peer != 0 && shoal_clock_seconds() < until) shoal_net_run(n->net, 0.02);
  publish(n);
  return NULL;
}

/* ---- start and end ---- */

/* The address that this machine has towards the server: others on its network may dial it there. */
static void find_address(shoal_swarm_node *n) {
  char host[SHOAL_SWARM_HOST_MAX * 4];
  snprintf(host, sizeof host, "%s", n->config.server);
  host[strcspn(host, "/")] = 0;
  char *colon = strrchr(host, ':');
  if (colon == NULL) return;
  *colon = 0;
  char *name = host[0] == '[' ? host + 1 : host;
  name[strcspn(name, "]")] = 0;
  struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found = NULL;
  if (getaddrinfo(name, colon + 1, &hints, &found) != 0) return;
  int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0); /* connecting it sends nothing */
  struct sockaddr_storage own;
  socklen_t length = sizeof own;
  if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
      getsockname(fd, (struct sockaddr *)&own, &length) == 0 &&
      getnameinfo((struct sockaddr *)&own, length, n->address, sizeof n->address, NULL, 0, NI_NUMERICHOST) !=
          0)
    n->address[0] = 0;
  if (fd >= 0) close(fd);
  freeaddrinfo(found);
}

static shoal_status open_net(shoal_swarm_node *n, shoal_error *err) {
  const shoal_swarm_node_config *c = &n->config;
  const shoal_net_calls calls = {n, opened, received, closed, NULL};
  shoal_net_config net = shoal_node_net(&calls, CONNECTIONS_MAX, c->certificate, c->key);
  net.payload_max = PAYLOAD_MAX;
  shoal_status status = shoal_net_create(&n->net, &net, err);
  if (status != SHOAL_OK || c->alone) return status;
  if (c->certificate != NULL) status = shoal_certificate_fingerprint(c->certificate, n->fingerprint, err);
  if (status != SHOAL_OK) return status;
  shoal_error trouble;
  if (shoal_net_listen(n->net, c->listen != NULL ? c->listen : ":0", &n->port, &trouble) != SHOAL_OK) {
    n->port = 0;
    tell(n, "nobody can connect here for data: %s", trouble.text);
  }
  find_address(n);
  return SHOAL_OK;
}

static shoal_status open_core(shoal_swarm_node *n, shoal_error *err) {
  const shoal_shelf *shelf = &n->config.shelf;
  const shoal_swarm_config config = {.chunks = shelf->chunks,
                                     .chunk_bytes = PAYLOAD_MAX,
                                     .wants_all = n->config.all,
                                     .alone = n->config.alone,
                                     .peers_max = MEMBERS_MAX + 1,
                                     .seed = n->config.seed};
  shoal_status status = shoal_swarm_create(&n->core, &config, err);
  double now = shoal_clock_seconds();
  for (uint32_t i = 0; i < shelf->chunks && status == SHOAL_OK; i++)
    if (shelf->has(shelf->self, i)) shoal_swarm_has(n->core, i, now);
  return status;
}

static void destroy(shoal_swarm_node *n) {
  shoal_net_destroy(n->net);
  shoal_swarm_destroy(n->core);
  pthread_mutex_destroy(&n->lock);
  free(n);
}

shoal_status shoal_swarm_node_start(shoal_swarm_node **out, const shoal_swarm_node_config *config,
                                    shoal_error *err) {
  *out = NULL;
  shoal_swarm_node *n = calloc(1, sizeof *n);
  if (n == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  n->config = *config;
  pthread_mutex_init(&n->lock, NULL);
  shoal_line_init(&n->server, config->server, shoal_clock_seconds());
  shoal_status status = open_net(n, err);
  if (status == SHOAL_OK) status = open_core(n, err);
  if (status == SHOAL_OK && pthread_create(&n->thread, NULL, run, n) != 0)
    status = shoal_fail(err, SHOAL_NO_MEMORY, "cannot start a thread");
  if (status != SHOAL_OK) {
    destroy(n);
    return status;
  }
  *out = n;
  return SHOAL_OK;
}

void shoal_swarm_node_wake(shoal_swarm_node *n) { shoal_net_wake(n->net); }

void shoal_swarm_node_look(shoal_swarm_node *n, shoal_swarm_view *out) {
  pthread_mutex_lock(&n->lock);
  *out = n->view;
  pthread_mutex_unlock(&n->lock);
}

void shoal_swarm_node_end(shoal_swarm_node *n) {
  if (n == NULL) return;
  __atomic_store_n(&n->stop, 1, __ATOMIC_RELAXED);
  shoal_net_wake(n->net);
  pthread_join(n->thread, NULL);
  destroy(n);
}
