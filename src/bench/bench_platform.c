/* bench_platform.c: shoal bench platform: how soon a server answers while a crowd works for it.
 *
 * Volunteers that are none (bench_volunteers.h) connect and work for the jobs that the server has. Meanwhile
 * every path is asked for a few times a second by a thread of its own, on a connection that it keeps, at times fixed
 * beforehand. What counts is the time from when a request was due until its whole answer was there: a server that
 * stalls delays the requests behind it, too. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/bench_volunteers.h"
#include "cli/cli.h"
#include "cli/stop.h"
#include "wire/fetch.h"

enum { PATHS_MAX = 32, TIMES_MAX = 1 << 18 };
static const double CONNECT_S = 120; /* all are there and work by then */

static const char *const COMMAND = "bench platform";

typedef struct options {
  uint64_t volunteers, working;
  double seconds, warm_up_s, batch_s, report_s, per_s;
  const char *paths, *live;
  bool json;
} options;

/* A path that is asked for, or with `events` one whose events are counted. */
typedef struct probe {
  const shoal_link *link;
  const char *path;
  bool events;
  double begin, end, per_s;
  volatile sig_atomic_t stop;
  pthread_t thread;
  double *times;
  size_t count, failed;
  uint64_t bytes; /* of the last answer */
  shoal_error error;
} probe;

static bool parse(options *o, int argc, char **argv, shoal_operands *operands, int *status) {
  const shoal_option table[] = {
      {.name = "volunteers",
       .value = "N",
       .whole = &o->volunteers,
       .whole_min = 1,
       .whole_max = SHOAL_BENCH_VOLUNTEERS_MAX,
       .help = "that connect; 100 by default"},
      {.name = "working",
       .value = "N",
       .whole = &o->working,
       .whole_max = SHOAL_BENCH_VOLUNTEERS_MAX,
       .help = "how many must have a job before the measurement begins; 0 by default"},
      {.name = "batch-seconds",
       .value = "SECONDS",
       .real = &o->batch_s,
       .real_min = 0.001,
       .real_max = 1000,
       .help = "how long a worker pretends to compute a batch; 1 by default"},
      {.name = "report-seconds",
       .value = "SECONDS",
       .real = &o->report_s,
       .real_min = 0.1,
       .real_max = 1e6,
       .help = "how often each volunteer reports; 30 by default"},
      {.name = "paths", .value = "LIST", .text = &o->paths, .help = "what is asked for, with commas"},
      {.name = "live",
       .value = "LIST",
       .text = &o->live,
       .help = "streams of events to be held open, with commas"},
      {.name = "per-second",
       .value = "X",
       .real = &o->per_s,
       .real_min = 0.1,
       .real_max = 1000,
       .help = "how often each path is asked for; 10 by default"},
      {.name = "warm-up",
       .value = "SECONDS",
       .real = &o->warm_up_s,
       .real_max = 3600,
       .help = "how long to wait once all are there; 5 by default"},
      shoal_bench_option_seconds(&o->seconds, "how long to measure; 30 by default"),
      shoal_bench_option_json(&o->json, "JSON, one line a path and one for all"),
  };
  const shoal_usage usage = {
      .command = COMMAND,
      .synopses = (const char *[]){"LINK [OPTION...]", NULL},
      .about =
          "Connects volunteers that pretend to compute to a server (shoal serve), and measures how soon it "
          "answers "
          "meanwhile. Jobs must be there already; their data must be made up (toy:wave). bench/platform does "
          "all of that.",
      .operand = "the server's address",
      .operands_min = 1,
      .operands_max = 1,
      .options = table,
      .options_count = sizeof table / sizeof table[0],
      .examples = "  shoal bench platform http://127.0.0.1:8080 --volunteers 2200 --working 200\n",
  };
  return shoal_cli_parse(&usage, argc, argv, operands, status);
}

/* ---- probes ---- */

static void ask(probe *p, shoal_fetch *fetch, double due) {
  shoal_reply reply;
  shoal_status status = shoal_fetch_ask(fetch, &(shoal_ask){.path = p->path}, &reply, &p->error);
  p->bytes = reply.body.length;
  shoal_reply_release(&reply);
  if (status == SHOAL_OK)
    p->times[p->count++] = shoal_clock_seconds() - due;
  else
    p->failed++;
}

static bool count_event(void *self, const char *name, const char *data) {
  (void)name, (void)data;
  probe *p = self;
  p->count++;
  return true;
}

