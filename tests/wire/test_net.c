/* Messages between two loops in one process, and what becomes of those that send anything else. */
#include "wire/certificate.h"
#include "wire/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../nn/in_folder.h"
#include "side.h"

/* ---- messages ---- */

static const size_t LENGTHS[] = {0, 1, 63, 64, 65536, 5 << 20};

/* Sends every kind with every length that it may have. Returns how many that are. */
static int send_kinds(side *client, uint64_t peer) {
  int round = 0;
  for (int kind = 1; kind < SHOAL_MSG_KINDS; kind++)
    for (size_t i = 0; i < sizeof LENGTHS / sizeof *LENGTHS; i++) {
      size_t length = kind == SHOAL_MSG_SCALE ? 4 : LENGTHS[i];
      shoal_message probe = make((shoal_message_kind)kind, 0, (uint64_t)round, length), decoded;
      uint8_t header[SHOAL_HEADER_BYTES];
      uint64_t payload_length;
      shoal_message_encode(&probe, header);
      if (shoal_message_decode(header, PAYLOAD_MAX, &decoded, &payload_length, NULL) != SHOAL_OK) {
        shoal_message_release(&probe);
        continue;
      }
      shoal_net_send(client->net, peer, probe);
      round++;
    }
  return round;
}

/* There and back. */
static void send_all(side *server, side *client, uint64_t peer) {
  server->answer = true;
  int rounds = send_kinds(client, peer);
  assert_true(shoal_net_queued(client->net, peer) > 20 << 20);
  UNTIL(server, client, client->received == rounds || server->closed + client->closed > 0);
  if (server->closed + client->closed > 0) fail_msg("%s; %s", server->reason, client->reason);
  assert_int_equal(server->received, rounds);
  assert_int_equal(shoal_net_queued(client->net, peer), 0);
  assert_int_equal(server->closed + client->closed, 0);
}

static void all_kinds_over(shoal_wire wire) {
  side server, client;
  start(&server);
  start(&client);
  listen_here(&server);
  uint64_t peer = dial_to(&client, &server, wire, false, NULL);
  UNTIL(&server, &client, client.opened == 1);
  assert_int_equal(client.peers[0], peer);
  send_all(&server, &client, peer);
  assert_int_equal(strncmp(server.address, "127.0.0.1:", 10), 0);
  shoal_net_close(client.net, peer, "enough");
  UNTIL(&server, &client, server.closed == 1 && client.closed == 1);
  assert_string_equal(client.reason, "enough");
  assert_string_equal(server.reason, "the other side closed the connection");
  stop(&server, &client);
}

static void raw_carries_all_kinds_in_order(void **state) {
  (void)state;
  all_kinds_over(SHOAL_WIRE_RAW);
}

static void websocket_carries_all_kinds_in_order(void **state) {
  (void)state;
  all_kinds_over(SHOAL_WIRE_WEBSOCKET);
}

static void what_is_sent_before_a_dial_is_through_arrives(void **state) {
  (void)state;
  side server, client;
  start(&server);
  start(&client);
  listen_here(&server);
  for (uint32_t i = 0; i < 2; i++) {
    uint64_t peer = dial_to(&client, &server, i ? SHOAL_WIRE_WEBSOCKET : SHOAL_WIRE_RAW, false, NULL);
    shoal_net_send(client.net, peer, make(SHOAL_MSG_PUSH, i, 0, 100000));
    shoal_net_send(client.net, peer, make(SHOAL_MSG_BEAT, i, 1, 0));
  }
  UNTIL(&server, &client, server.received == 4);
  stop(&server, &client);
}

static void what_was_queued_is_sent_before_a_close(void **state) {
  (void)state;
  for (int wire = SHOAL_WIRE_RAW; wire <= SHOAL_WIRE_WEBSOCKET; wire++) {
    side server, client;
    start(&server);
    start(&client);
    listen_here(&server);
    uint64_t peer = dial_to(&client, &server, (shoal_wire)wire, false, NULL);
    shoal_net_send(client.net, peer, make(SHOAL_MSG_PUSH, 0, 0, 64));
    UNTIL(&server, &client, server.received == 1);
    /* Both have more under way when the server closes. */
    for (int i = 0; i < 5; i++) shoal_net_send(client.net, peer, make(SHOAL_MSG_PUSH, 0, 1 + i, 4 << 20));
    for (int i = 0; i < 5; i++)
      shoal_net_send(server.net, server.peers[0], make(SHOAL_MSG_WEIGHTS, 0, i, 4 << 20));
    shoal_net_close(server.net, server.peers[0], "over");
    UNTIL(&server, &client, client.closed == 1 && server.closed == 1);
    assert_int_equal(client.received, 5);
    assert_string_equal(server.reason, "over");
    stop(&server, &client);
  }
}

static void a_hundred_peers_at_once(void **state) {
  (void)state;
  enum { PEERS = 100, EACH = 20 };
  side server, client;
  start(&server);
  start(&client);
  listen_here(&server);
  server.answer = true;
  for (uint32_t i = 0; i < PEERS; i++) {
    uint64_t peer = dial_to(&client, &server, i % 2 ? SHOAL_WIRE_WEBSOCKET : SHOAL_WIRE_RAW, false, NULL);
    for (uint64_t round = 0; round < EACH; round++)
      shoal_net_send(client.net, peer, make(SHOAL_MSG_PUSH, i, round, (i * 977 + round * 5077) % 40000));
  }
  UNTIL(&server, &client, client.received == PEERS * EACH);
  assert_int_equal(server.opened, PEERS);
  assert_int_equal(server.closed + client.closed, 0);
  stop(&server, &client);
}

