/* net_tls.c: TLS of a connection that was dialled, by OpenSSL.
 *
 * OpenSSL sees no socket. It reads from the bytes that libwebsockets has just read, which are lent for the
 * call and always used up: what is less than a record OpenSSL keeps. It writes into `out`, which is given to
 * the socket as that takes it; nobody encrypts more while there is some left, so `out` stays small.
 *
 * OpenSSL's list of errors is the thread's, and libwebsockets uses it too: it is emptied before each call and
 * behind it. */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/hash.h"
#include "net/net_internal.h"

enum {
  RECORD_BYTES = 16 << 10,
  IN_PLACE_LEAST = 4 << 10, /* less of a payload is not worth a record's being read twice */
};

struct net_tls {
  SSL *ssl;
  bool agreed;
  const uint8_t *in; /* lent */
  size_t in_length;
  shoal_text out;
  size_t out_sent;
};

/* ---- OpenSSL's way to the bytes ---- */

static int bio_write(BIO *bio, const char *bytes, int length) {
  net_tls *tls = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  shoal_text_add(&tls->out, bytes, (size_t)length);
  return tls->out.failed ? -1 : length;
}

static int bio_read(BIO *bio, char *to, int room) {
  net_tls *tls = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  size_t part = tls->in_length < (size_t)room ? tls->in_length : (size_t)room;
  if (part == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  memcpy(to, tls->in, part);
  tls->in += part;
  tls->in_length -= part;
  return (int)part;
}

static long bio_control(BIO *bio, int command, long number, void *pointer) {
  (void)bio;
  (void)number;
  (void)pointer;
  return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method;

static void make_method(void) {
  method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "shoal dial");
  if (method == NULL) return;
  BIO_meth_set_write(method, bio_write);
  BIO_meth_set_read(method, bio_read);
  BIO_meth_set_ctrl(method, bio_control);
}

static BIO *make_bio(net_tls *tls) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_method);
  BIO *bio = method != NULL ? BIO_new(method) : NULL;
  if (bio == NULL) return NULL;
  BIO_set_data(bio, tls);
  BIO_set_init(bio, 1);
  return bio;
}

/* ---- beginning and end ---- */

static SSL_CTX *make_context(void) {
  static const uint8_t http[] = "\x08http/1.1";
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  bool ok = context != NULL && SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
            SSL_CTX_set_default_verify_paths(context) == 1 &&
            SSL_CTX_set_alpn_protos(context, http, sizeof http - 1) == 0; /* 0 is well */
  if (ok) return context;
  SSL_CTX_free(context);
  return NULL;
}

static bool is_numeric(const char *host) {
  uint8_t bytes[16];
  return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* The name is told to the server, and its certificate must be for it. */
static bool set_host(SSL *ssl, const char *host, bool pinned) {
  bool numeric = is_numeric(host);
  if (!numeric && SSL_set_tlsext_host_name(ssl, host) != 1) return false;
  if (pinned) return true;
  SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
  if (numeric) return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
  return SSL_set1_host(ssl, host) == 1;
}

static bool set_up(shoal_net *net, net_tls *tls, const char *host, bool pinned) {
  if (net->tls == NULL) net->tls = make_context();
  tls->ssl = net->tls != NULL ? SSL_new(net->tls) : NULL;
  BIO *bio = tls->ssl != NULL ? make_bio(tls) : NULL;
  if (bio == NULL) return false;
  SSL_set_bio(tls->ssl, bio, bio);
  SSL_set_connect_state(tls->ssl);
  return set_host(tls->ssl, host, pinned);
}

bool net_tls_begin(net_peer *peer, const char *host, bool pinned) {
  net_tls *tls = calloc(1, sizeof *tls);
  if (tls == NULL) return false;
  shoal_text_init(&tls->out);
  peer->secure = tls;
  bool ok = set_up(peer->net, tls, host, pinned);
  ERR_clear_error();
  return ok;
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
  uint8_t digest[SHOAL_SHA256_BYTES];
  unsigned digest_bytes = sizeof digest;
  X509 *certificate = SSL_get1_peer_certificate(tls->ssl);
  if (certificate == NULL) return false;
  bool ok = X509_digest(certificate, EVP_sha256(), digest, &digest_bytes) == 1;
  X509_free(certificate);
  char hex[SHOAL_SHA256_HEX];
  if (ok) shoal_hex(digest, sizeof digest, hex);
  return ok && strcasecmp(hex, digits) == 0;
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