static bool stops(const probe *p) { return __atomic_load_n(&p->stop, __ATOMIC_RELAXED) != 0; }

static void *run_probe(void *self) {
  probe *p = self;
  const shoal_fetch_config config = {.link = p->link, .stop = &p->stop};
  shoal_fetch *fetch;
  if (shoal_fetch_create(&fetch, &config, &p->error) != SHOAL_OK) {
    p->failed++;
    return NULL;
  }
  if (p->events && shoal_fetch_events(fetch, p->path, p, count_event, &p->error) != SHOAL_STOPPED)
    p->failed++;
  for (double due = p->begin; !p->events && due < p->end && p->count < TIMES_MAX && !stops(p);
       due += 1 / p->per_s) {
    double now = shoal_clock_seconds();
    if (now < due) shoal_clock_sleep(due - now);
    ask(p, fetch, due);
  }
  shoal_fetch_destroy(fetch);
  return NULL;
}

static shoal_status start_probe(probe *p, shoal_error *err) {
  p->times = calloc(TIMES_MAX, sizeof *p->times);
  if (p->times == NULL || pthread_create(&p->thread, NULL, run_probe, p) != 0) {
    free(p->times);
    p->times = NULL;
    return shoal_fail(err, SHOAL_NO_MEMORY, "cannot start a thread");
  }
  return SHOAL_OK;
}

static void end_probes(probe *probes, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (probes[i].times != NULL) pthread_join(probes[i].thread, NULL);
}

/* ---- the measurement ---- */

static size_t split(char *list, probe *probes, size_t count, bool events) {
  char *rest = NULL;
  for (char *path = strtok_r(list, ",", &rest); path != NULL && count < PATHS_MAX;
       path = strtok_r(NULL, ",", &rest))
    probes[count++] = (probe){.path = path, .events = events};
  return count;
}

