/* winograd.isa.c: convolution of 3x3 and 5x5 windows with a quarter or a sixth of the products.
 *
 * Winograd's way, by Toom and Cook: a tile of 4 x 4 outputs and the SIDE x SIDE inputs under it
 * (SIDE = 4 + kernel - 1) are polynomials, known by their values at SIDE points along each axis;
 * there a convolution is a product per point. With one sample a lane, the changes between pixels
 * and points are whole-vector arithmetic, and the products of all channels at one point are a
 * matrix product of (channels x channels) by (channels x columns), a column being one lane of
 * one tile:
 *
 *   forward   Y = A' [ (G w G') . (B' x B) ] A       per point: out x in by in x columns
 *   input     dX = B [ (G w G')' . (A dy A') ] B'    per point: in x out by out x columns
 *   weights   dW = G' [ (A dy A') . (B' x B)' ] G    per point: out x columns by columns x in
 *
 * The backward passes are the transposes of the forward one, so they save as much. The points
 * are 0, infinity and pairs +a, -a: half of the arithmetic serves both of a pair. Which a keeps
 * the rounding small was found by trying: 3/4 and 3/2 for 3x3 (about 2.5 times the error of a
 * direct sum), 1/2, 1 and 2 for 5x5 (6 times).
 *
 * Columns are worked off COLUMNS at a time, so that their points stay in the second cache. A thread that does a part
 * makes all points that it needs in its own scratch memory, since what another core has just written is far away. So
 * parts are cut such that few points are made twice: y and dx mostly by lanes, since no other thread needs the points of
 * these; dw, which sums over all lanes, by output and input channels. Where lanes are cut, the points of dy are made once
 * for dx and once for dw. */
#include <stdbool.h>
#include <string.h>

#include "kernels/isa.h"
#include "kernels/simd.h"

enum {
  OUT = 4,       /* outputs of a tile along an axis */
  SIDE_MAX = 8,  /* points along an axis */
  PAIRS_MAX = 3, /* pairs of points among them */
  KERNEL_MAX = 5,
  COLUMNS = 32, /* lanes of tiles that are transformed before they are multiplied */
};

/* A way to convolve: everything that follows from the size of the kernel. The points are, in
 * this order: 0, then +a and -a of each pair, then infinity. */
typedef struct way {
  unsigned kernel, outputs, pairs, side; /* side = kernel + outputs - 1 = 2 * pairs + 2 */
  float a[PAIRS_MAX];
  float all[PAIRS_MAX + 1];           /* coefficients of the product of (x - a^2) over all pairs, */
  float others[PAIRS_MAX][PAIRS_MAX]; /* and over all but this one; both by rising powers of x */
  float zero_scale;                   /* what G divides by: 1 / all[0], */
  float scale[PAIRS_MAX];             /* and 1 / (2 a^2 others(a^2)) */
} way;

static const way way3 = {
    .kernel = 3,
    .outputs = OUT,
    .pairs = 2,
    .side = 6,
    .a = {0.75f, 1.5f},
    .all = {1.265625f, -2.8125f, 1},
    .others = {{-2.25f, 1}, {-0.5625f, 1}},
    .zero_scale = (float)(1 / 1.265625),
    .scale = {(float)(1 / (2 * 0.5625 * (0.5625 - 2.25))), (float)(1 / (2 * 2.25 * (2.25 - 0.5625)))},
};
static const way way5 = {
    .kernel = 5,
    .outputs = OUT,
    .pairs = 3,
    .side = 8,
    .a = {0.5f, 1, 2},
    .all = {-1, 5.25f, -5.25f, 1},
    .others = {{4, -5, 1}, {1, -4.25f, 1}, {0.25f, -1.25f, 1}},
    .zero_scale = -1,
    .scale = {(float)(1 / (2 * 0.25 * (0.25 - 1) * (0.25 - 4))), (float)(1 / (2 * (1 - 0.25) * (1 - 4))),
              (float)(1 / (2 * 4 * (4 - 0.25) * (4 - 1)))},
};

