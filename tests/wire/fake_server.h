/* fake_server.h: a server for tests that answers with the bytes it was told, in a thread of its own.
 *
 * Every request gets the next answer; what was asked is kept. With a certificate it speaks TLS. */
#ifndef SHOAL_TESTS_FAKE_SERVER_H
#define SHOAL_TESTS_FAKE_SERVER_H

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

enum { FAKE_ANSWERS_MAX = 64, FAKE_ASKED_MAX = 1 << 16 };

typedef struct fake_answer {
  const char *text;
  size_t length;  /* 0: that of the text */
  bool closes;    /* afterwards */
  bool silent;    /* sends nothing and waits until the other end closes */
  bool unread;    /* answers after the head, without reading the body, and closes */
  int slow_bytes; /* sends so many at a time, with a pause of a few milliseconds; 0: all at once */
} fake_answer;

typedef struct fake_server {
  int listens;
  uint16_t port;
  SSL_CTX *tls;
  pthread_t thread;
  fake_answer answers[FAKE_ANSWERS_MAX];
  int answers_count;
  char *asked[FAKE_ANSWERS_MAX]; /* head and body, as they came */
  size_t asked_bytes[FAKE_ANSWERS_MAX];
  int asked_count, connections;
} fake_server;

typedef struct fake_connection {
  int fd;
  SSL *ssl;
} fake_connection;

static inline ssize_t fake_read(fake_connection *c, char *to, size_t room) {
  return c->ssl ? SSL_read(c->ssl, to, (int)room) : recv(c->fd, to, room, 0);
}

static inline void fake_write(fake_connection *c, const char *from, size_t length, int at_once) {
  while (length > 0) {
    size_t piece = at_once > 0 && (size_t)at_once < length ? (size_t)at_once : length;
    ssize_t n = c->ssl ? SSL_write(c->ssl, from, (int)piece) : send(c->fd, from, piece, MSG_NOSIGNAL);
    if (n <= 0) return;
    from += n;
    length -= (size_t)n;
    if (at_once > 0) usleep(2000);
  }
}

/* One request; false when the other end is gone. */
static inline bool fake_hear(fake_server *s, fake_connection *c, bool head_only) {
  char *text = malloc(FAKE_ASKED_MAX + 1);
  size_t length = 0, wanted = SIZE_MAX;
  while (length < wanted && length < FAKE_ASKED_MAX) {
    ssize_t n = fake_read(c, text + length, FAKE_ASKED_MAX - length);
    if (n <= 0) break;
    length += (size_t)n;
    text[length] = 0;
    char *end = strstr(text, "\r\n\r\n");
    if (!end || wanted != SIZE_MAX) continue;
    char *body = strstr(text, "Content-Length: ");
    size_t body_bytes = body && body < end ? strtoul(body + 16, NULL, 10) : 0;
    wanted = (size_t)(end - text) + 4 + (head_only ? 0 : body_bytes);
  }
  if (wanted == SIZE_MAX) {
    free(text);
    return false;
  }
  char small[4096];
  for (size_t rest = wanted > length ? wanted - length : 0;
       rest > 0;) { /* a long body is counted, not kept */
    ssize_t n = fake_read(c, small, sizeof small);
    if (n <= 0) break;
    rest -= (size_t)n < rest ? (size_t)n : rest;
    if (rest == 0) length = wanted;
  }
  s->asked[s->asked_count] = text;
  s->asked_bytes[s->asked_count] = length;
  __atomic_add_fetch(&s->asked_count, 1, __ATOMIC_SEQ_CST);
  return true;
}

static inline void fake_serve(fake_server *s, fake_connection *c) {
  while (s->asked_count < s->answers_count) {
    const fake_answer *answer = &s->answers[s->asked_count];
    if (!fake_hear(s, c, answer->unread)) return;
    char byte;
    if (answer->silent && fake_read(c, &byte, 1) <= 0) return;
    fake_write(c, answer->text, answer->length ? answer->length : strlen(answer->text), answer->slow_bytes);
    if (answer->unread) { /* lets the answer arrive before what was not read resets the connection */
      shutdown(c->fd, SHUT_WR);
      usleep(200000);
    }
    if (answer->closes || answer->unread) return;
  }
}

static inline void *fake_run(void *self) {
  fake_server *s = self;
  while (s->asked_count < s->answers_count) {
    fake_connection c = {.fd = accept(s->listens, NULL, NULL)};
    if (c.fd < 0) break;
    s->connections++;
    if (s->tls) {
      c.ssl = SSL_new(s->tls);
      SSL_set_fd(c.ssl, c.fd);
    }
    if (!c.ssl || SSL_accept(c.ssl) == 1) fake_serve(s, &c);
    if (c.ssl) SSL_shutdown(c.ssl);
    SSL_free(c.ssl);
    close(c.fd);
  }
  return NULL;
}

/* certificate: a PEM file with its key beside it, key.pem; NULL: no TLS. */
static inline void fake_start(fake_server *s, const char *certificate, const fake_answer *answers,
                              int answers_count) {
  *s = (fake_server){.answers_count = answers_count};
  memcpy(s->answers, answers, (size_t)answers_count * sizeof *answers);
  if (certificate) {
    s->tls = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_use_certificate_chain_file(s->tls, certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(s->tls, "key.pem", SSL_FILETYPE_PEM), 1);
  }
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof at;
  s->listens = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(bind(s->listens, (struct sockaddr *)&at, sizeof at), 0);
  assert_int_equal(listen(s->listens, 8), 0);
  assert_int_equal(getsockname(s->listens, (struct sockaddr *)&at, &length), 0);
  s->port = ntohs(at.sin_port);
  assert_int_equal(pthread_create(&s->thread, NULL, fake_run, s), 0);
}

static inline void fake_stop(fake_server *s) {
  shutdown(s->listens, SHUT_RDWR);
  pthread_join(s->thread, NULL);
  close(s->listens);
  SSL_CTX_free(s->tls);
  for (int i = 0; i < s->asked_count; i++) free(s->asked[i]);
}

#endif
