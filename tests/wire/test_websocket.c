/* WebSockets on the port of a net with pages: who is let in, and frames by hand; pages and WebSockets over TLS. */
#include "site.h"

static const shoal_net_config HASTY = {.connections_max = 100, .hello_s = 0.3, .stall_s = 30, .idle_s = 30};

static void websockets_are_let_in_by_their_token_and_path(void **state) {
  (void)state;
  site s, worker;
  start_with(&s,
             (shoal_net_config){.connections_max = 100, .hello_s = 10, .stall_s = 10, .upgrade_only = true});
  start_dialing(&worker);
  /* A path is asked for. */
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
  /* A token is said, whatever the wire. */
  peer = dial(&worker, &s, "", (shoal_way){.wire = SHOAL_WIRE_RAW, .token = "secret"});
  BOTH(&s, &worker, s.opened == 3);
  assert_string_equal(s.authorization, "Bearer secret");
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
    assert_int_equal(shoal_net_refusal(worker.reason), STATUS[i]);
    assert_int_equal(shoal_net_refusal_is_final(STATUS[i]), STATUS[i] != 503);
  }
  assert_int_equal(shoal_net_refusal("the other side closed the connection"), 0);
  assert_int_equal(shoal_net_refusal("the server refuses: 99999999999999999999"), 0);
  assert_int_equal(s.opened, 3);
  /* Who speaks raw at once has no way to say who it is. */
  dial(&worker, &s, "", (shoal_way){.wire = SHOAL_WIRE_RAW});
  client raw;
  join(&raw, &s);
  say(&s, &raw, "SHL\001 no matter what");
  UNTIL(&s, &raw, raw.ended);
  leave(&raw);
  assert_int_equal(s.opened, 3);
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

/* Messages as they are behind the question, which is answered first. */
static void raw_messages_after_an_upgrade_by_hand(void **state) {
  (void)state;
  static const char *const OFFERS[] = {"shoal-raw", "shoal-raw, shoal", "shoal,shoal-raw"};
  for (int i = 0; i < 3; i++) {
    site s;
    client c;
    char request[600];
    uint8_t bytes[600 + 2 * SHOAL_HEADER_BYTES];
    shoal_message beat = {.kind = SHOAL_MSG_BEAT};
    start_with(
        &s, (shoal_net_config){.connections_max = 100, .hello_s = 10, .stall_s = 10, .upgrade_only = true});
    join(&c, &s);
    int length = snprintf(request, sizeof request,
                          "GET /work HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                          "Sec-WebSocket-Protocol: %s\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                          "Sec-WebSocket-Version: 13\r\n\r\n",
                          OFFERS[i]);
    memcpy(bytes, request, (size_t)length);
    for (int k = 0; k < 2; k++) shoal_message_encode(&beat, bytes + length + k * SHOAL_HEADER_BYTES);
    say_bytes(&s, &c, bytes, (size_t)length + 2 * SHOAL_HEADER_BYTES);
    UNTIL(&s, &c, s.received == 2 && answers(&c) == 1);
    assert_string_equal(find_field(c.in.bytes, "Sec-WebSocket-Protocol"), "shoal-raw");
    shoal_text_clear(&c.in);
    shoal_net_send(s.net, s.opened_peer, beat);
    UNTIL(&s, &c, c.in.length >= SHOAL_HEADER_BYTES);
    assert_int_equal(c.in.length, SHOAL_HEADER_BYTES);
    assert_memory_equal(c.in.bytes, bytes + length, SHOAL_HEADER_BYTES);
    leave(&c);
    UNTIL(&s, NULL, s.closed == 1);
    assert_string_equal(s.reason, "the other side closed the connection");
    stop(&s);
  }
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
           "x\\r\\nConnection: close\\r\\n\\r\\n') | timeout 300 openssl s_client -quiet -connect "
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

int main(void) {
  alarm(600); /* whatever happens, it ends */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(websockets_are_let_in_by_their_token_and_path),
      cmocka_unit_test(a_websocket_that_is_none_of_ours_is_refused),
      cmocka_unit_test(websocket_frames_by_hand),
      cmocka_unit_test(raw_messages_after_an_upgrade_by_hand),
      IN_FOLDER(pages_and_websockets_over_tls),
  };
  return RUN_TESTS(tests);
}
