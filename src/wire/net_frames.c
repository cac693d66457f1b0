/* net_frames.c: frames of a WebSocket (RFC 6455).
 *
 *   byte 0    0x80 final, 0x70 must be 0, 0x0f kind: 0 more of a message, 2 binary, 8 goodbye, 9 ping, 10 pong
 *   byte 1    0x80 masked, 0x7f length, or 126: in the next 2 bytes, 127: in the next 8, highest first
 *   then      4 bytes of mask, always from those who dial and never to them
 *   then      the payload; byte i is combined with byte i % 4 of the mask
 *
 * A message that goes out is one frame, whatever its length, with a mask of its own where it has one. */
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "wire/net_internal.h"

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
enum { NOTHING_WRONG = 1000 }; /* why a goodbye is said */

_Static_assert(SHOAL_HEADER_BYTES % 4 == 0, "a payload begins with the first byte of the mask");

void net_frame_accept(const char *key, char out[FRAME_ACCEPT_MAX]) {
  char both[128];
  uint8_t digest[SHA_DIGEST_LENGTH];
  int length = snprintf(both, sizeof both, "%.64s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
  EVP_Digest(both, (size_t)length, digest, NULL, EVP_sha1(), NULL);
  EVP_EncodeBlock((uint8_t *)out, digest, sizeof digest);
}

/* Eight bytes at a time. */
void net_frame_mask(uint8_t *to, const uint8_t *from, size_t length, const uint8_t mask[4], uint64_t at) {
  uint8_t turned[8];
  for (size_t i = 0; i < sizeof turned; i++) turned[i] = mask[(at + i) % 4];
  uint64_t wide, part;
  memcpy(&wide, turned, sizeof wide);
  size_t i = 0;
  for (; i + sizeof part <= length; i += sizeof part) {
    memcpy(&part, from + i, sizeof part);
    part ^= wide;
    memcpy(to + i, &part, sizeof part);
  }
  for (; i < length; i++) to[i] = from[i] ^ turned[i % 8];
}

/* ---- going out ---- */

static bool begin(net_out *out, int kind, uint64_t length, bool masked) {
  uint8_t *head = out->head;
  int bytes = length < LENGTH_2 ? 0 : length <= UINT16_MAX ? 2 : 8;
  head[0] = (uint8_t)(FINAL | kind);
  head[1] = (uint8_t)((masked ? MASKED : 0) | (bytes == 0 ? (int)length : bytes == 2 ? LENGTH_2 : LENGTH_8));
  for (int i = 0; i < bytes; i++) head[2 + i] = (uint8_t)(length >> (8 * (bytes - 1 - i)));
  out->head_length = 2 + (size_t)bytes;
  if (!masked) return true;
  if (RAND_bytes(out->mask, sizeof out->mask) != 1) return false;
  memcpy(head + out->head_length, out->mask, sizeof out->mask);
  out->head_length += sizeof out->mask;
  return true;
}

bool net_frame_begin(net_out *out, uint64_t length, bool masked) {
  return begin(out, BINARY, length, masked);
}

/* Puts a frame without a message behind the one that is being sent. */
static void put_into_queue(net_peer *peer, net_out *out) {
  net_out *first = peer->first;
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

static void send_control(net_peer *peer, int kind, const uint8_t *bytes, size_t length) {
  SHOAL_ASSERT(length <= CONTROL_MAX);
  net_out *out = calloc(1, sizeof *out);
  if (out == NULL || !begin(out, kind, length, peer->dialed)) {
    net_peer_end(peer, "no memory for what is to be sent");
    free(out);
    return;
  }
  net_frame_mask(out->head + out->head_length, bytes, length, out->mask, 0);
  out->head_length += length;
  out->length = out->head_length;
  put_into_queue(peer, out);
}

void net_frame_goodbye(net_peer *peer) {
  uint8_t bytes[2 + CLOSE_TEXT_MAX] = {NOTHING_WRONG >> 8, NOTHING_WRONG & 0xff};
  size_t length = strlen(peer->reason);
  if (length > CLOSE_TEXT_MAX) length = CLOSE_TEXT_MAX;
  memcpy(bytes + 2, peer->reason, length);
  send_control(peer, GOODBYE, bytes, 2 + length);
}

/* ---- coming in ---- */

static bool is_masked(const net_frame *frame) { return frame->head[1] & MASKED; }

/* The bytes that a long length takes. */
static size_t wide_bytes(const net_frame *frame) {
  unsigned length = frame->head[1] & LENGTH;
  return length == LENGTH_2 ? 2 : length == LENGTH_8 ? 8 : 0;
}

/* How long the head is, as far as what is there tells. */
static size_t head_length(const net_frame *frame) {
  if (frame->filled < 2) return 2;
  return 2 + wide_bytes(frame) + (is_masked(frame) ? sizeof frame->mask : 0);
}

static bool is_control(const net_frame *frame) { return (frame->head[0] & KIND) >= GOODBYE; }

/* NULL: it may be. Who dials masks what it sends, and who was dialled does not. */
static const char *judge_head(const net_peer *peer) {
  const net_frame *frame = &peer->frame;
  int kind = frame->head[0] & KIND;
  bool final = frame->head[0] & FINAL;
  if (kind == TEXT) return "a WebSocket message that is not binary";
  if ((frame->head[0] & RESERVED) != 0 || is_masked(frame) == peer->dialed || frame->left > INT64_MAX)
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
  size_t wide = wide_bytes(frame);
  frame->came = 0;
  frame->left = wide == 0 ? frame->head[1] & LENGTH : 0;
  for (size_t i = 0; i < wide; i++) frame->left = frame->left << 8 | frame->head[2 + i];
  if (is_masked(frame)) memcpy(frame->mask, frame->head + 2 + wide, sizeof frame->mask);
  const char *wrong = judge_head(peer);
  if (wrong != NULL) {
    net_peer_end(peer, "%s", wrong);
    return;
  }
  frame->in_payload = true;
  frame->control_filled = 0;
  if (!is_control(frame)) frame->in_message = !(frame->head[0] & FINAL);
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
  if (is_masked(frame)) net_frame_mask(bytes, bytes, length, frame->mask, frame->came);
  frame->came += length;
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
