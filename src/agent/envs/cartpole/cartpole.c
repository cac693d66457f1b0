/* cartpole.c: see cartpole.h.
 *
 * Made for many at once: plain loops without a branch, which the compiler turns into vectors, for several
 * instruction sets; carts_avx512.c is the same by hand. None of them changes a bit, since multiply and add
 * are never fused where that shows, and the order of operations is that of the original.
 *
 * A pole that falls doubles an error every few steps, so sine and cosine must be the C library's to the
 * last bit, as NumPy's are. Angles are small, and a few terms of the series with what rounding took away
 * tell them all but always: where the exact value is so near the middle between two doubles that the
 * library (carts.h says how wrong it may be) might take the other one, it is asked. */
#include "agent/envs/cartpole/cartpole.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/envs/cartpole/carts.h"
#include "kernels/kernels.h"

static const double START = 0.05;
/* How wrong the small term of a sine, and of a cosine, may be. */
static const double SERIES_TERM = 3 * 0x1p-52, COSINE_TERM = 2 * 0x1p-52;

static inline __attribute__((always_inline)) void round_one(const cart *c, float *out) {
  out[0] = (float)c->x;
  out[1] = (float)c->speed;
  out[2] = (float)c->angle;
  out[3] = (float)c->turn;
}

static void reset_seen(void *state, shoal_pcg64 *random, float *seen) {
  cart c;
  c.x = shoal_pcg64_uniform(random, -START, START);
  c.speed = shoal_pcg64_uniform(random, -START, START);
  c.angle = shoal_pcg64_uniform(random, -START, START);
  c.turn = shoal_pcg64_uniform(random, -START, START);
  round_one(&c, seen);
  *(cart *)state = c;
}

static void reset(void *state, shoal_pcg64 *random) {
  float seen[4];
  reset_seen(state, random, seen);
}

/* ---- one step --------------------------------------------------------------------------- */

/* Sine and cosine, and whether the C library is to be asked, which may say something else. The first term
 * that is left out is below 2^-60 of the sum. Pairs of terms are added up side by side, since each
 * operation would wait for the one before it otherwise. */
typedef struct waves {
  double sine, cosine;
  bool ask;
} waves;

static inline __attribute__((always_inline)) waves series(double x) {
  double x2 = x * x, x4 = x2 * x2;
  double s3 = x2 * (1.0 / 120) - 1.0 / 6, s7 = x2 * (1.0 / 362880) - 1.0 / 5040;
  double s11 = x2 * (1.0 / 6227020800.0) - 1.0 / 39916800;
  double c2 = x2 * (1.0 / 24) - 0.5, c6 = x2 * (1.0 / 40320) - 1.0 / 720;
  double c10 = x2 * (1.0 / 479001600.0) - 1.0 / 3628800;
  double s_small = x * x2 * (s3 + x4 * (s7 + x4 * s11)), c_small = x2 * (c2 + x4 * (c6 + x4 * c10));
  double s = x + s_small, c = 1.0 + c_small;
  double s_rest = s_small - (s - x), c_rest = c_small - (c - 1.0); /* exact: what rounding took away */
  double s_wrong =
      (fabs(x) < SINE_SMALL ? fabs(s_small) * SINE_TERM : SINE_UNITS) + fabs(s_small) * SERIES_TERM;
  double c_wrong = COSINE_UNITS - c_small * COSINE_TERM;
  bool sure = (fabs(x) <= SERIES_MAX) & (s + (s_rest + s_wrong) == s) & (s + (s_rest - s_wrong) == s) &
              (c + (c_rest + c_wrong) == c) & (c + (c_rest - c_wrong) == c);
  return (waves){s, c, !sure};
}

/* ---- many ------------------------------------------------------------------------------- */

/* The numbers of those that are marked with 1. Without branches, which could not be foreseen; and the marks
 * are as wide as what they come from, which makes for simpler vectors. */
static inline __attribute__((always_inline)) uint32_t list(const uint64_t *marked, uint32_t count,
                                                           uint16_t *out) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < count; i++) {
    out[found] = (uint16_t)i;
    found += (uint32_t)marked[i];
  }
  return found;
}

static inline __attribute__((always_inline)) void round_all(const cart *carts, uint32_t count, float *out) {
  for (uint32_t i = 0; i < count; i++) round_one(&carts[i], out + (size_t)4 * i);
}

static inline __attribute__((always_inline)) void move_block(cart *carts, uint32_t count,
                                                             const float *actions, bool *ended, float *seen) {
  double sines[CARTS_BLOCK], cosines[CARTS_BLOCK];
  uint64_t ask[CARTS_BLOCK];
  uint16_t asked[CARTS_BLOCK];
  for (uint32_t i = 0; i < count; i++) {
    waves w = series(carts[i].angle);
    sines[i] = w.sine;
    cosines[i] = w.cosine;
    ask[i] = w.ask;
  }
  for (uint32_t a = 0, n = list(ask, count, asked); a < n; a++) {
    double angle = carts[asked[a]].angle;
    sines[asked[a]] = sin(angle);
    cosines[asked[a]] = cos(angle);
  }
  for (uint32_t i = 0; i < count; i++) cart_move(&carts[i], cart_force(actions[i]), sines[i], cosines[i]);
  for (uint32_t i = 0; i < count; i++) ended[i] = cart_ended(&carts[i]);
  round_all(carts, count, seen);
}

static inline __attribute__((always_inline)) void move_all(cart *carts, uint32_t count, const float *actions,
                                                           bool *ended, float *seen) {
  for (uint32_t done = 0; done < count; done += CARTS_BLOCK)
    move_block(carts + done, count - done < CARTS_BLOCK ? count - done : CARTS_BLOCK, actions + done,
               ended + done, seen + (size_t)4 * done);
}

