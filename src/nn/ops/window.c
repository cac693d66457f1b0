/* window.c: see window.h. */
#include "nn/ops/window.h"

#include <stdio.h>

/* The stride where no line gives one: pooling takes every value once. */
static uint32_t usual_stride(const shoal_layer *layer, uint32_t window) {
  return layer->op == &shoal_op_pool ? window : 1;
}

bool shoal_window_read(shoal_reading *r, shoal_layer *layer) {
  shoal_window *window = &layer->window;
  uint32_t sizes[3];
  r->size = r->words.word;
  if (!shoal_words_sizes(&r->words, "a window such as 5x5", 1, 2, 2, sizes)) return false;
  window->k_h = sizes[0];
  window->k_w = sizes[1];
  window->stride_h = usual_stride(layer, window->k_h);
  window->stride_w = usual_stride(layer, window->k_w);
  return true;
}

/* " stride 2" or " stride 2x1". */
static void add_pair(shoal_text *out, const char *before, uint32_t h, uint32_t w) {
  if (h == w)
    shoal_text_addf(out, "%s%u", before, h);
  else
    shoal_text_addf(out, "%s%ux%u", before, h, w);
}

void shoal_window_write(const shoal_layer *layer, shoal_text *out) {
  const shoal_window *w = &layer->window;
  shoal_text_addf(out, " %ux%u", w->k_h, w->k_w);
  if (w->stride_h != usual_stride(layer, w->k_h) || w->stride_w != usual_stride(layer, w->k_w))
    add_pair(out, " stride ", w->stride_h, w->stride_w);
  if (w->pad_h || w->pad_w) add_pair(out, " pad ", w->pad_h, w->pad_w);
}

/* The smallest padding with which the window fits. */
static uint32_t enough_pad(uint32_t window, uint32_t size, uint32_t pad) {
  uint32_t least = window > size ? (window - size + 1) / 2 : 0;
  return pad > least ? pad : least;
}

static bool does_not_fit(shoal_reading *r, const shoal_window *w, const shoal_shape *in) {
  uint32_t pad_h = enough_pad(w->k_h, in->h, w->pad_h), pad_w = enough_pad(w->k_w, in->w, w->pad_w);
  char padded[32], advice[80] = "";
  bool is_last =
      in->c == in->h && in->c > in->w && (in->w == 1 || in->w == 3); /* the channels, as in Keras */
  snprintf(padded, sizeof padded, w->pad_h == w->pad_w ? "%u" : "%ux%u", w->pad_h, w->pad_w);
  if (is_last)
    snprintf(advice, sizeof advice, "; channels come first: `input %ux%ux%u`", in->w, in->c, in->h);
  else
    snprintf(advice, sizeof advice, pad_h == pad_w ? " or add `pad %u`" : " or add `pad %ux%u`", pad_h,
             pad_w);
  return shoal_words_fail(
      &r->words, r->size,
      "a %ux%u window does not fit into an image of %ux%u after padding %s; make the window "
      "smaller%s",
      w->k_h, w->k_w, in->h, in->w, padded, advice);
}

bool shoal_window_infer(shoal_reading *r, shoal_layer *layer, const shoal_shape *in) {
  shoal_window *window = &layer->window;
  uint32_t channels = layer->units > 0 ? layer->units : in->c;
  if (in->kind != SHOAL_IMAGE)
    return shoal_wrong_input(r, in, "an image", "an earlier line like `reshape 1x28x28` can make one");
  if (window->pad_h >= window->k_h || window->pad_w >= window->k_w)
    return shoal_words_fail(
        &r->words, r->options[SHOAL_OPTION_PAD],
        "a padding of %ux%u is not smaller than the window of %ux%u; windows at the border "
        "would see nothing of the image",
        window->pad_h, window->pad_w, window->k_h, window->k_w);
  uint64_t h = (uint64_t)in->h + 2 * (uint64_t)window->pad_h,
           w = (uint64_t)in->w + 2 * (uint64_t)window->pad_w;
  if (window->k_h > h || window->k_w > w) return does_not_fit(r, window, in);
  h = (h - window->k_h) / window->stride_h + 1;
  w = (w - window->k_w) / window->stride_w + 1;
  /* The padding is below the window and the window within the padded image, so neither
   * can pass three times the largest size that was read; past 32 bits it is refused here. */
  if (shoal_product(channels, h, w, 1) > SHOAL_VALUES_MAX)
    return shoal_too_many_values(r, r->size, "its output");
  layer->shape = (shoal_shape){SHOAL_IMAGE, 1, 1, channels, (uint32_t)h, (uint32_t)w};
  window->in_c = in->c, window->in_h = in->h, window->in_w = in->w;
  window->out_c = channels, window->out_h = layer->shape.h, window->out_w = layer->shape.w;
  return true;
}

shoal_window shoal_window_of_call(const shoal_call *call) {
  shoal_window window = call->node->window;
  window.lanes = call->lanes;
  return window;
}

void shoal_window_onnx(shoal_onnx_export *e, const shoal_window *w) {
  shoal_onnx_attribute_ints(e->file, "kernel_shape", 2, (int64_t[]){w->k_h, w->k_w});
  shoal_onnx_attribute_ints(e->file, "strides", 2, (int64_t[]){w->stride_h, w->stride_w});
  shoal_onnx_attribute_ints(e->file, "pads", 4, (int64_t[]){w->pad_h, w->pad_w, w->pad_h, w->pad_w});
}
