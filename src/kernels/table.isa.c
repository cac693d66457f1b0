/* table.isa.c: the table of one instruction set, and its speed of multiply-adds. */
#include "kernels/isa.h"
#include "kernels/simd.h"
#include "kernels/tables.h"

#define QUOTE2(text) #text
#define QUOTE(text) QUOTE2(text)

/* Enough independent chains to hide the latency of a multiply-add, few enough to stay in
 * registers. The sums grow until a step is too small to change them, so they never leave the
 * range in which a processor is fast. The compiler must not see through it: lanes that are
 * equal or not used afterwards need no work, and a product of constants is one. */
double ISA(spin)(uint64_t rounds) {
  float start[V_ACC * VR];
  for (int i = 0; i < V_ACC * VR; i++) start[i] = (float)i;
  vr sum[V_ACC];
#pragma GCC unroll 24
  for (int i = 0; i < V_ACC; i++) sum[i] = vr_load(start + i * VR);
  volatile float unknown = 0.5f;
  vr factor = vr_set(unknown), step = vr_set(unknown);
  for (uint64_t round = 0; round < rounds; round++) {
#pragma GCC unroll 24
    for (int i = 0; i < V_ACC; i++) sum[i] = vr_fma(factor, step, sum[i]);
  }
#pragma GCC unroll 24
  for (int i = 1; i < V_ACC; i++) sum[0] = vr_add(sum[0], sum[i]);
  float out[VR], total = 0;
  vr_store(out, sum[0]);
  for (int i = 0; i < VR; i++) total += out[i];
  unknown = total;
  return (double)rounds * V_ACC * VR * 2;
}

#define ENTRY(entry) .entry = ISA(entry),
const shoal_kernels ISA(kernels) = {.name = QUOTE(SHOAL_ISA), SHOAL_EACH_KERNEL(ENTRY)};