static void move_plain(cart *carts, uint32_t count, const float *actions, bool *ended, float *seen) {
  move_all(carts, count, actions, ended, seen);
}
static void round_plain(const cart *carts, uint32_t count, float *out) { round_all(carts, count, out); }

#ifdef __x86_64__
__attribute__((target("avx2"))) static void move_avx2(cart *carts, uint32_t count, const float *actions,
                                                      bool *ended, float *seen) {
  move_all(carts, count, actions, ended, seen);
}
__attribute__((target("avx2"))) static void round_avx2(const cart *carts, uint32_t count, float *out) {
  round_all(carts, count, out);
}

typedef enum isa { UNKNOWN, PLAIN, AVX2, AVX512 } isa;

/* The instruction set that the kernels have, so that one setting decides for all. */
static isa isa_of_kernels(void) {
  static _Atomic int known = UNKNOWN;
  int found = atomic_load_explicit(&known, memory_order_relaxed);
  if (found != UNKNOWN) return (isa)found;
  const shoal_kernels *kernels = shoal_kernels_get();
  const char *name = kernels ? kernels->name : "";
  found = strcmp(name, "avx512") == 0 ? AVX512 : strcmp(name, "avx2") == 0 ? AVX2 : PLAIN;
  atomic_store_explicit(&known, found, memory_order_relaxed);
  return (isa)found;
}

static void move_many(cart *carts, uint32_t count, const float *actions, bool *ended, float *seen) {
  isa best = isa_of_kernels();
  uint32_t eights = best == AVX512 ? count / 8 * 8 : 0;
  if (eights > 0) shoal_carts_move_avx512(carts, eights, actions, ended, seen);
  if (best == PLAIN)
    move_plain(carts, count, actions, ended, seen);
  else if (eights < count)
    move_avx2(carts + eights, count - eights, actions + eights, ended + eights, seen + (size_t)4 * eights);
}

static void round_many(const cart *carts, uint32_t count, float *out) {
  switch (isa_of_kernels()) {
  case AVX512: shoal_carts_round_avx512(carts, count, out); break;
  case AVX2: round_avx2(carts, count, out); break;
  default: round_plain(carts, count, out); break;
  }
}
#else
static void move_many(cart *carts, uint32_t count, const float *actions, bool *ended, float *seen) {
  move_plain(carts, count, actions, ended, seen);
}
static void round_many(const cart *carts, uint32_t count, float *out) { round_plain(carts, count, out); }
#endif

static void step_seen(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms,
                      float *rewards, bool *ended, float *seen) {
  (void)randoms;
  move_many(states, count, actions, ended, seen);
  for (uint32_t i = 0; i < count; i++) rewards[i] = 1.0f;
}

static void step(void *states, uint32_t count, const float *actions, shoal_pcg64 *randoms, float *rewards,
                 bool *ended) {
  float seen[4 * CARTS_BLOCK];
  for (uint32_t done = 0; done < count; done += CARTS_BLOCK) {
    uint32_t some = count - done < CARTS_BLOCK ? count - done : CARTS_BLOCK;
    step_seen((cart *)states + done, some, actions + done, randoms + done, rewards + done, ended + done,
              seen);
  }
}

static void observe(const void *states, uint32_t count, float *out) { round_many(states, count, out); }

/* ---- for people ------------------------------------------------------------------------- */

static void draw(const void *state, shoal_canvas *canvas) {
  const cart *c = state;
  float x = (float)c->x, tip_x = (float)sin(c->angle), tip_y = (float)cos(c->angle);
  shoal_canvas_view(canvas, -3.0f, 3.0f, -0.7f, 1.7f);
  shoal_canvas_line(canvas, SHOAL_INK_LINE, 0.03f, (const float[][2]){{-2.4f, 0}, {2.4f, 0}}, 2);
  for (int side = -1; side <= 1; side += 2) {
    float end = 2.4f * (float)side;
    shoal_canvas_line(canvas, SHOAL_INK_FAINT, 0.04f, (const float[][2]){{end, -0.15f}, {end, 0.15f}}, 2);
  }
  shoal_canvas_box(canvas, SHOAL_INK_BODY, x - 0.3f, x + 0.3f, -0.15f, 0.15f);
  shoal_canvas_line(canvas, SHOAL_INK_ACCENT, 0.1f,
                    (const float[][2]){{x, 0.1f}, {x + 1.2f * tip_x, 0.1f + 1.2f * tip_y}}, 2);
  shoal_canvas_disc(canvas, SHOAL_INK_LINE, x, 0.1f, 0.05f);
}

const shoal_env_kind shoal_env_cartpole_v1 = {
    .name = "CartPole-v1",
    .says = "push a cart left or right so that the pole on it stays upright",
    .observation = 4,
    .choices = 2,
    .action_width = 1,
    .limit = 500,
    .solved = 475,
    .pace = 50,
    .bytes = sizeof(cart),
    .reset = reset,
    .step = step,
    .observe = observe,
    .draw = draw,
    .reset_seen = reset_seen,
    .step_seen = step_seen,
};

const shoal_env_kind shoal_env_cartpole_v0 = {
    .name = "CartPole-v0",
    .says = "the same for 200 steps",
    .observation = 4,
    .choices = 2,
    .action_width = 1,
    .limit = 200,
    .solved = 195,
    .pace = 50,
    .bytes = sizeof(cart),
    .reset = reset,
    .step = step,
    .observe = observe,
    .draw = draw,
    .reset_seen = reset_seen,
    .step_seen = step_seen,
};
