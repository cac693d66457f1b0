/* volunteers.c: see volunteers.h.
 *
 * Every connection has an entry, found by its peer's number in a table of chains. The two ends of a connection that is
 * passed on, the volunteer's and the one to a thread of this process, point at each other. */
#include "server/volunteers.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "net/node.h"
#include "proto/match.h"

enum { BUCKETS = 4096 };
static const double BEAT_S = 2, SILENT_S = 30, RATE_S = 2;

typedef enum channel_kind { CONTROL, OUTSIDE, INSIDE } channel_kind;

/* A connection: a volunteer's control, its end of one that is passed on, or the end inside. */
typedef struct channel {
  struct channel *next;
  uint64_t peer;
  channel_kind kind;
  uint64_t job;
  bool to_chief;      /* else to a parameter server */
  uint64_t mate;      /* OUTSIDE and INSIDE: the other end; 0: none yet */
  uint64_t volunteer; /* its number, once known */
  shoal_caller caller;
  char address[64];
} channel;

typedef struct entry {
  struct entry *next, *before;
  struct entry *chain; /* in the table by number */
  shoal_volunteer v;
  uint64_t wanted_job; /* that it chose; 0: any */
  char wanted_host[SHOAL_MATCH_NAME_MAX];
  double beaten_at;
} entry;

struct shoal_volunteers {
  shoal_net *net;
  shoal_jobs *jobs;
  shoal_match *match;
  shoal_volunteers_calls calls;
  channel *channels[BUCKETS];
  entry *first, *last;
  entry *entries[BUCKETS];
  bool untold; /* somebody may have to be told its job */
  uint32_t count, max;
  uint64_t numbered;
  double next_rates;
};

/* ---- channels ---- */

static channel **place_of(shoal_volunteers *v, uint64_t peer) {
  channel **at = &v->channels[peer % BUCKETS];
  while (*at != NULL && (*at)->peer != peer) at = &(*at)->next;
  return at;
}

static channel *find_channel(shoal_volunteers *v, uint64_t peer) { return *place_of(v, peer); }

static channel *add_channel(shoal_volunteers *v, uint64_t peer, channel_kind kind) {
  channel *l = calloc(1, sizeof *l);
  if (l == NULL) return NULL;
  l->peer = peer;
  l->kind = kind;
  l->next = v->channels[peer % BUCKETS];
  v->channels[peer % BUCKETS] = l;
  return l;
}

/* ---- entries ---- */

static entry *find_entry(const shoal_volunteers *v, uint64_t id) {
  entry *e = v->entries[id % BUCKETS];
  while (e != NULL && e->v.id != id) e = e->chain;
  return e;
}

static void link_entry(shoal_volunteers *v, entry *e) {
  entry **bucket = &v->entries[e->v.id % BUCKETS];
  e->chain = *bucket;
  *bucket = e;
  e->before = v->last;
  *(v->last != NULL ? &v->last->next : &v->first) = e;
  v->last = e;
  v->count++;
}

static void unlink_entry(shoal_volunteers *v, entry *e) {
  entry **at = &v->entries[e->v.id % BUCKETS];
  while (*at != e) at = &(*at)->chain;
  *at = e->chain;
  *(e->before != NULL ? &e->before->next : &v->first) = e->next;
  *(e->next != NULL ? &e->next->before : &v->last) = e->before;
  v->count--;
}

static bool name_is_taken(const shoal_volunteers *v, const char *name, const entry *but) {
  for (const entry *e = v->first; e != NULL; e = e->next)
    if (e != but && e->v.registered && strcmp(e->v.name, name) == 0) return true;
  return false;
}

static void give_name(shoal_volunteers *v, entry *e, const char *wanted) {
  char plain[SHOAL_VOLUNTEER_NAME_MAX - 21];
  shoal_text_plain(plain, sizeof plain, wanted, strlen(wanted));
  if (plain[0] == 0) snprintf(plain, sizeof plain, "worker");
  snprintf(e->v.name, sizeof e->v.name, "%s", plain);
  for (uint64_t n = e->v.id; name_is_taken(v, e->v.name, e); n++)
    snprintf(e->v.name, sizeof e->v.name, "%s %" PRIu64, plain, n);
}

