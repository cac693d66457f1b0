/* pool.isa.c: pooling of images in LANES layout; every step is a whole vector of samples.
 *
 * Backward does not remember where an extreme was: it finds the first tap that equals the
 * output again, which is cheaper than writing and reading indices. */
#include "kernels/isa.h"
#include "kernels/simd.h"
#include "kernels/window.h"

#include <string.h>

/* The part of one window that lies inside the image. */
typedef struct patch {
  size_t offset; /* of its first pixel, in floats */
  uint32_t rows, cols;
} patch;

static patch patch_at(const shoal_window *s, uint32_t c, uint32_t y, uint32_t x) {
  taps rows = taps_forward(y, s->k_h, s->stride_h, s->pad_h, s->in_h);
  taps cols = taps_forward(x, s->k_w, s->stride_w, s->pad_w, s->in_w);
  size_t pixel = ((size_t)c * s->in_h + rows.source) * s->in_w + cols.source;
  return (patch){pixel * s->lanes, rows.count, cols.count};
}

V_INLINE vf pool_patch(shoal_pool_kind kind, const shoal_window *s, patch p, const float *x) {
  vf y = kind == SHOAL_POOL_AVERAGE ? vf_zero() : vf_load(x);
  for (uint32_t row = 0; row < p.rows; row++)
    for (uint32_t col = 0; col < p.cols; col++) {
      vf pixel = vf_load(x + ((size_t)row * s->in_w + col) * s->lanes);
      y = kind == SHOAL_POOL_MAX   ? vf_max(y, pixel)
          : kind == SHOAL_POOL_MIN ? vf_min(y, pixel)
                                   : vf_add(y, pixel);
    }
  return kind == SHOAL_POOL_AVERAGE ? vf_div(y, vf_set((float)(p.rows * p.cols))) : y;
}

V_INLINE void pool_image(shoal_pool_kind kind, const shoal_window *s, const float *x, float *y) {
  for (uint32_t c = 0; c < s->out_c; c++)
    for (uint32_t row = 0; row < s->out_h; row++)
      for (uint32_t col = 0; col < s->out_w; col++) {
        patch p = patch_at(s, c, row, col);
        for (uint32_t lane = 0; lane < s->lanes; lane += 16, y += 16)
          vf_store(y, p.rows * p.cols > 0 ? pool_patch(kind, s, p, x + p.offset + lane) : vf_zero());
      }
}

void ISA(pool_forward)(shoal_pool_kind kind, const shoal_window *s, const float *x, float *y) {
  switch (kind) {
  case SHOAL_POOL_MAX: pool_image(SHOAL_POOL_MAX, s, x, y); break;
  case SHOAL_POOL_MIN: pool_image(SHOAL_POOL_MIN, s, x, y); break;
  case SHOAL_POOL_AVERAGE: pool_image(SHOAL_POOL_AVERAGE, s, x, y); break;
  }
}

/* Whether every pixel lies in exactly one window: then gradients need not be added up. */
static bool windows_tile(const shoal_window *s) {
  return s->stride_h == s->k_h && s->stride_w == s->k_w && s->pad_h == 0 && s->pad_w == 0 &&
         s->out_h * s->k_h == s->in_h && s->out_w * s->k_w == s->in_w;
}

V_INLINE void give(float *dx, const bool alone, vf value) {
  vf_store(dx, alone ? value : vf_add(vf_load(dx), value));
}

/* The first tap that equals y gets dy. */
V_INLINE void spread_extreme(const shoal_window *s, patch p, const bool alone, const float *x, vf y, vf dy,
                             float *dx) {
  vm waiting = vm_first(16);
  for (uint32_t row = 0; row < p.rows; row++)
    for (uint32_t col = 0; col < p.cols; col++) {
      size_t at = ((size_t)row * s->in_w + col) * s->lanes;
      vm found = vm_and(waiting, vf_eq(vf_load(x + at), y));
      waiting = vm_and_not(waiting, found);
      give(dx + at, alone, vf_select(found, dy, vf_zero()));
    }
}

V_INLINE void spread_average(const shoal_window *s, patch p, const bool alone, vf dy, float *dx) {
  vf share = vf_div(dy, vf_set((float)(p.rows * p.cols)));
  for (uint32_t row = 0; row < p.rows; row++)
    for (uint32_t col = 0; col < p.cols; col++)
      give(dx + ((size_t)row * s->in_w + col) * s->lanes, alone, share);
}

/* average and alone are constants where this is called. */
V_INLINE void spread_image(const bool average, const bool alone, const shoal_window *s, const float *x,
                           const float *y, const float *dy, float *dx) {
  size_t out = 0;
  for (uint32_t c = 0; c < s->out_c; c++)
    for (uint32_t row = 0; row < s->out_h; row++)
      for (uint32_t col = 0; col < s->out_w; col++) {
        patch p = patch_at(s, c, row, col);
        for (uint32_t lane = 0; lane < s->lanes; lane += 16, out += 16) {
          size_t at = p.offset + lane;
          if (average)
            spread_average(s, p, alone, vf_load(dy + out), dx + at);
          else
            spread_extreme(s, p, alone, x + at, vf_load(y + out), vf_load(dy + out), dx + at);
        }
      }
}

void ISA(pool_backward)(shoal_pool_kind kind, const shoal_window *s, const float *x, const float *y,
                        const float *dy, float *dx) {
  const bool average = kind == SHOAL_POOL_AVERAGE, alone = windows_tile(s);
  if (!alone) memset(dx, 0, sizeof *dx * s->in_c * s->in_h * s->in_w * s->lanes);
  if (average && alone)
    spread_image(true, true, s, x, y, dy, dx);
  else if (average)
    spread_image(true, false, s, x, y, dy, dx);
  else if (alone)
    spread_image(false, true, s, x, y, dy, dx);
  else
    spread_image(false, false, s, x, y, dy, dx);
}
