/* tls.c: see tls.h. OpenSSL's own BIO of sockets will not do: it raises SIGPIPE. */
#include "wire/tls.h"

#include <errno.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <strings.h>

#include "base/hash.h"
#include "wire/link.h"

/* ---- OpenSSL's way to the bytes ---- */

static bool is_passing(ssize_t result) { return result < 0 && (errno == EAGAIN || errno == EINTR); }

static int bio_write(BIO *bio, const char *bytes, int length) {
  const shoal_tls_pipe *pipe = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  ssize_t wrote = pipe->write(pipe->self, bytes, (size_t)length);
  if (is_passing(wrote)) BIO_set_retry_write(bio);
  return (int)wrote;
}

static int bio_read(BIO *bio, char *to, int room) {
  const shoal_tls_pipe *pipe = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  ssize_t got = pipe->read(pipe->self, to, (size_t)room);
  if (is_passing(got)) BIO_set_retry_read(bio);
  return (int)got;
}

static long bio_control(BIO *bio, int command, long number, void *pointer) {
  (void)bio;
  (void)number;
  (void)pointer;
  return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method;

static void make_method(void) {
  method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "shoal");
  if (method == NULL) return;
  BIO_meth_set_write(method, bio_write);
  BIO_meth_set_read(method, bio_read);
  BIO_meth_set_ctrl(method, bio_control);
}

static BIO *make_bio(shoal_tls_pipe *pipe) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_method);
  BIO *bio = method != NULL ? BIO_new(method) : NULL;
  if (bio == NULL) return NULL;
  BIO_set_data(bio, pipe);
  BIO_set_init(bio, 1);
  return bio;
}

/* ---- contexts and connections ---- */

SSL_CTX *shoal_tls_context(bool judges) {
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  bool ok = context != NULL && SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
            (!judges || SSL_CTX_set_default_verify_paths(context) == 1);
  if (ok) return context;
  SSL_CTX_free(context);
  return NULL;
}

/* The name is told to the server, and its certificate must be for it. */
static bool set_host(SSL *ssl, const char *host, bool pinned) {
  bool numeric = shoal_link_is_numeric(host);
  if (!numeric && SSL_set_tlsext_host_name(ssl, host) != 1) return false;
  if (pinned) return true;
  SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
  if (numeric) return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
  return SSL_set1_host(ssl, host) == 1;
}

SSL *shoal_tls_create(SSL_CTX *context, const char *host, bool pinned, shoal_tls_pipe *pipe) {
  SSL *ssl = SSL_new(context);
  BIO *bio = ssl != NULL ? make_bio(pipe) : NULL;
  if (bio != NULL) SSL_set_bio(ssl, bio, bio);
  if (bio != NULL && set_host(ssl, host, pinned)) {
    SSL_set_connect_state(ssl);
    return ssl;
  }
  SSL_free(ssl);
  return NULL;
}

bool shoal_tls_digest_key(const X509 *certificate, uint8_t digest[SHOAL_SHA256_BYTES], unsigned *length) {
  unsigned char *der = NULL;
  int bytes = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
  bool done = bytes > 0 && EVP_Digest(der, (size_t)bytes, digest, length, EVP_sha256(), NULL) == 1;
  OPENSSL_free(der);
  return done;
}

bool shoal_tls_has_fingerprint(const SSL *ssl, const char *digits) {
  uint8_t digest[SHOAL_SHA256_BYTES];
  unsigned digest_bytes = sizeof digest;
  X509 *certificate = SSL_get1_peer_certificate(ssl);
  if (certificate == NULL) return false;
  char hex[SHOAL_SHA256_HEX];
  bool has = false;
  for (int whole = 0; whole < 2 && !has; whole++) {
    bool ok = whole ? X509_digest(certificate, EVP_sha256(), digest, &digest_bytes) == 1
                    : shoal_tls_digest_key(certificate, digest, &digest_bytes);
    if (ok) shoal_hex(digest, sizeof digest, hex);
    has = ok && strcasecmp(hex, digits) == 0;
  }
  X509_free(certificate);
  return has;
}