static void more_connections_than_allowed_are_refused(void **state) {
  (void)state;
  side server, client;
  start_with(&server, (shoal_net_config){.connections_max = 2, .hello_s = 10, .stall_s = 10});
  start_with(&client, (shoal_net_config){.connections_max = 3, .hello_s = 10, .stall_s = 10});
  listen_here(&server);
  for (uint32_t i = 0; i < 2; i++) {
    uint64_t peer = dial_to(&client, &server, SHOAL_WIRE_RAW, false, NULL);
    shoal_net_send(client.net, peer, make(SHOAL_MSG_BEAT, i, 0, 0));
    UNTIL(&server, &client, server.received == (int)i + 1);
  }
  uint64_t third = dial_to(&client, &server, SHOAL_WIRE_RAW, false, NULL);
  uint64_t fourth = dial_to(&client, &server, SHOAL_WIRE_RAW, false, NULL);
  UNTIL(&server, &client, client.closed >= 1);
  assert_int_equal(client.ended, fourth);
  assert_string_equal(client.reason, "there are 3 connections, and no more are allowed");
  UNTIL(&server, &client, client.closed == 2);
  assert_int_equal(client.ended, third);
  /* A place that became free is used again. */
  shoal_net_close(client.net, client.peers[0], "enough");
  UNTIL(&server, &client, server.closed == 1);
  uint64_t fifth = dial_to(&client, &server, SHOAL_WIRE_RAW, false, NULL);
  shoal_net_send(client.net, fifth, make(SHOAL_MSG_BEAT, 5, 0, 0));
  UNTIL(&server, &client, server.received == 3);
  stop(&server, &client);
}

/* ---- those who send anything else ---- */

/* A plain socket, connected to the server. */
static int connect_plain(const side *server) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(server->port)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
  return fd;
}

/* What this stranger sends has it closed, with the reason, while another peer goes on. */
static void check_stranger(const void *bytes, size_t length, bool then_end, const char *reason) {
  side server, client;
  start_with(&server, (shoal_net_config){.connections_max = PEERS_MAX, .hello_s = 0.3, .stall_s = 0.6});
  start(&client);
  listen_here(&server);
  uint64_t peer = dial_to(&client, &server, SHOAL_WIRE_RAW, false, NULL);
  shoal_net_send(client.net, peer, make(SHOAL_MSG_PUSH, 0, 0, 1000));
  UNTIL(&server, &client, server.received == 1);
  int fd = connect_plain(&server);
  if (length > 0) assert_int_equal(send(fd, bytes, length, MSG_NOSIGNAL), length);
  if (then_end) shutdown(fd, SHUT_WR);
  UNTIL(&server, &client, server.closed == 1);
  if (strstr(server.reason, reason) == NULL) fail_msg("'%s' instead of '%s'", server.reason, reason);
  assert_int_not_equal(server.ended, server.peers[0]);
  shoal_net_send(client.net, peer, make(SHOAL_MSG_PUSH, 0, 1, 1000));
  UNTIL(&server, &client, server.received == 2);
  /* The socket was closed, too. */
  struct timeval limit = {.tv_sec = 5};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  char answer[1024];
  ssize_t got;
  while ((got = recv(fd, answer, sizeof answer, 0)) > 0) shoal_net_run(server.net, 0);
  if (got < 0) assert_int_equal(errno, ECONNRESET);
  close(fd);
  stop(&server, &client);
}

static void garbage_is_closed(void **state) {
  (void)state;
  uint8_t noise[5000];
  for (size_t i = 0; i < sizeof noise; i++) noise[i] = (uint8_t)(i * i * 31 + 200);
  check_stranger(noise, sizeof noise, false, "no Shoal message");
  memset(noise, 'S', sizeof noise);
  check_stranger(noise, sizeof noise, false, "no Shoal message");
  memset(noise, 0, sizeof noise);
  check_stranger(noise, sizeof noise, false, "no Shoal message");
}

static void half_a_header_is_closed(void **state) {
  (void)state;
  uint8_t header[SHOAL_HEADER_BYTES];
  shoal_message message = {.kind = SHOAL_MSG_BEAT};
  shoal_message_encode(&message, header);
  check_stranger(header, 32, false, "header within 0.3 s");
  check_stranger(header, 1, false, "header within 0.3 s");
  check_stranger(header, 32, true, "in the middle of a message");
}

static void half_a_message_is_closed(void **state) {
  (void)state;
  uint8_t bytes[SHOAL_HEADER_BYTES + 50] = {0};
  shoal_message message = make(SHOAL_MSG_PUSH, 0, 0, 100);
  shoal_message_encode(&message, bytes);
  shoal_message_release(&message);
  check_stranger(bytes, sizeof bytes, false, "nothing more of a message came for 0.6 s");
  check_stranger(bytes, sizeof bytes, true, "in the middle of a message");
}

static void a_huge_length_is_closed(void **state) {
  (void)state;
  uint8_t header[SHOAL_HEADER_BYTES];
  shoal_message message = make(SHOAL_MSG_PUSH, 0, 0, PAYLOAD_MAX + 1);
  shoal_message_encode(&message, header);
  shoal_message_release(&message);
  check_stranger(header, sizeof header, false, "a PUSH message with a payload of 8388609 bytes");
}

static void nothing_at_all_is_closed(void **state) {
  (void)state;
  check_stranger(NULL, 0, false, "header within 0.3 s");
  check_stranger(NULL, 0, true, "neither raw nor WebSocket");
}

