/* bench_cluster.h: a cluster of processes on this machine, run for a while and measured.
 *
 * Every worker computes batches of its own, as in the thesis on scaling: so the cluster's work grows
 * with the number of workers. In sync and stale mode a round is one batch of every worker, in async a
 * unit is a batch, in local mode it is H batches. What is counted is batches, of all workers together.
 *
 * Workers compute with one thread each, or, where there are more of them than processors, wait as long
 * as computing would take. Messages are real in both cases. Data is made up (toy:noise), and no epoch
 * ends while it runs.
 *
 * A signal (Ctrl-C) that the command has caught (stop.h) ends a run after the round at hand, and those that
 * would follow; all processes are gone when run returns.
 *
 * Ownership: everything is the caller's. Threads: one caller. */
#ifndef SHOAL_BENCH_BENCH_CLUSTER_H
#define SHOAL_BENCH_BENCH_CLUSTER_H

#include "cli/links.h"
#include "nn/model.h"

typedef struct shoal_bench_cluster {
  shoal_model *model;                  /* batch, shards and epochs of its recipe are overwritten */
  uint32_t batch;                      /* of a worker */
  const char *mode, *wire, *transport; /* as shoal train takes them; NULL: its default */
  uint32_t workers, ps;                /* at most SHOAL_BENCH_WORKERS_MAX workers */
  double wait_s;                       /* workers wait so long a batch; 0: they compute */
  double warm_up_s;                    /* after every worker has done something */
  double seconds;                      /* measured, from round to round */
  double save_s;                       /* how often a version is made safe */
  const shoal_links *links; /* machine 0 .. ps - 1 are parameter servers, then workers; NULL: loopback */
} shoal_bench_cluster;

typedef struct shoal_bench_speed {
  double seconds; /* that were measured */
  double batches; /* of all workers, in these */
  double batches_per_s;
  double bytes_per_s; /* that parameter servers received and sent, headers included */
  double bytes_a_batch;
} shoal_bench_speed;

enum { SHOAL_BENCH_WORKERS_MAX = 256 };

/* SHOAL_STOPPED: a signal came; shoal_stop_signal says which. */
shoal_status shoal_bench_cluster_run(const shoal_bench_cluster *config, shoal_bench_speed *out,
                                     shoal_error *err);

#endif
