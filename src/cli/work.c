/* work.c: shoal work: lends this machine to the jobs of a server.
 *
 * What it does, for whom and within which limits is said first; then work.h does it, and this file shows
 * it. */
#include "work/volunteer.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "base/json_at.h"
#include "base/sandbox.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/queue_url.h"
#include "cli/remote.h"
#include "cli/speed.h"
#include "cli/stop.h"
#include "data/chunk_store.h"
#include "data/named.h"
#include "kernels/kernels.h"
#include "server/access.h"
#include "server/spec.h"
#include "wire/fetch.h"
#include "work/queue_volunteer.h"

enum { NAME_MAX_BYTES = SHOAL_VOLUNTEER_SAID_MAX, HOST_NAME_MAX_BYTES = 256, SERVER_NAME_MAX = 80 };
static const double REDRAW_S = 0.2, REPEAT_S = 60; /* on a terminal, and elsewhere */
static const uint64_t CACHE_BYTES = (uint64_t)10 << 30;
static const double USUAL_LOAD = 0.75; /* of the processors: others that keep so many busy are at work */
static const double CONTACT_S = 10;

typedef struct work_options {
  const char *link, *name, *host, *memory, *hours, *cache, *cache_size, *token_file, *data_dir;
  uint64_t job, cores;
  double pause_load; /* 0: not given */
  bool no_pause, on_battery, no_peers, all_data, yes, json, quiet, once;
} work_options;

static bool parse(work_options *o, int argc, char **argv, int *status) {
  const shoal_option options[] = {
      {.name = "What to work for"},
      {.name = "name",
       .value = "NAME",
       .text = &o->name,
       .help = "what others call this machine; its host name by default"},
      {.name = "job",
       .value = "ID",
       .whole = &o->job,
       .whole_min = 1,
       .whole_max = INT64_MAX,
       .help = "this job alone"},
      {.name = "host", .value = "NAME", .text = &o->host, .help = "jobs of this host alone"},
      {.name = "once", .flag = &o->once, .help = "leave when the first job is over"},
      {.name = "token-file",
       .value = "FILE",
       .text = &o->token_file,
       .help = "where the token is, for a link without one"},

      {.name = "Limits"},
      {.name = "cores",
       .value = "N",
       .whole = &o->cores,
       .whole_min = 1,
       .whole_max = SHOAL_THREADS_MAX,
       .help = "threads that compute; by default one for every processor"},
      {.name = "memory",
       .value = "SIZE",
       .text = &o->memory,
       .help = "at most so much, such as 512M or 4G; by default half of what there is"},
      {.name = "hours",
       .value = "FROM-TO",
       .text = &o->hours,
       .help = "work at these times of the day only, such as 22-7 or 8:30-17"},
      {.name = "pause-load",
       .value = "X",
       .real = &o->pause_load,
       .real_min = 0.01,
       .real_max = 1e6,
       .help =
           "pause while other programs keep more than X processors busy; by default three quarters of them"},
      {.name = "no-pause",
       .flag = &o->no_pause,
       .help = "do not make way for other programs: neither pause nor take the lowest priority"},
      {.name = "on-battery", .flag = &o->on_battery, .help = "work on the battery, too"},
      {.name = "cache",
       .value = "FOLDER",
       .text = &o->cache,
       .help = "where data is kept; ~/.cache/shoal by default. Nothing is written elsewhere"},
      {.name = "cache-size",
       .value = "SIZE",
       .text = &o->cache_size,
       .help = "at most so much, such as 2G; 10G by default. What was not used for longest is removed"},
      {.name = "data-dir",
       .value = "FOLDER",
       .text = &o->data_dir,
       .help = "where named sets are kept that need not be fetched; ~/.local/share/shoal by default"},

      {.name = "Data"},
      {.name = "no-peers",
       .flag = &o->no_peers,
       .help =
           "get data from the server alone; by default also from other volunteers, and it is given to them"},
      {.name = "all-data",
       .flag = &o->all_data,
       .help = "fetch all of a job's data, not only what is needed here"},

      {.name = "Output"},
      {.name = "yes",
       .flag = &o->yes,
       .help = "begin without asking; needed without a terminal, and with --json or --quiet"},
      {.name = "json", .flag = &o->json, .help = "print events as JSON lines"},
      {.name = "quiet", .flag = &o->quiet, .help = "print nothing but errors"},
  };
  const shoal_usage usage = {
      .command = "work",
      .synopses = (const char *[]){"[LINK] [OPTION...]", "amqp://USER:PASSWORD@HOST/VHOST [OPTION...]", NULL},
      .about =
          "Lends this machine to trainings and searches on a server, with an invitation link that somebody "
          "gave you. It "
          "computes what it is asked for, in a sandbox, with the lowest priority, and steps aside while "
          "you use the machine. Ctrl-C leaves in order; twice, at once. With the URL of a RabbitMQ broker in "
          "place of the link it computes units of searches, of all servers that were started with --queue "
          "and that URL. Without a link it uses the one in the environment variable SHOAL_LINK.",
      .operand = "LINK",
      .operands_min = shoal_link_usual() ? 0 : 1,
      .operands_max = 1,
      .options = options,
      .options_count = sizeof options / sizeof options[0],
      .examples = "  shoal work 'http://192.168.1.5:8080/#t=TOKEN'\n"
                  "  shoal work http://127.0.0.1:8080 --cores 1 --memory 1G\n"
                  "  shoal work http://127.0.0.1:8080 --hours 22-7 --host alice\n"
                  "  shoal work amqp://shoal:PASSWORD@10.0.0.5/shoal --yes\n",
  };
  shoal_operands operands;
  if (!shoal_cli_parse(&usage, argc, argv, &operands, status)) return false;
  o->link = operands.count > 0 ? operands.at[0] : shoal_link_usual();
  return true;
}

