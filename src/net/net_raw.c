/* net_raw.c: bytes of a raw connection, in and out, and of an accepted WebSocket, out.
 *
 * Without TLS payloads go between the socket and the blob with no copy in between:
 * libwebsockets waits for the socket and reads a first piece; the rest of a long payload is read
 * here, into its place. What is sent, this file gives to the socket itself, many small messages
 * at once. With TLS, libwebsockets reads and writes. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "net/net_internal.h"

enum { PIECES = 32, TLS_WRITE_BYTES = 64 << 10 };

/* A socket that ends or fails here is left to libwebsockets, which will find the same. */
void net_raw_receive(net_peer *peer, const uint8_t *bytes, size_t length) {
  net_peer_take(peer, bytes, length);
  if (peer->tls) return;
  uint8_t *at;
  for (size_t moved = 0, room; moved < TURN_BYTES && (room = net_peer_room(peer, &at)) > 0;) {
    ssize_t got = recv(lws_get_socket_fd(peer->wsi), at, room, MSG_DONTWAIT);
    if (got <= 0) return;
    moved += (size_t)got;
    net_peer_took(peer, (size_t)got);
  }
}

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

static void send_plain(net_peer *peer) {
  struct iovec pieces[PIECES];
  for (size_t moved = 0; moved < TURN_BYTES && net_peer_sends(peer);) {
    struct msghdr what = {.msg_iov = pieces, .msg_iovlen = (size_t)gather(peer, pieces)};
    ssize_t sent = sendmsg(lws_get_socket_fd(peer->wsi), &what, MSG_DONTWAIT | MSG_NOSIGNAL);
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
static void send_tls(net_peer *peer) {
  struct iovec pieces[PIECES];
  for (size_t moved = 0; moved < TURN_BYTES && net_peer_sends(peer);) {
    gather(peer, pieces);
    size_t part = pieces[0].iov_len < TLS_WRITE_BYTES ? pieces[0].iov_len : TLS_WRITE_BYTES;
    if (lws_write(peer->wsi, pieces[0].iov_base, part, LWS_WRITE_RAW) < 0) {
      net_peer_end(peer, "sending failed");
      return;
    }
    moved += part;
    net_peer_sent(peer, part);
    if (lws_partial_buffered(peer->wsi) || lws_send_pipe_choked(peer->wsi)) return;
  }
}

void net_raw_send(net_peer *peer) {
  if (peer->tls)
    send_tls(peer);
  else
    send_plain(peer);
}