/* ---- along one axis ----------------------------------------------------------------------- */

/* A change between pixels and points along one axis. The way is a constant where it is called,
 * so that all loops unroll. */
typedef void axis_change(const way *w, const vr *from, vr *to);

#define UNROLL _Pragma("GCC unroll 8")

/* B': the inputs of a tile to points. */
V_INLINE void input_to_points(const way *w, const vr *x, vr *point) {
  const unsigned last = w->side - 1;
  point[0] = x[2 * w->pairs];
  point[last] = x[2 * w->pairs + 1];
  UNROLL for (unsigned k = 0; k < w->pairs; k++) {
    point[0] = vr_fma(vr_set(w->all[k]), x[2 * k], point[0]);
    point[last] = vr_fma(vr_set(w->all[k]), x[2 * k + 1], point[last]);
  }
  UNROLL for (unsigned i = 0; i < w->pairs; i++) {
    vr even = x[2 * w->pairs], odd = x[2 * w->pairs - 1];
    UNROLL for (unsigned k = 0; k + 1 < w->pairs; k++) {
      even = vr_fma(vr_set(w->others[i][k]), x[2 * k + 2], even);
      odd = vr_fma(vr_set(w->others[i][k]), x[2 * k + 1], odd);
    }
    point[1 + 2 * i] = vr_fma(vr_set(w->a[i]), odd, even);
    point[2 + 2 * i] = vr_fma(vr_set(-w->a[i]), odd, even);
  }
}

/* B: its transpose, for gradients. */
V_INLINE void points_to_input(const way *w, const vr *point, vr *x) {
  const unsigned last = w->side - 1;
  vr even[PAIRS_MAX], odd[PAIRS_MAX]; /* what a pair gives to even and to odd places */
  UNROLL for (unsigned i = 0; i < w->pairs; i++) {
    vr plus = point[1 + 2 * i], minus = point[2 + 2 * i];
    even[i] = vr_add(plus, minus);
    odd[i] = vr_mul(vr_set(w->a[i]), vr_sub(plus, minus));
  }
  UNROLL for (unsigned k = 0; k <= w->pairs; k++) {
    x[2 * k] = vr_mul(vr_set(w->all[k]), point[0]);
    x[2 * k + 1] = vr_mul(vr_set(w->all[k]), point[last]);
  }
  UNROLL for (unsigned i = 0; i < w->pairs; i++) UNROLL for (unsigned k = 0; k < w->pairs; k++) {
    x[2 * k + 2] = vr_fma(vr_set(w->others[i][k]), even[i], x[2 * k + 2]);
    x[2 * k + 1] = vr_fma(vr_set(w->others[i][k]), odd[i], x[2 * k + 1]);
  }
}

/* A': points to the outputs of a tile. */
V_INLINE void points_to_output(const way *w, const vr *point, vr *y) {
  y[0] = point[0];
  y[3] = point[w->side - 1];
  UNROLL for (unsigned i = 0; i < w->pairs; i++) {
    const float a = w->a[i];
    vr sum = vr_add(point[1 + 2 * i], point[2 + 2 * i]);
    vr difference = vr_sub(point[1 + 2 * i], point[2 + 2 * i]);
    y[0] = vr_add(y[0], sum);
    y[1] = i == 0 ? vr_mul(vr_set(a), difference) : vr_fma(vr_set(a), difference, y[1]);
    y[2] = i == 0 ? vr_mul(vr_set(a * a), sum) : vr_fma(vr_set(a * a), sum, y[2]);
    y[3] = vr_fma(vr_set(a * a * a), difference, y[3]);
  }
}

