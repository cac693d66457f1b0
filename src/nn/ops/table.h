/* table.h: the rows by name, for the table and for operations that make nodes of others. Only files of nn/ops/ include
 * it. */
#ifndef SHOAL_NN_OPS_TABLE_H
#define SHOAL_NN_OPS_TABLE_H

#include "nn/op.h"

extern const shoal_op shoal_op_input, shoal_op_dense, shoal_op_conv, shoal_op_pool, shoal_op_global_pool,
    shoal_op_flatten, shoal_op_reshape, shoal_op_embed, shoal_op_lookup, shoal_op_rnn, shoal_op_lstm,
    shoal_op_gru, shoal_op_step, shoal_op_repeat, shoal_op_dropout, shoal_op_batchnorm, shoal_op_layernorm,
    shoal_op_add, shoal_op_concat, shoal_op_activation;

#endif
