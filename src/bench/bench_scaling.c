/* bench_scaling.c: shoal bench scaling: clusters of more and more workers.
 *
 * The experiments of the thesis on scaling: for every mode and number of workers a cluster of real
 * processes trains for a while; batches a second of all workers, and the speedup against one. Up to the
 * number of processors workers compute, one thread each. Past that they wait as long as computing a
 * batch took on one thread in the same run, and the row says so. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/bench_scaling.h"
#include "cli/cli.h"
#include "cli/networks.h"
#include "cli/stop.h"
#include "proto/codec.h"
#include "sim/life.h"

enum { MODES_MAX = 16, COUNTS_MAX = 64, MODE_TEXT_MAX = 32, PS_MAX = 64 };
static const double WARM_UP_SHARE = 0.3, WARM_UP_S = 2, CALIBRATION_S = 2;
static const double SAVE_S = 2, NEVER_S = 1e9, ALMOST_NO_TIME_S = 1e-6;

typedef struct options {
  const char *net, *workers_text, *modes_text, *wire, *transport, *csv, *svg;
  uint64_t batch, ps, processes;
  double seconds, rate_mbit, latency_ms;
  bool simulate, json;
  /* from the texts */
  uint32_t workers[COUNTS_MAX], workers_count;
  char modes[MODES_MAX][MODE_TEXT_MAX];
  shoal_mode parsed[MODES_MAX];
  uint32_t modes_count;
} options;

/* ---- options ---- */

static shoal_status read_workers(options *o, shoal_error *err) {
  uint64_t most = o->simulate ? SHOAL_SIM_WORKERS_MAX : SHOAL_BENCH_WORKERS_MAX;
  for (const char *from = o->workers_text;;) {
    size_t length = strcspn(from, ",");
    uint64_t count;
    if (!shoal_read_u64(from, length, &count) || count == 0 || o->workers_count == COUNTS_MAX)
      return shoal_fail(err, SHOAL_INVALID, "--workers: '%s' is not a list such as 1,2,5,10",
                        o->workers_text);
    if (count > most)
      return shoal_fail(err, SHOAL_INVALID, "--workers: %llu; up to %llu can be %s",
                        (unsigned long long)count, (unsigned long long)most,
                        o->simulate ? "simulated" : "run, and more with --simulate");
    o->workers[o->workers_count++] = (uint32_t)count;
    if (from[length] == '\0') return SHOAL_OK;
    from += length + 1;
  }
}

static shoal_status read_modes(options *o, shoal_error *err) {
  for (const char *from = o->modes_text;;) {
    size_t length = strcspn(from, ",");
    if (length >= MODE_TEXT_MAX || o->modes_count == MODES_MAX)
      return shoal_fail(err, SHOAL_INVALID, "--mode: '%s' is not a list such as sync,async", o->modes_text);
    char *mode = o->modes[o->modes_count];
    memcpy(mode, from, length);
    if (shoal_mode_parse(mode, &o->parsed[o->modes_count++], err) != SHOAL_OK) {
      shoal_error_prefix(err, "--mode: ");
      return SHOAL_INVALID;
    }
    if (from[length] == '\0') return SHOAL_OK;
    from += length + 1;
  }
}

static shoal_status read_lists(options *o, shoal_error *err) {
  shoal_status status = read_workers(o, err);
  if (status == SHOAL_OK) status = read_modes(o, err);
  if (status == SHOAL_OK && o->rate_mbit > 0 && strcmp(o->transport, "threads") == 0)
    status = shoal_fail(err, SHOAL_INVALID, "threads have no links between them; leave out --rate");
  return status;
}

