/* tables.h: the tables that this build has; kernels.c chooses among them. */
#ifndef SHOAL_KERNELS_TABLES_H
#define SHOAL_KERNELS_TABLES_H

#include "kernels/kernels.h"

extern const shoal_kernels shoal_kernels_baseline;
extern const shoal_kernels shoal_kernels_avx2;
extern const shoal_kernels shoal_kernels_avx512;
extern const shoal_kernels shoal_kernels_neon;

#endif
