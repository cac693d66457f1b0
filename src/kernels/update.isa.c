/* update.isa.c: optimiser steps and the sums over gradients around them. */
#include "kernels/isa.h"
#include "kernels/vmath.h"

/* The constants of a step, as vectors. */
typedef struct step {
  vf rate, beta1, beta2, rest1, rest2, eps, l2, grad_scale, decay, root2;
} step;

/* One vector of weights; s1 and s2 point at state that the kind has. */
V_INLINE void step_vector(shoal_update_kind kind, const step *u, size_t left, const float *from_at,
                          float *w_at, const float *g_at, float *s1_at, float *s2_at) {
  vf w = vf_load_some(from_at, left), g = vf_mul(u->grad_scale, vf_load_some(g_at, left)), move;
  if (kind == SHOAL_ADAMW)
    w = vf_mul(w, u->decay);
  else
    g = vf_fma(u->l2, w, g);
  if (kind == SHOAL_SGD) {
    move = g;
  } else {
    vf s1 = vf_load_some(s1_at, left);
    switch (kind) {
    case SHOAL_MOMENTUM:
    case SHOAL_NESTEROV:
      s1 = vf_fma(u->beta1, s1, g);
      move = kind == SHOAL_MOMENTUM ? s1 : vf_fma(u->beta1, s1, g);
      break;
    case SHOAL_ADAGRAD:
      s1 = vf_fma(g, g, s1);
      move = vf_div(g, vf_add(vf_sqrt(s1), u->eps));
      break;
    case SHOAL_RMSPROP:
      s1 = vf_fma(u->beta2, s1, vf_mul(u->rest2, vf_mul(g, g)));
      move = vf_div(g, vf_add(vf_sqrt(s1), u->eps));
      break;
    default: {
      vf s2 = vf_load_some(s2_at, left);
      s1 = vf_fma(u->beta1, s1, vf_mul(u->rest1, g));
      s2 = vf_fma(u->beta2, s2, vf_mul(u->rest2, vf_mul(g, g)));
      vf_store_some(s2_at, left, s2);
      move = vf_div(s1, vf_add(vf_div(vf_sqrt(s2), u->root2), u->eps));
    }
    }
    vf_store_some(s1_at, left, s1);
  }
  vf_store_some(w_at, left, vf_fnma(u->rate, move, w));
}

void ISA(update)(const shoal_update *u, size_t count, const float *from, float *w, const float *g, float *s1,
                 float *s2) {
  const bool adam = u->kind == SHOAL_ADAM || u->kind == SHOAL_ADAMW;
  const step s = {
      .rate = vf_set(adam ? u->rate / u->correction1 : u->rate),
      .beta1 = vf_set(u->beta1),
      .beta2 = vf_set(u->beta2),
      .rest1 = vf_set(1 - u->beta1),
      .rest2 = vf_set(1 - u->beta2),
      .eps = vf_set(u->eps),
      .l2 = vf_set(u->l2),
      .grad_scale = vf_set(u->grad_scale),
      .decay = vf_set(__builtin_fmaf(-u->rate, u->l2, 1)),
      .root2 = vf_sqrt(vf_set(u->correction2)),
  };
  const bool has1 = u->kind != SHOAL_SGD;
#define CASE(each)                                                                                          \
  case each:                                                                                                \
    for (size_t i = 0; i < count; i += 16)                                                                  \
      step_vector(each, &s, count - i, from + i, w + i, g + i, has1 ? s1 + i : NULL, adam ? s2 + i : NULL); \
    break;
  switch (u->kind) {
    CASE(SHOAL_SGD)
    CASE(SHOAL_MOMENTUM)
    CASE(SHOAL_NESTEROV)
    CASE(SHOAL_ADAGRAD)
    CASE(SHOAL_RMSPROP)
    CASE(SHOAL_ADAM)
    CASE(SHOAL_ADAMW)
  }
#undef CASE
}

