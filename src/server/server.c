/* server.c: see server.h: puts the parts together and runs the loop. */
#include "server/server.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/lock.h"
#include "cluster/node.h"
#include "server/api.h"
#include "server/reads.h"
#include "wire/certificate.h"
#include "wire/here.h"

enum { CONNECTIONS_MAX = 12000, VOLUNTEERS_MAX = 4000, ADDRESSES_MAX = 64 };
static const double HELLO_S = 20, STALL_S = 30;
static const double TELL_S = 0.25; /* how often watchers hear of changes */
static const double TIDY_S = 3600; /* how often abandoned uploads and the certificate are looked at */
static const double END_S = 1.5;   /* how long a stop waits for rounds to close */
static const double SERVER_S = 1;  /* how often of the server as a whole, and of a job's workers */
static const double COMPLAIN_S = 60;

typedef struct server {
  const shoal_server_config *config;
  shoal_api api;
  shoal_http_calls http;
  shoal_text store_path, jobs_folder, data_folder, url;
  char fingerprint[SHOAL_SHA256_HEX];
  shoal_swarms *swarms;
  int lock; /* on the folder */
  shoal_changes jobs_changed, jobs_gone, workers_changed, workers_gone;
  double next_tell, next_server, next_tidy, next_complaint;
  uint64_t audits_told; /* rows of the audit log that watchers have heard of */
  bool store_away;      /* as the log says */
} server;

/* ---- the log ---- */

/* A line of it: which job or chunk, and one field more. */
static void log_event(const server *s, const char *what, const char *key, uint64_t number, const char *name,
                      const char *value) {
  shoal_text fields = {0};
  shoal_json json;
  shoal_json_init(&json, &fields);
  shoal_json_int(&json, key, (int64_t)number);
  shoal_json_text(&json, name, value);
  if (!fields.failed) s->config->log(s->config->self, what, fields.bytes);
  shoal_text_release(&fields);
}

/* Why the store is away, and when it is back. */
static void watch_store(server *s) {
  shoal_store_state health;
  shoal_store_health(s->api.store, &health);
  if (health.up == !s->store_away) return;
  s->store_away = !health.up;
  char text[sizeof health.reason + 128];
  double away_s = shoal_clock_seconds() - health.since;
  if (health.up)
    snprintf(text, sizeof text, "back after %.1f s; all pending writes are done", away_s);
  else
    snprintf(text, sizeof text, "unavailable: %s; pending writes are kept and retried", health.reason);
  log_event(s, "store", "failed", health.failures, "text", text);
}

/* ---- live ---- */

static void tell(server *s, uint64_t job, const char *event, shoal_text *text) {
  if (!text->failed) shoal_live_send(s->api.live, s->api.net, job, event, text);
  shoal_text_release(text);
}

static void job_changed(void *self, const shoal_open_job *job) {
  server *s = self;
  shoal_changes_add(&s->jobs_changed, job->id);
  if (s->api.volunteers != NULL) shoal_volunteers_put_job(s->api.volunteers, job);
}

static void job_closed(void *self, uint64_t id) {
  server *s = self;
  shoal_changes_add(&s->jobs_changed, id);
  if (s->api.volunteers != NULL) shoal_volunteers_drop_job(s->api.volunteers, id);
}

static void job_deleted(void *self, uint64_t id, bool is_private) {
  server *s = self;
  shoal_changes_remove(&s->jobs_changed, id);
  if (!is_private) shoal_changes_add(&s->jobs_gone, id); /* who watches all never heard of the others */
}

static void tell_epoch(server *s, const shoal_open_job *job, const shoal_point *p) {
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_jobs_write_epoch(p, job->view.rounds, &json);
  tell(s, job->id, "epoch", &text);
}

