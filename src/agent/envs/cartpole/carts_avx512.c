/* carts_avx512.c: eight carts at a time. See carts.h, and cartpole.c for why sine and cosine are done so.
 *
 * A block goes in three passes: sines and cosines by their series, with a list of those that the C library
 * must tell; these; then the step. Registers hold the carts in the order 0 2 1 3 4 6 5 7, which takes the
 * fewest instructions to come to, and which nobody but this file sees. Both loops begin with the next eight
 * before they are done with the last: an eight is a long chain of operations that wait for each other, more
 * than a processor looks ahead.
 *
 * Fused instructions are used only where they do not show: inside the series, whose error has a bound, and
 * to divide by a constant. With 1 / M in two doubles, x times the one and x times the other, added up, is
 * wrong by less than 2^-53 of a unit, and then rounded. The middle between two doubles is further away from
 * x / M than that: as M is even in its last place, by 2 / M of 2^-53 units at least. */
#ifdef __x86_64__
#include <immintrin.h>

#include "agent/envs/cartpole/carts.h"

#define WIDE __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,fma,popcnt")))
#define WIDE_INLINE \
  static inline __attribute__((always_inline, target("avx512f,avx512dq,avx512bw,avx512vl,fma,popcnt")))

enum { LANES = 8 };

static const double SERIES_TERM = 2.5 * 0x1p-52; /* how wrong the small term of a sine may be: see carts.h */
/* 1 / TOTAL_MASS in two parts. Neither is negative, so infinity stays what it is. */
static const double MASS_INVERSE = 0x1.d1745d1745d16p-1, MASS_INVERSE_REST = 0x1.391fbc4c2a507p-54;

/* Numbers of a block's carts whose sine, or cosine, is not sure. */
typedef struct unsure {
  uint32_t numbers[CARTS_BLOCK + LANES], count;
} unsure;

typedef struct block {
  double sines[CARTS_BLOCK], cosines[CARTS_BLOCK]; /* in the order of registers */
  unsure sine, cosine;
} block;

WIDE_INLINE __m512d all(double value) { return _mm512_set1_pd(value); }
WIDE_INLINE __m512d size(__m512d v) { return _mm512_abs_pd(v); }

/* ---- sines and cosines ------------------------------------------------------------------ */

/* A value is `sum`, which left out `rest`, give or take `wrong`. */
typedef struct wave {
  __m512d sum, rest, wrong;
} wave;

/* Lanes whose value may be rounded otherwise. Towards zero the next double is never further away than on the
 * other side. */
WIDE_INLINE __mmask8 not_sure(wave w) {
  __m512d whole = size(w.sum), doubt = _mm512_add_pd(size(w.rest), w.wrong);
  return _mm512_cmp_pd_mask(_mm512_sub_pd(whole, doubt), whole, _CMP_NEQ_UQ);
}

/* x + x^3 times a series. */
WIDE_INLINE wave sine_of(__m512d x, __m512d x2) {
  __m512d sum = _mm512_fmadd_pd(x2, all(1.0 / 6227020800.0), all(-1.0 / 39916800));
  sum = _mm512_fmadd_pd(x2, sum, all(1.0 / 362880));
  sum = _mm512_fmadd_pd(x2, sum, all(-1.0 / 5040));
  sum = _mm512_fmadd_pd(x2, sum, all(1.0 / 120));
  sum = _mm512_fmadd_pd(x2, sum, all(-1.0 / 6));
  __m512d small = _mm512_mul_pd(_mm512_mul_pd(x, x2), sum), sine = _mm512_add_pd(x, small);
  __m512d rest = _mm512_sub_pd(small, _mm512_sub_pd(sine, x)); /* exact: what rounding took away */
  __mmask8 large = _mm512_cmp_pd_mask(size(x), all(SINE_SMALL), _CMP_NLT_UQ);
  __m512d units = _mm512_maskz_mov_pd(large, all(SINE_UNITS));
  __m512d terms = _mm512_mask_blend_pd(large, all(SERIES_TERM + SINE_TERM), all(SERIES_TERM));
  return (wave){sine, rest, _mm512_fmadd_pd(size(small), terms, units)};
}