static void changed(shoal_volunteers *v, const entry *e) {
  if (e->v.registered) v->calls.changed(v->calls.self, &e->v);
}

/* ---- who works for what ---- */

static void say(shoal_volunteers *v, entry *e, shoal_message_kind kind, const shoal_text *text) {
  shoal_message m = {.kind = kind};
  if (text != NULL) m.payload = shoal_blob_of(text->bytes, text->length);
  e->beaten_at = shoal_clock_seconds();
  shoal_net_send(v->net, e->v.peer, m);
}

/* Tells a volunteer its job, or why it has none. */
static void tell_assignment(shoal_volunteers *v, entry *e) {
  const shoal_open_job *job = e->v.job != 0 ? shoal_jobs_find(v->jobs, e->v.job) : NULL;
  bool ready = job != NULL && job->runner != NULL && job->view.phase == SHOAL_RUNNER_OPEN;
  char reason[SHOAL_MATCH_REASON_MAX];
  shoal_text text = {0};
  shoal_json json;
  shoal_json_init(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_int(&json, "job", ready ? (int64_t)job->id : 0);
  if (ready) {
    shoal_json_text(&json, "name", job->name);
    shoal_json_text(&json, "host", job->host);
    shoal_json_text(&json, "data", job->spec.data.bytes);
    snprintf(e->v.text, sizeof e->v.text, "works for %s", job->name);
  } else if (job != NULL && job->runner == NULL) {
    snprintf(e->v.text, sizeof e->v.text, "%s waits for more workers: %u of at least %u are here", job->name,
             job->workers, job->spec.workers_min);
  } else if (job != NULL) {
    snprintf(e->v.text, sizeof e->v.text, "%s is being prepared", job->name);
  } else {
    shoal_match_reason(v->match, e->v.id, reason);
    snprintf(e->v.text, sizeof e->v.text, "%s", reason);
  }
  shoal_json_text(&json, "text", e->v.text);
  shoal_json_close(&json, '}');
  if (!text.failed) say(v, e, SHOAL_MSG_ASSIGN, &text);
  shoal_text_release(&text);
  e->v.told = ready || job == NULL;
}

static void count_workers(shoal_volunteers *v) {
  for (shoal_open_job *job = shoal_jobs_first(v->jobs), *next; job != NULL; job = next) {
    next = job->next;
    job->workers = shoal_match_workers_of(v->match, job->id);
    if (job->workers >= job->spec.workers_min) shoal_jobs_start(v->jobs, job);
  }
}

/* Carries out what the match has decided. Those without a job are told when the reason may have changed. */
static void settle(shoal_volunteers *v) {
  uint64_t id, job;
  while (shoal_match_next(v->match, &id, &job)) {
    entry *e = find_entry(v, id);
    if (e == NULL) continue;
    e->v.job = job;
    e->v.told = false;
    v->untold = true;
  }
  count_workers(v);
  if (!v->untold) return;
  v->untold = false;
  for (entry *e = v->first; e != NULL; e = e->next) {
    if (!e->v.registered || e->v.told) continue;
    tell_assignment(v, e);
    changed(v, e);
    v->untold |= !e->v.told;
  }
}

/* Has who works for what decided anew, as the volunteer is now. */
static void rematch(shoal_volunteers *v, const entry *e) {
  const shoal_match_worker worker = {
      .id = e->v.id,
      .job = e->v.caller.job != 0 ? e->v.caller.job : e->wanted_job,
      .invited = e->v.caller.job != 0 || e->v.caller.level == SHOAL_ADMIN,
      .host = e->wanted_host[0] != 0 ? e->wanted_host : NULL,
      .memory_bytes = e->v.memory_bytes,
      .speed = e->v.speed,
      .paused = strcmp(e->v.state, "paused") == 0,
  };
  (void)shoal_match_put_worker(v->match, &worker, NULL);
  settle(v);
}

void shoal_volunteers_put_job(shoal_volunteers *v, const shoal_open_job *job) {
  const shoal_match_job open = {.id = job->id,
                                .name = job->name,
                                .host = job->host,
                                .is_private = job->is_private,
                                .least = job->spec.workers_min,
                                .most = job->spec.workers_max,
                                .memory_bytes = job->view.memory_bytes};
  (void)shoal_match_put_job(v->match, &open,
                            NULL); /* one that stops, too: the round at hand wants its workers */
  settle(v);
}

void shoal_volunteers_drop_job(shoal_volunteers *v, uint64_t id) {
  shoal_match_drop_job(v->match, id);
  settle(v);
}

/* ---- what volunteers say ---- */

static const char *text_of(const cJSON *json, const char *key) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
  return cJSON_IsString(item) ? item->valuestring : "";
}

