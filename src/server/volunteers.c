/* volunteers.c: see volunteers.h.
 *
 * Every connection is a channel, found by its peer's number in a table of chains; every volunteer that has a
 * control connection is an entry, found by its own number. The two ends of a connection that is passed on,
 * the volunteer's and the one to a thread of this process, point at each other. */
#include "server/volunteers.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json_at.h"
#include "cluster/node.h"
#include "cluster/swarm_words.h"
#include "proto/match.h"
#include "wire/http_read.h"

enum { BUCKETS = 4096 };
static const double TICK_S = 0.25, BEAT_S = 2, SILENT_S = 30, RATE_S = 2;

typedef enum channel_kind { CONTROL, OUTSIDE, INSIDE, DATA } channel_kind;

/* A connection: a volunteer's control, its end of one that is passed on, or the end inside; or one for
 * data. */
typedef struct channel_entry {
  struct channel_entry *next;
  uint64_t peer;
  channel_kind kind;
  uint64_t job;
  bool to_chief;      /* else to a parameter server */
  uint64_t mate;      /* OUTSIDE and INSIDE: the other end; 0: none yet */
  uint64_t volunteer; /* its number, once known */
  uint64_t claimed;   /* the number that it says to have; 0: it says none */
  shoal_caller caller;
  char address[64];
} channel_entry;

typedef struct volunteer_entry {
  struct volunteer_entry *next, *before;
  struct volunteer_entry *chain; /* in the table by number */
  shoal_volunteer v;
  uint64_t wanted_job; /* that it chose; 0: any */
  char wanted_host[SHOAL_MATCH_NAME_MAX];
  char said[SHOAL_NAME_MAX];          /* the name that it gave, as it says it again in HELLO */
  uint64_t told_digest;               /* of the last ASSIGN */
  struct volunteer_entry *next_moved; /* of those whose job has just changed */
  double beaten_at;
} volunteer_entry;

struct shoal_volunteers {
  shoal_net *net;
  shoal_jobs *jobs;
  shoal_match *match;
  shoal_swarms *swarms; /* or NULL */
  shoal_volunteers_calls calls;
  channel_entry *channels[BUCKETS];
  volunteer_entry *first, *last;
  volunteer_entry *entries[BUCKETS];
  bool untold; /* somebody may have to be told of a job that was not open to workers yet */
  uint32_t count, paused, max;
  uint64_t numbered;
  double next_tick, next_rates;
};

/* ---- channels ---- */

static channel_entry **place_of(shoal_volunteers *v, uint64_t peer) {
  channel_entry **at = &v->channels[peer % BUCKETS];
  while (*at != NULL && (*at)->peer != peer) at = &(*at)->next;
  return at;
}

static channel_entry *find_channel(shoal_volunteers *v, uint64_t peer) { return *place_of(v, peer); }

static channel_entry *add_channel(shoal_volunteers *v, uint64_t peer, channel_kind kind) {
  channel_entry *channel = calloc(1, sizeof *channel);
  if (channel == NULL) return NULL;
  channel->peer = peer;
  channel->kind = kind;
  channel->next = v->channels[peer % BUCKETS];
  v->channels[peer % BUCKETS] = channel;
  return channel;
}

/* ---- entries ---- */

static volunteer_entry *find_entry(const shoal_volunteers *v, uint64_t id) {
  volunteer_entry *volunteer = v->entries[id % BUCKETS];
  while (volunteer != NULL && volunteer->v.id != id) volunteer = volunteer->chain;
  return volunteer;
}

static bool is_paused(const volunteer_entry *volunteer) { return strcmp(volunteer->v.state, "paused") == 0; }

static void set_state(shoal_volunteers *v, volunteer_entry *volunteer, const char *state) {
  v->paused -= is_paused(volunteer);
  snprintf(volunteer->v.state, sizeof volunteer->v.state, "%s", state);
  v->paused += is_paused(volunteer);
}

static void link_entry(shoal_volunteers *v, volunteer_entry *volunteer) {
  volunteer_entry **bucket = &v->entries[volunteer->v.id % BUCKETS];
  volunteer->chain = *bucket;
  *bucket = volunteer;
  volunteer->before = v->last;
  *(v->last != NULL ? &v->last->next : &v->first) = volunteer;
  v->last = volunteer;
  v->count++;
}

static void unlink_entry(shoal_volunteers *v, volunteer_entry *volunteer) {
  volunteer_entry **at = &v->entries[volunteer->v.id % BUCKETS];
  while (*at != volunteer) at = &(*at)->chain;
  *at = volunteer->chain;
  *(volunteer->before != NULL ? &volunteer->before->next : &v->first) = volunteer->next;
  *(volunteer->next != NULL ? &volunteer->next->before : &v->last) = volunteer->before;
  v->count--;
  v->paused -= is_paused(volunteer);
}

