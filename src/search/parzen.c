/* parzen.c: see parzen.h. */
#include "search/parzen.h"

#include <math.h>

#include "base/assert.h"
#include "search/exact.h"

static const double GOOD_SHARE = 0.15;
static const double PRIOR = 1;       /* so many points of each density lie anywhere */
static const double NARROWEST = 0.1; /* kernel, as a share of the setting's range */

/* The points of one density, for one setting: in the unit interval, or numbers of choices. */
typedef struct density {
  double at[SHOAL_PARZEN_OTHERS_MAX];
  uint32_t count;
  double reach; /* of a kernel to either side */
} density;

typedef struct estimator {
  bool fixed; /* only one value */
  bool ordered;
  uint64_t values; /* not ordered: how many */
  density good, others;
} estimator;

/* 53 random bits as a number in [0, 1). */
static double uniform(shoal_key key, uint64_t i) {
  return (double)(shoal_random_u64(key, i) >> 11) * 0x1p-53;
}

void shoal_parzen_random(const shoal_space *space, shoal_key key, shoal_values *out) {
  for (uint32_t id = 0; id < SHOAL_SETTINGS; id++)
    out->of[id] = shoal_space_from_unit(&space->settings[id], uniform(key, id));
}

/* ---- densities ---------------------------------------------------------------------- */

/* Up to its height. */
static double biweight(double distance, double per_reach) {
  double x = distance * per_reach;
  double inside = 1 - x * x;
  return inside > 0 ? inside * inside : 0;
}

static double density_at(const estimator *e, const density *d, double at) {
  double sum = 0;
  if (!e->ordered) {
    for (uint32_t i = 0; i < d->count; i++) sum += d->at[i] == at;
    return (sum + PRIOR) / (d->count + PRIOR * (double)e->values);
  }
  double per_reach = 1 / d->reach;
  for (uint32_t i = 0; i < d->count; i++) {
    double x = d->at[i];
    sum += biweight(at - x, per_reach);
    if (at + x < d->reach) sum += biweight(at + x, per_reach);
    if (2 - at - x < d->reach) sum += biweight(2 - at - x, per_reach);
  }
  return (sum * 0.9375 * per_reach + PRIOR) / (d->count + PRIOR);
}

/* How far kernels reach: by the spread of the points and their number (Silverman), never less than a
 * value's share. */
static void set_reach(density *d, uint64_t values) {
  double mean = 0, square = 0, n = d->count;
  for (uint32_t i = 0; i < d->count; i++) mean += d->at[i] / n;
  for (uint32_t i = 0; i < d->count; i++) square += (d->at[i] - mean) * (d->at[i] - mean) / n;
  double shrink = n > 1 ? shoal_exact_exp(-0.2 * shoal_exact_log(n)) : 1;
  double least = values > 0 ? fmax(NARROWEST, 0.8 / (double)values) : NARROWEST;
  d->reach = fmin(1, fmax(least, 2.5 * sqrt(square) * shrink));
}

static void add_point(const shoal_space *space, estimator *e, density *d, uint32_t id,
                      const shoal_values *point) {
  if (!shoal_values_matter(space, point, (shoal_setting_id)id)) return;
  double value = point->of[id];
  d->at[d->count++] = e->ordered ? shoal_space_to_unit(&space->settings[id], value) : value;
}

static void estimate(const shoal_space *space, uint32_t id, const shoal_values *const *points, uint64_t count,
                     uint64_t good, estimator *e) {
  const shoal_setting *setting = &space->settings[id];
  e->values = shoal_setting_values(setting);
  e->fixed = e->values == 1;
  e->ordered = shoal_setting_ordered(setting);
  e->good.count = e->others.count = 0;
  if (e->fixed) return;
  for (uint64_t i = 0; i < good; i++) add_point(space, e, &e->good, id, points[i]);
  uint64_t rest = count - good;
  uint64_t taken = rest < SHOAL_PARZEN_OTHERS_MAX ? rest : SHOAL_PARZEN_OTHERS_MAX;
  for (uint64_t i = 0; i < taken; i++) add_point(space, e, &e->others, id, points[good + i * rest / taken]);
  set_reach(&e->good, e->values);
  set_reach(&e->others, e->values);
}

/* ---- candidates --------------------------------------------------------------------- */

/* From -1 to 1 as the biweight has it: the one in the middle of five numbers by chance. */
static double draw_biweight(shoal_key key, uint64_t i) {
  double five[5];
  for (uint32_t k = 0; k < 5; k++) {
    double u = uniform(key, i + k);
    uint32_t place = k;
    for (; place > 0 && five[place - 1] > u; place--) five[place] = five[place - 1];
    five[place] = u;
  }
  return 2 * five[2] - 1;
}

static double mirrored(double u) {
  const double below_one = 1 - 0x1p-53;
  if (u < 0) u = -u;
  if (u > 1) u = 2 - u;
  return u < 0 ? 0 : u > below_one ? below_one : u;
}

/* A setting's value near that of a good point, or by chance as often as the prior says. */
static double draw(const shoal_setting *setting, const estimator *e, shoal_key key, uint64_t i) {
  double prior = e->ordered ? PRIOR : PRIOR * (double)e->values;
  if (e->fixed || uniform(key, i + 1) * (e->good.count + prior) < prior)
    return shoal_space_from_unit(setting, uniform(key, i));
  double near = e->good.at[shoal_random_u64(key, i + 2) % e->good.count];
  if (!e->ordered) return near;
  return shoal_space_from_unit(setting, mirrored(near + draw_biweight(key, i + 3) * e->good.reach));
}

static double quotient(const shoal_space *space, const estimator *estimators, const shoal_values *values) {
  double product = 1;
  for (uint32_t id = 0; id < SHOAL_SETTINGS; id++) {
    const estimator *e = &estimators[id];
    if (e->fixed || !shoal_values_matter(space, values, (shoal_setting_id)id)) continue;
    double at = e->ordered ? shoal_space_to_unit(&space->settings[id], values->of[id]) : values->of[id];
    product *= density_at(e, &e->good, at) / density_at(e, &e->others, at);
  }
  return product;
}

void shoal_parzen_propose(const shoal_space *space, const shoal_values *const *points, uint64_t count,
                          shoal_key key, shoal_values *out) {
  SHOAL_ASSERT(count >= 2);
  enum { NUMBERS = 8 }; /* by chance, for one setting of one candidate */
  uint64_t good = (uint64_t)ceil((double)count * GOOD_SHARE);
  if (good > SHOAL_PARZEN_GOOD_MAX) good = SHOAL_PARZEN_GOOD_MAX;
  estimator estimators[SHOAL_SETTINGS];
  for (uint32_t id = 0; id < SHOAL_SETTINGS; id++) estimate(space, id, points, count, good, &estimators[id]);
  double best = -1;
  for (uint64_t c = 0; c < SHOAL_PARZEN_CANDIDATES; c++) {
    shoal_values values;
    for (uint32_t id = 0; id < SHOAL_SETTINGS; id++)
      values.of[id] = draw(&space->settings[id], &estimators[id], key, (c * SHOAL_SETTINGS + id) * NUMBERS);
    double q = quotient(space, estimators, &values);
    if (q <= best) continue;
    best = q;
    *out = values;
  }
}