static void job_points(void *self, const shoal_open_job *job, const shoal_point *points, size_t count) {
  server *s = self;
  if (!shoal_live_watched(s->api.live, job->id)) return;
  shoal_text text;
  shoal_json json;
  size_t rounds = 0;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '[');
  for (size_t i = 0; i < count; i++) {
    if (points[i].kind != 0) continue;
    shoal_jobs_write_round(&points[i], &json);
    rounds++;
  }
  shoal_json_close(&json, ']');
  if (rounds > 0)
    tell(s, job->id, "rounds", &text);
  else
    shoal_text_release(&text);
  for (size_t i = 0; i < count; i++)
    if (points[i].kind == 1) tell_epoch(s, job, &points[i]);
}

static void job_line(void *self, const shoal_open_job *job, const shoal_log_row *line) {
  server *s = self;
  shoal_text text;
  shoal_json json;
  log_event(s, "job", "job", job->id, "text", line->text);
  if (!shoal_live_watched(s->api.live, job->id)) return;
  shoal_json_begin(&json, &text);
  shoal_jobs_write_line(line, &json);
  tell(s, job->id, "log", &text);
}

static void job_trial(void *self, const shoal_open_job *job, const shoal_text *row) {
  server *s = self;
  if (!shoal_live_watched(s->api.live, job->id)) return;
  shoal_text text = {0};
  shoal_text_add(&text, row->bytes, row->length);
  tell(s, job->id, "trial", &text);
}

static void job_played(void *self, const shoal_open_job *job, const char *point, size_t length) {
  server *s = self;
  if (!shoal_live_watched(s->api.live, job->id)) return;
  shoal_text text = {0};
  shoal_text_add(&text, point, length);
  tell(s, job->id, "point", &text);
}

static void wake(void *self) {
  server *s = self;
  shoal_net_wake(s->api.net);
}

static void worker_changed(void *self, const shoal_volunteer *volunteer) {
  server *s = self;
  shoal_changes_add(&s->workers_changed, volunteer->id);
}

static void worker_gone(void *self, uint64_t id) {
  server *s = self;
  shoal_changes_remove(&s->workers_changed, id);
  shoal_changes_add(&s->workers_gone, id);
}

/* Jobs that changed, to those who watch them and to those who watch all. Private ones are told to nobody who
 * watches all: who may see them watches them. */
static void tell_jobs(server *s) {
  bool watched = shoal_live_watched(s->api.live, 0);
  bool tells = watched && s->jobs_changed.count + s->jobs_gone.count > 0;
  size_t later = 0;
  shoal_text all, one;
  shoal_json json, single;
  shoal_json_begin(&json, &all);
  shoal_json_open(&json, NULL, '{');
  shoal_json_open(&json, "changed", '[');
  for (size_t i = 0; i < s->jobs_changed.count; i++) {
    uint64_t id = s->jobs_changed.ids[i];
    if (!watched && !shoal_live_watched(s->api.live, id)) continue;
    shoal_json_begin(&single, &one);
    shoal_status status = shoal_jobs_write(s->api.jobs, id, false, &single, NULL);
    bool there = status == SHOAL_OK && !one.failed;
    if (status == SHOAL_UNAVAILABLE) s->jobs_changed.ids[later++] = id;
    if (there && watched && !shoal_jobs_is_private(s->api.jobs, id))
      shoal_json_raw(&json, NULL, one.bytes, one.length);
    if (there)
      tell(s, id, "job", &one);
    else
      shoal_text_release(&one);
  }
  shoal_json_close(&json, ']');
  shoal_json_open(&json, "gone", '[');
  for (size_t i = 0; i < s->jobs_gone.count; i++) shoal_json_int(&json, NULL, (int64_t)s->jobs_gone.ids[i]);
  shoal_json_close(&json, ']');
  shoal_json_close(&json, '}');
  if (tells)
    tell(s, 0, "jobs", &all);
  else
    shoal_text_release(&all);
  s->jobs_changed.count = later; /* those that the store is needed for, which is away */
  s->jobs_gone.count = 0;
}

