/* status.c: shoal status: what a server is doing. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/human.h"
#include "base/json_at.h"
#include "cli/cli.h"
#include "cli/found.h"
#include "cli/played.h"
#include "cli/remote.h"
#include "server/spec.h"

enum { JOBS_SHOWN = 50, WORKERS_SHOWN = 1000, CELL_MAX = 40, HELD_OUT_MAX = 96, PATH_MAX_BYTES = 96 };
enum { NAME_BYTES = SHOAL_SPEC_NAME_MAX + 1 }; /* of any name, with its zero */
enum { NAME_COLUMNS = 20, HOST_COLUMNS = 12 };

typedef struct status_options {
  shoal_remote_options api;
  uint64_t job;
  bool json;
} status_options;

static bool parse(status_options *o, int argc, char **argv, int *status) {
  const shoal_option own[] = {
      {.name = "job",
       .value = "ID",
       .whole = &o->job,
       .whole_min = 1,
       .whole_max = INT64_MAX,
       .help = "this job and who works for it"},
      {.name = "json", .flag = &o->json, .help = "one line of JSON"},
  };
  enum { OWN = sizeof own / sizeof own[0], ALL = OWN + SHOAL_REMOTE_OPTIONS };
  shoal_option options[ALL];
  memcpy(options, own, sizeof own);
  shoal_remote_declare(&o->api, options + OWN);
  const shoal_usage usage = {
      .command = "status",
      .synopses = (const char *[]){"[--server LINK] [--job ID] [OPTION...]", NULL},
      .about = "Shows a server's jobs and workers.",
      .operand = "",
      .options = options,
      .options_count = ALL,
      .examples = "  shoal status\n"
                  "  shoal status --job 7\n"
                  "  shoal status --server 'https://lab.example:8443/#t=TOKEN' --json\n",
  };
  shoal_operands operands;
  return shoal_cli_parse(&usage, argc, argv, &operands, status);
}

/* ---- tables ---- */

static const char *count_text(double number, char out[CELL_MAX]) {
  snprintf(out, CELL_MAX, "%s",
           isfinite(number) && number >= 0 ? shoal_human_count((uint64_t)number).text : "-");
  return out;
}

/* What it is worth on samples that it was not trained on: "test accuracy 0.9012"; "-" before there is one. */
static const char *held_out_text(const cJSON *progress, char out[HELD_OUT_MAX]) {
  char part[16], name[24];
  double metric = shoal_number_at(progress, "held_out_metric");
  double loss = shoal_number_at(progress, "held_out_loss");
  shoal_plain_at(progress, "held_out", part, sizeof part);
  shoal_plain_at(progress, "metric_name", name, sizeof name);
  bool has_metric = isfinite(metric) && name[0];
  if (has_metric || isfinite(loss))
    snprintf(out, HELD_OUT_MAX, "%s %s %s", part, has_metric ? name : "loss",
             shoal_human_number(has_metric ? metric : loss).text);
  else
    snprintf(out, HELD_OUT_MAX, "-");
  return out;
}

static const char *trials_text(const shoal_found *found, char out[HELD_OUT_MAX]) {
  snprintf(out, HELD_OUT_MAX, "%s trial%s", shoal_human_count(found->trials).text,
           found->trials == 1 ? "" : "s");
  return out;
}

/* A cell of so many characters; where a text is longer, its last one there is a mark that says so. */
static void print_cell(const cJSON *json, const char *key, uint32_t columns) {
  char text[160];
  shoal_plain_at(json, key, text, sizeof text);
  size_t at = 0, kept = 0;
  uint32_t count = 0;
  for (; text[at] && count < columns; count++) {
    if (count + 1 == columns) kept = at;
    at += shoal_utf8_character(text + at, strlen(text + at));
  }
  if (text[at])
    printf("%.*s…  ", (int)kept, text);
  else
    printf("%s%*s  ", text, (int)(columns - count), "");
}

static const char *real_text(double number, char out[CELL_MAX]) {
  snprintf(out, CELL_MAX, "%s", isfinite(number) ? shoal_human_number(number).text : "-");
  return out;
}

