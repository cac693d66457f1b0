/* window.h: what conv and pool share: a window that moves over an image. */
#ifndef SHOAL_NN_OPS_WINDOW_H
#define SHOAL_NN_OPS_WINDOW_H

#include "nn/model_internal.h"
#include "nn/onnx.h"
#include "nn/ops/table.h"

bool shoal_window_read(shoal_reading *r, shoal_layer *layer); /* "5x5" */
/* What differs from a stride of this size and no padding. */
void shoal_window_write(const shoal_layer *layer, uint32_t stride_h, uint32_t stride_w, shoal_text *out);
bool shoal_window_needs_image(shoal_reading *r, const shoal_shape *in);
/* The output, an image of so many channels. */
bool shoal_window_infer(shoal_reading *r, shoal_layer *layer, const shoal_shape *in, uint32_t channels);
shoal_window shoal_window_of_layer(const shoal_layer *layer, const shoal_shape *in);
shoal_window shoal_window_of_call(const shoal_call *call);
void shoal_window_onnx(shoal_onnx_export *e, const shoal_window *window); /* the operator's attributes */

#endif
