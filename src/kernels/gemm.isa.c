/* gemm.isa.c: matrix products.
 *
 * The innermost block keeps ROWS x 2 registers of c and runs down a piece of k: a row of b
 * is two loads, an element of a one broadcast, and each broadcast serves two multiply-adds,
 * each load ROWS. Around it:
 *
 *   for pieces of k            K_MAX at most, so that a panel of b stays in the fast caches;
 *                              c is stored between pieces and taken up again, which
 *                              changes no bit of a chain
 *     for panels of b          2 registers wide, packed to be contiguous unless the rows are
 *                              too few to be worth it
 *       for blocks of rows     of equal height or one more, so that no thin block is left
 *                              over that waits for its own sums
 *
 * a is read where it lies: whichever of its strides is 1, the rows of a block are few
 * enough streams. The exception is rows that lie a multiple of a page apart, which would
 * push each other out of the first cache; those are packed too.
 *
 * Where k is short and m is not, c is most of what is touched: then all of b is packed at once,
 * and the blocks walk along the rows of c.
 *
 * Expected: m from 5 to some thousands, n from 10, k from 10 to some thousands. */
#include "kernels/isa.h"
#include "kernels/simd.h"

enum {
  ROWS = V_ACC / 2,
  COLS = 2 * VR,
  K_MAX = 512,
  M_MAX = 20 * ROWS,  /* rows of a that go with a piece of k */
  PACK_ABOVE = 6,     /* so many blocks of rows or fewer are not worth packing b for */
  FLAT_K = 128,       /* a short k */
  FLAT_MAX = 1 << 16, /* floats of b, packed, that stay in the second cache */
  TURN_M = 32,        /* few rows beside a transposed b */
  TURN_MAX = 1 << 16  /* floats of a product that is turned around */
};
_Static_assert(COLS % 16 == 0, "b is packed 16 columns at a time");

static uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* A piece of the product: where the chains start and where they are kept. */
typedef struct part {
  uint32_t k, cols;
  const float *a;
  size_t a_row, a_col;
  const float *b; /* row k at b + k * b_row, `vecs` registers of it */
  size_t b_row;
  bool fetch; /* b is not packed: ask for the columns after these, which no prefetcher guesses */
  float *c;
  size_t c_row;
  const float *bias; /* where a chain starts, NULL for zero; not used when `resume` */
  bool resume;       /* the chains go on from c */
} part;

V_INLINE vr start(const part *p, const float *c, uint32_t at) {
  const float *from = p->resume ? c + at : p->bias != NULL ? p->bias + at : NULL;
  if (from == NULL) return vr_set(0);
  return p->cols >= at + VR ? vr_load(from) : vr_load_part(from, p->cols - at);
}

V_INLINE void finish(const part *p, float *c, uint32_t at, vr sum) {
  if (p->cols >= at + VR)
    vr_store(c + at, sum);
  else
    vr_store_part(c + at, p->cols - at, sum);
}

/* rows, vecs and fetch are constants where this is called, so the sums live in registers. */
V_INLINE void block(const unsigned rows, const unsigned vecs, const bool fetch, const part *p) {
  vr sum[12][2];
#pragma GCC unroll 12
  for (unsigned i = 0; i < rows; i++)
#pragma GCC unroll 2
    for (unsigned v = 0; v < vecs; v++) sum[i][v] = start(p, p->c + i * p->c_row, v * VR);

  /* Rows are addressed in fours, from three pointers, to spare the integer registers. */
  const float *a0 = p->a, *a4 = a0 + 4 * p->a_row, *a8 = a4 + 4 * p->a_row, *b = p->b;
  const size_t a_row = p->a_row, a_col = p->a_col, b_row = p->b_row;
  for (uint32_t k = p->k; k > 0; k--) {
    vr b0 = vr_load(b), b1 = vecs > 1 ? vr_load(b + VR) : b0;
    if (fetch)
      for (unsigned at = 0; at < COLS; at += 16) __builtin_prefetch(b + COLS + at);
#pragma GCC unroll 12
    for (unsigned i = 0; i < rows; i++) {
      vr a = vr_set((i < 4 ? a0 : i < 8 ? a4 : a8)[i % 4 * a_row]);
      sum[i][0] = vr_fma(a, b0, sum[i][0]);
      if (vecs > 1) sum[i][1] = vr_fma(a, b1, sum[i][1]);
    }
    a0 += a_col;
    a4 += a_col;
    a8 += a_col;
    b += b_row;
  }

#pragma GCC unroll 12
  for (unsigned i = 0; i < rows; i++)
#pragma GCC unroll 2
    for (unsigned v = 0; v < vecs; v++) finish(p, p->c + i * p->c_row, v * VR, sum[i][v]);
}

