/* net_dial.c: a connection that is dialled, until it is open.
 *
 * What it is at, and what takes it to the next:
 *
 *   CONNECTING  libwebsockets finds the host and connects           -> AGREEING with TLS; ASKING, or open
 *   AGREEING    TLS, until the server is known to be the right one  -> ASKING, or open
 *   ASKING      a request of HTTP is out, for an upgrade            -> open by its answer
 *
 * Nothing is asked where there is nothing to say: a raw connection without a path and a token begins with
 * messages. The request is that of RFC 6455 for a WebSocket. Who wants raw offers the protocol "shoal-raw"
 * first; a server that takes it speaks raw from the end of its answer on, and so does this side. Proxies let
 * that through: to most of them, what comes behind such an answer is bytes. A server that takes "shoal"
 * speaks WebSocket. */
#include <errno.h>
#include <netdb.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/net_internal.h"

enum { ANSWER_MAX = 8 << 10, KEY_BYTES = 16, KEY_TEXT_MAX = 32, STATUS_MAX = 999 };
static const char REFUSES[] = "the server refuses: ";
static const int DIAGNOSIS_MS = 50; /* what is refused is refused at once */
static const int ANSWER_MS = 250;

typedef enum phase { CONNECTING, AGREEING, ASKING } phase;

struct net_dial {
  phase phase;
  char host[HOST_MAX], path[HOST_MAX];
  uint16_t port;
  bool raw; /* is wanted, if it can be had */
  bool tls;
  char fingerprint[FINGERPRINT_DIGITS + 1]; /* empty: none */
  char *token;                              /* or NULL */
  shoal_text request;
  size_t sent; /* of the request */
  char accept[FRAME_ACCEPT_MAX];
  char answer[ANSWER_MAX];
  size_t filled;
};

/* ---- where to ---- */

bool net_is_thread(const char *host) { return strcmp(host, "#") == 0; }

shoal_status net_split_address(const char *address, char host[HOST_MAX], uint16_t *port, shoal_error *err) {
  const char *colon = strrchr(address, ':');
  uint64_t number;
  if (colon == NULL || !shoal_read_u64(colon + 1, strlen(colon + 1), &number) || number > UINT16_MAX)
    return shoal_fail(err, SHOAL_INVALID, "'%s' is no address; one looks like 192.168.1.5:7000", address);
  size_t length = (size_t)(colon - address);
  if (length >= 2 && address[0] == '[' && colon[-1] == ']') {
    address++;
    length -= 2;
  }
  if (length >= HOST_MAX)
    return shoal_fail(err, SHOAL_INVALID, "the name of a host is at most %d characters", HOST_MAX - 1);
  memcpy(host, address, length);
  host[length] = 0;
  *port = (uint16_t)number;
  return SHOAL_OK;
}

/* Nothing in it that would be another line of a head. */
static bool is_plain(const char *text) {
  while (*text > ' ' && *text < 0x7f) text++;
  return *text == 0;
}

/* "host:port" or "host:port/path". */
static shoal_status split_target(const char *address, net_dial *dial, shoal_error *err) {
  char place[HOST_MAX + 8];
  size_t length = strcspn(address, "/");
  const char *path = address[length] != 0 ? address + length : "/";
  if (length >= sizeof place || strlen(path) >= sizeof dial->path || !is_plain(address))
    return shoal_fail(err, SHOAL_INVALID, "'%.300s' is no address; one looks like 192.168.1.5:7000", address);
  memcpy(place, address, length);
  place[length] = 0;
  memcpy(dial->path, path, strlen(path) + 1);
  return net_split_address(place, dial->host, &dial->port, err);
}

/* ---- dials that fail ---- */

