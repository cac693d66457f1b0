/* activation.isa.c: activations element by element, and softmax along rows. */
#include "kernels/isa.h"
#include "kernels/vmath.h"

V_INLINE vf activate(shoal_activation kind, vf x) {
  switch (kind) {
  case SHOAL_ACT_SIGMOID: return vf_sigmoid(x);
  case SHOAL_ACT_TANH: return vf_tanh(x);
  case SHOAL_ACT_RELU: return vf_max(vf_zero(), x);
  case SHOAL_ACT_LEAKY_RELU: return vf_select(vf_lt(x, vf_zero()), vf_mul(x, vf_set(0.01f)), x);
  case SHOAL_ACT_ELU: return vf_select(vf_lt(vf_zero(), x), x, vf_expm1(x));
  case SHOAL_ACT_GELU: return vf_mul(x, vf_normal(x).below);
  case SHOAL_ACT_SILU: return vf_mul(x, vf_sigmoid(x));
  case SHOAL_ACT_SOFTPLUS: return vf_softplus(x);
  default: return x;
  }
}

V_INLINE vf silu_slope(vf x) { /* s + x s (1 - s) */
  vf s = vf_sigmoid(x);
  return vf_fma(vf_mul(x, s), vf_sub(vf_set(1), s), s);
}

V_INLINE vf gelu_slope(vf x) {
  v_normal n = vf_normal(x);
  return vf_fma(x, n.density, n.below);
}

/* dy times the slope, from y, or from x for the two that cannot be told from y. */
V_INLINE vf deactivate(shoal_activation kind, vf x, vf y, vf dy) {
  const vf zero = vf_zero(), one = vf_set(1);
  switch (kind) {
  case SHOAL_ACT_SIGMOID: return vf_mul(dy, vf_mul(y, vf_sub(one, y)));
  case SHOAL_ACT_TANH: return vf_mul(dy, vf_fnma(y, y, one));
  case SHOAL_ACT_RELU: return vf_select(vf_lt(zero, y), dy, zero);
  case SHOAL_ACT_LEAKY_RELU: return vf_select(vf_lt(zero, y), dy, vf_mul(dy, vf_set(0.01f)));
  case SHOAL_ACT_ELU: return vf_select(vf_lt(zero, y), dy, vf_fma(dy, y, dy));
  case SHOAL_ACT_GELU: return vf_mul(dy, gelu_slope(x));
  case SHOAL_ACT_SILU: return vf_mul(dy, silu_slope(x));
  case SHOAL_ACT_SOFTPLUS: return vf_mul(dy, vf_neg(vf_expm1(vf_neg(y)))); /* sigmoid(x) = 1 - e^-y */
  default: return dy;
  }
}

V_INLINE void forward(shoal_activation kind, size_t count, const float *x, float *y) {
  for (size_t i = 0; i < count; i += 16)
    vf_store_some(y + i, count - i, activate(kind, vf_load_some(x + i, count - i)));
}

V_INLINE void backward(shoal_activation kind, size_t count, const float *x, const float *y, const float *dy,
                       float *dx) {
  const bool from_x = kind == SHOAL_ACT_GELU || kind == SHOAL_ACT_SILU;
  for (size_t i = 0; i < count; i += 16) {
    vf at_x = from_x ? vf_load_some(x + i, count - i) : vf_zero();
    vf at_y = from_x ? vf_zero() : vf_load_some(y + i, count - i);
    vf d = vf_load_some(dy + i, count - i);
    vf_store_some(dx + i, count - i, deactivate(kind, at_x, at_y, d));
  }
}

/* One loop for each kind, without a choice inside. */
#define EACH_KIND(X)      \
  X(SHOAL_ACT_IDENTITY)   \
  X(SHOAL_ACT_SIGMOID)    \
  X(SHOAL_ACT_TANH)       \
  X(SHOAL_ACT_RELU)       \
  X(SHOAL_ACT_LEAKY_RELU) \
  X(SHOAL_ACT_ELU)        \
  X(SHOAL_ACT_GELU)       \
  X(SHOAL_ACT_SILU)       \
  X(SHOAL_ACT_SOFTPLUS)

void ISA(act_forward)(shoal_activation kind, size_t count, const float *x, float *y) {
#define CASE(each) \
  case each: forward(each, count, x, y); break;
  switch (kind) {
    EACH_KIND(CASE)
  case SHOAL_ACT_SOFTMAX: break;
  }
#undef CASE
}

void ISA(act_backward)(shoal_activation kind, size_t count, const float *x, const float *y, const float *dy,
                       float *dx) {
#define CASE(each) \
  case each: backward(each, count, x, y, dy, dx); break;
  switch (kind) {
    EACH_KIND(CASE)
  case SHOAL_ACT_SOFTMAX: break;
  }
#undef CASE
}

void ISA(softmax_forward)(uint32_t rows, uint32_t cols, const float *x, float *y) {
  for (uint32_t r = 0; r < rows; r++, x += cols, y += cols) {
    const vf shift = vf_set(row_largest(cols, x));
    vf sum = vf_zero();
    for (uint32_t i = 0; i < cols; i += 16) {
      vf e = vf_exp(vf_sub(vf_load_some(x + i, cols - i), shift));
      vf_store_some(y + i, cols - i, e);
      sum = vf_add(sum, vf_keep(e, cols - i));
    }
    vf total = vf_set(vf_tree(sum));
    for (uint32_t i = 0; i < cols; i += 16)
      vf_store_some(y + i, cols - i, vf_div(vf_load_some(y + i, cols - i), total));
  }
}

void ISA(softmax_backward)(uint32_t rows, uint32_t cols, const float *y, const float *dy, float *dx) {
  for (uint32_t r = 0; r < rows; r++, y += cols, dy += cols, dx += cols) {
    vf sum = vf_zero();
    for (uint32_t i = 0; i < cols; i += 16)
      sum = vf_fma(vf_load_some(y + i, cols - i), vf_load_some(dy + i, cols - i), sum);
    vf mean = vf_set(vf_tree(sum)); /* of dy, as y weighs it */
    for (uint32_t i = 0; i < cols; i += 16) {
      vf d = vf_sub(vf_load_some(dy + i, cols - i), mean);
      vf_store_some(dx + i, cols - i, vf_mul(vf_load_some(y + i, cols - i), d));
    }
  }
}
