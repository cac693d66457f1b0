/* job.c: shoal job: what a host does with a job that is on a server. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_at.h"
#include "cli/cli.h"
#include "cli/hosted.h"
#include "cli/stop.h"

typedef struct job_options {
  shoal_remote_options api;
  const char *verb, *out;
  uint64_t job, epochs, trials, steps;
  const char *budget;
  double budget_s, seconds;
  bool json, quiet;
} job_options;

static const char *const verbs[] = {"watch", "stop", "resume", "get", "delete"};
enum { VERBS = sizeof verbs / sizeof *verbs };

static bool parse(job_options *o, shoal_operands *operands, int argc, char **argv, int *status) {
  const shoal_option own[] = {
      {.name = "epochs",
       .value = "N",
       .whole = &o->epochs,
       .whole_min = 1,
       .whole_max = UINT32_MAX,
       .help = "resume: continue a training to N epochs in all"},
      {.name = "budget",
       .value = "TIME",
       .text = &o->budget,
       .help = "resume: continue a search for this long: 90s, 10m or 2h"},
      {.name = "trials",
       .value = "N",
       .whole = &o->trials,
       .whole_min = 1,
       .whole_max = 1000000000,
       .help = "resume: continue a search to N trials in all"},
      {.name = "seconds",
       .value = "SECONDS",
       .real = &o->seconds,
       .real_min = 0.001,
       .real_max = 1e8,
       .help = "resume: continue an agent for this many seconds"},
      {.name = "steps",
       .value = "N",
       .whole = &o->steps,
       .whole_min = 1,
       .whole_max = 1000000000000000,
       .help = "resume: continue an agent to N steps in all"},
      {.name = "out", .value = "FILE", .text = &o->out, .help = "watch, get: where the model goes"},
      {.name = "json", .flag = &o->json, .help = "print JSON lines"},
      {.name = "quiet", .flag = &o->quiet, .help = "print nothing but errors"},
  };
  enum { OWN = sizeof own / sizeof own[0], ALL = OWN + SHOAL_REMOTE_OPTIONS };
  shoal_option options[ALL];
  memcpy(options, own, sizeof own);
  shoal_remote_declare(&o->api, options + OWN);
  const shoal_usage usage = {
      .command = "job",
      .synopses = (const char *[]){"watch ID [OPTION...]", "stop ID",
                                   "resume ID [--epochs N] [--budget TIME] [--trials N] [--seconds SECONDS] "
                                   "[--steps N]",
                                   "get ID [--out FILE]", "delete ID", NULL},
      .about = "Watches a job on a server, a training, a search or an agent, stops it, continues it, gets "
               "its model (as it is now, but of a search when it is finished or stopped), or removes it with "
               "everything that belongs to it. 'shoal status' lists the jobs.",
      .operand = "what to do",
      .operands_max = 2,
      .options = options,
      .options_count = ALL,
      .examples = "  shoal job watch 7\n"
                  "  shoal job stop 7 --server http://192.168.1.5:8080\n"
                  "  shoal job resume 7 --epochs 20\n"
                  "  shoal job resume 8 --budget 30m\n"
                  "  shoal job resume 9 --seconds 60\n"
                  "  shoal job get 7 --out best.safetensors\n",
  };
  return shoal_cli_parse(&usage, argc, argv, operands, status);
}

static bool brings_model(const job_options *o) {
  return strcmp(o->verb, "watch") == 0 || strcmp(o->verb, "get") == 0;
}

/* The first option that says how long to go on; NULL: none. */
static const char *given_more(const job_options *o) {
  if (o->epochs > 0) return "--epochs";
  if (o->budget) return "--budget";
  if (o->trials > 0) return "--trials";
  if (o->seconds > 0) return "--seconds";
  return o->steps > 0 ? "--steps" : NULL;
}

static shoal_status read_operands(job_options *o, const shoal_operands *operands, shoal_error *err) {
  if (operands->count == 0)
    return shoal_fail(err, SHOAL_INVALID, "what to do is missing: watch, stop, resume, get or delete");
  for (size_t i = 0; i < VERBS; i++)
    if (strcmp(operands->at[0], verbs[i]) == 0) o->verb = verbs[i];
  if (!o->verb) {
    const char *near = shoal_nearest(operands->at[0], strlen(operands->at[0]), verbs, VERBS);
    return shoal_fail(err, SHOAL_INVALID, "'%.*s' is not one of watch, stop, resume, get or delete%s%s%s",
                      shoal_options_shown(operands->at[0]), operands->at[0], near ? "; did you mean '" : "",
                      near ? near : "", near ? "'?" : "");
  }
  if (operands->count == 1)
    return shoal_fail(err, SHOAL_INVALID,
                      "the number of a job is missing: shoal job %s ID; 'shoal status' lists them", o->verb);
  if (!shoal_read_u64(operands->at[1], strlen(operands->at[1]), &o->job) || o->job == 0)
    return shoal_fail(err, SHOAL_INVALID, "'%.*s' is no number of a job; 'shoal status' lists them",
                      shoal_options_shown(operands->at[1]), operands->at[1]);
  const char *more = given_more(o);
  if (more && strcmp(o->verb, "resume") != 0)
    return shoal_fail(err, SHOAL_INVALID, "%s is for 'shoal job resume'", more);
  if (o->budget && shoal_options_read_time("--budget", o->budget, &o->budget_s, err) != SHOAL_OK)
    return SHOAL_INVALID;
  if (o->out && !brings_model(o))
    return shoal_fail(err, SHOAL_INVALID, "--out is for 'shoal job watch' and 'shoal job get'");
  return SHOAL_OK;
}

