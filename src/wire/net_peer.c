/* net_peer.c: one connection: bytes become messages, messages wait to be sent, and it ends. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/clock.h"
#include "wire/net_internal.h"

static const double RATE_LEAST = 1000; /* bytes a second of a message that takes longer than stall_s */

/* ---- beginning and end ---- */

/* Numbers go up by `slots`, so that number % slots is the place and no number comes twice. */
net_peer *net_peer_create(shoal_net *net, net_state state) {
  net_peer *peer = calloc(1, sizeof *peer);
  if (peer == NULL) return NULL;
  uint32_t slot = net->unused_count > 0 ? net->unused[--net->unused_count] : net->slots - 1;
  peer->net = net;
  peer->state = state;
  peer->number = ++net->serial * net->slots + slot;
  peer->since = peer->heard_at = peer->told_at = shoal_clock_seconds();
  if (slot < net->slots - 1) net->peers[slot] = peer;
  return peer;
}

net_peer *net_peer_find(const shoal_net *net, uint64_t number) {
  net_peer *peer = net->peers[number % net->slots];
  return peer != NULL && peer->number == number && peer->state != ENDED ? peer : NULL;
}

static void drop_queue(net_peer *peer) {
  for (net_out *out = peer->first, *next; out != NULL; out = next) {
    next = out->next;
    shoal_message_release(&out->message);
    free(out);
  }
  peer->first = peer->last = NULL;
  peer->queued = 0;
}

void net_peer_free(net_peer *peer) {
  shoal_net *net = peer->net;
  uint32_t slot = (uint32_t)(peer->number % net->slots);
  if (net->peers[slot] == peer) {
    net->peers[slot] = NULL;
    net->unused[net->unused_count++] = slot;
  }
  drop_queue(peer);
  shoal_message_release(&peer->message);
  net_http_free(peer->http);
  net_dial_free(peer->dial);
  net_tls_free(peer->secure);
  free(peer);
}

/* Writes what goes before the payload: the header and, on a WebSocket, the head of a frame. */
static void dress(net_peer *peer, net_out *out) {
  bool framed = peer->wire == SHOAL_WIRE_WEBSOCKET;
  const shoal_message *message = &out->message;
  size_t length = SHOAL_HEADER_BYTES + (message->payload != NULL ? shoal_blob_length(message->payload) : 0);
  peer->queued -= out->length;
  out->head_length = 0;
  if (framed && !net_frame_begin(out, length, peer->dialed))
    net_peer_end(peer, "there are no random numbers to mask what is sent");
  uint8_t *header = out->head + out->head_length;
  shoal_message_encode(message, header);
  if (framed) net_frame_mask(header, header, SHOAL_HEADER_BYTES, out->mask, 0);
  out->length = out->head_length + length;
  out->head_length += SHOAL_HEADER_BYTES;
  peer->queued += out->length;
}

void net_peer_open(net_peer *peer, shoal_wire wire) {
  peer->wire = wire;
  peer->state = OPEN;
  /* What a dial has to send was queued before its wire was known. */
  for (net_out *out = peer->first; wire == SHOAL_WIRE_WEBSOCKET && out != NULL; out = out->next)
    dress(peer, out);
  if (peer->state != OPEN) return;
  peer->moved = peer->heard_at = peer->told_at = shoal_clock_seconds();
  const shoal_net_calls *calls = &peer->net->config.calls;
  calls->opened(calls->self, peer->number, peer->address);
  if (net_peer_sends(peer)) net_peer_send_soon(peer);
}

void net_peer_end(net_peer *peer, const char *reason, ...) {
  if (peer->reason[0] == 0) {
    va_list args;
    va_start(args, reason);
    vsnprintf(peer->reason, sizeof peer->reason, reason, args);
    va_end(args);
  }
  if (peer->state == ENDED) return;
  peer->state = ENDED;
  peer->next_ended = peer->net->ended;
  peer->net->ended = peer;
}

void net_peer_linger(net_peer *peer) {
  peer->state = LINGERING;
  peer->since = shoal_clock_seconds();
  if (peer->secure != NULL) net_tls_finish(peer);
  if (peer->tls) SSL_shutdown(lws_get_ssl(peer->wsi));
  shutdown(lws_get_socket_fd(peer->wsi), SHUT_WR);
}