/* What the kernel says to a connection that is tried, if it says it at once; 0: nothing. */
static int try_address(const struct addrinfo *to) {
  int fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), failure = 0;
  socklen_t length = sizeof failure;
  if (fd < 0) return 0;
  if (connect(fd, to->ai_addr, to->ai_addrlen) != 0) failure = errno;
  if (failure == EINPROGRESS) {
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    failure = 0;
    if (poll(&wait, 1, DIAGNOSIS_MS) == 1) (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &length);
  }
  close(fd);
  return failure;
}

/* libwebsockets does not say why it could not connect, so the reason is looked for: an unknown name, or what
 * the kernel says of the first address. */
static void end_unreachable(net_peer *peer) {
  const net_dial *dial = peer->dial;
  struct addrinfo *found, hints = {.ai_socktype = SOCK_STREAM};
  char service[8];
  snprintf(service, sizeof service, "%u", dial->port);
  int unknown = getaddrinfo(dial->host, service, &hints, &found);
  if (unknown != 0) {
    net_peer_end(peer, "%s cannot be reached: no host of the name '%s' is known here (%s)", peer->address,
                 dial->host, gai_strerror(unknown));
    return;
  }
  int failure = try_address(found);
  freeaddrinfo(found);
  if (failure == ECONNREFUSED)
    net_peer_end(peer, "%s cannot be reached: connection refused, nobody listens there", peer->address);
  else if (failure != 0)
    net_peer_end(peer, "%s cannot be reached: %s", peer->address, strerror(failure));
  else
    net_peer_end(peer, "%s cannot be reached", peer->address);
}

/* "Unable to connect" is all that libwebsockets says of what the kernel told it. */
void net_dial_failed(net_peer *peer, const char *why, size_t length) {
  static const char vague[] = "Unable to connect";
  if (peer->state != DIALING) return;
  if (why == NULL || (length >= sizeof vague - 1 && memcmp(why, vague, sizeof vague - 1) == 0))
    end_unreachable(peer);
  else
    net_peer_end(peer, "%s cannot be reached: %.*s", peer->address, (int)length, why);
}

/* Ends a peer whose server's certificate is not accepted. */
static void end_uncertified(net_peer *peer, long result) {
  peer->hopeless = true;
  bool nobody = result == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
                result == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
                result == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
                result == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE;
  if (nobody)
    net_peer_end(peer,
                 "%s cannot be reached: its certificate is signed by nobody known here; if it is the right "
                 "one, give its SHA-256 with --fingerprint",
                 peer->address);
  else
    net_peer_end(peer, "%s cannot be reached: its certificate is not accepted: %s", peer->address,
                 X509_verify_cert_error_string(result));
}

void net_dial_disagreed(net_peer *peer) {
  long result = peer->dial->fingerprint[0] == 0 ? net_tls_verified(peer->secure) : X509_V_OK;
  peer->hopeless = true;
  if (result != X509_V_OK)
    end_uncertified(peer, result);
  else
    net_peer_end(peer,
                 "%s cannot be reached: something answers there, but the TLS handshake failed; does that "
                 "server use TLS?",
                 peer->address);
}

static void end_strange(net_peer *peer, const char *what) {
  peer->hopeless = true;
  net_peer_end(peer, "something answers at %s, but not as Shoal does: %s", peer->address, what);
}

/* Says the hello of TLS to an address that has hung up on one who spoke without. Whoever speaks TLS answers that it is no
 * good, since it has nothing in it. A proxy that has nobody behind it hangs up again, and a Shoal without TLS says so. */
