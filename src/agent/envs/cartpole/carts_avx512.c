/* carts_avx512.c: eight carts at a time. See carts.h, and cartpole.c for why sine and cosine are done so.
 *
 * A block goes in three passes: its numbers are laid out in columns, with sines and cosines by their series,
 * and marks at those that are sure; the C library tells the others; then the step. Both loops begin with the
 * next eight before they are done with the last: an eight is a long chain of operations that wait for each
 * other, more than a processor looks ahead.
 *
 * Fused instructions are used only where they do not show: inside the series, whose error has a bound, and
 * to divide by a constant. With 1 / M in two doubles, x times the one and x times the other, added up, is
 * wrong by less than 2^-53 of a unit, and then rounded. The middle between two doubles is further away from
 * x / M than that: as M is even in its last place, by 2 / M of 2^-53 units at least. */
#ifdef __x86_64__
#include <immintrin.h>
#include <string.h>

#include "agent/envs/cartpole/carts.h"

#define WIDE __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,fma")))
#define WIDE_INLINE \
  static inline __attribute__((always_inline, target("avx512f,avx512dq,avx512bw,avx512vl,fma")))

enum { LANES = 8 };

/* How wrong the term may be that a sine takes from x: x^2, x^3 and the sum are each rounded once, and so was
 * 1 / 6. The term is what was taken, and the rest: of that part it is enough to be generous. */
static const double SERIES_TERM = 2.01 * 0x1p-52, REST_WRONG = 0x1p-49;
/* What a cosine may leave out and still be sure. It lies below 1, where half a unit is 2^-54. */
static const double COSINE_REST_MAX = 0x1p-54 - (COSINE_UNITS + 0.001 * 0x1p-53);
/* 1 / TOTAL_MASS in two parts. Neither is negative, so infinity stays what it is. */
static const double MASS_INVERSE = 0x1.d1745d1745d16p-1, MASS_INVERSE_REST = 0x1.391fbc4c2a507p-54;

typedef struct block {
  double x[CARTS_BLOCK], speed[CARTS_BLOCK], angle[CARTS_BLOCK], turn[CARTS_BLOCK];
  double sine[CARTS_BLOCK], cosine[CARTS_BLOCK];
  uint64_t sine_sure[CARTS_BLOCK / 64], cosine_sure[CARTS_BLOCK / 64]; /* a bit a cart */
} block;

WIDE_INLINE __m512d all(double value) { return _mm512_set1_pd(value); }
WIDE_INLINE __m512d size(__m512d v) { return _mm512_abs_pd(v); }

/* ---- sines and cosines ------------------------------------------------------------------ */

/* Values that left out `rest`, and are wrong besides: a sine by `wrong` and REST_WRONG of the rest, a cosine by
 * less than COSINE_REST_MAX says. */
typedef struct sines {
  __m512d values, rest, wrong;
} sines;

typedef struct cosines {
  __m512d values, rest;
} cosines;

/* x - x^3 times a series. */
WIDE_INLINE sines sines_of(__m512d x, __m512d x2) {
  __m512d sum = _mm512_fmadd_pd(x2, all(-1.0 / 6227020800.0), all(1.0 / 39916800));
  sum = _mm512_fmadd_pd(x2, sum, all(-1.0 / 362880));
  sum = _mm512_fmadd_pd(x2, sum, all(1.0 / 5040));
  sum = _mm512_fmadd_pd(x2, sum, all(-1.0 / 120));
  sum = _mm512_fmadd_pd(x2, sum, all(1.0 / 6));
  __m512d x3 = _mm512_mul_pd(x, x2), sine = _mm512_fnmadd_pd(x3, sum, x);
  __m512d taken = _mm512_sub_pd(x, sine), rest = _mm512_fnmadd_pd(x3, sum, taken); /* `taken` is exact */
  __mmask8 small = _mm512_cmp_pd_mask(x, all(SINE_SMALL), _CMP_LT_OQ);
  __m512d wrong = _mm512_mask_mul_pd(all(SINE_UNITS), small, taken, all(SINE_TERM));
  wrong = _mm512_fmadd_pd(taken, all(SERIES_TERM), wrong);
  return (sines){sine, rest, wrong};
}

/* 1 - x^2 / 2, with x^2 in two parts, and x^4 times a series. */
WIDE_INLINE cosines cosines_of(__m512d x, __m512d x2) {
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
  return (cosines){cosine, rest};
}