/* A: its transpose, for gradients. */
V_INLINE void output_to_points(const way *w, const vr *y, vr *point) {
  point[0] = y[0];
  point[w->side - 1] = y[3];
  UNROLL for (unsigned i = 0; i < w->pairs; i++) {
    const float a = w->a[i];
    vr even = vr_fma(vr_set(a * a), y[2], y[0]), odd = vr_fma(vr_set(a * a), y[3], y[1]);
    point[1 + 2 * i] = vr_fma(vr_set(a), odd, even);
    point[2 + 2 * i] = vr_fma(vr_set(-a), odd, even);
  }
}

/* G: weights to points. */
V_INLINE void weights_to_points(const way *w, const vr *tap, vr *point) {
  point[0] = vr_mul(vr_set(w->zero_scale), tap[0]);
  point[w->side - 1] = tap[w->kernel - 1];
  UNROLL for (unsigned i = 0; i < w->pairs; i++) {
    const float a = w->a[i];
    vr even = tap[w->kernel - 1], odd = tap[w->kernel - 2]; /* kernel is odd: its last tap is even */
    for (unsigned j = w->kernel - 1; j >= 2; j -= 2) even = vr_fma(vr_set(a * a), even, tap[j - 2]);
    for (unsigned j = w->kernel - 2; j >= 3; j -= 2) odd = vr_fma(vr_set(a * a), odd, tap[j - 2]);
    odd = vr_mul(vr_set(a), odd);
    point[1 + 2 * i] = vr_mul(vr_set(w->scale[i]), vr_add(even, odd));
    point[2 + 2 * i] = vr_mul(vr_set(w->scale[i]), vr_sub(even, odd));
  }
}

/* G': its transpose, for gradients. */
V_INLINE void points_to_weights(const way *w, const vr *point, vr *tap) {
  UNROLL for (unsigned j = 0; j < w->kernel; j++) tap[j] = vr_set(0);
  tap[0] = vr_mul(vr_set(w->zero_scale), point[0]);
  tap[w->kernel - 1] = point[w->side - 1];
  UNROLL for (unsigned i = 0; i < w->pairs; i++) {
    vr sum = vr_mul(vr_set(w->scale[i]), vr_add(point[1 + 2 * i], point[2 + 2 * i]));
    vr difference = vr_mul(vr_set(w->scale[i]), vr_sub(point[1 + 2 * i], point[2 + 2 * i]));
    float power = 1;
    UNROLL for (unsigned j = 0; j < w->kernel; j++) {
      tap[j] = vr_fma(vr_set(power), j % 2 == 0 ? sum : difference, tap[j]);
      power *= w->a[i];
    }
  }
}

/* ---- along both axes ---------------------------------------------------------------------- */

/* A square of vectors in memory: element (i, j) at start + i * row + j * col. */
typedef struct square {
  float *start;
  size_t row, col;
  bool cut;                  /* some are outside the image, and count as zeros: */
  uint32_t in_rows, in_cols; /* bit i is set when row or column i is inside */
} square;

/* Changes a square of from_side to one of to_side, VR lanes of it. `cut` is that of `from`, as a
 * constant. */
V_INLINE void change_vectors(axis_change *const change, const way *w, const unsigned from_side,
                             const unsigned to_side, const bool cut, square from, square to) {
  vr half[SIDE_MAX][SIDE_MAX]; /* changed along the columns only */
  for (unsigned j = 0; j < from_side; j++) {
    vr in[SIDE_MAX], out[SIDE_MAX];
    UNROLL for (unsigned i = 0; i < from_side; i++) {
      bool there = !cut || (from.in_rows >> i & from.in_cols >> j & 1) != 0;
      in[i] = there ? vr_load(from.start + (i * from.row + j * from.col)) : vr_set(0);
    }
    change(w, in, out);
    UNROLL for (unsigned i = 0; i < to_side; i++) half[i][j] = out[i];
  }
  for (unsigned i = 0; i < to_side; i++) {
    vr out[SIDE_MAX];
    change(w, half[i], out);
    UNROLL for (unsigned j = 0; j < to_side; j++) vr_store(to.start + i * to.row + j * to.col, out[j]);
  }
}

