/* bench.c: shoal bench: how fast this machine is, and what the measurements share. */
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"

static const struct {
  const char *name;
  int (*run)(int argc, char **argv);
} measurements[] = {
    {"train", shoal_bench_train},     {"gemm", shoal_bench_gemm},         {"ps", shoal_bench_ps},
    {"scaling", shoal_bench_scaling}, {"platform", shoal_bench_platform}, {"data", shoal_bench_data},
    {"attack", shoal_bench_attack},   {"envs", shoal_bench_envs},
};
enum { MEASUREMENTS_COUNT = sizeof measurements / sizeof measurements[0] };

shoal_option shoal_bench_option_seconds(double *seconds, const char *help) {
  return (shoal_option){.name = "seconds",
                        .value = "SECONDS",
                        .real = seconds,
                        .real_min = 0.05,
                        .real_max = 3600,
                        .help = help};
}

shoal_option shoal_bench_option_json(bool *json, const char *help) {
  return (shoal_option){.name = "json", .flag = json, .help = help};
}

/* Without the name of a measurement there is only the help. */
static int overview(int argc, char **argv) {
  const shoal_usage usage = {
      .command = "bench",
      .synopses = (const char *[]){"train [OPTION...]", "gemm [OPTION...]", "ps [OPTION...]",
                                   "scaling [OPTION...]", "platform LINK [OPTION...]", "data [OPTION...]",
                                   "attack [OPTION...]", "envs [OPTION...]", NULL},
      .about =
          "train measures how fast this machine trains a network on made-up data: rounds a second, and "
          "the share of the processors' peak that this is. gemm measures matrix products of the sizes "
          "that networks have. ps measures how many bytes a second a parameter server moves. scaling "
          "measures clusters of more and more workers: batches a second, and the speedup. platform measures "
          "how soon a server answers while many volunteers work for it. data measures how soon many workers "
          "have a "
          "data set. attack trains with bad workers under "
          "all attacks and defences. envs measures how fast environments are stepped. "
          "Each has --help of its own: shoal bench train --help.",
      .operand = "what to measure (train, gemm, ps, scaling, platform, data, attack or envs)",
      .operands_min = 1,
      .operands_max = 1,
      .examples = "  shoal bench train\n"
                  "  shoal bench gemm --seconds 20\n"
                  "  shoal bench ps\n"
                  "  shoal bench scaling --workers 1,2,5,10 --mode sync,async\n",
  };
  shoal_operands operands;
  int status;
  if (!shoal_cli_parse(&usage, argc, argv, &operands, &status)) return status;
  shoal_error err;
  shoal_fail(&err, SHOAL_INVALID,
             "unknown measurement '%s'; there are train, gemm, ps, scaling, platform, data, attack and envs",
             operands.at[0]);
  return shoal_cli_misused("bench", &err);
}

/* ---- the peak ----------------------------------------------------------------------- */

typedef struct spinning {
  const shoal_kernels *kernels;
  uint64_t rounds;
  double flops[SHOAL_THREADS_MAX];
} spinning;

static void spin_task(void *context, uint32_t task, uint32_t thread) {
  (void)thread;
  spinning *s = context;
  s->flops[task] = s->kernels->spin(s->rounds);
}

shoal_status shoal_peak_open(shoal_peak *peak, uint32_t threads, shoal_error *err) {
  *peak = (shoal_peak){.rounds = 1000, .threads = threads};
  return shoal_pool_create(&peak->pool, threads, err);
}

void shoal_peak_close(shoal_peak *peak) { shoal_pool_destroy(peak->pool); }

static void measure_threads(shoal_peak *peak, uint32_t threads, double *best) {
  for (;;) {
    spinning s = {.kernels = shoal_kernels_get(), .rounds = peak->rounds};
    double start = shoal_clock_seconds();
    shoal_pool_run(peak->pool, threads, spin_task, &s);
    double seconds = shoal_clock_seconds() - start;
    if (seconds < 0.04 && peak->rounds < UINT64_MAX / 4) {
      peak->rounds *= 2;
      continue;
    }
    double flops = 0;
    for (uint32_t t = 0; t < threads; t++) flops += s.flops[t];
    if (flops / seconds / 1e9 > *best) *best = flops / seconds / 1e9;
    return;
  }
}

void shoal_peak_measure(shoal_peak *peak) {
  measure_threads(peak, peak->threads, &peak->gflops);
  if (peak->threads > 1)
    measure_threads(peak, 1, &peak->one_gflops);
  else
    peak->one_gflops = peak->gflops;
}

/* Two processors may be one core, which then does the work of little more than one. */
static bool processors_share_cores(void) {
  FILE *file = fopen("/sys/devices/system/cpu/smt/active", "r");
  bool shared = file != NULL && fgetc(file) == '1';
  if (file != NULL) fclose(file);
  return shared;
}

bool shoal_peak_doubt(const shoal_peak *peak, double share, char text[SHOAL_PEAK_DOUBT_MAX]) {
  /* All cores at work are slower than one alone, by less than this on a machine that does nothing else. */
  const double all_of_alone_least = 0.6, more_than_all = 1.05;
  static const char advice[] =
      "other programs were running, or the processors were slowed down. The share of the peak "
      "means nothing then; end other programs and measure again";
  uint32_t cores = shoal_pool_cores(), most = peak->threads < cores ? peak->threads : cores;
  double least = processors_share_cores() ? most / 2.0 : most, times = peak->gflops / peak->one_gflops;
  char usual[32];
  snprintf(usual, sizeof usual, least < most ? "%.0f to %u" : "about %.0f", least, most);
  if (peak->threads > 1 && (times < all_of_alone_least * least || times > most / all_of_alone_least))
    snprintf(text, SHOAL_PEAK_DOUBT_MAX,
             "%u threads multiply and add %.1f times as fast as one, where %s times is usual: %s",
             peak->threads, times, usual, advice);
  else if (share > more_than_all)
    snprintf(text, SHOAL_PEAK_DOUBT_MAX,
             "what was measured takes %.0f%% of the peak at least, more than there is: %s", 100 * share,
             advice);
  else
    return false;
  return true;
}

void shoal_peak_doubt_json(const shoal_peak *peak, double share, shoal_json *json) {
  char text[SHOAL_PEAK_DOUBT_MAX];
  if (shoal_peak_doubt(peak, share, text))
    shoal_json_text(json, "warning", text);
  else
    shoal_json_null(json, "warning");
}

static int compare_reals(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double shoal_bench_median(double *values, size_t count) {
  qsort(values, count, sizeof *values, compare_reals);
  return values[count / 2];
}

static int run(int argc, char **argv) {
  for (int i = 0; argc > 0 && i < MEASUREMENTS_COUNT; i++)
    if (strcmp(argv[0], measurements[i].name) == 0) return measurements[i].run(argc - 1, argv + 1);
  return overview(argc, argv);
}

const shoal_command shoal_command_bench = {"bench", "how fast this machine trains, alone or as a cluster",
                                           run};
