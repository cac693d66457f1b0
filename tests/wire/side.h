/* side.h: a loop and what it told, for tests with two of them; certificates that nobody signed. */
#ifndef SHOAL_TESTS_SIDE_H
#define SHOAL_TESTS_SIDE_H

#include "wire/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "check.h"

enum { PEERS_MAX = 128, PAYLOAD_MAX = 8 << 20, LIMIT_S = PATIENCE_S };

/* One loop, and what it told. */
typedef struct side {
  shoal_net *net;
  uint16_t port;
  uint64_t peers[PEERS_MAX]; /* as they opened */
  int opened, received, closed;
  char address[300], reason[300];
  uint64_t queued;          /* for the last that opened, when it did */
  uint64_t from, ended;     /* of the last message; the last that closed */
  uint64_t next[PEERS_MAX]; /* the round that is expected of peer `shard` */
  bool wrong, answer;       /* answer: send back what comes */
  bool hopeless;            /* the last that closed will not do better when it is dialled again */
  uint64_t bytes;
  int moving;          /* how often a sign of life was told */
  const void *payload; /* where the last one was */
} side;

static inline uint8_t pattern(uint64_t round, size_t i) { return (uint8_t)(round * 31 + i * 7 + (i >> 11)); }

static inline shoal_message make(shoal_message_kind kind, uint32_t shard, uint64_t round, size_t length) {
  shoal_message message = {.kind = kind, .generation = 3, .lease = 4, .round = round, .shard = shard};
  if (length > 0) {
    message.payload = shoal_blob_create(length);
    assert_non_null(message.payload);
    for (size_t i = 0; i < length; i++) shoal_blob_bytes(message.payload)[i] = pattern(round, i);
  }
  return message;
}

static inline void opened(void *self, uint64_t peer, const char *address) {
  side *s = self;
  if (s->opened < PEERS_MAX) s->peers[s->opened] = peer;
  s->opened++;
  s->queued = shoal_net_queued(s->net, peer);
  snprintf(s->address, sizeof s->address, "%s", address);
}

static inline void received(void *self, uint64_t peer, shoal_message *message) {
  side *s = self;
  size_t length = message->payload != NULL ? shoal_blob_length(message->payload) : 0;
  if (message->shard >= PEERS_MAX || message->round != s->next[message->shard]++) s->wrong = true;
  if (message->generation != 3 || message->lease != 4) s->wrong = true;
  for (size_t i = 0; i < length; i++)
    if (shoal_blob_bytes(message->payload)[i] != pattern(message->round, i)) s->wrong = true;
  s->received++;
  s->bytes += length;
  s->from = peer;
  s->payload = message->payload != NULL ? shoal_blob_bytes(message->payload) : NULL;
  if (s->answer)
    shoal_net_send(s->net, peer, *message);
  else
    shoal_message_release(message);
}

static inline void closed(void *self, uint64_t peer, const char *reason) {
  side *s = self;
  s->closed++;
  s->ended = peer;
  s->hopeless = shoal_net_is_hopeless(s->net);
  snprintf(s->reason, sizeof s->reason, "%s", reason);
}

static inline void moving(void *self, uint64_t peer) {
  (void)peer;
  ((side *)self)->moving++;
}

static inline void start_with(side *s, shoal_net_config config) {
  shoal_error err = {0};
  *s = (side){0};
  config.calls = (shoal_net_calls){s, opened, received, closed, moving};
  if (config.payload_max == 0) config.payload_max = PAYLOAD_MAX;
  if (shoal_net_create(&s->net, &config, &err) != SHOAL_OK) fail_msg("%s", err.text);
}

static inline void start(side *s) {
  start_with(s, (shoal_net_config){.connections_max = PEERS_MAX, .hello_s = 30, .stall_s = 30});
}

static inline void listen_here(side *s) {
  shoal_error err = {0};
  if (shoal_net_listen(s->net, "127.0.0.1:0", &s->port, &err) != SHOAL_OK) fail_msg("%s", err.text);
  assert_int_not_equal(s->port, 0);
}

static inline uint64_t dial_to(side *from, const side *to, shoal_wire wire, bool tls,
                               const char *fingerprint) {
  char address[64];
  snprintf(address, sizeof address, "localhost:%u", to->port);
  return shoal_net_dial(from->net, address,
                        &(shoal_way){.wire = wire, .tls = tls, .fingerprint = fingerprint});
}

/* Lets both loops run until the condition holds. The second one waits for what happens, or not: where much is
 * under way, that it comes to wait for the first would be all that takes time. */
#define UNTIL_WITH(a, b, condition, wait_s)                                                        \
  for (double until_limit = shoal_clock_seconds() + LIMIT_S; !(condition);) {                      \
    if (shoal_clock_seconds() > until_limit) fail_msg("not within %d s: %s", LIMIT_S, #condition); \
    shoal_net_run((a)->net, 0);                                                                    \
    shoal_net_run((b)->net, wait_s);                                                               \
  }
#define UNTIL(a, b, condition) UNTIL_WITH(a, b, condition, 0.002)
#define UNTIL_BUSY(a, b, condition) UNTIL_WITH(a, b, condition, 0)

static inline void stop(side *a, side *b) {
  assert_false(a->wrong || b->wrong);
  shoal_net_destroy(a->net);
  shoal_net_destroy(b->net);
}

/* ---- TLS ---- */

static inline void read_fingerprint(char out[65]) {
  FILE *from = popen("openssl x509 -in cert.pem -noout -fingerprint -sha256", "r");
  assert_non_null(from);
  int c, count = 0;
  while ((c = fgetc(from)) != EOF && c != '=') {
  }
  while ((c = fgetc(from)) != EOF && count < 64)
    if (c != ':') out[count++] = (char)c;
  out[64] = 0;
  assert_int_equal(count, 64);
  pclose(from);
}

static inline void make_certificate(void) {
  assert_int_equal(system("openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 "
                          "-subj /CN=shoal 2> openssl.log"),
                   0);
}

#endif
