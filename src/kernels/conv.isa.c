/* conv.isa.c: convolution of images in LANES layout, directly, without an image of patches.
 *
 * A lane is a sample, so a weight is a broadcast and a pixel a whole vector. Forward and
 * backward to the input are the same walk with other strides: a destination pixel is a
 * chain over (source channel, tap row, tap column); see window.h for the taps. The block in
 * registers is up to 6 destination channels by a few vectors which use the same taps: of one
 * pixel where there are enough lanes, else of neighbouring pixels; near a padded border the
 * taps differ from pixel to pixel and such blocks are narrower.
 *
 * Backward to the weights keeps a few output channels by up to 6 taps in registers, and
 * walks over all pixels; only at the end do the lanes become one number. Few channels and
 * many taps, because the taps share an image in the first cache.
 *
 * The block of weights in use is packed and stays in the first cache, and the image (a few
 * hundred kilobytes for 16 samples) in the second. */
#include "kernels/isa.h"
#include "kernels/simd.h"
#include "kernels/window.h"

enum { CHANNELS = 6, PIXELS = V_ACC / CHANNELS, GRAD_TAPS = 6, GRAD_CHANNELS = V_ACC / GRAD_TAPS };

/* The blocks of up to `most` that share n are of equal size or one more. */
static uint32_t block_count(uint32_t n, uint32_t most) { return (n + most - 1) / most; }
static uint32_t block_first(uint32_t n, uint32_t index, uint32_t blocks) {
  return (uint32_t)((uint64_t)n * index / blocks);
}

/* ---- forward, and backward to the input --------------------------------------------------- */

/* One of the two passes, seen as a walk from a source to a destination. */
typedef struct walk {
  uint32_t from_c, from_h, from_w;
  uint32_t to_c, to_h, to_w;
  uint32_t k_h, k_w, stride_h, stride_w, pad_h, pad_w, lanes;
  bool backward;
  bool wide; /* the vectors of a block are lanes of one pixel, not neighbouring pixels */
  const float *from;
  float *to;
  const float *start;            /* of the chains, one per destination channel, or NULL for zero */
  size_t weight_to, weight_from; /* strides of the weights per channel */
} walk;

/* What a row of blocks needs: strides are in floats, signed where they may go backward. */
typedef struct tile {
  const float *from, *weights, *start;
  float *to;
  uint32_t blocks;      /* one after the other, with the same taps: */
  ptrdiff_t from_block; /* from a block to the next */
  size_t to_block;
  uint32_t channels, rows, cols; /* trip counts: source channels, tap rows, tap columns */
  ptrdiff_t from_channel, from_row, from_col, from_pixel;
  size_t weight_channel, weight_row, weight_col;
  size_t to_channel, to_pixel;
} tile;

/* The numbers of channels and pixels are constants where this is called. */
V_INLINE void conv_block(const unsigned channels, const unsigned pixels, const tile *t, const float *corner,
                         float *to) {
  vr sum[CHANNELS][4];
#pragma GCC unroll 6
  for (unsigned o = 0; o < channels; o++)
#pragma GCC unroll 4
    for (unsigned p = 0; p < pixels; p++) sum[o][p] = vr_set(t->start != NULL ? t->start[o] : 0);

  const ptrdiff_t from_pixel = t->from_pixel, from_col = t->from_col;
  const size_t weight_col = t->weight_col;
  const uint32_t cols = t->cols;
  for (uint32_t c = 0; c < t->channels; c++)
    for (uint32_t row = 0; row < t->rows; row++) {
      const float *from = corner + (ptrdiff_t)c * t->from_channel + (ptrdiff_t)row * t->from_row;
      const float *weights = t->weights + c * t->weight_channel + row * t->weight_row;
      for (uint32_t col = cols; col > 0; col--) {
        vr x[4];
#pragma GCC unroll 4
        for (unsigned p = 0; p < pixels; p++) x[p] = vr_load(from + (ptrdiff_t)p * from_pixel);
#pragma GCC unroll 6
        for (unsigned o = 0; o < channels; o++) {
          vr w = vr_set(weights[o]);
#pragma GCC unroll 4
          for (unsigned p = 0; p < pixels; p++) sum[o][p] = vr_fma(w, x[p], sum[o][p]);
        }
        from += from_col;
        weights += weight_col;
      }
    }

#pragma GCC unroll 6
  for (unsigned o = 0; o < channels; o++)
#pragma GCC unroll 4
    for (unsigned p = 0; p < pixels; p++) vr_store(to + o * t->to_channel + p * t->to_pixel, sum[o][p]);
}

