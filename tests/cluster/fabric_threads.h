/* fabric_threads.h: a fabric (cluster/fabric.h) of threads in one process, for tests.
 *
 * Every pair of ranks has a queue of messages each way. A message that is sent is copied, so sends never
 * wait. The fabric can be told to break at the n-th call of a rank: that call fails, and so do those of
 * all who wait or call later. */
#ifndef SHOAL_TESTS_CLUSTER_FABRIC_THREADS_H
#define SHOAL_TESTS_CLUSTER_FABRIC_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "cluster/fabric.h"

enum { THREADS_MAX = 16 };

typedef struct threads_message {
  struct threads_message *next;
  size_t length;
  char bytes[];
} threads_message;

typedef struct threads_rank {
  struct threads_world *world;
  uint32_t rank;
  uint64_t calls;
} threads_rank;

typedef struct threads_world {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint32_t size;
  threads_rank ranks[THREADS_MAX];
  threads_message *first[THREADS_MAX][THREADS_MAX], **end[THREADS_MAX][THREADS_MAX]; /* [from][to] */
  uint32_t breaking_rank;
  uint64_t breaking_call; /* from 1; 0: never */
  bool broken;
} threads_world;

static inline void threads_init(threads_world *w, uint32_t size) {
  memset(w, 0, sizeof *w);
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->changed, NULL);
  w->size = size;
  for (uint32_t a = 0; a < size; a++)
    for (uint32_t b = 0; b < size; b++) w->end[a][b] = &w->first[a][b];
}

static inline void threads_release(threads_world *w) {
  for (uint32_t a = 0; a < w->size; a++)
    for (uint32_t b = 0; b < w->size; b++)
      for (threads_message *m = w->first[a][b], *next; m != NULL; m = next) {
        next = m->next;
        free(m);
      }
  pthread_mutex_destroy(&w->lock);
  pthread_cond_destroy(&w->changed);
}

/* With the lock held. */
static inline void threads_put(threads_world *w, uint32_t from, uint32_t to, const void *bytes,
                               size_t length) {
  SHOAL_ASSERT(to != from && to < w->size && length > 0);
  threads_message *m = malloc(sizeof *m + length);
  SHOAL_ASSERT(m != NULL);
  m->next = NULL;
  m->length = length;
  memcpy(m->bytes, bytes, length);
  *w->end[from][to] = m;
  w->end[from][to] = &m->next;
  pthread_cond_broadcast(&w->changed);
}

/* With the lock held; false when the world broke. */
static inline bool threads_take(threads_world *w, uint32_t from, uint32_t to, void *bytes, size_t length) {
  SHOAL_ASSERT(to != from && from < w->size && length > 0);
  while (w->first[from][to] == NULL && !w->broken) pthread_cond_wait(&w->changed, &w->lock);
  if (w->broken) return false;
  threads_message *m = w->first[from][to];
  SHOAL_ASSERT(m->length == length);
  memcpy(bytes, m->bytes, length);
  w->first[from][to] = m->next;
  if (m->next == NULL) w->end[from][to] = &w->first[from][to];
  free(m);
  return true;
}

/* With the lock held. Whether this call may be made. */
static inline bool threads_call(threads_rank *r) {
  threads_world *w = r->world;
  if (++r->calls == w->breaking_call && r->rank == w->breaking_rank) {
    w->broken = true;
    pthread_cond_broadcast(&w->changed);
  }
  return !w->broken;
}

static inline shoal_status threads_answer(bool good, const threads_rank *r, shoal_error *err) {
  return good ? SHOAL_OK : shoal_fail(err, SHOAL_IO, "rank %u: the fabric broke", r->rank);
}

static inline shoal_status threads_exchange(void *self, const shoal_piece *sends, uint32_t sends_count,
                                            const shoal_piece *receives, uint32_t receives_count,
                                            shoal_error *err) {
  threads_rank *r = self;
  threads_world *w = r->world;
  pthread_mutex_lock(&w->lock);
  bool good = threads_call(r);
  for (uint32_t i = 0; good && i < sends_count; i++)
    threads_put(w, r->rank, sends[i].rank, sends[i].bytes, sends[i].length);
  for (uint32_t i = 0; good && i < receives_count; i++)
    good = threads_take(w, receives[i].rank, r->rank, receives[i].bytes, receives[i].length);
  pthread_mutex_unlock(&w->lock);
  return threads_answer(good, r, err);
}

static inline shoal_status threads_broadcast(void *self, void *bytes, size_t length, shoal_error *err) {
  threads_rank *r = self;
  threads_world *w = r->world;
  pthread_mutex_lock(&w->lock);
  bool good = threads_call(r);
  for (uint32_t to = 1; good && r->rank == 0 && to < w->size; to++) threads_put(w, 0, to, bytes, length);
  if (good && r->rank > 0) good = threads_take(w, 0, r->rank, bytes, length);
  pthread_mutex_unlock(&w->lock);
  return threads_answer(good, r, err);
}

static inline void threads_close(void *self) { (void)self; }

static inline shoal_fabric threads_fabric(threads_world *w, uint32_t rank) {
  w->ranks[rank] = (threads_rank){.world = w, .rank = rank};
  return (shoal_fabric){.self = &w->ranks[rank],
                        .rank = rank,
                        .size = w->size,
                        .exchange = threads_exchange,
                        .broadcast = threads_broadcast,
                        .close = threads_close};
}

#endif
