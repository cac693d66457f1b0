/* Dials, and what comes of them: raw and WebSocket after an upgrade, with TLS and without; servers that are others
 * than they should be, or answer otherwise. */
#include "wire/net.h"

#include <pthread.h>
#include <unistd.h>

#include "../nn/in_folder.h"
#include "impostor.h"
#include "side.h"

enum { LARGE = 40 << 20, SMALL = 3000, RAW_BEAT = SHOAL_HEADER_BYTES, FRAMED_BEAT = 2 + 4 + RAW_BEAT };

static const shoal_net_config LIMITS = {
    .connections_max = 100, .hello_s = 30, .stall_s = 30, .payload_max = 64 << 20};

static uint64_t dial(side *from, const char *host, uint16_t port, const char *path, shoal_way way) {
  char address[100];
  snprintf(address, sizeof address, "%s:%u%s", host, port, path);
  return shoal_net_dial(from->net, address, &way);
}

static void start_tls(side *s) {
  shoal_net_config config = LIMITS;
  config.certificate = "cert.pem";
  config.key = "key.pem";
  start_with(s, config);
  listen_here(s);
}

/* ---- through to our own server ---- */

/* Many small messages and two large ones, there and back. Returns what a BEAT is on the wire. */
static uint64_t exchange(side *server, side *client, uint64_t peer) {
  UNTIL(server, client, client->opened + client->closed > 0);
  if (client->closed > 0) fail_msg("%s", client->reason);
  server->answer = true;
  uint64_t round = 0;
  shoal_net_send(client->net, peer, make(SHOAL_MSG_BEAT, 0, round++, 0));
  uint64_t beat = shoal_net_queued(client->net, peer);
  for (; round < SMALL; round++)
    shoal_net_send(client->net, peer, make(SHOAL_MSG_PUSH, 0, round, (round * 677) % 300));
  shoal_net_send(client->net, peer, make(SHOAL_MSG_PUSH, 0, round++, LARGE + 3));
  shoal_net_send(client->net, peer, make(SHOAL_MSG_PUSH, 0, round++, LARGE / 2 + 1));
  shoal_net_send(client->net, peer, make(SHOAL_MSG_BEAT, 0, round++, 0));
  UNTIL_BUSY(server, client, client->received == (int)round || server->closed + client->closed > 0);
  if (server->closed + client->closed > 0) fail_msg("%s; %s", server->reason, client->reason);
  assert_int_equal(shoal_net_queued(client->net, peer), 0);
  shoal_net_close(client->net, peer, "enough");
  UNTIL(server, client, server->closed == 1 && client->closed == 1);
  assert_string_equal(server->reason, "the other side closed the connection");
  assert_string_equal(client->reason, "enough");
  return beat;
}

static void goes_there_and_back(const char *path, shoal_wire wire, bool tls, uint64_t beat) {
  char fingerprint[65];
  side server, client;
  if (tls) {
    read_fingerprint(fingerprint);
    start_tls(&server);
  } else {
    start_with(&server, LIMITS);
    listen_here(&server);
  }
  start_with(&client, LIMITS);
  uint64_t peer = dial(&client, "localhost", server.port, path,
                       (shoal_way){.wire = wire, .tls = tls, .fingerprint = tls ? fingerprint : NULL});
  assert_int_equal(exchange(&server, &client, peer), beat);
  stop(&server, &client);
}

static void raw_goes_over_tls(void **state) {
  (void)state;
  make_certificate();
  goes_there_and_back("", SHOAL_WIRE_RAW, true, RAW_BEAT);
}

static void raw_goes_on_after_an_upgrade(void **state) {
  (void)state;
  make_certificate();
  goes_there_and_back("/jobs/7/chief", SHOAL_WIRE_RAW, false, RAW_BEAT);
  goes_there_and_back("/jobs/7/chief", SHOAL_WIRE_RAW, true, RAW_BEAT);
}

static void who_asks_for_a_websocket_gets_one(void **state) {
  (void)state;
  make_certificate();
  goes_there_and_back("/jobs/7/chief", SHOAL_WIRE_WEBSOCKET, false, FRAMED_BEAT);
  goes_there_and_back("", SHOAL_WIRE_WEBSOCKET, true, FRAMED_BEAT);
}

