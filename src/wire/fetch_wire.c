/* fetch_wire.c: see fetch_wire.h.
 *
 * The socket never blocks: reads and writes that would are waited for with poll, in short slices, so that a
 * stop is noticed. */
#include "wire/fetch_wire.h"

#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

static const double SLICE_S = 0.1;

/* ---- waiting ---- */

bool fetch_wire_stops(const fetch_wire *w) {
  return w->stop != NULL && __atomic_load_n(w->stop, __ATOMIC_RELAXED) != 0;
}

static shoal_status fail_silent(const fetch_wire *w, shoal_error *err) {
  return shoal_fail(err, SHOAL_IO, "%s does not answer", w->link->address);
}

static shoal_status fail_errno(const fetch_wire *w, int number, shoal_error *err) {
  return shoal_fail(err, SHOAL_IO, "%s: %s", w->link->address, strerror(number));
}

static shoal_status wait_for(const fetch_wire *w, short events, double deadline, shoal_error *err) {
  for (;;) {
    if (fetch_wire_stops(w)) return shoal_fail(err, SHOAL_STOPPED, "stopped");
    double left = deadline - shoal_clock_seconds();
    if (left <= 0) return fail_silent(w, err);
    struct pollfd poll_fd = {.fd = w->fd, .events = events};
    int ready = poll(&poll_fd, 1, (int)ceil(1e3 * fmin(left, SLICE_S)));
    if (ready > 0) return SHOAL_OK;
    if (ready < 0 && errno != EINTR) return fail_errno(w, errno, err);
  }
}

bool fetch_wire_has_input(const fetch_wire *w) {
  struct pollfd poll_fd = {.fd = w->fd, .events = POLLIN};
  return poll(&poll_fd, 1, 0) > 0;
}

/* ---- TCP ---- */

static shoal_status connect_to(fetch_wire *w, const struct addrinfo *to, double deadline, shoal_error *err) {
  w->fd = socket(to->ai_family, to->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, to->ai_protocol);
  if (w->fd < 0) return fail_errno(w, errno, err);
  if (connect(w->fd, to->ai_addr, to->ai_addrlen) == 0) return SHOAL_OK;
  if (errno != EINPROGRESS) return fail_errno(w, errno, err);
  shoal_status status = wait_for(w, POLLOUT, deadline, err);
  if (status != SHOAL_OK) return status;
  int number = 0;
  socklen_t length = sizeof number;
  getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &number, &length);
  return number == 0 ? SHOAL_OK : fail_errno(w, number, err);
}

/* The host's addresses, one after the other until one answers. One that swallows everything leaves the others
 * their share of the time. */