static double number_of(const cJSON *json, const char *key, double most) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
  return cJSON_IsNumber(item) && item->valuedouble >= 0 ? fmin(item->valuedouble, most) : 0;
}

static void copy_plain(char *to, size_t size, const char *from) {
  shoal_text_plain(to, size, from, strlen(from));
}

static void take_registration(shoal_volunteers *v, entry *e, const cJSON *json) {
  copy_plain(e->wanted_host, sizeof e->wanted_host, text_of(json, "host"));
  e->wanted_job = (uint64_t)number_of(json, "job", 9e15);
  give_name(v, e, text_of(json, "name"));
  copy_plain(e->v.version, sizeof e->v.version, text_of(json, "version"));
  copy_plain(e->v.kernels, sizeof e->v.kernels, text_of(json, "kernels"));
  e->v.cores = (uint32_t)number_of(json, "cores", 1 << 20);
  e->v.threads = (uint32_t)number_of(json, "threads", 1 << 20);
  e->v.memory_bytes = (uint64_t)number_of(json, "memory_bytes", 1e18);
  e->v.speed = number_of(json, "speed", 1e12);
  e->v.registered = true;
  e->v.told = false;
  v->untold = true;
  snprintf(e->v.state, sizeof e->v.state, "idle");
  rematch(v, e);
}

static void take_report(shoal_volunteers *v, entry *e, const cJSON *json) {
  static const char *const states[] = {"idle", "fetching", "computing", "paused"};
  const char *state = text_of(json, "state");
  for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
    if (strcmp(state, states[i]) == 0) snprintf(e->v.state, sizeof e->v.state, "%s", state);
  copy_plain(e->v.text, sizeof e->v.text, text_of(json, "text"));
  rematch(v, e);
  changed(v, e);
}

static void hear_control(shoal_volunteers *v, entry *e, const shoal_message *m) {
  if (m->kind == SHOAL_MSG_BEAT) return;
  size_t length;
  const char *text = shoal_node_payload(m, &length);
  cJSON *json = m->kind == SHOAL_MSG_REGISTER || m->kind == SHOAL_MSG_REPORT
                    ? cJSON_ParseWithLength(text, length)
                    : NULL;
  if (!cJSON_IsObject(json))
    shoal_net_close(v->net, e->v.peer, "expected REGISTER or REPORT with a JSON object");
  else if (m->kind == SHOAL_MSG_REGISTER)
    take_registration(v, e, json);
  else if (e->v.registered)
    take_report(v, e, json);
  cJSON_Delete(json);
}

/* ---- connections that are passed on ---- */