V_INLINE void conv_blocks(const unsigned channels, const unsigned pixels, const tile *t) {
  const float *from = t->from;
  float *to = t->to;
  for (uint32_t block = t->blocks; block > 0; block--, from += t->from_block, to += t->to_block)
    conv_block(channels, pixels, t, from, to);
}

static void run_tile(uint32_t channels, uint32_t pixels, const tile *t) {
#define CASE(o, p)                                           \
  case o * 8 + p:                                            \
    if (p <= PIXELS) conv_blocks(o, p <= PIXELS ? p : 1, t); \
    break;
#define CASES(o) CASE(o, 1) CASE(o, 2) CASE(o, 3) CASE(o, 4)
  switch (channels * 8 + pixels) { CASES(1) CASES(2) CASES(3) CASES(4) CASES(5) CASES(6) }
#undef CASES
#undef CASE
}

static taps walk_taps(const walk *w, uint32_t at, uint32_t kernel, uint32_t stride, uint32_t pad,
                      uint32_t size) {
  return w->backward ? taps_backward(at, kernel, stride, pad, size)
                     : taps_forward(at, kernel, stride, pad, size);
}

/* The outputs from first to end - 1 have all taps of the kernel inside the image. */
typedef struct range {
  uint32_t first, end;
} range;

static range whole_windows(uint32_t out, uint32_t kernel, uint32_t stride, uint32_t pad, uint32_t in) {
  uint32_t first = (pad + stride - 1) / stride;
  uint32_t end = in + pad >= kernel ? (in + pad - kernel) / stride + 1 : 0;
  if (end > out) end = out;
  return first < end ? (range){first, end} : (range){out, out};
}

/* How many pixels of a row from x on use the same taps: backward, of those a stride apart. Away
 * from the border that is all up to the other border; at the border every pixel is by itself. */
static uint32_t same_taps(const walk *w, uint32_t x) {
  if (!w->backward) {
    range inner = whole_windows(w->to_w, w->k_w, w->stride_w, w->pad_w, w->from_w);
    return x >= inner.first && x < inner.end ? inner.end - x : 1;
  }
  uint32_t place = x + w->pad_w, last = (w->from_w - 1) * w->stride_w;
  if (place + 1 < w->k_w || place > last) return 1;
  uint32_t inside = (last - place) / w->stride_w, left = (w->to_w - 1 - x) / w->stride_w;
  return (inside < left ? inside : left) + 1;
}

/* Some pixels of a row with the same taps, as blocks of `pixels` each. */
static void walk_run(uint32_t channels, uint32_t pixels, uint32_t blocks, tile *t, size_t from_step,
                     size_t to_step) {
  if (blocks == 0) return;
  t->blocks = blocks;
  t->from_block = (ptrdiff_t)from_step;
  t->to_block = to_step;
  run_tile(channels, pixels, t);
  t->from += blocks * from_step;
  t->to += blocks * to_step;
}

/* One row of the destination. `row` holds all that is the same for the row; its pointers
 * are at the start of the row's data. */
static void walk_row(const walk *w, uint32_t channels, const tile *row) {
  const uint32_t step = w->backward ? w->stride_w : 1; /* to the next pixel with the same taps */
  const size_t from_step = (w->backward ? 1 : w->stride_w) * (size_t)w->lanes,
               to_step = step * (size_t)w->lanes;
  for (uint32_t phase = 0; phase < step && phase < w->to_w; phase++)
    for (uint32_t x = phase, pixels; x < w->to_w; x += pixels * step) {
      taps first = walk_taps(w, x, w->k_w, w->stride_w, w->pad_w, w->from_w);
      pixels = same_taps(w, x);
      tile t = *row;
      t.cols = first.count;
      t.from += (size_t)first.source * w->lanes;
      t.weights += first.first * channels;
      t.to += (size_t)x * w->lanes;
      if (w->wide) {
        walk_run(channels, PIXELS, pixels, &t, from_step, to_step);
      } else {
        walk_run(channels, PIXELS, pixels / PIXELS, &t, PIXELS * from_step, PIXELS * to_step);
        walk_run(channels, pixels % PIXELS, pixels % PIXELS > 0, &t, 0, 0);
      }
    }
}

