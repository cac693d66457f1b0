/* bench_data.h: the processes of `shoal bench data`: a server and workers, each with a network of its own.
 *
 * The data is noise (data/specimen.h) in memory that all processes share. A worker compares what comes with
 * its hash and keeps of it that it is here: where its bytes would lie on a disk of its own, they are the
 * shared ones. Everything that goes over a link is real, and so are the hashes.
 *
 *   swarm    members of a swarm (cluster/swarm_node.h, server/swarm_hall.h)
 *   server   one server that sends every worker everything, to all at the same time
 *   tree     who has everything sends everything to the next who has nothing: 1, 2, 4, 8 ... have it
 *
 * Ownership: everything is the caller's. Threads: one caller; processes are forked. */
#ifndef SHOAL_BENCH_BENCH_DATA_H
#define SHOAL_BENCH_BENCH_DATA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/links.h"
#include "data/specimen.h"

enum { SHOAL_BENCH_DATA_WORKERS_MAX = 128 };

typedef enum shoal_data_way {
  SHOAL_DATA_SWARM,
  SHOAL_DATA_SERVER,
  SHOAL_DATA_TREE,
  SHOAL_DATA_WAYS
} shoal_data_way;

/* What a process tells; the server is number 0. */
typedef struct shoal_data_slot {
  _Atomic uint32_t ready, done, failed;
  _Atomic uint64_t from_server, from_peers, sent; /* bytes of data; sent: all that left over its link */
  _Atomic uint32_t here, bad;                     /* chunks */
  _Atomic uint32_t wrong; /* chunks that are here and are not the data: there must be none */
  double done_at;         /* by base/clock.h, before `done` */
  char text[160];         /* why it failed, before `failed` */
} shoal_data_slot;

typedef struct shoal_data_board {
  _Atomic uint32_t go, over;
  shoal_data_slot slots[1 + SHOAL_BENCH_DATA_WORKERS_MAX];
} shoal_data_board;

typedef struct shoal_data_run {
  shoal_data_way way;
  uint32_t workers;
  const shoal_links *links; /* machine 0 is the server's */
  const shoal_specimen *specimen;
  uint32_t bad; /* the last so many workers give corrupted chunks */
  shoal_data_board *board;
} shoal_data_run;

/* In a process of its own: enters its network, works until the board says that it is over, and exits. */
_Noreturn void shoal_data_process(const shoal_data_run *run, uint32_t number);

#endif