static void tell_workers(server *s) {
  bool watched = shoal_live_watched(s->api.live, 0);
  if (watched && s->workers_changed.count + s->workers_gone.count > 0) {
    shoal_text text;
    shoal_json json;
    shoal_json_begin(&json, &text);
    shoal_json_open(&json, NULL, '{');
    shoal_json_open(&json, "changed", '[');
    for (size_t i = 0; i < s->workers_changed.count; i++) {
      const shoal_volunteer *v = shoal_volunteers_find(s->api.volunteers, s->workers_changed.ids[i]);
      if (v != NULL) shoal_volunteers_write(s->api.volunteers, v, false, &json);
    }
    shoal_json_close(&json, ']');
    shoal_json_open(&json, "gone", '[');
    for (size_t i = 0; i < s->workers_gone.count; i++)
      shoal_json_int(&json, NULL, (int64_t)s->workers_gone.ids[i]);
    shoal_json_close(&json, ']');
    shoal_json_close(&json, '}');
    tell(s, 0, "workers", &text);
  }
  s->workers_changed.count = s->workers_gone.count = 0;
}

static bool is_at_work(void *self, uint64_t job, const char *worker) {
  return shoal_volunteers_are_at(((server *)self)->api.volunteers, job, worker);
}

static void somebody_banned(void *self) { shoal_volunteers_turn_away(((server *)self)->api.volunteers); }

static void tell_server(server *s) {
  shoal_text text;
  shoal_json json;
  if (shoal_live_watched(s->api.live, 0)) {
    shoal_json_begin(&json, &text);
    shoal_api_server_json(&s->api, NULL, &json);
    tell(s, 0, "server", &text);
  }
  for (const shoal_open_job *job = shoal_jobs_first(s->api.jobs); job != NULL; job = job->next) {
    if (!shoal_live_watched(s->api.live, job->id)) continue;
    shoal_json_begin(&json, &text);
    if (shoal_jobs_workers(s->api.jobs, job->id, &json, NULL) == SHOAL_OK)
      tell(s, job->id, "workers", &text);
    else
      shoal_text_release(&text);
  }
}

static void note_throughput(server *s, double wall) {
  if (!shoal_throughput_is_due(&s->api.throughput, wall)) return;
  double samples_per_s = 0;
  for (const shoal_open_job *job = shoal_jobs_first(s->api.jobs); job != NULL; job = job->next)
    if (!job->is_private) samples_per_s += shoal_open_job_pulse(job).samples_per_s;
  shoal_throughput_add(&s->api.throughput, wall, samples_per_s);
}

/* Whoever may see the audit log asks for what is new. */
static void tell_audit(server *s) {
  uint64_t made = shoal_store_audits(s->api.store);
  if (made == s->audits_told) return;
  s->audits_told = made;
  shoal_text text = {0};
  shoal_text_addf(&text, "{\"made\":%" PRIu64 "}", made);
  if (!text.failed) shoal_live_tell_admins(s->api.live, s->api.net, "audit", &text);
  shoal_text_release(&text);
}

static double tell_watchers(server *s, double now) {
  shoal_live_tick(s->api.live, s->api.net, now, shoal_clock_wall_seconds());
  if (now >= s->next_tell) {
    watch_store(s);
    tell_jobs(s);
    tell_workers(s);
    tell_audit(s);
    note_throughput(s, shoal_clock_wall_seconds());
    s->next_tell = now + TELL_S;
  }
  if (now >= s->next_server) {
    tell_server(s);
    s->next_server = now + SERVER_S;
  }
  return s->next_tell;
}

/* ---- what the net tells ---- */

static void opened(void *self, uint64_t peer, const char *address) {
  (void)address;
  shoal_volunteers_opened(((server *)self)->api.volunteers, peer);
}

static void received(void *self, uint64_t peer, shoal_message *message) {
  shoal_volunteers_received(((server *)self)->api.volunteers, peer, message);
}