/* ---- everything that is known before it begins ---- */

typedef struct session {
  work_options o;
  shoal_link link;
  char *queue;                       /* the broker's URL instead, or NULL */
  char queue_place[SERVER_NAME_MAX]; /* the same without its password */
  shoal_work_config config;
  char name[NAME_MAX_BYTES];
  char *cache;
  char sandbox[SHOAL_SANDBOX_TEXT_MAX];
  char server_name[SERVER_NAME_MAX]; /* "": it has not answered yet */
  bool limits_memory;
  /* What is shown. */
  FILE *text; /* for people; NULL: nothing */
  bool is_terminal, drawn;
  double started, shown_at;
  shoal_work_state shown_state;
  char shown_text[SHOAL_WORK_TEXT_MAX];
  shoal_work_view last;
} session;

static void choose_name(session *s) {
  char name[HOST_NAME_MAX_BYTES] = "";
  if (!s->o.name) gethostname(name, sizeof name - 1);
  name[strcspn(name, ".")] = 0;
  const char *from = s->o.name ? s->o.name : name[0] ? name : "worker";
  shoal_spec_name_shorten(s->name, sizeof s->name, from, strlen(from));
}

static shoal_status read_limits(session *s, shoal_error *err) {
  const work_options *o = &s->o;
  shoal_work_config *c = &s->config;
  shoal_status status = SHOAL_OK;
  c->cores = shoal_cli_threads();
  c->threads = o->cores > 0 ? (uint32_t)o->cores : c->cores;
  if (o->cores > c->cores) {
    shoal_cli_warn("work", "--cores %" PRIu64 ": this machine has %u; %u are used", o->cores, c->cores,
                   c->cores);
    c->threads = c->cores;
  }
  c->memory_bytes = shoal_manners_memory() / 2;
  c->cache_bytes_max = CACHE_BYTES;
  s->limits_memory = o->memory != NULL;
  if (o->memory) status = shoal_manners_read_memory(o->memory, &c->memory_bytes, err);
  if (status == SHOAL_OK && o->cache_size) {
    status = shoal_manners_read_memory(o->cache_size, &c->cache_bytes_max, err);
    if (status != SHOAL_OK)
      shoal_fail(err, status, "--cache-size: '%.40s' is no size; it takes 64M or more, such as 2G",
                 o->cache_size);
  }
  if (status == SHOAL_OK && o->hours) status = shoal_manners_read_hours(o->hours, &c->rules, err);
  if (status != SHOAL_OK) return status;
  if (o->name && strlen(o->name) >= NAME_MAX_BYTES)
    return shoal_fail(err, SHOAL_INVALID, "--name: '%.80s' is too long; it takes at most %d bytes", o->name,
                      NAME_MAX_BYTES - 1);
  if (o->host && strlen(o->host) >= SHOAL_CALLER_NAME_MAX)
    return shoal_fail(err, SHOAL_INVALID, "--host: '%.80s' is too long; it takes at most %d bytes", o->host,
                      SHOAL_CALLER_NAME_MAX - 1);
  if (o->no_pause && o->pause_load > 0)
    return shoal_fail(err, SHOAL_INVALID, "--pause-load and --no-pause cannot both hold; give one of them");
  if (s->queue && (o->job != 0 || o->host || o->token_file))
    return shoal_fail(err, SHOAL_INVALID,
                      "--job, --host and --token-file are for a server's link, not for a queue");
  if (o->job != 0 && o->host)
    return shoal_fail(err, SHOAL_INVALID, "--job and --host: a job has its host; give one of them");
  c->rules.on_battery = o->on_battery;
  if (!o->no_pause) c->rules.pause_load = o->pause_load > 0 ? o->pause_load : USUAL_LOAD * c->cores;
  return SHOAL_OK;
}