static bool name_is_taken(const shoal_volunteers *v, const char *name, const volunteer_entry *but) {
  for (const volunteer_entry *volunteer = v->first; volunteer != NULL; volunteer = volunteer->next)
    if (volunteer != but && volunteer->v.registered && strcmp(volunteer->v.name, name) == 0) return true;
  return false;
}

static void give_name(shoal_volunteers *v, volunteer_entry *volunteer, const char *wanted) {
  shoal_text_plain(volunteer->said, sizeof volunteer->said, wanted, strlen(wanted));
  char plain[SHOAL_VOLUNTEER_SAID_MAX];
  shoal_text_plain(plain, sizeof plain, wanted, strlen(wanted));
  if (plain[0] == 0) snprintf(plain, sizeof plain, "worker");
  snprintf(volunteer->v.name, sizeof volunteer->v.name, "%s", plain);
  for (uint64_t n = volunteer->v.id; name_is_taken(v, volunteer->v.name, volunteer); n++)
    snprintf(volunteer->v.name, sizeof volunteer->v.name, "%s %" PRIu64, plain, n);
}

static void changed(shoal_volunteers *v, const volunteer_entry *volunteer) {
  if (volunteer->v.registered) v->calls.changed(v->calls.self, &volunteer->v);
}

/* ---- who works for what ---- */

static void say(shoal_volunteers *v, volunteer_entry *volunteer, shoal_message_kind kind,
                const shoal_text *text) {
  shoal_message m = {.kind = kind};
  if (text != NULL) m.payload = shoal_blob_of(text->bytes, text->length);
  volunteer->beaten_at = shoal_clock_seconds();
  shoal_net_send(v->net, volunteer->v.peer, m);
}

static bool is_banned(const shoal_volunteers *v, const volunteer_entry *volunteer) {
  return shoal_standings_is_banned(shoal_jobs_standings(v->jobs), volunteer->v.caller.token, volunteer->said,
                                   volunteer->v.address);
}

/* For people: what it works for, or why it works for nothing. */
static void describe_assignment(shoal_volunteers *v, volunteer_entry *volunteer, const shoal_open_job *job,
                                bool ready) {
  char *text = volunteer->v.text;
  size_t room = sizeof volunteer->v.text;
  char reason[SHOAL_MATCH_REASON_MAX];
  if (ready) {
    snprintf(text, room, "works for %s", job->name);
  } else if (job != NULL && !shoal_open_job_has_begun(job)) {
    snprintf(text, room, "%s waits for more workers: %u of at least %u are here", job->name, job->workers,
             job->spec.workers_min);
  } else if (job != NULL) {
    snprintf(text, room, "%s is being prepared", job->name);
  } else if (is_banned(v, volunteer)) {
    snprintf(text, room,
             "gets no work here: results of this worker were wrong; an admin of the server can lift the ban");
  } else if (!is_paused(volunteer)) { /* one that is has said why */
    shoal_match_reason(v->match, volunteer->v.id, reason);
    snprintf(text, room, "%s", reason);
  }
}

/* Tells a volunteer its job, or why it has none, unless that is what it was last told. */
static void tell_assignment(shoal_volunteers *v, volunteer_entry *volunteer) {
  const shoal_open_job *job = volunteer->v.job != 0 ? shoal_jobs_find(v->jobs, volunteer->v.job) : NULL;
  bool ready = job != NULL && shoal_open_job_is_ready(job);
  shoal_text text;
  shoal_json json;
  describe_assignment(v, volunteer, job, ready);
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_int(&json, "job", ready ? (int64_t)job->id : 0);
  shoal_json_int(&json, "worker", (int64_t)volunteer->v.id);
  if (ready) {
    shoal_json_text(&json, "name", job->name);
    shoal_json_text(&json, "host", job->host);
    shoal_json_text(&json, "data", job->spec.data.bytes);
    shoal_json_text(&json, "kind", shoal_job_kind_name(job->kind));
  }
  shoal_json_text(&json, "text", volunteer->v.text);
  shoal_json_close(&json, '}');
  uint64_t digest = text.failed ? 0 : shoal_digest(text.bytes, text.length);
  bool news = !text.failed && digest != volunteer->told_digest;
  if (news) say(v, volunteer, SHOAL_MSG_ASSIGN, &text);
  shoal_text_release(&text);
  volunteer->told_digest = digest;
  volunteer->v.told = ready || job == NULL;
  if (news) changed(v, volunteer);
}

/* As many as the job wants at most, less those who help it from a queue. */
static uint32_t most_of(const shoal_open_job *job) {
  uint32_t least = job->spec.workers_min, most = job->spec.workers_max;
  return most >= least + job->helpers ? most - job->helpers : least;
}

/* Lets the match know a job as it is now. */
static void match_job(shoal_volunteers *v, const shoal_open_job *job) {
  const shoal_match_job open = {.id = job->id,
                                .name = job->name,
                                .host = job->host,
                                .is_private = job->is_private,
                                .begun = shoal_open_job_has_begun(job),
                                .least = job->spec.workers_min,
                                .most = most_of(job),
                                .memory_bytes = job->view.memory_bytes};
  /* One that stops, too: the round at hand wants its workers. There is room for as many as may be open. */
  (void)shoal_match_put_job(v->match, &open, NULL);
}