/* A worker's HELLO on the way to the chief: which volunteer is it? It goes on under the name that is its own. */
static void see_hello(shoal_volunteers *v, channel *l, shoal_message *m) {
  char name[SHOAL_NODE_TEXT_MAX];
  shoal_node_text(m, name);
  for (entry *e = v->first; e != NULL; e = e->next) {
    size_t length = strlen(name);
    bool fits = e->v.registered && e->v.job == l->job && e->v.chief == 0 &&
                e->v.caller.token == l->caller.token && strcmp(e->v.address, l->address) == 0 &&
                strncmp(e->v.name, name, length) == 0 && (e->v.name[length] == 0 || e->v.name[length] == ' ');
    if (!fits) continue;
    e->v.chief = l->peer;
    l->volunteer = e->v.id;
    shoal_blob_release(m->payload);
    m->payload = shoal_blob_of(e->v.name, strlen(e->v.name));
    return;
  }
}

static void see_passing(shoal_volunteers *v, const channel *outside, const shoal_message *m) {
  shoal_open_job *job = shoal_jobs_find(v->jobs, outside->job);
  const entry *e = outside->volunteer != 0 ? find_entry(v, outside->volunteer) : NULL;
  if (job != NULL && e != NULL) shoal_timeline_see(&job->timeline, e->v.name, m, shoal_clock_wall_seconds());
}

static void pass_on(shoal_volunteers *v, channel *l, shoal_message *m) {
  bool watched = m->kind == SHOAL_MSG_LEASE || m->kind == SHOAL_MSG_DONE || m->kind == SHOAL_MSG_RETURN;
  if (m->kind == SHOAL_MSG_HELLO && l->kind == OUTSIDE && l->to_chief) see_hello(v, l, m);
  if (watched) {
    const channel *outside = l->kind == OUTSIDE ? l : find_channel(v, l->mate);
    if (outside != NULL) see_passing(v, outside, m);
  }
  shoal_net_send(v->net, l->mate, *m);
}

static void open_inside(shoal_volunteers *v, channel *outside) {
  const shoal_open_job *job = shoal_jobs_find(v->jobs, outside->job);
  if (job == NULL || job->port == 0) {
    shoal_net_close(v->net, outside->peer, "the job is not open");
    return;
  }
  char address[16];
  snprintf(address, sizeof address, "#:%u", job->port + (outside->to_chief ? 0u : 1u));
  const shoal_way way = {.wire = SHOAL_WIRE_RAW};
  uint64_t peer = shoal_net_dial(v->net, address, &way);
  channel *inside = peer != 0 ? add_channel(v, peer, INSIDE) : NULL;
  if (inside == NULL) {
    shoal_net_close(v->net, outside->peer, "no memory");
    return;
  }
  inside->mate = outside->peer;
  inside->job = outside->job;
  inside->to_chief = outside->to_chief;
  outside->mate = peer;
}

/* ---- what the net tells ---- */

static int admit_control(shoal_volunteers *v, uint64_t peer, const char *address,
                         const shoal_caller *caller) {
  if (v->count >= v->max) return 503;
  entry *e = calloc(1, sizeof *e);
  channel *l = e != NULL ? add_channel(v, peer, CONTROL) : NULL;
  if (l == NULL) {
    free(e);
    return 503;
  }
  e->v = (shoal_volunteer){.id = ++v->numbered, .peer = peer, .caller = *caller};
  e->v.since = shoal_clock_wall_seconds();
  snprintf(e->v.address, sizeof e->v.address, "%s", address);
  snprintf(e->v.state, sizeof e->v.state, "idle");
  link_entry(v, e);
  l->volunteer = e->v.id;
  return 0;
}

static int admit_to_job(shoal_volunteers *v, uint64_t peer, uint64_t id, bool to_chief, const char *address,
                        const shoal_caller *caller) {
  const shoal_open_job *job = shoal_jobs_find(v->jobs, id);
  if (job == NULL) return 404;
  bool invited = caller->job == id || caller->level == SHOAL_ADMIN || strcmp(caller->name, job->host) == 0;
  if ((caller->job != 0 && caller->job != id) || (job->is_private && !invited)) return 403;
  if (job->runner == NULL || job->view.phase != SHOAL_RUNNER_OPEN) return 503;
  channel *l = add_channel(v, peer, OUTSIDE);
  if (l == NULL) return 503;
  l->job = id;
  l->to_chief = to_chief;
  l->caller = *caller;
  snprintf(l->address, sizeof l->address, "%s", address);
  return 0;
}