/* All pixels of some destination channels, in the lanes from `lane` on. */
static void walk_channels(const walk *w, uint32_t first, uint32_t channels, uint32_t lane,
                          const float *weights) {
  const size_t lanes = w->lanes;
  const ptrdiff_t direction = w->backward ? -1 : 1;
  const uint32_t tap_step_h = w->backward ? w->stride_h : 1, tap_step_w = w->backward ? w->stride_w : 1;
  for (uint32_t y = 0; y < w->to_h; y++) {
    taps rows = walk_taps(w, y, w->k_h, w->stride_h, w->pad_h, w->from_h);
    tile t = {
        .from = w->from + (size_t)rows.source * w->from_w * lanes + lane,
        .weights = weights + (size_t)rows.first * w->k_w * channels,
        .start = w->start != NULL ? w->start + first : NULL,
        .to = w->to + ((size_t)first * w->to_h + y) * w->to_w * lanes + lane,
        .channels = w->from_c,
        .rows = rows.count,
        .from_channel = (ptrdiff_t)((size_t)w->from_h * w->from_w * lanes),
        .from_row = direction * (ptrdiff_t)(w->from_w * lanes),
        .from_col = direction * (ptrdiff_t)lanes,
        .from_pixel = (ptrdiff_t)(w->wide       ? VR
                                  : w->backward ? lanes
                                                : w->stride_w * lanes),
        .weight_channel = (size_t)w->k_h * w->k_w * channels,
        .weight_row = (size_t)tap_step_h * w->k_w * channels,
        .weight_col = (size_t)tap_step_w * channels,
        .to_channel = (size_t)w->to_h * w->to_w * lanes,
        .to_pixel = w->wide ? VR : tap_step_w * lanes,
    };
    walk_row(w, channels, &t);
  }
}

/* The weights of a block of destination channels, those of one tap side by side. */
static void pack_weights(const walk *w, const float *weights, uint32_t first, uint32_t channels, float *to) {
  const size_t area = (size_t)w->k_h * w->k_w;
  for (uint32_t c = 0; c < w->from_c; c++)
    for (size_t tap = 0; tap < area; tap++)
      for (uint32_t o = 0; o < channels; o++)
        *to++ = weights[(first + o) * w->weight_to + c * w->weight_from + tap];
}

static void run_walk(walk *w, const float *weights, float *scratch) {
  const uint32_t blocks = block_count(w->to_c, CHANNELS);
  w->wide = w->lanes % (PIXELS * VR) == 0;
  for (uint32_t b = 0; b < blocks; b++) {
    uint32_t first = block_first(w->to_c, b, blocks), channels = block_first(w->to_c, b + 1, blocks) - first;
    pack_weights(w, weights, first, channels, scratch);
    for (uint32_t lane = 0; lane < w->lanes; lane += w->wide ? PIXELS * VR : VR)
      walk_channels(w, first, channels, lane, scratch);
  }
}

void ISA(conv_forward)(const shoal_window *s, const float *x, const float *w, const float *bias, float *y,
                       float *scratch) {
  const size_t area = (size_t)s->k_h * s->k_w;
  walk forward = {
      .from_c = s->in_c,
      .from_h = s->in_h,
      .from_w = s->in_w,
      .to_c = s->out_c,
      .to_h = s->out_h,
      .to_w = s->out_w,
      .k_h = s->k_h,
      .k_w = s->k_w,
      .stride_h = s->stride_h,
      .stride_w = s->stride_w,
      .pad_h = s->pad_h,
      .pad_w = s->pad_w,
      .lanes = s->lanes,
      .from = x,
      .to = y,
      .start = bias,
      .weight_to = s->in_c * area,
      .weight_from = area,
  };
  run_walk(&forward, w, scratch);
}