static void closed(void *self, uint64_t peer, const char *reason) {
  shoal_volunteers_closed(((server *)self)->api.volunteers, peer, reason);
}

static uint64_t begins(void *self, const shoal_request *request, char **file) {
  return shoal_api_begins(&((server *)self)->api, request, file);
}

static void asked(void *self, const shoal_request *request) {
  shoal_api_asked(&((server *)self)->api, request);
}

static void left(void *self, uint64_t id) { shoal_api_left(&((server *)self)->api, id); }

static int admits(void *self, uint64_t peer, const shoal_request *request) {
  return shoal_api_admits(&((server *)self)->api, peer, request);
}

/* ---- what the swarms want ---- */

static shoal_status read_manifest(void *self, const char *set, shoal_manifest *out, shoal_error *err) {
  server *s = self;
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_status status = shoal_datasets_manifest(s->api.datasets, set, &json, err);
  if (status == SHOAL_OK && text.failed) status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (status == SHOAL_OK) status = shoal_manifest_parse(out, text.bytes, text.length, err);
  shoal_text_release(&text);
  return status;
}

/* Members ask again for a chunk that cannot be read: it is written down now and then, not each time. */
static void complain_of_read(server *s, const shoal_error *err) {
  double now = shoal_clock_seconds();
  if (now < s->next_complaint || err->status == SHOAL_STOPPED) return;
  s->next_complaint = now + COMPLAIN_S;
  shoal_text fields = {0};
  shoal_json json;
  shoal_json_init(&json, &fields);
  shoal_json_text(&json, "text", err->text);
  if (!fields.failed) s->config->log(s->config->self, "error", fields.bytes);
  shoal_text_release(&fields);
}

static void chunk_was_read(void *self, uint64_t ticket, shoal_blob *chunk, const shoal_error *err) {
  server *s = self;
  if (chunk == NULL) complain_of_read(s, err);
  shoal_swarms_take(s->swarms, ticket, chunk);
}

static bool read_chunk(void *self, const char *sha256, uint64_t ticket) {
  server *s = self;
  shoal_chunk_source source;
  shoal_error err;
  if (shoal_datasets_chunk(s->api.datasets, sha256, &source, &err) != SHOAL_OK) {
    chunk_was_read(s, ticket, NULL, &err);
    return true;
  }
  bool begun = shoal_reads_begin(s->api.reads, &source, s, ticket, chunk_was_read);
  if (!begun) shoal_chunk_source_release(&source);
  return begun;
}

static void blamed(void *self, const char *set, const char *who, const char *by, uint32_t chunk) {
  shoal_text text = {0};
  shoal_text_addf(&text, "%s says that %s sent a wrong chunk of %s", by, who, set);
  if (!text.failed) log_event(self, "blame", "chunk", chunk, "text", text.bytes);
  shoal_text_release(&text);
  shoal_volunteers_blame(((server *)self)->api.volunteers, who, by);
}

/* ---- putting it together ---- */

/* One server a folder: a second would remove the uploads of the first, and run its jobs once more. */
static shoal_status lock_folder(server *s, shoal_error *err) {
  long holder;
  shoal_text path = {0};
  shoal_text_addf(&path, "%s/lock", s->config->folder);
  shoal_status status = path.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "out of memory")
                                    : shoal_lock_take(&s->lock, path.bytes, &holder, err);
  shoal_text_release(&path);
  if (status == SHOAL_CONFLICT)
    return shoal_fail(err, status, "another server (pid %ld) uses %s", holder, s->config->folder);
  return status;
}

static shoal_status open_places(server *s, shoal_error *err) {
  const shoal_server_config *c = s->config;
  shoal_text_addf(&s->store_path, "%s/shoal.db", c->folder);
  shoal_text_addf(&s->jobs_folder, "%s/jobs", c->folder);
  shoal_text_addf(&s->data_folder, "%s/data", c->folder);
  if (s->store_path.failed || s->jobs_folder.failed || s->data_folder.failed)
    return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_status status = shoal_make_folder(c->folder, err);
  return status == SHOAL_OK ? lock_folder(s, err) : status;
}

