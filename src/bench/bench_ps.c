/* bench_ps.c: shoal bench ps: bytes a second through one parameter server.
 *
 * Workers that compute in almost no time push contributions to a parameter server on loopback and
 * pull its weights, as fast as all of them can. In async mode nobody waits for another, so pushes and
 * pulls overlap, as they do with many workers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/human.h"
#include "bench/bench.h"
#include "bench/bench_cluster.h"
#include "cli/cli.h"
#include "cli/networks.h"
#include "cli/stop.h"
#include "proto/mode.h"

enum { INPUTS = 1000, OUTPUTS = 10 };
static const double ALMOST_NO_TIME_S = 1e-6, WARM_UP_SHARE = 0.2, NEVER_S = 1e9;

typedef struct options {
  uint64_t megabytes, workers;
  const char *mode;
  double seconds;
  bool json;
} options;

/* In local mode workers keep what they compute to themselves most of the time. */
static shoal_status check_mode(const char *text, shoal_error *err) {
  shoal_mode mode;
  shoal_status status = shoal_mode_parse(text, &mode, err);
  if (status == SHOAL_OK && mode.kind == SHOAL_LOCAL)
    status = shoal_fail(err, SHOAL_INVALID, "'%s' is not one of sync, stale:N and async", text);
  if (status != SHOAL_OK) shoal_error_prefix(err, "--mode: ");
  return status;
}

static bool parse(options *o, int argc, char **argv, int *status) {
  const shoal_option table[] = {
      {.name = "megabytes",
       .value = "M",
       .whole = &o->megabytes,
       .whole_min = 1,
       .whole_max = 4000,
       .help = "size of the large model; 100 by default"},
      {.name = "workers",
       .value = "N",
       .whole = &o->workers,
       .whole_min = 1,
       .whole_max = SHOAL_BENCH_WORKERS_MAX,
       .help = "that push and pull; 2 by default"},
      {.name = "mode", .value = "MODE", .text = &o->mode, .help = "sync, stale:N or async, the default"},
      shoal_bench_option_seconds(&o->seconds, "how long to measure each model; 5 by default"),
      shoal_bench_option_json(&o->json, "JSON, one line a model"),
  };
  const shoal_usage usage = {
      .command = "bench ps",
      .synopses = (const char *[]){"[OPTION...]", NULL},
      .about = "Measures how many bytes a second one parameter server on this machine receives and sends, in "
               "f32, with workers that compute in almost no time: for LeNet-5, and for a large model.",
      .options = table,
      .options_count = sizeof table / sizeof table[0],
      .examples = "  shoal bench ps\n"
                  "  shoal bench ps --megabytes 400 --seconds 10 --json\n",
  };
  shoal_operands operands;
  shoal_error err;
  if (!shoal_cli_parse(&usage, argc, argv, &operands, status)) return false;
  if (check_mode(o->mode, &err) == SHOAL_OK) return true;
  *status = shoal_cli_misused("bench ps", &err);
  return false;
}

/* A dense network of about so many bytes. */
static shoal_status make_large(shoal_model **out, double bytes, shoal_error *err) {
  uint32_t hidden = (uint32_t)((bytes / sizeof(float) - OUTPUTS) / (INPUTS + 1 + OUTPUTS));
  char text[200];
  snprintf(text, sizeof text, "input %d\ndense %u tanh\ndense %d\nloss cross-entropy\noptimizer sgd\n",
           INPUTS, hidden, OUTPUTS);
  return shoal_model_parse(out, "large", text, strlen(text), err);
}

static void print_json(const char *name, double model_bytes, const shoal_bench_speed *speed) {
  shoal_text line;
  shoal_json json;
  shoal_text_init(&line);
  shoal_json_init(&json, &line);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "model", name);
  shoal_json_real(&json, "model_bytes", model_bytes);
  shoal_json_real(&json, "contributions_per_s", speed->batches_per_s);
  shoal_json_real(&json, "bytes_per_s", speed->bytes_per_s);
  shoal_json_real(&json, "gbit_per_s", 8e-9 * speed->bytes_per_s);
  shoal_json_close(&json, '}');
  shoal_cli_print_line(&line);
  shoal_text_release(&line);
}

static shoal_status measure(const options *o, const char *name, shoal_model *model, shoal_error *err) {
  shoal_graph *graph;
  shoal_status status = shoal_graph_create(&graph, model, err);
  if (status != SHOAL_OK) return status;
  double model_bytes = (double)graph->weights_count * sizeof(float);
  shoal_graph_destroy(graph);
  const shoal_bench_cluster config = {.model = model,
                                      .batch = 1,
                                      .mode = o->mode,
                                      .wire = "f32",
                                      .workers = (uint32_t)o->workers,
                                      .ps = 1,
                                      .wait_s = ALMOST_NO_TIME_S,
                                      .warm_up_s = WARM_UP_SHARE * o->seconds,
                                      .seconds = o->seconds,
                                      .save_s = NEVER_S}; /* the disk is not what is measured */
  shoal_bench_speed speed;
  status = shoal_bench_cluster_run(&config, &speed, err);
  if (status != SHOAL_OK) return status;
  if (o->json)
    print_json(name, model_bytes, &speed);
  else
    printf("%-10s %10s %16.1f %14s %10.2f\n", name, shoal_human_bytes(model_bytes).text, speed.batches_per_s,
           shoal_human_bytes(speed.bytes_per_s).text, 8e-9 * speed.bytes_per_s);
  fflush(stdout);
  return SHOAL_OK;
}

static shoal_status measure_both(const options *o, shoal_error *err) {
  shoal_model *lenet5 = NULL, *large = NULL;
  shoal_status status = shoal_network_named(&lenet5, "lenet5", err);
  if (status == SHOAL_OK) status = make_large(&large, 1e6 * (double)o->megabytes, err);
  if (status == SHOAL_OK && !o->json)
    printf("%-10s %10s %16s %14s %10s\n", "model", "size", "contributions/s", "bytes/s", "Gbit/s");
  if (status == SHOAL_OK) status = measure(o, "lenet5", lenet5, err);
  if (status == SHOAL_OK) status = measure(o, "large", large, err);
  shoal_model_destroy(lenet5);
  shoal_model_destroy(large);
  return status;
}

int shoal_bench_ps(int argc, char **argv) {
  options o = {.megabytes = 100, .workers = 2, .mode = "async", .seconds = 5};
  int exit_status;
  if (!parse(&o, argc, argv, &exit_status)) return exit_status;
  shoal_error err;
  shoal_stop_catch();
  shoal_status status = measure_both(&o, &err);
  if (status == SHOAL_STOPPED) return 128 + shoal_stop_signal();
  if (status != SHOAL_OK) return shoal_cli_failed("bench ps", &err);
  return shoal_cli_finish("bench ps", SHOAL_EXIT_OK);
}