void ISA(conv_backward_input)(const shoal_window *s, const float *dy, const float *w, uint32_t weight_c,
                              float *dx, float *scratch) {
  const size_t area = (size_t)s->k_h * s->k_w;
  walk backward = {
      .from_c = s->out_c,
      .from_h = s->out_h,
      .from_w = s->out_w,
      .to_c = s->in_c,
      .to_h = s->in_h,
      .to_w = s->in_w,
      .k_h = s->k_h,
      .k_w = s->k_w,
      .stride_h = s->stride_h,
      .stride_w = s->stride_w,
      .pad_h = s->pad_h,
      .pad_w = s->pad_w,
      .lanes = s->lanes,
      .backward = true,
      .from = dy,
      .to = dx,
      .weight_to = area,
      .weight_from = weight_c * area,
  };
  run_walk(&backward, w, scratch);
}

size_t ISA(conv_scratch)(const shoal_window *s) {
  uint32_t most = s->in_c > s->out_c ? s->in_c : s->out_c;
  return (size_t)CHANNELS * most * s->k_h * s->k_w;
}

/* ---- backward to the weights -------------------------------------------------------------- */

typedef struct grad {
  const shoal_window *s;
  const float *x, *dy;                     /* of the block's first output channel; lane of the block */
  ptrdiff_t offset[GRAD_TAPS];             /* from a window's corner to the tap's pixel */
  uint32_t row[GRAD_TAPS], col[GRAD_TAPS]; /* of the tap in the kernel */
} grad;

/* Adds one output pixel to the sums. Taps outside the image are skipped when `check` is set,
 * which is when the window crosses the border. */
V_INLINE void grad_pixel(const unsigned channels, const unsigned taps_count, const bool check, const grad *g,
                         const float *x, const float *dy, size_t plane, uint32_t y_at, uint32_t x_at,
                         vr sum[4][GRAD_TAPS]) {
  vr d[4];
#pragma GCC unroll 4
  for (unsigned o = 0; o < channels; o++) d[o] = vr_load(dy + o * plane);
#pragma GCC unroll 6
  for (unsigned t = 0; t < taps_count; t++) {
    const shoal_window *s = g->s; /* unsigned: a coordinate before the image is huge */
    if (check && (y_at * s->stride_h + g->row[t] - s->pad_h >= s->in_h ||
                  x_at * s->stride_w + g->col[t] - s->pad_w >= s->in_w))
      continue;
    vr pixel = vr_pinned(vr_load(x + g->offset[t]));
#pragma GCC unroll 4
    for (unsigned o = 0; o < channels; o++) sum[o][t] = vr_fma(pixel, d[o], sum[o][t]);
  }
}

/* The sums of a few channels by up to 6 taps over all pixels, VR lanes of each of the
 * groups; those of channel o and tap t go to out + (o * GRAD_TAPS + t) * 16. */
V_INLINE void grad_block(const unsigned channels, const unsigned taps_count, const grad *g, float *out) {
  const shoal_window *s = g->s;
  const size_t lanes = s->lanes, plane = (size_t)s->out_h * s->out_w * lanes;
  const range whole_rows = whole_windows(s->out_h, s->k_h, s->stride_h, s->pad_h, s->in_h);
  const range whole_cols = whole_windows(s->out_w, s->k_w, s->stride_w, s->pad_w, s->in_w);
  const ptrdiff_t step = (ptrdiff_t)(s->stride_w * lanes);
  vr sum[4][GRAD_TAPS];
#pragma GCC unroll 4
  for (unsigned o = 0; o < channels; o++)
#pragma GCC unroll 6
    for (unsigned t = 0; t < taps_count; t++) sum[o][t] = vr_set(0);

  for (size_t group = 0; group < lanes; group += 16)
    for (uint32_t y = 0; y < s->out_h; y++) {
      const bool whole = y >= whole_rows.first && y < whole_rows.end;
      const uint32_t first = whole ? whole_cols.first : s->out_w, end = whole ? whole_cols.end : s->out_w;
      ptrdiff_t corner = (ptrdiff_t)y * s->stride_h - s->pad_h; /* of the window, maybe outside */
      const float *x = g->x + group + (corner * (ptrdiff_t)s->in_w - (ptrdiff_t)s->pad_w) * (ptrdiff_t)lanes;
      const float *dy = g->dy + group + (size_t)y * s->out_w * lanes;
      for (uint32_t at = 0; at < s->out_w;) {
        if (at != first) {
          grad_pixel(channels, taps_count, true, g, x, dy, plane, y, at, sum);
          at++, x += step, dy += lanes;
          continue;
        }
        for (; at < end; at++, x += step, dy += lanes)
          grad_pixel(channels, taps_count, false, g, x, dy, plane, y, at, sum);
      }
    }

#pragma GCC unroll 4
  for (unsigned o = 0; o < channels; o++)
#pragma GCC unroll 6
    for (unsigned t = 0; t < taps_count; t++) vr_store(out + (o * GRAD_TAPS + t) * 16, sum[o][t]);
}