static bool speaks_tls(const char *host, uint16_t port) {
  static const uint8_t hello[] = {0x16, 3, 1, 0, 4, 1, 0, 0, 0};
  struct addrinfo *found, hints = {.ai_socktype = SOCK_STREAM};
  char service[8];
  uint8_t answer[sizeof net_tls_refusal] = {0};
  snprintf(service, sizeof service, "%u", port);
  if (getaddrinfo(host, service, &hints, &found) != 0) return false;
  int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  struct pollfd wait = {.fd = fd, .events = POLLOUT};
  bool asked = fd >= 0 && (connect(fd, found->ai_addr, found->ai_addrlen) == 0 || errno == EINPROGRESS) &&
               poll(&wait, 1, ANSWER_MS) == 1 && send(fd, hello, sizeof hello, MSG_NOSIGNAL) == sizeof hello;
  wait.events = POLLIN;
  bool answered = asked && poll(&wait, 1, ANSWER_MS) == 1 && recv(fd, answer, sizeof answer, 0) >= 2;
  if (fd >= 0) close(fd);
  freeaddrinfo(found);
  return answered && (answer[0] == 0x15 || answer[0] == 0x16) && answer[1] == 3 &&
         memcmp(answer, net_tls_refusal, sizeof answer) != 0;
}

void net_dial_unheard(net_peer *peer, const char *why) {
  char place[sizeof peer->address], host[HOST_MAX];
  uint16_t port;
  snprintf(place, sizeof place, "%.*s", (int)strcspn(peer->address, "/"), peer->address);
  peer->hopeless = peer->asks_why && peer->secure == NULL &&
                   net_split_address(place, host, &port, NULL) == SHOAL_OK && speaks_tls(host, port);
  bool open = peer->state == OPEN; /* then what it is about is said around the reason */
  const char *said = peer->hopeless ? "it speaks TLS; add --transport tls" : why;
  if (open)
    net_peer_end(peer, "%s", said);
  else
    net_peer_end(peer, "something answers at %s, but not as Shoal does: %s", peer->address, said);
}

void net_dial_lost(net_peer *peer) {
  const net_dial *dial = peer->dial;
  if (dial->phase == CONNECTING)
    end_unreachable(peer);
  else if (dial->phase == AGREEING)
    net_peer_end(peer,
                 "%s cannot be reached: something answers there, but the TLS handshake failed: it closed the "
                 "connection",
                 peer->address);
  else if (dial->filled == 0)
    net_dial_unheard(peer, "it closed the connection without an answer");
  else
    end_strange(peer, "it closed the connection in the middle of its answer");
}

/* ---- it is open ---- */

void net_dial_free(net_dial *dial) {
  if (dial == NULL) return;
  if (dial->token != NULL) explicit_bzero(dial->token, strlen(dial->token));
  if (dial->request.length > 0) explicit_bzero(dial->request.bytes, dial->request.length);
  free(dial->token);
  shoal_text_release(&dial->request);
  free(dial);
}

/* The bytes that came behind the answer are the connection's first: `rest` of them in the dial. */
static void open_with(net_peer *peer, shoal_wire wire, size_t rest) {
  net_dial *dial = peer->dial;
  peer->dial = NULL;
  net_peer_open(peer, wire);
  if (rest > 0 && peer->state == OPEN)
    net_bytes_take(peer, (uint8_t *)dial->answer + dial->filled - rest, rest);
  net_dial_free(dial);
}

/* ---- the question and its answer ---- */

static bool write_request(net_dial *dial) {
  uint8_t key[KEY_BYTES];
  char text[KEY_TEXT_MAX];
  shoal_text *out = &dial->request;
  bool v6 = strchr(dial->host, ':') != NULL;
  if (RAND_bytes(key, sizeof key) != 1) return false;
  EVP_EncodeBlock((uint8_t *)text, key, sizeof key);
  net_frame_accept(text, dial->accept);
  shoal_text_addf(out, "GET %s HTTP/1.1\r\nHost: %s%s%s:%u\r\n", dial->path, v6 ? "[" : "", dial->host,
                  v6 ? "]" : "", dial->port);
  shoal_text_addf(out,
                  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                  "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Protocol: %s\r\n",
                  text, dial->raw ? "shoal-raw, shoal" : "shoal");
  if (dial->token != NULL) shoal_text_addf(out, "Authorization: Bearer %s\r\n", dial->token);
  shoal_text_addf(out, "\r\n");
  return !out->failed;
}