int shoal_volunteers_admit(shoal_volunteers *v, uint64_t peer, const char *path, const char *address,
                           const shoal_caller *caller) {
  uint64_t id;
  int used = 0;
  if (strcmp(path, "/work") == 0) return admit_control(v, peer, address, caller);
  if (sscanf(path, "/jobs/%" SCNu64 "/%n", &id, &used) != 1 || used == 0) return 404;
  bool to_chief = strcmp(path + used, "chief") == 0;
  if (!to_chief && strcmp(path + used, "ps/0") != 0) return 404;
  return admit_to_job(v, peer, id, to_chief, address, caller);
}

void shoal_volunteers_opened(shoal_volunteers *v, uint64_t peer) {
  channel *l = find_channel(v, peer);
  if (l != NULL && l->kind == OUTSIDE) open_inside(v, l);
}

void shoal_volunteers_received(shoal_volunteers *v, uint64_t peer, shoal_message *m) {
  channel *l = find_channel(v, peer);
  entry *e = l != NULL && l->kind == CONTROL ? find_entry(v, l->volunteer) : NULL;
  if (l != NULL && l->kind != CONTROL && l->mate != 0) {
    pass_on(v, l, m);
    return;
  }
  if (e != NULL) hear_control(v, e, m);
  shoal_message_release(m);
}

static void drop_entry(shoal_volunteers *v, entry *e) {
  unlink_entry(v, e);
  shoal_match_drop_worker(v->match, e->v.id);
  if (e->v.registered) v->calls.gone(v->calls.self, e->v.id);
  free(e);
  settle(v);
}

void shoal_volunteers_closed(shoal_volunteers *v, uint64_t peer, const char *reason) {
  channel **at = place_of(v, peer), *l = *at;
  if (l == NULL) return;
  *at = l->next;
  entry *e = l->volunteer != 0 ? find_entry(v, l->volunteer) : NULL;
  if (l->kind == CONTROL && e != NULL) drop_entry(v, e);
  if (l->kind == OUTSIDE && e != NULL && e->v.chief == peer) e->v.chief = 0;
  channel *mate = l->mate != 0 ? find_channel(v, l->mate) : NULL;
  if (mate != NULL) {
    mate->mate = 0;
    shoal_net_close(v->net, mate->peer, reason);
  }
  free(l);
}

/* ---- from time to time ---- */

static void measure(shoal_volunteers *v, entry *e, double now) {
  const shoal_open_job *job = shoal_jobs_find(v->jobs, e->v.job);
  uint64_t parts = 0;
  for (uint32_t i = 0; job != NULL && i < job->peers_count; i++)
    if (strcmp(job->peers[i].name, e->v.name) == 0) parts = job->peers[i].parts_done;
  if (parts < e->v.seen_parts) e->v.seen_parts = 0;
  uint64_t samples =
      job != NULL ? (uint64_t)((double)(parts - e->v.seen_parts) * job->view.part_samples + 0.5) : 0;
  double rate = e->v.seen_at > 0 ? (double)samples / (now - e->v.seen_at) : 0;
  bool tells = rate != e->v.samples_per_s;
  e->v.seen_parts = parts;
  e->v.seen_at = now;
  e->v.samples += samples;
  e->v.samples_per_s = rate;
  if (tells) changed(v, e);
}

double shoal_volunteers_tick(shoal_volunteers *v, double now) {
  bool rates = now >= v->next_rates;
  for (entry *e = v->first, *next; e != NULL; e = next) {
    next = e->next;
    double heard = shoal_net_heard(v->net, e->v.peer);
    if (heard > 0 && now - heard > SILENT_S) shoal_net_close(v->net, e->v.peer, "silent for 30 seconds");
    if (now - e->beaten_at >= BEAT_S) say(v, e, SHOAL_MSG_BEAT, NULL);
    if (e->v.registered && !e->v.told) tell_assignment(v, e);
    if (rates && e->v.registered) measure(v, e, now);
  }
  if (rates) v->next_rates = now + RATE_S;
  return now + 0.25;
}

