/* net_frames.c: frames of a WebSocket (RFC 6455) that was accepted.
 *
 *   byte 0    0x80 final, 0x70 must be 0, 0x0f kind: 0 more of a message, 2 binary, 8 goodbye, 9 ping, 10 pong
 *   byte 1    0x80 masked, 0x7f length, or 126: in the next 2 bytes, 127: in the next 8, highest first
 *   then      4 bytes of mask, always from those who dial and never from us
 *   then      the payload; byte i is combined with byte i % 4 of the mask
 *
 * A message that goes out is one frame, whatever its length. */
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "net/net_internal.h"

enum {
  FINAL = 0x80,
  RESERVED = 0x70,
  KIND = 0x0f,
  MASKED = 0x80,
  LENGTH = 0x7f,
  LENGTH_2 = 126,
  LENGTH_8 = 127
};
enum { MORE = 0, TEXT = 1, BINARY = 2, GOODBYE = 8, PING = 9, PONG = 10 };

void net_frame_accept(const char *key, char out[FRAME_ACCEPT_MAX]) {
  char both[128];
  uint8_t digest[SHA_DIGEST_LENGTH];
  int length = snprintf(both, sizeof both, "%.64s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
  EVP_Digest(both, (size_t)length, digest, NULL, EVP_sha1(), NULL);
  EVP_EncodeBlock((uint8_t *)out, digest, sizeof digest);
}

/* ---- going out ---- */

static size_t write_head(uint8_t *head, int kind, uint64_t length) {
  head[0] = (uint8_t)(FINAL | kind);
  int bytes = length < LENGTH_2 ? 0 : length <= UINT16_MAX ? 2 : 8;
  head[1] = (uint8_t)(bytes == 0 ? length : bytes == 2 ? LENGTH_2 : LENGTH_8);
  for (int i = 0; i < bytes; i++) head[2 + i] = (uint8_t)(length >> (8 * (bytes - 1 - i)));
  return 2 + (size_t)bytes;
}

size_t net_frame_head(uint8_t head[FRAME_HEAD_MAX], uint64_t length) {
  return write_head(head, BINARY, length);
}

/* Puts a frame without a message behind the one that is being sent. */
static void send_control(net_peer *peer, int kind, const uint8_t *bytes, size_t length) {
  net_out *out = calloc(1, sizeof *out), *first = peer->first;
  if (out == NULL) {
    net_peer_end(peer, "no memory for what is to be sent");
    return;
  }
  SHOAL_ASSERT(length <= CONTROL_MAX);
  out->head_length = write_head(out->head, kind, length);
  if (length > 0) memcpy(out->head + out->head_length, bytes, length);
  out->head_length += length;
  out->length = out->head_length;
  peer->queued += out->length;
  if (first == NULL) peer->moved = shoal_clock_seconds();
  if (first != NULL && first->sent > 0) {
    out->next = first->next;
    first->next = out;
  } else {
    out->next = first;
    peer->first = out;
  }
  if (out->next == NULL) peer->last = out;
  net_peer_send_soon(peer);
}

void net_frame_goodbye(net_peer *peer) {
  uint8_t bytes[2 + CLOSE_TEXT_MAX] = {LWS_CLOSE_STATUS_NORMAL >> 8, LWS_CLOSE_STATUS_NORMAL & 0xff};
  size_t length = strlen(peer->reason);
  if (length > CLOSE_TEXT_MAX) length = CLOSE_TEXT_MAX;
  memcpy(bytes + 2, peer->reason, length);
  uint8_t frame[FRAME_HEAD_MAX + sizeof bytes];
  size_t head = write_head(frame, GOODBYE, 2 + length);
  memcpy(frame + head, bytes, 2 + length);
  lws_write(peer->wsi, frame, head + 2 + length, LWS_WRITE_RAW);
}

/* ---- coming in ---- */

/* How long the head is, as far as what is there tells. */
static size_t head_length(const net_frame *frame) {
  if (frame->filled < 2) return 2;
  unsigned length = frame->head[1] & LENGTH;
  return 2u + (length == LENGTH_2 ? 2 : length == LENGTH_8 ? 8 : 0) + 4;
}

static bool is_control(const net_frame *frame) { return (frame->head[0] & KIND) >= GOODBYE; }

/* NULL: it may be. */
static const char *judge_head(const net_frame *frame) {
  int kind = frame->head[0] & KIND;
  bool final = frame->head[0] & FINAL;
  if (kind == TEXT) return "a WebSocket message that is not binary";
  if ((frame->head[0] & RESERVED) != 0 || !(frame->head[1] & MASKED) || frame->left > INT64_MAX)
    return "a frame that is none of a WebSocket's";
  if (is_control(frame))
    return final && frame->left <= CONTROL_MAX && kind <= PONG ? NULL
                                                               : "a frame that is none of a WebSocket's";
  bool fits = kind == (frame->in_message ? MORE : BINARY);
  return fits ? NULL : "a frame that is none of a WebSocket's";
}

/* The head is whole. */
static void begin_payload(net_peer *peer) {
  net_frame *frame = &peer->frame;
  size_t wide = frame->filled - 2 - 4;
  frame->left = wide == 0 ? frame->head[1] & LENGTH : 0;
  for (size_t i = 0; i < wide; i++) frame->left = frame->left << 8 | frame->head[2 + i];
  memcpy(frame->mask, frame->head + 2 + wide, sizeof frame->mask);
  const char *wrong = judge_head(frame);
  if (wrong != NULL) {
    net_peer_end(peer, "%s", wrong);
    return;
  }
  frame->in_payload = true;
  frame->control_filled = 0;
  if (!is_control(frame)) frame->in_message = !(frame->head[0] & FINAL);
}

/* Takes the mask off, eight bytes at a time, and turns it for the byte that comes next. */
static void unmask(net_frame *frame, uint8_t *bytes, size_t length) {
  uint8_t mask[8];
  for (size_t i = 0; i < sizeof mask; i++) mask[i] = frame->mask[i % 4];
  uint64_t wide, part;
  memcpy(&wide, mask, sizeof wide);
  size_t i = 0;
  for (; i + sizeof part <= length; i += sizeof part) {
    memcpy(&part, bytes + i, sizeof part);
    part ^= wide;
    memcpy(bytes + i, &part, sizeof part);
  }
  for (; i < length; i++) bytes[i] ^= mask[i % 4];
  for (size_t k = 0; k < 4; k++) frame->mask[k] = mask[(length + k) % 4];
}

static void control_came(net_peer *peer) {
  net_frame *frame = &peer->frame;
  int kind = frame->head[0] & KIND;
  net_peer_lives(peer);
  if (kind == PING) {
    send_control(peer, PONG, frame->control, frame->control_filled);
  } else if (kind == GOODBYE) {
    snprintf(peer->reason, sizeof peer->reason, "the other side closed the connection%s",
             frame->in_message || peer->in_payload || peer->filled > 0 ? " in the middle of a message" : "");
    peer->state = FLUSHING;
    peer->moved = shoal_clock_seconds();
    net_peer_send_soon(peer);
  }
}

/* So many bytes of a frame's payload are here, maybe none. */
static void payload_came(net_peer *peer, uint8_t *bytes, size_t length) {
  net_frame *frame = &peer->frame;
  unmask(frame, bytes, length);
  frame->left -= length;
  bool ends = frame->left == 0, message_ends = ends && !frame->in_message;
  if (ends) {
    frame->in_payload = false;
    frame->filled = 0;
  }
  if (is_control(frame)) {
    memcpy(frame->control + frame->control_filled, bytes, length);
    frame->control_filled += length;
    if (ends) control_came(peer);
    return;
  }
  net_peer_take(peer, bytes, length);
  if (peer->state != OPEN) return;
  /* A WebSocket message ends where a message ends, and nowhere else. */
  bool between = !peer->in_payload && peer->filled == 0;
  if (between != message_ends) net_peer_end(peer, "a WebSocket message that is not one Shoal message");
}

void net_frame_receive(net_peer *peer, uint8_t *bytes, size_t length) {
  net_frame *frame = &peer->frame;
  while (length > 0 && peer->state == OPEN) {
    if (!frame->in_payload) {
      frame->head[frame->filled++] = *bytes++;
      length--;
      if (frame->filled < 2 || frame->filled < head_length(frame)) continue;
      begin_payload(peer);
      if (peer->state == OPEN && frame->left == 0) payload_came(peer, bytes, 0);
      continue;
    }
    size_t part = frame->left < length ? (size_t)frame->left : length;
    payload_came(peer, bytes, part);
    bytes += part;
    length -= part;
  }
}