/* True if a job has begun. */
static bool count_workers(shoal_volunteers *v) {
  bool begun = false;
  for (shoal_open_job *job = shoal_jobs_first(v->jobs), *next; job != NULL; job = next) {
    next = job->next;
    job->workers = shoal_match_workers_of(v->match, job->id);
    job->paused = v->paused;
    if (job->workers < job->spec.workers_min || shoal_open_job_has_begun(job)) continue;
    shoal_jobs_start(v->jobs, job);
    if (!shoal_open_job_has_begun(job)) continue;
    match_job(v, job); /* from now on it keeps its workers, even if some go */
    begun = true;
  }
  return begun;
}

/* Carries out what the match has decided, and tells those whose job is another now. */
static void settle(shoal_volunteers *v) {
  uint64_t id, job;
  volunteer_entry *moved = NULL;
  while (shoal_match_next(v->match, &id, &job)) {
    volunteer_entry *volunteer = find_entry(v, id);
    if (volunteer == NULL) continue;
    volunteer->next_moved = moved;
    moved = volunteer;
    if (volunteer->v.job != 0) shoal_jobs_lost(v->jobs, volunteer->v.job, volunteer->v.name);
    volunteer->v.job = job;
    volunteer->v.told = false;
    v->untold = true;
    if (job != 0) shoal_jobs_joined(v->jobs, job, volunteer->v.name);
  }
  bool begun = count_workers(v);
  for (volunteer_entry *volunteer = moved; volunteer != NULL; volunteer = volunteer->next_moved)
    if (volunteer->v.registered && !volunteer->v.told) tell_assignment(v, volunteer);
  if (begun) settle(v); /* once for every job at most */
}

/* Lets the match know a volunteer as it is now. One that is banned gets nothing, like one that is paused. */
static void put_worker(shoal_volunteers *v, const volunteer_entry *volunteer) {
  const shoal_caller *caller = &volunteer->v.caller;
  uint64_t id = caller->job != 0 ? caller->job : volunteer->wanted_job;
  const shoal_open_job *job = id != 0 ? shoal_jobs_find(v->jobs, id) : NULL;
  const shoal_match_worker worker = {
      .id = volunteer->v.id,
      .job = id,
      .invited = job != NULL && shoal_access_invited(caller, id, job->host),
      .host = volunteer->wanted_host[0] != 0 ? volunteer->wanted_host : NULL,
      .memory_bytes = volunteer->v.memory_bytes,
      .speed = volunteer->v.speed,
      .paused = is_paused(volunteer) || is_banned(v, volunteer),
  };
  shoal_error err;
  if (shoal_match_put_worker(v->match, &worker, &err) != SHOAL_OK)
    shoal_net_close(v->net, volunteer->v.peer, err.text);
}

/* Has who works for what decided anew, as the volunteer is now. */
static void rematch(shoal_volunteers *v, volunteer_entry *volunteer) {
  put_worker(v, volunteer);
  settle(v);
  if (!volunteer->v.told) tell_assignment(v, volunteer);
}

void shoal_volunteers_put_job(shoal_volunteers *v, const shoal_open_job *job) {
  match_job(v, job);
  /* Those who are invited to a private one may have come before it. */
  for (volunteer_entry *volunteer = v->first; volunteer != NULL && job->is_private;
       volunteer = volunteer->next)
    if (volunteer->v.registered && (volunteer->wanted_job == job->id || volunteer->v.caller.job == job->id))
      put_worker(v, volunteer);
  settle(v);
  /* It may be open to its workers now. */
  for (volunteer_entry *volunteer = v->first; volunteer != NULL && v->untold; volunteer = volunteer->next)
    if (volunteer->v.registered && !volunteer->v.told && volunteer->v.job == job->id)
      tell_assignment(v, volunteer);
}

void shoal_volunteers_turn_away(shoal_volunteers *v) {
  for (const volunteer_entry *volunteer = v->first; volunteer != NULL; volunteer = volunteer->next)
    if (volunteer->v.registered && volunteer->v.job != 0 && is_banned(v, volunteer)) put_worker(v, volunteer);
  settle(v);
}

void shoal_volunteers_reconsider(shoal_volunteers *v) {
  for (volunteer_entry *volunteer = v->first; volunteer != NULL; volunteer = volunteer->next) {
    if (!volunteer->v.registered || volunteer->v.job != 0) continue;
    put_worker(v, volunteer);
    volunteer->v.told = false; /* it may at least be another reason now */
    v->untold = true;
  }
  settle(v);
}

void shoal_volunteers_drop_job(shoal_volunteers *v, uint64_t id) {
  shoal_match_drop_job(v->match, id);
  settle(v);
}

/* ---- what volunteers say ---- */