/* Gives the request, or what is left of it, to the socket. True: that has all. */
static bool send_request(net_peer *peer) {
  net_dial *dial = peer->dial;
  while (dial->sent < dial->request.length) {
    ssize_t sent = send(lws_get_socket_fd(peer->wsi), dial->request.bytes + dial->sent,
                        dial->request.length - dial->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) net_dial_lost(peer);
    if (sent <= 0) return false;
    dial->sent += (size_t)sent;
  }
  return true;
}

void net_dial_writeable(net_peer *peer) {
  bool all = peer->secure != NULL ? net_tls_flush(peer) : send_request(peer);
  if (!all && peer->state == DIALING) lws_callback_on_writable(peer->wsi);
}

static void ask(net_peer *peer) {
  net_dial *dial = peer->dial;
  dial->phase = ASKING;
  if (!write_request(dial)) {
    net_peer_end(peer, "no memory for what is to be sent");
    return;
  }
  bool secure = peer->secure != NULL;
  if (secure && !net_tls_write(peer, (uint8_t *)dial->request.bytes, dial->request.length)) return;
  net_dial_writeable(peer);
}

static bool wants_to_ask(const net_dial *dial) {
  return !dial->raw || dial->token != NULL || strcmp(dial->path, "/") != 0;
}

void net_dial_agreed(net_peer *peer) {
  net_dial *dial = peer->dial;
  peer->hopeless = dial->fingerprint[0] != 0 && !net_tls_has_fingerprint(peer->secure, dial->fingerprint);
  if (peer->hopeless)
    net_peer_end(peer, "the server's certificate does not have the expected fingerprint");
  else if (wants_to_ask(dial))
    ask(peer);
  else
    open_with(peer, SHOAL_WIRE_RAW, 0);
}

void net_dial_connected(net_peer *peer) {
  net_dial *dial = peer->dial;
  if (peer->state != DIALING) return;
  if (!dial->tls) {
    net_dial_agreed(peer);
    return;
  }
  dial->phase = AGREEING;
  if (net_tls_begin(peer, dial->host, dial->fingerprint[0] != 0))
    net_tls_agree(peer);
  else
    net_peer_end(peer, "TLS could not be set up");
}

int shoal_net_refusal(const char *reason) {
  uint64_t status = 0;
  size_t begin = strlen(REFUSES);
  if (strncmp(reason, REFUSES, begin) == 0)
    (void)shoal_read_u64(reason + begin, strlen(reason + begin), &status);
  return status <= STATUS_MAX ? (int)status : 0;
}

bool shoal_net_refusal_is_final(int status) { return status == 401 || status == 403 || status == 404; }

/* The whole head is here. */
static void judge_answer(net_peer *peer, size_t length) {
  enum { SWITCHING_PROTOCOLS = 101 };
  net_dial *dial = peer->dial;
  shoal_http_reply reply;
  peer->net->moved_in += length;
  const char *wrong = shoal_http_reply_read(&reply, dial->answer, length);
  bool raw = wrong == NULL && reply.websocket && dial->raw && strcmp(reply.protocol, "shoal-raw") == 0;
  if (wrong != NULL)
    end_strange(peer, wrong);
  else if (reply.status / 100 == 2)
    end_strange(peer, "a page of HTTP");
  else if (reply.status != SWITCHING_PROTOCOLS)
    net_peer_end(peer, "%s%d", REFUSES, reply.status);
  else if (strcmp(reply.accept, dial->accept) != 0)
    end_strange(peer, "it answers another question than it was asked");
  else if (!raw && strcmp(reply.protocol, "shoal") != 0)
    end_strange(peer, "it chose a protocol that was not offered");
  else
    open_with(peer, raw ? SHOAL_WIRE_RAW : SHOAL_WIRE_WEBSOCKET, dial->filled - length);
}