static void print_server(const cJSON *server) {
  char name[64], version[24];
  const cJSON *jobs = cJSON_GetObjectItemCaseSensitive(server, "jobs");
  printf("%s, version %s", shoal_plain_at(server, "name", name, sizeof name),
         shoal_plain_at(server, "version", version, sizeof version));
  double up = shoal_clock_wall_seconds() - shoal_number_at(server, "started");
  if (isfinite(up)) printf(", up %s", shoal_human_seconds(up).text);
  printf("\njobs: %s running, %s waiting, %s finished, %s stopped, %s failed\n",
         shoal_human_count(shoal_whole_at(jobs, "running")).text,
         shoal_human_count(shoal_whole_at(jobs, "waiting")).text,
         shoal_human_count(shoal_whole_at(jobs, "finished")).text,
         shoal_human_count(shoal_whole_at(jobs, "stopped")).text,
         shoal_human_count(shoal_whole_at(jobs, "failed")).text);
  uint64_t paused = shoal_whole_at(server, "paused");
  printf("workers: %s, %s of them idle", shoal_human_count(shoal_whole_at(server, "workers")).text,
         shoal_human_count(shoal_whole_at(server, "idle")).text);
  if (paused > 0) printf(", %s paused", shoal_human_count(paused).text);
  printf("; %s samples/s\n", shoal_human_count(shoal_whole_at(server, "samples_per_s")).text);
}

/* Under a table that does not show them all. */
static void print_more(double all, int shown) {
  if (all > shown) printf("and %s more\n", shoal_human_count((uint64_t)all - (uint64_t)shown).text);
}

static double count_jobs(const cJSON *server) {
  const cJSON *state;
  double all = 0;
  cJSON_ArrayForEach(state, cJSON_GetObjectItemCaseSensitive(server, "jobs")) {
    if (cJSON_IsNumber(state)) all += state->valuedouble;
  }
  return all;
}

/* What differs between trainings and searches in the list of jobs. */
typedef struct job_cells {
  double share;
  char worth[HELD_OUT_MAX], done[HELD_OUT_MAX];
} job_cells;

static void fill_cells(job_cells *out, const cJSON *job) {
  const cJSON *progress = cJSON_GetObjectItemCaseSensitive(job, "progress");
  double steps = shoal_number_at(progress, "steps"), step = shoal_number_at(progress, "step");
  shoal_found found;
  shoal_found_read(&found, job);
  if (found.is_search) {
    out->share = found.share;
    shoal_found_worth(&found, out->worth, sizeof out->worth);
    trials_text(&found, out->done);
  } else {
    out->share = steps > 0 && step >= 0 ? step / steps : 0;
    held_out_text(progress, out->worth);
    count_text(shoal_number_at(progress, "samples_per_s"), out->done);
  }
}

/* The columns that all kinds have. */
static void print_head(void) {
  printf("\n%6s  %-20s  %-12s  %-8s  %7s  %6s  ", "job", "name", "host", "state", "workers", "done");
}

static void print_begin(const cJSON *job, double share) {
  char state[10];
  printf("%6" PRIu64 "  ", shoal_whole_at(job, "id"));
  print_cell(job, "name", NAME_COLUMNS);
  print_cell(job, "host", HOST_COLUMNS);
  printf("%-8s  %7" PRIu64 "  %5.0f%%  ", shoal_plain_at(job, "state", state, sizeof state),
         shoal_whole_at(job, "workers"), 100 * share);
}

static void print_trained(const cJSON *job) {
  char loss[CELL_MAX];
  const cJSON *progress = cJSON_GetObjectItemCaseSensitive(job, "progress");
  job_cells cells;
  fill_cells(&cells, job);
  print_begin(job, cells.share);
  printf("%10s  %-26s  %11s\n", real_text(shoal_number_at(progress, "loss"), loss), cells.worth, cells.done);
}

static const char *return_text(double value, char out[CELL_MAX]) {
  snprintf(out, CELL_MAX, "%s", isfinite(value) ? shoal_played_number(value).text : "-");
  return out;
}

static void print_played(const cJSON *job, const shoal_played *p) {
  char mean[CELL_MAX], score[CELL_MAX], rate[CELL_MAX];
  print_begin(job, p->share);
  printf("%13s  %11s  %10s  %s%s\n", shoal_human_count(p->steps).text,
         count_text(p->runs ? p->steps_per_second : NAN, rate), return_text(p->return_mean, mean),
         return_text(p->score, score), p->solved ? ", solved" : "");
}