static void copy_plain(char *to, size_t size, const char *from) {
  shoal_text_plain(to, size, from, strlen(from));
}

/* What is no number, or below 0, counts as 0. */
static double limited(double number, double most) { return number > 0 ? fmin(number, most) : 0; }

/* What is wrong with the names that it gives; NULL: nothing. */
static const char *judge_names(const cJSON *json) {
  if (strlen(shoal_text_at(json, "name")) >= SHOAL_VOLUNTEER_SAID_MAX)
    return "the name of a worker is too long: it has at most 32 bytes";
  if (strlen(shoal_text_at(json, "host")) >= SHOAL_CALLER_NAME_MAX)
    return "the name of the host is too long: it has at most 63 bytes";
  return NULL;
}

/* It is told why, as one that gets no job, and closed. */
static void refuse_registration(shoal_volunteers *v, volunteer_entry *volunteer, const char *why) {
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_int(&json, "job", 0);
  shoal_json_int(&json, "worker", (int64_t)volunteer->v.id);
  shoal_json_text(&json, "text", why);
  shoal_json_close(&json, '}');
  if (!text.failed) say(v, volunteer, SHOAL_MSG_ASSIGN, &text);
  shoal_text_release(&text);
  shoal_net_close(v->net, volunteer->v.peer, why);
}

static void take_registration(shoal_volunteers *v, volunteer_entry *volunteer, const cJSON *json) {
  copy_plain(volunteer->wanted_host, sizeof volunteer->wanted_host, shoal_text_at(json, "host"));
  volunteer->wanted_job = (uint64_t)limited(shoal_number_at(json, "job"), 9e15);
  give_name(v, volunteer, shoal_text_at(json, "name"));
  copy_plain(volunteer->v.version, sizeof volunteer->v.version, shoal_text_at(json, "version"));
  copy_plain(volunteer->v.kernels, sizeof volunteer->v.kernels, shoal_text_at(json, "kernels"));
  volunteer->v.cores = (uint32_t)limited(shoal_number_at(json, "cores"), 1 << 20);
  volunteer->v.threads = (uint32_t)limited(shoal_number_at(json, "threads"), 1 << 20);
  volunteer->v.memory_bytes = (uint64_t)limited(shoal_number_at(json, "memory_bytes"), 1e18);
  volunteer->v.speed = limited(shoal_number_at(json, "speed"), 1e12);
  volunteer->v.registered = true;
  volunteer->v.told = false;
  volunteer->told_digest = 0;
  v->untold = true;
  set_state(v, volunteer, "idle");
  rematch(v, volunteer);
  changed(v, volunteer);
}

static void take_report(shoal_volunteers *v, volunteer_entry *volunteer, const cJSON *json) {
  static const char *const states[] = {"idle", "fetching", "computing", "paused"};
  const char *state = shoal_text_at(json, "state");
  for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
    if (strcmp(state, states[i]) == 0) set_state(v, volunteer, state);
  copy_plain(volunteer->v.text, sizeof volunteer->v.text, shoal_text_at(json, "text"));
  rematch(v, volunteer);
  changed(v, volunteer);
}

static void hear_control(shoal_volunteers *v, volunteer_entry *volunteer, const shoal_message *m) {
  if (m->kind == SHOAL_MSG_BEAT) return;
  size_t length;
  const char *text = shoal_node_payload(m, &length);
  cJSON *json = m->kind == SHOAL_MSG_REGISTER || m->kind == SHOAL_MSG_REPORT
                    ? cJSON_ParseWithLength(text, length)
                    : NULL;
  if (!cJSON_IsObject(json))
    shoal_net_close(v->net, volunteer->v.peer, "expected REGISTER or REPORT with a JSON object");
  else if (m->kind == SHOAL_MSG_REGISTER && judge_names(json) != NULL)
    refuse_registration(v, volunteer, judge_names(json));
  else if (m->kind == SHOAL_MSG_REGISTER)
    take_registration(v, volunteer, json);
  else if (volunteer->v.registered)
    take_report(v, volunteer, json);
  cJSON_Delete(json);
}

/* ---- connections that are passed on ---- */

/* Whether a connection can be of this volunteer, by all that is known of both. */
static bool fits(const volunteer_entry *volunteer, const channel_entry *channel, const char *name) {
  char said[SHOAL_NAME_MAX];
  shoal_text_plain(said, sizeof said, name, strlen(name));
  return volunteer->v.registered && volunteer->v.job == channel->job &&
         volunteer->v.caller.token == channel->caller.token &&
         strcmp(volunteer->v.address, channel->address) == 0 && strcmp(volunteer->said, said) == 0;
}

/* Whether it has such a connection already. */
static bool is_connected(shoal_volunteers *v, const volunteer_entry *volunteer,
                         const channel_entry *channel) {
  uint64_t peer = channel->kind == DATA ? volunteer->v.swarm : volunteer->v.chief;
  const channel_entry *other = peer != 0 && peer != channel->peer ? find_channel(v, peer) : NULL;
  return other != NULL && other->job == channel->job;
}

