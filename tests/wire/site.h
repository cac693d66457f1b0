/* site.h: a loop with pages, clients that speak HTTP to it by hand, and loops that dial it. */
#ifndef SHOAL_TESTS_SITE_H
#define SHOAL_TESTS_SITE_H

#include "wire/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../nn/in_folder.h"
#include "base/clock.h"
#include "base/text.h"
#include "check.h"
#include "wire/http_read.h"

enum { LIMIT_S = PATIENCE_S, BODY_MAX = 4 << 20, BIG_BYTES = 8 << 20, KEPT = 64 };

/* A loop with pages, and what came to it. */
typedef struct site {
  shoal_net *net;
  uint16_t port;
  int begun, asked, left;
  uint64_t id, left_id;   /* the last ones */
  uint64_t streams[KEPT]; /* that are open */
  int streams_count;
  char seen[2000]; /* the last request, as text */
  bool keep_upload;
  /* WebSockets. */
  int opened, closed, received, admitted;
  uint64_t admitted_peer, opened_peer;
  int refuse_with;
  char reason[300], authorization[200], path[200];
} site;

static uint8_t pattern(size_t i) { return (uint8_t)(i * 7 + (i >> 9)); }

static inline void give(site *s, uint64_t id, int status, const void *bytes, size_t length) {
  shoal_http_answer(
      s->net, id,
      &(shoal_answer){.status = status, .type = "text/plain", .body = shoal_blob_of(bytes, length)});
}

static inline bool is(const shoal_request *request, const char *path) {
  return strcmp(request->path, path) == 0;
}

static uint64_t begins(void *self, const shoal_request *request, char **file) {
  site *s = self;
  s->begun++;
  s->id = request->id;
  if (is(request, "/upload")) *file = strdup("upload.part");
  if (is(request, "/nowhere")) *file = strdup("no/such/folder/upload");
  if (is(request, "/early")) give(s, request->id, 403, "no", 2);
  return is(request, "/small") ? 10 : BODY_MAX;
}

static inline void answer_file(site *s, const shoal_request *request) {
  shoal_answer answer = {.status = 200,
                         .type = "application/octet-stream",
                         .file = request->query,
                         .download = "a \"b\"\r\nc\xc3\xa4.bin",
                         .etag = "\"v1\"",
                         .immutable = true};
  shoal_http_answer(s->net, request->id, &answer);
}

static inline void answer_big(site *s, uint64_t id) {
  shoal_blob *blob = shoal_blob_create(BIG_BYTES);
  assert_non_null(blob);
  for (size_t i = 0; i < BIG_BYTES; i++) shoal_blob_bytes(blob)[i] = pattern(i);
  shoal_http_answer(s->net, id, &(shoal_answer){.status = 200, .type = "text/plain", .body = blob});
}

static inline void keep_uploaded(site *s, const shoal_request *request) {
  assert_non_null(request->body_file);
  assert_null(request->body);
  if (s->keep_upload) assert_int_equal(rename(request->body_file, "upload"), 0);
  give(s, request->id, 201, "kept", 4);
}

static inline void asked(void *self, const shoal_request *request) {
  site *s = self;
  s->asked++;
  s->id = request->id;
  int length =
      snprintf(s->seen, sizeof s->seen, "%d %s ? %s from %s host %s auth %s type %s accept %s match %s %llu",
               request->method, request->path, request->query, request->address, request->host,
               request->authorization, request->content_type, request->accept_encoding,
               request->if_none_match, (unsigned long long)request->body_bytes);
  if (is(request, "/later")) return;
  if (is(request, "/echo"))
    give(s, request->id, 200, request->body != NULL ? shoal_blob_bytes(request->body) : (void *)"",
         (size_t)request->body_bytes);
  else if (is(request, "/stream")) {
    shoal_http_answer(s->net, request->id,
                      &(shoal_answer){.status = 200, .type = "text/event-stream", .stream = true});
    if (s->streams_count < KEPT) s->streams[s->streams_count++] = request->id;
  } else if (is(request, "/file"))
    answer_file(s, request);
  else if (is(request, "/big"))
    answer_big(s, request->id);
  else if (is(request, "/upload"))
    keep_uploaded(s, request);
  else if (is(request, "/none"))
    shoal_http_answer(s->net, request->id, &(shoal_answer){.status = 204});
  else if (is(request, "/busy"))
    shoal_http_answer(s->net, request->id, &(shoal_answer){.status = 503, .retry_after_s = 7});
  else
    give(s, request->id, 200, s->seen, (size_t)length);
}