/* Agents are in a table of their own, since other things are to be known of them. */
static bool print_kind(const cJSON *jobs, bool agents) {
  const cJSON *job;
  bool any = false;
  cJSON_ArrayForEach(job, jobs) {
    shoal_played played;
    shoal_played_read(&played, job);
    if (played.is_agent != agents) continue;
    if (!any) print_head();
    if (!any && agents) printf("%13s  %11s  %10s  %s\n", "steps", "steps/s", "return", "last score");
    if (!any && !agents) printf("%10s  %-26s  %11s\n", "train loss", "test or valid", "samples/s");
    any = true;
    if (agents)
      print_played(job, &played);
    else
      print_trained(job);
  }
  return any;
}

static void print_jobs(const cJSON *answer, double all) {
  const cJSON *jobs = cJSON_GetObjectItemCaseSensitive(answer, "jobs");
  bool any = print_kind(jobs, false);
  any |= print_kind(jobs, true);
  if (!any) return;
  bool shows_all = !cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(answer, "next"));
  if (!shows_all) print_more(all, cJSON_GetArraySize(jobs));
}

static void print_workers(const cJSON *answer, double all) {
  const cJSON *workers = cJSON_GetObjectItemCaseSensitive(answer, "workers"), *worker;
  if (cJSON_GetArraySize(workers) == 0) return;
  printf("\n%-20s  %7s  %8s  %-9s  %11s  %13s  %s\n", "worker", "threads", "speed", "state", "samples/s",
         "samples", "what");
  cJSON_ArrayForEach(worker, workers) {
    char state[10], text[160], rate[CELL_MAX], samples[CELL_MAX];
    bool works = shoal_whole_at(worker, "job") != 0 && strcmp(shoal_text_at(worker, "state"), "idle") != 0;
    print_cell(worker, "name", NAME_COLUMNS);
    printf("%7" PRIu64 "  %8.1f  %-9s  %11s  %13s  %s\n", shoal_whole_at(worker, "threads"),
           fmax(0, shoal_number_at(worker, "speed")), shoal_plain_at(worker, "state", state, sizeof state),
           count_text(shoal_number_at(worker, "samples_per_s"), rate),
           count_text(shoal_number_at(worker, "samples"), samples),
           shoal_plain_at(worker, works ? "job_name" : "text", text, sizeof text));
  }
  if (cJSON_GetArraySize(workers) == WORKERS_SHOWN) print_more(all, WORKERS_SHOWN);
}

/* The model that was made at the end. */
static void print_made(const shoal_found *found, const cJSON *search) {
  uint64_t members = shoal_whole_at(search, "members"), rows = shoal_whole_at(search, "test_rows");
  double test = shoal_number_at(search, "test_score");
  if (members == 0) return;
  if (members == 1)
    printf("the model is made of the best one");
  else
    printf("the model is made of %s trials", shoal_human_count(members).text);
  if (isfinite(test) && rows > 0)
    printf(": test %s %s on %s row%s", found->metric, shoal_human_number(test).text,
           shoal_human_count(rows).text, rows == 1 ? "" : "s");
  printf("\n");
}

static void print_search(const shoal_found *found, const cJSON *job) {
  char data[NAME_BYTES], target[64], trials[HELD_OUT_MAX];
  const cJSON *spec = cJSON_GetObjectItemCaseSensitive(job, "spec");
  double budget = shoal_number_at(spec, "budget_s");
  printf("a search: %s by the other columns of %s\n%s", shoal_plain_at(spec, "target", target, sizeof target),
         shoal_plain_at(spec, "data", data, sizeof data), trials_text(found, trials));
  if (shoal_whole_at(spec, "trials") > 0)
    printf(" of %s", shoal_human_count(shoal_whole_at(spec, "trials")).text);
  if (isfinite(found->spent_s)) printf(", %s spent", shoal_human_seconds(found->spent_s).text);
  if (budget > 0) printf(" of %s", shoal_human_seconds(budget).text);
  if (isfinite(found->left_s)) printf(", %s left", shoal_human_seconds(found->left_s).text);
  printf("\n");
  if (found->best > 0)
    printf("the best is trial %" PRIu64 ": validation %s %s\n", found->best, found->metric,
           shoal_human_number(found->score).text);
  print_made(found, cJSON_GetObjectItemCaseSensitive(job, "search"));
}