static void raw_over_tls_ends_from_the_servers_side(void **state) {
  (void)state;
  make_certificate();
  for (int wire = SHOAL_WIRE_RAW; wire <= SHOAL_WIRE_WEBSOCKET; wire++) {
    char fingerprint[65];
    side server, client;
    read_fingerprint(fingerprint);
    start_tls(&server);
    start_with(&client, LIMITS);
    uint64_t peer = dial(&client, "localhost", server.port, "/x",
                         (shoal_way){.wire = (shoal_wire)wire, .tls = true, .fingerprint = fingerprint});
    shoal_net_send(client.net, peer, make(SHOAL_MSG_PUSH, 0, 0, 64)); /* before the wire is known */
    UNTIL(&server, &client, server.received == 1);
    for (int i = 0; i < 5; i++) shoal_net_send(client.net, peer, make(SHOAL_MSG_PUSH, 0, 1 + i, 4 << 20));
    for (int i = 0; i < 5; i++)
      shoal_net_send(server.net, server.peers[0], make(SHOAL_MSG_WEIGHTS, 0, i, 4 << 20));
    shoal_net_close(server.net, server.peers[0], "over");
    UNTIL_BUSY(&server, &client, client.closed == 1 && server.closed == 1);
    assert_int_equal(client.received, 5);
    assert_string_equal(server.reason, "over");
    assert_string_equal(client.reason, "the other side closed the connection");
    stop(&server, &client);
  }
}

/* ---- is it the right server? ---- */

/* Dials with TLS. Returns the reason why it closed, or "" when it opened. */
static const char *try_tls(side *server, side *client, const char *host, shoal_wire wire,
                           const char *fingerprint) {
  client->opened = client->closed = 0;
  server->next[0] = 0;
  client->reason[0] = 0;
  uint64_t peer = dial(client, host, server->port, "",
                       (shoal_way){.wire = wire, .tls = true, .fingerprint = fingerprint});
  shoal_net_send(client->net, peer, make(SHOAL_MSG_BEAT, 0, 0, 0));
  UNTIL(server, client, client->opened + client->closed > 0);
  if (client->closed > 0) return client->reason;
  shoal_net_close(client->net, peer, "enough");
  UNTIL(server, client, client->closed > 0);
  return "";
}

static void check_reason(const char *reason, const char *wanted) {
  if (strstr(reason, wanted) == NULL) fail_msg("'%s' instead of '%s'", reason, wanted);
}

static void only_the_right_server_is_spoken_to(void **state) {
  (void)state;
  make_certificate();
  char right[65], wrong[65];
  read_fingerprint(right);
  memcpy(wrong, right, sizeof wrong);
  wrong[10] = wrong[10] == '1' ? '2' : '1';
  for (int wire = SHOAL_WIRE_RAW; wire <= SHOAL_WIRE_WEBSOCKET; wire++) {
    side server, client;
    start_tls(&server);
    start_with(&client, LIMITS);
    check_reason(try_tls(&server, &client, "localhost", wire, wrong),
                 "the server's certificate does not have the expected fingerprint");
    assert_true(client.hopeless);
    check_reason(try_tls(&server, &client, "localhost", wire, NULL),
                 "its certificate is signed by nobody known here; if it is the right one, give its SHA-256 "
                 "with --fingerprint");
    check_reason(try_tls(&server, &client, "127.0.0.1", wire, NULL), "signed by nobody known here");
    assert_true(client.hopeless);
    assert_int_equal(server.opened, 0); /* nothing was said */
    assert_string_equal(try_tls(&server, &client, "localhost", wire, right), "");
    stop(&server, &client);
  }
}