/* Better now than when the first job comes. */
static shoal_status check_cache(const char *folder, shoal_error *err) {
  shoal_text probe;
  shoal_text_init(&probe);
  shoal_text_addf(&probe, "%s/probe", folder);
  shoal_writer *writer;
  shoal_status status = probe.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory")
                                     : shoal_writer_create(&writer, probe.bytes, err);
  if (status == SHOAL_OK)
    shoal_writer_abandon(writer);
  else
    shoal_error_prefix(err, "data cannot be kept in %s; give another folder with --cache: ", folder);
  shoal_text_release(&probe);
  return status;
}

static shoal_status prepare(session *s, shoal_error *err) {
  s->cache = s->o.cache ? strdup(s->o.cache) : shoal_chunk_cache();
  if (!s->cache)
    return shoal_fail(err, SHOAL_NOT_FOUND, "there is no home folder to keep data in; give one with --cache");
  choose_name(s);
  s->config.link = &s->link;
  s->config.queue = s->queue;
  s->config.name = s->name;
  s->config.job = s->o.job;
  s->config.host = s->o.host;
  s->config.cache = s->cache;
  s->config.data_dir = s->o.data_dir;
  s->config.once = s->o.once;
  s->config.alone = s->o.no_peers;
  s->config.all_data = s->o.all_data;
  shoal_status status = shoal_make_folder(s->cache, err);
  return status == SHOAL_OK ? check_cache(s->cache, err) : status;
}

/* From here on this process can do little more than compute and talk to the server. */
static void withdraw(session *s) {
  const char *mine = getenv("SHOAL_DATA");
  char *data = shoal_named_folder(s->o.data_dir);
  const char *reads[] = {"/usr",         "/lib", "/lib64", "/etc", "/run", "/proc", "/sys",
                         "/dev/urandom", "data", s->cache, NULL,   NULL,   NULL};
  size_t count = 0;
  while (reads[count]) count++;
  if (data) reads[count++] = data;
  if (mine && mine[0]) reads[count] = mine;
  const char *writes[] = {s->cache, NULL};
  if (!s->o.no_pause) shoal_manners_step_back();
  if (s->limits_memory) shoal_manners_limit_memory(s->config.memory_bytes);
  const shoal_sandbox_rules rules = {
      .reads = reads, .writes = writes, .listens = !s->o.no_peers && !s->queue};
  shoal_sandbox_enter(&rules, s->sandbox);
  free(data);
}

/* ---- the server ---- */

/* A job that was chosen and is not there, or is over, would be waited for in vain. */
static shoal_status check_chosen_job(const session *s, shoal_fetch *fetch, shoal_error *err) {
  char path[64], state[16];
  shoal_reply reply;
  snprintf(path, sizeof path, "/api/v1/jobs/%" PRIu64, s->o.job);
  shoal_status status = shoal_fetch_ask(fetch, &(shoal_ask){.path = path}, &reply, err);
  cJSON *job = status == SHOAL_OK && reply.body.bytes ? cJSON_Parse(reply.body.bytes) : NULL;
  shoal_plain_at(job, "state", state, sizeof state);
  if (status != SHOAL_NOT_FOUND) status = SHOAL_OK; /* it may be that only its workers may know of it */
  if (strcmp(state, "finished") == 0 || strcmp(state, "stopped") == 0 || strcmp(state, "failed") == 0)
    status = shoal_fail(err, SHOAL_INVALID, "job %" PRIu64 " is over: it is %s", s->o.job, state);
  cJSON_Delete(job);
  shoal_reply_release(&reply);
  return status;
}