static bool parse(options *o, int argc, char **argv, int *status) {
  static const char *const wires[] = {"f32", "bf16", "int8", "topk", NULL};
  static const char *const transports[] = {"tcp", "websocket", "threads", NULL};
  const shoal_option table[] = {
      {.name = "net",
       .value = "NET",
       .text = &o->net,
       .help = "lenet5, mlp, lstm-ptb, or the file of a model; lenet5 by default"},
      {.name = "batch",
       .value = "N",
       .whole = &o->batch,
       .whole_min = 1,
       .whole_max = 65536,
       .help = "samples of a worker's batch; by default what the model says"},
      {.name = "workers",
       .value = "LIST",
       .text = &o->workers_text,
       .help = "how many, with commas; 1,2,5,10,25,50 by default"},
      {.name = "mode",
       .value = "LIST",
       .text = &o->modes_text,
       .help = "sync, stale:N, async, local:H, with commas; "
               "sync,stale:1,async,local:20 by default"},
      {.name = "wire",
       .value = "FORMAT",
       .text = &o->wire,
       .choices = wires,
       .help = "of contributions; f32 by default"},
      {.name = "transport",
       .value = "HOW",
       .text = &o->transport,
       .choices = transports,
       .help = "tcp or websocket, between processes, or threads of one process; tcp by default"},
      {.name = "ps",
       .value = "K",
       .whole = &o->ps,
       .whole_min = 1,
       .whole_max = PS_MAX,
       .help = "parameter servers; 1 by default"},
      {.name = "rate",
       .value = "MBIT",
       .real = &o->rate_mbit,
       .real_min = 1,
       .real_max = 1e6,
       .help =
           "every worker and parameter server in a network namespace with a link of so many Mbit/s; needs "
           "root, ip and tc"},
      shoal_bench_option_seconds(&o->seconds, "how long to measure each row; 5 by default"),
      {.name = "Simulated"},
      {.name = "simulate", .flag = &o->simulate, .help = "the same in the simulator, beside the real rows"},
      {.name = "processes",
       .value = "N",
       .whole = &o->processes,
       .whole_min = 0,
       .whole_max = SHOAL_BENCH_WORKERS_MAX,
       .help = "with --simulate: more workers than this are simulated only; 50 by default"},
      {.name = "latency",
       .value = "MS",
       .real = &o->latency_ms,
       .real_min = 0,
       .real_max = 10000,
       .help = "of a simulated link; 0.05 by default"},
      {.name = "Results"},
      {.name = "csv", .value = "FILE", .text = &o->csv, .help = "write the table as CSV"},
      {.name = "svg", .value = "FILE", .text = &o->svg, .help = "write a picture: speedup against workers"},
      shoal_bench_option_json(&o->json, "JSON, one line a row"),
  };
  const shoal_usage usage = {
      .command = "bench scaling",
      .synopses = (const char *[]){"[OPTION...]", NULL},
      .about = "Measures clusters of more and more workers on this machine: batches a second of all workers "
               "together, and the speedup against one worker in the same mode and against one thread without "
               "a cluster. Every worker computes batches of its own. Up to the number of processors they "
               "compute; past that they wait as long as computing takes, and send real messages.",
      .options = table,
      .options_count = sizeof table / sizeof table[0],
      .examples = "  shoal bench scaling --batch 128 --csv scaling.csv --svg scaling.svg\n"
                  "  shoal bench scaling --net lstm-ptb --batch 20 --mode sync,async --wire int8\n"
                  "  shoal bench scaling --batch 128 --rate 1000 --workers 1,50 --mode local:20\n"
                  "  shoal bench scaling --simulate --workers 1,10,100,1000,10000 --processes 10\n",
  };
  shoal_operands operands;
  shoal_error err;
  if (!shoal_cli_parse(&usage, argc, argv, &operands, status)) return false;
  if (read_lists(o, &err) == SHOAL_OK) return true;
  *status = shoal_cli_misused("bench scaling", &err);
  return false;
}

/* ---- measuring ---- */

typedef struct session {
  const options *options;
  shoal_model *model;
  shoal_links *links;
  uint32_t processors;
  shoal_scaling scaling;
} session;

/* Whether so many workers are run as processes. */
static bool is_run(const options *o, uint32_t workers) { return !o->simulate || workers <= o->processes; }

static shoal_bench_cluster cluster_of(const session *s, const char *mode, uint32_t workers) {
  const options *o = s->options;
  return (shoal_bench_cluster){.model = s->model,
                               .batch = s->scaling.batch,
                               .mode = mode,
                               .wire = o->wire,
                               .transport = o->transport,
                               .workers = workers,
                               .ps = (uint32_t)o->ps,
                               .warm_up_s = fmin(WARM_UP_S, WARM_UP_SHARE * o->seconds),
                               .seconds = o->seconds,
                               .save_s = SAVE_S,
                               .links = s->links};
}

/* What the simulator needs to know: how large messages are, and what a contribution and the answer to it
 * cost a parameter server, measured with two workers that keep it busy all the time. */
static shoal_status measure_server(session *s, shoal_error *err) {
  shoal_graph *graph;
  shoal_status status = shoal_graph_create(&graph, s->model, err);
  if (status != SHOAL_OK) return status;
  shoal_wire_format format;
  shoal_codec_named(s->options->wire, &format);
  s->scaling.push_bytes = (double)shoal_codec_bytes(format, graph->weights_count);
  s->scaling.pull_bytes = (double)graph->weights_count * sizeof(float);
  shoal_graph_destroy(graph);
  shoal_bench_cluster config = cluster_of(s, "async", 2);
  config.wait_s = ALMOST_NO_TIME_S;
  config.save_s = NEVER_S;
  config.ps = 1;
  config.links = NULL;
  config.seconds = fmin(config.seconds, CALIBRATION_S);
  shoal_bench_speed speed;
  status = shoal_bench_cluster_run(&config, &speed, err);
  if (status == SHOAL_OK) s->scaling.contribution_s = 1 / speed.batches_per_s;
  return status;
}