/* Which volunteer is it that says HELLO with this name? The one of the number that it claims, which may have
 * connected anew; or, without that, one that has no such connection yet. */
static volunteer_entry *recognise(shoal_volunteers *v, const channel_entry *channel, const char *name) {
  volunteer_entry *claimed = channel->claimed != 0 ? find_entry(v, channel->claimed) : NULL;
  if (claimed != NULL && fits(claimed, channel, name)) return claimed;
  for (volunteer_entry *volunteer = v->first; volunteer != NULL; volunteer = volunteer->next)
    if (fits(volunteer, channel, name) && !is_connected(v, volunteer, channel)) return volunteer;
  return NULL;
}

/* A worker's HELLO on the way to the chief: it goes on under the name that is its own. False: it is nobody's
 * who works for this job, and is closed. */
static bool see_hello(shoal_volunteers *v, channel_entry *channel, shoal_message *m) {
  char name[SHOAL_NODE_TEXT_MAX];
  shoal_node_text(m, name);
  volunteer_entry *volunteer = m->count == SHOAL_ROLE_WORKER ? recognise(v, channel, name) : NULL;
  if (volunteer == NULL) {
    shoal_net_close(v->net, channel->peer, "no volunteer of this name was given this job");
    return false;
  }
  if (is_connected(v, volunteer, channel))
    shoal_net_close(v->net, volunteer->v.chief, "it has connected again");
  volunteer->v.chief = channel->peer;
  channel->volunteer = volunteer->v.id;
  shoal_blob_release(m->payload);
  m->payload = shoal_blob_of(volunteer->v.name, strlen(volunteer->v.name));
  m->version = shoal_standings_meet(shoal_jobs_standings(v->jobs), channel->caller.token, volunteer->said,
                                    channel->address);
  return true;
}

/* What comes for the swarm; with HELLO the name of the volunteer, where it is known, and who that is: a
 * stranger is all that comes from its address. */
static void pass_to_swarm(shoal_volunteers *v, channel_entry *channel, shoal_message *m) {
  const char *name = NULL;
  uint64_t person = shoal_digest(channel->address, strlen(channel->address));
  if (m->kind == SHOAL_MSG_HELLO && channel->volunteer == 0) {
    size_t length;
    const char *text = shoal_node_payload(m, &length);
    shoal_swarm_hello hello;
    volunteer_entry *volunteer = shoal_swarm_hello_read(&hello, text, length, NULL) == SHOAL_OK
                                     ? recognise(v, channel, hello.name)
                                     : NULL;
    if (volunteer != NULL) {
      volunteer->v.swarm = channel->peer;
      channel->volunteer = volunteer->v.id;
      name = volunteer->v.name;
      person = shoal_standings_meet(shoal_jobs_standings(v->jobs), channel->caller.token, volunteer->said,
                                    channel->address);
    }
  }
  shoal_swarms_received(v->swarms, channel->peer, m, name, person);
}

static void see_passing(shoal_volunteers *v, const channel_entry *outside, const shoal_message *m) {
  shoal_open_job *job = shoal_jobs_find(v->jobs, outside->job);
  const volunteer_entry *volunteer = outside->volunteer != 0 ? find_entry(v, outside->volunteer) : NULL;
  if (job != NULL && volunteer != NULL)
    shoal_timeline_see(&job->timeline, volunteer->v.name, m, shoal_clock_wall_seconds());
}

static void pass_on(shoal_volunteers *v, channel_entry *channel, shoal_message *m) {
  bool watched = m->kind == SHOAL_MSG_LEASE || m->kind == SHOAL_MSG_DONE || m->kind == SHOAL_MSG_RETURN;
  if (m->kind == SHOAL_MSG_HELLO && channel->kind == OUTSIDE && channel->to_chief &&
      !see_hello(v, channel, m)) {
    shoal_message_release(m);
    return;
  }
  if (watched) {
    const channel_entry *outside = channel->kind == OUTSIDE ? channel : find_channel(v, channel->mate);
    if (outside != NULL) see_passing(v, outside, m);
  }
  shoal_net_send(v->net, channel->mate, *m);
}

