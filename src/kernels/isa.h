/* isa.h: names for code that is compiled once per instruction set.
 *
 * The build defines SHOAL_ISA as baseline, avx2, avx512 or neon; ISA(gemm) is then
 * shoal_gemm_avx2, say. The list of kernels stands here once; it declares each function
 * with the type that it has in the table, and table.isa.c fills the table from it. */
#ifndef SHOAL_KERNELS_ISA_H
#define SHOAL_KERNELS_ISA_H

#include "kernels/kernels.h"

#ifndef SHOAL_ISA
#define SHOAL_ISA baseline
#endif

#define ISA_PASTE2(name, isa) shoal_##name##_##isa
#define ISA_PASTE(name, isa) ISA_PASTE2(name, isa)
#define ISA(name) ISA_PASTE(name, SHOAL_ISA)

#define SHOAL_EACH_KERNEL(X) \
  X(gemm)                    \
  X(gemm_scratch)            \
  X(sparse_rows)             \
  X(sparse_turn)             \
  X(gemm_sparse)             \
  X(conv_forward)            \
  X(conv_backward_input)     \
  X(conv_backward_weights)   \
  X(conv_backward_bias)      \
  X(conv_scratch)            \
  X(winograd_forward)        \
  X(winograd_backward)       \
  X(winograd_scratch)        \
  X(pool_forward)            \
  X(pool_backward)           \
  X(act_forward)             \
  X(act_backward)            \
  X(softmax_forward)         \
  X(softmax_backward)        \
  X(cross_entropy)           \
  X(element_loss)            \
  X(weigh_rows)              \
  X(binary_right)            \
  X(embed_forward)           \
  X(embed_backward)          \
  X(lstm_forward)            \
  X(lstm_backward)           \
  X(gru_forward)             \
  X(gru_backward)            \
  X(batchnorm_train)         \
  X(batchnorm_infer)         \
  X(batchnorm_backward)      \
  X(layernorm_forward)       \
  X(layernorm_backward)      \
  X(dropout_keys)            \
  X(dropout)                 \
  X(lanes_to_rows)           \
  X(rows_to_lanes)           \
  X(copy_rows)               \
  X(swap_rows)               \
  X(zero)                    \
  X(row_numbers)             \
  X(bytes_to_lanes)          \
  X(bytes_to_rows)           \
  X(add)                     \
  X(add_scaled)              \
  X(add_share)               \
  X(column_sums)             \
  X(sum_parts)               \
  X(square_sum)              \
  X(follow)                  \
  X(update)                  \
  X(spin)

#define ISA_DECLARE(name) extern __typeof__(*((shoal_kernels *)0)->name) ISA(name);
SHOAL_EACH_KERNEL(ISA_DECLARE)
#undef ISA_DECLARE

/* Not in the table: `count` products of one shape, whose matrices lie a, b and c floats apart. */
void ISA(gemm_many)(const shoal_gemm *g, uint32_t count, size_t a, size_t b, size_t c);

#endif
