/* fetch.c: see fetch.h.
 *
 * The bytes come through fetch_wire.h into one buffer; head, lengths and chunks are read from there. Whatever
 * is not plainly right ends the connection: what follows on it could mean anything. */
#include "wire/fetch.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "wire/fetch_wire.h"
#include "wire/http_read.h"

enum {
  BUFFER_BYTES = 64 << 10,
  HEAD_BYTES_MAX = 32 << 10, /* all lines of a head; one line, too, must fit the buffer */
  INTERIM_MAX = 8,           /* answers of 100 to 199 before the real one */
  ERROR_BYTES_MAX = 64 << 10,
  UPLOAD_BYTES = 256 << 10,
  ANSWER_BYTES_MAX = 16 << 20,
  EVENT_BYTES_MAX = 16 << 20,
  EVENT_NAME_MAX = 64,
};
static const double CONNECT_S = 10, SILENCE_S = 60, RETRY_S_MAX = 60;

struct shoal_fetch {
  shoal_link link;
  double connect_s, silence_s;
  void *self;
  void (*waits)(void *self, const char *text);
  fetch_wire wire;
  bool kept;         /* the connection has answered before */
  size_t start, end; /* of what came and was not read yet */
  char buffer[BUFFER_BYTES];
};

/* What a head says of the body. */
typedef struct head {
  int status;
  bool chunked, closes;
  bool has_length;
  uint64_t length;
  uint64_t retry_after_s; /* 0: not said */
} head;

/* A request under way. */
typedef struct exchange {
  shoal_fetch *fetch;
  const shoal_ask *ask;
  shoal_reply *reply;
  head head;
  uint64_t body_bytes; /* of the answer, so far */
  bool answered;       /* at least a byte of the answer came */
} exchange;

