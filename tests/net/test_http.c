/* HTTP on the port of a net, spoken by hand: what must be answered, and what becomes of those who are slow, large or
 * gone. */
#include "net/http.h"

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
#include "net/http_read.h"

enum { LIMIT_S = 20, BODY_MAX = 4 << 20, BIG_BYTES = 8 << 20, KEPT = 64 };

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

static void give(site *s, uint64_t id, int status, const void *bytes, size_t length) {
  shoal_http_answer(
      s->net, id,
      &(shoal_answer){.status = status, .type = "text/plain", .body = shoal_blob_of(bytes, length)});
}

static bool is(const shoal_request *request, const char *path) { return strcmp(request->path, path) == 0; }

static uint64_t begins(void *self, const shoal_request *request, char **file) {
  site *s = self;
  s->begun++;
  s->id = request->id;
  if (is(request, "/upload")) *file = strdup("upload.part");
  if (is(request, "/nowhere")) *file = strdup("no/such/folder/upload");
  if (is(request, "/early")) give(s, request->id, 403, "no", 2);
  return is(request, "/small") ? 10 : BODY_MAX;
}

static void answer_file(site *s, const shoal_request *request) {
  shoal_answer answer = {.status = 200,
                         .type = "application/octet-stream",
                         .file = request->query,
                         .download = "a \"b\"\r\nc\xc3\xa4.bin",
                         .etag = "\"v1\"",
                         .immutable = true};
  shoal_http_answer(s->net, request->id, &answer);
}

static void answer_big(site *s, uint64_t id) {
  shoal_blob *blob = shoal_blob_create(BIG_BYTES);
  assert_non_null(blob);
  for (size_t i = 0; i < BIG_BYTES; i++) shoal_blob_bytes(blob)[i] = pattern(i);
  shoal_http_answer(s->net, id, &(shoal_answer){.status = 200, .type = "text/plain", .body = blob});
}

static void keep_uploaded(site *s, const shoal_request *request) {
  assert_non_null(request->body_file);
  assert_null(request->body);
  if (s->keep_upload) assert_int_equal(rename(request->body_file, "upload"), 0);
  give(s, request->id, 201, "kept", 4);
}

