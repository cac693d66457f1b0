/* loss.isa.c: losses and their gradients in one pass over the outputs.
 *
 * A row's loss is a float or a sum of floats in the row_sum order; rows are added in double
 * in their order. Rows of weight 0 are padding: whatever they hold counts for nothing. */
#include "kernels/isa.h"
#include "kernels/vmath.h"

#include <string.h>

/* Whether nothing before the label is as large. */
static bool is_first(const float *x, int32_t label, float largest) {
  for (int32_t i = 0; i < label; i++)
    if (x[i] == largest) return false;
  return x[label] == largest;
}

/* The loss of one row of logits; d, when given, becomes factor * (softmax - one-hot). */
static double row_cross_entropy(uint32_t cols, const float *x, int32_t label, float largest, float factor,
                                float *d) {
  const vf shift = vf_set(largest), never = vf_set(-__builtin_inff());
  const float at_label = x[label]; /* before d, which may be x, is written */
  vf sum = vf_zero();
  for (uint32_t i = 0; i < cols; i += 16) {
    vf e = vf_exp(vf_sub(vf_load_filled(x + i, cols - i, never), shift));
    sum = vf_add(sum, e);
    if (d != NULL) vf_store_some(d + i, cols - i, e);
  }
  float total = vf_tree(sum), log_total[16];
  vf_store(log_total, vf_log(vf_set(total)));
  if (d != NULL) {
    vf scale = vf_set(factor / total);
    for (uint32_t i = 0; i < cols; i += 16)
      vf_store_some(d + i, cols - i, vf_mul(vf_load_some(d + i, cols - i), scale));
    d[label] -= factor;
  }
  return (double)log_total[0] + ((double)largest - (double)at_label);
}

void ISA(cross_entropy)(uint32_t rows, uint32_t cols, const float *logits, const int32_t *labels,
                        const float *weight, float scale, float *d, double *loss_sum, uint64_t *correct) {
  for (uint32_t r = 0; r < rows; r++) {
    const float *x = logits + (size_t)r * cols;
    float *to = d != NULL ? d + (size_t)r * cols : NULL;
    const float w = weight != NULL ? weight[r] : 1;
    if (w == 0) {
      if (to != NULL) memset(to, 0, sizeof *to * cols);
      continue;
    }
    float largest = row_largest(cols, x);
    *correct += w > 0 && is_first(x, labels[r], largest);
    *loss_sum += (double)w * row_cross_entropy(cols, x, labels[r], largest, w * scale, to);
  }
}

/* Loss and slope at p for the target t. */
typedef struct point {
  vf loss, slope;
} point;

V_INLINE point element(shoal_element_loss kind, float param, vf p, vf t) {
  const vf half = vf_set(0.5f), delta = vf_set(param);
  vf e = vf_sub(p, t);
  vf size = vf_abs(e);
  switch (kind) {
  case SHOAL_LOSS_SQUARED: return (point){vf_mul(e, e), vf_add(e, e)};
  case SHOAL_LOSS_ABSOLUTE: /* zero has the slope zero, and a NaN stays one */
    return (point){size, vf_select(vf_lt(vf_zero(), size), vf_with_sign(vf_set(1), e), e)};
  case SHOAL_LOSS_HUBER: {
    vf beyond = vf_mul(delta, vf_fnma(half, delta, size));
    vf slope = vf_max(vf_neg(delta), vf_min(delta, e));
    return (point){vf_select(vf_lt(delta, size), beyond, vf_mul(half, vf_mul(e, e))), slope};
  }
  default: return (point){vf_fnma(t, p, vf_softplus(p)), vf_sub(vf_sigmoid(p), t)};
  }
}

V_INLINE double row_loss(shoal_element_loss kind, float param, uint32_t cols, const float *p, const float *t,
                         float factor, float *d) {
  vf sum = vf_zero();
  for (uint32_t i = 0; i < cols; i += 16) {
    point at = element(kind, param, vf_load_some(p + i, cols - i), vf_load_some(t + i, cols - i));
    sum = vf_add(sum, vf_keep(at.loss, cols - i));
    if (d != NULL) vf_store_some(d + i, cols - i, vf_mul(at.slope, vf_set(factor)));
  }
  return (double)vf_tree(sum);
}

V_INLINE void rows_loss(shoal_element_loss kind, float param, uint32_t rows, uint32_t cols, const float *p,
                        const float *t, const float *weight, float scale, float *d, double *loss_sum) {
  for (uint32_t r = 0; r < rows; r++) {
    const size_t at = (size_t)r * cols;
    const float w = weight != NULL ? weight[r] : 1;
    float *to = d != NULL ? d + at : NULL;
    if (w != 0)
      *loss_sum += (double)w * row_loss(kind, param, cols, p + at, t + at, w * scale, to);
    else if (to != NULL)
      memset(to, 0, sizeof *to * cols);
  }
}

void ISA(element_loss)(shoal_element_loss kind, float param, uint32_t rows, uint32_t cols, const float *p,
                       const float *t, const float *weight, float scale, float *d, double *loss_sum) {
#define CASE(each) \
  case each: rows_loss(each, param, rows, cols, p, t, weight, scale, d, loss_sum); break;
  switch (kind) {
    CASE(SHOAL_LOSS_SQUARED)
    CASE(SHOAL_LOSS_ABSOLUTE)
    CASE(SHOAL_LOSS_HUBER)
    CASE(SHOAL_LOSS_BINARY)
  }
#undef CASE
}

void ISA(weigh_rows)(uint32_t rows, const int32_t *labels, const float *class_weights, float *weight,
                     double *weight_sum, uint64_t *counted) {
  for (uint32_t r = 0; r < rows; r++) {
    if (class_weights != NULL) weight[r] *= class_weights[labels[r]];
    *counted += weight[r] > 0;
    *weight_sum += weight[r];
  }
}

void ISA(binary_right)(uint32_t rows, uint32_t cols, const float *p, const float *t, const float *weight,
                       uint64_t *correct) {
  for (uint32_t r = 0; r < rows; r++, p += cols, t += cols) {
    bool right = weight[r] > 0;
    for (uint32_t c = 0; c < cols; c++) right &= (p[c] > 0) == (t[c] > 0.5f);
    *correct += right;
  }
}
