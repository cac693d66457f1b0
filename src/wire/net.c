/* net.c: the loop, the ports, and what libwebsockets calls.
 *
 * libwebsockets waits on the sockets, accepts, speaks TLS with those who connect, and connects to those that
 * are dialled. Its callback below only finds the net_peer that belongs to a connection and passes on what
 * happened. Connections are never closed inside a callback: they are put into a list, and shoal_net_run
 * closes them between two turns of the loop. */
#include "wire/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/text.h"
#include "wire/net_internal.h"

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

enum { TLS_HELLO = 0x16 };
typedef enum first_bytes { TOO_FEW, HTTP, ELSE } first_bytes;

/* A request begins with a method, capital letters and a blank. A message's header begins with SH, as no
 * method. */
static first_bytes judge_first(const uint8_t *bytes, size_t length) {
  size_t capitals = 0;
  if (length >= 2 && bytes[0] == 'S' && bytes[1] == 'H') return ELSE;
  while (capitals < length && bytes[capitals] >= 'A' && bytes[capitals] <= 'Z') capitals++;
  if (capitals > SHOAL_HTTP_METHOD_MAX) return ELSE;
  if (capitals == length) return TOO_FEW;
  return capitals > 0 && bytes[capitals] == ' ' ? HTTP : ELSE;
}

/* Who begins with a hello of TLS where none is spoken is told so in its own words, an alert that nothing can be
 * agreed on: if this side only hung up, it could not tell that from a server that is not there yet. */
static void refuse_tls(net_peer *peer) {
  ssize_t ignored = send(lws_get_socket_fd(peer->wsi), net_tls_refusal, sizeof net_tls_refusal,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
  (void)ignored;
  snprintf(peer->reason, sizeof peer->reason, "it speaks TLS, which is not spoken here");
  net_peer_linger(peer);
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
  } else if (what == ELSE && peer->header[0] == TLS_HELLO && !peer->tls) {
    refuse_tls(peer);
  } else if (what == ELSE && peer->net->config.upgrade_only) {
    net_peer_end(peer, "it does not speak HTTP, and nothing else is spoken here");
  } else if (what == ELSE) {
    peer->net->moved_in += peer->filled;
    peer->message_since = peer->heard_at;
    net_peer_open(peer, SHOAL_WIRE_RAW);
    if (part < length && peer->state == OPEN) net_bytes_receive(peer, bytes + part, length - part);
  }
}

static void bytes_came(net_peer *peer, uint8_t *bytes, size_t length) {
  if (length == 0) return;
  if (peer->secure != NULL)
    net_tls_receive(peer, bytes, length);
  else if (peer->state == DIALING)
    net_dial_receive(peer, bytes, length);
  else if (peer->state == ACCEPTED)
    first_came(peer, bytes, length);
  else if (peer->state == SERVING)
    net_http_receive(peer, bytes, length);
  else if (peer->state == OPEN)
    net_bytes_receive(peer, bytes, length);
}

/* All is sent: says so, and waits for the other side to close. */
static void say_goodbye(net_peer *peer) {
  bool first = !peer->parted;
  peer->parted = true;
  if (first && peer->wire == SHOAL_WIRE_WEBSOCKET)
    net_frame_goodbye(peer);
  else
    net_peer_linger(peer);
}

static void writeable(net_peer *peer) {
  if (peer->state == SERVING) net_http_writeable(peer);
  if (peer->state == DIALING) net_dial_writeable(peer);
  if (peer->state != OPEN && peer->state != FLUSHING) return;
  net_bytes_send(peer);
  peer->full = net_peer_sends(peer) || net_tls_waits(peer->secure);
  if (peer->state == ENDED) return;
  if (peer->full || (peer->state == FLUSHING && lws_partial_buffered(peer->wsi)))
    lws_callback_on_writable(peer->wsi);
  else if (peer->state == FLUSHING)
    say_goodbye(peer);
}

static void gone(net_peer *peer) {
  lws_set_opaque_user_data(peer->wsi, NULL); /* whatever libwebsockets still tells is not for this peer */
  peer->wsi = NULL;
  net_peer_lost(peer);
}

/* What happened to a connection. */
static void on_peer_event(net_peer *peer, enum lws_callback_reasons reason, void *in, size_t length) {
  switch (reason) {
  case LWS_CALLBACK_RAW_CONNECTED: net_dial_connected(peer); break;
  case LWS_CALLBACK_RAW_RX: bytes_came(peer, in, length); break;
  case LWS_CALLBACK_RAW_WRITEABLE: writeable(peer); break;
  case LWS_CALLBACK_CLIENT_CONNECTION_ERROR: net_dial_failed(peer, in, length); break;
  case LWS_CALLBACK_WSI_DESTROY: gone(peer); break;
  default: break;
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
  on_peer_event(peer, reason, in, length);
  return 0;
}

/* The first one gets raw connections, and so all. */
static const struct lws_protocols protocols[] = {{.name = "http", .callback = on_event}, {0}};

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

static struct lws_vhost *dialing_vhost(shoal_net *net) {
  const struct lws_context_creation_info info = {
      .port = CONTEXT_PORT_NO_LISTEN, .vhost_name = "dial", .protocols = protocols};
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
      .options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS |
                 (net->certificate != NULL ? LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT : 0),
      .pt_serv_buf_size = READ_BYTES,
      .timeout_secs = (unsigned)net->config.hello_s + 10,
      .user = net,
      .gid = -1,
      .uid = -1,
  };
  net->context = create_context(&info);
  if (net->context != NULL) net->dialing = dialing_vhost(net);
  return net->dialing != NULL;
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
  SSL_CTX_free(net->tls);
  free(net->peers);
  free(net->unused);
  free(net->certificate);
  free(net->key);
  free(net);
}

/* ---- listen ---- */

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

void shoal_net_renew_certificate(shoal_net *net) {
  if (net->certificate != NULL)
    (void)lws_tls_cert_updated(net->context, net->certificate, net->key, NULL, 0, NULL, 0);
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
  shoal_status status = net_split_address(address, host, port, err);
  if (status != SHOAL_OK) return status;
  if (net_is_thread(host)) return listen_thread(net, address, *port, err);
  if (host[0] != 0) status = resolve(host, net->interface, &v6, err);
  if (status != SHOAL_OK) return status;
  return listen_socket(net, address, host[0] != 0 ? net->interface : NULL, v6, port, err);
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
    net->hopeless = peer->hopeless && peer->dialed;
    net_peer_free(peer);
    if (http == NULL)
      net->config.calls.closed(net->config.calls.self, number, reason);
    else if (left != 0)
      http->left(http->self, left);
  }
}

bool shoal_net_is_hopeless(const shoal_net *net) { return net->hopeless; }

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
