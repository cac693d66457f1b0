/* pool.c: threads that share out tasks as short as a few microseconds.
 *
 * There are two ways to share them. With more tasks than threads, a run is published in one
 * atomic word, the ticket: the number of the run in its upper half and how many of its tasks
 * nobody has taken yet in its lower half. A thread takes a task by lowering the ticket by one
 * with a compare-and-swap. What follows from that:
 *
 *  1. `f`, `context` and `tasks` are written before the ticket and read only by a thread that
 *     holds a task of this run, so no run can end, and no other begin, while they are read.
 *  2. A thread that wakes late finds nothing to take, or a swap that fails because the run's
 *     number changed. Nobody waits for it.
 *  3. `unfinished` reaches zero exactly once a run, and that is the end of the run.
 *
 * Otherwise every thread has a place, and task i is that of thread i: nobody fights for a word that all write. A run
 * is published in `call`, its number and how many places it has. A place is done by whoever sets its `taken` to the
 * run's number: its thread, or the caller when it has done its own and the thread has not come yet. The caller stays
 * until every place of the run was taken and is done, so a thread that comes late finds its place taken, and what a
 * run published does not change while anybody reads it.
 *
 * Waiting starts with a short spin, a quarter of a millisecond or so, because the next run is
 * mostly microseconds away and waking a thread costs up to a hundred of them; it goes on asleep
 * on a condition variable. With more threads than cores nobody spins: the spinner would hold
 * the core that another thread needs.
 *
 * Sleeping loses no wake-up: a sleeper counts itself and then looks at the ticket, holding
 * the lock until it sleeps; a waker changes the ticket and then looks at the count, and
 * takes the lock to signal. All four are sequentially consistent, so one sees the other. */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory_nodes.h"
#include "base/thread.h"

enum { THREADS_MAX = 4096, SPINS_MAX = 10000, PLACES = 1 << 16 };

typedef struct member {
  alignas(64) _Atomic uint64_t taken; /* the last run that somebody has taken this place in, */
  _Atomic uint64_t done;              /* and that its thread has done it in */
  shoal_pool *pool;
  pthread_t handle;
  uint32_t thread; /* 1 and up; the caller is 0 */
} member;

struct shoal_pool {
  alignas(64) _Atomic uint64_t ticket;
  alignas(64) _Atomic uint32_t unfinished;
  alignas(64) _Atomic uint64_t call; /* a run's number, times PLACES, and how many places it has */
  alignas(64) shoal_pool_task f;
  void *context;
  uint32_t tasks;

  uint32_t threads;
  uint32_t started; /* members whose thread exists */
  shoal_pool_place place;
  shoal_memory_nodes nodes;
  uint32_t spins;  /* how long to spin before sleeping; 0 with more threads than cores */
  member *members; /* threads - 1 of them */

  pthread_mutex_t lock;
  pthread_cond_t work; /* a run began, or the pool ends */
  pthread_cond_t done; /* the last task finished */
  _Atomic uint32_t workers_asleep;
  _Atomic bool caller_asleep;
  _Atomic bool ending;
};

