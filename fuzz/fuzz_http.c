/* fuzz_http.c: any bytes as requests to a server's routes, and as what volunteers say.
 *
 * Requests follow each other with a zero byte between them: a head as HTTP has it, an empty line, and all that follows
 * is the body. "Authorization: Bearer host" stands for a token of that role. A head that asks for a WebSocket
 * becomes a volunteer's connection if it is let in, and its body what is said there: REGISTER, or REPORT where it begins
 * with '~'. No socket is opened: answers come to __wrap_shoal_http_answer below.
 *
 * Every request is answered once, with a status that the API has. An error is JSON with a code and a text; nothing
 * that is asked for makes it an internal one. What was changed is forgotten before the next input. */
#include <cjson/cJSON.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "cluster/node.h"
#include "server/api.h"
#include "wire/http_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);
void __wrap_shoal_http_answer(shoal_net *net, uint64_t id, const shoal_answer *answer);

enum { REQUESTS_MAX = 8, BODY_MAX = 64 << 10, VOLUNTEERS_MAX = 8, CONNECTIONS_MAX = 8, INPUTS_MAX = 1000 };
static const double PATIENCE_S = 30;

static char folder[64], database[96], jobs_folder[96], data_folder[96], named_folder[96];
static shoal_api api;
static char tokens[SHOAL_ADMIN + 1][SHOAL_TOKEN_CHARS + 1];
static bool is_open, writes, changed, guessed;
static uint64_t serial, asked_id; /* the request that is being answered */
static int answers;
static bool streams;
static uint64_t peers[VOLUNTEERS_MAX];
static size_t peers_count;

/* ---- answers ---- */

static void check_error(const shoal_answer *answer) {
  SHOAL_ASSERT(answer->body != NULL && strcmp(answer->type, "application/json") == 0);
  cJSON *json =
      cJSON_ParseWithLength((const char *)shoal_blob_bytes(answer->body), shoal_blob_length(answer->body));
  const cJSON *error = cJSON_GetObjectItemCaseSensitive(json, "error");
  SHOAL_ASSERT(cJSON_IsString(cJSON_GetObjectItemCaseSensitive(error, "code")));
  const cJSON *text = cJSON_GetObjectItemCaseSensitive(error, "text");
  SHOAL_ASSERT(cJSON_IsString(text) && text->valuestring[0] != 0);
  /* Where it lies is nobody's business, unless who asked has guessed it. */
  SHOAL_ASSERT(guessed || strstr(text->valuestring, folder) == NULL);
  cJSON_Delete(json);
}

static void check_json(const shoal_answer *answer) {
  const char *text = (const char *)shoal_blob_bytes(answer->body);
  size_t length = shoal_blob_length(answer->body);
  SHOAL_ASSERT(shoal_utf8_valid(text, length));
  cJSON *json = cJSON_ParseWithLength(text, length);
  SHOAL_ASSERT(json != NULL);
  cJSON_Delete(json);
}

void __wrap_shoal_http_answer(shoal_net *net, uint64_t id, const shoal_answer *answer) {
  static const int statuses[] = {200, 201, 204, 304, 400, 401, 403, 404, 405, 409, 410, 413, 422, 429, 503};
  bool known = false;
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) known |= answer->status == statuses[i];
  SHOAL_ASSERT(net == api.net && id == asked_id && known);
  answers++;
  streams = answer->stream;
  changed |= writes && answer->status < 300;
  /* An address that is none of the page's gets the page, which says so. */
  bool is_page = answer->status == 404 && answer->type != NULL && strncmp(answer->type, "text/html", 9) == 0;
  if (answer->status >= 400 && !is_page)
    check_error(answer);
  else if (answer->body != NULL && strcmp(answer->type, "application/json") == 0)
    check_json(answer);
  shoal_blob_release(answer->body);
}

/* ---- a server without a port ---- */

static void on_open(void *self, uint64_t peer, const char *address) { (void)self, (void)peer, (void)address; }
static void on_message(void *self, uint64_t peer, shoal_message *message) {
  (void)self, (void)peer;
  shoal_message_release(message);
}
static void on_close(void *self, uint64_t peer, const char *reason) { (void)self, (void)peer, (void)reason; }

