/* volunteer.c: see volunteer.h.
 *
 * Three things decide what this machine does: the server's last ASSIGN (`assigned`), its owner's rules
 * (`rest`), and how the last try went (`not_before`). Every turn of the loop compares that with the work
 * that is there: one for another job is told to leave, one that is over is taken away, one that is wanted is
 * started. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/human.h"
#include "base/json.h"
#include "base/json_at.h"
#include "base/version.h"
#include "cluster/node.h"
#include "kernels/kernels.h"
#include "wire/line.h"
#include "work/turn.h"

enum { NAME_MAX_BYTES = 128, CONNECTIONS = 2 };
static const double TURN_S = 0.1, LOOK_S = 1;
static const double FIRST_RETRY_S = 2, LONGEST_RETRY_S = 60;
static const double FLUSH_S = 0.3, PATIENCE_S = 2; /* at the end: for the last words, and for the last unit */

typedef struct work {
  const shoal_work_config *config;
  shoal_net *net;
  shoal_line server;
  char address[SHOAL_LINK_ADDRESS_MAX + 8];
  shoal_way way;
  shoal_told missing; /* why the server is not there */
  bool refused, leaves;
  char refusal[SHOAL_WORK_TEXT_MAX];

  /* What the server wants. */
  uint64_t assigned, number; /* the job, and what the server calls this one */
  shoal_job_work_kind kind;  /* what the job is */
  char job_name[NAME_MAX_BYTES], host[NAME_MAX_BYTES], data[NAME_MAX_BYTES], text[SHOAL_WORK_TEXT_MAX];
  char prepared[SHOAL_WORK_TEXT_MAX]; /* what is said of a job until it is computed for */
  uint64_t announced;                 /* the job that a note was made of last: the server may say it again */

  /* What its owner wants. */
  shoal_work_rest rest;

  /* What is being done. */
  shoal_job_work *job_work;
  uint64_t job_work_id;
  shoal_worker_count before; /* what was done when the job was first worked for */
  bool leaving;              /* the work for the job was told to leave */
  shoal_job_work_view view;
  uint64_t notes_told;
  double not_before, retry_s; /* after a failure */
  uint64_t finished;          /* the job that came to its end: not again unless it is assigned again */
  bool over;                  /* --once: it was the one */

  shoal_worker_count count;
  uint64_t from_server, from_peers, to_peers; /* of jobs that are over */
  shoal_work_rate rate;

  /* What the server was told. */
  shoal_work_state told;
  char told_text[SHOAL_WORK_TEXT_MAX];
} work;

const char *shoal_work_state_name(shoal_work_state state) {
  static const char *const names[SHOAL_WORK_STATES] = {"away", "idle", "fetching", "computing", "paused"};
  return names[state];
}

__attribute__((format(printf, 2, 3))) static void tell(work *w, const char *format, ...) {
  char text[2 * SHOAL_WORK_TEXT_MAX];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  w->config->notes(w->config->self, text);
}

/* ---- what it says to the server ---- */

static void say(work *w, shoal_message_kind kind, const shoal_text *text) {
  if (!w->server.open || text->failed) return;
  w->server.beat.said = shoal_clock_seconds();
  shoal_net_send(w->net, w->server.peer,
                 (shoal_message){.kind = kind, .payload = shoal_blob_of(text->bytes, text->length)});
}

static void say_register(work *w) {
  const shoal_work_config *c = w->config;
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "name", c->name);
  shoal_json_text(&json, "version", SHOAL_VERSION);
  shoal_json_int(&json, "cores", c->cores);
  shoal_json_int(&json, "threads", c->threads);
  shoal_json_int(&json, "memory_bytes", (int64_t)c->memory_bytes);
  shoal_json_text(&json, "kernels", shoal_kernels_get()->name);
  shoal_json_real(&json, "speed", c->speed);
  if (c->job != 0) shoal_json_int(&json, "job", (int64_t)c->job);
  if (c->host) shoal_json_text(&json, "host", c->host);
  shoal_json_close(&json, '}');
  say(w, SHOAL_MSG_REGISTER, &text);
  shoal_text_release(&text);
}

static shoal_work_state state_of(const work *w) {
  if (w->rest.reason != SHOAL_MANNERS_WORKS) return SHOAL_WORK_PAUSED;
  if (w->leaving && w->job_work) return SHOAL_WORK_IDLE; /* as good as */
  if (w->job_work && w->view.phase == SHOAL_JOB_WORK_FETCHING) return SHOAL_WORK_FETCHING;
  if (w->job_work && w->view.phase == SHOAL_JOB_WORK_COMPUTING) return SHOAL_WORK_COMPUTING;
  return w->server.open ? SHOAL_WORK_IDLE : SHOAL_WORK_AWAY;
}

