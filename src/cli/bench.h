/* bench.h: what the measurements of `shoal bench` share.
 *
 * A measurement is a file with one function that gets the options, prints, and returns the
 * exit status. Speeds are told as a share of the peak: what the processors reach in the same
 * run with multiply-adds from registers alone.
 *
 * Ownership: a shoal_peak is opened, then closed. Threads: one caller. */
#ifndef SHOAL_CLI_BENCH_H
#define SHOAL_CLI_BENCH_H

#include "base/json.h"
#include "base/pool.h"
#include "nn/trainer.h"

typedef struct shoal_bench_options {
  const char *net;         /* train; NULL: the default */
  uint64_t batch;          /* train; 0: the network's own */
  uint64_t threads;        /* 0: the measurement's default */
  double seconds, started; /* started: the clock when the program began */
  bool per_layer;          /* train */
  bool json;
} shoal_bench_options;

int shoal_bench_train(const shoal_bench_options *o);
int shoal_bench_gemm(const shoal_bench_options *o);

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
