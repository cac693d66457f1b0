/* pool.h: a fixed set of threads that run a numbered list of tasks.
 *
 * shoal_pool_run(pool, n, f, ctx) calls f(ctx, task, thread) once for every task
 * 0..n-1 and returns when all are done. Threads take the next task when they are
 * free, so a task must not care which thread runs it: thread only picks scratch
 * memory. The caller is thread 0. Between runs the others spin briefly, then sleep.
 *
 * Ownership: create, then destroy. Threads: one caller at a time. */
#ifndef SHOAL_BASE_POOL_H
#define SHOAL_BASE_POOL_H

#include <stdint.h>

#include "base/status.h"

typedef struct shoal_pool shoal_pool;
typedef void (*shoal_pool_task)(void *context, uint32_t task, uint32_t thread);

shoal_status shoal_pool_create(shoal_pool **out, uint32_t threads, shoal_error *err);
/* The same, where so many other threads of this process are at work beside it: waiting threads spin only while there is
 * a core for everybody. */
shoal_status shoal_pool_create_beside(shoal_pool **out, uint32_t threads, uint32_t others, shoal_error *err);
void shoal_pool_destroy(shoal_pool *pool);
/* How many cores this process may use: fewer than the machine has, in a container. */
uint32_t shoal_pool_cores(void);
uint32_t shoal_pool_threads(const shoal_pool *pool);
void shoal_pool_run(shoal_pool *pool, uint32_t tasks, shoal_pool_task f, void *context);

#endif