static const char *text_of_state(const work *w) {
  if (w->rest.reason != SHOAL_MANNERS_WORKS) return w->rest.text;
  bool begins = state_of(w) == SHOAL_WORK_IDLE && w->assigned != 0 && w->prepared[0] != 0;
  return begins ? w->prepared : w->text;
}

/* When it has changed; `again` after a new connection. */
static void say_report(work *w, bool again) {
  shoal_work_state state = state_of(w);
  const char *words = text_of_state(w);
  if (!w->server.open || state == SHOAL_WORK_AWAY) return;
  if (!again && state == w->told && strcmp(words, w->told_text) == 0) return;
  w->told = state;
  snprintf(w->told_text, sizeof w->told_text, "%s", words);
  shoal_text text;
  shoal_json json;
  shoal_json_begin(&json, &text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "state", shoal_work_state_name(state));
  shoal_json_text(&json, "text", words);
  shoal_json_close(&json, '}');
  say(w, SHOAL_MSG_REPORT, &text);
  shoal_text_release(&text);
}

/* ---- what the server says ---- */

static shoal_job_work_kind kind_of(const cJSON *json) {
  const cJSON *kind = cJSON_GetObjectItemCaseSensitive(json, "kind");
  const char *word = cJSON_IsString(kind) ? kind->valuestring : "";
  if (strcmp(word, "agent") == 0) return SHOAL_JOB_WORK_AGENT;
  return strcmp(word, "search") == 0 ? SHOAL_JOB_WORK_SEARCH : SHOAL_JOB_WORK_TRAIN;
}

static shoal_worker_count count_now(const work *w) {
  return (shoal_worker_count){.units = __atomic_load_n(&w->count.units, __ATOMIC_RELAXED),
                              .samples = __atomic_load_n(&w->count.samples, __ATOMIC_RELAXED)};
}

static void hear_assign(work *w, const shoal_message *m) {
  static const double whole_max = 9007199254740992.0;
  size_t length;
  const char *text = shoal_node_payload(m, &length);
  cJSON *json = shoal_utf8_valid(text, length) ? cJSON_ParseWithLength(text, length) : NULL;
  const cJSON *job = cJSON_GetObjectItemCaseSensitive(json, "job");
  double number = cJSON_IsNumber(job) ? job->valuedouble : -1;
  if (!(number >= 0 && number <= whole_max) || floor(number) != number) {
    cJSON_Delete(json);
    shoal_net_close(w->net, w->server.peer, "an ASSIGN that cannot be read");
    return;
  }
  const cJSON *called = cJSON_GetObjectItemCaseSensitive(json, "worker");
  bool has_number = cJSON_IsNumber(called) && called->valuedouble >= 0 && called->valuedouble <= whole_max;
  w->assigned = (uint64_t)number;
  w->number = has_number ? (uint64_t)called->valuedouble : 0;
  w->finished = 0;
  w->not_before = 0;
  w->retry_s = FIRST_RETRY_S;
  shoal_plain_at(json, "name", w->job_name, sizeof w->job_name);
  shoal_plain_at(json, "host", w->host, sizeof w->host);
  shoal_plain_at(json, "data", w->data, sizeof w->data);
  w->kind = kind_of(json);
  shoal_plain_at(json, "text", w->text, sizeof w->text);
  snprintf(w->prepared, sizeof w->prepared, "%s is being prepared", w->job_name[0] ? w->job_name : "the job");
  cJSON_Delete(json);
  if (w->assigned == 0 || w->assigned == w->announced) return; /* why there is none is shown all the time */
  w->announced = w->assigned;
  tell(w, "job %" PRIu64 ", %s, for %s", w->assigned, w->job_name[0] ? w->job_name : "without a name",
       w->host[0] ? w->host : "somebody");
}

static void opened(void *self, uint64_t peer, const char *address) {
  (void)address;
  work *w = self;
  if (!shoal_line_opened(&w->server, peer, shoal_clock_seconds())) return;
  w->missing = (shoal_told){0};
  tell(w, "connected to %s", w->config->link->address);
  say_register(w);
  say_report(w, true);
}

static void received(void *self, uint64_t peer, shoal_message *m) {
  work *w = self;
  if (shoal_line_heard(&w->server, peer, shoal_clock_seconds()) && m->kind == SHOAL_MSG_ASSIGN)
    hear_assign(w, m);
  shoal_message_release(m);
}

/* What a status means for a volunteer; NULL: no more than it says. */
static const char *meaning_of(int code) {
  if (code == 401) return "the invitation was withdrawn or has expired; ask for a new link";
  if (code == 403) return "this link does not let one work; ask for an invitation for volunteers";
  if (code == 404) return "there is no shoal server at this address; ask for a new link";
  if (code == 429) return "too many wrong tokens came from this address";
  return NULL;
}

