/* bench.h: what the measurements of `shoal bench` share.
 *
 * A measurement is a file with one function that gets the words after its name, with options of its
 * own, prints, and returns the exit status. Speeds of computing are told as a share of the peak: what
 * the processors reach in the same run with multiply-adds from registers alone.
 *
 * Ownership: a shoal_peak is opened, then closed. Threads: one caller. */
#ifndef SHOAL_BENCH_BENCH_H
#define SHOAL_BENCH_BENCH_H

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

/* ---- the time of a batch (bench_train.c) ---- */

/* How long one thread takes for a batch on made-up data, measured for `seconds`; the network's own
 * batch where that is 0. */
shoal_status shoal_bench_batch_time(const char *net, uint32_t batch, double seconds, double *batch_s,
                                    shoal_error *err);

/* ---- bench train --losses (bench_losses.c) ---- */

typedef struct shoal_bench_losses {
  const char *net, *path; /* the file to write */
  uint32_t batch, threads;
} shoal_bench_losses;

enum { SHOAL_BENCH_LOSSES = 10 };
/* The losses of the first rounds, all on one batch; the file gets the weights that they begin with, and the batch. */
shoal_status shoal_bench_losses_run(const shoal_bench_losses *config, double losses[SHOAL_BENCH_LOSSES],
                                    shoal_error *err);

/* ---- the peak ---- */

typedef struct shoal_peak {
  shoal_pool *pool;
  uint64_t rounds;
  uint32_t threads;
  double gflops;     /* the best seen, of all threads together */
  double one_gflops; /* and of one thread alone */
} shoal_peak;

shoal_status shoal_peak_open(shoal_peak *peak, uint32_t threads, shoal_error *err);
void shoal_peak_close(shoal_peak *peak);
/* Measures all threads for about 50 ms, and then one thread alone. Tried between the windows of a measurement, other
 * work on the machine slows down both. */
void shoal_peak_measure(shoal_peak *peak);
/* Returns true if the measured peak cannot be right, and writes a sentence that says why and what to do. `share`: the
 * part of the peak that the measured work needs at least; above 1 is impossible. */
enum { SHOAL_PEAK_DOUBT_MAX = 320 };
bool shoal_peak_doubt(const shoal_peak *peak, double share, char text[SHOAL_PEAK_DOUBT_MAX]);
/* The field "warning": that sentence, or null. */
void shoal_peak_doubt_json(const shoal_peak *peak, double share, shoal_json *json);

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