static inline void left(void *self, uint64_t id) {
  site *s = self;
  s->left++;
  s->left_id = id;
}

static inline int admits(void *self, uint64_t peer, const shoal_request *request) {
  site *s = self;
  s->admitted++;
  s->admitted_peer = peer;
  snprintf(s->authorization, sizeof s->authorization, "%s", request->authorization);
  snprintf(s->path, sizeof s->path, "%s?%s", request->path, request->query);
  return s->refuse_with;
}

static inline void opened(void *self, uint64_t peer, const char *address) {
  site *s = self;
  (void)address;
  s->opened++;
  s->opened_peer = peer;
}

static inline void received(void *self, uint64_t peer, shoal_message *message) {
  (void)peer;
  ((site *)self)->received++;
  shoal_message_release(message);
}

static inline void closed(void *self, uint64_t peer, const char *reason) {
  site *s = self;
  (void)peer;
  s->closed++;
  snprintf(s->reason, sizeof s->reason, "%s", reason);
}

/* The calls point to the site, so it stays where it is. */
static shoal_http_calls calls;

static inline void start_with(site *s, shoal_net_config config) {
  shoal_error err = {0};
  *s = (site){0};
  calls = (shoal_http_calls){s, begins, asked, left, admits};
  config.calls = (shoal_net_calls){s, opened, received, closed, NULL};
  config.http = &calls;
  config.payload_max = 1 << 20;
  if (shoal_net_create(&s->net, &config, &err) != SHOAL_OK ||
      shoal_net_listen(s->net, "127.0.0.1:0", &s->port, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
}

static inline void start(site *s) {
  start_with(s, (shoal_net_config){.connections_max = 100, .hello_s = 10, .stall_s = 10});
}

static inline void stop(site *s) {
  shoal_net_destroy(s->net);
  s->net = NULL;
}

/* ---- who asks ---- */

typedef struct client {
  int fd;
  shoal_text in;
  bool ended;
} client;

static inline void join(client *c, const site *s) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(s->port)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  *c = (client){.fd = socket(AF_INET, SOCK_STREAM, 0)};
  assert_int_equal(connect(c->fd, (struct sockaddr *)&to, sizeof to), 0);
  shoal_text_init(&c->in);
}

static inline void leave(client *c) {
  if (c->fd >= 0) close(c->fd);
  c->fd = -1;
  shoal_text_release(&c->in);
}

static inline void pump(site *s, client *c) {
  static char bytes[1 << 16];
  shoal_net_run(s->net, 0.002);
  if (c == NULL || c->fd < 0) return;
  for (ssize_t got; !c->ended && (got = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT)) != -1;) {
    shoal_text_add(&c->in, bytes, (size_t)got);
    c->ended = got == 0;
  }
  if (errno == ECONNRESET) c->ended = true;
}