static shoal_status open_session(session *s, shoal_error *err) {
  const options *o = s->options;
  shoal_status status = shoal_network_named(&s->model, o->net, err);
  if (status != SHOAL_OK) return status;
  s->scaling = (shoal_scaling){.net = o->net,
                               .wire = o->wire,
                               .transport = o->transport,
                               .batch = o->batch > 0 ? (uint32_t)o->batch : s->model->recipe.batch,
                               .ps = (uint32_t)o->ps,
                               .rate_mbit = o->rate_mbit,
                               .latency_s = o->latency_ms / 1000,
                               .simulates = o->simulate};
  s->scaling.rows = calloc((size_t)o->modes_count * o->workers_count, sizeof *s->scaling.rows);
  if (s->scaling.rows == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  uint32_t most = 0;
  for (uint32_t i = 0; i < o->workers_count; i++)
    if (is_run(o, o->workers[i]) && o->workers[i] > most) most = o->workers[i];
  if (o->rate_mbit > 0 && most > 0)
    status = shoal_links_open(&s->links, (uint32_t)o->ps + most, o->rate_mbit, err);
  if (status == SHOAL_UNSUPPORTED) shoal_error_prefix(err, "leave out --rate for links as they are: ");
  if (status == SHOAL_OK)
    status = shoal_bench_batch_time(o->net, s->scaling.batch, fmin(o->seconds, CALIBRATION_S),
                                    &s->scaling.batch_s, err);
  if (status == SHOAL_OK && o->simulate) status = measure_server(s, err);
  return status;
}

static void close_session(session *s) {
  shoal_links_close(s->links);
  shoal_model_destroy(s->model);
  free(s->scaling.rows);
}

static shoal_status measure_row(session *s, uint32_t mode, uint32_t workers, shoal_error *err) {
  const options *o = s->options;
  shoal_scaling_row row = {.mode = o->modes[mode], .workers = workers, .simulated_per_s = NAN};
  if (is_run(o, workers)) {
    shoal_bench_cluster config = cluster_of(s, row.mode, workers);
    row.waited = workers > s->processors;
    if (row.waited) config.wait_s = s->scaling.batch_s;
    shoal_status status = shoal_bench_cluster_run(&config, &row.speed, err);
    if (status != SHOAL_OK) return status;
    row.ran = true;
  }
  if (o->simulate) {
    row.simulated_per_s = shoal_scaling_simulate(&s->scaling, &o->parsed[mode], workers, err);
    if (isnan(row.simulated_per_s))
      shoal_cli_warn("bench scaling", "%s, %u workers: %s; this row is not simulated", row.mode, workers,
                     err->text);
  }
  s->scaling.rows[s->scaling.rows_count++] = row;
  shoal_scaling_row *kept = &s->scaling.rows[s->scaling.rows_count - 1];
  shoal_scaling_derive(&s->scaling, kept);
  if (o->json)
    shoal_scaling_print_json(&s->scaling, kept);
  else
    shoal_scaling_print_row(&s->scaling, kept);
  return SHOAL_OK;
}

static shoal_status measure(session *s, shoal_error *err) {
  const options *o = s->options;
  shoal_status status = open_session(s, err);
  if (status == SHOAL_OK && !o->json) shoal_scaling_print_head(&s->scaling);
  for (uint32_t m = 0; m < o->modes_count; m++)
    for (uint32_t w = 0; w < o->workers_count && status == SHOAL_OK; w++)
      status = measure_row(s, m, o->workers[w], err);
  /* What was measured before a failure or Ctrl-C is not lost. */
  if (s->scaling.rows_count == 0) return status;
  shoal_status written = SHOAL_OK;
  shoal_error *write_err = status == SHOAL_OK ? err : NULL;
  if (o->csv != NULL) written = shoal_scaling_write_csv(&s->scaling, o->csv, write_err);
  if (o->svg != NULL && written == SHOAL_OK)
    written = shoal_scaling_write_svg(&s->scaling, o->svg, write_err);
  return status == SHOAL_OK ? written : status;
}

int shoal_bench_scaling(int argc, char **argv) {
  options o = {.net = "lenet5",
               .workers_text = "1,2,5,10,25,50",
               .modes_text = "sync,stale:1,async,local:20",
               .wire = "f32",
               .transport = "tcp",
               .ps = 1,
               .processes = 50,
               .seconds = 5,
               .latency_ms = 0.05};
  int exit_status;
  if (!parse(&o, argc, argv, &exit_status)) return exit_status;
  session s = {.options = &o, .processors = shoal_cli_threads()};
  shoal_error err;
  shoal_stop_catch();
  shoal_status status = measure(&s, &err);
  close_session(&s);
  if (status == SHOAL_STOPPED) return 128 + shoal_stop_signal();
  if (status != SHOAL_OK) return shoal_cli_failed("bench scaling", &err);
  return shoal_cli_finish("bench scaling", SHOAL_EXIT_OK);
}
