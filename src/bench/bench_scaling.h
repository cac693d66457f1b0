/* bench_scaling.h: what the files of `shoal bench scaling` share: a table of runs.
 *
 *   bench_scaling.c         options, and the runs of real processes
 *   bench_scaling_sim.c     the same runs in the simulator
 *   bench_scaling_print.c   the table for people, as CSV, as JSON lines, and as a picture
 *
 * Threads: none. */
#ifndef SHOAL_BENCH_BENCH_SCALING_H
#define SHOAL_BENCH_BENCH_SCALING_H

#include "bench/bench_cluster.h"
#include "proto/mode.h"

/* One mode with one number of workers. What is not known is NaN. */
typedef struct shoal_scaling_row {
  const char *mode;
  uint32_t workers;
  bool ran;    /* as real processes */
  bool waited; /* instead of computing */
  shoal_bench_speed speed;
  double speedup;    /* against one worker in the same mode */
  double alone;      /* against one machine without a cluster: one thread */
  double efficiency; /* speedup / workers */
  double simulated_per_s, simulated_speedup;
  double difference; /* of the simulated batches/s from the real ones, as a share */
} shoal_scaling_row;

typedef struct shoal_scaling {
  const char *net, *wire, *transport;
  uint32_t batch, ps;
  double rate_mbit; /* of every link; 0: not shaped */
  double latency_s; /* simulated */
  double batch_s;   /* one thread's time for a batch */
  /* The model, for the simulator: bytes of a contribution and of the weights, and a parameter server's
   * time for taking one and giving the other. */
  double push_bytes, pull_bytes, contribution_s;
  bool simulates;
  shoal_scaling_row *rows;
  size_t rows_count;
} shoal_scaling;

/* Batches a second of all workers in a simulated cluster; NaN and err when it broke a rule. */
double shoal_scaling_simulate(const shoal_scaling *scaling, const shoal_mode *mode, uint32_t workers,
                              shoal_error *err);

/* What follows from the row's own numbers and those of one worker, which comes before it. */
void shoal_scaling_derive(const shoal_scaling *scaling, shoal_scaling_row *row);

void shoal_scaling_print_head(const shoal_scaling *scaling);
void shoal_scaling_print_row(const shoal_scaling *scaling, const shoal_scaling_row *row);
void shoal_scaling_print_json(const shoal_scaling *scaling, const shoal_scaling_row *row);
shoal_status shoal_scaling_write_csv(const shoal_scaling *scaling, const char *path, shoal_error *err);
shoal_status shoal_scaling_write_svg(const shoal_scaling *scaling, const char *path, shoal_error *err);

#endif
