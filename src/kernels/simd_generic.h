/* simd_generic.h: a vector is an array, for processors without a file of their own.
 *
 * The compiler turns the loops into whatever the processor has. A processor without
 * fused multiply-add gets it from the C library, slowly but with the same bits. */
#ifndef SHOAL_KERNELS_SIMD_GENERIC_H
#define SHOAL_KERNELS_SIMD_GENERIC_H

#include <stddef.h>
#include <string.h>

typedef struct vf {
  float at[16];
} vf;
typedef struct vi {
  uint32_t at[16];
} vi;
typedef struct vm {
  uint32_t at[16]; /* 0 or 1 */
} vm;
typedef vf vr;

enum { VR = 16, V_ACC = 6 }; /* few: none of them is a register anyway */

/* Where multiply-add is a call of the C library, inlining the rest of the operations would
 * be a hundred kilobytes of code, and minutes of compiling with sanitizers, for no speed. */
#ifdef __FP_FAST_FMAF
#define V_OP V_INLINE
#else
#define V_OP static __attribute__((noinline, unused))
#endif

/* The body of a function whose lane i is the expression. */
#define V_EACH(type, expression)                       \
  type r;                                              \
  for (int i = 0; i < 16; i++) r.at[i] = (expression); \
  return r

V_OP vm vm_first(unsigned n) { V_EACH(vm, (unsigned)i < n); }
V_OP vm vm_and(vm a, vm b) { V_EACH(vm, a.at[i] & b.at[i]); }
V_OP vm vm_and_not(vm a, vm b) { V_EACH(vm, a.at[i] & ~b.at[i]); }
V_OP vm vm_or(vm a, vm b) { V_EACH(vm, a.at[i] | b.at[i]); }

V_OP vf vf_set(float x) { V_EACH(vf, x); }
V_OP vf vf_load(const float *p) { V_EACH(vf, p[i]); }
V_OP void vf_store(float *p, vf v) { memcpy(p, v.at, sizeof v.at); }
V_OP vf vf_load_part(const float *p, unsigned n) {
  vf r = {{0}};
  for (unsigned i = 0; i < n; i++) r.at[i] = p[i];
  return r;
}
V_OP void vf_store_part(float *p, unsigned n, vf v) {
  for (unsigned i = 0; i < n; i++) p[i] = v.at[i];
}

V_OP vf vf_add(vf a, vf b) { V_EACH(vf, a.at[i] + b.at[i]); }
V_OP vf vf_sub(vf a, vf b) { V_EACH(vf, a.at[i] - b.at[i]); }
V_OP vf vf_mul(vf a, vf b) { V_EACH(vf, a.at[i] * b.at[i]); }
V_OP vf vf_div(vf a, vf b) { V_EACH(vf, a.at[i] / b.at[i]); }
V_OP vf vf_sqrt(vf a) { V_EACH(vf, __builtin_sqrtf(a.at[i])); }
V_OP vf vf_fma(vf a, vf b, vf c) { V_EACH(vf, __builtin_fmaf(a.at[i], b.at[i], c.at[i])); }
V_OP vf vf_fnma(vf a, vf b, vf c) { V_EACH(vf, __builtin_fmaf(-a.at[i], b.at[i], c.at[i])); }
V_OP vf vf_max(vf a, vf b) { V_EACH(vf, a.at[i] > b.at[i] ? a.at[i] : b.at[i]); }
V_OP vf vf_min(vf a, vf b) { V_EACH(vf, a.at[i] < b.at[i] ? a.at[i] : b.at[i]); }

V_OP vm vf_lt(vf a, vf b) { V_EACH(vm, a.at[i] < b.at[i]); }
V_OP vm vf_eq(vf a, vf b) { V_EACH(vm, a.at[i] == b.at[i]); }
V_OP vf vf_select(vm m, vf yes, vf no) { V_EACH(vf, m.at[i] ? yes.at[i] : no.at[i]); }

