/* team.h: the threads that share the work on one tile, when there are more of them than shards.
 *
 * An operation is cut into bands, one for each thread: rows or columns of a matrix product, channels of images,
 * stretches of values. No element's chain is cut, so the number of threads doesn't change a bit. A team of NULL is
 * the caller alone.
 *
 * Ownership: create, then destroy. Threads: one caller at a time, which is thread 0 of the team. */
#ifndef SHOAL_NN_TEAM_H
#define SHOAL_NN_TEAM_H

#include "base/pool.h"
#include "kernels/kernels.h"

typedef struct shoal_team shoal_team;

/* So many threads, the caller included, in their place among all (base/pool.h). Each has scratch of its own. */
shoal_status shoal_team_create(shoal_team **out, uint32_t threads, shoal_pool_place place,
                               size_t scratch_floats, shoal_error *err);
void shoal_team_destroy(shoal_team *team);
uint32_t shoal_team_threads(const shoal_team *team);

/* Where part `index` begins of `size` things that are cut into so many parts, each a whole number of units. */
static inline size_t shoal_part_start(size_t size, size_t unit, size_t index, size_t parts) {
  size_t units = (size + unit - 1) / unit, start = units * index / parts * unit;
  return start < size ? start : size;
}

void shoal_team_gemm(shoal_team *team, const shoal_kernels *kernels, const shoal_gemm *gemm);
void shoal_team_gemm_sparse(shoal_team *team, const shoal_kernels *kernels, const shoal_gemm *gemm,
                            const shoal_sparse *a);
/* The scratch of a thread: its own, or for the caller, thread 0, what it brings. */
float *shoal_team_scratch(const shoal_team *team, uint32_t thread, float *own);
/* As shoal_pool_run. */
void shoal_team_run(shoal_team *team, uint32_t tasks, shoal_pool_task f, void *context);

#endif
