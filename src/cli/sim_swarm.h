/* sim_swarm.h: the half of shoal sim that spreads data instead of training: --swarm and --swarms.
 *
 * Ownership: the options are the caller's. */
#ifndef SHOAL_CLI_SIM_SWARM_H
#define SHOAL_CLI_SIM_SWARM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct shoal_sim_swarm {
  uint64_t members; /* --swarm; 0: not asked for */
  uint64_t swarms;  /* --swarms; 0: not asked for */
  uint64_t seed, threads;
  uint64_t bytes, chunk_bytes, neighbours, slots, pieces;
  double rate, server_rate, latency_ms, churn, killed, corrupt;
  bool mixed, server_leaves, json;
  const char *baseline;
} shoal_sim_swarm;

/* Runs it and prints what came of it; returns the exit status. */
int shoal_sim_swarm_run(const shoal_sim_swarm *options);

#endif