static shoal_status wait_for_all(const options *o, shoal_bench_volunteers *crowd, shoal_error *err) {
  shoal_bench_volunteers_view view = {0};
  double until = shoal_clock_seconds() + CONNECT_S;
  while (view.connected < o->volunteers || view.working < o->working) {
    if (shoal_stop_signal() != 0) return SHOAL_STOPPED;
    if (shoal_clock_seconds() > until)
      return shoal_fail(err, SHOAL_IO, "after %.0f s %u of %llu are connected and %u of %llu have work",
                        CONNECT_S, view.connected, (unsigned long long)o->volunteers, view.working,
                        (unsigned long long)o->working);
    shoal_clock_sleep(0.1);
    shoal_bench_volunteers_look(crowd, &view);
  }
  return SHOAL_OK;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The smallest time that so large a share of all does not exceed. */
static double quantile(const probe *p, double share) {
  if (p->count == 0) return 0;
  size_t rank = (size_t)(share * (double)p->count + 0.999999);
  return p->times[rank > 0 ? rank - 1 : 0];
}

static void print_probe(const options *o, probe *p) {
  static const double shares[] = {0.5, 0.9, 0.99, 1};
  static const char *const names[] = {"p50_ms", "p90_ms", "p99_ms", "max_ms"};
  if (!p->events) qsort(p->times, p->count, sizeof *p->times, by_size);
  if (!o->json) {
    printf("%-36s %8zu %6zu", p->path, p->count, p->failed);
    for (size_t i = 0; i < 4 && !p->events; i++) printf(" %8.1f", 1e3 * quantile(p, shares[i]));
    printf("\n");
    return;
  }
  shoal_text line;
  shoal_json json;
  shoal_cli_event_begin(&json, &line, NULL);
  shoal_json_text(&json, "path", p->path);
  shoal_json_int(&json, p->events ? "events" : "requests", (int64_t)p->count);
  shoal_json_int(&json, "failed", (int64_t)p->failed);
  if (p->failed > 0) shoal_json_text(&json, "error", p->error.text);
  if (!p->events) shoal_json_int(&json, "bytes", (int64_t)p->bytes);
  for (size_t i = 0; i < 4 && !p->events; i++) shoal_json_real(&json, names[i], 1e3 * quantile(p, shares[i]));
  shoal_cli_event_end(&json);
}

static void print_crowd(const options *o, const shoal_bench_volunteers_view *before,
                        const shoal_bench_volunteers_view *after) {
  double units_per_s = (double)(after->units - before->units) / o->seconds;
  if (!o->json) {
    printf("%u volunteers, %u of them working, %.1f units a second; %llu connections lost\n",
           after->connected, after->working, units_per_s, (unsigned long long)after->lost);
    return;
  }
  shoal_text line;
  shoal_json json;
  shoal_cli_event_begin(&json, &line, NULL);
  shoal_json_int(&json, "connected", after->connected);
  shoal_json_int(&json, "working", after->working);
  shoal_json_int(&json, "lost", (int64_t)after->lost);
  shoal_json_real(&json, "units_per_s", units_per_s);
  shoal_cli_event_end(&json);
}

/* Asks for everything for as long as is wanted. */
static shoal_status probe_all(const options *o, const shoal_link *link, probe *probes, size_t count,
                              shoal_error *err) {
  shoal_status status = SHOAL_OK;
  double begin = shoal_clock_seconds() + 0.5, end = begin + o->seconds;
  for (size_t i = 0; i < count && status == SHOAL_OK; i++) {
    probes[i].link = link;
    probes[i].per_s = o->per_s;
    /* Not all at the same moment. */
    probes[i].begin = begin + (double)i / (double)count / o->per_s;
    probes[i].end = end;
    status = start_probe(&probes[i], err);
  }
  while (status == SHOAL_OK && shoal_clock_seconds() < end) {
    if (shoal_stop_signal() != 0) status = SHOAL_STOPPED;
    shoal_clock_sleep(0.1);
  }
  for (size_t i = 0; i < count; i++)
    if (probes[i].events || status != SHOAL_OK) __atomic_store_n(&probes[i].stop, 1, __ATOMIC_RELAXED);
  end_probes(probes, count);
  return status;
}

static shoal_status measure(const options *o, const shoal_link *link, probe *probes, size_t count,
                            shoal_error *err) {
  const shoal_bench_volunteers_config config = {
      .link = link, .count = (uint32_t)o->volunteers, .batch_s = o->batch_s, .report_s = o->report_s};
  shoal_bench_volunteers *crowd;
  shoal_bench_volunteers_view before, after;
  shoal_status status = shoal_bench_volunteers_start(&crowd, &config, err);
  if (status != SHOAL_OK) return status;
  status = wait_for_all(o, crowd, err);
  if (status == SHOAL_OK) shoal_clock_sleep(o->warm_up_s);
  shoal_bench_volunteers_look(crowd, &before);
  if (status == SHOAL_OK) status = probe_all(o, link, probes, count, err);
  shoal_bench_volunteers_look(crowd, &after);
  if (status == SHOAL_OK) {
    if (!o->json)
      printf("%-36s %8s %6s %8s %8s %8s %8s\n", "ms", "count", "failed", "p50", "p90", "p99", "max");
    for (size_t i = 0; i < count; i++) print_probe(o, &probes[i]);
    print_crowd(o, &before, &after);
  }
  shoal_bench_volunteers_end(crowd);
  return status;
}

int shoal_bench_platform(int argc, char **argv) {
  options o = {.volunteers = 100,
               .seconds = 30,
               .warm_up_s = 5,
               .batch_s = 1,
               .report_s = 30,
               .per_s = 10,
               .paths = "/,/api/v1/server,/api/v1/jobs?limit=50,/api/v1/workers?limit=1000",
               .live = ""};
  shoal_operands operands;
  int exit_status;
  if (!parse(&o, argc, argv, &operands, &exit_status)) return exit_status;
  shoal_error err;
  shoal_link link;
  probe probes[PATHS_MAX] = {0};
  char *paths = strdup(o.paths), *live = strdup(o.live);
  shoal_status status = paths != NULL && live != NULL
                            ? shoal_link_open(&link, operands.at[0], NULL, &err)
                            : shoal_fail(&err, SHOAL_NO_MEMORY, "not enough memory");
  shoal_link_wipe(argc, argv, operands.at[0]);
  shoal_stop_catch();
  if (status == SHOAL_OK) {
    size_t count = split(paths, probes, 0, false);
    status = measure(&o, &link, probes, split(live, probes, count, true), &err);
  }
  for (size_t i = 0; i < PATHS_MAX; i++) free(probes[i].times);
  free(paths);
  free(live);
  explicit_bzero(&link, sizeof link);
  if (status == SHOAL_STOPPED) return shoal_cli_stopped(COMMAND);
  if (status != SHOAL_OK) return shoal_cli_failed(COMMAND, &err);
  return shoal_cli_finish(COMMAND, SHOAL_EXIT_OK);
}