static shoal_status open_net(server *s, shoal_error *err) {
  const shoal_server_config *c = s->config;
  s->http = (shoal_http_calls){s, begins, asked, left, admits};
  const shoal_net_config net = {.calls = {s, opened, received, closed, NULL},
                                .payload_max = shoal_node_payload_max,
                                .connections_max = CONNECTIONS_MAX,
                                .hello_s = HELLO_S,
                                .stall_s = STALL_S,
                                .http = &s->http,
                                .upgrade_only = true,
                                .certificate = c->certificate,
                                .key = c->key};
  return shoal_net_create(&s->api.net, &net, err);
}

static shoal_status open_parts(server *s, shoal_error *err) {
  const shoal_server_config *c = s->config;
  shoal_api *api = &s->api;
  shoal_status status = open_places(s, err);
  if (status == SHOAL_OK)
    status = shoal_store_open(&api->store, c->store != NULL ? c->store : s->store_path.bytes, err);
  if (status == SHOAL_OK) status = shoal_store_claim(api->store, err);
  if (status == SHOAL_OK) status = shoal_api_reserve(api, CONNECTIONS_MAX, err);
  if (status != SHOAL_OK) return status;
  const shoal_access_config access = {.store = api->store, .open = c->open};
  const shoal_datasets_config datasets = {
      .store = api->store, .folder = s->data_folder.bytes, .named_dir = c->named_dir};
  status = shoal_access_create(&api->access, &access, err);
  if (status == SHOAL_OK) status = shoal_datasets_open(&api->datasets, &datasets, err);
  if (status == SHOAL_OK) status = shoal_live_create(&api->live, err);
  if (status == SHOAL_OK) status = open_net(s, err);
  if (status == SHOAL_OK) status = shoal_chores_create(&api->chores, s, wake, err);
  if (status == SHOAL_OK) status = shoal_chores_create(&api->tries, s, wake, err);
  if (status == SHOAL_OK) status = shoal_chores_create(&api->reads, s, wake, err);
  if (status != SHOAL_OK) return status;
  const shoal_jobs_config jobs = {.store = api->store,
                                  .datasets = api->datasets,
                                  .folder = s->jobs_folder.bytes,
                                  .named_dir = c->named_dir,
                                  .threads = c->threads,
                                  .lease_s = c->lease_s,
                                  .calls = {s, job_changed, job_closed, job_deleted, job_points, job_line,
                                            job_trial, job_played, wake, is_at_work, somebody_banned}};
  const shoal_volunteers_calls volunteers = {s, worker_changed, worker_gone};
  status = shoal_jobs_open(&api->jobs, &jobs, err);
  if (status == SHOAL_OK)
    status = shoal_volunteers_create(&api->volunteers, VOLUNTEERS_MAX, api->net, api->jobs, &volunteers, err);
  if (status != SHOAL_OK) return status;
  const shoal_swarms_calls swarms = {s, read_manifest, read_chunk, blamed};
  status = shoal_swarms_create(&s->swarms, api->net, &swarms, err);
  if (status != SHOAL_OK) return status;
  shoal_volunteers_use_swarms(api->volunteers, s->swarms);
  for (const shoal_open_job *job = shoal_jobs_first(api->jobs); job != NULL; job = job->next)
    shoal_volunteers_put_job(api->volunteers, job);
  return SHOAL_OK;
}

