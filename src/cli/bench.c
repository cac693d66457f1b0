/* bench.c: shoal bench: how fast this machine computes, as a share of what it could do. */
#include "cli/bench.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"

static const struct {
  const char *name;
  int (*run)(const shoal_bench_options *o);
} measurements[] = {
    {"train", shoal_bench_train},
    {"gemm", shoal_bench_gemm},
};
enum { MEASUREMENTS_COUNT = sizeof measurements / sizeof measurements[0] };

/* The option of `train` that a line for another measurement has, or NULL. */
static const char *only_for_train(const shoal_bench_options *o) {
  if (o->net) return "--net";
  if (o->batch) return "--batch";
  return o->per_layer ? "--per-layer" : NULL;
}

/* Gives the place in measurements[]. */
static bool parse(shoal_bench_options *o, size_t *measurement, int argc, char **argv, int *status) {
  const shoal_option options[] = {
      {.name = "For train"},
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
      {.name = "per-layer", .flag = &o->per_layer, .help = "also where the time of a round goes"},
      {.name = "For both"},
      {.name = "threads",
       .value = "N",
       .whole = &o->threads,
       .whole_min = 1,
       .whole_max = SHOAL_THREADS_MAX,
       .help = "by default one for every processor, and one alone for gemm, where each computes products "
               "of its own"},
      {.name = "seconds",
       .value = "S",
       .real = &o->seconds,
       .real_min = 0.05,
       .real_max = 3600,
       .help = "how long to measure; 5 by default"},
      {.name = "json", .flag = &o->json, .help = "JSON: one line for train, one a product for gemm"},
  };
  const shoal_usage usage = {
      .command = "bench",
      .synopses = (const char *[]){"train [OPTION...]", "gemm [OPTION...]", NULL},
      .about = "train measures how fast this machine trains a network on made-up data: rounds a second, and "
               "the share of the processors' peak that this is. gemm measures matrix products of the sizes "
               "that networks have.",
      .operand = "what to measure (train or gemm)",
      .operands_min = 1,
      .operands_max = 1,
      .options = options,
      .options_count = sizeof options / sizeof options[0],
      .examples = "  shoal bench train\n"
                  "  shoal bench train --net lstm-ptb --batch 20 --threads 2 --seconds 10 --json\n"
                  "  shoal bench train --net examples/lenet5.net --per-layer\n"
                  "  shoal bench gemm --seconds 20\n",
  };
  shoal_operands operands;
  if (!shoal_cli_parse(&usage, argc, argv, &operands, status)) return false;
  *measurement = 0;
  while (*measurement < MEASUREMENTS_COUNT && strcmp(operands.at[0], measurements[*measurement].name) != 0)
    ++*measurement;
  shoal_error err;
  if (*measurement == MEASUREMENTS_COUNT)
    shoal_fail(&err, SHOAL_INVALID, "unknown measurement '%s'; there are train and gemm", operands.at[0]);
  else if (measurements[*measurement].run != shoal_bench_train && only_for_train(o))
    shoal_fail(&err, SHOAL_INVALID, "%s is only for 'shoal bench train'", only_for_train(o));
  else
    return true;
  *status = shoal_cli_misused("bench", &err);
  return false;
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
  *peak = (shoal_peak){.rounds = 1000};
  return shoal_pool_create(&peak->pool, threads, err);
}

void shoal_peak_close(shoal_peak *peak) { shoal_pool_destroy(peak->pool); }

void shoal_peak_measure(shoal_peak *peak) {
  uint32_t threads = shoal_pool_threads(peak->pool);
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
    if (flops / seconds / 1e9 > peak->gflops) peak->gflops = flops / seconds / 1e9;
    return;
  }
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
  shoal_bench_options o = {.seconds = 5, .started = shoal_clock_seconds()};
  size_t measurement;
  int exit_status;
  if (!parse(&o, &measurement, argc, argv, &exit_status)) return exit_status;
  return measurements[measurement].run(&o);
}

const shoal_command shoal_command_bench = {"bench", "how fast this machine trains", run};
