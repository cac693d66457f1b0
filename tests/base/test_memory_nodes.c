/* Memory nodes: read from a folder such as the kernel's, and threads that stay on theirs. */
#include "base/memory_nodes.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static char folder[] = "/tmp/shoal-nodes-XXXXXX";

static void write_node(uint32_t node, const char *list) {
  char path[256];
  snprintf(path, sizeof path, "%s/node%u", folder, node);
  mkdir(path, 0700);
  snprintf(path, sizeof path, "%s/node%u/cpulist", folder, node);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(list, file);
  fclose(file);
}

static cpu_set_t set_of(const int *processors, int count) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int i = 0; i < count; i++) CPU_SET(processors[i], &set);
  return set;
}

static void nodes_have_the_processors_that_are_allowed(void **state) {
  (void)state;
  write_node(0, "0-3,16-17\n");
  write_node(1, "4-7\n");
  write_node(2, "\n"); /* memory without processors */
  write_node(5, "8,x\n");
  cpu_set_t allowed = set_of((int[]){1, 3, 5, 8, 17}, 5);
  shoal_memory_nodes nodes;
  shoal_memory_nodes_read(&nodes, folder, &allowed);
  assert_int_equal(nodes.count, 3);
  const cpu_set_t expected[] = {set_of((int[]){1, 3, 17}, 3), set_of((int[]){5}, 1), set_of((int[]){8}, 1)};
  for (int i = 0; i < 3; i++) assert_true(CPU_EQUAL(&nodes.processors[i], &expected[i]));
  shoal_memory_nodes_read(&nodes, "/tmp/shoal-no-such-folder", &allowed);
  assert_int_equal(nodes.count, 1);
}

typedef struct binding {
  const shoal_memory_nodes *nodes;
  uint32_t thread, threads;
  cpu_set_t set; /* that the thread has then */
} binding;

static void *bind_and_look(void *argument) {
  binding *b = argument;
  shoal_memory_nodes_bind(b->nodes, b->thread, b->threads);
  assert_int_equal(sched_getaffinity(0, sizeof b->set, &b->set), 0);
  return NULL;
}

static cpu_set_t bound(const shoal_memory_nodes *nodes, uint32_t thread, uint32_t threads) {
  binding b = {nodes, thread, threads, {{0}}};
  pthread_t handle;
  assert_int_equal(pthread_create(&handle, NULL, bind_and_look, &b), 0);
  pthread_join(handle, NULL);
  return b.set;
}

/* Nodes of processors that this machine has: the first three quarters of them, and the others. */
static void a_thread_stays_on_its_node(void **state) {
  (void)state;
  cpu_set_t all;
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  uint32_t count = (uint32_t)CPU_COUNT(&all), first = count - count / 4 - (count < 4 && count > 1),
           placed = 0;
  if (count < 2) skip();
  shoal_memory_nodes nodes = {.count = 2};
  CPU_ZERO(&nodes.processors[0]);
  CPU_ZERO(&nodes.processors[1]);
  for (int i = 0; i < CPU_SETSIZE; i++)
    if (CPU_ISSET(i, &all)) CPU_SET(i, &nodes.processors[placed++ >= first]);
  for (uint32_t thread = 0; thread < count; thread++) {
    cpu_set_t set = bound(&nodes, thread, count);
    assert_true(CPU_EQUAL(&set, &nodes.processors[thread >= first]));
  }
  nodes.count = 1;
  cpu_set_t set = bound(&nodes, count - 1, count);
  assert_true(CPU_EQUAL(&set, &all));
}

int main(void) {
  if (mkdtemp(folder) == NULL) return 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nodes_have_the_processors_that_are_allowed),
      cmocka_unit_test(a_thread_stays_on_its_node),
  };
  int failures = RUN_TESTS(tests);
  char command[256];
  snprintf(command, sizeof command, "rm -r %s", folder);
  return failures + (system(command) != 0);
}