/* Certificates that an authority known here has signed are for one name. */
static void a_certificate_is_for_its_host(void **state) {
  (void)state;
  assert_int_equal(system("openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 "
                          "-subj /CN=shoal -addext subjectAltName=DNS:localhost,IP:127.0.0.3 2> log"),
                   0);
  setenv("SSL_CERT_FILE", "cert.pem", 1);
  side server, client;
  start_tls(&server);
  start_with(&client, LIMITS);
  assert_string_equal(try_tls(&server, &client, "localhost", SHOAL_WIRE_RAW, NULL), "");
  assert_string_equal(try_tls(&server, &client, "localhost", SHOAL_WIRE_WEBSOCKET, NULL), "");
  check_reason(try_tls(&server, &client, "127.0.0.1", SHOAL_WIRE_RAW, NULL),
               "its certificate is not accepted: IP address mismatch");
  unsetenv("SSL_CERT_FILE");
  stop(&server, &client);
  assert_int_equal(system("openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 "
                          "-subj /CN=elsewhere.example 2> log"),
                   0);
  setenv("SSL_CERT_FILE", "cert.pem", 1);
  start_tls(&server);
  start_with(&client, LIMITS);
  check_reason(try_tls(&server, &client, "localhost", SHOAL_WIRE_RAW, NULL),
               "its certificate is not accepted: hostname mismatch");
  unsetenv("SSL_CERT_FILE");
  assert_int_equal(server.opened, 0);
  stop(&server, &client);
}

/* ---- servers that are none of ours ---- */

/* What becomes of a dial to it. */
/* Dialling again is of no use when something was said that is not Shoal's; it may be when nothing was, or a proxy has
 * answered. */
static bool is_hopeless(const char *reason) {
  return strstr(reason, "the server refuses") == NULL && strstr(reason, "without an answer") == NULL &&
         strstr(reason, "it closed the connection") == NULL;
}

static void check_impostor(impostor *other, shoal_way way, const char *reason) {
  side client;
  start_with(&client, LIMITS);
  impostor_start(other);
  dial(&client, "127.0.0.1", other->port, "/work", way);
  UNTIL(&client, &client, client.closed == 1);
  assert_int_equal(client.opened, 0);
  check_reason(client.reason, reason);
  assert_int_equal(client.hopeless, is_hopeless(client.reason) || strstr(reason, "in the middle") != NULL);
  shoal_net_destroy(client.net);
  impostor_stop(other);
}

#define SWITCHING "HTTP/1.1 101 Switching Protocols\r\n"
#define UPGRADED "Upgrade: websocket\r\nConnection: Upgrade\r\n"
#define ACCEPTED "Sec-WebSocket-Accept: @\r\n"
#define RAW_CHOSEN "Sec-WebSocket-Protocol: shoal-raw\r\n"