#define UNTIL(site_, client_, condition)                                                           \
  for (double until_limit = shoal_clock_seconds() + LIMIT_S; !(condition);) {                      \
    if (shoal_clock_seconds() > until_limit) fail_msg("not within %d s: %s", LIMIT_S, #condition); \
    errno = 0;                                                                                     \
    pump(site_, client_);                                                                          \
  }

static inline void say_bytes(site *s, client *c, const void *bytes, size_t length) {
  for (size_t sent = 0; sent < length;) {
    ssize_t now = send(c->fd, (const char *)bytes + sent, length - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (now > 0) sent += (size_t)now;
    if (now < 0 && errno != EAGAIN) return; /* it was closed */
    errno = 0;
    if (sent < length) pump(s, c);
  }
}

static inline void say(site *s, client *c, const char *text) { say_bytes(s, c, text, strlen(text)); }

/* The value of a field in the head at the front of text, or NULL. */
static const char *find_field(const char *text, const char *name) {
  static char value[600];
  const char *end = strstr(text, "\r\n\r\n");
  char line[100];
  snprintf(line, sizeof line, "\r\n%s: ", name);
  const char *at = strstr(text, line);
  if (at == NULL || end == NULL || at > end) return NULL;
  at += strlen(line);
  snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\r"), at);
  return value;
}

/* How many whole answers came; *last is where the last one begins, *body its body. */
static inline int count_answers(const client *c, const char **last, const char **body, size_t *length) {
  int count = 0;
  const char *at = c->in.bytes, *stop_at = at + c->in.length;
  while (at != NULL && at < stop_at) {
    const char *end = strstr(at, "\r\n\r\n"), *said = find_field(at, "Content-Length");
    if (end == NULL) break;
    size_t bytes = said != NULL ? strtoul(said, NULL, 10) : 0;
    if ((size_t)(stop_at - end - 4) < bytes) break;
    if (last != NULL) *last = at;
    if (body != NULL) *body = end + 4;
    if (length != NULL) *length = bytes;
    count++;
    at = end + 4 + bytes;
  }
  return count;
}

static inline int answers(const client *c) { return count_answers(c, NULL, NULL, NULL); }

static inline int status_of(const char *answer) { return atoi(answer + strlen("HTTP/1.1 ")); }

/* Asks on a connection of its own. Returns the status; what came stays in the client. */
static inline int ask(site *s, client *c, const char *request) {
  join(c, s);
  say(s, c, request);
  UNTIL(s, c, answers(c) > 0 || c->ended);
  return c->in.length > 0 ? status_of(c->in.bytes) : 0;
}

/* The same, when only the status counts. */
static inline void check_status(site *s, const char *request, int status) {
  client c;
  int got = ask(s, &c, request);
  if (got != status) fail_msg("%d instead of %d for: %s", got, status, request);
  leave(&c);
}

/* Does the text of the last answer's body have this in it? */
static inline bool body_has(const client *c, const char *text) {
  const char *last, *body;
  size_t length;
  if (count_answers(c, &last, &body, &length) == 0) return false;
  return memmem(body, length, text, strlen(text)) != NULL;
}

static inline void make_file(const char *path, size_t length) {
  FILE *to = fopen(path, "wb");
  assert_non_null(to);
  for (size_t i = 0; i < length; i++) fputc(pattern(i), to);
  assert_int_equal(fclose(to), 0);
}

/* ---- who dials ---- */

/* Lets a loop that dials and a site run. */
#define BOTH(site_, client_, condition)                                                           \
  for (double both_limit = shoal_clock_seconds() + LIMIT_S; !(condition);) {                      \
    if (shoal_clock_seconds() > both_limit) fail_msg("not within %d s: %s", LIMIT_S, #condition); \
    shoal_net_run((site_)->net, 0);                                                               \
    shoal_net_run((client_)->net, 0.002);                                                         \
  }

static inline void start_dialing(site *s) {
  *s = (site){0};
  shoal_error err = {0};
  const shoal_net_config config = {.calls = {s, opened, received, closed, NULL},
                                   .payload_max = 1 << 20,
                                   .connections_max = 100,
                                   .hello_s = 10,
                                   .stall_s = 10};
  if (shoal_net_create(&s->net, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
}

static inline uint64_t dial(site *from, const site *to, const char *path, shoal_way way) {
  char address[300];
  snprintf(address, sizeof address, "127.0.0.1:%u%s", to->port, path);
  return shoal_net_dial(from->net, address, &way);
}

#endif
