/* bench.h: what the measurements of `shoal bench` share.
 *
 * A measurement is a file with one function that gets the words after its name, with options of its
 * own, prints, and returns the exit status. Speeds of computing are told as a share of the peak: what
 * the processors reach in the same run with multiply-adds from registers alone.
 *
 * Ownership: a shoal_peak is opened, then closed. Threads: one caller. */
#ifndef SHOAL_CLI_BENCH_H
#define SHOAL_CLI_BENCH_H

#include "base/json.h"
#include "base/pool.h"
#include "cli/options.h"
#include "nn/trainer.h"

int shoal_bench_train(int argc, char **argv);
int shoal_bench_gemm(int argc, char **argv);
int shoal_bench_ps(int argc, char **argv);
int shoal_bench_scaling(int argc, char **argv);
int shoal_bench_platform(int argc, char **argv);
int shoal_bench_data(int argc, char **argv);
int shoal_bench_attack(int argc, char **argv);
int shoal_bench_envs(int argc, char **argv);

/* Lines that several tables of options have. */
shoal_option shoal_bench_option_seconds(double *seconds, const char *help);
shoal_option shoal_bench_option_json(bool *json, const char *help);

/* ---- networks (bench_train.c) ---- */

/* lenet5, mlp, lstm-ptb, or the file of a model. */
shoal_status shoal_bench_network(shoal_model **out, const char *name, shoal_error *err);
/* How long one thread takes for a batch on made-up data, measured for `seconds`; the network's own
 * batch where that is 0. */
shoal_status shoal_bench_batch_time(const char *net, uint32_t batch, double seconds, double *batch_s,
                                    shoal_error *err);

/* ---- the peak ---- */

typedef struct shoal_peak {
  shoal_pool *pool;
  uint64_t rounds;
  double gflops; /* the best seen, of all threads together */
} shoal_peak;

shoal_status shoal_peak_open(shoal_peak *peak, uint32_t threads, shoal_error *err);
void shoal_peak_close(shoal_peak *peak);
/* One try of about 50 ms on all threads. Tried between the windows of a measurement, other
 * work on the machine slows down both. */
void shoal_peak_measure(shoal_peak *peak);

/* Sorts the values. */
double shoal_bench_median(double *values, size_t count);

/* ---- bench train --per-layer (bench_steps.c) ---- */

/* What the trainer's threads did in `rounds` rounds that took `seconds`; peak_gflops is one
 * thread's. `trainer` was created with config.times, and was reset before the rounds. */
typedef struct shoal_bench_steps {
  const shoal_graph *graph;
  const shoal_trainer *trainer;
  uint32_t batch, threads;
  uint64_t rounds;
  double seconds, peak_gflops;
} shoal_bench_steps;

shoal_status shoal_bench_steps_print(const shoal_bench_steps *s, shoal_error *err);
/* The array "steps" of the object that is open. */
shoal_status shoal_bench_steps_json(const shoal_bench_steps *s, shoal_json *json, shoal_error *err);

#endif