V_OP vi vi_set(uint32_t x) { V_EACH(vi, x); }
V_OP vi vi_load(const uint32_t *p) { V_EACH(vi, p[i]); }
V_OP void vi_store(uint32_t *p, vi v) { memcpy(p, v.at, sizeof v.at); }
V_OP vi vi_add(vi a, vi b) { V_EACH(vi, a.at[i] + b.at[i]); }
V_OP vi vi_sub(vi a, vi b) { V_EACH(vi, a.at[i] - b.at[i]); }
V_OP vi vi_and(vi a, vi b) { V_EACH(vi, a.at[i] & b.at[i]); }
V_OP vi vi_or(vi a, vi b) { V_EACH(vi, a.at[i] | b.at[i]); }
V_OP vi vi_xor(vi a, vi b) { V_EACH(vi, a.at[i] ^ b.at[i]); }
V_OP vi vi_left(vi a, int bits) { V_EACH(vi, a.at[i] << bits); }
V_OP vi vi_right(vi a, int bits) { V_EACH(vi, a.at[i] >> bits); }
V_OP vm vi_below(vi a, vi b) { V_EACH(vm, a.at[i] < b.at[i]); }
V_OP vi vf_bits(vf a) {
  vi r;
  memcpy(&r, &a, sizeof r);
  return r;
}
V_OP vf vi_as_float(vi a) {
  vf r;
  memcpy(&r, &a, sizeof r);
  return r;
}

/* The 64-bit products of unsigned numbers, as high and low halves. */
V_OP void vi_multiply(vi a, vi b, vi *high, vi *low) {
  for (int i = 0; i < 16; i++) {
    uint64_t product = (uint64_t)a.at[i] * b.at[i];
    high->at[i] = (uint32_t)(product >> 32);
    low->at[i] = (uint32_t)product;
  }
}

/* The lane tree of kernels.h. */
V_OP float vf_tree(vf v) {
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; i++) v.at[i] += v.at[i + half];
  return v.at[0];
}

V_OP void v_trees(const float lanes[8][16], float sums[8]) {
  for (int i = 0; i < 8; i++) sums[i] = vf_tree(vf_load(lanes[i]));
}

/* Rows become columns: lane j of v[i] changes place with lane i of v[j]. */
V_OP void vf_transpose(vf v[16]) {
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < i; j++) {
      float keep = v[i].at[j];
      v[i].at[j] = v[j].at[i];
      v[j].at[i] = keep;
    }
}

/* The lanes that m leaves out, one after the other, and their numbers from `first` on; writes at most
 * whole vectors and returns how many of the lanes count. */
V_OP unsigned vf_pack(vm m, vf v, uint32_t first, float *values, uint32_t *numbers) {
  unsigned count = 0;
  for (unsigned i = 0; i < 16; i++) {
    values[count] = v.at[i];
    numbers[count] = first + i;
    count += !m.at[i];
  }
  return count;
}

V_OP vr vr_set(float x) { return vf_set(x); }
V_OP vr vr_load(const float *p) { return vf_load(p); }
V_OP void vr_store(float *p, vr v) { vf_store(p, v); }
V_OP vr vr_load_part(const float *p, unsigned n) { return vf_load_part(p, n); }
V_OP void vr_store_part(float *p, unsigned n, vr v) { vf_store_part(p, n, v); }
V_OP vr vr_fma(vr a, vr b, vr c) { return vf_fma(a, b, c); }
V_OP vr vr_pinned(vr v) { return v; }
V_OP vr vr_add(vr a, vr b) { return vf_add(a, b); }
V_OP vr vr_sub(vr a, vr b) { return vf_sub(a, b); }
V_OP vr vr_mul(vr a, vr b) { return vf_mul(a, b); }
V_OP bool vr_any_negative_zero(vr v) {
  bool any = false;
  for (int i = 0; i < 16; i++) {
    uint32_t bits;
    memcpy(&bits, &v.at[i], sizeof bits);
    any |= bits == 0x80000000u;
  }
  return any;
}

#undef V_EACH
#undef V_OP

#endif
