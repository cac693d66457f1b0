/* table.isa.c: the table of one instruction set, and its speed of multiply-adds. */
#include "kernels/isa.h"
#include "kernels/simd.h"
#include "kernels/tables.h"

#define QUOTE2(text) #text
#define QUOTE(text) QUOTE2(text)

/* Enough independent chains to hide the latency of a multiply-add, few enough to stay in
 * registers. The values neither grow nor vanish, however long it runs. */
double ISA(spin)(uint64_t rounds) {
  float start[V_ACC + VR]; /* all lanes different, or the compiler would do but one */
  for (int i = 0; i < V_ACC + VR; i++) start[i] = (float)i;
  vr sum[V_ACC];
#pragma GCC unroll 24
  for (int i = 0; i < V_ACC; i++) sum[i] = vr_load(start + i);
  vr factor = vr_set(0.5f), step = vr_set(1);
  for (uint64_t round = 0; round < rounds; round++) {
#pragma GCC unroll 24
    for (int i = 0; i < V_ACC; i++) sum[i] = vr_fma(sum[i], factor, step);
  }
  float out[VR];
#pragma GCC unroll 24
  for (int i = 1; i < V_ACC; i++) sum[0] = vr_add(sum[0], sum[i]);
  vr_store(out, sum[0]);
  volatile float keep = out[0]; /* so that the compiler does not see the work as idle */
  (void)keep;
  return (double)rounds * V_ACC * VR * 2;
}

#define ENTRY(entry) .entry = ISA(entry),
const shoal_kernels ISA(kernels) = {.name = QUOTE(SHOAL_ISA), SHOAL_EACH_KERNEL(ENTRY)};