/* ---- for the API ---- */

uint32_t shoal_volunteers_count(const shoal_volunteers *v, uint32_t *idle) {
  uint32_t count = 0;
  *idle = 0;
  for (const entry *e = v->first; e != NULL; e = e->next) {
    if (!e->v.registered) continue;
    count++;
    if (e->v.job == 0) (*idle)++;
  }
  return count;
}

const shoal_volunteer *shoal_volunteers_next(const shoal_volunteers *v, const shoal_volunteer *after) {
  const entry *e =
      after == NULL ? v->first : ((const entry *)((const char *)after - offsetof(entry, v)))->next;
  while (e != NULL && !e->v.registered) e = e->next;
  return e != NULL ? &e->v : NULL;
}

const shoal_volunteer *shoal_volunteers_find(const shoal_volunteers *v, uint64_t id) {
  const entry *e = find_entry(v, id);
  return e != NULL && e->v.registered ? &e->v : NULL;
}

void shoal_volunteers_write(const shoal_volunteers *v, const shoal_volunteer *w, shoal_json *json) {
  const shoal_open_job *job = w->job != 0 ? shoal_jobs_find(v->jobs, w->job) : NULL;
  double heard = shoal_net_heard(v->net, w->peer);
  shoal_json_open(json, NULL, '{');
  shoal_json_int(json, "id", (int64_t)w->id);
  shoal_json_text(json, "name", w->name);
  shoal_json_text(json, "address", w->address);
  shoal_json_real(json, "since", w->since);
  shoal_json_int(json, "cores", w->cores);
  shoal_json_int(json, "threads", w->threads);
  shoal_json_int(json, "memory_bytes", (int64_t)w->memory_bytes);
  shoal_json_text(json, "kernels", w->kernels);
  shoal_json_real(json, "speed", w->speed);
  shoal_json_text(json, "version", w->version);
  shoal_json_text(json, "state", w->state);
  bool hidden = job != NULL && job->is_private; /* who sees workers need not know whom they work for */
  shoal_json_text(json, "text", hidden ? "works for a private job" : w->text);
  if (job != NULL && !hidden)
    shoal_json_int(json, "job", (int64_t)job->id);
  else
    shoal_json_null(json, "job");
  shoal_json_text(json, "job_name", job != NULL && !hidden ? job->name : "");
  shoal_json_real(json, "samples_per_s", w->samples_per_s);
  shoal_json_real(json, "lag_s", heard > 0 ? shoal_clock_seconds() - heard : 0);
  shoal_json_int(json, "samples", (int64_t)w->samples);
  shoal_json_close(json, '}');
}

/* ---- create and destroy ---- */

shoal_status shoal_volunteers_create(shoal_volunteers **out, uint32_t max, shoal_jobs *jobs,
                                     const shoal_volunteers_calls *calls, shoal_error *err) {
  shoal_volunteers *v = calloc(1, sizeof *v);
  if (v == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  v->jobs = jobs;
  v->max = max;
  v->calls = *calls;
  shoal_status status = shoal_match_create(&v->match, err);
  if (status != SHOAL_OK) {
    free(v);
    return status;
  }
  *out = v;
  return SHOAL_OK;
}

void shoal_volunteers_use(shoal_volunteers *v, shoal_net *net) { v->net = net; }

void shoal_volunteers_destroy(shoal_volunteers *v) {
  if (v == NULL) return;
  for (size_t b = 0; b < BUCKETS; b++)
    for (channel *l = v->channels[b], *next; l != NULL; l = next) {
      next = l->next;
      free(l);
    }
  for (entry *e = v->first, *next; e != NULL; e = next) {
    next = e->next;
    free(e);
  }
  shoal_match_destroy(v->match);
  free(v);
}
