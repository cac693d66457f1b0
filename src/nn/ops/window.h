/* window.h: what conv and pool share: a window that moves over an image. */
#ifndef SHOAL_NN_OPS_WINDOW_H
#define SHOAL_NN_OPS_WINDOW_H

#include "nn/model_internal.h"
#include "nn/onnx.h"
#include "nn/ops/table.h"

/* Of a line: read, write and infer of a row. The window, as in "5x5", and the usual stride; options are read later. */
bool shoal_window_read(shoal_reading *r, shoal_layer *layer);
void shoal_window_write(const shoal_layer *layer, shoal_text *out);
bool shoal_window_infer(shoal_reading *r, shoal_layer *layer, const shoal_shape *in);
shoal_window shoal_window_of_call(const shoal_call *call);
void shoal_window_onnx(shoal_onnx_export *e, const shoal_window *window); /* the operator's attributes */

#endif