void ISA(add)(size_t count, const float *a, const float *b, float *y) {
  for (size_t i = 0; i < count; i += 16)
    vf_store_some(y + i, count - i, vf_add(vf_load_some(a + i, count - i), vf_load_some(b + i, count - i)));
}

void ISA(add_share)(size_t count, float share, float factor, const float *x, float *sums) {
  for (size_t i = 0; i < count; i++) sums[i] += share * (factor * x[i]);
}

void ISA(add_scaled)(size_t count, const float *a, float factor, const float *b, float *y) {
  vf scale = vf_set(factor);
  for (size_t i = 0; i < count; i += 16)
    vf_store_some(y + i, count - i,
                  vf_fma(scale, vf_load_some(b + i, count - i), vf_load_some(a + i, count - i)));
}

/* Four vectors at once, since rows are far apart. */
void ISA(column_sums)(uint32_t rows, uint32_t cols, const float *x, size_t row, float *sums) {
  uint32_t j = 0;
  for (; j + 64 <= cols; j += 64) {
    vf sum[4];
    for (uint32_t v = 0; v < 4; v++) sum[v] = vf_load(sums + j + v * 16);
    for (uint32_t r = 0; r < rows; r++)
      for (uint32_t v = 0; v < 4; v++) sum[v] = vf_add(sum[v], vf_load(x + r * row + j + v * 16));
    for (uint32_t v = 0; v < 4; v++) vf_store(sums + j + v * 16, sum[v]);
  }
  for (; j < cols; j += 16) {
    vf sum = vf_load_some(sums + j, cols - j);
    for (uint32_t r = 0; r < rows; r++) sum = vf_add(sum, vf_load_some(x + r * row + j, cols - j));
    vf_store_some(sums + j, cols - j, sum);
  }
}

enum { SUM_PARTS_DEPTH = 9 }; /* 256 parts */

/* Adds up in the order of nn/tree.h: like counting in binary, where two sums of the same width
 * are a carry. */
V_INLINE vf tree_at(const float *const *parts, uint32_t count, size_t i, size_t left) {
  vf sums[SUM_PARTS_DEPTH];
  for (uint32_t p = 0; p < count; p++) {
    vf sum = vf_load_some(parts[p] + i, left);
    uint32_t level = 0;
    for (; (p >> level & 1) != 0; level++) sum = vf_add(sums[level], sum);
    sums[level] = sum;
  }
  uint32_t level = 0;
  while ((count >> level & 1) == 0) level++;
  vf total = sums[level];
  for (level++; count >> level != 0; level++)
    if ((count >> level & 1) != 0) total = vf_add(sums[level], total);
  return total;
}

void ISA(sum_parts)(size_t count, uint32_t parts_count, const float *const *parts, float *sum) {
  for (size_t i = 0; i < count; i += 16) {
    size_t left = count - i;
    vf total;
    switch (parts_count) { /* the usual numbers, for the compiler to unroll */
    case 2: total = tree_at(parts, 2, i, left); break;
    case 4: total = tree_at(parts, 4, i, left); break;
    case 8: total = tree_at(parts, 8, i, left); break;
    default: total = tree_at(parts, parts_count, i, left); break;
    }
    vf_store_some(sum + i, left, total);
  }
}

void ISA(square_sum)(size_t count, const float *x, double *sum_of_all) {
  enum { BLOCK = 4096 };
  double total = 0;
  for (size_t first = 0; first < count; first += BLOCK) {
    const size_t end = count - first < BLOCK ? count : first + BLOCK;
    vf sum = vf_zero();
    for (size_t i = first; i < end; i += 16) {
      vf v = vf_load_some(x + i, end - i);
      sum = vf_fma(v, v, sum);
    }
    total += (double)vf_tree(sum);
  }
  *sum_of_all = total;
}

void ISA(follow)(size_t count, float share, const float *from, const float *to, float *w) {
  for (size_t i = 0; i < count; i++) w[i] = from[i] + share * (to[i] - from[i]);
}
