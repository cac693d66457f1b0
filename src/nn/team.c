/* team.c: see team.h. Each thread but the caller has scratch memory of its own. */
#include "nn/team.h"

#include <stdlib.h>

struct shoal_team {
  shoal_pool *pool; /* owned */
  uint32_t threads;
  float *scratch[]; /* of each thread; entry 0 is not used: the caller brings its own */
};

shoal_status shoal_team_create(shoal_team **out, uint32_t threads, shoal_pool_place place,
                               size_t scratch_floats, shoal_error *err) {
  *out = NULL;
  shoal_team *team = calloc(1, sizeof *team + threads * sizeof *team->scratch);
  if (team == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for %u threads", threads);
  team->threads = threads;
  shoal_status status = shoal_pool_create_at(&team->pool, threads, place, err);
  size_t bytes = (scratch_floats * sizeof(float) + 64) / 64 * 64;
  for (uint32_t i = 1; status == SHOAL_OK && i < threads; i++) {
    team->scratch[i] = aligned_alloc(64, bytes);
    if (team->scratch[i] == NULL)
      status = shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for %u threads", threads);
  }
  if (status == SHOAL_OK)
    *out = team;
  else
    shoal_team_destroy(team);
  return status;
}

void shoal_team_destroy(shoal_team *team) {
  if (team == NULL) return;
  shoal_pool_destroy(team->pool);
  for (uint32_t i = 1; i < team->threads; i++) free(team->scratch[i]);
  free(team);
}

uint32_t shoal_team_threads(const shoal_team *team) { return team != NULL ? team->threads : 1; }

void shoal_team_run(shoal_team *team, uint32_t tasks, shoal_pool_task f, void *context) {
  if (team != NULL) {
    shoal_pool_run(team->pool, tasks, f, context);
    return;
  }
  for (uint32_t task = 0; task < tasks; task++) f(context, task, 0);
}

float *shoal_team_scratch(const shoal_team *team, uint32_t thread, float *own) {
  return thread == 0 ? own : team->scratch[thread];
}

/* ---- products ---- */

/* A band is a few rows of a few columns, these in whole blocks of the kernels'. Another thread's help costs about as much
 * as HELP multiply-adds, and a product of fewer than WORTH_SHARING is over before the others have heard of it. */
enum { BAND_COLS = 32, ROWS_MIN = 8, WORTH_SHARING = 1 << 17, HELP = 1 << 13 };

typedef struct shared_product {
  const shoal_team *team;
  const shoal_kernels *kernels;
  const shoal_gemm *gemm;
  uint32_t across, down; /* bands side by side, and one below the other */
} shared_product;

static uint64_t blocks_of(uint32_t size, uint32_t unit) { return (size + unit - 1) / unit; }

static void multiply_band(void *context, uint32_t band, uint32_t thread) {
  const shared_product *p = context;
  uint32_t x = band % p->across, y = band / p->across;
  size_t col = shoal_part_start(p->gemm->n, BAND_COLS, x, p->across),
         row = shoal_part_start(p->gemm->m, 1, y, p->down);
  shoal_gemm g = *p->gemm;
  if (thread > 0) g.scratch = p->team->scratch[thread];
  g.n = (uint32_t)(shoal_part_start(p->gemm->n, BAND_COLS, x + 1, p->across) - col);
  g.m = (uint32_t)(shoal_part_start(p->gemm->m, 1, y + 1, p->down) - row);
  g.a += row * g.a_row;
  g.b += col * g.b_col;
  g.c += row * g.c_row + col;
  if (g.bias != NULL) g.bias += col;
  p->kernels->gemm(&g);
}

/* The largest band decides how long it takes. Each band pays for packing its columns of b. */
static uint64_t cost_of(const shoal_gemm *gemm, uint32_t across, uint32_t down) {
  uint64_t packing = gemm->b_col == 1 ? 4 : 16, rows = (gemm->m + down - 1) / down,
           cols = blocks_of(gemm->n, BAND_COLS);
  return (rows + packing) * ((cols + across - 1) / across * BAND_COLS) * gemm->k +
         across * down * (uint64_t)HELP;
}

void shoal_team_gemm(shoal_team *team, const shoal_kernels *kernels, const shoal_gemm *gemm) {
  shared_product p = {.team = team, .kernels = kernels, .gemm = gemm, .across = 1, .down = 1};
  if (team == NULL || (uint64_t)gemm->m * gemm->n * gemm->k < WORTH_SHARING) {
    kernels->gemm(gemm);
    return;
  }
  uint64_t across_max = blocks_of(gemm->n, BAND_COLS), down_max = blocks_of(gemm->m, ROWS_MIN),
           best = UINT64_MAX;
  for (uint32_t across = 1; across <= team->threads && across <= across_max; across++)
    for (uint32_t down = 1; across * down <= team->threads && down <= down_max; down++) {
      uint64_t cost = cost_of(gemm, across, down);
      if (cost >= best) continue;
      best = cost;
      p.across = across;
      p.down = down;
    }
  shoal_pool_run(team->pool, p.across * p.down, multiply_band, &p);
}

typedef struct sparse_product {
  const shoal_kernels *kernels;
  const shoal_gemm *gemm;
  const shoal_sparse *a;
  uint32_t bands;
} sparse_product;

static void multiply_sparse_band(void *context, uint32_t band, uint32_t thread) {
  (void)thread;
  const sparse_product *p = context;
  size_t first = shoal_part_start(p->gemm->m, 1, band, p->bands),
         end = shoal_part_start(p->gemm->m, 1, band + 1, p->bands);
  shoal_gemm g = *p->gemm;
  shoal_sparse a = *p->a;
  g.m = (uint32_t)(end - first);
  g.a += first * g.a_row;
  g.c += first * g.c_row;
  a.starts += first;
  p->kernels->gemm_sparse(&g, &a);
}

void shoal_team_gemm_sparse(shoal_team *team, const shoal_kernels *kernels, const shoal_gemm *gemm,
                            const shoal_sparse *a) {
  if (team == NULL || (uint64_t)gemm->m * gemm->n * gemm->k < WORTH_SHARING) {
    kernels->gemm_sparse(gemm, a);
    return;
  }
  sparse_product p = {kernels, gemm, a, team->threads};
  shoal_pool_run(team->pool, team->threads, multiply_sparse_band, &p);
}
