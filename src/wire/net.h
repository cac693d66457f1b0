/* net.h: messages between processes, over TCP or TLS, as WebSocket or raw.
 *
 * One event loop on libwebsockets, with any number of connections, all on one port. Who connects
 * and begins with a header of proto/message.h speaks raw: headers and payloads, one after
 * another. Who begins with HTTP and asks for an upgrade to the protocol "shoal" is a WebSocket: every
 * message is one binary frame or a row of fragments. Who asks for "shoal-raw" speaks raw once that is
 * answered: it could say who it is and what it wants, and pays nothing for it afterwards. All carry the same
 * messages. Whoever else speaks HTTP is served by wire/http.h, and is no peer. An address "#:N" is
 * another loop of this process: messages go there as they are, without a socket and without a copy.
 *
 * Every connection has a number, the peer, which is never used again. What comes in is checked
 * (proto/message.h) before anybody sees it; a peer that sends anything else is closed, with the
 * reason, and harms nobody. Closed are, too: who does not get a whole header across within `hello_s`,
 * a message of which nothing came for `stall_s`, or that took so long and comes with less than 1000
 * bytes a second, and who takes nothing of what is sent for `stall_s`.
 *
 * What is sent waits in a queue without a limit: who could send more should look at shoal_net_queued.
 * Inside a process not even that tells: a message is in the other loop's inbox at once, and nothing
 * holds back a sender that is faster than the loop which receives.
 *
 * Ownership: create, then destroy; messages that are sent are taken over, messages that come
 * are the callback's to release. Threads: one runs the loop and all calls but shoal_net_wake. */
#ifndef SHOAL_WIRE_NET_H
#define SHOAL_WIRE_NET_H

#include "proto/message.h"

typedef struct shoal_net shoal_net;

typedef enum shoal_wire { SHOAL_WIRE_RAW, SHOAL_WIRE_WEBSOCKET } shoal_wire;

/* What the loop tells. Any of them may send, dial and close. */
typedef struct shoal_net_calls {
  void *self;
  void (*opened)(void *self, uint64_t peer, const char *address); /* accepted, or a dial that got through */
  void (*received)(void *self, uint64_t peer, shoal_message *message);
  void (*closed)(void *self, uint64_t peer, const char *reason); /* also for a dial that failed */
  /* Since the last message there was another sign of life (shoal_net_heard): a long one is under way. Told
   * a few times a second at most. NULL: nobody wants to know. */
  void (*moving)(void *self, uint64_t peer);
} shoal_net_calls;

struct shoal_http_calls; /* wire/http.h */

typedef struct shoal_net_config {
  shoal_net_calls calls;
  const struct shoal_http_calls
      *http;                /* lent for as long as the net is there; NULL: there are no pages, 404 */
  bool upgrade_only;        /* a client that speaks raw at once is refused: it has no way to say who it is */
  uint64_t payload_max;     /* larger messages close the connection */
  uint32_t connections_max; /* more are refused */
  double hello_s, stall_s;
  double idle_s; /* accepted connections without a sign of life for this long are closed; 0: never */
  const char *certificate, *key; /* PEM files: TLS for those who connect; NULL for none */
} shoal_net_config;

shoal_status shoal_net_create(shoal_net **out, const shoal_net_config *config, shoal_error *err);
void shoal_net_destroy(shoal_net *net);

/* Listens on "host:port", or ":port" for all addresses; port 0 picks one. *port is what it became. Or on
 * "#:N" for this process alone, N from 1. */
shoal_status shoal_net_listen(shoal_net *net, const char *address, uint16_t *port, shoal_error *err);
/* The file of the certificate has a new one, of the same key: connections from now on see that. */
void shoal_net_renew_certificate(shoal_net *net);

/* How addresses are dialled. */
typedef struct shoal_way {
  shoal_wire wire;
  bool tls;
  const char *fingerprint; /* or NULL */
  const char *token;       /* or NULL */
  /* A server that hangs up without a word is asked whether it speaks TLS. The loop waits for the answer: half a
   * second at most, once the host's name is known. */
  bool asks_why;
} shoal_way;

/* Starts to connect; opened or closed will be called for the peer returned. With tls, the server's
 * certificate must be valid for the host, or have this SHA-256 fingerprint (64 hex digits) when one is given,
 * before anything is said. Where there is a path, "host:port/jobs/7/chief", or a token, it begins with a
 * request of HTTP; a wire that is to be raw is then WebSocket if the server knows nothing else. A server that
 * answers with a status closes the peer with the reason "the server refuses: 403". All is lent for the call.
 * 0 when out of memory. */
uint64_t shoal_net_dial(shoal_net *net, const char *address, const shoal_way *way);
/* From within `closed`: this was a dial, and another one of the same kind would end for the same reason: the other end's
 * certificate is not the right one, or it speaks something else than this side. */
bool shoal_net_is_hopeless(const shoal_net *net);
/* The status in such a reason; 0: it is another one. */
int shoal_net_refusal(const char *reason);
/* Whether trying again will not change that status: 401, 403 and 404. */
bool shoal_net_refusal_is_final(int status);

/* Queues a message; to a peer that is gone it is dropped. */
void shoal_net_send(shoal_net *net, uint64_t peer, shoal_message message);
/* Bytes that wait to be sent to a peer, for those who could send more. */
uint64_t shoal_net_queued(const shoal_net *net, uint64_t peer);
/* When a peer last gave a sign of life, by base/clock.h: it opened, bytes came from it, or it took more after
 * the socket had been full. 0: it is gone. */
double shoal_net_heard(const shoal_net *net, uint64_t peer);
/* Who it is, "host:port": one that was dialled, as it was given. "" when it is gone. Until the next call. */
const char *shoal_net_address(const shoal_net *net, uint64_t peer);
/* Bytes that went in and out so far, over all connections. */
void shoal_net_moved(const shoal_net *net, uint64_t *in, uint64_t *out);
/* Sends what is queued, hears nothing more, then closes; `closed` is called with the reason. */
void shoal_net_close(shoal_net *net, uint64_t peer, const char *reason);

/* Waits for events, at most `seconds`, and handles them. */
void shoal_net_run(shoal_net *net, double seconds);
/* Ends the wait; from any thread. */
void shoal_net_wake(shoal_net *net);

#endif