static void write_more(const job_options *o, shoal_text *body) {
  shoal_json json;
  shoal_json_begin(&json, body);
  shoal_json_open(&json, NULL, '{');
  if (o->epochs > 0) shoal_json_int(&json, "epochs", (int64_t)o->epochs);
  if (o->budget) shoal_json_real(&json, "budget_s", o->budget_s);
  if (o->trials > 0) shoal_json_int(&json, "trials", (int64_t)o->trials);
  if (o->seconds > 0) shoal_json_real(&json, "seconds", o->seconds);
  if (o->steps > 0) shoal_json_int(&json, "steps", (int64_t)o->steps);
  shoal_json_close(&json, '}');
}

/* What a job wants to go on that is finished, as the server says it, in words of this command. */
static shoal_status say_how_to_resume(const job_options *o, shoal_error *err) {
  bool is_search = strstr(err->text, "\"trials\"") != NULL, is_agent = strstr(err->text, "\"steps\"") != NULL;
  return shoal_fail(err, SHOAL_CONFLICT,
                    "job %" PRIu64 " is finished; %s continue it: shoal job resume %" PRIu64 " %s", o->job,
                    is_agent    ? "more time or steps"
                    : is_search ? "more time or trials"
                                : "more epochs than it had",
                    o->job,
                    is_agent    ? "--seconds S, or --steps N"
                    : is_search ? "--budget TIME, or --trials N"
                                : "--epochs N");
}

/* Stops or resumes, and tells what the job is then. */
static shoal_status change(const job_options *o, shoal_remote *api, shoal_error *err) {
  char path[64], state[16];
  shoal_text body;
  cJSON *job = NULL;
  snprintf(path, sizeof path, "/jobs/%" PRIu64 "/%s", o->job, o->verb);
  write_more(o, &body);
  shoal_status status = body.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory")
                                    : shoal_remote_ask(api, "POST", path, body.bytes, &job, err);
  shoal_text_release(&body);
  shoal_plain_at(job, "state", state, sizeof state);
  if (status == SHOAL_CONFLICT && strstr(err->text, "is finished; give more"))
    return say_how_to_resume(o, err);
  if (status == SHOAL_OK && state[0] == 0)
    status = shoal_fail(err, SHOAL_CORRUPT,
                        "the server took it, but does not say what becomes of job %" PRIu64, o->job);
  bool is_still =
      strcmp(o->verb, "stop") == 0 && (strcmp(state, "running") == 0 || strcmp(state, "waiting") == 0);
  if (status == SHOAL_OK && o->json) shoal_remote_event("job", job);
  if (status == SHOAL_OK && !o->json && !o->quiet)
    printf("job %" PRIu64 " is %s\n", o->job, is_still ? "being stopped" : state);
  cJSON_Delete(job);
  return status;
}

static shoal_status remove_job(const job_options *o, shoal_remote *api, shoal_error *err) {
  char path[64];
  cJSON *nothing;
  snprintf(path, sizeof path, "/jobs/%" PRIu64, o->job);
  shoal_status status = shoal_remote_ask(api, "DELETE", path, NULL, &nothing, err);
  cJSON_Delete(nothing);
  if (status != SHOAL_OK) return status;
  if (o->json) printf("{\"event\":\"deleted\",\"data\":{\"id\":%" PRIu64 "}}\n", o->job);
  if (!o->json && !o->quiet) printf("job %" PRIu64 " is deleted\n", o->job);
  return SHOAL_OK;
}

static shoal_status get(const shoal_hosted *hosted, shoal_error *err) {
  char path[64];
  cJSON *job;
  snprintf(path, sizeof path, "/jobs/%" PRIu64, hosted->job);
  shoal_status status = shoal_remote_ask(hosted->api, "GET", path, NULL, &job, err);
  if (status == SHOAL_OK) status = shoal_hosted_get(hosted, job, err);
  cJSON_Delete(job);
  return status;
}

static shoal_status act(const job_options *o, shoal_remote *api, int *exit_status, shoal_error *err) {
  const shoal_hosted hosted = {.api = api,
                               .options = &o->api,
                               .command = "job",
                               .job = o->job,
                               .out = o->out,
                               .text = o->json || o->quiet ? NULL : stdout,
                               .json = o->json};
  if (brings_model(o)) {
    shoal_status status = shoal_hosted_check_out(o->out, err);
    if (status != SHOAL_OK) return status;
  }
  if (strcmp(o->verb, "watch") == 0) return shoal_hosted_watch(&hosted, exit_status, err);
  if (strcmp(o->verb, "get") == 0) return get(&hosted, err);
  return strcmp(o->verb, "delete") == 0 ? remove_job(o, api, err) : change(o, api, err);
}

static int run(int argc, char **argv) {
  job_options o = {.api.patient = true};
  shoal_remote api = {0};
  shoal_operands operands;
  shoal_error err;
  int exit_status = SHOAL_EXIT_OK;
  bool parsed = parse(&o, &operands, argc, argv, &exit_status);
  shoal_status status = parsed ? read_operands(&o, &operands, &err) : SHOAL_OK;
  if (parsed && status == SHOAL_OK) status = shoal_remote_open(&api, &o.api, shoal_stop_flag(), &err);
  shoal_link_wipe(argc, argv, o.api.server);
  if (!parsed) return exit_status;
  if (status != SHOAL_OK) return shoal_cli_misused("job", &err);
  shoal_stop_catch();
  status = act(&o, &api, &exit_status, &err);
  shoal_remote_close(&api);
  if (status == SHOAL_STOPPED) return shoal_cli_stopped("job");
  if (status != SHOAL_OK) shoal_remote_blame_flags(&err);
  if (status != SHOAL_OK) return shoal_cli_failed("job", &err);
  return shoal_cli_finish("job", exit_status);
}

const shoal_command shoal_command_job = {"job", "watch, stop, resume or delete a job on a server", run};
