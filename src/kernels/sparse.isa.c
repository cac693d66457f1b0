/* sparse.isa.c: products with a matrix that is mostly zeros, to the bit as gemm has them.
 *
 * A zero of a adds a zero to the sum, and a sum stays what it is: so only the other elements are
 * multiplied, in the order of k, and each brings a whole row of b. The sums of a row of c, VECS_MAX
 * registers at a time, stay where they are while the row's elements pass by.
 *
 * One thing a zero can change: -0 + 0 is 0. Such a sum is still -0 here, unless something came after it
 * that made it the same again. So a row of c that ends with a -0 is summed up once more, zeros and
 * all. It takes a bias of -0 or a product that underflows, and nearly never happens.
 *
 * Expected: rows with a handful to some hundred elements, n from 16 to some hundred. */
#include "kernels/isa.h"
#include "kernels/simd.h"

enum { VECS_MAX = 8 };

bool ISA(sparse_rows)(uint32_t m, uint32_t k, const float *a, uint32_t most, shoal_sparse *out) {
  uint32_t at = 0;
  out->starts[0] = 0;
  for (uint32_t i = 0; i < m; i++, a += k) {
    for (uint32_t j = 0; j < k; j += 16) {
      vf x = vf_load_some(a + j, k - j);
      at += vf_pack(vf_eq(x, vf_zero()), x, j, out->values + at, out->columns + at);
      if (at > most) return false;
    }
    out->starts[i + 1] = at;
  }
  return true;
}

void ISA(sparse_turn)(uint32_t m, uint32_t k, const shoal_sparse *a, shoal_sparse *out) {
  uint32_t *starts = out->starts;
  for (uint32_t j = 0; j <= k; j++) starts[j] = 0;
  for (uint32_t e = 0; e < a->starts[m]; e++) starts[a->columns[e]]++;
  uint32_t sum = 0;
  for (uint32_t j = 0; j < k; j++) {
    uint32_t count = starts[j];
    starts[j] = sum;
    sum += count;
  }
  for (uint32_t i = 0; i < m; i++)
    for (uint32_t e = a->starts[i]; e < a->starts[i + 1]; e++) {
      uint32_t to = starts[a->columns[e]]++;
      out->columns[to] = i;
      out->values[to] = a->values[e];
    }
  /* Each start has moved on to where the next row's is. */
  for (uint32_t j = k; j > 0; j--) starts[j] = starts[j - 1];
  starts[0] = 0;
}

/* A row of c, from column j on: VECS_MAX registers of it or the rest. */
typedef struct stretch {
  const shoal_gemm *g;
  uint32_t row, j;
  unsigned last; /* columns in the last register */
} stretch;

V_INLINE vr load(const float *p, const bool whole, unsigned columns) {
  return whole ? vr_load(p) : vr_load_part(p, columns);
}

/* vecs and whole are constants where these are called. */
V_INLINE void begin(const unsigned vecs, const bool whole, const stretch *s, vr *sum) {
  const shoal_gemm *g = s->g;
  const float *from = g->accumulate ? g->c + s->row * g->c_row : g->bias;
#pragma GCC unroll 8
  for (unsigned v = 0; v < vecs; v++)
    sum[v] = from == NULL ? vr_set(0) : load(from + s->j + v * VR, whole || v + 1 < vecs, s->last);
}

V_INLINE void add_row(const unsigned vecs, const bool whole, const stretch *s, float a, uint32_t k, vr *sum) {
  const float *b = s->g->b + k * s->g->b_row + s->j;
  vr x = vr_set(a);
#pragma GCC unroll 8
  for (unsigned v = 0; v < vecs; v++)
    sum[v] = vr_fma(x, load(b + v * VR, whole || v + 1 < vecs, s->last), sum[v]);
}

V_INLINE void block(const unsigned vecs, const bool whole, const stretch *s, const shoal_sparse *a) {
  const shoal_gemm *g = s->g;
  vr sum[VECS_MAX];
  begin(vecs, whole, s, sum);
  for (uint32_t e = a->starts[s->row]; e < a->starts[s->row + 1]; e++)
    add_row(vecs, whole, s, a->values[e], a->columns[e], sum);

  bool doubtful = false;
#pragma GCC unroll 8
  for (unsigned v = 0; v < vecs; v++) doubtful |= vr_any_negative_zero(sum[v]);
  if (doubtful) {
    begin(vecs, whole, s, sum);
    for (uint32_t k = 0; k < g->k; k++)
      add_row(vecs, whole, s, g->a[s->row * g->a_row + k * g->a_col], k, sum);
  }

  float *c = g->c + s->row * g->c_row + s->j;
#pragma GCC unroll 8
  for (unsigned v = 0; v < vecs; v++) {
    if (whole || v + 1 < vecs)
      vr_store(c + v * VR, sum[v]);
    else
      vr_store_part(c + v * VR, s->last, sum[v]);
  }
}

static void run_rows(stretch *s, const shoal_sparse *a, unsigned vecs) {
  const bool whole = s->last == VR;
  for (s->row = 0; s->row < s->g->m; s->row++) {
#define CASE(count)              \
  case count:                    \
    if (whole)                   \
      block(count, true, s, a);  \
    else                         \
      block(count, false, s, a); \
    break;
    switch (vecs) {
      CASE(1)
      CASE(2)
      CASE(3)
      CASE(4)
      CASE(5)
      CASE(6)
      CASE(7)
      CASE(8)
    }
#undef CASE
  }
}

void ISA(gemm_sparse)(const shoal_gemm *g, const shoal_sparse *a) {
  for (uint32_t j = 0; j < g->n; j += VECS_MAX * VR) {
    uint32_t cols = g->n - j < VECS_MAX * VR ? g->n - j : VECS_MAX * VR;
    unsigned vecs = (cols + VR - 1) / VR;
    stretch s = {.g = g, .j = j, .last = cols - (vecs - 1) * VR};
    run_rows(&s, a, vecs);
  }
}