/* Carts as they lie in memory, two in a register, become columns. */
WIDE_INLINE __m512d lay_out(const cart *carts, block *b, uint32_t i) {
  const __m512i moving = _mm512_setr_epi64(0, 4, 8, 12, 1, 5, 9, 13);
  const __m512i turning = _mm512_setr_epi64(2, 6, 10, 14, 3, 7, 11, 15);
  __m512d r0 = _mm512_loadu_pd(carts + i), r2 = _mm512_loadu_pd(carts + i + 2);
  __m512d r4 = _mm512_loadu_pd(carts + i + 4), r6 = _mm512_loadu_pd(carts + i + 6);
  __m512d m0 = _mm512_permutex2var_pd(r0, moving, r2), m4 = _mm512_permutex2var_pd(r4, moving, r6);
  __m512d t0 = _mm512_permutex2var_pd(r0, turning, r2), t4 = _mm512_permutex2var_pd(r4, turning, r6);
  __m512d angle = _mm512_shuffle_f64x2(t0, t4, 0x44);
  _mm512_storeu_pd(b->x + i, _mm512_shuffle_f64x2(m0, m4, 0x44));
  _mm512_storeu_pd(b->speed + i, _mm512_shuffle_f64x2(m0, m4, 0xee));
  _mm512_storeu_pd(b->angle + i, angle);
  _mm512_storeu_pd(b->turn + i, _mm512_shuffle_f64x2(t0, t4, 0xee));
  return angle;
}

/* Of eight angles, whose size is x. */
typedef struct waves {
  __m512d x;
  sines sine;
  cosines cosine;
} waves;

WIDE_INLINE waves waves_at(const cart *carts, block *b, uint32_t i) {
  __m512d angle = lay_out(carts, b, i), x = size(angle), x2 = _mm512_mul_pd(x, x);
  waves w = {x, sines_of(x, x2), cosines_of(x, x2)};
  _mm512_storeu_pd(b->sine + i, _mm512_or_pd(w.sine.values, _mm512_and_pd(angle, all(-0.0))));
  _mm512_storeu_pd(b->cosine + i, w.cosine.values);
  return w;
}

/* Towards zero the next double is never further away than on the other side. */
WIDE_INLINE void mark_sure(waves w, block *b, uint32_t i) {
  __mmask8 near = _mm512_cmp_pd_mask(w.x, all(SERIES_MAX), _CMP_LE_OQ);
  __m512d sine = w.sine.values, doubt = _mm512_fmadd_pd(size(w.sine.rest), all(1 + REST_WRONG), w.sine.wrong);
  ((uint8_t *)b->sine_sure)[i / LANES] =
      _mm512_mask_cmp_pd_mask(near, _mm512_sub_pd(sine, doubt), sine, _CMP_EQ_OQ);
  ((uint8_t *)b->cosine_sure)[i / LANES] =
      _mm512_mask_cmp_pd_mask(near, size(w.cosine.rest), all(COSINE_REST_MAX), _CMP_LT_OQ);
}

WIDE static void find_waves(const cart *carts, uint32_t count, block *b) {
  waves w = waves_at(carts, b, 0);
  for (uint32_t i = LANES; i < count; i += LANES) {
    waves next = waves_at(carts, b, i);
    mark_sure(w, b, i - LANES);
    w = next;
  }
  mark_sure(w, b, count - LANES);
}

static void ask_library(block *b, uint32_t count) {
  for (uint32_t i = 0; i < count; i += 64) {
    for (uint64_t bits = ~b->sine_sure[i / 64]; bits; bits &= bits - 1) {
      uint32_t n = i + (uint32_t)__builtin_ctzll(bits);
      b->sine[n] = sin(b->angle[n]);
    }
    for (uint64_t bits = ~b->cosine_sure[i / 64]; bits; bits &= bits - 1) {
      uint32_t n = i + (uint32_t)__builtin_ctzll(bits);
      b->cosine[n] = cos(b->angle[n]);
    }
  }
}

/* ---- the step --------------------------------------------------------------------------- */

typedef struct eight {
  __m512d x, speed, angle, turn;
} eight;

WIDE_INLINE void store_two(cart *carts, float *seen, __m512d two) {
  _mm512_storeu_pd(carts, two);
  _mm256_storeu_ps(seen, _mm512_cvtpd_ps(two));
}

WIDE_INLINE void store(cart *carts, float *seen, eight e) {
  const __m512i first = _mm512_setr_epi64(0, 4, 8, 12, 1, 5, 9, 13);
  const __m512i second = _mm512_setr_epi64(2, 6, 10, 14, 3, 7, 11, 15);
  __m512d m0 = _mm512_shuffle_f64x2(e.x, e.speed, 0x44), m4 = _mm512_shuffle_f64x2(e.x, e.speed, 0xee);
  __m512d t0 = _mm512_shuffle_f64x2(e.angle, e.turn, 0x44), t4 = _mm512_shuffle_f64x2(e.angle, e.turn, 0xee);
  store_two(carts, seen, _mm512_permutex2var_pd(m0, first, t0));
  store_two(carts + 2, seen + 8, _mm512_permutex2var_pd(m0, second, t0));
  store_two(carts + 4, seen + 16, _mm512_permutex2var_pd(m4, first, t4));
  store_two(carts + 6, seen + 24, _mm512_permutex2var_pd(m4, second, t4));
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
  __m512d cosine, push, turning;
} pushed;