static void run_grad(uint32_t channels, uint32_t taps_count, const grad *g, float *out) {
#define CASE(o, t)                                                             \
  case o * 8 + t:                                                              \
    if (o <= GRAD_CHANNELS) grad_block(o <= GRAD_CHANNELS ? o : 1, t, g, out); \
    break;
#define CASES(o) CASE(o, 1) CASE(o, 2) CASE(o, 3) CASE(o, 4) CASE(o, 5) CASE(o, 6)
  switch (channels * 8 + taps_count) { CASES(1) CASES(2) CASES(3) CASES(4) }
#undef CASES
#undef CASE
}

void ISA(conv_backward_bias)(const shoal_window *s, const float *dy, float *dbias) {
  const size_t area = (size_t)s->out_h * s->out_w;
  for (uint32_t o = 0; o < s->out_c; o++, dy += area * s->lanes) {
    vf sum = vf_zero();
    for (uint32_t group = 0; group < s->lanes; group += 16)
      for (size_t i = 0; i < area; i++) sum = vf_add(sum, vf_load(dy + i * s->lanes + group));
    dbias[o] += vf_tree(sum);
  }
}

void ISA(conv_backward_weights)(const shoal_window *s, const float *x, const float *dy, float *dw) {
  const uint32_t area = s->k_h * s->k_w, taps_count = s->in_c * area;
  const uint32_t blocks = block_count(s->out_c, GRAD_CHANNELS),
                 tap_blocks = block_count(taps_count, GRAD_TAPS);
  const size_t lanes = s->lanes;
  enum { SUMS = (V_ACC + 7) / 8 * 8 };
  float lanes_of[SUMS][16] = {{0}}; /* the sums of a block, before its lanes are added */
  for (uint32_t tb = 0; tb < tap_blocks; tb++) {
    uint32_t t0 = block_first(taps_count, tb, tap_blocks),
             count = block_first(taps_count, tb + 1, tap_blocks) - t0;
    grad g = {.s = s};
    for (uint32_t i = 0; i < count; i++) {
      uint32_t channel = (t0 + i) / area, tap = (t0 + i) % area;
      g.row[i] = tap / s->k_w;
      g.col[i] = tap % s->k_w;
      g.offset[i] = (ptrdiff_t)((((size_t)channel * s->in_h + g.row[i]) * s->in_w + g.col[i]) * lanes);
    }
    for (uint32_t b = 0; b < blocks; b++) {
      uint32_t first = block_first(s->out_c, b, blocks),
               channels = block_first(s->out_c, b + 1, blocks) - first;
      float sums[SUMS];
      for (uint32_t lane = 0; lane < 16; lane += VR) {
        g.x = x + lane;
        g.dy = dy + (size_t)first * s->out_h * s->out_w * lanes + lane;
        run_grad(channels, count, &g, &lanes_of[0][lane]);
      }
      for (uint32_t i = 0; i < SUMS; i += 8) v_trees((const float(*)[16])lanes_of + i, sums + i);
      for (uint32_t o = 0; o < channels; o++)
        for (uint32_t i = 0; i < count; i++)
          dw[(size_t)(first + o) * taps_count + t0 + i] += sums[o * GRAD_TAPS + i];
    }
  }
}