static void http_without_our_websocket_is_closed(void **state) {
  (void)state;
  const char *page = "GET /index.html HTTP/1.1\r\nHost: x\r\n\r\n";
  check_stranger(page, strlen(page), false, "asked for a page");
  check_stranger(page, 20, false, "header within 0.3 s");
  const char *other = "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
  check_stranger(other, strlen(other), false, "does not ask for the protocol");
}

/* A WebSocket handshake and then these frames, as a browser would send them (masked with 0). */
static void check_frames(const uint8_t *frames, size_t length, const char *reason) {
  uint8_t bytes[2048];
  int head = snprintf((char *)bytes, sizeof bytes,
                      "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      "Sec-WebSocket-Protocol: shoal\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                      "Sec-WebSocket-Version: 13\r\n\r\n");
  if (length > 0) memcpy(bytes + head, frames, length);
  check_stranger(bytes, (size_t)head + length, false, reason);
}

static void websocket_frames_that_are_no_message_are_closed(void **state) {
  (void)state;
  const uint8_t text[] = {0x81, 0x82, 0, 0, 0, 0, 'h', 'i'};
  check_frames(text, sizeof text, "not binary");
  const uint8_t small[] = {0x82, 0x82, 0, 0, 0, 0, 'S', 'H'};
  check_frames(small, sizeof small, "not one Shoal message");
  check_frames(NULL, 0, "header within 0.3 s");
  uint8_t noise[6 + 100] = {0x82, 0x80 | 100};
  check_frames(noise, sizeof noise, "no Shoal message");
  /* Two messages in one frame. */
  uint8_t twice[8 + 2 * SHOAL_HEADER_BYTES] = {0x82, 0x80 | 126, 0, 2 * SHOAL_HEADER_BYTES};
  shoal_message message = {.kind = SHOAL_MSG_BEAT, .generation = 3, .lease = 4, .shard = 9};
  shoal_message_encode(&message, twice + 8);
  message.round = 1;
  message.payload = shoal_blob_create(10);
  message.kind = SHOAL_MSG_PUSH;
  shoal_message_encode(&message, twice + 8 + SHOAL_HEADER_BYTES);
  shoal_message_release(&message);
  check_frames(twice, sizeof twice, "not one Shoal message");
}

static void a_header_byte_by_byte_is_understood(void **state) {
  (void)state;
  side server, client;
  start(&server);
  start(&client);
  listen_here(&server);
  int fd = connect_plain(&server);
  uint8_t header[SHOAL_HEADER_BYTES];
  shoal_message message = {.kind = SHOAL_MSG_BEAT, .generation = 3, .lease = 4};
  shoal_message_encode(&message, header);
  for (int i = 0; i < SHOAL_HEADER_BYTES; i++) {
    assert_int_equal(send(fd, header + i, 1, 0), 1);
    for (int turn = 0; turn < 3; turn++) shoal_net_run(server.net, 0.001);
  }
  UNTIL(&server, &client, server.received == 1);
  close(fd);
  UNTIL(&server, &client, server.closed == 1);
  stop(&server, &client);
}

static void a_peer_that_takes_nothing_is_closed(void **state) {
  (void)state;
  side server, client;
  start_with(&server, (shoal_net_config){.connections_max = PEERS_MAX, .hello_s = 5, .stall_s = 0.5});
  start(&client);
  listen_here(&server);
  uint64_t peer = dial_to(&client, &server, SHOAL_WIRE_RAW, false, NULL);
  shoal_net_send(client.net, peer, make(SHOAL_MSG_BEAT, 0, 0, 0));
  UNTIL(&server, &client, server.received == 1);
  for (int i = 0; i < 8; i++)
    shoal_net_send(server.net, server.from, make(SHOAL_MSG_PUSH, 0, i, PAYLOAD_MAX));
  UNTIL(&server, &server, server.closed == 1);
  assert_string_equal(server.reason, "it took nothing of what was sent for 0.5 s");
  assert_int_equal(shoal_net_queued(server.net, server.from), 0);
  stop(&server, &client);
}

/* ---- slow links, and peers that vanish ---- */

/* The bytes of a message of so many. The caller frees them. */
static uint8_t *bytes_of(shoal_message_kind kind, size_t length) {
  shoal_message message = make(kind, 0, 0, length);
  uint8_t *bytes = malloc(SHOAL_HEADER_BYTES + length);
  assert_non_null(bytes);
  shoal_message_encode(&message, bytes);
  if (length > 0) memcpy(bytes + SHOAL_HEADER_BYTES, shoal_blob_bytes(message.payload), length);
  shoal_message_release(&message);
  return bytes;
}

/* Sends a message bit by bit, `part` bytes every `pause_s`, until it is out or the server has closed. */
static void send_slowly(side *server, int fd, size_t length, size_t part, double pause_s) {
  uint8_t *bytes = bytes_of(SHOAL_MSG_PUSH, length);
  length += SHOAL_HEADER_BYTES;
  for (size_t sent = 0; sent < length && server->closed == 0; sent += part) {
    size_t now = length - sent < part ? length - sent : part;
    double said = shoal_clock_seconds();
    assert_int_equal(send(fd, bytes + sent, now, MSG_NOSIGNAL), now);
    double until = shoal_clock_seconds() + pause_s;
    while (shoal_clock_seconds() < until) shoal_net_run(server->net, pause_s / 4);
    if (server->closed == 0) assert_true(shoal_net_heard(server->net, server->peers[0]) >= said);
  }
  free(bytes);
}