static void print_returns(const shoal_played *p) {
  shoal_text text;
  shoal_text_init(&text);
  if (isfinite(p->return_mean)) {
    shoal_text_addf(&text, "return of what is played to learn");
    shoal_played_add(&text, p->return_mean, p->return_deviation);
    shoal_text_addf(&text, "\n");
  }
  if (isfinite(p->score)) {
    shoal_text_addf(&text, "last score");
    shoal_played_add(&text, p->score, p->score_deviation);
    if (isfinite(p->goal)) shoal_text_addf(&text, " (goal %s)", shoal_played_number(p->goal).text);
    shoal_text_addf(&text, "%s\n", p->solved ? ": solved" : "");
  }
  if (!text.failed && text.length > 0) printf("%s", text.bytes);
  shoal_text_release(&text);
}

/* Who plays now, and what of it was in vain. */
static void print_play(const shoal_played *p, const cJSON *job) {
  uint64_t again = shoal_whole_at(cJSON_GetObjectItemCaseSensitive(job, "agent"), "given_again");
  if (p->steps_per_second > 0)
    printf("%s steps/s, %s actor%s, lag %.1f\n", shoal_human_count((uint64_t)p->steps_per_second).text,
           shoal_human_count(p->actors).text, p->actors == 1 ? "" : "s", fmax(0, p->lag));
  if (p->refused + p->lost + again == 0) return;
  printf("rollouts: %s too old to learn from, %s too late; %s unit%s given to another actor\n",
         shoal_human_count(p->refused).text, shoal_human_count(p->lost).text, shoal_human_count(again).text,
         again == 1 ? "" : "s");
}

static void print_agent(const shoal_played *p, const cJSON *job) {
  const cJSON *spec = cJSON_GetObjectItemCaseSensitive(job, "spec");
  double seconds = shoal_number_at(spec, "seconds");
  printf("an agent: %s by %s\n%s steps, %s episodes", p->env, p->algorithm, shoal_human_count(p->steps).text,
         shoal_human_count(p->episodes).text);
  if (isfinite(p->seconds)) printf(", %s spent", shoal_human_seconds(p->seconds).text);
  if (seconds > 0) printf(" of %s", shoal_human_seconds(seconds).text);
  if (isfinite(p->left_s) && p->runs)
    printf(", %s left%s", shoal_human_seconds(p->left_s).text, p->until_solved ? " at most" : "");
  printf("\n");
  print_play(p, job);
  print_returns(p);
}

static void print_job(const cJSON *job) {
  char name[NAME_BYTES], host[NAME_BYTES], state[16], reason[200], metric[32];
  const cJSON *progress = cJSON_GetObjectItemCaseSensitive(job, "progress");
  shoal_found found;
  shoal_played played;
  shoal_found_read(&found, job);
  shoal_played_read(&played, job);
  shoal_plain_at(job, "reason", reason, sizeof reason);
  printf("job %" PRIu64 ", %s, of %s: %s%s%s\n", shoal_whole_at(job, "id"),
         shoal_plain_at(job, "name", name, sizeof name), shoal_plain_at(job, "host", host, sizeof host),
         shoal_plain_at(job, "state", state, sizeof state), reason[0] ? ": " : "", reason);
  if (found.is_search) {
    print_search(&found, job);
    return;
  }
  if (played.is_agent) {
    print_agent(&played, job);
    return;
  }
  if (shoal_whole_at(job, "weights") == 0) return; /* it has not begun */
  printf("%s weights, %s samples, step %s of %s\n", shoal_human_count(shoal_whole_at(job, "weights")).text,
         shoal_human_count(shoal_whole_at(job, "samples")).text,
         shoal_human_count(shoal_whole_at(progress, "step")).text,
         shoal_human_count(shoal_whole_at(progress, "steps")).text);
  double loss = shoal_number_at(progress, "loss"), value = shoal_number_at(progress, "metric");
  shoal_plain_at(progress, "metric_name", metric, sizeof metric);
  if (!isfinite(loss)) return;
  char held_out[HELD_OUT_MAX];
  printf("train loss %s", shoal_human_number(loss).text);
  if (isfinite(value)) printf(", train %s %s", metric, shoal_human_number(value).text);
  if (strcmp(held_out_text(progress, held_out), "-") != 0) printf(", %s", held_out);
  printf("\n");
}