void net_peer_lost(net_peer *peer) {
  if (peer->state == DIALING)
    net_dial_lost(peer);
  else if (peer->state == ACCEPTED)
    net_peer_end(peer, "it spoke neither raw nor WebSocket%s", peer->tls ? " over TLS" : "");
  else if (peer->in_payload || peer->filled > 0)
    net_peer_end(peer, "the other side closed the connection in the middle of a message");
  else if (peer->state == OPEN && peer->dialed && !peer->heard && !peer->answered && !peer->thread)
    net_dial_unheard(peer, "the other side closed the connection");
  else
    net_peer_end(peer, "the other side closed the connection");
}

void net_peer_lives(net_peer *peer) { peer->heard_at = shoal_clock_seconds(); }

double shoal_net_heard(const shoal_net *net, uint64_t number) {
  const net_peer *peer = net_peer_find(net, number);
  return peer != NULL ? peer->heard_at : 0;
}

const char *shoal_net_address(const shoal_net *net, uint64_t number) {
  const net_peer *peer = net_peer_find(net, number);
  return peer != NULL ? peer->address : "";
}

/* ---- patience ---- */

/* Those that connect, until their first header is there. */
static void check_hello(net_peer *peer, double now) {
  double hello_s = peer->net->config.hello_s;
  bool silent = peer->state == ACCEPTED || (peer->state == OPEN && !peer->dialed && !peer->heard);
  if (peer->state == DIALING && now > peer->since + hello_s)
    net_peer_end(peer, "no answer within %g s", hello_s);
  else if (silent && now > peer->since + hello_s)
    net_peer_end(peer, "it did not send a message's header within %g s", hello_s);
}

/* A long message on a slow link may take as long as it likes, as long as it moves. */
static void check_message(net_peer *peer, double now) {
  double stall_s = peer->net->config.stall_s, age = now - peer->message_since;
  if (peer->state != OPEN || peer->message_since == 0 || age <= stall_s) return;
  double came = (double)peer->filled + (peer->in_payload ? SHOAL_HEADER_BYTES : 0);
  if (now > peer->heard_at + stall_s)
    net_peer_end(peer, "nothing more of a message came for %g s", stall_s);
  else if (came < RATE_LEAST * age)
    net_peer_end(peer, "a message came with less than %g bytes a second", RATE_LEAST);
}

/* Another thread does not vanish without a word; another machine does. */
static void check_idle(net_peer *peer, double now) {
  double idle_s = peer->net->config.idle_s;
  bool counts = peer->state == OPEN && !peer->dialed && !peer->thread && idle_s > 0;
  if (counts && now > peer->heard_at + idle_s) net_peer_end(peer, "nothing was heard for %g s", idle_s);
}

void net_peer_check(net_peer *peer, double now) {
  const shoal_net_config *config = &peer->net->config;
  if (peer->state == SERVING) net_http_check(peer, now);
  check_hello(peer, now);
  check_message(peer, now);
  check_idle(peer, now);
  bool waits = net_peer_sends(peer) || peer->state == FLUSHING || (peer->state == OPEN && peer->full);
  if (waits && now > peer->moved + config->stall_s)
    net_peer_end(peer, "it took nothing of what was sent for %g s", config->stall_s);
  else if (peer->state == LINGERING && now > peer->since + 1)
    net_peer_end(peer, "closed");
  if (peer->state != OPEN || peer->heard_at <= peer->told_at) return;
  peer->told_at = peer->heard_at;
  if (config->calls.moving != NULL) config->calls.moving(config->calls.self, peer->number);
}

/* ---- coming in ---- */

/* The message is whole: hands it on. */
static void deliver(net_peer *peer) {
  shoal_message message = peer->message;
  peer->message = (shoal_message){0};
  peer->filled = 0;
  peer->in_payload = false;
  peer->message_since = 0;
  peer->told_at = peer->heard_at;
  const shoal_net_calls *calls = &peer->net->config.calls;
  calls->received(calls->self, peer->number, &message);
}

/* It does not speak as this side does. Of another version, it may tell people so when it is told. */
static void end_stranger(net_peer *peer, const shoal_error *err) {
  peer->hopeless = !peer->heard;
  bool tells = err->status == SHOAL_UNSUPPORTED && !peer->dialed && !peer->heard;
  const shoal_message refusal = {.kind = SHOAL_MSG_REFUSE,
                                 .payload = shoal_blob_of(err->text, strlen(err->text))};
  if (tells) {
    shoal_net_send(peer->net, peer->number, refusal);
    shoal_net_close(peer->net, peer->number, err->text);
  } else {
    shoal_blob_release(refusal.payload);
    net_peer_end(peer, "%s", err->text);
  }
}

