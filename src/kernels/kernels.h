/* kernels.h: the numeric loops, on raw pointers, behind one table of functions.
 *
 * The sources `*.isa.c` are compiled once per instruction set; shoal_kernels_get
 * picks the best table that this processor runs. A table may differ from another
 * in speed only: every sum below has a stated order, multiply-add is fused
 * everywhere, so all tables give the same bits.
 *
 * Layouts of a tensor for n samples, features innermost unless said:
 *   ROWS   n x features            vectors
 *   TIME   steps x n x features    sequences: as a matrix, steps * n rows
 *   LANES  c x h x w x lanes       images: one sample a lane, so that convolution,
 *                                  pooling and activation are whole vectors;
 *                                  lanes is n rounded up to 16, and the lanes past
 *                                  n hold zeros on input and zeros in gradients
 *
 * Kernels check nothing: their callers have. Pointers never overlap unless a
 * comment allows it, need 4-byte alignment only, and are fastest at 64.
 * Threads: any; kernels keep no state. */
#ifndef SHOAL_KERNELS_KERNELS_H
#define SHOAL_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHOAL_LANES = 16 }; /* floats in a 64-byte vector */

static inline uint32_t shoal_lanes_for(uint32_t samples) {
  return (samples + SHOAL_LANES - 1) / SHOAL_LANES * SHOAL_LANES;
}

/* c (m x n) = start + a (m x k) * b (k x n). Each element is one chain of fused
 * multiply-adds in the order k = 0, 1, ..., from c itself (accumulate), the bias of
 * its column, or zero; blocking and packing don't change a bit of it. */
typedef struct shoal_gemm {
  uint32_t m, n, k;
  const float *a;
  size_t a_row, a_col; /* element (i, k) is a[i * a_row + k * a_col]; one of them is 1 */
  const float *b;
  size_t b_row, b_col; /* element (k, j) is b[k * b_row + j * b_col]; one of them is 1 */
  float *c;
  size_t c_row;      /* element (i, j) is c[i * c_row + j] */
  const float *bias; /* n values or NULL; not read when accumulate is set */
  bool accumulate;
  float *scratch; /* gemm_scratch(m, n, k) floats, aligned to 64 bytes */
} shoal_gemm;

/* The elements of a matrix that are not zero, row after row: those of row i are numbers starts[i] ..
 * starts[i + 1] - 1, by ascending column. */
typedef struct shoal_sparse {
  uint32_t *starts;  /* one more than there are rows */
  uint32_t *columns; /* these two have room for SHOAL_LANES more than there are elements */
  float *values;
} shoal_sparse;

/* A two-dimensional window moving over an image in LANES layout. For pooling,
 * out_c equals in_c. */
typedef struct shoal_window {
  uint32_t in_c, in_h, in_w;
  uint32_t out_c, out_h, out_w;
  uint32_t k_h, k_w;
  uint32_t stride_h, stride_w;
  uint32_t pad_h, pad_w; /* on each side */
  uint32_t lanes;
} shoal_window;

/* Whether Winograd's way is the faster one for a convolution: decided by its shape alone,
 * since it decides the bits. */
bool shoal_winograd_suits(const shoal_window *s);

/* A convolution by Winograd's way, or a part of it. */
typedef struct shoal_winograd {
  shoal_window window;
  const float *x, *w, *bias, *dy; /* bias may be NULL */
  float *y, *dx, *dw;             /* dx is NULL where it is not wanted */
  uint32_t first, count;          /* the channels of y or of dx that are wanted, */
  uint32_t first_lane, lanes;     /* and their lanes, whole sixteens */
  uint32_t dw_first_out, dw_outs; /* the part of dw that is wanted, */
  uint32_t dw_first_in, dw_ins;   /* outputs by inputs */
} shoal_winograd;

typedef enum shoal_pool_kind { SHOAL_POOL_MAX, SHOAL_POOL_MIN, SHOAL_POOL_AVERAGE } shoal_pool_kind;