static void copy_name(session *s, const cJSON *json) {
  const cJSON *name = cJSON_GetObjectItemCaseSensitive(json, "name");
  const char *text = cJSON_IsString(name) && name->valuestring[0] ? name->valuestring : "a shoal server";
  shoal_text_plain(s->server_name, sizeof s->server_name, text, strlen(text));
}

/* What came of asking the server who it is. One that is not there will be; one that does not want this volunteer,
 * never. `json` is its answer, or NULL. */
static shoal_status judge_answer(const session *s, shoal_status status, const shoal_reply *reply,
                                 const cJSON *json, shoal_error *err) {
  const cJSON *role = cJSON_GetObjectItemCaseSensitive(json, "role");
  if (reply->status == 429)
    return shoal_fail(err, SHOAL_LIMIT, "%s: too many wrong tokens came from this address; wait a minute",
                      s->link.address);
  if (reply->status == 401 || reply->status == 403)
    shoal_error_prefix(err, "%s does not let this machine in: ", s->link.address);
  if (status == SHOAL_IO && (reply->reached || reply->no_tls)) {
    status = shoal_remote_check_scheme(&s->link, reply, err);
    if (status == SHOAL_IO) shoal_cli_warn("work", "%s", err->text);
  }
  if (status == SHOAL_IO || status == SHOAL_STOPPED) return SHOAL_OK; /* the loop tries again, or ends */
  if (status != SHOAL_OK) return status;
  if (!cJSON_IsString(role))
    return shoal_fail(err, SHOAL_INVALID, "%s is not a shoal server", s->link.address);
  if (strcmp(role->valuestring, "viewer") == 0)
    return shoal_fail(err, SHOAL_INVALID,
                      "this link lets one look, not work; ask for an invitation for volunteers");
  return SHOAL_OK;
}

static shoal_status contact(session *s, shoal_error *err) {
  shoal_fetch *fetch;
  const shoal_fetch_config config = {
      .link = &s->link, .connect_s = CONTACT_S, .silence_s = CONTACT_S, .stop = shoal_stop_flag()};
  shoal_status status = shoal_fetch_create(&fetch, &config, err);
  if (status != SHOAL_OK) return status;
  shoal_reply reply;
  status = shoal_fetch_ask(fetch, &(shoal_ask){.path = "/api/v1/server"}, &reply, err);
  cJSON *json = status == SHOAL_OK
                    ? cJSON_ParseWithLength(reply.body.bytes ? reply.body.bytes : "", reply.body.length)
                    : NULL;
  bool answered = status == SHOAL_OK;
  status = judge_answer(s, status, &reply, json, err);
  if (status == SHOAL_OK && answered && s->o.job != 0) status = check_chosen_job(s, fetch, err);
  if (status == SHOAL_OK && json) copy_name(s, json);
  cJSON_Delete(json);
  shoal_reply_release(&reply);
  shoal_fetch_destroy(fetch);
  return status;
}

/* ---- the statement ---- */

/* A size as --memory and --cache-size take it: "10G", "1.5G", "512M". */
typedef struct size_words {
  char text[24];
} size_words;

static size_words words_of_size(uint64_t bytes) {
  static const double giga = 1 << 30, mega = 1 << 20;
  size_words out;
  if ((double)bytes >= giga)
    snprintf(out.text, sizeof out.text, "%.4gG", (double)bytes / giga);
  else
    snprintf(out.text, sizeof out.text, "%.4gM", (double)bytes / mega);
  return out;
}

static void describe_limits(const session *s, shoal_text *out) {
  const shoal_work_config *c = &s->config;
  shoal_text_addf(out, "%u of %u processors, %s of memory, %s priority", c->threads, c->cores,
                  words_of_size(c->memory_bytes).text, s->o.no_pause ? "the usual" : "the lowest");
  if (s->o.hours) shoal_text_addf(out, ", at %s o'clock only", s->o.hours);
  if (c->rules.pause_load > 0)
    shoal_text_addf(out, "; pauses while other programs keep more than %.3g busy", c->rules.pause_load);
  if (!c->rules.on_battery)
    shoal_text_addf(out, "%s on battery", c->rules.pause_load > 0 ? ", and" : "; pauses");
}

