/* bench_train.c: shoal bench train: rounds a second.
 *
 * Data is made up in memory, so that only training is measured. Of five windows the median
 * counts, and after a signal that of those until then. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/human.h"
#include "bench/bench.h"
#include "cli/cli.h"
#include "cli/networks.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "data/noise.h"

/* ---- measuring ---------------------------------------------------------------------- */

enum { WINDOWS = 5, WARM_UP_ROUNDS = 3, ROUNDS_IN_EPOCH = 1000 };

/* All that is open while measuring, and what came out. */
typedef struct session {
  const char *net;
  uint32_t batch, threads;
  bool times;
  double seconds, started;
  shoal_progress progress;
  shoal_model *model;
  shoal_graph *graph;
  shoal_trainer *trainer;
  shoal_noise *data;
  uint32_t windows;      /* that were measured: fewer than WINDOWS after a signal */
  uint64_t rounds;       /* of all of them, */
  double rounds_seconds; /* and what they took */
  shoal_peak peak;
  double batches_per_s, gflops, first_update_s, resident_mb;
} session;

static void close_session(session *s) {
  shoal_trainer_destroy(s->trainer);
  shoal_noise_destroy(s->data);
  shoal_graph_destroy(s->graph);
  shoal_model_destroy(s->model);
}

static void fetch(const void *self, uint64_t epoch, uint64_t first, uint32_t n, const shoal_batch *into) {
  (void)epoch;
  shoal_noise_fetch(self, first, n, into);
}

static bool is_stopped(void) { return *shoal_stop_flag() != 0; }

/* `rounds` took `seconds` so far in the window at hand. */
static void show_progress(session *s, uint64_t rounds, double seconds) {
  double now = shoal_clock_seconds(), share = s->windows / (double)WINDOWS + seconds / s->seconds;
  if (is_stopped() || !shoal_progress_due(&s->progress, now)) return;
  const shoal_progress_view view = {.share = share,
                                    .per_s = (double)((s->rounds + rounds) * s->batch) /
                                             (s->rounds_seconds + seconds),
                                    .unit = "samples",
                                    .loss = NAN,
                                    .eta_s = fmax(1 - share, 0) * s->seconds};
  shoal_progress_show(&s->progress, &view, now);
}

/* What a signal cuts short counts as far as it came. */
static shoal_status measure_window(session *s, const shoal_source *source, double *rate, shoal_error *err) {
  double start = shoal_clock_seconds(), now = start;
  uint64_t rounds = 0;
  while (now - start < s->seconds / WINDOWS && !is_stopped()) {
    shoal_result round;
    shoal_status status = shoal_trainer_round(s->trainer, source, &round, err);
    if (status != SHOAL_OK) return status;
    now = shoal_clock_seconds();
    rounds++;
    show_progress(s, rounds, now - start);
  }
  if (rounds == 0) return SHOAL_OK;
  *rate = (double)rounds / (now - start);
  s->windows++;
  s->rounds += rounds;
  s->rounds_seconds += now - start;
  return SHOAL_OK;
}

static shoal_status measure_windows(session *s, const shoal_source *source, shoal_error *err) {
  shoal_status status = shoal_peak_open(&s->peak, s->threads, err);
  if (status != SHOAL_OK) return status;
  shoal_result round;
  for (int i = 0; i <= WARM_UP_ROUNDS && status == SHOAL_OK && !is_stopped(); i++) {
    status = shoal_trainer_round(s->trainer, source, &round, err);
    if (i == 0) s->first_update_s = shoal_clock_seconds() - s->started;
    show_progress(s, 0, 0);
  }
  if (s->times) shoal_engine_times_reset(shoal_trainer_engine(s->trainer));
  double rates[WINDOWS];
  for (int w = 0; w < WINDOWS && status == SHOAL_OK && !is_stopped(); w++) {
    status = measure_window(s, source, &rates[w], err);
    if (s->windows > 0) shoal_peak_measure(&s->peak);
  }
  shoal_peak_close(&s->peak);
  shoal_progress_clear(&s->progress);
  if (status == SHOAL_OK && s->windows == 0)
    status = shoal_fail(err, SHOAL_STOPPED, "stopped before anything was measured");
  if (status == SHOAL_OK) s->batches_per_s = shoal_bench_median(rates, s->windows);
  return status;
}