/* 1 - x^2 / 2, with x^2 in two parts, and x^4 times a series. */
WIDE_INLINE wave cosine_of(__m512d x, __m512d x2) {
  const __m512d half = all(-0.5), one = all(1);
  __m512d x4 = _mm512_mul_pd(x2, x2), x2_rest = _mm512_fmsub_pd(x, x, x2);
  __m512d sum = _mm512_fmadd_pd(x2, all(1.0 / 479001600.0), all(-1.0 / 3628800));
  sum = _mm512_fmadd_pd(x2, sum, all(1.0 / 40320));
  sum = _mm512_fmadd_pd(x2, sum, all(-1.0 / 720));
  sum = _mm512_fmadd_pd(x2, sum, all(1.0 / 24));
  __m512d most = _mm512_fmadd_pd(x2, half, one);
  __m512d most_rest = _mm512_fmadd_pd(x2, half, _mm512_sub_pd(one, most)); /* exact */
  __m512d small = _mm512_fmadd_pd(x4, sum, _mm512_fmadd_pd(x2_rest, half, most_rest));
  __m512d cosine = _mm512_add_pd(most, small), rest = _mm512_sub_pd(small, _mm512_sub_pd(cosine, most));
  return (wave){cosine, rest, all(COSINE_UNITS + 0.001 * 0x1p-53)};
}

/* The angles of eight carts: every fourth number. */
WIDE_INLINE __m512d angles_of(const cart *carts) {
  __m512d a = _mm512_loadu_pd(carts), b = _mm512_loadu_pd(carts + 2);
  __m512d c = _mm512_loadu_pd(carts + 4), d = _mm512_loadu_pd(carts + 6);
  return _mm512_shuffle_f64x2(_mm512_unpacklo_pd(a, b), _mm512_unpacklo_pd(c, d), 0xdd);
}

/* The lanes that count are moved to the front. */
WIDE_INLINE void note(unsure *list, __m256i numbers, __mmask8 lanes) {
  _mm256_storeu_si256((__m256i *)(list->numbers + list->count), _mm256_maskz_compress_epi32(lanes, numbers));
  list->count += (uint32_t)_mm_popcnt_u32(lanes);
}

/* The waves of eight angles, and the lanes that are too large for a series. */
typedef struct waves {
  wave sine, cosine;
  __mmask8 far;
} waves;

WIDE_INLINE waves waves_at(const cart *carts, block *b, uint32_t i) {
  __m512d x = angles_of(carts + i), x2 = _mm512_mul_pd(x, x);
  waves w = {sine_of(x, x2), cosine_of(x, x2), _mm512_cmp_pd_mask(size(x), all(SERIES_MAX), _CMP_NLE_UQ)};
  _mm512_storeu_pd(b->sines + i, w.sine.sum);
  _mm512_storeu_pd(b->cosines + i, w.cosine.sum);
  return w;
}

