/* team.c: see team.h. Each thread but the caller has scratch memory of its own. */
#include "nn/team.h"

#include <stdlib.h>

struct shoal_team {
  shoal_pool *pool; /* owned */
  uint32_t threads;
  float **scratch; /* entry 0 is not used: the caller brings its own */
};

shoal_status shoal_team_create(shoal_team **out, uint32_t threads, uint32_t others, size_t scratch_floats,
                               shoal_error *err) {
  *out = NULL;
  shoal_team *team = calloc(1, sizeof *team);
  float **scratch = calloc(threads, sizeof *scratch);
  if (team == NULL || scratch == NULL) {
    free(team);
    free(scratch);
    return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory for %u threads", threads);
  }
  *team = (shoal_team){.threads = threads, .scratch = scratch};
  shoal_status status = shoal_pool_create_beside(&team->pool, threads, others, err);
  size_t bytes = (scratch_floats * sizeof(float) + 64) / 64 * 64;
  for (uint32_t i = 1; status == SHOAL_OK && i < threads; i++) {
    scratch[i] = aligned_alloc(64, bytes);
    if (scratch[i] == NULL)
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
  free(team->scratch);
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

/* Bands are whole blocks of the kernels', and a product below this many multiply-adds is over
 * before the others have heard of it. */
enum { BAND_ROWS = 12, BAND_COLS = 32, WORTH_SHARING = 1 << 17 };

typedef struct shared_product {
  const shoal_team *team;
  const shoal_kernels *kernels;
  const shoal_gemm *gemm;
  bool by_columns;
} shared_product;

/* Where band `index` of the team's begins. */
static uint32_t band_start(const shared_product *p, uint32_t index) {
  uint32_t size = p->by_columns ? p->gemm->n : p->gemm->m, unit = p->by_columns ? BAND_COLS : BAND_ROWS;
  uint64_t units = (size + unit - 1) / unit, start = units * index / p->team->threads * unit;
  return start < size ? (uint32_t)start : size;
}

static void multiply_band(void *context, uint32_t band, uint32_t thread) {
  const shared_product *p = context;
  uint32_t first = band_start(p, band), count = band_start(p, band + 1) - first;
  if (count == 0) return;
  shoal_gemm g = *p->gemm;
  if (thread > 0) g.scratch = p->team->scratch[thread];
  g.c += p->by_columns ? first : first * g.c_row;
  if (p->by_columns) {
    g.n = count;
    g.b += first * g.b_col;
    if (g.bias != NULL) g.bias += first;
  } else {
    g.m = count;
    g.a += first * g.a_row;
  }
  p->kernels->gemm(&g);
}

static uint64_t round_up(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

void shoal_team_gemm(shoal_team *team, const shoal_kernels *kernels, const shoal_gemm *gemm) {
  uint64_t size = (uint64_t)gemm->m * gemm->n * gemm->k;
  if (team == NULL || size < WORTH_SHARING) {
    kernels->gemm(gemm);
    return;
  }
  /* The larger band decides how long it takes. A band of rows pays for packing all of b. */
  uint64_t threads = team->threads, packing = gemm->b_col == 1 ? 4 : 16;
  uint64_t by_rows = (round_up((gemm->m + threads - 1) / threads, BAND_ROWS) + packing) * gemm->n;
  uint64_t by_columns = round_up((gemm->n + threads - 1) / threads, BAND_COLS) * gemm->m;
  shared_product p = {team, kernels, gemm, by_columns <= by_rows};
  shoal_pool_run(team->pool, team->threads, multiply_band, &p);
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
  uint32_t first = (uint32_t)((uint64_t)p->gemm->m * band / p->bands);
  uint32_t end = (uint32_t)((uint64_t)p->gemm->m * (band + 1) / p->bands);
  shoal_gemm g = *p->gemm;
  shoal_sparse a = *p->a;
  g.m = end - first;
  g.a += first * g.a_row;
  g.c += first * g.c_row;
  a.starts += first;
  p->kernels->gemm_sparse(&g, &a);
}

void shoal_team_gemm_sparse(shoal_team *team, const shoal_kernels *kernels, const shoal_gemm *gemm,
                            const shoal_sparse *a) {
  if (team == NULL || (uint64_t)a->starts[gemm->m] * gemm->n < WORTH_SHARING) {
    kernels->gemm_sparse(gemm, a);
    return;
  }
  sparse_product p = {kernels, gemm, a, team->threads};
  shoal_pool_run(team->pool, team->threads, multiply_sparse_band, &p);
}