static void closed(void *self, uint64_t peer, const char *reason) {
  work *w = self;
  double now = shoal_clock_seconds();
  bool was_open = w->server.open;
  if (!shoal_line_closed(&w->server, peer, now)) return;
  if (w->leaves) return;
  int code = shoal_net_refusal(reason);
  if (meaning_of(code)) reason = meaning_of(code);
  if (shoal_net_refusal_is_final(code)) {
    w->refused = true;
    snprintf(w->refusal, sizeof w->refusal, "%s", reason);
  } else if (was_open) {
    tell(w, "lost the server: %s; trying again", reason);
  } else {
    const shoal_notes notes = {.self = w->config->self, .note = w->config->notes};
    shoal_line_say_missing("the server", reason, &notes, &w->missing, now);
  }
}

/* ---- what it does ---- */

static void look_around(work *w, double now) {
  char note[SHOAL_WORK_TEXT_MAX];
  if (shoal_work_rest_look(&w->rest, w->config, LOOK_S, now, note)) tell(w, "%s", note);
}

static void start_job_work(work *w, uint64_t job, double now) {
  const shoal_work_config *c = w->config;
  const shoal_job_work_config config = {.link = c->link,
                                        .job = job,
                                        .number = w->number,
                                        .worker = c->name,
                                        .kind = w->kind,
                                        .data = w->data,
                                        .threads = c->threads,
                                        .cache = c->cache,
                                        .data_dir = c->data_dir,
                                        .cache_bytes_max = c->cache_bytes_max,
                                        .alone = c->alone,
                                        .all_data = c->all_data,
                                        .count = &w->count};
  shoal_error err;
  w->view = (shoal_job_work_view){0};
  w->notes_told = 0;
  w->leaving = false;
  if (job != w->job_work_id) w->before = count_now(w);
  w->job_work_id = job;
  if (shoal_job_work_start(&w->job_work, &config, &err) == SHOAL_OK) {
    shoal_job_work_look(w->job_work, &w->view);
    return;
  }
  tell(w, "%s; trying again", err.text);
  w->not_before = now + w->retry_s;
}

/* How its data came, and went on. */
static void count_data(work *w) {
  const shoal_job_work_view *v = &w->view;
  w->from_server += v->from_server;
  w->from_peers += v->from_peers;
  w->to_peers += v->to_peers;
  if (v->from_server + v->from_peers + v->to_peers > 0)
    tell(w, "data: %s from the server, %s from other volunteers, %s given to them",
         shoal_human_bytes((double)v->from_server).text, shoal_human_bytes((double)v->from_peers).text,
         shoal_human_bytes((double)v->to_peers).text);
  w->view.from_server = w->view.from_peers = w->view.to_peers = 0;
}

/* A short job is over before its speed could be told. */
static void tell_over(work *w) {
  const shoal_worker_count all = count_now(w);
  uint64_t units = all.units - w->before.units, samples = all.samples - w->before.samples;
  if (units == 0)
    tell(w, "job %" PRIu64 " is over", w->job_work_id);
  else
    tell(w, "job %" PRIu64 " is over: %s unit%s, %s samples", w->job_work_id, shoal_human_count(units).text,
         units == 1 ? "" : "s", shoal_human_count(samples).text);
  w->before = all; /* it may be resumed */
}

static void take_away(work *w, double now) {
  shoal_job_work_end(w->job_work);
  w->job_work = NULL;
  count_data(w);
  /* That the job is over may come from its chief, or as another ASSIGN before that. */
  if (w->view.job_over) {
    tell_over(w);
    w->over = w->config->once;
  }
  if (w->leaving) return;
  if (w->view.status == SHOAL_OK) {
    w->finished = w->job_work_id;
    snprintf(w->text, sizeof w->text, "%s", SHOAL_WORK_JOB_OVER);
    w->prepared[0] = 0;
    return;
  }
  w->prepared[0] = 0; /* what went wrong says more */
  shoal_text_plain(w->text, sizeof w->text, w->view.error.text, strlen(w->view.error.text));
  if (w->view.status == SHOAL_UNSUPPORTED) { /* and will be tomorrow */
    w->finished = w->job_work_id;
    tell(w, "job %" PRIu64 ": %s", w->job_work_id, w->view.error.text);
    return;
  }
  w->not_before = now + w->retry_s;
  tell(w, "job %" PRIu64 ": %s; trying again in %.0f s", w->job_work_id, w->view.error.text, w->retry_s);
  w->retry_s = fmin(2 * w->retry_s, LONGEST_RETRY_S);
}