static shoal_status connect_any(fetch_wire *w, double deadline, shoal_error *err) {
  char port[8];
  snprintf(port, sizeof port, "%u", w->link->port);
  struct addrinfo *found = NULL, hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
  int failed = getaddrinfo(w->link->host, port, &hints, &found);
  if (failed != 0) return shoal_fail(err, SHOAL_IO, "host '%s': %s", w->link->host, gai_strerror(failed));
  shoal_status status = SHOAL_IO;
  int untried = 0;
  for (const struct addrinfo *at = found; at; at = at->ai_next) untried++;
  for (const struct addrinfo *at = found; at && status != SHOAL_OK && status != SHOAL_STOPPED;
       at = at->ai_next) {
    if (w->fd >= 0) close(w->fd);
    double now = shoal_clock_seconds();
    status = connect_to(w, at, now + (deadline - now) / untried--, err);
  }
  freeaddrinfo(found);
  if (status == SHOAL_OK) setsockopt(w->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  return status;
}

/* ---- TLS ---- */

static ssize_t pipe_write(void *self, const void *bytes, size_t length) {
  return send(((fetch_wire *)self)->fd, bytes, length, MSG_NOSIGNAL);
}

static ssize_t pipe_read(void *self, void *to, size_t room) {
  return recv(((fetch_wire *)self)->fd, to, room, 0);
}

static bool set_up_tls(fetch_wire *w) {
  bool pinned = w->link->fingerprint[0] != 0;
  w->context = shoal_tls_context(!pinned);
  if (w->context == NULL) return false;
  SSL_CTX_set_mode(w->context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  w->pipe = (shoal_tls_pipe){w, pipe_write, pipe_read};
  w->ssl = shoal_tls_create(w->context, w->link->host, pinned, &w->pipe);
  return w->ssl != NULL;
}

static shoal_status fail_tls(fetch_wire *w, shoal_error *err) {
  long verified = SSL_get_verify_result(w->ssl);
  if (w->link->fingerprint[0] == 0 && verified != X509_V_OK)
    return shoal_fail(err, SHOAL_INVALID,
                      "the certificate of %s is not valid: %s; a server with a certificate of its own has a "
                      "link with its fingerprint (fp), which in a shell must be in quotes",
                      w->link->address, X509_verify_cert_error_string(verified));
  unsigned long number = ERR_get_error();
  const char *reason = number != 0 ? ERR_reason_error_string(number) : NULL;
  ERR_clear_error();
  w->no_tls = true;
  return shoal_fail(err, SHOAL_IO, "no TLS with %s: %s", w->link->address,
                    reason ? reason : "the other side closed the connection");
}

/* Waits for what OpenSSL wants after a call that gave `result`; SHOAL_OK: call again. *ended: never again. */
static shoal_status tls_wants(fetch_wire *w, int result, double deadline, bool *ended, shoal_error *err) {
  int code = SSL_get_error(w->ssl, result);
  *ended = false;
  if (code == SSL_ERROR_WANT_READ) return wait_for(w, POLLIN, deadline, err);
  if (code == SSL_ERROR_WANT_WRITE) return wait_for(w, POLLOUT, deadline, err);
  *ended = true;
  w->cut_off = code != SSL_ERROR_ZERO_RETURN;
  return SHOAL_OK;
}

static shoal_status check_fingerprint(const fetch_wire *w, shoal_error *err) {
  const char *digits = w->link->fingerprint;
  if (digits[0] == 0 || shoal_tls_has_fingerprint(w->ssl, digits)) return SHOAL_OK;
  return shoal_fail(
      err, SHOAL_INVALID,
      "the certificate of %s does not have the link's fingerprint: it is another server, or the "
      "link is an old one",
      w->link->address);
}

static shoal_status shake_hands(fetch_wire *w, double deadline, shoal_error *err) {
  ERR_clear_error();
  if (!set_up_tls(w)) return shoal_fail(err, SHOAL_NO_MEMORY, "TLS could not be set up");
  for (int result; (result = SSL_do_handshake(w->ssl)) != 1;) {
    bool ended;
    shoal_status status = tls_wants(w, result, deadline, &ended, err);
    if (status != SHOAL_OK) return status;
    if (ended) return fail_tls(w, err);
  }
  return check_fingerprint(w, err);
}

/* ---- open, close, read, write ---- */

shoal_status fetch_wire_open(fetch_wire *w, double seconds, shoal_error *err) {
  double deadline = shoal_clock_seconds() + seconds;
  w->cut_off = w->no_tls = false;
  shoal_status status = connect_any(w, deadline, err);
  if (status == SHOAL_OK && w->link->tls) status = shake_hands(w, deadline, err);
  if (status != SHOAL_OK) fetch_wire_close(w);
  return status;
}

void fetch_wire_close(fetch_wire *w) {
  if (w->ssl != NULL && w->fd >= 0 && SSL_is_init_finished(w->ssl)) SSL_shutdown(w->ssl);
  ERR_clear_error();
  SSL_free(w->ssl);
  SSL_CTX_free(w->context);
  w->ssl = NULL;
  w->context = NULL;
  if (w->fd >= 0) close(w->fd);
  w->fd = -1;
}

static shoal_status read_tls(fetch_wire *w, void *to, size_t room, double deadline, size_t *got,
                             shoal_error *err) {
  for (;;) {
    ERR_clear_error();
    int n = SSL_read(w->ssl, to, room < INT32_MAX ? (int)room : INT32_MAX);
    if (n > 0) *got = (size_t)n;
    if (n > 0) return SHOAL_OK;
    bool ended;
    shoal_status status = tls_wants(w, n, deadline, &ended, err);
    if (status != SHOAL_OK || ended) return status;
  }
}

shoal_status fetch_wire_read(fetch_wire *w, void *to, size_t room, double deadline, size_t *got,
                             shoal_error *err) {
  *got = 0;
  if (w->ssl != NULL) return read_tls(w, to, room, deadline, got, err);
  for (;;) {
    ssize_t n = recv(w->fd, to, room, 0);
    if (n >= 0) *got = (size_t)n;
    if (n >= 0) return SHOAL_OK;
    if (errno != EAGAIN && errno != EINTR) return fail_errno(w, errno, err);
    shoal_status status = wait_for(w, POLLIN, deadline, err);
    if (status != SHOAL_OK) return status;
  }
}

/* Some of it; 0: try again. */
static shoal_status write_some(fetch_wire *w, const void *bytes, size_t length, double deadline, size_t *sent,
                               shoal_error *err) {
  *sent = 0;
  if (w->ssl != NULL) {
    ERR_clear_error();
    int n = SSL_write(w->ssl, bytes, length < INT32_MAX ? (int)length : INT32_MAX);
    if (n > 0) *sent = (size_t)n;
    if (n > 0) return SHOAL_OK;
    bool ended;
    shoal_status status = tls_wants(w, n, deadline, &ended, err);
    return status == SHOAL_OK && ended ? fail_errno(w, EPIPE, err) : status;
  }
  ssize_t n = send(w->fd, bytes, length, MSG_NOSIGNAL);
  if (n >= 0) *sent = (size_t)n;
  if (n >= 0) return SHOAL_OK;
  if (errno != EAGAIN && errno != EINTR) return fail_errno(w, errno, err);
  return wait_for(w, POLLOUT, deadline, err);
}

shoal_status fetch_wire_write(fetch_wire *w, const void *bytes, size_t length, double silence_s,
                              shoal_error *err) {
  const uint8_t *from = bytes;
  double deadline = shoal_clock_seconds() + silence_s;
  while (length > 0) {
    size_t sent;
    shoal_status status = write_some(w, from, length, deadline, &sent, err);
    if (status != SHOAL_OK) return status;
    if (sent > 0) deadline = shoal_clock_seconds() + silence_s;
    from += sent;
    length -= sent;
  }
  return SHOAL_OK;
}
