/* kernels.c: chooses the table of kernels that this processor runs fastest.
 *
 * This file is compiled without instruction-set flags, so that it can run anywhere and
 * refuse. The compiler's own detection asks CPUID for the instructions and XGETBV for
 * whether the operating system saves the wide registers. */
#include "kernels/kernels.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/tables.h"

typedef struct choice {
  const shoal_kernels *table;
  bool (*runs_here)(void);
} choice;

static bool always(void) { return true; }

#if defined(__x86_64__)
static bool has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

static bool has_avx512(void) {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

static const choice choices[] = {
/* the best first */
#if defined(__x86_64__)
    {&shoal_kernels_avx512, has_avx512},
    {&shoal_kernels_avx2, has_avx2},
#elif defined(__aarch64__)
    {&shoal_kernels_neon, always}, /* part of the architecture */
#endif
    {&shoal_kernels_baseline, always},
};
enum { CHOICES = sizeof choices / sizeof choices[0] };

const shoal_kernels *shoal_kernels_named(const char *name) {
  for (int i = 0; i < CHOICES; i++)
    if (strcmp(choices[i].table->name, name) == 0) return choices[i].runs_here() ? choices[i].table : NULL;
  return NULL;
}

const shoal_kernels *shoal_kernels_get(void) {
  const char *name = getenv("SHOAL_KERNELS");
  if (name != NULL && name[0] != '\0') return shoal_kernels_named(name);
  for (int i = 0; i < CHOICES; i++)
    if (choices[i].runs_here()) return choices[i].table;
  return NULL;
}

/* A tile of 4 x 4 outputs costs (kernel + 3)^2 products in place of 16 kernel^2, and the changes
 * to and from points, which pay only when many channels share them. */
bool shoal_winograd_suits(const shoal_window *s) {
  if (s->k_h != s->k_w || (s->k_h != 3 && s->k_h != 5) || s->stride_h != 1 || s->stride_w != 1) return false;
  if (s->in_c < 8 || s->out_c < 8) return false;
  uint64_t tiles = (uint64_t)((s->out_h + 3) / 4) * ((s->out_w + 3) / 4), side = s->k_h + 3;
  return 2 * tiles * side * side <= (uint64_t)s->out_h * s->out_w * s->k_h * s->k_w;
}
