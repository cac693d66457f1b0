/* http.c: requests of one connection, one after the other, and their answers.
 *
 * What the connection is at, and what takes it to the next:
 *
 *   HEAD       waits for a head                      -> BODY, or WAITING when there is none
 *   BODY       takes a body, into memory or a file   -> WAITING when it is whole
 *   WAITING    `asked` was called                    -> SENDING by shoal_http_answer, or STREAMING
 *   SENDING    sends the answer                      -> HEAD when it is out, or the end
 *   STREAMING  sends what is pushed                  -> SENDING by shoal_http_end
 *
 * What comes in while an answer is awaited or sent is kept; when that is much, no more is read until it is
 * its turn. An answer is only prepared when it is given; it is sent when the bytes that led to it are dealt
 * with, or when the socket can take more. So no call of a user's ends a connection or tells `left` under
 * that user's feet.
 *
 * A request is owed from `begins` on, until it is answered (a stream: until it has ended) or `left` was
 * told. */
#include "wire/http.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "wire/net_internal.h"

enum {
  PIECE_BYTES = 64 << 10, /* given to the socket at once */
  TLS_BYTES = 16 << 10,   /* the same with TLS: a record */
  KEPT_BYTES = 64 << 10,  /* of later requests; then no more is read */
  STREAM_BYTES = 1 << 20, /* that may wait */
  KEEP_TIMES = 3,         /* hello_s, between two requests */
  BODY_BYTES = 16 << 10,  /* room for a body in chunks, at first */
};
static const double RATE_LEAST = 1000; /* bytes a second of a body that takes longer than stall_s */

typedef enum phase { HEAD, BODY, WAITING, SENDING, STREAMING } phase;

struct net_http {
  phase phase;
  uint64_t id; /* of the request */
  bool owed;
  bool beginning;    /* inside `begins` */
  shoal_text in;     /* came, and was not its turn yet */
  size_t in_used;    /* bytes at its front that were, since */
  bool held;         /* no more is read */
  double head_since; /* when its first byte came, or when the wait for one began */
  uint64_t requests; /* so far */
  bool over;         /* it was upgraded */

  /* The request. */
  char *head_text;
  shoal_http_head head;
  char address[HOST_MAX + 8];

  /* Its body. */
  shoal_http_chunks chunks;
  uint64_t body_max, body_bytes;
  double body_since;
  shoal_blob *body;
  char *file;
  int file_to; /* -1: none */

  /* The answer: `out`, then bytes `at` to `end` of a blob or a file. */
  shoal_text out;
  size_t out_sent;
  shoal_blob *blob;
  int file_from; /* -1: none */
  uint64_t at, end;
  bool close; /* afterwards */
};

static const shoal_http_calls *calls_of(const net_peer *peer) { return peer->net->config.http; }

/* ---- beginning and end ---- */

void net_http_begin(net_peer *peer) {
  net_http *http = calloc(1, sizeof *http);
  if (http == NULL) {
    net_peer_end(peer, "no memory for a request");
    return;
  }
  http->file_to = http->file_from = -1;
  http->head_since = peer->since;
  peer->http = http;
  peer->state = SERVING;
  /* Who asks, without the port. */
  const char *from = peer->address, *colon = strrchr(from, ':');
  size_t length = colon != NULL ? (size_t)(colon - from) : strlen(from);
  if (length >= 2 && from[0] == '[' && from[length - 1] == ']') {
    from++;
    length -= 2;
  }
  memcpy(http->address, from, length);
}

static void drop_body(net_http *http) {
  shoal_blob_release(http->body);
  http->body = NULL;
  if (http->file_to >= 0) close(http->file_to);
  http->file_to = -1;
  if (http->file != NULL) unlink(http->file);
  free(http->file);
  http->file = NULL;
  http->body_bytes = 0;
}

static void drop_answer(net_http *http) {
  shoal_blob_release(http->blob);
  http->blob = NULL;
  if (http->file_from >= 0) close(http->file_from);
  http->file_from = -1;
  http->at = http->end = 0;
  shoal_text_clear(&http->out);
  http->out_sent = 0;
}