static void describe_whom(const session *s, shoal_text *out) {
  if (s->queue) {
    shoal_text_addf(out, "the servers that use the queue at %s", s->queue_place);
    return;
  }
  shoal_text_addf(out, "%s at %s://%s%s", s->server_name[0] ? s->server_name : "the server",
                  s->link.tls ? "https" : "http", s->link.address,
                  s->server_name[0] ? "" : ", which does not answer yet");
  if (s->o.job != 0) shoal_text_addf(out, ", for job %" PRIu64 " alone", s->o.job);
  if (s->o.host) shoal_text_addf(out, ", for jobs of %s alone", s->o.host);
}

static void print_statement(const session *s) {
  shoal_text whom, limits;
  shoal_text_init(&whom);
  shoal_text_init(&limits);
  describe_whom(s, &whom);
  describe_limits(s, &limits);
  if (!whom.failed && !limits.failed)
    fprintf(s->text,
            "This lends the machine, as '%s', to %s.\n"
            "  does        trains networks for people, or plays to train them; runs no programs of theirs\n"
            "  comes here  models and data sets; they are kept in %s, at most %s\n"
            "  goes there  the results, and what this machine is: name, processors, memory, speed\n"
            "  others      %s\n"
            "  limits      %s\n"
            "  sandbox     %s\n"
            "  to stop     Ctrl-C leaves in order, twice at once\n\n",
            s->name, whom.bytes, s->cache, words_of_size(s->config.cache_bytes_max).text,
            s->o.no_peers || s->queue
                ? "data comes from the server alone; nobody connects to this machine"
                : "while it works, data comes from and goes to volunteers of the same job, who may connect "
                  "to a port of this machine and learn its address; --no-peers turns that off",
            limits.bytes, s->sandbox);
  fflush(s->text);
  shoal_text_release(&whom);
  shoal_text_release(&limits);
}

/* Nothing is lent that nobody has agreed to: where a person cannot be asked, --yes says it. */
static shoal_status check_can_ask(const session *s, shoal_error *err) {
  if (s->o.yes || (s->text && s->is_terminal && isatty(STDIN_FILENO))) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID,
                    "%s, nobody can be asked whether to lend this machine; --yes agrees to it",
                    s->o.json    ? "with --json"
                    : s->o.quiet ? "with --quiet"
                                 : "without a terminal");
}

static bool agrees(const session *s) {
  if (s->o.yes) return true;
  fprintf(s->text, "Begin? [Y/n] ");
  fflush(s->text);
  char answer[16];
  if (!fgets(answer, sizeof answer, stdin)) return false;
  return answer[0] == '\n' || answer[0] == 'y' || answer[0] == 'Y';
}

static void print_event(const char *event, const char *key, const char *value) {
  shoal_text line;
  shoal_json json;
  shoal_cli_event_begin(&json, &line, event);
  shoal_json_text(&json, key, value);
  shoal_cli_event_end(&json);
}

static void print_start(const session *s) {
  shoal_text line;
  shoal_json json;
  shoal_cli_event_begin(&json, &line, "start");
  shoal_json_text(&json, "server", s->queue ? s->queue_place : s->link.address);
  shoal_json_text(&json, "name", s->name);
  shoal_json_int(&json, "threads", s->config.threads);
  shoal_json_int(&json, "memory_bytes", (int64_t)s->config.memory_bytes);
  shoal_json_text(&json, "kernels", shoal_kernels_get()->name);
  shoal_json_real(&json, "speed", s->config.speed);
  shoal_json_text(&json, "sandbox", s->sandbox);
  shoal_json_text(&json, "cache", s->cache);
  shoal_cli_event_end(&json);
}

/* ---- what happens ---- */

static void clear_line(session *s) {
  if (s->drawn) fprintf(s->text, "\r\x1b[K");
  s->drawn = false;
}

static void note(void *self, const char *text) {
  session *s = self;
  if (s->o.json) print_event("note", "text", text);
  if (!s->text) return;
  clear_line(s);
  fprintf(s->text, "%s\n", text);
  fflush(s->text);
}