static void a_long_message_on_a_slow_link_arrives(void **state) {
  (void)state;
  /* Where the machine itself stands still for longer than may be, it is tried with more patience. */
  for (double slower = 1;; slower *= 4) {
    side server;
    start_with(&server,
               (shoal_net_config){
                   .connections_max = PEERS_MAX, .hello_s = 5 * slower, .stall_s = slower, .idle_s = slower});
    listen_here(&server);
    int fd = connect_plain(&server);
    double begin = shoal_clock_seconds();
    send_slowly(&server, fd, 60000, 1000, 0.04 * slower);
    UNTIL(&server, &server, server.received + server.closed > 0);
    bool arrived = server.closed == 0;
    if (!arrived && slower >= 16) fail_msg("%s", server.reason);
    if (arrived) {
      assert_true(shoal_clock_seconds() - begin > 2 * slower); /* much longer than silence is borne */
      assert_true(server.moving > 2);
      assert_int_equal(shoal_net_heard(server.net, 0), 0);
    }
    close(fd);
    shoal_net_destroy(server.net);
    if (arrived) return;
  }
}

static void a_message_that_trickles_is_closed(void **state) {
  (void)state;
  side server;
  start_with(&server, (shoal_net_config){.connections_max = PEERS_MAX, .hello_s = 5, .stall_s = 0.5});
  listen_here(&server);
  int fd = connect_plain(&server);
  double begin = shoal_clock_seconds();
  send_slowly(&server, fd, 60000, 2, 0.02);
  UNTIL(&server, &server, server.closed == 1);
  assert_string_equal(server.reason, "a message came with less than 1000 bytes a second");
  assert_true(shoal_clock_seconds() - begin > 0.4);
  close(fd);
  shoal_net_destroy(server.net);
}

/* Lets the loop run until the peer's last sign of life is some time ago. Returns when it was. */
static double settle(side *s) {
  double heard;
  do {
    shoal_net_run(s->net, 0.02);
    heard = shoal_net_heard(s->net, s->from);
  } while (shoal_clock_seconds() < heard + 0.3);
  return heard;
}

static void a_peer_that_takes_slowly_is_alive(void **state) {
  (void)state;
  side server;
  start(&server);
  listen_here(&server);
  int fd = connect_plain(&server), room = 1 << 18; /* else the system may take in all at once */
  assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
  uint8_t *beat = bytes_of(SHOAL_MSG_BEAT, 0);
  assert_int_equal(send(fd, beat, SHOAL_HEADER_BYTES, 0), SHOAL_HEADER_BYTES);
  UNTIL(&server, &server, server.received == 1);
  for (int i = 0; i < 8; i++)
    shoal_net_send(server.net, server.from, make(SHOAL_MSG_PUSH, 0, i, PAYLOAD_MAX));
  double before = settle(&server); /* all buffers are full */
  static uint8_t taken[1 << 20];
  for (int i = 0; i < 3; i++) {
    double until = shoal_clock_seconds() + PATIENCE_S;
    while (shoal_net_heard(server.net, server.from) <= before) {
      assert_true(shoal_clock_seconds() < until);
      while (recv(fd, taken, sizeof taken, MSG_DONTWAIT) > 0) {
      }
      shoal_net_run(server.net, 0.02);
    }
    before = settle(&server);
  }
  assert_int_equal(server.received, 1); /* it never said a word */
  free(beat);
  close(fd);
  shoal_net_destroy(server.net);
}

/* Two connections of which one is silent; false if the machine itself stood still for so long that the other
 * seemed silent, too. */
static bool closes_the_silent_one(double idle_s) {
  side server, client;
  const shoal_net_config limits = {
      .connections_max = PEERS_MAX, .hello_s = 10 * idle_s, .stall_s = 10 * idle_s, .idle_s = idle_s};
  start_with(&server, limits);
  start_with(&client, limits);
  listen_here(&server);
  uint64_t lively = dial_to(&client, &server, SHOAL_WIRE_RAW, false, NULL);
  uint64_t silent = dial_to(&client, &server, SHOAL_WIRE_WEBSOCKET, false, NULL);
  shoal_net_send(client.net, silent, make(SHOAL_MSG_BEAT, 1, 0, 0));
  double begin = shoal_clock_seconds(), next = begin, late = 0;
  for (uint64_t beats = 0; shoal_clock_seconds() < begin + 4 * idle_s;) {
    double now = shoal_clock_seconds();
    late = now - next > late ? now - next : late;
    if (now >= next) {
      shoal_net_send(client.net, lively, make(SHOAL_MSG_BEAT, 0, beats++, 0));
      next += idle_s / 5;
    }
    shoal_net_run(client.net, 0);
    shoal_net_run(server.net, idle_s / 50);
  }
  bool stood_still = late > idle_s / 2;
  if (!stood_still) {
    /* Who dials minds silence himself (line.h): the lively one heard nothing either, and stays. */
    char reason[64];
    snprintf(reason, sizeof reason, "nothing was heard for %g s", idle_s);
    assert_int_equal(server.closed, 1);
    assert_string_equal(server.reason, reason);
    assert_int_equal(client.closed, 1);
    assert_int_equal(client.ended, silent);
  }
  stop(&server, &client);
  return !stood_still;
}

static void a_connection_without_a_sign_of_life_is_closed(void **state) {
  (void)state;
  assert_true(closes_the_silent_one(0.5) || closes_the_silent_one(4) || closes_the_silent_one(16));
}

/* ---- loops of one process ---- */