static void print_job_workers(const cJSON *answer) {
  const cJSON *workers = cJSON_GetObjectItemCaseSensitive(answer, "workers"), *worker;
  if (cJSON_GetArraySize(workers) == 0) return;
  printf("\n%-20s  %-5s  %10s  %13s  %6s  %11s\n", "worker", "here", "units", "samples", "share",
         "samples/s");
  cJSON_ArrayForEach(worker, workers) {
    char units[CELL_MAX], samples[CELL_MAX], rate[CELL_MAX];
    bool here = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(worker, "here"));
    double share = shoal_number_at(worker, "share");
    print_cell(worker, "name", NAME_COLUMNS);
    printf("%-5s  %10s  %13s  %5.0f%%  %11s\n", here ? "yes" : "no",
           count_text(shoal_number_at(worker, "units"), units),
           count_text(shoal_number_at(worker, "samples"), samples), isfinite(share) ? 100 * share : 0,
           count_text(shoal_number_at(worker, "samples_per_s"), rate));
  }
}

/* ---- the command ---- */

enum { ASKED_MAX = 3 };

/* Asks for all of it before anything is printed. */
static shoal_status ask(const status_options *o, shoal_remote *api, cJSON *answers[ASKED_MAX],
                        shoal_error *err) {
  char paths[ASKED_MAX][PATH_MAX_BYTES] = {"/server"};
  snprintf(paths[1], sizeof paths[1], "/jobs?limit=%d", JOBS_SHOWN);
  snprintf(paths[2], sizeof paths[2], "/workers?limit=%d", WORKERS_SHOWN);
  if (o->job != 0) {
    snprintf(paths[0], sizeof paths[0], "/jobs/%" PRIu64, o->job);
    snprintf(paths[1], sizeof paths[1], "/jobs/%" PRIu64 "/workers", o->job);
    paths[2][0] = 0;
  }
  shoal_status status = SHOAL_OK;
  for (int i = 0; i < ASKED_MAX && status == SHOAL_OK && paths[i][0]; i++)
    status = shoal_remote_ask(api, "GET", paths[i], NULL, &answers[i], err);
  return status;
}

static void print_json(const status_options *o, cJSON *answers[ASKED_MAX]) {
  const char *const names[ASKED_MAX] = {o->job ? "job" : "server", o->job ? "workers" : "jobs", "workers"};
  printf("{");
  for (int i = 0; i < ASKED_MAX && answers[i]; i++) {
    /* The lists are in an object of their own; here they need not be. */
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(answers[i], names[i]);
    char *text = cJSON_PrintUnformatted(i > 0 && list ? list : answers[i]);
    printf("%s\"%s\":%s", i ? "," : "", names[i], text ? text : "null");
    cJSON_free(text);
  }
  printf("}\n");
}

static void print_text(const status_options *o, cJSON *answers[ASKED_MAX]) {
  if (o->job != 0) {
    print_job(answers[0]);
    print_job_workers(answers[1]);
    return;
  }
  print_server(answers[0]);
  print_jobs(answers[1], count_jobs(answers[0]));
  print_workers(answers[2], shoal_number_at(answers[0], "workers"));
}

static int run(int argc, char **argv) {
  status_options o = {0};
  shoal_remote api = {0};
  shoal_error err;
  int exit_status;
  bool parsed = parse(&o, argc, argv, &exit_status);
  shoal_status status = parsed ? shoal_remote_open(&api, &o.api, NULL, &err) : SHOAL_OK;
  shoal_link_wipe(argc, argv, o.api.server);
  if (!parsed) return exit_status;
  if (status != SHOAL_OK) return shoal_cli_misused("status", &err);
  cJSON *answers[ASKED_MAX] = {NULL};
  status = ask(&o, &api, answers, &err);
  if (status == SHOAL_OK && o.json) print_json(&o, answers);
  if (status == SHOAL_OK && !o.json) print_text(&o, answers);
  for (int i = 0; i < ASKED_MAX; i++) cJSON_Delete(answers[i]);
  shoal_remote_close(&api);
  if (status != SHOAL_OK) return shoal_cli_failed("status", &err);
  return shoal_cli_finish("status", SHOAL_EXIT_OK);
}

const shoal_command shoal_command_status = {"status", "the jobs and workers of a server", run};