void net_dial_receive(net_peer *peer, uint8_t *bytes, size_t length) {
  net_dial *dial = peer->dial;
  static const char begin[] = "HTTP/1.";
  size_t room = ANSWER_MAX - dial->filled, part = length < room ? length : room, known = sizeof begin - 1;
  if (dial->phase != ASKING) {
    end_strange(peer, "it speaks before it was asked");
    return;
  }
  memcpy(dial->answer + dial->filled, bytes, part);
  dial->filled += part;
  peer->answered = true;
  const char *end = memmem(dial->answer, dial->filled, "\r\n\r\n", 4);
  if (memcmp(dial->answer, begin, dial->filled < known ? dial->filled : known) != 0)
    end_strange(peer, "its answer is no HTTP");
  else if (end != NULL)
    judge_answer(peer, (size_t)(end - dial->answer) + 4);
  else if (dial->filled == ANSWER_MAX)
    end_strange(peer, "the head of its answer does not end");
  if (part < length && peer->state == OPEN) net_bytes_take(peer, bytes + part, length - part);
}

/* ---- dialling ---- */

/* Ends a peer that cannot be dialled, and says why. */
static void check_dial(shoal_net *net, net_peer *peer, const char *address, const shoal_way *way) {
  shoal_error err = {0};
  net_dial *dial = peer->dial;
  if (way->token != NULL) dial->token = strdup(way->token);
  if (split_target(address, dial, &err) != SHOAL_OK)
    net_peer_end(peer, "%s", err.text);
  else if (net->peers[peer->number % net->slots] != peer)
    net_peer_end(peer, "there are %u connections, and no more are allowed", net->slots - 1);
  else if (way->fingerprint != NULL && strlen(way->fingerprint) != FINGERPRINT_DIGITS)
    net_peer_end(peer, "a fingerprint has %d hex digits", FINGERPRINT_DIGITS);
  else if (way->token != NULL && (dial->token == NULL || !is_plain(dial->token)))
    net_peer_end(peer, "a token has no blanks and no other characters than ASCII's");
}

static void dial_socket(shoal_net *net, net_peer *peer, const shoal_way *way) {
  net_dial *dial = peer->dial;
  dial->raw = way->wire == SHOAL_WIRE_RAW;
  dial->tls = way->tls;
  if (way->tls && way->fingerprint != NULL)
    memcpy(dial->fingerprint, way->fingerprint, sizeof dial->fingerprint);
  struct lws_client_connect_info info = {
      .context = net->context,
      .vhost = net->dialing,
      .address = dial->host,
      .port = dial->port,
      .path = "/",
      .host = dial->host,
      .origin = dial->host,
      .opaque_user_data = peer,
      .method = "RAW",
      .local_protocol_name = "http",
  };
  struct lws *wsi = lws_client_connect_via_info(&info);
  if (wsi != NULL)
    peer->wsi = wsi;
  else if (peer->state == DIALING)
    end_unreachable(peer);
}

static void dial_thread(net_peer *peer) {
  if (!net_thread_dial(peer, peer->dial->port)) net_peer_end(peer, "nobody listens at %s", peer->address);
  net_dial_free(peer->dial);
  peer->dial = NULL;
}

uint64_t shoal_net_dial(shoal_net *net, const char *address, const shoal_way *way) {
  net_peer *peer = net_peer_create(net, DIALING);
  if (peer == NULL) return 0;
  peer->dialed = true;
  peer->asks_why = way->asks_why;
  peer->dial = calloc(1, sizeof *peer->dial);
  snprintf(peer->address, sizeof peer->address, "%s", address);
  if (peer->dial == NULL)
    net_peer_end(peer, "no memory for connections");
  else
    check_dial(net, peer, address, way);
  if (peer->state == ENDED) return peer->number;
  if (net_is_thread(peer->dial->host))
    dial_thread(peer);
  else
    dial_socket(net, peer, way);
  return peer->number;
}
