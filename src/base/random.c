/* random.c: Philox 4x32-10, from Salmon et al., "Parallel random numbers: as easy as 1, 2, 3".
 *
 * Ten rounds of two multiplications turn a 128-bit counter and a 64-bit key into 128 random
 * bits. Normal deviates come from the inverse of the normal distribution function, in double
 * precision with only + - * / and sqrt, whose results IEEE 754 fixes: the C library's log
 * and cos differ in their last bits from one machine to the next. */
#include "base/random.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"

/* The finaliser of splitmix64: every bit of x moves half the bits of the result. */
static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

shoal_key shoal_key_make(uint64_t seed, shoal_purpose purpose, uint64_t a, uint64_t b) {
  const uint64_t golden = 0x9e3779b97f4a7c15u;
  uint64_t x = mix(seed + golden);
  x = mix((x ^ (uint64_t)purpose) + golden);
  x = mix((x ^ a) + golden);
  x = mix((x ^ b) + golden);
  return (shoal_key){{(uint32_t)x, (uint32_t)(x >> 32)}};
}

void shoal_random_block(shoal_key key, uint64_t high, uint64_t low, uint32_t out[4]) {
  uint32_t x0 = (uint32_t)low, x1 = (uint32_t)(low >> 32);
  uint32_t x2 = (uint32_t)high, x3 = (uint32_t)(high >> 32);
  uint32_t k0 = key.word[0], k1 = key.word[1];
  for (int round = 0; round < 10; round++) {
    uint64_t p0 = (uint64_t)0xd2511f53 * x0;
    uint64_t p1 = (uint64_t)0xcd9e8d57 * x2;
    x0 = (uint32_t)(p1 >> 32) ^ x1 ^ k0;
    x2 = (uint32_t)(p0 >> 32) ^ x3 ^ k1;
    x1 = (uint32_t)p1;
    x3 = (uint32_t)p0;
    k0 += 0x9e3779b9;
    k1 += 0xbb67ae85;
  }
  out[0] = x0;
  out[1] = x1;
  out[2] = x2;
  out[3] = x3;
}

/* The numbers of 32 bits lie four to a block with high = 0, those of 64 bits two to a block
 * with high = 1, so that a stream may be asked for both. */
uint32_t shoal_random_u32(shoal_key key, uint64_t i) {
  uint32_t block[4];
  shoal_random_block(key, 0, i / 4, block);
  return block[i % 4];
}

uint64_t shoal_random_u64(shoal_key key, uint64_t i) {
  uint32_t block[4];
  shoal_random_block(key, 1, i / 2, block);
  return block[i % 2 * 2] | (uint64_t)block[i % 2 * 2 + 1] << 32;
}

float shoal_random_uniform(shoal_key key, uint64_t i) {
  return (float)(shoal_random_u32(key, i) >> 8) * 0x1p-24f;
}

uint64_t shoal_random_below(shoal_key key, uint64_t i, uint64_t n) {
  SHOAL_ASSERT(n > 0);
  /* The top half of the product. Drawing again would remove a bias of n / 2^64 and would
   * take more than one number of the stream: not worth it. */
  return (uint64_t)(((unsigned __int128)shoal_random_u64(key, i) * n) >> 64);
}

static const double odd_reciprocals[] = {1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9, 1.0 / 11,
                                         1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};

/* The natural logarithm of a normal x > 0, to a few units in the last place.
 * x = 2^e * m with m in [sqrt(1/2), sqrt(2)], and log m = 2 artanh(s), s = (m-1)/(m+1). */
static double log_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  int e = (int)(bits >> 52) - 1023;
  bits = (bits & 0x000fffffffffffffu) | 0x3ff0000000000000u;
  double m;
  memcpy(&m, &bits, sizeof m);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    e++;
  }
  double s = (m - 1.0) / (m + 1.0);
  double s2 = s * s; /* at most 0.0295, so eleven terms reach 2^-60 */
  double sum = 0.0;
  for (int k = 10; k >= 0; k--) sum = sum * s2 + odd_reciprocals[k];
  return e * 0.69314718055994530942 + 2.0 * s * sum;
}

/* c[0] + c[1] x + ... + c[7] x^7 */
static double polynomial(const double c[8], double x) {
  double sum = c[7];
  for (int i = 6; i >= 0; i--) sum = sum * x + c[i];
  return sum;
}

/* The inverse of the normal distribution function for 0 < p < 1: the rational functions of
 * Wichura's algorithm AS 241 (Applied Statistics 37, 1988), right to about 1 part in 10^16.
 * One pair serves the middle, |p - 1/2| <= 0.425, and two the tails, near and far. */
double shoal_normal_quantile(double p) {
  static const double middle[2][8] = {
      {3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3, 1.3731693765509461125e+4,
       4.5921953931549871457e+4, 6.7265770927008700853e+4, 3.3430575583588128105e+4,
       2.5090809287301226727e+3},
      {1.0, 4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3,
       2.1213794301586595867e+4, 3.9307895800092710610e+4, 2.8729085735721942674e+4,
       5.2264952788528545610e+3}};
  static const double near_tail[2][8] = {
      {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
       1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2,
       7.74545014278341407640e-4},
      {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
       1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
       1.05075007164441684324e-9}};
  static const double far_tail[2][8] = {
      {6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
       2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
       2.71155556874348757815e-5, 2.01033439929228813265e-7},
      {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
       7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
       2.04426310338993978564e-15}};
  double q = p - 0.5;
  if (q >= -0.425 && q <= 0.425) {
    double r = 0.180625 - q * q;
    return q * polynomial(middle[0], r) / polynomial(middle[1], r);
  }
  double r = sqrt(-log_of(q < 0 ? p : 1.0 - p));
  const double(*tail)[8] = r <= 5.0 ? near_tail : far_tail;
  r -= r <= 5.0 ? 1.6 : 5.0;
  double x = polynomial(tail[0], r) / polynomial(tail[1], r);
  return q < 0 ? -x : x;
}

static float normal_of(uint64_t bits) {
  /* The midpoints of 2^52 equal parts of (0, 1): never 0 or 1, and 1 - p is exact. */
  double p = ((double)(bits >> 12) + 0.5) * 0x1p-52;
  return (float)shoal_normal_quantile(p);
}

float shoal_random_normal(shoal_key key, uint64_t i) { return normal_of(shoal_random_u64(key, i)); }

void shoal_random_normals(shoal_key key, size_t count, float *out) {
  for (size_t i = 0; i < count; i += 2) {
    uint32_t block[4];
    shoal_random_block(key, 1, i / 2, block);
    out[i] = normal_of(block[0] | (uint64_t)block[1] << 32);
    if (i + 1 < count) out[i + 1] = normal_of(block[2] | (uint64_t)block[3] << 32);
  }
}