static void write_work(shoal_text *out, const shoal_work_view *v, bool of_queue) {
  if (of_queue)
    shoal_text_addf(out, "works on %s", v->job_name);
  else
    shoal_text_addf(out, "works for %s on %s", v->host[0] ? v->host : "somebody", v->job_name);
  if (v->units > 0)
    shoal_text_addf(out, ": %s unit%s, %s samples", shoal_human_count(v->units).text,
                    v->units == 1 ? "" : "s", shoal_human_count(v->samples).text);
  if (v->units > 0 && v->samples_per_s > 0)
    shoal_text_addf(out, ", %s samples/s", shoal_human_count((uint64_t)v->samples_per_s).text);
}

static void write_line(shoal_text *out, const shoal_work_view *v, bool of_queue) {
  if (v->state == SHOAL_WORK_FETCHING && v->is_here)
    shoal_text_addf(out, "uses the data for %s that is on this machine", v->job_name);
  else if (v->state == SHOAL_WORK_FETCHING && v->bytes_all > 0)
    shoal_text_addf(out, "fetching data for %s: %s of %s", v->job_name,
                    shoal_human_bytes((double)v->bytes_done).text,
                    shoal_human_bytes((double)v->bytes_all).text);
  else if (v->state == SHOAL_WORK_FETCHING)
    shoal_text_addf(out, "finds out what data %s needs", v->job_name);
  else if (v->state == SHOAL_WORK_COMPUTING)
    write_work(out, v, of_queue);
  else if (v->state == SHOAL_WORK_PAUSED)
    shoal_text_addf(out, "paused: %s", v->text);
  else if (v->state == SHOAL_WORK_AWAY)
    shoal_text_addf(out, "looking for the %s", of_queue ? "queue" : "server");
  else if (v->state == SHOAL_WORK_IDLE && strcmp(v->text, SHOAL_WORK_JOB_OVER) == 0)
    shoal_text_addf(out, "%s", v->text);
  else
    shoal_text_addf(out, "waits: %s", v->text[0] ? v->text : "the server has not said yet what to do");
}

static void print_view(const shoal_work_view *v) {
  shoal_text line;
  shoal_json json;
  shoal_cli_event_begin(&json, &line, "state");
  shoal_json_text(&json, "state", shoal_work_state_name(v->state));
  shoal_json_text(&json, "text", v->text);
  shoal_json_bool(&json, "connected", v->connected);
  shoal_json_int(&json, "job", (int64_t)v->job);
  shoal_json_text(&json, "job_name", v->job_name);
  shoal_json_text(&json, "host", v->host);
  shoal_json_int(&json, "units", (int64_t)v->units);
  shoal_json_int(&json, "samples", (int64_t)v->samples);
  shoal_json_real(&json, "samples_per_s", v->samples_per_s);
  shoal_json_int(&json, "from_server", (int64_t)v->from_server);
  shoal_json_int(&json, "from_peers", (int64_t)v->from_peers);
  shoal_json_int(&json, "to_peers", (int64_t)v->to_peers);
  shoal_cli_event_end(&json);
}

static void draw(session *s, const shoal_work_view *v) {
  shoal_text line;
  shoal_text_init(&line);
  write_line(&line, v, s->queue != NULL);
  if (!line.failed && s->is_terminal) {
    uint32_t width = shoal_terminal_of(s->text).width - 1;
    fprintf(s->text, "\r%.*s\x1b[K", (int)width, line.bytes);
    s->drawn = true;
  } else if (!line.failed) {
    fprintf(s->text, "%s\n", line.bytes);
  }
  fflush(s->text);
  shoal_text_release(&line);
}

/* On a terminal a line that changes; elsewhere, and as JSON, a line when the state does or now and then. */
static void show(void *self, const shoal_work_view *v, double now) {
  session *s = self;
  s->last = *v;
  if (v->leaves) return;
  /* The figures of a pause may come and go; when its cause changes, a note says so. */
  bool changed =
      v->state != s->shown_state || (v->state != SHOAL_WORK_PAUSED && strcmp(v->text, s->shown_text) != 0);
  bool redraws = s->is_terminal && !s->o.json;
  bool says_the_same = s->text && !redraws && (v->state == SHOAL_WORK_PAUSED || v->state == SHOAL_WORK_IDLE);
  if (!changed && (says_the_same || now - s->shown_at < (redraws ? REDRAW_S : REPEAT_S))) return;
  s->shown_at = now;
  s->shown_state = v->state;
  snprintf(s->shown_text, sizeof s->shown_text, "%s", v->text);
  if (s->o.json) print_view(v);
  if (s->text) draw(s, v);
}