static void run_block(uint32_t rows, const part *p) {
#define CASE(r)                              \
  case r:                                    \
    if (r <= ROWS && p->fetch)               \
      block(r <= ROWS ? r : 1, 2, true, p);  \
    else if (r <= ROWS && p->cols > VR)      \
      block(r <= ROWS ? r : 1, 2, false, p); \
    else if (r <= ROWS)                      \
      block(r <= ROWS ? r : 1, 1, false, p); \
    break;
  switch (rows) {
    CASE(1)
    CASE(2)
    CASE(3)
    CASE(4)
    CASE(5)
    CASE(6)
    CASE(7)
    CASE(8)
    CASE(9)
    CASE(10)
    CASE(11)
    CASE(12)
  }
#undef CASE
}

/* 16 columns of b, k rows, to rows that lie COLS apart; columns past `cols` become zero. */
static void pack_columns(const shoal_gemm *g, const float *b, uint32_t k, uint32_t cols, float *to) {
  if (g->b_col == 1) {
    for (uint32_t i = 0; i < k; i++) {
      __builtin_prefetch(b + i * g->b_row + COLS); /* for the next panel */
      vf_store(to + i * COLS, vf_load_some(b + i * g->b_row, cols));
    }
    return;
  }
  for (uint32_t i = 0; i < k; i += 16) {
    vf tile[16];
    for (uint32_t j = 0; j < 16; j++)
      tile[j] = j < cols ? vf_load_some(b + j * g->b_col + i, k - i) : vf_zero();
    vf_transpose(tile);
    for (uint32_t row = 0; row < min_u32(16, k - i); row++) vf_store(to + (i + row) * COLS, tile[row]);
  }
}

static void pack_panel(const shoal_gemm *g, uint32_t k0, uint32_t k, uint32_t j0, uint32_t cols, float *to) {
  for (uint32_t j = 0; j < cols; j += 16)
    pack_columns(g, g->b + k0 * g->b_row + (j0 + j) * g->b_col, k, cols - j, to + j);
}

/* `rows` rows of a, element k of row i to to[k * rows + i]. */
static void pack_rows(const shoal_gemm *g, uint32_t i0, uint32_t rows, uint32_t k0, uint32_t k, float *to) {
  for (uint32_t i = 0; i < rows; i++) {
    const float *from = g->a + (i0 + i) * g->a_row + k0 * g->a_col;
    for (uint32_t j = 0; j < k; j++) to[(size_t)j * rows + i] = from[j * g->a_col];
  }
}

/* Rows of block `index` of `count` that share m: its first row and, by difference, its height. */
static uint32_t first_row(uint32_t m, uint32_t index, uint32_t count) {
  return (uint32_t)((uint64_t)m * index / count);
}

/* Asks for the rows of c that the next block will need. */
static void fetch_ahead(const part *p, uint32_t rows, uint32_t count) {
  for (uint32_t i = rows; i < rows + count; i++)
    for (uint32_t at = 0; at < p->cols; at += 16) __builtin_prefetch(p->c + i * p->c_row + at, 1);
}