static void asked(void *self, const shoal_request *request) {
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

static void left(void *self, uint64_t id) {
  site *s = self;
  s->left++;
  s->left_id = id;
}

static int admits(void *self, uint64_t peer, const shoal_request *request) {
  site *s = self;
  s->admitted++;
  s->admitted_peer = peer;
  snprintf(s->authorization, sizeof s->authorization, "%s", request->authorization);
  snprintf(s->path, sizeof s->path, "%s?%s", request->path, request->query);
  return s->refuse_with;
}

static void opened(void *self, uint64_t peer, const char *address) {
  site *s = self;
  (void)address;
  s->opened++;
  s->opened_peer = peer;
}

static void received(void *self, uint64_t peer, shoal_message *message) {
  (void)peer;
  ((site *)self)->received++;
  shoal_message_release(message);
}

static void closed(void *self, uint64_t peer, const char *reason) {
  site *s = self;
  (void)peer;
  s->closed++;
  snprintf(s->reason, sizeof s->reason, "%s", reason);
}

/* The calls point to the site, so it stays where it is. */
static shoal_http_calls calls;

static void start_with(site *s, shoal_net_config config) {
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

static void start(site *s) {
  start_with(s, (shoal_net_config){.connections_max = 100, .hello_s = 10, .stall_s = 10});
}

static void stop(site *s) {
  shoal_net_destroy(s->net);
  s->net = NULL;
}

/* ---- who asks ---- */

typedef struct client {
  int fd;
  shoal_text in;
  bool ended;
} client;

static void join(client *c, const site *s) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(s->port)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  *c = (client){.fd = socket(AF_INET, SOCK_STREAM, 0)};
  assert_int_equal(connect(c->fd, (struct sockaddr *)&to, sizeof to), 0);
  shoal_text_init(&c->in);
}

static void leave(client *c) {
  if (c->fd >= 0) close(c->fd);
  c->fd = -1;
  shoal_text_release(&c->in);
}

static void pump(site *s, client *c) {
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

static void say_bytes(site *s, client *c, const void *bytes, size_t length) {
  for (size_t sent = 0; sent < length;) {
    ssize_t now = send(c->fd, (const char *)bytes + sent, length - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (now > 0) sent += (size_t)now;
    if (now < 0 && errno != EAGAIN) return; /* it was closed */
    errno = 0;
    if (sent < length) pump(s, c);
  }
}

static void say(site *s, client *c, const char *text) { say_bytes(s, c, text, strlen(text)); }

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
static int count_answers(const client *c, const char **last, const char **body, size_t *length) {
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

static int answers(const client *c) { return count_answers(c, NULL, NULL, NULL); }

static int status_of(const char *answer) { return atoi(answer + strlen("HTTP/1.1 ")); }

/* Asks on a connection of its own. Returns the status; what came stays in the client. */
static int ask(site *s, client *c, const char *request) {
  join(c, s);
  say(s, c, request);
  UNTIL(s, c, answers(c) > 0 || c->ended);
  return c->in.length > 0 ? status_of(c->in.bytes) : 0;
}

/* The same, when only the status counts. */
static void check_status(site *s, const char *request, int status) {
  client c;
  int got = ask(s, &c, request);
  if (got != status) fail_msg("%d instead of %d for: %s", got, status, request);
  leave(&c);
}

/* Does the text of the last answer's body have this in it? */
static bool body_has(const client *c, const char *text) {
  const char *last, *body;
  size_t length;
  if (count_answers(c, &last, &body, &length) == 0) return false;
  return memmem(body, length, text, strlen(text)) != NULL;
}

/* ---- requests ---- */

static void a_request_is_seen_and_answered(void **state) {
  (void)state;
  site s;
  client c;
  start(&s);
  int status =
      ask(&s, &c,
          "GET /api/v1/a%20b?x=1&y=%20z HTTP/1.1\r\nHost: here:80\r\nauthorization:  Bearer t \r\n"
          "Content-Type: a/b\r\nACCEPT-ENCODING: gzip\r\nIf-None-Match: \"e\"\r\nX-Other: 1\r\n\r\n");
  assert_int_equal(status, 200);
  assert_string_equal(s.seen, "0 /api/v1/a b ? x=1&y=%20z from 127.0.0.1 host here:80 auth Bearer t type a/b "
                              "accept gzip match \"e\" 0");
  assert_true(body_has(&c, "/api/v1/a b"));
  const char *head = c.in.bytes;
  assert_string_equal(find_field(head, "Content-Type"), "text/plain");
  assert_string_equal(find_field(head, "X-Content-Type-Options"), "nosniff");
  assert_string_equal(find_field(head, "Referrer-Policy"), "no-referrer");
  assert_non_null(strstr(find_field(head, "Content-Security-Policy"), "frame-ancestors 'none'"));
  assert_string_equal(find_field(head, "Cache-Control"), "no-cache");
  assert_non_null(strstr(find_field(head, "Date"), " GMT"));
  assert_null(find_field(head, "Server"));
  assert_null(find_field(head, "Connection"));
  leave(&c);
  check_status(&s, "GET http://here/x?y HTTP/1.1\r\nHost: here\r\n\r\n", 200);
  assert_non_null(strstr(s.seen, "0 /x ? y"));
  check_status(&s, "PATCH /x HTTP/1.1\r\nHost: here\r\n\r\n", 200);
  assert_int_equal(s.seen[0], '0' + SHOAL_METHOD_OTHER);
  check_status(&s, "DELETE /none HTTP/1.1\r\nHost: here\r\n\r\n", 204);
  assert_int_equal(s.seen[0], '0' + SHOAL_DELETE);
  assert_int_equal(ask(&s, &c, "GET /busy HTTP/1.0\r\n\r\n"), 503);
  assert_string_equal(find_field(c.in.bytes, "Retry-After"), "7");
  assert_string_equal(find_field(c.in.bytes, "Connection"), "close");
  UNTIL(&s, &c, c.ended);
  leave(&c);
  assert_int_equal(s.left + s.opened + s.closed, 0); /* they are no peers */
  stop(&s);
}

static void many_requests_on_one_connection(void **state) {
  (void)state;
  site s;
  client c;
  start(&s);
  join(&c, &s);
  for (int i = 1; i <= 200; i++) {
    char request[100];
    snprintf(request, sizeof request, "GET /%d HTTP/1.%d\r\nHost: x\r\n%s\r\n", i, i % 2,
             i % 2 ? "" : "Connection: keep-alive\r\n");
    say(&s, &c, request);
    UNTIL(&s, &c, answers(&c) == i);
    snprintf(request, sizeof request, "0 /%d ?", i);
    assert_true(body_has(&c, request));
  }
  say(&s, &c,
      "GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\nGET /never HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, c.ended);
  assert_int_equal(answers(&c), 201);
  assert_int_equal(s.asked, 201);
  leave(&c);
  stop(&s);
}

static void requests_sent_at_once_are_answered_in_order(void **state) {
  (void)state;
  enum { COUNT = 6000 };
  site s;
  client c;
  shoal_text all;
  start(&s);
  join(&c, &s);
  shoal_text_init(&all);
  for (int i = 0; i < COUNT; i++) {
    if (i % 3 == 0)
      shoal_text_addf(&all, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n%08d\r\n", i);
    else if (i % 3 == 1)
      shoal_text_addf(&all,
                      "PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                      "3;x=y\r\n%.3s\r\n5\r\n%05d\r\n0\r\nTrailer: 1\r\n\r\n",
                      "000", i);
    else
      shoal_text_addf(&all, "GET /%08d HTTP/1.1\r\nHost: x\r\n\r\n", i);
  }
  assert_true(all.length > 200000); /* more than is kept before no more is read */
  say_bytes(&s, &c, all.bytes, all.length);
  UNTIL(&s, &c, s.asked == COUNT);
  UNTIL(&s, &c, answers(&c) == COUNT);
  const char *at = c.in.bytes;
  for (int i = 0; i < COUNT; i++) {
    char number[16];
    snprintf(number, sizeof number, "%08d", i);
    at = strstr(at, number);
    if (at == NULL) fail_msg("answer %d is missing or out of order", i);
  }
  assert_int_equal(s.asked, COUNT);
  shoal_text_release(&all);
  leave(&c);
  stop(&s);
}

static void a_request_byte_by_byte_is_understood(void **state) {
  (void)state;
  site s;
  client c;
  start(&s);
  join(&c, &s);
  const char *request =
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n\r\nPOST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
      "\r\nabc";
  for (size_t i = 0; i < strlen(request); i++) {
    say_bytes(&s, &c, request + i, 1);
    pump(&s, &c);
  }
  UNTIL(&s, &c, answers(&c) == 2);
  assert_true(body_has(&c, "abc"));
  assert_non_null(strstr(c.in.bytes, "\r\n\r\nhello"));
  leave(&c);
  stop(&s);
}

static void head_sends_no_body(void **state) {
  (void)state;
  site s;
  client c;
  start(&s);
  join(&c, &s);
  say(&s, &c, "HEAD /big HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, c.in.length > 0 && strstr(c.in.bytes, "\r\n\r\n") != NULL);
  assert_int_equal(strtoul(find_field(c.in.bytes, "Content-Length"), NULL, 10), BIG_BYTES);
  assert_int_equal(s.seen[0], '0' + SHOAL_GET);
  shoal_text_clear(&c.in);
  say(&s, &c, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, answers(&c) == 1);
  assert_int_equal(status_of(c.in.bytes), 200);
  leave(&c);
  stop(&s);
}

static void what_is_no_http_is_refused(void **state) {
  (void)state;
  site s;
  start(&s);
  static const struct {
    int status;
    const char *request;
  } CASES[] = {
      {400, "GET /\r\n\r\n"},
      {400, "GET  / HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET / HTTX/1.1\r\nHost: x\r\n\r\n"},
      {505, "GET / HTTP/2.0\r\nHost: x\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: x\r\nbad name: y\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost : x\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: a\001b\r\n\r\n"},
      {400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n"},
      {400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 5\r\n\r\n"},
      {400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n"},
      {400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n"},
      {400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {501, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"},
      {400, "GET /../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a/%2e%2e/b HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a/..%2fb HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a%2fb HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a%00b HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a%0d%0ab HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a%7f HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a%ff HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a% HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a%4 HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a%zz HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET a HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET * HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "GET http://x HTTP/1.1\r\nHost: x\r\n\r\n"},
      {400, "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
    check_status(&s, CASES[i].request, CASES[i].status);
  assert_int_equal(s.begun, 0);
  client c;
  assert_int_equal(ask(&s, &c, "GET /.. HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
  assert_true(body_has(&c, "{\"error\":{\"code\":\"bad_request\",\"text\":\""));
  UNTIL(&s, &c, c.ended);
  leave(&c);
  check_status(&s, "GET //a///b/./c/. HTTP/1.1\r\nHost: x\r\n\r\n", 200);
  assert_non_null(strstr(s.seen, "0 /a/b/c/ ?"));
  stop(&s);
}

static void a_head_that_is_too_long_is_refused(void **state) {
  (void)state;
  site s;
  client c;
  shoal_text text;
  start(&s);
  shoal_text_init(&text);
  shoal_text_addf(&text, "GET / HTTP/1.1\r\nHost: x\r\nX-Long: ");
  while (text.length < SHOAL_HTTP_HEAD_MAX) shoal_text_addf(&text, "0123456789");
  shoal_text_addf(&text, "\r\n\r\n");
  assert_int_equal(ask(&s, &c, text.bytes), 431);
  leave(&c);
  shoal_text_clear(&text);
  shoal_text_addf(&text, "GET / HTTP/1.1\r\nHost: x\r\n");
  for (int i = 0; i < SHOAL_HTTP_FIELDS_MAX; i++) shoal_text_addf(&text, "X-%d: y\r\n", i);
  shoal_text_addf(&text, "\r\n");
  assert_int_equal(ask(&s, &c, text.bytes), 400);
  leave(&c);
  shoal_text_release(&text);
  stop(&s);
}

/* ---- bodies ---- */

/* Sends a body that comes back. */
static void check_echo(site *s, size_t length, bool chunked) {
  client c;
  shoal_text text;
  shoal_text_init(&text);
  join(&c, s);
  shoal_text_addf(&text, "POST /echo HTTP/1.1\r\nHost: x\r\n");
  if (!chunked) shoal_text_addf(&text, "Content-Length: %zu\r\n\r\n", length);
  if (chunked) shoal_text_addf(&text, "Transfer-Encoding: chunked\r\n\r\n");
  for (size_t i = 0, part; i < length; i += part) {
    part = length - i < 70001 ? length - i : 70001;
    if (chunked) shoal_text_addf(&text, "%zX\r\n", part);
    for (size_t k = 0; k < part; k++) shoal_text_add(&text, &(uint8_t){pattern(i + k)}, 1);
    if (chunked) shoal_text_addf(&text, "\r\n");
  }
  if (chunked) shoal_text_addf(&text, "0\r\n\r\n");
  say_bytes(s, &c, text.bytes, text.length);
  UNTIL(s, &c, answers(&c) == 1 || c.ended);
  const char *body;
  size_t got;
  assert_int_equal(count_answers(&c, NULL, &body, &got), 1);
  assert_int_equal(status_of(c.in.bytes), 200);
  assert_int_equal(got, length);
  for (size_t i = 0; i < length; i++)
    if ((uint8_t)body[i] != pattern(i)) fail_msg("byte %zu of %zu is wrong", i, length);
  shoal_text_release(&text);
  leave(&c);
}

static void bodies_come_whole(void **state) {
  (void)state;
  site s;
  start(&s);
  static const size_t LENGTHS[] = {0, 1, 16383, 16384, 16385, 100000, BODY_MAX};
  for (size_t i = 0; i < sizeof LENGTHS / sizeof *LENGTHS; i++) {
    check_echo(&s, LENGTHS[i], false);
    check_echo(&s, LENGTHS[i], true);
  }
  client c;
  join(&c, &s);
  say(&s, &c, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  UNTIL(&s, &c, answers(&c) == 1);
  assert_int_equal(status_of(c.in.bytes), 100);
  say(&s, &c, "hi");
  UNTIL(&s, &c, answers(&c) == 2);
  assert_true(body_has(&c, "hi"));
  leave(&c);
  assert_int_equal(s.left, 0);
  stop(&s);
}

static void bodies_that_are_too_large_are_refused(void **state) {
  (void)state;
  site s;
  start(&s);
  check_status(&s, "POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n", 413);
  check_status(&s, "POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n",
               413);
  check_status(
      &s, "POST /small HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n", 413);
  check_status(&s, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551615\r\n\r\n", 413);
  assert_int_equal(s.asked, 0);
  assert_int_equal(s.left, 4); /* who saw them begin hears that they are over */
  check_status(
      &s, "POST /small HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\na\r\nhello worl\r\n0\r\n\r\n",
      200);
  check_status(&s, "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n", 400);
  check_status(&s, "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", 400);
  check_status(&s, "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0000000000000001\r\n",
               400);
  assert_int_equal(s.left, 7);
  /* Who is answered before the body has come is not listened to any longer. */
  client c;
  assert_int_equal(ask(&s, &c, "POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc"), 403);
  UNTIL(&s, &c, c.ended);
  assert_string_equal(find_field(c.in.bytes, "Connection"), "close");
  leave(&c);
  assert_int_equal(s.left, 7);
  assert_int_equal(s.asked, 1);
  stop(&s);
}

static void uploads_go_to_a_file(void **state) {
  (void)state;
  site s;
  client c;
  start_with(&s, (shoal_net_config){.connections_max = 100, .hello_s = 10, .stall_s = 0.4});
  check_status(&s, "PUT /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", 201);
  assert_int_equal(files_here(), 0); /* not moved away: removed */
  s.keep_upload = true;
  check_status(&s,
               "PUT /upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
               201);
  assert_int_equal(files_here(), 1);
  assert_int_equal(system("test \"$(cat upload)\" = hello"), 0);
  /* Half of one, by one who leaves, and by one who stays. */
  join(&c, &s);
  say(&s, &c, "PUT /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\nhello");
  UNTIL(&s, &c, s.begun == 3 && files_here() == 2);
  leave(&c);
  UNTIL(&s, NULL, s.left == 1);
  assert_int_equal(files_here(), 1);
  check_status(&s, "PUT /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\nhello", 408);
  assert_int_equal(files_here(), 1);
  check_status(&s, "PUT /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\nhello", 507);
  limit_files(3);
  check_status(&s, "PUT /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", 507);
  limit_files(0);
  assert_int_equal(files_here(), 1);
  assert_int_equal(s.left, 4);
  stop(&s);
}

/* ---- files ---- */

static void make_file(const char *path, size_t length) {
  FILE *to = fopen(path, "wb");
  assert_non_null(to);
  for (size_t i = 0; i < length; i++) fputc(pattern(i), to);
  assert_int_equal(fclose(to), 0);
}

/* Asks for a part of a file of so many bytes. */
static void check_range(site *s, const char *fields, int status, size_t first, size_t end) {
  client c;
  char request[200];
  snprintf(request, sizeof request, "GET /file?data HTTP/1.1\r\nHost: x\r\n%s\r\n", fields);
  int got = ask(s, &c, request);
  if (got != status) fail_msg("%d instead of %d for %s", got, status, fields);
  const char *body;
  size_t length;
  assert_int_equal(count_answers(&c, NULL, &body, &length), 1);
  if (status == 200 || status == 206) {
    assert_int_equal(length, end - first);
    for (size_t i = 0; i < length; i++)
      if ((uint8_t)body[i] != pattern(first + i)) fail_msg("%s: byte %zu is wrong", fields, i);
  }
  if (status == 206) {
    char wanted[100];
    snprintf(wanted, sizeof wanted, "bytes %zu-%zu/300000", first, end - 1);
    assert_string_equal(find_field(c.in.bytes, "Content-Range"), wanted);
  }
  if (status == 416) assert_string_equal(find_field(c.in.bytes, "Content-Range"), "bytes */300000");
  leave(&c);
}

static void files_are_sent_whole_and_in_part(void **state) {
  (void)state;
  site s;
  client c;
  start(&s);
  make_file("data", 300000);
  check_range(&s, "", 200, 0, 300000);
  check_range(&s, "Range: bytes=0-0\r\n", 206, 0, 1);
  check_range(&s, "Range: bytes=70000-\r\n", 206, 70000, 300000);
  check_range(&s, "Range: bytes=299999-400000\r\n", 206, 299999, 300000);
  check_range(&s, "Range: bytes=-5\r\n", 206, 299995, 300000);
  check_range(&s, "Range: bytes=-500000\r\n", 206, 0, 300000);
  check_range(&s, "Range: bytes=300000-\r\n", 416, 0, 0);
  check_range(&s, "Range: bytes=-0\r\n", 416, 0, 0);
  check_range(&s, "Range: bytes=5-4\r\n", 200, 0, 300000);
  check_range(&s, "Range: bytes=1-2,5-6\r\n", 200, 0, 300000);
  check_range(&s, "Range: lines=1-2\r\n", 200, 0, 300000);
  check_range(&s, "Range: bytes=7-8\r\nIf-Range: \"v1\"\r\n", 206, 7, 9);
  check_range(&s, "Range: bytes=7-8\r\nIf-Range: \"v2\"\r\n", 200, 0, 300000);
  assert_int_equal(ask(&s, &c, "GET /file?data HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
  assert_string_equal(find_field(c.in.bytes, "Accept-Ranges"), "bytes");
  assert_string_equal(find_field(c.in.bytes, "ETag"), "\"v1\"");
  assert_non_null(strstr(find_field(c.in.bytes, "Cache-Control"), "immutable"));
  assert_string_equal(find_field(c.in.bytes, "Content-Disposition"),
                      "attachment; filename=\"a _b___c__.bin\"; "
                      "filename*=UTF-8''a%20%22b%22%0D%0Ac%C3%A4.bin");
  leave(&c);
  make_file("empty", 0);
  check_status(&s, "GET /file?empty HTTP/1.1\r\nHost: x\r\n\r\n", 200);
  check_status(&s, "GET /file?empty HTTP/1.1\r\nHost: x\r\nRange: bytes=0-\r\n\r\n", 416);
  check_status(&s, "GET /file?missing HTTP/1.1\r\nHost: x\r\n\r\n", 404);
  check_status(&s, "GET /file?. HTTP/1.1\r\nHost: x\r\n\r\n", 404);
  /* After an error the connection goes on. */
  join(&c, &s);
  say(&s, &c, "GET /file?missing HTTP/1.1\r\nHost: x\r\n\r\nGET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, answers(&c) == 2);
  leave(&c);
  stop(&s);
}

static void a_file_that_shrinks_ends_the_connection(void **state) {
  (void)state;
  site s;
  client c;
  start(&s);
  make_file("data", 40 << 20);
  join(&c, &s);
  say(&s, &c, "GET /file?data HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, NULL, s.asked == 1);
  for (int i = 0; i < 20; i++) pump(&s, NULL); /* the socket is full */
  assert_int_equal(truncate("data", 10), 0);
  UNTIL(&s, &c, c.ended);
  assert_true(c.in.length < 40 << 20);
  check_status(&s, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", 200);
  leave(&c);
  stop(&s);
}

static void large_answers_come_whole(void **state) {
  (void)state;
  site s;
  client c;
  start(&s);
  assert_int_equal(ask(&s, &c, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
  const char *body;
  size_t length;
  assert_int_equal(count_answers(&c, NULL, &body, &length), 1);
  assert_int_equal(length, BIG_BYTES);
  for (size_t i = 0; i < length; i++)
    if ((uint8_t)body[i] != pattern(i)) fail_msg("byte %zu is wrong", i);
  leave(&c);
  stop(&s);
}

/* ---- those who are slow or silent ---- */

static const shoal_net_config HASTY = {.connections_max = 100, .hello_s = 0.3, .stall_s = 0.5, .idle_s = 0.5};

static void who_says_nothing_is_closed(void **state) {
  (void)state;
  site s;
  client c;
  start_with(&s, HASTY);
  join(&c, &s);
  double begin = shoal_clock_seconds();
  UNTIL(&s, &c, c.ended);
  assert_int_equal(c.in.length, 0);
  assert_true(shoal_clock_seconds() < begin + 3);
  leave(&c);
  /* Between two requests, there is more time. */
  join(&c, &s);
  say(&s, &c, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, answers(&c) == 1);
  begin = shoal_clock_seconds();
  UNTIL(&s, &c, c.ended);
  double took = shoal_clock_seconds() - begin;
  assert_true(took > 0.7 && took < 4);
  leave(&c);
  stop(&s);
}

static void half_a_head_is_answered_with_408(void **state) {
  (void)state;
  site s;
  start_with(&s, HASTY);
  check_status(&s, "GET / HTTP/1.1\r\nHo", 408);
  check_status(&s, "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT", 200);
  client c;
  join(&c, &s);
  say(&s, &c, "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT");
  UNTIL(&s, &c, c.ended);
  assert_int_equal(answers(&c), 2);
  assert_true(body_has(&c, "did not come in time"));
  leave(&c);
  assert_int_equal(s.left, 0);
  stop(&s);
}

static void half_a_body_is_answered_with_408(void **state) {
  (void)state;
  site s;
  start_with(&s, HASTY);
  check_status(&s, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhello", 408);
  check_status(&s, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe", 408);
  assert_int_equal(s.left, 2);
  assert_int_equal(s.asked, 0);
  stop(&s);
}

/* Sends a body bit by bit, until it is out or was answered. */
static void trickle(site *s, client *c, size_t length, size_t part, double pause_s) {
  char request[100], bytes[4096] = {0};
  snprintf(request, sizeof request, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", length);
  join(c, s);
  say(s, c, request);
  for (size_t sent = 0; sent < length && answers(c) == 0; sent += part) {
    say_bytes(s, c, bytes, part);
    double until = shoal_clock_seconds() + pause_s;
    while (shoal_clock_seconds() < until) pump(s, c);
  }
  UNTIL(s, c, answers(c) == 1);
}

static void a_body_that_trickles_is_refused_and_a_slow_one_is_not(void **state) {
  (void)state;
  site s;
  client c;
  start_with(&s, HASTY);
  trickle(&s, &c, 2000, 4, 0.02);
  assert_int_equal(status_of(c.in.bytes), 408);
  leave(&c);
  double begin = shoal_clock_seconds();
  trickle(&s, &c, 64000, 1000, 0.03);
  assert_int_equal(status_of(c.in.bytes), 200);
  assert_true(shoal_clock_seconds() > begin + 1); /* much longer than hello_s and stall_s */
  leave(&c);
  stop(&s);
}

static void who_takes_nothing_of_an_answer_is_closed(void **state) {
  (void)state;
  site s;
  client c;
  start_with(&s, HASTY);
  join(&c, &s);
  for (int i = 0; i < 4; i++) say(&s, &c, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
  double begin = shoal_clock_seconds();
  while (shoal_clock_seconds() < begin + 1.5) pump(&s, NULL);
  UNTIL(&s, &c, c.ended);
  assert_true(c.in.length < 4u * BIG_BYTES);
  assert_true(s.asked < 4);
  leave(&c);
  stop(&s);
}

/* ---- answers that come later, and streams ---- */

static void an_answer_may_come_later(void **state) {
  (void)state;
  site s;
  client c;
  start_with(&s, HASTY);
  join(&c, &s);
  say(&s, &c, "GET /later HTTP/1.1\r\nHost: x\r\n\r\nGET /second HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, s.asked == 1);
  uint64_t id = s.id;
  double begin = shoal_clock_seconds();
  while (shoal_clock_seconds() < begin + 1.2) pump(&s, &c); /* longer than anybody may be silent */
  assert_int_equal(answers(&c), 0);
  assert_int_equal(s.asked, 1);
  give(&s, id, 200, "late", 4);
  give(&s, id, 200, "again", 5); /* once is enough */
  UNTIL(&s, &c, answers(&c) == 2);
  assert_true(body_has(&c, "/second"));
  assert_non_null(strstr(c.in.bytes, "\r\n\r\nlate"));
  assert_null(strstr(c.in.bytes, "again"));
  assert_true(s.id != id);
  leave(&c);
  assert_int_equal(s.left, 0);
  stop(&s);
}

/* What is kept back, and what the other end has closed behind it, must not keep the loop busy. */
static void a_request_that_waits_costs_nothing(void **state) {
  (void)state;
  site s;
  client c;
  static char more[600000];
  start(&s);
  join(&c, &s);
  say(&s, &c, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, s.asked == 1);
  (void)!send(c.fd, more, sizeof more, MSG_DONTWAIT | MSG_NOSIGNAL);
  shutdown(c.fd, SHUT_WR);
  double begin = shoal_clock_seconds();
  clock_t before = clock();
  while (shoal_clock_seconds() < begin + 1) shoal_net_run(s.net, 0.1);
  assert_true(clock() - before < CLOCKS_PER_SEC / 4);
  give(&s, s.id, 200, "late", 4);
  UNTIL(&s, &c, c.ended);
  assert_non_null(strstr(c.in.bytes, "\r\n\r\nlate"));
  leave(&c);
  stop(&s);
}

static void who_leaves_before_the_answer_is_told_once(void **state) {
  (void)state;
  site s;
  client c;
  start(&s);
  join(&c, &s);
  say(&s, &c, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, s.asked == 1);
  uint64_t id = s.id;
  leave(&c);
  UNTIL(&s, NULL, s.left == 1);
  assert_int_equal(s.left_id, id);
  give(&s, id, 200, "nobody", 6);
  shoal_http_push(s.net, id, "x", 1);
  shoal_http_end(s.net, id);
  for (uint64_t other = 0; other < 500; other++) give(&s, other, 200, "nobody", 6);
  check_status(&s, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", 200);
  assert_int_equal(s.left, 1);
  /* Who leaves in the middle of an answer was answered. */
  join(&c, &s);
  say(&s, &c, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, NULL, s.asked == 3);
  leave(&c);
  for (int i = 0; i < 20; i++) pump(&s, NULL);
  assert_int_equal(s.left, 1);
  stop(&s);
}

static void streams_bring_what_is_pushed(void **state) {
  (void)state;
  site s;
  client c;
  start_with(&s, HASTY);
  join(&c, &s);
  say(&s, &c, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, c.in.length > 0 && strstr(c.in.bytes, "\r\n\r\n") != NULL);
  assert_string_equal(find_field(c.in.bytes, "Content-Type"), "text/event-stream");
  assert_string_equal(find_field(c.in.bytes, "Transfer-Encoding"), "chunked");
  assert_null(find_field(c.in.bytes, "Content-Length"));
  uint64_t id = s.streams[0];
  shoal_http_push(s.net, id, "data: 1\n\n", 9);
  UNTIL(&s, &c, strstr(c.in.bytes, "\r\n\r\n9\r\ndata: 1\n\n\r\n") != NULL);
  double begin = shoal_clock_seconds();
  while (shoal_clock_seconds() < begin + 2) pump(&s, &c); /* it may be silent for long */
  assert_false(c.ended);
  shoal_http_push(s.net, id, "data: 2\n\n", 9);
  shoal_http_push(s.net, id, "", 0); /* which would be the end */
  UNTIL(&s, &c, strstr(c.in.bytes, "9\r\ndata: 2\n\n\r\n") != NULL);
  shoal_http_end(s.net, id);
  shoal_http_push(s.net, id, "too late", 8);
  UNTIL(&s, &c, strstr(c.in.bytes, "\r\n0\r\n\r\n") != NULL);
  assert_int_equal(s.left, 0);
  /* The connection goes on. */
  shoal_text_clear(&c.in);
  say(&s, &c, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, answers(&c) == 1);
  leave(&c);
  /* To HTTP/1.0 it is bytes up to the end. */
  join(&c, &s);
  say(&s, &c, "GET /stream HTTP/1.0\r\n\r\n");
  UNTIL(&s, &c, s.streams_count == 2);
  shoal_http_push(s.net, s.streams[1], "data: 3\n\n", 9);
  shoal_http_end(s.net, s.streams[1]);
  UNTIL(&s, &c, c.ended);
  assert_non_null(strstr(c.in.bytes, "\r\n\r\ndata: 3\n\n"));
  leave(&c);
  stop(&s);
}

static void a_stream_whose_reader_leaves_is_told_once(void **state) {
  (void)state;
  site s;
  client c;
  start(&s);
  join(&c, &s);
  say(&s, &c, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, s.streams_count == 1);
  leave(&c);
  UNTIL(&s, NULL, s.left == 1);
  assert_int_equal(s.left_id, s.streams[0]);
  shoal_http_push(s.net, s.streams[0], "x", 1);
  shoal_http_end(s.net, s.streams[0]);
  /* Of one of which only the head was wanted, the same is said. */
  assert_int_equal(ask(&s, &c, "HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
  UNTIL(&s, &c, s.left == 2);
  say(&s, &c, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, answers(&c) == 2);
  leave(&c);
  for (int i = 0; i < 10; i++) pump(&s, NULL);
  assert_int_equal(s.left, 2);
  stop(&s);
}

static void a_stream_that_is_not_taken_is_closed(void **state) {
  (void)state;
  site s;
  client c, other;
  static char event[10000];
  start(&s);
  join(&c, &s);
  join(&other, &s);
  say(&s, &c, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, s.streams_count == 1);
  say(&s, &other, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &other, s.streams_count == 2);
  memset(event, 'e', sizeof event);
  int pushed = 0;
  while (s.left == 0 && pushed < 10000) {
    for (int i = 0; i < 2; i++) shoal_http_push(s.net, s.streams[i], event, sizeof event);
    pushed++;
    pump(&s, &other);
  }
  assert_int_equal(s.left, 1);
  assert_int_equal(s.left_id, s.streams[0]);
  assert_true(pushed > 100); /* a million bytes may wait */
  UNTIL(&s, &other, other.in.length > (size_t)pushed * sizeof event);
  UNTIL(&s, &c, c.ended);
  assert_int_equal(s.left, 1);
  leave(&c);
  leave(&other);
  stop(&s);
}

/* ---- many ---- */

static void a_thousand_connections(void **state) {
  (void)state;
  enum { COUNT = 1000 };
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_cur < 2 * COUNT + 100) skip();
  site s;
  static client c[COUNT];
  start_with(&s, (shoal_net_config){.connections_max = COUNT, .hello_s = 60, .stall_s = 60});
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < COUNT; i++) {
      if (round == 0) join(&c[i], &s);
      say(&s, &c[i], "GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
      if (i % 50 == 0) pump(&s, &c[i]);
    }
  UNTIL(&s, NULL, s.asked == 3 * COUNT);
  for (int i = 0; i < COUNT; i++) UNTIL(&s, &c[i], answers(&c[i]) == 3);
  /* They are all that are allowed. */
  client more;
  join(&more, &s);
  UNTIL(&s, &more, more.ended);
  leave(&more);
  for (int i = 0; i < COUNT; i++) leave(&c[i]);
  double limit_s = shoal_clock_seconds() + LIMIT_S;
  for (bool through = false; !through; leave(&more)) { /* as soon as places are free */
    assert_true(shoal_clock_seconds() < limit_s);
    for (int i = 0; i < 20; i++) pump(&s, NULL);
    through = ask(&s, &more, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n") == 200;
  }
  stop(&s);
}

/* Requests with bytes changed, cut and doubled: whatever is said to them, the next one is answered. */
static void garbage_harms_nobody(void **state) {
  (void)state;
  static const char *const SEEDS[] = {
      "GET /a/b%20c?d=e HTTP/1.1\r\nHost: x\r\nRange: bytes=1-2\r\nConnection: keep-alive\r\n\r\n",
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nA: "
      "b\r\n\r\n",
      "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
      "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: "
      "shoal\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: "
      "13\r\n\r\n\x82\x85\1\2\3\4hello\x89\x80",
  };
  site s;
  start_with(&s, (shoal_net_config){.connections_max = 100, .hello_s = 5, .stall_s = 5});
  uint32_t random = 1;
  for (int i = 0; i < 3000; i++) {
    char text[800];
    const char *seed = SEEDS[i % 4];
    size_t length = strlen(seed);
    memcpy(text, seed, length);
    for (int changes = 0; changes < 1 + i % 5; changes++) {
      random = random * 1664525 + 1013904223;
      size_t at = (random >> 8) % length;
      if (random & 1)
        text[at] = (char)(random >> 24);
      else if (random & 2)
        length = at + 1;
      else
        memmove(text + at / 2, text + at, length - at);
    }
    client c;
    join(&c, &s);
    say_bytes(&s, &c, text, length);
    pump(&s, &c);
    leave(&c);
    if (i % 50 == 0) check_status(&s, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", 200);
  }
  stop(&s);
}

/* ---- WebSockets ---- */

/* Lets a loop that dials and a site run. */
#define BOTH(site_, client_, condition)                                                           \
  for (double both_limit = shoal_clock_seconds() + LIMIT_S; !(condition);) {                      \
    if (shoal_clock_seconds() > both_limit) fail_msg("not within %d s: %s", LIMIT_S, #condition); \
    shoal_net_run((site_)->net, 0);                                                               \
    shoal_net_run((client_)->net, 0.002);                                                         \
  }

static void start_dialing(site *s) {
  *s = (site){0};
  shoal_error err = {0};
  const shoal_net_config config = {.calls = {s, opened, received, closed, NULL},
                                   .payload_max = 1 << 20,
                                   .connections_max = 100,
                                   .hello_s = 10,
                                   .stall_s = 10};
  if (shoal_net_create(&s->net, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
}

static uint64_t dial(site *from, const site *to, const char *path, shoal_way way) {
  char address[300];
  snprintf(address, sizeof address, "127.0.0.1:%u%s", to->port, path);
  return shoal_net_dial(from->net, address, &way);
}

static void websockets_are_let_in_by_their_token_and_path(void **state) {
  (void)state;
  site s, worker;
  start_with(
      &s, (shoal_net_config){.connections_max = 100, .hello_s = 10, .stall_s = 10, .websocket_only = true});
  start_dialing(&worker);
  /* A path makes it a WebSocket. */
  uint64_t peer = dial(&worker, &s, "/jobs/7/chief?a=b", (shoal_way){.token = "secret"});
  shoal_net_send(worker.net, peer, (shoal_message){.kind = SHOAL_MSG_BEAT});
  BOTH(&s, &worker, s.received == 1);
  assert_string_equal(s.path, "/jobs/7/chief?a=b");
  assert_string_equal(s.authorization, "Bearer secret");
  assert_int_equal(s.admitted_peer, s.opened_peer);
  assert_int_equal(worker.opened_peer, peer);
  shoal_net_send(s.net, s.opened_peer, (shoal_message){.kind = SHOAL_MSG_BEAT});
  BOTH(&s, &worker, worker.received == 1);
  /* Without a token. */
  dial(&worker, &s, "", (shoal_way){.wire = SHOAL_WIRE_WEBSOCKET});
  BOTH(&s, &worker, s.opened == 2);
  assert_string_equal(s.authorization, "");
  assert_string_equal(s.path, "/?");
  /* Refused. */
  static const int STATUS[] = {401, 403, 404, 503};
  for (int i = 0; i < 4; i++) {
    s.refuse_with = STATUS[i];
    uint64_t refused = dial(&worker, &s, "/work", (shoal_way){.token = "wrong"});
    shoal_net_send(worker.net, refused, (shoal_message){.kind = SHOAL_MSG_BEAT});
    BOTH(&s, &worker, worker.closed == i + 1);
    char reason[100];
    snprintf(reason, sizeof reason, "the server refuses: %d", STATUS[i]);
    assert_string_equal(worker.reason, reason);
  }
  assert_int_equal(s.opened, 2);
  /* Raw has no way to say who it is. */
  dial(&worker, &s, "", (shoal_way){.wire = SHOAL_WIRE_RAW});
  client raw;
  join(&raw, &s);
  say(&s, &raw, "SHL\001 no matter what");
  UNTIL(&s, &raw, raw.ended);
  leave(&raw);
  assert_int_equal(s.opened, 2);
  assert_string_equal(s.reason, "it does not speak HTTP, and nothing else is spoken here");
  /* What would be another line of a head is not sent. */
  dial(&worker, &s, "/work", (shoal_way){.token = "a\r\nX: y"});
  dial(&worker, &s, "/wo rk", (shoal_way){0});
  BOTH(&s, &worker, worker.closed >= 6);
  stop(&worker);
  stop(&s);
}

static void a_websocket_that_is_none_of_ours_is_refused(void **state) {
  (void)state;
  site s;
  start(&s);
  const char *common =
      "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n";
  static const struct {
    int status;
    const char *fields;
  } CASES[] = {
      {400, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"},
      {400, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Protocol: chat\r\n"},
      {400, "Sec-WebSocket-Key: short\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: shoal\r\n"},
      {426, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 8\r\n"
            "Sec-WebSocket-Protocol: shoal\r\n"},
      {101, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Protocol: chat, shoal\r\n"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    char request[600];
    snprintf(request, sizeof request, "%s%s\r\n", common, CASES[i].fields);
    client c;
    int got = ask(&s, &c, request);
    if (got != CASES[i].status) fail_msg("%d instead of %d for: %s", got, CASES[i].status, request);
    /* The example of RFC 6455. */
    if (got == 101)
      assert_string_equal(find_field(c.in.bytes, "Sec-WebSocket-Accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    leave(&c);
  }
  assert_int_equal(s.opened, 1);
  assert_int_equal(s.admitted, 1);
  UNTIL(&s, NULL, s.closed == 1); /* only those that opened are peers */
  stop(&s);
}

/* A connection that was used for pages becomes a WebSocket, is pinged, fragments a message and says goodbye. */
static void websocket_frames_by_hand(void **state) {
  (void)state;
  site s;
  client c;
  start_with(&s, HASTY);
  join(&c, &s);
  say(&s, &c, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  UNTIL(&s, &c, answers(&c) == 1);
  double begin = shoal_clock_seconds();
  while (shoal_clock_seconds() < begin + 0.5) pump(&s, &c); /* longer than hello_s, which begins anew */
  shoal_text_clear(&c.in);
  say(&s, &c,
      "GET /work HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: "
      "shoal\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n");
  UNTIL(&s, &c, answers(&c) == 1 && s.opened == 1);
  shoal_text_clear(&c.in);
  uint8_t header[SHOAL_HEADER_BYTES], frames[200];
  shoal_message beat = {.kind = SHOAL_MSG_BEAT};
  shoal_message_encode(&beat, header);
  const uint8_t mask[4] = {0x12, 0x34, 0x56, 0x78};
  size_t length = 0;
  for (int part = 0; part < 2; part++) { /* 30 bytes, a ping in between, 34 bytes */
    size_t first = part == 0 ? 0 : 30, count = part == 0 ? 30 : 34;
    frames[length++] = part == 0 ? 0x02 : 0x80;
    frames[length++] = (uint8_t)(0x80 | count);
    memcpy(frames + length, mask, 4);
    length += 4;
    for (size_t i = 0; i < count; i++) frames[length++] = header[first + i] ^ mask[i % 4];
    static const uint8_t ping[] = {0x89, 0x82, 0, 0, 0, 0, 'h', 'i'};
    if (part == 0) memcpy(frames + length, ping, sizeof ping);
    if (part == 0) length += sizeof ping;
  }
  for (size_t i = 0; i < length; i++) { /* one by one */
    say_bytes(&s, &c, frames + i, 1);
    pump(&s, &c);
  }
  UNTIL(&s, &c, s.received == 1 && c.in.length == 4);
  assert_memory_equal(c.in.bytes, "\x8a\x02hi", 4);
  static const uint8_t bye[] = {0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8};
  say_bytes(&s, &c, bye, sizeof bye);
  UNTIL(&s, &c, c.ended);
  assert_int_equal((uint8_t)c.in.bytes[4], 0x88);
  leave(&c);
  UNTIL(&s, NULL, s.closed == 1);
  assert_string_equal(s.reason, "the other side closed the connection");
  stop(&s);
}

/* ---- TLS ---- */

static void pages_and_websockets_over_tls(void **state) {
  (void)state;
  assert_int_equal(system("openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 "
                          "-subj /CN=shoal 2> openssl.log"),
                   0);
  char fingerprint[65] = "";
  FILE *from =
      popen("openssl x509 -in cert.pem -noout -fingerprint -sha256 | sed 's/.*=//' | tr -d ':\n'", "r");
  assert_non_null(from);
  assert_int_equal(fread(fingerprint, 1, 64, from), 64);
  pclose(from);
  make_file("data", 3000000);
  site s, worker;
  start_with(
      &s,
      (shoal_net_config){
          .connections_max = 100, .hello_s = 10, .stall_s = 10, .certificate = "cert.pem", .key = "key.pem"});
  char command[300];
  snprintf(command, sizeof command,
           "(printf 'GET /a HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'; sleep 0.3; printf 'GET /file?data "
           "HTTP/1.1\\r\\nHost: "
           "x\\r\\nConnection: close\\r\\n\\r\\n') | timeout 10 openssl s_client -quiet -connect "
           "127.0.0.1:%u > came "
           "2> log; touch done",
           s.port);
  FILE *asking = popen(command, "r");
  UNTIL(&s, NULL, access("done", F_OK) == 0);
  pclose(asking);
  assert_int_equal(s.asked, 2);
  assert_int_equal(system("tail -c 3000000 came | cmp - data && grep -q '200 OK' came"), 0);
  /* The token reaches the right server, and no other. */
  start_dialing(&worker);
  dial(&worker, &s, "/work", (shoal_way){.tls = true, .fingerprint = fingerprint, .token = "secret"});
  BOTH(&s, &worker, s.opened == 1 && worker.opened == 1);
  assert_string_equal(s.authorization, "Bearer secret");
  fingerprint[5] = fingerprint[5] == '0' ? '1' : '0';
  dial(&worker, &s, "/work", (shoal_way){.tls = true, .fingerprint = fingerprint, .token = "secret"});
  BOTH(&s, &worker, worker.closed == 1);
  assert_string_equal(worker.reason, "the server's certificate does not have the expected fingerprint");
  for (int i = 0; i < 20; i++) pump(&s, NULL);
  assert_int_equal(s.admitted, 1);
  stop(&worker);
  stop(&s);
}

/* ---- queries ---- */

static void values_are_found_in_queries(void **state) {
  (void)state;
  char value[16];
  const char *query =
      "state=running&before=3&name=a%20b+c&empty=&flag&bad=%zz&zero=%00&long=0123456789012345";
  assert_true(shoal_query_value(query, "state", value, sizeof value));
  assert_string_equal(value, "running");
  assert_true(shoal_query_value(query, "before", value, sizeof value));
  assert_string_equal(value, "3");
  assert_true(shoal_query_value(query, "name", value, sizeof value));
  assert_string_equal(value, "a b c");
  assert_true(shoal_query_value(query, "empty", value, sizeof value));
  assert_string_equal(value, "");
  assert_true(shoal_query_value(query, "flag", value, sizeof value));
  assert_string_equal(value, "");
  assert_false(shoal_query_value(query, "bad", value, sizeof value));
  assert_false(shoal_query_value(query, "zero", value, sizeof value));
  assert_false(shoal_query_value(query, "long", value, sizeof value));
  assert_false(shoal_query_value(query, "tate", value, sizeof value));
  assert_false(shoal_query_value(query, "stat", value, sizeof value));
  assert_false(shoal_query_value("", "a", value, sizeof value));
}

int main(void) {
  alarm(300); /* whatever happens, it ends */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_request_is_seen_and_answered),
      cmocka_unit_test(many_requests_on_one_connection),
      cmocka_unit_test(requests_sent_at_once_are_answered_in_order),
      cmocka_unit_test(a_request_byte_by_byte_is_understood),
      cmocka_unit_test(head_sends_no_body),
      cmocka_unit_test(what_is_no_http_is_refused),
      cmocka_unit_test(a_head_that_is_too_long_is_refused),
      cmocka_unit_test(bodies_come_whole),
      cmocka_unit_test(bodies_that_are_too_large_are_refused),
      IN_FOLDER(uploads_go_to_a_file),
      IN_FOLDER(files_are_sent_whole_and_in_part),
      IN_FOLDER(a_file_that_shrinks_ends_the_connection),
      cmocka_unit_test(large_answers_come_whole),
      cmocka_unit_test(who_says_nothing_is_closed),
      cmocka_unit_test(half_a_head_is_answered_with_408),
      cmocka_unit_test(half_a_body_is_answered_with_408),
      cmocka_unit_test(a_body_that_trickles_is_refused_and_a_slow_one_is_not),
      cmocka_unit_test(who_takes_nothing_of_an_answer_is_closed),
      cmocka_unit_test(an_answer_may_come_later),
      cmocka_unit_test(a_request_that_waits_costs_nothing),
      cmocka_unit_test(who_leaves_before_the_answer_is_told_once),
      cmocka_unit_test(streams_bring_what_is_pushed),
      cmocka_unit_test(a_stream_whose_reader_leaves_is_told_once),
      cmocka_unit_test(a_stream_that_is_not_taken_is_closed),
      cmocka_unit_test(a_thousand_connections),
      cmocka_unit_test(garbage_harms_nobody),
      cmocka_unit_test(websockets_are_let_in_by_their_token_and_path),
      cmocka_unit_test(a_websocket_that_is_none_of_ours_is_refused),
      cmocka_unit_test(websocket_frames_by_hand),
      IN_FOLDER(pages_and_websockets_over_tls),
      cmocka_unit_test(values_are_found_in_queries),
  };
  return RUN_TESTS(tests);
}