static void listen_inside(side *s, uint16_t number) {
  char address[16];
  shoal_error err = {0};
  snprintf(address, sizeof address, "#:%u", number);
  if (shoal_net_listen(s->net, address, &s->port, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_int_equal(s->port, number);
}

static uint64_t dial_inside(side *from, const side *to) {
  char address[16];
  snprintf(address, sizeof address, "#:%u", to->port);
  return shoal_net_dial(from->net, address, &(shoal_way){.wire = SHOAL_WIRE_RAW});
}

/* Two loops with a connection between them, on which a message has come. Returns the client's peer. */
static uint64_t connect_inside(side *server, side *client) {
  start(server);
  start(client);
  listen_inside(server, 7);
  uint64_t peer = dial_inside(client, server);
  shoal_net_send(client->net, peer, make(SHOAL_MSG_BEAT, 0, 0, 0)); /* before it is through */
  UNTIL(server, client, server->received == 1);
  assert_int_equal(client->peers[0], peer);
  assert_string_equal(server->address, "this process");
  return peer;
}

static void threads_carry_all_kinds_in_order(void **state) {
  (void)state;
  side server, client;
  uint64_t peer = connect_inside(&server, &client);
  server.answer = true;
  server.next[0] = 0;
  double begin = shoal_clock_seconds();
  int rounds = send_kinds(&client, peer);
  assert_int_equal(shoal_net_queued(client.net, peer), 0); /* nothing holds it back */
  UNTIL(&server, &client, client.received == rounds);
  assert_int_equal(server.received, 1 + rounds);
  assert_true(shoal_net_heard(client.net, peer) >= begin);
  uint64_t in, out, server_in, server_out;
  shoal_net_moved(client.net, &in, &out);
  shoal_net_moved(server.net, &server_in, &server_out);
  assert_true(in == server_out && out == server_in && out == in + SHOAL_HEADER_BYTES && in > 20 << 20);
  assert_int_equal(server.closed + client.closed, 0);
  stop(&server, &client);
}

static void threads_hand_payloads_over_as_they_are(void **state) {
  (void)state;
  side server, client;
  uint64_t peer = connect_inside(&server, &client);
  server.answer = true;
  shoal_message message = make(SHOAL_MSG_PUSH, 0, 1, 5 << 20);
  const void *payload = shoal_blob_bytes(message.payload);
  client.next[0] = 1;
  shoal_net_send(client.net, peer, message);
  UNTIL(&server, &client, client.received == 1);
  assert_ptr_equal(server.payload, payload);
  assert_ptr_equal(client.payload, payload);
  stop(&server, &client);
}

static void threads_close_from_either_side(void **state) {
  (void)state;
  for (int who = 0; who < 2; who++) {
    side server, client;
    uint64_t peer = connect_inside(&server, &client);
    side *closes = who == 0 ? &server : &client, *hears = who == 0 ? &client : &server;
    uint64_t from = who == 0 ? server.from : peer;
    int before = hears->received;
    for (uint64_t i = 0; i < 3; i++)
      shoal_net_send(closes->net, from, make(SHOAL_MSG_WEIGHTS, 0, (uint64_t)before + i, 1000));
    shoal_net_close(closes->net, from, "over");
    shoal_net_send(closes->net, from, make(SHOAL_MSG_BEAT, 0, 9, 0)); /* too late */
    UNTIL(&server, &client, server.closed == 1 && client.closed == 1);
    assert_int_equal(hears->received, before + 3);
    assert_string_equal(closes->reason, "over");
    assert_string_equal(hears->reason, "the other side closed the connection");
    assert_int_equal(shoal_net_heard(closes->net, from), 0);
    stop(&server, &client);
  }
}

static void a_dial_to_nobody_inside_is_closed(void **state) {
  (void)state;
  side server, client;
  shoal_error err = {0};
  uint16_t port;
  start(&server);
  start(&client);
  shoal_net_dial(client.net, "#:9", &(shoal_way){.wire = SHOAL_WIRE_RAW});
  UNTIL(&server, &client, client.closed == 1);
  assert_string_equal(client.reason, "nobody listens at #:9");
  shoal_net_dial(client.net, "#:0", &(shoal_way){.wire = SHOAL_WIRE_RAW}); /* not those who do not listen */
  UNTIL(&server, &client, client.closed == 2);
  assert_string_equal(client.reason, "nobody listens at #:0");
  assert_int_equal(server.opened + client.opened, 0);
  assert_int_equal(shoal_net_listen(server.net, "#:0", &port, &err), SHOAL_INVALID);
  assert_non_null(strstr(err.text, "count from #:1"));
  listen_inside(&server, 9);
  assert_int_equal(shoal_net_listen(client.net, "#:9", &port, &err), SHOAL_IO);
  assert_non_null(strstr(err.text, "this process does so already"));
  stop(&server, &client);
}

/* Whoever does not hear of an end waits for ever. */
static void both_ends_inside_hear_of_an_end(void **state) {
  (void)state;
  side server, client;
  /* The dial is given up before it is answered: the answer comes to nobody. */
  start(&server);
  start(&client);
  listen_inside(&server, 7);
  uint64_t peer = dial_inside(&client, &server);
  shoal_net_close(client.net, peer, "never mind");
  shoal_net_run(client.net, 0);
  assert_int_equal(client.closed, 1);
  UNTIL(&server, &client, server.opened == 1 && server.closed == 1);
  /* The loop that was dialled ends before it answers. */
  double begin = shoal_clock_seconds();
  dial_inside(&client, &server);
  shoal_net_destroy(server.net);
  UNTIL(&client, &client, client.closed == 2);
  /* The loop that dialled ends before it hears the answer. */
  start(&server);
  listen_inside(&server, 7);
  dial_inside(&client, &server);
  shoal_net_run(server.net, 0);
  assert_int_equal(server.opened, 1);
  shoal_net_destroy(client.net);
  UNTIL(&server, &server, server.closed == 1);
  assert_true(shoal_clock_seconds() < begin + 25); /* and not by hello_s, which is 30 */
  shoal_net_destroy(server.net);
}

static void no_more_connections_than_allowed_inside(void **state) {
  (void)state;
  side server, client;
  start_with(&server, (shoal_net_config){.connections_max = 1, .hello_s = 10, .stall_s = 10});
  start(&client);
  listen_inside(&server, 7);
  uint64_t first = dial_inside(&client, &server), second = dial_inside(&client, &server);
  UNTIL(&server, &client, client.opened == 1 && client.closed == 1);
  assert_int_equal(client.peers[0], first);
  assert_int_equal(client.ended, second);
  stop(&server, &client);
}

/* A loop in a thread of its own, which ends after so many messages, in the middle of all. */
static void *receive_some(void *self) {
  side *s = self;
  while (s->received < 50) shoal_net_run(s->net, 0.01);
  shoal_net_destroy(s->net);
  return NULL;
}

static void a_loop_that_ends_while_another_sends(void **state) {
  (void)state;
  for (int times = 0; times < 20; times++) {
    side server, client;
    start(&server);
    start(&client);
    listen_inside(&server, 7);
    server.answer = true;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, receive_some, &server), 0);
    uint64_t peer = dial_inside(&client, &server);
    double begin = shoal_clock_seconds();
    for (uint64_t round = 0; client.closed == 0; round++) {
      assert_true(shoal_clock_seconds() < begin + LIMIT_S);
      shoal_net_send(client.net, peer, make(SHOAL_MSG_PUSH, 0, round, 1000));
      shoal_net_run(client.net, 0);
    }
    assert_string_equal(client.reason, "the other side closed the connection");
    pthread_join(thread, NULL);
    assert_false(server.wrong || client.wrong);
    shoal_net_destroy(client.net);
  }
}

