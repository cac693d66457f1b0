/* net_bytes.c: bytes of a connection that is open, in and out.
 *
 * Without TLS the payloads of raw connections go between the socket and the blob with no copy in between:
 * libwebsockets waits for the socket and reads a first piece; the rest of a long payload is read here, into
 * its place. What is sent, this file gives to the socket itself, many small messages at once. What a
 * WebSocket that was dialled sends gets its mask in a piece of memory in between: the payload may be somebody
 * else's, too.
 *
 * With TLS, libwebsockets reads and writes for those who connected, and net_tls.c for those that were
 * dialled. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "wire/net_internal.h"

enum {
  PIECES = 32,
  WRITE_BYTES = 64 << 10,  /* given to libwebsockets at once */
  RECORD_BYTES = 16 << 10, /* of TLS, at most */
};

/* ---- in ---- */

void net_bytes_take(net_peer *peer, uint8_t *bytes, size_t length) {
  if (peer->wire == SHOAL_WIRE_RAW)
    net_peer_take(peer, bytes, length);
  else
    net_frame_receive(peer, bytes, length);
}

/* A socket that ends or fails here is left to libwebsockets, which will find the same. */
void net_bytes_receive(net_peer *peer, uint8_t *bytes, size_t length) {
  net_bytes_take(peer, bytes, length);
  if (peer->tls || peer->wire != SHOAL_WIRE_RAW) return;
  uint8_t *at;
  for (size_t moved = 0, room; moved < TURN_BYTES && (room = net_peer_room(peer, &at)) > 0;) {
    ssize_t got = recv(lws_get_socket_fd(peer->wsi), at, room, MSG_DONTWAIT);
    if (got <= 0) return;
    moved += (size_t)got;
    net_peer_took(peer, (size_t)got);
  }
}

/* ---- out ---- */

/* The unsent bytes at the queue's front, as pieces of memory. */
static int gather(const net_peer *peer, struct iovec pieces[PIECES]) {
  int count = 0;
  for (const net_out *out = peer->first; out != NULL && count + 2 <= PIECES; out = out->next) {
    size_t sent = out->sent;
    if (sent < out->head_length) {
      pieces[count++] = (struct iovec){(void *)(out->head + sent), out->head_length - sent};
      sent = out->head_length;
    }
    if (sent < out->length)
      pieces[count++] = (struct iovec){shoal_blob_bytes(out->message.payload) + (sent - out->head_length),
                                       out->length - sent};
  }
  return count;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* The same bytes one after the other, and masked: at most so many. */
static size_t copy(const net_peer *peer, uint8_t *to, size_t room) {
  size_t count = 0;
  for (const net_out *out = peer->first; out != NULL && count < room; out = out->next) {
    size_t sent = out->sent;
    if (sent < out->head_length) {
      size_t part = least(out->head_length - sent, room - count);
      memcpy(to + count, out->head + sent, part);
      count += part;
      sent += part;
    }
    size_t part = least(out->length - sent, room - count);
    if (part == 0) continue;
    size_t from = sent - out->head_length;
    net_frame_mask(to + count, shoal_blob_bytes(out->message.payload) + from, part, out->mask, from);
    count += part;
  }
  return count;
}

static ssize_t send_pieces(net_peer *peer) {
  struct iovec pieces[PIECES];
  struct msghdr what = {.msg_iov = pieces, .msg_iovlen = (size_t)gather(peer, pieces)};
  return sendmsg(lws_get_socket_fd(peer->wsi), &what, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static ssize_t send_copy(net_peer *peer) {
  uint8_t *piece = peer->net->fragment;
  size_t length = copy(peer, piece, FRAGMENT_BYTES);
  return send(lws_get_socket_fd(peer->wsi), piece, length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void send_plain(net_peer *peer) {
  bool masked = peer->dialed && peer->wire == SHOAL_WIRE_WEBSOCKET;
  if (lws_partial_buffered(peer->wsi)) return; /* of an answer of HTTP, which goes first */
  for (size_t moved = 0; moved < TURN_BYTES && net_peer_sends(peer);) {
    ssize_t sent = masked ? send_copy(peer) : send_pieces(peer);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (sent < 0) {
      net_peer_end(peer, "sending failed: %s", strerror(errno));
      return;
    }
    moved += (size_t)sent;
    net_peer_sent(peer, (size_t)sent);
  }
}

/* What the socket did not take, libwebsockets keeps a copy of; so no more until that is gone. */
static void send_by_libwebsockets(net_peer *peer) {
  struct iovec pieces[PIECES];
  for (size_t moved = 0; moved < TURN_BYTES && net_peer_sends(peer);) {
    gather(peer, pieces);
    size_t part = least(pieces[0].iov_len, WRITE_BYTES);
    if (lws_write(peer->wsi, pieces[0].iov_base, part, LWS_WRITE_RAW) < 0) {
      net_peer_end(peer, "sending failed");
      return;
    }
    moved += part;
    net_peer_sent(peer, part);
    if (lws_partial_buffered(peer->wsi) || lws_send_pipe_choked(peer->wsi)) return;
  }
}

/* Encrypts the next record: from where its bytes are when they are many, or else as many as a record takes. */
static size_t encrypt_record(net_peer *peer) {
  struct iovec pieces[PIECES];
  uint8_t *record = peer->net->fragment;
  size_t length = RECORD_BYTES;
  gather(peer, pieces);
  if (peer->wire == SHOAL_WIRE_RAW && pieces[0].iov_len >= RECORD_BYTES)
    record = pieces[0].iov_base;
  else
    length = copy(peer, record, RECORD_BYTES);
  if (!net_tls_write(peer, record, length)) return 0;
  net_peer_sent(peer, length);
  return length;
}

/* A few records, then the socket, until it is full. */
static void send_secure(net_peer *peer) {
  for (size_t moved = 0; net_tls_flush(peer) && moved < TURN_BYTES && net_peer_sends(peer);)
    for (size_t batch = 0; batch < FRAGMENT_BYTES && net_peer_sends(peer);) {
      size_t length = encrypt_record(peer);
      batch += length;
      moved += length;
    }
}

void net_bytes_send(net_peer *peer) {
  if (peer->secure != NULL)
    send_secure(peer);
  else if (peer->tls)
    send_by_libwebsockets(peer);
  else
    send_plain(peer);
}
