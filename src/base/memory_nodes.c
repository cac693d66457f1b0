/* memory_nodes.c: see memory_nodes.h. */
#include "base/memory_nodes.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"

/* Reads a list such as 0-3,8; it stops at the first thing that is not a number. */
static void parse_list(const char *text, cpu_set_t *out) {
  CPU_ZERO(out);
  for (char *end; *text != '\0'; text = end + 1) {
    unsigned long first = strtoul(text, &end, 10), last = first;
    if (end == text) return;
    if (*end == '-') last = strtoul(end + 1, &end, 10);
    for (unsigned long i = first; i <= last && i < CPU_SETSIZE; i++) CPU_SET(i, out);
    if (*end != ',') return;
  }
}

static bool read_node(const char *folder, uint32_t node, cpu_set_t *out) {
  char path[4096], list[4096];
  snprintf(path, sizeof path, "%s/node%u/cpulist", folder, node);
  FILE *file = fopen(path, "r");
  if (file == NULL) return false;
  bool is_read = fgets(list, sizeof list, file) != NULL;
  fclose(file);
  if (is_read) parse_list(list, out);
  return is_read;
}

void shoal_memory_nodes_read(shoal_memory_nodes *out, const char *folder, const cpu_set_t *allowed) {
  out->count = 0;
  for (uint32_t node = 0; node < SHOAL_MEMORY_NODES_MAX; node++) {
    cpu_set_t *processors = &out->processors[out->count];
    if (!read_node(folder, node, processors)) continue;
    CPU_AND(processors, processors, allowed);
    if (CPU_COUNT(processors) > 0) out->count++;
  }
  if (out->count > 0) return;
  out->count = 1;
  out->processors[0] = *allowed;
}

void shoal_memory_nodes_here(shoal_memory_nodes *out) {
  cpu_set_t allowed;
  out->count = 1;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    shoal_memory_nodes_read(out, "/sys/devices/system/node", &allowed);
}

void shoal_memory_nodes_bind(const shoal_memory_nodes *nodes, uint32_t thread, uint32_t threads) {
  if (nodes->count < 2) return;
  SHOAL_ASSERT(thread < threads);
  uint64_t all = 0;
  for (uint32_t i = 0; i < nodes->count; i++) all += (uint64_t)CPU_COUNT(&nodes->processors[i]);
  uint64_t place = all * thread / threads; /* a node gets as many threads as its share of the processors */
  uint32_t node = 0;
  while (place >= (uint64_t)CPU_COUNT(&nodes->processors[node]))
    place -= (uint64_t)CPU_COUNT(&nodes->processors[node++]);
  sched_setaffinity(0, sizeof(cpu_set_t), &nodes->processors[node]); /* on failure the thread stays unbound */
}
