/* table.c: the operations there are. */
#include "nn/ops/table.h"

#include <string.h>

const shoal_op *const shoal_ops[] = {
    &shoal_op_input,     &shoal_op_dense,     &shoal_op_conv,  &shoal_op_pool,   &shoal_op_global_pool,
    &shoal_op_flatten,   &shoal_op_reshape,   &shoal_op_embed, &shoal_op_lookup, &shoal_op_rnn,
    &shoal_op_lstm,      &shoal_op_gru,       &shoal_op_step,  &shoal_op_repeat, &shoal_op_dropout,
    &shoal_op_batchnorm, &shoal_op_layernorm, &shoal_op_add,   &shoal_op_concat, &shoal_op_activation,
};
const uint32_t shoal_ops_count = sizeof shoal_ops / sizeof shoal_ops[0];
_Static_assert(sizeof shoal_ops / sizeof shoal_ops[0] <= SHOAL_OPS_MAX, "make SHOAL_OPS_MAX larger");
const shoal_op *const shoal_activation_op = &shoal_op_activation;

const shoal_op *shoal_op_named(const char *word, size_t length) {
  for (uint32_t i = 0; i < shoal_ops_count; i++) {
    const shoal_op *op = shoal_ops[i];
    if (!op->is_inner && strlen(op->word) == length && memcmp(op->word, word, length) == 0) return op;
  }
  return NULL;
}
