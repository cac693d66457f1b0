/* net_thread.c: connections inside this process, between threads that each run a loop of their own.
 *
 * What would be bytes on a socket is an event in the other loop's inbox, and a message's payload goes
 * over as it is: nothing is copied. All inboxes, and the list of loops that there are, have one lock;
 * it is held for a few instructions at a time. A loop is named by a number, since it may be gone by the
 * time somebody has something for it. Loops are woken when the one that has something for them has no more
 * to do: woken one by one, they would take the processor from it in between. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "wire/net_internal.h"

typedef enum event_kind { DIALED, ANSWERED, SENT, CLOSED } event_kind;

/* What happened to a connection, for the loop at its other end. */
struct net_event {
  struct net_event *next;
  event_kind kind;
  uint64_t to;             /* the peer that it is about; DIALED: 0 */
  uint64_t from_net, from; /* who is at the other end */
  shoal_message message;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static shoal_net *nets;
static uint64_t nets_made;

void net_thread_join(shoal_net *net) {
  pthread_mutex_lock(&lock);
  net->id = ++nets_made;
  net->next_net = nets;
  nets = net;
  pthread_mutex_unlock(&lock);
}

/* The lock is held. 0 is nobody's port. */
static shoal_net *find_listener(uint16_t port) {
  shoal_net *net = port > 0 ? nets : NULL;
  while (net != NULL && net->thread_port != port) net = net->next_net;
  return net;
}

bool net_thread_listen(shoal_net *net, uint16_t port) {
  pthread_mutex_lock(&lock);
  bool ok = find_listener(port) == NULL;
  if (ok) net->thread_port = port;
  pthread_mutex_unlock(&lock);
  return ok;
}

/* Puts an event into an inbox; the message is taken over. False: that loop is gone, or no memory. The lock
 * is held. */
static bool post(shoal_net *to, net_event event) {
  net_event *kept = to != NULL ? malloc(sizeof *kept) : NULL;
  if (kept == NULL) {
    shoal_message_release(&event.message);
    return false;
  }
  *kept = event;
  *to->inbox_end = kept;
  to->inbox_end = &kept->next;
  return true;
}

void net_thread_wake_others(void) {
  pthread_mutex_lock(&lock);
  for (shoal_net *net = nets; net != NULL; net = net->next_net)
    if (net->inbox != NULL && !net->woken) {
      net->woken = true;
      lws_cancel_service(net->context);
    }
  pthread_mutex_unlock(&lock);
}

static bool tell_mate(net_peer *peer, event_kind kind, shoal_message message) {
  const net_event event = {
      .kind = kind, .to = peer->mate, .from_net = peer->net->id, .from = peer->number, .message = message};
  pthread_mutex_lock(&lock);
  shoal_net *to = nets;
  while (to != NULL && to->id != peer->mate_net) to = to->next_net;
  bool told = post(to, event);
  pthread_mutex_unlock(&lock);
  return told;
}

bool net_thread_dial(net_peer *peer, uint16_t port) {
  peer->thread = true;
  pthread_mutex_lock(&lock);
  shoal_net *to = find_listener(port);
  bool told = post(to, (net_event){.kind = DIALED, .from_net = peer->net->id, .from = peer->number});
  pthread_mutex_unlock(&lock);
  return told;
}

void net_thread_send(net_peer *peer) {
  while (net_peer_sends(peer)) {
    net_out *out = peer->first;
    shoal_message message = out->message;
    out->message.payload = NULL; /* it goes over */
    if (!tell_mate(peer, SENT, message)) {
      net_peer_end(peer, "the other side closed the connection");
      return;
    }
    net_peer_sent(peer, out->length);
  }
  if (peer->state == FLUSHING) net_peer_end(peer, "closed");
}

void net_thread_close(net_peer *peer) { tell_mate(peer, CLOSED, (shoal_message){0}); }

/* Nobody is here for an event any more: its message is dropped, and who sent it hears that. */
static void refuse(shoal_net *net, net_event *event) {
  net_peer gone = {.net = net, .number = event->to, .mate_net = event->from_net, .mate = event->from};
  shoal_message_release(&event->message);
  if (event->kind != CLOSED) net_thread_close(&gone);
}

void net_thread_leave(shoal_net *net) {
  pthread_mutex_lock(&lock);
  for (shoal_net **at = &nets; *at != NULL; at = &(*at)->next_net)
    if (*at == net) {
      *at = net->next_net;
      break;
    }
  pthread_mutex_unlock(&lock);
  for (net_event *event = net->inbox, *next; event != NULL; event = next) {
    next = event->next;
    refuse(net, event);
    free(event);
  }
}

/* ---- what is in the inbox ---- */

static void accept_dial(shoal_net *net, net_event *event) {
  net_peer *peer = net->unused_count > 0 ? net_peer_create(net, ACCEPTED) : NULL;
  if (peer == NULL) {
    refuse(net, event);
    return;
  }
  peer->thread = true;
  peer->mate_net = event->from_net;
  peer->mate = event->from;
  memcpy(peer->address, "this process", sizeof "this process");
  tell_mate(peer, ANSWERED, (shoal_message){0});
  net_peer_open(peer, SHOAL_WIRE_RAW);
}

static void take_sent(net_peer *peer, shoal_message *message) {
  const shoal_net_calls *calls = &peer->net->config.calls;
  size_t payload = message->payload != NULL ? shoal_blob_length(message->payload) : 0;
  peer->heard = true;
  net_peer_lives(peer);
  peer->told_at = peer->heard_at;
  peer->net->moved_in += SHOAL_HEADER_BYTES + payload;
  calls->received(calls->self, peer->number, message);
}

static void handle(shoal_net *net, net_event *event) {
  if (event->kind == DIALED) {
    accept_dial(net, event);
    return;
  }
  net_peer *peer = net_peer_find(net, event->to);
  if (peer == NULL) {
    refuse(net, event);
  } else if (event->kind == ANSWERED) {
    peer->mate_net = event->from_net;
    peer->mate = event->from;
    net_peer_open(peer, SHOAL_WIRE_RAW);
  } else if (event->kind == SENT && peer->state == OPEN) {
    take_sent(peer, &event->message);
  } else if (event->kind == CLOSED) {
    net_peer_end(peer, "the other side closed the connection");
  } else {
    shoal_message_release(&event->message);
  }
}

void net_thread_receive(shoal_net *net) {
  pthread_mutex_lock(&lock);
  net_event *event = net->inbox;
  net->inbox = NULL;
  net->inbox_end = &net->inbox;
  net->woken = false;
  pthread_mutex_unlock(&lock);
  for (net_event *next; event != NULL; event = next) {
    next = event->next;
    handle(net, event);
    free(event);
  }
}