/* cart_move, line for line, in two halves; but HALF_LENGTH, which is a half, is multiplied into constants,
 * which changes no digit. */
WIDE_INLINE pushed push_eight(__m512d turn, __m512d force, __m512d sine, __m512d cosine) {
  __m512d swing = _mm512_mul_pd(_mm512_mul_pd(all(POLE_MASS_LENGTH), _mm512_mul_pd(turn, turn)), sine);
  __m512d push = by_mass(_mm512_add_pd(force, swing));
  __m512d pole = by_mass(_mm512_mul_pd(all(HALF_LENGTH * POLE_MASS), _mm512_mul_pd(cosine, cosine)));
  __m512d inertia = _mm512_sub_pd(all(HALF_LENGTH * (4.0 / 3.0)), pole);
  __m512d fall = _mm512_sub_pd(_mm512_mul_pd(all(GRAVITY), sine), _mm512_mul_pd(cosine, push));
  return (pushed){cosine, push, _mm512_div_pd(fall, inertia)};
}

WIDE_INLINE eight move_eight(pushed p, eight e) {
  __m512d back = by_mass(_mm512_mul_pd(_mm512_mul_pd(all(POLE_MASS_LENGTH), p.turning), p.cosine));
  return (eight){onwards(e.x, e.speed), onwards(e.speed, _mm512_sub_pd(p.push, back)),
                 onwards(e.angle, e.turn), onwards(e.turn, p.turning)};
}

WIDE_INLINE __m512d forces_of(const float *actions) {
  __mmask8 right = _mm256_cmp_ps_mask(_mm256_loadu_ps(actions), _mm256_set1_ps(1), _CMP_EQ_OQ);
  return _mm512_mask_blend_pd(right, all(-PUSH), all(PUSH));
}

WIDE_INLINE void tell_ended(eight e, bool *ended) {
  __mmask8 in = _mm512_cmp_pd_mask(size(e.x), all(X_MAX), _CMP_LE_OQ);
  in = _mm512_mask_cmp_pd_mask(in, size(e.angle), all(ANGLE_MAX), _CMP_LE_OQ);
  _mm_storel_epi64((__m128i *)(void *)ended, _mm_mask_mov_epi8(_mm_set1_epi8(1), in, _mm_setzero_si128()));
}

WIDE_INLINE pushed push_at(const float *actions, const block *b, uint32_t i) {
  return push_eight(_mm512_loadu_pd(b->turn + i), forces_of(actions + i), _mm512_loadu_pd(b->sine + i),
                    _mm512_loadu_pd(b->cosine + i));
}

WIDE_INLINE void move_at(pushed p, const block *b, cart *carts, bool *ended, float *seen, uint32_t i) {
  eight e = move_eight(p, (eight){_mm512_loadu_pd(b->x + i), _mm512_loadu_pd(b->speed + i),
                                  _mm512_loadu_pd(b->angle + i), _mm512_loadu_pd(b->turn + i)});
  store(carts + i, seen + (size_t)4 * i, e);
  tell_ended(e, ended + i);
}

WIDE static void move_block(cart *carts, uint32_t count, const float *actions, bool *ended, float *seen) {
  block b;
  memset(b.sine_sure, 0xff, sizeof b.sine_sure); /* where there are no carts nothing needs to be asked */
  memset(b.cosine_sure, 0xff, sizeof b.cosine_sure);
  find_waves(carts, count, &b);
  ask_library(&b, count);
  pushed p = push_at(actions, &b, 0);
  for (uint32_t i = LANES; i < count; i += LANES) {
    pushed next = push_at(actions, &b, i);
    move_at(p, &b, carts, ended, seen, i - LANES);
    p = next;
  }
  move_at(p, &b, carts, ended, seen, count - LANES);
}

WIDE void shoal_carts_move_avx512(cart *carts, uint32_t count, const float *actions, bool *ended,
                                  float *seen) {
  for (uint32_t done = 0; done < count; done += CARTS_BLOCK)
    move_block(carts + done, count - done < CARTS_BLOCK ? count - done : CARTS_BLOCK, actions + done,
               ended + done, seen + (size_t)4 * done);
}

WIDE void shoal_carts_round_avx512(const cart *carts, uint32_t count, float *out) {
  uint32_t i = 0;
  for (; i + 2 <= count; i += 2)
    _mm256_storeu_ps(out + (size_t)4 * i, _mm512_cvtpd_ps(_mm512_loadu_pd(carts + i)));
  if (i < count) _mm_storeu_ps(out + (size_t)4 * i, _mm256_cvtpd_ps(_mm256_loadu_pd(&carts[i].x)));
}
#endif
