/* team.h: the threads that share the work on one tile, when there are more of them than shards.
 *
 * A matrix product is cut into bands of rows or columns, one a thread; no element's chain
 * is cut, so the number of threads doesn't change a bit. A team of NULL is the caller alone.
 *
 * Ownership: create, then destroy; the pool is borrowed. Threads: one caller at a time, the
 * pool's. */
#ifndef SHOAL_NN_TEAM_H
#define SHOAL_NN_TEAM_H

#include "base/pool.h"
#include "kernels/kernels.h"

typedef struct shoal_team shoal_team;

shoal_status shoal_team_create(shoal_team **out, shoal_pool *pool, const shoal_kernels *kernels,
                               shoal_error *err);
void shoal_team_destroy(shoal_team *team);
uint32_t shoal_team_threads(const shoal_team *team);

void shoal_team_gemm(shoal_team *team, const shoal_kernels *kernels, const shoal_gemm *gemm);
void shoal_team_gemm_sparse(shoal_team *team, const shoal_kernels *kernels, const shoal_gemm *gemm,
                            const shoal_sparse *a);
/* As shoal_pool_run. */
void shoal_team_run(shoal_team *team, uint32_t tasks, shoal_pool_task f, void *context);

#endif