static void wake(void *self) { (void)self; }
static void log_line(void *self, const char *what, const char *fields) {
  (void)self, (void)what, (void)fields;
}
static void job_changed(void *self, const shoal_open_job *job) {
  (void)self;
  if (api.volunteers != NULL) shoal_volunteers_put_job(api.volunteers, job);
}
static void job_closed(void *self, uint64_t id) {
  (void)self;
  if (api.volunteers != NULL) shoal_volunteers_drop_job(api.volunteers, id);
}
static void job_deleted(void *self, uint64_t id, bool is_private) { (void)self, (void)id, (void)is_private; }

static void job_points(void *self, const shoal_open_job *job, const shoal_point *points, size_t count) {
  (void)self, (void)job, (void)points, (void)count;
}
static void job_trial(void *self, const shoal_open_job *job, const shoal_text *row) {
  (void)self, (void)job, (void)row;
}
static void job_played(void *self, const shoal_open_job *job, const char *point, size_t length) {
  (void)self, (void)job, (void)point, (void)length;
}
static void somebody_banned(void *self) {
  (void)self;
  if (api.volunteers != NULL) shoal_volunteers_turn_away(api.volunteers);
}
static bool is_here(void *self, uint64_t job, const char *worker) {
  (void)self, (void)job, (void)worker;
  return false;
}
static void job_line(void *self, const shoal_open_job *job, const shoal_log_row *line) {
  (void)self, (void)job, (void)line;
}
static void worker_changed(void *self, const shoal_volunteer *volunteer) { (void)self, (void)volunteer; }
static void worker_gone(void *self, uint64_t id) { (void)self, (void)id; }

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where) {
  (void)info, (void)kind;
  return where->level > 0 ? remove(path) : 0;
}