/* The rows i0 .. i0 + m - 1 of the product, for one piece of k. */
static void run_piece(const shoal_gemm *g, uint32_t i0, uint32_t m, uint32_t k0, uint32_t k) {
  float *panel = g->scratch, *packed = panel + COLS * K_MAX;
  uint32_t blocks = (m + ROWS - 1) / ROWS;
  bool far = (size_t)g->m * g->n > (1 << 18); /* c is not in the second cache */
  bool clash = g->a_col == 1 && g->a_row % 512 == 0 && k > 16 && g->n > COLS;
  if (clash)
    for (uint32_t i = 0; i < blocks; i++) {
      uint32_t first = first_row(m, i, blocks), rows = first_row(m, i + 1, blocks) - first;
      pack_rows(g, i0 + first, rows, k0, k, packed + (size_t)first * k);
    }

  for (uint32_t j = 0; j < g->n; j += COLS) {
    uint32_t cols = min_u32(COLS, g->n - j);
    part p = {.k = k, .cols = cols, .c_row = g->c_row, .resume = g->accumulate || k0 > 0};
    p.bias = g->bias != NULL ? g->bias + j : NULL;
    if (blocks <= PACK_ABOVE && g->b_col == 1 && cols == COLS) {
      p.b = g->b + k0 * g->b_row + j;
      p.b_row = g->b_row;
      p.fetch = j + COLS < g->n;
    } else {
      pack_panel(g, k0, k, j, cols, panel);
      p.b = panel;
      p.b_row = COLS;
    }
    for (uint32_t i = 0; i < blocks; i++) {
      uint32_t first = first_row(m, i, blocks), rows = first_row(m, i + 1, blocks) - first;
      p.a = clash ? packed + (size_t)first * k : g->a + (i0 + first) * g->a_row + k0 * g->a_col;
      p.a_row = clash ? 1 : g->a_row;
      p.a_col = clash ? rows : g->a_col;
      p.c = g->c + (i0 + first) * g->c_row + j;
      if (far) fetch_ahead(&p, rows, min_u32(rows, m - first - rows));
      run_block(rows, &p);
    }
  }
}

/* Whether the product is one of short k, for run_flat. */
static bool is_flat(uint32_t m, uint32_t n, uint32_t k) {
  return k <= FLAT_K && m >= 8 * ROWS && k * ((size_t)n + COLS) <= FLAT_MAX;
}

/* Panel j / COLS of b, packed, begins at scratch + j * k. */
static void run_flat(const shoal_gemm *g) {
  const uint32_t blocks = (g->m + ROWS - 1) / ROWS;
  for (uint32_t j = 0; j < g->n; j += COLS)
    pack_panel(g, 0, g->k, j, min_u32(COLS, g->n - j), g->scratch + (size_t)j * g->k);
  part p = {.k = g->k,
            .a_row = g->a_row,
            .a_col = g->a_col,
            .b_row = COLS,
            .c_row = g->c_row,
            .resume = g->accumulate};
  for (uint32_t i = 0; i < blocks; i++) {
    uint32_t first = first_row(g->m, i, blocks), rows = first_row(g->m, i + 1, blocks) - first;
    p.a = g->a + first * g->a_row;
    for (uint32_t j = 0; j < g->n; j += COLS) {
      p.cols = min_u32(COLS, g->n - j);
      p.bias = g->bias != NULL ? g->bias + j : NULL;
      p.b = g->scratch + (size_t)j * g->k;
      p.c = g->c + first * g->c_row + j;
      run_block(rows, &p);
    }
  }
}

/* Whether packing a transposed b would cost much beside so few rows: then the product is turned
 * around, c' = b' * a', where b is read as it lies, and c is transposed in the end. The rows
 * become lanes, so they should nearly fill them. */
