/* bench_volunteers.h: a crowd of volunteers that are none, to measure a server with.
 *
 * Each has a control connection of its own, registers, beats, reports, and works when it is told to: a worker
 * (cluster/worker_node.h) that pretends to compute, as a thread. What the server sees of them is what it sees of
 * real ones. The data of their jobs is opened by its name on this machine: for made-up sets ("toy:wave").
 *
 * Ownership: start, then end; the link is borrowed until then. Threads: one inside has all control
 * connections, and every one that works has its own; all calls are for one other thread. */
#ifndef SHOAL_BENCH_BENCH_VOLUNTEERS_H
#define SHOAL_BENCH_BENCH_VOLUNTEERS_H

#include "wire/link.h"

enum { SHOAL_BENCH_VOLUNTEERS_MAX = 20000 };

typedef struct shoal_bench_volunteers shoal_bench_volunteers;

typedef struct shoal_bench_volunteers_config {
  const shoal_link *link;
  uint32_t count;
  double batch_s;  /* what a worker takes for a batch; it sleeps so long */
  double report_s; /* how often each says how it is, though nothing has changed */
} shoal_bench_volunteers_config;

typedef struct shoal_bench_volunteers_view {
  uint32_t connected, working;
  uint64_t lost;  /* connections that were open and closed */
  uint64_t units; /* that were pretended to be computed, so far */
} shoal_bench_volunteers_view;

shoal_status shoal_bench_volunteers_start(shoal_bench_volunteers **out,
                                          const shoal_bench_volunteers_config *config, shoal_error *err);
void shoal_bench_volunteers_look(shoal_bench_volunteers *crowd, shoal_bench_volunteers_view *out);
void shoal_bench_volunteers_end(shoal_bench_volunteers *crowd);

#endif
