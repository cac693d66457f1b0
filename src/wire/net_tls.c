/* net_tls.c: TLS of a connection that was dialled (tls.h).
 *
 * OpenSSL reads from the bytes that libwebsockets has just read, which are lent for the
 * call and always used up: what is less than a record OpenSSL keeps. It writes into `out`, which is given to
 * the socket as that takes it; nobody encrypts more while there is some left, so `out` stays small.
 *
 * OpenSSL's list of errors is the thread's, and libwebsockets uses it too: it is emptied before each call and
 * behind it. */
#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "wire/net_internal.h"
#include "wire/tls.h"

enum {
  RECORD_BYTES = 16 << 10,
  IN_PLACE_LEAST = 4 << 10, /* less of a payload is not worth a record's being read twice */
};

struct net_tls {
  shoal_tls_pipe pipe;
  SSL *ssl;
  bool agreed;
  const uint8_t *in; /* lent */
  size_t in_length;
  shoal_text out;
  size_t out_sent;
};

/* ---- OpenSSL's way to the bytes ---- */

static ssize_t pipe_write(void *self, const void *bytes, size_t length) {
  net_tls *tls = self;
  shoal_text_add(&tls->out, bytes, length);
  if (!tls->out.failed) return (ssize_t)length;
  errno = ENOMEM;
  return -1;
}

static ssize_t pipe_read(void *self, void *to, size_t room) {
  net_tls *tls = self;
  size_t part = tls->in_length < room ? tls->in_length : room;
  if (part == 0) {
    errno = EAGAIN;
    return -1;
  }
  memcpy(to, tls->in, part);
  tls->in += part;
  tls->in_length -= part;
  return (ssize_t)part;
}

/* ---- beginning and end ---- */

/* One for all, with and without a fingerprint. */
static SSL_CTX *make_context(void) {
  static const uint8_t http[] = "\x08http/1.1";
  SSL_CTX *context = shoal_tls_context(true);
  if (context != NULL && SSL_CTX_set_alpn_protos(context, http, sizeof http - 1) == 0) /* 0 is well */
    return context;
  SSL_CTX_free(context);
  return NULL;
}

bool net_tls_begin(net_peer *peer, const char *host, bool pinned) {
  shoal_net *net = peer->net;
  net_tls *tls = calloc(1, sizeof *tls);
  if (tls == NULL) return false;
  shoal_text_init(&tls->out);
  tls->pipe = (shoal_tls_pipe){tls, pipe_write, pipe_read};
  peer->secure = tls;
  if (net->tls == NULL) net->tls = make_context();
  if (net->tls != NULL) tls->ssl = shoal_tls_create(net->tls, host, pinned, &tls->pipe);
  ERR_clear_error();
  return tls->ssl != NULL;
}

void net_tls_free(net_tls *tls) {
  if (tls == NULL) return;
  SSL_free(tls->ssl);
  shoal_text_release(&tls->out);
  free(tls);
}

/* ---- out ---- */

bool net_tls_waits(const net_tls *tls) { return tls != NULL && tls->out_sent < tls->out.length; }

bool net_tls_flush(net_peer *peer) {
  net_tls *tls = peer->secure;
  while (net_tls_waits(tls)) {
    ssize_t sent = send(lws_get_socket_fd(peer->wsi), tls->out.bytes + tls->out_sent,
                        tls->out.length - tls->out_sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    bool failed = sent < 0 && errno != EAGAIN && errno != EINTR;
    if (failed && peer->state == DIALING) net_dial_lost(peer);
    if (failed) net_peer_end(peer, "sending failed: %s", strerror(errno));
    if (sent <= 0) return false;
    tls->out_sent += (size_t)sent;
    net_peer_moved(peer);
  }
  shoal_text_clear(&tls->out);
  tls->out_sent = 0;
  return peer->state != ENDED;
}

bool net_tls_write(net_peer *peer, const uint8_t *bytes, size_t length) {
  ERR_clear_error();
  int wrote = SSL_write(peer->secure->ssl, bytes, (int)length);
  ERR_clear_error();
  if (wrote == (int)length) return true;
  net_peer_end(peer,
               peer->secure->out.failed ? "no memory for what is to be sent" : "sending over TLS failed");
  return false;
}

void net_tls_finish(net_peer *peer) {
  ERR_clear_error();
  SSL_shutdown(peer->secure->ssl);
  ERR_clear_error();
  net_tls_flush(peer);
}

/* ---- in ---- */

long net_tls_verified(const net_tls *tls) { return SSL_get_verify_result(tls->ssl); }

bool net_tls_has_fingerprint(const net_tls *tls, const char *digits) {
  return shoal_tls_has_fingerprint(tls->ssl, digits);
}

void net_tls_agree(net_peer *peer) {
  net_tls *tls = peer->secure;
  ERR_clear_error();
  int result = SSL_do_handshake(tls->ssl), code = SSL_get_error(tls->ssl, result);
  ERR_clear_error();
  if (!net_tls_flush(peer) && peer->state == DIALING) lws_callback_on_writable(peer->wsi);
  if (peer->state != DIALING || code == SSL_ERROR_WANT_READ) return;
  tls->agreed = code == SSL_ERROR_NONE;
  if (tls->agreed)
    net_dial_agreed(peer);
  else
    net_dial_disagreed(peer);
}

/* Nothing more can be read. */
static void stopped(net_peer *peer, int result) {
  int code = SSL_get_error(peer->secure->ssl, result);
  if (code == SSL_ERROR_WANT_READ) return;
  const char *why = code == SSL_ERROR_SSL ? ERR_reason_error_string(ERR_peek_error()) : NULL;
  if (code == SSL_ERROR_ZERO_RETURN)
    net_peer_lost(peer);
  else
    net_peer_end(peer, "TLS failed: %s", why != NULL ? why : "no reason");
}

/* Decrypts a record, into its place where it is more of a long payload. False: there is no more. */
static bool read_record(net_peer *peer) {
  uint8_t *at = NULL;
  size_t room = peer->wire == SHOAL_WIRE_RAW ? net_peer_room(peer, &at) : 0;
  bool in_place = room >= IN_PLACE_LEAST;
  if (!in_place) at = peer->net->fragment;
  if (!in_place || room > RECORD_BYTES) room = RECORD_BYTES;
  ERR_clear_error();
  int got = SSL_read(peer->secure->ssl, at, (int)room);
  if (got <= 0) stopped(peer, got);
  ERR_clear_error();
  if (got <= 0) return false;
  if (in_place)
    net_peer_took(peer, (size_t)got);
  else if (peer->state == DIALING)
    net_dial_receive(peer, at, (size_t)got);
  else
    net_bytes_take(peer, at, (size_t)got);
  return true;
}

void net_tls_receive(net_peer *peer, const uint8_t *bytes, size_t length) {
  net_tls *tls = peer->secure;
  if (peer->state != DIALING && peer->state != OPEN) return;
  tls->in = bytes;
  tls->in_length = length;
  if (!tls->agreed) net_tls_agree(peer);
  while (tls->agreed && (peer->state == DIALING || peer->state == OPEN) && read_record(peer)) {
  }
  tls->in = NULL;
  tls->in_length = 0;
  if (net_tls_waits(tls) && peer->state == OPEN) net_peer_send_soon(peer); /* new keys, say */
}
