/* table.h: the operations there are, a row each, in the order in which errors list their words. Only files of nn/ops/
 * include it: the table, and operations that make nodes of others. */
#ifndef SHOAL_NN_OPS_TABLE_H
#define SHOAL_NN_OPS_TABLE_H

#include "nn/op.h"

#define SHOAL_EACH_OP(X) \
  X(input)               \
  X(dense)               \
  X(conv)                \
  X(pool)                \
  X(global_pool)         \
  X(flatten)             \
  X(reshape)             \
  X(embed)               \
  X(lookup)              \
  X(rnn)                 \
  X(lstm)                \
  X(gru)                 \
  X(step)                \
  X(repeat)              \
  X(dropout)             \
  X(batchnorm)           \
  X(layernorm)           \
  X(add)                 \
  X(concat)              \
  X(activation)

#define SHOAL_DECLARE_OP(name) extern const shoal_op shoal_op_##name;
SHOAL_EACH_OP(SHOAL_DECLARE_OP)
#undef SHOAL_DECLARE_OP

#endif
