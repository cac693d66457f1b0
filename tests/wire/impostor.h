/* impostor.h: a server for tests that answers one dial as it was told, in a thread of its own.
 *
 * It reads the head of a request, or nothing when it has no answer, says the answer, does what comes then, and waits
 * for the other end to close. What went wrong in the thread is in `wrong`. */
#ifndef SHOAL_TESTS_IMPOSTOR_H
#define SHOAL_TESTS_IMPOSTOR_H

#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

typedef struct impostor {
  const char *answer; /* "@" in it is what the key of the request is to be answered with; NULL: none */
  size_t at_once;     /* bytes of it in a piece; 0: all */
  bool tls;           /* with cert.pem and key.pem */
  bool hangs_up;      /* closes at once */
  void (*then)(struct impostor *self);

  uint16_t port;
  int listens, fd;
  SSL_CTX *context;
  SSL *ssl;
  pthread_t thread;
  char asked[8192];
  size_t asked_bytes;
  bool wrong;
} impostor;

static inline ssize_t impostor_read(impostor *i, void *to, size_t room) {
  return i->ssl != NULL ? SSL_read(i->ssl, to, (int)room) : recv(i->fd, to, room, 0);
}

static inline void impostor_write(impostor *i, const void *bytes, size_t length) {
  ssize_t n =
      i->ssl != NULL ? SSL_write(i->ssl, bytes, (int)length) : send(i->fd, bytes, length, MSG_NOSIGNAL);
  if (n != (ssize_t)length) i->wrong = true;
}

static inline void impostor_read_all(impostor *i, void *to, size_t length) {
  for (size_t done = 0; done < length;) {
    ssize_t n = impostor_read(i, (char *)to + done, length - done);
    if (n <= 0) i->wrong = true;
    if (n <= 0) return;
    done += (size_t)n;
  }
}

/* What RFC 6455 wants to hear for the key. */
static inline void impostor_accept(const impostor *i, char out[64]) {
  char both[128] = "";
  uint8_t digest[EVP_MAX_MD_SIZE];
  const char *key = strstr(i->asked, "\r\nSec-WebSocket-Key: ");
  if (key != NULL) snprintf(both, sizeof both, "%.24s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key + 21);
  EVP_Digest(both, strlen(both), digest, NULL, EVP_sha1(), NULL);
  EVP_EncodeBlock((uint8_t *)out, digest, 20);
}

static inline void impostor_answer(impostor *i) {
  while (strstr(i->asked, "\r\n\r\n") == NULL) {
    ssize_t n = impostor_read(i, i->asked + i->asked_bytes, sizeof i->asked - 1 - i->asked_bytes);
    if (n <= 0) return;
    i->asked_bytes += (size_t)n;
  }
  static char text[1 << 16];
  char accept[64];
  size_t length = 0;
  impostor_accept(i, accept);
  for (const char *at = i->answer; *at != 0 && length < sizeof text - 64; at++)
    length += (size_t)snprintf(text + length, 64, *at == '@' ? "%s" : "%.1s", *at == '@' ? accept : at);
  for (size_t sent = 0; sent < length;) {
    size_t part = i->at_once > 0 && i->at_once < length - sent ? i->at_once : length - sent;
    if (i->ssl != NULL)
      SSL_write(i->ssl, text + sent, (int)part);
    else
      (void)!send(i->fd, text + sent, part, MSG_NOSIGNAL); /* it may have hung up */
    sent += part;
    if (i->at_once > 0) usleep(1000);
  }
}

static inline void *impostor_run(void *self) {
  impostor *i = self;
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE); /* OpenSSL's, when the other end hung up */
  pthread_sigmask(SIG_BLOCK, &pipe, NULL);
  i->fd = accept(i->listens, NULL, NULL);
  if (i->fd < 0) return NULL;
  bool ready = true;
  if (i->tls) {
    i->ssl = SSL_new(i->context);
    SSL_set_fd(i->ssl, i->fd);
    ready = SSL_accept(i->ssl) == 1;
  }
  if (ready && i->answer != NULL) impostor_answer(i);
  if (ready && i->then != NULL) i->then(i);
  char rest[4096];
  while (ready && !i->hangs_up && impostor_read(i, rest, sizeof rest) > 0) {
  }
  SSL_free(i->ssl);
  close(i->fd);
  return NULL;
}

static inline void impostor_start(impostor *i) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof at;
  if (i->tls) {
    i->context = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_use_certificate_chain_file(i->context, "cert.pem"), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(i->context, "key.pem", SSL_FILETYPE_PEM), 1);
  }
  i->listens = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(bind(i->listens, (struct sockaddr *)&at, sizeof at), 0);
  assert_int_equal(listen(i->listens, 8), 0);
  assert_int_equal(getsockname(i->listens, (struct sockaddr *)&at, &length), 0);
  i->port = ntohs(at.sin_port);
  assert_int_equal(pthread_create(&i->thread, NULL, impostor_run, i), 0);
}

/* The other end has closed, or never came. */
static inline void impostor_stop(impostor *i) {
  shutdown(i->listens, SHUT_RDWR);
  pthread_join(i->thread, NULL);
  close(i->listens);
  SSL_CTX_free(i->context);
  assert_false(i->wrong);
}

#endif