void net_http_free(net_http *http) {
  if (http == NULL) return;
  drop_body(http);
  drop_answer(http);
  shoal_text_release(&http->in);
  shoal_text_release(&http->out);
  free(http->head_text);
  free(http);
}

uint64_t net_http_left(const net_peer *peer) {
  return peer->http != NULL && peer->http->owed ? peer->http->id : 0;
}

static void tell_left(net_peer *peer) {
  net_http *http = peer->http;
  if (!http->owed) return;
  http->owed = false;
  calls_of(peer)->left(calls_of(peer)->self, http->id);
}

/* ---- answers ---- */

/* What a file's answer sends, or the status that says why it cannot. */
static int open_file(net_http *http, const shoal_answer *answer, net_http_reply *reply) {
  struct stat about;
  http->file_from = open(answer->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (http->file_from < 0) return errno == ENOENT || errno == ENOTDIR ? 404 : 500;
  if (fstat(http->file_from, &about) != 0) return 500;
  if (!S_ISREG(about.st_mode)) return 404;
  reply->is_file = true;
  reply->end = reply->size = (uint64_t)about.st_size;
  const shoal_http_head *head = &http->head;
  bool part = answer->status == 200 && strcmp(head->method, "GET") == 0 &&
              (head->if_range[0] == 0 || (answer->etag != NULL && strcmp(head->if_range, answer->etag) == 0));
  if (!part) return answer->status;
  switch (shoal_http_range(head->range, reply->size, &reply->first, &reply->end)) {
  case SHOAL_RANGE_PART: return 206;
  case SHOAL_RANGE_NONE: return 416;
  default: return 200;
  }
}

static bool has_no_body(int status) { return status == 204 || status == 304 || status < 200; }

/* Prepares what is sent; the body is in place already. */
static void prepare(net_peer *peer, const shoal_answer *answer, net_http_reply *reply) {
  net_http *http = peer->http;
  bool only_head = http->head.method != NULL && strcmp(http->head.method, "HEAD") == 0;
  reply->answer = answer;
  reply->is_1_1 = http->head.is_1_1;
  reply->chunked = answer->stream && http->head.is_1_1 && !only_head;
  if (answer->stream && !http->head.is_1_1) http->close = true; /* its end is the connection's */
  reply->has_length = !answer->stream && !has_no_body(reply->status);
  if (!http->head.keep) http->close = true;
  reply->keep = !http->close;
  net_http_write_head(&http->out, reply);
  http->at = reply->first;
  http->end = only_head || !reply->has_length ? reply->first : reply->end;
  bool streams = answer->stream && !only_head;
  http->owed = http->owed && answer->stream;
  http->phase = streams ? STREAMING : SENDING;
  peer->moved = shoal_clock_seconds();
  if (http->out.failed) net_peer_end(peer, "no memory for an answer");
  lws_callback_on_writable(peer->wsi);
}

/* An error that this file answers with. */
static void prepare_error(net_peer *peer, int status, const char *why, net_http_reply *reply) {
  net_http *http = peer->http;
  const shoal_answer answer = {.status = status, .type = "application/json"};
  shoal_text text;
  shoal_text_init(&text);
  net_http_write_error(&text, status, why);
  drop_answer(http);
  http->blob = text.failed ? NULL : shoal_blob_create(text.length);
  reply->status = status;
  reply->first = reply->end = 0;
  reply->is_file = false;
  if (http->blob != NULL) {
    memcpy(shoal_blob_bytes(http->blob), text.bytes, text.length);
    reply->end = text.length;
  }
  shoal_text_release(&text);
  prepare(peer, &answer, reply);
}

/* Answers what cannot go on, and closes afterwards. */
static void refuse(net_peer *peer, int status, const char *why) {
  net_http *http = peer->http;
  drop_body(http);
  http->close = true;
  if (peer->net->config.http == NULL) snprintf(peer->reason, sizeof peer->reason, "%s", why);
  net_http_reply reply = {0};
  tell_left(peer);
  prepare_error(peer, status, why, &reply);
}

static net_peer *find_request(const shoal_net *net, uint64_t id) {
  net_peer *peer = net->peers[id % net->slots];
  bool here = id != 0 && peer != NULL && peer->state == SERVING && peer->http->id == id;
  return here && peer->http->owed ? peer : NULL;
}

void shoal_http_answer(shoal_net *net, uint64_t id, const shoal_answer *answer) {
  net_peer *peer = find_request(net, id);
  if (peer == NULL || peer->http->phase >= SENDING) {
    shoal_blob_release(answer->body);
    return;
  }
  net_http *http = peer->http;
  net_http_reply reply = {.status = answer->status};
  /* What is left of the body nobody wants. */
  bool body = http->head.chunked || http->head.length > 0;
  if (http->phase == BODY || (http->beginning && body)) http->close = true;
  if (http->phase == BODY) drop_body(http);
  http->blob = answer->body;
  if (answer->file != NULL) drop_answer(http); /* instead of a body */
  if (http->blob != NULL) reply.end = reply.size = shoal_blob_length(http->blob);
  if (answer->file != NULL) reply.status = open_file(http, answer, &reply);
  if (answer->file != NULL && reply.status != answer->status && reply.status != 206) {
    const char *why = reply.status == 404   ? "there is no such file"
                      : reply.status == 416 ? "the file is shorter than that"
                                            : "the file cannot be read";
    prepare_error(peer, reply.status, why, &reply);
    return;
  }
  prepare(peer, answer, &reply);
  if (answer->stream) { /* an other end that vanished is noticed */
    unsigned patience_ms = (unsigned)(net->config.stall_s * 1000);
    (void)setsockopt(lws_get_socket_fd(peer->wsi), IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms,
                     sizeof patience_ms);
  }
}

void shoal_http_push(shoal_net *net, uint64_t id, const void *bytes, size_t length) {
  net_peer *peer = find_request(net, id);
  if (peer == NULL || peer->http->phase != STREAMING || length == 0) return;
  net_http *http = peer->http;
  if (http->out_sent == http->out.length) peer->moved = shoal_clock_seconds();
  if (http->out_sent > PIECE_BYTES) {
    http->out.length -= http->out_sent;
    memmove(http->out.bytes, http->out.bytes + http->out_sent, http->out.length);
    http->out_sent = 0;
  }
  if (http->head.is_1_1) shoal_text_addf(&http->out, "%zx\r\n", length);
  shoal_text_add(&http->out, bytes, length);
  if (http->head.is_1_1) shoal_text_add(&http->out, "\r\n", 2);
  if (http->out.failed || http->out.length - http->out_sent > STREAM_BYTES)
    net_peer_end(peer, "a stream that is not taken");
  else
    lws_callback_on_writable(peer->wsi);
}

void shoal_http_end(shoal_net *net, uint64_t id) {
  net_peer *peer = find_request(net, id);
  if (peer == NULL || peer->http->phase < SENDING) return;
  net_http *http = peer->http;
  http->owed = false;
  if (http->phase == SENDING) return; /* only its head was wanted */
  if (http->head.is_1_1) shoal_text_addf(&http->out, "0\r\n\r\n");
  http->phase = SENDING;
  peer->moved = shoal_clock_seconds();
  if (http->out.failed) net_peer_end(peer, "no memory for an answer");
  lws_callback_on_writable(peer->wsi);
}

/* ---- a request comes in ---- */

static shoal_request request_of(const net_http *http) {
  const shoal_http_head *head = &http->head;
  static const struct {
    const char *name;
    shoal_method method;
  } METHODS[] = {{"GET", SHOAL_GET}, {"HEAD", SHOAL_GET},      {"POST", SHOAL_POST},
                 {"PUT", SHOAL_PUT}, {"DELETE", SHOAL_DELETE}, {NULL, SHOAL_METHOD_OTHER}};
  int i = 0;
  while (METHODS[i].name != NULL && strcmp(METHODS[i].name, head->method) != 0) i++;
  return (shoal_request){.id = http->id,
                         .method = METHODS[i].method,
                         .path = head->path,
                         .query = head->query,
                         .address = http->address,
                         .host = head->host,
                         .origin = head->origin,
                         .authorization = head->authorization,
                         .content_type = head->content_type,
                         .accept_encoding = head->accept_encoding,
                         .if_none_match = head->if_none_match,
                         .body = http->body,
                         .body_file = http->file,
                         .body_bytes = http->body_bytes};
}

/* All of it is here. */
static void complete(net_peer *peer) {
  net_http *http = peer->http;
  if (http->file_to >= 0 && close(http->file_to) != 0) {
    http->file_to = -1;
    refuse(peer, 507, "the body cannot be kept");
    return;
  }
  http->file_to = -1;
  if (http->body != NULL) shoal_blob_shorten(http->body, (size_t)http->body_bytes);
  http->phase = WAITING;
  shoal_request request = request_of(http);
  calls_of(peer)->asked(calls_of(peer)->self, &request);
  drop_body(http);
}

/* Reserves room for the rest of a body, or opens its file. */
static bool begin_body(net_peer *peer, char *file) {
  net_http *http = peer->http;
  http->phase = BODY;
  http->body_since = peer->heard_at;
  http->chunks = (shoal_http_chunks){0};
  http->file = file;
  if (file != NULL)
    http->file_to = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  else
    http->body = shoal_blob_create(http->head.chunked ? BODY_BYTES : (size_t)http->head.length);
  return file != NULL ? http->file_to >= 0 : http->body != NULL;
}

static void begin_request(net_peer *peer) {
  net_http *http = peer->http;
  const shoal_http_calls *calls = calls_of(peer);
  shoal_net *net = peer->net;
  const shoal_http_head *head = &http->head;
  if (calls == NULL) {
    refuse(peer, 404, "it asked for a page, and there are none here");
    return;
  }
  char *file = NULL;
  http->id = ++net->serial * net->slots + peer->number % net->slots;
  http->owed = http->beginning = true;
  shoal_request request = request_of(http);
  http->body_max = calls->begins(calls->self, &request, &file);
  http->beginning = false;
  bool body = head->chunked || head->length > 0;
  if (http->phase >= SENDING || !body || head->length > http->body_max) {
    free(file);
    if (http->phase < SENDING && !body) complete(peer);
    if (http->phase < WAITING) refuse(peer, 413, "the body is larger than is allowed here");
  } else if (!begin_body(peer, file)) {
    refuse(peer, 507, "there is no room for the body");
  } else if (head->waits) {
    static char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    lws_write(peer->wsi, (uint8_t *)go_on, sizeof go_on - 1, LWS_WRITE_RAW);
  }
}

/* Makes room in memory for so many more bytes. */
static bool grow_body(net_http *http, size_t more) {
  size_t wanted = (size_t)http->body_bytes + more, room = shoal_blob_length(http->body);
  if (wanted <= room) return true;
  while (room < wanted) room *= 2;
  shoal_blob *larger = shoal_blob_create(room);
  if (larger == NULL) return false;
  memcpy(shoal_blob_bytes(larger), shoal_blob_bytes(http->body), (size_t)http->body_bytes);
  shoal_blob_release(http->body);
  http->body = larger;
  return true;
}

static bool keep_bytes(net_http *http, const uint8_t *bytes, size_t length) {
  if (http->file == NULL) {
    if (!grow_body(http, length)) return false;
    memcpy(shoal_blob_bytes(http->body) + http->body_bytes, bytes, length);
  }
  for (size_t done = 0; http->file != NULL && done < length;) {
    ssize_t wrote = write(http->file_to, bytes + done, length - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += (size_t)wrote;
  }
  http->body_bytes += length;
  return true;
}

/* Takes bytes of a body. Returns how many. */
static size_t take_body(net_peer *peer, const uint8_t *bytes, size_t length) {
  net_http *http = peer->http;
  size_t used, count;
  shoal_chunks_result result = SHOAL_CHUNKS_MORE;
  if (http->head.chunked) {
    result = shoal_http_chunks_take(&http->chunks, bytes, length, &used, &count);
  } else {
    uint64_t left = http->head.length - http->body_bytes;
    used = count = left < length ? (size_t)left : length;
    if (used == left) result = SHOAL_CHUNKS_END;
  }
  if (result == SHOAL_CHUNKS_BAD)
    refuse(peer, 400, "a body whose chunks are none");
  else if (http->body_bytes + count > http->body_max)
    refuse(peer, 413, "the body is larger than is allowed here");
  else if (count > 0 && !keep_bytes(http, bytes + used - count, count))
    refuse(peer, 507, "there is no room for the body");
  else if (result == SHOAL_CHUNKS_END)
    complete(peer);
  return used;
}

/* ---- a WebSocket begins ---- */

/* Does it ask for messages as they are from here on, without frames? */
static bool wants_raw(const net_http *http) { return shoal_http_list_has(http->head.protocols, "shoal-raw"); }

/* 0, or the status that it is refused with. */
static int judge_websocket(net_peer *peer, const char **why) {
  net_http *http = peer->http;
  const shoal_http_calls *calls = calls_of(peer);
  *why = "a WebSocket that does not ask for the protocol \"shoal\"";
  if (!shoal_http_list_has(http->head.protocols, "shoal") && !wants_raw(http)) return 400;
  *why = "a WebSocket of another version than 13";
  if (strcmp(http->head.version, "13") != 0) return 426;
  *why = "a WebSocket whose key is none";
  if (strlen(http->head.key) != 24) return 400;
  *why = "this WebSocket may not be opened";
  http->id = 0;
  shoal_request request = request_of(http);
  return calls != NULL ? calls->admits(calls->self, peer->number, &request) : 0;
}

static void open_websocket(net_peer *peer) {
  const char *why;
  int status = judge_websocket(peer, &why);
  if (status != 0) {
    refuse(peer, status, why);
    return;
  }
  bool raw = wants_raw(peer->http);
  char accept[FRAME_ACCEPT_MAX], answer[256];
  net_frame_accept(peer->http->head.key, accept);
  int length = snprintf(answer, sizeof answer,
                        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n",
                        accept, raw ? "shoal-raw" : "shoal");
  lws_write(peer->wsi, (uint8_t *)answer, (size_t)length, LWS_WRITE_RAW);
  peer->since = shoal_clock_seconds();
  peer->http->over = true;
  net_peer_open(peer, raw ? SHOAL_WIRE_RAW : SHOAL_WIRE_WEBSOCKET);
}

/* ---- bytes in ---- */

/* Takes a head, when it is whole. Returns how many bytes. */
static size_t take_head(net_peer *peer, const uint8_t *bytes, size_t length) {
  net_http *http = peer->http;
  if (length >= 2 && memcmp(bytes, "\r\n", 2) == 0) return 2; /* some send one behind a body */
  size_t look = length < SHOAL_HTTP_HEAD_MAX ? length : SHOAL_HTTP_HEAD_MAX;
  const uint8_t *end = memmem(bytes, look, "\r\n\r\n", 4);
  if (end == NULL) {
    if (look == SHOAL_HTTP_HEAD_MAX) refuse(peer, 431, "the head of the request is too long");
    return 0;
  }
  size_t used = (size_t)(end - bytes) + 4;
  const char *why = "no memory for a request";
  free(http->head_text);
  http->head_text = malloc(used);
  if (http->head_text != NULL) memcpy(http->head_text, bytes, used);
  int status = http->head_text != NULL ? shoal_http_head_read(&http->head, http->head_text, used, &why) : 500;
  http->requests++;
  if (status != 0) {
    http->head = (shoal_http_head){.is_1_1 = true};
    refuse(peer, status, why);
  } else if (http->head.websocket) {
    open_websocket(peer);
  } else {
    begin_request(peer);
  }
  return used;
}

/* Takes what can be taken now, up to the end of one request. Returns how many bytes. */
static size_t take(net_peer *peer, const uint8_t *bytes, size_t length) {
  net_http *http = peer->http;
  size_t used = 0;
  while (used < length && peer->state == SERVING && http->phase <= BODY) {
    size_t part = http->phase == HEAD ? take_head(peer, bytes + used, length - used)
                                      : take_body(peer, bytes + used, length - used);
    if (part == 0) break;
    used += part;
  }
  return used;
}

/* The connection was upgraded; what came behind its head are messages or frames. */
static void leave_http(net_peer *peer, uint8_t *rest, size_t length) {
  net_http *http = peer->http;
  peer->http = NULL;
  if (peer->state == OPEN) net_bytes_receive(peer, rest, length);
  net_http_free(http);
}

/* How many bytes wait for their turn. */
static size_t kept(const net_http *http) { return http->in.length - http->in_used; }

static void drop_kept(net_http *http, size_t length) {
  http->in_used += length;
  if (kept(http) > 0 && http->in_used < READ_BYTES) return;
  http->in.length = kept(http);
  if (http->in.length > 0) memmove(http->in.bytes, http->in.bytes + http->in_used, http->in.length);
  http->in_used = 0;
}

/* Reads no more while there is much that is not its turn yet. */
static void hold(net_peer *peer) {
  net_http *http = peer->http;
  bool much = http->phase > BODY && kept(http) > KEPT_BYTES;
  if (much == http->held) return;
  http->held = much;
  lws_rx_flow_control(peer->wsi, !much);
}

static void take_kept(net_peer *peer) {
  net_http *http = peer->http;
  uint8_t *bytes = (uint8_t *)http->in.bytes + http->in_used;
  size_t used = take(peer, bytes, kept(http));
  if (http->over) {
    leave_http(peer, bytes + used, kept(http) - used);
    return;
  }
  drop_kept(http, used);
  hold(peer);
}

void net_http_receive(net_peer *peer, uint8_t *bytes, size_t length) {
  net_http *http = peer->http;
  if (http == NULL) return;
  net_peer_lives(peer);
  peer->net->moved_in += length;
  bool waits = kept(http) > 0;
  if (http->phase == HEAD && !waits) http->head_since = peer->heard_at;
  size_t used = waits ? 0 : take(peer, bytes, length);
  if (http->over) {
    leave_http(peer, bytes + used, length - used);
    return;
  }
  if (used < length) shoal_text_add(&http->in, bytes + used, length - used);
  if (http->in.failed) net_peer_end(peer, "no memory for a request");
  if (waits && peer->state == SERVING) take_kept(peer);
  if (peer->state != SERVING) return;
  hold(peer);
  if (http->phase >= SENDING) net_http_writeable(peer);
}

/* ---- bytes out ---- */

/* The next bytes to be sent, or 0. */
static size_t next_piece(net_peer *peer, uint8_t **at) {
  net_http *http = peer->http;
  size_t waiting = http->out.length - http->out_sent;
  if (waiting > 0) {
    *at = (uint8_t *)http->out.bytes + http->out_sent;
    return waiting < PIECE_BYTES ? waiting : PIECE_BYTES;
  }
  uint64_t left = http->end - http->at;
  size_t part = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
  if (part == 0) return 0;
  if (http->blob != NULL) {
    *at = shoal_blob_bytes(http->blob) + http->at;
    return part;
  }
  *at = peer->net->fragment;
  ssize_t got = pread(http->file_from, *at, part, (off_t)http->at);
  if (got > 0) return (size_t)got;
  net_peer_end(peer, "a file became shorter while it was sent");
  return 0;
}

static void count_sent(net_peer *peer, size_t length) {
  net_http *http = peer->http;
  peer->moved = shoal_clock_seconds();
  peer->net->moved_out += length;
  if (http->out_sent < http->out.length)
    http->out_sent += length;
  else
    http->at += length;
}

/* Gives bytes to the socket. Returns how many it took, 0 when it is full, or -1. */
static ssize_t give(net_peer *peer, uint8_t *bytes, size_t length) {
  if (lws_partial_buffered(peer->wsi)) return 0;
  if (!peer->tls) {
    ssize_t sent = send(lws_get_socket_fd(peer->wsi), bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : sent;
  }
  /* libwebsockets keeps what the socket does not take, and does not say when it takes it: so little at a
   * time. */
  if (lws_send_pipe_choked(peer->wsi)) return 0;
  return lws_write(peer->wsi, bytes, length < TLS_BYTES ? length : TLS_BYTES, LWS_WRITE_RAW);
}

/* Sends as much as the socket takes. True: all is out. */
static bool send_out(net_peer *peer) {
  for (size_t moved = 0; moved < TURN_BYTES;) {
    uint8_t *at = NULL;
    size_t part = next_piece(peer, &at);
    if (part == 0 && !lws_partial_buffered(peer->wsi)) return peer->state == SERVING;
    if (part == 0) break;
    ssize_t sent = give(peer, at, part);
    if (sent < 0) net_peer_end(peer, "sending failed");
    if (sent <= 0) break;
    moved += (size_t)sent;
    count_sent(peer, (size_t)sent);
  }
  lws_callback_on_writable(peer->wsi);
  return false;
}

/* The answer is out: the next request, if there is to be one. */
static void finish(net_peer *peer) {
  net_http *http = peer->http;
  tell_left(peer); /* a stream of which only the head was wanted */
  drop_answer(http);
  http->phase = HEAD;
  http->head = (shoal_http_head){0};
  if (http->close) {
    drop_kept(http, kept(http));
    hold(peer); /* what still comes is read, and dropped */
    net_peer_linger(peer);
    return;
  }
  http->id = 0;
  http->head_since = shoal_clock_seconds();
  if (kept(http) > 0)
    lws_callback_on_writable(peer->wsi); /* its turn comes with the loop's next */
  else
    hold(peer);
}

void net_http_writeable(net_peer *peer) {
  net_http *http = peer->http;
  if (http->phase <= BODY && kept(http) > 0) take_kept(peer);
  if (peer->state != SERVING || http->phase < SENDING || !send_out(peer)) return;
  if (http->phase == SENDING) {
    finish(peer);
  } else {
    shoal_text_clear(&http->out);
    http->out_sent = 0;
  }
}

/* ---- patience ---- */

static void check_head(net_peer *peer, double now) {
  net_http *http = peer->http;
  double hello_s = peer->net->config.hello_s;
  bool begun = kept(http) > 0;
  if (now <= http->head_since + (begun || http->requests == 0 ? hello_s : KEEP_TIMES * hello_s)) return;
  if (peer->net->config.http == NULL)
    net_peer_end(peer, "it did not send a message's header within %g s", hello_s);
  else if (begun)
    refuse(peer, 408, "the head of the request did not come in time");
  else
    net_peer_end(peer, "it asked for nothing more");
}

static void check_body(net_peer *peer, double now) {
  const net_http *http = peer->http;
  double stall_s = peer->net->config.stall_s, age = now - http->body_since;
  if (age <= stall_s) return;
  if (now > peer->heard_at + stall_s || (double)http->body_bytes < RATE_LEAST * age)
    refuse(peer, 408, "the body of the request did not come in time");
}

void net_http_check(net_peer *peer, double now) {
  net_http *http = peer->http;
  bool waits = http->phase == SENDING || http->out_sent < http->out.length;
  if (http->phase == HEAD)
    check_head(peer, now);
  else if (http->phase == BODY)
    check_body(peer, now);
  else if (waits && now > peer->moved + peer->net->config.stall_s)
    net_peer_end(peer, "it took nothing of what was sent for %g s", peer->net->config.stall_s);
}