/* The same for 16 lanes. */
V_INLINE void change_square(axis_change *const change, const way *w, const unsigned from_side,
                            const unsigned to_side, const bool may_be_cut, square from, square to) {
  for (unsigned lane = 0; lane < 16; lane += VR) {
    if (may_be_cut && from.cut)
      change_vectors(change, w, from_side, to_side, true, from, to);
    else
      change_vectors(change, w, from_side, to_side, false, from, to);
    from.start += VR;
    to.start += VR;
  }
}

/* name_square(way, from, to): `name` along both axes, compiled for each way. */
#define BOTH_AXES(name, from_side, to_side, may_be_cut)                               \
  static void name##_square(const way *w, square from, square to) {                   \
    if (w->kernel == 3)                                                               \
      change_square(name, &way3, way3.from_side, way3.to_side, may_be_cut, from, to); \
    else                                                                              \
      change_square(name, &way5, way5.from_side, way5.to_side, may_be_cut, from, to); \
  }
BOTH_AXES(input_to_points, side, side, true)
BOTH_AXES(points_to_input, side, side, false)
BOTH_AXES(points_to_output, side, outputs, false)
BOTH_AXES(output_to_points, outputs, side, true)
BOTH_AXES(weights_to_points, kernel, side, false)
BOTH_AXES(points_to_weights, side, kernel, false)

/* ---- tiles -------------------------------------------------------------------------------- */

/* A matrix for every point, in the scratch memory: matrix after matrix, `stride` floats apart,
 * an odd number of cache lines so that they don't share their sets. */
typedef struct matrices {
  float *first;
  size_t stride;
} matrices;

/* A part of a convolution: its shape and what is kept at the points. */
typedef struct job {
  const shoal_winograd *of;
  const shoal_window *s;
  const way *way;
  uint32_t points, tiles_w, tiles;
  /* The rows and columns of the weights at the points. */
  uint32_t weights_first_out, weights_outs, weights_first_in, weights_ins;
  matrices weights, gradient; /* weights_outs x weights_ins, and dw_outs x dw_ins of the part */
  matrices input, output;     /* in_c x COLUMNS, out_c x COLUMNS */
  matrices back;              /* weights_ins x COLUMNS: the input's gradient */
  float *gemm_scratch;
  /* A group is 16 lanes, a unit one tile of one group. A walk visits every tile, and in each the groups it wants. */
  uint32_t first_group, groups, units;
  uint32_t first_unit, units_count; /* the columns at hand */
} job;

static size_t odd_lines(size_t floats) { return ((floats + 15) / 16 | 1) * 16; }

static size_t products_scratch(const shoal_window *s) {
  uint32_t channels = s->in_c > s->out_c ? s->in_c : s->out_c, most = channels > COLUMNS ? channels : COLUMNS;
  return (ISA(gemm_scratch)(channels, most, most) + 15) / 16 * 16;
}

/* Hands out scratch memory, part after part; without memory it only counts. */
static matrices take(const job *j, float *scratch, size_t *used, size_t floats) {
  matrices made = {scratch != NULL ? scratch + *used : NULL, odd_lines(floats)};
  *used += j->points * made.stride;
  return made;
}

static job job_of(const shoal_winograd *of) {
  const shoal_window *s = &of->window;
  const way *w = s->k_h == 3 ? &way3 : &way5;
  uint32_t tiles_h = (s->out_h + OUT - 1) / OUT, tiles_w = (s->out_w + OUT - 1) / OUT;
  return (job){.of = of,
               .s = s,
               .way = w,
               .points = w->side * w->side,
               .tiles_w = tiles_w,
               .tiles = tiles_h * tiles_w};
}

