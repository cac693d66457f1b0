/* norm.isa.c: batch and layer normalisation, in both layouts.
 *
 * Every mean is taken before its variance, in two passes: the one-pass formula cancels.
 * The orders of summation:
 *   batchnorm LANES  per lane a chain over (lane group, position), then the lane tree
 *   batchnorm ROWS   per channel a chain over the rows
 *   layernorm LANES  per lane a chain over the features; gradients of gamma and beta per
 *                    feature a chain over the lane groups, then the tree
 *   layernorm ROWS   row_sum; gradients of gamma and beta a chain over the rows
 * Lanes without a sample may hold anything finite, and are left out of sums. */
#include "kernels/isa.h"
#include "kernels/vmath.h"

static bool in_lanes(const shoal_norm *s) { return s->lanes > 0; }

/* Samples in the group of lanes that starts at `group`, at most 16. */
static uint32_t samples_in(const shoal_norm *s, uint32_t group) {
  uint32_t left = s->samples > group ? s->samples - group : 0;
  return left < 16 ? left : 16;
}

V_INLINE vf reciprocal_root(vf variance, float eps) {
  return vf_div(vf_set(1), vf_sqrt(vf_add(variance, vf_set(eps))));
}

/* ---- batch normalisation ------------------------------------------------------------------ */

/* The vectors of one channel in LANES layout, or of 16 channels in ROWS layout: `groups`
 * side by side, `length` of each, and so the same loops serve both. */
typedef struct column {
  const shoal_norm *s;
  uint32_t channel, groups;
  uint32_t width; /* floats of a vector that belong to the tensor */
  size_t first, length, stride;
} column;

static uint32_t column_step(const shoal_norm *s) { return in_lanes(s) ? 1 : 16; }

static column column_at(const shoal_norm *s, uint32_t channel) {
  if (in_lanes(s))
    return (column){
        s, channel, s->lanes / 16, 16, (size_t)channel * s->positions * s->lanes, s->positions, s->lanes};
  uint32_t left = s->channels - channel;
  return (column){s, channel, 1, left < 16 ? left : 16, channel, (size_t)s->samples * s->steps, s->channels};
}

static size_t vector_at(const column *c, uint32_t group, size_t i) {
  return c->first + i * c->stride + 16 * (size_t)group;
}

/* Lanes of a group's vectors that count in sums. */
static uint32_t counted(const column *c, uint32_t group) {
  return in_lanes(c->s) ? samples_in(c->s, 16 * group) : c->width;
}

static vf column_count(const shoal_norm *s) {
  return vf_set((float)((uint64_t)s->samples * s->steps * s->positions));
}

/* In LANES layout the lanes' sums are parts of one; in ROWS each is a channel's. */
V_INLINE vf column_total(const column *c, vf sum) { return in_lanes(c->s) ? vf_set(vf_tree(sum)) : sum; }

V_INLINE vf channel_values(const column *c, const float *values) {
  return in_lanes(c->s) ? vf_set(values[c->channel]) : vf_load_some(values + c->channel, c->width);
}

V_INLINE void set_channel_values(const column *c, float *values, vf v) {
  vf_store_some(values + c->channel, in_lanes(c->s) ? 1 : c->width, v);
}

static vf column_mean(const column *c, const float *x) {
  vf sum = vf_zero();
  for (uint32_t group = 0; group < c->groups; group++)
    for (size_t i = 0; i < c->length; i++)
      sum = vf_add(sum, vf_keep(vf_load_some(x + vector_at(c, group, i), c->width), counted(c, group)));
  return vf_div(column_total(c, sum), column_count(c->s));
}

static vf column_variance(const column *c, const float *x, vf mean) {
  vf sum = vf_zero();
  for (uint32_t group = 0; group < c->groups; group++)
    for (size_t i = 0; i < c->length; i++) {
      vf off = vf_sub(vf_load_some(x + vector_at(c, group, i), c->width), mean);
      off = vf_keep(off, counted(c, group));
      sum = vf_fma(off, off, sum);
    }
  return vf_div(column_total(c, sum), column_count(c->s));
}