static shoal_status measure(session *s, shoal_error *err) {
  shoal_status status = shoal_network_named(&s->model, s->net, err);
  if (status == SHOAL_OK) status = shoal_graph_create(&s->graph, s->model, err);
  if (status != SHOAL_OK) return status;
  if (s->batch == 0) s->batch = s->model->recipe.batch;
  shoal_trainer_config config = {.graph = s->graph,
                                 .threads = s->threads,
                                 .batch = s->batch,
                                 .samples = (uint64_t)s->batch * ROUNDS_IN_EPOCH,
                                 .times = s->times};
  status = shoal_trainer_create(&s->trainer, &config, err);
  if (status != SHOAL_OK) return status;
  status = shoal_noise_create(&s->data, s->model, err);
  if (status != SHOAL_OK) return status;
  shoal_source source = {.self = s->data, .samples = config.samples, .fetch = fetch};
  status = measure_windows(s, &source, err);
  s->gflops = s->batches_per_s * (double)shoal_graph_flops(s->graph, true) * s->batch / 1e9;
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  s->resident_mb = (double)usage.ru_maxrss * 1024 / 1e6;
  return status;
}

/* ---- printing ----------------------------------------------------------------------- */

/* The share of the peak that the round's products need at least: tiles of 4x4 by Winograd's way take (k + 3)^2
 * multiplications a channel, and not 16 k^2. */
static double least_share(const session *s) {
  double flops = 0;
  for (uint32_t i = 0; i < s->graph->nodes_count; i++) {
    const shoal_node *node = &s->graph->nodes[i];
    shoal_flops of = shoal_node_flops(s->graph, node);
    double fraction = (node->window.k_h + 3) / (4.0 * node->window.k_h);
    flops += (double)(of.forward + of.input_gradient + of.weight_gradient) *
             (node->window.k_h > 0 && shoal_winograd_suits(&node->window) ? fraction * fraction : 1);
  }
  return s->batches_per_s * flops * s->batch / 1e9 / s->peak.gflops;
}

/* What the engine takes of the threads that it may. */
static uint32_t threads_used(const session *s) {
  return shoal_engine_threads(shoal_trainer_engine(s->trainer));
}

static shoal_bench_steps steps_of(const session *s) {
  return (shoal_bench_steps){.graph = s->graph,
                             .trainer = s->trainer,
                             .batch = s->batch,
                             .threads = threads_used(s),
                             .rounds = s->rounds,
                             .seconds = s->rounds_seconds,
                             .peak_gflops = s->peak.gflops / s->threads};
}

static shoal_status print_json(const session *s, shoal_error *err) {
  shoal_text line;
  shoal_text_init(&line);
  shoal_json json;
  shoal_json_init(&json, &line);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "net", s->net);
  shoal_json_int(&json, "batch", s->batch);
  shoal_json_int(&json, "threads", threads_used(s));
  shoal_json_text(&json, "kernels", shoal_kernels_get()->name);
  shoal_json_real(&json, "batches_per_s", s->batches_per_s);
  shoal_json_real(&json, "samples_per_s", s->batches_per_s * s->batch);
  shoal_json_real(&json, "gflops", s->gflops);
  shoal_json_real(&json, "peak_gflops", s->peak.gflops);
  shoal_json_real(&json, "peak_share", s->gflops / s->peak.gflops);
  shoal_json_real(&json, "resident_mb", s->resident_mb);
  shoal_json_real(&json, "first_update_s", s->first_update_s);
  shoal_json_int(&json, "windows", s->windows);
  shoal_peak_doubt_json(&s->peak, least_share(s), &json);
  shoal_status status = SHOAL_OK;
  if (s->times) {
    shoal_bench_steps steps = steps_of(s);
    status = shoal_bench_steps_json(&steps, &json, err);
  }
  shoal_json_close(&json, '}');
  if (status == SHOAL_OK) shoal_cli_print_line(&line);
  shoal_text_release(&line);
  return status;
}

static shoal_status print_text(const session *s, shoal_error *err) {
  uint32_t threads = threads_used(s);
  printf("%s, batch %u, %u thread%s, %s kernels\n", s->net, s->batch, threads, threads == 1 ? "" : "s",
         shoal_kernels_get()->name);
  printf("%-13s %.*f batches/s, %s samples/s\n", "speed",
         s->batches_per_s < 100 ? 2 : s->batches_per_s < 1000, s->batches_per_s,
         shoal_human_count((uint64_t)(s->batches_per_s * s->batch + 0.5)).text);
  printf("%-13s %.1f GFLOP/s, %.0f%% of the peak of %.1f\n", "arithmetic", s->gflops,
         100 * s->gflops / s->peak.gflops, s->peak.gflops);
  printf("%-13s %.3f s after the start\n", "first update", s->first_update_s);
  printf("%-13s %.0f MB\n", "memory", s->resident_mb);
  if (s->windows < WINDOWS) printf("%-13s after %u of %d windows\n", "stopped", s->windows, WINDOWS);
  char doubt[SHOAL_PEAK_DOUBT_MAX];
  if (shoal_peak_doubt(&s->peak, least_share(s), doubt)) printf("%-13s %s\n", "warning", doubt);
  if (!s->times) return SHOAL_OK;
  shoal_bench_steps steps = steps_of(s);
  return shoal_bench_steps_print(&steps, err);
}