/* Both return how many floats of scratch they need, which is all they do without any. */
static size_t begin_forward(job *j, const shoal_winograd *of, float *scratch) {
  *j = job_of(of);
  size_t used = products_scratch(j->s);
  j->gemm_scratch = scratch;
  j->weights_first_out = of->first;
  j->weights_outs = of->count;
  j->weights_ins = j->s->in_c;
  j->weights = take(j, scratch, &used, (size_t)j->weights_outs * j->weights_ins);
  j->input = take(j, scratch, &used, (size_t)j->s->in_c * COLUMNS);
  j->output = take(j, scratch, &used, (size_t)j->weights_outs * COLUMNS);
  return used;
}

static size_t begin_backward(job *j, const shoal_winograd *of, float *scratch) {
  *j = job_of(of);
  size_t used = products_scratch(j->s);
  j->gemm_scratch = scratch;
  j->weights_outs = j->s->out_c;
  j->weights_first_in = of->first;
  j->weights_ins = of->count;
  j->weights = take(j, scratch, &used, (size_t)j->weights_outs * j->weights_ins);
  j->gradient = take(j, scratch, &used, (size_t)of->dw_outs * of->dw_ins);
  j->input = take(j, scratch, &used, (size_t)j->s->in_c * COLUMNS);
  j->output = take(j, scratch, &used, (size_t)j->s->out_c * COLUMNS);
  j->back = take(j, scratch, &used, (size_t)j->weights_ins * COLUMNS);
  return used;
}

size_t ISA(winograd_scratch)(const shoal_window *s) {
  job j;
  const shoal_winograd whole = {.window = *s, .count = s->in_c, .dw_outs = s->out_c, .dw_ins = s->in_c};
  return begin_backward(&j, &whole, NULL);
}

/* Begins a walk over some lanes. */
static void begin_walk(job *j, uint32_t first_lane, uint32_t lanes) {
  j->first_group = first_lane / 16;
  j->groups = lanes / 16;
  j->units = j->tiles * j->groups;
  j->first_unit = j->units_count = 0;
}

/* Goes on to the next columns; returns false when all are done. */
static bool next_columns(job *j) {
  j->first_unit += j->units_count;
  uint32_t left = j->units - j->first_unit;
  j->units_count = left < COLUMNS / 16 ? left : COLUMNS / 16;
  return left > 0;
}

/* A part of an image plane that a tile covers: the square's first pixel, which may lie outside,
 * and the lane where the unit's 16 begin. */
typedef struct view {
  int32_t y, x;
  uint32_t h, w, side; /* of the plane; of the square */
  size_t lanes, lane;
} view;

static view input_view(const job *j, uint32_t unit) {
  const shoal_window *s = j->s;
  uint32_t tile = unit / j->groups;
  return (view){.y = (int32_t)(tile / j->tiles_w * OUT) - (int32_t)s->pad_h,
                .x = (int32_t)(tile % j->tiles_w * OUT) - (int32_t)s->pad_w,
                .h = s->in_h,
                .w = s->in_w,
                .side = j->way->side,
                .lanes = s->lanes,
                .lane = (j->first_group + unit % j->groups) * (size_t)16};
}

static view output_view(const job *j, uint32_t unit) {
  const shoal_window *s = j->s;
  uint32_t tile = unit / j->groups;
  return (view){.y = (int32_t)(tile / j->tiles_w * OUT),
                .x = (int32_t)(tile % j->tiles_w * OUT),
                .h = s->out_h,
                .w = s->out_w,
                .side = OUT,
                .lanes = s->lanes,
                .lane = (j->first_group + unit % j->groups) * (size_t)16};
}

static bool whole(const view *v) {
  return v->y >= 0 && v->x >= 0 && (uint32_t)v->y + v->side <= v->h && (uint32_t)v->x + v->side <= v->w;
}