static void column_normalise(const column *c, const float *x, const float *gamma, const float *beta,
                             float eps, vf mean, vf variance, float *y) {
  const vf factor = vf_mul(channel_values(c, gamma), reciprocal_root(variance, eps));
  const vf shift = channel_values(c, beta);
  for (uint32_t group = 0; group < c->groups; group++)
    for (size_t i = 0; i < c->length; i++) {
      const size_t at = vector_at(c, group, i);
      vf off = vf_sub(vf_load_some(x + at, c->width), mean);
      vf_store_some(y + at, c->width, vf_fma(off, factor, shift));
    }
}

void ISA(batchnorm_train)(const shoal_norm *s, const float *x, const float *gamma, const float *beta,
                          float eps, float *y, float *mean, float *var) {
  for (uint32_t channel = 0; channel < s->channels; channel += column_step(s)) {
    column c = column_at(s, channel);
    vf m = column_mean(&c, x), v = column_variance(&c, x, m);
    set_channel_values(&c, mean, m);
    set_channel_values(&c, var, v);
    column_normalise(&c, x, gamma, beta, eps, m, v, y);
  }
}

void ISA(batchnorm_infer)(const shoal_norm *s, const float *x, const float *gamma, const float *beta,
                          float eps, const float *mean, const float *var, float *y) {
  for (uint32_t channel = 0; channel < s->channels; channel += column_step(s)) {
    column c = column_at(s, channel);
    column_normalise(&c, x, gamma, beta, eps, channel_values(&c, mean), channel_values(&c, var), y);
  }
}

/* With z = (x - mean) / deviation and sums over the N values of a channel:
 * dx = gamma / deviation * (dy - sum(dy) / N - z sum(dy z) / N). */
void ISA(batchnorm_backward)(const shoal_norm *s, const float *x, const float *gamma, float eps,
                             const float *mean, const float *var, const float *dy, float *dx, float *dgamma,
                             float *dbeta) {
  for (uint32_t channel = 0; channel < s->channels; channel += column_step(s)) {
    const column c = column_at(s, channel);
    const vf m = channel_values(&c, mean), root = reciprocal_root(channel_values(&c, var), eps);
    vf sum = vf_zero(), sum_z = vf_zero();
    for (uint32_t group = 0; group < c.groups; group++)
      for (size_t i = 0; i < c.length; i++) {
        const size_t at = vector_at(&c, group, i);
        vf d = vf_keep(vf_load_some(dy + at, c.width), counted(&c, group));
        vf z = vf_mul(vf_sub(vf_load_some(x + at, c.width), m), root);
        sum = vf_add(sum, d);
        sum_z = vf_fma(d, z, sum_z);
      }
    sum = column_total(&c, sum);
    sum_z = column_total(&c, sum_z);
    set_channel_values(&c, dgamma, vf_add(channel_values(&c, dgamma), sum_z));
    set_channel_values(&c, dbeta, vf_add(channel_values(&c, dbeta), sum));

    const vf share = vf_div(sum, column_count(s)), share_z = vf_div(sum_z, column_count(s));
    const vf factor = vf_mul(channel_values(&c, gamma), root);
    for (uint32_t group = 0; group < c.groups; group++)
      for (size_t i = 0; i < c.length; i++) {
        const size_t at = vector_at(&c, group, i);
        vf z = vf_mul(vf_sub(vf_load_some(x + at, c.width), m), root);
        vf d = vf_fnma(z, share_z, vf_sub(vf_load_some(dy + at, c.width), share));
        vf_store_some(dx + at, c.width, vf_keep(vf_mul(factor, d), counted(&c, group)));
      }
  }
}

/* ---- layer normalisation ------------------------------------------------------------------ */

static uint32_t features_of(const shoal_norm *s) { return s->channels * s->positions; }