static void pause_briefly(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Takes tasks of the current run and does them until none is left. */
static void do_tasks(shoal_pool *pool, uint32_t thread) {
  uint64_t ticket = atomic_load(&pool->ticket);
  for (;;) {
    uint32_t left = (uint32_t)ticket;
    if (left == 0) return;
    if (!atomic_compare_exchange_weak(&pool->ticket, &ticket, ticket - 1)) continue;
    pool->f(pool->context, pool->tasks - left, thread);
    if (atomic_fetch_sub(&pool->unfinished, 1) == 1 && atomic_load(&pool->caller_asleep)) {
      pthread_mutex_lock(&pool->lock);
      pthread_cond_signal(&pool->done);
      pthread_mutex_unlock(&pool->lock);
    }
    ticket = atomic_load(&pool->ticket);
  }
}

/* Whether this thread is the one to do the place in that run. */
static bool take_place(member *place, uint64_t run) {
  uint64_t taken = atomic_load(&place->taken);
  return taken < run && atomic_compare_exchange_strong(&place->taken, &taken, run);
}

static void do_place(shoal_pool *pool, member *self, uint64_t call) {
  uint64_t run = call / PLACES;
  if (self->thread >= call % PLACES || !take_place(self, run)) return;
  pool->f(pool->context, self->thread, self->thread);
  atomic_store(&self->done, run);
  if (!atomic_load(&pool->caller_asleep)) return;
  pthread_mutex_lock(&pool->lock);
  pthread_cond_signal(&pool->done);
  pthread_mutex_unlock(&pool->lock);
}

static bool work_waits(shoal_pool *pool, uint64_t seen) {
  return (uint32_t)atomic_load(&pool->ticket) != 0 || atomic_load(&pool->call) != seen ||
         atomic_load(&pool->ending);
}

/* seen: the last call that the thread knows. */
static void wait_for_work(shoal_pool *pool, uint64_t seen) {
  for (uint32_t i = 0; i < pool->spins; i++) {
    if (work_waits(pool, seen)) return;
    pause_briefly();
  }
  pthread_mutex_lock(&pool->lock);
  atomic_fetch_add(&pool->workers_asleep, 1);
  while (!work_waits(pool, seen)) pthread_cond_wait(&pool->work, &pool->lock);
  atomic_fetch_sub(&pool->workers_asleep, 1);
  pthread_mutex_unlock(&pool->lock);
}

/* Whether the run by tickets is over, or, with a place, whether that is done in this run. */
static bool is_over(shoal_pool *pool, member *place, uint64_t run) {
  return place != NULL ? atomic_load(&place->done) == run : atomic_load(&pool->unfinished) == 0;
}

static void wait_for_end(shoal_pool *pool, member *place, uint64_t run) {
  for (uint32_t i = 0; i < pool->spins; i++) {
    if (is_over(pool, place, run)) return;
    pause_briefly();
  }
  pthread_mutex_lock(&pool->lock);
  atomic_store(&pool->caller_asleep, true);
  while (!is_over(pool, place, run)) pthread_cond_wait(&pool->done, &pool->lock);
  atomic_store(&pool->caller_asleep, false);
  pthread_mutex_unlock(&pool->lock);
}

static void *work(void *argument) {
  member *self = argument;
  shoal_pool *pool = self->pool;
  shoal_memory_nodes_bind(&pool->nodes, pool->place.first + self->thread * pool->place.step, pool->place.all);
  for (uint64_t seen = 0, call; !atomic_load(&pool->ending); seen = call) {
    wait_for_work(pool, seen);
    call = atomic_load(&pool->call);
    if (call != seen) do_place(pool, self, call);
    do_tasks(pool, self->thread);
  }
  return NULL;
}

uint32_t shoal_pool_cores(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return (uint32_t)CPU_COUNT(&set);
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (uint32_t)online : 1;
}

shoal_status shoal_pool_create(shoal_pool **out, uint32_t threads, shoal_error *err) {
  return shoal_pool_create_at(out, threads, (shoal_pool_place){0, 1, threads}, err);
}

shoal_status shoal_pool_create_at(shoal_pool **out, uint32_t threads, shoal_pool_place place,
                                  shoal_error *err) {
  *out = NULL;
  if (threads < 1 || threads > THREADS_MAX)
    return shoal_fail(err, SHOAL_INVALID, "%u threads: must be 1 to %d", threads, THREADS_MAX);
  shoal_pool *pool = aligned_alloc(alignof(shoal_pool), sizeof *pool);
  member *members = aligned_alloc(alignof(member), threads * sizeof *members);
  if (!pool || !members) {
    free(pool);
    free(members);
    return shoal_fail(err, SHOAL_NO_MEMORY, "no memory for %u threads", threads);
  }
  memset(pool, 0, sizeof *pool);
  memset(members, 0, threads * sizeof *members);
  pool->threads = threads;
  pool->members = members;
  bool have_cores = place.all <= shoal_pool_cores();
  pool->place = place;
  pool->spins = have_cores ? SPINS_MAX : 0;
  pool->nodes.count = 1;
  if (have_cores && threads > 1) shoal_memory_nodes_here(&pool->nodes);
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->work, NULL);
  pthread_cond_init(&pool->done, NULL);

  int failure = 0;
  while (!failure && pool->started < threads - 1) {
    member *next = &members[pool->started];
    next->pool = pool;
    next->thread = pool->started + 1;
    failure = shoal_thread_start(&next->handle, work, next);
    pool->started += !failure;
  }
  if (failure) {
    uint32_t started = pool->started + 1;
    shoal_pool_destroy(pool);
    return shoal_fail(err, SHOAL_LIMIT, "only %u of %u threads could be started (%s); ask for fewer", started,
                      threads, strerror(failure));
  }
  *out = pool;
  return SHOAL_OK;
}

void shoal_pool_destroy(shoal_pool *pool) {
  if (!pool) return;
  pthread_mutex_lock(&pool->lock);
  atomic_store(&pool->ending, true);
  pthread_cond_broadcast(&pool->work);
  pthread_mutex_unlock(&pool->lock);
  for (uint32_t i = 0; i < pool->started; i++) pthread_join(pool->members[i].handle, NULL);
  pthread_cond_destroy(&pool->done);
  pthread_cond_destroy(&pool->work);
  pthread_mutex_destroy(&pool->lock);
  free(pool->members);
  free(pool);
}

uint32_t shoal_pool_threads(const shoal_pool *pool) { return pool != NULL ? pool->threads : 1; }

static void wake_workers(shoal_pool *pool) {
  if (atomic_load(&pool->workers_asleep) == 0) return;
  pthread_mutex_lock(&pool->lock);
  pthread_cond_broadcast(&pool->work);
  pthread_mutex_unlock(&pool->lock);
}

static void run_places(shoal_pool *pool, uint32_t places) {
  uint64_t run = atomic_load(&pool->call) / PLACES + 1;
  atomic_store(&pool->call, run * PLACES + places);
  wake_workers(pool);
  pool->f(pool->context, 0, 0);
  bool is_mine[THREADS_MAX];
  for (uint32_t i = 1; i < places; i++) {
    is_mine[i] = take_place(&pool->members[i - 1], run);
    if (is_mine[i]) pool->f(pool->context, i, 0);
  }
  for (uint32_t i = 1; i < places; i++)
    if (!is_mine[i]) wait_for_end(pool, &pool->members[i - 1], run);
}

static void run_tickets(shoal_pool *pool, uint32_t tasks) {
  uint64_t ticket = atomic_load(&pool->ticket);
  SHOAL_ASSERT((uint32_t)ticket == 0 && atomic_load(&pool->unfinished) == 0);
  pool->tasks = tasks;
  atomic_store(&pool->unfinished, tasks);
  uint64_t run = (ticket >> 32) + 1;
  atomic_store(&pool->ticket, run << 32 | tasks);
  wake_workers(pool);
  do_tasks(pool, 0);
  wait_for_end(pool, NULL, 0);
}

void shoal_pool_run(shoal_pool *pool, uint32_t tasks, shoal_pool_task f, void *context) {
  if (shoal_pool_threads(pool) == 1 || tasks <= 1) {
    for (uint32_t task = 0; task < tasks; task++) f(context, task, 0);
    return;
  }
  pool->f = f;
  pool->context = context;
  if (tasks <= pool->threads)
    run_places(pool, tasks);
  else
    run_tickets(pool, tasks);
}
