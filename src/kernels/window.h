/* window.h: which taps of a window lie inside the image, along one axis. */
#ifndef SHOAL_KERNELS_WINDOW_H
#define SHOAL_KERNELS_WINDOW_H

#include <stddef.h>
#include <stdint.h>

/* The taps that one coordinate of the destination uses: kernel indices first, first +
 * step, ... and the coordinate of the source that the first of them reads. */
typedef struct taps {
  uint32_t first, count, source;
} taps;

/* Destination: the output of the window. The source coordinate grows with the tap, both by 1. */
static inline taps taps_forward(uint32_t at, uint32_t kernel, uint32_t stride, uint32_t pad,
                                uint32_t in_size) {
  uint32_t start = at * stride; /* in the padded image */
  uint32_t first = start < pad ? pad - start : 0;
  uint32_t end = in_size + pad > start ? in_size + pad - start : 0;
  if (end > kernel) end = kernel;
  return first < end ? (taps){first, end - first, start + first - pad} : (taps){0, 0, 0};
}

/* Destination: the input of the window, whose outputs are the source. Only every stride-th
 * tap hits an output, and the source coordinate falls by 1 from one to the next. */
static inline taps taps_backward(uint32_t at, uint32_t kernel, uint32_t stride, uint32_t pad,
                                 uint32_t out_size) {
  uint32_t place = at + pad, last_start = (out_size - 1) * stride;
  uint32_t first = place > last_start ? place - last_start : place % stride;
  uint32_t last = place < kernel - 1 ? place : kernel - 1;
  if (first > last) return (taps){0, 0, 0};
  return (taps){first, (last - first) / stride + 1, (place - first) / stride};
}

#endif
