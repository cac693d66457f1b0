/* net_websocket.c: bytes of a WebSocket that was dialed, in and out.
 *
 * A message is a row of binary fragments, of any length when they come in and of FRAGMENT_BYTES
 * when they go out. libwebsockets wants room before the bytes and masks them in place, so they
 * are copied. */
#include <string.h>

#include "net/net_internal.h"

void net_websocket_receive(net_peer *peer, const uint8_t *bytes, size_t length) {
  if (!lws_frame_is_binary(peer->wsi)) {
    net_peer_end(peer, "a WebSocket message that is not binary");
    return;
  }
  net_peer_take(peer, bytes, length);
  if (peer->state != OPEN) return;
  /* A WebSocket message ends where a message ends, and nowhere else. */
  bool between = !peer->in_payload && peer->filled == 0;
  if (between != (lws_is_final_fragment(peer->wsi) != 0))
    net_peer_end(peer, "a WebSocket message that is not one Shoal message");
}

/* Copies the next bytes of a message that are not sent yet. */
static size_t fill(const net_out *out, uint8_t *to, size_t room) {
  size_t sent = out->sent, count = 0;
  if (sent < SHOAL_HEADER_BYTES) {
    count = SHOAL_HEADER_BYTES - sent;
    memcpy(to, out->head + sent, count);
    sent = SHOAL_HEADER_BYTES;
  }
  size_t left = out->length - sent, part = left < room - count ? left : room - count;
  if (part > 0)
    memcpy(to + count, shoal_blob_bytes(out->message.payload) + (sent - SHOAL_HEADER_BYTES), part);
  return count + part;
}

void net_websocket_send(net_peer *peer) {
  uint8_t *at = peer->net->fragment + LWS_PRE;
  for (size_t moved = 0; moved < TURN_BYTES && net_peer_sends(peer);) {
    const net_out *out = peer->first;
    size_t part = fill(out, at, FRAGMENT_BYTES);
    int flags = lws_write_ws_flags(LWS_WRITE_BINARY, out->sent == 0, out->sent + part == out->length);
    if (lws_write(peer->wsi, at, part, (enum lws_write_protocol)flags) < 0) {
      net_peer_end(peer, "sending failed");
      return;
    }
    moved += part;
    net_peer_sent(peer, part);
    if (lws_partial_buffered(peer->wsi) || lws_send_pipe_choked(peer->wsi)) return;
  }
}
