/* net.c: the loop, the ports, and what libwebsockets calls.
 *
 * libwebsockets waits on the sockets, accepts, dials, speaks TLS, and WebSocket to those that are dialed. Its
 * callback below only finds the net_peer that belongs to a connection and passes on what happened. Connections are never closed inside a callback:
 * they are put into a list, and shoal_net_run closes them between two turns of the loop. */
#include "net/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "net/net_internal.h"

static const int DIAGNOSIS_MS = 50; /* what is refused is refused at once */

/* ---- TLS ---- */

/* Is the certificate that the server showed the one with the wanted fingerprint? */
static bool certificate_matches(const net_peer *peer) {
  uint8_t digest[32];
  unsigned digest_bytes = sizeof digest;
  X509 *certificate = SSL_get1_peer_certificate(lws_get_ssl(peer->wsi));
  if (certificate == NULL) return false;
  bool ok = X509_digest(certificate, EVP_sha256(), digest, &digest_bytes) == 1;
  X509_free(certificate);
  char hex[FINGERPRINT_DIGITS + 1];
  for (unsigned i = 0; ok && i < sizeof digest; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
  return ok && strcasecmp(hex, peer->fingerprint) == 0;
}

/* ---- what libwebsockets calls ---- */

static void describe_address(net_peer *peer) {
  struct sockaddr_storage from;
  socklen_t length = sizeof from;
  char host[HOST_MAX], port[8];
  if (getpeername(lws_get_socket_fd(peer->wsi), (struct sockaddr *)&from, &length) != 0 ||
      getnameinfo((struct sockaddr *)&from, length, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return;
  bool mapped = strncmp(host, "::ffff:", 7) == 0; /* an IPv4 address on a socket for both */
  bool v6 = !mapped && strchr(host, ':') != NULL;
  snprintf(peer->address, sizeof peer->address, v6 ? "[%.255s]:%s" : "%.255s:%s", mapped ? host + 7 : host,
           port);
}

static int accepted(shoal_net *net, struct lws *wsi) {
  net_peer *peer = net_peer_create(net, ACCEPTED);
  if (peer == NULL) return -1;
  peer->wsi = wsi;
  peer->tls = net->certificate != NULL;
  describe_address(peer);
  lws_set_opaque_user_data(wsi, peer);
  return 0;
}

typedef enum first_bytes { TOO_FEW, HTTP, ELSE } first_bytes;

/* A request begins with a method, capital letters and a blank. A message's header begins with SH, as no method. */
static first_bytes judge_first(const uint8_t *bytes, size_t length) {
  size_t capitals = 0;
  if (length >= 2 && bytes[0] == 'S' && bytes[1] == 'H') return ELSE;
  while (capitals < length && bytes[capitals] >= 'A' && bytes[capitals] <= 'Z') capitals++;
  if (capitals > SHOAL_HTTP_METHOD_MAX) return ELSE;
  if (capitals == length) return TOO_FEW;
  return capitals > 0 && bytes[capitals] == ' ' ? HTTP : ELSE;
}

/* Keeps the first bytes, where a message's header belongs, until they tell what this is. */
static void first_came(net_peer *peer, uint8_t *bytes, size_t length) {
  size_t room = SHOAL_HTTP_METHOD_MAX + 1 - peer->filled, part = length < room ? length : room;
  lws_set_timeout(peer->wsi, NO_PENDING_TIMEOUT, 0); /* it was for TLS, which is through */
  memcpy(peer->header + peer->filled, bytes, part);
  peer->filled += part;
  net_peer_lives(peer);
  first_bytes what = judge_first(peer->header, peer->filled);
  if (what == HTTP) {
    uint8_t first[SHOAL_HTTP_METHOD_MAX + 1];
    size_t count = peer->filled;
    memcpy(first, peer->header, count);
    peer->filled = 0;
    net_http_begin(peer);
    net_http_receive(peer, first, count);
    if (part < length && peer->state == SERVING) net_http_receive(peer, bytes + part, length - part);
  } else if (what == ELSE && peer->net->config.websocket_only) {
    net_peer_end(peer, "it does not speak HTTP, and nothing else is spoken here");
  } else if (what == ELSE) {
    peer->net->moved_in += peer->filled;
    peer->message_since = peer->heard_at;
    net_peer_open(peer, SHOAL_WIRE_RAW);
    if (part < length && peer->state == OPEN) net_raw_receive(peer, bytes + part, length - part);
  }
}

static void bytes_came(net_peer *peer, uint8_t *bytes, size_t length) {
  if (length == 0) return;
  if (peer->state == ACCEPTED)
    first_came(peer, bytes, length);
  else if (peer->state == SERVING)
    net_http_receive(peer, bytes, length);
  else if (peer->state == OPEN && peer->wire == SHOAL_WIRE_RAW)
    net_raw_receive(peer, bytes, length);
  else if (peer->state == OPEN)
    net_frame_receive(peer, bytes, length);
}

static void got_through(net_peer *peer, shoal_wire wire) {
  if (peer->state == DIALING) net_peer_open(peer, wire);
}

/* All is sent: says so, and waits for the other side to close. */
static int say_goodbye(net_peer *peer) {
  if (peer->wire == SHOAL_WIRE_RAW || !peer->dialed) {
    if (peer->wire == SHOAL_WIRE_WEBSOCKET) net_frame_goodbye(peer);
    net_peer_linger(peer);
    return 0;
  }
  peer->state = LINGERING;
  peer->since = shoal_clock_seconds();
  size_t length = strlen(peer->reason);
  lws_close_reason(peer->wsi, LWS_CLOSE_STATUS_NORMAL, (uint8_t *)peer->reason,
                   length < CLOSE_TEXT_MAX ? length : CLOSE_TEXT_MAX);
  return -1; /* which makes libwebsockets send that, and wait for the answer */
}

static int writeable(net_peer *peer) {
  if (peer->state == SERVING) net_http_writeable(peer);
  if (peer->state != OPEN && peer->state != FLUSHING) return 0;
  if (net_peer_sends(peer)) {
    if (peer->wire == SHOAL_WIRE_RAW || !peer->dialed)
      net_raw_send(peer);
    else
      net_websocket_send(peer);
  }
  peer->full = net_peer_sends(peer);
  if (peer->full || (peer->state == FLUSHING && lws_partial_buffered(peer->wsi)))
    lws_callback_on_writable(peer->wsi);
  else if (peer->state == FLUSHING)
    return say_goodbye(peer);
  return 0;
}

/* "host:port", "[host]:port" or ":port". */
static shoal_status split_address(const char *address, char host[HOST_MAX], uint16_t *port,
                                  shoal_error *err) {
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
  char host[HOST_MAX], address[HOST_MAX + 8];
  uint16_t port;
  struct addrinfo *found, hints = {.ai_socktype = SOCK_STREAM};
  snprintf(address, sizeof address, "%.*s", (int)strcspn(peer->address, "/"), peer->address);
  if (split_address(address, host, &port, NULL) != SHOAL_OK) {
    net_peer_end(peer, "%s cannot be reached", peer->address);
    return;
  }
  char service[8];
  snprintf(service, sizeof service, "%u", port);
  int unknown = getaddrinfo(host, service, &hints, &found);
  if (unknown != 0) {
    net_peer_end(peer, "%s cannot be reached: no host of the name '%s' is known here (%s)", peer->address,
                 host, gai_strerror(unknown));
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

/* Whether it was the server's certificate: then the peer is ended with what is wrong with it. */
static bool end_uncertified(net_peer *peer) {
  SSL *ssl = peer->tls && peer->wsi != NULL ? lws_get_ssl(peer->wsi) : NULL;
  long result = ssl != NULL ? SSL_get_verify_result(ssl) : X509_V_OK;
  if (result == X509_V_OK) return false;
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
  return true;
}

static void gone(net_peer *peer) {
  lws_set_opaque_user_data(peer->wsi, NULL); /* whatever libwebsockets still tells is not for this peer */
  peer->wsi = NULL;
  if (peer->state == DIALING)
    end_unreachable(peer);
  else if (peer->state == ACCEPTED)
    net_peer_end(peer, "it spoke neither raw nor WebSocket%s", peer->tls ? " over TLS" : "");
  else if (peer->in_payload || peer->filled > 0)
    net_peer_end(peer, "the other side closed the connection in the middle of a message");
  else
    net_peer_end(peer, "the other side closed the connection");
}

/* The dialed server has answered the question for a WebSocket. */
static int answered(net_peer *peer) {
  enum { SWITCHING_PROTOCOLS = 101 };
  unsigned status = lws_http_client_http_response(peer->wsi);
  if (status == SWITCHING_PROTOCOLS) return 0;
  if (status / 100 == 2)
    net_peer_end(peer, "something answers at %s, but not as Shoal does: a page of HTTP", peer->address);
  else
    net_peer_end(peer, "the server refuses: %u", status);
  return -1;
}

static bool certificate_is_wrong(net_peer *peer) {
  if (peer->fingerprint[0] == 0 || certificate_matches(peer)) return false;
  net_peer_end(peer, "the server's certificate does not have the expected fingerprint");
  return true;
}

/* Puts the token into the question for a WebSocket, which it must not be before the server is the right one. */
static int ask_for_websocket(net_peer *peer, char **at, size_t room) {
  if (certificate_is_wrong(peer)) return -1;
  if (peer->token == NULL) return 0;
  int length = snprintf(*at, room, "Authorization: Bearer %s\r\n", peer->token);
  if (length < 0 || (size_t)length >= room) return -1;
  *at += length;
  return 0;
}

/* "Unable to connect" is all that libwebsockets says of what the kernel told it. */
static void not_through(net_peer *peer, const char *why, size_t length) {
  static const char vague[] = "Unable to connect", tls[] = "connect SSL err";
  if (end_uncertified(peer)) return;
  if (why != NULL && length >= sizeof tls - 1 && memcmp(why, tls, sizeof tls - 1) == 0) {
    net_peer_end(peer, "%s cannot be reached: something answers there, but TLS could not be agreed on",
                 peer->address);
    return;
  }
  bool is_vague = why == NULL || (length >= sizeof vague - 1 && memcmp(why, vague, sizeof vague - 1) == 0);
  if (is_vague && peer->state == DIALING) {
    end_unreachable(peer);
    return;
  }
  net_peer_end(peer, "%s cannot be reached: %.*s", peer->address, why != NULL ? (int)length : 10,
               why != NULL ? why : "no reason");
}

/* What happened to a connection. */
static int on_peer_event(net_peer *peer, enum lws_callback_reasons reason, void *in, size_t length) {
  switch (reason) {
  case LWS_CALLBACK_RAW_CONNECTED: got_through(peer, SHOAL_WIRE_RAW); return 0;
  case LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER: return ask_for_websocket(peer, in, length);
  case LWS_CALLBACK_ESTABLISHED_CLIENT_HTTP: return answered(peer);
  case LWS_CALLBACK_CLIENT_ESTABLISHED: got_through(peer, SHOAL_WIRE_WEBSOCKET); return 0;
  case LWS_CALLBACK_RAW_RX: bytes_came(peer, in, length); return 0;
  case LWS_CALLBACK_CLIENT_RECEIVE:
    if (peer->state == OPEN) net_websocket_receive(peer, in, length);
    return 0;
  case LWS_CALLBACK_RAW_WRITEABLE:
  case LWS_CALLBACK_CLIENT_WRITEABLE: return writeable(peer);
  case LWS_CALLBACK_CLIENT_CONNECTION_ERROR: not_through(peer, in, length); return 0;
  case LWS_CALLBACK_WSI_DESTROY: gone(peer); return 0;
  default: return 0;
  }
}

/* The result is libwebsockets': 0 to go on, others refuse or close. */
static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t length) {
  (void)user;
  shoal_net *net = lws_context_user(lws_get_context(wsi));
  if (reason == LWS_CALLBACK_FILTER_NETWORK_CONNECTION) return net->unused_count == 0;
  if (reason == LWS_CALLBACK_RAW_ADOPT) return accepted(net, wsi);
  net_peer *peer = lws_get_opaque_user_data(wsi);
  if (peer == NULL) return 0; /* none, or it ended here, and libwebsockets is saying goodbye */
  peer->wsi = wsi;
  return on_peer_event(peer, reason, in, length);
}

/* The first one gets raw connections, and so all that are accepted. */
static const struct lws_protocols protocols[] = {
    {.name = "http", .callback = on_event},
    {.name = "shoal", .callback = on_event, .rx_buffer_size = FRAGMENT_BYTES},
    {0},
};

/* ---- create and destroy ---- */

/* libwebsockets numbers the places where OpenSSL keeps its pointers in variables of the whole process, and
 * sets them whenever a context or a vhost is made. So one thread at a time does that. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

static struct lws_context *create_context(const struct lws_context_creation_info *info) {
  pthread_mutex_lock(&making);
  lws_set_log_level(0, NULL);
  struct lws_context *context = lws_create_context(info);
  pthread_mutex_unlock(&making);
  return context;
}

static struct lws_vhost *create_vhost(shoal_net *net, const struct lws_context_creation_info *info) {
  pthread_mutex_lock(&making);
  struct lws_vhost *vhost = lws_create_vhost(net->context, info);
  pthread_mutex_unlock(&making);
  return vhost;
}

static void destroy_context(struct lws_context *context) {
  if (context == NULL) return;
  pthread_mutex_lock(&making);
  lws_context_destroy(context);
  pthread_mutex_unlock(&making);
}

static struct lws_vhost *dialing_vhost(shoal_net *net, const char *name, uint64_t options) {
  struct lws_context_creation_info info = {
      .port = CONTEXT_PORT_NO_LISTEN, .vhost_name = name, .protocols = protocols, .options = options};
  return create_vhost(net, &info);
}

/* Every connection is a file of this process, and often only 1024 are allowed unless one asks. */
static void allow_files(uint32_t connections) {
  enum { BESIDE = 256 };
  struct rlimit limit;
  rlim_t wanted = (rlim_t)connections + BESIDE;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static char *copy_or_null(const char *text) { return text != NULL ? strdup(text) : NULL; }

/* False: no memory. */
static bool reserve(shoal_net *net) {
  const shoal_net_config *config = &net->config;
  net->certificate = copy_or_null(config->certificate);
  net->key = copy_or_null(config->key);
  net->slots = config->connections_max + 1;
  net->peers = calloc(net->slots, sizeof *net->peers);
  net->unused = calloc(net->slots, sizeof *net->unused);
  if (net->peers == NULL || net->unused == NULL || (config->certificate && !net->certificate) ||
      (config->key && !net->key))
    return false;
  for (uint32_t slot = config->connections_max; slot-- > 0;) net->unused[net->unused_count++] = slot;
  return true;
}

static bool open_context(shoal_net *net) {
  /* Its own timeouts are for what it does after a connection ended here. */
  struct lws_context_creation_info info = {
      .port = CONTEXT_PORT_NO_LISTEN,
      .protocols = protocols,
      .options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT,
      .pt_serv_buf_size = READ_BYTES,
      .timeout_secs = (unsigned)net->config.hello_s + 10,
      .user = net,
      .gid = -1,
      .uid = -1,
  };
  net->context = create_context(&info);
  if (net->context != NULL) net->plain = dialing_vhost(net, "dial", 0);
  return net->plain != NULL;
}

shoal_status shoal_net_create(shoal_net **out, const shoal_net_config *config, shoal_error *err) {
  shoal_net *net = calloc(1, sizeof *net);
  if (net == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "no memory for connections");
  net->config = *config;
  net->inbox_end = &net->inbox;
  double shortest = fmin(config->hello_s, config->stall_s);
  if (config->idle_s > 0) shortest = fmin(shortest, config->idle_s);
  net->sweep_s = shortest < 2 ? shortest / 8 : 0.25;
  allow_files(config->connections_max);
  if (!reserve(net) || !open_context(net)) {
    shoal_net_destroy(net);
    return shoal_fail(err, SHOAL_NO_MEMORY, "no memory for connections");
  }
  net_thread_join(net);
  *out = net;
  return SHOAL_OK;
}

static void detach(net_peer *peer) {
  if (peer->thread) net_thread_close(peer);
  if (peer->wsi == NULL) return;
  lws_set_opaque_user_data(peer->wsi, NULL);
  peer->wsi = NULL;
}

void shoal_net_destroy(shoal_net *net) {
  if (net == NULL) return;
  net_thread_leave(net);
  for (net_peer *peer = net->ended, *next; peer != NULL; peer = next) {
    next = peer->next_ended;
    detach(peer);
    net_peer_free(peer);
  }
  for (uint32_t slot = 0; net->peers != NULL && slot < net->slots; slot++)
    if (net->peers[slot] != NULL) {
      detach(net->peers[slot]);
      net_peer_free(net->peers[slot]);
    }
  net_thread_wake_others();
  lws_sul_cancel(&net->timer);
  destroy_context(net->context);
  free(net->peers);
  free(net->unused);
  free(net->certificate);
  free(net->key);
  free(net);
}

/* ---- listen and dial ---- */

/* "#:N" is a loop of this process. */
static bool is_thread(const char *host) { return strcmp(host, "#") == 0; }

/* A host's name as a numeric address, which is all that libwebsockets listens on. */
static shoal_status resolve(const char *host, char out[HOST_MAX], bool *v6, shoal_error *err) {
  struct addrinfo *found, hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
  int failed = getaddrinfo(host, NULL, &hints, &found);
  if (failed != 0) return shoal_fail(err, SHOAL_NOT_FOUND, "host '%s': %s", host, gai_strerror(failed));
  *v6 = found->ai_family == AF_INET6;
  failed = getnameinfo(found->ai_addr, found->ai_addrlen, out, HOST_MAX, NULL, 0, NI_NUMERICHOST);
  freeaddrinfo(found);
  return failed == 0 ? SHOAL_OK
                     : shoal_fail(err, SHOAL_NOT_FOUND, "host '%s': %s", host, gai_strerror(failed));
}

static struct lws_vhost *listening_vhost(shoal_net *net, const char *interface, uint16_t port, bool v6) {
  struct lws_context_creation_info info = {
      .port = port,
      .iface = interface,
      .vhost_name = "listen",
      .protocols = protocols,
      .listen_accept_role = "raw-skt",
      .ssl_cert_filepath = net->certificate,
      .ssl_private_key_filepath = net->key,
      .alpn = "http/1.1",
      .options = LWS_SERVER_OPTION_ADOPT_APPLY_LISTEN_ACCEPT_CONFIG |
                 LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND |
                 (net->certificate != NULL ? LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT : 0) |
                 (v6 ? 0 : LWS_SERVER_OPTION_DISABLE_IPV6),
  };
  errno = 0;
  return create_vhost(net, &info);
}

static shoal_status listen_thread(shoal_net *net, const char *address, uint16_t port, shoal_error *err) {
  if (port == 0)
    return shoal_fail(err, SHOAL_INVALID, "'%s' is no address; those inside a process count from #:1",
                      address);
  if (net_thread_listen(net, port)) return SHOAL_OK;
  return shoal_fail(err, SHOAL_IO, "cannot listen on %s: this process does so already", address);
}

static shoal_status listen_socket(shoal_net *net, const char *address, const char *interface, bool v6,
                                  uint16_t *port, shoal_error *err) {
  struct lws_vhost *vhost = listening_vhost(net, interface, *port, v6);
  /* All addresses: on a machine without IPv6, those of IPv4. */
  if (vhost == NULL && interface == NULL) vhost = listening_vhost(net, interface, *port, false);
  if (vhost == NULL && net->certificate != NULL)
    return shoal_fail(err, SHOAL_IO, "cannot listen on %s with the certificate %s and its key", address,
                      net->certificate);
  if (vhost == NULL)
    return shoal_fail(err, SHOAL_IO, "cannot listen on %s: %s", address,
                      errno != 0 ? strerror(errno) : "the address is not usable");
  *port = (uint16_t)lws_get_vhost_listen_port(vhost);
  return SHOAL_OK;
}

shoal_status shoal_net_listen(shoal_net *net, const char *address, uint16_t *port, shoal_error *err) {
  char host[HOST_MAX];
  bool v6 = true;
  shoal_status status = split_address(address, host, port, err);
  if (status != SHOAL_OK) return status;
  if (is_thread(host)) return listen_thread(net, address, *port, err);
  if (host[0] != 0) status = resolve(host, net->interface, &v6, err);
  if (status != SHOAL_OK) return status;
  return listen_socket(net, address, host[0] != 0 ? net->interface : NULL, v6, port, err);
}

/* Where a dial goes to, and how. */
typedef struct target {
  char host[HOST_MAX], path[HOST_MAX];
  uint16_t port;
  const shoal_way *way;
} target;

/* Nothing in it that would be another line of a head. */
static bool is_plain(const char *text) {
  while (*text > ' ' && *text < 0x7f) text++;
  return *text == 0;
}

/* "host:port" or "host:port/path". */
static shoal_status split_target(const char *address, target *to, shoal_error *err) {
  char place[HOST_MAX + 8];
  size_t length = strcspn(address, "/");
  const char *path = address[length] != 0 ? address + length : "/";
  if (length >= sizeof place || strlen(path) >= sizeof to->path || !is_plain(path))
    return shoal_fail(err, SHOAL_INVALID, "'%.300s' is no address; one looks like 192.168.1.5:7000", address);
  memcpy(place, address, length);
  place[length] = 0;
  memcpy(to->path, path, strlen(path) + 1);
  return split_address(place, to->host, &to->port, err);
}

/* Ends a peer that cannot be dialled, and says why. */
static void check_dial(shoal_net *net, net_peer *peer, const char *address, target *to) {
  shoal_error err = {0};
  const shoal_way *way = to->way;
  if (peer->tls && net->secure == NULL)
    net->secure = dialing_vhost(net, "dial-tls", LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT);
  if (way->token != NULL) peer->token = strdup(way->token);
  if (split_target(address, to, &err) != SHOAL_OK)
    net_peer_end(peer, "%s", err.text);
  else if (net->peers[peer->number % net->slots] != peer)
    net_peer_end(peer, "there are %u connections, and no more are allowed", net->slots - 1);
  else if (way->fingerprint != NULL && strlen(way->fingerprint) != FINGERPRINT_DIGITS)
    net_peer_end(peer, "a fingerprint has %d hex digits", FINGERPRINT_DIGITS);
  else if (way->token != NULL && (peer->token == NULL || !is_plain(peer->token)))
    net_peer_end(peer, "a token has no blanks and no other characters than ASCII's");
  else if (peer->tls && net->secure == NULL)
    net_peer_end(peer, "TLS could not be set up");
}

static void dial_socket(shoal_net *net, net_peer *peer, const target *to) {
  const char *fingerprint = to->way->fingerprint;
  bool tls = peer->tls, pinned = tls && fingerprint != NULL;
  /* libwebsockets 4.1 accepts raw over TLS, but cannot dial it; and raw has no paths. */
  bool raw = to->way->wire == SHOAL_WIRE_RAW && !tls && strcmp(to->path, "/") == 0;
  if (pinned) memcpy(peer->fingerprint, fingerprint, FINGERPRINT_DIGITS + 1);
  /* With a fingerprint the certificate may be anybody's: ask_for_websocket compares it. */
  int any = LCCSCF_ALLOW_SELFSIGNED | LCCSCF_SKIP_SERVER_CERT_HOSTNAME_CHECK | LCCSCF_ALLOW_EXPIRED |
            LCCSCF_ALLOW_INSECURE;
  struct lws_client_connect_info info = {
      .context = net->context,
      .vhost = tls ? net->secure : net->plain,
      .address = to->host,
      .port = to->port,
      .path = to->path,
      .host = to->host,
      .origin = to->host,
      /* A token is for this server, and not for where it would send us. */
      .ssl_connection = LCCSCF_HTTP_NO_FOLLOW_REDIRECT | (tls ? LCCSCF_USE_SSL | (pinned ? any : 0) : 0),
      .alpn = "http/1.1",
      .opaque_user_data = peer,
      .method = raw ? "RAW" : NULL,
      .protocol = raw ? NULL : "shoal",
      .local_protocol_name = raw ? "http" : "shoal",
  };
  struct lws *wsi = lws_client_connect_via_info(&info);
  if (wsi == NULL)
    end_unreachable(peer);
  else
    peer->wsi = wsi;
}

uint64_t shoal_net_dial(shoal_net *net, const char *address, const shoal_way *way) {
  net_peer *peer = net_peer_create(net, DIALING);
  if (peer == NULL) return 0;
  target to = {.way = way};
  peer->dialed = true;
  peer->tls = way->tls;
  snprintf(peer->address, sizeof peer->address, "%s", address);
  check_dial(net, peer, address, &to);
  if (peer->state == ENDED) return peer->number;
  if (!is_thread(to.host))
    dial_socket(net, peer, &to);
  else if (!net_thread_dial(peer, to.port))
    net_peer_end(peer, "nobody listens at %s", address);
  return peer->number;
}

/* ---- the loop ---- */

void shoal_net_close(shoal_net *net, uint64_t number, const char *reason) {
  net_peer *peer = net_peer_find(net, number);
  if (peer == NULL || peer->state > OPEN) return;
  snprintf(peer->reason, sizeof peer->reason, "%s", reason);
  if (peer->state == OPEN) {
    peer->state = FLUSHING;
    peer->moved = shoal_clock_seconds();
    net_peer_send_soon(peer);
  } else {
    net_peer_end(peer, "%s", reason);
  }
}

/* Closes those that ended and tells. Those that end meanwhile wait for the next time. */
static void bury(shoal_net *net) {
  net_peer *peer = net->ended;
  net->ended = NULL;
  for (net_peer *next; peer != NULL; peer = next) {
    next = peer->next_ended;
    if (peer->wsi != NULL) lws_set_timeout(peer->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_SYNC);
    detach(peer); /* libwebsockets may still want to say goodbye */
    const shoal_http_calls *http = peer->http != NULL ? net->config.http : NULL;
    uint64_t number = peer->number, left = net_http_left(peer);
    char reason[REASON_MAX];
    memcpy(reason, peer->reason, sizeof reason);
    net_peer_free(peer);
    if (http == NULL)
      net->config.calls.closed(net->config.calls.self, number, reason);
    else if (left != 0)
      http->left(http->self, left);
  }
}

static void sweep(shoal_net *net) {
  double now = shoal_clock_seconds();
  if (now < net->swept + net->sweep_s) return;
  net->swept = now;
  for (uint32_t slot = 0; slot < net->slots; slot++)
    if (net->peers[slot] != NULL) net_peer_check(net->peers[slot], now);
}

/* A timer that is due before the wait began would not end it; a byte in the pipe does. */
static void time_is_over(lws_sorted_usec_list_t *timer) {
  shoal_net *net = lws_container_of(timer, shoal_net, timer);
  lws_cancel_service(net->context);
}

/* Who was slow is looked at only after what has come was heard: this loop may itself have been away. */
void shoal_net_run(shoal_net *net, double seconds) {
  bury(net);
  net_thread_wake_others();
  bool peers = net->unused_count < net->slots - 1;
  if (peers && seconds > net->sweep_s) seconds = net->sweep_s;
  if (net->ended != NULL || seconds < 1e-3) {
    lws_service(net->context, -1);
  } else {
    if (seconds > 1e6) seconds = 1e6;
    lws_sul_schedule(net->context, 0, &net->timer, time_is_over, (lws_usec_t)(seconds * 1e6));
    lws_service(net->context, 0);
    lws_sul_cancel(&net->timer);
  }
  net_thread_receive(net);
  sweep(net);
  bury(net);
  net_thread_wake_others();
}

void shoal_net_wake(shoal_net *net) { lws_cancel_service(net->context); }
