/* tls.h: the client's side of TLS, by OpenSSL: who is trusted, and how OpenSSL gets to the bytes.
 *
 * OpenSSL sees no socket. It reads and writes through a pipe of the caller's, which never blocks, so whoever
 * connects waits in its own way: the net in its loop (net_tls.c), fetch with poll (fetch_wire.c).
 *
 * A server is trusted whose certificate is valid for the host, by the authorities that this machine knows. Or
 * it is pinned: its certificate is not judged, and the caller asks whether its key has the right fingerprint once
 * the two have agreed, before anything is said.
 *
 * Ownership: contexts and connections are the caller's, for SSL_CTX_free and SSL_free; a pipe outlives its
 * connection. Threads: any, each with connections of its own. */
#ifndef SHOAL_WIRE_TLS_H
#define SHOAL_WIRE_TLS_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/hash.h"

/* As send and recv of a socket that does not block: how many bytes, or -1 with errno. */
typedef struct shoal_tls_pipe {
  void *self;
  ssize_t (*write)(void *self, const void *bytes, size_t length);
  ssize_t (*read)(void *self, void *to, size_t room);
} shoal_tls_pipe;

/* TLS 1.2 and later. judges: it knows this machine's authorities; without, it is for pinned servers alone.
 * NULL when it cannot be made. */
SSL_CTX *shoal_tls_context(bool judges);
/* A connection that is to be agreed on (SSL_do_handshake). The host is told to the server, unless it is an
 * address in figures. NULL when it cannot be made. */
SSL *shoal_tls_create(SSL_CTX *context, const char *host, bool pinned, shoal_tls_pipe *pipe);
/* Whether the server's public key has this SHA-256: 64 hexadecimal digits, in either case. That of the whole
 * certificate does as well, which earlier links have, and those who start a cluster by hand. */
bool shoal_tls_has_fingerprint(const SSL *ssl, const char *digits);

/* SHA-256 of a certificate's public key (SubjectPublicKeyInfo in DER). */
bool shoal_tls_digest_key(const X509 *certificate, uint8_t digest[SHOAL_SHA256_BYTES], unsigned *length);

#endif