static size_t pixel_at(const view *v, int32_t y, int32_t x) {
  return ((size_t)y * v->w + (size_t)x) * v->lanes + v->lane;
}

/* The rows and columns of the square which are inside the plane: first .. end - 1. */
typedef struct span {
  int32_t first, end;
} span;

static span inside(int32_t at, uint32_t side, uint32_t size) {
  int32_t end = (int32_t)size - at;
  return (span){at < 0 ? -at : 0, end < (int32_t)side ? end : (int32_t)side};
}

enum { BUFFER = SIDE_MAX * SIDE_MAX * 16 };

/* The bits of a span. */
static uint32_t bits_of(span s) { return s.first < s.end ? ((1u << s.end) - 1) & ~((1u << s.first) - 1) : 0; }

/* The square under a view, with what of it lies inside. Nobody writes through it. */
static square square_under(const view *v, const float *plane) {
  ptrdiff_t corner = ((ptrdiff_t)v->y * (ptrdiff_t)v->w + v->x) * (ptrdiff_t)v->lanes + (ptrdiff_t)v->lane;
  return (square){.start = (float *)(uintptr_t)(plane + corner),
                  .row = v->w * v->lanes,
                  .col = v->lanes,
                  .cut = !whole(v),
                  .in_rows = bits_of(inside(v->y, v->side, v->h)),
                  .in_cols = bits_of(inside(v->x, v->side, v->w))};
}

/* Adds a buffer's square, or with `start` sets the plane to start + square. */
static void write_square(const view *v, const float *buffer, const float *start, float *plane) {
  span rows = inside(v->y, v->side, v->h), cols = inside(v->x, v->side, v->w);
  const size_t lanes = v->lanes;
  for (int32_t i = rows.first; i < rows.end; i++) {
    float *at = plane + pixel_at(v, v->y + i, v->x + cols.first);
    const float *from = buffer + ((uint32_t)i * v->side + (uint32_t)cols.first) * 16;
    for (int32_t k = cols.first; k < cols.end; k++, at += lanes, from += 16)
      vf_store(at, vf_add(start != NULL ? vf_set(*start) : vf_load(at), vf_load(from)));
  }
}

/* A channel's points of the unit whose columns begin at `column`. */
static square points_of(const job *j, const matrices *of, uint32_t channel, uint32_t column) {
  return (square){.start = of->first + (size_t)channel * COLUMNS + column,
                  .row = j->way->side * of->stride,
                  .col = of->stride};
}

/* The points of the 16 pairs of channels from `pair` on. */
static square pairs_of(const job *j, const matrices *of, uint32_t pair) {
  return (square){.start = of->first + pair, .row = j->way->side * of->stride, .col = of->stride};
}

/* ---- steps -------------------------------------------------------------------------------- */

/* Weights to points, 16 pairs of channels at a time: these stand in lanes, tap by tap, in a buffer. What is left of the
 * last 16 is zero; a point's stride has room for it. */
static void transform_weights(const job *j) {
  const uint32_t area = j->s->k_h * j->s->k_w;
  float buffer[KERNEL_MAX * KERNEL_MAX * 16] = {0};
  const square from = {.start = buffer, .row = j->way->kernel * 16, .col = 16};
  uint32_t first = 0, lane = 0;
  for (uint32_t o = 0; o < j->weights_outs; o++) {
    size_t pair = (size_t)(j->weights_first_out + o) * j->s->in_c + j->weights_first_in;
    const float *w = j->of->w + pair * area;
    for (uint32_t i = 0; i < j->weights_ins; i++, w += area) {
      for (uint32_t tap = 0; tap < area; tap++) buffer[tap * 16 + lane] = w[tap];
      if (++lane < 16) continue;
      weights_to_points_square(j->way, from, pairs_of(j, &j->weights, first));
      first += 16;
      lane = 0;
    }
  }
  if (lane == 0) return;
  for (uint32_t tap = 0; tap < area; tap++) memset(buffer + tap * 16 + lane, 0, (16 - lane) * sizeof *buffer);
  weights_to_points_square(j->way, from, pairs_of(j, &j->weights, first));
}