/* The first admin of a server that wants tokens is made by the server itself. */
static shoal_status make_admin(server *s, shoal_text *link, shoal_error *err) {
  char token[SHOAL_TOKEN_CHARS + 1];
  uint64_t id;
  bool has;
  double now = shoal_clock_wall_seconds();
  if (s->config->open == SHOAL_ADMIN) return SHOAL_OK;
  shoal_status status = shoal_access_has_admin(s->api.access, now, &has, err);
  if (status != SHOAL_OK || has) return status;
  status = shoal_access_mint(s->api.access, SHOAL_ADMIN, "admin", 0, 0, now, token, &id, err);
  if (status == SHOAL_CONFLICT) { /* a host is called that */
    char name[32];
    snprintf(name, sizeof name, "admin %.0f", now);
    status = shoal_access_mint(s->api.access, SHOAL_ADMIN, name, 0, 0, now, token, &id, err);
  }
  if (status == SHOAL_OK) shoal_access_link(link, s->url.bytes, token, s->api.fingerprint);
  return status;
}

/* An IPv4 address under which other machines may reach this one; NULL: there is none. */
static const char *find_address(shoal_here_address all[ADDRESSES_MAX]) {
  size_t count = shoal_here_addresses(all, ADDRESSES_MAX);
  for (size_t i = 0; i < count; i++)
    if (!all[i].six) return all[i].text;
  return NULL;
}

/* The host of links, as long as nobody asks under another name. */
static void write_url(server *s, uint16_t port) {
  const shoal_server_config *c = s->config;
  const char *colon = strrchr(c->listen, ':');
  shoal_here_address addresses[ADDRESSES_MAX];
  shoal_text host = {0};
  shoal_text_addf(&host, "%.*s", colon != NULL ? (int)(colon - c->listen) : 0, c->listen);
  bool everywhere = host.failed || host.length == 0 || strcmp(host.bytes, "0.0.0.0") == 0 ||
                    strcmp(host.bytes, "[::]") == 0;
  const char *name = host.bytes;
  if (everywhere) name = c->name != NULL ? c->name : find_address(addresses);
  if (name == NULL) name = "localhost";
  bool six = strchr(name, ':') != NULL && name[0] != '[';
  shoal_text_addf(&s->url, "%s://%s%s%s:%u", c->certificate != NULL ? "https" : "http", six ? "[" : "", name,
                  six ? "]" : "", port);
  shoal_text_release(&host);
}

static void log_queue(void *self, const char *text) {
  const server *s = self;
  shoal_text fields = {0};
  shoal_json json;
  shoal_json_init(&json, &fields);
  shoal_json_text(&json, "text", text);
  if (!fields.failed) s->config->log(s->config->self, "queue", fields.bytes);
  shoal_text_release(&fields);
}

/* Who comes without a token may have to use a name that the server knows as its own: under another one they
 * get a token. */
static shoal_status open_offers(server *s, shoal_error *err) {
  const shoal_server_config *c = s->config;
  if (c->queue == NULL) return SHOAL_OK;
  const shoal_offers_config offers = {.queue = c->queue,
                                      .url = c->public_url != NULL ? c->public_url : s->url.bytes,
                                      .fingerprint = s->api.fingerprint,
                                      .open = c->public_url != NULL ? SHOAL_NOBODY : c->open,
                                      .folder = s->jobs_folder.bytes,
                                      .lease_s = c->lease_s > 0 ? c->lease_s : SHOAL_LEASE_S,
                                      .jobs = s->api.jobs,
                                      .access = s->api.access,
                                      .store = s->api.store,
                                      .self = s,
                                      .wake = wake,
                                      .log = log_queue};
  return shoal_offers_create(&s->api.offers, &offers, err);
}

