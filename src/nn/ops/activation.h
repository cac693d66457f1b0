/* activation.h: the facts of every activation, in the order of their enum. */
#ifndef SHOAL_NN_OPS_ACTIVATION_H
#define SHOAL_NN_OPS_ACTIVATION_H

#include "nn/onnx_op.h"
#include "nn/ops/table.h"

typedef struct shoal_activation_row {
  bool
      never_falls; /* as its argument rises: it may as well be taken of the largest or the smallest value alone */
  bool reads_input; /* its derivative is taken from its argument, not from its value */
  bool wants_he;    /* it passes about half of a signal on: weights before it begin larger */
  const char *(*onnx)(shoal_onnx_file *file, const char *x);
} shoal_activation_row;

extern const shoal_activation_row shoal_activation_rows[];

#endif