static void row_forward(uint32_t features, const float *x, const float *gamma, const float *beta, float eps,
                        float *y, float *mean, float *rstd) {
  const vf count = vf_set((float)features);
  vf sum = vf_zero();
  for (uint32_t i = 0; i < features; i += 16) sum = vf_add(sum, vf_load_some(x + i, features - i));
  const vf m = vf_div(vf_set(vf_tree(sum)), count);
  sum = vf_zero();
  for (uint32_t i = 0; i < features; i += 16) {
    vf off = vf_keep(vf_sub(vf_load_some(x + i, features - i), m), features - i);
    sum = vf_fma(off, off, sum);
  }
  const vf root = reciprocal_root(vf_div(vf_set(vf_tree(sum)), count), eps);
  vf_store_part(mean, 1, m);
  vf_store_part(rstd, 1, root);
  for (uint32_t i = 0; i < features; i += 16) {
    const uint32_t left = features - i;
    vf z = vf_mul(vf_sub(vf_load_some(x + i, left), m), root);
    vf_store_some(y + i, left, vf_fma(z, vf_load_some(gamma + i, left), vf_load_some(beta + i, left)));
  }
}

/* The samples of one group of lanes; pointers are at the group's first lane. */
static void lanes_forward(const shoal_norm *s, uint32_t in_use, const float *x, const float *gamma,
                          const float *beta, float eps, float *y, float *mean, float *rstd) {
  const uint32_t features = features_of(s);
  const vf count = vf_set((float)features);
  vf sum = vf_zero();
  for (size_t i = 0; i < features; i++) sum = vf_add(sum, vf_load(x + i * s->lanes));
  const vf m = vf_div(sum, count);
  sum = vf_zero();
  for (size_t i = 0; i < features; i++) {
    vf off = vf_sub(vf_load(x + i * s->lanes), m);
    sum = vf_fma(off, off, sum);
  }
  const vf root = reciprocal_root(vf_div(sum, count), eps);
  vf_store_some(mean, in_use, m);
  vf_store_some(rstd, in_use, root);
  for (size_t i = 0; i < features; i++) {
    vf z = vf_mul(vf_sub(vf_load(x + i * s->lanes), m), root);
    vf_store(y + i * s->lanes, vf_fma(z, vf_set(gamma[i]), vf_set(beta[i])));
  }
}

void ISA(layernorm_forward)(const shoal_norm *s, const float *x, const float *gamma, const float *beta,
                            float eps, float *y, float *mean, float *rstd) {
  const size_t features = features_of(s), rows = (size_t)s->samples * s->steps;
  if (!in_lanes(s)) {
    for (size_t r = 0; r < rows; r++)
      row_forward(features_of(s), x + r * features, gamma, beta, eps, y + r * features, mean + r, rstd + r);
    return;
  }
  for (uint32_t group = 0; group < s->lanes; group += 16) {
    const uint32_t in_use = samples_in(s, group), at = in_use > 0 ? group : 0;
    lanes_forward(s, in_use, x + group, gamma, beta, eps, y + group, mean + at, rstd + at);
  }
}

/* With z = (x - mean) rstd, g = dy gamma and means over a sample's features:
 * dx = rstd (g - mean(g) - z mean(g z)). */
static void row_backward(uint32_t features, const float *x, const float *gamma, float mean, float rstd,
                         const float *dy, float *dx, float *dgamma, float *dbeta) {
  const vf m = vf_set(mean), root = vf_set(rstd), count = vf_set((float)features);
  vf sum = vf_zero(), sum_z = vf_zero();
  for (uint32_t i = 0; i < features; i += 16) {
    const uint32_t left = features - i;
    vf d = vf_load_some(dy + i, left), z = vf_mul(vf_sub(vf_load_some(x + i, left), m), root);
    vf g = vf_mul(d, vf_load_some(gamma + i, left));
    sum = vf_add(sum, g);
    sum_z = vf_fma(g, z, sum_z);
    vf_store_some(dgamma + i, left, vf_fma(d, z, vf_load_some(dgamma + i, left)));
    vf_store_some(dbeta + i, left, vf_add(d, vf_load_some(dbeta + i, left)));
  }
  const vf share = vf_div(vf_set(vf_tree(sum)), count), share_z = vf_div(vf_set(vf_tree(sum_z)), count);
  for (uint32_t i = 0; i < features; i += 16) {
    const uint32_t left = features - i;
    vf z = vf_mul(vf_sub(vf_load_some(x + i, left), m), root);
    vf g = vf_mul(vf_load_some(dy + i, left), vf_load_some(gamma + i, left));
    vf_store_some(dx + i, left, vf_mul(root, vf_fnma(z, share_z, vf_sub(g, share))));
  }
}