static void open_inside(shoal_volunteers *v, channel_entry *outside) {
  const shoal_open_job *job = shoal_jobs_find(v->jobs, outside->job);
  if (job == NULL || job->port == 0) {
    shoal_net_close(v->net, outside->peer, "the job is not open");
    return;
  }
  char address[16];
  snprintf(address, sizeof address, "#:%u", job->port + (outside->to_chief ? 0u : 1u));
  const shoal_way way = {.wire = SHOAL_WIRE_RAW};
  uint64_t peer = shoal_net_dial(v->net, address, &way);
  channel_entry *inside = peer != 0 ? add_channel(v, peer, INSIDE) : NULL;
  if (inside == NULL) {
    if (peer != 0) shoal_net_close(v->net, peer, "no memory");
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
  volunteer_entry *volunteer = calloc(1, sizeof *volunteer);
  channel_entry *channel = volunteer != NULL ? add_channel(v, peer, CONTROL) : NULL;
  if (channel == NULL) {
    free(volunteer);
    return 503;
  }
  volunteer->v = (shoal_volunteer){.id = ++v->numbered, .peer = peer, .caller = *caller};
  volunteer->v.since = shoal_clock_wall_seconds();
  snprintf(volunteer->v.address, sizeof volunteer->v.address, "%s", address);
  set_state(v, volunteer, "idle");
  link_entry(v, volunteer);
  channel->volunteer = volunteer->v.id;
  channel->caller = *caller;
  return 0;
}

static int admit_to_job(shoal_volunteers *v, uint64_t peer, uint64_t id, const char *part,
                        const shoal_request *r, const shoal_caller *caller) {
  uint64_t claimed = 0;
  char number[24];
  bool to_chief = strcmp(part, "chief") == 0, to_data = strcmp(part, "data") == 0 && v->swarms != NULL;
  if (!to_chief && !to_data && strcmp(part, "ps/0") != 0) return 404;
  const shoal_open_job *job = shoal_jobs_find(v->jobs, id);
  if (job == NULL) return 404;
  if (shoal_query_value(r->query, "worker", number, sizeof number) &&
      !shoal_read_u64(number, strlen(number), &claimed))
    return 400;
  if (!shoal_access_may_see(caller, id, job->is_private, job->host)) return 403;
  if (job->kind == SHOAL_JOB_AGENT) return 404; /* actors ask over HTTP, and there is no data */
  if (!shoal_open_job_is_ready(job)) return 503;
  uint64_t private_job = job->is_private ? id : 0;
  int refused =
      to_data ? shoal_swarms_admit(v->swarms, peer, job->spec.data.bytes, private_job, r->address) : 0;
  if (refused != 0) return refused;
  channel_entry *channel = add_channel(v, peer, to_data ? DATA : OUTSIDE);
  if (channel == NULL) {
    if (to_data) shoal_swarms_closed(v->swarms, peer);
    return 503;
  }
  channel->job = id;
  channel->to_chief = to_chief;
  channel->claimed = claimed;
  channel->caller = *caller;
  snprintf(channel->address, sizeof channel->address, "%s", r->address);
  return 0;
}

/* "/jobs/7/chief" is job 7 and "chief"; NULL: it is no such path. */
static const char *part_of_job(const char *path, uint64_t *id) {
  static const char jobs[] = "/jobs/";
  if (strncmp(path, jobs, sizeof jobs - 1) != 0) return NULL;
  const char *number = path + sizeof jobs - 1, *slash = strchr(number, '/');
  return slash != NULL && shoal_read_u64(number, (size_t)(slash - number), id) ? slash + 1 : NULL;
}

int shoal_volunteers_admit(shoal_volunteers *v, uint64_t peer, const shoal_request *r,
                           const shoal_caller *caller) {
  uint64_t id;
  if (strcmp(r->path, "/work") == 0) return admit_control(v, peer, r->address, caller);
  const char *part = part_of_job(r->path, &id);
  return part != NULL ? admit_to_job(v, peer, id, part, r, caller) : 404;
}

void shoal_volunteers_opened(shoal_volunteers *v, uint64_t peer) {
  channel_entry *channel = find_channel(v, peer);
  if (channel != NULL && channel->kind == OUTSIDE) open_inside(v, channel);
}

void shoal_volunteers_received(shoal_volunteers *v, uint64_t peer, shoal_message *m) {
  channel_entry *channel = find_channel(v, peer);
  volunteer_entry *volunteer =
      channel != NULL && channel->kind == CONTROL ? find_entry(v, channel->volunteer) : NULL;
  if (channel != NULL && channel->kind == DATA) {
    pass_to_swarm(v, channel, m);
    return;
  }
  if (channel != NULL && channel->kind != CONTROL && channel->mate != 0) {
    pass_on(v, channel, m);
    return;
  }
  if (volunteer != NULL) hear_control(v, volunteer, m);
  shoal_message_release(m);
}

static void drop_entry(shoal_volunteers *v, volunteer_entry *volunteer) {
  unlink_entry(v, volunteer);
  if (volunteer->v.job != 0) shoal_jobs_lost(v->jobs, volunteer->v.job, volunteer->v.name);
  shoal_match_drop_worker(v->match, volunteer->v.id);
  if (volunteer->v.registered) v->calls.gone(v->calls.self, volunteer->v.id);
  free(volunteer);
  settle(v);
}

void shoal_volunteers_closed(shoal_volunteers *v, uint64_t peer, const char *reason) {
  channel_entry **at = place_of(v, peer), *channel = *at;
  if (channel == NULL) return;
  *at = channel->next;
  volunteer_entry *volunteer = channel->volunteer != 0 ? find_entry(v, channel->volunteer) : NULL;
  if (channel->kind == CONTROL && volunteer != NULL) drop_entry(v, volunteer);
  if (channel->kind == OUTSIDE && volunteer != NULL && volunteer->v.chief == peer) volunteer->v.chief = 0;
  if (channel->kind == DATA && volunteer != NULL && volunteer->v.swarm == peer) volunteer->v.swarm = 0;
  if (channel->kind == DATA) shoal_swarms_closed(v->swarms, peer);
  channel_entry *mate = channel->mate != 0 ? find_channel(v, channel->mate) : NULL;
  if (mate != NULL) {
    mate->mate = 0;
    shoal_net_close(v->net, mate->peer, reason);
  }
  free(channel);
}

/* ---- from time to time ---- */

static void measure(shoal_volunteers *v, volunteer_entry *volunteer, double now) {
  const shoal_open_job *job = shoal_jobs_find(v->jobs, volunteer->v.job);
  uint64_t parts = 0;
  for (uint32_t i = 0; job != NULL && i < job->peers_count; i++)
    if (strcmp(job->peers[i].name, volunteer->v.name) == 0) parts = job->peers[i].parts_done;
  if (parts < volunteer->v.seen_parts) volunteer->v.seen_parts = 0;
  uint64_t samples =
      job != NULL ? (uint64_t)((double)(parts - volunteer->v.seen_parts) * job->view.part_samples + 0.5) : 0;
  samples += volunteer->v.credited;
  volunteer->v.credited = 0;
  double rate = volunteer->v.seen_at > 0 ? (double)samples / (now - volunteer->v.seen_at) : 0;
  bool tells = rate != volunteer->v.samples_per_s;
  volunteer->v.seen_parts = parts;
  volunteer->v.seen_at = now;
  volunteer->v.samples += samples;
  volunteer->v.samples_per_s = rate;
  if (tells) changed(v, volunteer);
}

void shoal_volunteers_credit(shoal_volunteers *v, uint64_t job, const char *name, uint64_t samples) {
  for (volunteer_entry *volunteer = v->first; volunteer != NULL; volunteer = volunteer->next)
    if (volunteer->v.job == job && strcmp(volunteer->v.name, name) == 0) {
      volunteer->v.credited += samples;
      return;
    }
}

const shoal_volunteer *shoal_volunteers_recognise(shoal_volunteers *v, uint64_t job, uint64_t number,
                                                  const char *name, const char *address,
                                                  const shoal_caller *caller) {
  channel_entry asks = {.job = job, .claimed = number, .caller = *caller};
  snprintf(asks.address, sizeof asks.address, "%s", address);
  volunteer_entry *claimed = number != 0 ? find_entry(v, number) : NULL;
  if (claimed != NULL && fits(claimed, &asks, name)) return &claimed->v;
  for (const volunteer_entry *volunteer = v->first; volunteer != NULL; volunteer = volunteer->next)
    if (fits(volunteer, &asks, name)) return &volunteer->v;
  return NULL;
}

void shoal_volunteers_close_token(shoal_volunteers *v, uint64_t token) {
  for (size_t b = 0; b < BUCKETS; b++)
    for (const channel_entry *channel = v->channels[b]; channel != NULL; channel = channel->next)
      if (channel->kind != INSIDE && token != 0 && channel->caller.token == token)
        shoal_net_close(v->net, channel->peer, "its token was revoked");
}

static void close_expired(shoal_volunteers *v, double wall) {
  for (size_t b = 0; b < BUCKETS; b++)
    for (const channel_entry *channel = v->channels[b]; channel != NULL; channel = channel->next)
      if (channel->kind != INSIDE && channel->caller.expires > 0 && wall >= channel->caller.expires)
        shoal_net_close(v->net, channel->peer, "its token has expired");
}

double shoal_volunteers_tick(shoal_volunteers *v, double now) {
  if (now < v->next_tick) return v->next_tick;
  bool rates = now >= v->next_rates;
  v->untold = false;
  for (volunteer_entry *volunteer = v->first, *next; volunteer != NULL; volunteer = next) {
    next = volunteer->next;
    double heard = shoal_net_heard(v->net, volunteer->v.peer);
    if (heard > 0 && now - heard > SILENT_S)
      shoal_net_close(v->net, volunteer->v.peer, "silent for 30 seconds");
    if (now - volunteer->beaten_at >= BEAT_S) say(v, volunteer, SHOAL_MSG_BEAT, NULL);
    if (volunteer->v.registered && !volunteer->v.told) tell_assignment(v, volunteer);
    v->untold |= !volunteer->v.told;
    if (rates && volunteer->v.registered) measure(v, volunteer, now);
  }
  if (rates) {
    close_expired(v, shoal_clock_wall_seconds());
    v->next_rates = now + RATE_S;
  }
  v->next_tick = now + TICK_S;
  return v->next_tick;
}

/* ---- for the API ---- */

uint32_t shoal_volunteers_count(const shoal_volunteers *v, uint32_t *idle, uint32_t *paused) {
  uint32_t count = 0;
  *idle = 0;
  *paused = v->paused;
  for (const volunteer_entry *volunteer = v->first; volunteer != NULL; volunteer = volunteer->next) {
    if (!volunteer->v.registered) continue;
    count++;
    *idle += strcmp(volunteer->v.state, "idle") == 0;
  }
  return count;
}

const shoal_volunteer *shoal_volunteers_next(const shoal_volunteers *v, const shoal_volunteer *after) {
  const volunteer_entry *volunteer =
      after == NULL ? v->first
                    : ((const volunteer_entry *)((const char *)after - offsetof(volunteer_entry, v)))->next;
  while (volunteer != NULL && !volunteer->v.registered) volunteer = volunteer->next;
  return volunteer != NULL ? &volunteer->v : NULL;
}

const shoal_volunteer *shoal_volunteers_find(const shoal_volunteers *v, uint64_t id) {
  const volunteer_entry *volunteer = find_entry(v, id);
  return volunteer != NULL && volunteer->v.registered ? &volunteer->v : NULL;
}

void shoal_volunteers_write_swarm(const shoal_volunteers *v, uint64_t id, shoal_json *json) {
  const shoal_open_job *job = shoal_jobs_find(v->jobs, id);
  const char *set = job != NULL ? job->spec.data.bytes : "";
  shoal_swarms_write(v->swarms, set, job != NULL && job->is_private ? id : 0, json);
}

void shoal_volunteers_write(const shoal_volunteers *v, const shoal_volunteer *w, bool with_address,
                            shoal_json *json) {
  const shoal_open_job *job = w->job != 0 ? shoal_jobs_find(v->jobs, w->job) : NULL;
  double heard = shoal_net_heard(v->net, w->peer);
  shoal_json_open(json, NULL, '{');
  shoal_json_int(json, "id", (int64_t)w->id);
  shoal_json_text(json, "name", w->name);
  if (with_address) shoal_json_text(json, "address", w->address);
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
  /* What was measured last is true no more of one that rests. */
  shoal_json_real(json, "samples_per_s", strcmp(w->state, "computing") == 0 ? w->samples_per_s : 0);
  shoal_json_real(json, "lag_s", heard > 0 ? shoal_clock_seconds() - heard : 0);
  shoal_json_int(json, "samples", (int64_t)w->samples);
  shoal_json_close(json, '}');
}

/* ---- create and destroy ---- */

shoal_status shoal_volunteers_create(shoal_volunteers **out, uint32_t max, shoal_net *net, shoal_jobs *jobs,
                                     const shoal_volunteers_calls *calls, shoal_error *err) {
  shoal_volunteers *v = calloc(1, sizeof *v);
  if (v == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  v->net = net;
  v->jobs = jobs;
  v->max = max;
  v->calls = *calls;
  const shoal_match_config config = {.workers_max = max, .jobs_max = SHOAL_JOBS_OPEN_MAX};
  shoal_status status = shoal_match_create(&v->match, &config, err);
  if (status != SHOAL_OK) {
    free(v);
    return status;
  }
  *out = v;
  return SHOAL_OK;
}

/* The number that a volunteer of this name has for chiefs; 0: there is none. */
static uint64_t standing_of(shoal_volunteers *v, const char *name) {
  for (const volunteer_entry *e = v->first; e != NULL; e = e->next)
    if (strcmp(e->v.name, name) == 0)
      return shoal_standings_meet(shoal_jobs_standings(v->jobs), e->v.caller.token, e->said, e->v.address);
  return 0;
}

void shoal_volunteers_blame(shoal_volunteers *v, const char *who, const char *by) {
  uint64_t accused = standing_of(v, who), accuser = standing_of(v, by);
  if (accused != 0 && accuser != 0) shoal_jobs_blame(v->jobs, accused, accuser);
}

void shoal_volunteers_use_swarms(shoal_volunteers *v, shoal_swarms *swarms) { v->swarms = swarms; }

void shoal_volunteers_forget_set(shoal_volunteers *v, const char *set) {
  if (v->swarms != NULL) shoal_swarms_forget(v->swarms, set);
}

bool shoal_volunteers_are_at(const shoal_volunteers *v, uint64_t job, const char *name) {
  for (const volunteer_entry *one = v->first; one != NULL; one = one->next)
    if (one->v.registered && one->v.job == job && strcmp(one->v.name, name) == 0) return true;
  return false;
}

void shoal_volunteers_destroy(shoal_volunteers *v) {
  if (v == NULL) return;
  for (size_t b = 0; b < BUCKETS; b++)
    for (channel_entry *channel = v->channels[b], *next; channel != NULL; channel = next) {
      next = channel->next;
      free(channel);
    }
  for (volunteer_entry *volunteer = v->first, *next; volunteer != NULL; volunteer = next) {
    next = volunteer->next;
    free(volunteer);
  }
  shoal_match_destroy(v->match);
  free(v);
}