typedef enum shoal_activation {
  SHOAL_ACT_IDENTITY,
  SHOAL_ACT_SIGMOID,
  SHOAL_ACT_TANH,
  SHOAL_ACT_RELU,
  SHOAL_ACT_LEAKY_RELU, /* slope 0.01 below zero */
  SHOAL_ACT_ELU,        /* alpha 1 */
  SHOAL_ACT_GELU,       /* the exact one, with erf */
  SHOAL_ACT_SILU,
  SHOAL_ACT_SOFTPLUS,
  SHOAL_ACT_SOFTMAX, /* along the features: softmax_* below, not act_* */
} shoal_activation;

/* Losses that compare element with element. Huber's delta is `param`. Binary
 * cross-entropy takes logits. */
typedef enum shoal_element_loss {
  SHOAL_LOSS_SQUARED,  /* (p - t)^2 */
  SHOAL_LOSS_ABSOLUTE, /* |p - t| */
  SHOAL_LOSS_HUBER,    /* d^2/2 within delta, delta (|d| - delta/2) beyond */
  SHOAL_LOSS_BINARY,   /* log(1 + e^p) - t p */
} shoal_element_loss;

/* How a normalisation or dropout sees a tensor.
 * LANES: channels x positions x lanes, samples of the lanes in use.
 * ROWS and TIME: positions == 1 and rows x channels, lanes == 0; rows = samples * steps. */
typedef struct shoal_norm {
  uint32_t channels, positions, lanes, samples, steps;
} shoal_norm;

typedef enum shoal_update_kind {
  SHOAL_SGD,
  SHOAL_MOMENTUM,
  SHOAL_NESTEROV,
  SHOAL_ADAGRAD,
  SHOAL_RMSPROP,
  SHOAL_ADAM,
  SHOAL_ADAMW,
} shoal_update_kind;

/* One optimiser step on a run of weights; the formulas are PyTorch's.
 *   g' = grad_scale * g + l2 * w          (adamw: w *= 1 - rate * l2 first, and no l2 in g')
 *   sgd       w -= rate g'
 *   momentum  s1 = beta1 s1 + g';                     w -= rate s1
 *   nesterov  s1 = beta1 s1 + g';                     w -= rate (g' + beta1 s1)
 *   adagrad   s1 += g'^2;                             w -= rate g' / (sqrt(s1) + eps)
 *   rmsprop   s1 = beta2 s1 + (1 - beta2) g'^2;       w -= rate g' / (sqrt(s1) + eps)
 *   adam(w)   s1 = beta1 s1 + (1 - beta1) g', s2 = beta2 s2 + (1 - beta2) g'^2;
 *             w -= rate / (1 - beta1^t) * s1 / (sqrt(s2) / sqrt(1 - beta2^t) + eps) */
typedef struct shoal_update {
  shoal_update_kind kind;
  float rate, beta1, beta2, eps, l2, grad_scale;
  float correction1, correction2; /* 1 - beta1^t and 1 - beta2^t, from the caller */
} shoal_update;