/* The gradients of gamma and beta, whose sums cross the samples. Before dx, which may be dy. */
static void lanes_backward_scale(const shoal_norm *s, const float *x, const float *mean, const float *rstd,
                                 const float *dy, float *dgamma, float *dbeta) {
  const size_t features = features_of(s);
  for (size_t i = 0; i < features; i++) {
    vf sum = vf_zero(), sum_z = vf_zero();
    for (uint32_t group = 0; group < s->lanes; group += 16) {
      const uint32_t in_use = samples_in(s, group);
      if (in_use == 0) break;
      const size_t at = i * s->lanes + group;
      vf d = vf_keep(vf_load(dy + at), in_use);
      vf off = vf_sub(vf_load(x + at), vf_load_some(mean + group, in_use));
      sum = vf_add(sum, d);
      sum_z = vf_fma(d, vf_mul(off, vf_load_some(rstd + group, in_use)), sum_z);
    }
    dgamma[i] += vf_tree(sum_z);
    dbeta[i] += vf_tree(sum);
  }
}

static void lanes_backward(const shoal_norm *s, uint32_t in_use, const float *x, const float *gamma,
                           const float *mean, const float *rstd, const float *dy, float *dx) {
  const uint32_t features = features_of(s);
  const vf m = vf_load_some(mean, in_use), root = vf_load_some(rstd, in_use);
  const vf count = vf_set((float)features);
  vf sum = vf_zero(), sum_z = vf_zero();
  for (size_t i = 0; i < features; i++) {
    vf g = vf_mul(vf_load(dy + i * s->lanes), vf_set(gamma[i]));
    sum = vf_add(sum, g);
    sum_z = vf_fma(g, vf_mul(vf_sub(vf_load(x + i * s->lanes), m), root), sum_z);
  }
  const vf share = vf_div(sum, count), share_z = vf_div(sum_z, count);
  for (size_t i = 0; i < features; i++) {
    vf z = vf_mul(vf_sub(vf_load(x + i * s->lanes), m), root);
    vf g = vf_mul(vf_load(dy + i * s->lanes), vf_set(gamma[i]));
    vf d = vf_mul(root, vf_fnma(z, share_z, vf_sub(g, share)));
    vf_store(dx + i * s->lanes, vf_keep(d, in_use));
  }
}

void ISA(layernorm_backward)(const shoal_norm *s, const float *x, const float *gamma, const float *mean,
                             const float *rstd, const float *dy, float *dx, float *dgamma, float *dbeta) {
  const size_t features = features_of(s), rows = (size_t)s->samples * s->steps;
  if (!in_lanes(s)) {
    for (size_t r = 0; r < rows; r++)
      row_backward(features_of(s), x + r * features, gamma, mean[r], rstd[r], dy + r * features,
                   dx + r * features, dgamma, dbeta);
    return;
  }
  lanes_backward_scale(s, x, mean, rstd, dy, dgamma, dbeta);
  for (uint32_t group = 0; group < s->lanes; group += 16) {
    const uint32_t in_use = samples_in(s, group), at = in_use > 0 ? group : 0;
    lanes_backward(s, in_use, x + group, gamma, mean + at, rstd + at, dy + group, dx + group);
  }
}