shoal_status shoal_fetch_create(shoal_fetch **out, const shoal_fetch_config *config, shoal_error *err) {
  shoal_fetch *f = calloc(1, sizeof *f);
  *out = f;
  if (f == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  f->link = *config->link;
  f->connect_s = config->connect_s > 0 ? config->connect_s : CONNECT_S;
  f->silence_s = config->silence_s > 0 ? config->silence_s : SILENCE_S;
  f->self = config->self;
  f->waits = config->waits;
  f->wire = (fetch_wire){.link = &f->link, .stop = config->stop, .fd = -1};
  return SHOAL_OK;
}

static void hang_up(shoal_fetch *f) {
  fetch_wire_close(&f->wire);
  f->start = f->end = 0;
  f->kept = false;
}

void shoal_fetch_destroy(shoal_fetch *f) {
  if (f == NULL) return;
  hang_up(f);
  explicit_bzero(f, sizeof *f);
  free(f);
}

void shoal_reply_release(shoal_reply *reply) { shoal_text_release(&reply->body); }

void shoal_fetch_escape(shoal_text *out, const char *name) {
  for (; *name; name++) {
    unsigned char c = (unsigned char)*name;
    if (isalnum(c) || strchr("-_.~", c) != NULL)
      shoal_text_add(out, name, 1);
    else
      shoal_text_addf(out, "%%%02X", c);
  }
}

/* ---- reading ---- */

static shoal_status fail_nonsense(const shoal_fetch *f, const char *what, shoal_error *err) {
  return shoal_fail(err, SHOAL_CORRUPT, "%s does not answer as a server should: %s", f->link.address, what);
}

static shoal_status fail_cut_off(const shoal_fetch *f, shoal_error *err) {
  return shoal_fail(err, SHOAL_IO, "%s closed the connection in the middle of an answer", f->link.address);
}

/* More bytes into the buffer, which has room; *ended: there are none. */
static shoal_status fill(exchange *x, double deadline, bool *ended, shoal_error *err) {
  shoal_fetch *f = x->fetch;
  if (f->start > 0) {
    memmove(f->buffer, f->buffer + f->start, f->end - f->start);
    f->end -= f->start;
    f->start = 0;
  }
  size_t got;
  shoal_status status =
      fetch_wire_read(&f->wire, f->buffer + f->end, BUFFER_BYTES - f->end, deadline, &got, err);
  f->end += got;
  *ended = status == SHOAL_OK && got == 0;
  if (got > 0) x->answered = true;
  return status;
}

/* The next line of a head, without its end, in the buffer until something else is read. */
static shoal_status read_line(exchange *x, double deadline, char **line, shoal_error *err) {
  shoal_fetch *f = x->fetch;
  for (;;) {
    size_t length = f->end - f->start;
    char *newline = memchr(f->buffer + f->start, '\n', length);
    if (newline) length = (size_t)(newline - (f->buffer + f->start));
    if (length > HEAD_BYTES_MAX) return fail_nonsense(f, "a line is too long", err);
    if (newline) break;
    bool ended;
    shoal_status status = fill(x, deadline, &ended, err);
    if (status != SHOAL_OK) return status;
    if (ended && x->answered) return fail_cut_off(f, err);
    if (ended)
      return shoal_fail(err, SHOAL_IO, "%s closed the connection without an answer", f->link.address);
  }
  *line = f->buffer + f->start;
  char *end = memchr(*line, '\n', f->end - f->start);
  f->start = (size_t)(end + 1 - f->buffer);
  if (end > *line && end[-1] == '\r') end--;
  *end = 0;
  if (strlen(*line) != (size_t)(end - *line)) return fail_nonsense(f, "a zero in its head", err);
  return SHOAL_OK;
}

static const char *read_status_line(head *h, const char *line) {
  uint64_t status;
  bool good = strncmp(line, "HTTP/1.", 7) == 0 && (line[7] == '0' || line[7] == '1') && line[8] == ' ' &&
              strlen(line) >= 12 && shoal_read_u64(line + 9, 3, &status) && status >= 100 && status <= 599 &&
              (line[12] == 0 || line[12] == ' ');
  if (!good) return "it does not speak HTTP/1.1";
  *h = (head){.status = (int)status, .closes = line[7] == '0'};
  return NULL;
}

static const char *read_length(head *h, const char *value) {
  uint64_t length;
  if (!shoal_read_u64(value, strlen(value), &length)) return "its Content-Length is no number";
  if (h->has_length && h->length != length) return "it has two different lengths";
  h->has_length = true;
  h->length = length;
  return NULL;
}

static const char *read_header(head *h, char *line) {
  char *colon = strchr(line, ':');
  if (colon == NULL || colon == line || line[0] == ' ' || line[0] == '\t') return "a header has no name";
  *colon = 0;
  char *value = colon + 1 + strspn(colon + 1, " \t"), *end = value + strlen(value);
  while (end > value && (end[-1] == ' ' || end[-1] == '\t')) *--end = 0;
  if (strcasecmp(line, "Content-Length") == 0) return read_length(h, value);
  if (strcasecmp(line, "Retry-After") == 0 && !shoal_read_u64(value, strlen(value), &h->retry_after_s))
    h->retry_after_s = 0; /* a date, which our servers do not send */
  if (strcasecmp(line, "Transfer-Encoding") == 0) {
    if (h->chunked || strcasecmp(value, "chunked") != 0) return "it sends in an unknown encoding";
    h->chunked = true;
  } else if (strcasecmp(line, "Connection") == 0) {
    if (shoal_http_list_has(value, "close")) h->closes = true;
  } else if (strcasecmp(line, "Content-Encoding") == 0) {
    if (strcasecmp(value, "identity") != 0) return "it compresses what was not asked to be";
  }
  return NULL;
}

static shoal_status read_one_head(exchange *x, double deadline, shoal_error *err) {
  char *line;
  shoal_status status = read_line(x, deadline, &line, err);
  if (status != SHOAL_OK) return status;
  const char *wrong = read_status_line(&x->head, line);
  for (size_t bytes = 0; !wrong;) {
    status = read_line(x, deadline, &line, err);
    if (status != SHOAL_OK) return status;
    if (line[0] == 0) break;
    bytes += strlen(line) + 1;
    wrong = bytes > HEAD_BYTES_MAX ? "its head is too long" : read_header(&x->head, line);
  }
  if (!wrong && x->head.chunked && x->head.has_length) wrong = "it has a length and chunks";
  return wrong ? fail_nonsense(x->fetch, wrong, err) : SHOAL_OK;
}

static shoal_status read_head(exchange *x, shoal_error *err) {
  double deadline = shoal_clock_seconds() + x->fetch->silence_s;
  for (int i = 0; i < INTERIM_MAX; i++) {
    shoal_status status = read_one_head(x, deadline, err);
    if (status != SHOAL_OK || x->head.status >= 200) return status;
  }
  return fail_nonsense(x->fetch, "it never comes to an answer", err);
}

/* ---- the body ---- */

static bool is_good(const exchange *x) { return x->head.status >= 200 && x->head.status <= 299; }

/* Up to so many bytes that are in the buffer go to who wants them. */
static shoal_status pass_on(exchange *x, uint64_t most, uint64_t *passed, shoal_error *err) {
  shoal_fetch *f = x->fetch;
  uint64_t there = f->end - f->start;
  size_t length = (size_t)(there < most ? there : most);
  const char *bytes = f->buffer + f->start;
  f->start += length;
  x->body_bytes += length;
  *passed = length;
  if (length == 0) return SHOAL_OK;
  if (is_good(x) && x->ask->take != NULL) return x->ask->take(x->ask->self, bytes, length, err);
  uint64_t limit = x->ask->answer_max > 0 ? x->ask->answer_max : ANSWER_BYTES_MAX;
  if (!is_good(x)) limit = ERROR_BYTES_MAX;
  if (x->body_bytes > limit)
    return shoal_fail(err, SHOAL_LIMIT, "the answer of %s is larger than %" PRIu64 " bytes", f->link.address,
                      limit);
  shoal_text_add(&x->reply->body, bytes, length);
  return x->reply->body.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory") : SHOAL_OK;
}

static shoal_status read_known(exchange *x, uint64_t length, shoal_error *err) {
  while (length > 0) {
    uint64_t passed;
    shoal_status status = pass_on(x, length, &passed, err);
    length -= passed;
    bool ended = false;
    if (status == SHOAL_OK && length > 0)
      status = fill(x, shoal_clock_seconds() + x->fetch->silence_s, &ended, err);
    if (status != SHOAL_OK) return status;
    if (ended) return fail_cut_off(x->fetch, err);
  }
  return SHOAL_OK;
}

static shoal_status read_chunks(exchange *x, shoal_error *err) {
  shoal_fetch *f = x->fetch;
  shoal_http_chunks chunks = {0};
  for (;;) {
    size_t used, count;
    uint64_t passed;
    shoal_chunks_result result =
        shoal_http_chunks_take(&chunks, (uint8_t *)f->buffer + f->start, f->end - f->start, &used, &count);
    if (result == SHOAL_CHUNKS_BAD) return fail_nonsense(f, "a chunk has no size, or another one", err);
    f->start += used - count;
    shoal_status status = pass_on(x, count, &passed, err);
    if (status != SHOAL_OK || result == SHOAL_CHUNKS_END) return status;
    if (f->start < f->end) continue;
    bool ended;
    status = fill(x, shoal_clock_seconds() + f->silence_s, &ended, err);
    if (status != SHOAL_OK) return status;
    if (ended) return fail_cut_off(f, err);
  }
}

static shoal_status read_to_end(exchange *x, shoal_error *err) {
  for (;;) {
    uint64_t passed;
    bool ended = false;
    shoal_status status = pass_on(x, UINT64_MAX, &passed, err);
    if (status == SHOAL_OK) status = fill(x, shoal_clock_seconds() + x->fetch->silence_s, &ended, err);
    if (status != SHOAL_OK) return status;
    if (ended && x->fetch->wire.cut_off) return fail_cut_off(x->fetch, err);
    if (ended) return SHOAL_OK;
  }
}

static shoal_status read_body(exchange *x, shoal_error *err) {
  if (x->head.status == 204 || x->head.status == 304) return SHOAL_OK;
  if (x->head.chunked) return read_chunks(x, err);
  if (x->head.has_length) return read_known(x, x->head.length, err);
  x->head.closes = true;
  return read_to_end(x, err);
}

/* ---- sending ---- */

static bool is_fit_for_a_line(const char *path) {
  for (; *path; path++)
    if ((unsigned char)*path <= ' ' || *path == 0x7f) return false;
  return true;
}

static shoal_status send_head(exchange *x, uint64_t body_bytes, shoal_error *err) {
  shoal_fetch *f = x->fetch;
  const shoal_ask *ask = x->ask;
  const char *method = ask->method ? ask->method : "GET";
  shoal_text text;
  shoal_text_init(&text);
  shoal_text_addf(&text, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: shoal\r\nAccept: */*\r\n", method,
                  ask->path, f->link.address);
  if (f->link.token[0]) shoal_text_addf(&text, "Authorization: Bearer %s\r\n", f->link.token);
  if (ask->json) shoal_text_addf(&text, "Content-Type: application/json\r\n");
  if (ask->file || ask->bytes) shoal_text_addf(&text, "Content-Type: application/octet-stream\r\n");
  if (strcmp(method, "GET") != 0) shoal_text_addf(&text, "Content-Length: %" PRIu64 "\r\n", body_bytes);
  shoal_text_addf(&text, "\r\n");
  shoal_status status = text.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory")
                                    : fetch_wire_write(&f->wire, text.bytes, text.length, f->silence_s, err);
  if (text.bytes) explicit_bzero(text.bytes, text.capacity);
  shoal_text_release(&text);
  return status;
}

static shoal_status fail_file(const char *path, shoal_error *err) {
  return shoal_fail(err, SHOAL_IO, "%s: %s", path, strerror(errno));
}

/* A server that has its answer ready does not want the rest. Over TLS something to read may be no answer. */
static bool has_answer(const exchange *x) {
  return x->fetch->wire.ssl == NULL && fetch_wire_has_input(&x->fetch->wire);
}

static shoal_status send_file(exchange *x, int fd, uint64_t length, shoal_error *err) {
  static const char shorter[] = "became shorter while it was sent";
  uint8_t *piece = malloc(UPLOAD_BYTES);
  shoal_status status = piece ? SHOAL_OK : shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  for (uint64_t done = 0; status == SHOAL_OK && done < length && !has_answer(x);) {
    size_t want = length - done < UPLOAD_BYTES ? (size_t)(length - done) : UPLOAD_BYTES;
    ssize_t n = read(fd, piece, want);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      status = fail_file(x->ask->file, err);
    else if (n == 0)
      status = shoal_fail(err, SHOAL_IO, "%s: %s", x->ask->file, shorter);
    else
      status = fetch_wire_write(&x->fetch->wire, piece, (size_t)n, x->fetch->silence_s, err);
    if (status == SHOAL_OK) done += (uint64_t)n;
    if (status == SHOAL_OK && x->ask->sent) x->ask->sent(x->ask->self, done, length);
  }
  free(piece);
  return status;
}

static shoal_status send_with_file(exchange *x, shoal_error *err) {
  struct stat about;
  int fd = open(x->ask->file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail_file(x->ask->file, err);
  shoal_status status = fstat(fd, &about) == 0 ? SHOAL_OK : fail_file(x->ask->file, err);
  if (status == SHOAL_OK && !S_ISREG(about.st_mode))
    status = shoal_fail(err, SHOAL_INVALID, "%s: is not a file", x->ask->file);
  if (status == SHOAL_OK) status = send_head(x, (uint64_t)about.st_size, err);
  if (status == SHOAL_OK) status = send_file(x, fd, (uint64_t)about.st_size, err);
  close(fd);
  return status;
}

static shoal_status send_request(exchange *x, shoal_error *err) {
  if (x->ask->file) return send_with_file(x, err);
  const void *body = x->ask->json ? x->ask->json : x->ask->bytes;
  size_t length = x->ask->json ? strlen(x->ask->json) : x->ask->bytes_count;
  shoal_status status = send_head(x, length, err);
  if (status == SHOAL_OK && length > 0)
    status = fetch_wire_write(&x->fetch->wire, body, length, x->fetch->silence_s, err);
  return status;
}

/* ---- a whole exchange ---- */

/* What an answer says went wrong. */
static shoal_status fail_answered(const exchange *x, shoal_error *err) {
  int code = x->head.status;
  shoal_status status = code == 404                  ? SHOAL_NOT_FOUND
                        : code == 409                ? SHOAL_CONFLICT
                        : code == 413 || code == 429 ? SHOAL_LIMIT
                        : code >= 400 && code < 500  ? SHOAL_INVALID
                                                     : SHOAL_IO;
  const shoal_text *body = &x->reply->body;
  cJSON *json = body->length > 0 && shoal_utf8_valid(body->bytes, body->length)
                    ? cJSON_ParseWithLength(body->bytes, body->length)
                    : NULL;
  const cJSON *error = cJSON_GetObjectItemCaseSensitive(json, "error");
  const cJSON *text = cJSON_GetObjectItemCaseSensitive(error, "text");
  const cJSON *field = cJSON_GetObjectItemCaseSensitive(error, "field");
  char plain[SHOAL_ERROR_TEXT_MAX / 2], name[64];
  if (cJSON_IsString(text) && text->valuestring[0] != 0) {
    shoal_text_plain(plain, sizeof plain, text->valuestring, strlen(text->valuestring));
    shoal_fail(err, status, "%s", plain);
  } else {
    /* A proxy before a server that is away answers with 502 to 504. */
    bool may_be_ours = code >= 500 && code != 501;
    shoal_fail(err, status, "%s answers with status %d%s", x->fetch->link.address, code,
               may_be_ours ? "" : ", and does not look like a Shoal server");
  }
  if (cJSON_IsString(field)) {
    shoal_text_plain(name, sizeof name, field->valuestring, strlen(field->valuestring));
    if (strstr(err ? err->text : "", name) == NULL) shoal_error_prefix(err, "%s: ", name);
  }
  cJSON_Delete(json);
  return status;
}

/* One try on the connection that is there. Its status is of the way; x->head.status of the answer. */
static shoal_status try_once(exchange *x, shoal_error *err) {
  shoal_status status = send_request(x, err);
  /* A server that refuses a long body answers and closes: then the answer counts, not the failed write. */
  if (status == SHOAL_IO && x->ask->file && x->fetch->wire.fd >= 0) {
    shoal_error ignored;
    if (read_head(x, &ignored) == SHOAL_OK && !is_good(x)) {
      x->head.closes = true;
      (void)read_body(x, &ignored);
      return SHOAL_OK;
    }
    x->head = (head){0};
    return status;
  }
  if (status == SHOAL_OK) status = read_head(x, err);
  if (status == SHOAL_OK) status = read_body(x, err);
  return status;
}

static shoal_status ask_once(shoal_fetch *f, const shoal_ask *ask, shoal_reply *reply,
                             uint64_t *retry_after_s, shoal_error *err) {
  *reply = (shoal_reply){0};
  *retry_after_s = 0;
  shoal_text_init(&reply->body);
  if (!is_fit_for_a_line(ask->path))
    return shoal_fail(err, SHOAL_INVALID, "a path with spaces or control characters cannot be asked for");
  exchange x = {.fetch = f, .ask = ask, .reply = reply};
  bool posts = ask->method && strcmp(ask->method, "POST") == 0;
  if (posts && !ask->keeps) hang_up(f);
  bool kept = f->kept && f->wire.fd >= 0 && !posts;
  shoal_status status = f->wire.fd >= 0 ? SHOAL_OK : fetch_wire_open(&f->wire, f->connect_s, err);
  if (status == SHOAL_OK) status = try_once(&x, err);
  if (kept && !x.answered && status == SHOAL_IO) {
    hang_up(f);
    status = fetch_wire_open(&f->wire, f->connect_s, err);
    if (status == SHOAL_OK) status = try_once(&x, err);
  }
  reply->reached = f->wire.fd >= 0;
  reply->no_tls = f->wire.no_tls;
  reply->status = x.head.status;
  *retry_after_s = x.head.retry_after_s;
  f->kept = true;
  if (status != SHOAL_OK || x.head.closes) hang_up(f);
  reply->kept = f->wire.fd >= 0;
  if (status != SHOAL_OK) return status;
  return is_good(&x) ? SHOAL_OK : fail_answered(&x, err);
}

shoal_status shoal_fetch_ask(shoal_fetch *f, const shoal_ask *ask, shoal_reply *reply, shoal_error *err) {
  shoal_error why = {0};
  uint64_t retry_after_s = 0;
  shoal_status status;
  while ((status = ask_once(f, ask, reply, &retry_after_s, &why)) == SHOAL_IO && reply->status == 503 &&
         retry_after_s > 0 && f->waits != NULL) {
    f->waits(f->self, why.text);
    double until = shoal_clock_seconds() + fmin((double)retry_after_s, RETRY_S_MAX);
    while (shoal_clock_seconds() < until && !fetch_wire_stops(&f->wire)) shoal_clock_sleep(0.05);
    shoal_reply_release(reply);
  }
  if (status != SHOAL_OK && err != NULL) *err = why;
  return status;
}

/* ---- files ---- */

typedef struct saving {
  shoal_writer *writer;
  uint64_t done;
  void *self;
  void (*came)(void *self, uint64_t done);
} saving;

static shoal_status save(void *self, const void *bytes, size_t length, shoal_error *err) {
  (void)err; /* a writer that failed says so at the end */
  saving *s = self;
  shoal_writer_add(s->writer, bytes, length);
  s->done += length;
  if (s->came) s->came(s->self, s->done);
  return SHOAL_OK;
}

shoal_status shoal_fetch_file(shoal_fetch *f, const char *path, const char *file, void *self,
                              void (*came)(void *self, uint64_t done), shoal_error *err) {
  saving s = {.self = self, .came = came};
  shoal_status status = shoal_writer_create(&s.writer, file, err);
  if (status != SHOAL_OK) return status;
  shoal_reply reply;
  status = shoal_fetch_ask(f, &(shoal_ask){.path = path, .self = &s, .take = save}, &reply, err);
  shoal_reply_release(&reply);
  if (status == SHOAL_OK) return shoal_writer_commit(s.writer, err);
  shoal_writer_abandon(s.writer);
  return status;
}

/* ---- events ---- */

typedef struct listening {
  void *self;
  shoal_fetch_event event;
  shoal_text line, data;
  char name[EVENT_NAME_MAX];
  bool enough;
} listening;

/* "name: value", with one space that does not count; NULL: another name. */
static const char *field_of(const char *line, const char *name) {
  size_t length = strlen(name);
  if (strncmp(line, name, length) != 0 || line[length] != ':') return NULL;
  return line + length + 1 + (line[length + 1] == ' ');
}

static void hear_line(listening *l, const char *line) {
  const char *value;
  if (line[0] == 0) {
    if (l->data.length > 0 && !l->enough)
      l->enough = !l->event(l->self, l->name[0] ? l->name : "message", l->data.bytes);
    shoal_text_clear(&l->data);
    l->name[0] = 0;
  } else if ((value = field_of(line, "event")) != NULL) {
    shoal_text_plain(l->name, sizeof l->name, value, strlen(value));
  } else if ((value = field_of(line, "data")) != NULL) {
    if (l->data.length > 0) shoal_text_add(&l->data, "\n", 1);
    shoal_text_add(&l->data, value, strlen(value));
  }
}

static shoal_status hear(void *self, const void *bytes, size_t length, shoal_error *err) {
  listening *l = self;
  const char *from = bytes, *end = from + length;
  while (from < end && !l->enough) {
    const char *newline = memchr(from, '\n', (size_t)(end - from));
    shoal_text_add(&l->line, from, (size_t)((newline ? newline : end) - from));
    from = newline ? newline + 1 : end;
    if (l->line.length + l->data.length > EVENT_BYTES_MAX)
      return shoal_fail(err, SHOAL_LIMIT, "the server sends an event that is too long");
    if (l->line.failed || l->data.failed) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
    if (!newline) break;
    if (l->line.length > 0 && l->line.bytes[l->line.length - 1] == '\r') l->line.bytes[--l->line.length] = 0;
    hear_line(l, l->line.length > 0 ? l->line.bytes : "");
    shoal_text_clear(&l->line);
  }
  return l->enough ? SHOAL_STOPPED : SHOAL_OK;
}

shoal_status shoal_fetch_events(shoal_fetch *f, const char *path, void *self, shoal_fetch_event event,
                                shoal_error *err) {
  listening l = {.self = self, .event = event};
  shoal_text_init(&l.line);
  shoal_text_init(&l.data);
  shoal_reply reply;
  shoal_status status = shoal_fetch_ask(f, &(shoal_ask){.path = path, .self = &l, .take = hear}, &reply, err);
  shoal_reply_release(&reply);
  shoal_text_release(&l.line);
  shoal_text_release(&l.data);
  return l.enough && status == SHOAL_STOPPED ? SHOAL_OK : status;
}