static shoal_status listen_and_say(server *s, shoal_error *err) {
  const shoal_server_config *c = s->config;
  uint16_t port;
  shoal_status status = shoal_net_listen(s->api.net, c->listen, &port, err);
  if (status == SHOAL_OK && c->certificate != NULL) {
    status = shoal_certificate_fingerprint(c->certificate, s->fingerprint, err);
    s->api.fingerprint = s->fingerprint;
  }
  if (status != SHOAL_OK) return status;
  write_url(s, port);
  if (s->url.failed) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  s->api.url = s->url.bytes;
  status = open_offers(s, err);
  if (status != SHOAL_OK) return status;
  shoal_text link = {0};
  status = make_admin(s, &link, err);
  if (status == SHOAL_OK) c->ready(c->self, s->url.bytes, link.length > 0 ? link.bytes : NULL);
  shoal_text_release(&link);
  return status;
}

static bool stops(const server *s) { return __atomic_load_n(s->config->stop, __ATOMIC_RELAXED) != 0; }

static void tidy(server *s, double now) {
  if (now < s->next_tidy) return;
  shoal_datasets_tidy(s->api.datasets, shoal_clock_wall_seconds());
  if (s->config->renew != NULL && s->config->renew(s->config->self)) shoal_net_renew_certificate(s->api.net);
  s->next_tidy = now + TIDY_S;
}

/* Serves the port once; `next` is when something else is due. */
static void turn(server *s, double now, double next) {
  shoal_chores_tick(s->api.chores);
  shoal_chores_tick(s->api.tries);
  shoal_chores_tick(s->api.reads);
  tidy(s, now);
  next = fmin(next, shoal_volunteers_tick(s->api.volunteers, now));
  next = fmin(next, shoal_swarms_tick(s->swarms, now));
  next = fmin(next, shoal_api_tick(&s->api, now));
  next = fmin(next, tell_watchers(s, now));
  shoal_net_run(s->api.net, fmin(shoal_node_turn_s, fmax(0, next - now)));
}

static void loop(server *s) {
  while (!stops(s)) {
    double now = shoal_clock_seconds(), next = shoal_jobs_tick(s->api.jobs, now);
    if (s->api.offers != NULL) next = fmin(next, shoal_offers_tick(s->api.offers, now));
    turn(s, now, next);
  }
  /* Rounds close only with what workers send: the port is served until all have, or for a little. */
  double now = shoal_clock_seconds(), deadline = now + END_S;
  shoal_jobs_end(s->api.jobs);
  for (; now < deadline && shoal_jobs_are_ending(s->api.jobs); now = shoal_clock_seconds())
    turn(s, now, now + TELL_S);
}

static void close_parts(server *s) {
  shoal_api *api = &s->api;
  shoal_chores_destroy(api->chores);
  shoal_chores_destroy(api->tries);
  shoal_chores_destroy(api->reads);
  shoal_offers_destroy(api->offers);
  shoal_jobs_close(api->jobs);
  shoal_net_destroy(api->net);
  shoal_volunteers_destroy(api->volunteers);
  shoal_swarms_destroy(s->swarms);
  shoal_live_destroy(api->live);
  shoal_datasets_close(api->datasets);
  shoal_access_destroy(api->access);
  shoal_store_close(api->store);
  shoal_api_release(api);
  shoal_lock_give(s->lock);
  shoal_changes_release(&s->jobs_changed);
  shoal_changes_release(&s->jobs_gone);
  shoal_changes_release(&s->workers_changed);
  shoal_changes_release(&s->workers_gone);
  shoal_text_release(&s->store_path);
  shoal_text_release(&s->jobs_folder);
  shoal_text_release(&s->data_folder);
  shoal_text_release(&s->url);
}

shoal_status shoal_server_run(const shoal_server_config *config, shoal_error *err) {
  server *s = calloc(1, sizeof *s);
  if (s == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  s->config = config;
  s->lock = SHOAL_NO_LOCK;
  s->api.open = config->open;
  s->api.started = shoal_clock_wall_seconds();
  s->api.self = config->self;
  s->api.log = config->log;
  shoal_status status = open_parts(s, err);
  if (status == SHOAL_OK) status = listen_and_say(s, err);
  if (status == SHOAL_OK) loop(s);
  close_parts(s);
  free(s);
  return status;
}