static bool is_turned(const shoal_gemm *g) {
  bool fills = g->m <= TURN_M && 5 * g->m >= 4 * ((g->m + 15) / 16 * 16);
  bool pays = g->k >= 64 && g->n >= 2 * TURN_M && g->n <= TURN_MAX / TURN_M;
  return g->b_col != 1 && g->a_col == 1 && fills && pays && !g->accumulate && g->bias == NULL;
}

static void run_turned(const shoal_gemm *g) {
  float *turned = g->scratch; /* n x TURN_M */
  ISA(gemm)
  (&(shoal_gemm){.m = g->n,
                 .n = g->m,
                 .k = g->k,
                 .a = g->b,
                 .a_row = g->b_col,
                 .a_col = 1,
                 .b = g->a,
                 .b_row = 1,
                 .b_col = g->a_row,
                 .c = turned,
                 .c_row = TURN_M,
                 .scratch = turned + TURN_MAX});
  for (uint32_t i = 0; i < g->m; i += 16)
    for (uint32_t j = 0; j < g->n; j += 16) {
      vf tile[16];
      for (uint32_t row = 0; row < 16; row++)
        tile[row] =
            j + row < g->n ? vf_load_some(turned + (size_t)(j + row) * TURN_M + i, g->m - i) : vf_zero();
      vf_transpose(tile);
      for (uint32_t row = 0; row < min_u32(16, g->m - i); row++)
        vf_store_some(g->c + (i + row) * g->c_row + j, g->n - j, tile[row]);
    }
}

void ISA(gemm)(const shoal_gemm *g) {
  if (is_turned(g)) {
    run_turned(g);
    return;
  }
  if (is_flat(g->m, g->n, g->k)) {
    run_flat(g);
    return;
  }
  uint32_t pieces = g->k > K_MAX ? (g->k + K_MAX - 1) / K_MAX : 1;
  for (uint32_t piece = 0; piece < pieces; piece++) {
    uint32_t k0 = first_row(g->k, piece, pieces), k1 = first_row(g->k, piece + 1, pieces);
    for (uint32_t i = 0; i < g->m; i += M_MAX) run_piece(g, i, min_u32(M_MAX, g->m - i), k0, k1 - k0);
  }
}

void ISA(gemm_many)(const shoal_gemm *g, uint32_t count, size_t a, size_t b, size_t c) {
  const uint32_t blocks = (g->m + ROWS - 1) / ROWS;
  const bool plain = g->b_col == 1 && g->n % 16 == 0 && g->k <= K_MAX && blocks <= PACK_ABOVE;
  if (!plain) {
    shoal_gemm one = *g;
    for (uint32_t i = 0; i < count; i++, one.a += a, one.b += b, one.c += c) ISA(gemm)(&one);
    return;
  }
  part p = {.k = g->k,
            .a_row = g->a_row,
            .a_col = g->a_col,
            .b_row = g->b_row,
            .c_row = g->c_row,
            .resume = g->accumulate};
  for (uint32_t index = 0; index < count; index++)
    for (uint32_t j = 0; j < g->n; j += COLS) {
      p.cols = min_u32(COLS, g->n - j);
      p.bias = g->bias != NULL ? g->bias + j : NULL;
      p.b = g->b + index * b + j;
      for (uint32_t i = 0; i < blocks; i++) {
        uint32_t first = first_row(g->m, i, blocks), rows = first_row(g->m, i + 1, blocks) - first;
        p.a = g->a + index * a + first * g->a_row;
        p.c = g->c + index * c + first * g->c_row + j;
        run_block(rows, &p);
      }
    }
}

size_t ISA(gemm_scratch)(uint32_t m, uint32_t n, uint32_t k) {
  (void)n;
  size_t pieces = (size_t)K_MAX * COLS + (size_t)min_u32(m, M_MAX) * min_u32(k, K_MAX);
  return TURN_MAX + (pieces > FLAT_MAX ? pieces : FLAT_MAX);
}