static void answers_that_are_none_of_ours_are_told(void **state) {
  (void)state;
  static const struct {
    const char *answer, *reason;
  } CASES[] = {
      {"HTTP/1.1 403 Forbidden\r\n\r\n", "the server refuses: 403"},
      {"HTTP/1.0 503 No\r\nRetry-After: 7\r\nRetry-After: 7\r\n\r\n", "the server refuses: 503"},
      {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", "the server refuses: 302"},
      {"HTTP/1.1 100 Continue\r\n\r\n" SWITCHING UPGRADED ACCEPTED RAW_CHOSEN "\r\n",
       "the server refuses: 100"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "not as Shoal does: a page of HTTP"},
      {"SSH-2.0-OpenSSH_9.2\r\n", "not as Shoal does: its answer is no HTTP"},
      {"\x15\x03\x01", "its answer is no HTTP"},
      {"HTTP/2 101 x\r\n\r\n", "its answer is no HTTP"},
      {"HTTP/1.1 1012\r\n\r\n", "its answer is no HTTP"},
      {"HTTP/1.1\r\n\r\n", "its answer is no HTTP"},
      {SWITCHING UPGRADED RAW_CHOSEN "\r\n", "another question"},
      {SWITCHING UPGRADED RAW_CHOSEN "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
       "another question"},
      {SWITCHING UPGRADED ACCEPTED "\r\n", "a protocol that was not offered"},
      {SWITCHING UPGRADED ACCEPTED "Sec-WebSocket-Protocol: chat\r\n\r\n", "a protocol that was not offered"},
      {SWITCHING UPGRADED ACCEPTED "Sec-WebSocket-Protocol: shoal-raw, shoal\r\n\r\n",
       "a protocol that was not offered"},
      {SWITCHING UPGRADED ACCEPTED RAW_CHOSEN RAW_CHOSEN "\r\n", "none of HTTP's"},
      {SWITCHING UPGRADED ACCEPTED ACCEPTED RAW_CHOSEN "\r\n", "none of HTTP's"},
      {SWITCHING UPGRADED ACCEPTED RAW_CHOSEN "No colon\r\n\r\n", "none of HTTP's"},
      {SWITCHING UPGRADED ACCEPTED "Bare: a\nfeed: b\r\n" RAW_CHOSEN "\r\n", "none of HTTP's"},
      {SWITCHING UPGRADED ACCEPTED RAW_CHOSEN "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
       "something else than was asked for"},
      {SWITCHING "Upgrade: h2c\r\nConnection: Upgrade\r\n" ACCEPTED RAW_CHOSEN "\r\n",
       "something else than was asked for"},
      {SWITCHING ACCEPTED RAW_CHOSEN "\r\n", "something else than was asked for"},
      {"HTTP/1.0 101 Switching Protocols\r\n" UPGRADED ACCEPTED RAW_CHOSEN "\r\n",
       "something else than was asked for"},
      {SWITCHING UPGRADED, "it closed the connection in the middle of its answer"},
      {"", "it closed the connection without an answer"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
    for (size_t at_once = 0; at_once < 2; at_once++) {
      impostor other = {.answer = CASES[i].answer, .at_once = at_once, .hangs_up = true};
      check_impostor(&other, (shoal_way){.wire = SHOAL_WIRE_RAW}, CASES[i].reason);
    }
  impostor plain = {.answer = SWITCHING UPGRADED ACCEPTED RAW_CHOSEN "\r\n"};
  check_impostor(&plain, (shoal_way){.wire = SHOAL_WIRE_WEBSOCKET}, "a protocol that was not offered");
}

static void an_answer_without_an_end_is_given_up(void **state) {
  (void)state;
  static char endless[20000];
  size_t length = (size_t)snprintf(endless, sizeof endless, SWITCHING);
  while (length + 20 < sizeof endless) length += (size_t)snprintf(endless + length, 20, "Field: value\r\n");
  for (size_t at_once = 0; at_once <= 1000; at_once += 1000) {
    impostor other = {.answer = endless, .at_once = at_once};
    check_impostor(&other, (shoal_way){0}, "the head of its answer does not end");
  }
}

static void a_server_without_tls_is_told(void **state) {
  (void)state;
  impostor page = {.answer = NULL, .hangs_up = true};
  check_impostor(&page, (shoal_way){.tls = true}, "something answers there, but the TLS handshake failed");
  side server, client;
  start_with(&server, LIMITS);
  listen_here(&server);
  start_with(&client, LIMITS);
  check_reason(try_tls(&server, &client, "127.0.0.1", SHOAL_WIRE_RAW, NULL),
               "something answers there, but the TLS handshake failed; does that server use TLS?");
  assert_true(client.hopeless); /* it said so, and did not only hang up */
  check_reason(try_tls(&server, &client, "127.0.0.1", SHOAL_WIRE_WEBSOCKET, NULL),
               "something answers there, but the TLS handshake failed; does that server use TLS?");
  stop(&server, &client);
}

/* Answers the hello with a page, as a server of HTTP would. */
static void say_page(impostor *self) {
  static const char page[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
  char hello[16];
  impostor_read_all(self, hello, sizeof hello);
  impostor_write(self, page, sizeof page - 1);
}

static void a_page_instead_of_tls_is_told(void **state) {
  (void)state;
  impostor page = {.then = say_page};
  check_impostor(&page, (shoal_way){.tls = true}, "something answers there, but the TLS handshake failed");
}

static void a_server_with_tls_is_not_spoken_to_without(void **state) {
  (void)state;
  make_certificate();
  for (int wire = SHOAL_WIRE_RAW; wire <= SHOAL_WIRE_WEBSOCKET; wire++) {
    side server, client;
    start_tls(&server);
    start_with(&client, LIMITS);
    dial(&client, "127.0.0.1", server.port, "/work", (shoal_way){.wire = (shoal_wire)wire});
    UNTIL(&server, &client, client.closed == 1);
    check_reason(client.reason, "something answers at 127.0.0.1:");
    check_reason(client.reason, "/work, but not as Shoal does: ");
    assert_int_equal(client.opened + server.opened, 0);
    stop(&server, &client);
  }
}

/* A server in a thread of its own, since who asks whether it speaks TLS waits for the answer. */
static volatile int is_over;
static void *close_all(void *self) {
  side *s = self;
  for (int done = 0; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); shoal_net_run(s->net, 0.01))
    for (; done < s->received; done++) shoal_net_close(s->net, s->from, "over");
  return NULL;
}

static void a_server_that_hangs_up_is_not_taken_for_one_with_tls(void **state) {
  (void)state;
  side server, client;
  pthread_t thread;
  start_with(&server, LIMITS);
  listen_here(&server);
  is_over = 0;
  assert_int_equal(pthread_create(&thread, NULL, close_all, &server), 0);
  start_with(&client, LIMITS);
  uint64_t peer =
      dial(&client, "127.0.0.1", server.port, "", (shoal_way){.wire = SHOAL_WIRE_RAW, .asks_why = true});
  shoal_net_send(client.net, peer, make(SHOAL_MSG_BEAT, 0, 0, 0));
  UNTIL(&client, &client, client.closed == 1);
  assert_string_equal(client.reason, "the other side closed the connection");
  assert_false(client.hopeless);
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  stop(&server, &client);
}

/* The answer must come within a quarter of a second: on a busy machine it is asked more than once. */
static void only_who_wants_to_know_asks_whether_it_speaks_tls(void **state) {
  (void)state;
  make_certificate();
  for (int wants = 0; wants < 2; wants++) {
    side server, client;
    pthread_t thread;
    start_tls(&server);
    is_over = 0;
    assert_int_equal(pthread_create(&thread, NULL, close_all, &server), 0);
    for (int tries = 0; tries < (wants ? 100 : 1); tries++) {
      start_with(&client, LIMITS);
      uint64_t peer = dial(&client, "127.0.0.1", server.port, "", (shoal_way){.asks_why = wants});
      shoal_net_send(client.net, peer, make(SHOAL_MSG_BEAT, 0, 0, 0));
      UNTIL(&client, &client, client.closed == 1);
      bool told = client.hopeless;
      assert_int_equal(strstr(client.reason, "it speaks TLS; add --transport tls") != NULL, told);
      shoal_net_destroy(client.net);
      assert_true(wants || !told);
      if (told) break;
      assert_true(tries < 99);
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    shoal_net_destroy(server.net);
  }
}

/* ---- a server that knows only "shoal" ---- */

static const uint8_t BYE[] = {0x88, 2, 0x03, 0xe8};

static void header_of(uint8_t to[SHOAL_HEADER_BYTES], uint64_t round) {
  shoal_message beat = {.kind = SHOAL_MSG_BEAT, .generation = 3, .lease = 4, .round = round};
  shoal_message_encode(&beat, to);
}

/* Reads a frame with a mask, which is not nothing, and takes it off. Returns its kind. */
static int read_masked(impostor *self, uint8_t *to, size_t length) {
  uint8_t head[6];
  impostor_read_all(self, head, sizeof head);
  if (head[1] != (0x80 | length)) self->wrong = true;
  if (self->wrong) return 0;
  impostor_read_all(self, to, length);
  for (size_t i = 0; i < length; i++) to[i] ^= head[2 + i % 4];
  return head[0];
}

static void speak_frames(impostor *self) {
  uint8_t header[SHOAL_HEADER_BYTES], came[SHOAL_HEADER_BYTES], frame[2 + SHOAL_HEADER_BYTES];
  for (uint64_t round = 0; round < 2; round++) { /* the first was sent before the wire was known */
    header_of(header, round);
    if (read_masked(self, came, sizeof came) != 0x82) self->wrong = true;
    if (memcmp(came, header, sizeof came) != 0) self->wrong = true;
    /* Back in two fragments, with a ping in between. */
    static const uint8_t ping[] = {0x89, 3, 'a', 'b', 'c'};
    uint8_t pong[3];
    frame[0] = 0x02;
    frame[1] = 10;
    memcpy(frame + 2, header, 10);
    impostor_write(self, frame, 12);
    impostor_write(self, ping, sizeof ping);
    frame[0] = 0x80;
    frame[1] = SHOAL_HEADER_BYTES - 10;
    memcpy(frame + 2, header + 10, SHOAL_HEADER_BYTES - 10);
    impostor_write(self, frame, 2 + SHOAL_HEADER_BYTES - 10);
    if (read_masked(self, pong, 3) != 0x8a || memcmp(pong, "abc", 3) != 0) self->wrong = true;
  }
  impostor_write(self, BYE, sizeof BYE);
  uint8_t bye[2 + 36 /* "the other side closed the connection" */];
  if (read_masked(self, bye, sizeof bye) != 0x88 || bye[0] != 0x03 || bye[1] != 0xe8) self->wrong = true;
}

static void a_server_that_knows_only_websocket_gets_one(void **state) {
  (void)state;
  make_certificate();
  char fingerprint[65];
  read_fingerprint(fingerprint);
  for (int tls = 0; tls < 2; tls++) {
    impostor old = {.answer = SWITCHING UPGRADED ACCEPTED "Sec-WebSocket-Protocol: shoal\r\n\r\n",
                    .tls = tls,
                    .then = speak_frames};
    side client;
    start_with(&client, LIMITS);
    impostor_start(&old);
    uint64_t peer = dial(&client, "127.0.0.1", old.port, "/work",
                         (shoal_way){.tls = tls, .fingerprint = tls ? fingerprint : NULL, .token = "secret"});
    shoal_net_send(client.net, peer, make(SHOAL_MSG_BEAT, 0, 0, 0));
    UNTIL(&client, &client, client.opened == 1);
    assert_int_equal(client.queued, FRAMED_BEAT);
    UNTIL(&client, &client, client.received + client.closed > 0);
    shoal_net_send(client.net, peer, make(SHOAL_MSG_BEAT, 0, 1, 0));
    UNTIL(&client, &client, client.closed == 1);
    assert_string_equal(client.reason, "the other side closed the connection");
    assert_int_equal(client.received, 2);
    assert_false(client.wrong);
    shoal_net_destroy(client.net);
    impostor_stop(&old);
    check_reason(old.asked, "GET /work HTTP/1.1\r\nHost: 127.0.0.1:");
    check_reason(old.asked, "\r\nSec-WebSocket-Protocol: shoal-raw, shoal\r\n");
    check_reason(old.asked, "\r\nAuthorization: Bearer secret\r\n");
  }
}

static void say_masked(impostor *self) {
  static const uint8_t frame[] = {0x82, 0x80 | 4, 0, 0, 0, 0, 'S', 'H', 'L', 1};
  impostor_write(self, frame, sizeof frame);
}

static void say_raw_twice(impostor *self) {
  static const char head[] = SWITCHING UPGRADED "\r\n";
  impostor_write(self, head, sizeof head - 1);
}

/* Opens, and then says what it may not. */
static void check_opened(impostor *other, const char *reason) {
  side client;
  start_with(&client, LIMITS);
  impostor_start(other);
  dial(&client, "127.0.0.1", other->port, "/work", (shoal_way){0});
  UNTIL(&client, &client, client.closed == 1);
  assert_int_equal(client.opened, 1);
  check_reason(client.reason, reason);
  shoal_net_destroy(client.net);
  impostor_stop(other);
}

static void what_a_server_may_not_send_is_closed(void **state) {
  (void)state;
  impostor masked = {.answer = SWITCHING UPGRADED ACCEPTED "Sec-WebSocket-Protocol: shoal\r\n\r\n",
                     .then = say_masked};
  check_opened(&masked, "a frame that is none of a WebSocket's");
  impostor twice = {.answer = SWITCHING UPGRADED ACCEPTED RAW_CHOSEN "\r\n", .then = say_raw_twice};
  check_opened(&twice, "no Shoal message");
  impostor at_once = {.answer = SWITCHING UPGRADED ACCEPTED RAW_CHOSEN
                      "\r\n" SWITCHING UPGRADED ACCEPTED RAW_CHOSEN "\r\n"};
  check_opened(&at_once, "no Shoal message");
}

static void say_beats(impostor *self) {
  uint8_t header[SHOAL_HEADER_BYTES];
  header_of(header, 1);
  impostor_write(self, header, sizeof header);
}

/* The answer comes byte by byte, or with the first message right behind it. */
static void messages_may_follow_the_answer_at_once(void **state) {
  (void)state;
  for (size_t at_once = 0; at_once < 2; at_once++) {
    impostor quick = {
        .answer = SWITCHING UPGRADED ACCEPTED RAW_CHOSEN "\r\n", .at_once = at_once, .then = say_beats};
    side client;
    start_with(&client, LIMITS);
    client.next[0] = 1;
    impostor_start(&quick);
    dial(&client, "127.0.0.1", quick.port, "/work", (shoal_way){0});
    UNTIL(&client, &client, client.received + client.closed == 1);
    assert_int_equal(client.received, 1);
    assert_false(client.wrong);
    shoal_net_destroy(client.net);
    impostor_stop(&quick);
  }
}

/* ---- patience ---- */

static void doze(impostor *self) {
  (void)self;
  usleep(1500000);
}

static void who_takes_nothing_over_tls_is_closed(void **state) {
  (void)state;
  make_certificate();
  char fingerprint[65];
  read_fingerprint(fingerprint);
  for (int wire = SHOAL_WIRE_RAW; wire <= SHOAL_WIRE_WEBSOCKET; wire++) {
    impostor deaf = {.answer = wire == SHOAL_WIRE_RAW ? SWITCHING UPGRADED ACCEPTED RAW_CHOSEN "\r\n"
                                                      : SWITCHING UPGRADED ACCEPTED
                                   "Sec-WebSocket-Protocol: shoal\r\n\r\n",
                     .tls = true,
                     .then = doze};
    side client;
    start_with(&client, (shoal_net_config){.connections_max = 9, .hello_s = 10, .stall_s = 0.5});
    impostor_start(&deaf);
    uint64_t peer =
        dial(&client, "127.0.0.1", deaf.port, "/x", (shoal_way){.tls = true, .fingerprint = fingerprint});
    for (int i = 0; i < 4; i++) shoal_net_send(client.net, peer, make(SHOAL_MSG_PUSH, 0, i, 8 << 20));
    UNTIL(&client, &client, client.closed == 1);
    assert_string_equal(client.reason, "it took nothing of what was sent for 0.5 s");
    shoal_net_destroy(client.net);
    impostor_stop(&deaf);
  }
}

static void who_never_answers_is_given_up(void **state) {
  (void)state;
  side client;
  impostor mute = {.answer = NULL};
  start_with(&client, (shoal_net_config){.connections_max = 9, .hello_s = 0.3, .stall_s = 1});
  impostor_start(&mute);
  dial(&client, "127.0.0.1", mute.port, "/x", (shoal_way){.tls = false});
  UNTIL(&client, &client, client.closed == 1);
  assert_string_equal(client.reason, "no answer within 0.3 s");
  shoal_net_destroy(client.net);
  impostor_stop(&mute);
}

/* A net is destroyed with dials at every stage. */
static void a_loop_may_end_in_the_middle_of_dials(void **state) {
  (void)state;
  make_certificate();
  char fingerprint[65];
  read_fingerprint(fingerprint);
  for (int turns = 0; turns < 12; turns++) {
    side server, client;
    start_tls(&server);
    start_with(&client, LIMITS);
    for (int wire = SHOAL_WIRE_RAW; wire <= SHOAL_WIRE_WEBSOCKET; wire++) {
      uint64_t peer = dial(&client, "127.0.0.1", server.port, "/x",
                           (shoal_way){.wire = (shoal_wire)wire, .tls = true, .fingerprint = fingerprint});
      shoal_net_send(client.net, peer, make(SHOAL_MSG_PUSH, 0, 0, 1 << 20));
    }
    for (int i = 0; i < turns; i++) {
      shoal_net_run(client.net, 0);
      shoal_net_run(server.net, 0);
    }
    shoal_net_destroy(client.net);
    shoal_net_destroy(server.net);
  }
}

/* ---- threads ---- */

typedef struct pair {
  char fingerprint[65];
  int received;
} pair;

/* Two loops, one of which dials the other; nothing in here may fail a test, which is another thread's to do. */
static void *talk(void *self) {
  pair *p = self;
  for (int times = 0; times < 5; times++) {
    side server = {0}, client = {0};
    shoal_net_config config = LIMITS;
    config.calls = (shoal_net_calls){&server, opened, received, closed, NULL};
    config.certificate = "cert.pem";
    config.key = "key.pem";
    shoal_status status = shoal_net_create(&server.net, &config, NULL);
    config.calls.self = &client;
    config.certificate = config.key = NULL;
    if (status == SHOAL_OK) status = shoal_net_create(&client.net, &config, NULL);
    if (status == SHOAL_OK) status = shoal_net_listen(server.net, "127.0.0.1:0", &server.port, NULL);
    if (status == SHOAL_OK) {
      server.answer = true;
      uint64_t peer = dial(&client, "127.0.0.1", server.port, times % 2 ? "/x" : "",
                           (shoal_way){.tls = true, .fingerprint = p->fingerprint});
      for (uint64_t round = 0; round < 20; round++)
        shoal_net_send(client.net, peer, (shoal_message){.kind = SHOAL_MSG_BEAT, .round = round});
      double until = shoal_clock_seconds() + LIMIT_S;
      while (client.received < 20 && client.closed == 0 && shoal_clock_seconds() < until) {
        shoal_net_run(server.net, 0);
        shoal_net_run(client.net, 0.002);
      }
    }
    p->received += client.received;
    shoal_net_destroy(client.net);
    shoal_net_destroy(server.net);
  }
  return NULL;
}

static void threads_dial_with_tls_at_the_same_time(void **state) {
  (void)state;
  make_certificate();
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  pair pairs[THREADS] = {0};
  for (int i = 0; i < THREADS; i++) {
    read_fingerprint(pairs[i].fingerprint);
    assert_int_equal(pthread_create(&threads[i], NULL, talk, &pairs[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pairs[i].received, 5 * 20);
}

int main(void) {
  alarm(600); /* whatever happens, it ends */
  const struct CMUnitTest tests[] = {
      IN_FOLDER(raw_goes_over_tls),
      IN_FOLDER(raw_goes_on_after_an_upgrade),
      IN_FOLDER(who_asks_for_a_websocket_gets_one),
      IN_FOLDER(raw_over_tls_ends_from_the_servers_side),
      IN_FOLDER(only_the_right_server_is_spoken_to),
      IN_FOLDER(a_certificate_is_for_its_host),
      cmocka_unit_test(answers_that_are_none_of_ours_are_told),
      cmocka_unit_test(an_answer_without_an_end_is_given_up),
      cmocka_unit_test(a_server_without_tls_is_told),
      cmocka_unit_test(a_page_instead_of_tls_is_told),
      IN_FOLDER(a_server_with_tls_is_not_spoken_to_without),
      cmocka_unit_test(a_server_that_hangs_up_is_not_taken_for_one_with_tls),
      IN_FOLDER(only_who_wants_to_know_asks_whether_it_speaks_tls),
      IN_FOLDER(a_server_that_knows_only_websocket_gets_one),
      cmocka_unit_test(what_a_server_may_not_send_is_closed),
      cmocka_unit_test(messages_may_follow_the_answer_at_once),
      IN_FOLDER(who_takes_nothing_over_tls_is_closed),
      cmocka_unit_test(who_never_answers_is_given_up),
      IN_FOLDER(a_loop_may_end_in_the_middle_of_dials),
      IN_FOLDER(threads_dial_with_tls_at_the_same_time),
  };
  return RUN_TESTS(tests);
}