static void follow(work *w, double now) {
  bool free_to = w->rest.reason == SHOAL_MANNERS_WORKS && w->assigned != w->finished && now >= w->not_before;
  uint64_t wanted = free_to ? w->assigned : 0;
  if (w->job_work) {
    shoal_job_work_look(w->job_work, &w->view);
    if (w->view.notes != w->notes_told) tell(w, "%s", w->view.note);
    w->notes_told = w->view.notes;
    if (w->job_work_id != wanted && !w->leaving) {
      w->leaving = true;
      shoal_job_work_leave(w->job_work);
    }
    if (w->view.phase == SHOAL_JOB_WORK_OVER) take_away(w, now);
  } else if (wanted != 0) {
    start_job_work(w, wanted, now);
  }
}

static void show(work *w, double now) {
  shoal_work_rate_measure(&w->rate, &w->count, now);
  const shoal_worker_count done = count_now(w);
  const shoal_work_view view = {.state = state_of(w),
                                .text = text_of_state(w),
                                .connected = w->server.open,
                                .leaves = w->leaves,
                                .job = w->job_work ? w->job_work_id : 0,
                                .job_name = w->job_name,
                                .host = w->host,
                                .bytes_done = w->view.bytes_done,
                                .bytes_all = w->view.bytes_all,
                                .is_here = w->view.is_here,
                                .from_server = w->from_server + w->view.from_server,
                                .from_peers = w->from_peers + w->view.from_peers,
                                .to_peers = w->to_peers + w->view.to_peers,
                                .units = done.units,
                                .samples = done.samples,
                                .samples_per_s = w->rate.samples_per_s};
  w->config->shows(w->config->self, &view, now);
}

static bool stops(const work *w) { return __atomic_load_n(w->config->stop, __ATOMIC_RELAXED) != 0; }

/* Says goodbye, and gives the unit that is being computed a moment. What takes longer is given up: its lease
 * goes back to the job when this process ends. */
static void leave(work *w) {
  w->leaves = true;
  if (w->job_work) shoal_job_work_leave(w->job_work);
  if (w->server.peer != 0) shoal_net_close(w->net, w->server.peer, "leaving");
  show(w, shoal_clock_seconds());
  double until = shoal_clock_seconds() + FLUSH_S;
  while (w->server.peer != 0 && shoal_clock_seconds() < until) shoal_net_run(w->net, TURN_S);
  until = shoal_clock_seconds() + PATIENCE_S - FLUSH_S;
  while (w->job_work && shoal_clock_seconds() < until) {
    shoal_job_work_look(w->job_work, &w->view);
    if (w->view.phase == SHOAL_JOB_WORK_OVER) {
      shoal_job_work_end(w->job_work);
      w->job_work = NULL;
      count_data(w);
    } else {
      shoal_clock_sleep(0.02);
    }
  }
  show(w, shoal_clock_seconds());
}

shoal_status shoal_work_run(const shoal_work_config *config, shoal_error *err) {
  const shoal_link *link = config->link;
  work w = {.config = config,
            .retry_s = FIRST_RETRY_S,
            .way = {.wire = SHOAL_WIRE_RAW,
                    .tls = link->tls,
                    .fingerprint = link->fingerprint[0] ? link->fingerprint : NULL,
                    .token = link->token[0] ? link->token : NULL}};
  snprintf(w.address, sizeof w.address, "%s/work", link->address);
  const shoal_net_calls calls = {&w, opened, received, closed, NULL};
  shoal_net_config net = shoal_node_net(&calls, CONNECTIONS, NULL, NULL);
  net.payload_max = SHOAL_TEXT_PAYLOAD_MAX;
  shoal_status status = shoal_net_create(&w.net, &net, err);
  if (status != SHOAL_OK) return status;
  shoal_line_init(&w.server, w.address, shoal_clock_seconds());
  while (!stops(&w) && !w.over && !w.refused) {
    double now = shoal_clock_seconds();
    look_around(&w, now);
    follow(&w, now);
    say_report(&w, false);
    show(&w, now);
    shoal_line_tick(&w.server, w.net, &w.way, now);
    shoal_net_run(w.net, TURN_S);
  }
  leave(&w);
  /* Work that still computes uses this function's memory: the process ends first. */
  if (w.job_work)
    config->notes(config->self, "leaves in the middle of a unit; somebody else will compute it");
  config->left(config->self);
  if (w.job_work) {
    fflush(NULL);
    _exit(w.refused ? EXIT_FAILURE : EXIT_SUCCESS);
  }
  shoal_net_destroy(w.net);
  if (w.refused) return shoal_fail(err, SHOAL_INVALID, "%s: %s", link->address, w.refusal);
  return SHOAL_OK;
}