shoal_status shoal_bench_batch_time(const char *net, uint32_t batch, double seconds, double *batch_s,
                                    shoal_error *err) {
  session s = {.net = net, .batch = batch, .threads = 1, .seconds = seconds};
  shoal_status status = measure(&s, err);
  if (status == SHOAL_OK && is_stopped()) status = shoal_fail(err, SHOAL_STOPPED, "stopped");
  *batch_s = 1 / s.batches_per_s;
  close_session(&s);
  return status;
}

/* ---- losses ------------------------------------------------------------------------- */

static shoal_status print_losses(const session *s, const char *path, bool as_json, shoal_error *err) {
  const shoal_bench_losses config = {.net = s->net, .path = path, .batch = s->batch, .threads = s->threads};
  double losses[SHOAL_BENCH_LOSSES];
  shoal_status status = shoal_bench_losses_run(&config, losses, err);
  if (status != SHOAL_OK) return status;
  shoal_text line;
  shoal_json json;
  shoal_json_begin(&json, &line);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "net", s->net);
  shoal_json_open(&json, "losses", '[');
  for (int i = 0; i < SHOAL_BENCH_LOSSES; i++) {
    if (!as_json) printf("round %-7d loss %.7f\n", i + 1, losses[i]);
    shoal_json_real(&json, NULL, losses[i]);
  }
  shoal_json_close(&json, ']');
  shoal_json_close(&json, '}');
  if (as_json) shoal_cli_print_line(&line);
  shoal_text_release(&line);
  return SHOAL_OK;
}

/* ---- the command -------------------------------------------------------------------- */

typedef struct options {
  const char *net, *losses;
  uint64_t batch, threads;
  double seconds;
  bool per_layer, json;
} options;

static bool parse(options *o, int argc, char **argv, int *status) {
  const shoal_option table[] = {
      {.name = "net",
       .value = "NET",
       .text = &o->net,
       .help = "lenet5, mlp, lstm-ptb, or the file of a model; lenet5 by default"},
      {.name = "batch",
       .value = "N",
       .whole = &o->batch,
       .whole_min = 1,
       .whole_max = SHOAL_BATCH_MAX,
       .help = "samples of a round; by default what the model says"},
      {.name = "losses",
       .value = "FILE",
       .text = &o->losses,
       .help = "measure nothing: write first weights and a batch to FILE (safetensors), and print the losses "
               "of ten rounds on it, for other programs to repeat"},
      {.name = "per-layer", .flag = &o->per_layer, .help = "also where the time of a round goes"},
      {.name = "threads",
       .value = "N",
       .whole = &o->threads,
       .whole_min = 1,
       .whole_max = SHOAL_THREADS_MAX,
       .help = "the most threads to use; by default one for every processor"},
      shoal_bench_option_seconds(&o->seconds, "how long to measure; 5 by default"),
      shoal_bench_option_json(&o->json, "JSON, in one line"),
  };
  const shoal_usage usage = {
      .command = "bench train",
      .synopses = (const char *[]){"[OPTION...]", NULL},
      .about = "Measures how fast this machine trains a network on made-up data: rounds a second, and the "
               "share of the processors' peak that this is.",
      .options = table,
      .options_count = sizeof table / sizeof table[0],
      .examples = "  shoal bench train\n"
                  "  shoal bench train --net lstm-ptb --batch 20 --threads 2 --seconds 10 --json\n"
                  "  shoal bench train --net examples/lenet5.net --per-layer\n",
  };
  shoal_operands operands;
  return shoal_cli_parse(&usage, argc, argv, &operands, status);
}

int shoal_bench_train(int argc, char **argv) {
  options o = {.net = "lenet5", .threads = shoal_cli_threads(), .seconds = 5};
  session s = {.started = shoal_clock_seconds()};
  int exit_status;
  if (!parse(&o, argc, argv, &exit_status)) return exit_status;
  s.net = o.net;
  s.batch = (uint32_t)o.batch;
  s.threads = (uint32_t)o.threads;
  s.times = o.per_layer;
  s.seconds = o.seconds;
  shoal_progress_init(&s.progress, o.json ? NULL : stderr, s.started);
  shoal_stop_catch();
  shoal_error err;
  shoal_status status = shoal_cli_spare_inputs(o.losses, &o.net, 1, &err);
  if (status == SHOAL_OK)
    status = o.losses != NULL ? print_losses(&s, o.losses, o.json, &err) : measure(&s, &err);
  if (status == SHOAL_OK && o.losses == NULL) status = o.json ? print_json(&s, &err) : print_text(&s, &err);
  close_session(&s);
  if (status != SHOAL_OK && status != SHOAL_STOPPED) return shoal_cli_failed("bench train", &err);
  if (is_stopped()) return shoal_cli_stopped("bench train");
  return shoal_cli_finish("bench train", SHOAL_EXIT_OK);
}