WIDE_INLINE void doubt(waves w, block *b, uint32_t i) {
  __m256i numbers = _mm256_add_epi32(_mm256_set1_epi32((int)i), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  note(&b->sine, numbers, not_sure(w.sine) | w.far);
  note(&b->cosine, numbers, not_sure(w.cosine) | w.far);
}

WIDE static void find_waves(const cart *carts, uint32_t count, block *b) {
  b->sine.count = b->cosine.count = 0;
  waves w = waves_at(carts, b, 0);
  for (uint32_t i = LANES; i < count; i += LANES) {
    waves next = waves_at(carts, b, i);
    doubt(w, b, i - LANES);
    w = next;
  }
  doubt(w, b, count - LANES);
}

static double angle_at(const cart *carts, uint32_t place) {
  static const uint8_t numbers[LANES] = {0, 2, 1, 3, 4, 6, 5, 7};
  return carts[place / LANES * LANES + numbers[place % LANES]].angle;
}

static void ask_library(const cart *carts, block *b) {
  for (uint32_t i = 0; i < b->sine.count; i++) {
    uint32_t place = b->sine.numbers[i];
    b->sines[place] = sin(angle_at(carts, place));
  }
  for (uint32_t i = 0; i < b->cosine.count; i++) {
    uint32_t place = b->cosine.numbers[i];
    b->cosines[place] = cos(angle_at(carts, place));
  }
}

/* ---- the step --------------------------------------------------------------------------- */

typedef struct eight {
  __m512d x, speed, angle, turn;
} eight;

WIDE_INLINE eight load(const cart *carts) {
  __m512d a = _mm512_loadu_pd(carts), b = _mm512_loadu_pd(carts + 2);
  __m512d c = _mm512_loadu_pd(carts + 4), d = _mm512_loadu_pd(carts + 6);
  __m512d ab_even = _mm512_unpacklo_pd(a, b), ab_odd = _mm512_unpackhi_pd(a, b);
  __m512d cd_even = _mm512_unpacklo_pd(c, d), cd_odd = _mm512_unpackhi_pd(c, d);
  return (eight){_mm512_shuffle_f64x2(ab_even, cd_even, 0x88), _mm512_shuffle_f64x2(ab_odd, cd_odd, 0x88),
                 _mm512_shuffle_f64x2(ab_even, cd_even, 0xdd), _mm512_shuffle_f64x2(ab_odd, cd_odd, 0xdd)};
}

WIDE_INLINE void store_two(cart *carts, float *seen, __m512d two) {
  _mm512_storeu_pd(carts, two);
  _mm256_storeu_ps(seen, _mm512_cvtpd_ps(two));
}

WIDE_INLINE void store(cart *carts, float *seen, eight e) {
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  __m512d ab_even = _mm512_permutex2var_pd(e.x, first, e.angle);
  __m512d ab_odd = _mm512_permutex2var_pd(e.speed, first, e.turn);
  __m512d cd_even = _mm512_permutex2var_pd(e.x, second, e.angle);
  __m512d cd_odd = _mm512_permutex2var_pd(e.speed, second, e.turn);
  store_two(carts, seen, _mm512_unpacklo_pd(ab_even, ab_odd));
  store_two(carts + 2, seen + 8, _mm512_unpackhi_pd(ab_even, ab_odd));
  store_two(carts + 4, seen + 16, _mm512_unpacklo_pd(cd_even, cd_odd));
  store_two(carts + 6, seen + 24, _mm512_unpackhi_pd(cd_even, cd_odd));
}

/* v / TOTAL_MASS: see above. Not where v is so small that a part of it is no double, which takes a turn of
 * more than 1e100 that just makes up for the force. */
WIDE_INLINE __m512d by_mass(__m512d v) {
  return _mm512_fmadd_pd(v, all(MASS_INVERSE), _mm512_mul_pd(v, all(MASS_INVERSE_REST)));
}

WIDE_INLINE __m512d onwards(__m512d v, __m512d change) {
  return _mm512_add_pd(v, _mm512_mul_pd(all(TAU), change));
}

/* Halfway through a step: all that does not wait for the division. */
typedef struct pushed {
  eight e;
  __m512d cosine, push, turning;
} pushed;

/* cart_move, line for line, in two halves; but HALF_LENGTH, which is a half, is multiplied into constants,
 * which changes no digit. */
WIDE_INLINE pushed push_eight(eight e, __m512d force, __m512d sine, __m512d cosine) {
  __m512d swing = _mm512_mul_pd(_mm512_mul_pd(all(POLE_MASS_LENGTH), _mm512_mul_pd(e.turn, e.turn)), sine);
  __m512d push = by_mass(_mm512_add_pd(force, swing));
  __m512d pole = by_mass(_mm512_mul_pd(all(HALF_LENGTH * POLE_MASS), _mm512_mul_pd(cosine, cosine)));
  __m512d inertia = _mm512_sub_pd(all(HALF_LENGTH * (4.0 / 3.0)), pole);
  __m512d fall = _mm512_sub_pd(_mm512_mul_pd(all(GRAVITY), sine), _mm512_mul_pd(cosine, push));
  return (pushed){e, cosine, push, _mm512_div_pd(fall, inertia)};
}

WIDE_INLINE eight move_eight(pushed p) {
  __m512d back = by_mass(_mm512_mul_pd(_mm512_mul_pd(all(POLE_MASS_LENGTH), p.turning), p.cosine));
  return (eight){onwards(p.e.x, p.e.speed), onwards(p.e.speed, _mm512_sub_pd(p.push, back)),
                 onwards(p.e.angle, p.e.turn), onwards(p.e.turn, p.turning)};
}

/* In the order of registers. */
WIDE_INLINE __m512d forces_of(const float *actions) {
  __m256 a = _mm256_permutevar8x32_ps(_mm256_loadu_ps(actions), _mm256_setr_epi32(0, 2, 1, 3, 4, 6, 5, 7));
  return _mm512_mask_blend_pd(_mm256_cmp_ps_mask(a, _mm256_set1_ps(1), _CMP_EQ_OQ), all(-PUSH), all(PUSH));
}

WIDE_INLINE void tell_ended(eight e, bool *ended) {
  __mmask8 in = _mm512_cmp_pd_mask(size(e.x), all(X_MAX), _CMP_LE_OQ);
  in = _mm512_mask_cmp_pd_mask(in, size(e.angle), all(ANGLE_MAX), _CMP_LE_OQ);
  __m128i out = _mm_maskz_set1_epi8((__mmask16)(uint8_t)~in, 1);
  __m128i sorted = _mm_shuffle_epi8(out, _mm_set_epi64x(0, 0x0705060403010200));
  _mm_storel_epi64((__m128i *)(void *)ended, sorted);
}

WIDE_INLINE pushed push_at(const cart *carts, const float *actions, const block *b, uint32_t i) {
  return push_eight(load(carts + i), forces_of(actions + i), _mm512_loadu_pd(b->sines + i),
                    _mm512_loadu_pd(b->cosines + i));
}

WIDE_INLINE void move_at(pushed p, cart *carts, bool *ended, float *seen, uint32_t i) {
  eight e = move_eight(p);
  store(carts + i, seen + (size_t)4 * i, e);
  tell_ended(e, ended + i);
}

WIDE static void move_block(cart *carts, uint32_t count, const float *actions, bool *ended, float *seen) {
  block b;
  find_waves(carts, count, &b);
  ask_library(carts, &b);
  pushed p = push_at(carts, actions, &b, 0);
  for (uint32_t i = LANES; i < count; i += LANES) {
    pushed next = push_at(carts, actions, &b, i);
    move_at(p, carts, ended, seen, i - LANES);
    p = next;
  }
  move_at(p, carts, ended, seen, count - LANES);
}

WIDE void shoal_carts_move_avx512(cart *carts, uint32_t count, const float *actions, bool *ended,
                                  float *seen) {
  for (uint32_t done = 0; done < count; done += CARTS_BLOCK)
    move_block(carts + done, count - done < CARTS_BLOCK ? count - done : CARTS_BLOCK, actions + done,
               ended + done, seen + (size_t)4 * done);
}

WIDE void shoal_carts_round_avx512(const cart *carts, uint32_t count, float *out) {
  uint32_t i = 0;
  for (; i + 2 <= count; i += 2) _mm256_storeu_ps(out + 4 * i, _mm512_cvtpd_ps(_mm512_loadu_pd(carts + i)));
  if (i < count) _mm_storeu_ps(out + 4 * i, _mm256_cvtpd_ps(_mm256_loadu_pd(&carts[i].x)));
}
#endif