static void print_end(void *self) {
  session *s = self;
  double seconds = shoal_clock_seconds() - s->started;
  if (s->text) {
    clear_line(s);
    fprintf(s->text, "left after %s: %s unit%s, %s samples\n", shoal_human_seconds(seconds).text,
            shoal_human_count(s->last.units).text, s->last.units == 1 ? "" : "s",
            shoal_human_count(s->last.samples).text);
  }
  if (!s->o.json) return;
  shoal_text line;
  shoal_json json;
  shoal_cli_event_begin(&json, &line, "end");
  shoal_json_int(&json, "units", (int64_t)s->last.units);
  shoal_json_int(&json, "samples", (int64_t)s->last.samples);
  shoal_json_int(&json, "from_server", (int64_t)s->last.from_server);
  shoal_json_int(&json, "from_peers", (int64_t)s->last.from_peers);
  shoal_json_int(&json, "to_peers", (int64_t)s->last.to_peers);
  shoal_json_real(&json, "seconds", seconds);
  shoal_cli_event_end(&json);
}

/* ---- the command ---- */

static shoal_status measure_speed(session *s, shoal_error *err) {
  shoal_text file;
  shoal_text_init(&file);
  shoal_text_addf(&file, "%s/speed", s->cache);
  shoal_status status =
      shoal_speed_measure(file.failed ? NULL : file.bytes, s->config.threads, &s->config.speed, err);
  shoal_text_release(&file);
  return status;
}

static shoal_status serve(session *s, shoal_error *err) {
  withdraw(s);
  shoal_status status = s->queue ? SHOAL_OK : contact(s, err);
  if (status == SHOAL_OK && !s->queue) status = measure_speed(s, err);
  if (status != SHOAL_OK) return status;
  if (s->o.json) print_start(s);
  if (s->text) print_statement(s);
  if (!agrees(s)) return SHOAL_OK;
  shoal_stop_catch();
  s->started = shoal_clock_seconds();
  s->shown_state = SHOAL_WORK_STATES;
  s->config.stop = shoal_stop_flag();
  s->config.self = s;
  s->config.shows = show;
  s->config.notes = note;
  s->config.left = print_end;
  return s->queue ? shoal_queue_volunteer_run(&s->config, err) : shoal_work_run(&s->config, err);
}

/* The words have nothing secret in them afterwards. */
static shoal_status read_link(session *s, int argc, char **argv, shoal_error *err) {
  if (shoal_queue_url_is(s->o.link)) {
    s->queue = shoal_queue_url_take(s->o.link, argc, argv);
    if (s->queue == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
    shoal_queue_url_plain(s->queue, s->queue_place, sizeof s->queue_place);
    return SHOAL_OK;
  }
  shoal_status status = shoal_remote_open_link(&s->link, s->o.link, s->o.token_file, err);
  shoal_link_wipe(argc, argv, s->o.link);
  return status;
}

static int run(int argc, char **argv) {
  session s = {0};
  shoal_error err;
  int exit_status;
  bool parsed = parse(&s.o, argc, argv, &exit_status);
  shoal_status status = parsed ? read_link(&s, argc, argv, &err) : SHOAL_OK;
  if (!parsed) return exit_status;
  if (status == SHOAL_OK) status = read_limits(&s, &err);
  if (!s.o.quiet && !s.o.json) s.text = stdout;
  if (s.text) s.is_terminal = shoal_terminal_of(s.text).is_terminal;
  if (status == SHOAL_OK) status = check_can_ask(&s, &err);
  if (status != SHOAL_OK) return shoal_cli_misused("work", &err);
  status = prepare(&s, &err);
  if (status == SHOAL_OK) status = serve(&s, &err);
  free(s.cache);
  shoal_queue_url_free(s.queue);
  explicit_bzero(&s.link, sizeof s.link);
  if (status != SHOAL_OK) return shoal_cli_failed("work", &err);
  return shoal_cli_finish("work", SHOAL_EXIT_OK);
}

const shoal_command shoal_command_work = {"work", "lend this machine to the trainings of a server", run};
