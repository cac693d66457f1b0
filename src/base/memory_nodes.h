/* memory_nodes.h: machines with several memory nodes, where a processor reaches its own node's memory faster.
 *
 * Memory lies on the node of the thread that writes it first, so a thread that stays on its node has its memory near.
 * Threads are spread over the nodes in order, as many on each as its share of the processors, so that neighbours share
 * one.
 *
 * Ownership: plain values. Threads: any. */
#ifndef SHOAL_BASE_MEMORY_NODES_H
#define SHOAL_BASE_MEMORY_NODES_H

#include <sched.h>
#include <stdint.h>

enum { SHOAL_MEMORY_NODES_MAX = 64 };

typedef struct shoal_memory_nodes {
  uint32_t count; /* with 1, nobody is bound: there is one node, or they are not known */
  cpu_set_t processors[SHOAL_MEMORY_NODES_MAX];
} shoal_memory_nodes;

/* Reads the nodes from a folder such as /sys/devices/system/node, and keeps those processors that are `allowed`. A node
 * without any is left out. */
void shoal_memory_nodes_read(shoal_memory_nodes *out, const char *folder, const cpu_set_t *allowed);
/* The same for this machine and the calling thread's processors. */
void shoal_memory_nodes_here(shoal_memory_nodes *out);
/* Binds the calling thread, number `thread` of `threads` that work at the same time, to its node from now on. */
void shoal_memory_nodes_bind(const shoal_memory_nodes *nodes, uint32_t thread, uint32_t threads);

#endif