static void transform_input(const job *j, uint32_t first, uint32_t count) {
  const size_t plane = (size_t)j->s->in_h * j->s->in_w * j->s->lanes;
  for (uint32_t u = 0; u < j->units_count; u++) {
    view v = input_view(j, j->first_unit + u);
    for (uint32_t c = first; c < first + count; c++)
      input_to_points_square(j->way, square_under(&v, j->of->x + c * plane),
                             points_of(j, &j->input, c, u * 16));
  }
}

static void transform_output_gradient(const job *j, uint32_t first, uint32_t count) {
  const size_t plane = (size_t)j->s->out_h * j->s->out_w * j->s->lanes;
  for (uint32_t u = 0; u < j->units_count; u++) {
    view v = output_view(j, j->first_unit + u);
    for (uint32_t o = first; o < first + count; o++)
      output_to_points_square(j->way, square_under(&v, j->of->dy + o * plane),
                              points_of(j, &j->output, o, u * 16));
  }
}

/* c = a * b at every point; `g` says the rest. */
static void multiply(const job *j, const matrices *a, const matrices *b, const matrices *c, shoal_gemm g) {
  g.scratch = j->gemm_scratch;
  g.a = a->first;
  g.b = b->first;
  g.c = c->first;
  ISA(gemm_many)(&g, j->points, a->stride, b->stride, c->stride);
}

static void make_output(const job *j) {
  const shoal_window *s = j->s;
  const size_t plane = (size_t)s->out_h * s->out_w * s->lanes;
  const float zero = 0, *bias = j->of->bias;
  float buffer[BUFFER];
  multiply(j, &j->weights, &j->input, &j->output,
           (shoal_gemm){.m = j->weights_outs,
                        .n = j->units_count * 16,
                        .k = s->in_c,
                        .a_row = s->in_c,
                        .a_col = 1,
                        .b_row = COLUMNS,
                        .b_col = 1,
                        .c_row = COLUMNS});
  for (uint32_t u = 0; u < j->units_count; u++) {
    view v = output_view(j, j->first_unit + u);
    for (uint32_t i = 0; i < j->weights_outs; i++) {
      uint32_t o = j->weights_first_out + i;
      points_to_output_square(j->way, points_of(j, &j->output, i, u * 16),
                              (square){.start = buffer, .row = OUT * 16, .col = 16});
      write_square(&v, buffer, bias != NULL ? bias + o : &zero, j->of->y + o * plane);
    }
  }
}

/* The gradient of the units' inputs, from that of their outputs at the points. It has points of its own, since those of
 * the input are needed for the weights. */
static void add_inputs(const job *j) {
  const shoal_window *s = j->s;
  const size_t plane = (size_t)s->in_h * s->in_w * s->lanes;
  float buffer[BUFFER];
  multiply(j, &j->weights, &j->output, &j->back,
           (shoal_gemm){.m = j->weights_ins,
                        .n = j->units_count * 16,
                        .k = s->out_c,
                        .a_row = 1,
                        .a_col = j->weights_ins,
                        .b_row = COLUMNS,
                        .b_col = 1,
                        .c_row = COLUMNS});
  for (uint32_t u = 0; u < j->units_count; u++) {
    view v = input_view(j, j->first_unit + u);
    for (uint32_t i = 0; i < j->weights_ins; i++) {
      points_to_input_square(j->way, points_of(j, &j->back, i, u * 16),
                             (square){.start = buffer, .row = j->way->side * 16, .col = 16});
      write_square(&v, buffer, NULL, j->of->dx + (j->weights_first_in + i) * plane);
    }
  }
}