typedef struct shoal_kernels {
  const char *name; /* "baseline", "avx2", "avx512", "neon" */

  void (*gemm)(const shoal_gemm *gemm);
  size_t (*gemm_scratch)(uint32_t m, uint32_t n, uint32_t k); /* floats; grows with each argument */

  /* sparse_rows writes the elements of a (m x k, its rows one after the other) that are not zero
   * to the arrays of *out; false when there are more than `most`.
   * sparse_turn writes the transposed (k x m) of a sparse m x k matrix.
   * gemm_sparse is gemm with the elements of a given a second time, for a b whose b_col is 1: the
   * same bits from the products with what is not zero, unless b has an infinity or a NaN that only
   * zeros meet. It needs no scratch. */
  bool (*sparse_rows)(uint32_t m, uint32_t k, const float *a, uint32_t most, shoal_sparse *out);
  void (*sparse_turn)(uint32_t m, uint32_t k, const shoal_sparse *a, shoal_sparse *out);
  void (*gemm_sparse)(const shoal_gemm *gemm, const shoal_sparse *a);

  /* Weights are out_c x in_c x k_h x k_w; bias may be NULL. Taps outside the image
   * are skipped. scratch: conv_scratch floats, 64-byte aligned.
   * forward:  y = chain from the bias over (in_c, k_h, k_w) ascending.
   * input:    dx = chain from zero over (out_c, k_h, k_w) ascending; overwrites dx. The weights are laid out for
   *           weight_c input channels, of which the window's in_c, from w on, are wanted.
   * weights:  dw += per lane a chain over (lane group, out_h, out_w) ascending, then the
   *           lanes added as the tree below.
   * bias:     dbias += the same with x = 1. */
  void (*conv_forward)(const shoal_window *s, const float *x, const float *w, const float *bias, float *y,
                       float *scratch);
  void (*conv_backward_input)(const shoal_window *s, const float *dy, const float *w, uint32_t weight_c,
                              float *dx, float *scratch);
  void (*conv_backward_weights)(const shoal_window *s, const float *x, const float *dy, float *dw);
  void (*conv_backward_bias)(const shoal_window *s, const float *dy, float *dbias);
  size_t (*conv_scratch)(const shoal_window *s);

  /* The same for windows that shoal_winograd_suits, with a fraction of the products and
   * other roundings (winograd.isa.c has the formulas and their error). Every sum runs over
   * channels ascending; dw's over (tile, lane), tiles row by row; dx adds tile after tile.
   * Only the parts of y, dx and dw that the job names are computed. How work is cut into jobs does not change a bit.
   * scratch: winograd_scratch floats. */
  void (*winograd_forward)(const shoal_winograd *job, float *scratch);
  void (*winograd_backward)(const shoal_winograd *job, float *scratch); /* overwrites dx, adds to dw */
  size_t (*winograd_scratch)(const shoal_window *s);

  /* The average divides by the number of taps inside the image. Of equal extremes the
   * first in (k_h, k_w) order gets the gradient. backward overwrites dx. */
  void (*pool_forward)(shoal_pool_kind kind, const shoal_window *s, const float *x, float *y);
  void (*pool_backward)(shoal_pool_kind kind, const shoal_window *s, const float *x, const float *y,
                        const float *dy, float *dx);

  /* y may be x; dx may be dy. backward reads y, and x only for gelu and silu (NULL else).
   * softmax works on rows; its sum is the 16-lane order of row_sum below. */
  void (*act_forward)(shoal_activation kind, size_t count, const float *x, float *y);
  void (*act_backward)(shoal_activation kind, size_t count, const float *x, const float *y, const float *dy,
                       float *dx);
  void (*softmax_forward)(uint32_t rows, uint32_t cols, const float *x, float *y);
  void (*softmax_backward)(uint32_t rows, uint32_t cols, const float *y, const float *dy, float *dx);

  /* Adds weight * loss of each row, in row order, to *loss_sum; with d, writes
   * d = weight * scale * d loss / d input. weight (one a row) and d may be NULL; d may be
   * the input. cross_entropy takes logits and adds to *correct the rows with a weight
   * above 0 whose first largest logit is the label's. A label outside 0..cols-1 is the
   * caller's bug. element_loss sums over the columns of a row. */
  void (*cross_entropy)(uint32_t rows, uint32_t cols, const float *logits, const int32_t *labels,
                        const float *weight, float scale, float *d, double *loss_sum, uint64_t *correct);
  void (*element_loss)(shoal_element_loss kind, float param, uint32_t rows, uint32_t cols, const float *p,
                       const float *t, const float *weight, float scale, float *d, double *loss_sum);
  /* Multiplies each row's weight by that of its class, unless class_weights is NULL, and adds the weights, row after
   * row, to *weight_sum and how many are above 0 to *counted. */
  void (*weigh_rows)(uint32_t rows, const int32_t *labels, const float *class_weights, float *weight,
                     double *weight_sum, uint64_t *counted);
  /* Adds to *correct the rows with a weight above 0 whose every p is above 0 where t is above one half, and only
   * there. */
  void (*binary_right)(uint32_t rows, uint32_t cols, const float *p, const float *t, const float *weight,
                       uint64_t *correct);

  /* table: vocabulary x width. backward adds row after row. */
  void (*embed_forward)(uint32_t rows, uint32_t width, const float *table, const int32_t *ids, float *y);
  void (*embed_backward)(uint32_t rows, uint32_t width, const int32_t *ids, const float *dy, float *dtable);

  /* One step of a recurrent cell for n samples of width h; all arrays are rows. Of each sample, and of each of its gates,
   * `units` units are computed: a band that begins where the pointers say.
   * lstm: gates (n x 4h: i f g o) come in before, go out after activation.
   *       c = f c_prev + i g, y = o tanh(c). backward: dc comes in as the gradient of c from
   *       the later step and goes out as that of c_prev; dgates is before activation.
   * gru:  gx = x part, gh = h part (n x 3h: r z n, biases inside); afterwards gx holds the
   *       activated r z n and gh is unchanged. n = tanh(gx_n + r gh_n), y = (1 - z) n + z h_prev.
   *       backward: dh comes in as the gradient of y and goes out as its direct part for
   *       h_prev (z * dh); dgx and dgh are gradients of the two inputs. */
  void (*lstm_forward)(uint32_t n, uint32_t h, uint32_t units, float *gates, const float *c_prev, float *c,
                       float *y);
  void (*lstm_backward)(uint32_t n, uint32_t h, uint32_t units, const float *gates, const float *c_prev,
                        const float *c, const float *dy, float *dc, float *dgates);
  void (*gru_forward)(uint32_t n, uint32_t h, uint32_t units, float *gx, const float *gh, const float *h_prev,
                      float *y);
  void (*gru_backward)(uint32_t n, uint32_t h, uint32_t units, const float *gx, const float *gh,
                       const float *h_prev, float *dh, float *dgx, float *dgh);

  /* batchnorm: per channel over samples, steps and positions, in order; var is the biased
   * one. train writes mean and var (channels each). backward adds to dgamma and dbeta and
   * overwrites dx (may be dy), zero in unused lanes.
   * layernorm: per sample and step over channels * positions, each with its own gamma and
   * beta; mean and rstd have samples * steps entries. */
  void (*batchnorm_train)(const shoal_norm *s, const float *x, const float *gamma, const float *beta,
                          float eps, float *y, float *mean, float *var);
  void (*batchnorm_infer)(const shoal_norm *s, const float *x, const float *gamma, const float *beta,
                          float eps, const float *mean, const float *var, float *y);
  void (*batchnorm_backward)(const shoal_norm *s, const float *x, const float *gamma, float eps,
                             const float *mean, const float *var, const float *dy, float *dx, float *dgamma,
                             float *dbeta);
  void (*layernorm_forward)(const shoal_norm *s, const float *x, const float *gamma, const float *beta,
                            float eps, float *y, float *mean, float *rstd);
  void (*layernorm_backward)(const shoal_norm *s, const float *x, const float *gamma, const float *mean,
                             const float *rstd, const float *dy, float *dx, float *dgamma, float *dbeta);

  /* The two words of the key of each sample's random numbers: shoal_key_make(seed, SHOAL_FOR_DROPOUT, epoch, id). */
  void (*dropout_keys)(uint32_t samples, uint64_t seed, uint64_t epoch, const uint64_t *ids, uint32_t *keys);
  /* y = x * scale where random number e of the sample's key is >= threshold, else 0.
   * Number e is word e % 4 of shoal_random_block(key, 0, e / 4). Element e of a sample:
   * LANES channel * positions + position; ROWS and TIME step * channels + channel.
   * y may be x. keys: samples pairs of words. */
  void (*dropout)(const shoal_norm *s, const uint32_t *keys, uint32_t threshold, float scale, const float *x,
                  float *y);

  /* Between layouts: features x lanes <-> samples x features. Unused lanes become 0.
   * lanes_to_rows transposes any matrix: its lanes need not be whole vectors. */
  void (*lanes_to_rows)(uint32_t features, uint32_t lanes, uint32_t samples, const float *x, float *y);
  void (*rows_to_lanes)(uint32_t features, uint32_t lanes, uint32_t samples, const float *x, float *y);
  /* rows x width from x to y, whose rows are x_row and y_row floats apart; with x_row 0 every row of y is the same.
   * swap_rows: a x b rows of this width become b x a of them. */
  void (*copy_rows)(size_t rows, size_t width, const float *x, size_t x_row, float *y, size_t y_row);
  void (*swap_rows)(uint32_t a, uint32_t b, uint32_t width, const float *x, float *y);
  void (*zero)(size_t count, float *x);
  /* Values that are numbers of rows, 0 to rows - 1, as such; all others, NaN too, become 0. x's rows are x_row apart. */
  void (*row_numbers)(uint32_t n, uint32_t columns, const float *x, size_t x_row, uint32_t rows,
                      int32_t *ids);
  /* Bytes of images to floats: value * scale[c] + shift[c]; samples[i] points at c * plane bytes. */
  void (*bytes_to_lanes)(uint32_t channels, uint32_t plane, uint32_t lanes, uint32_t samples,
                         const uint8_t *const *images, const float *scale, const float *shift, float *y);
  void (*bytes_to_rows)(uint32_t channels, uint32_t plane, uint32_t samples, const uint8_t *const *images,
                        const float *scale, const float *shift, float *y);

  void (*add)(size_t count, const float *a, const float *b, float *y); /* y may be a or b */
  /* y = a + factor b, rounded once; y may be a or b. */
  void (*add_scaled)(size_t count, const float *a, float factor, const float *b, float *y);
  /* sums += share * (factor * x), rounded after each of the three. */
  void (*add_share)(size_t count, float share, float factor, const float *x, float *sums);
  /* Adds, rows ascending, which lie `row` floats apart. */
  void (*column_sums)(uint32_t rows, uint32_t cols, const float *x, size_t row, float *sums);
  /* The sum of up to 256 parts, element by element: neighbours first, then neighbours of these sums. */
  void (*sum_parts)(size_t count, uint32_t parts_count, const float *const *parts, float *sum);
  /* Sum of squares: 16 lane chains, the lane tree, in double over blocks of 4096. */
  void (*square_sum)(size_t count, const float *x, double *sum);
  /* w = from + share * (to - from), rounded after each of the three; w may be either. */
  void (*follow)(size_t count, float share, const float *from, const float *to, float *w);
  /* New weights w from old ones; `from` may be w. */
  void (*update)(const shoal_update *u, size_t count, const float *from, float *w, const float *g, float *s1,
                 float *s2);

  /* Runs multiply-adds from registers only, and returns how many floating point
   * operations that was: the ceiling that benchmarks are a share of. */
  double (*spin)(uint64_t rounds);
} shoal_kernels;

/* The same of memory of the host. */
static inline double shoal_square_sum(const shoal_kernels *kernels, size_t count, const float *x) {
  double sum;
  kernels->square_sum(count, x, &sum);
  return sum;
}

/* The lane tree, wherever 16 lanes become one number: l[i] + l[i+8], then +4, +2, +1.
 * row_sum: element j goes to lane j % 16 in ascending order, then the tree. */

/* The table for this processor, or the one named by the environment variable
 * SHOAL_KERNELS; NULL when that names one that is unknown or cannot run here. */
const shoal_kernels *shoal_kernels_get(void);
const shoal_kernels *shoal_kernels_named(const char *name);

#endif
