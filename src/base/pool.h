/* pool.h: a fixed set of threads that run a numbered list of tasks.
 *
 * shoal_pool_run(pool, n, f, ctx) calls f(ctx, task, thread) once for every task
 * 0..n-1 and returns when all are done. With more tasks than threads, a free thread
 * takes the next one; otherwise task i is meant for thread i, and the caller takes
 * those whose thread has not come. So a task must not care which thread runs it:
 * thread only picks scratch memory. The caller is thread 0. Between runs the others
 * spin briefly, then sleep. A pool of NULL is the caller alone.
 *
 * Ownership: create, then destroy. Threads: one caller at a time. */
#ifndef SHOAL_BASE_POOL_H
#define SHOAL_BASE_POOL_H

#include <stdint.h>

#include "base/status.h"

typedef struct shoal_pool shoal_pool;
typedef void (*shoal_pool_task)(void *context, uint32_t task, uint32_t thread);

shoal_status shoal_pool_create(shoal_pool **out, uint32_t threads, shoal_error *err);
/* The pool's thread i is number first + i * step of `all` threads that work at the same time. Where there is a core for
 * each of the `all`, waiting threads spin before they sleep, and every thread but the caller stays on the memory node of
 * its number (base/memory_nodes.h). */
typedef struct shoal_pool_place {
  uint32_t first, step, all;
} shoal_pool_place;
shoal_status shoal_pool_create_at(shoal_pool **out, uint32_t threads, shoal_pool_place place,
                                  shoal_error *err);
void shoal_pool_destroy(shoal_pool *pool);
/* How many cores this process may use: fewer than the machine has, in a container. */
uint32_t shoal_pool_cores(void);
uint32_t shoal_pool_threads(const shoal_pool *pool);
void shoal_pool_run(shoal_pool *pool, uint32_t tasks, shoal_pool_task f, void *context);

#endif