static void add_products(const job *j) {
  const shoal_winograd *of = j->of;
  matrices outs = {j->output.first + (size_t)of->dw_first_out * COLUMNS, j->output.stride};
  matrices ins = {j->input.first + (size_t)of->dw_first_in * COLUMNS, j->input.stride};
  multiply(j, &outs, &ins, &j->gradient,
           (shoal_gemm){.m = of->dw_outs,
                        .n = of->dw_ins,
                        .k = j->units_count * 16,
                        .a_row = COLUMNS,
                        .a_col = 1,
                        .b_row = 1,
                        .b_col = COLUMNS,
                        .c_row = of->dw_ins,
                        .accumulate = j->first_unit > 0});
}

/* Adds the gradient at the points to that of the weights. */
static void add_weights(const job *j) {
  const shoal_winograd *of = j->of;
  const uint32_t pairs = of->dw_outs * of->dw_ins, area = j->s->k_h * j->s->k_w;
  float buffer[KERNEL_MAX * KERNEL_MAX * 16];
  uint32_t out = of->dw_first_out, in = 0;
  for (uint32_t first = 0; first < pairs; first += 16) {
    uint32_t count = pairs - first < 16 ? pairs - first : 16;
    points_to_weights_square(j->way, pairs_of(j, &j->gradient, first),
                             (square){.start = buffer, .row = j->way->kernel * 16, .col = 16});
    for (uint32_t i = 0; i < count; i++) {
      float *dw = of->dw + ((size_t)out * j->s->in_c + of->dw_first_in + in) * area;
      for (uint32_t tap = 0; tap < area; tap++) dw[tap] += buffer[tap * 16 + i];
      if (++in < of->dw_ins) continue;
      in = 0;
      out++;
    }
  }
}

/* ---- passes ------------------------------------------------------------------------------- */

void ISA(winograd_forward)(const shoal_winograd *of, float *scratch) {
  job j;
  begin_forward(&j, of, scratch);
  transform_weights(&j);
  begin_walk(&j, of->first_lane, of->lanes);
  while (next_columns(&j)) {
    transform_input(&j, 0, j.s->in_c);
    make_output(&j);
  }
}

static void begin_inputs(const job *j) {
  const shoal_winograd *of = j->of;
  const size_t pixels = (size_t)j->s->in_h * j->s->in_w, lanes = j->s->lanes;
  transform_weights(j);
  size_t first = of->first * pixels, count = of->count * pixels;
  if (of->lanes == lanes) {
    memset(of->dx + first * lanes, 0, count * lanes * sizeof *of->dx);
    return;
  }
  for (size_t i = first; i < first + count; i++)
    memset(of->dx + i * lanes + of->first_lane, 0, of->lanes * sizeof *of->dx);
}

/* Over some lanes: dx of them; or the wanted part of dw, which needs all lanes; or both, with dy's points made once. */
static void walk_back(job *j, uint32_t first_lane, uint32_t lanes, bool inputs, bool weights) {
  const shoal_winograd *of = j->of;
  begin_walk(j, first_lane, lanes);
  while (next_columns(j)) {
    transform_output_gradient(j, inputs ? 0 : of->dw_first_out, inputs ? j->s->out_c : of->dw_outs);
    if (inputs) add_inputs(j);
    if (!weights) continue;
    transform_input(j, of->dw_first_in, of->dw_ins);
    add_products(j);
  }
}

void ISA(winograd_backward)(const shoal_winograd *of, float *scratch) {
  job j;
  begin_backward(&j, of, scratch);
  const bool inputs = of->dx != NULL && of->count > 0 && of->lanes > 0, weights = of->dw_outs > 0;
  const bool together = inputs && weights && of->lanes == j.s->lanes;
  if (inputs) {
    begin_inputs(&j);
    walk_back(&j, of->first_lane, of->lanes, true, together);
  }
  if (weights && !together) walk_back(&j, 0, j.s->lanes, false, true);
  if (weights) add_weights(&j);
}