static void header_came(net_peer *peer) {
  uint64_t length;
  shoal_error err = {0};
  if (shoal_message_decode(peer->header, peer->net->config.payload_max, &peer->message, &length, &err) !=
      SHOAL_OK) {
    end_stranger(peer, &err);
    return;
  }
  peer->heard = true;
  bool has_payload = length > 0 || shoal_message_has_floats(peer->message.kind);
  if (has_payload) peer->message.payload = shoal_blob_create(length);
  if (has_payload && peer->message.payload == NULL) {
    net_peer_end(peer, "no memory for a message of %llu bytes", (unsigned long long)length);
    return;
  }
  if (length == 0) {
    deliver(peer);
    return;
  }
  peer->filled = 0;
  peer->in_payload = true;
}

size_t net_peer_room(net_peer *peer, uint8_t **at) {
  if (peer->state != OPEN || !peer->in_payload) return 0;
  *at = shoal_blob_bytes(peer->message.payload) + peer->filled;
  return shoal_blob_length(peer->message.payload) - peer->filled;
}

void net_peer_took(net_peer *peer, size_t length) {
  net_peer_lives(peer);
  peer->net->moved_in += length;
  peer->filled += length;
  if (peer->filled == shoal_blob_length(peer->message.payload)) deliver(peer);
}

void net_peer_take(net_peer *peer, const uint8_t *bytes, size_t length) {
  net_peer_lives(peer);
  while (length > 0 && peer->state == OPEN) {
    if (peer->message_since == 0) peer->message_since = peer->heard_at;
    uint8_t *at;
    size_t room;
    if (peer->in_payload) {
      room = net_peer_room(peer, &at);
    } else {
      at = peer->header + peer->filled;
      room = SHOAL_HEADER_BYTES - peer->filled;
    }
    size_t part = length < room ? length : room;
    memcpy(at, bytes, part);
    bytes += part;
    length -= part;
    if (peer->in_payload) {
      net_peer_took(peer, part);
    } else {
      peer->net->moved_in += part;
      peer->filled += part;
      if (peer->filled == SHOAL_HEADER_BYTES || !shoal_message_may_begin(peer->header, peer->filled))
        header_came(peer);
    }
  }
}

/* ---- going out ---- */

void shoal_net_send(shoal_net *net, uint64_t number, shoal_message message) {
  net_peer *peer = net_peer_find(net, number);
  net_out *out = peer != NULL && peer->state <= OPEN ? calloc(1, sizeof *out) : NULL;
  if (out == NULL) {
    if (peer != NULL && peer->state <= OPEN) net_peer_end(peer, "no memory for what is to be sent");
    shoal_message_release(&message);
    return;
  }
  out->message = message;
  dress(peer, out);
  if (peer->last == NULL) peer->moved = shoal_clock_seconds();
  *(peer->last != NULL ? &peer->last->next : &peer->first) = out;
  peer->last = out;
  if (peer->state == OPEN && peer->first == out) net_peer_send_soon(peer);
}

void shoal_net_moved(const shoal_net *net, uint64_t *in, uint64_t *out) {
  *in = net->moved_in;
  *out = net->moved_out;
}

uint64_t shoal_net_queued(const shoal_net *net, uint64_t number) {
  const net_peer *peer = net_peer_find(net, number);
  return peer != NULL ? peer->queued : 0;
}

bool net_peer_sends(const net_peer *peer) {
  return peer->first != NULL && (peer->state == OPEN || peer->state == FLUSHING);
}

void net_peer_send_soon(net_peer *peer) {
  if (peer->thread)
    net_thread_send(peer);
  else
    lws_callback_on_writable(peer->wsi);
}

void net_peer_moved(net_peer *peer) {
  peer->moved = shoal_clock_seconds();
  if (peer->full) peer->heard_at = peer->moved;
}

void net_peer_sent(net_peer *peer, size_t length) {
  peer->net->moved_out += length;
  if (length > 0) net_peer_moved(peer);
  peer->queued -= length;
  while (length > 0) {
    net_out *out = peer->first;
    SHOAL_ASSERT(out != NULL);
    size_t left = out->length - out->sent, part = length < left ? length : left;
    out->sent += part;
    length -= part;
    if (out->sent < out->length) return;
    peer->first = out->next;
    if (peer->first == NULL) peer->last = NULL;
    shoal_message_release(&out->message);
    free(out);
  }
}