static void *come_and_go(void *self) {
  (void)self;
  for (int i = 0; i < 20; i++) {
    side s;
    start(&s);
    listen_here(&s);
    shoal_net_run(s.net, 0);
    shoal_net_destroy(s.net);
  }
  return NULL;
}

static void loops_come_and_go_in_several_threads(void **state) {
  (void)state;
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

/* ---- dials, wakes, sends to nobody ---- */

static void a_dial_to_a_closed_port_calls_closed(void **state) {
  (void)state;
  side server, client;
  start(&server);
  start(&client);
  listen_here(&server);
  shoal_net_destroy(server.net);
  start_with(&server, (shoal_net_config){.connections_max = 1, .hello_s = 1, .stall_s = 1});
  server.port = 1;
  int count = 0;
  for (int wire = SHOAL_WIRE_RAW; wire <= SHOAL_WIRE_WEBSOCKET; wire++)
    for (int tls = 0; tls < 2; tls++) {
      uint64_t peer = dial_to(&client, &server, (shoal_wire)wire, tls, NULL);
      shoal_net_send(client.net, peer, make(SHOAL_MSG_PUSH, 0, 0, 100));
      count++;
      UNTIL(&server, &client, client.closed == count);
      assert_int_equal(client.ended, peer);
      assert_non_null(strstr(client.reason, "localhost:1 cannot be reached"));
    }
  uint64_t peer = shoal_net_dial(client.net, "no-port", &(shoal_way){.wire = SHOAL_WIRE_RAW});
  UNTIL(&server, &client, client.closed == count + 1);
  assert_int_equal(client.ended, peer);
  assert_non_null(strstr(client.reason, "is no address"));
  assert_int_equal(client.opened, 0);
  stop(&server, &client);
}

static void a_dial_without_an_answer_is_closed(void **state) {
  (void)state;
  side server = {0}, client;
  start_with(&client, (shoal_net_config){.connections_max = 2, .hello_s = 0.3, .stall_s = 1});
  /* Listens, and never speaks. */
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in at = {.sin_family = AF_INET};
  socklen_t length = sizeof at;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
  assert_int_equal(listen(fd, 5), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
  server.port = ntohs(at.sin_port);
  dial_to(&client, &server, SHOAL_WIRE_WEBSOCKET, false, NULL);
  dial_to(&client, &server, SHOAL_WIRE_RAW, true, NULL);
  UNTIL(&client, &client, client.closed == 2);
  assert_string_equal(client.reason, "no answer within 0.3 s");
  close(fd);
  shoal_net_destroy(client.net);
}

static void a_busy_port_is_an_error(void **state) {
  (void)state;
  side server, client;
  start(&server);
  start(&client);
  listen_here(&server);
  char address[64];
  uint16_t port;
  shoal_error err = {0};
  snprintf(address, sizeof address, "127.0.0.1:%u", server.port);
  assert_int_equal(shoal_net_listen(client.net, address, &port, &err), SHOAL_IO);
  assert_non_null(strstr(err.text, "ddress already in use"));
  assert_int_equal(shoal_net_listen(client.net, "127.0.0.1", &port, &err), SHOAL_INVALID);
  assert_int_equal(shoal_net_listen(client.net, ":0", &port, &err), SHOAL_OK);
  assert_int_not_equal(port, 0);
  stop(&server, &client);
}

static void sends_to_a_gone_peer_are_dropped(void **state) {
  (void)state;
  side server, client;
  start(&server);
  start(&client);
  listen_here(&server);
  uint64_t peer = dial_to(&client, &server, SHOAL_WIRE_RAW, false, NULL);
  shoal_net_send(client.net, peer, make(SHOAL_MSG_BEAT, 0, 0, 0));
  UNTIL(&server, &client, server.received == 1);
  shoal_net_destroy(server.net); /* it does not even say goodbye */
  for (int i = 0; i < 4; i++) shoal_net_send(client.net, peer, make(SHOAL_MSG_PUSH, 0, i, PAYLOAD_MAX));
  UNTIL(&client, &client, client.closed == 1);
  shoal_net_send(client.net, peer, make(SHOAL_MSG_PUSH, 0, 0, 1000));
  shoal_net_send(client.net, 0, make(SHOAL_MSG_PUSH, 0, 0, 1000));
  shoal_net_send(client.net, UINT64_MAX, make(SHOAL_MSG_PUSH, 0, 0, 1000));
  shoal_net_close(client.net, peer, "again");
  assert_int_equal(shoal_net_queued(client.net, peer), 0);
  shoal_net_run(client.net, 0.01);
  assert_int_equal(client.closed, 1);
  shoal_net_destroy(client.net);
}

static void *wake_soon(void *net) {
  shoal_clock_sleep(0.2);
  shoal_net_wake(net);
  return NULL;
}

static void a_wake_from_another_thread_ends_the_wait(void **state) {
  (void)state;
  side server;
  start(&server);
  listen_here(&server);
  shoal_net_run(server.net, 0.01);
  pthread_t thread;
  double begin = shoal_clock_seconds();
  assert_int_equal(pthread_create(&thread, NULL, wake_soon, server.net), 0);
  while (shoal_clock_seconds() < begin + 0.15)
    shoal_net_run(server.net, begin + 0.15 - shoal_clock_seconds());
  shoal_net_run(server.net, 30);
  double took = shoal_clock_seconds() - begin;
  assert_true(took > 0.19 && took < 25);
  pthread_join(thread, NULL);
  shoal_net_destroy(server.net);
}

static void the_wait_is_as_long_as_asked(void **state) {
  (void)state;
  side server;
  start(&server);
  shoal_net_run(server.net, 0);
  double begin = shoal_clock_seconds();
  for (int i = 0; i < 1000; i++) shoal_net_run(server.net, 0);
  assert_true(shoal_clock_seconds() - begin < 50); /* waits of a twentieth of a second would be as long */
  begin = shoal_clock_seconds();
  for (int i = 0; i < 20; i++) shoal_net_run(server.net, 0.02);
  assert_true(shoal_clock_seconds() - begin > 0.2);
  shoal_net_destroy(server.net);
}

/* ---- TLS ---- */

static void tls_with_a_fingerprint_and_without(void **state) {
  (void)state;
  make_certificate();
  char right[65], wrong[65];
  read_fingerprint(right);
  memcpy(wrong, right, sizeof wrong);
  wrong[10] = wrong[10] == '1' ? '2' : '1';
  for (int wire = SHOAL_WIRE_RAW; wire <= SHOAL_WIRE_WEBSOCKET; wire++) {
    side server, client;
    start_with(&server, (shoal_net_config){.connections_max = PEERS_MAX,
                                           .hello_s = 30,
                                           .stall_s = 10,
                                           .certificate = "cert.pem",
                                           .key = "key.pem"});
    start(&client);
    listen_here(&server);
    uint64_t peer = dial_to(&client, &server, (shoal_wire)wire, true, right);
    UNTIL(&server, &client, client.opened + client.closed == 1);
    if (client.closed) fail_msg("%s", client.reason);
    send_all(&server, &client, peer);
    /* Nobody's certificate, or another's, is not taken; who speaks no TLS is closed. */
    dial_to(&client, &server, (shoal_wire)wire, true, wrong);
    UNTIL(&server, &client, client.closed == 1);
    assert_string_equal(client.reason, "the server's certificate does not have the expected fingerprint");
    dial_to(&client, &server, (shoal_wire)wire, true, NULL);
    UNTIL(&server, &client, client.closed == 2);
    assert_non_null(strstr(client.reason, "cannot be reached"));
    uint64_t plain = dial_to(&client, &server, (shoal_wire)wire, false, NULL);
    shoal_net_send(client.net, plain, make(SHOAL_MSG_PUSH, 0, 0, 1000));
    UNTIL(&server, &client, client.closed == 3);
    client.answer = false;
    int before = server.received;
    shoal_net_send(client.net, peer, make(SHOAL_MSG_PUSH, 1, 0, 1000));
    UNTIL(&server, &client, server.received == before + 1);
    assert_int_equal(client.opened, wire == SHOAL_WIRE_RAW ? 2 : 1); /* a plain raw one, for a moment */
    stop(&server, &client);
  }
}

/* Whether somebody who knows the server by this fingerprint gets in. */
static bool gets_in(side *server, const char *fingerprint) {
  side client;
  start(&client);
  dial_to(&client, server, SHOAL_WIRE_RAW, true, fingerprint);
  UNTIL(server, &client, client.opened + client.closed >= 1);
  bool opened = client.opened == 1;
  shoal_net_destroy(client.net);
  return opened;
}

static void
a_certificate_that_is_made_again_with_its_key_is_the_same_to_those_who_know_the_key(void **state) {
  (void)state;
  static const char again[] =
      "openssl req -x509 -key key.pem -out cert.pem -days 3 -subj /CN=again 2> openssl.log";
  make_certificate();
  char key[SHOAL_SHA256_HEX], first[65], second[65];
  assert_int_equal(shoal_certificate_fingerprint("cert.pem", key, NULL), SHOAL_OK);
  read_fingerprint(first);
  side server;
  start_with(&server, (shoal_net_config){.connections_max = PEERS_MAX,
                                         .hello_s = 30,
                                         .stall_s = 10,
                                         .certificate = "cert.pem",
                                         .key = "key.pem"});
  listen_here(&server);
  assert_true(gets_in(&server, key) && gets_in(&server, first));
  assert_int_equal(system(again), 0);
  read_fingerprint(second);
  assert_true(gets_in(&server, first)); /* until it is told */
  shoal_net_renew_certificate(server.net);
  assert_true(gets_in(&server, key) && gets_in(&server, second));
  assert_false(gets_in(&server, first));
  shoal_net_destroy(server.net);
}

static void raw_over_tls_is_accepted(void **state) {
  (void)state;
  make_certificate();
  side server;
  start_with(&server, (shoal_net_config){.connections_max = PEERS_MAX,
                                         .hello_s = 10,
                                         .stall_s = 10,
                                         .certificate = "cert.pem",
                                         .key = "key.pem"});
  listen_here(&server);
  server.answer = true;
  enum { LENGTH = 3000000 };
  shoal_message message = make(SHOAL_MSG_PUSH, 0, 0, LENGTH);
  uint8_t header[SHOAL_HEADER_BYTES];
  shoal_message_encode(&message, header);
  FILE *to = fopen("sent", "wb");
  assert_int_equal(fwrite(header, sizeof header, 1, to), 1);
  assert_int_equal(fwrite(shoal_blob_bytes(message.payload), LENGTH, 1, to), 1);
  fclose(to);
  shoal_message_release(&message);
  char command[300];
  snprintf(command, sizeof command,
           "timeout 300 openssl s_client -quiet -connect 127.0.0.1:%u < sent > came 2> log &", server.port);
  assert_int_equal(system(command), 0);
  UNTIL(&server, &server, server.received == 1);
  shoal_net_close(server.net, server.from, "enough");
  UNTIL(&server, &server, server.closed == 1);
  assert_int_equal(system("cmp sent came"), 0);
  assert_false(server.wrong);
  shoal_net_destroy(server.net);
}

static void a_certificate_that_is_none_is_an_error(void **state) {
  (void)state;
  side server;
  uint16_t port;
  shoal_error err = {0};
  start_with(&server, (shoal_net_config){.connections_max = PEERS_MAX,
                                         .hello_s = 10,
                                         .stall_s = 10,
                                         .certificate = "missing.pem",
                                         .key = "missing.pem"});
  assert_int_equal(shoal_net_listen(server.net, "127.0.0.1:0", &port, &err), SHOAL_IO);
  assert_non_null(strstr(err.text, "missing.pem"));
  shoal_net_destroy(server.net);
}

int main(void) {
  alarm(600); /* whatever happens, it ends */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(raw_carries_all_kinds_in_order),
      cmocka_unit_test(websocket_carries_all_kinds_in_order),
      cmocka_unit_test(what_is_sent_before_a_dial_is_through_arrives),
      cmocka_unit_test(what_was_queued_is_sent_before_a_close),
      cmocka_unit_test(a_hundred_peers_at_once),
      cmocka_unit_test(more_connections_than_allowed_are_refused),
      cmocka_unit_test(garbage_is_closed),
      cmocka_unit_test(half_a_header_is_closed),
      cmocka_unit_test(half_a_message_is_closed),
      cmocka_unit_test(a_huge_length_is_closed),
      cmocka_unit_test(nothing_at_all_is_closed),
      cmocka_unit_test(http_without_our_websocket_is_closed),
      cmocka_unit_test(websocket_frames_that_are_no_message_are_closed),
      cmocka_unit_test(a_header_byte_by_byte_is_understood),
      cmocka_unit_test(a_peer_that_takes_nothing_is_closed),
      cmocka_unit_test(a_long_message_on_a_slow_link_arrives),
      cmocka_unit_test(a_message_that_trickles_is_closed),
      cmocka_unit_test(a_peer_that_takes_slowly_is_alive),
      cmocka_unit_test(a_connection_without_a_sign_of_life_is_closed),
      cmocka_unit_test(threads_carry_all_kinds_in_order),
      cmocka_unit_test(threads_hand_payloads_over_as_they_are),
      cmocka_unit_test(threads_close_from_either_side),
      cmocka_unit_test(a_dial_to_nobody_inside_is_closed),
      cmocka_unit_test(both_ends_inside_hear_of_an_end),
      cmocka_unit_test(no_more_connections_than_allowed_inside),
      cmocka_unit_test(a_loop_that_ends_while_another_sends),
      cmocka_unit_test(loops_come_and_go_in_several_threads),
      cmocka_unit_test(a_dial_to_a_closed_port_calls_closed),
      cmocka_unit_test(a_dial_without_an_answer_is_closed),
      cmocka_unit_test(a_busy_port_is_an_error),
      cmocka_unit_test(sends_to_a_gone_peer_are_dropped),
      cmocka_unit_test(a_wake_from_another_thread_ends_the_wait),
      cmocka_unit_test(the_wait_is_as_long_as_asked),
      IN_FOLDER(tls_with_a_fingerprint_and_without),
      IN_FOLDER(a_certificate_that_is_made_again_with_its_key_is_the_same_to_those_who_know_the_key),
      IN_FOLDER(raw_over_tls_is_accepted),
      IN_FOLDER(a_certificate_that_is_none_is_an_error),
  };
  return RUN_TESTS(tests);
}