static void close_server(void) {
  if (!is_open) return;
  is_open = false;
  shoal_chores_destroy(api.chores);
  shoal_chores_destroy(api.tries);
  shoal_chores_destroy(api.reads);
  shoal_volunteers *volunteers = api.volunteers;
  api.volunteers = NULL;
  shoal_jobs_close(api.jobs);
  shoal_net_destroy(api.net);
  shoal_volunteers_destroy(volunteers);
  shoal_live_destroy(api.live);
  shoal_datasets_close(api.datasets);
  shoal_access_destroy(api.access);
  shoal_store_close(api.store);
  shoal_api_release(&api);
  nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void leave(void) {
  close_server();
  rmdir(folder);
}

static void make_folder(void) {
  const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  snprintf(folder, sizeof folder, "%s/shoal-fuzz-XXXXXX", base);
  SHOAL_ASSERT(mkdtemp(folder) != NULL);
  setenv("XDG_CACHE_HOME", "/dev/null/none", 1); /* no copies of what was unzipped */
  snprintf(database, sizeof database, "%s/db", folder);
  snprintf(jobs_folder, sizeof jobs_folder, "%s/jobs", folder);
  snprintf(data_folder, sizeof data_folder, "%s/data", folder);
  snprintf(named_folder, sizeof named_folder, "%s/named", folder);
  atexit(leave);
}

static void open_server(void) {
  shoal_error err = {0};
  if (folder[0] == 0) make_folder();
  const shoal_net_calls calls = {&api, on_open, on_message, on_close, NULL};
  const shoal_net_config net = shoal_node_net(&calls, CONNECTIONS_MAX, NULL, NULL);
  const shoal_volunteers_calls told = {&api, worker_changed, worker_gone};
  api = (shoal_api){.open = SHOAL_VIEWER, .url = "http://localhost:1", .log = log_line};
  SHOAL_ASSERT(shoal_api_reserve(&api, CONNECTIONS_MAX, &err) == SHOAL_OK);
  SHOAL_ASSERT(shoal_store_open(&api.store, database, &err) == SHOAL_OK);
  const shoal_access_config access = {.store = api.store, .open = api.open, .wrong_per_minute = 1 << 20};
  const shoal_datasets_config sets = {
      .store = api.store, .folder = data_folder, .named_dir = named_folder, .bytes_max = BODY_MAX};
  const shoal_jobs_calls jobs_calls = {&api,       job_changed, job_closed,     job_deleted,
                                       job_points, job_line,    job_trial,      job_played,
                                       wake,       is_here,     somebody_banned};
  SHOAL_ASSERT(shoal_access_create(&api.access, &access, &err) == SHOAL_OK);
  SHOAL_ASSERT(shoal_datasets_open(&api.datasets, &sets, &err) == SHOAL_OK);
  SHOAL_ASSERT(shoal_live_create(&api.live, &err) == SHOAL_OK);
  SHOAL_ASSERT(shoal_net_create(&api.net, &net, &err) == SHOAL_OK);
  SHOAL_ASSERT(shoal_chores_create(&api.chores, NULL, wake, &err) == SHOAL_OK);
  SHOAL_ASSERT(shoal_chores_create(&api.tries, NULL, wake, &err) == SHOAL_OK);
  SHOAL_ASSERT(shoal_chores_create(&api.reads, NULL, wake, &err) == SHOAL_OK);
  const shoal_jobs_config jobs = {.store = api.store,
                                  .datasets = api.datasets,
                                  .folder = jobs_folder,
                                  .named_dir = named_folder,
                                  .threads = 1,
                                  .calls = jobs_calls};
  SHOAL_ASSERT(shoal_jobs_open(&api.jobs, &jobs, &err) == SHOAL_OK);
  SHOAL_ASSERT(shoal_volunteers_create(&api.volunteers, VOLUNTEERS_MAX, api.net, api.jobs, &told, &err) ==
               SHOAL_OK);
  for (int level = SHOAL_VIEWER; level <= SHOAL_ADMIN; level++) {
    uint64_t id;
    SHOAL_ASSERT(shoal_access_mint(api.access, (shoal_role_level)level,
                                   shoal_role_level_name((shoal_role_level)level), 0, 0, 1e9, tokens[level],
                                   &id, &err) == SHOAL_OK);
  }
  is_open = true;
}

/* ---- requests ---- */

/* "Bearer host" becomes the host's token. */
static void set_token(const char *given, char out[64]) {
  shoal_role_level level;
  bool named = strncmp(given, "Bearer ", 7) == 0 && shoal_role_level_parse(given + 7, &level);
  if (named)
    snprintf(out, 64, "Bearer %s", tokens[level]);
  else
    snprintf(out, 64, "%s", given);
}

static void drop_volunteers(void) {
  for (; peers_count > 0; peers_count--)
    shoal_volunteers_closed(api.volunteers, peers[peers_count - 1], "gone");
}

/* A job that somebody works for runs, with threads of its own: not here. */
static void keep_apart(const shoal_request *r) {
  if (r->method == SHOAL_POST && strncmp(r->path, "/api/v1/jobs", 12) == 0) drop_volunteers();
}

static void speak(uint64_t peer, const uint8_t *body, size_t length) {
  bool report = length > 0 && body[0] == '~';
  if (report) body++, length--;
  if (!report && shoal_jobs_first(api.jobs) != NULL) return;
  shoal_message m = {.kind = report ? SHOAL_MSG_REPORT : SHOAL_MSG_REGISTER,
                     .payload = shoal_blob_of(body, length)};
  shoal_volunteers_received(api.volunteers, peer, &m);
}

static void knock(const shoal_request *r, const uint8_t *body, size_t length) {
  uint64_t peer = ++serial;
  int refused = shoal_api_admits(&api, peer, r);
  SHOAL_ASSERT(refused == 0 || refused == 401 || refused == 403 || refused == 404 || refused == 429 ||
               refused == 503);
  if (refused != 0) return;
  SHOAL_ASSERT(peers_count < VOLUNTEERS_MAX);
  peers[peers_count++] = peer;
  shoal_volunteers_opened(api.volunteers, peer);
  speak(peer, body, length);
  shoal_volunteers_tick(api.volunteers, shoal_clock_seconds());
}

static void put_file(const char *path, const uint8_t *body, size_t length) {
  FILE *file = fopen(path, "wb");
  SHOAL_ASSERT(file != NULL && fwrite(body, 1, length, file) == length);
  SHOAL_ASSERT(fclose(file) == 0);
}

static void ask(shoal_request *r, const uint8_t *body, size_t length) {
  char *file = NULL;
  keep_apart(r);
  answers = 0;
  streams = false;
  writes = r->method != SHOAL_GET;
  asked_id = r->id = ++serial;
  uint64_t body_max = shoal_api_begins(&api, r, &file);
  if (answers == 0 && length <= body_max) {
    if (length > 0 && file != NULL) {
      put_file(file, body, length);
      r->body_file = file;
    } else if (length > 0) {
      r->body = shoal_blob_of(body, length);
    }
    r->body_bytes = length;
    shoal_api_asked(&api, r);
    double until = shoal_clock_seconds() + PATIENCE_S;
    while (answers == 0 && shoal_clock_seconds() < until) {
      shoal_clock_sleep(20e-6);
      shoal_chores_tick(api.chores);
      shoal_chores_tick(api.tries);
      shoal_chores_tick(api.reads);
      shoal_api_tick(&api, shoal_clock_seconds());
    }
    SHOAL_ASSERT(answers == 1);
  } else {
    SHOAL_ASSERT(answers <= 1);
  }
  if (streams || answers == 0) shoal_api_left(&api, r->id);
  if (file != NULL) unlink(file);
  free(file);
  shoal_blob_release(r->body);
}

static shoal_method method_of(const char *word) {
  static const char *const words[] = {"GET", "POST", "PUT", "DELETE"};
  for (int i = 0; i < 4; i++)
    if (strcmp(word, words[i]) == 0) return (shoal_method)i;
  return SHOAL_METHOD_OTHER;
}

static void handle(const uint8_t *bytes, size_t length) {
  const uint8_t *blank = memmem(bytes, length, "\r\n\r\n", 4);
  size_t head_bytes = blank != NULL ? (size_t)(blank - bytes) + 4 : length;
  if (blank == NULL || head_bytes > SHOAL_HTTP_HEAD_MAX) return;
  char *text = malloc(head_bytes + 1), authorization[64];
  SHOAL_ASSERT(text != NULL);
  memcpy(text, bytes, head_bytes);
  text[head_bytes] = 0;
  shoal_http_head head = {0};
  const char *why = NULL;
  int refused = shoal_http_head_read(&head, text, head_bytes, &why);
  SHOAL_ASSERT(refused == 0 || (refused >= 400 && refused < 600 && why != NULL));
  if (refused == 0) {
    set_token(head.authorization, authorization);
    shoal_request r = {.method = method_of(head.method),
                       .path = head.path,
                       .query = head.query,
                       .address = "127.0.0.1",
                       .host = head.host,
                       .origin = head.origin,
                       .authorization = authorization,
                       .content_type = head.content_type,
                       .accept_encoding = head.accept_encoding,
                       .if_none_match = head.if_none_match};
    size_t body = length - head_bytes < BODY_MAX ? length - head_bytes : BODY_MAX;
    if (head.websocket)
      knock(&r, bytes + head_bytes, body);
    else
      ask(&r, bytes + head_bytes, body);
  }
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  static int inputs;
  if (changed || ++inputs % INPUTS_MAX == 0) close_server();
  changed = false;
  if (!is_open) open_server();
  guessed = memmem(bytes, length, folder, strlen(folder)) != NULL;
  for (int i = 0; i < REQUESTS_MAX && length > 0; i++) {
    const uint8_t *end = memchr(bytes, 0, length);
    size_t part = end != NULL ? (size_t)(end - bytes) : length;
    handle(bytes, part);
    size_t used = part < length ? part + 1 : part;
    bytes += used;
    length -= used;
  }
  drop_volunteers();
  return 0;
}
